"""What the columns of a table mean, and every error about a table that is not as it must be.

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
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import BadLabel, InvalidInput, raise_all
from evenhand.registry import did_you_mean
from evenhand.shown import counted
from evenhand.tables.column import FALSE, TRUE, TableColumn, listed, number, same_value
from evenhand.tables.frame import (
    MISSING_VALUE,
    Frame,
    Gaps,
    LabelledFrame,
    Note,
    with_every_label,
    without_label,
)
from evenhand.tables.named import TABLES
from evenhand.tables.reading import FileReading, read_frame
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

FEWEST = 10
"""People with each outcome that every group needs: with fewer no rate can be estimated, let alone
certified."""
MOST_GROUPS = 30
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
    """
    given = _given(str(source), meaning)
    own = own_description(source, given.get("group"))
    if own is not None:
        return replace(own, **given)
    _require_meaning(f"{source}, a file of rows,", given)
    return Description(Path(source), **given)


def _given(source: str, meaning: Mapping[str, Any]) -> Json:
    """The fields of a description that are given: what has its default is left to the table."""
    checked = _checked(source, meaning)
    return {key: v for key, v in checked.items() if v != getattr(Description, key, None)}


def _require_meaning(what: str, meaning: Json) -> None:
    for key in ("label", "group"):
        if meaning.get(key) is None:
            raise InvalidInput(
                f"{key} is missing: nothing says which column of {what} is the {key}.",
                hint="name the columns of the label and of the group (label, group), or describe "
                "the file in a .toml file.",
                argument=key,
                remedies=("label", "group"),
            )


def read_table(source: object, *, fewest_by_default: int = FEWEST, **meaning: Any) -> LabelledFrame:
    """Read a table of people, whatever it is: the one way in for every command.

    Parameters
    ----------
    source : str, Path, Description or data frame
        The name of a table, a description (.toml), a file of rows, a `Description`, or a frame of
        pandas, polars or pyarrow.
    fewest_by_default : int
        What `fewest` is where neither `meaning` nor a description says it.
    **meaning
        The fields of `Description`; they come before what the table says itself.

    Returns
    -------
    LabelledFrame
        The people, typed and checked; `.encoded()` turns them into numbers.

    Raises
    ------
    InvalidInput
        If the table is not as it must be; the error names the row and the argument that helps.

    Notes
    -----
    A command does ``frame = read_table(data, label=..., group=..., ...)`` and then ``table =
    frame.encoded()``; nothing else of this package is needed.

    Examples
    --------
    A file of your own, with outcomes in words, texts among the features, and people without a
    group: ``read_table("loans.csv", label="repaid", good="yes", group="sex", encode=True,
    fill_missing=["sex"])``.

    >>> table = read_table("lending").encoded()
    >>> len(table), table.names[:2], [one.group for one in table.figures]
    (1200, ('income', 'credit_score'), ['a', 'b'])
    """
    if isinstance(source, str | Path):
        source = describe(source, **meaning)
    elif isinstance(source, Description):
        source = replace(source, **_given("read_table", meaning))
    if isinstance(source, Description):
        frame = _rows(source.path, source.reading)
    else:
        _require_meaning("the frame", meaning)
        given = _given("read_table", meaning)
        frame = read_frame(source, **{key: given[key] for key in READING if key in given})
        source = Description(Path("frame"), **given)
    fewest = fewest_by_default if source.fewest is None else source.fewest
    check = _Check(frame, replace(source, fewest=fewest), list(frame.notes))
    features = check.features()  # without its columns nothing else can be said about a table
    check.identifiers()
    check.keep_labelled()
    check.keep_complete(features)
    label, good = check.labels()
    group = check.groups(label)
    check.note_features(features)
    people = LabelledFrame(
        name=source.name,
        frame=check.frame,
        features=features,
        label=label,
        group=group,
        label_name=source.label,
        good=good,
        group_name=source.group,
        encode=source.encode,
        dropped=len(frame.lines) - len(check.frame.lines),
        notes=tuple(check.notes),
        missing=source.missing,
        filled=check.filled(features),
        gaps=check.gaps,
    )
    if check.errors:
        # Whoever has to change the call changes it once: what would be wrong next is said too.
        raise_all([*check.errors, *people.problems()])
    return people


def read_rows(source: str | Path, **reading: Any) -> Frame:
    """Read the rows of a table with all their columns: the way in where a command names columns.

    Parameters
    ----------
    source : str or Path
        The name of a table, a file of rows, or a description of one (.toml).
    **reading
        How the file is written, see `read_frame`.

    Returns
    -------
    Frame
        The columns by name.

    Raises
    ------
    InvalidInput
        If there is neither a table nor a file of that name, or the file cannot be read.

    Examples
    --------
    >>> rows = read_rows("lending")
    >>> len(rows), sorted(set(rows["repaid"].texts))
    (1200, ['no', 'yes'])
    """
    own = own_description(source)
    if own is None:
        return read_frame(source, **reading)
    return _rows(own.path, {**own.reading, **reading})


def _rows(path: Path, reading: Json) -> Frame:
    """The rows of a description: those of a table by name, or of a file."""
    if str(path) in TABLES:
        return TABLES[str(path)].frame(FileReading(**reading))
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}.", hint="path is relative to the description.")
    return read_frame(path, **reading)


@dataclass
class _Check:
    """A frame on its way to a table of people; every error about it is found here.

    frame: the rows that are left; notes: what was done to them; errors: what must be changed, all
    of it; gaps: the missing values.
    """

    frame: Frame
    described: Description
    notes: list[Note]
    errors: list[InvalidInput] = field(default_factory=list)
    gaps: Gaps | None = None

    def features(self) -> tuple[str, ...]:
        """The columns that a decision may look at; all columns that are named exist."""
        described = self.described
        asked = [name for name in described.features if name != described.decision]
        named = (*described.leave_out, described.label, described.group, *asked, *described.needed)
        self.frame, parts = self.frame.with_joined(described.group, named)
        frame = self.frame
        in_both = [part for part in parts if part in described.features]
        if in_both or described.label in parts:
            part = (in_both or [described.label])[0]
            raise InvalidInput(
                f"{part!r} belongs to the group {described.group!r}",
                requirement="it cannot be a feature or the label as well",
                hint="name other columns.",
                argument="group",
                remedies=("features",) if in_both else ("label",),
                column=part,
            )
        if len(frame.lines) < 2:
            raise InvalidInput(
                f"{frame.source} has one row; rates of groups need many people.",
                hint="a table needs people with each outcome in every group.",
            )
        reserved = (described.label, described.group, *parts, described.id, described.decision)
        left = {*reserved, *described.leave_out}
        names = tuple(n for n in described.features or frame.columns if n not in left)
        if not names:
            if described.features:
                gone = ", ".join(n for n in described.features if n in left)
                raise InvalidInput(
                    f"{frame.source}: no column is left to decide by, because {gone} is left out "
                    "or has another use.",
                    hint="take it out of leave_out, or name another column.",
                    argument="leave_out",
                    remedies=("features",),
                )
            raise InvalidInput(
                f"{frame.source} has nothing but the label and the group: "
                "no column is left to decide by.",
                hint="add what is known about a person before the decision.",
            )
        if described.id is not None:
            frame.require([described.id])
        return names

    def identifiers(self) -> None:
        """Nobody occurs twice."""
        name = self.described.id
        if name is None:
            return
        twice = [text for text, n in Counter(self.frame[name].texts).items() if n > 1]
        if twice:
            self.errors.append(
                InvalidInput(
                    f"{self.frame.source}: the id {twice[0]!r} occurs more than once "
                    f"({len(twice)} ids do); every row is one person.",
                    hint="remove the repeated rows, "
                    "or name no id if a person may occur several times.",
                    argument="id",
                    column=name,
                    value=repr(twice[0]),
                )
            )

    def filled(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The features whose missing values are filled in."""
        if self._fills_all():
            return names
        return tuple(name for name in names if name in self.described.fill_missing)

    def _fills_all(self) -> bool:
        """Whether "all" means all columns, and is not the name of one."""
        return "all" in self.described.fill_missing and "all" not in self.frame.columns

    def _fills_group(self) -> bool:
        """Whether people without a group form one."""
        if self.described.group in self.described.fill_missing:
            return True
        return self._fills_all() and not self.described.drop_missing

    def keep_labelled(self) -> None:
        """Keep the rows with a label; that the rejected have none is normal."""
        frame = self.frame
        label = self.described.label
        unknown = frame.columns[label].missing
        rows = len(frame.lines)
        if not unknown.any():
            self.notes += with_every_label(frame, label, self.described.decision)
            return
        if unknown.all():
            raise BadLabel(
                f"{frame.source}: the label {label!r} is missing in every row ({rows:,}); "
                "outcomes of some are needed.",
                hint="name the column that holds the outcome.",
                argument="label",
                column=label,
            )
        if self.described.unlabelled != "drop":
            self.errors.append(
                InvalidInput(
                    f"{frame.source}: the label {label!r} is missing in {unknown.sum():,} of "
                    f"{rows:,} rows (first: line {frame.lines[int(np.argmax(unknown))]}).",
                    hint='for people who were rejected that is normal: unlabelled = "drop" leaves '
                    "them out, and every figure is then about people like those who were accepted.",
                    argument="unlabelled",
                    column=label,
                )
            )
        self.notes.append(without_label(int(unknown.sum()), label))
        self.frame = frame.where(~unknown)

    def keep_complete(self, names: tuple[str, ...]) -> None:
        """Keep the rows of the chosen groups in which nothing that is used is missing, or is filled
        in.
        """
        described = self.described
        frame = self.frame
        try:
            frame = chosen_groups(frame, described.group, described.groups)
        except InvalidInput as error:
            self.errors.append(error)
        used = (described.group, *names, *described.needed)
        self.gaps = Gaps.of(frame, used)
        frame = self._with_filled_group(frame)
        self._require_known_fill(frame, names)
        empty = [name for name in used if frame.columns[name].missing.all()]
        for name in empty:
            self.errors.append(
                InvalidInput(
                    f"{frame.source}: {name!r} has no value in any of {len(frame):,} rows.",
                    hint="leave it out, or name another column.",
                    column=name,
                    remedies=("leave_out", "features"),
                )
            )
        settled = (*self.filled(names), *empty)
        none = np.zeros(len(frame), dtype=bool)
        open_gaps = {name: frame.columns[name].missing for name in used if name not in settled}
        incomplete = np.any([none, *open_gaps.values()], axis=0)
        self.frame = frame
        if not incomplete.any():
            return
        if described.drop_missing and not incomplete.all():
            left_out = int(incomplete.sum())
            were = "was" if left_out == 1 else "were"
            text = f"{counted(left_out, 'row', 'rows')} with a missing value {were} left out"
            self.notes.append(Note("missing values", text))
            self.gaps = replace(self.gaps, left_out=left_out)
            self.frame = frame.where(~incomplete)
            return
        nobody = open_gaps.get(described.group, none)
        if nobody.any() and not described.drop_missing:
            self.errors.append(
                InvalidInput(
                    f"{frame.source}: the group {described.group!r} is missing in "
                    f"{nobody.sum():,} of {len(nobody):,} rows (first: line "
                    f"{frame.lines[int(np.argmax(nobody))]}); a person without a group counts for "
                    "no rate.",
                    hint=f"make a group of their own of them ({described.group!r} or all in "
                    "fill_missing), or leave these rows out (drop_missing).",
                    remedies=("fill_missing", "drop_missing"),
                    column=described.group,
                )
            )
        if described.drop_missing:
            self.errors.append(
                InvalidInput(
                    f"{frame.source}: every row lacks a value in one of {', '.join(used)}: "
                    f"{self.gaps.describe()}.",
                    hint="fill some in (fill_missing), leave columns out (leave_out), or choose "
                    "other features.",
                    remedies=("fill_missing", "leave_out", "features"),
                )
            )
        elif incomplete[~nobody].any():
            self.errors.append(self._missing_values(frame, open_gaps, incomplete))
        # What else may be wrong is looked for among the people whose group is known.
        self.frame = frame.where(~nobody) if not nobody.all() else frame

    def _with_filled_group(self, frame: Frame) -> Frame:
        """The rows; those without a group form one, where that is asked for."""
        name = self.described.group
        if not self._fills_group() or not frame.columns[name].missing.any():
            return frame
        note = f"people without {name!r} form the group {MISSING_VALUE!r}"
        self.notes.append(Note("filled", note, name))
        return with_missing_group(frame, name)

    def _require_known_fill(self, frame: Frame, names: tuple[str, ...]) -> None:
        """Only features, and the group, can be filled in: nothing is made up for an outcome."""
        may = {*names, self.described.group, *(() if "all" in frame.columns else ("all",))}
        strange = [name for name in self.described.fill_missing if name not in may]
        if strange:
            self.errors.append(
                InvalidInput(
                    f"{frame.source}: fill_missing names {strange[0]!r}, which is neither a "
                    "feature nor the group.",
                    hint=f"the features are {listed(names, 10)}; outcomes and prices are never "
                    "made up.",
                    argument="fill_missing",
                    value=strange[0],
                )
            )

    def _missing_values(
        self, frame: Frame, gaps: Mapping[str, BoolArray], incomplete: BoolArray
    ) -> InvalidInput:
        """The error about missing values: every column with its count."""
        counts = Gaps.of(frame, [name for name in gaps if name != self.described.group])
        worst = next(iter(counts.per_column))
        row = int(np.argmax(gaps[worst]))
        return InvalidInput(
            f"{frame.source}: values are missing: {counts.describe()}; {incomplete.sum():,} of "
            f"{len(frame):,} rows lack one, the first {worst!r} in row {row + 1} (line "
            f"{frame.lines[row]}).",
            hint="fill them in here (fill_missing: the median of numbers, a value of its own for "
            "texts), leave a column out (leave_out), or leave these rows out (drop_missing); if "
            "the text is a value of its own, missing says how a missing one is written.",
            remedies=("fill_missing", "leave_out", "drop_missing", "missing"),
            column=worst,
            row=row,
            value="missing",
        )

    def labels(self) -> tuple[IntArray, str]:
        """+1 where the outcome is the good one, -1 elsewhere; and the value taken as good. Where it
        cannot be known, zeros: rates are then not looked at.
        """
        frame = self.frame
        name = self.described.label
        try:
            label, good = two_values(frame, name, self.described.good, self.described.bad)
        except InvalidInput as error:
            self.errors.append(error)
            return np.zeros(len(frame), dtype=np.int64), ""
        pairs = zip(frame.columns[name].texts, label, strict=True)
        matching = sorted({str(text) for text, value in pairs if value > 0})
        if len(matching) > 1 and "," not in good:
            text = f"the good outcome {good} is written in several ways: {', '.join(matching)}"
            self.notes.append(Note("label values", text, name))
        if not (label < 0).any():
            self.errors.append(
                BadLabel(
                    f"{frame.source}: every row has {name} = {good}; "
                    "good and bad outcomes are both needed.",
                    hint="name the column that holds the outcome, or add people with the other "
                    "one.",
                    argument="label",
                    column=name,
                )
            )
            return np.zeros(len(frame), dtype=np.int64), good
        return label.astype(np.int64), good

    def groups(self, label: IntArray) -> GroupArray:
        """The group of each row; there must be at least two, each with enough people."""
        frame = self.frame
        name = self.described.group
        fewest = self.described.fewest or 0
        group = np.array(group_texts(frame, name, self.notes))
        distinct = sorted(set(group.tolist()), key=str)
        if None in distinct:
            return group  # that is an error already
        if len(distinct) > MOST_GROUPS:
            self.errors.append(
                InvalidInput(
                    f"{frame.source}: the group column {name!r} has {len(distinct)} distinct "
                    f"values; at most {MOST_GROUPS} groups are compared.",
                    hint="name the column that holds the group, or choose some of its values "
                    "(groups).",
                    argument="group",
                    remedies=("groups",),
                    column=name,
                )
            )
            return group
        if len(distinct) < 2:
            self.errors.append(
                InvalidInput(
                    f"{frame.source}: all people are of group {distinct[0]!r} "
                    f"({counted(len(group))}); a gap needs at least two groups.",
                    hint="name another column, or add people of another group.",
                    argument="group",
                    column=name,
                )
            )
            return group
        for value in distinct if label.any() else ():
            here = label[group == value]
            good = int((here == 1).sum())
            bad = int((here == -1).sum())
            if min(good, bad) < fewest:
                self.errors.append(
                    InvalidInput(
                        f"{frame.source}: group {value!r} has {counted(len(here))}, {good} with a "
                        f"good and {bad} with a bad outcome; at least {fewest} of each are needed "
                        "to estimate its rates.",
                        hint="join it with another group, leave it out (groups names those to "
                        "keep), or require fewer people (fewest).",
                        remedies=("groups", "fewest"),
                        column=name,
                        value=repr(value),
                    )
                )
        return group

    def note_features(self, names: tuple[str, ...]) -> None:
        """Note how features are written, which ones say nothing, and which ones name people."""
        for name in names:
            column = self.frame.columns[name]
            read = column.numbers
            notation = column.notation
            if read is None or notation is None or column.missing.all():
                continue
            place = int(np.argmin(column.missing))  # the first row with a value
            value = float(read[place])
            given = column.cells[place]
            first = given.decode() if isinstance(given, bytes) else given
            if notation.kind == "date":
                text = f"{name!r} holds dates, as days since 1970-01-01: {first} is {value:g}"
                self.notes.append(Note("notation", text, name))
            elif notation.kind == "flag":
                if number(first) != value:  # 0 and 1 are what they are
                    text = f"{name!r} holds yes and no, as 1 and 0: {first} is {value:g}"
                    self.notes.append(Note("notation", text, name))
            elif (
                column.number_format is not None
                and isinstance(first, str)
                and number(first) != value
            ):
                text = f"{name!r} is written like {first!r}, which is read as {value:.10g}"
                self.notes.append(Note("notation", text, name))
            if column.missing.any():
                continue  # that values are missing says something
            if len(read) > 1 and (read == value).all():
                text = f"{name!r} is {first} in every row and says nothing about a person"
                self.notes.append(Note("constant", text, name))
            elif self.frame.may_name_people(name):
                text = (
                    f"{name!r} is another whole number in every row; if it names people, leave it "
                    "out (id or leave_out)"
                )
                self.notes.append(Note("identifier", text, name, ("id", "leave_out")))


def with_missing_group(frame: Frame, name: str) -> Frame:
    """Make a group of the people whose group is missing.

    Parameters
    ----------
    frame : Frame
        The rows.
    name : str
        The column of the group.

    Returns
    -------
    Frame
        The same rows, in which they are of the group `MISSING_VALUE`.

    Examples
    --------
    >>> frame = Frame("toy", {"sex": TableColumn(("f", ""))}, (2, 3))
    >>> with_missing_group(frame, "sex")["sex"].texts
    ('f', 'missing')
    """
    texts = tuple(MISSING_VALUE if text is None else text for text in frame[name].texts)
    return replace(frame, columns={**frame.columns, name: TableColumn(texts)})


def chosen_groups(frame: Frame, name: str, groups: tuple[str, ...]) -> Frame:
    """Keep the rows of some groups.

    Parameters
    ----------
    frame : Frame
        The rows.
    name : str
        The column of the group.
    groups : tuple of str
        The groups; empty for all.

    Returns
    -------
    Frame
        The rows of these groups.

    Raises
    ------
    InvalidInput
        If one of them does not occur.

    Examples
    --------
    >>> from evenhand.tables.column import TableColumn
    >>> frame = Frame("toy", {"sex": TableColumn(("f", "m", "x"))}, (2, 3, 4))
    >>> chosen_groups(frame, "sex", ("f", "m")).lines
    (2, 3)
    """
    if not groups:
        return frame
    texts = frame.columns[name].texts
    where = f"the group column {name!r}"
    chosen = {text for wanted in groups for text in matching_values(wanted, texts, where, "groups")}
    return frame.where(np.array([text in chosen for text in texts], dtype=bool))


def matching_values(
    value: str, texts: Iterable[str | None], where: str, argument: str
) -> list[str]:
    """Find the values of a column that mean the same as a given one.

    1 and 1.0 mean the same, as do yes and Yes; and Y, if the column holds nothing but words for yes
    and no.

    Parameters
    ----------
    value : str
        The value as it was asked for.
    texts : iterable of str or None
        The values of the column.
    where : str
        The column in words, for the error.
    argument : str
        The argument that gave the value, for the error.

    Returns
    -------
    list of str
        The values as the column has them, `value` itself first.

    Raises
    ------
    InvalidInput
        If it does not occur.

    Examples
    --------
    >>> matching_values("Yes", ["yes", "Y", "n", None], "the label", "good")
    ['Y', 'yes']
    """
    distinct = sorted({text for text in texts if text is not None})
    same = [text for text in distinct if _alike(text, value)]
    words = {text.lower() for text in distinct}
    side = next((side for side in (TRUE, FALSE) if value.strip().lower() in side), frozenset())
    if words <= TRUE | FALSE and side and any(number(word) is None for word in words):
        same = [text for text in distinct if text.lower() in side]
    same.sort(key=lambda text: text != value)
    if not same:
        raise InvalidInput(
            f"{argument} {value!r} does not occur in {where}; "
            f"its values are: {listed(distinct, 10)}.",
            hint="name a value that occurs; blanks around it and upper or lower case do not "
            "matter.",
            argument=argument,
            value=repr(value),
        )
    return same


def _alike(text: str, other: str) -> bool:
    """Whether two values are one: equal numbers, or texts that differ in case alone."""
    return same_value(text, other) or text.casefold() == other.strip().casefold()


@dataclass(frozen=True)
class TwoValues:
    """How messages speak of a column with two values: what it is, and the arguments that name them.

    Parameters
    ----------
    noun : str
        What the column is called.
    first, one, requirement : str
        What the first value means, in one word, and what the two values are.
    argument, other : str
        The arguments that name the first value and the others.

    Examples
    --------
    >>> DECISION.argument
    'accepted'
    """

    noun: str
    first: str
    one: str
    requirement: str
    argument: str
    other: str


OUTCOME = TwoValues(
    noun="label",
    first="the good outcome",
    one="good",
    requirement="an outcome is good or bad",
    argument="good",
    other="bad",
)
DECISION = TwoValues(
    noun="decision",
    first="an acceptance",
    one="accepted",
    requirement="a person is accepted or rejected",
    argument="accepted",
    other="rejected",
)


def two_values(
    frame: Frame,
    name: str,
    first: str | None,
    others: tuple[str, ...] = (),
    words: TwoValues = OUTCOME,
) -> tuple[FloatArray, str]:
    """Read a column with two values.

    Parameters
    ----------
    frame : Frame
        The rows.
    name : str
        The column.
    first : str, optional
        The value that becomes +1, or several with commas between them; by default the only value
        besides `others`, or 1 where the column holds 0 and 1, or -1 and 1. It need not occur where
        `others` are all values that do.
    others : tuple of str
        The values that become -1, which must be named where there are several.
    words : TwoValues
        How messages speak of it.

    Returns
    -------
    tuple
        +1, -1, or not a number where the value is missing; and the value taken as the first.

    Raises
    ------
    BadLabel
        If it is not clear which value is which. Nothing is guessed from the alphabet.

    Examples
    --------
    >>> from evenhand.tables.column import TableColumn
    >>> frame = Frame("loans", {"repaid": TableColumn(("yes", "no", ""))}, (2, 3, 4))
    >>> two_values(frame, "repaid", "yes")
    (array([ 1., -1., nan]), 'yes')
    >>> two_values(frame, "repaid", None, ("no",))
    (array([ 1., -1., nan]), 'yes')
    """
    texts = frame.columns[name].texts
    distinct = sorted({text for text in texts if text is not None})
    named = {text for text in distinct if any(_alike(text, other) for other in others)}
    unnamed = [text for text in distinct if text not in named]
    if first is None and named and unnamed and all(_alike(unnamed[0], text) for text in unnamed):
        first = unnamed[0]
    if first is None:
        read = {number(text): text for text in distinct}
        usual = any(set(read) <= pair for pair in ({0.0, 1.0}, {-1.0, 1.0}))
        if not read or not usual or len(read) < len(distinct):
            raise BadLabel(
                f"{frame.source}: the {words.noun} column {name!r} holds {listed(distinct)}; "
                f"unless a value is named, it must hold 0 and 1, or -1 and 1 (1 is {words.one}).",
                hint=f"say which of its values is {words.first} ({words.argument}).",
                argument=words.argument,
                column=name,
            )
        chosen = [read[1.0]] if 1.0 in read else []
        shown_as = "1"
    elif named and named.issuperset(distinct):
        chosen = []
        shown_as = first
    else:
        where = f"the {words.noun} column {name!r}"
        # A value may itself hold a comma: it is split only where the whole does not occur.
        whole = "," not in first or any(_alike(text, first) for text in distinct)
        wanted = [first] if whole else [part.strip() for part in first.split(",") if part.strip()]
        alike = [matching_values(one, distinct, where, words.argument) for one in wanted]
        chosen = [text for several in alike for text in several]
        shown_as = ",".join(several[0] for several in alike)
        if named & set(chosen):
            both = sorted(named & set(chosen))
            raise BadLabel(
                f"{frame.source}: {both[0]!r} is named as {words.argument} and as {words.other}",
                requirement=words.requirement,
                hint="name it once.",
                argument=words.argument,
                column=name,
            )
    rest = [text for text in distinct if text not in chosen]
    flags = {text.lower() for text in distinct} <= TRUE | FALSE
    one = flags or all(_alike(text, rest[0]) for text in rest)
    if not named.issuperset(rest) and (others or not one):
        shown = ", ".join(map(repr, rest[:5]))
        raise BadLabel(
            f"{frame.source}: besides {shown_as!r} the {words.noun} {name!r} has the values "
            f"{shown}",
            requirement=words.requirement,
            hint=f"name every value that counts as {words.one} ({words.argument}: A,B) and all "
            f"others ({words.other}), and remove rows that are neither.",
            argument=words.other,
            remedies=(words.argument,),
            column=name,
        )
    sign = {text: 1.0 if text in chosen else -1.0 for text in distinct}
    values = [np.nan if text is None else sign[text] for text in texts]
    return np.array(values, dtype=np.float64), shown_as


def group_texts(frame: Frame, name: str, notes: list[Note]) -> list[str | None]:
    """Read the group of each row; groups whose names differ in case alone are one.

    Parameters
    ----------
    frame : Frame
        The rows.
    name : str
        The column.
    notes : list of Note
        Gets a note where names were joined.

    Returns
    -------
    list of str or None
        The group of each row, None where it is missing.

    Examples
    --------
    >>> from evenhand.tables.column import TableColumn
    >>> frame = Frame("toy", {"sex": TableColumn(("f", "F", "f", "m"))}, (2, 3, 4, 5))
    >>> notes = []
    >>> group_texts(frame, "sex", notes)
    ['f', 'f', 'f', 'm']
    >>> print(notes[0])
    the groups F, f of 'sex' are taken for one, f
    """
    texts = frame.columns[name].texts
    sizes = Counter(texts)
    folded: dict[str, list[str]] = {}
    for text in sorted(text for text in sizes if text is not None):
        folded.setdefault(text.casefold(), []).append(text)
    shown: dict[str | None, str | None] = {None: None}
    for several in folded.values():
        most = max(several, key=lambda text: sizes[text])
        shown |= dict.fromkeys(several, most)
        if len(several) > 1:
            text = f"the groups {', '.join(several)} of {name!r} are taken for one, {most}"
            notes.append(Note("joined groups", text, name))
    return [shown[text] for text in texts]
