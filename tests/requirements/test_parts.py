"""Each requirement catches a policy or a rate that was made to break it, and says so by name."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.requirements import parts
from tests.requirements.parts import check_policy, check_rate

from evenhand.fairness import FalsePositiveRate, Rate
from evenhand.hypotheses import ACCEPT_ALL, Threshold
from evenhand.policies import Mixture
from evenhand.testing import RequirementBroken
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
        getattr(parts, requirement)(BadPolicy(how=how), features, None)
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
        getattr(parts, requirement)(rate, sample)
    assert caught.value.requirement == requirement
    with pytest.raises(RequirementBroken):
        check_rate(rate, sample=sample)
    assert isinstance(rate, Rate)
