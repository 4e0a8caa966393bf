"""Laws of all results: no medium crashes, loses a number, or says another verdict."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.media.agree import media_agree
from tests.media.results import random_result, read_csv

from evenhand.errors import InvalidInput
from evenhand.findings import Finding
from evenhand.media import ENDINGS, draw, fragment, frame, save
from evenhand.media.card import summary
from evenhand.result import Bar, Between, Column, Intervals, Result, Table, Verdict, shown


@pytest.mark.parametrize("seed", range(60))
def test_every_number_is_the_same_in_all_media(seed):
    media_agree(random_result(seed))


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_file_is_written_whatever_the_names(tmp_path, ending):
    pytest.importorskip("matplotlib")
    for seed in range(3):
        path = tmp_path / f"{seed}{ending}"
        save(random_result(seed, figures=True), path)
        assert path.stat().st_size > 100


def test_files_of_numbers_hold_them_in_full(tmp_path):
    pandas = pytest.importorskip("pandas")
    sheet = partial(pandas.read_excel, engine="openpyxl")
    result = random_result(4)
    expected = frame(result)
    for ending, read in ((".parquet", pandas.read_parquet), (".xlsx", sheet)):
        save(result, tmp_path / f"x{ending}")
        found = read(tmp_path / f"x{ending}")
        assert list(found.columns) == list(expected.columns)
        for name in expected.columns:
            values = pandas.to_numeric(expected[name], errors="coerce")
            finite = np.isfinite(values)
            again = pandas.to_numeric(found[name], errors="coerce")[finite]
            digits = 1e-14 if ending == ".xlsx" else 0.0  # a workbook has no more of them
            np.testing.assert_allclose(values[finite], again, rtol=digits, err_msg=name)
    save(result, tmp_path / "x.csv")
    rows = read_csv(tmp_path / "x.csv")
    assert len(rows) == len(expected)
    save(result, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text())["format"] == 1


def test_a_result_cannot_claim_what_is_not_shown():
    near = Finding("gap", 0.0, 0.05, 0.1)
    far = Finding("gap", 0.0, 0.2, 0.1)
    made = Result("certificate", "A policy", None, claimed=(near,), verdict=Verdict((near,)))
    for wrong in ({"claimed": (near, far)}, {"verdict": Verdict((far,))}):
        with pytest.raises(InvalidInput):
            replace(made, **wrong)
    other = Verdict((far,), about="The policy as it was handed in")
    assert replace(made, verdict=other).verdict.status == "not shown"
    assert Result("certificate", "A constant", None, claimed=()).claimed == ()


def test_an_unknown_ending_or_table_is_refused_and_nothing_is_written(tmp_path):
    result = random_result(0)
    with pytest.raises(InvalidInput, match="ending"):
        save(result, tmp_path / "x.doc")
    with pytest.raises(InvalidInput, match="no table"):
        result.table("other")
    with pytest.raises(InvalidInput, match="no figure"):
        save(result, tmp_path / "x.svg")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (-0.0, "difference", "+0.000"),
        (-1e-9, "share", "0.000"),
        (float("nan"), "share", "not determined"),
        (float("inf"), "ratio", "\u221e"),
        (12_345.6, "cost", "12,346"),
        (0.41459, "cost", "0.4146"),
        (True, "text", "yes"),
        (np.float64(0.5), "percent", "50.0%"),
        (Between(1.0, float("inf")), "ratio", "1.000 to \u221e"),
    ],
)
def test_one_function_decides_digits_and_signs(value, unit, said):
    assert shown(value, unit) == said


def test_a_group_s_name_ends_no_row_of_a_summary():
    verdict = Verdict((Finding("gap a|b\nc", 0.0, 0.2, 0.1),), 0.05)
    *_, row = [line for line in summary(verdict).splitlines() if line.startswith("|")]
    assert row == "| gap a\\|b c | 0.000 to 0.200 | at most 0.1 | not shown |"


def test_rows_of_another_length_are_refused():
    with pytest.raises(InvalidInput):
        Table("t", "T", (Column("a", "a"),), ((1, 2),))


def test_an_interval_is_drawn_as_long_as_it_is():
    pytest.importorskip("matplotlib").use("Agg")
    drawn = draw(Intervals("Gaps", "gap", (Bar("b", None, -0.05, 0.05),), (-0.05, 0.05)))
    assert drawn.lines[0].get_solid_capstyle() == "butt", "a cap would reach beyond the limit"


def test_a_notebook_shows_a_few_rows_and_says_how_many_more():
    rows = tuple((f"<g{j}>", j) for j in range(100))
    table = Table("t", "T", (Column("a", "a"), Column("n", "n", "count")), rows)
    html = fragment(Result("note", "Many", None, tables=(table,)))
    assert html.count("<tr>") == 1 + 8
    assert "92 more rows" in html
    assert "<g" not in html
