"""ARCHITECTURE.md tells the walks that a reader takes, and the layers that the contract holds."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NAMED = {
    "evenhand solve": "**Solve a table**",
    "closing an epoch": "**Close an epoch**",
    "POST a decision": "**Post a decision**",
}
MOST_SWITCHES = {"evenhand solve": 70, "closing an epoch": 110, "POST a decision": 42}
"""A little above what is measured: the walk of a decision varies with the threads."""


@pytest.fixture(scope="module")
def walks() -> dict[str, dict[str, Any]]:
    """In a process of its own: the profiler sees what a call does the first time."""
    answer = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "house.py"), "walks", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)["walks"]


@pytest.mark.parametrize("name", NAMED)
def test_the_files_of_a_walk_are_those_that_are_told(walks, name):
    part = TEXT.split(NAMED[name])[1].split("\n\n")[1]
    told = re.findall(r"[\w/]+\.py", part)
    seen = walks[name]["files"]
    if name == "POST a decision":  # the writer's thread may come before or after the answer
        told, seen = sorted(told), sorted(seen)
    assert told == seen, f"write into ARCHITECTURE.md: {' > '.join(seen)}"


@pytest.mark.parametrize("name", NAMED)
def test_a_walk_does_not_grow(walks, name):
    assert walks[name]["switches"] <= MOST_SWITCHES[name]


def test_the_layers_are_those_of_the_contract():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    told = TEXT.split("## What may import what")[1].split("\n\n")[2]
    assert [line.strip() for line in told.splitlines()] == [layer.strip("()") for layer in layers]
