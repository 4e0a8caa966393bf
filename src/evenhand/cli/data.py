"""`evenhand data`: the tables that evenhand knows by name, and what there is to know about each."""

from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import JSON_OPTION, MEANING_OPTIONS, column_meaning, option
from evenhand.cli.show import console, emit, grid

if TYPE_CHECKING:
    from evenhand.tables import Description, PublishedTable, Table

MOST_NAMES = 12
"""Columns that are named when a table is shown."""


@click.group("data")
def command() -> None:
    """Real tables: list them, fetch them, look at them.

    Published tables are read out of Python wheels that are downloaded once, checked, and never
    installed. `lending` is built in.

    \b
    Example
      evenhand data list
      evenhand data get compas adult
      evenhand data show compas
      evenhand data show loans.toml
      evenhand data show loans.csv --label repaid --good yes --group sex
    """


@command.command("list", params=[JSON_OPTION])
def list_tables(document: str | None) -> None:
    """All tables that are known by name."""
    from evenhand.tables import TABLES

    said = ("name", "title", "decision", "good", "groups", "cached")
    known = [{key: getattr(entry, key) for key in said} for entry in TABLES.values()]
    if emit(document, {"tables": known}):
        return

    table = grid("name", "~what", "~decision", "~good outcome", "~groups", "~here")
    for entry in TABLES.values():
        here = "yes" if entry.cached else "evenhand data get " + entry.name
        table.add_row(entry.name, entry.title, entry.decision, entry.good, entry.groups, here)
    console().print(table)


@command.command("get", params=[click.Argument(["names"], nargs=-1, required=True), JSON_OPTION])
def get(names: tuple[str, ...], document: str | None) -> None:
    """Fetch tables into the cache; "all" fetches every one."""
    from evenhand.tables import TABLES, cache_folder, read_table

    sizes = {}
    for name in TABLES if names == ("all",) else names:
        table = read_table(name).encoded()
        sizes[name] = {"rows": len(table), "columns": table.features.shape[1]}
        if document != "-":
            click.echo(f"{name}: {len(table):,} rows, {table.features.shape[1]} columns")
    if emit(document, {"tables": sizes, "folder": cache_folder()}):
        return
    click.echo(f"kept in {cache_folder()}")


@command.command(
    "show",
    params=[
        click.Argument(["name"]),
        option("--by COL", "Another grouping, where a published table has one."),
        *MEANING_OPTIONS,
        JSON_OPTION,
    ],
)
def show(name: str, by: str | None, document: str | None, **options: Any) -> None:
    """One table: its groups and base rates, where it comes from, and what one must know before
    using it.

    NAME is a known table, the path of a description (.toml), or a file of rows together with
    --label and --group.
    """
    from evenhand.tables import TABLES, describe, misleading, read_table

    meaning = column_meaning(options) | ({} if by is None else {"group": by})
    table = read_table(name, **meaning).encoded()
    described = describe(name, **meaning)
    told = about(table, TABLES[name] if described is None else None, described)
    warnings = misleading(table)
    figures = {
        "people": len(table),
        "columns": list(table.names),
        "groups": [vars(one) for one in table.figures],
        "notes": list(table.notes),
        "warnings": [vars(one) for one in warnings],
        "about": told,
    }
    if emit(document, figures):
        return
    for line in [*told, *(f"WARNING: {one.text}." for one in warnings)]:
        click.echo(line)


def about(
    table: "Table", entry: "PublishedTable | None" = None, described: "Description | None" = None
) -> list[str]:
    """The facts of a table, line by line."""
    more = len(table.names) - MOST_NAMES
    shown = ", ".join(table.names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    lines = [
        f"{len(table):,} people, {table.features.shape[1]} columns a decision may use: {shown}."
    ]
    if entry is not None:
        lines.insert(0, f"{entry.title}: {entry.decision}; the good outcome is: {entry.good}.")
        lines += [f"Licence: {entry.licence}.", f"Caveat: {entry.caveat}"]
        lines += [
            f"From {source.member} in {source.package} {source.version}." for source in entry.files
        ]
    if described is not None:
        lines = [f"{described.title}."] * bool(described.title) + lines
        texts = {"Licence": described.licence, "Caveat": described.caveat}
        lines += [f"{key}: {text}" for key, text in texts.items() if text]
    lines += [
        f"Group {figures.group}: {figures.people:,} people ({figures.share:.1%}), "
        f"{figures.good_rate:.1%} with the good outcome."
        for figures in table.figures
    ]
    return lines + [f"Note: {note}." for note in table.notes]
