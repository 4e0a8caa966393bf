"""Who accepts whom: the table of some rules on some people."""

from hashlib import sha256

import numpy as np

from evenhand.contracts import Hypothesis
from evenhand.words import BoolArray, FloatArray, GroupArray

TILE = 2048
"""People asked about at a time: few enough for scores to stay in the cache."""
LARGEST_KEY = 4096
MOST_TABLES = 8
"""Tables are remembered for at most so many numbers as key, and so many at a time."""


def acceptance_table(
    members: tuple[Hypothesis, ...], features: FloatArray, group: GroupArray | None
) -> BoolArray:
    """(members, rows): who accepts whom."""
    if not members:
        return np.zeros((0, len(features)), dtype=bool)
    together = getattr(type(members[0]), "together", None)
    others = [i for i, member in enumerate(members) if type(member) is not type(members[0])]
    if others:  # candidates come first, then the class, whose rules are asked together
        parts = (members[: others[0]], members[others[0] :])
        return np.concatenate([acceptance_table(part, features, group) for part in parts])
    batch = together(members) if together else None
    if batch is not None and batch.columns in (None, features.shape[1]):
        tiles = [batch(features[start : start + TILE].T) for start in range(0, len(features), TILE)]
        return np.concatenate(tiles, axis=1) if tiles else np.zeros((len(members), 0), dtype=bool)
    return np.stack([member.accepts(features, group) for member in members])


class MemberTables:
    """acceptance_table with a memory: discrete populations have the same contexts often.

    A table is remembered by the hash of its rows. The rows themselves would be people, whom the
    state of an algorithm does not keep.
    """

    def __init__(self, members: tuple[Hypothesis, ...]) -> None:
        self.members = members
        self.known: dict[bytes, BoolArray] = {}

    def on(self, features: FloatArray, group: GroupArray | None) -> BoolArray:
        """The table on these rows."""
        if group is not None or features.size > LARGEST_KEY:
            return acceptance_table(self.members, features, group)
        key = sha256(features.tobytes()).digest()
        if key not in self.known:
            if len(self.known) >= MOST_TABLES:
                self.known.clear()
            self.known[key] = acceptance_table(self.members, features, None)
        return self.known[key]
