"""A million people with twenty columns, from the CSV file to the answer of `evenhand solve` and
`evenhand plan`, each in a process of its own: CPU seconds and peak memory.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.record import Record, number
from bench.tables import Tables

ROWS, COLUMNS = 1_000_000, 20
QUICK_ROWS, QUICK_COLUMNS = 100, 4
QUICK_HORIZON = 200
TARGETS = {"solve": 10.0, "plan": 60.0}
MOST_MEMORY = 1.0
"""Gigabytes that `solve` may hold at once."""


def large(_: Tables, quick: bool) -> list[Record]:
    """Both commands with their default class (stumps), one BLAS thread."""
    rows = QUICK_ROWS if quick else ROWS
    columns = QUICK_COLUMNS if quick else COLUMNS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        write_people(path, rows, columns)
        return [_command(name, path, (rows, columns), quick) for name in TARGETS]


def write_people(path: Path, rows: int, columns: int) -> None:
    """Half of the columns continuous with six decimals, half of whole numbers; two groups."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, rows)
    real = rng.normal(size=(rows, columns // 2))
    whole = rng.integers(0, 50, size=(rows, columns - columns // 2))
    good = real[:, 0] + 0.5 * real[:, 1] + 0.3 * group + rng.normal(size=rows) > 0
    cells = [
        *(np.char.mod("%.6f", column) for column in real.T),
        *(column.astype(str) for column in whole.T),
        np.array(["f", "m"])[group],
        np.array(["no", "yes"])[good.astype(int)],
    ]
    names = [*(f"x{j}" for j in range(columns)), "sex", "repaid"]
    with path.open("w", encoding="ascii") as file:
        file.write(",".join(names) + "\n")
        file.writelines(
            ",".join(row) + "\n" for row in zip(*(c.tolist() for c in cells), strict=True)
        )


def _command(name: str, path: Path, size: tuple[int, int], quick: bool) -> Record:
    rows, columns = size
    source = ["--data", str(path)] if name == "plan" else [str(path)]
    if quick and name == "plan":
        source += ["--people", str(QUICK_HORIZON)]
    limit = "0.5" if quick else "0.02"
    meaning = ["--label", "repaid", "--good", "yes", "--group", "sex", "--limit", limit]
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # a process between, whose only child is the command: its high-water mark is the command's
    between = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
        "stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-m", "evenhand", name, *source, *meaning]
    said = subprocess.run(
        [sys.executable, "-c", between, *command],
        env=one_thread,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory = int(said) * 1024 / 1e9
    light = memory <= MOST_MEMORY or name != "solve"
    target = f"<= {TARGETS[name]:g} s CPU" + (", 1 GB" if name == "solve" else "")
    return Record(
        f"evenhand {name}: {rows:,} rows x {columns} columns",
        target,
        f"{number(seconds)} s CPU, {memory:.2f} GB",
        seconds <= TARGETS[name] and light,
        note="from the CSV file to the answer, imports included; generated data, stumps",
        detail=({"seconds": seconds, "gigabytes": memory, "rows": rows},),
    )
