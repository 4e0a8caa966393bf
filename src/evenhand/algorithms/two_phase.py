"""The paper's algorithm (section 3): explore, build the fair oracle, run the oracle-efficient
bandit over fair policies.

1. Accept all applicants until the labels of the first T_0 people have all come: these people, and
   nobody else, are the sample. It suffices when its slack beta, which is computed from the counts
   of (group, label) alone, is small enough: (limit - gamma) / 2 where no length is given, so that
   every gamma-fair policy is allowed; at most the limit where one is. Several preset sizes, numbers
   of people that are fixed before the first arrives, may be looked at, and no delta is paid for
   that: the counts alone say at which of them to stop, never the features, so given all pairs
   (group, label) the size is a constant (`exploration`).
2. From this sample build the FairCSC oracle over mixtures whose empirical gap is at most limit -
   beta. (The paper allows gamma + beta on the sample and so gets gamma + 2 beta on the population;
   here the limit is given, and takes the place of gamma + 2 beta.) The exact oracle by default, or
   the paper's saddle point (`method`).
3. Run ILOVETOCONBANDITS with that oracle: in each epoch, solve the feasibility program by
   coordinate descent. Epochs double by default; in the paper each round is one (`epochs`).
4. Decide by the smoothed mixture Q^mu; feed labels back as importance-weighted losses
   (Proposition 2.4).

By default five things are not the paper's: the sample's gap is kept below limit - beta, the oracle
is exact, epochs double, only accepts are importance-weighted (one-sided, which also uses the rounds
of the exploration), and mu_t is the practical schedule. Each has a setting that gives the paper's.

Fairness rests on one event: |gap on the sample - gap on D| <= beta for all of H at once. Every
policy that is deployed mixes members of the oracle's set and constants, so the event covers all
rounds. `step` does 1 until the sample suffices, and then once per epoch 4 (the losses so far), 2
(the oracle on their rows) and 3 (solve, deploy). The learner calls it before a decision when the
open epoch is full, or overdue with new labels; None lets the open epoch go on.
"""

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Literal

from evenhand import theory
from evenhand.algorithms.base import GroupNeeded, Note
from evenhand.algorithms.exploration import (
    PRINTED,
    ExplorationRule,
    ExplorationState,
    PrintedSlack,
    SlackRule,
    as_bound,
)
from evenhand.algorithms.own_parts import FAILED, watched
from evenhand.algorithms.settings import (
    require_choice,
    require_exploration,
    require_group_use,
    require_horizon,
    require_number,
    require_prices,
)
from evenhand.bandit import (
    PracticalSchedule,
    Schedule,
    TheorySchedule,
    coordinate_descent,
    explored_constants,
)
from evenhand.bandit.schedule import LARGEST_FLOOR
from evenhand.bounds import SlackBound
from evenhand.contracts import GroupUse, HypothesisClass, Rate, class_reading
from evenhand.errors import InvalidInput
from evenhand.estimation import (
    EstimatedLoss,
    RoundLog,
    TransformedLoss,
    one_sided,
    two_sided,
    with_more_rounds,
)
from evenhand.faircsc import FairCSC, bind_fair
from evenhand.faircsc.oracle import Method
from evenhand.fairness.rates import RateLike, as_rates, require_certifiable
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.named import as_class
from evenhand.policies import Mixture
from evenhand.rounds import Epoch, Rounds, learning, windows
from evenhand.schema import Schema
from evenhand.shares import require_delta, require_promise
from evenhand.words import IntArray, LabelledSample, Prices

Epochs = Literal["doubling", "every-round"]
"""When Q is solved anew: whenever the bandit's rounds have doubled, or in every round, as in the
paper."""

FIRST_EPOCH = 64
"""Rounds of the bandit's first epoch; every later one is as long as all before it: 64, 64, 128,
256, ... rounds."""


@dataclass(frozen=True)
class TwoPhaseState:
    """What the paper's algorithm knows beside the table of rounds.

    exploration: where the exploration stands, and what its sample allows. learned_to: the loss was
    last computed from rounds before this one. learned: how many of them were resolved then.
    trouble: why no new policy could be found.
    """

    exploration: ExplorationState
    learned_to: int = 0
    learned: int = 0
    trouble: str | None = None

    @property
    def exploring(self) -> bool:
        """Whether there is no sample yet."""
        return self.exploration.slack is None


@dataclass(frozen=True, eq=False)
class TwoPhase:
    """The settings of the paper's algorithm, and its steps; see `evenhand.TwoPhaseLearner`."""

    hypotheses: HypothesisClass
    rate: RateLike
    limit: float | None
    delta: float
    horizon: int
    _: KW_ONLY
    comparator_gap: float | None = None
    exploration_rounds: int | None = None
    tradeoff_exponent: float | None = None
    estimator: Literal["one-sided", "two-sided"] = "one-sided"
    schedule: Literal["practical", "theory"] | Schedule = "practical"
    bound: str | SlackBound | None = None
    prices: Prices = field(default_factory=Prices)
    group_use: GroupUse = "certify_only"
    slack_rule: SlackRule = "corrected"
    method: Method = "column-generation"
    oracle_tolerance: float | None = None
    epochs: Epochs = "doubling"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hypotheses", as_class(self.hypotheses))
        require_certifiable(as_rates(self.rate))
        require_prices(self.prices)
        require_group_use(self.group_use)
        require_delta(self.delta)
        require_horizon(self.horizon, 2)
        require_exploration(self.comparator_gap, self.exploration_rounds, self.tradeoff_exponent)
        if self.limit is not None:
            require_promise(self.limit)
        require_choice("estimator", self.estimator, ("one-sided", "two-sided"))
        require_choice("slack_rule", self.slack_rule, ("corrected", "as printed"))
        require_choice("method", self.method, ("column-generation", "saddle-point"))
        require_choice("epochs", self.epochs, ("doubling", "every-round"))
        if self.oracle_tolerance is not None:
            self._require_tolerance()
        # these properties raise an error if the settings make no sense together
        self.comparator  # noqa: B018
        self.floors  # noqa: B018
        self.exploration_rule  # noqa: B018

    def reading(self, schema: Schema) -> "TwoPhase":
        """The same for people with these columns."""
        return replace(self, hypotheses=class_reading(self.hypotheses, schema))

    def _require_tolerance(self) -> None:
        """nu of the saddle point; the exact oracle has none."""
        requirement = "nu is a number above 0, on costs that sum to one"
        nu = self.oracle_tolerance
        require_number("oracle_tolerance", nu, lambda nu: nu > 0, requirement)
        if self.method != "saddle-point":
            raise InvalidInput(
                f"oracle_tolerance is {nu} and method {self.method!r}; only the saddle point is "
                "approximate.",
                hint='use method="saddle-point", or leave oracle_tolerance out.',
                argument="oracle_tolerance",
            )
        if self.limit is not None and nu is not None and 2 * nu >= self.limit:
            raise InvalidInput(
                f"oracle_tolerance is {nu} and limit {self.limit}; the constraint is tightened by "
                "2 nu, so nu must be below half of the limit.",
                hint="leave it out: 1 / horizon is the paper's.",
                argument="oracle_tolerance",
            )

    # what follows from the settings

    needs_group: GroupNeeded = field(default="exploring", init=False)
    maturity: float | None = field(default=None, init=False)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates whose gaps are kept below the limit."""
        return as_rates(self.rate)

    @cached_property
    def loss(self) -> TransformedLoss:
        """The transformed loss of Proposition 2.4, halved so that it lies in [0, 1]."""
        return TransformedLoss.of_prices(self.prices)

    @property
    def sides(self) -> int:
        """K: 1 if only accepts are explored and importance-weighted, 2 for both (the paper)."""
        return {"one-sided": 1, "two-sided": 2}[self.estimator]

    @property
    def comparator(self) -> float:
        """gamma: the gap of the policies with which the learner competes."""
        half = 0.0 if self.limit is None else self.limit / 2
        gamma = half if self.comparator_gap is None else self.comparator_gap
        if self.limit is not None and gamma >= self.limit:
            raise InvalidInput(
                f"comparator_gap is {gamma} and limit {self.limit}; 0 <= comparator_gap < limit.",
                hint="the learner competes with fairer policies than it guarantees to be; half of "
                "the limit is the default.",
                argument="comparator_gap",
            )
        return gamma

    @cached_property
    def floors(self) -> Schedule:
        """The schedule of the exploration floor mu_t, by its name or as it is."""
        chosen = self.schedule
        if isinstance(chosen, str) and chosen == "practical":
            return PracticalSchedule()
        if isinstance(chosen, str) and chosen == "theory":
            return TheorySchedule(int(self.horizon), self.delta, self.hypotheses.log_size)
        if isinstance(chosen, str) or not hasattr(chosen, "exploration_floor"):
            raise InvalidInput(
                f'schedule is {chosen!r}; it is "practical", "theory", or a Schedule.',
                argument="schedule",
            )
        if not 0 < chosen.exploration_floor(1) <= LARGEST_FLOOR:
            raise InvalidInput(
                f"the schedule begins with an exploration floor of {chosen.exploration_floor(1)}; "
                "it lies in (0, 1/2], because each of the two decisions takes that much of the "
                "probability.",
                argument="schedule",
            )
        return chosen

    @property
    def exponent(self) -> float:
        """alpha of the trade-off; 1/4 in theorem 3.1."""
        return 0.25 if self.tradeoff_exponent is None else self.tradeoff_exponent

    @property
    def is_printed(self) -> bool:
        """Whether beta and T0 are the paper's, of which no constant is claimed."""
        return isinstance(self.bound, str) and self.bound == PRINTED

    @property
    def slack_bound(self) -> SlackBound:
        """The bound of the sample's slack, by its name or as it is."""
        if not self.is_printed:
            return as_bound(self.bound, self.hypotheses)
        if self.slack_rule != "as printed":
            raise InvalidInput(
                f"bound is {PRINTED!r} and slack_rule {self.slack_rule!r}; the paper's beta is an "
                "order without a constant, so no limit can be guaranteed with it.",
                hint='use slack_rule="as printed", or another bound.',
                argument="bound",
            )
        return PrintedSlack(int(self.horizon), self.exponent)

    @cached_property
    def exploration_rule(self) -> ExplorationRule:
        """The rule that ends the exploration: a given length, T^(2 alpha), or the counts."""
        rounds = None if self.exploration_rounds is None else int(self.exploration_rounds)
        if rounds is None and self.is_printed:
            rounds = theory.paper_exploration_rounds(
                int(self.horizon), self.hypotheses.log_size, self.delta, self.exponent
            )
        if rounds is None and self.tradeoff_exponent is not None:
            rounds = theory.tradeoff_rounds(
                int(self.horizon), self.tradeoff_exponent, self.hypotheses.log_size, self.delta
            )
        if self.limit is None and rounds is None:
            raise InvalidInput(
                "limit is None, and neither exploration_rounds nor tradeoff_exponent is given.",
                hint="name the gap that may never be exceeded, or how long to explore.",
                argument="limit",
            )
        if rounds is not None and rounds >= self.horizon:
            raise InvalidInput(
                f"the exploration of {rounds} rounds does not fit into a horizon of "
                f"{int(self.horizon)}.",
                hint="explore less, or raise the horizon.",
                argument="exploration_rounds",
            )
        return ExplorationRule(
            bound=self.slack_bound,
            hypotheses=self.hypotheses,
            rates=self.rates,
            limit=self.limit,
            comparator=self.comparator,
            delta=self.delta,
            slack_rule=self.slack_rule,
            rounds=rounds,
        )

    # the algorithm

    def init(self, seed: int) -> tuple[TwoPhaseState, Epoch]:
        """Nobody has been seen: accept all applicants up to the first preset size."""
        state = TwoPhaseState(self.exploration_rule.start())
        return state, self.accept_all(state, number=1, round=0)

    def step(
        self, state: TwoPhaseState, rounds: Rounds, now: float | None
    ) -> tuple[TwoPhaseState, Epoch | None]:
        """When the open epoch is full, or overdue with new labels: explore, or open the bandit's
        next epoch; None lets the open one go on.
        """
        # 1. accept all applicants until the labels of T_0 people have come
        if state.exploring:
            state = self.explore(state, rounds)
            if state.exploring:
                return state, self.still_exploring(state, rounds)
        elif not has_news(state, rounds):
            return state, None
        try:
            return self.next_policy(replace(learn(state, rounds), trouble=None), rounds)
        except FAILED as failure:  # the policy in force stays; with the next labels once more
            return replace(state, trouble=str(failure)), None

    def next_policy(self, state: TwoPhaseState, rounds: Rounds) -> tuple[TwoPhaseState, Epoch]:
        """From all settled rounds: what is deployed next."""
        if self.is_frozen(state):
            return state, self.frozen_epoch(rounds)

        # 4. feedback of the rounds so far: importance-weighted losses
        loss = self.feedback(state, rounds)
        if loss is None:
            return state, self.coin_epoch(rounds)
        # 2. FairCSC over mixtures with empirical gap <= limit - beta
        oracle = self.fair_oracle(state, rounds, loss)
        # 3. Algorithm 1, and Q^mu: a mixture of fair policies and constants
        return state, self.bandit_epoch(rounds, loss, oracle)

    # 1. exploring

    def explore(self, state: TwoPhaseState, rounds: Rounds) -> TwoPhaseState:
        """Close the sample, if the labels that have come complete one that suffices."""
        return replace(state, exploration=self.exploration_rule.explore(state.exploration, rounds))

    def still_exploring(self, state: TwoPhaseState, rounds: Rounds) -> Epoch | None:
        """Go on to the next preset size; None while labels of this one are missing."""
        if state.exploration.size <= rounds.decided:
            return None
        return self.accept_all(state, rounds.epoch.number + 1, rounds.decided)

    def accept_all(self, state: TwoPhaseState, number: int, round: int) -> Epoch:
        """Accept all applicants up to the next preset size."""
        stop = self.exploration_rule.next_stop(state.exploration, round)
        policy = Mixture((ACCEPT_ALL,), (1.0,), self.group_use)
        return Epoch(number, "explore", round, self.cut_off(stop - round, round), policy)

    def close_exploration(self, state: TwoPhaseState, rounds: Rounds) -> TwoPhaseState:
        """End the wait for labels that will not come."""
        return replace(state, exploration=self.exploration_rule.close(state.exploration, rounds))

    # 2. the fair oracle

    def sample(self, state: TwoPhaseState, rounds: Rounds) -> LabelledSample:
        """The sample, without people who have been lost since."""
        return self.exploration_rule.sample(state.exploration, rounds)

    def fair_oracle(self, state: TwoPhaseState, rounds: Rounds, loss: EstimatedLoss) -> FairCSC:
        """FairCSC over the rows of `loss`, with the constraint of the exploration's sample
        (section 3.1 of the paper).
        """
        slack = state.exploration.slack
        if slack is None:
            raise InvalidInput(
                "the exploration is not finished; there is no fair oracle yet.",
                hint="look at report.notes.",
            )
        _, bound = rounds.cache.of_prefix("fair oracle")
        if bound is not None and bound[0] is loss.features and bound[1] == slack:
            oracle: FairCSC = bound[2]
            return oracle
        exact = self.method == "column-generation" or slack.limit == 0  # no room to tighten
        oracle = bind_fair(
            watched(self.hypotheses),
            loss.features,
            loss.group,
            self.rates,
            self.sample(state, rounds),
            min(slack.limit, 1.0),  # no gap exceeds 1, however wide the slack is
            group_use=self.group_use,
            method="column-generation" if exact else "saddle-point",
            tolerance=None if exact else self.nu(slack.limit),
        )
        if self.epochs == "every-round":  # the next round mostly has the same rows
            rounds.cache.keep_prefix("fair oracle", rounds.decided, (loss.features, slack, oracle))
        return oracle

    def nu(self, limit: float) -> float:
        """The tolerance of the saddle point: 1/T as in the paper, unless it is given; at most a
        quarter of the limit, because the constraint is tightened by 2 nu.
        """
        given = 1 / self.horizon if self.oracle_tolerance is None else self.oracle_tolerance
        return min(given, limit / 4)

    # 3. the bandit

    def bandit_epoch(self, rounds: Rounds, loss: EstimatedLoss, oracle: FairCSC) -> Epoch:
        """Q by coordinate descent (Algorithm 1), smoothed by mu_t."""
        floor = self.floors.exploration_floor(max(1, int(loss.rounds)))
        descent = coordinate_descent(
            loss,
            oracle,
            exploration_floor=floor,
            regret_scale=self.floors.regret_scale,
            sides=self.sides,
        )
        return Epoch(
            rounds.epoch.number + 1,
            "bandit",
            rounds.decided,
            self._length(rounds),
            descent.weights.smoothed(floor, explored_constants(self.sides)),
            exploration_floor=floor,
            iterations=descent.report.iterations,
            oracle_calls=descent.report.oracle_calls,
            halted=descent.report.halted and not descent.report.unfinished,
        )

    def coin_epoch(self, rounds: Rounds) -> Epoch:
        """Two-sided, while nobody could be rejected (a reject has no 1/p): a fair coin."""
        coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5), self.group_use)
        return Epoch(
            rounds.epoch.number + 1,
            "bandit",
            rounds.decided,
            self._length(rounds),
            coin,
            exploration_floor=0.5,
        )

    def _length(self, rounds: Rounds) -> int:
        """One round; or as many as the bandit has had so far, so that a run has O(log T) epochs."""
        if self.epochs == "every-round":
            return 1
        played = rounds.decided - explored_rounds(rounds)
        return self.cut_off(max(FIRST_EPOCH, played), rounds.decided)

    def cut_off(self, length: int, round: int) -> int:
        """An epoch ends with the horizon; beyond it epochs have the usual length."""
        return min(length, self.horizon - round) if round < self.horizon else length

    # 4. feedback

    def feedback(self, state: TwoPhaseState, rounds: Rounds) -> EstimatedLoss | None:
        """The importance-weighted loss of every policy; None if there is nothing to learn from."""
        if self.epochs == "every-round":
            return self.continued_loss(state, rounds)
        log = self.bandit_log(state, rounds)
        return None if log is None else self.estimated_loss(log)

    def continued_loss(self, state: TwoPhaseState, rounds: Rounds) -> EstimatedLoss | None:
        """The same, continued from the last round: what is new is added to what was summed."""
        with_group = self.group_use == "decide"
        known: tuple[int, EstimatedLoss | None] = rounds.cache.of_prefix("loss")
        stop, loss = known
        if self.sides == 2 and stop == 0:  # while exploring, rejecting had probability 0
            stop = explored_rounds(rounds)
        # whoever lacks a label may still get it, so the sum is kept up to there
        complete = min(state.learned_to, windows.first_missing(rounds), rounds.returned)
        complete = max(stop, complete)
        for last in (complete, state.learned_to):
            log = learning.log_between(rounds, stop, last, with_group=with_group)
            if log is not None:
                loss = with_more_rounds(loss, log, self.loss, self.sides)
            if last == complete:
                rounds.cache.keep_prefix("loss", complete, loss)
            stop = max(stop, last)
        return loss

    def bandit_log(self, state: TwoPhaseState, rounds: Rounds) -> RoundLog | None:
        """The rounds that enter the loss: all of them one-sided; two-sided, those in which both
        decisions could occur (while exploring, rejecting had probability 0).
        """
        epochs = None
        if self.sides == 2:
            epochs = {epoch.number for epoch in rounds.epochs if epoch.phase != "explore"}
        return learning.log(
            rounds, stop=state.learned_to, epochs=epochs, with_group=self.group_use == "decide"
        )

    def estimated_loss(self, log: RoundLog) -> EstimatedLoss:
        """The importance-weighted loss of every policy."""
        estimate = one_sided if self.sides == 1 else two_sided
        return estimate(log, self.loss)

    # people who are lost

    def forget(self, state: TwoPhaseState, rounds: Rounds, lost: IntArray) -> TwoPhaseState:
        """Whoever leaves the sample widens the slack."""
        return replace(
            state, exploration=self.exploration_rule.forget(state.exploration, rounds, lost)
        )

    def is_frozen(self, state: TwoPhaseState) -> bool:
        """Whether so many people of the sample are lost that of all new policies only constants,
        which have no gap, are known to keep the limit.
        """
        slack = state.exploration.slack
        return slack is not None and not self.exploration_rule.keeps(slack)

    def frozen_epoch(self, rounds: Rounds) -> Epoch:
        """The deployed policy was chosen while the slack was small enough, so on the same event it
        keeps the limit for good; a new choice could not.
        """
        length = self.cut_off(max(FIRST_EPOCH, rounds.decided), rounds.decided)
        return replace(
            rounds.epoch,
            phase="frozen",
            oracle_calls=0,
            iterations=0,
            number=rounds.epoch.number + 1,
            first_round=rounds.decided,
            rounds=length,
        )

    def notes(self, state: TwoPhaseState, rounds: Rounds) -> tuple[Note, ...]:
        """What is claimed where the paper is followed to the letter, what the exploration waits
        for, whom the guarantee covers, who is outside, and where a solver ran out of calls.
        """
        return (
            *self._about_claim(state),
            *_about_trouble(state),
            *self.exploration_rule.notes(state.exploration, rounds),
            *_about_solver(rounds),
        )

    def _about_claim(self, state: TwoPhaseState) -> list[Note]:
        if self.slack_rule == "corrected":
            return []
        slack = state.exploration.slack
        beta = "" if slack is None else f", beta = {slack.beta:.3g}"
        text = (
            "as printed in the paper: gamma + O(beta), no constant claimed (gamma = "
            f"{self.comparator:g}{beta}). There is no certificate."
        )
        notes = [Note("no certificate", text)]
        if self.is_printed:
            printed = {
                "the two-sided estimator": self.estimator == "two-sided",
                "the paper's constants": self.schedule == "theory",
                "the saddle-point oracle": self.method == "saddle-point",
                "a new Q in every round": self.epochs == "every-round",
                "group classifiers in H": self.group_use == "decide",
            }
            others = [what for what, kept in printed.items() if not kept]
            if others:
                text = f"not as printed in the paper; without: {', '.join(others)}."
                notes.append(Note("not as printed", text))
            if self.delta > self.horizon**-0.5:
                text = (
                    f"delta is {self.delta:g}, above 1/sqrt(T) = {self.horizon**-0.5:.2g}; the "
                    "regret of theorem 3.1 then has a term delta T above sqrt(T)."
                )
                notes.append(Note("delta", text))
        return notes


def explored_rounds(rounds: Rounds) -> int:
    """Rounds of the exploration."""
    return sum(epoch.rounds for epoch in _ended(rounds) if epoch.phase == "explore")


def _ended(rounds: Rounds) -> list[Epoch]:
    """All epochs; the last one ends now."""
    last = rounds.epoch
    return [*rounds.epochs[:-1], replace(last, rounds=rounds.decided - last.first_round)]


def _about_trouble(state: TwoPhaseState) -> list[Note]:
    if state.trouble is None:
        return []
    return [Note("no rules", f"no new policy was found: {state.trouble}. The last one stays.")]


def _about_solver(rounds: Rounds) -> list[Note]:
    """Where Algorithm 1 or the saddle point ran out of calls."""
    stopped = [epoch for epoch in rounds.epochs if not epoch.halted]
    if not stopped:
        return []
    text = (
        f"in {len(stopped)} of {len(rounds.epochs)} epochs, the last of them from round "
        f"{stopped[-1].first_round} on, the solver has not converged: its calls ran out. The limit "
        "does not depend on that; the regret may be higher than the analysis says."
    )
    return [Note("not converged", text)]


def has_news(state: TwoPhaseState, rounds: Rounds) -> bool:
    """Whether more rounds are settled than at the last step, and some of them are resolved."""
    settled = settled_rounds(rounds)
    return (
        settled != state.learned_to and learning.resolved_before(rounds, settled) != state.learned
    )


def learn(state: TwoPhaseState, rounds: Rounds) -> TwoPhaseState:
    """All settled rounds enter the loss."""
    settled = settled_rounds(rounds)
    return replace(state, learned_to=settled, learned=learning.resolved_before(rounds, settled))


def settled_rounds(rounds: Rounds) -> int:
    """How many rounds, from the first on, enter the loss: up to the first missing label, and half
    of all rounds in any case.

    Rejected people are known at once and accepted ones when their label comes, good outcomes
    perhaps later than bad ones: using whatever has come would bias the loss towards quick outcomes.
    Labels that never come delay a round until as many have been decided after it as before it. All
    of this concerns regret alone.
    """
    return max(rounds.decided // 2, windows.first_missing(rounds, may_come=True))
