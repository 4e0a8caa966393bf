"""Gates at full size: three fronts say the same, and false red builds are rare over all commits.

The fronts are the command (its exit code), `assert_within` in a test, and the script of the GitHub
Action. The script starts a process for each verdict; here it is a fork of this one, in which all
that evenhand needs is imported already. 40 of the verdicts are those of the script as a runner
starts it, too.

A repository has 50 commits, each with a table of new people whose true gap is exactly the limit:
the worst case in which red is wrong. With probability at most delta it ever sees red; a rate of .17
is caught with probability .99. The control gives every commit the whole delta.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom
from tests.test_gate_action import action_script, gated

import evenhand as eh
from evenhand.cli import main
from evenhand.evaluation import gate
from evenhand.evaluation.gates import GateLedger
from evenhand.testing import assert_within

VERDICTS = 1000
EVERY = 50
REPOSITORIES = 200
COMMITS = 50
DELTA = 0.05
LIMIT = 0.2


def asserted(record, limit, least_ratio):
    """The exit code that a test with the helper stands for."""
    try:
        assert_within(record, limit, least_ratio)
    except AssertionError:
        try:
            assert_within(record, limit, least_ratio, not_shown=True)
        except AssertionError:
            return 1
        return 3
    return 0


def forked(command, **_):
    """What `subprocess.run` says of `python -m evenhand ...`, without its imports."""
    assert command[:3] == [sys.executable, "-m", "evenhand"]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - the process ends here
            sys.stderr = sys.stdout
            main.main(command[3:], prog_name="evenhand")
        except SystemExit as ended:
            code = ended.code or 0
            sys.stdout.flush()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as said:
        output = said.read()
    _, status = os.waitpid(child, 0)
    return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(status), output)


@pytest.mark.claims
def test_three_fronts(claims, tmp_path, monkeypatch):
    rng = np.random.default_rng(11)
    runner = CliRunner()
    script = action_script()
    started = subprocess.run
    differ = 0
    started_anew = 0
    seen = {0: 0, 1: 0, 3: 0}
    for number in range(VERDICTS):
        people = int(rng.integers(30, 400))
        group = rng.choice(["f", "m"], people)
        group[:2] = ["f", "m"]
        chance = np.where(group == "f", rng.random(), rng.random())
        accepted = rng.random(people) < chance
        accepted[:2] = [True, False]
        lines = [f"{g},{int(d)}" for g, d in zip(group, accepted, strict=True)]
        path = tmp_path / "d.csv"
        path.write_text("sex,hired\n" + "\n".join(lines) + "\n")
        limit = float(rng.choice([0.1, 0.3, 0.6]))
        if number % 2:
            record = eh.measure(accepted, group, rates="selection")
            words = f"measure {path} --decision hired --group sex --rate selection"
            words += f" --limit {limit:g}"
            allowed = (limit, None)
        else:
            record = eh.impact(accepted, {"sex": group.tolist()})
            words = f"impact {path} --selected hired --group sex"
            allowed = (None, 0.8)
        codes = {
            gate(record, *allowed).exit_code,
            asserted(record, *allowed),
            runner.invoke(main, [*words.split(), "--gate"]).exit_code,
        }
        monkeypatch.setattr(subprocess, "run", forked)
        codes.add(script.main({"GATE_COMMAND": words, "GITHUB_OUTPUT": str(tmp_path / "said")}))
        monkeypatch.setattr(subprocess, "run", started)
        if number % EVERY in (0, 1):
            codes.add(gated(tmp_path, words).returncode)
            started_anew += 1
        differ += len(codes) > 1
        seen[min(codes)] += 1
    shown = ", ".join(f"{count} exit {code}" for code, count in seen.items())
    claims.add(
        f"gates: function, command, test helper and action on {VERDICTS:,} verdicts",
        "equal",
        f"{differ} differ ({shown}; {started_anew} of them by the action in a process of its own)",
        differ == 0,
    )
    told = (tmp_path / "said").read_text().splitlines()
    names = {0: "status=within", 1: "status=above", 3: "status=not shown"}
    assert {code: told.count(name) for code, name in names.items()} == seen
    assert differ == 0
    assert min(seen.values()) > 50


def false_reds(repositories, rng):
    """How many repositories ever see red, with the account and without it."""
    group = np.repeat(["a", "b"], 60)
    with_ledger = without = 0
    for _ in range(repositories):
        ledger = GateLedger(DELTA)
        ever = ever_without = False
        for commit in range(COMMITS):
            accepted = rng.random(120) < np.where(group == "a", 0.6, 0.6 - LIMIT)
            ledger, look = ledger.look(str(commit), accepted.tobytes())
            # Both intervals hold the gap on these people, and the one at the whole delta lies
            # inside the one at its share: neither is above where the other cannot be.
            if abs(accepted[:60].mean() - accepted[60:].mean()) <= LIMIT:
                continue
            measured = eh.measure(accepted, group, rates="selection", delta=DELTA)
            if gate(measured, LIMIT).status != "above":
                continue
            ever_without = True
            shared = eh.measure(accepted, group, rates="selection", delta=look.share)
            ever |= gate(shared, LIMIT).status == "above"
        with_ledger += ever
        without += ever_without
    return with_ledger, without


@pytest.mark.claims
def test_false_red_builds(claims):
    red, control = false_reds(REPOSITORIES, np.random.default_rng(12))
    # With probability 1/1000 at most as many repositories as this if the share is delta.
    most = int(binom.ppf(0.999, REPOSITORIES, DELTA))
    holds = red <= most < control
    claims.add(
        f"gates: of {REPOSITORIES} repositories of {COMMITS} commits, a false red with the account",
        f"at most {DELTA:.0%} ({most} of {REPOSITORIES} by chance); without the account above it",
        f"{red}; without the account {control}",
        holds,
    )
    assert holds
