"""A root that was rotated away has been stolen, and the thief can write the database: what they can
still do, and what not, as service/docs/ledger.md says.
"""

import hashlib
import json

import pytest
from service.tests.ledger.helpers import DAY, Clock, decided, person, published
from service.tests.torture.integrity import Intruder

from evenhand.canonical import canonical
from evenhand_service.keys import LedgerKeys, Sessions
from evenhand_service.ledger import (
    Damaged,
    Keyring,
    Ledger,
    LedgerUnavailable,
    Terms,
    WindowPlan,
    verify,
)
from evenhand_service.ledger.chain import link
from evenhand_service.ledger.decision_draw import person_digest
from evenhand_service.ledger.keyring import verify_signature

STOLEN = Keyring(bytes(range(32)))


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def rotated(where):
    """(opens the ledger, policy, a key from before, a key from after): people and keys on both
    sides of a rotation.
    """
    clock, keyring = Clock(), Keyring(bytes(range(32)), [bytes(range(1, 33))])

    def opened():
        keyring.active = 0
        plan = WindowPlan(30 * DAY)
        return Ledger.open(where, keyring=keyring, clock=clock, windows=plan)

    with opened() as ledger:
        policy = published(ledger)
        decided(ledger, policy, range(5))
        old = LedgerKeys(ledger).add(["audit"], "old", by="op")
        ledger.rotate_root("op")
        new = LedgerKeys(ledger).add(["audit"], "new", by="op")
        decided(ledger, policy, range(5, 8))
        clock.now += 31 * DAY
        decided(ledger, policy, range(8, 10))
    return opened, policy, old, new


def forged_key(where, *, seq=None):
    """A token, after somebody with the old root has written a row that creates it: behind the end
    of the chain, or under a number that is free in its table.
    """
    token = "eh_" + "x" * 43
    digest = hashlib.sha256(token.encode()).hexdigest()
    scopes = ["admin", "audit", "decide"]
    ends = 1e12
    parts = (digest, "thief", repr(ends), "", repr(0.0), *scopes)
    seal = STOLEN.digest("api key", *parts).hex()
    info = {"id": digest[:12], "sha256": digest, "name": "thief", "scopes": scopes, "ends": ends}
    info["seal"] = seal
    intruder = Intruder(where)
    end, at, previous = intruder.run("SELECT seq, at, hash FROM head").fetchone()
    seq = end + 1 if seq is None else seq
    names = {"product": None, "action": "key_created", "by": "op"}
    body = canonical(names | {"note": "", "policy": None, "info": info})
    row = (seq, at, "key_created", body, link(bytes(previous), seq, "event", at, body))
    columns = "seq, at, action, body, hash"
    intruder.run(f"INSERT INTO events ({columns}) VALUES (?, ?, ?, ?, ?)", *row)
    intruder.run('UPDATE head SET "keys" = ?', seq)
    intruder.connection.commit()
    intruder.connection.close()
    return token


def test_keys_and_sessions_of_both_sides_open_and_a_forged_key_does_not(rotated, where):
    opened, _, old, new = rotated
    with opened() as ledger:
        keys = LedgerKeys(ledger)
        assert [keys.find(token).name for token in (old, new)] == ["old", "new"]
        sessions = Sessions(keys, ledger)
        assert sessions.is_open(sessions.begin(new))
        parts = (keys.find(new).sha256, "9999999999", "00" * 16)
        cookie = ".".join((*parts, STOLEN.digest("session", *parts).hex()))
        assert not sessions.is_open(cookie)
        genuine = ledger.keyring.seal_of_root(1, "session", *parts).hex()
        assert sessions.is_open(".".join((*parts, genuine)))  # the control
    token = forged_key(where)
    with opened() as ledger:
        keys = LedgerKeys(ledger)
        assert keys.find(token) is None
        assert keys.find(new) is not None
        assert not verify(ledger).ok


def test_a_key_that_is_slipped_in_before_the_rotation_is_seen(rotated, where):
    opened, *_ = rotated
    forged_key(where, seq=3)  # row 3 of the chain is in another table
    with opened() as ledger:
        with pytest.raises(Damaged, match="sealed"):
            LedgerKeys(ledger)
        assert not verify(ledger).ok


def test_before_a_rotation_the_same_forgery_opens(where):
    """The control: with the root in force, the thief's key is a key."""
    with Ledger.open(where, keyring=STOLEN, clock=Clock(), windows=WindowPlan(30 * DAY)) as ledger:
        published(ledger)
    token = forged_key(where)
    with Ledger.open(where, keyring=STOLEN, clock=Clock(), windows=WindowPlan(30 * DAY)) as ledger:
        assert LedgerKeys(ledger).find(token).name == "thief"


def test_what_a_stolen_root_still_opens_and_what_it_does_not(rotated, where):
    opened, policy, *_ = rotated
    with opened() as ledger:
        windows, head, keyring = ledger.windows(), ledger.head(), ledger.keyring
    intruder = Intruder(where)
    wrapped = {
        lookup: bytes(intruder.run("SELECT key FROM people WHERE lookup = ?", lookup).fetchone()[0])
        for number in (0, 5)
        for lookup in [person_digest(STOLEN, f"p{number}")]  # known or not: they can tell
    }
    intruder.connection.close()
    for whose, key in wrapped.items():  # of before and after: all were wrapped anew
        with pytest.raises(Damaged, match="open"):
            STOLEN.unwrap(key, whose)
        assert len(keyring.unwrap(key, whose)) == 32
    old, new = windows[0].name, windows[-1].name
    secret = hashlib.sha256(STOLEN.window_secret(ledger.id, old)).hexdigest()
    assert secret == windows[0].commitment  # the window that was open goes on with its coins
    assert new.endswith("r1")
    with pytest.raises(IndexError):
        STOLEN.window_secret(ledger.id, new)
    document = {"head": 7}
    verify_signature(keyring.public_key, document, STOLEN.sign(document))  # they can sign
    # but not extend the chain: their seal of a row of their own is refused
    intruder, body = Intruder(where), json.dumps({"forged": True})
    digest = link(bytes.fromhex(head.hash), head.seq + 1, "event", head.at, body)
    moved = (head.seq + 1, digest, STOLEN.head_seal(head.seq + 1, digest))
    intruder.run("UPDATE head SET seq = ?, hash = ?, seal = ?", *moved)
    intruder.connection.commit()
    intruder.connection.close()
    with opened() as ledger, pytest.raises(LedgerUnavailable, match="keyring's"):
        ledger.decide(person(50), Terms(policy, 0.5))


def test_a_keyring_that_was_saved_after_the_rotation_lets_no_older_root_seal(rotated, tmp_path):
    """Even if the row that says so were deleted from the chain."""
    opened, *_ = rotated
    with opened() as ledger:
        ledger.keyring.save(tmp_path / "keyring.json")
    head = (7, bytes(32))
    kept, forgets = Keyring.load(tmp_path / "keyring.json"), Keyring(bytes(range(32)), [bytes(32)])
    assert not kept.sealed_head(*head, STOLEN.head_seal(*head))
    assert forgets.sealed_head(*head, STOLEN.head_seal(*head))  # the control
    assert kept.with_new_root().active == 1
