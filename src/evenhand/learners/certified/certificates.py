"""Certificates from what a life knows, and the refusal that says what is missing."""

from typing import Any

import numpy as np

from evenhand.canonical import canonical_digest
from evenhand.errors import CannotCertify, NotSerialisable
from evenhand.fairness.certificate import (
    CellCount,
    Certificate,
    DrawCount,
    GapInterval,
    OutsideCount,
    standard_assumptions,
)
from evenhand.learners.certified.cohorts import GroupCounts
from evenhand.learners.certified.run import Life
from evenhand.learners.codec import storable
from evenhand.policies import Mixture
from evenhand.words import FloatArray

for _record in (Certificate, CellCount, DrawCount, GapInterval, OutsideCount):
    storable(_record)


def issue(
    life: Life, policy: Mixture, ends: tuple[FloatArray, FloatArray] | None, valid_until: int
) -> Certificate:
    """The record for a policy whose gaps lie between the two `ends` (None: a mixture of constants,
    whose gaps are zero).
    """
    promise, tally, process = life.promise, life.tally, life.process
    certificate = Certificate(
        limit=promise.limit,
        failure_probability=promise.failure_probability,
        spent=life.ledger.spent,
        bound="constants only (exact)" if process is None else process.name,
        bound_params={} if process is None else dict(process.params),
        policy=_fingerprint(policy),
        window=(life.began, int(life.began + tally.people)),
        assumptions=_assumptions(life),
        counts=tuple(
            CellCount(g, y, int(n)) for (g, y), n in sorted(tally.judged.items(), key=str)
        ),
        gaps=_gaps(life, ends),
        valid_until=valid_until,
        groups=life.groups or (),
        outside=tuple(OutsideCount(g, int(n)) for g, n in sorted(life.uncovered.items(), key=str)),
        overruled=_draws(tally.overruled),
        late_groups=_draws(tally.late_groups),
        erased=int(tally.erased),
    )
    reasons = life.alarms or (() if life.started else life.ended)
    return certificate.suspend("; ".join(reasons)) if reasons else certificate


def _gaps(life: Life, ends: tuple[FloatArray, FloatArray] | None) -> tuple[GapInterval, ...]:
    groups = life.groups or ()
    pairs = life.promise.pairs(groups)
    low, high = ends if ends is not None else (np.zeros(len(pairs)), np.zeros(len(pairs)))
    return tuple(
        GapInterval(
            rate.symbol, groups[k], groups[j], float(max(low[i], -1.0)), float(min(high[i], 1.0))
        )
        for i, (rate, j, k) in enumerate(pairs)
    )


def _draws(counts: GroupCounts) -> tuple[DrawCount, ...]:
    return tuple(DrawCount(g, accept, int(n)) for (g, accept), n in sorted(counts.items(), key=str))


def _assumptions(life: Life) -> tuple[str, ...]:
    maturity, tally = life.promise.maturity, life.tally
    return standard_assumptions(
        maturity=None if maturity is None else f"{maturity:g}",
        drift_false_alarm=life.promise.drift_false_alarm,
        late_groups=bool(tally.late_groups or tally.unknown),
        overlapping=maturity is not None,
    )


def refusal(life: Life, ends: tuple[FloatArray, FloatArray]) -> CannotCertify:
    """Which count is missing, and how many more people that is, expected: widths fall like one over
    the root of the count.
    """
    rate = life.promise.rates[0]
    have = {group: life.tally.denominator(group, rate) for group in life.tally.groups}
    group: Any = min(have, key=lambda value: have[value]) if have else None
    count = have.get(group, 0.0)
    low, high = ends
    room = life.promise.limit - float(np.abs(0.5 * (low + high)).max(initial=0.0))
    width = float((0.5 * (high - low)).max(initial=1.0))
    needed = count * (width / room) ** 2 if room > 0 else float("inf")
    return CannotCertify(
        group=group,
        denominator=rate.denominator_name,
        have=int(count),
        needed=max(needed, count + 1),
        people=int(life.tally.people),
    )


def _fingerprint(policy: Mixture) -> str:
    try:
        return canonical_digest(policy.to_json())
    except NotSerialisable:
        return f"not serialisable: {policy.describe()}"
