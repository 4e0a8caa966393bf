"""EXP4 over the net of fair policies (section 2 of the paper, "baseline approaches"; the inner part
of the "initial approach" of section 1).

Each member i of the net (`evenhand.algorithms.fair_net`) keeps the importance-weighted loss that it
would have had, and is drawn with probability proportional to its exponential weight:

    P_i = exp(-rate_t sum_{s<=t} loss_hat_s(i)) / sum_j exp(-rate_t sum_{s<=t} loss_hat_s(j))
    rate_t = sqrt(ln N / ((e - 1) K t))   N members, K explored decisions, t rounds in the loss
    floor_t = largest |loss_hat p| rate_t
    deployed: floor_t on each of the K explored constants + (1 - K floor_t) sum_i P_i pi_i

Rate and floor are those of Auer, Cesa-Bianchi, Freund and Schapire (2002) with t for T; the floor
keeps rate loss_hat <= 1, on which their proof rests. (A schedule with a larger floor has its way.)
Two-sided (K = 2) is the paper's: both decisions are explored and weighted by 1/p, |loss_hat p| <=
1. One-sided (K = 1) weights accepts alone, because the loss of a reject is known; |loss_hat p| is
then at most 1/2. For known T and weights renewed after every round the two-sided form has a regret
of at most 2 sqrt((e - 1) K T ln N) in the transformed loss, whatever the order of the people.
ln N = O(ln |H| + ln T), and the net has the best fair policy of the sample: so this is the
O(T^(2 alpha)) of the paper, up to the logarithm, after an exploration of T^(2 alpha) rounds.

Weights are renewed at the ends of epochs that grow by a quarter, so that a run has O(log T) of
them; `growth=0` renews them after every round.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, e, log, sqrt

import numpy as np

from evenhand.algorithms.fair_net import FairNet
from evenhand.algorithms.settings import require_number, require_whole
from evenhand.algorithms.two_phase import FIRST_EPOCH, TwoPhase, TwoPhaseState, explored_rounds
from evenhand.bandit import explored_constants
from evenhand.bandit.schedule import LARGEST_FLOOR
from evenhand.contracts import GroupUse, Hypothesis
from evenhand.errors import InvalidInput
from evenhand.estimation import EstimatedLoss, RoundLog
from evenhand.faircsc import FairCSC
from evenhand.faircsc.columns import PointPricer
from evenhand.policies import Mixture, PolicyWeights
from evenhand.rounds import Epoch, Rounds

Exploit = Callable[[TwoPhase, TwoPhaseState, Rounds], Epoch]
"""The next epoch, once there is a sample."""
LEAST_WEIGHT = 1e-12
"""Rules with less weight than this are left out of the policy."""
GROWTH = 0.25
"""Each epoch is this much of all rounds after the exploration."""


@dataclass(frozen=True, eq=False)
class WeightedNet:
    """The net of a fair oracle's rules, with the losses that its members would have had."""

    net: FairNet
    rule: Callable[[int], Hypothesis]
    group_use: GroupUse

    @classmethod
    def of(cls, oracle: FairCSC, loss: EstimatedLoss, grid: int) -> "WeightedNet":
        """The net over the class, the constants and, where the group may decide, the group
        classifiers; InvalidInput if the class cannot be enumerated.
        """
        pricer, scale = oracle.pricer(loss.acceptance_cost)
        if not isinstance(pricer, PointPricer):
            raise InvalidInput(
                "the rules of the class cannot be enumerated",
                requirement="exponential weights over a net need every rule's loss and gap",
                hint="use a FiniteClass, ScoreThresholds or Stumps, or TwoPhaseLearner, which asks "
                "an oracle.",
                argument="hypotheses",
            )
        enumerated = len(pricer.costs)
        permanent = pricer.permanent
        costs = [*pricer.costs, *(column.cost for column in permanent)]
        gaps = [pricer.gaps, *(column.gaps[:, np.newaxis] for column in permanent)]

        def rule(place: int) -> Hypothesis:
            if place < enumerated:
                return pricer.oracle.hypothesis(place)
            return permanent[place - enumerated].hypothesis()

        net = FairNet(scale * np.array(costs), np.concatenate(gaps, axis=1), oracle.limit, grid)
        return cls(net, rule, oracle.group_use)

    @property
    def log_size(self) -> float:
        """ln N; at least ln 2, so that a net of one member has a learning rate, too."""
        return log(max(self.net.size, 2))

    def smoothed(self, rate: float, floor: float, sides: int) -> Mixture:
        """floor on each explored constant, and the rest on the mean of the members under
        exponential weights.
        """
        mean = self.net.mean(rate)
        places = np.flatnonzero(mean > LEAST_WEIGHT)
        weights = mean[places] / mean[places].sum()
        members = tuple(self.rule(int(place)) for place in places)
        policy = Mixture(members, tuple(weights.tolist()), self.group_use)
        return PolicyWeights((policy,), (1.0,)).smoothed(floor, explored_constants(sides))


def exp4(grid: int | None, growth: float) -> Exploit:
    """EXP4 on the net of fair pairs.

    grid: m, the number of steps between two rules; None takes ceil(sqrt(T)).
    growth: the length of an epoch as a share of the rounds before it; 0 for single rounds.
    """
    require_net(grid, growth)
    return partial(_exp4, grid, growth)


def require_net(grid: int | None, growth: float) -> None:
    """The settings of exponential weights over a net."""
    if grid is not None:
        require_whole("grid", grid, 1, "there is at least one step of weight between two rules")
    require_number(
        "growth",
        growth,
        lambda share: 0 <= share <= 1,
        "an epoch is a share between 0 and 1 of the rounds before it",
        hint="0 renews the weights after every round.",
    )


def _exp4(
    grid: int | None, growth: float, paper: TwoPhase, state: TwoPhaseState, rounds: Rounds
) -> Epoch:
    return exp4_epoch(
        paper,
        rounds,
        paper.bandit_log(state, rounds),
        partial(paper.fair_oracle, state, rounds),
        grid,
        renewal_length(paper, rounds, growth),
    )


def exp4_epoch(
    paper: TwoPhase,
    rounds: Rounds,
    log: RoundLog | None,
    bind: Callable[[EstimatedLoss], FairCSC],
    grid: int | None,
    length: int,
) -> Epoch:
    """The weights after the rounds of `log`, played for `length` rounds; `bind` makes the fair
    oracle, whose rules and limit the net has.
    """
    number = rounds.epoch.number + 1
    if log is None:
        # two-sided, and nobody could be rejected so far: a fair coin
        return replace(paper.coin_epoch(rounds), phase="exp4")
    loss = paper.estimated_loss(log)
    t = max(1, int(loss.rounds))
    net = WeightedNet.of(bind(loss), loss, grid_of(grid, paper))
    rate = sqrt(net.log_size / ((e - 1) * paper.sides * loss.rounds))
    floor = min(LARGEST_FLOOR, max(rate * largest_step(paper), paper.floors.exploration_floor(t)))
    policy = net.smoothed(rate, floor, paper.sides)
    return Epoch(number, "exp4", rounds.decided, length, policy, exploration_floor=floor)


def largest_step(paper: TwoPhase) -> float:
    """The largest |loss_hat p| of a round: 1 two-sided; one-sided max(fa, fr) / M, for 0-1 loss
    1/2.
    """
    if paper.sides == 2:
        return 1.0
    prices = paper.loss.prices
    largest_price = max(float(np.max(prices.false_accept)), float(np.max(prices.false_reject)))
    return largest_price / paper.loss.normaliser


def grid_of(grid: int | None, paper: TwoPhase) -> int:
    """m: as given, else of order sqrt(T), so that a step of weight costs T / sqrt(T) at most."""
    return ceil(sqrt(paper.horizon)) if grid is None else int(grid)


def renewal_length(paper: TwoPhase, rounds: Rounds, growth: float) -> int:
    """How long the next weights are played."""
    played = rounds.decided - explored_rounds(rounds)
    length = max(FIRST_EPOCH, int(growth * played)) if growth > 0 else 1
    return paper.cut_off(length, rounds.decided)
