"""The page on one's own model: its code runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "own-model.md"


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    blocks = [cell for cell in cells if not cell.startswith(":tags: [remove-cell]")]
    assert len(blocks) == 3
    exec("\n".join(blocks), {})
    printed = capsys.readouterr().out
    for sentence in (
        "income (number, may be missing), city (text)",
        "the frame has no column 'income'",
        "model 1  ",
        "schema   ",
    ):
        assert sentence in printed
