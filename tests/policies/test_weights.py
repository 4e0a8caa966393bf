from dataclasses import dataclass

import numpy as np
import pytest

from evenhand.errors import InvalidInput
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.policies import Mixture, PolicyWeights


@dataclass(frozen=True)
class AtLeast:
    cut: float

    def accepts(self, features, group=None):
        return features[:, 0] >= self.cut

    def describe(self, names=None):
        return f"accept if x >= {self.cut}"

    def to_json(self):
        return {"kind": "at_least", "cut": self.cut}


class Unhashable(AtLeast):
    __hash__ = None


ROWS = np.arange(5.0)[:, None]
LOW, HIGH = Mixture((AtLeast(1),), (1.0,)), Mixture((AtLeast(3), AtLeast(1)), (0.25, 0.75))


def test_the_missing_weight_goes_to_the_best_policy():
    weights = PolicyWeights((LOW, HIGH), (0.2, 0.3)).completed(HIGH)
    assert weights.policies == (LOW, HIGH)
    assert weights.weights == pytest.approx((0.2, 0.8))
    assert abs(weights.total - 1) <= 1e-15


def test_nothing_found_means_the_best_policy_alone():
    assert PolicyWeights((), ()).completed(LOW) == PolicyWeights((LOW,), (1.0,))


def test_a_full_distribution_is_completed_with_nothing():
    assert PolicyWeights((LOW,), (1.0,)).completed(HIGH).policies == (LOW,)


def test_equal_policies_merge_whatever_the_order_of_their_hypotheses():
    same = Mixture(HIGH.hypotheses[::-1], HIGH.weights[::-1])
    weights = PolicyWeights((HIGH, same), (0.25, 0.25)).completed(LOW)
    assert weights.policies == (HIGH, LOW)
    assert weights.weights == (0.5, 0.5)


@pytest.mark.parametrize("explored", [(ACCEPT_ALL,), (ACCEPT_ALL, REJECT_ALL)])
def test_smoothing_is_the_formula_on_every_row(explored):
    weights, mu, sides = PolicyWeights((LOW, HIGH), (0.4, 0.6)), 0.1, len(explored)
    policy = weights.smoothed(mu, explored)
    expected = mu + (1 - sides * mu) * (0.4 * LOW.acceptance(ROWS) + 0.6 * HIGH.acceptance(ROWS))
    np.testing.assert_allclose(policy.acceptance(ROWS), expected, atol=1e-15)
    assert len(policy.hypotheses) == sides + 2
    assert sum(policy.weights) == pytest.approx(1, abs=1e-15)


def test_constants_in_the_policies_merge_with_the_explored_ones():
    policy = PolicyWeights((Mixture((ACCEPT_ALL,), (1.0,)),), (1.0,)).smoothed(
        0.1, (ACCEPT_ALL, REJECT_ALL)
    )
    assert policy.hypotheses == (ACCEPT_ALL, REJECT_ALL)
    assert policy.weights == pytest.approx((0.9, 0.1))


def test_a_floor_of_one_half_is_a_fair_coin():
    policy = PolicyWeights((LOW,), (1.0,)).smoothed(0.5, (ACCEPT_ALL, REJECT_ALL))
    assert policy == Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5))


def test_hypotheses_that_cannot_be_hashed_merge_by_identity():
    one, two = Unhashable(1.0), Unhashable(1.0)
    weights = PolicyWeights((Mixture((one, two), (0.5, 0.5)), Mixture((one,), (1.0,))), (0.5, 0.5))
    assert weights.flattened().weights == (0.75, 0.25)


def test_acceptance_of_weights_is_that_of_the_flat_mixture():
    weights = PolicyWeights((LOW, HIGH), (0.5, 0.5))
    np.testing.assert_allclose(weights.acceptance(ROWS), weights.flattened().acceptance(ROWS))


def test_group_use_is_kept_and_never_mixed():
    decide = Mixture((GroupClassifier("a"),), (1.0,), "decide")
    assert PolicyWeights((decide,), (1.0,)).smoothed(0.1, (ACCEPT_ALL,)).group_use == "decide"
    with pytest.raises(InvalidInput, match="decide"):
        PolicyWeights((LOW, decide), (0.5, 0.5))


@pytest.mark.parametrize("weights", [(0.5, -0.1), (0.7, 0.7), (float("nan"), 0.5)])
def test_weights_are_at_least_zero_and_sum_to_one_at_most(weights):
    with pytest.raises(InvalidInput, match=r"\[0, 1\]"):
        PolicyWeights((LOW, HIGH), weights)


def test_each_policy_needs_a_weight():
    with pytest.raises(InvalidInput, match="2 policies have 1 weights"):
        PolicyWeights((LOW, HIGH), (1.0,))


def test_incomplete_weights_cannot_be_smoothed():
    with pytest.raises(InvalidInput, match="Hint: call completed"):
        PolicyWeights((LOW,), (0.5,)).smoothed(0.1, (ACCEPT_ALL,))


@pytest.mark.parametrize("floor", [0.51, -0.1, float("nan")])
def test_a_floor_above_one_half_leaves_nothing_two_sided(floor):
    with pytest.raises(InvalidInput, match="exploration_floor"):
        PolicyWeights((LOW,), (1.0,)).smoothed(floor, (ACCEPT_ALL, REJECT_ALL))
