"""What the paper's algorithm is compared with, each a learner in its own right.

AcceptAll, Uniform    no learning
ExploreThenCommit     section 2, "baseline approaches": explore, then deploy the empirically best
                      fair policy for good
Exp4                  section 2, the paper's inefficient baseline: EXP4 over a net of fair pairs
Unconstrained         the same bandit over all policies, fair or not
FairOnGathered        greedy, with the constraint measured on the labels that were gathered: the
                      feedback loop of section 1
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from math import ceil
from typing import Any

import numpy as np

from evenhand.bandit import PracticalSchedule, coordinate_descent, explored
from evenhand.bandit.coordinate_descent import OracleAnswer
from evenhand.contracts import Enumeration, GroupUse, HypothesisClass, RowOracle
from evenhand.errors import CannotEstimateRate, InvalidInput
from evenhand.estimation import EstimatedLoss, RoundLog, one_sided
from evenhand.faircsc import bind_fair
from evenhand.fairness.rates import FalsePositiveRate, GapConstraints, Rate, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.hypotheses.estimator import as_class
from evenhand.learners.epochs import Epoch, EpochLearner
from evenhand.learners.exploration import sample_of
from evenhand.learners.settings import made_with, require_gap, require_horizon, require_whole
from evenhand.learners.two_phase import FIRST_EPOCH, TwoPhaseLearner
from evenhand.policies import Mixture
from evenhand.words import FloatArray, IntArray, Prices

FALSE_POSITIVES = FalsePositiveRate()
FOREVER = 2**62
"""The length of an epoch that never ends."""


class _Fixed(EpochLearner):
    """One policy for ever."""

    needs_group = False
    _fixed = Mixture((ACCEPT_ALL,), (1.0,))

    def __init__(
        self,
        *,
        rate: Rate | Sequence[Rate] = FALSE_POSITIVES,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        self.rates = as_rates(rate)
        settings = {"rate": rate, "prices": prices, "seed": seed}
        super().__init__(prices=prices, seed=seed, settings=settings)

    def _plan(self, number: int, round: int) -> Epoch:
        return Epoch(number, "fixed", round, FOREVER, self._fixed)


class AcceptAll(_Fixed):
    """Accept everybody: no gap, and every label is seen.

    Parameters
    ----------
    rate, prices, seed : optional
        The rate whose gap is measured, what errors cost, and the seed of the coins.

    Examples
    --------
    >>> AcceptAll(seed=1).decide([[0.2], [0.7]]).accept.tolist()
    [True, True]
    """


class Uniform(_Fixed):
    """Toss a fair coin for everybody: no gap.

    Parameters
    ----------
    rate, prices, seed : optional
        The rate whose gap is measured, what errors cost, and the seed of the coins.

    Examples
    --------
    >>> Uniform(seed=1).acceptance([[0.2], [0.7]]).tolist()
    [0.5, 0.5]
    """

    _fixed = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5))


class ExploreThenCommit(TwoPhaseLearner):
    """Accept everybody for T0 = T^(2/3) rounds (or as told), then deploy the empirically best fair
    policy for good.

    Parameters
    ----------
    same_exploration : bool
        Whether T0 is that of a `TwoPhaseLearner` with the same settings.
    *args, **settings
        The settings of `TwoPhaseLearner`.

    Examples
    --------
    >>> from evenhand import ScoreThresholds
    >>> learner = ExploreThenCommit(ScoreThresholds(), FalsePositiveRate(), 0.4, 0.1, 1000, seed=1)
    >>> learner.exploration_rounds
    100
    """

    def __init__(self, *args: Any, same_exploration: bool = False, **settings: Any) -> None:
        lengths = (settings.get("exploration_rounds"), settings.get("tradeoff_exponent"))
        horizon = settings["horizon"] if "horizon" in settings else args[4]
        require_horizon(horizon, 2)
        if lengths == (None, None) and not same_exploration:
            settings["exploration_rounds"] = ceil(horizon ** (2 / 3))
        super().__init__(*args, **settings)
        self._settings["same_exploration"] = same_exploration

    @property
    def _settled(self) -> int:
        """The loss is that of the sample: a policy that is chosen once must not depend on which
        labels were quick.
        """
        return self.state.first + self.state.size

    def _exploit(self, number: int, round: int) -> Epoch:
        log = self._bandit_log()
        assert log is not None  # the exploration is over, so it has rows
        loss = one_sided(log, self.loss)
        best = self.fair_oracle(loss).cheapest(loss.acceptance_cost)
        return Epoch(number, "commit", round, FOREVER, best.policy, oracle_calls=best.oracle_calls)


LARGEST_NET = 12_800_000
"""Pairs times weights that are tried at most."""


class Exp4(TwoPhaseLearner):
    """EXP4 on the net of fair pairs of an enumerable class: the paper's inefficient baseline.

    Parameters
    ----------
    grid : int
        The number of weights between two hypotheses.
    *args, **settings
        The settings of `TwoPhaseLearner`.

    Notes
    -----
    After the same exploration as the two-phase learner, the net holds every mixture w h + (1-w) h'
    with w on a grid whose empirical gap is within the limit. Each member i keeps the
    importance-weighted loss it would have had, and is drawn with probability proportional to
    exp(-rate_t * cumulative estimated loss_i). The weights are renewed at the end of epochs that
    grow by a quarter, in which the policy is fixed.

    Examples
    --------
    >>> from evenhand import ScoreThresholds
    >>> Exp4(ScoreThresholds(), FalsePositiveRate(), 0.4, 0.1, 1000, grid=4, seed=1).params["grid"]
    4
    """

    def __init__(self, *args: Any, grid: int = 8, **settings: Any) -> None:
        self.grid = grid
        super().__init__(*args, **settings)
        self._settings["grid"] = grid

    def _exploit(self, number: int, round: int) -> Epoch:
        played = round - self._explored_rounds
        log = self._bandit_log()
        assert log is not None  # the exploration is over, so it has rows
        loss = one_sided(log, self.loss)
        floor = self.schedule.exploration_floor(max(1, int(loss.rounds)))
        sample, slack = self._ready()
        bound = self.hypotheses.bind(np.concatenate([loss.features, sample.features]), None)
        if not isinstance(bound, Enumeration) or self.group_use == "decide":
            raise InvalidInput(
                "Exp4 enumerates its net: it needs an enumerable class and "
                'group_use="certify_only".'
            )
        # each member's cumulative loss and gaps
        constraints = GapConstraints.on(self.rates, sample)
        channels = np.zeros((1 + len(constraints.channels), len(loss) + len(sample)))
        channels[0, : len(loss)] = loss.acceptance_cost
        channels[1:, len(loss) :] = constraints.channels
        costs, *totals = bound.totals(channels)
        gaps = constraints.pairs @ np.array(totals)
        first, second, weight = _net(gaps, slack.limit, self.grid)
        cumulative = weight * costs[first] + (1 - weight) * costs[second]
        rate = np.sqrt(np.log(max(len(first), 2)) / max(loss.rounds, 1.0))
        chance = np.exp(-rate * (cumulative - cumulative.min()))
        chance /= chance.sum()
        mass = np.bincount(first, chance * weight, len(costs))
        mass = mass + np.bincount(second, chance * (1 - weight), len(costs))
        # floor accept-all + (1 - floor) sum_i P_i pi_i, as one mixture of hypotheses
        members = np.flatnonzero(mass > 1e-12)
        weights = (1 - floor) * mass[members] / mass[members].sum()
        rules = (ACCEPT_ALL, *(bound.hypothesis(int(member)) for member in members))
        shares = (1.0 - float(weights.sum()), *weights.tolist())
        policy = Mixture(rules, shares, self.group_use)
        length = self._cut_off(max(FIRST_EPOCH, played // 4), round)
        return Epoch(number, "exp4", round, length, policy, floor, oracle_calls=0)


def _net(gaps: FloatArray, limit: float, grid: int) -> tuple[IntArray, IntArray, FloatArray]:
    """All (h, h', w) with w on the grid (h <= h') whose mixture keeps the limit."""
    members = gaps.shape[1]
    if members * (members + 1) // 2 * grid > LARGEST_NET:
        raise InvalidInput(
            f"the net of pairs of {members} hypotheses on {grid} weights is too large; EXP4 is "
            "the paper's inefficient baseline.",
            hint="use a smaller class, or TwoPhaseLearner, which needs no net.",
        )
    first, second = np.triu_indices(members)
    pairs: list[tuple[IntArray, IntArray, FloatArray]] = []
    for weight in np.linspace(1.0 / grid, 1.0, grid):
        mixed = weight * gaps[:, first] + (1 - weight) * gaps[:, second]
        keep = (np.abs(mixed).max(axis=0) <= limit) & ((first != second) | (weight == 1.0))
        pairs.append((first[keep], second[keep], np.full(int(keep.sum()), weight)))
    firsts, seconds, weights = zip(*pairs, strict=True)
    return np.concatenate(firsts), np.concatenate(seconds), np.concatenate(weights)


@dataclass(frozen=True, eq=False)
class GreedySettings:
    """The arguments of learners that re-solve whenever the number of rounds has doubled."""

    hypotheses: HypothesisClass
    rate: Rate | Sequence[Rate]
    allowed_gap: float = 1.0
    _: KW_ONLY
    first_rounds: int = 4 * FIRST_EPOCH
    prices: Prices | None = None
    group_use: GroupUse = "certify_only"
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "hypotheses", as_class(self.hypotheses))
        require_gap(self.allowed_gap)
        law = "at least one person must be accepted to learn"
        require_whole("first_rounds", self.first_rounds, 1, law)


class _Greedy(EpochLearner):
    """Learners that begin with a few accepted rounds and then re-solve whenever the number of
    rounds has doubled.
    """

    @made_with(GreedySettings)
    def __init__(self, settings: GreedySettings) -> None:
        self.hypotheses, self.rates = settings.hypotheses, as_rates(settings.rate)
        self.allowed_gap = self.comparator_gap = settings.allowed_gap
        self.first_rounds = int(settings.first_rounds)
        super().__init__(
            prices=settings.prices,
            group_use=settings.group_use,
            seed=settings.seed,
            settings=settings,
        )

    def _accept(self, number: int, round: int) -> Epoch:
        everybody = Mixture((ACCEPT_ALL,), (1.0,), self.group_use)
        return Epoch(number, "explore", round, max(self.first_rounds, round), everybody)


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
        features, group = self.loss.features, self.loss.group
        groups = () if group is None else dict.fromkeys(group.tolist())
        permanent = (ACCEPT_ALL, REJECT_ALL, *map(GroupClassifier, groups))
        answers = []
        for rule in (self.oracle.best(acceptance_cost), *permanent):
            policy = Mixture((rule,), (1.0,), self.group_use)
            answers.append(OracleAnswer(policy, policy.acceptance_of_checked(features, group)))
        return min(answers, key=lambda answer: float(acceptance_cost @ answer.acceptance))


class Unconstrained(_Greedy):
    """ILOVETOCONBANDITS (one-sided) over all mixtures: low regret to the best unfair policy, and no
    promise.

    Parameters
    ----------
    hypotheses, rate, allowed_gap
        The rules, the rate whose gap is measured, and a limit that nobody keeps.
    first_rounds : int
        Everybody is accepted in so many rounds at first.
    prices, group_use, seed : optional
        As in `TwoPhaseLearner`.

    Examples
    --------
    >>> from evenhand import ScoreThresholds
    >>> Unconstrained(ScoreThresholds(), FalsePositiveRate(), seed=1).rounds_left
    256
    """

    needs_group = False

    def _plan(self, number: int, round: int) -> Epoch:
        log = self.state.history.of(with_group=self.group_use == "decide") if round else None
        if log is None:
            return self._accept(number, round)
        loss, schedule = one_sided(log, self.loss), PracticalSchedule()
        floor = schedule.exploration_floor(max(1, int(loss.rounds)))
        every = AnyPolicy(self.hypotheses.bind(loss.features, loss.group), loss, self.group_use)
        chosen = coordinate_descent(
            loss, every, exploration_floor=floor, regret_scale=schedule.regret_scale, sides=1
        )
        policy = chosen.weights.smoothed(floor, explored(1))
        took = chosen.report.iterations, chosen.report.oracle_calls
        return Epoch(number, "bandit", round, round, policy, floor, *took)


class FairOnGathered(_Greedy):
    """Greedy: the best policy whose gap *on the labels gathered so far* is within the limit,
    without weighting or exploration.

    Parameters
    ----------
    hypotheses, rate, allowed_gap
        The rules, the rate, and the limit of its gap on the gathered labels.
    first_rounds : int
        Everybody is accepted in so many rounds at first.
    prices, group_use, seed : optional
        As in `TwoPhaseLearner`.

    Examples
    --------
    >>> from evenhand import ScoreThresholds
    >>> FairOnGathered(ScoreThresholds(), FalsePositiveRate(), 0.1, seed=1).epoch.phase
    'explore'
    """

    @property
    def _needs_group_now(self) -> bool:
        return True  # every label that is gathered enters the constraint

    def _plan(self, number: int, round: int) -> Epoch:
        log = self.state.history.of() if round else None
        if log is None:
            return self._accept(number, round)
        gathered = self.state.history.of(with_group=self.group_use == "decide") or log
        # the accepted rows as ordinary tools see them: a plain labelled table
        seen = gathered.where(gathered.accepted > 0)
        ones = np.ones(len(seen))
        columns = (seen.features, seen.group, ones, 0 * ones, seen.positive, seen.negative)
        shown = one_sided(RoundLog(*columns, seen.prices).aggregated(), self.loss)
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
        chosen = fair.cheapest(shown.acceptance_cost)
        return Epoch(
            number, "greedy", round, round, chosen.policy, oracle_calls=chosen.oracle_calls
        )
