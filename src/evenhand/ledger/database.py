"""The database: its tables, its migrations, and its connections.

Every row of the chain is (seq, at, body, hash) in the table of its kind, with the columns by which
it is looked up. The columns repeat what the canonical body says; `verify` compares them. The tables
of the chain refuse UPDATE and DELETE by trigger. Beside the chain are `people` (keys that can be
destroyed), `personal` (sealed fields), `head` (the end of the chain) and `leases`.

The tables are in SQLite (one process, one connection that writes) or in PostgreSQL (several
replicas). SQLite below 3.51.3 can corrupt a database in WAL mode when two connections write or
checkpoint at the same time. Here exactly one connection can write, in one thread of one process (a
lock file keeps the others out), and all readers are opened read-only. `synchronous=FULL` makes
every commit wait for its fsync.
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.pool import QueuePool, StaticPool

from evenhand.ledger.refusals import Damaged, Invalid, LedgerLocked

METADATA = MetaData()
_Seq = BigInteger().with_variant(Integer, "sqlite")
"""SQLite's row number is an INTEGER of 64 bits; PostgreSQL's INTEGER has 32, which is too few."""


def _chained(name: str, *columns: Any) -> Table:
    return Table(
        name,
        METADATA,
        Column("seq", _Seq, primary_key=True, autoincrement=False),
        Column("at", Double, nullable=False),
        *columns,
        Column("body", Text, nullable=False),
        Column("hash", LargeBinary(32), nullable=False),
    )


def _name(name: str, *, nullable: bool = False, unique: bool = False) -> "Column[str]":
    return Column(name, String, nullable=nullable, unique=unique)


DECISIONS = _chained(
    "decisions",
    _name("key", unique=True),
    _name("slot"),
    _name("tenant"),
    _name("product"),
    Column("accept", Boolean, nullable=False),
    Column("usable", Boolean, nullable=False),
    Index("decisions_by_product", "tenant", "product", "seq"),
)
OUTCOMES = _chained(
    "outcomes",
    Column("decision", _Seq, nullable=False),
    _name("report"),
    _name("value"),
    UniqueConstraint("decision", "report", "value"),
)
QUARANTINE = _chained(
    "quarantine",
    Column("decision", _Seq, nullable=False),
    _name("report"),
    _name("value"),
    UniqueConstraint("decision", "report", "value"),
)
POLICIES = _chained(
    "policies",
    _name("id"),
    _name("tenant"),
    _name("product"),
    Column("epoch", Integer, nullable=True),
    UniqueConstraint("tenant", "product", "epoch"),
    Index("policies_by_id", "id"),
)
"""`epoch` is NULL for policies outside the lineage: no two published ones share an epoch."""
CERTIFICATES = _chained(
    "certificates",
    _name("tenant"),
    _name("product"),
    Column("epoch", Integer, nullable=False),
)
CHECKPOINTS = _chained(
    "checkpoints",
    _name("tenant"),
    _name("product"),
    Column("epoch", Integer, nullable=False),
    UniqueConstraint("tenant", "product", "epoch"),
)
"""The state of the learner that made the policy of that epoch: sums over people, none of them."""
WINDOWS = _chained("windows", _name("window", unique=True))
ERASURES = _chained("erasures")
EVENTS = _chained(
    "events",
    _name("action"),
    _name("tenant", nullable=True),
    _name("product", nullable=True),
)

KINDS: dict[str, Table] = {
    "decision": DECISIONS,
    "outcome": OUTCOMES,
    "quarantine": QUARANTINE,
    "policy": POLICIES,
    "certificate": CERTIFICATES,
    "checkpoint": CHECKPOINTS,
    "window": WINDOWS,
    "erasure": ERASURES,
    "event": EVENTS,
}
"""Every kind of row of the chain, and its table."""

PEOPLE = Table(
    "people",
    METADATA,
    Column("id", _Seq, primary_key=True),
    Column("lookup", LargeBinary(32), nullable=False, unique=True),
    Column("key", LargeBinary, nullable=True),
)
"""`key` is wrapped by the keyring; NULL once the person has been erased."""
PERSONAL = Table(
    "personal",
    METADATA,
    Column("seq", _Seq, primary_key=True, autoincrement=False),
    Column("person", _Seq, nullable=False, index=True),
    Column("sealed", LargeBinary, nullable=True),
)
HEAD = Table(
    "head",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("seq", _Seq, nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
    Column("at", Double, nullable=False),
    Column("seal", LargeBinary(32), nullable=False),
)
"""`seal` needs the keyring: nobody who can only write the database makes a head that verifies."""
LEASES = Table(
    "leases",
    METADATA,
    _name("name", unique=True),
    _name("holder"),
    Column("token", _Seq, nullable=False),
    Column("expires", Double, nullable=False),
)
VERSIONS = Table("schema_versions", METADATA, Column("version", Integer, primary_key=True))

_SQLITE_GUARD = """CREATE TRIGGER {table}_keeps_{what} BEFORE {what} ON {table}
BEGIN SELECT RAISE(ABORT, 'the chain is append-only'); END"""
_POSTGRES_FUNCTION = """CREATE OR REPLACE FUNCTION evenhand_append_only() RETURNS trigger
LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the chain is append-only'; END $$"""
_POSTGRES_GUARD = """CREATE TRIGGER {table}_keeps_{what} BEFORE {what} ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION evenhand_append_only()"""


def _guard(connection: Connection, table: Table) -> None:
    """From now on the table refuses every change."""
    guard, verbs = _SQLITE_GUARD, ["UPDATE", "DELETE"]
    if connection.dialect.name != "sqlite":
        guard, verbs = _POSTGRES_GUARD, [*verbs, "TRUNCATE"]
    for what in verbs:
        connection.execute(text(guard.format(table=table.name, what=what)))


def _first_version(connection: Connection) -> None:
    """All tables, their guards, and the empty chain."""
    METADATA.create_all(connection)
    if connection.dialect.name != "sqlite":
        connection.execute(text(_POSTGRES_FUNCTION))
    for table in KINDS.values():
        _guard(connection, table)
    connection.execute(HEAD.insert().values(id=1, seq=0, hash=bytes(32), at=0.0, seal=bytes(32)))


def _without_slots(connection: Connection) -> None:
    """Whether a person has applied in a window before is read from the person's own rows.

    The index by slot cost every decision one random page.
    """
    connection.execute(text("DROP INDEX IF EXISTS decisions_by_slot"))


def _with_checkpoints(connection: Connection) -> None:
    """Closed cohorts are kept as sums, in rows of the chain; a new database has this table."""
    if not inspect(connection).has_table(CHECKPOINTS.name):
        CHECKPOINTS.create(connection)
        _guard(connection, CHECKPOINTS)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _first_version,
    _without_slots,
    _with_checkpoints,
)
"""Migration n brings a database from version n to n + 1. A released one is never edited."""


def migrate(connection: Connection) -> bool:
    """Bring the database to the newest version, inside the caller's transaction.

    True if it was empty before.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('evenhand migrations'))"))
    version, newest = schema_version(connection), len(MIGRATIONS)
    if version > newest:
        raise Damaged(
            f"the database has schema version {version}; this evenhand knows {newest}.",
            hint="use the evenhand that wrote it, or a newer one.",
        )
    for number in range(version, newest):
        MIGRATIONS[number](connection)
        connection.execute(VERSIONS.insert().values(version=number + 1))
    return version == 0


def schema_version(connection: Connection) -> int:
    """0 for an empty database."""
    if not inspect(connection).has_table(VERSIONS.name):
        return 0
    newest_first = select(VERSIONS.c.version).order_by(VERSIONS.c.version.desc())
    return int(connection.execute(newest_first).scalar() or 0)


READERS = 8
STATEMENTS = 512
"""Prepared statements that the writer keeps: an INSERT of each size for each table."""


@dataclass(frozen=True)
class Store:
    """An engine that writes, one that reads, and the lock that keeps others out (SQLite)."""

    writer: Engine
    reader: Engine
    lock: "FileLock | None" = None
    path: Path | None = None

    def close(self) -> None:
        """Readers first, so that it is the writer that moves the WAL into the database."""
        self.reader.dispose()
        self.writer.dispose()
        if self.lock is not None:
            self.lock.release()


def open_store(where: str | os.PathLike[str]) -> Store:
    """A path opens SQLite, a URL of PostgreSQL opens that."""
    url = os.fspath(where)
    kind, _, rest = url.partition("://")
    if not rest:
        return _open_sqlite(Path(url))
    if kind not in ("postgresql", "postgresql+psycopg", "postgres"):
        raise Invalid(
            f"the ledger cannot be opened at a URL of kind {kind!r}.",
            hint="give a path, or postgresql://...",
        )
    url = f"postgresql+psycopg://{rest}"
    # paramstyle: positional parameters, as SQLite has them
    common: dict[str, Any] = {"pool_pre_ping": True, "paramstyle": "format"}
    writer = create_engine(
        url, pool_size=1, max_overflow=0, isolation_level="READ COMMITTED", **common
    )
    reader = create_engine(url, pool_size=READERS, isolation_level="REPEATABLE READ", **common)

    @event.listens_for(writer, "connect")
    def wait_for_the_disk(connection: Any, _record: object) -> None:
        """Whatever the server's default is, our commits wait for the disk."""
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = on")
        connection.commit()

    return Store(writer, reader)


def _open_sqlite(path: Path) -> Store:
    lock = FileLock(path.with_name(path.name + ".lock"))
    lock.acquire()
    try:
        writer = create_engine(
            "sqlite://", creator=partial(_connect_writer, path), poolclass=StaticPool
        )
        readable = partial(
            sqlite3.connect,
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=5,
        )
        reader = create_engine(
            "sqlite://",
            creator=readable,
            poolclass=QueuePool,
            pool_size=READERS,
            max_overflow=0,
        )
        # SQLAlchemy begins and ends the transactions, sqlite3 does not (isolation_level); the
        # statements of one reader see one state
        event.listen(writer, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
        event.listen(reader, "begin", lambda c: c.exec_driver_sql("BEGIN"))
    except BaseException:
        lock.release()
        raise
    return Store(writer, reader, lock, path)


def _connect_writer(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        isolation_level=None,
        check_same_thread=False,
        timeout=0,
        cached_statements=STATEMENTS,
    )
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "secure_delete=ON",
        "cache_size=-65536",
        "wal_autocheckpoint=8000",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


class FileLock:
    """A lock on a file that holds the pid; the kernel releases it however the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def acquire(self) -> None:
        """LedgerLocked, with the pid of the other process, if another one has it."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise LedgerLocked(
                f"process {holder} has opened {self.path.with_suffix('')}; "
                "a SQLite ledger belongs to one process.",
                hint="stop that process, or move to PostgreSQL for several replicas.",
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        self._handle = handle

    def release(self) -> None:
        """Open the way for other processes."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
