"""A class and a rate of another package in the service."""

from dataclasses import dataclass

import numpy as np
import pytest
from service.tests.shop import Shop
from tests.test_strangers import Cut, RejectedGood, TenCuts, TwoTowns

from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RATES
from evenhand.hypotheses import CLASSES
from evenhand.hypotheses.serialise import HYPOTHESES, policy_from_json
from evenhand.storage import storable
from evenhand_service import Product


@storable
@dataclass(frozen=True)
class StoredRejectedGood(RejectedGood):
    """What the service keeps is stored, so a stranger's rate is a registered dataclass there."""


class StoredCut(Cut):
    """A rule that says what it is as plain JSON, under a kind of its own."""

    def __eq__(self, other):
        return isinstance(other, StoredCut) and other.at == self.at

    def __hash__(self):
        return hash(self.at)

    def to_json(self):
        return {"kind": "stranger's cut", "at": self.at}


class TenStoredCuts(TenCuts):
    """The same ten cuts, which the ledger can keep."""

    members = tuple(StoredCut(at) for at in (*np.linspace(0.05, 0.95, 10), -1.0, 2.0))


def test_the_service_certifies_a_class_and_a_rate_of_another_package(tmp_path, monkeypatch):
    """People of a stranger's environment, a stranger's rate in the promise, and a stranger's class
    of rules, whose policies are stored, read again and continued by another process.
    """
    monkeypatch.setitem(RATES.own, "rejected-good", StoredRejectedGood())
    monkeypatch.setitem(CLASSES.own, "ten-stored-cuts", TenStoredCuts)
    monkeypatch.setitem(HYPOTHESES.own, "stranger's cut", lambda data: StoredCut(data["at"]))
    product = Product(
        "loan",
        ("score",),
        hypotheses="ten-stored-cuts",
        rates=("rejected-good",),
        limit=0.3,
    )

    def live(epochs, first):
        shop = Shop(tmp_path / "ledger.sqlite", product, people=TwoTowns(), first=first)
        try:
            for _ in range(epochs):
                shop.repay(shop.arrive(300))
                shop.close()
            return (
                shop.ledger.certificates("loan")[-1].document,
                shop.ledger.policies("loan")[-1].document,
            )
        finally:
            shop.shut()

    live(3, first=0)
    certificate, policy = live(3, first=900)
    assert certificate["status"] == "certified"
    assert [rate.symbol for rate in product.learner().rates] == ["RGR"]
    assert any(isinstance(rule, StoredCut) for rule in policy_from_json(policy).hypotheses)
    with pytest.raises(InvalidInput, match=r"'no such'.*ten-stored-cuts"):
        Product("loan", ("score",), hypotheses="no such")
