"""The reader of wheels, on wheels made here: nothing is downloaded."""

import bz2
import hashlib
import io
import zipfile
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
        wheel = folder / "toy-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for member, content in held.items():
                archive.writestr(member, content)
        return wheel

    monkeypatch.setattr(wheels, "_download", download)
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
