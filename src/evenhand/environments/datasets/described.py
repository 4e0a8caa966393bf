"""The user's own table: a CSV or Parquet file, and a few lines of TOML that say what its columns
mean.

    path = "loans.csv"            # beside the description; .csv or .parquet
    label = "repaid"              # the outcome
    good = "yes"                  # its good value
    group = "sex"                 # whose rates are compared

    # only where needed
    bad = ["no"]                  # its bad values, if there is a third value; rows with others are left out
    groups = ["f", "m"]           # keep these groups only
    features = ["income", "age"]  # default: all columns but label, group, id and decision
    id = "customer"               # refused if it names somebody twice
    encode = true                 # text columns become one 0/1 column per value
    drop_missing = true           # leave out rows with a missing value
    decision = "granted"          # the historic decision, never a feature
    unlabelled = "drop"           # leave out people without a label: those who were rejected
    delimiter = ";"
    title, licence, caveat        # free text, shown by `evenhand data show`

Nothing is guessed: what cannot be read as it stands is refused with the key that would settle it.
"""

import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from evenhand.environments.datasets import columns
from evenhand.environments.datasets.tables import Table
from evenhand.errors import BadLabel, InvalidInput
from evenhand.words import GroupArray, IntArray

FEWEST = 10
"""People with each outcome that every group needs: with fewer no rate can be estimated, let alone
certified.
"""


@dataclass(frozen=True)
class Description:
    """What the columns of a table mean; see the module's text."""

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
    title: str = ""
    licence: str = ""
    caveat: str = ""
    name: str = field(default="")

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.path.stem)
        if self.unlabelled not in (None, "drop"):
            raise InvalidInput(
                f'unlabelled is {self.unlabelled!r}; it is "drop", or left out.',
                hint="people without a label can be left out, or the label filled in; nothing is made up for them.",
            )
        if self.label == self.group:
            raise InvalidInput(
                f"{self.label!r} is both the label and the group; they are two columns.",
                hint="the label is the outcome, the group says whose rates are compared.",
            )
        if {self.label, self.group} & set(self.features):
            both = ", ".join(sorted({self.label, self.group} & set(self.features)))
            raise InvalidInput(
                f"features names {both}; the label and the group cannot be features: nobody may be decided about by them.",
                hint="leave it out of features (--features).",
            )


def read_description(path: Path) -> Description:
    """The description in a TOML file; unknown keys and wrong kinds are refused."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(
            f"{path} cannot be read as a description: {error}.", hint="it is a TOML file."
        ) from error
    known = {entry.name: entry for entry in fields(Description)}
    unknown = [key for key in told if key not in known]
    if unknown:
        raise InvalidInput(
            f"{path} has the unknown key {unknown[0]!r}.", hint=f"the keys are {', '.join(known)}."
        )
    missing = [key for key in ("path", "label", "group") if key not in told]
    if missing:
        raise InvalidInput(
            f"{path} does not say {missing[0]!r}.", hint="path, label and group are always needed."
        )
    values = {key: _value(path, key, value) for key, value in told.items()}
    return Description(**{**values, "path": path.parent / values["path"]})


def _value(source: Path, key: str, value: Any) -> Any:
    if key in ("bad", "groups", "features"):
        several = value if isinstance(value, list) else [value]
        return tuple(_text(source, key, item) for item in several)
    if key in ("encode", "drop_missing"):
        if not isinstance(value, bool):
            raise InvalidInput(f"{source}: {key} is {value!r}; it is true or false.")
        return value
    return _text(source, key, value)


def _text(source: Path, key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(
            f"{source}: {key} is {value!r}; it is a text.", hint="put it between quotes."
        )
    return str(value)


def read_described(described: Description) -> Table:
    """The table as the description says; every complaint about it is made here."""
    raw = _read(described)
    if len(raw) < 2:
        raise InvalidInput(
            f"{raw.source} has one row; rates of groups need many people.",
            hint=f"a table needs at least {FEWEST} people with each outcome in every group.",
        )
    names = list(described.features) or _all_but(raw, described)
    raw.require([described.label, described.group, *names])
    notes: list[str] = []
    rows = _identified(raw, described)
    rows = _labelled(rows, described, notes)
    if described.groups:
        rows = columns.keep_groups(rows, described.group, described.groups)
    rows = _present(rows, [described.label, described.group, *names], described, notes)
    label = _labels(rows, described)
    group = columns.groups(rows, described.group)
    found = columns.features(rows, names, described.encode)
    notes += [
        f"the text column {name!r} became {len(parts)} columns of 0 and 1"
        for name, parts in found.encoded.items()
    ]
    notes += [
        f"{name!r} is another whole number in every row; if it names people, leave it out: id = {name!r} in a description, or --features"
        for name in found.names
        if _names_people(rows, name)
    ]
    _require_people(rows.source, group, label)
    return Table(described.name, found.values, found.names, group, label, notes=tuple(notes))


def _read(described: Description) -> columns.TextTable:
    if not described.path.is_file():
        raise InvalidInput(
            f"there is no file {described.path}.", hint="path is relative to the description."
        )
    if described.path.suffix.lower() in (".parquet", ".pq"):
        return columns.read_parquet(described.path)
    return columns.read_table(described.path, described.delimiter)


def _all_but(table: columns.TextTable, described: Description) -> list[str]:
    reserved = (described.label, described.group, described.id, described.decision)
    names = [name for name in table.columns if name not in reserved]
    if not names:
        raise InvalidInput(
            f"{table.source} has nothing but label and group: no column is left to decide by.",
            hint="add what is known about a person before the decision.",
        )
    return names


def _identified(table: columns.TextTable, described: Description) -> columns.TextTable:
    if described.id is None:
        return table
    twice = [value for value, count in Counter(table.column(described.id)).items() if count > 1]
    if twice:
        raise InvalidInput(
            f"{table.source}: the id {twice[0]!r} occurs more than once ({len(twice)} ids do); every row is one person.",
            hint="remove the repeated rows, or leave out the key id if a person may occur several times.",
        )
    return table


def _names_people(table: columns.TextTable, name: str) -> bool:
    """Whether a column holds a different whole number in every row; it is said, and nothing is done
    about it.
    """
    values = table.columns.get(name, ())
    return (
        len(values) > 1
        and len(set(values)) == len(values)
        and all(value.isdecimal() for value in values)
    )


def _labelled(
    table: columns.TextTable, described: Description, notes: list[str]
) -> columns.TextTable:
    """The rows with a label.

    That the rejected have none is normal; then the table is about people like the accepted.
    """
    values = table.column(described.label)
    unknown = [i for i, value in enumerate(values) if value.lower() in columns.MISSING]
    if not unknown:
        return table
    if described.unlabelled != "drop":
        raise InvalidInput(
            f"{table.source}: the label {described.label!r} is missing in {len(unknown):,} of {len(table):,} rows (first: line "
            f"{table.lines[unknown[0]]}).",
            hint='for people who were rejected that is normal: unlabelled = "drop" (--drop-unlabelled) leaves them out, and every '
            "figure is then about people like those who were accepted.",
        )
    if len(unknown) == len(table):
        raise BadLabel(
            f"{table.source}: the label {described.label!r} is missing in every row ({len(table):,}); outcomes of some are needed.",
            hint="name the column that holds the outcome: label (--label).",
        )
    gone = set(unknown)
    notes.append(
        f"{len(gone):,} people without a label were left out: every figure is about people like the accepted ones"
    )
    return table.keep(lambda row: row not in gone)


def _present(
    table: columns.TextTable, names: Sequence[str], described: Description, notes: list[str]
) -> columns.TextTable:
    nobody = table.missing([described.group])
    if nobody and not described.drop_missing:
        raise InvalidInput(
            f"{table.source}: the group {described.group!r} is missing in {len(nobody):,} of {len(table):,} rows (first: line "
            f"{table.lines[nobody[0][0]]}); whoever has no group counts for no rate.",
            hint="write a group of their own (such as unknown) into the table, or leave these rows out: drop_missing = true "
            "(--drop-missing).",
        )
    if described.drop_missing:
        kept = columns.drop_missing(table, names)
        if len(kept) < len(table):
            notes.append(f"{len(table) - len(kept):,} rows with a missing value were left out")
        table = kept
    columns.require_present(table, names)
    return table


def _labels(table: columns.TextTable, described: Description) -> IntArray:
    """+1 and -1; a third value is refused unless `bad` names what is bad."""
    label, good = columns.labels(table, described.label, described.good)
    others = sorted(set(table.column(described.label)) - {good})
    if described.bad:
        unknown = [value for value in others if value not in described.bad]
        others = [value for value in others if value in described.bad] if not unknown else others
    if len(others) > 1 and set(others) != set(described.bad):
        shown = ", ".join(map(repr, others[:5]))
        raise BadLabel(
            f"{table.source}: besides {good!r} the label {described.label!r} has the values {shown}; an outcome is good or bad.",
            hint=f"in a description (.toml) name the bad ones, bad = [{shown}], and remove rows whose outcome is neither.",
        )
    return label


def _require_people(source: str, group: GroupArray, label: IntArray) -> None:
    values = sorted(set(group.tolist()))
    if len(values) < 2:
        raise InvalidInput(
            f"{source}: everybody is of group {values[0]!r}; a gap needs at least two groups.",
            hint="name another column (--group), or add people of another group.",
        )
    for value in values:
        here = label[group == value]
        good, bad = int((here == 1).sum()), int((here == -1).sum())
        if min(good, bad) < FEWEST:
            raise InvalidInput(
                f"{source}: group {value!r} has {len(here)} people, {good} with a good and {bad} with a bad outcome; at least {FEWEST} "
                "of each are needed to estimate its rates.",
                hint="join it with another group, or leave it out: groups = [...] (--groups) keeps those that are named.",
            )


def load_path(path: Path) -> Table:
    """The table that a description (.toml) tells."""
    if path.suffix.lower() != ".toml":
        raise InvalidInput(
            f"{path} is no description.",
            hint="describe the table in a TOML file, or name its columns: --label and --group.",
        )
    return read_described(read_description(path))
