"""Runs as `simulate` plays them, person by person, with labels that come late or never."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature

import numpy as np

from evenhand.contracts import Environment
from evenhand.learners import EpochLearner
from evenhand.randomness import stream
from evenhand.simulation import Run
from evenhand.simulation.run import _RunUnderWay
from evenhand.words import FloatArray, LabelledSample

PersonLaw = Callable[[LabelledSample], FloatArray]
"""A number for each person, as a function of features, group and label."""


@dataclass(frozen=True)
class LabelDelays:
    """When the label of a person comes: after an exponential time, or never.

    mean: from people to the mean delay of each of their labels.
    never: from people to the probability that the label never comes; by default every label comes.
    fixed: whether the label comes after exactly the mean time.
    """

    mean: PersonLaw
    never: PersonLaw | None = None
    fixed: bool = False

    def draw(self, people: LabelledSample, generator: np.random.Generator) -> FloatArray:
        """One delay per person; infinity if the label never comes."""
        mean = np.asarray(self.mean(people), float)
        never = np.zeros(len(people)) if self.never is None else self.never(people)
        delay = mean if self.fixed else mean * generator.exponential(size=len(people))
        return np.where(generator.random(len(people)) < never, np.inf, delay)


def simulate_late(
    learner: EpochLearner,
    environment: Environment,
    rounds: int,
    seed: int,
    delays: LabelDelays,
    *,
    per_step: int = 100,
) -> Run:
    """Time runs in steps of `per_step` people. In each step the labels that are due are reported
    first; then people arrive and are decided about. A learner with a clock (`at` in decide and
    observe) gets the time.
    """
    game = _RunUnderWay(learner.restarted(seed), environment.fresh(), seed)
    player = game.learner
    people, lateness = stream(seed, "people"), stream(seed, "delays")
    waiting = []  # (due, round, label), the next one first
    now = 0.0
    while player.round < rounds:
        now += 1.0
        due = []
        while waiting and waiting[0][0] <= now:
            due.append(heapq.heappop(waiting)[1:])
        told = np.array(due, dtype=np.int64).reshape(-1, 2)
        player.observe(told[:, 0], told[:, 1], **_time(player.observe, now))
        coming = min(per_step, rounds - player.round)
        while coming > 0:
            player.open_epoch()
            block = game.world.draw(min(coming, player.rounds_left), people)
            decisions = player.decide(block.features, block.group, **_time(player.decide, now))
            delay = delays.draw(block, lateness)
            for one in np.flatnonzero(decisions.accept & np.isfinite(delay)).tolist():
                label = int(block.label[one])
                heapq.heappush(waiting, (now + delay[one], decisions.first_round + one, label))
            game.add_epochs(player, len(block))
            coming -= len(block)
    return game.run(None)


def _time(call, now: float) -> dict[str, float]:
    """The time, for a learner with a clock."""
    return {"at": now} if "at" in signature(call).parameters else {}
