import numpy as np
import pytest

from evenhand.errors import BadLabel, InvalidInput, LengthMismatch
from evenhand.evaluation import DecisionLog

X = np.arange(4.0)[:, None]


def log(accept=(1, 1, 0, 0), p=(0.5, 0.5, 0.5, 0.5), label=(1, -1, 0, 0), **more):
    return DecisionLog.of(X, np.array(accept, dtype=bool), p, label, **more)


def test_what_is_told_is_kept():
    found = log(
        group=["a", None, float("nan"), 7], id=["k", "l", "m", "n"], names=["score"], count=2
    )
    assert found.group.tolist() == ["a", None, None, "7"]
    assert found.groups == ("7", "a")
    assert found.people == 8
    assert found.open.tolist() == [False] * 4
    assert found.propensity.tolist() == [0.5] * 4
    assert log(label=(1, np.nan, 0, 0)).open.tolist() == [False, True, False, False]
    assert log().ids == ["1", "2", "3", "4"]
    assert found.without_first(3).ids == ["n"]
    assert log().without_first(1).ids == ["2", "3", "4"]


def test_labels_of_the_rejected_are_dropped_and_that_is_said():
    found = log(label=(1, -1, 1, -1))
    assert found.label.tolist() == [1, -1, 0, 0]
    assert "2 labels of rejected people are not used" in found.notes[0]
    with pytest.raises(BadLabel, match="row 3 is 1"):
        DecisionLog(
            X,
            found.accept,
            found.acceptance,
            np.array([1, -1, 1, 0]),
            found.group,
            ("x",),
            np.ones(4),
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"p": (0.5, np.nan, 0.5, 0.5)}, "row 2 has no acceptance probability"),
        ({"p": (0.5, 0.5, 1.5, 0.5)}, "row 3 has the acceptance probability 1.5 (1 such rows)"),
        ({"p": (0.5, 0.5, -0.1, 0.5)}, "row 3 has the acceptance probability -0.1"),
        ({"p": (0.0, 0.5, 0.5, 0.5)}, "row 1 was accepted with probability 0"),
        ({"p": (0.5, 0.5, 1.0, 0.5)}, "row 3 was rejected though accepted with probability 1"),
        ({"label": (1, 3, 0, 0)}, "the label of row 2 is 3"),
        ({"id": ["a", "b", "c", "a"]}, "id 'a' occurs in row 1 and in row 4"),
        ({"count": (1, 0, 1, 1)}, "row 2 stands for 0 decisions"),
        ({"names": ["x", "y"]}, "each needs a name of its own"),
    ],
)
def test_impossible_rows_are_named(change, words):
    with pytest.raises(InvalidInput) as caught:
        log(**change)
    assert words in str(caught.value)


def test_a_certain_rejection_may_be_logged_but_supports_nothing():
    found = log(p=(0.5, 0.5, 0.0, 0.0))
    with pytest.raises(
        InvalidInput, match=r"row 3 had the acceptance probability 0 \(2 such rows\).*Hint: explore"
    ):
        found.require_support()


def test_lengths_and_emptiness():
    with pytest.raises(LengthMismatch, match="accept has shape"):
        log(accept=(1, 0))
    with pytest.raises(LengthMismatch, match="group or id"):
        log(group=["a"])
    with pytest.raises(InvalidInput, match="has no rows"):
        DecisionLog.of(np.zeros((0, 1)), [], [], [])
    with pytest.raises(InvalidInput, match="at least one row must remain"):
        log().without_first(4)
    with pytest.raises(InvalidInput, match="dsjson has no counts"):
        log(count=2).require_single("dsjson")
