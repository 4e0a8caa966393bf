"""Uniform slack: the formulas, their laws, and coverage of every hypothesis at once."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from evenhand.bounds import ClopperPearson, Dkw, JointHoeffding, SlackBound, people_needed
from evenhand.errors import InvalidInput
from evenhand.randomness import stream

BOUNDS = [JointHoeffding(), Dkw(), ClopperPearson()]


def slack(
    bound: SlackBound, counts: object, delta: float = 0.05, log_size: float = math.log(20)
) -> float:
    return bound.slack(counts, log_size=log_size, columns=2, delta=delta)


def test_joint_hoeffding_is_the_formula_of_the_design() -> None:
    expected = math.sqrt((1 / 300 + 1 / 500) * math.log(2 * 20 / 0.05) / 2)
    assert slack(JointHoeffding(), [300, 500]) == pytest.approx(expected, rel=1e-12)


def test_more_groups_and_rates_pay_the_union_and_the_worst_pair_decides() -> None:
    counts = [[300, 500, 90], [200, 400, 70]]
    expected = math.sqrt((1 / 200 + 1 / 70) * math.log(2 * 20 * 3 * 2 / 0.05) / 2)
    assert slack(JointHoeffding(), counts) == pytest.approx(expected, rel=1e-12)


def test_dkw_is_the_sum_of_two_massart_bounds() -> None:
    log_term = math.log(2 * 2 * 2 / 0.05)
    expected = math.sqrt(log_term / 600) + math.sqrt(log_term / 1000)
    assert slack(Dkw(), [300, 500]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 63, 64, 65, 500])
def test_the_widest_clopper_pearson_error_is_the_maximum_over_all_counts(n: int) -> None:
    tail = 0.05 / (2 * 2 * 20)
    k = np.arange(n)
    exhaustive = float((beta.isf(tail, k + 1, n - k) - k / n).max())
    assert slack(ClopperPearson(), [n, n]) == pytest.approx(2 * exhaustive, rel=1e-9)


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda b: b.name)
def test_slack_falls_with_counts_and_is_infinite_without_people(bound: SlackBound) -> None:
    values = [slack(bound, [n, 2 * n]) for n in (10, 100, 1000)]
    assert values == sorted(values, reverse=True)
    assert slack(bound, [0, 50]) == math.inf
    assert isinstance(bound, SlackBound)


@pytest.mark.parametrize("bound", [JointHoeffding(), ClopperPearson()], ids=lambda b: b.name)
def test_an_infinite_class_is_refused_with_a_way_out(bound: SlackBound) -> None:
    with pytest.raises(InvalidInput, match="Dkw"):
        slack(bound, [10, 10], log_size=math.inf)


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda b: b.name)
def test_bad_input_is_refused(bound: SlackBound) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        slack(bound, [10, 10], delta=0.0)
    with pytest.raises(InvalidInput, match="groups"):
        slack(bound, [10])
    with pytest.raises(InvalidInput):
        slack(bound, [10, -1])


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda b: b.name)
def test_people_needed_is_the_smallest_multiple(bound: SlackBound) -> None:
    settings = dict(log_size=3.0, columns=2, delta=0.05)
    short = people_needed(lambda counts: bound.slack(counts, **settings), [[120, 40]], 0.08)
    assert bound.slack(short.counts, log_size=3.0, columns=2, delta=0.05) <= 0.08
    fewer = np.floor(short.counts * 0.99)
    assert bound.slack(fewer, log_size=3.0, columns=2, delta=0.05) > 0.08
    assert short.more == pytest.approx(short.counts - [[120, 40]])


def test_people_needed_knows_when_nothing_is_needed_and_when_nothing_helps() -> None:
    def hoeffding(counts):
        return JointHoeffding().slack(counts, log_size=1.0, columns=1, delta=0.05)

    assert people_needed(hoeffding, [[10_000, 10_000]], 0.5).multiple == 1.0
    assert people_needed(hoeffding, [[0, 10]], 0.5).multiple == math.inf
    assert people_needed(hoeffding, [[10, 10]], 0.0).more.min() == math.inf


def test_hoeffding_and_clopper_pearson_cover_exactly_by_enumeration() -> None:
    """Every pair of counts of two binomials; the defect this would catch: any miscoverage at all
    beyond delta.
    """
    n, m, delta = 17, 30, 0.1
    for bound in (JointHoeffding(), ClopperPearson()):
        beta_ = slack(bound, [n, m], delta, log_size=0.0)
        for p in (0.02, 0.3, 0.5, 0.9):
            for q in (0.02, 0.3, 0.5, 0.9):
                error = np.abs(np.arange(n + 1)[:, None] / n - np.arange(m + 1) / m - (p - q))
                mass = binom.pmf(np.arange(n + 1), n, p)[:, None] * binom.pmf(
                    np.arange(m + 1), m, q
                )
                assert mass[error > beta_].sum() <= delta


def test_dkw_covers_all_thresholds_at_once() -> None:
    """2,000 samples; misses <= 139 has false alarm < 1e-4 at a true rate of .05; catches a true
    rate of .09 almost surely.
    """
    generator = stream(3, "dkw")
    n, m, misses = 60, 40, 0
    bound = Dkw().slack([n, m], log_size=math.inf, columns=1, delta=0.05)
    for _ in range(2000):
        first, second = generator.random(n), generator.random(m)
        cuts = np.concatenate([first, second])
        gap_hat = (first[:, None] <= cuts).mean(0) - (second[:, None] <= cuts).mean(0)
        misses += bool(np.abs(gap_hat).max() > bound)
    assert misses <= 139


def test_a_slack_off_by_sqrt_two_is_caught() -> None:
    """Negative control for the enumeration above."""
    n, delta = 40, 0.05
    short = JointHoeffding().slack([n, n], log_size=0.0, columns=1, delta=delta) / math.sqrt(2)
    error = np.abs(np.arange(n + 1)[:, None] - np.arange(n + 1)) / n
    mass = binom.pmf(np.arange(n + 1), n, 0.5)[:, None] * binom.pmf(np.arange(n + 1), n, 0.5)
    assert mass[error > short].sum() > delta
