"""The hypotheses that every class contains: accept-all, reject-all (+1, -1 in section 2), and the
group classifiers +a, -a.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.hypotheses._batches import ConstantBatch
from evenhand.words import BoolArray, FloatArray, GroupArray


@dataclass(frozen=True)
class Constant:
    """Accept everybody or nobody: every rate is equal in all groups, exactly."""

    accept: bool

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """The same answer for each row."""
        return np.full(len(features), self.accept)

    @staticmethod
    def together(members: "Sequence[Constant]") -> ConstantBatch:
        """Several constants, asked together."""
        return ConstantBatch(np.array([[rule.accept] for rule in members]))

    def describe(self, names: Sequence[str] | None = None) -> str:
        """In words."""
        return "accept everybody" if self.accept else "reject everybody"

    def to_json(self) -> Json:
        """Plain JSON."""
        return {"kind": "constant", "accept": self.accept}


ACCEPT_ALL = Constant(True)
REJECT_ALL = Constant(False)


@dataclass(frozen=True)
class GroupClassifier:
    """Accept exactly the members of one group."""

    value: Any

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """Rows whose group is `value`."""
        if group is None:
            raise InvalidInput(
                f'"{self.describe()}" needs the group of each row, but group is None.',
                hint='pass group=..., and choose group_use="decide" if the group may influence decisions.',
            )
        return np.asarray(group == self.value, dtype=bool)

    def describe(self, names: Sequence[str] | None = None) -> str:
        """In words."""
        return f"accept if group is {self.value}"

    def to_json(self) -> Json:
        """Plain JSON."""
        return {"kind": "group", "value": self.value}
