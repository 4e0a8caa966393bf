"""What the requirements have in common: how they are broken, and how threads are joined."""

import numpy as np
import pytest

from evenhand.testing import RequirementBroken
from evenhand.testing.requirements import (
    is_plain_with,
    nothing_fails,
    require,
    requirement,
    same,
    through_text,
    together,
)


@requirement
def numbers_are_small(number):
    """No number is above 9."""
    with nothing_fails(f"comparing {number!r}"):
        require(number < 10, f"{number} is not below 10")


def test_a_broken_requirement_says_its_name_and_the_figures():
    numbers_are_small(9)
    with pytest.raises(RequirementBroken, match=r"numbers are small.*12") as broken:
        numbers_are_small(12)
    assert broken.value.requirement == "numbers_are_small"
    with pytest.raises(RequirementBroken, match=r"'x'.*TypeError") as broken:
        numbers_are_small("x")
    assert isinstance(broken.value.__cause__, TypeError)


def test_a_requirement_keeps_its_name_and_its_text():
    assert numbers_are_small.__name__ == "numbers_are_small"
    assert numbers_are_small.__doc__ == "No number is above 9."


@pytest.mark.parametrize(
    ("params", "plain"),
    [
        ({"class": "x", "n": 1}, True),
        ({"n": 1}, False),
        ({"class": "x", "n": float("nan")}, False),
        ({"class": "x", "n": np.zeros(1)}, False),
        ({"class": "x", "n": (1, 2)}, False),
    ],
)
def test_plain_parameters(params, plain):
    assert is_plain_with(params, "class") == plain


def test_arrays_and_texts():
    assert same([1, 2], np.array([1, 2]))
    assert not same([1, 2], [1, 3])
    assert through_text({"a": [1, None]}) == {"a": [1, None]}


def test_what_threads_raise_is_handed_over():
    done = []

    def fails():
        raise ValueError("no")

    raised = together([lambda: done.append(1), fails, lambda: done.append(2)])
    assert sorted(done) == [1, 2]
    assert [str(error) for error in raised] == ["no"]
