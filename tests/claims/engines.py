"""The two engines of `simulate`, for tests that change the world or the learner in the middle of a
run.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.simulate.run import _meet, _play_counts


@dataclass(frozen=True, eq=False)
class Counts:
    world: Any
    generator: np.random.Generator

    def __call__(self, learner, rounds):
        return _play_counts(learner, self.world, rounds, self.generator)


@dataclass(frozen=True, eq=False)
class Events:
    world: Any
    generator: np.random.Generator

    def __call__(self, learner, rounds):
        people = self.world.draw(rounds, self.generator)
        return _meet(learner, people.features, people.group, people.label)
