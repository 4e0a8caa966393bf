"""The semi-logistic exploring policy of Kilbertus et al. (2020), "Fair decisions despite imperfect
predictions".

    pi(x) = 1 where w.x >= 0,  logistic(w.x) elsewhere: nobody is rejected for sure, so every label keeps being seen
    w maximises   mean over accepted rounds of u(y) pi(x) / p  -  penalty/2 gap(pi)^2,    u = fr for y = +1, -fa for y = -1

by gradient steps on the data of all earlier policies, weighted by the probability p with which each
was accepted; the gap is the weighted difference of the rate between the groups. The penalty asks
for fairness on the estimates; it promises nothing.
"""

from collections.abc import Sequence

import numpy as np

from evenhand.errors import CannotEstimateRate
from evenhand.estimation import RoundLog
from evenhand.fairness import GapConstraints
from evenhand.fairness.rates import Rate, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.learners.epochs import Epoch, EpochLearner
from evenhand.learners.rivals.cutoffs import Standard, logistic, random_cutoff
from evenhand.policies import Mixture
from evenhand.words import FloatArray, LabelledSample, Prices

FIRST_ROUNDS = 256
GROWTH = 0.5
STEPS, STEP, SHRINKING = 300, 0.05, 0.02
WEIGHT_CAP = 100.0
MOST_ROWS = 20_000


class SemiLogistic(EpochLearner):
    """Gradient steps on inverse-propensity-weighted utility with a squared fairness penalty;
    `penalty` is its weight.
    """

    def __init__(
        self,
        rate: Rate | Sequence[Rate],
        allowed_gap: float = 0.05,
        *,
        penalty: float = 10.0,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        settings = {
            name: value for name, value in locals().items() if name not in ("self", "__class__")
        }
        self.rates = as_rates(rate)
        self.allowed_gap = self.comparator_gap = allowed_gap
        self.penalty = penalty
        super().__init__(
            prices=Prices() if prices is None else prices,
            group_use="certify_only",
            seed=seed,
            settings=settings,
        )

    @property
    def _needs_group_now(self) -> bool:
        return True  # every label enters the penalty

    def _plan(self, number: int, round: int) -> Epoch:
        log = self.state.history.of() if round else None
        length = max(FIRST_ROUNDS, int(GROWTH * round))
        if log is None or log.positive.sum() < 1 or log.negative.sum() < 1:
            return Epoch(number, "explore", round, length, Mixture((ACCEPT_ALL,), (1.0,)))
        return Epoch(number, "policy", round, length, self._fitted(log), oracle_calls=1)

    def _fitted(self, log: RoundLog) -> Mixture:
        seen = log.where(log.accepted > 0)
        rows = np.unique(np.linspace(0, len(seen) - 1, min(len(seen), MOST_ROWS)).astype(int))
        seen = seen.where(np.isin(np.arange(len(seen)), rows))
        standard = Standard.of(seen.features)
        utility, channels = _pieces(seen, self.loss.prices, self.rates)
        weights = _ascend(standard.rows(seen.features), utility, channels, self.penalty)
        direction, offset = standard.back(weights)
        return random_cutoff(direction, offset, semi_logistic)


def semi_logistic(score: FloatArray) -> FloatArray:
    """1 from 0 on, logistic below."""
    return np.where(score >= 0, 1.0, logistic(score))


def _pieces(
    seen: RoundLog, prices: Prices, rates: tuple[Rate, ...]
) -> tuple[FloatArray, FloatArray]:
    """The rows' weighted utility, and for each gap a channel: gap = channel . pi."""
    weight = np.minimum(1.0 / seen.acceptance, WEIGHT_CAP)
    told = seen.prices or prices
    utility = weight * (seen.positive * told.false_reject - seen.negative * told.false_accept)
    label = np.repeat([1, -1], len(seen))
    count = np.concatenate([weight * seen.positive, weight * seen.negative])
    assert seen.group is not None  # it is asked for at every decision
    sample = LabelledSample(
        np.tile(seen.features[:, :1], (2, 1)), np.tile(seen.group, 2), label, count
    )
    try:
        constraints = GapConstraints.on(rates, sample)
    except CannotEstimateRate:
        return utility / np.abs(utility).sum(), np.zeros((1, len(seen)))
    both = constraints.pairs @ constraints.channels
    return utility / np.abs(utility).sum(), both[:, : len(seen)] + both[:, len(seen) :]


def _ascend(
    rows: FloatArray, utility: FloatArray, channels: FloatArray, penalty: float
) -> FloatArray:
    """Adam on the objective; pi' = pi (1 - pi) of the logistic, also above 0, where the paper's
    policy has no slope of its own.
    """
    weights, first, second = (
        np.zeros(rows.shape[1]),
        np.zeros(rows.shape[1]),
        np.zeros(rows.shape[1]),
    )
    for step in range(1, STEPS + 1):
        score = rows @ weights
        chance = logistic(score)
        gaps = channels @ np.where(score >= 0, 1.0, chance)
        pull = utility - (penalty / len(gaps)) * (gaps @ channels)
        slope = rows.T @ (pull * chance * (1.0 - chance)) - SHRINKING * weights
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        weights = weights + STEP * (first / (1 - 0.9**step)) / (
            np.sqrt(second / (1 - 0.999**step)) + 1e-8
        )
    return weights
