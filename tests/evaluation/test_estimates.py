"""Intervals, verdicts and warnings as records."""

import json

import numpy as np
import pytest

from evenhand.evaluation.estimates import (
    Estimate,
    EstimateCourse,
    Gap,
    Support,
    denominator_warnings,
    effective,
    heaviest,
)


def test_weights():
    ones = np.ones(4)
    assert effective(ones, ones) == 4
    assert effective(np.array([4.0, 0, 0, 0]), ones) == 1
    assert heaviest(np.array([3.0, 1, 0, 0]), ones) == 0.75
    assert effective(np.zeros(4), ones) == heaviest(np.zeros(4), ones) == 0


def test_an_estimate_lies_inside_its_interval_and_may_be_unknown():
    assert Estimate.of(0.9, 0.1, 0.4).value == 0.4
    assert Estimate.of(np.nan, 0.1, 0.4).describe() == "unknown [0.100, 0.400]"
    assert Estimate.of(0.2, 0.1, 0.4).to_json() == {"estimate": 0.2, "low": 0.1, "high": 0.4}


@pytest.mark.parametrize(
    ("lower", "upper", "stands"),
    [
        (-0.05, 0.05, "within"),
        (-0.06, 0.0, "not shown"),
        (0.06, 0.2, "above"),
        (-0.3, -0.06, "above"),
    ],
)
def test_a_gap_is_judged_by_its_interval(lower, upper, stands):
    gap = Gap("FPR", "b", "a", Estimate(0.0, lower, upper))
    assert gap.stands(0.05) == stands
    assert gap.reach == max(upper, -lower)
    assert gap.name == "FPR b - a"


def test_what_is_unknown_is_null_in_json():
    course = EstimateCourse(np.ones(1), np.full((1, 1, 3), np.nan), np.zeros((1, 3)))
    assert json.loads(json.dumps(course.to_json(), allow_nan=False))["gaps"] == [[[None] * 3]]


def test_thin_support_and_few_people_are_worth_a_warning():
    assert Support(0.01, 0.05, 10.0).warnings() == []
    assert "20% of the people" in Support(0.01, 0.2, 10.0).warnings()[0]
    one, all_of_them = np.ones(40), np.ones(40, dtype=bool)
    assert denominator_warnings("negatives", "a", one, one, all_of_them) == []
    few = denominator_warnings("negatives", "a", one, one, np.arange(40) < 20)
    assert few == ["the negatives of group a are worth 20 people only"]
    assert "unknown, not zero" in denominator_warnings("negatives", "a", one, one, ~all_of_them)[0]
