"""How many people may be accepted, and the rule of today: the same options for plan, simulate and
study.
"""

import json

import pytest

from evenhand.cli.capacity import Capacity, read_incumbent, read_quota
from evenhand.errors import InvalidInput
from evenhand.hypotheses import Threshold

NUMBERS = ("--shares", "a=0.6,b=0.4", "--bad-rates", "a=0.4,b=0.5", "--separation", 1.5)
QUICK = ("--limit", 0.1, "--people", 1000, "--runs", 1)
TABLE = ("--label", "repaid", "--good", "yes", "--group", "group")


def told(result) -> str:
    return " ".join(result.stdout.split())


def test_a_plan_shows_capacity_and_who_is_accepted_over_time(run, tmp_path):
    result = run("plan", *NUMBERS, *QUICK, "--capacity", 0.2, "--floor", 0.1, "--out", "plan.json")
    assert result.exit_code == 0
    out = told(result)
    assert "capacity at most 0.2 of the population is accepted, from the first person on" in out
    assert "floor at least 0.1 of the population is accepted" in out
    assert "Over time" in out
    assert "accepting 20% by lot" in out
    document = json.loads((tmp_path / "plan.json").read_text())["numbers"]
    assert max(document["accepted"]["high"]) <= 0.2 + 1e-9
    assert min(document["accepted"]["low"]) >= 0.1 - 1e-9
    assert len(document["bill_so_far"]["mean"]) == len(document["rounds"])


def test_what_is_simulated_is_said_from_the_first_second(run):
    result = run("plan", *NUMBERS, *QUICK)
    assert result.stderr.startswith("certified learner, run 1 of 1 ...\n")


def test_a_quota_a_day(run):
    out = told(run("plan", *NUMBERS, *QUICK, "--per-day", 100, "--quota", 20))
    assert "quota never more than 20 of each 100 people" in out


def test_the_rule_of_today_in_a_plan(run, lending):
    result = run(
        "plan", "--data", lending, *TABLE, *QUICK, "--score", "credit_score",
        "--incumbent", "credit_score>=600",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "accept if credit_score >= 600" in told(result)
    assert "The rules of today" in told(result)
    other = run("plan", "--data", lending, *TABLE, *QUICK, "--incumbent", "shoes>=600")
    assert other.exit_code == 2
    assert "the people have no column 'shoes'" in " ".join(other.stderr.split())
    alone = run("plan", *NUMBERS, *QUICK, "--incumbent", "score>=1")
    assert "--incumbent belongs to a plan from a table" in alone.stderr


def test_simulate_keeps_capacity_and_quota(run):
    few = ("simulate", "--learner", "certified", "--rounds", 1500, "--json")
    capped = json.loads(run(*few, "--capacity", 0.2).stdout)
    assert max(capped["epochs"]["accepted_share"]) < 0.35  # drawn, around 0.2
    assert capped["capacity"] == 0.2
    counted = json.loads(run(*few, "--quota", "10/100").stdout)
    rounds = counted["epochs"]["rounds"]
    starts = [0, *rounds[:-1]]
    accepted = sum(
        share * (stop - start)
        for share, start, stop in zip(
            counted["epochs"]["accepted_share"], starts, rounds, strict=True
        )
    )
    assert round(accepted) <= 10 * 15


def test_a_study_with_capacity_has_learners_that_keep_it(run, tmp_path):
    few = ("study", "lending", "--class", "stumps", "--rounds", 400, "--seeds", 1, "--jobs", 1)
    result = run(*few, "--capacity", 0.3, "--out", "capped", "--json")
    assert result.exit_code == 0
    cells = json.loads(result.stdout)["cells"]
    assert [cell["learner"] for cell in cells] == ["certified"]
    refused = run(*few, "--capacity", 0.3, "--learner", "accept-all", "--out", "other")
    assert refused.exit_code == 2
    assert "the learner 'accept-all' has no accept_at_most" in refused.stderr
    assert "Option: --capacity" in refused.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.thorough
def test_a_comparison_with_capacity_has_learners_that_keep_it(run, tmp_path):
    few = ("compare", "--rounds", 600, "--seeds", 1, "--jobs", 1, "--json")
    result = run(*few, "--capacity", 0.3, "--out", "capped")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    (learner,) = found["comparison"]["learners"]
    assert learner["name"] == "certified"
    page = (tmp_path / "capped" / "report.html").read_text(encoding="utf-8")
    assert "; capacity 0.3" in page
    # regret is to the best policy within the capacity
    free = json.loads(run(*few, "--learner", "accept-all", "--out", "free").stdout)
    assert found["comparison"]["optimum"] > free["comparison"]["optimum"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--learner", "two-phase"), "the learner 'two-phase' has no accept_at_most"),
        (("--incumbent", "shoes>=3"), "the people have no column 'shoes'"),
    ],
)
def test_a_comparison_refuses_what_cannot_keep_a_capacity(run, tmp_path, words, message):
    result = run("compare", "--rounds", 100, "--capacity", 0.3, *words, "--out", "other")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Hint: " in result.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--capacity", 0), "capacity is 0.0"),
        (("--capacity", 1.5), "capacity is 1.5"),
        (("--floor", 0.5, "--capacity", 0.2), "the floor lies at or below the cap"),
        (("--quota", "0/100"), "count is 0"),
        (("--quota", "half"), "--quota is 'half'"),
        (("--quota", "50"), "of how many who come"),
        (("--audit-budget", 0.5), "at least 1"),
    ],
)
def test_refusals_name_the_value_and_the_way_out(run, words, message):
    result = run("plan", *NUMBERS, *QUICK, *words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Hint: " in result.stderr
    assert "Traceback" not in result.output


def test_rules_of_today_are_read_from_files(tmp_path):
    rule = Threshold(1, 620.0, 2)
    columns = ["debt", "score"]
    path = tmp_path / "rule.json"
    path.write_text(json.dumps(rule.to_json()))
    assert read_incumbent(str(path), columns) == (rule,)
    assert read_incumbent("debt<0.4", columns) == (Threshold(0, 0.4, 2, at_least=False),)
    path.write_text(json.dumps({"policy": 3, "columns": ["shoes"]}))
    with pytest.raises(InvalidInput, match="shoes"):
        read_incumbent(str(path), columns)
    path.write_text(json.dumps({"kind": "no such rule"}))
    with pytest.raises(InvalidInput, match="rule"):
        read_incumbent(str(path), columns)
    with pytest.raises(InvalidInput, match=r"nowhere\.json"):
        read_incumbent("nowhere.json", columns)


def test_nothing_given_is_nothing_set():
    assert Capacity().settings() == {}
    assert Capacity().candidates(["x"]) == ()
    assert read_quota("5/50").count == 5
