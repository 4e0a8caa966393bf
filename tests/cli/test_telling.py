"""--out on the command line: each command writes its page, and says so."""

import html
import re

import pytest
from click.testing import CliRunner

from evenhand.cli import main
from evenhand.cli.telling import fingerprint

pytest.importorskip("matplotlib")

ROWS = "sex,hired,good,score\n" + "f,1,1,3\nf,0,0,1\nm,1,1,4\nm,1,0,2\nf,1,1,5\nm,0,0,0\n" * 40


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(ROWS)
    return path


@pytest.fixture
def policy(tmp_path, table):
    path = tmp_path / "policy.json"
    words = ("--label", "good", "--group", "sex", "--features", "score", "--save", path)
    assert run("solve", table, *words, "--limit", "0.2").exit_code == 0
    return path


DECISIONS = ("--decision", "hired", "--group", "sex")


def test_test_and_certify_write_pages_with_the_policy_in_words(tmp_path, table, policy):
    for command in ("test", "certify"):
        page = tmp_path / f"{command}.html"
        answer = run(command, policy, table, "--out", page)
        assert answer.exit_code == 0, answer.output
        text = page.read_text()
        assert "The policy in words" in text
        assert "score" in text


def test_a_wrong_ending_is_an_error_before_the_work(tmp_path, table):
    answer = run("measure", table, *DECISIONS, "--out", tmp_path / "page.doc")
    assert answer.exit_code == 2
    assert ".html or .md" in answer.output


def test_the_digest_of_a_description_is_that_of_its_rows(tmp_path, table):
    described = tmp_path / "d.toml"
    described.write_text('path = "d.csv"\nlabel = "good"\ngroup = "sex"\n')
    assert fingerprint(described) == fingerprint(table)
    table.write_text(ROWS + "f,1,1,3\n")
    assert fingerprint(described) == fingerprint(table)


PAIRS = ("20K - 40K minus 0 - 20K", "0 - 20K minus 20K - 40K")
AMBIGUOUS = re.compile("40K\\s*([-\u2212\u2013/]|vs)\\s*0|20K\\s*([\u2212\u2013/]|vs)\\s*20K")


def test_a_pair_of_groups_with_dashes_in_their_names_is_readable_everywhere(tmp_path):
    """On every page (its figures hold their words as text), in the terminal and in the JSON."""
    rows = ROWS.replace("f,", "0 - 20K,").replace("m,", "20K - 40K,")
    table, policy = tmp_path / "d.csv", tmp_path / "policy.json"
    table.write_text(rows)
    log = tmp_path / "log.csv"
    _, *people = rows.replace(",0,0,", ",0,,").splitlines()
    log.write_text(
        "\n".join(["group,accept,label,feature_x,acceptance", *(f"{one},0.5" for one in people)])
    )
    known = ("--label", "good", "--group", "sex", "--features", "score")
    calls = {
        "measure": ("measure", table, *DECISIONS, "--compare", "both", "--limit", "0.5"),
        "solve": ("solve", table, *known, "--limit", "0.2", "--certify", "0.4", "--save", policy),
        "test": ("test", policy, table, "--label", "good", "--group", "sex", "--limit", "0.5"),
        "certify": ("certify", policy, table, "--label", "good", "--group", "sex"),
        "alternatives": ("alternatives", table, *known, "--incumbent", "score>=2"),
        "evaluate": ("evaluate", log, "--policy", "accept-all"),
    }
    for name, words in calls.items():
        page = tmp_path / f"{name}.html"
        said = run(*words, "--out", page)
        assert said.exit_code in (0, 1, 3), said.output
        text = said.output + html.unescape(page.read_text())
        found = AMBIGUOUS.search(text)
        assert not found, (name, text[max(found.start() - 200, 0) : found.end() + 100])
        assert any(pair in text for pair in PAIRS), (name, text)
        document = run(*words, "--json").output
        assert not AMBIGUOUS.search(document), name
