"""Four eyes: what cannot be taken back is done when a second key has asked for the same."""

import pytest
from service.tests.bank import Bank, application

from evenhand_service.ledger import verify

REQUESTS = {
    "kill": ("/v1/kill", {"product": "loan", "constant": "reject"}),
    "rollback": ("/v1/rollback", {"product": "loan"}),
    "erasure": ("/v1/erasures", {"person": "p-k1"}),
    "settlement": ("/v1/settlements", {"key": "k1", "label": -1}),
}


@pytest.fixture
def bank(tmp_path):
    made = Bank(tmp_path / "ledger.sqlite", four_eyes=True)
    made.second = made.keys.add(["admin"], "second", days=3650)
    made.post("/v1/decisions", application())
    for label in (1, -1):
        made.post("/v1/outcomes", {"key": "k1", "label": label})
    yield made
    made.close()


def proposals(bank):
    return [e.action for e in bank.ledger.events() if e.action in ("proposed", "confirmed")]


@pytest.mark.parametrize("what", ["kill", "erasure", "settlement"])
def test_nothing_is_done_by_one_key_however_often_it_asks(bank, what):
    path, body = REQUESTS[what]
    for note in ("", "again", "please"):
        refused = bank.post(path, body | ({"note": note} if what != "erasure" else {}))
        assert refused.status_code == 409
        assert refused.json()["type"].endswith("second-key")
    assert proposals(bank) == ["proposed"]
    assert bank.get("/v1/decisions/k1").status_code == 200
    assert bank.service.decider.active(bank.service.decider.product("loan")).mode == "live"
    done = bank.post(path, body, bank.second)
    assert done.status_code == 200
    assert proposals(bank) == ["proposed", "confirmed"]
    # it is used up: the next one needs two keys again
    assert bank.post(path, body).status_code == 409
    assert verify(bank.ledger).ok


def test_a_rollback_needs_two_keys_too(bank):
    path, body = REQUESTS["rollback"]
    assert bank.post(path, body).json()["type"].endswith("second-key")


def test_another_request_or_an_old_one_confirms_nothing(bank):
    path, body = REQUESTS["kill"]
    bank.post(path, body)
    other = bank.post(path, body | {"constant": "accept"}, bank.second)
    assert other.json()["type"].endswith("second-key")
    bank.clock.now += 3601.0
    late = bank.post(path, body, bank.second)
    assert late.json()["type"].endswith("second-key")
    assert "p-k1" not in str([event.info for event in bank.ledger.events()])


def test_without_the_setting_one_key_is_enough(tmp_path):
    """The control."""
    bank = Bank(tmp_path / "ledger.sqlite")
    bank.post("/v1/decisions", application())
    assert bank.post("/v1/kill", {"product": "loan"}).status_code == 200
    assert proposals(bank) == []
    bank.close()
