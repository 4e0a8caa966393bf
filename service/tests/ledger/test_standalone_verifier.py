"""The export and its stand-alone verifier, which runs without any package, and without evenhand."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service.tests.ledger.helpers import DAY, decided, opened, person, published
from tests.test_canonical import VALUE

from evenhand.canonical import canonical
from evenhand.randomness import keyed_uniform
from evenhand_service.ledger import Invalid, Label, Terms, export
from evenhand_service.ledger import standalone_verifier as verifier

SCRIPT = Path(verifier.__file__)


def run(*words):
    return subprocess.run(
        [sys.executable, "-I", "-S", SCRIPT, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """(path of an export over two windows with an erasure, secrets, path of a head)."""
    from service.tests.ledger.helpers import Clock

    folder, clock = tmp_path_factory.mktemp("export"), Clock()
    with opened(folder / "ledger.sqlite", clock) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(100), audit_weight=0.1)
        ledger.decide(person(5, key="again"), Terms(policy, 0.9))
        ledger.report("k1", Label(1))
        clock.now += 31 * DAY
        decided(ledger, policy, range(100, 150))
        clock.now += 31 * DAY
        ledger.erase("p7", "officer")
        secrets = {w.name: ledger.reveal(w.name, "auditor").hex() for w in ledger.windows()}
        (folder / "head.json").write_text(json.dumps(ledger.signed_head().to_json()))
        export(ledger, folder / "export.jsonl")
    return folder / "export.jsonl", secrets, folder / "head.json"


def test_the_auditor_recomputes_every_draw_with_the_standard_library(exported, tmp_path):
    path, secrets, head = exported
    words = [word for name, secret in secrets.items() for word in ("--secret", f"{name}={secret}")]
    done = run(path, *words, "--head", head)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "draws recomputed: 150 of 150 (1 erased, 0 without a secret)" in done.stdout
    (tmp_path / "secrets.json").write_text(json.dumps(secrets))
    assert run(path, "--secrets", tmp_path / "secrets.json").returncode == 0
    assert "0 of 150 (1 erased, 150 without a secret)" in run(path).stdout


def _changed(line, generator):
    """A decision with one of its facts changed, its hash made to fit, so that the laws themselves
    must notice.
    """
    row = json.loads(line)
    name = generator.choice(["u", "accept", "audit", "first", "propensity", "policy", "window"])
    value = row["body"][name]
    row["body"][name] = (
        (not value)
        if isinstance(value, bool)
        else value + 1e-9
        if isinstance(value, float)
        else value + "x"
    )
    return row


def test_every_law_is_checked_even_where_the_hashes_fit(exported, tmp_path):
    path, secrets, _ = exported
    lines = path.read_text().splitlines()
    decisions = [i for i, line in enumerate(lines) if '"kind":"decision"' in line]
    given_secrets = {name: bytes.fromhex(secret) for name, secret in secrets.items()}
    for seed in range(60):
        generator = random.Random(seed)
        rows = [json.loads(line) for line in lines[1:]]
        victim = generator.choice(decisions[10:])
        rows[victim - 1] = _changed(lines[victim], generator)
        previous = bytes(32)
        for row in rows:
            previous = verifier.link(previous, row)
            row["hash"] = previous.hex()
        erased = frozenset(
            s for row in rows if row["kind"] == "erasure" for s in row["body"]["rows"]
        )
        assert verifier.check(rows, given_secrets, erased).problems, seed
    original = verifier.check(
        (json.loads(line) for line in lines[1:]), given_secrets, verifier.erased_rows(path)
    )
    assert original.problems == []


def test_nobody_counts_twice_under_two_slots(exported):
    path, secrets, _ = exported
    rows = list(verifier.read(path))
    again = [row for row in rows if row["kind"] == "decision" and not row["body"]["first"]]
    assert len(again) == 1
    again[0]["body"] |= {"slot": "another", "first": True}
    found = verifier.check(
        rows, {n: bytes.fromhex(s) for n, s in secrets.items()}, verifier.erased_rows(path)
    )
    assert "the same person has another slot in the same window" in [
        problem.what for problem in found.problems
    ]


def test_wrong_secrets_opened_names_and_heads_are_noticed(exported, tmp_path):
    path, secrets, head = exported
    name = next(iter(secrets))
    assert (
        "not the one that was committed to" in run(path, "--secret", f"{name}={'00' * 32}").stdout
    )
    assert "which the ledger does not have" in run(path, "--secret", f"w0={'00' * 32}").stdout
    text = path.read_text()
    forged = tmp_path / "forged.jsonl"
    forged.write_text(text.replace('"person":"p1"', '"person":"p2"'))
    assert "the opened who is not what was committed to" in run(forged).stdout
    forged.write_text("\n".join(text.splitlines()[:-3]) + "\n")
    assert run(forged).returncode == 0  # a truncation needs the anchor
    done = run(forged, "--head", head)
    assert (done.returncode, "truncated or rewritten" in done.stdout) == (1, True)
    forged.write_text("{}\n")
    assert run(forged).returncode != 0


def test_an_export_opens_what_it_is_asked_to_and_nothing_else(ledger, policy, tmp_path):
    ledger.decide(person("x", group="canary-group", features=(12345.678,)), Terms(policy, 0.5))
    export(ledger, tmp_path / "plain.jsonl")
    export(ledger, tmp_path / "all.jsonl", opened=("who", "features", "group", "reply"))
    plain, everything = ((tmp_path / name).read_text() for name in ("plain.jsonl", "all.jsonl"))
    assert ("canary-group" in plain, "12345.678" in plain) == (False, False)
    assert ("canary-group" in everything, "12345.678" in everything) == (True, True)
    assert run(tmp_path / "all.jsonl").returncode == 0
    for line in (plain + everything).splitlines():
        assert line == canonical(json.loads(line))
    with pytest.raises(Invalid):
        export(ledger, tmp_path / "x.jsonl", opened=("salary",))


@given(st.binary(min_size=1, max_size=40), st.lists(st.text(max_size=20), max_size=5))
def test_the_verifiers_draw_is_the_packages(secret, parts):
    assert verifier.uniform(secret, *parts) == keyed_uniform(secret, *parts)


@given(VALUE)
def test_the_verifiers_canonical_json_is_the_packages(value):
    assert verifier.canonical(value) == canonical(value)
    assert verifier.canonical(json.loads(verifier.canonical(value))) == verifier.canonical(value)


def test_uniformity_tells_uniform_numbers_from_others():
    generator = random.Random(3)
    assert verifier.uniformity([generator.random() for _ in range(10_000)]) < 1.95
    assert verifier.uniformity([generator.random() ** 1.1 for _ in range(10_000)]) > 1.95
    assert verifier.uniformity([]) == 0.0
