"""`evenhand certify` and `evenhand solve --certify`: a certificate from one table."""

import json

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
    words = ("--certify", "0.05", "--limit", "0.1", "--out", policy)
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
    assert "SR of all people" in answer.output
    refused = run("solve", lending, *LENDING, "--no-coins")
    assert refused.exit_code == 2
    assert "--certify 0.05" in refused.output
    assert run("solve", lending, *LENDING, "--certify", "0.05", "--ceiling", "x").exit_code == 2


def test_a_policy_is_certified_on_other_people(run, lending, others, tmp_path):
    policy = tmp_path / "p.json"
    mended = tmp_path / "mended.json"
    assert run("solve", lending, *LENDING, "--limit", "0.05", "--out", policy).exit_code == 0
    answer = run("certify", policy, others, "--limit", "0.05", "--out", mended, "--gate")
    assert answer.exit_code in (0, 1, 3), answer.output
    assert "The policy as it is" in answer.output
    again = run("certify", mended, others, "--limit", "0.05", "--gate")
    assert again.exit_code == 0, again.output
    document = run("certify", policy, others, "--json")
    assert json.loads(document.output)["certified_on"] == 1500


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
    answer = run("solve", partial, *LENDING, *words, "--drop-unlabelled", "--out", policy)
    assert answer.exit_code == 0, answer.output
    assert "WARNING: 400 people without a label" in answer.output
    assert "Certified for people like those with a label" in answer.output
    assumptions = json.loads(policy.read_text())["certificate"]["assumptions"]
    assert any("400 people without a label" in one for one in assumptions)
    again = run("certify", policy, partial, "--drop-unlabelled", "--json")
    assert any(
        "400 people" in one for one in json.loads(again.output)["certificate"]["assumptions"]
    )
    complete = run("solve", lending, *LENDING, *words)
    assert "Certified for the population" in complete.output
    assert "without a label" not in complete.output
