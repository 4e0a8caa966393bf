"""The first people of all, for a learner that explores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.errors import ProtocolError
from evenhand.rounds import Rounds
from evenhand.words import FloatArray, Group, GroupArray, IntArray


@dataclass(frozen=True, eq=False)
class Arrivals:
    """What is known of each, in order.

    Attributes
    ----------
    features, group, label, count : array
        The people. group: None where it is unknown; label: 0 where it is missing; count: how many
        people a row stands for, 1 unless rounds were decided in aggregate.
    """

    features: FloatArray
    group: GroupArray
    label: IntArray
    count: FloatArray

    @property
    def missing(self) -> int:
        """How many people have no label."""
        return int(self.count[self.label == 0].sum())

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups, in the order in which they were first seen."""
        return tuple(dict.fromkeys(group for group in self.group.tolist() if group is not None))


def arrivals_before(table: Rounds, stop: int, without: Sequence[int] = ()) -> Arrivals:
    """The people of the rounds before `stop`; `without`: rounds whose label counts as missing
    although it may have come since.
    """
    features: list[FloatArray] = []
    groups: list[GroupArray] = []
    labels: list[IntArray] = []
    counts: list[FloatArray] = []
    for chunk in table.counted:
        if chunk.first < stop < chunk.stop:
            raise ProtocolError(
                f"rounds {chunk.first} to {chunk.stop - 1} were decided in aggregate, so "
                f"nobody can say who came before round {stop}.",
                hint="absorb at most the rounds that are left of the epoch.",
            )
        if chunk.first < stop:
            for label, column in ((1, chunk.positive), (-1, chunk.negative)):
                seen = column > 0
                features.append(chunk.features[seen])
                groups.append(chunk.group[seen].astype(object))
                labels.append(np.full(int(seen.sum()), label))
                counts.append(column[seen])
    rows = table.rows_between(0, stop)
    if rows.stop > rows.start:
        known = table["label"][rows].astype(np.int64)
        known[np.isin(table["round"][rows], list(without))] = 0
        features.append(table.features_of(rows))
        groups.append(table.groups_of(rows).astype(object))
        labels.append(known)
        counts.append(np.ones(len(known)))
    return Arrivals(
        np.concatenate(features),
        np.concatenate(groups),
        np.concatenate(labels),
        np.concatenate(counts),
    )
