from itertools import combinations

import numpy as np
import pytest

from evenhand.errors import CannotEstimateRate, InvalidInput
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, GapConstraints, SelectionRate
from evenhand.testing import RATE_LAWS, check_rate
from evenhand.words import LabelledSample

RATES = [FalsePositiveRate(), FalseNegativeRate(), SelectionRate()]


def by_counting(symbol, sample, accepted, group):
    """The rate as a person would count it."""
    hits = people = 0.0
    for a, y, yes, n in zip(sample.group, sample.label, accepted, sample.weight, strict=True):
        if a == group and {"FPR": y == -1, "FNR": y == 1, "SR": True}[symbol]:
            people += n
            hits += n * (1 - yes if symbol == "FNR" else yes)
    return hits / people


def draw_sample(seed, groups):
    draw = np.random.default_rng(seed)
    group = np.concatenate([groups, groups, draw.choice(groups, 60)])
    label = np.concatenate([np.ones(len(groups)), -np.ones(len(groups)), draw.choice([-1, 1], 60)])
    return LabelledSample(
        draw.normal(size=(len(group), 1)), group, label, draw.integers(1, 4, len(group))
    )


@pytest.mark.parametrize("rate", RATES, ids=lambda r: r.symbol)
@pytest.mark.parametrize("groups", [["a", "b"], [-1, 1], ["a", "b", "c", "d", "e"]], ids=str)
def test_rates_and_gaps_equal_counting(rate, groups):
    for seed in range(5):
        sample = draw_sample(seed, groups)
        acceptance = np.random.default_rng(seed).random(len(sample))
        constraints = GapConstraints.on(rate, sample)
        expected = [by_counting(rate.symbol, sample, acceptance, g) for g in sample.groups]
        assert list(constraints.group_rates(acceptance)[rate.symbol].values()) == pytest.approx(
            expected
        )
        gaps = [expected[k] - expected[j] for j, k in combinations(range(len(expected)), 2)]
        assert constraints.gaps(acceptance).tolist() == pytest.approx(gaps)
        assert len(constraints.names) == len(gaps)


@pytest.mark.parametrize("rate", RATES, ids=lambda r: r.symbol)
@pytest.mark.parametrize("law", RATE_LAWS, ids=lambda f: f.__name__)
def test_laws_of_rates(rate, law):
    for seed in range(3):
        law(rate, draw_sample(seed, ["a", "b"]))
    check_rate(rate)


def test_equalised_odds_is_two_lists_of_gaps():
    sample = draw_sample(0, ["a", "b", "c"])
    acceptance = np.random.default_rng(0).random(len(sample))
    both = GapConstraints.on([FalsePositiveRate(), FalseNegativeRate()], sample).gaps(acceptance)
    single = [
        GapConstraints.on(rate, sample).gaps(acceptance)
        for rate in (FalsePositiveRate(), FalseNegativeRate())
    ]
    assert both.tolist() == pytest.approx(np.concatenate(single).tolist())


def test_a_count_of_two_is_the_row_twice():
    once = LabelledSample(np.zeros((4, 1)), ["a", "a", "b", "b"], [-1, -1, -1, 1], [2, 1, 1, 1])
    twice = LabelledSample(np.zeros((5, 1)), ["a", "a", "a", "b", "b"], [-1, -1, -1, -1, 1])
    gap = GapConstraints.on(FalsePositiveRate(), once).gaps(np.array([1.0, 0, 1, 0]))
    assert gap == pytest.approx(
        GapConstraints.on(FalsePositiveRate(), twice).gaps(np.array([1.0, 1, 0, 1, 0]))
    )


@pytest.mark.parametrize(("rate", "label"), [(FalsePositiveRate(), 1), (FalseNegativeRate(), -1)])
def test_an_empty_denominator_says_which_group_and_how_many(rate, label):
    sample = LabelledSample(
        np.zeros((5, 1)), ["a", "a", "b", "b", "b"], [1, -1, label, label, label]
    )
    with pytest.raises(
        CannotEstimateRate, match=r"group 'b' has 3 people.*Hint: gather more people of group 'b'"
    ):
        GapConstraints.on(rate, sample)


def test_one_group_only():
    sample = LabelledSample(np.zeros((2, 1)), ["a", "a"], [1, -1])
    for rate in RATES:
        with pytest.raises(CannotEstimateRate, match=r"only the group 'a' \(2 people\)"):
            GapConstraints.on(rate, sample)


def test_no_rates():
    with pytest.raises(InvalidInput, match="rate is an empty list"):
        GapConstraints.on([], draw_sample(0, ["a", "b"]))
