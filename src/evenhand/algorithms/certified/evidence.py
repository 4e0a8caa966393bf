"""What a certificate has seen: sums over closed cohorts, and the past people whom planning may
look at.

`Evidence` holds sums: no single person can be found in them, so they stay when somebody is erased.
`PastPeople` is read from the table of rounds, so whoever is erased there is gone here.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from evenhand.algorithms.certified.sampling import ROWS_AT_ONCE, least_level, sampling_level
from evenhand.algorithms.certified.tally import TalliedCohort
from evenhand.estimation.log import find_contexts, numbered
from evenhand.fairness.rates import Rate
from evenhand.people import distinct_groups
from evenhand.rounds import Counts, GroupCounts, Rounds, Span
from evenhand.words import FloatArray, Group, GroupArray, IntArray

OUTSIDE = -1
"""The code of people whose group is unknown, or none of the certificate's: they count outside of
it.
"""
FIRST_PEOPLE = 10
"""How many people a group needs before it counts as one, and each denominator of each group before
a run starts."""
MOST_PAST = 4000
MOST_NEW = 16_384
"""Past rows that a forecast looks at, and about how many rows of one cohort they are taken of."""


def group_codes(group: GroupArray, groups: tuple[Group, ...]) -> IntArray:
    """0..G-1 for the listed groups, -1 for all others, the unknown among them."""
    codes = np.full(len(group), OUTSIDE, dtype=np.int64)
    for code, value in enumerate(groups):
        codes[group == value] = code
    return codes


@dataclass(frozen=True, eq=False)
class Evidence:
    """Counts of closed rounds.

    counts: labels seen per (group, label); judged: the same of the people whom the intervals have
    looked at; seen: people per group, whatever group that is; unknown: people without one.
    late_groups, overruled: by (group, drawn accept). erased: people of whom nothing is known any
    more, each at its worst.
    """

    counts: dict[tuple[Group, int], float] = field(default_factory=dict)
    judged: dict[tuple[Group, int], float] = field(default_factory=dict)
    seen: dict[Group, float] = field(default_factory=dict)
    late_groups: GroupCounts = field(default_factory=dict)
    overruled: GroupCounts = field(default_factory=dict)
    unknown: float = 0.0
    people: float = 0.0
    erased: float = 0.0
    accepted: float = 0.0
    negatives: float = 0.0
    unresolved: float = 0.0

    def add(
        self,
        cohort: Counts | TalliedCohort,
        groups: tuple[Group, ...] | None,
        *,
        judged: bool,
    ) -> "Evidence":
        """The counts with a closed cohort.

        groups: those of the certificate, None before they are fixed; judged: whether the intervals
        looked at it.
        """
        rounds = cohort.rounds
        counts = dict(self.counts)
        seen_by_intervals = dict(self.judged)
        seen = dict(self.seen)
        unknown = self.unknown
        values, codes = numbered(cohort.group)
        for code, value in enumerate(values):
            rows = codes == code
            people = float(rounds[rows].sum())
            if people == 0:
                continue
            if value is None:
                unknown += people
                continue
            seen[value] = seen.get(value, 0.0) + people
            if groups is not None and value not in groups:
                continue
            for label, column in ((1, cohort.positive), (-1, cohort.negative)):
                more = float(column[rows].sum())
                counts[value, label] = counts.get((value, label), 0.0) + more
                if judged:
                    before = seen_by_intervals.get((value, label), 0.0)
                    seen_by_intervals[value, label] = before + more
        return Evidence(
            counts=counts,
            judged=seen_by_intervals,
            seen=seen,
            late_groups=_sum(self.late_groups, cohort.late_groups),
            overruled=_sum(self.overruled, cohort.overruled),
            unknown=unknown,
            people=self.people + float(rounds.sum()) + cohort.lost,
            erased=self.erased + cohort.lost,
            accepted=self.accepted + float((cohort.positive + cohort.negative).sum()),
            negatives=self.negatives + float(cohort.negative.sum()),
            unresolved=self.unresolved + float(cohort.unresolved.sum()),
        )

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that have a few people, in order; a value with fewer may be a typo."""
        return distinct_groups(value for value, many in self.seen.items() if many >= FIRST_PEOPLE)

    def denominator(self, group: Group, rate: Rate) -> float:
        """How many people of a group are known to be in a rate's denominator."""
        return sum(
            n
            for (value, y), n in self.counts.items()
            if value == group and rate.in_denominator(np.array([y]))[0]
        )

    def missing(
        self, rates: tuple[Rate, ...], wanted: tuple[Group, ...] | None
    ) -> list[tuple[Group, Rate, float]]:
        """(group, rate, people so far) of the denominators that are too small to begin: of the
        listed groups, or of those seen.
        """
        groups = wanted if wanted is not None else self.groups
        if len(groups) < 2:
            return [(groups[0] if groups else None, rates[0], 0.0)]
        sizes = [(group, rate, self.denominator(group, rate)) for group in groups for rate in rates]
        return [entry for entry in sizes if entry[2] < FIRST_PEOPLE]


def _sum(before: GroupCounts, more: GroupCounts) -> GroupCounts:
    total = dict(before)
    for key, number in more.items():
        total[key] = total.get(key, 0.0) + number
    return total


# people of the past, read from the table of rounds


@dataclass(frozen=True, eq=False)
class PastPeople:
    """People seen so far, rows of equal features and group counted together; a sample of them once
    they are many.
    """

    features: FloatArray
    group: GroupArray
    weight: FloatArray

    @classmethod
    def nobody(cls) -> "PastPeople":
        """Before the first person."""
        return cls(np.zeros((0, 0)), np.zeros(0, dtype=object), np.zeros(0))

    def add(self, features: FloatArray, group: GroupArray, weight: FloatArray) -> "PastPeople":
        """With more people."""
        known = len(self.weight)
        both = np.concatenate([self.group, group.astype(object)])
        contexts = find_contexts(features, both, before=self.features if known else None)
        total = contexts.total(np.concatenate([self.weight, weight]))
        chosen = np.arange(len(total))
        if len(total) > MOST_PAST:
            chosen = np.linspace(0, len(total) - 1, MOST_PAST).astype(int)
        keep = contexts.first[chosen]
        # in the order of first appearance, so the old ones come first
        old = keep[keep < known]
        new = keep[keep >= known] - known
        rows = features[new]
        if len(old):
            rows = np.concatenate([self.features[old], rows])
        return PastPeople(rows, both[keep], total[chosen])


def people_before(rounds: Rounds) -> PastPeople:
    """The people of an audited history."""
    past = PastPeople.nobody()
    for log, audited in rounds.before:
        if audited:
            group = np.full(len(log), None) if log.group is None else log.group
            past = past.add(log.features, group, log.count)
    return past


def with_people_of(past: PastPeople, rounds: Rounds, span: Span) -> PastPeople:
    """With those people of a closed cohort who are left."""
    _, first, stop = span
    features, group, weight = people_left(rounds, first, stop, most=MOST_NEW)
    return past.add(features, group, weight) if len(features) else past


def first_arrivals(rounds: Rounds, first: int, stop: int) -> PastPeople:
    """The people of the rounds first .. stop - 1, closed or not, who are left: the values at which
    thresholds and stumps cut. Their labels are not looked at.
    """
    people = replace(PastPeople.nobody(), features=np.zeros((0, rounds.columns)))
    for _, begin, end in rounds.spans(first, stop):
        features, group, weight = people_left(rounds, begin, end)
        if len(features):
            people = people.add(features, group, weight)
    return people


def people_left(
    table: Rounds, first: int, stop: int, most: int | None = None
) -> tuple[FloatArray, GroupArray, FloatArray]:
    """Features, group and weight of the people of these rounds who were not erased; of more
    than `most` those whose level is high enough, who stand for the others.
    """
    for chunk in table.counted:
        if chunk.first == first:
            return chunk.features, chunk.group, chunk.rounds
    rows = table.rows_between(first, stop)
    people = int((~table["erased"][rows]).sum())
    if table.dropped:  # nobody was erased, and those who are needed are there
        people = stop - first
    least = 0 if most is None or people <= most else least_level(people, most)
    parts = []
    for start in range(rows.start, rows.stop, ROWS_AT_ONCE):
        part = slice(start, min(start + ROWS_AT_ONCE, rows.stop))
        here = ~table["erased"][part]
        if least:
            here &= sampling_level(table["round"][part]) >= least
        parts.append(start + np.flatnonzero(here))
    places = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    weight = np.full(len(places), people / max(len(places), 1))
    whole = len(places) == rows.stop - rows.start
    return table.features_of(rows if whole else places), table.groups_of(places), weight
