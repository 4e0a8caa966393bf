"""Learners and bounds with one defect each: the negative controls, which the checks of the claims
must detect.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.bounds import JointHoeffding
from evenhand.estimation import RoundLog
from evenhand.hypotheses.finite import TableRow
from evenhand.learners import Epoch, TwoPhaseLearner
from evenhand.learners.exploration import Arrivals
from evenhand.policies import Mixture

H2 = TableRow((True, False, True, False, False, True, True, False))
"""h2 of section 4."""


@dataclass(frozen=True)
class ShortSlack(JointHoeffding):
    """Joint Hoeffding times `factor`: a bound that is too good to be true."""

    factor: float = 0.25

    def slack(self, counts: Any, **settings: Any) -> float:
        return self.factor * super().slack(counts, **settings)


class Unweighted(TwoPhaseLearner):
    """Accepted rows enter the loss as if everybody had been accepted:
    importance weights forgotten.
    """

    def _bandit_log(self) -> RoundLog | None:
        log = super()._bandit_log()
        if log is None:
            return None
        nearly = log.accepted * 0 + (1 - 1e-9)
        return RoundLog(log.features, log.group, nearly, log.rejected, log.positive, log.negative)


class SecondHypothesis(TwoPhaseLearner):
    """Always h2 of section 4, whatever it sees."""

    def _plan(self, number: int, round: int) -> Epoch:
        return Epoch(number, "fixed", round, 2**62, Mixture((H2,), (1.0,)))

    def _take(self, log: RoundLog) -> None:
        """It explores nothing, so there is no sample whose preset sizes counts could overrun."""

    def _notes(self) -> list[str]:
        return []


class WhateverHasCome(TwoPhaseLearner):
    """The labels that have come by the end of an epoch are the sample, whoever they belong to (as
    it was before).
    """

    def _examine(self) -> None:
        if self.state.round >= (self.exploration_rounds or 1):
            self._end_if_enough(self._arrivals(self.state.round))

    def _end_if_enough(self, arrivals: Arrivals) -> None:
        known = arrivals.label != 0
        chosen = Arrivals(
            (np.concatenate(arrivals.features)[known],),
            arrivals.group[known],
            arrivals.label[known],
            arrivals.count[known],
        )
        on_counts = self.exploration_rounds is None
        if known.any() and self.explorer.verdict(chosen, on_counts=on_counts) == "enough":
            self._end_exploration(chosen)


class LongestPrefix(WhateverHasCome):
    """The sample is the longest run of people from the first on whose labels are all there: slow
    labels choose its length.
    """

    def _arrivals(self, stop: int) -> Arrivals:
        found = super()._arrivals(stop)
        length = int(np.argmin(np.r_[found.label != 0, False]))
        return Arrivals(
            (np.concatenate(found.features)[:length],),
            found.group[:length],
            found.label[:length],
            found.count[:length],
        )


class LaterLabels(TwoPhaseLearner):
    """Labels of the exploration that come later are added to the sample."""

    def _end_exploration(self, arrivals: Arrivals) -> None:
        super()._end_exploration(self._arrivals(self.state.round))
