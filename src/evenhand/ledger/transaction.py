"""One transaction on the chain: read the head, append rows, write them and the new head together.

    seq_n = seq_{n-1} + 1,   at_n = max(clock, at_{n-1}),   hash_n = SHA-256(hash_{n-1} | row n)

On PostgreSQL the head's row is locked until the commit, so replicas append one after another.
"""

import hashlib
import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Row, Select, Table, bindparam, literal_column, select, update

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.ledger.records import Head
from evenhand.ledger.schema import HEAD, KINDS

_ONLY = HEAD.c.id == literal_column("1")
_HEAD = select(HEAD.c.seq, HEAD.c.hash, HEAD.c.at).where(_ONLY)
_LOCKED_HEAD = _HEAD.with_for_update()
_MOVE_HEAD = (
    update(HEAD).where(_ONLY).values({name: bindparam(f"new_{name}") for name in ("seq", "hash", "at", "seal")})
)
HeadSeal = Callable[[int, bytes], bytes]
Values = tuple[Any, ...]
_FIXED = ("seq", "at", "body", "hash")
MOST_ROWS = 64
"""Rows in one INSERT of SQLite."""
_MOST_VALUES = 4096
"""Values in one list."""


def _usable(body: Json) -> bool:
    return bool(body["first"]) and body["mode"] == "live"


_DERIVED: dict[tuple[str, str], Callable[[Json], Any]] = {
    ("decision", "usable"): _usable,
    ("policy", "epoch"): lambda body: body["epoch"] if body["lineage"] else None,
}
LOOKUPS: dict[str, tuple[str, ...]] = {
    kind: tuple(column.name for column in table.columns if column.name not in _FIXED) for kind, table in KINDS.items()
}
"""The columns of each kind by which its rows are found."""
_RULES = {kind: [_DERIVED.get((kind, name), itemgetter(name)) for name in names] for kind, names in LOOKUPS.items()}


def link(previous: bytes, seq: int, kind: str, at: float, body: str) -> bytes:
    """SHA-256(hash of the row before | canonical JSON of the row), from the canonical text of the row's body."""
    row = f'{{"at":{at!r},"body":{body},"kind":"{kind}","seq":{seq}}}'
    return hashlib.sha256(previous + row.encode()).digest()


def lookup_values(kind: str, body: Json) -> Values:
    """The values of those columns, which follow from the body."""
    return tuple([rule(body) for rule in _RULES[kind]])


class Transaction:
    """Rows to be appended, and the head that they lead to; nothing is written before `flush`.

    What every decision needs goes straight to the driver, with statements that are compiled once.
    """

    def __init__(self, connection: Connection, now: float, head_seal: HeadSeal) -> None:
        self.connection = connection
        cursor: Any = connection.connection.cursor()
        cursor.execute(_compiled(_LOCKED_HEAD, connection.dialect))
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
        seq = self.seq + 1
        self.hash = link(self.hash, seq, kind, self.now, text)
        self.seq = seq
        self.insert(KINDS[kind], (seq, self.now, *lookups, text, self.hash))
        return seq

    def insert(self, table: Table, row: Values) -> None:
        """A row beside or in the chain, in the order of the table's columns; written with the next `flush`."""
        self._pending.setdefault(table, []).append(row)

    def rows(self, statement: Any, values: Mapping[str, Any] | None = None) -> list[Row[Any]]:
        """Read, seeing what this transaction has appended."""
        self.flush()
        return list(self.connection.execute(statement, dict(values or {})).all())

    def among(self, statement: Select[Any], values: Sequence[Any]) -> list[Any]:
        """Rows, with the names of their columns, where one column is one of `values`, which the statement calls `among`."""
        self.flush()
        found: list[Any] = []
        for start in range(0, len(values), _MOST_VALUES):
            some = values[start : start + _MOST_VALUES]
            size = 1 << (len(some) - 1).bit_length()
            padded = (*some, *([some[-1]] * (size - len(some))))
            self._cursor.execute(_listing(statement, self.connection.dialect, size), padded)
            found += map(_named(statement)._make, self._cursor.fetchall())
        return found

    def flush(self) -> None:
        """Write what is pending, and the head."""
        for table, rows in self._pending.items():
            self._write(table, rows)
        self._pending.clear()
        if self.seq != self._flushed:
            seal = self._head_seal(self.seq, self.hash)
            values = {"new_seq": self.seq, "new_hash": self.hash, "new_at": self.now, "new_seal": seal}
            self._cursor.execute(_compiled(_MOVE_HEAD, self.connection.dialect), values)
            self._flushed = self.seq

    def _write(self, table: Table, rows: list[Values]) -> None:
        """SQLite gets many rows in one statement, so that it works without holding up the other threads; psycopg sends them in one go.

        OR FAIL: a failure undoes the whole transaction anyway, so SQLite need not be able to undo the statement (a temporary file).
        """
        if self.connection.dialect.name != "sqlite":
            self._cursor.executemany(f"INSERT {_rows(table, 1, '%s')}", rows)
            return
        for start in range(0, len(rows), MOST_ROWS):
            some = rows[start : start + MOST_ROWS]
            self._cursor.execute(f"INSERT OR FAIL {_rows(table, len(some), '?')}", tuple(chain.from_iterable(some)))


@cache
def _compiled(statement: Any, dialect: Dialect) -> str:
    """With named parameters."""
    return str(statement.compile(dialect=dialect))


@cache
def _listing(statement: Select[Any], dialect: Dialect, size: int) -> str:
    """With `size` positional parameters in place of the list."""
    mark = "?" if dialect.name == "sqlite" else "%s"
    return re.sub(r"__\[POSTCOMPILE_among[^]]*]", ",".join([mark] * size), _compiled(statement, dialect))


@cache
def _named(statement: Select[Any]) -> Any:
    return namedtuple("Found", statement.selected_columns.keys())


@cache
def _rows(table: Table, size: int, mark: str) -> str:
    names = [f'"{column.name}"' for column in table.columns]
    one = f"({','.join([mark] * len(names))})"
    return f"INTO {table.name} ({','.join(names)}) VALUES {','.join([one] * size)}"


def read_head_seal(connection: Connection) -> bytes:
    """What the keyring said of the end of the chain."""
    return bytes(connection.execute(select(HEAD.c.seal).where(_ONLY)).scalar_one())


def read_head(connection: Connection) -> Head:
    """The end of the chain."""
    row = connection.execute(_HEAD).one()
    return Head(int(row.seq), bytes(row.hash).hex(), float(row.at))
