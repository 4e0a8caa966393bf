"""The policies that may be deployed: mixtures whose gap is below the limit for every value that the
certificate still allows.

Each hypothesis h has intervals [lower_kh, upper_kh] for its true gaps (constants: [0, 0]). A
mixture pi is deployable if for every k

    sum_h pi(h) upper_kh <= limit   and   sum_h pi(h) lower_kh >= -limit.

These are linear constraints in pi, so the cheapest deployable policy is a small linear program over
the hypotheses that have intervals.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.contracts import GroupUse, Hypothesis
from evenhand.policies import Mixture
from evenhand.words import FloatArray, IntArray

ROUNDING = 1e-12
PIVOT_GAIN = 1e-12
"""A reduced cost (relative to the largest cost) below this is no gain."""
MOST_PIVOTS = 400
"""From half of them on the first column with a gain enters (Bland's rule), so that the simplex
cannot cycle.
"""
FRESH_INVERSE = 20
"""After so many pivots the inverse of the basis is computed afresh."""


@dataclass(frozen=True, eq=False)
class CertifiedAnswer:
    """The cheapest deployable policy for one cost vector."""

    policy: Mixture
    acceptance: FloatArray
    oracle_calls: int = 1


@dataclass(frozen=True, eq=False)
class CertifiedSet:
    """A fair oracle over deployable mixtures. accepts: (members, rows) of 0/1 on the rows of the
    loss; lower, upper: (gaps, members).

    The constants are members number 0 (accept) and 1 (reject).
    """

    members: tuple[Hypothesis, ...]
    accepts: FloatArray
    lower: FloatArray
    upper: FloatArray
    limit: float
    group_use: GroupUse

    @property
    def constraints(self) -> FloatArray:
        """(2 gaps, members): rows g with sum pi(h) g_h <= limit."""
        return np.concatenate([self.upper, -self.lower])

    def programs(self, most_audits: float) -> "tuple[MixtureProgram, MixtureProgram]":
        """The mixtures that may be deployed, accept-all having at most this weight, and those that
        the middles of the intervals call fair.
        """
        capped, middle = np.eye(1, len(self.members)), 0.5 * (self.lower + self.upper)
        limits = np.append(np.full(2 * len(self.lower), self.limit), most_audits)
        deployed = MixtureProgram(np.concatenate([self.constraints, capped]), limits)
        return deployed, MixtureProgram(np.concatenate([middle, -middle]), self.limit)

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
        return Mixture(
            tuple(self.members[i] for i in support),
            tuple(weights[support].tolist()),
            self.group_use,
        )

    def cheapest(self, acceptance_cost: FloatArray) -> CertifiedAnswer:
        """argmin over deployable pi of sum_i acceptance_cost_i P[pi(x_i) = +1]."""
        program = MixtureProgram(self.constraints, self.limit)
        weights = program.cheapest(self.accepts @ acceptance_cost)
        support = np.flatnonzero(weights)
        return CertifiedAnswer(self.mixture(weights), weights[support] @ self.accepts[support])

    def cautious(self, weights: FloatArray, cost: FloatArray, variance: FloatArray) -> FloatArray:
        """Learned weight whose gain over the better constant may be chance goes to that constant.

        cost, variance: of accepting all people of a row, per person.
        """
        learned = np.concatenate([np.zeros(2), weights[2:]])
        total = float(learned.sum())
        if total == 0.0:
            return weights
        saving = Saving.of(learned @ self.accepts / total, cost, variance)
        kept = weights - (1.0 - saving.trusted) * learned
        kept[saving.constant] += (1.0 - saving.trusted) * total
        return kept


class MixtureProgram:
    """min costs . w subject to constraints @ w <= limits, w >= 0, sum w = 1, for one cost vector
    after another.

    constraints: (rows, members); limits: one number, or one per row, none below 0. Member 1 has
    zeros in every row, and member 0 in every row but one that bounds its own weight. Primal simplex
    with one row per constraint and one for the sum. It starts at a constant, where every slack is
    the limit, and each later program where the last one ended, which is feasible for any costs.
    With so few rows and so many columns a pivot is a handful of small products, far below the
    overhead of a general solver.
    """

    def __init__(self, constraints: FloatArray, limits: float | FloatArray) -> None:
        rows, members = constraints.shape
        self.constraints, self.limits = (
            constraints,
            np.broadcast_to(np.asarray(limits, dtype=np.float64), (rows,)),
        )
        self.columns = np.zeros((rows + 1, members + rows))
        self.columns[0, :members] = 1.0
        self.columns[1:, :members] = constraints
        self.columns[1:, members:] = np.eye(rows)
        self.right = np.concatenate([[1.0], self.limits])
        self.basis: IntArray | None = None

    def cheapest(self, costs: FloatArray) -> FloatArray:
        """The weights of the members; at most one more than there are constraints is above 0."""
        members = len(costs)
        scale = float(np.abs(costs).max()) or 1.0
        constant = int(np.argmin(costs[:2])) if (self.constraints[:, 0] <= self.limits).all() else 1
        if self.basis is None:
            self.basis = np.concatenate([[constant], members + np.arange(len(self.limits))])
        prices, basis = np.zeros(self.columns.shape[1]), self.basis
        prices[:members] = costs / scale
        inverse = np.linalg.inv(self.columns[:, basis])
        for pivot in range(MOST_PIVOTS):
            reduced = prices - (prices[basis] @ inverse) @ self.columns
            reduced[basis] = 0.0
            entering = int(
                reduced.argmin() if pivot < MOST_PIVOTS // 2 else (reduced < -PIVOT_GAIN).argmax()
            )
            if reduced[entering] >= -PIVOT_GAIN:
                break
            direction, values = inverse @ self.columns[:, entering], inverse @ self.right
            ratios = np.full(len(basis), np.inf)
            np.divide(np.maximum(values, 0.0), direction, out=ratios, where=direction > 1e-12)
            leaving = int(ratios.argmin())
            basis[leaving] = entering
            if pivot % FRESH_INVERSE == FRESH_INVERSE - 1:
                inverse = np.linalg.inv(self.columns[:, basis])
            else:  # one step of Gauss-Jordan
                row = inverse[leaving] / direction[leaving]
                inverse -= np.multiply.outer(direction, row)
                inverse[leaving] = row
        return self._weights(np.linalg.solve(self.columns[:, basis], self.right), basis, constant)

    def _weights(self, values: FloatArray, basis: IntArray, constant: int) -> FloatArray:
        """The basic solution; weight moves to a constant if rounding left it outside."""
        weights = np.zeros(self.constraints.shape[1])
        members = basis < len(weights)
        weights[basis[members]] = np.where(values[members] > ROUNDING, values[members], 0.0)
        weights /= weights.sum()
        used = self.constraints @ weights
        over = used > self.limits + ROUNDING
        if over.any():
            weights *= float((self.limits[over] / used[over]).min())
            weights[constant] += 1.0 - weights.sum()
        return weights


def cheapest_mixtures(costs: FloatArray, constraints: FloatArray, limit: float) -> FloatArray:
    """The cheapest weights (..., M) of a `MixtureProgram` for each of the constraints (..., rows,
    M), all pivoted together; members 0 and 1 have zeros in every row.

    For forecasts, which ask for many at once: a pivot of numpy costs hardly more for ten small
    programs than for one.
    """
    many = constraints.reshape(-1, *constraints.shape[-2:])
    count, slacks, members = many.shape
    scale = float(np.abs(costs).max()) or 1.0
    rows = np.concatenate([np.ones((count, 1, members)), many], axis=1)
    columns = np.concatenate(
        [rows, np.broadcast_to(np.eye(slacks + 1)[:, 1:], (count, slacks + 1, slacks))], axis=2
    )
    prices = np.concatenate([costs / scale, np.zeros(slacks)])
    right = np.concatenate([[1.0], np.full(slacks, limit)])
    constant, each = int(np.argmin(costs[:2])), np.arange(count)
    basis = np.tile(np.concatenate([[constant], members + np.arange(slacks)]), (count, 1))
    for pivot in range(MOST_PIVOTS):
        inverse = np.linalg.inv(np.take_along_axis(columns, basis[:, np.newaxis], axis=2))
        reduced = prices - ((prices[basis][:, np.newaxis] @ inverse) @ columns)[:, 0]
        np.put_along_axis(reduced, basis, 0.0, axis=1)
        first = pivot >= MOST_PIVOTS // 2
        entering = np.argmax(reduced < -PIVOT_GAIN, axis=1) if first else np.argmin(reduced, axis=1)
        going = np.flatnonzero(reduced[each, entering] < -PIVOT_GAIN)
        if not len(going):
            break
        direction = (inverse @ columns[each, :, entering][..., np.newaxis])[..., 0]
        values, ratios = np.maximum(inverse @ right, 0.0), np.full(basis.shape, np.inf)
        np.divide(values, direction, out=ratios, where=direction > 1e-12)
        basis[going, np.argmin(ratios, axis=1)[going]] = entering[going]
    values = np.linalg.inv(np.take_along_axis(columns, basis[:, np.newaxis], axis=2)) @ right
    weights = np.zeros((count, members + slacks))
    np.put_along_axis(weights, basis, np.where(values > ROUNDING, values, 0.0), axis=1)
    weights = weights[:, :members] / weights[:, :members].sum(axis=1, keepdims=True)
    worst = (many @ weights[..., np.newaxis])[..., 0].max(axis=1, initial=0.0)
    outside = worst > limit + ROUNDING
    weights[outside] *= (limit / worst[outside])[:, np.newaxis]
    weights[outside, constant] += 1.0 - weights[outside].sum(axis=1)
    return np.asarray(weights.reshape(*constraints.shape[:-2], members))


DOUBT, TRUST, SURE = 0.5, 1.5, 2.0
"""A learned policy that saves less than DOUBT standard errors has no weight, from TRUST of them on
all that is certified; audits are spent for what it saves beyond SURE of them."""


@dataclass(frozen=True)
class Saving:
    """What a learned policy is estimated to save per person over the better constant (0: accept, 1:
    reject), with its standard error.

    Without this caution estimates that are the best of many by chance are deployed, and the learner
    ends worse than the constant by more than its audits cost (false accepts 10 times as expensive,
    200,000 rounds: by up to 6,000).
    """

    constant: int
    saved: float
    error: float

    @classmethod
    def of(cls, acceptance: FloatArray, cost: FloatArray, variance: FloatArray) -> "Saving":
        """acceptance: the policy's on some rows; cost, variance: of accepting all people of a row,
        per person.
        """
        constant = 0 if cost.sum() <= 0 else 1
        change = (1.0 - constant) - acceptance
        return cls(constant, float(change @ cost), float(np.sqrt(variance @ change**2)))

    @property
    def trusted(self) -> float:
        """How much of its weight the policy keeps: 0 below DOUBT standard errors, 1 above TRUST."""
        doubt, trust = self.saved - DOUBT * self.error, (TRUST - DOUBT) * self.error
        return float(np.clip(doubt / trust, 0.0, 1.0)) if trust > 0 else float(doubt > 0)
