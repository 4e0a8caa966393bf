"""Windows: committed before the first draw, revealed after the end, the same again from the
keyring.
"""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import inspect
from tests.ledger.helpers import DAY, KEYRING, decided, opened, person, published

from evenhand.ledger import Invalid, Keyring, NotFound, Terms, TooEarly, WindowPlan, verify
from evenhand.ledger.chain import chain_rows
from evenhand.ledger.database import MIGRATIONS, schema_version
from evenhand.ledger.refusals import Damaged


def test_the_hash_of_the_secret_is_in_the_chain_before_the_first_draw(ledger, policy):
    window = decided(ledger, policy, [1])[0].drawn.window
    with ledger.store.reader.connect() as connection:
        kinds = [kind for _, kind, _ in chain_rows(connection)]
    assert kinds.index("window") < kinds.index("decision")
    assert ledger.windows()[0].name == window
    assert (
        ledger.windows()[0].commitment
        == hashlib.sha256(KEYRING.window_secret(ledger.id, window)).hexdigest()
    )


def test_a_secret_is_revealed_after_the_window_and_that_is_recorded(ledger, policy, clock):
    window = ledger.window()
    with pytest.raises(TooEarly):
        ledger.reveal(window.name, "auditor")
    with pytest.raises(NotFound):
        ledger.reveal("w0", "auditor")
    clock.now = window.ends
    assert hashlib.sha256(ledger.reveal(window.name, "auditor")).hexdigest() == window.commitment
    assert ledger.events()[-1].info == {"window": window.name}
    assert ledger.window().name != window.name


def test_one_window_however_many_decisions(ledger, policy, clock):
    decided(ledger, policy, range(10))
    clock.now += 40 * DAY
    decided(ledger, policy, range(10, 20))
    assert len(ledger.windows()) == 2


@given(now=st.floats(0, 4e9), length=st.floats(1.0, 1e8), origin=st.floats(-1e9, 1e9))
def test_every_moment_lies_in_its_window(now, length, origin):
    name, starts, ends = WindowPlan(length, origin).at(now)
    assert starts <= now < ends
    assert WindowPlan(length, origin).at(starts)[0] == name


@pytest.mark.parametrize("length", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_windows(length):
    with pytest.raises(Invalid):
        WindowPlan(length)


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


def test_a_newer_schema_is_refused(path, clock):
    with opened(path, clock) as ledger, ledger.store.writer.begin() as connection:
        connection.exec_driver_sql("INSERT INTO schema_versions VALUES (99)")
    with pytest.raises(Damaged, match="schema version 99"):
        opened(path, clock)


def test_a_ledger_of_the_first_version_is_brought_forward(where, clock):
    """It had an index by slot; nothing else of it changes, and its people are known."""
    with opened(where, clock) as ledger:
        policy = published(ledger)
        before = ledger.decide(person(1), Terms(policy, 0.5)).drawn
        with ledger.store.writer.begin() as connection:
            connection.exec_driver_sql("CREATE INDEX decisions_by_slot ON decisions (slot)")
            connection.exec_driver_sql("DELETE FROM schema_versions WHERE version >= 2")
    with opened(where, clock) as ledger:
        with ledger.store.reader.connect() as connection:
            assert "decisions_by_slot" not in {
                found["name"] for found in inspect(connection).get_indexes("decisions")
            }
            assert schema_version(connection) == len(MIGRATIONS)
        again = ledger.decide(person(1, key="again"), Terms(policy, 0.5)).drawn
        assert (again.u, again.first) == (before.u, False)
        assert verify(ledger, deep=True).ok


def test_a_url_of_another_kind_is_refused():
    with pytest.raises(Invalid, match="mysql"):
        opened("mysql://localhost/x")


def test_two_replicas_on_postgresql_share_one_chain(postgres_url):
    from threading import Thread

    from evenhand.ledger import verify

    one, other = opened(postgres_url), opened(postgres_url)
    try:
        policy, found = published(one), {}

        def ask(name, ledger):
            found[name] = [ledger.decide(person(n), Terms(policy, 0.5)).body for n in range(60)]

        threads = [Thread(target=ask, args=pair) for pair in (("one", one), ("other", other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found["one"] == found["other"]
        assert len(one.windows()) == 1
        assert verify(one, other.signed_head(), deep=True).ok
    finally:
        one.close()
        other.close()
