"""What is done with a whole ledger: verify it, recompute it, export it, back it up, restore it.

Verification looks at every row of the chain, its lookup columns, the sealed fields beside it, the
head, and an anchor. An edit changes a hash; a deletion or a reordering leaves a hole or breaks a
link; a truncation is seen by the head, and if the head was rewritten too, by any signed head that
was published before.

A backup is a consistent copy of a SQLite database and a signed head. (PostgreSQL: pg_dump and
pg_restore; then call `mark_restored`.) It does not hold the keyring: whoever has both can predict
draws. A restored ledger may be missing decisions that were answered after the backup, so it refuses
to draw until an operator confirms the gap. Erasures after the backup must be repeated; the keys of
those people are still in it.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.ledger.chain import (
    Clock,
    Head,
    SignedHead,
    Stored,
    chain_rows,
    link,
    lookup_values,
    personal_rows,
    read_head,
    read_head_seal,
)
from evenhand.ledger.decision_draw import text_agrees
from evenhand.ledger.keyring import Keyring, fingerprint, open_fields
from evenhand.ledger.ledger import Ledger
from evenhand.ledger.publishing import PolicyRecord
from evenhand.ledger.refusals import Damaged, Invalid
from evenhand.ledger.standalone_verifier import FORMAT, GENESIS, Lineages, Problem

FIELDS = ("who", "features", "group", "reply")
DATABASE, ANCHOR = "ledger.sqlite", "head.json"
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True)
class Verification:
    """What `verify` found.

    Parameters
    ----------
    rows : int
        How many rows were checked.
    head : Head
        The end of the chain.
    problems : tuple of Problem
        The laws that are broken, with their rows.

    Examples
    --------
    >>> Verification(1, Head(1, "6f" * 32, 0.0), (Problem(1, "its hash is wrong"),)).ok
    False
    """

    rows: int
    head: Head
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether every law holds on every row."""
        return not self.problems


def verify(ledger: Ledger, anchor: SignedHead | None = None, deep: bool = False) -> Verification:
    """Check every row of a ledger.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    anchor : SignedHead, optional
        A head that was published before: the chain must still hold it.
    deep : bool
        Whether to open what is sealed, and compare it with what was committed to.

    Returns
    -------
    Verification
        What is wrong; see `Verification.ok`.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.ledger import Keyring, Ledger
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(f"{folder}/l.sqlite", keyring=Keyring.generate(), clock=float) as ledger,
    ... ):
    ...     verify(ledger, anchor=ledger.signed_head(), deep=True).ok
    True
    """
    with ledger.store.reader.connect() as connection, connection.begin():
        checks = _Checks(ledger.keyring, personal_rows(connection, keys=deep), deep)
        head, seal = read_head(connection), read_head_seal(connection)
        # whatever was put into a row, the walk along the chain goes on
        for seq, kind, row in chain_rows(connection):
            try:
                checks.row(seq, kind, row)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError):
                checks.refuse(seq, "its content is not one that this ledger writes")
                checks.seq = seq
            if anchor is not None and seq == anchor.head.seq:
                checks.anchored = checks.previous.hex() == anchor.head.hash
        checks.end(head, seal)
    if anchor is not None:
        try:
            anchor.verify(ledger.keyring.public_key)
        except Damaged as damage:
            checks.refuse(anchor.head.seq, str(damage))
        if anchor.ledger != ledger.id:
            checks.refuse(anchor.head.seq, "the published head belongs to another ledger")
        if not checks.anchored:
            what = "the published head is not in the chain: it was truncated or rewritten"
            checks.refuse(anchor.head.seq, what)
    return Verification(checks.rows, head, tuple(checks.problems))


class _Checks:
    """The laws of the chain, row by row: where the walk stands, and what it has seen."""

    def __init__(self, keyring: Keyring, personal: Iterator[Stored], deep: bool) -> None:
        self.keyring, self.personal, self.deep = keyring, personal, deep
        self.next_personal = next(personal, None)
        self.previous, self.seq, self.at, self.rows = GENESIS, 0, float("-inf"), 0
        self.lineages = Lineages()
        self.emptied: set[int] = set()
        self.erased: set[int] = set()
        self.problems: list[Problem] = []
        self.anchored = False

    def refuse(self, seq: int, what: str) -> None:
        self.problems.append(Problem(seq, what))

    def row(self, seq: int, kind: str, row: Stored) -> None:
        """A row of the chain: its place, its hash, its columns, and the laws of its kind."""
        self.rows += 1
        at, text, stored = row[1], row[-2], bytes(row[-1])
        if seq != self.seq + 1:
            self.refuse(seq, f"row {self.seq + 1} was expected here")
        if at < self.at:
            self.refuse(seq, "its time is before that of the row before")
        if link(self.previous, seq, kind, at, text) != stored:
            self.refuse(seq, "its hash is not that of its content")
        self.previous, self.seq, self.at = stored, seq, at
        # most rows are decisions, and most of them are as they should be
        personal = None if kind != "decision" or self.deep else self.next_personal
        if (
            personal is not None
            and personal[0] == seq
            and personal[1] is not None
            and text_agrees(text, row[2:-2], fingerprint(personal[1]))
        ):
            self.next_personal = next(self.personal, None)
            return
        body, end = _decode(text)
        if end != len(text):
            raise ValueError("there is more than one document.")
        if row[2:-2] != lookup_values(kind, body):
            self.refuse(seq, "its columns are not what its body says")
        if "sealed" in body:
            self.sealed(seq, body)
        elif kind == "erasure":
            self.erased.update(body["rows"])
        elif kind == "policy":
            try:
                PolicyRecord.from_body(seq, body).verify(self.keyring.public_key)
            except Damaged:
                self.refuse(seq, "the signature of the policy does not verify")
            for what in self.lineages.policy(body):
                self.refuse(seq, what)
        elif kind == "checkpoint":
            for what in self.lineages.checkpoint(seq, body):
                self.refuse(seq, what)

    def sealed(self, seq: int, body: Json) -> None:
        """The sealed fields beside a row."""
        while self.next_personal is not None and self.next_personal[0] < seq:
            self.refuse(self.next_personal[0], "a sealed field belongs to no row")
            self.next_personal = next(self.personal, None)
        if self.next_personal is None or self.next_personal[0] != seq:
            self.refuse(seq, "its sealed fields are missing")
            return
        (_, sealed, wrapped), self.next_personal = self.next_personal, next(self.personal, None)
        if sealed is None:
            self.emptied.add(seq)
        elif fingerprint(sealed) != body["sealed"]:
            self.refuse(seq, "its sealed fields have been changed")
        elif self.deep:
            try:
                opened = open_fields(self.keyring.unwrap(wrapped or b""), sealed)
            except Damaged as damage:
                self.refuse(seq, str(damage))
                return
            for name in opened.mismatches(body["commit"]):
                self.refuse(seq, f"its sealed {name} is not what was committed to")

    def end(self, head: Head, seal: bytes) -> None:
        """The head is the last row and was written with the keyring, and nothing is left over."""
        if (head.seq, head.hash) != (self.seq, self.previous.hex()):
            self.refuse(self.seq, f"the chain ends here, but its head is row {head.seq}")
        for seq, what in self.lineages.end():
            self.refuse(seq, what)
        for seq in sorted(self.emptied ^ self.erased):
            what = "its sealed fields are empty without an erasure, or the other way round"
            self.refuse(seq, what)
        if self.next_personal is not None:
            self.refuse(self.next_personal[0], "a sealed field belongs to no row")
        if seal != self.keyring.head_seal(head.seq, bytes.fromhex(head.hash)):
            what = "the head was not written by the holder of the keyring"
            self.refuse(head.seq, f"{what}: the end was cut off or added")


def recompute(ledger: Ledger, tenant: str, product: str) -> int:
    """Compute the acceptance of every decision again, bit for bit.

    It is pi(x), pi being the policy that the row names.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    tenant, product : str
        Whose decisions.

    Returns
    -------
    int
        How many were checked; those of erased people cannot be.

    Raises
    ------
    Damaged
        If a policy does not give the acceptance that a row says.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.ledger import Keyring, Ledger
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(f"{folder}/l.sqlite", keyring=Keyring.generate(), clock=float) as ledger,
    ... ):
    ...     recompute(ledger, "bank", "loan")
    0
    """
    records = ledger.policies(tenant, product)
    policies = {record.id: policy_from_json(record.document) for record in records}
    checked = 0
    for row in ledger.history(tenant, product, usable_only=False):
        if row.features is None:
            continue
        policy = policies[row.policy]
        group = np.array([row.group], dtype=object) if policy.group_use == "decide" else None
        if float(policy.acceptance([row.features], group)[0]) != row.acceptance:
            raise Damaged(
                f"decision {row.seq}: policy {row.policy} does not give "
                f"the acceptance {row.acceptance}."
            )
        checked += 1
    return checked


def export(
    ledger: Ledger, path: str | os.PathLike[str], *, opened: tuple[str, ...] = ("who",)
) -> int:
    """Write the whole chain into a file, for the stand-alone verifier.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    path : path-like
        The file.
    opened : tuple of str
        Which personal fields are opened: "who" (needed to recompute draws), "features", "group",
        "reply".

    Returns
    -------
    int
        How many rows were written.

    Raises
    ------
    Invalid
        If there is no such field.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.ledger import Keyring, Ledger
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(f"{folder}/l.sqlite", keyring=Keyring.generate(), clock=float) as ledger,
    ... ):
    ...     export(ledger, f"{folder}/export.jsonl")
    1
    """
    unknown = set(opened) - set(FIELDS)
    if unknown:
        raise Invalid(
            f"{', '.join(sorted(unknown))} cannot be opened; the fields are {', '.join(FIELDS)}."
        )
    rows = 0
    with (
        Path(path).open("w", encoding="utf-8") as file,
        ledger.store.reader.connect() as connection,
        connection.begin(),
    ):
        file.write(canonical({"format": FORMAT}) + "\n")
        personal = personal_rows(connection)
        for seq, kind, row in chain_rows(connection):
            at, body, digest, proven = row[1], row[-2], bytes(row[-1]).hex(), ""
            if kind == "decision" or (kind == "outcome" and "sealed" in json.loads(body)):
                _, sealed, wrapped = next(personal)
                proofs = {}
                if sealed is not None:
                    fields = open_fields(ledger.keyring.unwrap(wrapped), sealed)
                    names = [name for name in opened if name in fields.fields]
                    proofs = {name: fields.proof(name) for name in names}
                proven = f'"open":{canonical(proofs)},'
            line = (
                f'"at":{at!r},"body":{body},"hash":"{digest}","kind":"{kind}",{proven}"seq":{seq}'
            )
            file.write(f"{{{line}}}\n")
            rows += 1
    return rows


def backup(ledger: Ledger, directory: str | os.PathLike[str]) -> Path:
    """Copy the database while it is in use, with the signed head that it must contain.

    Parameters
    ----------
    ledger : Ledger
        A ledger in SQLite.
    directory : path-like
        The directory, which is made.

    Returns
    -------
    Path
        The directory.

    Raises
    ------
    Invalid
        If the ledger is in PostgreSQL.
    FileExistsError
        If the directory exists.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.ledger import Keyring, Ledger
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(f"{folder}/l.sqlite", keyring=Keyring.generate(), clock=float) as ledger,
    ... ):
    ...     sorted(path.name for path in backup(ledger, f"{folder}/backup").iterdir())
    ['head.json', 'ledger.sqlite']
    """
    if ledger.store.path is None:
        raise Invalid(
            "this ledger lives in PostgreSQL.",
            hint="use pg_dump, and mark_restored() after pg_restore.",
        )
    target = Path(directory)
    target.mkdir(parents=True)
    anchor = ledger.signed_head()
    # SQLite's own online copy: one state, although the writer goes on. It needs no WAL beside it.
    source = f"{ledger.store.path.absolute().as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(source, uri=True)) as reading,
        closing(sqlite3.connect(target / DATABASE)) as writing,
    ):
        reading.backup(writing)
        writing.execute("PRAGMA journal_mode=DELETE").fetchall()
    (target / ANCHOR).write_text(canonical(anchor.to_json()))
    for path in (target / DATABASE, target / ANCHOR, target):
        _sync(path)
    return target


def restore(
    directory: str | os.PathLike[str],
    where: str | os.PathLike[str],
    *,
    keyring: Keyring,
    clock: Clock,
    by: str,
) -> None:
    """Put a backup in the place of a ledger that is lost, and verify it.

    It draws nothing until `Ledger.confirm_gap`.

    Parameters
    ----------
    directory : path-like
        What `backup` made.
    where : path-like
        The place of the ledger. Nothing is replaced.
    keyring : Keyring
        The keyring of the ledger.
    clock : callable
        Gives the time, in seconds.
    by : str
        Who restores it.

    Raises
    ------
    Invalid
        If there is a file already.
    Damaged
        If the backup does not verify.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.ledger import Keyring, Ledger
    >>> keyring = Keyring.generate()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Ledger.open(f"{folder}/l.sqlite", keyring=keyring, clock=float) as ledger:
    ...         copy = backup(ledger, f"{folder}/backup")
    ...     restore(copy, f"{folder}/again.sqlite", keyring=keyring, clock=float, by="Ada")
    """
    source, target = Path(directory), Path(where)
    if target.exists():
        raise Invalid(
            f"{target} exists; a restore replaces nothing.",
            hint="move the damaged ledger away first.",
        )
    anchor = SignedHead.from_json(json.loads((source / ANCHOR).read_text()))
    shutil.copyfile(source / DATABASE, target)
    _sync(target)
    with Ledger.open(target, keyring=keyring, clock=clock) as ledger:
        mark_restored(ledger, by)
        verification = verify(ledger, anchor)
    if not verification.ok:
        target.unlink()
        first = verification.problems[0]
        raise Damaged(
            f"the backup does not verify: row {first.seq}: {first.what}.",
            hint="use another backup.",
        )


def mark_restored(ledger: Ledger, by: str) -> None:
    """Draw nothing from now on until `Ledger.confirm_gap`; call it after PostgreSQL's pg_restore.

    Parameters
    ----------
    ledger : Ledger
        A ledger that was restored from a backup.
    by : str
        Who restored it.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.ledger import Keyring, Ledger
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(f"{folder}/l.sqlite", keyring=Keyring.generate(), clock=float) as ledger,
    ... ):
    ...     mark_restored(ledger, by="Ada")
    ...     ledger.events()[-1].action
    'restored'
    """
    ledger.mark_restored(by)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
