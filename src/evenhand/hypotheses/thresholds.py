"""Rules that cut one column: thresholds on one score (one for all applicants, or one per group),
and decision stumps, one cut in any column in either direction. Both classes are exact.

Thresholds sort the score once; with s_1 < ... < s_m its distinct values, the total of the cut at
s_c is the sum over rows with score >= s_c. Stumps code every column once (code = rank among its
distinct values, or its quantile bin); one pass adds every channel up by code, and cumulative sums
then give the totals of all cuts of all columns.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evenhand.computing import compiled
from evenhand.contracts import (
    Enumeration,
    Hypothesis,
    HypothesisClass,
    Json,
    Params,
    RowOracle,
    all_columns_used,
)
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.hypotheses.common import (
    EnumeratedRows,
    comparison,
    first_minimum,
    require_columns,
    require_group,
)
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.people import distinct_groups
from evenhand.words import (
    BoolArray,
    FloatArray,
    Group,
    GroupArray,
    IntArray,
    as_features,
    as_numbers,
)

Codes = NDArray[np.uint8 | np.uint16 | np.int32]
"""The bin of each row in each column, in the smallest kind of number that tells them apart."""
COLUMNS_TOGETHER = 16
CODES_TOGETHER = 2_048
"""How many columns of stumps, with how many codes among them, go through the rows together: 4 ms
instead of 11 on Adult, whose 83 columns of 88 have two values; the sums (32 kB) stay in the cache.
"""


@dataclass(frozen=True, eq=False)
class ThresholdBatch:
    """Thresholds, asked together: x_column >= value, or its negation.

    value, below: (members, 1).
    """

    column: IntArray
    value: FloatArray
    below: BoolArray
    columns: int

    def __call__(self, columns: FloatArray) -> BoolArray:
        """One comparison for all members."""
        if len(self.column) > len(columns):  # each column is read several times
            columns = np.ascontiguousarray(columns)
        return np.asarray((columns[self.column] >= self.value) ^ self.below)

    def one(self, person: FloatArray) -> Sequence[int]:
        """One comparison after the other, in Python's floats."""
        values = person[0].tolist()
        return [(values[column] >= value) is not below for column, value, below in self._rules]

    @cached_property
    def _rules(self) -> tuple[tuple[int, float, bool], ...]:
        columns = (self.column.tolist(), self.value[:, 0].tolist(), self.below[:, 0].tolist())
        return tuple(zip(*columns, strict=True))


@dataclass(frozen=True)
class Threshold(Hypothesis):
    """Accept iff one column is at least a value, or iff it is below it.

    Parameters
    ----------
    column : int
        The column, from 0.
    value : float
        The value.
    columns : int
        How many columns the rows have.
    at_least : bool
        True: accept iff x_column >= value. False: accept iff x_column < value.

    Examples
    --------
    >>> import numpy as np
    >>> rule = Threshold(column=0, value=30.0, columns=1)
    >>> rule.accepts(np.array([[29.0], [30.0]])).tolist()
    [False, True]
    >>> rule.describe(["income"])
    'accept if income >= 30'
    """

    column: int
    value: float
    columns: int
    at_least: bool = True

    @property
    def columns_used(self) -> tuple[int, ...]:
        return (self.column,)

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        require_columns(features, self.columns, self.describe())
        score = features[:, self.column]
        return np.asarray(score >= self.value if self.at_least else score < self.value)

    @staticmethod
    def together(members: "Sequence[Threshold]") -> ThresholdBatch | None:
        """Several thresholds, asked together.

        Parameters
        ----------
        members : sequence of Threshold
            The thresholds.

        Returns
        -------
        ThresholdBatch or None
            Answers as they do, bit for bit; None if they belong to rows of different widths.
        """
        if len({rule.columns for rule in members}) > 1:
            return None
        return ThresholdBatch(
            np.array([rule.column for rule in members]),
            np.array([[rule.value] for rule in members]),
            np.array([[not rule.at_least] for rule in members]),
            members[0].columns,
        )

    def describe(self, names: Sequence[str] | None = None) -> str:
        sign = ">=" if self.at_least else "<"
        return f"accept if {comparison(self.column, names, sign, f'{self.value:.10g}')}"

    def to_json(self) -> Json:
        return {
            "kind": "threshold",
            "column": self.column,
            "value": self.value,
            "columns": self.columns,
            "at_least": self.at_least,
        }


@dataclass(frozen=True)
class PerGroup(Hypothesis):
    """One rule per group; a row of a group without a rule is an error, not a guess.

    Parameters
    ----------
    rules : tuple of (group, Hypothesis)
        The rule of each group.

    Examples
    --------
    >>> import numpy as np
    >>> rule = PerGroup((("a", Threshold(0, 3.0, 1)), ("b", REJECT_ALL)))
    >>> rule.accepts(np.array([[5.0], [5.0]]), np.array(["a", "b"])).tolist()
    [True, False]
    >>> rule.describe(["score"])
    'group a: accept if score >= 3; group b: reject all applicants'
    """

    rules: tuple[tuple[Group, Hypothesis], ...]

    @property
    def columns_used(self) -> tuple[int, ...] | None:
        return all_columns_used(rule for _, rule in self.rules)

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        known = require_group(group, len(features), "a rule per group")
        accepted = np.zeros(len(features), bool)
        ruled = np.zeros(len(features), bool)
        for value, rule in self.rules:
            members = np.asarray(known == value)
            accepted[members] = rule.accepts(features[members])
            ruled |= members
        strangers = known[~ruled].tolist()
        if strangers:
            raise InvalidInput(
                f"group {strangers[0]!r} has no rule; there are rules for "
                f"{[value for value, _ in self.rules]}.",
                hint="bind the class to rows of every group that will be decided about.",
            )
        return accepted

    def describe(self, names: Sequence[str] | None = None) -> str:
        return "; ".join(f"group {value}: {rule.describe(names)}" for value, rule in self.rules)

    def to_json(self) -> Json:
        for value, _ in self.rules:
            if not isinstance(value, str | int | float):
                raise NotSerialisable(
                    f"group {value!r} is neither a string nor a number.",
                    hint="code the groups as strings.",
                )
        parts = [{"group": value, "hypothesis": rule.to_json()} for value, rule in self.rules]
        return {"kind": "per-group", "parts": parts}


@dataclass(frozen=True, eq=False)
class Cuts:
    """All cuts of one score: member 0 accepts all, 1 rejects all, 1 + c accepts score >= values[c],
    1 <= c < m.
    """

    values: FloatArray
    codes: IntArray

    @classmethod
    def on(cls, score: FloatArray) -> Self:
        """Sort once."""
        values, codes = np.unique(score, return_inverse=True)
        return cls(values, codes)

    def totals(self, channels: FloatArray) -> FloatArray:
        """totals[c, h] = sum of channel c over score >= cut h."""
        out = np.zeros((len(channels), len(self.values) + 1))
        for row, channel in zip(out, channels, strict=True):
            at_least = np.bincount(self.codes, channel, len(self.values))[::-1].cumsum()[::-1]
            row[0] = at_least[0]
            row[2:] = at_least[1:]
        return out

    def cheapest(self, acceptance_cost: FloatArray) -> int:
        """The first cheapest member."""
        return first_minimum(self.totals(acceptance_cost[np.newaxis])[0], acceptance_cost)

    def rule(self, member: int, of_value: Callable[[float], Hypothesis]) -> Hypothesis:
        """A constant, or the rule that accepts from an observed score on."""
        if member < 2:
            return (ACCEPT_ALL, REJECT_ALL)[member]
        return of_value(float(self.values[member - 1]))


@dataclass(frozen=True)
class ScoreThresholds(HypothesisClass):
    """Thresholds on one score: accept iff it is at least t, one t for all or one per group.

    Parameters
    ----------
    column : int
        The column with the score, from 0; high is good.
    per_group : bool
        Whether each group has a threshold of its own; then group_use="decide" is needed.

    Notes
    -----
    {accept iff x_column >= t : t real or infinite}; exact. On n rows it has n + 1 behaviours; per
    group at most 2^n, because the number of groups is not known before binding.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = ScoreThresholds().bind(np.array([[1.0], [2.0], [3.0]]), None)
    >>> oracle.best(np.array([1.0, -2.0, -1.0])).describe(["score"])
    'accept if score >= 2'
    """

    column: int = 0
    per_group: bool = False
    uses_group: bool = field(init=False, repr=False)
    exact = True
    one_column = True
    """Each rule is a threshold on one column (in each group): what the DKW bound covers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "uses_group", self.per_group)
        if self.column < 0:
            raise InvalidInput(f"column is {self.column}; columns are numbered from 0.")

    @property
    def params(self) -> Params:
        return {"class": "ScoreThresholds", "column": self.column, "per_group": self.per_group}

    def log_growth(self, rows: int, columns: int) -> float:
        return rows * math.log(2.0) if self.per_group else math.log(rows + 1)

    def check_rows(self, features: FloatArray) -> None:
        """Refuse rows that have no such score.

        Parameters
        ----------
        features : array of shape (rows, columns)
            The rows.

        Raises
        ------
        InvalidInput
            If they have too few columns.
        """
        if self.column >= features.shape[1]:
            raise InvalidInput(
                f"the score is column {self.column} from 0, but features has {features.shape[1]} "
                "columns."
            )

    def bind(self, features: FloatArray, group: GroupArray | None) -> RowOracle:
        rows = as_features(features, may_be_empty=False)
        self.check_rows(rows)
        if not self.per_group:
            cut = Cuts.on(rows[:, self.column])
            return _BoundThresholds(len(rows), cut, self.column, rows.shape[1])
        known = require_group(group, len(rows), "ScoreThresholds(per_group=True)")
        parts = [
            (value, np.flatnonzero(known == value)) for value in distinct_groups(known.tolist())
        ]
        cuts = tuple((value, where, Cuts.on(rows[where, self.column])) for value, where in parts)
        return _BoundPerGroup(cuts, self.column, *rows.shape)


@dataclass(frozen=True, eq=False)
class _BoundThresholds(EnumeratedRows):
    """One score, sorted; ties go to accept-all, reject-all, then the lowest threshold."""

    cuts: Cuts
    column: int
    columns: int

    def hypothesis(self, member: int) -> Hypothesis:
        return self.cuts.rule(member, lambda value: Threshold(self.column, value, self.columns))

    def sums(self, channels: FloatArray) -> FloatArray:
        return self.cuts.totals(channels)


@dataclass(frozen=True, eq=False)
class _BoundPerGroup:
    """One sorted score per group: cost is a sum over groups, so the cheapest cuts are the cheapest
    combination.
    """

    cuts: tuple[tuple[Group, IntArray, Cuts], ...]
    column: int
    rows: int
    columns: int

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        cost = as_numbers(acceptance_cost, self.rows, "acceptance_cost")

        def cheapest(cuts: Cuts, where: IntArray) -> Hypothesis:
            bound = _BoundThresholds(len(where), cuts, self.column, self.columns)
            return bound.best(cost[where])

        rules = tuple((value, cheapest(cuts, where)) for value, where, cuts in self.cuts)
        return rules[0][1] if all(rule == rules[0][1] for _, rule in rules) else PerGroup(rules)


@dataclass(frozen=True)
class Stumps(HypothesisClass):
    """Decision stumps: one cut in one column, in either direction.

    Parameters
    ----------
    max_bins : int, optional
        Only that many quantiles of each column are tried as the cut, and the answer is exact among
        these. They are quantiles of the rows: a class does not see how many people a row counts
        for. Default: all distinct values.

    Notes
    -----
    {accept iff x_j >= t} and {accept iff x_j < t} for all columns j and reals t; exact. On n rows
    with d columns it has 2 + 2 d (n - 1) behaviours; with bins, too: their edges come from the
    data, so every stump may be tried.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = Stumps().bind(np.array([[1.0, 7.0], [2.0, 5.0], [3.0, 6.0]]), None)
    >>> oracle.best(np.array([1.0, -2.0, -1.0])).describe(["score", "debt"])
    'accept if score >= 2'
    """

    max_bins: int | None = None
    exact = True
    uses_group = False
    one_column = True
    """Each rule is a threshold on one column: what the DKW bound covers."""

    def __post_init__(self) -> None:
        if self.max_bins is not None and self.max_bins < 2:
            raise InvalidInput(
                f"max_bins is {self.max_bins}; one cut needs 2 bins (None: all distinct values)."
            )

    @property
    def params(self) -> Params:
        return {"class": "Stumps", "max_bins": self.max_bins}

    def log_growth(self, rows: int, columns: int) -> float:
        return math.log(2 + 2 * columns * (max(rows, 1) - 1))

    def bind(self, features: FloatArray, group: GroupArray | None) -> Enumeration:
        rows = as_features(features, may_be_empty=False)
        # the lowest value of each bin, ascending, all of them observed; one bin per distinct value
        # if these are few; and the bin of each row
        edges: list[FloatArray] = []
        bins: list[Codes] = []
        for column in rows.T:
            if self.max_bins is None:
                values, code = np.unique(column, return_inverse=True)
            else:
                ranked = np.sort(column)
                new = np.concatenate([[True], ranked[1:] != ranked[:-1]])
                if np.count_nonzero(new) > self.max_bins:
                    ranked = ranked[np.arange(self.max_bins) * len(ranked) // self.max_bins]
                    new = np.concatenate([[True], ranked[1:] != ranked[:-1]])
                values = ranked[new]
                code = np.searchsorted(values, column, side="right") - 1
            edges.append(values)
            # the smallest kind of number that tells so many bins apart
            n = len(values)
            kind = np.uint8 if n <= 256 else np.uint16 if n <= 65536 else np.int32
            bins.append(code.astype(kind))
        widest = max((code.dtype for code in bins), key=lambda kind: kind.itemsize)
        codes = np.empty(rows.shape, order="F", dtype=widest)
        for j in range(rows.shape[1] - 1, -1, -1):
            codes[:, j] = bins.pop()  # one of the two copies at a time
        starts = np.concatenate([[0], np.cumsum([len(e) for e in edges])])
        return _BoundStumps(len(rows), codes, starts, np.concatenate(edges))


def _cut_totals(codes: Codes, starts: IntArray, channels: FloatArray, totals: FloatArray) -> None:
    """bincount adds from 0 in the order of rows, as the loop does."""
    above, below = np.split(totals[:, 2:], 2, axis=1)
    for j in range(codes.shape[1]):
        code = codes[:, j].astype(np.intp)
        low = starts[j]
        high = starts[j + 1]
        cuts = slice(low - j, high - j - 1)
        for c, channel in enumerate(channels):
            sums = np.bincount(code, channel, high - low)
            from_each_on = np.cumsum(sums[::-1])[::-1]
            if j == 0:
                totals[c, 0] = from_each_on[0]
            above[c, cuts] = from_each_on[1:]
            below[c, cuts] = np.cumsum(sums[:-1])


@compiled(_cut_totals)
def cut_totals(codes: Codes, starts: IntArray, channels: FloatArray, totals: FloatArray) -> None:
    """For each of one or two channels c: totals[c, 0] = its sum over all rows; from 2 on, that over
    rows with codes >= b for each column and b >= 1; then that of codes < b in the same order.
    """
    rows, columns = codes.shape
    pair = len(channels) == 2
    cuts = totals.shape[1] // 2 - 1
    above = totals[:, 2 : 2 + cuts]
    below = totals[:, 2 + cuts :]
    first = 0
    while first < columns:
        # Columns of few codes go through the rows together. Alone, a column of two codes adds to
        # the same two places again and again, and each addition waits for the one before.
        stop = first + 1
        while (
            stop < columns
            and stop - first < COLUMNS_TOGETHER
            and starts[stop + 1] - starts[first] <= CODES_TOGETHER
        ):
            stop += 1
        base = starts[first]
        # of each code; a pair of channels lies side by side
        sums = np.zeros((starts[stop] - base, len(channels)))
        if stop - first == 1:
            for i in range(rows):
                code = np.int64(codes[i, first])
                sums[code, 0] += channels[0, i]
                if pair:
                    sums[code, 1] += channels[1, i]
        else:
            for i in range(rows):
                # read once: the compiler cannot know that no sum is written over them
                one = channels[0, i]
                two = channels[-1, i]
                for j in range(first, stop):
                    code = starts[j] - base + np.int64(codes[i, j])
                    sums[code, 0] += one
                    if pair:
                        sums[code, 1] += two
        for j in range(first, stop):
            low = starts[j] - base
            high = starts[j + 1] - base
            for c in range(len(channels)):
                total = 0.0
                for at in range(high - 1, low, -1):
                    total += sums[at, c]
                    above[c, base + at - j - 1] = total
                if j == 0:
                    totals[c, 0] = total + sums[low, c]
                total = 0.0
                for at in range(low + 1, high):
                    total += sums[at - 1, c]
                    below[c, base + at - j - 1] = total
        first = stop


@dataclass(frozen=True, eq=False)
class _BoundStumps(EnumeratedRows):
    """Coded columns; edges[starts[j] : starts[j + 1]] are the values of column j's codes.

    Members: accept all, reject all, x >= edge for every column and every edge but its lowest, then
    x < edge likewise. Ties go to the first of them.
    """

    codes: Codes
    starts: IntArray
    edges: FloatArray

    def sums(self, channels: FloatArray) -> FloatArray:
        """One pass over the codes per two channels, a few columns at a time: their sums stay in
        the cache, and the cumulative sums of a column are those of its cuts.
        """
        cuts = len(self.edges) - (len(self.starts) - 1)
        out = np.empty((len(channels), 2 + 2 * cuts))
        out[:, 1] = 0.0
        for c in range(0, len(channels), 2):
            cut_totals(self.codes, self.starts, channels[c : c + 2], out[c : c + 2])
        return out

    def hypothesis(self, member: int) -> Hypothesis:
        if member < 2:
            return (ACCEPT_ALL, REJECT_ALL)[member]
        columns = len(self.starts) - 1
        below, cut = divmod(member - 2, len(self.edges) - columns)
        first_cut = self.starts[:-1] - np.arange(columns)
        column = int(np.searchsorted(first_cut, cut, side="right")) - 1
        return Threshold(column, float(self.edges[cut + column + 1]), columns, at_least=below == 0)
