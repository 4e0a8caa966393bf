"""`evenhand study`: learners x tables x limits x seeds, resumable, with one report."""

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import (
    CLASS_NAME,
    FLAGS,
    FOLDER,
    JSON_OPTION,
    LISTS,
    MEANING_OPTIONS,
    NATURAL,
    ONE_RATE,
    PLAIN,
    POSITIVE,
    PRICE_OPTIONS,
    column_meaning,
    command_words,
    option,
)
from evenhand.cli.show import console, emit, grid, progress
from evenhand.contracts import Json, Params

if TYPE_CHECKING:
    from evenhand.simulate.study import Study, StudyPlan

LEFT_OUT = {
    **dict.fromkeys((*PLAIN, *LISTS, *FLAGS)),
    "class": "stumps",
    "rate": "fpr",
    "price_false_accept": 1.0,
    "price_false_reject": 1.0,
    "delta": 0.05,
    "first_seed": 0,
    "rounds": None,
    "seeds": None,
}
"""The options that the printed command repeats, and the values at which it leaves them out."""


@click.command(
    "study",
    params=[
        click.Argument(["tables"], nargs=-1, required=True, metavar="TABLE..."),
        *MEANING_OPTIONS,
        option(
            "--learner learners NAME",
            "A learner; repeat it.  [default: the six that need no extra package]",
            multiple=True,
        ),
        option("--limit limits", "A limit; repeat it.  [default: 0.05]", float, multiple=True),
        option("--seeds", "Runs of each.", POSITIVE, default=5),
        option("--first-seed", "The seed of the first.", NATURAL, default=0),
        option("--rounds", "People in a run.", POSITIVE, default=50000),
        option("--class kind", "The rules to choose from.", CLASS_NAME, default="stumps"),
        ONE_RATE,
        option("--delta", "How likely the promise may fail in a life.", float, default=0.05),
        *PRICE_OPTIONS,
        option("--jobs N", "Processes.  [default: one per core]", POSITIVE),
        option(
            "--dask ADDRESS",
            'Run on Dask: the address of a scheduler (tcp://host:8786), or "local".',
        ),
        option(
            "--out DIR",
            "Folder for report.html, results.parquet and journal.jsonl.",
            FOLDER,
            default=Path("evenhand-study"),
        ),
        JSON_OPTION,
    ],
)
def command(document: str | None, **options: Any) -> None:
    """What fairness costs on your data, and which learner keeps it.

    TABLE is a known table (evenhand data list), a description (.toml), or a file of rows (CSV,
    Excel, Parquet, JSON lines) together with --label and --group. Every table is taken for the
    population, its rows are drawn with replacement, so all gaps and costs are exact. A study that
    was stopped goes on where it was when the same command is run again.

    \b
    Example
      evenhand study lending --learner certified --learner fair-on-gathered \\
          --rounds 3000 --seeds 2 --out lending-study
      evenhand study loans.csv --label repaid --good yes --group sex --limit 0.05
      evenhand study adult compas taiwan gmsc --dask tcp://scheduler:8786

    \b
    Learners
      certified          evenhand's, certified at every round
      two-phase          the paper's algorithm (with --class stumps)
      fair-on-gathered   a limit on the gathered labels, as ordinary tools do
      unconstrained      a bandit that looks at cost alone
      semi-logistic      Kilbertus et al. 2020, with a fairness penalty
      explore-exploit    Keswani et al. 2024
      vw-epsilon-greedy, vw-squarecb   Vowpal Wabbit (the extra vw)
      accept-all         no learning
    """
    from evenhand.report.drawing import require
    from evenhand.simulate.study import Dask, Local, study, write_parquet
    from evenhand.tables import misleading

    require("matplotlib", "jinja2", "pyarrow")  # before hours of work, not after
    if any(name.startswith("vw-") for name in options["learners"]):
        require("vowpalwabbit")
    if options["dask"]:
        require("distributed")
    plan, jobs = make_study(options), options["jobs"] or os.cpu_count() or 1
    workers = Dask(options["dask"], jobs) if options["dask"] else Local(jobs)
    for source in plan.sources:  # what was done to the user's own rows on the way in
        own = source.table() if source.description else None
        for note in own.notes if own else ():
            click.echo(f"{source.name}: {note}.", err=True)
        for one in misleading(own) if own else ():
            click.echo(f"{source.name}: WARNING: {one.text}.", err=True)
    folder: Path = options["out"]
    total = len(plan.questions) * (1 + len(plan.learners) * plan.seeds)
    with progress("runs", total) as count:
        finished = study(plan, folder, workers, lambda done, _: count(done))
    if document != "-":
        show_study(finished)
    write_parquet(finished, folder / "results.parquet")
    page = folder / "report.html"
    page.write_text(report(finished, options), encoding="utf-8")
    if emit(document, study_document(finished, folder)):
        return
    click.echo(f"\nReport: {page}\nRows: {folder / 'results.parquet'}")


def make_study(options: Params) -> "StudyPlan":
    """The plan, with every complaint about tables and names made before anything runs."""
    from evenhand.simulate.named import STUDIED
    from evenhand.simulate.study import StudyPlan, source_of
    from evenhand.tables import describe

    sources = []
    for name in dict.fromkeys(options["tables"]):
        described = describe(name, **column_meaning(options))
        if described is not None:  # workers may run in another folder
            described = replace(described, path=described.path.absolute())
        sources.append(source_of(name, described))
    return StudyPlan(
        sources=tuple(sources),
        learners=tuple(dict.fromkeys(options["learners"])) or STUDIED,
        limits=tuple(dict.fromkeys(options["limits"])) or (0.05,),
        seeds=options["seeds"],
        rounds=options["rounds"],
        rate=options["rate"],
        kind=options["kind"],
        failure_probability=options["delta"],
        false_accept=options["price_false_accept"],
        false_reject=options["price_false_reject"],
        first_seed=options["first_seed"],
    )


def study_document(finished: "Study", folder: Path) -> Json:
    """The figures of every learner, table and limit."""
    return {
        "cells": [
            {
                "table": cell.table,
                "limit": cell.limit,
                "learner": cell.learner,
                "certified": cell.promised,
                "error": cell.mean("error"),
                "regret_over_constant": cell.mean("regret_over_constant"),
                "worst_gap": cell.worst_gap,
                "runs": len(cell.rows),
                "runs_above": cell.runs_above,
                "rounds_above": cell.mean("rounds_above"),
                "audit_share": cell.mean("audit_share"),
                "seconds_per_run": sum(cell.seconds) / len(cell.seconds),
            }
            for cell in finished.cells
        ],
        "report": folder / "report.html",
        "rows": folder / "results.parquet",
    }


def show_study(finished: "Study") -> None:
    """The table on the terminal."""
    from evenhand.report.pages import percent

    numbers = (
        *(">error", ">regret /\nconstant's", ">worst\ngap", ">rounds\nabove", ">audits", ">s/run"),
    )
    table = grid("~table", "limit", "~learner", *numbers, padding=0)
    for cell in finished.cells:
        gap = f"{cell.worst_gap:.3f}"
        table.add_row(
            cell.table,
            f"{cell.limit:g}",
            cell.learner,
            f"{cell.mean('error'):.4f}",
            f"{cell.mean('regret_over_constant'):.2f}",
            f"[bold red]{gap}[/]" if cell.runs_above else gap,
            percent(cell.mean("rounds_above")),
            f"{cell.mean('audit_share'):.1%}",
            f"{sum(cell.seconds) / len(cell.seconds):.1f}",
        )
    console().print(table)


def report(finished: "Study", options: Params) -> str:
    """The HTML page."""
    from evenhand import __version__
    from evenhand.cli.data import about
    from evenhand.fairness.rates import RATES
    from evenhand.report import StudyReport, study_page
    from evenhand.tables import TABLES

    facts = {}
    for source in finished.plan.sources:
        published = None if source.description else TABLES[source.name]
        facts[source.name] = about(source.table(), published, source.description)
    rate, typed = RATES[finished.plan.rate].name, command_line(options)
    return study_page(StudyReport(finished, facts, rate, typed, __version__, "results.parquet"))


def command_line(options: Params) -> str:
    """What to type to get the same results."""
    repeated = {"learner": options["learners"], "limit": options["limits"]}
    words = ["evenhand", "study", *options["tables"]]
    words += command_words(repeated, dict.fromkeys(repeated))
    words += command_words({**options, "class": options["kind"]}, LEFT_OUT)
    return shlex.join(words)
