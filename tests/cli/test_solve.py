import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import evenhand as eh
from evenhand.cli import main
from evenhand.hypotheses import CLASSES

LIMIT = ("--limit", "0.1")
LENDING = ("--label", "repaid", "--good", "yes", "--group", "group")
COLUMNS = ["income", "credit_score", "debt_ratio", "years_employed", "previous_defaults"]


def arrays(rows, columns=COLUMNS):
    features = np.array([[float(row[c]) for c in columns] for row in rows])
    return (
        features,
        np.array([row["group"] for row in rows]),
        np.where([row["repaid"] == "yes" for row in rows], 1, -1),
    )


def test_the_answer_is_reported_in_words(run, lending):
    result = run("solve", lending, *LENDING, "--limit", "0.05")
    assert result.exit_code == 0
    out = result.stdout
    assert re.search(r"with probability 0\.\d+: accept if credit_score >= \d+", out)
    assert "optimal: no mixture of this class within the limit costs less" in " ".join(out.split())
    assert "not certified for the population" in " ".join(out.split())
    document = json.loads(run("solve", lending, *LENDING, "--limit", "0.05", "--json").stdout)
    rates = document["tables"]["rates"]
    fpr = [n for rate, n in zip(rates["rate"], rates["people"], strict=True) if "positive" in rate]
    assert fpr == [325, 188]
    assert document["tables"]["gaps"]["kept"] == ["kept", "not limited", "not limited"]
    assert document["numbers"]["figures"]["gap_without_limit"] == pytest.approx(0.226, abs=5e-4)
    assert document["numbers"]["figures"]["costs_per_person"]["without_limit"] == pytest.approx(
        0.2583, abs=5e-5
    )


def test_nothing_but_the_answer_on_stdout_and_no_bar_where_nobody_watches(run, lending):
    assert run("solve", lending, *LENDING).stderr == ""


def test_the_saved_policy_is_the_library_s_answer_and_reads_back(
    run, lending, lending_rows, tmp_path
):
    run("solve", lending, *LENDING, "--limit", "0.05", "--save", "policy.json")
    saved = json.loads((tmp_path / "policy.json").read_text())
    features, group, label = arrays(lending_rows)
    sample = eh.LabelledSample(features, group, label)
    problem = eh.Prices().problem(features, group, label)
    solution = eh.solve_fair(problem, eh.Stumps(), eh.FalsePositiveRate(), sample, 0.05)
    policy = eh.hypotheses.policy_from_json(saved["policy"])
    assert np.array_equal(policy.acceptance(features), solution.acceptance)
    assert saved["columns"] == COLUMNS
    assert saved["cost_per_person"] == solution.cost / len(label)
    assert saved["figures"]["lower_bound_per_person"] == solution.lower_bound / len(label)
    assert saved["figures"]["gaps"] == {"FPR b minus a": solution.gaps[0]}
    fpr = {g: policy.acceptance(features)[(group == g) & (label == -1)].mean() for g in "ab"}
    assert saved["figures"]["rates"]["FPR"] == pytest.approx(fpr)
    assert saved["note"].startswith("These rates are measured on this table")


@pytest.mark.parametrize("kind", ["stumps", "linear", "tree", "logistic"])
def test_every_class_solves_saves_and_keeps_the_limit(run, lending, lending_rows, tmp_path, kind):
    result = run("solve", lending, *LENDING, "--class", kind, "--limit", "0.04", "--save", "p.json")
    assert result.exit_code == 0
    saved = json.loads((tmp_path / "p.json").read_text())
    features, group, label = arrays(lending_rows)
    acceptance = eh.hypotheses.policy_from_json(saved["policy"]).acceptance(features)
    rates = [acceptance[(group == g) & (label == -1)].mean() for g in "ab"]
    assert abs(rates[0] - rates[1]) <= 0.04 + 1e-12
    assert (saved["figures"]["lower_bound_per_person"] is None) == (kind != "stumps")
    assert ("There is no lower bound" in result.stdout) == (kind != "stumps")


def test_thresholds_use_one_column_and_one_cut_per_group_only_when_the_group_may_decide(
    run, lending, tmp_path
):
    common = (
        "solve",
        lending,
        *LENDING,
        "--class",
        "thresholds",
        "--score",
        "credit_score",
        "--limit",
        "0.02",
    )
    assert "group a: accept" not in run(*common).stdout
    per_group = run(*common, "--group-use", "decide", "--save", "p.json")
    assert "The group may influence the decision" in per_group.stdout
    saved = json.loads((tmp_path / "p.json").read_text())
    assert saved["columns"] == ["credit_score"]
    assert saved["group"]["use"] == "decide"
    assert saved["class"]["per_group"] is True


def test_equalised_odds(run, lending, tmp_path):
    run(
        "solve",
        lending,
        *LENDING,
        "--rate",
        "fpr",
        "--rate",
        "fnr",
        "--rate",
        "fpr",
        "--limit",
        "0.03",
        "--save",
        "p.json",
    )
    saved = json.loads((tmp_path / "p.json").read_text())
    assert saved["limited_rates"] == ["FPR", "FNR"]
    assert max(map(abs, saved["figures"]["gaps"].values())) <= 0.03 + 1e-12


def test_the_paper_s_recipe(run, lending):
    out = run(
        "solve",
        lending,
        *LENDING,
        "--method",
        "saddle-point",
        "--limit",
        "0.1",
        "--group-use",
        "decide",
    ).stdout
    assert "saddle-point" in out
    assert "searches by a heuristic" not in out


def test_prices_are_numbers_or_columns(run, write, lending_rows, tmp_path):
    lines = ["score,amount,group,repaid"]
    lines += [
        f"{r['credit_score']},{500 + 10 * i},{r['group']},{r['repaid']}"
        for i, r in enumerate(lending_rows[:300])
    ]
    data = write("\n".join(lines))
    priced = (
        "--features",
        "score",
        "--price-false-accept",
        "amount",
        "--price-false-reject",
        "250.5",
    )
    result = run("solve", data, *LENDING, *priced, "--save", "p.json")
    assert "cost per person" in result.stdout
    saved = json.loads((tmp_path / "p.json").read_text())
    accepted = eh.hypotheses.policy_from_json(saved["policy"]).acceptance(
        [[float(r["credit_score"])] for r in lending_rows[:300]]
    )
    bad = np.array([r["repaid"] == "no" for r in lending_rows[:300]])
    expected = np.where(bad, accepted * (500 + 10 * np.arange(300)), (1 - accepted) * 250.5).mean()
    assert saved["cost_per_person"] == pytest.approx(expected)


def test_text_columns_are_encoded_on_demand(run, write, tmp_path):
    rows = [
        f"{i % 7},{('car', 'house', 'boat')[i % 3]},{'yn'[i % 2]},{'ab'[i // 30]},{i * 7 % 5 < 3:d}"
        for i in range(60)
    ]
    data = write("n,purpose,owner,g,y\n" + "\n".join(rows))
    result = run("solve", data, "--label", "y", "--group", "g", "--encode", "--save", "p.json")
    assert result.exit_code == 0
    assert "encoded: purpose as 3 columns" in result.stdout
    saved = json.loads((tmp_path / "p.json").read_text())
    assert saved["columns"] == ["n", "purpose=boat", "purpose=car", "purpose=house", "owner"]
    assert saved["encoded_columns"] == {
        "purpose": ["purpose=boat", "purpose=car", "purpose=house"],
    }


def test_three_groups_and_a_choice_of_two(run, write):
    data = write(
        "x,g,y\n" + "\n".join(f"{i * 13 % 17},{'abc'[i % 3]},{i * 5 % 7 > 3:d}" for i in range(120))
    )
    everyone = run("solve", data, "--label", "y", "--group", "g").stdout
    assert re.search(r"^c +0\.\d{3} +\d+$", everyone, flags=re.M)
    two = run("solve", data, "--label", "y", "--group", "g", "--groups", "a,c").stdout
    assert "a (40), c (40)" in two
    assert "left out: 40 rows" in two
    assert "group b" not in two


def test_max_calls(run, lending, tmp_path):
    run("solve", lending, *LENDING, "--class", "linear", "--max-calls", "3", "--save", "p.json")
    assert json.loads((tmp_path / "p.json").read_text())["figures"]["oracle_calls"] == 3


@pytest.mark.parametrize(
    "start", [["-m", "evenhand"], ["-c", "from evenhand.cli import main; main()"]]
)
def test_as_a_real_process(start, lending, tmp_path: Path):
    command = [sys.executable, *start, "solve", str(lending), *LENDING, "--save", "policy.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "with probability" in done.stdout
    assert json.loads((tmp_path / "policy.json").read_text())["limit"] == 0.05


def test_the_help_explains_every_class():
    listed = CliRunner().invoke(main, ["solve", "--help"]).output.split("The classes\n", 1)[1]
    explained = re.findall(r"^ {4}(\w+) {2,}\w", listed.split("\n\n", 1)[0], flags=re.M)
    assert sorted(explained) == sorted(CLASSES)


def test_a_certificate_of_one_table_is_written_as_a_page(run, lending, tmp_path):
    page = tmp_path / "page.md"
    words = (*LENDING, "--limit", "0.1", "--out", page)
    assert run("solve", lending, *words).exit_code == 0
    assert "Certified with probability" not in page.read_text()
    assert "not certified for the population" in page.read_text()
    answer = run("solve", lending, *words, "--certify", "0.05")
    assert answer.exit_code == 0, answer.output
    text = page.read_text()
    assert "Certified with probability at least 0.95" in text
    assert "good outcome: repaid = yes" in text
    assert hashlib.sha256(lending.read_bytes()).hexdigest() in text


def test_a_group_of_one_person_names_the_option(run, write):
    rows = [f"{i % 2},{'fm'[i // 2 % 2]},{i}" for i in range(80)]
    path = write("\n".join(["repaid,sex,income", *rows, "1,x,5"]))
    result = run("solve", path, "--label", "repaid", "--group", "sex", *LIMIT)
    assert result.exit_code == 2
    assert "group 'x' has 1 person" in result.stderr
    assert "--groups" in result.stderr
    kept = run("solve", path, "--label", "repaid", "--group", "sex", "--groups", "f,m", *LIMIT)
    assert kept.exit_code == 0


@pytest.mark.parametrize("filled", ["all", "all,income", "income,all", "all,sex"])
def test_all_fills_every_feature_and_the_group_alone_and_in_a_list(run, write, filled):
    rows = [
        f"{i % 2},{'' if i % 9 == 0 else 'fm'[i // 2 % 2]},{'' if i % 5 == 0 else i},"
        f"{'' if i % 7 == 0 else i % 3}"
        for i in range(160)
    ]
    path = write("\n".join(["repaid,sex,income,children", *rows]))
    words = ("--label", "repaid", "--group", "sex", "--limit", "0.5", "--save", "p.json")
    solved = run("solve", path, *words, "--fill-missing", filled)
    assert solved.exit_code == 0, solved.output
    saved = json.loads(Path("p.json").read_text())
    assert set(saved["figures"]["rates"]["FPR"]) == {"f", "m", "missing"}
    assert {"income missing", "children missing"} <= set(saved["columns"])
    wrong = run("solve", path, *words, "--fill-missing", f"{filled},incme")
    assert wrong.exit_code == 2
    assert "incme" in wrong.stderr
