"""Why somebody was decided so."""

import pytest
from service.tests.bank import CARD, application
from service.tests.simulated_run import run_epochs

from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.thresholds import Threshold
from evenhand.policies import Mixture
from evenhand_service.explanations import learned_from
from evenhand_service.ledger import Standing


def test_an_explanation_names_rules_coin_and_what_would_have_changed_it(bank):
    run_epochs(bank, 9)
    rejected = next(row for row in bank.ledger.history("loan") if not row.accept)
    key = next(k for k in range(100_000) if bank.ledger.find(f"k{k}").drawn.seq == rejected.seq)
    found = bank.get(f"/v1/decisions/k{key}/explanation").json()
    assert found["accept"] is False
    assert found["coin"] >= found["acceptance"]
    assert sum(part["weight"] for part in found["parts"] if part["accepts"]) == pytest.approx(
        found["acceptance"]
    )
    shares = [reason["share"] for reason in found["reasons"]]
    assert found["reasons"][0]["feature"] == "score"
    assert sum(shares) == pytest.approx(found["acceptance"] - found["usual"])
    assert found["compared_with"] == 200
    scores = [row.features[0] for row in bank.ledger.history("loan")]
    change = found["change"]
    assert change["features"] == ["score"]
    assert min(scores) <= change["values"][0] <= max(scores)
    assert change["acceptance"] > found["coin"]
    assert "the same coin would have accepted" in found["sentence"]
    assert "Chance had a say" in found["sentence"]


def decided_by(bank, rules, weights, people):
    """Publish a mixture for the product "card" (score, income), and decide about people by it."""
    first = [p for p in bank.ledger.policies("card") if p.in_lineage][-1]
    certificate = bank.ledger.certificates("card")[-1].document
    bank.ledger.publish(
        "card", Mixture(rules, weights).to_json(), epoch=first.epoch + 1, parent=first.id,
        checkpoint={}, certificate=certificate, info={"guarantee": CARD.guarantee},
    )  # fmt: skip
    bank.service.decider.refresh(CARD)
    asked = [
        application(f"c{n}", product="card", features=features) for n, features in enumerate(people)
    ]
    bank.post("/v1/decisions/batch", {"decisions": asked})
    return [bank.get(f"/v1/decisions/c{n}/explanation").json() for n in range(len(people))]


SCORE, INCOME = Threshold(0, 0.0, 2), Threshold(1, 100.0, 2)


def test_the_feature_that_decided_is_named_and_never_the_first_one_by_default(bank):
    """The rule looks at the income alone; a tie between two features names both."""
    people = [[float(n % 7), 90.0 + n] for n in range(30)]
    told = decided_by(bank, (INCOME,), (1.0,), [*people, [-50.0, 95.0]])[-1]
    assert [one["feature"] for one in told["reasons"]] == ["income"]
    assert "What spoke most against it: income." in told["sentence"]
    assert told["change"]["features"] == ["income"]
    assert told["change"]["values"] == [100.0]
    assert "chance had no say" in told["sentence"]


def test_features_that_spoke_equally_are_both_named(bank):
    people = [[1.0, 200.0], [2.0, 300.0], [-1.0, 50.0]]
    told = decided_by(bank, (SCORE, INCOME), (0.5, 0.5), people)[-1]
    assert [one["share"] for one in told["reasons"]] == pytest.approx([-0.5, -0.5])
    assert "score and income, equally" in told["sentence"]


def test_where_rejecting_everybody_decided_no_feature_is_blamed(bank):
    people = [[1.0, 50.0 + n] for n in range(40)]
    told = decided_by(bank, (ACCEPT_ALL, REJECT_ALL), (0.3, 0.7), people)
    refused = [one for one in told if not one["accept"]]
    assert refused
    for one in refused:
        assert (one["reasons"], one["change"], one["chance_decided"]) == ([], None, True)
        assert "weight 0.7" in one["sentence"]
        assert "against it" not in one["sentence"]


def test_the_kill_switch_is_named_as_what_decided(bank):
    bank.post("/v1/kill", {"product": "loan", "by": "officer", "constant": "reject"})
    bank.post("/v1/decisions", application())
    told = bank.get("/v1/decisions/k1/explanation").json()
    assert "kill switch" in told["sentence"]
    assert told["learned_from"].startswith("no: it was made in killed mode")


def test_others_are_found_however_far_away_they_are_in_the_chain(bank):
    """The rows of another product lie between."""
    bank.post("/v1/decisions", application("c0", product="card", features=(1.0, 2.0)))
    bank.arrive(2500, seed=5)
    bank.post("/v1/decisions", application("c1", product="card", features=(1.0, 2.0)))
    assert bank.get("/v1/decisions/c1/explanation").json()["compared_with"] == 1
    assert bank.get("/v1/decisions/c0/explanation").json()["compared_with"] == 1


def test_what_a_decision_teaches_is_said_of_every_kind(bank):
    """Rejected people are learned from too: that they came. A second application is not."""
    drawn = bank.ledger.find  # durable answers
    bank.post("/v1/decisions", application("a", person="p"))
    bank.post("/v1/decisions", application("b", person="p"))
    assert drawn("a").drawn.first
    said = {k: bank.get(f"/v1/decisions/{k}/explanation").json()["learned_from"] for k in "ab"}
    assert said["a"].startswith("yes: the outcome counts when")
    assert said["b"].startswith("no: it is not the person's first")
    bank.post("/v1/outcomes", {"key": "a", "label": 1})
    assert "is known" in bank.get("/v1/decisions/a/explanation").json()["learned_from"]
    rejected = drawn("a").drawn._replace(accept=False)
    assert learned_from(rejected, Standing("rejected")).startswith("yes: that this person came")


def test_a_certain_decision_leaves_no_say_to_chance(bank):
    bank.post("/v1/decisions", application())
    told = bank.get("/v1/decisions/k1/explanation").json()
    assert (told["accept"], told["chance_decided"], told["reasons"]) == (True, False, [])
    assert (told["usual"], told["change"]) == (None, None)  # there is nobody to compare with
    assert "chance had no say" in told["sentence"]
