"""A mixture is what it says, and there is one definition of its sum: alone, among others, compiled
or asked one by one, the bits are the same.
"""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.requirements.parts import check_policy

from evenhand.errors import InvalidInput, NotFinite
from evenhand.hypotheses import (
    ACCEPT_ALL,
    REJECT_ALL,
    Called,
    GroupClassifier,
    LinearRule,
    PerGroup,
    TableRow,
    Threshold,
    Tree,
    policy_from_json,
)
from evenhand.policies import DeployedPolicy, Mixture, PolicyWeights
from evenhand.policies.mixture import TILE, Compiled


@pytest.mark.thorough
@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6), st.integers(0, 1000))
def test_acceptance_is_the_expected_answer(raw, seed):
    draw = np.random.default_rng(seed)
    weights = tuple((np.array(raw) / sum(raw)).tolist())
    x = draw.normal(size=(15, 2))
    parts = tuple(
        Threshold(int(j), float(t), 2)
        for j, t in zip(draw.integers(0, 2, len(raw)), draw.normal(size=len(raw)), strict=True)
    )
    expected = [
        sum(w for w, h in zip(weights, parts, strict=True) if h.accepts(row[None])[0]) for row in x
    ]
    np.testing.assert_allclose(Mixture(parts, weights).acceptance(x), expected, atol=1e-12)
    check_policy(Mixture(parts, weights), x)


def test_the_columns_of_a_mixture_are_those_of_its_rules():
    cut, sum_of_two = Threshold(3, 0.0, 4), LinearRule((0.0, 2.0, 0.0, 1.0), 0.5)
    assert Mixture((ACCEPT_ALL,), (1.0,)).columns_used == ()
    assert Mixture((ACCEPT_ALL, cut), (0.5, 0.5)).columns_used == (3,)
    assert Mixture((cut, sum_of_two), (0.5, 0.5)).columns_used == (1, 3)
    assert Mixture((sum_of_two, cut), (0.0, 1.0)).columns_used == (3,)
    unknown = Called(lambda features, group: features[:, 0] > 0)
    assert Mixture((cut, unknown), (0.5, 0.5)).columns_used is None
    read = policy_from_json(Mixture((cut, sum_of_two), (0.5, 0.5)).to_json())
    assert read.columns_used == (1, 3)


def test_the_group_is_never_shown_unless_it_may_decide():
    seen = []

    class Spy:
        def accepts(self, features, group=None):
            seen.append(group)
            return np.ones(len(features), bool)

    Mixture((Spy(),), (1.0,)).acceptance(np.zeros((2, 1)), ["a", "b"])
    Mixture((Spy(),), (1.0,), "decide").acceptance(np.zeros((2, 1)), ["a", "b"])
    assert seen[0] is None
    assert seen[1].tolist() == ["a", "b"]


def test_flipping_the_group_changes_no_bit_when_it_only_certifies():
    x = np.random.default_rng(0).normal(size=(30, 1))
    mixture = Mixture((Threshold(0, 0.0, 1), ACCEPT_ALL), (1 / 3, 2 / 3))
    left, right = (mixture.acceptance(x, np.full(30, g)) for g in ("a", "b"))
    assert left.tobytes() == right.tobytes()


def test_group_classifiers_need_the_group():
    mixture = Mixture((GroupClassifier("a"), REJECT_ALL), (0.5, 0.5), "decide")
    assert mixture.acceptance(np.zeros((2, 1)), ["a", "b"]).tolist() == [0.5, 0.0]
    with pytest.raises(InvalidInput, match='group_use="decide"'):
        mixture.acceptance(np.zeros((2, 1)))


def test_describe_lists_the_likelier_first():
    mixture = Mixture((REJECT_ALL, Threshold(0, 612.0, 1)), (0.27, 0.73))
    assert mixture.describe(["score"]).splitlines() == [
        "with probability 0.73: accept if score >= 612",
        "with probability 0.27: reject all applicants",
    ]
    assert Mixture((ACCEPT_ALL,), (1.0,)).describe() == "always: accept all applicants"
    nearly = Mixture((ACCEPT_ALL, REJECT_ALL), (1.0 - 2e-16, 2e-16))
    assert nearly.describe() == "always: accept all applicants"


@pytest.mark.parametrize(
    ("hypotheses", "weights"),
    [
        ((), ()),
        ((ACCEPT_ALL,), (0.5,)),
        ((ACCEPT_ALL, REJECT_ALL), (1.5, -0.5)),
        ((ACCEPT_ALL,), (0.5, 0.5)),
    ],
)
def test_what_is_no_distribution_has_no_constructor(hypotheses, weights):
    with pytest.raises(InvalidInput):
        Mixture(hypotheses, weights)


def test_rows_are_checked():
    with pytest.raises(NotFinite):
        Mixture((ACCEPT_ALL,), (1.0,)).acceptance([[np.nan]])


def test_the_weight_of_a_hypothesis_is_the_sum_over_its_places():
    rule = Threshold(0, 1.0, 1)
    mixture = Mixture((ACCEPT_ALL, rule, ACCEPT_ALL, REJECT_ALL), (0.25, 0.5, 0.125, 0.125))
    assert mixture.weight_of(ACCEPT_ALL) == 0.375
    assert mixture.weight_of(ACCEPT_ALL, REJECT_ALL) == 0.5
    assert mixture.weight_of(Threshold(0, 1.0, 1)) == 0.5
    assert mixture.weight_of(Threshold(0, 2.0, 1)) == 0


TREE = Tree((1, -1, -1), (0.2, 0.0, 0.0), (1, -1, -1), (2, -1, -1), (False, False, True), 3)


def rules(draw, count):
    """Rules of all kinds for rows of three columns, the first of which counts contexts 0 .. 4."""
    made = [
        lambda: Threshold(int(draw.integers(3)), float(draw.normal()), 3, bool(draw.integers(2))),
        lambda: LinearRule(
            tuple((draw.normal(size=3) * (draw.random(3) < 0.8)).tolist()), float(draw.normal())
        ),
        lambda: TableRow(tuple((draw.random(5) < 0.5).tolist())),
        lambda: TREE,
        lambda: Called(lambda x, g: x[:, 2] > 0.1),
        lambda: GroupClassifier("a"),
        lambda: PerGroup((("a", ACCEPT_ALL), ("b", Threshold(1, 0.0, 3)))),
        lambda: (ACCEPT_ALL, REJECT_ALL)[int(draw.integers(2))],
    ]
    return tuple(made[int(draw.integers(len(made)))]() for _ in range(count))


def people(draw, rows):
    x = draw.normal(size=(rows, 3))
    x[:, 0] = draw.integers(0, 5, rows)
    return x, draw.choice(["a", "b"], rows)


def by_hand(mixture, features, group):
    """Kind by kind, in order of first appearance, one term after the other."""
    kinds = dict.fromkeys(type(h) for h in mixture.hypotheses)
    total = np.zeros(len(features))
    for kind in kinds:
        for h, w in zip(mixture.hypotheses, mixture.weights, strict=True):
            if type(h) is kind:
                total = total + w * h.accepts(features, group)
    return np.minimum(total, 1.0)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10_000))
def test_alone_among_others_and_by_hand_the_bits_are_the_same(count, seed):
    draw = np.random.default_rng(seed)
    mixture = Mixture(rules(draw, count), tuple(draw.dirichlet(np.ones(count)).tolist()), "decide")
    x, group = people(draw, 40)
    block = mixture.acceptance(x, group)
    alone = np.concatenate([mixture.acceptance(x[i : i + 1], group[i : i + 1]) for i in range(40)])
    assert block.tobytes() == alone.tobytes() == by_hand(mixture, x, group).tobytes()
    assert mixture.acceptance(x[3:11], group[3:11]).tobytes() == block[3:11].tobytes()
    assert mixture.acceptance_of_checked(x, group).tobytes() == block.tobytes()


@pytest.mark.parametrize("columns", [1, 2, 7, 8, 9, 12, 33])
@pytest.mark.parametrize("count", [1, 2, 16])
def test_scores_do_not_depend_on_how_many_are_asked(columns, count):
    """Also where numpy would add up pairwise: many columns, one rule, tiles and their rest."""
    draw = np.random.default_rng(columns)
    parts = [LinearRule(tuple(draw.normal(size=columns).tolist()), 0.0) for _ in range(count)]
    x = draw.normal(size=(2 * TILE + 7, columns))
    exact = [float(sum_in_order(rule, x[5])) for rule in parts]
    on_edge = tuple(
        LinearRule(rule.weights, score) for rule, score in zip(parts, exact, strict=True)
    )
    mixture = Mixture(on_edge, tuple([1.0 / count] * count))
    block = mixture.acceptance(x)
    some = np.r_[0:20, TILE - 2 : TILE + 2, len(x) - 3 : len(x)]
    assert [mixture.acceptance(x[i : i + 1])[0] for i in some] == block[some].tolist()
    assert block[5] == pytest.approx(1.0)
    assert block.tobytes() == by_hand(mixture, x, None).tobytes()


def sum_in_order(rule, row):
    total = 0.0
    for w, v in zip(rule.weights, row.tolist(), strict=True):
        total += w * v
    return total


def test_a_policy_that_answers_in_its_own_way_is_asked_in_that_way_about_one_person():
    class Half(DeployedPolicy):
        def acceptance(self, features, group=None):
            return np.full(len(features), 0.5)

    one = np.zeros((1, 2))
    assert Half().acceptance_of_one(one, None) == 0.5
    assert Mixture((ACCEPT_ALL,), (1.0,)).acceptance_of_one(one, None) == 1.0


def test_rules_of_one_kind_are_asked_together():
    draw = np.random.default_rng(0)
    compiled = Compiled.of(rules(draw, 60), [1 / 60] * 60)
    kinds = [type(part.hypotheses[0]).__name__ for part in compiled.parts]
    assert len(kinds) == len(set(kinds)) == 8
    together = {k for k, part in zip(kinds, compiled.parts, strict=True) if part.batch is not None}
    assert together == {"Threshold", "LinearRule", "TableRow", "Constant"}


@pytest.mark.parametrize("rows", [1, 2, TILE + 5])
@pytest.mark.parametrize(
    "rule", [Threshold(1, 0.0, 2), LinearRule((1.0, 2.0), 0.0)], ids=lambda r: type(r).__name__
)
def test_another_number_of_columns_is_refused_as_by_the_rule_itself(rule, rows):
    with pytest.raises(InvalidInput, match="2 columns"):
        Mixture((rule, ACCEPT_ALL), (0.5, 0.5)).acceptance(np.zeros((rows, 3)))


def test_rules_of_different_widths_refuse_every_row():
    mixture = Mixture((Threshold(0, 0.0, 1), Threshold(0, 0.0, 2)), (0.5, 0.5))
    for columns in (1, 2):
        with pytest.raises(InvalidInput, match="columns"):
            mixture.acceptance(np.zeros((4, columns)))


def test_a_bad_context_is_named_by_its_own_row():
    x = np.zeros((2 * TILE, 1))
    x[TILE + 3] = 9.0
    mixture = Mixture((TableRow((True, False)), ACCEPT_ALL), (0.5, 0.5))
    with pytest.raises(InvalidInput, match=rf"features\[{TILE + 3}, 0\] is 9"):
        mixture.acceptance(x)
    with pytest.raises(InvalidInput, match=r"features\[0, 0\] is 9"):
        mixture.acceptance([[9.0]])


def test_nobody_gets_no_probability():
    assert Mixture((Threshold(0, 0.0, 1),), (1.0,)).acceptance(np.zeros((0, 1))).shape == (0,)


def test_what_was_compiled_changes_neither_equality_nor_storage():
    mixture = Mixture(
        (Threshold(0, 0.0, 1), ACCEPT_ALL, LinearRule((2.0,), 1.0)), (0.25, 0.25, 0.5)
    )
    twin = Mixture(mixture.hypotheses, mixture.weights)
    x = np.random.default_rng(0).normal(size=(9, 1))
    before = mixture.acceptance(x)
    assert mixture == twin
    assert hash(mixture) == hash(twin)
    assert pickle.loads(pickle.dumps(mixture)).acceptance(x).tobytes() == before.tobytes()
    assert mixture.to_json() == twin.to_json()


# weights over policies


@dataclass(frozen=True)
class AtLeast:
    cut: float
    columns_used = (0,)

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
    with pytest.raises(InvalidInput, match=r"2 policies .* 1 weights"):
        PolicyWeights((LOW, HIGH), (1.0,))


def test_incomplete_weights_cannot_be_smoothed():
    with pytest.raises(InvalidInput, match="completed"):
        PolicyWeights((LOW,), (0.5,)).smoothed(0.1, (ACCEPT_ALL,))


@pytest.mark.parametrize("floor", [0.51, -0.1, float("nan")])
def test_a_floor_above_one_half_leaves_nothing_two_sided(floor):
    with pytest.raises(InvalidInput, match="exploration_floor"):
        PolicyWeights((LOW,), (1.0,)).smoothed(floor, (ACCEPT_ALL, REJECT_ALL))
