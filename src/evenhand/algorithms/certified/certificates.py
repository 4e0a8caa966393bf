"""What is claimed about a policy, in a record for people."""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from evenhand.algorithms.certified.state import (
    AcceptedShareEnds,
    CertifiedState,
    GapEnds,
    Guarantee,
)
from evenhand.errors import CannotCertify, InvalidInput, NotSerialisable
from evenhand.fairness.certificate import (
    CellCount,
    Certificate,
    CoveredFrom,
    DrawCount,
    GapInterval,
    OutsideCount,
    known_label,
    plain_label,
    standard_assumptions,
)
from evenhand.findings import ROUNDING
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.rounds import Epoch, GroupCounts
from evenhand.words import Group

Key = TypeVar("Key")


def certificate(
    state: CertifiedState,
    policy: Mixture,
    gaps: GapEnds | None,
    valid_until: int | None,
    accepted: AcceptedShareEnds | None = None,
) -> Certificate:
    """What is claimed about a policy whose gaps, and accepted share, lie between these
    values (None: a mixture of constants, whose gaps are zero and whose accepted share is known).
    """
    guarantee = state.guarantee
    evidence = state.evidence
    process = state.process
    groups = state.groups or ()
    names = guarantee.gaps(groups)
    named = tuple(map(plain_label, groups))
    lower, upper = gaps if gaps is not None else (np.zeros(len(names)), np.zeros(len(names)))
    lower = np.maximum(lower, -1.0)
    upper = np.minimum(upper, 1.0)
    fingerprint, models = _fingerprint(policy)
    issued = Certificate(
        limit=guarantee.limit,
        delta=guarantee.delta,
        spent=state.ledger.spent,
        bound="constants only (exact)" if process is None else process.name,
        bound_params={} if process is None else dict(process.params),
        policy=fingerprint,
        window=(state.began, max(state.closed_to, state.began)),
        assumptions=standard_assumptions(
            maturity=None if guarantee.maturity is None else f"{guarantee.maturity:g}",
            drift_false_alarm=guarantee.drift_false_alarm,
            late_groups=bool(evidence.late_groups or evidence.unknown),
            audit_budget=guarantee.budgeted,
            quota=guarantee.has_quota,
            since=state.began,
        ),
        counts=tuple(
            CellCount(plain_label(g), y, int(n)) for (g, y), n in _sorted(evidence.judged)
        ),
        gaps=tuple(
            GapInterval(rate.symbol, named[k], named[j], float(lower[i]), float(upper[i]))
            for i, (rate, j, k) in enumerate(names)
        ),
        valid_until=valid_until,
        groups=named,
        covered=tuple(
            CoveredFrom(plain_label(group), first) for group, first in state.covered_from.items()
        ),
        suspensions=state.suspensions,
        outside=tuple(OutsideCount(known_label(g), int(n)) for g, n in _sorted(uncovered(state))),
        overruled=_draws(evidence.overruled),
        late_groups=_draws(evidence.late_groups),
        erased=int(evidence.erased),
        models=models,
        schema=None if policy.schema is None else policy.schema.sha256,
        columns="" if policy.schema is None else policy.schema.describe(),
        **_shares(state, policy, accepted),
    )
    reasons = state.alarms or (() if state.process is not None else state.ended)
    return issued.suspend("; ".join(reasons)) if reasons else issued


def certificate_of(state: CertifiedState, epoch: Epoch) -> Certificate:
    """What is claimed about the policy of an epoch. That of a frozen policy never changes; only a
    suspension ends it.
    """
    if state.frozen is not None:
        return state.frozen
    gaps: GapEnds | None = state.gaps.get(epoch.number)
    accepted = state.accepted.get(epoch.number)
    return certificate(state, epoch.mixture, gaps, epoch.end, accepted)


def _shares(
    state: CertifiedState, policy: Mixture, accepted: AcceptedShareEnds | None
) -> dict[str, Any]:
    """What is said of the accepted share. Without a cap and a floor no interval is kept of it, and
    the constants' weights say: at least that of accept-all, at most all but that of reject-all.
    """
    guarantee = state.guarantee
    if not guarantee.limits_acceptance:
        most = max(0.0, 1.0 - policy.weight_of(REJECT_ALL))
        return {"accepted": (min(policy.weight_of(ACCEPT_ALL), most), most)}
    if accepted is None:
        exactly = policy.weight_of(ACCEPT_ALL)
        accepted = (exactly, exactly)
    low, high = max(accepted[0], 0.0), min(accepted[1], 1.0)
    below = guarantee.accept_at_least is not None and low < guarantee.least - ROUNDING
    return {
        "accept_at_most": guarantee.accept_at_most,
        "accept_at_least": guarantee.accept_at_least,
        "accepted": (low, high),
        "floor_suspended": _outranking(guarantee) if below else None,
    }


def _outranking(guarantee: Guarantee) -> str:
    """Why a policy may accept fewer people than the floor says."""
    above = {"the audit budget": guarantee.budgeted, "the quota": guarantee.has_quota}
    names = [name for name, given in above.items() if given]
    return f"{' or '.join(names)} outranks it"


def certify(state: CertifiedState, policy: Mixture, valid_until: int) -> Certificate:
    """A certificate for any mixture of the run's hypotheses; nothing is known of a hypothesis that
    has no interval. CannotCertify if its gap may be above the limit; InvalidInput if the share that
    it accepts may leave cap or floor.
    """
    members: tuple[object, ...] = ()
    lower = np.zeros((1, 0))
    upper = np.zeros((1, 0))
    if state.process is not None:
        members, lower, upper = state.certified()
    fewest, largest = np.zeros((2, len(members)))
    if state.accepted_shares is not None:
        fewest, largest, _ = state.accepted_share_ends()
    least = np.zeros(len(lower))
    most = np.zeros(len(upper))
    accepts = np.zeros(2)
    for hypothesis, weight in zip(policy.hypotheses, policy.weights, strict=True):
        if hypothesis in (ACCEPT_ALL, REJECT_ALL):
            accepts += weight * (hypothesis == ACCEPT_ALL)
            continue
        if hypothesis in members:
            place = members.index(hypothesis)
            least += weight * lower[:, place]
            most += weight * upper[:, place]
            accepts += weight * np.array([fewest[place], largest[place]])
        else:
            least -= weight
            most += weight
            accepts += weight * np.array([0.0, 1.0])
    worst = max(most.max(initial=0.0), -least.min(initial=0.0))
    if worst > state.guarantee.limit + ROUNDING:
        raise _not_certified(state, (least, most))
    ends = (float(accepts[0]), float(accepts[1]))
    _require_permitted(state.guarantee, ends)
    return certificate(state, policy, (least, most), valid_until, ends)


def _require_permitted(guarantee: Guarantee, accepted: AcceptedShareEnds) -> None:
    low, high = accepted
    above = guarantee.accept_at_most is not None and high > guarantee.most + ROUNDING
    below = guarantee.accept_at_least is not None and low < guarantee.least - ROUNDING
    if above or below:
        raise InvalidInput(
            f"the policy accepts between {low:.4f} and {high:.4f} of the population, as far as is "
            f"known, and {guarantee.least:g} to {guarantee.most:g} are permitted",
            requirement="a certificate covers cap and floor for every possible accepted share",
            hint="certify a mixture with more weight on a lottery, or wait for more people.",
            argument="policy",
        )


def _not_certified(state: CertifiedState, gaps: GapEnds) -> CannotCertify:
    """Which count is missing, and how many more people that is, expected: widths fall like one
    over the root of the count.
    """
    rate = state.guarantee.rates[0]
    evidence = state.evidence
    have = {group: evidence.denominator(group, rate) for group in evidence.groups}
    group: Group = min(have, key=lambda value: have[value]) if have else None
    count = have.get(group, 0.0)
    lower, upper = gaps
    room = state.guarantee.limit - float(np.abs(0.5 * (lower + upper)).max(initial=0.0))
    width = float((0.5 * (upper - lower)).max(initial=1.0))
    needed = count * (width / room) ** 2 if room > 0 else float("inf")
    return CannotCertify(
        group=group,
        denominator=rate.denominator_name,
        have=int(count),
        needed=max(needed, count + 1),
        people=int(evidence.people),
    )


def uncovered(state: CertifiedState) -> dict[Group, float]:
    """People of groups that the certificate does not cover, by group; None: the unknown one."""
    outside = {
        group: people
        for group, people in state.evidence.seen.items()
        if state.groups and group not in state.groups
    }
    if state.evidence.unknown:
        outside[None] = state.evidence.unknown
    return outside


def _draws(counts: GroupCounts) -> tuple[DrawCount, ...]:
    return tuple(DrawCount(known_label(g), accept, int(n)) for (g, accept), n in _sorted(counts))


def _sorted(counts: Mapping[Key, float]) -> list[tuple[Key, float]]:
    return sorted(counts.items(), key=str)


def _fingerprint(policy: Mixture) -> tuple[str, tuple[str, ...]]:
    """The hash of a policy, and those of its models; a description, if it cannot be stored."""
    try:
        return policy.sha256, policy.models
    except NotSerialisable:
        return f"not serialisable: {policy.describe()}", ()
