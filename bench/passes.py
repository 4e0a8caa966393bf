"""Rows 4 and 8: the compiled pass of stumps, and what `import evenhand` costs."""

import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from bench.record import Record, clock, median, number
from bench.tables import Tables
from evenhand import Stumps
from evenhand.computing import computing_in

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


def one_pass(_tables: Tables, quick: bool) -> list[Record]:
    """Row 4: totals of two channels over all cuts, against one pass that sums the same binned
    columns.
    """
    sizes = (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    cases = [_pass_case(size) for size in sizes]
    ratios = tuple(ratio for case in cases for ratio in case["ratios"])
    worst = max(median(case["ratios"]) for case in cases)
    growth = [b["seconds"] / a["seconds"] / (b["rows"] / a["rows"]) for a, b in pairwise(cases)]
    linear = all(step <= 1.5 for step in growth)
    parts = ", ".join(f"{case['rows']:,}: {number(median(case['ratios']))} x" for case in cases)
    steps = ", ".join(number(step) for step in growth)
    note = f"{parts}; time per row grows by {steps} per size step. Generated columns."
    figure = f"{number(worst)} x (largest median), {'linear' if linear else 'NOT linear'}"
    return [
        Record(
            "one pass over 16 binned columns",
            "<= 12 x one summing pass, linear",
            figure,
            worst <= 12 and linear,
            ratios,
            note,
            tuple(cases),
        )
    ]


def _pass_case(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    oracle: Any = Stumps(max_bins=BINS).bind(rng.normal(size=(rows, COLUMNS)), None)
    channels, sums = rng.normal(size=(2, rows)), np.zeros(COLUMNS, dtype=np.int64)
    with computing_in("numba"):
        oracle.totals(channels)
    _column_sums(oracle.codes, sums)
    ratios, seconds = [], []
    for _ in range(9):
        base = median([clock(lambda: _column_sums(oracle.codes, sums))[0] for _ in range(5)])
        ours = median([clock(lambda: oracle.totals(channels))[0] for _ in range(5)])
        ratios.append(ours / base)
        seconds.append(ours)
    return {"rows": rows, "ratios": ratios, "seconds": median(seconds)}


def import_time(_tables: Tables, quick: bool) -> list[Record]:
    """Row 8: CPU seconds of `import evenhand` beyond `import numpy`, in fresh interpreters, in
    turns.
    """
    extra = []
    for _ in range(3 if quick else 9):
        base = _import_cpu("numpy")
        extra.append(_import_cpu("evenhand") - base)
    middle = median(extra)
    return [
        Record(
            "import evenhand, beyond numpy",
            "< 0.5 s CPU",
            f"{middle:.3f} s",
            middle < 0.5,
            tuple(extra),
            "seconds, not ratios",
        )
    ]


def _import_cpu(module: str) -> float:
    code = "import time; start = time.process_time()\n"
    code += f"import {module}\nprint(time.process_time() - start)"
    return float(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
    )
