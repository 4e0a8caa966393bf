"""The nouns of the ledger: what is asked, on which terms, what was drawn, and what was answered.
All of them frozen.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from evenhand.canonical import canonical, text_literal
from evenhand.contracts import Json
from evenhand.errors import NotSerialisable
from evenhand.fairness.certificate import Scalar
from evenhand.ledger.keyring import verify_signature
from evenhand.ledger.refusals import Damaged, Invalid

Mode = Literal["live", "shadow", "killed"]
Clock = Callable[[], float]
MAX_NAME = 200
"""Characters in a tenant, a key, a person or a product."""


def require_name(what: str, value: object) -> None:
    """A name is a text of 1 to MAX_NAME characters that can be encoded; its value is not repeated,
    for it may be personal.
    """
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME:
        raise Invalid(f"{what} must be a text of 1 to {MAX_NAME} characters.")
    if not value.isprintable():
        raise Invalid(
            f"{what} contains characters that cannot be printed.", hint="send plain text."
        )


@dataclass(frozen=True, eq=False)
class Application:
    """What a person asks.

    `body` is the request as it came: the same key with another body is a conflict.
    """

    tenant: str
    key: str
    person: str
    product: str
    features: Sequence[float]
    group: Scalar | None = None
    prices: tuple[float, float] | None = None
    body: bytes | None = None

    def __post_init__(self) -> None:
        for what in ("tenant", "key", "person", "product"):
            require_name(what, getattr(self, what))
        object.__setattr__(self, "features", tuple(float(value) for value in self.features))
        if not all(map(math.isfinite, (*self.features, *(self.prices or ())))):
            raise Invalid(
                "features and prices must be finite numbers.",
                hint="impute or drop what is missing.",
            )
        if isinstance(self.group, float) and not math.isfinite(self.group):
            raise Invalid("group must be a text, a finite number or nothing.")

    @cached_property
    def asked(self) -> str:
        """What the conflict check compares."""
        if self.body is not None:
            return self.body.hex()
        names = f"{text_literal(self.person)},{text_literal(self.product)}"
        return f"[{names},{self.features_text},{canonical(self.group)},{canonical(self.prices)}]"

    @cached_property
    def features_text(self) -> str:
        """The features as canonical JSON: they are finite numbers of the type float."""
        return f"[{','.join(map(float.__repr__, self.features))}]"


@dataclass(frozen=True, slots=True)
class Terms:
    """How the decision is to be drawn: accept with probability `acceptance`, of which
    `audit_weight` ignores the person.
    """

    policy: str
    acceptance: float
    audit_weight: float = 0.0
    epoch: int = 0
    mode: Mode = "live"

    def __post_init__(self) -> None:
        if not 0.0 <= self.acceptance <= 1.0:
            raise Invalid(f"acceptance is {self.acceptance}; a probability lies in [0, 1].")
        if not 0.0 <= self.audit_weight <= self.acceptance:
            raise Invalid(
                f"audit_weight is {self.audit_weight}; it is part of the acceptance {self.acceptance}."
            )


Asked = tuple[Application, Terms]


class Drawn(NamedTuple):
    """One decision as it stands in the ledger."""

    seq: int
    at: float
    tenant: str
    key: str
    person: str
    product: str
    window: str
    u: float
    acceptance: float
    accept: bool
    policy: str
    epoch: int
    audit_weight: float
    audit: bool
    first: bool
    mode: Mode

    @property
    def propensity(self) -> float:
        """The probability of the decision that was drawn."""
        return self.acceptance if self.accept else 1.0 - self.acceptance

    @property
    def usable(self) -> bool:
        """Whether it may be learned from and certified: the first live application of the person in
        the window.
        """
        return self.first and self.mode == "live"


class Answer(NamedTuple):
    """The bytes that leave the service, the decision behind them, and whether they had been stored
    before.
    """

    body: bytes
    drawn: Drawn
    replayed: bool = False


Render = Callable[[Drawn], bytes]


def render_answer(drawn: Drawn) -> bytes:
    """The plain answer: what was decided, with which probability, by which policy."""
    text = canonical(
        {
            "key": drawn.key,
            "accept": drawn.accept,
            "propensity": drawn.propensity,
            "policy": drawn.policy,
            "audit": drawn.audit,
            "at": drawn.at,
            "window": drawn.window,
            "row": drawn.seq,
        }
    )
    return text.encode()


@dataclass(frozen=True, slots=True)
class Row:
    """One decision as a learner sees it: as it was drawn, with what is known of it.

    label      0 unless it is known and undisputed, and nobody overruled the decision
    settled    the same at the end of the person's own maturity window; what came later does not change it
    group      as it was known before the coin; else as it was told within the window, and then `group_late` is true
    overruled  a human decided otherwise than was drawn
    erased     the person has been forgotten: no features, no group
    """

    seq: int
    at: float
    window: str
    features: tuple[float, ...] | None
    group: Scalar | None
    prices: tuple[float, float] | None
    u: float
    accept: bool
    acceptance: float
    audit: bool
    audit_weight: float
    policy: str
    epoch: int
    label: int
    status: str
    erased: bool
    overruled: bool = False
    settled: int = 0
    group_late: bool = False


@dataclass(frozen=True, slots=True)
class LateGroup:
    """A decision whose group became known, or disputed, after it had been made; `overruled`: people
    had overruled it before.
    """

    seq: int
    accept: bool
    before: Scalar | None
    now: Scalar | None
    overruled: bool = False


@dataclass(frozen=True, slots=True)
class Overruled:
    """A decision that a human overruled: `accept` is what was drawn, so the human did the opposite."""

    seq: int
    accept: bool
    group: Scalar | None


@dataclass(frozen=True)
class WindowPlan:
    """Windows follow one another without a gap: number n covers [origin + n length, origin + (n +
    1) length).
    """

    length: float = 30 * 86400.0
    origin: float = 0.0

    def __post_init__(self) -> None:
        if not (self.length > 0 and math.isfinite(self.length) and math.isfinite(self.origin)):
            raise Invalid(f"a window of {self.length} seconds from {self.origin} on cannot be.")

    def at(self, now: float) -> tuple[str, float, float]:
        """(name, start, end) of the window that holds `now`."""
        number = math.floor((now - self.origin) / self.length)
        number += (self.origin + (number + 1) * self.length <= now) - (
            self.origin + number * self.length > now
        )
        return (
            f"w{number}",
            self.origin + number * self.length,
            self.origin + (number + 1) * self.length,
        )


@dataclass(frozen=True)
class Window:
    """A window whose secret has been committed to: `commitment` is the secret's SHA-256."""

    name: str
    starts: float
    ends: float
    commitment: str


@dataclass(frozen=True)
class Policy:
    """A policy as it was published: `id` is the hash of `document`; `signature` covers everything
    but itself and `seq`.

    A policy of the lineage names in `info` the version of the rules under which it was learned, and
    the digest of its checkpoint.
    """

    id: str
    tenant: str
    product: str
    epoch: int
    parent: str | None
    document: Json
    info: Json
    certificate: str | None
    in_lineage: bool
    signature: str
    seq: int = 0

    @property
    def rules(self) -> int:
        """The version of the rules under which it was published; ledgers written before versions
        were recorded are of version 1.
        """
        return int(self.info.get("rules", 1))

    @property
    def checkpoint(self) -> str | None:
        """The digest of the checkpoint that was published with it; None under rules 1."""
        found = self.info.get("checkpoint")
        return None if found is None else str(found)

    @property
    def signed(self) -> Json:
        """What the signature covers, and what the chain holds."""
        return {
            "id": self.id,
            "tenant": self.tenant,
            "product": self.product,
            "epoch": self.epoch,
            "parent": self.parent,
            "policy": self.document,
            "info": self.info,
            "certificate": self.certificate,
            "lineage": self.in_lineage,
        }

    def verify(self, public_key: str) -> None:
        """Damaged unless the ledger's key signed it."""
        verify_signature(public_key, self.signed, self.signature)

    @classmethod
    def from_body(cls, seq: int, body: Json) -> "Policy":
        """Read a row of the chain."""
        return cls(
            body["id"],
            body["tenant"],
            body["product"],
            body["epoch"],
            body["parent"],
            body["policy"],
            body["info"],
            body["certificate"],
            body["lineage"],
            body["signature"],
            seq,
        )


@dataclass(frozen=True)
class Active:
    """What decides now."""

    policy: Policy
    mode: Mode
    reason: str
    since: int


@dataclass(frozen=True)
class CertificateRow:
    """A certificate as it was recorded."""

    seq: int
    at: float
    epoch: int
    document: Json


@dataclass(frozen=True)
class Event:
    """What an operator, a trainer or the ledger itself did."""

    seq: int
    at: float
    tenant: str | None
    product: str | None
    action: str
    by: str
    note: str
    policy: str | None
    info: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Lease:
    """The right to publish until `expires`; `token` grows whenever the holder changes."""

    name: str
    holder: str
    token: int
    expires: float


@dataclass(frozen=True)
class Head:
    """The end of the chain."""

    seq: int
    hash: str
    at: float


@dataclass(frozen=True)
class SignedHead:
    """A head that the ledger's key has signed: publish it, and nothing before it can be changed
    unseen.
    """

    ledger: str
    head: Head
    public_key: str
    signature: str

    def to_json(self) -> Json:
        """Plain JSON."""
        return {**self._signed, "public_key": self.public_key, "signature": self.signature}

    @property
    def _signed(self) -> Json:
        return {
            "ledger": self.ledger,
            "seq": self.head.seq,
            "hash": self.head.hash,
            "at": self.head.at,
        }

    def verify(self, public_key: str | None = None) -> None:
        """Damaged unless the key signed it; the key is the one that you know, not the one that the
        file brings along.
        """
        if public_key not in (None, self.public_key):
            raise Damaged(f"the head was signed by {self.public_key}, not by {public_key}.")
        verify_signature(self.public_key, self._signed, self.signature)

    @classmethod
    def of(
        cls, ledger: str, head: Head, public_key: str, sign: Callable[[Json], str]
    ) -> "SignedHead":
        """Sign a head."""
        blank = cls(ledger, head, public_key, "")
        return cls(ledger, head, public_key, sign(blank._signed))

    @classmethod
    def from_json(cls, value: Json) -> "SignedHead":
        """Read what `to_json` wrote."""
        try:
            head = Head(int(value["seq"]), str(value["hash"]), float(value["at"]))
            return cls(value["ledger"], head, value["public_key"], value["signature"])
        except (KeyError, TypeError, ValueError):
            raise Damaged(
                "this is no signed head.", hint="ledger.signed_head().to_json() makes one."
            ) from None


@dataclass(frozen=True)
class Counts:
    """How many decisions stand where."""

    decisions: int = 0
    accepted: int = 0
    usable: int = 0
    pending: int = 0
    resolved: int = 0
    disputed: int = 0
    overruled: int = 0
    quarantined: int = 0
    erased: int = 0


def require_json(what: str, document: Json) -> Json:
    """The document if it has a canonical text, else Invalid."""
    try:
        canonical(document)
    except (TypeError, ValueError) as error:
        raise Invalid(f"{what} cannot be written as JSON ({error}).") from NotSerialisable(
            str(error)
        )
    return document
