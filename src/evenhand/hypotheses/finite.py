"""Finite classes: every hypothesis is written down, as a callable or as a row of a table over
contexts.

Bound to rows, a finite class is a 0-1 matrix A (members, rows or contexts), and totals = channels
A^T.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.contracts import Enumeration, Hypothesis, HypothesisClass, Json
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.hypotheses._batches import TableBatch
from evenhand.hypotheses._rows import (
    checked_channels,
    checked_costs,
    checked_rows,
    first_minimum,
    require_group,
)
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

Rule = Callable[[FloatArray, GroupArray | None], BoolArray]

_BLOCK = 1 << 20


@dataclass(frozen=True)
class TableRow:
    """Accept context c iff contexts[c]; features[:, 0] is the context's number."""

    contexts: tuple[bool, ...]

    @cached_property
    def _lookup(self) -> BoolArray:
        return np.array(self.contexts, dtype=bool)

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """contexts[features[:, 0]]."""
        return self._lookup[context_numbers(features, len(self.contexts))]

    @staticmethod
    def together(members: "Sequence[TableRow]") -> TableBatch | None:
        """Several rows of tables over the same contexts, asked together."""
        if len({len(rule.contexts) for rule in members}) > 1:
            return None
        return TableBatch(np.array([rule.contexts for rule in members]), context_numbers)

    def describe(self, names: Sequence[str] | None = None) -> str:
        """In words, the first twelve contexts by number."""
        accepted = np.flatnonzero(self._lookup)
        listed = ", ".join(str(c) for c in accepted[:12]) + (", ..." if len(accepted) > 12 else "")
        return f"accept {len(accepted)} of {len(self.contexts)} contexts" + (
            f": {listed}" if listed else ""
        )

    def to_json(self) -> Json:
        """Plain JSON."""
        return {
            "kind": "table",
            "contexts": len(self.contexts),
            "accepted": np.flatnonzero(self._lookup).tolist(),
        }


@dataclass(frozen=True)
class Called:
    """A hypothesis that is somebody's function; the group is shown to it only if `uses_group`."""

    rule: Rule
    uses_group: bool = False

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """rule(features, group)."""
        shown = require_group(group, len(features), self._name) if self.uses_group else None
        return _as_acceptance(self.rule(features, shown), len(features), self._name)

    def describe(self, names: Sequence[str] | None = None) -> str:
        """In words."""
        return f"accept if {self._name}(features, group)"

    def to_json(self) -> Json:
        """Always NotSerialisable: code is not data."""
        raise NotSerialisable(
            f"{self._name} is a Python function and cannot be written as JSON.",
            hint="use FiniteClass.from_table, or a hypothesis object with its own to_json.",
        )

    @property
    def _name(self) -> str:
        return str(getattr(self.rule, "__name__", type(self.rule).__name__))


class _Members(Protocol):
    """How the members of a finite class are stored."""

    def __len__(self) -> int: ...
    @property
    def params(self) -> Mapping[str, Any]: ...
    def bind(self, features: FloatArray, group: GroupArray | None) -> Enumeration: ...


class FiniteClass(HypothesisClass):
    """H = {h_1, ..., h_m}; exact, ln|H| = ln m."""

    exact = True

    def __init__(
        self, hypotheses: Iterable[Rule | Hypothesis], *, uses_group: bool = False
    ) -> None:
        self.uses_group = uses_group
        self._members: _Members = _Listed(
            tuple(_as_hypothesis(h, uses_group) for h in hypotheses), uses_group
        )
        _require_members(len(self._members))

    @classmethod
    def from_table(cls, accepts: ArrayLike) -> Self:
        """One hypothesis per row of a (|H|, contexts) bool matrix; features[:, 0] is the context's
        number.
        """
        made = cls.__new__(cls)
        made.uses_group = False
        made._members = _Table(_as_table(accepts))
        return made

    def __len__(self) -> int:
        return len(self._members)

    @property
    def listed(self) -> tuple[Hypothesis, ...]:
        """The members of a class that was given as objects; none for a table."""
        return self._members.hypotheses if isinstance(self._members, _Listed) else ()

    @property
    def table(self) -> BoolArray | None:
        """The (|H|, contexts) matrix of a class that was given as a table."""
        return self._members.accepts if isinstance(self._members, _Table) else None

    def check_rows(self, features: FloatArray) -> None:
        """InvalidInput for rows that no member could decide about."""
        if isinstance(self._members, _Table):
            context_numbers(features, self._members.accepts.shape[1])

    def __repr__(self) -> str:
        return f"<FiniteClass of {len(self)} hypotheses ({self._members.params['members']})>"

    @property
    def params(self) -> Mapping[str, Any]:
        """Class, size and how the members are stored."""
        return {
            "class": "FiniteClass",
            "size": len(self),
            "uses_group": self.uses_group,
            **self._members.params,
        }

    @property
    def log_size(self) -> float:
        """ln|H|."""
        return math.log(len(self))

    def log_growth(self, rows: int, columns: int) -> float:
        """min(ln|H|, rows ln 2)."""
        return min(self.log_size, rows * math.log(2.0))

    def bind(self, features: FloatArray, group: GroupArray | None) -> Enumeration:
        """Evaluate every member once."""
        rows = checked_rows(features)
        return self._members.bind(
            rows, require_group(group, len(rows), "this FiniteClass") if self.uses_group else None
        )


@dataclass(frozen=True, eq=False)
class _Listed:
    """Members as hypothesis objects."""

    hypotheses: tuple[Hypothesis, ...]
    uses_group: bool

    def __len__(self) -> int:
        return len(self.hypotheses)

    @property
    def params(self) -> Mapping[str, Any]:
        return {"members": "callables", "names": [h.describe() for h in self.hypotheses[:20]]}

    def bind(self, features: FloatArray, group: GroupArray | None) -> Enumeration:
        rows = np.arange(len(features))
        accepts = np.array(
            [
                _as_acceptance(h.accepts(features, group), len(rows), h.describe())
                for h in self.hypotheses
            ]
        )
        return _BoundMatrix(accepts, rows, lambda member: self.hypotheses[member])


@dataclass(frozen=True, eq=False)
class _Table:
    """Members as rows of a matrix; no object per member is made before somebody asks for it."""

    accepts: BoolArray

    def __len__(self) -> int:
        return len(self.accepts)

    @property
    def params(self) -> Mapping[str, Any]:
        digest = hashlib.sha256(np.packbits(self.accepts).tobytes()).hexdigest()[:16]
        return {"members": "table", "contexts": self.accepts.shape[1], "digest": digest}

    def bind(self, features: FloatArray, group: GroupArray | None) -> Enumeration:
        contexts = context_numbers(features, self.accepts.shape[1])
        return _BoundMatrix(
            self.accepts, contexts, lambda member: TableRow(tuple(self.accepts[member].tolist()))
        )


@dataclass(frozen=True, eq=False)
class _BoundMatrix:
    """totals[c, h] = sum over contexts of accepts[h, context] * (sum of channel c over the rows of
    that context).
    """

    accepts: BoolArray
    context: IntArray
    make: Callable[[int], Hypothesis]

    def totals(self, channels: FloatArray) -> FloatArray:
        """Channels summed per context, then one matrix product, in blocks of members that fit the
        cache.
        """
        checked = checked_channels(channels, len(self.context))
        members, contexts = self.accepts.shape
        per_context = np.array(
            [np.bincount(self.context, channel, contexts) for channel in checked]
        ).reshape(-1, contexts)
        out = np.empty((len(checked), members))
        step = max(1, _BLOCK // contexts)
        for start in range(0, members, step):
            out[:, start : start + step] = per_context @ self.accepts[
                start : start + step
            ].T.astype(np.float64)
        return out

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """argmin of totals; ties go to the member that was listed first."""
        cost = checked_costs(acceptance_cost, len(self.context))
        return self.hypothesis(first_minimum(self.totals(cost[np.newaxis])[0], cost))

    def hypothesis(self, member: int) -> Hypothesis:
        """The member with that index."""
        return self.make(member)


def context_numbers(features: FloatArray, contexts: int) -> IntArray:
    """features[:, 0] as integers in 0 .. contexts - 1."""
    if features.ndim != 2 or features.shape[1] == 0:
        raise InvalidInput(
            f"features has shape {features.shape}; the context's number must be features[:, 0]."
        )
    raw = features[:, 0]
    bad = ~((raw >= 0) & (raw < contexts) & (raw == np.floor(raw)))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(
            f"features[{row}, 0] is {raw[row]}; a context of this table is an integer in 0 .. {contexts - 1}.",
            hint="number the contexts from 0 and put the number into the first column.",
        )
    return np.asarray(raw, dtype=np.int64)


def _as_table(accepts: ArrayLike) -> BoolArray:
    raw = np.asarray(accepts)
    if raw.ndim != 2 or raw.shape[1] == 0:
        raise InvalidInput(f"the table has shape {raw.shape}; it must be (hypotheses, contexts).")
    if raw.dtype != bool and not np.isin(raw, (0, 1)).all():
        raise InvalidInput(
            "the table holds other values than 0 and 1; it must be boolean.",
            hint="pass decisions == 1.",
        )
    _require_members(len(raw))
    return np.array(raw, dtype=bool)


def _require_members(members: int) -> None:
    if members == 0:
        raise InvalidInput("a finite class has no hypotheses; at least one is needed.")


def _as_hypothesis(value: Rule | Hypothesis, uses_group: bool) -> Hypothesis:
    if isinstance(value, Hypothesis):
        return value
    if not callable(value):
        raise InvalidInput(
            f"{value!r} is not a hypothesis.",
            hint="pass functions (features, group) -> bool array.",
        )
    return Called(value, uses_group)


def _as_acceptance(value: object, rows: int, what: str) -> BoolArray:
    array = np.asarray(value)
    if array.shape != (rows,) or array.dtype != bool:
        raise InvalidInput(
            f"{what} returned {array.dtype} of shape {array.shape} for {rows} rows; it must be one bool per row.",
            hint="return decisions == 1; if it looks at the group, construct FiniteClass(..., uses_group=True).",
        )
    return array
