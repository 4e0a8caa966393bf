"""The two processes on their own, with a randomised candidate: in a plain world, and under stress
(p down to .02, a perverse regression).

150 logs of 3,000 rows with delta = .1, one process each. Correct code fails with probability at
most 1e-3 (at most 27 misses); a miss rate of .27 is caught with probability .99. Negative controls,
which must fail in the plain world: a threshold of 0 in the place of L, and a candidate whose
probabilities are rounded to yes and no.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.bounds import BettingBound
from evenhand.evaluation import DecisionLog
from evenhand.evaluation.log_betting import LoggedGaps, LossBound, LossRows, cohort_of
from evenhand.fairness import FalsePositiveRate
from evenhand.words import Prices

LOGS, ROWS, BLOCK, DELTA = 150, 3000, 750, 0.1
MOST = int(binom.isf(1e-3, LOGS, DELTA))
SHARE = np.array([0.25, 0.25, 0.3, 0.2])
GROUP = np.array([0, 0, 1, 1])
BAD = np.array([0.2, 0.7, 0.3, 0.8])
POLICY = np.array([0.9, 0.3, 0.55, 0.1])
"""Four kinds of people: how often their outcome is bad, and the candidate."""
WORLDS = {
    "plain": (np.array([0.9, 0.3, 0.6, 0.3]), np.full(4, 0.5)),
    "stress": (np.array([0.9, 0.05, 0.6, 0.02]), np.array([0.9, 0.1, 0.9, 0.1])),
}
"""The lender's chance of accepting each kind, and the regression."""


def truths():
    loss = SHARE @ (2 * BAD * POLICY + (1 - BAD) * (1 - POLICY))
    rates = [
        SHARE * BAD * POLICY @ members / (SHARE * BAD @ members)
        for members in (GROUP == 0, GROUP == 1)
    ]
    return loss, rates[1] - rates[0]


def log_of(name, seed):
    chance, _ = WORLDS[name]
    rng = np.random.default_rng([seed, 5])
    kind = rng.choice(4, ROWS, p=SHARE)
    label = np.where(rng.random(ROWS) < BAD[kind], -1, 1)
    accept = rng.random(ROWS) < chance[kind]
    told = np.where(accept, label, 0)
    return DecisionLog.of(kind[:, None], accept, chance[kind], told, group=GROUP[kind]), kind


@dataclass(frozen=True)
class Careless(LossBound):
    @property
    def threshold(self):
        return 0.0

    def bets(self, state):
        return LossBound(self.prices, self.delta).bets(state)


def loss_misses(bound, name, seed):
    (log, kind), m = log_of(name, seed), WORLDS[name][1]
    state, truth, missed = bound.start(), truths()[0], False
    for start in range(0, ROWS, BLOCK):
        at = slice(start, start + BLOCK)
        state = bound.update(state, LossRows.of(log, at, POLICY[kind], m[kind[at]]))
        missed |= not state.lower * bound.unit - 1e-9 <= truth <= state.upper * bound.unit + 1e-9
    return missed


def gap_misses(bound, policy, name, seed):
    (log, kind), m = log_of(name, seed), WORLDS[name][1]
    process, truth, missed = LoggedGaps.start(bound), truths()[1], False
    for start in range(0, ROWS, BLOCK):
        at = slice(start, start + BLOCK)
        process = process.step(cohort_of(log, at, policy[kind[at]], GROUP[kind], m[kind[at]]))
        found = bound.intervals(process.state)
        missed |= not found.lower[0, 0, 0] - 1e-9 <= truth <= found.upper[0, 0, 0] + 1e-9
    return missed


@pytest.mark.slow
def test_the_loss_is_covered_and_a_careless_threshold_is_caught():
    bound = LossBound(Prices(2.0, 1.0), DELTA)
    for name in WORLDS:
        assert sum(loss_misses(bound, name, seed) for seed in range(LOGS)) <= MOST
    careless = Careless(bound.prices, DELTA)
    assert sum(loss_misses(careless, "plain", seed) for seed in range(LOGS)) > MOST


@pytest.mark.slow
def test_the_gap_is_covered_and_a_rounded_candidate_is_caught():
    bound = BettingBound(("0", "1"), (FalsePositiveRate(),), 1, DELTA)
    for name in WORLDS:
        assert sum(gap_misses(bound, POLICY, name, seed) for seed in range(LOGS)) <= MOST
    rounded = (POLICY > 0.5).astype(np.float64)
    assert sum(gap_misses(bound, rounded, "plain", seed) for seed in range(LOGS)) > MOST


@pytest.mark.parametrize("seed", range(3))
def test_wrong_weights_contradict_or_miss(seed):
    """1 - p in the place of p: the loss process alone, which nobody has warned."""
    bound = LossBound(Prices(2.0, 1.0), DELTA)
    log, kind = log_of("stress", seed)
    swapped = replace(log, acceptance=1 - log.acceptance)
    state = bound.update(
        bound.start(), LossRows.of(swapped, slice(0, ROWS), POLICY[kind], np.full(ROWS, 0.5))
    )
    truth = truths()[0] / 2
    assert state.contradiction or not state.lower <= truth <= state.upper
