"""Backup and restore of a SQLite ledger. (PostgreSQL: pg_dump and pg_restore; then call `mark_restored`.)

A backup is a consistent copy of the database and a signed head. It does not hold the keyring: whoever has both can predict draws. A
restored ledger may be missing decisions that were answered after the backup, so it refuses to draw until an operator confirms the gap.
Erasures after the backup must be repeated; their keys are still in it.
"""

import json
import os
import shutil
import sqlite3
from pathlib import Path

from evenhand.canonical import canonical
from evenhand.ledger.keyring import Keyring
from evenhand.ledger.ledger import Ledger
from evenhand.ledger.publishing import append_event
from evenhand.ledger.records import Clock, SignedHead
from evenhand.ledger.refusals import Damaged, Invalid
from evenhand.ledger.verifying import verify

DATABASE, ANCHOR = "ledger.sqlite", "head.json"


def backup(ledger: Ledger, directory: str | os.PathLike[str]) -> Path:
    """Copy the database while it is in use into a new directory, with the signed head that it must contain."""
    if ledger.store.path is None:
        raise Invalid("this ledger lives in PostgreSQL.", hint="use pg_dump, and mark_restored() after pg_restore.")
    target = Path(directory)
    target.mkdir(parents=True)
    anchor = ledger.signed_head()
    _copy(ledger.store.path, target / DATABASE)
    (target / ANCHOR).write_text(canonical(anchor.to_json()))
    for path in (target / DATABASE, target / ANCHOR, target):
        _sync(path)
    return target


def _copy(source: Path, target: Path) -> None:
    """SQLite's own online copy: one state, although the writer goes on. The copy needs no WAL beside it."""
    reading = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
    writing = sqlite3.connect(target)
    try:
        reading.backup(writing)
        writing.execute("PRAGMA journal_mode=DELETE").fetchall()
    finally:
        writing.close()
        reading.close()


def restore(
    directory: str | os.PathLike[str], where: str | os.PathLike[str], *, keyring: Keyring, clock: Clock, by: str
) -> None:
    """Put a backup in the place of a ledger that is lost; verify it; refuse draws until `confirm_gap`. Replaces nothing."""
    source, target = Path(directory), Path(where)
    if target.exists():
        raise Invalid(f"{target} exists; a restore replaces nothing.", hint="move the damaged ledger away first.")
    anchor = SignedHead.from_json(json.loads((source / ANCHOR).read_text()))
    shutil.copyfile(source / DATABASE, target)
    _sync(target)
    with Ledger.open(target, keyring=keyring, clock=clock) as ledger:
        mark_restored(ledger, by)
        found = verify(ledger, anchor)
    if not found.ok:
        target.unlink()
        first = found.problems[0]
        raise Damaged(f"the backup does not verify: row {first.seq}: {first.what}.", hint="use another backup.")


def mark_restored(ledger: Ledger, by: str) -> None:
    """From now on nothing is drawn until `confirm_gap`."""
    info = {"head": ledger.head().seq}
    ledger._write(lambda transaction: append_event(transaction, "restored", by, "", info=info))
    ledger._drawer.hold()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
