from itertools import product

import numpy as np
import pytest

from evenhand.errors import InvalidInput
from evenhand.estimation import (
    EstimatedLoss,
    RoundLog,
    TransformedLoss,
    doubly_robust,
    one_sided,
    two_sided,
    with_more_rounds,
)
from evenhand.estimation.outcomes import ConstantOutcome, LogisticOutcome
from evenhand.words import Prices

ARRIVAL = np.array([0.5, 0.3, 0.2])
POSITIVE_RATE = np.array([0.9, 0.4, 0.1])
CHANCE = np.array([0.7, 0.2, 0.55])
POLICY = np.array([1.0, 0.35, 0.0])
ESTIMATORS = [one_sided, two_sided]
ACCEPT = np.array([True, True, False, False])
LABEL = np.array([1, -1, 1, -1])


def true_loss(loss: TransformedLoss, policy=POLICY) -> float:
    """E of the transformed loss of `policy`, straight from its table."""
    accept_loss = (1 - POSITIVE_RATE) * loss.of_false_accept
    return float(ARRIVAL @ (policy * accept_loss + (1 - policy) * loss.of_reject))


def expectation(estimator, loss, rounds=2, prices=None) -> float:
    """The sum over all sequences of persons, labels and coins of probability times L_hat."""
    total = 0.0
    for events in product(product(range(3), (-1, 1), (True, False)), repeat=rounds):
        context, label, accept = (np.array(column) for column in zip(*events, strict=True))
        person = ARRIVAL[context] * np.where(
            label == 1, POSITIVE_RATE[context], 1 - POSITIVE_RATE[context]
        )
        coin = np.where(accept, CHANCE[context], 1 - CHANCE[context])
        own = (
            None
            if prices is None
            else Prices(prices.false_accept[context], prices.false_reject[context])
        )
        log = RoundLog.from_rounds(
            context[:, None], accept, label[accept], CHANCE[context], prices=own
        )
        estimate = estimator(log, loss)
        total += float(np.prod(person * coin)) * estimate.of(
            POLICY[estimate.features[:, 0].astype(int)]
        )
    return total


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("prices", "normaliser"), [((1, 1), 2), ((3, 1), 5), ((0.5, 2), 2.5), ((1, 0), 1)]
)
def test_the_expectation_over_all_coins_is_the_transformed_loss(estimator, prices, normaliser):
    loss = TransformedLoss(Prices(*prices), normaliser)
    assert expectation(estimator, loss) == pytest.approx(true_loss(loss), abs=1e-14)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_same_with_a_price_for_each_person(estimator):
    prices = Prices(np.array([1.0, 2.0, 4.0]), np.array([3.0, 0.5, 1.0]))
    expected = true_loss(TransformedLoss(prices, 6.0))
    assert expectation(estimator, TransformedLoss(normaliser=6.0), prices=prices) == pytest.approx(
        expected, abs=1e-14
    )


def test_the_one_sided_estimator_varies_less():
    """Exact variances of one round at a floor of .05: the reason why it is the default."""

    def variance(estimator):
        values, chances = [], []
        for label, accept in product((-1, 1), (True, False)):
            log = RoundLog.from_rounds([[0.0]], [accept], [label] if accept else [], 0.95)
            values.append(estimator(log).of(np.array([0.5])))
            chances.append(0.5 * (0.95 if accept else 0.05))
        return np.dot(chances, np.square(values)) - np.dot(chances, values) ** 2

    assert variance(one_sided) < 0.3 * variance(two_sided)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_rows_of_one_context_are_added_up(estimator):
    random = np.random.default_rng(0)
    context = random.integers(3, size=200)
    chance = random.choice([0.2, 0.6], size=200)
    accept = random.random(200) < chance
    log = RoundLog.from_rounds(
        context[:, None], accept, random.choice([-1, 1], size=accept.sum()), chance
    )
    whole, small = estimator(log), estimator(log.aggregated())
    assert len(whole) == len(small) == 3
    assert whole.rounds == small.rounds == whole.count.sum() == 200
    assert whole.share.sum() == pytest.approx(1)
    for policy in (np.zeros(3), np.ones(3), random.random(3)):
        assert whole.of(policy) == pytest.approx(small.of(policy), abs=1e-13)
    by_hand = (
        sum(estimator(log.where(np.arange(200) == i)).of(np.ones(1)) for i in range(200)) / 200
    )
    assert whole.of(np.ones(3)) == pytest.approx(by_hand, abs=1e-12)


def test_groups_stay_apart():
    log = RoundLog.from_rounds([[0.0]] * 3, [True] * 3, [1, 1, -1], 0.5, group=["a", "b", "a"])
    estimate = one_sided(log)
    assert estimate.group.tolist() == ["a", "b"]
    assert estimate.count.tolist() == [2, 1]
    assert estimate.acceptance_cost.tolist() == [0.0, -1.0]


def test_an_accept_all_phase_enters_one_sided_with_weight_one():
    log = RoundLog.from_rounds([[0.0]] * 2, [True] * 2, [1, -1], 1.0)
    assert one_sided(log).of(np.ones(1)) == 0.5


@pytest.mark.parametrize("acceptance", [0.0, 1.0])
def test_two_sided_refuses_rounds_in_which_a_decision_could_not_occur(acceptance):
    accept = [acceptance == 1.0]
    log = RoundLog.from_rounds([[0.0]], accept, [1] if accept[0] else [], acceptance)
    with pytest.raises(InvalidInput, match=r"is (0|1) in row 0"):
        two_sided(log)


def test_accept_all_rounds_would_make_rejecting_look_cheap_two_sided():
    """Negative control: with 1000 accept-all rounds at a propensity just below one, L_hat(reject)
    is far below 1/2.
    """
    phase = RoundLog([[0.0]], None, 1 - 1e-9, 0, 500, 500)
    played = RoundLog([[0.0]], None, 0.5, 500, 250, 250)
    estimate = two_sided(RoundLog.concatenate([phase, played]))
    assert estimate.of(np.zeros(1)) == pytest.approx(0.25)


def test_one_sided_refuses_rounds_that_could_not_be_accepted():
    log = RoundLog.from_rounds([[0.0]], [False], [], 0.0)
    with pytest.raises(InvalidInput, match="inverse"):
        one_sided(log)


@pytest.mark.parametrize(
    ("estimator", "acceptance"), [(one_sided, 0.01), (two_sided, 0.01), (two_sided, 0.99)]
)
def test_a_propensity_below_the_floor_is_refused(estimator, acceptance):
    log = RoundLog.from_rounds([[0.0]], [True], [1], acceptance)
    with pytest.raises(InvalidInput, match=r"floor 0\.05"):
        estimator(log, exploration_floor=0.05)
    assert estimator(log, exploration_floor=0.01 * (1 + 1e-12)).rounds == 1


def test_prices_of_the_log_above_the_preset_normaliser_are_refused():
    log = RoundLog.from_rounds([[0.0]], [True], [1], 0.5, prices=Prices(9.0, 1.0))
    with pytest.raises(InvalidInput, match="normaliser"):
        one_sided(log)


def test_no_rounds_no_estimate():
    with pytest.raises(InvalidInput, match="0 rounds"):
        EstimatedLoss(np.zeros((0, 1)), None, np.zeros(0), np.zeros(0), 0.0, 0.0)


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


def test_prices_above_the_normaliser_are_refused_with_the_number_that_is_needed():
    with pytest.raises(InvalidInput, match=r"6.*normaliser 2"):
        TransformedLoss(Prices(5.0, 1.0))


@pytest.mark.parametrize("normaliser", [0.0, -1.0, np.inf, np.nan])
def test_a_normaliser_must_be_positive_and_finite(normaliser):
    with pytest.raises(InvalidInput, match="normaliser"):
        TransformedLoss(Prices(), normaliser)


def log_of(rng, rows, acceptance, truth):
    features = rng.normal(size=(rows, 1))
    p = acceptance(features[:, 0])
    accept = rng.random(rows) < p
    label = np.where(rng.random(rows) < truth(features[:, 0]), -1, 1)
    return RoundLog.from_rounds(features, accept, label[accept], p)


def true_negative(x):
    return 1 / (1 + np.exp(-x))


def test_without_weights_to_cap_it_is_right_whatever_the_regression_says():
    """20,000 rounds, p between .2 and 1: standard error .006."""
    rng = np.random.default_rng(3)
    log = log_of(rng, 20_000, lambda x: np.where(x > 0, 0.2, 1.0), true_negative)
    rule = log.features[:, 0] < 0.3
    truth = float(((2 * true_negative(log.features[:, 0]) - 1) * rule).mean() / 2)
    for regression in (
        ConstantOutcome(0.9),
        LogisticOutcome(np.zeros(1), np.ones(1), np.ones(1), 0.0),
    ):
        loss, _ = doubly_robust(log, regression)
        assert loss.acceptance_cost @ rule / loss.rounds == pytest.approx(truth, abs=0.025)


def test_with_capped_weights_a_good_regression_saves_it():
    """p = .02 where x > 0: the capped one-sided estimate is far off, the doubly robust is not."""
    rng = np.random.default_rng(4)
    log = log_of(rng, 20_000, lambda x: np.where(x > 0, 0.02, 1.0), true_negative)
    rule = np.ones(len(log))
    truth = float((2 * true_negative(log.features[:, 0]) - 1).mean() / 2)
    regression = LogisticOutcome(np.zeros(1), np.ones(1), np.ones(1), 0.0)
    robust, variance = doubly_robust(log, regression, cap=10.0)
    capped = one_sided(
        RoundLog(
            log.features,
            None,
            np.maximum(log.acceptance, 0.1),
            log.rejected,
            log.positive,
            log.negative,
        )
    )
    assert abs(robust.acceptance_cost @ rule / robust.rounds - truth) < 0.02
    assert abs(capped.acceptance_cost @ rule / capped.rounds - truth) > 0.05
    assert (variance > 0).all()


def test_labels_of_all_applicants_leave_no_room_for_the_regression():
    log = RoundLog.from_rounds([[0.0], [1.0]], [True, True], [1, -1], 1.0)
    with_bad, _ = doubly_robust(log, ConstantOutcome(0.99))
    np.testing.assert_allclose(with_bad.acceptance_cost, one_sided(log).acceptance_cost)


def test_losses_of_rows_with_prices_of_their_own():
    loss = TransformedLoss(Prices(2.0, 1.0), 4.0)
    accept, reject = loss.per_row(None, 2)
    assert accept.tolist() == [0.75, 0.75]
    assert reject.tolist() == [0.25, 0.25]
    accept, reject = loss.per_row(Prices(np.array([1.0, 3.0]), 1.0), 2)
    assert accept.tolist() == [0.5, 1.0]
    assert reject.tolist() == [0.25, 0.25]


@pytest.mark.parametrize("sides", [1, 2])
def test_rounds_may_be_added_in_one_call_or_in_several(sides):
    """The same bits, and the estimate itself but for rounding; arrays are kept where no context is
    new.
    """
    draw = np.random.default_rng(sides)
    features = draw.integers(0, 5, (80, 1)).astype(float)
    accept = draw.random(80) < 0.6
    label = np.where(draw.random(80) < 0.5, 1, -1)
    chance = draw.uniform(0.2, 0.9, 80)
    group = np.where(draw.random(80) < 0.5, "a", "b")
    log = RoundLog.from_rounds(features, accept, label[accept], chance, group=group)
    loss = TransformedLoss(Prices(0.7, 1.1), 2.0)
    whole = with_more_rounds(None, log, loss, sides)
    for cuts in ([1] * 80, [3, 40, 37], [79, 1]):
        total, start = None, 0
        for size in cuts:
            here = np.zeros(80, bool)
            here[start : start + size] = True
            total, start = with_more_rounds(total, log.where(here), loss, sides), start + size
        for name in ("features", "group", "count", "acceptance_cost"):
            assert np.array_equal(getattr(total, name), getattr(whole, name))
        assert (total.constant, total.rounds) == (whole.constant, whole.rounds)
    estimate = (one_sided if sides == 1 else two_sided)(log, loss)
    assert whole.acceptance_cost == pytest.approx(estimate.acceptance_cost, rel=1e-12)
    assert whole.constant == pytest.approx(estimate.constant, rel=1e-12)
    again = with_more_rounds(whole, log.where(np.arange(80) < 2), loss, sides)
    assert again.features is whole.features


def test_added_rounds_are_checked_like_others():
    log = RoundLog.from_rounds([[1.0]], [True], [1], 1.0)
    assert with_more_rounds(None, log, TransformedLoss(), 1).rounds == 1
    with pytest.raises(InvalidInput):
        with_more_rounds(None, log, TransformedLoss(), 2)
