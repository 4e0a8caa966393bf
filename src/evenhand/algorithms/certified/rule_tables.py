"""Who accepts whom: the table of some rules on some people, and what must be counted to know it."""

from functools import cached_property
from hashlib import sha256

import numpy as np

from evenhand.algorithms.own_parts import asking_rule
from evenhand.contracts import Batch, Hypothesis
from evenhand.hypotheses.thresholds import Threshold
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

TILE = 2048
FEWEST = 64
ANSWERS_AT_ONCE = 500_000
"""People asked about at a time, at most and at least, and answers: few enough for scores to stay in
the cache. The table of 2,520 stumps and 8,743 people takes 13 ms; with 2,048 people at a time, who
have 41 MB of scores, 26 ms.
"""
LARGEST_KEY = 4096
MOST_TABLES = 8
"""Tables are remembered for at most so many numbers as key, and so many at a time."""


def acceptance_table(
    members: tuple[Hypothesis, ...], features: FloatArray, group: GroupArray | None
) -> BoolArray:
    """(members, rows): who accepts whom."""
    if not members:
        return np.zeros((0, len(features)), dtype=bool)
    together = getattr(type(members[0]), "together", None)
    others = [i for i, member in enumerate(members) if type(member) is not type(members[0])]
    if others:  # candidates come first, then the class, whose rules are asked together
        parts = (members[: others[0]], members[others[0] :])
        return np.concatenate([acceptance_table(part, features, group) for part in parts])
    with asking_rule(members[0]):
        return _answers(members, together(members) if together else None, features, group)


def _answers(
    members: tuple[Hypothesis, ...],
    batch: Batch | None,
    features: FloatArray,
    group: GroupArray | None,
) -> BoolArray:
    """The same for rules of one kind."""
    if batch is not None and batch.columns in (None, features.shape[1]) and len(features):
        people = min(TILE, max(ANSWERS_AT_ONCE // len(members), FEWEST))
        first = batch(features[:people].T)
        # in the memory layout of the answers: the last bits of products with the table depend on it
        table: BoolArray = np.empty_like(first, shape=(len(members), len(features)))
        table[:, :people] = first
        for start in range(people, len(features), people):
            rows = slice(start, start + people)
            table[:, rows] = batch(features[rows].T)
        return table
    return np.stack([member.accepts(features, group) for member in members])


class RuleSlots:
    """Which numbers must be kept to say how many people each rule accepts.

    members: the rules. Slots of one column stand next to each other, one for each cut; `ends` is
    the first slot after the column of each slot. Rule h accepts the people of the slots from
    place[h] to the end of its column, or all others where below[h].
    """

    def __init__(self, members: tuple[Hypothesis, ...]) -> None:
        self.members = members
        self.place: IntArray = np.zeros(len(members), dtype=np.int64)
        self.below: BoolArray = np.zeros(len(members), dtype=bool)
        self.columns: list[tuple[int, FloatArray, int]] = []
        """(column, cuts in order, first slot)."""
        by_column: dict[int, list[int]] = {}
        others: list[int] = []
        for number, rule in enumerate(members):
            if type(rule) is Threshold:
                by_column.setdefault(rule.column, []).append(number)
            else:
                others.append(number)
        ends: list[int] = []
        for column, numbers in by_column.items():
            rules = [rule for rule in members if type(rule) is Threshold and rule.column == column]
            cuts, which = np.unique([rule.value for rule in rules], return_inverse=True)
            first = len(ends)
            self.columns.append((column, cuts, first))
            self.place[numbers] = first + which.reshape(-1)
            self.below[numbers] = [not rule.at_least for rule in rules]
            ends += [first + len(cuts)] * len(cuts)
        self.others = tuple(members[number] for number in others)
        self.first_other = len(ends)
        self.place[others] = self.first_other + np.arange(len(others))
        ends += range(self.first_other + 1, self.first_other + 1 + len(others))
        self.ends: IntArray = np.array(ends, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def one_column(self) -> bool:
        """Whether all rules cut the same column."""
        return len(self.columns) == 1 and not self.others

    def cell(self, features: FloatArray) -> IntArray:
        """How many cuts each person reaches, where all rules cut the same column."""
        ((column, cuts, _),) = self.columns
        return np.asarray(np.searchsorted(cuts, features[:, column], side="right"))

    def filled(self, features: FloatArray, group: GroupArray | None) -> tuple[IntArray, IntArray]:
        """(rows, slots): which person is counted in which slots."""
        all_rows = np.arange(len(features))
        rows: list[IntArray] = []
        slots: list[IntArray] = []
        for column, cuts, first in self.columns:
            # x is in the slot of the last cut that it reaches, and in none below the first one
            reached = np.searchsorted(cuts, features[:, column], side="right")
            inside = reached > 0
            rows.append(all_rows[inside])
            slots.append(first + reached[inside] - 1)
        if self.others:
            accepted = np.flatnonzero(acceptance_table(self.others, features, group))
            rule, row = np.divmod(accepted, len(features))  # half the time of np.nonzero
            rows.append(row)
            slots.append(self.first_other + rule)
        if not rows:
            return all_rows[:0], all_rows[:0]
        return np.concatenate(rows), np.concatenate(slots)


class MemberTables:
    """acceptance_table with a memory: discrete populations have the same contexts often.

    A table is remembered by the hash of its rows. The rows themselves would be people, whom the
    state of an algorithm does not keep.
    """

    def __init__(self, members: tuple[Hypothesis, ...]) -> None:
        self.members = members
        self.known: dict[bytes, BoolArray] = {}

    @cached_property
    def slots(self) -> RuleSlots:
        """Where the rules cut."""
        return RuleSlots(self.members)

    def on(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """The table on these rows."""
        if group is not None or features.size > LARGEST_KEY:
            return acceptance_table(self.members, features, group)
        key = sha256(features.tobytes()).digest()
        if key not in self.known:
            if len(self.known) >= MOST_TABLES:
                self.known.clear()
            self.known[key] = acceptance_table(self.members, features, None)
        return self.known[key]
