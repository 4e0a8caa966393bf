"""A small random population, an exhaustive fair oracle over all vertices of its fair polytope, and
an LP over the class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from evenhand.contracts import Json
from evenhand.estimation import EstimatedLoss, RoundLog, one_sided, two_sided
from evenhand.policies import Mixture, PolicyWeights
from evenhand.words import BoolArray, FloatArray, GroupArray


@dataclass(frozen=True)
class TableHypothesis:
    """Accepts the contexts listed; features[:, 0] is the context's number."""

    accepted: tuple[bool, ...]

    @property
    def columns_used(self) -> tuple[int, ...]:
        return (0,)

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        return np.array(self.accepted)[features[:, 0].astype(int)]

    def describe(self, names: Sequence[str] | None = None) -> str:
        return f"accept if context in {np.flatnonzero(self.accepted).tolist()}"

    def to_json(self) -> Json:
        return {"kind": "table", "accepted": list(self.accepted)}


@dataclass(frozen=True)
class Answer:
    policy: Mixture
    acceptance: FloatArray
    oracle_calls: int = 1


@dataclass(frozen=True, eq=False)
class FairTable:
    """H as a table (hypotheses, contexts), and |gap @ pi| <= limit.

    Binds to rows given by their contexts.
    """

    accepts: BoolArray
    gap: FloatArray
    limit: float
    rows: np.ndarray

    @cached_property
    def vertices(self) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
        """All fair hypotheses, and all pairs mixed until the gap is exactly at the limit."""
        gaps = self.accepts @ self.gap
        found = [((h,), (1.0,)) for h in np.flatnonzero(np.abs(gaps) <= self.limit)]
        for h, k in combinations(range(len(gaps)), 2):
            for bound in (-self.limit, self.limit):
                if (gaps[h] - bound) * (gaps[k] - bound) < 0:
                    weight = (bound - gaps[k]) / (gaps[h] - gaps[k])
                    found.append(((h, k), (weight, 1 - weight)))
        return found

    @cached_property
    def acceptance(self) -> FloatArray:
        """(vertices, rows)."""
        table = np.array([np.array(w) @ self.accepts[list(hs)] for hs, w in self.vertices])
        return table[:, self.rows]

    def policy(self, vertex: int) -> Mixture:
        members, weights = self.vertices[vertex]
        return Mixture(
            tuple(TableHypothesis(tuple(self.accepts[h].tolist())) for h in members), weights
        )

    def cheapest(self, acceptance_cost: FloatArray) -> Answer:
        vertex = int(np.argmin(self.acceptance @ acceptance_cost))
        return Answer(self.policy(vertex), self.acceptance[vertex])

    def least_cost(self, acceptance_cost: FloatArray) -> float:
        """The same minimum by an LP over mixtures of the whole class, which knows nothing of
        vertices.
        """
        gaps = self.accepts @ self.gap
        solution = linprog(
            self.accepts[:, self.rows] @ acceptance_cost,
            A_ub=np.array([gaps, -gaps]),
            b_ub=[self.limit] * 2,
            A_eq=np.ones((1, len(gaps))),
            b_eq=[1],
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        return float(solution.fun)


@dataclass(frozen=True, eq=False)
class Case:
    loss: EstimatedLoss
    oracle: FairTable
    log: RoundLog


def random_case(
    seed: int, sides: int, contexts: int = 8, hypotheses: int = 10, rounds: int = 400
) -> Case:
    """Rounds played by random smoothed policies of three epochs, on a random population with a
    random fair class.
    """
    random = np.random.default_rng(seed)
    accepts = random.random((hypotheses, contexts)) < random.random((hypotheses, 1))
    accepts = np.vstack([accepts, np.zeros(contexts, bool), np.ones(contexts, bool)])
    gap = random.normal(size=contexts)
    gap[:2] = abs(gap[0]), -abs(gap[1])  # both groups are there
    gap = np.where(gap > 0, gap / gap[gap > 0].sum(), -gap / gap[gap <= 0].sum())
    positive_rate, arrival = random.random(contexts), random.dirichlet(np.ones(contexts))
    context = random.choice(contexts, p=arrival, size=rounds)
    epoch = np.sort(random.integers(3, size=rounds))
    chance = random.uniform(0.05, 0.95, size=(3, contexts))[epoch, context]
    accept = random.random(rounds) < chance
    label = np.where(random.random(rounds) < positive_rate[context], 1, -1)
    log = RoundLog.from_rounds(context[:, None], accept, label[accept], chance)
    loss = (one_sided if sides == 1 else two_sided)(log)
    return Case(loss, FairTable(accepts, gap, 0.05, loss.features[:, 0].astype(int)), log)


@dataclass(frozen=True)
class Check:
    """Both constraints from first principles, over the whole class."""

    total: float
    largest_excess: float
    regret_use: float


def check(case: Case, weights: PolicyWeights, mu: float, psi: float, sides: int) -> Check:
    """max over all fair mixtures of V - 2K - b by LP, sum Q b with the LP's own optimum, sum Q."""
    loss, rows = case.loss, range(len(case.loss))
    accepted = [float(p) for p in weights.acceptance(loss.features)]
    share = [count / sum(loss.count) for count in loss.count]
    plus = [mu + (1 - sides * mu) * accepted[i] for i in rows]
    minus = [mu + (1 - sides * mu) * (1 - accepted[i]) for i in rows]
    rejecting = [share[i] / minus[i] if sides == 2 else 0.0 for i in rows]
    least_loss = (loss.constant + case.oracle.least_cost(loss.acceptance_cost)) / loss.rounds
    cost = [
        loss.acceptance_cost[i] / (loss.rounds * psi * mu) - share[i] / plus[i] + rejecting[i]
        for i in rows
    ]
    at_most = -case.oracle.least_cost(np.array(cost)) + sum(rejecting)
    excess = at_most - (loss.constant / loss.rounds - least_loss) / (psi * mu) - 2 * sides
    losses = [loss.of(policy.acceptance(loss.features)) for policy in weights.policies]
    use = sum(
        q * max(value - least_loss, 0) for q, value in zip(weights.weights, losses, strict=True)
    ) / (psi * mu)
    return Check(sum(weights.weights), excess, use)
