"""The assertion fails exactly where the gate is not green."""

import pytest

from evenhand.fairness.findings import Finding
from evenhand.testing import assert_within


class Record:
    """A record with one finding."""

    delta = 0.05

    def __init__(self, low, high):
        self.ends = low, high

    def findings(self, limit=None, least_ratio=None):
        return (Finding("gap", *self.ends, limit),)


def test_only_what_is_shown_passes():
    assert assert_within(Record(0.0, 0.01), 0.05).passed
    with pytest.raises(AssertionError, match="ABOVE"):
        assert_within(Record(0.1, 0.2), 0.05)
    with pytest.raises(AssertionError, match="neither"):
        assert_within(Record(0.0, 0.2), 0.05)
    assert assert_within(Record(0.0, 0.2), 0.05, not_shown=True).status == "not shown"
