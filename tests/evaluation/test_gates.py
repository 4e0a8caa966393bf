"""The gate: one function behind three entry points, exit codes, and the account of delta."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import evenhand as eh
from evenhand.cli import main
from evenhand.errors import InvalidInput
from evenhand.evaluation.gates import GateLedger, gate
from evenhand.fairness.delta_ledger import inverse_square_share
from evenhand.testing import assert_within


def drawn(rng, tmp_path):
    """Decisions of random people, as arrays and as a file."""
    people = int(rng.integers(40, 400))
    group = rng.choice(["f", "m"], people)
    group[:2] = ["f", "m"]
    chance = np.where(group == "f", rng.random(), rng.random())
    accepted = rng.random(people) < chance
    lines = [f"{g},{int(d)}" for g, d in zip(group, accepted, strict=True)]
    path = tmp_path / "d.csv"
    path.write_text("sex,hired\n" + "\n".join(lines) + "\n")
    return accepted, group, path


def test_three_fronts_agree(tmp_path):
    rng = np.random.default_rng(4)
    seen = set()
    for _ in range(12):
        accepted, group, path = drawn(rng, tmp_path)
        limit = float(rng.choice([0.1, 0.3, 0.6]))
        measured = eh.measure(accepted, group, rates="selection")
        result = gate(measured, limit)
        words = ["--decision", "hired", "--group", "sex", "--rate", "selection", "--gate"]
        answer = CliRunner().invoke(main, ["measure", str(path), *words, "--limit", str(limit)])
        assert answer.exit_code == result.exit_code, answer.output
        if result.status == "within":
            assert_within(measured, limit)
        else:
            with pytest.raises(AssertionError, match="allowed"):
                assert_within(measured, limit)
        seen.add(result.status)
    assert seen == {"within", "above", "not shown"}


def test_the_ledger_gives_each_look_its_share_once(tmp_path):
    path = tmp_path / "ledger.json"
    ledger = GateLedger.read(path, 0.05)
    for number in range(1, 6):
        ledger, look = ledger.look(f"commit {number}", f"evidence {number}".encode())
        assert look.share == inverse_square_share(0.05, number)
    ledger, again = ledger.look("renamed", b"evidence 2")
    assert again.share == inverse_square_share(0.05, 2)
    ledger.judged(again, "within").write(path)
    read = GateLedger.read(path, 0.05)
    assert len(read.looks) == 5
    assert read.looks[1].status == "within"
    with pytest.raises(InvalidInput, match=r"delta 0\.05"):
        GateLedger.read(path, 0.1)
    path.write_text("{}")
    with pytest.raises(InvalidInput, match="ledger"):
        GateLedger.read(path, 0.05)


def test_an_account_in_which_a_share_is_spent_twice_raises_an_error(tmp_path):
    path = tmp_path / "ledger.json"
    ledger, _ = GateLedger(0.05).look("one", b"1")
    ledger.look("two", b"2")[0].write(path)
    document = json.loads(path.read_text())
    document["looks"].append({**document["looks"][1], "evidence": "other"})
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidInput, match=r"look 3 .* has a share of 0\.0075"):
        GateLedger.read(path, 0.05)


def test_the_same_question_about_the_same_content_costs_nothing(tmp_path):
    """In another commit, under another name, with another report; another limit is another look."""
    _, _, path = drawn(np.random.default_rng(1), tmp_path)
    other = tmp_path / "renamed.csv"
    other.write_bytes(path.read_bytes())
    ledger = tmp_path / "ledger.json"
    words = ["--decision", "hired", "--group", "sex", "--gate", "--gate-ledger", str(ledger)]

    def looks(*more):
        answer = CliRunner().invoke(main, ["measure", *map(str, more), *words])
        assert answer.exit_code in (0, 1, 3), answer.output
        return len(json.loads(ledger.read_text())["looks"])

    assert looks(path, "--limit", "0.9", "--commit", "a") == 1
    assert looks(other, "--limit", "0.9", "--commit", "b", "--json") == 1
    assert looks(path, "--limit", "0.8", "--commit", "b") == 2
    with path.open("a") as file:
        file.write("f,1\n")
    assert looks(path, "--limit", "0.9", "--commit", "c") == 3


def test_a_gate_of_the_command_line_keeps_its_account_and_a_summary(tmp_path):
    _, _, path = drawn(np.random.default_rng(1), tmp_path)
    ledger = tmp_path / "ledger.json"
    summary = tmp_path / "summary.md"
    words = ["measure", str(path), "--decision", "hired", "--group", "sex", "--limit", "0.9"]
    words += ["--gate", "--gate-ledger", str(ledger), "--commit", "3f2a", "--summary", str(summary)]
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code in (0, 3), answer.output
    (look,) = json.loads(ledger.read_text())["looks"]
    assert look["commit"] == "3f2a"
    assert look["status"] in ("within", "not shown")
    assert summary.read_text().startswith("**")
    assert CliRunner().invoke(main, [*words[:7], "--summary", str(summary)]).exit_code == 2


def test_false_red_builds_over_many_commits_are_rare():
    """30 repositories of 20 commits, the truth exactly at its limit: with probability at most
    delta = .1 a repository ever sees red (more than 9 of 30 with probability below 2e-3). Without
    the account, each build at its own delta, most do.
    """
    rng = np.random.default_rng(2)
    group = np.repeat(["a", "b"], 60)
    red = control = 0
    for _ in range(30):
        ledger = GateLedger(0.1)
        ever = ever_control = False
        for commit in range(20):
            accepted = rng.random(120) < np.where(group == "a", 0.5, 0.3)
            ledger, look = ledger.look(str(commit), accepted.tobytes())
            if abs(accepted[:60].mean() - accepted[60:].mean()) <= 0.3:
                continue  # far from red, and an interval takes its time
            measured = eh.measure(accepted, group, rates="selection", delta=look.share)
            ever |= gate(measured, 0.2).status == "above"
            plain = eh.measure(accepted, group, rates="selection", delta=0.1)
            ever_control |= gate(plain, 0.2).status == "above"
        red += ever
        control += ever_control
    assert red <= 9
    assert control > red


def test_a_gate_judges_the_rates_that_were_asked_for_and_no_others():
    """Errors are even, base rates are not: good outcomes among the accepted differ by .78, and so
    does who is selected; nobody asked for either.
    """
    group = np.repeat(["a", "b"], 2000)
    label = np.concatenate([np.repeat([1, -1], [1800, 200]), np.repeat([1, -1], [200, 1800])])
    accepted = np.zeros(4000, dtype=bool)
    for start, people in ((0, 1800), (2000, 200)):
        accepted[start : start + people * 8 // 10] = True  # 8 of 10 with a good outcome
    for start, people in ((1800, 200), (2200, 1800)):
        accepted[start : start + people * 2 // 10] = True  # 2 of 10 with a bad one
    measured = eh.measure(accepted, group, label, rates="equalized_odds")
    assert [rate.symbol for rate in measured.rates] == ["FPR", "FNR", "PPV"]
    assert gate(measured, 0.15).status == "within"
    assert measured.verdict("PPV", 0.15) == "above"
    assert gate(eh.measure(accepted, group, label), 0.15).status == "above"  # selection
