"""A cohort as one rate sees it: the one difference between the rates is which labels count."""

from dataclasses import dataclass

import numpy as np

from evenhand.fairness.bounds.betting_records import Cohort
from evenhand.fairness.rates import Rate
from evenhand.words import FloatArray


@dataclass(frozen=True, eq=False)
class CountedRounds:
    """A cohort as one rate sees it: a `hit` is an accepted round in the rate's denominator, a `miss` one outside it."""

    inverse: FloatArray
    regression: FloatArray
    rejected: FloatArray
    hit: FloatArray
    miss: FloatArray
    unresolved: FloatArray

    @property
    def columns(self) -> tuple[FloatArray, ...]:
        """In the order of the kernel."""
        return (self.inverse, self.regression, self.rejected, self.hit, self.miss, self.unresolved, self.phi)

    @property
    def phi(self) -> FloatArray:
        """The unclamped estimate of how many of the row's rounds are in the denominator; unresolved ones count as foretold."""
        m, w = self.regression, self.inverse
        return (self.rejected + self.unresolved) * m + self.hit * (m + (1.0 - m) * w) + self.miss * (m - m * w)


def counted_rounds(rate: Rate, cohort: Cohort) -> CountedRounds:
    """FPR: hits are the negatives; FNR: hits are the positives and m becomes 1 - m; selection: every round is a certain hit."""
    negatives, positives = counts_labels(rate)
    nothing = np.zeros(len(cohort))
    if negatives and positives:
        return CountedRounds(np.ones(len(cohort)), nothing, nothing, cohort.rounds, nothing, nothing)
    hit, miss = (cohort.negative, cohort.positive) if negatives else (cohort.positive, cohort.negative)
    m, possible = regression_of(rate, cohort.regression), cohort.acceptance > 0
    inverse = np.divide(
        1.0, cohort.acceptance, out=np.ones(len(cohort)), where=possible
    )  # p = 0 only where no label counts
    return CountedRounds(inverse, m, cohort.rejected, hit, miss, cohort.unresolved)


def counts_labels(rate: Rate) -> FloatArray:
    """(does y = -1 count, does y = +1 count), as 0 and 1."""
    return rate.in_denominator(np.array([-1, 1], dtype=np.int64)).astype(np.float64)


def regression_of(rate: Rate, regression: FloatArray) -> FloatArray:
    """The forecast of P[in the denominator | x] from the one of P[y = -1 | x]."""
    negatives, positives = counts_labels(rate)
    return np.asarray(negatives * regression + positives * (1.0 - regression))


def acceptance_of(rate: Rate, acceptance: FloatArray) -> FloatArray:
    """A rate that needs no label is seen at every round."""
    return np.ones_like(acceptance) if counts_labels(rate).all() else acceptance
