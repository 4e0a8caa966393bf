"""Intervals from audit rounds only, looked at when preset numbers of them have closed.

A coin that is independent of the person decides "audit" (accept). Whatever the learner did before,
the next audited person is a fresh draw of D, so audit rows *indexed by audit count* are i.i.d.
labelled draws of D. A bound of this family looks at exactly the first N_1 < N_2 < ... audit rows,
the N_k preset, and spends delta_k on look k.

**Why preset.** Given all pairs (a, y) of the first N_k audit rows, the features are independent
draws from D given (a, y); each fixed-n theorem applies with n_rj the people of group j in the
denominator of rate r. "All audits up to now" would be a sample whose size may have been chosen by
its own features (an audit rate that falls to zero when the interval misses the truth), and no
fixed-n theorem covers that. An audit rate that is preset, or reacts to the pairs (a, y) alone, is
harmless.

**Unresolved labels.** A person whose label never came may or may not belong to a denominator. The
upper limit of a rate counts all accepted unresolved people in and all rejected ones out, the lower
limit the reverse. Each limit used here rises when an accepted person is added and falls when a
rejected one is, so the interval contains the one that the complete sample would have given.

**Two independent tests made into one: the staircase.** Let U_1, U_2 be independent p-values,
P(U_i <= t) <= t for all t (exact binomial tails of two groups, Chernoff's bound on them, or DKW's).
For corners (s_1, t_1), ..., (s_C, t_C) with s rising and t falling, the event

    A = union over c of {U_1 > s_c and U_2 > t_c}

is increasing in (U_1, U_2), so its probability is smallest when both are uniform, and then

    P(not A) = s_1 + sum_c (s_{c+1} - s_c) t_c,        s_{C+1} = 1.

On A, some corner c has both group limits valid at its tails: with up(s) the upper limit of f_1 at
tail s and low(t) the lower limit of f_2 at tail t, f_1 - f_2 <= max over c of up(s_c) - low(t_c).
The maximum of a finite list: no optimiser whose error would need a proof.

The corners are s_c = Phi(-r cos theta_c), t_c = Phi(-r sin theta_{c+1}) with equally spaced angles:
a staircase around the quarter disc of radius r in units of standard errors. r is chosen such that
P(not A) = alpha. At alpha = 1e-5, r^2/2 = 10.3; the same for two bounds with alpha/2 each would
cost (4.42 + 4.42)^2/4 = 19.5, and joint Hoeffding pays ln(1/alpha) = 11.5 with the largest
variance, 1/4. Ellipses turned towards the gap were tried: 5% narrower at rates of 1/2, up to 20%
wider at rates of .02 and unequal groups. Not taken.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.bounds.slack import (
    denominators,
    inverse,
    require_columns,
    require_finite_class,
)
from evenhand.contracts import AuditEvidence, FixedCountBound
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.fairness.delta_ledger import inverse_square_share
from evenhand.shares import require_delta
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray

CORNERS = 32
"""Corners of a staircase; more of them bring less than 1% of width."""

SMALLEST_LOG_TAIL = -690.0
"""Below it Phi(-r) leaves the floating-point range: limits then say nothing, which is valid."""


@dataclass(frozen=True, eq=False, repr=False)
class AuditCounts(Brief):
    """Acceptances of M hypotheses on the first N_k audit rows, counted at their worst.

    Parameters
    ----------
    most, most_people : array, shape (M, rates, groups)
        Accepted people and denominators with every accepted unresolved person in.
    least, least_people : array, shape (M, rates, groups)
        The same with every rejected unresolved person in instead. Without unresolved labels they
        agree with `most` and `most_people`.
    people : array, shape (rates, groups)
        The people whose label is known.
    signs : array, shape (rates,)
        +1 where acceptance raises the rate (FPR, selection), -1 where it lowers it (FNR).

    Examples
    --------
    >>> counts = AuditCounts.of([[30, 20]], [[100, 100]])
    >>> counts.rates, counts.groups
    (1, 2)
    """

    most: FloatArray
    most_people: FloatArray
    least: FloatArray
    least_people: FloatArray
    people: FloatArray
    signs: FloatArray

    @classmethod
    def of(
        cls,
        accepted: ArrayLike,
        people: ArrayLike,
        *,
        signs: ArrayLike | None = None,
        unresolved_accepted: ArrayLike | None = None,
        unresolved: ArrayLike | None = None,
    ) -> Self:
        """Counts from those whose label is known and those whose label is not.

        Parameters
        ----------
        accepted : array_like, shape (M, rates * groups) or (M, rates, groups)
            Accepted people in each denominator. The columns are those of
            `GapConstraints.channels`: rate by rate, group by group.
        people : array_like, shape (rates, groups)
            All people in each denominator.
        signs : array_like, shape (rates,), optional
            See the class; all +1 by default.
        unresolved_accepted, unresolved : array_like, optional
            The same as `accepted` and `people` for people who may belong to the denominator; none
            by default.

        Returns
        -------
        AuditCounts
            The counts at their worst.

        Raises
        ------
        InvalidInput
            If more people are accepted than there are, or fewer than none.
        """
        denominator = denominators(people)
        counted = _per_hypothesis(accepted, denominator)
        if (counted < 0).any() or (counted > denominator).any():
            raise InvalidInput(
                "accepted has entries outside 0 ... people: a count of accepted people in the "
                "denominator."
            )
        doubtful = denominators(np.zeros_like(denominator) if unresolved is None else unresolved)
        taken = np.zeros_like(counted)
        if unresolved_accepted is not None:
            taken = _per_hypothesis(unresolved_accepted, denominator)
        if (taken < 0).any() or (taken > doubtful).any():
            raise InvalidInput("unresolved_accepted has entries outside 0 ... unresolved.")
        return cls(
            most=counted + taken,
            most_people=denominator + taken,
            least=counted,
            least_people=denominator + doubtful - taken,
            people=denominator,
            signs=np.asarray(np.ones(len(denominator)) if signs is None else signs, np.float64),
        )

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.people.shape[1])

    @property
    def rates(self) -> int:
        """How many rates there are."""
        return int(self.people.shape[0])


def _per_hypothesis(counts: ArrayLike, denominator: FloatArray) -> FloatArray:
    """(M, rates * groups) or (M, rates, groups) -> (M, rates, groups)."""
    array = np.asarray(counts, dtype=np.float64)
    if array.ndim < 2 or math.prod(array.shape[1:]) != denominator.size:
        raise LengthMismatch(
            f"accepted has shape {array.shape}; it must be (hypotheses, {denominator.size}), "
            "one column per rate and group."
        )
    return array.reshape(len(array), *denominator.shape)


@dataclass(frozen=True, eq=False, repr=False)
class AuditIntervals(Brief):
    """Intervals for the gaps of M hypotheses: what a bound answers (`GapLimits`).

    Parameters
    ----------
    lower, upper : array, shape (M, gaps)
        Axis 0: the hypotheses. Axis 1: the gaps in the order of `GapConstraints`: rate by rate,
        pair by pair, later group minus earlier group.

    Raises
    ------
    LengthMismatch
        If the two have no such shape.

    Examples
    --------
    >>> first = AuditIntervals(np.array([[-0.1]]), np.array([[0.3]]))
    >>> second = AuditIntervals(np.array([[0.0]]), np.array([[0.5]]))
    >>> both = first.intersect(second)
    >>> float(both.lower[0, 0]), float(both.upper[0, 0]), bool(both.empty[0, 0])
    (0.0, 0.3, False)
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        if self.lower.ndim != 2 or self.lower.shape != self.upper.shape:
            raise LengthMismatch(
                f"the lower ends have the shape {self.lower.shape} and the upper ends "
                f"{self.upper.shape}; both have one row for each hypothesis and one column for "
                "each gap."
            )

    def intersect(self, other: "AuditIntervals") -> "AuditIntervals":
        """What both allow; for looks whose failure probabilities were booked separately.

        Parameters
        ----------
        other : AuditIntervals
            Intervals of the same hypotheses.

        Returns
        -------
        AuditIntervals
            The intersections; some may be empty.
        """
        return AuditIntervals(
            np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper)
        )

    @property
    def empty(self) -> BoolArray:
        """Where nothing is left: an assumption is broken. Suspend; never take a midpoint."""
        return np.asarray(self.lower > self.upper)


@dataclass(frozen=True)
class PresetLooks:
    """How many audit rows each look waits for, and its share of delta.

    Parameters
    ----------
    first : int, default 200
        N_1: the rows of the first look.
    growth : float, default 1.5
        N_k = ceil(first * growth^(k-1)).

    Examples
    --------
    >>> looks = PresetLooks(first=200, growth=1.5)
    >>> [looks.count(k) for k in (1, 2, 3)], looks.reached(299), looks.reached(300)
    ([200, 300, 450], 1, 2)
    """

    first: int = 200
    growth: float = 1.5

    def __post_init__(self) -> None:
        if self.first < 1 or not 1 < self.growth < math.inf:
            raise InvalidInput(
                f"looks start at {self.first} and grow by {self.growth}; they need >= 1 and a "
                "factor above 1."
            )

    def count(self, look: int) -> int:
        """How many audit rows a look needs.

        Parameters
        ----------
        look : int
            The number k = 1, 2, ... of the look.

        Returns
        -------
        int
            N_k.
        """
        return max(math.ceil(self.first * self.growth ** (look - 1)), self.first + look - 1)

    def delta_of(self, look: int, delta: float) -> float:
        """The part of delta that a look may spend: 6 delta / (pi^2 k^2); all parts sum to delta.

        Parameters
        ----------
        look : int
            The number k = 1, 2, ... of the look.
        delta : float
            delta.

        Returns
        -------
        float
            delta_k.
        """
        return inverse_square_share(delta, look)

    def reached(self, audits: int) -> int:
        """The last look that so many closed audit rows allow.

        Parameters
        ----------
        audits : int
            Closed audit rows.

        Returns
        -------
        int
            The number of the look; 0 if there is none.
        """
        look = 0
        while self.count(look + 1) <= audits:
            look += 1
        return look


@dataclass(frozen=True)
class AuditHoeffding(FixedCountBound):
    """Joint Hoeffding from audit rounds: the simplest interval, equally wide for all hypotheses.

    Notes
    -----
    |gap_hat(h) - gap(h)| <= sqrt((1/n_j + 1/n_k) ln(R G(G-1) |H| / delta) / 2) for all h, rates
    and pairs at once.

    **Theorem** (Hoeffding 1963). Given the pairs (a, y) of the first N_k audit rows, gap_hat - gap
    is a sum of n_j + n_k independent centred terms of ranges 1/n_j and 1/n_k, so each side is
    exceeded with probability at most exp(-2 b^2 / (1/n_j + 1/n_k)). There are R G(G-1) |H|
    one-sided statements; with two groups and one rate the logarithm is ln(2|H|/delta). With
    unresolved labels the empirical rates are those of the worst case, and n counts the resolved
    people only (the complete sample has at least as many, hence a smaller width).

    Examples
    --------
    >>> counts = AuditCounts.of([[30, 20]], [[100, 100]])
    >>> look = AuditHoeffding().intervals(
    ...     counts, delta=0.05, log_size=0.0, columns=1
    ... )
    >>> look.lower.round(2), look.upper.round(2)
    (array([[-0.29]]), array([[0.09]]))
    """

    name = "joint Hoeffding on audits"

    def intervals(
        self, counts: AuditEvidence, *, delta: float, log_size: float, columns: int
    ) -> AuditIntervals:
        """The intervals; `columns` is not used. See `FixedCountBound.intervals`."""
        require_delta(delta)
        require_finite_class(log_size, self.name)
        log_term = -_log_share(counts, log_size, delta)
        rarity = inverse(counts.people)
        width = np.sqrt((rarity[:, None, :] + rarity[:, :, None]) * log_term / 2)
        upper = _rate(counts.most, counts.most_people, 1.0)
        lower = _rate(counts.least, counts.least_people, 0.0)
        return _of_rises(counts, upper[..., None, :] - lower[..., None] + width)


@dataclass(frozen=True)
class AuditDkw(FixedCountBound):
    """DKW from audit rounds: for thresholds on a score, all cut-offs at once, without |H|.

    Notes
    -----
    f_k - f_j <= fhat_k - fhat_j + max over corners of e_k(s_c) + e_j(t_c), e(t) = sqrt(ln(2/t) /
    (2n)).

    **Theorem** (Dvoretzky, Kiefer, Wolfowitz; Massart's constant; any distribution). D_j = sup over
    cut-offs of |fhat_j - f_j| has P(D_j > e) <= 2 exp(-2 n_j e^2), so min(1, 2 exp(-2 n_j D_j^2))
    is a p-value; given (a, y) the D_j of two groups are independent. By the staircase some corner
    has D_k < e_k(s_c) and D_j < e_j(t_c) with probability 1 - alpha, and then both sides of the gap
    hold for every cut-off, either direction, > or >=, also with cut-offs that differ between
    groups. A union over columns, rates and *unordered* pairs: alpha = delta / (columns R G(G-1)/2).
    Rows of `AuditCounts` may be thresholds found in the data.

    Examples
    --------
    >>> counts = AuditCounts.of([[30, 20]], [[100, 100]])
    >>> look = AuditDkw().intervals(counts, delta=0.05, log_size=0.0, columns=1)
    >>> look.lower.round(2), look.upper.round(2)
    (array([[-0.36]]), array([[0.16]]))
    """

    name = "joint DKW on audits"

    def intervals(
        self, counts: AuditEvidence, *, delta: float, log_size: float, columns: int
    ) -> AuditIntervals:
        """The intervals; `log_size` is not used. See `FixedCountBound.intervals`."""
        require_delta(delta)
        require_columns(columns)
        tests = columns * counts.rates * counts.groups * (counts.groups - 1) / 2
        stairs = staircase(math.log(delta / tests))
        # e(t), infinity where n = 0: (corners, 1, rates, groups)
        first, second = (
            np.sqrt((math.log(2) - log_tails)[:, None, None, None] * inverse(counts.people) / 2)
            for log_tails in (stairs.log_first, stairs.log_second)
        )
        upper = np.minimum(_rate(counts.most, counts.most_people, 0.0) + first, 1.0)
        lower = np.maximum(_rate(counts.least, counts.least_people, 0.0) - second, 0.0)
        return _of_rises(counts, _largest_rise(upper, lower))


class _JointTails(FixedCountBound):
    """Intervals from one-sided limits of the two groups' rates, joined by the staircase."""

    @staticmethod
    @abstractmethod
    def upper_limit(accepted: FloatArray, people: FloatArray, log_tails: FloatArray) -> FloatArray:
        """(tails, *shape of accepted): the one-sided upper limit of a rate at each tail."""

    def intervals(
        self, counts: AuditEvidence, *, delta: float, log_size: float, columns: int
    ) -> AuditIntervals:
        """The intervals; `columns` is not used. See `FixedCountBound.intervals`."""
        require_finite_class(log_size, self.name)
        require_delta(delta)
        stairs = staircase(_log_share(counts, log_size, delta))

        def limits(accepted: FloatArray, people: FloatArray, log_tails: FloatArray) -> FloatArray:
            # (corners, *shape of accepted); each distinct (accepted, people) is solved once
            people = np.broadcast_to(people, accepted.shape)
            coded, where = np.unique(accepted * (people.max() + 1.0) + people, return_inverse=True)
            distinct_people = np.mod(coded, people.max() + 1.0)
            distinct_accepted = (coded - distinct_people) / (people.max() + 1.0)
            table = self.upper_limit(distinct_accepted, distinct_people, log_tails)
            return np.asarray(table[:, where.reshape(accepted.shape)])

        upper = limits(counts.most, counts.most_people, stairs.log_first)
        rejected = counts.least_people - counts.least
        lower = 1.0 - limits(rejected, counts.least_people, stairs.log_second)
        return _of_rises(counts, _largest_rise(upper, lower))


@dataclass(frozen=True)
class AuditBinomial(_JointTails):
    """Joint exact binomial intervals: the sharpest bound on audits, also near rates of 0 and 1.

    Notes
    -----
    Hoeffding pays for the variance 1/4 whatever the rate; a rate of .02 has .02. This bound inverts
    the distribution of the two groups' counts instead, together.

    **Theorem.** Fix h, a rate and an ordered pair of groups (j, k); given (a, y), K_k ~
    Binomial(n_k, f_k) and K_j ~ Binomial(n_j, f_j) are independent. U_1 = P_{f_k}(K <= K_k) and
    U_2 = P_{f_j}(K >= K_j) are independent p-values: P(U <= t) <= t. By the staircase, with
    probability at least 1 - alpha there is a corner (s_c, t_c) at which both U_1 > s_c and U_2 >
    t_c, that is f_k < up(K_k; s_c) and f_j > low(K_j; t_c), up and low being the one-sided exact
    (Clopper-Pearson) limits. So

        f_k - f_j <= max over c of up(K_k; s_c) - low(K_j; t_c).

    A union over R G(G-1) |H| one-sided statements gives delta.

    **What does not work.** Adding the two exponents and keeping the threshold, n_k KL_k + n_j KL_j
    <= ln(1/alpha), has no proof: each term is dominated by an Exp(1) variable, their sum by
    Gamma(2), whose tail is (1 + L) e^-L. Testing gap_hat alone against all (f_k, f_j) of a given
    gap is provable but worthless: the unknown level of the rates makes 1/4 the variance again.

    **Unresolved labels.** up(k+1; n+1) >= up(k; n) >= up(k; n+1), and the mirror image for low
    (couple the two binomials; for KL differentiate n KL in k and in n-k: ln(k/(n f)) <= 0 <=
    ln((n-k)/(n(1-f)))). So counting as `AuditCounts` does gives the widest completion.

    Examples
    --------
    >>> counts = AuditCounts.of([[30, 20]], [[100, 100]])
    >>> look = AuditBinomial().intervals(
    ...     counts, delta=0.05, log_size=0.0, columns=1
    ... )
    >>> look.lower.round(2), look.upper.round(2)
    (array([[-0.25]]), array([[0.06]]))
    """

    name = "joint exact binomial on audits"

    @staticmethod
    def upper_limit(accepted: FloatArray, people: FloatArray, log_tails: FloatArray) -> FloatArray:
        """The f with P(Binomial(n, f) <= k) = tail; 1 where k = n.

        Parameters
        ----------
        accepted, people : array
            k and n.
        log_tails : array, shape (tails,)
            The logarithms of the tails.

        Returns
        -------
        array, shape (tails, *shape of accepted)
            The limits.
        """
        from scipy.special import betaincinv

        below = accepted < people
        limit = np.ones((len(log_tails), *accepted.shape))
        tails = np.exp(log_tails)[:, None]
        limit[:, below] = 1.0 - betaincinv((people - accepted)[below], accepted[below] + 1.0, tails)
        return limit


@dataclass(frozen=True)
class AuditKl(_JointTails):
    """The same with Chernoff's bound in place of the exact tail: a little wider, logarithms only.

    Notes
    -----
    P_f(K <= k) <= exp(-n KL(k/n, f)) for k/n <= f, so exp(-n KL) is a larger p-value and gives the
    wider limit up(k; s) = max{f >= k/n : n KL(k/n, f) <= ln 1/s}.

    Examples
    --------
    >>> counts = AuditCounts.of([[30, 20]], [[100, 100]])
    >>> look = AuditKl().intervals(counts, delta=0.05, log_size=0.0, columns=1)
    >>> look.lower.round(2), look.upper.round(2)
    (array([[-0.31]]), array([[0.12]]))
    """

    name = "joint KL on audits"

    @staticmethod
    def upper_limit(accepted: FloatArray, people: FloatArray, log_tails: FloatArray) -> FloatArray:
        """max{f >= k/n : n KL(k/n, f) <= -ln tail}; 1 where k = n or the tail is 0.

        It is found by bisection and rounded outwards; n KL(k/n, f) = k ln(k/(n f)) + (n-k)
        ln((n-k)/(n (1-f))).

        Parameters
        ----------
        accepted, people : array
            k and n.
        log_tails : array, shape (tails,)
            The logarithms of the tails.

        Returns
        -------
        array, shape (tails, *shape of accepted)
            The limits.
        """
        from scipy.special import rel_entr

        start = np.divide(accepted, people, out=np.ones_like(accepted), where=people > 0)
        upper = np.ones((len(log_tails), *accepted.shape))
        lower = np.broadcast_to(start, upper.shape)
        allowed = -log_tails.reshape(-1, *[1] * accepted.ndim)
        for _ in range(45):
            middle = (lower + upper) / 2
            divergence = rel_entr(accepted, people * middle)
            divergence = divergence + rel_entr(people - accepted, people * (1.0 - middle))
            inside = divergence <= allowed
            lower = np.where(inside, middle, lower)
            upper = np.where(inside, upper, middle)
        return upper


@dataclass(frozen=True, eq=False)
class Staircase:
    """ln s_c and ln t_c of the corners; symmetric: t is s in reverse order."""

    log_first: FloatArray
    log_second: FloatArray

    @classmethod
    def at_radius(cls, radius: float) -> "Staircase":
        """The staircase around the quarter disc of this radius."""
        from scipy.special import log_ndtr

        cosines = np.cos(np.arange(CORNERS) * (math.pi / 2) / CORNERS)
        log_tail = np.asarray(log_ndtr(-radius * cosines), dtype=np.float64)
        return cls(log_tail, log_tail[::-1])

    def miss(self) -> float:
        """P(not A) for uniform p-values: s_1 + sum_c (s_{c+1} - s_c) t_c."""
        first = np.exp(self.log_first)
        second = np.exp(self.log_second)
        return float(first[0] + (np.append(first[1:], 1.0) - first) @ second)


@lru_cache(maxsize=256)
def staircase(log_alpha: float) -> Staircase:
    """The staircase with P(not A) <= alpha, by bisection on the radius, rounded outwards."""
    if log_alpha < SMALLEST_LOG_TAIL:
        nothing = np.full(1, -math.inf)
        return Staircase(nothing, nothing)
    alpha = math.exp(log_alpha)
    lower = 0.0
    upper = 40.0
    while upper - lower > 1e-9:
        middle = (lower + upper) / 2
        fits = Staircase.at_radius(middle).miss() <= alpha
        lower, upper = (lower, middle) if fits else (middle, upper)
    return Staircase.at_radius(upper)


def _log_share(counts: AuditEvidence, log_size: float, delta: float) -> float:
    """ln alpha of each one-sided test: delta over |H|, rates and ordered pairs of groups."""
    tests = counts.rates * counts.groups * (counts.groups - 1)
    return math.log(delta / tests) - log_size


def _rate(accepted: FloatArray, people: FloatArray, unknown: float) -> FloatArray:
    """accepted / people, `unknown` where there is nobody."""
    people = np.broadcast_to(people, accepted.shape)
    return np.divide(accepted, people, out=np.full_like(accepted, unknown), where=people > 0)


def _largest_rise(upper: FloatArray, lower: FloatArray) -> FloatArray:
    """max over corners of up_k(s_c) - low_j(t_c): (C, M, rates, groups) twice -> (M, rates, groups
    j, groups k).
    """
    rise = upper[0][..., None, :] - lower[0][..., :, None]
    for up, low in zip(upper[1:], lower[1:], strict=True):
        np.maximum(rise, up[..., None, :] - low[..., :, None], out=rise)
    return np.asarray(rise)


def _of_rises(counts: AuditEvidence, rises: FloatArray) -> AuditIntervals:
    """Intervals from one-sided limits of acceptance differences, clipped to [-1, 1] and turned by
    the rates' signs.

    rises (M, rates, groups, groups): rises[..., j, k] is an upper limit of f_k - f_j. So f_k - f_j
    lies in [-rises[..., k, j], rises[..., j, k]]; a rate with sign -1 has the gap f_j - f_k.
    """
    gaps = [
        (r, j, k) if sign > 0 else (r, k, j)
        for r, sign in enumerate(counts.signs)
        for j, k in combinations(range(counts.groups), 2)
    ]
    upper = [np.minimum(rises[:, r, j, k], 1.0) for r, j, k in gaps]
    lower = [np.maximum(-rises[:, r, k, j], -1.0) for r, j, k in gaps]
    return AuditIntervals(np.stack(lower, axis=1), np.stack(upper, axis=1))
