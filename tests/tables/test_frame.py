import numpy as np
import pytest

from evenhand.errors import InvalidInput, MissingColumn
from evenhand.tables import Frame, LabelledFrame, TableColumn


def frame(**columns):
    cells = {name: TableColumn(tuple(values)) for name, values in columns.items()}
    return Frame("toy.csv", cells, range(2, 2 + len(next(iter(columns.values())))))


def test_missing_columns_list_those_there_are():
    with pytest.raises(MissingColumn, match="'c', 'd'"):
        frame(a="1", b="2").require(["a", "c", "d"])


def test_rows_are_kept_with_their_lines():
    kept = frame(a="123", b="xyz").where(np.array([True, False, True]))
    assert kept["b"].texts == ("x", "z")
    assert kept.lines == (2, 4)
    whole = frame(a="12")
    assert whole.where(np.array([True, True])) is whole


@pytest.mark.parametrize("cells", [("1", "inf"), ("1", ""), ("1", "two")])
def test_finite_numbers_are_required_with_row_and_line(cells):
    with pytest.raises(InvalidInput, match=r"row 2 \(line 3\)"):
        frame(a=cells).finite("a")


def people(encode=True, **columns):
    rows = len(next(iter(columns.values())))
    cells = {name: TableColumn(tuple(values)) for name, values in columns.items()}
    return LabelledFrame(
        "toy",
        Frame("toy.csv", cells, range(2, rows + 2)),
        tuple(columns),
        np.resize([1, -1], rows),
        np.resize(["a", "b"], rows),
        encode=encode,
    )


def test_many_people_are_shown_in_one_short_line():
    wide = people(**{f"x{i}": "12" * 600 for i in range(9)})
    assert repr(wide) == (
        "<LabelledFrame 'toy': 1,200 people; features: x0, x1, x2, x3, x4, x5, ...; groups: a, b>"
    )


def test_two_values_need_one_column():
    table = people(c=("red", "blue", "red"), x="123").encoded()
    assert table.names == ("c=red", "x")
    assert table.features.tolist() == [[1, 1], [0, 2], [1, 3]]
    assert table.encoded == {"c": ("c=red",)}
    assert [(note.kind, note.column) for note in table.notes] == [("encoded", "c")]


def test_text_is_refused_unless_it_is_to_be_encoded():
    with pytest.raises(InvalidInput, match=r"'c'.*'red'") as caught:
        people(encode=False, c=("1", "red")).encoded()
    assert (caught.value.argument, caught.value.column) == ("encode", "c")


def test_identifiers_are_not_encoded():
    with pytest.raises(InvalidInput, match="51 people") as caught:
        people(c=[f"name{i}" for i in range(51)]).encoded()
    assert caught.value.remedies == ("id", "leave_out")


def test_texts_with_too_many_values_are_not_encoded():
    with pytest.raises(InvalidInput, match=r"51.*50") as caught:
        people(c=[f"name{i % 51}" for i in range(60)]).encoded()
    assert caught.value.remedies == ("leave_out",)


def test_figures_and_subsets():
    table = people(x="1234").encoded()
    assert [(one.group, one.people, one.good_rate) for one in table.figures] == [
        ("a", 2, 1.0),
        ("b", 2, 0.0),
    ]
    assert len(table.subset(3)) == 3
    assert len(table.subset(9)) == 4


def test_a_column_of_numbers_with_a_typing_error_is_refused_by_its_line():
    ages = [str(18 + i % 40) for i in range(300)]
    with pytest.raises(InvalidInput, match=r"'age'.*'forty'"):
        people(age=(*ages[:5], "forty", *ages[6:])).encoded()


@pytest.mark.parametrize(
    "cells",
    [
        [str(i % 12) for i in range(299)] + ["K"],  # grades: few numbers
        [str(i % 40) for i in range(280)] + ["V57"] * 20,  # codes: the word is not rare
    ],
)
def test_codes_of_numbers_and_words_are_categories(cells):
    assert len(people(code=tuple(cells)).encoded().names) == len(set(cells))


def test_a_frame_shows_its_columns_with_kinds_and_first_values():
    columns = {f"x{i}": TableColumn(tuple(map(str, range(1000)))) for i in range(10)}
    frame = Frame("loans.csv", {"city": TableColumn(("Oslo", None) * 500), **columns}, range(1000))
    lines = repr(frame).splitlines()
    assert lines[0] == "<Frame 'loans.csv': 1,000 rows, 11 columns>"
    assert lines[1] == "  city (category): Oslo, missing, Oslo, missing, Oslo, ..."
    assert lines[2] == "  x0 (number): 0, 1, 2, 3, 4, ..."
    assert lines[-1] == "  ... and 3 more"
    assert len(lines) == 10
    cells = TableColumn(np.array([b"1.5", b""], dtype="S3"))
    assert repr(cells) == "<TableColumn number, 2 cells: 1.5, missing>"


def test_a_table_shows_its_people_and_its_columns():
    table = people(c=("red", "blue", "red"), x="123").encoded()
    assert repr(table).splitlines() == [
        "<Table 'toy': 3 people, 2 with the good outcome; groups: a 2, b 1>",
        "  c=red (0 or 1): 1.0, 0.0, 1.0",
        "  x (number): 1.0, 2.0, 3.0",
    ]
    assert repr(table.rows(np.zeros(3, bool))).startswith("<Table 'toy': 0 people, 0 with")
