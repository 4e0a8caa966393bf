"""Opening what the settings name: keyring, ledger, keys; and a snapshot of a ledger that another
process has open.
"""

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evenhand.errors import InvalidInput
from evenhand.ledger import Clock, Keyring, Ledger, LedgerLocked, WindowPlan
from evenhand.service.config import DAY, Settings
from evenhand.service.desk import render
from evenhand.service.keys import SCOPES, KeyStore


def open_keyring(settings: Settings) -> Keyring:
    """The keyring; a new one only where there is no ledger yet, because nobody else can read an old
    one.
    """
    path = Path(settings.keyring)
    if path.exists():
        return Keyring.load(path)
    if "://" not in settings.ledger and Path(settings.ledger).exists():
        raise InvalidInput(
            f"the ledger {settings.ledger} exists, but its keyring {path} does not.",
            hint="put the keyring back: without it nothing in the ledger can be read.",
        )
    made = Keyring.generate()
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(path)
    return made


def open_ledger(settings: Settings, clock: Clock) -> Ledger:
    """The ledger, begun if there is none."""
    plan = WindowPlan(settings.window_days * DAY)
    return Ledger.open(
        settings.ledger, keyring=open_keyring(settings), clock=clock, windows=plan, render=render
    )


def open_keys(settings: Settings) -> tuple[KeyStore, dict[str, str]]:
    """The API keys, and the tokens of those that had to be made: one with every scope for each
    tenant that has none.
    """
    store = KeyStore(Path(settings.keys))
    fresh = {}
    for tenant in dict.fromkeys(product.tenant for product in settings.products):
        if not store.all(tenant):
            fresh[tenant] = store.add(tenant, SCOPES, "first")
    return store, fresh


@contextlib.contextmanager
def looking(settings: Settings, clock: Clock) -> Iterator[tuple[Ledger, bool]]:
    """(ledger, whether it is the ledger itself): to look at it even while the service has it open,
    then as a snapshot.
    """
    try:
        with open_ledger(settings, clock) as ledger:
            yield ledger, True
            return
    except LedgerLocked:
        pass
    with tempfile.TemporaryDirectory(prefix="evenhand-") as directory:
        copy = Path(directory) / "snapshot.sqlite"
        _snapshot(Path(settings.ledger), copy)
        plan = WindowPlan(settings.window_days * DAY)
        with Ledger.open(
            copy, keyring=open_keyring(settings), clock=clock, windows=plan, render=render
        ) as ledger:
            yield ledger, False


def _snapshot(source: Path, target: Path) -> None:
    """SQLite's online copy through a connection that cannot write."""
    reading = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
    writing = sqlite3.connect(target)
    try:
        reading.backup(writing)
    finally:
        writing.close()
        reading.close()
