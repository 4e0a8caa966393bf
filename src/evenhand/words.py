"""The nouns of the paper (section 1.1): people with features and a group, labels, costs, decisions
and outcomes.

Arrays are checked here, once, at the border (groups, labels and counts by `evenhand.people`), and
frames are encoded by their schema; everything below may rely on finite float64 features of shape
(rows, columns), labels in {-1, +1} and arrays of equal length.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import CannotEstimateRate, InvalidInput, LengthMismatch, NotFinite
from evenhand.people import (
    as_counts,
    as_group,
    as_known_groups,
    as_labels,
    as_weights,
    distinct_groups,
    require_same_order,
)
from evenhand.schema import Schema, is_frame
from evenhand.shown import Brief, counted

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
Group = Hashable
"""The label of one group."""
GroupArray = NDArray[Any]
"""Group labels may be of any hashable kind: integers, strings, objects. None stands for "unknown",
where that is allowed.
"""
Kind = TypeVar("Kind", bound=NDArray[np.generic])


class ColumnName(str):
    """The name of a column that knows how its values are shown to people.

    It is a text like any other; rules that compare the column ask it for their words.

    Parameters
    ----------
    name : str
        The name.
    no, yes : str, optional
        What 0 and 1 mean, in words, where the column holds nothing else.
    date : bool
        Whether its numbers are days since 1970-01-01.
    whole : bool
        Whether the dates have no time of day.

    Examples
    --------
    >>> insured = ColumnName("insurance", no="insurance is NO", yes="insurance is YES")
    >>> insured.compared("<", 1.0), insured.compared(">", 0.5), insured == "insurance"
    ('insurance is NO', 'insurance is YES', True)
    >>> ColumnName("granted", date=True, whole=True).compared("<", 17532.09308)
    'granted is before 2018-01-02'
    >>> ColumnName("granted", date=True).compared(">=", 17532.5)
    'granted is 2018-01-01 12:00 or later'
    """

    no: str | None
    yes: str | None
    date: bool
    whole: bool

    def __new__(
        cls,
        name: str,
        no: str | None = None,
        yes: str | None = None,
        date: bool = False,
        whole: bool = False,
    ) -> "ColumnName":
        made = super().__new__(cls, name)
        made.no = no
        made.yes = yes
        made.date = date
        made.whole = whole
        return made

    def compared(self, sign: str, value: float) -> str | None:
        """A comparison with a value in words.

        Parameters
        ----------
        sign : {">=", "<", ">", "<="}
            How the column is compared.
        value : float
            With what.

        Returns
        -------
        str or None
            The words; None where the number says it best.
        """
        # x > v and x <= v part the values as x >= v and x < v do, but for v itself.
        strict = sign in (">", "<=")
        upward = sign in (">", ">=")
        between = 0 <= value < 1 if strict else 0 < value <= 1
        if self.yes is not None and between:
            return self.yes if upward else self.no
        if not self.date or not np.isfinite(value):
            return None
        if self.whole:
            # Of whole days x >= v means x >= ceil(v), and x > v means x >= floor(v) + 1.
            first = np.floor(value) + 1 if strict else np.ceil(value)
            return self._around(_day(first), upward, after=False)
        return self._around(_day(value), upward, after=strict)

    def _around(self, day: str, upward: bool, after: bool) -> str:
        """From a moment on, or before it; `after`: the moment itself belongs to the time before."""
        if after:
            return f"{self} is after {day}" if upward else f"{self} is {day} or earlier"
        return f"{self} is {day} or later" if upward else f"{self} is before {day}"


def _day(days: float) -> str:
    """Days since 1970-01-01 as a date, with the minute where it is not midnight."""
    moment = np.datetime64("1970-01-01T00:00", "m") + np.timedelta64(round(days * 1440), "m")
    return str(moment).replace("T", " ").removesuffix(" 00:00")


def as_features(
    value: ArrayLike, name: str = "features", *, may_be_empty: bool = True
) -> FloatArray:
    """(rows, columns) float64, finite; InvalidInput says what is wrong."""
    try:
        array = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{name} cannot be read as numbers ({error}).",
            hint="pass a frame of pandas, polars or pyarrow with named columns, and a class that "
            "reads them: evenhand.Estimator(pipeline); or encode categories as numbers first.",
        ) from error
    if array.ndim != 2:
        raise InvalidInput(
            f"{name} has shape {array.shape}; it must be (rows, columns).",
            hint="one row per person: features.reshape(1, -1) for one person, "
            "features.reshape(-1, 1) for a single column."
            if array.ndim == 1
            else None,
        )
    if not (may_be_empty or array.size):
        raise InvalidInput(
            f"{name} has shape {array.shape}; at least one row and one column are needed."
        )
    _require_finite(array, name)
    return array


def as_people(value: ArrayLike, schema: Schema | None = None) -> tuple[FloatArray, Schema | None]:
    """The rows of people and the schema of their columns, None for an array, which has no names.

    A frame is encoded by `schema`, or by the schema that it shows itself; an array is taken as rows
    in the order of the schema.

    >>> import pandas as pd
    >>> rows, schema = as_people(pd.DataFrame({"age": [31, 40]}))
    >>> rows.tolist(), schema.names
    ([[31.0], [40.0]], ('age',))
    """
    if schema is not None:
        return schema.encode(value), schema
    if type(value) is not np.ndarray and is_frame(value):
        schema = Schema.of(value)
        return schema.encode(value), schema
    return as_features(value), None


def as_numbers(value: ArrayLike, rows: int, name: str) -> FloatArray:
    """(rows,) float64, finite; one number stands for all rows."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(rows, float(array))
    _require_length(array, rows, name)
    _require_finite(array, name)
    return array


def as_arrivals(
    features: ArrayLike, group: ArrayLike | None, schema: Schema | None, *, group_needed: bool
) -> tuple[FloatArray, GroupArray | None, Schema | None]:
    """People who come to be decided about: their rows, their groups and the schema of their
    columns, in arrays that nobody else can change. A group that is needed is known for all people.

    >>> rows, group, schema = as_arrivals([[1.0]], ["a"], None, group_needed=True)
    >>> rows.tolist(), group.tolist(), schema
    ([[1.0]], ['a'], None)
    """
    require_same_order({"features": features, "group": group})
    rows, schema = as_people(features, schema)
    if group is None:
        return _own(rows, features), None, schema
    seen = as_group(group, len(rows)) if group_needed else as_known_groups(group, len(rows))
    return _own(rows, features), _own(seen, group), schema


def _own(checked: Kind, given: object) -> Kind:
    """An array that nobody else can change."""
    return checked.copy() if checked is given or checked.base is not None else checked


def _require_length(array: NDArray[np.generic], rows: int, name: str) -> None:
    if array.ndim != 1 or len(array) != rows:
        raise LengthMismatch(
            f"{name} has shape {array.shape} but there are {rows} rows; it needs one entry per row."
        )


def _require_finite(array: FloatArray, name: str) -> None:
    if array.size <= 64 and isfinite(sum(array.ravel().tolist())):  # one person: faster than numpy
        return
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise NotFinite(
            f"{name} contains {array[where]} at {where if len(where) > 1 else where[0]}; every "
            "entry must be a finite number.",
            hint="impute or drop the rows before handing them to evenhand; or pass a frame, whose "
            "schema says where values may be missing.",
        )


def _require_rows(rows: int, what: str) -> None:
    if rows == 0:
        raise InvalidInput(f"{what} has no rows; at least one is needed.")


def _encode_features(noun: "LabelledSample | CostSensitiveProblem") -> None:
    """The rows of a noun and their schema, in the place of what was given."""
    rows, schema = as_people(noun.features, noun.schema)
    object.__setattr__(noun, "features", rows)
    object.__setattr__(noun, "schema", schema)


@dataclass(frozen=True, eq=False, repr=False)
class LabelledSample(Brief):
    """Rows (x, a, y) drawn from the population.

    Parameters
    ----------
    features : array_like of shape (rows, columns), or frame
        One person per row: finite numbers, or a frame of pandas, polars or pyarrow.
    group : array_like, shape (rows,)
        Their groups: texts, numbers or other hashable values, none unknown.
    label : array_like, shape (rows,)
        +1 (good outcome) or -1 (bad outcome); 1 and 0, and True and False, are read as such. With 1
        for the bad outcome pass `label == 0`.
    count : array_like, shape (rows,), optional
        How many people each row stands for; one by default.
    schema : Schema, optional
        The columns of the frame; by default what the frame itself shows.

    Raises
    ------
    InvalidInput
        If an array has the wrong shape or type, or is empty, if a label is missing or does not say
        which outcome is good, or if columns of pandas have different indexes.

    Examples
    --------
    >>> sample = LabelledSample([[612.0], [580.0]], ["b", "a"], [1, -1], count=[3, 2])
    >>> sample.groups, sample.weight
    (('a', 'b'), array([3., 2.]))
    """

    features: FloatArray
    group: GroupArray
    label: IntArray
    count: FloatArray | None = None
    schema: Schema | None = None

    if TYPE_CHECKING:  # what may be given; the fields hold what it is converted to

        def __init__(
            self,
            features: ArrayLike,
            group: ArrayLike,
            label: ArrayLike,
            count: ArrayLike | None = None,
            schema: Schema | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        columns = ("features", "group", "label", "count")
        require_same_order({name: getattr(self, name) for name in columns})
        _encode_features(self)
        rows = len(self.features)
        _require_rows(rows, "the labelled sample")
        object.__setattr__(self, "group", as_group(self.group, rows))
        object.__setattr__(self, "label", as_labels(self.label, rows))
        if self.count is not None:
            object.__setattr__(self, "count", as_weights(self.count, rows))

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def weight(self) -> FloatArray:
        """How many people each row stands for."""
        return np.ones(len(self)) if self.count is None else self.count

    @cached_property
    def groups(self) -> tuple[Hashable, ...]:
        """The distinct groups in ascending order (by text where they cannot be compared)."""
        return distinct_groups(self.group if self.count is None else self.group[self.count > 0])

    def require_two_groups(self) -> None:
        """Raise an error for a sample with fewer than two groups: a gap needs two.

        Raises
        ------
        CannotEstimateRate
            If there is one group only, or the rows stand for nobody.
        """
        if len(self.groups) < 2:
            only = f"the group {self.groups[0]!r}" if self.groups else "rows that count 0"
            raise CannotEstimateRate(
                f"the sample has only {only} ({counted(float(self.weight.sum()))}); "
                "a gap needs two groups.",
                hint="check the group column, or add people of the other group.",
            )

    def require_whole_counts(self, why: str) -> IntArray:
        """The counts as whole numbers, where parts of people cannot be meant.

        Parameters
        ----------
        why : str
            Who needs whole people, for the message: "an exact interval counts people".

        Returns
        -------
        array of int, shape (rows,)
            How many people each row stands for.

        Raises
        ------
        InvalidInput
            If a count is not a whole number, or the rows stand for nobody.

        Examples
        --------
        >>> sample = LabelledSample([[612.0], [580.0]], ["b", "a"], [1, -1], count=[3, 2])
        >>> sample.require_whole_counts("an example counts people")
        array([3, 2])
        """
        return as_counts(self.weight, why)


@dataclass(frozen=True, eq=False, repr=False)
class CostSensitiveProblem(Brief):
    """The objective of a CSC oracle (section 2 of the paper).

    Parameters
    ----------
    features : array_like of shape (rows, columns), or frame
        One person per row: finite numbers, or a frame of pandas, polars or pyarrow.
    group : array_like, shape (rows,), or None
        Their groups.
    cost_if_rejected, cost_if_accepted : array_like, shape (rows,)
        c^{-1} and c^{+1} of each row.
    schema : Schema, optional
        The columns of the frame; by default what the frame itself shows.

    Raises
    ------
    InvalidInput
        If an array has the wrong shape or type, or is empty.

    Notes
    -----
    A hypothesis costs the sum over rows of c^{-1} if it rejects the row, c^{+1} if it accepts it.

    Examples
    --------
    >>> problem = CostSensitiveProblem([[612.0], [580.0]], None, [1.0, 0.0], [0.0, 1.0])
    >>> problem.cost(np.array([1.0, 0.0])), problem.cost(np.array([0.5, 0.5]))
    (0.0, 1.0)
    """

    features: FloatArray
    group: GroupArray | None
    cost_if_rejected: FloatArray
    cost_if_accepted: FloatArray
    schema: Schema | None = None
    acceptance_cost: FloatArray = field(init=False, repr=False)
    """c^{+1} - c^{-1}: what accepting a row costs beyond rejecting it."""
    rejection_total: float = field(init=False, repr=False)
    """The cost of rejecting all applicants."""

    if TYPE_CHECKING:  # what may be given; the fields hold what it is converted to

        def __init__(
            self,
            features: ArrayLike,
            group: ArrayLike | None,
            cost_if_rejected: ArrayLike,
            cost_if_accepted: ArrayLike,
            schema: Schema | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        columns = ("features", "group", "cost_if_rejected", "cost_if_accepted")
        require_same_order({name: getattr(self, name) for name in columns})
        _encode_features(self)
        rows = len(self.features)
        _require_rows(rows, "the cost-sensitive problem")
        if self.group is not None:
            object.__setattr__(self, "group", as_group(self.group, rows))
        for name in ("cost_if_rejected", "cost_if_accepted"):
            object.__setattr__(self, name, as_numbers(getattr(self, name), rows, name))
        object.__setattr__(self, "acceptance_cost", self.cost_if_accepted - self.cost_if_rejected)
        object.__setattr__(self, "rejection_total", float(self.cost_if_rejected.sum()))

    def __len__(self) -> int:
        return len(self.features)

    def cost(self, acceptance: FloatArray) -> float:
        """The cost of accepting each row with a probability.

        Parameters
        ----------
        acceptance : array, shape (rows,)
            The probability of accepting each row.

        Returns
        -------
        float
            The expected cost, summed over the rows.
        """
        return self.rejection_total + float(self.acceptance_cost @ acceptance)


@dataclass(frozen=True, eq=False, repr=False)
class Prices(Brief):
    """What a false accept and a false reject cost. The paper's 0-1 loss is 1 and 1.

    Parameters
    ----------
    false_accept : float or array, default 1.0
        The cost of accepting somebody with label -1; one number, or one entry per person.
    false_reject : float or array, default 1.0
        The cost of rejecting somebody with label +1.

    Raises
    ------
    InvalidInput
        If a price is negative or not finite.

    Examples
    --------
    >>> Prices(false_accept=5.0).acceptance_cost(np.array([1, -1]))
    array([-1.,  5.])
    """

    false_accept: float | FloatArray = 1.0
    false_reject: float | FloatArray = 1.0

    def __post_init__(self) -> None:
        for name in ("false_accept", "false_reject"):
            given = np.asarray(getattr(self, name))
            value = given.astype(np.float64) if given.dtype.kind in "iuf" else np.array(np.nan)
            if not np.isfinite(value).all() or (value < 0).any():
                raise InvalidInput(
                    f"the price {name} is {getattr(self, name)!r}; prices are finite numbers of "
                    "at least 0.",
                    hint="one number for all people, or an array with one for each person.",
                )
            object.__setattr__(self, name, float(value) if value.ndim == 0 else value)

    def acceptance_cost(self, label: IntArray) -> FloatArray:
        """The cost of accepting minus the cost of rejecting.

        Parameters
        ----------
        label : array, shape (rows,)
            -1 or +1 for each row.

        Returns
        -------
        array, shape (rows,)
            -false_reject where y = +1, +false_accept where y = -1.
        """
        return np.where(label == 1, -np.asarray(self.false_reject), np.asarray(self.false_accept))

    def problem(
        self,
        features: FloatArray,
        group: GroupArray | None,
        label: IntArray,
        count: FloatArray | None = None,
    ) -> CostSensitiveProblem:
        """The fully labelled problem.

        Parameters
        ----------
        features : array of shape (rows, columns), or frame
            One person per row.
        group : array, shape (rows,), or None
            Their groups.
        label : array, shape (rows,)
            -1 or +1 for each row.
        count : array, shape (rows,), optional
            How many people each row stands for; one by default. Pass the `count` of a
            `LabelledSample`, so that costs and rates are about the same people.

        Returns
        -------
        CostSensitiveProblem
            A reject of y = +1 costs false_reject, an accept of y = -1 costs false_accept, times
            the people of the row.

        Examples
        --------
        >>> sample = LabelledSample([[612.0], [580.0]], ["b", "a"], [1, -1], count=[3, 2])
        >>> rows = (sample.features, sample.group, sample.label, sample.count)
        >>> Prices(false_accept=5.0).problem(*rows).acceptance_cost
        array([-3., 10.])
        """
        cost_if_rejected = np.where(label == 1, self.false_reject, 0.0)
        cost_if_accepted = np.where(label == 1, 0.0, self.false_accept)
        if count is not None:
            cost_if_rejected = count * cost_if_rejected
            cost_if_accepted = count * cost_if_accepted
        return CostSensitiveProblem(features, group, cost_if_rejected, cost_if_accepted)


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision.

    Parameters
    ----------
    accept : bool
        What was decided.
    propensity : float
        The probability with which just this decision was taken.
    round : int
        The number of the decision; the label is reported under it.
    epoch : int
        The number of the policy that decided.
    audit : bool, default False
        Whether the person was accepted by the audit coin, which ignores the person.

    Examples
    --------
    >>> Decision(accept=False, propensity=0.75, round=41, epoch=2).acceptance
    0.25
    """

    accept: bool
    propensity: float
    round: int
    epoch: int
    audit: bool = False

    @property
    def acceptance(self) -> float:
        """The probability of accepting, whatever was drawn."""
        return self.propensity if self.accept else 1.0 - self.propensity


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Brief, Sequence[Decision]):
    """A block of decisions as arrays; it is also a sequence of `Decision`.

    Parameters
    ----------
    accept : array of bool, shape (rows,)
        What was decided.
    propensity : array, shape (rows,)
        The probability with which just this decision was taken.
    first_round : int
        The round of the first row; the others follow, unless `rounds` says otherwise.
    epoch : array of int, shape (rows,)
        The number of the policy that decided.
    audit : array of bool, shape (rows,)
        Whether the audit coin accepted the person.
    rounds : array of int, shape (rows,), optional
        The round of each row, where they do not follow each other: somebody was decided about
        before, under the same key.

    Examples
    --------
    >>> block = Decisions(
    ...     np.array([True, False]), np.array([0.5, 0.75]), 40, np.array([2, 2]), np.zeros(2, bool)
    ... )
    >>> block[1].round, block[1].acceptance, len(block)
    (41, 0.25, 2)
    """

    accept: BoolArray
    propensity: FloatArray
    first_round: int
    epoch: IntArray
    audit: BoolArray
    rounds: IntArray | None = None

    def __len__(self) -> int:
        return len(self.accept)

    @property
    def round(self) -> IntArray:
        """The rounds of the block."""
        if self.rounds is not None:
            return self.rounds
        return np.arange(self.first_round, self.first_round + len(self), dtype=np.int64)

    @overload
    def __getitem__(self, index: int) -> Decision: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Decision, ...]: ...
    def __getitem__(self, index: int | slice) -> Decision | tuple[Decision, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        position = range(len(self))[index]
        round = self.first_round + position if self.rounds is None else int(self.rounds[position])
        return Decision(
            bool(self.accept[position]),
            float(self.propensity[position]),
            round,
            int(self.epoch[position]),
            bool(self.audit[position]),
        )

    def __iter__(self) -> Iterator[Decision]:
        return (self[i] for i in range(len(self)))


class OneDecision(Decisions):
    """The decision about one person, as a block of one. Most people come alone: the columns are
    made only if somebody asks for them.
    """

    decision: Decision

    def __init__(
        self, accept: bool, propensity: float, round: int, epoch: int, audit: bool
    ) -> None:
        decision = Decision(accept, propensity, round, epoch, audit)
        object.__setattr__(self, "decision", decision)

    def __len__(self) -> int:
        return 1

    @overload
    def __getitem__(self, index: int) -> Decision: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Decision, ...]: ...
    def __getitem__(self, index: int | slice) -> Decision | tuple[Decision, ...]:
        if isinstance(index, slice):
            return (self.decision,)[index]
        return (self.decision,)[index]

    @property
    def accept(self) -> BoolArray:
        """What was decided."""
        return np.array([self.decision.accept])

    @property
    def propensity(self) -> FloatArray:
        """The probability with which just this decision was taken."""
        return np.array([self.decision.propensity])

    @property
    def first_round(self) -> int:
        """The round."""
        return self.decision.round

    @property
    def epoch(self) -> IntArray:
        """The number of the policy that decided."""
        return np.array([self.decision.epoch])

    @property
    def audit(self) -> BoolArray:
        """Whether the audit coin accepted the person."""
        return np.array([self.decision.audit])
