import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.contracts import Enumeration
from evenhand.errors import InvalidInput, NotFinite, NotSerialisable
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, PerGroup, ScoreThresholds, Threshold


def cheapest_by_loops(score, cost):
    cuts = [-math.inf, *sorted(set(score)), math.inf]
    return min(math.fsum(c for s, c in zip(score, cost, strict=True) if s >= t) for t in cuts)


scores = st.lists(st.integers(-3, 3), min_size=1, max_size=25)


@settings(max_examples=80, deadline=None)
@given(scores, st.integers(0, 10_000))
def test_one_threshold_equals_loops(score, seed):
    x, cost = np.array(score, float)[:, None], np.random.default_rng(seed).normal(size=len(score))
    best = ScoreThresholds().bind(x, None).best(cost)
    assert math.isclose(cost[best.accepts(x)].sum(), cheapest_by_loops(score, cost), abs_tol=1e-12)


@settings(max_examples=80, deadline=None)
@given(scores, st.integers(0, 10_000))
def test_threshold_per_group_equals_loops(score, seed):
    draw = np.random.default_rng(seed)
    x, cost = np.array(score, float)[:, None], draw.normal(size=len(score))
    group = draw.choice(["a", "b", "c"], size=len(score))
    best = ScoreThresholds(per_group=True).bind(x, group).best(cost)
    truth = sum(cheapest_by_loops(x[group == g, 0], cost[group == g]) for g in set(group.tolist()))
    assert math.isclose(cost[best.accepts(x, group)].sum(), truth, abs_tol=1e-12)


def test_members_are_constants_and_observed_scores():
    bound = ScoreThresholds(column=1).bind(
        np.array([[0.0, 612.0], [0.0, 500.0], [0.0, 700.0]]), None
    )
    members = [bound.hypothesis(h) for h in range(bound.totals(np.zeros((1, 3))).shape[1])]
    assert members == [ACCEPT_ALL, REJECT_ALL, Threshold(1, 612.0, 2), Threshold(1, 700.0, 2)]
    assert members[2].describe(["age", "score"]) == "accept if score >= 612"
    assert members[2].describe() == "accept if x1 >= 612"
    assert isinstance(bound, Enumeration)


def test_per_group_is_not_an_enumeration_and_describes_itself():
    x, group = np.array([[1.0], [2.0], [1.0], [2.0]]), np.array(["a", "a", "b", "b"])
    bound = ScoreThresholds(per_group=True).bind(x, group)
    assert not isinstance(bound, Enumeration)
    best = bound.best(np.array([1.0, -1.0, 1.0, 1.0]))
    assert best.describe(["score"]) == "group a: accept if score >= 2; group b: reject everybody"
    assert best.accepts(x, group).tolist() == [False, True, False, False]
    assert bound.best(-np.ones(4)) == ACCEPT_ALL


def test_groups_that_cannot_be_compared():
    group = np.array(["a", 1, "a", 1], dtype=object)
    best = (
        ScoreThresholds(per_group=True)
        .bind(np.arange(4.0)[:, None], group)
        .best(np.array([1.0, 1.0, -1.0, 1.0]))
    )
    assert best.accepts(np.arange(4.0)[:, None], group).tolist() == [False, False, True, False]


def test_unknown_group_and_group_none():
    rule = PerGroup((("a", ACCEPT_ALL), ("b", REJECT_ALL)))
    with pytest.raises(InvalidInput, match=r"group 'c' has no rule.*'a', 'b'"):
        rule.accepts(np.zeros((2, 1)), np.array(["a", "c"]))
    for call in (
        lambda: rule.accepts(np.zeros((2, 1))),
        lambda: ScoreThresholds(per_group=True).bind(np.zeros((2, 1)), None),
    ):
        with pytest.raises(InvalidInput, match='group_use="decide"'):
            call()
    with pytest.raises(NotSerialisable):
        PerGroup((((1, 2), ACCEPT_ALL),)).to_json()


def test_wrong_columns_name_both_numbers():
    with pytest.raises(InvalidInput, match=r"3 columns.*found on 2 columns"):
        Threshold(0, 1.0, 2).accepts(np.zeros((4, 3)))
    with pytest.raises(InvalidInput, match=r"column 5 .* 2 columns"):
        ScoreThresholds(column=5).bind(np.zeros((4, 2)), None)
    with pytest.raises(InvalidInput, match="-1"):
        ScoreThresholds(column=-1)


def test_bad_features():
    with pytest.raises(NotFinite):
        ScoreThresholds().bind(np.array([[np.inf]]), None)
    with pytest.raises(InvalidInput, match="at least one row"):
        ScoreThresholds().bind(np.zeros((0, 1)), None)


def test_growth():
    assert ScoreThresholds().log_growth(9, 3) == math.log(10)
    assert ScoreThresholds(per_group=True).log_growth(9, 3) == 9 * math.log(2)
    assert ScoreThresholds().log_size == math.inf
    assert ScoreThresholds(per_group=True).uses_group
    assert not ScoreThresholds().uses_group
