"""What has been seen (the history H_t of the paper): rounds as rows with counts, labels for
accepted rounds alone.

Equal rows are found by a hash of each row's bits and an exact check, so that different rows never
merge. Large tables are numbered by compiled code in one pass; small ones are hashed column by
column and sorted. Both find the same contexts.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.computing import compiled
from evenhand.errors import InvalidInput
from evenhand.people import as_decisions, as_known_groups, as_labels
from evenhand.shown import Brief
from evenhand.words import (
    BoolArray,
    FloatArray,
    Group,
    GroupArray,
    IntArray,
    Prices,
    as_features,
    as_numbers,
)

FEW_GROUPS = 16
"""So many groups are distinguished one after the other, which is faster than a sort."""


@dataclass(frozen=True, eq=False)
class Contexts:
    """Distinct rows in the order in which they first appear: row i equals row first[index[i]]."""

    first: IntArray
    index: IntArray

    def __len__(self) -> int:
        return len(self.first)

    def total(self, value: FloatArray) -> FloatArray:
        """The sum of `value` over the rows of each context."""
        total = np.bincount(self.index, weights=value, minlength=len(self))
        return np.asarray(total, dtype=np.float64)


def _number_rows(
    one: FloatArray, two: FloatArray, beside: FloatArray, first: IntArray, index: IntArray
) -> int:
    parts = [np.concatenate([one, two]) if len(two) else one, beside]
    found = _grouped_by(_row_hash(parts), first, index)
    if not all(np.array_equal(part[first[index]], part) for part in parts):
        table = np.column_stack(parts) + 0.0
        equal = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)
        found = _grouped_by(equal, first, index)
    return found


def _row_hash(parts: list[FloatArray]) -> NDArray[np.uint64]:
    """h <- (h xor bits) * odd, mixed, column by column, modulo 2^64; -0.0 counts as 0.0, which it
    equals.
    """
    key = np.full(len(parts[0]), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for part in parts:
        for column in part.T:
            key = (key ^ (column + 0.0).view(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
            key ^= key >> np.uint64(29)
    return key


def _grouped_by(key: NDArray[np.generic], first: IntArray, index: IntArray) -> int:
    """Numbers the values of a one-dimensional key."""
    _, where, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(where)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first[: len(order)] = where[order]
    index[:] = rank[inverse.reshape(-1)]
    return len(order)


@compiled(_number_rows, pays=5_000_000)
def number_rows(
    one: FloatArray, two: FloatArray, beside: FloatArray, first: IntArray, index: IntArray
) -> int:
    """Rows of `one`, then those of `two`, each followed by its columns in `beside`. index[i]: the
    number of row i among the distinct rows; first[number]: where it appears first. How many there
    are.

    The hash of a row is the sum over its columns of the value's bits, mixed with the column's
    number, modulo 2^64; zeros of either sign add nothing. Equal hashes are checked value by value.
    """

    def hashed(row: FloatArray, column: np.uint64) -> np.uint64:
        key = np.uint64(0)
        bits = row.view(np.uint64)
        for j in range(len(row)):
            if row[j] != 0.0:
                place = (column + np.uint64(j)) << np.uint64(1)
                mixed = (bits[j] ^ place) * np.uint64(0xBF58476D1CE4E5B9)
                mixed = (mixed ^ (mixed >> np.uint64(29))) * (np.uint64(0x94D049BB133111EB) + place)
                key += mixed ^ (mixed >> np.uint64(32))
        return key

    def same(row: FloatArray, other: FloatArray) -> bool:
        equal = True
        for j in range(len(row)):
            equal = equal and row[j] == other[j]
        return equal

    size = 2
    while size < 2 * len(beside):
        size *= 2
    slots = np.full(size, -1)
    hashes = np.empty(len(beside), np.uint64)
    start = len(one)
    columns = np.uint64(one.shape[1])
    found = 0
    mask = np.uint64(size - 1)
    for i in range(len(beside)):
        new = one[i] if i < start else two[i - start]
        key = hashed(new, np.uint64(0)) + hashed(beside[i], columns)
        slot = key & mask
        while slots[slot] >= 0:
            other = first[slots[slot]]
            known = one[other] if other < start else two[other - start]
            if hashes[slots[slot]] == key and same(beside[other], beside[i]) and same(known, new):
                break
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot] = found
            first[found] = i
            hashes[found] = key
            found += 1
        index[i] = slots[slot]
    return found


def find_contexts(
    features: FloatArray,
    group: GroupArray | None,
    *more: FloatArray,
    before: FloatArray | None = None,
) -> Contexts:
    """Rows are equal if features, group and every further column are.

    `before`: features of rows that come first, without a copy.
    """
    one, two = (features, features[:0]) if before is None else (before, features)
    beside = [*more, *([] if group is None else [numbered(group)[1].astype(np.float64)])]
    columns = np.column_stack(beside) if beside else np.zeros((len(one) + len(two), 0))
    first = np.empty(len(columns), np.int64)
    index = np.empty(len(columns), np.int64)
    found = number_rows(np.ascontiguousarray(one), np.ascontiguousarray(two), columns, first, index)
    return Contexts(first[:found].copy(), index)


def is_known(group: GroupArray) -> BoolArray:
    """Which rows have a group: None is the unknown one."""
    return np.array([value is not None for value in group.tolist()], dtype=bool)


def numbered(group: GroupArray) -> tuple[list[Group], IntArray]:
    """The distinct groups, which may be of any hashable kind, in the order in which they first
    appear, and which of them each row has.
    """
    if group.dtype.kind not in "biufUS":
        # a value that is new gets the number of those before it; no step runs in Python
        seen: defaultdict[Group, int] = defaultdict()
        seen.default_factory = seen.__len__
        codes = np.fromiter(map(seen.__getitem__, group.tolist()), np.int64, len(group))
        return list(seen), codes
    values: list[Group] = []
    code = np.full(len(group), -1)
    while len(values) < FEW_GROUPS and (code < 0).any():
        value = group[int(np.argmax(code < 0))]
        code[group == value] = len(values)
        values.append(value.item())
    if (code < 0).any():
        _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return group[first[order]].tolist(), np.argsort(order)[inverse.reshape(-1)]
    return values, code


def joined(parts: Sequence[GroupArray | None]) -> GroupArray | None:
    """Arrays end to end; None if one of them is missing. Numbers among texts stay numbers."""
    present = [part for part in parts if part is not None]
    if not present or len(present) < len(parts):
        return None
    kinds = {part.dtype.kind for part in present}
    mixed = len({kind in "biuf" for kind in kinds}) > 1
    return np.concatenate([part.astype(object) for part in present] if mixed else present)


def prices_of(prices: Prices, people: int, rows: IntArray | BoolArray | slice) -> Prices:
    """The prices of some of so many people."""
    columns = (prices.false_accept, prices.false_reject)
    return Prices(*(np.broadcast_to(column, (people,))[rows] for column in columns))


def joined_people(
    groups: Sequence[GroupArray | None], prices: Sequence[Prices | None], sizes: Sequence[int]
) -> tuple[GroupArray | None, Prices | None]:
    """Groups and prices of so many people each, end to end; None as soon as some are missing."""
    every_row = slice(None)
    known = [
        prices_of(one, size, every_row)
        for one, size in zip(prices, sizes, strict=True)
        if one is not None
    ]
    if not known or len(known) < len(prices):
        return joined(groups), None
    return joined(groups), Prices(
        np.concatenate([one.false_accept for one in known]),
        np.concatenate([one.false_reject for one in known]),
    )


_COUNTS = ("rejected", "positive", "negative")


@dataclass(frozen=True, eq=False, repr=False)
class RoundLog(Brief):
    """Rows of rounds that had the same features, group, prices and probability of being accepted.

    Parameters
    ----------
    features : array of float
        One row for each kind of round.
    group : array or None
        The group of each row, None in rows of which it is unknown; None if it is not shown at all.
    acceptance : array of float
        The probability of being accepted under which the rounds were played.
    rejected : array of float
        Rounds rejected. There is no place for their labels.
    positive, negative : array of float
        Rounds accepted that turned out y = +1, y = -1.
    prices : Prices or None
        One entry per row, where people have prices of their own.

    Raises
    ------
    InvalidInput
        If a row cannot have happened: a count below 0, a probability outside [0, 1], somebody
        accepted with probability 0 or rejected with probability 1.

    Examples
    --------
    >>> log = RoundLog.from_rounds([[1.0], [1.0], [2.0]], [True, False, True], [1, -1], 0.5)
    >>> log.aggregated().count.tolist()
    [2.0, 1.0]
    """

    features: FloatArray
    group: GroupArray | None
    acceptance: FloatArray
    rejected: FloatArray
    positive: FloatArray
    negative: FloatArray
    prices: Prices | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", as_features(self.features))
        rows = len(self.features)
        if self.group is not None:
            object.__setattr__(self, "group", as_known_groups(self.group, rows))
        for name in ("acceptance", *_COUNTS):
            object.__setattr__(self, name, as_numbers(getattr(self, name), rows, name))
        if self.prices is not None:
            columns = (
                as_numbers(getattr(self.prices, name), rows, f"the price {name}")
                for name in ("false_accept", "false_reject")
            )
            object.__setattr__(self, "prices", Prices(*columns))
        p = self.acceptance
        happened = "that cannot have happened"
        below = [(getattr(self, name) < 0, getattr(self, name), f"{name} is") for name in _COUNTS]
        never = (p == 0) & (self.accepted > 0)
        always = (p == 1) & (self.rejected > 0)
        for bad, value, what, requirement in (
            *((*count, "a count cannot be below 0") for count in below),
            ((p < 0) | (p > 1), p, "acceptance is", "a probability lies between 0 and 1"),
            (never, self.accepted, "acceptance is 0 but accepted is", happened),
            (always, self.rejected, "acceptance is 1 but rejected is", happened),
        ):
            if bad.any():
                row = int(np.argmax(bad))
                raise InvalidInput(f"{what} {value[row]:g} in row {row} of the log; {requirement}.")

    @classmethod
    def from_rounds(
        cls,
        features: ArrayLike,
        accept: ArrayLike,
        accepted_labels: ArrayLike,
        acceptance: ArrayLike,
        *,
        group: ArrayLike | None = None,
        prices: Prices | None = None,
    ) -> "RoundLog":
        """A log with one row per round.

        Parameters
        ----------
        features, accept, acceptance : array
            The people, the decisions, and the probabilities of accepting.
        accepted_labels : array
            One label per *accepted* round, in the order of the rounds: +1 and -1, 1 and 0, or True
            and False.
        group : array, optional
            The groups, None where unknown.
        prices : Prices, optional
            The prices of each person.

        Returns
        -------
        RoundLog
            The rounds in their order.

        Raises
        ------
        LengthMismatch
            If the columns do not fit together: a rejected round has no label.
        """
        rows = as_features(features)
        taken = as_decisions(accept, len(rows), "accept")
        label = np.zeros(len(rows))
        label[taken] = as_labels(accepted_labels, int(taken.sum()), "accepted_labels")
        return cls(
            rows,
            None if group is None else as_known_groups(group, len(rows)),
            as_numbers(acceptance, len(rows), "acceptance"),
            rejected=(~taken).astype(np.float64),
            positive=(label == 1).astype(np.float64),
            negative=(label == -1).astype(np.float64),
            prices=prices,
        )

    @classmethod
    def of_checked(
        cls,
        features: FloatArray,
        group: GroupArray | None,
        prices: Prices | None,
        **columns: FloatArray,
    ) -> Self:
        """A log of columns that have been checked before.

        Parameters
        ----------
        features, group, prices, columns
            The fields of the log. To check them takes longer than to put them together.

        Returns
        -------
        RoundLog
            The log.
        """
        log = object.__new__(cls)
        vars(log).update(features=features, group=group, prices=prices, **columns)
        return log

    @classmethod
    def concatenate(cls, logs: Sequence["RoundLog"]) -> "RoundLog":
        """Logs end to end.

        Parameters
        ----------
        logs : sequence of RoundLog
            At least one. Either all carry a group (prices) or none does.

        Returns
        -------
        RoundLog
            All rows, in their order.
        """
        columns = vars(_end_to_end(logs))
        features = np.concatenate([log.features for log in logs])
        return cls.of_checked(**{**columns, "features": features})

    @classmethod
    def merged(cls, logs: Sequence["RoundLog"]) -> "RoundLog":
        """concatenate(logs).aggregated(), with fewer copies of the features.

        Parameters
        ----------
        logs : sequence of RoundLog
            At least one; as a rule only the first is long.

        Returns
        -------
        RoundLog
            Equal rows as one row, in the order of first appearance.
        """
        whole = _end_to_end(logs)
        before = logs[0].features
        after = [log.features for log in logs[1:]]
        rest = after[0] if len(after) == 1 else np.concatenate(after) if after else before[:0]
        prices = whole.prices
        priced = () if prices is None else (prices.false_accept, prices.false_reject)
        contexts = find_contexts(rest, whole.group, whole.acceptance, *priced, before=before)
        old, new = np.split(contexts.first, [int(np.searchsorted(contexts.first, len(before)))])
        kept = before if len(old) == len(before) else before[old]
        features = np.concatenate([kept, rest[new - len(before)]]) if len(new) else kept
        counts = {name: contexts.total(getattr(whole, name)) for name in _COUNTS}
        return cls.of_checked(**{**vars(whole._chosen(contexts.first, features)), **counts})

    def __len__(self) -> int:
        return len(self.features)

    @property
    def accepted(self) -> FloatArray:
        """Rounds accepted in each row."""
        return self.positive + self.negative

    @property
    def count(self) -> FloatArray:
        """Rounds in each row."""
        return self.rejected + self.accepted

    @property
    def rounds(self) -> float:
        """Rounds in all rows."""
        return float(self.count.sum())

    def where(self, keep: BoolArray) -> "RoundLog":
        """Some of the rows.

        Parameters
        ----------
        keep : array of bool
            Which rows: `log.where(log.acceptance < 1)` leaves out an accept-all phase.

        Returns
        -------
        RoundLog
            These rows.
        """
        if keep.all():
            return self
        rows = np.flatnonzero(keep)
        return self._chosen(rows, self.features[rows])

    def _chosen(self, rows: IntArray, features: FloatArray) -> "RoundLog":
        """Some rows of every column, and their features."""
        group = None if self.group is None else self.group[rows]
        prices = self.prices and prices_of(self.prices, len(self.acceptance), rows)
        counts = {name: getattr(self, name)[rows] for name in ("acceptance", *_COUNTS)}
        return self.of_checked(features, group, prices, **counts)

    def without_group(self) -> "RoundLog":
        """The same rounds, the group not shown.

        Returns
        -------
        RoundLog
            This log, if it shows none.
        """
        if self.group is None:
            return self
        return self.of_checked(**{**vars(self), "group": None})

    def aggregated(self) -> "RoundLog":
        """Rows of equal features, group, acceptance probability and prices as one row.

        Returns
        -------
        RoundLog
            The rows in the order of first appearance; this log, if all rows differ.
        """
        merged = self.merged([self])
        return self if len(merged) == len(self) else merged


def _end_to_end(logs: Sequence[RoundLog]) -> RoundLog:
    """Every column but the features, which stay those of the first log."""
    if not logs:
        raise InvalidInput("there is no log to concatenate; at least one is needed.")
    for name in ("group", "prices"):
        if len({getattr(log, name) is None for log in logs}) > 1:
            raise InvalidInput(
                f"some of the logs carry {name} and others do not; they cannot be concatenated."
            )
    if len({log.features.shape[1] for log in logs}) > 1:
        raise InvalidInput(
            "the logs have different numbers of feature columns; they cannot be concatenated."
        )
    group, prices = joined_people(
        [log.group for log in logs], [log.prices for log in logs], [len(log) for log in logs]
    )
    columns = {
        name: np.concatenate([getattr(log, name) for log in logs])
        for name in ("acceptance", *_COUNTS)
    }
    return RoundLog.of_checked(logs[0].features, group, prices, **columns)
