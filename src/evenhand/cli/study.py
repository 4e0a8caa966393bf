"""`evenhand study`: learners x tables x limits x seeds, resumable, with one report."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.capacity import Capacity, capacity_options
from evenhand.cli.messages import note_text, warning_text
from evenhand.cli.options import (
    CLASS_NAME,
    FOLDER,
    NATURAL,
    POSITIVE,
    ColumnOptions,
    Share,
    column_options,
    command_line,
    json_options,
    price_options,
    rates_option,
)
from evenhand.cli.show import console, emit, grid, progress
from evenhand.contracts import Json
from evenhand.errors import InvalidInput

if TYPE_CHECKING:
    from evenhand.simulation.study import Source, Study


@click.command("study")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@column_options
@click.option(
    "--learner",
    "learners",
    metavar="NAME",
    multiple=True,
    help="A learner; repeat it.  [default: the six that need no extra package; of these, those "
    "that can keep a capacity, a floor, a quota or an incumbent's rule if there is one]",
)
@click.option(
    "--limit",
    "limits",
    type=Share("(0, 1]"),
    multiple=True,
    help="A limit; repeat it.  [default: 0.05]",
)
@click.option("--seeds", type=POSITIVE, default=5, help="Runs of each.")
@click.option("--first-seed", type=NATURAL, default=0, help="The seed of the first.")
@click.option("--rounds", type=POSITIVE, default=50000, help="People in a run.")
@click.option(
    "--class", "kind", type=CLASS_NAME, default="stumps", help="The rules to choose from."
)
@rates_option()
@click.option(
    "--delta",
    type=Share("(0, 1)"),
    default=0.05,
    help="Largest probability that a certified learner ever exceeds the limit in a run.",
)
@price_options
@capacity_options
@click.option("--jobs", metavar="N", type=POSITIVE, help="Processes.  [default: one per core]")
@click.option(
    "--out",
    metavar="DIR",
    type=FOLDER,
    default=Path("evenhand-study"),
    help="Folder for report.html, results.parquet and journal.jsonl.",
)
@json_options
def command(
    tables: tuple[str, ...],
    columns: ColumnOptions,
    learners: tuple[str, ...],
    limits: tuple[float, ...],
    seeds: int,
    first_seed: int,
    rounds: int,
    kind: str,
    rates: tuple[str, ...],
    delta: float,
    price_false_accept: float,
    price_false_reject: float,
    capacity: Capacity,
    jobs: int | None,
    out: Path,
    document: str | Path | None,
) -> None:
    """Simulate learners on your data: what does the limit cost, and which of them keep it?

    TABLE is a known table, a description (.toml), or a file of rows (CSV, Excel, Parquet, JSON
    lines) together with --label and --group. Every table is taken for the population, its rows are
    drawn with replacement, so all gaps and costs are exact. A study that was stopped goes on where
    it was when the same command is run again.

    \b
    Example
      evenhand study lending --learner certified --learner fair-on-gathered \\
          --rounds 3000 --seeds 2 --out lending-study
      evenhand study loans.csv --label repaid --good yes --group sex --limit 0.05

    \b
    Learners
      certified          evenhand's, certified at every round
      two-phase          the paper's algorithm (with --class stumps)
      fair-on-gathered   a limit on the gathered labels, as ordinary tools do
      unconstrained      a bandit that looks at cost alone
      accept-all         no learning
    """
    from evenhand.media.drawing import require
    from evenhand.simulation.named import STUDIED, takes
    from evenhand.simulation.study import StudyPlan, study, write_parquet
    from evenhand.tables import data_warnings

    require("matplotlib", "jinja2", "pyarrow")  # before hours of work, not after
    sources = tuple(make_source(name, columns) for name in dict.fromkeys(tables))
    shared = {**capacity.settings(), **incumbent_of(capacity, sources)}
    able = tuple(name for name in STUDIED if all(takes(name, one) for one in shared))
    plan = StudyPlan(
        sources=sources,
        learners=tuple(dict.fromkeys(learners)) or able,
        limits=tuple(dict.fromkeys(limits)) or (0.05,),
        seeds=seeds,
        rounds=rounds,
        rates=rates,
        kind=kind,
        delta=delta,
        false_accept=price_false_accept,
        false_reject=price_false_reject,
        first_seed=first_seed,
        **shared,
    )
    for source in plan.sources:  # what was done to the user's own rows on the way in
        own = source.table() if source.description else None
        for note in own.notes if own else ():
            click.echo(f"{source.name}: {note_text(note)}.", err=True)
        for one in data_warnings(own) if own else ():
            click.echo(f"{source.name}: WARNING: {warning_text(one)}.", err=True)
    with progress("runs", plan.size) as count:
        finished = study(plan, out, jobs or -1, count)
    if document != "-":
        show_study(finished)
    write_parquet(finished, out / "results.parquet")
    page = out / "report.html"
    page.write_text(report(finished), encoding="utf-8")
    if emit(document, study_document(finished, out)):
        return
    click.echo(f"\nReport: {page}\nRows: {out / 'results.parquet'}")


def make_source(name: str, columns: ColumnOptions) -> "Source":
    """A table of the study; an error in its name or columns is raised before anything runs."""
    from evenhand.simulation.study import source_of
    from evenhand.tables import TABLES, describe

    described = describe(name, **columns.given())
    if name not in TABLES:  # workers may run in another folder
        described = replace(described, path=described.path.absolute())
    return source_of(name, described)


def incumbent_of(capacity: Capacity, sources: tuple["Source", ...]) -> Json:
    """The rules of today, for the one table of the study; nothing if there are none."""
    if capacity.incumbent is None:
        return {}
    if len(sources) > 1:
        raise InvalidInput(
            f"--incumbent {capacity.incumbent} comes with {len(sources)} tables",
            requirement="a rule reads the columns of one table",
            hint="study one table at a time.",
            argument="incumbent",
        )
    return {"candidates": capacity.candidates(sources[0].table().names) or None}


def study_document(finished: "Study", folder: Path) -> Json:
    """The figures of every learner, table and limit."""
    return {
        "cells": [
            {
                "table": comparison.environment["environment"],
                "limit": comparison.limit,
                "learner": row.name,
                "certified": row.guaranteed,
                "cost": row.cost,
                "regret_over_constant": row.regret_over_constant,
                "worst_gap": row.worst_gap,
                "runs": row.runs,
                "runs_above": row.runs_above,
                "rounds_above": row.rounds_above,
                "audit_share": row.audit_share,
                "seconds_per_run": row.seconds,
            }
            for comparison in finished.comparisons
            for row in comparison.summaries
        ],
        "report": folder / "report.html",
        "rows": folder / "results.parquet",
    }


def show_study(finished: "Study") -> None:
    """The table on the terminal."""
    from evenhand.report.pages import percent

    numbers = (
        ">cost per\nperson",
        ">regret /\nconstant's",
        ">worst\ngap",
        ">rounds\nabove",
        ">audits",
        ">s/run",
    )
    table = grid("~table", "limit", "~learner", *numbers, padding=0)
    for comparison in finished.comparisons:
        for row in comparison.summaries:
            gap = f"{row.worst_gap:.3f}"
            ratio = row.regret_over_constant
            table.add_row(
                comparison.environment["environment"],
                f"{comparison.limit:g}",
                row.name,
                f"{row.cost:.4f}",
                "" if ratio is None else f"{ratio:.2f}",
                f"[bold red]{gap}[/]" if row.runs_above else gap,
                percent(row.rounds_above),
                f"{row.audit_share:.1%}",
                f"{row.seconds:.1f}",
            )
    console().print(table)


def report(finished: "Study") -> str:
    """The HTML page."""
    from evenhand import __version__
    from evenhand.cli.data import about
    from evenhand.fairness.rates import rates_in_words
    from evenhand.report import StudyReport, study_page
    from evenhand.tables import describe

    facts = {}
    for source in finished.plan.sources:
        described = source.description or describe(source.name)
        facts[source.name] = about(source.table(), described).paragraphs
    rate = rates_in_words(finished.plan.rates)
    return study_page(
        StudyReport(finished, facts, rate, command_line(), __version__, "results.parquet")
    )
