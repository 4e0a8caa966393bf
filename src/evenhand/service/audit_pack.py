"""What an auditor takes away: a pack that answers, without the service, what was decided, by what,
with which chance, and what became of it; and decisions in the formats of other tools.
"""

import csv
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.evaluation import DecisionLog, write_log, write_parquet
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.ledger import Ledger, Row, TooEarly, export, standalone_verifier
from evenhand.service.explanations import AS_DRAWN, mark_of_older_rules
from evenhand.service.settings import Product

CONTENTS = {
    "README.md": "what is what, and how to verify it",
    "ledger.jsonl": "the whole chain with the people's identifiers opened; verifier.py reads it "
    "with the standard library alone",
    "head.json": "the signed end of the chain",
    "decisions.csv": "decisions of the period with propensities, policy, group and outcome",
    "policies.json": "lineage: every policy with parent, signature and words",
    "certificates.json": "every certificate with its assumptions, the rules it was issued under, "
    "and the delta ledger",
    "randomisation.json": "the windows and the hashes of their secrets; revealed secrets, if asked "
    "for",
    "overrides.csv": "decisions that people overruled; the certificate is about the policy as "
    "drawn, before that",
    "overruled.csv": "how many of them, by group and direction",
    "events.json": "kills, rollbacks, suspensions, closings",
    "selection.csv": "selection rates by group with the four-fifths ratio",
}
"""The files of a pack."""
DRAW_LAW = (
    "U = first 53 bits of HMAC-SHA256(secret of the window, tenant | person | product | window); "
    "accept iff U < acceptance; audit iff U < audit_weight"
)
DECISION_COLUMNS = (
    "row", "at", "window", "policy", "epoch", "accept", "acceptance", "propensity", "u", "audit",
    "audit_weight", "group", "group_late", "status", "label", "settled", "overruled", "erased",
)  # fmt: skip
PARQUET_FACTS = (
    "at", "window", "policy", "epoch", "u", "audit", "audit_weight", "status", "overruled",
)  # fmt: skip
"""What the ledger knows of a decision beyond a log; in Parquet these are columns."""
EXPORT_FORMATS = ("obp", "dsjson", "parquet")
"""Open Bandit Pipeline's bandit_feedback (.npz), Vowpal Wabbit's decision log, Parquet."""


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
    """Write the pack into a new directory.

    `reveal_by`: reveal the secrets of ended windows in this person's name.
    """
    target.mkdir(parents=True)
    names = (product.tenant, product.name)
    every = ledger.history(*names, usable_only=False, maturity=product.maturity)
    rows = [row for row in every if period.holds(row.at)]
    secrets: dict[str, str] = {}
    for window in ledger.windows() if reveal_by is not None else ():
        try:
            secrets[window.name] = ledger.reveal(window.name, str(reveal_by)).hex()
        except TooEarly:  # the window still decides
            continue
    export(ledger, target / "ledger.jsonl", opened=("who",))
    tables: dict[str, tuple[Sequence[str], Iterable[tuple[Any, ...]]]] = {
        "decisions.csv": (DECISION_COLUMNS, map(_decision, rows)),
        "overrides.csv": (DECISION_COLUMNS, (_decision(row) for row in rows if row.overruled)),
        "overruled.csv": (("group", "drawn", "people_did", "decisions"), overruled(rows)),
        "selection.csv": (
            ("group", "people", "accepted", "rate", "ratio", "four_fifths"),
            selection(rows),
        ),
    }
    for name, (header, lines) in tables.items():
        with (target / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(map(_without_formulas, lines))
    events = [asdict(event) for event in ledger.events(*names) if period.holds(event.at)]
    windows = [
        {**asdict(window), "revealed": window.name in secrets} for window in ledger.windows()
    ]
    documents: dict[str, Any] = {
        "head.json": ledger.signed_head().to_json(),
        "policies.json": policies_json(ledger, product),
        "certificates.json": _certificates(ledger, product, period),
        "randomisation.json": {"law": DRAW_LAW, "windows": windows},
        "secrets.json": secrets,
        "events.json": events,
    }
    for name, document in documents.items():
        text = json.dumps(document, indent=1, sort_keys=True) + "\n"
        (target / name).write_text(text, encoding="utf-8")
    shutil.copyfile(Path(standalone_verifier.__file__), target / "verifier.py")
    (target / "README.md").write_text(_readme(product, len(rows)), encoding="utf-8")
    return target


def _decision(row: Row) -> tuple[Any, ...]:
    propensity = row.acceptance if row.accept else 1.0 - row.acceptance
    return (
        row.seq, row.at, row.window, row.policy, row.epoch, int(row.accept), repr(row.acceptance),
        repr(propensity), repr(row.u), int(row.audit), repr(row.audit_weight),
        "" if row.group is None else row.group, int(row.group_late), row.status, row.label,
        row.settled, int(row.overruled), int(row.erased),
    )  # fmt: skip


def _without_formulas(line: tuple[Any, ...]) -> list[Any]:
    """A text that a spreadsheet would take for a formula gets an apostrophe."""
    return [f"'{x}" if isinstance(x, str) and x.startswith(("=", "@", "\t", "\r")) else x
            for x in line]  # fmt: skip


def selection(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """(group, people, accepted, rate, ratio to the highest rate, whether that is at least 4/5)."""
    people: dict[Any, list[bool]] = {}
    for row in rows:
        if row.group is not None:
            people.setdefault(row.group, []).append(row.accept)
    rates = {group: sum(accepted) / len(accepted) for group, accepted in people.items()}
    top = max(rates.values(), default=0.0)
    lines = []
    for group in sorted(people, key=str):
        rate, accepted = rates[group], people[group]
        ratio = rate / top if top > 0 else 1.0
        passes = "yes" if ratio >= 0.8 else "no"
        lines.append((group, len(accepted), sum(accepted), f"{rate:.6f}", f"{ratio:.4f}", passes))
    return lines


def overruled(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
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
            "words": policy_from_json(policy.document).describe(product.features),
        }
        for policy in ledger.policies(product.tenant, product.name)
    ]


def _certificates(ledger: Ledger, product: Product, period: Period) -> Json:
    names = (product.tenant, product.name)
    lineage = {policy.epoch: policy for policy in ledger.policies(*names) if policy.in_lineage}
    certificates = [
        {
            **asdict(row),
            "rules": lineage[row.epoch].rules,
            **mark_of_older_rules(ledger, product, lineage[row.epoch]),
        }
        for row in ledger.certificates(*names)
        if period.holds(row.at)
    ]
    last = max(lineage, default=None)
    return {
        "promise": {**asdict(product), "digest": product.digest},
        "about": AS_DRAWN,
        "certificates": certificates,
        "delta_ledger": [] if last is None else lineage[last].info.get("delta", []),
    }


def _readme(product: Product, decisions: int) -> str:
    contents = "\n".join(f"{name:<21}{what}" for name, what in CONTENTS.items())
    return (
        f"# Auditor's pack: {product.name} of {product.tenant}\n\n"
        f"{decisions:,} decisions of the period, and the whole chain.\n\n{contents}\n\n"
        "Verify it with any Python 3.11, no package needed:\n\n"
        "    python verifier.py ledger.jsonl --secrets secrets.json --head head.json\n\n"
        f"{AS_DRAWN}\n\n"
        "A draw can be recomputed where its window's secret is in secrets.json; "
        "the chain and the commitments are checked in any case.\n"
        "Compare head.json with a head that was published earlier: "
        "whatever was rewritten before it would show.\n"
    )


def export_decisions(rows: Iterable[Row], product: Product, path: Path, format: str) -> int:
    """Write decisions with their propensities in one of EXPORT_FORMATS; how many they are.

    The id of a decision is the number of its row. Erased people are left out; accepted people whose
    outcome is open have no label. `evenhand evaluate` reads all formats.
    """
    kept = [row for row in rows if row.features is not None]
    if not kept:
        raise InvalidInput(
            "there is no decision to export.", hint="check the product and the period."
        )
    log = DecisionLog.of(
        np.array([row.features for row in kept]),
        [row.accept for row in kept],
        [row.acceptance for row in kept],
        [row.label if row.accept else 0 for row in kept],
        group=[row.group for row in kept],
        names=product.features,
        id=[row.seq for row in kept],
        source="the ledger",
    )
    if format == "parquet":
        facts = {name: [getattr(row, name) for row in kept] for name in PARQUET_FACTS}
        write_parquet(log, path, {**facts, "propensity": log.propensity.tolist()})
    else:
        write_log(log, path, format)
    return len(kept)
