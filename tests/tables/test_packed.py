"""Long plain tables are read without the csv module and float(), and give the same answers."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InvalidInput
from evenhand.tables import packed, reading
from evenhand.tables.column import MISSING

CELL = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.6f}"),
    st.floats().map(repr),
    st.sampled_from(
        ["", "NA", "n/a", "?", "1e5", "+7", "-0", "-0.0", ".5", "5.", ".", "-", "1.2.3"]
    ),
    st.sampled_from(["1_000", "inf", "Nan", "0x1", "car", "Never married", "9" * 15, "9" * 16]),
)
TABLE = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[CELL] * width), min_size=1, max_size=12)
)


def by_csv(text):
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    return [[cell.strip() for cell in row] for row in reader if any(row)]


@settings(max_examples=300, deadline=None)
@given(rows=TABLE, ended=st.booleans(), block=st.sampled_from([8, 64, 1 << 18]))
def test_what_is_split_is_what_the_csv_module_splits(rows, ended, block):
    text = "\n".join(",".join(row) for row in rows) + ("\n" if ended else "")
    before = packed.AT_ONCE
    try:
        packed.AT_ONCE = block
        columns = packed.split_plain(text.encode(), 0, b",", len(rows[0]))
    finally:
        packed.AT_ONCE = before
    if columns is not None:
        mine = [[cell.decode() for cell in row] for row in zip(*columns, strict=True)]
        assert mine == by_csv(text)


@pytest.mark.parametrize(
    "text",
    ['a,"b"\n', "a,b\r\n", "a,b,c\n", "a\n", "a, b\n", "a,b \n", ",\n", "ä,b\n", "a,b\n\nc,d\n",
     "a,\0\n", "a," + "x" * 33 + "\n", ""],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_the_csv_module(text):
    assert packed.split_plain(text.encode(), 0, b",", 2) is None
    assert packed.split_plain(b"a,b\nc d,\n,e", 0, b",", 2) is not None  # the negative control


def read_slowly(cells):
    try:
        return np.array([np.nan if cell.lower() in MISSING else float(cell) for cell in cells])
    except ValueError:
        return None


@settings(max_examples=300, deadline=None)
@given(cells=st.lists(CELL, min_size=1, max_size=8))
def test_numbers_are_those_of_float_bit_for_bit(cells):
    column = np.array(cells, dtype="S")
    missing = packed.find_missing(column, MISSING)
    assert missing.tolist() == [cell.lower() in MISSING for cell in cells]
    numbers, expected = packed.plain_numbers(column, missing), read_slowly(cells)
    if numbers is not None:
        assert expected is not None
        assert numbers.tobytes() == expected.tobytes()


def test_plain_columns_are_read_here():
    """Without this the test before could pass by reading nothing."""
    draw = np.random.default_rng(0)
    for cells in (
        [f"{value:.6f}" for value in draw.normal(size=2_000) * 10.0 ** draw.integers(-6, 8, 2_000)],
        draw.integers(-(10**14), 10**14, 2_000).astype(str).tolist(),
        ["NA", "-0", "-0.0", "+3", ".5", "5.", "999999999999999", "0.00000000000001"],
    ):
        column = np.array(cells, dtype="S")
        numbers = packed.plain_numbers(column, packed.find_missing(column, MISSING))
        assert numbers is not None
        assert numbers.tobytes() == read_slowly(cells).tobytes()
    too_long = np.array(["1234567890.1234567"], dtype="S")
    assert packed.plain_numbers(too_long, np.zeros(1, bool)) is None


@settings(max_examples=150, deadline=None)
@given(rows=TABLE, mark=st.sampled_from([",", ";"]))
def test_a_long_file_is_read_like_a_short_one(rows, mark, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "people.csv"
    names = [f"name {j}" for j in range(len(rows[0]))]
    path.write_text("\n".join(mark.join(row) for row in (names, *rows)))
    found, before = [], reading.LONG
    for reading.LONG in (1, 10**9):
        try:
            found.append(reading.read_frame(path, mark))
        except InvalidInput as error:
            found.append(str(error))
    reading.LONG = before
    quick, slow = found
    if isinstance(slow, str):
        assert quick == slow
        return
    assert list(quick.columns) == list(slow.columns)
    assert list(quick.lines) == list(slow.lines)
    for name, column in slow.columns.items():
        other = quick.columns[name]
        assert (other.texts, other.kind, other.notation) == (
            column.texts,
            column.kind,
            column.notation,
        )
        assert other.missing.tolist() == column.missing.tolist()
        if column.numbers is not None:
            assert other.numbers.tobytes() == column.numbers.tobytes()
