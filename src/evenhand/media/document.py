"""A result as JSON: the numbers of the record, and what is said of them."""

from collections.abc import Mapping
from typing import Any

from evenhand.media.frames import columns_of
from evenhand.result import Amount, Between, Cell, Result
from evenhand.shown import plain

FORMAT = 1
"""The number of the JSON format."""


def document(result: Result) -> dict[str, Any]:
    """A result as plain JSON.

    Parameters
    ----------
    result : Result
        What is said.

    Returns
    -------
    dict
        The numbers of the record are under "numbers", the tables column by column under "tables".

    Examples
    --------
    >>> document(Result("note", "Two groups", {"people": 8}))["numbers"]
    {'people': 8}
    """
    return {
        "format": FORMAT,
        "kind": result.kind,
        "title": result.title,
        "verdict": None if result.verdict is None else plain(result.verdict.to_json()),
        "answer": list(result.answer),
        "facts": _cells(result.facts),
        "policy": list(result.policy),
        "beware": list(result.beware),
        "assumptions": list(result.assumptions),
        "read": list(result.read),
        "asked": _cells(result.asked),
        "command": result.command,
        "numbers": plain(result.record),
        "tables": {one.key: plain(columns_of(one)) for one in result.tables},
    }


def _cells(values: Mapping[str, Cell]) -> dict[str, Any]:
    return {name: _cell(value) for name, value in values.items()}


def _cell(value: Cell) -> Any:
    if isinstance(value, Amount):
        return _cell(value.value)
    if isinstance(value, Between):
        return {"low": plain(value.low), "high": plain(value.high)}
    return plain(value)
