"""Has fairlearn become faster? Older releases, each installed in a folder of its own, beside the
one that all other rows are measured with: CPU seconds on the same tables, with our bound stump,
each in a process of its own, in turns.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from bench.record import Record, median, number
from bench.scale import ROOT
from bench.tables import Tables

RELEASES = ("0.12.0", "0.14.0")
LIMITS = (0.001, 0.05)
TURNS = 3


def older_fairlearn(tables: Tables, quick: bool) -> list[Record]:
    """One row: each older release over the newer one."""
    now = version("fairlearn")
    if quick:
        return [_record(now, {now: [_seconds(None, tables)]}, [_seconds(None, tables)], tables)]
    with tempfile.TemporaryDirectory() as folder:
        places = {release: Path(folder, release) for release in RELEASES}
        for release, place in places.items():
            _install(release, place)
        today = []
        earlier: dict[str, list[list[float]]] = {release: [] for release in RELEASES}
        for _ in range(TURNS):
            today.append(_seconds(None, tables))
            for release, place in places.items():
                earlier[release].append(_seconds(place, tables))
    return [_record(now, earlier, today, tables)]


def _record(
    now: str, earlier: dict[str, list[list[float]]], today: list[list[float]], tables: Tables
) -> Record:
    """Ratios are of the same table and limit in the same turn."""
    ratios = {
        release: [
            then / here
            for turn, beside in zip(turns, today, strict=True)
            for then, here in zip(turn, beside, strict=True)
        ]
        for release, turns in earlier.items()
    }
    shown = " and ".join(f"{number(median(ratios[release]))} x" for release in earlier)
    return Record(
        f"fairlearn {' and '.join(earlier)} with our bound stump, beside {now}",
        "shown",
        f"{shown} the CPU time (median)",
        True,
        tuple(ratio for found in ratios.values() for ratio in found),
        f"the three tables at limits {LIMITS[0]:g} and {LIMITS[1]:g}. {tables.note}",
        ({"now": now, "seconds": today, "earlier": earlier},),
    )


def _install(release: str, place: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run(
        [*command, "--target", str(place), f"fairlearn=={release}"],
        check=True,
        capture_output=True,
        text=True,
    )


def _seconds(place: Path | None, tables: Tables) -> list[float]:
    """CPU seconds of each table and limit in a new process with the release in that folder."""
    search = [] if place is None else [str(place)]
    search += [part for part in (os.environ.get("PYTHONPATH"),) if part]
    told = subprocess.run(
        [sys.executable, "-m", "bench.older_fairlearn", *(["--quick"] if tables.quick else [])],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
        check=True,
        capture_output=True,
        text=True,
    )
    release, seconds = json.loads(told.stdout.splitlines()[-1])
    wanted = place.name if place is not None else version("fairlearn")
    assert release == wanted, f"fairlearn {release} was measured, not {wanted}"
    return [float(one) for one in seconds]


def _inside(words: Sequence[str]) -> tuple[str, list[float]]:
    import warnings

    import fairlearn
    from threadpoolctl import threadpool_limits

    from bench import fairlearn_side
    from bench.record import clock
    from evenhand import FalsePositiveRate, Stumps
    from evenhand.computing import computing_in
    from evenhand.faircsc import bind_fair

    quick = "--quick" in words
    warnings.simplefilter("ignore")
    seconds: list[float] = []
    with computing_in("numpy" if quick else "numba"), threadpool_limits(1):
        for table in Tables(quick).all():
            rate = FalsePositiveRate()
            fair = bind_fair(Stumps(), table.features, None, rate, table.sample, 0.05)
            stump = fairlearn_side.ExactStump(fair.oracle)
            if not seconds:
                fairlearn_side.solve(table, LIMITS[0], stump)  # load and compile
            seconds += [
                clock(partial(fairlearn_side.solve, table, limit, stump))[0]
                for limit in LIMITS[: 1 if quick else None]
            ]
    return fairlearn.__version__, seconds


if __name__ == "__main__":
    print(json.dumps(_inside(sys.argv[1:])))
