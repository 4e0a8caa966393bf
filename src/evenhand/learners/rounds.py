"""The book of rounds that were played one by one: what was decided, with which probability, and which labels have come.

Labels exist for accepted rounds alone; a label can be told once (telling it again, the same, changes nothing).
"""

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from evenhand.errors import BadLabel, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, Prices


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


def _rows_of(prices: Prices, rows: BoolArray) -> Prices:
    return Prices(
        np.broadcast_to(prices.false_accept, rows.shape)[rows], np.broadcast_to(prices.false_reject, rows.shape)[rows]
    )


@dataclass(eq=False)
class RoundBook:
    """Blocks in the order of their rounds; rounds played in aggregate (by counts) have no page here."""

    blocks: list[Block] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Append the next block."""
        self.blocks.append(block)

    def observe(self, rounds: IntArray, labels: IntArray) -> None:
        """Enter labels; nothing is entered if any of them is refused."""
        places = [self._place(int(r), int(y)) for r, y in zip(rounds, labels, strict=True)]
        for (block, row), label in zip(places, labels, strict=True):
            block.label[row] = label

    def _place(self, round: int, label: int) -> tuple[Block, int]:
        at = bisect_right(self.blocks, round, key=lambda block: block.first) - 1
        if at < 0 or round >= self.blocks[at].first + len(self.blocks[at].accept):
            raise ProtocolError(
                f"round {round} is unknown: decide() has not decided it one by one.",
                hint="use the round that the decision carries.",
            )
        block, row = self.blocks[at], round - self.blocks[at].first
        if label not in (-1, 1):
            raise BadLabel(f"the label of round {round} is {label}; labels are -1 (bad outcome) and +1 (good outcome).")
        if not block.accept[row]:
            raise ProtocolError(
                f"round {round} was rejected; its label cannot have been seen.", hint="check the round's number."
            )
        if block.label[row] not in (0, label):
            raise ProtocolError(
                f"round {round} was observed before with label {block.label[row]:+d} and now has {label:+d}; the first one stands.",
                hint="settle disputed outcomes before they are observed.",
            )
        return block, row

    def harvest(self) -> list[tuple[int, RoundLog]]:
        """(epoch, log) of the rounds that were resolved since the last harvest."""
        found = []
        for block in self.blocks:
            fresh = block.resolved & ~block.logged
            if fresh.any():
                found.append((block.epoch, block.log(fresh)))
                block.logged |= fresh
                self._forget_features(block)
        return found

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
