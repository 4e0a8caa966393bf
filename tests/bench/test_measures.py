"""The parts of the bench whose mistakes would make a comparison unfair."""

import numpy as np
import pytest
from bench.data import generated
from bench.exactness import Hidden, highs
from bench.record import Record, geometric_mean, number
from bench.worst_case_hulls import hulls

from evenhand import FalsePositiveRate, Stumps
from evenhand.contracts import Enumeration
from evenhand.faircsc import bind_fair
from evenhand.fairness.rates import GapConstraints


def test_the_translated_bound_is_the_same_constraint():
    pytest.importorskip("fairlearn")
    from bench.fairlearn_side import difference_bound

    table = generated(rows=400, seed=3)
    acceptance = np.random.default_rng(0).random(400)
    negative = table.label == -1
    overall = acceptance[negative].mean()
    worst = max(
        abs(acceptance[negative & (table.group == g)].mean() - overall) for g in ("g0", "g1")
    )
    gap = abs(GapConstraints.on(FalsePositiveRate(), table.sample).gaps(acceptance)[0])
    assert worst == pytest.approx(difference_bound(table, gap), abs=1e-14)


def test_fairlearn_with_our_stump_is_never_below_our_optimum():
    pytest.importorskip("fairlearn")
    from bench import fairlearn_side

    table = generated(rows=300, columns=3, seed=1)
    fair = bind_fair(Stumps(), table.features, None, FalsePositiveRate(), table.sample, 0.02)
    model = fairlearn_side.solve(table, 0.02, fairlearn_side.ExactStump(fair.oracle))
    theirs = fairlearn_side.measure(model, table)
    problem = table.problem
    ours = fair.at(max(0.02, theirs.gap)).solve(problem.acceptance_cost, problem.rejection_total)
    assert ours.cost / len(table.label) <= theirs.error + 1e-9


def test_hidden_shows_no_enumeration_and_finds_the_same_optimum():
    table = generated(rows=500, columns=4, seed=2)
    problem = table.problem
    hidden, shown = (
        bind_fair(c, table.features, None, FalsePositiveRate(), table.sample, 0.02)
        for c in (Hidden(Stumps()), Stumps())
    )
    assert not isinstance(hidden.oracle, Enumeration)
    costs = [
        f.solve(problem.acceptance_cost, problem.rejection_total).cost for f in (hidden, shown)
    ]
    assert costs[0] == pytest.approx(costs[1], abs=1e-9)


@pytest.mark.parametrize("hull", hulls(2_000), ids=lambda hull: hull.name)
def test_hulls_are_convex_falling_and_start_at_the_constant(hull):
    slopes = np.diff(hull.costs) / np.diff(hull.gaps)
    assert hull.gaps[0] == hull.costs[0] == 0.0
    assert (np.diff(hull.gaps) > 0).all()
    assert (slopes <= 1e-9).all()
    assert (np.diff(slopes) >= -1e-9 * np.abs(slopes).max()).all()


@pytest.mark.parametrize("hull", hulls(2_000), ids=lambda hull: hull.name)
def test_the_walk_reaches_the_brute_force_optimum_of_a_hull(hull):
    walk = hull.walk(0.01, 40)
    cost = sum(w * column.cost for w, column in zip(walk.weights, walk.columns, strict=True))
    assert cost == pytest.approx(hull.optimum(0.01), abs=1e-12)
    assert cost == pytest.approx(highs(hull.costs, hull.gaps[None, :], 0.01), abs=1e-6)


def test_records_report_their_spread():
    record = Record("row", ">= 2 x", "3 x", True, (2.0, 3.0, 400.0))
    assert record.spread == "2 .. 400"
    assert record.as_json()["ratios"] == (2.0, 3.0, 400.0)
    assert Record("row", "", "", True).spread == ""


def test_means_and_numbers():
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert number(1234.5) == "1,234"
