"""Each requirement of classes catches one that was made to break it, and says so by name; the
assertion about a record fails exactly where the gate is not green.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from evenhand import testing
from evenhand.contracts import HypothesisClass, Partition
from evenhand.findings import Finding
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, ScoreThresholds, Threshold
from evenhand.testing import (
    ClassCase,
    RequirementBroken,
    assert_within,
    check_hypothesis_class,
    draw_features,
    is_plain_with,
    require,
    requirement,
    same,
    through_text,
)

CUT = Threshold(1, 0.0, 4)


@dataclass
class Spoilt(HypothesisClass):
    """Thresholds on column 1 with one method of the bound class, or one property, replaced."""

    spoil: Any = None
    growth: float = np.inf
    given_params: dict = field(default_factory=lambda: {"class": "Spoilt"})
    uses_group: bool = False
    exact: bool = True

    @property
    def params(self):
        return self.given_params

    @property
    def log_size(self):
        return np.inf

    def log_growth(self, rows, columns):
        return self.growth

    def bind(self, features, group):
        bound = ScoreThresholds(1).bind(features, None)
        return self.spoil(bound, features, group) if self.spoil else bound


@dataclass
class Bound:
    """A bound class that can be spoilt."""

    inner: Any
    features: Any = None
    group: Any = None

    def best(self, cost):
        return self.inner.best(cost)

    def totals(self, channels):
        return self.inner.totals(channels)

    def hypothesis(self, member):
        return self.inner.hypothesis(member)


@dataclass(frozen=True)
class Odd:
    """A hypothesis that can be spoilt."""

    rule: Any = CUT

    def accepts(self, features, group=None):
        return self.rule.accepts(features, group)

    def describe(self, names=None):
        return "odd"

    def to_json(self):
        return self.rule.to_json()

    @property
    def columns_used(self):
        return self.rule.columns_used


class Blind(Odd):
    """It looks at a column, and says that it looks at none."""

    columns_used = ()


class Unordered(Odd):
    columns_used = (1, 0)


class Beyond(Odd):
    columns_used = (1, 99)


class Ints(Odd):
    def accepts(self, features, group=None):
        return super().accepts(features, group).astype(int)


class Crowd(Odd):
    def accepts(self, features, group=None):
        return features[:, 1] > (np.mean(features[:, 1]) if len(features) else 0.0)


class Silent(Odd):
    def describe(self, names=None):
        return " "


class Liar(Odd):
    def to_json(self):
        return REJECT_ALL.to_json()


class Unknown(Odd):
    def to_json(self):
        return {"kind": "mystery"}


class Peeping(Odd):
    def accepts(self, features, group=None):
        return super().accepts(features) if group is None else group == "a"


def answering(hypothesis):
    class Answering(Bound):
        def best(self, cost):
            return hypothesis

    return Answering


class Worst(Bound):
    def best(self, cost):
        return REJECT_ALL if cost.sum() < 0 else ACCEPT_ALL


class FirstRow(Bound):
    def best(self, cost):
        return Threshold(1, float(self.features[0, 1]), 4)


class Coarse(Bound):
    def best(self, cost):
        return self.inner.best(np.round(cost, 6))


class Forgetful(Bound):
    def best(self, cost):
        self.asked = getattr(self, "asked", 0) + 1
        return Threshold(1, 0.1 * self.asked, 4)


class Scribbling(Bound):
    def best(self, cost):
        answer = self.inner.best(cost)
        cost[:] = 0
        return answer


class Groupish(Bound):
    def best(self, cost):
        return self.inner.best(cost) if self.group is None else REJECT_ALL


class Off(Bound):
    def totals(self, channels):
        return self.inner.totals(channels) + 1e-6


class SecondBest(Bound):
    def best(self, cost):
        return self.inner.hypothesis(int(np.argsort(self.inner.totals(cost[None])[0])[1]))


class Partitioned(Bound):
    """Cells by the distinct values of column 1; `shift` moves a member's cut-off."""

    shift = 0.0

    def partition(self, cost):
        values, cell = np.unique(self.features[:, 1], return_inverse=True)

        def member(accept):
            return (
                Threshold(1, float(values[int(np.argmax(accept))]) + self.shift, 4)
                if accept.any()
                else REJECT_ALL
            )

        return Partition(cell, len(values), True, member)


class Shifted(Partitioned):
    shift = 0.5


class Divided(Partitioned):
    def partition(self, cost):
        return replace(super().partition(cost), cell=np.zeros(len(self.features), int), cells=1)


BROKEN = [
    ("one_bool_per_row", Spoilt(answering(Ints()))),
    ("each_row_alone", Spoilt(answering(Crowd()))),
    ("never_worse_than_a_constant", Spoilt(Worst)),
    ("row_order_is_irrelevant", Spoilt(FirstRow)),
    ("scale_of_costs_is_irrelevant", Spoilt(Coarse)),
    ("same_question_same_answer", Spoilt(Forgetful)),
    ("same_question_same_answer", Spoilt(Scribbling)),
    ("survives_json", Spoilt(answering(Liar()))),
    ("survives_json", Spoilt(answering(Unknown()))),
    ("unused_columns_change_nothing", Spoilt(answering(Blind()))),
    ("unused_columns_change_nothing", Spoilt(answering(Unordered()))),
    ("unused_columns_change_nothing", Spoilt(answering(Beyond()))),
    ("describes_itself", Spoilt(given_params={"seed": object()})),
    ("describes_itself", Spoilt(given_params={"size": 3})),
    ("describes_itself", Spoilt(answering(Silent()))),
    ("group_is_used_as_declared", Spoilt(Groupish)),
    ("group_is_used_as_declared", Spoilt(answering(Peeping()))),
    ("group_is_used_as_declared", Spoilt(uses_group=True)),
    ("partitions_hold_what_they_offer", Spoilt(Shifted)),
    ("partitions_hold_what_they_offer", Spoilt(Divided)),
    ("totals_equal_brute_force", Spoilt(Off)),
    ("best_is_least_total", Spoilt(SecondBest)),
    ("growth_covers_behaviours", Spoilt(growth=np.log(3))),
]


def case_of(hypotheses):
    features = draw_features(0)
    return ClassCase(
        hypotheses, features, np.random.default_rng(0).choice(["a", "b"], size=len(features))
    )


@pytest.mark.parametrize(
    ("requirement", "hypotheses"),
    BROKEN,
    ids=[f"{requirement}-{i}" for i, (requirement, _) in enumerate(BROKEN)],
)
def test_a_broken_class_is_caught_by_its_requirement_and_by_the_check(requirement, hypotheses):
    with pytest.raises(RequirementBroken, match=requirement.replace("_", " ")) as caught:
        getattr(testing, requirement)(case_of(hypotheses))
    assert caught.value.requirement == requirement
    with pytest.raises(RequirementBroken):
        check_hypothesis_class(hypotheses)


def test_a_partition_that_keeps_its_word_passes():
    assert "partitions_hold_what_they_offer" in check_hypothesis_class(Spoilt(Partitioned))


def test_every_requirement_has_a_negative_control():
    every = (
        testing.EVERY_CLASS
        + testing.EXACT_CLASSES
        + testing.PARTITIONING_CLASSES
        + testing.ENUMERABLE_CLASSES
    )
    requirements = {requirement.__name__ for requirement in every}
    assert {requirement for requirement, _ in BROKEN} == requirements


def test_the_unspoilt_class_keeps_every_requirement():
    assert len(check_hypothesis_class(Spoilt())) == 13


def test_requirements_of_enumerations_refuse_other_classes():
    with pytest.raises(TypeError, match="enumerable"):
        testing.best_is_least_total(case_of(ScoreThresholds(1, per_group=True)))


# records within a limit


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
    with pytest.raises(AssertionError, match="Neither"):
        assert_within(Record(0.0, 0.2), 0.05)
    assert assert_within(Record(0.0, 0.2), 0.05, not_shown=True).status == "not shown"


# what requirements have in common


@requirement
def numbers_are_small(number):
    """No number is above 9."""
    require(number < 10, f"{number} is not below 10")


def test_a_broken_requirement_says_its_name_and_the_figures():
    numbers_are_small(9)
    with pytest.raises(RequirementBroken, match=r"numbers are small.*12") as broken:
        numbers_are_small(12)
    assert broken.value.requirement == "numbers_are_small"


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
