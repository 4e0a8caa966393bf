"""Reports over HTTP: idempotent, disputed, quarantined, overruled."""

import pytest
from tests.service.bank import application


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
    assert bank.ledger.counts("bank", "loan").resolved == 1


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
    assert refused.json()["law"] == "labels exist for accepted people alone"
    assert bank.ledger.counts("bank", "loan").quarantined == 1
    assert all(row.label == 0 for row in bank.ledger.history("bank", "loan", usable_only=False))


def test_an_overruled_decision_stays_as_drawn_and_loses_its_label(bank):
    bank.post("/v1/decisions", application())
    bank.post("/v1/outcomes", {"key": "k1", "label": 1})
    agreed = bank.post("/v1/overrides", {"key": "k1", "accept": True, "by": "officer"}).json()
    assert (agreed["result"], agreed["status"], "overruled" in agreed) == (
        "recorded",
        "resolved",
        False,
    )
    assert [row.label for row in bank.ledger.history("bank", "loan")] == [1]
    found = bank.post(
        "/v1/overrides", {"key": "k1", "accept": False, "by": "officer", "note": "fraud"}
    ).json()
    assert (found["status"], found["overruled"]) == ("overruled", True)
    assert [
        (row.accept, row.label, row.overruled) for row in bank.ledger.history("bank", "loan")
    ] == [(True, 0, True)]
    assert bank.ledger.counts("bank", "loan").usable == 1


def test_a_rejection_that_people_overrule_stays_a_rejection(bank, rejected):
    found = bank.post("/v1/overrides", {"key": rejected, "accept": True, "by": "officer"}).json()
    assert (found["status"], found["overruled"]) == ("rejected", True)
    assert bank.post("/v1/outcomes", {"key": rejected, "label": 1}).status_code == 409
    shown = bank.get(f"/v1/decisions/{rejected}/explanation").json()
    assert (shown["accept"], shown["overruled"]) == (False, True)


def test_a_late_group_is_recorded(bank):
    bank.post("/v1/decisions", application())
    assert bank.post("/v1/groups", {"key": "k1", "group": "south"}).json()["result"] == "recorded"
    assert next(iter(bank.ledger.history("bank", "loan"))).group == "south"


def test_a_batch_tells_which_were_refused(bank, rejected):
    bank.post("/v1/decisions", application())
    told = [{"key": key, "label": 1} for key in ("k1", "unknown", rejected)]
    found = bank.post("/v1/outcomes/batch", {"outcomes": told}).json()["outcomes"]
    assert [one.get("status") for one in found] == ["resolved", 404, 409]


@pytest.mark.parametrize("label", [0, 2, "1", True, None, 1.5, [1]])
def test_labels_are_plus_or_minus_one(bank, label):
    bank.post("/v1/decisions", application())
    refused = bank.post("/v1/outcomes", {"key": "k1", "label": label})
    assert refused.status_code == 422
    assert refused.json()["field"] == "label"
