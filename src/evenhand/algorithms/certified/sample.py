"""Whom planning looks at: all people of closed cohorts, or a bounded sample of them.

A certificate counts all applicants (`tally`). What is planned (the regression, the costs, the next
rule) may look at fewer people: a poor estimate costs regret, never validity. So a closing costs the
same after a million people as after a hundred thousand.

**Strata.** The resolved rounds of each closed cohort are separated by what is known of them:
rejected; accepted by the policy, with a label; accepted by the audit coin, with a label. A round
has a *level*, l for a fraction of 2^-(l+1) of all, by its number alone (`rounds.sampling_level`).
Of a stratum the rounds are kept whose level is at least k, where k is the smallest number for which
at most `most` are. So the sample does not depend on when it was taken, on how people were grouped
into calls, nor on anything about them; while there are few people it is all of them.

**Weights.** A round that is kept counts for n / (rounds kept) of its cohort and stratum. Where
rules cut one column, the exact number of people between two cuts is known for each outcome: the
weights are then scaled to agree with it, so that the labels which are pooled there are those of
all people.

**Error.** A mean over a stratum has a standard error of at most 1 / (2 sqrt(most)) for a quantity
in [0, 1]: .0035 for 20,000 rounds, and none where the counts are exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from evenhand.algorithms.certified.evidence import (
    MOST_NEW,
    PastPeople,
    group_codes,
    people_before,
    with_people_of,
)
from evenhand.algorithms.certified.rule_tables import RuleSlots
from evenhand.algorithms.certified.sampling import ROWS_AT_ONCE, least_level, sampling_level
from evenhand.algorithms.certified.tally import OpenCohorts, TalliedCohort
from evenhand.estimation import RoundLog
from evenhand.estimation.log import find_contexts
from evenhand.rounds import Counts, Rounds, Span, counting, learning
from evenhand.words import BoolArray, FloatArray, Group, GroupArray, IntArray, LabelledSample

REJECTED, LABELLED, AUDITED = range(3)
MOST_ROWS = 20_000
FEWEST_ROWS = 2_000
MOST_ANSWERS = 5_000_000
"""Rounds of each stratum that are kept, at most: fewer where there are many rules, so that the
table of who accepts whom has about MOST_ANSWERS entries, but at least FEWEST_ROWS.
"""
LEVELS = 65
"""Levels of a round (`sampling_level`) lie below this."""
CLOSED = "closed rounds"
"""The name under which the table remembers what was read from closed cohorts."""


def most_rows(rules: int) -> int:
    """How many rounds of each stratum are kept where there are so many rules."""
    return int(np.clip(MOST_ANSWERS // max(rules, 1), FEWEST_ROWS, MOST_ROWS))


@dataclass(frozen=True, eq=False)
class CohortSample:
    """Rounds of one closed cohort. log: one row each; group (rows,): None where it is unknown;
    stratum, level (rows,); sizes (3,): how many rounds the strata have.
    """

    log: RoundLog
    group: GroupArray
    stratum: IntArray
    level: IntArray
    sizes: IntArray

    @classmethod
    def of(
        cls, rounds: Rounds, span: Span, k: IntArray, sizes: IntArray | None = None
    ) -> "CohortSample":
        """The rounds of a closed cohort whose level is at least k of their stratum. sizes: of the
        strata, where rows have been dropped.
        """
        _, first, stop = span
        rows: list[IntArray] = []
        stratum: list[IntArray] = []
        found = np.zeros(3, dtype=np.int64)
        for start in range(first, stop, ROWS_AT_ONCE):
            strata = resolved_rows(rounds, start, min(start + ROWS_AT_ONCE, stop))
            for kind, one in enumerate(strata):
                found[kind] += len(one)
                kept = one[sampling_level(rounds["round"][one]) >= k[kind]]
                rows.append(kept)
                stratum.append(np.full(len(kept), kind))
        chosen = np.concatenate(rows)
        order = np.argsort(chosen)  # in the order of arrival
        chosen = chosen[order]
        return cls(
            learning.log_of_rows(rounds, chosen),
            rounds.groups_of(chosen),
            np.concatenate(stratum)[order],
            sampling_level(rounds["round"][chosen]),
            found if sizes is None else sizes.copy(),
        )

    @cached_property
    def of_level(self) -> IntArray:
        """(3, LEVELS): rows of each stratum and level. A quota closes cohorts by the hundred, and
        each closing asks all of them.
        """
        place = LEVELS * self.stratum + self.level
        return np.bincount(place, minlength=3 * LEVELS).reshape(3, LEVELS)

    @property
    def scale(self) -> FloatArray:
        """(rows,): how many rounds each stands for."""
        kept = np.bincount(self.stratum, minlength=3)
        return np.asarray((self.sizes / np.maximum(kept, 1))[self.stratum])

    def thin(self, k: IntArray) -> "CohortSample":
        """The same at a larger k."""
        keep = self.level >= k[self.stratum]
        if keep.all():
            return self
        return CohortSample(
            self.log.where(keep),
            self.group[keep],
            self.stratum[keep],
            self.level[keep],
            self.sizes,
        )


@dataclass(frozen=True, eq=False)
class ClosedRounds:
    """What planning keeps of closed cohorts, one cohort added after the other.

    spans: the cohorts; pieces: the sample of each, all of it where it was decided in aggregate;
    levels (3,): k of each stratum, which only rises; past: the people whom forecasts are made for.
    between_cuts (cells, 3): people by the last cut that they reach and by outcome (rejected, good,
    bad), of the cohorts that were decided one by one and without those who could not be accepted;
    None while nobody needs it.
    """

    past: PastPeople
    spans: tuple[Span, ...] = ()
    pieces: tuple[CohortSample | Counts, ...] = ()
    levels: IntArray = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    between_cuts: FloatArray | None = None

    @classmethod
    def none(cls, rounds: Rounds, *, before: bool) -> "ClosedRounds":
        """Before the first cohort; `before`: with what was known before the first round."""
        return cls(people_before(rounds) if before else PastPeople.nobody())

    def with_cohort(
        self,
        rounds: Rounds,
        span: Span,
        slots: RuleSlots,
        cohort: Counts | TalliedCohort | None = None,
    ) -> "ClosedRounds":
        """With one more cohort; its sums, where they are at hand, say the same as its rows."""
        _, first, stop = span
        aggregated = rounds.is_aggregated(first)
        sizes = cohort.strata if isinstance(cohort, TalliedCohort) else None
        piece: CohortSample | Counts
        if aggregated:
            piece = counting.count(rounds, first, stop)
        else:
            piece = CohortSample.of(rounds, span, self.levels, sizes)
        pieces = (*self.pieces, piece)
        levels = _least_levels(pieces, most_rows(len(slots.members)), self.levels)
        if (levels > self.levels).any():
            pieces = tuple(
                one.thin(levels) if isinstance(one, CohortSample) else one for one in pieces
            )
        between_cuts = self.between_cuts
        if between_cuts is not None and not aggregated:
            between_cuts = between_cuts + _between_cuts_in(rounds, span, slots, cohort)
        return ClosedRounds(
            with_people_of(self.past, rounds, span),
            (*self.spans, span),
            pieces,
            levels,
            between_cuts,
        )

    def with_between_cuts(self, rounds: Rounds, slots: RuleSlots) -> "ClosedRounds":
        """The same with the exact counts from the rows, where all rules cut one column. The rules
        are those of all later cohorts, too.
        """
        if not slots.one_column or self.between_cuts is not None:
            return self
        total = np.zeros((len(slots) + 1, 3))
        for span in self.spans:
            if not rounds.is_aggregated(span[1]):
                total = total + _between_cuts_in(rounds, span, slots)
        return replace(self, between_cuts=total)

    @property
    def all_are_in(self) -> bool:
        """Whether nobody was left out."""
        parts = [piece for piece in self.pieces if isinstance(piece, CohortSample)]
        return all(len(part.log) == part.sizes.sum() for part in parts)


@dataclass(frozen=True, eq=False)
class KeptCounts:
    """What is known of rounds whose rows leave once they are counted (keep="counts"). Nobody could
    count it again, so it is part of the state; and nobody can be erased there.

    closed: of the closed cohorts of this run; open: of all rounds that are not closed, None before
    the first look.
    """

    closed: ClosedRounds
    open: OpenCohorts | None = None


@dataclass(frozen=True, eq=False)
class ClosedSample:
    """What planning knows of closed cohorts.

    log: the resolved rounds, weighted so that they stand for all of them, equal ones counted
    together; observed: the same rows as they were seen. Both are one object where all people are in
    it. pieces: the sample of each cohort.
    """

    log: RoundLog
    observed: RoundLog
    pieces: Sequence[CohortSample | Counts]


@dataclass(frozen=True, eq=False)
class ClosedPeople:
    """What planning may look at: sample, the resolved rounds of closed cohorts or some of them
    (None if there are none), and past, the people whom forecasts are made for.
    """

    sample: ClosedSample | None
    past: PastPeople


def closed_rounds(
    rounds: Rounds,
    spans: Sequence[Span],
    slots: RuleSlots,
    *,
    before: bool,
    fixed: bool = True,
) -> ClosedRounds:
    """What the rows of the table say of these cohorts: the table remembers what was read, and
    whoever is erased there is gone here. slots: where the rules cut; before: with what was known
    before the first round; fixed: whether no rule joins later, so that people can be counted
    between cuts.
    """
    closed: ClosedRounds | None
    closed, rest = rounds.cache.of_cohorts(f"{CLOSED}, {before}", spans)
    if closed is None:
        closed = ClosedRounds.none(rounds, before=before)
    for span in rest:
        closed = closed.with_cohort(rounds, span, slots)
    if fixed and not closed.all_are_in:
        closed = closed.with_between_cuts(rounds, slots)
    remember(rounds, closed, before=before)
    return closed


def remember(rounds: Rounds, closed: ClosedRounds, *, before: bool) -> None:
    """Nobody need be looked at again."""
    rounds.cache.keep_cohorts(f"{CLOSED}, {before}", closed.spans, closed)


def closed_sample(
    rounds: Rounds, closed: ClosedRounds, slots: RuleSlots, *, with_group: bool, before: bool
) -> ClosedSample | None:
    """The sample of closed cohorts; None if there is nobody. slots: where the rules cut;
    with_group: whether rows of different groups stay apart; before: with what was known before the
    first round.
    """
    seen = [log for log, _ in rounds.before] if before else []
    seen += [piece.log for piece in closed.pieces]
    weighted = [log for log, _ in rounds.before] if before else []
    weighted += _weighted(closed, slots)
    all_in = all(one is other for one, other in zip(seen, weighted, strict=True))
    observed = _merged(seen, with_group=with_group)
    if observed is None:
        return None
    log = observed if all_in else _merged(weighted, with_group=with_group)
    assert log is not None
    return ClosedSample(log, observed, closed.pieces)


def _merged(logs: list[RoundLog], *, with_group: bool) -> RoundLog | None:
    """Equal rows once, without rounds that could not be accepted."""
    shown = [log if with_group else log.without_group() for log in logs if log.rounds > 0]
    possible = [log.where(log.acceptance > 0) for log in shown]
    return RoundLog.merged(possible) if possible else None


def _least_levels(pieces: Sequence[CohortSample | Counts], most: int, levels: IntArray) -> IntArray:
    """(3,): the smallest k of each stratum for which at most so many rounds are kept; at least
    `levels`, below which nobody is there any more.
    """
    parts = [piece for piece in pieces if isinstance(piece, CohortSample)]
    k = levels.copy()
    if not parts:
        return k
    for stratum, of_level in enumerate(np.sum([part.of_level for part in parts], axis=0)):
        kept = np.cumsum(of_level[::-1])[::-1]  # rounds of this level or a higher one
        k[stratum] = max(k[stratum], int(np.argmax(kept <= most)))
    return k


def _weighted(closed: ClosedRounds, slots: RuleSlots) -> list[RoundLog]:
    """The logs with weights; the same objects where nobody was left out."""
    pieces = closed.pieces
    parts = [piece for piece in pieces if isinstance(piece, CohortSample)]
    scales = [part.scale for part in parts]
    if closed.all_are_in:
        return [piece.log for piece in pieces]
    # a small cohort may have nobody in the sample: the others stand for its people, too
    sizes = np.sum([part.sizes for part in parts], axis=0)
    strata = np.concatenate([part.stratum for part in parts])
    whole = np.bincount(strata, weights=np.concatenate(scales), minlength=3)
    factor = np.divide(sizes, whole, out=np.ones(3), where=whole > 0)
    scales = [scale * factor[part.stratum] for scale, part in zip(scales, parts, strict=True)]
    exact = closed.between_cuts
    if exact is not None:
        # the exact number of people between two cuts, over what the sample says, by outcome
        size = exact.size
        places = [3 * slots.cell(part.log.features) + _outcome(part.log) for part in parts]
        total = sum(
            np.bincount(place, weights=scale, minlength=size)
            for place, scale in zip(places, scales, strict=True)
        )
        factor = np.divide(exact.reshape(-1), total, out=np.ones(size), where=total > 0)
        scales = [scale * factor[place] for scale, place in zip(scales, places, strict=True)]
    left = iter(scales)
    return [
        _times(piece.log, next(left)) if isinstance(piece, CohortSample) else piece.log
        for piece in pieces
    ]


def _outcome(log: RoundLog) -> IntArray:
    """0 rejected, 1 good, 2 bad, of rows that are one round each."""
    return np.asarray((log.positive + 2.0 * log.negative).astype(np.int64))


def _times(log: RoundLog, scale: FloatArray) -> RoundLog:
    counts = {name: getattr(log, name) * scale for name in ("rejected", "positive", "negative")}
    return RoundLog.of_checked(**{**vars(log), **counts})


def _between_cuts_in(
    rounds: Rounds,
    span: Span,
    slots: RuleSlots,
    cohort: Counts | TalliedCohort | None = None,
) -> FloatArray:
    """(cells, 3): people of one cohort, which was decided one by one, by its sums where they were
    counted, else from its rows.
    """
    cells = len(slots) + 1
    if not isinstance(cohort, TalliedCohort):
        _, first, stop = span
        total = np.zeros(3 * cells)
        for rows in resolved_rows(rounds, first, stop):
            cell = slots.cell(rounds.features_of(rows))
            place = 3 * cell + counting.outcomes(rounds, rounds["round"][rows])
            total += np.bincount(place, minlength=3 * cells)
        return total.reshape(cells, 3)
    possible = cohort.acceptance > 0
    above = cohort.accepted.by_slot[possible, :3].sum(axis=0).T
    below = cohort.accepted.rounds[possible, :3].sum(axis=0) - above.sum(axis=0)
    return np.concatenate([below[np.newaxis], above]).astype(np.float64)


def resolved_rows(table: Rounds, first: int, stop: int) -> tuple[IntArray, IntArray, IntArray]:
    """The rows of a closed cohort from which the loss may learn, by what was known when it
    closed: rejected; accepted by the policy and labelled; accepted by the audit coin and
    labelled. Rounds that could not be accepted are none of them.
    """
    rows = table.rows_between(first, stop)
    accept = table["accept"][rows]
    possible = (table["acceptance"][rows] > 0) & ~table["erased"][rows]
    labelled = accept & possible & (counting.label_at_closing(table, rows) != 0)
    audit = table["audit"][rows]
    kinds = (~accept & possible, labelled & ~audit, labelled & audit)
    one, two, three = (rows.start + np.flatnonzero(kind) for kind in kinds)
    return one, two, three


def still_needed(
    rounds: Rounds, closed: ClosedRounds, cohorts: OpenCohorts, fed_to: int
) -> BoolArray:
    """(rows,): which rows of the table are needed where counts alone are kept: of rounds that have
    not been counted, or that the drift tests have not seen (they have seen those before `fed_to`),
    and of an open cohort those that will be in the samples of planning.
    """
    numbers = rounds["round"]
    needed = (numbers >= fed_to) | ((numbers >= cohorts.since) & ~cohorts.counted(numbers))
    # levels only rise, so whatever is in a later sample has at least the present ones
    k = closed.levels
    of_past = np.zeros(len(numbers), dtype=np.int64)
    for _, first, stop in cohorts.spans:
        here = slice(*np.searchsorted(numbers, (first, stop)))
        of_past[here] = least_level(stop - first, MOST_NEW)
    stratum = np.where(~rounds["accept"], REJECTED, np.where(rounds["audit"], AUDITED, LABELLED))
    sampled = sampling_level(numbers) >= np.minimum(k[stratum], of_past)
    return np.asarray(needed | (sampled & (numbers >= cohorts.since)))


def audited_people(
    rounds: Rounds, sample: ClosedSample, groups: tuple[Group, ...], *, before: bool
) -> list[LabelledSample]:
    """The audited people of closed cohorts who have a label: labelled draws of the population."""
    samples = []
    if before:
        for log, audited in rounds.before:
            if audited and log.group is not None:
                samples += _labelled(log.features, log.group, log.positive, log.negative, groups)
    for piece in sample.pieces:
        if isinstance(piece, CohortSample):
            audit = np.where(piece.stratum == AUDITED, piece.scale, 0.0)
            positive = piece.log.positive * audit
            negative = piece.log.negative * audit
        else:
            positive = piece.audited_positive
            negative = piece.audited_negative
        features = piece.log.features if isinstance(piece, CohortSample) else piece.features
        samples += _labelled(features, piece.group, positive, negative, groups)
    return samples


def _labelled(
    features: FloatArray,
    group: GroupArray,
    positive: FloatArray,
    negative: FloatArray,
    groups: tuple[Group, ...],
) -> list[LabelledSample]:
    inside = (group_codes(group, groups) >= 0) & (positive + negative > 0)
    if not inside.any():
        return []
    rows = np.flatnonzero(inside)
    alike = find_contexts(features[rows], group[rows])
    first = rows[alike.first]
    count = np.concatenate([alike.total(positive[rows]), alike.total(negative[rows])])
    seen = count > 0
    is_negative, row = np.divmod(np.flatnonzero(seen), len(first))
    place = first[row]
    return [LabelledSample(features[place], group[place], 1 - 2 * is_negative, count[seen])]
