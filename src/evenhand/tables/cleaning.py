"""A frame becomes a table of people: what is left out or filled in, and every error about a table
that is not as it must be.

`Description` says what the columns mean. What it leaves open is an error that names the argument
which would settle it; all of them are collected, so that whoever has to change the call changes it
once.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import BadLabel, InvalidInput, raise_all
from evenhand.shown import counted
from evenhand.tables.column import listed, number
from evenhand.tables.description import (
    READING,
    Description,
    describe,
    given_fields,
    own_description,
    require_meaning,
)
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
from evenhand.tables.values import chosen_groups, group_texts, two_values, with_missing_group
from evenhand.words import BoolArray, GroupArray, IntArray

FEWEST = 10
"""People with each outcome that every group needs: with fewer no rate can be estimated, let alone
certified."""
MOST_GROUPS = 30


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
        source = replace(source, **given_fields("read_table", meaning))
    if isinstance(source, Description):
        frame = _rows(source.path, source.reading)
    else:
        require_meaning("the frame", meaning)
        given = given_fields("read_table", meaning)
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
