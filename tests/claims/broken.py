"""Learners and bounds with one defect each: the negative controls, which the checks of the claims must detect."""

from dataclasses import dataclass
from typing import Any

from evenhand.estimation import RoundLog
from evenhand.fairness.bounds.slack import JointHoeffding
from evenhand.hypotheses.finite import TableRow
from evenhand.learners import Epoch, TwoPhaseLearner
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
    """Accepted rows enter the loss as if everybody had been accepted: importance weights forgotten."""

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
