"""What the media for people share: parts of tables in words, and what stands below them."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version

from evenhand.result import WORDS, Cell, Column, Result, Table, shown

PACKAGES = ("evenhand", "numpy", "scipy", "scikit-learn")
"""Their versions are on every page."""
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


@dataclass(frozen=True)
class Part:
    """A part of a table as people read it: texts below a heading, which may be empty."""

    heading: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


def parts(table: Table, most: int | None = None) -> tuple[list[Part], str]:
    """The parts of a table in words, at most so many rows of each; and the note below.

    >>> columns = Column("rate", ""), Column("gap", "", "share")
    >>> rows = ("fpr", 0.1), ("fpr", 0.2), ("fnr", 0.3)
    >>> found, note = parts(Table("gaps", "Gaps", columns, rows, parts=1), most=1)
    >>> [(one.heading, one.rows) for one in found], note
    ([('Fpr', (('0.100',),)), ('Fnr', (('0.300',),))], "1 more row: --json, to_frame('gaps').")
    """
    most = table.most if most is None else most
    grouped: dict[tuple[Cell, ...], list[tuple[Cell, ...]]] = {}
    for row in table.rows:
        grouped.setdefault(row[: table.parts], []).append(row[table.parts :])
    columns = table.columns[table.parts :]
    made = []
    left = 0
    for names, rows in grouped.items():
        left += len(rows) - len(rows[:most])
        cells = tuple(
            tuple(shown(cell, one.unit) for cell, one in zip(row, columns, strict=True))
            for row in rows[:most]
        )
        if cells:
            made.append(Part(_heading(names), columns, cells))
    cut = ""
    if left:
        more = "more " if made else ""
        cut = f"{left:,} {more}row{'s' * (left != 1)}: --json, to_frame({table.key!r})."
    return made, " ".join(filter(None, [table.note, cut]))


def _heading(names: tuple[Cell, ...]) -> str:
    said = " by ".join(shown(one) for one in names if one not in (None, ""))
    return said[:1].upper() + said[1:]


def named(values: Mapping[str, Cell]) -> list[tuple[str, str]]:
    """Names with values in words, without those that nobody knows."""
    return [(name, shown(value)) for name, value in values.items() if value not in (None, "", ())]


def is_words(column: Column) -> bool:
    """Whether the cells of a column are words."""
    return column.unit in WORDS


def day(made: date | None) -> str:
    """A date in words, the same in every locale; today if there is none.

    >>> day(date(2026, 3, 1))
    '1 March 2026'
    """
    when = made or datetime.now(UTC).date()
    return f"{when.day} {MONTHS[when.month - 1]} {when.year}"


def made_with(made: date | None) -> str:
    """When it was made, and with which packages."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"{day(made)} with {packages}, Python {platform.python_version()}"


def answer(result: Result) -> tuple[str, ...]:
    """The headline of the verdict, where there is one, and the answer."""
    headline = () if result.verdict is None else (result.verdict.headline,)
    return (*headline, *result.answer)
