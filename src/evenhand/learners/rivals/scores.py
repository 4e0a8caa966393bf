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
estimates; it promises nothing.

**ExploreExploit** (Keswani, Mehrotra and Celis 2024, "Fair classification with partial feedback").
A model is trained on the labels gathered so far. Where it expects success for sure enough, people
are accepted (the exploit region: its estimated share of false positives is at most
`false_discoveries`); elsewhere they are accepted with a small probability that grows with the
predicted chance, such that the expected false positives of all accepted stay within the same bound
(the explore region). Groups are explored at the same rates. Bounded false positives and convergence
are what it is made for; it makes no promise about the gap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import CannotEstimateRate
from evenhand.estimation.outcomes import fit_logistic_outcomes
from evenhand.fairness import GapConstraints
from evenhand.fairness.rates import Rate, as_rates
from evenhand.hypotheses import ACCEPT_ALL, LinearRule
from evenhand.hypotheses.linear import row_scores
from evenhand.learners.epochs import Epoch, EpochLearner
from evenhand.policies import Mixture
from evenhand.words import FloatArray, GroupArray, LabelledSample, Prices, as_features

FIRST_ROUNDS = 256
GROWTH = 0.5
CUTS = 200
"""Cut-offs by which a continuous distribution function is stood for."""
STEPS, STEP, SHRINKING = 300, 0.05, 0.02
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


class _ScoreLearner(EpochLearner):
    """What the two learners share: they are judged by `rate` and `allowed_gap`, and have a setting
    of their `own`.
    """

    compares_numbers = True

    def __init__(
        self,
        rate: Rate | Sequence[Rate],
        allowed_gap: float,
        prices: Prices | None,
        seed: int | None,
        **own: float,
    ) -> None:
        self.rates = as_rates(rate)
        self.allowed_gap = self.comparator_gap = allowed_gap
        settings = {"rate": rate, "allowed_gap": allowed_gap, **own, "prices": prices, "seed": seed}
        super().__init__(prices=prices, seed=seed, settings=settings)


class SemiLogistic(_ScoreLearner):
    """Gradient steps on inverse-propensity-weighted utility with a squared fairness penalty.

    Parameters
    ----------
    rate : Rate or sequence of Rate
        Whose gaps are penalised.
    allowed_gap : float, default 0.05
        The gap that it is compared at; it is not promised.
    penalty : float, default 10.0
        The weight of the penalty.
    prices : Prices, optional
        What errors cost; 1 and 1 by default.
    seed : int, optional
        The seed of its coins.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate
    >>> learner = SemiLogistic(FalsePositiveRate(), seed=1)
    >>> len(learner.decide([[1.0], [2.0]], ["a", "b"]))
    2
    """

    def __init__(
        self,
        rate: Rate | Sequence[Rate],
        allowed_gap: float = 0.05,
        *,
        penalty: float = 10.0,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        self.penalty = penalty
        super().__init__(rate, allowed_gap, prices, seed, penalty=penalty)

    @property
    def _needs_group_now(self) -> bool:
        return True  # every label enters the penalty

    def _plan(self, number: int, round: int) -> Epoch:
        log = self.state.history.of() if round else None
        length = max(FIRST_ROUNDS, int(GROWTH * round))
        if log is None or log.positive.sum() < 1 or log.negative.sum() < 1:
            return Epoch(number, "explore", round, length, Mixture((ACCEPT_ALL,), (1.0,)))
        seen = log.where(log.accepted > 0)
        rows = np.unique(np.linspace(0, len(seen) - 1, min(len(seen), MOST_ROWS)).astype(int))
        seen = seen.where(np.isin(np.arange(len(seen)), rows))
        # the rows' weighted utility, and for each gap a channel: gap = channel . pi
        weight = np.minimum(1.0 / seen.acceptance, WEIGHT_CAP)
        prices = seen.prices or self.loss.prices
        gain, cost = seen.positive * prices.false_reject, seen.negative * prices.false_accept
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
            constraints = GapConstraints.on(self.rates, sample)
        except CannotEstimateRate:
            channels = np.zeros((1, len(seen)))
        else:
            both = constraints.pairs @ constraints.channels
            channels = both[:, : len(seen)] + both[:, len(seen) :]
        # features with mean 0 and variance 1, constant columns as they are, and a 1 at their end
        mean, spread = seen.features.mean(axis=0), seen.features.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        standard = np.column_stack([(seen.features - mean) / scale, np.ones(len(seen))])
        weights = _ascend(standard, utility, channels, self.penalty)
        direction = weights[:-1] / scale
        policy = random_cutoff(direction, float(weights[-1] - direction @ mean), semi_logistic)
        return Epoch(number, "policy", round, length, policy, oracle_calls=1)


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
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        spread = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        weights = weights + STEP * (first / (1 - 0.9**step)) / spread
    return weights


class ExploreExploit(_ScoreLearner):
    """A model, an exploit region within a bound on false discoveries, and exploration outside it.

    Beyond the break-even point, where accepting costs more than rejecting, nobody is exploited.

    Parameters
    ----------
    rate : Rate or sequence of Rate
        Whose gaps it is judged by.
    allowed_gap : float, default 0.05
        The gap that it is compared at; it is not promised.
    false_discoveries : float, default 0.25
        The largest share of false positives among the accepted.
    prices : Prices, optional
        What errors cost; 1 and 1 by default.
    seed : int, optional
        The seed of its coins.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate
    >>> learner = ExploreExploit(FalsePositiveRate(), seed=1)
    >>> len(learner.decide([[1.0], [2.0]]))
    2
    """

    needs_group = False

    def __init__(
        self,
        rate: Rate | Sequence[Rate],
        allowed_gap: float = 0.05,
        *,
        false_discoveries: float = 0.25,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        self.false_discoveries = false_discoveries
        super().__init__(rate, allowed_gap, prices, seed, false_discoveries=false_discoveries)

    def _plan(self, number: int, round: int) -> Epoch:
        log = self.state.history.of(with_group=False) if round else None
        length = max(FIRST_ROUNDS, int(GROWTH * round))
        model = None if log is None else fit_logistic_outcomes(log)
        if log is None or model is None:
            return Epoch(number, "explore", round, length, Mixture((ACCEPT_ALL,), (1.0,)))
        # Accept the best while their expected false positives allow it; of the rest accept as many
        # as the bound leaves room for.
        # the chance of a bad outcome at which accepting and rejecting cost the same
        fa = float(np.mean(self.prices.false_accept))
        fr = float(np.mean(self.prices.false_reject))
        bad = np.sort(model.negative_probability(log.features))
        share = np.cumsum(bad) / np.arange(1, len(bad) + 1)
        inside = int(np.sum((share <= self.false_discoveries) & (bad <= fr / (fa + fr))))
        edge = float(bad[min(inside, len(bad) - 1)])
        rest, room = bad[inside:], self.false_discoveries * inside - float(bad[:inside].sum())
        # sum over the rest of rate (1 - bad) (bad - alpha) <= room
        wish = float(np.sum((1.0 - rest) * np.maximum(rest - self.false_discoveries, 0.0)))
        rate = min(MOST_EXPLORED, room / wish) if wish > 0 else MOST_EXPLORED
        rate = max(rate, 1.0 / np.sqrt(len(bad)))
        direction = -model.weights / model.scale
        offset = float(-model.intercept - direction @ model.mean)
        cut = float(np.log((1.0 - edge) / max(edge, 1e-12)))
        policy = random_cutoff(
            direction, offset, lambda score: np.where(score >= cut, 1.0, rate * logistic(score))
        )
        return Epoch(number, "policy", round, length, policy, oracle_calls=1)
