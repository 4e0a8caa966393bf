"""`evenhand apply` follows the recipe of the policy file, and draws by its seed; `evenhand test`
and `solve --holdout` tell gaps and cost on people who had no part in the choice.
"""

import csv
import json

import numpy as np
import pytest
from tests.cli.conftest import LENDING

from evenhand.cli.demo import make_lending_table
from evenhand.evaluation import measure_policy
from evenhand.hypotheses import ACCEPT_ALL, Threshold
from evenhand.policies import Mixture
from evenhand.words import LabelledSample


@pytest.fixture
def policy(run, lending, tmp_path):
    assert run("solve", lending, *LENDING, "--save", "policy.json").exit_code == 0
    return tmp_path / "policy.json"


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_reordered_columns_change_no_decision(run, lending, lending_rows, policy, tmp_path):
    assert run("apply", policy, lending, "--out", "first.csv").exit_code == 0
    first = rows(tmp_path / "first.csv")
    assert {row["decision"] for row in first} == {"0", "1"}
    assert list(first[0])[-2:] == ["probability", "decision"]
    with (tmp_path / "new.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*reversed(lending_rows[0])], delimiter=";")
        writer.writeheader()
        writer.writerows(lending_rows)
    done = run("apply", policy, "new.csv", "--out", "second.csv", "--json")
    assert done.exit_code == 0, done.output
    second = rows(tmp_path / "second.csv")
    for name in ("probability", "decision"):
        assert [row[name] for row in first] == [row[name] for row in second]
    told = json.loads(done.stdout)
    assert told["accepted"] == sum(row["decision"] == "1" for row in second)
    run("apply", policy, lending, "--out", "third.csv", "--seed", "1")
    third = rows(tmp_path / "third.csv")
    assert [row["probability"] for row in first] == [row["probability"] for row in third]
    assert [row["decision"] for row in first] != [row["decision"] for row in third]


def test_refusals(run, lending, policy, write):
    head, first, *_ = lending.read_text().splitlines()
    short = write(head.replace("debt_ratio", "debt") + "\n" + first + "\n", "short.csv")
    refused = run("apply", policy, short)
    assert refused.exit_code == 2
    assert "no column 'debt_ratio', which the policy was made with" in refused.stderr
    empty = write(head + "\n" + "," + first.partition(",")[2] + "\n" + first + "\n", "empty.csv")
    assert "--drop-missing" in run("apply", policy, empty).stderr
    done = run("apply", policy, empty, "--drop-missing", "--out", "out.csv")
    assert done.exit_code == 0
    assert "decided about 1:" in done.stdout
    assert "is the table itself" in run("apply", policy, empty, "--out", empty).stderr
    assert "there is no policy file" in run("apply", "nowhere.json", lending).stderr


MADE = ("--label", "hired", "--group", "sex")


@pytest.fixture
def applicants(tmp_path):
    """A table in which None is a degree, and NA is not."""
    lines = ["sex,degree,score,hired"]
    for i in range(120):
        degree = ("None", "BSc", "MSc", "NA")[i % 4 if i % 30 else 3]
        lines.append(f"{'fm'[i % 2]},{degree},{i % 17},{(i // 2 + i // 7) % 2}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    return lines


def test_missing_values_are_written_as_in_the_table_of_the_policy(run, applicants, tmp_path):
    solve = ("solve", "people.csv", *MADE, "--encode", "--drop-missing")
    assert run(*solve, "--missing", "NA", "--save", "policy.json").exit_code == 0
    done = run("apply", "policy.json", "people.csv", "--drop-missing", "--json")
    lacking = sum(",NA," in line for line in applicants)
    assert json.loads(done.stdout)["decided"] == 120 - lacking
    other = run(
        "apply", "policy.json", "people.csv", "--drop-missing", "--missing", "None,NA", "--json"
    )
    assert json.loads(other.stdout)["decided"] < 120 - lacking
    tested = run("test", "policy.json", "people.csv", "--drop-missing", "--json")
    assert json.loads(tested.stdout)["numbers"]["people"] == 120 - lacking


def test_a_policy_that_fills_in_decides_about_everybody(run, tmp_path):
    """People without an income, a city or even a group are decided about, as they were learnt."""
    lines = ["income,city,sex,ok"]
    for i in range(240):
        income = "" if i % 7 == 0 else f"{i * 37 % 50}"
        city = "" if i % 11 == 0 else ("Bern", "Ulm")[i % 3 == 0]
        sex = "" if i % 5 == 0 else "fm"[i % 2]
        lines.append(f"{income},{city},{sex},{int(i * 37 % 50 > 20 + 10 * (i % 3))}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    named = ("--label", "ok", "--group", "sex", "--encode", "--group-use", "decide")
    filled = ("--fill-missing", "income,city,sex", "--save", "policy.json")
    done = run("solve", "people.csv", *named, *filled)
    assert done.exit_code == 0, done.output
    assert "missing (48)" in done.stdout
    decided = run("apply", "policy.json", "people.csv", "--json")
    assert decided.exit_code == 0, decided.output
    assert json.loads(decided.stdout)["decided"] == 240
    tested = run("test", "policy.json", "people.csv", "--json")
    assert json.loads(tested.stdout)["numbers"]["people"] == 240


def test_nothing_means_missing(run, applicants):
    done = run("solve", "people.csv", *MADE, "--encode", "--missing", "", "--save", "policy.json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(run("apply", "policy.json", "people.csv", "--json").stdout)["decided"] == 120


def test_a_group_that_the_policy_does_not_know_is_refused(run, applicants, tmp_path):
    solve = ("solve", "people.csv", *MADE, "--leave-out", "degree", "--group-use", "decide")
    assert run(*solve, "--save", "policy.json").exit_code == 0
    (tmp_path / "new.csv").write_text("sex,score\nf,3\nx,4\n")
    refused = run("apply", "policy.json", "new.csv")
    assert refused.exit_code == 2
    assert "holds 'x', which the policy has never seen; it knows f, m." in refused.stderr
    assert not (tmp_path / "decisions.csv").exists()
    assert run("apply", "policy.json", "new.csv", "--unseen", "ignore").exit_code == 0


def test_json_is_a_flag_and_a_file_has_an_option_of_its_own(run, applicants, tmp_path):
    solve = ("solve", "people.csv", *MADE, "--features", "score", "--save", "policy.json")
    assert run(*solve, "--out", "figures.json").stdout.startswith("A policy chosen on")
    assert run("apply", "--json", "policy.json", "people.csv").stdout.startswith("{")
    done = run("apply", "policy.json", "people.csv", "--json-file", "out.json")
    assert done.stdout.startswith("people.csv")
    for name in ("figures.json", "out.json"):
        assert json.loads((tmp_path / name).read_text())


def test_a_score_is_a_column_of_numbers(run, applicants):
    refused = run(
        "solve",
        "people.csv",
        *MADE,
        "--class",
        "thresholds",
        "--score",
        "degree",
        "--encode",
        "--missing",
        "",
    )
    assert refused.exit_code == 2
    assert "--score degree is a text column" in refused.stderr


# evenhand test


def test_new_people(run, policy, write):
    new = write(make_lending_table(7, 3000), "new.csv")
    done = run("test", policy, new)
    assert done.exit_code == 0, done.output
    document = json.loads(run("test", policy, new, "--json").stdout)
    told = document["numbers"]
    assert told["people"] == 3000
    assert document["verdict"]["status"] == "not shown"
    fpr = next(rate for rate in told["rates"] if rate["symbol"] == "FPR")
    for one in fpr["groups"]:
        assert one["lower"] < one["least"] < one["upper"]
        assert f"{one['least']:.3f}" in done.stdout
    assert f"{told['cost']:.4f}" in done.stdout
    wide = json.loads(run("test", policy, new, "--limit", "0.5", "--json").stdout)
    assert wide["verdict"]["status"] == "within"


def test_a_missing_outcome_is_refused(run, policy, write):
    text = make_lending_table(7, 100).replace(",yes\n", ",\n", 1)
    new = write(text, "new.csv")
    refused = run("test", policy, new)
    assert refused.exit_code == 2
    assert "--drop-unlabelled" in refused.stderr
    assert run("test", policy, new, "--drop-unlabelled").exit_code == 0


def test_a_holdout_of_solve(run, lending):
    done = run("solve", lending, *LENDING, "--holdout", "0.3", "--seed", "4")
    assert done.exit_code == 0, done.output
    assert "On the 360 people who were held out" in done.stdout
    told = json.loads(run("solve", lending, *LENDING, "--holdout", "0.3", "--json").stdout)[
        "numbers"
    ]
    assert told["table"]["people"] == 840
    assert told["holdout"]["people"] == 360
    for wrong in ("0", "1", "1.5"):
        assert "holdout is" in run("solve", lending, *LENDING, "--holdout", wrong).stderr


def test_intervals_cover_and_a_narrower_one_does_not():
    """400 samples of 150 people; all intervals must hold at once in 95% of them. Correct code fails
    with probability below 1e-3 (binomial, 400 trials, p = 0.05, more than 40 misses); intervals of
    half the width miss in most samples, and would be caught always.
    """
    rng = np.random.default_rng(11)
    policy = Mixture((Threshold(0, 0.5, 1), ACCEPT_ALL), (0.7, 0.3))
    truth = {"a": 0.3 + 0.7 * 0.5, "b": 0.3 + 0.7 * 0.3}  # selection rates by construction
    misses = narrow = 0
    for _ in range(400):
        group = rng.choice(["a", "b"], 150)
        high = rng.random(150) < np.where(group == "a", 0.5, 0.3)
        people = LabelledSample(high[:, None] * 1.0, group, rng.choice([-1, 1], 150))
        (rate,) = measure_policy(policy, people, rates="selection", prices=None).rates
        missed = [not one.lower <= truth[one.group] <= one.upper for one in rate.groups]
        gap = abs(truth["a"] - truth["b"])
        missed.append(not rate.gap_interval[0] <= gap <= rate.gap_interval[1])
        misses += any(missed)
        narrow += any(
            abs(truth[one.group] - one.least) > (one.upper - one.lower) / 8 for one in rate.groups
        )
    assert misses <= 40
    assert narrow > 40


def test_a_gate_judges_what_was_asked_for_or_what_the_policy_limits(run, policy, write):
    table = write(make_lending_table(3, 2000))
    words = ("test", policy, table, "--limit", "1", "--gate", "--json")
    for asked, judged in (((), {"FPR"}), (("--rate", "equalized_odds"), {"FPR", "FNR"})):
        answer = json.loads(run(*words, *asked).stdout)
        assert {one["what"].split()[1] for one in answer["verdict"]["findings"]} == judged


def test_a_warning_if_many_rows_go(run, policy, write):
    lines = make_lending_table(7, 100).splitlines(keepends=True)
    cut = [line if i % 3 else "," + line.partition(",")[2] for i, line in enumerate(lines)]
    new = write("".join([lines[0], *cut[1:]]), "new.csv")
    for words in (("test", policy, new), ("certify", policy, new), ("apply", policy, new)):
        done = run(*words, "--drop-missing")
        assert done.exit_code == 0, done.output
        assert "WARNING: 33 of 100 rows (33%) were left out" in " ".join(done.stdout.split())
