import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.contracts import Enumeration
from evenhand.errors import InvalidInput, NotFinite, NotSerialisable
from evenhand.hypotheses import (
    ACCEPT_ALL,
    REJECT_ALL,
    PerGroup,
    ScoreThresholds,
    Stumps,
    Threshold,
)


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
    assert (
        best.describe(["score"]) == "group a: accept if score >= 2; group b: reject all applicants"
    )
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
    with pytest.raises(InvalidInput, match=r"'c'.*'a', 'b'"):
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
    with pytest.raises(InvalidInput, match=r"3 columns.*2 columns"):
        Threshold(0, 1.0, 2).accepts(np.zeros((4, 3)))
    with pytest.raises(InvalidInput, match=r"column 5 .* 2 columns"):
        ScoreThresholds(column=5).bind(np.zeros((4, 2)), None)
    with pytest.raises(InvalidInput, match="-1"):
        ScoreThresholds(column=-1)


def test_bad_features():
    with pytest.raises(NotFinite):
        ScoreThresholds().bind(np.array([[np.inf]]), None)
    with pytest.raises(InvalidInput, match="row"):
        ScoreThresholds().bind(np.zeros((0, 1)), None)


def test_growth():
    assert ScoreThresholds().log_growth(9, 3) == math.log(10)
    assert ScoreThresholds(per_group=True).log_growth(9, 3) == 9 * math.log(2)
    assert ScoreThresholds().log_size == math.inf
    assert ScoreThresholds(per_group=True).uses_group
    assert not ScoreThresholds().uses_group


def all_totals_by_loops(x, cost):
    yield math.fsum(cost)
    yield 0.0
    for j in range(x.shape[1]):
        for t in sorted(set(x[:, j])):
            yield math.fsum(c for v, c in zip(x[:, j], cost, strict=True) if v >= t)
            yield math.fsum(c for v, c in zip(x[:, j], cost, strict=True) if v < t)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 100_000), st.integers(1, 25), st.integers(1, 4))
def test_the_best_stump_equals_loops(seed, rows, columns):
    draw = np.random.default_rng(seed)
    x, cost = draw.integers(-2, 3, (rows, columns)) * 1.0, draw.normal(size=rows)
    best = Stumps().bind(x, None).best(cost)
    assert math.isclose(
        cost[best.accepts(x)].sum(), min(all_totals_by_loops(x, cost)), abs_tol=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 100_000), st.integers(1, 30), st.integers(1, 4), st.integers(1, 5))
def test_every_total_of_every_channel_equals_its_member(seed, rows, columns, k):
    draw = np.random.default_rng(seed)
    x, channels = draw.integers(0, 6, (rows, columns)) * 0.5, draw.normal(size=(k, rows))
    bound = Stumps().bind(x, None)
    totals = bound.totals(channels)
    for member in range(totals.shape[1]):
        accepted = bound.hypothesis(member).accepts(x)
        np.testing.assert_allclose(totals[:, member], channels[:, accepted].sum(axis=1), atol=1e-12)


def test_every_distinct_stump_is_there_once():
    x = np.random.default_rng(0).integers(0, 5, (40, 3)).astype(float)
    bound = Stumps().bind(x, None)
    members = [bound.hypothesis(h) for h in range(bound.totals(np.zeros((1, 40))).shape[1])]
    expected = {ACCEPT_ALL, REJECT_ALL}
    for j in range(3):
        expected |= {
            Threshold(j, t, 3, d) for t in sorted(set(x[:, j].tolist()))[1:] for d in (True, False)
        }
    assert len(members) == len(set(members))
    assert set(members) == expected
    assert isinstance(bound, Enumeration)


@pytest.mark.parametrize(("rows", "kind"), [(256, np.uint8), (257, np.uint16), (70_000, np.int32)])
def test_codes_are_as_narrow_as_they_can_be(rows, kind):
    x = np.random.default_rng(0).permutation(rows)[:, None].astype(float)
    bound = Stumps().bind(x, None)
    assert bound.codes.dtype == kind
    cost = np.where(x[:, 0] < rows // 2, 1.0, -1.0)
    assert bound.best(cost) == Threshold(0, float(rows // 2), 1)


def test_bins_are_quantiles_and_few_values_stay_exact():
    draw = np.random.default_rng(0)
    x = np.column_stack([draw.normal(size=1000), draw.integers(0, 3, 1000)])
    bound = Stumps(max_bins=10).bind(x, None)
    assert np.bincount(bound.codes[:, 0]).tolist() == [100] * 10
    assert bound.starts.tolist() == [0, 10, 13]
    assert set(bound.edges[:10]) <= set(x[:, 0])


def test_more_bins_are_never_worse_on_nested_bins():
    draw = np.random.default_rng(1)
    x, cost = draw.normal(size=(640, 3)), draw.normal(size=640)
    costs = [
        cost[Stumps(bins).bind(x, None).best(cost).accepts(x)].sum() for bins in (2, 4, 8, 64, None)
    ]
    assert costs == sorted(costs, reverse=True)


def test_ties_go_to_the_first_member_whatever_the_order_of_rows():
    draw = np.random.default_rng(2)
    column = draw.normal(size=50)
    x, cost = np.column_stack([column, column, -column]), draw.normal(size=50)
    answers = set()
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(50)
        answers.add(Stumps().bind(x[order], None).best(cost[order]))
    assert len(answers) == 1
    assert answers.pop().column == 0
    assert Stumps().bind(x, None).best(np.zeros(50)) == ACCEPT_ALL


def test_huge_and_tiny_costs():
    draw = np.random.default_rng(3)
    x, cost = draw.normal(size=(100, 2)), draw.normal(size=100)
    bound = Stumps().bind(x, None)
    assert len({bound.best(cost * scale) for scale in (1e-300, 1e-12, 1.0, 1e12, 1e290)}) == 1


def test_describe_both_directions():
    assert Threshold(1, 30.0, 2).describe(["age", "income"]) == "accept if income >= 30"
    assert Threshold(0, 2.5, 2, at_least=False).describe(["age"]) == "accept if age < 2.5"


def test_growth_of_stumps():
    assert Stumps().log_growth(10, 3) == math.log(2 + 2 * 3 * 9)
    assert Stumps(4).log_growth(10, 3) == Stumps().log_growth(10, 3)
    assert Stumps().log_growth(0, 3) == math.log(2)
    assert Stumps().log_size == math.inf


def test_bad_input_to_stumps():
    with pytest.raises(InvalidInput, match="max_bins"):
        Stumps(max_bins=1)
    with pytest.raises(NotFinite):
        Stumps().bind(np.array([[np.nan]]), None)
    with pytest.raises(InvalidInput):
        Stumps().bind(np.zeros((3, 0)), None)
    with pytest.raises(InvalidInput, match=r"1 columns.*2 columns"):
        Stumps().bind(np.eye(2), None).hypothesis(2).accepts(np.zeros((1, 1)))


def test_numba_is_not_loaded_before_stumps_are_used():
    code = (
        "import sys, evenhand.hypotheses; "
        "print([m for m in ('numba', 'sklearn', 'scipy.optimize') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
