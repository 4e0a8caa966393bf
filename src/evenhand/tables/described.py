"""What the columns of a table mean, and every complaint about a table that does not keep the law.

    path = "loans.csv"            # beside the description; .csv or .parquet
    label = "repaid"              # the outcome
    good = "yes"                  # its good value
    group = "sex"                 # whose rates are compared

    # only where needed
    bad = ["no", "late"]          # its bad values, if there is more than one
    groups = ["f", "m"]           # keep these groups only
    features = ["income", "age"]  # default: all columns but label, group, id and decision
    id = "customer"               # refused if it names somebody twice
    encode = true                 # text columns become one 0/1 column per value
    drop_missing = true           # leave out rows with a missing value
    decision = "granted"          # the historic decision, never a feature
    unlabelled = "drop"           # leave out people without a label: those who were rejected
    delimiter = ";"
    missing = ["-99"]             # how a missing value is written, instead of NA, ? and so on
    needed = ["amount"]           # further columns that must have a value in every row
    fewest = 10                   # people with each outcome that every group needs
    title, licence, caveat        # free text, shown by `evenhand data show`

Nothing is guessed: what cannot be read as it stands is refused with the key that would settle it.
The options of the command line have the same names.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import BadLabel, InvalidInput
from evenhand.tables.frame import Frame, LabelledFrame, listed, number, same_value
from evenhand.tables.published import TABLES
from evenhand.tables.reading import read_frame
from evenhand.words import GroupArray, IntArray

FEWEST = 10
"""People with each outcome that every group needs: with fewer no rate can be estimated, let alone
certified."""
MOST_GROUPS = 30


@dataclass(frozen=True)
class Description:
    """What the columns of a table mean.

    Parameters
    ----------
    path : Path
        The file: CSV or Parquet.
    label : str
        The column of the outcome.
    group : str
        The column of the group.
    good : str, optional
        The good outcome; by default 1 where the label holds 0 and 1, or -1 and 1.
    bad : tuple of str
        The bad outcomes, which must be named where there are several.
    groups : tuple of str
        The groups to keep; by default all.
    features : tuple of str
        What a decision may look at; by default all columns but label, group, id and decision.
    id : str, optional
        A column that names people; it is no feature, and nobody may occur twice.
    encode : bool
        Whether text columns become one 0/1 column per value.
    drop_missing : bool
        Whether rows are left out that lack the group, a feature or a needed value.
    decision : str, optional
        A column with the historic decision, which is no feature.
    unlabelled : str, optional
        "drop" leaves out people without an outcome.
    delimiter : str
        What separates the cells of a CSV.
    missing : tuple of str, optional
        How a missing value is written, instead of the usual ways (`MISSING`).
    needed : tuple of str
        Further columns that must have a value in every row, such as prices.
    fewest : int, optional
        How many people with each outcome every group needs; by default 10.
    title, licence, caveat : str
        What `evenhand data show` tells.
    name : str
        What the table is called; by default as the file.

    Examples
    --------
    >>> Description(Path("loans.csv"), label="repaid", group="sex").name
    'loans'
    >>> Description(Path("loans.csv"), label="sex", group="sex")
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: 'sex' is both --label and --group; they are two columns. Hint: the
    label is the outcome, the group says whose rates are compared.
    """

    path: Path
    label: str
    group: str
    good: str | None = None
    bad: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    id: str | None = None
    encode: bool = False
    drop_missing: bool = False
    decision: str | None = None
    unlabelled: str | None = None
    delimiter: str = ","
    missing: tuple[str, ...] | None = None
    needed: tuple[str, ...] = ()
    fewest: int | None = None
    title: str = ""
    licence: str = ""
    caveat: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.path.stem)
        if self.unlabelled not in (None, "drop"):
            raise InvalidInput(
                f'unlabelled is {self.unlabelled!r}; it is "drop", or left out.',
                hint="people without a label can be left out, or the label filled in; "
                "nothing is made up for them.",
            )
        if self.label == self.group:
            raise InvalidInput(
                f"{self.label!r} is both --label and --group; they are two columns.",
                hint="the label is the outcome, the group says whose rates are compared.",
            )
        if self.label in self.features:
            raise InvalidInput(
                f"{self.label!r} cannot be a feature: label and group cannot be features, "
                "and the label is what the decision is about.",
                hint="leave it out of --features.",
            )
        if self.group in self.features:
            raise InvalidInput(
                f"{self.group!r} cannot be a feature: label and group cannot be features, "
                "because hypotheses would decide by the group.",
                hint="leave it out of --features; "
                "if the group may influence decisions, add --group-use decide.",
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
    known = [entry.name for entry in fields(Description)]
    unknown = [key for key in given if key not in known]
    if unknown:
        raise InvalidInput(
            f"{path} has the unknown key {unknown[0]!r}.", hint=f"the keys are {', '.join(known)}."
        )
    absent = [key for key in ("path", "label", "group") if key not in given]
    if absent:
        raise InvalidInput(
            f"{path} does not say {absent[0]!r}.", hint="path, label and group are always needed."
        )
    values = {key: _value(path, key, value) for key, value in given.items()}
    return Description(**{**values, "path": path.parent / values["path"]})


def _value(source: Path, key: str, value: Any) -> Any:
    """The value of a key; InvalidInput if it has another type than the key's."""
    if key in ("bad", "groups", "features", "missing", "needed"):
        several = value if isinstance(value, list) else [value]
        return tuple(_value(source, "an entry of " + key, item) for item in several)
    if key in ("encode", "drop_missing"):
        if not isinstance(value, bool):
            raise InvalidInput(f"{source}: {key} is {value!r}; it is true or false.")
        return value
    if key == "fewest" and isinstance(value, int):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(
            f"{source}: {key} is {value!r}; it is a text.", hint="put it between quotes."
        )
    return str(value)


def describe(source: str | Path, **meaning: Any) -> Description | None:
    """Say what the columns of a table mean, without reading its rows.

    Parameters
    ----------
    source : str or Path
        The name of a published table, a description (.toml), or a CSV or Parquet file.
    **meaning
        For a CSV or Parquet file: the fields of `Description`. The others know it themselves.

    Returns
    -------
    Description or None
        None for a published table, which needs no description.

    Raises
    ------
    InvalidInput
        If there is no such table, or if nothing says what its columns mean.

    Examples
    --------
    >>> describe("lending") is None
    True
    """
    name, path = str(source), Path(source)
    published = name in TABLES.own or not path.is_file()
    if published and name not in TABLES:
        raise InvalidInput(
            f"there is no table {name!r}.",
            hint=f"known are {', '.join(TABLES)}; "
            "or give the path of a CSV or Parquet file, or of a description (.toml).",
        )
    if published:
        return None
    if path.suffix.lower() == ".toml":
        return read_description(path)
    for key in ("label", "group"):
        if meaning.get(key) is None:
            raise InvalidInput(
                f"Missing option '--{key}': {name} is a file of rows, "
                "and nothing says what its columns mean.",
                hint="add --label COL and --group COL, or describe it in a .toml file.",
            )
    return Description(path, **meaning)


def read_table(source: Any, *, fewest_by_default: int = FEWEST, **meaning: Any) -> LabelledFrame:
    """Read a table of people, whatever it is: the one way in for every command.

    Parameters
    ----------
    source : str, Path, Description or data frame
        The name of a published table, a description (.toml), a CSV or Parquet file, a
        `Description`, or a frame of pandas, polars or pyarrow.
    fewest_by_default : int
        What `fewest` is where neither `meaning` nor a description says it.
    **meaning
        The fields of `Description`; they come before those of a description. A published table
        takes `group`, the name of another grouping that it offers, and `features`.

    Returns
    -------
    LabelledFrame
        The people, typed and checked; `.encoded()` turns them into numbers.

    Raises
    ------
    InvalidInput
        If the table does not keep the law; the message names the row and the option that helps.

    Notes
    -----
    A command does ``frame = read_table(data, label=..., group=..., ...)`` and then ``table =
    frame.encoded()``; nothing else of this package is needed.

    Examples
    --------
    >>> table = read_table("lending").encoded()
    >>> len(table), table.names[:2], [one.group for one in table.figures]
    (1200, ('income', 'credit_score'), ['a', 'b'])
    """
    usual = {entry.name: entry.default for entry in fields(Description)}
    given = {key: value for key, value in meaning.items() if value != usual.get(key)}
    if isinstance(source, str | Path):
        described = describe(source, **meaning)
        if described is None:
            return _published(str(source), given)
        source = replace(described, **given)
    if isinstance(source, Description):
        if not source.path.is_file():
            raise InvalidInput(
                f"there is no file {source.path}.", hint="path is relative to the description."
            )
        frame = read_frame(source.path, source.delimiter, source.missing)
    else:
        frame = read_frame(source, missing=meaning.get("missing"))
        source = Description(Path("frame"), **meaning)
    fewest = fewest_by_default if source.fewest is None else source.fewest
    return _checked(frame, replace(source, fewest=fewest))


def _published(name: str, given: dict[str, Any]) -> LabelledFrame:
    """A published table by name, with another grouping or with some of its features."""
    for key in given:
        if key not in ("group", "features", "needed", "fewest"):
            raise InvalidInput(
                f"--{key.replace('_', '-')} cannot be given for {name}, "
                "which says itself what its columns mean.",
                hint="leave the option out, or name the columns of a CSV or Parquet file.",
            )
    table = TABLES[name].read(given.get("group"))
    table.frame.require([*given.get("features", ()), *given.get("needed", ())])
    return replace(table, features=given.get("features", table.features))


def _features(frame: Frame, described: Description) -> tuple[str, ...]:
    """The columns that a decision may look at; all columns that are named exist."""
    if len(frame.lines) < 2:
        raise InvalidInput(
            f"{frame.source} has one row; rates of groups need many people.",
            hint="a table needs people with each outcome in every group.",
        )
    reserved = (described.label, described.group, described.id, described.decision)
    names = described.features or tuple(name for name in frame.columns if name not in reserved)
    frame.require([described.label, described.group, *names, *described.needed])
    if not names:
        raise InvalidInput(
            f"{frame.source} has nothing but the label and the group: "
            "no column is left to decide by.",
            hint="add what is known about a person before the decision.",
        )
    if described.id is not None:
        twice = [text for text, n in Counter(frame[described.id].texts).items() if n > 1]
        if twice:
            raise InvalidInput(
                f"{frame.source}: the id {twice[0]!r} occurs more than once ({len(twice)} ids do); "
                "every row is one person.",
                hint="remove the repeated rows, "
                "or leave out the key id if a person may occur several times.",
            )
    return names


def _checked(frame: Frame, described: Description) -> LabelledFrame:
    """The rows that a decision can be learnt from; every complaint about the table is made here."""
    names = _features(frame, described)
    notes: list[str] = []
    kept = _complete(_labelled(frame, described, notes), described, names, notes)
    label, good = _labels(kept, described)
    group = _groups(kept, described, label)
    for name in names:
        texts = kept.columns[name].texts
        if len(set(texts)) == len(texts) and all(text and text.isdecimal() for text in texts):
            notes.append(
                f"{name!r} is another whole number in every row; if it names people, leave it out: "
                f"id = {name!r} in a description, or --features"
            )
    return LabelledFrame(
        name=described.name,
        frame=kept,
        features=names,
        label=label,
        group=group,
        label_name=described.label,
        good=good,
        group_name=described.group,
        encode=described.encode,
        dropped=len(frame.lines) - len(kept.lines),
        notes=tuple(notes),
    )


def _labelled(frame: Frame, described: Description, notes: list[str]) -> Frame:
    """The rows with a label; that the rejected have none is normal."""
    unknown, rows = frame.columns[described.label].missing, len(frame.lines)
    if not unknown.any():
        return frame
    if unknown.all():
        raise BadLabel(
            f"{frame.source}: the label {described.label!r} is missing in every row ({rows:,}); "
            "outcomes of some are needed.",
            hint="name the column that holds the outcome: label (--label).",
        )
    if described.unlabelled != "drop":
        raise InvalidInput(
            f"{frame.source}: the label {described.label!r} is missing in {unknown.sum():,} of "
            f"{rows:,} rows (first: line {frame.lines[int(np.argmax(unknown))]}).",
            hint='for people who were rejected that is normal: unlabelled = "drop" '
            "(--drop-unlabelled) leaves them out, and every figure is then about people like those "
            "who were accepted.",
        )
    notes.append(
        f"{unknown.sum():,} people without a label were left out: "
        "every figure is about people like the accepted ones"
    )
    return frame.where(~unknown)


def _complete(
    frame: Frame, described: Description, names: tuple[str, ...], notes: list[str]
) -> Frame:
    """The rows of the chosen groups in which nothing that is used is missing."""
    if described.groups:
        texts = frame.columns[described.group].texts
        where = f"the group column {described.group!r}"
        chosen = {
            text for wanted in described.groups for text in _spelt(wanted, texts, where, "--groups")
        }
        frame = frame.where(np.array([text in chosen for text in texts], dtype=bool))
    used = (described.group, *names, *described.needed)
    gaps = {name: frame.columns[name].missing for name in used}
    incomplete, nobody = np.any(list(gaps.values()), axis=0), gaps[described.group]
    if not incomplete.any():
        return frame
    if described.drop_missing and not incomplete.all():
        notes.append(f"{incomplete.sum():,} rows with a missing value were left out")
        return frame.where(~incomplete)
    if described.drop_missing:
        raise InvalidInput(
            f"{frame.source}: every row lacks a value in one of {', '.join(used)}.",
            hint="choose other --features.",
        )
    if nobody.any():
        raise InvalidInput(
            f"{frame.source}: the group {described.group!r} is missing in {nobody.sum():,} of "
            f"{len(nobody):,} rows (first: line {frame.lines[int(np.argmax(nobody))]}); "
            "whoever has no group counts for no rate.",
            hint="write a group of their own (such as unknown) into the table, or leave these rows "
            "out: drop_missing = true (--drop-missing).",
        )
    row = int(np.argmax(incomplete))
    raise InvalidInput(
        f"{frame.source}: the value of {next(name for name in used if gaps[name][row])!r} is "
        f"missing in row {row + 1} (line {frame.lines[row]}); {incomplete.sum():,} of "
        f"{len(frame.lines):,} rows lack a value in a column that is used.",
        hint="fill them in, leave the column out with --features, or add --drop-missing to leave "
        "these rows out; if the text is a value of its own, --missing says how a missing one is "
        "written.",
    )


def _spelt(value: str, texts: Iterable[str | None], where: str, option: str) -> list[str]:
    """`value` as the column spells it, which may be in several ways: 1 and 1.0."""
    distinct = sorted({text for text in texts if text is not None})
    same = [text for text in distinct if same_value(text, value)]
    if not same:
        raise InvalidInput(
            f"{option} {value!r} does not occur in {where}; "
            f"its values are: {listed(distinct, 10)}.",
            hint="values are compared letter by letter, upper and lower case included.",
        )
    return same


def _labels(frame: Frame, described: Description) -> tuple[IntArray, str]:
    """+1 where the outcome is the good one, -1 elsewhere; and the value taken as good."""
    texts, name = [str(text) for text in frame.columns[described.label].texts], described.label
    distinct = sorted(set(texts))
    if described.good is None:
        read = {number(text): text for text in distinct}
        if set(read) not in ({0.0, 1.0}, {-1.0, 1.0}, {1.0}) or len(read) < len(distinct):
            raise BadLabel(
                f"{frame.source}: the label column {name!r} holds {listed(distinct)}; "
                "without --good it must hold 0 and 1, or -1 and 1 (1 is good).",
                hint=f"say which value is the good outcome, for example --good {distinct[-1]!r}.",
            )
        good = [read[1.0]]
    else:
        good = _spelt(described.good, distinct, f"the label column {name!r}", "--good")
    others = [text for text in distinct if text not in good]
    if not others:
        raise BadLabel(
            f"{frame.source}: every row has {name} = {good[0]}; "
            "good and bad outcomes are both needed.",
            hint="name the column that holds the outcome, or add people with the other one.",
        )
    named = [text for text in others if any(same_value(text, bad) for bad in described.bad)]
    if len(named) < len(others) and (described.bad or len(others) > 1):
        shown = ", ".join(map(repr, others[:5]))
        raise BadLabel(
            f"{frame.source}: besides {good[0]!r} the label {name!r} has the values {shown}; "
            "an outcome is good or bad.",
            hint=f"name all bad ones, --bad {','.join(others[:5])} (in a description bad = "
            f"[{shown}]), write each outcome in one way, and remove rows whose outcome is neither.",
        )
    sign = {text: 1 if text in good else -1 for text in distinct}
    return np.array([sign[text] for text in texts], dtype=np.int64), good[0]


def _groups(frame: Frame, described: Description, label: IntArray) -> GroupArray:
    """The group of each row; there must be at least two, each with enough people."""
    group = np.array(frame.columns[described.group].texts)
    distinct = sorted(set(group.tolist()))
    if len(distinct) > MOST_GROUPS:
        raise InvalidInput(
            f"{frame.source}: the group column {described.group!r} has {len(distinct)} distinct "
            f"values; at most {MOST_GROUPS} groups are compared.",
            hint="name the column that holds the group, or choose its values with --groups a,b.",
        )
    if len(distinct) < 2:
        raise InvalidInput(
            f"{frame.source}: everybody is of group {distinct[0]!r} ({len(group):,} people); "
            "a gap needs at least two groups.",
            hint="name another column (--group), or add people of another group.",
        )
    for value in distinct:
        here = label[group == value]
        good, bad = int((here == 1).sum()), int((here == -1).sum())
        if min(good, bad) < (described.fewest or 0):
            raise InvalidInput(
                f"{frame.source}: group {value!r} has {len(here)} people, {good} with a good and "
                f"{bad} with a bad outcome; at least {described.fewest} of each are needed to "
                "estimate its rates.",
                hint="join it with another group, leave it out (--groups keeps those that are "
                "named), or ask for fewer: --fewest.",
            )
    return group
