"""What the paper's algorithm is compared with.

Fixed                no learning: accept all applicants, or toss a fair coin
AfterExploration     explore as the paper does, and then
    commit           section 2, "baseline approaches": deploy the empirically best fair policy for
                     good
    exp4             section 2, the paper's inefficient baseline: EXP4 over a net of fair pairs
                     (`evenhand.algorithms.exponential_weights`)
Paired               section 1, "an initial approach": exploration and EXP4 in turns
Greedy               accept all applicants for a few rounds, then re-solve whenever the rounds have
                     doubled, by
    unconstrained    the same bandit over all policies, fair or not
    fair_on_gathered the best policy that is fair on the labels that were gathered: the feedback
                     loop of section 1
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenhand.algorithms.arrivals import Arrivals
from evenhand.algorithms.base import GroupNeeded, Note
from evenhand.algorithms.exploration import labelled_sample, sample_of
from evenhand.algorithms.exponential_weights import (
    GROWTH,
    Exploit,
    exp4_epoch,
    renewal_length,
)
from evenhand.algorithms.settings import (
    require_group_use,
    require_prices,
    require_whole,
)
from evenhand.algorithms.two_phase import (
    FIRST_EPOCH,
    TwoPhase,
    TwoPhaseState,
    explored_rounds,
    has_news,
    learn,
)
from evenhand.bandit import PracticalSchedule, coordinate_descent, explored_constants
from evenhand.bandit.coordinate_descent import OracleAnswer
from evenhand.contracts import (
    GroupUse,
    HypothesisClass,
    Rate,
    RowOracle,
    class_reading,
)
from evenhand.errors import CannotEstimateRate
from evenhand.estimation import EstimatedLoss, RoundLog, TransformedLoss, one_sided
from evenhand.faircsc import FairCSC, bind_fair
from evenhand.fairness.delta_ledger import inverse_square_share
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.hypotheses.named import as_class
from evenhand.policies import Mixture
from evenhand.rounds import FOREVER, Epoch, Rounds, learning, windows
from evenhand.schema import Schema
from evenhand.shares import require_promise
from evenhand.words import FloatArray, IntArray, Prices


@dataclass(frozen=True, eq=False)
class Fixed:
    """One policy for ever. It has no state."""

    rates: tuple[Rate, ...]
    prices: Prices
    policy: Mixture
    hypotheses: HypothesisClass | None = None
    group_use: GroupUse = "certify_only"
    needs_group: GroupNeeded = "never"
    maturity: float | None = None

    @cached_property
    def loss(self) -> TransformedLoss:
        """What errors cost."""
        return TransformedLoss.of_prices(self.prices)

    def reading(self, schema: Schema) -> "Fixed":
        """It looks at no column."""
        return self

    def init(self, seed: int) -> tuple[None, Epoch]:
        """The one epoch."""
        return None, Epoch(1, "fixed", 0, FOREVER, self.policy)

    def step(self, state: None, rounds: Rounds, now: float | None) -> tuple[None, None]:
        """Nothing ever changes."""
        return None, None


# after an exploration


@dataclass(frozen=True, eq=False)
class AfterExploration:
    """Explore as `paper` does; then `exploit` plans the epochs."""

    paper: TwoPhase
    exploit: Exploit
    needs_group: GroupNeeded = "exploring"
    maturity: float | None = None

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates whose gaps are kept below the limit."""
        return self.paper.rates

    @property
    def hypotheses(self) -> HypothesisClass:
        """The rules that may be mixed."""
        return self.paper.hypotheses

    @property
    def group_use(self) -> GroupUse:
        """Whether the group may influence a decision."""
        return self.paper.group_use

    @property
    def loss(self) -> TransformedLoss:
        """What errors cost."""
        return self.paper.loss

    def reading(self, schema: Schema) -> "AfterExploration":
        """The same for people with these columns."""
        return replace(self, paper=self.paper.reading(schema))

    def init(self, seed: int) -> tuple[TwoPhaseState, Epoch]:
        """Accept all applicants up to the first preset size."""
        return self.paper.init(seed)

    def step(
        self, state: TwoPhaseState, rounds: Rounds, now: float | None
    ) -> tuple[TwoPhaseState, Epoch | None]:
        """Explore; once the sample is there, exploit."""
        if state.exploring:
            state = self.paper.explore(state, rounds)
            if state.exploring:
                return state, self.paper.still_exploring(state, rounds)
        elif not has_news(state, rounds):
            return state, None
        state = learn(state, rounds)
        if self.paper.is_frozen(state):
            return state, self.paper.frozen_epoch(rounds)
        return state, self.exploit(self.paper, state, rounds)

    def forget(self, state: TwoPhaseState, rounds: Rounds, lost: IntArray) -> TwoPhaseState:
        """Whoever leaves the sample widens the slack."""
        return self.paper.forget(state, rounds, lost)

    def notes(self, state: TwoPhaseState, rounds: Rounds) -> tuple[Note, ...]:
        """What the exploration waits for, whom the guarantee covers, and who is outside."""
        return self.paper.notes(state, rounds)


def commit(paper: TwoPhase, state: TwoPhaseState, rounds: Rounds) -> Epoch:
    """The empirically best fair policy, for good.

    The loss is that of the sample, too: a policy that is chosen once must not depend on which
    labels were quick. All of the sample was accepted, so nothing is weighted, and the one-sided
    and the two-sided estimate rank policies alike.
    """
    log = learning.log(rounds, stop=state.exploration.size, with_group=paper.group_use == "decide")
    assert log is not None  # the exploration is over, so it has rows
    loss = one_sided(log, paper.loss)
    best = paper.fair_oracle(state, rounds, loss).cheapest(loss.acceptance_cost)
    return Epoch(
        rounds.epoch.number + 1,
        "commit",
        rounds.decided,
        FOREVER,
        best.policy,
        oracle_calls=best.oracle_calls,
    )


# exploring and exploiting in turns


@dataclass(frozen=True, eq=False)
class Paired:
    """Section 1's "initial approach": pair each exploration round with an exploitation round.

    Rounds are paired in blocks: n rounds that accept all applicants, then n rounds of EXP4 over the
    members of the net whose gap, on all exploration rounds so far, is within limit - beta. n is a
    quarter of the exploration rounds so far, at least 64. Once there have been
    `paper.exploration_rule.rounds` of them, EXP4 goes on alone.

    beta of the i-th block holds with probability at least 1 - 6 delta / (pi^2 i^2), so all of them
    do with probability 1 - delta: other than in the paper's algorithm, the sample changes.
    """

    paper: TwoPhase
    grid: int | None
    needs_group: GroupNeeded = "exploring"
    maturity: float | None = None

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates whose gaps are kept below the limit."""
        return self.paper.rates

    @property
    def hypotheses(self) -> HypothesisClass:
        """The rules that may be mixed."""
        return self.paper.hypotheses

    @property
    def group_use(self) -> GroupUse:
        """Whether the group may influence a decision."""
        return self.paper.group_use

    @property
    def loss(self) -> TransformedLoss:
        """What errors cost."""
        return self.paper.loss

    def reading(self, schema: Schema) -> "Paired":
        """The same for people with these columns."""
        return replace(self, paper=self.paper.reading(schema))

    def init(self, seed: int) -> tuple[TwoPhaseState, Epoch]:
        """The first block accepts all applicants."""
        return TwoPhaseState(self.paper.exploration_rule.start()), self._explore(1, 0, 0)

    def step(
        self, state: TwoPhaseState, rounds: Rounds, now: float | None
    ) -> tuple[TwoPhaseState, Epoch | None]:
        """An exploration block is followed by an exploitation block, and that by the next pair."""
        if not has_news(state, rounds):
            return state, None
        state = learn(state, rounds)
        so_far = explored_rounds(rounds)
        explore = self._explore(rounds.epoch.number + 1, rounds.decided, so_far)
        exploited = rounds.epoch.phase != "explore"
        if exploited and so_far < (self.paper.exploration_rule.rounds or 0):
            return state, explore

        # which members of the net survive on the exploration rounds so far
        looks = 1 + sum(epoch.phase != "explore" for epoch in rounds.epochs)
        rule = replace(
            self.paper.exploration_rule, delta=inverse_square_share(self.paper.delta, looks)
        )
        people = _explored_people(rounds)
        if len(people.groups) < 2:
            return state, explore
        sample = labelled_sample(people)
        slack = rule.slack(sample)
        if not np.isfinite(slack.beta) or not rule.keeps(slack):
            # no member is known to keep the limit but the constants: explore on
            return state, explore
        groups = tuple(sample.groups)
        state = replace(state, exploration=replace(state.exploration, slack=slack, groups=groups))

        def bind(loss: EstimatedLoss) -> FairCSC:
            return bind_fair(
                self.hypotheses,
                loss.features,
                loss.group,
                self.rates,
                sample,
                slack.limit,
                group_use=self.group_use,
            )

        length = renewal_length(self.paper, rounds, GROWTH)
        if not exploited:
            length = rounds.decided - rounds.epoch.first_round
        log = self.paper.bandit_log(state, rounds)
        return state, exp4_epoch(self.paper, rounds, log, bind, self.grid, length)

    def _explore(self, number: int, round: int, so_far: int) -> Epoch:
        length = self.paper.cut_off(max(FIRST_EPOCH, so_far // 4), round)
        policy = Mixture((ACCEPT_ALL,), (1.0,), self.group_use)
        return Epoch(number, "explore", round, length, policy)


def _explored_people(rounds: Rounds) -> Arrivals:
    """The people of all exploration blocks up to the first label that may still come, with their
    labels.
    """
    turns = [epoch.number for epoch in rounds.epochs if epoch.phase == "explore"]
    rows = np.isin(rounds["epoch"], turns) & (rounds["label"] != 0) & ~rounds.label_discarded
    rows &= rounds["round"] < windows.first_missing(rounds, may_come=True)
    features = [rounds.features_of(rows)]
    groups = [rounds.groups_of(rows).astype(object)]
    labels = [rounds["label"][rows].astype(np.int64)]
    counts = [np.ones(int(rows.sum()))]
    for chunk in rounds.counted:
        for label, column in ((1, chunk.positive), (-1, chunk.negative)):
            seen = (column > 0) & (chunk.epoch in turns)
            features.append(chunk.features[seen])
            groups.append(chunk.group[seen].astype(object))
            labels.append(np.full(int(seen.sum()), label))
            counts.append(column[seen])
    # where rounds were decided in aggregate alone, the empty table has no columns
    known = [part for part in features if len(part)] or features
    return Arrivals(
        np.concatenate(known),
        np.concatenate(groups),
        np.concatenate(labels),
        np.concatenate(counts),
    )


# re-solving whenever the rounds have doubled

GreedyPlan = Callable[["Greedy", Rounds], Epoch]


@dataclass(frozen=True, eq=False)
class Greedy:
    """Accept all applicants for a few rounds, then let `plan` choose a policy whenever the rounds
    have doubled. The state is how many rounds have been learned from.
    """

    hypotheses: HypothesisClass
    rate: RateLike
    limit: float
    first_rounds: int
    prices: Prices
    group_use: GroupUse
    plan: GreedyPlan
    needs_group: GroupNeeded
    maturity: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "hypotheses", as_class(self.hypotheses))
        as_rates(self.rate)
        require_prices(self.prices)
        require_group_use(self.group_use)
        require_promise(self.limit)
        requirement = "at least one person must be accepted to learn"
        require_whole("first_rounds", self.first_rounds, 1, requirement)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates whose gaps it is judged by."""
        return as_rates(self.rate)

    @cached_property
    def loss(self) -> TransformedLoss:
        """What errors cost."""
        return TransformedLoss.of_prices(self.prices)

    def reading(self, schema: Schema) -> "Greedy":
        """The same for people with these columns."""
        return replace(self, hypotheses=class_reading(self.hypotheses, schema))

    def init(self, seed: int) -> tuple[int, Epoch]:
        """Accept all applicants at first."""
        return 0, self.accept_all(1, 0)

    def step(self, state: int, rounds: Rounds, now: float | None) -> tuple[int, Epoch | None]:
        """Plan anew, from all that is resolved."""
        learned = learning.resolved_before(rounds, rounds.decided)
        if learned == state:
            return state, None
        return learned, self.plan(self, rounds)

    def accept_all(self, number: int, round: int) -> Epoch:
        """Accept all applicants until the rounds have doubled."""
        policy = Mixture((ACCEPT_ALL,), (1.0,), self.group_use)
        return Epoch(number, "explore", round, max(int(self.first_rounds), round), policy)


def unconstrained(settings: Greedy, rounds: Rounds) -> Epoch:
    """ILOVETOCONBANDITS (one-sided) over all mixtures, fair or not."""
    number = rounds.epoch.number + 1
    log = learning.log(rounds, with_group=settings.group_use == "decide")
    if log is None:
        return settings.accept_all(number, rounds.decided)
    loss = one_sided(log, settings.loss)
    schedule = PracticalSchedule()
    floor = schedule.exploration_floor(max(1, int(loss.rounds)))
    bound = settings.hypotheses.bind(loss.features, loss.group)
    descent = coordinate_descent(
        loss,
        AnyPolicy(bound, loss, settings.group_use),
        exploration_floor=floor,
        regret_scale=schedule.regret_scale,
        sides=1,
    )
    return Epoch(
        number,
        "bandit",
        rounds.decided,
        rounds.decided,
        descent.weights.smoothed(floor, explored_constants(1)),
        exploration_floor=floor,
        iterations=descent.report.iterations,
        oracle_calls=descent.report.oracle_calls,
    )


@dataclass(frozen=True, eq=False)
class AnyPolicy:
    """A "fair" oracle without a constraint: the class, the constants, and, where the group may
    decide, the group classifiers.
    """

    oracle: RowOracle
    loss: EstimatedLoss
    group_use: GroupUse

    def cheapest(self, acceptance_cost: FloatArray) -> OracleAnswer:
        """The cheapest hypothesis of all."""
        features = self.loss.features
        group = self.loss.group
        groups = () if group is None else dict.fromkeys(group.tolist())
        permanent = (ACCEPT_ALL, REJECT_ALL, *map(GroupClassifier, groups))
        answers = []
        for rule in (self.oracle.best(acceptance_cost), *permanent):
            policy = Mixture((rule,), (1.0,), self.group_use)
            answers.append(OracleAnswer(policy, policy.acceptance_of_checked(features, group)))
        return min(answers, key=lambda answer: float(acceptance_cost @ answer.acceptance))


def fair_on_gathered(settings: Greedy, rounds: Rounds) -> Epoch:
    """The best policy whose gap *on the labels gathered so far* is within the limit, without
    weighting or exploration.
    """
    number = rounds.epoch.number + 1
    log = learning.log(rounds)
    if log is None:
        return settings.accept_all(number, rounds.decided)
    gathered = learning.log(rounds, with_group=settings.group_use == "decide") or log
    # the accepted rows as ordinary tools see them: a plain labelled table
    seen = gathered.where(gathered.accepted > 0)
    ones = np.ones(len(seen))
    table = RoundLog(
        seen.features, seen.group, ones, 0 * ones, seen.positive, seen.negative, seen.prices
    )
    shown = one_sided(table.aggregated(), settings.loss)
    try:
        fair = bind_fair(
            settings.hypotheses,
            shown.features,
            shown.group,
            settings.rates,
            sample_of(log),
            settings.limit,
            group_use=settings.group_use,
        )
    except CannotEstimateRate:
        return settings.accept_all(number, rounds.decided)
    best = fair.cheapest(shown.acceptance_cost)
    return Epoch(
        number,
        "greedy",
        rounds.decided,
        rounds.decided,
        best.policy,
        oracle_calls=best.oracle_calls,
    )
