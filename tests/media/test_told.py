"""What each kind of record says: the same numbers in all media, and what matters first."""

import pytest
from tests.media.agree import media_agree
from tests.media.records import TOLD, record

from evenhand.evaluation.measured import MOST_COMPARED


@pytest.mark.parametrize("kind", TOLD)
def test_every_record_has_an_answer_tables_and_assumptions(kind):
    told = record(kind).result()
    assert told.answer
    assert all(sentence.endswith(".") for sentence in told.answer)
    assert told.tables
    assert told.assumptions
    assert told.figures
    media_agree(told)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", TOLD)
def test_a_page_with_its_pictures_says_the_same(kind):
    pytest.importorskip("matplotlib")
    media_agree(record(kind).result(), pictures=True)


def test_many_pairs_are_cut_to_those_that_are_shown_to_differ_most_and_it_is_said():
    measured = record("measure, crossed")
    told = measured.result()
    table = told.table("pairs")
    (rate,) = (one for one in measured.rates if one.grouping == "sex x race" and one.symbol == "SR")
    rows = [row for row in table.rows if row[:2] == (rate.name, rate.grouping)]
    assert len(rows) == len(rate.pairs) > MOST_COMPARED == table.most
    least = [max(0.0, row[5].low, -row[5].high) for row in rows]
    assert least == sorted(least, reverse=True)
    assert "more rows" in measured.describe()


def test_missing_outcomes_are_said_and_not_hidden():
    measured = record("measure, crossed")
    assert any("outcomes are missing" in text for text in measured.result().beware)
    assert "not determined" in measured.describe()


def test_a_certification_says_which_policy_is_certified():
    brought = record("certify").result()
    assert brought.verdict.about
    assert brought.answer[0].startswith("The policy as it was handed in is not certified.")
    assert any("at most 0.05" in one for one in brought.answer[1:])
    fitted = record("certify, fitted").result()
    assert not fitted.verdict.about
    assert any(one.startswith("Certified with probability at least 0.95") for one in fitted.answer)


def test_who_watches_is_told_what_holds_at_all_looks():
    told = record("watch").result()
    words = "at all looks at the growing table and for groups that turn up later"
    assert any(words in text for text in told.answer)
    assert any("no row changes" in text for text in told.assumptions)


def test_an_impact_table_keeps_its_form():
    table = record("impact")
    told = table.result()
    rows = {(row[0], row[1]): row for row in told.table("categories").rows}
    assert rows["sex", "rare"][7] == "too few"
    assert "3 people of unknown sex" in told.table("categories").note
    (one,) = (row for row in table.rows if row.grouping == "sex" and row.group == "a")
    assert rows["sex", "a"][2:6] == (one.people, one.selected, one.rate, one.ratio)


def test_an_alternative_that_is_not_shown_is_not_called_worse():
    found = record("alternatives")
    assert found.best is None  # 600 people are too few
    told = found.result()
    compared = told.table("rules")
    assert [row[-1] for row in compared.rows] == [None, *["not shown"] * len(found.alternatives)]
    better_here = [
        number
        for number, one in enumerate(found.alternatives, 1)
        if one.gap < found.incumbent_gap and one.cost_difference <= 0
    ]
    seen = [text for text in told.answer if "is seen for alternative" in text]
    assert bool(seen) == bool(better_here)
