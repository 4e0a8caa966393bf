"""A plan is a frozen record that says no more than it knows."""

import json
import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from tests.planning.launches import EASY

import evenhand as eh
from evenhand.planning.plan import Milestone, Spread


def test_it_is_a_frozen_record_and_plain_json(easy):
    document = json.loads(json.dumps(easy.to_json(), allow_nan=False))
    assert document["verdict"] == easy.verdict
    assert [course["name"] for course in document["courses"]] == [
        "certified",
        "two-phase",
        "explore-then-commit",
    ]
    assert len(document["weight"]["mean"]) == len(document["rounds"])
    with pytest.raises(FrozenInstanceError):
        easy.limit = 0.5


def test_it_says_no_more_than_it_knows(easy, hopeless):
    for plan in (easy, hopeless):
        text = plan.describe()
        assert "certified with probability at least 0.95 under its assumptions" in text
        assert "a plan is an expectation, not a certificate" in text
        assert not any(word in text for word in ("unbiased", "bias-free", "guarantee"))


def test_per_day_turns_people_into_days():
    plan = eh.plan(**{**EASY, "horizon": None, "lives": 1}, per_day=100, days=30)
    assert plan.horizon == 3_000
    assert "Volume: 3,000 people (30 days at 100 a day)." in plan.describe()


def test_spread_and_milestones():
    assert Spread.of(np.arange(11.0)).describe() == "5 (1 to 9)"
    rounds = np.array([10.0, 20.0, 30.0])
    lives = np.array([[0.0, 0.6, 0.7], [0.6, 0.2, 0.5], [0.0, 0.0, 0.1]])
    stone = Milestone.of(0.5, rounds, lives)
    assert (stone.round, stone.reached, stone.lives) == (30, 2, 3)
    assert (
        Milestone.of(0.9, rounds, lives).describe()
        == "not within the horizon (0 of 3 simulation runs)"
    )


def test_the_page_about_planning_runs():
    """Its figures are made when it is built, so nothing on it can differ from what is printed."""
    text = (Path(__file__).parents[2] / "docs" / "planning.md").read_text(encoding="utf-8")
    names: dict = {}
    cell = re.search(r"```\{code-cell\} ipython3\n(.*?)```", text, flags=re.S)[1]
    exec(cell.replace("print(", "str("), names)
    assert names["plan"].answer == "worth it"
    assert "Worth it:" not in text
