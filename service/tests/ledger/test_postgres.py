"""A role that can append and nothing else; restores that are noticed; pages without the erased."""

import glob
import os
import pathlib
import subprocess
import sys

import psycopg
import pytest
from service.tests.ledger.conftest import tools
from service.tests.ledger.helpers import (
    KEYRING,
    PRODUCT,
    Clock,
    decided,
    opened,
    person,
    published,
)
from tests.tools import need
from tests.without_clocks import until

from evenhand_service.ledger import (
    Damaged,
    GapUnconfirmed,
    Invalid,
    Label,
    LedgerUnavailable,
    Terms,
    backup,
    restore,
    verify,
)
from evenhand_service.ledger.database import IDLE, KINDS
from evenhand_service.ledger.decision_draw import person_digest
from evenhand_service.ledger.postgres import (
    could_change,
    dump,
    grant,
    instance,
    load,
    without_secrets,
)

ROOT = pathlib.Path(__file__).parents[3]


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
        ledger.report("k1", Label(1))
        ledger.acquire_lease("train", "me", 60.0)
        ledger.operate(PRODUCT, "note", "operator")
        assert ledger.erase("p7", "officer") == 1
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
    from evenhand_service.ledger import postgres

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
        digest = person_digest(KEYRING, "p1")
        asked = reader.execute("SELECT key FROM people WHERE lookup = %s", [digest])
        key, waits = bytes(asked.fetchone()[0]), []

        def pause(seconds):
            waits.append(key[12:] in _pages(postgres_url, "people"))
            reader.rollback()

        monkeypatch.setattr("evenhand_service.ledger.postgres.time.sleep", pause)
        ledger.erase("p1", "officer")
        assert waits[0]
        assert key[12:] not in _pages(postgres_url, "people")


def test_an_erased_key_is_in_no_page(postgres_url, monkeypatch):
    from evenhand_service.ledger import ledger as module

    with opened(postgres_url) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(60))

        def key_of(name):
            digest = person_digest(KEYRING, name).hex()
            rows = run(postgres_url, f"SELECT key FROM people WHERE lookup = '\\x{digest}'")
            return bytes(rows[0][0])

        left = 0
        for number in range(0, 60, 3):
            key = key_of(f"p{number}")
            ledger.erase(f"p{number}", "officer")
            left += key[12:] in _pages(postgres_url, "people")
        assert left == 0
        monkeypatch.setattr(module.postgres, "vacuum", lambda engine: True)  # the control
        key = key_of("p1")
        ledger.erase("p1", "officer")
        assert key[12:] in _pages(postgres_url, "people")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        ("postgresql://ann:PW@host:5432/db", "postgresql://ann:***@host:5432/db"),
        ("mysql://ann:PW@host", "mysql://ann:***@host"),
        ("postgresql:/ann:PW@host/db", "postgresql:/ann:***@host/db"),
        ("postgresql:ann:PW@host/db", "postgresql:ann:***@host/db"),
        ("postgresql://ann:P/W?P@PW@host/db", "postgresql://ann:***@host/db"),
        ("postgresql://ann:PW", "postgresql://ann:***"),
        ("postgresql://host/db?password=PW&a=b", "postgresql://host/db?password=***&a=b"),
        ("postgresql:///db?host=/run&pass%77ord=PW", "postgresql:///db?host=/run&pass%77ord=***"),
        ("postgresql://h/db?sslpassword=PW&passfile=f", "postgresql://h/db?sslpassword=***&passfile=f"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql://[::1]/db", "postgresql://[::1]/db"),
        ("postgresql://a:1,b:2/db", "postgresql://a:1,b:2/db"),
        ("https://w.example/x?X-Amz-Signature=PW", "https://w.example/x?X-Amz-Signature=***"),
        ("ledger.sqlite", "ledger.sqlite"),
        ("/a/b:c@d/ledger.sqlite", "/a/b:c@d/ledger.sqlite"),
    ],
)  # fmt: skip
def test_a_url_is_shown_without_its_secrets(url, shown):
    assert without_secrets(url) == shown
    assert "PW" not in shown


def with_secrets(url, where):
    """The URL of the test's server, which asks for no password, with one in it."""
    scheme, _, rest = url.partition("://")
    user, _, place = rest.partition("@")
    if where == "user":
        return f"{scheme}://{user}:s3cret@{place}"
    return f"{url}?password=s3cret&sslpassword=s3cret2"


@pytest.mark.parametrize("where", ["user", "query"])
def test_no_secret_is_an_argument_of_a_tool(postgres_url, other_url, tmp_path, monkeypatch, where):
    """The real tools, behind a script that writes down what `ps` would show, and the rest."""
    for tool in ("pg_dump", "pg_restore"):
        real = tools() / tool
        (tmp_path / tool).write_text(
            f'#!/bin/sh\necho "$0 $@" >> {tmp_path}/arguments\n'
            f'echo "$PGPASSWORD" >> {tmp_path}/environment\n'
            f'[ -z "$PGSERVICEFILE" ] || stat -c %a "$PGSERVICEFILE" >> {tmp_path}/environment\n'
            f'[ -z "$PGSERVICEFILE" ] || cat "$PGSERVICEFILE" >> {tmp_path}/environment\n'
            f'exec {real} "$@"\n'
        )
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with opened(postgres_url) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(5))
    target = tmp_path / "dump"
    dump(with_secrets(postgres_url, where), target)
    assert target.stat().st_mode & 0o777 == 0o600
    load(with_secrets(other_url, where), target)
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.count("--dbname=postgresql://evenhand@") == 2
    assert "s3cret" not in arguments
    told = (tmp_path / "environment").read_text()
    given = "s3cret\n600\n[evenhand]\nsslpassword=s3cret2\n" if where == "query" else "s3cret\n"
    assert told == given * 2


def test_a_database_that_refuses_is_a_clear_error(granted, tmp_path):
    owner, url, _ = granted
    away = "postgresql://evenhand:s3cret@127.0.0.1:1/evenhand"
    for call in (could_change, lambda url: grant(url, "somebody"), lambda url: load(url, tmp_path)):
        with pytest.raises(LedgerUnavailable, match="away") as refused:
            call(away)
        assert "s3cret" not in str(refused.value)
    with pytest.raises(LedgerUnavailable, match="exist"):
        could_change(f"{owner}_nowhere")
    with pytest.raises(Invalid, match="refuses"):
        grant(url, url.split("//")[1].split("@")[0])  # the role is no owner
    for port in ("abc", "99999", "0", "-1"):
        with pytest.raises(Invalid, match="65535"):
            could_change(f"postgresql://ann:s3cret@host:{port}/db")
    with pytest.raises(Damaged, match="pg_dump"):
        dump(away, tmp_path / "dump")
    assert not (tmp_path / "dump").exists()


STAYS = """
import contextlib, sys
from service.tests.ledger.conftest import postgres_server

with contextlib.contextmanager(postgres_server.__wrapped__)() as url:
    print(url, flush=True)
    sys.stdin.read()
"""
"""A process that has the server of the fixture, and keeps it until it is killed."""


@pytest.mark.parametrize("end", ["kill", "leave"])
def test_the_server_of_the_fixture_ends_with_the_process_that_started_it(end):
    need("postgresql")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", STAYS], cwd=ROOT, **pipes) as child:
        url = child.stdout.readline().strip()
        with psycopg.connect(f"{url}/postgres") as connection:
            data = pathlib.Path(connection.execute("SHOW data_directory").fetchone()[0])
        postmaster = int((data / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, 0)  # it runs
        if end == "kill":
            child.kill()

    def gone():
        try:
            os.kill(postmaster, 0)
        except ProcessLookupError:
            return not data.parent.exists()

    until(gone, "the end of the server and of its folder")


def test_a_silence_of_a_starved_machine_loses_nothing(postgres_url):
    """The server ends a transaction that is silent for `idle_seconds`, 3 by default: a machine
    without CPU may be silent for more than a second. Where it does end one, nothing is written.
    """
    with opened(postgres_url) as ledger:
        published(ledger)

        def allowed(transaction):
            return transaction.connection.exec_driver_sql(f"SHOW {IDLE}").scalar()

        assert ledger._write(allowed) == "3s"
    with opened(postgres_url, idle_seconds=0.3) as ledger:  # the control

        def silent(transaction):
            own = transaction.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            with psycopg.connect(postgres_url, autocommit=True) as other:
                seen = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
                until(lambda: other.execute(seen, [own]).fetchone()[0] == 0, "its end")
            return transaction.append_event("note", "op", "done")

        with pytest.raises(LedgerUnavailable):
            ledger._write(silent)
        assert [event.note for event in ledger.events()].count("done") == 0
