"""The keyring in its file, keyed hashes as `hmac` makes them, random bytes each given out once."""

import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.helpers import KEYRING

from evenhand.ledger import Invalid, Keyring
from evenhand.ledger.keyring import KeyedHash, Reserve
from evenhand.ledger.refusals import Damaged


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
    import os

    wrapped = Keyring.generate().wrap(bytes(32), os.urandom)
    with pytest.raises(Damaged):
        KEYRING.unwrap(wrapped)
    assert KEYRING.unwrap(KEYRING.wrap(b"k" * 32, os.urandom)) == b"k" * 32
