"""Logs of decisions on disk; the suffix says which format a file has, unless it is named.

.parquet .csv .jsonl   evenhand's own columns             .npz    Open Bandit Pipeline's dict
.dsjson                Vowpal Wabbit's decision logs      .vw     Vowpal Wabbit's cb text

evenhand's own columns are id, group, accept, acceptance, label, count and feature_<name>.
`acceptance` is the probability of being accepted, whatever was drawn; an empty label is an open
outcome, or a rejection; an empty group is an unknown one; `count` is written only where a row
stands for several decisions.

Open Bandit Pipeline's `bandit_feedback`: action 1 accepts, 0 rejects; pscore is the probability of
the action that was taken. reward is 1 for a good outcome of an accept, 0 for a bad one, NaN while
it is open; a reject earns 0, which is no label. So its own estimators return good accepts per
person. A file is the dict as .npz, never a pickle. `context_names`, `group`, `id` and `acceptance`
(which 1 - pscore would only round to) are beyond its keys.
"""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.contracts import Json, Params
from evenhand.errors import InvalidInput, MissingColumn
from evenhand.evaluation.decision_log import (
    FEATURE,
    DecisionLog,
    LogReading,
    no_propensities,
    write_lines,
)
from evenhand.evaluation.vowpal_wabbit import (
    read_cb_text,
    read_dsjson,
    write_cb_text,
    write_dsjson,
)
from evenhand.tables import MISSING, TableColumn, import_pyarrow, read_frame
from evenhand.tables.column import Cells
from evenhand.words import GroupArray

PACKED = (".gz", ".bz2", ".xz")
"""Suffixes of packed files; `read_frame` unpacks them."""
OBP_KEYS = ("n_rounds", "n_actions", "context", "action", "position", "reward", "pscore")


def read_log(
    path: Path | str,
    format: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    good: str | None = None,
    **file: object,
) -> DecisionLog:
    """Read a log of decisions from a file.

    Parameters
    ----------
    path : path
        The file.
    format : str, optional
        One of `FORMATS`; by default the suffix says it.
    columns : mapping of str to str, optional
        Role to column, where a name differs: ``{"group": "sex"}``. The roles are id, group, accept,
        acceptance, propensity, label and count.
    features : sequence of str, optional
        The features to keep; by default all.
    good : str, optional
        The value of the label (reward, cost) that is the good outcome.
    **file
        How a CSV or Excel file is written: `delimiter`, `missing`, `encoding` and the other fields
        of `FileReading`.

    Returns
    -------
    DecisionLog
        The decisions.

    Raises
    ------
    InvalidInput
        If the file cannot be read as such a log, or holds no propensities.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("accept,acceptance,label,x\\n1,0.5,1,3\\n0,0.2,,4\\n")
    >>> log = read_log(path)
    >>> log.label.tolist(), log.propensity.tolist(), log.names
    ([1, 0], [0.5, 0.8], ('x',))
    """
    where = Path(path)
    if not where.is_file():
        raise InvalidInput(f"the log {str(where)!r} is no file.")
    reading = LogReading(str(where), dict(columns or {}), features, good, file=file)
    return _format(where, format).read(where, reading)


def write_log(log: DecisionLog, path: Path | str, format: str | None = None) -> None:
    """Write a log; what `read_log` reads back is the same, bit for bit.

    Parameters
    ----------
    log : DecisionLog
        The decisions.
    path : path
        The file.
    format : str, optional
        One of `FORMATS`; by default the suffix says it.

    Raises
    ------
    InvalidInput
        If the format cannot say what the log holds.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> write_log(DecisionLog.of([[3.0]], [True], [0.5], [1], names=["x"]), path)
    >>> path.read_text()
    '{"group": null, "accept": true, "acceptance": 0.5, "label": 1, "feature_x": 3.0}\\n'
    """
    where = Path(path)
    _format(where, format).write(log, where)


def _format(path: Path, name: str | None) -> "LogFormat":
    if name is not None:
        if name not in FORMATS:
            raise InvalidInput(f"the format {name!r} is unknown; there are {', '.join(FORMATS)}.")
        return FORMATS[name]
    ends = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED]
    for format in FORMATS.values():
        if ends and ends[-1] in format.suffixes:
            return format
    suffixes = ", ".join(suffix for format in FORMATS.values() for suffix in format.suffixes)
    raise InvalidInput(
        f"{path} ends in {path.suffix or 'nothing'!r}, which says no format; "
        f"the suffixes are {suffixes}.",
        hint=f"rename the file, or name its format: {', '.join(FORMATS)}.",
    )


# evenhand's own columns


def read_rows(path: Path, reading: LogReading, format: str | None = None) -> DecisionLog:
    """Read a log of evenhand's own columns; a format that is not named is CSV."""
    named = {} if format is None else {"format": format}
    plain = replace(reading, plain=format in (None, "excel"))
    return plain.log(read_frame(path, **{**reading.file, **named}).columns)


def cannot_write(_: DecisionLog, path: Path) -> None:
    """Refuse to write Excel."""
    raise InvalidInput(
        f"{path}: logs are read from Excel files, not written.", hint="write CSV or Parquet."
    )


def columns_of(log: DecisionLog) -> dict[str, list[object]]:
    """The columns as plain values."""
    return {
        **({} if log.id is None else {"id": log.id.tolist()}),
        "group": log.group.tolist(),
        "accept": log.accept.tolist(),
        "acceptance": log.acceptance.tolist(),
        "label": [None if label == 0 else label for label in log.label.tolist()],
        **({} if (log.count == 1).all() else {"count": log.count.tolist()}),
        **{FEATURE + name: log.features[:, j].tolist() for j, name in enumerate(log.names)},
    }


def write_parquet(
    log: DecisionLog, path: Path, more: Mapping[str, Sequence[object]] | None = None
) -> None:
    """Write a log as Parquet.

    Parameters
    ----------
    log : DecisionLog
        The decisions.
    path : Path
        The file.
    more : mapping of str to list, optional
        Further columns, which stand before the log's.

    Raises
    ------
    InvalidInput
        If pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.parquet"
    >>> write_parquet(DecisionLog.of([[3.0]], [True], [0.5], [1]), path, {"at": [7]})
    >>> read_log(path, features=["x0"]).features.tolist()
    [[3.0]]
    """
    arrow, files = import_pyarrow("Parquet")
    types = {"id": arrow.string(), "group": arrow.string(), "label": arrow.int8()}
    columns = {
        name: arrow.array(values, type=types.get(name)) for name, values in columns_of(log).items()
    }
    files.write_table(arrow.table({**(more or {}), **columns}), path)


def write_csv(log: DecisionLog, path: Path) -> None:
    """Write a log as CSV; a group or id that would be read back as another one is refused."""
    for value in {*log.group.tolist(), *([] if log.id is None else log.id.tolist())} - {None}:
        if value.strip() != value or value.lower() in MISSING:
            raise InvalidInput(
                f"the group or id {value!r} would be read back from CSV as something else.",
                hint="write Parquet or JSON lines.",
            )
    columns = columns_of(log)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_jsonl(log: DecisionLog, path: Path) -> None:
    """Write a log as JSON lines, with the same names as the columns."""
    columns = columns_of(log)
    rows = zip(*columns.values(), strict=True)
    write_lines(
        (json.dumps(dict(zip(columns, row, strict=True)), allow_nan=False) for row in rows), path
    )


# Open Bandit Pipeline


def to_obp(log: DecisionLog) -> Json:
    """Turn a log into Open Bandit Pipeline's `bandit_feedback`.

    Parameters
    ----------
    log : DecisionLog
        The decisions; each row stands for one.

    Returns
    -------
    dict
        The feedback; action 1 accepts.

    Examples
    --------
    >>> feedback = to_obp(DecisionLog.of([[3.0], [4.0]], [True, False], [0.5, 0.2], [1, 0]))
    >>> feedback["action"].tolist(), feedback["pscore"].tolist(), feedback["reward"].tolist()
    ([1, 0], [0.5, 0.8], [1.0, 0.0])
    """
    log.require_single("Open Bandit Pipeline")

    def texts(values: GroupArray) -> NDArray[np.str_]:
        return np.array(["" if value is None else value for value in values.tolist()], dtype=str)

    return {
        "n_rounds": len(log),
        "n_actions": 2,
        "context": log.features,
        "action_context": np.eye(2),
        "action": log.accept.astype(np.int64),
        "position": np.zeros(len(log), dtype=np.int64),
        "reward": np.where(log.label == 1, 1.0, np.where(log.open, np.nan, 0.0)),
        "pscore": log.propensity,
        "acceptance": log.acceptance,
        "context_names": np.array(log.names, dtype=str),
        "group": texts(log.group),
        **({} if log.id is None else {"id": texts(log.id)}),
    }


def from_obp(feedback: Params, reading: LogReading | None = None) -> DecisionLog:
    """Turn Open Bandit Pipeline's `bandit_feedback` into a log.

    Parameters
    ----------
    feedback : mapping
        The feedback; context, action, reward and pscore are needed.
    reading : LogReading, optional
        Where it is from.

    Returns
    -------
    DecisionLog
        The decisions.

    Raises
    ------
    InvalidInput
        If something is missing, or if there are more than two actions.

    Examples
    --------
    >>> feedback = {"context": [[3.0]], "action": [0], "reward": [0], "pscore": [0.8]}
    >>> round(float(from_obp(feedback).acceptance[0]), 6)
    0.2
    """
    reading = reading or LogReading("the bandit feedback")
    given = {key: value for key, value in feedback.items() if value is not None}
    if "pscore" not in given:
        raise no_propensities(reading.source)
    missing = [key for key in ("context", "action", "reward") if key not in given]
    if missing:
        raise MissingColumn(
            f"{reading.source} has no {', '.join(missing)}; "
            f"a bandit feedback has {', '.join(OBP_KEYS)}."
        )
    action, actions = np.asarray(given["action"]), int(given.get("n_actions") or 2)
    if actions != 2 or not np.isin(action, (0, 1)).all():
        raise InvalidInput(
            f"{reading.source} has {actions} actions, among them {action.max()}; "
            "a decision is 1 (accept) or 0 (reject)."
        )
    position = np.asarray(given.get("position", 0))
    if position.dtype != object and position.any():
        raise InvalidInput(
            f"{reading.source} has several positions in a round; a decision is about one person."
        )
    context, pscore, reward = (
        np.asarray(given[key], dtype=np.float64) for key in ("context", "pscore", "reward")
    )
    accept = action == 1
    acceptance = np.where(accept, pscore, 1.0 - pscore)
    if "acceptance" in given:
        exact = np.asarray(given["acceptance"], dtype=np.float64)
        acceptance = reading.agreed(exact, acceptance)
    names = given.get("context_names", [f"x{j}" for j in range(context.shape[1])])
    columns: dict[str, Cells] = {
        "accept": accept,
        "acceptance": acceptance,
        "label": np.where(accept, reward, np.nan),
        **{key: np.asarray(given[key]).tolist() for key in ("group", "id") if key in given},
        **{f"{FEATURE}{name}": context[:, j] for j, name in enumerate(names)},
    }
    return reading.log({name: TableColumn(cells) for name, cells in columns.items()})


def write_npz(log: DecisionLog, path: Path) -> None:
    """Write a log as Open Bandit Pipeline's dict."""
    feedback = to_obp(log)
    with path.open("wb") as file:
        np.savez(file, **feedback)


def read_npz(path: Path, reading: LogReading) -> DecisionLog:
    """Read Open Bandit Pipeline's dict; pickled objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            feedback = {name: stored[name] for name in stored.files}
    except (ValueError, OSError) as error:
        raise InvalidInput(
            f"{path} is no .npz file of plain arrays ({error}).",
            hint="np.savez(path, **bandit_feedback), without keys that are None; "
            "pickles are not read.",
        ) from error
    return from_obp(feedback, reading)


@dataclass(frozen=True)
class LogFormat:
    """How a kind of file is read and written."""

    suffixes: tuple[str, ...]
    read: Callable[[Path, LogReading], DecisionLog]
    write: Callable[[DecisionLog, Path], None]


FORMATS: Mapping[str, LogFormat] = {
    "parquet": LogFormat((".parquet",), partial(read_rows, format="parquet"), write_parquet),
    "csv": LogFormat((".csv", ".tsv", ".txt"), read_rows, write_csv),
    "excel": LogFormat((".xlsx", ".xls", ".ods"), partial(read_rows, format="excel"), cannot_write),
    "jsonl": LogFormat(
        (".jsonl", ".ndjson", ".json"), partial(read_rows, format="jsonl"), write_jsonl
    ),
    "obp": LogFormat((".npz",), read_npz, write_npz),
    "dsjson": LogFormat((".dsjson",), read_dsjson, write_dsjson),
    "vw": LogFormat((".vw", ".dat"), read_cb_text, write_cb_text),
}
"""Every format of a log by name."""
