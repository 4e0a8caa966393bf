"""Nominate, then certify: for classes that are too rich for a union, only what looks best is judged, and only by later people."""

import numpy as np

from evenhand.contracts import HypothesisClass
from evenhand.errors import CannotEstimateRate
from evenhand.estimation import EstimatedLoss
from evenhand.faircsc import bind_fair
from evenhand.learners.lives import Life
from evenhand.words import LabelledSample

AGAIN = 1.9
"""Nominate again when the rounds have grown by this factor."""
STANDARD_ERRORS = 3.0


def nominate(life: Life, hypotheses: HypothesisClass, loss: EstimatedLoss, round: int) -> None:
    """Solve the fair problem with point estimates, without slack and with three standard errors of it; nominate the supports."""
    if loss.rounds < AGAIN * life.nominated_at or not life.tally.audits:
        return
    sample, promise = _joined(life.tally.audits), life.promise
    limit, rates = promise.limit, promise.rates
    try:
        fair = bind_fair(hypotheses, loss.features, loss.group, rates, sample, limit, group_use=promise.group_use)
    except CannotEstimateRate:
        return
    life.nominated_at = loss.rounds
    smallest = min(
        float(sample.weight[(sample.group == g) & rate.in_denominator(sample.label)].sum())
        for g in sample.groups
        for rate in rates
    )
    slack = STANDARD_ERRORS * float(np.sqrt(0.5 / max(smallest, 1.0)))
    for target in (limit, max(limit - slack, limit / 4)):
        for hypothesis in fair.at(target).cheapest(loss.acceptance_cost).policy.hypotheses:
            life.nominate(hypothesis, round)


def _joined(samples: list[LabelledSample]) -> LabelledSample:
    columns = (np.concatenate([getattr(s, name) for s in samples]) for name in ("features", "group", "label", "weight"))
    return LabelledSample(*columns)
