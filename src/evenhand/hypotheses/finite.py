"""Finite classes: every hypothesis is written down, as a callable or as a row of a table over
contexts.

Bound to rows, a finite class is a 0-1 matrix A (members, rows or contexts), and totals = channels
A^T.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.contracts import Enumeration, Hypothesis, HypothesisClass, Json, Params
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.hypotheses.common import EnumeratedRows, require_group
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, as_features

Rule = Callable[[FloatArray, GroupArray | None], BoolArray]

BLOCK = 1 << 20
"""Entries of the matrix that are multiplied at a time."""


@dataclass(frozen=True, eq=False)
class TableBatch:
    """Rows of one table, asked together: lookup[member, context]."""

    lookup: BoolArray
    columns = None

    def __call__(self, columns: FloatArray) -> BoolArray:
        """One look-up for all members."""
        return self.lookup[:, context_numbers(columns.T, self.lookup.shape[1])]

    def one(self, person: FloatArray) -> Sequence[int]:
        """The column of the person's context."""
        context = context_numbers(person, self.lookup.shape[1])[0]
        return self.lookup[:, context].tobytes()


@dataclass(frozen=True, repr=False)
class TableRow(Hypothesis, Brief):
    """Accept some of finitely many contexts; features[:, 0] is the context's number.

    Parameters
    ----------
    contexts : tuple of bool
        Context c is accepted iff contexts[c].

    Examples
    --------
    >>> import numpy as np
    >>> rule = TableRow((True, False, True))
    >>> rule.accepts(np.array([[2.0], [1.0]])).tolist()
    [True, False]
    >>> rule.describe()
    'accept 2 of 3 contexts: 0, 2'
    """

    contexts: tuple[bool, ...]

    @property
    def columns_used(self) -> tuple[int, ...]:
        return (0,)

    @cached_property
    def _lookup(self) -> BoolArray:
        return np.array(self.contexts, dtype=bool)

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        return self._lookup[context_numbers(features, len(self.contexts))]

    @staticmethod
    def together(members: "Sequence[TableRow]") -> TableBatch | None:
        """Several rows of tables, asked together.

        Parameters
        ----------
        members : sequence of TableRow
            The rows.

        Returns
        -------
        TableBatch or None
            Answers as they do, bit for bit; None if their tables have different contexts.
        """
        if len({len(rule.contexts) for rule in members}) > 1:
            return None
        return TableBatch(np.array([rule.contexts for rule in members]))

    def describe(self, names: Sequence[str] | None = None) -> str:
        accepted = np.flatnonzero(self._lookup)
        listed = ", ".join(str(c) for c in accepted[:12]) + (", ..." if len(accepted) > 12 else "")
        count = f"accept {len(accepted)} of {len(self.contexts)} contexts"
        return f"{count}: {listed}" if listed else count

    def to_json(self) -> Json:
        accepted = np.flatnonzero(self._lookup).tolist()
        return {"kind": "table", "contexts": len(self.contexts), "accepted": accepted}


@dataclass(frozen=True)
class Called(Hypothesis):
    """A hypothesis that is somebody's function.

    Parameters
    ----------
    rule : callable
        (features, group) -> one bool per row.
    uses_group : bool
        Whether the group is shown to the function; otherwise it is called with None.

    Examples
    --------
    >>> import numpy as np
    >>> def is_positive(features, group):
    ...     return features[:, 0] > 0
    >>> Called(is_positive).accepts(np.array([[1.0], [-1.0]])).tolist()
    [True, False]
    >>> Called(is_positive).describe()
    'accept if is_positive(features, group)'
    """

    rule: Rule
    uses_group: bool = False

    @property
    def columns_used(self) -> None:
        """None: nobody knows which columns a function looks at."""
        return None

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        shown = require_group(group, len(features), self._name) if self.uses_group else None
        return _as_acceptance(self.rule(features, shown), len(features), self._name)

    def describe(self, names: Sequence[str] | None = None) -> str:
        return f"accept if {self._name}(features, group)"

    def to_json(self) -> Json:
        """Always refused: code is not data.

        Raises
        ------
        NotSerialisable
            Always.
        """
        raise NotSerialisable(
            f"{self._name} is a Python function and cannot be written as JSON.",
            hint="use FiniteClass.from_table, or a hypothesis object with its own to_json.",
        )

    @property
    def _name(self) -> str:
        return str(getattr(self.rule, "__name__", type(self.rule).__name__))


class FiniteClass(HypothesisClass):
    """Finitely many hypotheses, each written down.

    Parameters
    ----------
    hypotheses : iterable of Hypothesis or callable
        Hypotheses, or functions (features, group) -> one bool per row.
    uses_group : bool
        Whether the functions look at the group; then group_use="decide" is needed.

    Raises
    ------
    InvalidInput
        If the list is empty, or an entry is not a hypothesis.

    Notes
    -----
    H = {h_1, ..., h_m}; exact, ln|H| = ln m.

    Examples
    --------
    >>> import numpy as np
    >>> rules = FiniteClass([lambda x, group: x[:, 0] > 1, lambda x, group: x[:, 0] > 2])
    >>> oracle = rules.bind(np.array([[1.0], [2.0], [3.0]]), None)
    >>> oracle.totals(np.array([[1.0, -2.0, -1.0]])).tolist()
    [[-3.0, -1.0]]
    """

    exact = True

    def __init__(
        self, hypotheses: Iterable[Rule | Hypothesis], *, uses_group: bool = False
    ) -> None:
        members: list[Hypothesis] = []
        for member in hypotheses:
            if not isinstance(member, Hypothesis):
                if not callable(member):
                    raise InvalidInput(
                        f"{member!r} is not a hypothesis.",
                        hint="pass functions (features, group) -> bool array, or objects with "
                        "accepts, describe, to_json and columns_used.",
                    )
                member = Called(member, uses_group)
            members.append(member)
        self._fill(tuple(members), None, uses_group)

    @classmethod
    def from_table(cls, accepts: ArrayLike) -> Self:
        """One hypothesis per row of a matrix; features[:, 0] is the context's number.

        No object per member is made before somebody asks for it.

        Parameters
        ----------
        accepts : array of bool of shape (hypotheses, contexts)
            Which contexts each hypothesis accepts.

        Returns
        -------
        FiniteClass
            The class.

        Raises
        ------
        InvalidInput
            If the matrix has another shape, or other values than 0 and 1.

        Examples
        --------
        >>> len(FiniteClass.from_table([[True, False], [False, True]]))
        2
        """
        raw = np.asarray(accepts)
        if raw.ndim != 2 or raw.shape[1] == 0:
            raise InvalidInput(
                f"the table has shape {raw.shape}; it must be (hypotheses, contexts)."
            )
        if raw.dtype != bool and not np.isin(raw, (0, 1)).all():
            raise InvalidInput(
                "the table holds other values than 0 and 1; it must be boolean.",
                hint="pass decisions == 1.",
            )
        made = cls.__new__(cls)
        made._fill((), np.array(raw, dtype=bool), False)
        return made

    def _fill(
        self, listed: tuple[Hypothesis, ...], table: BoolArray | None, uses_group: bool
    ) -> None:
        self._listed = listed
        self._table = table
        self.uses_group = uses_group
        if len(self) == 0:
            raise InvalidInput("a finite class has no hypotheses; at least one is needed.")

    def __len__(self) -> int:
        return len(self._listed if self._table is None else self._table)

    @property
    def listed(self) -> tuple[Hypothesis, ...]:
        """The members of a class that was given as objects; none for a table."""
        return self._listed

    @property
    def table(self) -> BoolArray | None:
        """The (|H|, contexts) matrix of a class that was given as a table."""
        return self._table

    def check_rows(self, features: FloatArray) -> None:
        """Refuse rows that no member could decide about.

        Parameters
        ----------
        features : array of shape (rows, columns)
            The rows.

        Raises
        ------
        InvalidInput
            If the first column does not hold contexts of the table.
        """
        if self._table is not None:
            context_numbers(features, self._table.shape[1])

    def __repr__(self) -> str:
        return f"<FiniteClass of {len(self)} hypotheses ({self.params['members']})>"

    @property
    def params(self) -> Params:
        stored: Json
        if self._table is None:
            names = [member.describe() for member in self._listed[:20]]
            stored = {"members": "callables", "names": names}
        else:
            digest = hashlib.sha256(np.packbits(self._table).tobytes()).hexdigest()[:16]
            stored = {"members": "table", "contexts": self._table.shape[1], "digest": digest}
        size = {"class": "FiniteClass", "size": len(self), "uses_group": self.uses_group}
        return {**size, **stored}

    @property
    def log_size(self) -> float:
        return math.log(len(self))

    def log_growth(self, rows: int, columns: int) -> float:
        return min(self.log_size, rows * math.log(2.0))

    def bind(self, features: FloatArray, group: GroupArray | None) -> Enumeration:
        rows = as_features(features, may_be_empty=False)
        shown = require_group(group, len(rows), "this FiniteClass") if self.uses_group else None
        if self._table is None:
            members = self._listed
            accepts = np.array(
                [_as_acceptance(h.accepts(rows, shown), len(rows), h.describe()) for h in members]
            )
            return _BoundMatrix(len(rows), accepts, np.arange(len(rows)), members.__getitem__)
        table = self._table
        contexts = context_numbers(rows, table.shape[1])
        return _BoundMatrix(
            len(rows), table, contexts, lambda member: TableRow(tuple(table[member].tolist()))
        )


@dataclass(frozen=True, eq=False)
class _BoundMatrix(EnumeratedRows):
    """totals[c, h] = sum over contexts of accepts[h, context] * (sum of channel c over the rows of
    that context). Ties go to the member that was listed first.
    """

    accepts: BoolArray
    context: IntArray
    rule: Callable[[int], Hypothesis]

    def hypothesis(self, member: int) -> Hypothesis:
        return self.rule(member)

    def sums(self, channels: FloatArray) -> FloatArray:
        """Channels summed per context, then one matrix product, in blocks of members that fit the
        cache.
        """
        members, contexts = self.accepts.shape
        per_context = np.array(
            [np.bincount(self.context, channel, contexts) for channel in channels]
        ).reshape(-1, contexts)
        out = np.empty((len(channels), members))
        step = max(1, BLOCK // contexts)
        for start in range(0, members, step):
            block = self.accepts[start : start + step].T.astype(np.float64)
            out[:, start : start + step] = per_context @ block
        return out


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
            f"features[{row}, 0] is {raw[row]}; a context of this table is an integer in 0 .. "
            f"{contexts - 1}.",
            hint="number the contexts from 0 and put the number into the first column.",
        )
    return np.asarray(raw, dtype=np.int64)


def _as_acceptance(value: object, rows: int, what: str) -> BoolArray:
    array = np.asarray(value)
    if array.shape != (rows,) or array.dtype != bool:
        raise InvalidInput(
            f"{what} returned {array.dtype} of shape {array.shape} for {rows} rows; it must be one "
            "bool per row.",
            hint="return decisions == 1; if it looks at the group, construct "
            "FiniteClass(..., uses_group=True).",
        )
    return array
