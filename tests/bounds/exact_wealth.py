"""The wealth of the betting processes in product form: slow, exact, and independent of the sums."""

import numpy as np

from evenhand.bounds.betting_wealth import (
    CLASSES,
    OUTCOMES,
    THETA,
    UP,
    Cohort,
    counted_rounds,
)


def class_of(f):
    """The number of the class that holds f; a border belongs to the left one."""
    return np.clip(np.searchsorted(CLASSES, f) - 1, 0, len(CLASSES) - 2)


def clamped_regression(m, w, reach, positive_is_dangerous):
    """m' = max(m, (w - R)/(w - 1)) if w > R, where phi > 0 is dangerous; min(m, R/(w - 1)) where
    phi < 0 is; m at w = 1.
    """
    more = np.where(w > 1.0, w - 1.0, 1.0)
    floor = np.where(
        (w > reach) & (w > 1.0), np.minimum(1.0, (w - np.minimum(reach, w)) / more), 0.0
    )
    ceiling = np.where(w > 1.0, reach / more, np.inf)
    return np.where(positive_is_dangerous, np.maximum(m, floor), np.minimum(m, ceiling))


def terms(bet, inverse_share, which, accepts):
    """g, and R where h accepts or rejects, for the class number `which`."""
    a, b = CLASSES[which], CLASSES[which + 1]
    g = min(bet * inverse_share, THETA / max(1.0 - a, b))
    return g, THETA / (g * np.where(accepts, 1.0 - a, b))


def told_apart(cohort, h):
    """The cohort as one hypothesis sees it, (accepts (rows,), cohort): where it is in sums, those
    whom it accepts and the others are rows of their own.
    """
    if cohort.taken is None:
        return cohort.accepts[h], cohort
    rows, outcomes = (axis.ravel() for axis in np.indices((len(cohort), 4)))
    whole = cohort.taken.rounds
    taken = cohort.taken.of(rows, outcomes, (0, 1, 2, 3), np.arange(len(rows)))[h]
    taken = taken.reshape(whole.shape)
    accepts = np.repeat([True, False], len(cohort))
    counts = np.concatenate([taken, whole - taken]).astype(np.float64).T
    columns = {name: np.tile(getattr(cohort, name), 2) for name in ("acceptance", "regression")}
    columns |= dict(zip(OUTCOMES, counts, strict=True))
    group = np.tile(cohort.group, 2)
    return accepts, Cohort(accepts[np.newaxis], group, labelled=cohort.labelled, **columns)


def exact_log_wealth(bound, cohort, plan, truth, which=None):
    """ln prod(1 -+ g phi (h - f)) over the cohort's rounds, (M, R, G, side, K), at f = truth (M, R,
    G).

    which (M, R, G): the class whose clamp is used; by default the one that holds f. The wealth of a
    pair is up of the one group plus low of the other. -inf where a factor is not positive, which
    the clamp excludes for f in the class.
    """
    which = class_of(truth) if which is None else which
    result = np.zeros((*truth.shape, 2, plan.bets.shape[2]))
    for h in range(len(truth)):
        whom, seen = told_apart(cohort, h)
        views = [counted_rounds(rate, seen) for rate in bound.rates]
        for r, j, side in np.ndindex(*truth.shape[1:], 2):
            rows = np.flatnonzero(seen.group == j)
            accepts, f = whom[rows], float(truth[h, r, j])
            for k, bet in enumerate(plan.bets[h, r]):
                if bet > 0:
                    g, reach = terms(bet, plan.inverse_share[r, j], which[h, r, j], accepts)
                    found = _log_product(views[r], rows, accepts, g, reach, side, f)
                    result[h, r, j, side, k] = found
    return result


def _log_product(view, rows, accepts, stake, reach, side, f):
    dangerous = accepts == (side == UP)
    w = view.inverse[rows]
    m = clamped_regression(view.regression[rows], w, reach, dangerous)
    hit = view.hit[rows] + np.where(dangerous, view.unresolved[rows], 0.0)
    miss = view.miss[rows] + np.where(dangerous, 0.0, view.unresolved[rows])
    total = 0.0
    for count, phi in ((view.rejected[rows], m), (hit, m + (1.0 - m) * w), (miss, m - m * w)):
        factor = np.where(
            count > 0, 1.0 + (-1.0 if side == UP else 1.0) * stake * phi * (accepts - f), 1.0
        )
        with np.errstate(divide="ignore"):
            total += float(np.sum(count * np.log(np.maximum(factor, 0.0)), where=count > 0))
    return total
