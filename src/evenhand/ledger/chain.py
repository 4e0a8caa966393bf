"""The chain: one transaction that appends rows and moves the head, and all rows in their order.

    seq_n = seq_{n-1} + 1,   at_n = max(clock, at_{n-1}),   hash_n = SHA-256(hash_{n-1} | row n)

On PostgreSQL the head's row is locked until the commit, so replicas append one after another.
"""

import hashlib
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ClauseElement,
    Connection,
    Dialect,
    Executable,
    Row,
    Select,
    Table,
    bindparam,
    select,
    update,
)

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.ledger.database import HEAD, KINDS
from evenhand.ledger.records import Head

_HEAD = select(HEAD.c.seq, HEAD.c.hash, HEAD.c.at)
_LOCKED_HEAD = _HEAD.with_for_update()
_MOVE_HEAD = update(HEAD).ordered_values(
    *((HEAD.c[name], bindparam(f"new_{name}")) for name in ("seq", "hash", "at", "seal"))
)
HeadSeal = Callable[[int, bytes], bytes]
Values = tuple[Any, ...]
_FIXED = ("seq", "at", "body", "hash")
PAGE = 5000
"""Rows of a table that are read at once."""
MOST_ROWS = 64
"""Rows in one INSERT of SQLite."""
MOST_VALUES = 4096
"""Values in one list."""


def _usable(body: Json) -> bool:
    return bool(body["first"]) and body["mode"] == "live"


_DERIVED: dict[tuple[str, str], Callable[[Json], Any]] = {
    ("decision", "usable"): _usable,
    ("policy", "epoch"): lambda body: body["epoch"] if body["lineage"] else None,
}
LOOKUPS: dict[str, tuple[str, ...]] = {
    kind: tuple(column.name for column in table.columns if column.name not in _FIXED)
    for kind, table in KINDS.items()
}
"""The columns of each kind by which its rows are found."""
_RULES = {
    kind: [_DERIVED.get((kind, name), itemgetter(name)) for name in names]
    for kind, names in LOOKUPS.items()
}


def link(previous: bytes, seq: int, kind: str, at: float, body: str) -> bytes:
    """SHA-256(hash of the row before | canonical JSON of the row), from the canonical text of the
    row's body.
    """
    row = f'{{"at":{at!r},"body":{body},"kind":"{kind}","seq":{seq}}}'
    return hashlib.sha256(previous + row.encode()).digest()


def lookup_values(kind: str, body: Json) -> Values:
    """The values of those columns, which follow from the body."""
    return tuple([rule(body) for rule in _RULES[kind]])


class Transaction:
    """Rows to be appended, and the head that they lead to; nothing is written before `flush`.

    What every group of decisions needs is run by the driver's own cursor, from the text to which
    SQLAlchemy compiles a statement once: SQLAlchemy's own execution takes ten times as long.
    """

    def __init__(self, connection: Connection, now: float, head_seal: HeadSeal) -> None:
        self.connection = connection
        cursor: Any = connection.connection.cursor()
        cursor.execute(driver_text(_LOCKED_HEAD, connection.dialect))
        seq, digest, at = cursor.fetchone()
        self._cursor = cursor
        self.seq, self.hash = int(seq), bytes(digest)
        self.now = max(float(now), float(at))
        self._pending: dict[Table, list[Values]] = {}
        self._flushed, self._head_seal = self.seq, head_seal

    def append(self, kind: str, body: Json) -> int:
        """The next row of the chain; its number."""
        return self.append_text(kind, canonical(body), lookup_values(kind, body))

    def append_text(self, kind: str, text: str, lookups: Values) -> int:
        """The same from the canonical text of the body, and the columns that follow from it."""
        self.seq += 1
        self.hash = link(self.hash, self.seq, kind, self.now, text)
        self.insert(KINDS[kind], (self.seq, self.now, *lookups, text, self.hash))
        return self.seq

    def insert(self, table: Table, row: Values) -> None:
        """A row in the chain or beside it, in the order of the table's columns; written with the
        next `flush`.
        """
        self._pending.setdefault(table, []).append(row)

    def rows(
        self, statement: Executable, values: Mapping[str, Any] | None = None
    ) -> Sequence[Row[Any]]:
        """Read, seeing what this transaction has appended."""
        self.flush()
        return self.connection.execute(statement, dict(values or {})).all()

    def rows_among(
        self, statement: Select[Any], values: Sequence[Any], *others: Any
    ) -> list[Values]:
        """Read where one column is one of `values`, as plain tuples.

        `values` are the list that the statement calls `among`, and its first parameter; `others`
        are the values of the parameters after it.
        """
        self.flush()
        rows: list[Values] = []
        for start in range(0, len(values), MOST_VALUES):
            piece = values[start : start + MOST_VALUES]
            # few sizes, so few texts: the last value is repeated up to a power of two
            size = 1 << (len(piece) - 1).bit_length()
            text = driver_text(statement, self.connection.dialect, size)
            self._cursor.execute(text, (*piece, *[piece[-1]] * (size - len(piece)), *others))
            rows += self._cursor.fetchall()
        return rows

    def flush(self) -> None:
        """Write what is pending, and the head.

        SQLite gets many rows in one statement, so that it works without holding up the other
        threads; psycopg sends a list of rows in one go. OR FAIL: a failure undoes the whole
        transaction anyway, so SQLite need not be able to undo the statement (a temporary file).
        """
        sqlite = self.connection.dialect.name == "sqlite"
        for table, rows in self._pending.items():
            if not sqlite:
                self._cursor.executemany(insert_text(table, 1, "INSERT", "%s"), rows)
                continue
            for start in range(0, len(rows), MOST_ROWS):
                piece = rows[start : start + MOST_ROWS]
                text = insert_text(table, len(piece), "INSERT OR FAIL", "?")
                self._cursor.execute(text, tuple(chain.from_iterable(piece)))
        self._pending.clear()
        if self.seq != self._flushed:
            seal = self._head_seal(self.seq, self.hash)
            text = driver_text(_MOVE_HEAD, self.connection.dialect)
            self._cursor.execute(text, (self.seq, self.hash, self.now, seal))
            self._flushed = self.seq


@cache
def driver_text(statement: ClauseElement, dialect: Dialect, size: int = 0) -> str:
    """The text of a statement for a cursor of the driver, with positional parameters; `size` is
    the length of the list that it calls `among`, if it has one.
    """
    listed = statement.params(among=[None] * size) if size else statement
    return str(listed.compile(dialect=dialect, compile_kwargs={"render_postcompile": size > 0}))


@cache
def insert_text(table: Table, rows: int, verb: str, mark: str) -> str:
    """An INSERT of so many rows.

    Written by hand, because SQLAlchemy's own costs a decision a third more time.
    """
    names = [f'"{column.name}"' for column in table.columns]
    row = f"({','.join([mark] * len(names))})"
    return f"{verb} INTO {table.name} ({','.join(names)}) VALUES {','.join([row] * rows)}"


def read_head_seal(connection: Connection) -> bytes:
    """What the keyring said of the end of the chain."""
    return bytes(connection.execute(select(HEAD.c.seal)).scalar_one())


def read_head(connection: Connection) -> Head:
    """The end of the chain."""
    row = connection.execute(_HEAD).one()
    return Head(int(row.seq), bytes(row.hash).hex(), float(row.at))


Stored = tuple[Any, ...]
"""A row as the database gives it, unconverted: (seq, at, *lookups, body, hash)."""


def chain_rows(connection: Connection) -> Iterator[tuple[int, str, Stored]]:
    """(seq, kind, row) of all tables in the order of the chain."""

    def rows_of(kind: str, table: Table) -> Iterator[tuple[int, str, Stored]]:
        names = ", ".join(f'"{column.name}"' for column in table.columns)
        return (
            (row[0], kind, row) for row in _pages(connection, f"SELECT {names} FROM {table.name}")
        )

    return heapq.merge(*(rows_of(kind, table) for kind, table in KINDS.items()), key=itemgetter(0))


def personal_rows(connection: Connection, *, keys: bool = True) -> Iterator[Stored]:
    """(seq, sealed, wrapped key of the person) in the order of the chain; the last is None
    without `keys`.
    """
    if not keys:
        return _pages(connection, "SELECT seq, sealed, NULL FROM personal")
    joined = "personal LEFT JOIN people ON people.id = personal.person"
    return _pages(connection, f"SELECT seq, sealed, key FROM {joined}")


def _pages(connection: Connection, question: str) -> Iterator[Stored]:
    """Rows in pages, so that ten tables can be read through one connection.

    The driver is asked, because SQLAlchemy would convert what it reads: a truth value 7 that
    somebody put into the database must be seen.
    """
    after, cursor = -(2**62), connection.connection.cursor()
    while True:
        cursor.execute(f"{question} WHERE seq > {after:d} ORDER BY seq LIMIT {PAGE:d}")
        page = cursor.fetchall()
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1][0]
