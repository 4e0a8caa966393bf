"""Whose label may still come: the own window of each person, and what waits for it."""

import numpy as np

from evenhand.rounds.table import Rounds
from evenhand.words import BoolArray, IntArray

PATIENCE = 100
"""Without a maturity window, a label counts as "not come" for the drift tests once this many
people have been decided after the call that decided the person. A preset number: the category of
a person must not depend on when somebody looks.
"""


def window_open(
    table: Rounds, round_ids: IntArray, now: float | None, window: float | None
) -> BoolArray | bool:
    """Whether the own window of each round is still open: `window` units of time, or PATIENCE
    later arrivals where there is no window.
    """
    rows = table.find(round_ids)
    if window is None:
        return patient(table, rows)
    if now is None:
        return True
    return np.asarray(~(table["at"][rows] + window <= now))


def patient(table: Rounds, rows: IntArray | slice) -> BoolArray:
    """Whether fewer than PATIENCE people have been decided since the end of each row's call."""
    last_of_call = table["round"][rows] + table["call_left"][rows]
    return np.asarray(table.decided <= last_of_call + PATIENCE)


def matured(table: Rounds, now: float | None, window: float | None) -> int:
    """The first round whose cohort cannot close yet: the window of its person has not passed,
    or its call of decide() has not returned. Cohorts close in the order of arrival.
    """
    if window is None:
        return table.returned
    if now is None:
        return table.counted[-1].stop if table.counted else 0
    # time does not run backwards, so the column is sorted
    at = table["at"]
    row = int(np.searchsorted(at, now - window, side="right"))
    while row < len(at) and at[row] + window <= now:  # now - window was rounded down
        row += 1
    while row > 0 and not at[row - 1] + window <= now:  # or up
        row -= 1
    if row == len(at):
        return table.returned
    return min(int(table["round"][row]), table.returned)


def first_missing(table: Rounds, *, may_come: bool = False) -> int:
    """The first round that lacks its label (`may_come`: and may still get it); the next one to
    be decided if there is none.
    """
    rows = table.rows_between(table.complete_to)
    missing = table["accept"][rows] & (table["label"][rows] == 0)
    if missing.any():
        table.complete_to = int(table["round"][rows][int(np.argmax(missing))])
    else:
        table.complete_to = table.decided
    if not may_come:
        return table.complete_to
    rows = table.rows_between(table.complete_to)
    waiting = table["accept"][rows] & (table["label"][rows] == 0)
    waiting &= ~(table["overruled"][rows] | table["erased"][rows])
    if waiting.any():
        return int(table["round"][rows][int(np.argmax(waiting))])
    return table.decided
