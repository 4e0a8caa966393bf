"""Cohorts in aggregated form, and what a certificate may see of a round."""

from typing import Any

import numpy as np

from evenhand.estimation.log import find_contexts, numbered
from evenhand.rounds import learning
from evenhand.rounds.counts import Counts, GroupCounts
from evenhand.rounds.features import Column
from evenhand.rounds.groups import UNKNOWN
from evenhand.rounds.table import Rounds
from evenhand.words import BoolArray, FloatArray, Group, IntArray


def count(table: Rounds, first: int, stop: int) -> Counts:
    """Rounds first .. stop - 1, which are of one epoch, in aggregated form."""
    for chunk in table.counted:
        if chunk.first == first and chunk.stop == stop:
            return chunk
    rows = table.rows_between(first, stop)
    accept = table["accept"][rows]
    acceptance = table["acceptance"][rows]
    audit = table["audit"][rows]
    settled = table["settled"][rows]
    group = table.groups_of(rows)
    label = label_at_closing(table, rows)
    resolved = learning.resolved(table, rows)
    here = ~table["erased"][rows]
    features = table.features_of(rows)
    if not here.all():
        features = features[here]
    contexts = find_contexts(features, group[here], acceptance[here])
    size = len(contexts.first)

    def total(which: BoolArray) -> FloatArray:
        return _summed(contexts.index, which[here], size)

    good = label == 1
    bad = label == -1
    categories = [settled == 1, settled == -1, settled == 0]
    shown = np.flatnonzero(here)[contexts.first]
    return Counts(
        epoch=int(table["epoch"][rows][0]),
        first=first,
        stop=stop,
        log=learning.log_in(table, rows, resolved & ~table["label_late"][rows]),
        features=features if size == len(features) else features[contexts.first],
        group=group[shown],
        acceptance=acceptance[shown],
        rejected=total(~accept),
        positive=total(accept & good),
        negative=total(accept & bad),
        unresolved=total(accept & (label == 0)),
        audited_positive=total(audit & good),
        audited_negative=total(audit & bad),
        settled=np.stack([total(accept & mask) for mask in categories]),
        settled_audited=np.stack([total(audit & mask) for mask in categories]),
        **marked(table, first, stop),
    )


def marked(table: Rounds, first: int, stop: int) -> dict[str, Any]:
    """The people of these rounds to whom something happened after the coin: the fields
    `lost_...`, `overruled` and `late_groups` of `Counts`.
    """
    rows = table.rows_between(first, stop)
    gone = rows.start + np.flatnonzero(table["erased"][rows])
    accept = table["accept"][gone]
    chances, which = np.unique(table["acceptance"][gone], return_inverse=True)
    return {
        "lost_acceptance": chances,
        "lost_accepted": _summed(which, accept, len(chances)),
        "lost_rejected": _summed(which, ~accept, len(chances)),
        "overruled": _by_group(table, rows, "overruled"),
        "late_groups": _by_group(table, rows, "group_late"),
    }


def _by_group(table: Rounds, rows: slice, mark: str) -> GroupCounts:
    """People with a mark who were not erased."""
    here = rows.start + np.flatnonzero(table[mark][rows] & ~table["erased"][rows])
    counts: GroupCounts = {}
    drawn = table["accept"][here].tolist()
    for key in zip(table.groups_of(here).tolist(), drawn, strict=True):
        counts[key] = counts.get(key, 0.0) + 1.0
    return counts


def outcomes(table: Rounds, round_ids: IntArray) -> IntArray:
    """What a certificate may see of these rounds now: 0 rejected, 1 good, 2 bad, 3 accepted
    without a label.
    """
    rows = table.rows_of(round_ids)
    label = label_at_closing(table, rows)
    accepted = np.where(label == 0, 3, np.where(label == 1, 1, 2))
    return np.where(table["accept"][rows], accepted, 0)


def label_at_closing(table: Rounds, rows: slice | IntArray) -> Column:
    """The labels that a certificate may see: 0 where a human overruled, and where the label
    came after the cohort had closed.
    """
    silent = table["overruled"][rows] | table["label_late"][rows]
    return np.where(silent, 0, table["label"][rows])


def people_by_group(table: Rounds, first: int = 0) -> dict[Group, int]:
    """How many people of each group were decided from round `first` on; None: unknown."""
    rows = table.rows_between(first)
    counts: dict[Group, int] = {}
    for value, many in zip(*np.unique(table["group"][rows], return_counts=True), strict=True):
        group = None if value == UNKNOWN else table.group_codes.values[value]
        counts[group] = counts.get(group, 0) + int(many)
    for chunk in table.counted:
        if chunk.first >= first:
            values, codes = numbered(chunk.group)
            for code, group in enumerate(values):
                many = int(chunk.rounds[codes == code].sum())
                counts[group] = counts.get(group, 0) + many
    return {group: many for group, many in counts.items() if many}


def _summed(place: IntArray, of: BoolArray | FloatArray, size: int) -> FloatArray:
    return np.bincount(place, weights=of, minlength=size).astype(np.float64, copy=False)
