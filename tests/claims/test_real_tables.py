"""The certified learner on real tables: no violation under any rate, and what that costs.

Population = the table, rows drawn with replacement, so truth is exact; group-blind, linear rules
with a tuned cut-off, limit and delta .05. Regret is to the best fair linear policy that the fair
oracle finds on the whole table (the class is not enumerable, so a better one may exist, and a
regret below 0 says that the learner found it). One run of 3e5 rounds gives both horizons. False
positive rate: 40 seeds, and regret has targets; 0 violations: a violation rate above .11 would have
shown with probability .99. False negative rate, selection rate, and false positive and false
negative rate together: 20 seeds; a rate above .21 would have shown with probability .99. Their
regret is shown and has no target: on Adult the learner loses to the best constant where positives
count (docs/guarantee/claims.md says why). Quick tier: two seeds on the small tables; the same check
fails for a rival that certifies nothing. `make claims-tables` runs the rest.
"""

from functools import lru_cache

import numpy as np
import pytest
from joblib import Parallel, delayed

from evenhand import (
    CertifiedLearner,
    FalseNegativeRate,
    FalsePositiveRate,
    Linear,
    Prices,
    SelectionRate,
    simulate,
)
from evenhand.environments import Replay
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import FairOnGathered
from evenhand.policies import Mixture
from evenhand.tables import DataUnavailable, read_table

LIMIT, DELTA, SEEDS, ROUNDS = 0.05, 0.05, 40, 300_000
SEEDS_SHOWN = 20
"""Seeds of the rates whose regret is shown and has no target."""
RATES = {
    "FPR": (FalsePositiveRate(),),
    "FNR": (FalseNegativeRate(),),
    "selection rate": (SelectionRate(),),
    "FPR and FNR": (FalsePositiveRate(), FalseNegativeRate()),
}
TARGETS = {
    "adult": (0.55, 0.40),
    "compas": (0.50, 0.40),
    "taiwan": (0.50, 0.35),
    "gmsc": (0.70, 0.55),
}
"""Mean regret over the best constant's at T = 1e5 and 3e5."""
TARGETS_OF_RATES = {("adult", "FNR"): (1.0, 0.88), ("compas", "FNR"): (0.30, 0.22)}
"""The same for another rate than FPR."""
PRICED = {"taiwan": 3.0, "gmsc": 10.0}
"""What a false accept costs; then below .75 at T = 3e5."""


@lru_cache(maxsize=2)
def population(name):
    return Replay.of_table(read_table(name).encoded(), Linear())


@lru_cache(maxsize=8)
def best_constant(name, price):
    constants = (Mixture((constant,), (1.0,)) for constant in (ACCEPT_ALL, REJECT_ALL))
    return min(population(name).loss(constant, Prices(price, 1.0)) for constant in constants)


def life(name, seed, rounds, price=1.0, rates="FPR"):
    """(regret / best constant's at a third of the rounds, at their end, worst true gap, whether it
    was ever suspended).
    """
    world, prices = population(name), Prices(price, 1.0)
    learner = CertifiedLearner(Linear(), RATES[rates], LIMIT, DELTA, horizon=rounds, prices=prices)
    run = simulate(learner, world, rounds, seed, LIMIT)
    worth = best_constant(name, price) - run.optimum
    ratios = [run.regret_at(t) / (t * worth) for t in (rounds / 3, rounds)]
    return (*ratios, run.worst_gap, run.learner.state.run > 1)


def available(name):
    try:
        return population(name)
    except DataUnavailable as error:
        pytest.skip(f"the table {name} cannot be had: {error}")


@pytest.mark.parametrize(("name", "rounds"), [("compas", 20_000), ("taiwan", 10_000)])
def test_two_runs_keep_the_limit_and_do_not_lose_to_the_constant(name, rounds):
    """Two seeds; at these few rounds the regret is close to the constant's and may exceed it by
    what auditing costs.
    """
    available(name)
    for seed in (0, 1):
        _, ratio, worst, suspended = life(name, seed, rounds)
        assert worst <= LIMIT
        assert ratio <= 1.02
        assert not suspended


@pytest.mark.parametrize("rates", [name for name in RATES if name != "FPR"])
def test_a_run_keeps_the_limit_under_every_rate(rates):
    available("compas")
    _, ratio, worst, suspended = life("compas", 0, 20_000, rates=rates)
    assert worst <= LIMIT
    assert np.isfinite(ratio)
    assert not suspended


@pytest.mark.parametrize("rates", RATES)
def test_the_check_fails_for_a_rival_that_certifies_nothing(rates):
    world = available("compas")
    run = simulate(FairOnGathered(Linear(), RATES[rates], LIMIT), world, 5_000, 0, LIMIT)
    assert run.worst_gap > 2 * LIMIT
    assert run.share_above(LIMIT) > 0.5


def all_lives(name, workers, *, seeds=SEEDS, rounds=ROUNDS, price=1.0, rates="FPR"):
    available(name)
    found = Parallel(n_jobs=workers)(
        delayed(life)(name, seed, rounds, price, rates) for seed in range(seeds)
    )
    return np.array(found, dtype=float)


@pytest.mark.claims_tables
@pytest.mark.parametrize("rates", [name for name in RATES if name != "FPR"])
@pytest.mark.parametrize("name", TARGETS)
def test_full_rates(claims, workers, name, rates):
    """Where no target is named the regret is shown as it is, also where the best constant has
    less.
    """
    found = all_lives(name, workers, seeds=SEEDS_SHOWN, rates=rates)
    early, late, worst, suspended = found.T
    violated = int((worst > LIMIT + 1e-9).sum())
    claims.add(
        f"real tables, {name}, {rates}: runs with any violation, {SEEDS_SHOWN} seeds, T=3e5",
        "0",
        f"{violated} (worst true gap {worst.max():.4f}, suspended {int(suspended.sum())})",
        violated == 0,
        raw=worst.tolist(),
    )
    targets = TARGETS_OF_RATES.get((name, rates), (None, None))
    for horizon, ratio, target in (("1e5", early, targets[0]), ("3e5", late, targets[1])):
        claims.add(
            f"real tables, {name}, {rates}: regret over the best constant's, T={horizon}",
            "shown as it is" if target is None else f"<= {target}",
            f"{ratio.mean():.3f} +- {ratio.std(ddof=1) / np.sqrt(SEEDS_SHOWN):.3f} "
            f"(worst seed {ratio.max():.2f})",
            np.isfinite(ratio).all() and (target is None or ratio.mean() <= target),
            raw=ratio.tolist(),
        )
    assert violated == 0
    assert np.isfinite(found).all()


@pytest.mark.claims_tables
@pytest.mark.parametrize("name", TARGETS)
def test_full_tables(claims, workers, name):
    found, (early, late) = all_lives(name, workers), TARGETS[name]
    violated, worst = int((found[:, 2] > LIMIT + 1e-9).sum()), found[:, 2].max()
    claims.add(
        f"real tables, {name}: runs with any violation, {SEEDS} seeds, T=3e5",
        "0",
        f"{violated} (worst true gap {worst:.4f})",
        violated == 0,
        raw=found[:, 2].tolist(),
    )
    for column, horizon, target in ((0, "1e5", early), (1, "3e5", late)):
        ratio, error = found[:, column].mean(), found[:, column].std(ddof=1) / np.sqrt(SEEDS)
        claims.add(
            f"real tables, {name}: regret over the best constant's, T={horizon}",
            f"<= {target}; never above 1",
            f"{ratio:.3f} +- {error:.3f} (worst seed {found[:, column].max():.2f})",
            ratio <= target and found[:, column].max() <= 1,
            raw=found[:, column].tolist(),
        )
    assert violated == 0
    assert found[:, :2].max() <= 1
    assert found[:, 0].mean() <= early
    assert found[:, 1].mean() <= late


@pytest.mark.claims_tables
@pytest.mark.parametrize(("name", "price"), PRICED.items())
def test_full_prices(claims, workers, name, price):
    found = all_lives(name, workers, price=price)
    violated = int((found[:, 2] > LIMIT + 1e-9).sum())
    claims.add(
        f"real tables, {name}, a false accept costs {price:g}: "
        "regret over the best constant's, T=3e5",
        "< 0.75, 0 violations",
        f"{found[:, 1].mean():.3f} (worst seed {found[:, 1].max():.2f}; {violated} violations, "
        f"worst gap {found[:, 2].max():.4f})",
        found[:, 1].mean() < 0.75 and violated == 0,
        raw=found[:, 1].tolist(),
    )
    assert violated == 0
    assert found[:, 1].mean() < 0.75


@pytest.mark.claims_tables
def test_full_rivals(claims):
    """Side by side on COMPAS: what the others' worst round looks like."""
    from bench.rivals import ExploreExploit, SemiLogistic
    from evenhand.learners import Unconstrained

    world, rate = available("compas"), FalsePositiveRate()
    rivals = {
        "fair-on-gathered": FairOnGathered(Linear(), rate, LIMIT),
        "unconstrained": Unconstrained(Linear(), rate),
        "semi-logistic": SemiLogistic(rate, LIMIT),
        "explore-exploit": ExploreExploit(rate, LIMIT),
    }
    for name, learner in rivals.items():
        run = simulate(learner, world, 100_000, 0, LIMIT)
        shown = f"worst true gap {run.worst_gap:.3f}, {run.share_above(LIMIT):.0%} of rounds above"
        claims.add(f"real tables, compas: {name}, uncertified", "shown side by side", shown, True)
        assert run.worst_gap > LIMIT
