import numpy as np
import pytest

from evenhand.errors import InvalidInput
from evenhand.estimation import TransformedLoss
from evenhand.words import Prices

ACCEPT = np.array([True, True, False, False])
LABEL = np.array([1, -1, 1, -1])


def test_the_papers_table_is_prices_one_and_one_with_normaliser_two():
    assert TransformedLoss().of(ACCEPT, LABEL).tolist() == [0.0, 1.0, 0.5, 0.5]


def test_the_label_of_a_rejected_row_is_not_looked_at():
    loss = TransformedLoss(Prices(3.0, 1.0), 5.0)
    assert loss.of(~np.ones(2, bool), np.array([1, -1])).tolist() == [0.2, 0.2]


@pytest.mark.parametrize(
    ("false_accept", "false_reject", "normaliser"), [(1, 1, 2), (3, 1, 4), (0.2, 5, 9), (0, 2, 2)]
)
def test_transformed_loss_is_original_loss_plus_a_term_that_no_policy_changes(
    false_accept, false_reject, normaliser
):
    loss = TransformedLoss(Prices(false_accept, false_reject), normaliser)
    original = np.where(
        ACCEPT, np.where(LABEL == -1, false_accept, 0.0), np.where(LABEL == 1, false_reject, 0.0)
    )
    np.testing.assert_allclose(
        normaliser * loss.of(ACCEPT, LABEL), original + false_reject * (LABEL == -1)
    )
    assert loss.of(ACCEPT, LABEL).min() >= 0
    assert loss.of(ACCEPT, LABEL).max() <= 1
    assert loss.original_regret(0.25) == normaliser / 4


def test_acceptance_difference_is_accept_minus_reject():
    loss = TransformedLoss(Prices(np.array([3.0, 2.0]), np.array([1.0, 4.0])), 6.0)
    label = np.array([1, -1])
    difference = loss.of(np.ones(2, bool), label) - loss.of(np.zeros(2, bool), label)
    np.testing.assert_allclose(loss.acceptance_difference(label), difference, atol=1e-15)


def test_prices_above_the_normaliser_are_refused_with_the_number_that_is_needed():
    with pytest.raises(InvalidInput, match=r"sum to 6, above the normaliser 2.*Hint.*at least 6"):
        TransformedLoss(Prices(5.0, 1.0))


@pytest.mark.parametrize("normaliser", [0.0, -1.0, np.inf, np.nan])
def test_a_normaliser_must_be_positive_and_finite(normaliser):
    with pytest.raises(InvalidInput, match="normaliser"):
        TransformedLoss(Prices(), normaliser)
