"""How much to bet in the next epoch: shares, predicted variances and rates of betting, from earlier
epochs alone.

    c_j = 1 / max(P_hat[a = j, in the denominator], SHARE_FLOOR)
    V1 = 2/G sum_j c_j f_j (1 - f_j)              the variance of one increment if everybody is accepted
    V1 / V_e                                      how much of it the next epoch's acceptance probabilities leave
    lambda_k = sqrt(2 L / (n_k V1)) min(1, V1 / V_e), rounded to a power of sqrt(2)

A bet that is wrong by a factor of 2^(1/4), the most that rounding does, costs at most 1.5% of
width; the bets of all hypotheses then have few values, and so have the logarithms to be computed.
With two groups 2/G sum_j is the sum over the pair. All of it may be wrong without harm: it decides
the width, never the validity.
"""

import numpy as np

from evenhand.bounds.betting_records import BettingState, Forecast
from evenhand.words import FloatArray

SHARE_FLOOR = 1e-3
PRIOR_ROUNDS = 10.0
RATE_MARGIN = 0.01
"""Predicted rates and regressions are kept this far from 0 and 1, so that no predicted variance
vanishes.
"""


def expected_shares(state: BettingState, prior: FloatArray) -> FloatArray:
    """P_hat (R, G) from the process that has run longest, smoothed by PRIOR_ROUNDS rounds with the
    prior shares.
    """
    if len(state) == 0:
        return prior
    oldest = int(np.argmax(state.rounds))
    shares = (state.mass[oldest] + PRIOR_ROUNDS * prior) / (state.rounds[oldest] + PRIOR_ROUNDS)
    return np.asarray(np.clip(shares, SHARE_FLOOR, 1.0))


def expected_rates(state: BettingState) -> FloatArray:
    """f_hat (M, R, G): (sum h phi + 1) / (sum phi + 2), inside what is left."""
    mass = np.maximum(state.mass, 0.0)
    raw = (np.clip(state.hits, 0.0, mass) + 1.0) / (mass + 2.0)
    return np.clip(np.clip(raw, *state.box), RATE_MARGIN, 1.0 - RATE_MARGIN)


def variance_kept(
    forecast: Forecast, in_denominator: FloatArray, inverse_share: FloatArray, f: FloatArray
) -> FloatArray:
    """V1 / V_e for one rate: (M,), in (0, 1].

    With m taken for the truth, E[phi^2 | x] = m^2 + m (1 - m) / p, which is m at p = 1; the
    increment is c_j phi (h - f_j). in_denominator (n,): the forecast of P[counts for the rate | x];
    inverse_share (G,); f (M, G).
    """
    m = np.clip(in_denominator, RATE_MARGIN, 1.0)
    accepts = forecast.accepts.astype(np.float64)
    certain, planned = np.zeros(len(f)), np.zeros(len(f))
    for j, c in enumerate(inverse_share):
        weight = np.where(forecast.group == j, forecast.weight, 0.0) * c**2
        moments = np.stack(
            [weight * m, weight * (m**2 + m * (1.0 - m) / forecast.acceptance)], axis=1
        )
        accepted = accepts @ moments
        squares = (1.0 - f[:, j, np.newaxis]) ** 2 * accepted + f[:, j, np.newaxis] ** 2 * (
            moments.sum(axis=0) - accepted
        )
        certain += squares[:, 0]
        planned += squares[:, 1]
    return np.divide(certain, planned, out=np.ones(len(f)), where=planned > 0)


def rates_of_betting(
    threshold: FloatArray,
    horizons: FloatArray,
    inverse_share: FloatArray,
    f: FloatArray,
    kept: FloatArray,
) -> FloatArray:
    """lambda (M, R, K) from L (M,), n_k (K,), c (R, G), f (M, R, G) and V1 / V_e (M, R)."""
    groups = inverse_share.shape[1]
    variance = 2.0 / groups * (inverse_share * f * (1.0 - f)).sum(axis=2)
    wished = np.sqrt(2.0 * threshold[:, np.newaxis] / variance) * kept
    return np.asarray(
        np.exp2(np.round(2.0 * np.log2(wished[..., np.newaxis] / np.sqrt(horizons))) / 2.0)
    )
