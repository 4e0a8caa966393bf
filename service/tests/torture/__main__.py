"""Print target and figure of every row; 1 if one does not hold. What measures time runs alone, at
the end.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from scripts.results import Results
from service.tests.torture.rows import ROWS, measured


def shown(number, found, seconds, results):
    target, figure, held = found
    name = ROWS[number].name
    row = {"row": name, "target": target, "figure": figure, "holds": held, "seconds": seconds}
    results.add({**row, "part": name})
    if held:
        results.part_is_done(name)
    print(
        f"{'held  ' if held else 'BROKEN'} {number + 1:2d}. {name} ({seconds:.0f} s)",
        flush=True,
    )
    print(f"           target: {target}\n           figure: {figure}", flush=True)


def table(chosen, quick, workers, results):
    """Run the rows; {number: held}."""
    held, place = {}, None
    beside = [number for number in chosen if not ROWS[number].alone]
    beside.sort(key=lambda number: not ROWS[number].leaves)  # the longest first
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {number: pool.submit(measured, number, quick) for number in beside}
        for number in sorted(running):
            found, seconds, left = running[number].result()
            place = left or place
            shown(number, found, seconds, results)
            held[number] = found[2]
    for number in (number for number in chosen if ROWS[number].alone):
        found, seconds, _ = measured(number, quick, place)
        shown(number, found, seconds, results)
        held[number] = found[2]
    return held


@contextlib.contextmanager
def one_place():
    """Whatever the rows leave behind lies in one folder, which is removed at the end."""
    before = os.environ.get("TMPDIR"), tempfile.tempdir
    with tempfile.TemporaryDirectory(
        prefix="evenhand-torture-", ignore_cleanup_errors=True
    ) as place:
        os.environ["TMPDIR"] = tempfile.tempdir = place
        try:
            yield
        finally:
            tempfile.tempdir = before[1]
            os.environ.pop("TMPDIR")
            os.environ |= {} if before[0] is None else {"TMPDIR": before[0]}


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m service.tests.torture")
    parser.add_argument(
        "rows", nargs="*", help="numbers or parts of the names of rows; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--workers", type=int, default=2, help="rows that run beside one another")
    asked = parser.parse_args(words)
    numbered = list(enumerate(ROWS))
    chosen = {
        i
        for i, row in numbered
        for part in asked.rows
        if part == str(i + 1) or (part in row.name and not part.isdigit())
    }
    results = Results(
        Path("torture-results.json"),
        whole=not asked.rows and not asked.quick,
        go_on="EVENHAND_CONTINUE" in os.environ,
        quick=asked.quick,
    )
    chosen = chosen if asked.rows else set(range(len(ROWS)))
    chosen = {i for i in chosen if ROWS[i].name not in results.parts}
    chosen |= {i for i, row in numbered if row.leaves and any(ROWS[n].takes for n in chosen)}
    began = time.monotonic()
    with one_place():
        held = table(sorted(chosen), asked.quick, asked.workers, results)
    results.finish()
    print(
        f"{sum(held.values())} of {len(held)} rows hold "
        f"({(time.monotonic() - began) / 60:.1f} minutes)"
    )
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
