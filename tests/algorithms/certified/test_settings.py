"""What settings mean; each error of the learner's is in `tests/algorithms/test_settings.py`."""

import math

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from evenhand.algorithms.certified.settings import (
    FIRST_NOMINATED,
    FIRST_ROUNDS,
    bound_or_none,
    first_length,
    must_nominate,
    require_quota,
    require_shares,
)
from evenhand.errors import InvalidInput
from evenhand.hypotheses import Estimator, FiniteClass, Linear, ScoreThresholds, Stumps


class Million(ScoreThresholds):
    """It says that it has so many members."""

    log_size = math.log(1e6)


def test_a_cap_of_one_and_a_floor_of_zero_are_none():
    assert bound_or_none(1, 1.0) is None
    assert bound_or_none(0, 0.0) is None
    assert bound_or_none(0.2, 1.0) == 0.2


@pytest.mark.parametrize(
    ("horizon", "length"), [(None, FIRST_NOMINATED), (1000, FIRST_ROUNDS), (50_000, 500)]
)
def test_where_rules_are_nominated_the_first_epoch_is_longer(horizon, length):
    assert first_length(horizon, nominates=True) == length
    assert first_length(horizon, nominates=False) == FIRST_ROUNDS


@pytest.mark.parametrize(
    ("hypotheses", "nominates"),
    [
        (ScoreThresholds(0), False),
        (Stumps(), False),
        (FiniteClass.from_table(np.eye(5, dtype=bool)), False),
        (ScoreThresholds(0, per_group=True), True),
        (Linear(), True),
        (Estimator(DecisionTreeClassifier(max_depth=2)), True),
        (Million(), True),
    ],
    ids=lambda given: type(given).__name__,
)
def test_rules_are_nominated_where_no_union_over_the_class_can_be_paid(hypotheses, nominates):
    assert must_nominate(hypotheses) is nominates


def test_a_floor_above_the_cap_is_an_error():
    require_shares(0.4, 0.4, "auto")
    with pytest.raises(InvalidInput, match="accept_at_least"):
        require_shares(0.4, 0.5, "auto")


def test_a_number_is_no_quota():
    require_quota(None)
    with pytest.raises(InvalidInput, match="quota is 50"):
        require_quota(50)
