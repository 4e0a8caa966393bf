"""A finding is judged by its whole interval."""

import pytest

from evenhand.findings import ROUNDING, Finding, judge, size_of, stands


@pytest.mark.parametrize(
    ("low", "high", "at_least", "status"),
    [
        (0.0, 0.05, False, "within"),
        (0.0, 0.0501, False, "not shown"),
        (0.0501, 0.2, False, "above"),
        (0.05, 0.9, True, "within"),
        (0.0, 0.0499, True, "above"),
        (0.0, 0.06, True, "not shown"),
    ],
)
def test_a_finding_is_judged_by_its_interval(low, high, at_least, status):
    assert Finding("it", low, high, 0.05, at_least).status == status


@pytest.mark.parametrize("at_least", [False, True])
def test_rounding_counts_on_neither_side_of_a_limit(at_least):
    sign = -1 if at_least else 1
    for share, status in ((0.0, "within"), (0.5, "within"), (2.0, "above")):
        end = 0.05 + sign * share * ROUNDING
        assert stands(end, end, 0.05, at_least=at_least) == status


def test_an_empty_interval_shows_nothing():
    assert stands(0.2, 0.1, 0.05) == stands(0.02, 0.01, 0.05) == "not shown"
    assert size_of(0.02, 0.01) == (0.0, 1.0)


def test_one_finding_above_is_enough_and_none_show_nothing():
    within = Finding("a", 0.0, 0.01, 0.05)
    above = Finding("b", 0.1, 0.2, 0.05)
    assert judge([within, above]) == "above"
    assert judge([]) == "not shown"
