"""Policies, certificates, leases and what operators did: their records, and how they are written
inside a transaction.

A publication is a compare-and-swap: it names the policy that it follows. The lease's token is a
fence: a trainer that was asleep while another took over holds an old token, and its publication is
refused.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.sql import Select

from evenhand.canonical import canonical, canonical_digest
from evenhand.contracts import Json
from evenhand.errors import NotSerialisable
from evenhand.fairness.certificate import PROTOCOL_VERSION
from evenhand_service.ledger.chain import Transaction
from evenhand_service.ledger.database import LEASES, MODELS, POLICIES
from evenhand_service.ledger.decision_draw import Mode, require_name
from evenhand_service.ledger.keyring import Keyring, verify_signature
from evenhand_service.ledger.refusals import Damaged, Invalid, LeaseHeld, NotFound, StalePolicy
from evenhand_service.ledger.standalone_verifier import model_hash

ACTIONS = ("kill", "revive", "rollback", "shadow", "live", "suspend", "epoch_closed", "note")
"""What operators and trainers may record; the ledger itself adds genesis, window_plan, revealed,
restored, gap_confirmed, clock_confirmed and root_rotated.
"""


_SIGNED = ("id", "product", "epoch", "parent", "policy", "info", "certificate", "lineage")
"""What the signature of a policy covers, in the order of the fields of `PolicyRecord`."""


@dataclass(frozen=True)
class PolicyRecord:
    """A policy as it was published.

    Every policy names in `info` the protocol version under which it was published; one of the
    lineage also names the digest of its checkpoint. What decides is `evenhand.contracts.Policy`.

    Parameters
    ----------
    id : str
        The hash of the document.
    product : str
        For whom and for what it decides.
    epoch : int
        Its place in the lineage.
    parent : str or None
        The id of the policy before it.
    document : dict
        The policy as JSON.
    info : dict
        What the publisher says of it.
    certificate : str or None
        The digest of the certificate that was published with it.
    in_lineage : bool
        Whether it was learned; False for a constant that was registered for the kill switch.
    signature : str
        The ledger's signature of everything but itself and `seq`, in hexadecimal.
    seq : int
        The number of its row.

    Examples
    --------
    >>> info = {"protocol_version": 1, "checkpoint": "6f1c"}
    >>> PolicyRecord("id", "loan", 1, None, {}, info, None, True, "").checkpoint
    '6f1c'
    """

    id: str
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
    def checkpoint(self) -> str | None:
        """The digest of the checkpoint that was published with it; None outside of the lineage."""
        digest = self.info.get("checkpoint")
        return None if digest is None else str(digest)

    @property
    def signed(self) -> Json:
        """What the signature covers, and what the chain holds."""
        values = [getattr(self, name.name) for name in fields(self)]
        return dict(zip(_SIGNED, values, strict=False))

    def verify(self, public_key: str) -> None:
        """Check the signature.

        Parameters
        ----------
        public_key : str
            The public key of the ledger, in hexadecimal.

        Raises
        ------
        Damaged
            If that key did not sign it.
        """
        verify_signature(public_key, self.signed, self.signature)

    @classmethod
    def from_body(cls, seq: int, body: Json) -> "PolicyRecord":
        """Read a row of the chain.

        Parameters
        ----------
        seq : int
            Its number.
        body : dict
            Its body.

        Returns
        -------
        PolicyRecord
            The policy; its signature has not been checked.

        Raises
        ------
        Damaged
            If it was published under another protocol version.
        """
        version = body["info"].get("protocol_version")
        if version != PROTOCOL_VERSION:
            raise Damaged(
                f"the policy of row {seq} has protocol version {version!r}; this evenhand knows "
                f"version {PROTOCOL_VERSION} alone.",
                hint="use the evenhand that published it.",
            )
        return cls(*[*(body[name] for name in (*_SIGNED, "signature")), seq])


@dataclass(frozen=True)
class Active:
    """What decides now.

    Parameters
    ----------
    policy : PolicyRecord
        The policy.
    mode : {"live", "shadow", "killed"}
        How it decides.
    reason : str
        Why it is this one.
    since : int
        The number of the row from which on it decides.

    Examples
    --------
    >>> record = PolicyRecord("id", "loan", 1, None, {}, {}, None, True, "", seq=3)
    >>> active([record], [])
    Active(policy=..., mode='live', reason='published for epoch 1', since=3)
    """

    policy: PolicyRecord
    mode: Mode
    reason: str
    since: int


@dataclass(frozen=True)
class CertificateRow:
    """A certificate as it was recorded.

    Parameters
    ----------
    seq : int
        The number of its row.
    at : float
        When it was recorded, in seconds.
    epoch : int
        The epoch that it is about.
    document : dict
        The certificate as JSON.

    Examples
    --------
    >>> CertificateRow(8, 0.0, 1, {"status": "certified"}).epoch
    1
    """

    seq: int
    at: float
    epoch: int
    document: Json


@dataclass(frozen=True)
class Event:
    """What an operator, a trainer or the ledger itself did.

    Parameters
    ----------
    seq : int
        The number of its row.
    at : float
        When, in seconds.
    product : str or None
        To what it was done; None for the whole ledger.
    action : str
        What was done.
    by : str
        Who did it.
    note : str
        What they wrote about it.
    policy : str or None
        The id of the policy that it names.
    info : dict
        What belongs to the action.

    Examples
    --------
    >>> Event(9, 0.0, "loan", "shadow", "Ada", "a trial", None).action
    'shadow'
    """

    seq: int
    at: float
    product: str | None
    action: str
    by: str
    note: str
    policy: str | None
    info: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Lease:
    """The right to publish.

    Parameters
    ----------
    name : str
        What it is the right to.
    holder : str
        Who has it.
    token : int
        Grows whenever the holder changes.
    expires : float
        Until when it is held, in seconds.

    Examples
    --------
    >>> Lease("trainer", "replica 1", 1, 60.0).token
    1
    """

    name: str
    holder: str
    token: int
    expires: float


def require_json(what: str, document: Json) -> None:
    """Refuse a document that has no canonical text."""
    try:
        canonical(document)
    except (TypeError, ValueError) as error:
        raise Invalid(f"{what} cannot be written as JSON ({error}).") from NotSerialisable(
            str(error)
        )


@dataclass(frozen=True)
class Publication:
    """A policy that is to be published, with what is published beside it.

    Without a checkpoint it stands outside of the lineage.
    """

    product: str
    document: Json
    epoch: int = 0
    parent: str | None = None
    checkpoint: Json | None = None
    certificate: Json | None = None
    info: Json | None = None
    lease: Lease | None = None
    models: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for sha256, model in self.models.items():
            require_json("the model", model)
            if model_hash(model) != sha256:
                raise Invalid(
                    f"a model is given as {sha256}, but its bytes have the hash "
                    f"{model_hash(model)}.",
                    hint="give what policy.to_json(models) has put there.",
                )

        require_name("product", self.product)
        require_json("the policy", self.document)
        require_json("the certificate", self.certificate or {})
        require_json("the checkpoint", self.checkpoint or {})
        require_json("info", self.info or {})

    def publish(self, transaction: Transaction, keyring: Keyring) -> PolicyRecord:
        """Append it as the next policy of its lineage, or StalePolicy."""
        named: Json = {"protocol_version": PROTOCOL_VERSION}
        if self.checkpoint is not None:
            named["checkpoint"] = canonical_digest(self.checkpoint)
        self._require_turn(transaction)
        stored = select(MODELS.c.sha256).where(MODELS.c.sha256.in_(list(self.models)))
        known = set(transaction.connection.scalars(stored))
        for sha256 in sorted(self.models.keys() - known):  # each model is stored once
            transaction.append("model", {"sha256": sha256, "model": self.models[sha256]})
        if self.checkpoint is not None:
            body = {
                "product": self.product,
                "epoch": self.epoch,
                "checkpoint": self.checkpoint,
                "digest": named["checkpoint"],
            }
            transaction.append("checkpoint", body)
        if self.certificate is not None:
            certify(transaction, self.product, self.epoch, self.certificate)
        unsigned = PolicyRecord(
            canonical_digest(self.document),
            self.product,
            self.epoch,
            self.parent,
            self.document,
            {**(self.info or {}), **named},
            certificate=None if self.certificate is None else canonical_digest(self.certificate),
            in_lineage=self.checkpoint is not None,
            signature="",
        )
        body = unsigned.signed | {"signature": keyring.sign(unsigned.signed)}
        return PolicyRecord.from_body(transaction.append("policy", body), body)

    def registered(self, transaction: Transaction) -> PolicyRecord | None:
        """The same policy with the same info, if it stands outside of the lineage already."""
        outside = policies_of(self.product).where(POLICIES.c.epoch.is_(None))
        same = outside.where(POLICIES.c.id == canonical_digest(self.document))
        for row in transaction.rows(same):
            found = PolicyRecord.from_body(row.seq, json.loads(row.body))
            if found.info == {**(self.info or {}), "protocol_version": PROTOCOL_VERSION}:
                return found
        return None

    def _require_turn(self, transaction: Transaction) -> None:
        """It continues the lineage, and its trainer still holds the lease; else StalePolicy."""
        if self.checkpoint is not None:
            lineage = policies_of(self.product).where(POLICIES.c.epoch.is_not(None))
            newest_first = lineage.order_by(None).order_by(POLICIES.c.epoch.desc())
            rows = transaction.rows(newest_first.limit(1))
            parent = None
            epoch = self.epoch
            if rows:
                last = PolicyRecord.from_body(rows[0].seq, json.loads(rows[0].body))
                parent = last.id
                # the numbers between are those of its variants
                variants = (self.info or {}).get("counts", {}).get("variants", ())
                epoch = last.epoch + 1 + len(variants)
            if (self.parent, self.epoch) != (parent, epoch):
                raise StalePolicy(
                    f"epoch {self.epoch} after policy {self.parent} cannot be published: "
                    f"the next one is epoch {epoch} after {parent}.",
                    hint="read the lineage again; another trainer was faster.",
                )
        if self.lease is not None:
            held = select(LEASES.c.holder, LEASES.c.token).where(LEASES.c.name == self.lease.name)
            mine = (self.lease.holder, self.lease.token)
            if [tuple(row) for row in transaction.rows(held)] != [mine]:
                raise StalePolicy(
                    f"the lease {self.lease.name!r} with token {self.lease.token} "
                    "has passed to another trainer.",
                    hint="acquire it again.",
                )


def policies_of(product: str) -> Select[Any]:
    """Every policy of a product, oldest first."""
    columns = (POLICIES.c.seq, POLICIES.c.body)
    mine = select(*columns).where(POLICIES.c.product == product)
    return mine.order_by(POLICIES.c.seq)


def certify(transaction: Transaction, product: str, epoch: int, certificate: Json) -> int:
    """Append a certificate."""
    body = {
        "product": product,
        "epoch": epoch,
        "certificate": certificate,
        "digest": canonical_digest(certificate),
    }
    return transaction.append("certificate", body)


def acquire(transaction: Transaction, name: str, holder: str, seconds: float) -> Lease:
    """Take, or prolong, a lease; its token grows when it changes hands or had expired."""
    rows = transaction.rows(select(LEASES).where(LEASES.c.name == name))
    expires = transaction.now + seconds
    if not rows:
        transaction.pending[LEASES].append((name, holder, 1, expires))
        return Lease(name, holder, 1, expires)
    held = rows[0]
    alive = held.expires > transaction.now
    if alive and held.holder != holder:
        raise LeaseHeld(
            f"{held.holder} holds the lease {name!r} "
            f"for another {held.expires - transaction.now:.0f} s.",
            hint="wait, or stop it.",
        )
    token = held.token if alive else held.token + 1
    change = update(LEASES).where(LEASES.c.name == name)
    transaction.connection.execute(change.values(holder=holder, token=token, expires=expires))
    return Lease(name, holder, token, expires)


def require_action(transaction: Transaction, product: str, action: str, policy: str | None) -> None:
    """Refuse an action that nobody knows, and a "kill" or "rollback" to a policy that cannot
    decide for this product.
    """
    if action not in ACTIONS:
        raise Invalid(f"{action!r} is no action; the actions are {', '.join(ACTIONS)}.")
    if action not in ("kill", "rollback"):
        return
    rows = transaction.rows(policies_of(product).where(POLICIES.c.id == policy))
    records = [PolicyRecord.from_body(row.seq, json.loads(row.body)) for row in rows]
    if not records:
        raise NotFound(
            f"{action} names policy {policy}, which was never published for this product."
        )
    certified = any(p.in_lineage and p.certificate is not None for p in records)
    if action == "rollback" and not certified:
        raise Invalid(
            f"policy {policy} was published without a certificate; "
            "only a certified one can be returned to."
        )


def active(policies: Sequence[PolicyRecord], events: Sequence[Event]) -> Active | None:
    """What decides now: the last policy published or returned to, unless the kill switch is on.
    Pure.

    A publication after a rollback ends the rollback; only "revive" ends a kill.
    """
    last: dict[str, Event] = {event.action: event for event in events}
    by_id = {policy.id: policy for policy in policies}
    killed = last.get("kill")
    revived = last.get("revive")
    if killed and killed.policy in by_id and not (revived and revived.seq > killed.seq):
        return Active(by_id[killed.policy], "killed", killed.note, killed.seq)
    lineage = {policy.id: policy for policy in policies if policy.in_lineage}
    deciding = [(p.seq, p, f"published for epoch {p.epoch}") for p in lineage.values()]
    if not deciding:
        return None
    returned = [e for e in events if e.action == "rollback" and e.policy in lineage]
    deciding += [(e.seq, lineage[str(e.policy)], e.note) for e in returned]
    seq, policy, reason = max(deciding, key=lambda part: part[0])
    shadow = last.get("shadow")
    live = last.get("live")
    switched = max((e.seq for e in (shadow, live) if e), default=0)
    mode: Mode = "shadow" if shadow and shadow.seq == switched else "live"
    return Active(policy, mode, reason, max(seq, switched))
