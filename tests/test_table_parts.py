"""A table cut in two: the draw looks at nothing, and counts belong to their groups."""

import numpy as np
import pytest

import evenhand as eh
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate
from evenhand.table_parts import (
    AcceptanceCosts,
    TablePart,
    counted_rows,
    decision_counts,
    gap_names,
    gaps_of,
)
from evenhand.table_parts import split_table as split


def test_the_coin_of_the_split_is_not_the_stream_of_the_data():
    """A table simulated with default_rng(0) was split by its own first column."""
    feature = np.random.default_rng(0).random(2000)
    first = split(2000, 1 / 3, 0)
    assert first.sum() == 666
    assert abs(feature[first].mean() - feature[~first].mean()) < 0.06


def test_costs_and_counts_are_those_of_a_loop_over_people():
    rng = np.random.default_rng(1)
    people = eh.LabelledSample(
        rng.random((60, 2)), rng.choice(["a", "b", "c"], 60), rng.choice([-1, 1], 60)
    )
    costs = AcceptanceCosts.of(eh.Prices(2.0, 3.0), people)
    rows = rng.integers(0, 60, 40)
    part = TablePart(people, rows, costs, "certify_only")
    accepted = rng.random(40) < 0.5
    total = 0.0
    for i, yes in zip(rows, accepted, strict=True):
        bad = people.label[i] == -1
        total += 2.0 * (bad and yes) + 3.0 * (not bad and not yes)
    assert part.cost(accepted) == total / 40
    gaps = gaps_of([FalsePositiveRate(), FalseNegativeRate()], people.groups)
    assert gap_names(gaps)[:2] == ("FPR b minus a", "FPR c minus a")
    assert gap_names(gaps)[-1] == "FNR c minus b"
    counts = decision_counts(gaps, accepted, part)
    for (rate, b, a), found in zip(gaps, counts, strict=True):
        label = -1 if rate.symbol == "FPR" else 1
        expected = []
        for group in (b, a):
            mine = [
                yes == (label == -1)
                for i, yes in zip(rows, accepted, strict=True)
                if people.group[i] == group and people.label[i] == label
            ]
            expected += [sum(mine), len(mine)]
        assert list(found) == expected


def test_counted_rows_are_people():
    people = eh.LabelledSample([[1.0], [2.0]], ["a", "b"], [-1, 1], [2, 3])
    assert counted_rows(people, "").tolist() == [0, 0, 1, 1, 1]
    with pytest.raises(eh.InvalidInput, match="people is a Table") as refused:
        counted_rows(eh.read_table("lending").encoded(), "")
    assert ".sample" in refused.value.hint
