"""The nouns of the betting bound: a closed cohort of rounds, a forecast of the next epoch, the plan
made from it, the state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.bounds.betting_wealth import EDGES, NODES
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.fairness.rates import Rate
from evenhand.words import BoolArray, FloatArray, IntArray, as_numbers

COUNTS = ("rejected", "positive", "negative", "unresolved")


@dataclass(frozen=True, eq=False)
class Cohort:
    """Rounds whose maturity window has closed, in rows of equal features, group, acceptance
    probability and regression.

    accepts (M, n): does hypothesis h accept the people of row i? group (n,): the code 0..G-1, or -1
    for "outside". acceptance p (n,): the probability under which the rounds were played, exactly as
    it was drawn. regression m (n,): a forecast of P[y = -1 | x], clipped to [0, 1]. rejected,
    positive, negative, unresolved (n,): rounds rejected; accepted with y = +1, with y = -1, and
    with a label that has not arrived.

    labelled (G,): groups in which the policy, known before the coins, accepts everybody with a
    positive probability; the rates that need labels look at their rows alone, and there p > 0.
    lost_count, lost_weight: people of whom nothing but the draw is known any more, and the largest
    |phi| that each may have had before the clamp (1/p if accepted, else 1).

    Laws that no code can check: p and m are functions of the person's features (and group) and of
    *earlier* epochs alone; the coin was drawn afresh for each person; whether the group is known
    does not depend on the decision.
    """

    accepts: BoolArray
    group: IntArray
    acceptance: FloatArray
    regression: FloatArray
    rejected: FloatArray
    positive: FloatArray
    negative: FloatArray
    unresolved: FloatArray
    labelled: BoolArray
    lost_count: FloatArray
    lost_weight: FloatArray

    @classmethod
    def of(
        cls,
        accepts: ArrayLike,
        group: ArrayLike,
        *,
        acceptance: ArrayLike,
        regression: ArrayLike,
        rejected: ArrayLike,
        positive: ArrayLike,
        negative: ArrayLike,
        unresolved: ArrayLike = 0.0,
        labelled: ArrayLike | None = None,
        lost_count: ArrayLike = (),
        lost_weight: ArrayLike = (),
    ) -> "Cohort":
        """Check and convert; one number stands for all rows. labelled: all groups by default."""
        table, codes = _table(accepts, group)
        rows = len(codes)
        given = zip(COUNTS, (rejected, positive, negative, unresolved), strict=True)
        columns = {name: as_numbers(value, rows, name) for name, value in given}
        p, m = (
            as_numbers(acceptance, rows, "acceptance"),
            as_numbers(regression, rows, "regression"),
        )
        groups = int(codes.max(initial=-1)) + 1
        known = (
            np.ones(groups, dtype=bool) if labelled is None else np.asarray(labelled, dtype=bool)
        )
        return cls(
            accepts=table,
            group=codes,
            acceptance=p,
            regression=np.clip(m, 0.0, 1.0),
            **columns,
            labelled=known,
            lost_count=np.asarray(lost_count, dtype=np.float64),
            lost_weight=np.asarray(lost_weight, dtype=np.float64),
        )

    def __post_init__(self) -> None:
        for name in COUNTS:
            column = getattr(self, name)
            _refuse(column < 0, column, name, "a count cannot be below 0")
        if (
            len(self.lost_count) != len(self.lost_weight)
            or (self.lost_weight < 1).any()
            or (self.lost_count < 0).any()
        ):
            raise InvalidInput(
                "lost people come with a count of at least 0 and a largest weight of at least 1."
            )
        _refuse(
            ~((self.acceptance >= 0) & (self.acceptance <= 1)),
            self.acceptance,
            "acceptance",
            "it is a probability",
        )
        _refuse(
            (self.labelled_group >= 0) & (self.acceptance <= 0),
            self.acceptance,
            "acceptance",
            "a certificate needs every probability of being accepted in (0, 1], because it divides by it",
            "play with an exploration floor, and log the probability that decide() returned.",
        )
        certain = (self.acceptance == 1) & (self.rejected > 0)
        _refuse(certain, self.rejected, "acceptance is 1 but rejected", "that cannot have happened")

    def __len__(self) -> int:
        return len(self.group)

    @property
    def labelled_group(self) -> IntArray:
        """(n,): the group's code where labels may be looked at, else -1."""
        inside = self.group >= 0
        counted = np.zeros(len(self.group), dtype=bool)
        counted[inside] = self.labelled[self.group[inside]]
        return np.where(counted, self.group, -1)

    @property
    def rounds(self) -> FloatArray:
        """Rounds in each row."""
        return self.rejected + self.positive + self.negative + self.unresolved


@dataclass(frozen=True, eq=False)
class CountedRounds:
    """A cohort as one rate sees it: a `hit` is an accepted round in the rate's denominator, a
    `miss` one outside it.
    """

    inverse: FloatArray
    regression: FloatArray
    rejected: FloatArray
    hit: FloatArray
    miss: FloatArray
    unresolved: FloatArray

    @property
    def outcomes(self) -> FloatArray:
        """(4, n): rounds rejected, hit, miss, unresolved."""
        return np.stack([self.rejected, self.hit, self.miss, self.unresolved])

    @property
    def phi(self) -> FloatArray:
        """The unclamped estimate of how many of the row's rounds are in the denominator; unresolved
        ones count as foretold.
        """
        m, w = self.regression, self.inverse
        return (
            (self.rejected + self.unresolved) * m
            + self.hit * (m + (1.0 - m) * w)
            + self.miss * (m - m * w)
        )


def counted_rounds(rate: Rate, cohort: Cohort) -> CountedRounds:
    """FPR: hits are the negatives; FNR: hits are the positives and m becomes 1 - m; selection:
    every round is a certain hit.
    """
    negatives, positives = counts_labels(rate)
    nothing = np.zeros(len(cohort))
    if negatives and positives:
        return CountedRounds(
            np.ones(len(cohort)), nothing, nothing, cohort.rounds, nothing, nothing
        )
    hit, miss = (
        (cohort.negative, cohort.positive) if negatives else (cohort.positive, cohort.negative)
    )
    m, possible = regression_of(rate, cohort.regression), cohort.acceptance > 0
    inverse = np.divide(
        1.0, cohort.acceptance, out=np.ones(len(cohort)), where=possible
    )  # p = 0 only where no label counts
    return CountedRounds(inverse, m, cohort.rejected, hit, miss, cohort.unresolved)


def counts_labels(rate: Rate) -> FloatArray:
    """(does y = -1 count, does y = +1 count), as 0 and 1."""
    return rate.in_denominator(np.array([-1, 1], dtype=np.int64)).astype(np.float64)


def regression_of(rate: Rate, regression: FloatArray) -> FloatArray:
    """The forecast of P[in the denominator | x] from the one of P[y = -1 | x]."""
    negatives, positives = counts_labels(rate)
    return np.asarray(negatives * regression + positives * (1.0 - regression))


def acceptance_of(rate: Rate, acceptance: FloatArray) -> FloatArray:
    """A rate that needs no label is seen at every round."""
    return np.ones_like(acceptance) if counts_labels(rate).all() else acceptance


@dataclass(frozen=True, eq=False)
class Forecast:
    """What earlier epochs foretell about the next one: rows of past people, with the next epoch's p
    and m on them.

    A poor forecast costs width, never validity. weight (n,): people in each row.
    """

    accepts: BoolArray
    group: IntArray
    weight: FloatArray
    acceptance: FloatArray
    regression: FloatArray

    @classmethod
    def of(
        cls,
        accepts: ArrayLike,
        group: ArrayLike,
        *,
        weight: ArrayLike,
        acceptance: ArrayLike,
        regression: ArrayLike,
    ) -> "Forecast":
        """Check and convert; one number stands for all rows."""
        table, codes = _table(accepts, group)
        named = (("weight", weight), ("acceptance", acceptance), ("regression", regression))
        return cls(table, codes, *(as_numbers(value, len(codes), name) for name, value in named))


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """Everything that must be fixed before an epoch's data are looked at (besides p and m).

    inverse_share c (R, G): 1 / P_hat[in group j and in the rate's denominator]; bets lambda (M, R,
    K). made_after: the rounds that the plan's state had seen. hypotheses: M, so that a stored plan
    that was cut is noticed.
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
        if (
            not ((self.bets >= 0) & np.isfinite(self.bets)).all()
            or not (self.inverse_share > 0).all()
        ):
            raise InvalidInput(
                "a bet of the plan is negative or not finite, or a share is not positive."
            )

    def grown_to(self, members: int, groups: int) -> "EpochPlan":
        """The plan for a family that has grown since: hypotheses that came later bet nothing, and a
        group that came later has no rows.
        """
        more, others = members - len(self.bets), groups - self.inverse_share.shape[1]
        if not (more or others):
            return self
        return EpochPlan(
            np.pad(self.inverse_share, ((0, 0), (0, others)), constant_values=1.0),
            np.pad(self.bets, ((0, more), (0, 0), (0, 0))),
            self.made_after,
            members,
        )


@dataclass(frozen=True, eq=False)
class BettingState:
    """What the next update needs; every array has the hypotheses first, and nothing but arrays is
    kept.

    wealth (M, R, G, K, side, nodes), side UP or LOW: ln W at the nodes of `betting_wealth`; 0 in a
    class that is out. lower, upper (M, R, G, cells): what is left of each cell for the rate of a
    group, P(h accepts | group, in the denominator); lower > upper where nothing is. gap_lower,
    gap_upper (M, R, pairs): later group minus earlier. hits, mass (M, R, G), rounds (M,): unclamped
    sums of h phi and of phi, and the rounds; they serve the planning alone. contradiction (M,):
    nothing is left of some rate or gap of h; from then on nothing is claimed about h. lost (M, R,
    K): by how much the thresholds grow for people of whom nothing is known any more. wealth_before
    (M, J, R, G, K, side, nodes): the wealth at the moment when each of the J groups joined that
    were not there from the start.
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
        """Nothing seen: wealth 1, whole cells, gaps [-1, 1]."""
        family, gap = (hypotheses, rates, groups), (hypotheses, rates, groups * (groups - 1) // 2)
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
    def left(self) -> BoolArray:
        """(M, R, G, cells): is something of the cell left?"""
        return self.lower <= self.upper

    @property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """(M, R, G) twice: the smallest and the largest rate that is left; [0, 1] of a hypothesis
        about which nothing is claimed.
        """
        nothing = self.contradiction[:, np.newaxis, np.newaxis]
        lower = np.where(self.left, self.lower, np.inf).min(axis=-1)
        upper = np.where(self.left, self.upper, -np.inf).max(axis=-1)
        return np.where(nothing, 0.0, lower), np.where(nothing, 1.0, upper)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The fields by name, for np.savez."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, ArrayLike]) -> "BettingState":
        """The inverse of `to_arrays`."""
        missing = [field.name for field in fields(cls) if field.name not in arrays]
        if missing:
            raise InvalidInput(f"the saved state of the bound lacks {', '.join(missing)}.")
        kinds = {
            field.name: bool if field.name == "contradiction" else np.float64
            for field in fields(cls)
        }
        return cls(**{name: np.asarray(arrays[name], dtype=kind) for name, kind in kinds.items()})

    def joined(self, other: "BettingState") -> "BettingState":
        """The processes of both, this one's hypotheses first: how a newly nominated hypothesis
        joins.
        """
        mine, theirs = self.to_arrays(), other.to_arrays()
        return BettingState(**{name: np.concatenate([mine[name], theirs[name]]) for name in mine})

    def with_group(self) -> "BettingState":
        """The state with one more group, the last one: nothing is known of it, and its pairs start
        from the wealth of this moment.
        """
        new = BettingState.empty(len(self), self.lost.shape[1], 1, self.lost.shape[2])

        def grown(name: str, axis: int = 2) -> FloatArray:
            return np.concatenate([getattr(self, name), getattr(new, name)], axis=axis)

        groups = self.lower.shape[2]
        new_pairs = [
            i for i, (_, later) in enumerate(combinations(range(groups + 1), 2)) if later == groups
        ]
        place = np.array(new_pairs) - np.arange(len(new_pairs))
        wealth, before = grown("wealth"), self.wealth_before
        joined = np.zeros((*before.shape[:3], 1, *before.shape[4:]))
        return replace(
            self,
            wealth=wealth,
            lower=grown("lower"),
            upper=grown("upper"),
            hits=grown("hits"),
            mass=grown("mass"),
            gap_lower=np.insert(self.gap_lower, place, -1.0, axis=2),
            gap_upper=np.insert(self.gap_upper, place, 1.0, axis=2),
            wealth_before=np.concatenate(
                [np.concatenate([before, joined], axis=3), wealth[:, np.newaxis]], axis=1
            ),
        )


@dataclass(frozen=True, eq=False)
class CohortInfo:
    """What a human may want to know of one update; nothing later depends on it."""

    rounds: FloatArray
    """(G,): rounds of each group."""
    outside: float
    """Rounds of people outside the certificate."""
    unresolved: FloatArray
    """(G,): accepted rounds without a label, counted at their worst."""
    least_acceptance: float
    """The smallest acceptance probability among the certificate's rows."""


@dataclass(frozen=True, eq=False)
class GapIntervals:
    """Simultaneous intervals, valid at all times at once: lower, upper (M, R, pairs) for the gaps
    of the rates as the user knows them.

    rate_lower, rate_upper (M, R, G): the groups' rates; names (R * pairs) as in `GapConstraints`;
    contradiction (M,): hypotheses whose evidence contradicts itself: an assumption is broken,
    suspend.
    """

    lower: FloatArray
    upper: FloatArray
    rate_lower: FloatArray
    rate_upper: FloatArray
    names: tuple[str, ...]
    contradiction: BoolArray


def _table(accepts: ArrayLike, group: ArrayLike) -> tuple[BoolArray, IntArray]:
    table, codes = (
        np.ascontiguousarray(accepts, dtype=bool),
        np.ascontiguousarray(group, dtype=np.int64),
    )
    if codes.ndim != 1 or table.ndim != 2 or table.shape[1] != len(codes):
        raise LengthMismatch(
            f"accepts is {table.shape} and group {codes.shape}; they must be (hypotheses, n) and (n,)."
        )
    return table, codes


def _refuse(
    bad: BoolArray, value: FloatArray, what: str, law: str, hint: str | None = None
) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(
            f"{what} is {value[row]:g} in row {row} of the cohort; {law}.", hint=hint
        )
