"""A table as typed columns by name, and as people whose group and outcome are known. The last step,
`LabelledFrame.encoded`, turns their features into numbers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import compress
from typing import Literal

import numpy as np

from evenhand.errors import InvalidInput, MissingColumn, raise_all
from evenhand.shown import counted
from evenhand.tables.column import TRUE, Cells, Notation, TableColumn, listed, number
from evenhand.words import (
    BoolArray,
    ColumnName,
    CostSensitiveProblem,
    FloatArray,
    Group,
    GroupArray,
    IntArray,
    LabelledSample,
    Prices,
)

MOST_CATEGORIES = 50
"""Distinct values of a text column that are encoded at most."""
FEW_NUMBERS = 20
FEW_WORDS = 5
MISTYPED = 0.01
"""A text column with more distinct numbers than the first, at most the second number of distinct
words, and those in at most the third share of its rows, is a column of numbers with mistakes."""
MISSING_VALUE = "missing"
"""The value of a text column, or the group, of people whose value is missing, where that counts as
a value of its own."""
MOST_SHOWN = 8
"""Columns of a table that its `repr` shows at most."""


NoteKind = Literal[
    "columns",  # a column was named, renamed or left out
    "people without a label",  # rows were left out because they have no label
    "outcomes of all",  # nobody lacks a label: they may all have been accepted
    "missing values",  # rows were left out because a value is missing
    "many left out",  # so many that the others may be different people
    "filled",  # missing values of a column were filled in
    "encoded",  # a text column became columns of 0 and 1
    "changed",  # numbers were changed, or the publisher of the table did something
    "notation",  # how a column is written, and what that is read as
    "constant",  # a column has one value
    "identifier",  # a column may name people
    "joined groups",  # groups with several spellings were taken for one
    "label values",  # the good outcome has several spellings
    "unseen values",  # a policy does not know a value
    "absent group",  # nobody is of a group that a policy knows
    "same table",  # a policy may have been chosen on these very people
    "sensitive reason",  # people's reasons name a column that the law may protect
    "no reason",  # rules reject people for whom no column is worse than in the reference
]
"""What a note is about."""


@dataclass(frozen=True)
class Note:
    """Something that was done to a table, or seen in it, while it was read.

    Programs look at the kind; `str(note)` is the text for people.

    Parameters
    ----------
    kind : NoteKind
        What it is about.
    text : str
        The note in words.
    column : str, optional
        The column concerned.
    remedies : tuple of str
        The arguments of `read_table` that change it.

    Examples
    --------
    >>> print(Note("missing values", "3 rows with a missing value were left out"))
    3 rows with a missing value were left out
    """

    kind: NoteKind
    text: str
    column: str | None = None
    remedies: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


def without_label(people: int, column: str) -> Note:
    """Say that people without a label were left out, and whom the rest stands for.

    Parameters
    ----------
    people : int
        How many were left out.
    column : str
        The column of the label.

    Returns
    -------
    Note
        One note of the kind "people without a label".

    Examples
    --------
    >>> print(without_label(1420, "repaid"))
    1,420 people without a label were left out: every figure is about people like those with one. If
    they were rejected in the past, that is not the population
    """
    were = "was" if people == 1 else "were"
    text = (
        f"{counted(people)} without a label {were} left out: every figure is about people like "
        "those with one. If they were rejected in the past, that is not the population"
    )
    return Note("people without a label", text, column)


def with_every_label(frame: "Frame", column: str, decision: str | None = None) -> list[Note]:
    """Say whom figures are about where nobody lacks an outcome: of the accepted alone, perhaps.

    Outcomes are usually known for accepted people only, and a table from which the rejected were
    removed looks like one in which everybody was accepted.

    Parameters
    ----------
    frame : Frame
        The table.
    column : str
        The column of the label, which has no gap.
    decision : str, optional
        The column of the historic decision.

    Returns
    -------
    list of Note
        One note of the kind "outcomes of all"; none where a decision shows that people were
        rejected and have outcomes all the same.

    Examples
    --------
    >>> columns = {"repaid": TableColumn(("1", "0")), "granted": TableColumn(("yes", "yes"))}
    >>> print(*with_every_label(Frame("loans", columns, (2, 3)), "repaid"))
    everybody (2 people) has an outcome: if these are the people who were accepted ('granted' is yes
    for all), every figure speaks of accepted people only, and not of all who apply
    """
    same = {
        name: text
        for name, one in frame.columns.items()
        if name != column and len(set(one.texts)) == 1 and (text := one.texts[0]) is not None
    }
    if decision is not None and decision not in same:
        return []
    who = f"everybody ({counted(len(frame))}) has an outcome"
    speaks = "every figure speaks of accepted people only, and not of all who apply"
    if decision is not None:
        text = f"{who}, and {decision!r} is {same[decision]} for all: {speaks}"
    else:
        hints = [f"{name!r} is {one} for all" for name, one in same.items() if one.lower() in TRUE]
        seen = f" ({hints[0]})" if hints else ""
        text = f"{who}: if these are the people who were accepted{seen}, {speaks}"
    return [Note("outcomes of all", text, column)]


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
    notes : tuple of Note
        What was done to read it.
    typed : bool
        Whether the source itself says where a value is missing, as Parquet and JSON do, and CSV
        does not.

    Examples
    --------
    >>> frame = Frame("loans.csv", {"sex": TableColumn(("f", "m", ""))}, (2, 3, 4))
    >>> frame["sex"].texts, len(frame)
    (('f', 'm', None), 3)
    >>> frame
    <Frame 'loans.csv': 3 rows, 1 column>
      sex (category): f, m, missing
    >>> frame["age"]
    Traceback (most recent call last):
        ...
    evenhand.errors.MissingColumn: loans.csv has no column 'age'; it has: sex. Hint: names are
    compared letter by letter, upper and lower case included.
    """

    source: str
    columns: Mapping[str, TableColumn]
    lines: Sequence[int]
    notes: tuple[Note, ...] = ()
    typed: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    def __repr__(self) -> str:
        columns = [
            f"{name} ({column.kind}): {column.first_values()}"
            for name, column in [*self.columns.items()][:MOST_SHOWN]
        ]
        number = len(self.columns)
        size = f"{counted(len(self), 'row', 'rows')}, {number:,} column{'s' * (number != 1)}"
        return _listed_columns(f"<Frame {self.source!r}: {size}>", columns, number)

    def __getitem__(self, name: str) -> TableColumn:
        """The column of that name; MissingColumn lists the ones there are."""
        self.require([name])
        return self.columns[name]

    def require(self, names: Iterable[str]) -> None:
        """Raise an error for names that no column has.

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
                column=absent[0],
                remedies=self.missing_remedies(),
            )

    def missing_remedies(self) -> tuple[str, ...]:
        """The arguments that may help where a column is not there.

        Returns
        -------
        tuple of str
            ("header",) where the names of the columns look like data.
        """
        if any(number(known) is not None for known in self.columns):
            return ("header",)
        return ()

    def missing_hint(self, name: str) -> str:
        """How to mend an error about a column that is not there.

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
        if self.missing_remedies():
            return (
                "the first line looks like data and not like names; if the file has no header, "
                "the columns are called column1, column2, ..."
            )
        if {f"{name}.1", f"{name}.2"} <= set(self.columns):
            return (
                f"several columns are called {name!r}, and are distinguished as '{name}.1', "
                f"'{name}.2', ...; give the right one a name of its own in the file."
            )
        if near:
            return f"did you mean {folded[near[0]]!r}? Names are compared letter by letter."
        return "names are compared letter by letter, upper and lower case included."

    def with_joined(self, name: str, needed: Iterable[str] = ()) -> tuple["Frame", tuple[str, ...]]:
        """Add a column that joins several, if `name` names several with commas between them.

        Parameters
        ----------
        name : str
            A column, or "sex,race".
        needed : iterable of str
            Columns that must then be there.

        Returns
        -------
        tuple
            The frame, which has a column `name` if that is possible; and the columns it is made of.

        Raises
        ------
        MissingColumn
            If a column to join or a needed one is not there.

        Examples
        --------
        >>> columns = {"sex": TableColumn(("f", "m")), "race": TableColumn(("a", None))}
        >>> Frame("toy", columns, (2, 3)).with_joined("sex,race")[0]["sex,race"].texts
        ('f & a', None)
        """
        parts = tuple(part.strip() for part in name.split(",") if part.strip())
        if name in self.columns or len(parts) < 2:
            self.require(needed)
            return self, (name,)
        self.require(parts)
        rows = zip(*(self.columns[part].texts for part in parts), strict=True)
        cells = tuple(
            None if None in row else " & ".join(text for text in row if text) for row in rows
        )
        joined = replace(self, columns={**self.columns, name: TableColumn(cells)})
        joined.require(needed)
        return joined, parts

    def may_name_people(self, name: str) -> bool:
        """Say whether a column holds another text, or another whole number, in every row.

        Parameters
        ----------
        name : str
            The column.

        Returns
        -------
        bool
            True of identifiers, and by chance of short tables.

        Examples
        --------
        >>> columns = {"no": TableColumn(("K-1", "K-2")), "score": TableColumn(("0.5", "0.7"))}
        >>> frame = Frame("toy", columns, (2, 3))
        >>> frame.may_name_people("no"), frame.may_name_people("score")
        (True, False)
        """
        column = self[name]
        if len(self) < 2 or column.missing.any():
            return False
        read = column.numbers
        if read is None:
            return len(set(column.texts)) == len(self)
        dates = column.notation is not None and column.notation.kind == "date"
        whole = not dates and bool((read == np.floor(read)).all())
        return whole and len(np.unique(read)) == len(read)

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
        if read is not None and np.isfinite(read).all():
            return read
        if column.ambiguity is not None:
            raise InvalidInput(
                f"{self.source}: {name!r} cannot be read as numbers: {column.ambiguity.text}.",
                hint='if they are to be texts, dates="text" leaves dates alone; leave_out leaves '
                "a column out.",
                column=name,
                argument=column.ambiguity.argument,
                remedies=("dates", "leave_out"),
            )
        if read is None:
            bad = [text is None or number(text) is None for text in column.texts].index(True)
        else:
            bad = int(np.argmin(np.isfinite(read)))
        raise InvalidInput(
            f"{self.source}: {name!r} holds {str(column.cells[bad])!r} in row {bad + 1} "
            f"(line {self.lines[bad]}); it must be a finite number.",
            hint="correct the cell, or leave the row out.",
            column=name,
            row=bad,
            value=repr(str(column.cells[bad])),
        )


@dataclass(frozen=True)
class Gaps:
    """The missing values of a table, before anything was done about them.

    Parameters
    ----------
    rows : int
        How many rows there were.
    per_column : mapping of str to int
        In how many rows each used column lacks a value, the worst column first; columns that lack
        none are not in it.
    left_out : int
        How many rows were left out because they lack a value.

    Examples
    --------
    >>> Gaps(400, {"income": 120, "city": 3}, 120).describe()
    "'income' in 120 of 400 rows (30%), 'city' in 3 (0.75%)"
    """

    rows: int
    per_column: Mapping[str, int]
    left_out: int = 0

    @classmethod
    def of(cls, frame: Frame, names: Iterable[str]) -> "Gaps":
        """Count the missing values of some columns.

        Parameters
        ----------
        frame : Frame
            The rows.
        names : iterable of str
            The columns.

        Returns
        -------
        Gaps
            Their missing values.
        """
        counts = {name: int(frame.columns[name].missing.sum()) for name in names}
        worst_first = sorted((-count, name) for name, count in counts.items() if count)
        return cls(len(frame), {name: -count for count, name in worst_first})

    @property
    def share_left_out(self) -> float:
        """The share of the rows that were left out."""
        return self.left_out / self.rows if self.rows else 0.0

    def describe(self) -> str:
        """The columns with their counts, in words.

        Returns
        -------
        str
            "'income' in 120 of 400 rows (30%), 'city' in 3 (0.75%)".
        """
        of = f" of {self.rows:,} rows"
        parts = []
        for name, count in self.per_column.items():
            parts.append(f"{name!r} in {count:,}{of} ({100 * count / self.rows:.3g}%)")
            of = ""
        return ", ".join(parts)


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

    group: Group
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
    fill : float, optional
        What stands for a missing number, which a 0/1 column then marks; None where no value may be
        missing. Of a category `MISSING_VALUE` is a value like the others, if it may be missing.

    Examples
    --------
    >>> RecipeColumn("city", categories=("Bern", "Ulm", "Wien")).names
    ('city=Bern', 'city=Ulm', 'city=Wien')
    >>> RecipeColumn("age", Notation("number"), fill=40.0).names
    ('age', 'age missing')
    """

    name: str
    notation: Notation | None = None
    categories: tuple[str, ...] = ()
    base: str | None = None
    fill: float | None = None

    @property
    def known(self) -> tuple[str, ...]:
        """All values of a category."""
        return (*self.categories, *(() if self.base is None else (self.base,)))

    @property
    def may_be_missing(self) -> bool:
        """Whether a missing value has a meaning."""
        return self.fill is not None or MISSING_VALUE in self.known

    @property
    def names(self) -> tuple[ColumnName, ...]:
        """The names of the columns of numbers that it becomes, with the words for their values."""
        name = self.name
        if self.notation is None:
            return tuple(
                ColumnName(
                    f"{name}={value}",
                    no=f"{name} is not {value}" if self.base is None else f"{name} is {self.base}",
                    yes=f"{name} is {value}",
                )
                for value in self.categories
            )
        first = ColumnName(name, date=self.notation.kind == "date")
        if self.notation.kind == "flag":
            first = ColumnName(name, no=f"{name} is no", yes=f"{name} is yes")
        if self.fill is None:
            return (first,)
        marked = ColumnName(f"{name} missing", no=f"{name} is given", yes=f"{name} is missing")
        return (first, marked)


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
    notes : tuple of Note
        What was done to the rows on the way here.
    encoded : mapping of str to tuple of str
        Which text column became which 0/1 columns.
    recipe : tuple of RecipeColumn
        How the columns of a new table become the same features.
    gaps : Gaps, optional
        The missing values of the source, if it has any.

    Examples
    --------
    >>> table = Table("toy", np.eye(2), ("x", "z"), np.array(["a", "b"]), np.array([1, -1]))
    >>> len(table), [(one.group, one.good_rate) for one in table.figures]
    (2, [('a', 1.0), ('b', 0.0)])
    >>> table
    <Table 'toy': 2 people, 1 with the good outcome; groups: a 1, b 1>
      x (number): 1.0, 0.0
      z (number): 0.0, 1.0
    """

    name: str
    features: FloatArray
    names: tuple[str, ...]
    group: GroupArray
    label: IntArray
    generated: bool = False
    notes: tuple[Note, ...] = ()
    encoded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    recipe: Recipe = ()
    gaps: Gaps | None = None

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        flags = {name for names in self.encoded.values() for name in names}
        columns = [
            f"{name} ({'0 or 1' if name in flags else 'number'}): "
            f"{TableColumn(self.features[:, place]).first_values()}"
            for place, name in enumerate(self.names[:MOST_SHOWN])
        ]
        sizes = Counter(map(str, self.group.tolist()))
        groups = ", ".join(f"{group} {people:,}" for group, people in sorted(sizes.items()))
        good = f"{int((self.label == 1).sum()):,} with the good outcome"
        head = f"<Table {self.name!r}: {counted(len(self))}, {good}; groups: {groups}>"
        return _listed_columns(head, columns, len(self.names))

    @cached_property
    def sample(self) -> LabelledSample:
        """The rows on which rates are measured."""
        return LabelledSample(self.features, self.group, self.label)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """For each column, the column of the source that it was made of.

        The 0/1 columns of one text column have the same source: "city=Bern" and "city=Ulm" are both
        made of "city".
        """
        source = {made: name for name, several in self.encoded.items() for made in several}
        source |= {made: column.name for column in self.recipe for made in column.names}
        return tuple(source.get(name, name) for name in self.names)

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

    def rows(self, chosen: BoolArray | IntArray) -> "Table":
        """Keep some rows.

        Parameters
        ----------
        chosen : array of bool or of int
            Which rows are kept, or their numbers.

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
        chosen = np.random.default_rng(seed).permutation(len(self.label))[:rows]
        return self.rows(np.sort(chosen))


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
    dropped : int
        Rows of the source that were left out.
    notes : tuple of Note
        What was done to the rows so far.
    missing : tuple of str, optional
        How a missing value is written in the source, where that is not the usual way.
    filled : tuple of str
        The features whose missing values are filled in when they are encoded: a number by the
        median of its column (the more frequent one of yes and no), with a 0/1 column that marks
        where; a text by a value of its own.
    gaps : Gaps, optional
        The missing values of the source, if it has any.

    Examples
    --------
    >>> frame = Frame("toy", {"colour": TableColumn(("red", "blue", "red"))}, (2, 3, 4))
    >>> label, group = np.array([1, -1, 1]), np.array(["a", "a", "b"])
    >>> people = LabelledFrame("toy", frame, ("colour",), label, group, encode=True)
    >>> people
    <LabelledFrame 'toy': 3 people; features: colour; groups: a, b>
    >>> table = people.encoded()
    >>> table.names, table.features.tolist()
    (('colour=red',), [[1.0], [0.0], [1.0]])
    """

    name: str
    frame: Frame
    features: tuple[str, ...]
    label: IntArray
    group: GroupArray
    label_name: str = "label"
    good: str = "good"
    group_name: str = "group"
    encode: bool = False
    dropped: int = 0
    notes: tuple[Note, ...] = ()
    missing: tuple[str, ...] | None = None
    filled: tuple[str, ...] = ()
    gaps: Gaps | None = None

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        features = listed(self.features)
        groups = listed(sorted(map(str, set(self.group.tolist()))))
        people = f"{counted(len(self))}; features: {features}; groups: {groups}"
        return f"<LabelledFrame {self.name!r}: {people}>"

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

    def encoded(self) -> Table:
        """Turn the features into numbers: the last step of reading a table.

        Columns of numbers stay as they are. A text column becomes one 0/1 column per value if
        `encode` is set, else it is an error; of two values one says everything.

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
        raise_all(self.problems())
        columns = self.frame.columns
        parts: list[FloatArray] = []
        names: list[ColumnName] = []
        encoded: dict[str, tuple[str, ...]] = {}
        recipe = []
        notes = list(self.notes)
        for name in self.features:
            column = columns[name]
            if column.numbers is not None:
                fill = self._fill(name, notes)
                made = RecipeColumn(name, column.notation, fill=fill)
                parts += filled_numbers(self.frame, name, fill)
                names += _shown_names(column, made)
            else:
                values, base = self.categories(name)
                made = RecipeColumn(name, None, values, base)
                cells = np.array(self._texts(name))
                parts += [(cells == one).astype(np.float64) for one in values]
                names += _shown_names(column, made)
                encoded[name] = made.names
                if MISSING_VALUE in made.known and name in self.filled:
                    lacking = int(column.missing.sum())
                    where = counted(lacking, "row", "rows")
                    text = f"{name!r} is missing in {where}, which is a value of its own"
                    notes.append(Note("filled", text, name))
                became = "a column" if len(values) == 1 else f"{len(values)} columns"
                text = f"the text column {name!r} became {became} of 0 and 1"
                notes.append(Note("encoded", text, name))
            recipe.append(made)
        return Table(
            self.name,
            np.column_stack(parts),
            tuple(names),
            self.group,
            self.label,
            notes=tuple(notes),
            encoded=encoded,
            recipe=tuple(recipe),
            gaps=self.gaps,
        )

    def problems(self) -> list[InvalidInput]:
        """All that keeps the features from being encoded.

        Returns
        -------
        list of InvalidInput
            Empty if they can be encoded.
        """
        columns = self.frame.columns
        found: list[InvalidInput] = []
        texts: dict[str, str] = {}
        for name in self.features:
            column = columns[name]
            try:
                if column.numbers is not None:
                    self.frame.where(~column.missing).finite(name)
                elif column.ambiguity is not None:
                    self.frame.finite(name)
                else:
                    self.categories(name)  # what cannot be encoded either way is said now
                    if not self.encode:
                        texts[name] = next(t for t in column.texts if t and number(t) is None)
            except InvalidInput as error:
                found.append(error)
            taken = f"{name} missing"
            if name in self.filled and column.numbers is not None and taken in columns:
                found.append(
                    InvalidInput(
                        f"{self.frame.source}: where {name!r} is missing would be marked in the "
                        f"column {taken!r}, and there is one.",
                        hint="rename it.",
                        argument="fill_missing",
                        column=name,
                    )
                )
        if texts:
            shown = ", ".join(f"{name!r} (for example {text!r})" for name, text in texts.items())
            found.append(
                InvalidInput(
                    f"{self.frame.source}: {shown} {'is' if len(texts) == 1 else 'are'} not "
                    "numeric.",
                    hint="encode turns it into one 0/1 column per value; leave_out leaves a column "
                    "out, and features names those to use.",
                    column=next(iter(texts)),
                    argument="encode",
                    remedies=("leave_out", "features"),
                )
            )
        return found

    def _fill(self, name: str, notes: list[Note]) -> float | None:
        """What stands for the missing numbers of a column; None where none may be missing."""
        column = self.frame.columns[name]
        if name not in self.filled or not column.missing.any():
            return None
        assert column.numbers is not None
        given = column.numbers[~column.missing]
        middle = float(np.median(given))
        if column.notation is not None and column.notation.kind == "flag":
            middle = float(given.mean() >= 0.5)
        lacking = int(column.missing.sum())
        notes.append(
            Note(
                "filled",
                f"{name!r} is missing in {lacking:,} row{'s' * (lacking != 1)}; the median "
                f"{middle:.10g} stands there, and '{name} missing' marks where",
                name,
            )
        )
        return middle

    def _texts(self, name: str) -> Sequence[str | None]:
        """The texts of a column; a missing one is a value of its own where it is filled in."""
        texts = self.frame.columns[name].texts
        if name not in self.filled:
            return texts
        return [MISSING_VALUE if text is None else text for text in texts]

    def categories(self, name: str) -> tuple[tuple[str, ...], str | None]:
        """The values of a text column that get a 0/1 column each, and the one of two that needs
        none.
        """
        texts = self._texts(name)
        distinct = sorted({text for text in texts if text is not None})
        # Many numbers with a few words among them: a typing error, or another way to write that a
        # value is missing. Codes of a few values are categories.
        words = {text for text in distinct if number(text) is None and text != MISSING_VALUE}
        rows = [row for row, text in enumerate(texts) if text in words]
        many_numbers = len(distinct) - len(words) > FEW_NUMBERS
        if (
            many_numbers
            and words
            and len(words) <= FEW_WORDS
            and len(rows) <= MISTYPED * len(texts)
        ):
            raise InvalidInput(
                f"{self.frame.source}: {name!r} holds numbers, and in {len(rows):,} of "
                f"{len(texts):,} rows {listed(sorted(map(repr, words)))} (line "
                f"{self.frame.lines[rows[0]]}).",
                hint="correct it; if it means that the value is missing, name it in missing; or "
                "leave the column out.",
                column=name,
                row=rows[0],
                remedies=("missing", "leave_out"),
            )
        if self.frame.may_name_people(name) and len(distinct) > MOST_CATEGORIES:
            raise InvalidInput(
                f"{self.frame.source}: {name!r} holds another text for each of "
                f"{len(distinct):,} people, such as {distinct[0]!r}; it seems to name them.",
                hint="say that it is the id, so that nobody may occur twice, or leave it out.",
                column=name,
                remedies=("id", "leave_out"),
            )
        if len(distinct) > MOST_CATEGORIES:
            raise InvalidInput(
                f"{self.frame.source}: the text column {name!r} has {len(distinct)} distinct "
                f"values, such as {min(words)!r}; at most {MOST_CATEGORIES} are encoded.",
                hint="leave it out, or join its values into fewer in the file: names and "
                "identifiers say nothing about a new person, and a rare value says little.",
                column=name,
                remedies=("leave_out",),
            )
        if len(distinct) == 2:
            return (distinct[1],), distinct[0]
        return tuple(distinct), None


def filled_numbers(frame: Frame, name: str, fill: float | None) -> list[FloatArray]:
    """The numbers of a column; where missing ones are filled in, also the 0/1 column that marks
    them.
    """
    if fill is None:
        return [frame.finite(name)]
    lacking = frame[name].missing
    values = np.full(len(frame), fill)
    if not lacking.all():
        values[~lacking] = frame.where(~lacking).finite(name)
    return [values, lacking.astype(np.float64)]


def _shown_names(column: TableColumn, made: RecipeColumn) -> tuple[ColumnName, ...]:
    """The names of the columns of numbers that a column becomes, with the words of its source."""
    if made.notation is None:
        return made.names
    assert column.numbers is not None
    given = column.numbers[~column.missing]
    first = made.names[0]
    if made.notation.kind == "date":
        first = ColumnName(made.name, date=True, whole=bool((given == np.floor(given)).all()))
    elif len(given) and ((given == 0) | (given == 1)).all():
        word: dict[float, str] = {0.0: "0", 1.0: "1"}
        if made.notation.kind == "flag":
            # As the source writes them, in the most frequent spelling.
            pairs = zip(column.numbers.tolist(), column.texts, strict=True)
            spelled = Counter((value, text) for value, text in pairs if text is not None)
            word |= {value: text for (value, text), _ in reversed(spelled.most_common())}
        no = f"{made.name} is {word[0.0]}"
        first = ColumnName(made.name, no=no, yes=f"{made.name} is {word[1.0]}")
    return (first, *made.names[1:])


def _listed_columns(head: str, columns: Sequence[str], number: int) -> str:
    """A headline, and a line for each of the first columns of so many."""
    more = [f"... and {number - len(columns):,} more"] if number > len(columns) else []
    return "\n  ".join([head, *columns, *more])
