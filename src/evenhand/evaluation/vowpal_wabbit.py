"""Vowpal Wabbit's two formats of logs: dsjson, one event per line, and cb text,
`action:cost:probability 'tag |x name:value ...`.

Action 1 accepts, 2 rejects; costs are 0 (good), 1 (bad) and 1/2 (rejected). These are the paper's
transformed loss, in which a rejection costs the same whoever was rejected, so `vw --dsjson
--cb_explore_adf` and `vw --cb 2` learn from the files as they are. An accepted person whose outcome
is open has no label.

dsjson: the probability of accepting stands in `p` at the place of action 1. The group is under
"evenhand", which VW passes over: it never learns from it. cb text: the tag carries what the label
cannot say: id, group, the probability of accepting (1 - p would only round to it), and what was
decided where no label can be given. It is written as in the query of a web address, so it has no
blanks, colons or bars; so are the names of features.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import BadLabel, InvalidInput, MissingColumn
from evenhand.evaluation.decision_log import (
    FEATURE,
    TOLERANCE,
    DecisionLog,
    LogReading,
    json_lines,
    lines_of,
    no_propensities,
    write_lines,
)
from evenhand.tables import TableColumn, number, same_value
from evenhand.tables.column import Cells
from evenhand.words import Group

ACCEPT, REJECT = 1, 2
COSTS = {1: 0.0, -1: 1.0}
REJECTED = 0.5
NAMESPACE = "x"
Row = tuple[list[float], bool, float, int, str | None, str | None]
"""Features, accept, acceptance, label, group and id of a decision, as plain values."""
START = datetime(1970, 1, 1, tzinfo=UTC)
"""Events are a second apart from here on: a log has an order but no clock."""


class Logged(NamedTuple):
    """One line of a file: features by name, and the cost of an accept or None."""

    accept: bool
    acceptance: float
    cost: str | float | None
    features: Json
    group: Group
    id: object


def _log(lines: list[Logged], reading: LogReading) -> DecisionLog:
    """The lines as a log. The cost of an accept says its outcome: 0 is good and 1 bad, unless
    `good` names another cost. What a line does not name is 0, and texts become 0/1 features
    `name=value`, as VW has it.
    """
    groups, by = [line.group for line in lines], reading.columns.get("group")
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
                hint="if another cost is the good outcome, name it: --good -1.",
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
        **{FEATURE + name: np.array([row.get(name, 0.0) for row in rows]) for name in names},
    }
    plain = replace(reading, columns={}, good=None)
    return plain.log({name: TableColumn(cells) for name, cells in columns.items()})


def _rows(log: DecisionLog) -> Iterator[Row]:
    ids = [None] * len(log) if log.id is None else log.id.tolist()
    columns = (log.features, log.accept, log.acceptance, log.label, log.group)
    return zip(*(column.tolist() for column in columns), ids, strict=True)


# dsjson


def write_dsjson(log: DecisionLog, path: Path) -> None:
    """One event per decision."""
    log.require_single("dsjson")
    write_lines(
        (
            json.dumps(_event(log.names, place, row), allow_nan=False)
            for place, row in enumerate(_rows(log))
        ),
        path,
    )


def _event(names: tuple[str, ...], place: int, row: Row) -> Json:
    features, accept, acceptance, label, group, id = row
    chosen, other = (ACCEPT, REJECT) if accept else (REJECT, ACCEPT)
    chances = [acceptance, 1.0 - acceptance] if accept else [1.0 - acceptance, acceptance]
    known = {
        "_label_cost": COSTS.get(label) if accept else REJECTED,
        "_label_probability": chances[0],
        "_label_Action": chosen,
        "_labelIndex": chosen - 1,
    }
    return {
        **({} if accept and label == 0 else known),
        "Timestamp": (START + timedelta(seconds=place)).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "Version": "1",
        **({} if id is None else {"EventId": id}),
        "a": [chosen, other],
        "c": {
            NAMESPACE: dict(zip(names, features, strict=True)),
            "_multi": [{"a": {"accept": 1}}, {"a": {"reject": 1}}],
        },
        "p": chances,
        "pdrop": 0.0,
        **({} if group is None else {"evenhand": {"group": group}}),
    }


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
    for place, event in enumerate(events, 1):
        where = f"{reading.source}: event {place}"
        accept, acceptance = _decided(event, where)
        lines.append(
            Logged(
                accept,
                acceptance,
                event.get("_label_cost") if accept else None,
                _flat(event.get("c", {}), where),
                event.get("evenhand", {}).get("group"),
                event.get("EventId"),
            )
        )
    return _log(lines, reading)


def _decided(event: Json, where: str) -> tuple[bool, float]:
    """Whether the person was accepted, and with which probability: the entry of `p` for action 1,
    or what the label states of the chosen action.
    """
    actions, chances = event.get("a"), event.get("p")
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


def _flat(context: Json, where: str) -> Json:
    """Features by name; those of a namespace of its own are `namespace^name`, as VW prints them."""
    features: Json = {}
    for name, value in context.items():
        if name.startswith("_"):
            continue
        inner = value if isinstance(value, dict) else {name: value}
        mark = f"{name}^" if isinstance(value, dict) and name != NAMESPACE else ""
        for key, feature in inner.items():
            if not isinstance(feature, bool | int | float | str):
                source, _, event = where.rpartition(": ")
                raise InvalidInput(
                    f"{source}: feature {key!r} of {event} is {feature!r}; "
                    "it must be a number or a text."
                )
            features[mark + key] = feature
    return features


# cb text


def write_cb_text(log: DecisionLog, path: Path) -> None:
    """One line per decision."""
    log.require_single("cb text")
    names = [quote(name, safe="") for name in log.names]
    lines = []
    for features, accept, p, label, group, id in _rows(log):
        known = f"{ACCEPT}:{COSTS.get(label)}:{p!r} "
        if not accept:
            known = f"{REJECT}:{REJECTED}:{1.0 - p!r} "
        elif label == 0:
            known = ""
        tag = {"id": id, "accept": int(accept), "p": repr(p), "group": group}
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
        lines.append(Logged(accept, p, cost, features, tag.get("group"), tag.get("id")))
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
    accept, chance = parts[0] == str(ACCEPT), _number(parts[2], where)
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
