"""Nominate, then certify: for classes that are too rich for a union, only what looks best is judged, and only by later people.

Nothing here touches validity: a nomination is a function of the past, and its process sees later people only. What it costs is delta (the
N-th nominated hypothesis has 6 delta / (pi^2 N^2)) and time, so few are nominated, and none that decides like one before it.

The fair problem is solved with foretold outcomes. A regression m(x) of P[y = -1 | x], fitted without weights to all labels (within one x they
are unbiased, whatever the policy did) and shifted for each group to agree with its audits, stands for the labels of *all* people seen:

    cost of accepting x = m fa - (1 - m) fr,    rates: each person counts m as y = -1 and 1 - m as y = +1

Fits to importance-weighted labels have several times the variance (Adult, 1,000 rounds: error .23 instead of .16).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenhand.contracts import Hypothesis, HypothesisClass
from evenhand.errors import CannotEstimateRate
from evenhand.estimation import TransformedLoss
from evenhand.estimation.outcomes import OutcomeRegression
from evenhand.faircsc import bind_fair
from evenhand.learners.lives import Life
from evenhand.words import FloatArray, GroupArray, LabelledSample

FIRST_LABELS = 200
AGAIN = 1.8
"""Nominate again when the labels have grown by this factor."""
SMALLER = 0.4
"""Besides the limit itself this share of it is a target: evidence for a smaller gap comes sooner."""
ALIKE = 0.995
"""A hypothesis that decides like a nominated one about this share of the people is not nominated."""
MARGIN = 1e-3
"""Foretold probabilities are kept this far from 0 and 1."""


def nominate(
    life: Life,
    hypotheses: HypothesisClass,
    regression: OutcomeRegression,
    loss: TransformedLoss,
    labels: float,
    round: int,
) -> None:
    """Nominate what the fair problem with foretold outcomes mixes, once there are enough new labels."""
    if labels < max(FIRST_LABELS, AGAIN * life.nominated_at) or not life.tally.audits:
        return
    people = _foretold(life, regression)
    for hypothesis in _supports(life, hypotheses, people, loss):
        if not _known(life, hypothesis, people):
            life.nominate(hypothesis, round)
    life.nominated_at = labels


@dataclass(frozen=True, eq=False)
class Foretold:
    """People of the past with the probability of a bad outcome."""

    features: FloatArray
    group: GroupArray
    weight: FloatArray
    negative: FloatArray

    @property
    def sample(self) -> LabelledSample:
        """Each person twice, once with either label."""
        count = self.weight * np.stack([1.0 - self.negative, self.negative])
        label = np.repeat([1, -1], len(self.weight))
        return LabelledSample(np.tile(self.features, (2, 1)), np.tile(self.group, 2), label, count.ravel())


def _foretold(life: Life, regression: OutcomeRegression) -> Foretold:
    past, audits = life.tally.past, _joined(life.tally.audits)
    groups = life.groups or ()
    inside = np.isin(past.group, np.array(groups, dtype=object))
    features, group = past.features[inside], past.group[inside]
    negative = np.clip(regression.negative_probability(features), MARGIN, 1 - MARGIN)
    seen = np.clip(regression.negative_probability(audits.features), MARGIN, 1 - MARGIN)
    for value in groups:
        here, there = group == value, audits.group == value
        negative[here] = shifted(negative[here], logit_shift(seen[there], audits.label[there] == -1, audits.weight[there]))
    return Foretold(features, group, past.weight[inside], negative)


def logit_shift(chance: FloatArray, happened: FloatArray, weight: FloatArray) -> float:
    """b with sum weight logistic(logit(chance) + b) = sum weight happened, shrunk by a prior: four Newton steps."""
    shift = 0.0
    for _ in range(4):
        now = shifted(chance, shift)
        slope = float(weight @ (now * (1.0 - now))) + 2.0
        shift += float(np.clip((float(weight @ (happened - now)) - 2.0 * shift) / slope, -1.0, 1.0))
    return shift


def shifted(chance: FloatArray, shift: float) -> FloatArray:
    """logistic(logit(chance) + shift)."""
    odds = chance / (1.0 - chance) * np.exp(shift)
    return np.asarray(odds / (1.0 + odds))


def _supports(
    life: Life, hypotheses: HypothesisClass, people: Foretold, loss: TransformedLoss
) -> Iterator[Hypothesis]:
    """What the cheapest fair mixtures consist of, at the limit and below it."""
    promise, priced = life.promise, loss.priced(None)
    of_accept, of_reject = float(np.mean(priced.of_false_accept - priced.of_reject)), float(np.mean(priced.of_reject))
    cost = people.weight * (people.negative * of_accept - (1.0 - people.negative) * of_reject)
    group = people.group if promise.group_decides else None
    try:
        fair = bind_fair(
            hypotheses,
            people.features,
            group,
            promise.rates,
            people.sample,
            promise.limit,
            group_use=promise.group_use,
        )
    except CannotEstimateRate:
        return
    for target in (promise.limit, SMALLER * promise.limit):
        found = fair.at(target).cheapest(cost).policy
        heaviest = np.argsort(-np.array(found.weights), kind="stable")
        yield from (found.hypotheses[i] for i in heaviest)


def _known(life: Life, hypothesis: Hypothesis, people: Foretold) -> bool:
    """Whether one that was nominated before decides alike."""
    process = life.process
    if process is None or not process.members:
        return False
    group = people.group if life.promise.group_decides else None
    alike = process.table(people.features, group) == hypothesis.accepts(people.features, group)
    return bool((alike @ people.weight).max() >= ALIKE * people.weight.sum())


def _joined(samples: list[LabelledSample]) -> LabelledSample:
    columns = (np.concatenate([getattr(s, name) for s in samples]) for name in ("features", "group", "label", "weight"))
    return LabelledSample(*columns)
