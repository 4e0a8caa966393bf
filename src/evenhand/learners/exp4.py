"""EXP4 over a net of fair pairs: the paper's inefficient baseline (section 2).

After the same exploration as the two-phase learner, the net holds every mixture w h + (1-w) h' with
w on a grid whose empirical gap is within the limit. Each member i keeps the importance-weighted
loss it would have had, and is drawn with probability proportional to exp(-rate_t * cumulative
estimated loss_i). The weights are renewed at the end of epochs that grow by a quarter, in which the
policy is fixed.
"""

from typing import Any

import numpy as np

from evenhand.contracts import Enumeration
from evenhand.errors import InvalidInput
from evenhand.estimation import EstimatedLoss, one_sided
from evenhand.fairness.rates import GapConstraints
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.learners.epochs import Epoch
from evenhand.learners.two_phase import FIRST_EPOCH, TwoPhaseLearner
from evenhand.policies import Mixture
from evenhand.words import FloatArray, IntArray

LARGEST_NET = 12_800_000
"""Pairs times weights that are tried at most."""


class Exp4(TwoPhaseLearner):
    """EXP4 on the net of fair pairs of an enumerable class; `grid` is the number of weights between
    two hypotheses.
    """

    def __init__(self, *args: Any, grid: int = 8, **settings: Any) -> None:
        self.grid = grid
        super().__init__(*args, **settings)
        self._settings["grid"] = grid

    def _exploit(self, number: int, round: int) -> Epoch:
        played = round - self._explored_rounds
        log = self._bandit_log()
        assert log is not None  # the exploration is over, so it has rows
        loss = one_sided(log, self.loss)
        floor = self.schedule.exploration_floor(max(1, int(loss.rounds)))
        policy = self._policy(loss, floor)
        length = self._cut_off(max(FIRST_EPOCH, played // 4), round)
        return Epoch(number, "exp4", round, length, policy, floor, oracle_calls=0)

    def _policy(self, loss: EstimatedLoss, floor: float) -> Mixture:
        """floor accept-all + (1 - floor) sum_i P_i pi_i, as one mixture of hypotheses."""
        bound, costs, gaps, limit = self._points(loss)
        first, second, weight = _net(gaps, limit, self.grid)
        cumulative = weight * costs[first] + (1 - weight) * costs[second]
        rate = np.sqrt(np.log(max(len(first), 2)) / max(loss.rounds, 1.0))
        chance = np.exp(-rate * (cumulative - cumulative.min()))
        chance /= chance.sum()
        mass = np.bincount(first, chance * weight, len(costs)) + np.bincount(
            second, chance * (1 - weight), len(costs)
        )
        members = np.flatnonzero(mass > 1e-12)
        weights = (1 - floor) * mass[members] / mass[members].sum()
        rules = (bound.hypothesis(int(member)) for member in members)
        return Mixture(
            (ACCEPT_ALL, *rules), (1.0 - float(weights.sum()), *weights.tolist()), self.group_use
        )

    def _points(self, loss: EstimatedLoss) -> tuple[Enumeration, FloatArray, FloatArray, float]:
        """The class bound to the rows of loss and sample, each member's cumulative loss and gaps,
        and the limit of the gaps.
        """
        sample, slack = self._ready()
        bound = self.hypotheses.bind(np.concatenate([loss.features, sample.features]), None)
        if not isinstance(bound, Enumeration) or self.group_use == "decide":
            raise InvalidInput(
                'Exp4 enumerates its net: it needs an enumerable class and group_use="certify_only".'
            )
        constraints = GapConstraints.on(self.rates, sample)
        channels = np.zeros((1 + len(constraints.channels), len(loss) + len(sample)))
        channels[0, : len(loss)] = loss.acceptance_cost
        channels[1:, len(loss) :] = constraints.channels
        totals = bound.totals(channels)
        return bound, totals[0], constraints.pairs @ totals[1:], slack.limit


def _net(gaps: FloatArray, limit: float, grid: int) -> tuple[IntArray, IntArray, FloatArray]:
    """All (h, h', w) with w on the grid (h <= h') whose mixture keeps the limit."""
    members = gaps.shape[1]
    if members * (members + 1) // 2 * grid > LARGEST_NET:
        raise InvalidInput(
            f"the net of pairs of {members} hypotheses on {grid} weights is too large; EXP4 is the paper's inefficient baseline.",
            hint="use a smaller class, or TwoPhaseLearner, which needs no net.",
        )
    first, second = np.triu_indices(members)
    found: list[tuple[IntArray, IntArray, FloatArray]] = []
    for weight in np.linspace(1.0 / grid, 1.0, grid):
        mixed = weight * gaps[:, first] + (1 - weight) * gaps[:, second]
        keep = (np.abs(mixed).max(axis=0) <= limit) & ((first != second) | (weight == 1.0))
        found.append((first[keep], second[keep], np.full(int(keep.sum()), weight)))
    firsts, seconds, weights = zip(*found, strict=True)
    return np.concatenate(firsts), np.concatenate(seconds), np.concatenate(weights)
