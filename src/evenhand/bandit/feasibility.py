"""The feasibility program (section 3, step 2) as pure functions of arrays: V, S, b, D, alpha, Phi
and both constraints.

Two-sided (the paper, K = 2): both decisions are explored. One-sided (K = 1): only "accept" is,
because the loss of a reject is known. Arrays over decisions have shape (K, rows): first accept,
then, if K = 2, reject. `acceptance` is P[pi(x_i) = +1], for one policy (rows,) or several
(policies, rows); `share` is each row's share of the rounds, so E_x f = sum_i share_i f_i. A
randomised policy enters V linearly: the average over its own draw of 1/Q^mu, never one over the
average of Q^mu.
"""

from math import log

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.words import FloatArray


def require_floor(mu: float, sides: int) -> None:
    """0 < mu <= 1/2 two-sided, 0 < mu < 1 one-sided."""
    if sides not in (1, 2):
        raise InvalidInput(
            f"sides is {sides}; it is 1 (only accepts are explored) or 2 (the paper)."
        )
    if not 0 < mu < 1 or mu * sides > 1:
        raise InvalidInput(
            f"the exploration floor mu is {mu}; it must be above 0 and "
            f"{'below 1' if sides == 1 else 'at most 1/2'}."
        )


def smoothed(acceptance: FloatArray, total: float, mu: float, sides: int) -> FloatArray:
    """(K, rows): Q^mu(yhat|x) = mu + (1 - K mu) Q(yhat|x), with Q(+1|x) = acceptance, Q(-1|x) = sum
    Q - acceptance.
    """
    return mu + (1 - sides * mu) * _decisions(acceptance, total, sides)


def mean_inverse_propensity(
    acceptance: FloatArray, propensity: FloatArray, share: FloatArray
) -> FloatArray:
    """V_pi(Q) = E_x sum_yhat pi(yhat|x) / Q^mu(yhat|x)."""
    parts = _decisions(acceptance, 1.0, len(propensity))
    weights = share / propensity
    return np.asarray(sum(part @ weight for part, weight in zip(parts, weights, strict=True)))


def mean_squared_inverse_propensity(
    acceptance: FloatArray, propensity: FloatArray, share: FloatArray
) -> FloatArray:
    """S_pi(Q) = E_x sum_yhat (pi(yhat|x) / Q^mu(yhat|x))^2 <= V_pi(Q) / mu: (1 - K mu) S / K is
    Phi's curvature along pi.

    For a policy that draws no lots it is the paper's E_x 1/Q^mu(pi(x)|x)^2. For one that does,
    averaging 1/Q^mu^2 over its draw is a valid upper bound, but shortens the steps: measured, up to
    79 of them instead of 10.
    """
    parts = _decisions(acceptance, 1.0, len(propensity)) ** 2
    weights = share / propensity**2
    return np.asarray(sum(part @ weight for part, weight in zip(parts, weights, strict=True)))


def regret_budget_use(loss: FloatArray, least_loss: float, mu: float, psi: float) -> FloatArray:
    """b(pi) = max(L_hat(pi) - L_hat(pi_0), 0) / (psi mu)."""
    return np.maximum(loss - least_loss, 0.0) / (psi * mu)


def variance_excess(V: FloatArray, b: FloatArray, sides: int) -> FloatArray:
    """D_pi(Q) = V_pi(Q) - (2K + b(pi))."""
    return V - (2 * sides + b)


def weight_step(V: float, D: float, S: float, mu: float, sides: int) -> float:
    """alpha_pi(Q) = (V + D) / (2 (1 - K mu) S): the Newton step on Phi along pi, which never passes
    the minimum.
    """
    return (V + D) / (2 * (1 - sides * mu) * S)


def shrinking(weights: FloatArray, b: FloatArray, sides: int) -> float:
    """c = min(1, 2K / sum_pi Q(pi) (2K + b(pi))): c Q meets the low-regret constraint, and sums to
    one or less.
    """
    return 2 * sides / max(2 * sides, float(weights @ (2 * sides + b)))


def potential(
    propensity: FloatArray, share: FloatArray, weights: FloatArray, b: FloatArray, mu: float
) -> float:
    """Phi(Q) = -E_x sum_yhat ln(K Q^mu(yhat|x)) / (K (1 - K mu)) + sum_pi Q(pi) (1 + b(pi)/(2K)) -
    1.

    For K = 2 it is E_x RE(uniform || Q^mu) / (1 - 2 mu) + sum Q b / 4, the paper's. dPhi/dQ(pi) =
    -(V + D)/(2K). Phi(0) = ln(1/(K mu))/(1 - K mu) - 1 and Phi >= 0; while D > 0 a step lowers it
    by more than mu/(4 (1 - K mu)): at least (V + D)^2 / (8 K (1 - K mu) S), with V + D > V > 2K and
    S <= V/mu. Shrinking never raises it.
    """
    sides = len(propensity)
    rest = 1 - sides * mu
    linear = float(weights @ (1 + b / (2 * sides))) - 1
    if rest == 0:  # the limit, two-sided: a fair coin whatever Q is
        return linear - (float(weights.sum()) - 1)
    return linear - float((np.log(sides * propensity) @ share).mean()) / rest


def least_drop(mu: float, sides: int) -> float:
    """mu / (4 (1 - K mu)): the least that a step takes off Phi. (The paper lost the factor mu.)"""
    return mu / (4 * (1 - sides * mu)) if sides * mu < 1 else float("inf")


def iteration_cap(mu: float, sides: int) -> float:
    """4 (ln(1/(K mu)) - (1 - K mu)) / mu = Phi(0) / least_drop: the proved bound on steps; 0 at K
    mu = 1.
    """
    return 4 * (log(1 / (sides * mu)) - (1 - sides * mu)) / mu


def pricing_costs(
    propensity: FloatArray,
    share: FloatArray,
    acceptance_cost: FloatArray,
    rounds: float,
    mu: float,
    psi: float,
) -> FloatArray:
    """Costs whose cheapest policy maximises D: per row, accept minus reject, Q^mu being that of the
    *candidate* Q,

    -share_i / Q^mu(+1|x_i) + acceptance_cost_i / (rounds psi mu)
    and, two-sided, + share_i / Q^mu(-1|x_i).
    """
    inverse = share / propensity
    gain = inverse[0] - inverse[1] if len(inverse) == 2 else inverse[0]
    return np.asarray(acceptance_cost / (rounds * psi * mu) - gain)


def _decisions(acceptance: FloatArray, total: float, sides: int) -> FloatArray:
    """(K, rows): the mass on accept, and, two-sided, on reject."""
    if sides == 1:
        return acceptance[np.newaxis]
    return np.stack([acceptance, np.maximum(total - acceptance, 0.0)])
