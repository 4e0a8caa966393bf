"""`evenhand study`: learners x tables x limits x seeds, resumable, with one report."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import CLASS_NAME, MEANING_OPTIONS, RATE_NAME, with_options

if TYPE_CHECKING:
    from evenhand.simulate.study import Source, Study, StudyPlan, Workers

TABLE = (
    click.argument("tables", nargs=-1, required=True, metavar="TABLE..."),
    *MEANING_OPTIONS,
)
SWEEP = (
    click.option(
        "--learner",
        "learners",
        multiple=True,
        metavar="NAME",
        help="A learner; repeat it.  [default: the six that need no extra package]",
    ),
    click.option(
        "--limit", "limits", type=float, multiple=True, help="A limit; repeat it.  [default: 0.05]"
    ),
    click.option(
        "--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Runs of each."
    ),
    click.option(
        "--first-seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="The seed of the first.",
    ),
    click.option(
        "--rounds",
        type=click.IntRange(min=1),
        default=50_000,
        show_default=True,
        help="People in a run.",
    ),
    click.option(
        "--class",
        "kind",
        **CLASS_NAME,
        default="linear",
        show_default=True,
        help="The rules to choose from.",
    ),
    click.option(
        "--rate",
        **RATE_NAME,
        default="fpr",
        show_default=True,
        help="The rate whose gap is limited: false positive, false negative, selection.",
    ),
    click.option(
        "--delta",
        type=float,
        default=0.05,
        show_default=True,
        help="How likely the promise may fail in a life.",
    ),
    click.option(
        "--price-false-accept",
        type=float,
        default=1.0,
        show_default=True,
        help="Cost of a bad accept.",
    ),
    click.option(
        "--price-false-reject",
        type=float,
        default=1.0,
        show_default=True,
        help="Cost of a good reject.",
    ),
)
RUN = (
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes.  [default: one per core]",
    ),
    click.option(
        "--dask",
        metavar="ADDRESS",
        help='Run on Dask: the address of a scheduler (tcp://host:8786), or "local".',
    ),
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("evenhand-study"),
        show_default=True,
        metavar="DIR",
        help="Folder for report.html, results.parquet and journal.jsonl.",
    ),
)


@click.command("study")
@with_options(*TABLE, *SWEEP, *RUN)
def command(**options: Any) -> None:
    """What fairness costs on your data, and which learner keeps it.

    TABLE is a known table (evenhand data list), a description (.toml), or a CSV or Parquet file
    together with --label and --group. Every table is taken for the population, its rows are drawn
    with replacement, so all gaps and costs are exact. A study that was stopped goes on where it was
    when the same command is run again.

    \b
    Example
      evenhand study lending --learner certified --learner fair-on-gathered --rounds 3000 --seeds 2 --out lending-study
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
      vw-epsilon-greedy, vw-squarecb   Vowpal Wabbit (pip install 'evenhand[vw]')
      accept-all         no learning
    """
    from evenhand.cli.show import console, progress
    from evenhand.simulate.study import study, write_parquet

    plan, workers = made_plan(options), made_workers(options)
    tell_notes(plan)
    folder: Path = options["out"]
    total = len(plan.questions) * (1 + len(plan.learners) * plan.seeds)
    with progress("runs", total) as told:
        found = study(plan, folder, workers, lambda done, _: told(done))
    tell(console(), found)
    write_parquet(found, folder / "results.parquet")
    page = folder / "report.html"
    page.write_text(report(found, options), encoding="utf-8")
    click.echo(f"\nReport: {page}\nRows: {folder / 'results.parquet'}")


def made_plan(options: dict[str, Any]) -> "StudyPlan":
    """The plan, with every complaint about tables and names made before anything runs."""
    from evenhand.simulate.named import STUDIED
    from evenhand.simulate.study import StudyPlan

    return StudyPlan(
        sources=tuple(made_source(name, options) for name in dict.fromkeys(options["tables"])),
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


def tell_notes(plan: "StudyPlan") -> None:
    """What was done to the user's own rows on the way in: rows left out, columns encoded."""
    for source in plan.sources:
        for note in source.table().notes if source.description else ():
            click.echo(f"{source.name}: {note}.", err=True)


def made_source(name: str, options: dict[str, Any]) -> "Source":
    """A published table, a description, or a file whose columns the options name."""
    from dataclasses import replace

    from evenhand.cli.task import meaning
    from evenhand.simulate.study import source_of
    from evenhand.tables import describe

    described = describe(name, **meaning(options))
    if described is not None:  # workers may run in another folder
        described = replace(described, path=described.path.absolute())
    return source_of(name, described)


def made_workers(options: dict[str, Any]) -> "Workers":
    """Processes of this machine, or Dask."""
    from evenhand.simulate.study import Dask, Local

    jobs = options["jobs"] or os.cpu_count() or 1
    return Dask(options["dask"], jobs) if options["dask"] else Local(jobs)


def tell(out: Any, found: "Study") -> None:
    """The table on the terminal."""
    from rich.table import Table

    from evenhand.report.findings import percent

    grid = Table(box=None, padding=(0, 1))
    for name in ("table", "limit", "learner"):
        grid.add_column(name, no_wrap=True)
    for name in ("error", "regret / constant's", "worst gap", "rounds above", "audits", "s/run"):
        grid.add_column(name, justify="right", no_wrap=True)
    for cell in found.cells:
        gap = f"{cell.worst_gap:.3f}"
        grid.add_row(
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
    out.print(grid)


def report(found: "Study", options: dict[str, Any]) -> str:
    """The HTML page."""
    from evenhand import __version__
    from evenhand.cli.data import about
    from evenhand.fairness.rates import RATES
    from evenhand.report import StudyReport, study_page
    from evenhand.tables import TABLES

    told = {
        source.name: about(
            source.table(),
            None if source.description else TABLES[source.name],
            source.description,
        )
        for source in found.plan.sources
    }
    rate = RATES[found.plan.rate].name
    return study_page(
        StudyReport(found, told, rate, command_line(options), __version__, "results.parquet")
    )


def command_line(options: dict[str, Any]) -> str:
    """What to type to get the same results."""
    words = ["evenhand", "study", *options["tables"]]
    for learner in options["learners"]:
        words += ["--learner", learner]
    for limit in options["limits"]:
        words += ["--limit", f"{limit:g}"]
    for name in ("label", "good", "bad", "group", "groups", "features", "missing"):
        words += [f"--{name}", options[name]] if options[name] else []
    for name in ("encode", "drop_missing", "drop_unlabelled"):
        words += [f"--{name.replace('_', '-')}"] * options[name]
    words += [] if options["fewest"] is None else ["--fewest", str(options["fewest"])]
    words += ["--delimiter", options["delimiter"]] * (options["delimiter"] != ",")
    words += ["--class", options["kind"]] * (options["kind"] != "linear")
    words += ["--rate", options["rate"]] * (options["rate"] != "fpr")
    for name in ("price_false_accept", "price_false_reject"):
        words += [f"--{name.replace('_', '-')}", f"{options[name]:g}"] * (options[name] != 1.0)
    words += ["--delta", f"{options['delta']:g}"] * (options["delta"] != 0.05)
    words += ["--first-seed", str(options["first_seed"])] * (options["first_seed"] > 0)
    return shlex.join(
        [*words, "--rounds", str(options["rounds"]), "--seeds", str(options["seeds"])]
    )
