"""Before the chain is extended: the seal, the way forward, and the clocks."""

import json
import logging
import shutil
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from service.tests.ledger.helpers import (
    DAY,
    KEYRING,
    Clock,
    coin,
    decided,
    opened,
    person,
    published,
)
from service.tests.torture.integrity import Intruder
from service.tests.torture.run import TrustingLedger
from sqlalchemy import select, update

from evenhand.canonical import canonical
from evenhand_service.ledger import (
    Basis,
    ClockJumped,
    GapUnconfirmed,
    Invalid,
    Ledger,
    Switched,
    SystemClock,
    Tampered,
    Terms,
    TooEarly,
    WindowPlan,
    chain,
    verify,
)
from evenhand_service.ledger.database import HEAD, open_store
from evenhand_service.ledger.guard import HeadGuard, LockedHead, Mark, boot_id, since_boot


def test_a_forged_chain_is_read_and_never_extended(where, caplog):
    with opened(where) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(20))
    row = Intruder(where).flip()
    with opened(where) as ledger, caplog.at_level(logging.CRITICAL):
        for _ in range(2):
            with pytest.raises(Exception, match="keyring's"):
                ledger.decide(person(30), Terms(policy, 0.5))
        assert "not the keyring's" in ledger.broken
        assert row in [problem.seq for problem in verify(ledger, deep=True).problems]
        assert not verify(ledger).ok
    with opened(where) as ledger, pytest.raises(Exception, match="keyring's"):
        ledger.operate("loan", "note", "operator")


@pytest.mark.parametrize("plausible", [False, True])
def test_deep_finds_what_was_laundered(path, plausible):
    with opened(path, kind=TrustingLedger) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(20))
    row = Intruder(path).flip(plausible=plausible)
    path.with_name(path.name + ".mark").unlink()
    with opened(path, kind=TrustingLedger) as ledger:
        decided(ledger, policy, [30])
        assert verify(ledger).ok
        assert {problem.seq for problem in verify(ledger, deep=True).problems} == {row}


def test_a_running_ledger_notices_that_an_older_state_was_put_back(postgres_url):
    with opened(postgres_url) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(5))
        intruder = Intruder(postgres_url)
        kept = intruder.run("SELECT seq, hash, at, seal FROM head").fetchone()
        intruder.connection.commit()
        decided(ledger, policy, range(5, 9))
        intruder.unguard()
        for table in ("decisions", "personal"):
            intruder.run(f"DELETE FROM {table} WHERE seq > ?", kept[0])
        intruder.run("UPDATE head SET seq = ?, hash = ?, at = ?, seal = ?", *kept)
        intruder.connection.commit()
        intruder.connection.close()
        with pytest.raises(Tampered, match="older state"):
            ledger.decide(person(20), Terms(policy, 0.5))


def test_an_older_file_in_its_place_draws_nothing_until_the_gap_is_confirmed(path, tmp_path):
    with opened(path) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(5))
    shutil.copyfile(path, tmp_path / "older")
    with opened(path) as ledger:
        decided(ledger, policy, range(5, 10))
    shutil.copyfile(tmp_path / "older", path)
    for _ in range(2):
        with opened(path) as ledger, pytest.raises(GapUnconfirmed):
            ledger.decide(person(7), Terms(policy, 0.5))
    with opened(path) as ledger:
        assert [event.action for event in ledger.events()].count("restored") == 1
        ledger.confirm_gap("operator", "looked")
        decided(ledger, policy, [7])
        assert verify(ledger, deep=True).ok


def clocks(wall=1_800_000_000.0, elapsed=1000.0):
    times = {"wall": wall, "elapsed": elapsed}
    return times, SystemClock(lambda: times["wall"], lambda: times["elapsed"])


def test_a_jump_is_refused_and_a_quiet_time_is_not():
    times, clock = clocks()
    assert clock.read(None) == times["wall"]
    times["wall"], times["elapsed"] = times["wall"] + 90 * DAY, times["elapsed"] + 90 * DAY
    assert clock.read(None) == times["wall"]
    times["wall"] += 59
    assert clock.read(None) == times["wall"]
    times["wall"] += 2  # small steps do not add up
    with pytest.raises(ClockJumped):
        clock.read(None)
    times["wall"] -= 3600
    clock.read(None)
    times["wall"] += 400 * DAY
    with pytest.raises(ClockJumped, match="passed"):
        clock.read(None)
    clock.restart()
    assert clock.read(None) == times["wall"]


def test_the_database_s_clock_counts_unless_it_is_ahead_of_ours(caplog):
    times, clock = clocks()
    now = times["wall"]
    times["wall"] += 400 * DAY
    assert clock.read(now) == now
    assert "the clock of this machine differs" in caplog.text
    assert clock() == now  # the trainer sees it too
    times["wall"] -= 800 * DAY
    with pytest.raises(ClockJumped, match="database"):
        clock.read(now)


def test_the_time_of_a_witness_binds():
    times, clock = clocks()
    clock.corroborate(times["wall"] - 400 * DAY)
    with pytest.raises(ClockJumped, match="witness"):
        clock.read(None)


def test_a_clock_that_was_moved_between_two_starts(path):
    times, clock = clocks()
    with Ledger.open(path, keyring=KEYRING, clock=clock) as ledger:
        policy = published(ledger)
        window = ledger.window()
    times["wall"] += 400 * DAY
    _, moved = None, SystemClock(lambda: times["wall"], lambda: times["elapsed"])
    with Ledger.open(path, keyring=KEYRING, clock=moved) as ledger:
        with pytest.raises(ClockJumped):
            ledger.decide(person(1), Terms(policy, 0.5))
        with pytest.raises(ClockJumped):
            ledger.reveal(window.name, "auditor")
        with pytest.raises(Invalid):
            ledger.confirm_clock("operator", "")
        times["wall"] -= 400 * DAY
        decided(ledger, policy, [1])
        with pytest.raises(TooEarly):
            ledger.reveal(window.name, "auditor")
        times["wall"] += 400 * DAY
        ledger.confirm_clock("operator", "the first clock was wrong")
        decided(ledger, policy, [2])
        assert verify(ledger, deep=True).ok


def test_postgresql_dates_the_rows(postgres_url):
    _, clock = clocks(wall=4e9, elapsed=5.0)
    with Ledger.open(postgres_url, keyring=KEYRING, clock=clock) as ledger:
        policy = published(ledger)
        (answer,) = decided(ledger, policy, [1])
        intruder = Intruder(postgres_url)
        (now,) = intruder.run("SELECT extract(epoch FROM now())::float8").fetchone()
        assert abs(answer.drawn.at - now) < 300
        intruder.connection.close()


def test_the_mark_is_what_was_saved(tmp_path):
    mark = Mark(tmp_path / "mark")
    assert mark.load() == {}
    mark.save(7, bytes(32), 12.5)
    mark.save(8, bytes(32), 12.5)
    assert (mark.load()["seq"], mark.clock_offset()) == (8, 12.5 if boot_id() else None)
    mark.close()
    (tmp_path / "mark").write_text("[]")
    assert mark.load() == {}
    assert since_boot() > 0


def test_an_empty_head_needs_no_seal():
    guard = HeadGuard(KEYRING, Clock())
    assert guard.admit(LockedHead(0, bytes(32), 0.0, bytes(32), None)) == Clock().now
    with pytest.raises(Tampered):
        guard.admit(LockedHead(1, bytes(32), 0.0, bytes(32), None))


# windows


def test_another_plan_is_refused_and_a_new_one_begins_where_the_old_ends(where):
    clock = Clock()
    with opened(where, clock) as ledger:
        policy = published(ledger)
        first = ledger.window()
        decided(ledger, policy, [1])
    for plan in (WindowPlan(15 * DAY), WindowPlan(30 * DAY, origin=1.0)):
        with pytest.raises(Invalid, match="30 days"):
            Ledger.open(where, keyring=KEYRING, clock=clock, windows=plan)
    with Ledger.open(where, keyring=KEYRING, clock=clock) as ledger:  # as the ledger has it
        plan = ledger.plan_windows(15 * DAY, "operator", "quarter")
        assert plan.origin == first.ends
        with pytest.raises(Invalid, match="begin in"):
            ledger.plan_windows(1 * DAY, "operator")
        assert ledger.window() == first
        clock.now = first.ends
        second = ledger.window()
        assert (second.name, second.starts, second.ends) == (
            "p1w0",
            first.ends,
            first.ends + 15 * DAY,
        )
        decided(ledger, policy, [1001])
        assert verify(ledger, deep=True).ok
    with pytest.raises(Invalid):
        opened(where, clock)
    Ledger.open(where, keyring=KEYRING, clock=clock, windows=WindowPlan(15 * DAY)).close()


# the marks of the head


def marks(where, **changes):
    """What the head says of the newest switch and key; perhaps after somebody without the keyring
    has changed it.
    """
    with closing(open_store(str(where))) as store, store.writer.begin() as connection:
        if changes:
            connection.execute(update(HEAD).values(**changes))
        return connection.execute(select(HEAD.c.switched, HEAD.c["keys"])).one()


@pytest.mark.parametrize("seal", [None, bytes(32)])
def test_a_switch_is_not_hidden_by_moving_the_marks_back(where, seal):
    """Two replicas, as PostgreSQL has them; on SQLite the second one begins afterwards."""
    with opened(where) as first:
        policy = published(first)
        before = first.basis()
        first.operate("loan", "shadow", "op")
        first.change_keys(lambda _: [("key_created", "op", {"sha256": "00"})])
        after = first.basis()
    assert after.switched > before.switched
    marks(where, switched=before.switched, keys=before.keys, basis_seal=seal)
    with opened(where) as second:
        assert second.basis() == after
        terms = Terms(policy, 0.5, basis=before)
        with pytest.raises(Switched):
            second.decide(person("p1"), terms)
        second.decide(person("p1"), replace(terms, basis=after))
    assert marks(where) == tuple(after)  # the next commit has put them right


def test_marks_that_a_keyring_has_sealed_are_believed_without_a_look_at_the_rows(where):
    """The control: what the seal covers is believed, so the seal is what protects it."""
    with opened(where) as ledger:
        published(ledger)
        head, moved = ledger.head(), Basis(1, 1)
        sealed = head.seq, bytes.fromhex(head.hash), moved
        seal = ledger.keyring.basis_seal(*sealed, ledger._guard.checked.control)
    marks(where, switched=1, keys=1, basis_seal=seal)
    with opened(where) as ledger:
        assert ledger.basis() == moved


def test_a_process_stops_when_a_row_that_it_has_seen_is_gone():
    guard = HeadGuard(KEYRING, Clock())
    for found in ((7, 3), (7, 9)):
        assert guard.admit_basis(found) == found
    for gone in ((6, 9), (7, 3)):
        with pytest.raises(Tampered, match="row 9"):
            guard.admit_basis(gone)


# rows that the keyring did not put into the chain


def injected(where, action, seq, **changes):
    """One row in the table of events, by somebody who can only append: what the newest event says,
    changed, under a number of their choice.
    """
    intruder = Intruder(where)
    at, text, digest = intruder.run(
        "SELECT at, body, hash FROM events ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    body = json.loads(text) | {"action": action, "product": "loan"} | changes
    intruder.run(
        "INSERT INTO events (seq, at, action, product, body, hash) VALUES (?, ?, ?, 'loan', ?, ?)",
        *(seq, at, action, canonical(body), bytes(digest)),
    )
    intruder.connection.commit()
    intruder.connection.close()


def killed(ledger, numbers=range(5)):
    """A product that was killed after some decisions; its policy and the constant."""
    policy = published(ledger)
    constant = ledger.register("loan", coin(0.0)).id
    decided(ledger, policy, numbers)
    ledger.operate("loan", "kill", "op", policy=constant)
    return policy, constant


@pytest.mark.parametrize("seq", [3, 900_000_000], ids=["below the head", "beyond it"])
@pytest.mark.parametrize("action", ["revive", "rollback", "live", "gap_confirmed", "window_plan"])
def test_a_row_that_was_added_without_the_keyring_decides_nothing(where, action, seq, caplog):
    """The running process stops at its next transaction, says so, and one that starts afterwards
    does not begin to write; verify names the row.
    """
    with opened(where) as ledger, caplog.at_level(logging.CRITICAL):
        policy, constant = killed(ledger)
        assert ledger.active("loan").mode == "killed"
        about = {"policy": policy}
        if action == "window_plan":
            about = {"info": {"number": 1, "starts": 0.0, "length": 60.0, "origin": 0.0}}
        injected(where, action, seq, **about)
        if action == "window_plan":  # it moves no mark, so it is read at the next window
            ledger.clock.now += 40 * DAY
        with pytest.raises(Tampered, match="without"):
            ledger.decide(person(30), Terms(constant, 0.0, mode="killed"))
        assert "without the keyring" in ledger.broken
        assert "writes nothing any more" in caplog.text
        with pytest.raises(Exception, match="without"):
            ledger.operate("loan", "note", "op")
    with opened(where) as ledger:
        assert "without the keyring" in ledger.broken
        assert seq in [problem.seq for problem in verify(ledger).problems]


def test_what_is_active_is_not_told_from_rows_that_were_not_sealed(postgres_url):
    """The head's mark is put back after the row was added, so that no transaction has a reason to
    look; the next genuine switch is one.
    """
    with opened(postgres_url) as ledger:
        _, constant = killed(ledger)
        ledger.decide(person(29), Terms(constant, 0.0, mode="killed"))
        (mark,) = marks(postgres_url)[:1]
        injected(postgres_url, "revive", 3)
        marks(postgres_url, switched=mark)
        ledger.decide(person(30), Terms(constant, 0.0, mode="killed"))
        ledger.operate("other", "shadow", "op")
        with pytest.raises(Tampered):
            ledger.active("loan")
        assert ledger.broken is not None


def test_a_switch_or_a_revocation_that_was_deleted_is_missed(where):
    """By whoever has seen it and by whoever has not, and after the next switch of another
    product.
    """
    with opened(where) as ledger:
        killed(ledger)
        intruder = Intruder(where)
        intruder.unguard()
        intruder.run("DELETE FROM events WHERE action = 'kill'")
        intruder.connection.commit()
        intruder.connection.close()
        ledger.operate("other", "revive", "op")
        with pytest.raises(Tampered, match="without"):
            ledger.active("loan")
        with pytest.raises(Exception, match="without"):
            ledger.decide(person(30), Terms("p", 0.0))
    with opened(where) as ledger:
        assert "without the keyring" in ledger.broken


def test_a_head_whose_marks_are_not_sealed_is_followed_from_where_it_was_checked(where):
    """Somebody has replaced the seal of the marks; then the chain is read from the last state that
    this process has checked, and from the first row by a process that starts.
    """
    read = []
    with opened(where) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(20))
        head = ledger.head()
        end = head.seq, bytes.fromhex(head.hash)
        wrong = ledger.keyring.basis_seal(*end, ledger.basis(), bytes(32))
        intruder = Intruder(where)
        intruder.run("UPDATE head SET basis_seal = ?", wrong)
        intruder.connection.commit()
        intruder.connection.close()
        with mock_followed(read):
            decided(ledger, policy, range(20, 30))
            assert read == [head.seq]
            decided(ledger, policy, range(30, 40))
            assert read == [head.seq]  # sealed again
    marks(where, basis_seal=None)
    with mock_followed(read):
        for _ in range(2):  # it is sealed when the first one has begun
            opened(where).close()
    assert read == [head.seq, 0]
    with opened(where) as ledger:
        decided(ledger, policy, [50])
        assert verify(ledger, deep=True).ok


@contextmanager
def mock_followed(read):
    """Note from which row the chain is followed."""
    followed = chain.followed

    def noted(connection, known, *end):
        read.append(known.seq)
        return followed(connection, known, *end)

    chain.followed = noted
    try:
        yield
    finally:
        chain.followed = followed


def test_a_decision_costs_no_look_at_the_rows_that_decide(path):
    """While nothing has switched, the seal of the head is compared with what is known."""
    looks, digest = [], chain.control_digest
    with opened(path) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(5))
        chain.control_digest = lambda connection: looks.append(1) or digest(connection)
        try:
            for number in range(10, 20):
                decided(ledger, policy, [number])
            assert looks == []
            ledger.operate("loan", "shadow", "op")
            decided(ledger, policy, [30])
            assert len(looks) == 1  # whether a gap was confirmed
        finally:
            chain.control_digest = digest
