"""Learners and bounds with one defect each: the negative controls, which the checks of the claims
must detect.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.rivals import InverseGap, neighbours
from evenhand.algorithms import exponential_weights
from evenhand.algorithms.arrivals import Arrivals, arrivals_before
from evenhand.algorithms.baselines import AfterExploration, Fixed
from evenhand.algorithms.exploration import (
    ExplorationRule,
    ExplorationState,
    labelled_sample,
    next_size,
)
from evenhand.algorithms.fair_net import FairNet
from evenhand.algorithms.two_phase import TwoPhase, TwoPhaseState
from evenhand.bounds import JointHoeffding
from evenhand.estimation import RoundLog
from evenhand.estimation.outcomes import fit_logistic_outcomes
from evenhand.fairness.rates import as_rates
from evenhand.hypotheses.finite import TableRow
from evenhand.learners import EpochLearner, Exp4, TwoPhaseLearner
from evenhand.policies import Mixture
from evenhand.rounds import Epoch, Rounds, windows
from evenhand.words import Prices

H2 = TableRow((True, False, True, False, False, True, True, False))
"""h2 of section 4."""


@dataclass(frozen=True)
class ShortSlack(JointHoeffding):
    """Joint Hoeffding times `factor`: a bound that is too good to be true."""

    factor: float = 0.25

    def slack(self, counts: Any, **settings: Any) -> float:
        return self.factor * super().slack(counts, **settings)


class SecondHypothesis(EpochLearner):
    """Always h2 of section 4, whatever it sees; it explores nothing."""

    def __init__(self, hypotheses, rate, limit, delta, horizon, *, seed=None, **settings):
        algorithm = Fixed(as_rates(rate), Prices(), Mixture((H2,), (1.0,)))
        settings |= {
            "hypotheses": hypotheses,
            "rate": rate,
            "limit": limit,
            "delta": delta,
            "horizon": horizon,
            "seed": seed,
        }
        super().__init__(algorithm, seed=seed, settings=settings)


class Defective(TwoPhaseLearner):
    """The paper's learner with another algorithm: `kind`, made with the same settings."""

    kind: type[TwoPhase]

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        given = {
            part.name: getattr(self.paper, part.name) for part in fields(TwoPhase) if part.init
        }
        self.algorithm = self.kind(**given)


class UnweightedPaper(TwoPhase):
    """Accepted rows enter the loss as if everybody had been accepted."""

    def bandit_log(self, state: TwoPhaseState, rounds: Rounds) -> RoundLog | None:
        log = super().bandit_log(state, rounds)
        if log is None:
            return None
        nearly = log.accepted * 0 + (1 - 1e-9)
        return RoundLog(log.features, log.group, nearly, log.rejected, log.positive, log.negative)


class Unweighted(Defective):
    """Importance weights forgotten."""

    kind = UnweightedPaper


# a net that does not know its limit


@dataclass(frozen=True, eq=False)
class GridNet(FairNet):
    """The eight weights that the net once had, whatever T is, and no ends of fair weights."""

    def _blocks(self):
        for pairs in super()._blocks():
            # each interval is cut to the grid: its ends are grid points, and count as such
            low = np.ceil(pairs.low * self.grid - 1e-12) / self.grid
            high = np.floor(pairs.high * self.grid + 1e-12) / self.grid
            some = low <= high
            inner = np.maximum((high - low) * self.grid - 1, 0.0).round()
            yield replace(
                pairs,
                first=pairs.first[some],
                second=pairs.second[some],
                low=low[some],
                high=high[some],
                least=(low * self.grid).round()[some] + 1,
                count=inner[some],
            )


def exp4_on_a_grid(paper: TwoPhase, state: TwoPhaseState, rounds: Rounds) -> Epoch:
    """EXP4 as it is, over that net."""
    with patch.object(exponential_weights, "FairNet", GridNet):
        return exponential_weights.exp4(8, exponential_weights.GROWTH)(paper, state, rounds)


class FixedGrid(Exp4):
    """The net is a grid of eight weights."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.algorithm = AfterExploration(self.paper, exp4_on_a_grid)


# a regression that cannot hold the truth


def inverse_gap_by_a_line(paper: TwoPhase, state: TwoPhaseState, rounds: Rounds) -> Epoch:
    """Inverse gap weighting whose regression is logistic in the number of the context."""
    with patch.object(neighbours, "fit_outcomes", fit_logistic_outcomes):
        return neighbours.inverse_gap(paper, state, rounds)


class Misspecified(InverseGap):
    """Outcomes are no logistic function of the number of a context."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.algorithm = AfterExploration(self.paper, inverse_gap_by_a_line)


# samples that are not the first people


def sample_from(
    rule: ExplorationRule, rounds: Rounds, arrivals: Arrivals, size: int
) -> ExplorationState:
    """The exploration is over: these people with a label are the sample."""
    missing = rounds["round"][(rounds["round"] < size) & (rounds["label"] == 0)]
    sample = labelled_sample(arrivals)
    return ExplorationState(
        size=size,
        slack=rule.slack(sample),
        groups=tuple(sample.groups),
        unlabelled=tuple(missing.tolist()),
    )


def with_labels(arrivals: Arrivals) -> Arrivals:
    known = arrivals.label != 0
    return Arrivals(
        arrivals.features[known],
        arrivals.group[known],
        arrivals.label[known],
        arrivals.count[known],
    )


class HastyRule(ExplorationRule):
    """Takes the labels that have come."""

    def explore(self, exploration: ExplorationState, rounds: Rounds) -> ExplorationState:
        size = self.length(rounds)
        if rounds.decided >= (self.rounds or 1) and size > 0:
            chosen = with_labels(arrivals_before(rounds, size))
            if len(chosen.label) and self.verdict(chosen) == "enough":
                return sample_from(self, rounds, chosen, size)
        while exploration.size <= rounds.decided:
            exploration = replace(exploration, size=next_size(exploration.size))
        return exploration

    def length(self, rounds: Rounds) -> int:
        return rounds.decided


class PrefixRule(HastyRule):
    """Takes the people before the first missing label."""

    def length(self, rounds: Rounds) -> int:
        return windows.first_missing(rounds)


class LaterRule(ExplorationRule):
    """Takes everybody who has a label when the first people have theirs."""

    def explore(self, exploration: ExplorationState, rounds: Rounds) -> ExplorationState:
        exploration = super().explore(exploration, rounds)
        if exploration.slack is None:
            return exploration
        arrivals = with_labels(arrivals_before(rounds, rounds.decided))
        return sample_from(self, rounds, arrivals, rounds.decided)


class DefectiveExploration(TwoPhase):
    """The paper with another rule."""

    rule_kind: type[ExplorationRule] = ExplorationRule

    @cached_property
    def exploration_rule(self) -> ExplorationRule:
        right = TwoPhase.exploration_rule.func(self)
        return self.rule_kind(**vars(right))


class HastyPaper(DefectiveExploration):
    rule_kind = HastyRule


class PrefixPaper(DefectiveExploration):
    rule_kind = PrefixRule


class LaterPaper(DefectiveExploration):
    rule_kind = LaterRule


class WhateverHasCome(Defective):
    """The labels that have come by the end of an epoch are the sample, whoever they belong to."""

    kind = HastyPaper


class LongestPrefix(Defective):
    """The sample is the longest run of people from the first on whose labels are all there: slow
    labels choose its length.
    """

    kind = PrefixPaper


class LaterLabels(Defective):
    """Labels of the exploration that come later are added to the sample."""

    kind = LaterPaper
