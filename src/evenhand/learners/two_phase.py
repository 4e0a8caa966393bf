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

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal

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
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.estimator import as_class
from evenhand.learners.epochs import Epoch, EpochLearner, LearnerState, round_count
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
from evenhand.learners.rounds import Block
from evenhand.learners.settings import (
    made_with,
    require_delta,
    require_exploration,
    require_gap,
    require_horizon,
)
from evenhand.learners.storage import stored_as
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.words import LabelledSample, Prices

FIRST_EPOCH = 64
"""Rounds of the bandit's first epoch; then its length doubles."""
FROZEN = (
    "so many people of the sample are lost that no other policy can be promised to keep the gap: "
    "the policy is frozen."
)


@dataclass(frozen=True, eq=False)
class TwoPhaseSettings:
    """The arguments of a `TwoPhaseLearner`, and what must be true of them."""

    hypotheses: HypothesisClass
    rate: RateLike
    allowed_gap: float | None
    failure_probability: float
    horizon: int
    _: KW_ONLY
    comparator_gap: float | None = None
    exploration_rounds: int | None = None
    tradeoff_exponent: float | None = None
    estimator: Literal["one-sided", "two-sided"] = "one-sided"
    schedule: Literal["practical", "theory"] | Schedule = "practical"
    bound: str | SlackBound | None = None
    prices: Prices | None = None
    group_use: GroupUse = "certify_only"
    reading: Reading = "evenhand"
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "hypotheses", as_class(self.hypotheses))
        as_rates(self.rate)
        require_delta(self.failure_probability)
        require_horizon(self.horizon, 2)
        require_exploration(self.comparator_gap, self.exploration_rounds, self.tradeoff_exponent)
        if self.allowed_gap is not None:
            require_gap(self.allowed_gap)
        if self.estimator not in ("one-sided", "two-sided"):
            raise InvalidInput(
                f'estimator is {self.estimator!r}; it is "one-sided" or "two-sided".'
            )

    @property
    def comparator(self) -> float:
        """The gap of the policies with which the learner competes."""
        half = 0.0 if self.allowed_gap is None else self.allowed_gap / 2
        gamma = half if self.comparator_gap is None else self.comparator_gap
        if self.allowed_gap is not None and gamma >= self.allowed_gap:
            raise InvalidInput(
                f"comparator_gap is {gamma} and allowed_gap {self.allowed_gap}; "
                "0 <= comparator_gap < allowed_gap.",
                hint="the learner competes with fairer policies than it promises to be; half of "
                "allowed_gap is the default.",
            )
        return gamma

    @property
    def chosen_schedule(self) -> Schedule:
        """The schedule of the exploration floor, by its name or as it is."""
        chosen = self.schedule
        if chosen == "practical":
            return PracticalSchedule()
        if chosen == "theory":
            return TheorySchedule(
                int(self.horizon), self.failure_probability, self.hypotheses.log_size
            )
        if isinstance(chosen, str):
            raise InvalidInput(
                f'schedule is {chosen!r}; it is "practical", "theory", or a Schedule.'
            )
        if not 0 < chosen.exploration_floor(1) <= LARGEST_FLOOR:
            raise InvalidInput(
                f"the schedule begins with an exploration floor of {chosen.exploration_floor(1)}; "
                "it lies in (0, 1/2], because each of the two decisions takes that much of the "
                "probability."
            )
        return chosen

    @property
    def rounds(self) -> int | None:
        """The preset length of the exploration; None where it stops on counts."""
        rounds = None if self.exploration_rounds is None else int(self.exploration_rounds)
        if rounds is None and self.tradeoff_exponent is not None:
            rounds = theory.tradeoff_rounds(
                int(self.horizon),
                self.tradeoff_exponent,
                self.hypotheses.log_size,
                self.failure_probability,
            )
        if self.allowed_gap is None and rounds is None:
            raise InvalidInput(
                "allowed_gap is None, and neither exploration_rounds nor tradeoff_exponent is "
                "given.",
                hint="name the gap that may never be exceeded, or how long to explore.",
            )
        if rounds is not None and rounds >= self.horizon:
            raise InvalidInput(
                f"the exploration of {rounds} rounds does not fit into a horizon of "
                f"{int(self.horizon)}.",
                hint="explore less, or raise the horizon.",
            )
        return rounds


@dataclass(eq=False, kw_only=True)
class TwoPhaseState(LearnerState):
    """What a `TwoPhaseLearner` knows.

    sample, slack: the people of the exploration, and what they allow; None before it is over.
    first: the round of the sample's first person. size: the preset size that is examined next.
    complete: before this round no label is missing (after the exploration: none that may still
    come). taken: rounds before this one have been handed to the loss, but for late labels.
    unlabelled: rounds of the sample without a label when it was closed, or since. in_counts: what
    was played in counts while exploring, by the first round.
    """

    sample: LabelledSample | None = field(metadata=stored_as("sample"), default=None)
    slack: Slack | None = field(metadata=stored_as("slack"), default=None)
    first: int = 0
    size: int
    complete: int = 0
    taken: int = 0
    unlabelled: list[int] = field(default_factory=list)
    in_counts: list[tuple[int, RoundLog]] = field(default_factory=list)


class TwoPhaseLearner(EpochLearner):
    """The paper's algorithm: explore, build the fair oracle, run the bandit over fair policies.

    Parameters
    ----------
    hypotheses : HypothesisClass
        The rules that may be mixed.
    rate : Rate, str, or a sequence of them
        Whose gap is kept below the limit.
    allowed_gap : float or None
        The gap that is never exceeded, with probability 1 - failure_probability. None (with
        exploration_rounds or tradeoff_exponent) promises comparator_gap + 2 beta.
    failure_probability : float
        delta.
    horizon : int
        T.
    comparator_gap : float, optional
        The learner competes with the best policy of this gap; half of allowed_gap by default.
    exploration_rounds, tradeoff_exponent : optional
        The length of the exploration: this many rounds, else T^(2 alpha), else it stops on counts
        when twice the slack fits between the two gaps.
    estimator : {"one-sided", "two-sided"}
        How losses are weighted (`evenhand.estimation`).
    schedule : {"practical", "theory"} or Schedule
        The exploration floor of the bandit.
    bound : str or SlackBound, optional
        The slack of the sample: "joint-hoeffding" (default), "dkw" or "clopper-pearson".
    prices : Prices, optional
        What errors cost.
    group_use : {"certify_only", "decide"}
        Whether the group may influence a decision.
    reading : {"evenhand", "paper"}
        How slack and limit relate; the paper's own reading does not hold.
    seed : int, optional
        Of all coins.

    Raises
    ------
    InvalidInput
        If a setting makes no sense, or the exploration does not fit into the horizon.

    Notes
    -----
    Labels may be late, and later for some people than for others: the sample is exactly the first
    T0 arrivals, and everybody is accepted until the last of their labels has come. `report.notes`
    say for whom the learner waits; `close_exploration` ends the wait.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate, ScoreThresholds
    >>> learner = TwoPhaseLearner(
    ...     ScoreThresholds(), FalsePositiveRate(), 0.4, 0.1, 1000, exploration_rounds=100, seed=1
    ... )
    >>> learner.decide([[0.2], [0.7]], ["a", "b"]).accept.tolist(), learner.report.phase
    ([True, True], 'explore')
    """

    @made_with(TwoPhaseSettings)
    def __init__(self, settings: TwoPhaseSettings) -> None:
        self.hypotheses, self.horizon = settings.hypotheses, int(settings.horizon)
        self.rates = as_rates(settings.rate)
        self.sides = {"one-sided": 1, "two-sided": 2}[settings.estimator]
        self.comparator_gap, self.schedule = settings.comparator, settings.chosen_schedule
        self.explorer = Explorer(
            as_bound(settings.bound, self.hypotheses),
            self.hypotheses,
            self.rates,
            settings.allowed_gap,
            self.comparator_gap,
            settings.failure_probability,
            settings.reading,
        )
        self.exploration_rounds = settings.rounds
        super().__init__(
            prices=settings.prices,
            group_use=settings.group_use,
            seed=settings.seed,
            settings=settings,
        )

    state: TwoPhaseState

    def _first_state(self, seed: int) -> TwoPhaseState:
        size = self.exploration_rounds or FIRST_SIZE
        return TwoPhaseState(seed=seed, coins=stream(seed, "coins"), size=size)

    @property
    def sample(self) -> LabelledSample | None:
        """The people of the exploration; None before it is over."""
        return self.state.sample

    @property
    def slack(self) -> Slack | None:
        """What they allow: beta, and the limit of the empirical gap."""
        return self.state.slack

    def _plan(self, number: int, round: int) -> Epoch:
        if self.slack is None:
            # step 1: accept everybody up to the next preset size
            length = self._cut_off(self._next_stop(round) - round, round)
            everybody = Mixture((ACCEPT_ALL,), (1.0,), self.group_use)
            return Epoch(number, "explore", round, length, everybody)
        if not self.explorer.keeps(self.slack):
            # the policy that is deployed was chosen while it did, and so keeps the promise for good
            kept = replace(self.epoch, phase="frozen", oracle_calls=0)
            length = self._cut_off(max(FIRST_EPOCH, round), round)
            return replace(kept, number=number, first_round=round, rounds=length)
        return self._exploit(number, round)

    # step 1

    def _next_stop(self, round: int) -> int:
        """The first round after `round` at which the people since `_first` are as many as one of
        the preset sizes.
        """
        size = self.state.size
        while self.state.first + size <= round:
            size = next_size(size)
        return self.state.first + size

    def _take(self, log: RoundLog) -> None:
        """Counts do not say in which order people came, so they must not go beyond a preset size of
        the exploration.
        """
        if self.sample is None:
            left = self._next_stop(self.state.round) - self.state.round
            if round_count(log) > left:
                raise ProtocolError(
                    f"{round_count(log)} rounds in counts go beyond the exploration's next preset "
                    f"size, {left} rounds ahead.",
                    hint=f"absorb at most {left} rounds at once.",
                )
            self.state.in_counts.append((self.state.round, log))
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
            return self.state.first + self.state.size > self.state.round
        settled = self._settled
        if settled == self.state.taken:
            return exploring
        logs, self.state.taken = self.state.book.harvest(settled), settled
        self.state.history.add(logs)
        return exploring or bool(logs)

    def _examine(self) -> None:
        """Look at the preset sizes in their order, as far as labels are complete; the first one
        whose counts suffice is the sample's.

        Which one that is depends on the pairs (group, label) of the people in their order of
        arrival, and not on when labels come.
        """
        self.state.complete = self._first_missing(self.state.complete)
        while self.state.first + self.state.size <= self.state.complete:
            arrivals, verdict = self._examined(self.state.size)
            # somebody may have been erased after their label had come
            if verdict == "enough" and not arrivals.missing:
                self._end_exploration(arrivals)
            if verdict != "too few":
                return
            self.state.size = next_size(self.state.size)

    def _first_missing(self, start: int, *, may_come: bool = False) -> int:
        """The first round from `start` on that lacks its label (`may_come`: and was neither
        overruled nor erased); the next one to be decided if there is none."""
        for block, rows in self.state.book.rows(start, self.state.round):
            # mostly it is the one that was missing before
            for part in (slice(rows.start, rows.start + 1), rows):
                missing = block.accept[part] & (block.label[part] == 0)
                if may_come:
                    missing &= ~(block.overruled[part] | block.erased[part])
                if missing.any():
                    return block.first + int(part.start + np.argmax(missing))
        return self.state.round

    def _examined(self, size: int) -> tuple[Arrivals, Verdict]:
        arrivals = self._arrivals(self.state.first + size)
        return arrivals, self.explorer.verdict(arrivals, on_counts=self.exploration_rounds is None)

    def _arrivals(self, stop: int) -> Arrivals:
        """What is known of the people of the exploration who came before round `stop`."""
        counted = [sample_of(log) for first, log in self.state.in_counts if first < stop]
        parts = [(one.features, one.group, one.label, one.weight) for one in counted]
        for block, rows in self.state.book.rows(self.state.first, stop):
            assert block.group is not None  # nobody is decided about without a group
            people = block.features[rows], block.group[rows], block.label[rows]
            parts.append((*people, np.ones(len(people[0]))))
        features, groups, labels, counts = zip(*parts, strict=True)
        group = joined(groups)
        assert group is not None
        return Arrivals(features, group, np.concatenate(labels), np.concatenate(counts))

    def _end_exploration(self, arrivals: Arrivals) -> None:
        """These people are the sample for good; labels that come later do not enter it."""
        sample = arrivals.sample()
        self.state.sample = sample
        self.state.slack = self.explorer.slack(sample, arrivals.missing)
        self.state.in_counts = []

    def _lose(self, lost: Block, *, erased: bool) -> None:
        """While exploring, the label is missing from now on; afterwards the person leaves the
        sample, and the slack widens.

        A sample of rules 1 does not say who is who: it is wiped when somebody of its exploration is
        erased, and the policy is frozen.
        """
        super()._lose(lost, erased=erased)
        if self.sample is None or self.slack is None:
            if lost.first >= self.state.first:
                self.state.complete = min(self.state.complete, lost.first)
        elif self.state.size == 0:
            if erased and self.state.epochs[lost.epoch - 1].phase == "explore":
                wiped, nobody = 0.0 * self.sample.features, 0.0 * self.sample.weight
                self.state.sample = replace(self.sample, features=wiped, count=nobody)
                self.state.slack = self.explorer.narrowed(self.slack, self.sample)
        elif (
            0 <= lost.first - self.state.first < self.state.size
            and lost.first not in self.state.unlabelled
        ):
            self.state.unlabelled.append(lost.first)
            person = lost.features[0], lost.group_of(0), int(lost.label[0])
            self.state.sample = forgotten(self.sample, *person)
            self.state.slack = self.explorer.narrowed(self.slack, self.sample)

    def close_exploration(self) -> None:
        """End the wait for labels that will not come.

        The sample is closed without them, and the next decision is the bandit's.

        Raises
        ------
        ProtocolError
            If there is nothing to close: the exploration is over or its people have not all
            arrived; if it depends on the missing labels whether these people suffice; and if the
            promise could not be kept with so many labels missing.

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
        size, verdict = self.state.size, "too few"
        while verdict == "too few":  # which it is whatever the missing labels are
            if self.state.first + size > self.state.round:
                raise ProtocolError(
                    f"{self.state.round - self.state.first} people have arrived, and the "
                    f"exploration needs at least {size}.",
                    hint="go on deciding; everybody is accepted until then.",
                )
            arrivals, verdict = self._examined(size)
            size = size if verdict != "too few" else next_size(size)
        if verdict == "open":
            raise ProtocolError(
                f"it depends on the {arrivals.missing} missing labels whether the first {size} "
                "people suffice.",
                hint="tell some of these labels, or begin again with exploration_rounds.",
            )
        slack = self.explorer.slack(arrivals.sample(), arrivals.missing)
        if not self.explorer.suffices(slack.beta, on_counts=False):
            raise ProtocolError(
                f"without {arrivals.missing} of {size} labels the slack would be "
                f"{slack.beta:.3g}, above the promised gap.",
                hint="tell some of these labels.",
            )
        self.state.size = size
        self._end_exploration(arrivals)
        self.state.unlabelled = [
            block.first + rows.start + row
            for block, rows in self.state.book.rows(self.state.first, self.state.first + size)
            for row in np.flatnonzero(block.label[rows] == 0).tolist()
        ]
        played = self.state.round - self.epoch.first_round
        self.state.epochs[-1] = replace(self.epoch, rounds=played)
        self.state.news = True

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
        self.state.complete = self._first_missing(self.state.complete, may_come=True)
        return max(self.state.round // 2, self.state.complete)

    # step 2

    def fair_oracle(self, loss: EstimatedLoss) -> FairCSC:
        """FairCSC over the rows of `loss`, with the constraint of the exploration's sample.

        Parameters
        ----------
        loss : EstimatedLoss
            The objective.

        Returns
        -------
        FairCSC
            The fair oracle (section 3.1 of the paper).

        Raises
        ------
        InvalidInput
            If the exploration is not finished.
        """
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
        descent = coordinate_descent(
            loss,
            self.fair_oracle(loss),
            exploration_floor=floor,
            regret_scale=self.schedule.regret_scale,
            sides=self.sides,
        )
        policy, report = descent.weights.smoothed(floor, explored(self.sides)), descent.report
        took = report.iterations, report.oracle_calls, report.halted
        return Epoch(number, "bandit", round, length, policy, floor, *took)

    @property
    def _explored_rounds(self) -> int:
        return sum(epoch.rounds for epoch in self.state.epochs if epoch.phase == "explore")

    def _bandit_log(self) -> RoundLog | None:
        """The rounds that enter the loss: all of them one-sided; two-sided, those in which both
        decisions could occur.
        """
        later = {epoch.number for epoch in self.state.epochs if epoch.phase != "explore"}
        epochs, shown = None if self.sides == 1 else later, self.group_use == "decide"
        return self.state.history.of(epochs, with_group=shown)

    def _notes(self) -> list[str]:
        if self.slack is not None:
            lost = (
                f"{self.slack.missing} people of the sample have no label or were erased; "
                "the slack covers whatever is not known of them."
            )
            said = {lost: self.slack.missing > 0, FROZEN: not self.explorer.keeps(self.slack)}
            return [note for note, holds in said.items() if holds]
        missing = self._first_missing(self.state.first)
        if missing < self.state.first + self.state.size <= self.state.round:
            block, rows = next(self.state.book.rows(missing, missing + 1))
            never = block.erased[rows].any() or block.overruled[rows].any()
            at = "" if block.at is None else f" at time {block.at:g},"
            return [
                f"exploring: waiting for the label of round {missing}, which was decided{at} "
                f"{self.state.round - missing} rounds ago"
                f"{'; it was overruled or erased, so its label never comes' if never else ''}. The "
                "sample is the first people, each of them "
                f"with their label, so nobody after round {missing} counts before. "
                f"{self.state.book.missing_labels} labels may still come. "
                "To go on without those that never will: close_exploration()."
            ]
        arrived = self._arrivals(self.state.round) if self.state.round > self.state.first else None
        short = self.explorer.shortfall(arrived, on_counts=self.exploration_rounds is None)
        return [short] if short else []

    def _restore(self, state: Mapping[str, object]) -> None:
        """Files of rules 1 do not say in which order people came: who was exploring then takes a
        new sample from here on, and a sample that had been taken has no rounds that are known."""
        super()._restore(state)
        if "_first" not in state:
            self.state.first = self.state.complete = self.state.round
            self.state.size = self.state.size if self.sample is None else 0

    @property
    def promise(self) -> float:
        """The gap that no deployed policy exceeds, with probability 1 - failure_probability."""
        return self.slack.promise if self.slack is not None else 0.0
