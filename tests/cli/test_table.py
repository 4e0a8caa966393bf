import numpy as np
import pytest

from evenhand.cli import table as tables
from evenhand.cli.task import parse_limits
from evenhand.errors import BadLabel, MissingColumn


def test_a_table_is_read_as_text(write):
    table = tables.read_table(write('\ufeffname , x\n"Doe, J", 1\n\nRoe,2\n'))
    assert table.columns == {"name": ("Doe, J", "Roe"), "x": ("1", "2")}
    assert table.lines == (2, 4)


def test_other_delimiters(write):
    assert tables.read_table(write("a;b\n1;2\n"), ";").columns == {"a": ("1",), "b": ("2",)}


def test_missing_columns_list_those_there_are(write):
    table = tables.read_table(write("a,b\n1,2\n"))
    with pytest.raises(MissingColumn, match=r"no column 'c', 'd'; it has: a, b\."):
        table.require(["a", "c", "d"])


@pytest.mark.parametrize(
    ("values", "good", "expected"),
    [
        ("0101", None, [-1, 1, -1, 1]),
        (["-1", "1"], None, [-1, 1]),
        (["0.0", "1.0"], None, [-1, 1]),
        (["0.0", "1.0"], "0", [1, -1]),
        (["yes", "no", "late"], "yes", [1, -1, -1]),
    ],
)
def test_labels(write, values, good, expected):
    table = tables.read_table(write("y\n" + "\n".join(values)))
    assert tables.labels(table, "y", good)[0].tolist() == expected


@pytest.mark.parametrize("values", ["12", "23", ["yes", "no"], ["1", "1.0", "0"]])
def test_labels_are_never_guessed(write, values):
    with pytest.raises(BadLabel, match="--good"):
        tables.labels(tables.read_table(write("y\n" + "\n".join(values))), "y", None)


def test_dropping_looks_at_used_columns_only(write):
    table = tables.read_table(write("a,b\n1,\n?,2\n3,NaN\n"))
    assert tables.drop_missing(table, ["a"]).columns["a"] == ("1", "3")


def test_two_values_need_one_column(write):
    table = tables.read_table(write("c,x\nred,1\nblue,2\nred,3\n"))
    found = tables.features(table, ["c", "x"], encode=True)
    assert found.names == ("c=red", "x")
    assert found.values.tolist() == [[1, 1], [0, 2], [1, 3]]


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("0:0.2:3", 0.1, [0, 0.1, 0.2]),
        ("0:0.3:4", 0.05, [0, 0.05, 0.1, 0.2, 0.3]),
        ("0.2,0", 0.0, [0, 0.2]),
        ("0.1", 0.1, [0.1]),
    ],
)
def test_limits(text, limit, expected):
    assert np.allclose(parse_limits(text, limit), expected)
