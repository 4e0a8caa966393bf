"""Populations and learners by name."""

import pytest

from evenhand.fairness import FalsePositiveRate
from evenhand.learners import TwoPhaseLearner
from evenhand.simulation import (
    LEARNERS,
    POPULATIONS,
    Setting,
    make_environment,
    make_learner,
    simulate,
)
from evenhand.simulation.named import COMPARED, STUDIED, split_options


def test_everything_that_is_named_can_be_made():
    setting = Setting(
        make_environment("lending", [], 10).hypotheses, FalsePositiveRate(), 0.3, 0.02, 0.05, 1000
    )
    for name, entry in LEARNERS.items():
        made = make_learner(name, setting)
        kind = entry.make if isinstance(entry.make, type) else TwoPhaseLearner  # as printed
        assert type(made) is kind
        accepted = set(made.params) | set(made.settings)
        assert set(entry.options) <= accepted, name
    for name in POPULATIONS:
        assert make_environment(name, [], 10_000).hypotheses is not None
    assert set(COMPARED) <= set(LEARNERS)


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        ("exp4:estimator=two-sided,exploration_rounds=900,growth=0.5", "exp4"),
        ("paired-rounds:exploration_rounds=900,grid=4", "exp4"),
    ],
)
def test_baselines_play_by_name(text, phase):
    world = make_environment("lending", [], 10)
    setting = Setting(world.hypotheses, FalsePositiveRate(), 0.5, 0.02, 0.05, 4000)
    run = simulate(make_learner(text, setting), world, 4000, seed=0)
    assert phase in run.phases
    assert run.worst_gap <= 0.5


def test_split():
    assert split_options("a") == ("a", [])
    assert split_options("a:b=1, c=2") == ("a", ["b=1", "c=2"])


def test_hard_takes_the_rounds_as_its_horizon():
    assert make_environment("hard", [], 10_000).rate_gap == pytest.approx(0.03)
    assert make_environment("hard", ["horizon=1e8"], 10_000).rate_gap == pytest.approx(0.003)


def test_the_default_choices_are_names_of_learners():
    assert set(COMPARED) | set(STUDIED) <= set(LEARNERS)


def test_each_is_given_what_its_arguments_name():
    assert LEARNERS["certified"].needs == (
        "hypotheses", "rate", "limit", "delta", "horizon", "prices",
        "accept_at_most", "accept_at_least", "quota", "candidates",
    )  # fmt: skip
    assert LEARNERS["accept-all"].needs == ("rate", "prices")
    assert POPULATIONS["hard"].needs == ("horizon",)


def test_a_population_is_described_by_its_docstring():
    assert POPULATIONS["random"].text.startswith("100 contexts in two groups")
