"""`evenhand certify` and `evenhand solve --certify`: a certificate from one table."""

import json

import numpy as np
import pytest
from tests.cli.conftest import LENDING

from evenhand.cli.demo import make_lending_table
from evenhand.fairness.certificate import Certificate


@pytest.fixture
def others(tmp_path):
    path = tmp_path / "others.csv"
    path.write_text(make_lending_table(11, 1500))
    return path


def test_solve_certifies_and_the_policy_can_be_applied(run, lending, others, tmp_path):
    policy = tmp_path / "certified.json"
    words = ("--certify", "0.05", "--limit", "0.1", "--save", policy)
    answer = run("solve", lending, *LENDING, *words)
    assert answer.exit_code == 0, answer.output
    assert "Certified with probability at least 0.95" in answer.output
    document = json.loads(policy.read_text())
    certificate = Certificate.from_json(document["certificate"])
    assert certificate.limit == 0.1
    assert run("apply", policy, others, "--out", tmp_path / "d.csv").exit_code == 0
    tested = run("test", policy, others, "--gate")
    assert tested.exit_code in (0, 3), tested.output


def test_no_coins_and_ceilings(run, lending):
    words = ("--certify", "0.05", "--limit", "0.3", "--no-coins", "--ceiling", "selection=0.8")
    answer = run("solve", lending, *LENDING, *words)
    assert answer.exit_code == 0, answer.output
    assert "always:" in answer.output
    assert "of all people at most" in words_of(answer.output)
    refused = run("solve", lending, *LENDING, "--no-coins")
    assert refused.exit_code == 2
    assert "--certify 0.05" in refused.output
    assert run("solve", lending, *LENDING, "--certify", "0.05", "--ceiling", "x").exit_code == 2


def test_a_policy_is_certified_on_other_people(run, lending, others, tmp_path):
    policy = tmp_path / "p.json"
    mended = tmp_path / "mended.json"
    assert run("solve", lending, *LENDING, "--limit", "0.05", "--save", policy).exit_code == 0
    answer = run("certify", policy, others, "--limit", "0.05", "--save", mended, "--gate")
    assert answer.exit_code in (0, 1, 3), answer.output
    assert "as it was handed in" in answer.output
    again = run("certify", mended, others, "--limit", "0.05", "--gate")
    assert again.exit_code == 0, again.output
    document = run("certify", policy, others, "--json")
    assert json.loads(document.output)["numbers"]["certified_on"] == 1500


def test_a_certificate_from_people_with_a_label_says_so(run, lending, tmp_path):
    """Who was rejected has no outcome, so the table is no sample of the applicants: the claim, the
    assumptions and the file say it, and without such people nothing is said.
    """
    header, *rows = lending.read_text().splitlines()
    label = header.split(",").index("repaid")
    partial = tmp_path / "partial.csv"
    blanked = []
    for i, row in enumerate(rows):
        cells = row.split(",")
        if i % 3 == 0:
            cells[label] = ""
        blanked.append(",".join(cells))
    partial.write_text("\n".join([header, *blanked]) + "\n")
    policy = tmp_path / "p.json"
    words = ("--certify", "0.05", "--limit", "0.2")
    answer = run("solve", partial, *LENDING, *words, "--drop-unlabelled", "--save", policy)
    assert answer.exit_code == 0, answer.output
    assert "WARNING: 400 people without a label" in answer.output
    assert "certified for people like those with a label" in words_of(answer.output)
    assumptions = json.loads(policy.read_text())["certificate"]["assumptions"]
    assert any("400 people without a label" in one for one in assumptions)
    again = run("certify", policy, partial, "--drop-unlabelled", "--json")
    assert any(
        "400 people" in one
        for one in json.loads(again.output)["numbers"]["certificate"]["assumptions"]
    )
    complete = run("solve", lending, *LENDING, *words)
    assert "certified for the population" in words_of(complete.output)
    assert "without a label" not in complete.output


def crowd(path, seed=2, people=3000):
    """Five groups, of which three are small: within a limit of .05 nearly everybody is rejected."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=people)
    group = rng.choice(list("abcde"), people, p=[0.5, 0.2, 0.1, 0.1, 0.1])
    good = rng.random(people) < 1 / (1 + np.exp(-(1.0 + 1.5 * score)))
    rows = (
        f"{x:.6f},{g},{'yes' if y else 'no'}" for x, g, y in zip(score, group, good, strict=True)
    )
    path.write_text("\n".join(["score,region,repaid", *rows]) + "\n")
    return path


CROWD = ("--label", "repaid", "--good", "yes", "--group", "region")
STRICT = (*CROWD, "--rate", "fnr", "--limit", "0.05", "--price-false-accept", "3")


def words_of(text):
    return " ".join(text.split())


def test_every_medium_says_how_many_are_accepted_and_what_is_gained(run, tmp_path):
    table = crowd(tmp_path / "loans.csv")
    policy, page, card = (tmp_path / name for name in ("p.json", "page.html", "card.md"))
    asked = ("solve", table, *STRICT, "--certify", "0.05")
    printed = run(*asked, "--save", policy, "--out", page)
    assert printed.exit_code == 0, printed.output
    assert run(*asked, "--out", card).exit_code == 0
    document = json.loads(run(*asked, "--json").output)
    found = Certificate.from_json(json.loads(policy.read_text())["certificate"]).acceptance
    assert document["numbers"]["certificate"]["acceptance"] == found.to_json()
    assert found.share() < 0.15
    assert found.share(label=1) < 0.2
    for text in (printed.output, page.read_text(), card.read_text()):
        for sentence in found.sentences:
            assert sentence in words_of(text)
    for text in (page.read_text(), card.read_text()):
        assert "Whom it accepts, of the people who certified it" in words_of(text)
        assert f"{found.share('e', 1):.1%}" in text
    others = crowd(tmp_path / "others.csv", seed=3)
    told = run("certify", policy, others, "--json")
    again = json.loads(told.output)["numbers"]["certificate"]["acceptance"]
    assert sum(one["people"] for one in again["counts"]) == 3000
    tested = run("test", policy, others)
    measured = json.loads(run("test", policy, others, "--json").output)["numbers"]["acceptance"]
    assert measured["use"] in ("gain", "within chance", "no gain")
    assert f"It accepts {measured['share']:.1%} of these 3,000 people" in words_of(tested.output)
    assert run("test", policy, others, "--out", page).exit_code == 0
    assert f"It accepts {measured['share']:.1%} of these 3,000 people" in words_of(page.read_text())


def test_a_constant_is_not_handed_over_without_a_word(run, tmp_path):
    table = crowd(tmp_path / "loans.csv")
    page = tmp_path / "page.html"
    policy = tmp_path / "p.json"
    asked = ("solve", table, *STRICT, "--certify", "0.05", "--no-coins")
    printed = run(*asked, "--out", page, "--save", policy)
    assert printed.exit_code == 0, printed.output
    nothing = "Nothing was learned, and nothing gained: the policy rejects all applicants."
    assert words_of(printed.output).index(nothing) < words_of(printed.output).index(
        "Certified with"
    )
    assert words_of(page.read_text()).index(nothing) < words_of(page.read_text()).index(
        "Certified with"
    )
    assert json.loads(policy.read_text())["note"].startswith(nothing)
    tested = run("test", policy, crowd(tmp_path / "others.csv", seed=3))
    assert nothing in words_of(tested.output)


@pytest.mark.parametrize("command", ["test", "certify"])
def test_which_rate_a_policy_file_limits_is_not_guessed(run, lending, others, tmp_path, command):
    policy = tmp_path / "policy.json"
    run("solve", lending, *LENDING, "--limit", "0.2", "--save", policy)
    document = json.loads(policy.read_text())
    del document["limited_rates"]
    policy.write_text(json.dumps(document))
    silent = run(command, policy, others, "--gate")
    assert silent.exit_code == 2
    assert "does not say which rate" in silent.output
    assert "--rate" in silent.output
    assert run(command, policy, others, "--rate", "fpr").exit_code == 0
