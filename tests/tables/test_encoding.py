import numpy as np
import pytest

from evenhand.errors import InvalidInput
from evenhand.tables import Frame, LabelledFrame, TableColumn


def people(encode=True, published=False, **columns):
    rows = len(next(iter(columns.values())))
    cells = {name: TableColumn(tuple(values)) for name, values in columns.items()}
    return LabelledFrame(
        "toy",
        Frame("toy.csv", cells, range(2, rows + 2)),
        tuple(columns),
        np.resize([1, -1], rows),
        np.resize(["a", "b"], rows),
        encode=encode,
        published=published,
    )


def test_two_values_need_one_column():
    table = people(c=("red", "blue", "red"), x="123").encoded()
    assert table.names == ("c=red", "x")
    assert table.features.tolist() == [[1, 1], [0, 2], [1, 3]]
    assert table.encoded == {"c": ("c=red",)}
    assert table.notes == ("the text column 'c' became 1 columns of 0 and 1",)


def test_a_published_table_keeps_both_columns_without_a_note():
    table = people(c=("red", "blue", "red"), published=True).encoded()
    assert table.names == ("c=blue", "c=red")
    assert table.notes == ()


def test_text_is_refused_unless_it_is_to_be_encoded():
    with pytest.raises(InvalidInput, match=r"'c' \(for example 'red'\) is not numeric.*--encode"):
        people(encode=False, c=("1", "red")).encoded()


def test_identifiers_are_not_encoded():
    with pytest.raises(InvalidInput, match="51 distinct values; --encode takes at most 50"):
        people(c=[f"name{i}" for i in range(51)]).encoded()


def test_figures_and_subsets():
    table = people(x="1234").encoded()
    assert [(one.group, one.people, one.good_rate) for one in table.figures] == [
        ("a", 2, 1.0),
        ("b", 2, 0.0),
    ]
    assert len(table.subset(3)) == 3
    assert len(table.subset(9)) == 4
