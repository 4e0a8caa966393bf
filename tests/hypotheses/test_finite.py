import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.contracts import Enumeration
from evenhand.errors import InvalidInput, LengthMismatch, NotFinite, NotSerialisable
from evenhand.hypotheses import ACCEPT_ALL, FiniteClass, GroupClassifier, TableRow
from evenhand.words import CostSensitiveProblem


def by_loops(table, contexts, cost):
    return [sum(cost[i] for i, c in enumerate(contexts) if row[c]) for row in table]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 7), st.integers(1, 30))
def test_table_totals_equal_loops(seed, members, contexts, rows):
    draw = np.random.default_rng(seed)
    table, where = draw.random((members, contexts)) < 0.5, draw.integers(0, contexts, rows)
    channels = draw.normal(size=(3, rows))
    bound = FiniteClass.from_table(table).bind(where[:, None].astype(float), None)
    for channel, totals in zip(channels, bound.totals(channels), strict=True):
        np.testing.assert_allclose(totals, by_loops(table, where, channel), atol=1e-12)
    best = bound.best(channels[0])
    assert math.isclose(
        channels[0][best.accepts(where[:, None].astype(float))].sum(),
        min(bound.totals(channels)[0]),
        abs_tol=1e-12,
    )


def test_totals_do_not_depend_on_the_block_size(monkeypatch):
    draw = np.random.default_rng(1)
    table, x = draw.random((50, 6)) < 0.5, draw.integers(0, 6, 40)[:, None].astype(float)
    channels = draw.normal(size=(2, 40))
    whole = FiniteClass.from_table(table).bind(x, None).totals(channels)
    monkeypatch.setattr("evenhand.hypotheses.finite.BLOCK", 7)
    np.testing.assert_allclose(
        FiniteClass.from_table(table).bind(x, None).totals(channels), whole, atol=1e-14
    )


def test_table_and_the_same_rules_as_callables_agree():
    draw = np.random.default_rng(2)
    table, x = draw.random((8, 5)) < 0.5, draw.integers(0, 5, 60)[:, None].astype(float)
    rules = [lambda f, g, row=row: row[f[:, 0].astype(int)] for row in table]
    channels = draw.normal(size=(2, 60))
    left, right = FiniteClass.from_table(table).bind(x, None), FiniteClass(rules).bind(x, None)
    np.testing.assert_allclose(left.totals(channels), right.totals(channels), atol=1e-12)
    assert isinstance(left, Enumeration)
    assert isinstance(right, Enumeration)


def test_csc_oracle_of_the_paper():
    problem = CostSensitiveProblem(
        np.array([[0.0], [1.0]]), None, cost_if_rejected=[1.0, 0.0], cost_if_accepted=[0.0, 1.0]
    )
    best = FiniteClass.from_table(np.array([[0, 1], [1, 0], [1, 1]])).best(problem)
    assert best == TableRow((True, False))


def test_ties_go_to_the_member_listed_first():
    bound = FiniteClass.from_table(np.array([[0, 1], [1, 0]])).bind(np.array([[0.0], [1.0]]), None)
    assert bound.best(np.array([0.1 + 0.2, 0.3])) == TableRow((False, True))
    assert bound.best(np.array([0.3, 0.1 + 0.2])) == TableRow((False, True))


def test_sizes_and_params():
    hypotheses = FiniteClass.from_table(np.eye(4, dtype=bool))
    assert hypotheses.log_size == math.log(4)
    assert hypotheses.log_growth(1, 1) == math.log(2)
    assert hypotheses.exact
    assert not hypotheses.uses_group
    assert len(hypotheses) == 4
    assert "4 hypotheses" in repr(hypotheses)
    assert (
        hypotheses.params["digest"]
        != FiniteClass.from_table(~np.eye(4, dtype=bool)).params["digest"]
    )


def test_the_group_is_hidden_unless_declared():
    seen = []

    def spy(features, group):
        seen.append(group)
        return np.ones(len(features), bool)

    group = np.array(["a", "b"])
    FiniteClass([spy]).bind(np.zeros((2, 1)), group).hypothesis(0).accepts(np.zeros((2, 1)), group)
    assert seen == [None, None]
    FiniteClass([spy], uses_group=True).bind(np.zeros((2, 1)), group)
    assert seen[-1].tolist() == ["a", "b"]


def test_describe_and_json():
    row = TableRow(tuple(c % 2 == 0 for c in range(40)))
    assert row.describe().startswith("accept 20 of 40 contexts: 0, 2, 4")
    assert row.to_json() == {"kind": "table", "contexts": 40, "accepted": list(range(0, 40, 2))}

    def rich(features, group):
        return features[:, 0] > 1

    hypothesis = FiniteClass([rich]).bind(np.array([[2.0]]), None).hypothesis(0)
    assert "rich" in hypothesis.describe()
    with pytest.raises(NotSerialisable, match="from_table"):
        hypothesis.to_json()
    assert (
        FiniteClass([ACCEPT_ALL]).bind(np.array([[2.0]]), None).hypothesis(0).to_json()["kind"]
        == "constant"
    )


@pytest.mark.parametrize("number", [-1.0, 2.0, 0.5])
def test_context_out_of_range_is_named(number):
    hypotheses = FiniteClass.from_table(np.eye(2, dtype=bool))
    with pytest.raises(InvalidInput, match=r"features\[1, 0\].*0 \.\. 1"):
        hypotheses.bind(np.array([[0.0], [number]]), None)
    with pytest.raises(InvalidInput, match=r"features\[0, 0\]"):
        TableRow((True, False)).accepts(np.array([[number]]))


@pytest.mark.parametrize(
    "table", [[True, False], np.zeros((0, 3)), np.zeros((3, 0)), [[1, -1]], [[0.5, 1.0]]]
)
def test_bad_tables_are_refused(table):
    with pytest.raises(InvalidInput):
        FiniteClass.from_table(table)


def test_bad_members_are_refused():
    with pytest.raises(InvalidInput, match="hypotheses"):
        FiniteClass([])
    with pytest.raises(InvalidInput, match="hypothesis"):
        FiniteClass([3])
    for rule in (
        lambda x, g: np.where(x[:, 0] > 0, 1, -1),
        lambda x, g: x > 0,
        lambda x, g: g == 1,
    ):
        with pytest.raises(InvalidInput, match="uses_group"):
            FiniteClass([rule]).bind(np.ones((3, 1)), None)


def test_group_none_names_the_way_out():
    with pytest.raises(InvalidInput, match='group_use="decide"'):
        FiniteClass([GroupClassifier(1)], uses_group=True).bind(np.ones((3, 1)), None)


def test_bad_costs_are_refused():
    bound = FiniteClass.from_table(np.eye(2, dtype=bool)).bind(np.array([[0.0], [1.0]]), None)
    with pytest.raises(LengthMismatch):
        bound.best(np.ones(3))
    with pytest.raises(NotFinite):
        bound.best(np.array([1.0, np.nan]))
    with pytest.raises(LengthMismatch):
        bound.totals(np.ones((2, 3)))
