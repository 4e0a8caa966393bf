"""The range of a rate where rejected people have no outcome and nobody recorded the probabilities.

Rows are (x, d, y where d = 1), drawn independently from one group; pi(x) is the policy that is
asked about, and people are cut into strata s that were fixed beforehand, with pi constant in each.
A person who was accepted and has no outcome counts as rejected: the outcome is as unknown.

The rate is R = E[pi 1(y = -1)] / P(y = -1) (false positives; exchange the labels, and pi with 1 -
pi, for false negatives). With q_s = P(y = -1 | s, d = 1) and r_s = P(y = -1 | s, d = 0), R is the
root f of

    F(f) = sum_s (pi_s - f) [P(s, d=1) q_s + P(s, d=0) r_s] = 0.

**Sensitivity** (Gamma >= 1): within each stratum the odds of y = -1 among the rejected are within a
factor Gamma of those among the accepted. F grows in r_s where pi_s > f and falls where pi_s < f, so
the *largest* rate is the root of F with r_s = u(q_s) = Gamma q / (1 - q + Gamma q) where pi_s > f
and r_s = l(q_s) = q / (q + Gamma (1 - q)) where pi_s < f. Gamma = infinity: u = 1, l = 0, no
assumption. The smallest rate is one minus the largest of the policy 1 - pi.

**A confidence limit for that root.** q_s is unknown, and plugging in a box of intervals for all
strata is wide. Instead, three steps:

1. u is concave and l convex, so tangents at any q0_s bound them on the side that is needed:
   (pi_s - f) r_s <= (pi_s - f) [r(q0_s) + b_s (q_s - q0_s)], b_s the slope at q0_s.
2. With rho_s = P(s, d=0) / P(s, d=1), P(s,0) (q_s - q0_s) = rho_s P(s,1) (q_s - q0_s). So F(f) <=
E[psi]
   with one number per row, whatever q0 is:

       psi = (pi_s - f) x { 1 + b_s rho_s (1 - q0_s)   if d = 1, y = -1
                            - b_s rho_s q0_s           if d = 1, y = +1
                            r(q0_s)                    if d = 0 }.

3. A mean is tested by betting: q0 and the bet lambda of a block of rows are computed from the rows
   before it. For the true rho, W = prod (1 - lambda psi) is a supermartingale if the largest rate
   is at least f, because then F(f) >= 0. P(W >= 1/alpha) <= alpha.
4. rho is not known. P(d = 0 | s) is a binomial share, and a small part of alpha goes to exact
intervals
   for it; the hypothesis is rejected if W >= 1/alpha for *all* rho in that box. ln W is a sum over
   strata of concave functions of rho_s, so its minimum is at an end of each interval. It costs
   little: where q0 is a good estimate, what rho multiplies nearly sums to zero.

Hypotheses "the largest rate is at least f" are tested from f = 1 downwards, each at level alpha, up
to the first that is not rejected. The first true one in that order is rejected with probability at
most alpha, so no correction is paid for their number.

The policy, the strata and Gamma are fixed beforehand; the log is looked at once.
"""

from dataclasses import dataclass
from math import ceil, inf, isinf, log, sqrt

import numpy as np

from evenhand.bounds.proportions import Interval, difference_interval, proportion_interval
from evenhand.words import BoolArray, FloatArray, IntArray

BOX_PART = 0.1
"""Of alpha goes to the intervals of rho, where Gamma is finite."""
FIRST_PART = 0.1
"""Of the rows serves for the first estimates alone."""
BLOCKS = 16
"""The estimates are made anew so many times."""
STEPS = 400
"""Rates are tested in steps of 1 / STEPS."""
FEWEST = 5
"""A stratum with fewer accepted people with outcomes among the first rows is left without
assumption.
"""
LARGEST_BET = 0.5
"""A row may cost at most this part of the wealth."""

BAD, GOOD, UNKNOWN = range(3)
"""What is seen of a row: accepted with the outcome that counts, accepted with the other one,
neither.
"""


@dataclass(frozen=True, eq=False)
class SeenRows:
    """The rows of one group, in their order.

    stratum: its number, from 0. seen: BAD, GOOD or UNKNOWN. acceptance: pi in each stratum.
    """

    stratum: IntArray
    seen: IntArray
    acceptance: FloatArray

    @property
    def people(self) -> int:
        """How many rows there are."""
        return len(self.seen)

    @property
    def complement(self) -> "SeenRows":
        """The same people under the policy 1 - pi."""
        return SeenRows(self.stratum, self.seen, 1.0 - self.acceptance)

    @property
    def exchanged(self) -> "SeenRows":
        """False negatives as false positives: the labels exchanged, and pi with 1 - pi."""
        other = np.array([GOOD, BAD, UNKNOWN])
        return SeenRows(self.stratum, other[self.seen], 1.0 - self.acceptance)

    def counts(self, first: int, stop: int) -> FloatArray:
        """How many of the rows first, ..., stop - 1 there are, by stratum and what is seen."""
        strata = len(self.acceptance)
        place = 3 * self.stratum[first:stop] + self.seen[first:stop]
        return np.bincount(place, minlength=3 * strata).reshape(strata, 3).astype(np.float64)


def largest_root(weight: FloatArray, acceptance: FloatArray, gamma: float) -> float:
    """The largest rate of known probabilities: the root of F, by bisection.

    weight: P(s, seen), shape (strata, 3). A population without anybody in the denominator: 1 if
    somebody may be accepted, else 0.
    """
    accepted = weight[:, BAD] + weight[:, GOOD]
    share = np.divide(weight[:, BAD], accepted, out=np.full(len(weight), 0.5), where=accepted > 0)
    unknown = np.where(accepted > 0, 1.0, inf)  # nothing is seen, so nothing is assumed

    def excess(f: float) -> float:
        lean = acceptance - f
        upper = lean > 0
        rejected = np.where(np.isinf(unknown), upper.astype(float), odds_times(share, gamma, upper))
        return float(lean @ (weight[:, BAD] + weight[:, UNKNOWN] * rejected))

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return 0.5 * (low + high)


def odds_times(share: FloatArray, gamma: float, upper: BoolArray) -> FloatArray:
    """The largest (`upper`) or smallest share with odds within a factor gamma of those given."""
    if isinf(gamma):
        return np.where(upper, 1.0, 0.0)
    largest = gamma * share / (1.0 - share + gamma * share)
    smallest = share / (share + gamma * (1.0 - share))
    return np.where(upper, largest, smallest)


def slope(share: FloatArray, gamma: float, upper: BoolArray) -> FloatArray:
    """The derivative of `odds_times`."""
    if isinf(gamma):
        return np.zeros(np.broadcast_shapes(share.shape, np.shape(upper)))
    at_largest = gamma / (1.0 - share + gamma * share) ** 2
    at_smallest = gamma / (share + gamma * (1.0 - share)) ** 2
    return np.where(upper, at_largest, at_smallest)


def largest_rate(rows: SeenRows, gamma: float, alpha: float) -> float:
    """An upper confidence limit of the largest rate, wrong with probability at most alpha.

    Parameters
    ----------
    rows : SeenRows
        The people of one group.
    gamma : float
        The factor between the odds; infinity for no assumption.
    alpha : float
        The error probability.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> seen = rng.choice(3, size=2000, p=[0.2, 0.3, 0.5])
    >>> rows = SeenRows(rng.integers(0, 2, 2000), seen, np.array([0.0, 1.0]))
    >>> bool(0.5 < largest_rate(rows, 1.0, 0.05) < 0.6 < largest_rate(rows, inf, 0.05))
    True
    """
    people = rows.people
    first = ceil(FIRST_PART * people)
    if people - first < 1:
        return 1.0
    before = rows.counts(0, first)
    # Where hardly anybody was accepted, nothing is assumed: that is weaker, hence valid.
    assumed = (before[:, BAD] + before[:, GOOD] >= FEWEST) & (not isinf(gamma))
    own = alpha * (1.0 - BOX_PART) if assumed.any() else alpha
    ratios = _ratios(rows, assumed, alpha - own)
    borders = np.unique(np.geomspace(first, people, BLOCKS + 1).astype(int))
    tested = np.arange(STEPS, -1, -1) / STEPS
    lean = rows.acceptance[None, :] - tested[:, None]
    # ln W, by f, stratum, and the end of the interval of rho that is assumed
    wealth = np.zeros((*lean.shape, 2))
    for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        now = rows.counts(start, stop)
        guess = Guess.of(before, lean, gamma, assumed)
        bet = guess.bet(before, sqrt(2.0 * log(1.0 / own) / people))
        for end in range(2):
            wealth[..., end] += _gain(now, bet[:, None, None] * guess.scores(ratios[end]))
        before = before + now
    rejected = wealth.min(axis=2).sum(axis=1) >= log(1.0 / own)
    if rejected.all():
        return 0.0
    stopped = int(np.argmin(rejected))  # the first that is not rejected
    return 1.0 if stopped == 0 else float(tested[stopped - 1])


def _ratios(rows: SeenRows, assumed: BoolArray, alpha: float) -> FloatArray:
    """The ends of intervals for rho_s = P(s, d=0) / P(s, d=1), all at once; shape (2, strata)."""
    counts = rows.counts(0, rows.people).astype(int)
    ends = np.zeros((2, len(counts)))
    for stratum in np.flatnonzero(assumed).tolist():
        part = alpha / (2 * int(assumed.sum()))
        unknown = int(counts[stratum, UNKNOWN])
        share = proportion_interval(unknown, int(counts[stratum].sum()), part)
        ends[:, stratum] = [value / (1.0 - value) for value in share]
    return ends


def _gain(people: FloatArray, stake: FloatArray) -> FloatArray:
    """ln of the factor of a block, by f and stratum; minus infinity if somebody could cost more
    than all there is: nothing is rejected with such a bet.
    """
    possible = (stake < 1.0) | (people == 0)
    factor = np.log1p(-np.where(possible, np.minimum(stake, 0.999999), 0.0))
    found: FloatArray = np.where(possible, people * factor, -inf).sum(axis=2)
    return found


@dataclass(frozen=True, eq=False)
class Guess:
    """What the rows before a block say: q0 and rho0, and with them the tangents at q0.

    lean: pi_s - f, by f and stratum. level, steep: r(q0) and its slope there.
    """

    bad: FloatArray
    ratio: FloatArray
    lean: FloatArray
    level: FloatArray
    steep: FloatArray

    @classmethod
    def of(cls, before: FloatArray, lean: FloatArray, gamma: float, assumed: BoolArray) -> "Guess":
        """From the counts of the rows before."""
        taken = before[:, BAD] + before[:, GOOD]
        bad = (before[:, BAD] + 0.5) / (taken + 1.0)
        ratio = (before[:, UNKNOWN] + 0.5) / (taken + 0.5)
        upper = lean > 0
        level = np.where(assumed, odds_times(bad, gamma, upper), upper)
        steep = np.where(assumed, slope(bad, gamma, upper), 0.0)
        return cls(bad, ratio, lean, level, steep)

    def scores(self, ratio: FloatArray) -> FloatArray:
        """psi, by f, stratum and what is seen, if rho is this."""
        weight = self.steep * ratio
        value = np.empty((*self.lean.shape, 3))
        value[..., BAD] = self.lean * (1.0 + weight * (1.0 - self.bad))
        value[..., GOOD] = -self.lean * weight * self.bad
        value[..., UNKNOWN] = self.lean * self.level
        return value

    def bet(self, before: FloatArray, scale: float) -> FloatArray:
        """lambda for each f: the best for a fixed number of rows, with the spread of those before;
        no row may cost more than a part of the wealth, even if rho is twice what it seems.
        """
        share = before / before.sum()
        spread = np.sqrt((share * self.scores(self.ratio) ** 2).sum(axis=(1, 2))) + 1e-9
        heaviest = self.scores(2.0 * self.ratio).max(axis=(1, 2))
        found: FloatArray = np.minimum(scale / spread, LARGEST_BET / np.maximum(heaviest, 1e-12))
        return found


def rate_range(rows: SeenRows, gamma: float, alpha: float) -> Interval:
    """The rate lies between these, each end wrong with probability at most alpha."""
    return Interval(
        1.0 - largest_rate(rows.complement, gamma, alpha), largest_rate(rows, gamma, alpha)
    )


def gap_range(one: SeenRows, two: SeenRows, gamma: float, alpha: float) -> Interval:
    """The rate of one group minus that of another lies between these, each end wrong with
    probability at most alpha.

    For a rule without coins and without an assumption both rates are binomial shares, and the exact
    interval of a difference is used; else each group's limit gets half of alpha.
    """
    return Interval(-_largest_gap(two, one, gamma, alpha), _largest_gap(one, two, gamma, alpha))


def _largest_gap(one: SeenRows, two: SeenRows, gamma: float, alpha: float) -> float:
    """The largest rate of one group minus the smallest of another."""
    if isinf(gamma) and all(np.isin(rows.acceptance, (0.0, 1.0)).all() for rows in (one, two)):
        return difference_interval(*largest_share(one), *smallest_share(two), alpha).upper
    smallest = 1.0 - largest_rate(two.complement, gamma, alpha / 2)
    return largest_rate(one, gamma, alpha / 2) - smallest


def largest_share(rows: SeenRows) -> tuple[int, int]:
    """Without an assumption, for a rule: (k, n) of the binomial share that is the largest rate.

    All people without an outcome count in the denominator if the rule accepts them, and only then.
    """
    counts = rows.counts(0, rows.people).astype(int)
    takes = rows.acceptance == 1.0
    events = int(counts[takes, BAD].sum() + counts[takes, UNKNOWN].sum())
    return events, events + int(counts[~takes, BAD].sum())


def smallest_share(rows: SeenRows) -> tuple[int, int]:
    """The same for the smallest rate."""
    events, people = largest_share(rows.complement)
    return people - events, people
