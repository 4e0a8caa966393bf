"""Exact intervals by enumeration, missing outcomes against every completion, and refusals."""

import itertools
import math

import numpy as np
import pytest

from evenhand.errors import InvalidInput
from evenhand.evaluation.measure import interval, measure_decisions

NAN = float("nan")


@pytest.mark.parametrize("people", [1, 4, 9])
@pytest.mark.parametrize("alpha", [0.2, 0.05])
def test_each_end_is_wrong_with_probability_at_most_alpha(people, alpha):
    """By enumeration of all outcomes for a grid of true rates; and not by much less at the best."""
    nearest = 0.0
    for true in np.linspace(0.001, 0.999, 333):
        chance = [
            math.comb(people, k) * true**k * (1 - true) ** (people - k) for k in range(people + 1)
        ]
        too_high = sum(
            p for k, p in enumerate(chance) if interval(k, people, alpha)[0] > true + 1e-12
        )
        too_low = sum(
            p for k, p in enumerate(chance) if interval(k, people, alpha)[1] < true - 1e-12
        )
        assert max(too_high, too_low) <= alpha + 1e-9
        nearest = max(nearest, too_high)
    assert nearest > 0.8 * alpha


def test_known_outcomes_give_the_rates_themselves():
    accepted = np.array([True, False, True, True, False, True, False, False])
    label = np.array([1, 1, -1, 1, 1, -1, -1, -1.0])
    group = list("aaaabbbb")
    measured = measure_decisions(accepted, group, label)
    rates = {rate.symbol: rate for rate in measured.rates}
    assert [round(one.least, 6) for one in rates["SR"].groups] == [0.75, 0.25]
    assert [round(one.least, 6) for one in rates["FPR"].groups] == [1.0, round(1 / 3, 6)]
    assert [round(one.least, 6) for one in rates["FNR"].groups] == [round(1 / 3, 6), 1.0]
    assert [round(one.least, 6) for one in rates["PPV"].groups] == [round(2 / 3, 6), 0.0]
    assert rates["SR"].gap == 0.5
    assert rates["SR"].ratio == pytest.approx(1 / 3)
    assert all(rate.is_identified for rate in measured.rates)
    for rate in measured.rates:
        assert rate.gap_interval[0] <= rate.gap <= rate.gap_interval[1]
        if rate.ratio is not None:
            assert rate.ratio_interval[0] <= rate.ratio <= rate.ratio_interval[1]


@pytest.mark.parametrize("seed", range(5))
def test_missing_outcomes_cover_every_completion(seed):
    rng = np.random.default_rng(seed)
    accepted = rng.random(9) < 0.6
    group = ["a", "b", "a", "b", "a", "b", "a", "b", "a"]
    full = rng.choice([-1.0, 1.0], 9)
    missing = rng.choice(9, 4, replace=False)
    label = full.copy()
    label[missing] = NAN
    told = measure_decisions(accepted, group, label)
    for completion in itertools.product([-1.0, 1.0], repeat=4):
        label[missing] = completion
        exact = measure_decisions(accepted, group, label)
        for rate, true in zip(told.rates, exact.rates, strict=True):
            for one, real in zip(rate.groups, true.groups, strict=True):
                if not math.isnan(real.least):
                    assert one.least - 1e-12 <= real.least <= one.largest + 1e-12
                assert one.lower <= real.lower + 1e-12
                assert one.upper >= real.upper - 1e-12
            assert rate.gap_interval[0] <= true.gap_interval[0] + 1e-12
            assert rate.gap_interval[1] >= true.gap_interval[1] - 1e-12


def test_one_sided_outcomes_leave_the_false_positive_rate_open():
    """The trap of the whole field: outcomes of the accepted alone say nothing about FPR."""
    accepted = np.array([True] * 6 + [False] * 6)
    label = np.array([1, 1, -1, 1, -1, -1] + [NAN] * 6)
    measured = measure_decisions(accepted, list("ab" * 6), label)
    rates = {rate.symbol: rate for rate in measured.rates}
    assert rates["FPR"].gap is None
    assert not rates["FPR"].is_identified
    assert rates["FPR"].groups[0].largest == 1.0
    assert rates["PPV"].is_identified


def test_without_outcomes_only_selection_is_measured():
    measured = measure_decisions(np.array([True, False]), ["a", "b"])
    assert [rate.symbol for rate in measured.rates] == ["SR"]
    with pytest.raises(InvalidInput, match="need outcomes"):
        measure_decisions(np.array([True, False]), ["a", "b"], rates="fpr")


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="groups"):
        measure_decisions(np.array([True, False]), ["a"])
    with pytest.raises(InvalidInput, match="failure_probability"):
        measure_decisions(np.array([True]), ["a"], failure_probability=1.5)


def test_all_intervals_hold_at_once():
    """1,000 lists of 60 people; all intervals of four rates hold in at least 95%.

    A share below .93 of 1,000 would show with probability .99 if the true share were .91; the
    control, whose intervals are not shared out among the rates and groups, must fail.
    """
    rng = np.random.default_rng(5)
    held = control = 0
    for _ in range(1000):
        group = rng.choice(["a", "b"], 60)
        label = np.where(rng.random(60) < 0.5, 1.0, -1.0)
        accepted = rng.random(60) < np.where(label > 0, 0.7, 0.4)
        truth = {"SR": 0.55, "FPR": 0.4, "FNR": 0.3, "PPV": 0.7 / 1.1}

        def holds(delta, group=group, label=label, accepted=accepted, truth=truth):
            measured = measure_decisions(accepted, group, label, failure_probability=delta)
            return all(
                one.lower <= truth[rate.symbol] <= one.upper
                for rate in measured.rates
                for one in rate.groups
            )

        held += holds(0.05)
        control += holds(0.05 * 8)
    assert held >= 930
    assert control < 930
