"""Lemma 3.6: Algorithm 1 halts within the proved cap, and at halt both constraints of the
feasibility program hold.

Checked on the descents of real runs by a linear program over the *whole class* (plus the
constants) that shares no code with the oracle: max over fair mixtures of D, low regret with the
LP's own optimum, and the sum of Q. Both the Q with which it halts and the completed one are
checked: completing gives pi_0 the missing weight, after which D has room to spare (measured: .9),
so that only the Q at halt makes a sharp test.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.claims.measure import make, population

from evenhand.algorithms import two_phase
from evenhand.bandit import coordinate_descent, feasibility
from evenhand.policies import PolicyWeights
from evenhand.simulation import simulate


@dataclass(frozen=True, eq=False)
class Descent:
    """One call of Algorithm 1 in a run, and what it answered."""

    loss: object
    oracle: object
    settings: dict
    result: object
    at_halt: object


@dataclass(frozen=True)
class Checked:
    largest_excess: float
    excess_at_halt: float
    regret_use: float
    total: float
    iterations: int
    cap: float
    sides: int


class WholeClass:
    """min cost .

    pi over mixtures of all rows of the table and both constants with |empirical gap| <= limit, by
    LP.
    """

    def __init__(self, world, learner, rows):
        table = np.vstack([world.accepts, np.zeros(len(world), bool), np.ones(len(world), bool)])
        sample = learner.sample
        negative = (sample.label == -1) * sample.weight
        rates = [
            table[:, sample.features[:, 0].astype(int)]
            @ (negative * (sample.group == g))
            / negative[sample.group == g].sum()
            for g in sample.groups
        ]
        self.accepts, self.gaps, self.limit = (
            table[:, rows].astype(float),
            rates[1] - rates[0],
            learner.slack.limit,
        )

    def least(self, cost):
        scale = np.abs(cost).sum() or 1.0
        found = linprog(
            self.accepts @ (cost / scale),
            A_ub=np.array([self.gaps, -self.gaps]),
            b_ub=[self.limit] * 2,
            A_eq=np.ones((1, len(self.gaps))),
            b_eq=[1],
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        return float(found.fun) * scale


def descents(monkeypatch, name, estimator, horizon, seed, **more):
    """Play a run and keep every call of Algorithm 1."""
    kept, halted = [], []
    complete = PolicyWeights.completed

    def completed(self, best):
        halted.append(self)
        return complete(self, best)

    def recorded(loss, oracle, **settings):
        result = coordinate_descent(loss, oracle, **settings, **more)
        kept.append(Descent(loss, oracle, settings, result, halted[-1]))
        return result

    monkeypatch.setattr(PolicyWeights, "completed", completed)
    monkeypatch.setattr(two_phase, "coordinate_descent", recorded)
    world = population(name)
    rounds = {"limit": None, "exploration_rounds": 1500}
    learner = simulate(
        make("two-phase", world, horizon, estimator=estimator, **rounds), world, horizon, seed
    ).learner
    return world, learner, kept


def checked(world, learner, descent):
    """Both constraints from the definitions of V, b and D."""
    loss, weights, sides = descent.loss, descent.result.weights, descent.settings["sides"]
    mu, psi = descent.settings["exploration_floor"], descent.settings["regret_scale"]
    whole = WholeClass(world, learner, loss.features[:, 0].astype(int))
    least = whole.least(loss.acceptance_cost) / loss.rounds
    losses = [
        float(loss.acceptance_cost @ pi.acceptance(loss.features)) / loss.rounds
        for pi in weights.policies
    ]
    use = sum(
        q * max(value - least, 0.0) for q, value in zip(weights.weights, losses, strict=True)
    ) / (psi * mu)
    return Checked(
        largest_excess=largest_excess(whole, descent, weights, least),
        excess_at_halt=largest_excess(whole, descent, descent.at_halt, least),
        regret_use=use,
        total=math.fsum(weights.weights),
        iterations=descent.result.report.iterations,
        cap=4 * math.log(1 / (sides * mu)) / mu,
        sides=sides,
    )


def largest_excess(whole, descent, weights, least):
    """max over fair mixtures of V - 2K - b under Q^mu, where Q may sum to less than one."""
    loss, sides = descent.loss, descent.settings["sides"]
    mu, psi = descent.settings["exploration_floor"], descent.settings["regret_scale"]
    share, accept = loss.count / loss.count.sum(), np.zeros(len(loss))
    for pi, q in zip(weights.policies, weights.weights, strict=True):
        accept = accept + q * pi.acceptance(loss.features)
    plus = mu + (1 - sides * mu) * accept
    minus = mu + (1 - sides * mu) * (math.fsum(weights.weights) - accept)
    rejecting = share / minus if sides == 2 else np.zeros(len(share))
    priced = loss.acceptance_cost / (loss.rounds * psi * mu) - share / plus + rejecting
    return -whole.least(priced) + rejecting.sum() + least / (psi * mu) - 2 * sides


def faults(found: Checked) -> list[str]:
    """What the lemma forbids."""
    laws = {
        "low variance": max(found.largest_excess, found.excess_at_halt) <= 1e-8,
        "low regret": found.regret_use <= 2 * found.sides + 1e-8,
        "sums to one": abs(found.total - 1) <= 1e-12,
        "cap": found.iterations <= found.cap,
    }
    return [law for law, kept in laws.items() if not kept]


def all_checked(monkeypatch, names, horizon, seeds, **more):
    return [
        checked(world, learner, descent)
        for name in names
        for estimator in ("one-sided", "two-sided")
        for seed in seeds
        for world, learner, kept in [descents(monkeypatch, name, estimator, horizon, seed, **more)]
        for descent in kept
    ]


def test_every_descent_of_a_run_keeps_the_lemma(monkeypatch):
    """No false alarms: deterministic. Catches an excess D of 1e-8 for any of the fair mixtures of
    the whole class.
    """
    found = all_checked(monkeypatch, ("random", "lending", "D1"), 20_000, range(2))
    assert len(found) >= 60
    assert [faults(one) for one in found if faults(one)] == []


def test_the_check_sees_a_descent_that_stops_early(monkeypatch):
    """Negative control: two steps are not enough."""
    found = all_checked(monkeypatch, ("random",), 20_000, range(1), max_iterations=2)
    assert sum("low variance" in faults(one) for one in found) >= len(found) / 2


def test_the_check_sees_costs_that_forget_the_second_decision(monkeypatch):
    """Negative control: the search for a violated constraint that prices accepting alone
    (two-sided) halts too early.
    """

    def forgetful(propensity, share, acceptance_cost, rounds, mu, psi):
        return acceptance_cost / (rounds * psi * mu) - (share / propensity)[0]

    monkeypatch.setattr(feasibility, "pricing_costs", forgetful)
    world, learner, kept = descents(monkeypatch, "random", "two-sided", 20_000, 0)
    assert any("low variance" in faults(checked(world, learner, descent)) for descent in kept)


def test_the_check_sees_weights_that_do_not_sum_to_one(monkeypatch):
    """Negative control: Q not completed with the best policy."""
    world, learner, kept = descents(monkeypatch, "D1", "one-sided", 20_000, 0)
    half = replace(
        kept[-1].result.weights,
        weights=tuple(w * (1 - 1e-11) for w in kept[-1].result.weights.weights),
    )
    assert "sums to one" in faults(
        checked(world, learner, replace(kept[-1], result=replace(kept[-1].result, weights=half)))
    )


@pytest.mark.claims
def test_full(monkeypatch, claims):
    """All four populations, both estimators, T = 1e5, 5 seeds: every descent. Deterministic given
    the seeds.
    """
    found = all_checked(monkeypatch, ("random", "thresholds", "lending", "D1"), 100_000, range(5))
    counts = np.array([one.iterations for one in found])
    tightest = max(one.iterations / one.cap for one in found)
    quantiles = np.percentile(counts, [5, 50, 95]).astype(int)
    wrong = [faults(one) for one in found if faults(one)]
    claims.add(
        f"Algorithm 1 at halt, LP over the whole class, {len(found)} descents (lemma 3.6)",
        "max D <= 1e-8, low regret, |sum Q - 1| <= 1e-12, iterations <= 4 ln(1/(K mu))/mu",
        f"max D {max(one.excess_at_halt for one in found):.1e} at halt, "
        f"{max(one.largest_excess for one in found):.2f} completed; "
        f"sum Q b at most {max(one.regret_use / 2 / one.sides for one in found):.2f} of 2K; "
        f"|sum Q - 1| {max(abs(one.total - 1) for one in found):.0e}; "
        f"iterations {quantiles[0]}-{quantiles[2]} "
        f"(median {quantiles[1]}, largest {counts.max()}, {tightest:.1%} of the cap)",
        not wrong,
    )
    assert wrong == []
