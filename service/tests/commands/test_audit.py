"""`evenhand audit` on a ledger that the service has filled."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from service.tests.bank import (
    DAY,
    KEYRING,
    LOAN,
    TOML,
    Bank,
    Clock,
    application,
    ledger_with_settings,
)

from evenhand.cli import main
from evenhand.evaluation import read_log
from evenhand.fairness.certificate import PROTOCOL_VERSION
from evenhand_service.ledger import Ledger, standalone_verifier


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A ledger of 120 people, one of them overruled, with its settings; the working directory."""
    monkeypatch.chdir(tmp_path)
    return ledger_with_settings(tmp_path)


def run(*words):
    return CliRunner().invoke(main, ["audit", *words, "--config", "service.toml"])


def test_verify_and_what_it_finds(folder):
    done = run("verify", "--deep")
    assert done.exit_code == 0
    assert "0 problems" in done.output
    whole = json.loads(run("verify", "--deep", "--json").stdout)
    assert (whole["ok"], whole["problems"], whole["deep"], whole["snapshot"]) == (
        *(True, [], True, False),
    )
    assert f"{whole['rows']:,} rows, head {whole['head']['seq']} {whole['head']['hash']}" in (
        done.output
    )
    import sqlite3

    connection = sqlite3.connect(folder / "ledger.sqlite")
    connection.execute("DROP TRIGGER decisions_keeps_UPDATE")
    connection.execute(
        "UPDATE decisions SET body = replace(body, '\"accept\":true', '\"accept\":false') "
        "WHERE seq = 20"
    )
    connection.commit()
    connection.close()
    broken = run("verify")
    assert broken.exit_code == 1
    assert "row 20: its hash is not that of its content" in broken.output
    told = run("verify", "--json")
    assert told.exit_code == 1
    document = json.loads(told.stdout)
    assert not document["ok"]
    assert {"row": 20, "what": "its hash is not that of its content"} in document["problems"]


@pytest.mark.thorough
def test_ended_windows_leave_for_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bank = Bank("ledger.sqlite", Clock(1_600_000_000.0))
    bank.repay(*bank.arrive(150, seed=4))
    bank.clock.now += 31 * DAY
    assert bank.post("/v1/train", {"product": "loan"}).status_code == 200
    bank.arrive(20, seed=5, first=1000)
    bank.close()
    KEYRING.save("keyring.json")
    Path("service.toml").write_text(TOML)
    before = Path("ledger.sqlite").stat().st_size
    early = run("archive", "--before", "2020-01-01", "--by", "Ada", "--out", "shelf")
    assert early.exit_code != 0
    assert "there is nothing to archive" in early.output
    done = run("archive", "--before", "2021-01-01", "--by", "Ada", "--out", "shelf")
    assert (done.exit_code, Path("ledger.sqlite").stat().st_size < before) == (0, True)
    assert "left the ledger" in done.output
    assert run("archive", "--before", "2021-01-01", "--by", "Ada", "--out", "more").exit_code != 0
    alone = run("verify", "--deep")
    assert (alone.exit_code, "are in archives that were not given" in alone.output) == (0, True)
    together = json.loads(run("verify", "--deep", "--archive", "shelf", "--json").stdout)
    assert (together["ok"], together["left_out"]) == (True, 0)
    assert "in an archive" in run("proof", "k3", "--out", "proof.json").output
    assert run("proof", "k3", "--out", "proof.json", "--archive", "shelf").exit_code == 0
    assert standalone_verifier.main(["--proof", "proof.json"]) == 0
    assert "give their folders" in run("export", "--out", "log.csv").output
    asked = ("--out", "log.csv", "--archive", "shelf")
    assert "170 decisions" in run("export", *asked).output
    file = Path("shelf/archive.jsonl")
    drawn = '"body":{"accept":true,"acceptance"'
    file.write_text(file.read_text().replace(drawn, drawn.replace("true", "false"), 1))
    broken = run("verify", "--archive", "shelf")
    assert broken.exit_code != 0
    assert "is not the one that was archived" in broken.output


def test_a_pack_verifies_with_the_standard_library_alone(folder):
    assert run("pack", "--out", "pack", "--reveal", "auditor").exit_code == 0
    names = {path.name for path in (folder / "pack").iterdir()}
    assert {
        "ledger.jsonl",
        "head.json",
        "pack.json",
        "decisions.csv",
        "policies.json",
        "certificates.json",
        "randomisation.json",
    } <= names
    assert {"overrides.csv", "events.json", "selection.csv", "verifier.py", "README.md"} <= names
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "verifier.py",
            "ledger.jsonl",
            "--secrets",
            "secrets.json",
            "--head",
            "head.json",
            "--pack",
            "pack.json",
        ],
        cwd=folder / "pack",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with (folder / "pack" / "decisions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert all(0 < float(row["propensity"]) <= 1 for row in rows)
    with (folder / "pack" / "overrides.csv").open(newline="") as file:
        assert [
            (row["accept"], row["label"], row["overruled"]) for row in csv.DictReader(file)
        ] == [("1", "0", "1")]
    with (folder / "pack" / "overruled.csv").open(newline="") as file:
        found = [
            (row["drawn"], row["people_did"], row["decisions"]) for row in csv.DictReader(file)
        ]
    assert found == [("accept", "reject", "1")]
    assert "as drawn, before people overrule it" in (folder / "pack" / "README.md").read_text()
    stored = json.loads((folder / "pack" / "certificates.json").read_text())
    versions = {row["document"]["protocol_version"] for row in stored["certificates"]}
    assert versions == {PROTOCOL_VERSION}
    assert stored["guarantee"]["limit"] == LOAN.limit


def test_a_pack_is_checked_with_evenhands_own_verifier(folder):
    assert run("pack", "--out", "pack").exit_code == 0
    key = json.loads((folder / "pack" / "pack.json").read_text())["public_key"]
    # the one in the pack says that all is well, whatever was done
    (folder / "pack" / "verifier.py").write_text('print("problems: 0")\n')
    runner = CliRunner()
    done = runner.invoke(main, ["audit", "check-pack", "pack", "--public-key", key])
    assert done.exit_code == 1
    assert "the file verifier.py is not the one that the pack was signed with" in done.output
    assert "problems: 1" in done.output
    shutil.copy(standalone_verifier.__file__, folder / "pack" / "verifier.py")
    done = runner.invoke(main, ["audit", "check-pack", "pack", "--public-key", key])
    assert (done.exit_code, "problems: 0" in done.output) == (0, True)
    done = runner.invoke(main, ["audit", "check-pack", "pack", "--public-key", "ab" * 32])
    assert done.exit_code == 1
    assert "another key than the ledger's" in done.output
    (folder / "pack" / "pack.json").write_text("torn")
    done = runner.invoke(main, ["audit", "check-pack", "pack"])
    assert (done.exit_code, "no pack that can be read" in done.output) == (1, True)


def test_exports_carry_propensities(folder):
    done = run("export", "--out", "out.csv")
    assert done.exit_code == 0, done.output
    log = read_log(folder / "out.csv")
    assert len(log) == 120
    assert (log.propensity > 0).all()
    assert log.features.shape == (120, 1)
    assert log.ordered_by == ("time",)


def test_backup_restore_and_the_gap(folder):
    assert run("backup", "--out", "copy").exit_code == 0
    (folder / "ledger.sqlite").rename(folder / "lost.sqlite")
    assert run("restore", "copy", "--by", "op").exit_code == 0
    bank = Bank(folder / "ledger.sqlite", clock=lambda: 1_900_000_000.0)
    assert (
        bank.post("/v1/decisions", application("k5", person="p-k5", features=[0.0])).status_code
        == 409
    )
    refused = bank.post("/v1/decisions", application("new"))
    assert refused.status_code == 503
    assert refused.json()["type"].endswith("gap-unconfirmed")
    assert (
        bank.post("/v1/gap", {"by": "op", "note": "the mail log was compared"}).status_code == 200
    )
    assert bank.post("/v1/decisions", application("new")).status_code == 200
    bank.close()


def test_a_running_service_is_looked_at_by_a_snapshot(folder):
    with Ledger.open(folder / "ledger.sqlite", keyring=KEYRING, clock=lambda: 1_900_000_000.0):
        done = run("verify")
    assert done.exit_code == 0
    assert "snapshot" in done.output


@pytest.mark.parametrize("wal", [False, True])
def test_a_read_only_copy_is_verified_as_it_is(folder, wal):
    """As somebody who may read and not write: root, who may do everything, becomes nobody."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place)
        if wal:  # a copy of a ledger in use, with what is in its log only
            ledger = Ledger.open(folder / "ledger.sqlite", keyring=KEYRING, clock=lambda: 1.9e9)
            ledger.operate("loan", "note", "somebody")
        for name in ("ledger.sqlite", "keyring.json", "service.toml", "ledger.sqlite-wal"):
            if (folder / name).exists():
                shutil.copy(folder / name, copy)
        assert (copy / "ledger.sqlite-wal").exists() == wal
        if wal:
            rows = ledger.head().seq
            ledger.close()
        names = {file.name: file.read_bytes() for file in copy.iterdir()}
        for file in copy.iterdir():
            file.chmod(0o444)
            if os.geteuid() == 0:
                os.chown(file, 65534, -1)
        (copy / "keyring.json").chmod(0o400)
        copy.chmod(0o555)
        words = ["audit", "verify", "--deep", "--config", str(copy / "service.toml")]
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            done = CliRunner().invoke(main, words)
        finally:
            os.seteuid(user)
        assert done.exit_code == 0, done.output
        assert "cannot be written here" in done.output
        assert "0 problems" in done.output
        assert not wal or f"{rows:,} rows" in done.output
        assert {file.name: file.read_bytes() for file in copy.iterdir()} == names
        copy.chmod(0o700)


def test_a_lost_keyring_is_not_replaced(folder):
    (folder / "keyring.json").unlink()
    done = run("verify")
    assert done.exit_code == 2
    assert "put the keyring back" in done.output
    assert not (folder / "keyring.json").exists()
