"""Learners of others, to be compared with: Kilbertus et al. (2020), Keswani et al. (2024), and two
neighbours of the paper inside its set of fair policies: inverse gap weighting (Foster and Rakhlin
2020) and EXP4.AT (Raman et al. 2024).
"""

from typing import Any

from bench.rivals.neighbours import exp4_at, inverse_gap, require_one_sided
from bench.rivals.scores import (
    ScorePolicy,
    explore_exploit_policy,
    semi_logistic_policy,
)
from evenhand.algorithms.baselines import AfterExploration
from evenhand.algorithms.exponential_weights import GROWTH
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.hypotheses.named import ClassLike
from evenhand.learner import EpochLearner
from evenhand.learners import (
    ExploringLearner,
    as_prices,
    paper_with,
    settings_of,
)
from evenhand.words import Prices

__all__ = ["Exp4AppleTasting", "ExploreExploit", "InverseGap", "SemiLogistic"]


class SemiLogistic(EpochLearner):
    """Gradient steps on inverse-propensity-weighted utility with a squared fairness penalty.

    Parameters
    ----------
    rate : Rate or sequence of Rate
        Whose gaps are penalised.
    limit : float, default 0.05
        The gap that it is compared at; it is not guaranteed.
    penalty : float, default 10.0
        The weight of the penalty.
    prices : Prices, optional
        What errors cost; 1 and 1 by default.
    seed : int, optional
        Seed of all random draws.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate
    >>> learner = SemiLogistic(FalsePositiveRate(), seed=1)
    >>> len(learner.decide([[1.0], [2.0]], ["a", "b"]))
    2
    """

    def __init__(
        self,
        rate: RateLike,
        limit: float = 0.05,
        *,
        penalty: float = 10.0,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        self.limit = limit
        self.comparator_gap = limit
        self.penalty = penalty
        algorithm = ScorePolicy(
            as_rates(rate), as_prices(prices), semi_logistic_policy, penalty, "always"
        )
        settings: dict[str, Any] = {
            "rate": rate,
            "limit": limit,
            "penalty": penalty,
            "prices": prices,
        }
        super().__init__(algorithm, seed=seed, settings=settings)


class ExploreExploit(EpochLearner):
    """A model, an exploit region within a bound on false discoveries, and exploration outside it.

    Beyond the break-even point, where accepting costs more than rejecting, nobody is exploited.

    Parameters
    ----------
    rate : Rate or sequence of Rate
        Whose gaps it is judged by.
    limit : float, default 0.05
        The gap that it is compared at; it is not guaranteed.
    false_discoveries : float, default 0.25
        The largest share of false positives among the accepted.
    prices : Prices, optional
        What errors cost; 1 and 1 by default.
    seed : int, optional
        Seed of all random draws.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate
    >>> learner = ExploreExploit(FalsePositiveRate(), seed=1)
    >>> len(learner.decide([[1.0], [2.0]]))
    2
    """

    def __init__(
        self,
        rate: RateLike,
        limit: float = 0.05,
        *,
        false_discoveries: float = 0.25,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        self.limit = limit
        self.comparator_gap = limit
        self.false_discoveries = false_discoveries
        algorithm = ScorePolicy(
            as_rates(rate), as_prices(prices), explore_exploit_policy, false_discoveries, "never"
        )
        settings: dict[str, Any] = {
            "rate": rate,
            "limit": limit,
            "false_discoveries": false_discoveries,
            "prices": prices,
        }
        super().__init__(algorithm, seed=seed, settings=settings)


class InverseGap(ExploringLearner):
    """Inverse gap weighting (SquareCB) within the paper's set of fair policies: a regression of
    outcomes in place of importance weights.

    Parameters
    ----------
    hypotheses, rate, limit, delta, horizon
        As in `TwoPhaseLearner`.
    seed : int, optional
        Seed of all random draws.
    **settings
        Further settings of `TwoPhaseLearner`; the estimator is one-sided, and the group does not
        decide.

    Raises
    ------
    InvalidInput
        If a setting makes no sense.

    Notes
    -----
    After the same exploration as the two-phase learner, each epoch fits m(x) = P[y = -1 | x] once
    to the labels of accepted people, and deploys the mixture Q of fair policies that minimises
    gamma E[d_hat Q] - E ln Q^mu, where d_hat(x) is what accepting x costs beyond rejecting it by m
    (`bench.rivals.inverse_gap` derives it). Fairness is that of the two-phase learner: all that
    is deployed lies in its set. Low regret needs a regression class that holds the true m, which
    Algorithm 1 does not: contexts that repeat have a rate each, other people a logistic regression.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate, ScoreThresholds
    >>> learner = InverseGap(ScoreThresholds(), FalsePositiveRate(), 0.4, 0.1, 1000, seed=1)
    >>> learner.decide([[0.2], [0.7]], ["a", "b"]).accept.tolist(), learner.report.phase
    ([True, True], 'explore')
    """

    def __init__(
        self,
        hypotheses: ClassLike,
        rate: RateLike,
        limit: float | None,
        delta: float,
        horizon: int,
        *,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        paper = paper_with(hypotheses, rate, limit, delta, horizon, settings)
        require_one_sided(paper, "inverse gap weighting")
        if paper.group_use == "decide":
            raise InvalidInput(
                'group_use is "decide"',
                requirement="the regression of inverse gap weighting does not see the group",
                hint='use group_use="certify_only", or TwoPhaseLearner.',
                argument="group_use",
            )
        own = settings_of(paper, prices=settings.get("prices"))
        super().__init__(AfterExploration(paper, inverse_gap), seed=seed, settings=own)


class Exp4AppleTasting(ExploringLearner):
    """EXP4.AT on the net of fair pairs: exponential weights that explore accepts alone.

    Parameters
    ----------
    hypotheses, rate, limit, delta, horizon
        As in `TwoPhaseLearner`.
    grid : int, optional
        As in `Exp4`.
    growth : float, default 0.25
        As in `Exp4`. With 0 the weights are renewed after every round; the bound for people in
        any order is for that.
    seed : int, optional
        Seed of all random draws.
    **settings
        Further settings of `TwoPhaseLearner`; the estimator is one-sided, and there is no schedule.

    Raises
    ------
    InvalidInput
        As in `Exp4`, and if the estimator is two-sided or a schedule is given.

    Notes
    -----
    Member i of the net is drawn with probability proportional to exp(-eta sum_t loss_hat_t(i)),
    with loss_hat_t(yhat) = 1[yhat != y_t] 1[accepted] / p_t, eta = sqrt(ln N / (3 T)) and eta of
    accept-all. After every renewal by a single round, its regret in 0-1 loss to the best of N
    members is at most 2 sqrt(3 T ln N), whatever the order of the people and labels
    (`bench.rivals.neighbours` has the steps). The same exponential cost as `Exp4`.

    Examples
    --------
    >>> from evenhand import FalsePositiveRate, ScoreThresholds
    >>> learner = Exp4AppleTasting(ScoreThresholds(), FalsePositiveRate(), 0.4, 0.1, 1000, growth=0)
    >>> learner.params["growth"]
    0
    """

    def __init__(
        self,
        hypotheses: ClassLike,
        rate: RateLike,
        limit: float | None,
        delta: float,
        horizon: int,
        *,
        grid: int | None = None,
        growth: float = GROWTH,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        paper = paper_with(hypotheses, rate, limit, delta, horizon, settings)
        require_one_sided(paper, "EXP4.AT")
        if paper.schedule != "practical":
            raise InvalidInput(
                f"schedule is {paper.schedule!r}",
                requirement="the floor of EXP4.AT is its learning rate eta",
                hint="leave schedule out.",
                argument="schedule",
            )
        own = settings_of(paper, prices=settings.get("prices"), grid=grid, growth=growth)
        algorithm = AfterExploration(paper, exp4_at(grid, growth))
        super().__init__(algorithm, seed=seed, settings=own)
