"""No test of the quick tier depends on how fast the machine is: none of them looks at a clock or
pauses. They wait for events with `tests.without_clocks` instead.
"""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]
CLOCK = re.compile(
    r"\b(?:perf_counter|process_time|thread_time|monotonic)(?:_ns)?\(\)"
    r"|\btime\.time(?:_ns)?\(\)|\btimeit\b|\bdatetime\.(?:now|utcnow)\("
    # sleep(0) is a turn of the event loop, not a time
    r"|\bsleep\((?!0\))|\bwait_for_timeout\("
)
SLOW = ("claims", "torture")
"""Tests that measure time; the small sizes that the quick tier runs decide nothing by it."""
WAITING = "tests/without_clocks.py"
"""The one place that waits: it gives up after minutes, and no test needs that in order to pass."""


def clocks_in(path: Path) -> list[str]:
    """The lines of a file that look at a clock."""
    return [line for line in path.read_text().splitlines() if CLOCK.search(line)]


def test_no_quick_test_looks_at_a_clock():
    left_out = {Path(__file__), ROOT / WAITING}
    trees = (ROOT / "tests", ROOT / "service" / "tests")
    left_out |= {path for tree in trees for name in SLOW for path in (tree / name).rglob("*.py")}
    paths = {path for tree in trees for path in tree.rglob("*.py")} - left_out
    assert len(paths) > 100
    assert {str(path): found for path in paths if (found := clocks_in(path))} == {}


def test_no_example_in_a_docstring_looks_at_a_clock():
    lines = [
        line
        for tree in (ROOT / "src", ROOT / "service" / "src")
        for path in tree.rglob("*.py")
        for line in path.read_text().splitlines()
        if ">>> " in line
    ]
    assert len(lines) > 20
    assert [line for line in lines if CLOCK.search(line)] == []


def test_hypothesis_has_all_the_time_it_needs():
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check


@pytest.mark.parametrize(
    "line",
    [
        "began = time.perf_counter()",
        "end = time.monotonic() + 2",
        "now = time.time()",
        "await asyncio.sleep(0.1)",
        "page.wait_for_timeout(200)",
    ],
)
def test_a_clock_is_seen(line, tmp_path):
    path = tmp_path / "test_new.py"
    path.write_text(f"def f():\n    {line}\n    asyncio.sleep(0)\n")
    assert clocks_in(path) == [f"    {line}"]
