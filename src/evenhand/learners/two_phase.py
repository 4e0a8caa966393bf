"""The paper's algorithm (section 3): explore, build the fair oracle, run the oracle-efficient
bandit over fair policies.

1. Accept everybody until the labels of the first T0 arrivals have all come: these people, and
   nobody else, are the sample.
2. From this sample build the FairCSC oracle over mixtures whose empirical gap is at most gamma' -
   beta.
3. Run ILOVETOCONBANDITS with that oracle: in each epoch, solve the feasibility program by
   coordinate descent.
4. Decide by the smoothed mixture Q^mu; feed labels back as importance-weighted losses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from evenhand import theory
from evenhand.bandit import (
    PracticalSchedule,
    Schedule,
    TheorySchedule,
    coordinate_descent,
    explored,
)
from evenhand.bandit.schedule import LARGEST_FLOOR
from evenhand.bounds import SlackBound
from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.errors import InvalidInput, ProtocolError
from evenhand.estimation import EstimatedLoss, RoundLog, one_sided, two_sided
from evenhand.estimation.log import joined
from evenhand.faircsc import FairCSC, bind_fair
from evenhand.fairness.rates import Rate, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners.epochs import Epoch, EpochLearner, round_count
from evenhand.learners.exploration import (
    FIRST_SIZE,
    Arrivals,
    Explorer,
    Reading,
    Slack,
    Verdict,
    as_bound,
    forgotten,
    next_size,
    sample_of,
)
from evenhand.learners.rounds import Lost
from evenhand.learners.settings import (
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
FROZEN = "so many people of the sample are lost that no other policy can be promised to keep the gap: the policy is frozen."


class TwoPhaseLearner(EpochLearner):
    """Promises |gap| <= allowed_gap at every round with probability 1 - failure_probability, and
    competes with the best policy whose gap is at most comparator_gap (half of allowed_gap by
    default).

    The length of the exploration: exploration_rounds, else T^(2 alpha) from tradeoff_exponent, else
    it stops on counts when twice the slack fits between the two gaps. With allowed_gap=None (and
    one of the first two) the promise is comparator_gap + 2 beta.

    Labels may be late, and later for some people than for others: the sample is exactly the first
    T0 arrivals, and everybody is accepted until the last of their labels has come. `report.notes`
    say for whom the learner waits; `close_exploration` ends the wait.
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
        settings = {
            name: value for name, value in locals().items() if name not in ("self", "__class__")
        }
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
        self._first = 0  # the round of the sample's first person
        self._size = self.exploration_rounds or FIRST_SIZE  # the preset size that is examined next
        self._complete = 0  # before this round no label is missing (after the exploration: none that may still come)
        self._taken = 0  # rounds before this one have been handed to the loss, but for late labels
        self._unlabelled: list[
            int
        ] = []  # rounds of the sample without a label when it was closed, or since
        self._in_counts: list[
            tuple[int, RoundLog]
        ] = []  # played in counts while exploring, by the first round
        super().__init__(
            prices=Prices() if prices is None else prices,
            group_use=group_use,
            seed=seed,
            settings=settings,
        )

    def _plan(self, number: int, round: int) -> Epoch:
        if self.slack is None:
            return self._explore(number, round)
        if not self.explorer.keeps(self.slack):
            # the policy that is deployed was chosen while it did, and so keeps the promise for good
            length = self._cut_off(max(FIRST_EPOCH, round), round)
            return replace(
                self.epoch,
                number=number,
                phase="frozen",
                first_round=round,
                rounds=length,
                oracle_calls=0,
            )
        return self._exploit(number, round)

    # step 1

    def _explore(self, number: int, round: int) -> Epoch:
        """Accept everybody up to the next preset size."""
        length = self._cut_off(self._next_stop(round) - round, round)
        return Epoch(
            number, "explore", round, length, Mixture((ACCEPT_ALL,), (1.0,), self.group_use)
        )

    def _next_stop(self, round: int) -> int:
        """The first round after `round` at which the people since `_first` are as many as one of
        the preset sizes.
        """
        size = self._size
        while self._first + size <= round:
            size = next_size(size)
        return self._first + size

    def _take(self, log: RoundLog) -> None:
        """Counts do not say in which order people came, so they must not go beyond a preset size of
        the exploration.
        """
        if self.sample is None:
            left = self._next_stop(self._round) - self._round
            if round_count(log) > left:
                raise ProtocolError(
                    f"{round_count(log)} rounds in counts go beyond the exploration's next preset size, {left} rounds ahead.",
                    hint=f"absorb at most {left} rounds at once.",
                )
            self._in_counts.append((self._round, log))
        super()._take(log)

    def _collect(self) -> bool:
        """Until the exploration is over, everybody stays in the book, in the order of arrival;
        whether the next epoch may begin.

        While labels of the size that is examined are missing, there is nothing to plan, and the
        epoch goes on.
        """
        exploring = self.sample is None
        if exploring:
            self._examine()
        if self.sample is None:
            return self._first + self._size > self._round
        settled = self._settled
        if settled == self._taken:
            return exploring
        found, self._taken = self._book.harvest(settled), settled
        self._history.add(found)
        return exploring or bool(found)

    def _examine(self) -> None:
        """Look at the preset sizes in their order, as far as labels are complete; the first one
        whose counts suffice is the sample's.

        Which one that is depends on the pairs (group, label) of the people in their order of
        arrival, and not on when labels come.
        """
        self._complete = self._first_missing(self._complete)
        while self._first + self._size <= self._complete:
            arrivals, verdict = self._examined(self._size)
            if (
                verdict == "enough" and not arrivals.missing
            ):  # somebody may have been erased after their label had come
                self._end_exploration(arrivals)
            if verdict != "too few":
                return
            self._size = next_size(self._size)

    def _first_missing(self, start: int, *, may_come: bool = False) -> int:
        """The first round from `start` on that lacks its label (`may_come`: and was neither
        overruled nor erased); the next one to be decided if there is none."""
        for block, rows in self._book.rows(start, self._round):
            for part in (
                slice(rows.start, rows.start + 1),
                rows,
            ):  # mostly it is the one that was missing before
                missing = block.accept[part] & (block.label[part] == 0)
                if may_come:
                    missing &= ~(block.overruled[part] | block.erased[part])
                if missing.any():
                    return block.first + int(part.start + np.argmax(missing))
        return self._round

    def _examined(self, size: int) -> tuple[Arrivals, Verdict]:
        arrivals = self._arrivals(self._first + size)
        return arrivals, self.explorer.verdict(arrivals, on_counts=self.exploration_rounds is None)

    def _arrivals(self, stop: int) -> Arrivals:
        """What is known of the people of the exploration who came before round `stop`."""
        counted = [sample_of(log) for first, log in self._in_counts if first < stop]
        told = list(self._book.rows(self._first, stop))
        group = joined(
            [part.group for part in counted]
            + [b.group if b.group is None else b.group[r] for b, r in told]
        )
        assert (
            group is not None
        )  # while it explores, the learner decides about nobody without a group
        return Arrivals(
            (*(part.features for part in counted), *(block.features[rows] for block, rows in told)),
            group,
            np.concatenate(
                [*(part.label for part in counted), *(block.label[rows] for block, rows in told)]
            ),
            np.concatenate(
                [
                    *(part.weight for part in counted),
                    *(np.ones(len(block.label[r])) for block, r in told),
                ]
            ),
        )

    def _end_exploration(self, arrivals: Arrivals) -> None:
        """These people are the sample for good; labels that come later do not enter it."""
        self.sample = arrivals.sample()
        self.slack = self.explorer.slack(self.sample, arrivals.missing)
        self._in_counts = []

    def _lose(self, lost: Lost, *, erased: bool) -> None:
        """While exploring, the label is missing from now on; afterwards the person leaves the
        sample, and the slack widens.

        A sample of rules 1 does not say who is who: it is wiped when somebody of its exploration is
        erased, and the policy is frozen.
        """
        super()._lose(lost, erased=erased)
        if self.sample is None or self.slack is None:
            if lost.round >= self._first:
                self._complete = min(self._complete, lost.round)
        elif self._size == 0:
            if erased and self._epochs[lost.epoch - 1].phase == "explore":
                nobody = 0.0 * self.sample.weight
                self.sample = LabelledSample(
                    0.0 * self.sample.features, self.sample.group, self.sample.label, nobody
                )
                self.slack = self.explorer.narrowed(self.slack, self.sample)
        elif 0 <= lost.round - self._first < self._size and lost.round not in self._unlabelled:
            self._unlabelled.append(lost.round)
            self.sample = forgotten(self.sample, lost.features, lost.group, lost.label)
            self.slack = self.explorer.narrowed(self.slack, self.sample)

    def close_exploration(self) -> None:
        """End the wait for labels that will not come: the sample is closed without them, and the
        next decision is the bandit's.

        Raises
        ------
        ProtocolError
            If there is nothing to close: the exploration is over or its people have not all arrived; if it depends on the missing labels
            whether these people suffice; and if the promise could not be kept with so many labels missing.

        Notes
        -----
        The k people of the sample whose labels are missing add k / min_j n_j to the slack, n_j the
        people who are left in the smallest denominator. That covers all that their labels may have
        been, so the promise does not depend on when or why this is called. The learner never does
        it by itself.
        """
        if self.sample is None:
            self._examine()
        if self.sample is not None:
            raise ProtocolError("the exploration is over; it waits for no label any more.")
        size, verdict = self._size, "too few"
        while verdict == "too few":  # which it is whatever the missing labels are
            if self._first + size > self._round:
                raise ProtocolError(
                    f"{self._round - self._first} people have arrived, and the exploration needs at least {size}.",
                    hint="go on deciding; everybody is accepted until then.",
                )
            arrivals, verdict = self._examined(size)
            size = size if verdict != "too few" else next_size(size)
        if verdict == "open":
            raise ProtocolError(
                f"it depends on the {arrivals.missing} missing labels whether the first {size} people suffice.",
                hint="tell some of these labels, or begin again with exploration_rounds.",
            )
        slack = self.explorer.slack(arrivals.sample(), arrivals.missing)
        if not self.explorer.suffices(slack.beta, on_counts=False):
            raise ProtocolError(
                f"without {arrivals.missing} of {size} labels the slack would be {slack.beta:.3g}, above the promised gap.",
                hint="tell some of these labels.",
            )
        self._size = size
        self._end_exploration(arrivals)
        sampled = self._book.rows(self._first, self._first + size)
        self._unlabelled = [
            block.first + int(row)
            for block, rows in sampled
            for row in range(rows.start, rows.stop)
            if block.label[row] == 0
        ]
        self._epochs[-1] = replace(self.epoch, rounds=self._round - self.epoch.first_round)
        self._news = True

    def _cut_off(self, length: int, round: int) -> int:
        """An epoch ends with the horizon; whoever plays on beyond it meets epochs of the usual
        length.
        """
        return min(length, self.horizon - round) if round < self.horizon else length

    @property
    def _settled(self) -> int:
        """How many rounds, from the first on, enter the loss: up to the first missing label, and
        half of all rounds in any case.

        Rejected people are known at once and accepted ones when their label comes, good outcomes
        perhaps later than bad ones; to take what has come would tilt the loss. Labels that never
        come delay a round until as many have been decided after it as before it.
        """
        self._complete = self._first_missing(self._complete, may_come=True)
        return max(self._round // 2, self._complete)

    # step 2

    def fair_oracle(self, loss: EstimatedLoss) -> FairCSC:
        """FairCSC over the rows of `loss`, with the exploration sample's constraint."""
        sample, slack = self._ready()
        return bind_fair(
            self.hypotheses,
            loss.features,
            loss.group,
            self.rates,
            sample,
            slack.limit,
            group_use=self.group_use,
        )

    def _ready(self) -> tuple[LabelledSample, Slack]:
        if self.sample is None or self.slack is None:
            raise InvalidInput(
                "the exploration is not finished; there is no fair oracle yet.",
                hint="look at report.notes.",
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
            number,
            "bandit",
            round,
            length,
            policy,
            floor,
            report.iterations,
            report.oracle_calls,
            report.halted,
        )

    @property
    def _explored_rounds(self) -> int:
        return sum(epoch.rounds for epoch in self._epochs if epoch.phase == "explore")

    def _bandit_log(self) -> RoundLog | None:
        """The rounds that enter the loss: all of them one-sided; two-sided, those in which both
        decisions could occur.
        """
        later = {epoch.number for epoch in self._epochs if epoch.phase != "explore"}
        return self._history.of(
            None if self.sides == 1 else later, with_group=self.group_use == "decide"
        )

    def _notes(self) -> list[str]:
        if self.slack is not None:
            lost = (
                f"{self.slack.missing} people of the sample have no label or were erased; "
                "the slack covers whatever is not known of them."
            )
            said = {lost: self.slack.missing > 0, FROZEN: not self.explorer.keeps(self.slack)}
            return [note for note, holds in said.items() if holds]
        missing = self._first_missing(self._first)
        if missing < self._first + self._size <= self._round:
            return [self._waits_for(missing)]
        arrived = self._arrivals(self._round) if self._round > self._first else None
        short = self.explorer.shortfall(arrived, on_counts=self.exploration_rounds is None)
        return [short] if short else []

    def _waits_for(self, round: int) -> str:
        """Which label the exploration waits for, and since when."""
        block, rows = next(self._book.rows(round, round + 1))
        never = block.erased[rows].any() or block.overruled[rows].any()
        at = "" if block.at is None else f" at time {block.at:g},"
        return (
            f"exploring: waiting for the label of round {round}, which was decided{at} {self._round - round} rounds ago"
            f"{'; it was overruled or erased, so its label never comes' if never else ''}. The sample is the first people, each of them "
            f"with their label, so nobody after round {round} counts before. {self._book.missing_labels} labels may still come. "
            "To go on without those that never will: close_exploration()."
        )

    def _state(self) -> dict[str, Any]:
        names = (
            "sample",
            "slack",
            "_first",
            "_size",
            "_complete",
            "_taken",
            "_unlabelled",
            "_in_counts",
        )
        return super()._state() | {name: getattr(self, name) for name in names}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Files of rules 1 do not say in which order people came: who was exploring then takes a
        new sample from here on, and a sample that had been taken has no rounds that are known."""
        super()._restore(state)
        if "_first" not in state:
            self._first = self._complete = self._round
            self._size = self._size if self.sample is None else 0

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
    gamma = (
        comparator_gap
        if comparator_gap is not None
        else (allowed_gap / 2 if allowed_gap is not None else 0.0)
    )
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
        raise InvalidInput(
            f"horizon is {horizon}; there must be a round after the exploration, so at least 2."
        )
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
