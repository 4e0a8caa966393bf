"""What a page says is what the record says: the same numbers, all groups, nothing invented."""

import numpy as np
import pytest
from tests.report.records import KINDS, record

from evenhand.report.contents import (
    PageTable,
    contents,
)
from evenhand.shown import Shown


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_has_an_answer_tables_and_assumptions(kind):
    found = contents(record(kind))
    assert found.answer
    assert all(sentence.endswith(".") for sentence in found.answer)
    assert found.tables
    assert found.assumptions
    assert found.drawn is not None
    for table in found.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.heads)}
        assert not any("nan" in cell.split() for row in table.rows for cell in row)


class Strange(Shown):
    """A record that the module does not know."""

    assumptions = ("the moon is round",)

    def describe(self):
        return "No rule is better.\n\nSearched 12 rules.\n\nAssumptions\n- the moon is round"

    def _headline(self):
        return "strange"

    def _columns(self):
        return {"rule": ["a", "b"], "low_end": [0.25, None], "people": [1200, 3], "note": ["", ""]}

    def _draw(self, axes):
        axes.plot([0, 1], [0, 1])


def test_any_other_record_gets_a_page_too():
    found = contents(Strange())
    assert found.answer == ("No rule is better.",)
    words, figures = found.tables
    assert words.rows == (("Searched 12 rules.",),)
    assert figures.heads == ("rule", "low end", "people")
    assert figures.rows == (("a", "0.2500", "1,200"), ("b", "", "3"))
    assert found.assumptions == ("the moon is round",)


def test_words_are_flush_left_and_figures_flush_right():
    table = PageTable("", ("who", "what", "people"), (("a1", "within", "12"), ("b", "above", "3")))
    assert table.textual == (False, True, False)


def test_a_picture_is_drawn_without_numbers_that_are_not_finite():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for kind in KINDS:
        drawn = contents(record(kind)).drawn
        figure, axes = pyplot.subplots()
        drawn.panels[0].draw(axes)
        assert np.isfinite(axes.get_xlim()).all()
        pyplot.close(figure)
