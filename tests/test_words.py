from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from evenhand.errors import InvalidInput, LengthMismatch, NotFinite
from evenhand.words import (
    CostSensitiveProblem,
    Decision,
    Decisions,
    LabelledSample,
    OneDecision,
    Prices,
    as_features,
)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_features_and_costs_must_be_finite_and_the_place_is_named(bad):
    with pytest.raises(NotFinite, match=r"\(1, 0\)"):
        LabelledSample(np.array([[0.0], [bad]]), ["a", "b"], [1, 1])
    with pytest.raises(NotFinite, match="cost_if_accepted"):
        CostSensitiveProblem(np.zeros((2, 1)), None, np.zeros(2), np.array([0.0, bad]))
    with pytest.raises(InvalidInput, match="price"):
        Prices(false_accept=bad)


@pytest.mark.parametrize("values", [[np.inf, -np.inf], [1e308, 1e308, np.nan], [np.inf, 1.0]])
def test_what_adds_up_to_no_number_is_looked_at_one_by_one(values):
    """Few numbers are checked by their sum, which is finite only if each of them is."""
    with pytest.raises(NotFinite):
        as_features([values])
    assert as_features([[1e308, 1e308, -1e308]]).shape == (
        1,
        3,
    )  # the sum overflows, none of the numbers does


class TestOneDecision:
    def both(self):
        one = OneDecision(True, 0.25, 7, 2, False)
        block = Decisions(np.array([True]), np.array([0.25]), 7, np.array([2]), np.array([False]))
        return one, block

    @pytest.mark.parametrize(
        "name", ["accept", "propensity", "epoch", "audit", "round", "first_round"]
    )
    def test_its_columns_are_those_of_a_block_of_one(self, name):
        one, block = self.both()
        mine, theirs = np.asarray(getattr(one, name)), np.asarray(getattr(block, name))
        assert (mine.dtype, mine.tolist()) == (theirs.dtype, theirs.tolist())

    def test_it_is_a_sequence_of_one(self):
        one, block = self.both()
        assert len(one) == 1
        assert list(one) == [one[0], *()] == [one[-1]] == list(one[:]) == list(block)
        assert isinstance(one, Decisions)
        for place in (1, -2):
            with pytest.raises(IndexError):
                one[place]

    def test_it_has_nothing_else(self):
        one, _ = self.both()
        with pytest.raises(AttributeError, match="wealth"):
            one.wealth  # noqa: B018
        with pytest.raises(FrozenInstanceError):
            one.accept = np.array([False])


def test_lengths_that_differ_are_named():
    with pytest.raises(LengthMismatch, match=r"group .*\(3,\)"):
        LabelledSample(np.zeros((2, 1)), np.array([1, 2, 3]), [1, 1])
    with pytest.raises(LengthMismatch, match="label"):
        LabelledSample(np.zeros((2, 1)), [1, -1], [1])
    with pytest.raises(LengthMismatch, match="cost_if_rejected"):
        CostSensitiveProblem(np.zeros((2, 1)), None, np.zeros(3), np.zeros(2))
    with pytest.raises(LengthMismatch, match="count"):
        LabelledSample(np.zeros((2, 1)), [1, -1], [1, 1], np.ones(3))


def test_float_labels_are_read():
    assert LabelledSample(np.zeros((2, 1)), [1, -1], [1.0, -1.0]).label.dtype == np.int64


@pytest.mark.parametrize(
    "features", [np.zeros(3), 1.0, np.zeros((1, 2, 3)), [["a"]], [[1, 2], [3]]]
)
def test_features_of_another_shape_or_kind(features):
    with pytest.raises(InvalidInput):
        as_features(features)


def test_empty_problems_are_refused():
    with pytest.raises(InvalidInput, match="rows"):
        CostSensitiveProblem(np.zeros((0, 1)), None, [], [])
    with pytest.raises(InvalidInput, match="rows"):
        LabelledSample(np.zeros((0, 1)), [], [])


def test_cost_of_a_problem_is_the_sum_by_loops():
    draw = np.random.default_rng(0)
    reject, accept, p = draw.normal(size=(3, 20))
    problem = CostSensitiveProblem(np.zeros((20, 1)), None, reject, accept)
    assert problem.cost(p) == pytest.approx(
        sum(r * (1 - q) + a * q for r, a, q in zip(reject, accept, p, strict=True))
    )
    assert problem.cost(np.zeros(20)) == pytest.approx(problem.rejection_total)
    assert len(problem) == 20


def test_one_number_stands_for_all_rows():
    assert (
        CostSensitiveProblem(np.zeros((3, 1)), None, 0.5, 1.0).acceptance_cost.tolist() == [0.5] * 3
    )


def test_prices():
    label = np.array([1, -1])
    prices = Prices(false_accept=5.0, false_reject=2.0)
    assert prices.acceptance_cost(label).tolist() == [-2.0, 5.0]
    problem = prices.problem(np.zeros((2, 1)), None, label)
    assert problem.cost(np.array([1.0, 0.0])) == 0.0
    assert problem.cost(np.array([0.0, 1.0])) == 7.0
    assert Prices(false_accept=np.array([1.0, 3.0])).acceptance_cost(label).tolist() == [-1.0, 3.0]
    with pytest.raises(InvalidInput, match="-1"):
        Prices(false_reject=-1.0)


@pytest.mark.parametrize("price", ["2", "dear", None, True, [1.0, "a"], [1.0, None], float("nan")])
def test_prices_are_numbers(price):
    with pytest.raises(InvalidInput, match="false_accept"):
        Prices(price)


def test_what_the_caller_does_with_his_prices_later_is_not_seen():
    mine = np.array([1.0, 2.0])
    prices = Prices(mine)
    mine[0] = 9.0
    assert prices.false_accept.tolist() == [1.0, 2.0]


def test_sample_groups_are_sorted_and_ignore_rows_that_stand_for_nobody():
    sample = LabelledSample(np.zeros((3, 1)), ["b", "a", "c"], [1, 1, -1], [1.0, 2.0, 0.0])
    assert sample.groups == ("a", "b")
    mixed = LabelledSample(np.zeros((2, 1)), np.array(["b", 1], dtype=object), [1, 1])
    assert mixed.groups == (1, "b")
    assert mixed.weight.tolist() == [1.0, 1.0]
    with pytest.raises(InvalidInput, match="0"):
        LabelledSample(np.zeros((1, 1)), ["a"], [1], [-1.0])


def test_decisions_are_a_sequence_of_decision():
    block = Decisions(
        np.array([True, False]), np.array([0.7, 0.6]), 5, np.array([1, 1]), np.zeros(2, bool)
    )
    assert list(block) == [Decision(True, 0.7, 5, 1), Decision(False, 0.6, 6, 1)]
    assert block[-1].round == 6
    assert block[-1].acceptance == pytest.approx(0.4)
    assert block[:1] == (block[0],)
    assert block.round.tolist() == [5, 6]
    with pytest.raises(IndexError):
        block[2]


def test_the_error_about_one_flat_person_names_both_ways_out():
    with pytest.raises(InvalidInput, match=r"reshape\(1, -1\).*reshape\(-1, 1\)"):
        as_features([1.0, 2.0])
