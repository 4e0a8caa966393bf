"""--gate on the command line: what belongs to it, and what it needs."""

import json

from click.testing import CliRunner

from evenhand.cli import main

ROWS = "sex,hired\n" + "f,1\nf,0\nm,1\nm,1\n" * 30
WORDS = ("--decision", "hired", "--group", "sex")


def run(tmp_path, *words):
    path = tmp_path / "d.csv"
    path.write_text(ROWS)
    return CliRunner().invoke(main, ["measure", str(path), *WORDS, *words])


def test_a_gate_needs_a_limit(tmp_path):
    answer = run(tmp_path, "--gate")
    assert answer.exit_code == 2
    assert "--limit" in answer.output


def test_exit_codes(tmp_path):
    assert run(tmp_path, "--gate", "--limit", "0.9").exit_code == 0
    assert run(tmp_path, "--gate", "--limit", "0.1").exit_code == 1
    assert run(tmp_path, "--gate", "--limit", "0.5").exit_code == 3
    assert run(tmp_path, "--gate", "--least-ratio", "0.8").exit_code == 1
    assert run(tmp_path, "--limit", "0.1").exit_code == 0


def test_json_carries_the_verdict(tmp_path):
    answer = run(tmp_path, "--gate", "--limit", "0.1", "--json")
    assert answer.exit_code == 1
    assert '"status": "above"' in answer.output


def test_a_description_of_other_rows_is_another_look(tmp_path):
    described = tmp_path / "d.toml"
    described.write_text('path = "d.csv"\nlabel = "hired"\ngroup = "sex"\n')
    ledger = tmp_path / "ledger.json"
    words = ("--decision", "hired", "--limit", "0.5", "--gate", "--gate-ledger", str(ledger))

    def looks(rows):
        (tmp_path / "d.csv").write_text(rows)
        answer = CliRunner().invoke(main, ["measure", str(described), *words])
        assert answer.exit_code in (0, 1, 3), answer.output
        return len(json.loads(ledger.read_text())["looks"])

    assert looks(ROWS) == 1
    assert looks(ROWS) == 1  # the same look again
    assert looks(ROWS + "f,1\n") == 2
