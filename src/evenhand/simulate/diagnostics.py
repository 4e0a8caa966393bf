"""What only a simulator can know: the truth about the set Pi that a two-phase learner competes in
(section 3.1).

Pi = {mixtures pi : |gap of pi on the exploration sample| <= limit}. The set is fixed by the sample
when the exploration ends; the population says how good its best member is and how unfair its worst
one, each by one call of the fair oracle with true costs:

    best loss    min over pi in Pi of loss(pi)
    worst gap    max over pi in Pi and gaps k of |gap_k(pi) on D|
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.contracts import Environment
from evenhand.environments.truth import TablePopulation
from evenhand.errors import InvalidInput
from evenhand.faircsc import FairCSC, FairSolution, bind_fair
from evenhand.fairness import GapConstraints
from evenhand.learners import TwoPhaseLearner
from evenhand.policies import Mixture
from evenhand.simulate.run import Run
from evenhand.words import FloatArray, LabelledSample


@dataclass(frozen=True, eq=False)
class PolicySet:
    """The truth about a learner's set Pi: its best member's loss and its worst member's |gap|, and
    who they are.
    """

    best_loss: float
    best: Mixture
    worst_gap: float
    worst: Mixture
    limit: float
    promise: float
    beta: float


def policy_set(learner: Any, environment: Any) -> PolicySet:
    """The truth about the set of a learner whose exploration is over, on a population that is a
    table.
    """
    known, truth = _finished(learner), _table(environment)
    fair = _fair_on(known, truth)
    best = fair.cheapest(truth.weight * known.prices.acceptance_cost(truth.label))
    worst = _worst(fair, GapConstraints.on(known.rates, truth))
    assert known.slack is not None  # the exploration is over
    return PolicySet(
        best_loss=float(environment.loss(best.policy, known.prices)),
        best=best.policy,
        worst_gap=float(np.abs(environment.gaps(worst.policy, known.rates)).max()),
        worst=worst.policy,
        limit=known.slack.limit,
        promise=known.slack.promise,
        beta=known.slack.beta,
    )


def regret_in_set(run: Run[Any], environment: Environment) -> FloatArray:
    """At the end of each epoch: the sum over rounds *after the exploration* of loss(pi_t) - best
    loss in the learner's own set.

    The promise for the bandit alone. It is never negative, because every deployed policy belongs to
    the (convex) set.
    """
    later = np.array([phase != "explore" for phase in run.phases])
    best = policy_set(run.learner, environment).best_loss
    return np.asarray(np.cumsum(run.lengths * later * (run.losses - best)))


def _finished(learner: Any) -> TwoPhaseLearner:
    if not isinstance(learner, TwoPhaseLearner):
        raise InvalidInput(
            f"{type(learner).__name__} has no exploration sample; only two-phase learners compete in a set of their own.",
            hint="use Run.regret, which compares with the best fair policy of the population.",
        )
    if learner.sample is None or learner.slack is None:
        raise InvalidInput(
            f"the learner is still exploring after {learner.round} rounds; its set is not yet known.",
            hint="play more rounds; report.notes says how many are missing.",
        )
    return learner


def _table(environment: Any) -> LabelledSample:
    if not isinstance(environment, TablePopulation):
        raise InvalidInput(
            f"the truth about a set of policies needs a population that is a table, not {type(environment).__name__}.",
            hint="use Discrete or Replay.",
        )
    return environment.population_sample()


def _fair_on(learner: TwoPhaseLearner, truth: LabelledSample) -> FairCSC:
    """The learner's own constraint, with the rows of the population as objective."""
    assert learner.sample is not None  # `_finished` has looked
    assert learner.slack is not None
    group = truth.group if learner.group_use == "decide" else None
    return bind_fair(
        learner.hypotheses,
        truth.features,
        group,
        learner.rates,
        learner.sample,
        learner.slack.limit,
        group_use=learner.group_use,
    )


def _worst(fair: FairCSC, gaps: GapConstraints) -> FairSolution:
    """argmax over the set of |gap_k|: the costs are -gap_k and +gap_k, for each k."""
    channels = gaps.pairs @ gaps.channels
    found = [fair.cheapest(sign * channel) for channel in channels for sign in (-1.0, 1.0)]
    return min(found, key=lambda solution: solution.cost)
