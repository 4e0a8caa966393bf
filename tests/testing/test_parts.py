"""Each requirement catches a policy or a rate that was made to break it, and says so by name."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from evenhand import testing
from evenhand.bounds import AuditBinomial, AuditCounts, AuditDkw, AuditHoeffding, AuditKl
from evenhand.bounds.fixed_count import AuditIntervals
from evenhand.errors import LengthMismatch
from evenhand.fairness import FalsePositiveRate, Rate
from evenhand.hypotheses import ACCEPT_ALL, Threshold
from evenhand.policies import Mixture
from evenhand.testing import (
    BOUND_REQUIREMENTS,
    RequirementBroken,
    check_bound,
    check_policy,
    check_rate,
)
from evenhand.words import LabelledSample

MIXTURE = Mixture((Threshold(0, 0.0, 2), ACCEPT_ALL), (0.5, 0.5))


@dataclass(frozen=True)
class BadPolicy:
    inner: Any = MIXTURE
    how: str = ""

    def acceptance(self, features, group=None):
        good = self.inner.acceptance(features, group)
        ranked = np.arange(len(good)) / len(good)
        return {"large": good + 0.5, "narrow": good[:-1], "crowd": ranked, "drift": good, "": good}[
            self.how
        ]

    def describe(self, names=None):
        return "bad"

    def to_json(self):
        data = self.inner.to_json()
        return data if self.how != "drift" else replace(self.inner, weights=(0.25, 0.75)).to_json()


@pytest.mark.parametrize(
    ("requirement", "how"),
    [
        ("acceptance_is_a_probability", "large"),
        ("acceptance_is_a_probability", "narrow"),
        ("acceptance_of_each_row_alone", "crowd"),
        ("policy_survives_json", "drift"),
    ],
)
def test_a_broken_policy_is_caught(requirement, how):
    features = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(RequirementBroken) as caught:
        getattr(testing, requirement)(BadPolicy(how=how), features, None)
    assert caught.value.requirement == requirement
    with pytest.raises(RequirementBroken):
        check_policy(BadPolicy(how=how), features)
    assert len(check_policy(BadPolicy(), features)) == 3


class Unsigned(FalsePositiveRate):
    def group_weights(self, sample):
        weights = super().group_weights(sample)
        return np.vstack([weights[0], weights[0] + weights[1]])


class Doubled(FalsePositiveRate):
    def group_weights(self, sample):
        return 2 * super().group_weights(sample)


class Uneven(FalsePositiveRate):
    def group_weights(self, sample):
        return super().group_weights(sample) * np.array([[1.0], [0.5]])


class FirstRowCounts(FalsePositiveRate):
    def group_weights(self, sample):
        weights = super().group_weights(sample)
        weights[:, 0] += 0.1
        weights[0, 0] += 0.1
        return weights


@pytest.mark.parametrize(
    ("requirement", "rate"),
    [
        ("swapping_groups_flips_the_gap", Unsigned()),
        ("constants_have_no_gap", Uneven()),
        ("rates_are_shares", Doubled()),
        ("gap_ignores_row_order", FirstRowCounts()),
    ],
)
def test_a_broken_rate_is_caught(requirement, rate):
    sample = LabelledSample(
        np.zeros((6, 1)), ["a", "a", "b", "b", "b", "a"], [-1, 1, -1, -1, 1, -1]
    )
    if requirement == "rates_are_shares":
        sample = LabelledSample(np.zeros((4, 1)), ["a", "b", "a", "b"], [-1, -1, 1, 1])
    with pytest.raises(RequirementBroken) as caught:
        getattr(testing, requirement)(rate, sample)
    assert caught.value.requirement == requirement
    with pytest.raises(RequirementBroken):
        check_rate(rate, sample=sample)
    assert isinstance(rate, Rate)


OURS = [AuditHoeffding(), AuditKl(), AuditBinomial(), AuditDkw()]


@pytest.mark.parametrize("bound", OURS, ids=lambda bound: bound.name)
def test_ours_keep_the_requirements(bound):
    assert check_bound(bound) == tuple(requirement.__name__ for requirement in BOUND_REQUIREMENTS)


class Broken(AuditHoeffding):
    def __init__(self, change):
        object.__setattr__(self, "change", change)

    def intervals(self, counts, **given):
        found = super().intervals(counts, **given)
        return AuditIntervals(*self.change(found.lower, found.upper, counts))


def forgetful(lower, upper, counts):
    kept = AuditCounts.of(counts.least, counts.people, signs=counts.signs)
    found = AuditHoeffding().intervals(kept, delta=0.2, log_size=0.7, columns=1)
    return found.lower, found.upper


CALLS = []
BROKEN = {
    "limits lie in range": lambda lower, upper, _: (2 * lower, upper),
    "exchanging groups mirrors the limits": lambda lower, upper, _: (lower, upper * 0.9),
    "doubtful people widen the limits": forgetful,
    "gaps are covered": lambda lower, upper, _: ((lower + upper) / 2, (lower + upper) / 2),
    "the same counts have the same limits": lambda lower, upper, counts: (
        lower - 1e-13 * (CALLS.append(1) or len(CALLS)),
        upper,
    ),
}


def test_hypotheses_are_on_the_first_axis_of_limits():
    """The transpose of what is asked for is named, also where a learner keeps it that way."""
    counts = AuditCounts.of([[[30, 20]], [[4, 9]]], [[40, 50]])
    turned = Broken(lambda lower, upper, _: (lower.T, upper.T))
    with pytest.raises(RequirementBroken, match="in range"):
        testing.limits_lie_in_range(turned, counts)
    with pytest.raises(LengthMismatch, match=r"\(2, 3\).*\(3, 2\)"):
        AuditIntervals(np.zeros((2, 3)), np.zeros((3, 2)))
    with pytest.raises(LengthMismatch):
        AuditIntervals(np.zeros(3), np.zeros(3))


@pytest.mark.parametrize(
    "requirement", BOUND_REQUIREMENTS, ids=lambda requirement: requirement.__name__
)
def test_a_broken_requirement_is_named(requirement):
    name = requirement.__name__.replace("_", " ")
    counts = AuditCounts.of([[[30, 20]], [[4, 9]]], [[40, 50]])
    requirement(AuditHoeffding(), counts)
    with pytest.raises(RequirementBroken, match=name):
        requirement(Broken(BROKEN[name]), counts)
