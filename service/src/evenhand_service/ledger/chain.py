"""The chain: its rows, the transaction that appends some, and the one thread that writes.

    seq_n = seq_{n-1} + 1,   at_n = max(clock, at_{n-1}),   hash_n = SHA-256(hash_{n-1} | row n)

On PostgreSQL the head's row is locked until the commit, so replicas append one after another.
"""

import hashlib
import heapq
import json
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from operator import itemgetter
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol

from sqlalchemy import (
    ARRAY,
    ClauseElement,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Engine,
    Executable,
    Row,
    Select,
    Table,
    bindparam,
    func,
    literal_column,
    null,
    select,
    true,
    union_all,
    update,
)

from evenhand.canonical import canonical, number_literal
from evenhand.contracts import Json
from evenhand_service.ledger.database import (
    ARCHIVED,
    ARCHIVED_EVENT,
    EVENTS,
    HEAD,
    KEY_EVENTS,
    KINDS,
    OUTCOMES,
    POLICIES,
    QUARANTINE,
    SWITCHES,
)
from evenhand_service.ledger.guard import LOG, Checked, HeadGuard, LockedHead, gone_back, tampered
from evenhand_service.ledger.keyring import verify_signature
from evenhand_service.ledger.refusals import (
    Damaged,
    DatabaseAway,
    LedgerUnavailable,
    Refusal,
    Tampered,
)
from evenhand_service.ledger.standalone_verifier import ArchivedRows

Values = tuple[Any, ...]
PAGE = 5000
"""Rows of a table that are read at once."""
MOST_ROWS = 64
"""Rows in one INSERT of SQLite."""
MANY = 32
"""Rows from which on PostgreSQL gets them by COPY, which needs one more round trip to the server
than an INSERT, and a fifth of the driver's time for a row; and values from which on it gets them as
one array, whose question it plans anew each time.
"""
MOST_VALUES = 4096
"""Values in one list."""
MOST_SILENT = 256
"""Rows that are drawn without a word to the database: PostgreSQL ends the transaction of a client
that is silent for long, and on a busy machine a large batch takes its time.
"""
MAX_GROUP = 2000
"""Decisions in one transaction."""
QUIET = 0.0003
"""Seconds without a new job after which a group is complete."""
LONGEST_LINGER = 0.05
"""Seconds that the first of a group waits at most for the others."""


@dataclass(frozen=True)
class Head:
    """The end of the chain.

    Parameters
    ----------
    seq : int
        The number of the last row.
    hash : str
        Its hash, in hexadecimal.
    at : float
        Its time, in seconds.

    Examples
    --------
    >>> Head(0, "00" * 32, 0.0).seq
    0
    """

    seq: int
    hash: str
    at: float


class Basis(NamedTuple):
    """On what terms rest: as long as it is the ledger's, nothing has changed.

    Parameters
    ----------
    switched : int
        The newest row that changed what decides: a publication or a switch.
    keys : int
        The newest row that changed who may ask: an API key that was created or revoked.

    Examples
    --------
    >>> Basis(7, 3) == Basis(7, 4)
    False
    """

    switched: int
    keys: int


@dataclass(frozen=True)
class SignedHead:
    """A head that the ledger's key has signed.

    Publish it, and nothing before it can be changed without being noticed.

    Parameters
    ----------
    ledger : str
        The id of the ledger.
    head : Head
        The end of its chain.
    public_key : str
        The public key of the ledger, in hexadecimal.
    signature : str
        The signature, in hexadecimal.

    Examples
    --------
    >>> from evenhand_service.ledger import Keyring
    >>> keyring = Keyring(bytes(32))
    >>> head = Head(7, "6f" * 32, 0.0)
    >>> signed = SignedHead.of("a ledger", head, keyring.public_key, keyring.sign)
    >>> SignedHead.from_json(signed.to_json()).verify(keyring.public_key)
    """

    ledger: str
    head: Head
    public_key: str
    signature: str

    def to_json(self) -> Json:
        """Write it as plain JSON.

        Returns
        -------
        dict
            What `from_json` reads.
        """
        return {**self._signed, "public_key": self.public_key, "signature": self.signature}

    @property
    def _signed(self) -> Json:
        head = self.head
        return {"ledger": self.ledger, "seq": head.seq, "hash": head.hash, "at": head.at}

    def verify(self, public_key: str | None = None) -> None:
        """Check the signature.

        Parameters
        ----------
        public_key : str, optional
            The key that you know. Without it, the key that the file brings along is believed.

        Raises
        ------
        Damaged
            If the key did not sign it.
        """
        if public_key not in (None, self.public_key):
            raise Damaged(f"the head was signed by {self.public_key}, not by {public_key}.")
        verify_signature(self.public_key, self._signed, self.signature)

    @classmethod
    def of(
        cls, ledger: str, head: Head, public_key: str, sign: Callable[[Json], str]
    ) -> "SignedHead":
        """Sign a head.

        Parameters
        ----------
        ledger : str
            The id of the ledger.
        head : Head
            The end of its chain.
        public_key : str
            The public key of the ledger.
        sign : callable
            The signature of a document, in hexadecimal: `Keyring.sign`.

        Returns
        -------
        SignedHead
            The head with its signature.
        """
        blank = cls(ledger, head, public_key, "")
        return cls(ledger, head, public_key, sign(blank._signed))

    @classmethod
    def from_json(cls, value: Json) -> "SignedHead":
        """Read what `to_json` wrote.

        Parameters
        ----------
        value : dict
            The document.

        Returns
        -------
        SignedHead
            The head; its signature has not been checked.

        Raises
        ------
        Damaged
            If it is no signed head.
        """
        try:
            head = Head(int(value["seq"]), str(value["hash"]), float(value["at"]))
            return cls(value["ledger"], head, value["public_key"], value["signature"])
        except (KeyError, TypeError, ValueError):
            raise Damaged(
                "this is no signed head.", hint="ledger.signed_head().to_json() makes one."
            ) from None


# Rows


def is_usable(body: Json) -> bool:
    """Whether a decision may be learned from, from its body: known before the draw, and nothing
    that happens later counts.
    """
    return bool(body["first"]) and body["mode"] == "live"


_DERIVED: dict[tuple[str, str], Callable[[Json], Any]] = {
    ("decision", "usable"): is_usable,
    ("policy", "epoch"): lambda body: body["epoch"] if body["lineage"] else None,
}
LOOKUPS: dict[str, tuple[str, ...]] = {
    kind: tuple(c.name for c in table.columns if c.name not in ("seq", "at", "body", "hash"))
    for kind, table in KINDS.items()
}
"""The columns of each kind by which its rows are found."""
_RULES = {
    kind: [_DERIVED.get((kind, name), itemgetter(name)) for name in names]
    for kind, names in LOOKUPS.items()
}


def lookup_values(kind: str, body: Json) -> Values:
    """The values of those columns, which follow from the body."""
    return tuple([rule(body) for rule in _RULES[kind]])


def link(previous: bytes, seq: int, kind: str, at: float, body: str) -> bytes:
    """SHA-256(hash of the row before | canonical JSON of the row), from the canonical text of the
    row's body.
    """
    row = f'{{"at":{number_literal(at)},"body":{body},"kind":"{kind}","seq":{seq}}}'
    return hashlib.sha256(previous + row.encode()).digest()


_HEAD = select(HEAD.c.seq, HEAD.c.hash, HEAD.c.at)
_MARKS = (HEAD.c.switched, HEAD.c["keys"], HEAD.c.basis_seal)
_SEALED = select(HEAD.c.seq, HEAD.c.hash, HEAD.c.seal, *_MARKS)
_NEWEST = select(
    select(func.max(POLICIES.c.seq)).where(POLICIES.c.epoch.is_not(None)).scalar_subquery(),
    select(func.max(EVENTS.c.seq)).where(EVENTS.c.action.in_(SWITCHES)).scalar_subquery(),
    select(func.max(EVENTS.c.seq)).where(EVENTS.c.action.in_(KEY_EVENTS)).scalar_subquery(),
)
_FOUND = (HEAD.c.seq, HEAD.c.hash, HEAD.c.at, HEAD.c.seal, *_MARKS)
_CLOCK: dict[str, ColumnElement[Any]] = {
    "sqlite": null(),
    "postgresql": literal_column("extract(epoch FROM clock_timestamp())::float8"),
}
"""The database's own clock, where it has one."""
_LOCKED_HEAD = {
    # the clock in the same question
    dialect: select(*_FOUND, clock).with_for_update()
    for dialect, clock in _CLOCK.items()
}
_MOVE_HEAD = update(HEAD).ordered_values(
    *(
        (HEAD.c[name], bindparam(f"new_{name}"))
        for name in ("seq", "hash", "at", "seal", "switched", "keys", "basis_seal")
    )
)


class Transaction:
    """Rows to be appended, and the head that they lead to; nothing is written before `flush`.

    The guard looks at the head first: what was changed without the keyring is never extended.
    What every group of decisions needs is run by the driver's own cursor, from the text to which
    SQLAlchemy compiles a statement once: SQLAlchemy's own execution takes ten times as long.
    """

    def __init__(self, connection: Connection, guard: HeadGuard) -> None:
        self.connection = connection
        self._guard = guard
        cursor: Any = connection.connection.cursor()
        dialect = connection.dialect
        cursor.execute(driver_text(_LOCKED_HEAD[dialect.name], dialect))
        seq, digest, at, seal, *marks, database = cursor.fetchone()
        self._cursor = cursor
        self.seq = int(seq)
        self.hash = bytes(digest)
        last = guard.newest
        now = guard.admit(LockedHead(self.seq, self.hash, float(at), bytes(seal), database))
        if connection.connection.driver_connection is not guard.connection:
            # a new connection may be to another server: what was seen here must be in its chain
            guard.connection = connection.connection.driver_connection
            row, digest_seen = last
            if 0 < row < self.seq and row_hashes(connection, row - 1, row).get(row) != digest_seen:
                raise gone_back(self.seq, row)
        found = (self.seq, self.hash, *marks)
        self.basis, self.control, self._sealed = sealed_basis(connection, guard, found)
        guard.admit_basis(self.basis)
        self.now = max(float(now), float(at))
        self._start = f'{{"at":{number_literal(self.now)},"body":'  # of every row that is hashed
        self.root: int | None = None
        self.pending: defaultdict[Table, list[Values]] = defaultdict(list)
        """Rows that `flush` writes, by table; those outside the chain are put here as they are."""
        self._flushed = self.seq

    def append(self, kind: str, body: Json) -> int:
        """The next row of the chain; its number."""
        text = canonical(body)
        seq = self.seq + 1
        # before the row, because it may be written at once; the database's triggers move the marks
        # in the same way
        what = body["action"] if kind == "event" else None
        if what in SWITCHES or (kind == "policy" and body["lineage"]):
            self.basis = self.basis._replace(switched=seq)
        elif what in KEY_EVENTS:
            self.basis = self.basis._replace(keys=seq)
        lookups = lookup_values(kind, body)
        if kind in _CONTROL:
            self.control = _extended(self.control, seq, kind, self.now, lookups, text)
        return self.append_text(kind, text, lookups)

    def append_event(self, action: str, by: str, note: str = "", **about: object) -> int:
        """Who did what, and what it is about; its number."""
        nothing: Json = {"product": None, "policy": None, "info": {}}
        return self.append("event", {"action": action, "by": by, "note": note, **nothing, **about})

    def append_text(self, kind: str, text: str, lookups: Values) -> int:
        """The same from the canonical text of the body, and the columns that follow from it."""
        self.seq = seq = self.seq + 1
        # `link`, written out: it is done for every decision
        row = f'{self._start}{text},"kind":"{kind}","seq":{seq}}}'
        self.hash = digest = hashlib.sha256(self.hash + row.encode()).digest()
        self.pending[KINDS[kind]].append((seq, self.now, *lookups, text, digest))
        if seq - self._flushed >= MOST_SILENT:
            self.flush()
        return seq

    def rows(
        self, statement: Executable, values: Mapping[str, Any] | None = None
    ) -> Sequence[Row[Any]]:
        """Read, seeing what this transaction has appended."""
        self.flush()
        return self.connection.execute(statement, dict(values or {})).all()

    def rows_among(
        self, statement: Select[Any], column: Column[Any], values: Sequence[Any], *others: Any
    ) -> list[Values]:
        """Read where a column is one of `values`, as plain tuples; `others` are the values of the
        statement's own parameters.
        """
        self.flush()
        dialect = self.connection.dialect
        rows: list[Values] = []
        for start in range(0, len(values), MOST_VALUES):
            piece = values[start : start + MOST_VALUES]
            if dialect.name == "sqlite" or len(piece) < MANY:
                # few sizes, so few texts: the last value is repeated up to a power of two
                size = 1 << (len(piece) - 1).bit_length()
                text = among_list_text(statement, column, dialect, size)
                self._cursor.execute(text, (*others, *piece, *[piece[-1]] * (size - len(piece))))
            else:
                text = among_array_text(statement, column, dialect)
                self._cursor.execute(text, (piece, *others))
            rows += self._cursor.fetchall()
        return rows

    def require_sealed_rows(self) -> None:
        """Tampered unless the events and policies in the tables are those that were sealed: to be
        asked before some of them are read and believed.
        """
        self.flush()
        if control_digest(self.connection) != self.control:
            raise tampered("a row that was not sealed stands among those that decide")

    def flush(self) -> None:
        """Write what is pending, and the head.

        SQLite gets many rows in one statement, so that it works without holding up the other
        threads. OR FAIL: a failure undoes the whole transaction anyway, so SQLite need not be able
        to undo the statement (a temporary file). PostgreSQL gets all of them at once: many by COPY,
        few as one array for each column.
        """
        dialect = self.connection.dialect
        for table, rows in self.pending.items():
            if dialect.name == "sqlite":
                for start in range(0, len(rows), MOST_ROWS):
                    piece = rows[start : start + MOST_ROWS]
                    text = insert_text(table, len(piece), "INSERT OR FAIL", "?")
                    self._cursor.execute(text, tuple(chain.from_iterable(piece)))
            elif len(rows) < MANY:
                text = insert_arrays_text(table, dialect)
                self._cursor.execute(text, [list(column) for column in zip(*rows, strict=True)])
            else:
                with self._cursor.copy(copy_text(table)) as copy:
                    copy.set_types(type_names(table, dialect))
                    for row in rows:
                        copy.write_row(row)
        self.pending.clear()
        if self.seq != self._flushed or not self._sealed:
            keyring = self._guard.keyring
            end = (self.seq, self.hash)
            seals = keyring.head_seal(*end, self.root), *self.basis
            sealed = keyring.basis_seal(*end, self.basis, self.control, self.root)
            text = driver_text(_MOVE_HEAD, self.connection.dialect)
            self._cursor.execute(text, (*end, self.now, *seals, sealed))
            self._flushed = self.seq
            self._sealed = True

    def committed(self) -> None:
        """Inform the guard that what was written is durable."""
        if self.root is not None:
            self._guard.keyring.active = self.root
        self._guard.committed(self.seq, self.hash, self.basis, self.control)


@cache
def driver_text(statement: ClauseElement, dialect: Dialect) -> str:
    """The text of a statement for a cursor of the driver, with positional parameters."""
    return str(statement.compile(dialect=dialect))


@cache
def among_list_text(
    statement: Select[Any], column: Column[Any], dialect: Dialect, size: int
) -> str:
    """The text where a column is one of `size` values, which come after all other parameters."""
    listed = statement.where(column.in_(bindparam("among", [None] * size, expanding=True)))
    return str(listed.compile(dialect=dialect, compile_kwargs={"render_postcompile": True}))


@cache
def among_array_text(statement: Select[Any], column: Column[Any], dialect: Dialect) -> str:
    """The same for PostgreSQL, where the values are one array, before all other parameters: a list
    of 2,000 parameters would be taken apart anew by driver and server at every call.

    OFFSET 0 keeps the question for one value apart, so each is looked up by the column's index. For
    `column = ANY(array)` PostgreSQL reads the whole table, as long as it takes it for a small one.
    """
    among = func.unnest(bindparam("among", type_=ARRAY(column.type)))
    given = among.table_valued("value").render_derived(name="given")
    found = statement.where(column == given.c.value).offset(literal_column("0")).lateral()
    each = select(found).select_from(given.join(found, true()))
    # %b: the driver sends it in binary, which is how arrays are quick to write
    return str(each.compile(dialect=dialect)).replace("%s", "%b")


@cache
def insert_text(table: Table, rows: int, verb: str, mark: str) -> str:
    """An INSERT of so many rows.

    Written by hand, because SQLAlchemy's own costs a decision a third more time.
    """
    names = [f'"{column.name}"' for column in table.columns]
    row = f"({','.join([mark] * len(names))})"
    return f"{verb} INTO {table.name} ({','.join(names)}) VALUES {','.join([row] * rows)}"


@cache
def type_names(table: Table, dialect: Dialect) -> list[str]:
    """The types of the columns of a table, as PostgreSQL and its driver know them."""
    return [column.type.compile(dialect=dialect).lower() for column in table.columns]


@cache
def insert_arrays_text(table: Table, dialect: Dialect) -> str:
    """An INSERT of as many rows as its arrays are long, one array for each column."""
    names = ",".join(f'"{column.name}"' for column in table.columns)
    arrays = ",".join(f"%b::{kind}[]" for kind in type_names(table, dialect))
    return f"INSERT INTO {table.name} ({names}) SELECT * FROM unnest({arrays})"


@cache
def copy_text(table: Table) -> str:
    """What takes rows into a table of PostgreSQL in binary."""
    names = ",".join(f'"{column.name}"' for column in table.columns)
    return f"COPY {table.name} ({names}) FROM STDIN (FORMAT BINARY)"


# Group commit


class Draws(Protocol):
    """What draws decisions for the writer."""

    def draw(self, transaction: Transaction, asked: list[Any], /) -> list[Any]:
        """The answers, in the order of those who asked."""

    def forget(self) -> None:
        """After a rollback: what was remembered may not be in the chain."""


@dataclass(eq=False)
class Job:
    """Either decisions to be drawn together with those of others, or work of another kind."""

    asked: list[Any] = field(default_factory=list)
    work: Callable[[Transaction], Any] | None = None
    future: "Future[Any]" = field(default_factory=Future)
    loop: Any = None
    """The event loop that waits, if it is not a thread."""
    tidy: bool = False
    """Whether SQLite's WAL is to be emptied afterwards, because it may still hold what was erased.
    """
    compact: bool = False
    """Whether SQLite's file is to be written anew afterwards, without the room of what was removed.
    """
    result: Any = None
    error: BaseException | None = None
    committing: bool = False
    """Whether the commit of its transaction has been asked for."""

    def settle(self) -> None:
        """Inform whoever waits."""
        if self.future.done():
            return
        with suppress(InvalidStateError):  # the one who waited has gone
            if self.error is not None:
                self.future.set_exception(self.error)
            else:
                self.future.set_result(self.result)


class Writer:
    """Group commit: one thread, one connection; whoever waits while a commit is on its way shares
    the next one.

        take all jobs that wait -> BEGIN -> do them -> COMMIT (fsync) -> only then deliver results

    A commit costs the same for one job as for sixty. Clients that were answered together come back
    together, the first of them a moment before the others: so where several shared the last commit,
    the writer waits until nobody has come for QUIET seconds. Without this, every second commit is
    that of a single job (PostgreSQL's server then works three times as long for a decision).
    Somebody who comes alone is not kept waiting.

    If something fails before the commit, everything is rolled back and each job is tried alone, so
    that it can only hurt itself. Where the disk is full, all are refused until there is room.
    If the commit itself fails on SQLite for another reason, nobody knows what the disk holds: no
    result is delivered, and the writer stops for good (opening the ledger again
    recovers). PostgreSQL looks after its own disk; there everything is tried once more on a new
    connection, for the server may have ended the old one (a pause, a restart). A transaction whose
    commit was not heard of may have been done: decisions are tried again, because a key that is
    known is answered as it stands; other work is not. If the head was not sealed by the keyring, or
    the chain went back, the writer stops for good too.

    `fail_stop` says that a failed commit ends everything.
    """

    def __init__(self, engine: Engine, guard: HeadGuard, drawer: Draws, *, fail_stop: bool) -> None:
        self._engine = engine
        self._guard = guard
        self._drawer = drawer
        self._fail_stop = fail_stop
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.broken: str | None = None
        """Why nothing can be written any more."""
        self._disk_failed = False
        self.no_room: str | None = None
        """Why nothing can be written now: the disk is full. The next transaction tries again."""
        self.failed_commits = 0
        """Commits of which nobody knows whether they were done."""
        self.tampered = False
        """Whether it was stopped because the database was changed without the keyring."""
        self.basis = Basis(-1, -1)
        self._shared = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._run, name="evenhand-ledger-writer", daemon=True
        )
        self._thread.start()

    def stop(self, why: Tampered) -> None:
        """Write nothing from now on, and say so in the log."""
        with self._lock:
            if self.broken is None:
                LOG.critical("the ledger writes nothing any more: %s", why)
                self.broken = why.sentence.removesuffix(".")
                self.tampered = True

    def submit(self, job: Job) -> Job:
        """Queue a job; its future is settled after the commit."""
        with self._lock:
            if self.broken is not None:
                raise _unavailable(self.broken)
            self._jobs.put(job)
        return job

    def close(self) -> None:
        """Do what is queued, then stop."""
        with self._lock:
            self.broken = self.broken or "the ledger has been closed"
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        closing = False
        while not closing:
            jobs, closing = self._take()
            self._attempt(jobs)
            lost = [job for job in jobs if _lost(job.error)]
            if lost and not self._fail_stop:
                # a server that was silent would be silent again
                causes = [type(getattr(job.error, "orig", job.error)).__name__ for job in lost]
                if "ConnectionTimeout" not in causes:
                    self._attempt_again([j for j in lost if j.work is None or not j.committing])
            # a job that failed, and is no refusal, may have hurt the others: each is tried alone
            elif len(jobs) > 1 and any(map(_failed, jobs)) and self.broken is None:
                for job in jobs:
                    self._attempt_again([job])
            for job in filter(_failed, jobs):
                what = "at the commit" if job.committing else "while writing"
                job.error = _unavailable(f"{type(job.error).__name__} {what}", job.error)
            deliver(jobs)

    def _attempt_again(self, jobs: list[Job]) -> None:
        for job in jobs:
            job.error = None
            job.committing = False
        self._attempt(jobs)

    def _take(self) -> tuple[list[Job], bool]:
        """All who wait, up to MAX_GROUP decisions; wait for the first. True: close."""
        jobs: list[Job] = []
        size = 0
        job = self._jobs.get()
        if self._shared > 1:
            self._linger()
        while job is not None:
            jobs.append(job)
            self._shared = len(jobs)
            size += max(1, len(job.asked))
            if size >= MAX_GROUP:
                return jobs, False
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return jobs, False
        return jobs, True

    def _linger(self) -> None:
        """Wait until nobody has come for QUIET seconds, LONGEST_LINGER at most."""
        end = monotonic() + LONGEST_LINGER
        waiting = -1
        while waiting < self._jobs.qsize() and monotonic() < end:
            waiting = self._jobs.qsize()
            sleep(QUIET)

    def _attempt(self, jobs: list[Job]) -> None:
        """One transaction; afterwards every job has a result that is durable, or an error."""
        if not jobs:
            return
        try:
            if self._disk_failed:
                raise _unavailable(str(self.broken))
            with self._engine.connect() as connection:
                self._transact(connection, jobs)
                if connection.dialect.name == "sqlite" and any(job.compact for job in jobs):
                    _compact(connection)
                if connection.dialect.name == "sqlite" and any(job.tidy for job in jobs):
                    connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except Exception as error:  # noqa: BLE001 - whoever waits must be informed, whatever it was
            self._drawer.forget()
            if isinstance(error, Tampered):
                self.stop(error)
            if _is_full(error) and self.no_room is None:
                self.no_room = "the disk is full; it goes on by itself as soon as there is room"
                LOG.critical("nothing can be written: %s", self.no_room)
            for job in jobs:
                job.result = None
                job.error = error

    def _transact(self, connection: Connection, jobs: list[Job]) -> None:
        with connection.begin() as handle:
            transaction = Transaction(connection, self._guard)
            perform(transaction, jobs, self._drawer)
            transaction.flush()
            for job in jobs:
                job.committing = True
            try:
                handle.commit()
            except Exception as error:
                if _is_full(error):
                    raise  # SQLite has undone it, and the next transaction looks at the head
                if self._fail_stop or not _lost(error):
                    raise self._stopped(error) from error
                raise
            self.basis = transaction.basis
        transaction.committed()
        if self.no_room is not None:
            LOG.warning("there is room on the disk again; the ledger goes on")
            self.no_room = None

    def _stopped(self, error: BaseException) -> LedgerUnavailable:
        """A commit failed: what it held may or may not be there, so it is neither answered nor
        tried again.
        """
        reason = f"a commit failed ({type(error).__name__}), so nobody knows what the disk holds"
        self.failed_commits += 1
        if self._fail_stop:
            with self._lock:
                self._disk_failed = True
                self.broken = reason
            LOG.critical("the ledger writes nothing any more: %s", reason)
        else:
            LOG.error("%s", reason)
        return _unavailable(reason)


def _compact(connection: Connection) -> None:
    """Write SQLite's file anew. It takes as much room again; where there is none the file stays as
    large as it was, and what was removed is overwritten all the same (`secure_delete`).
    """
    try:
        connection.connection.cursor().execute("VACUUM")
    except sqlite3.Error as error:
        LOG.warning("the file of the ledger was not made smaller: %s", error)


def perform(transaction: Transaction, jobs: list[Job], drawer: Draws) -> None:
    """Do the jobs in their order; decisions that follow one another are drawn together."""
    run: list[Job] = []
    for job in [*jobs, None]:
        if job is not None and job.work is None:
            run.append(job)
            continue
        if run:
            answers = iter(drawer.draw(transaction, [asked for one in run for asked in one.asked]))
            for one in run:
                one.result = list(islice(answers, len(one.asked)))
            run = []
        if job is not None and job.work is not None:
            before = transaction.seq
            try:
                job.result = job.work(transaction)
            except Tampered:
                raise  # nobody is answered
            except Refusal as refusal:
                # requirement: work refuses before it appends, so that a refusal leaves nothing
                # behind
                if transaction.seq != before:
                    raise RuntimeError("a refusal came after a row had been appended") from refusal
                job.error = refusal


def deliver(jobs: list[Job]) -> None:
    """Settle the futures: those of an event loop by one call into it, those of threads here."""
    by_loop: dict[Any, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, waiting in by_loop.items():
        if loop is None:
            _settle(waiting)
        else:
            # a loop that has been closed has taken all who waited with it
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, waiting)


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        job.settle()


def _failed(job: Job) -> bool:
    return job.error is not None and not isinstance(job.error, Refusal)


def _lost(error: BaseException | None) -> bool:
    """Whether PostgreSQL or the way to it is at fault (a connection that was ended, a lock or a
    statement that took too long), and no job.
    """
    cause = getattr(error, "orig", error)  # SQLAlchemy wraps what the driver raises
    names = {kind.__name__ for kind in type(cause).__mro__ if kind.__module__.startswith("psycopg")}
    # psycopg counts the end of a silent transaction among the database's own errors
    return not names.isdisjoint(
        {"OperationalError", "InterfaceError", "IdleInTransactionSessionTimeout"}
    )


def _is_full(error: BaseException | None) -> bool:
    """Whether SQLite could not write for want of room. Such a write fails before anything is
    acknowledged, and is undone; an fsync that failed leaves nobody knowing what the disk holds.
    """
    cause = getattr(error, "orig", error)
    return getattr(cause, "sqlite_errorname", "") in ("SQLITE_FULL", "SQLITE_IOERR_WRITE")


def _unavailable(reason: str, cause: BaseException | None = None) -> LedgerUnavailable:
    kind = DatabaseAway if _lost(cause) else LedgerUnavailable
    refusal = kind(
        f"nothing can be written: {reason}.",
        hint="look at the disk or the database; a full disk needs room, and SQLite on a disk that "
        "failed a new start of the service.",
    )
    refusal.__cause__ = cause
    return refusal


# Reading


def read_head_seal(connection: Connection) -> bytes:
    """What the keyring said of the end of the chain."""
    return bytes(connection.execute(select(HEAD.c.seal)).scalar_one())


def read_sealed_end(connection: Connection) -> tuple[int, bytes, bytes]:
    """(number, hash, seal) of the end of the chain."""
    seq, digest, seal, *_ = connection.execute(_SEALED).one()
    return int(seq), bytes(digest), bytes(seal)


_CONTROL = {
    "event": select(*EVENTS.c[("seq", "at", *LOOKUPS["event"], "body")]),
    "policy": select(*POLICIES.c[("seq", "at", *LOOKUPS["policy"])]),
}
"""What decides, who may ask, and when windows begin is recorded in rows of these kinds. The content
of a policy is bound to its id by the ledger's signature.
"""


def _extended(control: bytes, seq: int, kind: str, at: float, lookups: Values, body: str) -> bytes:
    """SHA-256(control before | event, or names of a policy)."""
    content = [*lookups, body] if kind == "event" else lookups
    return link(control, int(seq), kind, float(at), canonical(list(content)))


def control_digest(connection: Connection, upto: int | None = None) -> bytes:
    """The digest of all events and policies in the tables (`upto`: of those up to a row). They are
    few, so that they can be read whenever one of them is believed.
    """
    control = bytes(32)
    rows = []
    for kind, statement in _CONTROL.items():
        some = statement if upto is None else statement.where(KINDS[kind].c.seq <= upto)
        rows += [(int(row[0]), kind, tuple(row)) for row in connection.execute(some)]
    names = len(LOOKUPS["event"])
    for seq, kind, row in sorted(rows, key=itemgetter(0)):
        lookups, body = (row[2:], "") if kind == "policy" else (row[2 : 2 + names], row[-1])
        control = _extended(control, seq, kind, row[1], lookups, body)
    return control


def read_basis(connection: Connection, guard: HeadGuard, *, rows: bool = False) -> Basis:
    """The newest rows that changed what decides, and who may ask; Tampered if the keyring did not
    seal them. `rows`: the rows are about to be read, so each of them is compared.
    """
    return sealed_basis(connection, guard, _read_sealed(connection, guard), rows=rows)[0]


def _read_sealed(connection: Connection, guard: HeadGuard) -> Values:
    """The end of the chain, and the marks of the head, whose seal is the keyring's."""
    seq, digest, seal, *marks = connection.execute(_SEALED).one()
    guard.require_seal(int(seq), bytes(digest), bytes(seal))
    return (int(seq), bytes(digest), *marks)


def sealed_basis(
    connection: Connection, guard: HeadGuard, found: Values, *, rows: bool = False
) -> tuple[Basis, bytes, bool]:
    """(basis, digest of the events and policies, whether they are sealed) from a head: (seq, hash,
    switched, keys, seal).

    A row decides only if a holder of the keyring has put it into the chain. So the digest of all
    such rows is sealed with the head. Where that seal does not fit, because somebody has changed
    the marks or added a row, the chain is followed row by row from the last state that was checked
    to the end, which is sealed; a row beside the chain is Tampered.
    """
    seq, digest, switched, keys, seal = found
    claimed = Basis(int(switched), int(keys))
    known = guard.checked

    def fits(control: bytes) -> bool:
        sealed = guard.keyring.basis_seal(seq, digest, claimed, control)
        return seal is not None and bytes(seal) == sealed

    if not rows and fits(known.control):
        return claimed, known.control, True
    basis = claimed
    control = control_digest(connection)
    sealed = fits(control)
    if not sealed:
        control = followed(connection, known if known.seq <= seq else Checked(), seq, digest)
        basis = newest_basis(connection, claimed)
    guard.remember(Checked(seq, digest, control))
    return basis, control, sealed


def follow(connection: Connection, guard: HeadGuard, after: int) -> None:
    """Tampered unless the rows after one row lead to the sealed head, with no report before it on a
    decision after it.
    """
    seq, digest, *_ = _read_sealed(connection, guard)
    known = row_hashes(connection, after - 1, after).get(after, bytes(32))
    start = Checked(after, known, control_digest(connection, after))
    followed(connection, start, seq, digest)
    for table in (OUTCOMES, QUARANTINE):
        early = select(table.c.seq).where(table.c.decision > after, table.c.seq <= after).limit(1)
        for row in connection.execute(early):
            raise tampered(f"row {row.seq} reports on a decision that came after it")


def followed(connection: Connection, known: Checked, seq: int, digest: bytes) -> bytes:
    """The digest of the events and policies of the chain that leads from a known state to a sealed
    head; Tampered if it does not, or if there is any other row. What stays of archived rows must be
    what the chain says of their archive.
    """
    control = control_digest(connection, known.seq)
    if control != known.control:
        raise tampered(f"the events and policies up to row {known.seq} are others than they were")
    archives = read_archives(connection)
    archived = ArchiveCheck(archives)
    last = known.seq
    at_end = known.hash
    # an archive is checked as a whole, also where its first rows are known
    begun = [one["first"] - 1 for one in archives if one["first"] <= known.seq < one["last"]]
    for number, kind, row in chain_rows(connection, after=min(begun, default=known.seq)):
        for what in archived.row(number, kind, row):
            raise tampered(f"row {number}: {what}")
        if number <= known.seq:
            continue
        left_out = kind == "archived"
        at_end = bytes(row[-1]) if left_out else link(at_end, number, kind, row[1], row[-2])
        if number != last + 1 or number > seq or at_end != bytes(row[-1]):
            raise tampered(f"row {number} of the {kind} table does not stand in the sealed chain")
        last = number
        if left_out:
            continue
        lookups = lookup_values(kind, json.loads(row[-2]))
        if lookups != row[2:-2]:
            raise tampered(f"the columns of row {number} are not what its body says")
        if kind in _CONTROL:
            control = _extended(control, number, kind, row[1], lookups, row[-2])
    if (last, at_end) != (seq, digest):
        raise tampered(f"the chain ends at row {last}, and row {seq} was sealed")
    return control


def newest_basis(connection: Connection, claimed: Basis) -> Basis:
    """What the rows say, where what the head has `claimed` is not sealed; they have been followed.
    No switch and no revocation can be hidden by moving the marks back.
    """
    published, thrown, changed = (int(newest or 0) for newest in connection.execute(_NEWEST).one())
    asked = Basis(max(published, thrown), changed)
    if asked != claimed and claimed != Basis(0, 0):
        LOG.error("the head does not name the newest switch and key; the rows are asked instead")
    return asked


def read_clock(connection: Connection) -> float | None:
    """What the database's clock says, if it has one."""
    found = connection.execute(select(_CLOCK[connection.dialect.name])).scalar_one()
    return None if found is None else float(found)


def read_head(connection: Connection) -> Head:
    """The end of the chain."""
    row = connection.execute(_HEAD).one()
    return Head(int(row.seq), bytes(row.hash).hex(), float(row.at))


def row_hashes(connection: Connection, after: int, upto: int) -> dict[int, bytes]:
    """The hashes of the rows after one row and up to another, by their numbers."""
    tables = (table.c for table in (*KINDS.values(), ARCHIVED))
    between = (select(c.seq, c.hash).where(c.seq > after, c.seq <= upto) for c in tables)
    rows = connection.execute(union_all(*between))
    return {int(seq): bytes(digest) for seq, digest in rows}


Stored = tuple[Any, ...]
"""A row as the database gives it, unconverted: (seq, at, *lookups, body, hash)."""


def chain_rows(connection: Connection, after: int = 0) -> Iterator[tuple[int, str, Stored]]:
    """(seq, kind, row) of all tables in the order of the chain; `after`: of the rows after it. What
    stays of an archived row is of the kind "archived": (seq, key, product, past, hash).
    """

    def rows_of(kind: str, table: Table) -> Iterator[tuple[int, str, Stored]]:
        names = ", ".join(f'"{column.name}"' for column in table.columns)
        return (
            (row[0], kind, row)
            for row in _pages(connection, f"SELECT {names} FROM {table.name}", after)
        )

    tables = {**KINDS, "archived": ARCHIVED}
    return heapq.merge(*(rows_of(kind, table) for kind, table in tables.items()), key=itemgetter(0))


def read_archives(connection: Connection) -> list[Json]:
    """What the chain says of its archives, oldest first: the info of each event, and its row as
    `seq`.
    """
    rows = connection.execute(
        select(EVENTS.c.seq, EVENTS.c.body)
        .where(EVENTS.c.action == ARCHIVED_EVENT)
        .order_by(EVENTS.c.seq)
    )
    return [{**json.loads(row.body)["info"], "seq": int(row.seq)} for row in rows]


def index_line(row: Stored) -> bytes:
    """What stays of an archived row, for the digest `index` of its archive."""
    seq, key, product, past, digest = row
    found = None if key is None else bytes(key).hex()
    return canonical([seq, found, product, past, bytes(digest).hex()]).encode() + b"\n"


class ArchiveCheck:
    """Whether what stays of archived rows is what the chain says of their archives: all hashes, and

        index = SHA-256(what stays of one row | of the next | ...)

    so that no key is taken out, which would get a second coin, and nothing is taught to the
    learner.
    """

    def __init__(self, archives: Sequence[Json]) -> None:
        self._ends = {int(one["last"]): one for one in archives}
        self._hashes = ArchivedRows(archives)
        self._index = hashlib.sha256()
        self._left_out = 0
        self.last = self._hashes.last

    def row(self, seq: int, kind: str, row: Stored) -> Iterator[str]:
        """What is wrong with a row, in the order of the chain."""
        left_out = kind == "archived"
        if seq > self.last and not left_out:
            return
        yield from self._hashes.row(seq, bytes(row[-1]), left_out=left_out)
        if left_out:
            self._index.update(index_line(row))
            self._left_out += 1
        if seq in self._ends:
            found = self._index.hexdigest()
            # in a copy into which the rows were put back nothing is left out
            if self._left_out and found != self._ends[seq]["index"]:
                yield "what stays of archived rows up to here is not what the chain says of them"
            self._index = hashlib.sha256()
            self._left_out = 0


def personal_rows(connection: Connection, *, keys: bool = True) -> Iterator[Stored]:
    """(seq, sealed, wrapped key of the person, by what the person is found) in the order of the
    chain; the last two are None without `keys`.
    """
    if not keys:
        return _pages(connection, "SELECT seq, sealed, NULL, NULL FROM personal")
    joined = "personal LEFT JOIN people ON people.id = personal.person"
    return _pages(connection, f"SELECT seq, sealed, key, lookup FROM {joined}")


def _pages(connection: Connection, question: str, after: int = 0) -> Iterator[Stored]:
    """Rows in pages, so that ten tables can be read through one connection.

    The driver is asked, because SQLAlchemy would convert what it reads: a truth value 7 that
    somebody put into the database must be seen.
    """
    after = after or -(2**62)
    cursor = connection.connection.cursor()
    while True:
        cursor.execute(f"{question} WHERE seq > {after:d} ORDER BY seq LIMIT {PAGE:d}")
        page = cursor.fetchall()
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1][0]
