"""What somebody could do to the log behind the ledger's back: edit, delete, reorder, truncate,
rewrite, unseal.
"""

import json
import random
import shutil
import sqlite3

from service.tests.ledger.helpers import PRODUCT, decided, opened, published

from evenhand.canonical import canonical
from evenhand_service.ledger import Damaged, GroupReport, Label, Override, verify
from evenhand_service.ledger.chain import link
from evenhand_service.ledger.database import KINDS

CHAIN = [table.name for table in KINDS.values()]


def keep(path):
    """A ledger with rows of every kind but quarantine, without its guards; (path, an anchor taken
    before the last few rows).
    """
    with opened(path) as ledger:
        policy = published(ledger, certificate={"limit": 0.1})
        answers = decided(ledger, policy, range(30))
        for answer in answers[:10]:
            ledger.report(answer.drawn.key, Label(1))
        ledger.report("k11", Override(True, "clerk"))
        ledger.report("k12", GroupReport("a"))
        ledger.operate(PRODUCT, "note", "operator", "hello")
        ledger.erase("p3", "officer")
        decided(ledger, policy, range(30, 35))
        anchor = ledger.signed_head()
        decided(ledger, policy, range(35, 40))
        assert verify(ledger, anchor, deep=True).ok
    with sqlite3.connect(path) as connection:
        for table in CHAIN:
            for verb in ("UPDATE", "DELETE"):
                connection.execute(f"DROP TRIGGER {table}_keeps_{verb}")
    connection.close()
    return path, anchor


def edit(connection, generator):
    """Change one column of one row."""
    table = generator.choice([t for t in CHAIN if _rows(connection, t)])
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    name, row = generator.choice(names), generator.choice(_rows(connection, table))
    value = connection.execute(f'SELECT "{name}" FROM {table} WHERE seq = ?', [row]).fetchone()[0]
    connection.execute(
        f'UPDATE {table} SET "{name}" = ? WHERE seq = ?', [_changed(value, generator), row]
    )


def _changed(value, generator):
    if value is None:
        return 7
    if isinstance(value, int | float):
        return value + 1000
    at = generator.randrange(len(value))
    if isinstance(value, bytes):
        return value[:at] + bytes([value[at] ^ (1 << generator.randrange(8))]) + value[at + 1 :]
    return value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]


def delete(connection, generator):
    """Remove one row."""
    table = generator.choice([t for t in CHAIN if _rows(connection, t)])
    connection.execute(
        f"DELETE FROM {table} WHERE seq = ?", [generator.choice(_rows(connection, table))]
    )


def reorder(connection, generator):
    """Exchange two rows."""
    one, other = generator.sample(_rows(connection, "decisions"), 2)
    for old, new in ((one, -1), (other, one), (-1, other)):
        connection.execute("UPDATE decisions SET seq = ? WHERE seq = ?", [new, old])


def truncate(connection, generator):
    """Cut off the end anywhere, also after the anchor, and rewrite the head so that the rest looks
    whole.
    """
    last = generator.randrange(1, connection.execute("SELECT seq FROM head").fetchone()[0])
    for table in (*CHAIN, "personal"):
        connection.execute(f"DELETE FROM {table} WHERE seq > ?", [last])
    union = " UNION ".join(f"SELECT seq, hash, at FROM {table}" for table in CHAIN)
    seq, digest, at = connection.execute(
        f"SELECT * FROM ({union}) ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    connection.execute("UPDATE head SET seq = ?, hash = ?, at = ?", [seq, digest, at])


def rewrite(connection, generator):
    """Turn one decision round and compute all later hashes anew, the head included: only an anchor
    can tell.
    """
    rows = sorted(
        (seq, kind, at, body)
        for kind, table in KINDS.items()
        for seq, at, body in connection.execute(f"SELECT seq, at, body FROM {table.name}")
    )
    victim, previous = (
        generator.choice([row[0] for row in rows[:40] if row[1] == "decision"]),
        bytes(32),
    )
    for seq, kind, at, body in rows:
        text = body
        if seq == victim:
            changed = json.loads(body) | {"accept": not json.loads(body)["accept"]}
            text = canonical(changed)
            connection.execute(
                "UPDATE decisions SET accept = ? WHERE seq = ?", [changed["accept"], seq]
            )
        previous = link(previous, seq, kind, at, text)
        connection.execute(
            f"UPDATE {KINDS[kind].name} SET body = ?, hash = ? WHERE seq = ?", [text, previous, seq]
        )
    connection.execute("UPDATE head SET hash = ?", [previous])


def unseal(connection, generator):
    """Empty or change a sealed field."""
    rows = [r[0] for r in connection.execute("SELECT seq FROM personal WHERE sealed IS NOT NULL")]
    sealed = generator.choice([None, b"x" * 40])
    connection.execute(
        "UPDATE personal SET sealed = ? WHERE seq = ?", [sealed, generator.choice(rows)]
    )


def _rows(connection, table):
    return [row[0] for row in connection.execute(f"SELECT seq FROM {table}")]


DAMAGES = (edit, delete, reorder, truncate, rewrite, unseal)


def missed(kept, path, damage, seeds):
    """The seeds of damages that verification did not notice."""
    source, anchor = kept
    unseen = []
    for seed in seeds:
        shutil.copyfile(source, path)
        connection = sqlite3.connect(path)
        damage(connection, random.Random(seed))
        connection.commit()
        connection.close()
        unseen += [seed] if looks_whole(path, anchor) else []
    return unseen


def looks_whole(path, anchor):
    try:
        with opened(path) as ledger:
            return verify(ledger, anchor).ok
    except Damaged:  # its first row is gone
        return False
