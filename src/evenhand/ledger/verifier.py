"""The stand-alone verifier of an exported ledger: the standard library alone, so that an auditor can read all of it.

    python verifier.py export.jsonl --secret w689=6f1c... [--secrets FILE] [--head FILE]

It checks, row by row,

    hash_n = SHA-256(hash_{n-1} | canonical JSON of {at, body, kind, seq}),   hash_0 = 32 zero bytes,
    SHA-256(secret of the window) = the commitment that the chain holds before the window's first draw,
    U = first 53 bits of HMAC-SHA256(secret, tenant | person | product | window),
    accept = (U < acceptance),   audit = (U < audit_weight),   first = (the person's slot in the window was free),

that every opened field is the one that was committed to, and that every policy of a lineage (from rules 2 on) names the SHA-256 of the
checkpoint that stands before it. The functions here are copies of those by which the ledger writes; tests compare the two.
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

canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode
"""The one text of a JSON value: sorted keys, no spaces, no NaN."""


def link(previous: bytes, row: dict[str, Any]) -> bytes:
    """hash_n of row n."""
    text = canonical({name: row[name] for name in ("at", "body", "kind", "seq")})
    return hashlib.sha256(previous + text.encode()).digest()


def commitment(salt: bytes, value: Any) -> str:
    """SHA-256(salt of the field | canonical JSON of its value)."""
    return hashlib.sha256(salt + canonical(value).encode()).hexdigest()


def uniform(secret: bytes, *parts: str) -> float:
    """U in [0, 1): the first 53 bits of HMAC-SHA256(secret, parts), each part preceded by its length in four bytes."""
    message = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)
    digest = hmac.digest(secret, message, "sha256")
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def uniformity(numbers: list[float]) -> float:
    """sqrt(n) D, the Kolmogorov-Smirnov distance from the uniform distribution; above 1.95 happens once in 1,000 times."""
    n = len(numbers)
    ordered = sorted(numbers)
    return math.sqrt(n) * max((max((i + 1) / n - u, u - i / n) for i, u in enumerate(ordered)), default=0.0)


@dataclass(frozen=True)
class Problem:
    """Row `seq` breaks a law."""

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
    """Checkpoints that wait for their policy, and the rules of the newest policy, of each product so far."""

    waiting: dict[tuple[str, str, int], tuple[int, str]] = field(default_factory=dict)
    rules: dict[tuple[str, str], int] = field(default_factory=dict)

    def checkpoint(self, seq: int, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a checkpoint."""
        if hashlib.sha256(canonical(body["checkpoint"]).encode()).hexdigest() != body["digest"]:
            yield "the checkpoint's digest is not the hash of its document"
        self.waiting[body["tenant"], body["product"], body["epoch"]] = (seq, body["digest"])

    def policy(self, body: dict[str, Any]) -> Iterator[str]:
        """What is wrong with a policy: from rules 2 on, a policy of the lineage has its checkpoint, and no later policy has older rules."""
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
        yield from ((seq, "the checkpoint belongs to no policy") for seq, _ in sorted(self.waiting.values()))


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


def check(rows: Iterable[dict[str, Any]], secrets: dict[str, bytes], erased: frozenset[int] = frozenset()) -> Findings:
    """Every law on every row. `erased`: rows whose personal fields were destroyed, as the erasure rows list them."""
    found, state = Findings(), State(secrets, erased)
    for row in rows:
        found.rows += 1
        check_link(row, state, found)
        CHECKS.get(row["kind"], _nothing)(row, state, found)
    state_end(state, found)
    return found


def check_link(row: dict[str, Any], state: State, found: Findings) -> None:
    """The chain: no row is missing, changed or out of order, and time does not run backwards."""
    seq = row["seq"]
    if seq != state.seq + 1:
        found.refuse(seq, f"row {state.seq + 1} was expected here")
    if row["at"] < state.at:
        found.refuse(seq, "its time is before that of the row before")
    state.previous = link(state.previous, row)
    if state.previous.hex() != row["hash"]:
        found.refuse(seq, "its hash is not that of its content")
        state.previous = bytes.fromhex(row["hash"])
    state.seq, state.at = seq, row["at"]


def state_end(state: State, found: Findings) -> None:
    """A secret that fits no window would make the check look stronger than it is; a checkpoint without a policy would be believed later."""
    for seq, what in state.lineages.end():
        found.refuse(seq, what)
    for name in sorted(state.secrets.keys() - state.windows.keys()):
        found.refuse(state.seq, f"a secret was given for window {name}, which the ledger does not have")


def _nothing(row: dict[str, Any], state: State, found: Findings) -> None:
    """Kinds without laws of their own."""


def _check_window(row: dict[str, Any], state: State, found: Findings) -> None:
    body = row["body"]
    if body["window"] in state.windows:
        found.refuse(row["seq"], f"window {body['window']} was opened before")
    state.windows[body["window"]] = body
    secret = state.secrets.get(body["window"])
    if secret is not None and hashlib.sha256(secret).hexdigest() != body["commitment"]:
        found.refuse(row["seq"], f"the secret of window {body['window']} is not the one that was committed to")


def _check_policy(row: dict[str, Any], state: State, found: Findings) -> None:
    body = row["body"]
    if hashlib.sha256(canonical(body["policy"]).encode()).hexdigest() != body["id"]:
        found.refuse(row["seq"], "the policy's id is not the hash of its document")
    for what in state.lineages.policy(body):
        found.refuse(row["seq"], what)
    state.policies.add(body["id"])


def _check_checkpoint(row: dict[str, Any], state: State, found: Findings) -> None:
    for what in state.lineages.checkpoint(row["seq"], row["body"]):
        found.refuse(row["seq"], what)


def _check_decision(row: dict[str, Any], state: State, found: Findings) -> None:
    seq, body = row["seq"], row["body"]
    found.decisions += 1
    for what, broken in decision_laws(body, state):
        if broken:
            found.refuse(seq, what)
    state.keys.add(body["key"])
    state.slots.add(body["slot"])
    _check_opened(row, found)
    _check_window_of(row, state, found)
    _check_draw(row, state, found)
    if body["first"]:
        found.draws.append(body["u"])


def decision_laws(body: dict[str, Any], state: State) -> tuple[tuple[str, bool], ...]:
    """(law that would be broken, whether it is)."""
    u, acceptance, accept = body["u"], body["acceptance"], body["accept"]
    return (
        ("its key was decided before", body["key"] in state.keys),
        ("its policy had not been published", body["policy"] not in state.policies),
        ("the decision is not U < acceptance", accept != (u < acceptance)),
        ("the audit flag is not U < audit_weight", body["audit"] != (u < body["audit_weight"])),
        (
            "the propensity is not that of the decision",
            body["propensity"] != (acceptance if accept else 1.0 - acceptance),
        ),
        ("the flag for a first application is wrong", body["first"] != (body["slot"] not in state.slots)),
    )


def _check_window_of(row: dict[str, Any], state: State, found: Findings) -> None:
    window = state.windows.get(row["body"]["window"])
    if window is None:
        found.refuse(row["seq"], "no secret had been committed to for its window")
    elif not window["starts"] <= row["at"] < window["ends"]:
        found.refuse(row["seq"], "it lies outside its window")


def _check_opened(row: dict[str, Any], found: Findings) -> None:
    for name, part in row.get("open", {}).items():
        if commitment(bytes.fromhex(part["salt"]), part["value"]) != row["body"]["commit"].get(name):
            found.refuse(row["seq"], f"the opened {name} is not what was committed to")


def _check_draw(row: dict[str, Any], state: State, found: Findings) -> None:
    body, who = row["body"], row.get("open", {}).get("who")
    secret = state.secrets.get(body["window"])
    if who is None:
        found.erased += row["seq"] in state.erased
        if row["seq"] not in state.erased and secret is not None:
            found.refuse(row["seq"], "the person is not opened, although no erasure lists the row")
    elif secret is None:
        found.secret_missing += 1
    else:
        found.recomputed += 1
        parts = (body["tenant"], who["value"]["person"], body["product"], body["window"])
        if uniform(secret, *parts) != body["u"]:
            found.refuse(row["seq"], "U is not the HMAC of the window's secret and the person")
        if state.slot_of.setdefault("\x1f".join(parts), body["slot"]) != body["slot"]:
            found.refuse(row["seq"], "the same person has another slot in the same window")


CHECKS = {
    "window": _check_window,
    "policy": _check_policy,
    "checkpoint": _check_checkpoint,
    "decision": _check_decision,
}


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of an export."""
    with path.open(encoding="utf-8") as lines:
        if json.loads(next(lines, "null")) != {"format": FORMAT}:
            raise SystemExit(f"{path} is no export of a ledger: its first line must be the format {FORMAT!r}.")
        for line in lines:
            yield json.loads(line)


def erased_rows(path: Path) -> frozenset[int]:
    """Rows that an erasure lists."""
    listed = (row["body"]["rows"] for row in read(path) if row["kind"] == "erasure")
    return frozenset(seq for rows in listed for seq in rows)


def check_head(path: Path, head: dict[str, Any], found: Findings) -> None:
    """The anchor: the export must hold the row of the head, with its hash. (Its signature needs Ed25519: `evenhand audit verify`.)"""
    hashes = {row["seq"]: row["hash"] for row in read(path) if row["seq"] == head["seq"]}
    if hashes.get(head["seq"]) != head["hash"]:
        found.refuse(head["seq"], "the published head is not in this export: it was truncated or rewritten")


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check an exported ledger with the standard library alone.")
    parser.add_argument("export", type=Path)
    parser.add_argument("--secret", action="append", default=[], metavar="WINDOW=HEX", help="a revealed secret")
    parser.add_argument("--secrets", type=Path, help="a JSON file {window: hex}")
    parser.add_argument("--head", type=Path, help="a published signed head")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """0 if every law holds on every row."""
    asked = _arguments(words)
    given = dict(word.split("=", 1) for word in asked.secret)
    given |= json.loads(asked.secrets.read_text()) if asked.secrets else {}
    found = check(read(asked.export), {n: bytes.fromhex(s) for n, s in given.items()}, erased_rows(asked.export))
    if asked.head:
        check_head(asked.export, json.loads(asked.head.read_text()), found)
    for line in _lines(found):
        sys.stdout.write(line + "\n")
    return 1 if found.problems else 0


def _lines(found: Findings) -> Iterator[str]:
    open_draws = found.decisions - found.erased
    yield f"rows checked: {found.rows:,}"
    yield f"draws recomputed: {found.recomputed:,} of {open_draws:,} ({found.erased:,} erased, {found.secret_missing:,} without a secret)"
    yield f"uniformity of first draws: sqrt(n) D = {uniformity(found.draws):.3f} (above 1.95 once in 1,000)"
    yield from (f"row {problem.seq}: {problem.what}" for problem in found.problems[:100])
    yield f"problems: {len(found.problems):,}"


if __name__ == "__main__":
    sys.exit(main())
