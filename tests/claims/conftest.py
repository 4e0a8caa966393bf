"""The full tier prints one table, claim | target | figure | holds, and writes each row to a file as
soon as it is measured: each of its two commands to its own.
"""

import os
import textwrap
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
from scripts.results import Results

FILES = {"claims": "claims-results.json", "claims_tables": "claims-tables-results.json"}
"""Where the rows go, by the marker that was asked for; all else goes to the first."""


@dataclass(frozen=True)
class Row:
    """One measured claim; `same_exploration` is explore-then-commit with the same T0, the honest
    rival, and `raw` the values of single runs behind the figure.
    """

    row: str
    target: str
    figure: str
    holds: bool
    same_exploration: str = ""
    raw: Any = None


@dataclass
class Claims:
    """What the full tier has measured so far."""

    results: Results
    rows: list[Row] = field(default_factory=list)

    def add(
        self,
        claim: str,
        target: str,
        figure: str,
        holds: bool,
        same_exploration: str = "",
        raw: Any = None,
    ) -> None:
        row = Row(claim, target, figure, bool(holds), same_exploration, raw)
        self.rows.append(row)
        self.results.add(
            {**asdict(row), "part": os.environ["PYTEST_CURRENT_TEST"].rsplit(" (", 1)[0]}
        )


TABLE = pytest.StashKey[Claims]()


def pytest_configure(config):
    marker = config.getoption("markexpr")
    # a part of the files, or tests chosen by name, are no whole run
    chosen = config.getoption("keyword") or config.args_source is config.ArgsSource.ARGS
    whole = marker in FILES and not chosen
    path = Path(config.rootpath, FILES.get(marker, FILES["claims"]))
    go_on = "EVENHAND_CONTINUE" in os.environ
    results = Results(path, whole=whole, go_on=go_on)
    earlier = [Row(**{one.name: row[one.name] for one in fields(Row)}) for row in results.rows]
    config.stash[TABLE] = Claims(results, earlier)


def pytest_collection_modifyitems(config, items):
    """A run that is continued leaves out what has been measured."""
    done = config.stash[TABLE].results.parts
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
    items[:] = [item for item in items if item.nodeid not in done]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and "claims" in item.fixturenames:
        item.config.stash[TABLE].results.part_is_done(item.nodeid)
    return report


@pytest.fixture
def claims(request):
    """Where the full tier enters its rows."""
    return request.config.stash[TABLE]


@pytest.fixture
def workers():
    """Processes for the full tier."""
    return int(os.environ.get("EVENHAND_WORKERS", os.cpu_count() or 1))


def pytest_sessionfinish(session, exitstatus):
    # 0: all passed, 1: some failed, which their rows say; all else was cut short
    if session.config.stash[TABLE].rows and exitstatus in (0, 1):
        session.config.stash[TABLE].results.finish()


def pytest_terminal_summary(terminalreporter, config):
    found = config.stash[TABLE]
    if not found.rows:
        return
    terminalreporter.section("claims of the paper, measured")
    for line in table(found.rows):
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"also written to {found.results.path.name}")


def table(rows: list[Row]) -> list[str]:
    """Fixed-width lines."""
    widths = (46, 36, 46, 13, 34)
    head = ("claim", "target", "figure", "holds", "explore-then-commit, same T0")
    lines = [*_line(head, widths), "-+-".join("-" * w for w in widths)]
    for row in rows:
        holds = "yes" if row.holds else "TARGET MISSED"
        lines += _line((row.row, row.target, row.figure, holds, row.same_exploration), widths)
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
