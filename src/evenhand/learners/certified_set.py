"""The policies that may be deployed: mixtures whose gap is below the limit for every value that the certificate still allows.

Each hypothesis h has intervals [lo_kh, hi_kh] for its true gaps (constants: [0, 0]). A mixture pi is deployable if for every k

    sum_h pi(h) hi_kh <= limit   and   sum_h pi(h) lo_kh >= -limit.

These are linear constraints in pi, so the cheapest deployable policy is a small linear program over the hypotheses that have intervals.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.contracts import GroupUse, Hypothesis
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.words import FloatArray

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class CertifiedAnswer:
    """The cheapest deployable policy for one cost vector."""

    policy: Mixture
    acceptance: FloatArray
    oracle_calls: int = 1


@dataclass(frozen=True, eq=False)
class CertifiedSet:
    """A fair oracle over deployable mixtures. accepts: (members, rows) of 0/1 on the rows of the loss; lo, hi: (gaps, members).

    The constants are members number 0 (accept) and 1 (reject).
    """

    members: tuple[Hypothesis, ...]
    accepts: FloatArray
    lo: FloatArray
    hi: FloatArray
    limit: float
    group_use: GroupUse

    @classmethod
    def of(
        cls,
        hypotheses: tuple[Hypothesis, ...],
        accepts: FloatArray,
        lo: FloatArray,
        hi: FloatArray,
        limit: float,
        group_use: GroupUse,
    ) -> "CertifiedSet":
        """Add the constants, whose gaps are zero."""
        rows, gaps = accepts.shape[1], len(lo)
        both = np.concatenate([np.ones((1, rows)), np.zeros((1, rows)), accepts])
        zero = np.zeros((gaps, 2))
        return cls(
            (ACCEPT_ALL, REJECT_ALL, *hypotheses),
            both,
            np.concatenate([zero, lo], axis=1),
            np.concatenate([zero, hi], axis=1),
            limit,
            group_use,
        )

    @property
    def constraints(self) -> FloatArray:
        """(2 gaps, members): rows g with sum pi(h) g_h <= limit."""
        return np.concatenate([self.hi, -self.lo])

    def weights_of(self, policy: Mixture) -> FloatArray:
        """The weight of each member in a mixture of members."""
        places = {id(member): i for i, member in enumerate(self.members)}
        weights = np.zeros(len(self.members))
        for hypothesis, weight in zip(policy.hypotheses, policy.weights, strict=True):
            weights[places[id(hypothesis)]] += weight
        return weights

    def mixture(self, weights: FloatArray) -> Mixture:
        """The members with positive weight."""
        support = np.flatnonzero(weights > 0)
        return Mixture(tuple(self.members[i] for i in support), tuple(weights[support].tolist()), self.group_use)

    def cheapest(self, acceptance_cost: FloatArray) -> CertifiedAnswer:
        """argmin over deployable pi of sum_i acceptance_cost_i P[pi(x_i) = +1]."""
        weights = cheapest_mixture(self.accepts @ acceptance_cost, self.constraints, self.limit)
        support = np.flatnonzero(weights)
        return CertifiedAnswer(self.mixture(weights), weights[support] @ self.accepts[support])


def cheapest_mixture(costs: FloatArray, constraints: FloatArray, limit: float) -> FloatArray:
    """min costs . w subject to constraints @ w <= limit, w a distribution; member 0 or 1 is feasible by itself.

    Almost always one constraint binds: then the optimum is an edge of a hull (`cheapest_pair`). If its solution breaks another one, the whole
    program is solved.
    """
    weights = np.zeros(len(costs))
    weights[int(np.argmin(costs))] = 1.0
    values = constraints @ weights
    if values.max() <= limit:
        return weights
    weights = cheapest_pair(costs, constraints[int(np.argmax(values))], limit)
    if (constraints @ weights).max() <= limit + ROUNDING:
        return weights
    return _program(costs, constraints, limit)


def cheapest_pair(costs: FloatArray, values: FloatArray, limit: float) -> FloatArray:
    """The same with one constraint: the edge of the lower hull of (value, cost) that crosses the limit, by secants."""
    scale = float(np.abs(costs).max()) or 1.0
    allowed = np.flatnonzero(values <= limit)
    inside, outside = int(allowed[np.argmin(costs[allowed])]), int(np.argmin(costs))
    weights = np.zeros(len(costs))
    while values[outside] > limit:
        slope = (costs[inside] - costs[outside]) / (values[outside] - values[inside])
        line = costs + slope * values
        found = int(np.argmin(line))
        if line[found] >= line[inside] - 1e-14 * scale:
            break
        if values[found] > limit:
            outside = found
        else:
            inside = found
    if values[outside] <= limit:
        weights[outside] = 1.0
        return weights
    share = (limit - values[inside]) / (values[outside] - values[inside])
    weights[outside], weights[inside] = share, 1.0 - share
    return weights


def _program(costs: FloatArray, constraints: FloatArray, limit: float) -> FloatArray:
    """The whole linear program; weight goes to a constant if rounding left it outside."""
    from scipy.optimize import linprog

    scale = float(np.abs(costs).max()) or 1.0
    result = linprog(
        costs / scale,
        A_ub=constraints,
        b_ub=np.full(len(constraints), limit),
        A_eq=np.ones((1, len(costs))),
        b_eq=[1.0],
        method="highs-ds",
    )
    weights = np.where(np.asarray(result.x) > 1e-10, result.x, 0.0)
    weights = weights / weights.sum()
    worst = float((constraints @ weights).max())
    if worst > limit:
        weights = weights * (limit / worst)
        weights[int(np.argmin(costs[:2]))] += 1.0 - weights.sum()
    return np.asarray(weights)
