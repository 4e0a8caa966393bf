"""Prose that can rot is executed: the pages for people who come from another library run, and what
they say about what is printed is so.
"""

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

DOCS = Path(__file__).parents[1] / "docs"
CELL = re.compile(r"```\{code-cell\} ipython3\n(.*?)```", flags=re.DOTALL)


def played(page, other):
    """Run the page's cells in order, those of the other library only where it is installed: names,
    and what was printed."""
    here, names, told = importlib.util.find_spec(other) is not None, {}, io.StringIO()
    for block in CELL.findall((DOCS / page).read_text(encoding="utf-8")):
        if here or other not in block:
            with contextlib.redirect_stdout(told), threadpool_limits(1):
                exec(compile(block, page, "exec"), names)
    return names, told.getvalue()


def figures(text):
    return [float(found) for found in re.findall(r"[+-]?\d+\.\d+", text)]


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning"
)  # fairlearn's, about pandas
def test_coming_from_fairlearn():
    pytest.importorskip("pandas", reason="the page works with a pandas frame")
    names, printed = played("compare/fairlearn.md", "fairlearn")
    lines = dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)
    assert figures(lines["evenhand"])[1] <= 0.03
    assert figures(lines["evenhand's Linear"])[1] <= 0.03
    assert abs(names["ours"].gaps_["FPR m minus f"]) <= 0.03 + 1e-9
    assert abs(figures(lines["evenhand, new people"])[1]) > 0.03, (
        "the page says that the limit fails on new people"
    )
    if "theirs" not in names:
        pytest.skip("fairlearn is not installed; the evenhand side ran")
    assert figures(lines["fairlearn"])[0] > figures(lines["evenhand"])[0], (
        "the page says that the error is smaller with the same model"
    )
    assert names["ours"].oracle_calls_ < names["theirs"].n_oracle_calls_
    assert len(names["ours"].components_) <= 2


def test_coming_from_vw():
    names, _ = played("compare/bandits.md", "vowpalwabbit")
    assert max(names["gaps"]) <= 0.10
    assert max(names["gaps"]) > 0.01, "the learner should have learnt something by now"
    if "vw" not in names:
        pytest.skip("vowpalwabbit is not installed; the evenhand side ran")
    assert max(names["vw_gaps"]) > 0.10, "the page says that nothing holds VW's gap"
