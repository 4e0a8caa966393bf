"""Every row of the bench runs at a tiny size; rows are kept as they come, and one that fails is
recorded and stops no other.

Sizes are chosen so that all rows together take about 40 s of CPU, most of it in processes of their
own that import evenhand. Nothing is asked of the figures.
"""

import importlib.util
import json

import pytest
from bench.record import Record
from click.testing import CliRunner

from bench import runner

NEEDS = {"stumps": "fairlearn", "models": "fairlearn", "deciding": "vowpalwabbit"}
NEEDS |= {"older-fairlearn": "fairlearn", "vw": "vowpalwabbit", "pass": "numba"}
"""What a row compares with, where that is not installed everywhere."""


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "bench-results.json"


@pytest.mark.parametrize("name", runner.ROWS)
def test_every_row_runs_at_a_tiny_size(name, results):
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    done = CliRunner().invoke(runner.main, ["--quick", "--only", name])
    found = json.loads(results.read_text())
    errors = [record["error"] for record in found["rows"] if record["error"] is not None]
    assert errors == []
    assert done.exit_code == 0, done.output
    assert found["quick"]
    assert all(record["figure"] for record in found["rows"])


def row(name):
    return [Record(name, "<= 1", "0.5", True, (0.5,))]


def test_a_row_that_fails_is_recorded_and_the_others_go_on(results, monkeypatch):
    """A traceback in one row lost every row before it."""

    def broken(_tables, _quick):
        # what was measured before is on the disk already
        assert [one["row"] for one in json.loads(results.read_text())["rows"]] == ["first"]
        raise AttributeError("'Discrete' object has no attribute 'sample'")

    rows = {"first": lambda *_: row("first"), "second": broken, "third": lambda *_: row("third")}
    monkeypatch.setattr(runner, "ROWS", rows)
    done = CliRunner().invoke(runner.main, [])
    assert done.exit_code == 1
    assert "these rows failed: second" in done.output
    found = json.loads(results.read_text())["rows"]
    assert [record["row"] for record in found] == ["first", "second", "third"]
    assert [record["holds"] for record in found] == [True, False, True]
    assert "has no attribute 'sample'" in found[1]["note"]
    assert "Traceback" in found[1]["error"]
    assert [path.name for path in results.parent.iterdir()] == [results.name]


def test_a_row_whose_module_cannot_be_imported_is_recorded(results, monkeypatch):
    monkeypatch.setattr(runner, "ROWS", {"lost": runner._row("no_such_module", "nothing")})
    assert CliRunner().invoke(runner.main, []).exit_code == 1
    assert "ModuleNotFoundError" in json.loads(results.read_text())["rows"][0]["note"]


def test_a_run_is_continued_with_what_was_not_measured_or_failed(results, monkeypatch):
    asked = []

    def failing(_tables, _quick):
        asked.append("second")
        raise OSError("the network is gone")

    def measuring(name):
        def measure(_tables, _quick):
            asked.append(name)
            return row(name)

        return measure

    monkeypatch.setattr(runner, "ROWS", {"first": measuring("first"), "second": failing})
    assert CliRunner().invoke(runner.main, []).exit_code == 1
    monkeypatch.setenv("EVENHAND_CONTINUE", "1")
    rows = {name: measuring(name) for name in ("first", "second", "third")}
    monkeypatch.setattr(runner, "ROWS", rows)
    done = CliRunner().invoke(runner.main, [])
    assert done.exit_code == 0, done.output
    assert asked == ["first", "second", "second", "third"]
    found = json.loads(results.read_text())
    assert found["whole"]
    assert [record["row"] for record in found["rows"]] == ["first", "second", "third"]
    assert found["parts"] == ["first", "second", "third"]
    monkeypatch.delenv("EVENHAND_CONTINUE")
    assert CliRunner().invoke(runner.main, []).exit_code == 0
    assert asked[4:] == ["first", "second", "third"]


def test_two_rows_of_one_name_are_an_error(results, monkeypatch):
    """The second would take the place of the first."""
    monkeypatch.setattr(runner, "ROWS", {"twice": lambda *_: [*row("same"), *row("same")]})
    assert CliRunner().invoke(runner.main, []).exit_code == 1
    (found,) = json.loads(results.read_text())["rows"]
    assert "one name" in found["note"]
