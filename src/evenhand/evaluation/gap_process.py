"""The betting bound of `bounds` on a randomised candidate: a person whom pi accepts with
probability q is two parts of a round.

`betting` bets on h in {0, 1}. For a fixed policy with acceptance q = pi(x), f = E[N q]/E[N], use in
the place of a factor the mixture

    q (1 - g phi_1 (1 - f)) + (1 - q)(1 + g phi_0 f)                 (the up side; the low side with exchanged signs)

where phi_1, phi_0 are the clamped estimates of `betting` for h = 1 and h = 0. Both have mean N
given person and past, so the mean is 1 - g E[N (q - f)] = 1 at the truth, and both brackets are at
least 1/2: again a martingale. The logarithm is concave, hence

    ln(mixture) >= q ln(1 - g phi_1 (1 - f)) + (1 - q) ln(1 + g phi_0 f)

which is what `betting` adds up when the row enters with count q and h = 1, and again with count 1 -
q and h = 0. So nothing new is proved or computed: a log becomes cohorts with fractional counts.
Constants in the mixture are taken out first (`Candidate.spread`).
"""

from dataclasses import dataclass, replace

import numpy as np

from evenhand.bounds import BettingBound, BettingState, Cohort, EpochPlan, Forecast
from evenhand.evaluation.decision_log import DecisionLog
from evenhand.words import FloatArray, IntArray

MOST_FORESEEN = 5000
"""People of the block before, who stand for the next ones when bets are chosen."""


def cohort_of(
    log: DecisionLog, at: slice, policy: FloatArray, group: IntArray, regression: FloatArray
) -> Cohort:
    """The rows `at` of the log, each twice: h = 1 with count pi, h = 0 with count 1 - pi. policy
    and regression are those rows'.
    """
    weight = np.concatenate([log.count[at] * policy, log.count[at] * (1.0 - policy)])
    rows = np.flatnonzero(weight > 0)
    accepts = np.repeat([True, False], len(policy))[rows]
    accepted, label = np.tile(log.accept[at], 2)[rows], np.tile(log.label[at], 2)[rows]
    outcomes = {
        "rejected": np.logical_not(accepted),
        "positive": label == 1,
        "negative": label == -1,
        "unresolved": accepted & (label == 0),
    }
    return Cohort(
        accepts[np.newaxis],
        np.tile(group[at], 2)[rows],
        acceptance=np.tile(log.acceptance[at], 2)[rows],
        regression=np.tile(regression, 2)[rows],
        **{name: np.where(which, weight[rows], 0.0) for name, which in outcomes.items()},
    )


@dataclass(frozen=True, eq=False)
class LoggedGaps:
    """One candidate's processes; `step` returns the process after a block, with bets fixed from the
    blocks before it.
    """

    bound: BettingBound
    state: BettingState
    last: Cohort | None = None

    @classmethod
    def start(cls, bound: BettingBound) -> "LoggedGaps":
        """Nothing seen."""
        return cls(bound, bound.start())

    def step(self, cohort: Cohort) -> "LoggedGaps":
        """Add a block; a process that has contradicted itself claims nothing any more."""
        state = self.bound.update(self.state, cohort, self.plan())
        return replace(self, state=state, last=cohort)

    def plan(self) -> EpochPlan:
        """The bets for the next block: the people of the last one stand for those to come."""
        return self.bound.plan(self.state, None if self.last is None else _forecast(self.last))

    @property
    def estimates(self) -> FloatArray:
        """(R, G): self-normalised doubly robust rates sum pi phi / sum phi of acceptance; NaN where
        the denominator is not positive.
        """
        hits, mass = self.state.hits[0], self.state.mass[0]
        inside = np.clip(hits, 0.0, np.maximum(mass, 0.0))
        return np.asarray(np.divide(inside, mass, out=np.full(mass.shape, np.nan), where=mass > 0))


def _forecast(cohort: Cohort) -> Forecast:
    step = max(1, len(cohort) // MOST_FORESEEN)
    every = slice(None, None, step)
    return Forecast(
        cohort.accepts[:, every],
        cohort.group[every],
        weight=cohort.rounds[every],
        acceptance=cohort.acceptance[every],
        regression=cohort.regression[every],
    )
