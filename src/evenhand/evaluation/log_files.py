"""Logs of decisions on disk; the suffix says which format a file has, unless it is named.

.parquet .csv .jsonl   evenhand's own columns             .npz    Open Bandit Pipeline's dict
.dsjson                Vowpal Wabbit's decision logs      .vw     Vowpal Wabbit's cb text

evenhand's own columns are id, round, time, group, accept, acceptance, label, count and
feature_<name>. `round` and `time` show the order of the decisions, where they are known.
`acceptance` is the probability of being accepted, whatever was drawn; an empty label is an open
outcome, or a rejection; an empty group is an unknown one; `count` is written only where a row
stands for several decisions.

Open Bandit Pipeline's `bandit_feedback`: action 1 accepts, 0 rejects; pscore is the probability of
the action that was taken. reward is 1 for a good outcome of an accept, 0 for a bad one, NaN while
it is open; a reject earns 0, which is no label. So its own estimators return good accepts per
person. A file is the dict as .npz, never a pickle. `context_names`, `group`, `id` and `acceptance`
(which 1 - pscore would only round to) are beyond its keys.

Vowpal Wabbit has two formats: dsjson, one event per line, and cb text, `action:cost:probability
'tag |x name:value ...`. Action 1 accepts, 2 rejects; costs are 0 (good), 1 (bad) and 1/2
(rejected). These are the paper's transformed loss, in which a rejection costs the same whoever was
rejected, so `vw --dsjson --cb_explore_adf` and `vw --cb 2` learn from the files as they are. An
accepted person whose outcome is open has no label.

dsjson: the probability of accepting stands in `p` at the place of action 1. The group is under
"evenhand", which VW passes over: it never learns from it. cb text: the tag carries what the label
cannot say: id, group, the probability of accepting (1 - p would only round to it), and what was
decided where no label can be given. It is written as in the query of a web address, so it has no
blanks, colons or bars; so are the names of features.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

import numpy as np
from numpy.typing import NDArray

from evenhand.contracts import Json, Params
from evenhand.errors import BadLabel, InvalidInput, MissingColumn
from evenhand.evaluation.decision_log import (
    FEATURE,
    ORDER,
    TOLERANCE,
    DecisionLog,
    LogReading,
    json_lines,
    lines_of,
    no_propensities,
    seconds_of,
    write_lines,
)
from evenhand.evaluation.evaluate import Candidate
from evenhand.tables import (
    MISSING,
    Frame,
    TableColumn,
    import_pyarrow,
    number,
    read_frame,
    same_value,
)
from evenhand.tables.column import Cells
from evenhand.words import FloatArray, Group, GroupArray

TABLE_FORMATS = ("csv", "excel", "parquet", "jsonl")
"""Formats that are tables with columns of any name."""
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
    candidate: Candidate | None = None,
    unseen: Literal["refuse", "ignore"] = "refuse",
    drop_missing: bool = False,
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
        Role to column, where a name differs: ``{"group": "sex"}``. The roles are id, round, time,
        group, accept, acceptance, propensity, label and count.
    features : sequence of str, optional
        The features to keep; by default all.
    good : str, optional
        The value of the label (reward, cost) that is the good outcome.
    candidate : Candidate, optional
        The policy that will be asked about. If it comes from a policy file, columns of texts,
        dates and missing numbers are read as the file says; if it is a constant, no feature is
        needed. Other columns are then features where they are numbers.
    unseen : {"refuse", "ignore"}
        What is done with a category that the candidate has never seen, as in `evenhand test`.
    drop_missing : bool
        Whether rows are left out in which a value is missing that the candidate needs; what is
        said then holds for people who have all values.
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
    policy = None if candidate is None else candidate.file
    reading = LogReading(
        str(where),
        dict(columns or {}),
        features,
        good,
        file=file if policy is None else {**policy.reading, **file},
        policy=policy,
        constant=candidate is not None and candidate.is_constant,
        unseen=unseen,
        drop_missing=drop_missing,
    )
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
    name = name or _format_by_suffix(path)
    if name not in FORMATS:
        raise InvalidInput(f"the format {name!r} is unknown; there are {', '.join(FORMATS)}.")
    return FORMATS[name]


def _format_by_suffix(path: Path) -> str:
    ends = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED]
    for name, format in FORMATS.items():
        if ends and ends[-1] in format.suffixes:
            return name
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
    return plain.log(read_frame(path, **{**reading.file, **named}))


def cannot_write(_: DecisionLog, path: Path) -> None:
    """Refuse to write Excel."""
    raise InvalidInput(
        f"{path}: logs are read from Excel files, not written.", hint="write CSV or Parquet."
    )


def columns_of(log: DecisionLog) -> dict[str, list[object]]:
    """The columns as plain values."""
    return {
        **({} if log.id is None else {"id": log.id.tolist()}),
        **{name: _known(getattr(log, name)) for name in log.ordered_by},
        "group": log.group.tolist(),
        "accept": log.accept.tolist(),
        "acceptance": log.acceptance.tolist(),
        "label": [None if label == 0 else label for label in log.label.tolist()],
        **({} if (log.count == 1).all() else {"count": log.count.tolist()}),
        **{FEATURE + name: log.features[:, j].tolist() for j, name in enumerate(log.names)},
    }


def frame_of(columns: Mapping[str, Cells], source: str) -> Frame:
    """Columns that were read from something else than a table."""
    made = {name: TableColumn(cells) for name, cells in columns.items()}
    return Frame(source, made, range(1, len(made["accept"].cells) + 1))


def _known(column: FloatArray) -> list[object]:
    """Numbers, None where one is missing."""
    return [None if value != value else value for value in column.tolist()]


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
        **{name: getattr(log, name) for name in log.ordered_by},
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
    action = np.asarray(given["action"])
    actions = int(given.get("n_actions") or 2)
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
        **{key: np.asarray(given[key]).tolist() for key in ("group", "id", *ORDER) if key in given},
        **{f"{FEATURE}{name}": context[:, j] for j, name in enumerate(names)},
    }
    return reading.log(frame_of(columns, reading.source))


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


# Vowpal Wabbit


ACCEPT = 1
REJECT = 2
COSTS = {1: 0.0, -1: 1.0}
REJECTED = 0.5
NAMESPACE = "x"
Row = tuple[list[float], bool, float, int, str | None, str | None, dict[str, float]]
"""Features, accept, acceptance, label, group and id of a decision, as plain values; and its round
and time, where they are known."""
START = datetime(1970, 1, 1, tzinfo=UTC)
"""Events of a log without times are a second apart from here on, because VW asks for a time; such
times are not read back, since they count rows and show no order.
"""


class Logged(NamedTuple):
    """One line of a file: features by name, and the cost of an accept or None."""

    accept: bool
    acceptance: float
    cost: str | float | None
    features: Json
    group: Group
    id: object
    order: Mapping[str, float]


def _log(lines: list[Logged], reading: LogReading) -> DecisionLog:
    """The lines as a log. The cost of an accept says its outcome: 0 is good and 1 bad, unless
    `good` names another cost. What a line does not name is 0, and texts become 0/1 features
    `name=value`, as VW has it.
    """
    groups = [line.group for line in lines]
    by = reading.columns.get("group")
    if by is not None:  # a feature was named as the group, and then is no feature any more
        if not any(by in line.features for line in lines):
            seen = sorted({name for line in lines[:1000] for name in line.features})
            raise MissingColumn(
                f"{reading.source} has no feature {by!r} for group; it has: {', '.join(seen)}."
            )
        groups = [line.features.pop(by, None) for line in lines]
    labels: list[int | None] = []
    for row, cost in enumerate(TableColumn([line.cost for line in lines]).texts):
        if cost is not None and reading.good is None and number(cost) not in (0.0, 1.0):
            raise BadLabel(
                f"{reading.source}: the accept in row {row + 1} cost {cost}; "
                "a good outcome costs 0 and a bad one 1.",
                hint="if another cost is the good outcome, name it.",
                argument="good",
            )
        good = cost is not None and same_value(cost, reading.good or "0")
        labels.append(None if cost is None else 1 if good else -1)
    rows = [
        dict(
            (f"{name}={value}", 1.0) if isinstance(value, str) else (name, float(value))
            for name, value in line.features.items()
        )
        for line in lines
    ]
    names = {name: None for row in rows for name in row}
    ids = [line.id for line in lines]
    columns: dict[str, Cells] = {
        "accept": np.array([line.accept for line in lines], dtype=bool),
        "acceptance": np.array([line.acceptance for line in lines], dtype=np.float64),
        "label": labels,
        "group": groups,
        **({} if all(value is None for value in ids) else {"id": ids}),
        **{
            name: np.array([line.order.get(name, np.nan) for line in lines])
            for name in ORDER
            if any(name in line.order for line in lines)
        },
        **{FEATURE + name: np.array([row.get(name, 0.0) for row in rows]) for name in names},
    }
    plain = replace(reading, columns={}, good=None)
    return plain.log(frame_of(columns, reading.source))


def _rows(log: DecisionLog) -> Iterator[Row]:
    ids = [None] * len(log) if log.id is None else log.id.tolist()
    columns = (log.features, log.accept, log.acceptance, log.label, log.group)
    orders: list[dict[str, float]] = [{} for _ in ids]
    for name in log.ordered_by:
        for row, value in enumerate(_known(getattr(log, name))):
            if isinstance(value, float):
                orders[row][name] = value
    return zip(*(column.tolist() for column in columns), ids, orders, strict=True)


# dsjson of Vowpal Wabbit


def write_dsjson(log: DecisionLog, path: Path) -> None:
    """One event per decision."""
    log.require_single("dsjson")
    lines = []
    options = [{"a": {"accept": 1}}, {"a": {"reject": 1}}]
    for place, (features, accept, acceptance, label, group, id, order) in enumerate(_rows(log)):
        chosen, other = (ACCEPT, REJECT) if accept else (REJECT, ACCEPT)
        chances = [acceptance, 1.0 - acceptance] if accept else [1.0 - acceptance, acceptance]
        known = {
            "_label_cost": COSTS.get(label) if accept else REJECTED,
            "_label_probability": chances[0],
            "_label_Action": chosen,
            "_labelIndex": chosen - 1,
        }
        ours = {**({} if group is None else {"group": group}), **order}
        event = {
            **({} if accept and label == 0 else known),
            "Timestamp": _stamp(place),
            "Version": "1",
            **({} if id is None else {"EventId": id}),
            "a": [chosen, other],
            "c": {NAMESPACE: dict(zip(log.names, features, strict=True)), "_multi": options},
            "p": chances,
            "pdrop": 0.0,
            **({"evenhand": ours} if ours else {}),
        }
        lines.append(json.dumps(event, allow_nan=False))
    write_lines(lines, path)


def _stamp(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _order(events: list[Json], source: str) -> list[dict[str, float]]:
    """The round and the time of each event: as evenhand wrote them, else the time stamp."""
    orders = []
    counting = all(event.get("Timestamp") == _stamp(row) for row, event in enumerate(events))
    for place, event in enumerate(events, 1):
        ours = event.get("evenhand", {})
        order = {name: float(ours[name]) for name in ORDER if name in ours}
        stamp = event.get("Timestamp")
        if not order and stamp is not None and not counting:
            try:
                order["time"] = seconds_of(str(stamp))
            except ValueError:
                raise InvalidInput(
                    f"{source}: the Timestamp of event {place} is {stamp!r}; it is a time in ISO "
                    "8601."
                ) from None
        orders.append(order)
    return orders


def read_dsjson(path: Path, reading: LogReading) -> DecisionLog:
    """Events with two actions."""
    events = json_lines(path)
    drops = {float(event.get("pdrop", 0.0)) for event in events}
    if len(drops) > 1:
        raise InvalidInput(
            f"{reading.source} was thinned unevenly: pdrop takes {len(drops)} values between "
            f"{min(drops):g} and {max(drops):g}.",
            hint="evaluate stretches of one pdrop each, or thin the log evenly.",
        )
    lines = []
    orders = _order(events, reading.source)
    for place, event in enumerate(events, 1):
        where = f"{reading.source}: event {place}"
        accept, acceptance = _decided(event, where)
        cost = event.get("_label_cost")
        features = {}
        # those of a namespace of its own are `namespace^name`, as VW prints them
        for name, value in event.get("c", {}).items():
            inner = value if isinstance(value, dict) else {name: value}
            mark = f"{name}^" if isinstance(value, dict) and name != NAMESPACE else ""
            for key, feature in inner.items() if not name.startswith("_") else ():
                if not isinstance(feature, bool | int | float | str):
                    raise InvalidInput(
                        f"{reading.source}: feature {key!r} of event {place} is {feature!r}; "
                        "it must be a number or a text."
                    )
                features[mark + key] = feature
        group = event.get("evenhand", {}).get("group")
        lines.append(
            Logged(
                accept,
                acceptance,
                cost if accept else None,
                features,
                group,
                event.get("EventId"),
                orders[place - 1],
            )
        )
    return _log(lines, reading)


def _decided(event: Json, where: str) -> tuple[bool, float]:
    """Whether the person was accepted, and with which probability: the entry of `p` for action 1,
    or what the label states of the chosen action.
    """
    actions = event.get("a")
    chances = event.get("p")
    stated = event.get("_label_probability")
    chosen = event.get("_label_Action", actions[0] if actions else None)
    if chances is None and stated is None:
        raise no_propensities(where)
    if chosen not in (ACCEPT, REJECT) or sorted(actions or (1, 2)) != [ACCEPT, REJECT]:
        raise InvalidInput(
            f"{where} chose action {chosen} of {actions}; a decision has two: 1 accepts, 2 rejects."
        )
    accept = chosen == ACCEPT
    if stated is not None and (actions is None or chances is None):
        return accept, float(stated) if accept else 1.0 - float(stated)
    if actions is None or chances is None or len(chances) != 2:
        raise InvalidInput(
            f"{where} has the actions {actions} and the probabilities {chances}; "
            "it needs two of each."
        )
    taken = float(chances[actions.index(chosen)])
    if stated is not None and abs(taken - float(stated)) > TOLERANCE:
        raise InvalidInput(
            f"{where} states {float(stated):g} as the probability of its decision, "
            f"but p says {taken:g}."
        )
    return accept, float(chances[actions.index(ACCEPT)])


# cb text of Vowpal Wabbit


def write_cb_text(log: DecisionLog, path: Path) -> None:
    """One line per decision."""
    log.require_single("cb text")
    names = [quote(name, safe="") for name in log.names]
    lines = []
    for features, accept, p, label, group, id, order in _rows(log):
        known = f"{ACCEPT}:{COSTS.get(label)}:{p!r} "
        if not accept:
            known = f"{REJECT}:{REJECTED}:{1.0 - p!r} "
        elif label == 0:
            known = ""
        tag = {"id": id, "accept": int(accept), "p": repr(p), "group": group}
        tag.update({name: repr(value) for name, value in order.items()})
        query = urlencode({key: value for key, value in tag.items() if value is not None})
        shown = " ".join(f"{name}:{value!r}" for name, value in zip(names, features, strict=True))
        lines.append(f"{known}'{query} |{NAMESPACE} {shown}")
    write_lines(lines, path)


def read_cb_text(path: Path, reading: LogReading) -> DecisionLog:
    """Lines of two actions."""
    lines = []
    for place, text in lines_of(path):
        where = f"{reading.source}: line {place}"
        head, *parts = text.split("|")
        words = head.split()
        tag = dict(parse_qsl(next((word[1:] for word in words if word.startswith("'")), "")))
        label = next((word for word in words if ":" in word and not word.startswith("'")), None)
        accept, p, cost = _chosen(label, tag, where)
        features: dict[str, float] = {}
        for part in parts:
            words = part.split()
            own = not words or part[0].isspace()
            namespace = NAMESPACE if own else words.pop(0).split(":")[0]
            mark = "" if namespace == NAMESPACE else f"{unquote(namespace)}^"
            for word in words:
                name, _, value = word.partition(":")
                features[mark + unquote(name)] = _number(value, where) if value else 1.0
        order = {name: _number(tag[name], where) for name in ORDER if name in tag}
        lines.append(Logged(accept, p, cost, features, tag.get("group"), tag.get("id"), order))
    return _log(lines, reading)


def _chosen(label: str | None, tag: dict[str, str], where: str) -> tuple[bool, float, str | None]:
    """(accepted, probability of accepting, cost of the accept or None)."""
    stated = _number(tag["p"], where) if "p" in tag else None
    if label is None:
        if stated is None or "accept" not in tag:
            raise no_propensities(where)
        return tag["accept"] == "1", stated, None
    parts = label.split(":")
    if len(parts) < 3:
        raise no_propensities(where)
    if parts[0] not in (str(ACCEPT), str(REJECT)):
        raise InvalidInput(
            f"{where} chose action {parts[0]}; a decision has two: 1 accepts, 2 rejects."
        )
    accept = parts[0] == str(ACCEPT)
    chance = _number(parts[2], where)
    p = chance if accept else 1.0 - chance
    if stated is not None and abs(stated - p) > TOLERANCE:
        raise InvalidInput(
            f"{where} states the acceptance probability {stated:g} in its tag "
            f"and {p:g} in its label."
        )
    return accept, p if stated is None else stated, parts[1] if accept else None


def _number(text: str, where: str) -> float:
    value = number(text)
    if value is None:
        raise InvalidInput(f"{where} holds {text!r} where a number belongs.")
    return value


# the formats by name


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
