"""Hard counts: a quota of accepted people in a period, and an audit budget, never exceeded however
many clients and replicas decide at once.

    accepted in the period + 1 <= quota            else the person is drawn on the terms `spent`
    audits not known to be good + 1 <= budget      else on the terms `paused`, without audit coin

A transaction holds the head of the chain, so the rows before it are all there are: what is read
here is the state of the world when the coin is tossed. The audits that count are the live ones
whose label has not come, has come bad, or is disputed; so the budget holds for every outcome that
may still come. A human who rejects the person takes the audit out of the count if no label has
come. A label that is taken back after somebody else had its place can exceed it, and so can one of
a person whom a human is said to have rejected.

The counts follow from the chain. They are kept in memory up to a row; the rows of other replicas,
and the labels that have come since, are read when the next coin is tossed.
"""

import math
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, select

from evenhand_service.ledger.chain import Transaction, read_archives
from evenhand_service.ledger.database import DECISIONS, OUTCOMES
from evenhand_service.ledger.decision_draw import Drawn, Gate, Terms
from evenhand_service.ledger.outcome_status import facts_from

AT_ONCE = 500
"""Decisions that one question names."""


@dataclass
class ProductCounts:
    """What counts of one product, up to the row `upto`: how many people were accepted in `period`,
    and the rows of the audits that are not known to be good.
    """

    upto: int = 0
    period: float = -math.inf
    accepted: int = 0
    audits: set[int] = field(default_factory=set)
    archived: int = 0
    """Such audits that are in archives: no label of theirs can come any more."""

    def accept(self, at: float, seconds: float) -> None:
        """Somebody was accepted at this time."""
        period = math.floor(at / seconds)
        if period > self.period:  # time does not run backwards
            self.period = period
            self.accepted = 0
        self.accepted += 1

    def left(self, now: float, quota: tuple[int, float]) -> int:
        """How many people may still be accepted in the period of now."""
        count, seconds = quota
        return count - (self.accepted if math.floor(now / seconds) <= self.period else 0)


class HardCounts:
    """The counts of all products that have some; used by the thread that writes alone."""

    def __init__(self) -> None:
        self._known: dict[str, ProductCounts] = {}
        self._durable: dict[str, ProductCounts] = {}
        self._transaction: Transaction | None = None
        self._followed: set[str] = set()

    def begin(self, transaction: Transaction) -> None:
        """Draws of this transaction follow: those of the one before are in the chain."""
        self._followed.clear()
        if transaction is not self._transaction:
            self._transaction = transaction
            self._durable = {
                name: replace(counts, audits=set(counts.audits))
                for name, counts in self._known.items()
            }

    def forget(self) -> None:
        """The transaction was rolled back; what it may have left is read from the chain."""
        self._known = self._durable
        self._transaction = None

    def admit(self, transaction: Transaction, product: str, terms: Terms, gate: Gate) -> Terms:
        """The terms on which the next person is drawn."""
        counts = self._known.get(product)
        if counts is None:
            counts = self._known[product] = ProductCounts()
        if product not in self._followed:
            transaction.flush()  # reports of the same transaction
            follow(transaction.connection, product, counts, gate, transaction.now)
            counts.upto = transaction.seq
            self._followed.add(product)
        if gate.quota is not None and counts.left(transaction.now, gate.quota) < 1:
            assert gate.spent is not None
            return gate.spent
        # without a paused policy there is no audit coin
        budget = None if gate.paused is None else gate.audit_budget
        if budget is not None and len(counts.audits) + counts.archived + 1 > budget:
            assert gate.paused is not None
            return gate.paused
        return terms

    def add(self, drawn: Drawn, gate: Gate) -> None:
        """Somebody was drawn, in the row after the last one that counts."""
        counts = self._known[drawn.product]
        counts.upto = drawn.seq
        if gate.quota is not None and drawn.accept:
            counts.accept(drawn.at, gate.quota[1])
        if gate.audit_budget is not None and drawn.audit and drawn.mode == "live":
            counts.audits.add(drawn.seq)


def follow(
    connection: Connection, product: str, counts: ProductCounts, gate: Gate, now: float
) -> None:
    """Count what the chain holds of the product after the row `counts.upto`. Of archives the chain
    says how many audits they hold; whoever has counted those rows before goes on with them. Rows of
    the present period of a quota are in no archive.
    """
    if counts.upto == 0:
        archives = read_archives(connection)
        counts.archived = sum(one["counts"].get(product, {}).get("audits", 0) for one in archives)
    d = DECISIONS.c
    mine = (d.product == product, d.accept, d.seq > counts.upto)
    rows = select(d.seq, d.at, d.body).where(*mine).order_by(d.seq)
    if gate.audit_budget is None and gate.quota is not None:
        # of older periods nothing counts
        rows = rows.where(d.at >= (math.floor(now / gate.quota[1]) - 1) * gate.quota[1])
    for seq, at, body in connection.execute(rows):
        if gate.quota is not None and '"mode":"shadow",' not in body:
            counts.accept(at, gate.quota[1])
        if gate.audit_budget is not None and _is_audit(body):
            counts.audits.add(int(seq))
    if gate.audit_budget is not None:
        o = OUTCOMES.c
        audited = select(o.decision, d.body).join(DECISIONS, d.seq == o.decision)
        audited = audited.where(o.seq > counts.upto, d.product == product, d.accept)
        about = {int(seq) for seq, body in connection.execute(audited) if _is_audit(body)}
        counts.audits -= about
        counts.audits |= _not_good(connection, sorted(about))


def audits_not_good(connection: Connection, product: str, last: int) -> int:
    """How many audits up to a row are not known to be good now."""
    d = DECISIONS.c
    mine = select(d.seq, d.body).where(d.product == product, d.accept, d.seq <= last)
    audits = [int(seq) for seq, body in connection.execute(mine) if _is_audit(body)]
    return len(_not_good(connection, audits))


def _is_audit(body: str) -> bool:
    # quotation marks inside of a canonical text are escaped, so these are members
    return '"audit":true,' in body and '"mode":"live",' in body


def _not_good(connection: Connection, audits: list[int]) -> set[int]:
    """Those of the decisions that count as bad."""
    o = OUTCOMES.c
    found: set[int] = set()
    for start in range(0, len(audits), AT_ONCE):
        part = audits[start : start + AT_ONCE]
        reports: dict[int, list[tuple[str, str]]] = {seq: [] for seq in part}
        for seq, kind, value in connection.execute(
            select(o.decision, o.report, o.value).where(o.decision.in_(part))
        ):
            reports[seq].append((kind, value))
        for seq, reported in reports.items():
            if facts_from(True, reported).costs_an_audit:
                found.add(seq)
    return found
