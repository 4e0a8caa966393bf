"""The keyring in its file, random bytes each given out once."""

import hmac
import json
import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st
from service.tests.ledger.helpers import KEYRING

from evenhand.canonical import canonical
from evenhand_service.ledger import Invalid, Keyring
from evenhand_service.ledger.keyring import (
    Opened,
    Reserve,
    derived,
    open_fields,
    seal_decision,
    seal_fields,
)
from evenhand_service.ledger.refusals import Damaged

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def test_random_bytes_are_given_out_once():
    source = iter([bytes([number]) * 16 for number in range(9)])
    reserve = Reserve(lambda _: next(source), piece=16)
    assert [reserve(size) for size in (10, 6, 1, 16, 4)] == [
        b"\0" * 10,
        b"\0" * 6,
        b"\1",
        b"\2" * 16,
        b"\3" * 4,
    ]


@given(st.dictionaries(st.text("abcxyz_019", min_size=1, max_size=6), TEXT, min_size=1))
def test_what_is_sealed_is_canonical_and_is_what_was_committed_to(values):
    key, texts = bytes(32), {name: canonical(values[name]) for name in sorted(values)}
    sealed = seal_fields(key, texts, os.urandom)
    plain = AESGCM(key).decrypt(sealed.data[:12], sealed.data[12:], None).decode()
    assert plain == canonical(json.loads(plain))
    opened = open_fields(key, sealed.data)
    assert opened.fields == values
    assert opened.mismatches(sealed.commit) == []
    for name in values:
        other = Opened({**values, name: values[name] + "!"}, opened.salts)
        assert other.mismatches(sealed.commit) == [name]


def test_the_fields_of_a_decision_are_sealed_as_any_others():
    key = bytes(range(32))
    texts = {"features": '{"features":[0.5]}', "group": '"a"', "reply": '{"body":1}', "who": "{}"}

    def entropy():
        numbers = iter(range(256))
        return lambda size: bytes(next(numbers) for _ in range(size))

    commit, fingerprint, data = seal_decision(key, *texts.values(), entropy())
    expected = seal_fields(key, texts, entropy())
    assert (json.loads(f"{{{commit}}}"), fingerprint, data) == expected


def test_a_keyring_is_kept_in_a_file_of_its_owner(tmp_path):
    path = tmp_path / "keyring.json"
    keyring = Keyring.generate()
    keyring.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Keyring.load(path).public_key == keyring.public_key
    with pytest.raises(FileExistsError):
        keyring.save(path)
    for text in ("", "{}", "[]", json.dumps({"format": "evenhand keyring 1", "root": "zz"})):
        path.write_text(text)
        with pytest.raises(Invalid):
            Keyring.load(path)
    with pytest.raises(Invalid):
        Keyring(b"short")
    assert keyring._root.hex() not in repr(keyring)


def test_what_another_keyring_wrapped_does_not_open():
    wrapped = Keyring.generate().wrap(bytes(32), os.urandom, b"p")
    with pytest.raises(Damaged):
        KEYRING.unwrap(wrapped, b"p")
    mine = KEYRING.wrap(b"k" * 32, os.urandom, b"p")
    assert KEYRING.unwrap(mine, b"p") == b"k" * 32
    with pytest.raises(Damaged):  # it is bound to the person
        KEYRING.unwrap(mine, b"q")


def test_the_root_is_rotated_without_rewriting_the_ledger(where, tmp_path):
    """Old draws verify, the present window keeps its coins, new windows and wraps are the new
    root's, and a keyring without the new root can neither append nor open anybody.
    """
    from service.tests.ledger.helpers import DAY, KEYRING, Clock, decided, opened, person, published

    from evenhand_service.ledger import Damaged, Invalid, Keyring, Ledger, Terms, WindowPlan, verify

    clock, plan = Clock(), WindowPlan(30 * DAY)
    with opened(where, clock) as ledger:
        policy = published(ledger)
        before = [answer.drawn.u for answer in decided(ledger, policy, range(30))]
        with pytest.raises(Invalid, match="newer"):
            ledger.rotate_root("operator")
    KEYRING.with_new_root().save(tmp_path / "keyring.json")

    def loaded():
        return Ledger.open(
            where, keyring=Keyring.load(tmp_path / "keyring.json"), clock=clock, windows=plan
        )

    with loaded() as ledger:
        assert ledger.rotate_root("operator", "yearly") == 30
        again = ledger.decide(person(7, key="again"), Terms(policy, 0.5)).drawn
        assert again.u == before[7]
        clock.now += 31 * DAY
        (answer,) = decided(ledger, policy, [100])
        assert answer.drawn.window.endswith("r1")
        assert ledger.erase("p3", "officer") == 1
        assert verify(ledger, deep=True).problems == ()
    with loaded() as ledger:
        assert ledger.keyring.active == 1
        decided(ledger, policy, [101])
        old = ledger.windows()[0]
        assert len(ledger.reveal(old.name, "auditor")) == 32
    with pytest.raises(Damaged, match="root 1"):
        opened(where, clock)


def test_another_replica_takes_up_the_new_root(postgres_url, tmp_path):
    from service.tests.ledger.helpers import KEYRING, Clock, decided, published

    from evenhand_service.ledger import Keyring, Ledger, verify

    KEYRING.with_new_root().save(tmp_path / "keyring.json")
    one, other = (
        Ledger.open(postgres_url, keyring=Keyring.load(tmp_path / "keyring.json"), clock=Clock())
        for _ in range(2)
    )
    with one, other:
        policy = published(one)
        decided(other, policy, range(5))
        one.rotate_root("operator")
        decided(other, policy, range(5, 10))
        assert other.keyring.active == 1
        assert verify(other, deep=True).ok


def test_roots_from_the_environment_and_from_a_command(monkeypatch):
    import base64

    root = bytes(range(32))
    public = Keyring(root).public_key
    for text in (root.hex(), base64.b64encode(root).decode(), f'{{"root": "{root.hex()}"}}'):
        monkeypatch.setenv("EVENHAND_ROOT", text)
        assert Keyring.from_source("env:EVENHAND_ROOT").public_key == public
    assert Keyring.from_source(f"command:echo {root.hex()}").public_key == public
    monkeypatch.setenv("EVENHAND_ROOT", "secret that is no root")
    for source in ("env:EVENHAND_ROOT", "env:EVENHAND_NONE", "command:false", "command:/none"):
        with pytest.raises(Invalid) as refusal:
            Keyring.from_source(source)
        assert "secret" not in str(refusal.value)


def test_what_follows_from_the_root_is_hkdf():
    """RFC 5869 word by word: PRK = HMAC(salt, root), the first block is HMAC(PRK, info | 1)."""
    root = bytes(range(32))
    extracted = hmac.digest(bytes(32), root, "sha256")
    info = b"evenhand 1\x1fwindow\x1fthe ledger\x1fw690"
    expected = hmac.digest(extracted, info + b"\1", "sha256")
    assert derived(root, "window", "the ledger", "w690") == expected
    assert Keyring(root).window_secret("the ledger", "w690") == expected
    assert len({derived(root, name) for name in ("pepper", "wrap", "sign")}) == 3
