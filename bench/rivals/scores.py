"""Two rivals that accept with a probability growing with a score, and that kind of policy.

Such a policy is a mixture of linear rules with one direction and a random cut-off:

    P[pi(x) = +1] = F(w.x) = sum_k p_k 1[w.x >= t_k],   F the distribution function of the cut-off

**SemiLogistic** (Kilbertus et al. 2020, "Fair decisions despite imperfect predictions").

    pi(x) = 1 where w.x >= 0, logistic(w.x) elsewhere
    w maximises   mean over accepted rounds of u(y) pi(x) / p  -  penalty/2 gap(pi)^2
    u = false_reject for y = +1, -false_accept for y = -1

Nobody is rejected for sure, so every label keeps being seen. The steps follow the gradient on the
data of all earlier policies, weighted by the probability p with which each was accepted; the gap is
the weighted difference of the rate between the groups. The penalty asks for fairness on the
estimates; it guarantees nothing.

**ExploreExploit** (Keswani, Mehrotra and Celis 2024, "Fair classification with partial feedback").
A model is trained on the labels gathered so far. Where it expects success for sure enough, people
are accepted (the exploit region: its estimated share of false positives is at most
`false_discoveries`); elsewhere they are accepted with a small probability that grows with the
predicted chance, such that the expected false positives of all accepted stay within the same bound
(the explore region). Groups are explored at the same rates. Bounded false positives and convergence
are what it is made for; it guarantees nothing about the gap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from evenhand.algorithms.base import GroupNeeded
from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.errors import CannotEstimateRate
from evenhand.estimation import TransformedLoss
from evenhand.estimation.outcomes import fit_logistic_outcomes
from evenhand.fairness import GapConstraints
from evenhand.fairness.rates import Rate
from evenhand.hypotheses import ACCEPT_ALL, LinearRule
from evenhand.hypotheses.linear import row_scores
from evenhand.policies import DeployedPolicy, Mixture
from evenhand.rounds import Epoch, Rounds, learning
from evenhand.schema import Schema
from evenhand.words import FloatArray, GroupArray, LabelledSample, Prices, as_features

FIRST_ROUNDS = 256
GROWTH = 0.5
CUTS = 200
"""Cut-offs by which a continuous distribution function is stood for."""
STEPS = 300
STEP = 0.05
SHRINKING = 0.02
"""Adam's number of steps, their size, and how much the weights are pulled towards 0."""
WEIGHT_CAP = 100.0
MOST_ROWS = 20_000
MOST_EXPLORED = 0.2
"""The largest probability in the explore region."""


@dataclass(frozen=True)
class RandomCutoff(Mixture):
    """A mixture of linear rules with one direction, asked by one score for all of them.

    Parameters
    ----------
    hypotheses : tuple of LinearRule
        Rules with the same weights, their cut-offs in ascending order.
    weights : tuple of float
        The probability of each cut-off.
    group_use : "certify_only"
        The group is never looked at.

    Examples
    --------
    >>> policy = random_cutoff(np.array([1.0]), 0.0, logistic)
    >>> policy.acceptance([[-40.0], [0.0], [40.0]]).round(1)
    array([0. , 0.5, 1. ])
    """

    @cached_property
    def _cuts(self) -> tuple[tuple[float, ...], FloatArray, FloatArray]:
        """The direction, the cut-offs, and F below the first and from each of them on."""
        rules = [rule for rule in self.hypotheses if isinstance(rule, LinearRule)]
        reached = np.concatenate([[0.0], np.cumsum(self.weights)])
        return rules[0].weights, np.array([rule.threshold for rule in rules]), reached

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """F(w.x) for each row; see `Mixture.acceptance`."""
        return self.acceptance_of_checked(as_features(features), None)

    def acceptance_of_checked(self, features: FloatArray, group: GroupArray | None) -> FloatArray:
        """The same for arrays that have been checked; see `DeployedPolicy`."""
        direction, thresholds, reached = self._cuts
        place = np.searchsorted(thresholds, row_scores(features, direction), side="right")
        return np.asarray(np.minimum(reached[place], 1.0), dtype=np.float64)

    def acceptance_of_one(self, person: FloatArray, group: GroupArray | None) -> float:
        """The same for one such row; see `DeployedPolicy`."""
        return float(self.acceptance_of_checked(person, None)[0])

    def describe(self, names: Sequence[str] | None = None) -> str:
        """The direction, and how the probability grows along it; see `Mixture.describe`."""
        middle = self.hypotheses[int(np.searchsorted(np.cumsum(self.weights), 0.5))]
        return f"a probability that grows with a score; at one half: {middle.describe(names)}"


def random_cutoff(
    direction: FloatArray, offset: float, probability: Callable[[FloatArray], FloatArray]
) -> RandomCutoff:
    """The policy that accepts with probability(w.x + offset), which does not decrease; the steps
    are finest around 0.
    """
    grid = np.sinh(np.linspace(-4.0, 4.0, CUTS)) / 3.0
    levels = np.clip(probability(np.concatenate([[-40.0], grid])), 0.0, 1.0)
    levels[-1] = 1.0
    mass = np.diff(levels, prepend=0.0)
    cuts = np.concatenate([[-1e300], grid - offset])
    kept = mass > 0
    weights = tuple(float(f"{w:.9g}") for w in direction)
    rules = tuple(LinearRule(weights, float(cut)) for cut in cuts[kept])
    return RandomCutoff(rules, tuple((mass[kept] / mass[kept].sum()).tolist()))


def logistic(score: FloatArray) -> FloatArray:
    """1 / (1 + exp(-s))."""
    from scipy.special import expit  # heavy: only those who play this learner load it

    return np.asarray(expit(np.clip(score, -40.0, 40.0)))


def semi_logistic(score: FloatArray) -> FloatArray:
    """1 from 0 on, logistic below."""
    return np.where(score >= 0, 1.0, logistic(score))


@dataclass(frozen=True, eq=False)
class ScorePolicy:
    """Accept all applicants at first, then let `plan` choose a policy whenever the rounds have
    grown by half. The state is how many rounds have been learned from.
    """

    rates: tuple[Rate, ...]
    prices: Prices
    plan: Callable[["ScorePolicy", Rounds], DeployedPolicy | None]
    setting: float
    needs_group: GroupNeeded
    hypotheses: HypothesisClass | None = None
    group_use: GroupUse = "certify_only"
    maturity: float | None = None

    @cached_property
    def loss(self) -> TransformedLoss:
        """What errors cost."""
        return TransformedLoss.of_prices(self.prices)

    def reading(self, schema: Schema) -> "ScorePolicy":
        """It compares numbers: InvalidInput if a column is none."""
        schema.require_plain("a score")
        return self

    def init(self, seed: int) -> tuple[int, Epoch]:
        """Accept all applicants at first."""
        return 0, Epoch(1, "explore", 0, FIRST_ROUNDS, Mixture((ACCEPT_ALL,), (1.0,)))

    def step(self, state: int, rounds: Rounds, now: float | None) -> tuple[int, Epoch | None]:
        """Plan anew, from all that is resolved."""
        learned = learning.resolved_before(rounds, rounds.decided)
        if learned == state:
            return state, None
        number = rounds.epoch.number + 1
        length = max(FIRST_ROUNDS, int(GROWTH * rounds.decided))
        policy = self.plan(self, rounds)
        if policy is None:
            accept_all = Mixture((ACCEPT_ALL,), (1.0,))
            return learned, Epoch(number, "explore", rounds.decided, length, accept_all)
        return learned, Epoch(number, "policy", rounds.decided, length, policy, oracle_calls=1)


def semi_logistic_policy(settings: ScorePolicy, rounds: Rounds) -> DeployedPolicy | None:
    """Gradient steps on inverse-propensity-weighted utility with a squared fairness penalty; None
    before both labels have been seen.
    """
    log = learning.log(rounds)
    if log is None or log.positive.sum() < 1 or log.negative.sum() < 1:
        return None
    seen = log.where(log.accepted > 0)
    rows = np.unique(np.linspace(0, len(seen) - 1, min(len(seen), MOST_ROWS)).astype(int))
    seen = seen.where(np.isin(np.arange(len(seen)), rows))
    # the rows' weighted utility, and for each gap a channel: gap = channel . pi
    weight = np.minimum(1.0 / seen.acceptance, WEIGHT_CAP)
    prices = seen.prices or settings.loss.prices
    gain = seen.positive * prices.false_reject
    cost = seen.negative * prices.false_accept
    utility = weight * (gain - cost)
    utility = utility / np.abs(utility).sum()
    assert seen.group is not None  # it is asked for at every decision
    sample = LabelledSample(
        np.tile(seen.features[:, :1], (2, 1)),
        np.tile(seen.group, 2),
        np.repeat([1, -1], len(seen)),
        np.concatenate([weight * seen.positive, weight * seen.negative]),
    )
    try:
        constraints = GapConstraints.on(settings.rates, sample)
    except CannotEstimateRate:
        channels = np.zeros((1, len(seen)))
    else:
        both = constraints.pairs @ constraints.channels
        channels = both[:, : len(seen)] + both[:, len(seen) :]
    # features with mean 0 and variance 1, constant columns as they are, and a 1 at their end
    mean = seen.features.mean(axis=0)
    spread = seen.features.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    standard = np.column_stack([(seen.features - mean) / scale, np.ones(len(seen))])
    weights = _ascend(standard, utility, channels, settings.setting)
    direction = weights[:-1] / scale
    return random_cutoff(direction, float(weights[-1] - direction @ mean), semi_logistic)


def _ascend(
    rows: FloatArray, utility: FloatArray, channels: FloatArray, penalty: float
) -> FloatArray:
    """Adam on the objective; pi' = pi (1 - pi) of the logistic, also above 0, where the paper's
    policy has no slope of its own.
    """
    weights, first, second = np.zeros((3, rows.shape[1]))
    for step in range(1, STEPS + 1):
        score = rows @ weights
        chance = logistic(score)
        gaps = channels @ np.where(score >= 0, 1.0, chance)
        pull = utility - (penalty / len(gaps)) * (gaps @ channels)
        slope = rows.T @ (pull * chance * (1.0 - chance)) - SHRINKING * weights
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        spread = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        weights = weights + STEP * (first / (1 - 0.9**step)) / spread
    return weights


def explore_exploit_policy(settings: ScorePolicy, rounds: Rounds) -> DeployedPolicy | None:
    """A model, an exploit region within a bound on false discoveries, and exploration outside it;
    None before both labels have been seen.
    """
    log = learning.log(rounds, with_group=False)
    model = None if log is None else fit_logistic_outcomes(log)
    if log is None or model is None:
        return None
    # Accept the best while their expected false positives allow it; of the rest accept as many
    # as the bound leaves room for.
    # the chance of a bad outcome at which accepting and rejecting cost the same
    fa = float(np.mean(settings.prices.false_accept))
    fr = float(np.mean(settings.prices.false_reject))
    bad = np.sort(model.negative_probability(log.features))
    share = np.cumsum(bad) / np.arange(1, len(bad) + 1)
    inside = int(np.sum((share <= settings.setting) & (bad <= fr / (fa + fr))))
    edge = float(bad[min(inside, len(bad) - 1)])
    rest = bad[inside:]
    room = settings.setting * inside - float(bad[:inside].sum())
    # sum over the rest of rate (1 - bad) (bad - alpha) <= room
    wish = float(np.sum((1.0 - rest) * np.maximum(rest - settings.setting, 0.0)))
    rate = min(MOST_EXPLORED, room / wish) if wish > 0 else MOST_EXPLORED
    rate = max(rate, 1.0 / np.sqrt(len(bad)))
    direction = -model.weights / model.scale
    offset = float(-model.intercept - direction @ model.mean)
    cut = float(np.log((1.0 - edge) / max(edge, 1e-12)))
    return random_cutoff(
        direction, offset, lambda score: np.where(score >= cut, 1.0, rate * logistic(score))
    )
