"""What the dashboard shows, as one frozen record that is read from the ledger.

Groups of fewer than 10 people are not in it.
"""

import itertools
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from markupsafe import Markup

from evenhand.contracts import Json
from evenhand.fairness.certificate import Certificate, plain_label
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.ledger import RULES, CertificateRow, Counts, Event, Ledger, Policy
from evenhand.service.charts import gap_chart, share_chart
from evenhand.service.config import Product
from evenhand.service.desk import Desk
from evenhand.service.in_force import InForce, weight_of
from evenhand.service.older_rules import marked

SMALLEST = 10
"""People that a group must have to be shown."""
ONE_GO = 20_000
"""Rows that one refresh reads at most."""

AS_DRAWN = (
    "The certificate is about the policy as drawn, before people overrule it. An overruled decision stays in it as it was drawn; where its "
    "label is lost, it counts at its worst."
)

Light = Literal["green", "amber", "red"]


@dataclass(frozen=True)
class OverruledLine:
    """Decisions that people overruled, of one group and one direction.

    group: None where it is unknown, forgotten, or not to be named.
    """

    group: str | None
    drawn: Literal["accept", "reject"]
    decisions: int


@dataclass
class ProductCounts:
    """People, acceptances and overruled decisions by group, grown from the ledger; usable decisions
    only, so people, not applications. Somebody whose group is told later moves to that group."""

    ledger: Ledger
    product: Product
    people: dict[Any, int] = field(default_factory=dict)
    accepted: dict[Any, int] = field(default_factory=dict)
    overruled: dict[tuple[Any, bool], int] = field(default_factory=dict)
    """(group, accept as drawn) -> decisions; complete after every refresh."""
    _after: int = 0
    _upto: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self, rows: int = ONE_GO) -> None:
        """Read what was told since, and `rows` decisions at most."""
        names = (self.product.tenant, self.product.name)
        with self._lock:
            upto = self.ledger.head().seq
            for late in self.ledger.late_groups(*names, self._upto, upto):
                if late.seq <= self._after:
                    self._count(late.before, late.accept, -1)
                    self._count(late.now, late.accept, 1)
                if late.overruled:
                    self._overrule(late.before, late.accept, -1)
                    self._overrule(late.now, late.accept, 1)
            for one in self.ledger.overruled(*names, self._upto, upto):
                self._overrule(one.group, one.accept, 1)
            for row in itertools.islice(
                self.ledger.history(*names, after=self._after, upto=upto), rows
            ):
                self._count(row.group, row.accept, 1)
                self._after = row.seq
            self._upto = upto

    def _count(self, group: Any, accept: bool, people: int) -> None:
        self.people[group] = self.people.get(group, 0) + people
        self.accepted[group] = self.accepted.get(group, 0) + people * accept

    def _overrule(self, group: Any, accept: bool, decisions: int) -> None:
        self.overruled[group, accept] = self.overruled.get((group, accept), 0) + decisions

    @property
    def shown(self) -> list[Any]:
        """Known groups with enough people, in the order of their names."""
        return sorted(
            (g for g, n in self.people.items() if g is not None and n >= SMALLEST), key=str
        )

    def overruled_lines(self, named: Sequence[Any] | None = None) -> tuple[OverruledLine, ...]:
        """By group and direction; groups that are not to be `named` (default: every known one is)
        count together with the unknown.
        """
        found: dict[tuple[str | None, Literal["accept", "reject"]], int] = {}
        for (group, accept), decisions in self.overruled.items():
            if decisions:
                shown = group is not None and (named is None or group in named)
                line: tuple[str | None, Literal["accept", "reject"]]
                line = (str(group) if shown else None, "accept" if accept else "reject")
                found[line] = found.get(line, 0) + decisions
        return tuple(OverruledLine(*line, found[line]) for line in sorted(found, key=str))


@dataclass(frozen=True)
class GroupLine:
    """One group: how many, and how many of them were accepted."""

    name: str
    people: int
    accepted: int

    @property
    def rate(self) -> float:
        """The share that was accepted."""
        return self.accepted / self.people


@dataclass(frozen=True)
class Board:
    """Everything on the page."""

    product: Product
    light: Light
    headline: str
    sentence: str
    force: InForce
    counts: Counts
    overruled: tuple[OverruledLine, ...]
    as_drawn: str
    rules: Json
    groups: tuple[GroupLine, ...]
    hidden: bool
    gaps: tuple[str, ...]
    gap_svg: Markup | None
    share_svg: Markup | None
    history: tuple[Mapping[str, Any], ...]
    spent: float
    bookings: tuple[Json, ...]
    drift: tuple[Json, ...]
    notes: tuple[str, ...]
    forecast: tuple[str, ...]
    words: tuple[str, ...]
    events: tuple[tuple[str, Event], ...]
    assumptions: tuple[str, ...]
    now: str


def stamp(at: float) -> str:
    """A time for humans."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at)) + " UTC"


def read_board(desk: Desk, product: Product, tally: ProductCounts) -> Board:
    """One look at the ledger."""
    ledger, names = desk.ledger, (product.tenant, product.name)
    tally.refresh()
    force, now = desk.in_force(product), ledger.clock()
    rows = ledger.certificates(*names)
    lineage = [p for p in ledger.policies(*names) if p.in_lineage]
    current = next(
        (
            Certificate.from_json(r.document)
            for r in reversed(rows)
            if r.epoch == force.policy.epoch
        ),
        None,
    )
    newest = lineage[-1].info if lineage else {}
    mark = marked(ledger, product, force.policy) if current is not None else {}
    light, headline, sentence = verdict(force, current, broken=ledger.broken)
    shown = {str(plain_label(group)) for group in tally.shown}
    history = tuple(_past(rows, lineage))
    times = [entry["at"] for entry in history]
    return Board(
        product=product,
        light=light,
        headline=headline,
        sentence=sentence,
        force=force,
        counts=ledger.counts(*names),
        overruled=tally.overruled_lines(tally.shown),
        as_drawn=AS_DRAWN,
        rules=mark,
        groups=tuple(GroupLine(str(g), tally.people[g], tally.accepted[g]) for g in tally.shown),
        hidden=any(0 < n < SMALLEST for g, n in tally.people.items() if g is not None),
        gaps=tuple(
            g.describe()
            for g in (current.gaps if current else ())
            if {str(g.group), str(g.reference)} <= shown
        ),
        gap_svg=_gap_svg(history, times, product.limit, now) if history else None,
        share_svg=_share_svg(history, times, now) if history else None,
        history=tuple({**entry, "when": stamp(entry["at"])} for entry in history[-12:]),
        spent=current.spent if current else 0.0,
        bookings=tuple(newest.get("delta", ())),
        drift=tuple(stream for stream in newest.get("drift", ()) if stream["people"] >= SMALLEST),
        notes=_notes(newest.get("notes", ()), shown),
        forecast=tuple(newest.get("forecast", ())),
        words=tuple(force.mixture.describe(product.features).splitlines()),
        events=tuple((stamp(e.at), e) for e in ledger.events(*names)[-8:][::-1]),
        assumptions=current.assumptions if current else (),
        now=stamp(now),
    )


def _notes(notes: Sequence[str], shown: set[str]) -> tuple[str, ...]:
    """What is missing, in words; a group that is not shown is not named here either."""
    named = tuple(f"group {group!r} " for group in shown)
    found = []
    for note in notes:
        if note.startswith("outside the certificate:"):
            found.append(
                "people of groups that are not the certificate's are outside of it; the certificate names and counts them."
            )
        elif " group " not in note or any(name in note for name in named):
            found.append(note)
        else:
            found.append("only constants are deployed: a group lacks people.")
    return tuple(found)


def _past(rows: Sequence[CertificateRow], lineage: Sequence[Policy]) -> list[dict[str, Any]]:
    """One entry per published policy: when, the widest interval of its gaps, and its weights."""
    certificates = {row.epoch: row for row in rows}
    found = []
    for policy in lineage:
        row = certificates[policy.epoch]
        gaps, mixture = row.document["gaps"], policy_from_json(policy.document)
        audit = weight_of(mixture, accept=True)
        found.append(
            {
                "at": row.at,
                "epoch": policy.epoch,
                "low": min((gap["low"] for gap in gaps), default=0.0),
                "high": max((gap["high"] for gap in gaps), default=0.0),
                "learned": max(1.0 - audit - weight_of(mixture, accept=False), 0.0),
                "audit": audit,
                "status": row.document["status"],
                "rules": policy.rules,
                "people": max(row.document["window"][1] - row.document["window"][0], 0),
            }
        )
    return found


def _gap_svg(
    history: Sequence[Mapping[str, Any]], times: Sequence[float], limit: float, now: float
) -> Markup:
    return gap_chart(times, [e["low"] for e in history], [e["high"] for e in history], limit, now)


def _share_svg(history: Sequence[Mapping[str, Any]], times: Sequence[float], now: float) -> Markup:
    lines = [
        ("learned", "learned policy", [e["learned"] for e in history]),
        ("audit", "audit coin", [e["audit"] for e in history]),
    ]
    return share_chart(times, lines, now)


def verdict(
    force: InForce, certificate: Certificate | None, *, broken: str | None
) -> tuple[Light, str, str]:
    """The traffic light, two or three words, and the certificate in one sentence."""
    if broken is not None:
        return (
            "red",
            "Not answering",
            "Nothing can be made durable, so nobody is answered. Look at the disk, then restart.",
        )
    if force.mode == "killed":
        what = "accepted" if force.audit_weight == 1.0 else "rejected"
        return (
            "amber",
            "Kill switch on",
            f"Everybody is {what} until the switch is turned off; a constant has a gap of exactly 0.",
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
            f"The certificate is suspended: {certificate.reason}. Only a constant decides until the evidence suffices again.",
        )
    claim = certificate.claim.replace(
        ", under the assumptions below:", ", under the assumptions listed on this page:"
    )
    if force.mode == "shadow":
        return "amber", "Shadow mode", f"Decisions are logged, none is acted upon. {claim}"
    if force.policy.rules < RULES:
        return (
            "amber",
            f"Issued under rules {force.policy.rules}",
            f"{claim} This was claimed under rules {force.policy.rules}; below stands what may concern it. The next training starts a new "
            "life of the certificate from the reserve.",
        )
    if force.learned_weight == 0.0:
        return (
            "green",
            "Certified, still learning",
            f"{claim} So far a constant decides, which keeps the limit exactly.",
        )
    return "green", "Certified", claim
