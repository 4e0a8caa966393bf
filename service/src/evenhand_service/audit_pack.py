"""What an auditor takes away: a pack that answers, without the service, what was decided, by what,
with which chance, and what became of it; and decisions as a table for other tools.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.evaluation import DecisionLog, impact, write_log
from evenhand.hypotheses.models import trusting
from evenhand_service.decider import stored_mixture
from evenhand_service.explanations import AS_DRAWN
from evenhand_service.ledger import Ledger, Row, TooEarly, export, standalone_verifier, verify
from evenhand_service.ledger.archive import require_all, whole
from evenhand_service.ledger.audit import for_owner, require_sound, write_for_owner
from evenhand_service.ledger.standalone_verifier import tables_of
from evenhand_service.product_changes import require_unchanged
from evenhand_service.settings import Product

DRAW_FORMULA = (
    "U = first 53 bits of HMAC-SHA256(secret of the window, person | product | window); "
    "accept iff U < acceptance; audit iff U < audit_weight"
)
FACTS = (
    "at", "window", "policy", "epoch", "u", "audit", "audit_weight", "status", "overruled",
)  # fmt: skip
"""What the ledger knows of a decision beyond a log."""


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
    ledger: Ledger,
    product: Product,
    period: Period,
    target: Path,
    *,
    reveal_by: str | None = None,
    with_problems: bool = False,
    archives: Sequence[Path] = (),
    revealed: Mapping[str, str] | None = None,
) -> Path:
    """Write the pack into a new directory that only its owner can read; `pages/pack-readme.md` says
    what is in it. Every file is in the signed pack.json by its SHA-256.

    The ledger is verified first, draws and acceptances included. Of one that does not verify
    nothing is signed (Damaged).

    `reveal_by`: reveal the secrets of ended windows in this person's name. `with_problems`: of a
    ledger that does not verify, pack the chain as it stands and sign the list of problems with it;
    there are no tables then, because nobody knows what they should say. `archives`: folders whose
    rows are put back, in a copy of the ledger; a period that holds archived decisions needs them.
    `revealed`: the secrets, where they have been revealed.
    """
    if not with_problems:
        require_unchanged(
            ledger.policies(product.name), product, ledger.keyring.public_key
        )  # or its words would be false
    if archives:
        if not with_problems:
            require_sound(verify(ledger), "nothing is packed")
        secrets = _revealed(ledger, reveal_by)
        with whole(ledger, archives) as complete:
            options: Json = {"with_problems": with_problems, "revealed": secrets}
            return pack(complete, product, period, target, **options)
    require_all(ledger, period.start)
    with trusting(product.trusted):
        found = verify(ledger, deep=True)
    if not with_problems:
        require_sound(found, "an auditor would take it for yours (--with-problems packs the chain)")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.mkdir(mode=0o700)
    problems = [{"row": problem.seq, "what": problem.what} for problem in found.problems]
    documents: dict[str, object] = {"secrets.json": {}}
    decisions = 0
    if found.ok:
        secrets = dict(revealed or {}) or _revealed(ledger, reveal_by)
        # revealing writes rows: the pack ends with the last of them
        head = ledger.signed_head() if secrets else ledger.sign_head(found.head)
        upto = head.head.seq
        every = ledger.history(
            product.name, upto=upto, usable_only=False, maturity=product.maturity
        )
        rows = [row for row in every if period.holds(row.at)]
        decisions = len(rows)
        export(ledger, target / "ledger.jsonl", groups_of={row.seq for row in rows}, upto=upto)
        for name, text in tables_of(rows).items():
            write_for_owner(target / name, text)
        windows = [{**asdict(one), "revealed": one.name in secrets} for one in ledger.windows()]
        events = [e for e in ledger.events(product.name) if period.holds(e.at) and e.seq <= upto]
        documents = {
            "head.json": head.to_json(),
            "policies.json": policies_json(ledger, product),
            "certificates.json": _certificates(ledger, product, period),
            "randomisation.json": {"formula": DRAW_FORMULA, "windows": windows},
            "secrets.json": secrets,
            "impact.json": impact_json(rows),
            "events.json": [asdict(event) for event in events],
        }
    else:
        export(ledger, target / "ledger.jsonl", damaged=True)
    for name, document in documents.items():
        _write_json(target / name, document)
    verifier = Path(standalone_verifier.__file__).read_text("utf-8")
    write_for_owner(target / "verifier.py", verifier)
    readme = (Path(__file__).parent / "pages" / "pack-readme.md").read_text(encoding="utf-8")
    names: Json = {"product": product.name}
    write_for_owner(
        target / "README.md", readme.format(**names, decisions=decisions, as_drawn=AS_DRAWN)
    )
    number, hashes = standalone_verifier.hashes_of(target / "ledger.jsonl")
    listed = {**names, "rows": number, "hashes": hashes, "public_key": ledger.keyring.public_key}
    listed |= {"period": [period.start, period.end], "maturity": product.maturity}
    listed |= {"problems": problems}
    listed["files"] = {one.name: standalone_verifier.file_hash(one) for one in target.iterdir()}
    _write_json(target / "pack.json", {**listed, "signature": ledger.keyring.sign(listed)})
    return target


def _revealed(ledger: Ledger, by: str | None) -> dict[str, str]:
    """The secrets of the windows that have ended, in hexadecimal, if somebody asks for them."""
    secrets: dict[str, str] = {}
    for window in ledger.windows() if by is not None else ():
        with contextlib.suppress(TooEarly):  # the window still decides
            secrets[window.name] = ledger.reveal(window.name, str(by)).hex()
    return secrets


def _write_json(path: Path, document: object) -> None:
    write_for_owner(path, json.dumps(document, indent=1, sort_keys=True) + "\n")


def policies_json(ledger: Ledger, product: Product) -> list[Json]:
    """Every policy of a product with its parent, signature and words, oldest first."""
    return [
        {
            **policy.signed,
            "signature": policy.signature,
            "row": policy.seq,
            "words": stored_mixture(ledger, policy, product.trusted).describe(product.slots),
        }
        for policy in ledger.policies(product.name)
    ]


def impact_json(rows: Sequence[Row]) -> Json:
    """Selection rates and impact ratios by group, in the form of New York City's Local Law 144
    tables, with exact intervals that hold at once; of the decisions of the period, as drawn.
    """
    # groups by name, as in the other tables; erased and unknown people are counted as unknown
    groups = [None if row.group is None else str(row.group) for row in rows]
    if all(group is None for group in groups):
        selected = sum(row.accept for row in rows)
        return {"people": len(rows), "selected": selected, "unknown": {"": len(rows)}, "rows": []}
    return dict(impact([row.accept for row in rows], groups).to_json())


def _certificates(ledger: Ledger, product: Product, period: Period) -> Json:
    policies = ledger.policies(product.name)
    lineage = {policy.epoch: policy for policy in policies if policy.in_lineage}
    rows = ledger.certificates(product.name)
    certificates = [asdict(row) for row in rows if period.holds(row.at)]
    last = max(lineage, default=None)
    return {
        "guarantee": {**product.guarantee, "digest": product.digest},
        "about": AS_DRAWN,
        "certificates": certificates,
        "delta_ledger": [] if last is None else lineage[last].info.get("delta", []),
    }


def export_decisions(rows: Iterable[Row], product: Product, path: Path) -> int:
    """Write decisions with their propensities as CSV or Parquet; how many they are.

    The id of a decision is the number of its row. Erased people are left out; accepted people whose
    outcome is open have no label. `evenhand evaluate` reads it. Features and groups are in
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
        [row.label or np.nan for row in kept],  # 0 is an open outcome, and no bad one
        group=[row.group for row in kept],
        names=tuple(names),
        id=[row.seq for row in kept],
        source="the ledger",
    )
    os.close(for_owner(str(path), os.O_WRONLY | os.O_CREAT))
    path.chmod(0o600)  # one that was there before
    facts = {name: [getattr(row, name) for row in kept] for name in FACTS}
    write_log(log, path, {**facts, "propensity": log.propensity.tolist()})
    return len(kept)
