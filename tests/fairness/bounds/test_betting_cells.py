"""Counting rows together changes nothing: the sums are those of the row-by-row pass."""

from dataclasses import replace

import numpy as np
import pytest
from tests.fairness.bounds.betting_worlds import FNR, FPR, SR, random_plan, random_world

from evenhand.fairness.bounds import betting
from evenhand.fairness.bounds.betting import BettingBound
from evenhand.fairness.bounds.betting_cells import cells_of
from evenhand.fairness.bounds.betting_records import Cohort


def crowd(seed, rows=6000, probabilities=(0.02, 0.3, 0.7, 1.0), steps=16):
    """Many people, few values of p and m, all four outcomes, some people outside."""
    r = np.random.default_rng(seed)
    kind = r.integers(0, 4, rows)
    acceptance = r.choice(probabilities, rows)
    kind = np.where((acceptance == 1) & (kind == 0), 1, kind)
    counts = {
        name: (kind == i) * r.integers(1, 3, rows)
        for i, name in enumerate(("rejected", "positive", "negative", "unresolved"))
    }
    m = np.round(r.random(rows) * steps) / steps
    return Cohort.of(r.random((3, rows)) < 0.5, r.integers(-1, 3, rows), acceptance=acceptance, regression=m, **counts)


@pytest.mark.parametrize(
    "rates", [(FPR,), (FNR, FPR), (SR,)], ids=lambda rates: "+".join(rate.symbol for rate in rates)
)
@pytest.mark.parametrize("seed", range(3))
def test_the_sums_are_the_same(seed, rates, monkeypatch):
    world = random_world(seed, 3, hypotheses=3)
    bound = BettingBound(world.groups, rates, 3, 0.05, horizons=(30.0, 3000.0))
    plan = random_plan(bound, world.truth(bound.rates), np.random.default_rng(seed))
    cohort = crowd(seed)
    together = bound._added(bound.start(), cohort, plan)
    monkeypatch.setattr(betting, "cells_of", lambda *columns: None)
    apart = bound._added(bound.start(), cohort, plan)
    for name, value in together.to_arrays().items():
        np.testing.assert_allclose(value, apart.to_arrays()[name], rtol=1e-9, atol=1e-9, err_msg=name)


def columns(cohort):
    outcomes = np.stack([cohort.rejected, cohort.negative, cohort.positive, cohort.unresolved])
    return cohort.group, 1 / cohort.acceptance, cohort.regression, outcomes


def test_cells_hold_every_round_inside():
    cohort = crowd(1)
    cells = cells_of(*columns(cohort))
    assert cells is not None
    inside = cohort.group >= 0
    np.testing.assert_allclose(cells.total.sum(axis=1), columns(cohort)[3][:, inside].sum(axis=1))
    everybody, nobody = cells.taken(np.array([np.ones(len(cohort), bool), np.zeros(len(cohort), bool)]))
    assert (everybody == cells.total).all()
    assert not nobody.any()


def test_few_or_different_rows_are_not_counted_together():
    assert cells_of(*columns(crowd(0, rows=500))) is None
    wild = crowd(0)
    different = replace(wild, regression=np.random.default_rng(0).random(len(wild)))
    assert cells_of(*columns(different)) is None
    assert cells_of(*columns(crowd(0, rows=2500, steps=240))) is None
