"""The loss of any policy from the rounds of another one (section 3, step 2, and Proposition 2.4).

**Apple tasting becomes a bandit.** The 0-1 loss of a reject is never seen, because the label is
not. Adding the price of a false reject to *both* decisions about a person with y = -1 changes no
difference between two policies, and makes the loss of a reject a known constant.

**Importance weighting.** With p_s the probability of the decision that was taken,

    two-sided (the paper)   L_hat(pi) = 1/n sum_s loss_s P[pi(x_s) = yhat_s] / p_s
    one-sided               L_hat(pi) = 1/n sum_s (fr/M + P[pi(x_s) = +1] d_s 1[accepted] / p_s)

where d_s = -fr/M if y_s = +1 and +fa/M if y_s = -1. The one-sided estimator weights accepts alone,
because the loss of a reject is the known constant fr/M; rounds in which all applicants were
accepted enter it with p = 1. In both, E[L_hat(pi)] is the transformed loss of pi.

**Doubly robust.** For fitted classes a regression m foretells every applicant's outcome, and labels
correct it where there are some:

    cost of accepting x = d(m(x)) + 1[accepted] min(1/p, cap) (d - d(m(x))),
    d(m) = m fa - (1 - m) fr

Capping the weight of the *residual* costs little bias where m is right; capping the weight of the
label itself (the one-sided estimate) favours whatever is accepted rarely.
"""

from dataclasses import dataclass, field

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.estimation.log import Contexts, RoundLog, find_contexts, joined
from evenhand.estimation.outcomes import OutcomeRegression
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, Prices

WEIGHT_CAP = 10.0
"""The largest weight of a residual in the doubly robust loss."""


@dataclass(frozen=True, eq=False)
class TransformedLoss:
    """The transformed loss in [0, 1] of Proposition 2.4, with prices.

    Parameters
    ----------
    prices : Prices
        fa and fr, the prices of a false accept and of a false reject.
    normaliser : float
        M, a preset bound on fa + fr.

    Raises
    ------
    InvalidInput
        If fa + fr is above the normaliser, because losses would leave [0, 1].

    Notes
    -----
    ::

                  y = +1     y = -1
        accept    0          (fa + fr) / M
        reject    fr / M     fr / M

    The paper is fa = fr = 1, M = 2. For every policy M * transformed loss = original loss +
    E[fr 1(y = -1)], so regret in original units is M * transformed regret.

    Examples
    --------
    >>> loss = TransformedLoss()
    >>> loss.of(np.array([True, True, False]), np.array([1, -1, 1])).tolist()
    [0.0, 1.0, 0.5]
    """

    prices: Prices = field(default_factory=Prices)
    normaliser: float = 2.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.normaliser) and self.normaliser > 0):
            raise InvalidInput(
                f"normaliser is {self.normaliser}; it must be a finite number above 0."
            )
        both = self.prices.false_accept + np.asarray(self.prices.false_reject)
        largest = float(np.max(both, initial=0.0))
        if largest > self.normaliser * (1 + 1e-12):
            raise InvalidInput(
                f"the prices of a false accept and a false reject sum to {largest:g}, above the "
                f"normaliser {self.normaliser:g}; losses would leave [0, 1].",
                hint="set normaliser to a bound on that sum before the first round, here at least "
                f"{largest:g}.",
            )

    @classmethod
    def of_prices(cls, prices: Prices) -> "TransformedLoss":
        """The loss whose normaliser is the largest sum of the two prices.

        Parameters
        ----------
        prices : Prices
            What errors cost.

        Returns
        -------
        TransformedLoss
            The loss; InvalidInput if both prices are 0.
        """
        largest = float(np.max(np.asarray(prices.false_accept) + np.asarray(prices.false_reject)))
        if largest == 0:
            raise InvalidInput(
                "both prices are 0; nothing would be worth learning.",
                hint="set at least one price above 0.",
            )
        return cls(prices, largest)

    @property
    def of_reject(self) -> float | FloatArray:
        """The loss of rejecting, whatever the label: fr / M."""
        return self.prices.false_reject / self.normaliser

    @property
    def of_false_accept(self) -> float | FloatArray:
        """The loss of accepting y = -1: (fa + fr) / M. Accepting y = +1 costs 0."""
        return (self.prices.false_accept + self.prices.false_reject) / self.normaliser

    def per_row(self, prices: Prices | None, rows: int) -> tuple[FloatArray, FloatArray]:
        """The two losses above as columns.

        Parameters
        ----------
        prices : Prices or None
            One entry per row; None takes the prices of this loss.
        rows : int
            How many rows.

        Returns
        -------
        tuple of array
            The loss of accepting y = -1, and that of rejecting, in each row.
        """
        priced = self.priced(prices)
        accept = priced.of_false_accept
        reject = priced.of_reject
        return np.broadcast_to(accept, (rows,)), np.broadcast_to(reject, (rows,))

    def of(self, accept: BoolArray, label: IntArray) -> FloatArray:
        """The loss of each decision.

        Parameters
        ----------
        accept : array of bool
            The decisions.
        label : array of int
            The labels; that of a rejected row is not looked at.

        Returns
        -------
        array of float
            One loss in [0, 1] for each row.
        """
        accepted_loss = np.where(label == -1, self.of_false_accept, 0.0)
        return np.where(accept, accepted_loss, self.of_reject)

    def original_regret(self, transformed_regret: float) -> float:
        """Regret in the units of the prices.

        Parameters
        ----------
        transformed_regret : float
            Regret in the transformed loss.

        Returns
        -------
        float
            M times as much.
        """
        return self.normaliser * transformed_regret

    def priced(self, prices: Prices | None) -> "TransformedLoss":
        """The same normaliser with prices of one's own for each row.

        Parameters
        ----------
        prices : Prices or None
            One entry per row; None keeps the prices of this loss.

        Returns
        -------
        TransformedLoss
            The loss with these prices.
        """
        return self if prices is None else TransformedLoss(prices, self.normaliser)


PAPER_LOSS = TransformedLoss()
"""The 0-1 loss, halved: prices 1 and 1, normaliser 2."""


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedLoss(Brief):
    """L_hat as a linear function of acceptance, one row per context.

    Parameters
    ----------
    features, group : array
        The contexts; `group` is None where it is not shown.
    count : array of float
        How many rounds each context had. E_x in the feasibility program is the average over them.
    acceptance_cost : array of float
        What accepting all applicants of a context adds to the loss.
    constant : float
        The loss of rejecting all applicants, summed over all rounds.
    rounds : float
        Rounds in all contexts.

    Raises
    ------
    InvalidInput
        If there are no rounds.

    Notes
    -----
    L_hat(pi) = (constant + sum_i acceptance_cost_i P[pi(x_i) = +1]) / rounds.

    Examples
    --------
    >>> log = RoundLog.from_rounds([[1.0], [1.0], [2.0]], [True, False, True], [1, -1], 0.5)
    >>> loss = one_sided(log)
    >>> loss.acceptance_cost.tolist(), loss.of(np.array([1.0, 0.0]))
    ([-1.0, 1.0], 0.16666666666666666)
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
                f"the loss is estimated from {self.rounds:g} rounds; at least one is needed."
            )

    def __len__(self) -> int:
        return len(self.features)

    @property
    def share(self) -> FloatArray:
        """The share of the rounds that each context had: sums to one."""
        return self.count / self.rounds

    def of(self, acceptance: FloatArray) -> float:
        """L_hat of the policy that accepts row i with probability acceptance[i].

        Parameters
        ----------
        acceptance : array of float
            One probability for each context.

        Returns
        -------
        float
            The estimated loss per round.
        """
        return (self.constant + float(self.acceptance_cost @ acceptance)) / self.rounds


def two_sided(
    log: RoundLog, loss: TransformedLoss = PAPER_LOSS, *, exploration_floor: float = 0.0
) -> EstimatedLoss:
    """The paper's estimate: both decisions are weighted by 1 / (their probability).

    Parameters
    ----------
    log : RoundLog
        Rounds in which both decisions could occur.
    loss : TransformedLoss
        Prices and normaliser.
    exploration_floor : float
        Smaller propensities than this are refused.

    Returns
    -------
    EstimatedLoss
        Unbiased for the transformed loss of every policy.

    Raises
    ------
    InvalidInput
        If one of the two decisions could not occur in a row, or was less likely than the floor.

    Notes
    -----
    accepted y = -1: (fa+fr)/M/p pi(+); accepted y = +1: 0; rejected: (fr/M)/(1-p) pi(-), with p =
    P[accept].

    Examples
    --------
    >>> log = RoundLog.from_rounds([[1.0], [2.0]], [True, False], [-1], 0.5)
    >>> two_sided(log).acceptance_cost.tolist()
    [2.0, -1.0]
    """
    _require_both_decisions(log)
    _require_floor(log, np.minimum(log.acceptance, 1.0 - log.acceptance), exploration_floor)
    difference, if_rejected = _two_sided_terms(log, loss)
    return _per_context(log, difference, float(if_rejected.sum()))[0]


def one_sided(
    log: RoundLog, loss: TransformedLoss = PAPER_LOSS, *, exploration_floor: float = 0.0
) -> EstimatedLoss:
    """Accepts alone are weighted, because the loss of a reject is known.

    Parameters
    ----------
    log : RoundLog
        Rounds in which accepting could occur.
    loss : TransformedLoss
        Prices and normaliser.
    exploration_floor : float
        Smaller probabilities of being accepted than this are refused.

    Returns
    -------
    EstimatedLoss
        Unbiased for the transformed loss of every policy, with less variance than `two_sided`.

    Raises
    ------
    InvalidInput
        If a probability of being accepted is 0, or below the floor.

    Notes
    -----
    accepted y = +1: -(fr/M)/p pi(+); accepted y = -1: +(fa/M)/p pi(+); rejected: 0; each round
    fr/M beside it.

    Examples
    --------
    >>> log = RoundLog.from_rounds([[1.0], [2.0]], [True, False], [-1], 0.5)
    >>> one_sided(log).acceptance_cost.tolist()
    [1.0, 0.0]
    """
    _require_floor(log, log.acceptance, exploration_floor)
    difference, if_rejected = _one_sided_terms(log, loss)
    return _per_context(log, difference, float(if_rejected.sum()))[0]


def with_more_rounds(
    before: EstimatedLoss | None, log: RoundLog, loss: TransformedLoss, sides: int
) -> EstimatedLoss:
    """The same estimate with more rounds, each added to what stands there, in their order.

    Adding rounds in one call or in several gives the same bits, so that a sum can be continued or
    computed anew. The contexts of `before` keep their places; its arrays of contexts are those of
    the answer where there is no new one.

    Parameters
    ----------
    before : EstimatedLoss or None
        The loss of earlier rounds.
    log : RoundLog
        The rounds that follow, one row each.
    loss : TransformedLoss
        Prices and normaliser.
    sides : int
        K: 1 weights accepts alone (`one_sided`), 2 both decisions (`two_sided`).

    Returns
    -------
    EstimatedLoss
        The loss of all of them.

    Examples
    --------
    >>> log = RoundLog.from_rounds([[1.0], [1.0], [2.0]], [True, False, True], [1, -1], 0.5)
    >>> first, last = log.where(log.features[:, 0] == 1), log.where(log.features[:, 0] == 2)
    >>> total = with_more_rounds(with_more_rounds(None, first, PAPER_LOSS, 1), last, PAPER_LOSS, 1)
    >>> total.acceptance_cost.tolist(), total.acceptance_cost.tolist() == (
    ...     one_sided(log).acceptance_cost.tolist()
    ... )
    ([-1.0, 1.0], True)
    """
    if sides == 1:
        _require_floor(log, log.acceptance, 0.0)
        difference, if_rejected = _one_sided_terms(log, loss)
    else:
        _require_both_decisions(log)
        difference, if_rejected = _two_sided_terms(log, loss)
    earlier = None if before is None else before.features
    group = log.group if before is None else joined([before.group, log.group])
    contexts = find_contexts(log.features, group, before=earlier)
    known = 0 if before is None else len(before)
    start = np.zeros(known)
    count = start if before is None else before.count
    cost = start if before is None else before.acceptance_cost
    if before is not None and len(contexts) == known:
        features, shown = before.features, before.group
    else:
        rows = log.features if earlier is None else np.concatenate([earlier, log.features])
        features = rows[contexts.first]
        shown = None if group is None else group[contexts.first]
    return EstimatedLoss(
        features,
        shown,
        contexts.total(np.concatenate([count, log.count])),
        contexts.total(np.concatenate([cost, difference])),
        _added(0.0 if before is None else before.constant, if_rejected),
        _added(0.0 if before is None else before.rounds, log.count),
    )


def doubly_robust(
    log: RoundLog,
    regression: OutcomeRegression,
    loss: TransformedLoss = PAPER_LOSS,
    *,
    cap: float = WEIGHT_CAP,
) -> tuple[EstimatedLoss, FloatArray]:
    """A regression foretells every applicant's outcome, and weighted labels correct it.

    Parameters
    ----------
    log : RoundLog
        The rounds.
    regression : OutcomeRegression
        m(x) = P[y = -1 | x].
    loss : TransformedLoss
        Prices and normaliser.
    cap : float
        The largest weight of a residual.

    Returns
    -------
    tuple of EstimatedLoss and array of float
        The loss, and per context the variance of its acceptance cost: m (1 - m) (fa + fr)^2
        min(1/p, cap) for each round.

    Examples
    --------
    >>> from evenhand.estimation.outcomes import ConstantOutcome
    >>> log = RoundLog.from_rounds([[1.0], [2.0]], [True, False], [-1], 0.5)
    >>> estimated, variance = doubly_robust(log, ConstantOutcome(0.5))
    >>> estimated.acceptance_cost.tolist(), variance.tolist()
    ([1.0, 0.0], [0.5, 0.5])
    """
    priced = loss.priced(log.prices)
    of_accept = priced.of_false_accept - priced.of_reject
    of_reject = priced.of_reject
    m = regression.negative_probability(log.features)
    foretold = m * of_accept - (1.0 - m) * of_reject
    weight = np.minimum(1.0 / np.maximum(log.acceptance, 1e-12), cap)
    seen = log.negative * (of_accept - foretold) - log.positive * (of_reject + foretold)
    variance = m * (1.0 - m) * (of_accept + of_reject) ** 2 * log.count * weight
    cost = log.count * foretold + weight * seen
    constant = float((log.count * of_reject).sum())
    estimated, contexts = _per_context(log, cost, constant)
    return estimated, contexts.total(variance)


def _two_sided_terms(log: RoundLog, loss: TransformedLoss) -> tuple[FloatArray, FloatArray]:
    """What accepting a row adds beyond rejecting it, and what rejecting it adds."""
    priced = loss.priced(log.prices)
    if_accepted = log.negative * priced.of_false_accept / log.acceptance
    if_rejected = log.rejected * priced.of_reject / (1.0 - log.acceptance)
    return if_accepted - if_rejected, if_rejected


def _one_sided_terms(log: RoundLog, loss: TransformedLoss) -> tuple[FloatArray, FloatArray]:
    """The same, where the loss of a reject is known."""
    priced = loss.priced(log.prices)
    false_accept = priced.of_false_accept - priced.of_reject
    difference = (log.negative * false_accept - log.positive * priced.of_reject) / log.acceptance
    return difference, log.count * priced.of_reject


def _added(start: float, values: FloatArray) -> float:
    """start + values[0] + values[1] + ..., from the left."""
    return float(np.add.accumulate(np.concatenate([[start], values]))[-1])


def _per_context(
    log: RoundLog, acceptance_cost: FloatArray, constant: float
) -> tuple[EstimatedLoss, Contexts]:
    contexts = find_contexts(log.features, log.group)
    every = len(contexts.first) == len(log)
    estimated = EstimatedLoss(
        log.features if every else log.features[contexts.first],
        None if log.group is None else log.group[contexts.first],
        contexts.total(log.count),
        contexts.total(acceptance_cost),
        constant,
        log.rounds,
    )
    return estimated, contexts


def _require_both_decisions(log: RoundLog) -> None:
    _refuse(
        log,
        (log.acceptance <= 0) | (log.acceptance >= 1),
        "one of the two decisions could not occur, and two-sided weighting would favour it",
        "leave the accept-all phase out, log.where(log.acceptance < 1), or use the one-sided "
        "estimator.",
    )


def _require_floor(log: RoundLog, propensity: FloatArray, floor: float) -> None:
    _refuse(
        log,
        (propensity <= 0) | (propensity < floor * (1 - 1e-9)),
        f"a propensity of 0 or below the exploration floor {floor:g} cannot be inverse-weighted",
        "log the probability that decide() returned.",
    )


def _refuse(log: RoundLog, bad: BoolArray, requirement: str, hint: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        where = f"in row {row} of the log ({log.count[row]:g} rounds)"
        raise InvalidInput(
            f"the probability of accepting is {log.acceptance[row]:g} {where}; {requirement}.",
            hint=hint,
        )
