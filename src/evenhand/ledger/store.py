"""Where the tables live: SQLite (one process, one writing connection) or PostgreSQL (several replicas).

SQLite below 3.51.3 can corrupt a database in WAL mode when two connections write or checkpoint at the same time. Here there is exactly one
connection that can write, in one thread of one process (a lock file holds the others off); all readers are opened read-only.
`synchronous=FULL` makes every commit wait for its fsync.
"""

import fcntl
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool, StaticPool

from evenhand.ledger.refusals import Invalid, LedgerLocked

READERS = 8
STATEMENTS = 512
"""Prepared ones that the writer keeps: an INSERT of each size for each table."""


@dataclass(frozen=True)
class Store:
    """An engine that writes, one that reads, and the lock that keeps other processes out (SQLite)."""

    writer: Engine
    reader: Engine
    lock: "FileLock | None" = None
    path: Path | None = None

    def close(self) -> None:
        """Readers first, so that the writer is the one who folds the WAL into the database."""
        self.reader.dispose()
        self.writer.dispose()
        if self.lock is not None:
            self.lock.release()


def open_store(where: str | os.PathLike[str]) -> Store:
    """A path opens SQLite, a URL of PostgreSQL opens that."""
    url = os.fspath(where)
    if url.startswith(("postgresql://", "postgresql+psycopg://", "postgres://")):
        return _postgres("postgresql+psycopg://" + url.split("://", 1)[1])
    if "://" in url:
        raise Invalid(
            f"the ledger cannot be opened at a URL of kind {url.split('://', 1)[0]!r}.",
            hint="give a path, or postgresql://...",
        )
    return _sqlite(Path(url))


def _postgres(url: str) -> Store:
    writer = create_engine(url, pool_size=1, max_overflow=0, pool_pre_ping=True, isolation_level="READ COMMITTED")
    reader = create_engine(url, pool_size=READERS, pool_pre_ping=True, isolation_level="REPEATABLE READ")
    event.listen(writer, "connect", _durable_commits)
    return Store(writer, reader)


def _durable_commits(connection: Any, _record: object) -> None:
    """Whatever the server's default is, our commits wait for the disk."""
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = on")
    connection.commit()


def _sqlite(path: Path) -> Store:
    lock = FileLock(path.with_name(path.name + ".lock"))
    lock.acquire()
    try:
        writer = create_engine("sqlite://", creator=lambda: _writing_connection(path), poolclass=StaticPool)
        event.listen(writer, "begin", _begin_immediate)
        reader = create_engine(
            "sqlite://",
            creator=lambda: _reading_connection(path),
            poolclass=QueuePool,
            pool_size=READERS,
            max_overflow=0,
        )
        event.listen(reader, "begin", _begin_deferred)
    except BaseException:
        lock.release()
        raise
    return Store(writer, reader, lock, path)


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begin_deferred(connection: Connection) -> None:
    """Several statements of one reader see one state."""
    connection.exec_driver_sql("BEGIN")


def _writing_connection(path: Path) -> sqlite3.Connection:
    """The only connection that writes: SQLAlchemy begins and ends its transactions, sqlite3 does not meddle."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=0, cached_statements=STATEMENTS
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


def _reading_connection(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False, timeout=5
    )


class FileLock:
    """flock on a file that holds the pid; the kernel lets go of it however the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def acquire(self) -> None:
        """LedgerLocked, with the pid of the other process, if somebody has it."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise LedgerLocked(
                f"process {holder} has opened {self.path.with_suffix('')}; a SQLite ledger belongs to one process.",
                hint="stop that process, or move to PostgreSQL for several replicas.",
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        self._handle = handle

    def release(self) -> None:
        """Let go."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
