"""A file of rows, or a data frame of another library, becomes a `Frame` here and nowhere else.

CSV and JSON lines are read with the standard library, packed by gzip, bzip2 or xz or not; long CSV
files with pyarrow, where it is installed, to the same cells. Parquet needs pyarrow, data frames
need narwhals, and Excel sheets need python-calamine (all in the extra `tables`); each is imported
where it is used.
"""

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput, install_hint
from evenhand.tables.column import DATES, MISSING, Cells, NumberFormat, TableColumn, with_one_mark
from evenhand.tables.frame import Frame, Note

Format = Literal["csv", "parquet", "jsonl", "excel"]
SUFFIXES: dict[str, Format] = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls"), "excel"),
}
"""What a file is by the end of its name; everything else is CSV."""
MAGIC: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"PK\x03\x04": "excel",
    b"\xd0\xcf\x11\xe0": "excel",
}
OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument"
"""What such a file begins with, after the head of its first entry."""
PACKED: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
}
BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
DELIMITERS = (",", ";", "\t", "|")
HEAD = 100_000
"""Letters of a file that show its delimiter."""
CHUNK = 50_000
"""Rows that are read at once; the cells of longer tables are kept as compact arrays of bytes."""
WIDEST = 32
"""Bytes of a cell in such an array at most; a column with a longer cell is kept as texts."""
LONG = 4_000_000
"""Bytes from which on a CSV is read with pyarrow, where it is installed."""
ARROW_BLOCK = 1 << 22
"""Bytes that pyarrow reads at a time."""
ASCII_BLANKS = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
"""What `str.strip` takes away, of ASCII."""


@dataclass(frozen=True)
class FileReading:
    """What a reader knows about a file, beyond what the file says itself.

    Parameters
    ----------
    delimiter : str, optional
        What separates the cells of a CSV; by default what the first lines show.
    encoding : str, optional
        How its text is encoded; by default UTF-8, or what a byte order mark says.
    decimal : {".", ","}, optional
        What stands before decimals; by default what the columns show.
    dates : {"day-first", "month-first", "text"}, optional
        How dates like 3/4/2021 are written; "text" leaves all dates alone.
    missing : tuple of str, optional
        The texts that mean that a value is missing, instead of the usual ones.
    header : bool
        Whether the first line holds the names of the columns.
    skip_lines : int
        Lines (rows of a sheet) before that.
    sheet : str, optional
        Which sheet of an Excel file.
    format : {"csv", "parquet", "jsonl", "excel"}, optional
        What a file is; by default its first bytes or its name say it.

    Examples
    --------
    >>> FileReading(delimiter="tab").delimiter
    '\\t'
    >>> FileReading(decimal=";")
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: decimal is ';'; it is '.' or ','. Hint: leave it out, and the
    columns themselves show it where they can.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    dates: str | None = None
    missing: tuple[str, ...] | None = None
    header: bool = True
    skip_lines: int = 0
    sheet: str | None = None
    format: Format | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            named = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
            object.__setattr__(self, "delimiter", named.get(self.delimiter, self.delimiter))
            if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
                raise InvalidInput(
                    f"delimiter is {self.delimiter!r}",
                    requirement="it is one character",
                    hint="',' or ';' or '|' or tab.",
                    argument="delimiter",
                )
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise InvalidInput(
                    f"encoding {self.encoding!r} is unknown.",
                    hint="for example utf-8, utf-16, cp1252 (Western Europe), cp1250, shift_jis.",
                    argument="encoding",
                ) from None
        if self.decimal not in (None, ".", ","):
            raise InvalidInput(
                f"decimal is {self.decimal!r}",
                requirement="it is '.' or ','",
                hint="leave it out, and the columns themselves show it where they can.",
                argument="decimal",
            )
        if self.dates not in (None, *DATES):
            raise InvalidInput(
                f"dates is {self.dates!r}",
                requirement=f"it is {', '.join(DATES[:-1])} or {DATES[-1]}",
                argument="dates",
            )
        if self.skip_lines < 0:
            raise InvalidInput(
                f"skip_lines is {self.skip_lines}",
                requirement="it is at least 0",
                argument="skip_lines",
            )

    @property
    def markers(self) -> frozenset[str]:
        """What means that a value is missing, in small letters."""
        if self.missing is None:
            return MISSING
        return frozenset(marker.strip().lower() for marker in self.missing) | {""}


def read_frame(
    source: object,
    delimiter: str | None = None,
    missing: Iterable[str] | None = None,
    format: Format | None = None,
    **more: Any,
) -> Frame:
    """Read rows as typed columns.

    Parameters
    ----------
    source : path or data frame
        A CSV file, a Parquet file (.parquet, .pq), JSON lines (.jsonl, .ndjson, .json), a sheet of
        Excel (.xlsx, .xls), each packed (.gz, .bz2, .xz) or not; or a frame of pandas, polars or
        pyarrow.
    delimiter : str, optional
        What separates the cells of a CSV; by default what the first lines show.
    missing : iterable of str, optional
        The texts that mean that a value is missing, in any case, instead of the usual ones
        (`MISSING`). An empty cell is missing in any case.
    format : {"csv", "parquet", "jsonl", "excel"}, optional
        What a file is; by default its first bytes or its name say it.
    **more
        Further fields of `FileReading`: encoding, decimal, dates, header, skip_lines, sheet.

    Returns
    -------
    Frame
        The columns by name.

    Raises
    ------
    InvalidInput
        If the file cannot be read, has no rows or has rows of unequal length.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "loans.csv"
    >>> _ = path.write_text("income;sex\\n$10,500;f\\n;m\\n")
    >>> frame = read_frame(path)
    >>> frame["income"].kind, frame["income"].numbers.tolist(), frame["sex"].kind
    ('number', [10500.0, nan], 'category')
    """
    given = None if missing is None else tuple(missing)
    how = FileReading(delimiter=delimiter, missing=given, format=format, **more)
    if not isinstance(source, str | Path):
        return _from_library(source, "the frame", how)
    path = Path(source)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
    name = path.name.lower()
    for magic, unpack in PACKED.items():
        if raw.startswith(magic):
            try:
                raw = unpack(raw)
                name = name.rpartition(".")[0]
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise InvalidInput(f"{path} cannot be unpacked: {error}.") from error
    if OPEN_DOCUMENT in raw[:100] or name.endswith(".ods"):
        raise InvalidInput(
            f"{path} is an OpenDocument file, which is not read.", hint="save it as .xlsx or .csv."
        )
    shown = next((kind for magic, kind in MAGIC.items() if raw.startswith(magic)), None)
    kind = format or shown or SUFFIXES.get(Path(name).suffix, "csv")
    readers = {
        "csv": from_csv,
        "jsonl": _from_json,
        "parquet": _from_parquet,
        "excel": _from_excel,
    }
    return readers[kind](raw, str(path), how)


# text: CSV and JSON lines


def _decoded(raw: bytes, source: str, encoding: str | None) -> str:
    """The text of a file; an encoding that nothing states raises an error, and is never guessed."""
    marked = next((name for bom, name in BOMS.items() if raw.startswith(bom)), None)
    if encoding and codecs.lookup(encoding).name == "utf-8":
        encoding = "utf-8-sig"
    elif encoding and marked and codecs.lookup(encoding).name.startswith(marked[:6]):
        encoding = marked
    chosen = encoding or marked or "utf-8"
    try:
        text = raw.decode(chosen)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        if encoding or marked:
            raise InvalidInput(
                f"{source} is not {chosen} text ({error.reason} at byte {error.start}, "
                f"line {line}).",
                hint="name another encoding, such as utf-8 or cp1252.",
                argument="encoding",
            ) from error
        begin = (
            max(raw.rfind(mark, 0, error.start) for mark in (b"\n", b",", b";", b"\t", b"|")) + 1
        )
        word = re.split(rb"[,;\t|\r\n]", raw[begin : error.start + 30])[0]
        shown = word.decode("cp1252", errors="replace").strip()[:30]
        raise InvalidInput(
            f"{source} is not UTF-8 text ({error.reason} at byte {error.start}, line {line}).",
            hint=f"name its encoding: in cp1252 (Western Europe, Latin-1) the place reads "
            f"{shown!r}.",
            argument="encoding",
        ) from error
    if "\0" in text[:4096]:
        raise InvalidInput(
            f"{source} holds zero bytes, which no text has.",
            hint="if it is UTF-16, its encoding is utf-16-le or utf-16-be.",
            argument="encoding",
        )
    return text


def _from_long_csv(raw: bytes, source: str, how: FileReading) -> Frame | None:
    """A long CSV, read by pyarrow in a sixth of the time; None where the csv module must read it.

    Both readers give the same frame. What they would read differently (quotes, empty lines, other
    encodings) and what is wrong with a file is left to the csv module, which has the messages.
    """
    if len(raw) < LONG or how.skip_lines or not how.header or how.encoding:
        return None
    if b'"' in raw or b"\0" in raw or raw.startswith(tuple(BOMS)):
        return None
    end = raw.find(b"\n")
    if end < 0:
        return None
    try:
        first_line = raw[:end].decode().removesuffix("\r")
    except UnicodeDecodeError:
        return None
    if not first_line.strip() or "\r" in first_line:
        return None
    # A letter takes at most four bytes, so this has HEAD letters if the file has.
    head = raw[: 4 * HEAD + 4].decode(errors="ignore")
    delimiter = how.delimiter or _delimiter(head, source)
    header = next(csv.reader([first_line], delimiter=delimiter, skipinitialspace=True))
    if not _filled(header) or not delimiter.isascii():
        return None
    columns = _arrow_columns(raw, end + 1, delimiter, len(header))
    if columns is None:
        return None
    names = [" ".join(cell.split()) for cell in header]
    lines = range(2, len(columns[0]) + 2)
    known = NumberFormat(how.decimal, how.dates, "." if delimiter == "," else "")
    return _named(source, names, columns, lines, how, known)


def _arrow_columns(raw: bytes, start: int, delimiter: str, width: int) -> list[Cells] | None:
    """The columns of raw[start:], with the cells as texts; None without pyarrow, without rows, and
    where a line is empty or not of this width.
    """
    try:
        import pyarrow  # type: ignore[import-untyped]  # optional, and without types
        import pyarrow.compute  # type: ignore[import-untyped]
        import pyarrow.csv  # type: ignore[import-untyped]
    except ImportError:
        return None
    # Two columns of a file may have one name, so pyarrow gets names of ours.
    names = [str(place) for place in range(width)]
    parts: list[list[Cells]] = [[] for _ in names]
    try:
        batches = pyarrow.csv.open_csv(
            pyarrow.BufferReader(pyarrow.py_buffer(raw).slice(start)),
            read_options=pyarrow.csv.ReadOptions(column_names=names, block_size=ARROW_BLOCK),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, quote_char=False, ignore_empty_lines=False
            ),
            # No cell is turned into a number or a null here: TableColumn reads the texts.
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False
            ),
        )
        for batch in batches:
            empty = np.ones(len(batch), dtype=bool)
            for part, column in zip(parts, batch.columns, strict=True):
                cells = _arrow_cells(column, pyarrow.compute)
                part.append(cells)
                if isinstance(cells, tuple):
                    # typed, for pyarrow may hand over a batch without rows
                    empty &= np.array([not cell for cell in cells], dtype=bool)
                else:
                    empty &= cells == b""
            if empty.any():
                return None
    except pyarrow.ArrowInvalid:
        return None
    if not parts[0]:
        return None
    columns: list[Cells] = []
    while parts:  # the parts of a column are let go as soon as it is whole
        columns.append(_joined(parts.pop(0)))
    return columns


def _arrow_cells(column: Any, compute: Any) -> Cells:
    """The cells of a pyarrow column of strings without blanks around them: short ASCII texts as an
    array of bytes, others as a tuple.
    """
    if not compute.all(compute.string_is_ascii(column)).as_py():
        return tuple(cell.strip() for cell in column.to_pylist())
    trimmed = compute.ascii_trim(column, ASCII_BLANKS)
    widest = max(compute.max(compute.binary_length(trimmed)).as_py() or 0, 1)
    if widest > WIDEST:
        return tuple(trimmed.to_pylist())
    # Cells of equal width stand one after another in pyarrow's buffer, as in an array of bytes.
    padded = compute.ascii_rpad(trimmed, widest, "\0")
    return np.frombuffer(padded.buffers()[2], dtype=f"S{widest}", count=len(padded))


def from_csv(raw: bytes, source: str, how: FileReading) -> Frame:
    """The columns of a CSV file; `source` is what messages call it."""
    plain = _from_long_csv(raw, source, how)
    if plain is not None:
        return plain
    text = _decoded(raw, source, how.encoding)
    for _ in range(how.skip_lines):
        text = text.partition("\n")[2]
    delimiter = how.delimiter or _delimiter(text, source)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    before = how.skip_lines
    try:
        header = next((row for row in reader if _filled(row)), None)
        if header is None or (how.header and not text[:1]):
            raise InvalidInput(
                f"{source} has no lines; a table needs a header and at least one row."
            )
        first = [] if how.header else [(reader.line_num + before, header)]
        width = len(header)
        rows: Iterator[tuple[int, list[str]]] = (
            (reader.line_num + before, row) for row in reader if _filled(row)
        )
        columns, lines = _columns(chain(first, rows), width, source)
    except csv.Error as error:
        raise InvalidInput(
            f"line {reader.line_num + before} of {source} cannot be read as CSV: {error}.",
            hint="check its quotes, or name another delimiter.",
            argument="delimiter",
        ) from error
    if not lines:
        raise InvalidInput(
            f"{source} has only a header; a table needs a header and at least one row.",
            hint="if the only line is a person, there is no header.",
            argument="header",
        )
    names = [" ".join(cell.split()) for cell in header] if how.header else None
    known = NumberFormat(how.decimal, how.dates, "." if delimiter == "," else "")
    return _named(source, names, columns, lines, how, known)


def _filled(row: list[str]) -> bool:
    """Whether a line has a cell that is not empty; Excel writes lines of delimiters alone."""
    return any(row) and any(cell.strip() for cell in row)


def _delimiter(text: str, source: str) -> str:
    """What separates the cells of the first lines, all of which then have the same number."""
    head = text[:HEAD]
    widths: dict[str, Counter[int]] = {}
    for mark in DELIMITERS:
        reader = csv.reader(io.StringIO(head, newline=""), delimiter=mark, skipinitialspace=True)
        try:
            counts = [len(row) for row in islice(reader, 200) if _filled(row)]
        except csv.Error:
            continue
        whole = len(text) == len(head) and len(counts) < 200
        widths[mark] = Counter(counts if whole or len(counts) < 2 else counts[:-1])
    several = {mark: counts for mark, counts in widths.items() if max(counts, default=0) > 1}
    even = [mark for mark, counts in several.items() if len(counts) == 1]
    if len(even) == 1:
        return even[0]
    if even:
        shown = " or ".join("tab" if mark == "\t" else repr(mark) for mark in even)
        raise InvalidInput(
            f"the cells of {source} may be separated by {shown}: each gives lines of equal length.",
            hint="name the right one as the delimiter.",
            argument="delimiter",
        )
    return max(several, key=lambda mark: several[mark].most_common(1)[0], default=",")


def _columns(
    rows: Iterator[tuple[int, list[str]]], width: int, source: str
) -> tuple[list[Cells], Sequence[int]]:
    """The cells column by column, and the line of each row."""
    lines: list[int] = []
    parts: list[list[Cells]] = [[] for _ in range(width)]
    while chunk := list(islice(rows, CHUNK)):
        for line, row in chunk:
            if len(row) != width:
                raise InvalidInput(
                    f"line {line} of {source} has {len(row)} cells, the header has {width}.",
                    hint="check quotes and delimiters there; skip the lines above the header "
                    "(skip_lines), or name another delimiter.",
                    remedies=("skip_lines", "delimiter"),
                )
        lines += [line for line, _ in chunk]
        for part, cells in zip(parts, zip(*(row for _, row in chunk), strict=True), strict=True):
            part.append(tuple(cell.strip() for cell in cells))
            for place, some in enumerate(part if len(lines) > CHUNK else ()):
                # short ASCII texts of a long table take a tenth of the space as an array of bytes
                if isinstance(some, tuple) and len(max(some, key=len, default="")) <= WIDEST:
                    with contextlib.suppress(UnicodeEncodeError):
                        part[place] = np.array(some, dtype="S")
    return [_joined(part) for part in parts], tuple(lines)


def _joined(parts: list[Cells]) -> Cells:
    """The parts of a column as one: an array of bytes if all parts are, else a tuple of texts."""
    if not parts:
        return ()
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(cells, np.ndarray) for cells in parts):
        return np.concatenate(parts)
    texts: list[str] = []
    for cells in parts:
        if isinstance(cells, np.ndarray):
            texts += [cell.decode() for cell in cells.tolist()]
        else:
            texts += cells
    return tuple(texts)


def _from_json(raw: bytes, source: str, how: FileReading) -> Frame:
    text = _decoded(raw, source, how.encoding)
    objects: list[Json] = []
    lines: list[int] = []
    try:
        if text.lstrip()[:1] == "[":
            objects = json.loads(text)
            lines = list(range(1, len(objects) + 1))
        else:
            for place, line in enumerate(text.splitlines(), 1):
                if line.strip():
                    objects.append(json.loads(line))
                    lines.append(place)
    except json.JSONDecodeError as error:
        place = len(lines) + 1
        raise InvalidInput(
            f"line {place} of {source} is no JSON: {error}.",
            hint="JSON lines hold one object per line; a .json file may hold a list of objects.",
        ) from error
    if not objects:
        raise InvalidInput(f"{source} has no lines; a table needs at least one row.")
    for place, row in zip(lines, objects, strict=True):
        if not isinstance(row, dict):
            raise InvalidInput(
                f"line {place} of {source} is a {type(row).__name__}; every line is one object."
            )
        nested = next((key for key, cell in row.items() if isinstance(cell, dict | list)), None)
        if nested is not None:
            raise InvalidInput(
                f"{nested!r} in line {place} of {source} is a {type(row[nested]).__name__}; "
                "a cell is a number, a text, true, false or null.",
                hint="write its parts as columns of their own.",
            )
    names = list({name: None for row in objects for name in row})
    columns = [tuple(row.get(name) for row in objects) for name in names]
    known = NumberFormat(how.decimal, how.dates)
    return replace(_named(source, names, columns, lines, how, known), typed=True)


# names


def _named(
    source: str,
    names: list[str] | None,
    columns: Sequence[Cells],
    lines: Sequence[int],
    how: FileReading,
    known: NumberFormat,
) -> Frame:
    """The frame, with a name for every column; what was done to the names is noted."""
    notes: list[Note] = []
    given = names or [f"column{place}" for place in range(1, len(columns) + 1)]
    kept: dict[str, Cells] = {}
    for place, (name, cells) in enumerate(zip(given, columns, strict=True), 1):
        if name.strip() and not re.fullmatch(r"Unnamed: \d+(_level_\d+)?", name):
            twins = [other for other in range(len(given)) if given[other] == name]
            if len(twins) > 1:
                name = f"{name}.{twins.index(place - 1) + 1}"
        elif TableColumn(cells, how.markers).missing.all():
            continue  # lines that end in a delimiter
        elif (read := TableColumn(cells).numbers) is not None and any(
            (read == np.arange(first, len(read) + first)).all() for first in (0, 1)
        ):
            text = f"column {place} has no name and counts the rows; it was left out"
            notes.append(Note("columns", text))
            continue
        else:
            name = f"column{place}"
            notes.append(Note("columns", f"column {place} has no name; it is called {name}"))
        kept[name] = cells
    for name in sorted({name for name in given if name.strip() and given.count(name) > 1}):
        several = ", ".join(f"{name}.{place + 1}" for place in range(given.count(name)))
        text = f"several columns are named {name!r}; they are called {several}"
        notes.append(Note("columns", text))
    if not kept:
        raise InvalidInput(f"{source} has no column with a value.")
    frame = {name: TableColumn(cells, how.markers, known) for name, cells in kept.items()}
    return Frame(source, with_one_mark(frame, known), lines, tuple(notes))


# other packages


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
        import pyarrow
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise _not_installed(what, "pyarrow") from None
    return pyarrow, pyarrow.parquet


def _not_installed(what: str, package: str) -> InvalidInput:
    return InvalidInput(
        f"{what} needs the package {package}, which is not installed.",
        hint=f"{install_hint('tables')}; or use CSV.",
    )


def _from_parquet(raw: bytes, source: str, how: FileReading) -> Frame:
    pyarrow, parquet = import_pyarrow(f"{source}: Parquet")
    try:
        rows = parquet.read_table(pyarrow.BufferReader(raw))
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise InvalidInput(
            f"{source} cannot be read as Parquet: {str(error).rstrip('.')}.",
            hint="write it again, or give it as CSV.",
        ) from error
    kept_by_pandas = (rows.schema.pandas_metadata or {}).get("index_columns", [])
    nameless = [x for x in kept_by_pandas if isinstance(x, str) and x.startswith("__index_level_")]
    rows = rows.drop_columns([name for name in nameless if name in rows.column_names])
    return _from_library(rows, source, how)


def _from_excel(raw: bytes, source: str, how: FileReading) -> Frame:
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise _not_installed(f"{source}: Excel", "python-calamine") from None
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(raw))
        if how.sheet is not None and how.sheet not in book.sheet_names:
            raise InvalidInput(
                f"{source} has no sheet {how.sheet!r}; it has: {', '.join(book.sheet_names)}.",
                argument="sheet",
            )
        chosen = book.sheet_names if how.sheet is None else [how.sheet]
        sheets = {name: book.get_sheet_by_name(name).to_python() for name in chosen}
    except (CalamineError, OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{source} cannot be read as an Excel file: {error}.",
            hint="if it is a packed folder, unpack it first.",
        ) from error
    filled = {name: rows for name, rows in sheets.items() if any(map(_filled_row, rows))}
    if len(filled) > 1:
        raise InvalidInput(
            f"{source} has {len(filled)} sheets with rows: {', '.join(filled)}.",
            hint=f"choose one sheet, for example {next(iter(filled))!r}.",
            argument="sheet",
        )
    rows = next(iter(filled.values()), [])[how.skip_lines :]
    numbered = [(i, row) for i, row in enumerate(rows, how.skip_lines + 1) if _filled_row(row)]
    if len(numbered) < (2 if how.header else 1):
        raise InvalidInput(
            f"{source} has {'only a header' if numbered else 'no rows'}; "
            "a table needs a header and at least one row."
        )
    names = None
    if how.header:
        names = [" ".join(str(cell).split()) for cell in numbered.pop(0)[1]]
    cells = zip(*(row for _, row in numbered), strict=True)
    columns = [tuple(None if cell == "" else cell for cell in column) for column in cells]
    lines = [line for line, _ in numbered]
    return _named(source, names, columns, lines, how, NumberFormat(how.decimal, how.dates))


def _filled_row(row: Sequence[object]) -> bool:
    return any(cell is not None and cell != "" for cell in row)


def _from_library(given: Any, source: str, how: FileReading) -> Frame:
    """A frame of pandas, polars or pyarrow: numbers without gaps stay arrays, the rest becomes a
    list with None where a value is missing.
    """
    try:
        import narwhals
    except ImportError:
        raise _not_installed(source, "narwhals") from None
    try:
        frame = narwhals.from_native(given, eager_only=True)
    except TypeError:
        raise InvalidInput(
            f"a table is a file or a data frame, and not a {type(given).__name__}.",
            hint="pass a path, or a frame of pandas, polars or pyarrow.",
        ) from None
    except narwhals.exceptions.DuplicateError as error:
        raise InvalidInput(
            f"{source} has more than one column of the same name: {error}.", hint="rename them."
        ) from error
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise InvalidInput(
            f"{source} has more than one column named {', '.join(map(repr, repeated))}.",
            hint="rename them.",
        )
    if len(frame) == 0:
        raise InvalidInput(f"{source} has no rows; a table needs at least one.")
    columns: list[Cells] = []
    for name in frame.columns:
        series = frame[name]
        empty = series.is_null()
        if series.dtype.is_float() or (series.dtype.is_integer() and not empty.any()):
            columns.append(series.to_numpy())
        else:
            pairs = zip(series.to_list(), empty.to_list(), strict=True)
            columns.append(tuple(None if gap else value for value, gap in pairs))
    lines = range(1, len(frame) + 1)
    known = NumberFormat(how.decimal, how.dates)
    return replace(_named(source, names, columns, lines, how, known), typed=True)
