"""The options that describe what is played, shared by `simulate` and `compare`."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import RATE_NAME

if TYPE_CHECKING:
    from evenhand.simulate.named import Setting

PLAY_OPTIONS = (
    click.option(
        "--environment",
        default="lending",
        show_default=True,
        metavar="NAME",
        help="The population: lending, random, thresholds, lower-bound, hard or scores.",
    ),
    click.option(
        "--env-option",
        "env_options",
        multiple=True,
        metavar="KEY=VALUE",
        help="An option of the environment; repeat it.",
    ),
    click.option(
        "--allowed-gap",
        type=float,
        default=0.15,
        show_default=True,
        help="The promise: the gap that no policy may exceed.",
    ),
    click.option(
        "--comparator-gap",
        type=float,
        default=0.02,
        show_default=True,
        help="The gap of the policies that the learner competes with; with the promise it sets how long it explores.",
    ),
    click.option(
        "--regret-gap",
        type=float,
        metavar="FLOAT",
        help="Measure regret against the best policy with this gap.  [default: that of --comparator-gap]",
    ),
    click.option(
        "--delta",
        type=float,
        default=0.05,
        show_default=True,
        help="How likely the promise may fail over a whole run.",
    ),
    click.option(
        "--rate",
        **RATE_NAME,
        default="fpr",
        show_default=True,
        help="The rate whose gap is limited: false positive, false negative, selection.",
    ),
    click.option(
        "--rounds",
        type=int,
        default=100_000,
        show_default=True,
        help="How many people arrive in a run.",
    ),
    click.option(
        "--engine",
        type=click.Choice(("auto", "events", "counts")),
        default="auto",
        show_default=True,
        help="Person by person, or by counts (discrete populations only; the cost does not grow with the rounds).",
    ),
)


@dataclass(frozen=True)
class Play:
    """What is played, as it was asked for."""

    environment: str
    env_options: tuple[str, ...]
    allowed_gap: float
    comparator_gap: float
    regret_gap: float | None
    delta: float
    rate: str
    rounds: int
    engine: Any

    @property
    def regret_to(self) -> float:
        """The gap of the policy that regret is measured against."""
        return self.comparator_gap if self.regret_gap is None else self.regret_gap

    def world(self) -> Any:
        """The environment; refuses what no run could have."""
        from evenhand.errors import InvalidInput
        from evenhand.simulate.named import make_environment

        if self.rounds < 1:
            raise InvalidInput(f"rounds is {self.rounds}; a run has at least one round.")
        return make_environment(self.environment, self.env_options, self.rounds)

    def setting(self, world: Any) -> "Setting":
        """What the learners are told."""
        from evenhand.fairness.rates import RATES
        from evenhand.simulate.named import Setting

        return Setting(
            hypotheses=world.hypotheses,
            rate=RATES[self.rate],
            allowed_gap=self.allowed_gap,
            comparator_gap=self.comparator_gap,
            failure_probability=self.delta,
            horizon=self.rounds,
        )

    def arguments(self) -> list[str]:
        """The options that ask for the same again."""
        words = ["--environment", self.environment]
        for option in self.env_options:
            words += ["--env-option", option]
        for name in ("allowed_gap", "comparator_gap", "delta"):
            words += [f"--{name.replace('_', '-')}", f"{getattr(self, name):g}"]
        if self.regret_gap is not None:
            words += ["--regret-gap", f"{self.regret_gap:g}"]
        words += ["--rate", self.rate] * (self.rate != "fpr")
        words += ["--engine", self.engine] * (self.engine != "auto")
        return [*words, "--rounds", str(self.rounds)]


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

    @classmethod
    def of(cls, options: dict[str, Any]) -> "CompareRequest":
        """From the command's options."""
        from evenhand.simulate.named import COMPARED

        own = {name: options.pop(name) for name in ("seeds", "first_seed", "tradeoff", "out")}
        learners, jobs = (
            tuple(options.pop("learners")) or COMPARED,
            options.pop("jobs") or os.cpu_count() or 1,
        )
        return cls(play=Play(**options), learners=learners, jobs=jobs, **own)

    @property
    def all_seeds(self) -> range:
        """The seeds of the runs."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def command(self) -> str:
        """What to type to get the same results."""
        words = ["evenhand", "compare", *self.play.arguments()]
        for learner in self.learners:
            words += ["--learner", learner]
        words += ["--seeds", str(self.seeds)]
        words += ["--first-seed", str(self.first_seed)] * (self.first_seed > 0)
        return shlex.join(words + ["--tradeoff"] * self.tradeoff)
