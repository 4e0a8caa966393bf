"""The paper's algorithm (section 3): explore, build the fair oracle, run the oracle-efficient bandit over fair policies.

1. Accept the first T0 arrivals and see their labels.
2. From this sample build the FairCSC oracle over mixtures whose empirical gap is at most gamma' - beta.
3. Run ILOVETOCONBANDITS with that oracle: in each epoch, solve the feasibility program by coordinate descent.
4. Decide by the smoothed mixture Q^mu; feed labels back as importance-weighted losses.
"""

from collections.abc import Sequence
from typing import Any, Literal

from evenhand import theory
from evenhand.bandit import PracticalSchedule, Schedule, TheorySchedule, coordinate_descent, explored
from evenhand.bandit.schedule import LARGEST_FLOOR
from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.estimation import EstimatedLoss, RoundLog, one_sided, two_sided
from evenhand.faircsc import FairCSC, bind_fair
from evenhand.fairness.bounds.slack import SlackBound
from evenhand.fairness.rates import Rate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners.epochs import Epoch, EpochLearner
from evenhand.learners.exploration import Explorer, Reading, Slack, as_bound, sample_of
from evenhand.learners.settings import (
    as_rates,
    require_delta,
    require_exploration,
    require_gap,
    require_horizon,
    require_hypotheses,
)
from evenhand.policies import Mixture
from evenhand.words import LabelledSample, Prices

FIRST_EPOCH = 64
"""Rounds of the bandit's first epoch; then its length doubles."""


class TwoPhaseLearner(EpochLearner):
    """Promises |gap| <= allowed_gap at every round with probability 1 - failure_probability, and competes with the best policy whose
    gap is at most comparator_gap (half of allowed_gap by default).

    The length of the exploration: exploration_rounds, else T^(2 alpha) from tradeoff_exponent, else it stops on counts when twice the
    slack fits between the two gaps. With allowed_gap=None (and one of the first two) the promise is comparator_gap + 2 beta.
    """

    def __init__(
        self,
        hypotheses: HypothesisClass,
        rate: Rate | Sequence[Rate],
        allowed_gap: float | None,
        failure_probability: float,
        horizon: int,
        *,
        comparator_gap: float | None = None,
        exploration_rounds: int | None = None,
        tradeoff_exponent: float | None = None,
        estimator: Literal["one-sided", "two-sided"] = "one-sided",
        schedule: Literal["practical", "theory"] | Schedule = "practical",
        bound: str | SlackBound | None = None,
        prices: Prices | None = None,
        group_use: GroupUse = "certify_only",
        reading: Reading = "evenhand",
        seed: int | None = None,
    ) -> None:
        settings = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        require_hypotheses(hypotheses)
        require_delta(failure_probability)
        require_horizon(horizon, 2)
        require_exploration(comparator_gap, exploration_rounds, tradeoff_exponent)
        if allowed_gap is not None:
            require_gap(allowed_gap)
        self.hypotheses, self.horizon = hypotheses, int(horizon)
        self.rates = as_rates(rate)
        self.sides = {"one-sided": 1, "two-sided": 2}.get(estimator, 0)
        if not self.sides:
            raise InvalidInput(f'estimator is {estimator!r}; it is "one-sided" or "two-sided".')
        self.comparator_gap = _comparator(allowed_gap, comparator_gap)
        self.schedule = _schedule(schedule, self.horizon, failure_probability, hypotheses)
        self.explorer = Explorer(
            as_bound(bound, hypotheses),
            hypotheses,
            self.rates,
            allowed_gap,
            self.comparator_gap,
            failure_probability,
            reading,
        )
        self.exploration_rounds = _rounds(
            exploration_rounds, tradeoff_exponent, self.horizon, hypotheses, failure_probability
        )
        self._require_enough(allowed_gap)
        self.sample: LabelledSample | None = None
        self.slack: Slack | None = None
        super().__init__(
            prices=Prices() if prices is None else prices, group_use=group_use, seed=seed, settings=settings
        )

    def _plan(self, number: int, round: int) -> Epoch:
        if self.sample is None:
            self.sample = self._finished_sample(round)
            if self.sample is None:
                return self._explore(number, round)
            self.slack = self.explorer.slack(self.sample)
        return self._exploit(number, round)

    # step 1

    def _explore(self, number: int, round: int) -> Epoch:
        """Accept everybody for another block: the whole of T0 if it is given, else 5% of what has been seen."""
        block = max(FIRST_EPOCH, round // 20)
        if self.exploration_rounds is not None and round < self.exploration_rounds:
            block = self.exploration_rounds - round
        return Epoch(
            number,
            "explore",
            round,
            self._cut_off(block, round),
            Mixture((ACCEPT_ALL,), (1.0,), self.group_use),
        )

    def _finished_sample(self, round: int) -> LabelledSample | None:
        """The exploration sample once it suffices, else None."""
        log = self._history.of() if round else None
        if log is None or (self.exploration_rounds is not None and round < self.exploration_rounds):
            return None
        sample = sample_of(log)
        return sample if self.explorer.suffices(sample, on_counts=self.exploration_rounds is None) else None

    def _cut_off(self, length: int, round: int) -> int:
        """An epoch ends with the horizon; whoever plays on beyond it meets epochs of the usual length."""
        return min(length, self.horizon - round) if round < self.horizon else length

    # step 2

    def fair_oracle(self, loss: EstimatedLoss) -> FairCSC:
        """FairCSC over the rows of `loss`, with the exploration sample's constraint."""
        sample, slack = self._ready()
        return bind_fair(
            self.hypotheses, loss.features, loss.group, self.rates, sample, slack.limit, group_use=self.group_use
        )

    def _ready(self) -> tuple[LabelledSample, Slack]:
        if self.sample is None or self.slack is None:
            raise InvalidInput(
                "the exploration is not finished; there is no fair oracle yet.", hint="look at report.notes."
            )
        return self.sample, self.slack

    # steps 3 and 4

    def _exploit(self, number: int, round: int) -> Epoch:
        """One epoch of the bandit; its length doubles."""
        played = round - self._explored_rounds
        length = self._cut_off(max(FIRST_EPOCH, played), round)
        log = self._bandit_log()
        if log is None:
            coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5), self.group_use)
            return Epoch(number, "bandit", round, length, coin, exploration_floor=0.5)
        loss = (one_sided if self.sides == 1 else two_sided)(log, self.loss)
        floor = self.schedule.exploration_floor(max(1, int(loss.rounds)))
        found = coordinate_descent(
            loss,
            self.fair_oracle(loss),
            exploration_floor=floor,
            regret_scale=self.schedule.regret_scale,
            sides=self.sides,
        )
        policy = found.weights.smoothed(floor, explored(self.sides))
        report = found.report
        return Epoch(
            number, "bandit", round, length, policy, floor, report.iterations, report.oracle_calls, report.halted
        )

    @property
    def _explored_rounds(self) -> int:
        return sum(epoch.rounds for epoch in self._epochs if epoch.phase == "explore")

    def _bandit_log(self) -> RoundLog | None:
        """The rounds that enter the loss: all of them one-sided; two-sided, those in which both decisions could occur."""
        later = {epoch.number for epoch in self._epochs if epoch.phase != "explore"}
        return self._history.of(None if self.sides == 1 else later, with_group=self.group_use == "decide")

    def _notes(self) -> list[str]:
        if self.slack is not None:
            return []
        log = self._history.of()
        missing = self.explorer.shortfall(
            None if log is None else sample_of(log), on_counts=self.exploration_rounds is None
        )
        return [missing] if missing else []

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"sample": self.sample, "slack": self.slack}

    @property
    def promise(self) -> float:
        """The gap that no deployed policy exceeds, with probability 1 - failure_probability."""
        return self.slack.promise if self.slack is not None else 0.0

    def _require_enough(self, allowed_gap: float | None) -> None:
        if allowed_gap is None and self.exploration_rounds is None:
            raise InvalidInput(
                "allowed_gap is None, and neither exploration_rounds nor tradeoff_exponent is given.",
                hint="name the gap that may never be exceeded, or how long to explore.",
            )
        if self.exploration_rounds is not None and self.exploration_rounds >= self.horizon:
            raise InvalidInput(
                f"the exploration of {self.exploration_rounds} rounds does not fit into a horizon of {self.horizon}.",
                hint="explore less, or raise the horizon.",
            )


def _comparator(allowed_gap: float | None, comparator_gap: float | None) -> float:
    if allowed_gap is not None and not 0 < allowed_gap <= 1:
        raise InvalidInput(f"allowed_gap is {allowed_gap}; the promised gap is a number in (0, 1].")
    gamma = comparator_gap if comparator_gap is not None else (allowed_gap / 2 if allowed_gap is not None else 0.0)
    if gamma < 0 or (allowed_gap is not None and gamma >= allowed_gap):
        raise InvalidInput(
            f"comparator_gap is {gamma} and allowed_gap {allowed_gap}; 0 <= comparator_gap < allowed_gap.",
            hint="the learner competes with fairer policies than it promises to be; half of allowed_gap is the default.",
        )
    return gamma


def _rounds(
    exploration_rounds: int | None,
    exponent: float | None,
    horizon: int,
    hypotheses: HypothesisClass,
    failure_probability: float,
) -> int | None:
    if horizon < 2:
        raise InvalidInput(f"horizon is {horizon}; there must be a round after the exploration, so at least 2.")
    if exploration_rounds is not None:
        if exploration_rounds < 1:
            raise InvalidInput(
                f"exploration_rounds is {exploration_rounds}; at least one person must be accepted to learn."
            )
        return int(exploration_rounds)
    if exponent is not None:
        return theory.tradeoff_rounds(horizon, exponent, hypotheses.log_size, failure_probability)
    return None


def _schedule(
    chosen: str | Schedule, horizon: int, failure_probability: float, hypotheses: HypothesisClass
) -> Schedule:
    if chosen == "practical":
        return PracticalSchedule()
    if chosen == "theory":
        return TheorySchedule(horizon, failure_probability, hypotheses.log_size)
    if isinstance(chosen, str):
        raise InvalidInput(f'schedule is {chosen!r}; it is "practical", "theory", or a Schedule.')
    if not 0 < chosen.exploration_floor(1) <= LARGEST_FLOOR:
        raise InvalidInput(
            f"the schedule begins with an exploration floor of {chosen.exploration_floor(1)}; it lies in (0, 1/2], "
            "because each of the two decisions takes that much of the probability.",
        )
    return chosen
