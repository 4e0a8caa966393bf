"""What is not known is worth exploring: the certified mixture Q with the least J.

For enumerable classes (finite ones, thresholds and stumps) the policy mu + (1 - mu) Q is deployed
whose Q minimises

    J(Q) = (1 - mu) cost(Q) + sum_k g_k F(z_k),    z_k = t V_k(p) / V_k(p_bar),
    p = mu + (1 - mu) Q.A

which is derived in docs/notes/choosing-a-policy.md.

    symbol   name here                 meaning
    mu       floor                     probability of the audit coin
    A        accepts (members, cells)  who accepts whom; people whom no member tells apart are one
                                       cell
    cost     costs (members,)          cost per person of accepting as each member does
    g_k      worth (K,)                what it costs per person now that k is not known
    V_k(p)   fixed a_k, spread b_kx    variance that one round leaves in k: a_k + sum_x b_kx / p_x
    p_bar    before (cells,)           probability with which people were accepted so far
    t, l, N  rounds, length, ahead     rounds so far, of the next epoch, and after it
    I        information (K,)          evidence at hand, t / V(p_bar)
    tau      target                    the cheapest mixture that the middles of the intervals call
                                       fair

Nothing here enters a certificate: Q is a mixture of `deployable` whatever J says.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenhand.algorithms.certified.cost_posterior import PooledCosts
from evenhand.algorithms.certified.deployable import CertifiedSet
from evenhand.algorithms.certified.simplex import MixtureProgram
from evenhand.algorithms.certified.state import gaps_between
from evenhand.fairness.rates import Rate
from evenhand.words import FloatArray, IntArray

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
class FrankWolfeResult:
    """Q, and what it took: steps of Frank-Wolfe, calls of its oracle, and whether it halted by
    itself.
    """

    weights: FloatArray
    steps: int
    oracle_calls: int
    halted: bool


@dataclass(frozen=True, eq=False)
class Unknown:
    """Something that is not known yet, a gap or the costs: g_k, a_k and b_k (cells,)."""

    worth: float
    fixed: float
    spread: FloatArray


@dataclass(frozen=True, eq=False)
class Exploration:
    """The question which certified mixture has the least J; `deployable` has one row per cell.

    Rows of `deployable.lower` are the gaps, for each rate and pair (earlier, later) of the groups.
    group, weight, negative, cell (n,): past people by whom the variance of the certificate is
    forecast, with the code of their group, m = P[y = -1 | x] and their cell. rounds: t; length: l;
    ahead: N. more_audits: whether exploration may raise the weight of accept-all in Q above that in
    the cheapest mixture; most_audits: how far at most.
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
    more_audits: bool
    most_audits: float = 1.0

    def with_audit_coin(
        self, affordable: float, generator: np.random.Generator
    ) -> FrankWolfeResult:
        """mu + (1 - mu) Q, of which all of `deployable` is true. affordable: the weight of
        accept-all for which audits stay within their budget.
        """
        floor = self.floor
        most = (affordable - floor) / max(1.0 - floor, 1e-12)
        most_audits = float(np.clip(most, 0.0, 1.0))
        permitted = self.deployable
        # the audit budget outranks the floor of a cap
        if permitted.beside_audit_coin(floor).least > most_audits:
            permitted = permitted.without_floor()
        beside = permitted.beside_audit_coin(floor)
        found = replace(self, deployable=beside, most_audits=most_audits).best(generator)
        weights = (1.0 - floor) * found.weights
        weights[0] += floor
        return replace(found, weights=permitted.repair_cap(weights, floor))

    def best(self, generator: np.random.Generator) -> FrankWolfeResult:
        """Q, if `deployable` is what it may be. Costs are drawn from their posterior."""
        deployable = self.deployable
        costs = self.costs
        price_of = deployable.accepts @ costs.cost
        program, fair = deployable.programs(self.most_audits)
        cheapest = program.cheapest(price_of)
        target = fair.cheapest(price_of)
        drawn = costs.drawn(generator, DRAWS) @ deployable.accepts.T
        others = np.array([fair.cheapest(price) for price in drawn])
        # what is not known yet: the certificate of each gap, and the costs
        extra_cost = max(float(price_of @ (cheapest - target)), 0.0)
        unknown = [*self._gaps(target, extra_cost), self._costs(target, others, drawn)]
        unknown = [one for one in unknown if one.worth > 0 and one.spread.sum() > 0]
        if not unknown:
            return FrankWolfeResult(cheapest, 0, 1, halted=True)
        fixed_coin = not self.more_audits and deployable.least == 0.0
        if fixed_coin and cheapest[0] < self.most_audits:
            program = deployable.programs(float(cheapest[0]))[0]
        solution = Objective(
            costs=price_of,
            accepts=deployable.accepts,
            floor=self.floor,
            worth=np.array([one.worth for one in unknown]),
            fixed=np.array([one.fixed for one in unknown]),
            spread=np.array([one.spread for one in unknown]),
            before=np.maximum(costs.acceptance, self.floor),
            rounds=self.rounds,
            length=self.length,
            ahead=self.ahead,
        ).minimise(program, cheapest)
        weights = np.where(solution.weights > FEWEST, solution.weights, 0.0)
        calls = solution.oracle_calls + DRAWS + 2
        return replace(solution, weights=weights / weights.sum(), oracle_calls=calls)

    def _gaps(self, target: FloatArray, extra_cost: float) -> list[Unknown]:
        """The gaps whose ends are above the limit under the target. They share what that costs in
        proportion to how much is missing.
        """
        deployable = self.deployable
        above = np.maximum(deployable.upper @ target, -deployable.lower @ target)
        above = np.maximum(above - deployable.limit, 0.0)
        members = np.flatnonzero(target[2:] > 0) + 2
        if not (above > 0).any() or not len(members) or not self.weight.sum() > 0:
            return []
        tau = target[members] / target[members].sum()
        decides = deployable.accepts[np.ix_(members, self.cell)]
        parts = (above / above.sum()).tolist()
        gaps = gaps_between(self.rates, self.groups)
        return [
            Unknown(extra_cost * part, *self._variance(rate, (earlier, later), tau, decides))
            for (rate, earlier, later), part in zip(gaps, parts, strict=True)
            if part > 0
        ]

    def _variance(
        self, rate: Rate, pair: tuple[int, int], tau: FloatArray, decides: FloatArray
    ) -> tuple[float, FloatArray]:
        """a and b of one gap. tau: the weights of the target's learned members; decides: whom of
        the past people each of them accepts.
        """
        fraction = self.weight / self.weight.sum()
        bad, good = rate.in_denominator(np.array([-1, 1]))
        m = np.clip(bad * self.negative + good * (1.0 - self.negative), LEAST_CHANCE, 1.0)
        squares = np.zeros(len(fraction))
        for j in pair:
            inside = np.where(self.group == j, fraction, 0.0)
            size = max(float(inside @ m), SHARE_FLOOR)
            deviation = decides - (decides @ (inside * m) / size)[:, np.newaxis]
            squares += tau @ deviation**2 * inside / size**2
        cells = self.deployable.accepts.shape[1]
        if bad and good:  # no label is needed
            return float(squares.sum()), np.zeros(cells)
        unsure = squares * m * (1.0 - m)
        of_cells = np.bincount(self.cell, unsure, cells).astype(np.float64, copy=False)
        return float(squares @ m**2), of_cells

    def _costs(self, target: FloatArray, others: FloatArray, drawn: FloatArray) -> Unknown:
        """The costs. drawn: the prices of members by the posterior; others: what would be the
        target by each.
        """
        costs = self.costs
        lost = max(float((drawn @ target - (drawn * others).sum(axis=1)).mean()), 0.0)
        differs = (((others - target) @ self.deployable.accepts) ** 2).mean(axis=0)
        noise = differs * costs.stake**2 * costs.chance * (1.0 - costs.chance)
        noise = np.divide(noise, costs.fraction, out=np.zeros_like(noise), where=costs.fraction > 0)
        return Unknown(lost, 0.0, noise)


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

    def minimise(self, program: MixtureProgram, start: FloatArray) -> FrankWolfeResult:
        """Frank-Wolfe. Each step asks the oracle for one more vertex, and then shifts weight among
        those found, pairwise: from the vertex that costs most at the margin to the cheapest one."""
        rest = 1.0 - self.floor
        stop = TOLERANCE * float(self.worth.sum())
        vertices = start[np.newaxis]
        weights = np.ones(1)
        rows = rest * (vertices @ self.accepts)
        prices = rest * (vertices @ self.costs)
        p = self.floor + rows[0]
        for calls in range(1, MOST_STEPS + 1):
            pull = self._pull(p)
            gradient = rest * (self.costs - self.accepts @ pull)
            vertex = program.cheapest(gradient)
            if float(weights @ (prices - rows @ pull) - gradient @ vertex) <= stop:
                return FrankWolfeResult(weights @ vertices, calls - 1, calls, halted=True)
            vertices = np.concatenate([vertices, vertex[np.newaxis]])
            weights = np.append(weights, 0.0)
            rows = np.concatenate([rows, rest * (vertex @ self.accepts)[np.newaxis]])
            prices = np.append(prices, rest * float(vertex @ self.costs))
            for _ in range(SHIFTS):
                slopes = prices - rows @ pull
                to = int(slopes.argmin())
                off = int(np.where(weights > 0, slopes, -np.inf).argmax())
                if slopes[off] - slopes[to] <= 0.3 * stop:
                    break
                most = float(weights[off])
                shift = self._shift(p, rows[to] - rows[off], float(prices[to] - prices[off]), most)
                weights[to] += shift
                weights[off] = most - shift
                p = self.floor + weights @ rows
                pull = self._pull(p)
            kept = weights > 0
            vertices = vertices[kept]
            rows = rows[kept]
            prices = prices[kept]
            weights = weights[kept] / weights[kept].sum()
        return FrankWolfeResult(weights @ vertices, MOST_STEPS, MOST_STEPS, halted=False)

    def _shift(self, p: FloatArray, move: FloatArray, price: float, most: float) -> float:
        """argmin over 0 <= s <= most of J along p + s move: Newton's method, kept between what is
        known to be too little and too much."""
        shift = 0.0
        least = 0.0
        largest = most
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
