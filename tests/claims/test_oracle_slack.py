"""Section 3.2, Lambda_t: a fair oracle that is within nu of the optimum on costs that sum to one
adds Lambda = nu / (psi mu^2) to the low-regret constraint and (1 + psi mu) Lambda to the
low-variance constraint.

These are nu times the most that the costs of the two calls can sum to. nu times what they do sum to
is much less, and is checked as well: it can fail. Measured on the descents of runs, by the linear
program over the whole class of `test_algorithm_1`.

The paper's saddle point is much better than its bound, because it ends with a linear program over
all that its game has met; so an oracle is played as well that uses up its nu: it mixes the cheapest
fair policy with the dearest one until it costs nu more. With that the constraints of an exact
oracle are broken.
"""

from dataclasses import dataclass

import pytest
from tests.claims.measure import make, population
from tests.claims.test_algorithm_1 import Checked, Descent, checked

from evenhand.algorithms import two_phase
from evenhand.bandit import coordinate_descent
from evenhand.bandit.coordinate_descent import OracleAnswer
from evenhand.policies import Mixture, PolicyWeights
from evenhand.simulation import simulate

NU = 0.1


@dataclass(eq=False)
class Worst:
    """The cheapest fair policy, spoilt by exactly nu on costs that sum to one; with `spare_first`
    not where Algorithm 1 asks for pi_0, because a worse pi_0 makes every b smaller than it is and
    hides what the later errors do to the variance.

    first, last: what the costs of the first and of the last call summed to.
    """

    oracle: object
    nu: float
    spare_first: bool
    calls: int = 0
    first: float = 0.0
    last: float = 0.0

    def cheapest(self, cost):
        self.calls += 1
        self.last = float(abs(cost).sum())
        if self.calls == 1:
            self.first = self.last
        best = self.oracle.cheapest(cost)
        if self.nu == 0 or (self.calls == 1 and self.spare_first):
            return best
        dearest = self.oracle.cheapest(-cost)
        more = float(cost @ (dearest.acceptance - best.acceptance))
        share = 0.0 if more <= 0 else min(1.0, self.nu * self.last / more)
        weights: dict = {}
        for answer, part in ((best, 1 - share), (dearest, share)):
            for rule, weight in zip(answer.policy.hypotheses, answer.policy.weights, strict=True):
                weights[rule] = weights.get(rule, 0.0) + part * weight
        policy = Mixture(tuple(weights), tuple(weights.values()))
        mixed = (1 - share) * best.acceptance + share * dearest.acceptance
        return OracleAnswer(policy, mixed, best.oracle_calls + dearest.oracle_calls)


@dataclass(frozen=True)
class Solved:
    """One descent: its oracle, what the linear program found, mu and psi, rounds, the report."""

    oracle: Worst
    found: Checked
    mu: float
    psi: float
    rounds: float
    halted: bool

    def slacks(self, nu):
        """nu times what the costs sum to, for regret and for variance."""
        regret = nu * self.oracle.first / (self.rounds * self.psi * self.mu)
        return regret, nu * self.oracle.last

    def printed(self, nu):
        """Lambda and (1 + psi mu) Lambda."""
        regret = nu / (self.psi * self.mu**2)
        return regret, (1 + self.psi * self.mu) * regret


def descents(monkeypatch, name, horizon, seed, nu, spare_first=False, **settings):
    """Play a run whose oracle is spoilt by `nu` (0: as it is), and check every descent."""
    kept, halted = [], []
    complete = PolicyWeights.completed

    def completed(self, best):
        halted.append(self)
        return complete(self, best)

    def recorded(loss, oracle, **how):
        worst = Worst(oracle, nu, spare_first)
        result = coordinate_descent(loss, worst, **how)
        kept.append((worst, Descent(loss, oracle, how, result, halted[-1])))
        return result

    monkeypatch.setattr(PolicyWeights, "completed", completed)
    monkeypatch.setattr(two_phase, "coordinate_descent", recorded)
    world = population(name)
    settings = {
        "limit": None,
        "exploration_rounds": 1500,
        "estimator": "two-sided",
        **settings,
    }
    learner = simulate(make("two-phase", world, horizon, **settings), world, horizon, seed).learner
    monkeypatch.undo()
    return [
        Solved(
            worst,
            checked(world, learner, one),
            one.settings["exploration_floor"],
            one.settings["regret_scale"],
            float(one.loss.rounds),
            one.result.report.halted,
        )
        for worst, one in kept
    ]


def faults(found, nu):
    """What the section forbids, for an oracle within `nu`."""
    laws = {
        "low regret": all(
            one.found.regret_use <= 2 * one.found.sides + one.slacks(nu)[0] + 1e-8 for one in found
        ),
        "low variance": all(one.found.excess_at_halt <= one.slacks(nu)[1] + 1e-8 for one in found),
        "printed": all(
            sharp <= printed + 1e-8
            for one in found
            for sharp, printed in zip(one.slacks(nu), one.printed(nu), strict=True)
        ),
        "halts": all(one.halted for one in found),
        "sums to one": all(abs(one.found.total - 1) <= 1e-12 for one in found),
    }
    return [law for law, kept in laws.items() if not kept]


def used(found, nu):
    """The largest shares of the two slacks that were used."""
    regret = max((one.found.regret_use - 2 * one.found.sides) / one.slacks(nu)[0] for one in found)
    return regret, max(one.found.excess_at_halt / one.slacks(nu)[1] for one in found)


def test_an_oracle_within_nu_keeps_both_constraints_within_lambda(monkeypatch):
    """lending, T = 5,000: no false alarms, deterministic given the seed. Without the slack both
    constraints would be broken: it is needed. Negative control: an oracle that errs by 2 nu.
    """
    everywhere = descents(monkeypatch, "lending", 5000, 0, NU)
    later = descents(monkeypatch, "lending", 5000, 0, NU, spare_first=True)
    assert faults([*everywhere, *later], NU) == []
    assert "low regret" in faults(everywhere, 1e-9)
    assert "low variance" in faults(later, 1e-9)
    assert "low regret" in faults(descents(monkeypatch, "lending", 5000, 0, 2 * NU), NU)
    worse = descents(monkeypatch, "lending", 5000, 0, 2 * NU, spare_first=True)
    assert "low variance" in faults(worse, NU)


@pytest.mark.claims
def test_full(monkeypatch, claims):
    """random, lending and D1, T = 20,000, 2 seeds, nu = .1 and .01; the paper's saddle point with
    nu = .01 beside it (lending, D1, T = 5,000). Deterministic given the seeds.
    """

    def all_of(nu, spare_first):
        return [
            one
            for name in ("random", "lending", "D1")
            for seed in range(2)
            for one in descents(monkeypatch, name, 20_000, seed, nu, spare_first)
        ]

    wrong, shown, count = [], [], 0
    for nu in (NU, NU / 10):
        everywhere, later = all_of(nu, False), all_of(nu, True)
        wrong += faults([*everywhere, *later], nu)
        count += len(everywhere) + len(later)
        largest = max(one.printed(nu)[0] for one in everywhere)
        shown.append(
            f"nu = {nu:g}: {used(everywhere, nu)[0]:.2f} of the slack of regret, "
            f"{used(later, nu)[1]:.2f} of that of variance (Lambda as printed up to {largest:,.0f})"
        )
    control = {*faults(all_of(2 * NU, False), NU), *faults(all_of(2 * NU, True), NU)}
    needed = {*faults(all_of(NU, False), 1e-9), *faults(all_of(NU, True), 1e-9)}
    both = {"low regret", "low variance"}
    claims.add(
        f"Lambda_t in a run: an oracle that errs by nu on costs that sum to one, {count} descents",
        "sum Q b <= 4 + Lambda, V <= 4 + b + (1 + psi mu) Lambda, with nu x the sum of the costs "
        "for Lambda; broken by an oracle of 2 nu, and without the slack",
        f"{'; '.join(shown)}; 2 nu breaks {', '.join(sorted(control))}",
        not wrong and control == both and needed == both,
    )
    game = {"method": "saddle-point", "oracle_tolerance": NU / 10}
    saddle = [
        one
        for name in ("lending", "D1")
        for one in descents(monkeypatch, name, 5_000, 0, 0.0, **game)
    ]
    claims.add(
        f"the same with the paper's saddle point, nu = {NU / 10:g}, {len(saddle)} descents",
        "both constraints within Lambda",
        f"V - 4 - b at most {max(one.found.excess_at_halt for one in saddle):.3f}, sum Q b at most "
        f"{max(one.found.regret_use for one in saddle):.2f} of 4: its errors are far below nu",
        not faults(saddle, NU / 10),
    )
    assert wrong == []
    assert control == both
    assert needed == both
    assert faults(saddle, NU / 10) == []
