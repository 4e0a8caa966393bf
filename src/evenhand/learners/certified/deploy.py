"""Which policy is deployed next: a choice among certified mixtures, from closed cohorts alone.

**What may be deployed.** Each hypothesis h has intervals [lower_kh, upper_kh] for its true gaps
(constants: [0, 0]). A mixture pi is deployable if for every k

    sum_h pi(h) upper_kh <= limit   and   sum_h pi(h) lower_kh >= -limit.

These are linear constraints in pi, so the cheapest deployable policy is a small linear program over
the hypotheses that have intervals.

**What is deployed.** Classes that are enumerated (finite ones, thresholds and stumps) choose by
pooled costs and the price of what is not known yet, which is beyond the paper; fitted ones by
Algorithm 1, with the audits that `forecast` expects to pay.

**Costs.** People whom no member of the class tells apart are one cell x. Every policy accepts all
people of a cell with the same probability, so the accepted of a cell are a random sample of it,
whichever policies accepted them, and all its labels count alike, without 1/p:

    cost of accepting x = n_x (m_x fa - (1 - m_x) fr) / M
    m_x = m + (sum over the accepted of x of 1[y = -1] - m) / (acc_x + s)

with n_x people and acc_x labels of the cell, m the forecast (the overall share of bad outcomes
where contexts repeat, else the outcome regression) and s the number of imaginary people whom the
forecast is worth; s follows from the spread of the cells' own shares around it.

**The price of exploration.** Q is a certified mixture, mu the audit coin, A the members' decisions;
the next epoch accepts with p = mu + (1 - mu) Q.A. Of all certified mixtures the one with the least

    J(Q) = (1 - mu) cost(Q) + sum_k g_k F(z_k),    z_k = t V_k(p) / V_k(p_bar)
    F(z) = -1/3 integral from l to l + N of ln(1 + 3r / (2z)) dr / r

is deployed for l rounds, after t rounds and with N rounds ahead of it. Each k is something that is
not known yet: g_k is what that costs per person now, V_k(p) = a_k + sum_x b_kx / p_x is the
variance that one round leaves in it, and p_bar is the probability with which people were accepted
so far. So z_k counts the rounds like the next ones that would have shown what is known today. The k
are

- the certificate of each gap that keeps the *target* from being deployed, the cheapest mixture that
  the middles of the intervals call fair. g is the cost of the cheapest certified mixture minus that
  of the target, shared among the gaps by how far their ends are above the limit; V(p) = sum_h tau_h
  sum_x w_x c_a^2 (h - f_a)^2 (m^2 + m (1 - m) / p) is the variance of the increments of the betting
  bound, tau the learned part of the target. Bounds that look at audits alone have m / (weight of
  accept-all) in the last bracket.
- the costs. If they are drawn from their posterior, the cheapest fair mixture is another one; g is
  what the target costs above it, on average over a few draws. V(p) = sum_x d_x^2 s_x^2 m_x (1 -
  m_x) / (n_x p_x) with s_x = n_x (fa + fr) / M, and d_x^2 the mean square by which the two accept
  differently.

*Why F.* What is not known costs g sqrt(I / (I + more)), because widths fall like 1/sqrt(evidence);
I = t / V(p_bar) is the evidence at hand, and a round brings 1/V more. Later epochs buy evidence,
too: where it has a constant price, the stock for which price times I plus t g sqrt(1/I) is least
grows like t^(2/3), so that after r rounds it is I (1 + 3r / (2z))^(2/3), which begins with 1/V a
round. A little more of it saves (g / 2I) / (1 + 3r / (2z)) per person r rounds from now. The rounds
from l to l + N, and -dV / V^2 for the evidence that a round of this epoch brings, give

    dJ/dV = (g / 3V) ln((2z + 3l + 3N) / (2z + 3l)) = g dF/dV.

F is the mean logarithm of the widths ahead, over logarithmic time. No constant in it is tuned. J is
convex: 1/V is concave in p (a harmonic mean), and -dJ/d(1/V) = g integral of dr / (2I + 3r/V) falls
in 1/V. So Frank-Wolfe with the linear program over certified members finds its least value.

**Validity.** Nothing here enters the certificate. Q is computed from closed cohorts before the
coins of its epoch are tossed. It is a mixture of members and constants that meets the limit for all
values that the intervals allow, mixing it with accept-all keeps it so, and mu > 0 keeps every
probability of being accepted above 0. So what is deployed is predictable and certified, whatever
the forecasts are worth: a poor one costs regret.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np

from evenhand.bandit import PracticalSchedule, coordinate_descent, explored
from evenhand.bandit.coordinate_descent import OracleAnswer
from evenhand.contracts import GroupUse, Hypothesis
from evenhand.estimation import EstimatedLoss, RoundLog, TransformedLoss, doubly_robust
from evenhand.estimation.log import Contexts, find_contexts
from evenhand.estimation.outcomes import PRIOR, OutcomeRegression, TabularOutcome, fit_outcomes
from evenhand.fairness.rates import Rate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners.certified.evidence import group_codes
from evenhand.learners.certified.forecast import (
    HALF,
    LITTLE,
    MOST_PIVOTS,
    PIVOT_GAIN,
    ROUNDING,
    Prospect,
)
from evenhand.learners.certified.intervals import AuditProcess
from evenhand.learners.certified.nomination import ForetoldPeople
from evenhand.learners.certified.run import CertificationRun, GapLimits
from evenhand.learners.epochs import Epoch
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

# what may be deployed

FRESH_INVERSE = 20
"""After so many pivots the inverse of the basis is computed afresh."""


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

    def cheapest(self, acceptance_cost: FloatArray) -> OracleAnswer:
        """argmin over deployable pi of sum_i acceptance_cost_i P[pi(x_i) = +1]."""
        program = MixtureProgram(self.constraints, self.limit)
        weights = program.cheapest(self.accepts @ acceptance_cost)
        support = np.flatnonzero(weights)
        return OracleAnswer(self.mixture(weights), weights[support] @ self.accepts[support])

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
        self.constraints = constraints
        self.limits = np.broadcast_to(np.asarray(limits, dtype=np.float64), (rows,))
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
            bland = pivot >= MOST_PIVOTS // 2
            entering = int((reduced < -PIVOT_GAIN).argmax() if bland else reduced.argmin())
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


# what it costs, and what exploration is worth

LEAST_PRIOR, MOST_PRIOR = 0.5, 64.0
"""Between which numbers of imaginary people a forecast is worth."""
WEIGHT_CAP = 10.0
"""Importance weights are capped here in the *costs*, where labels cannot be pooled; the certificate
never caps.
"""
DRAWS = 10
"""Cost vectors drawn from the posterior."""
MOST_STEPS = 15
"""Calls of the oracle; with SHIFTS shifts of weight after each, J is then within about a percent of
what can be gained.
"""
SHIFTS = 3
TOLERANCE = 0.01
"""Frank-Wolfe stops when J can fall by no more than this part of the g_k."""
SHARE_FLOOR = 1e-3
LEAST_CHANCE = 0.01
"""A forecast is never surer than this of an outcome, so that no variance vanishes."""
FEWEST = 1e-9
"""Smaller weights of a mixture are rounding."""


@dataclass(frozen=True, eq=False)
class PooledCosts:
    """What accepting everybody in each cell costs per person of the population, and how well that
    is known.

    accepts (members, cells): people whom no member tells apart are one cell; of_past: the cell of
    each of the past people. cost, stake (cells,): the cost is cost + (m_x - chance) stake if the
    share of bad outcomes is m_x. chance: its estimate; labels: how many labels, the imaginary ones
    included, it rests on. share: of the people; acceptance: with which probability they were
    accepted so far. error: None, or the standard errors of the costs where labels could not be
    pooled.
    """

    accepts: BoolArray
    of_past: IntArray
    cost: FloatArray
    stake: FloatArray
    chance: FloatArray
    labels: FloatArray
    share: FloatArray
    acceptance: FloatArray
    error: FloatArray | None = None

    @classmethod
    def of(
        cls,
        log: RoundLog,
        past: tuple[FloatArray, GroupArray | None],
        table: Callable[[FloatArray, GroupArray | None], BoolArray],
        regression: OutcomeRegression,
        loss: TransformedLoss,
    ) -> "PooledCosts":
        """Pool the labels of each cell. Where most labels are alone in their cells, there is
        nothing to pool: the regression is then corrected by weighted labels, which stays right if
        the regression is wrong.

        past: features and group of past people; table: which member accepts which row.
        """
        accepts, contexts, of_contexts, of_past = _cells(log, past, table)
        of_log, size, rounds = of_contexts[contexts.index], accepts.shape[1], log.rounds

        def total(column: FloatArray, place: IntArray = of_log) -> FloatArray:
            return np.asarray(np.bincount(place, weights=column, minlength=size), dtype=np.float64)

        swing, of_reject = loss.per_row(log.prices, len(log.features))
        if isinstance(regression, TabularOutcome):  # its contexts are the cells, or parts of them
            forecast = np.full(len(log), regression.overall)
        else:
            forecast = regression.negative_probability(log.features)
        people, accepted = total(log.count), total(log.accepted)

        def mean_of(column: FloatArray, nobody: float) -> FloatArray:
            means = np.full(size, nobody)
            np.divide(total(log.count * column), people, out=means, where=people > 0)
            return means

        mean, stake = mean_of(forecast, 0.5), total(log.count * swing)
        residual = total(log.negative - log.accepted * forecast)
        squares = total(log.negative * (1.0 - forecast) ** 2 + log.positive * forecast**2)
        labels = accepted + _imaginary_people(residual, squares, accepted, mean)
        chance, error = np.clip(mean + residual / labels, 0.0, 1.0), None
        cost = total(log.count * (forecast * swing - of_reject)) + (chance - mean) * stake
        if accepted[accepted >= 2].sum() < accepted.sum() / 2:
            estimated, variance = doubly_robust(log, regression, loss, cap=WEIGHT_CAP)
            cost = total(estimated.acceptance_cost, of_contexts)
            error = np.sqrt(total(variance, of_contexts)) / rounds
        known = (stake / rounds, chance, labels, people / rounds, mean_of(log.acceptance, 1.0))
        return cls(accepts, of_past, cost / rounds, *known, error)

    @property
    def variance(self) -> FloatArray:
        """(cells,): that of the cost, by the posterior."""
        if self.error is not None:
            return np.asarray(self.error**2)
        return np.asarray(self.stake**2 * self.chance * (1.0 - self.chance) / (self.labels + 1.0))

    def drawn(self, generator: np.random.Generator, times: int) -> FloatArray:
        """(times, cells): costs drawn from their posterior, by beta variables or normal errors."""
        shape = (times, len(self.cost))
        if self.error is not None:
            return np.asarray(self.cost + generator.standard_normal(shape) * self.error)
        chance = np.clip(self.chance, 1e-6, 1.0 - 1e-6)
        drawn = generator.beta(self.labels * chance, self.labels * (1.0 - chance), size=shape)
        return np.asarray(self.cost + (drawn - chance) * self.stake)


def _cells(
    log: RoundLog,
    past: tuple[FloatArray, GroupArray | None],
    table: Callable[[FloatArray, GroupArray | None], BoolArray],
) -> tuple[BoolArray, Contexts, IntArray, IntArray]:
    """People whom no member tells apart: accepts (members, cells), the contexts of the log, and the
    cell of each of these and of each of the past people.
    """
    contexts = find_contexts(log.features, log.group)
    shown = None if log.group is None else log.group[contexts.first]
    both = np.concatenate([table(log.features[contexts.first], shown), table(*past)], axis=1)
    cells = find_contexts(np.packbits(both, axis=0).T.astype(np.float64), None)
    of_contexts, of_past = np.split(cells.index, [len(contexts.first)])
    return both[:, cells.first], contexts, of_contexts, of_past


def _imaginary_people(
    residual: FloatArray, squares: FloatArray, accepted: FloatArray, mean: FloatArray
) -> float:
    """s with m (1 - m) / (s + 1) = the variance of the cells' true shares around their forecasts.

    That is the variance of a beta prior. The product of the residuals of two people of one cell has
    it as its mean, whatever noise their labels have: (residual^2 - squares) / (acc (acc - 1)).
    Cells with many labels count alike, and those with two half as much.
    """
    several = accepted >= 2
    if not several.any():
        return PRIOR
    labels = accepted[several]
    products = ((residual**2 - squares)[several] / labels**2).sum()
    spread = float(products / ((labels - 1.0) / labels).sum())
    noise = float((mean * (1.0 - mean))[several].mean())
    if not spread > 0:
        return MOST_PRIOR
    return float(np.clip(noise / spread - 1.0, LEAST_PRIOR, MOST_PRIOR))


@dataclass(frozen=True, eq=False)
class Objective:
    """J, the price of a mixture: see the top of the module.

    costs (members,), accepts (members, cells); worth g (K,), fixed a (K,), spread b (K, cells);
    before: p_bar (cells,); rounds: t, length: l, ahead: N.
    """

    costs: FloatArray
    accepts: FloatArray
    floor: float
    worth: FloatArray
    fixed: FloatArray
    spread: FloatArray
    before: FloatArray
    rounds: float
    length: float
    ahead: float

    @cached_property
    def information(self) -> FloatArray:
        """I = t / V(p_bar)."""
        return np.asarray(self.rounds / (self.fixed + self.spread @ (1.0 / self.before)))

    def value(self, weights: FloatArray) -> float:
        """J of the mixture with these weights."""
        # the integral from 0 to x of ln(1 + u) du / u is -spence(1 + x)
        from scipy.special import spence

        p = self.floor + (1.0 - self.floor) * (weights @ self.accepts)
        scale = 1.5 / (self.information * (self.fixed + self.spread @ (1.0 / p)))
        price = spence(1.0 + scale * (self.length + self.ahead)) - spence(1.0 + scale * self.length)
        return float((1.0 - self.floor) * (self.costs @ weights) + self.worth @ price / 3.0)

    def gradient(self, weights: FloatArray) -> FloatArray:
        """dJ/dQ(h) = (1 - mu) (cost(h) - sum_x h(x) pull_x)."""
        p = self.floor + (1.0 - self.floor) * (weights @ self.accepts)
        return np.asarray((1.0 - self.floor) * (self.costs - self.accepts @ self._pull(p)))

    def _slopes(self, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """g dF/dV and g d2F/dV2."""
        z = self.information * variance
        soon = 2.0 * z + 3.0 * self.length
        late = soon + 3.0 * self.ahead
        first = self.worth / (3.0 * variance) * np.log(late / soon)
        bend = 2.0 * z / late - 2.0 * z / soon
        return first, (self.worth / (3.0 * variance) * bend - first) / variance

    def _pull(self, p: FloatArray) -> FloatArray:
        """What one more unit of p_x is worth: sum_k g_k dF/dV_k b_kx / p_x^2."""
        first, _ = self._slopes(self.fixed + self.spread @ (1.0 / p))
        return np.asarray(first @ self.spread / p**2)

    def minimise(self, program: MixtureProgram, start: FloatArray) -> "Explored":
        """Frank-Wolfe. Each step asks the oracle for one more vertex, and then shifts weight among
        those found, pairwise: from the vertex that costs most at the margin to the cheapest one."""
        rest, stop = 1.0 - self.floor, TOLERANCE * float(self.worth.sum())
        vertices, weights = start[np.newaxis], np.ones(1)
        rows, prices = rest * (vertices @ self.accepts), rest * (vertices @ self.costs)
        p = self.floor + rows[0]
        for calls in range(1, MOST_STEPS + 1):
            pull = self._pull(p)
            gradient = rest * (self.costs - self.accepts @ pull)
            vertex = program.cheapest(gradient)
            if float(weights @ (prices - rows @ pull) - gradient @ vertex) <= stop:
                return Explored(weights @ vertices, calls - 1, calls, halted=True)
            vertices = np.concatenate([vertices, vertex[np.newaxis]])
            weights = np.append(weights, 0.0)
            rows = np.concatenate([rows, rest * (vertex @ self.accepts)[np.newaxis]])
            prices = np.append(prices, rest * float(vertex @ self.costs))
            for _ in range(SHIFTS):
                slopes = prices - rows @ pull
                to, off = int(slopes.argmin()), int(np.where(weights > 0, slopes, -np.inf).argmax())
                if slopes[off] - slopes[to] <= 0.3 * stop:
                    break
                most = float(weights[off])
                shift = self._shift(p, rows[to] - rows[off], float(prices[to] - prices[off]), most)
                weights[to] += shift
                weights[off] = most - shift
                p = self.floor + weights @ rows
                pull = self._pull(p)
            kept = weights > 0
            vertices, rows, prices = vertices[kept], rows[kept], prices[kept]
            weights = weights[kept] / weights[kept].sum()
        return Explored(weights @ vertices, MOST_STEPS, MOST_STEPS, halted=False)

    def _shift(self, p: FloatArray, move: FloatArray, price: float, most: float) -> float:
        """argmin over 0 <= s <= most of J along p + s move: Newton's method, kept between what is
        known to be too little and too much."""
        shift, least, largest = 0.0, 0.0, most
        for _ in range(6):
            at = p + shift * move
            relative = move / at
            slope = -(self.spread @ (relative / at))
            first, second = self._slopes(self.fixed + self.spread @ (1.0 / at))
            down = price + float(first @ slope)
            bend = float(second @ slope**2 + 2.0 * first @ (self.spread @ (relative**2 / at)))
            least, largest = (shift, largest) if down < 0 else (least, shift)
            ahead = shift - down / bend if bend > 0 else largest
            if ahead >= most and largest == most:
                ahead = most
            elif not least < ahead < largest:
                ahead = 0.5 * (least + largest)
            if abs(ahead - shift) <= 1e-3 * most:
                return ahead
            shift = ahead
        return shift


@dataclass(frozen=True, eq=False)
class Explored:
    """Q, and what it took: steps of Frank-Wolfe, calls of its oracle, and whether it halted by
    itself.
    """

    weights: FloatArray
    steps: int
    oracle_calls: int
    halted: bool


@dataclass(frozen=True, eq=False)
class Exploration:
    """The question which certified mixture has the least J; `deployable` has one row per cell.

    Rows of `deployable.lower` are the gaps, for each rate and pair (earlier, later) of the groups.
    group, weight, negative, cell (n,): past people by whom the variance of the certificate is
    forecast, with the code of their group, m = P[y = -1 | x] and their cell. rounds: t; length: l;
    ahead: N. most_audits: the largest weight of accept-all in Q. more_audits: whether
    exploration may raise it above that in the cheapest mixture. audited: None where every accepted
    person is evidence for the certificate; else the share of the people whom the audit coin has
    accepted so far, who alone are.
    """

    deployable: CertifiedSet
    costs: PooledCosts
    rates: tuple[Rate, ...]
    groups: int
    group: IntArray
    weight: FloatArray
    negative: FloatArray
    cell: IntArray
    floor: float
    rounds: float
    length: float
    ahead: float
    most_audits: float
    more_audits: bool
    audited: float | None

    def best(self, generator: np.random.Generator) -> Explored:
        """That mixture. Costs are drawn from their posterior by the generator."""
        deployable, costs = self.deployable, self.costs
        price_of = deployable.accepts @ costs.cost
        program, fair = deployable.programs(self.most_audits)
        cheapest, target = program.cheapest(price_of), fair.cheapest(price_of)
        drawn = costs.drawn(generator, DRAWS) @ deployable.accepts.T
        others = np.array([fair.cheapest(price) for price in drawn])
        # what is not known yet: the certificate of each gap, and the costs
        terms = self._certificate_terms(target)
        worth = [max(float(price_of @ (cheapest - target)), 0.0) * part for part, _, _ in terms]
        worth.append(max(float((drawn @ target - (drawn * others).sum(axis=1)).mean()), 0.0))
        differs = (((others - target) @ deployable.accepts) ** 2).mean(axis=0)
        noise = differs * costs.stake**2 * costs.chance * (1.0 - costs.chance)
        noise = np.divide(noise, costs.share, out=np.zeros_like(noise), where=costs.share > 0)
        fixed, spread = [*(a for _, a, _ in terms), 0.0], [*(b for _, _, b in terms), noise]
        accepts, before = deployable.accepts, np.maximum(costs.acceptance, self.floor)
        if self.audited is not None:  # one more cell, which accept-all alone accepts
            accepts = np.concatenate([accepts, np.eye(len(accepts), 1)], axis=1)
            before = np.append(before, max(self.audited, self.floor))
            spread[-1] = np.append(spread[-1], 0.0)
        real = np.array([g > 0 and b.sum() > 0 for g, b in zip(worth, spread, strict=True)])
        if not real.any():
            return Explored(cheapest, 0, 1, halted=True)
        if not self.more_audits and cheapest[0] < self.most_audits:
            program = deployable.programs(float(cheapest[0]))[0]
        solution = Objective(
            costs=price_of,
            accepts=accepts,
            floor=self.floor,
            worth=np.array(worth)[real],
            fixed=np.array(fixed)[real],
            spread=np.array(spread)[real],
            before=before,
            rounds=self.rounds,
            length=self.length,
            ahead=self.ahead,
        ).minimise(program, cheapest)
        weights = np.where(solution.weights > FEWEST, solution.weights, 0.0)
        calls = solution.oracle_calls + DRAWS + 2
        return replace(solution, weights=weights / weights.sum(), oracle_calls=calls)

    def _certificate_terms(self, target: FloatArray) -> list[tuple[float, float, FloatArray]]:
        """(part of what is missing, a, b) for each gap whose end is above the limit under the
        target.
        """
        deployable, pairs = self.deployable, list(combinations(range(self.groups), 2))
        audits_only = self.audited is not None
        above = np.maximum(deployable.upper @ target, -deployable.lower @ target)
        above = np.maximum(above - deployable.limit, 0.0)
        members = np.flatnonzero(target[2:] > 0) + 2
        if not (above > 0).any() or not len(members) or not self.weight.sum() > 0:
            return []
        part, tau = above / above.sum(), target[members] / target[members].sum()
        decides = deployable.accepts[np.ix_(members, self.cell)]
        share, cells = self.weight / self.weight.sum(), deployable.accepts.shape[1]
        terms: list[tuple[float, float, FloatArray]] = []
        for k in np.flatnonzero(above > 0):
            bad, good = self.rates[k // len(pairs)].in_denominator(np.array([-1, 1]))
            m = np.clip(bad * self.negative + good * (1.0 - self.negative), LEAST_CHANCE, 1.0)
            squares = np.zeros(len(share))
            for j in pairs[k % len(pairs)]:
                inside = np.where(self.group == j, share, 0.0)
                size = max(float(inside @ m), SHARE_FLOOR)
                deviation = decides - (decides @ (inside * m) / size)[:, np.newaxis]
                squares += tau @ deviation**2 * inside / size**2
            if bad and good:  # no label is needed
                a, b = float(squares.sum()), np.zeros(cells + audits_only)
            elif audits_only:
                a, b = 0.0, np.append(np.zeros(cells), float(squares @ m))
            else:
                a = float(squares @ m**2)
                b = np.bincount(self.cell, weights=squares * m * (1.0 - m), minlength=cells)
            terms.append((float(part[k]), a, b))
        return terms


# what is deployed

SCHEDULE = PracticalSchedule(scale=0.3)
"""mu_t = .3 / sqrt(t): the floor of the audit coin, and the regret that the bandit tolerates."""


@dataclass(frozen=True, eq=False)
class Ahead:
    """What was known of the rounds ahead when epoch `number` began, after `start` rounds."""

    number: int
    start: float
    horizon: float
    prospect: Prospect


@dataclass(frozen=True, eq=False)
class Chosen:
    """The policy of an epoch, between which values its gaps lie, and what it took to choose it."""

    policy: Mixture
    gaps: GapLimits
    floor: float
    steps: int
    oracle_calls: int
    halted: bool
    ahead: Ahead | None = None


@dataclass(frozen=True, eq=False)
class Situation:
    """What is known when epoch `number` is planned, after `round` rounds.

    log: all resolved rounds; loss: prices and their normaliser; epochs: those before it.
    budget_left: bad accepts that audits may still cost.
    """

    audit_rate: float | Literal["auto"]
    horizon: int | None
    run: CertificationRun
    log: RoundLog
    loss: TransformedLoss
    epochs: Sequence[Epoch]
    number: int
    round: int
    budget_left: float

    @property
    def floor(self) -> float:
        """mu: the weight of accept-all that every policy has."""
        return self._floor_at(self.log.rounds)

    def _floor_at(self, rounds: float) -> float:
        if self.audit_rate != "auto":
            return float(self.audit_rate)
        return SCHEDULE.exploration_floor(max(1, int(rounds)))

    @property
    def rounds_ahead(self) -> float:
        """Rounds ahead; without a horizon nine times as many as so far, and some."""
        horizon, round = self.horizon, self.round
        return max(float((horizon - round) if horizon is not None else 9 * round + 20_000), 1.0)

    def _affordable(self, length: int) -> float:
        """The weight of accept-all for which an epoch's bad accepts stay within the budget."""
        seen = self.run.evidence
        bad = seen.negatives / seen.accepted if seen.accepted else 0.5
        return self.budget_left / (length * max(bad, 1e-3))

    @cached_property
    def regression(self) -> OutcomeRegression:
        """m(x) = P[y = -1 | x], from all labels."""
        return fit_outcomes(self.log)

    # what may be deployed, and what it costs

    def _certified_set(self, accepts: FloatArray) -> CertifiedSet:
        """The certified hypotheses and the constants, whose gaps are zero, on some rows."""
        members, lower, upper = self.run.certified()
        # one row at a time, so that the result has the memory layout of `accepts`: the last bits of
        # products with it depend on that
        zero, row = np.zeros((len(lower), 2)), np.ones((1, accepts.shape[1]))
        return CertifiedSet(
            (ACCEPT_ALL, REJECT_ALL, *members),
            np.concatenate([row, 0.0 * row, accepts]),
            np.concatenate([zero, lower], axis=1),
            np.concatenate([zero, upper], axis=1),
            self.run.guarantee.limit,
            self.run.guarantee.group_use,
        )

    @cached_property
    def _pooled(self) -> tuple[PooledCosts, CertifiedSet]:
        """What accepting the people of each cell costs, and what may be deployed on them."""
        run, past = self.run, self.run.evidence.past
        shown = past.features, past.group if run.guarantee.group_decides else None
        costs = PooledCosts.of(self.log, shown, run.table, self.regression, self.loss)
        return costs, self._certified_set(costs.accepts.astype(np.float64))

    @cached_property
    def _robust(self) -> tuple[EstimatedLoss, FloatArray]:
        return doubly_robust(self.log, self.regression, self.loss, cap=WEIGHT_CAP)

    @cached_property
    def _estimated(self) -> tuple[CertifiedSet, FloatArray, FloatArray]:
        """What may be deployed, and the cost of accepting all people of each of its columns, per
        person, with its variance. Fitted classes: doubly robust with capped weights.
        """
        if not self.run.guarantee.nominates:
            costs, deployable = self._pooled
            return deployable, costs.cost, costs.variance
        loss, variances = self._robust
        accepts = self.run.table(loss.features, loss.group).astype(np.float64)
        cost, variance = loss.acceptance_cost / loss.rounds, variances / loss.rounds**2
        return self._certified_set(accepts), cost, variance

    # choosing

    def by_price(self, length: int) -> Chosen:
        """The certified mixture with the least J, and the audit coin beside it."""
        run, floor, rounds = self.run, self.floor, self.log.rounds
        costs, deployable = self._pooled
        past, groups, process = run.evidence.past, run.groups or (), run.process
        codes = group_codes(past.group, groups)
        inside = codes >= 0
        chance = self.regression.negative_probability(past.features[inside])
        most = (self._affordable(length) - floor) / max(1.0 - floor, 1e-12)
        explored_mixture = Exploration(
            deployable,
            costs,
            rates=run.guarantee.rates,
            groups=len(groups),
            group=codes[inside],
            weight=past.weight[inside],
            negative=chance,
            cell=costs.of_past[inside],
            floor=floor,
            rounds=rounds,
            length=float(length),
            ahead=max(self.rounds_ahead - length, 0.0),
            most_audits=float(np.clip(most, 0.0, 1.0)),
            more_audits=self.audit_rate == "auto",
            audited=process.audits / rounds if isinstance(process, AuditProcess) else None,
        ).best(stream(run.guarantee.seed, "pricing", self.number))
        weights = (1.0 - floor) * explored_mixture.weights
        weights[0] += floor
        took = explored_mixture.steps, explored_mixture.oracle_calls, explored_mixture.halted
        policy, gaps = _deployed(deployable, weights)
        return Chosen(policy, gaps, floor, *took)

    def by_descent(self, length: int) -> Chosen:
        """Algorithm 1 among deployable mixtures, and then the audits: uncertified mass moves
        between the constants, within the budget of bad accepts.

        Where accepting is a sacrifice, accept-all has at least the share that minimises the
        expected total cost. What the bandit explores beyond it stays if half of the learned weight
        is expected in time, because labels also make better rules; else it is stopped.
        """
        (loss, _), (deployable, cost, variance) = self._robust, self._estimated
        floor, ahead = self._floor_at(loss.rounds), None
        # psi mu = .3 / sqrt(t), also where the user has fixed mu
        tolerated = SCHEDULE.exploration_floor(max(1, int(loss.rounds))) * SCHEDULE.regret_scale
        descent = coordinate_descent(
            loss, deployable, exploration_floor=floor, regret_scale=tolerated / floor, sides=1
        )
        policy = descent.weights.smoothed(floor, explored(1))
        weights = deployable.cautious(deployable.weights_of(policy), cost, variance)
        if self.audit_rate == "auto":
            free, share = weights[0] - floor + weights[1], weights[0] - floor
            # if accepting is a sacrifice: will it pay?
            if loss.acceptance_cost.sum() > 0 and free > LITTLE:
                ahead = self.ahead
            if ahead is not None:
                best = ahead.prospect.best(ahead.start, ahead.horizon)
                in_time = np.isfinite(best.reaches(HALF * ahead.prospect.full))
                share = max(share, best.share * free) if in_time else best.share * free
            share = min(share, max(self._affordable(length) - floor, 0.0), free)
            weights[0], weights[1] = floor + share, free - share
        report = descent.report
        took = report.iterations, report.oracle_calls, report.halted
        policy, gaps = _deployed(deployable, weights)
        return Chosen(policy, gaps, floor, *took, ahead)

    def without_audits(self) -> tuple[Mixture, GapLimits]:
        """The best certified policy, and between which values its gaps lie."""
        deployable, cost, variance = self._estimated
        cheapest = deployable.weights_of(deployable.cheapest(cost).policy)
        return _deployed(deployable, deployable.cautious(cheapest, cost, variance))

    # forecasting

    @cached_property
    def ahead(self) -> Ahead | None:
        """What the rounds after `round` are expected to bring; None if no past people are known."""
        if not len(self.run.evidence.past.weight):
            return None
        start = float(self.round)
        return Ahead(self.number, start, self.round + self.rounds_ahead, self._prospect())

    def _prospect(self) -> Prospect:
        """Who will come, and what is known of the members: all from closed cohorts.

        A member is sure to save what it is estimated to save, less SURE standard errors.
        """
        deployable, cost, variance = self._estimated
        run, (process, groups) = self.run, self.run.running
        others = len(deployable.members) - 2 - len(process.members)
        people = ForetoldPeople.of(run, self.regression)
        shown = people.group if run.guarantee.group_decides else None
        constants = np.repeat([[1.0], [0.0]], len(people.weight), axis=1)
        # costs, and those that are sure
        costs, differs = deployable.accepts @ cost, deployable.accepts @ variance
        constant = int(np.argmin(costs[:2]))
        error = np.sqrt(np.maximum(variance.sum() - differs if constant == 0 else differs, 0.0))
        saved = np.maximum(costs[constant] - costs[2:] - SURE * error[2:], 0.0)
        # past epochs, and which processes saw them
        rounds, played, later = np.r_[0.0, 0.0, process.rounds, np.zeros(others)], [], 0.0
        for epoch, first, stop in reversed(run.closed):
            saw, length = rounds > later, float(stop - first)
            policy = self.epochs[epoch - 1].mixture
            if saw.any():
                acceptance = policy.acceptance(people.features, shown)
                played.append((length, acceptance, policy.weight_of(ACCEPT_ALL), saw))
            later += stop - first
        return Prospect(
            weight=people.weight / people.weight.sum(),
            group=group_codes(people.group, groups),
            negative=people.negative,
            accepts=np.concatenate([constants, run.table(people.features, shown)]),
            cost=costs,
            sure_cost=np.r_[costs[:2], costs[constant] - saved],
            rates=run.guarantee.rates,
            groups=len(groups),
            limit=run.guarantee.limit,
            lower=deployable.lower,
            upper=deployable.upper,
            threshold=np.pad(process.thresholds(), ((0, 0), (2, others))),
            floor=self._floor_at,
            audits_only=run.guarantee.bound not in ("betting", "nominate"),
            played=tuple(played),
        ).narrowed()


def _deployed(deployable: CertifiedSet, weights: FloatArray) -> tuple[Mixture, GapLimits]:
    """The mixture of the members with these weights, and between which values its gaps lie."""
    return deployable.mixture(weights), (deployable.lower @ weights, deployable.upper @ weights)
