"""What has been seen (the history H_t of the paper): rounds as rows with counts, labels for
accepted rounds alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.estimation.contexts import find_contexts, joined
from evenhand.words import (
    BoolArray,
    FloatArray,
    GroupArray,
    IntArray,
    Prices,
    as_features,
    as_known_groups,
    as_labels,
    as_numbers,
)

_COUNTS = ("rejected", "positive", "negative")


@dataclass(frozen=True, eq=False)
class RoundLog:
    """Rows of rounds that had the same features, group, prices and probability of being accepted.

    acceptance: that probability, under which the rounds were played; rejected: rounds rejected
    (there is no place for their labels); positive, negative: rounds accepted that turned out y =
    +1, y = -1. `prices` hold one entry per row. group: None in rows of which it is unknown.
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
            object.__setattr__(self, "prices", _per_row(self.prices, rows))
        self._refuse_impossible_rows()

    def _refuse_impossible_rows(self) -> None:
        for name in _COUNTS:
            _refuse(
                getattr(self, name) < 0,
                getattr(self, name),
                f"{name} is",
                "a count cannot be below 0",
            )
        probability = (self.acceptance < 0) | (self.acceptance > 1)
        _refuse(probability, self.acceptance, "acceptance is", "a probability lies between 0 and 1")
        accepted_never = (self.acceptance == 0) & (self.accepted > 0)
        _refuse(
            accepted_never,
            self.accepted,
            "acceptance is 0 but accepted is",
            "that cannot have happened",
        )
        rejected_always = (self.acceptance == 1) & (self.rejected > 0)
        _refuse(
            rejected_always,
            self.rejected,
            "acceptance is 1 but rejected is",
            "that cannot have happened",
        )

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
        """One row per round; `accepted_labels` has one label per accepted round, in the order of
        the rounds.
        """
        rows = as_features(features)
        taken = np.asarray(accept, dtype=bool)
        if taken.shape != (len(rows),):
            raise LengthMismatch(
                f"accept has shape {taken.shape} but there are {len(rows)} rounds."
            )
        label = np.zeros(len(rows))
        label[taken] = as_labels(accepted_labels, int(taken.sum()))
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
    def _of_checked(
        cls,
        features: FloatArray,
        group: GroupArray | None,
        prices: Prices | None,
        **columns: FloatArray,
    ) -> Self:
        """A log whose columns were parts of other logs: they have been checked, which takes longer
        than to put them together.
        """
        log = object.__new__(cls)
        for name, value in {
            "features": features,
            "group": group,
            "prices": prices,
            **columns,
        }.items():
            object.__setattr__(log, name, value)
        return log

    @classmethod
    def concatenate(cls, logs: Sequence["RoundLog"]) -> "RoundLog":
        """Logs end to end. Either all carry a group (prices) or none does."""
        columns = cls._end_to_end(logs)
        return cls._of_checked(np.concatenate([log.features for log in logs]), **columns)

    @classmethod
    def merged(cls, logs: Sequence["RoundLog"]) -> "RoundLog":
        """concatenate(logs).aggregated(), with fewer copies of the features: only those of the
        first log are long, as a rule.
        """
        columns = cls._end_to_end(logs)
        before, after = logs[0].features, [log.features for log in logs[1:]]
        rest = after[0] if len(after) == 1 else np.concatenate(after) if after else before[:0]
        contexts = find_contexts(
            rest,
            columns["group"],
            columns["acceptance"],
            *_columns(columns["prices"]),
            before=before,
        )
        old, new = np.split(contexts.first, [int(np.searchsorted(contexts.first, len(before)))])
        kept = before if len(old) == len(before) else before[old]
        found = np.concatenate([kept, rest[new - len(before)]]) if len(new) else kept
        totals = {name: contexts.total(columns[name]) for name in _COUNTS}
        return cls._of_checked(found, **(_chosen(columns, contexts.first) | totals))

    @staticmethod
    def _end_to_end(logs: Sequence["RoundLog"]) -> dict[str, Any]:
        """Every column but the features."""
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
        columns: dict[str, Any] = {
            n: np.concatenate([getattr(log, n) for log in logs]) for n in ("acceptance", *_COUNTS)
        }
        return columns | {
            "group": joined([log.group for log in logs]),
            "prices": _joined_prices(logs),
        }

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
        """The rows for which `keep` is true: `log.where(log.acceptance < 1)` leaves out an
        accept-all phase.
        """
        if keep.all():
            return self
        rows = np.flatnonzero(keep)
        return self._of_checked(self.features[rows], **_chosen(self._beside, rows))

    def aggregated(self) -> "RoundLog":
        """Rows of equal features, group, acceptance probability and prices as one row, in order of
        first appearance.
        """
        merged = self.merged([self])
        return self if len(merged) == len(self) else merged

    @property
    def _beside(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("group", "prices", "acceptance", *_COUNTS)}


def _chosen(columns: dict[str, Any], rows: IntArray) -> dict[str, Any]:
    """Some rows of every column."""
    prices = (
        None
        if columns["prices"] is None
        else Prices(*(column[rows] for column in _columns(columns["prices"])))
    )
    arrays = {
        name: column if column is None else column[rows]
        for name, column in columns.items()
        if name != "prices"
    }
    return arrays | {"prices": prices}


def _refuse(bad: BoolArray, value: FloatArray, what: str, law: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(f"{what} {value[row]:g} in row {row} of the log; {law}.")


def _per_row(prices: Prices, rows: int) -> Prices:
    return Prices(
        as_numbers(prices.false_accept, rows, "the price false_accept"),
        as_numbers(prices.false_reject, rows, "the price false_reject"),
    )


def _columns(prices: Prices | None) -> tuple[FloatArray, ...]:
    return (
        () if prices is None else (np.asarray(prices.false_accept), np.asarray(prices.false_reject))
    )


def _joined_prices(logs: Sequence[RoundLog]) -> Prices | None:
    columns = [_columns(log.prices) for log in logs]
    return (
        Prices(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))
        if columns[0]
        else None
    )
