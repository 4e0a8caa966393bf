"""Hypotheses and mixtures from plain JSON: one reader per kind."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from evenhand.contracts import GroupUse, Hypothesis, Json
from evenhand.errors import InvalidInput
from evenhand.hypotheses.constants import Constant, GroupClassifier
from evenhand.hypotheses.finite import TableRow
from evenhand.hypotheses.linear import LinearRule
from evenhand.hypotheses.thresholds import PerGroup, Threshold
from evenhand.hypotheses.trees import Tree
from evenhand.policies.mixture import Mixture


def hypothesis_from_json(data: Json) -> Hypothesis:
    """The hypothesis h with h.to_json() == data."""
    return cast(Hypothesis, _read(data, _HYPOTHESES, "hypothesis"))


def policy_from_json(data: Json) -> Mixture:
    """The mixture pi with pi.to_json() == data."""
    return cast(Mixture, _read(data, _POLICIES, "policy"))


def _read(data: Json, readers: Mapping[str, Callable[[Json], Any]], noun: str) -> Any:
    kind = str(data.get("kind")) if hasattr(data, "get") else type(data).__name__
    if kind not in readers:
        raise InvalidInput(f"a {noun} of kind {kind!r} is unknown; the known kinds are {', '.join(sorted(readers))}.")
    try:
        return readers[kind](data)
    except KeyError as missing:
        raise InvalidInput(f"a {noun} of kind {kind!r} lacks {missing}; it has {', '.join(sorted(data))}.") from missing
    except (TypeError, AttributeError, IndexError) as error:
        raise InvalidInput(f"a {noun} of kind {kind!r} is malformed: {error}.") from error


def _table(data: Json) -> TableRow:
    accepted = set(data["accepted"])
    return TableRow(tuple(c in accepted for c in range(data["contexts"])))


def _per_group(data: Json) -> PerGroup:
    return PerGroup(tuple((part["group"], hypothesis_from_json(part["hypothesis"])) for part in data["parts"]))


def _tree(data: Json) -> Tree:
    nodes = {part: tuple(data[part]) for part in ("column", "value", "left", "right", "accept")}
    return Tree(**nodes, columns=data["columns"])


def _mixture(data: Json) -> Mixture:
    hypotheses = tuple(hypothesis_from_json(part["hypothesis"]) for part in data["parts"])
    return Mixture(hypotheses, tuple(part["weight"] for part in data["parts"]), cast(GroupUse, data["group_use"]))


_HYPOTHESES: Mapping[str, Callable[[Json], Hypothesis]] = {
    "constant": lambda data: Constant(data["accept"]),
    "group": lambda data: GroupClassifier(data["value"]),
    "table": _table,
    "threshold": lambda data: Threshold(data["column"], data["value"], data["columns"], data["at_least"]),
    "per-group": _per_group,
    "linear": lambda data: LinearRule(tuple(data["weights"]), data["threshold"]),
    "tree": _tree,
}

_POLICIES: Mapping[str, Callable[[Json], Mixture]] = {"mixture": _mixture}
