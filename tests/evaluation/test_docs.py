"""docs/how-to/logs.md cannot rot: its Python runs, its columns are those of the reader, its
commands exist.
"""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.evaluation.worlds import POLICY, logged, same

from evenhand.cli import main
from evenhand.evaluation import DecisionLog, read_log, write_log
from evenhand.evaluation.decision_log import ROLES

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "logs.md").read_text(encoding="utf-8")


BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)
NAMES = ("income", "debt", "age")


@pytest.fixture
def decisions(tmp_path, monkeypatch):
    """A log of people with three features."""
    monkeypatch.chdir(tmp_path)
    return replace(logged(500, 1)[0], names=NAMES)


def test_the_python_runs(decisions, capsys):
    write_log(decisions, "decisions.parquet")
    exec(BLOCKS[0], {"policy": POLICY})
    assert "Not shown" in capsys.readouterr().out


def same_but_for_rounding(found: DecisionLog, log: DecisionLog) -> bool:
    """The probability of a rejection is stored, and 1 - (1 - p) is not p to the last bit."""
    rounded = np.abs(found.acceptance - log.acceptance).max() < 1e-15
    return bool(rounded) and same(replace(found, acceptance=log.acceptance), log)


def test_a_log_of_vowpal_wabbit_becomes_a_frame(decisions, tmp_path, capsys):
    """Costs are those of Vowpal Wabbit's own logs: 0, 1, and what a rejection costs."""
    lines = []
    for row in range(len(decisions)):
        accept = bool(decisions.accept[row])
        cost = {1: 0.0, -1: 1.0, 0: 0.5}[int(decisions.label[row])]
        p = float(decisions.acceptance[row])
        person = dict(zip(NAMES, decisions.features[row].tolist(), strict=True))
        event = {
            "_label_cost": cost,
            "_label_probability": p if accept else 1 - p,
            "_label_Action": 1 if accept else 2,
            "_labelIndex": 0 if accept else 1,
            "a": [1, 2] if accept else [2, 1],
            "p": [p, 1 - p] if accept else [1 - p, p],
            "c": {"applicant": {**person, "sex": decisions.group[row]}, "_multi": [{}, {}]},
        }
        lines.append(json.dumps(event))
    (tmp_path / "decisions.dsjson").write_text("\n".join(lines))
    names = {"policy": POLICY}
    exec(BLOCKS[1], names)
    assert same_but_for_rounding(names["log"], decisions)
    assert "Not shown" in capsys.readouterr().out


def test_a_log_of_open_bandit_pipeline_becomes_a_frame(decisions, capsys):
    feedback = {
        "n_rounds": len(decisions),
        "n_actions": 2,
        "context": decisions.features,
        "action": decisions.accept.astype(int),
        "position": None,
        "reward": (decisions.label == 1).astype(float),
        "pscore": decisions.propensity,
    }
    names = {"policy": POLICY, "feedback": feedback, "group": decisions.group}
    exec(BLOCKS[2], names)
    assert same_but_for_rounding(read_log(names["frame"]), decisions)
    assert "Not shown" in capsys.readouterr().out


def test_every_role_is_explained():
    rows = {
        name
        for line in re.findall(r"^\| (`.+?) \|", TEXT, flags=re.M)
        for name in re.findall(r"`(.+?)`", line)
    }
    assert set(ROLES) <= rows


def test_the_command_without_data_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = re.search(r"`(evenhand evaluate demo .+?)`", TEXT)
    assert CliRunner().invoke(main, shlex.split(line[1])[1:]).exit_code == 0
