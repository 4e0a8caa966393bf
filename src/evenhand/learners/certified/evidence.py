"""What a certificate may see, and the counts of it.

This is the one place that turns decided rounds into a cohort that a certificate may look at:

    A cohort is fixed by what was known before its coins were tossed. Afterwards a row may only lose
    information, and lost information counts at its worst.

So a cohort is a run of consecutive rounds, all of them: `ClosedCohort` counts its people and
refuses to exist if one of rounds first .. stop - 1 is missing, and whoever looks at cohorts
(`CertificationRun`) refuses one that does not begin where the last one ended. What became of a
person after the coin only moves them between columns:

    drawn accept, label known                    positive or negative
    drawn accept, label missing or overruled     unresolved: the worst case
    drawn reject, overruled or not               rejected
    erased                                       lost: draw and probability stay on record,
                                                 everything else is the worst case
    group unknown, or none of the certificate's  outside, counted there

`EvidenceCounts` add up what cohorts held.
"""

from dataclasses import dataclass, field

import numpy as np

from evenhand.errors import InvalidInput, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.estimation.log import find_contexts, is_group, numbered
from evenhand.fairness.rates import Rate
from evenhand.learners.rounds import Block
from evenhand.learners.storage import COUNT, PROBABILITY, storable
from evenhand.words import (
    BoolArray,
    FloatArray,
    Group,
    GroupArray,
    IntArray,
    LabelledSample,
    distinct_groups,
)

SEEN = ("features", "acceptance", "rejected", "positive", "negative")
OUTSIDE = -1
"""The code of people whose group is unknown, or none of the certificate's: they count outside of
it.
"""

GroupCounts = dict[tuple[Group, bool], float]
"""People by (group, whether the draw accepted them); None is the unknown group."""


@dataclass(frozen=True, eq=False)
class ClosedCohort:
    """Rounds first .. stop - 1 of one epoch, rows of equal features, group and probability counted
    together.

    log: the resolved rounds, for the loss. group: as told, None where unknown. audited_*: how many
    of the accepted rounds the audit coin had accepted. settled, settled_audited (3, rows): the same
    accepted and audited rounds by what was known at the end of each person's own maturity window:
    good, bad, not come; they serve the drift tests alone. lost_*: erased people, by the probability
    under which they were drawn. overruled, late_groups: for the record, by group and draw.
    """

    epoch: int
    first: int
    stop: int
    log: RoundLog
    features: FloatArray
    group: GroupArray
    acceptance: FloatArray
    rejected: FloatArray
    positive: FloatArray
    negative: FloatArray
    unresolved: FloatArray
    audited_positive: FloatArray
    audited_negative: FloatArray
    audited_unresolved: FloatArray
    settled: FloatArray
    settled_audited: FloatArray
    lost_acceptance: FloatArray = field(default_factory=lambda: np.zeros(0))
    lost_accepted: FloatArray = field(default_factory=lambda: np.zeros(0))
    lost_rejected: FloatArray = field(default_factory=lambda: np.zeros(0))
    lost_audited: float = 0.0
    overruled: GroupCounts = field(default_factory=dict)
    late_groups: GroupCounts = field(default_factory=dict)
    complete: bool = True
    """Whether every accepted round has its label, was overruled or erased."""

    def __post_init__(self) -> None:
        people = round(float(self.rounds.sum() + self.lost))
        if people != self.stop - self.first:
            raise ProtocolError(
                f"the cohort of rounds {self.first} to {self.stop - 1} holds {people} people, not "
                f"{self.stop - self.first}; "
                "a certificate looks at everybody who was decided, whatever became of them.",
                hint="keep overruled and erased people in their place: mark them, do not leave "
                "them out.",
            )
        p, accepted = self.acceptance, self.positive + self.negative + self.unresolved
        impossible = ~((p >= 0) & (p <= 1)) | ((p == 0) & (accepted > 0))
        impossible |= (p == 1) & (self.rejected > 0)
        if impossible.any():
            row = int(np.argmax(impossible))
            raise InvalidInput(
                f"{accepted[row]:g} people were accepted and {self.rejected[row]:g} rejected, and "
                f"the probability of accepting was {p[row]:g}; that cannot have happened."
            )

    @property
    def rounds(self) -> FloatArray:
        """Rounds in each row."""
        return self.rejected + self.positive + self.negative + self.unresolved

    @property
    def lost(self) -> float:
        """Erased people."""
        return float(self.lost_accepted.sum() + self.lost_rejected.sum())


def group_codes(group: GroupArray, groups: tuple[Group, ...]) -> IntArray:
    """0..G-1 for the listed groups, -1 for everybody else, the unknown among them."""
    codes = np.full(len(group), OUTSIDE, dtype=np.int64)
    for code, value in enumerate(groups):
        codes[group == value] = code
    return codes


def from_counts(
    epoch: int, log: RoundLog, audit_share: float, generator: np.random.Generator, first: int = 0
) -> ClosedCohort:
    """Rounds that were played in aggregate: given accepted, the audit coin had accepted with
    probability a / p(x).
    """
    nobody, p = np.zeros(len(log)), log.acceptance
    chance = np.minimum(np.divide(audit_share, p, out=nobody.copy(), where=p > 0), 1.0)
    good, bad = (
        generator.binomial(column.astype(np.int64), chance).astype(np.float64)
        for column in (log.positive, log.negative)
    )
    return ClosedCohort(
        epoch=epoch,
        first=first,
        stop=first + round(log.rounds),
        log=log,
        group=np.full(len(log), None) if log.group is None else log.group,
        **{name: getattr(log, name) for name in SEEN},
        unresolved=nobody,
        audited_positive=good,
        audited_negative=bad,
        audited_unresolved=nobody,
        settled=np.stack([log.positive, log.negative, nobody]),
        settled_audited=np.stack([good, bad, nobody]),
    )


def from_block(block: Block) -> ClosedCohort:
    """Rounds that were played one by one."""
    here = ~block.erased
    group = np.full(len(block.accept), None) if block.group is None else block.group
    label = np.where(block.overruled, 0, block.label)
    features = block.features if here.all() else block.features[here]
    contexts = find_contexts(features, group[here], block.acceptance[here])

    def count(which: BoolArray) -> FloatArray:
        return _summed(contexts.index, which[here], len(contexts.first))

    audit = np.zeros(len(block.accept), bool) if block.audit is None else block.audit
    kinds = {"positive": label == 1, "negative": label == -1, "unresolved": label == 0}
    categories = [block.settled == 1, block.settled == -1, block.settled == 0]
    first = np.flatnonzero(here)[contexts.first]
    gone = np.flatnonzero(block.erased)
    chances, which = np.unique(block.acceptance[gone], return_inverse=True)
    return ClosedCohort(
        epoch=block.epoch,
        first=block.first,
        stop=block.first + len(block.accept),
        log=block.log(block.resolved),
        features=features if len(contexts.first) == len(features) else features[contexts.first],
        group=group[first],
        acceptance=block.acceptance[first],
        rejected=count(~block.accept),
        **{name: count(block.accept & mask) for name, mask in kinds.items()},
        **{f"audited_{name}": count(audit & mask) for name, mask in kinds.items()},
        settled=np.stack([count(block.accept & mask) for mask in categories]),
        settled_audited=np.stack([count(audit & mask) for mask in categories]),
        lost_acceptance=chances,
        lost_accepted=_summed(which, block.accept[gone], len(chances)),
        lost_rejected=_summed(which, ~block.accept[gone], len(chances)),
        lost_audited=float(audit[gone].sum()),
        overruled=_by_group(group, block.accept, block.overruled & here),
        late_groups=_by_group(group, block.accept, block.group_late & here),
        complete=not (block.accept & here & (label == 0) & ~block.overruled).any(),
    )


def _summed(place: IntArray, of: BoolArray | FloatArray, size: int) -> FloatArray:
    return np.bincount(place, weights=of, minlength=size).astype(np.float64, copy=False)


def _by_group(group: GroupArray, accept: BoolArray, which: BoolArray) -> GroupCounts:
    counts: GroupCounts = {}
    for value, drawn in zip(group[which].tolist(), accept[which].tolist(), strict=True):
        counts[value, drawn] = counts.get((value, drawn), 0.0) + 1.0
    return counts


FIRST_PEOPLE = 10
"""How many people a group needs to be one, and each denominator of each group before a run starts.
"""
MOST_PAST = 4000
"""Past rows that a forecast looks at."""


@dataclass(eq=False)
class PastPeople:
    """People seen so far, rows of equal features and group counted together; a sample of them once
    they are many.
    """

    features: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    group: GroupArray = field(default_factory=lambda: np.zeros(0, dtype=object))
    weight: FloatArray = field(default_factory=lambda: np.zeros(0))

    def add(self, features: FloatArray, group: GroupArray, weight: FloatArray) -> None:
        """Add rows."""
        known = len(self.weight)
        both = np.concatenate([self.group, group.astype(object)])
        contexts = find_contexts(features, both, before=self.features if known else None)
        total = _summed(contexts.index, np.concatenate([self.weight, weight]), len(contexts.first))
        chosen = np.arange(len(total))
        if len(total) > MOST_PAST:
            chosen = np.linspace(0, len(total) - 1, MOST_PAST).astype(int)
        keep = contexts.first[chosen]
        # in the order of first appearance, so the old ones come first
        old, new = keep[keep < known], keep[keep >= known] - known
        rows = np.concatenate([self.features[old], features[new]]) if len(old) else features[new]
        self.features, self.group, self.weight = rows, both[keep], total[chosen]


@dataclass(eq=False)
class EvidenceCounts:
    """Counts of closed rounds.

    past, audits: people who are kept for forecasts, and audited ones for nominating; nothing else
    here is about single people. counts: labels seen per (group, label); judged: the same of the
    people whom the intervals have looked at; seen: people per group, whatever group that is;
    unknown: people without one. late_groups, overruled: by (group, drawn accept). erased: people of
    whom nothing is known any more, each at its worst. audited_negatives: the bill of bad accepts
    that audits have cost since the first run started.
    """

    past: PastPeople = field(default_factory=PastPeople)
    audits: list[LabelledSample] = field(default_factory=list)
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
    audited_negatives: float = 0.0

    def add(
        self,
        cohort: ClosedCohort,
        groups: tuple[Group, ...] | None,
        *,
        billed: bool,
        judged: bool,
        audits: bool,
    ) -> None:
        """Count a closed cohort.

        groups: those of the certificate, None before they are fixed; billed: whether its audits are
        on the bill; judged: whether the intervals looked at it; audits: whether they are kept.
        """
        rounds = cohort.rounds
        self.people += float(rounds.sum()) + cohort.lost
        self.erased += cohort.lost
        self.accepted += float((cohort.positive + cohort.negative).sum())
        self.negatives += float(cohort.negative.sum())
        self.unresolved += float(cohort.unresolved.sum())
        self.audited_negatives += float(cohort.audited_negative.sum()) if billed else 0.0
        for name in ("late_groups", "overruled"):
            total: GroupCounts = getattr(self, name)
            for key, number in getattr(cohort, name).items():
                total[key] = total.get(key, 0.0) + number
        inside = np.zeros(len(cohort.features), dtype=bool)
        values, codes = numbered(cohort.group)
        for code, value in enumerate(values):
            rows = codes == code
            people = float(rounds[rows].sum())
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
                more_labels = float(column[rows].sum())
                for counts in (self.counts, self.judged) if judged else (self.counts,):
                    counts[value, label] = counts.get((value, label), 0.0) + more_labels
        self.remember(cohort, inside, audits=audits)

    def remember(self, cohort: ClosedCohort, inside: BoolArray, *, audits: bool) -> None:
        """Keep people for forecasts, and, where hypotheses are nominated, `audits`: audited people
        are labelled draws of the population.
        """
        if len(cohort.features):
            self.past.add(cohort.features, cohort.group, cohort.rounds)
        if audits:
            both = np.concatenate([cohort.audited_positive, cohort.audited_negative])
            count = both * np.tile(inside, 2)
            seen = count > 0
            if seen.any():
                label, rows = np.divmod(np.flatnonzero(seen), len(inside))
                features, group = cohort.features[rows], cohort.group[rows]
                self.audits.append(LabelledSample(features, group, 1 - 2 * label, count[seen]))

    def forget(self, features: FloatArray, group: Group, label: int) -> None:
        """Take one person out of those who are kept for forecasts and for nominating; the counts
        stay.
        """
        past = self.past
        rows = (past.features == features).all(axis=1) & is_group(past.group, group)
        if rows.any():
            past.weight[int(np.argmax(rows))] -= 1.0
            left = past.weight > 0
            self.past = PastPeople(past.features[left], past.group[left], past.weight[left])
        for place, audits in enumerate(self.audits):
            rows = (audits.features == features).all(axis=1) & (audits.label == label)
            rows &= is_group(audits.group, group)
            if rows.any():
                weight = audits.weight.copy()
                weight[int(np.argmax(rows))] -= 1.0
                kept = weight > 0
                del self.audits[place]
                if kept.any():
                    rest = (audits.group[kept], audits.label[kept], weight[kept])
                    self.audits.insert(place, LabelledSample(audits.features[kept], *rest))
                return

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that have a few people, in order; a value with fewer may be a typing error."""
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


storable(PastPeople, "Past", weight=COUNT)
storable(
    EvidenceCounts,
    "Tally",
    **dict.fromkeys(
        ("people", "unknown", "accepted", "negatives", "unresolved", "audited_negatives"), COUNT
    ),
)
storable(
    ClosedCohort,
    acceptance=PROBABILITY,
    **dict.fromkeys(("rejected", "positive", "negative", "unresolved"), COUNT),
)
