"""Rows of ended windows in an archive: the chain goes on, and what may still be asked is answered
or refused in plain words.
"""

import base64
import json
import os
import signal
import subprocess
import sys

import pytest
from service.tests.ledger.helpers import DAY, PRODUCT, decided, opened, person, published
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from evenhand_service.ledger import (
    Archived,
    Damaged,
    Gate,
    Gone,
    GroupReport,
    Invalid,
    Label,
    Override,
    Tampered,
    Terms,
    backup,
    chain,
    export,
    restore,
    verify,
)
from evenhand_service.ledger import archive as archives
from evenhand_service.ledger import standalone_verifier as verifier
from evenhand_service.ledger.archive import LearnerRow, archive, rows_left_out, whole
from evenhand_service.ledger.database import KINDS, deleting
from evenhand_service.ledger.decision_draw import Drawer
from evenhand_service.ledger.merkle import proof_of_decision
from evenhand_service.ledger.outcome_status import RunningCounts
from evenhand_service.ledger.postgres import grant

ROLE = "archive_appender"


def archived(ledger, folder, upto=None):
    """Archive up to a row, by default the last row of now; the learner needs everybody as they
    are.
    """
    learned = {row.seq: LearnerRow(row, row) for row in ledger.history(PRODUCT)}
    return archive(ledger, upto or ledger.head().seq, folder, learned, by="Ada")


def lived(ledger, clock, people=12):
    """People of a window that has ended: labels, a late group, an override, an erasure."""
    policy = published(ledger)
    answers = decided(ledger, policy, range(people), audit_weight=0.2)
    for answer in answers:
        ledger.report(answer.drawn.key, Label(1 if answer.drawn.seq % 3 else -1))
    ledger.decide(person("late", group=None), Terms(policy, 0.5))
    ledger.report("klate", GroupReport("b"))
    ledger.report("k1", Override(not answers[1].drawn.accept, "clerk"))
    ledger.erase("p2", by="officer")
    clock.now += 40 * DAY
    return policy, {answer.drawn.key: answer.body for answer in answers}


@pytest.fixture
def shelf(where, clock, tmp_path):
    """(ledger, policy, answers, folder) with everybody so far in an archive."""
    with opened(where, clock) as ledger:
        policy, answers = lived(ledger, clock)
        archived(ledger, tmp_path / "archive")
        yield ledger, policy, answers, tmp_path / "archive"


def test_an_archived_key_is_refused_and_the_chain_goes_on(shelf):
    ledger, policy, answers, folder = shelf
    (again,) = ledger.decide_many([(person(3), Terms(policy, 0.5))])
    assert isinstance(again, Archived)
    assert "in an archive" in str(again)
    for ask in (ledger.find, ledger.explain, lambda key: ledger.report(key, Label(1))):
        with pytest.raises(Archived, match="row 8, whose window has ended"):
            ask("k3")
    # somebody who was there before comes with a new key, and somebody new
    ledger.decide(person(3, key="k3b"), Terms(policy, 0.5))
    decided(ledger, policy, [100])
    assert verify(ledger, anchor=ledger.signed_head(), deep=True).problems == ()
    with whole(ledger, [folder]) as complete:
        found = {key: complete.find(key).body for key in answers if key != "k2"}
    assert found == {key: body for key, body in answers.items() if key != "k2"}


def test_a_drawer_that_does_not_look_into_archives_tosses_a_second_coin(shelf, monkeypatch):
    """The mutant of the test above."""
    ledger, policy, _, _ = shelf
    monkeypatch.setattr(Drawer, "_archived", lambda *_: {})
    (again,) = ledger.decide_many([(person(3), Terms(policy, 0.5))])
    assert not isinstance(again, Archived)


def test_the_verifier_checks_an_archive_alone_and_with_the_ledger(shelf, tmp_path, capsys):
    ledger, policy, _, folder = shelf
    decided(ledger, policy, range(100, 110))
    live, file = tmp_path / "live.jsonl", folder / "archive.jsonl"
    export(ledger, live)
    head = tmp_path / "head.json"
    head.write_text(json.dumps(ledger.signed_head().to_json()))
    assert verifier.main([str(file), "--head", str(folder / "head.json")]) == 0
    assert "sealed, for the keyring alone: 12 decisions" in capsys.readouterr().out
    assert verifier.main([str(live), "--head", str(head)]) == 0
    assert f"not given: {rows_left_out(ledger)} rows" in capsys.readouterr().out
    assert verifier.main([str(live), "--head", str(head), "--archive", str(file)]) == 0
    assert "not given" not in capsys.readouterr().out
    ran = [sys.executable, "-I", folder / "verifier.py", file, "--head", folder / "head.json"]
    assert subprocess.run(ran, check=False, capture_output=True).returncode == 0


def doctored(file, change):
    """A copy of an archive in which the row of the fourth decision was changed."""
    lines = file.read_text().splitlines(keepends=True)
    place = next(i for i, line in enumerate(lines) if '"seq":8}' in line)
    row = json.loads(lines[place])
    change(row)
    lines[place] = json.dumps(row) + "\n"
    copy = file.parent.parent / "doctored"
    copy.mkdir()
    (copy / "archive.jsonl").write_text("".join(lines))
    (copy / "head.json").write_bytes((file.parent / "head.json").read_bytes())
    return copy


def other_sealed(row):
    row["sealed"] = base64.b64encode(b"another" * 9).decode()


DOCTORINGS = {
    "another decision": lambda row: row["body"].update(accept=not row["body"]["accept"]),
    "another time": lambda row: row.update(at=row["at"] + 1.0),
    "other sealed fields": other_sealed,
}


@pytest.mark.parametrize("change", DOCTORINGS.values(), ids=DOCTORINGS.keys())
def test_a_doctored_archive_is_found(ledger, clock, tmp_path, change):
    lived(ledger, clock)
    archived(ledger, tmp_path / "archive")
    copy = doctored(tmp_path / "archive" / "archive.jsonl", change)
    live = tmp_path / "live.jsonl"
    export(ledger, live)
    assert verifier.main([str(copy / "archive.jsonl"), "--head", str(copy / "head.json")]) == 1
    assert verifier.main([str(live), "--archive", str(copy / "archive.jsonl")]) == 1
    with pytest.raises(Damaged, match=r"row 8|was changed"), whole(ledger, [copy]):
        pass
    (copy / "archive.jsonl").unlink()
    with pytest.raises(Damaged, match=r"archive\.jsonl is missing"), whole(ledger, [copy]):
        pass


STUBS = {
    "a key is taken out": "UPDATE archived SET key = NULL WHERE seq = 8",
    "a row is taken out": "DELETE FROM archived WHERE seq = 8",
    "another hash": "UPDATE archived SET hash = x'{}' WHERE seq = 8".format("ab" * 32),
    "something else learned": "UPDATE archived SET past = replace(past, '1', '2') WHERE seq = 9",
    "another product": "UPDATE archived SET product = 'card' WHERE seq = 8",
    "a row too many": f"INSERT INTO archived (seq, hash) VALUES (10000, x'{'ab' * 32}')",
    "an event that stayed": "UPDATE windows SET body = replace(body, 'w', 'v')",
}


@pytest.mark.parametrize("change", STUBS.values(), ids=STUBS.keys())
def test_what_stays_of_archived_rows_cannot_be_changed(path, clock, tmp_path, change):
    with opened(path, clock) as ledger:
        lived(ledger, clock)
        archived(ledger, tmp_path / "archive")
        assert verify(ledger).ok
        with ledger.store.writer.begin() as connection:
            connection.execute(text("DROP TRIGGER windows_keeps_UPDATE"))
            assert connection.execute(text(change)).rowcount == 1
        assert not verify(ledger).ok
        with pytest.raises(Tampered):
            ledger.require_chain()


def test_what_is_sealed_of_an_archived_row_is_bound_to_it(path, clock, tmp_path):
    with opened(path, clock) as ledger:
        lived(ledger, clock)
        archived(ledger, tmp_path / "archive")
        with ledger.store.writer.begin() as connection:
            swap = "UPDATE personal SET sealed = (SELECT sealed FROM personal WHERE seq = 9)"
            connection.execute(text(f"{swap} WHERE seq = 8"))
        assert [problem.seq for problem in verify(ledger, deep=True).problems] == [8]
        with pytest.raises(Damaged):
            ledger.past(PRODUCT, 0, 100)
        with pytest.raises(Damaged):  # or somebody else's would be destroyed
            ledger.erase("p3", by="officer")


def test_an_archived_person_is_erased_with_the_copy_in_the_archive(shelf):
    ledger, policy, _, folder = shelf
    ledger.decide(person(3, key="k3b"), Terms(policy, 0.5))
    assert ledger.erase("p3", by="officer") == 2
    rows = {row.seq: row for row in ledger.past(PRODUCT, 0, 100)}
    assert (rows[8].erased, rows[8].features, rows[8].group) == (True, None, None)
    assert not rows[9].erased
    assert ledger.newest_erasure(PRODUCT) == ledger.head().seq
    with whole(ledger, [folder]) as complete:
        for key in ("k3", "k3b", "k2"):
            with pytest.raises(Gone):
                complete.find(key)
        assert complete.find("k4").drawn.key == "k4"
        assert verify(complete, deep=True).problems == ()
    # the person comes back, and gets a new key: it opens nothing of what was archived
    ledger.decide(person(3, key="k3c"), Terms(policy, 0.5))
    with whole(ledger, [folder]) as complete, pytest.raises(Gone):
        complete.find("k3")
    assert verify(ledger, deep=True).problems == ()


def test_the_counts_are_those_of_a_ledger_without_archive(where, clock, tmp_path):
    with opened(where, clock) as ledger:
        policy, _ = lived(ledger, clock)
        decided(ledger, policy, range(100, 110))
        kept = ledger.head().seq
        clock.now += 40 * DAY
        before = ledger.counts(PRODUCT)
        groups = list(ledger.usable_groups(PRODUCT, 0, kept, 10**6))
        overruled = ledger.overruled(PRODUCT, 0, kept)
        usable = ledger.count_usable(PRODUCT)
        archived(ledger, tmp_path / "first", upto=30)
        ledger.report("k105", Label(1))
        archived(ledger, tmp_path / "second", upto=kept)
        assert list(ledger.usable_groups(PRODUCT, 0, kept, 10**6)) == groups
        assert (ledger.overruled(PRODUCT, 0, kept), len(overruled)) == (overruled, 1)
        assert ledger.count_usable(PRODUCT) == usable
        ledger.erase("p4", by="officer")
        running = ledger.counts(PRODUCT)
        with ledger.store.reader.connect() as connection:
            fresh = RunningCounts(PRODUCT).look(connection, ledger.head().seq, ledger.keyring)
    assert running == fresh
    changed = {"erased": 1}
    if before.pending != running.pending:  # the label of k105, if it was accepted
        changed |= {"pending": -1, "resolved": 1}
    else:
        changed |= {"quarantined": 1}
    for name, number in vars(before).items():
        assert vars(running)[name] == number + changed.get(name, 0), name


def test_another_replica_hears_of_an_archive(postgres_url, clock, tmp_path):
    """It has drawn before, and has never asked whether there is one."""
    with opened(postgres_url, clock) as ledger, opened(postgres_url, clock) as replica:
        policy, _ = lived(ledger, clock)
        replica.decide(person(50), Terms(policy, 0.5))
        assert replica.decide(person(3), Terms(policy, 0.5)).replayed
        counted = replica.counts(PRODUCT)
        clock.now += 40 * DAY
        ledger.report("k50", Override(True, "clerk"))
        archived(ledger, tmp_path / "archive")
        (again,) = replica.decide_many([(person(3), Terms(policy, 0.5))])
        assert isinstance(again, Archived)
        (told,) = replica.report_many([("k3", Label(1))])
        assert isinstance(told, Archived)
        decided(replica, policy, [60])
        now = replica.counts(PRODUCT)
        assert now.decisions == counted.decisions + 1
        assert now == ledger.counts(PRODUCT)
        assert verify(replica, deep=True).problems == ()


def test_a_role_that_appends_cannot_archive(postgres_url, clock, tmp_path):
    """It is told so before a file is written, and the database would refuse it anyway."""
    with opened(postgres_url, clock) as ledger:
        lived(ledger, clock)
        with ledger.store.writer.begin() as connection:
            connection.execute(text(f"CREATE ROLE {ROLE} LOGIN"))
    try:
        grant(postgres_url, ROLE)
        with opened(postgres_url.replace("evenhand@", f"{ROLE}@"), clock) as ledger:
            with pytest.raises(Invalid, match="can append and not remove"):
                archived(ledger, tmp_path / "archive")
            assert not (tmp_path / "archive").exists()
            with (
                pytest.raises(DBAPIError, match="permission denied"),
                ledger.store.writer.begin() as connection,
                deleting(connection),
            ):
                connection.execute(text("DELETE FROM decisions"))
    finally:
        with opened(postgres_url, clock) as ledger, ledger.store.writer.begin() as connection:
            connection.execute(text(f"DROP OWNED BY {ROLE}"))
            connection.execute(text(f"DROP ROLE {ROLE}"))


def test_audits_in_an_archive_stay_on_the_bill(path, clock, tmp_path):
    """A budget of 5 audits: 3 of them are in an archive without a good label, so 2 are left."""

    def audited(ledger, policy, numbers):
        paused = Terms(policy, 0.5)
        gate = Gate(None, 5.0, paused, None)
        terms = Terms(policy, 1.0, audit_weight=1.0, gate=gate)
        asked = [(person(number), terms) for number in numbers]
        return sum(answer.drawn.audit for answer in ledger.decide_many(asked))

    with opened(path, clock) as ledger:
        policy = published(ledger, acceptance=1.0)
        assert audited(ledger, policy, range(4)) == 4
        ledger.report("k0", Label(1))
        ledger.report("k1", Label(-1))
        clock.now += 40 * DAY
        assert archived(ledger, tmp_path / "archive")["counts"][PRODUCT]["audits"] == 3
        assert audited(ledger, policy, range(10, 11)) == 1
    with opened(path, clock) as ledger:
        assert audited(ledger, policy, range(20, 30)) == 1


def test_two_archives_and_the_ledger_are_the_ledger_as_it_was(where, clock, tmp_path):
    with opened(where, clock) as ledger:
        policy, _ = lived(ledger, clock)
        first = ledger.head().seq
        decided(ledger, policy, range(100, 110))
        ledger.report("k103", GroupReport("c"))
        clock.now += 40 * DAY
        rows = list(ledger.history(PRODUCT, usable_only=False))
        folders = [tmp_path / "first", tmp_path / "second"]
        archived(ledger, folders[0], upto=first)
        # the event of the first archive comes after the rows of the second
        archived(ledger, folders[1], upto=ledger.head().seq - 1)
        decided(ledger, policy, range(200, 205))
        assert verify(ledger, deep=True).problems == ()
        files = [folder / "archive.jsonl" for folder in folders]
        live = tmp_path / "live.jsonl"
        export(ledger, live)
        words = [str(live), *(word for file in files[::-1] for word in ("--archive", str(file)))]
        assert verifier.main(words) == 0
        assert verifier.main([str(files[1]), "--head", str(folders[1] / "head.json")]) == 0
        assert verifier.main([str(files[1]), "--archive", str(files[0])]) == 0
        with whole(ledger, folders) as complete:
            again = list(complete.history(PRODUCT, usable_only=False))
            assert (again[: len(rows)], len(again)) == (rows, len(rows) + 5)
            assert rows_left_out(complete) == 0
            found = verify(complete, anchor=ledger.signed_head(), deep=True)
            assert (found.problems, found.rows) == ((), ledger.head().seq)
            proof = proof_of_decision(complete, "k105")
        assert verifier.check_proof(proof, ledger.keyring.public_key) == []
        # the root is over all rows, also for somebody who is not in an archive
        live_proof = proof_of_decision(ledger, "k202")
        assert verifier.check_proof(live_proof, ledger.keyring.public_key) == []
        assert live_proof["root"]["root"] == proof["root"]["root"]


def test_a_backup_holds_what_stays(ledger, clock, tmp_path):
    policy, _ = lived(ledger, clock)
    folder = tmp_path / "archive"
    archived(ledger, folder)
    copy = backup(ledger, tmp_path / "backup")
    restore(copy, tmp_path / "again.sqlite", keyring=ledger.keyring, clock=clock, by="Ada")
    with opened(tmp_path / "again.sqlite", clock) as again:
        again.confirm_gap("Ada", "a test")
        (answer,) = again.decide_many([(person(3), Terms(policy, 0.5))])
        assert isinstance(answer, Archived)
        with whole(again, [folder]) as complete:
            assert verify(complete, deep=True).problems == ()


def test_the_tables_refuse_to_be_deleted_from_afterwards(shelf):
    ledger, policy, _, _ = shelf
    decided(ledger, policy, [100])
    with (
        pytest.raises(DBAPIError, match="append-only"),
        ledger.store.writer.begin() as connection,
    ):
        connection.execute(text("DELETE FROM decisions"))


def test_nothing_is_removed_unless_the_written_file_verifies(ledger, clock, tmp_path, monkeypatch):
    lived(ledger, clock)
    before = ledger.head()

    def cut_short(path, *_):
        if path.name == "archive.jsonl":
            path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))

    monkeypatch.setattr(archives, "sync", cut_short)
    with pytest.raises(Damaged, match="nothing was removed"):
        archived(ledger, tmp_path / "archive")
    assert not (tmp_path / "archive").exists()
    assert (ledger.head(), rows_left_out(ledger), verify(ledger).ok) == (before, 0, True)


def test_a_ledger_that_does_not_verify_is_not_archived(ledger, clock, tmp_path):
    lived(ledger, clock)
    with ledger.store.writer.begin() as connection:
        connection.execute(text("DROP TRIGGER outcomes_keeps_UPDATE"))
        connection.execute(text("UPDATE outcomes SET value = '+1', body = replace(body, '-', '+')"))
    with pytest.raises(Damaged, match="no archive is made of it"):
        archived(ledger, tmp_path / "archive")
    assert not (tmp_path / "archive").exists()


def rewrite_a_label(connection):
    previous = bytes(32)
    victim = connection.execute(text("SELECT max(seq) FROM outcomes WHERE value = '-1'")).scalar()
    for table in KINDS.values():
        connection.execute(text(f"DROP TRIGGER {table.name}_keeps_UPDATE"))
    for seq, kind, row in list(chain.chain_rows(connection)):
        body = row[-2]
        if seq == victim:
            body = body.replace('"value":"-1"', '"value":"+1"')
            connection.execute(text(f"UPDATE outcomes SET value = '+1' WHERE seq = {seq}"))
        previous = chain.link(previous, seq, kind, row[1], body)
        connection.execute(
            text(f"UPDATE {KINDS[kind].name} SET body = :body, hash = :hash WHERE seq = :seq"),
            {"body": body, "hash": previous, "seq": seq},
        )
    connection.execute(text("UPDATE head SET hash = :hash"), {"hash": previous})


def test_rows_that_are_rewritten_after_they_were_verified_are_not_signed(
    ledger, clock, tmp_path, monkeypatch
):
    """Somebody without the keyring changes a label, and all hashes after it, between the
    verification and the writing: the file alone looks whole.
    """
    lived(ledger, clock)
    verified = archives.verify

    def verify_then_rewrite(checked):
        found = verified(checked)
        with checked.store.writer.begin() as connection:
            rewrite_a_label(connection)
        return found

    monkeypatch.setattr(archives, "verify", verify_then_rewrite)
    with pytest.raises(Tampered):
        archived(ledger, tmp_path / "archive")
    assert not (tmp_path / "archive").exists()
    assert rows_left_out(ledger) == 0


def test_rows_are_archived_once(shelf, tmp_path):
    ledger = shelf[0]
    with pytest.raises(Invalid, match="in archives already"):
        archived(ledger, tmp_path / "again", upto=5)
    with pytest.raises(Invalid, match="about nobody"):
        archived(ledger, tmp_path / "again")
    with pytest.raises(FileExistsError):
        archived(ledger, shelf[3])


@pytest.mark.parametrize("when", ["before the transaction", "before the commit", "never"])
def test_whoever_is_killed_in_the_middle_has_lost_nothing(path, clock, tmp_path, when):
    """SIGKILL after the file was written, and after the rows were deleted; "never" is the control:
    the rows have left.
    """
    with opened(path, clock) as ledger:
        policy, answers = lived(ledger, clock)
        before = ledger.head()
    child = os.fork()
    if child == 0:
        try:
            _archive_and_die(path, clock, tmp_path / "archive", when)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == (0 if when == "never" else -signal.SIGKILL)
    assert (tmp_path / "archive" / "archive.jsonl").exists()
    with opened(path, clock) as ledger:
        assert verify(ledger, deep=True).problems == ()
        left = rows_left_out(ledger)
        if when == "never":
            assert left > 0
            return
        assert (ledger.head(), left) == (before, 0)
        (again,) = ledger.decide_many([(person(3), Terms(policy, 0.5))])
        assert (again.body, again.replayed) == (answers["k3"], True)
        archived(ledger, tmp_path / "again")
        assert verify(ledger, deep=True).problems == ()


def _archive_and_die(path, clock, folder, when):
    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    if when == "before the transaction":
        archives._remove = die
    elif when == "before the commit":
        deleting = archives.deleting

        class Dying:
            def __init__(self, connection):
                self.inner = deleting(connection)

            def __enter__(self):
                return self.inner.__enter__()

            __exit__ = die

        archives.deleting = Dying
    with opened(path, clock) as ledger:
        archived(ledger, folder)
    os._exit(0)
