"""Thresholds on one score: accept iff score >= t, one t for everybody or one per group; exact.

Sort once; with s_1 < ... < s_m the distinct scores, the total of the cut at s_c is the sum over
rows with score >= s_c.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from evenhand.contracts import Hypothesis, HypothesisClass, Json, RowOracle
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.hypotheses._batches import ThresholdBatch
from evenhand.hypotheses._rows import (
    checked_channels,
    checked_costs,
    checked_rows,
    column_name,
    distinct_groups,
    first_minimum,
    require_columns,
    require_group,
)
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray


@dataclass(frozen=True)
class Threshold:
    """Accept iff x_column >= value (at_least), or iff x_column < value; the rows have `columns`
    columns.
    """

    column: int
    value: float
    columns: int
    at_least: bool = True

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """x >= value, or its negation."""
        require_columns(features, self.columns, self.describe())
        score = features[:, self.column]
        return np.asarray(score >= self.value if self.at_least else score < self.value)

    @staticmethod
    def together(members: "Sequence[Threshold]") -> ThresholdBatch | None:
        """Several thresholds on rows of the same width, asked together."""
        if len({rule.columns for rule in members}) > 1:
            return None
        return ThresholdBatch(
            np.array([rule.column for rule in members]),
            np.array([[rule.value] for rule in members]),
            np.array([[not rule.at_least] for rule in members]),
            members[0].columns,
        )

    def describe(self, names: Sequence[str] | None = None) -> str:
        """ "accept if income >= 30"."""
        return f"accept if {column_name(self.column, names)} {'>=' if self.at_least else '<'} {self.value:.10g}"

    def to_json(self) -> Json:
        """Plain JSON."""
        return {
            "kind": "threshold",
            "column": self.column,
            "value": self.value,
            "columns": self.columns,
            "at_least": self.at_least,
        }


@dataclass(frozen=True)
class PerGroup:
    """One rule per group; a row of a group without a rule is an error, not a guess."""

    rules: tuple[tuple[Any, Hypothesis], ...]

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """The answer of the rule of each row's group."""
        known = require_group(group, len(features), "a rule per group")
        accepted, ruled = np.zeros(len(features), bool), np.zeros(len(features), bool)
        for value, rule in self.rules:
            members = np.asarray(known == value)
            accepted[members] = rule.accepts(features[members])
            ruled |= members
        self._require_known(known[~ruled])
        return accepted

    def _require_known(self, strangers: GroupArray) -> None:
        if len(strangers):
            raise InvalidInput(
                f"group {strangers.tolist()[0]!r} has no rule; there are rules for {[g for g, _ in self.rules]}.",
                hint="bind the class to rows of every group that will be decided about.",
            )

    def describe(self, names: Sequence[str] | None = None) -> str:
        """ "group a: accept if score >= 3; group b: reject everybody"."""
        return "; ".join(f"group {value}: {rule.describe(names)}" for value, rule in self.rules)

    def to_json(self) -> Json:
        """Plain JSON, where the groups are strings or numbers."""
        for value, _ in self.rules:
            if not isinstance(value, str | int | float):
                raise NotSerialisable(
                    f"group {value!r} is neither a string nor a number.",
                    hint="code the groups as strings.",
                )
        return {
            "kind": "per-group",
            "parts": [{"group": g, "hypothesis": rule.to_json()} for g, rule in self.rules],
        }


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
            row[0], row[2:] = at_least[0], at_least[1:]
        return out

    def cheapest(self, acceptance_cost: FloatArray) -> int:
        """The first cheapest member."""
        return first_minimum(self.totals(acceptance_cost[np.newaxis])[0], acceptance_cost)

    def constant(self, member: int) -> Hypothesis | None:
        """The constant that a member stands for, if any."""
        return (ACCEPT_ALL, REJECT_ALL)[member] if member < 2 else None

    def value(self, member: int) -> float:
        """The score from which a member accepts, one that was observed."""
        return float(self.values[member - 1])


@dataclass(frozen=True)
class ScoreThresholds(HypothesisClass):
    """{accept iff x_column >= t : t real or infinite}, or all combinations of one t per group;
    exact.
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
    def params(self) -> Mapping[str, Any]:
        """Class, column and whether each group has its own threshold."""
        return {"class": "ScoreThresholds", "column": self.column, "per_group": self.per_group}

    @property
    def log_size(self) -> float:
        """Infinite: t is real."""
        return math.inf

    def log_growth(self, rows: int, columns: int) -> float:
        """ln(rows + 1); per group rows ln 2, because the number of groups is not known before
        binding.
        """
        return rows * math.log(2.0) if self.per_group else math.log(rows + 1)

    def check_rows(self, features: FloatArray) -> None:
        """InvalidInput for rows that have no such score."""
        if self.column >= features.shape[1]:
            raise InvalidInput(
                f"the score is column {self.column} from 0, but features has {features.shape[1]} columns."
            )

    def bind(self, features: FloatArray, group: GroupArray | None) -> RowOracle:
        """Sort the score once (per group)."""
        rows = checked_rows(features)
        self.check_rows(rows)
        if not self.per_group:
            return _BoundThresholds(Cuts.on(rows[:, self.column]), self.column, rows.shape[1])
        known = require_group(group, len(rows), "ScoreThresholds(per_group=True)")
        parts = [(value, np.flatnonzero(known == value)) for value in distinct_groups(known)]
        cuts = tuple((value, where, Cuts.on(rows[where, self.column])) for value, where in parts)
        return _BoundPerGroup(cuts, self.column, *rows.shape)


def _rule(cuts: Cuts, member: int, column: int, columns: int) -> Hypothesis:
    return cuts.constant(member) or Threshold(column, cuts.value(member), columns)


@dataclass(frozen=True, eq=False)
class _BoundThresholds:
    """One score, sorted."""

    cuts: Cuts
    column: int
    columns: int

    def totals(self, channels: FloatArray) -> FloatArray:
        """One cumulative sum per channel."""
        return self.cuts.totals(checked_channels(channels, len(self.cuts.codes)))

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """argmin of totals; ties go to accept-all, reject-all, then the lowest threshold."""
        return self.hypothesis(
            self.cuts.cheapest(checked_costs(acceptance_cost, len(self.cuts.codes)))
        )

    def hypothesis(self, member: int) -> Hypothesis:
        """The member with that index."""
        return _rule(self.cuts, member, self.column, self.columns)


@dataclass(frozen=True, eq=False)
class _BoundPerGroup:
    """One sorted score per group: cost is a sum over groups, so the cheapest cuts are the cheapest
    combination.
    """

    cuts: tuple[tuple[Any, IntArray, Cuts], ...]
    column: int
    rows: int
    columns: int

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """argmin group by group."""
        cost = checked_costs(acceptance_cost, self.rows)
        rules = tuple(
            (g, _rule(cuts, cuts.cheapest(cost[where]), self.column, self.columns))
            for g, where, cuts in self.cuts
        )
        return rules[0][1] if all(rule == rules[0][1] for _, rule in rules) else PerGroup(rules)
