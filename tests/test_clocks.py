"""No test of the quick tier depends on how fast the machine is: whatever looks at a clock is listed
here, with the reason.
"""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.torture.doors import monsters
from tests.torture.million import restart_and_verify
from tests.torture.rows import ROWS
from tests.torture.speed import throughput

ROOT = Path(__file__).parents[1]
CLOCK = re.compile(
    r"\b(?:perf_counter|process_time|thread_time|monotonic|clock_gettime)(?:_ns)?\b"
    r"|\btime\.time(?:_ns)?\b|\bfrom time import"
    r"|\btimeit\b|\bdatetime\.(?:now|utcnow)\b"
    # sleep(0) is a turn of the event loop, not a time
    r"|\bsleep\((?!0\))|\bwait_for_timeout\b|\bsetitimer\b|\bsignal\.alarm\b"
    r"|\btimeout=\d|\bset_default_timeout\(\d|\.(?:wait|join|result)\(\d"
    r"|\bwait_for\(.*, \d[\d._]*\)|\basyncio\.timeout\(\d"
    r"|\bdeadline=(?!None)"
)
"""Clocks, pauses, and times after which something is given up, unless they are PATIENCE."""
POLLING = (
    "it looks again after a pause and gives up after PATIENCE; no test needs either in order to "
    "pass"
)
MEASURED = "a row that measures time: `make torture` runs it, the quick tier does not"
SHOWN = "the seconds are shown and decide nothing"
DATE = "the date that a real service writes into its ledger"
ALLOWED = {
    ("tests/without_clocks.py", "until"): POLLING,
    (
        "tests/torture/chaos.py",
        "Load",
    ): "a client pauses after a refusal; no trial needs that in order to pass",
    ("tests/torture/speed.py", "rate"): MEASURED,
    ("tests/torture/speed.py", "_cost"): MEASURED,
    ("tests/torture/doors.py", "monsters"): MEASURED,
    ("tests/torture/edge.py", "hostile_bodies"): MEASURED,
    ("tests/torture/edge.py", "_health"): MEASURED,
    ("tests/torture/edge.py", "silent_connections"): "the seconds decide at full size alone",
    ("tests/torture/edge.py", "unfinished_bodies"): "the seconds decide at full size alone",
    ("tests/torture/edge.py", "_flooded"): "the seconds decide at full size alone",
    ("tests/torture/million.py", "verified"): MEASURED,
    ("tests/torture/million.py", "restarted"): MEASURED,
    ("tests/torture/million.py", "_looked"): MEASURED,
    ("tests/torture/million.py", "settled"): MEASURED,
    ("tests/torture/million.py", "looking"): MEASURED,
    ("tests/torture/million.py", "_first"): MEASURED,
    (
        "tests/claims/versions.py",
        "main",
    ): "CPU time of two versions side by side, a row of the full tier",
    ("tests/torture/million.py", "fill"): SHOWN,
    ("tests/torture/replicas.py", "_asked_while_frozen"): MEASURED,
    ("tests/torture/replicas.py", "_pause"): SHOWN,
    ("tests/torture/rows.py", "measured"): SHOWN,
    ("tests/torture/__main__.py", "main"): SHOWN,
    ("tests/torture/million.py", "recomputed"): DATE,
    ("tests/torture/million.py", "draws"): DATE,
    ("tests/torture/kills.py", "reopened"): DATE,
    ("tests/torture/run.py", "_drawn"): DATE,
    ("tests/torture/run.py", "TrustingGuard"): DATE,
    (
        "tests/simulate/test_study.py",
        "test_a_scheduler_that_is_not_there",
    ): "nobody answers, however long one waits",
    ("tests/service/test_demo.py", "test_a_second_is_a_day"): "the test sets the clock itself",
    ("tests/test_clocks.py", "test_every_kind_of_clock_is_seen"): "the clocks that must be seen",
    ("tests/test_clocks.py", "CLOCK"): "the names of the clocks",
}


def clocks_in(text: str) -> set[str]:
    """The functions, classes and names on the first level of a module in whose lines there is a
    clock; "" for all other lines.
    """
    found = {number for number, line in enumerate(text.splitlines(), start=1) if CLOCK.search(line)}
    owners = set()
    for node in ast.parse(text).body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        if found & set(range(first, (node.end_lineno or first) + 1)):
            named = [
                target.id for target in getattr(node, "targets", ()) if isinstance(target, ast.Name)
            ]
            owners.add(getattr(node, "name", None) or next(iter(named), ""))
    return owners


def test_whoever_looks_at_a_clock_is_known():
    """In both directions: a reason for a clock that has gone is struck off the list."""
    paths = list((ROOT / "tests").rglob("*.py"))
    assert len(paths) > 100
    found = {
        (str(path.relative_to(ROOT)), owner)
        for path in paths
        for owner in clocks_in(path.read_text())
    }
    assert found == set(ALLOWED)


def test_no_example_in_a_docstring_looks_at_a_clock():
    lines = [
        line
        for path in (ROOT / "src").rglob("*.py")
        for line in path.read_text().splitlines()
        if ">>> " in line
    ]
    assert len(lines) > 20
    assert [line for line in lines if CLOCK.search(line)] == []


def test_rows_that_measure_time_are_not_in_the_quick_tier():
    assert all(row.alone for row in ROWS if row.run in (monsters, throughput, restart_and_verify))


def test_hypothesis_has_all_the_time_it_needs():
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check


@pytest.mark.parametrize(
    "line",
    [
        "began = time.perf_counter()",
        "from time import process_time",
        'code = "import time; t = time.process_time()"',
        "clock = time.time",
        "end = time.monotonic() + 2",
        "await asyncio.sleep(0.1)",
        "page.wait_for_timeout(200)",
        "subprocess.run(words, timeout=60)",
        "thread.join(10)",
        "await asyncio.wait_for(task, 10.0)",
        "page.set_default_timeout(12_000)",
        "value = settings(deadline=200)",
    ],
)
def test_every_kind_of_clock_is_seen(line):
    assert clocks_in(f"def f():\n    {line.replace('await ', '')}\n") == {"f"}


@pytest.mark.parametrize(
    "line",
    ["asyncio.sleep(0)", "gate.wait(PATIENCE)", "settings(deadline=None)", "', '.join(words)"],
)
def test_what_is_no_clock_is_left_alone(line):
    assert clocks_in(f"def f():\n    {line}\n") == set()
