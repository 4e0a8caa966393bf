"""`evenhand simulate`: one learner, one seed, epoch by epoch."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import output_path, with_options
from evenhand.cli.playing import PLAY_OPTIONS, Play

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.cli.show import RuleBook
    from evenhand.contracts import Learner, Policy
    from evenhand.simulate import Run

PARTS = 2
"""How many rules of a mixture are named in the table."""


@click.command("simulate")
@with_options(
    click.option(
        "--learner",
        default="two-phase",
        show_default=True,
        metavar="NAME[:K=V,...]",
        help="The learner, with options after a colon; `evenhand compare --help` lists them.",
    ),
    *PLAY_OPTIONS,
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="The same seed gives the same run.",
    ),
    click.option(
        "--figure",
        type=click.Path(path_type=Path),
        callback=output_path(".png", ".svg", ".pdf"),
        metavar="FILE",
        help="Draw regret and true gap by round.",
    ),
)
def command(learner: str, seed: int, figure: Path | None, **options: Any) -> None:
    """Play one learner for one run and tell every epoch.

    The population is known, so the true gap and the true loss of every policy are exact; the
    learner sees only the labels of the people it accepts.

    \b
    Example
      evenhand simulate --environment lending --learner two-phase --rounds 50000 --seed 1
    """
    from evenhand.cli import show

    asked = Play(**options)
    run, world = play(asked, learner, seed)
    out = show.console()
    tell(out, asked, learner, run)
    if figure is not None:
        draw(asked, learner, run, world, figure)
        click.echo(f"\nFigure: {figure}")


def play(asked: Play, learner: str, seed: int) -> "tuple[Run[Learner], Any]":
    """The run and its environment, with a bar of rounds on stderr."""
    from evenhand.cli.show import progress
    from evenhand.simulate import simulate
    from evenhand.simulate.named import make_learner

    world = asked.world()
    made = make_learner(learner, asked.setting(world))
    with progress("rounds", asked.rounds) as told:
        run = simulate(
            made, world, asked.rounds, seed, asked.regret_to, engine=asked.engine, progress=told
        )
    return run, world


def tell(out: "Console", asked: Play, learner: str, run: "Run[Learner]") -> None:
    """The table of epochs and what it comes to."""
    from rich.text import Text

    from evenhand.cli.show import RuleBook, heading

    rules = RuleBook(("score",) if asked.environment == "scores" else ("context",))
    out.print(
        heading(f"{learner} on {asked.environment}: {asked.rounds:,} rounds, seed {run.seed}")
    )
    out.print(_table(run, rules, asked.allowed_gap))
    rules.show(out)
    for line in _ends(asked, run):
        out.print(Text(line))


def _table(run: "Run[Learner]", rules: "RuleBook", promise: float) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1))
    for name in ("rounds", "phase"):
        table.add_column(name, justify="left", no_wrap=True)
    table.add_column("policy", overflow="fold")
    for name in ("true gap", "loss", "regret so far", "accepted"):
        table.add_column(name, justify="right", no_wrap=True)
    for first, last in stretches(run):
        begin = 1 if first == 0 else int(run.rounds[first - 1]) + 1
        above = run.gaps[last] > promise + 1e-9
        table.add_row(
            f"{begin:,} to {run.rounds[last]:,}",
            run.phases[last],
            in_short(run.policies[last], rules),
            f"[bold red]{run.gaps[last]:.3f}[/]" if above else f"{run.gaps[last]:.3f}",
            f"{run.losses[last]:.4f}",
            f"{run.regret[last]:,.1f}",
            f"{int(run.accepted[first : last + 1].sum()) / (int(run.rounds[last]) - begin + 1):.0%}",
        )
    return table


def stretches(run: "Run[Learner]") -> list[tuple[int, int]]:
    """(first, last) of consecutive epochs with the same phase and policy: an exploration of many
    epochs is one row.
    """
    found: list[tuple[int, int]] = []
    for i, (phase, policy) in enumerate(zip(run.phases, run.policies, strict=True)):
        if found and run.phases[i - 1] == phase and run.policies[i - 1] == policy:
            found[-1] = (found[-1][0], i)
        else:
            found.append((i, i))
    return found


def in_short(policy: "Policy", rules: "RuleBook") -> str:
    """The heaviest rules of a mixture: "0.67 rule 1 + 0.29 rule 2 + 5 more"; in its own words where
    it is none.
    """
    from evenhand.policies import Mixture

    if not isinstance(policy, Mixture):
        return policy.describe(rules.names)
    parts = sorted(zip(policy.weights, policy.hypotheses, strict=True), key=lambda part: -part[0])
    if len(parts) == 1:
        return rules.short(parts[0][1])
    named = [f"{weight:.2f} {rules.short(rule)}" for weight, rule in parts[:PARTS]]
    more = len(parts) - PARTS
    return " + ".join([*named, *([f"{more} more"] if more > 0 else [])])


def _ends(asked: Play, run: "Run[Learner]") -> list[str]:
    from evenhand.learners import EpochLearner
    from evenhand.simulate.record import promises

    report = run.learner.report if isinstance(run.learner, EpochLearner) else None
    share = run.share_above(asked.allowed_gap)
    said = "never above" if not share else f"above in {share:.1%} of the rounds:"
    certified = (
        f"certified with probability {1 - asked.delta:g} under the assumptions of the bound"
        if promises(run.learner, asked.allowed_gap)
        else "this learner is not certified for it"
    )
    return [
        f"\nLargest true gap {run.worst_gap:.3f}, {said} the promise of {asked.allowed_gap:g} ({certified}).",
        f"Regret {run.regret[-1]:,.1f} against the best policy with a gap of at most {asked.regret_to:g}, which loses {run.optimum:.4f} "
        "a round; negative where a larger gap buys a smaller loss.",
        f"{int(run.accepted.sum()):,} accepted, {run.oracle_calls} oracle calls, {run.seconds:.2f} s.",
        *(report.notes if report else ()),
        *(f"Forecast: {text}" for text in (report.forecast if report else ())),
    ]


def draw(asked: Play, name: str, run: "Run[Learner]", world: Any, path: Path) -> None:
    """Regret and gap of this run."""
    from evenhand.report import regret_and_gap_figure, save_figure
    from evenhand.simulate import Comparison, LearnerRuns
    from evenhand.simulate.record import record

    told = Comparison(
        environment=dict(world.params),
        rounds=asked.rounds,
        seeds=(run.seed,),
        promise=asked.allowed_gap,
        failure_probability=asked.delta,
        regret_gap=asked.regret_to,
        optimum=run.optimum,
        learners=(LearnerRuns(name, {}, (record(run, world, asked.allowed_gap),)),),
    )
    save_figure(regret_and_gap_figure(told), path)
