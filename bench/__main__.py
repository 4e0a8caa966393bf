"""`python -m bench [--only NAME] [--quick]`: print the table, write bench-results.json into the
current folder.
"""

import json
import platform
import warnings
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

from bench import (
    against_fairlearn,
    against_vw,
    blocks,
    certified,
    deciding,
    everyday,
    exactness,
    large,
    passes,
    scale,
)
from bench.record import Record
from bench.tables import Tables

ROWS: dict[str, Callable[[Tables, bool], list[Record]]] = {
    "stumps": against_fairlearn.stumps,
    "models": against_fairlearn.models,
    "highs": exactness.against_highs,
    "pass": passes.one_pass,
    "calls": exactness.oracle_calls,
    "constraints": exactness.several_constraints,
    "recipe": exactness.paper_recipe,
    "import": passes.import_time,
    "scale": scale.scale,
    "large": large.large,
    "deciding": deciding.deciding,
    "blocks": blocks.blocks,
    "vw": against_vw.speed,
    "certificate": certified.certification,
    "everyday": everyday.everyday,
}
RESULTS = Path("bench-results.json")


@click.command(help="Measure evenhand against other solvers, side by side.")
@click.option(
    "--only",
    type=click.Choice(list(ROWS)),
    multiple=True,
    help="Only these rows (may be repeated).",
)
@click.option("--quick", is_flag=True, help="Few rows and repeats: does it run? Not for figures.")
def main(only: tuple[str, ...], quick: bool) -> None:
    """Run, print, write."""
    from threadpoolctl import threadpool_limits

    console, tables, records = Console(), Tables(quick), []
    with (
        threadpool_limits(1),
        warnings.catch_warnings(),
    ):  # one BLAS thread for everybody, see docs/benchmarks.md
        warnings.simplefilter("ignore")
        for name in only or tuple(ROWS):
            with console.status(f"measuring {name} ..."):
                records += ROWS[name](tables, quick)
    for name, reason in tables.missing.items():
        console.print(f"[yellow]{name}: generated rows were used. {reason}[/]")
    console.print(as_table(records, quick))
    RESULTS.write_text(json.dumps(as_json(records, quick, tables), indent=1, default=_plain) + "\n")
    console.print(f"written: {RESULTS.resolve()}")


def as_table(records: list[Record], quick: bool) -> RichTable:
    """For people."""
    table = RichTable(
        title="evenhand, measured side by side" + (" (quick: not for figures)" if quick else ""),
        show_lines=True,
    )
    for column in ("row", "target", "measured", "spread", "", "note"):
        table.add_column(column, overflow="fold")
    for record in records:
        mark = "[green]reached[/]" if record.passed else "[red]missed[/]"
        table.add_row(record.row, record.target, record.figure, record.spread, mark, record.note)
    return table


def as_json(records: list[Record], quick: bool, tables: Tables) -> dict[str, object]:
    """For machines."""
    where = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
    }
    return {
        "quick": quick,
        "generated": dict(tables.missing),
        "where": where,
        "records": [record.as_json() for record in records],
    }


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else str(value)


if __name__ == "__main__":
    main()
