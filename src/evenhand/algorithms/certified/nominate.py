"""Nominate, then certify: for classes that are too rich for a union, only what looks best is
judged, and only by later people.

Nothing here touches validity: a nomination is a function of the past, and its process sees later
people only. What it costs is delta (the N-th nominated hypothesis has 6 delta / (pi^2 N^2)) and
time, so few are nominated, and none that decides like one before it.

The fair problem is solved with point estimates that lean on a regression m(x) of P[y = -1 | x]. It
is fitted without weights to all labels: within one x they are unbiased, whatever the policy did.

    cost of accepting x    doubly robust, residuals weighted by min(1/p, LIGHT): where p = 1 the
                           labels themselves decide
    tilted cost            the same with false rejects at a third of their price where reject-all is
                           clearly the cheaper constant, and at three times where accept-all is.
                           What the fair problem then gives most weight is nominated first: a rule
                           near the better constant, whose gap is small and certified soon
    rates                  audited people with their labels, and other people as m of one with
                           y = -1 and 1 - m of one with y = +1, where m is shifted for each group to
                           agree with its audits

Fits to labels with weights up to 10 have several times the variance (Adult, 1,000 rounds: error .23
instead of .17).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.algorithms.certified.evidence import PastPeople, group_codes
from evenhand.algorithms.certified.state import CertifiedState, Guarantee
from evenhand.algorithms.own_parts import OwnPartFailed, asking_rule
from evenhand.contracts import Hypothesis, HypothesisClass
from evenhand.errors import CannotEstimateRate
from evenhand.estimation import RoundLog, TransformedLoss, doubly_robust
from evenhand.estimation.outcomes import OutcomeRegression, spread
from evenhand.faircsc import bind_fair
from evenhand.fairness.delta_ledger import inverse_square_share
from evenhand.fairness.rates import Rate
from evenhand.hypotheses.constants import is_constant
from evenhand.words import BoolArray, FloatArray, Group, GroupArray, LabelledSample, Prices

FIRST_LABELS = 200
AGAIN_LABELS = 1.3
AGAIN_ROUNDS = 1.4
"""Nominate again when labels and rounds have both grown by these factors."""
SLACKS = (0.5, 2.5)
"""Standard errors of the estimated gap that are kept from the limit: a hypothesis with a smaller
gap is certified sooner.
"""
ALIKE = 0.995
"""A hypothesis that decides like a nominated one about this fraction of the people is not
nominated.
"""
TILT = 3.0
CLEARLY = 2.0
"""By TILT false rejects become cheaper, or more expensive, for the first nominee, where one
constant costs CLEARLY times the other.

Adult and Give Me Some Credit, regret at T = 1e5 over the best constant's, 12 seeds: .365 and .537
instead of .415 and .569; where the constants cost the same (COMPAS) it would be .446 instead of
.416."""
LIGHT = 3.0
"""The largest weight of a residual in a fit."""
MOST_LABELLED = 10_000
MOST_OTHERS = 2_500
MOST_PEOPLE = 1_500
"""Rows of a fit: labelled ones, others, and people with predicted outcomes."""
PSEUDO_COUNT = 2_000.0
"""All people with predicted outcomes together weigh as much as so many audits."""
MARGIN = 1e-3
"""Foretold probabilities are kept this far from 0 and 1."""


def due(state: CertifiedState, log: RoundLog, audits: list[LabelledSample], round: int) -> bool:
    """Whether there are enough new labels and rounds to nominate again, and audits to do it by."""
    labels = max(FIRST_LABELS, AGAIN_LABELS * state.nominated_labels)
    enough_labels = float(log.accepted.sum()) >= labels
    enough_rounds = round >= AGAIN_ROUNDS * state.nominated_at
    return enough_labels and enough_rounds and bool(audits)


def nominees(
    state: CertifiedState,
    hypotheses: HypothesisClass,
    log: RoundLog,
    people: "PredictedOutcomes",
    regression: OutcomeRegression,
    loss: TransformedLoss,
) -> list[Hypothesis]:
    """What the estimated fair problem mixes, but for constants and what decides like a hypothesis
    that was nominated before.
    """
    process, _ = state.running
    shown = people.group if state.guarantee.group_decides else None
    known = process.table(people.features, shown)
    chosen: list[Hypothesis] = []
    supports = _supports(state.guarantee, hypotheses, people, _thinned(log), regression, loss)
    for hypothesis in supports:
        try:
            with asking_rule(hypothesis):
                accepts = hypothesis.accepts(people.features, shown)
        except OwnPartFailed:  # a model that cannot read all people whom it would have to judge
            continue
        alike = (known == accepts) @ people.weight
        if alike.max(initial=0.0) >= ALIKE * people.weight.sum() or is_constant(hypothesis):
            continue
        if hypothesis not in (*process.members, *chosen):
            chosen.append(hypothesis)
            known = np.concatenate([known, accepts[np.newaxis]])
    return chosen


def nominate(
    state: CertifiedState, hypotheses: Sequence[Hypothesis], round: int, labels: float
) -> CertifiedState:
    """The N-th nominated hypothesis books 6 delta_r / (pi^2 N^2), which sums to delta_r, and is
    judged by later epochs only: it was chosen by the past, so later people are fresh. labels: how
    many were seen by now.
    """
    process, _ = state.running
    ledger = state.ledger
    guarantee = state.guarantee
    accepted_shares = state.accepted_shares
    for hypothesis in hypotheses:
        number = len(process.members) + 1
        delta = inverse_square_share(guarantee.own_delta(state.run), number)
        what = f"nominated hypothesis {number}"
        ledger = ledger.book(what, delta, at=round, run=state.run)
        process = process.joined_by(hypothesis, delta)
        if accepted_shares is not None:
            kept = guarantee.acceptance_delta(state.run) * (0.5 if guarantee.group_decides else 1.0)
            own = inverse_square_share(kept, number)
            what = f"accepted share of nominated hypothesis {number}"
            ledger = ledger.book(what, own, at=round, run=state.run)
            accepted_shares = accepted_shares.joined_by(own)
    return replace(
        state,
        process=process,
        accepted_shares=accepted_shares,
        ledger=ledger,
        nominated_at=float(round),
        nominated_labels=labels,
    )


def _thinned(log: RoundLog) -> RoundLog:
    """Every k-th labelled row and every l-th other one, each counting for those left out."""
    labelled = log.accepted > 0
    keep = np.zeros(len(log), dtype=bool)
    scale = np.ones(len(log))
    for kind, most in ((labelled, MOST_LABELLED), (~labelled, MOST_OTHERS)):
        rows = np.flatnonzero(kind)
        chosen = rows[spread(len(rows), most)]
        keep[chosen] = True
        scale[chosen] = len(rows) / max(len(chosen), 1)
    kept = log.where(keep)
    scale = scale[keep]
    names = ("rejected", "positive", "negative")
    return replace(kept, **{name: getattr(kept, name) * scale for name in names})


@dataclass(frozen=True, eq=False)
class PredictedOutcomes:
    """People of the past with the probability of a bad outcome, and the audited ones among them
    with their labels (None where no audits are kept).
    """

    features: FloatArray
    group: GroupArray
    weight: FloatArray
    negative: FloatArray
    audits: LabelledSample | None

    @classmethod
    def of(
        cls,
        groups: tuple[Group, ...],
        past: PastPeople,
        audits: list[LabelledSample],
        regression: OutcomeRegression,
    ) -> "PredictedOutcomes":
        """At most MOST_PEOPLE rows of them. Where audits are kept, the regression is shifted for
        each group to agree with its audits.
        """
        inside = np.flatnonzero(group_codes(past.group, groups) >= 0)
        inside = inside[spread(len(inside), MOST_PEOPLE)]
        features = past.features[inside]
        group = past.group[inside]
        negative = np.clip(regression.negative_probability(features), MARGIN, 1 - MARGIN)
        sample = _end_to_end(audits) if audits else None
        if sample is not None:
            seen = np.clip(regression.negative_probability(sample.features), MARGIN, 1 - MARGIN)
            for value in groups:
                here = group == value
                there = sample.group == value
                shift = logit_shift(seen[there], sample.label[there] == -1, sample.weight[there])
                negative[here] = shifted(negative[here], shift)
        return cls(features, group, past.weight[inside], negative, sample)

    @property
    def labelled(self) -> LabelledSample:
        """The audits; there must be some."""
        assert self.audits is not None  # nobody is nominated without audits
        return self.audits

    @property
    def sample(self) -> LabelledSample:
        """The audits, and all people twice, once with either label: all of them together weigh as
        much as PSEUDO_COUNT audits.
        """
        each = self.weight * PSEUDO_COUNT / self.weight.sum()
        audits = self.labelled
        predicted = (each * (1.0 - self.negative), each * self.negative)
        count = np.concatenate([audits.weight, *predicted])
        features = np.concatenate([audits.features, self.features, self.features])
        group = np.concatenate([audits.group, self.group, self.group])
        label = np.concatenate([audits.label, np.repeat([1, -1], len(self.weight))])
        return LabelledSample(features, group, label, count)


def _end_to_end(audits: list[LabelledSample]) -> LabelledSample:
    """All audits as one sample; of very many every k-th, each counting for those left out."""
    features = np.concatenate([one.features for one in audits])
    rows = spread(len(features), MOST_LABELLED)
    group = np.concatenate([one.group for one in audits])[rows]
    label = np.concatenate([one.label for one in audits])[rows]
    weight = np.concatenate([one.weight for one in audits])[rows]
    return LabelledSample(features[rows], group, label, weight * len(features) / len(rows))


def logit_shift(chance: FloatArray, happened: BoolArray, weight: FloatArray) -> float:
    """b with sum weight logistic(logit(chance) + b) = sum weight happened, shrunk by a prior: four
    Newton steps.
    """
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
    guarantee: Guarantee,
    hypotheses: HypothesisClass,
    people: PredictedOutcomes,
    log: RoundLog,
    regression: OutcomeRegression,
    loss: TransformedLoss,
) -> Iterator[Hypothesis]:
    """What the cheapest fair mixtures consist of, at the limit and below it."""
    objective, _ = doubly_robust(log, regression, loss, cap=LIGHT)
    try:
        fair = bind_fair(
            hypotheses,
            objective.features,
            objective.group,
            guarantee.rates,
            people.sample,
            guarantee.limit,
            group_use=guarantee.group_use,
        )
    except CannotEstimateRate:
        return
    doubt = _standard_error(people, guarantee.rates, loss)
    limits = [max(guarantee.limit - errors * doubt, 0.0) for errors in SLACKS]
    prices = loss.priced(log.prices).prices
    accepting = float(people.weight @ people.negative) * float(np.mean(prices.false_accept))
    rejecting = float(people.weight @ (1.0 - people.negative)) * float(np.mean(prices.false_reject))
    if max(accepting, rejecting) >= CLEARLY * min(accepting, rejecting):
        kappa = 1.0 / TILT if accepting > rejecting else TILT
        others = Prices(prices.false_accept, kappa * prices.false_reject)
        tilted = TransformedLoss(others, TILT * loss.normaliser)
        leaning, _ = doubly_robust(replace(log, prices=None), regression, tilted, cap=LIGHT)
        near = fair.at(limits[0]).cheapest(leaning.acceptance_cost).policy
        yield near.hypotheses[int(np.argmax(near.weights))]
    for solution in fair.solve_at(limits, objective.acceptance_cost):
        order = np.argsort(-np.array(solution.policy.weights), kind="stable")
        yield from (solution.policy.hypotheses[i] for i in order)


def _standard_error(
    people: PredictedOutcomes, rates: tuple[Rate, ...], loss: TransformedLoss
) -> float:
    """The standard error of the gap of "accept whoever is worth it": sqrt(sum over two groups of f
    (1 - f) / n), n of them audited.
    """
    of_accept = float(np.mean(loss.of_false_accept - loss.of_reject))
    of_reject = float(np.mean(loss.of_reject))
    accepts = people.negative * of_accept < (1.0 - people.negative) * of_reject
    chances = np.stack([1.0 - people.negative, people.negative], axis=1)
    audits = people.labelled
    largest = 0.0
    for rate in rates:
        counted = chances @ rate.in_denominator(np.array([1, -1]))
        variances = []
        for group in audits.groups:
            here = (people.group == group) * people.weight * counted
            f = min(float(here @ accepts / max(here.sum(), 1e-12)), 1.0)
            audited = (audits.group == group) & rate.in_denominator(audits.label)
            n = float(audits.weight[audited].sum())
            variances.append(f * (1.0 - f) / max(n, 1.0))
        largest = max(largest, float(np.sqrt(sum(sorted(variances)[-2:]))))
    return largest
