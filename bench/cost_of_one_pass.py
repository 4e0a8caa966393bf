"""What does one pass of stumps over all cuts cost, beside a loop that only reads the columns, and
beside a pass that takes one column after the other?
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from bench.record import Record, clock, median, number
from bench.tables import Tables
from evenhand import Stumps
from evenhand.computing import computing_in
from evenhand.hypotheses.thresholds import cut_totals

COLUMNS, BINS = 16, 64


@njit(cache=False, nogil=True)
def _column_sums(columns: Any, sums: Any) -> None:
    """One compiled pass that sums each column: the least that any method which reads the data must
    do.
    """
    rows, width = columns.shape
    for i in range(rows):
        for j in range(width):
            sums[j] += columns[i, j]


def one_pass(tables: Tables, quick: bool) -> list[Record]:
    """Both rows."""
    return [_beside_a_sum(quick), _beside_single_columns(tables, quick)]


def _beside_a_sum(quick: bool) -> Record:
    """Totals of two channels over all cuts, against one pass that sums the same binned columns."""
    sizes = (200, 400) if quick else (10_000, 100_000, 1_000_000)
    cases = [_pass_case(size, quick) for size in sizes]
    ratios = tuple(ratio for case in cases for ratio in case["ratios"])
    worst = max(median(case["ratios"]) for case in cases)
    growth = [b["seconds"] / a["seconds"] / (b["rows"] / a["rows"]) for a, b in pairwise(cases)]
    linear = all(step <= 1.5 for step in growth)
    parts = ", ".join(f"{case['rows']:,}: {number(median(case['ratios']))} x" for case in cases)
    steps = ", ".join(number(step) for step in growth)
    note = f"{parts}; time per row grows by {steps} per size step. Generated columns."
    figure = f"{number(worst)} x (largest median), {'linear' if linear else 'NOT linear'}"
    return Record(
        "one pass over 16 binned columns",
        "<= 12 x one summing pass, linear",
        figure,
        worst <= 12 and linear,
        ratios,
        note,
        tuple(cases),
    )


def _pass_case(rows: int, quick: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    oracle: Any = Stumps(max_bins=BINS).bind(rng.normal(size=(rows, COLUMNS)), None)
    channels, sums = rng.normal(size=(2, rows)), np.zeros(COLUMNS, dtype=np.int64)
    column_sums = _column_sums
    if quick:
        column_sums = _column_sums.py_func  # to compile takes longer than to run
    else:
        with computing_in("numba"):
            oracle.totals(channels)
    column_sums(oracle.codes, sums)
    ratios, seconds = [], []
    for _ in range(1 if quick else 9):
        base = median([clock(lambda: column_sums(oracle.codes, sums))[0] for _ in range(5)])
        ours = median([clock(lambda: oracle.totals(channels))[0] for _ in range(5)])
        ratios.append(ours / base)
        seconds.append(ours)
    return {"rows": rows, "ratios": ratios, "seconds": median(seconds)}


def _beside_single_columns(tables: Tables, quick: bool) -> Record:
    """The pass of two channels over Adult, nearly all of whose columns have two values, against the
    same pass with one column after the other.
    """
    table = tables.get("adult")
    oracle: Any = Stumps().bind(table.features, None)
    columns = table.features.shape[1]
    channels = np.random.default_rng(0).normal(size=(2, len(table)))
    values = np.diff(oracle.starts).tolist()

    def column_by_column() -> None:
        for j, n in enumerate(values):
            totals = np.empty((2, 2 * n))
            cut_totals(oracle.codes[:, j : j + 1], np.array([0, n]), channels, totals)

    def together() -> None:
        oracle.totals(channels)

    together()
    column_by_column()
    turns = [(clock(column_by_column)[0], clock(together)[0]) for _ in range(1 if quick else 15)]
    ratios = tuple(single / ours for single, ours in turns)
    slow, fast = (1e3 * median(seconds) for seconds in zip(*turns, strict=True))
    return Record(
        "one pass over the columns of Adult, beside one column after the other",
        ">= 2 x",
        f"{number(median(ratios))} x (median)",
        median(ratios) >= 2,
        ratios,
        f"{number(fast)} ms against {number(slow)} ms; {len(table):,} rows, {columns} columns, "
        f"{values.count(2)} of them with two values. {tables.note}",
    )
