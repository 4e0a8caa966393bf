"""The stand-alone verifier of an exported ledger. It needs the standard library alone.

    python standalone_verifier.py export.jsonl --secret w689=6f1c... [--secrets FILE] [--head FILE]
    python standalone_verifier.py --proof proof.json [--public-key HEX]

It checks, row by row,

    hash_n = SHA-256(hash_{n-1} | canonical JSON of {at, body, kind, seq}),  hash_0 = 32 zero bytes,
    SHA-256(secret of the window) = the commitment in the chain before the window's first draw,
    U = first 53 bits of HMAC-SHA256(secret, tenant | person | product | window),
    accept = (U < acceptance),   audit = (U < audit_weight),
    first = (the person had not applied for the product in this window before),

(a row of another tenant is given by its hash alone; pack.json, signed, binds all hashes, and every
file of a pack by its SHA-256),
that every opened field is the one that was committed to, that windows follow the plan that is in
the chain, that the acceptance is the policy's where the features are opened, and that every policy
of a lineage (from rules 2 on) names the SHA-256 of the checkpoint that stands before it. An auditor
can read all of this file; its functions are copies of those by which the ledger writes, and tests
compare the two.
"""

import argparse
import base64
import hashlib
import hmac
import json
import math
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = "evenhand ledger export 1"
GENESIS = bytes(32)
"""hash_0."""

PREFIX = 8
"""Bytes of the hash of each row that a witness is told, to find the row."""

canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""The one text of a JSON value: sorted names, no spaces, ASCII, no NaN."""


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
    """A law that a row of the ledger breaks.

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
    hidden: int = 0
    secret_missing: int = 0
    acceptances: int = 0
    rules_unknown: int = 0
    draws: list[float] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, seq: int, what: str) -> None:
        """One more problem."""
        self.problems.append(Problem(seq, what))

    def lines(self) -> list[str]:
        """What was checked, and the first 100 problems, in words."""
        return [
            f"rows checked: {self.rows:,} ({self.hidden:,} of others, by their hash alone)",
            f"draws recomputed: {self.recomputed:,} of {self.decisions - self.erased:,} "
            f"({self.erased:,} erased, {self.secret_missing:,} without a secret)",
            f"acceptances recomputed: {self.acceptances:,} of {self.decisions:,} "
            f"({self.rules_unknown:,} by rules that are no plain data)",
            f"uniformity of first draws: sqrt(n) D = {uniformity(self.draws):.3f} "
            "(above 1.95 once in 1,000)",
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
    """Of each product: checkpoints that wait for a policy, and the rules of the newest policy."""

    waiting: dict[tuple[str, str, int], tuple[int, str]] = field(default_factory=dict)
    rules: dict[tuple[str, str], int] = field(default_factory=dict)

    def checkpoint(self, seq: int, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a checkpoint."""
        if hashlib.sha256(canonical(body["checkpoint"]).encode()).hexdigest() != body["digest"]:
            yield "the checkpoint's digest is not the hash of its document"
        self.waiting[body["tenant"], body["product"], body["epoch"]] = (seq, body["digest"])

    def policy(self, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a policy.

        From rules 2 on, a policy of the lineage has its checkpoint before it; and no policy has
        older rules than the one before it.
        """
        if not body["lineage"]:
            return
        product, rules = (body["tenant"], body["product"]), body["info"].get("rules", 1)
        if rules < self.rules.get(product, 1):
            yield "its rules are older than those of the policy before it"
        _, digest = self.waiting.pop((*product, body["epoch"]), (0, None))
        if rules >= 2 and (digest is None or digest != body["info"].get("checkpoint")):
            yield "its checkpoint is not in the chain before it"
        self.rules[product] = max(rules, self.rules.get(product, 1))

    def end(self) -> Iterator[tuple[int, str]]:
        """Checkpoints that belong to no policy."""
        for seq, _ in sorted(self.waiting.values()):
            yield seq, "the checkpoint belongs to no policy"


@dataclass
class Windows:
    """The plans of windows, and the windows that were opened under them."""

    plans: list[dict[str, Any]] = field(default_factory=list)
    ends: float = -math.inf

    def event(self, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a plan: it has the next number, and begins where a window ends."""
        info = body["info"]
        plan = info.get("windows") if body["action"] == "genesis" else info
        if body["action"] not in ("genesis", "window_plan") or plan is None:
            return
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
        origin, length = plan["origin"], plan["length"]
        number = math.floor((now - origin) / length)
        number += origin + (number + 1) * length <= now
        number -= origin + number * length > now
        name = f"w{number}" if plan["number"] == 0 else f"p{plan['number']}w{number}"
        return name, origin + number * length, origin + (number + 1) * length

    def window(self, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a window: it is the next one of the plan, and overlaps no other."""
        name, starts, ends = body["window"], body["starts"], body["ends"]
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
    keys: set[str] = field(default_factory=set)
    slots: set[str] = field(default_factory=set)
    slot_of: dict[str, str] = field(default_factory=dict)


def check(
    rows: Iterable[dict[str, Any]], secrets: dict[str, bytes], erased: frozenset[int] = frozenset()
) -> Findings:
    """Every law on every row.

    `erased`: rows whose personal fields were destroyed, as the erasure rows list them.
    """
    findings, state = Findings(), State(secrets, erased)
    for row in rows:
        check_place(row, state, findings)
        if "kind" not in row:
            continue
        seq, kind, body = row["seq"], row["kind"], row["body"]
        # the laws of the kinds that have some
        broken: Iterable[str] = ()
        if kind == "window":
            check_window(seq, body, state, findings)
        elif kind == "policy":
            if hashlib.sha256(canonical(body["policy"]).encode()).hexdigest() != body["id"]:
                findings.refuse(seq, "the policy's id is not the hash of its document")
            broken = (*state.lineages.policy(body), *state.models.document(body["policy"]))
            state.policies[body["id"]] = body["policy"]
        elif kind == "event":
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
        for what in broken:
            findings.refuse(seq, what)
    check_end(state, findings)
    return findings


def check_place(row: dict[str, Any], state: State, findings: Findings) -> None:
    """No row is missing, changed or out of order, and time does not run backwards.

    A row of another tenant is given by its hash alone, and keeps its place. That the hash is the
    ledger's is said by the signed list of a pack.
    """
    seq = row["seq"]
    findings.rows += 1
    if seq != state.seq + 1:
        findings.refuse(seq, f"row {state.seq + 1} was expected here")
    state.seq = seq
    if "kind" not in row:
        findings.hidden += 1
        state.previous = bytes.fromhex(row["hash"])
        return
    if row["at"] < state.at:
        findings.refuse(seq, "its time is before that of the row before")
    state.at, state.previous = row["at"], link(state.previous, row)
    if state.previous.hex() != row["hash"]:
        findings.refuse(seq, "its hash is not that of its content")
        state.previous = bytes.fromhex(row["hash"])


def hashes_of(path: Path) -> tuple[int, str]:
    """(number of rows, SHA-256 of all their hashes one after another)."""
    number, digest = 0, hashlib.sha256()
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
    seq, body = row["seq"], row["body"]
    u, acceptance, accept = body["u"], body["acceptance"], body["accept"]
    propensity = acceptance if accept else 1.0 - acceptance
    laws = {
        "its key was decided before": body["key"] not in state.keys,
        "its policy had not been published": body["policy"] in state.policies,
        "the decision is not U < acceptance": accept == (u < acceptance),
        "the audit flag is not U < audit_weight": body["audit"] == (u < body["audit_weight"]),
        "the propensity is not that of the decision": body["propensity"] == propensity,
        "the flag for a first application is wrong": body["first"]
        == (body["slot"] not in state.slots),
    }
    for what, holds in laws.items():
        if not holds:
            findings.refuse(seq, what)
    findings.decisions += 1
    state.keys.add(body["key"])
    state.slots.add(body["slot"])
    if body["first"]:
        findings.draws.append(u)
    for name, part in row.get("open", {}).items():
        if commitment(bytes.fromhex(part["salt"]), part["value"]) != body["commit"].get(name):
            findings.refuse(seq, f"the opened {name} is not what was committed to")
    window = state.windows.get(body["window"])
    if window is None:
        findings.refuse(seq, "no secret had been committed to for its window")
    elif not window["starts"] <= row["at"] < window["ends"]:
        findings.refuse(seq, "it lies outside its window")


def check_draw(row: dict[str, Any], state: State, findings: Findings) -> None:
    """U is the HMAC of the window's secret and the person, and nobody counts twice."""
    seq, body, who = row["seq"], row["body"], row.get("open", {}).get("who")
    secret = state.secrets.get(body["window"])
    if who is None:
        findings.erased += seq in state.erased
        if seq not in state.erased and secret is not None:
            findings.refuse(seq, "the person is not opened, although no erasure lists the row")
    elif secret is None:
        findings.secret_missing += 1
    else:
        findings.recomputed += 1
        parts = (body["tenant"], who["value"]["person"], body["product"], body["window"])
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
    seen, total = group if policy["group_use"] == "decide" else None, 0.0
    for parts in kinds.values():
        for part in parts:
            if accepts(part["hypothesis"], features, seen):
                total += part["weight"]
    return min(total, 1.0)


def check_acceptance(row: dict[str, Any], state: State, findings: Findings) -> None:
    """The probability is the policy's, where the features are opened and the rules are data."""
    body, opened = row["body"], row.get("open", {})
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


# Proofs: a Merkle tree over the hashes of the rows (RFC 6962), whose root is in a signed note (C2SP
# tlog-checkpoint): origin, number of rows, root, and signatures. Witnesses may cosign it.


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
    here, last, found = index, size - 1, leaf
    for other in path:
        if last == 0:
            return None
        if here % 2 or here == last:
            found = node_hash(other, found)
            while not here % 2 and here:
                here, last = here >> 1, last >> 1
        else:
            found = node_hash(found, other)
        here, last = here >> 1, last >> 1
    return found if last == 0 else None


def consistent(old: tuple[int, bytes], new: tuple[int, bytes], path: list[bytes]) -> bool:
    """Whether the tree (size, root) `new` begins with all of the tree `old`."""
    (size, root), (newer, target) = old, new
    if size == newer or size == 0:
        return not path and (size == 0 or root == target)
    if size > newer or not path:
        return False
    here, last, rest = size - 1, newer - 1, list(path)
    while here % 2:
        here, last = here >> 1, last >> 1
    first = root if here == 0 else rest.pop(0)
    one, two = first, first
    for other in rest:
        if last == 0:
            return False
        if here % 2 or here == last:
            one, two = node_hash(other, one), node_hash(other, two)
            while not here % 2 and here:
                here, last = here >> 1, last >> 1
        else:
            two = node_hash(two, other)
        here, last = here >> 1, last >> 1
    return last == 0 and (one, two) == (root, target)


@dataclass(frozen=True)
class Note:
    """A checkpoint: the text that is signed, and (name, 4 bytes of key id, signature) of each."""

    text: str
    signatures: tuple[tuple[str, bytes, bytes], ...]

    @classmethod
    def parse(cls, note: str) -> "Note":
        """ValueError if it is none."""
        text, _, lines = note.partition("\n\n")
        signatures = []
        for line in lines.splitlines():
            dash, name, coded = line.split(" ")
            if dash != "\u2014":
                raise ValueError("a signature line begins with a dash")
            raw = base64.b64decode(coded, validate=True)
            signatures.append((name, raw[:4], raw[4:]))
        found = cls(text + "\n", tuple(signatures))
        if len(found.text.splitlines()) < 3 or len(found.root) != 32 or found.size < 0:
            raise ValueError("a checkpoint has an origin, a size and a root")
        return found

    @property
    def origin(self) -> str:
        """Whose tree it is."""
        return self.text.splitlines()[0]

    @property
    def size(self) -> int:
        """How many rows it has."""
        return int(self.text.splitlines()[1])

    @property
    def root(self) -> bytes:
        """Its root."""
        return base64.b64decode(self.text.splitlines()[2], validate=True)

    def signed_by(self, public_key: bytes) -> bool:
        """Whether the ledger's key (Ed25519) signed it under the name of its origin."""
        key = key_id(self.origin, 1, public_key)
        return any(
            (name, number) == (self.origin, key)
            and ed25519_verifies(public_key, self.text.encode(), signature)
            for name, number, signature in self.signatures
        )

    def cosigned_by(self, name: str, public_key: bytes) -> int | None:
        """When a witness cosigned it (cosignature/v1), in seconds; None if it did not."""
        for other, number, signature in self.signatures:
            if (other, number) == (name, key_id(name, 4, public_key)) and len(signature) == 72:
                at = int.from_bytes(signature[:8], "big")
                message = f"cosignature/v1\ntime {at}\n{self.text}".encode()
                if ed25519_verifies(public_key, message, signature[8:]):
                    return at
        return None


def key_id(name: str, algorithm: int, public_key: bytes) -> bytes:
    """SHA-256(name | newline | algorithm | key)[:4]; 1 is Ed25519, 4 a cosignature by it."""
    text = name.encode() + b"\n" + bytes([algorithm]) + public_key
    return hashlib.sha256(text).digest()[:4]


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
    c, d = 2 * one[3] * other[3] * D % P, 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number: int, point: Point) -> Point:
    """number * point."""
    found: Point = (0, 1, 1, 0)
    while number:
        found = point_sum(found, point) if number & 1 else found
        point, number = point_sum(point, point), number >> 1
    return found


def point_of(code: bytes) -> Point | None:
    """The point with this code of 32 bytes; None if there is none."""
    y = int.from_bytes(code, "little")
    sign, y = y >> 255, y & (2**255 - 1)
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
    a, r = point_of(public_key), point_of(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    base = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
    if a is None or r is None or base is None or s >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public_key + message).digest()
    left, right = times(s, base), point_sum(r, times(int.from_bytes(digest, "little") % L, a))
    same_x = (left[0] * right[2] - right[0] * left[2]) % P == 0
    return same_x and (left[1] * right[2] - right[1] * left[2]) % P == 0


def check_proof(proof: dict[str, Any], known_key: str | None = None) -> list[str]:
    """What is wrong with the proof that one row is in the ledger; `known_key`: the ledger's public
    key, in hexadecimal, from elsewhere.
    """
    row, wrong = proof["row"], []
    note = Note.parse(proof["checkpoint"])
    key = bytes.fromhex(known_key or proof["public_key"])
    if not note.signed_by(key):
        wrong.append("the ledger's key did not sign the checkpoint")
    if not note.origin.endswith(proof["ledger"]):
        wrong.append("the checkpoint is that of another ledger")
    leaf = leaf_hash(link(bytes.fromhex(proof["previous"]), row))
    path = [base64.b64decode(part) for part in proof["path"]]
    if included(leaf, row["seq"] - 1, note.size, path) != note.root:
        wrong.append(f"row {row['seq']} is not in the tree of the checkpoint")
    for name, part in row.get("open", {}).items():
        found = commitment(bytes.fromhex(part["salt"]), part["value"])
        if found != row["body"]["commit"].get(name):
            wrong.append(f"the opened {name} is not what was committed to")
    if "since" in proof:
        old = Note.parse(proof["since"]["checkpoint"])
        way = [base64.b64decode(part) for part in proof["since"]["path"]]
        if not (old.signed_by(key) and old.origin == note.origin):
            wrong.append("the ledger's key did not sign the earlier checkpoint")
        if not consistent((old.size, old.root), (note.size, note.root), way):
            wrong.append("the tree of the checkpoint does not begin with that of the earlier one")
    return wrong


def prove(path: Path, known_key: str | None) -> int:
    """Print what a proof shows; 0 if it holds."""
    proof = json.loads(path.read_text(encoding="utf-8"))
    try:
        wrong = check_proof(proof, known_key)
        note = Note.parse(proof["checkpoint"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        sys.stdout.write(f"this is no proof: {type(error).__name__}: {error}\n")
        return 1
    lines = wrong or [
        f"row {proof['row']['seq']} is one of the {note.size:,} rows of the ledger {note.origin}",
        "the key of the checkpoint was given"
        if known_key
        else f"the proof brings its own key, {proof['public_key']}: compare it, or --public-key",
    ]
    sys.stdout.write("\n".join([*lines, f"problems: {len(wrong)}"]) + "\n")
    return 1 if wrong else 0


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of an export."""
    with path.open(encoding="utf-8") as lines:
        if json.loads(next(lines, "null")) != {"format": FORMAT}:
            raise SystemExit(
                f"{path} is no export of a ledger: its first line must be the format {FORMAT!r}."
            )
        for line in lines:
            yield json.loads(line)


def erased_rows(path: Path) -> frozenset[int]:
    """Rows that an erasure lists."""
    listed = (row["body"]["rows"] for row in read(path) if row.get("kind") == "erasure")
    return frozenset(seq for rows in listed for seq in rows)


def check_head(export: Path, published: Path, public_key: str | None, findings: Findings) -> None:
    """The export must hold the row of a published head, with its hash, and the ledger's key must
    have signed it.
    """
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
    """The ledger's key must have signed the list of a pack, which binds the hash of every row (and
    so those that are given by their hash alone, and the rows after them) and every file beside it.
    """
    listed = json.loads(path.read_text(encoding="utf-8"))
    signature = listed.pop("signature", "")
    begun = [
        row["body"].get("info", {}).get("public_key")
        for row in read(export)
        if row.get("kind") == "event" and row["body"].get("action") == "genesis"
    ]
    if any(key != listed["public_key"] for key in (*begun, public_key or listed["public_key"])):
        findings.refuse(0, "the pack was signed with another key than the ledger's")
    key, text = bytes.fromhex(listed["public_key"]), canonical(listed).encode()
    if not ed25519_verifies(key, text, bytes.fromhex(signature)):
        findings.refuse(0, "the list of the pack is not signed by the key that it names")
    if hashes_of(export) != (listed["rows"], listed["hashes"]):
        findings.refuse(0, "the hashes of the rows are not those that the pack was signed with")
    if public_key is None:
        findings.remarks.append(
            f"remark: the pack brings its own key, {listed['public_key']}: compare it, or give it "
            "as --public-key"
        )
    folder = path.parent
    beside = {file.name for file in folder.iterdir() if file.name != path.name}
    if "files" not in listed:  # packs were made so until their files were signed
        findings.remarks.append(
            "remark: this pack was made before packs bound their readable files: the chain is "
            f"checked, and these are not: {', '.join(sorted(beside - {export.name}))}"
        )
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


def main(words: list[str] | None = None) -> int:
    """0 if every law holds on every row."""
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
    arguments = parser.parse_args(words)
    if arguments.proof is not None:
        return prove(arguments.proof, arguments.public_key)
    if arguments.export is None:
        parser.error("give an export, or --proof FILE")
    given = dict(word.split("=", 1) for word in arguments.secret)
    given |= json.loads(arguments.secrets.read_text()) if arguments.secrets else {}
    secrets = {name: bytes.fromhex(secret) for name, secret in given.items()}
    findings = check(read(arguments.export), secrets, erased_rows(arguments.export))
    if arguments.head:
        check_head(arguments.export, arguments.head, arguments.public_key, findings)
    if arguments.pack:
        check_pack(arguments.export, arguments.pack, arguments.public_key, findings)
    elif findings.hidden:
        findings.refuse(
            0, "rows are given by their hash alone; give --pack pack.json, which binds them"
        )
    elif (arguments.export.parent / "pack.json").exists():
        findings.remarks.append(
            "remark: give --pack pack.json, and the files beside it are checked"
        )
    sys.stdout.write("\n".join(findings.lines()) + "\n")
    return 1 if findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
