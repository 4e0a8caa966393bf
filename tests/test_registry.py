"""Names and what they stand for."""

import pytest

from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RATES
from evenhand.registry import Registry


def test_an_unknown_name_is_refused_with_all_that_are_known():
    registry = Registry("number", {"two": 2, "pi": 3.14})
    assert registry["two"] == 2
    with pytest.raises(InvalidInput, match="'three'") as refused:
        registry["three"]
    assert refused.value.hint == "known are two, pi."


def test_rates_are_a_registry():
    assert {name: rate.symbol for name, rate in RATES.items()} == {
        "fpr": "FPR",
        "fnr": "FNR",
        "selection": "SR",
    }


def test_a_mistyped_name_is_answered_with_the_nearest():
    registry = Registry("table", {"adult": 1, "compas": 2})
    with pytest.raises(InvalidInput) as refused:
        registry["Adlut"]
    assert refused.value.hint == "known are adult, compas. Did you mean 'adult'?"
