"""The auditor's pack: one directory that answers, without the service, what was decided, by what,
with which chance, and what became of it.

README.md            what is what, and how to verify it
ledger.jsonl         the whole chain with the people's identifiers opened; verifier.py reads it with the standard library alone
head.json            the signed end of the chain
decisions.csv        decisions of the period with propensities, policy, group and outcome
policies.json        lineage: every policy with parent, signature and words
certificates.json    every certificate with its assumptions, the rules it was issued under, and the delta ledger
randomisation.json   the windows and the hashes of their secrets; revealed secrets, if asked for
overrides.csv        decisions that people overruled; the certificate is about the policy as drawn, before that
overruled.csv        how many of them, by group and direction
events.json          kills, rollbacks, suspensions, closings
selection.csv        selection rates by group with the four-fifths ratio
"""

import csv
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.ledger import Ledger, Row, TooEarly, export
from evenhand.ledger import standalone_verifier as verifier
from evenhand.service.board import AS_DRAWN
from evenhand.service.config import Product
from evenhand.service.older_rules import marked

DECISION_COLUMNS = (
    "row", "at", "window", "policy", "epoch", "accept", "acceptance", "propensity", "u", "audit", "audit_weight",
    "group", "group_late", "status", "label", "settled", "overruled", "erased",
)  # fmt: skip


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
    secrets = _secrets(ledger, reveal_by) if reveal_by is not None else {}
    export(ledger, target / "ledger.jsonl", opened=("who",))
    _write_json(target / "head.json", ledger.signed_head().to_json())
    _write_csv(target / "decisions.csv", DECISION_COLUMNS, map(_decision, rows))
    _write_csv(
        target / "overrides.csv", DECISION_COLUMNS, (_decision(r) for r in rows if r.overruled)
    )
    _write_csv(
        target / "overruled.csv", ("group", "drawn", "people_did", "decisions"), overruled(rows)
    )
    _write_csv(
        target / "selection.csv",
        ("group", "people", "accepted", "rate", "ratio", "four_fifths"),
        selection(rows),
    )
    _write_json(target / "policies.json", _policies(ledger, product))
    _write_json(target / "certificates.json", _certificates(ledger, product, period))
    _write_json(target / "randomisation.json", _randomisation(ledger, secrets))
    _write_json(target / "secrets.json", secrets)
    _write_json(
        target / "events.json", [asdict(e) for e in ledger.events(*names) if period.holds(e.at)]
    )
    shutil.copyfile(Path(verifier.__file__), target / "verifier.py")
    (target / "README.md").write_text(_readme(product, len(rows)), encoding="utf-8")
    return target


def _decision(row: Row) -> tuple[Any, ...]:
    propensity = row.acceptance if row.accept else 1.0 - row.acceptance
    return (
        row.seq, row.at, row.window, row.policy, row.epoch, int(row.accept), repr(row.acceptance), repr(propensity),
        repr(row.u), int(row.audit), repr(row.audit_weight), "" if row.group is None else row.group, int(row.group_late),
        row.status, row.label, row.settled, int(row.overruled), int(row.erased),
    )  # fmt: skip


def selection(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """(group, people, accepted, rate, ratio to the highest rate, whether the ratio is at least
    4/5).
    """
    people: dict[Any, list[bool]] = {}
    for row in rows:
        if row.group is not None:
            people.setdefault(row.group, []).append(row.accept)
    rates = {group: sum(found) / len(found) for group, found in people.items()}
    top = max(rates.values(), default=0.0)
    ratios = {group: rate / top if top > 0 else 1.0 for group, rate in rates.items()}
    return [
        (
            g,
            len(people[g]),
            sum(people[g]),
            f"{rates[g]:.6f}",
            f"{ratios[g]:.4f}",
            "yes" if ratios[g] >= 0.8 else "no",
        )
        for g in sorted(people, key=str)
    ]


def overruled(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """(group, what was drawn, what people did, decisions); the group is empty where it is unknown
    or was erased.
    """
    found = Counter((row.group, row.accept) for row in rows if row.overruled)
    words = {True: ("accept", "reject"), False: ("reject", "accept")}
    return [
        ("" if group is None else group, *words[accept], found[group, accept])
        for group, accept in sorted(found, key=str)
    ]


def _policies(ledger: Ledger, product: Product) -> list[Json]:
    return [
        {
            **p.signed,
            "signature": p.signature,
            "row": p.seq,
            "words": policy_from_json(p.document).describe(product.features),
        }
        for p in ledger.policies(product.tenant, product.name)
    ]


def _certificates(ledger: Ledger, product: Product, period: Period) -> Json:
    names = (product.tenant, product.name)
    lineage = [p for p in ledger.policies(*names) if p.in_lineage]
    of_epoch = {policy.epoch: policy for policy in lineage}
    return {
        "promise": {**asdict(product), "digest": product.digest},
        "about": AS_DRAWN,
        "certificates": [
            {
                **asdict(row),
                "rules": of_epoch[row.epoch].rules,
                **marked(ledger, product, of_epoch[row.epoch]),
            }
            for row in ledger.certificates(*names)
            if period.holds(row.at)
        ],
        "delta_ledger": lineage[-1].info.get("delta", []) if lineage else [],
    }


def _randomisation(ledger: Ledger, secrets: Json) -> Json:
    return {
        "law": "U = first 53 bits of HMAC-SHA256(secret of the window, tenant | person | product | window); accept iff U < acceptance; "
        "audit iff U < audit_weight",
        "windows": [
            {**asdict(window), "revealed": window.name in secrets} for window in ledger.windows()
        ],
    }


def _secrets(ledger: Ledger, by: str) -> Json:
    """The secrets of the windows that have ended; the others still decide."""
    found = {}
    for window in ledger.windows():
        try:
            found[window.name] = ledger.reveal(window.name, by).hex()
        except TooEarly:
            continue
    return found


def _readme(product: Product, decisions: int) -> str:
    return (
        f"# Auditor's pack: {product.name} of {product.tenant}\n\n"
        f"{decisions:,} decisions of the period, and the whole chain. {(__doc__ or '').split(chr(10), 1)[1]}\n"
        "Verify it with any Python 3.11, no package needed:\n\n"
        "    python verifier.py ledger.jsonl --secrets secrets.json --head head.json\n\n"
        f"{AS_DRAWN}\n\n"
        "A draw can be recomputed where its window's secret is in secrets.json; the chain and the commitments are checked in any case.\n"
        "Compare head.json with a head that was published earlier: whatever was rewritten before it would show.\n"
    )


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(_unformulated(row) for row in rows)


def _unformulated(row: tuple[Any, ...]) -> list[Any]:
    """A text that a spreadsheet would take for a formula gets an apostrophe."""
    return [
        f"'{value}" if isinstance(value, str) and value[:1] in "=@\t\r" and value else value
        for value in row
    ]
