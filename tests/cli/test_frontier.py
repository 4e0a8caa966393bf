import csv
import json

import numpy as np
import pytest

from evenhand.cli.frontier import parse_limits

LENDING = ("--label", "repaid", "--good", "yes", "--group", "group")


def limits_of(run, data, *more):
    done = run("frontier", data, *LENDING, *more, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_looser_limit_costs_less_and_is_kept(run, lending):
    document = limits_of(run, lending, "--limits", "0:0.3:7", "--limit", "0.07")
    limits = {name: np.array(cells) for name, cells in document["tables"]["limits"].items()}
    assert limits["limit"] == pytest.approx([0, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3])
    assert (np.diff(limits["cost"]) <= 1e-12).all()
    assert limits["price_of_fairness"][-1] == pytest.approx(0.0, abs=1e-12)
    assert (np.abs(limits["gap"]) <= limits["limit"] + 1e-12).all()
    assert (limits["lower_bound"] <= limits["cost"] + 1e-12).all()
    mixtures = document["tables"]["mixtures"]
    for limit in limits["limit"]:
        weights = zip(mixtures["limit"], mixtures["weight"], strict=True)
        assert sum(weight for at, weight in weights if at == limit) == pytest.approx(1)
    here = document["numbers"]["solutions"][2]["policy"]["parts"]
    assert len(document["policy"]) == len(here) + 1


def test_the_first_table_is_that_of_the_limits(run, lending, tmp_path):
    done = run("frontier", lending, *LENDING, "--limits", "0,0.1", "--out", "t.csv")
    assert "not certified" in " ".join(done.stdout.split())
    with (tmp_path / "t.csv").open(newline="") as file:
        assert [row["limit"] for row in csv.DictReader(file)] == ["0.0", "0.05", "0.1"]


def test_prices_are_those_of_the_costs(run, lending):
    words = ("--price-false-accept", "40", "--price-false-reject", "30", "--limits", "0,0.1")
    document = limits_of(run, lending, *words)
    assert document["tables"]["limits"]["cost"][0] > 1


def test_a_limit_beyond_the_grid_stretches_it(run, lending):
    document = limits_of(run, lending, "--limits", "0:0.1:3", "--limit", "0.5")
    limits = document["tables"]["limits"]["limit"]
    assert max(limits) == 0.5
    assert max(np.diff(limits)) <= 0.05


def test_without_matplotlib_the_figures_are_printed(run, lending, monkeypatch):
    drawn = run("frontier", lending, *LENDING, "--limits", "0,0.1")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    result = run("frontier", lending, *LENDING, "--limits", "0,0.1")
    assert result.exit_code == 0, result.output
    assert result.stdout == drawn.stdout


@pytest.mark.parametrize("kind", ["stumps", "linear", "tree"])
def test_there_is_one_baseline_without_a_limit(run, lending, kind):
    """Whatever rate and limit a command is about; all prices of fairness are measured from it."""
    found = set()
    for words in (
        ("solve", "--rate", "fpr", "--limit", "0.02"),
        ("solve", "--rate", "fpr", "--limit", "1"),
        ("solve", "--rate", "selection", "--limit", "0.1"),
    ):
        done = run(words[0], lending, *LENDING, "--class", kind, *words[1:], "--json")
        found.add(
            json.loads(done.stdout)["numbers"]["figures"]["costs_per_person"]["without_limit"]
        )
    done = run("frontier", lending, *LENDING, "--class", kind, "--limits", "0,0.3", "--json")
    document = json.loads(done.stdout)
    found.add(document["facts"]["cost without a limit"])
    limits = document["tables"]["limits"]
    if limits["price_of_fairness"][0] > 0:
        found.add(round(limits["cost"][0] - limits["price_of_fairness"][0], 12))
    assert len({round(one, 9) for one in found}) == 1


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("0:0.2:3", 0.1, [0, 0.1, 0.2]),
        ("0:0.3:4", 0.05, [0, 0.05, 0.1, 0.2, 0.3]),
        ("0.2,0", 0.0, [0, 0.2]),
        ("0.1", 0.1, [0.1]),
    ],
)
def test_limits(text, limit, expected):
    assert np.allclose(parse_limits(text, limit), expected)
