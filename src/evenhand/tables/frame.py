"""A table as typed columns: what each cell says, where a value is missing, and what kind of column
it is. The last step, `LabelledFrame.encoded`, turns them into numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from functools import cached_property
from itertools import compress
from types import NoneType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InvalidInput, MissingColumn
from evenhand.tables.notation import PLAIN, Notation, days_of, find_notation, unit_of
from evenhand.tables.packed import find_missing, plain_numbers
from evenhand.words import (
    BoolArray,
    CostSensitiveProblem,
    FloatArray,
    GroupArray,
    IntArray,
    LabelledSample,
    Prices,
)

Cells = Sequence[Any] | NDArray[Any]
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "#n/a"})
"""How a missing value is written, in any case. Every reader of evenhand uses this set; an empty
cell is always missing."""
MOST_CATEGORIES = 50
"""Distinct values of a text column that are encoded at most."""


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


@dataclass(frozen=True)
class Written:
    """What is known about how the numbers of a file are written.

    Parameters
    ----------
    decimal : {".", ","}, optional
        What --decimal says.
    dates : {"day-first", "month-first", "text"}, optional
        What --dates says.
    guess : {".", ","}, optional
        The decimal mark that other columns of the file show.
    fixed : Notation, optional
        The notation of this column, where a policy has fixed it.

    Examples
    --------
    >>> TableColumn(("51,000", "800"), written=Written(decimal=",")).numbers.tolist()
    [51.0, 800.0]
    """

    decimal: str | None = None
    dates: str | None = None
    guess: str = ""
    fixed: Notation | None = None


@dataclass(frozen=True, eq=False)
class TableColumn:
    """One column: its cells as the source holds them, read as texts or as numbers.

    Parameters
    ----------
    cells : sequence
        Texts, numbers, dates, or None; an array of numbers is kept as it is.
    markers : frozenset of str
        The texts, in small letters, that mean that a value is missing.
    written : Written, optional
        How numbers may be written beyond the plain way; by default in the plain way only.

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
    written: Written | None = None

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def _packed(self) -> bool:
        """Whether the cells are the texts of a long table, as an array of bytes."""
        return isinstance(self.cells, np.ndarray) and self.cells.dtype.kind == "S"

    @cached_property
    def texts(self) -> tuple[str | None, ...]:
        """The cells as texts, None where a value is missing."""
        cells = self.cells.tolist() if isinstance(self.cells, np.ndarray) else self.cells
        markers = self.markers
        if self._packed:
            value = {cell: cell.decode() for cell in set(cells)}
            known = {c: None if t.lower() in markers else t for c, t in value.items()}
            return tuple(known[cell] for cell in cells)
        return tuple(
            None
            if cell is None or cell != cell or (text := _text(cell)).lower() in markers
            else text
            for cell in cells
        )

    @cached_property
    def numbers(self) -> FloatArray | None:
        """The cells as numbers, NaN where a value is missing; None for a category."""
        return self._read[0]

    @property
    def notation(self) -> Notation | None:
        """How the numbers are written; None for a category."""
        return None if isinstance(self._read[1], str) else self._read[1]

    @property
    def currency(self) -> str | None:
        """The currency of amounts of money; None if they have none, or several."""
        if self.notation is not None:
            return self.notation.unit
        units = {unit_of(text) for text in set(self.texts) if text is not None} - {None}
        return units.pop() if len(units) == 1 else None

    @property
    def doubt(self) -> str | None:
        """Why numbers or dates that the column seems to hold are not read, in words."""
        return self._read[1] if isinstance(self._read[1], str) else None

    @cached_property
    def _read(self) -> tuple[FloatArray | None, Notation | str | None]:
        """The numbers, and the notation or the doubt about it."""
        if isinstance(self.cells, np.ndarray) and self.cells.dtype.kind in "iuf":
            return self.cells.astype(np.float64), PLAIN
        written = self.written
        kinds: set[type] = {bytes} if self._packed else set(map(type, self.cells))
        if kinds - {NoneType} and all(issubclass(kind, date | NoneType) for kind in kinds):
            days = [np.nan if c is None or c != c else days_of(c) for c in self.cells]
            return np.array(days, dtype=np.float64), Notation("date")
        if written is None or (
            (written.fixed or PLAIN) == PLAIN and "," not in (written.decimal or written.guess)
        ):
            plain = self._plain(kinds)
            if plain is not None:
                return plain, PLAIN
        if written is None:
            return None, None
        distinct = set(self.texts) - {None}
        known = sorted(text for text in distinct if text is not None)
        found = written.fixed or find_notation(known, written.decimal, written.dates, written.guess)
        if not isinstance(found, Notation):
            return None, found
        value: dict[str | None, float | None] = {text: found.value(text) for text in known}
        value[None] = np.nan
        strange = [text for text, read in value.items() if read is None]
        if strange:
            return None, f"{strange[0]!r} is not written like the other values"
        return np.array([value[text] for text in self.texts], dtype=np.float64), found

    def _plain(self, kinds: set[type]) -> FloatArray | None:
        """The numbers if all are written plainly."""
        if self._packed:
            plain = plain_numbers(np.asarray(self.cells), self.missing)
            if plain is not None:
                return plain
            cells = np.where(self.missing, b"nan", self.cells)
            try:
                return cells.astype(np.float64)
            except ValueError:
                return None
        # none of the usual markers is a number, so that most columns can be read at once
        if self.markers <= MISSING and (kinds == {str} or kinds <= {int, float, NoneType}):
            try:
                return np.array([np.nan if c is None else float(c) for c in self.cells])
            except ValueError:
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
        if self._packed:
            return find_missing(np.asarray(self.cells), self.markers)
        if isinstance(self.cells, np.ndarray) and self.numbers is not None:
            return np.isnan(self.numbers)
        return np.array([text is None for text in self.texts], dtype=bool)

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
        return TableColumn(kept, self.markers, self.written)


def _text(cell: Any) -> str:
    """A cell as a text; 1.0, which other libraries make of 1, is 1."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell).strip()


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
    notes : tuple of str
        What was done to read it, in words.

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
    notes: tuple[str, ...] = ()

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
                hint=self.missing_hint(absent[0]),
            )

    def missing_hint(self, name: str) -> str:
        """Say what may help somebody who named a column that is not there.

        Parameters
        ----------
        name : str
            The name that no column has.

        Returns
        -------
        str
            The way out, in words.
        """
        folded = {known.lower(): known for known in self.columns}
        near = get_close_matches(name.lower(), folded, 1, 0.7)
        if any(number(known) is not None for known in self.columns):
            return (
                "the first line looks like data and not like names; if there are none, add "
                "--no-header, which calls the columns column1, column2, ..."
            )
        if {f"{name}.1", f"{name}.2"} <= set(self.columns):
            return (
                f"several columns are called {name!r}, and are told apart as '{name}.1', "
                f"'{name}.2', ...; give the right one a name of its own in the file."
            )
        if near:
            return f"did you mean {folded[near[0]]!r}? Names are compared letter by letter."
        return "names are compared letter by letter, upper and lower case included."

    def with_joined(self, name: str) -> tuple["Frame", tuple[str, ...]]:
        """Add a column that joins several, if `name` names several with commas between them.

        Parameters
        ----------
        name : str
            A column, or "sex,race".

        Returns
        -------
        tuple
            The frame, which has a column `name` if that is possible; and the columns it is made of.

        Examples
        --------
        >>> columns = {"sex": TableColumn(("f", "m")), "race": TableColumn(("a", None))}
        >>> Frame("toy", columns, (2, 3)).with_joined("sex,race")[0]["sex,race"].texts
        ('f & a', None)
        """
        parts = tuple(part.strip() for part in name.split(",") if part.strip())
        if name in self.columns or len(parts) < 2:
            return self, (name,)
        self.require(parts)
        rows = zip(*(self.columns[part].texts for part in parts), strict=True)
        cells = tuple(
            None if None in row else " & ".join(text for text in row if text) for row in rows
        )
        return replace(self, columns={**self.columns, name: TableColumn(cells)}), parts

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
        return replace(self, columns=columns, lines=tuple(compress(self.lines, rows.tolist())))

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
        if column.doubt is not None:
            raise InvalidInput(
                f"{self.source}: the numbers of {name!r} are in doubt: {column.doubt}.",
                hint="if they are to be texts, --dates text leaves dates alone; "
                "--features or --leave-out leave a column out.",
            )
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


@dataclass(frozen=True)
class RecipeColumn:
    """How one column of a raw table becomes numbers.

    Parameters
    ----------
    name : str
        The column.
    notation : Notation, optional
        How its numbers are written; None for a category.
    categories : tuple of str
        The values of a category that have a 0/1 column.
    base : str, optional
        Of two values, the one that needs no column.

    Examples
    --------
    >>> RecipeColumn("city", categories=("Bern", "Ulm", "Wien")).notation is None
    True
    """

    name: str
    notation: Notation | None = None
    categories: tuple[str, ...] = ()
    base: str | None = None


Recipe = tuple[RecipeColumn, ...]
"""How the columns of a raw table become the numbers that a policy sees, in their order."""


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
    recipe : tuple of RecipeColumn
        How the columns of a new table become the same features.

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
    recipe: Recipe = ()

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

    def rows(self, chosen: BoolArray) -> "Table":
        """Keep some rows.

        Parameters
        ----------
        chosen : array of bool
            Which rows are kept.

        Returns
        -------
        Table
            The same columns with these rows.
        """
        return replace(
            self, features=self.features[chosen], group=self.group[chosen], label=self.label[chosen]
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
        texts = [name for name in self.features if self.frame.columns[name].numbers is None]
        for name in texts:
            if self.frame.columns[name].doubt is not None:
                self.frame.finite(name)  # refuses it
        if texts and not self.encode:
            examples = [
                next(text for text in self.frame[name].texts if text and number(text) is None)
                for name in texts
            ]
            pairs = zip(texts, examples, strict=True)
            shown = ", ".join(f"{name!r} (for example {text!r})" for name, text in pairs)
            raise InvalidInput(
                f"{self.frame.source}: {shown} {'is' if len(texts) == 1 else 'are'} not numeric.",
                hint="add --encode for one 0/1 column per value, "
                "or leave the column out: --leave-out, --features.",
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
            recipe=tuple(
                RecipeColumn(name, self.frame.columns[name].notation)
                if name not in encoded
                else self._recipe_of_texts(name, encoded[name])
                for name in self.features
            ),
        )

    def _recipe_of_texts(self, name: str, columns: tuple[str, ...]) -> RecipeColumn:
        values = tuple(one.removeprefix(f"{name}=") for one in columns)
        left = {text for text in self.frame.columns[name].texts if text} - set(values)
        return RecipeColumn(name, None, values, next(iter(left), None))

    def _one_hot(self, name: str) -> dict[str, FloatArray]:
        """{"purpose=car": 0/1, ...}."""
        column = self.frame[name]
        distinct = sorted({text for text in column.texts if text is not None})
        if len(distinct) > MOST_CATEGORIES:
            raise InvalidInput(
                f"{self.frame.source}: the text column {name!r} has {len(distinct)} distinct "
                f"values; --encode takes at most {MOST_CATEGORIES}.",
                hint=f"leave it out with --leave-out {name}; "
                "names and identifiers say nothing about a new person.",
            )
        values = np.array(column.texts)
        shown = distinct[1:] if len(distinct) == 2 and not self.published else distinct
        return {f"{name}={value}": (values == value).astype(np.float64) for value in shown}
