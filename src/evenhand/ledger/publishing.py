"""Policies, certificates and leases inside a transaction.

A publication is a compare-and-swap: it names the policy that it follows. The lease's token is a
fence: a trainer that was asleep while another took over holds an old token, and its publication is
refused.
"""

import json
from collections.abc import Sequence
from typing import Any, get_args

from sqlalchemy import select, update
from sqlalchemy.sql import Select

from evenhand.canonical import canonical_digest
from evenhand.contracts import Json
from evenhand.fairness.certificate import RULES
from evenhand.ledger.chain import Transaction
from evenhand.ledger.database import EVENTS, LEASES, POLICIES
from evenhand.ledger.keyring import Keyring
from evenhand.ledger.records import Active, Event, Lease, Mode, Policy
from evenhand.ledger.refusals import Invalid, LeaseHeld, NotFound, StalePolicy

ACTIONS = ("kill", "revive", "rollback", "shadow", "live", "suspend", "epoch_closed", "note")
"""What operators and trainers may record; the ledger itself adds genesis, revealed, restored and
gap_confirmed.
"""


def policies_of(tenant: str, product: str) -> Select[Any]:
    """Every policy of a product, oldest first."""
    columns = (POLICIES.c.seq, POLICIES.c.body)
    return (
        select(*columns)
        .where(POLICIES.c.tenant == tenant, POLICIES.c.product == product)
        .order_by(POLICIES.c.seq)
    )


def _last(transaction: Transaction, tenant: str, product: str) -> Policy | None:
    newest = policies_of(tenant, product).where(POLICIES.c.epoch.is_not(None)).order_by(None)
    rows = transaction.rows(newest.order_by(POLICIES.c.epoch.desc()).limit(1))
    return Policy.from_body(rows[0].seq, json.loads(rows[0].body)) if rows else None


def publish(
    transaction: Transaction,
    keyring: Keyring,
    policy: Policy,
    *,
    certificate: Json | None = None,
    checkpoint: Json | None = None,
    lease: Lease | None = None,
) -> Policy:
    """Append the next policy of its lineage, with its certificate and its checkpoint, or
    StalePolicy.
    """
    if policy.in_lineage:
        _require_next(_last(transaction, policy.tenant, policy.product), policy)
    if lease is not None:
        _require_lease(transaction, lease)
    if checkpoint is not None:
        named = {"tenant": policy.tenant, "product": policy.product, "epoch": policy.epoch}
        transaction.append(
            "checkpoint", {**named, "checkpoint": checkpoint, "digest": policy.checkpoint}
        )
    if certificate is not None:
        certify(transaction, policy.tenant, policy.product, policy.epoch, certificate)
    signature = keyring.sign(policy.signed)
    body = policy.signed | {"signature": signature}
    return Policy.from_body(transaction.append("policy", body), body)


def unsigned(
    tenant: str,
    product: str,
    document: Json,
    *,
    epoch: int,
    parent: str | None,
    info: Json | None,
    certificate: Json | None,
    checkpoint: Json | None,
    lineage: bool,
) -> Policy:
    """A policy as it will be signed: its record names the rules of now, and its checkpoint."""
    named: Json = {"rules": RULES} | (
        {} if checkpoint is None else {"checkpoint": canonical_digest(checkpoint)}
    )
    return Policy(
        canonical_digest(document),
        tenant,
        product,
        epoch,
        parent,
        document,
        dict(info or {}) | named,
        None if certificate is None else canonical_digest(certificate),
        lineage,
        signature="",
    )


def certify(
    transaction: Transaction, tenant: str, product: str, epoch: int, certificate: Json
) -> int:
    """Append a certificate."""
    body = {
        "tenant": tenant,
        "product": product,
        "epoch": epoch,
        "certificate": certificate,
        "digest": canonical_digest(certificate),
    }
    return transaction.append("certificate", body)


def _require_next(last: Policy | None, policy: Policy) -> None:
    parent, epoch = (None, policy.epoch) if last is None else (last.id, last.epoch + 1)
    if (policy.parent, policy.epoch) != (parent, epoch):
        raise StalePolicy(
            f"epoch {policy.epoch} after policy {policy.parent} cannot be published: the next one is epoch {epoch} after {parent}.",
            hint="read the lineage again; another trainer was faster.",
        )


def _require_lease(transaction: Transaction, lease: Lease) -> None:
    rows = transaction.rows(
        select(LEASES.c.holder, LEASES.c.token).where(LEASES.c.name == lease.name)
    )
    if [(row.holder, row.token) for row in rows] != [(lease.holder, lease.token)]:
        raise StalePolicy(
            f"the lease {lease.name!r} with token {lease.token} has passed to another trainer.",
            hint="acquire it again.",
        )


def acquire(transaction: Transaction, name: str, holder: str, seconds: float) -> Lease:
    """Take, or prolong, a lease; its token grows when it changes hands or had expired."""
    rows = transaction.rows(select(LEASES).where(LEASES.c.name == name))
    expires = transaction.now + seconds
    if not rows:
        transaction.insert(LEASES, (name, holder, 1, expires))
        return Lease(name, holder, 1, expires)
    held = rows[0]
    alive = held.expires > transaction.now
    if alive and held.holder != holder:
        raise LeaseHeld(
            f"{held.holder} holds the lease {name!r} for another {held.expires - transaction.now:.0f} s.",
            hint="wait, or stop it.",
        )
    token = held.token if alive else held.token + 1
    change = (
        update(LEASES)
        .where(LEASES.c.name == name)
        .values(holder=holder, token=token, expires=expires)
    )
    transaction.connection.execute(change)
    return Lease(name, holder, token, expires)


def operate(
    transaction: Transaction,
    tenant: str,
    product: str,
    action: str,
    by: str,
    note: str,
    policy: str | None,
) -> int:
    """Append what an operator did; "kill" and "rollback" name a policy of this product."""
    if action not in ACTIONS:
        raise Invalid(f"{action!r} is no action; the actions are {', '.join(ACTIONS)}.")
    if action in ("kill", "rollback"):
        _require_target(transaction, tenant, product, action, policy)
    return append_event(
        transaction, action, by, note, tenant=tenant, product=product, policy=policy
    )


def append_event(
    transaction: Transaction,
    action: str,
    by: str,
    note: str,
    *,
    tenant: str | None = None,
    product: str | None = None,
    policy: str | None = None,
    info: Json | None = None,
) -> int:
    """Append an event."""
    body = {
        "action": action,
        "by": by,
        "note": note,
        "tenant": tenant,
        "product": product,
        "policy": policy,
        "info": info or {},
    }
    return transaction.append("event", body)


def _require_target(
    transaction: Transaction, tenant: str, product: str, action: str, policy: str | None
) -> None:
    rows = transaction.rows(policies_of(tenant, product).where(POLICIES.c.id == policy))
    found = [Policy.from_body(row.seq, json.loads(row.body)) for row in rows]
    if not found:
        raise NotFound(
            f"{action} names policy {policy}, which was never published for this product."
        )
    if action == "rollback" and not any(p.in_lineage and p.certificate is not None for p in found):
        raise Invalid(
            f"policy {policy} was published without a certificate; only a certified one can be returned to."
        )


def events_of(tenant: str | None, product: str | None) -> Select[Any]:
    """Events in order, of one product or of all."""
    found = select(EVENTS.c.seq, EVENTS.c.at, EVENTS.c.body).order_by(EVENTS.c.seq)
    if tenant is not None:
        found = found.where(EVENTS.c.tenant == tenant)
    return found if product is None else found.where(EVENTS.c.product == product)


def event_from(row: Any) -> Event:
    """A row of the chain as an event."""
    body = json.loads(row.body)
    names = ("tenant", "product", "action", "by", "note", "policy", "info")
    return Event(row.seq, row.at, **{name: body[name] for name in names})


def active(policies: Sequence[Policy], events: Sequence[Event]) -> Active | None:
    """What decides now: the last policy published or returned to, unless the kill switch is on.
    Pure.

    A publication after a rollback ends the rollback; only "revive" ends a kill.
    """
    by_id = {policy.id: policy for policy in policies}
    lineage = {policy.id: policy for policy in policies if policy.in_lineage}
    published = [(p.seq, p, f"published for epoch {p.epoch}") for p in policies if p.in_lineage]
    returned = [
        (e.seq, lineage[e.policy], e.note)
        for e in events
        if e.action == "rollback" and e.policy in lineage
    ]
    killed = _last_of(events, "kill", "revive")
    if killed is not None and killed.action == "kill" and killed.policy in by_id:
        return Active(by_id[killed.policy], "killed", killed.note, killed.seq)
    if not published:
        return None
    seq, policy, reason = max([*published, *returned], key=lambda part: part[0])
    shadow = _last_of(events, "shadow", "live")
    mode: Mode = "shadow" if shadow is not None and shadow.action == "shadow" else "live"
    assert mode in get_args(Mode)
    return Active(policy, mode, reason, max(seq, shadow.seq if shadow else 0))


def _last_of(events: Sequence[Event], *actions: str) -> Event | None:
    return next((event for event in reversed(events) if event.action in actions), None)
