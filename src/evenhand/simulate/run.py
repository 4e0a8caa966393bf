"""The boxed protocol of section 2: people arrive, the learner decides, labels of the accepted come back; truth is kept aside.

Two engines run the same learner code. "events": person by person, for any environment. "counts": within an epoch the policy is fixed, so
on a discrete environment the counts of (context, decision, label) are multinomial; a run costs O(epochs), not O(rounds).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from evenhand.contracts import Environment
from evenhand.environments import Discrete
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.learners import EpochLearner
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.words import BoolArray, FloatArray, IntArray, Prices

Engine = Literal["auto", "events", "counts"]


@dataclass(frozen=True, eq=False)
class Run:
    """What happened, one entry per epoch (the last one may have been cut off by the end of the run).

    rounds: rounds played at the end of each epoch; regret: cumulative pseudo-regret then, sum over rounds of loss(pi_t) - optimum;
    gaps: the largest |true gap| of the policy deployed in that epoch; losses: its population loss; accepted: people accepted in it.
    """

    rounds: IntArray
    regret: FloatArray
    gaps: FloatArray
    losses: FloatArray
    accepted: IntArray
    phases: tuple[str, ...]
    policies: tuple[Mixture, ...]
    optimum: float
    oracle_calls: int
    seconds: float
    seed: int
    learner: Any

    @property
    def lengths(self) -> IntArray:
        """Rounds of each epoch."""
        return np.diff(self.rounds, prepend=0)

    @property
    def worst_gap(self) -> float:
        """The largest |true gap| ever deployed."""
        return float(self.gaps.max())

    def share_above(self, limit: float) -> float:
        """The share of rounds whose policy had a true gap above the limit."""
        above: BoolArray = self.gaps > limit + 1e-9
        return float(self.lengths[above].sum() / self.rounds[-1])

    def regret_at(self, round: float) -> float:
        """Cumulative pseudo-regret after `round` rounds: linear within an epoch, where the policy does not change."""
        return float(np.interp(round, np.r_[0, self.rounds], np.r_[0.0, self.regret]))


class _Play(Protocol):
    def __call__(self, learner: EpochLearner, rounds: int) -> int: ...


def simulate(
    learner: EpochLearner,
    environment: Environment,
    rounds: int,
    seed: int,
    comparator_gap: float | None = None,
    *,
    engine: Engine = "auto",
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Play `rounds` rounds with a fresh copy of `learner`; regret is against the best policy with gaps of at most comparator_gap.

    The same seed gives the same run: people, coins and labels come from streams named after it. comparator_gap defaults to the
    learner's own.
    """
    if rounds < 1:
        raise InvalidInput(f"rounds is {rounds}; a run has at least one round.")
    fresh, world = learner.restarted(seed), environment.fresh()
    play = _engine(engine, world, seed)
    started, trace = time.perf_counter(), _Trace(world, fresh)
    while fresh.round < rounds:
        fresh.open_epoch()
        block = min(fresh.rounds_left, rounds - fresh.round)
        accepted = play(fresh, block)
        trace.add(block, accepted)
        if progress is not None:
            progress(fresh.round)
    return trace.finish(compared_gap(fresh, comparator_gap), time.perf_counter() - started, seed)


def compared_gap(learner: EpochLearner, told: float | None) -> float:
    """The gamma of the regret: as told, else the learner's own; a learner without one is compared with the best policy of all."""
    return told if told is not None else float(getattr(learner, "comparator_gap", 1.0))


def _engine(engine: Engine, environment: Environment, seed: int) -> _Play:
    discrete = isinstance(environment, Discrete)
    if engine == "counts" and not discrete:
        raise InvalidInput(
            f"the count-level engine needs a Discrete environment, not {type(environment).__name__}.",
            hint='use engine="events".',
        )
    if engine not in ("auto", "events", "counts"):
        raise InvalidInput(f'engine is {engine!r}; it is "auto", "events" or "counts".')
    generator = stream(seed, "people")
    if isinstance(environment, Discrete) and engine != "events":
        return _Counts(environment, generator)
    return _Events(environment, generator)


@dataclass(frozen=True, eq=False)
class _Counts:
    environment: Discrete
    generator: np.random.Generator

    def __call__(self, learner: EpochLearner, rounds: int) -> int:
        world = self.environment
        acceptance = learner.acceptance(world.features, world.group)
        counts = world.draw_counts(rounds, acceptance, self.generator)
        rejected, positive, negative = (
            column.astype(np.float64)
            for column in (counts.rejected, counts.accepted_positive, counts.accepted_negative)
        )
        log = RoundLog(world.features, world.group, acceptance, rejected, positive, negative)
        learner.absorb(log)
        return int(counts.accepted.sum())


@dataclass(frozen=True, eq=False)
class _Events:
    environment: Environment
    generator: np.random.Generator

    def __call__(self, learner: EpochLearner, rounds: int) -> int:
        people = self.environment.draw(rounds, self.generator)
        decisions = learner.decide(people.features, people.group)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.first_round + accepted, people.label[accepted])
        return len(accepted)


class _Trace:
    """Truth about each policy, gathered while the learner plays."""

    def __init__(self, environment: Environment, learner: EpochLearner) -> None:
        self.environment, self.learner = environment, learner
        self.blocks: list[tuple[int, int, str, Mixture]] = []

    def add(self, rounds: int, accepted: int) -> None:
        self.blocks.append((rounds, accepted, self.learner.epoch.phase, self.learner.policy))

    def finish(self, comparator_gap: float, seconds: float, seed: int) -> Run:
        rates = tuple(getattr(self.learner, "rates", ()))
        prices = self.learner.prices
        lengths = np.array([block[0] for block in self.blocks])
        losses = np.array([_loss(self.environment, block[3], prices) for block in self.blocks])
        gaps = np.array([np.abs(self.environment.gaps(block[3], rates)).max() for block in self.blocks])
        optimum = _optimum(self.environment, comparator_gap, rates, prices)
        return Run(
            rounds=np.cumsum(lengths),
            regret=np.cumsum(lengths * (losses - optimum)),
            gaps=gaps,
            losses=losses,
            accepted=np.array([block[1] for block in self.blocks]),
            phases=tuple(block[2] for block in self.blocks),
            policies=tuple(block[3] for block in self.blocks),
            optimum=optimum,
            oracle_calls=self.learner.report.oracle_calls,
            seconds=seconds,
            seed=seed,
            learner=self.learner,
        )


def _loss(environment: Any, policy: Mixture, prices: Prices) -> float:
    return float(environment.loss(policy, prices))


def _optimum(environment: Any, gap: float, rates: Any, prices: Prices) -> float:
    return float(environment.optimum(gap, rates, prices)[0])
