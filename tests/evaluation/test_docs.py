"""docs/how-to/logs.md cannot rot: its Python runs, its columns and suffixes are those of the
readers, its commands exist.
"""

import re
import shlex
from pathlib import Path

from click.testing import CliRunner
from tests.evaluation.worlds import POLICY, logged

from evenhand.cli import main
from evenhand.evaluation import write_log
from evenhand.evaluation.decision_log import ROLES
from evenhand.evaluation.log_files import FORMATS

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "logs.md").read_text(encoding="utf-8")


def test_the_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_log(logged(500, 1)[0], "decisions.parquet")
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)
    exec(block, {"policy": POLICY})
    assert "Not shown" in capsys.readouterr().out


def test_every_role_and_suffix_is_explained():
    rows = {
        name
        for line in re.findall(r"^\| (`.+?) \|", TEXT, flags=re.M)
        for name in re.findall(r"`(.+?)`", line)
    }
    assert set(ROLES) <= rows
    assert {suffix for format in FORMATS.values() for suffix in format.suffixes} <= rows


def test_the_command_without_data_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = re.search(r"`(evenhand evaluate demo .+?)`", TEXT)
    assert CliRunner().invoke(main, shlex.split(line[1])[1:]).exit_code == 0
