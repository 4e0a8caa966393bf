"""Betting cell by cell: intervals for the gap of every hypothesis that hold at all times at once,
whatever the learner did.

Theorem. Fix M hypotheses, G groups, R rates and delta. People (x, a, y) are drawn independently
from D; each is accepted with probability p(x) by a coin of its own. Of each epoch let

    m(x)      be a prediction of P(y = -1 | x), the regression, which may be as poor as it likes,
    lambda    the bets: what a process stakes on one person, before it is scaled by c and cut; K,
    c_j       1 / (predicted share of the people who are in group j and in the denominator).

If p, m, lambda and c of each epoch are functions of earlier epochs (p and m also of x), then with
probability at least 1 - delta every interval that `intervals` ever returns contains the true gap,
for all hypotheses, rates and pairs of groups, after every update.

Proof, for the false positive rate (docs/guarantee/proof.md has every step). Let N = 1[y = -1],
f_j = P(h = 1 | a = j, N = 1), and

    phi = m' + 1[accepted]/p (N - m')     with m' a function of x, of the past, the side and h(x)

Given person and past, E[phi] = N: the coin is fresh. So 1[a = j] phi (h - f_j) has mean zero, and

    W_up(f)  = prod (1 - g_j 1[a = j] phi (h - f)),      g_j = lambda c_j, cut
    W_low(f) = prod (1 + g_j 1[a = j] phi (h - f)),

are martingales at the true f = f_j, as is W_up(f_j) W_low(f_i) for two groups (nobody belongs to
both). [0, 1] is cut into eight classes before any data. In each of them stake and m' are cut so
that every factor is at least 1/5 for every f of the class; the truth lies in one class, and its
processes are those of that class. Ville: a non-negative martingale that starts at 1 ever reaches
e^L with probability at most e^-L. Within a class ln W is concave in f, so it lies above its chord
over each of the cells into which the class is cut: a point whose chord exceeds L is out.
`betting_wealth` has the formulas of ln W; `BettingState` keeps it, with what is left of each cell.

Single processes rule out rates (L_box = ln(2 R G K M / (.2 delta))), pairs rule out gaps (L_joint =
ln(R G(G-1) K M / (.8 delta))); the union over hypotheses, rates, groups or ordered pairs, sides and
K bets costs delta in all. Nothing is split over epochs, classes or cells: the truth needs the
processes of its own class alone. A label that has not arrived takes the value that makes the factor
of W smallest; a person of whom nothing is known any more takes the smallest factor there can be, so
L grows by `lost`. Other rates: exchange the labels (true positive rate; the gap of the false
negative rate is minus its gap), or phi = 1 (selection rate), which needs neither label nor coin.

A group that joins later has its own part delta_N. Its pairs with the k groups before it start at
wealth 1 from the sums of that moment, L = ln(2 R k K M / (.8 delta_N)), and so do its own
processes, L = ln(2 R K M / (.2 delta_N)). Hypotheses that start later than that pay for all groups
then in.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.bounds import betting_wealth
from evenhand.bounds.betting_wealth import (
    CLASS_OF_NODE,
    EDGES,
    FIRST_CELL,
    LEFT_NODE,
    NODES,
    Cohort,
    add_cohort,
    as_table,
    counts_labels,
    regression_of,
)
from evenhand.contracts import Rate
from evenhand.errors import InvalidInput, LengthMismatch, ProtocolError
from evenhand.fairness.rates import as_rates
from evenhand.shares import require_delta, require_share
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, IntArray, as_numbers

HORIZONS = tuple(1000.0 * 4**k for k in range(6))
ROUNDING = 1e-9
"""Thresholds are raised by this much: rounding may never cut off a point."""
SHARE_FLOOR = 1e-3
"""Predicted shares of a group are at least this."""
PRIOR_ROUNDS = 10.0
"""The weight of the prior shares, in rounds."""
RATE_MARGIN = 0.01
"""Predicted rates and regressions are kept this far from 0 and 1, so that no predicted variance
vanishes.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Brief):
    """What earlier epochs say about the next one: past people, with the next epoch's p and m.

    A poor forecast makes the intervals wider, never wrong. Arrays are checked and converted; one
    number stands for all rows.

    Parameters
    ----------
    accepts : array, shape (M, n)
        Whether hypothesis h accepts the people of row i.
    group : array, shape (n,)
        The code 0 ... G-1 of the group.
    weight : array, shape (n,)
        How many people are in each row.
    acceptance, regression : array, shape (n,)
        p and m of the next epoch on them.

    Examples
    --------
    >>> Forecast([[True, False]], [0, 1], weight=[80, 120], acceptance=0.5, regression=0.3).weight
    array([ 80., 120.])
    """

    accepts: BoolArray
    group: IntArray
    weight: FloatArray
    acceptance: FloatArray
    regression: FloatArray

    if TYPE_CHECKING:  # what may be given; the fields hold what it is converted to

        def __init__(
            self,
            accepts: ArrayLike,
            group: ArrayLike,
            weight: ArrayLike,
            acceptance: ArrayLike,
            regression: ArrayLike,
        ) -> None: ...

    def __post_init__(self) -> None:
        accepts, group = as_table(self.accepts, self.group)
        object.__setattr__(self, "accepts", accepts)
        object.__setattr__(self, "group", group)
        for name in ("weight", "acceptance", "regression"):
            object.__setattr__(self, name, as_numbers(getattr(self, name), len(group), name))

    def variance_kept(self, rate: Rate, inverse_share: FloatArray, f: FloatArray) -> FloatArray:
        """The part V1 / V_e of the variance that the acceptance probabilities leave, for one rate.

        Parameters
        ----------
        rate : Rate
            The rate; one that needs no label is seen at every round.
        inverse_share : array, shape (G,)
            c, see `EpochPlan`.
        f : array, shape (M, G)
            The predicted rates of the groups.

        Returns
        -------
        array, shape (M,)
            Numbers in (0, 1].

        Notes
        -----
        With m taken for the truth, E[phi^2 | x] = m^2 + m (1 - m) / p, which is m at p = 1; the
        increment is c_j phi (h - f_j).
        """
        m = np.clip(regression_of(rate, self.regression), RATE_MARGIN, 1.0)
        p = np.ones_like(m) if counts_labels(rate).all() else self.acceptance
        accepts = self.accepts.astype(np.float64)
        certain = np.zeros(len(f))
        planned = np.zeros(len(f))
        for j, c in enumerate(inverse_share):
            weight = np.where(self.group == j, self.weight, 0.0) * c**2
            moments = np.stack([weight * m, weight * (m**2 + m * (1.0 - m) / p)], axis=1)
            accepted = accepts @ moments
            rejected = moments.sum(axis=0) - accepted
            f_j = f[:, j, np.newaxis]
            squares = (1.0 - f_j) ** 2 * accepted + f_j**2 * rejected
            certain += squares[:, 0]
            planned += squares[:, 1]
        return np.divide(certain, planned, out=np.ones(len(f)), where=planned > 0)


@dataclass(frozen=True, eq=False, repr=False)
class EpochPlan(Brief):
    """Everything that must be fixed before an epoch's data are looked at (besides p and m).

    Parameters
    ----------
    inverse_share : array, shape (R, G)
        c: 1 / P_hat[in group j and in the rate's denominator].
    bets : array, shape (M, R, K)
        lambda.
    made_after : float
        The rounds that the plan's state had seen.
    hypotheses : int
        M, so that a stored plan that was cut is noticed.

    Examples
    --------
    >>> EpochPlan(np.ones((1, 2)), np.zeros((3, 1, 6)), 0.0, 3).grown_to(4, 3).bets.shape
    (4, 1, 6)
    """

    inverse_share: FloatArray
    bets: FloatArray
    made_after: float
    hypotheses: int

    def __post_init__(self) -> None:
        if self.bets.ndim != 3 or self.bets.shape[:2] != (self.hypotheses, len(self.inverse_share)):
            raise LengthMismatch(
                f"the bets of the plan are {self.bets.shape} for {self.hypotheses} hypotheses and "
                f"{len(self.inverse_share)} rates."
            )
        sound = (self.bets >= 0) & np.isfinite(self.bets)
        if not sound.all() or not (self.inverse_share > 0).all():
            raise InvalidInput(
                "a bet of the plan is negative or not finite, or a share is not positive."
            )

    def grown_to(self, members: int, groups: int) -> "EpochPlan":
        """The plan for a family that has grown since it was made.

        Parameters
        ----------
        members, groups : int
            How many hypotheses and groups there are now. Hypotheses that came later bet nothing,
            and a group that came later has no rows.

        Returns
        -------
        EpochPlan
            This plan, or a larger one.
        """
        more = max(members - len(self.bets), 0)
        others = max(groups - self.inverse_share.shape[1], 0)
        if not (more or others):
            return self
        return EpochPlan(
            np.pad(self.inverse_share, ((0, 0), (0, others)), constant_values=1.0),
            np.pad(self.bets, ((0, more), (0, 0), (0, 0))),
            self.made_after,
            self.hypotheses + more,
        )


@dataclass(frozen=True, eq=False, repr=False)
class GapIntervals(Brief):
    """Simultaneous intervals, valid at all times at once, of the rates as the user knows them.

    Parameters
    ----------
    lower, upper : array, shape (M, R, pairs)
        The gaps.
    rate_lower, rate_upper : array, shape (M, R, G)
        The rates of the groups.
    names : tuple of str
        R * pairs names, as in `GapConstraints`.
    contradiction : array, shape (M,)
        Hypotheses whose evidence contradicts itself: an assumption is broken, suspend.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate
    >>> bound = BettingBound(("a", "b"), (FalsePositiveRate(),), 1, 0.05)
    >>> intervals = bound.intervals(bound.start())
    >>> intervals.names, intervals.lower[0, 0], intervals.upper[0, 0]
    (('FPR b minus a',), array([-1.]), array([1.]))
    """

    lower: FloatArray
    upper: FloatArray
    rate_lower: FloatArray
    rate_upper: FloatArray
    names: tuple[str, ...]
    contradiction: BoolArray


def narrow_cells(
    wealth: FloatArray, threshold: FloatArray, lower: FloatArray, upper: FloatArray
) -> None:
    """Take from each cell, lower and upper (B, cells), what a single process excludes: wealth (B,
    K, 2, nodes), threshold (B, K).

    The chord is linear, so what it leaves of a cell is an interval; an empty one has lower > upper.
    """
    betting_wealth.narrow_cells(wealth, threshold + ROUNDING, (EDGES, LEFT_NODE), lower, upper)


def largest_gaps(
    wealth_j: FloatArray,
    wealth_i: FloatArray,
    cells_j: Sequence[FloatArray],
    cells_i: Sequence[FloatArray],
    threshold: FloatArray,
) -> FloatArray:
    """(B,): the largest f_j - f_i that the pairs leave, over all pairs of cells; -inf if nothing is
    left.

    wealth (B, K, 2, nodes) of either group; cells: (lower, upper), (B, cells) each; threshold (B,
    K). Each bet leaves, of a pair of cells, the points below one line; the largest difference below
    all lines is at most the least of the largest below each.
    """
    lower_j, upper_j = cells_j
    lower_i, upper_i = cells_i
    cells = ((lower_j, upper_j), (lower_i, upper_i))
    grid = (EDGES, LEFT_NODE)
    return betting_wealth.largest_gaps(wealth_j, wealth_i, cells, threshold + ROUNDING, grid)


@dataclass(frozen=True, eq=False, repr=False)
class BettingState(Brief):
    """What the next update needs; every array has the hypotheses first.

    Parameters
    ----------
    wealth : array, shape (M, R, G, K, side, nodes)
        ln W at the nodes, side UP or LOW; 0 in a class that is out.
    lower, upper : array, shape (M, R, G, cells)
        What is left of each cell for the rate of a group, P(h accepts | group, in the denominator);
        lower > upper where nothing is.
    gap_lower, gap_upper : array, shape (M, R, pairs)
        The interval of the gap, later group minus earlier.
    hits, mass : array, shape (M, R, G)
        Unclamped sums of h phi and of phi; they serve the planning alone.
    rounds : array, shape (M,)
        The rounds that were looked at.
    contradiction : array, shape (M,)
        Nothing is left of some rate or gap of h; from then on nothing is claimed about h.
    lost : array, shape (M, R, K)
        By how much the thresholds grow for people of whom nothing is known any more.
    wealth_before : array, shape (M, J, R, G, K, side, nodes)
        The wealth at the moment when each of the J groups joined that were not there from the
        start.

    Examples
    --------
    >>> state = BettingState.empty(hypotheses=3, rates=1, groups=2, bets=6)
    >>> len(state), state.gap_upper.shape
    (3, (3, 1, 1))
    """

    wealth: FloatArray
    lower: FloatArray
    upper: FloatArray
    gap_lower: FloatArray
    gap_upper: FloatArray
    hits: FloatArray
    mass: FloatArray
    rounds: FloatArray
    contradiction: BoolArray
    lost: FloatArray
    wealth_before: FloatArray

    @classmethod
    def empty(
        cls, hypotheses: int, rates: int, groups: int, bets: int, joins: int = 0
    ) -> "BettingState":
        """The state before the first round: wealth 1, whole cells, gaps [-1, 1].

        Parameters
        ----------
        hypotheses, rates, groups, bets : int
            M, R, G and K.
        joins : int, default 0
            How many of the groups joined after the start.

        Returns
        -------
        BettingState
            Nothing seen.
        """
        family = (hypotheses, rates, groups)
        gap = (hypotheses, rates, groups * (groups - 1) // 2)
        sums = (rates, groups, bets, 2, len(NODES))
        return cls(
            np.zeros((hypotheses, *sums)),
            np.tile(EDGES[:-1], (*family, 1)),
            np.tile(EDGES[1:], (*family, 1)),
            np.full(gap, -1.0),
            np.ones(gap),
            np.zeros(family),
            np.zeros(family),
            np.zeros(hypotheses),
            np.zeros(hypotheses, dtype=bool),
            np.zeros((hypotheses, rates, bets)),
            np.zeros((hypotheses, joins, *sums)),
        )

    def __len__(self) -> int:
        return len(self.rounds)

    @property
    def classes_left(self) -> BoolArray:
        """(M, R, G, classes): whether something is left of some cell of the class."""
        return np.logical_or.reduceat(self.lower <= self.upper, FIRST_CELL, axis=-1)

    @property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """(M, R, G) twice: the smallest and the largest rate that is left; [0, 1] of a hypothesis
        about which nothing is claimed.
        """
        left = self.lower <= self.upper
        nothing = self.contradiction[:, np.newaxis, np.newaxis]
        lower = np.where(left, self.lower, np.inf).min(axis=-1)
        upper = np.where(left, self.upper, -np.inf).max(axis=-1)
        return np.where(nothing, 0.0, lower), np.where(nothing, 1.0, upper)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """The fields by name.

        Returns
        -------
        dict
            `BettingState(**arrays)` is the same state.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def joined(self, other: "BettingState") -> "BettingState":
        """The processes of both: how a newly nominated hypothesis joins.

        Parameters
        ----------
        other : BettingState
            The state of the hypotheses that join, which come last.

        Returns
        -------
        BettingState
            The state of all.
        """
        own = self.to_arrays()
        theirs = other.to_arrays()
        return BettingState(**{name: np.concatenate([own[name], theirs[name]]) for name in own})

    def with_group(self) -> "BettingState":
        """The state with one more group, the last one.

        Returns
        -------
        BettingState
            Nothing is known of the new group, and its pairs start from the wealth of this moment.
        """
        new = BettingState.empty(len(self), self.lost.shape[1], 1, self.lost.shape[2])
        grown = {
            name: np.concatenate([getattr(self, name), getattr(new, name)], axis=2)
            for name in ("wealth", "lower", "upper", "hits", "mass")
        }
        # the pairs of the new group, in the order of all pairs: where they go among the old ones
        groups = self.lower.shape[2]
        pairs = combinations(range(groups + 1), 2)
        new_pairs = [at for at, (_, later) in enumerate(pairs) if later == groups]
        place = np.array(new_pairs) - np.arange(len(new_pairs))
        before = self.wealth_before
        joined = np.zeros((*before.shape[:3], 1, *before.shape[4:]))
        moments = (np.concatenate([before, joined], axis=3), grown["wealth"][:, np.newaxis])
        return replace(
            self,
            **grown,
            gap_lower=np.insert(self.gap_lower, place, -1.0, axis=2),
            gap_upper=np.insert(self.gap_upper, place, 1.0, axis=2),
            wealth_before=np.concatenate(moments, axis=1),
        )

    def with_cohort(
        self, rates: tuple[Rate, ...], cohort: Cohort, bets: FloatArray, inverse_share: FloatArray
    ) -> "BettingState":
        """The state with the cohort's rounds in its sums; nothing is concluded from them yet.

        Parameters
        ----------
        rates : tuple of Rate
            The R rates.
        cohort : Cohort
            The rounds.
        bets : array, shape (M, R, K)
            lambda.
        inverse_share : array, shape (R, G)
            c.

        Returns
        -------
        BettingState
            A new state.
        """
        kept = (self.wealth, self.hits, self.mass, self.lost)
        wealth, hits, mass, lost = (array.copy() for array in kept)
        alive = self.classes_left & ~self.contradiction[:, np.newaxis, np.newaxis, np.newaxis]
        for r, rate in enumerate(rates):
            more_hits, more_mass, more_lost = add_cohort(
                wealth[:, r], rate, cohort, bets[:, r], inverse_share[r], alive[:, r]
            )
            hits[:, r] += more_hits
            mass[:, r] += more_mass
            lost[:, r] += more_lost
        seen = self.rounds + cohort.rounds.sum()
        return replace(self, wealth=wealth, hits=hits, mass=mass, rounds=seen, lost=lost)

    def narrowed(
        self, of_groups: FloatArray, of_pairs: FloatArray, founders: int
    ) -> "BettingState":
        """Narrow cells and gaps by what the sums say; what is out stays out.

        Parameters
        ----------
        of_groups, of_pairs : array, shape (M, G) and (M, pairs)
            L: the thresholds that ln W of a group, or of a pair of groups, must exceed.
        founders : int
            How many groups were in from the start.

        Returns
        -------
        BettingState
            A new state.
        """

        def flat(array: FloatArray, axes: int) -> FloatArray:
            # the first axes as one; a view where the array is contiguous
            return np.ascontiguousarray(array.reshape(-1, *array.shape[axes:]))

        lower = self.lower.copy()
        upper = self.upper.copy()
        lost = self.lost
        L = of_groups[:, np.newaxis, :, np.newaxis] + lost[:, :, np.newaxis]
        narrow_cells(flat(self.wealth, 3), flat(L, 3), flat(lower, 3), flat(upper, 3))
        gap_lower = self.gap_lower.copy()
        gap_upper = self.gap_upper.copy()
        empty = self.contradiction | np.asarray((lower > upper).all(axis=-1)).any(axis=(1, 2))
        shape = lost.shape[:2]
        for at, (i, j) in enumerate(combinations(range(lower.shape[2]), 2)):
            wealth = self.wealth
            if j >= founders:
                wealth = wealth - self.wealth_before[:, j - founders]
            L = flat(of_pairs[:, at, np.newaxis, np.newaxis] + lost, 2)
            (w_j, *cells_j), (w_i, *cells_i) = (
                [flat(array[:, :, one], 2) for array in (wealth, lower, upper)] for one in (j, i)
            )
            rise = largest_gaps(w_j, w_i, cells_j, cells_i, L).reshape(shape)
            fall = largest_gaps(w_i, w_j, cells_i, cells_j, L).reshape(shape)
            gap_upper[:, :, at] = np.minimum(gap_upper[:, :, at], np.maximum(rise, -1.0))
            gap_lower[:, :, at] = np.maximum(gap_lower[:, :, at], np.minimum(-fall, 1.0))
            empty |= np.isneginf(np.minimum(rise, fall)).any(axis=1)
        empty |= (gap_lower > gap_upper).any(axis=(1, 2))
        left = replace(self, lower=lower, upper=upper, contradiction=empty)
        in_play = left.classes_left[..., CLASS_OF_NODE][..., np.newaxis, np.newaxis, :]
        wealth = np.where(in_play, self.wealth, 0.0)
        return replace(left, gap_lower=gap_lower, gap_upper=gap_upper, wealth=wealth)


@dataclass(frozen=True)
class GroupJoin:
    """A group that joined after the start.

    Parameters
    ----------
    delta : float
        Its part of delta.
    hypotheses : int
        The hypotheses that ran when it joined.

    Examples
    --------
    >>> GroupJoin(delta=0.005, hypotheses=12).delta
    0.005
    """

    delta: float
    hypotheses: int


@dataclass(frozen=True, eq=False, repr=False)
class BettingBound(Brief):
    """One family of betting processes; see the theorem of the module `evenhand.bounds.betting`.

    Parameters
    ----------
    groups : tuple
        The groups whose gaps are bounded, at least two.
    rates : tuple of Rate
        The rates, at least one.
    hypotheses : int
        How many non-constant hypotheses share `delta`.
    delta : float
        delta of the family.
    delta_parts : tuple of float, optional
        The part of delta of each hypothesis (the N-th nominated: 6 delta / (pi^2 N^2)); equal parts
        by default.
    horizons : tuple of float, optional
        n_k: the numbers of rounds for which the K bets are best.
    joint_part : float, default 0.8
        The part of delta that goes to the gaps; the rest goes to the rates.
    joins : tuple of GroupJoin, optional
        One entry for each of the last groups that joined after the start.
    started_with : tuple of int, optional
        How many groups were in when each hypothesis started; all founders by default.

    Raises
    ------
    InvalidInput
        If a number is out of its range, or the parts sum to more than delta.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate
    >>> bound = BettingBound(("a", "b"), (FalsePositiveRate(),), 1, 0.05)
    >>> cohort = Cohort(
    ...     [[True, False] * 2], [0, 0, 1, 1], acceptance=1.0, regression=0.5,
    ...     rejected=0, positive=0, negative=[9000, 1000, 1000, 9000],
    ... )
    >>> state = bound.update(bound.start(), cohort, bound.plan(bound.start()))
    >>> intervals = bound.intervals(state)
    >>> bool(intervals.lower < -0.8 < intervals.upper < -0.7)
    True
    """

    groups: tuple[Hashable, ...]
    rates: tuple[Rate, ...]
    hypotheses: int
    delta: float
    delta_parts: tuple[float, ...] | None = None
    horizons: tuple[float, ...] = HORIZONS
    joint_part: float = 0.8
    joins: tuple[GroupJoin, ...] = ()
    started_with: tuple[int, ...] | None = None
    _deltas: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rates: Rate | Sequence[Rate] = self.rates
        object.__setattr__(self, "rates", as_rates(rates))
        object.__setattr__(self, "groups", tuple(self.groups))
        delta = self.delta
        horizons = self.horizons
        require_delta(delta)
        if len(self.groups) < 2 or len(set(self.groups)) < len(self.groups):
            raise InvalidInput(
                f"groups is {self.groups}; a gap needs at least two groups, each named once."
            )
        if not horizons or min(horizons) <= 0 or list(horizons) != sorted(horizons):
            raise InvalidInput(f"horizons is {horizons}; they are positive and increase.")
        require_share("joint_part", self.joint_part, "(0, 1)")
        if self.hypotheses < 0:
            raise InvalidInput(f"hypotheses is {self.hypotheses}; there are at least 0.")
        equal = np.full(self.hypotheses, delta / max(self.hypotheses, 1))
        deltas = equal if self.delta_parts is None else np.array(self.delta_parts, dtype=np.float64)
        if len(deltas) != self.hypotheses or not (deltas > 0).all():
            raise InvalidInput(
                f"delta_parts has {len(deltas)} entries for {self.hypotheses} hypotheses; each "
                "needs one above 0."
            )
        if deltas.sum() > delta * (1 + 1e-12):
            raise InvalidInput(f"delta_parts sum to {deltas.sum():.6g}, more than delta {delta}.")
        object.__setattr__(self, "_deltas", deltas)
        if self.started_with is None:
            object.__setattr__(self, "started_with", (self.founders,) * self.hypotheses)
        if len(self._started) != self.hypotheses or self.founders < 2:
            raise InvalidInput(
                f"{self.founders} groups began and {len(self._started)} hypotheses say when they "
                "started."
            )

    @property
    def founders(self) -> int:
        """How many groups were in from the start."""
        return len(self.groups) - len(self.joins)

    @property
    def _started(self) -> IntArray:
        return np.array(self.started_with or (), dtype=np.int64)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(later, earlier) for each pair of groups, in the order of `GapConstraints`."""
        return tuple((later, first) for first, later in combinations(range(len(self.groups)), 2))

    @property
    def names(self) -> tuple[str, ...]:
        """One name for each rate and pair of groups."""
        pairs = [f"{self.groups[j]} minus {self.groups[i]}" for j, i in self.pairs]
        return tuple(f"{rate.symbol} {pair}" for rate in self.rates for pair in pairs)

    @property
    def joint_threshold(self) -> FloatArray:
        """L_joint (M,) = ln(R G(G-1) K / (joint_part delta_h)): one test for each rate, ordered
        pair and bet, G groups at h's start.
        """
        tests = len(self.rates) * len(self.horizons) * (self._started * (self._started - 1))
        return np.log(tests / (self.joint_part * self._deltas))

    @property
    def box_threshold(self) -> FloatArray:
        """L_box (M,) = ln(2 R G K / ((1 - joint_part) delta_h)): one test for each side, rate,
        group and bet.
        """
        tests = 2 * len(self.rates) * len(self.horizons) * self._started
        return np.log(tests / ((1.0 - self.joint_part) * self._deltas))

    @property
    def pair_thresholds(self) -> FloatArray:
        """(M, pairs): L_joint, or that of the group that joined the pair after the hypothesis had
        started, which pays for its pairs with all groups before it.
        """
        latest = [later for later, _ in self.pairs]
        return self._with_joins(self.joint_threshold, latest, latest, self.joint_part)

    @property
    def group_thresholds(self) -> FloatArray:
        """(M, G): L_box, or that of a group that joined after the hypothesis had started."""
        groups = len(self.groups)
        part = 1.0 - self.joint_part
        return self._with_joins(self.box_threshold, range(groups), [1] * groups, part)

    def _with_joins(
        self, first: FloatArray, latest: Sequence[int], tests: Sequence[int], part: float
    ) -> FloatArray:
        """(M, columns): `first` (M,), or ln(2 R K H tests / (part delta_N)) of group `latest`."""
        thresholds = np.repeat(first[:, np.newaxis], len(latest), axis=1)
        for column, group in enumerate(latest):
            if group >= self.founders:
                join = self.joins[group - self.founders]
                union = 2 * len(self.rates) * len(self.horizons) * join.hypotheses * tests[column]
                before = self._started <= group
                thresholds[before, column] = np.log(union / (part * join.delta)) if union else 0.0
        return thresholds

    def start(self) -> BettingState:
        """The state before the first round.

        Returns
        -------
        BettingState
            Nothing seen.
        """
        sizes = len(self.rates), len(self.groups), len(self.horizons), len(self.joins)
        return BettingState.empty(self.hypotheses, *sizes)

    def joined_by(self, delta: float) -> "BettingBound":
        """The family with one more hypothesis; its state joins by `BettingState.joined`.

        Parameters
        ----------
        delta : float
            The part of delta of the new hypothesis.

        Returns
        -------
        BettingBound
            The larger family.
        """
        return replace(
            self,
            hypotheses=self.hypotheses + 1,
            delta_parts=(*self._deltas.tolist(), delta),
            started_with=(*self._started.tolist(), len(self.groups)),
        )

    def joined_by_group(self, group: Hashable, delta: float) -> "BettingBound":
        """The family with one more group; its state joins by `BettingState.with_group`.

        Parameters
        ----------
        group : hashable
            The name of the group.
        delta : float
            The part of delta of its processes, in addition to `delta`.

        Returns
        -------
        BettingBound
            The larger family.
        """
        require_delta(delta, f"delta of group {group!r}, which joins,")
        parts = self.delta_parts if self.delta_parts is None else tuple(self._deltas.tolist())
        join = GroupJoin(delta, self.hypotheses)
        return replace(
            self, groups=(*self.groups, group), delta_parts=parts, joins=(*self.joins, join)
        )

    def plan(self, state: BettingState, forecast: Forecast | None = None) -> EpochPlan:
        """How much to bet in the next epoch.

        Parameters
        ----------
        state : BettingState
            What earlier epochs left; nothing of the next epoch may be in it.
        forecast : Forecast, optional
            Who is to come, and how they will be accepted; without it, as if all were accepted.

        Returns
        -------
        EpochPlan
            The shares and bets.

        Notes
        -----
        ::

            c_j = 1 / max(P_hat[a = j, in the denominator], SHARE_FLOOR)
            V1 = 2/G sum_j c_j f_j (1 - f_j)     the variance of one increment if all are accepted
            V1 / V_e                             what the next epoch's probabilities leave of it
            lambda_k = sqrt(2 L / (n_k V1)) min(1, V1 / V_e), rounded to a power of sqrt(2)

        A bet that is wrong by a factor of 2^(1/4), the most that rounding does, costs at most 1.5%
        of width; the bets of all hypotheses then have few values, and so have the logarithms to be
        computed. With two groups 2/G sum_j is the sum over the pair. All of it may be wrong without
        harm: it decides the width, never the validity.
        """
        # P_hat (R, G) from the process that has run longest, smoothed by a prior
        groups = len(self.groups)
        counted = [counts_labels(rate).mean() / groups for rate in self.rates]
        shares = np.array([np.full(groups, share) for share in counted])
        if len(state.rounds):
            oldest = int(np.argmax(state.rounds))
            seen = state.rounds[oldest] + PRIOR_ROUNDS
            shares = np.clip((state.mass[oldest] + PRIOR_ROUNDS * shares) / seen, SHARE_FLOOR, 1.0)
        inverse_share = 1.0 / shares
        # f_hat (M, R, G) = (sum h phi + 1) / (sum phi + 2), inside what is left
        mass = np.maximum(state.mass, 0.0)
        raw = (np.clip(state.hits, 0.0, mass) + 1.0) / (mass + 2.0)
        f = np.clip(np.clip(raw, *state.box), RATE_MARGIN, 1.0 - RATE_MARGIN)
        kept = np.ones((len(state.rounds), len(self.rates)))
        if forecast is not None:
            for r, rate in enumerate(self.rates):
                kept[:, r] = forecast.variance_kept(rate, inverse_share[r], f[:, r])
        threshold = self.pair_thresholds.max(axis=1, initial=0.0)
        variance = 2.0 / groups * (inverse_share * f * (1.0 - f)).sum(axis=2)
        wished = np.sqrt(2.0 * threshold[:, np.newaxis] / variance) * kept
        wished = wished[..., np.newaxis] / np.sqrt(np.array(self.horizons))
        bets = np.asarray(np.exp2(np.round(2.0 * np.log2(wished)) / 2.0))
        seen_rounds = float(state.rounds.max(initial=0.0))
        return EpochPlan(inverse_share, bets, seen_rounds, len(state.rounds))

    def update(self, state: BettingState, cohort: Cohort, plan: EpochPlan) -> BettingState:
        """The state after a closed cohort: its rounds are added, rates and gaps narrowed.

        Parameters
        ----------
        state : BettingState
            The state so far.
        cohort : Cohort
            The rounds, each cohort once.
        plan : EpochPlan
            The plan that was made before the cohort was looked at. Hypotheses and groups that
            joined since then bet nothing on it.

        Returns
        -------
        BettingState
            A new state; the old one stays as it is.

        Raises
        ------
        LengthMismatch
            If state and cohort are for different numbers of hypotheses, or the plan is for more.
        ProtocolError
            If the plan knows more rounds than the state.
        """
        runs = len(state.rounds)
        plan = plan.grown_to(self.hypotheses, len(self.groups))
        sizes = {cohort.hypotheses, runs, len(plan.bets), self.hypotheses}
        if len(sizes) > 1:
            raise LengthMismatch(
                f"the cohort is for {cohort.hypotheses} hypotheses, the plan for "
                f"{len(plan.bets)}, the state for {runs} and the bound for "
                f"{self.hypotheses}; they must be the same ones."
            )
        strange = (cohort.group < -1) | (cohort.group >= len(self.groups))
        if strange.any():
            row = int(np.argmax(strange))
            raise InvalidInput(
                f"group code {cohort.group[row]} in row {row}; codes are 0 to "
                f"{len(self.groups) - 1}, or -1 for a group outside the certificate."
            )
        if plan.made_after > state.rounds.max(initial=0.0):
            raise ProtocolError(
                f"the plan was made after {plan.made_after:g} rounds but the state has seen "
                f"{state.rounds.max():g}: it knows the data it is to bet on."
            )
        seen = state.with_cohort(self.rates, cohort, plan.bets, plan.inverse_share)
        return seen.narrowed(self.group_thresholds, self.pair_thresholds, self.founders)

    def intervals(self, state: BettingState) -> GapIntervals:
        """Gaps and rates as the user knows them.

        Parameters
        ----------
        state : BettingState
            The state after any update.

        Returns
        -------
        GapIntervals
            For a false negative rate, [-upper, -lower] of the true positive rate's gap.
        """
        flips = np.array([rate.sign < 0 for rate in self.rates])[:, np.newaxis]
        claimed = ~state.contradiction[:, np.newaxis, np.newaxis]
        gap_lower = np.where(claimed, state.gap_lower, -1.0)
        gap_upper = np.where(claimed, state.gap_upper, 1.0)
        lower, upper = state.box
        return GapIntervals(
            np.where(flips, -gap_upper, gap_lower),
            np.where(flips, -gap_lower, gap_upper),
            np.where(flips, 1.0 - upper, lower),
            np.where(flips, 1.0 - lower, upper),
            self.names,
            state.contradiction,
        )
