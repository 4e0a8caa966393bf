"""What a life has seen: counts for the certificate, past people for forecasts, audits for nominating."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.estimation.contexts import find_contexts
from evenhand.fairness.rates import Rate
from evenhand.learners.audits import evidence_rate
from evenhand.learners.codec import storable
from evenhand.learners.cohorts import ClosedCohort
from evenhand.words import BoolArray, FloatArray, GroupArray, LabelledSample

FIRST_PEOPLE = 10
"""How many people each denominator of each group must have before a life starts."""
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
        rows = features if len(self.weight) == 0 else np.concatenate([self.features, features])
        both = np.concatenate([self.group, group.astype(object)])
        contexts = find_contexts(rows, both)
        total = contexts.total(np.concatenate([self.weight, weight]))
        chosen = np.arange(len(contexts))
        if len(contexts) > MOST_PAST:
            chosen = np.linspace(0, len(contexts) - 1, MOST_PAST).astype(int)
        keep = contexts.first[chosen]
        self.features, self.group, self.weight = rows[keep], both[keep], total[chosen]


@storable
@dataclass(eq=False)
class Tally:
    """Counts of closed rounds. counts: labels seen per (group, label); evidence: rounds, each by the share of the evidence it brought;
    audited_negatives: the bill of bad accepts that audits have cost since the first life started."""

    past: Past = field(default_factory=Past)
    audits: list[LabelledSample] = field(default_factory=list)
    counts: dict[tuple[Any, int], float] = field(default_factory=dict)
    people: float = 0.0
    unknown: float = 0.0
    late_groups: int = 0
    accepted: float = 0.0
    negatives: float = 0.0
    unresolved: float = 0.0
    evidence: float = 0.0
    audited_negatives: float = 0.0

    def add(self, cohort: ClosedCohort, inside: BoolArray, *, billed: bool, keep_audits: bool) -> None:
        """Count a closed cohort; `inside`: the rows whose group is the certificate's."""
        self.people += float(cohort.rounds.sum())
        self.unknown += float(cohort.rounds[~inside].sum())
        self.accepted += float((cohort.positive + cohort.negative).sum())
        self.negatives += float(cohort.negative.sum())
        self.unresolved += float(cohort.unresolved.sum())
        self.audited_negatives += float(cohort.audited_negative.sum()) if billed else 0.0
        self._add_evidence(cohort)
        for value in set(cohort.group[inside].tolist()):
            rows = inside & (cohort.group == value)
            for label, column in ((1, cohort.positive), (-1, cohort.negative)):
                self.counts[value, label] = self.counts.get((value, label), 0.0) + float(column[rows].sum())
        if len(cohort.features):
            self.past.add(cohort.features, cohort.group, cohort.rounds)
        if keep_audits:
            self._keep_audits(cohort, inside)

    def _add_evidence(self, cohort: ClosedCohort) -> None:
        rounds = cohort.rounds
        if len(rounds) and cohort.acceptance.min() > 0:
            self.evidence += float(rounds.sum() * evidence_rate(cohort.acceptance, rounds / rounds.sum()))

    def _keep_audits(self, cohort: ClosedCohort, inside: BoolArray) -> None:
        """Audited people are labelled draws of the population."""
        count = np.concatenate([cohort.audited_positive, cohort.audited_negative]) * np.tile(inside, 2)
        seen = count > 0
        if seen.any():
            features, group = np.tile(cohort.features, (2, 1))[seen], np.tile(cohort.group, 2)[seen]
            self.audits.append(LabelledSample(features, group, np.repeat([1, -1], len(inside))[seen], count[seen]))

    @property
    def negative_share(self) -> float:
        """The share of bad outcomes among the accepted."""
        return self.negatives / self.accepted if self.accepted else 0.5

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups seen, in order."""
        seen = {value for value, _ in self.counts}
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
        """(group, rate, people so far) of the denominators that are too small to begin."""
        groups = wanted if wanted is not None else self.groups
        if len(groups) < 2:
            return [(groups[0] if groups else None, rates[0], 0.0)]
        sizes = [(group, rate, self.denominator(group, rate)) for group in groups for rate in rates]
        return [entry for entry in sizes if entry[2] < FIRST_PEOPLE]
