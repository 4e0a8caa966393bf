"""What an auditor takes away: a pack that answers, without the service, what was decided, by what,
with which chance, and what became of it; and decisions in the formats of other tools.
"""

import contextlib
import csv
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.evaluation import DecisionLog, write_log, write_parquet
from evenhand.ledger import Ledger, Row, TooEarly, export, standalone_verifier
from evenhand.ledger.audit import for_owner
from evenhand.service.decider import stored_mixture
from evenhand.service.explanations import AS_DRAWN, mark_of_older_rules
from evenhand.service.settings import Product
from evenhand.words import Group

DRAW_LAW = (
    "U = first 53 bits of HMAC-SHA256(secret of the window, tenant | person | product | window); "
    "accept iff U < acceptance; audit iff U < audit_weight"
)
DECISION_COLUMNS = (
    "row", "key", "at", "window", "policy", "epoch", "accept", "acceptance", "propensity", "u",
    "audit", "audit_weight", "group", "group_late", "status", "label", "settled", "overruled",
    "erased",
)  # fmt: skip
OVERRULED_COLUMNS = ("group", "drawn", "people_did", "decisions")
SELECTION_COLUMNS = ("group", "people", "accepted", "rate", "ratio", "four_fifths")
PARQUET_FACTS = (
    "at", "window", "policy", "epoch", "u", "audit", "audit_weight", "status", "overruled",
)  # fmt: skip
"""What the ledger knows of a decision beyond a log; in Parquet these are columns."""
EXPORT_FORMATS = ("obp", "dsjson", "parquet")
"""Open Bandit Pipeline's bandit_feedback (.npz), Vowpal Wabbit's decision log, Parquet."""
Line = tuple[object, ...]
"""The cells of a line of a CSV file."""


@dataclass(frozen=True)
class Period:
    """From `start` up to, not including, `end`; seconds since the epoch."""

    start: float
    end: float

    def __post_init__(self) -> None:
        if not self.start < self.end:
            raise InvalidInput(
                "the period ends before it begins.", hint="--from comes before --to."
            )

    def holds(self, at: float) -> bool:
        """Whether a time lies in it."""
        return self.start <= at < self.end


def pack(
    ledger: Ledger, product: Product, period: Period, target: Path, *, reveal_by: str | None = None
) -> Path:
    """Write the pack into a new directory that only its owner can read; `pages/pack-readme.md` says
    what is in it. Rows of other tenants are in it by their hashes alone. Every file is in the
    signed pack.json by its SHA-256.

    `reveal_by`: reveal the secrets of ended windows in this person's name.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    target.mkdir(mode=0o700)
    every = ledger.history(*product.names, usable_only=False, maturity=product.maturity)
    rows = [row for row in every if period.holds(row.at)]
    secrets: dict[str, str] = {}
    for window in ledger.windows() if reveal_by is not None else ():
        with contextlib.suppress(TooEarly):  # the window still decides
            secrets[window.name] = ledger.reveal(window.name, str(reveal_by)).hex()
    export(ledger, target / "ledger.jsonl", opened=("who",), tenant=product.tenant)
    overrides = [row for row in rows if row.overruled]
    _write_csv(target / "decisions.csv", DECISION_COLUMNS, map(_decision, rows))
    _write_csv(target / "overrides.csv", DECISION_COLUMNS, map(_decision, overrides))
    _write_csv(target / "overruled.csv", OVERRULED_COLUMNS, overruled(rows))
    _write_csv(target / "selection.csv", SELECTION_COLUMNS, selection(rows))
    windows = [{**asdict(one), "revealed": one.name in secrets} for one in ledger.windows()]
    documents: dict[str, object] = {
        "head.json": ledger.signed_head().to_json(),
        "policies.json": policies_json(ledger, product),
        "certificates.json": _certificates(ledger, product, period),
        "randomisation.json": {"law": DRAW_LAW, "windows": windows},
        "secrets.json": secrets,
        "events.json": [asdict(e) for e in ledger.events(*product.names) if period.holds(e.at)],
    }
    for name, document in documents.items():
        _write_json(target / name, document)
    _write_text(target / "verifier.py", Path(standalone_verifier.__file__).read_text("utf-8"))
    readme = (Path(__file__).parent / "pages" / "pack-readme.md").read_text(encoding="utf-8")
    names: Json = {"product": product.name, "tenant": product.tenant}
    filled = readme.format(**names, decisions=len(rows), as_drawn=AS_DRAWN)
    _write_text(target / "README.md", filled)
    number, hashes = standalone_verifier.hashes_of(target / "ledger.jsonl")
    listed = {**names, "rows": number, "hashes": hashes, "public_key": ledger.keyring.public_key}
    listed["files"] = {one.name: standalone_verifier.file_hash(one) for one in target.iterdir()}
    _write_json(target / "pack.json", {**listed, "signature": ledger.keyring.sign(listed)})
    return target


def _write_text(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", opener=for_owner) as file:
        file.write(text)


def _write_json(path: Path, document: object) -> None:
    _write_text(path, json.dumps(document, indent=1, sort_keys=True) + "\n")


def _decision(row: Row) -> Line:
    propensity = row.acceptance if row.accept else 1.0 - row.acceptance
    return (
        row.seq, row.key or "", row.at, row.window, row.policy, row.epoch, int(row.accept),
        repr(row.acceptance), repr(propensity), repr(row.u), int(row.audit), repr(row.audit_weight),
        "" if row.group is None else row.group, int(row.group_late), row.status, row.label,
        row.settled, int(row.overruled), int(row.erased),
    )  # fmt: skip


def _write_csv(path: Path, header: Sequence[str], lines: Iterable[Line]) -> None:
    formulas = ("=", "@", "\t", "\r", "+", "-")  # such a text gets an apostrophe, for spreadsheets

    def cell(x: object) -> object:
        if not (isinstance(x, str) and x.startswith(formulas)):
            return x
        return x if re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", x) else f"'{x}"

    with open(path, "w", newline="", encoding="utf-8", opener=for_owner) as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for line in lines:
            writer.writerow(map(cell, line))


def selection(rows: Iterable[Row]) -> list[Line]:
    """(group, people, accepted, rate, ratio to the highest rate, whether that is at least 4/5)."""
    people: dict[Group, list[bool]] = {}
    for row in rows:
        if row.group is not None:
            people.setdefault(row.group, []).append(row.accept)
    rates = {group: sum(accepted) / len(accepted) for group, accepted in people.items()}
    top = max(rates.values(), default=0.0)
    lines: list[Line] = []
    for group in sorted(people, key=str):
        rate, accepted = rates[group], people[group]
        ratio = rate / top if top > 0 else 1.0
        passes = "yes" if ratio >= 0.8 else "no"
        lines.append((group, len(accepted), sum(accepted), f"{rate:.6f}", f"{ratio:.4f}", passes))
    return lines


def overruled(rows: Iterable[Row]) -> list[Line]:
    """(group, what was drawn, what people did, decisions); the group is empty where it is unknown
    or was erased.
    """
    counts = Counter((row.group, row.accept) for row in rows if row.overruled)
    words = {True: ("accept", "reject"), False: ("reject", "accept")}
    return [
        ("" if group is None else group, *words[accept], counts[group, accept])
        for group, accept in sorted(counts, key=str)
    ]


def policies_json(ledger: Ledger, product: Product) -> list[Json]:
    """Every policy of a product with its parent, signature and words, oldest first."""
    return [
        {
            **policy.signed,
            "signature": policy.signature,
            "row": policy.seq,
            "words": stored_mixture(ledger, policy, product.trusted).describe(product.slots),
        }
        for policy in ledger.policies(*product.names)
    ]


def _certificates(ledger: Ledger, product: Product, period: Period) -> Json:
    policies = ledger.policies(*product.names)
    lineage = {policy.epoch: policy for policy in policies if policy.in_lineage}
    certificates = [
        {
            **asdict(row),
            "rules": lineage[row.epoch].rules,
            **mark_of_older_rules(ledger, product, lineage[row.epoch]),
        }
        for row in ledger.certificates(*product.names)
        if period.holds(row.at)
    ]
    last = max(lineage, default=None)
    return {
        "promise": {**product.promise, "digest": product.digest},
        "about": AS_DRAWN,
        "certificates": certificates,
        "delta_ledger": [] if last is None else lineage[last].info.get("delta", []),
    }


def export_decisions(rows: Iterable[Row], product: Product, path: Path, format: str) -> int:
    """Write decisions with their propensities in one of EXPORT_FORMATS; how many they are.

    The id of a decision is the number of its row. Erased people are left out; accepted people whose
    outcome is open have no label. `evenhand evaluate` reads all formats. Features and groups are in
    it, so only its owner can read the file.
    """
    kept = [row for row in rows if row.features is not None]
    if not kept:
        raise InvalidInput(
            "there is no decision to export.", hint="check the product and the period."
        )
    names: list[str] = []  # a text takes several numbers: name, name.2, name.3
    for place, name in enumerate(product.slots):
        before = product.slots[:place].count(name)
        names.append(f"{name}.{before + 1}" if before else name)
    log = DecisionLog.of(
        np.array([row.features for row in kept]),
        [row.accept for row in kept],
        [row.acceptance for row in kept],
        [row.label if row.accept else 0 for row in kept],
        group=[row.group for row in kept],
        names=tuple(names),
        id=[row.seq for row in kept],
        source="the ledger",
    )
    os.close(for_owner(str(path), os.O_WRONLY | os.O_CREAT))
    path.chmod(0o600)  # one that was there before
    if format == "parquet":
        facts = {name: [getattr(row, name) for row in kept] for name in PARQUET_FACTS}
        write_parquet(log, path, {**facts, "propensity": log.propensity.tolist()})
    else:
        write_log(log, path, format)
    return len(kept)
