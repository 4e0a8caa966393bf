"""Section 3 to the letter: T0, beta and mu_t with the paper's constants, two-sided weights, the
saddle-point oracle with nu = 1/T, a new Q in every round, the group classifiers in H, delta =
1/sqrt(T) (`TwoPhaseLearner.as_printed`).

A new Q in every round takes one descent a round, and the saddle point of the order T^2 calls, so it
is played up to T = 2,000 with the saddle point and up to 20,000 with the exact oracle, each beside
epochs that double. Larger T are played with the exact oracle and epochs that double, and say so.

With the literal mu_t every round up to T = 1e5 is a coin (`test_literal_constants`), so that Q does
not matter. What the epochs and the oracle do is therefore also measured with mu_t = .1/sqrt(t),
everything else as printed.

"In the set" is as in `test_bandit_regret`; the set has the group classifiers. O(.) never claimed a
constant: where gamma + 2 beta is checked, it is with the constant 1 that the learner takes.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.claims.measure import (
    GAMMA,
    column,
    lifetimes,
    mean,
    population,
    slope,
    slope_error,
)

from evenhand import theory
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture

ALPHAS = (1 / 4, 1 / 3, 1 / 2)
EXACT = {"method": "column-generation"}
DOUBLING = {"epochs": "doubling"}
PRACTICAL = {"schedule": "practical"}


def printed(name, horizon, seeds, workers=1, **changed):
    return lifetimes(seeds, "as printed", name, horizon, workers=workers, **changed)


def beside(name, horizon, seeds, workers=1, **changed):
    """(a new Q in every round, epochs that double), the same people's seeds."""
    every = printed(name, horizon, seeds, workers, **changed)
    return every, printed(name, horizon, seeds, workers, **{**changed, **DOUBLING})


def above(runs):
    """How many runs deployed a policy with a true gap above gamma + 2 beta."""
    return int((column(runs, "worst_gap") > GAMMA + 2 * column(runs, "beta") + 1e-9).sum())


def same(first, second):
    """Whether two lists of runs have the same regret and the same gaps, but for rounding."""
    return all(
        np.allclose(column(first, what), column(second, what), rtol=1e-9, atol=1e-9)
        for what in ("regret", "worst_gap")
    )


def coins(runs, name):
    """The regret after the exploration, over that of a fair coin."""
    world = population(name)
    best = world.optimum(GAMMA)[0]
    coin = world.loss(Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5))) - best
    accept = world.loss(Mixture((ACCEPT_ALL,), (1.0,))) - best
    later = column(runs, "regret") - column(runs, "exploration") * accept
    return later / (column(runs, "bandit_rounds") * coin)


def side_by_side(every, doubling):
    return (
        f"regret {mean(every, 'regret'):.0f} | {mean(doubling, 'regret'):.0f}, "
        f"gap {column(every, 'worst_gap').max():.3f} | {column(doubling, 'worst_gap').max():.3f}, "
        f"calls {mean(every, 'oracle_calls'):,.0f} | {mean(doubling, 'oracle_calls'):,.0f}"
    )


# every round beside epochs that double


def test_with_the_literal_constants_the_epochs_do_not_matter():
    """Deterministic but for the people: no false alarms. Negative control: with practical constants
    Q matters, and two ways of planning it are two runs.
    """
    every, doubling = beside("D1", 300, range(1), **EXACT)
    assert same(every, doubling)
    assert coins(every, "D1") == pytest.approx(1, abs=1e-9)
    assert mean(every, "oracle_calls") > 20 * mean(doubling, "oracle_calls")
    every, doubling = beside("D1", 300, range(1), **EXACT, **PRACTICAL)
    assert not same(every, doubling)
    assert coins(every, "D1")[0] < 0.8


def test_the_check_of_gaps_sees_a_policy_outside():
    """T = 1e7, one run: within gamma + 2 beta. Negative control: the gaps of a bandit without a
    limit, held against the same beta.
    """
    (run,) = printed("lending", 10**7, range(1), **EXACT, **DOUBLING, **PRACTICAL)
    assert above([run]) == 0
    (free,) = lifetimes(range(1), "unconstrained", "lending", 20_000)
    assert above([replace(run, worst_gap=free.worst_gap)]) == 1


@pytest.mark.claims
def test_full_saddle_point(claims, workers):
    """lending, T = 500 (3 seeds), 1,000 (2) and 2,000 (1), all as printed; and T = 500 with
    practical constants, where Q matters, with the exact oracle beside it (answers within 4 nu = 4/T
    of each other lead to other coins, so the regrets of one seed differ). Seeds are few, because a
    round in which the limit binds takes up to 100,000 calls: seed 2 takes 3 million at T = 1,000,
    and 1% of its games do not converge.
    """
    shown = []
    coin = True
    for horizon, seeds in ((500, 3), (1_000, 2), (2_000, 1)):
        every, doubling = beside("lending", horizon, range(seeds), workers)
        shown.append(f"T={horizon:,}: {side_by_side(every, doubling)}")
        coin = coin and same(every, doubling)
        coin = coin and np.abs(coins(every, "lending") - 1).max() <= 1e-9
    claims.add(
        "as printed, saddle point with nu = 1/T, every round | doubling epochs, lending, 3, 2 and "
        "1 seeds",
        "the same coin in every round: regret and gap equal",
        "; ".join(shown),
        coin,
    )
    learned, doubling = beside("lending", 500, range(1), **PRACTICAL)
    exact = printed("lending", 500, range(1), **EXACT, **PRACTICAL)
    converged = all(run.halted for run in learned)
    claims.add(
        "the same with mu_t = .1/sqrt(t), T = 500, 1 seed: saddle point, every round | doubling",
        "every game converges, so every answer is within 4/T; no gap above gamma + 2 beta",
        f"{side_by_side(learned, doubling)}; exact oracle, every round: regret "
        f"{mean(exact, 'regret'):.0f}, calls {mean(exact, 'oracle_calls'):,.0f}",
        converged and above(learned) == 0,
    )
    assert coin
    assert not np.abs(coins(learned, "lending") - 1).max() <= 0.05  # the control: no coin
    assert converged
    assert above([*learned, *doubling]) == 0


@pytest.mark.claims
def test_full_exact_oracle(claims, workers):
    """All as printed but for the exact oracle: T = 20,000 on lending and D1; with practical
    constants T = 2,000 (8 seeds) and 20,000 (1 seed) on lending. Doubling epochs plan less often
    and explore 1.2 times as much; the ratio of the mean regrets at T = 2,000 has a standard error
    of 14%, so a factor of 3 is caught.
    """
    shown = []
    coin = True
    for name in ("lending", "D1"):
        every, doubling = beside(name, 20_000, range(1), **EXACT)
        shown.append(f"{name}: {side_by_side(every, doubling)}")
        coin = coin and same(every, doubling)
        coin = coin and np.abs(coins(every, name) - 1).max() <= 1e-9
    claims.add(
        "as printed with the exact oracle, every round | doubling epochs, T = 20,000",
        "the same coin in every round: regret and gap equal",
        "; ".join(shown),
        coin,
    )
    few = beside("lending", 2_000, range(8), workers, **EXACT, **PRACTICAL)
    long = beside("lending", 20_000, range(1), **EXACT, **PRACTICAL)
    ratio = mean(few[1], "bandit_regret") / mean(few[0], "bandit_regret")
    outside = above([*few[0], *few[1], *long[0], *long[1]])
    claims.add(
        "the same with mu_t = .1/sqrt(t): T = 2,000 (8 seeds) and 20,000 (1 seed), lending",
        "regret in the set within a factor 3 of each other; no gap above gamma + 2 beta",
        f"T=2,000: {side_by_side(*few)}, in the set {mean(few[0], 'bandit_regret'):.0f} | "
        f"{mean(few[1], 'bandit_regret'):.0f} (ratio {ratio:.2f}); T=20,000: "
        f"{side_by_side(*long)}; {outside} above",
        1 / 3 <= ratio <= 3 and outside == 0,
    )
    assert coin
    assert 1 / 3 <= ratio <= 3
    assert outside == 0


# larger T: the exact oracle, and epochs that double

LARGE = (100_000, 1_000_000, 10_000_000, 100_000_000)


@pytest.mark.claims
@pytest.mark.parametrize("alpha", ALPHAS)
def test_full_larger_horizons(claims, workers, alpha):
    """T = 1e5 to 1e8, 10 seeds, doubling epochs and the exact oracle; beside it the learner for use
    (one-sided, beta of the counts, mu_t = .1/sqrt(t)) with the same alpha and delta. beta has a
    logarithm of T in it, delta = 1/sqrt(T): its own slope is predicted, not -alpha. Standard errors
    of the slopes of gaps are below .02. The control: the slopes of the other two alphas.
    """
    runs = [
        printed("lending", T, range(10), workers, **EXACT, **DOUBLING, tradeoff_exponent=alpha)
        for T in LARGE
    ]
    use = {"limit": None, "tradeoff_exponent": alpha}
    ours = [
        lifetimes(range(10), "two-phase", "lending", T, workers=workers, delta=T**-0.5, **use)
        for T in LARGE
    ]
    log_size = population("lending").hypotheses.log_size
    slacks = {
        other: [theory.paper_slack(T, log_size, T**-0.5, other) for T in LARGE] for other in ALPHAS
    }
    predicted = {other: slope(LARGE, values) for other, values in slacks.items()}
    gaps = [column(of_one, "set_gap") - GAMMA for of_one in runs]
    fitted = slope(LARGE, [gap.mean() for gap in gaps])
    regret = slope(LARGE, [mean(of_one, "regret") for of_one in runs])
    of_ours = slope(
        LARGE, [mean(of_one, "exploration") + mean(of_one, "bandit_regret") for of_one in ours]
    )
    holds = abs(fitted - predicted[alpha]) <= 0.06
    outside = sum(above(of_one) for of_one in runs)

    def each(found, what, form):
        return ", ".join(format(mean(of_one, what), form) for of_one in found)

    claims.add(
        f"as printed, exact oracle, doubling epochs, alpha = {alpha:.3f}, lending, T=1e5 to 1e8: "
        "worst gap in the set minus gamma, regret, oracle calls, beside the learner for use",
        f"slope of the gap {predicted[alpha]:.3f} (beta's) +- .06; none above gamma + 2 beta",
        f"gap {fitted:.3f} +- {slope_error(LARGE, gaps):.3f} "
        f"({', '.join(f'{gap.mean():.4f}' for gap in gaps)}), {outside} above; regret "
        f"{each(runs, 'regret', ',.0f')} (slope {regret:.2f}: the constants), calls "
        f"{each(runs, 'oracle_calls', '.0f')}. For use: T0 + regret in the set slope "
        f"{of_ours:.2f}, regret {each(ours, 'regret', ',.0f')}, calls "
        f"{each(ours, 'oracle_calls', '.0f')}",
        holds and outside == 0,
    )
    assert holds
    assert outside == 0
    for other in ALPHAS:
        assert other == alpha or abs(fitted - predicted[other]) > 0.06


@pytest.mark.claims
def test_full_what_the_constants_mean(claims, workers):
    """T = 1e5 to 1e8, lending, 5 seeds, the exact oracle, doubling epochs. A coin's share of
    rounds is `theory.uniform_rounds`; the control is the practical schedule, which is no coin.
    """
    log_size = population("lending").hypotheses.log_size
    shown = []
    shares = []
    for T in LARGE:
        delta = T**-0.5
        runs = printed("lending", T, range(5), workers, **EXACT, **DOUBLING)
        until = min(1.0, theory.uniform_rounds(T, log_size, delta) / T)
        shares.append(coins(runs, "lending").mean())
        shown.append(
            f"T={T:.0e}: T0 {mean(runs, 'exploration'):,.0f}, beta {mean(runs, 'beta'):.3f}, "
            f"a coin in {until:.0%} of rounds, mu_T "
            f"{theory.exploration_floor(T, T, log_size, delta):.3f}, regret {shares[-1]:.2f} of "
            "the coin's"
        )
    control = coins(
        printed("lending", LARGE[-1], range(5), workers, **EXACT, **DOUBLING, **PRACTICAL),
        "lending",
    ).mean()
    holds = abs(shares[0] - 1) <= 1e-9 and min(shares) >= 0.4
    claims.add(
        "what the constants of section 3.3 mean, T=1e5 to 1e8, lending",
        "regret after the exploration at least .4 of a coin's, all of it at T=1e5",
        f"{'; '.join(shown)} (mu_t = .1/sqrt(t) at T=1e8: {control:.2f})",
        holds,
    )
    assert holds
    assert not control >= 0.4


@pytest.mark.claims
def test_full_bound_where_it_says_something(claims, workers):
    """T = 1e13, 1e14, 1e15, lending, 5 seeds: theorem 3.1 with its own constants is below T there,
    and can be exceeded. The control is a coin, which exceeds it.
    """
    horizons = (10**13, 10**14, 10**15)
    log_size = population("lending").hypotheses.log_size
    paid = []
    bounds = []
    coin = []
    for T in horizons:
        runs = printed("lending", T, range(5), workers, **EXACT, **DOUBLING)
        paid.append(mean(runs, "exploration") + mean(runs, "bandit_regret"))
        bounds.append(theory.regret_bound(T, log_size, T**-0.5, mean(runs, "exploration")))
        coin.append(mean(lifetimes(range(1), "uniform", "lending", T), "regret"))
    shares = [cost / bound for cost, bound in zip(paid, bounds, strict=True)]
    holds = max(shares) <= 1 and max(b / T for b, T in zip(bounds, horizons, strict=True)) < 1
    claims.add(
        "as printed, exact oracle, doubling epochs: T0 + regret in the set over theorem 3.1 with "
        "its own constants, T=1e13, 1e14, 1e15",
        "<= 1, where the bound is below T",
        f"{', '.join(f'{share:.2f}' for share in shares)} (slope {slope(horizons, paid):.2f}; the "
        f"bound is {', '.join(f'{b / T:.2f} T' for b, T in zip(bounds, horizons, strict=True))}; a "
        f"coin: {', '.join(f'{c / b:.1f}' for c, b in zip(coin, bounds, strict=True))})",
        holds,
    )
    assert holds
    assert not coin[-1] <= bounds[-1]
