"""The book of rounds that were played one by one: what was decided, with which probability, and
what became of it.

Labels exist for accepted rounds alone; a label can be told once (telling it again, the same,
changes nothing). After its coin a round may only lose information: a human overrules it, or the
person is erased. It keeps its place and its coin, and never leaves the book.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import groupby, islice, takewhile
from operator import attrgetter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import BadLabel, InvalidInput, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.estimation.log import is_known, joined_people, prices_of
from evenhand.learners.storage import storable
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, Prices, as_known_groups

LOOSE = 1024
"""Blocks that may lie loose in the book before neighbours are joined."""
MANY = 64
"""From so many labels on, those about which there is nothing to say are entered together."""
_LATER = ("overruled", "erased", "group_late", "learned")
"""What may become true of a round after it was decided."""
_COLUMNS = ("accept", "acceptance", "label", "logged", "settled", *_LATER)
_NOT_GIVEN: Any = object()
_NO: BoolArray = np.zeros(1, bool)
_NO.flags.writeable = False
"""The column of a block of one person of whom something is not so: most people come alone, and most
of them stay as they are.
"""


Person = tuple[FloatArray, GroupArray | None, bool, float, Prices | None]
"""Features, group, the coin, the probability of accepting, and prices of one person."""


@storable
@dataclass(eq=False)
class Block:
    """Consecutive rounds of one epoch; one entry of each column per round, in the order of arrival.

    Attributes
    ----------
    first, epoch, at
        The number of the first round, the epoch, and the time of the decision (of the last one, in
        a block that was put together).
    features, group, prices
        The person. group: None where it is unknown. All three are wiped when the person is erased:
        zeros, None, zeros.
    accept, acceptance, audit
        The coin, the probability of accepting, and whether the audit coin had accepted. They stay
        as drawn, whatever happens.
    label
        0 while unknown; 0 for good where a human refused a person who was drawn to be accepted, and
        where the person was erased.
    logged, learned
        Whether the round has been handed over (its cohort is closed), and whether it is in the
        history of the loss.
    overruled
        A human decided otherwise than was drawn.
    erased
        The person is forgotten.
    settled
        For the drift test: the label, if it came within the person's own maturity window and nobody
        had overruled or erased the round by the end of it; else 0, "not come".
    group_late
        The group was told after the coin.
    """

    first: int
    epoch: int
    features: FloatArray
    group: GroupArray | None
    accept: BoolArray
    acceptance: FloatArray
    prices: Prices | None
    label: IntArray
    logged: BoolArray
    audit: BoolArray | None = None
    at: float | None = None
    overruled: BoolArray = _NOT_GIVEN
    erased: BoolArray = _NOT_GIVEN
    settled: IntArray = _NOT_GIVEN
    group_late: BoolArray = _NOT_GIVEN
    learned: BoolArray = _NOT_GIVEN

    def __post_init__(self) -> None:
        rows, group = len(self.accept), self.group
        if group is not None and group.dtype.kind in "Of":
            self.group = as_known_groups(group, rows)  # a maker may write NaN for "unknown"
        if self.settled is _NOT_GIVEN:
            self.settled = np.zeros(rows, np.int64)
        for name in _LATER:
            if getattr(self, name) is _NOT_GIVEN:
                setattr(self, name, _NO if rows == 1 else np.zeros(rows, bool))

    def require_possible(self) -> None:
        """InvalidInput for columns that no life can have led to."""
        rows, kinds = len(self.accept), {"acceptance": "f", "label": "i", "settled": "i"}
        for name in _COLUMNS:
            column = getattr(self, name)
            if column.shape != (rows,) or column.dtype.kind != kinds.get(name, "b"):
                raise InvalidInput(
                    f"{name} of the block of round {self.first} is {column.dtype} of shape "
                    f"{column.shape}."
                )
        owed = () if self.prices is None else (self.prices.false_accept, self.prices.false_reject)
        optional = [c for c in (self.group, self.audit, *owed) if isinstance(c, np.ndarray)]
        kept = self.features.ndim == 2 and len(self.features) == rows
        if not kept or any(column.shape != (rows,) for column in optional):
            raise InvalidInput(
                f"features, group, audit or prices of the block of round {self.first} have "
                "another length."
            )
        p, labelled = self.acceptance, self.label != 0
        strange = (np.abs(self.label) > 1) | (np.abs(self.settled) > 1)
        never = p == np.where(self.accept, 0, 1)
        audited = False if self.audit is None else self.audit
        laws = {
            "an acceptance probability lies outside [0, 1]": ~((p >= 0) & (p <= 1)),
            "somebody was accepted with probability 0, or rejected with probability 0": never,
            "a label is none of -1, 0 and +1": strange,
            "somebody has a label who was rejected, refused or erased": labelled
            & ~(self.accept & ~self._mute),
            "somebody was audited who was rejected": ~self.accept & audited,
        }
        for law, broken in laws.items():
            if np.any(broken):
                raise InvalidInput(f"in round {self.first + int(np.argmax(broken))} {law}.")

    @property
    def _mute(self) -> BoolArray:
        """Rounds whose label counts for nothing: erased, or drawn to be accepted and refused by a
        human.
        """
        return np.asarray(self.erased | (self.overruled & self.accept))

    @property
    def resolved(self) -> BoolArray:
        """What the loss may learn from: rejected rounds, and accepted ones whose label has come;
        never an erased one.
        """
        return np.asarray(((self.label != 0) & ~self._mute) | ~(self.accept | self.erased))

    def fresh(self, stop: int | None) -> BoolArray:
        """What the loss may learn from and has not been handed over: of the rounds before `stop`,
        if it is given.
        """
        rows = np.asarray(self.resolved & ~self.logged)
        if stop is not None:
            rows[max(stop - self.first, 0) :] = False
        return rows

    def knows_group(self, rows: IntArray | BoolArray) -> BoolArray:
        """Whether the group of each of these rounds is known."""
        if self.group is None or self.group.dtype.kind != "O":
            return np.full(len(self.accept[rows]), self.group is not None)
        return is_known(self.group[rows])

    def group_of(self, row: int) -> Hashable:
        """The group of one round, None where it is unknown."""
        return None if self.group is None else self.group[row]

    def continued_by(self, later: "Block") -> bool:
        """Whether `later` may be joined to this block: the same epoch and time, and the same things
        known about everybody.
        """
        return (
            self.first + len(self.accept) == later.first
            and self.epoch == later.epoch
            and self.at == later.at
            and self.features.shape[1] == later.features.shape[1]
            and (self.group is None) == (later.group is None)
            and (self.prices is None) == (later.prices is None)
            and (self.audit is None) == (later.audit is None)
        )

    def log(self, rows: BoolArray) -> RoundLog:
        """The chosen rounds, which must be resolved, as a log: with the group where it is known of
        all of them.
        """
        accept, label, group = self.accept[rows], self.label[rows], self.group
        return RoundLog.of_checked(
            self.features[rows],
            group[rows] if group is not None and self.knows_group(rows).all() else None,
            self.prices and prices_of(self.prices, len(self.accept), rows),
            acceptance=self.acceptance[rows],
            rejected=(~accept).astype(np.float64),
            positive=(accept & (label == 1)).astype(np.float64),
            negative=(accept & (label == -1)).astype(np.float64),
        )

    def write(self, name: str, rows: IntArray, value: bool | float | None) -> None:
        """Change some entries of a column."""
        column = getattr(self, name)
        if not column.flags.writeable:
            column = column.copy()
            setattr(self, name, column)
        column[rows] = value

    def each_of(self, rows: IntArray) -> "list[Block]":
        """Each of these rounds as it is now, as a block of its own."""
        columns = {
            name: getattr(self, name)[rows, np.newaxis]
            for name in ("group", "audit", *_COLUMNS)
            if getattr(self, name) is not None
        }
        blocks = []
        for i, row in enumerate(rows.tolist()):
            alone = object.__new__(Block)  # its columns need no check
            alone.__dict__.update(vars(self), first=self.first + row, features=self.features[[row]])
            alone.__dict__.update({name: column[i] for name, column in columns.items()})
            if self.prices is not None:
                alone.prices = prices_of(self.prices, len(self.accept), slice(row, row + 1))
            blocks.append(alone)
        return blocks


class Single(Block):
    """The round of one person at whom nobody has looked since: most people come alone, and columns
    of one entry take time to make.

    It becomes a block like any other as soon as somebody reads or writes a column.
    """

    person: Person
    audited: bool | None


def _opened(singles: list[Single]) -> list[Block]:
    """People who came one by one, in the order of their rounds, as blocks: one, if all of them are
    alike.
    """
    if not singles:
        return []
    features, groups, accept, acceptance, prices = zip(
        *[single.person for single in singles], strict=True
    )
    begin, end, audited = singles[0], singles[-1], [single.audited for single in singles]
    if (  # epochs and times never fall, so that their ends tell
        (end.first - begin.first, end.epoch, end.at) != (len(singles) - 1, begin.epoch, begin.at)
        or any(len({entry is None for entry in column}) > 1 for column in (groups, prices, audited))
        or features[0].shape != features[-1].shape
    ):
        return [block for single in singles for block in _opened([single])]
    rows, group, owed = len(singles), groups[0], prices[0]
    if rows > 1:
        group, owed = joined_people(groups, prices, [1] * rows)
    block = Block(
        first=begin.first,
        epoch=begin.epoch,
        features=features[0] if rows == 1 else np.concatenate(features),
        group=group,
        accept=np.array(accept),
        acceptance=np.array(acceptance),
        prices=owed,
        label=np.zeros(rows, np.int64),
        logged=np.zeros(rows, bool),
        audit=None if audited[0] is None else np.array(audited),
        at=begin.at,
    )
    return [block]


def _column(name: str) -> property:
    """A column of a `Single`, which is made when it is asked for."""

    def become_a_block(single: Single) -> Block:
        columns = vars(_opened([single])[0])
        single.__dict__.clear()
        single.__class__ = Block  # type: ignore[assignment]  # this is how it becomes one
        single.__dict__.update(columns)
        return single

    def read(single: Single) -> object:
        return getattr(become_a_block(single), name)

    def write(single: Single, value: object) -> None:
        setattr(become_a_block(single), name, value)

    return property(read, write)


for _name in ("features", "group", "prices", "audit", *_COLUMNS):
    setattr(Single, _name, _column(_name))


def merged(blocks: list[Block]) -> Block:
    """Blocks of one epoch end to end."""
    if len(blocks) == 1:
        return blocks[0]
    sizes = [len(b.accept) for b in blocks]
    columns: dict[str, Any] = {}
    for name in ("features", *_COLUMNS):
        parts = [getattr(b, name) for b in blocks]
        nothing = all(part is _NO for part in parts)
        columns[name] = np.zeros(len(parts), bool) if nothing else np.concatenate(parts)
    groups, audits, prices = (
        [getattr(b, name) for b in blocks] for name in ("group", "audit", "prices")
    )
    if any(group is not None for group in groups):
        groups = [np.full(n, None) if g is None else g for g, n in zip(groups, sizes, strict=True)]
    columns["group"], columns["prices"] = joined_people(groups, prices, sizes)
    return Block(
        first=blocks[0].first,
        epoch=blocks[0].epoch,
        audit=None if any(a is None for a in audits) else np.concatenate(audits),
        at=blocks[-1].at,
        **columns,
    )


_first = attrgetter("first")


@storable
@dataclass(eq=False)
class RoundBook:
    """Blocks in the order of their rounds; rounds played in aggregate (by counts) have no page
    here.
    """

    blocks: list[Block] = field(default_factory=list)
    bound_up: int = 0
    """The first so many blocks have been joined with their neighbours."""
    told: bool = False
    """Whether labels were told since somebody asked what can be handed over."""
    in_hand: int | None = field(default=None, init=False)
    """The first round of a call of decide() that goes on beyond the end of an epoch."""
    _finished: int = field(default=0, init=False)
    """The first so many blocks have been handed over whole."""

    def __post_init__(self) -> None:
        end = 0
        for block in self.blocks:
            block.require_possible()
            if block.first < end:
                raise InvalidInput(f"round {block.first} is in the book twice.")
            end = block.first + len(block.accept)

    def add(self, block: Block) -> None:
        """Append the next block."""
        if len(self.blocks) - self.bound_up >= LOOSE:
            self.bind_up()
        self.blocks.append(block)

    def add_one(
        self, first: int, epoch: int, person: Person, audited: bool | None, at: float | None
    ) -> Single:
        """Append the round of one person."""
        alone = object.__new__(Single)
        alone.__dict__.update(first=first, epoch=epoch, at=at, person=person, audited=audited)
        self.add(alone)
        return alone

    def hold(self, round: int) -> None:
        """From here on the rounds belong to a call of decide() that goes on beyond the end of an
        epoch.
        """
        self.bind_up()
        self.in_hand = round

    def bind_up(self) -> None:
        """Join neighbours: people who came one by one become one block."""
        loose: list[Block] = []
        for alone, run in groupby(
            self.blocks[self.bound_up :], key=lambda block: type(block) is Single
        ):
            blocks = list(run)
            loose += _opened(cast(list[Single], blocks)) if alone else blocks
        runs: list[list[Block]] = []
        for block in loose:
            if runs and runs[-1][-1].continued_by(block):
                runs[-1].append(block)
            else:
                runs.append([block])
        self.blocks[self.bound_up :] = [merged(run) for run in runs]
        self.bound_up = len(self.blocks)

    # what becomes of rounds

    def observe(
        self, rounds: IntArray, labels: NDArray[np.generic], settled: BoolArray | bool = True
    ) -> None:
        """Enter labels; nothing is entered if any of them is refused. `settled`: whether each came
        within the person's own window.
        """
        plain = self._plain_labels(rounds, labels) if len(rounds) >= MANY else []
        others = np.arange(len(rounds))
        if plain:
            others = np.delete(others, np.concatenate([which for *_, which in plain]))
        numbers, values = rounds.tolist(), labels.tolist()
        places, labels_now = [], dict[int, int]()
        for place in others.tolist():
            round, label = numbers[place], values[place]
            block, row = self._awaiting_label(round, label)
            before = labels_now.setdefault(round, int(block.label[row]) or int(label))
            if before != label:
                raise ProtocolError(
                    f"round {round} was observed before with label {before:+d} and now has "
                    f"{int(label):+d}; the first one stands.",
                    hint="settle disputed outcomes before they are observed.",
                )
            early = settled if isinstance(settled, bool) else settled[place]
            places.append((block, row, int(label), early))
        for block, row, label, early in places:
            block.label[row] = label
            if early:
                block.settled[row] = label
        for block, rows, which in plain:
            block.label[rows] = labels[which]
            early_ones = np.broadcast_to(settled, rounds.shape)[which]
            block.settled[rows[early_ones]] = labels[which[early_ones]]
        self.told = self.told or bool(places or plain)

    def _awaiting_label(self, round: int, label: object) -> "tuple[Block, int]":
        """The block and the row of a round of which this label may be told."""
        block, row = self._find(round, "its label cannot be told")
        if label not in (-1, 1):
            raise BadLabel(
                f"the label of round {round} is {label!r}; labels are -1 (bad outcome) and +1 "
                "(good outcome)."
            )
        if not block.accept[row]:
            raise ProtocolError(
                f"round {round} was rejected; its label cannot have been seen.",
                hint="check the round's number.",
            )
        if block.overruled[row]:
            raise ProtocolError(
                f"round {round} was overruled: a human refused the person, so the label "
                "counts for nothing.",
                hint="do not tell the labels of people who were refused.",
            )
        return block, row

    def _plain_labels(
        self, rounds: IntArray, labels: NDArray[np.generic]
    ) -> list[tuple[Block, IntArray, IntArray]]:
        """Of many labels those about which there is nothing to say, (block, rows, places): -1 or
        +1, and the first of an accepted round.
        """
        if labels.dtype.kind not in "iuf":
            return []
        plain = []
        for block, rows, which in self._by_block(rounds):
            if (rows[1:] == rows[:-1]).any():
                continue  # a round that is told twice
            free = block.accept[rows] & ~(block.overruled[rows] | block.erased[rows])
            free &= (block.label[rows] == 0) & ((labels[which] == 1) | (labels[which] == -1))
            plain.append((block, rows[free], which[free]))
        return plain

    def overrule(
        self, rounds: IntArray, accept: BoolArray, window_open: BoolArray | bool = True
    ) -> list[Block]:
        """A human decided `accept` instead of what was drawn; the rounds of which that is news, as
        they were before.

        `window_open`: whether the person's own maturity window is still open; once it has ended,
        `settled` stays as it is.
        """
        unsettled, lost = np.broadcast_to(window_open, rounds.shape), []
        for block, rows, which in self._by_block(rounds, "it cannot be overruled"):
            news = (accept[which] != block.accept[rows]) & ~block.overruled[rows]
            changed, first = np.unique(rows[news], return_index=True)
            lost += block.each_of(changed)
            block.write("overruled", changed, True)
            refused = block.accept[changed]
            block.label[changed[refused]] = 0
            block.write("learned", changed[refused], False)
            block.settled[changed[refused & unsettled[which][news][first]]] = 0
        return lost

    def erase(self, rounds: IntArray, window_open: BoolArray | bool = True) -> list[Block]:
        """Forget the people: features, group, prices and label are wiped; the rounds of which that
        is news, as they were before.
        """
        unsettled, lost = np.broadcast_to(window_open, rounds.shape), []
        for block, rows, which in self._by_block(rounds):
            news = ~block.erased[rows]
            changed, first = np.unique(rows[news], return_index=True)
            lost += block.each_of(changed)
            block.write("erased", changed, True)
            block.write("features", changed, 0.0)
            if block.group is not None:
                block.group = block.group.astype(object, copy=False)
                block.write("group", changed, None)
            if block.prices is not None:
                kept = np.isin(np.arange(len(block.accept)), changed, invert=True)
                fa, fr = block.prices.false_accept, block.prices.false_reject
                block.prices = Prices(np.where(kept, fa, 0.0), np.where(kept, fr, 0.0))
            block.label[changed] = 0
            block.write("learned", changed, False)
            block.settled[changed[unsettled[which][news][first]]] = 0
        return lost

    def check_group(self, rounds: IntArray, groups: GroupArray) -> None:
        """Refuse a group that contradicts the one that was told before; None is unknown and
        contradicts nothing.
        """
        for block, rows, which in self._by_block(rounds, "its group cannot be told"):
            now: dict[int, Hashable] = {}
            for row, group in zip(rows.tolist(), groups[which].tolist(), strict=True):
                known = now.get(row, block.group_of(row))
                if group is not None and known is not None and known != group:
                    raise ProtocolError(
                        f"round {block.first + row} was told with another group before; a "
                        "person's group does not change.",
                        hint="check the round's number.",
                    )
                now[row] = known if group is None else group

    def tell_group(self, rounds: IntArray, groups: GroupArray) -> int:
        """Enter groups that were unknown when the decision was made; rounds whose cohort is closed
        stay as they are. How many are new.
        """
        self.check_group(rounds, groups)
        entered = 0
        for block, rows, which in self._by_block(rounds):
            values = groups[which]
            new = is_known(values) & ~block.logged[rows] & ~block.knows_group(rows)
            if new.any():
                if block.group is None:
                    block.group = np.full(len(block.accept), None)
                block.group[rows[new]] = values[new]
                block.write("group_late", rows[new], True)
                entered += len(np.unique(rows[new]))
        return entered

    def window_open(
        self, rounds: IntArray, now: float | None, window: float | None
    ) -> BoolArray | bool:
        """Whether the own maturity window of each round is still open; without a window it is for
        all of them.
        """
        if window is None:
            return True
        still = np.ones(len(rounds), bool)
        for block, _, which in self._by_block(rounds):
            still[which] = self._waits(block, now, window)
        return still

    def _find(self, round: int, refused: str | None = None) -> tuple[Block, int]:
        """The block and the row of a round.

        ProtocolError if it is unknown, or erased and there is a reason why that is `refused`.
        """
        at = bisect_right(self.blocks, round, key=_first) - 1
        if at < 0 or round >= self.blocks[at].first + len(self.blocks[at].accept):
            raise ProtocolError(
                f"round {round} is unknown: decide() has not decided it one by one.",
                hint="use the round that the decision carries.",
            )
        block, row = self.blocks[at], round - self.blocks[at].first
        if refused is not None and block.erased[row]:
            raise ProtocolError(
                f"round {round} was erased; {refused}.",
                hint="nothing more can be said about a person who was erased.",
            )
        return block, row

    def _by_block(
        self, rounds: IntArray, refused: str | None = None
    ) -> list[tuple[Block, IntArray, IntArray]]:
        """(block, its rows, their places in `rounds`) for each block concerned; ProtocolError as in
        `_find`.
        """
        order = np.argsort(rounds, kind="stable")
        ascending, start, parts = rounds[order], 0, []
        while start < len(rounds):
            block, _ = self._find(int(ascending[start]))
            stop = int(np.searchsorted(ascending, block.first + len(block.accept)))
            rows = ascending[start:stop] - block.first
            if refused is not None and (erased := block.erased[rows]).any():
                self._find(block.first + int(rows[int(np.argmax(erased))]), refused)
            parts.append((block, rows, order[start:stop]))
            start = stop
        return parts

    # handing over

    def rows(self, first: int, stop: int) -> Iterator[tuple[Block, slice]]:
        """The rounds from `first` to `stop` - 1 that were decided one by one, in the order of
        arrival: blocks, with the rows that count.
        """
        start = max(bisect_right(self.blocks, first, key=_first) - 1, 0)
        for block in islice(self.blocks, start, None):
            if block.first >= stop:
                return
            rows = slice(max(first - block.first, 0), min(stop - block.first, len(block.accept)))
            if rows.start < rows.stop:
                yield block, rows

    def harvest(self, stop: int | None = None) -> list[tuple[int, RoundLog]]:
        """(epoch, log) of the rounds that were resolved since the last harvest; of those before
        `stop`, if it is given.
        """
        logs, waiting = [], self._waiting()
        for epoch, run in groupby(waiting, key=lambda block: block.epoch):
            blocks = list(run)
            whole, fresh = merged(blocks), np.concatenate([block.fresh(stop) for block in blocks])
            known = whole.knows_group(np.ones(len(fresh), bool))
            parts = (fresh & known, fresh & ~known)
            logs += [(epoch, whole.log(part)) for part in parts if part.any()]
        for block in waiting:
            fresh = block.fresh(stop)
            block.learned = block.learned | fresh
            block.logged = block.logged | fresh | block._mute
        return logs

    def close(self, now: float | None, window: float | None) -> list[Block]:
        """Whole blocks, in the order of arrival, whose maturity window has passed; each is handed
        over once, with everybody in it.

        The first block that is still open keeps all later ones waiting.
        """
        ripe = list(takewhile(lambda block: not self._waits(block, now, window), self._waiting()))
        runs = [list(run) for _, run in groupby(ripe, key=lambda block: block.epoch)]
        # copies: what happens to the book's own blocks later is not seen in them
        closed = [deepcopy(run[0]) if len(run) == 1 else merged(run) for run in runs]
        for block in ripe:
            block.learned = block.learned | (block.resolved & ~block.logged)
            block.logged = np.ones(len(block.accept), bool)
        return closed

    def between(self, first: int, stop: int) -> Block:
        """Rounds first .. stop - 1, which are whole blocks, as they are known now."""
        return merged([block for block in self.blocks if first <= block.first < stop])

    def ripe(self, now: float | None, window: float | None) -> bool:
        """Whether it is worth while to look for something to hand over: labels were told, or the
        oldest window has passed.
        """
        if window is None:
            return self.told
        self._skip_finished()
        left = self.blocks[self._finished : self._finished + 1]
        return any(not self._waits(block, now, window) for block in left)

    def _waiting(self) -> list[Block]:
        """Blocks of which something has not been handed over, and whose decisions have left: nobody
        can have seen the labels of a call of decide() that is still in hand."""
        self.told = False
        self.bind_up()
        self._skip_finished()
        return [
            block
            for block in self.blocks[self._finished :]
            if (self.in_hand is None or block.first < self.in_hand) and not block.logged.all()
        ]

    def _skip_finished(self) -> None:
        while self._finished < len(self.blocks) and self.blocks[self._finished].logged.all():
            self._finished += 1

    @staticmethod
    def _waits(block: Block, now: float | None, window: float | None) -> bool:
        return window is not None and (
            block.at is None or now is None or not block.at + window <= now
        )

    def forget_learned(self) -> None:
        """The history of the loss was thrown away: nothing of it needs to be forgotten any more."""
        for block in self.blocks:
            block.learned = np.zeros(len(block.accept), bool)

    @property
    def missing_labels(self) -> int:
        """Accepted rounds whose label has not come and may still be told."""
        return int(sum((~block.resolved & ~block._mute).sum() for block in self.blocks))
