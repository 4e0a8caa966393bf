"""kill -9 at the ledger: nothing acknowledged is lost, nothing is drawn twice, no answer changes; a hasty mutant is caught."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def crash(kills, directory, *options):
    words = [sys.executable, "-m", "tests.ledger.crash", str(kills), str(directory), *options]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("kills", [50, pytest.param(1000, marks=pytest.mark.torture)])
def test_kill_9_loses_nothing(tmp_path, kills):
    found = crash(kills, tmp_path)
    print(found)
    assert found["acknowledged"] >= kills
    assert (found["lost"], found["changed"], found["double"]) == (0, 0, 0)


def test_a_writer_that_answers_before_the_commit_is_caught(tmp_path):
    """Of eight clients several have their answers while the commit still waits for the disk: 20 kills catch it many times over."""
    assert crash(20, tmp_path, "--mutant")["lost"] > 0
