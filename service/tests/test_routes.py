"""The API over HTTP: deciding, outcomes, looking, and what must not pass."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import quote

import pytest
from service.tests.attacks import (
    from_other_sites,
    session,
    sql_payloads,
    stored_scripts,
)
from service.tests.bank import DAY, LOAN, Bank, application
from service.tests.ledger.helpers import recomputed
from service.tests.simulated_run import closings, run_epochs

from evenhand_service import Trainer
from evenhand_service.ledger import verify


def test_an_answer_names_its_probability_and_policy(bank):
    answer = bank.post("/v1/decisions", application(group="north"))
    assert answer.status_code == 200
    body = answer.json()
    assert body["accept"] is True
    assert (body["propensity"], body["epoch"], body["mode"], body["act"]) == (1.0, 1, "live", True)
    assert bank.get("/v1/decisions/k1").content == answer.content


@pytest.mark.parametrize("days", [0, 1, 400, 2000])
def test_a_retry_gets_the_same_bytes(bank, days):
    first = bank.post("/v1/decisions", application())
    bank.clock.now += days * DAY
    again = bank.post("/v1/decisions", application())
    assert again.content == first.content
    assert again.headers["evenhand-replayed"] == "true"


def test_features_by_name_are_the_same_application(bank):
    first = bank.post("/v1/decisions", application())
    again = bank.post("/v1/decisions", application() | {"features": {"score": 0.5}})
    assert again.content == first.content


def test_the_same_key_with_another_body_is_a_conflict(bank):
    bank.post("/v1/decisions", application())
    for other in (application(features=[0.6]), application(person="q"), application(group="south")):
        refused = bank.post("/v1/decisions", other)
        assert refused.status_code == 409
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["type"] == "urn:evenhand:problem:conflict"


def test_a_hundred_identical_requests_at_once_draw_once(bank):
    bank.post("/v1/decisions", application("warm"))
    with ThreadPoolExecutor(20) as pool:
        found = list(
            pool.map(lambda _: bank.post("/v1/decisions", application()).content, range(100))
        )
    assert len(set(found)) == 1
    assert bank.ledger.counts("loan").decisions == 2


def test_a_batch_answers_in_order_and_refuses_one_by_one(bank):
    bank.post("/v1/decisions", application("b"))
    asked = [
        application("a"),
        application("b", features=[9.0]),
        application("c", features=[1, 2]),
        application("d"),
    ]
    found = bank.post("/v1/decisions/batch", {"decisions": asked}).json()["decisions"]
    assert [one.get("status", 200) for one in found] == [200, 409, 422, 200]
    assert [one.get("key") for one in found] == ["a", None, None, "d"]
    assert bank.ledger.counts("loan").decisions == 3


def test_every_probability_recomputes_from_its_policy_and_the_chain_verifies(bank):
    bank.arrive(120, seed=1)
    assert recomputed(bank.ledger, "loan") == 120
    assert verify(bank.ledger, deep=True).ok


def test_a_person_who_comes_back_inside_the_window_meets_the_same_coin(bank):
    for key in ("a", "b"):
        bank.post("/v1/decisions", application(key, person="p"))
    drawn = [bank.ledger.find(key).drawn for key in ("a", "b")]
    assert drawn[0].u == drawn[1].u
    assert [d.usable for d in drawn] == [True, False]


def test_a_restart_finds_the_same_answers(tmp_path):
    path = tmp_path / "ledger.sqlite"
    bank = Bank(path)
    first = bank.post("/v1/decisions", application()).content
    policies = [p.id for p in bank.ledger.policies("loan")]
    bank.close()
    again = Bank(path, bank.clock)
    assert again.post("/v1/decisions", application()).content == first
    assert [p.id for p in again.ledger.policies("loan")] == policies
    again.close()


def test_erased_people_are_gone(bank):
    bank.post("/v1/decisions", application())
    assert bank.post("/v1/erasures", {"person": "p-k1", "by": "op"}).json() == {"decisions": 1}
    for refused in (bank.post("/v1/decisions", application()), bank.get("/v1/decisions/k1")):
        assert refused.status_code == 410
    assert bank.post("/v1/outcomes", {"key": "k1", "label": 1}).status_code == 410


@pytest.fixture
def rejected(bank):
    """A key that the machine has rejected: the kill switch rejects everybody."""
    bank.post("/v1/kill", {"product": "loan", "by": "op", "constant": "reject"})
    assert bank.post("/v1/decisions", application("no")).json()["accept"] is False
    bank.post("/v1/revive", {"product": "loan", "by": "op"})
    return "no"


def test_an_outcome_is_recorded_once(bank):
    bank.post("/v1/decisions", application())
    found = [bank.post("/v1/outcomes", {"key": "k1", "label": 1}).json() for _ in range(3)]
    assert [one["result"] for one in found] == ["recorded", "repeated", "repeated"]
    assert bank.ledger.counts("loan").resolved == 1


def test_a_contradiction_is_kept_and_settled_by_an_operator(bank):
    bank.post("/v1/decisions", application())
    bank.post("/v1/outcomes", {"key": "k1", "label": 1})
    assert bank.post("/v1/outcomes", {"key": "k1", "label": -1}).json()["result"] == "disputed"
    settled = bank.post(
        "/v1/settlements", {"key": "k1", "label": -1, "by": "op", "note": "statement seen"}
    )
    assert settled.json()["status"] == "resolved"


def test_a_rejected_person_has_no_outcome(bank, rejected):
    refused = bank.post("/v1/outcomes", {"key": rejected, "label": 1})
    assert refused.status_code == 409
    assert refused.json()["requirement"] == "labels exist for accepted people alone"
    assert bank.ledger.counts("loan").quarantined == 1
    assert all(row.label == 0 for row in bank.ledger.history("loan", usable_only=False))


def test_an_overruled_decision_stays_as_drawn_and_loses_its_label(bank):
    bank.post("/v1/decisions", application())
    bank.post("/v1/outcomes", {"key": "k1", "label": 1})
    agreed = bank.post("/v1/overrides", {"key": "k1", "accept": True, "by": "officer"}).json()
    assert (agreed["result"], agreed["status"], "overruled" in agreed) == (
        "recorded",
        "resolved",
        False,
    )
    assert [row.label for row in bank.ledger.history("loan")] == [1]
    found = bank.post(
        "/v1/overrides", {"key": "k1", "accept": False, "by": "officer", "note": "fraud"}
    ).json()
    assert (found["status"], found["overruled"]) == ("overruled", True)
    assert [(row.accept, row.label, row.overruled) for row in bank.ledger.history("loan")] == [
        (True, 0, True)
    ]
    assert bank.ledger.counts("loan").usable == 1


def test_a_rejection_that_people_overrule_stays_a_rejection(bank, rejected):
    found = bank.post("/v1/overrides", {"key": rejected, "accept": True, "by": "officer"}).json()
    assert (found["status"], found["overruled"]) == ("rejected", True)
    assert bank.post("/v1/outcomes", {"key": rejected, "label": 1}).status_code == 409
    shown = bank.get(f"/v1/decisions/{rejected}/explanation").json()
    assert (shown["accept"], shown["overruled"]) == (False, True)


def test_a_late_group_is_recorded(bank):
    bank.post("/v1/decisions", application())
    assert bank.post("/v1/groups", {"key": "k1", "group": "south"}).json()["result"] == "recorded"
    assert next(iter(bank.ledger.history("loan"))).group == "south"


def test_a_batch_tells_which_were_refused(bank, rejected):
    bank.post("/v1/decisions", application())
    told = [{"key": key, "label": 1} for key in ("k1", "unknown", rejected)]
    found = bank.post("/v1/outcomes/batch", {"outcomes": told}).json()["outcomes"]
    assert [one.get("status") for one in found] == ["resolved", 404, 409]


def test_a_plan_needs_a_policy_that_a_trainer_published(bank, monkeypatch):
    by_hand = [replace(one, info={}) for one in bank.ledger.policies("loan")]
    monkeypatch.setattr(bank.service.ledger, "policies", lambda *_: by_hand)
    refused = bank.get("/v1/plan?product=loan")
    assert refused.status_code == 404
    assert "published by a trainer" in refused.json()["detail"]


def test_certificate_policies_and_plan_over_http(bank):
    run_epochs(bank, 3)
    certificate = bank.get("/v1/certificate?product=loan").json()
    assert certificate["claim"].startswith("Certified with probability")
    policies = bank.get("/v1/policies?product=loan").json()
    assert policies["in_force"]["policy"] == closings(bank)[-1].id
    assert all(policy["signature"] for policy in policies["policies"])
    plan = bank.get("/v1/plan?product=loan").json()
    assert plan["epoch"] == 3
    assert plan["to_go"] > 0
    assert b"evenhand_people" in bank.get("/metrics").content


def test_the_plan_is_that_of_the_newest_policy_whoever_trained_it(bank):
    """A replica that does not train knows as much."""
    run_epochs(bank, 2)
    bank.clock.now += 10 * DAY
    bank.repay(*bank.arrive(400, seed=9, first=50_000))
    bank.service.release()
    published = Trainer(bank.ledger, LOAN, "another replica").close()
    assert bank.service.trainer(LOAN).learner.epoch.number < published.epoch
    plan = bank.get("/v1/plan?product=loan").json()
    assert (plan["epoch"], plan["learned_weight"]) == (
        published.epoch,
        published.info["learned_weight"],
    )


def test_what_is_expected_is_said_over_http_and_on_the_page_and_not_in_the_certificate(bank):
    run_epochs(bank, 6)
    (said,) = bank.get("/v1/plan?product=loan").json()["forecast"]
    assert said.startswith(("False positive rate at ", "Half of the weight is learned "))
    page = bank.client.get("/dashboard", headers={"Cookie": session(bank)}).text
    assert said in page
    assert "A forecast from the labels so far; it is no part of the certificate." in page
    assert "forecast" not in bank.get("/v1/certificate?product=loan").text.lower()


@pytest.mark.parametrize(
    "attack",
    [from_other_sites, stored_scripts, sql_payloads],
    ids=lambda f: f.__name__,
)
def test_what_must_not_pass(bank, attack):
    passed, tried = attack(bank)
    assert passed == []
    assert tried > 10


@pytest.mark.parametrize("key", ["a/b", "a%2Fb", "x/explanation", "100%", "..", "a?b#c", "ü/ß"])
def test_every_key_can_be_fetched(bank, key):
    answer = bank.post("/v1/decisions", application(key, person="p")).content
    path = f"/v1/decisions/{quote(key, safe='')}"
    assert bank.get(path.replace("..", "%2E%2E")).content == answer
    assert bank.get(f"{path.replace('..', '%2E%2E')}/explanation").status_code == 200
