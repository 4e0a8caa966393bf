"""A table as typed columns: what each cell says, where a value is missing, and what kind of column
it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InvalidInput, MissingColumn
from evenhand.words import BoolArray, FloatArray

Cells = Sequence[Any] | NDArray[Any]
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
"""How a missing value is written, in any case. Every reader of evenhand uses this set; an empty
cell is always missing."""


def number(text: str) -> float | None:
    """Read a number.

    Parameters
    ----------
    text : str
        What stands in a cell.

    Returns
    -------
    float or None
        The number, or None if the text is none.

    Examples
    --------
    >>> number("1e3"), number("many")
    (1000.0, None)
    """
    try:
        return float(text)
    except ValueError:
        return None


def same_value(text: str, other: str) -> bool:
    """Tell whether two cells say the same: equal texts, or equal numbers.

    Parameters
    ----------
    text, other : str
        What stands in the two cells.

    Returns
    -------
    bool
        Whether they are the same value.

    Examples
    --------
    >>> same_value("1", "1.0"), same_value("yes", "Yes")
    (True, False)
    """
    return text == other or (number(text) is not None and number(text) == number(other))


def listed(values: Iterable[str], most: int = 6) -> str:
    """Name the first values of a list in a message.

    Parameters
    ----------
    values : iterable of str
        All of them.
    most : int
        How many are named.

    Returns
    -------
    str
        The values with commas between them, and dots where some are left out.

    Examples
    --------
    >>> listed("abcd", 2)
    'a, b, ...'
    """
    every = list(values)
    return ", ".join(every[:most]) + (", ..." if len(every) > most else "")


@dataclass(frozen=True, eq=False)
class TableColumn:
    """One column: its cells as the source holds them, read as texts or as numbers.

    Parameters
    ----------
    cells : sequence
        Texts, numbers, or None; an array of numbers is kept as it is.
    markers : frozenset of str
        The texts, in small letters, that mean that a value is missing.

    Examples
    --------
    >>> income = TableColumn(("10", "NA", "12.5"))
    >>> income.kind, income.numbers.tolist(), income.texts
    ('number', [10.0, nan, 12.5], ('10', None, '12.5'))
    >>> TableColumn(("red", "7")).kind
    'category'
    """

    cells: Cells
    markers: frozenset[str] = MISSING

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def texts(self) -> tuple[str | None, ...]:
        """The cells as texts, None where a value is missing."""
        cells = self.cells.tolist() if isinstance(self.cells, np.ndarray) else self.cells
        markers = self.markers
        return tuple(
            None if cell is None or cell != cell or (text := str(cell)).lower() in markers else text
            for cell in cells
        )

    @cached_property
    def numbers(self) -> FloatArray | None:
        """The cells as numbers, NaN where a value is missing; None for a category."""
        if isinstance(self.cells, np.ndarray) and self.cells.dtype.kind in "iuf":
            return self.cells.astype(np.float64)
        try:
            # none of the usual markers is a number, so that most columns of a CSV are read at once
            if self.markers <= MISSING and all(isinstance(cell, str) for cell in self.cells[:1]):
                return np.array(list(map(float, self.cells)), dtype=np.float64)
        except (ValueError, TypeError):
            pass  # a category, or a value is missing
        try:
            read = [np.nan if text is None else float(text) for text in self.texts]
        except ValueError:
            return None
        return np.array(read, dtype=np.float64)

    @property
    def kind(self) -> Literal["number", "category"]:
        """ "number" if every value that is not missing is a number, else "category"."""
        return "category" if self.numbers is None else "number"

    @cached_property
    def missing(self) -> BoolArray:
        """Where a value is missing."""
        if isinstance(self.cells, np.ndarray) and self.numbers is not None:
            return np.isnan(self.numbers)
        return np.array([text is None for text in self.texts], dtype=bool)

    @property
    def distinct(self) -> list[str]:
        """The texts that occur, in alphabetical order."""
        return sorted({text for text in self.texts if text is not None})

    def where(self, rows: BoolArray) -> "TableColumn":
        """Keep some rows.

        Parameters
        ----------
        rows : array of bool
            Which rows are kept.

        Returns
        -------
        TableColumn
            The column of these rows.
        """
        kept = (
            self.cells[rows]
            if isinstance(self.cells, np.ndarray)
            else tuple(compress(self.cells, rows.tolist()))
        )
        return TableColumn(kept, self.markers)


@dataclass(frozen=True, eq=False)
class Frame:
    """Named columns of equal length, as they stand in a source.

    Parameters
    ----------
    source : str
        Where the rows are from, for messages.
    columns : mapping of str to TableColumn
        The columns by name, in the order of the source.
    lines : sequence of int
        The line of the source in which each row stands.

    Examples
    --------
    >>> frame = Frame("loans.csv", {"sex": TableColumn(("f", "m", ""))}, (2, 3, 4))
    >>> frame["sex"].texts, len(frame)
    (('f', 'm', None), 3)
    >>> frame["age"]
    Traceback (most recent call last):
        ...
    evenhand.errors.MissingColumn: loans.csv has no column 'age'; it has: sex. Hint: names are
    compared letter by letter, upper and lower case included.
    """

    source: str
    columns: Mapping[str, TableColumn]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, name: str) -> TableColumn:
        """The column of that name; MissingColumn lists the ones there are."""
        self.require([name])
        return self.columns[name]

    def require(self, names: Iterable[str]) -> None:
        """Refuse names that no column has.

        Parameters
        ----------
        names : iterable of str
            The columns that are needed.

        Raises
        ------
        MissingColumn
            If one of them is not there.
        """
        absent = [name for name in names if name not in self.columns]
        if absent:
            raise MissingColumn(
                f"{self.source} has no column {', '.join(map(repr, absent))}; "
                f"it has: {', '.join(self.columns)}.",
                hint="names are compared letter by letter, upper and lower case included.",
            )

    def where(self, rows: BoolArray) -> "Frame":
        """Keep some rows.

        Parameters
        ----------
        rows : array of bool
            Which rows are kept.

        Returns
        -------
        Frame
            The same columns with these rows.
        """
        if rows.all():
            return self
        columns = {name: column.where(rows) for name, column in self.columns.items()}
        return Frame(self.source, columns, tuple(compress(self.lines, rows.tolist())))

    def finite(self, name: str) -> FloatArray:
        """Read a column of which every value must be a finite number.

        Parameters
        ----------
        name : str
            The column.

        Returns
        -------
        array of float
            One number per row.

        Raises
        ------
        InvalidInput
            If a value is missing, infinite or no number.
        """
        column = self[name]
        read = column.numbers
        if read is None:
            bad = [text is None or number(text) is None for text in column.texts].index(True)
        elif np.isfinite(read).all():
            return read
        else:
            bad = int(np.argmin(np.isfinite(read)))
        raise InvalidInput(
            f"{self.source}: {name!r} holds {str(column.cells[bad])!r} in row {bad + 1} "
            f"(line {self.lines[bad]}); it must be a finite number.",
            hint="correct the cell, or leave the row out.",
        )
