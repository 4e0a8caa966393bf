"""Every member of a class lies in a bracket, on people who were not seen when it was cut."""

import numpy as np
import pytest

import evenhand as eh
from evenhand.hypotheses import brackets as module
from evenhand.hypotheses.brackets import brackets_of


def rules_of(hypotheses, rng, features, groups):
    """Random members of a class: acceptances of the rows."""
    columns = features.shape[1]
    for _ in range(60):
        column = rng.integers(0, columns)
        cut = rng.choice([rng.normal(), rng.choice(features[:, column]), -np.inf, np.inf])
        accepted = features[:, column] >= cut
        yield accepted
        if isinstance(hypotheses, eh.Stumps):
            yield ~accepted


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("hypotheses", [eh.Stumps(), eh.ScoreThresholds(0)])
def test_every_threshold_lies_in_a_bracket(hypotheses, whole):
    """Sums over one channel per row show l and u themselves."""
    rng = np.random.default_rng(3)
    columns = 1 if isinstance(hypotheses, eh.ScoreThresholds) else 3
    seen, new = rng.normal(size=(2, 40, columns))
    if whole:
        seen, new = np.round(seen), np.round(new)
    brackets = brackets_of(hypotheses, seen, None)
    least, most = brackets.sums(new, None, np.eye(40))
    assert least.shape == (40, brackets.size)
    assert (least <= most).all()
    for accepted in rules_of(hypotheses, rng, new, None):
        inside = (least <= accepted[:, None]) & (accepted[:, None] <= most)
        assert inside.all(axis=0).any()
    if whole:
        # two whole numbers have nobody between them: l and u differ at the ends at most
        assert (least == most).all(axis=0).mean() > 0.5


def test_cutting_at_the_new_people_themselves_would_not_cover():
    """The negative control: brackets with u = l hold no rule between two cuts."""
    rng = np.random.default_rng(4)
    seen, new = rng.normal(size=(2, 30, 1))
    least, _ = brackets_of(eh.ScoreThresholds(), seen[:5], None).sums(new, None, np.eye(30))
    between = new[:, 0] >= np.median(new)
    assert not (least == between[:, None]).all(axis=0).any()


def test_a_threshold_for_each_group():
    rng = np.random.default_rng(5)
    seen, new = rng.normal(size=(2, 60, 2))
    group = rng.choice(["a", "b"], 60)
    hypotheses = eh.ScoreThresholds(1, per_group=True)
    brackets = brackets_of(hypotheses, seen, group)
    least, most = brackets.sums(new, group, np.eye(60))
    assert least.shape == (60, brackets.size)
    for _ in range(40):
        cut = np.where(group == "a", rng.normal(), rng.normal())
        accepted = new[:, 1] >= cut
        inside = (least <= accepted[:, None]) & (accepted[:, None] <= most)
        assert inside.all(axis=0).any()
    many = rng.choice(list("abcdefgh"), 60)
    assert brackets_of(hypotheses, seen, many) is None


def test_a_finite_class_is_its_own_brackets_and_a_fitted_one_has_none():
    rng = np.random.default_rng(6)
    table = rng.random((7, 5)) < 0.5
    rules = eh.FiniteClass.from_table(table)
    context = rng.integers(0, 5, (30, 1)).astype(float)
    brackets = brackets_of(rules, context, None)
    least, most = brackets.sums(context, None, np.eye(30))
    assert brackets.size == 7
    assert np.array_equal(least, most)
    assert np.array_equal(least.T == 1, table[:, context[:, 0].astype(int)])
    assert brackets_of(eh.Linear(), context, None) is None


def test_many_values_are_cut_at_quantiles():
    values = np.random.default_rng(7).normal(size=5000)
    assert len(module._cuts(values, 64)) == 64
    assert module._cuts(values, 64)[0] == values.min()
    assert module._cuts(np.array([1.0, 1.0, 2.0]), 64).tolist() == [1.0, 2.0]
