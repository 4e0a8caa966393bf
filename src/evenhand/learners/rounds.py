"""The book of rounds that were played one by one: what was decided, with which probability, and which labels have come.

Labels exist for accepted rounds alone; a label can be told once (telling it again, the same, changes nothing).
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from evenhand.errors import BadLabel, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.estimation.contexts import joined
from evenhand.learners.codec import storable
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, Prices

LOOSE = 1024
"""Blocks that may lie loose in the book before neighbours are joined."""


@storable
@dataclass(eq=False)
class Block:
    """Consecutive rounds of one epoch. label: 0 while unknown; logged: whether the round has been handed over."""

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

    def continued_by(self, later: "Block") -> bool:
        """Whether `later` may be joined to this block: the same epoch and time, and the same things known about everybody."""
        return (
            self.first + len(self.accept) == later.first
            and self.epoch == later.epoch
            and self.at == later.at
            and self.features.shape[1] == later.features.shape[1]
            and (self.group is None) == (later.group is None)
            and (self.prices is None) == (later.prices is None)
            and (self.audit is None) == (later.audit is None)
        )

    @property
    def resolved(self) -> BoolArray:
        """Rejected rounds, and accepted ones whose label has come."""
        return np.asarray(~self.accept | (self.label != 0))

    def log(self, rows: BoolArray) -> RoundLog:
        """The chosen rounds as a log."""
        accept = self.accept[rows]
        return RoundLog.from_rounds(
            self.features[rows],
            accept,
            self.label[rows][accept],
            self.acceptance[rows],
            group=None if self.group is None else self.group[rows],
            prices=None if self.prices is None else _rows_of(self.prices, rows),
        )


def merged(blocks: list[Block]) -> Block:
    """Blocks of one epoch end to end."""
    if len(blocks) == 1:
        return blocks[0]
    columns = {
        name: np.concatenate([getattr(b, name) for b in blocks])
        for name in ("features", "accept", "acceptance", "label", "logged")
    }
    groups, audits = [b.group for b in blocks], [b.audit for b in blocks]
    sizes = [len(b.accept) for b in blocks]
    prices = [b.prices for b in blocks if b.prices is not None]
    return Block(
        first=blocks[0].first,
        epoch=blocks[0].epoch,
        group=None
        if all(g is None for g in groups)
        else joined([_known(g, n) for g, n in zip(groups, sizes, strict=True)]),
        prices=_end_to_end(prices, sizes) if len(prices) == len(blocks) else None,
        audit=None if any(a is None for a in audits) else np.concatenate([a for a in audits if a is not None]),
        at=blocks[-1].at,
        **columns,
    )


def _disputed(round: int, first: int, second: int) -> ProtocolError:
    return ProtocolError(
        f"round {round} was observed before with label {first:+d} and now has {second:+d}; the first one stands.",
        hint="settle disputed outcomes before they are observed.",
    )


def _known(group: GroupArray | None, rows: int) -> GroupArray:
    return np.full(rows, None) if group is None else group


def _end_to_end(prices: list[Prices], sizes: list[int]) -> Prices:
    columns = [
        np.concatenate([np.broadcast_to(getattr(p, name), (n,)) for p, n in zip(prices, sizes, strict=True)])
        for name in ("false_accept", "false_reject")
    ]
    return Prices(*columns)


def _rows_of(prices: Prices, rows: BoolArray) -> Prices:
    return Prices(
        np.broadcast_to(prices.false_accept, rows.shape)[rows], np.broadcast_to(prices.false_reject, rows.shape)[rows]
    )


@storable
@dataclass(eq=False)
class RoundBook:
    """Blocks in the order of their rounds; rounds played in aggregate (by counts) have no page here."""

    blocks: list[Block] = field(default_factory=list)
    bound_up: int = 0
    """The first so many blocks have been joined with their neighbours."""
    in_hand: int | None = field(default=None, init=False)
    """The first round of a call of decide() that goes on beyond the end of an epoch."""

    def add(self, block: Block) -> None:
        """Append the next block."""
        if len(self.blocks) - self.bound_up >= LOOSE:
            self.bind_up()
        self.blocks.append(block)

    @property
    def told_blocks(self) -> list[Block]:
        """Blocks whose decisions have left: nobody can have seen the labels of a call of decide() that is still in hand."""
        return [block for block in self.blocks if self.in_hand is None or block.first < self.in_hand]

    def hold(self, round: int) -> None:
        """From here on the rounds belong to a call of decide() that goes on beyond the end of an epoch."""
        self.bind_up()
        self.in_hand = round

    def bind_up(self) -> None:
        """Join neighbours: people who came one by one become one block."""
        runs: list[list[Block]] = []
        for block in self.blocks[self.bound_up :]:
            if runs and runs[-1][-1].continued_by(block):
                runs[-1].append(block)
            else:
                runs.append([block])
        self.blocks[self.bound_up :] = [merged(run) for run in runs]
        self.bound_up = len(self.blocks)

    def observe(self, rounds: IntArray, labels: IntArray) -> None:
        """Enter labels; nothing is entered if any of them is refused."""
        told: dict[int, int] = {}
        places = []
        for round, label in zip(rounds.tolist(), labels.tolist(), strict=True):
            places.append((*self._place(round, label), int(label)))
            if told.setdefault(round, int(label)) != label:
                raise _disputed(round, told[round], int(label))
        for block, row, label in places:
            block.label[row] = label

    def _find(self, round: int) -> tuple[Block, int]:
        at = bisect_right(self.blocks, round, key=lambda block: block.first) - 1
        if at < 0 or round >= self.blocks[at].first + len(self.blocks[at].accept):
            raise ProtocolError(
                f"round {round} is unknown: decide() has not decided it one by one.",
                hint="use the round that the decision carries.",
            )
        return self.blocks[at], round - self.blocks[at].first

    def _place(self, round: int, label: int) -> tuple[Block, int]:
        block, row = self._find(round)
        if label not in (-1, 1):
            raise BadLabel(
                f"the label of round {round} is {label!r}; labels are -1 (bad outcome) and +1 (good outcome)."
            )
        if not block.accept[row]:
            raise ProtocolError(
                f"round {round} was rejected; its label cannot have been seen.", hint="check the round's number."
            )
        if block.label[row] not in (0, label):
            raise _disputed(round, int(block.label[row]), int(label))
        return block, row

    def check_group(self, rounds: IntArray, groups: GroupArray) -> None:
        """Refuse a group that contradicts the one that was told before."""
        for round, group in zip(rounds, groups, strict=True):
            block, row = self._find(int(round))
            known = None if block.group is None else block.group[row]
            if known is not None and known != group:
                raise ProtocolError(
                    f"round {round} was told with another group before; a person's group does not change."
                )

    def tell_group(self, rounds: IntArray, groups: GroupArray) -> None:
        """Enter groups that were unknown when the decision was made; rounds whose cohort is closed stay as they are."""
        self.check_group(rounds, groups)
        for round, group in zip(rounds, groups, strict=True):
            block, row = self._find(int(round))
            if not block.logged[row]:
                known = np.full(len(block.accept), None) if block.group is None else block.group.astype(object)
                known[row] = group
                block.group = known

    def rows(self, first: int, stop: int) -> Iterator[tuple[Block, slice]]:
        """The rounds from `first` to `stop` - 1 that were decided one by one, in the order of arrival: blocks, with the rows that count."""
        start = max(bisect_right(self.blocks, first, key=lambda block: block.first) - 1, 0)
        for place in range(start, len(self.blocks)):
            block = self.blocks[place]
            if block.first >= stop:
                return
            rows = slice(max(first - block.first, 0), min(stop - block.first, len(block.accept)))
            if rows.start < rows.stop:
                yield block, rows

    def harvest(self, stop: int | None = None) -> list[tuple[int, RoundLog]]:
        """(epoch, log) of the rounds (those before `stop`, if it is given) that were resolved since the last harvest."""
        self.bind_up()
        found = []
        waiting = (block for block in self.told_blocks if not block.logged.all())
        for (epoch, _), blocks in groupby(waiting, key=lambda block: (block.epoch, block.group is None)):
            together = list(blocks)
            whole = merged(together)
            ripe = [
                b.resolved & (True if stop is None else b.first + np.arange(len(b.accept)) < stop) for b in together
            ]
            fresh = np.concatenate(ripe) & ~whole.logged
            if fresh.any():
                found.append((epoch, whole.log(fresh)))
            for block, rows in zip(together, ripe, strict=True):
                block.logged |= rows
                self._forget_features(block)
        return found

    def close(self, now: float | None, window: float | None) -> list[Block]:
        """Whole blocks, in the order of arrival, whose maturity window has passed; each is handed over once.

        The first block that is still open keeps all later ones waiting.
        """
        self.bind_up()
        found = []
        for block in self.told_blocks:
            if block.logged.all():
                continue
            open_still = window is not None and (block.at is None or now is None or block.at + window > now)
            if open_still:
                break
            found.append(replace(block, logged=block.logged.copy()))
            block.logged[:] = True
            self._forget_features(block)
        return [merged(list(blocks)) for _, blocks in groupby(found, key=lambda block: block.epoch)]

    @staticmethod
    def _forget_features(block: Block) -> None:
        """A block that is wholly logged keeps only what later calls of observe must be checked against."""
        if block.logged.all():
            block.features = np.zeros((0, 0))
            block.group, block.prices = None, None

    @property
    def missing_labels(self) -> int:
        """Accepted rounds whose label has not come."""
        return int(sum((~block.resolved).sum() for block in self.blocks))
