"""`python -m bench [--only NAME] [--quick]`: measure row by row, print the table, and keep each row
in bench-results.json as soon as it is measured.

A row that fails is recorded with its error, the others go on, and the exit code is 1. With
EVENHAND_CONTINUE=1 a run that was cut short goes on: what was measured is not measured again, and
what failed is.
"""

import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table as RichTable
from scripts.results import Results

from bench.record import Record
from bench.tables import Tables
from evenhand.computing import computing_in

Row = Callable[[Tables, bool], list[Record]]


def _row(module: str, function: str) -> Row:
    """A row whose module is imported when it is measured: what one row needs and lacks is that
    row's error alone.
    """

    def measure(tables: Tables, quick: bool) -> list[Record]:
        found: list[Record] = getattr(import_module(f"bench.{module}"), function)(tables, quick)
        return found

    return measure


ROWS: dict[str, Row] = {
    "stumps": _row("against_fairlearn", "stumps"),
    "models": _row("against_fairlearn", "models"),
    "older-fairlearn": _row("older_fairlearn", "older_fairlearn"),
    "highs": _row("exactness", "against_highs"),
    "pass": _row("cost_of_one_pass", "one_pass"),
    "calls": _row("exactness", "oracle_calls"),
    "constraints": _row("exactness", "several_constraints"),
    "recipe": _row("exactness", "paper_recipe"),
    "import": _row("import_time", "import_time"),
    "scale": _row("scale", "scale"),
    "large": _row("large", "large"),
    "deciding": _row("deciding", "deciding"),
    "one-call": _row("one_call_or_many", "one_call_or_many"),
    "vw": _row("against_vw", "speed"),
    "closing": _row("closing", "closing"),
    "certificate": _row("certified", "certification"),
    "waiting": _row("waiting_times", "waiting_times"),
}
RESULTS = Path("bench-results.json")


@click.command(help="Measure evenhand against other solvers, side by side.")
@click.option(
    "--only",
    type=click.Choice(list(ROWS)),
    multiple=True,
    help="Only these rows (may be repeated).",
)
@click.option("--quick", is_flag=True, help="Tiny tables, one turn: does it run? Not for figures.")
def main(only: tuple[str, ...], quick: bool) -> None:
    """Run, write, print."""
    from threadpoolctl import threadpool_limits

    console = Console()
    tables = Tables(quick)
    results = Results(
        RESULTS,
        whole=not only and not quick,
        go_on="EVENHAND_CONTINUE" in os.environ,
        quick=quick,
    )
    with ExitStack() as stack:
        # one BLAS thread for everybody, see docs/guarantee/benchmarks.md
        stack.enter_context(threadpool_limits(1))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        # Kernels are compiled at their first call, before anything is timed: by themselves they
        # would wait until that pays, and short rows would time the NumPy form. In a quick run to
        # compile takes longer than to run.
        stack.enter_context(computing_in("numpy" if quick else "numba"))
        for name in only or tuple(ROWS):
            if name in results.parts:
                continue
            with console.status(f"measuring {name} ..."):
                began = time.monotonic()
                found = measured(name, tables, quick)
                minutes = (time.monotonic() - began) / 60
            results.details["generated"] = dict(tables.missing)
            for record in found:
                results.add({**record.as_json(), "part": name, "minutes": minutes})
            if not any(record.error for record in found):
                results.part_is_done(name)
    results.finish()
    for name, reason in tables.missing.items():
        console.print(f"[yellow]{name}: generated rows were used. {reason}[/]")
    console.print(as_table(results.rows, quick))
    console.print(f"written: {RESULTS.resolve()}")
    failed = [row["row"] for row in results.rows if row["error"] is not None]
    if failed:
        console.print(f"[red]these rows failed: {', '.join(failed)}[/]")
        sys.exit(1)


def measured(name: str, tables: Tables, quick: bool) -> list[Record]:
    """The records of a row; one with the error if it fails."""
    try:
        found = ROWS[name](tables, quick)
        rows = {record.row for record in found}
        assert len(rows) == len(found), "two rows have one name, so that one of them would be lost"
        return found
    except Exception as error:  # noqa: BLE001  # whatever it is, the other rows are measured
        said = "".join(traceback.format_exception(error))
        if isinstance(error, subprocess.CalledProcessError) and error.stderr:
            said += str(error.stderr)
        return [Record.of_failure(name, f"{type(error).__name__}: {error}", said)]


def as_table(rows: list[dict[str, Any]], quick: bool) -> RichTable:
    """For people."""
    table = RichTable(
        title="evenhand, measured side by side" + (" (quick: not for figures)" if quick else ""),
        show_lines=True,
    )
    for column in ("row", "target", "measured", "spread", "", "note"):
        table.add_column(column, overflow="fold")
    for row in rows:
        mark = "[green]reached[/]" if row["holds"] else "[red]missed[/]"
        if row["error"] is not None:
            mark = "[red]failed[/]"
        cells = [row[name] for name in ("row", "target", "figure", "spread")]
        table.add_row(*cells, mark, row["note"])
    return table
