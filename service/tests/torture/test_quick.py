"""Small sizes of the rows; what measures time is left to `make torture`, and so are the long rows,
which `make test-slow` tries at their small size.
"""

import tempfile

import pytest
from service.tests.torture import __main__ as table
from service.tests.torture import rows
from service.tests.torture.entry_points import attackers
from service.tests.torture.million import draws
from service.tests.torture.rows import ROWS, Row

TRIED_ONE_BY_ONE = attackers
"""By service/tests/test_keys.py."""
QUICK = [row for row in ROWS if not row.alone and row.run is not TRIED_ONE_BY_ONE]


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=row.name, marks=pytest.mark.slow if row.long else ()) for row in QUICK],
)
def test_a_row_holds(row, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    target, figure, held = row.run(True)[0] if row.run is draws else row.run(True)
    assert held, f"target: {target}; figure: {figure}"


def test_the_table_is_the_issue_s_one():
    """No name twice, and exactly one row leaves a folder, to exactly three others."""
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert [sum(row.leaves for row in ROWS), sum(row.takes for row in ROWS)] == [1, 3]


def test_one_broken_row_makes_the_whole_table_fail(monkeypatch, capsys):
    def crash(quick):
        raise ZeroDivisionError

    good, bad = (
        Row("good", lambda quick: ("a", "b", True), alone=True),
        Row("bad", crash, alone=True),
    )
    for listed, code in (((good, bad), 1), ((good, good), 0)):
        monkeypatch.setattr(rows, "ROWS", listed)
        monkeypatch.setattr(table, "ROWS", listed)
        assert table.main(["--quick"]) == code
    assert "BROKEN  2. bad" in capsys.readouterr().out
