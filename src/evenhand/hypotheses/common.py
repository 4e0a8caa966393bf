"""What the hypothesis classes share: checks of their rows, and how ties are broken."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.contracts import Hypothesis
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.people import as_group
from evenhand.words import ColumnName, FloatArray, GroupArray, as_numbers

TIE = 1e-13
"""Totals that differ by less than TIE * sum|cost| are equal: rounding must not decide between
hypotheses.
"""


GROUP_HINT = 'pass group=..., and choose group_use="decide" if the group may influence decisions.'


@dataclass(frozen=True, eq=False)
class EnumeratedRows(ABC):
    """A class bound to so many rows, whose members have numbers: channels are checked, and ties go
    to the lowest number.
    """

    rows: int

    @abstractmethod
    def sums(self, channels: FloatArray) -> FloatArray:
        """The totals of checked channels."""

    @abstractmethod
    def hypothesis(self, member: int) -> Hypothesis:
        """The member of that number."""

    def totals(self, channels: FloatArray) -> FloatArray:
        """totals[c, h] = sum of channel c over the rows that member h accepts."""
        array = np.ascontiguousarray(channels, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.rows:
            raise LengthMismatch(
                f"channels has shape {array.shape}; the class is bound to {self.rows} rows: "
                f"(k, {self.rows}) is needed."
            )
        return self.sums(array)

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """The first cheapest member."""
        cost = as_numbers(acceptance_cost, self.rows, "acceptance_cost")
        return self.hypothesis(first_minimum(self.totals(cost[np.newaxis])[0], cost))


def require_columns(features: FloatArray, columns: int, what: str) -> None:
    """`features` has as many columns as the rule was found on."""
    if features.ndim != 2 or features.shape[1] != columns:
        given = f"{features.shape[1]} columns" if features.ndim == 2 else f"shape {features.shape}"
        raise InvalidInput(
            f'features has {given}, but "{what}" was found on {columns} columns.',
            hint="pass the same columns in the same order.",
        )


def require_group(group: GroupArray | None, rows: int, what: str) -> GroupArray:
    """The group of every row; the way out where it is None."""
    if group is None:
        raise InvalidInput(
            f"{what} looks at the group of each row, but group is None.", hint=GROUP_HINT
        )
    return as_group(group, rows)


def column_name(column: int, names: Sequence[str] | None) -> str:
    """The column's name, "x3" where it has none."""
    return names[column] if names is not None and column < len(names) else f"x{column}"


def comparison(column: int, names: Sequence[str] | None, sign: str, value: str) -> str:
    """ "income >= 30", or the words that the name of the column has for it.

    value: the number as it is printed; numbers that look alike are described alike.
    """
    name = column_name(column, names)
    words = name.compared(sign, float(value)) if isinstance(name, ColumnName) else None
    return f"{name} {sign} {value}" if words is None else words


def first_minimum(totals: FloatArray, acceptance_cost: FloatArray) -> int:
    """min {h : totals_h <= min totals + TIE sum|cost|}: ties go to the lowest index, whatever the
    order of the rows.
    """
    return int(np.argmax(totals <= totals.min() + TIE * np.abs(acceptance_cost).sum()))
