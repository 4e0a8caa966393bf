"""EXP4 over a net of fair pairs: the paper's inefficient baseline (section 2).

After the same exploration as the two-phase learner, the net holds every mixture w h + (1-w) h' with w on a grid whose empirical gap
is within the limit. Each member i keeps the importance-weighted loss it would have had, and is drawn with probability proportional
to exp(-rate_t * cumulative estimated loss_i). The weights are renewed at the end of epochs that grow by a quarter, in which the policy
is fixed.
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

LARGEST_NET = 200_000


class Exp4(TwoPhaseLearner):
    """EXP4 on the net of fair pairs of an enumerable class; `grid` is the number of weights between two hypotheses."""

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
        sample, slack = self._ready()
        rows = loss.features
        bound = self.hypotheses.bind(np.concatenate([rows, sample.features]), None)
        if not isinstance(bound, Enumeration) or self.group_use == "decide":
            raise InvalidInput('Exp4 enumerates its net: it needs an enumerable class and group_use="certify_only".')
        channels = GapConstraints.on(self.rates, sample)
        padded = np.zeros((1 + len(channels.channels), len(rows) + len(sample)))
        padded[0, : len(rows)] = loss.acceptance_cost
        padded[1:, len(rows) :] = channels.channels
        totals = bound.totals(padded)
        gaps = np.abs(channels.pairs @ totals[1:])
        first, second, weight = _net(
            gaps_signed=channels.pairs @ totals[1:], limit=slack.limit, grid=self.grid, largest=LARGEST_NET
        )
        cumulative = weight * totals[0, first] + (1 - weight) * totals[0, second]
        rate = np.sqrt(np.log(max(len(first), 2)) / max(loss.rounds, 1.0))
        chance = np.exp(-rate * (cumulative - cumulative.min()))
        chance /= chance.sum()
        mass = np.zeros(gaps.shape[1])
        np.add.at(mass, first, chance * weight)
        np.add.at(mass, second, chance * (1 - weight))
        members = np.flatnonzero(mass > 1e-12)
        weights = (1 - floor) * mass[members] / mass[members].sum()
        return Mixture(
            (ACCEPT_ALL, *(bound.hypothesis(int(m)) for m in members)),
            (1.0 - float(weights.sum()), *weights.tolist()),
            self.group_use,
        )


def _net(*, gaps_signed: FloatArray, limit: float, grid: int, largest: int) -> tuple[IntArray, IntArray, FloatArray]:
    """All (h, h', w) with w on the grid (h <= h') whose mixture keeps the limit."""
    members = gaps_signed.shape[1]
    if members * (members + 1) // 2 * grid > 64 * largest:
        raise InvalidInput(
            f"the net of pairs of {members} hypotheses on {grid} weights is too large; EXP4 is the paper's inefficient baseline.",
            hint="use a smaller class, or TwoPhaseLearner, which needs no net.",
        )
    first, second = np.triu_indices(members)
    found: list[tuple[IntArray, IntArray, FloatArray]] = []
    for weight in np.linspace(1.0 / grid, 1.0, grid):
        mixed = weight * gaps_signed[:, first] + (1 - weight) * gaps_signed[:, second]
        keep = (np.abs(mixed).max(axis=0) <= limit) & ((first != second) | (weight == 1.0))
        found.append((first[keep], second[keep], np.full(int(keep.sum()), weight)))
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))  # type: ignore[return-value]
