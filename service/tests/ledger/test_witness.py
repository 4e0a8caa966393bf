"""Heads go to witnesses by themselves, and what a witness saw cannot be rewritten unseen."""

import json
import resource
import shutil
import sqlite3

import pytest
from service.tests.ledger.helpers import KEYRING, Clock, decided, opened, person, published
from service.tests.ledger.loopback_witnesses import Keeper, served
from service.tests.torture.integrity import Intruder

from evenhand_service.ledger import GapUnconfirmed, Invalid, Ledger, SystemClock, Terms, verify
from evenhand_service.ledger.witness import (
    FileWitness,
    HeadWitnesses,
    HttpWitness,
    read_entries,
    witness_of,
)


def rewritten(path):
    """By somebody with the database and the keyring: an old row is another one, and everything
    after it fits; (row, whether it verifies without a witness).
    """
    row = Intruder(path).flip(plausible=True)
    with sqlite3.connect(path) as connection:
        seq, digest = connection.execute("SELECT seq, hash FROM head").fetchone()
        connection.execute("UPDATE head SET seal = ?", [KEYRING.head_seal(seq, digest)])
    connection.close()
    path.with_name(path.name + ".mark").unlink()
    return row


def test_the_first_row_that_differs_is_named(path, tmp_path):
    keeper, file = Keeper(), tmp_path / "heads.jsonl"
    with served(keeper) as url:
        with opened(path) as ledger:
            policy = published(ledger)
            witnesses = HeadWitnesses(ledger, [FileWitness(file), HttpWitness(url)])
            for start in (0, 20, 40):
                decided(ledger, policy, range(start, start + 20))
                witnesses.publish()
            assert [s.failures for s in witnesses.standings.values()] == [0, 0]
            assert verify(ledger, witnessed=read_entries(str(file)), deep=True).ok
        row = rewritten(path)
        with opened(path) as ledger:
            assert verify(ledger).ok
            for place in (str(file), url):
                (problem,) = verify(ledger, witnessed=read_entries(place)).problems
                assert (problem.seq, "rewritten here" in problem.what) == (row, True)
            # heads without the rows between them say between which rows it was
            heads = [{k: v for k, v in e.items() if k != "rows"} for e in read_entries(str(file))]
            (problem,) = verify(ledger, witnessed=heads).problems
            assert f"between rows 1 and {heads[0]['seq']}" in problem.what


def test_a_rollback_to_an_older_file_is_seen(path, tmp_path):
    file = tmp_path / "heads.jsonl"
    with opened(path) as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(10))
    shutil.copyfile(path, tmp_path / "older")
    with opened(path) as ledger:
        decided(ledger, policy, range(10, 20))
        HeadWitnesses(ledger, [FileWitness(file)]).publish()
    shutil.copyfile(tmp_path / "older", path)
    path.with_name(path.name + ".mark").unlink()  # the whole directory was put back
    with opened(path) as ledger:
        assert verify(ledger).ok
        (problem,) = verify(ledger, witnessed=read_entries(str(file))).problems
        assert "rolled back" in problem.what
        witnesses = HeadWitnesses(ledger, [FileWitness(file)])
        witnesses.start()
        with pytest.raises(GapUnconfirmed):
            ledger.decide(person(12), Terms(policy, 0.5))
        ledger.confirm_gap("operator", "looked")
        decided(ledger, policy, [12])
        witnesses.close()
    with opened(path) as ledger:  # it is known by now
        again = HeadWitnesses(ledger, [FileWitness(file)])
        again.start()
        decided(ledger, policy, [13])
        again.close()


def test_a_witness_that_is_away_holds_nothing_up_unless_it_must(ledger, policy, caplog):
    keeper, now = Keeper(), [0.0]
    with served(keeper) as url:
        witnesses = HeadWitnesses(
            ledger, [HttpWitness(url)], required_seconds=100.0, elapsed=lambda: now[0]
        )
        ledger.draw_only_if(witnesses.refusal)
        witnesses.publish()
        assert witnesses.lag()["https"][1:] == (0, 0)
        keeper.away, now[0] = True, 90.0
        decided(ledger, policy, range(5))
        witnesses.publish()
        assert "has not taken the head" in caplog.text
        assert witnesses.lag()["https"] == (90.0, 6, 1)
        now[0] = 101.0
        with pytest.raises(Exception, match="taken"):
            ledger.decide(person(7), Terms(policy, 0.5))
        assert ledger.decide(person(1), Terms(policy, 0.5)).replayed
        keeper.away = False
        witnesses.publish()
        decided(ledger, policy, [7])
        assert keeper.lines.count(b"\n") == 2


class OnAFullDisk(FileWitness):
    """The operating system lets a file have `room` more bytes: it writes a part, as a full disk
    does.
    """

    room = 100

    def publish(self, entry):
        size = self.path.stat().st_size if self.path.exists() else 0
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + self.room, limits[1]))
        try:
            super().publish(entry)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_line_that_was_cut_short_is_a_failure_and_ruins_no_other(path, tmp_path, caplog):
    file = tmp_path / "heads.jsonl"
    with opened(path) as ledger:
        policy = published(ledger)
        HeadWitnesses(ledger, [FileWitness(file)]).publish()
        decided(ledger, policy, range(5))
        full = HeadWitnesses(ledger, [OnAFullDisk(file)])
        for failures in (1, 2):
            full.publish()
            assert full.standings["file"].failures == failures
            assert full.lag()["file"][1] == ledger.head().seq
        assert "bytes were written" in caplog.text
        caplog.clear()
        after = HeadWitnesses(ledger, [FileWitness(file)])
        after.start()  # the last line is torn
        assert "line 2, 3" in caplog.text
        assert after.standings["file"].seq == read_entries(str(file))[0]["seq"]
        after.close()
        entries = read_entries(str(file))
        assert [entry["seq"] for entry in entries] == [entries[0]["seq"], ledger.head().seq]
        assert verify(ledger, witnessed=entries).ok
    row = rewritten(path)
    with opened(path) as ledger:  # and what it is there for still works
        (problem,) = verify(ledger, witnessed=read_entries(str(file))).problems
        assert problem.seq == row


@pytest.mark.parametrize(
    "text", [b"\0" * 50, b'{"after":728,"at":17949', b"[1]\n7\n", b'{"seq":"x"}\n', b"\xff\n"]
)
def test_no_witness_stops_a_start(ledger, policy, tmp_path, caplog, text):
    file = tmp_path / "heads.jsonl"
    file.write_bytes(text)
    with pytest.raises(Invalid):
        read_entries(str(file))
    witnesses = HeadWitnesses(ledger, [FileWitness(file)])
    witnesses.start()
    assert "is not compared with the chain" in caplog.text
    assert witnesses.lag()["file"][2] == 1
    decided(ledger, policy, [1])
    witnesses.close()
    (entry,) = read_entries(str(file))
    assert entry["seq"] == ledger.head().seq
    assert witnesses.standings["file"].failures == 0


def test_a_place_that_cannot_be_read_is_named(ledger, tmp_path, caplog):
    with pytest.raises(Invalid, match="read"):
        read_entries(str(tmp_path / "nowhere"))
    (tmp_path / "heads.jsonl").mkdir()
    witnesses = HeadWitnesses(ledger, [FileWitness(tmp_path / "heads.jsonl")])
    witnesses.start()
    witnesses.close()
    assert "is not compared with the chain" in caplog.text


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(ledger, policy, status):
    other = []
    with served(lambda *asked: other.append(asked) or (200, "text/plain", b"ok")) as elsewhere:
        sent_on = status, "text/plain", f"{elsewhere}/login".encode()
        with served(lambda *_: sent_on) as url:
            headers = {"Authorization": "Bearer token"}
            witnesses = HeadWitnesses(ledger, [HttpWitness(url, headers)])
            decided(ledger, policy, range(5))
            witnesses.publish()
            assert witnesses.lag()["https"][1:] == (ledger.head().seq, 1)
            assert "redirects are not followed" in witnesses.standings["https"].error
            with pytest.raises(Invalid, match="redirects"):
                read_entries(url)
    assert other == []


@pytest.mark.parametrize(("status", "failures"), [(201, 0), (304, 1), (404, 1), (500, 1)])
def test_only_2xx_counts_as_taken(ledger, policy, status, failures):
    with served(lambda *_: (status, "text/plain", b"")) as url:
        witnesses = HeadWitnesses(ledger, [HttpWitness(url)])
        witnesses.publish()
    assert witnesses.standings["https"].failures == failures


def test_the_date_of_a_witness_binds_the_clock(path):
    wall = [4e9]
    clock = SystemClock(lambda: wall[0], lambda: wall[0] - 3.9e9)
    with served(Keeper()) as url, Ledger.open(path, keyring=KEYRING, clock=clock) as ledger:
        policy = published(ledger)
        HeadWitnesses(ledger, [HttpWitness(url)]).publish()  # its Date is that of now
        with pytest.raises(Exception, match="ahead"):
            ledger.decide(person(1), Terms(policy, 0.5))


def test_a_thread_sends_them(ledger, policy):
    from tests.without_clocks import until

    keeper = Keeper()
    with served(keeper) as url:
        witnesses = HeadWitnesses(ledger, [HttpWitness(url)], every_seconds=0.01)
        witnesses.start()
        decided(ledger, policy, range(5))
        until(lambda: f'"seq":{ledger.head().seq}' in keeper.lines.decode(), "the head")
        decided(ledger, policy, [9])
        witnesses.close()
        assert f'"seq":{ledger.head().seq}' in keeper.lines.decode()


def test_entries_of_others_and_settings_that_are_none(ledger, policy, tmp_path, monkeypatch):
    decided(ledger, policy, [1])
    file = tmp_path / "heads.jsonl"
    with opened(tmp_path / "other.sqlite", Clock()) as other:
        HeadWitnesses(other, [FileWitness(file)]).publish()
    (problem,) = verify(ledger, witnessed=read_entries(str(file))).problems
    assert "not this ledger's" in problem.what
    (tmp_path / "none").write_text("nothing of the kind")
    with pytest.raises(Invalid):
        read_entries(str(tmp_path / "none"))
    for table in ({"kind": "fax"}, {"kind": "file"}, {"kind": "file", "path": "x", "url": "y"}):
        with pytest.raises(Invalid):
            witness_of(table)
    with pytest.raises(Invalid, match="EVENHAND_NO_TOKEN"):
        witness_of({"kind": "https", "url": "https://x", "headers": {"A": "$EVENHAND_NO_TOKEN"}})
    monkeypatch.setenv("EVENHAND_TOKEN", "secret")
    made = witness_of({"kind": "https", "url": "https://x", "headers": {"A": "$EVENHAND_TOKEN"}})
    assert made.headers == {"A": "secret"}
    witnesses = HeadWitnesses(ledger, [HttpWitness("http://example.com")])
    witnesses.publish()
    assert "over https" in witnesses.standings["https"].error
    assert json.loads(file.read_text())["ledger"] != ledger.id
    assert ledger.find("k1")
