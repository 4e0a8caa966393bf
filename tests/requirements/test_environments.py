"""Every environment of the package crossed with every requirement of environments, and populations
that were made to break them.
"""

import numpy as np
import pytest
from tests.play import WORLD
from tests.requirements.environments import (
    ENVIRONMENT_REQUIREMENTS,
    EnvironmentCase,
    check_environment,
)

from evenhand.environments import (
    Discrete,
    LowerBound,
    Replay,
    Scores,
    hard,
    lending,
    random_population,
    threshold_population,
)
from evenhand.hypotheses import ScoreThresholds
from evenhand.testing import RequirementBroken

TABLE = Scores().draw(400, np.random.default_rng(0))
ENVIRONMENTS = [
    WORLD,
    LowerBound(1, 0.05),
    LowerBound(2, 0.01),
    hard(1e5),
    lending(),
    random_population(0),
    threshold_population(),
    Scores(),
    Replay(TABLE),
    Replay(TABLE, hypotheses=ScoreThresholds()),
    Replay(TABLE, hypotheses=ScoreThresholds(), streamed=True, seed=1),
]


@pytest.mark.parametrize(
    "requirement", ENVIRONMENT_REQUIREMENTS, ids=lambda requirement: requirement.__name__
)
@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=repr)
def test_requirement_holds(environment, requirement):
    requirement(EnvironmentCase(environment))


class Own(Discrete):
    """The population of these tests, with one method replaced below."""

    def __init__(self):
        super().__init__(WORLD.probability, WORLD.positive_rate, WORLD.group, WORLD.accepts)
        self.draws = 0


class Moody(Own):
    def draw(self, rounds, generator):
        return super().draw(rounds, np.random.default_rng())


class Short(Own):
    def draw(self, rounds, generator):
        return super().draw(max(rounds - 1, 1), generator)


class Aggregating(Own):
    def draw(self, rounds, generator):
        people = super().draw(rounds, generator)
        return type(people)(people.features, people.group, people.label, np.full(rounds, 2))


class Doubled(Own):
    def loss(self, policy, *more):
        return 2 * super().loss(policy, *more)


class Rosy(Own):
    def draw(self, rounds, generator):
        people = super().draw(rounds, generator)
        return type(people)(people.features, people.group, np.ones(rounds, int))


class Bent(Own):
    def loss(self, policy, *more):
        return super().loss(policy, *more) ** (1.0 if len(policy.weights) == 1 else 1.1)


class Slanted(Own):
    def gaps(self, policy, *more):
        return super().gaps(policy, *more) + 0.01


class Ageing(Own):
    def draw(self, rounds, generator):
        self.draws += 1
        return super().draw(rounds, generator)

    def loss(self, policy, *more):
        return super().loss(policy, *more) + 1e-6 * self.draws


class Generous(Own):
    def optimum(self, limit, *more):
        return super().optimum(min(limit + 0.05, 1.0), *more)


class Boastful(Own):
    def optimum(self, limit, *more):
        loss, policy = super().optimum(limit, *more)
        return loss - 0.01, policy


class Lazy(Own):
    def optimum(self, limit, *more):
        return super().optimum(0.0, *more)


class Secretive(Own):
    @property
    def params(self):
        return {"environment": "own", "table": self.accepts}


@pytest.mark.parametrize(
    ("environment", "requirement"),
    [
        (Moody, "draws_depend_on_the_generator_alone"),
        (Short, "draws_depend_on_the_generator_alone"),
        (Aggregating, "draws_depend_on_the_generator_alone"),
        (Doubled, "loss_is_a_share_of_mistakes"),
        (Rosy, "truth_is_that_of_the_draws"),
        (Bent, "truth_is_linear_in_mixtures"),
        (Slanted, "constants_are_fair"),
        (Ageing, "drawing_changes_no_truth"),
        (Generous, "optimum_is_fair_and_best"),
        (Boastful, "optimum_is_fair_and_best"),
        (Lazy, "optimum_is_fair_and_best"),
        (Secretive, "environment_describes_itself"),
    ],
)
def test_each_requirement_catches_its_own_defect(environment, requirement):
    chosen = next(found for found in ENVIRONMENT_REQUIREMENTS if found.__name__ == requirement)
    chosen(EnvironmentCase(Own()))
    with pytest.raises(RequirementBroken) as broken:
        chosen(EnvironmentCase(environment()))
    assert broken.value.requirement == requirement


def test_check_environment_names_the_requirements():
    assert check_environment(WORLD) == tuple(
        requirement.__name__ for requirement in ENVIRONMENT_REQUIREMENTS
    )
    with pytest.raises(RequirementBroken):
        check_environment(Doubled())
