"""The published tables, where they are in the cache or can be had: rows, base rates, and that
nothing names the group.
"""

import numpy as np
import pytest

from evenhand.environments.datasets import DATASETS, DataUnavailable, load
from evenhand.environments.datasets.published import _kept_by_propublica
from evenhand.environments.datasets.tables import encoded, with_imputed
from evenhand.errors import InvalidInput

EXPECTED = {  # rows, columns, share of good outcomes, words that may not occur among the columns
    "lending": (1_200, 5, 0.5725, ("group",)),
    "adult": (48_842, 88, 0.2393, ("sex", "Husband", "Wife", "fnlwgt")),
    "compas": (5_278, 9, 0.5296, ("race", "score", "decile")),
    "german": (1_000, 56, 0.7, ("age", "personal_status")),
    "taiwan": (30_000, 31, 0.7788, ("SEX", "ID")),
    "gmsc": (150_000, 11, 0.9332, ("age",)),
    "loanapp": (
        1_985,
        27,
        0.8781,
        ("white", "black", "hispan", "male", "approve", "reject", "action"),
    ),
    "recid": (1_445, 13, 0.618, ("black", "durat", "cens", "follow")),
}


def had(name):
    try:
        return load(name)
    except DataUnavailable as error:
        pytest.skip(str(error))


def test_all_of_them_are_expected():
    assert set(EXPECTED) == set(DATASETS)


@pytest.mark.parametrize("name", EXPECTED)
def test_rows_base_rates_and_columns(name):
    table, (rows, columns, good, forbidden) = had(name), EXPECTED[name]
    assert table.features.shape == (rows, columns) == (len(table), len(table.names))
    assert (table.label == 1).mean() == pytest.approx(good, abs=1e-3)
    words = [
        word
        for column in table.names
        for word in column.replace("(", " ").replace("=", " ").split()
    ]
    assert not set(words) & set(forbidden)
    assert np.isfinite(table.features).all()
    assert sum(figures.people for figures in table.figures) == rows
    assert len(table.figures) == 2
    assert min(figures.good_rate for figures in table.figures) > 0


@pytest.mark.parametrize("name", DATASETS)
def test_every_entry_says_what_one_must_know(name):
    entry = DATASETS[name]
    for text in (
        entry.title,
        entry.decision,
        entry.good,
        entry.groups,
        entry.licence,
        entry.caveat,
    ):
        assert text
    assert all(len(source.sha256) == 64 for source in entry.files)


def test_other_groupings_and_unknown_ones():
    assert {figures.group for figures in had("adult").figures} == {"Female", "Male"}
    assert len(DATASETS["adult"].load("race").figures) == 5
    with pytest.raises(InvalidInput, match="no other grouping 'shoe size'"):
        load("adult", "shoe size")
    with pytest.raises(InvalidInput, match=r"no table 'loans'.*lending, adult"):
        load("loans")


def test_a_table_is_a_population_with_exact_truth():
    from evenhand import FalsePositiveRate, Mixture, Stumps
    from evenhand.hypotheses import ACCEPT_ALL

    table = load("lending")
    world = table.population(Stumps())
    everybody = Mixture((ACCEPT_ALL,), (1.0,))
    assert world.loss(everybody) == pytest.approx((table.label == -1).mean())
    assert world.gap(everybody, FalsePositiveRate()) == pytest.approx(0.0, abs=1e-12)


def test_long_tails_become_logarithms_and_it_is_said():
    raw, logged = DATASETS["lending"].read(None), DATASETS["lending"].read(None).logged(["income"])
    np.testing.assert_allclose(logged.features[:, 0], np.log1p(raw.features[:, 0]))
    assert logged.names[0] == "log(1 + income)"
    assert logged.notes == ("income enter as log(1 + x)",)
    assert raw.logged(()) is raw


def test_missing_values_become_the_median_and_are_marked():
    rows, flags = with_imputed([{"x": "1"}, {"x": "NA"}, {"x": "5"}], ["x"])
    assert flags == ("x missing",)
    assert [(row["x"], row["x missing"]) for row in rows] == [("1", "0"), ("3", "1"), ("5", "0")]


def test_categories_become_columns_of_their_own():
    rows = [{"x": "1", "c": "red"}, {"x": "2", "c": "blue"}]
    table = encoded("toy", rows, numbers=["x"], kinds=["c"], group=["a", "b"], good=[True, False])
    assert table.names == ("x", "c=blue", "c=red")
    np.testing.assert_array_equal(table.features, [[1, 0, 1], [2, 1, 0]])
    np.testing.assert_array_equal(table.label, [1, -1])


@pytest.mark.parametrize(
    ("days", "degree", "kept"),
    [("0", "F", True), ("-31", "F", False), ("", "F", False), ("3", "O", False)],
)
def test_propublicas_filter(days, degree, kept):
    row = {
        "days_b_screening_arrest": days,
        "is_recid": "0",
        "c_charge_degree": degree,
        "score_text": "Low",
    }
    assert _kept_by_propublica(row) is kept
