import csv
import json

import numpy as np
import pytest
from rich.console import Console

from evenhand.cli.frontier import RuleBook, parse_limits
from evenhand.hypotheses import ACCEPT_ALL, LinearRule, Threshold
from evenhand.hypotheses.thresholds import PerGroup
from evenhand.policies import Mixture

LENDING = ("--label", "repaid", "--good", "yes", "--group", "group")


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_writes_the_picture(run, lending, tmp_path, ending, magic):
    result = run("frontier", lending, *LENDING, "--limits", "0,0.1", "--out", f"f.{ending}")
    assert result.exit_code == 0
    assert (tmp_path / f"f.{ending}").read_bytes().startswith(magic)
    assert f"Picture: f.{ending}" in result.stdout


def test_the_table_behind_it(run, lending, tmp_path):
    result = run(
        "frontier", lending, *LENDING, "--limits", "0:0.3:7", "--limit", "0.07", "--table", "t.csv"
    )
    rows = read(tmp_path / "t.csv")
    assert [float(r["limit"]) for r in rows] == pytest.approx(
        [0, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3]
    )
    errors = np.array([float(r["error_rate"]) for r in rows])
    assert (np.diff(errors) <= 1e-12).all()
    assert float(rows[-1]["price_of_fairness"]) == pytest.approx(0.0, abs=1e-12)
    assert all(abs(float(r["gap"])) <= float(r["limit"]) + 1e-12 for r in rows)
    assert "0.25 or more" in result.stdout
    assert "with probability" in rows[0]["mixture"]
    assert "not certified" in result.stdout


def test_prices_change_the_column(run, lending, tmp_path):
    run(
        "frontier",
        lending,
        *LENDING,
        "--price-false-accept",
        "4000",
        "--limits",
        "0,0.1",
        "--table",
        "t.csv",
    )
    assert "cost_per_person" in read(tmp_path / "t.csv")[0]


def test_long_rules_get_numbers(run, lending):
    out = run("frontier", lending, *LENDING, "--class", "linear", "--limits", "0,0.05").stdout
    assert "rule 1: accept if" in out


def test_a_limit_beyond_the_grid_stretches_it(run, lending, tmp_path):
    run("frontier", lending, *LENDING, "--limits", "0:0.1:3", "--limit", "0.5", "--table", "t.csv")
    limits = [float(r["limit"]) for r in read(tmp_path / "t.csv")]
    assert max(limits) == 0.5
    assert max(np.diff(limits)) <= 0.05


def test_without_matplotlib_the_figures_are_printed(run, lending, monkeypatch, tmp_path):
    drawn = run("frontier", lending, *LENDING, "--limits", "0,0.1")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    result = run("frontier", lending, *LENDING, "--limits", "0,0.1", "--table", "t.csv")
    assert result.exit_code == 0, result.output
    assert "No picture" in result.stdout
    assert "pip install -e '.[plots]'" in " ".join(result.stdout.split())
    assert result.stdout.partition("No picture")[0] == drawn.stdout.partition("Picture")[0]
    assert (tmp_path / "t.csv").exists()


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
    first = json.loads(done.stdout)["limits"][0]
    if first["price_of_fairness"] > 0:
        found.add(round(first["cost_per_person"] - first["price_of_fairness"], 12))
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


def test_long_rules_are_numbered_in_order_of_appearance():
    rules = RuleBook(["income", "debt", "years_with_the_employer"])
    long = LinearRule((1.5, -2.25, 3.125), 4.0)
    short = Threshold(0, 30.0, 3)
    mixed = Mixture((short, long, ACCEPT_ALL), (0.2, 0.7, 0.1))
    assert rules.mixture(mixed) == "0.70 rule 1 + 0.20 income >= 30 + 0.10 accept all applicants"
    assert rules.mixture(mixed, 2) == "0.70 rule 1 + 0.20 income >= 30 + 1 more"
    assert rules.mixture(Mixture((long,), (1.0,))) == "rule 1"
    console = Console(width=200)
    with console.capture() as capture:
        rules.show(console)
    assert capture.get().strip() == f"rule 1: {long.describe(rules.names)}"


def test_long_rules_are_shown_in_their_own_words():
    """A rule that does not begin with "accept if" is not made to."""
    names = ["accept rate " + "x" * 60]
    rules = (
        Threshold(0, 0.5, 1),
        PerGroup((("a", Threshold(0, 0.1, 1)), ("b", Threshold(0, 0.2, 1)))),
    )
    book = RuleBook(names)
    for rule in rules:
        book.short(rule)
    out = Console(width=400, record=True)
    book.show(out)
    said = [" ".join(line.split()) for line in out.export_text().splitlines()]
    for line, rule, number in zip(said, rules, (1, 2), strict=True):
        words = rule.describe(names)
        assert line.startswith(f"rule {number}: {words[:60]}")
