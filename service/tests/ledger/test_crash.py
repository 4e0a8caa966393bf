"""kill -9 at the ledger: nothing acknowledged is lost, nothing is drawn twice, no answer changes; a
hasty mutant is caught.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def crash(kills, directory, *options):
    words = [
        sys.executable,
        "-m",
        "service.tests.ledger.crash",
        str(kills),
        str(directory),
        *options,
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_kill_9_loses_nothing(tmp_path):
    found = crash(15, tmp_path)
    assert found["acknowledged"] >= 15
    assert (found["lost"], found["changed"], found["double"]) == (0, 0, 0)


def test_a_writer_that_answers_before_the_commit_is_caught(tmp_path):
    """It commits when it has given 1,000 answers, and the kill comes after a hundred at most: every
    run loses what it had answered.
    """
    found = crash(5, tmp_path, "--mutant")
    assert found["lost"] == found["acknowledged"] >= 5
