"""What is known of one decision, as a function of the set of its reports: the order in which they
came does not matter.

    rejected    by the machine; labels are refused and quarantined, whatever a human did afterwards
    overruled   drawn "accept", but a human refused: labels are kept, none is learned from
    disputed    labels +1 and -1 were both reported, and no settlement (or two that differ) says which
    resolved    one label
    pending     accepted, no label yet

A decision stays as it was drawn, whatever people made of it: an override can take its label away,
and nothing else. One that agrees with the draw is on record and changes nothing. Adding a report to
a set is commutative and idempotent, and `standing` looks at the set alone; that is the whole proof.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sqlalchemy import bindparam, literal, select, union_all

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.fairness.certificate import Scalar
from evenhand.ledger.chain import Transaction
from evenhand.ledger.database import OUTCOMES, PERSONAL, QUARANTINE
from evenhand.ledger.decision_draw import (
    KNOWN_BY_KEY,
    Known,
    StoredDecision,
    key_digest,
    open_known,
)
from evenhand.ledger.keyring import Entropy, Keyring, seal_fields
from evenhand.ledger.refusals import Invalid, NotFound, Refusal

Status = Literal["rejected", "pending", "resolved", "disputed", "overruled"]
Result = Literal["recorded", "repeated", "disputed", "quarantined"]


def _require_label(label: int) -> None:
    if type(label) is not int or label not in (-1, 1):
        raise Invalid("a label is -1 (bad outcome) or +1 (good outcome), as a whole number.")


@dataclass(frozen=True)
class Label:
    """The outcome of an accepted person."""

    label: int

    def __post_init__(self) -> None:
        _require_label(self.label)


@dataclass(frozen=True)
class Settlement:
    """An operator says which of two disputed labels holds."""

    label: int
    by: str
    note: str = ""

    def __post_init__(self) -> None:
        _require_label(self.label)


@dataclass(frozen=True)
class Override:
    """A human decided `accept`, whatever the machine had drawn; the decision stays on record as it
    was drawn.
    """

    accept: bool
    by: str
    note: str = ""


@dataclass(frozen=True)
class GroupTold:
    """A group that became known after the decision, for accepted and rejected people alike."""

    group: Scalar


Report = Label | Settlement | Override | GroupTold


@dataclass(frozen=True)
class Standing:
    """What a decision's reports add up to. `label` is 0 unless the status is resolved. `overruled`:
    a human decided otherwise than was drawn; somebody who was rejected stays rejected then."""

    status: Status
    label: int = 0
    overruled: bool = False


@dataclass(frozen=True)
class Facts:
    """The set of reports about one decision; groups are told apart by digests, never by their
    values.
    """

    accept: bool
    labels: frozenset[int] = field(default=frozenset())
    settlements: frozenset[int] = field(default=frozenset())
    overrides: frozenset[bool] = field(default=frozenset())
    groups: frozenset[str] = field(default=frozenset())

    @property
    def standing(self) -> Standing:
        """The status, and the label that may be learned.

        Of two overrides that contradict each other, the one against the draw counts.
        """
        overruled = (not self.accept) in self.overrides
        if not self.accept:
            return Standing("rejected", overruled=overruled)
        if overruled:
            return Standing("overruled", overruled=True)
        if not self.labels:
            return Standing("pending")
        if len(self.labels) == 1:
            return Standing("resolved", next(iter(self.labels)))
        return (
            Standing("resolved", next(iter(self.settlements)))
            if len(self.settlements) == 1
            else Standing("disputed")
        )

    def refuses(self, report: Report) -> bool:
        """Whether a report is a label of a person whom the machine rejected."""
        return not self.accept and isinstance(report, Label | Settlement)

    def with_report(self, report: Report, digest: str = "") -> "Facts":
        """The set with one more member; a refused report changes nothing."""
        match report:
            case _ if self.refuses(report):
                return self
            case Label(label):
                return replace(self, labels=self.labels | {label})
            case Settlement(label):
                return replace(self, settlements=self.settlements | {label})
            case Override(accept):
                return replace(self, overrides=self.overrides | {accept})
            case GroupTold():
                return replace(self, groups=self.groups | {digest})


def result_of(before: Facts, report: Report, after: Facts) -> Result:
    """What the reporter is told."""
    if before.refuses(report):
        return "quarantined"
    if before == after:
        return "repeated"
    disputed = after.standing.status == "disputed" or (
        isinstance(report, GroupTold) and len(after.groups) > 1
    )
    return "disputed" if disputed else "recorded"


def kind_and_value(report: Report, digest: str = "") -> tuple[str, str]:
    """(kind, value): by which two reports about one decision are the same."""
    match report:
        case Label(label):
            return "label", f"{label:+d}"
        case Settlement(label):
            return "settlement", f"{label:+d}"
        case Override(accept):
            return "override", "accept" if accept else "reject"
        case GroupTold():
            return "group", digest


def facts_from(accept: bool, reports: list[tuple[str, str]]) -> Facts:
    """The set that stored (kind, value) pairs stand for."""
    values = {
        kind: frozenset(v for k, v in reports if k == kind)
        for kind in ("label", "settlement", "override", "group")
    }
    return Facts(
        accept,
        frozenset(int(v) for v in values["label"]),
        frozenset(int(v) for v in values["settlement"]),
        frozenset(v == "accept" for v in values["override"]),
        values["group"],
    )


def details(report: Report) -> Json:
    """Who and why, as the chain keeps it."""
    return (
        {"by": report.by, "note": report.note} if isinstance(report, Settlement | Override) else {}
    )


@dataclass(frozen=True)
class Verdict:
    """What became of a report, and where the decision stands now."""

    result: Result
    standing: Standing
    seq: int


Told = tuple[str, str, Report]
"""(tenant, key, report)."""


def _of(table: Any, quarantined: int) -> Any:
    where = table.c.decision.in_(bindparam("decisions", expanding=True))
    return select(
        table.c.seq,
        table.c.decision,
        table.c.report,
        table.c.value,
        literal(quarantined).label("set_aside"),
    ).where(where)


_REPORTS = union_all(_of(OUTCOMES, 0), _of(QUARANTINE, 1))
_PERSON = select(PERSONAL.c.seq, PERSONAL.c.person).where(
    PERSONAL.c.seq.in_(bindparam("decisions", expanding=True))
)


def missing_key() -> NotFound:
    """No decision has that key."""
    return NotFound(
        "no decision has this key.", hint="use the key of the application, with its tenant."
    )


class Reporter:
    """What a report depends on besides itself."""

    def __init__(self, keyring: Keyring, entropy: Entropy) -> None:
        self._keyring, self._entropy = keyring, entropy

    def report(self, transaction: Transaction, told: Sequence[Told]) -> list[Verdict | Refusal]:
        """Enter everybody's reports; a refused one leaves nothing behind and does not stop the
        others.
        """
        digests = [key_digest(self._keyring, tenant, key) for tenant, key, _ in told]
        stored = transaction.rows_among(KNOWN_BY_KEY, list(set(digests)))
        rows = {row[0]: StoredDecision(*row) for row in stored}
        book = _Book(transaction, [row.seq for row in rows.values()])
        return [
            self._one(transaction, rows.get(digest), report, book)
            for digest, (_, _, report) in zip(digests, told, strict=True)
        ]

    def _one(
        self, transaction: Transaction, row: StoredDecision | None, report: Report, book: "_Book"
    ) -> Verdict | Refusal:
        try:
            if row is None:
                raise missing_key()
            known = open_known(self._keyring, row)
        except Refusal as refusal:
            return refusal
        return self._enter(transaction, row, known, report, book)

    def _enter(
        self,
        transaction: Transaction,
        row: StoredDecision,
        known: Known,
        report: Report,
        book: "_Book",
    ) -> Verdict:
        digest = self._digest(row.seq, report)
        before = self._with_known_group(
            facts_from(known.drawn.accept, book.counted(row.seq)), known, report
        )
        after = before.with_report(report, digest)
        result = result_of(before, report, after)
        kind, value = kind_and_value(report, digest)
        entered = book.seq_of(row.seq, kind, value)
        if entered is None and result != "repeated":
            entered = self._append(
                transaction, row, report, kind, value, quarantined=result == "quarantined"
            )
            book.add(row.seq, kind, value, entered, quarantined=result == "quarantined")
        return Verdict(result, after.standing, row.seq if entered is None else entered)

    def _append(
        self,
        transaction: Transaction,
        row: StoredDecision,
        report: Report,
        kind: str,
        value: str,
        *,
        quarantined: bool,
    ) -> int:
        body: Json = {
            "decision": row.seq,
            "report": kind,
            "value": value,
            "details": details(report),
        }
        if not isinstance(report, GroupTold):
            return transaction.append("quarantine" if quarantined else "outcome", body)
        sealed = seal_fields(
            self._keyring.unwrap(row.wrapped), {"group": canonical(report.group)}, self._entropy
        )
        person = transaction.rows(_PERSON, {"decisions": [row.seq]})[0].person
        seq = transaction.append(
            "outcome", body | {"commit": sealed.commit, "sealed": sealed.fingerprint}
        )
        transaction.insert(PERSONAL, (seq, person, sealed.data))
        return seq

    def _digest(self, decision: int, report: Report) -> str:
        return (
            group_digest(self._keyring, decision, report.group)
            if isinstance(report, GroupTold)
            else ""
        )

    def _with_known_group(self, facts: Facts, known: Known, report: Report) -> Facts:
        group = known.opened.fields["group"]
        if group is None or not isinstance(report, GroupTold):
            return facts
        return facts.with_report(
            GroupTold(group), group_digest(self._keyring, known.drawn.seq, group)
        )


def group_digest(keyring: Keyring, decision: int, group: Any) -> str:
    """Tells groups of *one* decision apart; between decisions it says nothing, so nobody can be
    counted by it.
    """
    return keyring.digest("group", str(decision), canonical(group)).hex()


class _Book:
    """The reports that stand in the ledger about some decisions, and those that were added since."""

    def __init__(self, transaction: Transaction, decisions: list[int]) -> None:
        self._entries: dict[int, dict[tuple[str, str], tuple[int, bool]]] = {}
        for row in transaction.rows(_REPORTS, {"decisions": decisions}) if decisions else ():
            self.add(row.decision, row.report, row.value, row.seq, quarantined=bool(row.set_aside))

    def add(self, decision: int, kind: str, value: str, seq: int, *, quarantined: bool) -> None:
        self._entries.setdefault(decision, {})[kind, value] = (seq, quarantined)

    def seq_of(self, decision: int, kind: str, value: str) -> int | None:
        found = self._entries.get(decision, {}).get((kind, value))
        return None if found is None else found[0]

    def counted(self, decision: int) -> list[tuple[str, str]]:
        return [
            pair
            for pair, (_, quarantined) in self._entries.get(decision, {}).items()
            if not quarantined
        ]
