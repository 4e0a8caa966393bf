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
later, was counted as somebody else: then the table forgets the sums (`Rounds.keep_so_far`), and the
cohort is counted anew from its rows.
"""

from dataclasses import dataclass, field

import numpy as np

from evenhand.algorithms.certified.rule_tables import RuleSlots
from evenhand.bounds import AcceptedRounds
from evenhand.estimation.log import find_contexts
from evenhand.estimation.outcomes import OutcomeRegression
from evenhand.rounds import GroupCounts, Rounds, Span
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

STEPS = 64.0
"""Steps of the regression."""
AT_ONCE = 8192
"""Rows that are counted at a time: few enough to stay in the cache."""
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
    rounds of each row and outcome every rule accepts.
    """

    epoch: int
    first: int
    stop: int
    group: GroupArray
    acceptance: FloatArray
    regression: FloatArray
    accepted: AcceptedRounds
    lost_acceptance: FloatArray
    lost_accepted: FloatArray
    lost_rejected: FloatArray
    lost_audited: float
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
        people = round(float(self.rounds.sum() + self.lost))
        assert people == self.stop - self.first, "a certificate looks at all decided people"

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


class Tally:
    """The sums of one epoch's rounds that have been counted, and the rounds that wait for their
    label.
    """

    def __init__(
        self, slots: RuleSlots, regression: OutcomeRegression, group_decides: bool
    ) -> None:
        self.slots = slots
        self.regression = regression
        self.group_decides = group_decides
        self.looks: dict[tuple[int, float, float], int] = {}
        """The number of each look: group (the table's code), p, m."""
        self.rounds: IntArray = np.zeros((16, 4), dtype=np.int64)
        self.by_slot: IntArray = np.zeros((16, 4, len(slots)), dtype=np.int32)
        self.waiting: IntArray = np.zeros(0, dtype=np.int64)
        """Rounds that were accepted and whose label has not come."""

    def feed(self, table: Rounds, first: int, stop: int) -> None:
        """Count the rounds first .. stop - 1 whose outcome is known, and those that have waited for
        it until now.
        """
        new = np.arange(first, stop)
        both = np.concatenate([self.waiting, new])
        outcome = table.outcomes(both)
        known = outcome != UNRESOLVED
        self._add(table, both[known], outcome[known])
        self.waiting = both[~known]

    def closed(self, table: Rounds, span: Span) -> TalliedCohort:
        """The cohort of these rounds, all of which have been fed; whoever waits is unresolved."""
        epoch, first, stop = span
        marked = table.marked(first, stop)
        unresolved = np.full(len(self.waiting), UNRESOLVED)
        self._add(table, self.waiting, unresolved)
        self.waiting = self.waiting[:0]
        size = len(self.looks)
        codes, p, m = np.array(list(self.looks)).reshape(-1, 3).T
        accepted = AcceptedRounds(
            self.rounds[:size],
            self.by_slot[:size],
            self.slots.ends,
            self.slots.place,
            self.slots.below,
        )
        group = table.group_values(codes.astype(np.int64))
        return TalliedCohort(epoch, first, stop, group, p, m, accepted, **marked)

    def _add(self, table: Rounds, rounds: IntArray, outcome: IntArray) -> None:
        """Each of these rounds once; who was erased counts elsewhere."""
        for start in range(0, len(rounds), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            rows = table.rows_of(rounds[part])
            here = ~table["erased"][rows]
            self._add_rows(table, rows[here], outcome[part][here])

    def _add_rows(self, table: Rounds, rows: IntArray, outcome: IntArray) -> None:
        if not len(rows):
            return
        features = table.features[rows]
        m = coarse(self.regression.negative_probability(features))
        columns = (table["group"][rows].astype(np.float64), table["acceptance"][rows], m)
        alike = find_contexts(features[:, :0], None, *columns)
        kinds = zip(*(column[alike.first].tolist() for column in columns), strict=True)
        numbers = [self._number(int(group), p, m) for group, p, m in kinds]
        look = np.array(numbers)[alike.index]
        place = 4 * look + outcome
        np.add.at(self.rounds.reshape(-1), place, 1)
        shown = table.groups_of(rows) if self.group_decides else None
        who, slot = self.slots.filled(features, shown)
        np.add.at(self.by_slot.reshape(-1), place[who] * len(self.slots) + slot, 1)

    def _number(self, group: int, p: float, m: float) -> int:
        """The number of a look; a new one gets the next."""
        number = self.looks.setdefault((group, p, m), len(self.looks))
        if number == len(self.rounds):
            self.rounds = np.concatenate([self.rounds, np.zeros_like(self.rounds)])
            self.by_slot = np.concatenate([self.by_slot, np.zeros_like(self.by_slot)])
        return number


class OpenCohorts:
    """The tallies of all rounds that are not closed, by the first round of each run of one epoch.

    since: rounds before this one were closed when it was made; fed_to: rounds before this one have
    been fed.
    """

    def __init__(self, slots: RuleSlots, since: int) -> None:
        self.slots = slots
        self.since = since
        self.fed_to = since
        self.tallies: dict[int, Tally] = {}
        self._open = since
        """The first round of the tally that was fed last."""
        self._last = (0, since)
        """Its epoch, and the round at which it goes on."""

    def feed(
        self,
        table: Rounds,
        stop: int,
        regressions: dict[int, OutcomeRegression],
        *,
        group_decides: bool,
    ) -> None:
        """Rounds up to `stop`, which will all be closed together. regressions: of the epochs whose
        people are judged; people of others, and those decided in aggregate, are not fed.
        """
        for epoch, first, last in table.spans(self.fed_to, stop):
            if epoch in regressions and not table.is_aggregated(first):
                if not self.tallies or self._last != (epoch, first):
                    self._open = first
                    self.tallies[first] = Tally(
                        self.slots, regressions[epoch], group_decides=group_decides
                    )
                self.tallies[self._open].feed(table, first, last)
                self._last = (epoch, last)
        self.fed_to = max(self.fed_to, stop)
