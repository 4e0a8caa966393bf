"""The two engines of `simulate`, for tests that change the world or the learner in the middle of a
run.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.simulation.run import play_counts, play_people


@dataclass(frozen=True, eq=False)
class Counts:
    world: Any
    generator: np.random.Generator

    def __call__(self, learner, rounds):
        return play_counts(learner, self.world, rounds, self.generator)


@dataclass(frozen=True, eq=False)
class Events:
    world: Any
    generator: np.random.Generator

    def __call__(self, learner, rounds):
        people = self.world.draw(rounds, self.generator)
        return play_people(learner, people.features, people.group, people.label)
