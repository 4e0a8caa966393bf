"""One transaction on the chain: read the head, append rows, write them and the new head together.

    seq_n = seq_{n-1} + 1,   at_n = max(clock, at_{n-1}),   hash_n = SHA-256(hash_{n-1} | row n)

On PostgreSQL the head's row is locked until the commit, so replicas append one after another.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, Dialect, Row, Table, select, update

from evenhand.contracts import Json
from evenhand.ledger.records import Head
from evenhand.ledger.schema import HEAD, KINDS
from evenhand.ledger.verifier import canonical, link

_HEAD = select(HEAD.c.seq, HEAD.c.hash, HEAD.c.at).where(HEAD.c.id == 1)
HeadSeal = Callable[[int, bytes], bytes]
_FIXED = ("seq", "at", "body", "hash")


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
_PLAIN = {kind: tuple(name for name in names if (kind, name) not in _DERIVED) for kind, names in LOOKUPS.items()}
_RULES = {kind: tuple((name, rule) for (k, name), rule in _DERIVED.items() if k == kind) for kind in KINDS}


def lookups(kind: str, body: Json) -> dict[str, Any]:
    """The values of those columns, which follow from the body."""
    found = {name: body[name] for name in _PLAIN[kind]}
    for name, rule in _RULES[kind]:
        found[name] = rule(body)
    return found


@cache
def _insert(table: Table, dialect: Dialect) -> str:
    """INSERT with named parameters, compiled once: the driver takes the rows as they are."""
    return str(table.insert().compile(dialect=dialect))


class Transaction:
    """Rows to be appended, and the head that they lead to; nothing is written before `flush`."""

    def __init__(self, connection: Connection, now: float, head_seal: HeadSeal) -> None:
        row = connection.execute(_HEAD.with_for_update()).one()
        self.connection = connection
        self.seq, self.hash = int(row.seq), bytes(row.hash)
        self.now = max(float(now), float(row.at))
        self._pending: dict[Table, list[dict[str, Any]]] = {}
        self._flushed, self._head_seal = self.seq, head_seal

    def append(self, kind: str, body: Json) -> int:
        """The next row of the chain; its number."""
        seq, text = self.seq + 1, canonical(body)
        self.hash = link(self.hash, seq, kind, self.now, text)
        self.seq = seq
        self.insert(KINDS[kind], {"seq": seq, "at": self.now, "body": text, "hash": self.hash, **lookups(kind, body)})
        return seq

    def insert(self, table: Table, row: dict[str, Any]) -> None:
        """A row beside or in the chain, written with the next `flush`."""
        self._pending.setdefault(table, []).append(row)

    def rows(self, statement: Any, values: Mapping[str, Any] | None = None) -> list[Row[Any]]:
        """Read, seeing what this transaction has appended."""
        self.flush()
        return list(self.connection.execute(statement, dict(values or {})).all())

    def flush(self) -> None:
        """Write what is pending, and the head."""
        for table, rows in self._pending.items():
            self.connection.exec_driver_sql(_insert(table, self.connection.dialect), rows)
        self._pending.clear()
        if self.seq != self._flushed:
            seal = self._head_seal(self.seq, self.hash)
            values = {"seq": self.seq, "hash": self.hash, "at": self.now, "seal": seal}
            self.connection.execute(update(HEAD).where(HEAD.c.id == 1).values(**values))
            self._flushed = self.seq


def read_head_seal(connection: Connection) -> bytes:
    """What the keyring said of the end of the chain."""
    return bytes(connection.execute(select(HEAD.c.seal).where(HEAD.c.id == 1)).scalar_one())


def read_head(connection: Connection) -> Head:
    """The end of the chain."""
    row = connection.execute(_HEAD).one()
    return Head(int(row.seq), bytes(row.hash).hex(), float(row.at))
