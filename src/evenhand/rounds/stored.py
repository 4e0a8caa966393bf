"""A table as plain values and arrays, and back."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.rounds.features import Column
from evenhand.rounds.groups import UNKNOWN
from evenhand.rounds.table import KINDS, Rounds
from evenhand.words import BoolArray, FloatArray, IntArray


def to_fields(table: Rounds) -> dict[Hashable, Any]:
    """Everything, as plain values and arrays; `from_fields` reads it.

    Groups are numbered anew, by the people who are left: a file says nothing of the erased.
    """
    codes = table["group"]
    groups = table.group_codes.values
    used = list(dict.fromkeys(codes[codes >= 0].tolist()))
    if table.keep == "counts":  # nobody was erased, and sums know groups by their codes
        used = list(range(len(groups)))
    renumbered: IntArray = np.full(len(groups) + 1, UNKNOWN, dtype=KINDS["group"])
    renumbered[used] = np.arange(len(used))
    columns = {name: table[name] for name in KINDS if name not in ("group", "at")}
    return {
        "columns": columns | {"group": renumbered[codes]},
        "at": None if np.isnan(table["at"]).all() else _without_nan(table["at"]),
        "features": table.features_of(slice(None)),
        "prices": None if table.owed is None else table.owed[: table.n_rows],
        "groups": [groups[code] for code in used],
        "counted": table.counted,
        "before": table.before,
        "decided": table.decided,
        "returned": table.returned,
        "has_new_labels": table.has_new_labels,
        "schema": table.schema,
        "epochs": table.epochs,
        "overdue": table.overdue,
        "keep": table.keep,
        "dropped": (table.dropped, table.dropped_bill),
    }


def from_fields(stored: Mapping[Hashable, Any]) -> Rounds:
    """What `to_fields` wrote; InvalidInput for columns that no run can have led to."""
    table = Rounds(stored["keep"])
    table.dropped, table.dropped_bill = stored["dropped"]
    given = dict(stored["columns"])
    size = len(given["accept"])
    timed = stored["at"] is not None
    given["at"] = np.full(size, np.nan)
    if timed:
        given["at"] = np.where(stored["at"][0], np.nan, stored["at"][1])
    columns: dict[str, Column] = {}
    for name, kind in KINDS.items():
        column = given.pop(name)
        if column.shape != (size,) or column.dtype != kind:
            raise InvalidInput(
                f"the column {name} of the rounds is {column.dtype} of shape {column.shape}."
            )
        columns[name] = column.copy()
    if given:
        raise InvalidInput(f"the rounds have unknown columns: {', '.join(given)}.")
    features = _matrix(stored["features"], size, "features")
    owed = None if stored["prices"] is None else _matrix(stored["prices"], size, "prices")
    table.replace_rows(columns, features, owed, timed=timed)
    for group in stored["groups"]:
        table.group_codes.code_of(group)
    table.counted = list(stored["counted"])
    table.before = list(stored["before"])
    table.decided = stored["decided"]
    table.returned = stored["returned"]
    table.has_new_labels = stored["has_new_labels"]
    table.schema = stored["schema"]
    table.epochs = list(stored["epochs"])
    table.overdue = stored["overdue"]
    _require_possible(table)
    table.recount_bill()
    return table


def _require_possible(table: Rounds) -> None:
    p = table["acceptance"]
    accept = table["accept"]
    label = table["label"]
    codes = table["group"]
    requirements = {
        "an acceptance probability lies outside [0, 1]": ~((p >= 0) & (p <= 1)),
        "somebody was accepted or rejected with probability 0": p == np.where(accept, 0, 1),
        "a label is none of -1, 0 and +1": (np.abs(label) > 1) | (np.abs(table["settled"]) > 1),
        "somebody has a label who was rejected or erased": (label != 0)
        & ~(accept & ~table.label_discarded),
        "somebody was audited who was rejected": ~accept & table["audit"],
        "a group is not in the list of groups": (codes < UNKNOWN)
        | (codes >= len(table.group_codes.values)),
    }
    for requirement, broken in requirements.items():
        if broken.any():
            round = table["round"][int(np.argmax(broken))]
            raise InvalidInput(f"in round {round} {requirement}.")
    # the rounds 0, 1, ... stand once each, in rows or in counts
    n_rounds = len(table) + sum(chunk.stop - chunk.first for chunk in table.counted)
    n_rounds += table.dropped
    possible = n_rounds == table.decided and 0 <= table.returned <= table.decided
    possible = possible and bool((np.diff(table["round"]) > 0).all())
    next_round = 0
    for epoch, first, stop in table.spans(0, table.decided):
        in_order = first >= next_round if table.dropped else first == next_round
        possible = possible and in_order and 1 <= epoch <= len(table.epochs)
        next_round = stop
    complete = next_round == table.decided or table.dropped > 0
    if not possible or not complete:
        raise InvalidInput(
            f"the table holds {n_rounds} rounds of {len(table.epochs)} epochs, {table.decided} "
            f"were decided and {table.returned} returned; each round stands once, in the order "
            "of arrival."
        )


def _matrix(given: Column, rows: int, name: str) -> FloatArray:
    if given.ndim != 2 or len(given) != rows:
        raise InvalidInput(f"{name} of the rounds has shape {given.shape} for {rows} rounds.")
    return given.astype(np.float64)


def _without_nan(column: FloatArray) -> tuple[BoolArray, FloatArray]:
    """(missing, values): files hold finite numbers only."""
    missing = np.isnan(column)
    return missing, np.where(missing, 0.0, column)
