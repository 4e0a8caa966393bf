"""The stand-alone verifier of an exported ledger. It needs the standard library alone.

    python standalone_verifier.py export.jsonl --secret w689=6f1c... [--secrets FILE] [--head FILE]
    python standalone_verifier.py archive.jsonl --head head.json
    python standalone_verifier.py export.jsonl --archive archive.jsonl ...
    python standalone_verifier.py --proof proof.json [--public-key HEX]

It checks, row by row,

    hash_n = SHA-256(hash_{n-1} | canonical JSON of {at, body, kind, seq}),  hash_0 = 32 zero bytes,
    SHA-256(secret of the window) = the commitment in the chain before the window's first draw,
    U = first 53 bits of HMAC-SHA256(secret, person | product | window),
    accept = (U < acceptance),   audit = (U < audit_weight),
    first = (the person had not applied for the product in this window before),

(pack.json, signed, binds all hashes, and every file of a pack by its SHA-256; the tables and lists
of a pack are computed again from the chain), that every policy is signed by the key of the first
row, that every opened field is the one that was committed to, that windows follow the plan that is
in the chain, that the acceptance is the policy's where the features are opened, and that every
policy of a lineage names the SHA-256 of the checkpoint that stands before it. Of rows that are in
an archive an export has the hashes alone; the chain names the SHA-256 of all of them, and with
--archive the rows themselves are checked. An auditor can read all of this file; its functions are
copies of those by which the ledger writes, and tests compare the two.
"""

import argparse
import base64
import csv
import hashlib
import hmac
import io
import json
import math
import re
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

FORMAT = "evenhand ledger export 1"
PROTOCOL_VERSION = 1
"""The protocol under which policies are published; of another one nothing is known here."""
GENESIS = bytes(32)
"""hash_0."""

PREFIX = 8
"""Bytes of the hash of each row that a witness receives, to find the row."""

text_of = json.JSONEncoder(ensure_ascii=False).encode
"""A text in its quotation marks; nothing is escaped that need not be."""


def canonical(value: Any) -> str:
    """The one text of a JSON value (RFC 8785): names sorted by UTF-16, no spaces, numbers as
    ECMAScript writes them.
    """
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return f"{{{','.join(f'{text_of(name)}:{canonical(value[name])}' for name in names)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, float):
        return number(value)
    return text_of(value)  # a text, an integer, true, false or null


def number(value: float) -> str:
    """The shortest digits that give it back; an exponent below 1e-6 and from 1e21 on."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not JSON")
    mantissa, _, exponent = f"{value!r}e".rstrip("e").partition("e")
    sign = "-" if value < 0 else ""
    whole, _, rest = mantissa.lstrip("-").partition(".")
    place = len(whole) + int(exponent or 0)  # of the decimal point in the digits
    digits = whole + ("" if rest == "0" else rest)
    if whole == "0":
        place -= len(digits) - len(digits.lstrip("0"))
        digits = digits.lstrip("0") or "0"
    if value == 0:
        return "0"
    if len(digits) <= place <= 21:
        return f"{sign}{digits}{'0' * (place - len(digits))}"
    if 0 < place <= 21:
        return f"{sign}{digits[:place]}.{digits[place:]}"
    if -6 < place <= 0:
        return f"{sign}0.{'0' * -place}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{place - 1:+d}"


def link(previous: bytes, row: dict[str, Any]) -> bytes:
    """hash_n of row n."""
    text = canonical({name: row[name] for name in ("at", "body", "kind", "seq")})
    return hashlib.sha256(previous + text.encode()).digest()


def commitment(salt: bytes, value: Any) -> str:
    """SHA-256(salt of the field | canonical JSON of its value)."""
    return hashlib.sha256(salt + canonical(value).encode()).hexdigest()


def uniform(secret: bytes, *parts: str) -> float:
    """U in [0, 1): the first 53 bits of HMAC-SHA256(secret, parts), each part after its length."""
    message = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)
    digest = hmac.digest(secret, message, "sha256")
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def uniformity(numbers: list[float]) -> float:
    """sqrt(n) D, the Kolmogorov-Smirnov distance from the uniform distribution.

    Uniform numbers give more than 1.95 once in 1,000 times.
    """
    n = len(numbers)
    distances = [max((i + 1) / n - u, u - i / n) for i, u in enumerate(sorted(numbers))]
    return math.sqrt(n) * max(distances, default=0.0)


@dataclass(frozen=True)
class Problem:
    """A requirement that a row of the ledger breaks.

    Parameters
    ----------
    seq : int
        The number of the row.
    what : str
        What is wrong with it, as the end of a sentence.

    Examples
    --------
    >>> Problem(7, "its hash is not that of its content").seq
    7
    """

    seq: int
    what: str


@dataclass
class Findings:
    """What has been checked so far."""

    rows: int = 0
    decisions: int = 0
    recomputed: int = 0
    erased: int = 0
    secret_missing: int = 0
    acceptances: int = 0
    rules_unknown: int = 0
    archived: int = 0
    sealed: int = 0
    draws: list[float] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, seq: int, what: str) -> None:
        """One more problem."""
        self.problems.append(Problem(seq, what))

    def lines(self) -> list[str]:
        """What was checked, and the first 100 problems, in words."""
        return [
            f"rows checked: {self.rows:,}",
            f"draws recomputed: {self.recomputed:,} of {self.decisions - self.erased:,} "
            f"({self.erased:,} erased, {self.secret_missing:,} without a secret)",
            f"acceptances recomputed: {self.acceptances:,} of {self.decisions:,} "
            f"({self.rules_unknown:,} by rules that are no plain data)",
            f"uniformity of first draws: sqrt(n) D = {uniformity(self.draws):.3f} "
            "(above 1.95 once in 1,000)",
            *([f"in archives that were not given: {self.archived:,} rows"] * (self.archived > 0)),
            *([f"sealed, for the keyring alone: {self.sealed:,} decisions"] * (self.sealed > 0)),
            *self.remarks,
            *(
                f"row {problem.seq}: {problem.what}" if problem.seq else problem.what
                for problem in self.problems[:100]
            ),
            f"problems: {len(self.problems):,}",
        ]


def model_hash(model: dict[str, Any]) -> str:
    """The SHA-256 of the bytes of a stored model; empty where it has none."""
    try:
        return hashlib.sha256(base64.b64decode(model["data"], validate=True)).hexdigest()
    except (KeyError, TypeError, ValueError):
        return ""


def model_references(document: Any) -> Iterator[str]:
    """The hashes of the models to which a document refers."""
    if isinstance(document, list):
        for part in document:
            yield from model_references(part)
    elif isinstance(document, dict):
        if "sha256" in document and "format" in document and "data" not in document:
            yield document["sha256"]
        for part in document.values():
            yield from model_references(part)


@dataclass
class Models:
    """The models of the chain so far; a policy may refer to none but these."""

    known: set[str] = field(default_factory=set)

    def model(self, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a model."""
        if model_hash(body["model"]) != body["sha256"]:
            yield "the model's name is not the hash of its bytes"
        self.known.add(body["sha256"])

    def document(self, document: Any) -> Iterator[str]:
        """What is wrong with a policy or a checkpoint."""
        for name in dict.fromkeys(model_references(document)):
            if name not in self.known:
                yield f"it refers to model {name}, which is not in the chain before it"


@dataclass
class Lineages:
    """The checkpoints that wait for their policy."""

    waiting: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)

    def checkpoint(self, seq: int, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a checkpoint."""
        if hashlib.sha256(canonical(body["checkpoint"]).encode()).hexdigest() != body["digest"]:
            yield "the checkpoint's digest is not the hash of its document"
        self.waiting[body["product"], body["epoch"]] = (seq, body["digest"])

    def policy(self, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a policy: its protocol is not the known one, or, in the lineage, its
        checkpoint is not in the chain before it.
        """
        version = body["info"].get("protocol_version")
        if version != PROTOCOL_VERSION:
            yield f"its protocol version is {version!r}, and {PROTOCOL_VERSION} alone is known"
        if not body["lineage"]:
            return
        place = (body["product"], body["epoch"])
        _, digest = self.waiting.pop(place, (0, None))
        if digest is None or digest != body["info"].get("checkpoint"):
            yield "its checkpoint is not in the chain before it"

    def end(self) -> Iterator[tuple[int, str]]:
        """Checkpoints that belong to no policy."""
        for seq, _ in sorted(self.waiting.values()):
            yield seq, "the checkpoint belongs to no policy"


@dataclass
class ArchivedRows:
    """Rows that are in archives: in their place there are hashes, those that the chain names.

        hashes = SHA-256(hash of row `first` | ... | hash of row `last`)

    stands in the chain, in the event of the archive. So every hash in the range is bound, also
    those of the rows that stayed, although the row before them may be gone.

    records: what the chain says of each archive; they follow one another from row 1 on.
    """

    records: Sequence[dict[str, Any]]
    digest: Any = field(default_factory=hashlib.sha256)

    @property
    def last(self) -> int:
        """The last row that is in an archive."""
        return max((record["last"] for record in self.records), default=0)

    def row(self, seq: int, digest: bytes, *, left_out: bool) -> Iterator[str]:
        """What is wrong with a row, of which this is the hash; `left_out`: there is no more of
        it.
        """
        if seq > self.last:
            if left_out:
                yield "it was left out, and no archive is on record that holds it"
            return
        for record in self.records:
            if seq == record["first"]:
                self.digest = hashlib.sha256()
        self.digest.update(digest)
        for record in self.records:
            if seq == record["last"] and self.digest.hexdigest() != record["hashes"]:
                between = f"rows {record['first']} to {seq}"
                yield f"the hashes of {between} are not those on record with their archive"


@dataclass
class Windows:
    """The plans of windows, and the windows that were opened under them."""

    plans: list[dict[str, Any]] = field(default_factory=list)
    ends: float = -math.inf

    def event(self, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a plan: it has the next number, and begins where a window ends."""
        if body["action"] not in ("genesis", "window_plan"):
            return
        plan = body["info"]["windows"] if body["action"] == "genesis" else body["info"]
        if plan["number"] != len(self.plans):
            yield "the plan of windows has not the next number"
        elif self.plans:
            starts = plan["starts"]
            _, start, _ = self.window_at(starts)
            if not (starts == start == plan["origin"] and starts >= self.ends):
                yield "the plan of windows does not begin where a window of the one before ends"
        self.plans.append(plan)

    def window_at(self, now: float) -> tuple[str, float, float]:
        """(name, start, end) of the window that holds a time: number n covers
        [origin + n length, origin + (n + 1) length).
        """
        plan = [p for p in self.plans if p["starts"] is None or p["starts"] <= now][-1]
        origin = plan["origin"]
        length = plan["length"]
        number = math.floor((now - origin) / length)
        number += origin + (number + 1) * length <= now
        number -= origin + number * length > now
        name = f"w{number}" if plan["number"] == 0 else f"p{plan['number']}w{number}"
        return name, origin + number * length, origin + (number + 1) * length

    def window(self, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a window: it is the next one of the plan, and overlaps no other."""
        name = body["window"]
        starts = body["starts"]
        ends = body["ends"]
        if starts < self.ends:
            yield f"window {name} overlaps the one before"
        planned = name.partition("r")[0]  # w690r1 is w690, drawn under a newer root key
        if self.plans and self.window_at(starts) != (planned, starts, ends):
            yield f"window {name} is none of the plan's"
        self.ends = max(self.ends, ends)


@dataclass
class State:
    """What the rows so far have established."""

    secrets: dict[str, bytes]
    erased: frozenset[int] = frozenset()
    previous: bytes = GENESIS
    seq: int = 0
    at: float = -math.inf
    windows: dict[str, dict[str, Any]] = field(default_factory=dict)
    planned: Windows = field(default_factory=Windows)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    lineages: Lineages = field(default_factory=Lineages)
    models: Models = field(default_factory=Models)
    archived: ArchivedRows = field(default_factory=lambda: ArchivedRows(()))
    keys: set[str] = field(default_factory=set)
    slots: set[str] = field(default_factory=set)
    slot_of: dict[str, str] = field(default_factory=dict)
    public_key: str = ""


def check(
    rows: Iterable[dict[str, Any]],
    secrets: dict[str, bytes],
    erased: frozenset[int] = frozenset(),
    archives: Sequence[dict[str, Any]] = (),
) -> Findings:
    """Every requirement on every row.

    `erased`: rows whose personal fields were destroyed, as the erasure rows list them; `archives`:
    what the chain says of its archives.
    """
    findings = Findings()
    state = State(secrets, erased, archived=ArchivedRows(archives))
    for row in rows:
        check_place(row, state, findings)
        seq = row["seq"]
        kind = row["kind"]
        body = row["body"]
        # the requirements of the kinds that have some
        broken: Iterable[str] = ()
        if kind == "window":
            check_window(seq, body, state, findings)
        elif kind == "policy":
            if hashlib.sha256(canonical(body["policy"]).encode()).hexdigest() != body["id"]:
                findings.refuse(seq, "the policy's id is not the hash of its document")
            if not signed_by(state.public_key, body):
                findings.refuse(seq, "the signature of the policy does not verify")
            broken = (*state.lineages.policy(body), *state.models.document(body["policy"]))
            state.policies[body["id"]] = body["policy"]
        elif kind == "event":
            if body["action"] == "genesis":
                state.public_key = body["info"].get("public_key", "")
            broken = state.planned.event(body)
        elif kind == "checkpoint":
            held = state.models.document(body["checkpoint"])
            broken = (*state.lineages.checkpoint(seq, body), *held)
        elif kind == "model":
            broken = state.models.model(body)
        elif kind == "decision":
            check_decision(row, state, findings)
            check_draw(row, state, findings)
            check_acceptance(row, state, findings)
        elif kind == "outcome":
            check_opened(row, findings)
        for what in broken:
            findings.refuse(seq, what)
    check_end(state, findings)
    return findings


def check_place(row: dict[str, Any], state: State, findings: Findings) -> None:
    """No row is missing, changed or out of order, and time does not run backwards."""
    seq = row["seq"]
    findings.rows += 1
    if seq != state.seq + 1:
        findings.refuse(seq, f"row {state.seq + 1} was expected here")
    state.seq = seq
    stored = bytes.fromhex(row["hash"])
    left_out = row["kind"] == "archived"
    for what in state.archived.row(seq, stored, left_out=left_out):
        findings.refuse(seq, what)
    if left_out:
        findings.archived += 1
    else:
        if row["at"] < state.at:
            findings.refuse(seq, "its time is before that of the row before")
        state.at = row["at"]
        if link(state.previous, row) != stored:
            findings.refuse(seq, "its hash is not that of its content")
    state.previous = stored


def hashes_of(path: Path) -> tuple[int, str]:
    """(number of rows, SHA-256 of all their hashes one after another)."""
    number = 0
    digest = hashlib.sha256()
    for row in read(path):
        digest.update(bytes.fromhex(row["hash"]))
        number += 1
    return number, digest.hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_window(seq: int, body: dict[str, Any], state: State, findings: Findings) -> None:
    """A window is opened once, and its secret is the one that was committed to."""
    name = body["window"]
    if name in state.windows:
        findings.refuse(seq, f"window {name} was opened before")
    state.windows[name] = body
    for what in state.planned.window(body):
        findings.refuse(seq, what)
    secret = state.secrets.get(name)
    if secret is not None and hashlib.sha256(secret).hexdigest() != body["commitment"]:
        findings.refuse(seq, f"the secret of window {name} is not the one that was committed to")


def check_decision(row: dict[str, Any], state: State, findings: Findings) -> None:
    """What a decision says of itself, its place in the chain, and the fields that are opened."""
    seq = row["seq"]
    body = row["body"]
    if body["key"] in state.keys:
        findings.refuse(seq, "its key was decided before")
    if body["policy"] not in state.policies:
        findings.refuse(seq, "its policy had not been published")
    for what in wrong_flags(body, state.slots):
        findings.refuse(seq, what)
    findings.decisions += 1
    state.keys.add(body["key"])
    if body["first"]:
        findings.draws.append(body["u"])
    check_opened(row, findings)
    window = state.windows.get(body["window"])
    if window is None:
        findings.refuse(seq, "no secret had been committed to for its window")
    elif not window["starts"] <= row["at"] < window["ends"]:
        findings.refuse(seq, "it lies outside its window")


def wrong_flags(body: dict[str, Any], slots: set[str]) -> Iterator[str]:
    """What is wrong with what follows from U, the probabilities, and the slots seen so far; the
    slot of this decision is one of them from now on.
    """
    u = body["u"]
    accept = body["accept"]
    acceptance = body["acceptance"]
    if accept != (u < acceptance):
        yield "the decision is not U < acceptance"
    if body["audit"] != (u < body["audit_weight"]):
        yield "the audit flag is not U < audit_weight"
    if body["propensity"] != (acceptance if accept else 1.0 - acceptance):
        yield "the propensity is not that of the decision"
    if body["first"] != (body["slot"] not in slots):
        yield "the flag for a first application is wrong"
    slots.add(body["slot"])


def check_opened(row: dict[str, Any], findings: Findings) -> None:
    """Every field that is opened is the one that was committed to; what is sealed has the
    fingerprint that the chain names.
    """
    commit = row["body"].get("commit", {})
    sealed = row.get("sealed")
    if sealed is not None:
        found = hashlib.sha256(base64.b64decode(sealed)).hexdigest()
        if found != row["body"].get("sealed"):
            findings.refuse(row["seq"], "its sealed fields have been changed")
    for name, part in row.get("open", {}).items():
        if commitment(bytes.fromhex(part["salt"]), part["value"]) != commit.get(name):
            findings.refuse(row["seq"], f"the opened {name} is not what was committed to")


def check_draw(row: dict[str, Any], state: State, findings: Findings) -> None:
    """U is the HMAC of the window's secret and the person, and nobody counts twice."""
    seq = row["seq"]
    body = row["body"]
    who = row.get("open", {}).get("who")
    secret = state.secrets.get(body["window"])
    if "sealed" in row:
        findings.sealed += 1
    elif who is None:
        findings.erased += seq in state.erased
        if seq not in state.erased and secret is not None:
            findings.refuse(seq, "the person is not opened, although no erasure lists the row")
    elif secret is None:
        findings.secret_missing += 1
    else:
        findings.recomputed += 1
        parts = (who["value"]["person"], body["product"], body["window"])
        if uniform(secret, *parts) != body["u"]:
            findings.refuse(seq, "U is not the HMAC of the window's secret and the person")
        if state.slot_of.setdefault("\x1f".join(parts), body["slot"]) != body["slot"]:
            findings.refuse(seq, "the same person has another slot in the same window")


class Unknown(Exception):
    """A rule that is no plain data: the project's own verifier (audit verify --deep) asks it."""


def accepts(rule: dict[str, Any], features: list[float], group: Any) -> bool:
    """What one rule of a policy says of a person."""
    kind = rule["kind"]
    if kind == "constant":
        return bool(rule["accept"])
    if kind == "threshold":
        return bool((features[rule["column"]] >= rule["value"]) == rule["at_least"])
    if kind == "linear":
        score = rule["weights"][0] * features[0]
        for weight, value in zip(rule["weights"][1:], features[1:], strict=True):
            score += weight * value
        return bool(score >= rule["threshold"])
    if kind == "group":
        return bool(group == rule["value"])
    if kind == "per-group":
        (mine,) = (part for part in rule["parts"] if part["group"] == group)
        return accepts(mine["hypothesis"], features, group)
    if kind == "tree":
        node = 0
        while rule["column"][node] >= 0:
            value = struct.unpack("f", struct.pack("f", features[rule["column"][node]]))[0]
            node = rule["left" if value <= rule["value"][node] else "right"][node]
        return bool(rule["accept"][node])
    raise Unknown(kind)


def acceptance(policy: dict[str, Any], features: list[float], group: Any) -> float:
    """P[accept] = min(1, sum of the weights of the rules that accept), added up one after the
    other, rules of one kind together, kinds in the order of their first appearance.
    """
    kinds: dict[str, list[dict[str, Any]]] = {}
    for part in policy["parts"]:
        kinds.setdefault(part["hypothesis"]["kind"], []).append(part)
    seen = group if policy["group_use"] == "decide" else None
    total = 0.0
    for parts in kinds.values():
        for part in parts:
            if accepts(part["hypothesis"], features, seen):
                total += part["weight"]
    return min(total, 1.0)


def check_acceptance(row: dict[str, Any], state: State, findings: Findings) -> None:
    """The probability is the policy's, where the features are opened and the rules are data."""
    body = row["body"]
    opened = row.get("open", {})
    policy = state.policies.get(body["policy"])
    if "features" not in opened or policy is None or "parts" not in policy:
        return
    group = opened.get("group", {}).get("value")
    if policy["group_use"] == "decide" and "group" not in opened:
        return
    try:
        found = acceptance(policy, opened["features"]["value"]["features"], group)
    except Unknown:
        findings.rules_unknown += 1
        return
    except (LookupError, ValueError, TypeError, OverflowError):
        found = math.nan
    findings.acceptances += 1
    if found != body["acceptance"]:
        findings.refuse(row["seq"], "the acceptance is not the policy's")


def check_end(state: State, findings: Findings) -> None:
    """What can be said only after the last row."""
    # a checkpoint without a policy would be believed later
    for seq, what in state.lineages.end():
        findings.refuse(seq, what)
    # a secret that fits no window would make the check look stronger than it is
    for name in sorted(state.secrets.keys() - state.windows.keys()):
        what = f"a secret was given for window {name}, which the ledger does not have"
        findings.refuse(state.seq, what)


# Proofs: a Merkle tree over the hashes of the rows (RFC 6962), whose root is signed.


def leaf_hash(row_hash: bytes) -> bytes:
    """SHA-256(0x00 | hash of the row)."""
    return hashlib.sha256(b"\0" + row_hash).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 | left | right)."""
    return hashlib.sha256(b"\1" + left + right).digest()


def included(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """The root that a path leads to from leaf `index` of `size`; None if it has not the right
    length.
    """
    if not 0 <= index < size:
        return None
    here = index
    last = size - 1
    found = leaf
    for other in path:
        if last == 0:
            return None
        if here % 2 or here == last:
            found = node_hash(other, found)
            while not here % 2 and here:
                here = here >> 1
                last = last >> 1
        else:
            found = node_hash(found, other)
        here = here >> 1
        last = last >> 1
    return found if last == 0 else None


# Ed25519 (RFC 8032), so that nothing has to be installed: a few milliseconds for a signature

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
Point = tuple[int, int, int, int]
"""(X, Y, Z, T): x = X / Z, y = Y / Z, x y = T / Z."""


def point_sum(one: Point, other: Point) -> Point:
    """The group law of the curve -x^2 + y^2 = 1 + d x^2 y^2."""
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c = 2 * one[3] * other[3] * D % P
    d = 2 * one[2] * other[2] % P
    e = b - a
    f = d - c
    g = d + c
    h = b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number: int, point: Point) -> Point:
    """number * point."""
    found: Point = (0, 1, 1, 0)
    while number:
        found = point_sum(found, point) if number & 1 else found
        point = point_sum(point, point)
        number = number >> 1
    return found


def point_of(code: bytes) -> Point | None:
    """The point with this code of 32 bytes; None if there is none."""
    y = int.from_bytes(code, "little")
    sign = y >> 255
    y = y & (2**255 - 1)
    if y >= P:
        return None
    squared = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(squared, (P + 3) // 8, P)
    if (x * x - squared) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - squared) % P or (x == 0 and sign):
        return None
    x = P - x if x % 2 != sign else x
    return x, y, 1, x * y % P


def ed25519_verifies(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether s B = R + SHA-512(R | key | message) A."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    a = point_of(public_key)
    r = point_of(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    base = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
    if a is None or r is None or base is None or s >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public_key + message).digest()
    left = times(s, base)
    right = point_sum(r, times(int.from_bytes(digest, "little") % L, a))
    same_x = (left[0] * right[2] - right[0] * left[2]) % P == 0
    return same_x and (left[1] * right[2] - right[1] * left[2]) % P == 0


def signed_by(public_key: str, body: dict[str, Any]) -> bool:
    """Whether a key, in hexadecimal, signed everything of a document but its signature."""
    text = canonical({name: value for name, value in body.items() if name != "signature"})
    signature = bytes.fromhex(body.get("signature", ""))
    return ed25519_verifies(bytes.fromhex(public_key), text.encode(), signature)


def check_root(root: dict[str, Any], known_key: str | None = None) -> bool:
    """Whether the ledger's key signed the root: the one from elsewhere, else the one it brings."""
    signed = canonical({name: root[name] for name in ("ledger", "size", "root")})
    key = bytes.fromhex(known_key or root["public_key"])
    return ed25519_verifies(key, signed.encode(), bytes.fromhex(root["signature"]))


def check_proof(proof: dict[str, Any], known_key: str | None = None) -> list[str]:
    """What is wrong with the proof that one row is in the ledger; `known_key`: the ledger's public
    key, in hexadecimal, from elsewhere.
    """
    row = proof["row"]
    root = proof["root"]
    wrong = []
    if not check_root(root, known_key):
        wrong.append("the ledger's key did not sign the root")
    leaf = leaf_hash(link(bytes.fromhex(proof["previous"]), row))
    path = [bytes.fromhex(part) for part in proof["path"]]
    if included(leaf, row["seq"] - 1, root["size"], path) != bytes.fromhex(root["root"]):
        wrong.append(f"row {row['seq']} is not in the tree of the signed root")
    for name, part in row.get("open", {}).items():
        found = commitment(bytes.fromhex(part["salt"]), part["value"])
        if found != row["body"]["commit"].get(name):
            wrong.append(f"the opened {name} is not what was committed to")
    return wrong


def prove(path: Path, known_key: str | None) -> int:
    """Print what a proof shows; 0 if it holds."""
    proof = json.loads(path.read_text(encoding="utf-8"))
    try:
        wrong = check_proof(proof, known_key)
        root = proof["root"]
        lines = wrong or [
            f"row {proof['row']['seq']} is one of the {root['size']:,} rows of the ledger "
            f"{root['ledger']}",
            "the key of the root was given"
            if known_key
            else f"the proof brings its own key, {root['public_key']}: compare it, or --public-key",
        ]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        sys.stdout.write(f"this is no proof: {type(error).__name__}: {error}\n")
        return 1
    sys.stdout.write("\n".join([*lines, f"problems: {len(wrong)}"]) + "\n")
    return 1 if wrong else 0


def header(path: Path) -> dict[str, Any]:
    """The first line of an export: its format, and in an archive what is on record of earlier
    ones.
    """
    with path.open(encoding="utf-8") as lines:
        found = json.loads(next(lines, "null"))
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise SystemExit(
            f"{path} is no export of a ledger: its first line must be the format {FORMAT!r}."
        )
    return found


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of an export. One line stands for several rows that are in an archive, and has their
    hashes: each of them is a row of the kind "archived".
    """
    header(path)
    with path.open(encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            row = json.loads(line)
            if row["kind"] != "archived":
                yield row
                continue
            for place in range(len(row["hashes"]) // 64):
                digest = row["hashes"][64 * place : 64 * (place + 1)]
                yield {"seq": row["seq"] + place, "kind": "archived", "hash": digest, "body": {}}


def filled(export: Path, archives: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """The rows of an export, those of the archives in their places. A row of an archive keeps the
    hash that the export has, so one that was changed does not fit it.
    """
    held = (row for path in archives for row in read(path) if row["kind"] != "archived")
    part = next(held, None)
    for row in read(export):
        while part is not None and part["seq"] < row["seq"]:
            part = next(held, None)
        if row["kind"] == "archived" and part is not None and part["seq"] == row["seq"]:
            yield {**part, "hash": row["hash"]}
        else:
            yield row


def first_of(archive: Path) -> int:
    """The first row that an archive holds itself: those before are in earlier ones, or stayed."""
    earlier = header(archive).get("archives", [])
    return max((record["last"] for record in earlier), default=0) + 1


def archives_on_record(path: Path) -> list[dict[str, Any]]:
    """What an export says of archives: in the chain, and in the first line of an archive of those
    before it, whose events may come later.
    """
    found = {record["first"]: record for record in header(path).get("archives", [])}
    for row in read(path):
        if row["kind"] == "event" and row["body"]["action"] == "archived":
            found[row["body"]["info"]["first"]] = row["body"]["info"]
    return [found[first] for first in sorted(found)]


def erased_rows(path: Path) -> frozenset[int]:
    """Rows that an erasure lists."""
    listed = (row["body"]["rows"] for row in read(path) if row["kind"] == "erasure")
    return frozenset(seq for rows in listed for seq in rows)


def check_head(export: Path, published: Path, public_key: str | None, findings: Findings) -> None:
    """The export must hold the row of a published head, with its hash, and the ledger's key must
    have signed it.
    """
    if not published.exists():
        findings.refuse(0, f"there is no signed head in {published.name}")
        return
    head = json.loads(published.read_text())
    signed = canonical({name: head[name] for name in ("ledger", "seq", "hash", "at")})
    key, signature = (bytes.fromhex(head[name]) for name in ("public_key", "signature"))
    known = public_key in (None, head["public_key"])
    if not known or not ed25519_verifies(key, signed.encode(), signature):
        findings.refuse(head["seq"], "the published head is not signed by the ledger's key")
    hashes = [row["hash"] for row in read(export) if row["seq"] == head["seq"]]
    if hashes[-1:] != [head["hash"]]:
        what = "the published head is not in this export: it was truncated or rewritten"
        findings.refuse(head["seq"], what)


def check_pack(export: Path, path: Path, public_key: str | None, findings: Findings) -> None:
    """The ledger's key must have signed the list of a pack, which binds the hash of every row
    and every file beside it.
    """
    listed = json.loads(path.read_text(encoding="utf-8"))
    signature = listed.pop("signature", "")
    begun = [
        row["body"].get("info", {}).get("public_key")
        for row in read(export)
        if row["kind"] == "event" and row["body"].get("action") == "genesis"
    ]
    if any(key != listed["public_key"] for key in (*begun, public_key or listed["public_key"])):
        findings.refuse(0, "the pack was signed with another key than the ledger's")
    key = bytes.fromhex(listed["public_key"])
    text = canonical(listed).encode()
    if not ed25519_verifies(key, text, bytes.fromhex(signature)):
        findings.refuse(0, "the list of the pack is not signed by the key that it names")
    if hashes_of(export) != (listed["rows"], listed["hashes"]):
        findings.refuse(0, "the hashes of the rows are not those that the pack was signed with")
    for problem in listed.get("problems", []):
        findings.refuse(problem["row"], f"{problem['what']} (found when the pack was made)")
    if public_key is None:
        findings.remarks.append(
            f"remark: the pack brings its own key, {listed['public_key']}: compare it, or give it "
            "as --public-key"
        )
    folder = path.parent
    beside = {file.name for file in folder.iterdir() if file.name != path.name}
    if "files" not in listed:
        findings.refuse(0, "the list of the pack names no files")
        return
    for name, expected in sorted(listed["files"].items()):
        if name not in beside:
            findings.refuse(0, f"the file {name} of the pack is missing")
        elif file_hash(folder / name) != expected:
            findings.refuse(0, f"the file {name} is not the one that the pack was signed with")
    if export.resolve().parent != folder.resolve() or export.name not in listed["files"]:
        findings.refuse(0, f"the export {export.name} is not the one of this pack")
    others = sorted(beside - listed["files"].keys())
    if others:
        findings.remarks.append(f"remark: the pack was not signed with {', '.join(others)}")
    findings.remarks.append(f"files of the pack checked: {len(listed['files'])}")
    if not listed.get("problems"):
        check_tables(export, folder, listed, findings)


# Tables and lists of a pack, computed again from the chain

DECISION_COLUMNS = (
    "row", "key", "at", "window", "policy", "epoch", "accept", "acceptance", "propensity", "u",
    "audit", "audit_weight", "group", "group_late", "status", "label", "settled", "overruled",
    "erased",
)  # fmt: skip
OVERRULED_COLUMNS = ("group", "drawn", "people_did", "decisions")
SELECTION_COLUMNS = ("group", "people", "accepted", "rate", "ratio", "four_fifths")
Line = tuple[object, ...]
"""The cells of a line of a CSV file."""


@dataclass
class Decided:
    """One decision and what is known of it, by the chain alone."""

    seq: int
    at: float
    key: str | None
    window: str
    policy: str
    epoch: int
    accept: bool
    acceptance: float
    u: float
    audit: bool
    audit_weight: float
    group: Any
    group_late: bool
    status: str
    label: int
    settled: int
    overruled: bool
    erased: bool


def standing(accept: bool, reports: Iterable[tuple[str, str]]) -> tuple[str, int, bool]:
    """(status, label, whether people overruled it) from (kind, value) of the reports."""
    reported: dict[str, set[str]] = {"label": set(), "settlement": set(), "override": set()}
    for kind, value in reports:
        reported.setdefault(kind, set()).add(value)
    overruled = ("reject" if accept else "accept") in reported["override"]
    if not accept:
        return "rejected", 0, overruled
    if overruled:
        return "overruled", 0, True
    if not reported["label"]:
        return "pending", 0, False
    for values in (reported["label"], reported["settlement"]):
        if len(values) == 1:
            return "resolved", int(next(iter(values))), False
    return "disputed", 0, False


def decided_in(rows: Sequence[dict[str, Any]], listed: dict[str, Any]) -> list[Decided]:
    """The decisions of a pack: those of its product and period, with what was reported on them."""
    start, end = listed["period"]
    reports: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] == "outcome":
            reports.setdefault(row["body"]["decision"], []).append(row)
    found = []
    for row in rows:
        body = row["body"]
        if row["kind"] != "decision" or not start <= row["at"] < end:
            continue
        if body["product"] != listed["product"]:
            continue
        window = listed["maturity"]  # None: a label counts whenever it comes
        mature = float("inf") if window is None else row["at"] + window
        about_it = reports.get(row["seq"], [])
        every = [(one["body"]["report"], one["body"]["value"]) for one in about_it]
        early = [pair for pair, one in zip(every, about_it, strict=True) if one["at"] <= mature]
        status, label, overruled = standing(body["accept"], every)
        opened = row.get("open", {})
        erased = "who" not in opened
        group = opened.get("group", {}).get("value")
        late = [
            one["open"]["group"]["value"]
            for one in about_it
            if one["body"]["report"] == "group" and one["at"] <= mature and one.get("open")
        ]
        came_late = group is None and len(late) == 1 and not erased
        names = ("window", "policy", "epoch", "accept", "acceptance", "u", "audit", "audit_weight")
        found.append(
            Decided(
                seq=row["seq"],
                at=float(row["at"]),
                key=None if erased else opened["who"]["value"]["key"],
                group=late[0] if came_late else group,
                group_late=came_late,
                status=status,
                label=label,
                settled=standing(body["accept"], early)[1],
                overruled=overruled,
                erased=erased,
                **{name: body[name] for name in names},
            )
        )
    return found


def decision_line(row: Any) -> Line:
    """The cells of a decision."""
    propensity = row.acceptance if row.accept else 1.0 - row.acceptance
    return (
        row.seq, row.key or "", row.at, row.window, row.policy, row.epoch, int(row.accept),
        repr(row.acceptance), repr(propensity), repr(row.u), int(row.audit), repr(row.audit_weight),
        "" if row.group is None else row.group, int(row.group_late), row.status, row.label,
        row.settled, int(row.overruled), int(row.erased),
    )  # fmt: skip


def selection(rows: Iterable[Any]) -> list[Line]:
    """(group, people, accepted, rate, ratio to the highest rate, whether that is at least 4/5)."""
    people: dict[Any, list[bool]] = {}
    for row in rows:
        if row.group is not None:
            people.setdefault(row.group, []).append(row.accept)
    rates = {group: sum(accepted) / len(accepted) for group, accepted in people.items()}
    top = max(rates.values(), default=0.0)
    lines: list[Line] = []
    for group in sorted(people, key=str):
        rate = rates[group]
        accepted = people[group]
        ratio = rate / top if top > 0 else 1.0
        passes = "yes" if ratio >= 0.8 else "no"
        lines.append((group, len(accepted), sum(accepted), f"{rate:.6f}", f"{ratio:.4f}", passes))
    return lines


IMPACT_FIGURES = (
    "people", "selected", "rate", "ratio", "excluded", "more_selections", "standard_deviations",
)  # fmt: skip
"""What an impact table says of a group, besides its interval and what follows from it."""


def impact_in_file(path: Path) -> Any:
    """(people, accepted, people of unknown group, {group: figures}) as the impact table says; None
    if it says something else.
    """
    table = document(path)
    try:
        cells = {one["group"]: tuple(one[name] for name in IMPACT_FIGURES) for one in table["rows"]}
        if len(cells) < len(table["rows"]) or not all(map(fits_its_interval, table["rows"])):
            return None
        return table["people"], table["selected"], sum(table["unknown"].values()), cells
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def fits_its_interval(row: dict[str, Any]) -> bool:
    """Whether the interval of a group holds its ratio, and the status is what the interval says.
    (The ends are evenhand's: exact intervals need more than the standard library.)
    """
    if row["ratio"] is None:
        return row["ratio_interval"] is None and row["status"] is None
    low, high = row["ratio_interval"]
    high = math.inf if high is None else high
    says = "within" if low >= 0.8 else "above" if high < 0.8 else "not shown"
    return bool(0 <= low <= row["ratio"] + 1e-9 <= high + 2e-9 and row["status"] == says)


def impact_found(rows: Sequence[Any]) -> Any:
    """The same from the decisions, in whole numbers and fractions.

    A group with less than 2% of the people whose group is known takes no part. The others have the
    ratio of their rate to the largest of their rates, the fewest further selections that bring it
    to 4/5, and their distance from that group in standard deviations of the pooled rate.
    """
    accepted: dict[str, list[bool]] = {}
    for row in rows:
        if row.group is not None:
            accepted.setdefault(str(row.group), []).append(row.accept)
    counts = {group: (sum(accepted[group]), len(accepted[group])) for group in sorted(accepted)}
    known = sum(n for _, n in counts.values())
    part = [group for group, (_, n) in counts.items() if 50 * n >= known]
    best = max(part, key=lambda group: Fraction(*counts[group]), default=None)
    y, m = (0, 0) if best is None else counts[best]
    cells: dict[str, tuple[Any, ...]] = {}
    for group, (x, n) in counts.items():
        ratio = deviations = None
        missing = 0
        if group in part and y > 0:
            share = Fraction(x, n) / Fraction(y, m)
            ratio = float(share)
            missing = max(0, math.ceil(Fraction(4, 5) * Fraction(y, m) * n) - x)
            pooled = (x + y) / (n + m)
            spread = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
            if group != best and spread > 0:
                deviations = (x / n - y / m) / spread
        cells[group] = (n, x, x / n, ratio, group not in part, missing, deviations)
    return len(rows), sum(row.accept for row in rows), len(rows) - known, cells


def same_figures(one: Any, other: Any) -> bool:
    """Whether two results are the same, up to the last digits of their fractions."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-9
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_figures(one[k], other[k]) for k in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same_figures, one, other))
    return bool(one == other)


def overruled(rows: Iterable[Any]) -> list[Line]:
    """(group, what was drawn, what people did, decisions); the group is empty where it is unknown
    or was erased.
    """
    counts = Counter((row.group, row.accept) for row in rows if row.overruled)
    words = {True: ("accept", "reject"), False: ("reject", "accept")}
    return [
        ("" if group is None else group, *words[accept], counts[group, accept])
        for group, accept in sorted(counts, key=str)
    ]


def csv_text(header: Sequence[str], lines: Iterable[Line]) -> str:
    """A CSV file; a text that a spreadsheet would take for a formula gets an apostrophe."""

    def cell(x: object) -> object:
        if not (isinstance(x, str) and x.startswith(("=", "@", "\t", "\r", "+", "-"))):
            return x
        return x if re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", x) else f"'{x}"

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(map(cell, line) for line in lines)
    return text.getvalue()


def tables_of(rows: Sequence[Any]) -> dict[str, str]:
    """The tables of a pack, by name, from its decisions."""
    overrides = [row for row in rows if row.overruled]
    return {
        "decisions.csv": csv_text(DECISION_COLUMNS, map(decision_line, rows)),
        "overrides.csv": csv_text(DECISION_COLUMNS, map(decision_line, overrides)),
        "overruled.csv": csv_text(OVERRULED_COLUMNS, overruled(rows)),
        "selection.csv": csv_text(SELECTION_COLUMNS, selection(rows)),
    }


def lists_of(
    rows: Sequence[dict[str, Any]], listed: dict[str, Any], secrets: Iterable[str]
) -> dict[str, Any]:
    """What the JSON files of a pack must say, by name, from the chain."""
    start, end = listed["period"]
    about = {"product": listed["product"]}
    mine = [row for row in rows if {name: row["body"].get(name) for name in about} == about]
    dated = [row for row in mine if start <= row["at"] < end]
    policies = [row for row in mine if row["kind"] == "policy"]
    lineage = [row["body"] for row in policies if row["body"]["lineage"]]
    newest = max(lineage, key=lambda body: int(body["epoch"]), default=None)
    return {
        "events.json": [
            {"seq": row["seq"], "at": row["at"], **row["body"]}
            for row in dated
            if row["kind"] == "event"
        ],
        "certificates.json": {
            "certificates": [
                {
                    "seq": row["seq"],
                    "at": row["at"],
                    "epoch": row["body"]["epoch"],
                    "document": row["body"]["certificate"],
                }
                for row in dated
                if row["kind"] == "certificate"
            ],
            "delta_ledger": [] if newest is None else newest["info"].get("delta", []),
        },
        "policies.json": [{**row["body"], "row": row["seq"]} for row in policies],
        "randomisation.json": {
            "windows": [
                {
                    "name": row["body"]["window"],
                    **{name: row["body"][name] for name in ("starts", "ends", "commitment")},
                    "revealed": row["body"]["window"] in secrets,
                }
                for row in rows
                if row["kind"] == "window"
            ]
        },
    }


def document(path: Path) -> Any:
    """What a JSON file says; None if it is none, or missing."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def check_tables(export: Path, folder: Path, listed: dict[str, Any], findings: Findings) -> None:
    """Every table and list that people read says what the chain says."""
    rows = list(read(export))
    decided = decided_in(rows, listed)
    if not same_figures(impact_in_file(folder / "impact.json"), impact_found(decided)):
        findings.refuse(0, "impact.json is not what the chain says")
    found = tables_of(decided)
    for name, expected in found.items():
        text = (
            (folder / name).read_bytes().decode(errors="replace")
            if (folder / name).exists()
            else ""
        )
        if text != expected:
            pairs = zip(text.split("\r\n"), expected.split("\r\n"), strict=False)
            place = next((i for i, (one, other) in enumerate(pairs, 1) if one != other), "the last")
            findings.refuse(0, f"line {place} of {name} is not what the chain says")
    lists = lists_of(rows, listed, document(folder / "secrets.json") or {})
    for name, expected_list in lists.items():
        found_list = document(folder / name)
        if isinstance(found_list, list):  # words are evenhand's own reading of a policy
            found_list = [{k: v for k, v in one.items() if k != "words"} for one in found_list]
        elif isinstance(found_list, dict):
            found_list = {part: found_list.get(part) for part in expected_list}
        if found_list != expected_list:
            findings.refuse(0, f"{name} is not what the chain says")
    findings.remarks.append(f"tables and lists computed again: {len(found) + len(lists) + 1}")


def main(words: list[str] | None = None) -> int:
    """0 if every requirement holds on every row."""
    parser = argparse.ArgumentParser(
        description="Check an exported ledger with the standard library alone."
    )
    parser.add_argument("export", type=Path, nargs="?")
    parser.add_argument("--proof", type=Path, help="check the proof of one row instead")
    parser.add_argument("--public-key", metavar="HEX", help="the ledger's key, from elsewhere")
    parser.add_argument(
        "--secret", action="append", default=[], metavar="WINDOW=HEX", help="a revealed secret"
    )
    parser.add_argument("--secrets", type=Path, help="a JSON file {window: hex}")
    parser.add_argument("--head", type=Path, help="a published signed head")
    parser.add_argument("--pack", type=Path, help="the signed list of a pack: rows and files")
    parser.add_argument(
        "--archive", type=Path, action="append", default=[], help="rows that are not in the export"
    )
    arguments = parser.parse_args(words)
    if arguments.proof is not None:
        return prove(arguments.proof, arguments.public_key)
    if arguments.export is None:
        parser.error("give an export, or --proof FILE")
    given = dict(word.split("=", 1) for word in arguments.secret)
    given |= json.loads(arguments.secrets.read_text()) if arguments.secrets else {}
    secrets = {name: bytes.fromhex(secret) for name, secret in given.items()}
    archives = sorted(arguments.archive, key=first_of)
    rows = filled(arguments.export, archives)
    erased = erased_rows(arguments.export)
    findings = check(rows, secrets, erased, archives_on_record(arguments.export))
    if arguments.head:
        check_head(arguments.export, arguments.head, arguments.public_key, findings)
    if arguments.pack:
        check_pack(arguments.export, arguments.pack, arguments.public_key, findings)
    elif (arguments.export.parent / "pack.json").exists():
        findings.remarks.append(
            "remark: give --pack pack.json, and the files beside it are checked"
        )
    sys.stdout.write("\n".join(findings.lines()) + "\n")
    return 1 if findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
