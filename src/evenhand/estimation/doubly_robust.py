"""The doubly robust loss of fitted classes: a regression foretells everybody's outcome, labels
correct it where there are some.

    cost of accepting x = d(m(x)) + 1[accepted] min(1/p, cap) (d - d(m(x))),    d(m) = m fa - (1 - m) fr

d is fa for y = -1 and -fr for y = +1, in units of the loss. Capping the weight of the *residual*
costs little bias where m is right; capping the weight of the label itself (the one-sided estimate)
favours whatever is accepted rarely.
"""

import numpy as np

from evenhand.estimation.apple_tasting import TransformedLoss
from evenhand.estimation.contexts import find_contexts
from evenhand.estimation.importance import PAPER_LOSS, EstimatedLoss
from evenhand.estimation.log import RoundLog
from evenhand.estimation.outcomes import OutcomeRegression
from evenhand.words import FloatArray

WEIGHT_CAP = 10.0


def doubly_robust(
    log: RoundLog,
    regression: OutcomeRegression,
    loss: TransformedLoss = PAPER_LOSS,
    *,
    cap: float = WEIGHT_CAP,
) -> tuple[EstimatedLoss, FloatArray]:
    """The loss, and per context the variance of its acceptance cost: m (1 - m) (fa + fr)^2 min(1/p,
    cap) for each round.
    """
    priced = loss.priced(log.prices)
    of_accept, of_reject = priced.of_false_accept - priced.of_reject, priced.of_reject
    m = regression.negative_probability(log.features)
    foretold = m * of_accept - (1.0 - m) * of_reject
    weight = np.minimum(1.0 / np.maximum(log.acceptance, 1e-12), cap)
    seen = log.negative * (of_accept - foretold) - log.positive * (of_reject + foretold)
    contexts = find_contexts(log.features, log.group)
    variance = m * (1.0 - m) * (of_accept + of_reject) ** 2 * log.count * weight
    estimated = EstimatedLoss(
        log.features if len(contexts) == len(log) else log.features[contexts.first],
        None if log.group is None else log.group[contexts.first],
        contexts.total(log.count),
        contexts.total(log.count * foretold + weight * seen),
        float((log.count * of_reject).sum()),
        log.rounds,
    )
    return estimated, contexts.total(variance)
