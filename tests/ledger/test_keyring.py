"""The keyring in its file, keyed hashes as `hmac` makes them, random bytes each given out once."""

import hmac
import json
import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.helpers import KEYRING

from evenhand.canonical import canonical
from evenhand.ledger import Invalid, Keyring
from evenhand.ledger.keyring import KeyedHash, Opened, Reserve, open_fields, seal_fields
from evenhand.ledger.refusals import Damaged

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.binary(min_size=1, max_size=64), st.binary(max_size=300))
def test_a_keyed_hash_is_hmac(key, message):
    assert KeyedHash(key)(message) == hmac.digest(key, message, "sha256")


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
    wrapped = Keyring.generate().wrap(bytes(32), os.urandom)
    with pytest.raises(Damaged):
        KEYRING.unwrap(wrapped)
    assert KEYRING.unwrap(KEYRING.wrap(b"k" * 32, os.urandom)) == b"k" * 32
