"""Betting cell by cell: intervals for the gap of every hypothesis that hold at all times at once,
whatever the learner did.

Theorem. Fix M hypotheses, G groups, R rates and delta. People (x, a, y) are drawn independently
from D; each is accepted with probability p(x) by a coin of its own. If p, the regression m, the
bets lambda and the shares c of each epoch are functions of earlier epochs (p and m also of x), then
with probability at least 1 - delta every interval that `intervals` ever returns contains the true
gap, for all hypotheses, rates and pairs of groups, after every update.

Proof, for the false positive rate (docs/promise-proof.md has every step). Let N = 1[y = -1], f_j =
P(h = 1 | a = j, N = 1), and

    phi = m' + 1[accepted]/p (N - m')                       with m' a function of x, of the past, of the side and of h(x)

Given person and past, E[phi] = N: the coin is fresh. So 1[a = j] phi (h - f_j) has mean zero, and

    W_up(f)  = prod (1 - g_j 1[a = j] phi (h - f)),   W_low(f) = prod (1 + g_j 1[a = j] phi (h - f)),   g_j = lambda c_j, cut

are martingales at the true f = f_j, as is W_up(f_j) W_low(f_i) for two groups (nobody belongs to
both). [0, 1] is cut into eight classes before any data. In each of them stake and m' are cut so
that every factor is at least 1/5 for every f of the class; the truth lies in one class, and its
processes are those of that class. Ville: a non-negative martingale that starts at 1 ever reaches
e^L with probability at most e^-L. Within a class ln W is concave in f, so it lies above its chord
over each of the cells into which the class is cut: a point whose chord exceeds L is out.
`betting_wealth` has the formulas.

Single processes rule out rates (L_box = ln(2 R G K M / (.2 delta))), pairs rule out gaps (L_joint =
ln(R G(G-1) K M / (.8 delta))); the union over hypotheses, rates, groups or ordered pairs, sides and
K bets costs delta in all. Nothing is split over epochs, classes or cells: the truth needs the
processes of its own class alone. A label that has not arrived takes the value that makes the factor
of W smallest; a person of whom nothing is known any more takes the smallest factor there can be, so
L grows by `lost`. Other rates: exchange the labels (true positive rate; the gap of the false
negative rate is minus its gap), or phi = 1 (selection rate), which needs neither label nor coin.

A group that joins later has its own share delta_N. Its pairs with the k groups before it start at
wealth 1 from the sums of that moment, L = ln(2 R k K M / (.8 delta_N)), and so do its own
processes, L = ln(2 R K M / (.2 delta_N)). Hypotheses that start later than that pay for all groups
then in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from evenhand.bounds.betting_plan import (
    expected_rates,
    expected_shares,
    rates_of_betting,
    variance_kept,
)
from evenhand.bounds.betting_records import (
    BettingState,
    Cohort,
    CohortInfo,
    EpochPlan,
    Forecast,
    GapIntervals,
    acceptance_of,
    counted_rounds,
    counts_labels,
    regression_of,
)
from evenhand.bounds.betting_wealth import (
    CLASS_OF_CELL,
    CLASS_OF_NODE,
    SPANS,
    THETA,
    Entries,
    add_wealth,
    largest_gaps,
    narrow_cells,
)
from evenhand.errors import InvalidInput, LengthMismatch, ProtocolError
from evenhand.fairness.rates import Rate, as_rates
from evenhand.words import FloatArray, IntArray

HORIZONS = tuple(1000.0 * 4**k for k in range(6))


@dataclass(frozen=True)
class GroupJoin:
    """A group that joined after the start: its share of delta, and the hypotheses that ran then."""

    share: float
    hypotheses: int


@dataclass(frozen=True, eq=False)
class BettingBound:
    """One family of betting processes: `hypotheses` non-constant hypotheses share
    `failure_probability`.

    Each of them gets an equal part, or its entry of `shares` (the N-th nominated: 6 delta / (pi^2
    N^2)). `horizons` n_k: the numbers of rounds for which the K bets are best; `joint_part` of
    delta goes to the gaps, the rest to the rates. `joins`: one entry for each of the last groups,
    which joined after the start; `started_with`: how many groups were in when each hypothesis
    started (all founders).
    """

    groups: tuple[Any, ...]
    rates: tuple[Rate, ...]
    hypotheses: int
    failure_probability: float
    shares: tuple[float, ...] | None = None
    horizons: tuple[float, ...] = HORIZONS
    joint_part: float = 0.8
    joins: tuple[GroupJoin, ...] = ()
    started_with: tuple[int, ...] | None = None
    _deltas: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rates: Rate | Sequence[Rate] = self.rates
        object.__setattr__(self, "rates", as_rates(rates))
        object.__setattr__(self, "groups", tuple(self.groups))
        self._refuse_nonsense()
        equal = np.full(self.hypotheses, self.failure_probability / max(self.hypotheses, 1))
        deltas = equal if self.shares is None else np.array(self.shares, dtype=np.float64)
        if len(deltas) != self.hypotheses or not (deltas > 0).all():
            raise InvalidInput(
                f"shares has {len(deltas)} entries for {self.hypotheses} hypotheses; each needs one above 0."
            )
        if deltas.sum() > self.failure_probability * (1 + 1e-12):
            raise InvalidInput(
                f"the shares sum to {deltas.sum():.6g}, more than failure_probability {self.failure_probability}.",
                hint="the N-th nominated hypothesis may book 6 delta / (pi^2 N^2).",
            )
        object.__setattr__(self, "_deltas", deltas)
        if self.started_with is None:
            object.__setattr__(self, "started_with", (self.founders,) * self.hypotheses)
        if len(self._started) != self.hypotheses or self.founders < 2:
            raise InvalidInput(
                f"{self.founders} groups began and {len(self._started)} hypotheses say when they started."
            )

    @property
    def founders(self) -> int:
        """How many groups were in from the start."""
        return len(self.groups) - len(self.joins)

    @property
    def _started(self) -> IntArray:
        return np.array(self.started_with or (), dtype=np.int64)

    def _refuse_nonsense(self) -> None:
        if not 0 < self.failure_probability < 1:
            raise InvalidInput(
                f"failure_probability is {self.failure_probability}; it lies strictly between 0 and 1."
            )
        if len(self.groups) < 2 or len(set(self.groups)) < len(self.groups):
            raise InvalidInput(
                f"groups is {self.groups}; a gap needs at least two groups, each named once."
            )
        if not self.rates or len(set(self.rates)) < len(self.rates):
            raise InvalidInput(
                "rates is empty or names a rate twice; constrain at least one, each once."
            )
        if (
            not self.horizons
            or min(self.horizons) <= 0
            or list(self.horizons) != sorted(self.horizons)
        ):
            raise InvalidInput(f"horizons is {self.horizons}; they are positive and increase.")
        if not 0 < self.joint_part < 1 or self.hypotheses < 0:
            raise InvalidInput(
                f"joint_part is {self.joint_part} and hypotheses {self.hypotheses}; they lie in (0, 1) and from 0 up."
            )

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(later, earlier) for each pair of groups, in the order of `GapConstraints`."""
        return tuple(
            (later, earlier) for earlier, later in combinations(range(len(self.groups)), 2)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """One name for each rate and pair of groups."""
        return tuple(
            f"{r.symbol} {self.groups[j]} - {self.groups[i]}"
            for r in self.rates
            for j, i in self.pairs
        )

    @property
    def joint_threshold(self) -> FloatArray:
        """L_joint (M,) = ln(R G(G-1) K / (joint_part delta_h)): one test for each rate, ordered
        pair and bet, G groups at h's start.
        """
        ordered = self._started * (self._started - 1)
        return np.log(
            len(self.rates) * len(self.horizons) * ordered / (self.joint_part * self._deltas)
        )

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
        started.
        """
        found = np.repeat(self.joint_threshold[:, np.newaxis], len(self.pairs), axis=1)
        for at, (later, _) in enumerate(self.pairs):
            if later >= self.founders:
                join = self.joins[later - self.founders]
                tests = 2 * len(self.rates) * later * len(self.horizons) * join.hypotheses
                before = self._started <= later
                found[before, at] = (
                    np.log(tests / (self.joint_part * join.share)) if join.hypotheses else 0.0
                )
        return found

    @property
    def group_thresholds(self) -> FloatArray:
        """(M, G): L_box, or that of a group that joined after the hypothesis had started."""
        found = np.repeat(self.box_threshold[:, np.newaxis], len(self.groups), axis=1)
        for group in range(self.founders, len(self.groups)):
            join = self.joins[group - self.founders]
            tests = 2 * len(self.rates) * len(self.horizons) * join.hypotheses
            before = self._started <= group
            found[before, group] = (
                np.log(tests / ((1.0 - self.joint_part) * join.share)) if join.hypotheses else 0.0
            )
        return found

    def start(self) -> BettingState:
        """The state before the first round."""
        return BettingState.empty(
            self.hypotheses, len(self.rates), len(self.groups), len(self.horizons), len(self.joins)
        )

    def joined_by(self, share: float) -> "BettingBound":
        """The family with one more hypothesis, which has its own part of delta; its state joins by
        `state.joined`.
        """
        return replace(
            self,
            hypotheses=self.hypotheses + 1,
            shares=(*self._deltas.tolist(), share),
            started_with=(*self._started.tolist(), len(self.groups)),
        )

    def joined_by_group(self, group: Any, share: float) -> "BettingBound":
        """The family with one more group, whose processes have their own part of delta; its state
        joins by `state.with_group`.
        """
        if not 0 < share < 1:
            raise InvalidInput(
                f"group {group!r} joins with a share of {share}; a share lies in (0, 1)."
            )
        shares = self.shares if self.shares is None else tuple(self._deltas.tolist())
        join = GroupJoin(share, self.hypotheses)
        return replace(self, groups=(*self.groups, group), shares=shares, joins=(*self.joins, join))

    def plan(self, state: BettingState, forecast: Forecast | None = None) -> EpochPlan:
        """What the next epoch bets, from a state that has seen earlier epochs only; without a
        forecast as if all were accepted.
        """
        groups = len(self.groups)
        prior = np.array(
            [np.full(groups, counted.mean() / groups) for counted in map(counts_labels, self.rates)]
        )
        inverse_share = 1.0 / expected_shares(state, prior)
        f = expected_rates(state)
        kept = np.ones((len(state), len(self.rates)))
        if forecast is not None:
            for r, rate in enumerate(self.rates):
                m, p = (
                    regression_of(rate, forecast.regression),
                    acceptance_of(rate, forecast.acceptance),
                )
                kept[:, r] = variance_kept(
                    replace(forecast, acceptance=p), m, inverse_share[r], f[:, r]
                )
        threshold = self.pair_thresholds.max(axis=1, initial=0.0)
        bets = rates_of_betting(threshold, np.array(self.horizons), inverse_share, f, kept)
        return EpochPlan(inverse_share, bets, float(state.rounds.max(initial=0.0)), len(state))

    def update(
        self, state: BettingState, cohort: Cohort, plan: EpochPlan
    ) -> tuple[BettingState, CohortInfo]:
        """Add a closed cohort under the plan that was made before it; narrow rates and gaps."""
        self._refuse_misfits(state, cohort, plan)
        return self._concluded(self._added(state, cohort, plan)), self._info(cohort)

    def intervals(self, state: BettingState) -> GapIntervals:
        """Gaps and rates as the user knows them: for a false negative rate, [-hi, -lo] of the true
        positive rate's.
        """
        flips = np.array([rate.sign < 0 for rate in self.rates])[:, np.newaxis]
        claimed = ~state.contradiction[:, np.newaxis, np.newaxis]
        low, high = (
            np.where(claimed, state.gap_lower, -1.0),
            np.where(claimed, state.gap_upper, 1.0),
        )
        lower, upper = state.box
        return GapIntervals(
            np.where(flips, -high, low),
            np.where(flips, -low, high),
            np.where(flips, 1.0 - upper, lower),
            np.where(flips, 1.0 - lower, upper),
            self.names,
            state.contradiction,
        )

    def _added(self, state: BettingState, cohort: Cohort, plan: EpochPlan) -> BettingState:
        """The state with the cohort's rounds in its sums; nothing is concluded from them yet."""
        wealth, hits, mass, lost = (
            array.copy() for array in (state.wealth, state.hits, state.mass, state.lost)
        )
        alive = np.stack(
            [state.left[..., c == CLASS_OF_CELL].any(axis=-1) for c in range(len(SPANS))], axis=-1
        )
        alive &= ~state.contradiction[:, np.newaxis, np.newaxis, np.newaxis]
        accepts = cohort.accepts.astype(np.float64)
        for r, rate in enumerate(self.rates):
            group = cohort.group if counts_labels(rate).all() else cohort.labelled_group
            rounds = counted_rounds(rate, cohort)
            lost[:, r] += self._lost(rate, cohort, plan.bets[:, r] * plan.inverse_share[r].max())
            mass[:, r] += self._by_group(group, rounds.phi)
            hits[:, r] += accepts @ np.where(
                group[:, np.newaxis] == np.arange(len(self.groups)), rounds.phi[:, np.newaxis], 0.0
            )
            parts = Entries.of_groups(
                cohort.accepts,
                group,
                rounds.inverse,
                rounds.regression,
                rounds.outcomes,
                len(self.groups),
            )
            for j, entries in parts:
                add_wealth(
                    wealth[:, r, j],
                    entries,
                    plan.bets[:, r],
                    float(plan.inverse_share[r, j]),
                    alive[:, r, j],
                )
        rounds_seen = state.rounds + cohort.rounds.sum()
        return replace(state, wealth=wealth, hits=hits, mass=mass, rounds=rounds_seen, lost=lost)

    def _concluded(self, state: BettingState) -> BettingState:
        """Narrow cells and gaps by what the sums say; what is out stays out."""
        lower, upper, lost = state.lower.copy(), state.upper.copy(), state.lost
        L = self.group_thresholds[:, np.newaxis, :, np.newaxis] + lost[:, :, np.newaxis]
        narrow_cells(_flat(state.wealth, 3), _flat(L, 3), _flat(lower, 3), _flat(upper, 3))
        gap_lower, gap_upper, empty = (
            state.gap_lower.copy(),
            state.gap_upper.copy(),
            state.contradiction.copy(),
        )
        for at, pair in enumerate(self.pairs):
            wealth, join = state.wealth, max(pair) - self.founders
            if join >= 0:
                wealth = wealth - state.wealth_before[:, join]
            L = self.pair_thresholds[:, at, np.newaxis, np.newaxis] + lost
            (w_j, w_i), (l_j, l_i), (u_j, u_i) = (
                [_flat(array[:, :, j], 2) for j in pair] for array in (wealth, lower, upper)
            )
            rise = largest_gaps(w_j, w_i, (l_j, u_j), (l_i, u_i), _flat(L, 2))
            fall = largest_gaps(w_i, w_j, (l_i, u_i), (l_j, u_j), _flat(L, 2))
            gap_upper[:, :, at] = np.minimum(
                gap_upper[:, :, at], np.maximum(rise, -1.0).reshape(lost.shape[:2])
            )
            gap_lower[:, :, at] = np.maximum(
                gap_lower[:, :, at], np.minimum(-fall, 1.0).reshape(lost.shape[:2])
            )
            empty |= np.isneginf(np.minimum(rise, fall)).reshape(lost.shape[:2]).any(axis=1)
        empty |= np.asarray((lower > upper).all(axis=-1)).any(axis=(1, 2)) | (
            gap_lower > gap_upper
        ).any(axis=(1, 2))
        out = np.stack(
            [(lower > upper)[..., c == CLASS_OF_CELL].all(axis=-1) for c in range(len(SPANS))],
            axis=-1,
        )
        wealth = np.where(
            out[..., CLASS_OF_NODE][..., np.newaxis, np.newaxis, :], 0.0, state.wealth
        )
        return replace(
            state,
            wealth=wealth,
            lower=lower,
            upper=upper,
            gap_lower=gap_lower,
            gap_upper=gap_upper,
            contradiction=empty,
        )

    @staticmethod
    def _lost(rate: Rate, cohort: Cohort, stakes: FloatArray) -> FloatArray:
        """(M, K): what the people of whom nothing is known any more may have cost a process, at
        most, in logarithms.

        -ln(1 - min(THETA, g w)), w = 1 for a rejected one, for p = 1 and for a rate that needs no
        label, where |phi| <= 1, else 1/p; the clamp keeps every factor above 1 - THETA. stakes (M,
        K): g is the largest over the groups, as the group is lost, too.
        """
        whole = counts_labels(rate).all()
        if not len(cohort.lost_count) or not (whole or cohort.labelled.any()):
            return np.zeros(stakes.shape)
        weight = np.ones(len(cohort.lost_count)) if whole else cohort.lost_weight
        cost = -np.log1p(-np.minimum(THETA, stakes[:, :, np.newaxis] * weight))
        return np.asarray(cost @ cohort.lost_count)

    def _info(self, cohort: Cohort) -> CohortInfo:
        per_group, inside = self._by_group(cohort.group, cohort.rounds), cohort.group >= 0
        return CohortInfo(
            rounds=per_group,
            outside=float(cohort.rounds[~inside].sum()),
            unresolved=self._by_group(cohort.group, cohort.unresolved),
            least_acceptance=float(cohort.acceptance.min(initial=1.0, where=inside)),
        )

    def _by_group(self, group: IntArray, column: FloatArray) -> FloatArray:
        """(G,): the column's total in each group."""
        totals = np.bincount(group + 1, weights=column, minlength=len(self.groups) + 1)
        return np.asarray(totals[1:], dtype=np.float64)

    def _refuse_misfits(self, state: BettingState, cohort: Cohort, plan: EpochPlan) -> None:
        sizes = {len(cohort.accepts), len(state), len(plan.bets), self.hypotheses}
        if len(sizes) > 1:
            raise LengthMismatch(
                f"the cohort is for {len(cohort.accepts)} hypotheses, the plan for {len(plan.bets)}, "
                f"the state for {len(state)} and the bound for {self.hypotheses}; they must be the same ones."
            )
        _refuse_codes(cohort.group, len(self.groups))
        if plan.made_after > state.rounds.max(initial=0.0):
            raise ProtocolError(
                f"the plan was made after {plan.made_after:g} rounds but the state has seen {state.rounds.max():g}: "
                "it knows the data it is to bet on.",
                hint="make the plan before the epoch, from the state that the update is given or an earlier one.",
            )


def _flat(array: FloatArray, axes: int) -> FloatArray:
    """The first axes as one; a view where the array is contiguous."""
    return np.ascontiguousarray(array.reshape(-1, *array.shape[axes:]))


def _refuse_codes(group: IntArray, groups: int) -> None:
    bad = (group < -1) | (group >= groups)
    if bad.any():
        raise InvalidInput(
            f"group code {group[np.argmax(bad)]} in row {int(np.argmax(bad))}; codes are 0 to {groups - 1}, or -1 for outside.",
            hint="a new group value is counted outside the certificate: give it the code -1.",
        )
