"""How well a policy's loss is known: the variance of the one-sided estimate, as the rounds' probabilities foretell it."""

import numpy as np

from evenhand.estimation.apple_tasting import TransformedLoss
from evenhand.estimation.contexts import find_contexts
from evenhand.estimation.importance import PAPER_LOSS
from evenhand.estimation.log import RoundLog
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.words import FloatArray


def cost_variances(log: RoundLog, loss: TransformedLoss = PAPER_LOSS) -> FloatArray:
    """Per context, in the order of `one_sided`: sum over its rounds of E[d^2 | x] / p, at least the variance of its acceptance cost.

    E[d^2 | x] = m(x) fa^2 + (1 - m(x)) fr^2, in units of the loss. Rounds with a small p count although nobody was accepted in them:
    the squares of what was seen would call a region certain of which nothing was seen.
    """
    priced = loss.priced(log.prices)
    negative = fit_outcomes(log).negative_probability(log.features)
    squares = negative * (priced.of_false_accept - priced.of_reject) ** 2 + (1.0 - negative) * priced.of_reject**2
    return np.asarray(find_contexts(log.features, log.group).total(squares * log.count / log.acceptance))
