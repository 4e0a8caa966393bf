"""The database: opened by one process, set up for durability, brought to the newest version."""

import os

import pytest
from sqlalchemy import inspect
from tests.ledger.helpers import opened, person, published

from evenhand.ledger import Invalid, LedgerLocked, Terms, verify
from evenhand.ledger.database import MIGRATIONS, FileLock, schema_version
from evenhand.ledger.refusals import Damaged


def test_a_second_process_is_told_the_pid_of_the_first(path, ledger):
    with pytest.raises(LedgerLocked, match=f"process {os.getpid()} has opened .*ledger.sqlite;"):
        opened(path)
    assert FileLock(path.with_name("ledger.sqlite.lock")).path.exists()


def test_sqlite_is_set_up_for_durability(ledger):
    with ledger.store.writer.begin() as connection:
        answers = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("synchronous", "journal_mode", "secure_delete")
        ]
    assert answers == [2, "wal", 1]
    with pytest.raises(Exception, match="readonly"), ledger.store.reader.connect() as connection:
        connection.exec_driver_sql("DELETE FROM leases")


def test_a_newer_schema_is_refused(path, clock):
    with opened(path, clock) as ledger, ledger.store.writer.begin() as connection:
        connection.exec_driver_sql("INSERT INTO schema_versions VALUES (99)")
    with pytest.raises(Damaged, match="schema version 99"):
        opened(path, clock)


def test_a_ledger_of_the_first_version_is_brought_forward(where, clock):
    """It had an index by slot; nothing else of it changes, and its people are known."""
    with opened(where, clock) as ledger:
        policy = published(ledger)
        before = ledger.decide(person(1), Terms(policy, 0.5)).drawn
        with ledger.store.writer.begin() as connection:
            connection.exec_driver_sql("CREATE INDEX decisions_by_slot ON decisions (slot)")
            connection.exec_driver_sql("DELETE FROM schema_versions WHERE version >= 2")
    with opened(where, clock) as ledger:
        with ledger.store.reader.connect() as connection:
            assert "decisions_by_slot" not in {
                found["name"] for found in inspect(connection).get_indexes("decisions")
            }
            assert schema_version(connection) == len(MIGRATIONS)
        again = ledger.decide(person(1, key="again"), Terms(policy, 0.5)).drawn
        assert (again.u, again.first) == (before.u, False)
        assert verify(ledger, deep=True).ok


def test_a_url_of_another_kind_is_refused():
    with pytest.raises(Invalid, match="mysql"):
        opened("mysql://localhost/x")


def test_two_replicas_on_postgresql_share_one_chain(postgres_url):
    from threading import Thread

    from evenhand.ledger import verify

    one, other = opened(postgres_url), opened(postgres_url)
    try:
        policy, found = published(one), {}

        def ask(name, ledger):
            found[name] = [ledger.decide(person(n), Terms(policy, 0.5)).body for n in range(60)]

        threads = [Thread(target=ask, args=pair) for pair in (("one", one), ("other", other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found["one"] == found["other"]
        assert len(one.windows()) == 1
        assert verify(one, other.signed_head(), deep=True).ok
    finally:
        one.close()
        other.close()
