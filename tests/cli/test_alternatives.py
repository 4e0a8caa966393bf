"""`evenhand alternatives`: the incumbent in its three forms, what is written, bad input."""

import json

import numpy as np
import pytest
from tests.cli.conftest import LENDING

ARGUMENTS = ("--label", "repaid", "--good", "yes", "--group", "sex")


@pytest.fixture(scope="module")
def loans():
    """Skill says who repays; the score of men is higher at equal skill, and decides today."""
    rng = np.random.default_rng(0)
    lines = ["sex,score,skill,approved,chance,repaid"]
    for _ in range(4000):
        sex = rng.choice(["f", "m"])
        skill = round(rng.random(), 2)
        score = round(skill + 0.5 * (sex == "m") + rng.random(), 2)
        repaid = "yes" if rng.random() < skill else "no"
        approved = "granted" if score >= 1.25 else "denied"
        lines.append(f"{sex},{score},{skill},{approved},{0.5 if score >= 1 else 0.25},{repaid}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def table(write, loans):
    return write(loans, "loans.csv")


def test_a_rule_a_column_and_a_policy_are_the_same_incumbent(run, table, tmp_path):
    names = ("--features", "score,skill")
    rule = run("alternatives", table, *ARGUMENTS, "--incumbent", "score>=1.25", *names, "--json")
    assert rule.exit_code == 0, rule.output
    by_rule = json.loads(rule.stdout)
    assert by_rule["numbers"]["verdict"] == "found"
    column = ("--incumbent", "approved", "--accepted", "granted")
    decided = run("alternatives", table, *ARGUMENTS, *column, *names, "--json")
    by_column = json.loads(decided.stdout)
    policy = tmp_path / "today.json"
    assert run("solve", table, *ARGUMENTS, *names, "--save", policy).exit_code == 0
    document = json.loads(policy.read_text())
    rule = {"kind": "threshold", "column": 0, "value": 1.25, "columns": 2, "at_least": True}
    document["policy"]["parts"] = [{"weight": 1.0, "hypothesis": rule}]
    document["table"]["file"] = "others.csv"
    policy.write_text(json.dumps(document))
    applied = run("alternatives", table, *ARGUMENTS, "--incumbent", policy, *names, "--json")
    assert applied.exit_code == 0, applied.output
    by_policy = json.loads(applied.stdout)
    for one in (by_rule, by_column, by_policy):
        # a column of decisions shows that the rejected are in the table
        assert ("accepted people only" in str(one["read"])) == (one is not by_column)
    assert by_rule["numbers"] == by_column["numbers"] == by_policy["numbers"]


def test_the_text_names_the_rule_and_the_alternative_is_saved(run, table, tmp_path):
    out = tmp_path / "better.json"
    figure = tmp_path / "a.svg"
    words = ("--incumbent", "approved", "--accepted", "granted", "--leave-out", "chance")
    answer = run(
        "alternatives", table, *ARGUMENTS, *words, "--no-coins", "--save", out, "--out", figure
    )
    assert answer.exit_code == 0, answer.output
    assert "Found, with probability at least 0.95" in " ".join(answer.output.split())
    assert "accept if skill >=" in answer.output
    assert "better" in answer.output
    assert figure.read_text().startswith("<?xml")
    # the decisions of today are no feature of the alternative
    assert "approved" not in json.loads(out.read_text())["columns"]
    assert run("apply", out, table, "--out", tmp_path / "d.csv").exit_code == 0


def test_nothing_is_saved_if_nothing_is_shown(run, table, tmp_path):
    out = tmp_path / "better.json"
    words = ("--incumbent", "skill>=0.5", "--features", "score", "--class", "thresholds")
    refused = run("alternatives", table, *ARGUMENTS, *words)
    assert refused.exit_code == 2
    assert "--score" in refused.output
    words = ("--incumbent", "skill>=0.5", "--score", "score", "--class", "thresholds")
    answer = run("alternatives", table, *ARGUMENTS, *words, "--save", out)
    assert answer.exit_code == 0, answer.output
    assert "Nothing saved" in answer.output
    assert not out.exists()


def test_a_column_of_probabilities(run, table):
    words = ("--incumbent", "chance", "--features", "score,skill")
    answer = run("alternatives", table, *ARGUMENTS, *words)
    assert answer.exit_code == 0, answer.output
    assert "accept with probability chance" in answer.output


def test_a_policy_that_was_made_with_the_same_table_is_noted(run, lending, tmp_path):
    policy = tmp_path / "p.json"
    assert run("solve", lending, *LENDING, "--save", policy).exit_code == 0
    answer = run("alternatives", lending, *LENDING, "--incumbent", policy, "--class", "tree")
    assert answer.exit_code == 0, answer.output
    text = " ".join(answer.output.split())
    assert "says that it was chosen on lending.csv" in text
    assert "no proof that there is none" in text


def test_a_published_table_by_name(run):
    answer = run("alternatives", "lending", "--incumbent", "credit_score>=600")
    assert answer.exit_code == 0, answer.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--incumbent", "nobody"), "nobody"),
        (("--incumbent", "none.json"), "no policy file"),
        (("--incumbent", "score>=high"), "a rule is a column"),
        (("--incumbent", "nobody>=3"), "nobody"),
        (("--incumbent", "score"), 'name its cut-off: --incumbent "score>=600"'),
        (("--incumbent", "approved"), "granted"),
        (("--incumbent", "score>=1", "--accepted", "yes"), "read a column of decisions"),
        (("--incumbent", "score>=1", "--delta", "2"), "--delta"),
        (("--incumbent", "score>=1", "--extra-cost", "nan"), "--extra-cost"),
        ((), "--incumbent"),
    ],
)
def test_bad_input_is_a_sentence(run, table, words, message):
    answer = run("alternatives", table, *ARGUMENTS, *words, "--features", "score,skill")
    assert answer.exit_code == 2, answer.output
    assert message in " ".join(answer.output.split())
