"""`evenhand compare`: learners against each other on one population, with a table, figures and a
report.
"""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.capacity import Capacity, capacity_options
from evenhand.cli.messages import option_of
from evenhand.cli.options import (
    CLASS_NAME,
    FOLDER,
    NATURAL,
    POSITIVE,
    ColumnOptions,
    column_options,
    command_line,
    json_options,
)
from evenhand.cli.show import console, emit, grid, heading, progress, show_lines, write_json
from evenhand.cli.simulate import Play, play_options
from evenhand.contracts import Environment, Json
from evenhand.errors import InvalidInput, install_hint
from evenhand.fairness.rates import rates_in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from evenhand.simulation import Comparison
    from evenhand.simulation.named import Setting


@click.command("compare")
@click.option(
    "--learner",
    "learners",
    metavar="NAME[:K=V,...]",
    multiple=True,
    help="A learner, with options after a colon; repeat it.  [default: eight of them; on a table "
    "those of `evenhand study`; of these, those that can keep a capacity, a floor, a quota or an "
    "incumbent's rule if there is one]",
)
@click.option(
    "--data",
    metavar="DATA",
    help="A table as the population instead of --environment: a known one, a description (.toml), "
    "or a file with --label, --group and so on. Its rows are drawn with replacement, so that its "
    "own rates are the truth.",
)
@column_options
@click.option(
    "--class",
    "kind",
    type=CLASS_NAME,
    default="stumps",
    help="With --data: the rules to choose from.",
)
@play_options
@capacity_options
@click.option("--seeds", type=POSITIVE, default=20, help="How many runs each learner gets.")
@click.option("--first-seed", type=NATURAL, default=0, help="The seed of the first run.")
@click.option(
    "--jobs",
    metavar="N",
    type=POSITIVE,
    help="Processes; the results do not depend on it.  [default: one per core]",
)
@click.option(
    "--out",
    metavar="DIR",
    type=FOLDER,
    default=Path("evenhand-compare"),
    help="Folder for results.json, and where matplotlib and jinja2 are installed for report.html "
    "and the figures; created if need be.",
)
@json_options
def command(
    learners: tuple[str, ...],
    data: str | None,
    columns: ColumnOptions,
    kind: str,
    play: Play,
    capacity: Capacity,
    seeds: int,
    first_seed: int,
    jobs: int | None,
    out: Path,
    document: str | Path | None,
) -> None:
    """Compare learners on a population whose truth is known, or on your own table.

    Prints a table and writes all numbers as JSON, and a report: one HTML page that works offline,
    and the figures as SVG.

    \b
    Example
      evenhand compare --environment lending --learner two-phase \\
          --learner explore-then-commit-same --learner fair-on-gathered \\
          --rounds 20000 --seeds 4 --out lending
      evenhand compare --data loans.csv --label repaid --good yes --group sex \\
          --learner certified --learner accept-all --rounds 20000 --seeds 4
      evenhand compare --learner certified --learner certified:audit_rate=0.02 \\
          --capacity 0.2 --rounds 20000 --seeds 4 --out capped

    \b
    Environments (options with --env-option KEY=VALUE)
      lending      a lender's two regions, 98 scorecards
      random       100 contexts, 204 noisy rules: seed, contexts, hypotheses
      thresholds   a score in bins, one threshold per group: bins, cuts
      lower-bound  section 4 of the paper: which (1 or 2), gap (at most 1/16)
      hard         losses T^(-1/4) apart: horizon, scale; meant for --limit 1
      scores       one continuous score, played person by person

    \b
    Learners (options after a colon: two-phase:estimator=two-sided,bound=dkw)
      two-phase                 the paper: estimator, schedule, bound, slack_rule, method,
                                oracle_tolerance, epochs, exploration_rounds,
                                tradeoff_exponent
      as-printed                the paper to the letter, with its constants: method, epochs,
                                schedule, tradeoff_exponent
      certified                 no exploration phase, beyond the paper: audit_rate,
                                audit_budget, accept_at_most, accept_at_least
      explore-then-commit       explores T^(2/3) rounds: the same options, same_exploration
      explore-then-commit-same  explores as long as two-phase does: the same options
      exp4                      exponential weights on a net of fair pairs: the same options,
                                grid, growth
      paired-rounds             exploration and exp4 in turns: the same options, grid
      unconstrained             the bandit without a limit: first_rounds
      fair-on-gathered          a limit on the gathered labels only: first_rounds
      accept-all, uniform       no learning
    """
    from evenhand.media.drawing import installed
    from evenhand.simulation.named import COMPARED, STUDIED, takes

    world, names = population(play, data, columns, kind)
    setting = play.setting(world, capacity, names)
    shared = setting.shared
    usual = COMPARED if data is None else STUDIED

    def able(name: str) -> bool:
        return all(takes(name, one) for one in shared)

    asked = CompareRequest(
        play=play,
        world=world,
        setting=setting,
        capacity=capacity,
        learners=learners or tuple(filter(able, usual)),
        seeds=seeds,
        first_seed=first_seed,
        jobs=jobs or os.cpu_count() or 1,
        out=out,
    )
    comparison = run(asked)
    screen = console(quiet=document == "-")
    show_comparison(screen, comparison)
    results = asked.out / "results.json"
    write_json(results, compare_document(comparison), indent=None)
    drawn = installed("matplotlib", "jinja2")
    if drawn:
        write_report(asked, comparison)
    if emit(document, compare_document(comparison)):
        return
    said = f"Report: {asked.out / 'report.html'}"
    if not drawn:
        said = f"Results: {results}\nNo report and figures: {install_hint('plots')}."
    screen.print(f"\n{said}", markup=False, soft_wrap=True)


def population(
    play: Play, data: str | None, columns: ColumnOptions, kind: str
) -> tuple[Environment, tuple[str, ...]]:
    """The population that was asked for, a named one or a table, and the columns of its people."""
    given = columns.given()
    if data is None:
        if given:
            name = option_of(next(iter(given)))
            raise InvalidInput(
                f"{name} is about the columns of a table, and --data names none.",
                hint="add --data FILE, or leave it out.",
            )
        return play.world(), play.columns
    if play.environment != Play.environment or play.env_options:
        raise InvalidInput(
            f"--data {data} and --environment {play.environment} are two populations.",
            hint="give one of them.",
        )
    from evenhand.environments import Replay
    from evenhand.hypotheses import CLASSES
    from evenhand.tables import read_table

    table = read_table(data, **given).encoded()
    return Replay.of_table(table, CLASSES[kind]()), table.names


@dataclass(frozen=True)
class CompareRequest:
    """A comparison as it was asked for."""

    play: Play
    world: Environment
    setting: "Setting"
    learners: tuple[str, ...]
    seeds: int
    first_seed: int
    jobs: int
    out: Path
    capacity: Capacity = field(default_factory=Capacity)

    @property
    def all_seeds(self) -> range:
        """The seeds of the runs."""
        return range(self.first_seed, self.first_seed + self.seeds)


def run(asked: CompareRequest) -> "Comparison":
    """Play all runs, with a bar on stderr."""
    from evenhand.simulation import compare
    from evenhand.simulation.named import make_learner

    twice = sorted({name for name in asked.learners if asked.learners.count(name) > 1})
    if twice:
        raise InvalidInput(
            f"the learner {twice[0]!r} is given twice.",
            hint="name each learner once; options make it another one.",
        )
    play = asked.play
    world = asked.world
    learners = {name: make_learner(name, asked.setting) for name in asked.learners}
    asked.out.mkdir(parents=True, exist_ok=True)
    with progress("runs", len(learners) * asked.seeds) as count:
        return compare(
            learners,
            world,
            play.rounds,
            asked.all_seeds,
            limit=play.limit,
            delta=play.delta,
            regret_gap=play.regret_to,
            engine=play.engine,
            n_jobs=asked.jobs,
            progress=count,
        )


def show_comparison(out: "Console", comparison: "Comparison") -> None:
    """The table, and what it means."""
    name = comparison.environment.get("environment", "a population")
    above = (">worst\ntrue gap", ">runs\nabove", ">rounds\nabove")
    costs = (">accep-\nted", ">oracle\ncalls", ">s/run")
    table = grid("~learner", ">certi-\nfied", ">regret", *above, *costs, padding=0)
    for row in comparison.summaries:
        error = "" if row.regret_error is None else f" ± {row.regret_error:,.0f}"
        mark = "[bold red]{}[/]" if row.runs_above else "{}"
        table.add_row(
            row.name.replace("[", "\\["),
            "yes" if row.guaranteed else "no",
            f"{row.regret:,.0f}{error}",
            mark.format(f"{row.worst_gap:.3f}"),
            mark.format(f"{row.runs_above}/{row.runs}"),
            mark.format(f"{row.rounds_above:.1%}"),
            f"{row.accepted_share:.0%}",
            f"{row.oracle_calls:,.0f}",
            f"{row.seconds:.2f}",
        )
    runs = len(comparison.seeds)
    limit = comparison.limit
    out.print(heading(f"{name}: {comparison.rounds:,} rounds, {runs} runs each, limit {limit:g}"))
    out.print(table)
    sure = 1 - comparison.delta
    explained = (
        f"Regret: errors beyond the best policy with a gap of at most {comparison.regret_gap:g} ± "
        "one standard error. Certified: the limit holds for every policy with probability "
        f"{sure:g}, under the assumptions of the bound."
    )
    show_lines(out, [explained], style="dim")
    for row, learner in zip(comparison.summaries, comparison.learners, strict=True):
        if row.exploring:
            exploring = f"still exploring at the end of {row.exploring} of {row.runs} runs."
            show_lines(out, [f"{row.name}: {exploring} {learner.runs[-1].note}"])


def compare_document(comparison: "Comparison") -> Json:
    """What results.json holds; `Comparison.from_json(document["comparison"])` reads it back."""
    from evenhand import __version__

    return {
        "evenhand": __version__,
        "command": command_line(),
        "comparison": comparison.to_json(),
    }


def write_report(asked: CompareRequest, comparison: "Comparison") -> None:
    """The figures, and report.html."""
    from evenhand import __version__
    from evenhand import report as drawn
    from evenhand.simulation.named import describe_learner

    for name, figure in figures(comparison).items():
        drawn.save_figure(figure, asked.out / name)
    report = drawn.Report(
        comparison=comparison,
        about={name: describe_learner(name) for name in asked.learners},
        facts=facts(asked, comparison.optimum),
        rate=rates_in_words(asked.play.rates),
        command=command_line(),
        version=__version__,
        results="results.json",
    )
    (asked.out / "report.html").write_text(drawn.page(report), encoding="utf-8")


def figures(comparison: "Comparison") -> "dict[str, Figure]":
    """The figures of the report, by the names of their files."""
    from evenhand import report as drawn

    drawings = {
        "regret.svg": drawn.regret_figure(comparison),
        "gaps.svg": drawn.gap_figure(comparison),
    }
    certified = drawn.certified_runs(comparison)
    if certified is not None:
        drawings["certified.svg"] = drawn.certified_figure(comparison, certified)
        drawings["in-sample.svg"] = drawn.in_sample_figure(comparison, certified)
    return drawings


def facts(asked: CompareRequest, optimum: float) -> dict[str, str]:
    """What the reader of the report must know, by heading."""
    from evenhand.environments import Replay
    from evenhand.simulation.named import POPULATIONS

    play = asked.play
    rate = rates_in_words(play.rates)
    options = f" ({', '.join(play.env_options)})"
    population = f"{play.environment}{options if play.env_options else ''}. "
    if isinstance(asked.world, Replay):
        population = f"the table {asked.world.name}: {len(asked.world):,} people, drawn with "
        population += "replacement, so that its own rates are the truth."
    else:
        population += POPULATIONS[play.environment].text
    kept = {name: value for name, value in asdict(asked.capacity).items() if value is not None}
    may_accept = "".join(f"; {name} {value}" for name, value in kept.items())
    return {
        "Population": population,
        "Protocol": f"{play.rounds:,} people arrive one after another. The label of a rejected "
        "person is never shown to the learner.",
        "Guarantee": f"gap in {rate} of at most \u03b3\u2032 = {play.limit:g} in every round, "
        f"with probability {1 - play.delta:g}{may_accept}",
        "Competing with": f"policies whose gap is at most \u03b3 = {play.comparator_gap:g}; regret "
        f"is measured at {play.regret_to:g}",
        "Runs": f"{asked.seeds} for each of {len(asked.learners)} learners",
        "Best possible": f"the best policy with a gap of at most {play.regret_to:g} errs on "
        f"{optimum:.2%} of the people",
    }
