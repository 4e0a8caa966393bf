"""How large a share of the population a fixed rule accepts: ends that hold at all times at once.

The share s = P[h(x) = 1] needs no label and no coin: every arrival shows h(x). After n arrivals of
whom h accepts S, and for fixed tilts d_1, ..., d_K > 0,

    W_n(s) = 1/K sum_k exp(-d_k S) / (1 - s c_k)^n,        c_k = 1 - exp(-d_k).

Theorem. Let arrivals be independent with P[h(x) = 1] = s, h being fixed before the first of them.
Then with probability at least 1 - alpha, for all n at once, s <= u_n, the largest s in [0, 1] with
W_n(s) <= 1/alpha.

Proof. E[exp(-d 1[h = 1])] = 1 - s + s exp(-d) = 1 - s c, so that each term of W, divided factor by
factor, is a product of independent factors of mean 1; so is their average. W_0 = 1, and Ville's
inequality gives P[sup_n W_n(s) >= 1/alpha] <= alpha. W_n grows with s, so that what is left of
[0, 1] is an interval from 0 on.

Each term is the likelihood ratio against the share whose log-odds are lower by d_k: the best bet
there is, if the tilt fits n and s. The tilts are preset powers of 2, so nothing has to be planned
before an epoch; the average costs at most ln K, and less where several tilts fit (a union over K
bets pays ln K always). An arrival of whom nothing is known any more counts as accepted, which only
lowers W. Lower ends: the same for 1 - h.

F(s) = ln W_n(s) is increasing and convex, and the smallest of the K bounds

    s_k = (1 - exp(-(ln(K/alpha) + d_k S)/n)) / c_k

lies to the right of its root. Newton's method falls from there to the root without ever crossing
it, so it may stop after any step.
"""

import numpy as np

from evenhand.words import FloatArray

TILTS = 4.0 * 2.0 ** -np.arange(14.0)
"""From 4, the best for some ten people, down to 0.0005: the best for some hundred million."""
NEWTON_STEPS = 8
ROUNDING = 1e-12


def largest_shares(accepted: FloatArray, people: FloatArray, alpha: FloatArray) -> FloatArray:
    """The upper ends u_n, one for each rule.

    Parameters
    ----------
    accepted, people : array, shape (M,)
        S and n of each rule; whoever may have been accepted counts as accepted.
    alpha : array, shape (M,)
        The probability with which each may ever be wrong, in (0, 1); 0 claims nothing.

    Returns
    -------
    array, shape (M,)
        Numbers in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> ends = largest_shares(np.array([200.0, 0.0]), np.array([1000.0, 0.0]), np.full(2, 0.05))
    >>> ends.round(3)
    array([0.243, 1.   ])
    """
    ends = np.ones(len(people))
    seen = (people > 0) & (alpha > 0)
    if not seen.any():
        return ends
    n = people[seen, np.newaxis]
    S = accepted[seen, np.newaxis]
    c = -np.expm1(-TILTS)
    log_alpha = np.log(alpha[seen])
    price = np.log(len(TILTS)) - log_alpha[:, np.newaxis]
    s = np.minimum((-np.expm1(-(price + TILTS * S) / n) / c).min(axis=1), 1.0)
    for _ in range(NEWTON_STEPS):
        terms = -TILTS * S - n * np.log1p(-s[:, np.newaxis] * c)
        top = terms.max(axis=1, keepdims=True)
        parts = np.exp(terms - top)
        total = parts.sum(axis=1)
        excess = top[:, 0] + np.log(total / len(TILTS)) + log_alpha
        slope = (parts * (n * c / (1.0 - s[:, np.newaxis] * c))).sum(axis=1) / total
        s = s - np.maximum(excess, 0.0) / slope
    ends[seen] = np.clip(s + ROUNDING, 0.0, 1.0)
    return ends


def smallest_shares(accepted: FloatArray, people: FloatArray, alpha: FloatArray) -> FloatArray:
    """The lower ends, one for each rule.

    Parameters
    ----------
    accepted, people : array, shape (M,)
        S and n of each rule; whoever may have been rejected counts as rejected.
    alpha : array, shape (M,)
        As for `largest_shares`.

    Returns
    -------
    array, shape (M,)
        Numbers in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> smallest_shares(np.array([200.0]), np.array([1000.0]), np.array([0.05])).round(3)
    array([0.161])
    """
    return 1.0 - largest_shares(people - accepted, people, alpha)
