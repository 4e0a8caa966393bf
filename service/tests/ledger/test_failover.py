"""PostgreSQL fails over: who lost nothing goes on, and who did does not."""

import psycopg
import pytest
from service.tests.ledger.helpers import Clock, opened, person, published
from service.tests.ledger.standby import NAME, replicated
from service.tests.torture.operating import put_back
from tests.tools import need

from evenhand_service.ledger import GapUnconfirmed, Tampered, Terms, postgres, verify


def actions(ledger):
    return [event.action for event in ledger.events()]


def promoted(monkeypatch, **changed):
    """From now on the database is on a later timeline; or `server` is another one."""
    real = postgres.instance

    def instance(connection):
        server, timeline, *tables = real(connection).split("/")
        return "/".join([changed.get("server", server), f"{int(timeline, 16) + 1:08X}", *tables])

    monkeypatch.setattr(postgres, "instance", instance)


@pytest.fixture
def kept(postgres_url, tmp_path):
    """(the mark, terms) of a ledger with one decision."""
    mark = tmp_path / "keyring.json.mark"
    with opened(postgres_url, mark=mark) as ledger:
        terms = Terms(published(ledger), 0.5)
        ledger.decide(person(1), terms)
    return mark, terms


def test_a_standby_that_lacks_nothing_goes_on_without_a_human(postgres_url, kept, monkeypatch):
    mark, terms = kept
    promoted(monkeypatch)
    for number in (2, 3):  # it is on record once
        with opened(postgres_url, mark=mark) as ledger:
            ledger.decide(person(number), terms)
            assert actions(ledger).count("failed_over") == 1
            assert "restored" not in actions(ledger)
            assert verify(ledger).ok


def test_without_a_mark_or_on_another_server_a_human_looks(postgres_url, kept, monkeypatch):
    mark, terms = kept
    with monkeypatch.context() as patch:
        promoted(patch)
        with opened(postgres_url) as ledger, pytest.raises(GapUnconfirmed):
            ledger.decide(person(2), terms)
    promoted(monkeypatch, server="77")
    with opened(postgres_url, mark=mark) as ledger, pytest.raises(GapUnconfirmed):
        ledger.decide(person(2), terms)


def test_a_standby_that_lacks_a_row_does_not_draw(postgres_url, kept, monkeypatch):
    mark, terms = kept
    with psycopg.connect(postgres_url) as connection:
        head = connection.execute("SELECT * FROM head").fetchone()
    with opened(postgres_url, mark=mark) as ledger:
        ledger.decide(person(2), terms)
    put_back(postgres_url, head)
    promoted(monkeypatch)
    with opened(postgres_url, mark=mark) as ledger, pytest.raises(GapUnconfirmed):
        ledger.decide(person(3), terms)


def test_a_running_replica_misses_its_row_although_others_have_gone_on(postgres_url, kept):
    """The chain has grown beyond its last row meanwhile; that row is another one."""
    _, terms = kept
    with psycopg.connect(postgres_url) as connection:
        head = connection.execute("SELECT * FROM head").fetchone()
    with opened(postgres_url) as running:
        running.decide(person(2), terms)
        put_back(postgres_url, head)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        with opened(postgres_url, Clock(1_800_000_100.0)) as other:
            for number in range(3, 9):
                other.decide(person(number), terms)
        with pytest.raises(Tampered, match="not in"):
            running.decide(person(9), terms)


# a real standby


@pytest.fixture
def servers():
    need("postgresql")
    with replicated() as made:
        yield made


@pytest.mark.slow
def test_a_synchronous_standby_takes_over_without_a_human(servers, tmp_path):
    """The server is killed. Whoever was running goes on, and so does whoever starts afterwards: the
    last row that each has acknowledged is in the standby.
    """
    mark = tmp_path / "keyring.json.mark"
    servers.synchronous(NAME)
    with opened(servers.url, mark=mark) as running:
        terms = Terms(published(running), 0.5)
        answers = {n: running.decide(person(n), terms).body for n in range(30)}
        servers.fail_over()
        for number, body in answers.items():
            again = running.decide(person(number), terms)
            assert (again.body, again.replayed) == (body, True)
        running.decide(person(100), terms)
    with opened(servers.url, mark=mark) as started:
        assert started.decide(person(7), terms).body == answers[7]
        started.decide(person(101), terms)
        assert actions(started).count("failed_over") == 1
        assert "restored" not in actions(started)
        assert verify(started, deep=True).ok


@pytest.mark.slow
def test_a_standby_that_was_behind_draws_for_nobody(servers, tmp_path):
    """The control: a commit does not wait for the standby, which is away when the last people are
    answered.
    """
    mark = tmp_path / "keyring.json.mark"
    servers.synchronous("")
    with opened(servers.url, mark=mark) as running:
        terms = Terms(published(running), 0.5)
        running.decide(person(1), terms)
        servers.run(1, "pg_ctl", "-m", "fast", "stop")
        running.decide(person(2), terms)
        servers.run(0, "pg_ctl", "-m", "immediate", "stop")
        servers.start(1)
        servers.run(1, "pg_ctl", "-w", "promote")
        with pytest.raises(Tampered, match="had been written"):
            running.decide(person(3), terms)
    with opened(servers.url, mark=mark) as started:
        assert "restored" in actions(started)
        assert started.decide(person(1), terms).replayed
        with pytest.raises(GapUnconfirmed):
            started.decide(person(3), terms)
