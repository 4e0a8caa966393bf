"""The hypotheses that every class contains: accept-all, reject-all (+1, -1 in section 2), and the
group classifiers +a, -a.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.contracts import Hypothesis, Json
from evenhand.errors import InvalidInput
from evenhand.hypotheses.common import GROUP_HINT
from evenhand.words import BoolArray, FloatArray, Group, GroupArray


@dataclass(frozen=True, eq=False)
class ConstantBatch:
    """Constants, asked together; accept: (members, 1)."""

    accept: BoolArray
    columns = None

    def __call__(self, columns: FloatArray) -> BoolArray:
        """The same answer for all applicants."""
        return np.broadcast_to(self.accept, (len(self.accept), columns.shape[1]))

    def one(self, person: FloatArray) -> Sequence[int]:
        """The answers."""
        return self._answers

    @cached_property
    def _answers(self) -> tuple[bool, ...]:
        return tuple(self.accept[:, 0].tolist())


@dataclass(frozen=True)
class Constant(Hypothesis):
    """Accept all applicants or nobody: every rate is equal in all groups, exactly.

    Parameters
    ----------
    accept : bool
        Whether all applicants are accepted.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
    >>> ACCEPT_ALL.accepts(np.zeros((2, 1))).tolist()
    [True, True]
    >>> REJECT_ALL.describe()
    'reject all applicants'
    """

    accept: bool

    @property
    def columns_used(self) -> tuple[int, ...]:
        return ()

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        return np.full(len(features), self.accept)

    @staticmethod
    def together(members: "Sequence[Constant]") -> ConstantBatch:
        """Several constants, asked together.

        Parameters
        ----------
        members : sequence of Constant
            The constants.

        Returns
        -------
        ConstantBatch
            Answers as they do, bit for bit.
        """
        return ConstantBatch(np.array([[rule.accept] for rule in members]))

    def describe(self, names: Sequence[str] | None = None) -> str:
        return "accept all applicants" if self.accept else "reject all applicants"

    def to_json(self) -> Json:
        return {"kind": "constant", "accept": self.accept}


ACCEPT_ALL = Constant(True)
REJECT_ALL = Constant(False)


@dataclass(frozen=True)
class GroupClassifier(Hypothesis):
    """Accept exactly the members of one group.

    Parameters
    ----------
    value : hashable
        The group.

    Examples
    --------
    >>> import numpy as np
    >>> GroupClassifier("a").accepts(np.zeros((2, 1)), np.array(["a", "b"])).tolist()
    [True, False]
    """

    value: Group

    @property
    def columns_used(self) -> tuple[int, ...]:
        return ()

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        if group is None:
            raise InvalidInput(
                f'"{self.describe()}" needs the group of each row, but group is None.',
                hint=GROUP_HINT,
            )
        return np.asarray(group == self.value, dtype=bool)

    def describe(self, names: Sequence[str] | None = None) -> str:
        return f"accept if group is {self.value}"

    def to_json(self) -> Json:
        return {"kind": "group", "value": self.value}


@dataclass(frozen=True, eq=False)
class Unread(Hypothesis):
    """The place of a stored rule that this installation cannot read: it rejects all applicants.

    Parameters
    ----------
    rule : dict
        The rule's own JSON, as it was stored.
    reason : str
        Why it cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> gone = Unread({"kind": "fitted"}, "it was written by a newer version.")
    >>> gone.accepts(np.zeros((2, 1))).tolist()
    [False, False]
    """

    rule: Json
    reason: str

    @property
    def columns_used(self) -> tuple[int, ...]:
        return ()

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        return np.zeros(len(features), dtype=bool)

    def describe(self, names: Sequence[str] | None = None) -> str:
        return "reject all applicants, in the place of a rule that could not be read"

    def to_json(self) -> Json:
        """It stays what it is, also where the rule could be read again: what was counted meanwhile
        is not about the rule.
        """
        return {"kind": "unread", "rule": self.rule, "reason": self.reason}


def is_constant(hypothesis: Hypothesis) -> bool:
    """Whether a hypothesis decides for all people alike."""
    contexts = getattr(hypothesis, "contexts", None)
    alike = contexts is not None and len(set(contexts)) == 1
    return isinstance(hypothesis, Constant | Unread) or alike
