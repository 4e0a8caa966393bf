"""What the columns of a table mean.

    path = "loans.csv"            # beside the description; any format that `read_frame` knows
    label = "repaid"              # the outcome
    good = "yes"                  # its good value, or a list of several
    group = "sex"                 # whose rates are compared; "sex,race" joins two columns

    # only where needed
    bad = ["no", "late"]          # its bad values, if there is more than one
    groups = ["f", "m"]           # keep these groups only
    features = ["income", "age"]  # default: all columns but label, group, id and decision
    leave_out = ["name"]          # no features
    id = "customer"               # identifier column: no feature; duplicates are an error
    encode = true                 # text columns become one 0/1 column per value
    fill_missing = ["income"]     # fill in what is missing; "all" fills every feature and the group
    drop_missing = true           # leave out rows with a missing value
    decision = "granted"          # the historic decision, never a feature
    unlabelled = "drop"           # leave out people without a label: those who were rejected
    delimiter = ";"               # default: what the first lines show
    encoding = "cp1252"           # default: UTF-8, or what a byte order mark says
    decimal = ","                 # default: what the columns show
    dates = "day-first"           # or month-first; "text" leaves dates alone
    header = false                # the first line is a person; columns are column1, column2, ...
    skip_lines = 2                # lines above the header
    sheet = "2023"                # of an Excel file
    missing = ["-99"]             # how a missing value is written, instead of NA, ? and so on
    needed = ["amount"]           # further columns that must have a value in every row
    fewest = 10                   # people with each outcome that every group needs
    title, licence, caveat        # free text, shown by `evenhand data show`

Nothing is guessed: what cannot be read as it stands is an error that names the key which would
settle it. The keys are the arguments of `read_table`; the command line has options of these names.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.registry import did_you_mean
from evenhand.tables.named import TABLES

READING = ("delimiter", "encoding", "decimal", "dates", "header", "skip_lines", "sheet", "missing")
"""The keys that say how a file is written."""


@dataclass(frozen=True)
class Description:
    """What the columns of a table mean.

    Parameters
    ----------
    path : Path
        The file, of any kind that `read_frame` reads.
    label : str
        The column of the outcome.
    group : str
        The column of the group; several with commas between them are joined: "sex,race".
    good : str, optional
        The good outcome; by default 1 where the label holds 0 and 1, or -1 and 1. Several have
        commas between them, "Paid,Current", or are a list.
    bad : tuple of str
        The bad outcomes, which must be named where there are several.
    groups : tuple of str
        The groups to keep; by default all.
    features : tuple of str
        What a decision may look at; by default all columns but label, group, id and decision.
    leave_out : tuple of str
        Columns that are no features.
    id : str, optional
        Identifier column: excluded from features; duplicates are an error.
    encode : bool
        Whether text columns become one 0/1 column per value.
    fill_missing : tuple of str
        The columns whose missing values are filled in; "all" means every feature and the group. A
        number becomes the median of its column, and a 0/1 column marks where; a text becomes a
        value of its own, "missing". In the column of the group, "missing" is then a group; where
        "all" comes with `drop_missing`, people without a group are left out instead.
    drop_missing : bool
        Whether rows are left out that lack the group, a feature or a needed value.
    decision : str, optional
        A column with the historic decision, which is no feature.
    unlabelled : str, optional
        "drop" leaves out people without an outcome.
    delimiter, encoding, decimal, dates, header, skip_lines, sheet
        How the file is written: fields of `FileReading`, where the file does not show it.
    missing : tuple of str, optional
        How a missing value is written, instead of the usual ways (`MISSING`).
    needed : tuple of str
        Further columns that must have a value in every row, such as prices.
    fewest : int, optional
        How many people with each outcome every group needs; by default 10.
    title, licence, caveat : str
        What `evenhand data show` prints.
    name : str
        What the table is called; by default as the file.

    Examples
    --------
    >>> Description(Path("loans.csv"), label="repaid", group="sex").name
    'loans'
    >>> Description(Path("loans.csv"), label="sex", group="sex")
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: 'sex' is both label and group; they are two columns. Hint: the
    label is the outcome, the group says whose rates are compared.
    """

    path: Path
    label: str
    group: str
    good: str | None = None
    bad: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    id: str | None = None
    encode: bool = False
    fill_missing: tuple[str, ...] = ()
    drop_missing: bool = False
    decision: str | None = None
    unlabelled: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    dates: str | None = None
    header: bool = True
    skip_lines: int = 0
    sheet: str | None = None
    missing: tuple[str, ...] | None = None
    needed: tuple[str, ...] = ()
    fewest: int | None = None
    title: str = ""
    licence: str = ""
    caveat: str = ""
    name: str = ""

    @property
    def reading(self) -> Json:
        """What is known about the file, as `read_frame` takes it."""
        return {key: getattr(self, key) for key in READING}

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.path.name.partition(".")[0] or self.path.name)
        if self.unlabelled not in (None, "drop"):
            raise InvalidInput(
                f"unlabelled is {self.unlabelled!r}",
                requirement='it is "drop", or left out',
                hint="people without a label can be left out, or the label filled in; "
                "nothing is made up for them.",
                argument="unlabelled",
            )
        if self.label == self.group:
            raise InvalidInput(
                f"{self.label!r} is both label and group",
                requirement="they are two columns",
                hint="the label is the outcome, the group says whose rates are compared.",
                argument="label",
                remedies=("group",),
            )
        if self.label in self.features:
            raise InvalidInput(
                f"{self.label!r} cannot be a feature: label and group cannot be features, "
                "and the label is what the decision is about.",
                hint="leave it out of the features.",
                argument="features",
                column=self.label,
            )
        if self.group in self.features:
            raise InvalidInput(
                f"{self.group!r} cannot be a feature: label and group cannot be features, "
                "because hypotheses would decide by the group.",
                hint="leave it out of the features; if the group may influence decisions, say so "
                'with group_use="decide".',
                argument="features",
                remedies=("group_use",),
                column=self.group,
            )


def read_description(path: Path) -> Description:
    """Read the description of a table from a TOML file.

    Parameters
    ----------
    path : Path
        The file; the path in it is relative to its folder.

    Returns
    -------
    Description
        What it says.

    Raises
    ------
    InvalidInput
        If it is no TOML, has unknown keys, or does not name path, label and group.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "loans.toml"
    >>> _ = path.write_text('path = "loans.csv"\\nlabel = "repaid"\\ngroup = "sex"\\ngood = 1')
    >>> read_description(path).good
    '1'
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(
            f"{path} cannot be read as a description: {error}.", hint="it is a TOML file."
        ) from error
    absent = [key for key in ("path", "label", "group") if key not in given]
    if absent:
        raise InvalidInput(
            f"{path} does not say {absent[0]!r}.",
            hint="path, label and group are always needed.",
            argument=absent[0],
        )
    values = _checked(str(path), given)
    return Description(**{**values, "path": path.parent / values["path"]})


def _checked(source: str, given: Mapping[str, Any]) -> Json:
    """The fields of a description; InvalidInput if one is unknown or has another type."""
    known = [entry.name for entry in fields(Description)]
    unknown = [key for key in given if key not in known]
    if unknown:
        raise InvalidInput(
            f"{source} has the unknown key {unknown[0]!r}.",
            hint=f"the keys are {', '.join(known)}.",
            argument=unknown[0],
        )
    return {
        key: value if value is None else _value(source, key, value) for key, value in given.items()
    }


def _value(source: str, key: str, value: object) -> Any:
    """The value of a key; InvalidInput if it has another type than the key's."""
    if key == "good" and isinstance(value, list | tuple):
        return ",".join(str(_value(source, "an entry of good", item)) for item in value)
    if key in ("bad", "groups", "features", "leave_out", "fill_missing", "missing", "needed"):
        several = [value] if isinstance(value, str) or not isinstance(value, Iterable) else value
        return tuple(_value(source, "an entry of " + key, item) for item in several)
    if key in ("encode", "drop_missing", "header"):
        if not isinstance(value, bool):
            raise InvalidInput(
                f"{source}: {key} is {value!r}",
                requirement="it is true or false",
                argument=key,
                value=repr(value),
            )
        return value
    if key in ("fewest", "skip_lines") and isinstance(value, int):
        return value
    if not isinstance(value, str | int | float | np.generic | PurePath):
        raise InvalidInput(
            f"{source}: {key} is {value!r}",
            requirement="it is a text",
            hint="put it between quotes.",
            argument=key,
            value=repr(value),
        )
    return str(value)


def own_description(source: str | Path, group: str | None = None) -> Description | None:
    """Say what a table itself says about its columns.

    Parameters
    ----------
    source : str or Path
        The name of a table, a description (.toml), or a file of rows.
    group : str, optional
        The column of another grouping, for a table by name.

    Returns
    -------
    Description or None
        None for a file of rows, which says nothing.

    Raises
    ------
    InvalidInput
        If there is neither such a table nor such a file.

    Examples
    --------
    >>> own_description("lending").label
    'repaid'
    >>> own_description("adlut")
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: there is neither a table nor a file 'adlut'. Hint: the tables are
    lending, adult, ...; a file is CSV, Excel, Parquet or JSON lines, or a description (.toml). Did
    you mean 'adult'?
    """
    name = str(source)
    path = Path(source)
    if name in TABLES:
        return Description(path, **_checked(name, TABLES[name].grouped_by(group)))
    if not path.is_file():
        raise InvalidInput(
            f"there is neither a table nor a file {name!r}.",
            hint=f"the tables are {', '.join(TABLES)}; a file is CSV, Excel, Parquet or JSON "
            f"lines, or a description (.toml).{did_you_mean(name, TABLES)}",
        )
    return read_description(path) if path.suffix.lower() == ".toml" else None


def describe(source: str | Path, **meaning: Any) -> Description:
    """Say what the columns of a table mean, without reading its rows.

    Parameters
    ----------
    source : str or Path
        The name of a table, a description (.toml), or a file of rows.
    **meaning
        The fields of `Description`; they come before what the table says itself.

    Returns
    -------
    Description
        What its columns mean.

    Raises
    ------
    InvalidInput
        If there is no such table, or if nothing says what its columns mean.

    Examples
    --------
    >>> describe("adult", group="race").group
    'race'
    >>> describe("acs-employment", features=("predicted_probability",)).leave_out
    ('id', 'year', 'prediction', 'DEAR', 'DEYE', 'DREM')
    """
    given = given_fields(str(source), meaning)
    own = own_description(source, given.get("group"))
    if own is not None:
        # A feature that the caller names is one, whatever the table itself leaves out.
        named = given.get("features", ())
        left_out = tuple(one for one in own.leave_out if one not in named)
        return replace(own, **{"leave_out": left_out, **given})
    require_meaning(f"{source}, a file of rows,", given)
    return Description(Path(source), **given)


def given_fields(source: str, meaning: Mapping[str, Any]) -> Json:
    """The fields of a description that are given: what has its default is left to the table."""
    checked = _checked(source, meaning)
    return {key: v for key, v in checked.items() if v != getattr(Description, key, None)}


def require_meaning(what: str, meaning: Json) -> None:
    """InvalidInput if nothing says which columns are the label and the group."""
    for key in ("label", "group"):
        if meaning.get(key) is None:
            raise InvalidInput(
                f"{key} is missing: nothing says which column of {what} is the {key}.",
                hint="name the columns of the label and of the group (label, group), or describe "
                "the file in a .toml file.",
                argument=key,
                remedies=("label", "group"),
            )
