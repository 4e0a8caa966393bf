"""A finding is judged by its whole interval."""

import pytest

from evenhand.fairness.findings import Finding, judge


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


def test_one_finding_above_is_enough_and_none_show_nothing():
    within = Finding("a", 0.0, 0.01, 0.05)
    above = Finding("b", 0.1, 0.2, 0.05)
    assert judge([within, above]) == "above"
    assert judge([]) == "not shown"
