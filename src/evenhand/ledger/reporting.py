"""Reports about decisions inside a transaction: looked up, added to the set of what is known, and appended if they are new."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, select, union_all

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.ledger.chain import Transaction
from evenhand.ledger.database import OUTCOMES, PERSONAL, QUARANTINE
from evenhand.ledger.decision_draw import KNOWN_BY_KEY, Known, key_digest, open_known
from evenhand.ledger.keyring import Entropy, Keyring, seal_fields
from evenhand.ledger.outcome_status import Facts, GroupTold, Report, details, facts_from, kind_and_value, result_of
from evenhand.ledger.records import Verdict
from evenhand.ledger.refusals import NotFound, Refusal

Told = tuple[str, str, Report]
"""(tenant, key, report)."""


def _of(table: Any, quarantined: int) -> Any:
    from sqlalchemy import literal

    where = table.c.decision.in_(bindparam("decisions", expanding=True))
    return select(
        table.c.seq, table.c.decision, table.c.report, table.c.value, literal(quarantined).label("set_aside")
    ).where(where)


_REPORTS = union_all(_of(OUTCOMES, 0), _of(QUARANTINE, 1))
_PERSON = select(PERSONAL.c.seq, PERSONAL.c.person).where(PERSONAL.c.seq.in_(bindparam("decisions", expanding=True)))


def missing_key() -> NotFound:
    """No decision has that key."""
    return NotFound("no decision has this key.", hint="use the key of the application, with its tenant.")


class Reporter:
    """What a report depends on besides itself."""

    def __init__(self, keyring: Keyring, entropy: Entropy) -> None:
        self._keyring, self._entropy = keyring, entropy

    def report(self, transaction: Transaction, told: Sequence[Told]) -> list[Verdict | Refusal]:
        """Enter everybody's reports; a refused one leaves nothing behind and does not stop the others."""
        digests = [key_digest(self._keyring, tenant, key) for tenant, key, _ in told]
        rows = {row.key: row for row in transaction.rows_among(KNOWN_BY_KEY, list(set(digests)))}
        book = _Book(transaction, [row.seq for row in rows.values()])
        return [
            self._one(transaction, rows.get(digest), report, book)
            for digest, (_, _, report) in zip(digests, told, strict=True)
        ]

    def _one(self, transaction: Transaction, row: Any, report: Report, book: "_Book") -> Verdict | Refusal:
        try:
            if row is None:
                raise missing_key()
            known = open_known(self._keyring, row)
        except Refusal as refusal:
            return refusal
        return self._enter(transaction, row, known, report, book)

    def _enter(self, transaction: Transaction, row: Any, known: Known, report: Report, book: "_Book") -> Verdict:
        digest = self._digest(row.seq, report)
        before = self._with_known_group(facts_from(known.drawn.accept, book.counted(row.seq)), known, report)
        after = before.with_report(report, digest)
        result = result_of(before, report, after)
        kind, value = kind_and_value(report, digest)
        entered = book.seq_of(row.seq, kind, value)
        if entered is None and result != "repeated":
            entered = self._append(transaction, row, report, kind, value, quarantined=result == "quarantined")
            book.add(row.seq, kind, value, entered, quarantined=result == "quarantined")
        return Verdict(result, after.standing, row.seq if entered is None else entered)

    def _append(
        self, transaction: Transaction, row: Any, report: Report, kind: str, value: str, *, quarantined: bool
    ) -> int:
        body: Json = {"decision": row.seq, "report": kind, "value": value, "details": details(report)}
        if not isinstance(report, GroupTold):
            return transaction.append("quarantine" if quarantined else "outcome", body)
        sealed = seal_fields(self._keyring.unwrap(row.wrapped), {"group": canonical(report.group)}, self._entropy)
        person = transaction.rows(_PERSON, {"decisions": [row.seq]})[0].person
        seq = transaction.append("outcome", body | {"commit": sealed.commit, "sealed": sealed.fingerprint})
        transaction.insert(PERSONAL, (seq, person, sealed.data))
        return seq

    def _digest(self, decision: int, report: Report) -> str:
        return group_digest(self._keyring, decision, report.group) if isinstance(report, GroupTold) else ""

    def _with_known_group(self, facts: Facts, known: Known, report: Report) -> Facts:
        group = known.opened.fields["group"]
        if group is None or not isinstance(report, GroupTold):
            return facts
        return facts.with_report(GroupTold(group), group_digest(self._keyring, known.drawn.seq, group))


def group_digest(keyring: Keyring, decision: int, group: Any) -> str:
    """Tells groups of *one* decision apart; between decisions it says nothing, so nobody can be counted by it."""
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
        return [pair for pair, (_, quarantined) in self._entries.get(decision, {}).items() if not quarantined]
