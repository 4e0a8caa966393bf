"""The tables. Every row of the chain is (seq, at, body, hash) in the table of its kind, with the columns by which it is looked up.

The columns repeat what the canonical body says; `verify` compares them. Chain tables refuse UPDATE and DELETE by trigger. Beside the
chain lie `people` (keys that can be destroyed), `personal` (sealed fields), `head` (the end of the chain) and `leases`.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    select,
    text,
)

from evenhand.ledger.refusals import Damaged

METADATA = MetaData()
_Seq = BigInteger().with_variant(Integer, "sqlite")
"""INTEGER PRIMARY KEY is SQLite's own row number; PostgreSQL's 32 bits would end at two thousand million."""


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
CERTIFICATES = _chained("certificates", _name("tenant"), _name("product"), Column("epoch", Integer, nullable=False))
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
EVENTS = _chained("events", _name("action"), _name("tenant", nullable=True), _name("product", nullable=True))

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
"""`seal` is the keyring's: whoever can write the database but not read the keyring cannot make a head that verifies."""
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
_POSTGRES_FUNCTION = """CREATE OR REPLACE FUNCTION evenhand_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the chain is append-only'; END $$"""
_POSTGRES_GUARD = """CREATE TRIGGER {table}_keeps_{what} BEFORE {what} ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION evenhand_append_only()"""


def _first_version(connection: Connection) -> None:
    """All tables, their guards, and the empty chain."""
    METADATA.create_all(connection)
    if connection.dialect.name != "sqlite":
        connection.execute(text(_POSTGRES_FUNCTION))
    for table in KINDS.values():
        _guard(connection, table)
    connection.execute(HEAD.insert().values(id=1, seq=0, hash=bytes(32), at=0.0, seal=bytes(32)))


def _guard(connection: Connection, table: Table) -> None:
    """From now on the table refuses every change."""
    sqlite = connection.dialect.name == "sqlite"
    guard, verbs = (
        (_SQLITE_GUARD, ("UPDATE", "DELETE")) if sqlite else (_POSTGRES_GUARD, ("UPDATE", "DELETE", "TRUNCATE"))
    )
    for what in verbs:
        connection.execute(text(guard.format(table=table.name, what=what)))


def _without_slots(connection: Connection) -> None:
    """Whether a person has been seen in a window is read from the person's own rows: one random page less for every decision."""
    connection.execute(text("DROP INDEX IF EXISTS decisions_by_slot"))


def _with_checkpoints(connection: Connection) -> None:
    """Closed cohorts are kept as sums, in rows of the chain. A new database has the table from its first version on."""
    if not inspect(connection).has_table(CHECKPOINTS.name):
        CHECKPOINTS.create(connection)
        _guard(connection, CHECKPOINTS)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first_version, _without_slots, _with_checkpoints)
"""Migration n brings a database from version n to n + 1; a migration that has been released is never edited."""


def migrate(connection: Connection) -> bool:
    """Bring the database to the newest version, inside the caller's transaction; True if it was empty before."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('evenhand migrations'))"))
    version = schema_version(connection)
    if version > len(MIGRATIONS):
        raise Damaged(
            f"the database has schema version {version}; this evenhand knows {len(MIGRATIONS)}.",
            hint="use the evenhand that wrote it, or a newer one.",
        )
    for number in range(version, len(MIGRATIONS)):
        MIGRATIONS[number](connection)
        connection.execute(VERSIONS.insert().values(version=number + 1))
    return version == 0


def schema_version(connection: Connection) -> int:
    """0 for an empty database."""
    if not inspect(connection).has_table(VERSIONS.name):
        return 0
    found = connection.execute(select(VERSIONS.c.version).order_by(VERSIONS.c.version.desc())).scalar()
    return int(found or 0)
