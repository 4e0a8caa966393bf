"""Pooled costs with priced exploration: which certified mixture is deployed next (beyond the
paper).

It serves the classes that are enumerated: finite ones, thresholds and stumps.

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

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from evenhand.estimation import RoundLog, TransformedLoss, doubly_robust
from evenhand.estimation.log import Contexts, find_contexts
from evenhand.estimation.outcomes import PRIOR, OutcomeRegression, TabularOutcome
from evenhand.fairness.rates import Rate
from evenhand.learners.certified.deployable import CertifiedSet, MixtureProgram
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

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
SURE = 0.01
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
    spread = float(
        ((residual**2 - squares)[several] / labels**2).sum() / ((labels - 1.0) / labels).sum()
    )
    noise = float((mean * (1.0 - mean))[several].mean())
    return (
        float(np.clip(noise / spread - 1.0, LEAST_PRIOR, MOST_PRIOR)) if spread > 0 else MOST_PRIOR
    )


@dataclass(frozen=True, eq=False)
class Objective:
    """J, see the top of the module.

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
        from scipy.special import (
            spence,
        )  # integral from 0 to x of ln(1 + u) du / u = -spence(1 + x)

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
            vertices, weights = (
                np.concatenate([vertices, vertex[np.newaxis]]),
                np.append(weights, 0.0),
            )
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
            m = np.clip(bad * self.negative + good * (1.0 - self.negative), SURE, 1.0)
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
