"""Whatever is done to the log behind the ledger's back is found."""

import shutil
import sqlite3

import pytest
from service.tests.ledger.damage import DAMAGES, keep, looks_whole, missed
from service.tests.ledger.helpers import (
    PRODUCT,
    Clock,
    coin,
    decided,
    opened,
    published,
    recomputed,
)

from evenhand_service.ledger import Damaged, NotFound, SignedHead, verify


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return keep(tmp_path_factory.mktemp("kept") / "ledger.sqlite")


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_damage_is_always_found(kept, tmp_path, damage):
    assert missed(kept, tmp_path / "damaged.sqlite", damage, range(15)) == []


@pytest.mark.parametrize("value", [7, -1, 0.5, b"1"])
def test_a_truth_value_that_is_none_is_found_although_it_counts_as_true(kept, tmp_path, value):
    path = tmp_path / "ledger.sqlite"
    shutil.copyfile(kept[0], path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE decisions SET usable = ? WHERE seq = 20 AND usable", [value])
        assert connection.execute("SELECT changes()").fetchone() == (1,)
    connection.close()
    assert not looks_whole(path, kept[1])


def test_what_only_a_published_head_can_tell(path, clock):
    """The limit: the whole database put back to a state that was once genuine verifies, until a
    later head is held against it.
    """
    with opened(path, clock) as ledger:
        decided(ledger, published(ledger), range(5))
    old = path.with_name("old.sqlite")
    shutil.copyfile(path, old)
    with opened(path, clock) as ledger:
        decided(ledger, ledger.policies(PRODUCT)[0].id, range(5, 10))
        later = ledger.signed_head()
    with opened(old, clock) as ledger:
        assert verify(ledger, deep=True).ok
        assert not verify(ledger, later).ok


def test_the_undamaged_copy_is_whole(kept):
    assert looks_whole(*kept)


def test_deep_verification_notices_a_key_that_was_changed(kept, tmp_path):
    path = tmp_path / "ledger.sqlite"
    shutil.copyfile(kept[0], path)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE people SET key = zeroblob(60) WHERE id = (SELECT min(id) FROM people)"
        )
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
        for statement in (
            "UPDATE decisions SET accept = NOT accept",
            "DELETE FROM decisions",
            "DELETE FROM events",
        ):
            with (
                pytest.raises(Exception, match="append-only"),
                ledger.store.writer.begin() as connection,
            ):
                connection.exec_driver_sql(statement)
        assert verify(ledger, deep=True).ok


def test_acceptances_recompute_from_their_policies(ledger, policy):
    decided(ledger, policy, range(10))
    second = ledger.publish(PRODUCT, coin(0.25), epoch=2, parent=policy, checkpoint={}).id
    decided(ledger, second, range(10, 20), 0.25)
    assert (verify(ledger, deep=True).problems, recomputed(ledger, PRODUCT)) == ((), 20)
    decided(ledger, second, [20], 0.26)
    (problem,) = verify(ledger, deep=True).problems
    assert (problem.what, recomputed(ledger, PRODUCT)) == ("the acceptance is not the policy's", 20)


def test_another_keyring_does_not_open_the_ledger(path):
    from evenhand_service.ledger import Keyring, Ledger

    with opened(path):
        pass
    with pytest.raises(Damaged):
        Ledger.open(path, keyring=Keyring.generate(), clock=Clock())
    with opened(path):
        pass


def test_a_ledger_in_use_is_verified_and_exported_as_one_state(where, tmp_path):
    from threading import Event, Thread

    from evenhand_service.ledger import export
    from evenhand_service.ledger import standalone_verifier as verifier

    with opened(where) as ledger:
        policy, stop = published(ledger), Event()

        def load():
            number = 0
            while not stop.is_set():
                decided(ledger, policy, range(number, number + 5))
                ledger.erase(f"p{number}", "officer")
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


def test_a_person_who_cannot_be_found_any_more_is_noticed(ledger, policy):
    """Somebody changes by what the person is found: the erasure says that it erased nothing."""
    first = decided(ledger, policy, range(3))[0].drawn.seq
    with ledger.store.writer.begin() as connection:
        connection.exec_driver_sql(f"UPDATE people SET lookup = zeroblob(32) WHERE id = {first}")
    found = verify(ledger, deep=True)
    assert [problem.seq for problem in found.problems] == [first]
    assert "does not open" in found.problems[0].what
    with pytest.raises(NotFound, match="verify"):
        ledger.erase("p0", "officer")
    assert [ledger.erase(f"p{number}", "officer") for number in (1, 2)] == [1, 1]
