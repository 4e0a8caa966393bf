import numpy as np
import pytest

from evenhand.errors import InvalidInput, MissingColumn
from evenhand.tables import Frame, TableColumn, same_value


def frame(**columns):
    cells = {name: TableColumn(tuple(values)) for name, values in columns.items()}
    return Frame("toy.csv", cells, range(2, 2 + len(next(iter(columns.values())))))


def test_missing_columns_list_those_there_are():
    with pytest.raises(MissingColumn, match=r"no column 'c', 'd'; it has: a, b\."):
        frame(a="1", b="2").require(["a", "c", "d"])


def test_a_column_of_numbers_may_have_gaps_and_one_text_makes_it_a_category():
    column = TableColumn(("1", "", "2.5"))
    assert column.kind == "number"
    np.testing.assert_array_equal(column.numbers, [1, np.nan, 2.5])
    assert TableColumn(("1", "two")).kind == "category"
    assert TableColumn((True, False)).kind == "category"
    assert TableColumn(np.array([1, 2])).texts == ("1", "2")


def test_rows_are_kept_with_their_lines():
    kept = frame(a="123", b="xyz").where(np.array([True, False, True]))
    assert kept["b"].texts == ("x", "z")
    assert kept.lines == (2, 4)
    whole = frame(a="12")
    assert whole.where(np.array([True, True])) is whole


@pytest.mark.parametrize("cells", [("1", "inf"), ("1", ""), ("1", "two")])
def test_finite_numbers_are_required_with_row_and_line(cells):
    with pytest.raises(InvalidInput, match=r"in row 2 \(line 3\); it must be a finite number"):
        frame(a=cells).finite("a")


def test_values_are_the_same_as_text_or_as_number():
    assert same_value("1", "1.0")
    assert not same_value("yes", "Yes")
