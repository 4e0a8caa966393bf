"""A log of decisions as it comes from a file: who was accepted with which probability, and the
outcomes of the accepted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import BadLabel, InvalidInput, LengthMismatch, NotFinite
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, as_features, as_numbers

NO_PROPENSITIES = (
    "{source} holds no propensities: nobody can tell with which probability these people were accepted, so nothing can be certified from "
    "it. Whoever decided may have seen what the log does not hold; then the accepted differ from the rejected in ways that bear on the "
    "outcome, and no weighting can repair that."
)
WAY_OUT = (
    "record with every decision the probability with which it was drawn (column 'acceptance'); for decisions by people or by a fixed rule, "
    "accept a small share at random with a coin that ignores the person, and log it; `evenhand plan` tells how many such audits it takes."
)


def no_propensities(source: str) -> InvalidInput:
    """The refusal of historic decisions: why, and what to do."""
    return InvalidInput(NO_PROPENSITIES.format(source=source), hint=WAY_OUT)


@dataclass(frozen=True, eq=False)
class DecisionLog:
    """Decisions in the order in which they were drawn, one row each (or `count` equal ones).

    acceptance p (n,): the probability of being accepted, given the person and the past, as it was
    drawn; accept (n,): what was drawn; label (n,): +1 or -1 where the outcome is known, 0 where it
    is open, and always 0 for the rejected: there is no place for their labels. group (n,): texts,
    None where it is not known. id (n,): texts, all different; None for row numbers from 1 on.
    """

    features: FloatArray
    accept: BoolArray
    acceptance: FloatArray
    label: IntArray
    group: GroupArray
    names: tuple[str, ...]
    count: FloatArray
    id: GroupArray | None = None
    source: str = "the log"
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        features: ArrayLike,
        accept: ArrayLike,
        acceptance: ArrayLike,
        label: ArrayLike,
        *,
        group: Sequence[Any] | GroupArray | None = None,
        names: Sequence[str] | None = None,
        count: ArrayLike = 1.0,
        id: Sequence[Any] | GroupArray | None = None,
        source: str = "the log",
    ) -> "DecisionLog":
        """Check and convert.

        Labels: NaN or 0 where none is known; those of the rejected are dropped, with a note.
        """
        table = as_features(features)
        rows = len(table)
        taken, told = (
            np.asarray(accept, dtype=bool),
            np.nan_to_num(np.asarray(label, dtype=np.float64)),
        )
        for name, column in (("accept", taken), ("label", told)):
            _require_length(column, rows, name)
        unused = int(((told != 0) & ~taken).sum())
        return cls(
            table,
            taken,
            np.asarray(acceptance, dtype=np.float64),
            np.where(taken, told, 0.0).astype(np.int64)
            if np.isin(told, (-1, 0, 1)).all()
            else told,  # type: ignore[arg-type]  # refused below
            _texts(group, rows),
            tuple(names) if names is not None else tuple(f"x{j}" for j in range(table.shape[1])),
            as_numbers(count, rows, "count"),
            None if id is None else _texts(id, rows),
            source,
            (_rejected_labels(unused),) if unused else (),
        )

    def __post_init__(self) -> None:
        rows = len(self.features)
        if rows == 0:
            raise InvalidInput(f"{self.source} has no rows; at least one decision is needed.")
        if len(self.names) != self.features.shape[1] or len(set(self.names)) < len(self.names):
            raise InvalidInput(
                f"{self.source} has {self.features.shape[1]} feature columns named {', '.join(self.names)}; each needs a name of its own."
            )
        for name in (
            "accept",
            "acceptance",
            "label",
            "group",
            "count",
            *(() if self.id is None else ("id",)),
        ):
            _require_length(getattr(self, name), rows, name)
        self._refuse_impossible()
        self._refuse_duplicates()

    def _refuse_impossible(self) -> None:
        p = self.acceptance
        self._refuse(
            np.isnan(p),
            "has no acceptance probability",
            "every decision needs the one it was drawn with",
        )
        self._refuse(
            ~((p >= 0) & (p <= 1)),
            "has the acceptance probability {:g}",
            "a probability lies between 0 and 1",
            "a weight 1/p is no propensity: log p itself.",
        )
        self._refuse(
            (p == 0) & self.accept,
            "was accepted with probability {:g}",
            "that cannot have happened",
        )
        self._refuse(
            (p == 1) & ~self.accept,
            "was rejected though accepted with probability {:g}",
            "that cannot be",
        )
        bad = ~np.isin(self.label, (-1, 0, 1)) | ((self.label != 0) & ~self.accept)
        if bad.any():
            row = int(np.argmax(bad))
            raise BadLabel(
                f"{self.source}: the label of {self._row(row)} is {self.label[row]:g}; labels are -1 and +1, 0 where none is known, and "
                "the rejected have none."
            )
        if not ((self.count > 0) & np.isfinite(self.count)).all():
            row = int(np.argmin((self.count > 0) & np.isfinite(self.count)))
            raise NotFinite(
                f"{self.source}: {self._row(row)} stands for {self.count[row]:g} decisions; it needs more than 0."
            )

    def _refuse(self, bad: BoolArray, what: str, law: str, hint: str | None = None) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            told = what.format(self.acceptance[row])
            raise InvalidInput(
                f"{self.source}: {self._row(row)} {told} ({int(bad.sum()):,} such rows); {law}.",
                hint=hint or WAY_OUT,
            )

    def _refuse_duplicates(self) -> None:
        if self.id is None or len(set(self.id.tolist())) == len(self.id):
            return
        seen: dict[str, int] = {}
        for row, name in enumerate(self.id.tolist()):
            if name in seen:
                raise InvalidInput(
                    f"{self.source}: id {name!r} occurs in row {seen[name] + 1} and in row {row + 1}; a decision counts once.",
                    hint="leave the copies out; a person who applied twice has two decisions with two ids.",
                )
            seen[name] = row

    def _row(self, row: int) -> str:
        return f"row {row + 1}" + ("" if self.id is None else f" (id {self.id[row]})")

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def people(self) -> float:
        """Decisions in all."""
        return float(self.count.sum())

    @property
    def open(self) -> BoolArray:
        """Accepted people whose outcome is not known."""
        return np.asarray(self.accept & (self.label == 0))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups that occur, in alphabetical order."""
        return tuple(sorted({value for value in self.group.tolist() if value is not None}))

    @property
    def propensity(self) -> FloatArray:
        """The probability of the decision that was taken, as other tools want it."""
        return np.where(self.accept, self.acceptance, 1.0 - self.acceptance)

    @property
    def ids(self) -> list[str]:
        """The ids, or row numbers."""
        return [str(row + 1) for row in range(len(self))] if self.id is None else self.id.tolist()

    def require_support(self) -> None:
        """InvalidInput where somebody had no chance of being accepted: nothing is known about such
        people, and nothing can be.
        """
        self._refuse(
            self.acceptance == 0,
            "had the acceptance probability {:g}",
            "an outcome that could not be seen cannot be weighted, and people like this one stay unknown",
            "explore: accept everybody with a small probability, as evenhand's learners do; `evenhand plan` tells what it costs.",
        )

    def require_single(self, format: str) -> None:
        """InvalidInput where a row stands for several decisions, which other tools' formats cannot
        say.
        """
        if not (self.count == 1).all():
            raise InvalidInput(
                f"{self.source} has rows that stand for several decisions; {format} has no counts.",
                hint="write Parquet, CSV or JSON lines, or repeat the rows.",
            )

    def without_first(self, rows: int) -> "DecisionLog":
        """The log from row `rows` + 1 on: those before were used to choose the candidate."""
        if not 0 <= rows < len(self):
            raise InvalidInput(
                f"the first {rows} rows of {len(self)} were to be left out; at least one row must remain."
            )
        columns = ("features", "accept", "acceptance", "label", "group", "count")
        kept = {name: getattr(self, name)[rows:] for name in columns}
        return replace(self, **kept, id=np.array(self.ids, dtype=object)[rows:]) if rows else self


def _rejected_labels(number: int) -> str:
    return (
        f"{number:,} labels of rejected people are not used: an outcome that nobody could see was guessed or came by another way, "
        "and mixing it in would break the weighting"
    )


def _texts(values: Any, rows: int) -> GroupArray:
    """Objects: texts, None where the value is missing."""
    found = np.full(rows, None, dtype=object)
    if values is None:
        return found
    given = values.tolist() if isinstance(values, np.ndarray) else list(values)
    _require_length(np.empty(len(given)), rows, "group or id")
    for row, value in enumerate(given):
        if value is not None and value == value and value != "":
            found[row] = value if isinstance(value, str) else str(value)
    return found


def _require_length(column: Any, rows: int, name: str) -> None:
    if column.shape != (rows,):
        raise LengthMismatch(
            f"{name} has shape {column.shape} but there are {rows} rows; it needs one entry per row."
        )
