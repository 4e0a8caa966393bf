"""The net of fair policies that EXP4 runs over (section 2 of the paper, "baseline approaches").

One constraint makes mixtures of two rules suffice (Lemma 3.4), and "an appropriate discretization"
makes them finitely many. Rule r has the cost c_r and the gaps g_r on the exploration's sample. The
net is

    every rule r with |g_r| <= limit, and
    for every pair r < s the mixtures w r + (1 - w) s, 0 < w < 1, with
        w = low and w = high, the ends of the pair's interval of fair weights
        w = k / m for whole k with low < k / m < high

    [low, high] = {w in [0, 1] : |w g_r + (1 - w) g_s| <= limit for every gap}

The ends are what makes it a net of the *fair* policies. The cheapest fair mixture is a fair rule
or lies at the end of some pair's interval, because cost and gaps are linear in w: so the optimum is
in the net exactly, for any costs. A grid of weights alone misses it by a constant, which is regret
linear in T, and where low and high fall between two points of the grid it misses the pair.

**Its size** is about m |H|^2 / 2: exponential in the number of bits that describe a rule, which is
why the paper goes on to an algorithm that asks an oracle. **Its cost** here is |H|^2 / 2 pairs,
whatever m is: within a pair the cost is linear in w, so exponential weights over k are a geometric
series,

    sum_{i<n} e^(-s i)                    = (1 - e^(-n s)) / (1 - e^(-s))
    sum_{i<n} i e^(-s i) / the sum above  = 1 / (e^s - 1) - n / (e^(n s) - 1)

Pairs are taken in blocks, so memory does not depend on |H|^2. With several rates or more than two
groups the net has the best *pair*; the best mixture of three rules is then not in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.words import BoolArray, FloatArray, IntArray

MOST_PAIRS = 12_800_000
"""Pairs of rules that a net may have: 5,060 rules. More would take minutes for every renewal."""
BLOCK = 1 << 16
"""Pairs that are worked on at a time."""
SHORT = 1e-2
"""Below this value of n s the mean of the geometric series is taken from its power series."""


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Some pairs with fair weights: the rules, the ends, and the grid points between the ends.

    first, second, low, high, least, count (pairs,): rules r and s; the ends; the smallest whole k
    between the ends, and how many there are.
    """

    first: IntArray
    second: IntArray
    low: FloatArray
    high: FloatArray
    least: FloatArray
    count: FloatArray

    @property
    def has_low(self) -> BoolArray:
        """Where the lower end is a member of its own, and not one of the two rules."""
        return np.asarray((self.low > 0) & (self.low < 1))

    @property
    def has_high(self) -> BoolArray:
        """Where the upper end is a member of its own, and neither the rule r nor the lower end."""
        return np.asarray((self.high < 1) & (self.high > self.low))


@dataclass(frozen=True, eq=False)
class FairNet:
    """The net over some rules, and exponential weights over it.

    costs (rules,): what each rule costs. gaps (K, rules): its gaps. limit: the largest gap of a
    member. grid: m.
    """

    costs: FloatArray
    gaps: FloatArray
    limit: float
    grid: int

    def __post_init__(self) -> None:
        rules = len(self.costs)
        pairs = rules * (rules - 1) // 2
        if pairs > MOST_PAIRS:
            raise InvalidInput(
                f"the net of fair pairs of {rules} rules has {pairs} pairs and about "
                f"{pairs * self.grid:.0e} members",
                requirement=f"exponential weights over it are kept for at most {MOST_PAIRS} pairs: "
                "this baseline's cost grows with the square of the class, which is exponential in "
                "the number of bits that describe a rule",
                hint="use a smaller class, or TwoPhaseLearner, which asks an oracle and needs no "
                "net.",
                argument="hypotheses",
            )

    @property
    def size(self) -> int:
        """How many members the net has."""
        members = int(self._fair_rules.sum())
        for pairs in self._blocks():
            members += int(pairs.count.sum() + pairs.has_low.sum() + pairs.has_high.sum())
        return members

    def mean(self, rate: float) -> FloatArray:
        """(rules,): the mean of the net's members under P_i = exp(-rate cost_i) / sum_j
        exp(-rate cost_j), as weights of rules.
        """
        total = _Total(len(self.costs))
        fair = np.flatnonzero(self._fair_rules)
        total.add(-rate * self.costs[fair], fair, fair, np.ones(len(fair)))
        for pairs in self._blocks():
            start = self.costs[pairs.second]
            slope = self.costs[pairs.first] - start
            for weight, member in ((pairs.low, pairs.has_low), (pairs.high, pairs.has_high)):
                log_mass = -rate * (start + weight * slope)
                total.add(
                    log_mass[member], pairs.first[member], pairs.second[member], weight[member]
                )
            inner = pairs.count > 0
            log_mass, weight = _geometric(
                pairs.least[inner],
                pairs.count[inner],
                start[inner],
                slope[inner],
                rate=rate,
                grid=self.grid,
            )
            total.add(log_mass, pairs.first[inner], pairs.second[inner], weight)
        return np.asarray(total.mass / total.mass.sum())

    @property
    def _fair_rules(self) -> BoolArray:
        return np.asarray(np.abs(self.gaps).max(axis=0) <= self.limit)

    def _blocks(self) -> Iterator[_Pairs]:
        """All pairs that have fair weights, a block of first rules at a time."""
        rules = len(self.costs)
        step = max(1, BLOCK // rules)
        for start in range(0, rules - 1, step):
            firsts = np.arange(start, min(start + step, rules - 1))
            later = np.arange(rules) > firsts[:, np.newaxis]
            place, second = np.nonzero(later)
            first = firsts[place]
            low, high = fair_weights(self.gaps[:, first], self.gaps[:, second], self.limit)
            some = low <= high
            low = low[some]
            high = high[some]
            # whole k with low < k/m < high
            least = np.floor(low * self.grid) + 1
            most = np.ceil(high * self.grid) - 1
            count = np.maximum(most - least + 1, 0.0)
            yield _Pairs(first[some], second[some], low, high, least, count)


def fair_weights(
    first: FloatArray, second: FloatArray, limit: float
) -> tuple[FloatArray, FloatArray]:
    """The ends of {w in [0, 1] : |w g + (1 - w) g'| <= limit} for the gaps g (K, pairs) of the
    first and g' of the second rules; low > high where no weight is fair.
    """
    low = np.zeros(first.shape[1])
    high = np.ones(first.shape[1])
    for g, other in zip(first, second, strict=True):
        # -limit <= other + w (g - other) <= limit
        slope = g - other
        flat = slope == 0
        safe = np.where(flat, 1.0, slope)
        one = (-limit - other) / safe
        two = (limit - other) / safe
        inside = np.abs(other) <= limit
        low = np.maximum(low, np.where(flat, np.where(inside, 0.0, np.inf), np.minimum(one, two)))
        high = np.minimum(
            high, np.where(flat, np.where(inside, 1.0, -np.inf), np.maximum(one, two))
        )
    return low, high


def _geometric(
    least: FloatArray,
    count: FloatArray,
    start: FloatArray,
    slope: FloatArray,
    *,
    rate: float,
    grid: int,
) -> tuple[FloatArray, FloatArray]:
    """The logarithm of sum_k exp(-rate (start + slope k/m)) over `count` values of k from `least`
    on, and the mean of k/m under these weights.
    """
    # counted from the cheap end, each step of k multiplies the weight by e^(-s), s >= 0
    s = rate * np.abs(slope) / grid
    upwards = slope >= 0
    cheapest = np.where(upwards, least, least + count - 1)
    log_first = -rate * (start + slope * cheapest / grid)
    flat = s == 0
    safe = np.where(flat, 1.0, s)
    series = np.where(flat, count, np.expm1(-count * safe) / np.expm1(-safe))
    # 1/(e^s - 1) - n/(e^(ns) - 1) = (n - 1)/2 - (n^2 - 1) s/12 + (n^4 - 1) s^3/720 - ...: the
    # difference loses its digits where n s is small
    short = (count - 1) / 2 - (count**2 - 1) * s / 12 + (count**4 - 1) * s**3 / 720
    long = 1.0 / np.expm1(np.minimum(safe, 700.0)) - count / np.expm1(
        np.minimum(count * safe, 700.0)
    )
    steps = np.where(count * s < SHORT, short, np.clip(long, 0.0, count - 1))
    mean = (cheapest + np.where(upwards, steps, -steps)) / grid
    return log_first + np.log(series), mean


class _Total:
    """Sums of exp(log mass) on rules, relative to the largest log mass so far."""

    def __init__(self, rules: int) -> None:
        self.mass = np.zeros(rules)
        self.largest = -np.inf

    def add(
        self, log_mass: FloatArray, first: IntArray, second: IntArray, weight: FloatArray
    ) -> None:
        """Members with this logarithm of their mass, each `weight` of one rule and the rest of
        another.
        """
        if len(log_mass) == 0:
            return
        top = float(log_mass.max())
        if top > self.largest:
            self.mass *= np.exp(self.largest - top)
            self.largest = top
        mass = np.exp(log_mass - self.largest)
        self.mass += np.bincount(first, mass * weight, len(self.mass))
        self.mass += np.bincount(second, mass * (1.0 - weight), len(self.mass))
