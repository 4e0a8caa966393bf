"""`evenhand simulate`: one learner, one seed, epoch by epoch; and the options that describe what is
played, which `evenhand compare` shares.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from evenhand.cli import show
from evenhand.cli.options import JSON_OPTION, NATURAL, ONE_RATE, PICTURE_FILE, option
from evenhand.contracts import Environment, Policy
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RATES

if TYPE_CHECKING:
    from evenhand.contracts import Learner
    from evenhand.simulate import Engine, Run
    from evenhand.simulate.named import Setting

PARTS = 2
"""How many rules of a mixture are named in the table."""
PLAY_OPTIONS = (
    option(
        "--environment NAME",
        "The population: lending, random, thresholds, lower-bound, hard or scores.",
        default="lending",
    ),
    option(
        "--env-option env_options KEY=VALUE",
        "An option of the environment; repeat it.",
        multiple=True,
    ),
    option("--allowed-gap", "The promise: the gap that no policy may exceed.", float, default=0.15),
    option(
        "--comparator-gap",
        "The gap of the policies that the learner competes with; with the promise it sets how "
        "long it explores.",
        float,
        default=0.02,
    ),
    option(
        "--regret-gap FLOAT",
        "Measure regret against the best policy with this gap.  [default: that of "
        "--comparator-gap]",
        float,
    ),
    option("--delta", "How likely the promise may fail over a whole run.", float, default=0.05),
    ONE_RATE,
    option("--rounds", "How many people arrive in a run.", int, default=100000),
    option(
        "--engine",
        "Person by person, or by counts (discrete populations only; the cost does not grow with "
        "the rounds).",
        click.Choice(("auto", "events", "counts")),
        default="auto",
    ),
)


@dataclass(frozen=True)
class Play:
    """What is played, as it was asked for."""

    environment: str = "lending"
    env_options: tuple[str, ...] = ()
    allowed_gap: float = 0.15
    comparator_gap: float = 0.02
    regret_gap: float | None = None
    delta: float = 0.05
    rate: str = "fpr"
    rounds: int = 100_000
    engine: "Engine" = "auto"

    @property
    def regret_to(self) -> float:
        """The gap of the policy that regret is measured against."""
        return self.comparator_gap if self.regret_gap is None else self.regret_gap

    def world(self) -> Environment:
        """The environment; refuses what no run could have."""
        from evenhand.simulate.named import make_environment

        if self.rounds < 1:
            raise InvalidInput(f"rounds is {self.rounds}; a run has at least one round.")
        return make_environment(self.environment, self.env_options, self.rounds)

    def setting(self, world: Environment) -> "Setting":
        """What the learners are told."""
        from evenhand.simulate.named import Setting

        if world.hypotheses is None:
            raise InvalidInput(
                f"the environment {self.environment!r} has no class of rules to choose from."
            )
        return Setting(
            hypotheses=world.hypotheses,
            rate=RATES[self.rate],
            allowed_gap=self.allowed_gap,
            comparator_gap=self.comparator_gap,
            failure_probability=self.delta,
            horizon=self.rounds,
        )


@click.command(
    "simulate",
    params=[
        option(
            "--learner NAME[:K=V,...]",
            "The learner, with options after a colon; `evenhand compare --help` lists them.",
            default="two-phase",
        ),
        *PLAY_OPTIONS,
        option("--seed", "The same seed gives the same run.", NATURAL, default=0),
        option("--figure FILE", "Draw regret and true gap by round.", PICTURE_FILE),
        JSON_OPTION,
    ],
)
def command(
    learner: str, seed: int, figure: Path | None, document: str | None, **options: Any
) -> None:
    """Play one learner for one run and tell every epoch.

    The population is known, so the true gap and the true loss of every policy are exact; the
    learner sees only the labels of the people it accepts.

    \b
    Example
      evenhand simulate --environment lending --learner two-phase --rounds 50000 --seed 1
    """
    from evenhand.report.drawing import require
    from evenhand.simulate import simulate
    from evenhand.simulate.named import make_learner, split_options
    from evenhand.simulate.record import record

    if figure is not None:
        require("matplotlib")  # before the run, not after
    if split_options(learner)[0].startswith("vw-"):
        require("vowpalwabbit")
    play = Play(**options)
    world = play.world()
    made = make_learner(learner, play.setting(world))
    with show.progress("rounds", play.rounds) as count:
        run = simulate(
            made, world, play.rounds, seed, play.regret_to, engine=play.engine, progress=count
        )
    if figure is not None:
        draw(play, learner, run, world, figure)
    told = record(run, world, play.allowed_gap).to_json()
    names = ("phases", "gaps", "losses", "regret")
    epochs = {name: getattr(run, name) for name in names} | {"rounds": run.rounds}
    accepted = np.diff(run.rounds, prepend=0)
    epochs["accepted_share"] = np.asarray(run.accepted) / accepted
    asked = {"learner": learner, "seed": seed, "oracle_calls": run.oracle_calls, **vars(play)}
    if show.emit(document, {**asked, "optimum": run.optimum, "run": told, "epochs": epochs}):
        return
    show_run(play, learner, run)
    if figure is not None:
        click.echo(f"\nFigure: {figure}")


def show_run(play: Play, learner: str, run: "Run[Learner]") -> None:
    """The table of epochs and what it comes to; an exploration of many epochs is one row."""
    from evenhand.cli.frontier import RuleBook

    out = show.console()
    rules = RuleBook(("score",) if play.environment == "scores" else ("context",))
    numbers = (">true gap", ">loss", ">regret so far", ">accepted")
    table = show.grid("rounds", "phase", "~policy", *numbers)
    for first, last in stretches(run.phases, run.policies):
        begin = 1 if first == 0 else int(run.rounds[first - 1]) + 1
        above = run.gaps[last] > play.allowed_gap + show.HOLDS
        accepted = int(run.accepted[first : last + 1].sum())
        table.add_row(
            f"{begin:,} to {run.rounds[last]:,}",
            run.phases[last],
            rules.mixture(run.policies[last], PARTS),
            f"[bold red]{run.gaps[last]:.3f}[/]" if above else f"{run.gaps[last]:.3f}",
            f"{run.losses[last]:.4f}",
            f"{run.regret[last]:,.1f}",
            f"{accepted / (int(run.rounds[last]) - begin + 1):.0%}",
        )
    title = f"{learner} on {play.environment}: {play.rounds:,} rounds, seed {run.seed}"
    out.print(show.heading(title))
    out.print(table)
    rules.show(out)
    show.show_lines(out, summary(play, run))


def stretches(phases: Sequence[str], policies: Sequence[Policy]) -> list[tuple[int, int]]:
    """(first, last) of consecutive epochs with the same phase and policy."""
    runs: list[tuple[int, int]] = []
    for i, (phase, policy) in enumerate(zip(phases, policies, strict=True)):
        if runs and phases[i - 1] == phase and policies[i - 1] == policy:
            runs[-1] = (runs[-1][0], i)
        else:
            runs.append((i, i))
    return runs


def summary(play: Play, run: "Run[Learner]") -> list[str]:
    """What the run comes to, in sentences."""
    from evenhand.learners import EpochLearner
    from evenhand.simulate.record import promises

    report = run.learner.report if isinstance(run.learner, EpochLearner) else None
    share = run.share_above(play.allowed_gap)
    said = "never above" if not share else f"above in {share:.1%} of the rounds:"
    certified = (
        f"certified with probability {1 - play.delta:g} under the assumptions of the bound"
        if promises(run.learner, play.allowed_gap)
        else "this learner is not certified for it"
    )
    return [
        f"\nLargest true gap {run.worst_gap:.3f}, {said} the promise of {play.allowed_gap:g} "
        f"({certified}).",
        f"Regret {run.regret[-1]:,.1f} against the best policy with a gap of at most "
        f"{play.regret_to:g}, which loses {run.optimum:.4f} a round; negative where a larger gap "
        "buys a smaller loss.",
        f"{int(run.accepted.sum()):,} accepted, {run.oracle_calls} oracle calls, "
        f"{run.seconds:.2f} s.",
        *(report.notes if report else ()),
        *(f"Forecast: {text}" for text in (report.forecast if report else ())),
    ]


def draw(play: Play, name: str, run: "Run[Learner]", world: Environment, path: Path) -> None:
    """Regret and gap of this run."""
    from evenhand.report import regret_and_gap_figure, save_figure
    from evenhand.simulate import Comparison, LearnerRuns
    from evenhand.simulate.record import record

    alone = Comparison(
        environment=dict(world.params),
        rounds=play.rounds,
        seeds=(run.seed,),
        promise=play.allowed_gap,
        failure_probability=play.delta,
        regret_gap=play.regret_to,
        optimum=run.optimum,
        learners=(LearnerRuns(name, {}, (record(run, world, play.allowed_gap),)),),
    )
    save_figure(regret_and_gap_figure(alone), path)
