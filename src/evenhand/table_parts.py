"""A table of people cut in two: one part to choose rules on, the other to judge them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from evenhand.contracts import GroupUse, Hypothesis, Rate
from evenhand.errors import InvalidInput
from evenhand.randomness import stream
from evenhand.words import (
    BoolArray,
    CostSensitiveProblem,
    FloatArray,
    Group,
    GroupArray,
    IntArray,
    LabelledSample,
    Prices,
)

FIT_SHARE = 1 / 3
"""The share of the table that is for fitting."""
FIT_SHARE_OF_MODELS = 1 / 2
"""The same where rules are fitted models, which need more people than an exact search."""


def counted_rows(people: LabelledSample, why: str) -> IntArray:
    """The row of each person of a table with at least two groups; a row with a count has several.

    why: the reason for which counts are whole numbers, for the error if one is not.
    """
    if not isinstance(people, LabelledSample):
        raise InvalidInput(
            f"people is a {type(people).__name__}; it must be a LabelledSample.",
            hint="read_table(...).encoded().sample is one; LabelledSample(features, group, label) "
            "makes one of arrays.",
            argument="people",
        )
    count = people.require_whole_counts(why)
    people.require_two_groups()
    return np.repeat(np.arange(len(people)), count)


def split_table(people: int, share: float, seed: int) -> BoolArray:
    """Who is for fitting: a share of the table, drawn without looking at anything.

    Those left are then independent draws from the population, so that also a rate of all people,
    whose groups are mixed as they come, is binomial. (A split within each group and outcome would
    fix the mixture, and statements about all people would rest on nothing.)
    """
    # A stream of its own: with default_rng(seed) a table that was simulated with the same seed
    # would be split by its own features.
    order = stream(seed, "split of a table").permutation(people)
    first = np.zeros(people, dtype=bool)
    first[order[: int(share * people)]] = True
    return first


@dataclass(frozen=True, eq=False)
class AcceptanceCosts:
    """What accepting a row costs more than rejecting it, and what rejecting it costs."""

    accept: FloatArray
    reject: FloatArray

    @classmethod
    def of(cls, prices: Prices, people: LabelledSample) -> "AcceptanceCosts":
        """The costs of each row of a table."""
        accept = np.broadcast_to(np.asarray(prices.false_accept, dtype=float), len(people))
        reject = np.broadcast_to(np.asarray(prices.false_reject, dtype=float), len(people))
        bad = people.label == -1
        rejecting = np.where(bad, 0.0, reject)
        return cls(np.where(bad, accept, 0.0) - rejecting, rejecting)


class TablePart:
    """Some of the people of a table, one row each."""

    def __init__(
        self,
        people: LabelledSample,
        rows: IntArray,
        costs: AcceptanceCosts,
        group_use: GroupUse,
    ) -> None:
        self.decides = group_use == "decide"
        self.rows = rows
        self.people = people
        self.group = people.group[rows]
        self.label = people.label[rows]
        self.accept_cost = costs.accept[rows]
        self.reject_cost = costs.reject[rows]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def sample(self) -> LabelledSample:
        """The people, with their outcomes."""
        features = self.people.features[self.rows]
        return LabelledSample(features, self.group, self.label, None, self.people.schema)

    @cached_property
    def problem(self) -> CostSensitiveProblem:
        """What deciding about them costs."""
        accepting = self.accept_cost + self.reject_cost
        sample = self.sample
        return CostSensitiveProblem(
            sample.features, self.group, self.reject_cost, accepting, sample.schema
        )

    @property
    def seen_group(self) -> GroupArray | None:
        """The groups, where rules may look at them."""
        return self.group if self.decides else None

    def accepts(self, rule: Hypothesis) -> BoolArray:
        """Whom a rule accepts."""
        # A rule answers row by row, so each distinct row is asked once.
        used, place = np.unique(self.rows, return_inverse=True)
        group = self.people.group[used] if self.decides else None
        answer = np.asarray(rule.accepts(self.people.features[used], group), dtype=bool)
        return answer[place]

    def cost(self, accepted: BoolArray | FloatArray) -> float:
        """The cost per person of accepting some (or all with a probability)."""
        if not len(self.rows):
            return float("nan")
        return float((self.reject_cost.sum() + self.accept_cost @ accepted) / len(self.rows))


Gap = tuple[Rate, Group, Group]
"""A rate, and two groups: the rate of the first minus that of the second."""


def gaps_of(rates: Sequence[Rate], groups: Sequence[Group]) -> list[Gap]:
    """One gap for each rate and pair of groups, the later group minus the earlier one."""
    return [(rate, b, a) for rate in rates for a, b in combinations(groups, 2)]


def gap_names(gaps: Sequence[Gap]) -> tuple[str, ...]:
    """The names of gaps, "FPR b minus a"."""
    return tuple(f"{rate.symbol} {b} minus {a}" for rate, b, a in gaps)


def gap_counts(
    gaps: Sequence[Gap], event: Callable[[Rate], BoolArray], part: TablePart
) -> list[tuple[int, int, int, int]]:
    """x_1 of n_1 and x_2 of n_2 for each gap: how many of each group have the event of its rate."""
    cells: dict[tuple[str, Group], tuple[int, int]] = {}
    for rate, *both in gaps:
        counted = np.asarray(rate.in_denominator(part.label))
        for group in both:
            if (rate.symbol, group) not in cells:
                here = counted & np.asarray(part.group == group)
                cells[rate.symbol, group] = int((event(rate) & here).sum()), int(here.sum())
    return [(*cells[rate.symbol, b], *cells[rate.symbol, a]) for rate, b, a in gaps]


def decision_counts(
    gaps: Sequence[Gap], accepted: BoolArray, part: TablePart
) -> list[tuple[int, int, int, int]]:
    """`gap_counts` of decisions: an acceptance is the event of FPR, a rejection that of FNR."""
    return gap_counts(gaps, lambda rate: accepted if rate.sign > 0 else ~accepted, part)
