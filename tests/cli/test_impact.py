"""`evenhand impact`: the table of Local Law 144, its intersections, and its gate."""

import json

import pytest
from click.testing import CliRunner

from evenhand.cli import main

ROWS = "sex,race,hired,fit\n" + "".join(
    f"{sex},{race},{hired},{i}\n"
    for i, (sex, race, hired) in enumerate(
        [("f", "x", "no"), ("f", "y", "yes"), ("m", "x", "yes"), ("m", "y", "yes")] * 25
        + [("", "x", "yes"), ("?", "y", "no")]
    )
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "applicants.csv"
    path.write_text(ROWS)
    return path


def run(*words):
    return CliRunner().invoke(main, ["impact", *map(str, words)])


NAMED = ("--selected", "hired", "--accepted", "yes", "--group", "sex")


def test_by_sex_and_both(table):
    answer = run(table, *NAMED, "--group", "race")
    assert answer.exit_code == 0, answer.output
    assert "Sex x race" in answer.output
    assert "0.500" in answer.output
    assert "of unknown sex" in " ".join(answer.output.split())


def test_scores_and_json(table):
    answer = run(table, "--score", "fit", "--group", "race", "--json")
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.output)
    assert document["numbers"]["cutoff"] == 50.5
    assert document["tables"]["categories"]["group"] == ["x", "y"]


def test_the_gate_is_red_below_four_fifths(table):
    assert run(table, *NAMED, "--gate").exit_code == 1
    assert run(table, *NAMED, "--gate", "--least-ratio", "0.2").exit_code == 0
    assert run(table, "--score", "fit", "--group", "race", "--gate").exit_code == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--group", "sex"), "selections or about scores"),
        (("--selected", "hired", "--score", "fit", "--group", "sex"), "one of them"),
        (("--selected", "hired", "--group", "sex"), "Option: --accepted"),
        ((*NAMED, "--reference", "q"), "no category"),
    ],
)
def test_what_is_missing_is_said(table, words, message):
    answer = run(table, *words)
    assert answer.exit_code == 2
    assert message in answer.output


def test_a_description_names_the_category(tmp_path):
    (tmp_path / "d.csv").write_text("sex,hired,good\n" + "f,1,1\nf,0,0\nm,1,1\nm,1,0\n" * 40)
    described = tmp_path / "d.toml"
    described.write_text('path = "d.csv"\nlabel = "good"\ngroup = "sex"\n')
    answer = CliRunner().invoke(main, ["impact", str(described), "--selected", "hired"])
    assert answer.exit_code == 0, answer.output
    assert "Sex" in answer.output


def test_a_selection_that_does_harm_is_named_by_its_rejections(table):
    answer = run(table, "--selected", "hired", "--rejected", "yes", "--group", "race")
    assert answer.exit_code == 0, answer.output
    assert "selected: hired = no; rejected: yes" in answer.output


def test_a_table_of_selected_people_alone_says_whom_it_speaks_of(table):
    assert "speak of selected people only" not in " ".join(run(table, *NAMED).output.split())
    table.write_text("\n".join(row for row in ROWS.splitlines() if ",no," not in row))
    assert "speak of selected people only" in " ".join(run(table, *NAMED).output.split())
