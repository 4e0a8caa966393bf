"""The certificate: what is claimed about the deployed policy, with which evidence, under which
assumptions, until when.

It is a record, not a computation: bounds and ledger fill it, people and auditors read it. A
certificate that says "certified" while an interval exceeds the limit, or with more than delta
spent, cannot be constructed.
"""

import json
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

from evenhand.canonical import canonical, canonical_digest
from evenhand.contracts import Json
from evenhand.errors import InvalidInput

FORMAT = 2
"""The number of the JSON format; format 1 is read, too."""

RULES = 3
"""The version of the rules by which rounds become cohorts, and cohorts a certificate
(docs/promise-proof.md).

Records without a number were written under 1."""

OLD_RULES = {
    1: "issued under rules 1, which left out people who were overruled or erased, looked at "
    "cohorts "
    "of a policy that could not accept everybody, and took the groups of the first people for all",
    2: "issued under rules 2, whose bound was wider; it stands as it was issued, but its sums "
    "cannot be continued",
}
"""What is to be known about certificates and learners of older rules."""

TOLERANCE = 1e-9
"""How far a solver's rounding may carry an interval beyond the limit."""

Scalar = str | int | float | bool
"""A group's label in JSON; other kinds are written as their text."""


def plain_label(group: Any) -> Scalar:
    """A group label as JSON can hold it: numpy scalars become Python's, everything unusual its
    text.
    """
    value = group.item() if hasattr(group, "item") else group
    return value if isinstance(value, str | int | float | bool) else str(value)


@dataclass(frozen=True)
class GapInterval:
    """The gap of one rate between two groups, `rate[group] - rate[reference]`, lies in [low, high]."""

    rate: str
    group: Scalar
    reference: Scalar
    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", plain_label(self.group))
        object.__setattr__(self, "reference", plain_label(self.reference))

    def within(self, limit: float) -> bool:
        """Whether it is not empty and says |gap| <= limit."""
        return self.low <= self.high + TOLERANCE and max(self.high, -self.low) <= limit + TOLERANCE

    def describe(self) -> str:
        """One line."""
        if self.low > self.high + TOLERANCE:
            return f"{self.rate} of {self.group} minus {self.reference}: no value is consistent "
            "with the data"
        return f"{self.rate} of {self.group} minus {self.reference}: between {self.low:+.4f} and "
        f"{self.high:+.4f}"


@dataclass(frozen=True)
class CellCount:
    """How many people of a group with a label stand behind the certificate."""

    group: Scalar
    label: int
    people: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", plain_label(self.group))
        if self.people < 0 or self.label not in (-1, 1):
            raise InvalidInput(
                f"{self.people} people with label {self.label}: counts are >= 0, labels -1 and +1."
            )


@dataclass(frozen=True)
class DrawCount:
    """People of a group (None: unknown, or forgotten) whom the draw had accepted or rejected."""

    group: Scalar | None
    drawn_accept: bool
    people: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", None if self.group is None else plain_label(self.group))

    def describe(self) -> str:
        """In words."""
        who = "of unknown group" if self.group is None else f"of group {self.group}"
        return f"{self.people:,} {who} drawn {'accept' if self.drawn_accept else 'reject'}"


@dataclass(frozen=True)
class OutsideCount:
    """People of a group that the certificate does not cover (None: unknown)."""

    group: Scalar | None
    people: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", None if self.group is None else plain_label(self.group))


def standard_assumptions(
    *,
    maturity: str | None = None,
    drift_false_alarm: float | None = None,
    late_groups: bool = False,
    overlapping: bool = False,
) -> tuple[str, ...]:
    """The assumptions of every certificate, in words. late_groups: some became known after the
    draw; overlapping: people are decided while earlier ones still wait for their labels."""
    watch = (
        ""
        if drift_false_alarm is None
        else f" (watched; false alarm at most {drift_false_alarm:g} over the whole life)"
    )
    late = "whether and when a person's group becomes known does not depend on the draw"
    fate = "what becomes of earlier people (overruled, erased) does not depend on the draws of "
    "later ones"
    return (
        f"people arrive independently from one population that does not change{watch}",
        "the label of a person does not depend on the decisions about others",
        "labels are complete once their maturity window has closed; unresolved ones count as the "
        "worst case" + ("" if maturity is None else f" (window: {maturity})"),
        "the recorded propensities are those with which decisions were drawn; the audit coin "
        "ignores the person",
        *((late,) if late_groups else ()),
        *((fate,) if overlapping else ()),
    )


@dataclass(frozen=True)
class Certificate:
    """With probability at least 1 - failure_probability over the learner's whole life, |gap| <=
    limit for every policy it deploys.
    """

    limit: float
    failure_probability: float
    spent: float
    bound: str
    policy: str
    window: tuple[int, int]
    assumptions: tuple[str, ...]
    counts: tuple[CellCount, ...] = ()
    gaps: tuple[GapInterval, ...] = ()
    bound_params: Json = field(default_factory=dict)
    valid_until: int | None = None
    groups: tuple[Scalar, ...] = ()
    """Whom the claim covers."""
    outside: tuple[OutsideCount, ...] = ()
    overruled: tuple[DrawCount, ...] = ()
    """Decisions that people changed after the draw: the claim is about the policy as drawn."""
    late_groups: tuple[DrawCount, ...] = ()
    erased: int = 0
    """People of whom nothing is known any more; each counts at its worst."""
    rules: int = RULES
    status: Literal["certified", "suspended"] = "certified"
    reason: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", (int(self.window[0]), int(self.window[1])))
        object.__setattr__(self, "groups", tuple(plain_label(group) for group in self.groups))
        object.__setattr__(self, "bound_params", json.loads(canonical(dict(self.bound_params))))
        _require_numbers(self)
        if self.status == "suspended" and not self.reason:
            raise InvalidInput("a suspended certificate needs its reason.")
        if self.status == "certified":
            _require_within(self)

    @property
    def claim(self) -> str:
        """The promise in one sentence."""
        rates = " and ".join(dict.fromkeys(gap.rate for gap in self.gaps)) or "constrained rate"
        named = ", ".join(str(group) for group in self.groups)
        between = (
            f"any two of the groups {named}"
            if named
            else "any two groups (a constant treats everybody alike)"
        )
        return (
            f"Certified with probability at least {1 - self.failure_probability:.6g} over the "
            "whole life of the learner, under the "
            f"assumptions below: the gap in {rates} between {between} is at most "
            f"{self.limit:.6g} for every policy it "
            "deploys, as drawn, before people overrule it."
        )

    @property
    def unknown_group(self) -> int:
        """People whose group is unknown: outside."""
        return sum(count.people for count in self.outside if count.group is None)

    @property
    def digest(self) -> str:
        """SHA-256 of the certificate's own canonical JSON."""
        return canonical_digest(self.to_json())

    def suspend(self, reason: str) -> "Certificate":
        """The same certificate, suspended: the claim no longer stands."""
        return replace(self, status="suspended", reason=reason)

    def describe(self) -> str:
        """The certificate in words."""
        return "\n".join(_lines(self))

    def to_json(self) -> Json:
        """Plain JSON; `from_json` reads it back, bit for bit."""
        return {
            "format": FORMAT,
            "status": self.status,
            "reason": self.reason,
            "limit": self.limit,
            "failure_probability": self.failure_probability,
            "spent": self.spent,
            "bound": {"name": self.bound, "params": deepcopy(self.bound_params)},
            "policy_sha256": self.policy,
            "window": list(self.window),
            "valid_until": self.valid_until,
            "assumptions": list(self.assumptions),
            "counts": [asdict(cell) for cell in self.counts],
            "gaps": [asdict(gap) for gap in self.gaps],
            "groups": list(self.groups),
            "outside": [asdict(count) for count in self.outside],
            "overruled": [asdict(count) for count in self.overruled],
            "late_groups": [asdict(count) for count in self.late_groups],
            "erased": self.erased,
            "rules": self.rules,
        }

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """Read what `to_json` wrote; the laws are checked again."""
        if value.get("format") not in (1, FORMAT):
            raise InvalidInput(
                f"the certificate has format {value.get('format')!r}; this version reads formats "
                f"1 to {FORMAT}."
            )
        old = value["format"] == 1
        named = (
            {gap[who]: None for gap in value["gaps"] for who in ("reference", "group")}
            if old
            else value["groups"]
        )
        unknown = (
            [{"group": None, "people": value["unknown_group"]}]
            if old and value["unknown_group"]
            else []
        )
        return cls(
            limit=value["limit"],
            failure_probability=value["failure_probability"],
            spent=value["spent"],
            bound=value["bound"]["name"],
            bound_params=value["bound"]["params"],
            policy=value["policy_sha256"],
            window=(value["window"][0], value["window"][1]),
            assumptions=tuple(value["assumptions"]),
            counts=tuple(CellCount(**cell) for cell in value["counts"]),
            gaps=tuple(GapInterval(**gap) for gap in value["gaps"]),
            valid_until=value["valid_until"],
            groups=tuple(named),
            outside=tuple(
                OutsideCount(**count) for count in (unknown if old else value["outside"])
            ),
            overruled=tuple(DrawCount(**count) for count in value.get("overruled", ())),
            late_groups=tuple(DrawCount(**count) for count in value.get("late_groups", ())),
            erased=value.get("erased", 0),
            rules=value.get("rules", 1),
            status=value["status"],
            reason=value["reason"],
        )


def _require_numbers(certificate: Certificate) -> None:
    if not 0 < certificate.limit <= 1:
        raise InvalidInput(f"the limit is {certificate.limit}; a gap limit lies in (0, 1].")
    if not 0 < certificate.failure_probability < 1:
        raise InvalidInput(
            f"failure_probability is {certificate.failure_probability}; it must lie strictly "
            "between 0 and 1."
        )
    if not 0 <= certificate.spent <= certificate.failure_probability + TOLERANCE:
        raise InvalidInput(
            f"{certificate.spent} is spent of a failure probability of "
            f"{certificate.failure_probability}; it cannot be more.",
            hint="take .spent of the delta ledger.",
        )
    if certificate.window[0] > certificate.window[1] + 1:
        raise InvalidInput(f"the data window {certificate.window} ends before it begins.")


def _require_within(certificate: Certificate) -> None:
    for gap in certificate.gaps:
        if not gap.within(certificate.limit):
            raise InvalidInput(
                f"{gap.describe()}; that does not support the limit {certificate.limit}.",
                hint="deploy a policy that is certified, or suspend the certificate with its "
                "reason.",
            )


def _lines(certificate: Certificate) -> list[str]:
    """The paragraphs of `describe`, one fact per line."""
    first, last = certificate.window
    seen = f"rounds {first:,} to {last:,}" if last >= first else "none yet"
    until = "until the policy changes or the certificate is suspended"
    if certificate.valid_until is not None:
        until = f"through round {certificate.valid_until:,}, unless suspended before"
    params = ", ".join(f"{name} {value}" for name, value in certificate.bound_params.items())
    head = (
        certificate.claim
        if certificate.status == "certified"
        else f"SUSPENDED: {certificate.reason}. No claim stands."
    )
    return [
        head,
        *([f"Note: {OLD_RULES[certificate.rules]}."] if certificate.rules < RULES else []),
        f"Policy: sha256 {certificate.policy}",
        *(f"  {gap.describe()}" for gap in certificate.gaps),
        f"Bound: {certificate.bound}" + (f" ({params})" if params else ""),
        f"Failure probability: {certificate.spent:.6g} of {certificate.failure_probability:.6g} "
        "booked",
        f"Evidence: {seen}",
        *(
            f"  group {c.group}, label {c.label:+d}: {c.people:,} people"
            for c in certificate.counts
        ),
        *(
            f"  outside the certificate: {count.people:,} people "
            + ("whose group is unknown" if count.group is None else f"of group {count.group}")
            for count in certificate.outside
        ),
        *(f"  group told after the draw: {count.describe()}" for count in certificate.late_groups),
        *(
            f"  overruled by people, counted as drawn: {count.describe()}"
            for count in certificate.overruled
        ),
        *(
            [f"  erased, counted at its worst: {certificate.erased:,} people"]
            if certificate.erased
            else []
        ),
        f"Valid {until}",
        "Assumptions:",
        *(f"  - {assumption}" for assumption in certificate.assumptions),
    ]
