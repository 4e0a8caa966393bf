"""What settings mean; each error of the learner's is in `tests/algorithms/test_settings.py`."""

import pytest

from evenhand.algorithms.certified.settings import (
    FIRST_FITTED,
    FIRST_ROUNDS,
    bound_name,
    bound_or_none,
    first_length,
    require_quota,
    require_shares,
)
from evenhand.errors import InvalidInput
from evenhand.hypotheses import Linear, ScoreThresholds


def test_a_cap_of_one_and_a_floor_of_zero_are_none():
    assert bound_or_none(1, 1.0) is None
    assert bound_or_none(0, 0.0) is None
    assert bound_or_none(0.2, 1.0) == 0.2


@pytest.mark.parametrize(
    ("horizon", "length"), [(None, FIRST_FITTED), (1000, FIRST_ROUNDS), (50_000, 500)]
)
def test_a_fitted_class_begins_with_a_longer_epoch(horizon, length):
    assert first_length(horizon, fitted=True) == length
    assert first_length(horizon, fitted=False) == FIRST_ROUNDS


def test_a_class_without_a_union_is_nominated_from():
    assert bound_name(None, ScoreThresholds(0)) == "betting"
    assert bound_name(None, Linear()) == "nominate"
    assert bound_name("nominate", ScoreThresholds(0)) == "nominate"


def test_a_floor_above_the_cap_is_an_error():
    require_shares(0.4, 0.4, "auto")
    with pytest.raises(InvalidInput, match="accept_at_least"):
        require_shares(0.4, 0.5, "auto")


def test_a_number_is_no_quota():
    require_quota(None)
    with pytest.raises(InvalidInput, match="quota is 50"):
        require_quota(50)
