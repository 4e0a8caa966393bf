"""What is known of one decision, as a function of the set of its reports: the order in which they came does not matter.

    rejected    by the machine; labels are refused and quarantined, whatever a human did afterwards
    overruled   drawn "accept", but a human refused: labels are kept, none is learned from
    disputed    labels +1 and -1 were both reported, and no settlement (or two that differ) says which
    resolved    one label
    pending     accepted, no label yet

A decision stays as it was drawn, whatever people made of it: an override can take its label away, and nothing else. One that agrees with
the draw is on record and changes nothing. Adding a report to a set is commutative and idempotent, and `standing` looks at the set alone;
that is the whole proof.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from evenhand.contracts import Json
from evenhand.fairness.certificate import Scalar
from evenhand.ledger.refusals import Invalid

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
    """A human decided `accept`, whatever the machine had drawn; the decision stays on record as it was drawn."""

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
    """What a decision's reports add up to. `label` is 0 unless the status is resolved. `overruled`: a human decided otherwise than was
    drawn; somebody who was rejected stays rejected then."""

    status: Status
    label: int = 0
    overruled: bool = False


@dataclass(frozen=True)
class Facts:
    """The set of reports about one decision; groups are told apart by digests, never by their values."""

    accept: bool
    labels: frozenset[int] = field(default=frozenset())
    settlements: frozenset[int] = field(default=frozenset())
    overrides: frozenset[bool] = field(default=frozenset())
    groups: frozenset[str] = field(default=frozenset())

    @property
    def standing(self) -> Standing:
        """The status, and the label that may be learned. Of two overrides that contradict each other, the one against the draw counts."""
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
            Standing("resolved", next(iter(self.settlements))) if len(self.settlements) == 1 else Standing("disputed")
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
    disputed = after.standing.status == "disputed" or (isinstance(report, GroupTold) and len(after.groups) > 1)
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
        kind: frozenset(v for k, v in reports if k == kind) for kind in ("label", "settlement", "override", "group")
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
    return {"by": report.by, "note": report.note} if isinstance(report, Settlement | Override) else {}
