"""Closed windows go into an archive, and nothing that anybody may still ask is lost."""

import pytest
from service.tests.bank import DAY, LOAN
from service.tests.shop import Shop

from evenhand_service.archiving import archive_closed
from evenhand_service.ledger import verify


@pytest.fixture
def shop(tmp_path):
    made = Shop(tmp_path / "ledger.sqlite", LOAN, seed=1)
    yield made
    made.shut()


def lived(shop, epochs=4):
    for epoch in range(epochs):
        new = shop.arrive(80 + 40 * epoch, told=0.9)
        shop.repay(new, 0.8)
        shop.name_groups(new[:20])
        shop.overrule(shop.chosen.choice(new, 5, replace=False).tolist())
        shop.clock.now += 10 * DAY
        shop.repay(new, 0.5)
        shop.erase(shop.chosen.choice(new, 4, replace=False).tolist())
        shop.close()
    return shop


def test_first(shop, tmp_path):
    lived(shop)
    before = shop.ledger.counts("loan")
    told = archive_closed(shop.ledger, [LOAN], shop.clock.now, tmp_path / "a", by="op")
    print(told)
    assert verify(shop.ledger, deep=True).problems == ()
    assert shop.ledger.counts("loan") == before
