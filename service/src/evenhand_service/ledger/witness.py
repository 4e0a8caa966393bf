"""Witnesses: places that the operator cannot rewrite, to which signed heads of the chain go by
themselves.

    entry = signed head (seq, hash) | first bytes of the hash of each row since the last entry

A file or an HTTPS endpoint keeps entries. A witness that is away holds nothing up, unless
`required_seconds` is set. `verify(..., witnessed=...)` compares.
"""

import base64
import email.utils
import errno
import http.client
import json
import os
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import IO, Any, Protocol

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand_service.ledger.chain import row_hashes
from evenhand_service.ledger.guard import LOG, SystemClock
from evenhand_service.ledger.ledger import Ledger
from evenhand_service.ledger.postgres import without_secrets
from evenhand_service.ledger.refusals import Invalid, LedgerUnavailable, Refusal
from evenhand_service.ledger.standalone_verifier import PREFIX

MOST_ROWS = 100_000
"""Rows of which an entry has the hashes; of more, it has those of the last ones."""
LOCAL = ("127.0.0.1", "localhost", "::1")


class Witness(Protocol):
    """A place to which entries go."""

    name: str

    def publish(self, entry: Json) -> float | None:
        """Hand over an entry; the time by the witness's clock, if it says. Raises if it fails."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would turn a POST into a GET, and carry the headers to another host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str,
        headers: Message, newurl: str,
    ) -> urllib.request.Request | None:  # fmt: skip
        """Never: the answer is an error."""
        where = urllib.parse.urlsplit(newurl).netloc
        problem = f"it redirects to {where}, and redirects are not followed: give the final address"
        raise urllib.error.HTTPError(req.full_url, code, problem, headers, fp)


def fetched(
    url: str, body: bytes | None = None, headers: Mapping[str, str] = {}
) -> tuple[bytes, float | None]:
    """(answer, date of the answer) of one request over HTTPS, or HTTP on this machine: a GET, or a
    POST of the body. Whatever is not answered with 2xx, a redirect too, is an HTTPError.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in LOCAL):
        raise Invalid(f"a witness is reached over https, not over {parts.scheme}.", hint="use TLS.")
    request = urllib.request.Request(url, data=body, headers=dict(headers))
    secure = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    opener = urllib.request.build_opener(secure, _NoRedirects)
    with opener.open(request, timeout=10.0) as answer:
        date = answer.headers.get("Date")
        when = None if date is None else email.utils.parsedate_to_datetime(date).timestamp()
        return answer.read(64 * 2**20), when


@dataclass
class FileWitness:
    """A file to which lines are appended: on another host's disk, or one that the operating system
    lets nobody shorten (chattr +a). A line of which only a part could be written stays as it is,
    for nobody could take it away; the next entry begins on a line of its own.
    """

    path: Path
    name: str = "file"

    def publish(self, entry: Json) -> None:
        """One line, on the disk when this returns; OSError if only a part of it was written."""
        line = canonical(entry).encode() + b"\n"
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                line = b"\n" + line
            written = os.write(handle, line)  # in one piece: other replicas append here too
            os.fsync(handle)
        finally:
            os.close(handle)
        if written < len(line):
            raise OSError(
                errno.ENOSPC, f"{written} of {len(line)} bytes were written", str(self.path)
            )


@dataclass
class HttpWitness:
    """An endpoint that appends what is POSTed."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    name: str = "https"

    def publish(self, entry: Json) -> float | None:
        """One line; the date of the answer, if it has one."""
        body = canonical(entry).encode() + b"\n"
        headers = {"Content-Type": "application/json", **self.headers}
        return fetched(self.url, body, headers)[1]


@dataclass
class WitnessStanding:
    """How far a witness has got."""

    seq: int = 0
    at: float = 0.0
    failures: int = 0
    error: str | None = None


class HeadWitnesses:
    """Sends entries to every witness from a thread of its own.

    every_seconds: how often. required_seconds: after how many seconds without any witness nothing
    is drawn any more; None: never.
    """

    def __init__(
        self,
        ledger: Ledger,
        witnesses: Sequence[Witness],
        *,
        every_seconds: float = 60.0,
        required_seconds: float | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ledger = ledger
        self.witnesses = list(witnesses)
        self._every_seconds = every_seconds
        self._required_seconds = required_seconds
        self._elapsed = elapsed
        began = elapsed()
        self.standings = {witness.name: WitnessStanding(at=began) for witness in witnesses}
        if len(self.standings) < len(self.witnesses):
            raise Invalid("two witnesses have the same name.", hint="give each its own name.")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="evenhand-witnesses", daemon=True)

    def start(self) -> None:
        """From now on entries go out by themselves; first, what witnesses keep here is compared
        with the chain, and if it is not in it, nothing is drawn until the gap is confirmed. What
        cannot be read there is logged and counts as a failure, and the service starts.
        """
        if not self.witnesses:
            return
        for witness in self.witnesses:
            path = getattr(witness, "path", None)
            if path is None or not path.exists():
                continue
            try:
                newest = read_entries(str(path))[-1]
            except Invalid as error:
                standing = self.standings[witness.name]
                standing.failures = standing.failures + 1
                standing.error = str(error)
                LOG.error("witness %s is not compared with the chain: %s", witness.name, error)
                continue
            self._compare(witness.name, newest)
        self._thread.start()
        if self._required_seconds is not None:
            self.ledger.draw_only_if(self.refusal)

    def _compare(self, name: str, newest: Json) -> None:
        """The newest entry of a witness must be in the chain."""
        seq = int(newest["seq"])
        with self.ledger.store.reader.connect() as connection:
            found = row_hashes(connection, seq - 1, seq).get(seq)
        if found is None or found.hex() != newest["hash"]:
            # what a witness saw before a restore that is on record is not there, as is known
            known = any(
                e.action == "restored" and e.at >= newest["at"] for e in self.ledger.events()
            )
            if not known:
                note = f"the witness {name} saw row {seq}, which is not in this database"
                LOG.critical("%s; nothing is drawn until the gap is confirmed", note)
                self.ledger.mark_restored("evenhand", note)
        else:
            self.standings[name].seq = seq

    def close(self) -> None:
        """Send the last head, and stop."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self.publish()

    def lag(self) -> dict[str, tuple[float, int, int]]:
        """For the metrics: of each witness, seconds since it took an entry, rows that it has not
        seen, and failures in a row.
        """
        now = self._elapsed()
        last = self.ledger.head().seq
        return {
            name: (now - standing.at, last - standing.seq, standing.failures)
            for name, standing in self.standings.items()
        }

    def refusal(self) -> Refusal | None:
        """Why nothing may be drawn: no witness has taken an entry for too long."""
        limit = self._required_seconds
        newest = max((standing.at for standing in self.standings.values()), default=0.0)
        if limit is None or self._elapsed() - newest <= limit:
            return None
        return LedgerUnavailable(
            f"no witness has taken a head for more than {limit:.0f} s; nothing is drawn.",
            hint="bring a witness back, or take witness_required_seconds out of the settings.",
        )

    def publish(self) -> None:
        """Send an entry to every witness now; those who fail are logged and tried next time."""
        if not self.witnesses:
            return
        for witness in self.witnesses:
            standing = self.standings[witness.name]
            try:
                entry = entry_of(self.ledger, standing.seq)
                if entry["seq"] > standing.seq or standing.failures:
                    outside = witness.publish(entry)
                    if outside is not None and isinstance(self.ledger.clock, SystemClock):
                        self.ledger.clock.corroborate(outside)
                standing.seq = entry["seq"]
                standing.at = self._elapsed()
                standing.failures = 0
                standing.error = None
            except Exception as error:  # noqa: BLE001 - a witness that is away holds nothing up
                standing.failures += 1
                standing.error = f"{type(error).__name__}: {error}"
                LOG.error("witness %s has not taken the head: %s", witness.name, standing.error)

    def _run(self) -> None:
        wait = min(1.0, self._every_seconds)  # the first head goes out soon
        while not self._stop.wait(wait):
            wait = self._every_seconds
            try:
                self.publish()
            except Exception as error:  # noqa: BLE001 - the database may be away for a while
                LOG.error("witnesses: %s: %s", type(error).__name__, error)


def entry_of(ledger: Ledger, after: int) -> Json:
    """What a witness that has seen row `after` is sent now; Tampered unless the keyring has sealed
    the head, and the rows since lead to it.
    """
    signed = ledger.signed_head()
    last = signed.head.seq
    first = max(after, last - MOST_ROWS)
    with ledger.store.reader.connect() as connection:
        ledger.require_chain(min(first, last), connection)
        hashes = row_hashes(connection, first, last)
    prefixes = b"".join(hashes[seq][:PREFIX] for seq in sorted(hashes))
    return {
        **signed.to_json(),
        "after": first,
        "rows": base64.b64encode(prefixes).decode(),
    }


def read_entries(place: str) -> list[Json]:
    """The entries of a witness, lines of JSON: a file, or a URL. A line that cannot be read (a full
    disk or a power cut tore it, and an append-only file keeps it) is left out, with a warning that
    names it; Invalid if none can be.
    """
    shown = without_secrets(place)
    hint = "give the file or the address of a witness."
    try:
        content = fetched(place)[0] if "://" in place else Path(place).read_bytes()
    except (OSError, http.client.HTTPException) as error:
        raise Invalid(f"{shown} cannot be read: {error}.", hint=hint) from error
    text = content.decode(errors="replace")
    found = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = None
            entry = entry if isinstance(entry, dict) else {}
            kinds = {"seq": int, "hash": str, "at": int | float}
            known = all(isinstance(entry.get(name), kind) for name, kind in kinds.items())
            found[number] = entry if known else None
    torn = [number for number, entry in found.items() if entry is None]
    if torn:
        named = ", ".join(map(str, torn[:20])) + (", ..." if len(torn) > 20 else "")
        LOG.warning(
            "%s: %d of %d lines cannot be read and are left out (line %s): a write was cut "
            "short, or something else was written there",
            *(shown, len(torn), len(found), named),
        )
    entries = [entry for entry in found.values() if entry is not None]
    if not entries:
        raise Invalid(f"{shown} holds no entry of a witness.", hint=hint)
    return entries


def witness_of(table: Mapping[str, Any]) -> Witness:
    """A witness from a table of the settings; a header `$NAME` is taken from the environment."""
    given = dict(table)
    kind = given.pop("kind", None)
    made: dict[str, Callable[..., Witness]] = {
        "file": lambda path, name="file": FileWitness(Path(path), name),
        "https": lambda url, headers={}, name="https": HttpWitness(url, _filled(headers), name),
    }
    if kind not in made:
        raise Invalid(f"[[witness]] has the kind {kind!r}; it knows {', '.join(made)}.")
    try:
        return made[kind](**given)
    except TypeError as error:
        raise Invalid(
            f"[[witness]] of kind {kind!r} has the settings {', '.join(sorted(given))}: {error}.",
            hint="service/docs/settings.md has both kinds.",
        ) from None


def _filled(headers: Mapping[str, str]) -> dict[str, str]:
    filled = {}
    for name, value in headers.items():
        if value.startswith("$") and value[1:] not in os.environ:
            raise Invalid(f"the header {name} of a witness needs the variable {value[1:]}.")
        filled[name] = os.environ[value[1:]] if value.startswith("$") else value
    return filled
