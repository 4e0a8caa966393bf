import json

import numpy as np
import pytest

from evenhand.cli.plan import pairs

NUMBERS = ("--shares", "a=0.6,b=0.4", "--bad-rates", "a=0.4,b=0.5", "--separation", 1.5)
QUICK = ("--limit", 0.1, "--people", 4000, "--runs", 4)
TABLE = ("--label", "repaid", "--good", "yes", "--group", "group")


def told(result) -> str:
    return " ".join(result.stdout.split())


def test_from_numbers_to_verdict_table_picture_and_json(run, tmp_path):
    result = run("plan", *NUMBERS, *QUICK, "--out", "plan.svg", "--out", "plan.json")
    assert result.exit_code == 0
    out = told(result)
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document["answer"][0] in out
    assert document["numbers"]["answer"] == "worth it"
    assert [way.split(":")[0] for way in document["tables"]["ways"]["way"][:3]] == [
        *("certified", "two-phase", "explore-then-commit"),
    ]
    assert "certified with probability at least 0.95 under its assumptions" in out
    assert "a plan is an expectation, not a certificate" in out
    drawn = (tmp_path / "plan.svg").read_text()
    assert drawn.startswith("<?xml")
    assert len(drawn) > 20_000
    assert out.endswith("Saved: plan.svg Saved: plan.json")


def test_one_bad_rate_for_all_and_days(run):
    out = told(
        run(
            "plan",
            "--shares",
            "a=0.5,b=0.5",
            "--bad-rates",
            0.5,
            "--auc",
            0.85,
            "--limit",
            0.2,
            "--per-day",
            40,
            "--days",
            75,
            "--runs",
            1,
        )
    )
    assert "75 at 40 people a day" in out
    assert "a 50.0% 50.0%" in out


def test_a_hopeless_limit_is_told_before_launch(run):
    out = told(run("plan", *NUMBERS, "--limit", 0.001, "--people", 3000, "--runs", 1))
    assert "practically nothing is certified within 3,000 people" in out


@pytest.mark.slow
def test_where_the_volume_allows_it_all_have_figures(run):
    out = told(run("plan", *NUMBERS, "--limit", 0.5, "--people", 60_000, "--runs", 1))
    assert "infeasible" not in out


@pytest.mark.parametrize(
    "rules",
    [
        ("--score", "credit_score"),
        pytest.param((), marks=pytest.mark.slow),
        pytest.param(("--class", "logistic"), marks=pytest.mark.slow),
    ],
)
def test_from_a_table(run, lending, rules):
    result = run(
        "plan", "--data", lending, *TABLE, *rules, "--limit", 0.15, "--people", 3000, "--runs", 1
    )
    assert result.exit_code == 0
    assert "1,200 rows" in told(result)


def test_text_and_missing_values_are_settled_by_options_and_told(run, tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(400):
        income, purpose = f"{rng.normal():.3f}", rng.choice(["car", "house"])
        repaid = "yes" if rng.random() < 0.7 else "no"
        lines.append(f"{income},{purpose},{repaid},{rng.choice(['f', 'm'])}")
    lines[7] = ",car,yes,f"
    path = tmp_path / "mine.csv"
    path.write_text("score,purpose,repaid,sex\n" + "\n".join(lines) + "\n")
    words = (
        "plan",
        "--data",
        path,
        "--label",
        "repaid",
        "--good",
        "yes",
        "--group",
        "sex",
        "--people",
        2000,
        "--runs",
        1,
    )
    assert "--drop-missing" in run(*words, "--encode").stderr
    assert "--encode" in run(*words, "--drop-missing").stderr
    out = told(run(*words, "--encode", "--drop-missing"))
    assert "left out: 1 row (" in out
    assert "encoded: purpose as" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--shares is missing"),
        (("--shares", "a=0.6,b=0.4"), "--bad-rates is missing"),
        (
            ("--shares", "a=0.6;b", "--bad-rates", "0.1", "--auc", "0.7"),
            "it is a list like a=0.6,b=0.4",
        ),
        (("--shares", "a=0.6,b=0.6", "--bad-rates", "0.1", "--auc", "0.7"), "they sum to 1.2"),
        ((*NUMBERS, "--limit", "0"), "limit is 0"),
        ((*NUMBERS, "--people", "10"), "200 to 10,000,000"),
        ((*NUMBERS, "--people", "1000", "--days", "3"), "both horizon"),
        ((*NUMBERS, "--price-false-accept", "-1"), "prices are finite numbers of at least 0"),
        ((*NUMBERS, "--delta", "1"), "delta is 1.0; it is a number in (0, 1)"),
        ((*NUMBERS, "--label", "repaid"), "--label belongs to a plan from a table"),
        ((*NUMBERS, "--auc", "0.7"), "either separation or auc"),
    ],
)
def test_refusals_are_one_message_with_a_way_out(run, words, message):
    result = run("plan", *words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_a_table_brings_its_own_numbers(run, lending):
    result = run("plan", "--data", lending, *TABLE, "--shares", "a=1")
    assert result.exit_code == 2
    assert "--shares belongs to a plan from numbers" in result.stderr
    assert "Options: --label, --group" in run("plan", "--data", lending).stderr


def test_pairs():
    assert pairs(" a = 0.6, b=0.4", "--shares") == {"a": 0.6, "b": 0.4}
