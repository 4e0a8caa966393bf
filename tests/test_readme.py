"""Prose that can rot is executed: the Python of the README runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 2
    exec("\n".join(blocks), {})
    printed = capsys.readouterr().out
    assert "Certified with probability at least 0.95" in printed
    assert "accept if score" in printed
