"""What the readers share: how columns of text or numbers become a log, and how rows of named
features become a table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.errors import BadLabel, InvalidInput, MissingColumn
from evenhand.evaluation.decision_log import DecisionLog, no_propensities
from evenhand.tables import MISSING
from evenhand.words import FloatArray

ROLES = ("id", "group", "accept", "acceptance", "propensity", "label", "count")
YES, NO = (
    frozenset({"1", "1.0", "true", "yes", "accept", "accepted"}),
    frozenset({"0", "0.0", "false", "no", "reject", "rejected"}),
)
TOLERANCE = 1e-6
"""How far two statements of one probability may differ: other tools write single precision."""


@dataclass(frozen=True)
class Reading:
    """Where a log is from, and what the reader was told about it."""

    source: str
    columns: Mapping[str, str] = field(default_factory=dict)
    features: Sequence[str] | None = None
    good: str | None = None
    plain: bool = False
    """Whether cells are plain text, in which NA and the like mean that a value is missing."""

    def __post_init__(self) -> None:
        strange = [role for role in self.columns if role not in ROLES]
        if strange:
            raise InvalidInput(
                f"{strange[0]!r} is no role of a column; the roles are {', '.join(ROLES)}."
            )

    def texts(self, values: Any) -> list[Any] | None:
        """Groups or ids, None where one is missing."""
        if values is None or not self.plain:
            return None if values is None else list(values)
        return [None if _text(value) is None else value for value in values]

    def labels(self, values: Any, accepted: Any) -> FloatArray:
        """+1, -1, or 0 where a value is missing.

        The accepted say how labels are written: 1 and -1, 1 and 0, or `good` and others.
        """
        if isinstance(values, np.ndarray) and values.dtype.kind in "if" and self.good is None:
            return self._quick(values.astype(np.float64), accepted)
        known = [_text(values[i]) for i in np.flatnonzero(accepted).tolist()]
        distinct = {text for text in known if text is not None}
        good = self._good(distinct)
        told = np.zeros(len(values))
        for row, value in enumerate(values):
            text = _text(value)
            told[row] = 0.0 if text is None else 1.0 if _same(text, good) else -1.0
        return told

    def _quick(self, values: FloatArray, accepted: Any) -> FloatArray:
        """The same for an array of numbers."""
        distinct = np.unique(values[accepted])
        self._good({f"{value:g}" for value in distinct.tolist() if value == value})
        return np.where(np.isnan(values), 0.0, np.where(values == 1.0, 1.0, -1.0))

    def outcomes(self, costs: Sequence[Any]) -> list[int | None]:
        """+1, -1 or None from the costs of accepts: 0 is good and 1 bad, unless `good` names the
        cost of a good outcome.
        """
        found: list[int | None] = []
        for row, cost in enumerate(costs):
            text = _text(cost)
            if text is not None and self.good is None and _number(text) not in (0.0, 1.0):
                raise BadLabel(
                    f"{self.source}: the accept in row {row + 1} cost {text}; a good outcome costs 0 and a bad one 1.",
                    hint="if another cost is the good outcome, name it: --good -1.",
                )
            found.append(None if text is None else 1 if _same(text, self.good or "0") else -1)
        return found

    def _good(self, distinct: set[str]) -> str:
        if self.good is not None:
            if distinct and not any(_same(text, self.good) for text in distinct):
                raise BadLabel(
                    f"{self.source}: no accepted person has the good outcome {self.good!r}; the labels are {_listed(distinct)}."
                )
            return self.good
        numbers = {_number(text) for text in distinct}
        if numbers <= {1.0, -1.0} or numbers <= {1.0, 0.0}:
            return "1"
        hint = (
            "leave the label of an open outcome empty."
            if numbers == {1.0, 0.0, -1.0}
            else "say which value is good: --good VALUE."
        )
        raise BadLabel(
            f"{self.source}: the labels of the accepted are {_listed(distinct)}; they must be 1 and -1, or 1 and 0 (1 is good).",
            hint=hint,
        )


def log_of_columns(
    columns: Mapping[str, Any], told: Reading, prefix: str = "feature_"
) -> DecisionLog:
    """A log from columns of equal length: the roles by name, features the columns with the prefix,
    or else all that are left.
    """
    roles = _roles(columns, told)
    missing = [role for role in ("accept", "label") if role not in roles]
    if missing:
        raise MissingColumn(
            f"{told.source} has no column for {' and '.join(missing)}; it has: {', '.join(columns)}.",
            hint=f"name it: --column {missing[0]}=NAME (roles: {', '.join(ROLES)}).",
        )
    accept = _decisions(columns[roles["accept"]], told.source)
    features = _features(columns, roles, told, prefix)
    get = {role: columns[name] for role, name in roles.items()}
    return DecisionLog.of(
        np.column_stack(list(features.values())) if features else np.zeros((len(accept), 0)),
        accept,
        _acceptance(get, accept, told.source),
        told.labels(get["label"], accept),
        group=told.texts(get.get("group")),
        names=tuple(features),
        count=numbers(get["count"], "count", told.source) if "count" in get else 1.0,
        id=told.texts(get.get("id")),
        source=told.source,
    )


def _roles(columns: Mapping[str, Any], told: Reading) -> dict[str, str]:
    """role -> column: as told, else the column of that name; the service numbers its decisions by
    `seq`.
    """
    named = {role: told.columns.get(role, role) for role in ROLES}
    for role, name in told.columns.items():
        if name not in columns:
            raise MissingColumn(
                f"{told.source} has no column {name!r} for {role}; it has: {', '.join(columns)}."
            )
    if named["id"] not in columns and "seq" in columns:
        named["id"] = "seq"
    return {role: name for role, name in named.items() if name in columns}


def _features(
    columns: Mapping[str, Any], roles: Mapping[str, str], told: Reading, prefix: str
) -> dict[str, FloatArray]:
    used = set(roles.values())
    marked = {name.removeprefix(prefix): name for name in columns if name.startswith(prefix)}
    left = marked or {name: name for name in columns if name not in used}
    if told.features is not None:
        lost = [name for name in told.features if name not in left]
        if lost:
            raise MissingColumn(
                f"{told.source} has no feature {lost[0]!r}; it has: {', '.join(left)}."
            )
        left = {name: left[name] for name in told.features}
    return {
        name: numbers(columns[column], name, told.source)
        for name, column in left.items()
        if column not in used
    }


def _acceptance(get: Mapping[str, Any], accept: Any, source: str) -> FloatArray:
    """p from `acceptance`, or from `propensity` (of the decision that was taken); both must agree."""
    if "acceptance" not in get and "propensity" not in get:
        raise no_propensities(source)
    columns = {
        name: numbers(get[name], name, source, gaps=True)
        for name in ("acceptance", "propensity")
        if name in get
    }
    if all(np.isnan(column).all() for column in columns.values()):
        raise no_propensities(source)
    if "propensity" not in columns:
        return columns["acceptance"]
    taken = np.where(accept, columns["propensity"], 1.0 - columns["propensity"])
    return taken if "acceptance" not in columns else agreed(columns["acceptance"], taken, source)


def agreed(exact: FloatArray, derived: FloatArray, source: str) -> FloatArray:
    """`exact`, if the other statement of the same probabilities agrees with it."""
    apart = np.abs(exact - derived) > TOLERANCE
    if apart.any():
        row = int(np.argmax(apart))
        raise InvalidInput(
            f"{source}: row {row + 1} states the acceptance probability {exact[row]:g}, but the propensity of its decision says "
            f"{derived[row]:g}; both are about the same coin."
        )
    return exact


def numbers(values: Any, name: str, source: str, gaps: bool = False) -> FloatArray:
    """A column as numbers; missing values are NaN where `gaps` may be, and refused elsewhere."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        found = values.astype(np.float64)
    else:
        found = np.array([_float(value) for value in values], dtype=np.float64)
        strange = [row for row in np.flatnonzero(np.isnan(found)) if _text(values[row]) is not None]
        if strange:
            raise InvalidInput(
                f"{source}: {name} is {values[strange[0]]!r} in row {strange[0] + 1}; it must be a number.",
                hint="encode texts as numbers, or leave the column out with --features.",
            )
    empty = np.isnan(found)
    if empty.any() and not gaps:
        raise InvalidInput(
            f"{source}: {name} is missing in row {int(np.argmax(empty)) + 1}.",
            hint="leave the row or the column out.",
        )
    return found


def _decisions(values: Any, source: str) -> Any:
    if isinstance(values, np.ndarray) and values.dtype.kind == "b":
        return values
    texts = [
        str(value).strip().lower()
        for value in (values.tolist() if isinstance(values, np.ndarray) else values)
    ]
    for row, text in enumerate(texts):
        if text not in YES and text not in NO:
            raise InvalidInput(
                f"{source}: the decision in row {row + 1} is {text!r}; it is 1 or 0, true or false, yes or no, accept or reject."
            )
    return np.array([text in YES for text in texts], dtype=bool)


def _text(value: Any) -> str | None:
    """A value as text, None where it is missing."""
    if value is None or value != value:
        return None
    text = str(value).strip()
    return None if text.lower() in MISSING else text


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _float(value: Any) -> float:
    text = _text(value)
    found = None if text is None else _number(text)
    return float("nan") if found is None else found


def _same(text: str, other: str) -> bool:
    return text == other or (_number(text) is not None and _number(text) == _number(other))


def _listed(distinct: set[str]) -> str:
    shown = sorted(distinct)
    return ", ".join(shown[:6]) + (", ..." if len(shown) > 6 else "")


def feature_columns(rows: Sequence[Mapping[str, float]]) -> dict[str, FloatArray]:
    """Rows of named numbers as columns; what a row does not name is 0, as VW has it."""
    names = {name: None for row in rows for name in row}
    return {
        name: np.array([row.get(name, 0.0) for row in rows], dtype=np.float64) for name in names
    }


def with_group(rows: list[dict[str, Any]], told: Reading, given: list[Any]) -> list[Any]:
    """The groups: those the log gives, or the feature that was named as the group, which then is no
    feature any more.
    """
    name = told.columns.get("group")
    if name is None:
        return given
    if not any(name in row for row in rows):
        seen = sorted({key for row in rows[:1000] for key in row})
        raise MissingColumn(
            f"{told.source} has no feature {name!r} for group; it has: {', '.join(seen)}."
        )
    return [row.pop(name, None) for row in rows]


def one_hot(rows: list[dict[str, Any]]) -> list[dict[str, float]]:
    """Texts become 0/1 features `name=value`, as VW reads them."""
    return [dict(_one(name, value) for name, value in row.items()) for row in rows]


def _one(name: str, value: Any) -> tuple[str, float]:
    return (f"{name}={value}", 1.0) if isinstance(value, str) else (name, float(value))
