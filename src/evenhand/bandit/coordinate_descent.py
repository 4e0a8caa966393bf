"""Algorithm 1 of the paper: coordinate descent for the feasibility program, with any fair oracle,
one- or two-sided.

    Q = 0; pi_0 = argmin L_hat                                           one call of the oracle
    repeat  if sum Q (2K + b) > 2K:  Q <- Q 2K / sum Q (2K + b)          "shrink"
            pi = argmax D_pi(Q)                                          one call of the oracle
            if L_hat(pi) < L_hat(pi_0):  pi_0 <- pi, b anew, again       "replace"
            if D_pi(Q) <= 0:  halt, the missing weight goes to pi_0
            Q(pi) <- Q(pi) + (V + D) / (2 (1 - K mu) S)                  "step"

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
from evenhand.contracts import FairOracle, Hypothesis
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.estimation import EstimatedLoss
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies.mixture import Mixture, PolicyWeights, policy_key
from evenhand.shown import Brief
from evenhand.words import FloatArray

TOLERANCE = 1e-9
"""An excess D, or an advantage over pi_0 in units of b, up to this size counts as none."""
MOST_REPLACEMENTS = 1000

MoveKind = Literal["start", "shrink", "replace", "step"]


@dataclass(frozen=True, slots=True)
class Move:
    """One change of Q, or of pi_0.

    Parameters
    ----------
    kind : "start", "shrink", "replace" or "step"
        What was done.
    potential : float
        Phi after it.

    Examples
    --------
    >>> Move("step", 0.25).kind
    'step'
    """

    kind: MoveKind
    potential: float


@dataclass(frozen=True, repr=False)
class DescentReport(Brief):
    """What a descent took.

    Parameters
    ----------
    iterations, shrinkings, replacements : int
        How often Q grew, was shrunk, and pi_0 was replaced.
    fair_calls, oracle_calls : int
        Calls of the fair oracle, and of the CSC oracle behind it.
    halted : bool
        Whether it halted by itself.
    max_variance_excess : float
        The largest D when it stopped, as the oracle saw it; at most 1e-9 if it halted.
    cap : float
        The proved bound on the iterations. It is raised by what replacing pi_0 added to Phi over
        its least drop, so that it stays proved.
    moves : tuple of Move
        Every change with the potential after it.
    unfinished : int
        How many answers of the fair oracle were worse than its tolerance allows, because its calls
        had run out.

    Examples
    --------
    >>> report = DescentReport(3, 1, 0, 5, 20, True, 0.0, 60.0, ())
    >>> report.iterations <= report.cap
    True
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
    unfinished: int = 0


@dataclass(frozen=True)
class CoordinateDescent:
    """What a descent found.

    Parameters
    ----------
    weights : PolicyWeights
        Q completed with pi_0, ready for `weights.smoothed(mu, explored_constants(sides))`.
    best : Mixture
        pi_0.
    report : DescentReport
        What it took.

    Examples
    --------
    >>> from evenhand.policies import Mixture, PolicyWeights
    >>> best = Mixture((ACCEPT_ALL,), (1.0,))
    >>> report = DescentReport(0, 0, 0, 1, 1, True, 0.0, 0.0, ())
    >>> CoordinateDescent(PolicyWeights((best,), (1.0,)), best, report).weights.total
    1.0
    """

    weights: PolicyWeights
    best: Mixture
    report: DescentReport


def explored_constants(sides: int) -> tuple[Hypothesis, ...]:
    """The constants that get the exploration floor each.

    Parameters
    ----------
    sides : int
        K: 1 or 2.

    Returns
    -------
    tuple of Hypothesis
        Accept-all, and, two-sided, reject-all.

    Examples
    --------
    >>> [rule.describe() for rule in explored_constants(2)]
    ['accept all applicants', 'reject all applicants']
    """
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
    """Solve the feasibility program (Algorithm 1 of the paper).

    Parameters
    ----------
    loss : EstimatedLoss
        The estimated loss on the rows.
    oracle : FairOracle
        A fair oracle bound to the same rows.
    exploration_floor : float
        mu.
    regret_scale : float
        psi.
    sides : int
        K: 2 if both decisions are explored (the paper), 1 if acceptance alone is.
    max_iterations : int, optional
        May lower the proved cap. A descent that was cut off still has low regret, and its report
        says halted=False.

    Returns
    -------
    CoordinateDescent
        Q with sum Q b <= 2K and V_pi(Q) <= 2K + b(pi) for every fair pi.

    Raises
    ------
    InvalidInput
        If mu, psi or K is out of its range.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> class Constants:
    ...     def cheapest(self, cost):
    ...         rule = ACCEPT_ALL if cost.sum() < 0 else REJECT_ALL
    ...         policy, accepts = Mixture((rule,), (1.0,)), np.full(len(cost), float(rule.accept))
    ...         return SimpleNamespace(policy=policy, acceptance=accepts, oracle_calls=1)
    >>> loss = EstimatedLoss(np.zeros((1, 1)), None, np.array([9.0]), np.array([-2.0]), 4.5, 9.0)
    >>> found = coordinate_descent(
    ...     loss, Constants(), exploration_floor=0.1, regret_scale=1.0, sides=1
    ... )
    >>> found.report.halted, round(found.weights.total, 9)
    (True, 1.0)
    """
    feasibility.require_floor(exploration_floor, sides)
    if not regret_scale > 0:
        raise InvalidInput(f"regret_scale is {regret_scale}; it must be above 0.")
    descent = _Descent(loss, oracle, exploration_floor, regret_scale, sides)
    halted = descent.run(max_iterations)
    return descent.result(halted)


@dataclass(frozen=True, eq=False)
class OracleAnswer:
    """What a fair oracle that needs one call answers: see `evenhand.contracts.FairAnswer`."""

    policy: Mixture
    acceptance: FloatArray
    oracle_calls: int = 1


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
        self.objective = loss
        self.oracle = oracle
        self.mu = mu
        self.psi = psi
        self.sides = sides
        self.share = loss.share
        self.place: dict[Hashable, int] = {}
        self.policies: list[Mixture] = []
        self.weights = np.zeros(0)
        self.losses = np.zeros(0)
        self.mass = np.zeros(len(loss))
        self.fair_calls = self.oracle_calls = self.unfinished = 0
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
        mu = self.mu
        psi = self.psi
        sides = self.sides
        share = self.share
        objective = self.objective
        while True:
            # "shrink": meet sum Q (2K + b) <= 2K
            factor = feasibility.shrinking(self.weights, self.budget_use, sides)
            if factor < 1:
                self.weights = self.weights * factor
                self.mass = self.mass * factor
                self.record("shrink")
            # argmax over fair policies of V - (L_hat - L_hat(pi_0)) / (psi mu)
            Q_mu = self.propensity
            cost = objective.acceptance_cost
            rounds = objective.rounds
            found = self.ask(feasibility.pricing_costs(Q_mu, share, cost, rounds, mu, psi))
            if self.beats_best(found):
                if self.count["replace"] >= MOST_REPLACEMENTS:
                    return False
                # b grows for the policies found; what that adds to Phi raises the cap
                before = self.moves[-1].potential
                self.best = found
                self.record("replace")
                more = max(0.0, self.moves[-1].potential - before)
                self.cap += more / feasibility.least_drop(mu, sides)
                continue
            V = feasibility.mean_inverse_propensity(found.acceptance, Q_mu, share)
            S = feasibility.mean_squared_inverse_propensity(found.acceptance, Q_mu, share)
            b = feasibility.regret_budget_use(np.asarray(found.loss), self.best.loss, mu, psi)
            self.excess = D = float(feasibility.variance_excess(V, b, sides))
            if D <= TOLERANCE:
                return True
            # the proved cap, plus one for rounding, or less if asked
            limit = floor(self.cap) + 1
            if max_iterations is not None:
                limit = min(limit, max_iterations)
            if self.count["step"] >= limit:
                return False
            self.step(found, feasibility.weight_step(float(V), D, float(S), mu, sides))

    def ask(self, acceptance_cost: FloatArray) -> _Found:
        """One call of the fair oracle."""
        answer = self.oracle.cheapest(acceptance_cost)
        self.fair_calls += 1
        self.oracle_calls += answer.oracle_calls
        self.unfinished += bool(getattr(answer, "ran_out", False))
        if answer.acceptance.shape != self.share.shape:
            raise LengthMismatch(
                f"the oracle answers for {answer.acceptance.shape} rows but the loss has "
                f"{len(self.share)}."
            )
        policy: object = answer.policy  # an oracle of one's own may keep the contract or not
        if not isinstance(policy, Mixture):
            raise InvalidInput(
                f"the fair oracle answered with a {type(policy).__name__}; Q weights "
                "mixtures of hypotheses (evenhand.policies.Mixture)."
            )
        return _Found(policy, answer.acceptance, self.objective.of(answer.acceptance))

    def beats_best(self, found: _Found) -> bool:
        """Whether L_hat(pi) < L_hat(pi_0), by more than rounding."""
        return found.loss < self.best.loss - TOLERANCE * (self.mu * self.psi)

    def step(self, found: _Found, size: float) -> None:
        """Q(pi) grows by `size`."""
        key = policy_key(found.policy)
        if key not in self.place:
            self.place[key] = len(self.policies)
            self.policies.append(found.policy)
            self.weights = np.append(self.weights, 0.0)
            self.losses = np.append(self.losses, found.loss)
        self.weights[self.place[key]] += size
        self.mass = self.mass + size * found.acceptance
        self.record("step")

    def record(self, kind: MoveKind) -> None:
        """Add a move with the potential after it."""
        Q = self.weights
        b = self.budget_use
        phi = feasibility.potential(self.propensity, self.share, Q, b, self.mu)
        self.moves.append(Move(kind, phi))
        self.count[kind] += 1

    def result(self, halted: bool) -> CoordinateDescent:
        """Q completed with pi_0, and the report."""
        Q = PolicyWeights(tuple(self.policies), tuple(self.weights.tolist()))
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
            unfinished=self.unfinished,
        )
        return CoordinateDescent(Q.completed(self.best.policy), self.best.policy, report)
