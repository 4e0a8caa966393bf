"""Archives: rows about people whose windows have ended leave the database for a file, and the chain
goes on.

    archive.jsonl   every row up to the last one, those of earlier archives as hashes; sealed fields
                    as they are, under each person's own key, which stays in the database
    head.json       the last of these rows, signed by the ledger's key
    verifier.py     checks both, alone or together with an export of the ledger

The file is written, flushed to the disk and verified before anything is removed; one transaction
then removes the rows and records the archive. Whoever is killed before its commit has lost nothing.
In the database stay, of every row, its hash; of a decision, its key; of a usable one, what the
learner needs (docs/decisions/0025-archives.md).
"""

import base64
import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, delete, func, insert, select, text

from evenhand.canonical import canonical, number_literal
from evenhand.contracts import Json
from evenhand_service.ledger import standalone_verifier
from evenhand_service.ledger.audit import (
    Beside,
    LeftOut,
    copy_sqlite,
    for_owner,
    require_sound,
    sync,
    verify,
    write_for_owner,
)
from evenhand_service.ledger.chain import (
    LOOKUPS,
    Head,
    Stored,
    Transaction,
    chain_rows,
    index_line,
    lookup_values,
    personal_rows,
    read_archives,
)
from evenhand_service.ledger.database import (
    ARCHIVED,
    ARCHIVED_EVENT,
    ARCHIVED_KINDS,
    DECISIONS,
    KINDS,
    METADATA,
    deleting,
)
from evenhand_service.ledger.hard_counts import audits_not_good
from evenhand_service.ledger.history import Row, past_of
from evenhand_service.ledger.keyring import seal_past
from evenhand_service.ledger.ledger import Ledger
from evenhand_service.ledger.outcome_status import sums_of
from evenhand_service.ledger.refusals import Damaged, Invalid

FILE = "archive.jsonl"
HEAD = "head.json"
AT_ONCE = 5000
"""Rows that one statement removes or changes."""


@dataclass(frozen=True)
class LearnerRow:
    """What stays of a usable decision for the learner: the row as it was known when it was closed,
    and what is known of it now.
    """

    row: Row
    now: Row


@dataclass
class _Leaving:
    """What stays here of the rows that leave, in the order of the chain."""

    stubs: list[Stored] = field(default_factory=list)
    sealed: list[tuple[int, bytes]] = field(default_factory=list)
    at: float = 0.0
    head: bytes = bytes(32)


def archive(
    ledger: Ledger, upto: int, folder: Path, learned: Mapping[int, LearnerRow], *, by: str
) -> Json:
    """Move the rows about people up to one row into a new folder; what the chain says of it.

    `learned`: what the learners need of usable decisions among them, by row. The caller answers for
    `upto`: no window is open, and no learner has work left before it (`archiving.closed_rows`).

    Invalid if there is nothing to archive, or this role of PostgreSQL may not delete; Damaged if
    the ledger or the file does not verify, and nothing is removed then.
    """
    _require_owner(ledger)
    require_sound(verify(ledger), "no archive is made of it")
    earlier = ledger.archives()
    first = max((one["last"] for one in earlier), default=0) + 1
    if upto < first:
        raise Invalid(f"the rows up to {upto} are in archives already.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)
    try:
        path = folder / FILE
        leaving = _written(ledger, path, upto, earlier, learned)
        if not leaving.stubs:
            raise Invalid(f"rows {first} to {upto} are about nobody; there is nothing to archive.")
        head = ledger.sign_head(Head(upto, leaving.head.hex(), leaving.at))
        write_for_owner(folder / HEAD, canonical(head.to_json()))
        verifier = Path(standalone_verifier.__file__).read_text("utf-8")
        write_for_owner(folder / "verifier.py", verifier)
        for written in (path, folder / HEAD, folder / "verifier.py", folder, folder.parent):
            sync(written)
        record = _verified(path, folder / HEAD, first, upto, leaving)
    except BaseException:
        shutil.rmtree(folder)
        raise
    # from here on the folder stays: nobody knows what became of a commit that was not heard of
    return _remove(ledger, record, leaving, by)


def _require_owner(ledger: Ledger) -> None:
    """Invalid where this role of PostgreSQL can append alone."""
    if ledger.store.path is not None:
        return
    right = text("SELECT has_table_privilege('decisions', 'DELETE')")
    with ledger.store.reader.connect() as connection:
        allowed = connection.execute(right).scalar()
    if not allowed:
        raise Invalid(
            "this role of the database can append and not remove, so it cannot archive.",
            hint="give the URL of the tables' owner in the settings for this command.",
        )


def _written(
    ledger: Ledger,
    path: Path,
    upto: int,
    earlier: Sequence[Json],
    learned: Mapping[int, LearnerRow],
) -> _Leaving:
    """Write the file; what stays here of its rows."""
    leaving = _Leaving()
    known = ("first", "last", "hashes", "head")
    records = [{name: one[name] for name in known} for one in earlier]
    with (
        open(path, "w", encoding="utf-8", opener=for_owner) as file,
        ledger.store.reader.connect() as connection,
        connection.begin(),
    ):
        # what is written and signed is the state that leads to the sealed head, seen at once: who
        # rewrites rows after they were verified is found here (Tampered)
        ledger.require_chain(0, connection)
        file.write(canonical({"archives": records, "format": standalone_verifier.FORMAT}) + "\n")
        left_out = LeftOut(file)
        personal = Beside(personal_rows(connection))
        for seq, kind, row in chain_rows(connection):
            if seq > upto:
                break
            digest = bytes(row[-1])
            leaving.head = digest
            if kind == "archived":
                left_out.add(seq, digest)
                continue
            left_out.write()
            at = row[1]
            body = row[-2]
            leaving.at = at
            sealed = ""
            mine = personal.take(seq)
            if mine is not None and mine[1] is not None:
                sealed = f',"sealed":"{base64.b64encode(mine[1]).decode()}"'
            when = number_literal(at)
            names = f'"at":{when},"body":{body},"hash":"{digest.hex()}","kind":"{kind}"'
            file.write(f'{{{names}{sealed},"seq":{seq}}}\n')
            if kind in ARCHIVED_KINDS:
                _stays(ledger, leaving, (seq, kind, row), mine, learned.get(seq))
        left_out.write()
        file.flush()
        os.fsync(file.fileno())
    return leaving


def _stays(
    ledger: Ledger,
    leaving: _Leaving,
    found: tuple[int, str, Stored],
    beside: Stored | None,
    learned: LearnerRow | None,
) -> None:
    """What stays of one row: `ARCHIVED`, and what is sealed beside it."""
    seq, kind, row = found
    digest = bytes(row[-1])
    decision = dict(zip(LOOKUPS[kind], row[2:-2], strict=True)) if kind == "decision" else {}
    if decision.get("usable") and learned is None:
        raise Damaged(
            f"decision {seq} is usable, and no learner says what it needs of it.",
            hint="archive with the settings of all products.",
        )
    key = bytes.fromhex(decision["key"]) if decision else None
    past = None
    private: Json = {}
    if learned is not None:
        past, private = past_of(learned.row, learned.now)
    leaving.stubs.append((seq, key, decision.get("product"), past, digest))
    if beside is not None and beside[1] is not None:
        _, _, wrapped, lookup = beside
        person = ledger.keyring.unwrap(wrapped or b"", bytes(lookup or b""))
        leaving.sealed.append((seq, seal_past(person, canonical(private), digest, ledger.entropy)))


def _verified(path: Path, head: Path, first: int, last: int, leaving: _Leaving) -> Json:
    """What the chain will say of the file, once it was read again and keeps every requirement."""
    hashes = hashlib.sha256()
    for row in standalone_verifier.read(path):
        if row["seq"] >= first:
            hashes.update(bytes.fromhex(row["hash"]))
    findings = standalone_verifier.check(
        standalone_verifier.read(path), {}, archives=standalone_verifier.archives_on_record(path)
    )
    standalone_verifier.check_head(path, head, None, findings)
    if findings.problems or findings.rows != last:
        what = findings.problems[0].what if findings.problems else "rows are missing"
        raise Damaged(
            f"the archive {path} does not verify ({what}); nothing was removed.",
            hint="look at the disk, and archive into another folder.",
        )
    index = hashlib.sha256()
    for stub in leaving.stubs:
        index.update(index_line(stub))
    return {
        "first": first,
        "last": last,
        "head": leaving.head.hex(),
        "hashes": hashes.hexdigest(),
        "file": standalone_verifier.file_hash(path),
        "index": index.hexdigest(),
        "rows": len(leaving.stubs),
        "until": leaving.at,
    }


def _remove(ledger: Ledger, record: Json, leaving: _Leaving, by: str) -> Json:
    """In one transaction: the rows leave, what stays of them is kept, the archive is recorded."""
    first = record["first"]
    last = record["last"]

    def remove(transaction: Transaction) -> Json:
        transaction.require_sealed_rows()
        connection = transaction.connection
        known = max((one["last"] for one in read_archives(connection)), default=0)
        if known + 1 != first:
            raise Invalid(
                f"rows {first} to {known} were archived meanwhile; nothing was removed.",
                hint="archive again, into another folder.",
            )
        counts = {
            product: {
                **sums_of(connection, product, last, transaction.seq),
                "audits": audits_not_good(connection, product, last),
            }
            for product in connection.execute(
                select(DECISIONS.c.product).where(DECISIONS.c.seq <= last).distinct()
            ).scalars()
        }
        about = {**record, "counts": counts}
        transaction.append_event(ARCHIVED_EVENT, by, info=about)
        for start in range(0, len(leaving.stubs), AT_ONCE):
            transaction.pending[ARCHIVED] += leaving.stubs[start : start + AT_ONCE]
            transaction.flush()
        _seal_anew(connection, leaving.sealed)
        with deleting(connection):
            for kind in ARCHIVED_KINDS:
                table = KINDS[kind]
                for start in range(first, last + 1, AT_ONCE):
                    end = min(start + AT_ONCE - 1, last)
                    connection.execute(delete(table).where(table.c.seq.between(start, end)))
        return about

    return ledger.write_archive(remove)


def _seal_anew(connection: Connection, sealed: Sequence[tuple[int, bytes]]) -> None:
    """Beside archived rows only what the learner needs stays; who was erased stays erased."""
    cursor: Any = connection.connection.cursor()
    sqlite = connection.dialect.name == "sqlite"
    for start in range(0, len(sealed), AT_ONCE):
        part = sealed[start : start + AT_ONCE]
        if sqlite:
            one = "UPDATE personal SET sealed = ? WHERE seq = ? AND sealed IS NOT NULL"
            cursor.executemany(one, [(data, seq) for seq, data in part])
            continue
        # one statement for all of them: others wait for the head meanwhile
        many = (
            "UPDATE personal SET sealed = anew.sealed "
            "FROM unnest(%s::bigint[], %s::bytea[]) AS anew(seq, sealed) "
            "WHERE personal.seq = anew.seq AND personal.sealed IS NOT NULL"
        )
        cursor.execute(many, ([seq for seq, _ in part], [data for _, data in part]))


# Reading archives together with the ledger


@contextmanager
def whole(ledger: Ledger, folders: Sequence[Path]) -> Iterator[Ledger]:
    """A copy of a ledger into which the rows of its archives were put back, for as long as the
    block lasts: everything that can be asked of a ledger can be asked of it.

    Damaged if a folder does not hold what the chain names. Archives that are not given stay left
    out.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-") as directory:
        place = Path(directory) / "whole.sqlite"
        _copy(ledger, place)
        with closing(sqlite3.connect(place)) as connection:
            archives = {one["file"]: one for one in ledger.archives()}
            for folder in folders:
                path, record = _of_chain(folder, archives, connection)
                _put_back(connection, path, record)
            connection.commit()
        copy = Ledger.open(place, keyring=ledger.keyring, clock=ledger.clock)
        with copy:
            yield copy


def _copy(ledger: Ledger, place: Path) -> None:
    """One state of the database, as SQLite, in a file that only its owner can read."""
    if ledger.store.path is not None:
        copy_sqlite(ledger.store.path, place)
        return
    os.close(for_owner(str(place), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    engine = create_engine(f"sqlite:///{place}")
    with (
        ledger.store.reader.connect() as reading,
        reading.begin(),
        engine.begin() as writing,
    ):
        METADATA.create_all(writing)
        for table in METADATA.sorted_tables:
            rows = reading.execution_options(yield_per=AT_ONCE).execute(select(table))
            for part in rows.mappings().partitions():
                writing.execute(insert(table), [dict(row) for row in part])
    engine.dispose()


def _of_chain(
    folder: Path, archives: Mapping[str, Json], connection: sqlite3.Connection
) -> tuple[Path, Json]:
    """The file of a folder, and what the chain says of it; Damaged, with the first row that
    differs, if it is not the one that was written.
    """
    path = folder / FILE
    if not path.exists():
        raise Damaged(
            f"there is no archive in {folder}: {FILE} is missing.",
            hint="give the folder that evenhand audit archive made.",
        )
    digest = standalone_verifier.file_hash(path)
    if digest in archives:
        return path, archives[digest]
    for row in _rows_of(path):
        stored = connection.execute("SELECT hash FROM archived WHERE seq = ?", (row["seq"],))
        known = stored.fetchone()
        previous = connection.execute(
            " UNION ALL ".join(
                f"SELECT hash FROM {table.name} WHERE seq = {int(row['seq']) - 1}"
                for table in (*KINDS.values(), ARCHIVED)
            )
        ).fetchone()
        before = bytes(previous[0]) if previous else bytes(32)
        if known is not None and standalone_verifier.link(before, row) != bytes(known[0]):
            raise Damaged(
                f"row {row['seq']} of the archive {path} is not the one that was archived.",
                hint="look for another copy of the folder.",
            )
    raise Damaged(
        f"{path} is none of this ledger's archives, or was changed: the chain names no file with "
        f"the SHA-256 {digest}.",
        hint="look for another copy of the folder.",
    )


def _rows_of(path: Path) -> Iterator[Json]:
    """The rows of a file of the kinds that leave the database; Damaged if it cannot be read."""
    try:
        for row in standalone_verifier.read(path):
            if row["kind"] in ARCHIVED_KINDS:
                yield row
    except (ValueError, KeyError, TypeError, SystemExit) as error:
        raise Damaged(
            f"the archive {path} cannot be read: {type(error).__name__}.",
            hint="look for another copy of the folder.",
        ) from None


def _put_back(connection: sqlite3.Connection, path: Path, record: Json) -> None:
    """Insert the rows of an archive, and what is sealed of people who were not erased since."""
    for row in _rows_of(path):
        seq = int(row["seq"])
        if seq < record["first"]:
            continue
        table = KINDS[row["kind"]]
        names = ",".join(f'"{column.name}"' for column in table.columns)
        body = canonical(row["body"])
        columns = lookup_values(row["kind"], row["body"])
        values = (seq, float(row["at"]), *columns, body, bytes.fromhex(row["hash"]))
        marks = ",".join("?" * len(values))
        connection.execute(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", values)
        connection.execute("DELETE FROM archived WHERE seq = ?", (seq,))
        if "sealed" in row:
            sealed = base64.b64decode(row["sealed"])
            change = "UPDATE personal SET sealed = ? WHERE seq = ? AND sealed IS NOT NULL"
            connection.execute(change, (sealed, seq))


def rows_left_out(ledger: Ledger) -> int:
    """How many rows are in archives, and not here."""
    with ledger.store.reader.connect() as connection:
        return int(connection.execute(select(func.count()).select_from(ARCHIVED)).scalar_one())


def require_all(ledger: Ledger, start: float) -> None:
    """Invalid if decisions from this time on are in archives, and were not put back."""
    with ledger.store.reader.connect() as connection:
        missing = []
        for one in read_archives(connection):
            between = ARCHIVED.c.seq.between(one["first"], one["last"])
            left_out = connection.execute(select(ARCHIVED.c.seq).where(between).limit(1)).first()
            if left_out is not None and one["until"] >= start:
                missing.append(one)
    if missing:
        rows = f"rows {missing[0]['first']} to {missing[-1]['last']}"
        raise Invalid(
            f"{rows} of this ledger are in archives, and the period holds some of them.",
            hint="give their folders: --archive FOLDER, once for each.",
        )
