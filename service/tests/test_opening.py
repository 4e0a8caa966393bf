"""What a first start makes, which keyring opens a ledger, and snapshots."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from service.tests.bank import LOAN
from service.tests.doctorings import Intruder
from service.tests.ledger.helpers import Clock, person, published

from evenhand.errors import InvalidInput
from evenhand_service import SCOPES, LedgerKeys, Settings
from evenhand_service.ledger import GapUnconfirmed, LedgerUnavailable, Terms
from evenhand_service.ledger.database import HEAD, KINDS
from evenhand_service.opening import ledger_or_snapshot, open_keyring, open_ledger
from evenhand_service.server import check


@pytest.fixture
def settings(tmp_path):
    names = {name: str(tmp_path / name) for name in ("ledger", "keyring")}
    return Settings((LOAN,), **names)


def test_the_first_start_makes_what_is_missing_and_the_next_finds_it(settings):
    with open_ledger(settings, lambda: 1e9) as ledger:
        keys = LedgerKeys(ledger)
        token = keys.first(by="a first start")
        assert set(keys.find(token).scopes) == set(SCOPES)
        public_key = ledger.keyring.public_key
    with open_ledger(settings, lambda: 1e9) as ledger:
        again = LedgerKeys(ledger)
        assert again.first(by="a second one") is None
        assert again.find(token) is not None
        assert open_keyring(settings).public_key == public_key


def test_several_who_make_the_keyring_at_once_agree_on_one(settings):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: open_keyring(settings).public_key, range(32)))
    assert len(set(made)) == 1
    assert [path.name for path in Path(settings.keyring).parent.iterdir()] == ["keyring"]


def test_a_ledger_without_its_keyring_is_not_opened(settings):
    open_ledger(settings, lambda: 1e9).close()
    Path(settings.keyring).unlink()
    with pytest.raises(InvalidInput, match="keyring"):
        open_ledger(settings, lambda: 1e9)
    assert not Path(settings.keyring).exists()


def test_a_ledger_in_a_database_is_not_given_another_keyring(settings, postgres_url, monkeypatch):
    settings = replace(settings, ledger=postgres_url, port=0)
    with pytest.raises(LedgerUnavailable, match="opened"):
        list(check(replace(settings, ledger="postgresql://evenhand@127.0.0.1:1/none")))
    assert list(check(settings))[-1] == "ledger: the database answers; it begins at the first start"
    open_ledger(settings, lambda: 1e9).close()
    assert any(line.endswith("holds a ledger of this keyring") for line in check(settings))
    Path(settings.keyring).unlink()
    for start in (lambda: list(check(settings)), lambda: open_ledger(settings, lambda: 1e9)):
        with pytest.raises(InvalidInput, match=r"begun.*keyring"):
            start()
        assert not Path(settings.keyring).exists()
    monkeypatch.setenv("EVENHAND_OTHER_ROOT", "ab" * 32)
    with pytest.raises(InvalidInput, match="is that of"):
        list(check(replace(settings, keyring="env:EVENHAND_OTHER_ROOT")))


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o777])
def test_a_keyring_that_others_can_read_is_refused(settings, mode):
    open_ledger(settings, lambda: 1e9).close()
    keyring, free = Path(settings.keyring), replace(settings, port=0)
    keyring.chmod(mode)
    for start in (lambda: list(check(free)), lambda: open_ledger(settings, lambda: 1e9)):
        with pytest.raises(InvalidInput) as refused:
            start()
        for part in ("keyring of [service]", f"mode {mode:04o}", f"chmod 600 {keyring}"):
            assert part in str(refused.value)
    for fine in (0o600, 0o400, 0o440):  # a cluster gives secrets to a group
        keyring.chmod(fine)
        open_ledger(settings, lambda: 1e9).close()


def test_while_the_ledger_is_open_elsewhere_a_snapshot_is_read(settings):
    with (
        open_ledger(settings, lambda: 1e9) as ledger,
        ledger_or_snapshot(settings, lambda: 1e9) as (copy, itself),
    ):
        assert (itself, copy.head()) == (False, ledger.head())
    with ledger_or_snapshot(settings, lambda: 1e9) as (_, itself):
        assert itself


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_kill_is_not_taken_back_by_an_older_head(kind, tmp_path, request):
    """Without a witness: newer rows are deleted, and the head is put back with its own seal."""
    where = str(tmp_path / "data" / "ledger.sqlite")
    if kind == "postgresql":
        where = request.getfixturevalue("postgres_url")
    (tmp_path / "data").mkdir()
    settings = Settings(products=(LOAN,), ledger=where, keyring=str(tmp_path / "keyring.json"))
    clock = Clock()
    with open_ledger(settings, clock) as ledger:
        policy = published(ledger)
        seq = ledger.head().seq
        intruder = Intruder(where)
        head = intruder.all("SELECT * FROM head")[0]
        names = [column.name for column in HEAD.columns]
        intruder.done()
        ledger.operate("loan", "kill", "op", policy=policy)
        assert ledger.active("loan").mode == "killed"
    intruder = Intruder(where)
    intruder.unguard()
    for table in KINDS.values():
        intruder.run(f"DELETE FROM {table.name} WHERE seq > ?", seq)
    intruder.run(f"UPDATE head SET {', '.join(f'{name} = ?' for name in names)}", *head)
    intruder.done()
    for other in (tmp_path / "data").glob("*.mark"):  # they own that folder
        other.unlink()
    with open_ledger(settings, clock) as ledger:
        with pytest.raises(GapUnconfirmed):
            ledger.decide(person(1), Terms(policy, 0.5))
        assert ledger.events()[-1].action == "restored"
