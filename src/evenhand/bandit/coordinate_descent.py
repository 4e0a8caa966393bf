"""Algorithm 1 of the paper: coordinate descent for the feasibility program, with any fair oracle,
one- or two-sided.

    Q = 0; pi_0 = argmin L_hat                                                   one call of the fair oracle
    repeat  if sum Q (2K + b) > 2K:  Q <- Q 2K / sum Q (2K + b)                  "shrink"
            pi = argmax D_pi(Q)                                                  one call of the fair oracle
            if L_hat(pi) < L_hat(pi_0):  pi_0 <- pi, recompute b, start again    "replace"
            if D_pi(Q) <= 0:  halt, the missing weight goes to pi_0
            Q(pi) <- Q(pi) + (V + D) / (2 (1 - K mu) S)                          "step"

The oracle maximises D with b unclipped, so its answer bounds the D of every policy only if it does
not beat pi_0 itself: hence "replace", which an exact oracle never needs.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from math import floor, fsum
from typing import Literal

import numpy as np

from evenhand.bandit import feasibility
from evenhand.contracts import FairAnswer, FairOracle, Hypothesis
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.estimation import EstimatedLoss
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.policies.weights import PolicyWeights, policy_key
from evenhand.words import FloatArray

TOLERANCE = 1e-9
"""An excess D, or an advantage over pi_0 in units of b, up to this size counts as none."""
MOST_REPLACEMENTS = 1000

MoveKind = Literal["start", "shrink", "replace", "step"]


@dataclass(frozen=True, slots=True)
class Move:
    """One change of Q (or of pi_0), and the potential Phi after it."""

    kind: MoveKind
    potential: float


@dataclass(frozen=True)
class DescentReport:
    """What it took: `iterations` are the steps, `cap` the proved bound on them.

    The cap is raised by what replacing pi_0 added to Phi over its least drop, so that it stays
    proved. `max_variance_excess` is the largest D when it stopped, as the oracle saw it; with
    `halted` it is at most 1e-9.
    """

    iterations: int
    shrinkings: int
    replacements: int
    fair_calls: int
    oracle_calls: int
    halted: bool
    max_variance_excess: float
    cap: float
    moves: tuple[Move, ...]


@dataclass(frozen=True)
class CoordinateDescent:
    """Q completed with pi_0 (`best`), ready for `weights.smoothed(mu, explored(sides))`, and the
    report.
    """

    weights: PolicyWeights
    best: Mixture
    report: DescentReport


def explored(sides: int) -> tuple[Hypothesis, ...]:
    """The constants that get the exploration floor each: accept-all, and, two-sided, reject-all."""
    return (ACCEPT_ALL, REJECT_ALL)[:sides]


def coordinate_descent(
    loss: EstimatedLoss,
    oracle: FairOracle,
    *,
    exploration_floor: float,
    regret_scale: float,
    sides: int,
    max_iterations: int | None = None,
) -> CoordinateDescent:
    """Q with sum Q b <= 2K and V_pi(Q) <= 2K + b(pi) for every fair pi; the oracle is bound to the
    rows of `loss`.

    exploration_floor is mu, regret_scale psi, sides K. max_iterations may lower the proved cap; a
    descent that was cut off still has low regret, and says halted=False.
    """
    feasibility.require_floor(exploration_floor, sides)
    if not regret_scale > 0:
        raise InvalidInput(f"regret_scale is {regret_scale}; it must be above 0.")
    descent = _Descent(loss, oracle, exploration_floor, regret_scale, sides)
    halted = descent.run(max_iterations)
    return descent.result(halted)


@dataclass(frozen=True, eq=False)
class _Found:
    """A fair policy, its acceptance on the rows, and its estimated loss."""

    policy: Mixture
    acceptance: FloatArray
    loss: float


class _Descent:
    """Q while it changes: policies found (equal ones once), their weights and losses, and Q(+1|x_i)
    as `mass`.
    """

    def __init__(
        self, loss: EstimatedLoss, oracle: FairOracle, mu: float, psi: float, sides: int
    ) -> None:
        self.objective, self.oracle = loss, oracle
        self.mu, self.psi, self.sides = mu, psi, sides
        self.share = loss.share
        self.place: dict[Hashable, int] = {}
        self.policies: list[Mixture] = []
        self.weights, self.losses = np.zeros(0), np.zeros(0)
        self.mass = np.zeros(len(loss))
        self.fair_calls = self.oracle_calls = 0
        self.excess = float("inf")
        self.best = self.ask(loss.acceptance_cost)
        self.moves: list[Move] = []
        self.count: Counter[MoveKind] = Counter()
        self.cap = feasibility.iteration_cap(mu, sides)
        self.record("start")

    @property
    def propensity(self) -> FloatArray:
        """Q^mu on the rows."""
        return feasibility.smoothed(self.mass, fsum(self.weights), self.mu, self.sides)

    @property
    def budget_use(self) -> FloatArray:
        """b of the policies found."""
        return feasibility.regret_budget_use(self.losses, self.best.loss, self.mu, self.psi)

    def run(self, max_iterations: int | None) -> bool:
        """Whether it halted by itself."""
        while True:
            self.shrink()
            found = self.most_violated()
            if self.beats_best(found):
                if self.count["replace"] >= MOST_REPLACEMENTS:
                    return False
                self.replace_best(found)
                continue
            V, D, S = self.violation(found)
            self.excess = D
            if D <= TOLERANCE:
                return True
            if self.count["step"] >= self.limit(max_iterations):
                return False
            self.step(found, feasibility.weight_step(V, D, S, self.mu, self.sides))

    def shrink(self) -> None:
        """Meet sum Q (2K + b) <= 2K."""
        factor = feasibility.shrinking(self.weights, self.budget_use, self.sides)
        if factor < 1:
            self.weights = self.weights * factor
            self.mass = self.mass * factor
            self.record("shrink")

    def most_violated(self) -> _Found:
        """argmax over fair policies of V - (L_hat - L_hat(pi_0)) / (psi mu)."""
        objective = self.objective
        return self.ask(
            feasibility.pricing_costs(
                self.propensity,
                self.share,
                objective.acceptance_cost,
                objective.rounds,
                self.mu,
                self.psi,
            )
        )

    def ask(self, acceptance_cost: FloatArray) -> _Found:
        """One call of the fair oracle."""
        answer = self.oracle.cheapest(acceptance_cost)
        self.fair_calls += 1
        self.oracle_calls += answer.oracle_calls
        if answer.acceptance.shape != self.share.shape:
            raise LengthMismatch(
                f"the oracle answers for {answer.acceptance.shape} rows but the loss has {len(self.share)}.",
                hint="bind the oracle to the features of the EstimatedLoss.",
            )
        return _Found(_mixture(answer), answer.acceptance, self.objective.of(answer.acceptance))

    def beats_best(self, found: _Found) -> bool:
        """Whether L_hat(pi) < L_hat(pi_0), by more than rounding."""
        return _beats(found.loss, self.best.loss, self.mu * self.psi)

    def replace_best(self, found: _Found) -> None:
        """b grows for the policies found; what that adds to Phi raises the cap."""
        before = self.moves[-1].potential
        self.best = found
        self.record("replace")
        self.cap += max(0.0, self.moves[-1].potential - before) / feasibility.least_drop(
            self.mu, self.sides
        )

    def violation(self, found: _Found) -> tuple[float, float, float]:
        """V, D and S of a policy."""
        propensity = self.propensity
        V = feasibility.mean_inverse_propensity(found.acceptance, propensity, self.share)
        S = feasibility.mean_squared_inverse_propensity(found.acceptance, propensity, self.share)
        b = feasibility.regret_budget_use(np.asarray(found.loss), self.best.loss, self.mu, self.psi)
        return float(V), float(feasibility.variance_excess(V, b, self.sides)), float(S)

    def step(self, found: _Found, size: float) -> None:
        """Q(pi) grows by `size`."""
        key = policy_key(found.policy)
        if key not in self.place:
            self.place[key] = len(self.policies)
            self.policies.append(found.policy)
            self.weights, self.losses = (
                np.append(self.weights, 0.0),
                np.append(self.losses, found.loss),
            )
        self.weights[self.place[key]] += size
        self.mass = self.mass + size * found.acceptance
        self.record("step")

    def limit(self, max_iterations: int | None) -> int:
        """The proved cap, plus one for rounding, or less if asked."""
        proved = floor(self.cap) + 1
        return proved if max_iterations is None else min(proved, max_iterations)

    def record(self, kind: MoveKind) -> None:
        """Add a move with the potential after it."""
        phi = feasibility.potential(
            self.propensity, self.share, self.weights, self.budget_use, self.mu
        )
        self.moves.append(Move(kind, phi))
        self.count[kind] += 1

    def result(self, halted: bool) -> CoordinateDescent:
        """Q completed with pi_0, and the report."""
        weights = PolicyWeights(tuple(self.policies), tuple(self.weights.tolist())).completed(
            self.best.policy
        )
        report = DescentReport(
            iterations=self.count["step"],
            shrinkings=self.count["shrink"],
            replacements=self.count["replace"],
            fair_calls=self.fair_calls,
            oracle_calls=self.oracle_calls,
            halted=halted,
            max_variance_excess=self.excess,
            cap=self.cap,
            moves=tuple(self.moves),
        )
        return CoordinateDescent(weights, self.best.policy, report)


def _beats(loss: float, least_loss: float, unit: float) -> bool:
    return loss < least_loss - TOLERANCE * unit


def _mixture(answer: FairAnswer) -> Mixture:
    if not isinstance(answer.policy, Mixture):
        raise InvalidInput(
            f"the fair oracle answered with a {type(answer.policy).__name__}; Q weights mixtures of hypotheses.",
            hint="answer with an evenhand.policies.Mixture.",
        )
    return answer.policy
