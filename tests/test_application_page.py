"""The page on one's own application: its code runs as it stands, and says what it says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "in-your-application.md"


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    blocks = [cell for cell in cells if not cell.startswith(":tags: [remove-cell]")]
    assert len(blocks) == 3
    exec("\n".join(blocks), {})
    printed = capsys.readouterr().out
    assert "the key 'loan-99' is unknown" in printed
    assert "is not the file that this learner has loaded or saved last" in printed
