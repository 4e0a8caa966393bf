"""From the settings to the ledger: its keyring, the database, and the mark beside the keyring. The
commands need this much; `server` goes on to a running process.
"""

import contextlib
import json
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, create_engine, inspect, select
from sqlalchemy.exc import DBAPIError

from evenhand.errors import InvalidInput
from evenhand_service.decider import render
from evenhand_service.ledger import (
    Clock,
    Keyring,
    Ledger,
    LedgerLocked,
    LedgerUnavailable,
    PolicyRecord,
    WindowPlan,
)
from evenhand_service.ledger.audit import copy_sqlite
from evenhand_service.ledger.database import EVENTS, open_store
from evenhand_service.ledger.decision_draw import PLANNED, plans_of, require_same_plan
from evenhand_service.ledger.publishing import policies_of
from evenhand_service.product_changes import require_unchanged
from evenhand_service.settings import DAY, Settings


def open_keyring(settings: Settings) -> Keyring:
    """The keyring; a new one is made only where there is no ledger yet, and only as a file."""
    path = settings.keyring_file
    if path is None:
        return Keyring.from_source(settings.keyring)
    if path.exists():
        require_private_keyring(settings)
        return Keyring.load(path)
    if settings.ledger_file is not None and settings.ledger_file.exists():
        raise InvalidInput(
            f"the ledger {settings.ledger} exists, but its keyring {path} does not.",
            hint="put the keyring back: without it nothing in the ledger can be read.",
        )
    begun = begun_by(settings)
    if begun is not None and not path.exists():
        raise keyring_is_away(path, begun)
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):  # another replica was faster
        Keyring.generate().save(path)
    return Keyring.load(path)


def require_private_keyring(settings: Settings) -> None:
    """A keyring's file is for the service alone; a group may read it where the service gets it from
    one, as in a cluster.
    """
    path = settings.keyring_file
    if path is None or os.name != "posix":
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & stat.S_IRWXO:
        raise InvalidInput(
            f"keyring of [service] is {settings.keyring!r}, with mode {mode:04o}; nobody but its "
            "owner should get at it: with it and the database every coin can be predicted.",
            hint=f"chmod 600 {settings.keyring}; if others could read it, rotate the root "
            "(evenhand audit rotate-root).",
        )


def begun_by(settings: Settings) -> str | None:
    """The public key with which the ledger in a database was begun; None if it was not."""
    if settings.ledger_file is not None:
        return None
    try:
        with (
            contextlib.closing(open_store(settings.ledger)) as store,
            store.reader.connect() as connection,
        ):
            if not inspect(connection).has_table(EVENTS.name):
                return None
            first = connection.scalar(select(EVENTS.c.body).where(EVENTS.c.seq == 1))
    except DBAPIError as error:
        raise LedgerUnavailable(
            f"the database cannot be opened: {type(error.orig).__name__}.",
            hint="check that it runs, and the URL in the settings.",
        ) from error
    return None if first is None else str(json.loads(first)["info"]["public_key"])


@contextlib.contextmanager
def looked_at(settings: Settings) -> Iterator[Connection | None]:
    """A connection to what is there, for reading alone; None where there is no ledger yet. Nothing
    is written, not even beside a SQLite file, and a service may be running on it.
    """
    file = settings.ledger_file
    if file is None:
        with (
            contextlib.closing(open_store(settings.ledger)) as store,
            store.reader.connect() as connection,
        ):
            yield connection if inspect(connection).has_table(EVENTS.name) else None
        return
    if not file.exists() or not file.stat().st_size:
        yield None
        return
    # without a log beside it nobody writes the file, and SQLite need not make one to read it
    log = file.with_name(f"{file.name}-wal")
    how = "mode=ro" if log.exists() and not is_read_only(settings) else "immutable=1"
    address = f"{file.absolute().as_uri()}?{how}"
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(address, uri=True))
    try:
        with engine.connect() as connection:
            yield connection if inspect(connection).has_table(EVENTS.name) else None
    finally:
        engine.dispose()


def require_as_begun(settings: Settings, keyring: Keyring) -> Iterator[str]:
    """What the ledger must agree with before a service goes on with it, a line for each thing: the
    windows, and every product for which a policy was published.
    """
    with looked_at(settings) as connection:
        if connection is None:
            return
        plans = plans_of(connection.execute(PLANNED))
        if not plans:
            return  # its first row is away: the start says so
        require_same_plan(plans[-1], WindowPlan(settings.window_days * DAY))
        for product in settings.products:
            rows = connection.execute(policies_of(product.name)).all()
            policies = [PolicyRecord.from_body(row.seq, json.loads(row.body)) for row in rows]
            require_unchanged(policies, product, keyring.public_key)
            newest = max((one.epoch for one in policies if one.in_lineage), default=0)
            state = f"as it was published (epoch {newest})" if newest else "begins"
            yield f"product {product.name}: {state}"


def keyring_is_away(where: Path, begun: str) -> InvalidInput:
    """The refusal to make another keyring for a ledger that was begun with one."""
    return InvalidInput(
        f"the ledger in the database was begun by the holder of {begun}, and {where} does not "
        "exist.",
        hint="put the keyring back: without it nothing in the ledger can be read.",
    )


def open_ledger(settings: Settings, clock: Clock, path: Path | None = None) -> Ledger:
    """The ledger of the settings, begun if there is none; or a copy of it at `path`."""
    return Ledger.open(
        path or settings.ledger,
        keyring=open_keyring(settings),
        clock=clock,
        windows=WindowPlan(settings.window_days * DAY),
        render=render,
        mark=mark_of(settings) if path is None else None,
        idle_seconds=settings.idle_transaction_seconds,
    )


def mark_of(settings: Settings) -> Path | None:
    """The file that remembers how far the chain went: beside the keyring, where whoever can only
    write the database does not get; None where the keyring is no file.
    """
    keyring = settings.keyring_file
    return None if keyring is None else keyring.with_name(f"{keyring.name}.mark")


@contextlib.contextmanager
def ledger_or_snapshot(settings: Settings, clock: Clock) -> Iterator[tuple[Ledger, bool]]:
    """(ledger, whether it is the ledger itself): while another process has it open, a snapshot;
    where a SQLite ledger cannot be written (an auditor's read-only copy), a copy elsewhere.
    """
    read_only = is_read_only(settings)
    if not read_only:
        try:
            with open_ledger(settings, clock) as ledger:
                yield ledger, True
                return
        except LedgerLocked:
            pass
    with tempfile.TemporaryDirectory(prefix="evenhand-") as directory:
        source = Path(settings.ledger).absolute()
        copy = Path(directory) / "snapshot.sqlite"
        if read_only:  # nobody writes to it, and SQLite could not open its log beside it
            for end in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(f"{source}{end}", f"{copy}{end}")
        else:
            copy_sqlite(source, copy)
        with open_ledger(settings, clock, copy) as ledger:
            yield ledger, False


def is_read_only(settings: Settings) -> bool:
    """Whether the ledger is a SQLite file that this user, or anybody, cannot write."""
    if settings.ledger_file is None or not settings.ledger_file.exists():
        return False
    effective = os.access in os.supports_effective_ids
    place = settings.ledger_file.absolute()
    return not all(os.access(p, os.W_OK, effective_ids=effective) for p in (place, place.parent))
