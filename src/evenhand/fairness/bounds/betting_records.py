"""The nouns of the betting bound: a closed cohort of rounds, a forecast of the next epoch, the plan made from it, the state."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.words import BoolArray, FloatArray, IntArray, as_numbers

COUNTS = ("rejected", "positive", "negative", "unresolved")
BOLDEST = 0.5
"""The largest stake: with |phi| <= 1 a factor is then at least 1/2."""
UP, LOW = 0, 1
"""The two sides of a process: up rejects high rates, low rejects low ones."""


@dataclass(frozen=True, eq=False)
class Cohort:
    """Rounds whose maturity window has closed, in rows of equal features, group, acceptance probability and regression.

    accepts (M, n): does hypothesis h accept the people of row i? group (n,): the code 0..G-1, or -1 for "outside". acceptance
    p (n,): the probability under which the rounds were played, exactly as it was drawn. regression m (n,): a forecast of
    P[y = -1 | x], clipped to [0, 1]. rejected, positive, negative, unresolved (n,): rounds rejected; accepted with y = +1, with
    y = -1, and with a label that has not arrived.

    labelled (G,): groups in which the policy, known before the coins, accepts everybody with a positive probability; the rates that need
    labels look at their rows alone, and there p > 0. lost_count, lost_weight: people of whom nothing but the draw is known any more,
    and the largest |phi| that each may have had before the clamp (1/p if accepted, else 1).

    Laws that no code can check: p and m are functions of the person's features (and group) and of *earlier* epochs alone; the
    coin was drawn afresh for each person; whether the group is known does not depend on the decision.
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
        p, m = as_numbers(acceptance, rows, "acceptance"), as_numbers(regression, rows, "regression")
        groups = int(codes.max(initial=-1)) + 1
        known = np.ones(groups, dtype=bool) if labelled is None else np.asarray(labelled, dtype=bool)
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
        if len(self.lost_count) != len(self.lost_weight) or (self.lost_weight < 1).any() or (self.lost_count < 0).any():
            raise InvalidInput("lost people come with a count of at least 0 and a largest weight of at least 1.")
        _refuse(
            ~((self.acceptance >= 0) & (self.acceptance <= 1)), self.acceptance, "acceptance", "it is a probability"
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
class Forecast:
    """What earlier epochs foretell about the next one: rows of past people, with the next epoch's p and m on them.

    A poor forecast costs width, never validity. weight (n,): people in each row.
    """

    accepts: BoolArray
    group: IntArray
    weight: FloatArray
    acceptance: FloatArray
    regression: FloatArray

    @classmethod
    def of(
        cls, accepts: ArrayLike, group: ArrayLike, *, weight: ArrayLike, acceptance: ArrayLike, regression: ArrayLike
    ) -> "Forecast":
        """Check and convert; one number stands for all rows."""
        table, codes = _table(accepts, group)
        named = (("weight", weight), ("acceptance", acceptance), ("regression", regression))
        return cls(table, codes, *(as_numbers(value, len(codes), name) for name, value in named))


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """Everything that must be fixed before an epoch's data are looked at (besides p and m).

    inverse_share c (R, G): 1 / P_hat[in group j and in the rate's denominator]; bets lambda (M, R, K), not increasing in k;
    lower, upper (M, R, G): the box that contains the rates P(h accepts | group, in the denominator).
    made_after: the rounds that the plan's state had seen.
    """

    inverse_share: FloatArray
    bets: FloatArray
    lower: FloatArray
    upper: FloatArray
    made_after: float

    def __post_init__(self) -> None:
        if not ((self.bets >= 0) & np.isfinite(self.bets)).all() or not (self.inverse_share > 0).all():
            raise InvalidInput("a bet of the plan is negative or not finite, or a share is not positive.")
        if not ((self.lower >= 0) & (self.lower <= self.upper) & (self.upper <= 1)).all():
            raise InvalidInput("the box of the plan is empty or leaves [0, 1]; a plan needs 0 <= lower <= upper <= 1.")

    @property
    def stakes(self) -> FloatArray:
        """g = min(lambda_k c_j, 1/2): (M, R, G, K)."""
        return np.minimum(self.bets[:, :, np.newaxis, :] * self.inverse_share[:, :, np.newaxis], BOLDEST)

    def grown_to(self, members: int, groups: int) -> "EpochPlan":
        """The plan for a family that has grown since: hypotheses that came later bet nothing, and a group that came later has no rows."""
        more, others = members - len(self.bets), groups - self.inverse_share.shape[1]
        if not (more or others):
            return self
        box = ((0, more), (0, 0), (0, others))
        return EpochPlan(
            np.pad(self.inverse_share, ((0, 0), (0, others)), constant_values=1.0),
            np.pad(self.bets, ((0, more), (0, 0), (0, 0))),
            np.pad(self.lower, box),
            np.pad(self.upper, box, constant_values=1.0),
            self.made_after,
        )

    @property
    def deviation(self) -> FloatArray:
        """s (M, R, G, 2): the largest |h - f| in the box, u where h rejects (index 0) and 1 - l where it accepts (index 1)."""
        return np.stack([self.upper, 1.0 - self.lower], axis=-1)

    @property
    def reach(self) -> FloatArray:
        """R = 1 / (2 lambda c s): (M, R, G, 2, K), the largest |phi| of dangerous sign; the regression is clamped to keep it."""
        product = self.stakes[:, :, :, np.newaxis, :] * self.deviation[..., np.newaxis]
        return np.asarray(np.divide(0.5, product, out=np.full(product.shape, np.inf), where=product > 0))


@dataclass(frozen=True, eq=False)
class BettingState:
    """What the next update needs; every array has the hypotheses first, and nothing but arrays is kept.

    linear, quadratic (M, R, G, side, a, K), side UP or LOW, a = 1 where h accepts: A = linear[.., 1, :],
    B = linear[.., 0, :], Q1 = quadratic[.., 1, :], Q0 = quadratic[.., 0, :]. lower, upper (M, R, G): the box.
    gap_lower, gap_upper (M, R, pairs): later group minus earlier, of P(h accepts | group, in the denominator).
    hits, mass (M, R, G), rounds (M,): unclamped sums of h phi and of phi, and the rounds; they serve the planning alone.
    contradiction (M,): an interval of h became empty; from then on nothing is claimed about h.
    lost (M, R, K): by how much the thresholds grow for people of whom nothing is known any more. linear_before, quadratic_before
    (M, J, R, G, side, a, K): the sums at the moment when each of the J groups joined that were not there from the start.
    """

    linear: FloatArray
    quadratic: FloatArray
    lower: FloatArray
    upper: FloatArray
    gap_lower: FloatArray
    gap_upper: FloatArray
    hits: FloatArray
    mass: FloatArray
    rounds: FloatArray
    contradiction: BoolArray
    lost: FloatArray
    linear_before: FloatArray
    quadratic_before: FloatArray

    @classmethod
    def empty(cls, hypotheses: int, rates: int, groups: int, bets: int, joins: int = 0) -> "BettingState":
        """Nothing seen: sums 0, boxes [0, 1], gaps [-1, 1]."""
        sums = (hypotheses, rates, groups, 2, 2, bets)
        box, gap = (hypotheses, rates, groups), (hypotheses, rates, groups * (groups - 1) // 2)
        return cls(
            np.zeros(sums),
            np.zeros(sums),
            np.zeros(box),
            np.ones(box),
            np.full(gap, -1.0),
            np.ones(gap),
            np.zeros(box),
            np.zeros(box),
            np.zeros(hypotheses),
            np.zeros(hypotheses, dtype=bool),
            np.zeros((hypotheses, rates, bets)),
            np.zeros((hypotheses, joins, *sums[1:])),
            np.zeros((hypotheses, joins, *sums[1:])),
        )

    def __len__(self) -> int:
        return len(self.rounds)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The fields by name, for np.savez."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, ArrayLike]) -> "BettingState":
        """The inverse of `to_arrays`."""
        missing = [field.name for field in fields(cls) if field.name not in arrays]
        if missing:
            raise InvalidInput(f"the saved state of the bound lacks {', '.join(missing)}.")
        kinds = {field.name: bool if field.name == "contradiction" else np.float64 for field in fields(cls)}
        return cls(**{name: np.asarray(arrays[name], dtype=kind) for name, kind in kinds.items()})

    def joined(self, other: "BettingState") -> "BettingState":
        """The processes of both, this one's hypotheses first: how a newly nominated hypothesis joins."""
        mine, theirs = self.to_arrays(), other.to_arrays()
        return BettingState(**{name: np.concatenate([mine[name], theirs[name]]) for name in mine})

    def with_group(self) -> "BettingState":
        """The state with one more group, the last one: nothing is known of it, and its pairs start from the sums of this moment."""

        def grown(array: FloatArray, axis: int, value: float) -> FloatArray:
            shape = list(array.shape)
            shape[axis] = 1
            return np.concatenate([array, np.full(shape, value)], axis=axis)

        groups = self.lower.shape[2]
        new_pairs = [i for i, (_, later) in enumerate(combinations(range(groups + 1), 2)) if later == groups]
        place = np.array(new_pairs) - np.arange(len(new_pairs))
        linear, quadratic = grown(self.linear, 2, 0.0), grown(self.quadratic, 2, 0.0)
        return replace(
            self,
            linear=linear,
            quadratic=quadratic,
            lower=grown(self.lower, 2, 0.0),
            upper=grown(self.upper, 2, 1.0),
            hits=grown(self.hits, 2, 0.0),
            mass=grown(self.mass, 2, 0.0),
            gap_lower=np.insert(self.gap_lower, place, -1.0, axis=2),
            gap_upper=np.insert(self.gap_upper, place, 1.0, axis=2),
            linear_before=np.concatenate([grown(self.linear_before, 3, 0.0), linear[:, np.newaxis]], axis=1),
            quadratic_before=np.concatenate([grown(self.quadratic_before, 3, 0.0), quadratic[:, np.newaxis]], axis=1),
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
    """Simultaneous intervals, valid at all times at once: lower, upper (M, R, pairs) for the gaps of the rates as the user knows them.

    rate_lower, rate_upper (M, R, G) are the boxes of the groups' rates; names (R * pairs) as in `GapConstraints`;
    contradiction (M,): hypotheses whose evidence contradicts itself: an assumption is broken, suspend.
    """

    lower: FloatArray
    upper: FloatArray
    rate_lower: FloatArray
    rate_upper: FloatArray
    names: tuple[str, ...]
    contradiction: BoolArray


def _table(accepts: ArrayLike, group: ArrayLike) -> tuple[BoolArray, IntArray]:
    table, codes = np.ascontiguousarray(accepts, dtype=bool), np.ascontiguousarray(group, dtype=np.int64)
    if codes.ndim != 1 or table.ndim != 2 or table.shape[1] != len(codes):
        raise LengthMismatch(
            f"accepts is {table.shape} and group {codes.shape}; they must be (hypotheses, n) and (n,)."
        )
    return table, codes


def _refuse(bad: BoolArray, value: FloatArray, what: str, law: str, hint: str | None = None) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(f"{what} is {value[row]:g} in row {row} of the cohort; {law}.", hint=hint)
