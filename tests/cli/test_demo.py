import json
import re
import sys

import pytest
from click.testing import CliRunner

from evenhand.cli import main
from evenhand.cli.demo import COLUMNS, lending_csv, make_lending_table


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """What the demo prints with two runs per learner, and the folder that it fills."""
    where = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(where)
        result = CliRunner().invoke(main, ["demo", "--seeds", "2"], catch_exceptions=False)
    return result, where / "evenhand-demo"


def test_the_story_and_its_files(story):
    """With two runs per learner; what the last act says is what was measured. It is brief: no run
    takes more than 100 epochs (measured: 75) or 500 oracle calls (measured: 167), although 100,000
    people come. In seconds: `make bench`."""
    result, folder = story
    assert result.exit_code == 0
    assert sorted(p.name for p in folder.iterdir()) == [
        "certificate.json",
        "certified.png",
        "frontier.png",
        "learners",
        "lending.csv",
        "policy.json",
    ]
    assert all(f"evenhand-demo/{p.name}" in result.stdout for p in folder.iterdir())
    assert "evenhand-demo/learners/report.html" in result.stdout
    assert (folder / "learners" / "report.html").exists()
    assert "not certified for the population" in " ".join(result.stdout.split())
    comparison = json.loads((folder / "learners" / "results.json").read_text())["comparison"]
    rows = {row["name"]: row for row in comparison["summaries"]}
    runs = [one for learner in comparison["learners"] for one in learner["runs"]]
    assert max(one["rounds"][-1] for one in runs) == 100_000
    assert max(len(one["rounds"]) for one in runs) <= 100
    assert max(one["oracle_calls"] for one in runs) <= 600
    assert all(row["runs_above"] == 0 for row in rows.values() if row["guaranteed"])
    assert {name for name, row in rows.items() if not row["guaranteed"]} == {
        "unconstrained",
        "fair-on-gathered",
    }
    assert all(rows[name]["rounds_above"] > 0.5 for name in ("unconstrained", "fair-on-gathered"))


def test_what_the_story_says_is_true(run, tmp_path, lending_rows):
    """A gap above .2 without a limit, groups that repay equally often, and two rules neither of
    which is within the limit.
    """
    out = " ".join(run("demo", "--seeds", 0, "--out", "d").stdout.split())
    assert "a gap of 0.23, although both groups repay equally often" in out
    repaid = {g: [r["repaid"] == "yes" for r in lending_rows if r["group"] == g] for g in "ab"}
    assert abs(sum(repaid["a"]) / len(repaid["a"]) - sum(repaid["b"]) / len(repaid["b"])) < 0.01
    parts = json.loads((tmp_path / "d" / "policy.json").read_text())["policy"]["parts"]
    bad = {g: [r for r in lending_rows if r["group"] == g and r["repaid"] == "no"] for g in "ab"}
    assert len(parts) == 2
    for part in parts:
        rule = part["hypothesis"]
        yes = {
            g: sum(
                (float(r[COLUMNS[rule["column"]]]) >= rule["value"]) == rule["at_least"]
                for r in rows
            )
            / len(rows)
            for g, rows in bad.items()
        }
        assert abs(yes["a"] - yes["b"]) > 0.05


def test_it_ends_with_a_certificate_in_words_and_the_true_gap_below_the_limit(story):
    from evenhand.fairness.certificate import Certificate

    result, folder = story
    out = " ".join(result.stdout.split())
    told = Certificate.from_json(json.loads((folder / "certificate.json").read_text()))
    assert (told.status, told.limit) == ("certified", 0.05)
    assert told.claim in out
    worst = float(
        re.search(r"largest true gap of any policy it deployed: (0\.\d+), below the limit", out)[1]
    )
    assert 0 < worst < 0.05
    assert (folder / "certified.png").stat().st_size > 20_000


def test_without_matplotlib_the_story_goes_on(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "--seeds", 1)
    assert result.exit_code == 0
    assert "pip install -e '.[plots]'" in " ".join(result.stdout.split())
    assert not (tmp_path / "evenhand-demo" / "frontier.png").exists()


def test_the_folder_may_be_deep_and_old_files_are_replaced(run, tmp_path):
    assert run("demo", "--seeds", 0, "--out", "a/b/c").exit_code == 0
    (tmp_path / "a/b/c/policy.json").write_text("old")
    assert run("demo", "--seeds", 0, "--out", "a/b/c").exit_code == 0
    assert json.loads((tmp_path / "a/b/c/policy.json").read_text())["limit"] == 0.05


def test_a_file_in_the_way(run, tmp_path):
    (tmp_path / "f").write_text("")
    assert run("demo", "--out", "f").exit_code == 2


def test_the_recipe_yields_the_shipped_table():
    assert make_lending_table() == lending_csv()


def test_the_table_is_plausible(lending_rows):
    assert len(lending_rows) == 1200
    ranges = {
        "income": (8000, 200_000),
        "credit_score": (300, 850),
        "debt_ratio": (0, 1),
        "years_employed": (0, 45),
        "previous_defaults": (0, 10),
    }
    for name, (low, high) in ranges.items():
        values = [float(r[name]) for r in lending_rows]
        assert low <= min(values) < max(values) <= high
    assert {r["group"] for r in lending_rows} == {"a", "b"}
