"""The confidence sequence: a martingale by enumeration, its monotone wealth, and its coverage."""

import itertools

import numpy as np
import pytest

from evenhand.bounds.sequences import difference_sequence, log_wealth


@pytest.mark.parametrize(("p1", "p2"), [(0.3, 0.6), (0.5, 0.5), (0.9, 0.05)])
def test_the_wealth_has_mean_one_at_the_truth(p1, p2):
    """All outcomes of four pairs, with their probabilities."""
    step = {1: p1 * (1 - p2), -1: p2 * (1 - p1)}
    step[0] = 1 - step[1] - step[-1]
    total = 0.0
    for steps in itertools.product(step, repeat=4):
        counts = [np.array([float(steps.count(one))]) for one in (1, 0, -1)]
        chance = np.prod([step[one] for one in steps])
        total += chance * np.exp(log_wealth(*counts, np.array([p1 - p2]))[0])
    assert total == pytest.approx(1.0, abs=1e-12)


def test_the_wealth_falls_in_the_difference_that_is_bet_against():
    d = np.linspace(-1, 1, 201)
    for counts in [(40, 50, 10), (0, 5, 9), (300, 0, 0)]:
        parts = [np.full(len(d), float(one)) for one in counts]
        assert (np.diff(log_wealth(*parts, d)) <= 1e-9).all()


def test_it_is_wrong_at_any_time_with_probability_at_most_alpha():
    """60 sequences of 400 pairs, one side, alpha = .1: more than 15 misses have probability below
    1e-3. The control, at alpha = .9, misses more often.
    """
    rng = np.random.default_rng(6)
    wrong = control = 0
    for _ in range(60):
        first = rng.random(400) < 0.4
        second = rng.random(400) < 0.3
        wrong += difference_sequence(first, second, 0.1).lower > 0.1
        control += difference_sequence(first, second, 0.9).lower > 0.1
    assert wrong <= 15
    assert control > 15


def test_nobody_shows_nothing():
    assert difference_sequence(np.array([]), np.array([1, 0]), 0.05) == (-1.0, 1.0)
