"""Files and frames of other libraries become typed columns; what cannot be read is named."""

import sys

import numpy as np
import pytest

from evenhand.errors import InvalidInput
from evenhand.tables import read_frame


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_csv_keeps_names_cells_and_line_numbers(write):
    frame = read_frame(write('\ufeffname , x\n"Doe, J", 1\n\nRoe,2\n'))
    assert {name: column.cells for name, column in frame.columns.items()} == {
        "name": ("Doe, J", "Roe"),
        "x": ("1", "2"),
    }
    assert frame.lines == (2, 4)


def test_other_delimiters(write):
    for mark, told in ((";", ";"), ("\t", "\\t")):
        frame = read_frame(write(f"a{mark}b\n1{mark}2\n"), told)
        assert [column.cells for column in frame.columns.values()] == [("1",), ("2",)]


def test_missing_values_have_one_set_of_markers_and_an_option(write):
    path = write("x\n?\nNA\nn/a\nNaN\nnull\nNone\n-99\n7\n")
    assert read_frame(path)["x"].missing.tolist() == [True] * 6 + [False] * 2
    own = read_frame(path, missing=["-99"])["x"]
    assert own.kind == "category"
    assert own.missing.tolist() == [False] * 6 + [True, False]


FRAMES = {
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    "pyarrow": lambda columns: pytest.importorskip("pyarrow").table(columns),
}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_of_other_libraries_read_the_same(library):
    pytest.importorskip("narwhals")
    columns = {
        "x": [1.5, None, 2.0],
        "n": [1, 2, 3],
        "c": ["red", None, "7"],
        "b": [True, False, True],
    }
    frame = read_frame(FRAMES[library](columns))
    np.testing.assert_array_equal(frame["x"].numbers, [1.5, np.nan, 2.0])
    assert frame["n"].texts == ("1", "2", "3")
    assert frame["c"].texts == ("red", None, "7")
    assert [column.kind for column in frame.columns.values()] == [
        "number",
        "number",
        "category",
        "number",
    ]
    assert frame["b"].numbers.tolist() == [1.0, 0.0, 1.0]
    assert frame["b"].texts == ("True", "False", "True")


def test_a_parquet_file_reads_as_its_frame(tmp_path):
    pytest.importorskip("narwhals")
    parquet = pytest.importorskip("pyarrow.parquet")
    given = FRAMES["pyarrow"]({"n": [1, None], "c": ["NA", "b"]})
    parquet.write_table(given, tmp_path / "data.parquet")
    frame = read_frame(tmp_path / "data.parquet")
    assert frame["n"].texts == ("1", None)
    assert frame["c"].texts == (None, "b")
    assert frame.source.endswith("data.parquet")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no lines"),
        ("x,y\n", "only a header"),
        ("x,y\n1\n", "line 2 of .* has 1 cells, the header has 2"),
        ("x,a;y\n1,1;2\n", "may be separated by ',' or ';'.*--delimiter ','"),
        ('x,y\n"1,2\n', "cannot be read as CSV"),
    ],
)
def test_what_is_no_csv_is_refused(write, text, message):
    with pytest.raises(InvalidInput, match=message):
        read_frame(write(text))


def test_what_is_no_table_is_refused(tmp_path):
    pytest.importorskip("narwhals")
    with pytest.raises(InvalidInput, match="not a list"):
        read_frame([1, 2])
    with pytest.raises(InvalidInput, match="no rows"):
        read_frame(FRAMES["pandas"]({"x": []}))
    (tmp_path / "data.parquet").write_text("nonsense")
    with pytest.raises(InvalidInput, match="cannot be read as Parquet"):
        read_frame(tmp_path / "data.parquet")
    with pytest.raises(InvalidInput, match=r"nowhere.csv cannot be read: No such file"):
        read_frame(tmp_path / "nowhere.csv")


@pytest.mark.parametrize("package", ["pyarrow", "narwhals"])
def test_a_missing_package_is_named_with_the_extra_that_has_it(tmp_path, monkeypatch, package):
    FRAMES["pyarrow"]({"x": [1]})  # skips where it is not installed at all
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "data.parquet").write_bytes(b"")
    given = tmp_path / "data.parquet" if package == "pyarrow" else object()
    with pytest.raises(InvalidInput, match=rf"needs the package {package}.*\.\[tables\]"):
        read_frame(given)


def test_the_nameless_index_of_pandas_is_no_column(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow.parquet")
    table = pandas.DataFrame({"x": range(5), "who": list("abcde")})
    table.sample(frac=1, random_state=1).to_parquet(tmp_path / "shuffled.parquet")
    assert list(read_frame(tmp_path / "shuffled.parquet").columns) == ["x", "who"]
    table.set_index("who").to_parquet(tmp_path / "named.parquet")
    assert list(read_frame(tmp_path / "named.parquet").columns) == ["x", "who"]
