"""What the dashboard shows, read from the ledger as one record.

Groups of fewer than SMALLEST_GROUP people are not named in it.
"""

import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from evenhand.contracts import Json
from evenhand.fairness.certificate import Certificate, plain_label
from evenhand.ledger import RULES, CertificateRow, Counts, Event, Ledger, Policy
from evenhand.ledger.outcome_status import KEEP_EVERY
from evenhand.ledger.publishing import active
from evenhand.service.decider import ActivePolicy, Decider
from evenhand.service.explanations import mark_of_older_rules
from evenhand.service.settings import Product
from evenhand.words import Group

SMALLEST_GROUP = 10
"""People that a group must have to be shown."""
ROWS_AT_ONCE = 20_000
"""Rows that one refresh reads at most."""
MOST_CHANGES = 300
"""Changes of who decides that are drawn."""

State = Literal[
    "broken", "killed", "uncertified", "suspended", "shadow", "older rules", "learning", "certified"
]


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
    people: Counter[Group] = field(default_factory=Counter)
    accepted: Counter[Group] = field(default_factory=Counter)
    overruled: Counter[tuple[Group, bool]] = field(default_factory=Counter)
    _last_decision: int = 0
    _last_row: int = 0
    _kept: int = 0
    _whole: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self, rows: int | None = None) -> None:
        """Read all groups and overrides that were told since, and `rows` new decisions at most. A
        new process goes on from what another has kept.
        """
        names = self.product.names
        limit = ROWS_AT_ONCE if rows is None else rows
        with self._lock:
            if self._last_row == 0:
                self._resume()
            since, upto = self._last_row, self.ledger.head().seq
            if upto == since and self._whole:
                return
            for late in self.ledger.late_groups(*names, since, upto):
                for group, change in ((late.before, -1), (late.now, 1)):
                    if late.seq <= self._last_decision:
                        self._count(group, late.accept, change)
                    if late.overruled:
                        self.overruled[group, late.accept] += change
            for one in self.ledger.overruled(*names, since, upto):
                self.overruled[one.group, one.accept] += 1
            read = 0
            for seq, group, accept in self.ledger.usable_groups(
                *names, self._last_decision, upto, limit
            ):
                self._count(group, accept, 1)
                self._last_decision = seq
                read += 1
            self._last_row, self._whole = upto, read < limit
            if upto - self._kept >= KEEP_EVERY:
                self._keep()

    def _resume(self) -> None:
        found = self.ledger.summary(*self.product.names, "groups")
        if found is not None:
            self._last_row = self._kept = found[0]
            self._last_decision = found[1]["last_decision"]
            self.people, self.accepted = (
                Counter(dict(map(tuple, found[1][name]))) for name in ("people", "accepted")
            )
            self.overruled = Counter({(g, accept): n for g, accept, n in found[1]["overruled"]})

    def _keep(self) -> None:
        self._kept = self._last_row
        found: Json = {
            "last_decision": self._last_decision,
            "people": [[group, number] for group, number in self.people.items()],
            "accepted": [[group, number] for group, number in self.accepted.items()],
            "overruled": [[*which, number] for which, number in self.overruled.items()],
        }
        self.ledger.keep_summary(*self.product.names, "groups", self._last_row, found)

    def _count(self, group: Group, accept: bool, people: int) -> None:
        self.people[group] += people
        self.accepted[group] += people * accept

    @property
    def shown(self) -> list[Group]:
        """Known groups with enough people, in the order of their names."""
        large = (g for g, n in self.people.items() if g is not None and n >= SMALLEST_GROUP)
        return sorted(large, key=str)

    def overruled_lines(self, named: Sequence[Group] | None = None) -> tuple[OverruledLine, ...]:
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
class Deciding:
    """Who decides from a time on: rules that were learned, accepting everybody (the audit coin),
    rejecting everybody. The three add up to 1.
    """

    at: float
    learned: float
    audit: float
    rejecting: float

    @classmethod
    def of(cls, at: float, policy: Policy) -> "Deciding":
        """Read from a policy."""
        # from the document: nothing is loaded for it
        parts = policy.document["parts"]
        constants = {
            accept: sum(
                part["weight"]
                for part in parts
                if part["hypothesis"] == {"kind": "constant", "accept": accept}
            )
            for accept in (True, False)
        }
        audit, rejecting = constants[True], constants[False]
        return cls(at, max(1.0 - audit - rejecting, 0.0), audit, rejecting)


def who_decided(
    policies: Sequence[Policy], events: Sequence[Event], certified: Sequence[CertificateRow]
) -> tuple[Deciding, ...]:
    """What was in force, from each change on: publications, rollbacks and the kill switch."""
    published = {row.epoch: row.at for row in certified}
    changes = [(p.seq, published[p.epoch]) for p in policies if p.in_lineage]
    changes += [(e.seq, e.at) for e in events if e.action in ("kill", "revive", "rollback")]
    found: list[Deciding] = []
    for seq, at in sorted(changes)[-MOST_CHANGES:]:
        before = [policy for policy in policies if policy.seq <= seq]
        force = active([*before], [event for event in events if event.seq <= seq])
        if force is not None:
            found.append(Deciding.of(at, force.policy))
    return tuple(found)


@dataclass(frozen=True)
class PublishedPolicy:
    """A policy of the past: when it was published, the widest interval of its gaps, its weights
    (they add up to 1), and the people behind its certificate.
    """

    at: float
    epoch: int
    rules: int
    lower: float
    upper: float
    learned: float
    audit: float
    rejecting: float
    people: int

    @classmethod
    def of(cls, policy: Policy, row: CertificateRow) -> "PublishedPolicy":
        """Read from the policy and its certificate."""
        gaps, window = row.document["gaps"], row.document["window"]
        parts = Deciding.of(row.at, policy)
        return cls(
            at=row.at,
            epoch=policy.epoch,
            rules=policy.rules,
            lower=min((gap["low"] for gap in gaps), default=0.0),
            upper=max((gap["high"] for gap in gaps), default=0.0),
            learned=parts.learned,
            audit=parts.audit,
            rejecting=parts.rejecting,
            people=max(window[1] - window[0], 0),
        )


@dataclass(frozen=True)
class DashboardData:
    """Everything on the page of a product; `newest` is what the newest policy says of itself, and
    `booked` the sum of its bookings, whatever decides at the moment.
    """

    broken: str | None
    active: ActivePolicy
    certificate: Certificate | None
    older_rules: Json
    gaps: tuple[str, ...]
    counts: Counts
    overruled: tuple[OverruledLine, ...]
    groups: tuple[GroupLine, ...]
    hidden: bool
    history: tuple[PublishedPolicy, ...]
    deciding: tuple[Deciding, ...]
    newest: Json
    booked: float
    drift: tuple[Json, ...]
    notes: tuple[str, ...]
    events: tuple[Event, ...]
    now: float

    @property
    def state(self) -> State:
        """What the traffic light is about."""
        if self.broken is not None:
            return "broken"
        if self.active.mode == "killed":
            return "killed"
        if self.certificate is None:
            return "uncertified"
        if self.certificate.status == "suspended":
            return "suspended"
        if self.active.mode == "shadow":
            return "shadow"
        if self.active.policy.rules < RULES:
            return "older rules"
        return "learning" if self.active.learned_weight == 0.0 else "certified"


def read_dashboard(decider: Decider, product: Product, counts: ProductCounts) -> DashboardData:
    """Read the ledger once."""
    ledger, names = decider.ledger, product.names
    counts.refresh()
    in_force, certificates = decider.active(product), ledger.certificates(*names)
    rows = {row.epoch: row for row in certificates}
    issued = rows.get(in_force.policy.epoch)
    certificate = None if issued is None else Certificate.from_json(issued.document)
    policies, events = ledger.policies(*names), ledger.events(*names)
    lineage = [policy for policy in policies if policy.in_lineage]
    newest = lineage[-1].info if lineage else {}
    shown = {str(plain_label(group)) for group in counts.shown}
    gaps = () if certificate is None else certificate.gaps
    mark = {} if certificate is None else mark_of_older_rules(ledger, product, in_force.policy)
    return DashboardData(
        broken=ledger.broken,
        active=in_force,
        certificate=certificate,
        older_rules=mark,
        gaps=tuple(g.describe() for g in gaps if {str(g.group), str(g.reference)} <= shown),
        counts=ledger.counts(*names),
        overruled=counts.overruled_lines(counts.shown),
        groups=tuple(GroupLine(str(g), counts.people[g], counts.accepted[g]) for g in counts.shown),
        hidden=any(0 < n < SMALLEST_GROUP for g, n in counts.people.items() if g is not None),
        history=tuple(PublishedPolicy.of(policy, rows[policy.epoch]) for policy in lineage),
        deciding=who_decided(policies, events, certificates),
        newest=newest,
        booked=math.fsum(one["share"] for one in newest.get("delta", ())),
        drift=tuple(
            {**one, "share_of_alarm": one["evidence"] / one["alarm_at"]}
            for one in newest.get("drift", ())
            if one["people"] >= SMALLEST_GROUP
        ),
        notes=tuple(_without_small_groups(note, shown) for note in newest.get("notes", ())),
        events=tuple(events[-8:][::-1]),
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
