"""Files and frames of other libraries become typed columns; what cannot be read is named."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InvalidInput
from evenhand.tables import Frame, read_frame, reading


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
        ("x,y\n", "header"),
        ("x,y\n1\n", "line 2 .*1 cells.* 2"),
        ("x,a;y\n1,1;2\n", "',' or ';'.*delimiter"),
        ('x,y\n"1,2\n', "CSV"),
    ],
)
def test_what_is_no_csv_is_refused(write, text, message):
    with pytest.raises(InvalidInput, match=message):
        read_frame(write(text))


def test_what_is_no_table_is_refused(tmp_path):
    pytest.importorskip("narwhals")
    with pytest.raises(InvalidInput, match="list"):
        read_frame([1, 2])
    with pytest.raises(InvalidInput, match="rows"):
        read_frame(FRAMES["pandas"]({"x": []}))
    (tmp_path / "data.parquet").write_text("nonsense")
    with pytest.raises(InvalidInput, match="Parquet"):
        read_frame(tmp_path / "data.parquet")
    with pytest.raises(InvalidInput, match=r"nowhere\.csv"):
        read_frame(tmp_path / "nowhere.csv")


@pytest.mark.parametrize("package", ["pyarrow", "narwhals"])
def test_a_missing_package_is_named_with_the_extra_that_has_it(tmp_path, monkeypatch, package):
    FRAMES["pyarrow"]({"x": [1]})  # skips where it is not installed at all
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "data.parquet").write_bytes(b"")
    given = tmp_path / "data.parquet" if package == "pyarrow" else object()
    with pytest.raises(InvalidInput, match=rf"{package}.*\.\[tables\]"):
        read_frame(given)


def test_the_nameless_index_of_pandas_is_no_column(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow.parquet")
    table = pandas.DataFrame({"x": range(5), "who": list("abcde")})
    table.sample(frac=1, random_state=1).to_parquet(tmp_path / "shuffled.parquet")
    assert list(read_frame(tmp_path / "shuffled.parquet").columns) == ["x", "who"]
    table.set_index("who").to_parquet(tmp_path / "named.parquet")
    assert list(read_frame(tmp_path / "named.parquet").columns) == ["x", "who"]


# long files, which pyarrow reads

CELL = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.6f}"),
    st.floats().map(repr),
    st.sampled_from(
        ["", "NA", "n/a", "?", "1e5", "+7", "-0", "-0.0", ".5", "5.", ".", "-", "1.2.3"]
    ),
    st.sampled_from(["1_000", "inf", "Nan", "0x1", "car", "Never married", "9" * 15, "9" * 16]),
    st.sampled_from([" 7 ", "\t8", "\x1f9", "x" * 40, "Z\u00fcrich", "\u00a03", "NaN "]),
)
TABLE = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[CELL] * width), min_size=1, max_size=12)
)


def read_both_ways(path, delimiter):
    """What is read with pyarrow and with the csv module: a frame, or the text of the error."""
    found: list[Frame | str] = []
    with pytest.MonkeyPatch.context() as patch:
        for threshold in (0, 10**9):
            patch.setattr(reading, "LONG", threshold)
            try:
                found.append(read_frame(path, delimiter))
            except InvalidInput as error:
                found.append(str(error))
    return found


def assert_same_frames(one, other):
    assert list(one.columns) == list(other.columns)
    assert list(one.lines) == list(other.lines)
    assert one.notes == other.notes
    for name, column in one.columns.items():
        twin = other.columns[name]
        assert column.texts == twin.texts
        assert (column.kind, column.notation) == (twin.kind, twin.notation)
        assert column.missing.tolist() == twin.missing.tolist()
        if column.numbers is not None:
            assert column.numbers.tobytes() == twin.numbers.tobytes()


def test_a_batch_without_rows_changes_nothing(monkeypatch):
    """pyarrow hands one over for these lines in blocks of 64 bytes."""
    pytest.importorskip("pyarrow")
    texts = ["é,ééé", "ééé," + "x" * 22, "éé,éé", "ééé,é", "ééé," + "x" * 64, "éé,éé"]
    monkeypatch.setattr(reading, "ARROW_BLOCK", 64)
    first, second = reading._arrow_columns("\r\n".join(texts).encode(), 0, ",", 2)
    assert [f"{one},{two}" for one, two in zip(first, second, strict=True)] == texts


@settings(max_examples=200, deadline=None)
@given(
    rows=TABLE,
    mark=st.sampled_from([",", ";"]),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    block=st.sampled_from([64, 1 << 22]),
)
def test_pyarrow_and_the_csv_module_read_the_same(rows, mark, newline, block, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "people.csv"
    names = [f"name {j}" for j in range(len(rows[0]))]
    text = newline.join(mark.join(row) for row in (names, *rows))
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "ARROW_BLOCK", block)
        quick, slow = read_both_ways(path, mark)
    if isinstance(slow, str):
        assert quick == slow
    else:
        assert_same_frames(quick, slow)


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n1,"2"\n',
        "a,b\n1,2,3\n",
        "a,b\n1\n",
        "a,b\n1,2\n\n3,4\n",
        "a,b\n,\n3,4\n",
        "a\n1\n\n2\n",
        "a,b\n1,\0\n",
        "a,b\n",
        "a,b",
        "\ufeffa,b\n1,2\n",
        "\na,b\n1,2\n",
        "a,a\n1,2\n",
        "a,\n1,2\n",
    ],
)
def test_what_pyarrow_would_read_otherwise_is_left_to_the_csv_module(write, text):
    quick, slow = read_both_ways(write(text), ",")
    if isinstance(slow, str):
        assert quick == slow
    else:
        assert_same_frames(quick, slow)


@pytest.mark.parametrize("delimiter", [None, ","])
def test_a_plain_long_file_is_read_by_pyarrow(write, monkeypatch, delimiter):
    """Without this the tests above could pass because the csv module reads everything."""
    pytest.importorskip("pyarrow.csv")
    rows = [f"{i},{i / 7:.6f},{'NA' if i % 9 == 0 else i},Z\u00fcrich,car" for i in range(5000)]
    path = write("id,x,n,town,purpose\n" + "\n".join(rows))
    monkeypatch.setattr(reading, "LONG", 0)
    monkeypatch.setattr(reading, "ARROW_BLOCK", 4096)
    monkeypatch.setattr(reading, "_columns", None)  # the csv module's
    frame = read_frame(path, delimiter)
    assert frame["x"].numbers.tolist() == [float(f"{i / 7:.6f}") for i in range(5000)]
    assert frame["n"].missing.sum() == 556
    assert set(frame["town"].texts) == {"Z\u00fcrich"}
    assert frame["purpose"].cells.dtype == "S3"
    assert frame.lines == range(2, 5002)


def test_without_pyarrow_the_csv_module_reads_long_files(write, monkeypatch):
    path = write("a,b\n1,2\n")
    monkeypatch.setattr(reading, "LONG", 0)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert read_frame(path, ",")["b"].numbers.tolist() == [2.0]
