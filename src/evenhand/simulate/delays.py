"""The protocol with labels that come late, or never: the delay may depend on the person and on the
label itself.

Time runs in steps. In each, labels that are due are told, then people arrive and are decided about.
A label that came early is no fair sample of all labels (bad loans fail soon, good ones are known to
be good only at the end), which is what a maturity window is for.
"""

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from evenhand.contracts import Environment
from evenhand.errors import InvalidInput
from evenhand.learners import EpochLearner
from evenhand.randomness import stream
from evenhand.simulate.run import Run, _Trace, compared_gap
from evenhand.words import FloatArray, IntArray, LabelledSample

Law = Callable[[LabelledSample], FloatArray]
"""One number for each person, from features, group and label."""


@dataclass(frozen=True)
class LabelDelays:
    """A label comes after an exponential time with mean `mean(person)`, and with probability
    `never(person)` not at all.

    fixed: after exactly that time, instead of an exponential one.

    >>> slow_when_good = LabelDelays(mean=lambda people: np.where(people.label == 1, 12.0, 3.0))
    >>> people = LabelledSample([[0.0], [0.0]], ["a", "b"], [1, -1])
    >>> slow_when_good.draw(people, np.random.default_rng(0)).round(1).tolist()
    [8.2, 3.1]
    """

    mean: Law
    never: Law = lambda people: np.zeros(len(people))
    fixed: bool = False

    def draw(self, people: LabelledSample, generator: np.random.Generator) -> FloatArray:
        """The delay of each person's label; infinity if it never comes."""
        mean, never = np.asarray(self.mean(people), float), np.asarray(self.never(people), float)
        if (mean < 0).any() or ((never < 0) | (never > 1)).any():
            raise InvalidInput(
                "a mean delay is below 0, or a probability of no label outside [0, 1]."
            )
        delay = mean if self.fixed else mean * generator.exponential(size=len(people))
        return np.where(generator.random(len(people)) < never, np.inf, delay)


@dataclass
class Mailbox:
    """Labels on their way, the next one first."""

    waiting: list[tuple[float, int, int]] = field(default_factory=list)

    def post(self, due: FloatArray, rounds: IntArray, labels: IntArray) -> None:
        """Labels that never come are not posted."""
        for when, round, label in zip(due.tolist(), rounds.tolist(), labels.tolist(), strict=True):
            if np.isfinite(when):
                heapq.heappush(self.waiting, (when, round, label))

    def arrived(self, now: float) -> list[tuple[int, int]]:
        """(round, label) of everything that is due."""
        found = []
        while self.waiting and self.waiting[0][0] <= now:
            found.append(heapq.heappop(self.waiting)[1:])
        return found


Late = TypeVar("Late", bound=EpochLearner)


def simulate_late(
    learner: Late,
    environment: Environment,
    rounds: int,
    seed: int,
    delays: LabelDelays,
    *,
    per_step: int = 100,
    comparator_gap: float | None = None,
) -> Run[Late]:
    """As `simulate`, person by person, with `per_step` people in each unit of time and labels that
    come when they come.

    Any learner: whoever has a clock (`at` in decide and observe) is told the time.
    """
    if rounds < 1 or per_step < 1:
        raise InvalidInput(f"{rounds} rounds, {per_step} people per step; both are at least 1.")
    world, fresh = environment.fresh(), learner.restarted(seed)
    clock = {
        call: "at" in signature(getattr(fresh, call)).parameters for call in ("decide", "observe")
    }
    people, lateness, box = stream(seed, "people"), stream(seed, "delays"), Mailbox()
    started, trace, now = time.perf_counter(), _Trace(), 0.0
    while fresh.round < rounds:
        now += 1.0
        when: dict[str, Any] = {call: {"at": now} if told else {} for call, told in clock.items()}
        arrived = np.array(box.arrived(now), dtype=np.int64).reshape(-1, 2)
        fresh.observe(arrived[:, 0], arrived[:, 1], **when["observe"])
        coming = min(per_step, rounds - fresh.round)
        while coming > 0:
            fresh.open_epoch()
            block = world.draw(min(coming, fresh.rounds_left), people)
            decisions = fresh.decide(block.features, block.group, **when["decide"])
            due = now + delays.draw(block, lateness)
            accepted: IntArray = np.flatnonzero(decisions.accept).astype(np.int64)
            box.post(due[accepted], decisions.first_round + accepted, block.label[accepted])
            trace.blocks.append((len(block), len(accepted), fresh.epoch.phase, fresh.policy))
            coming -= len(block)
    return trace.finish(
        world, fresh, compared_gap(fresh, comparator_gap), time.perf_counter() - started, seed
    )
