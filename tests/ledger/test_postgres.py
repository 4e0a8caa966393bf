"""A role that can append and nothing else; restores that are noticed; pages without the erased."""

import glob
import os

import psycopg
import pytest
from tests.ledger.helpers import KEYRING, PRODUCT, TENANT, Clock, decided, opened, person, published

from evenhand.ledger import GapUnconfirmed, Invalid, Label, Terms, backup, restore, verify
from evenhand.ledger.database import KINDS
from evenhand.ledger.decision_draw import person_digest
from evenhand.ledger.postgres import grant, instance


def run(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            found = connection.execute(statement)
        return found.fetchall() if found.description else None


@pytest.fixture
def other_url(postgres_url):
    """An empty database on the same server."""
    run(postgres_url, f"CREATE DATABASE other_{postgres_url.rpartition('_')[2]}")
    return f"{postgres_url.rpartition('/')[0]}/other_{postgres_url.rpartition('_')[2]}"


@pytest.fixture
def granted(postgres_url):
    """(URL of the owner, URL of a role that may append, policy)."""
    role = f"app_{postgres_url.rpartition('_')[2]}"
    with opened(postgres_url) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(5))
    run(postgres_url, f"CREATE ROLE {role} LOGIN")
    grant(postgres_url, role)
    return postgres_url, postgres_url.replace("evenhand@", f"{role}@"), policy


def test_the_service_runs_under_the_role(granted):
    _, url, policy = granted
    with opened(url) as ledger:
        decided(ledger, policy, range(5, 300))
        ledger.report(TENANT, "k1", Label(1))
        ledger.acquire_lease("train", "me", 60.0)
        ledger.operate(TENANT, PRODUCT, "note", "operator")
        assert ledger.erase(TENANT, "p7", "officer") == 1
        decided(ledger, policy, [7007])
        assert verify(ledger, deep=True).ok


@pytest.mark.parametrize("table", [table.name for table in KINDS.values()])
def test_the_role_cannot_change_the_chain(granted, table):
    _, url, _ = granted
    for statement in (
        f"UPDATE {table} SET at = 0",
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
        f"ALTER TABLE {table} DISABLE TRIGGER ALL",
        f"DROP TRIGGER {table}_keeps_UPDATE ON {table}",
        f"DROP TABLE {table}",
        f"CREATE TRIGGER mine BEFORE INSERT ON {table} EXECUTE FUNCTION evenhand_append_only()",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(url, statement)


def test_nor_what_stands_beside_it(granted):
    owner, url, _ = granted
    for statement in (
        "CREATE OR REPLACE FUNCTION evenhand_append_only() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN RETURN NEW; END $$",
        "SET session_replication_role = replica",
        "UPDATE people SET lookup = ''",
        "DELETE FROM people",
        "DELETE FROM head",
        "DELETE FROM schema_versions",
        "CREATE TABLE mine (x int)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(url, statement)
    # the control: the owner can
    run(owner, "ALTER TABLE decisions DISABLE TRIGGER ALL", "UPDATE decisions SET at = at")


def test_a_role_that_is_none(postgres_url):
    with pytest.raises(Invalid, match="no ledger"):
        grant(postgres_url, "nobody_here")
    opened(postgres_url).close()
    for role in ("nobody_here", "evenhand", 'x"; DROP TABLE head; --'):
        with pytest.raises(Invalid):
            grant(postgres_url, role)


def test_a_dump_that_is_loaded_elsewhere_draws_nothing(postgres_url, other_url, tmp_path):
    with opened(postgres_url) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(5))
        folder = backup(ledger, tmp_path / "backup")
        decided(ledger, policy, range(5, 9))
    assert {oct(f.stat().st_mode & 0o077) for f in folder.glob("*.dump")} == {"0o0"}
    with pytest.raises(Invalid, match="replaces nothing"):
        restore(folder, postgres_url, keyring=KEYRING, clock=Clock(), by="operator")
    restore(folder, other_url, keyring=KEYRING, clock=Clock(), by="operator")
    with opened(other_url) as ledger:
        assert ledger.decide(person(3), Terms(policy, 0.5)).replayed
        with pytest.raises(GapUnconfirmed):
            ledger.decide(person(7), Terms(policy, 0.5))
        ledger.confirm_gap("operator", "looked")
        decided(ledger, policy, [7])
        assert verify(ledger, deep=True).ok
    with opened(other_url) as ledger:
        decided(ledger, policy, [8])


def test_a_pg_restore_by_hand_is_noticed(postgres_url, other_url, tmp_path):
    """Nobody said that it was restored: the numbers of server, timeline, database and table do."""
    from evenhand.ledger import postgres

    with opened(postgres_url) as ledger:
        policy = published(ledger)
        with ledger.store.reader.connect() as connection:
            assert instance(connection).count("/") == 3
    with opened(postgres_url) as ledger:  # the same database is the same
        decided(ledger, policy, range(5))
    postgres.dump(postgres_url, tmp_path / "dump")
    postgres.load(other_url, tmp_path / "dump")
    with opened(other_url) as ledger, pytest.raises(GapUnconfirmed):
        ledger.decide(person(7), Terms(policy, 0.5))
    run(postgres_url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")  # pg_restore --clean
    postgres.load(postgres_url, tmp_path / "dump")
    with opened(postgres_url) as ledger, pytest.raises(GapUnconfirmed):
        ledger.decide(person(7), Terms(policy, 0.5))


def _pages(url, table):
    """The bytes of a table on the disk."""
    found = run(url, "CHECKPOINT", f"SELECT pg_relation_filepath('{table}')")
    data = run(url, "SHOW data_directory")[0][0]
    return b"".join(
        open(file, "rb").read() for file in glob.glob(os.path.join(data, found[0][0]) + "*")
    )


def test_an_erasure_waits_for_whoever_reads(postgres_url, monkeypatch):
    """A snapshot from before keeps the dead row in its page; the pages are cleaned when it ends."""
    import psycopg

    with opened(postgres_url) as ledger, psycopg.connect(postgres_url) as reader:
        decided(ledger, published(ledger), range(3))
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        digest = person_digest(KEYRING, TENANT, "p1")
        asked = reader.execute("SELECT key FROM people WHERE lookup = %s", [digest])
        key, waits = bytes(asked.fetchone()[0]), []

        def pause(seconds):
            waits.append(key[12:] in _pages(postgres_url, "people"))
            reader.rollback()

        monkeypatch.setattr("evenhand.ledger.postgres.time.sleep", pause)
        ledger.erase(TENANT, "p1", "officer")
        assert waits[0]
        assert key[12:] not in _pages(postgres_url, "people")


def test_an_erased_key_is_in_no_page(postgres_url, monkeypatch):
    from evenhand.ledger import ledger as module

    with opened(postgres_url) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(60))

        def key_of(name):
            digest = person_digest(KEYRING, TENANT, name).hex()
            rows = run(postgres_url, f"SELECT key FROM people WHERE lookup = '\\x{digest}'")
            return bytes(rows[0][0])

        left = 0
        for number in range(0, 60, 3):
            key = key_of(f"p{number}")
            ledger.erase(TENANT, f"p{number}", "officer")
            left += key[12:] in _pages(postgres_url, "people")
        assert left == 0
        monkeypatch.setattr(module.postgres, "vacuum", lambda engine: True)  # the control
        key = key_of("p1")
        ledger.erase(TENANT, "p1", "officer")
        assert key[12:] in _pages(postgres_url, "people")
