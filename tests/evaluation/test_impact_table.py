"""Impact tables: figures by hand and in fractions, coverage by enumeration, and refusals."""

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import InvalidInput
from evenhand.evaluation import gate
from evenhand.evaluation.impact_table import impact


def by_hand(selected, group):
    """Rates and ratios in fractions, counted person by person."""
    people, chosen = {}, {}
    for yes, name in zip(selected, group, strict=True):
        people[name] = people.get(name, 0) + 1
        chosen[name] = chosen.get(name, 0) + int(yes)
    rates = {name: Fraction(chosen[name], people[name]) for name in people}
    best = max(rates.values())
    return {name: (rate, rate / best if best else None) for name, rate in rates.items()}


@pytest.mark.parametrize("seed", range(6))
def test_figures_equal_those_by_hand(seed):
    rng = np.random.default_rng(seed)
    people = int(rng.integers(10, 60))
    group = rng.choice(["a", "b", "c"], people)
    selected = rng.random(people) < 0.4
    table = impact(selected, group, smallest_share=0.0)
    truth = by_hand(selected, group)
    for row in table.rows:
        rate, ratio = truth[row.group]
        assert row.rate == float(rate)
        assert row.ratio == (None if ratio is None else float(ratio))
        if ratio is None:
            continue
        low, high = row.ratio_interval
        assert low <= row.ratio <= high + 1e-12
        # one selection fewer does not reach four fifths, and that many do
        k = row.more_selections
        best = max(one for one, _ in truth.values())
        reached = [Fraction(row.selected + more, row.people) / best for more in (k - 1, k)]
        assert reached[1] >= Fraction(4, 5)
        assert k == 0 or reached[0] < Fraction(4, 5)


def test_intersections_unknown_people_and_the_two_per_cent_rule():
    sex = ["f"] * 100 + ["m"] * 100 + [None] * 3
    race = (["x"] * 50 + ["y"] * 48 + ["z"] * 2) * 2 + ["x"] * 3
    selected = ([1, 0] * 50) + [1] * 100 + [1, 1, 0]
    table = eh.impact(selected, {"sex": sex, "race": race})
    rows = {(row.grouping, row.group): row for row in table.rows}
    assert table.unknown == {"sex": 3, "race": 0, "sex x race": 3}
    assert rows["sex", "f"].ratio == 0.5
    assert rows["sex", "f"].status == "above"
    assert rows["sex", "f"].standard_deviations < -8
    assert rows["race", "z"].excluded
    assert rows["race", "z"].ratio is None
    assert not impact(selected, {"race": race}, smallest_share=0.0).rows[2].excluded
    assert rows["sex x race", "f, x"].people == 50
    assert "3 people of unknown sex" in table.result().table("categories").note
    assert len(table.to_frame()) == len(table.rows)
    assert table.to_json()["rows"][0]["group"] == "f"
    assert table.plot().get_xlabel()


@pytest.mark.parametrize(
    ("group", "share"), [([None] * 4, 0.02), (["a", "a", "b", "b"], 0.9), ([""] * 4, 0.0)]
)
def test_a_grouping_in_which_nobody_takes_part_raises_an_error(group, share):
    with pytest.raises(InvalidInput, match="no category takes part"):
        impact([1, 0, 1, 0], group, smallest_share=share)


def test_scores_are_cut_at_their_median():
    score = np.arange(100.0)
    table = impact(score, ["a"] * 50 + ["b"] * 50, scores=True)
    assert table.cutoff == 49.5
    assert [row.rate for row in table.rows] == [0.0, 1.0]
    assert "median" in table.notes[0]
    assert impact(score, ["a"] * 50 + ["b"] * 50, scores=True, cutoff=89.0).selected == 10


def test_the_ratio_to_the_largest_rate_is_covered():
    """Three categories of 4, 3 and 3 people, all outcomes enumerated: whichever rate is largest on
    these people, the population's ratios p_j / max p are covered with probability 1 - delta.
    """
    sizes = (4, 3, 3)
    group = [name for name, n in zip("abc", sizes, strict=True) for _ in range(n)]
    for chances in [(0.5, 0.5, 0.5), (0.9, 0.3, 0.6)]:
        truth = [p / max(chances) for p in chances]
        missed = 0.0
        for counts in itertools.product(*(range(n + 1) for n in sizes)):
            chance = 1.0
            for k, n, p in zip(counts, sizes, chances, strict=True):
                chance *= comb(n, k) * p**k * (1 - p) ** (n - k)
            if not any(counts):
                continue
            selected = [i < k for k, n in zip(counts, sizes, strict=True) for i in range(n)]
            table = impact(selected, group, smallest_share=0.0, delta=0.2)
            missed += chance * any(
                not row.ratio_interval[0] - 1e-12 <= true <= row.ratio_interval[1] + 1e-12
                for row, true in zip(table.rows, truth, strict=True)
            )
        assert missed <= 0.2


def test_a_named_reference_asks_for_fewer_ratios():
    rng = np.random.default_rng(3)
    group = rng.choice(["a", "b", "c", "d"], 400)
    selected = rng.random(400) < 0.5

    def width(**asked):
        (row,) = (row for row in impact(selected, group, **asked).rows if row.group == "b")
        return row.ratio_interval[1] - row.ratio_interval[0]

    narrow = impact(selected, group, reference="a")
    assert narrow.rows[0].ratio == 1.0
    assert width(reference="a") > 0
    assert gate(narrow, least_ratio=0.1).status == "within"
    assert gate(narrow, least_ratio=0.999).status != "within"


def test_nobody_selected_has_no_ratio():
    table = impact([0, 0, 0, 0], list("aabb"))
    assert [row.ratio for row in table.rows] == [None, None]
    assert gate(table, least_ratio=0.8).status == "not shown"


@pytest.mark.parametrize(
    ("given", "settings", "message"),
    [
        ([1, 0], {}, "group has shape"),
        ([1, 0, 0.5], {}, "cut-off"),
        ([1, 0, float("nan")], {}, "missing"),
        ([1, 0, 1], {"delta": 1.0}, "delta"),
        ([1, 0, 1], {"least_ratio": 0.0}, "least_ratio"),
        ([1, 0, 1], {"smallest_share": 1.0}, "smallest_share"),
        ([1, 0, 1], {"reference": "z"}, "category"),
    ],
)
def test_what_is_no_selection_raises_an_error(given, settings, message):
    with pytest.raises(InvalidInput, match=message):
        impact(given, ["a", "b", "a"], **settings)


def test_differences_are_not_in_the_table():
    with pytest.raises(InvalidInput, match="differences"):
        gate(impact([1, 0], ["a", "b"]), limit=0.1)
