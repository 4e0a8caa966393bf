"""Hypotheses, mixtures and hypothesis classes from plain JSON, one reader per kind; and classes as
plain JSON.
"""

import base64
import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np

from evenhand.contracts import GroupUse, Hypothesis, HypothesisClass, Json, ReadsRules
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.hypotheses.constants import Constant, GroupClassifier, Unread
from evenhand.hypotheses.estimator import Estimator, Fitted, Tree
from evenhand.hypotheses.finite import FiniteClass, TableRow
from evenhand.hypotheses.linear import Linear, LinearRule
from evenhand.hypotheses.models import (
    NOT_GIVEN,
    StoredModel,
    load_model,
    store_model,
    trusting,
)
from evenhand.hypotheses.per_group import PerGroupCuts
from evenhand.hypotheses.thresholds import PerGroup, ScoreThresholds, Stumps, Threshold
from evenhand.policies.mixture import Mixture, models_inside
from evenhand.registry import Registry
from evenhand.schema import Schema

Kind = TypeVar("Kind")


def hypothesis_from_json(
    data: Json, *, models: Mapping[str, Json] | None = None, trusted: Iterable[str] = ()
) -> Hypothesis:
    """Read a hypothesis.

    Parameters
    ----------
    data : dict
        What its `to_json` returned.
    models : mapping, optional
        Fitted models by their sha256, where `data` refers to them.
    trusted : iterable of str
        Full names of further types in models that may be loaded; see `models.load_model`.

    Returns
    -------
    Hypothesis
        The hypothesis h with h.to_json() == data.

    Raises
    ------
    InvalidInput
        If the kind is unknown, or something is missing.

    Examples
    --------
    >>> hypothesis_from_json({"kind": "constant", "accept": True}).describe()
    'accept all applicants'
    """
    whole = data if models is None else models_inside(data, models)
    with trusting(trusted):
        return _read(whole, HYPOTHESES, "hypothesis")


def rule_from_json(data: Json, hypotheses: object) -> Hypothesis:
    """Read a rule of a class: kinds that evenhand does not know are read by the class itself.

    Parameters
    ----------
    data : dict
        What the rule's `to_json` returned.
    hypotheses : HypothesisClass or None
        The class; it may be one that `ReadsRules`.

    Returns
    -------
    Hypothesis
        The same rule.

    Examples
    --------
    >>> rule_from_json({"kind": "constant", "accept": True}, None).describe()
    'accept all applicants'
    """
    if data.get("kind") not in HYPOTHESES and isinstance(hypotheses, ReadsRules):
        return hypotheses.read(data)
    return hypothesis_from_json(data)


def policy_from_json(
    data: Json, *, models: Mapping[str, Json] | None = None, trusted: Iterable[str] = ()
) -> Mixture:
    """Read a policy.

    Parameters
    ----------
    data : dict
        What its `to_json` returned.
    models, trusted
        As in `hypothesis_from_json`; `models` is what ``to_json(models)`` has put apart.

    Returns
    -------
    Mixture
        The mixture pi with pi.to_json() == data.

    Raises
    ------
    InvalidInput
        If the kind is unknown, or something is missing.

    Examples
    --------
    >>> from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
    >>> coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5))
    >>> policy_from_json(coin.to_json()) == coin
    True
    """
    whole = data if models is None else models_inside(data, models)
    with trusting(trusted):
        return _read(whole, {"mixture": _mixture}, "policy")


def class_to_json(hypotheses: HypothesisClass) -> Json:
    """Write a hypothesis class.

    Parameters
    ----------
    hypotheses : HypothesisClass
        One of evenhand's classes.

    Returns
    -------
    dict
        Plain JSON with a "kind".

    Raises
    ------
    NotSerialisable
        For functions, foreign models and classes that evenhand does not know.

    Examples
    --------
    >>> from evenhand.hypotheses import Stumps
    >>> class_to_json(Stumps())
    {'kind': 'stumps', 'max_bins': None}
    """
    write = _CLASS_WRITERS.get(type(hypotheses))
    if write is None:
        raise NotSerialisable(
            f"{type(hypotheses).__name__} is a class of your own; it cannot be written as JSON.",
            hint=_GIVE,
        )
    return write(hypotheses)


def class_from_json(data: Json) -> HypothesisClass:
    """Read a hypothesis class.

    Parameters
    ----------
    data : dict
        What `class_to_json` returned.

    Returns
    -------
    HypothesisClass
        The class H with class_to_json(H) == data.

    Raises
    ------
    InvalidInput
        If the kind is unknown, or something is missing.

    Examples
    --------
    >>> class_from_json({"kind": "linear", "penalty": 0.5})
    Linear(penalty=0.5)
    """
    return _read(data, _CLASSES, "hypothesis class")


def _read(data: Json, readers: Mapping[str, Callable[[Json], Kind]], noun: str) -> Kind:
    kind = str(data.get("kind")) if hasattr(data, "get") else type(data).__name__
    if kind not in readers:
        raise InvalidInput(
            f"a {noun} of kind {kind!r} is unknown; the known kinds are "
            f"{', '.join(sorted(readers))}."
        )
    try:
        return readers[kind](data)
    except KeyError as missing:
        raise InvalidInput(
            f"a {noun} of kind {kind!r} lacks {missing}; it has {', '.join(sorted(data))}."
        ) from missing
    except (TypeError, AttributeError, IndexError) as error:
        raise InvalidInput(f"a {noun} of kind {kind!r} is malformed: {error}.") from error


def _mixture(data: Json) -> Mixture:
    hypotheses = tuple(hypothesis_from_json(part["hypothesis"]) for part in data["parts"])
    weights = tuple(part["weight"] for part in data["parts"])
    schema = None if data.get("schema") is None else Schema.from_json(data["schema"])
    return Mixture(hypotheses, weights, cast(GroupUse, data["group_use"]), schema)


_TREE_PARTS = ("column", "value", "left", "right", "accept")
HYPOTHESES: Registry[Callable[[Json], Hypothesis]] = Registry(
    "kind of hypothesis",
    {
        "constant": lambda data: Constant(data["accept"]),
        "group": lambda data: GroupClassifier(data["value"]),
        "table": lambda data: TableRow(
            tuple(map(set(data["accepted"]).__contains__, range(data["contexts"])))
        ),
        "threshold": lambda data: Threshold(
            data["column"], data["value"], data["columns"], data["at_least"]
        ),
        "per-group": lambda data: PerGroup(
            tuple(
                (part["group"], hypothesis_from_json(part["hypothesis"])) for part in data["parts"]
            )
        ),
        "linear": lambda data: LinearRule(
            tuple(data["weights"]), data["threshold"], tuple(data.get("spread", ()))
        ),
        "tree": lambda data: Tree(
            **{part: tuple(data[part]) for part in _TREE_PARTS}, columns=data["columns"]
        ),
        "fitted": Fitted.from_json,
        "unread": lambda data: Unread(data["rule"], data["reason"]),
    },
)
"""The reader of each kind of hypothesis; the kind is what `to_json` writes under "kind"."""

_TRUSTED = "sklearn."
_GIVE = "hand the same class over again on loading: load(path, hypotheses=...)."


def _write_finite(hypotheses: FiniteClass) -> Json:
    if hypotheses.table is not None:
        bits = base64.b64encode(np.packbits(hypotheses.table).tobytes()).decode()
        return {"kind": "finite-table", "shape": list(hypotheses.table.shape), "bits": bits}
    try:
        members = [member.to_json() for member in hypotheses.listed]
    except NotSerialisable as reason:
        raise NotSerialisable(f"a member of the class is no data: {reason}", hint=_GIVE) from reason
    return {"kind": "finite", "members": members, "uses_group": hypotheses.uses_group}


def _read_table(data: Json) -> FiniteClass:
    members, contexts = data["shape"]
    bits = np.frombuffer(base64.b64decode(data["bits"]), dtype=np.uint8)
    table = np.unpackbits(bits, count=members * contexts).reshape(members, contexts)
    return FiniteClass.from_table(table)


def _write_estimator(hypotheses: Estimator) -> Json:
    """A classifier of scikit-learn with plain parameters by its name and these, any other (a
    pipeline, a model of LightGBM) as skops writes it.
    """
    kind = type(hypotheses.classifier)
    schema = hypotheses.schema
    named = {} if schema is None else {"schema": schema.to_json()}
    settings = hypotheses.classifier.get_params(deep=False)
    plain = bool | int | float | str | None
    if kind.__module__.startswith(_TRUSTED) and all(
        isinstance(value, plain) for value in settings.values()
    ):
        names = {"module": kind.__module__, "name": kind.__qualname__}
        return {"kind": "estimator", **names, "settings": settings, **named}
    try:
        stored = store_model(hypotheses.classifier)
    except NotSerialisable as reason:
        raise NotSerialisable(str(reason), hint=_GIVE) from reason
    return {"kind": "estimator", "model": stored.to_json(), **named}


def _read_estimator(data: Json) -> Estimator:
    schema = None if data.get("schema") is None else Schema.from_json(data["schema"])
    if "model" in data:
        return Estimator(load_model(StoredModel.from_json(data["model"])), schema)
    from sklearn.base import ClassifierMixin  # heavy: only for those who stored such a classifier

    trusted = data["module"].startswith(_TRUSTED)
    kind = getattr(import_module(data["module"]), data["name"]) if trusted else None
    if not (isinstance(kind, type) and issubclass(kind, ClassifierMixin)):
        raise InvalidInput(
            f"{data['module']}.{data['name']} is no classifier of scikit-learn; nothing else is "
            "loaded."
        )
    known = inspect.signature(kind).parameters  # of the version that is installed
    settings = {
        name: value
        for name, value in data["settings"].items()
        if name in known and value not in NOT_GIVEN
    }
    return Estimator(kind(**settings), schema)


_CLASS_WRITERS: Mapping[type, Callable[[Any], Json]] = {
    FiniteClass: _write_finite,
    Stumps: lambda made: {"kind": "stumps", "max_bins": made.max_bins},
    ScoreThresholds: lambda made: {
        "kind": "thresholds",
        "column": made.column,
        "per_group": made.per_group,
    },
    Linear: lambda made: {"kind": "linear", "penalty": made.penalty},
    Estimator: _write_estimator,
    PerGroupCuts: lambda made: {"kind": "per-group-cuts", "rules": class_to_json(made.rules)},
}

_CLASSES: Mapping[str, Callable[[Json], HypothesisClass]] = {
    "finite": lambda data: FiniteClass(
        map(hypothesis_from_json, data["members"]), uses_group=data["uses_group"]
    ),
    "finite-table": _read_table,
    "stumps": lambda data: Stumps(data["max_bins"]),
    "thresholds": lambda data: ScoreThresholds(data["column"], data["per_group"]),
    "linear": lambda data: Linear(data["penalty"]),
    "estimator": _read_estimator,
    "per-group-cuts": lambda data: PerGroupCuts(class_from_json(data["rules"])),
}
