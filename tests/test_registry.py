"""Names and what they stand for: ours first, other packages' by their entry points."""

from importlib.metadata import EntryPoint

import pytest

from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RATES
from evenhand.registry import Registry


@pytest.fixture
def points(monkeypatch):
    """Entry points that another package has; how often they were looked for is counted."""
    asked = []

    def found(group):
        asked.append(group)
        return [EntryPoint("pi", "math:pi", group), EntryPoint("broken", "no_such_module:x", group)]

    monkeypatch.setattr("evenhand.registry.entry_points", found)
    return asked


def test_an_unknown_name_is_refused_with_all_that_are_known(points):
    registry = Registry("number", "evenhand.numbers", {"two": 2})
    with pytest.raises(InvalidInput, match="'three'") as refused:
        registry["three"]
    assert refused.value.hint == "known are two, pi, broken."


def test_entry_points_are_looked_for_once_and_loaded_when_they_are_used(points):
    registry = Registry("number", "evenhand.numbers", {"two": 2})
    assert registry["two"] == 2
    assert points == []
    assert registry["pi"] == pytest.approx(3.14159, abs=1e-4)
    assert "broken" in registry
    assert "three" not in registry
    assert points == ["evenhand.numbers"]
    with pytest.raises(ModuleNotFoundError):
        registry["broken"]


def test_what_comes_from_elsewhere_is_adopted_and_ours_is_not(points):
    registry = Registry("number", "evenhand.numbers", {"two": 2}, adopt=lambda number: -number)
    assert registry["two"] == 2
    assert registry["pi"] == pytest.approx(-3.14159, abs=1e-4)


def test_rates_are_a_registry():
    assert {name: rate.symbol for name, rate in RATES.items()} == {
        "fpr": "FPR",
        "fnr": "FNR",
        "selection": "SR",
    }


def test_a_name_of_ours_is_not_replaced(monkeypatch):
    foreign = Registry("thing", "evenhand.things", {"ours": 1})
    monkeypatch.setattr(
        "evenhand.registry.entry_points",
        lambda group: [
            EntryPoint("ours", "math:pi", group),
            EntryPoint("theirs", "math:pi", group),
        ],
    )
    assert foreign["ours"] == 1
    assert foreign["theirs"] == pytest.approx(3.14159, abs=1e-4)
    assert list(foreign) == ["ours", "theirs"]
    assert len(foreign) == 2


def test_a_mistyped_name_is_answered_with_the_nearest(points):
    registry = Registry("table", "evenhand.numbers", {"adult": 1, "compas": 2})
    with pytest.raises(InvalidInput) as refused:
        registry["Adlut"]
    assert refused.value.hint == "known are adult, compas, pi, broken. Did you mean 'adult'?"
