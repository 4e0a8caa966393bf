"""People whose keys and sealed fields somebody has exchanged in the database, on SQLite and on
PostgreSQL: nobody is served, explained, erased or learned from as somebody else.
"""

import pytest
from service.tests.bank import Bank, application
from service.tests.exchanged import exchange, got_through, learned

from evenhand_service.ledger import Damaged, export, verify

PEOPLE = 6


@pytest.fixture(params=["sqlite", "postgresql"])
def served(request, tmp_path):
    """(a bank with some people whose outcomes are known, where its ledger is)."""
    where = str(tmp_path / "ledger.sqlite")
    if request.param == "postgresql":
        where = request.getfixturevalue("postgres_url")
    bank = Bank(where)
    people = [application(f"k{i}", features=[0.5], group="north") for i in range(PEOPLE)]
    assert bank.post("/v1/decisions/batch", {"decisions": people}).status_code == 200
    yield bank, where
    bank.close()


@pytest.mark.parametrize(("keys", "sealed"), [(True, True), (True, False), (False, True)])
def test_nobody_is_taken_for_somebody_else(served, keys, sealed, tmp_path):
    bank, where = served
    assert exchange(where, keys=keys, sealed=sealed) == PEOPLE
    # whose key is their own may apply anew
    drawn = 0 if keys else PEOPLE
    assert got_through(bank, range(PEOPLE)) == {
        "served": 0, "replayed": 0, "drawn": drawn, "explained": 0, "reported": 0, "erased": 0,
    }  # fmt: skip
    assert learned(bank) == (503, 0)
    with pytest.raises(Damaged):
        list(bank.ledger.usable_groups("loan", 0, 10**9, 10**9))
    with pytest.raises(Damaged):
        export(bank.ledger, tmp_path / "export.jsonl")
    assert len(verify(bank.ledger, deep=True).problems) >= PEOPLE


def test_the_others_are_served_meanwhile(served):
    bank, where = served
    assert exchange(where, most=3) == 3
    assert got_through(bank, range(3)) == dict.fromkeys(got_through(bank, ()), 0)
    assert bank.get("/v1/decisions/k4").json()["key"] == "k4"
    assert bank.post("/v1/decisions", application("somebody new")).status_code == 200
    assert bank.post("/v1/erasures", {"person": "p-k5", "by": "officer"}).status_code == 200


def test_without_an_exchange_everything_passes(served):
    """The control."""
    bank, _ = served
    found = got_through(bank, range(2))
    assert found.pop("explained") == found.pop("served") == 2
    assert set(found.values()) == {2}
    assert learned(bank)[0] == 200
