"""Whatever is done to the log behind the ledger's back is found."""

import random
import shutil
import sqlite3

import pytest
from tests.ledger.helpers import PRODUCT, TENANT, Clock, coin, decided, opened, published

from evenhand.ledger import Damaged, GroupTold, Label, Override, SignedHead, recompute, verify
from evenhand.ledger.schema import KINDS
from evenhand.ledger.transaction import lookups
from evenhand.ledger.verifier import canonical, link

CHAIN = [table.name for table in KINDS.values()]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A ledger with rows of every kind, and its anchor, taken before the last few rows."""
    path = tmp_path_factory.mktemp("kept") / "ledger.sqlite"
    with opened(path) as ledger:
        policy = published(ledger, certificate={"limit": 0.1})
        answers = decided(ledger, policy, range(30))
        for answer in answers[:10]:
            ledger.report(TENANT, answer.drawn.key, Label(1))
        ledger.report(TENANT, "k11", Override(True, "clerk"))
        ledger.report(TENANT, "k12", GroupTold("a"))
        ledger.operate(TENANT, PRODUCT, "note", "operator", "hello")
        ledger.erase(TENANT, "p3", "officer")
        decided(ledger, policy, range(30, 35))
        anchor = ledger.signed_head()
        decided(ledger, policy, range(35, 40))
        assert verify(ledger, anchor, deep=True).ok
    with sqlite3.connect(path) as connection:
        for table in CHAIN:
            for verb in ("UPDATE", "DELETE"):
                connection.execute(f"DROP TRIGGER {table}_keeps_{verb}")
    connection.close()
    return path, anchor


def edit(connection, generator):
    """Change one column of one row."""
    table = generator.choice([t for t in CHAIN if _rows(connection, t)])
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    name, row = generator.choice(names), generator.choice(_rows(connection, table))
    value = connection.execute(f'SELECT "{name}" FROM {table} WHERE seq = ?', [row]).fetchone()[0]
    connection.execute(f'UPDATE {table} SET "{name}" = ? WHERE seq = ?', [_changed(value, generator), row])


def _changed(value, generator):
    if value is None:
        return 7
    if isinstance(value, int | float):
        return value + 1000
    at = generator.randrange(len(value))
    if isinstance(value, bytes):
        return value[:at] + bytes([value[at] ^ (1 << generator.randrange(8))]) + value[at + 1 :]
    return value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]


def delete(connection, generator):
    """Remove one row."""
    table = generator.choice([t for t in CHAIN if _rows(connection, t)])
    connection.execute(f"DELETE FROM {table} WHERE seq = ?", [generator.choice(_rows(connection, table))])


def reorder(connection, generator):
    """Exchange two rows."""
    one, other = generator.sample(_rows(connection, "decisions"), 2)
    for old, new in ((one, -1), (other, one), (-1, other)):
        connection.execute("UPDATE decisions SET seq = ? WHERE seq = ?", [new, old])


def truncate(connection, generator):
    """Cut off the end anywhere, also after the anchor, and rewrite the head so that the rest looks whole."""
    last = generator.randrange(1, connection.execute("SELECT seq FROM head").fetchone()[0])
    for table in (*CHAIN, "personal"):
        connection.execute(f"DELETE FROM {table} WHERE seq > ?", [last])
    union = " UNION ".join(f"SELECT seq, hash, at FROM {table}" for table in CHAIN)
    seq, digest, at = connection.execute(f"SELECT * FROM ({union}) ORDER BY seq DESC LIMIT 1").fetchone()
    connection.execute("UPDATE head SET seq = ?, hash = ?, at = ?", [seq, digest, at])


def rewrite(connection, generator):
    """Turn one decision round and compute all later hashes anew, the head included: only an anchor can tell."""
    rows = sorted(
        (seq, kind, at, body)
        for kind, table in KINDS.items()
        for seq, at, body in connection.execute(f"SELECT seq, at, body FROM {table.name}")
    )
    victim, previous = generator.choice([row[0] for row in rows[:40] if row[1] == "decision"]), bytes(32)
    import json

    for seq, kind, at, body in rows:
        text = body
        if seq == victim:
            changed = json.loads(body) | {"accept": not json.loads(body)["accept"]}
            text = canonical(changed)
            connection.execute("UPDATE decisions SET accept = ? WHERE seq = ?", [lookups(kind, changed)["accept"], seq])
        previous = link(previous, seq, kind, at, text)
        connection.execute(f"UPDATE {KINDS[kind].name} SET body = ?, hash = ? WHERE seq = ?", [text, previous, seq])
    connection.execute("UPDATE head SET hash = ?", [previous])


def unseal(connection, generator):
    """Empty or change a sealed field."""
    rows = [r[0] for r in connection.execute("SELECT seq FROM personal WHERE sealed IS NOT NULL")]
    sealed = generator.choice([None, b"x" * 40])
    connection.execute("UPDATE personal SET sealed = ? WHERE seq = ?", [sealed, generator.choice(rows)])


def _rows(connection, table):
    return [row[0] for row in connection.execute(f"SELECT seq FROM {table}")]


@pytest.mark.parametrize("each", [15, pytest.param(200, marks=pytest.mark.torture)])
@pytest.mark.parametrize("damage", [edit, delete, reorder, truncate, rewrite, unseal], ids=lambda f: f.__name__)
def test_damage_is_always_found(kept, tmp_path, damage, each):
    source, anchor = kept
    missed = []
    for seed in range(each):
        path = tmp_path / "damaged.sqlite"
        shutil.copyfile(source, path)
        connection = sqlite3.connect(path)
        damage(connection, random.Random(seed))
        connection.commit()
        connection.close()
        missed += [seed] if _looks_whole(path, anchor) else []
    assert missed == []


def _looks_whole(path, anchor):
    try:
        with opened(path) as ledger:
            return verify(ledger, anchor).ok
    except Damaged:  # its first row is gone
        return False


def test_what_only_a_published_head_can_tell(path, clock):
    """The limit: the whole database put back to a state that was once genuine verifies, until a later head is held against it."""
    with opened(path, clock) as ledger:
        decided(ledger, published(ledger), range(5))
    old = path.with_name("old.sqlite")
    shutil.copyfile(path, old)
    with opened(path, clock) as ledger:
        decided(ledger, ledger.policies(TENANT, PRODUCT)[0].id, range(5, 10))
        later = ledger.signed_head()
    with opened(old, clock) as ledger:
        assert verify(ledger, deep=True).ok
        assert not verify(ledger, later).ok


def test_the_undamaged_copy_is_whole(kept):
    assert _looks_whole(*kept)


def test_deep_verification_notices_a_key_that_was_changed(kept, tmp_path):
    path = tmp_path / "ledger.sqlite"
    shutil.copyfile(kept[0], path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE people SET key = zeroblob(60) WHERE id = (SELECT min(id) FROM people)")
    connection.close()
    with opened(path) as ledger:
        assert verify(ledger).ok
        assert not verify(ledger, deep=True).ok


def test_a_forged_head_is_refused(ledger, policy):
    anchor = ledger.signed_head()
    for change in (
        {"seq": 1},
        {"hash": "0" * 64},
        {"signature": "0" * 128},
        {"ledger": "other"},
        {"public_key": "0" * 64},
    ):
        forged = SignedHead.from_json(anchor.to_json() | change)
        assert not verify(ledger, forged).ok
    assert verify(ledger, SignedHead.from_json(anchor.to_json())).ok
    with pytest.raises(Damaged):
        SignedHead.from_json({"seq": 1})


def test_the_tables_refuse_changes(where):
    with opened(where) as ledger:
        decided(ledger, published(ledger), range(3))
        for statement in ("UPDATE decisions SET accept = NOT accept", "DELETE FROM decisions", "DELETE FROM events"):
            with pytest.raises(Exception, match="append-only"), ledger.store.writer.begin() as connection:
                connection.exec_driver_sql(statement)
        assert verify(ledger, deep=True).ok


def test_acceptances_recompute_from_their_policies(ledger, policy):
    decided(ledger, policy, range(10))
    second = ledger.publish(TENANT, PRODUCT, coin(0.25), epoch=2, parent=policy).id
    decided(ledger, second, range(10, 20), 0.25)
    assert recompute(ledger, TENANT, PRODUCT) == 20
    decided(ledger, second, [20], 0.26)
    with pytest.raises(Damaged):
        recompute(ledger, TENANT, PRODUCT)


def test_another_keyring_does_not_open_the_ledger(path):
    from evenhand.ledger import Keyring, Ledger

    with opened(path):
        pass
    with pytest.raises(Damaged):
        Ledger.open(path, keyring=Keyring.generate(), clock=Clock())
    with opened(path):
        pass


def test_a_ledger_in_use_is_verified_and_exported_as_one_state(where, tmp_path):
    from threading import Event, Thread

    from evenhand.ledger import export, verifier

    with opened(where) as ledger:
        policy, stop = published(ledger), Event()

        def load():
            number = 0
            while not stop.is_set():
                decided(ledger, policy, range(number, number + 5))
                ledger.erase(TENANT, f"p{number}", "officer")
                number += 5

        thread = Thread(target=load)
        thread.start()
        try:
            for _ in range(5):
                assert verify(ledger, ledger.signed_head(), deep=True).problems == ()
                export(ledger, tmp_path / "export.jsonl")
                assert verifier.main([str(tmp_path / "export.jsonl")]) == 0
        finally:
            stop.set()
            thread.join()
