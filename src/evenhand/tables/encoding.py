"""The last step of reading: typed columns become numbers, and text columns one 0/1 column per
value.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.tables.frame import Cells, Frame, TableColumn, number
from evenhand.words import (
    CostSensitiveProblem,
    FloatArray,
    GroupArray,
    IntArray,
    LabelledSample,
    Prices,
)

MOST_CATEGORIES = 50
"""Distinct values of a text column that are encoded at most."""


@dataclass(frozen=True)
class GroupFigures:
    """One group of a table in numbers.

    Parameters
    ----------
    group : object
        Its name.
    people : int
        How many rows it has.
    share : float
        Which share of all rows.
    good_rate : float
        Which share of them had the good outcome.

    Examples
    --------
    >>> GroupFigures("a", 3, 0.75, 2 / 3).people
    3
    """

    group: Any
    people: int
    share: float
    good_rate: float


@dataclass(frozen=True, eq=False)
class Table:
    """A table of numbers that people can be decided by.

    Parameters
    ----------
    name : str
        What it is called.
    features : array of float, shape (n, d)
        What a decision may look at.
    names : tuple of str
        The names of the columns of `features`.
    group : array, shape (n,)
        The group of each row.
    label : array of int, shape (n,)
        +1 for the good outcome, -1 for the bad one.
    generated : bool
        Whether the rows were made up.
    notes : tuple of str
        What was done to the rows on the way here, in words.
    encoded : mapping of str to tuple of str
        Which text column became which 0/1 columns.

    Examples
    --------
    >>> table = Table("toy", np.eye(2), ("x", "z"), np.array(["a", "b"]), np.array([1, -1]))
    >>> len(table), [(one.group, one.good_rate) for one in table.figures]
    (2, [('a', 1.0), ('b', 0.0)])
    """

    name: str
    features: FloatArray
    names: tuple[str, ...]
    group: GroupArray
    label: IntArray
    generated: bool = False
    notes: tuple[str, ...] = ()
    encoded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.label)

    @property
    def sample(self) -> LabelledSample:
        """The rows on which rates are measured."""
        return LabelledSample(self.features, self.group, self.label)

    @property
    def problem(self) -> CostSensitiveProblem:
        """The same rows with the price 1 for every error."""
        return Prices().problem(self.features, self.group, self.label)

    @property
    def figures(self) -> tuple[GroupFigures, ...]:
        """Each group with its size and its rate of good outcomes."""
        return tuple(
            GroupFigures(
                value,
                int((here := self.group == value).sum()),
                float(here.mean()),
                float((self.label[here] == 1).mean()),
            )
            for value in self.sample.groups
        )

    def subset(self, rows: int, seed: int = 0) -> "Table":
        """Draw a fixed random subset.

        Parameters
        ----------
        rows : int
            How many rows; all of them where there are no more.
        seed : int
            Which subset.

        Returns
        -------
        Table
            The rows that were drawn, in the order of the table.
        """
        chosen = np.sort(np.random.default_rng(seed).permutation(len(self.label))[:rows])
        return replace(
            self, features=self.features[chosen], group=self.group[chosen], label=self.label[chosen]
        )


@dataclass(frozen=True, eq=False)
class LabelledFrame:
    """Typed columns of people whose group and outcome are known, before they are encoded.

    Parameters
    ----------
    name : str
        What the table is called.
    frame : Frame
        All columns of the rows that were kept.
    features : tuple of str
        The columns that a decision may look at.
    label : array of int
        +1 for the good outcome, -1 for the bad one.
    group : array
        The group of each row.
    label_name, good, group_name : str
        The column of the outcome, its good value, and the column of the group, for messages.
    encode : bool
        Whether text columns may become 0/1 columns.
    published : bool
        Whether it is a published table. There a text column of two values becomes two 0/1 columns,
        as everybody has it, and no note is made of it.
    dropped : int
        Rows of the source that were left out.
    notes : tuple of str
        What was done to the rows so far, in words.

    Examples
    --------
    >>> frame = Frame("toy", {"colour": TableColumn(("red", "blue", "red"))}, (2, 3, 4))
    >>> label, group = np.array([1, -1, 1]), np.array(["a", "a", "b"])
    >>> people = LabelledFrame("toy", frame, ("colour",), label, group, encode=True)
    >>> table = people.encoded()
    >>> table.names, table.features.tolist()
    (('colour=red',), [[1.0], [0.0], [1.0]])
    """

    name: str
    frame: Frame
    features: tuple[str, ...]
    label: IntArray
    group: GroupArray
    label_name: str = "the outcome"
    good: str = "good"
    group_name: str = "the group"
    encode: bool = False
    published: bool = False
    dropped: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.label)

    def with_columns(self, columns: Mapping[str, Cells]) -> "LabelledFrame":
        """Add columns that are no features, or replace some.

        Parameters
        ----------
        columns : mapping of str to sequence
            Their cells by name.

        Returns
        -------
        LabelledFrame
            The same people with these columns.
        """
        added = {name: TableColumn(cells) for name, cells in columns.items()}
        return replace(self, frame=replace(self.frame, columns={**self.frame.columns, **added}))

    def logarithmic(self, names: Iterable[str]) -> "LabelledFrame":
        """Take log(1 + x) of features with long tails, which then suit linear rules.

        Parameters
        ----------
        names : iterable of str
            The columns of numbers to change.

        Returns
        -------
        LabelledFrame
            The same people; the columns are called "log(1 + name)", and a note says so.
        """
        chosen = {name: f"log(1 + {name})" for name in names}
        if not chosen:
            return self
        columns = {new: np.log1p(self.frame.finite(name)) for name, new in chosen.items()}
        return replace(
            self.with_columns(columns),
            features=tuple(chosen.get(name, name) for name in self.features),
            notes=(*self.notes, f"{', '.join(chosen)} enter as log(1 + x)"),
        )

    def encoded(self) -> Table:
        """Turn the features into numbers: the last step of reading a table.

        Columns of numbers stay as they are. A text column is refused, or becomes one 0/1 column per
        value if `encode` is set; of two values one says everything.

        Returns
        -------
        Table
            The people with numeric features.

        Raises
        ------
        InvalidInput
            If a column is text and `encode` is not set, if a text column has too many values, or if
            a number is infinite.
        """
        texts = [name for name in self.features if self.frame[name].kind == "category"]
        if texts and not self.encode:
            shown = ", ".join(f"{name!r} (for example {self._text(name)!r})" for name in texts)
            raise InvalidInput(
                f"{self.frame.source}: {shown} {'is' if len(texts) == 1 else 'are'} not numeric.",
                hint="add --encode for one 0/1 column per value, "
                "or choose numeric columns with --features.",
            )
        parts: dict[str, FloatArray] = {}
        encoded: dict[str, tuple[str, ...]] = {}
        notes = list(self.notes)
        for name in self.features:
            columns = self._one_hot(name) if name in texts else {name: self.frame.finite(name)}
            parts |= columns
            if name in texts:
                encoded[name] = tuple(columns)
        if not self.published:
            notes += [
                f"the text column {name!r} became {len(columns)} columns of 0 and 1"
                for name, columns in encoded.items()
            ]
        values = np.column_stack(list(parts.values()))
        return Table(
            self.name,
            values,
            tuple(parts),
            self.group,
            self.label,
            notes=tuple(notes),
            encoded=encoded,
        )

    def _text(self, name: str) -> str | None:
        """The first text of a column that is no number."""
        texts = self.frame[name].texts
        return next(text for text in texts if text is not None and number(text) is None)

    def _one_hot(self, name: str) -> dict[str, FloatArray]:
        """{"purpose=car": 0/1, ...}."""
        column = self.frame[name]
        distinct = column.distinct
        if len(distinct) > MOST_CATEGORIES:
            raise InvalidInput(
                f"{self.frame.source}: the text column {name!r} has {len(distinct)} distinct "
                f"values; --encode takes at most {MOST_CATEGORIES}.",
                hint="leave it out with --features; "
                "names and identifiers say nothing about a new person.",
            )
        values = np.array(column.texts)
        shown = distinct[1:] if len(distinct) == 2 and not self.published else distinct
        return {f"{name}={value}": (values == value).astype(np.float64) for value in shown}
