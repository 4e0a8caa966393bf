"""What the paper's algorithm is compared with, each a learner in its own right.

AcceptAll, Uniform         no learning
ExploreThenCommit          section 2, "baseline approaches": explore, then deploy the empirically best fair policy for good
Unconstrained              the same bandit over all policies, fair or not
FairOnGathered             greedy, with the constraint measured on the labels that were gathered: the feedback loop of section 1
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

from evenhand.bandit import PracticalSchedule, coordinate_descent, explored
from evenhand.contracts import GroupUse, Hypothesis, HypothesisClass, RowOracle
from evenhand.errors import CannotEstimateRate
from evenhand.estimation import EstimatedLoss, RoundLog, one_sided
from evenhand.faircsc import bind_fair
from evenhand.fairness.rates import FalsePositiveRate, Rate, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.learners.epochs import Epoch, EpochLearner
from evenhand.learners.exploration import sample_of
from evenhand.learners.settings import (
    require_gap,
    require_horizon,
    require_hypotheses,
    require_whole,
)
from evenhand.learners.two_phase import FIRST_EPOCH, TwoPhaseLearner
from evenhand.policies import Mixture
from evenhand.words import FloatArray, Prices

FALSE_POSITIVES = FalsePositiveRate()
FOREVER = 2**62
"""The length of an epoch that never ends."""


class _Fixed(EpochLearner):
    """One policy for ever."""

    needs_group = False

    def __init__(
        self,
        *,
        rate: Rate | Sequence[Rate] = FALSE_POSITIVES,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        self.rates = as_rates(rate)
        settings = {"rate": rate, "prices": prices, "seed": seed}
        super().__init__(
            prices=Prices() if prices is None else prices,
            group_use="certify_only",
            seed=seed,
            settings=settings,
        )

    def _plan(self, number: int, round: int) -> Epoch:
        return Epoch(number, "fixed", round, FOREVER, self._policy())

    def _policy(self) -> Mixture:
        return Mixture((ACCEPT_ALL,), (1.0,))


class AcceptAll(_Fixed):
    """Accept everybody: no gap, and every label is seen."""


class Uniform(_Fixed):
    """Toss a fair coin for everybody: no gap."""

    def _policy(self) -> Mixture:
        return Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5))


class ExploreThenCommit(TwoPhaseLearner):
    """Accept everybody for T0 = T^(2/3) rounds (or as told), then deploy the empirically best fair
    policy for good.

    Takes every setting of `TwoPhaseLearner`; with same_exploration=True its T0 is that learner's
    own.
    """

    def __init__(self, *args: Any, same_exploration: bool = False, **settings: Any) -> None:
        told = (
            settings.get("exploration_rounds") is not None
            or settings.get("tradeoff_exponent") is not None
        )
        horizon = settings["horizon"] if "horizon" in settings else args[4]
        require_horizon(horizon, 2)
        if not (told or same_exploration):
            settings["exploration_rounds"] = ceil(horizon ** (2 / 3))
        super().__init__(*args, **settings)
        self._settings["same_exploration"] = same_exploration

    @property
    def _settled(self) -> int:
        """The loss is that of the sample: a policy that is chosen once must not depend on which
        labels were quick.
        """
        return self._first + self._size

    def _exploit(self, number: int, round: int) -> Epoch:
        log = self._bandit_log()
        assert log is not None  # the exploration is over, so it has rows
        loss = one_sided(log, self.loss)
        found = self.fair_oracle(loss).cheapest(loss.acceptance_cost)
        return Epoch(
            number, "commit", round, FOREVER, found.policy, oracle_calls=found.oracle_calls
        )


class _Greedy(EpochLearner):
    """Learners that begin with a few accepted rounds and then re-solve whenever the number of
    rounds has doubled.
    """

    def __init__(
        self,
        hypotheses: HypothesisClass,
        rate: Rate | Sequence[Rate],
        allowed_gap: float = 1.0,
        *,
        first_rounds: int = 4 * FIRST_EPOCH,
        prices: Prices | None = None,
        group_use: GroupUse = "certify_only",
        seed: int | None = None,
    ) -> None:
        settings = {
            name: value for name, value in locals().items() if name not in ("self", "__class__")
        }
        require_hypotheses(hypotheses)
        require_gap(allowed_gap)
        require_whole(
            "first_rounds", first_rounds, 1, "at least one person must be accepted to learn"
        )
        self.hypotheses, self.allowed_gap, self.first_rounds = (
            hypotheses,
            allowed_gap,
            int(first_rounds),
        )
        self.rates = as_rates(rate)
        self.comparator_gap = allowed_gap
        super().__init__(
            prices=Prices() if prices is None else prices,
            group_use=group_use,
            seed=seed,
            settings=settings,
        )

    def _accept(self, number: int, round: int) -> Epoch:
        everybody = Mixture((ACCEPT_ALL,), (1.0,), self.group_use)
        return Epoch(number, "explore", round, max(self.first_rounds, round), everybody)


@dataclass(frozen=True, eq=False)
class AnyAnswer:
    """One hypothesis: without a constraint nothing has to be mixed."""

    policy: Mixture
    acceptance: FloatArray
    oracle_calls: int = 1


@dataclass(frozen=True, eq=False)
class AnyPolicy:
    """A "fair" oracle without a constraint: the class, the constants, and, where the group may
    decide, the group classifiers.
    """

    oracle: RowOracle
    loss: EstimatedLoss
    group_use: GroupUse

    def cheapest(self, acceptance_cost: FloatArray) -> AnyAnswer:
        """The cheapest hypothesis of all."""
        answers = [
            self._answer(rule) for rule in (self.oracle.best(acceptance_cost), *self._permanent)
        ]
        return min(answers, key=lambda answer: float(acceptance_cost @ answer.acceptance))

    @cached_property
    def _permanent(self) -> tuple[Hypothesis, ...]:
        groups = () if self.loss.group is None else dict.fromkeys(self.loss.group.tolist())
        return (ACCEPT_ALL, REJECT_ALL, *map(GroupClassifier, groups))

    def _answer(self, rule: Hypothesis) -> AnyAnswer:
        policy = Mixture((rule,), (1.0,), self.group_use)
        return AnyAnswer(policy, policy.acceptance_of_checked(self.loss.features, self.loss.group))


class Unconstrained(_Greedy):
    """ILOVETOCONBANDITS (one-sided) over all mixtures: low regret to the best unfair policy, and no
    promise.
    """

    needs_group = False

    def _plan(self, number: int, round: int) -> Epoch:
        log = self._history.of(with_group=self.group_use == "decide") if round else None
        if log is None:
            return self._accept(number, round)
        loss, schedule = one_sided(log, self.loss), PracticalSchedule()
        floor = schedule.exploration_floor(max(1, int(loss.rounds)))
        every = AnyPolicy(self.hypotheses.bind(loss.features, loss.group), loss, self.group_use)
        found = coordinate_descent(
            loss, every, exploration_floor=floor, regret_scale=schedule.regret_scale, sides=1
        )
        policy = found.weights.smoothed(floor, explored(1))
        return Epoch(
            number,
            "bandit",
            round,
            round,
            policy,
            floor,
            found.report.iterations,
            found.report.oracle_calls,
        )


class FairOnGathered(_Greedy):
    """Greedy: the best policy whose gap *on the labels gathered so far* is within the limit,
    without weighting or exploration.
    """

    @property
    def _needs_group_now(self) -> bool:
        return True  # every label that is gathered enters the constraint

    def _plan(self, number: int, round: int) -> Epoch:
        log = self._history.of() if round else None
        if log is None:
            return self._accept(number, round)
        gathered = self._history.of(with_group=self.group_use == "decide") or log
        shown = one_sided(_as_if_accepted_by_all(gathered), self.loss)
        try:
            fair = bind_fair(
                self.hypotheses,
                shown.features,
                shown.group,
                self.rates,
                sample_of(log),
                self.allowed_gap,
                group_use=self.group_use,
            )
        except CannotEstimateRate:
            return self._accept(number, round)
        found = fair.cheapest(shown.acceptance_cost)
        return Epoch(number, "greedy", round, round, found.policy, oracle_calls=found.oracle_calls)


def _as_if_accepted_by_all(log: RoundLog) -> RoundLog:
    """The accepted rows as ordinary tools see them: a plain labelled table."""
    seen = log.where(log.accepted > 0)
    ones = seen.accepted * 0 + 1
    return RoundLog(
        seen.features, seen.group, ones, ones * 0, seen.positive, seen.negative, seen.prices
    ).aggregated()
