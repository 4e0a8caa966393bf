"""Witnesses: places that the operator cannot rewrite, to which signed heads of the chain go by
themselves.

    entry = signed head (seq, hash) | first bytes of the hash of each row since the last entry |
            signed checkpoint of the Merkle tree

A file or an HTTPS endpoint keeps entries; an object store keeps one object per entry; a time stamp
authority (RFC 3161) dates them; a witness of transparency logs (C2SP tlog-witness) cosigns the
checkpoints, and refuses one that does not continue what it has seen. A witness that is away holds
nothing up, unless `required_seconds` is set. `verify(..., witnessed=...)` compares.
"""

import base64
import email.utils
import errno
import hashlib
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
from evenhand.ledger.chain import row_hashes
from evenhand.ledger.guard import LOG, SystemClock
from evenhand.ledger.ledger import Ledger
from evenhand.ledger.merkle import MerkleTree
from evenhand.ledger.postgres import without_secrets
from evenhand.ledger.refusals import Invalid, LedgerUnavailable, Refusal
from evenhand.ledger.standalone_verifier import PREFIX, Note

MOST_ROWS = 100_000
"""Rows of which an entry tells the hashes; of more, it tells those of the last ones."""
LOCAL = ("127.0.0.1", "localhost", "::1")


class Witness(Protocol):
    """A place to which entries go."""

    name: str

    def publish(self, entry: Json, tree: MerkleTree) -> float | None:
        """Hand over an entry; the time by the witness's clock, if it tells. Raises if it fails."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would turn a POST into a GET, and carry the headers to another host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str,
        headers: Message, newurl: str,
    ) -> urllib.request.Request | None:  # fmt: skip
        """Never: the answer is an error."""
        where = urllib.parse.urlsplit(newurl).netloc
        told = f"it redirects to {where}, and redirects are not followed: give the final address"
        raise urllib.error.HTTPError(req.full_url, code, told, headers, fp)


def fetched(
    url: str, body: bytes | None = None, method: str = "GET", headers: Mapping[str, str] = {}
) -> tuple[bytes, float | None]:
    """(answer, date of the answer) of one request over HTTPS, or HTTP on this machine. Whatever is
    not answered with 2xx, a redirect too, is an HTTPError.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in LOCAL):
        raise Invalid(f"a witness is reached over https, not over {parts.scheme}.", hint="use TLS.")
    request = urllib.request.Request(url, data=body, method=method, headers=dict(headers))
    secure = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    opener = urllib.request.build_opener(secure, _NoRedirects)
    with opener.open(request, timeout=10.0) as answer:
        told = answer.headers.get("Date")
        when = None if told is None else email.utils.parsedate_to_datetime(told).timestamp()
        return answer.read(64 * 2**20), when


@dataclass
class FileWitness:
    """A file to which lines are appended: on another host's disk, or one that the operating system
    lets nobody shorten (chattr +a). A line of which only a part could be written stays as it is,
    for nobody could take it away; the next entry begins on a line of its own.
    """

    path: Path
    name: str = "file"

    def publish(self, entry: Json, tree: MerkleTree) -> None:
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
    """An endpoint that keeps what it gets: POST appends; PUT writes the object at `url`, in which
    {seq} is the number of the row (an object store with retention).
    """

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    name: str = "https"

    def publish(self, entry: Json, tree: MerkleTree) -> float | None:
        """Content-MD5 is what object stores with retention ask for."""
        body = canonical(entry).encode() + b"\n"
        digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        headers = {"Content-Type": "application/json", "Content-MD5": digest, **self.headers}
        url = self.url.replace("{seq}", str(entry["seq"]))
        return fetched(url, body, self.method, headers)[1]


@dataclass
class TimestampWitness:
    """A time stamp authority (RFC 3161); tokens are kept in a file, one line each."""

    url: str
    path: Path
    root: Path
    name: str = "rfc3161"

    def publish(self, entry: Json, tree: MerkleTree) -> float:
        """Ask for a token over the entry, verify it, keep both."""
        from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

        asked = (  # with a nonce
            TimestampRequestBuilder()
            .data(canonical(entry).encode())
            .hash_algorithm(HashAlgorithm.SHA256)
            .build()
        )
        headers = {"Content-Type": "application/timestamp-query"}
        token, _ = fetched(self.url, asked.as_bytes(), "POST", headers)
        at = stamped(entry, token, self.root, asked.nonce)
        FileWitness(self.path).publish({**entry, "token": base64.b64encode(token).decode()}, tree)
        return at


def stamped(entry: Json, token: bytes, root: Path, nonce: int | None = None) -> float:
    """When an authority under this root certificate stamped an entry, in seconds; Invalid if it did
    not.
    """
    from cryptography import x509
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    try:
        response = decode_timestamp_response(token)
        builder = VerifierBuilder().add_root_certificate(
            x509.load_pem_x509_certificate(root.read_bytes())
        )
        for raw in response.signed_data.certificates:
            certificate = x509.load_der_x509_certificate(raw)
            values = [extension.value for extension in certificate.extensions]
            authority = any(isinstance(v, x509.BasicConstraints) and v.ca for v in values)
            if authority and certificate.issuer != certificate.subject:
                builder = builder.add_intermediate_certificate(certificate)
        builder = builder if nonce is None else builder.nonce(nonce)
        builder.build().verify_message(response, canonical(entry).encode())
    except (VerificationError, ValueError) as error:
        raise Invalid(
            f"the time stamp of row {entry.get('seq')} does not verify: {error}.",
            hint="check the certificate of the authority.",
        ) from error
    return float(response.tst_info.gen_time.timestamp())


@dataclass
class CosignWitness:
    """A witness of transparency logs (C2SP tlog-witness): it cosigns a checkpoint that continues
    the last one it saw. `key` is its public key; cosigned checkpoints are kept in a file.
    """

    url: str
    key: str
    path: Path
    name: str = "tlog"
    _size: int = 0

    def publish(self, entry: Json, tree: MerkleTree) -> float:
        """Send the checkpoint with a consistency proof; keep it with the cosignature."""
        note = Note.parse(entry["checkpoint"])
        for _ in range(2):
            try:
                answer = self._add(entry["checkpoint"], note.size, tree)
                break
            except urllib.error.HTTPError as error:
                told = error.read(100).strip()
                if error.code != 409 or not told.isdigit() or int(told) == self._size:
                    raise
                self._size = int(told)  # it knows another size than we believed
        cosigned = entry["checkpoint"] + answer
        at = Note.parse(cosigned).cosigned_by(self.name, bytes.fromhex(self.key))
        if at is None:
            raise Invalid(f"the witness {self.name} answered, but did not cosign.")
        self._size = note.size
        FileWitness(self.path).publish({**entry, "checkpoint": cosigned}, tree)
        return float(at)

    def _add(self, checkpoint: str, size: int, tree: MerkleTree) -> str:
        if self._size > size:
            raise Invalid(
                f"the witness {self.name} has seen {self._size} rows, and the chain has {size}: "
                "it was rolled back.",
                hint="evenhand audit verify --witness.",
            )
        proof = tree.consistency(self._size, size)
        lines = [f"old {self._size}", *(base64.b64encode(part).decode() for part in proof), ""]
        body = "\n".join(lines) + "\n" + checkpoint
        url = self.url.rstrip("/") + "/add-checkpoint"
        return fetched(url, body.encode(), "POST", {"Content-Type": "text/plain"})[0].decode()


@dataclass
class WitnessStanding:
    """How far a witness has got."""

    seq: int = 0
    at: float = 0.0
    failures: int = 0
    error: str | None = None


@dataclass(frozen=True)
class WitnessRules:
    """When entries go out: every so many seconds, or rows; and after how many seconds without any
    witness nothing is drawn any more (None: never).
    """

    every_seconds: float = 60.0
    every_rows: int = 10_000
    required_seconds: float | None = None


class HeadWitnesses:
    """Sends entries to every witness from a thread of its own."""

    def __init__(
        self,
        ledger: Ledger,
        witnesses: Sequence[Witness],
        rules: WitnessRules | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ledger, self.witnesses = ledger, list(witnesses)
        self.rules = rules or WitnessRules()
        self._elapsed, self._tree = elapsed, MerkleTree(ledger)
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
                heads = [e for e in read_entries(str(path)) if "at" in e and "seq" in e]
            except Invalid as error:
                standing = self.standings[witness.name]
                standing.failures, standing.error = standing.failures + 1, str(error)
                LOG.error("witness %s is not compared with the chain: %s", witness.name, error)
                continue
            if heads:
                self._compare(witness.name, heads[-1])
        self._thread.start()
        if self.rules.required_seconds is not None:
            self.ledger.draw_only_if(self.refusal)

    def _compare(self, name: str, newest: Json) -> None:
        """The newest entry of a witness must be in the chain."""
        seq = int(newest["seq"])
        with self.ledger.store.reader.connect() as connection:
            found = row_hashes(connection, seq - 1, seq).get(seq)
        if found is None or found.hex() != newest["hash"]:
            # what a witness saw before a restore that is on record is not there, as everybody knows
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
        now, last = self._elapsed(), self.ledger.head().seq
        return {
            name: (now - standing.at, last - standing.seq, standing.failures)
            for name, standing in self.standings.items()
        }

    def refusal(self) -> Refusal | None:
        """Why nothing may be drawn: no witness has taken an entry for too long."""
        limit = self.rules.required_seconds
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
        self._tree.extend()
        for witness in self.witnesses:
            standing = self.standings[witness.name]
            try:
                entry = entry_of(self.ledger, self._tree, standing.seq)
                if entry["seq"] > standing.seq or standing.failures:
                    outside = witness.publish(entry, self._tree)
                    if outside is not None and isinstance(self.ledger.clock, SystemClock):
                        self.ledger.clock.corroborate(outside)
                standing.seq, standing.at = entry["seq"], self._elapsed()
                standing.failures, standing.error = 0, None
            except Exception as error:  # noqa: BLE001 - a witness that is away holds nothing up
                standing.failures += 1
                standing.error = f"{type(error).__name__}: {error}"
                LOG.error("witness %s has not taken the head: %s", witness.name, standing.error)

    def _run(self) -> None:
        sent = self._elapsed() - self.rules.every_seconds
        while not self._stop.wait(min(1.0, self.rules.every_seconds)):
            try:
                rows = self.ledger.head().seq - max(s.seq for s in self.standings.values())
                due = self._elapsed() - sent >= self.rules.every_seconds
                if due or rows >= self.rules.every_rows:
                    sent = self._elapsed()
                    self.publish()
            except Exception as error:  # noqa: BLE001 - the database may be away for a while
                LOG.error("witnesses: %s: %s", type(error).__name__, error)


def entry_of(ledger: Ledger, tree: MerkleTree, after: int) -> Json:
    """What a witness that has seen row `after` is sent now."""
    signed = ledger.signed_head()
    last = signed.head.seq
    first = max(after, last - MOST_ROWS)
    with ledger.store.reader.connect() as connection:
        hashes = row_hashes(connection, first, last)
    prefixes = b"".join(hashes[seq][:PREFIX] for seq in sorted(hashes))
    return {
        **signed.to_json(),
        "after": first,
        "rows": base64.b64encode(prefixes).decode(),
        "checkpoint": tree.checkpoint(last),
    }


def read_entries(place: str) -> list[Json]:
    """The entries of a witness: a file, a directory of files, or a URL; lines of JSON, or
    checkpoints as they are. A line that cannot be read (a full disk or a power cut tore it, and an
    append-only file keeps it) is left out, with a warning that names it; Invalid if none can be.
    """
    texts: dict[str, str] = {}
    shown = without_secrets(place)
    try:
        if "://" in place:
            texts[shown] = fetched(place)[0].decode(errors="replace")
        else:
            path = Path(place)
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                texts[str(file)] = file.read_text(encoding="utf-8", errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise Invalid(
            f"{shown} cannot be read: {error}.",
            hint="give the file, the directory or the address of a witness.",
        ) from error
    entries = [entry for name, text in texts.items() for entry in _entries_in(name, text)]
    if not entries:
        raise Invalid(
            f"{shown} holds no entry of a witness.",
            hint="give the file, the directory or the address of a witness.",
        )
    return entries


def _entries_in(name: str, text: str) -> list[Json]:
    """The entries of one file."""
    lines = text.split("\n")
    if not any(line.startswith("{") for line in lines):
        try:
            return [{"checkpoint": text, "size": Note.parse(text).size}]
        except ValueError as error:
            LOG.warning("%s holds no entry of a witness: %s", name, error)
            return []
    found = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = None
            entry = entry if isinstance(entry, dict) else {}
            head = isinstance(entry.get("seq"), int) and isinstance(entry.get("hash"), str)
            known = head or ("seq" not in entry and "checkpoint" in entry)
            found[number] = entry if known else None
    torn = [number for number, entry in found.items() if entry is None]
    if torn:
        named = ", ".join(map(str, torn[:20])) + (", ..." if len(torn) > 20 else "")
        LOG.warning(
            "%s: %d of %d lines cannot be read and are left out (line %s): a write was cut "
            "short, or something else was written there",
            *(name, len(torn), len(found), named),
        )
    return [entry for entry in found.values() if entry is not None]


def witness_of(table: Mapping[str, Any]) -> Witness:
    """A witness from a table of the settings; a header `$NAME` is taken from the environment."""
    given = dict(table)
    kind = given.pop("kind", None)
    made: dict[str, Callable[..., Witness]] = {
        "file": lambda path, name="file": FileWitness(Path(path), name),
        "https": lambda url, headers={}, name="https": HttpWitness(
            url, "POST", _filled(headers), name
        ),
        "object": lambda url, headers={}, name="object": HttpWitness(
            url, "PUT", _filled(headers), name
        ),
        "rfc3161": lambda url, path, root, name="rfc3161": TimestampWitness(
            url, Path(path), Path(root), name
        ),
        "tlog": lambda url, key, path, name: CosignWitness(url, key, Path(path), name),
    }
    if kind not in made:
        raise Invalid(f"[[witness]] has the kind {kind!r}; it knows {', '.join(made)}.")
    try:
        return made[kind](**given)
    except TypeError as error:
        raise Invalid(
            f"[[witness]] of kind {kind!r} has the settings {', '.join(sorted(given))}: {error}.",
            hint="docs/operating.md shows each kind.",
        ) from None


def _filled(headers: Mapping[str, str]) -> dict[str, str]:
    filled = {}
    for name, value in headers.items():
        if value.startswith("$") and value[1:] not in os.environ:
            raise Invalid(f"the header {name} of a witness needs the variable {value[1:]}.")
        filled[name] = os.environ[value[1:]] if value.startswith("$") else value
    return filled
