"""What is kept of a run, as plain numbers: small enough to come back from another process and to be
stored as JSON.

A `RunRecord` holds the figures of the run, epoch by epoch. Where the learner and the population
allow it, it also holds what was certified, what ordinary tools would have measured, and the truth
about the set Pi that a two-phase learner competes in (section 3.1 of the paper).

Only a simulation can know the truth about Pi = {mixtures pi : |gap of pi on the exploration sample|
<= limit}. The sample fixes the set when the exploration ends; the population says how good its best
member is and how unfair its worst one, each by one call of the fair oracle with true costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenhand.algorithms.exploration import Slack
from evenhand.contracts import Environment, Json, Learner, Params, Policy, Rate
from evenhand.environments import Discrete
from evenhand.environments.population import TablePopulation
from evenhand.errors import CannotEstimateRate, InvalidInput
from evenhand.faircsc import bind_fair
from evenhand.fairness import GapConstraints
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import (
    AcceptAll,
    CertifiedLearner,
    EpochLearner,
    ExploringLearner,
    Uniform,
)
from evenhand.policies import Mixture
from evenhand.shown import Brief, Cell, Shown, plain_fields
from evenhand.simulation.run import (
    Run,
    RunFigures,
    draw_gaps,
    epoch_columns,
    permitted_shares,
)
from evenhand.words import FloatArray, IntArray, LabelledSample, Prices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_GAIN = 1e-9
"""The better constant and the optimum are the same if their losses differ by no more than this."""


@dataclass(frozen=True, eq=False, repr=False)
class RunRecord(RunFigures, Shown, Brief):
    """A run as plain numbers, one entry per epoch; `to_frame` has a row for each of them.

    Parameters
    ----------
    seed, rounds, regret, gaps, losses, accepted, phases, optimum, oracle_calls, seconds
        As in `Run`.
    constant : float
        The loss of the better constant: accepting or rejecting all applicants, or a permitted
        share of them by lot.
    guaranteed : bool
        Whether the learner's own bound covers the limit for every policy that it deployed.
    learned : array of float
        The share of each policy that is not a constant.
    audit : array of float
        The share of each policy that accepts all applicants.
    in_sample : array of float, optional
        |gap| of each policy on all labels gathered before its epoch, each label counted once, as if
        the accepted were the population; NaN where nothing was gathered yet. None unless the
        learner has epochs and the population is `Discrete`.
    certified : array of float, optional
        The largest |gap| that the learner's certificate allowed for each policy; None where
        `in_sample` is None, and for learners that certify nothing.
    slack : float, optional
        beta of the exploration sample of a two-phase learner.
    regret_in_set : float, optional
        The regret after the exploration to the best policy of the learner's own set Pi.
    note : str
        The learner's own remarks about the run.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulation import record, simulate
    >>> world = lending()
    >>> kept = record(simulate(AcceptAll(), world, rounds=100, seed=0), world, limit=0.1)
    >>> kept.guaranteed, kept.explored, round(kept.worst_gap, 9)
    (True, 0, 0.0)
    """

    constant: float
    guaranteed: bool
    learned: FloatArray
    audit: FloatArray
    in_sample: FloatArray | None = None
    certified: FloatArray | None = None
    slack: float | None = None
    regret_in_set: float | None = None
    note: str = ""

    def _headline(self) -> str:
        return (
            f"A run with seed {self.seed}: {int(self.rounds[-1]):,} rounds, regret "
            f"{float(self.regret[-1]):,.1f}, largest true gap {self.worst_gap:.3f}"
        )

    def _columns(self) -> dict[str, Sequence[Cell]]:
        shares = {"learned": self.learned.tolist(), "audit": self.audit.tolist()}
        return {**epoch_columns(self), **shares}

    def _draw(self, axes: "Axes") -> None:
        draw_gaps(axes, self)

    @property
    def cost(self) -> float:
        """The mean loss per person."""
        return float(self.lengths / self.rounds[-1] @ self.losses)

    @property
    def regret_over_constant(self) -> float | None:
        """The regret as a share of the better constant's; None where that constant is optimal."""
        gain = self.constant - self.optimum
        if gain <= NO_GAIN:
            return None
        return float(self.regret[-1]) / (float(self.rounds[-1]) * gain)

    @property
    def accepted_share(self) -> float:
        """The share of all people who were accepted."""
        return float(self.accepted.sum() / self.rounds[-1])

    @property
    def audit_share(self) -> float:
        """The mean share of a policy that accepts all applicants."""
        return float(self.lengths / self.rounds[-1] @ self.audit)

    @property
    def explored(self) -> int:
        """The rounds in which all applicants were accepted in order to learn."""
        exploring = np.array([phase == "explore" for phase in self.phases])
        return int(self.lengths[exploring].sum())

    def to_json(self) -> Json:
        """Return the record as plain JSON.

        Returns
        -------
        dict
            One entry per field; arrays become lists, and NaN becomes null.
        """
        return plain_fields(self)

    @classmethod
    def from_json(cls, document: Params) -> "RunRecord":
        """Read what `to_json` wrote, bit for bit.

        Parameters
        ----------
        document : mapping
            What `to_json` returned.

        Returns
        -------
        RunRecord
            The same record.
        """
        known: Json = {**document, "phases": tuple(document["phases"])}
        for name in ("rounds", "accepted"):
            known[name] = np.array(document[name], np.int64)
        for name in ("regret", "gaps", "losses", "learned", "audit", "in_sample", "certified"):
            if document[name] is not None:
                known[name] = np.array(document[name], np.float64)
        return cls(**known)


def record(
    run: Run[Learner], environment: Environment, limit: float, optimum: float | None = None
) -> RunRecord:
    """Keep the numbers of a run.

    Parameters
    ----------
    run : Run
        What `simulate` returned.
    environment : Environment
        The population of the run.
    limit : float
        The gap that no policy should exceed.
    optimum : float, optional
        The loss that regret is measured against; by default that of the run.

    Returns
    -------
    RunRecord
        The run as plain numbers.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulation import simulate
    >>> world = lending()
    >>> record(simulate(AcceptAll(), world, 100, 0), world, limit=0.1).accepted.tolist()
    [100]
    """
    learner = run.learner
    slack = getattr(learner, "slack", None)
    regret_inside = None
    table = isinstance(environment, TablePopulation)
    if isinstance(learner, ExploringLearner) and slack is not None and table:
        truth = policy_set(learner, environment)
        regret_inside = float(_regret_after_exploration(run, truth.best_loss)[-1])

    in_sample = None
    certified = None
    if isinstance(environment, Discrete) and isinstance(learner, EpochLearner):
        in_sample = in_sample_gaps(run.policies, learner, environment)
        if isinstance(learner, CertifiedLearner):
            certified = certified_gaps(learner)[: len(run.rounds)]

    best = run.optimum if optimum is None else optimum
    return RunRecord(
        seed=run.seed,
        rounds=run.rounds,
        regret=np.cumsum(run.lengths * (run.losses - best)),
        gaps=run.gaps,
        losses=run.losses,
        accepted=run.accepted,
        phases=run.phases,
        optimum=best,
        oracle_calls=run.oracle_calls,
        seconds=run.seconds,
        constant=best_constant(environment, learner),
        guaranteed=guarantees(learner, limit),
        learned=np.array([learned_weight(policy) for policy in run.policies]),
        audit=np.array([audit_weight(policy) for policy in run.policies]),
        in_sample=in_sample,
        certified=certified,
        slack=None if slack is None else slack.beta,
        regret_in_set=regret_inside,
        note=notes_of(learner),
    )


def guarantees(learner: Learner, limit: float) -> bool:
    """Return whether the learner's own bound covers a limit for every policy it has deployed.

    Constants have a gap of 0. A certified learner covers its own limit. A two-phase learner needs
    limit + beta of its set Pi within the limit. Other learners guarantee nothing.

    Parameters
    ----------
    learner : Learner
        A learner after its run.
    limit : float
        The gap that no policy should exceed; no gap exceeds 1.

    Returns
    -------
    bool
        Whether the limit is guaranteed.

    Examples
    --------
    >>> from evenhand.learners import AcceptAll, Unconstrained
    >>> from evenhand.hypotheses import Stumps
    >>> guarantees(AcceptAll(), 0.1), guarantees(Unconstrained(Stumps(), "fpr"), 0.1)
    (True, False)
    """
    if limit >= 1 or isinstance(learner, AcceptAll | Uniform):
        return True
    if isinstance(learner, CertifiedLearner):
        return learner.limit <= limit
    if not isinstance(learner, ExploringLearner):
        return False
    if learner.paper.is_printed:  # an order, with no constant claimed
        return False
    return learner.slack is None or learner.slack.limit + learner.slack.beta <= limit + 1e-9


def notes_of(learner: Learner) -> str:
    """The remarks of a learner with epochs about its run."""
    if not isinstance(learner, EpochLearner):
        return ""
    return " ".join(note.text for note in learner.notes)


# epoch by epoch


def in_sample_gaps(
    policies: Sequence[Policy], learner: EpochLearner, environment: Discrete
) -> FloatArray:
    """The largest |gap| of each policy on the labels that were gathered before its epoch."""
    # the labels that each epoch gathered, (good, bad) per context; a context's number is its
    # only feature
    contexts = len(environment)
    by_epoch: dict[int, FloatArray] = {}
    for epoch, log in learner.gathered:
        place = log.features[:, 0].astype(np.int64)
        counts = [np.bincount(place, column, contexts) for column in (log.positive, log.negative)]
        by_epoch[epoch] = by_epoch.get(epoch, np.zeros((2, contexts))) + np.array(counts)

    gathered = np.zeros((2, contexts))
    gaps = []
    for number, policy in enumerate(policies, start=1):
        # the policy was chosen before its own epoch gathered anything
        gaps.append(_gap_on(gathered, policy, environment, learner.rates))
        gathered = gathered + by_epoch.get(number, 0.0)
    return np.array(gaps)


def certified_gaps(learner: CertifiedLearner) -> FloatArray:
    """The largest |gap| that the certificate allowed in each epoch."""
    bounds = [
        max(float(upper.max(initial=0.0)), float(-lower.min(initial=0.0)))
        for _, lower, upper in learner.trail
    ]
    return np.array(bounds)


def _gap_on(
    labels: FloatArray, policy: Policy, environment: Discrete, rates: Sequence[Rate]
) -> float:
    """The largest |gap| of a policy on gathered labels, (good, bad) per context; NaN where the
    labels do not say.
    """
    table = environment.population_sample()
    count = labels.ravel()
    seen = count > 0
    if not seen.any():
        return float("nan")
    sample = LabelledSample(table.features[seen], table.group[seen], table.label[seen], count[seen])
    try:
        constraints = GapConstraints.on(rates, sample)
    except CannotEstimateRate:
        return float("nan")
    return float(np.abs(constraints.gaps(policy.acceptance(sample.features, sample.group))).max())


def learned_weight(policy: Policy) -> float:
    """How much of a policy is not a constant; all of one that is no mixture."""
    if not isinstance(policy, Mixture):
        return 1.0
    parts = zip(policy.hypotheses, policy.weights, strict=True)
    return float(sum(weight for rule, weight in parts if rule not in (ACCEPT_ALL, REJECT_ALL)))


def audit_weight(policy: Policy) -> float:
    """The weight of accepting all applicants; 0 for a policy that is no mixture."""
    return float(policy.weight_of(ACCEPT_ALL)) if isinstance(policy, Mixture) else 0.0


def best_constant(environment: Environment, learner: Learner) -> float:
    """The loss of the better constant that a learner may deploy: accepting or rejecting all
    applicants, or the largest or the smallest share that is permitted, by lot.
    """
    accept, reject = constant_costs(environment, learner.prices)
    return min(share * accept + (1.0 - share) * reject for share in permitted_shares(learner))


def constant_costs(environment: Environment, prices: Prices) -> tuple[float, float]:
    """The cost per person of accepting all applicants, and of rejecting all of them."""
    accept = environment.loss(Mixture((ACCEPT_ALL,), (1.0,)), prices)
    reject = environment.loss(Mixture((REJECT_ALL,), (1.0,)), prices)
    return float(accept), float(reject)


def value_at(last_rounds: IntArray, values: FloatArray, rounds: FloatArray) -> FloatArray:
    """The value of the epoch in which each round lies, of epochs that end at `last_rounds`."""
    return values[np.minimum(np.searchsorted(last_rounds, rounds), len(values) - 1)]


# the truth about a two-phase learner's own set


@dataclass(frozen=True, eq=False)
class PolicySet:
    """The truth about the set Pi that a two-phase learner competes in.

    Parameters
    ----------
    best_loss, best : float, Mixture
        The smallest loss of a member, and that member.
    worst_gap, worst : float, Mixture
        The largest |gap| of a member, and that member.
    limit : float
        The empirical gap that members of the set may have on the exploration sample.
    guarantee : float
        The gap that the learner guarantees.
    beta : float
        The slack of the exploration sample.
    """

    best_loss: float
    best: Mixture
    worst_gap: float
    worst: Mixture
    limit: float
    guarantee: float
    beta: float


def policy_set(learner: Learner, environment: Environment) -> PolicySet:
    """Find the best and the worst member of the set of a learner whose exploration is over.

    Parameters
    ----------
    learner : TwoPhaseLearner
        A learner after its exploration.
    environment : TablePopulation
        A population that is a table, such as `Discrete` or `Replay`.

    Returns
    -------
    PolicySet
        The truth about the set.

    Raises
    ------
    InvalidInput
        If the learner has no set, or not yet, or the population is not a table.

    Notes
    -----
    best loss = min over pi in Pi of loss(pi); worst gap = max over pi in Pi and gaps k of
    |gap_k(pi) on D| (section 3.1 of the paper).

    Examples
    --------
    >>> import evenhand as eh
    >>> world = eh.environments.lending()
    >>> learner = eh.TwoPhaseLearner(
    ...     world.hypotheses, eh.FalsePositiveRate(), 0.5, 0.05, 1_000, exploration_rounds=400
    ... )
    >>> run = eh.simulate(learner, world, rounds=1_000, seed=0)
    >>> truth = policy_set(run.learner, world)
    >>> truth.worst_gap <= truth.limit + truth.beta
    True
    """
    known, sample, slack = _explored(learner)
    if not isinstance(environment, TablePopulation):
        raise InvalidInput(
            "the truth about a set of policies needs a population that is a table, "
            f"not {type(environment).__name__}.",
            hint="use Discrete or Replay.",
        )
    truth = environment.population_sample()
    # the learner's own constraint, with the rows of the population as objective
    fair = bind_fair(
        known.hypotheses,
        truth.features,
        truth.group if known.group_use == "decide" else None,
        known.rates,
        sample,
        min(slack.limit, 1.0),  # as the learner has it: no gap exceeds 1
        group_use=known.group_use,
    )
    best = fair.cheapest(truth.weight * known.prices.acceptance_cost(truth.label)).policy
    # argmax over the set of |gap_k|: the costs are -gap_k and +gap_k, for each k
    gaps = GapConstraints.on(known.rates, truth)
    costs = (sign * channel for channel in gaps.pairs @ gaps.channels for sign in (-1.0, 1.0))
    worst = min(map(fair.cheapest, costs), key=lambda solution: solution.cost).policy
    return PolicySet(
        best_loss=float(environment.loss(best, known.prices)),
        best=best,
        worst_gap=float(np.abs(environment.gaps(worst, known.rates)).max()),
        worst=worst,
        limit=slack.limit,
        guarantee=slack.guarantee,
        beta=slack.beta,
    )


def _explored(learner: Learner) -> tuple[ExploringLearner, LabelledSample, Slack]:
    """A learner whose exploration is over, with the sample and the slack that it ended with."""
    if not isinstance(learner, ExploringLearner):
        raise InvalidInput(
            f"{type(learner).__name__} has no exploration sample; "
            "only two-phase learners compete in a set of their own.",
            hint="use Run.regret, which compares with the best fair policy of the population.",
        )
    if learner.sample is None or learner.slack is None:
        raise InvalidInput(
            f"the learner is still exploring after {learner.round} rounds; "
            "its set is not yet known.",
            hint="simulate more rounds; report.notes says how many are missing.",
        )
    return learner, learner.sample, learner.slack


def regret_in_set(run: Run[Learner], environment: Environment) -> FloatArray:
    """Return the regret of the bandit alone: to the best policy of the learner's own set.

    Parameters
    ----------
    run : Run
        A run of a two-phase learner whose exploration is over.
    environment : Environment
        The population of the run.

    Returns
    -------
    array of float
        At the end of each epoch, the sum over rounds after the exploration of loss(pi_t) minus the
        best loss in the set. It is never negative, because every deployed policy belongs to the
        (convex) set.

    Examples
    --------
    >>> import evenhand as eh
    >>> world = eh.environments.lending()
    >>> learner = eh.TwoPhaseLearner(
    ...     world.hypotheses, eh.FalsePositiveRate(), 0.5, 0.05, 1_000, exploration_rounds=400
    ... )
    >>> run = eh.simulate(learner, world, rounds=1_000, seed=0)
    >>> float(regret_in_set(run, world)[0])
    0.0
    """
    return _regret_after_exploration(run, policy_set(run.learner, environment).best_loss)


def _regret_after_exploration(run: Run[Learner], best_loss: float) -> FloatArray:
    later = np.array([phase != "explore" for phase in run.phases])
    return np.asarray(np.cumsum(run.lengths * later * (run.losses - best_loss)))
