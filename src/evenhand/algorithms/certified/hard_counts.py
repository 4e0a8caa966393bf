"""Hard counts: the audit budget and the quota, which hold for every outcome and not only with high
probability.

An epoch is planned as if there were no counts. Before each coin `gate` looks at them: while one is
used up, a variant of the planned epoch takes its place. The weight of an audit coin that is not
tossed goes from accept-all to reject-all. Constants have equal rates in all groups, so the gaps of
the policy, and what is certified about them, stay as they are.
"""

from dataclasses import replace
from math import floor, inf
from typing import TypeVar

from evenhand.algorithms.certified.intervals import labelled_groups
from evenhand.algorithms.certified.quota import Quota
from evenhand.algorithms.certified.start import lottery
from evenhand.algorithms.certified.state import CertifiedState, PlannedEpoch
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.rounds import Epoch, Rounds

Kept = TypeVar("Kept")


def budget_left(audit_budget: float | None, rounds: Rounds) -> float:
    """Bad accepts that audits may still cost, those whose label has not come counted as bad."""
    return inf if audit_budget is None else audit_budget - rounds.audit_bill


def budget_spent(audit_budget: float | None, rounds: Rounds) -> bool:
    """Whether no audit can ever be afforded any more, whatever labels come."""
    return budget_left(audit_budget, rounds) + rounds.audits_pending < 1


def remaining(
    audit_budget: float | None, quota: Quota | None, rounds: Rounds, now: float | None
) -> tuple[float, float]:
    """How many people the audit coin may accept, and how many may be accepted at all, before
    anything more is known.

    A label that has not come counts as bad: bad + pending + 1 <= budget, or the coin is not
    tossed. So the budget holds for every outcome.
    """
    audits = inf if audit_budget is None else floor(budget_left(audit_budget, rounds))
    accepts = inf if quota is None else quota.left(rounds, now)
    return max(audits, 0), accepts


def gate(
    state: CertifiedState,
    rounds: Rounds,
    audit_budget: float | None,
    audits_left: float,
    accepts_left: float,
) -> tuple[CertifiedState, Epoch | None]:
    """Before a coin is tossed: the policy without its audit coin if the next audit could exceed
    the budget, and "reject all applicants" if the quota of the period is used up; the planned
    policy as soon as neither is so. Each is an epoch with a record of its own, written before
    its first coin, so that which rows are looked at is settled by earlier people alone.

    The weight of an audit coin that is not tossed goes to reject-all, never to the rest of the
    policy. Once paused, audits go on when half of what is left of the budget is free, so that
    late labels do not make an epoch of each person. audits_left, accepts_left: `remaining`.
    """
    sure = rounds.audit_bill - rounds.audits_pending
    wanted = 1.0
    if not state.audits_open and audit_budget is not None:
        wanted = max(1.0, 0.5 * (audit_budget - sure))
    audits_open = audits_left >= wanted
    quota_open = accepts_left >= 1
    if (audits_open, quota_open) == (state.audits_open, state.quota_open):
        return state, None
    state = replace(state, audits_open=audits_open, quota_open=quota_open)
    last = rounds.epoch
    number = last.number + (last.first_round < rounds.decided)
    state, epoch = variant(state, rounds, number)
    return state, replace(epoch, closed=last.closed, look_at=last.look_at)


def with_variants(
    state: CertifiedState, epoch: Epoch, rounds: Rounds
) -> tuple[CertifiedState, tuple[Epoch, ...]]:
    """The planned epoch, and before it in number what takes its place while a count is used up:
    the policy without its audit coin, and "reject all applicants".

    For whoever counts person by person, in a transaction of its own, and has no time to open an
    epoch there: all of them are on record before the first coin, and which of them a row is
    drawn by is settled by earlier rows alone. So each row is judged by a predictable record, as
    after `gate`. An epoch whose counts cannot be used up stands alone.
    """
    coin = epoch.mixture.weight_of(ACCEPT_ALL)
    used_up = []  # (audits open, quota open)
    if state.guarantee.budgeted and coin > 0:
        used_up.append((False, True))
    if state.guarantee.has_quota:
        used_up.append((True, False))
    first = epoch.number
    epoch = replace(epoch, number=first + len(used_up))
    state = replace(
        state,
        records=_moved(state.records, first, epoch.number),
        gaps=_moved(state.gaps, first, epoch.number),
        accepted=_moved(state.accepted, first, epoch.number),
    )
    state = as_planned(state, epoch)
    epochs = []
    for number, (audits_open, quota_open) in enumerate(used_up, first):
        state = replace(state, audits_open=audits_open, quota_open=quota_open)
        state, other = variant(state, rounds, number)
        state = replace(state, audits_open=True, quota_open=True)
        epochs.append(
            replace(
                other,
                first_round=epoch.first_round,
                rounds=epoch.rounds,
                closed=epoch.closed,
                look_at=epoch.look_at,
            )
        )
    return state, (*epochs, epoch)


def variant(state: CertifiedState, rounds: Rounds, number: int) -> tuple[CertifiedState, Epoch]:
    """The planned epoch from here to its end, as far as the counts allow it."""
    planned = state.planned
    assert planned is not None
    epoch = planned.epoch
    policy = epoch.mixture
    coin = policy.weight_of(ACCEPT_ALL)
    gaps = planned.gaps
    accepted = planned.accepted
    phase = epoch.phase
    if not state.quota_open:
        policy = lottery(0.0, state.guarantee.group_use)
        gaps, accepted = None, None
        phase = "quota used up"
    elif not state.audits_open and coin > 0:
        policy = without_coin(policy)
        accepted = None if accepted is None else (accepted[0] - coin, accepted[1] - coin)
        phase = epoch.phase if state.frozen is not None else "audits paused"
    record = planned.record
    if record is not None:
        labelled = labelled_groups(policy, (state.groups or ())[: len(record.labelled)])
        record = replace(record, labelled=labelled)
    state = replace(
        state,
        records=with_entry(state.records, number, record),
        gaps=with_entry(state.gaps, number, gaps),
        accepted=with_entry(state.accepted, number, accepted),
    )
    return state, replace(
        epoch,
        number=number,
        first_round=rounds.decided,
        rounds=epoch.end - rounds.decided,
        policy=replace(policy, schema=rounds.schema),
        phase=phase,
        audit=policy.weight_of(ACCEPT_ALL),
    )


def without_coin(policy: Mixture) -> Mixture:
    """The same without accept-all, whose weight goes to reject-all: both have equal rates in all
    groups, so the gaps stay.
    """
    parts = zip(policy.hypotheses, policy.weights, strict=True)
    kept = [(rule, weight) for rule, weight in parts if rule not in (ACCEPT_ALL, REJECT_ALL)]
    rest = policy.weight_of(ACCEPT_ALL) + policy.weight_of(REJECT_ALL)
    rules, weights = zip((REJECT_ALL, rest), *kept, strict=True)
    return Mixture(rules, weights, policy.group_use)


def as_planned(state: CertifiedState, epoch: Epoch) -> CertifiedState:
    """An epoch is opened as planned; `gate` says whether the counts allow it."""
    number = epoch.number
    planned = PlannedEpoch(
        epoch, state.records.get(number), state.gaps.get(number), state.accepted.get(number)
    )
    return replace(state, planned=planned, audits_open=True, quota_open=True)


def _moved(known: dict[int, Kept], number: int, to: int) -> dict[int, Kept]:
    """What is kept by the number of an epoch, under another number."""
    return {to if one == number else one: value for one, value in known.items()}


def with_entry(known: dict[int, Kept], number: int, value: Kept | None) -> dict[int, Kept]:
    """The entries with that of one epoch; None: it has none."""
    rest = {key: entry for key, entry in known.items() if key != number}
    return rest if value is None else {**rest, number: value}
