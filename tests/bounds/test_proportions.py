"""Exact intervals by enumeration, against a brute-force supremum, and against Newcombe's widths.

`misses` is the independent check: it knows nothing of regions or cells, only of the ends that the
program answers and of binomial probabilities.
"""

import math

import numpy as np
import pytest
import scipy.stats

from evenhand.bounds import proportions
from evenhand.bounds.proportions import (
    difference_interval,
    proportion_interval,
    ratio_interval,
    restricted_difference,
    restricted_ratio,
    score,
)
from evenhand.errors import InvalidInput

ALPHA = 0.025


def wald(x1, n1, x2, n2, alpha):
    """The textbook interval of a difference: the control."""
    p1, p2 = x1 / n1, x2 / n2
    half = scipy.stats.norm.isf(alpha) * math.sqrt(p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2)
    return p1 - p2 - half, p1 - p2 + half


def newcombe(x1, n1, x2, n2, alpha):
    """Newcombe's interval from two of Wilson's: approximate, and known to be good."""
    z = scipy.stats.norm.isf(alpha)

    def wilson(x, n):
        centre = (x / n + z * z / 2 / n) / (1 + z * z / n)
        half = z * math.sqrt(x / n * (1 - x / n) / n + z * z / 4 / n / n) / (1 + z * z / n)
        return centre - half, centre + half

    (l1, u1), (l2, u2) = wilson(x1, n1), wilson(x2, n2)
    p1, p2 = x1 / n1, x2 / n2
    return (
        p1 - p2 - math.hypot(p1 - l1, u2 - p2),
        p1 - p2 + math.hypot(u1 - p1, p2 - l2),
    )


def largest_miss(n1, n2, alpha, line, points=201):
    """The largest probability, over all pairs of true shares, that the lower end lies above the
    truth, as a multiple of alpha: every table is asked for its end.

    The truth at which a set of tables {end >= e} misses may come as near to e as it likes, so each
    end that occurs is tried as the truth, with `points` values of the second share and both ends of
    the line.
    """
    ends = np.array(
        [
            [proportions._lower_end(x1, n1, x2, n2, alpha, line) for x2 in range(n2 + 1)]
            for x1 in range(n1 + 1)
        ]
    )
    worst = 0.0
    for truth in np.unique(ends[ends > (-1.0 if line == "difference" else 0.0)]):
        if line == "difference":
            p2 = np.linspace(max(0.0, -truth), min(1.0, 1.0 - truth), points)
            p1 = np.clip(p2 + truth, 0.0, 1.0)
        else:
            p2 = min(1.0, 1.0 / truth) * np.sin(np.linspace(0.0, math.pi / 2, points)) ** 2
            p1 = np.clip(p2 * truth, 0.0, 1.0)
        missing = (ends >= truth - 1e-12).astype(float)
        first = scipy.stats.binom.pmf(np.arange(n1 + 1), n1, p1[:, None])
        second = scipy.stats.binom.pmf(np.arange(n2 + 1), n2, p2[:, None])
        worst = max(worst, float(((first @ missing) * second).sum(axis=1).max()))
    return worst / alpha


LEVELS = (0.00125, 0.005, 0.0125, 0.025, 0.05)
UNEQUAL = [(1, 5), (1, 10), (2, 20), (3, 15), (3, 25), (4, 8)]
RANDOM = [tuple(sizes) for sizes in np.random.default_rng(35).integers(1, 31, (12, 2)).tolist()]


def misses(interval, n1, n2, shares, value_of):
    """The largest probability, over pairs of true shares, that an end lies beyond the truth."""
    ends = np.array(
        [[interval(x1, n1, x2, n2, ALPHA) for x2 in range(n2 + 1)] for x1 in range(n1 + 1)]
    )
    worst = 0.0
    for p1 in shares:
        for p2 in shares:
            chance = np.outer(
                scipy.stats.binom.pmf(range(n1 + 1), n1, p1),
                scipy.stats.binom.pmf(range(n2 + 1), n2, p2),
            )
            truth = value_of(p1, p2)
            worst = max(
                worst,
                float(chance[ends[:, :, 0] > truth + 1e-12].sum()),
                float(chance[ends[:, :, 1] < truth - 1e-12].sum()),
            )
    return worst


GRID = (0.001, 0.02, 0.1, 0.2, 0.35, 0.5, 0.63, 0.8, 0.9, 0.97, 0.999)


@pytest.mark.parametrize(("n1", "n2"), [(5, 5), (4, 9)])
def test_each_end_of_a_difference_misses_with_probability_at_most_alpha(n1, n2):
    assert misses(difference_interval, n1, n2, GRID, lambda p, q: p - q) <= ALPHA
    assert misses(wald, n1, n2, GRID, lambda p, q: p - q) > 2 * ALPHA


@pytest.mark.thorough
@pytest.mark.parametrize("line", ["difference", "ratio"])
@pytest.mark.parametrize(("n1", "n2"), [(1, 5), (10, 1), (4, 8)])
def test_no_end_misses_more_often_than_alpha_whatever_the_sizes(n1, n2, line):
    """Equal sizes hide what unequal ones show: the statistic of two groups without events."""
    for alpha in (0.005, 0.05, 0.5):
        assert largest_miss(n1, n2, alpha, line) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("line", ["difference", "ratio"])
@pytest.mark.parametrize(("n1", "n2"), UNEQUAL + [(b, a) for a, b in UNEQUAL] + RANDOM)
def test_no_end_misses_more_often_than_alpha_at_more_sizes(n1, n2, line):
    for alpha in LEVELS:
        assert largest_miss(n1, n2, alpha, line) <= 1.0


def largest_miss_of_rare_events(n1, n2, alpha, most_1, most_2):
    """The same where events are rare: tables with at most so many are asked for their ends; all
    others, which hardly occur, count as misses.
    """
    ends = np.array(
        [
            [
                proportions._lower_end(x1, n1, x2, n2, alpha, "difference")
                for x2 in range(most_2 + 1)
            ]
            for x1 in range(most_1 + 1)
        ]
    )
    first, second = (most / 3 / n for most, n in ((most_1, n1), (most_2, n2)))
    worst = 0.0
    for truth in np.unique(ends[(ends > -second) & (ends < first)]):
        p2 = np.linspace(max(0.0, -truth), min(second, first - truth), 201)
        mass_1 = scipy.stats.binom.pmf(np.arange(most_1 + 1), n1, p2[:, None] + truth)
        mass_2 = scipy.stats.binom.pmf(np.arange(most_2 + 1), n2, p2[:, None])
        covered = ((mass_1 @ (ends < truth - 1e-12)) * mass_2).sum(axis=1)
        worst = max(worst, float((1.0 - covered).max()))
    return worst / alpha


@pytest.mark.thorough
def test_no_end_misses_more_often_than_alpha_where_hundreds_have_few_events(monkeypatch):
    assert largest_miss_of_rare_events(100, 300, ALPHA, 9, 21) <= 1.0
    monkeypatch.setattr(proportions, "score", infinite_where_undetermined)
    proportions._lower_end.cache_clear()
    try:
        assert largest_miss_of_rare_events(100, 300, ALPHA, 9, 21) > 1.0
    finally:
        proportions._lower_end.cache_clear()


def infinite_where_undetermined(x1, n1, x2, n2, value, line, _score=score):
    """The mutant: two groups without events (or misses) reach every level at difference 0."""
    statistic = _score(x1, n1, x2, n2, value, line)
    share_1, share_2 = np.asarray(x1) / n1, np.asarray(x2) / n2
    undetermined = (share_1 == share_2) & np.isin(share_1, (0.0, 1.0)) & (np.asarray(value) == 0.0)
    return np.where(undetermined, np.inf, statistic)


@pytest.mark.thorough
def test_the_enumeration_sees_a_statistic_that_is_infinite_where_it_is_undetermined(monkeypatch):
    monkeypatch.setattr(proportions, "score", infinite_where_undetermined)
    proportions._lower_end.cache_clear()
    try:
        assert largest_miss(10, 1, 0.005, "difference") > 1.1
        assert largest_miss(4, 8, ALPHA, "difference") > 1.05
    finally:
        proportions._lower_end.cache_clear()


def test_tables_without_events_have_the_end_of_their_limit():
    """The end is a little below the approximate one, where T = sqrt(n_2 |d| / (1 - |d|)) is z."""
    for (n1, n2), end in {(4, 8): -0.3975, (5, 40): -0.1243}.items():
        assert difference_interval(0, n1, 0, n2, ALPHA).lower == pytest.approx(end, abs=2e-3)
        assert difference_interval(n2, n2, n1, n1, ALPHA).lower == pytest.approx(end, abs=2e-3)
        z = scipy.stats.norm.isf(ALPHA)
        limit = -(z**2) / (n2 + z**2)
        for events in (0, 1):
            table = (0, n1, 0, n2) if not events else (n2, n2, n1, n1)
            assert proportions._approximate_end(*table, z, "difference") == pytest.approx(limit)


def test_tables_that_tie_belong_together(monkeypatch):
    """4 of 5 against 0 of 5 and 5 of 5 against 1 of 5 have the same approximate end; regions that
    leave one of them out by rounding miss too often.
    """
    fine = difference_interval(4, 5, 0, 5, ALPHA).lower
    assert fine == pytest.approx(difference_interval(5, 5, 1, 5, ALPHA).lower, abs=1e-3)
    proportions._lower_end.cache_clear()
    monkeypatch.setattr(proportions, "TIE", -1e-8)
    assert misses(difference_interval, 5, 5, (0.35, 0.5), lambda p, q: p - q) > ALPHA
    proportions._lower_end.cache_clear()


@pytest.mark.parametrize(("n1", "n2"), [(5, 5), (8, 3)])
def test_each_end_of_a_ratio_misses_with_probability_at_most_alpha(n1, n2):
    assert misses(ratio_interval, n1, n2, GRID, lambda p, q: p / q) <= ALPHA


def test_a_share_is_clopper_and_pearsons():
    for events, people in [(0, 7), (3, 10), (10, 10), (200, 1000)]:
        found = proportion_interval(events, people, ALPHA)
        exact = scipy.stats.binomtest(events, people).proportion_ci(0.95, method="exact")
        assert found == pytest.approx((exact.low, exact.high), abs=1e-10)
    assert proportion_interval(0, 0, ALPHA) == (0.0, 1.0)


@pytest.mark.parametrize("line", ["difference", "ratio"])
@pytest.mark.parametrize("table", [(7, 12, 3, 15), (1, 20, 4, 6), (12, 12, 1, 9)])
def test_the_end_is_where_a_brute_force_supremum_reaches_alpha(table, line):
    """The region by loops over all tables, the supremum over 2,001 points of the line."""
    x1, n1, x2, n2 = table
    z = scipy.stats.norm.isf(ALPHA)
    end = proportions._lower_end(x1, n1, x2, n2, ALPHA, line)
    start = proportions._approximate_end(x1, n1, x2, n2, z, line)
    inside = np.zeros((n1 + 1, n2 + 1), dtype=bool)
    for i in range(n1 + 1):
        for j in range(n2 + 1):
            t = score(np.array([i * 1.0]), n1, np.array([j * 1.0]), n2, start, line)[0]
            if t >= z - 1e-9:
                inside[i:, : j + 1] = True  # the up-hull
    nuisance = proportion_interval(x2, n2, ALPHA / 100)

    def supremum(value):
        low, high = nuisance
        low = max(low, -value) if line == "difference" else low
        p2 = np.linspace(low, high, 2001)
        p1 = np.clip(p2 + value if line == "difference" else p2 * value, 0, 1)
        first = scipy.stats.binom.pmf(np.arange(n1 + 1)[:, None], n1, p1)
        second = scipy.stats.binom.pmf(np.arange(n2 + 1)[:, None], n2, p2)
        return float(np.einsum("ij,ik,jk->k", inside * 1.0, first, second).max())

    goal = ALPHA * 0.98
    assert supremum(end) <= goal * (1 + 1e-9)
    assert supremum(end) >= goal * 0.99


def test_the_statistic_falls_in_the_value():
    """The third monotonicity on which the nested regions rest, over all small tables; the other two
    are made by the hull.
    """
    for n1, n2 in [(6, 6), (3, 40), (25, 11)]:
        x1, x2 = (
            one.ravel().astype(float)
            for one in np.meshgrid(np.arange(n1 + 1), np.arange(n2 + 1), indexing="ij")
        )
        for line, values in (
            ("difference", np.linspace(-1, 1, 81)),
            ("ratio", np.geomspace(0.01, 100, 61)),
        ):
            t = np.array([score(x1, n1, x2, n2, value, line) for value in values])
            assert not np.isnan(t).any()
            assert (t[1:] <= t[:-1] + 1e-9).all()


def test_the_restricted_shares_are_the_most_likely():
    rng = np.random.default_rng(3)
    for _ in range(25):
        n1, n2 = (int(n) for n in rng.integers(1, 40, 2))
        x1, x2 = int(rng.integers(0, n1 + 1)), int(rng.integers(0, n2 + 1))
        shares = np.array([x1 / n1]), np.array([x2 / n2])
        for line, value in (("d", rng.uniform(-0.9, 0.9)), ("r", rng.uniform(0.2, 4.0))):
            grid = np.linspace(1e-9, 1 - 1e-9, 10_001)
            other = grid + value if line == "d" else grid * value
            likely = scipy.stats.binom.logpmf(x2, n2, grid)
            likely = np.where(
                (other > 0) & (other < 1),
                likely + scipy.stats.binom.logpmf(x1, n1, np.clip(other, 0, 1)),
                -np.inf,
            )
            found = restricted_difference if line == "d" else restricted_ratio
            p2 = found(shares[0], n1, shares[1], n2, value)[1][0]
            assert p2 == pytest.approx(grid[np.argmax(likely)], abs=2e-3)


@pytest.mark.parametrize(
    "table",
    [(25, 50, 20, 50), (3, 50, 1, 50), (56, 70, 48, 80), (50, 1000, 104, 1000), (9, 400, 3, 200)],
)
def test_an_interval_is_little_wider_than_newcombes(table):
    exact = difference_interval(*table, ALPHA)
    rough = newcombe(*table, ALPHA)
    assert (exact.upper - exact.lower) / (rough[1] - rough[0]) <= 1.07


def test_edges():
    assert difference_interval(0, 5, 5, 5, ALPHA).lower == -1.0
    assert difference_interval(0, 0, 5, 5, ALPHA) == (-1.0, 1.0)
    assert ratio_interval(0, 5, 2, 5, ALPHA).lower == 0.0
    assert ratio_interval(2, 5, 0, 5, ALPHA).upper == math.inf
    assert ratio_interval(0, 0, 2, 5, ALPHA) == (0.0, math.inf)
    assert 1 < ratio_interval(2, 10, 0, 20, 0.5).lower < math.inf
    assert ratio_interval(0, 10, 0, 20, 0.5) == (0.0, math.inf)
    same = difference_interval(30, 90, 30, 90, ALPHA)
    assert same.lower == pytest.approx(-same.upper)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ((3, 2, 0, 5, 0.05), "3 of 2"),
        ((0, 2, -1, 5, 0.05), "-1 of 5"),
        ((1, 2, 1, 2, 0.7), "alpha"),
    ],
)
def test_what_is_no_count_raises_an_error(table, message):
    with pytest.raises(InvalidInput, match=message):
        difference_interval(*table)
    with pytest.raises(InvalidInput, match=message):
        ratio_interval(*table)
