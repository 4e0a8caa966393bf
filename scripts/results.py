"""The rows of a long run, written as they come, with when and where they were measured.

`make claims`, `make claims-tables`, `make bench` and `make torture` each write <name>-results.json
through `Results`. A run that was cut short, or that was asked for a part of its rows, says so in
the file ("whole" is false), and `docs/measured.py` does not put it in the place of a whole one. A
run that was cut short can be continued: each row has the commit at which it was measured.
"""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow"),
    *("fairlearn", "vowpalwabbit", "river"),
)
"""Whose versions are written down: what does the computing, and what figures are compared with."""
ROOT = Path(__file__).parent.parent


class Results:
    """The rows so far, in a file that is whole JSON at any time.

    path: where they are written. whole: whether all rows of the run were asked for. go_on: whether
    to continue the run in the file, whose finished parts are not measured again. details: what else
    belongs to the run as a whole.
    """

    def __init__(self, path: Path, *, whole: bool, go_on: bool = False, **details: object) -> None:
        self.path = path
        self.asked_for_all = whole
        self.details = details
        self.began = now()
        self.where = where()
        self.rows: list[dict[str, Any]] = []
        self.parts: list[str] = []
        if go_on and path.exists():
            self._take_over(json.loads(path.read_text(encoding="utf-8")))

    def _take_over(self, earlier: dict[str, Any]) -> None:
        """The finished parts of a run that was cut short, and their rows."""
        self.began = earlier["began"]
        self.parts = list(earlier["parts"])
        self.rows = [row for row in earlier["rows"] if row["part"] in self.parts]

    def part_is_done(self, part: str) -> None:
        """No more rows come of this part of the run, which has ended, well or not."""
        self.parts.append(part)

    def add(self, row: dict[str, Any]) -> None:
        """One more row: row (its name), target, figure, holds, and whatever else there is. It takes
        the place of an earlier one of the same name.
        """
        earlier = [one for one in self.rows if one["row"] != row["row"]]
        self.rows = [*earlier, {**row, "commit": self.where["commit"]}]
        self.write(whole=False)

    def finish(self) -> None:
        """All rows that were asked for have been measured."""
        self.write(whole=self.asked_for_all)

    def write(self, whole: bool) -> None:
        """Put all rows so far in the place of the file."""
        found = {
            "whole": whole,
            "began": self.began,
            "ended": now(),
            "where": self.where,
            **self.details,
            "parts": self.parts,
            "rows": self.rows,
        }
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(found, indent=1, default=as_json) + "\n", encoding="utf-8")
        os.replace(part, self.path)


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def where() -> dict[str, Any]:
    """Commit, processor, cores, memory, system, Python, and the versions of packages."""
    return {
        "evenhand": version("evenhand"),
        "commit": commit(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := installed(name)) is not None},
    }


def commit() -> str:
    """The commit of the checkout, with a plus if files differ from it; empty outside one."""
    asked = [["git", "rev-parse", "--short=12", "HEAD"], ["git", "status", "--porcelain", "-uno"]]
    try:
        head, changed = (
            subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
            for words in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head.strip() + ("+" if changed.strip() else "")


def processor() -> str:
    """The name of the processor, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def installed(name: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def as_json(value: object) -> object:
    """Numbers of numpy as numbers, all else by its text."""
    return value.item() if isinstance(value, np.generic) else str(value)
