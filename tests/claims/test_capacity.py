"""Launch with limited capacity: every policy keeps the cap beside the gap, and learns faster than
thinning.

*Thinning* is what one could do before: with probability kappa a person is handed to a learner with
limit gamma / kappa, else rejected. Its policy is kappa pi, so that Sel <= kappa and |gap| = kappa
|gap(pi)| hold at once, without any new bound; but it learns from a kappa-th of the people, and
rejects good ones at random for ever.

Truth is exact: populations are discrete, the share and the gap of a policy are sums over contexts,
and the comparator is a linear program that knows the truth (`optimum_within`, HiGHS). delta = .05.
25 runs of one cell: more than 9 violations have probability 1e-6 if the rate is .05. The target is
none, which says more than the theorem: bounds are conservative.
"""

import os
from itertools import product

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.claims.certified import DELTA, ROUNDING, constants, scenario

from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.simulation import simulate

POPULATIONS = (
    "random",
    "lending",
    "lower bound D1",
    "a group of 5%",
    "base rate near 0",
    "negatives near 0",
    "gap exactly at the limit",
    "region never accepted",
)
CAPS = (0.05, 0.2, 0.5, 0.8)
RATES = ("fpr", "fnr", "selection")
RUNS, RUNS_AT_20 = (
    int(runs) for runs in os.environ.get("EVENHAND_CAPPED_RUNS", "25,200").split(",")
)
"""Runs of each population and rate; at full size 6,600 runs, ten minutes of CPU in all."""
SEEDS, ROUNDS = 25, 50_000


def capped(name, rate, cap, **settings):
    told, world = scenario(name)
    return CertifiedLearner(
        world.hypotheses,
        rate,
        told.limit,
        DELTA,
        prices=told.prices,
        accept_at_most=cap,
        **settings,
    )


def shares(run, world):
    """The true share that each policy accepts."""
    accepted = [policy.acceptance(world.features, None) for policy in run.policies]
    return np.array([float(world.probability @ one) for one in accepted])


def violations(seed, name, rate, cap, rounds):
    """(cap exceeded, gap exceeded) in one run."""
    _, world = scenario(name)
    learner = capped(name, rate, cap)
    run = simulate(learner, world, rounds, seed, learner.limit)
    return shares(run, world).max() > cap + ROUNDING, run.worst_gap > learner.limit + ROUNDING


def capped_regret(seed, name, cap, rounds):
    """Regret to the best policy within limit and cap; the audit bill; rounds until half of the
    weight is learned; and the regret of the best lottery.
    """
    told, world = scenario(name)
    learner = capped(name, "fpr", cap, horizon=rounds)
    run = simulate(learner, world, rounds, seed, learner.limit)
    learned = np.array([_learned(policy) for policy in run.policies])
    above = np.flatnonzero(learned > 0.5)
    half = float(np.r_[0, run.rounds][above[0]]) if len(above) else np.inf
    accept, reject = constants(world, told.prices)
    lottery = min(reject, cap * accept + (1 - cap) * reject)
    weights = np.array([policy.weight_of(ACCEPT_ALL) for policy in run.policies])
    bill = float(max(accept - reject, 0.0) * (run.lengths @ weights))
    return float(run.regret[-1]), bill, half, rounds * (lottery - run.optimum)


def _learned(policy):
    rest = policy.weight_of(ACCEPT_ALL)
    return (
        1.0
        - rest
        - sum(
            weight
            for rule, weight in zip(policy.hypotheses, policy.weights, strict=True)
            if rule.describe() == "reject all applicants"
        )
    )


def thinned_regret(seed, name, cap, rounds):
    """The regret of thinning: the learner meets a kappa-th of the people, each of its rounds stands
    for 1/kappa of ours, and kappa loss(pi) + (1 - kappa) loss(reject-all) is its policy's.
    """
    told, world = scenario(name)
    inner = CertifiedLearner(
        world.hypotheses,
        "fpr",
        min(told.limit / cap, 1.0),
        DELTA,
        prices=told.prices,
        horizon=round(cap * rounds),
    )
    run = simulate(inner, world, round(cap * rounds), seed, inner.limit)
    _, reject = constants(world, told.prices)
    best = world.optimum_within(told.limit, inner.rates, told.prices, cap)[0]
    losses = cap * run.losses + (1 - cap) * reject
    return float((run.lengths / cap) @ (losses - best))


# quick


@pytest.mark.parametrize("rate", RATES)
def test_no_run_exceeds_cap_or_limit(rate):
    """One run on each of 8 populations, caps in turn: the seeded runs hold; by the theorem each
    fails with probability at most .05.
    """
    jobs = zip(range(8), POPULATIONS, CAPS * 2, strict=True)
    found = [violations(seed, name, rate, cap, 1500) for seed, name, cap in jobs]
    assert not any(map(any, found))


def test_a_capped_learner_beats_thinning_on_two_populations():
    for name in ("random", "lending"):
        own = capped_regret(0, name, 0.2, 8000)[0]
        assert own < thinned_regret(0, name, 0.2, 8000)


def test_control_a_cap_checked_on_the_empirical_share_is_exceeded(monkeypatch):
    """Seen to fail: the share so far in place of its upper end."""
    from evenhand.algorithms.certified import accepted_shares as module

    def empirical(accepted, people, alpha):
        return np.divide(accepted, people, out=np.ones(len(people)), where=people > 0)

    monkeypatch.setattr(module, "largest_shares", empirical)
    found = [violations(seed, "random", "fpr", 0.2, 2000)[0] for seed in range(6)]
    assert sum(found) >= 2


def test_control_a_cap_before_the_audit_coin_is_mixed_in_is_exceeded(monkeypatch):
    """Seen to fail: the rest of the policy may accept as much as all of it."""
    from evenhand.algorithms.certified.deployable import CertifiedSet

    monkeypatch.setattr(CertifiedSet, "beside_audit_coin", lambda self, coin: self)
    monkeypatch.setattr(CertifiedSet, "repair_cap", lambda self, weights, coin: weights)
    monkeypatch.setattr("evenhand.fairness.certificate.ROUNDING", 1.0)
    _, world = scenario("random")
    learner = capped("random", "fpr", 0.2, audit_rate=0.15)
    run = simulate(learner, world, 20_000, 0, learner.limit)
    assert shares(run, world).max() > 0.2


# full


@pytest.mark.claims
@pytest.mark.parametrize("cap", CAPS)
def test_full_cap_and_gap(claims, workers, cap):
    runs = RUNS_AT_20 if cap == 0.2 else RUNS
    jobs = list(product(POPULATIONS, RATES, range(runs)))
    play = delayed(violations)
    found = Parallel(n_jobs=workers)(
        play(seed, name, rate, cap, 20_000) for name, rate, seed in jobs
    )
    above_cap, above_limit = np.array(found).sum(axis=0)
    claims.add(
        f"capacity {cap:g}: runs above cap or limit, 8 populations x 3 rates x {runs} seeds, T=2e4",
        "0 and 0",
        f"{above_cap} above the cap, {above_limit} above the limit, of {len(jobs)} runs",
        above_cap == above_limit == 0,
    )
    assert above_cap == above_limit == 0


@pytest.mark.claims
@pytest.mark.parametrize("cap", CAPS)
def test_full_regret_beside_thinning(claims, workers, cap):
    ratios, late, beyond = {}, [], {}
    for name in POPULATIONS:
        jobs = [(seed, name, cap, ROUNDS) for seed in range(SEEDS)]
        own, thinned = (
            np.array(Parallel(n_jobs=workers)(delayed(play)(*job) for job in jobs))
            for play in (capped_regret, thinned_regret)
        )
        ratios[name] = own[:, 0].mean() / thinned.mean()
        late.append(f"{name} {np.median(own[:, 2]):,.0f}")
        # what a run costs beyond the best lottery and its audit bill: rules that were tried
        beyond[name] = float((own[:, 0] - own[:, 3] - own[:, 1]).max())
    mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
    largest = max(ratios, key=ratios.__getitem__)
    worst = max(beyond, key=beyond.__getitem__)
    claims.add(
        f"capacity {cap:g}: regret over thinning's, 8 populations, {SEEDS} seeds, T={ROUNDS:g}",
        "geometric mean <= .7, none above 1, none worse than the lottery by more than its bill",
        f"{mean:.2f}; largest {ratios[largest]:.2f} ({largest}); the worst run {beyond[worst]:.1f} "
        f"beyond lottery and bill ({worst}); half of the weight after: {'; '.join(late)}",
        mean <= 0.7 and ratios[largest] <= 1.0 and beyond[worst] <= 1.0,
    )
