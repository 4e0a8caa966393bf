"""Why somebody was decided so."""

import pytest
from tests.service.bank import LOAN, application
from tests.service.lives import live

from evenhand.service.explanations import borders, mark_of_older_rules


def test_an_explanation_names_rules_coin_and_what_would_have_changed_it(bank):
    live(bank, 9)
    rejected = next(row for row in bank.ledger.history("bank", "loan") if not row.accept)
    key = next(
        k for k in range(100_000) if bank.ledger.find("bank", f"k{k}").drawn.seq == rejected.seq
    )
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
    scores = [row.features[0] for row in bank.ledger.history("bank", "loan")]
    change = found["change"]
    assert change["features"] == ["score"]
    assert min(scores) <= change["values"][0] <= max(scores)
    assert change["acceptance"] > found["coin"]
    assert "the same coin would have accepted" in found["sentence"]
    assert "Chance had a say" in found["sentence"]


LINEAR = {"kind": "linear", "weights": [2.0, 0.0, 1.0], "threshold": 5.0}
TREE = {"kind": "tree", "column": [0, 2, 0], "value": [1.0, 2.0, 3.0]}
CUT = {"kind": "threshold", "column": 2, "value": 7.0}


def test_a_rule_changes_its_answer_at_its_borders():
    """Linear rules where w.x crosses the threshold, cuts and trees at their values."""
    person = (1.0, 4.0, 1.0)
    policy = {"parts": [{"hypothesis": rule} for rule in (LINEAR, TREE, CUT)]}
    assert sorted(borders(policy, 0, person)) == [1.0, 2.0, 3.0]
    assert list(borders(policy, 1, person)) == []
    assert sorted(borders(policy, 2, person)) == [2.0, 3.0, 7.0]


def test_a_certain_decision_leaves_no_say_to_chance(bank):
    bank.post("/v1/decisions", application())
    told = bank.get("/v1/decisions/k1/explanation").json()
    assert (told["accept"], told["chance_decided"], told["reasons"]) == (True, False, [])
    assert (told["usual"], told["change"]) == (None, None)  # there is nobody to compare with
    assert "chance had no say" in told["sentence"]


def test_a_policy_of_the_present_rules_has_no_mark(bank):
    policy = bank.service.decider.active(LOAN).policy
    assert mark_of_older_rules(bank.ledger, LOAN, policy) == {}
