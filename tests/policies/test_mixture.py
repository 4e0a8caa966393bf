import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InvalidInput, NotFinite
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, GroupClassifier, Threshold
from evenhand.policies import Mixture
from evenhand.testing import check_policy


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
        "with probability 0.27: reject everybody",
    ]
    assert Mixture((ACCEPT_ALL,), (1.0,)).describe() == "always: accept everybody"


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
