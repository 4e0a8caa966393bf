"""A backup is whole; a restored ledger answers what it knows and draws nothing until somebody has
confirmed the gap.
"""

import pytest
from service.tests.ledger.helpers import (
    KEYRING,
    PRODUCT,
    Clock,
    decided,
    opened,
    person,
    published,
)

from evenhand_service.ledger import (
    Damaged,
    GapUnconfirmed,
    Invalid,
    Terms,
    backup,
    restore,
    verify,
)


@pytest.fixture
def saved(ledger, policy, tmp_path):
    """A backup after 20 decisions; ten more are made afterwards."""
    decided(ledger, policy, range(20))
    folder = backup(ledger, tmp_path / "backup")
    lost = decided(ledger, policy, range(20, 30))
    return folder, policy, lost


def restored(saved, tmp_path):
    target = tmp_path / "restored.sqlite"
    restore(saved[0], target, keyring=KEYRING, clock=Clock(), by="operator")
    return target


def test_a_restored_ledger_refuses_to_draw_until_the_gap_is_confirmed(saved, tmp_path):
    _, policy, lost = saved
    target = restored(saved, tmp_path)
    for _ in range(2):  # closing and opening again does not help
        with opened(target) as ledger:
            assert ledger.decide(person(3), Terms(policy, 0.5)).replayed
            with pytest.raises(GapUnconfirmed):
                ledger.decide(person(25), Terms(policy, 0.5))
    with opened(target) as ledger:
        with pytest.raises(Invalid):
            ledger.confirm_gap("operator", " ")
        ledger.confirm_gap("operator", "ten answers were re-sent by hand")
        again = ledger.decide(person(25), Terms(policy, 0.5)).drawn
        assert (
            again.u == lost[5].drawn.u
        )  # the secret follows from the keyring, so the coin is the one that was lost
        assert verify(ledger, deep=True).ok
        assert [event.action for event in ledger.events()] == [
            "genesis",
            "restored",
            "gap_confirmed",
        ]


def test_a_backup_under_load_is_one_state(ledger, policy, tmp_path):
    from threading import Event, Thread

    stop = Event()

    def load():
        number = 0
        while not stop.is_set():
            decided(ledger, policy, range(number, number + 20))
            number += 20

    thread = Thread(target=load)
    thread.start()
    try:
        folder = backup(ledger, tmp_path / "backup")
    finally:
        stop.set()
        thread.join()
    with opened(restored((folder,), tmp_path)) as copy:
        assert verify(copy, deep=True).ok


def test_a_damaged_backup_is_not_restored(saved, tmp_path):
    import sqlite3

    connection = sqlite3.connect(saved[0] / "ledger.sqlite")
    connection.execute("DROP TRIGGER decisions_keeps_UPDATE")
    connection.execute("UPDATE decisions SET accept = 1 - accept WHERE seq = 7")
    connection.commit()
    connection.close()
    with pytest.raises(Damaged):
        restored(saved, tmp_path)
    assert not (tmp_path / "restored.sqlite").exists()


def test_nothing_is_replaced(saved, path):
    with pytest.raises(Invalid):
        restore(saved[0], path, keyring=KEYRING, clock=Clock(), by="operator")
    with pytest.raises(FileExistsError), opened(path.with_name("new.sqlite")) as ledger:
        backup(ledger, saved[0])


def test_postgresql_is_marked_after_its_own_restore(postgres_url, tmp_path):
    with opened(postgres_url) as ledger:
        policy = published(ledger)
        decided(ledger, policy, [1])
        ledger.mark_restored("operator")
        with pytest.raises(GapUnconfirmed):
            ledger.decide(person(2), Terms(policy, 0.5))
        ledger.confirm_gap("operator", "nothing is missing")
        decided(ledger, policy, [2])
        assert ledger.counts(PRODUCT).decisions == 2
