"""Sums over a cohort that is still open, so that closing it costs what is new since the last look.

The wealth of a rule sees a person through four things: the group, the probability p of being
accepted, the regression m(x) in 64 steps, and what became of the round. People who are alike in
these are one *look*. Of each look and outcome it is counted

    how many rounds there were, and
    how many of them each rule accepts.

Rules that cut one column share their counts: one number for each cut, the people between it and the
next one. So 99 thresholds need 99 numbers, 2,520 stumps on 20 columns 1,260, and a finite class one
for each rule. All of them are whole numbers, so they are exact, in whichever order people are
counted, and no person can be found in them.

**Who is counted when.** A round is counted once, as soon as its outcome is known: it was rejected,
or its label has come. Accepted rounds whose label may still come wait in a list; when the cohort
closes, those left are unresolved. Whoever is overruled or erased, or whose group becomes known
later, was counted as somebody else: then the table forgets the sums (`Cache.keep_prefix`), and the
cohort is counted anew from its rows. Looks are put in order when the cohort closes, so what is
counted anew is the same to the last bit.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from evenhand.algorithms.certified.rule_tables import RuleSlots
from evenhand.bounds import AcceptedRounds
from evenhand.estimation.log import find_contexts, numbered
from evenhand.estimation.outcomes import OutcomeRegression
from evenhand.rounds import GroupCounts, Rounds, Span, counting, require_possible
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

STEPS = 64.0
"""Steps of the regression."""
AT_ONCE = 8192
"""Rows that are counted at a time: few enough to stay in the cache."""
COUNT = np.int32
"""How people are counted in slots."""
FEWEST_LOOKS = 16
"""There is room for so many looks from the start."""
REJECTED, POSITIVE, NEGATIVE, UNRESOLVED = range(4)
OPEN = "open cohorts"
"""The name under which the table remembers the sums of open cohorts."""


def coarse(regression: FloatArray) -> FloatArray:
    """m in 64 steps: as valid as m, hardly wider, and people who look alike to the bound can be
    counted together.
    """
    return np.round(regression * STEPS) / STEPS


@dataclass(frozen=True, eq=False)
class TalliedCohort:
    """A closed cohort in sums: one row for each look.

    epoch, first, stop: as in `Counts`, and so are the counts by outcome (rows,) and those of people
    who were erased, overruled, or whose group came late. regression: m in steps; accepted: how many
    rounds of each row and outcome every rule accepts. strata (3,): as in `Tally`.
    """

    epoch: int
    first: int
    stop: int
    group: GroupArray
    acceptance: FloatArray
    regression: FloatArray
    accepted: AcceptedRounds
    strata: IntArray
    lost_acceptance: FloatArray
    lost_accepted: FloatArray
    lost_rejected: FloatArray
    overruled: GroupCounts
    late_groups: GroupCounts
    rejected: FloatArray = field(init=False)
    positive: FloatArray = field(init=False)
    negative: FloatArray = field(init=False)
    unresolved: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        by_outcome = self.accepted.rounds.astype(np.float64).T
        for name, column in zip(
            ("rejected", "positive", "negative", "unresolved"), by_outcome, strict=True
        ):
            object.__setattr__(self, name, column)
        require_possible(self)

    @property
    def rounds(self) -> FloatArray:
        """Rounds in each row."""
        return self.rejected + self.positive + self.negative + self.unresolved

    @property
    def lost(self) -> float:
        """Erased people."""
        return float(self.lost_accepted.sum() + self.lost_rejected.sum())

    def chosen(self, rows: BoolArray) -> FloatArray:
        """(M,): how many people of these rows each rule accepts."""
        return self.accepted.weighted(np.repeat(rows[:, np.newaxis], 4, axis=1).astype(np.float64))


@dataclass(eq=False)
class Tally:
    """The sums of one run of rounds of an epoch, and the rounds that wait for their label.

    regression: that of the epoch's record. looks: (group as the table's code, p, m) of each row of
    rounds (rows, 4) and by_slot (rows, 4, slots), which may have more rows; strata (3,): how many
    rounds were rejected, labelled, and labelled by an audit, of those that could be accepted.
    """

    regression: OutcomeRegression
    group_decides: bool
    looks: dict[tuple[int, float, float], int]
    rounds: IntArray
    by_slot: IntArray
    waiting: IntArray
    strata: IntArray

    @classmethod
    def empty(cls, slots: int, regression: OutcomeRegression, *, group_decides: bool) -> "Tally":
        """Nobody has been counted."""
        return cls(
            regression,
            group_decides,
            looks={},
            rounds=np.zeros((FEWEST_LOOKS, 4), dtype=np.int64),
            by_slot=np.zeros((FEWEST_LOOKS, 4, slots), dtype=COUNT),
            waiting=np.zeros(0, dtype=np.int64),
            strata=np.zeros(3, dtype=np.int64),
        )

    def feed(self, table: Rounds, first: int, stop: int, slots: RuleSlots) -> None:
        """Count the rounds first .. stop - 1 whose outcome is known, and those that have waited for
        it until now.
        """
        new = np.arange(first, stop)
        both = np.concatenate([self.waiting, new])
        outcome = counting.outcomes(table, both)
        known = outcome != UNRESOLVED
        self._add(table, both[known], outcome[known], slots)
        self.waiting = both[~known]

    def closed(self, table: Rounds, span: Span, slots: RuleSlots) -> TalliedCohort:
        """The cohort of these rounds, all of which have been fed; whoever still waits for a label
        is unresolved. The sums stay as they are: labels may come before the cohort is asked for
        again.
        """
        epoch, first, stop = span
        marked = counting.marked(table, first, stop)
        # with the labels that have come since the last look
        whole = self.copy()
        whole._add(table, self.waiting, counting.outcomes(table, self.waiting), slots)
        looks = np.array(list(whole.looks)).reshape(-1, 3)
        group = table.group_codes.values_of(looks[:, 0].astype(np.int64))
        order = np.lexsort((looks[:, 2], looks[:, 1], _places(group)))
        accepted = AcceptedRounds(
            whole.rounds[order], whole.by_slot[order], slots.ends, slots.place, slots.below
        )
        _, p, m = looks[order].T
        return TalliedCohort(
            epoch, first, stop, group[order], p, m, accepted, whole.strata, **marked
        )

    def copy(self) -> "Tally":
        """The same sums, which may be added to."""
        size = len(self.looks)
        return replace(
            self,
            looks=dict(self.looks),
            rounds=_with_room(self.rounds[:size]),
            by_slot=_with_room(self.by_slot[:size]),
            strata=self.strata.copy(),
        )

    def _add(self, table: Rounds, rounds: IntArray, outcome: IntArray, slots: RuleSlots) -> None:
        """Each of these rounds once; who was erased counts elsewhere."""
        for start in range(0, len(rounds), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            rows = table.rows_of(rounds[part])
            here = ~table["erased"][rows]
            if here.any():
                self._add_rows(table, rows[here], outcome[part][here], slots)

    def _add_rows(self, table: Rounds, rows: IntArray, outcome: IntArray, slots: RuleSlots) -> None:
        features = table.features_of(rows)
        p = table["acceptance"][rows]
        m = coarse(self.regression.negative_probability(features))
        columns = (table["group"][rows].astype(np.float64), p, m)
        alike = find_contexts(features[:, :0], None, *columns)
        kinds = zip(*(column[alike.first].tolist() for column in columns), strict=True)
        numbers = [self._number(int(group), p, m) for group, p, m in kinds]
        place = 4 * np.array(numbers)[alike.index] + outcome
        np.add.at(self.rounds.reshape(-1), place, 1)
        shown = table.groups_of(rows) if self.group_decides else None
        who, slot = slots.filled(features, shown)
        # a one of the same kind: 0.03 ms for 40,000 entries, where a Python 1 takes 1.4
        np.add.at(self.by_slot.reshape(-1), place[who] * len(slots) + slot, COUNT(1))
        stratum = np.where(outcome == REJECTED, 0, np.where(table["audit"][rows], 2, 1))
        learned = (outcome != UNRESOLVED) & (p > 0)
        self.strata += np.bincount(stratum[learned], minlength=3)

    def _number(self, group: int, p: float, m: float) -> int:
        """The number of a look; a new one gets the next."""
        number = self.looks.setdefault((group, p, m), len(self.looks))
        if number == len(self.rounds):
            self.rounds = _with_room(self.rounds)
            self.by_slot = _with_room(self.by_slot)
        return number


def _with_room(sums: IntArray) -> IntArray:
    """A copy of these rows, and room for as many more. Rows that nobody has written to take no
    memory.
    """
    roomy = np.zeros((max(2 * len(sums), FEWEST_LOOKS), *sums.shape[1:]), sums.dtype)
    roomy[: len(sums)] = sums
    return roomy


def _places(group: GroupArray) -> IntArray:
    """The place of each group in an order that the groups alone give, not who came first."""
    values, codes = numbered(group)
    ordered = sorted(values, key=lambda value: (type(value).__name__, str(value)))
    places = {value: place for place, value in enumerate(ordered)}
    return np.array([places[value] for value in values], dtype=np.int64)[codes]


@dataclass(eq=False)
class OpenCohorts:
    """The sums of all rounds that are not closed.

    since: rounds before this one were closed when it was made; fed_to: rounds before this one have
    been fed. spans: the runs of rounds of one epoch between these; tallies: of those that are
    judged, by their first round. slots: where the rules cut; None in a file.
    """

    since: int
    fed_to: int
    spans: list[Span] = field(default_factory=list)
    tallies: dict[int, Tally] = field(default_factory=dict)
    slots: RuleSlots | None = field(default=None, init=False)

    def copy(self) -> "OpenCohorts":
        """The same sums, which may be added to."""
        tallies = {first: tally.copy() for first, tally in self.tallies.items()}
        other = replace(self, spans=list(self.spans), tallies=tallies)
        other.slots = self.slots
        return other

    def feed(
        self,
        table: Rounds,
        stop: int,
        slots: RuleSlots,
        regressions: dict[int, OutcomeRegression],
        *,
        group_decides: bool,
    ) -> None:
        """Rounds up to `stop`, which will all be closed together. regressions: of the epochs whose
        people are judged; people of others, and those decided in aggregate, are not counted.
        """
        self.slots = slots
        for span in table.spans(self.fed_to, stop):
            epoch, first, last = span
            aggregated = table.is_aggregated(first)
            goes_on = self.spans and not aggregated and self.spans[-1][::2] == (epoch, first)
            if goes_on and not table.is_aggregated(self.spans[-1][1]):
                self.spans[-1] = (epoch, self.spans[-1][1], last)
            else:
                self.spans.append(span)
                if epoch in regressions and not aggregated:
                    tally = Tally.empty(len(slots), regressions[epoch], group_decides=group_decides)
                    self.tallies[first] = tally
            if self.spans[-1][1] in self.tallies:
                self.tallies[self.spans[-1][1]].feed(table, first, last, slots)
        self.fed_to = max(self.fed_to, stop)

    def counted(self, rounds: IntArray) -> BoolArray:
        """Which of these rounds have been counted, so that their rows are not needed any more."""
        done = np.zeros(len(rounds), dtype=bool)
        for _, first, stop in self.spans:
            if first in self.tallies:
                here = (rounds >= first) & (rounds < stop)
                done |= here & ~np.isin(rounds, self.tallies[first].waiting)
        return done
