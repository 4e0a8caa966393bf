"""The boxed protocol of section 2: people arrive, the learner decides, labels of the accepted come
back; truth is kept aside.

"events" plays person by person, for any environment and learner. "counts" plays learners whose
policy lasts for an epoch (`EpochLearner`) on a discrete environment: the counts of (context,
decision, label) are multinomial there, and a run costs O(epochs), not O(rounds).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np

from evenhand.contracts import Environment, Learner, Policy
from evenhand.environments import Discrete
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.learners import EpochLearner
from evenhand.randomness import stream
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

Engine = Literal["auto", "events", "counts"]
Played = TypeVar("Played", bound=Learner)
AT_ONCE = 1000
"""People who are drawn together for a learner that is played one by one."""


@dataclass(frozen=True, eq=False)
class Run(Generic[Played]):
    """What happened, one entry per epoch (the last one may have been cut off by the end of the
    run); for a learner without epochs one entry for each stretch of rounds with the same policy.

    rounds: rounds played at the end of each epoch; regret: cumulative pseudo-regret then, sum over
    rounds of loss(pi_t) - optimum; gaps: the largest |true gap| of the policy deployed in that
    epoch; losses: its population loss; accepted: people accepted in it.
    """

    rounds: IntArray
    regret: FloatArray
    gaps: FloatArray
    losses: FloatArray
    accepted: IntArray
    phases: tuple[str, ...]
    policies: tuple[Policy, ...]
    optimum: float
    oracle_calls: int
    seconds: float
    seed: int
    learner: Played

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
        """Cumulative pseudo-regret after `round` rounds: linear within an epoch, where the policy
        does not change.
        """
        return float(np.interp(round, np.r_[0, self.rounds], np.r_[0.0, self.regret]))


def simulate(
    learner: Played,
    environment: Environment,
    rounds: int,
    seed: int,
    comparator_gap: float | None = None,
    *,
    engine: Engine = "auto",
    progress: Callable[[int], None] | None = None,
) -> Run[Played]:
    """Play `rounds` rounds with a fresh copy of `learner`; regret is against the best policy with
    gaps of at most comparator_gap.

    The same seed gives the same run: people, coins and labels come from streams named after it.
    comparator_gap defaults to the learner's own.
    """
    if rounds < 1:
        raise InvalidInput(f"rounds is {rounds}; a run has at least one round.")
    if engine not in ("auto", "events", "counts"):
        raise InvalidInput(f'engine is {engine!r}; it is "auto", "events" or "counts".')
    fresh, world = learner.restarted(seed), environment.fresh()
    by_counts = isinstance(world, Discrete) and isinstance(fresh, EpochLearner)
    if engine == "counts" and not by_counts:
        raise InvalidInput(
            "the count-level engine needs a Discrete environment and a learner with epochs, not "
            f"{type(world).__name__} and {type(fresh).__name__}.",
            hint='use engine="events".',
        )
    generator, trace, started = stream(seed, "people"), _Trace(), time.perf_counter()
    while fresh.round < rounds:
        if isinstance(fresh, EpochLearner):
            fresh.open_epoch()
            block = min(fresh.rounds_left, rounds - fresh.round)
            if isinstance(world, Discrete) and engine != "events":
                accepted = _play_counts(fresh, world, block, generator)
            else:
                people = world.draw(block, generator)
                accepted = _meet(fresh, people.features, people.group, people.label)
            trace.blocks.append((block, accepted, fresh.epoch.phase, fresh.policy))
        else:
            people = world.draw(min(AT_ONCE, rounds - fresh.round), generator)
            for i in range(len(people)):
                policy = fresh.policy
                trace.add_one(
                    _meet(
                        fresh,
                        people.features[i : i + 1],
                        people.group[i : i + 1],
                        people.label[i : i + 1],
                    ),
                    policy,
                )
        if progress is not None:
            progress(fresh.round)
    return trace.finish(
        world, fresh, compared_gap(fresh, comparator_gap), time.perf_counter() - started, seed
    )


def compared_gap(learner: Learner, told: float | None) -> float:
    """The gamma of the regret: as told, else the learner's own; a learner without one is compared
    with the best policy of all.
    """
    return told if told is not None else float(getattr(learner, "comparator_gap", 1.0))


def _play_counts(
    learner: EpochLearner, world: Discrete, rounds: int, generator: np.random.Generator
) -> int:
    acceptance = learner.acceptance(world.features, world.group)
    counts = world.draw_counts(rounds, acceptance, generator)
    rejected, positive, negative = (
        column.astype(np.float64)
        for column in (counts.rejected, counts.accepted_positive, counts.accepted_negative)
    )
    learner.absorb(RoundLog(world.features, world.group, acceptance, rejected, positive, negative))
    return int(counts.accepted.sum())


def _meet(learner: Learner, features: FloatArray, group: GroupArray, label: IntArray) -> int:
    """Decide about people, and tell the labels of the accepted; how many they are."""
    decisions = learner.decide(features, group)
    accepted = np.flatnonzero(decisions.accept)
    if len(accepted):
        learner.observe(decisions.first_round + accepted, label[accepted])
    return len(accepted)


class _Trace:
    """The policies of a run, each with its rounds, how many it accepted, and its phase; truth is
    added at the end.
    """

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int, str, Policy]] = []

    def add_one(self, accepted: int, policy: Policy) -> None:
        if self.blocks and self.blocks[-1][3] is policy:
            rounds, before, phase, _ = self.blocks[-1]
            self.blocks[-1] = (rounds + 1, before + accepted, phase, policy)
        else:
            self.blocks.append((1, accepted, "online", policy))

    def finish(
        self, world: Environment, learner: Played, comparator_gap: float, seconds: float, seed: int
    ) -> Run[Played]:
        rates, prices = tuple(learner.rates), learner.prices
        lengths, accepted, phases, policies = zip(*self.blocks, strict=True)
        losses = np.array([world.loss(policy, prices) for policy in policies])
        optimum = float(world.optimum(comparator_gap, rates, prices)[0])
        return Run(
            rounds=np.cumsum(lengths),
            regret=np.cumsum(np.array(lengths) * (losses - optimum)),
            gaps=np.array([np.abs(world.gaps(policy, rates)).max() for policy in policies]),
            losses=losses,
            accepted=np.array(accepted),
            phases=phases,
            policies=policies,
            optimum=optimum,
            oracle_calls=learner.oracle_calls if isinstance(learner, EpochLearner) else 0,
            seconds=seconds,
            seed=seed,
            learner=learner,
        )
