"""What the readers of all formats of logs share: how lines of text become objects, and how columns
become a log: which one has which role, and how labels, decisions and probabilities are written.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import BadLabel, InvalidInput, MissingColumn
from evenhand.evaluation.decision_log import DecisionLog, no_propensities
from evenhand.tables import Frame, TableColumn, group_texts, listed, number, same_value, spelt
from evenhand.words import BoolArray, FloatArray

ROLES = ("id", "group", "accept", "acceptance", "propensity", "label", "count")
FEATURE = "feature_"
"""With this prefix a column is a feature; without any such column all that have no role are."""
YES = frozenset({"1", "1.0", "true", "yes", "accept", "accepted"})
NO = frozenset({"0", "0.0", "false", "no", "reject", "rejected"})
TOLERANCE = 1e-6
"""How far two statements of one probability may differ: other tools write single precision."""


@dataclass(frozen=True)
class LogReading:
    """Where a log is from, and what its reader was told about it.

    columns: role -> name of the column where it differs; features: those to keep; good: the good
    value of the label; plain: whether cells are plain text, in which NA means that a group is
    missing (other formats can say so themselves); file: what `read_frame` is told of a file.
    """

    source: str
    columns: Mapping[str, str] = field(default_factory=dict)
    features: Sequence[str] | None = None
    good: str | None = None
    plain: bool = False
    file: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        strange = [role for role in self.columns if role not in ROLES]
        if strange:
            raise InvalidInput(
                f"{strange[0]!r} is no role of a column; the roles are {', '.join(ROLES)}."
            )

    def log(self, columns: Mapping[str, TableColumn]) -> DecisionLog:
        """The log that the columns hold."""
        # role -> column: as told, else the column of that name; the service writes `seq` for `id`
        named = {role: self.columns.get(role, role) for role in ROLES}
        for role, name in self.columns.items():
            if name not in columns:
                raise MissingColumn(
                    f"{self.source} has no column {name!r} for {role}; "
                    f"it has: {', '.join(columns)}.",
                    hint=Frame(self.source, columns, ()).missing_hint(name),
                )
        if named["id"] not in columns and "seq" in columns:
            named["id"] = "seq"
        roles = {role: columns[name] for role, name in named.items() if name in columns}
        missing = [role for role in ("accept", "label") if role not in roles]
        if missing:
            raise MissingColumn(
                f"{self.source} has no column for {' and '.join(missing)}; "
                f"it has: {', '.join(columns)}.",
                hint=f"name it: --column {missing[0]}=NAME (roles: {', '.join(ROLES)}).",
            )
        used = {name for name in named.values() if name in columns}
        accept = self.decisions(roles["accept"])
        features = self.feature_columns(columns, used)
        group, id = (
            None if column is None else column.texts if self.plain else column.cells
            for column in (roles.get("group"), roles.get("id"))
        )
        if group is not None and self.plain:  # names that differ in case alone are one
            group = group_texts(Frame(self.source, {"group": roles["group"]}, ()), "group", [])
        return DecisionLog.of(
            np.column_stack(list(features.values())) if features else np.zeros((len(accept), 0)),
            accept,
            self.acceptance(roles, accept),
            self.labels(roles["label"], accept),
            group=group,
            names=tuple(features),
            count=self.numbers(roles["count"], "count") if "count" in roles else 1.0,
            id=id,
            source=self.source,
        )

    def decisions(self, column: TableColumn) -> BoolArray:
        if isinstance(column.cells, np.ndarray) and column.cells.dtype.kind == "b":
            return column.cells
        texts = [str(cell).strip().lower() for cell in column.cells]
        for row, text in enumerate(texts):
            if text not in YES and text not in NO:
                raise InvalidInput(
                    f"{self.source}: the decision in row {row + 1} is {text!r}; "
                    "it is 1 or 0, true or false, yes or no, accept or reject."
                )
        return np.array([text in YES for text in texts], dtype=bool)

    def feature_columns(
        self, columns: Mapping[str, TableColumn], used: set[str]
    ) -> dict[str, FloatArray]:
        marked = {n.removeprefix(FEATURE): n for n in columns if n.startswith(FEATURE)}
        left = marked or {name: name for name in columns if name not in used}
        if self.features is not None:
            lost = [name for name in self.features if name not in left]
            if lost:
                raise MissingColumn(
                    f"{self.source} has no feature {lost[0]!r}; it has: {', '.join(left)}."
                )
            left = {name: left[name] for name in self.features}
        return {
            name: self.numbers(columns[column], name)
            for name, column in left.items()
            if column not in used
        }

    def numbers(self, column: TableColumn, name: str, gaps: bool = False) -> FloatArray:
        """A column as numbers; missing values are NaN if there may be `gaps`, else refused."""
        read = column.numbers
        if read is None and all(isinstance(cell, bool | np.bool_) for cell in column.cells):
            read = np.array(column.cells, dtype=np.float64)
        if column.doubt is not None:
            raise InvalidInput(
                f"{self.source}: the numbers of {name} are in doubt: {column.doubt}."
            )
        if read is None:
            texts = column.texts
            row = next(i for i, t in enumerate(texts) if t is not None and number(t) is None)
            raise InvalidInput(
                f"{self.source}: {name} is {column.cells[row]!r} in row {row + 1}; "
                "it must be a number.",
                hint="encode texts as numbers, or leave the column out with --features.",
            )
        if np.isnan(read).any() and not gaps:
            raise InvalidInput(
                f"{self.source}: {name} is missing in row {int(np.argmax(np.isnan(read))) + 1}.",
                hint="leave the row or the column out.",
            )
        return read

    def acceptance(self, roles: Mapping[str, TableColumn], accept: BoolArray) -> FloatArray:
        """p from `acceptance`, or from `propensity` (of the decision that was taken)."""
        given = {
            name: self.numbers(roles[name], name, gaps=True)
            for name in ("acceptance", "propensity")
            if name in roles
        }
        if all(np.isnan(column).all() for column in given.values()):
            raise no_propensities(self.source)
        if "propensity" not in given:
            return given["acceptance"]
        taken = np.where(accept, given["propensity"], 1.0 - given["propensity"])
        return self.agreed(given["acceptance"], taken) if "acceptance" in given else taken

    def agreed(self, exact: FloatArray, derived: FloatArray) -> FloatArray:
        """`exact`, if the other statement of the same probabilities agrees with it."""
        apart = np.abs(exact - derived) > TOLERANCE
        if apart.any():
            row = int(np.argmax(apart))
            raise InvalidInput(
                f"{self.source}: row {row + 1} states the acceptance probability {exact[row]:g}, "
                f"but the propensity of its decision says {derived[row]:g}; "
                "both are about the same coin."
            )
        return exact

    def labels(self, column: TableColumn, accepted: BoolArray) -> FloatArray:
        """+1, -1, or 0 where a value is missing. The accepted say how labels are written: 1 and -1,
        1 and 0, or `good` and others.
        """
        plain = column.notation is not None and column.notation.kind == "number"
        read = column.numbers if plain else None
        if read is not None:  # most labels are numbers, and there may be millions of them
            values = np.unique(read[accepted])
            distinct = {f"{value:g}" for value in values[~np.isnan(values)].tolist()}
        else:
            seen = {column.texts[row] for row in np.flatnonzero(accepted).tolist()}
            distinct = {text for text in seen if text is not None}
        good = self.good
        if good is None:
            numbers = {number(text) for text in distinct}
            if not (numbers <= {1.0, -1.0} or numbers <= {1.0, 0.0}):
                raise BadLabel(
                    f"{self.source}: the labels of the accepted are {listed(sorted(distinct))}; "
                    "they must be 1 and -1, or 1 and 0 (1 is good).",
                    hint="leave the label of an open outcome empty."
                    if numbers == {1.0, 0.0, -1.0}
                    else "say which value is good: --good VALUE.",
                )
            good = "1"
        elif distinct:
            try:
                chosen = spelt(good, distinct, "the label", "--good")
            except InvalidInput:
                raise BadLabel(
                    f"{self.source}: no accepted person has the good outcome {good!r}; "
                    f"the labels are {listed(sorted(distinct))}.",
                    hint="say which value is good: --good VALUE.",
                ) from None
            if read is None:
                every = {text for text in column.texts if text}
                chosen = spelt(good, every, "the label", "--good")
                sign = {text: 1.0 if text in chosen else -1.0 for text in every}
                return np.array([0.0 if text is None else sign[text] for text in column.texts])
        if read is not None:
            return np.where(np.isnan(read), 0.0, np.where(read == number(good), 1.0, -1.0))
        sign = {text: 1.0 if same_value(text, good) else -1.0 for text in set(column.texts) if text}
        return np.array([0.0 if text is None else sign[text] for text in column.texts])


def lines_of(path: Path) -> list[tuple[int, str]]:
    """The lines of a text that are not blank, with their numbers; other encodings are refused."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start})."
        ) from error
    return [(place, line) for place, line in enumerate(lines, 1) if line.strip()]


def json_lines(path: Path) -> list[Json]:
    """The objects of a file; the line that is none is named."""
    objects = []
    for place, line in lines_of(path):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"line {place} of {path} is no JSON: {error}.") from error
        if not isinstance(value, dict):
            raise InvalidInput(
                f"line {place} of {path} is a {type(value).__name__}; every line is one object."
            )
        objects.append(value)
    if not objects:
        raise InvalidInput(f"{path} has no lines; at least one decision is needed.")
    return objects


def write_lines(lines: Iterable[str], path: Path) -> None:
    """Write a text, one line after the other."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
