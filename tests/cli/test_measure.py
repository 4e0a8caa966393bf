"""`evenhand measure` reads other people's decisions, and guesses nothing."""

import json

import pytest
from click.testing import CliRunner

from evenhand.cli import main

ROWS = (
    "sex,approved,repaid\n"
    + "f,yes,yes\nf,yes,no\nf,no,\nf,no,\n" * 20
    + "m,yes,yes\nm,yes,yes\nm,yes,no\nm,no,\n" * 20
)
NAMED = ("--decision", "approved", "--accepted", "yes", "--group", "sex")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_text(ROWS)
    return path


def run(*words):
    return CliRunner().invoke(main, ["measure", *map(str, words)])


def test_the_rates_of_decisions_alone(table):
    answer = run(table, *NAMED)
    assert answer.exit_code == 0, answer.output
    (rate,) = json.loads(run(table, *NAMED, "--json").output)["numbers"]["rates"]
    assert (rate["symbol"], rate["gap"]) == ("SR", 0.25)  # other rates need outcomes
    assert "0.250" in answer.output


def test_one_sided_outcomes_are_shown_as_ranges_and_saved(table, tmp_path):
    out = tmp_path / "measured.json"
    answer = run(table, *NAMED, "--outcome", "repaid", "--good", "yes", "--out", out)
    assert answer.exit_code == 0, answer.output
    assert "0.333 to 1.000" in answer.output  # 20 of 20 + 40 unknown, or of 20
    assert "not determined" in answer.output
    rates = {rate["symbol"]: rate for rate in json.loads(out.read_text())["numbers"]["rates"]}
    assert rates["SR"]["gap"] == 0.25
    assert rates["FPR"]["gap"] is None
    assert [group["events"] for group in rates["PPV"]["groups"]] == [20, 40]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--decision", "approved", "--group", "sex"), "Option: --accepted"),
        (("--decision", "granted", "--group", "sex"), "no column 'granted'"),
        ((*NAMED, "--outcome", "repaid"), "Option: --good"),
        ((*NAMED, "--accepted", "certainly"), "does not occur in the decision column"),
        ((*NAMED, "--rate", "fpr"), "need outcomes"),
        ((*NAMED, "--delta", "2"), "did you mean 0.02?"),
    ],
)
def test_what_cannot_be_known_is_refused(table, words, message):
    answer = run(table, *words)
    assert answer.exit_code == 2
    assert message in answer.output


def test_missing_decisions_are_refused_or_left_out(tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_text(ROWS + "f,,\n")
    refused = run(path, *NAMED)
    assert refused.exit_code == 2
    assert "--drop-missing" in refused.output
    taken = run(path, *NAMED, "--drop-missing")
    assert taken.exit_code == 0
    assert "left out: 1 row without" in taken.output


def test_a_warning_if_many_rows_go(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("sex,hired\n" + "f,1\nm,0\n,1\n" * 20)
    words = ["measure", str(path), "--decision", "hired", "--group", "sex", "--drop-missing"]
    said = CliRunner().invoke(main, words).stdout
    assert "WARNING: 20 of 60 rows (33%) were left out" in " ".join(said.split())


def test_all_that_stands_in_the_way_is_said_at_once(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("sex,hired,worked\n" + "f,yes,well\nm,no,badly\n,yes,well\n" * 20)
    words = ["measure", str(path), "--decision", "hired", "--group", "sex", "--outcome", "worked"]
    said = CliRunner().invoke(main, words).output
    assert "3 things stand in the way" in said
    for option in ("--drop-missing", "--accepted", "--good"):
        assert option in said
    words = ["impact", str(path), "--selected", "hired", "--group", "sex", "--accepted", "maybe"]
    assert "does not occur" in CliRunner().invoke(main, words).output


def test_a_description_names_the_group_and_the_outcome(table, tmp_path):
    described = tmp_path / "decisions.toml"
    described.write_text('path = "decisions.csv"\nlabel = "repaid"\ngood = "yes"\ngroup = "sex"\n')
    words = ("--decision", "approved", "--accepted", "yes", "--json")
    by_description = run(described, *words)
    assert by_description.exit_code == 0, by_description.output
    named = run(table, *words, "--group", "sex", "--outcome", "repaid", "--good", "yes")
    both = [json.loads(one.output)["numbers"] for one in (by_description, named)]
    assert both[0] == both[1]
    assert run(table, *words).exit_code == 2  # rows alone do not say it


def test_a_limit_is_judged_in_words_without_a_gate(table):
    answer = run(table, *NAMED, "--limit", "0.01")
    assert answer.exit_code == 0  # the exit code is --gate's
    assert "ABOVE what is allowed" in answer.output
    assert "what is allowed" not in run(table, *NAMED).output
    once = run(table, *NAMED, "--limit", "0.01", "--gate")
    assert once.exit_code == 1
    assert once.output.count("ABOVE what is allowed") == 1


def test_each_table_says_whom_it_counts_and_what_it_compares(table):
    known = ("--outcome", "repaid", "--good", "yes")
    assert "good outcomes" in run(table, *NAMED, *known, "--rate", "fnr").output
    assert "bad outcomes" in run(table, *NAMED, *known, "--rate", "fpr").output
    for compared, columns in (("difference", {"difference"}), ("both", {"difference", "ratio"})):
        answer = run(table, *NAMED, "--compare", compared, "--json")
        pairs = json.loads(answer.output)["tables"]["pairs"]
        assert set(pairs) & {"difference", "ratio"} == columns


def test_a_decision_that_does_harm_is_named_by_its_rejections(tmp_path):
    path = tmp_path / "stops.csv"
    path.write_text("sex,cited\n" + "f,YES\nf,NO\n" * 20 + "m,YES\nm,NO\nm,NO\nm,NO\n" * 20)
    answer = run(
        path, "--decision", "cited", "--rejected", "YES", "--group", "sex", "--pair", "m:f"
    )
    assert answer.exit_code == 0, answer.output
    assert "accepted: cited = NO; rejected: YES" in answer.output
    words = ("--decision", "cited", "--rejected", "YES", "--group", "sex", "--pair", "m:f")
    document = json.loads(run(path, *words, "--json").output)
    assert document["numbers"]["accepted"] == 80
    pairs = document["tables"]["pairs"]
    assert (pairs["group"], pairs["against"]) == (["m"], ["f"])


def test_who_watches_reads_what_holds_at_all_looks(table, tmp_path):
    """Every interval is that of a sequence, and text and JSON say so in the same words."""
    out = tmp_path / "measured.json"
    answer = run(table, *NAMED, "--watch", "--out", out)
    assert answer.exit_code == 0, answer.output
    found = json.loads(out.read_text())["numbers"]
    assert found["meaning"] in " ".join(answer.output.split())
    for words in ("all looks", "groups that turn up later", "rates of single groups", "no row"):
        assert words in found["meaning"]
    once = tmp_path / "once.json"
    assert run(table, *NAMED, "--out", once).exit_code == 0
    looks = (
        found["rates"][0]["groups"],
        json.loads(once.read_text())["numbers"]["rates"][0]["groups"],
    )
    for watched, measured in zip(*looks, strict=True):
        assert watched["lower"] < measured["lower"] < measured["upper"] < watched["upper"]


def test_decisions_about_accepted_people_alone_say_whom_they_speak_of(tmp_path):
    """No cell is empty: the rows of the rejected are simply not there."""
    path = tmp_path / "accepted.csv"
    path.write_text("sex,approved,repaid\n" + "f,yes,yes\nf,yes,no\nm,yes,yes\nm,yes,yes\n" * 20)
    words = ("--decision", "approved", "--accepted", "yes", "--group", "sex")
    for more in ((), ("--outcome", "repaid", "--good", "yes")):
        answer = run(path, *words, *more)
        assert answer.exit_code == 0, answer.output
        assert "the figures speak of accepted people only" in " ".join(answer.output.split())
        judged = run(path, *words, *more, "--limit", "0.1", "--gate")
        assert judged.exit_code == 2, judged.output
        assert "would say nothing about those who were rejected" in " ".join(judged.output.split())
    path.write_text("sex,approved\n" + "f,yes\nf,no\nm,yes\nm,yes\n" * 20)
    assert "speak of accepted" not in run(path, *words).output
