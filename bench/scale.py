"""How time and memory grow with the rows: one fair problem solved on made-up tables, each in a
process of its own.

Stumps (1,024 quantiles of each column) and thresholds from 1e4 to 1e7 rows, linear rules to 1e6,
ten continuous columns. Growth counts as linear up to rows^1.2, from 1e5 rows on. Seconds are CPU
seconds with one BLAS thread, the median of three processes. Peak memory: the high-water mark less
what the process had before the table was made; with the table.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.record import Record, number
from bench.tables import Tables

SIZES = {
    "stumps": (10**4, 10**5, 10**6, 10**7),
    "thresholds": (10**4, 10**5, 10**6, 10**7),
    "linear": (10**4, 10**5, 10**6),
}
QUICK = (10**3,)
COLUMNS = 10
REPEATS = 3
MOST_GROWTH = 1.2
"""The largest exponent of the growth in time that still counts as linear: sorting and caches take
their part.
"""
MOST_MEMORY = 4.0
"""The peak in multiples of the table, the table itself included."""

ROOT = Path(__file__).parents[1]


def scale(_: Tables, quick: bool) -> list[Record]:
    """Time and peak memory of each class against the rows."""
    repeats = 1 if quick else REPEATS
    return [_class(kind, QUICK if quick else sizes, repeats) for kind, sizes in SIZES.items()]


def _class(kind: str, sizes: Sequence[int], repeats: int) -> Record:
    found = [measured(kind, rows, repeats) for rows in sizes]
    large = [point for point in found if point["rows"] >= 10**5] or found
    growth = _exponent(large)
    most = max(point["peak"] / point["table"] for point in large)
    shown = ", ".join(
        f"{point['rows']:.0e}: {number(point['seconds'])} s, {point['peak'] / point['table']:.1f}x"
        for point in found
    )
    return Record(
        f"{kind}: rows against time and memory",
        f"time ~ rows^{MOST_GROWTH} at most, peak < {MOST_MEMORY:g} x table",
        f"rows^{growth:.2f}, peak {most:.1f} x table",
        growth <= MOST_GROWTH and most < MOST_MEMORY,
        note=f"{shown}; {COLUMNS} columns, one fair problem",
        detail=tuple(found),
    )


def _exponent(points: Sequence[dict[str, Any]]) -> float:
    """The slope between the smallest and the largest of the large tables, on logarithmic axes."""
    first, last = points[0], points[-1]
    if first is last:
        return 1.0
    return float(np.log(last["seconds"] / first["seconds"]) / np.log(last["rows"] / first["rows"]))


def measured(kind: str, rows: int, repeats: int) -> dict[str, Any]:
    """The median of fresh processes in time, the largest of them in memory."""
    command = [sys.executable, "-m", "bench.scale", kind, str(rows)]
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    found = [
        json.loads(
            subprocess.run(
                command,
                cwd=ROOT,  # where the package bench is, wherever one is called from
                capture_output=True,
                text=True,
                check=True,
                env=one_thread,
            ).stdout.splitlines()[-1]
        )
        for _ in range(repeats)
    ]
    seconds = [float(answer["seconds"]) for answer in found]
    most = max(int(answer["peak"]) for answer in found)
    return {**found[0], "seconds": float(np.median(seconds)), "peak": most, "all_seconds": seconds}


def _inside(kind: str, rows: int) -> dict[str, Any]:
    import time

    from evenhand import (
        CostSensitiveProblem,
        FalsePositiveRate,
        LabelledSample,
        Linear,
        ScoreThresholds,
        Stumps,
        solve_fair,
    )

    classes = {"stumps": Stumps(max_bins=1024), "thresholds": ScoreThresholds(), "linear": Linear()}
    warm = _table(1_000, COLUMNS)
    _solved(
        solve_fair, classes[kind], CostSensitiveProblem, LabelledSample, FalsePositiveRate, warm
    )  # compile and load
    before = resident()
    features, group, label = _table(rows, COLUMNS)
    table = features.nbytes + group.nbytes + label.nbytes
    start = time.process_time()
    _solved(
        solve_fair,
        classes[kind],
        CostSensitiveProblem,
        LabelledSample,
        FalsePositiveRate,
        (features, group, label),
    )
    return {
        "rows": rows,
        "seconds": time.process_time() - start,
        "table": table,
        "peak": peak() - before,
    }


def _solved(
    solve: Any, hypotheses: Any, problem: Any, sample: Any, rate: Any, table: tuple[Any, Any, Any]
) -> None:
    features, group, label = table
    cost = problem(features, group, (label == 1).astype(float), (label == -1).astype(float))
    solve(cost, hypotheses, [rate()], sample(features, group, label), 0.05)


def _table(rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Continuous columns, two groups, labels that depend on the first column and the group."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, columns))
    group = rng.integers(0, 2, rows)
    label = np.where(features[:, 0] + 0.3 * group + rng.normal(size=rows) > 0.2, 1, -1)
    return features, group, label


def resident() -> int:
    """Bytes of memory of this process now."""
    return _status("VmRSS")


def peak() -> int:
    """The most that it ever had."""
    return _status(
        "VmHWM"
    )  # getrusage would count what the parent had before it started this process


def _status(name: str) -> int:
    """A line of /proc/self/status, in bytes (Linux)."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


if __name__ == "__main__":
    print(json.dumps(_inside(sys.argv[1], int(sys.argv[2]))))
