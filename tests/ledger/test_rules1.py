"""Ledgers that were written under rules 1 open, are brought forward, verify (deeply, and
stand-alone) and show their record.
"""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from sqlalchemy import inspect
from tests.fixtures import rules1
from tests.ledger.helpers import Clock

from evenhand.ledger import SignedHead, export, recompute, verify
from evenhand.ledger import standalone_verifier as verifier
from evenhand.ledger.database import MIGRATIONS, schema_version
from evenhand.service.server import open_ledger


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    return request.param


@pytest.fixture(params=rules1.LEDGERS)
def old(request, database, tmp_path):
    """(ledger, what the old code said of it, its product)."""
    url = None if database == "sqlite" else request.getfixturevalue("postgres_url")
    found = rules1.settings(request.param, tmp_path, url)
    with open_ledger(found, Clock(1_900_000_000.0)) as ledger:
        yield ledger, rules1.record(request.param)[database], found.products[0]


def test_it_verifies_to_the_depth_and_against_the_head_of_then(old):
    ledger, record, _ = old
    with ledger.store.reader.connect() as connection:
        assert schema_version(connection) == len(MIGRATIONS) == 3
        assert inspect(connection).has_table("checkpoints")
    found = verify(ledger, SignedHead.from_json(record["head"]), deep=True)
    assert found.problems == ()
    # what the first opening appends: the plan of windows, and which database this is
    appended = 1 if ledger.store.path is not None else 2
    assert found.head.seq == record["head"]["seq"] + appended


def test_it_verifies_with_the_standard_library_alone(old, tmp_path):
    ledger, record, _ = old
    secrets = {
        window.name: ledger.reveal(window.name, "auditor").hex() for window in ledger.windows()
    }
    for name, document in (("secrets.json", secrets), ("head.json", record["head"])):
        (tmp_path / name).write_text(json.dumps(document))
    export(ledger, tmp_path / "export.jsonl")
    words = [
        tmp_path / "export.jsonl",
        "--secrets",
        tmp_path / "secrets.json",
        "--head",
        tmp_path / "head.json",
    ]
    done = subprocess.run(
        [sys.executable, "-I", "-S", Path(verifier.__file__), *map(str, words)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "problems: 0" in done.stdout


def test_its_record_is_what_it_was(old):
    ledger, record, product = old
    names = (product.tenant, product.name)
    policies = ledger.policies(*names)
    assert [policy.signed | {"row": policy.seq} for policy in policies] == record["policies"]
    assert {policy.rules for policy in policies} == {1}
    assert {policy.checkpoint for policy in policies} == {None}
    assert [asdict(row) for row in ledger.certificates(*names)] == record["certificates"]
    assert [event.action for event in ledger.events(*names)] == record["actions"]
    counts = ledger.counts(*names)
    same = ("decisions", "accepted", "erased", "quarantined", "disputed")
    assert {name: getattr(counts, name) for name in same} == {
        name: record["counts"][name] for name in same
    }
    assert recompute(ledger, *names) == counts.decisions - counts.erased


def test_nobody_whom_the_old_rules_left_out_is_left_out_now(old):
    """The rows that old code gave are there with the same draws; those it dropped (overridden) are
    there too, with no label.
    """
    ledger, record, product = old
    names = (product.tenant, product.name)
    rows = {row.seq: row for row in ledger.history(*names, maturity=product.maturity)}
    assert len(rows) == ledger.count_usable(*names) == ledger.counts(*names).usable
    for seq, accept, label, status, erased in record["history"]:
        assert (rows[seq].accept, rows[seq].label, rows[seq].status, rows[seq].erased) == (
            accept,
            label,
            status,
            erased,
        )
    dropped = [
        row for seq, row in rows.items() if seq not in {entry[0] for entry in record["history"]}
    ]
    assert len(dropped) == record["counts"]["overridden"]
    agreed = [row for row in dropped if not row.overruled]
    assert len(dropped) == 0 or (
        len(agreed) == 2 and {row.label for row in dropped if row.overruled} == {0}
    )


def test_the_new_table_refuses_changes(old):
    ledger, _, _ = old

    def tamper(statement):
        with ledger.store.writer.begin() as connection:
            if (
                connection.dialect.name == "sqlite"
            ):  # its triggers are for each row, so there must be one
                connection.exec_driver_sql(
                    "INSERT INTO checkpoints VALUES (999999, 0.0, 't', 'p', 1, '{}', x'00')"
                )
            connection.exec_driver_sql(statement)

    for statement in ("UPDATE checkpoints SET epoch = 1", "DELETE FROM checkpoints"):
        with pytest.raises(Exception, match="append-only"):
            tamper(statement)
    assert verify(ledger).ok
