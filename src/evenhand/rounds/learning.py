"""What the loss may learn from: the resolved rounds, as logs."""

from collections.abc import Iterator

import numpy as np

from evenhand.estimation import RoundLog
from evenhand.estimation.log import prices_of
from evenhand.rounds.groups import UNKNOWN
from evenhand.rounds.table import Rounds
from evenhand.words import BoolArray, IntArray


def resolved(table: Rounds, rows: slice) -> BoolArray:
    """What the loss may learn from: rejected rounds, and accepted ones whose label has come; never
    an erased one.
    """
    accept = table["accept"][rows]
    erased = table["erased"][rows]
    labelled = (table["label"][rows] != 0) & ~(erased | (table["overruled"][rows] & accept))
    return np.asarray(labelled | ~(accept | erased))


def log(
    table: Rounds,
    *,
    stop: int | None = None,
    epochs: set[int] | None = None,
    with_group: bool = True,
) -> RoundLog | None:
    """The resolved rounds, equal ones counted together; None if
    there is nothing.

    stop: of rounds before this one; epochs: of these epochs.
    """
    found = []
    end = table.returned if stop is None else min(stop, table.returned)
    for epoch, first, last in table.spans(0, end):
        if epochs is None or epoch in epochs:
            found.append(_log_of_span(table, first, last))
    return _merged(found, with_group)


def log_between(
    table: Rounds, first: int, stop: int, *, with_group: bool = True
) -> RoundLog | None:
    """The resolved rounds first .. stop - 1 in their order, equal ones not counted together;
    None if there is none.
    """
    found = [
        _log_of_span(table, start, end)
        for _, start, end in table.spans(first, min(stop, table.returned))
    ]
    parts = [log if with_group else log.without_group() for log in found if log.rounds > 0]
    return RoundLog.concatenate(parts) if parts else None


def logs(table: Rounds) -> Iterator[tuple[int, RoundLog]]:
    """(epoch, log) of the resolved rounds of each epoch."""
    for epoch, first, stop in table.spans(0, table.returned):
        log = _log_of_span(table, first, stop)
        if log.rounds > 0:
            yield epoch, log


def log_of_rows(table: Rounds, rows: IntArray) -> RoundLog:
    """These rows, which must be resolved, in their order; a copy, not a view, which would hold
    the whole table after it has grown.
    """
    if not len(rows):
        return log_in(table, slice(0, 0), np.zeros(0, dtype=bool))
    window = slice(int(rows[0]), int(rows[-1]) + 1)
    chosen = np.zeros(window.stop - window.start, dtype=bool)
    chosen[rows - rows[0]] = True
    log = log_in(table, window, chosen)
    return RoundLog.of_checked(**{**vars(log), "features": log.features.copy()})


def resolved_before(table: Rounds, stop: int) -> int:
    """How many rounds before `stop` the loss may learn from: those whose call has returned."""
    stop = min(stop, table.returned)
    rows = table.rows_between(0, stop)
    counted = sum(round(chunk.log.rounds) for chunk in table.counted if chunk.first < stop)
    return int(resolved(table, rows).sum()) + counted


def log_in(table: Rounds, rows: slice, chosen: BoolArray) -> RoundLog:
    """The chosen rows, which must be resolved, as a log: with the group where it is known of
    all of them.
    """
    places = rows.start + np.flatnonzero(chosen)
    accept = table["accept"][places]
    label = table["label"][places]
    known = bool((table["group"][places] != UNKNOWN).all())
    prices = table.prices
    return RoundLog.of_checked(
        table.features_of(rows if chosen.all() else places),
        table.groups_of(places) if known else None,
        prices and prices_of(prices, table.n_rows, places),
        acceptance=table["acceptance"][places],
        rejected=(~accept).astype(np.float64),
        positive=(accept & (label == 1)).astype(np.float64),
        negative=(accept & (label == -1)).astype(np.float64),
    )


def _log_of_span(table: Rounds, first: int, stop: int) -> RoundLog:
    counts = table.counts_from(first)
    if counts is not None:
        return counts.log
    rows = table.rows_between(first, stop)
    return log_in(table, rows, resolved(table, rows))


def _merged(logs: list[RoundLog], with_group: bool) -> RoundLog | None:
    parts = [log if with_group else log.without_group() for log in logs if log.rounds > 0]
    return RoundLog.merged(parts) if parts else None
