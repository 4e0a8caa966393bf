"""A result as a file, whose ending decides the medium."""

import csv
import json
from collections.abc import Callable
from datetime import date
from math import isfinite
from pathlib import Path

from evenhand.errors import InvalidInput
from evenhand.media.card import card
from evenhand.media.document import document
from evenhand.media.drawing import require, save_figure
from evenhand.media.frames import columns_of, first_table
from evenhand.media.page import page
from evenhand.media.plots import figure
from evenhand.result import Result


def save(result: Result, path: Path | str, made: date | None = None) -> None:
    """Write a result to a file.

    Parameters
    ----------
    result : Result
        What is said.
    path : path
        The file; one of `ENDINGS` decides the medium.
    made : datetime.date, optional
        When it was made; today by default.

    Raises
    ------
    InvalidInput
        If it has another ending, or what is said has no table or no figure to write.
    EvenhandError
        If a package is missing.
    """
    where = Path(path)
    ending = where.suffix.lower()
    require_writers(where)
    if ending in PICTURES:
        if not result.figures:
            raise InvalidInput(f"there is no figure in what is said of {result.title}.")
        save_figure(figure(result), where)
    elif ending in TABLES:
        TABLES[ending](result, where)
    else:
        # The text is whole before the file is touched.
        text = TEXTS[ending](result, made)
        where.write_text(text, encoding="utf-8")


def require_writers(path: Path) -> None:
    """Raise an error if the file cannot be written: before the work, not after.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    InvalidInput
        If its ending is none of `ENDINGS`.
    EvenhandError
        If a package is missing.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidInput(
            f"{path} has an ending that decides nothing.",
            hint=f"known endings: {', '.join(ENDINGS)}.",
            argument="out",
        )
    require(*PACKAGES.get(ending, ()))


def _json(result: Result, _: date | None) -> str:
    return json.dumps(document(result), indent=1, allow_nan=False) + "\n"


def _csv(result: Result, path: Path) -> None:
    columns = columns_of(first_table(result))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _parquet(result: Result, path: Path) -> None:
    from pyarrow import parquet, table  # type: ignore[import-untyped, unused-ignore]

    parquet.write_table(table(columns_of(first_table(result))), path)


def _sheets(result: Result, path: Path) -> None:
    """All tables, a sheet for each."""
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for one in result.tables or (first_table(result),):
        sheet = book.create_sheet(one.key[:LONGEST_SHEET])
        columns = columns_of(one)
        sheet.append(list(columns))
        for row in zip(*columns.values(), strict=True):
            sheet.append([_sheet_cell(value) for value in row])
    book.save(path)


def _sheet_cell(value: str | float | None) -> str | float | None:
    """Infinity is no number of a workbook, control characters are no text of one, and a text that
    begins like a formula must not become one.
    """
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, str):
        value = "".join(letter for letter in value if letter.isprintable())
        return f"'{value}" if value.startswith("=") else value
    return value


TEXTS: dict[str, Callable[[Result, date | None], str]] = {
    ".html": page,
    ".md": card,
    ".json": _json,
}
TABLES: dict[str, Callable[[Result, Path], None]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".xlsx": _sheets,
}
LONGEST_SHEET = 31
PICTURES = (".svg", ".png", ".pdf")
ENDINGS = (*TEXTS, *TABLES, *PICTURES)
"""A page, a card, a document; the first table, or all in a workbook; the figures."""
PACKAGES: dict[str, tuple[str, ...]] = {
    ".html": ("matplotlib",),
    ".parquet": ("pyarrow",),
    ".xlsx": ("openpyxl",),
    **dict.fromkeys(PICTURES, ("matplotlib",)),
}
