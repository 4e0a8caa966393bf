"""`evenhand explain` and `apply --reasons`: reasons, the institution's words, bad input."""

import csv
import json

import numpy as np
import pytest
from tests.cli.conftest import LENDING

from evenhand.cli.demo import make_lending_table

WORDS = """
fixed = ["previous_defaults"]

[[reason]]
column = "credit_score"
direction = "low"
code = "R01"
text = "The credit score is low."
"""


@pytest.fixture
def policy(run, lending, tmp_path):
    path = tmp_path / "p.json"
    assert run("solve", lending, *LENDING, "--limit", "0.05", "--save", path).exit_code == 0
    return path


@pytest.fixture
def new(write):
    return write(make_lending_table(7, 300), "new.csv")


@pytest.fixture
def words(write):
    return write(WORDS, "words.toml")


def test_the_shares_add_up_and_the_text_names_the_reference(run, policy, new, lending):
    asked = ("explain", policy, new, "--row", "3", "--row", "5", "--reference", lending)
    answer = run(*asked, "--json")
    assert answer.exit_code == 0, answer.output
    people = json.loads(answer.stdout)["numbers"]["people"]
    assert [one["row"] for one in people] == [3, 5]
    for one in people:
        shares = sum(reason["share"] for reason in one["reasons"])
        assert shares == pytest.approx(one["probability"] - one["reference_probability"])
        assert one["compared_with"] == 1200
        assert one["standard_error"] == 0
    text = " ".join(run(*asked).output.split())
    assert "Compared with 1,200 people (lending.csv)" in text
    assert "Probability of being accepted" in text


def test_a_category_is_one_column(run, write, tmp_path):
    lines = ["city,score,sex,repaid"]
    for i in range(240):
        city = ("Ulm", "Bern", "Graz")[i % 3]
        good = (city == "Bern") ^ (i % 7 == 0)
        lines.append(f"{city},{500 + i},{'fm'[i % 2]},{'yes' if good else 'no'}")
    table = write("\n".join(lines) + "\n", "cities.csv")
    out = tmp_path / "p.json"
    solved = run(
        *("solve", table, "--label", "repaid", "--good", "yes", "--group", "sex", "--encode"),
        *("--limit", "0.9", "--save", out),
    )
    assert solved.exit_code == 0, solved.output
    answer = run("explain", out, table, "--row", "1", "--json")
    assert answer.exit_code == 0, answer.output
    (person,) = json.loads(answer.stdout)["numbers"]["people"]
    assert [one["column"] for one in person["reasons"]] == ["city"]
    assert person["reasons"][0]["value"] == "Ulm"
    assert person["change"]["then"] == ["Bern"]
    assert (person["change"]["before"], person["change"]["after"]) == (0.0, 1.0)


def test_the_institution_s_words_and_the_figure(run, policy, new, words, tmp_path):
    rejected = [
        str(one["row"])
        for one in json.loads(run("explain", policy, new, "--json").stdout)["numbers"]["people"]
        if any(r["column"] == "credit_score" and r["share"] < 0 for r in one["reasons"])
    ]
    figure = tmp_path / "f.svg"
    answer = run("explain", policy, new, "--row", rejected[0], "--words", words, "--out", figure)
    assert answer.exit_code == 0, answer.output
    told = " ".join(answer.output.split())
    assert "The credit score is low." in told
    assert "R01" in told
    assert figure.read_text().startswith("<?xml")


def test_without_a_choice_the_first_ten_are_explained(run, policy, new):
    answer = run("explain", policy, new)
    assert answer.exit_code == 0, answer.output
    assert "Row 10" in answer.output
    assert "Row 11" not in answer.output
    assert "290 more people" in answer.output


def test_above_asks_for_a_larger_change(run, policy, new):
    answer = run("explain", policy, new, "--above", "0.99", "--json")
    assert answer.exit_code == 0, answer.output
    for one in json.loads(answer.stdout)["numbers"]["people"]:
        assert one["change"] is None or one["change"]["after"] > 0.99


def test_apply_writes_the_reasons_of_those_who_are_not_accepted(run, policy, new, words, tmp_path):
    out = tmp_path / "d.csv"
    asked = ("apply", policy, new, "--reasons", "--words", words, "--out", out)
    answer = run(*asked, "--most-reasons", "1")
    assert answer.exit_code == 0, answer.output
    told = "probability, decision, reasons and reasons_error are new"
    assert told in " ".join(answer.output.split())
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 300
    assert all((row["reasons"] == "") == (row["decision"] == "1") for row in rows)
    assert any("R01 The credit score is low." in row["reasons"] for row in rows)
    assert {row["reasons_error"] for row in rows} == {"", "exact"}
    plain = run("apply", policy, new, "--out", out)
    assert plain.exit_code == 0
    with out.open(newline="") as file:
        assert "reasons" not in next(csv.reader(file))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--row", "999"), "--row is 999"),
        (("--above", "1"), "above is 1.0"),
        (("--protected", "age"), "looks at no column 'age'"),
        (("--fixed", "age"), "looks at no column 'age'"),
        (("--reference", "none.csv"), "none.csv"),
        (("--words", "none.toml"), "none.toml"),
        (("--words", "bad.toml"), "no TOML"),
        (("--words", "group.toml"), "which is the group and protected"),
        (("--words", "credit.toml", "--protected", "credit_score"), "protected column"),
        (("--words", "strange.toml"), "no such column"),
    ],
)
def test_bad_input_is_a_sentence(run, policy, new, write, asked, message):
    write("[[reason]", "bad.toml")
    write('[[reason]]\ncolumn = "group"\ntext = "x"\n', "group.toml")
    write('[[reason]]\ncolumn = "credit_score"\ntext = "x"\n', "credit.toml")
    write('[[reason]]\ncolumn = "height"\ntext = "x"\n', "strange.toml")
    answer = run("explain", policy, new, *asked)
    assert answer.exit_code == 2, answer.output
    assert message in " ".join(answer.output.split())


def test_one_person_needs_others_to_be_compared_with(run, policy, new, write):
    head, first, *_ = new.read_text().splitlines()
    lone = write(f"{head}\n{first}\n", "lone.csv")
    answer = run("explain", policy, lone)
    assert answer.exit_code == 2
    assert "--reference loans.csv" in answer.output
    assert run("explain", policy, lone, "--reference", new).exit_code == 0
    refused = run("apply", policy, new, "--words", new)
    assert refused.exit_code == 2
    assert "belong to --reasons" in refused.output


def test_the_score_of_a_linear_policy_is_explained_and_says_so(run, lending, new, tmp_path):
    """Against all 1,200 people, whatever the seed."""
    path = tmp_path / "linear.json"
    solved = run("solve", lending, *LENDING, "--limit", "0.9", "--class", "linear", "--save", path)
    assert solved.exit_code == 0, solved.output
    told = [
        run("explain", path, new, "--reference", lending, "--json", "--seed", seed).stdout
        for seed in ("0", "1")
    ]
    both = [json.loads(one)["numbers"] for one in told]
    assert both[0] == both[1]
    people = json.loads(told[0])["numbers"]["people"]
    assert {one["unit"] for one in people} == {"score"}
    assert all(one["standard_error"] == 0.0 for one in people)
    text = " ".join(run("explain", path, new, "--reference", lending, "--row", "1").output.split())
    assert "in standard deviations of the score among these people" in text


@pytest.mark.thorough
def test_the_reasons_of_a_model_come_with_progress_and_their_error(run, tmp_path, write):
    """A tree on so many columns that not all subsets are asked about; the seed has effect; and a
    column that the law may protect comes with a warning.
    """
    draw = np.random.default_rng(0)
    x = draw.normal(size=(3000, 9)).round(3)
    names = [*(f"x{j}" for j in range(8)), "Familienstand"]
    good = x.sum(axis=1) + x[:, 8] + draw.normal(size=3000) > 0
    rows = [
        f"{','.join(map(str, row))},{'fm'[i % 2]},{'yes' if good[i] else 'no'}"
        for i, row in enumerate(x)
    ]
    head = f"{','.join(names)},sex,repaid"
    table = write("\n".join([head, *rows]) + "\n", "people.csv")
    few = write("\n".join([head, *rows[:5]]) + "\n", "few.csv")
    path = tmp_path / "tree.json"
    solved = run(
        *("solve", table, "--label", "repaid", "--good", "yes", "--group", "sex"),
        *("--limit", "0.9", "--class", "tree", "--save", path),
    )
    assert solved.exit_code == 0, solved.output
    out = tmp_path / "d.csv"
    answer = run("apply", path, few, "--reasons", "--reference", table, "--out", out)
    assert answer.exit_code == 0, answer.output
    assert "reasons ..." in answer.stderr
    warned = " ".join(answer.stdout.split())
    assert "name 'Familienstand', which is marital status" in warned
    with out.open(newline="") as file:
        said = [row["reasons_error"] for row in csv.DictReader(file) if row["reasons"]]
    assert any("standard error" in one for one in said)
    asked = ("explain", path, few, "--reference", table, "--row", "1", "--json", "--seed")
    one, other = (json.loads(run(*asked, seed).stdout)["numbers"]["people"] for seed in ("0", "1"))
    assert [each["probability"] for each in one] == [each["probability"] for each in other]
    assert one != other
