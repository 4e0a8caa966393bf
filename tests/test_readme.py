"""Prose that can rot is executed: the Python and the commands of the README run as they stand, and
print what it shows. Its figures are compared in tests/test_figures.py.
"""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import evenhand as eh
from evenhand.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SMALLER = {"plan": ["--runs", "1", "--people", "4000"], "solve": []}


def shown(printed: str, text: str) -> bool:
    """Whether the text shows what was printed; `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in text.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL) is not None


@pytest.mark.thorough
def test_the_python_of_the_readme_runs_and_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    (output,) = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)
    try:
        eh.read_table("taiwan")
    except eh.EvenhandError as error:
        pytest.skip(f"the table cannot be had: {error}")
    exec(code, {})
    assert shown(capsys.readouterr().out, output)
    assert not shown("Certified with probability at least 0.9", output)


def test_ten_lines_are_ten_lines():
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 10


@pytest.mark.thorough
def test_the_commands_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^ {4}evenhand (.+)$", README, flags=re.M)
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line, comments=True)
        assert CliRunner().invoke(main, [*words, *SMALLER[words[0]]]).exit_code == 0, line


def test_the_readme_stays_short():
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    words = [word for word in prose.split() if re.search("[A-Za-z]", word)]
    assert len(words) <= 480
    assert ".venv/bin" not in README  # the same text goes to an index
