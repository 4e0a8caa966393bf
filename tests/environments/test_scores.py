"""The continuous score against closed forms, and against counting people."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from evenhand import FalseNegativeRate, FalsePositiveRate, Prices, SelectionRate
from evenhand.environments import ScoreGroup, Scores
from evenhand.environments.scores import step_points
from evenhand.errors import InvalidInput
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.hypotheses.thresholds import PerGroup, Threshold
from evenhand.policies import Mixture


def above(value: float) -> Threshold:
    return Threshold(0, value, 1)


def closed_form(env: Scores, cut: float) -> tuple[float, float, float]:
    """(loss, FPR gap, FNR gap) of one threshold."""
    loss, fpr, fnr = 0.0, {}, {}
    for group, part in env.groups.items():
        fpr[group] = norm.sf(cut, part.negative_mean, part.spread)
        fnr[group] = norm.cdf(cut, part.positive_mean, part.spread)
        loss += part.share * (part.base_rate * fnr[group] + (1 - part.base_rate) * fpr[group])
    return loss, fpr[1] - fpr[-1], fnr[1] - fnr[-1]


@pytest.mark.parametrize("cut", [-6.0, -1.3, 0.0, 0.123456789, 2.5, 9.0])
def test_a_threshold_has_its_closed_form(cut: float) -> None:
    env = Scores()
    policy = Mixture((above(cut),), (1.0,))
    loss, fpr_gap, fnr_gap = closed_form(env, cut)
    assert env.loss(policy) == pytest.approx(loss, abs=1e-13)
    assert env.gap(policy) == pytest.approx(fpr_gap, abs=1e-13)
    assert env.gap(policy, FalseNegativeRate()) == pytest.approx(fnr_gap, abs=1e-13)


def test_a_mixture_is_the_mean_of_its_parts() -> None:
    env = Scores()
    cuts, weights = [-0.5, 0.1, 0.1000001, 1.7], [0.1, 0.2, 0.3, 0.4]
    policy = Mixture(tuple(above(c) for c in cuts), tuple(weights))
    expected = np.average([closed_form(env, c) for c in cuts], axis=0, weights=weights)
    assert env.loss(policy) == pytest.approx(expected[0], abs=1e-13)
    assert env.gap(policy) == pytest.approx(expected[1], abs=1e-13)
    assert env.loss(policy, Prices(3.0, 3.0)) == pytest.approx(3 * expected[0], abs=1e-12)


def test_constants_and_group_rules() -> None:
    env = Scores()
    for constant in (ACCEPT_ALL, REJECT_ALL):
        assert env.gap(Mixture((constant,), (1.0,))) == pytest.approx(0.0, abs=1e-15)
    assert env.gap(Mixture((GroupClassifier(1),), (1.0,), "decide")) == pytest.approx(1.0)
    rule = PerGroup(((-1, above(0.2)), (1, above(-0.4))))
    expected = norm.sf(-0.4, -1.1, 1) - norm.sf(0.2, -0.6, 1)
    assert env.gap(Mixture((rule,), (1.0,), "decide")) == pytest.approx(expected, abs=1e-13)


def test_truth_agrees_with_counted_people() -> None:
    """200,000 people, two-sided exact binomial at 1e-6 for each rate; a rate that is off by .02
    would be seen.
    """
    env = Scores()
    policy = Mixture((above(0.3), above(-0.8)), (0.4, 0.6))
    people = env.draw(200_000, np.random.default_rng(3))
    accepted = np.random.default_rng(4).random(len(people)) < policy.acceptance(people.features)
    truth, _ = env._truth(policy)
    accept = policy.acceptance(truth.features)
    for group in (-1, 1):
        for label in (-1, 1):
            rows, cells = (
                (people.group == group) & (people.label == label),
                (truth.group == group) & (truth.label == label),
            )
            rate = float(truth.weight[cells] @ accept[cells] / truth.weight[cells].sum())
            hits, total = int(accepted[rows].sum()), int(rows.sum())
            assert binomtest(hits, total, rate).pvalue > 1e-6
            assert binomtest(hits, total, rate + 0.02).pvalue < 1e-6
            assert binomtest(total, len(people), truth.weight[cells].sum()).pvalue > 1e-6


@pytest.mark.parametrize("limit", [0.02, 0.05, 0.1, 1.0])
@pytest.mark.parametrize("rate", [FalsePositiveRate(), SelectionRate()])
def test_the_optimum_keeps_its_limit_and_no_pair_of_thresholds_beats_it(
    limit: float, rate: FalsePositiveRate
) -> None:
    env = Scores()
    loss, policy = env.optimum(limit, rate)
    assert env.loss(policy) == pytest.approx(loss, abs=1e-12)
    assert abs(env.gap(policy, rate)) <= limit + 1e-12
    cuts = np.linspace(-3, 3, 61)
    singles = [Mixture((above(c),), (1.0,)) for c in cuts] + [
        Mixture((c,), (1.0,)) for c in (ACCEPT_ALL, REJECT_ALL)
    ]
    points = [(env.loss(p), env.gap(p, rate)) for p in singles]
    best = min(cost for cost, gap in points if abs(gap) <= limit + 1e-12)
    for (c1, g1), (c2, g2) in combinations(points, 2):
        for bound in (-limit, limit):
            weight = (bound - g2) / (g1 - g2) if g1 != g2 else -1.0
            if 0 <= weight <= 1:
                best = min(best, weight * c1 + (1 - weight) * c2)
    assert loss <= best + 1e-4
    assert loss >= best - 0.01


def test_steps_are_found_to_the_last_bit_even_several_in_one_cell() -> None:
    steps = np.array([-0.7, 0.1, 0.1 + 1e-9, 0.3])

    def function(x: np.ndarray) -> np.ndarray:
        return np.searchsorted(steps, x, side="right").astype(float)

    assert step_points(function, np.array([-1.0, 0.0, 1.0])).tolist() == steps.tolist()
    assert len(step_points(lambda x: np.ones(len(x)), np.array([-1.0, 1.0]))) == 0


def test_three_groups_have_three_gaps() -> None:
    third = ScoreGroup(1 / 3, 0.5, 1.0, -1.0)
    env = Scores({"a": third, "b": third, "c": ScoreGroup(1 / 3, 0.3, 0.5, -1.5, 0.8)})
    gaps = env.gaps(Mixture((above(0.0),), (1.0,)))
    expected = norm.sf(0, -1.5, 0.8) - norm.sf(0, -1, 1)
    assert gaps == pytest.approx([0.0, expected, expected], abs=1e-13)
    assert set(env.draw(100, np.random.default_rng(0)).group.tolist()) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ScoreGroup(0.0, 0.5, 1, -1), "share is 0.0"),
        (lambda: ScoreGroup(0.5, 1.0, 1, -1), "base_rate is 1.0"),
        (lambda: ScoreGroup(0.5, 0.5, 1, -1, 0.0), "spread"),
        (lambda: Scores({0: ScoreGroup(0.5, 0.5, 1, -1)}), "two"),
        (lambda: Scores({g: ScoreGroup(0.4, 0.5, 1, -1) for g in (0, 1)}), "0.8"),
        (
            lambda: Scores().loss(Mixture((ACCEPT_ALL,), (1.0,)), Prices(np.ones(3), 1.0)),
            "continuous",
        ),
    ],
)
def test_impossible_populations_are_refused(build, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        build()
