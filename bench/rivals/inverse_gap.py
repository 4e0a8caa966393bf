"""Inverse gap weighting inside a convex set of policies: SquareCB's rule (Foster and Rakhlin 2020)
where only fair mixtures may be deployed.

**The rule.** A regression d_hat(x) estimates what accepting x costs beyond rejecting x, which is
known. SquareCB gives the decision that looks worse a probability that is inverse in its gap, person
by person: one-sided, P(+|x) = 1 / (1 + gamma d_hat(x)) where d_hat(x) > 0, and 1 elsewhere.
Accepting by a probability of one's own for each person changes the groups' error rates, so that
this P is not fair even where the best policy is. What the rule achieves is the inequality

    gamma E_x[d_hat (P - pi)] + E_x[pi(+|x) / P(+|x)] <= 2        for every policy pi        (1)

(for d_hat > 0: gamma d_hat P <= 1, and pi (1/P - gamma d_hat) = pi; else P = 1 and the left side is
at most pi). Whoever estimates losses badly somewhere, pays for it with accepts there.

**Inside a set.** For a convex set Pi of policies that contains accept-all, take

    Q = argmin over Pi of  J(Q) = gamma E_x[d_hat Q] - E_x ln Q^mu(+|x)
    Q^mu = mu + (1 - mu) Q(+|x)

J is convex, and no pi in Pi improves it at Q to first order, which is (1) for Pi alone:

    gamma E_x[d_hat (Q - pi)] + (1 - mu) E_x[pi / Q^mu] <= (1 - mu) E_x[Q / Q^mu] <= 1       (2)

Frank-Wolfe finds it with calls of the fair oracle: the cheapest policy in Pi for the costs gamma
d_hat - (1 - mu) / Q^mu. It halts when (2) holds with 2 on the right side, as (1) has it, so few
calls are needed. Without a constraint the argmin is Q^mu = (1 - mu) / (gamma d_hat), between mu and
1: inverse gap weighting again.

**Why it is enough.** Let d be the true cost, P = Q^mu. For every pi in Pi, by 2 a b <= a^2 + b^2,

    E_x[d (P - pi)] <= 3/gamma + mu max(d_hat, 0) + gamma / (2 (1 - mu)) E_x[P (d - d_hat)^2]  (3)

The last term is the regression's squared error *on accepted people*, which is what it is fitted to:
with an error of order 1/t and gamma of order sqrt(t), regret is of order sqrt(T). That needs a
regression class that contains d, which Algorithm 1 of the paper does not.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.bandit.feasibility import require_floor
from evenhand.contracts import FairOracle
from evenhand.errors import InvalidInput
from evenhand.estimation import EstimatedLoss
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.policies.mixture import Mixture, PolicyWeights
from evenhand.words import FloatArray

MOST_CALLS = 200
"""Calls of the fair oracle after which a search is cut off."""
SHIFTS = 50
"""Shifts of weight between two policies for each call of the oracle."""
HALVINGS = 40
"""Halvings of the interval in which the best shift lies."""


@dataclass(frozen=True)
class InverseGapWeights:
    """What a search found.

    Parameters
    ----------
    weights : PolicyWeights
        Q, ready for `weights.smoothed(mu, explored_constants(1))`.
    fair_calls, oracle_calls : int
        Calls of the fair oracle, and of the oracle of the class behind it.
    excess : float
        By how much the left side of (2) may exceed its right side, as the oracle saw it.
    halted : bool
        Whether that is at most the tolerance.

    Examples
    --------
    >>> accept_all = Mixture((ACCEPT_ALL,), (1.0,))
    >>> InverseGapWeights(PolicyWeights((accept_all,), (1.0,)), 2, 2, 0.4, True).weights.total
    1.0
    """

    weights: PolicyWeights
    fair_calls: int
    oracle_calls: int
    excess: float
    halted: bool


def inverse_gap_weights(
    loss: EstimatedLoss,
    oracle: FairOracle,
    *,
    gap_weight: float,
    exploration_floor: float,
    tolerance: float = 1.0,
) -> InverseGapWeights:
    """Inverse gap weighting over the policies of a fair oracle.

    Parameters
    ----------
    loss : EstimatedLoss
        The loss as the regression predicts it: acceptance_cost is count d_hat on each row.
    oracle : FairOracle
        A fair oracle bound to the same rows.
    gap_weight : float
        gamma.
    exploration_floor : float
        mu.
    tolerance : float, default 1.0
        How much the left side of (2) may exceed the right side.

    Returns
    -------
    InverseGapWeights
        Q, which mixes accept-all and answers of the oracle, so that it lies in their convex set.

    Raises
    ------
    InvalidInput
        If mu, gamma or the tolerance is out of its range.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from evenhand.hypotheses import REJECT_ALL
    >>> class Constants:
    ...     def cheapest(self, cost):
    ...         rule = ACCEPT_ALL if cost.sum() < 0 else REJECT_ALL
    ...         policy, accepts = Mixture((rule,), (1.0,)), np.full(len(cost), float(rule.accept))
    ...         return SimpleNamespace(policy=policy, acceptance=accepts, oracle_calls=1)
    >>> loss = EstimatedLoss(np.zeros((1, 1)), None, np.array([9.0]), np.array([1.8]), 4.5, 9.0)
    >>> found = inverse_gap_weights(
    ...     loss, Constants(), gap_weight=50.0, exploration_floor=1e-6, tolerance=1e-9
    ... )
    >>> float(found.weights.acceptance([[0.0]])[0].round(6))  # 1 / (gamma d_hat)
    0.099999
    """
    require_floor(exploration_floor, 1)
    for name, value in (("gap_weight", gap_weight), ("tolerance", tolerance)):
        if not (np.isfinite(value) and value > 0):
            raise InvalidInput(
                f"{name} is {value}", requirement="it is a finite number above 0", argument=name
            )
    mu = exploration_floor
    rest = 1.0 - mu
    share = loss.share
    cost = gap_weight * loss.acceptance_cost / loss.rounds

    # Q begins with the policy that looks best, and accept-all, which shows every label
    first = oracle.cheapest(loss.acceptance_cost)
    policies = [first.policy, Mixture((ACCEPT_ALL,), (1.0,), first.policy.group_use)]
    accepts = np.stack([first.acceptance, np.ones(len(loss))])
    weights = np.array([0.0, 1.0])
    fair_calls = 1
    oracle_calls = first.oracle_calls
    excess = float("inf")
    while fair_calls < MOST_CALLS:
        weights = _shifted(weights, accepts, cost, share, mu, 0.1 * tolerance)
        # the policy in Pi that improves J most, to first order
        slope = cost - rest * share / (mu + rest * (weights @ accepts))
        found = oracle.cheapest(slope)
        fair_calls += 1
        oracle_calls += found.oracle_calls
        excess = float(slope @ (weights @ accepts) - slope @ found.acceptance)
        if excess <= tolerance:
            break
        kept = weights > 0
        kept[:2] = True
        policies = [policy for policy, keep in zip(policies, kept, strict=True) if keep]
        policies.append(found.policy)
        accepts = np.concatenate([accepts[kept], found.acceptance[np.newaxis]])
        weights = np.append(weights[kept], 0.0)
    used = weights > 0
    chosen = tuple(policy for policy, use in zip(policies, used, strict=True) if use)
    parts = weights[used] / weights[used].sum()
    return InverseGapWeights(
        PolicyWeights(chosen, tuple(parts.tolist())).completed(first.policy),
        fair_calls,
        oracle_calls,
        excess,
        excess <= tolerance,
    )


def _shifted(
    weights: FloatArray,
    accepts: FloatArray,
    cost: FloatArray,
    share: FloatArray,
    mu: float,
    tolerance: float,
) -> FloatArray:
    """Lower J by shifting weight between known policies, pairwise: from the one that costs most at
    the margin to the cheapest one.
    """
    weights = weights.copy()
    rest = 1.0 - mu
    prices = accepts @ cost
    for _ in range(SHIFTS):
        P = mu + rest * (weights @ accepts)
        slopes = prices - rest * (accepts @ (share / P))
        to = int(slopes.argmin())
        off = int(np.where(weights > 0, slopes, -np.inf).argmax())
        if slopes[off] - slopes[to] <= tolerance:
            break
        move = rest * (accepts[to] - accepts[off])
        price = float(prices[to] - prices[off])
        # dJ/ds = price - E_x[move / (P + s move)] rises with s: halve the interval of its zero
        least = 0.0
        most = float(weights[off])
        if price < float(share @ (move / (P + most * move))):
            least = most
        for _ in range(HALVINGS if least < most else 0):
            middle = 0.5 * (least + most)
            if price < float(share @ (move / (P + middle * move))):
                least = middle
            else:
                most = middle
        weights[to] += least
        weights[off] = max(weights[off] - least, 0.0)
    return weights
