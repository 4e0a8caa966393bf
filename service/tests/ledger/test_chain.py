"""The rows of the chain, group commit, and what happens when the disk says no."""

import asyncio
import json
import logging
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest
from service.tests.ledger.helpers import KEYRING, PRODUCT, decided, opened, person, published
from sqlalchemy import event
from tests.tools import need_trace
from tests.without_clocks import PATIENCE

from evenhand.canonical import canonical
from evenhand_service.ledger import Ledger, LedgerUnavailable, Terms, chain, verify
from evenhand_service.ledger.chain import (
    LOOKUPS,
    MOST_SILENT,
    Transaction,
    among_array_text,
    lookup_values,
)
from evenhand_service.ledger.database import DECISIONS
from evenhand_service.ledger.decision_draw import STORED_DECISIONS
from evenhand_service.ledger.standalone_verifier import uniform

ROOT = Path(__file__).parents[3]


def commits(ledger):
    """How many transactions were committed: a list that grows."""
    seen = []
    event.listen(ledger.store.writer, "commit", seen.append)
    return seen


def test_those_who_wait_share_a_commit(ledger, policy):
    seen, gate = commits(ledger), threading.Event()
    ledger._writer.submit(_waiting_job(gate))
    futures = [ledger.submit([(person(n), Terms(policy, 0.5))]) for n in range(200)]
    gate.set()
    for future in futures:
        future.result()
    assert len(seen) <= 3


def _waiting_job(gate):
    from evenhand_service.ledger.chain import Job

    return Job(work=lambda transaction: gate.wait(PATIENCE))


def shared_commits(ledger, policy, monkeypatch, crowd, visits):
    """How many jobs each commit had, when `crowd` have shared one and then one job comes, during
    whose quiet moments `visits` others come, one in each.
    """
    groups, comers = [], iter(range(100, 100 + visits))
    attempt, gate = ledger._writer._attempt, threading.Event()

    def counted(jobs):
        groups.append(len(jobs))
        attempt(jobs)

    def nobody_sleeps(seconds):
        number = next(comers, None)
        if number is not None:
            waiting.append(ledger.submit([(person(number), Terms(policy, 0.5))]))

    monkeypatch.setattr(ledger._writer, "_attempt", counted)
    monkeypatch.setattr("evenhand_service.ledger.chain.sleep", nobody_sleeps)
    held = ledger._writer.submit(_waiting_job(gate)).future
    waiting = [ledger.submit([(person(n), Terms(policy, 0.5))]) for n in range(crowd)]
    gate.set()
    for future in (held, *waiting):
        future.result()
    groups.clear()
    ledger.decide(person(99), Terms(policy, 0.5))
    for future in waiting:
        future.result()
    return groups


def test_where_several_shared_the_last_commit_the_first_waits_for_the_others(
    ledger, policy, monkeypatch
):
    assert shared_commits(ledger, policy, monkeypatch, crowd=5, visits=7) == [8]


def test_those_who_never_stop_coming_are_not_waited_for(ledger, policy, monkeypatch):
    slept = []
    monkeypatch.setattr("evenhand_service.ledger.chain.LONGEST_LINGER", -1.0)
    monkeypatch.setattr("evenhand_service.ledger.chain.sleep", slept.append)
    ledger._writer._shared = 9
    ledger.decide(person(1), Terms(policy, 0.5))
    assert slept == []


def test_somebody_who_comes_alone_is_not_kept_waiting(ledger, policy, monkeypatch):
    slept = []
    monkeypatch.setattr("evenhand_service.ledger.chain.sleep", slept.append)
    for number in range(3):
        ledger.decide(person(number), Terms(policy, 0.5))
    assert slept == []


def test_a_client_who_leaves_takes_nobody_along(ledger, policy):
    async def story():
        gone = asyncio.ensure_future(ledger.decide_async([(person(1), Terms(policy, 0.5))]))
        stays = asyncio.ensure_future(ledger.decide_async([(person(2), Terms(policy, 0.5))]))
        await asyncio.sleep(0)
        gone.cancel()
        return await stays

    assert len(asyncio.run(story())) == 1


@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("database or disk is full"), OSError(5, "fsync failed")]
)
def test_a_failing_commit_answers_nobody_and_stops_the_writer_until_a_restart(
    path, clock, error, caplog
):
    caplog.set_level(logging.ERROR, "evenhand_service.ledger")
    with opened(path, clock) as ledger:
        policy = published(ledger)
        kept = ledger.decide(person(1), Terms(policy, 0.5)).body

        @event.listens_for(ledger.store.writer, "commit")
        def refuse(connection):
            raise error

        for number in (1, 2, 3):
            with pytest.raises(LedgerUnavailable):
                ledger.decide(person(number), Terms(policy, 0.5))
        assert ledger.broken
        assert [r.levelname for r in caplog.records] == ["CRITICAL"]  # once
        assert "a commit failed" in caplog.text
        assert ledger.failed_commits == 1
        event.remove(ledger.store.writer, "commit", refuse)
        with pytest.raises(LedgerUnavailable):
            ledger.decide(person(4), Terms(policy, 0.5))
        assert ledger.find("k1").body == kept  # what was durable can still be read
    with opened(path, clock) as ledger:
        assert ledger.decide(person(1), Terms(policy, 0.5)).body == kept
        assert not ledger.decide(person(2), Terms(policy, 0.5)).replayed
        assert verify(ledger, deep=True).ok


@pytest.mark.slow
def test_a_full_disk_for_real(tmp_path):
    """A file size limit of the process stands for the disk: SQLite meets it while writing."""
    code = """
import resource, signal, sys
from evenhand_service.ledger import LedgerUnavailable, Refusal
from service.tests.ledger.helpers import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
ledger = opened(sys.argv[1])
policy = published(ledger)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
answered, refused = [], 0
for start in range(0, 4000, 50):
    try:
        asked = [(person(n), Terms(policy, 0.5)) for n in range(start, start + 50)]
        answers = ledger.decide_many(asked)
        answered += [answer.drawn.key for answer in answers]
    except LedgerUnavailable:
        refused += 1
print(len(answered), refused, *answered)
"""
    path = tmp_path / "ledger.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    number, refused, *keys = done.stdout.split()
    assert int(number) > 0
    assert int(refused) > 0
    with opened(path) as ledger:
        for key in keys:
            ledger.find(key)
        assert verify(ledger, deep=True).ok
        decided(ledger, ledger.policies("loan")[0].id, range(4000))


def test_an_error_while_drawing_hurts_only_its_own_request(path, clock):
    def render(drawn):
        if drawn.person == "p7":
            raise ZeroDivisionError
        return b"{}"

    with opened(path, clock, render=render) as ledger:
        policy, gate = published(ledger), threading.Event()
        ledger._writer.submit(_waiting_job(gate))
        futures = [ledger.submit([(person(n), Terms(policy, 0.5))]) for n in range(10)]
        gate.set()
        for number, future in enumerate(futures):
            if number == 7:
                with pytest.raises(LedgerUnavailable):
                    future.result()
            else:
                assert future.result()[0].body == b"{}"
        assert verify(ledger, deep=True).ok
        assert ledger.broken is None


def test_the_mutant_of_the_crash_test_differs_in_the_order_alone():
    from service.tests.ledger.crash import Hasty

    assert {name for name in vars(Hasty) if not name.startswith("__")} == {"_transact"}
    assert issubclass(Hasty, Ledger.writer_class)


def test_nothing_is_answered_before_the_fsync(tmp_path):
    """The system calls in their order: no answer leaves while the WAL holds bytes that no fdatasync
    has followed.
    """
    strace = need_trace()
    code = """
import os, sys
from service.tests.ledger.helpers import *
ledger = opened(sys.argv[1])
policy = published(ledger)
for number in range(30):
    ledger.decide(person(number), Terms(policy, 0.5))
    os.write(1, b"ANSWER")
"""
    trace, path = tmp_path / "trace", tmp_path / "ledger.sqlite"
    watch = [strace, "-f", "-y", "-o", str(trace), "-e", "trace=pwrite64,fdatasync,fsync,write"]
    done = subprocess.run(
        [*watch, sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    dirty, written, answers = False, False, 0
    for line in trace.read_text().splitlines():
        if "pwrite64" in line and "-wal>" in line:
            dirty = written = True
        elif "sync(" in line and "-wal>" in line:
            dirty = False
        elif "ANSWER" in line:
            assert written
            assert not dirty
            answers, written = answers + 1, False
    assert answers == 30


@pytest.mark.parametrize("number", [1, 2, 31, 32, 33, 63, 64, 65, 200])
def test_rows_of_every_size_of_a_group_are_those_of_their_bodies(ledger, policy, number):
    """SQLite gets a group in pieces of 64 rows and a rest, PostgreSQL as arrays or by COPY; columns
    and bodies must say the same, and the draws be the stand-alone ones.
    """
    answers = decided(ledger, policy, range(number))
    secret = ledger.keyring.window_secret(ledger.id, answers[0].drawn.window)
    with ledger.store.reader.connect() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM decisions ORDER BY seq").mappings().all()
    assert [row["seq"] for row in rows] == [answer.drawn.seq for answer in answers]
    for row, answer in zip(rows, answers, strict=True):
        body, drawn = json.loads(row["body"]), answer.drawn
        assert canonical(body) == row["body"]
        assert tuple(row[name] for name in LOOKUPS["decision"]) == lookup_values("decision", body)
        assert body["u"] == uniform(secret, drawn.person, drawn.product, drawn.window)


def test_more_people_than_one_list_holds(ledger, policy, monkeypatch):
    monkeypatch.setattr(chain, "MOST_VALUES", 7)
    first = [answer.body for answer in decided(ledger, policy, range(50))]
    again = decided(ledger, policy, range(50))
    assert [answer.body for answer in again] == first
    assert all(answer.replayed for answer in again)


def test_postgresql_looks_each_key_up_by_its_index(postgres_url):
    """However small it takes the table for. Control: one list of all keys reads the whole table."""
    with opened(postgres_url) as ledger:
        decided(ledger, published(ledger), range(300))
        keys = [KEYRING.digest("key", f"k{number}").hex() for number in range(300)]
        asked = among_array_text(STORED_DECISIONS, DECISIONS.c.key, ledger.store.writer.dialect)
    plans = []
    with psycopg.connect(postgres_url) as connection:
        assert len(connection.execute(asked, [keys]).fetchall()) == 300
        for question in (asked, "SELECT seq FROM decisions WHERE key = ANY(%b)"):
            plan = connection.execute(f"EXPLAIN {question}", [keys]).fetchall()
            plans.append("\n".join(line for (line,) in plan))
    assert "Seq Scan on decisions" not in plans[0]
    assert "Seq Scan on decisions" in plans[1]


def test_a_large_group_is_never_silent_for_long(where, monkeypatch):
    """PostgreSQL takes the transaction from a client that says nothing for a second. Control:
    without the limit there is one silence as long as the group.
    """
    for most, longest in ((MOST_SILENT, MOST_SILENT), (10**9, 1000)):
        monkeypatch.setattr("evenhand_service.ledger.chain.MOST_SILENT", most)
        pending, flush = [], Transaction.flush

        def counted(transaction, pending=pending, flush=flush):
            pending.append(len(transaction.pending.get(DECISIONS, ())))
            flush(transaction)

        with monkeypatch.context() as patched, opened(where) as ledger:
            known = ledger.policies(PRODUCT)
            policy = known[0].id if known else published(ledger)
            patched.setattr(Transaction, "flush", counted)
            decided(ledger, policy, range(most, most + 1000))
            assert (max(pending), sum(pending)) == (longest, 1000)
            assert verify(ledger, deep=True).ok
