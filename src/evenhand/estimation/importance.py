"""Importance-weighted loss L_hat (section 3, step 2): the loss of any policy from the rounds of
another one.

    two-sided (the paper)   L_hat(pi) = 1/n sum_s loss_s P[pi(x_s) = yhat_s] / p_s
    one-sided               L_hat(pi) = 1/n sum_s (fr/M + P[pi(x_s) = +1] d_s 1[accepted] / p_s(accept))

with p_s the probability of the decision that was taken and d_s = -fr/M if y_s = +1, +fa/M if y_s =
-1. The one-sided estimator weights accepts alone, because the loss of a reject is the known
constant fr/M; rounds in which everybody was accepted enter it with p = 1. In both, E[L_hat(pi)] is
the transformed loss of pi.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.estimation.apple_tasting import TransformedLoss
from evenhand.estimation.contexts import find_contexts
from evenhand.estimation.log import RoundLog
from evenhand.words import BoolArray, FloatArray, GroupArray

PAPER_LOSS = TransformedLoss()
"""The 0-1 loss, halved: prices 1 and 1, normaliser 2."""


@dataclass(frozen=True, eq=False)
class EstimatedLoss:
    """L_hat(pi) = (constant + sum_i acceptance_cost_i P[pi(x_i) = +1]) / rounds, one row per
    context.

    `count` says how many rounds a context had; E_x in the feasibility program is the average over
    them.
    """

    features: FloatArray
    group: GroupArray | None
    count: FloatArray
    acceptance_cost: FloatArray
    constant: float
    rounds: float

    def __post_init__(self) -> None:
        if not self.rounds > 0:
            raise InvalidInput(
                f"the loss is estimated from {self.rounds:g} rounds; at least one is needed.",
                hint="deploy a constant until the first rounds have been played.",
            )

    def __len__(self) -> int:
        return len(self.features)

    @property
    def share(self) -> FloatArray:
        """The share of the rounds that each context had: sums to one."""
        return self.count / self.rounds

    def of(self, acceptance: FloatArray) -> float:
        """L_hat of the policy that accepts row i with probability acceptance[i]."""
        return (self.constant + float(self.acceptance_cost @ acceptance)) / self.rounds


def two_sided(
    log: RoundLog, loss: TransformedLoss = PAPER_LOSS, *, exploration_floor: float = 0.0
) -> EstimatedLoss:
    """accepted y = -1: (fa+fr)/M/p pi(+); accepted y = +1: 0; rejected: (fr/M)/(1-p) pi(-), with p
    = P[accept].
    """
    _require_both_explored(log)
    _require_floor(log, np.minimum(log.acceptance, 1.0 - log.acceptance), exploration_floor)
    priced = loss.priced(log.prices)
    if_accepted = log.negative * priced.of_false_accept / log.acceptance
    if_rejected = log.rejected * priced.of_reject / (1.0 - log.acceptance)
    return _per_context(log, if_accepted - if_rejected, float(if_rejected.sum()))


def one_sided(
    log: RoundLog, loss: TransformedLoss = PAPER_LOSS, *, exploration_floor: float = 0.0
) -> EstimatedLoss:
    """accepted y = +1: -(fr/M)/p pi(+); accepted y = -1: +(fa/M)/p pi(+); rejected: 0; each round
    fr/M beside it.
    """
    _require_floor(log, log.acceptance, exploration_floor)
    priced = loss.priced(log.prices)
    false_accept = priced.of_false_accept - priced.of_reject
    difference = (log.negative * false_accept - log.positive * priced.of_reject) / log.acceptance
    return _per_context(log, difference, float((log.count * priced.of_reject).sum()))


def _per_context(log: RoundLog, acceptance_cost: FloatArray, constant: float) -> EstimatedLoss:
    contexts = find_contexts(log.features, log.group)
    return EstimatedLoss(
        log.features[contexts.first],
        None if log.group is None else log.group[contexts.first],
        contexts.total(log.count),
        contexts.total(acceptance_cost),
        constant,
        log.rounds,
    )


def _require_both_explored(log: RoundLog) -> None:
    _refuse(
        log,
        (log.acceptance <= 0) | (log.acceptance >= 1),
        "one of the two decisions could not occur, and two-sided weighting would favour it",
        "leave the accept-all phase out, log.where(log.acceptance < 1), or use the one-sided estimator.",
    )


def _require_floor(log: RoundLog, propensity: FloatArray, floor: float) -> None:
    """Refuse propensities of zero, or below the floor by more than rounding."""
    _refuse(
        log,
        (propensity <= 0) | (propensity < floor * (1 - 1e-9)),
        f"a propensity of 0 or below the exploration floor {floor:g} cannot be inverse-weighted",
        "log the probability that decide() returned.",
    )


def _refuse(log: RoundLog, bad: BoolArray, law: str, hint: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        where = f"in row {row} of the log ({log.count[row]:g} rounds)"
        raise InvalidInput(
            f"the probability of accepting is {log.acceptance[row]:g} {where}; {law}.", hint=hint
        )
