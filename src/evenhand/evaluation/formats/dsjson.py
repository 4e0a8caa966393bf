"""Vowpal Wabbit's dsjson: one event per line; action 1 accepts, 2 rejects; costs 0 (good), 1 (bad)
and 1/2 (rejected).

These costs are the paper's transformed loss, in which a rejection costs the same whoever was
rejected, so `vw --dsjson --cb_explore_adf` learns from the file as it is. An accepted person whose
outcome is open is an event without a label. The probability of accepting stands in `p` at the place
of action 1. Group and count are under "evenhand", which VW passes over: it never learns from them.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.evaluation.decision_log import DecisionLog, no_propensities
from evenhand.evaluation.formats.reading import (
    TOLERANCE,
    Reading,
    feature_columns,
    log_of_columns,
    one_hot,
    with_group,
)
from evenhand.evaluation.formats.tables import json_lines

ACCEPT, REJECT = 1, 2
COSTS = {1: 0.0, -1: 1.0}
REJECTED = 0.5
NAMESPACE = "x"
START = datetime(1970, 1, 1, tzinfo=UTC)
"""Events are a second apart from here on: a log has an order but no clock."""


def write(log: DecisionLog, path: Path) -> None:
    """One event per decision."""
    log.require_single("dsjson")
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(event, allow_nan=False) + "\n" for event in _events(log))


def _events(log: DecisionLog) -> Any:
    columns = (
        log.features.tolist(),
        log.accept.tolist(),
        log.acceptance.tolist(),
        log.label.tolist(),
        log.group.tolist(),
    )
    for row, (x, accept, p, label, group) in enumerate(zip(*columns, strict=True)):
        chosen, other = (ACCEPT, REJECT) if accept else (REJECT, ACCEPT)
        chances = [p, 1.0 - p] if accept else [1.0 - p, p]
        known = (
            {}
            if accept and label == 0
            else {
                "_label_cost": COSTS[label] if accept else REJECTED,
                "_label_probability": chances[0],
                "_label_Action": chosen,
                "_labelIndex": chosen - 1,
            }
        )
        yield {
            **known,
            "Timestamp": (START + timedelta(seconds=row)).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "Version": "1",
            **({} if log.id is None else {"EventId": log.id[row]}),
            "a": [chosen, other],
            "c": {
                NAMESPACE: dict(zip(log.names, x, strict=True)),
                "_multi": [{"a": {"accept": 1}}, {"a": {"reject": 1}}],
            },
            "p": chances,
            "pdrop": 0.0,
            **({} if group is None else {"evenhand": {"group": group}}),
        }


def read(path: Path, told: Reading) -> DecisionLog:
    """Events with two actions.

    The cost of an accept says its outcome: 0 is good and 1 bad, unless `good` names another cost.
    """
    events = json_lines(path)
    _require_even_drops(events, told.source)
    decided = [_decided(event, row, told.source) for row, event in enumerate(events)]
    rows = [_flat(event.get("c", {}), row, told.source) for row, event in enumerate(events)]
    group = with_group(rows, told, [event.get("evenhand", {}).get("group") for event in events])
    ids = [event.get("EventId") for event in events]
    columns = {
        "accept": np.array([accept for accept, _, _ in decided]),
        "acceptance": np.array([p for _, p, _ in decided]),
        "label": told.outcomes([cost for _, _, cost in decided]),
        "group": group,
        **({} if all(value is None for value in ids) else {"id": ids}),
        **{f"feature_{name}": values for name, values in feature_columns(one_hot(rows)).items()},
    }
    return log_of_columns(columns, Reading(told.source, {}, told.features))


def _decided(event: Json, row: int, source: str) -> tuple[bool, float, Any]:
    """(accepted, probability of accepting, cost of the accept or None)."""
    where = f"{source}: event {row + 1}"
    actions, chances = event.get("a"), event.get("p")
    stated = event.get("_label_probability")
    chosen = event.get("_label_Action", actions[0] if actions else None)
    if chances is None and stated is None:
        raise no_propensities(where)
    if chosen not in (ACCEPT, REJECT) or (
        actions is not None and sorted(actions) != [ACCEPT, REJECT]
    ):
        raise InvalidInput(
            f"{where} chose action {chosen} of {actions}; a decision has two: 1 accepts, 2 rejects."
        )
    accept = chosen == ACCEPT
    told = None if stated is None else float(stated)
    p = _chance(actions, chances, chosen, told, where)
    return accept, p, event.get("_label_cost") if accept else None


def _chance(actions: Any, chances: Any, chosen: int, stated: float | None, where: str) -> float:
    """The probability of accepting: the entry of `p` for action 1, or what the label states of the
    chosen action.
    """
    if stated is not None and (actions is None or chances is None):
        return stated if chosen == ACCEPT else 1.0 - stated
    if actions is None or len(chances) != 2:
        raise InvalidInput(
            f"{where} has the actions {actions} and the probabilities {chances}; it needs two of each."
        )
    taken = float(chances[actions.index(chosen)])
    if stated is not None and abs(taken - stated) > TOLERANCE:
        raise InvalidInput(
            f"{where} states {stated:g} as the probability of its decision, but p says {taken:g}."
        )
    return float(chances[actions.index(ACCEPT)])


def _flat(context: Json, row: int, source: str) -> dict[str, Any]:
    """Features by name; those of a namespace of its own are `namespace^name`, as VW prints them."""
    found: dict[str, Any] = {}
    for name, value in context.items():
        if name.startswith("_"):
            continue
        inner = value if isinstance(value, dict) else {name: value}
        mark = f"{name}^" if isinstance(value, dict) and name != NAMESPACE else ""
        for key, feature in inner.items():
            if not isinstance(feature, bool | int | float | str):
                raise InvalidInput(
                    f"{source}: feature {key!r} of event {row + 1} is {feature!r}; it must be a number or a text."
                )
            found[mark + key] = feature
    return found


def _require_even_drops(events: list[Json], source: str) -> None:
    drops = {float(event.get("pdrop", 0.0)) for event in events}
    if len(drops) > 1:
        raise InvalidInput(
            f"{source} was thinned unevenly: pdrop takes {len(drops)} values between {min(drops):g} and {max(drops):g}.",
            hint="evaluate stretches of one pdrop each, or thin the log evenly.",
        )
