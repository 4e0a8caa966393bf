"""Rich models inside every learner: fit on audited people first, then judge the fits on later ones.

A class of fitted models has no finite union, so no bound can pay for all of it. Fitted on an
earlier sample and written down, it is a finite class like any other for everybody who comes later,
in `TwoPhaseLearner` and `CertifiedLearner` alike. The people of that sample must not be shown to
the learner again: gaps on rows that were fitted are not those of the population (COMPAS: .05 in
sample was .15 to .20 out of sample). `CertifiedLearner(Linear(), ...)` does the same by itself,
again and again (see `certified.nomination`).
"""

from collections.abc import Sequence

import numpy as np

from evenhand.contracts import Hypothesis, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.faircsc import solve_fair
from evenhand.fairness.rates import Rate
from evenhand.hypotheses import Constant, FiniteClass, Linear, LinearRule
from evenhand.hypotheses.linear import row_scores
from evenhand.words import LabelledSample, Prices

LIMITS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 1.0)
CUTS = 64


def score_cuts(
    sample: LabelledSample, cuts: int = CUTS, prices: Prices | None = None
) -> FiniteClass:
    """Thresholds on a logistic score that was fitted to `sample`: `cuts` of them, at equal steps of
    the score's ranks.
    """
    problem = (prices or Prices()).problem(sample.features, None, sample.label)
    rule = Linear().best(problem)
    if not isinstance(rule, LinearRule):
        raise InvalidInput(
            f"on these {len(sample)} people no score beats deciding for everybody alike; there is "
            "nothing to cut.",
            hint="audit more people, or give other features.",
        )
    scores = row_scores(sample.features, rule.weights)
    places = np.unique(np.quantile(scores, np.arange(1, cuts + 1) / (cuts + 1)))
    return FiniteClass([LinearRule(rule.weights, float(place)) for place in places])


def candidates(
    sample: LabelledSample,
    hypotheses: HypothesisClass,
    rates: Rate | Sequence[Rate],
    limits: Sequence[float] = LIMITS,
    prices: Prices | None = None,
) -> FiniteClass:
    """What the cheapest fair mixtures on `sample` consist of, for several limits: a finite class
    out of any other.
    """
    problem = (prices or Prices()).problem(sample.features, sample.group, sample.label)
    found: list[Hypothesis] = []
    for limit in limits:
        mixed = solve_fair(problem, hypotheses, rates, sample, limit).policy.hypotheses
        found += [rule for rule in mixed if not isinstance(rule, Constant)]
    different: dict[bytes, Hypothesis] = {}
    for rule in found:
        different.setdefault(np.packbits(rule.accepts(sample.features)).tobytes(), rule)
    if not different:
        raise InvalidInput(
            f"on these {len(sample)} people no rule of the class beats deciding for everybody "
            "alike.",
            hint="audit more people, or give other features.",
        )
    return FiniteClass(different.values())
