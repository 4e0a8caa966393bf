"""A ledger of the version before keys were in the chain: it opens, its keys go on, and a replica of
that version may work beside this one.

`tests/fixtures/upgrade` was written by that version (commit 9747444): 12 decisions, an outcome, an
erasure, a switch to shadow mode, on both databases.
"""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update

from evenhand.canonical import canonical
from evenhand.ledger import Tampered, verify
from evenhand.ledger.chain import link, read_basis
from evenhand.ledger.database import EVENTS, HEAD, POLICIES, schema_version
from evenhand.service import Product, Settings
from evenhand.service.server import open_keys, open_ledger
from evenhand.service.state import Service

PAST = Path(__file__).parents[1] / "fixtures" / "upgrade"
ANSWERS = json.loads((PAST / "answers.json").read_text())
LOAN = Product("bank", "loan", ("score",), hypotheses="thresholds", limit=0.2)
LATER = 1_900_000_000.0


@pytest.fixture(params=["sqlite", "postgresql"])
def past(request, tmp_path):
    """(settings, the answer to o3) of the ledger that the version before left."""
    for name in ("keyring.json", "keys.json"):
        shutil.copy(PAST / name, tmp_path / name)
        (tmp_path / name).chmod(0o600)  # as that version wrote it; git keeps no such mode
    script = (PAST / f"{request.param}.sql").read_text()
    if request.param == "sqlite":
        where = str(tmp_path / "ledger.sqlite")
        database = sqlite3.connect(where)
        database.executescript(script)
        database.close()
    else:
        import psycopg

        where = request.getfixturevalue("postgres_url")
        with psycopg.connect(where) as connection:
            connection.execute(script)
    files = {name: str(tmp_path / f"{name}.json") for name in ("keyring", "keys")}
    return Settings((LOAN,), ledger=where, **files), ANSWERS[request.param].encode()


def test_it_opens_verifies_and_goes_on(past):
    settings, answer = past
    with open_ledger(settings, lambda: LATER) as ledger:
        assert verify(ledger, deep=True).ok
        keys, made = open_keys(ledger, settings)
        assert made == {}
        assert keys.find(ANSWERS["token"]).name == "first"
        service = Service(ledger, settings, keys)
        service.begin()
        assert service.decider.active(LOAN).mode == "shadow"
        assert ledger.find("bank", "o3").body == answer
        service.decider.operate(LOAN, "live", by="first")
        assert service.decider.active(LOAN).mode == "live"
        assert verify(ledger, deep=True).ok
    with open_ledger(settings, lambda: LATER) as ledger:
        assert open_keys(ledger, settings)[1] == {}
        assert verify(ledger, deep=True).ok


def test_a_replica_of_the_version_before_may_work_beside_it(past):
    """It names the columns that it knows, and its schema version is still the newest; what it
    switches moves the head by a trigger. It links its row to the chain and seals the head, and
    knows no seal of the marks. A row that is in the table alone, without link and seal, is refused.
    """
    settings, _ = past
    with open_ledger(settings, lambda: LATER) as ledger:
        with ledger.store.writer.begin() as connection:
            before = read_basis(connection, ledger._guard)
            assert schema_version(connection) == 3
            _killed_by_the_version_before(connection, ledger.keyring, linked=True)
        with ledger.store.writer.begin() as connection:
            after = read_basis(connection, ledger._guard)
        assert ledger.active("bank", "loan").mode == "killed"
        ledger.operate("bank", "loan", "revive", "op")
        assert verify(ledger, deep=True).ok
        with ledger.store.writer.begin() as connection:
            _killed_by_the_version_before(connection, ledger.keyring, linked=False)
        with pytest.raises(Tampered, match="without the keyring"):
            ledger.active("bank", "loan")
    assert after.switched > before.switched
    assert after.keys == before.keys


def _killed_by_the_version_before(connection, keyring, *, linked):
    head = connection.execute(select(HEAD)).one()
    (constant,) = connection.execute(
        select(POLICIES.c.id).where(POLICIES.c.epoch.is_(None))
    ).first()
    body = {"action": "kill", "by": "op", "note": "", "tenant": "bank", "product": "loan"}
    text = canonical(body | {"policy": constant, "info": {}})
    digest = link(bytes(head.hash), head.seq + 1, "event", head.at, text)
    row = {"seq": head.seq + 1, "at": head.at, "action": "kill", "tenant": "bank"}
    connection.execute(insert(EVENTS).values(**row, product="loan", body=text, hash=digest))
    if linked:
        seal = keyring.head_seal(head.seq + 1, digest)
        connection.execute(update(HEAD).values(seq=head.seq + 1, hash=digest, seal=seal))
