"""The database: its tables, its schema versions, and its connections.

Every row of the chain is (seq, at, body, hash) in the table of its kind, with the columns by which
it is looked up. The columns repeat what the canonical body says; `verify` compares them. The tables
of the chain refuse UPDATE and DELETE by trigger; archiving alone may delete (`deleting`). Beside
the chain are `people` (keys that can be destroyed), `personal` (sealed fields), `archived` (what
stays here of rows that are in an archive), `head` (the end of the chain), `leases` and
`ended_sessions`.

The tables are in SQLite (one process, one connection that writes) or in PostgreSQL (several
replicas). SQLite below 3.51.3 can corrupt a database in WAL mode when two connections write or
checkpoint at the same time. Here exactly one connection can write, in one thread of one process (a
lock file keeps the others out), and all readers are opened read-only. `synchronous=FULL` makes
every commit wait for its fsync.

On PostgreSQL a replica that stops in the middle of a transaction holds the head, and with it all
others. So the server ends a transaction whose client is silent (TIMEOUTS), and rolls it back.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
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
    make_url,
    select,
    text,
)
from sqlalchemy.pool import QueuePool, StaticPool

from evenhand_service.ledger.refusals import Damaged, Invalid, LedgerLocked

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


def _names(*names: str) -> "list[Column[str]]":
    return [_name(name) for name in names]


def _name(name: str, *, nullable: bool = False, unique: bool = False) -> "Column[str]":
    return Column(name, String, nullable=nullable, unique=unique)


DECISIONS = _chained(
    "decisions",
    _name("key", unique=True),
    *_names("slot", "product", "policy"),
    Column("accept", Boolean, nullable=False),
    Column("usable", Boolean, nullable=False),
    Index("decisions_by_product", "product", "seq"),
    Index("decisions_by_policy", "product", "policy", "seq"),
)
OUTCOMES, QUARANTINE = (
    _chained(
        name,
        Column("decision", _Seq, nullable=False),
        *_names("report", "value"),
        UniqueConstraint("decision", "report", "value"),
    )
    for name in ("outcomes", "quarantine")
)
"""Reports on decisions: those that count, and labels of rejected people."""
POLICIES = _chained(
    "policies",
    *_names("id", "product"),
    Column("epoch", Integer, nullable=True),
    UniqueConstraint("product", "epoch"),
    Index("policies_by_id", "id"),
)
"""`epoch` is NULL for policies outside the lineage: no two published ones share an epoch."""
CERTIFICATES = _chained(
    "certificates", *_names("product"), Column("epoch", Integer, nullable=False)
)
CHECKPOINTS = _chained(
    "checkpoints",
    *_names("product"),
    Column("epoch", Integer, nullable=False),
    UniqueConstraint("product", "epoch"),
)
"""The state of the learner that made the policy of that epoch: sums over people, none of them."""
MODELS = _chained("models", _name("sha256", unique=True))
"""Fitted models, each once, named by the hash of its bytes; policies and checkpoints refer to them.
"""
WINDOWS = _chained("windows", _name("window", unique=True))
ERASURES = _chained("erasures")
EVENTS = _chained(
    "events",
    _name("action"),
    _name("product", nullable=True),
    Index("events_by_action", "action", "seq"),
)
ARCHIVED_EVENT = "archived"
"""The event by which rows went into an archive: its info names them, see `ledger.archive`."""
SWITCHES = (
    "kill",
    "revive",
    "rollback",
    "shadow",
    "live",
    "restored",
    "gap_confirmed",
    ARCHIVED_EVENT,
)
"""Events that change what decides, whether anything may be drawn, or where stored answers are."""
KEY_EVENTS = ("key_created", "key_revoked")
"""Events that change who may ask."""

KINDS: dict[str, Table] = {
    "decision": DECISIONS,
    "outcome": OUTCOMES,
    "quarantine": QUARANTINE,
    "policy": POLICIES,
    "certificate": CERTIFICATES,
    "checkpoint": CHECKPOINTS,
    "model": MODELS,
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
ARCHIVED = Table(
    "archived",
    METADATA,
    Column("seq", _Seq, primary_key=True, autoincrement=False),
    Column("key", LargeBinary(32), nullable=True, unique=True),
    Column("product", String, nullable=True),
    Column("past", Text, nullable=True),
    Column("hash", LargeBinary(32), nullable=False),
)
"""What stays of a row that is in an archive: its hash; of a decision besides the key, so that no
key gets a second coin, and the product; `past`: what the learner needs of a usable one, as it was
known when it was closed. The personal part of that is in `personal`, under the person's own key.
"""
ARCHIVED_KINDS = ("decision", "outcome", "quarantine")
"""Kinds of rows that go into an archive: they are about people, and one comes with every person.
All others are few, and stay.
"""
HEAD = Table(
    "head",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("seq", _Seq, nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
    Column("at", Double, nullable=False),
    Column("seal", LargeBinary(32), nullable=False),
    Column("switched", _Seq, nullable=False, server_default="0"),
    Column("keys", _Seq, nullable=False, server_default="0"),
    Column("basis_seal", LargeBinary(32), nullable=True),
)
"""`seal` needs the keyring: nobody who can only write the database makes a head that verifies.
`switched` and `keys` are the newest rows that changed what decides, and who may ask; `basis_seal`
covers them. Triggers move them as well: a row that somebody adds beside the chain breaks that seal,
so the next transaction notices it.
"""
LEASES = Table(
    "leases",
    METADATA,
    _name("name", unique=True),
    _name("holder"),
    Column("token", _Seq, nullable=False),
    Column("expires", Double, nullable=False),
)
ENDED_SESSIONS = Table(
    "ended_sessions",
    METADATA,
    Column("session", LargeBinary(32), primary_key=True),
    Column("expires", Double, nullable=False),
)
"""Sessions of the dashboard whose owner has logged out before they expired."""
SUMMARIES = Table(
    "summaries",
    METADATA,
    Column("product", String, primary_key=True),
    Column("what", String, primary_key=True),
    Column("upto", _Seq, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""What has been counted up to a row, sealed; a cache, which can be thrown away."""
VERSIONS = Table("schema_versions", METADATA, Column("version", Integer, primary_key=True))

_SQLITE_GUARD = """CREATE TRIGGER {table}_keeps_{what} BEFORE {what} ON {table}
BEGIN SELECT RAISE(ABORT, 'the chain is append-only'); END"""
_POSTGRES_FUNCTION = """CREATE OR REPLACE FUNCTION evenhand_append_only() RETURNS trigger
LANGUAGE plpgsql AS $$ BEGIN
IF TG_OP = 'DELETE' AND current_setting('evenhand.archiving', true) = 'on' THEN RETURN NULL; END IF;
RAISE EXCEPTION 'the chain is append-only'; END $$"""
_POSTGRES_GUARD = """CREATE TRIGGER {table}_keeps_{what} BEFORE {what} ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION evenhand_append_only()"""
_SQLITE_MARK = """CREATE TRIGGER {table}_moves_{column} AFTER INSERT ON {table} WHEN {when}
BEGIN UPDATE head SET {column} = NEW.seq; END"""
_POSTGRES_MARK_FUNCTION = """CREATE OR REPLACE FUNCTION evenhand_moves_{column}() RETURNS trigger
LANGUAGE plpgsql AS $$ BEGIN UPDATE head SET {column} = NEW.seq; RETURN NULL; END $$"""
_POSTGRES_MARK = """CREATE TRIGGER {table}_moves_{column} AFTER INSERT ON {table} FOR EACH ROW
WHEN ({when}) EXECUTE FUNCTION evenhand_moves_{column}()"""


def _guard(connection: Connection, table: Table) -> None:
    """From now on the table refuses every change."""
    guard = _SQLITE_GUARD
    verbs = ["UPDATE", "DELETE"]
    if connection.dialect.name != "sqlite":
        guard = _POSTGRES_GUARD
        verbs = [*verbs, "TRUNCATE"]
    for what in verbs:
        connection.execute(text(guard.format(table=table.name, what=what)))


@contextlib.contextmanager
def deleting(connection: Connection) -> Iterator[None]:
    """Inside of the block, and of the caller's transaction, rows of ARCHIVED_KINDS may be deleted.
    Only the owner of the tables can: a role that appends has not the right.
    """
    tables = [KINDS[kind] for kind in ARCHIVED_KINDS]
    if connection.dialect.name != "sqlite":
        # the triggers stay, so that nobody else waits for a lock on a table
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL evenhand.archiving = 'on'"))
        yield
        connection.execute(text("SET LOCAL evenhand.archiving = 'off'"))
        return
    for table in tables:
        connection.execute(text(f"DROP TRIGGER {table.name}_keeps_DELETE"))
    yield
    for table in tables:
        connection.execute(text(_SQLITE_GUARD.format(table=table.name, what="DELETE")))


def _create_marks(connection: Connection) -> None:
    """The triggers by which a new row moves the marks of the head."""
    sqlite = connection.dialect.name == "sqlite"
    if not sqlite:
        for column in ("switched", "keys"):
            connection.execute(text(_POSTGRES_MARK_FUNCTION.format(column=column)))
    mark = _SQLITE_MARK if sqlite else _POSTGRES_MARK
    for table, column, when in (
        (POLICIES, "switched", "NEW.epoch IS NOT NULL"),
        (EVENTS, "switched", f"NEW.action IN {SWITCHES}"),
        (EVENTS, "keys", f"NEW.action IN {KEY_EVENTS}"),
    ):
        connection.execute(text(mark.format(table=table.name, column=column, when=when)))


def create_schema(connection: Connection) -> None:
    """All tables, what guards them, and the empty chain."""
    METADATA.create_all(connection)
    if connection.dialect.name != "sqlite":
        connection.execute(text(_POSTGRES_FUNCTION))
    for table in KINDS.values():
        _guard(connection, table)
    _create_marks(connection)
    connection.execute(HEAD.insert().values(id=1, seq=0, hash=bytes(32), at=0.0, seal=bytes(32)))


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (create_schema,)
"""Migration n brings a database from schema version n to n + 1; the first one begins an empty
database. A released one is never edited.
"""


def migrate(connection: Connection) -> bool:
    """Bring the database to the newest version, inside the caller's transaction.

    Both databases undo what a transaction has done to tables, so whoever is killed in the middle
    leaves the database as it was. True if it was empty before.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = '60s'"))
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '30s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('evenhand migrations'))"))
    version = schema_version(connection)
    newest = len(MIGRATIONS)
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


IDLE = "idle_in_transaction_session_timeout"
IDLE_SECONDS = 3.0
"""Seconds of silence in a transaction after which PostgreSQL ends it, unless the settings say
otherwise: long enough for a starved machine, for a second lost whole batches there.
"""
TIMEOUTS = {
    "synchronous_commit": "on",
    IDLE: "3s",
    "lock_timeout": "5s",
    "statement_timeout": "15s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""What the connection that writes sets, whatever the defaults of the server are: a commit waits
for the disk; whoever is silent in a transaction for IDLE_SECONDS loses it, so that the others, who
wait for at most 5 s and then are refused, go on.
"""
CONNECTING = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""How a client notices that the server has gone without a word; the URL may say otherwise."""
SILENCE = 3.0
"""Seconds without a word from the server after which a client asks whether it is there at all."""
READERS = 8
STATEMENTS = 512
"""Prepared statements that the writer keeps: an INSERT of each size for each table."""
PRAGMAS = (
    "page_size=8192",
    "journal_mode=WAL",
    "synchronous=FULL",
    "secure_delete=ON",
    "cache_size=-65536",
    "wal_autocheckpoint=4000",
)
"""How SQLite writes. The size of a page is that of a new file, so it comes first: a group writes
fewer pages than with SQLite's own 4096 bytes, and each of them costs two system calls. The WAL is
moved into the file when it has 32 MB.
"""


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


def open_store(where: str | os.PathLike[str], idle_seconds: float = IDLE_SECONDS) -> Store:
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
    said = make_url(url).query
    connecting = {name: value for name, value in CONNECTING.items() if name not in said}
    # paramstyle: positional parameters, as SQLite has them
    common: dict[str, Any] = {
        "pool_pre_ping": True,
        "paramstyle": "format",
        "connect_args": connecting,
    }
    writer = create_engine(
        url, pool_size=1, max_overflow=0, isolation_level="READ COMMITTED", **common
    )
    reader = create_engine(url, pool_size=READERS, isolation_level="REPEATABLE READ", **common)

    watch = ServerWatch()
    for engine in (writer, reader):
        event.listen(engine, "do_connect", watch.connect)

    @event.listens_for(writer, "connect")
    def set_timeouts(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            for name, usual in TIMEOUTS.items():
                value = f"{1000 * idle_seconds:.0f}ms" if name == IDLE else usual
                cursor.execute(f"SET {name} = '{value}'")
        connection.commit()

    return Store(writer, reader)


class ServerWatch:
    """Notices that a PostgreSQL server says nothing although its connections stand.

    A server that is frozen (a paused machine, a hung storage) keeps its sockets, so that neither
    its own timeouts nor TCP's help, and a client would wait for as long as that lasts. A long
    question is no silence: whoever has waited for SILENCE seconds tries whether the server takes a
    new connection, and waits on if it does. If it does not, the old one is given up as if it had
    been lost (ConnectionTimeout), and nobody tries again for as long.
    """

    def __init__(self) -> None:
        self._silent_until = 0.0

    def connect(self, dialect: Any, _record: object, words: Any, named: dict[str, Any]) -> Any:
        """A connection whose every wait is watched."""
        import psycopg

        def connected(connect: Any, **others: Any) -> Any:
            try:
                return connect(*words, **{**named, **others})
            except psycopg.errors.ConnectionTimeout:
                self._silent_until = time.monotonic() + SILENCE
                raise

        def watched(gen: Any, connection: Any) -> Any:
            since = time.monotonic()
            try:
                wanted = next(gen)
                while True:
                    ready = yield wanted
                    if ready:
                        since = time.monotonic()
                    elif time.monotonic() - since > SILENCE:
                        try:
                            connected(psycopg.connect, connect_timeout=2).close()
                        except psycopg.errors.ConnectionTimeout:
                            connection.pgconn.finish()
                            raise
                        except psycopg.OperationalError:
                            pass  # somebody has refused it, so there is somebody
                        since = time.monotonic()
                    wanted = gen.send(ready)
            except StopIteration as end:
                return end.value

        class Watched(psycopg.Connection[Any]):
            def wait(self, gen: Any, *given: Any, **options: Any) -> Any:
                return super().wait(watched(gen, self), *given, **options)

        if time.monotonic() < self._silent_until:
            silent = "the server has not answered for some seconds"
            raise psycopg.errors.ConnectionTimeout(silent)
        return connected(Watched.connect)


def _open_sqlite(path: Path) -> Store:
    # SQLAlchemy begins and ends the transactions, sqlite3 does not (isolation_level)
    threads: dict[str, Any] = {"isolation_level": None, "check_same_thread": False}
    readable = f"{path.absolute().as_uri()}?mode=ro"
    lock = FileLock(path.with_name(path.name + ".lock"))
    lock.acquire()
    try:
        _keep_to_its_owner(path)
        writer = create_engine(
            "sqlite://",
            creator=lambda: sqlite3.connect(
                path, timeout=0, cached_statements=STATEMENTS, **threads
            ),
            poolclass=StaticPool,
        )
        reader = create_engine(
            "sqlite://",
            creator=lambda: sqlite3.connect(readable, uri=True, timeout=5, **threads),
            poolclass=QueuePool,
            pool_size=READERS,
            max_overflow=0,
        )

        @event.listens_for(writer, "connect")
        def make_durable(connection: sqlite3.Connection, _record: object) -> None:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").fetchall()

        # the statements of one reader see one state
        event.listen(writer, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
        event.listen(reader, "begin", lambda c: c.exec_driver_sql("BEGIN"))
    except BaseException:
        lock.release()
        raise
    return Store(writer, reader, lock, path)


def _keep_to_its_owner(path: Path) -> None:
    """Mode 0600 for a new file, and for one that others could read; SQLite gives the same mode to
    what it writes beside it.
    """
    for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            flags = os.O_RDWR | os.O_CREAT if file == path else os.O_RDWR
            os.close(os.open(file, flags, 0o600))
            file.chmod(0o600)


class FileLock:
    """A lock on a file; the system releases it however the process ends. The pid of its holder is
    in a file beside it, because opening the locked file empties it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.holder = path.with_suffix(".pid")
        self._lock = filelock.FileLock(path, timeout=0, mode=0o600, thread_local=False)

    def acquire(self) -> None:
        """LedgerLocked, with the pid of the other process, if another one has it."""
        try:
            self._lock.acquire()
        except filelock.Timeout:
            known = self.holder.exists()
            holder = self.holder.read_text().strip() if known else "unknown"
            raise LedgerLocked(
                f"process {holder} has opened {self.path.with_suffix('')}; "
                "a SQLite ledger belongs to one process.",
                hint="stop that process, or move to PostgreSQL for several replicas.",
            ) from None
        self.holder.touch(mode=0o600)
        self.holder.write_text(f"{os.getpid()}\n")

    def release(self) -> None:
        """Open the way for other processes."""
        self._lock.release()
