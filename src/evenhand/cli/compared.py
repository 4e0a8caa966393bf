"""What `evenhand compare` prints and writes."""

import json
from dataclasses import replace
from typing import Any, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evenhand import __version__
from evenhand import report as drawn
from evenhand.cli.playing import CompareRequest
from evenhand.cli.show import heading, progress
from evenhand.environments import Discrete
from evenhand.fairness.rates import RATES
from evenhand.learners import CertifiedLearner
from evenhand.report import Report
from evenhand.simulate import Comparison, PromiseCost, Summary, Tradeoff, promise_cost
from evenhand.simulate.named import POPULATIONS, describe_learner, make_learner, split_options
from evenhand.simulate.sweeps import LIMITS, MOST_SEEDS


def tell(out: Console, comparison: Comparison) -> None:
    """The table, and what it means."""
    name = comparison.environment.get("environment", "a population")
    out.print(
        heading(
            f"{name}: {comparison.rounds:,} rounds, {len(comparison.seeds)} runs each, promise {comparison.promise:g}"
        )
    )
    out.print(_table(comparison))
    out.print(
        Text(
            f"Regret: errors beyond the best policy with a gap of at most {comparison.regret_gap:g} ± one standard error. Certified: the "
            f"promise holds for every policy with probability {1 - comparison.failure_probability:g}, under the assumptions of the bound.",
            style="dim",
        )
    )
    for row, learner in zip(comparison.summaries, comparison.learners, strict=True):
        if row.exploring:
            out.print(
                Text(
                    f"{row.name}: still exploring at the end of {row.exploring} of {row.runs} runs. {learner.runs[-1].note}"
                )
            )


def _table(comparison: Comparison) -> Table:
    table = Table(box=None, padding=(0, 1))
    table.add_column("learner", no_wrap=True)
    for name in (
        "certified",
        "regret",
        "worst\ntrue gap",
        "runs\nabove",
        "rounds\nabove",
        "accepted",
        "oracle\ncalls",
        "s/run",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for row in comparison.summaries:
        table.add_row(*_cells(row))
    return table


def _cells(row: Summary) -> list[str]:
    error = "" if row.regret_error is None else f" ± {row.regret_error:,.0f}"
    mark = "[bold red]{}[/]" if row.runs_above else "{}"
    return [
        row.name.replace("[", "\\["),
        "yes" if row.promised else "no",
        f"{row.regret:,.0f}{error}",
        mark.format(f"{row.worst_gap:.3f}"),
        mark.format(f"{row.runs_above}/{row.runs}"),
        mark.format(f"{row.rounds_above:.1%}"),
        f"{row.accepted_share:.0%}",
        f"{row.oracle_calls:,.0f}",
        f"{row.seconds:.2f}",
    ]


def tell_tradeoff(out: Console, found: Tradeoff) -> None:
    """The slopes."""
    out.print(heading("\nWhat exploring T^(2 alpha) rounds buys"))
    for row, exponent in enumerate(found.exponents):
        gap, cost = found.slope(row, "excess_gap"), found.slope(row, "cost")
        bought = f"excess gap ~ T^{gap:+.2f} (theory {-exponent:+.2f})"
        out.print(
            f"  alpha {exponent:.3f}: {bought}, cost ~ T^{cost:+.2f} (theory {2 * exponent:+.2f})"
        )


def promise_costs(asked: CompareRequest) -> PromiseCost | None:
    """The cost of the promise over a grid of limits, where a certified learner is compared on a
    discrete population.
    """
    name = next((one for one in asked.learners if split_options(one)[0] == "certified"), None)
    world = asked.play.world()
    if name is None or not isinstance(world, Discrete):
        return None
    setting, limits = asked.play.setting(world), sorted({*LIMITS, asked.play.allowed_gap})
    with progress(
        "runs for the cost of the promise", len(limits) * min(asked.seeds, MOST_SEEDS)
    ) as told:
        return promise_cost(
            lambda limit: cast(
                CertifiedLearner, make_learner(name, replace(setting, allowed_gap=limit))
            ),
            world,
            asked.play.rounds,
            asked.all_seeds,
            limits,
            jobs=asked.jobs,
            progress=told,
        )


def write(
    asked: CompareRequest,
    comparison: Comparison,
    traded: Tradeoff | None,
    cost: PromiseCost | None = None,
) -> None:
    """results.json, the figures, and report.html."""
    document = results(asked, comparison, traded, cost)
    (asked.out / "results.json").write_text(
        json.dumps(document, allow_nan=False) + "\n", encoding="utf-8"
    )
    drawn.save_figure(drawn.regret_figure(comparison), asked.out / "regret.svg")
    drawn.save_figure(drawn.gap_figure(comparison), asked.out / "gaps.svg")
    if traded is not None:
        drawn.save_figure(drawn.tradeoff_figure(traded), asked.out / "tradeoff.svg")
    certified = drawn.certified_runs(comparison)
    if certified is not None:
        drawn.save_figure(
            drawn.certified_figure(comparison, certified), asked.out / "certified.svg"
        )
        drawn.save_figure(
            drawn.in_sample_figure(comparison, certified), asked.out / "in-sample.svg"
        )
    if cost is not None:
        drawn.save_figure(drawn.promise_cost_figure(cost), asked.out / "promise-cost.svg")
    (asked.out / "report.html").write_text(
        drawn.page(_report(asked, comparison, traded, cost)), encoding="utf-8"
    )


def results(
    asked: CompareRequest,
    comparison: Comparison,
    traded: Tradeoff | None,
    cost: PromiseCost | None = None,
) -> dict[str, Any]:
    """Everything, as plain JSON; `Comparison.from_json(document["comparison"])` reads the
    comparison back.
    """
    return {
        "evenhand": __version__,
        "command": asked.command,
        "comparison": comparison.to_json(),
        "tradeoff": None if traded is None else traded.to_json(),
        "promise_cost": None if cost is None else cost.to_json(),
    }


def _report(
    asked: CompareRequest, comparison: Comparison, traded: Tradeoff | None, cost: PromiseCost | None
) -> Report:
    return Report(
        comparison=comparison,
        about={name: describe_learner(name) for name in asked.learners},
        facts=_facts(asked, comparison),
        rate=RATES[asked.play.rate].name,
        command=asked.command,
        version=__version__,
        results="results.json",
        tradeoff=traded,
        promise_cost=cost,
    )


def _facts(asked: CompareRequest, comparison: Comparison) -> dict[str, str]:
    play = asked.play
    rate, sure = RATES[play.rate].name, 1 - play.delta
    options = f" ({', '.join(play.env_options)})" if play.env_options else ""
    return {
        "Population": f"{play.environment}{options}. {POPULATIONS[play.environment].text}",
        "Protocol": f"{play.rounds:,} people arrive one after another. The label of a rejected person is never shown to the learner.",
        "Promise": f"gap in {rate} of at most \u03b3\u2032 = {play.allowed_gap:g} in every round, with probability {sure:g}",
        "Competing with": f"policies whose gap is at most \u03b3 = {play.comparator_gap:g}; regret is measured at {play.regret_to:g}",
        "Runs": f"{asked.seeds} for each of {len(asked.learners)} learners",
        "Best possible": f"the best policy with a gap of at most {play.regret_to:g} errs on {comparison.optimum:.2%} of the people",
    }
