"""A model with a cut-off of its own in each group, for group_use="decide".

A search that partitions the rows (the values of a score, the leaves of a tree) offers more than its
answer: every group may accept other cells. Costs and rates are sums over people, so the cheapest
choice is that of each group by itself:

    min over (c_a)_a  sum_i cost_i 1[cell_i in c_{a_i}]  =  sum_a  min over c  sum_{i: a_i = a} ...
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from evenhand.contracts import (
    Hypothesis,
    HypothesisClass,
    Params,
    Partition,
    Partitioning,
    RowOracle,
    class_reading,
)
from evenhand.hypotheses.common import require_group
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.thresholds import PerGroup
from evenhand.people import distinct_groups
from evenhand.schema import Schema
from evenhand.words import (
    BoolArray,
    FloatArray,
    Group,
    GroupArray,
    IntArray,
    as_features,
    as_numbers,
)


@runtime_checkable
class Scoring(Protocol):
    """A bound class whose models have a score that cut-offs can be put on, though its own rules do
    not use them.
    """

    def cut_offs(self, acceptance_cost: FloatArray) -> Partition | None:
        """The cells of the score behind best(acceptance_cost); None where there is no score."""
        ...


@dataclass(frozen=True)
class PerGroupCuts(HypothesisClass):
    """The rules of a class with another cut-off in each group.

    Parameters
    ----------
    rules : HypothesisClass
        A class whose search partitions the rows (`Linear`, an `Estimator`); of any other class each
        group may follow the rule, or accept all or none of its people.

    Notes
    -----
    A heuristic oracle, as the class itself; with group_use="decide" only.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.hypotheses import Linear
    >>> rows, group = np.array([[1.0], [2.0], [3.0], [4.0]] * 2), np.array(["a"] * 4 + ["b"] * 4)
    >>> cost = np.array([1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, -1.0])
    >>> PerGroupCuts(Linear()).bind(rows, group).best(cost).accepts(rows, group).tolist()
    [False, True, True, True, False, False, False, True]
    """

    rules: HypothesisClass
    exact = False
    uses_group = True

    @property
    def params(self) -> Params:
        return {"class": "PerGroupCuts", "rules": self.rules.params}

    @property
    def schema(self) -> Schema | None:
        """The columns that the class itself was made for."""
        schema: Schema | None = getattr(self.rules, "schema", None)
        return schema

    def reading(self, schema: Schema) -> "PerGroupCuts":
        """The class for people with these columns.

        Parameters
        ----------
        schema : Schema
            What the rows stand for.

        Returns
        -------
        PerGroupCuts
            The same rules, which know the schema.
        """
        return PerGroupCuts(class_reading(self.rules, schema))

    def bind(self, features: FloatArray, group: GroupArray | None) -> RowOracle:
        rows = as_features(features, may_be_empty=False)
        known = require_group(group, len(rows), "PerGroupCuts")
        groups = distinct_groups(known.tolist())
        number = {value: place for place, value in enumerate(groups)}
        codes = np.array([number[value] for value in known.tolist()], dtype=np.int64)
        return _BoundPerGroupCuts(self.rules.bind(rows, None), rows, codes, tuple(groups))


@dataclass(frozen=True, eq=False)
class _BoundPerGroupCuts:
    """The bound class, its rows, and the group of each by number."""

    oracle: RowOracle
    rows: FloatArray
    codes: IntArray
    groups: tuple[Group, ...]

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """The cheapest cut of each group."""
        cost = as_numbers(acceptance_cost, len(self.rows), "acceptance_cost")
        found = self.partition(cost)
        sums = np.bincount(found.cell, cost, found.cells)
        accept = np.zeros(found.cells, dtype=bool)
        if not found.ordered:
            accept = sums < 0
        else:
            length = found.cells // found.chains
            for chain in range(found.chains):
                here = slice(chain * length, (chain + 1) * length)
                from_each_on = np.append(sums[here][::-1].cumsum()[::-1], 0.0)
                accept[here] = np.arange(length) >= int(np.argmin(from_each_on))
        return found.hypothesis(accept)

    def partition(self, acceptance_cost: FloatArray) -> Partition:
        """The cells of the class's search, each divided by the group."""
        inner = self._cells(acceptance_cost)
        cell = self.codes * inner.cells + inner.cell
        rule = per_group(inner.hypothesis, self.groups, inner.cells)
        return Partition(
            cell, inner.cells * len(self.groups), inner.ordered, rule, chains=len(self.groups)
        )

    def _cells(self, cost: FloatArray) -> Partition:
        """What the search offers, at the least its answer."""
        found = None
        if isinstance(self.oracle, Partitioning):
            found = self.oracle.partition(cost)
        if found is None and isinstance(self.oracle, Scoring):
            found = self.oracle.cut_offs(cost)
        if found is not None:
            return found
        answer = self.oracle.best(cost)

        def rule(accept: BoolArray) -> Hypothesis:
            return ACCEPT_ALL if accept[0] else answer if accept[1] else REJECT_ALL

        return Partition(answer.accepts(self.rows).astype(np.int64), 2, True, rule)


def per_group(
    rule_of: Callable[[BoolArray], Hypothesis], groups: tuple[Group, ...], cells: int
) -> Callable[[BoolArray], Hypothesis]:
    """The rule in which each group accepts its own cells; one rule where all accept the same."""

    def rule(accept: BoolArray) -> Hypothesis:
        several = accept.reshape(len(groups), cells)
        if (several == several[0]).all():
            return rule_of(several[0])
        return PerGroup(
            tuple((value, rule_of(own)) for value, own in zip(groups, several, strict=True))
        )

    return rule
