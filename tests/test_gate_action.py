"""The GitHub Action: its script with a real repository, and with two builds at the same time."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests.tools import need

ROOT = Path(__file__).parents[1]
ACTION = ROOT / ".github" / "actions" / "gate"
WORDS = "measure d.csv --decision hired --group sex --rate selection --limit"


def git(folder, *words):
    done = subprocess.run(
        [need("git"), *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def gated(folder, command, **settings):
    """The script of the action, as a runner starts it."""
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "GATE_COMMAND": command,
        "GITHUB_SHA": "3f2a",
        "GITHUB_STEP_SUMMARY": str(folder / "step_summary"),
        "GITHUB_OUTPUT": str(folder / "outputs"),
        **settings,
    }
    script = [sys.executable, str(ACTION / "gate.py")]
    return subprocess.run(
        script, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


def action_script():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("gate_of_the_action", ACTION / "gate.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def decisions(folder, seed=0, people=300):
    rng = np.random.default_rng(seed)
    lines = [f"{'fm'[j % 2]},{int(rng.random() < 0.4 + 0.3 * (j % 2))}" for j in range(people)]
    (folder / "d.csv").write_text("sex,hired\n" + "\n".join(lines) + "\n")


@pytest.fixture
def clones(tmp_path):
    """Two clones of one repository without a commit."""
    origin = tmp_path / "origin.git"
    origin.mkdir()
    git(origin, "init", "--quiet", "--bare")
    found = []
    for name in ("one", "two"):
        git(tmp_path, "clone", "--quiet", str(origin), name)
        found.append(tmp_path / name)
    return origin, *found


def looks(origin):
    return json.loads(git(origin, "show", "evenhand-ledger:gate.json"))["looks"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("limit", "code", "status"),
    [("0.9", 0, "within"), ("0.05", 1, "above"), ("0.3", 3, "not shown")],
)
def test_exit_code_summary_and_output(tmp_path, limit, code, status):
    decisions(tmp_path)
    done = gated(tmp_path, f"{WORDS} {limit}")
    assert done.returncode == code, done.stdout + done.stderr
    assert "what is allowed" in done.stdout
    assert (tmp_path / "outputs").read_text() == f"status={status}\n"
    assert (
        "| what | in the population | allowed | status |" in (tmp_path / "step_summary").read_text()
    )


@pytest.mark.thorough
def test_not_shown_may_pass_and_an_error_never_does(tmp_path):
    decisions(tmp_path)
    assert gated(tmp_path, f"{WORDS} 0.3", GATE_NOT_SHOWN="pass").returncode == 0
    assert gated(tmp_path, f"{WORDS} 0.05", GATE_NOT_SHOWN="pass").returncode == 1
    failed = gated(tmp_path, "measure nowhere.csv --decision hired --group sex --limit 0.1")
    assert failed.returncode == 2
    assert "status=error" in (tmp_path / "outputs").read_text()


@pytest.mark.thorough
def test_the_account_is_kept_on_a_branch_that_all_builds_share(clones):
    origin, one, two = clones
    ledger = {"GATE_LEDGER_BRANCH": "evenhand-ledger"}
    decisions(one, seed=1)
    assert gated(one, f"{WORDS} 0.9", **ledger).returncode == 0
    decisions(two, seed=2)
    assert gated(two, f"{WORDS} 0.9", **ledger).returncode == 0
    shares = [look["share"] for look in looks(origin)]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) == 2
    # The same build again is the same look, and the branch stays as it is.
    before = git(origin, "rev-parse", "evenhand-ledger")
    assert gated(two, f"{WORDS} 0.9", **ledger).returncode == 0
    assert git(origin, "rev-parse", "evenhand-ledger") == before


@pytest.mark.thorough
def test_a_build_that_was_overtaken_looks_again_with_the_next_share(clones):
    """While the first build is about to push, the second one books and pushes: both shares are
    spent once. Without the second look the first build would have spent the share of the other.
    """
    origin, one, two = clones
    ledger = {"GATE_LEDGER_BRANCH": "evenhand-ledger"}
    decisions(one, seed=1)
    decisions(two, seed=2)
    done = one / "overtaken"
    hook = one / ".git" / "hooks" / "pre-push"
    environ = {
        "PYTHONPATH": str(ROOT / "src"),
        "GATE_COMMAND": f"{WORDS} 0.9",
        "GITHUB_SHA": "other",
        "GATE_LEDGER_BRANCH": "evenhand-ledger",
    }
    given = " ".join(f"{name}='{value}'" for name, value in environ.items())
    script = f"cd {two} && env -u GIT_DIR {given} {sys.executable} {ACTION / 'gate.py'}"
    hook.write_text(
        f"#!/bin/sh\n[ -e {done} ] && exit 0\ntouch {done}\n({script}) >/dev/null 2>&1\n"
    )
    hook.chmod(0o755)
    first = gated(one, f"{WORDS} 0.9", **ledger)
    assert first.returncode == 0, first.stdout + first.stderr
    assert done.exists()
    booked = looks(origin)
    assert [look["commit"] for look in booked] == ["other", "3f2a"]
    assert booked[0]["share"] > booked[1]["share"]
    assert first.stdout.count("Within what is allowed") == 1


def test_a_push_over_a_newer_account_is_turned_down(clones, monkeypatch):
    """The other moment at which a build can be overtaken: before it begins to push. (With --force
    the share of the other build would be lost.)
    """
    origin, one, two = clones
    script = action_script()
    ledger = one / "ledger.json"
    monkeypatch.chdir(one)
    ledger.write_text("first")
    assert script.pushed("accounts", None, "gate.json", ledger)
    monkeypatch.chdir(two)
    ledger.write_text("second")
    assert not script.pushed("accounts", None, "gate.json", ledger)
    assert script.pushed("accounts", script.fetched("accounts"), "other.json", ledger)
    assert git(origin, "show", "accounts:gate.json") == "first"
    assert git(origin, "show", "accounts:other.json") == "second"


def test_the_action_hands_its_inputs_on_as_variables_and_never_as_code():
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    steps = action["runs"]["steps"]
    assert all("${{" not in step["run"] for step in steps)
    used = "".join(str(step.get("env", "")) + str(step.get("if", "")) for step in steps)
    assert all(f"inputs.{name}" in used for name in action["inputs"])
