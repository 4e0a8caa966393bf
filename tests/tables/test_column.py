"""One column: how its numbers are written, read in one way or in doubt, never read wrongly."""

import math
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InvalidInput
from evenhand.tables.column import (
    Ambiguity,
    Notation,
    TableColumn,
    days_of,
    find_notation,
    same_value,
)

READ = [
    (["$51,000", "$800"], [51000, 800]),
    (["1.234,50", "3,5"], [1234.5, 3.5]),
    (["1,234,567"], [1234567]),
    (["1.234.567"], [1234567]),
    (["12 000", "1 234,5"], [12000, 1234.5]),
    (["1'234.50"], [1234.5]),
    (["(300)", "-5", "\u22127"], [-300, -5, -7]),
    (["45%", "5 %"], [0.45, 0.05]),
    (["1,5 %"], [0.015]),
    (["€51,000.5"], [51000.5]),
    (["51,000 USD"], [51000]),
    (["0,123"], [0.123]),
    (["51.000"], [51]),
    (["Y", " n", "Yes", "FALSE"], [1, 0, 1, 0]),
    (["2021-03-04", "2021-03-05T12:00:00Z"], [18690, 18691.5]),
    (["2021-3-4"], [18690]),
    (["4.3.2021"], [18690]),
    (["13/4/2021", "1/2/2021"], [18730, 18659]),
    (["4/13/2021"], [18730]),
    (["4/13/2021 6:00 PM"], [18730.75]),
]


@pytest.mark.parametrize(("texts", "values"), READ, ids=lambda given: str(given[0]))
def test_read(texts, values):
    found = find_notation(texts)
    assert isinstance(found, Notation)
    assert [found.value(text) for text in texts] == pytest.approx(values, rel=1e-12)
    assert Notation.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("texts", "reason", "argument"),
    [
        (["51,000", "48,500"], "may be 51000 or 51", "decimal"),
        (["€ 1.200"], "may be 1200 or 1.2", "decimal"),
        (["45%", "5"], "percent sign", None),
        (["$5", "€6"], "amounts are in", None),
        (["3,5", "2.25"], "some decimals", None),
        (["3/4/2021"], "may be 3 April or 4 March", "dates"),
        (["13/4/21"], "century", "dates"),
        (["Mar 4, 2021"], "'Mar 4, 2021' is a date with the month in words", None),
        (["4 March 2021", "4-Mar-2021 6:00 PM"], "write 2021-03-04", None),
        (["3/4/2021", "3 Apr. 2021"], "month in words", None),
    ],
)
def test_ambiguous(texts, reason, argument):
    found = find_notation(texts)
    assert isinstance(found, Ambiguity)
    assert reason in found.text
    assert found.argument == argument


@pytest.mark.parametrize(
    "texts",
    [
        ["red", "7"],
        ["192.168.1.1"],
        ["555-1234"],
        ["30.02.2021"],
        ["31/31/2021"],
        ["1,23,4"],
        ["f"],
        ["12 34"],
        ["$"],
        ["5%5"],
        ["(5"],
        ["2021-13-01"],
        ["4 March 2021", "soon"],
        ["March 2021"],
        [],
    ],
)
def test_a_text_stays_a_text(texts):
    assert find_notation(texts) is None


def test_what_options_settle():
    assert find_notation(["51,000"], decimal=",").value("51,000") == 51
    assert find_notation(["51,000"], decimal=".").value("51,000") == 51000
    assert find_notation(["51.000"], guess=",").value("51.000") == 51000
    assert find_notation(["3/4/2021"], dates="day-first").value("3/4/2021") == 18720
    assert find_notation(["3/4/2021"], dates="month-first").value("3/4/2021") == 18690
    assert find_notation(["13/4/70"], dates="day-first").value("13/4/70") == 102
    assert find_notation(["2021-03-04"], dates="text") is None
    assert find_notation(["4 March 2021"], dates="text") is None
    assert find_notation(["13/4/2021"], dates="month-first").argument == "dates"
    assert find_notation(["3.25"], decimal=",").argument == "decimal"


@given(st.floats(-1e9, 1e9), st.sampled_from([".", ","]))
def test_a_grouped_number_reads_back(value, decimal):
    shown = f"{value:,.2f}"
    if decimal == ",":
        shown = shown.translate(str.maketrans(",.", ".,"))
    found = find_notation([shown])
    assert isinstance(found, Notation)
    assert found.value(shown) == pytest.approx(round(value, 2), abs=1e-6)


@given(st.dates(date(1000, 1, 1), date(9999, 12, 31)), st.sampled_from(["%Y-%m-%d", "%d.%m.%Y"]))
def test_a_date_reads_back(day, form):
    shown = day.strftime(form).rjust(10, "0")
    found = find_notation([shown])
    assert isinstance(found, Notation)
    assert found.value(shown) == days_of(day) == (day - date(1970, 1, 1)).days


def test_times_of_other_zones():
    east = timezone(timedelta(hours=6))
    assert days_of(datetime(1970, 1, 2, tzinfo=east)) == 0.75
    assert math.isclose(Notation("date").value("1970-01-02T00:00:00+06:00"), 0.75)


def test_a_notation_that_is_none():
    with pytest.raises(InvalidInput, match="'colour'"):
        Notation.from_json({"kind": "colour"})


def test_a_column_of_numbers_may_have_gaps_and_one_text_makes_it_a_category():
    column = TableColumn(("1", "", "2.5"))
    assert column.kind == "number"
    np.testing.assert_array_equal(column.numbers, [1, np.nan, 2.5])
    assert TableColumn(("1", "two")).kind == "category"
    assert TableColumn((True, False)).kind == "category"
    assert TableColumn(np.array([1, 2])).texts == ("1", "2")


def test_values_are_the_same_as_text_or_as_number():
    assert same_value("1", "1.0")
    assert not same_value("yes", "Yes")
