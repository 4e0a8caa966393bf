"""A file of rows, or a data frame of another library, becomes a `Frame` here and nowhere else.

CSV is read with the standard library. Parquet needs pyarrow and data frames need narwhals (`pip
install 'evenhand[tables]'`); both are imported where they are used.
"""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from evenhand.errors import InvalidInput
from evenhand.tables.frame import MISSING, Frame, TableColumn

PARQUET = (".parquet", ".pq")


def read_frame(
    source: Any,
    delimiter: str = ",",
    missing: Iterable[str] | None = None,
    format: Literal["csv", "parquet"] | None = None,
) -> Frame:
    """Read rows as typed columns.

    Parameters
    ----------
    source : path or data frame
        A CSV file with a header line, a Parquet file (.parquet, .pq), or a frame of pandas, polars
        or pyarrow.
    delimiter : str
        What separates the cells of a CSV; "\\t" written out means a tab.
    missing : iterable of str, optional
        The texts that mean that a value is missing, in any case, instead of the usual ones
        (`MISSING`). An empty cell is missing in any case.
    format : {"csv", "parquet"}, optional
        What a file is; by default the suffix says it.

    Returns
    -------
    Frame
        The columns by name.

    Raises
    ------
    InvalidInput
        If the file cannot be read, has no rows, has rows of unequal length, or names a column
        twice.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "loans.csv"
    >>> _ = path.write_text("income,sex\\n10,f\\n,m\\n")
    >>> frame = read_frame(path)
    >>> frame["income"].kind, frame["income"].texts, frame["sex"].kind
    ('number', ('10', None), 'category')
    """
    markers = MISSING if missing is None else frozenset(m.strip().lower() for m in missing) | {""}
    if not isinstance(source, str | Path):
        return _from_library(source, "the frame", markers)
    path = Path(source)
    if format == "parquet" or (format is None and path.suffix.lower() in PARQUET):
        pyarrow, parquet = import_pyarrow(f"{path}: Parquet")
        try:
            rows = parquet.read_table(path)
        except (OSError, pyarrow.ArrowInvalid) as error:
            raise InvalidInput(f"{path} cannot be read as Parquet: {error}.") from error
        return _from_library(rows, str(path), markers)
    return _from_csv(path, delimiter.replace("\\t", "\t"), markers)


def _from_csv(path: Path, delimiter: str, markers: frozenset[str]) -> Frame:
    if len(delimiter) != 1:
        raise InvalidInput(
            f"--delimiter is {delimiter!r}; it is one character.", hint="',' or ';' or '\\t'."
        )
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True)
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}).",
            hint="save it as UTF-8.",
        ) from error
    except (OSError, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read as CSV: {error}.") from error
    if len(rows) < 2:
        raise InvalidInput(
            f"{path} has {'only a header' if rows else 'no lines'}; "
            "a table needs a header and at least one row."
        )
    header = rows.pop(0)[1]
    _require_names(str(path), header)
    other = next((m for m in (";", "\t", ",") if m != delimiter and m in header[0]), None)
    if len(header) == 1 and other:
        raise InvalidInput(
            f"{path} has one column, {header[0]!r}.",
            hint=f"is it separated by {other!r}? Then add --delimiter {other!r}.",
        )
    for line, row in rows:
        if len(row) != len(header):
            raise InvalidInput(
                f"line {line} of {path} has {len(row)} cells, the header has {len(header)}.",
                hint="check quotes and commas.",
            )
    cells = zip(*(row for _, row in rows), strict=True)
    columns = {
        name: TableColumn(column, markers) for name, column in zip(header, cells, strict=True)
    }
    return Frame(str(path), columns, tuple(line for line, _ in rows))


def _require_names(source: str, names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInput(
            f"{source} has more than one column named {', '.join(map(repr, repeated))}.",
            hint="rename them.",
        )


def import_pyarrow(what: str) -> tuple[Any, Any]:
    """Import pyarrow, which is optional.

    Parameters
    ----------
    what : str
        What needs it, for the message.

    Returns
    -------
    tuple of modules
        `pyarrow` and `pyarrow.parquet`.

    Raises
    ------
    InvalidInput
        If it is not installed.

    Examples
    --------
    >>> pyarrow, parquet = import_pyarrow("this example")
    >>> pyarrow.table({"x": [1, 2]}).num_rows
    2
    """
    try:
        import pyarrow  # type: ignore[import-untyped]  # optional, and without types
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidInput(
            f"{what} needs the package pyarrow, which is not installed.",
            hint="pip install 'evenhand[tables]', or use CSV.",
        ) from None
    return pyarrow, pyarrow.parquet


def _from_library(given: Any, source: str, markers: frozenset[str]) -> Frame:
    """A frame of pandas, polars or pyarrow: numbers without gaps stay arrays, the rest becomes a
    list with None where a value is missing.
    """
    try:
        import narwhals
    except ImportError:
        raise InvalidInput(
            f"{source} needs the package narwhals, which is not installed.",
            hint="pip install 'evenhand[tables]', or use CSV.",
        ) from None
    try:
        frame = narwhals.from_native(given, eager_only=True)
    except TypeError:
        raise InvalidInput(
            f"a table is a file or a data frame, and not a {type(given).__name__}.",
            hint="pass a path, or a frame of pandas, polars or pyarrow.",
        ) from None
    _require_names(source, [str(name) for name in frame.columns])
    if len(frame) == 0:
        raise InvalidInput(f"{source} has no rows; a table needs at least one.")
    columns = {}
    for name in frame.columns:
        series = frame[name]
        empty = series.is_null()
        if series.dtype.is_float() or (series.dtype.is_integer() and not empty.any()):
            cells = series.to_numpy()
        else:
            pairs = zip(series.to_list(), empty.to_list(), strict=True)
            cells = tuple(None if gap else value for value, gap in pairs)
        columns[str(name)] = TableColumn(cells, markers)
    return Frame(source, columns, range(1, len(frame) + 1))
