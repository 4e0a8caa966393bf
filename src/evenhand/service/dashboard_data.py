"""What the dashboard shows, read from the ledger as one record.

Groups of fewer than SMALLEST_GROUP people are not named in it.
"""

import itertools
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evenhand.contracts import Json
from evenhand.fairness.certificate import Certificate, plain_label
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.ledger import RULES, CertificateRow, Counts, Event, Ledger, Policy
from evenhand.service.decider import ActivePolicy, Decider, audit_and_learned_weight
from evenhand.service.explanations import mark_of_older_rules
from evenhand.service.settings import Product

SMALLEST_GROUP = 10
"""People that a group must have to be shown."""
ROWS_AT_ONCE = 20_000
"""Rows that one refresh reads at most."""

Light = Literal["green", "amber", "red"]


@dataclass(frozen=True)
class OverruledLine:
    """Decisions of one group that people overruled in one direction; the group is None where it is
    unknown, erased or not to be named.
    """

    group: str | None
    drawn: Literal["accept", "reject"]
    decisions: int


@dataclass
class ProductCounts:
    """People, acceptances and overruled decisions of a product by group, grown from the ledger.

    Only usable decisions count, so people and not applications. Somebody whose group is told later
    moves to that group. overruled: (group, accept as drawn) -> decisions.
    """

    ledger: Ledger
    product: Product
    people: Counter[Any] = field(default_factory=Counter)
    accepted: Counter[Any] = field(default_factory=Counter)
    overruled: Counter[tuple[Any, bool]] = field(default_factory=Counter)
    _last_decision: int = 0
    _last_row: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self, rows: int | None = None) -> None:
        """Read all groups and overrides that were told since, and `rows` new decisions at most."""
        names = (self.product.tenant, self.product.name)
        limit = ROWS_AT_ONCE if rows is None else rows
        with self._lock:
            since, upto = self._last_row, self.ledger.head().seq
            for late in self.ledger.late_groups(*names, since, upto):
                for group, change in ((late.before, -1), (late.now, 1)):
                    if late.seq <= self._last_decision:
                        self._count(group, late.accept, change)
                    if late.overruled:
                        self.overruled[group, late.accept] += change
            for one in self.ledger.overruled(*names, since, upto):
                self.overruled[one.group, one.accept] += 1
            history = self.ledger.history(*names, after=self._last_decision, upto=upto)
            for row in itertools.islice(history, limit):
                self._count(row.group, row.accept, 1)
                self._last_decision = row.seq
            self._last_row = upto

    def _count(self, group: Any, accept: bool, people: int) -> None:
        self.people[group] += people
        self.accepted[group] += people * accept

    @property
    def shown(self) -> list[Any]:
        """Known groups with enough people, in the order of their names."""
        large = (g for g, n in self.people.items() if g is not None and n >= SMALLEST_GROUP)
        return sorted(large, key=str)

    def overruled_lines(self, named: Sequence[Any] | None = None) -> tuple[OverruledLine, ...]:
        """By group and direction; groups not in `named` (default: all) count as unknown."""
        lines: Counter[tuple[str | None, Literal["accept", "reject"]]] = Counter()
        for (group, accept), decisions in self.overruled.items():
            if decisions:
                shown = group is not None and (named is None or group in named)
                lines[str(group) if shown else None, "accept" if accept else "reject"] += decisions
        return tuple(OverruledLine(*line, lines[line]) for line in sorted(lines, key=str))


@dataclass(frozen=True)
class GroupLine:
    """One group: how many people, and how many of them were accepted."""

    name: str
    people: int
    accepted: int

    @property
    def rate(self) -> float:
        """The share that was accepted."""
        return self.accepted / self.people


@dataclass(frozen=True)
class PublishedPolicy:
    """A policy of the past: when it was published, the widest interval of its gaps, its weights,
    and the people behind its certificate.
    """

    at: float
    epoch: int
    rules: int
    lower: float
    upper: float
    learned: float
    audit: float
    people: int

    @classmethod
    def of(cls, policy: Policy, row: CertificateRow) -> "PublishedPolicy":
        """Read from the policy and its certificate."""
        gaps, window = row.document["gaps"], row.document["window"]
        audit, learned = audit_and_learned_weight(policy_from_json(policy.document))
        return cls(
            at=row.at,
            epoch=policy.epoch,
            rules=policy.rules,
            lower=min((gap["low"] for gap in gaps), default=0.0),
            upper=max((gap["high"] for gap in gaps), default=0.0),
            learned=learned,
            audit=audit,
            people=max(window[1] - window[0], 0),
        )


@dataclass(frozen=True)
class DashboardData:
    """Everything on the page of a product."""

    light: Light
    headline: str
    sentence: str
    active: ActivePolicy
    older_rules: Json
    gaps: tuple[str, ...]
    spent: float
    assumptions: tuple[str, ...]
    counts: Counts
    overruled: tuple[OverruledLine, ...]
    groups: tuple[GroupLine, ...]
    hidden: bool
    history: tuple[PublishedPolicy, ...]
    bookings: tuple[Json, ...]
    drift: tuple[Json, ...]
    notes: tuple[str, ...]
    forecast: tuple[str, ...]
    events: tuple[Event, ...]
    now: float


def read_dashboard(decider: Decider, product: Product, counts: ProductCounts) -> DashboardData:
    """Read the ledger once."""
    ledger, names = decider.ledger, (product.tenant, product.name)
    counts.refresh()
    active = decider.active(product)
    rows = {row.epoch: row for row in ledger.certificates(*names)}
    lineage = [policy for policy in ledger.policies(*names) if policy.in_lineage]
    issued = rows.get(active.policy.epoch)
    certificate = None if issued is None else Certificate.from_json(issued.document)
    newest = lineage[-1].info if lineage else {}
    shown = {str(plain_label(group)) for group in counts.shown}
    gaps = () if certificate is None else certificate.gaps
    light, headline, sentence = verdict(active, certificate, broken=ledger.broken)
    return DashboardData(
        light=light,
        headline=headline,
        sentence=sentence,
        active=active,
        older_rules={}
        if certificate is None
        else mark_of_older_rules(ledger, product, active.policy),
        gaps=tuple(g.describe() for g in gaps if {str(g.group), str(g.reference)} <= shown),
        spent=0.0 if certificate is None else certificate.spent,
        assumptions=() if certificate is None else certificate.assumptions,
        counts=ledger.counts(*names),
        overruled=counts.overruled_lines(counts.shown),
        groups=tuple(GroupLine(str(g), counts.people[g], counts.accepted[g]) for g in counts.shown),
        hidden=any(0 < n < SMALLEST_GROUP for g, n in counts.people.items() if g is not None),
        history=tuple(PublishedPolicy.of(policy, rows[policy.epoch]) for policy in lineage),
        bookings=tuple(newest.get("delta", ())),
        drift=tuple(one for one in newest.get("drift", ()) if one["people"] >= SMALLEST_GROUP),
        notes=tuple(_without_small_groups(note, shown) for note in newest.get("notes", ())),
        forecast=tuple(newest.get("forecast", ())),
        events=tuple(ledger.events(*names)[-8:][::-1]),
        now=ledger.clock(),
    )


def _without_small_groups(note: str, shown: set[str]) -> str:
    if note.startswith("outside the certificate:"):
        return (
            "people of groups that are not the certificate's are outside of it; "
            "the certificate names and counts them."
        )
    if " group " not in note or any(f"group {group!r} " in note for group in shown):
        return note
    return "only constants are deployed: a group lacks people."


def verdict(
    active: ActivePolicy, certificate: Certificate | None, *, broken: str | None
) -> tuple[Light, str, str]:
    """The traffic light, two or three words, and the certificate in one sentence."""
    if broken is not None:
        return (
            "red",
            "Not answering",
            "Nothing can be made durable, so nobody is answered. Look at the disk, then restart.",
        )
    if active.mode == "killed":
        what = "accepted" if active.audit_weight == 1.0 else "rejected"
        return (
            "amber",
            "Kill switch on",
            f"Everybody is {what} until the switch is turned off; "
            "a constant has a gap of exactly 0.",
        )
    if certificate is None:
        return (
            "amber",
            "No certificate",
            "The policy in force is a constant outside the lineage; its gap is exactly 0.",
        )
    if certificate.status == "suspended":
        return (
            "red",
            "Suspended",
            f"The certificate is suspended: {certificate.reason}. "
            "Only a constant decides until the evidence suffices again.",
        )
    claim = certificate.claim.replace(
        ", under the assumptions below:", ", under the assumptions listed on this page:"
    )
    if active.mode == "shadow":
        return "amber", "Shadow mode", f"Decisions are logged, none is acted upon. {claim}"
    if active.policy.rules < RULES:
        return (
            "amber",
            f"Issued under rules {active.policy.rules}",
            f"{claim} This was claimed under rules {active.policy.rules}; below stands what may "
            "concern it. The next training starts a new life of the certificate from the reserve.",
        )
    if active.learned_weight == 0.0:
        return (
            "green",
            "Certified, still learning",
            f"{claim} So far a constant decides, which keeps the limit exactly.",
        )
    return "green", "Certified", claim
