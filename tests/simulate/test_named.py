"""Populations and learners by name."""

import pytest

from evenhand.fairness import FalsePositiveRate
from evenhand.simulate import LEARNERS, POPULATIONS, Setting, make_environment, make_learner
from evenhand.simulate.named import COMPARED, STUDIED, split_options


def test_everything_that_is_named_can_be_made():
    setting = Setting(
        make_environment("lending", [], 10).hypotheses, FalsePositiveRate(), 0.3, 0.02, 0.05, 1000
    )
    for name, entry in LEARNERS.items():
        made = make_learner(name, setting)  # VW itself is loaded when it first learns
        assert type(made) is entry.make
        accepted = set(made.params) | set(made._settings)
        assert set(entry.options) <= accepted, name
    for name in POPULATIONS:
        assert make_environment(name, [], 10_000).hypotheses is not None
    assert set(COMPARED) <= set(LEARNERS)


def test_split():
    assert split_options("a") == ("a", [])
    assert split_options("a:b=1, c=2") == ("a", ["b=1", "c=2"])


def test_hard_takes_the_rounds_as_its_horizon():
    assert make_environment("hard", [], 10_000).rate_gap == pytest.approx(0.03)
    assert make_environment("hard", ["horizon=1e8"], 10_000).rate_gap == pytest.approx(0.003)


def test_the_default_choices_are_names_of_learners():
    assert set(COMPARED) | set(STUDIED) <= set(LEARNERS)


def test_each_is_told_what_its_arguments_name():
    assert LEARNERS["certified"].needs == (
        "hypotheses", "rate", "allowed_gap", "failure_probability", "horizon", "prices"
    )  # fmt: skip
    assert LEARNERS["accept-all"].needs == ("rate", "prices")
    assert POPULATIONS["hard"].needs == ("horizon",)


def test_a_population_is_described_by_its_docstring():
    assert POPULATIONS["random"].text.startswith("100 contexts in two groups")
