"""Labels that come after their window, and closings that come sooner or later: what a label was for
the drift tests is settled at the end of the person's own window, so a fixed population with fixed
delays raises no alarm however the operator times the closings."""

import heapq

import numpy as np
import pytest
from service.tests.bank import DAY
from service.tests.shop import Shop

from evenhand_service import Product
from evenhand_service.ledger import Ledger
from evenhand_service.trainer import Trainer

LOAN = Product(
    "loan",
    ("score",),
    hypotheses="thresholds",
    limit=0.3,
    maturity_days=5,
    groups=("north", "south"),
)


def late(shop, mean, lags):
    """People come day by day; each label takes an exponential time of `mean` days; epochs close so
    many days after the last of their people came. Whether a run was ended by an alarm."""
    coming, number = [], 0

    def pass_days(days):
        for _ in range(round(days * 4)):
            shop.clock.now += DAY / 4
            due = []
            while coming and coming[0][0] <= shop.clock.now:
                due.append(heapq.heappop(coming)[2])
            shop.repay(due)

    for lag in lags:
        for _ in range(10):
            for key in shop.arrive(50, days=0.0):
                heapq.heappush(
                    coming, (shop.clock.now + mean * DAY * shop.chosen.exponential(), number, key)
                )
                number += 1
            pass_days(0.5)
        pass_days(lag)
        shop.close()
    kinds = [note["kind"] for policy in shop.lineage for note in policy.info["notes"]]
    return "suspended" in kinds


LAGS = (5, 5, 5, 5, 30, 40, 5, 40)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_false_alarm_however_the_closings_are_timed(tmp_path, seed):
    """Each run raises a false alarm with probability at most 1e-3; two of them, seeded."""
    shop = Shop(tmp_path / "ledger.sqlite", LOAN, seed=seed)
    assert not late(shop, 15.0, LAGS)
    watched = {stream["stream"]: stream["people"] for stream in shop.lineage[-1].info["drift"]}
    assert watched["labels of north"] > 500
    shop.shut()


def test_with_labels_as_known_at_the_closing_the_same_life_is_suspended(tmp_path, monkeypatch):
    """The negative control: a category that depends on when the epoch closes."""
    import dataclasses

    history = Ledger.history

    def at_the_closing(self, *names, **options):
        return (
            dataclasses.replace(row, settled=row.label) for row in history(self, *names, **options)
        )

    monkeypatch.setattr(Ledger, "history", at_the_closing)
    shop = Shop(tmp_path / "ledger.sqlite", LOAN, seed=1)
    assert late(shop, 15.0, LAGS)
    shop.shut()


def test_delays_that_change_are_an_alarm_by_design(tmp_path):
    shop = Shop(tmp_path / "ledger.sqlite", LOAN, seed=1)
    late(shop, 1.0, (5, 5, 5, 5))
    assert late(shop, 30.0, (5, 5, 5, 5))
    assert np.isfinite(shop.trainer.learner.certificate.spent)
    # what an auditor asks: when was it suspended? Each later certificate on record says so, also
    # after a restart.
    issued = [row.document for row in shop.ledger.certificates("loan")]
    [found] = issued[-1]["suspensions"]
    assert found["round"] > 0
    assert found["reasons"]
    assert issued[0]["suspensions"] == []
    restarted = Trainer(shop.ledger, shop.product, "after a restart")
    restarted.catch_up()
    assert restarted.learner.certificate.suspensions == shop.trainer.learner.certificate.suspensions
    assert restarted.learner.certificate.since == found["round"]
    shop.shut()
