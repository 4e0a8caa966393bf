"""The groups of a table's people, numbered in the order in which they came."""

from collections.abc import Hashable

import numpy as np

from evenhand.estimation.log import numbered
from evenhand.words import Group, GroupArray, IntArray

UNKNOWN = -1
"""The code of an unknown group."""


class GroupCodes:
    """A number for every group that was ever seen; a number never changes.

    Examples
    --------
    >>> groups = GroupCodes()
    >>> groups.code_of("b"), groups.code_of("a"), groups.code_of("b"), groups.code_of(None)
    (0, 1, 0, -1)
    >>> groups.values_of(np.array([1, 0])).tolist()
    ['a', 'b']
    """

    def __init__(self) -> None:
        self.values: list[Group] = []
        self._codes: dict[Hashable, int] = {}

    def code_of(self, group: Hashable) -> int:
        """The number of a group, which is new if nobody had it before."""
        if group is None:
            return UNKNOWN
        code = self._codes.get(group)
        if code is None:
            code = len(self.values)
            self._codes[group] = code
            self.values.append(group)
        return code

    def codes_of(self, group: GroupArray | None, people: int) -> IntArray:
        """The number of each person's group."""
        if group is None:
            return np.full(people, UNKNOWN)
        values, codes = numbered(group)
        known = np.array([self.code_of(value) for value in values], dtype=np.int64)
        return known[codes]

    def values_of(self, codes: IntArray) -> GroupArray:
        """The groups with these numbers: texts or numbers where all are known, else objects."""
        known = self.values
        if len(codes) and (codes >= 0).all():
            kinds = {type(value) for value in known}
            if len(kinds) == 1 and kinds <= {str, int, float, bool}:
                return np.array(known)[codes]
        values = np.empty(len(known) + 1, dtype=object)
        values[:-1] = known
        values[-1] = None  # the last entry, which the code UNKNOWN = -1 reads
        return np.asarray(values[codes])
