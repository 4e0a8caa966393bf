"""The full tier prints one table, claim | target | figure | holds, and writes it to a file: each of
its two commands to its own.
"""

import json
import os
import textwrap
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

RESULTS = {"claims_tables": "claims-tables-results.json"}
"""Where the rows go, by the marker that was asked for; all else goes to claims-results.json."""


@dataclass(frozen=True)
class Row:
    """One measured claim; `same_exploration` is explore-then-commit with the same T0, the honest
    rival.
    """

    claim: str
    target: str
    figure: str
    holds: bool
    same_exploration: str = ""


@dataclass
class Claims:
    """What the full tier has measured so far."""

    rows: list[Row] = field(default_factory=list)

    def add(
        self, claim: str, target: str, figure: str, holds: bool, same_exploration: str = ""
    ) -> None:
        self.rows.append(Row(claim, target, figure, bool(holds), same_exploration))


TABLE = pytest.StashKey[Claims]()


def pytest_configure(config):
    config.stash[TABLE] = Claims()


@pytest.fixture
def claims(request):
    """Where the full tier enters its rows."""
    return request.config.stash[TABLE]


@pytest.fixture
def workers():
    """Processes for the full tier."""
    return int(os.environ.get("EVENHAND_WORKERS", os.cpu_count() or 1))


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash[TABLE].rows
    if not rows:
        return
    results = RESULTS.get(config.getoption("markexpr"), "claims-results.json")
    Path(config.rootpath, results).write_text(
        json.dumps([asdict(row) for row in rows], indent=2) + "\n"
    )
    terminalreporter.section("claims of the paper, measured")
    for line in table(rows):
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"also written to {results}")


def table(rows: list[Row]) -> list[str]:
    """Fixed-width lines."""
    widths = (46, 36, 46, 13, 34)
    head = ("claim", "target", "figure", "holds", "explore-then-commit, same T0")
    lines = [*_line(head, widths), "-+-".join("-" * w for w in widths)]
    for row in rows:
        holds = "yes" if row.holds else "TARGET MISSED"
        lines += _line((row.claim, row.target, row.figure, holds, row.same_exploration), widths)
    return lines


def _line(cells: tuple[str, ...], widths: tuple[int, ...]) -> list[str]:
    wrapped = [
        textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, widths, strict=True)
    ]
    height = max(len(cell) for cell in wrapped)
    padded = [cell + [""] * (height - len(cell)) for cell in wrapped]
    return [
        " | ".join(part.ljust(w) for part, w in zip(parts, widths, strict=True)).rstrip()
        for parts in zip(*padded, strict=True)
    ]
