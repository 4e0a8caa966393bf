"""`evenhand compare`: learners against each other on one population, with a table, figures and a
report.
"""

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from evenhand.cli.options import FOLDER, JSON_OPTION, NATURAL, POSITIVE, command_words, flag, option
from evenhand.cli.show import console, emit, grid, heading, progress, show_lines, write_json
from evenhand.cli.simulate import PLAY_OPTIONS, Play
from evenhand.contracts import Environment, Json
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RATES

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from evenhand.learners import CertifiedLearner
    from evenhand.simulate import Comparison, PromiseCost, Tradeoff


@click.command(
    "compare",
    params=[
        option(
            "--learner learners NAME[:K=V,...]",
            "A learner, with options after a colon; repeat it.  [default: eight of them]",
            multiple=True,
        ),
        *PLAY_OPTIONS,
        option("--seeds", "How many runs each learner gets.", POSITIVE, default=20),
        option("--first-seed", "The seed of the first run.", NATURAL, default=0),
        option(
            "--jobs N",
            "Processes; the results do not depend on it.  [default: one per core]",
            POSITIVE,
        ),
        flag(
            "--tradeoff", "Also measure what longer exploration buys, from rounds/10 to 10 rounds."
        ),
        option(
            "--out DIR",
            "Folder for report.html, results.json and the figures; created if need be.",
            FOLDER,
            default=Path("evenhand-compare"),
        ),
        JSON_OPTION,
    ],
)
def command(document: str | None, **options: Any) -> None:
    """Compare learners on a population whose truth is known.

    Prints a table and writes a report: one HTML page that works offline, the figures as SVG, and
    all numbers as JSON.

    \b
    Example
      evenhand compare --environment lending --learner two-phase \\
          --learner explore-then-commit-same --learner fair-on-gathered \\
          --rounds 20000 --seeds 4 --out lending

    \b
    Environments (options with --env-option KEY=VALUE)
      lending      a lender's two regions, 98 scorecards
      random       100 contexts, 204 noisy rules: seed, contexts, hypotheses
      thresholds   a score in bins, one threshold per group: bins, cuts
      lower-bound  section 4 of the paper: which (1 or 2), gap (at most 1/16)
      hard         losses T^(-1/4) apart: horizon, scale; meant for --allowed-gap 1
      scores       one continuous score, played person by person

    \b
    Learners (options after a colon: two-phase:estimator=two-sided,bound=dkw)
      two-phase                 the paper: estimator, schedule, bound, reading, exploration_rounds,
                                tradeoff_exponent
      certified                 no exploration phase, beyond the paper: bound, audit_rate
      explore-then-commit       explores T^(2/3) rounds: the same options, same_exploration
      explore-then-commit-same  explores as long as two-phase does: the same options
      exp4                      exponential weights on a net of fair pairs: the same options, grid
      unconstrained             the bandit without a limit: first_rounds
      fair-on-gathered          a limit on the gathered labels only: first_rounds
      semi-logistic             Kilbertus et al. 2020, with a fairness penalty
      explore-exploit           Keswani et al. 2024
      vw-epsilon-greedy         Vowpal Wabbit (the extra vw)
      vw-squarecb               the same with squarecb
      accept-all, uniform       no learning
    """
    from evenhand.report.drawing import require
    from evenhand.simulate.named import COMPARED

    require("matplotlib", "jinja2")  # before hours are spent on playing
    own = {name: options.pop(name) for name in ("seeds", "first_seed", "tradeoff", "out")}
    own["learners"] = tuple(options.pop("learners")) or COMPARED
    own["jobs"] = options.pop("jobs") or os.cpu_count() or 1
    asked, out = CompareRequest(play=Play(**options), **own), console()
    if any(name.startswith("vw-") for name in asked.learners):
        require("vowpalwabbit")
    comparison, traded = run(asked)
    if document != "-":
        show_comparison(out, comparison)
        if traded is not None:
            show_tradeoff(out, traded)
    costs = promise_costs(asked)
    write(asked, comparison, traded, costs)
    if emit(document, compare_document(asked, comparison, traded, costs)):
        return
    out.print(f"\nReport: {asked.out / 'report.html'}", markup=False, soft_wrap=True)


@dataclass(frozen=True)
class CompareRequest:
    """A comparison as it was asked for."""

    play: Play
    learners: tuple[str, ...]
    seeds: int
    first_seed: int
    jobs: int
    tradeoff: bool
    out: Path

    @property
    def all_seeds(self) -> range:
        """The seeds of the runs."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def command(self) -> str:
        """What to type to get the same results."""
        play = {**vars(self.play), "env_option": self.play.env_options}
        always = ("environment", "env_option", "allowed_gap", "comparator_gap", "delta")
        words = command_words(play, dict.fromkeys((*always, "regret_gap")))
        words += command_words(play, {"rate": "fpr", "engine": "auto", "rounds": None})
        words += command_words({"learner": self.learners}, {"learner": None})
        words += command_words(vars(self), {"seeds": None, "first_seed": 0, "tradeoff": False})
        return shlex.join(["evenhand", "compare", *words])


def run(asked: CompareRequest) -> "tuple[Comparison, Tradeoff | None]":
    """Play all runs, with a bar on stderr."""
    from evenhand.simulate import compare
    from evenhand.simulate.named import make_learner

    twice = sorted({name for name in asked.learners if asked.learners.count(name) > 1})
    if twice:
        raise InvalidInput(
            f"the learner {twice[0]!r} is given twice.",
            hint="name each learner once; options make it another one.",
        )
    play = asked.play
    world = play.world()
    setting = play.setting(world)
    learners = {name: make_learner(name, setting) for name in asked.learners}
    asked.out.mkdir(parents=True, exist_ok=True)
    with progress("runs", len(learners) * asked.seeds) as count:
        comparison = compare(
            learners,
            world,
            play.rounds,
            asked.all_seeds,
            promise=play.allowed_gap,
            failure_probability=play.delta,
            regret_gap=play.regret_to,
            engine=play.engine,
            jobs=asked.jobs,
            progress=count,
        )
    return comparison, trade_off(asked, world) if asked.tradeoff else None


def trade_off(asked: CompareRequest, world: Environment) -> "Tradeoff":
    """What longer exploration buys, with a bar on stderr."""
    from evenhand.simulate import tradeoff
    from evenhand.simulate.compare import EXPONENTS, HORIZONS

    play, setting = asked.play, asked.play.setting(world)
    with progress("runs of the trade-off", len(EXPONENTS) * HORIZONS * asked.seeds) as count:
        return tradeoff(
            world,
            setting.hypotheses,
            setting.rate,
            play.rounds,
            asked.all_seeds,
            comparator_gap=play.comparator_gap,
            failure_probability=setting.failure_probability,
            jobs=asked.jobs,
            progress=count,
        )


def promise_costs(asked: CompareRequest) -> "PromiseCost | None":
    """The cost of the promise over a grid of limits, where a certified learner is compared on a
    discrete population.
    """
    from evenhand.environments import Discrete
    from evenhand.simulate import promise_cost
    from evenhand.simulate.compare import LIMITS, MOST_SEEDS
    from evenhand.simulate.named import make_learner, split_options

    name = next((one for one in asked.learners if split_options(one)[0] == "certified"), None)
    world = asked.play.world()
    if name is None or not isinstance(world, Discrete):
        return None
    setting = asked.play.setting(world)
    certified = [
        cast("CertifiedLearner", make_learner(name, replace(setting, allowed_gap=limit)))
        for limit in sorted({*LIMITS, asked.play.allowed_gap})
    ]
    total, rounds = len(certified) * min(asked.seeds, MOST_SEEDS), asked.play.rounds
    with progress("runs for the cost of the promise", total) as count:
        return promise_cost(
            certified, world, rounds, asked.all_seeds, jobs=asked.jobs, progress=count
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
            "yes" if row.promised else "no",
            f"{row.regret:,.0f}{error}",
            mark.format(f"{row.worst_gap:.3f}"),
            mark.format(f"{row.runs_above}/{row.runs}"),
            mark.format(f"{row.rounds_above:.1%}"),
            f"{row.accepted_share:.0%}",
            f"{row.oracle_calls:,.0f}",
            f"{row.seconds:.2f}",
        )
    runs, promise = len(comparison.seeds), comparison.promise
    out.print(
        heading(f"{name}: {comparison.rounds:,} rounds, {runs} runs each, promise {promise:g}")
    )
    out.print(table)
    sure = 1 - comparison.failure_probability
    explained = (
        f"Regret: errors beyond the best policy with a gap of at most {comparison.regret_gap:g} ± "
        "one standard error. Certified: the promise holds for every policy with probability "
        f"{sure:g}, under the assumptions of the bound."
    )
    show_lines(out, [explained], style="dim")
    for row, learner in zip(comparison.summaries, comparison.learners, strict=True):
        if row.exploring:
            exploring = f"still exploring at the end of {row.exploring} of {row.runs} runs."
            show_lines(out, [f"{row.name}: {exploring} {learner.runs[-1].note}"])


def show_tradeoff(out: "Console", traded: "Tradeoff") -> None:
    """The slopes."""
    out.print(heading("\nWhat exploring T^(2 alpha) rounds buys"))
    for row, exponent in enumerate(traded.exponents):
        gap, cost = traded.slope(row, "excess_gap"), traded.slope(row, "cost")
        bought = f"excess gap ~ T^{gap:+.2f} (theory {-exponent:+.2f})"
        paid = f"cost ~ T^{cost:+.2f} (theory {2 * exponent:+.2f})"
        out.print(f"  alpha {exponent:.3f}: {bought}, {paid}")


def compare_document(
    asked: CompareRequest,
    comparison: "Comparison",
    traded: "Tradeoff | None",
    cost: "PromiseCost | None",
) -> Json:
    """What results.json holds."""
    from evenhand import __version__

    return {
        "evenhand": __version__,
        "command": asked.command,
        "comparison": comparison.to_json(),
        "tradeoff": None if traded is None else traded.to_json(),
        "promise_cost": None if cost is None else cost.to_json(),
    }


def write(
    asked: CompareRequest,
    comparison: "Comparison",
    traded: "Tradeoff | None",
    cost: "PromiseCost | None" = None,
) -> None:
    """results.json, the figures, and report.html.

    `Comparison.from_json(document["comparison"])` reads the comparison back.
    """
    from evenhand import __version__
    from evenhand import report as drawn
    from evenhand.simulate.named import describe_learner

    document = compare_document(asked, comparison, traded, cost)
    write_json(asked.out / "results.json", document, indent=None)
    for name, figure in figures(comparison, traded, cost).items():
        drawn.save_figure(figure, asked.out / name)
    report = drawn.Report(
        comparison=comparison,
        about={name: describe_learner(name) for name in asked.learners},
        facts=facts(asked, comparison.optimum),
        rate=RATES[asked.play.rate].name,
        command=asked.command,
        version=__version__,
        results="results.json",
        tradeoff=traded,
        promise_cost=cost,
    )
    (asked.out / "report.html").write_text(drawn.page(report), encoding="utf-8")


def figures(
    comparison: "Comparison", traded: "Tradeoff | None", cost: "PromiseCost | None"
) -> "dict[str, Figure]":
    """The figures of the report, by the names of their files."""
    from evenhand import report as drawn

    drawings = {
        "regret.svg": drawn.regret_figure(comparison),
        "gaps.svg": drawn.gap_figure(comparison),
    }
    if traded is not None:
        drawings["tradeoff.svg"] = drawn.tradeoff_figure(traded)
    certified = drawn.certified_runs(comparison)
    if certified is not None:
        drawings["certified.svg"] = drawn.certified_figure(comparison, certified)
        drawings["in-sample.svg"] = drawn.in_sample_figure(comparison, certified)
    if cost is not None:
        drawings["promise-cost.svg"] = drawn.promise_cost_figure(cost)
    return drawings


def facts(asked: CompareRequest, optimum: float) -> dict[str, str]:
    """What the reader of the report must know, by heading."""
    from evenhand.simulate.named import POPULATIONS

    play = asked.play
    rate, options = RATES[play.rate].name, f" ({', '.join(play.env_options)})"
    return {
        "Population": f"{play.environment}{options if play.env_options else ''}. "
        f"{POPULATIONS[play.environment].text}",
        "Protocol": f"{play.rounds:,} people arrive one after another. The label of a rejected "
        "person is never shown to the learner.",
        "Promise": f"gap in {rate} of at most \u03b3\u2032 = {play.allowed_gap:g} in every round, "
        f"with probability {1 - play.delta:g}",
        "Competing with": f"policies whose gap is at most \u03b3 = {play.comparator_gap:g}; regret "
        f"is measured at {play.regret_to:g}",
        "Runs": f"{asked.seeds} for each of {len(asked.learners)} learners",
        "Best possible": f"the best policy with a gap of at most {play.regret_to:g} errs on "
        f"{optimum:.2%} of the people",
    }
