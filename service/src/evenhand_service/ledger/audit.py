"""What is done with a whole ledger: verify it, recompute it, export it, back it up, restore it.

Verification looks at every row of the chain, its lookup columns, the sealed fields beside it, the
head, and an anchor. An edit changes a hash; a deletion or a reordering leaves a hole or breaks a
link; a truncation is seen by the head, and if the head was rewritten too, by any signed head that
was published before.

A backup is a consistent copy of the database (PostgreSQL: by pg_dump) and a signed head. It does
not hold the keyring: whoever has both can predict draws. A restored ledger may be missing decisions
that were answered after the backup, so it refuses to draw until an operator confirms the gap.
Erasures after the backup must be repeated; the keys of those people are still in it.
"""

import base64
import json
import math
import os
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from evenhand.canonical import canonical, number_literal
from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.hypotheses import policy_from_json
from evenhand.randomness import KeyedHash, keyed_uniform
from evenhand_service.ledger import postgres
from evenhand_service.ledger.chain import (
    ArchiveCheck,
    Head,
    SignedHead,
    Stored,
    chain_rows,
    link,
    lookup_values,
    personal_rows,
    read_archives,
    read_head,
    read_head_seal,
)
from evenhand_service.ledger.decision_draw import person_digest, text_agrees
from evenhand_service.ledger.guard import Clock
from evenhand_service.ledger.keyring import (
    Keyring,
    fingerprint,
    open_fields,
    open_past,
    open_row,
)
from evenhand_service.ledger.ledger import Ledger
from evenhand_service.ledger.publishing import PolicyRecord
from evenhand_service.ledger.refusals import Damaged, Invalid
from evenhand_service.ledger.standalone_verifier import (
    FORMAT,
    GENESIS,
    PREFIX,
    Lineages,
    Models,
    Problem,
    Windows,
    wrong_flags,
)

TOGETHER = 1000
"""People about whom a policy is asked at once, and hashes in a line of an export."""
FIELDS = ("who", "features", "group", "reply")
DATABASE = "ledger.sqlite"
ANCHOR = "head.json"
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
        The requirements that are broken, with their rows.

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
        """Whether every requirement holds on every row."""
        return not self.problems


def verify(
    ledger: Ledger,
    anchor: SignedHead | None = None,
    deep: bool = False,
    witnessed: Sequence[Json] = (),
) -> Verification:
    """Check every row of a ledger.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    anchor : SignedHead, optional
        A head that was published before: the chain must still hold it.
    deep : bool
        Whether to open what is sealed, compare it with what was committed to, and compute every
        draw and every acceptance again.
    witnessed : sequence of dict
        What witnesses keep (`evenhand_service.ledger.witness.read_entries`): the first row that
        differs from it is named.

    Returns
    -------
    Verification
        What is wrong; see `Verification.ok`.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand_service.ledger import Keyring, Ledger
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(f"{folder}/l.sqlite", keyring=Keyring.generate(), clock=float) as ledger,
    ... ):
    ...     verify(ledger, anchor=ledger.signed_head(), deep=True).ok
    True
    """
    with ledger.store.reader.connect() as connection, connection.begin():
        archived = ArchiveCheck(read_archives(connection))
        checks = _Checks(ledger, personal_rows(connection, keys=deep), deep, archived)
        head = read_head(connection)
        seal = read_head_seal(connection)
        seen = _Seen(ledger, witnessed, checks.refuse)
        # whatever was put into a row, the walk along the chain goes on
        for seq, kind, row in chain_rows(connection):
            try:
                checks.row(seq, kind, row)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError):
                checks.refuse(seq, "its content is not one that this ledger writes")
                checks.seq = seq
            seen.row(seq, checks.previous)
            if anchor is not None and seq == anchor.head.seq:
                checks.anchored = checks.previous.hex() == anchor.head.hash
        checks.end(head, seal)
        seen.end(checks.seq)
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


class Beside:
    """What is sealed beside the rows of the chain, taken in step with a walk along it.

    stray: what is done with one that stands beside no row of the walk.
    """

    def __init__(
        self, personal: Iterator[Stored], stray: Callable[[int], None] = lambda _: None
    ) -> None:
        self._personal = personal
        self._stray = stray
        self._next = next(personal, None)

    def take(self, seq: float) -> Stored | None:
        """(row, sealed fields, wrapped key, whose) of one row; None if there is nothing."""
        while self._next is not None and self._next[0] < seq:
            self._stray(self._next[0])
            self._next = next(self._personal, None)
        if self._next is None or self._next[0] != seq:
            return None
        found = self._next
        self._next = next(self._personal, None)
        return found


class _Checks:
    """The requirements of the chain, row by row: where the walk stands, and what it has seen."""

    def __init__(
        self, ledger: Ledger, personal: Iterator[Stored], deep: bool, archived: ArchiveCheck
    ) -> None:
        self.keyring = ledger.keyring
        self.archived = archived
        self.beside = Beside(personal, self.stray)
        self.deep = _Recomputed(ledger, self.refuse) if deep else None
        self.previous = GENESIS
        self.seq = 0
        self.at = float("-inf")
        self.rows = 0
        self.lineages = Lineages()
        self.windows = Windows()
        self.models = Models()
        self.emptied: set[int] = set()
        self.erased: set[int] = set()
        self.problems: list[Problem] = []
        self.anchored = False

    def refuse(self, seq: int, what: str) -> None:
        self.problems.append(Problem(seq, what))

    def stray(self, seq: int) -> None:
        self.refuse(seq, "a sealed field belongs to no row")

    def row(self, seq: int, kind: str, row: Stored) -> None:
        """A row of the chain: place, hash, columns, then the requirements of its kind."""
        self.rows += 1
        stored = bytes(row[-1])
        beside = self.beside.take(seq)
        if seq != self.seq + 1:
            self.refuse(seq, f"row {self.seq + 1} was expected here")
        if seq <= self.archived.last or kind == "archived":
            for what in self.archived.row(seq, kind, row):
                self.refuse(seq, what)
        if kind == "archived":
            self.previous = stored
            self.seq = seq
            self.left_out(seq, stored, beside)
            return
        at = row[1]
        text = row[-2]
        if at < self.at:
            self.refuse(seq, "its time is before that of the row before")
        if link(self.previous, seq, kind, at, text) != stored:
            self.refuse(seq, "its hash is not that of its content")
        self.previous = stored
        self.seq = seq
        self.at = at
        # most rows are decisions, and most of them are as they should be
        if (
            kind == "decision"
            and not self.deep
            and beside is not None
            and beside[1] is not None
            and text_agrees(text, row[2:-2], fingerprint(beside[1]))
        ):
            return
        body, end = _decode(text)
        if end != len(text):
            raise ValueError("there is more than one document.")
        if row[2:-2] != lookup_values(kind, body):
            self.refuse(seq, "its columns are not what its body says")
        if "sealed" in body:
            self.sealed(seq, body, beside)
        elif beside is not None:
            self.stray(seq)
        self.requirements(seq, kind, body)

    def left_out(self, seq: int, digest: bytes, beside: Stored | None) -> None:
        """What is sealed beside a row that is in an archive: it is under its person's own key, and
        bound to the row.
        """
        if beside is None:
            return
        _, sealed, wrapped, lookup = beside
        if sealed is None:
            self.emptied.add(seq)
        elif self.deep is not None:
            try:
                open_past(self.keyring.unwrap(wrapped or b"", bytes(lookup or b"")), sealed, digest)
            except Damaged as damage:
                self.refuse(seq, str(damage))

    def requirements(self, seq: int, kind: str, body: Json) -> None:
        """The requirements of the kinds that have some."""
        broken: Iterable[str] = ()
        if kind == "erasure":
            self.erased.update(body["rows"])
        elif kind == "policy":
            try:
                PolicyRecord.from_body(seq, body).verify(self.keyring.public_key)
            except Damaged:
                self.refuse(seq, "the signature of the policy does not verify")
            broken = (*self.lineages.policy(body), *self.models.document(body["policy"]))
            if self.deep is not None:
                self.deep.policies[body["id"]] = body["policy"]
        elif kind == "checkpoint":
            held = self.models.document(body["checkpoint"])
            broken = (*self.lineages.checkpoint(seq, body), *held)
        elif kind == "model":
            broken = self.models.model(body)
        elif kind == "window":
            broken = self.windows.window(body)
        elif kind == "event":
            broken = self.windows.event(body)
        for what in broken:
            self.refuse(seq, what)

    def sealed(self, seq: int, body: Json, beside: Stored | None) -> None:
        """The sealed fields beside a row."""
        if beside is None:
            self.refuse(seq, "its sealed fields are missing")
            return
        _, sealed, wrapped, lookup = beside
        if sealed is None:
            self.emptied.add(seq)
            if self.deep is not None and "u" in body:
                self.deep.flags(seq, body)
        elif fingerprint(sealed) != body["sealed"]:
            self.refuse(seq, "its sealed fields have been changed")
        elif self.deep is not None:
            try:
                key = self.keyring.unwrap(wrapped or b"", bytes(lookup or b""))
                opened = open_fields(key, sealed)
            except Damaged as damage:
                self.refuse(seq, str(damage))
                return
            for name in opened.mismatches(body["commit"]):
                self.refuse(seq, f"its sealed {name} is not what was committed to")
            if "u" in body:
                person = person_digest(self.keyring, opened.fields["who"]["person"])
                if bytes(lookup or b"") != person:
                    what = "its person is not found by name: people.lookup was changed"
                    self.refuse(seq, f"{what}, so an erasure would delete nothing")
                self.deep.flags(seq, body)
                self.deep.draw(seq, body, opened.fields)

    def end(self, head: Head, seal: bytes) -> None:
        """The head is the last row and was written with the keyring, and nothing is left over."""
        if self.deep is not None:
            self.deep.end()
        if (head.seq, head.hash) != (self.seq, self.previous.hex()):
            self.refuse(self.seq, f"the chain ends here, but its head is row {head.seq}")
        for seq, what in self.lineages.end():
            self.refuse(seq, what)
        for seq in sorted(self.emptied ^ self.erased):
            what = "its sealed fields are empty without an erasure, or the other way round"
            self.refuse(seq, what)
        self.beside.take(math.inf)
        if not self.keyring.sealed_head(head.seq, bytes.fromhex(head.hash), seal):
            what = "the head was not written by the holder of the keyring"
            self.refuse(head.seq, f"{what}: the end was cut off or added")


class _Seen:
    """What witnesses saw, compared with the chain row by row."""

    def __init__(
        self, ledger: Ledger, entries: Sequence[Json], refuse: Callable[[int, str], None]
    ) -> None:
        self.refuse = refuse
        # rows that a restore lost are on record: what a witness saw of them is no surprise
        try:
            restored = [event for event in ledger.events() if event.action == "restored"]
        except (ValueError, KeyError, TypeError):
            restored = []  # an event was damaged: its hash differs, which the chain reports
        self._lost = [(event.at, int(event.info.get("head", 0))) for event in restored]
        self.heads: dict[int, str] = {}
        self.prefixes: dict[int, bytes] = {}
        self.differs = False
        self.good = 0
        key = ledger.keyring.public_key
        for entry in entries:
            try:
                head = SignedHead.from_json(entry)
                head.verify(key)
                if head.ledger != ledger.id:
                    raise Damaged("it is a head of another ledger")
                known = self._known(head.head.at)
                if head.head.seq <= known:
                    self.heads[head.head.seq] = head.head.hash
                hashes = base64.b64decode(entry.get("rows", ""))
                for i in range(len(hashes) // PREFIX):
                    place = slice(i * PREFIX, (i + 1) * PREFIX)
                    if entry["after"] + 1 + i <= known:
                        self.prefixes[entry["after"] + 1 + i] = hashes[place]
            except (Damaged, ValueError, KeyError, TypeError) as error:
                self.refuse(0, f"an entry of a witness is not this ledger's: {error}")

    def _known(self, at: float) -> int:
        """The last row that must still be there of those that a witness saw at a time: each later
        restore on record has kept the rows up to the head that it found.
        """
        return min((head for when, head in self._lost if when >= at), default=2**62)

    def row(self, seq: int, digest: bytes) -> None:
        """Nothing more is said after the first row that differs: all later ones do."""
        if self.differs:
            return
        other = digest[:PREFIX] != self.prefixes.get(seq, digest[:PREFIX])
        bound = self.heads.get(seq, digest.hex()) != digest.hex()
        if other:
            self.refuse(seq, "it is not the row that a witness saw: the ledger was rewritten here")
        elif bound:
            since = f"between rows {self.good + 1} and {seq}"
            self.refuse(seq, f"a witness saw another chain: it was rewritten {since}")
        elif seq in self.heads:
            self.good = seq
        self.differs = other or bound

    def end(self, last: int) -> None:
        """The chain may not end before what a witness saw."""
        newest = max(self.heads, default=0)
        if newest > last:
            what = f"a witness saw row {newest}, and the chain ends here: it was rolled back"
            self.refuse(last, what)


class _Recomputed:
    """Every draw and every acceptance, computed again with the keyring and the policies."""

    def __init__(self, ledger: Ledger, refuse: Callable[[int, str], None]) -> None:
        self.ledger = ledger
        self.refuse = refuse
        self.policies: dict[str, Json] = {}
        self._secrets: dict[str, KeyedHash] = {}
        self._slots: set[str] = set()
        self._waiting: dict[str, list[tuple[int, Json, float]]] = {}

    def flags(self, seq: int, body: Json) -> None:
        """What follows from U and the probability alone."""
        for what in wrong_flags(body, self._slots):
            self.refuse(seq, what)

    def draw(self, seq: int, body: Json, fields: Json) -> None:
        """U from the window's secret; the acceptance is asked for many people at once."""
        window = body["window"]
        if window not in self._secrets:
            secret = self.ledger.keyring.window_secret(self.ledger.id, window)
            self._secrets[window] = KeyedHash(secret)
        person = (fields["who"]["person"], body["product"], window)
        if keyed_uniform(self._secrets[window], *person) != body["u"]:
            self.refuse(seq, "U is not the HMAC of the window's secret and the person")
        waiting = self._waiting.setdefault(body["policy"], [])
        about = {"features": fields["features"]["features"], "group": fields["group"]}
        waiting.append((seq, about, body["acceptance"]))
        if len(waiting) >= TOGETHER:
            self._ask(body["policy"])

    def end(self) -> None:
        """Those who still wait."""
        for policy in list(self._waiting):
            self._ask(policy)

    def _ask(self, name: str) -> None:
        """The policy about all who wait; if it refuses them together, one by one."""
        people = self._waiting.pop(name)
        if name not in self.policies:
            for seq, _, _ in people:
                self.refuse(seq, "its policy had not been published")
            return
        try:
            document = self.policies[name]
            policy = policy_from_json(document, models=self.ledger.models(document))
        except EvenhandError:
            if "parts" in self.policies[name]:  # else it is no policy of ours, and nobody can ask
                for seq, _, _ in people:
                    self.refuse(seq, "its policy cannot be loaded, so it cannot be recomputed")
            return
        by_group = policy.group_use == "decide"
        for part in [people] if len(people) == 1 else [people, *([one] for one in people)]:
            group = np.array([about["group"] for _, about, _ in part], dtype=object)
            try:
                rows = np.array([about["features"] for _, about, _ in part], dtype=np.float64)
                found = policy.acceptance(rows, group if by_group else None).tolist()
            except (EvenhandError, ValueError):
                if len(part) == 1:
                    self.refuse(part[0][0], "its policy refuses the person")
                continue
            for (seq, _, acceptance), chance in zip(part, found, strict=True):
                if chance != acceptance:
                    self.refuse(seq, "the acceptance is not the policy's")
            if len(part) > 1:
                return


def for_owner(path: str, flags: int) -> int:
    """An opener of new files that only their owner can read."""
    return os.open(path, flags, 0o600)


def write_for_owner(path: Path, text: str) -> None:
    """Write a new file that only its owner can read; FileExistsError if there is one."""
    with open(path, "x", encoding="utf-8", newline="", opener=for_owner) as file:
        file.write(text)


def copy_sqlite(source: Path, target: Path) -> None:
    """SQLite's own online copy: one state, although the writer goes on; for its owner alone."""
    os.close(for_owner(str(target), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as reading,
        closing(sqlite3.connect(target)) as writing,
    ):
        reading.backup(writing)
        writing.execute("PRAGMA journal_mode=DELETE").fetchall()  # the copy needs no log beside it


def export(
    ledger: Ledger,
    path: str | os.PathLike[str],
    *,
    opened: tuple[str, ...] = ("who",),
    groups_of: Collection[int] = (),
    upto: int | None = None,
    damaged: bool = False,
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
    groups_of : collection of int
        Decisions whose group is opened besides, as it was known and as it was reported.
    upto : int, optional
        The last row that is written; without it, the last row of now.
    damaged : bool
        Whether to go on where a sealed field is not that of its row; it is left closed then.

    Returns
    -------
    int
        How many rows were written.

    Raises
    ------
    Invalid
        If there is no such field.
    Damaged
        If a sealed field is not the one of its row.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand_service.ledger import Keyring, Ledger
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
        open(path, "w", encoding="utf-8", opener=for_owner) as file,
        ledger.store.reader.connect() as connection,
        connection.begin(),
    ):
        file.write(canonical({"format": FORMAT}) + "\n")
        personal = Beside(personal_rows(connection))
        left_out = LeftOut(file)
        for seq, kind, row in chain_rows(connection):
            if upto is not None and seq > upto:
                break
            rows += 1
            if kind == "archived":
                left_out.add(seq, bytes(row[-1]))
                continue
            left_out.write()
            at = row[1]
            body = row[-2]
            digest = bytes(row[-1]).hex()
            proven = ""
            beside = personal.take(seq)
            if beside is not None:
                about = seq if kind == "decision" else json.loads(body).get("decision")
                names = {*opened, "group"} if about in groups_of else set(opened)
                try:
                    proofs = _proofs(ledger.keyring, body, beside, sorted(names))
                except Damaged:
                    if not damaged:
                        raise
                    proofs = {}
                proven = f'"open":{canonical(proofs)},'
            when = number_literal(at)
            line = (
                f'"at":{when},"body":{body},"hash":"{digest}","kind":"{kind}",{proven}"seq":{seq}'
            )
            file.write(f"{{{line}}}\n")
        left_out.write()
    return rows


class LeftOut:
    """Rows that are in an archive, in an export: the hashes of those that follow one another stand
    in one line.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._first = 0
        self._hashes: list[str] = []

    def add(self, seq: int, digest: bytes) -> None:
        """One more row."""
        if len(self._hashes) == TOGETHER:
            self.write()
        if not self._hashes:
            self._first = seq
        self._hashes.append(digest.hex())

    def write(self) -> None:
        """Write those that have not been written."""
        if self._hashes:
            line = {"hashes": "".join(self._hashes), "kind": "archived", "seq": self._first}
            self._file.write(canonical(line) + "\n")
            self._hashes = []


def _proofs(keyring: Keyring, body: str, beside: Stored, names: Sequence[str]) -> Json:
    """What is opened of a row, each field with its salt; nothing once the person was erased."""
    _, sealed, wrapped, lookup = beside
    if sealed is None:
        return {}
    fields = open_row(keyring, body, sealed, wrapped or b"", bytes(lookup or b""))
    return {name: fields.proof(name) for name in names if name in fields.fields}


def backup(ledger: Ledger, directory: str | os.PathLike[str]) -> Path:
    """Copy the database while it is in use, with the signed head that it must contain.

    The ledger is verified first. One that does not verify is copied all the same, for whoever looks
    into it, and nothing is signed.

    Parameters
    ----------
    ledger : Ledger
        A ledger; one in PostgreSQL is copied by pg_dump.
    directory : path-like
        The directory, which is made.

    Returns
    -------
    Path
        The directory.

    Raises
    ------
    Invalid
        If pg_dump is not installed.
    Damaged
        If the ledger does not verify; the copy is there, without a signed head.
    FileExistsError
        If the directory exists.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand_service.ledger import Keyring, Ledger
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(f"{folder}/l.sqlite", keyring=Keyring.generate(), clock=float) as ledger,
    ... ):
    ...     sorted(path.name for path in backup(ledger, f"{folder}/backup").iterdir())
    ['head.json', 'ledger.sqlite']
    """
    target = Path(directory)
    target.mkdir(parents=True, mode=0o700)
    found = verify(ledger)
    if ledger.store.path is None:
        copy = target / postgres.DUMP
        postgres.dump(ledger.store.writer.url.render_as_string(hide_password=False), copy)
    else:
        copy = target / DATABASE
        copy_sqlite(ledger.store.path, copy)
    written = [copy]
    if found.ok:
        (target / ANCHOR).write_text(canonical(ledger.sign_head(found.head).to_json()))
        written.append(target / ANCHOR)
    for path in (*written, target):
        sync(path)
    require_sound(found, f"the copy in {target} has no signed head, and is no backup")
    return target


def require_sound(found: Verification, otherwise: str) -> None:
    """Damaged if a ledger does not verify: the keyring signs nothing of it."""
    if not found.ok:
        first = found.problems[0]
        raise Damaged(
            f"the ledger does not verify ({len(found.problems)} problems; row {first.seq}: "
            f"{first.what}), so nothing of it is signed: {otherwise}.",
            hint="find out what was changed (evenhand audit verify --deep), then restore.",
        )


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
    where : path-like or str
        The place of the ledger: a path, or the URL of an empty database of PostgreSQL. Nothing is
        replaced.
    keyring : Keyring
        The keyring of the ledger.
    clock : callable
        Gives the time, in seconds.
    by : str
        Who restores it.

    Raises
    ------
    Invalid
        If there is a ledger already.
    Damaged
        If the backup does not verify.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand_service.ledger import Keyring, Ledger
    >>> keyring = Keyring.generate()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Ledger.open(f"{folder}/l.sqlite", keyring=keyring, clock=float) as ledger:
    ...         copy = backup(ledger, f"{folder}/backup")
    ...     restore(copy, f"{folder}/again.sqlite", keyring=keyring, clock=float, by="Ada")
    """
    source = Path(directory)
    url = os.fspath(where)
    target = None if "://" in url else Path(where)
    if target is not None and target.exists():
        raise Invalid(
            f"{target} exists; a restore replaces nothing.",
            hint="move the damaged ledger away first.",
        )
    anchor = SignedHead.from_json(json.loads((source / ANCHOR).read_text()))
    if target is None:
        postgres.load(url, source / postgres.DUMP)
    else:
        shutil.copyfile(source / DATABASE, target)
        sync(target)
    with Ledger.open(where, keyring=keyring, clock=clock) as ledger:
        ledger.mark_restored(by)
        verification = verify(ledger, anchor)
    if not verification.ok:
        if target is not None:
            target.unlink()
        first = verification.problems[0]
        raise Damaged(
            f"the backup does not verify: row {first.seq}: {first.what}.",
            hint="use another backup.",
        )


def sync(path: Path) -> None:
    """Return when a file or a folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
