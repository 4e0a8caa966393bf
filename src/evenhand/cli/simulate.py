"""`evenhand simulate`: one learner, one seed, epoch by epoch; and the options that describe what is
played, which `evenhand compare` shares.
"""

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from evenhand.cli import show
from evenhand.cli.capacity import Capacity, capacity_options
from evenhand.cli.options import (
    NATURAL,
    PICTURE_FILE,
    Function,
    Share,
    json_options,
    rates_option,
)
from evenhand.contracts import Environment, Hypothesis, Policy
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import as_rates
from evenhand.findings import ROUNDING
from evenhand.policies import Mixture

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.contracts import Learner
    from evenhand.simulation import Engine, Run
    from evenhand.simulation.named import Setting

PARTS = 2
"""How many rules of a mixture are named in the table."""
SHORT = 36
"""Letters of a rule in a table at most; a longer one gets a number there."""
LONG = 220
"""Letters after which a rule is cut below the table."""


@dataclass(frozen=True)
class Play:
    """What is played, as it was asked for."""

    environment: str = "lending"
    env_options: tuple[str, ...] = ()
    limit: float = 0.15
    comparator_gap: float = 0.02
    regret_gap: float | None = None
    delta: float = 0.05
    rates: tuple[str, ...] = ("fpr",)
    rounds: int = 100_000
    engine: "Engine" = "auto"

    @property
    def regret_to(self) -> float:
        """The gap of the policy that regret is measured against."""
        return self.comparator_gap if self.regret_gap is None else self.regret_gap

    def world(self) -> Environment:
        """The environment; a run has at least one round."""
        from evenhand.simulation.named import make_environment

        if self.rounds < 1:
            raise InvalidInput(f"rounds is {self.rounds}; a run has at least one round.")
        return make_environment(self.environment, self.env_options, self.rounds)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the people."""
        return ("score",) if self.environment == "scores" else ("context",)

    def setting(
        self,
        world: Environment,
        capacity: Capacity | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> "Setting":
        """What the learners know. columns: of the people, where a table is the population."""
        from evenhand.simulation.named import Setting

        if world.hypotheses is None:
            raise InvalidInput(
                f"the environment {self.environment!r} has no class of rules to choose from."
            )
        return Setting(
            hypotheses=world.hypotheses,
            rate=as_rates(self.rates),
            limit=self.limit,
            comparator_gap=self.comparator_gap,
            delta=self.delta,
            horizon=self.rounds,
            **({} if capacity is None else capacity.settings()),
            candidates=(capacity.candidates(columns or self.columns) if capacity else ()) or None,
        )


def play_options(command: Function) -> Function:
    """What is played. Hands on `play`: Play."""

    @click.option(
        "--environment",
        metavar="NAME",
        default="lending",
        help="The population: lending, random, thresholds, lower-bound, hard or scores.",
    )
    @click.option(
        "--env-option",
        "env_options",
        metavar="KEY=VALUE",
        multiple=True,
        help="An option of the environment; repeat it.",
    )
    @click.option(
        "--limit",
        type=Share("(0, 1]"),
        default=0.15,
        help="The gap that no policy may exceed, in any round.",
    )
    @click.option(
        "--comparator-gap",
        type=Share("[0, 1]"),
        default=0.02,
        help="The gap of the policies that the learner competes with; with the limit it sets how "
        "long it explores.",
    )
    @click.option(
        "--regret-gap",
        metavar="FLOAT",
        type=float,
        help="Measure regret against the best policy with this gap.  [default: that of "
        "--comparator-gap]",
    )
    @click.option(
        "--delta",
        type=Share("(0, 1)"),
        default=0.05,
        help="Largest probability that a certified learner ever exceeds the limit in a run.",
    )
    @rates_option()
    @click.option("--rounds", type=int, default=100000, help="How many people arrive in a run.")
    @click.option(
        "--engine",
        type=click.Choice(("auto", "events", "counts")),
        default="auto",
        help="Person by person, or by counts (discrete populations only; the cost does not grow "
        "with the rounds).",
    )
    @functools.wraps(command)
    def with_play(
        *args: Any,
        environment: str,
        env_options: tuple[str, ...],
        limit: float,
        comparator_gap: float,
        regret_gap: float | None,
        delta: float,
        rates: tuple[str, ...],
        rounds: int,
        engine: "Engine",
        **options: Any,
    ) -> None:
        play = Play(
            environment=environment,
            env_options=env_options,
            limit=limit,
            comparator_gap=comparator_gap,
            regret_gap=regret_gap,
            delta=delta,
            rates=rates,
            rounds=rounds,
            engine=engine,
        )
        command(*args, play=play, **options)

    return with_play


@click.command("simulate")
@click.option(
    "--learner",
    metavar="NAME[:K=V,...]",
    default="two-phase",
    help="The learner, with options after a colon; `evenhand compare --help` lists them.",
)
@play_options
@capacity_options
@click.option("--seed", type=NATURAL, default=0, help="The same seed gives the same run.")
@click.option(
    "--figure", metavar="FILE", type=PICTURE_FILE, help="Draw regret and true gap by round."
)
@json_options
def command(
    learner: str,
    play: Play,
    capacity: Capacity,
    seed: int,
    figure: Path | None,
    document: str | Path | None,
) -> None:
    """Simulate one run of one learner and show every epoch.

    The population is known, so the true gap and the true loss of every policy are exact; the
    learner sees only the labels of the people it accepts.

    \b
    Example
      evenhand simulate --environment lending --learner two-phase --rounds 50000 --seed 1
      evenhand simulate --learner certified --capacity 0.2 --rounds 50000
    """
    from evenhand.media.drawing import require
    from evenhand.simulation import simulate
    from evenhand.simulation.named import make_learner
    from evenhand.simulation.record import record

    if figure is not None:
        require("matplotlib")  # before the run, not after
    world = play.world()
    made = make_learner(learner, play.setting(world, capacity))
    with show.progress("rounds", play.rounds) as count:
        run = simulate(
            made, world, play.rounds, seed, play.regret_to, engine=play.engine, progress=count
        )
    if figure is not None:
        draw(play, learner, run, world, figure)
    people = np.diff(run.rounds, prepend=0)
    figures = {
        "learner": learner,
        "seed": seed,
        "oracle_calls": run.oracle_calls,
        **asdict(play),
        **{name: value for name, value in asdict(capacity).items() if value is not None},
        "optimum": run.optimum,
        "run": record(run, world, play.limit).to_json(),
        "epochs": {
            "phases": run.phases,
            "gaps": run.gaps,
            "losses": run.losses,
            "regret": run.regret,
            "rounds": run.rounds,
            "accepted_share": np.asarray(run.accepted) / people,
        },
    }
    if show.emit(document, figures):
        return
    show_run(play, learner, run)
    if figure is not None:
        click.echo(f"\nFigure: {figure}")


@dataclass
class RuleBook:
    """Short names for rules whose description is long: "rule 1", "rule 2", ... in order of
    appearance.
    """

    names: Sequence[str]
    numbered: list[Hypothesis] = field(default_factory=list)

    def short(self, rule: Hypothesis) -> str:
        """The description, or its number."""
        text = rule.describe(self.names)
        if len(text) <= SHORT:
            return text
        places = (i for i, one in enumerate(self.numbered) if one is rule or one == rule)
        place = next(places, len(self.numbered))
        if place == len(self.numbered):
            self.numbered.append(rule)
        return f"rule {place + 1}"

    def mixture(self, policy: Policy, most: int | None = None) -> str:
        """ "0.73 credit_score >= 612 + 0.27 accept all applicants", the heaviest rules of a
        mixture; a policy that is none in its own words.
        """
        if not isinstance(policy, Mixture):
            return policy.describe(self.names)
        parts = sorted(
            zip(policy.weights, policy.hypotheses, strict=True), key=lambda part: -part[0]
        )
        if len(parts) == 1:
            return self.short(parts[0][1])
        named = [f"{weight:.2f} {self.short(rule)}" for weight, rule in parts[:most]]
        more = len(parts) - len(named)
        return " + ".join([*named, *([f"{more} more"] if more else [])])

    def show(self, out: "Console") -> None:
        """What the numbers stand for; very long rules are cut."""
        from rich.text import Text

        for place, hypothesis in enumerate(self.numbered, 1):
            rule = hypothesis.describe(self.names)
            cut = rule if len(rule) <= LONG else rule[:LONG] + " ..."
            out.print(Text(f"  rule {place}: {cut}"))


def show_run(play: Play, learner: str, run: "Run[Learner]") -> None:
    """The table of epochs and what it comes to; an exploration of many epochs is one row."""
    out = show.console()
    rules = RuleBook(play.columns)
    numbers = (">true gap", ">loss", ">regret so far", ">accepted")
    table = show.grid("rounds", "phase", "~policy", *numbers)
    for first, last in stretches(run.phases, run.policies):
        begin = 1 if first == 0 else int(run.rounds[first - 1]) + 1
        above = run.gaps[last] > play.limit + ROUNDING
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
    from evenhand.simulation.record import guarantees

    report = run.learner.report if isinstance(run.learner, EpochLearner) else None
    share = run.share_above(play.limit)
    said = "never above" if not share else f"above in {share:.1%} of the rounds:"
    certified = (
        f"certified with probability {1 - play.delta:g} under the assumptions of the bound"
        if guarantees(run.learner, play.limit)
        else "this learner is not certified for it"
    )
    return [
        f"\nLargest true gap {run.worst_gap:.3f}, {said} the limit of {play.limit:g} "
        f"({certified}).",
        f"Regret {run.regret[-1]:,.1f} against the best policy with a gap of at most "
        f"{play.regret_to:g}{_share(run)}, which loses {run.optimum:.4f} a round; negative where a "
        "larger gap buys a smaller loss.",
        f"{int(run.accepted.sum()):,} accepted, {run.oracle_calls} oracle calls, "
        f"{run.seconds:.2f} s.",
        *(note.text for note in (report.notes if report else ())),
        *(f"Forecast: {text}" for text in (report.forecast if report else ())),
    ]


def _share(run: "Run[Learner]") -> str:
    """Which share the best policy may accept, where not every share is permitted."""
    from evenhand.simulation.run import permitted_shares

    least, most = permitted_shares(run.learner)
    if (least, most) == (0.0, 1.0):
        return ""
    return f" that accepts {least:.0%} to {most:.0%} of the people"


def draw(play: Play, name: str, run: "Run[Learner]", world: Environment, path: Path) -> None:
    """Regret and gap of this run."""
    from evenhand.report import regret_and_gap_figure, save_figure
    from evenhand.simulation import Comparison, LearnerRuns
    from evenhand.simulation.record import record

    kept = record(run, world, play.limit)
    alone = Comparison(
        environment=dict(world.params),
        rounds=play.rounds,
        seeds=(run.seed,),
        limit=play.limit,
        delta=play.delta,
        regret_gap=play.regret_to,
        optimum=kept.optimum,
        constant=kept.constant,
        learners=(LearnerRuns(name, {}, (kept,)),),
    )
    save_figure(regret_and_gap_figure(alone), path)
