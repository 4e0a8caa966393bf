"""The database: opened by one process, set up for durability, brought to the newest version."""

import contextlib
import os
import pathlib
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from service.tests.ledger.helpers import PRODUCT, opened, person, published
from sqlalchemy import Engine, create_engine, event, inspect
from sqlalchemy.exc import DBAPIError
from tests.without_clocks import until

from evenhand_service.ledger import (
    Invalid,
    LedgerLocked,
    LedgerUnavailable,
    Switched,
    Terms,
    database,
    verify,
)
from evenhand_service.ledger.chain import Job, read_basis
from evenhand_service.ledger.database import MIGRATIONS, FileLock, schema_version
from evenhand_service.ledger.refusals import Damaged, DatabaseAway


def test_a_second_process_is_told_the_pid_of_the_first(path, ledger):
    with pytest.raises(LedgerLocked, match=f"{os.getpid()}.*ledger.sqlite"):
        opened(path)
    assert FileLock(path.with_name("ledger.sqlite.lock")).path.exists()


def test_sqlite_is_set_up_for_durability(ledger):
    with ledger.store.writer.begin() as connection:
        answers = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("synchronous", "journal_mode", "secure_delete", "page_size")
        ]
    assert answers == [2, "wal", 1, 8192]
    with pytest.raises(Exception, match="readonly"), ledger.store.reader.connect() as connection:
        connection.exec_driver_sql("DELETE FROM leases")


def test_a_newer_schema_is_refused(path, clock):
    with opened(path, clock) as ledger, ledger.store.writer.begin() as connection:
        connection.exec_driver_sql("INSERT INTO schema_versions VALUES (99)")
    with pytest.raises(Damaged, match="schema version 99"):
        opened(path, clock)


def add_notes(connection):
    """A migration that some later version might need: a table, a column and an index."""
    connection.exec_driver_sql("CREATE TABLE notes (name VARCHAR PRIMARY KEY)")
    connection.exec_driver_sql("ALTER TABLE leases ADD COLUMN note VARCHAR")
    connection.exec_driver_sql("CREATE INDEX leases_by_holder ON leases (holder)")


def test_a_new_database_begins_at_version_1(where, clock):
    with opened(where, clock) as ledger, ledger.store.reader.connect() as connection:
        assert schema_version(connection) == len(MIGRATIONS) == 1


def test_a_later_migration_is_run_once_and_the_ledger_goes_on(where, clock, monkeypatch):
    with opened(where, clock) as ledger:
        policy = published(ledger)
        before = ledger.decide(person(1), Terms(policy, 0.5)).drawn
    monkeypatch.setattr(database, "MIGRATIONS", (*MIGRATIONS, add_notes))
    for _ in range(2):
        with opened(where, clock) as ledger:
            with ledger.store.reader.connect() as connection:
                assert schema_version(connection) == 2
                assert inspect(connection).has_table("notes")
            assert ledger.decide(person(1), Terms(policy, 0.5)).drawn == before
            assert verify(ledger, deep=True).ok
    monkeypatch.undo()
    with pytest.raises(Damaged, match="schema version 2"):
        opened(where, clock)


def test_a_ledger_of_another_format_is_an_error(where, clock, monkeypatch):
    monkeypatch.setattr("evenhand_service.ledger.ledger.FORMAT", 2)
    opened(where, clock).close()
    monkeypatch.undo()
    with pytest.raises(Damaged, match="format 2"):
        opened(where, clock)


def test_the_head_says_what_was_switched_and_which_keys_changed(where, clock):
    with opened(where, clock) as ledger:
        seen = [ledger.basis()]
        policy = published(ledger)
        seen.append(ledger.basis())
        ledger.decide(person(1), Terms(policy, 0.5, basis=seen[-1]))
        assert ledger.basis() == seen[-1]
        for action in ("shadow", "live", "note"):
            ledger.operate("loan", action, "op")
            seen.append(ledger.basis())
        ledger.change_keys(lambda known: [("key_created", "op", {"n": len(known)})])
        seen.append(ledger.basis())
        ledger.mark_restored("op")
        seen.append(ledger.basis())
        rows = {event.action: event.seq for event in ledger.events()}
        with ledger.store.reader.connect() as connection:
            assert read_basis(connection, ledger._guard) == seen[-1]
        first = ledger.policies("loan")[0].seq
    assert seen == [
        (0, 0), (first, 0), (rows["shadow"], 0), (rows["live"], 0), (rows["live"], 0),
        (rows["live"], rows["key_created"]), (rows["restored"], rows["key_created"]),
    ]  # fmt: skip


def test_terms_that_rest_on_something_older_draw_nothing(where, clock):
    with opened(where, clock) as ledger:
        policy = published(ledger)
        before = ledger.basis()
        ledger.operate("loan", "shadow", "op")
        rows = ledger.head().seq
        with pytest.raises(Switched, match="again"):
            ledger.decide(person(1), Terms(policy, 0.5, basis=before))
        assert ledger.head().seq == rows + (ledger.windows() != [])
        assert not ledger.decide(person(1), Terms(policy, 0.5, basis=ledger.basis())).replayed


def test_a_switch_in_the_same_transaction_counts(ledger, policy):
    """The writer is held up, so that the kill and the decisions on both sides share a commit."""
    began, gate, basis = threading.Event(), threading.Event(), ledger.basis()

    def held_up(transaction):
        began.set()
        gate.wait()

    ledger._writer.submit(Job(work=held_up))
    # Before it begins, the writer still looks whether there are more jobs for the same commit.
    began.wait()
    try:
        early = ledger.submit([(person(1), Terms(policy, 0.5, basis=basis))])
        switch = threading.Thread(target=ledger.operate, args=("loan", "shadow", "op"))
        switch.start()
        until(lambda: ledger._writer._jobs.qsize() == 2, "the switch waits")
        late = ledger.submit([(person(2), Terms(policy, 0.5, basis=basis))])
    finally:
        gate.set()
    switch.join()
    assert not isinstance(early.result()[0], Switched)
    assert isinstance(late.result()[0], Switched)


STEPS = 6
"""Statements of a migration, at least; each of them is one after which the process is killed."""


def opened_and_killed(where, after):
    """How a process of its own ended that opened the ledger and was killed after so many
    statements.
    """
    child = os.fork()
    if child == 0:
        left = [None] * after

        @event.listens_for(Engine, "after_cursor_execute")
        def die(*_):
            left.pop()
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            opened(where)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_migration_that_is_killed_leaves_the_old_state(where, clock, monkeypatch):
    """Killed after each of its statements in turn, until one process gets through."""
    with opened(where, clock) as ledger:
        published(ledger)
    monkeypatch.setattr(database, "MIGRATIONS", (*MIGRATIONS, add_notes))
    for killed in range(1, 100):
        ended = opened_and_killed(where, killed)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        engine = create_engine(
            where.replace("postgresql:", "postgresql+psycopg:")
            if "://" in where
            else f"sqlite:///{where}"
        )
        found = inspect(engine)
        columns = {column["name"] for column in found.get_columns("leases")}
        # the last statements come after the commit of the migration
        assert found.has_table("notes") == ("note" in columns)
        engine.dispose()
    assert killed > STEPS
    with opened(where, clock) as ledger:
        assert verify(ledger, deep=True).ok


def test_whoever_is_silent_in_a_transaction_loses_it_and_the_others_go_on(postgres_url):
    """What a paused replica does: it holds the head and says nothing. It loses its transaction
    after a second here, well before whoever waits for the head gives up.
    """
    with opened(postgres_url, idle_seconds=1.0) as ledger, opened(postgres_url) as other:
        policy = published(other)
        with ledger.store.writer.connect() as silent:
            silent.exec_driver_sql("SELECT seq FROM head FOR UPDATE")
            assert not other.decide(person(1), Terms(policy, 0.5)).replayed
            with pytest.raises(DBAPIError, match="terminat"):
                silent.exec_driver_sql("SELECT 1")
        assert ledger.decide(person(1), Terms(policy, 0.5)).replayed


def test_a_connection_that_was_ended_costs_nobody_the_answer(postgres_url):
    """Before the commit, and at it: decisions are made once; other work is not repeated."""
    with opened(postgres_url) as ledger:
        policy = published(ledger)
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        for number, name in enumerate(("before_cursor_execute", "commit")):
            cuts = [1]

            def cut(connection, *_, cuts=cuts):
                if cuts:
                    cuts.pop()
                    with contextlib.suppress(Exception):
                        connection.connection.cursor().execute(end)

            if name == "commit":
                event.listen(ledger.store.writer, "commit", cut)
                answer = ledger.decide(person(number), Terms(policy, 0.5))
            else:
                draw = ledger._drawer.draw

                def draw_late(transaction, asked, draw=draw, cut=cut):
                    cut(transaction.connection)
                    return draw(transaction, asked)

                ledger._drawer.draw = draw_late
                answer = ledger.decide(person(number), Terms(policy, 0.5))
            assert cuts == []
            assert ledger.decide(person(number), Terms(policy, 0.5)).body == answer.body
        cuts.append(1)
        with pytest.raises(LedgerUnavailable, match="commit"):
            ledger.operate("loan", "shadow", "op")
        assert ledger.counts("loan").decisions == 2
        assert verify(ledger).ok


def test_a_database_that_cannot_be_reached_is_named_without_its_password():
    with pytest.raises(LedgerUnavailable, match="opened") as refused:
        opened("postgresql://evenhand:geheim@127.0.0.1:1/none")
    assert "geheim" not in str(refused.value)


def test_a_url_of_another_kind_is_refused():
    with pytest.raises(Invalid, match="mysql"):
        opened("mysql://localhost/x")


def test_two_replicas_on_postgresql_share_one_chain(postgres_url):
    from threading import Thread

    from evenhand_service.ledger import verify

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


def test_two_replicas_with_the_same_batches_at_once_draw_once(postgres_url):
    """The same 120 keys, in another order, from both at the same time, 8 times: one row and one
    answer for each key, whoever came first.
    """
    with opened(postgres_url) as one, opened(postgres_url) as other:
        policy = published(one)
        begin, answers = threading.Barrier(2), {0: {}, 1: {}}

        def ask(number, ledger):
            for turn in range(8):
                keys = [f"{turn}-{place}" for place in range(120)]
                random.Random(f"{number}/{turn}").shuffle(keys)
                asked = [(person(key), Terms(policy, 0.5)) for key in [*keys, *keys[:5]]]
                begin.wait()
                for answer in ledger.decide_many(asked):
                    known = answers[number].setdefault(answer.drawn.key, answer.body)
                    assert known == answer.body

        with ThreadPoolExecutor() as threads:
            list(threads.map(ask, (0, 1), (one, other)))
        assert answers[0] == answers[1]
        assert one.counts(PRODUCT).decisions == len(answers[0]) == 8 * 120
        assert verify(other, deep=True).ok


def test_only_the_owner_can_read_a_ledger(path, clock):
    path.write_bytes(b"")
    path.chmod(0o644)
    with opened(path, clock):
        files = [path, *(path.with_name(f"{path.name}-{more}") for more in ("wal", "shm"))]
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


@contextlib.contextmanager
def frozen(url):
    """The server of that database, stopped as a whole (a paused machine): its sockets stand."""
    with psycopg.connect(url, autocommit=True) as connection:
        (data,) = connection.execute("SHOW data_directory").fetchone()
    server = int((pathlib.Path(data) / "postmaster.pid").read_text().split()[0])
    os.kill(server, signal.SIGSTOP)  # first, so that it begins no new process
    children = pathlib.Path(f"/proc/{server}/task/{server}/children").read_text().split()
    pids = [server, *map(int, children)]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_a_frozen_server_is_noticed_while_it_is_frozen(postgres_url, monkeypatch):
    """Everybody gets an answer, which is unknown; afterwards the same keys are answered once."""
    monkeypatch.setattr(database, "SILENCE", 0.3)
    with opened(postgres_url) as ledger:
        policy = published(ledger)
        terms = Terms(policy, 0.5)
        ledger.decide(person(1), terms)
        ledger.head()
        with frozen(postgres_url):
            for _ in range(2):  # on a connection that stands, and on none
                with pytest.raises(DatabaseAway):
                    ledger.decide(person(2), terms)
                with pytest.raises(DatabaseAway):
                    ledger.operate(PRODUCT, "note", "op")
                with pytest.raises(DBAPIError):
                    ledger.head()
            assert ledger.broken is None

        def answered():
            with contextlib.suppress(DatabaseAway):
                return ledger.decide(person(2), terms)

        assert until(answered, "the server").drawn.person == "p2"
        assert ledger.counts(PRODUCT).decisions == 2
        assert verify(ledger).ok


def test_a_long_question_is_no_silence(postgres_url, monkeypatch):
    """The server takes another connection meanwhile, so the client waits on: here for a lock that
    is given up only after the client has tried the server.
    """
    monkeypatch.setattr(database, "SILENCE", 0.2)
    tries, connect = [], psycopg.connect

    def counted(*given, **named):
        tries.append(given)
        return connect(*given, **named)

    with (
        opened(postgres_url) as ledger,
        ledger.store.reader.connect() as connection,
        ledger.store.reader.connect() as other,
        ThreadPoolExecutor(1) as pool,
    ):
        other.exec_driver_sql("SELECT pg_advisory_lock(7)")
        monkeypatch.setattr(psycopg, "connect", counted)
        ask = "SELECT 7 FROM (SELECT pg_advisory_lock(7)) AS waited"
        answer = pool.submit(lambda: connection.exec_driver_sql(ask).scalar())
        until(lambda: tries or answer.done(), "a try")
        other.exec_driver_sql("SELECT pg_advisory_unlock(7)")
        assert answer.result() == 7
    assert tries
