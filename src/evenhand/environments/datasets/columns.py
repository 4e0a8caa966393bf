"""A CSV or Parquet file becomes columns of text here, and features, label, group and prices where
somebody asks for them.

Everything is read as text first; what a column means is said by the command line or a description,
and never guessed from its content. Hints name the options of the command line; a description (see
`described`) has keys of the same names.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from evenhand.errors import BadLabel, InvalidInput, MissingColumn
from evenhand.words import FloatArray, GroupArray, IntArray

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})
"""How a missing value is written (in any case)."""
MOST_CATEGORIES = 50
MOST_GROUPS = 30


@dataclass(frozen=True)
class TextTable:
    """Columns of text of equal length; `lines` are the line numbers of the rows in the file."""

    source: str
    columns: dict[str, tuple[str, ...]]
    lines: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str) -> tuple[str, ...]:
        """The column of that name; MissingColumn lists the ones there are."""
        self.require([name])
        return self.columns[name]

    def require(self, names: Sequence[str]) -> None:
        """All of `names` are columns of the table."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise MissingColumn(
                f"{self.source} has no column {', '.join(map(repr, missing))}; it has: {', '.join(self.columns)}.",
                hint="names are compared letter by letter, upper and lower case included.",
            )

    def keep(self, wanted: Callable[[int], bool]) -> "TextTable":
        """The rows whose position is wanted."""
        rows = [i for i in range(len(self)) if wanted(i)]
        columns = {name: tuple(values[i] for i in rows) for name, values in self.columns.items()}
        return TextTable(self.source, columns, tuple(self.lines[i] for i in rows))

    def missing(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """(row, column) of every missing value in `names`, row by row."""
        self.require(names)
        return [
            (i, name)
            for i in range(len(self))
            for name in names
            if self.columns[name][i].lower() in MISSING
        ]


def read_table(path: Path, delimiter: str = ",") -> TextTable:
    """Read a CSV file with a header line; ragged rows, repeated names and other encodings are
    refused.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True)
            numbered = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}).",
            hint="save it as UTF-8.",
        ) from error
    except (OSError, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read as CSV: {error}.") from error
    return _table(str(path), numbered, delimiter)


def read_parquet(path: Path) -> TextTable:
    """Read a Parquet file as text, with pyarrow; nulls are missing values."""
    try:
        import pyarrow  # type: ignore[import-untyped]  # optional, and without types
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidInput(
            f"{path} is a Parquet file, and pyarrow is not installed.",
            hint="pip install 'evenhand[study]', or save it as CSV.",
        ) from None
    try:
        found = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise InvalidInput(f"{path} cannot be read as Parquet: {error}.") from error
    if found.num_rows == 0:
        raise InvalidInput(f"{path} has no rows; a table needs at least one.")
    columns = {
        name: tuple("" if value is None else str(value) for value in column.to_pylist())
        for name, column in zip(found.column_names, found.columns, strict=True)
    }
    return TextTable(str(path), columns, tuple(range(1, found.num_rows + 1)))


def _table(source: str, numbered: list[tuple[int, list[str]]], delimiter: str) -> TextTable:
    if len(numbered) < 2:
        raise InvalidInput(
            f"{source} has {'only a header' if numbered else 'no lines'}; a table needs a header and at least one row."
        )
    header = numbered[0][1]
    _require_header(source, header, delimiter)
    for line, row in numbered[1:]:
        if len(row) != len(header):
            raise InvalidInput(
                f"line {line} of {source} has {len(row)} cells, the header has {len(header)}.",
                hint="check quotes and commas.",
            )
    columns = zip_longest(*(row for _, row in numbered[1:]))
    return TextTable(
        source, dict(zip(header, columns, strict=True)), tuple(line for line, _ in numbered[1:])
    )


def _require_header(source: str, header: list[str], delimiter: str) -> None:
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise InvalidInput(
            f"{source} has more than one column named {', '.join(map(repr, repeated))}.",
            hint="rename them.",
        )
    other = next(
        (mark for mark in (";", "\t", ",") if mark != delimiter and mark in header[0]), None
    )
    if len(header) == 1 and other:
        raise InvalidInput(
            f"{source} has one column, {header[0]!r}.",
            hint=f"is it separated by {other!r}? Then add --delimiter {other!r}.",
        )


def require_present(table: TextTable, names: Sequence[str]) -> None:
    """No value of `names` is missing; the first one is named."""
    gaps = table.missing(names)
    if gaps:
        row, name = gaps[0]
        rows = len({i for i, _ in gaps})
        raise InvalidInput(
            f"{table.source}: the value of {name!r} is missing in row {row + 1} (line {table.lines[row]}); "
            f"{rows} of {len(table)} rows lack a value in a column that is used.",
            hint="fill them in, leave the column out with --features, or add --drop-missing to leave these rows out.",
        )


def drop_missing(table: TextTable, names: Sequence[str]) -> TextTable:
    """The rows without a missing value in `names`."""
    incomplete = {row for row, _ in table.missing(names)}
    if len(incomplete) == len(table):
        raise InvalidInput(
            f"{table.source}: every row lacks a value in one of {', '.join(names)}.",
            hint="choose other --features.",
        )
    return table.keep(lambda row: row not in incomplete)


def number(text: str) -> float | None:
    """The number that a cell holds, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def labels(table: TextTable, name: str, good: str | None) -> tuple[IntArray, str]:
    """+1 where the outcome is the good one, -1 elsewhere; and the value taken as good."""
    values = table.column(name)
    distinct = sorted(set(values))
    good = (
        _zero_one(table, name, distinct)
        if good is None
        else _spelt(good, distinct, f"the label column {name!r}", "--good")
    )
    label = np.where(np.array(values) == good, 1, -1)
    if len(distinct) < 2:
        raise BadLabel(
            f"{table.source}: every row has {name} = {distinct[0]}; good and bad outcomes are both needed.",
            hint="name the column that holds the outcome, or add people with the other one.",
        )
    return label, good


def _zero_one(table: TextTable, name: str, distinct: list[str]) -> str:
    numbers = {number(value): value for value in distinct}
    if set(numbers) in ({0.0, 1.0}, {-1.0, 1.0}, {1.0}) and len(numbers) == len(distinct):
        return numbers[1.0]
    shown = ", ".join(distinct[:6]) + (", ..." if len(distinct) > 6 else "")
    raise BadLabel(
        f"{table.source}: the label column {name!r} holds {shown}; without --good it must hold 0 and 1, or -1 and 1 (1 is good).",
        hint=f"say which value is the good outcome, for example --good {distinct[-1]!r}.",
    )


def _spelt(value: str, distinct: list[str], where: str, option: str) -> str:
    """`value` as it is spelt in the table: equal text, or an equal number."""
    same = [
        v for v in distinct if v == value or (number(v) is not None and number(v) == number(value))
    ]
    if not same:
        shown = ", ".join(distinct[:10]) + (", ..." if len(distinct) > 10 else "")
        raise InvalidInput(
            f"{option} {value!r} does not occur in {where}; its values are: {shown}."
        )
    return same[0]


def groups(table: TextTable, name: str) -> GroupArray:
    """The group column as text."""
    values = table.column(name)
    distinct = len(set(values))
    if distinct > MOST_GROUPS:
        raise InvalidInput(
            f"{table.source}: the group column {name!r} has {distinct} distinct values; at most {MOST_GROUPS} groups are compared.",
            hint="name the column that holds the group, or choose two of its values with --groups a,b.",
        )
    return np.array(values)


def keep_groups(table: TextTable, name: str, wanted: Sequence[str]) -> TextTable:
    """The rows of the wanted groups."""
    values = table.column(name)
    chosen = {
        _spelt(value, sorted(set(values)), f"the group column {name!r}", "--groups")
        for value in wanted
    }
    return table.keep(lambda row: values[row] in chosen)


def numbers(table: TextTable, name: str) -> FloatArray:
    """One column as finite numbers."""
    found = [number(text) for text in table.column(name)]
    bad = next(
        (i for i, value in enumerate(found) if value is None or not np.isfinite(value)), None
    )
    if bad is not None:
        text = table.columns[name][bad]
        raise InvalidInput(
            f"{table.source}: {name!r} holds {text!r} in row {bad + 1} (line {table.lines[bad]}); it must be a finite number."
        )
    return np.array(found, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Features:
    """The feature matrix with the names of its columns, and which text columns became which 0/1
    columns.
    """

    values: FloatArray
    names: tuple[str, ...]
    encoded: dict[str, tuple[str, ...]]


def features(table: TextTable, names: Sequence[str], encode: bool) -> Features:
    """Numeric columns as they are; text columns refused, or one 0/1 column per value with `encode`."""
    table.require(names)
    text = [name for name in names if any(number(value) is None for value in table.columns[name])]
    if text and not encode:
        raise InvalidInput(
            f"{table.source}: {_shown(table, text)} not numeric.",
            hint="add --encode for one 0/1 column per value, or choose numeric columns with --features.",
        )
    parts: dict[str, FloatArray] = {}
    encoded: dict[str, tuple[str, ...]] = {}
    for name in names:
        columns = _one_hot(table, name) if name in text else {name: numbers(table, name)}
        parts |= columns
        if name in text:
            encoded[name] = tuple(columns)
    return Features(np.column_stack(list(parts.values())), tuple(parts), encoded)


def _shown(table: TextTable, names: list[str]) -> str:
    examples = (
        f"{name!r} (for example {next(v for v in table.columns[name] if number(v) is None)!r})"
        for name in names
    )
    return f"{', '.join(examples)} {'is' if len(names) == 1 else 'are'}"


def _one_hot(table: TextTable, name: str) -> dict[str, FloatArray]:
    """{"purpose=car": 0/1, ...}; of two values one says everything."""
    values = np.array(table.columns[name])
    distinct = sorted(set(values.tolist()))
    if len(distinct) > MOST_CATEGORIES:
        raise InvalidInput(
            f"{table.source}: the text column {name!r} has {len(distinct)} distinct values; --encode takes at most {MOST_CATEGORIES}.",
            hint="leave it out with --features; names and identifiers say nothing about a new person.",
        )
    told = distinct[1:] if len(distinct) == 2 else distinct
    return {f"{name}={value}": (values == value).astype(np.float64) for value in told}
