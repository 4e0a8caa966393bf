"""The stand-alone verifier of an exported ledger. It needs the standard library alone.

    python verifier.py export.jsonl --secret w689=6f1c... [--secrets FILE] [--head FILE]

It checks, row by row,

    hash_n = SHA-256(hash_{n-1} | canonical JSON of {at, body, kind, seq}),  hash_0 = 32 zero bytes,
    SHA-256(secret of the window) = the commitment in the chain before the window's first draw,
    U = first 53 bits of HMAC-SHA256(secret, tenant | person | product | window),
    accept = (U < acceptance),   audit = (U < audit_weight),
    first = (the person had not applied for the product in this window before),

that every opened field is the one that was committed to, and that every policy of a lineage (from
rules 2 on) names the SHA-256 of the checkpoint that stands before it. An auditor can read all of
this file; its functions are copies of those by which the ledger writes, and tests compare the two.
"""

import argparse
import hashlib
import hmac
import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = "evenhand ledger export 1"
GENESIS = bytes(32)
"""hash_0."""

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
    secret_missing: int = 0
    draws: list[float] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, seq: int, what: str) -> None:
        """One more problem."""
        self.problems.append(Problem(seq, what))


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
class State:
    """What the rows so far have established."""

    secrets: dict[str, bytes]
    erased: frozenset[int] = frozenset()
    previous: bytes = GENESIS
    seq: int = 0
    at: float = -math.inf
    windows: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: set[str] = field(default_factory=set)
    lineages: Lineages = field(default_factory=Lineages)
    keys: set[str] = field(default_factory=set)
    slots: set[str] = field(default_factory=set)
    slot_of: dict[str, str] = field(default_factory=dict)


def check(
    rows: Iterable[dict[str, Any]],
    secrets: dict[str, bytes],
    erased: frozenset[int] = frozenset(),
) -> Findings:
    """Every law on every row.

    `erased`: rows whose personal fields were destroyed, as the erasure rows list them.
    """
    found, state = Findings(), State(secrets, erased)
    for row in rows:
        seq, kind, body = row["seq"], row["kind"], row["body"]
        found.rows += 1
        # the chain: no row is missing, changed or out of order, and time does not run backwards
        if seq != state.seq + 1:
            found.refuse(seq, f"row {state.seq + 1} was expected here")
        if row["at"] < state.at:
            found.refuse(seq, "its time is before that of the row before")
        state.previous = link(state.previous, row)
        if state.previous.hex() != row["hash"]:
            found.refuse(seq, "its hash is not that of its content")
            state.previous = bytes.fromhex(row["hash"])
        state.seq, state.at = seq, row["at"]
        # the laws of the kinds that have some
        if kind == "window":
            check_window(seq, body, state, found)
        elif kind == "policy":
            if hashlib.sha256(canonical(body["policy"]).encode()).hexdigest() != body["id"]:
                found.refuse(seq, "the policy's id is not the hash of its document")
            for what in state.lineages.policy(body):
                found.refuse(seq, what)
            state.policies.add(body["id"])
        elif kind == "checkpoint":
            for what in state.lineages.checkpoint(seq, body):
                found.refuse(seq, what)
        elif kind == "decision":
            check_decision(row, state, found)
            check_draw(row, state, found)
    # a checkpoint without a policy would be believed later
    for seq, what in state.lineages.end():
        found.refuse(seq, what)
    # a secret that fits no window would make the check look stronger than it is
    for name in sorted(state.secrets.keys() - state.windows.keys()):
        what = f"a secret was given for window {name}, which the ledger does not have"
        found.refuse(state.seq, what)
    return found


def check_window(seq: int, body: dict[str, Any], state: State, found: Findings) -> None:
    """A window is opened once, and its secret is the one that was committed to."""
    name = body["window"]
    if name in state.windows:
        found.refuse(seq, f"window {name} was opened before")
    state.windows[name] = body
    secret = state.secrets.get(name)
    if secret is not None and hashlib.sha256(secret).hexdigest() != body["commitment"]:
        found.refuse(seq, f"the secret of window {name} is not the one that was committed to")


def check_decision(row: dict[str, Any], state: State, found: Findings) -> None:
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
            found.refuse(seq, what)
    found.decisions += 1
    state.keys.add(body["key"])
    state.slots.add(body["slot"])
    if body["first"]:
        found.draws.append(u)
    for name, part in row.get("open", {}).items():
        if commitment(bytes.fromhex(part["salt"]), part["value"]) != body["commit"].get(name):
            found.refuse(seq, f"the opened {name} is not what was committed to")
    window = state.windows.get(body["window"])
    if window is None:
        found.refuse(seq, "no secret had been committed to for its window")
    elif not window["starts"] <= row["at"] < window["ends"]:
        found.refuse(seq, "it lies outside its window")


def check_draw(row: dict[str, Any], state: State, found: Findings) -> None:
    """U is the HMAC of the window's secret and the person, and nobody counts twice."""
    seq, body, who = row["seq"], row["body"], row.get("open", {}).get("who")
    secret = state.secrets.get(body["window"])
    if who is None:
        found.erased += seq in state.erased
        if seq not in state.erased and secret is not None:
            found.refuse(seq, "the person is not opened, although no erasure lists the row")
    elif secret is None:
        found.secret_missing += 1
    else:
        found.recomputed += 1
        parts = (body["tenant"], who["value"]["person"], body["product"], body["window"])
        if uniform(secret, *parts) != body["u"]:
            found.refuse(seq, "U is not the HMAC of the window's secret and the person")
        if state.slot_of.setdefault("\x1f".join(parts), body["slot"]) != body["slot"]:
            found.refuse(seq, "the same person has another slot in the same window")


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
    listed = (row["body"]["rows"] for row in read(path) if row["kind"] == "erasure")
    return frozenset(seq for rows in listed for seq in rows)


def main(words: list[str] | None = None) -> int:
    """0 if every law holds on every row."""
    parser = argparse.ArgumentParser(
        description="Check an exported ledger with the standard library alone."
    )
    parser.add_argument("export", type=Path)
    parser.add_argument(
        "--secret", action="append", default=[], metavar="WINDOW=HEX", help="a revealed secret"
    )
    parser.add_argument("--secrets", type=Path, help="a JSON file {window: hex}")
    parser.add_argument("--head", type=Path, help="a published signed head")
    asked = parser.parse_args(words)
    given = dict(word.split("=", 1) for word in asked.secret)
    given |= json.loads(asked.secrets.read_text()) if asked.secrets else {}
    secrets = {name: bytes.fromhex(secret) for name, secret in given.items()}
    found = check(read(asked.export), secrets, erased_rows(asked.export))
    if asked.head:
        # the export must hold the row of the head, with its hash; the signature of the head needs
        # Ed25519, which the standard library does not have: `evenhand audit verify` checks it
        head = json.loads(asked.head.read_text())
        hashes = [row["hash"] for row in read(asked.export) if row["seq"] == head["seq"]]
        if hashes[-1:] != [head["hash"]]:
            what = "the published head is not in this export: it was truncated or rewritten"
            found.refuse(head["seq"], what)
    lines = [
        f"rows checked: {found.rows:,}",
        f"draws recomputed: {found.recomputed:,} of {found.decisions - found.erased:,} "
        f"({found.erased:,} erased, {found.secret_missing:,} without a secret)",
        f"uniformity of first draws: sqrt(n) D = {uniformity(found.draws):.3f} "
        "(above 1.95 once in 1,000)",
        *(f"row {problem.seq}: {problem.what}" for problem in found.problems[:100]),
        f"problems: {len(found.problems):,}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
