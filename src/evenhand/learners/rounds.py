"""The book of rounds that were played one by one: what was decided, with which probability, and which labels have come.

Labels exist for accepted rounds alone; a label can be told once (telling it again, the same, changes nothing).
"""

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import groupby

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
    audit: BoolArray | None = None
    at: float | None = None

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
        else np.concatenate([_known(g, n) for g, n in zip(groups, sizes, strict=True)]),
        prices=_end_to_end(prices, sizes) if len(prices) == len(blocks) else None,
        audit=None if any(a is None for a in audits) else np.concatenate([a for a in audits if a is not None]),
        at=blocks[-1].at,
        **columns,
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

    def tell_group(self, rounds: IntArray, groups: GroupArray) -> None:
        """Enter groups that were unknown when the decision was made; a group that is known stands."""
        for round, group in zip(rounds, groups, strict=True):
            at = bisect_right(self.blocks, int(round), key=lambda block: block.first) - 1
            block, row = self.blocks[at], int(round) - self.blocks[at].first
            if block.logged[row]:
                continue
            known = np.full(len(block.accept), None) if block.group is None else block.group.astype(object)
            known[row] = group if known[row] is None else known[row]
            block.group = known

    def harvest(self) -> list[tuple[int, RoundLog]]:
        """(epoch, log) of the rounds that were resolved since the last harvest."""
        found = []
        for epoch, blocks in groupby((b for b in self.blocks if not b.logged.all()), key=lambda block: block.epoch):
            together = list(blocks)
            whole = merged(together)
            fresh = whole.resolved & ~whole.logged
            if fresh.any():
                found.append((epoch, whole.log(fresh)))
            for block in together:
                block.logged |= block.resolved
                self._forget_features(block)
        return found

    def close(self, now: float | None, window: float | None) -> list[Block]:
        """Whole blocks, in the order of arrival, whose maturity window has passed; each is handed over once.

        The first block that is still open keeps all later ones waiting.
        """
        found = []
        for block in self.blocks:
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
