"""The wealth of the betting processes in product form: slow, exact, and independent of the sums, for tests and for doubters."""

import numpy as np

from evenhand.fairness.bounds.betting import BettingBound
from evenhand.fairness.bounds.betting_records import LOW, UP, Cohort, EpochPlan
from evenhand.fairness.bounds.betting_rounds import CountedRounds, counted_rounds
from evenhand.words import BoolArray, FloatArray, IntArray


def clamped_regression(m: FloatArray, w: FloatArray, reach: FloatArray, positive_is_dangerous: BoolArray) -> FloatArray:
    """m' = max(m, (w - R)/(w - 1)) if w > R, where phi > 0 is dangerous; min(m, R/(w - 1)) where phi < 0 is; m at w = 1."""
    more = np.where(w > 1.0, w - 1.0, 1.0)
    floor = np.where((w > reach) & (w > 1.0), np.minimum(1.0, (w - np.minimum(reach, w)) / more), 0.0)
    ceiling = np.where(w > 1.0, reach / more, np.inf)
    return np.where(positive_is_dangerous, np.maximum(m, floor), np.minimum(m, ceiling))


def exact_log_wealth(bound: BettingBound, cohort: Cohort, plan: EpochPlan, truth: FloatArray) -> FloatArray:
    """ln prod(1 -+ lambda c phi (h - f)) over the cohort's rounds, (M, R, G, side, K), at f = truth (M, R, G).

    truth is P(h accepts | group, in the denominator). The wealth of a pair is up of the one group plus low of the other.
    -inf where a factor is not positive, which the clamp excludes for f in the plan's box.
    """
    result = np.zeros((*truth.shape, 2, plan.bets.shape[2]))
    views = [counted_rounds(rate, cohort) for rate in bound.rates]
    stakes, reaches = plan.stakes, plan.reach
    for h, r, j, side in np.ndindex(*truth.shape, 2):
        rows = np.flatnonzero(cohort.group == j).astype(np.int64)
        accepts, f = cohort.accepts[h, rows], float(truth[h, r, j])
        for k, (stake, reach) in enumerate(zip(stakes[h, r, j], reaches[h, r, j].T, strict=True)):
            result[h, r, j, side, k] = _log_product(views[r], rows, accepts, stake, reach, side, f)
    return result


def _log_product(
    view: CountedRounds,
    rows: IntArray,
    accepts: BoolArray,
    stake: float,
    reach: FloatArray,
    side: int,
    f: float,
) -> float:
    dangerous = accepts == (side == UP)
    w, m = view.inverse[rows], view.regression[rows]
    m = clamped_regression(m, w, reach[accepts.astype(np.int64)], dangerous)
    hit = view.hit[rows] + np.where(dangerous, view.unresolved[rows], 0.0)
    miss = view.miss[rows] + np.where(dangerous, 0.0, view.unresolved[rows])
    sign = {UP: -1.0, LOW: 1.0}[side]
    outcomes = ((view.rejected[rows], m), (hit, m + (1.0 - m) * w), (miss, m - m * w))
    total = 0.0
    for count, phi in outcomes:
        factor = np.where(count > 0, 1.0 + sign * stake * phi * (accepts - f), 1.0)
        with np.errstate(divide="ignore"):
            total += float(np.sum(count * np.log(np.maximum(factor, 0.0)), where=count > 0))
    return total
