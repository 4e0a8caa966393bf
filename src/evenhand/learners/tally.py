"""What a life has seen: counts for the certificate, past people for forecasts, audits for nominating."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.estimation.contexts import find_contexts, numbered
from evenhand.fairness.rates import Rate
from evenhand.learners.codec import storable
from evenhand.learners.cohorts import ClosedCohort, GroupCounts
from evenhand.words import BoolArray, FloatArray, GroupArray, LabelledSample

FIRST_PEOPLE = 10
"""How many people a group needs to be one, and each denominator of each group before a life starts."""
MOST_PAST = 4000
"""Past rows that a forecast looks at."""


@storable
@dataclass(eq=False)
class Past:
    """People seen so far, rows of equal features and group counted together; a sample of them once they are many."""

    features: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    group: GroupArray = field(default_factory=lambda: np.zeros(0, dtype=object))
    weight: FloatArray = field(default_factory=lambda: np.zeros(0))

    def add(self, features: FloatArray, group: GroupArray, weight: FloatArray) -> None:
        """Add rows."""
        known = len(self.weight)
        both = np.concatenate([self.group, group.astype(object)])
        contexts = find_contexts(features, both, before=self.features if known else None)
        total = contexts.total(np.concatenate([self.weight, weight]))
        chosen = np.arange(len(contexts))
        if len(contexts) > MOST_PAST:
            chosen = np.linspace(0, len(contexts) - 1, MOST_PAST).astype(int)
        keep = contexts.first[chosen]
        old, new = (
            keep[keep < known],
            keep[keep >= known] - known,
        )  # in the order of first appearance, so the old ones come first
        rows = np.concatenate([self.features[old], features[new]]) if len(old) else features[new]
        self.features, self.group, self.weight = rows, both[keep], total[chosen]


@storable
@dataclass(eq=False)
class Tally:
    """Counts of closed rounds.

    counts: labels seen per (group, label); judged: the same of the people whom the intervals have
    looked at; seen: people per group, whatever group that is; unknown: people without one.
    late_groups, overruled: by (group, drawn accept). erased: people of whom nothing is known any
    more, each at its worst.
    audited_negatives: the bill of bad accepts that audits have cost since the first life started.
    """

    past: Past = field(default_factory=Past)
    audits: list[LabelledSample] = field(default_factory=list)
    counts: dict[tuple[Any, int], float] = field(default_factory=dict)
    judged: dict[tuple[Any, int], float] = field(default_factory=dict)
    seen: dict[Any, float] = field(default_factory=dict)
    late_groups: GroupCounts = field(default_factory=dict)
    overruled: GroupCounts = field(default_factory=dict)
    unknown: float = 0.0
    people: float = 0.0
    erased: float = 0.0
    accepted: float = 0.0
    negatives: float = 0.0
    unresolved: float = 0.0
    audited_negatives: float = 0.0

    def add(
        self, cohort: ClosedCohort, groups: tuple[Any, ...] | None, *, billed: bool, judged: bool, keep_audits: bool
    ) -> None:
        """Count a closed cohort; groups: those of the certificate, None before they are fixed;
        judged: whether the intervals looked at it."""
        self.people += float(cohort.rounds.sum()) + cohort.lost
        self.erased += cohort.lost
        self.accepted += float((cohort.positive + cohort.negative).sum())
        self.negatives += float(cohort.negative.sum())
        self.unresolved += float(cohort.unresolved.sum())
        self.audited_negatives += float(cohort.audited_negative.sum()) if billed else 0.0
        for total, more in ((self.late_groups, cohort.late_groups), (self.overruled, cohort.overruled)):
            for key, number in more.items():
                total[key] = total.get(key, 0.0) + number
        inside = np.zeros(len(cohort.features), dtype=bool)
        values, codes = numbered(cohort.group)
        for code, value in enumerate(values):
            rows = codes == code
            people = float(cohort.rounds[rows].sum())
            if people == 0:
                continue
            if value is None:
                self.unknown += people
                continue
            self.seen[value] = self.seen.get(value, 0.0) + people
            if groups is not None and value not in groups:
                continue
            inside |= rows
            for label, column in ((1, cohort.positive), (-1, cohort.negative)):
                for counts in (self.counts, self.judged) if judged else (self.counts,):
                    counts[value, label] = counts.get((value, label), 0.0) + float(column[rows].sum())
        self.remember(cohort, inside, keep_audits=keep_audits)

    def remember(self, cohort: ClosedCohort, inside: BoolArray, *, keep_audits: bool) -> None:
        """Keep people for forecasts, and audited ones for nominating; this is all of a tally that is about single people."""
        if len(cohort.features):
            self.past.add(cohort.features, cohort.group, cohort.rounds)
        if keep_audits:
            self._keep_audits(cohort, inside)

    def forget(self, features: FloatArray, group: Any, label: int) -> None:
        """Take one person out of those who are kept for forecasts and for nominating; the counts stay."""
        past = self.past
        rows = (past.features == features).all(axis=1) & np.array([g == group for g in past.group.tolist()], bool)
        if rows.any():
            past.weight[int(np.argmax(rows))] -= 1.0
            left = past.weight > 0
            past.features, past.group, past.weight = past.features[left], past.group[left], past.weight[left]
        for place, audits in enumerate(self.audits):
            rows = (audits.features == features).all(axis=1) & (audits.label == label)
            rows &= np.array([g == group for g in audits.group.tolist()], bool)
            if rows.any():
                weight = audits.weight.copy()
                weight[int(np.argmax(rows))] -= 1.0
                kept = weight > 0
                self.audits[place : place + 1] = []
                if kept.any():
                    left_over = (audits.group[kept], audits.label[kept], weight[kept])
                    self.audits.insert(place, LabelledSample(audits.features[kept], *left_over))
                return

    def _keep_audits(self, cohort: ClosedCohort, inside: BoolArray) -> None:
        """Audited people are labelled draws of the population."""
        count = np.concatenate([cohort.audited_positive, cohort.audited_negative]) * np.tile(inside, 2)
        seen = count > 0
        if seen.any():
            label, rows = np.divmod(np.flatnonzero(seen), len(inside))
            features, group = cohort.features[rows], cohort.group[rows]
            self.audits.append(LabelledSample(features, group, 1 - 2 * label, count[seen]))

    @property
    def negative_share(self) -> float:
        """The share of bad outcomes among the accepted."""
        return self.negatives / self.accepted if self.accepted else 0.5

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups that have a few people, in order; a value with fewer may be a typing error."""
        seen = {value for value, people in self.seen.items() if people >= FIRST_PEOPLE}
        try:
            return tuple(sorted(seen))
        except TypeError:
            return tuple(sorted(seen, key=str))

    def denominator(self, group: Any, rate: Rate) -> float:
        """How many people of a group are known to be in a rate's denominator."""
        return sum(
            n for (value, y), n in self.counts.items() if value == group and rate.in_denominator(np.array([y]))[0]
        )

    def missing(self, rates: tuple[Rate, ...], wanted: tuple[Any, ...] | None) -> list[tuple[Any, Rate, float]]:
        """(group, rate, people so far) of the denominators that are too small to begin: of the listed groups, or of those seen."""
        groups = wanted if wanted is not None else self.groups
        if len(groups) < 2:
            return [(groups[0] if groups else None, rates[0], 0.0)]
        sizes = [(group, rate, self.denominator(group, rate)) for group in groups for rate in rates]
        return [entry for entry in sizes if entry[2] < FIRST_PEOPLE]
