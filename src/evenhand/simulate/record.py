"""What is kept of a run, as plain numbers: small enough to come back from another process and to be
stored as JSON. A `RunRecord` holds the run itself; for learners and populations that allow it, it
also holds

    trail        what was certified, what was true, and what ordinary tools would have measured,
                 epoch by epoch
    policy set   the truth about the set Pi that a two-phase learner competes in (section 3.1)

Only a simulator can know the truth about Pi = {mixtures pi : |gap of pi on the exploration sample|
<= limit}. The sample fixes the set when the exploration ends; the population says how good its best
member is and how unfair its worst one, each by one call of the fair oracle with true costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from evenhand.contracts import Environment, Json, Learner, Params, Policy, Rate
from evenhand.environments import Discrete
from evenhand.environments.population import TablePopulation
from evenhand.errors import CannotEstimateRate, InvalidInput
from evenhand.faircsc import bind_fair
from evenhand.fairness import GapConstraints
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import AcceptAll, CertifiedLearner, EpochLearner, TwoPhaseLearner, Uniform
from evenhand.learners.exploration import Slack
from evenhand.policies import Mixture
from evenhand.shown import Brief, plain_fields
from evenhand.simulate.run import Run, Stretches
from evenhand.words import FloatArray, IntArray, LabelledSample, Prices

# the record of a run


@dataclass(frozen=True, eq=False, repr=False)
class RunRecord(Stretches, Brief):
    """A run as plain numbers, one entry per stretch of rounds with one policy.

    Parameters
    ----------
    seed, rounds, regret, gaps, losses, accepted, phases, optimum, oracle_calls, seconds
        As in `Run`.
    promised : bool
        Whether the learner's own bound covers the limit for every policy that it deployed.
    slack : float, optional
        beta of the exploration sample of a two-phase learner.
    regret_in_set, worst_gap_in_set : float, optional
        The truth about the learner's own set Pi.
    note : str
        What the learner itself has to say.
    trail : Trail, optional
        The epochs, for learners with epochs on a discrete population.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulate import record, simulate
    >>> world = lending()
    >>> kept = record(simulate(AcceptAll(), world, rounds=100, seed=0), world, limit=0.1)
    >>> kept.promised, kept.explored, round(kept.worst_gap, 9)
    (True, 0, 0.0)
    >>> RunRecord.from_json(kept.to_json()).rounds.tolist()
    [100]
    """

    promised: bool
    slack: float | None = None
    regret_in_set: float | None = None
    worst_gap_in_set: float | None = None
    note: str = ""
    trail: "Trail | None" = None

    @property
    def explored(self) -> int:
        """The rounds in which everybody was accepted in order to learn."""
        return int(self.lengths[[phase == "explore" for phase in self.phases]].sum())

    @property
    def exploration_regret(self) -> float:
        """The part of the regret that those rounds cost."""
        exploring = np.array([phase == "explore" for phase in self.phases])
        return float((self.lengths * (self.losses - self.optimum))[exploring].sum())

    def to_json(self) -> Json:
        """Return the record as plain JSON.

        Returns
        -------
        dict
            One entry per field; arrays become lists.
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
        changed: Json = {"phases": tuple(document["phases"])}
        for name in ("rounds", "accepted"):
            changed[name] = np.array(document[name], np.int64)
        for name in ("regret", "gaps", "losses"):
            changed[name] = np.array(document[name], np.float64)
        if document.get("trail") is not None:
            changed["trail"] = Trail.from_json(document["trail"])
        return cls(**{**document, **changed})


def record(run: Run[Learner], environment: Environment, limit: float) -> RunRecord:
    """Keep the numbers of a run; consecutive epochs with the same policy become one stretch.

    Parameters
    ----------
    run : Run
        What `simulate` returned.
    environment : Environment
        The population on which it was played.
    limit : float
        The gap that no policy should exceed.

    Returns
    -------
    RunRecord
        The run as plain numbers.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulate import simulate
    >>> world = lending()
    >>> record(simulate(AcceptAll(), world, 100, 0), world, limit=0.1).accepted.tolist()
    [100]
    """
    same = (np.diff(run.gaps) == 0) & (np.diff(run.losses) == 0)
    same &= np.array(run.phases[1:], str) == np.array(run.phases[:-1], str)
    last = np.flatnonzero(np.append(~same, True))
    learner, slack = run.learner, getattr(run.learner, "slack", None)
    regret = gap = None
    table = isinstance(environment, TablePopulation)
    if isinstance(learner, TwoPhaseLearner) and slack is not None and table:
        regret = float(regret_in_set(run, environment)[-1])
        gap = policy_set(learner, environment).worst_gap
    return RunRecord(
        seed=run.seed,
        rounds=run.rounds[last],
        regret=run.regret[last],
        gaps=run.gaps[last],
        losses=run.losses[last],
        accepted=np.diff(np.cumsum(run.accepted)[last], prepend=0),
        phases=tuple(run.phases[i] for i in last),
        optimum=run.optimum,
        oracle_calls=run.oracle_calls,
        seconds=run.seconds,
        promised=promises(learner, limit),
        slack=None if slack is None else slack.beta,
        regret_in_set=regret,
        worst_gap_in_set=gap,
        note=notes_of(learner),
        trail=trail(run, environment),
    )


def promises(learner: Learner, limit: float) -> bool:
    """Tell whether the learner's own bound covers a limit for all that it has deployed.

    Constants have a gap of 0, a certified learner its allowed gap, and a two-phase learner needs
    limit + beta of its set Pi within the limit. Other learners promise nothing.

    Parameters
    ----------
    learner : Learner
        A learner after its run.
    limit : float
        The gap that no policy should exceed; a limit of 1 is kept by everybody.

    Returns
    -------
    bool
        Whether the limit is promised.

    Examples
    --------
    >>> from evenhand.learners import AcceptAll, Unconstrained
    >>> from evenhand.hypotheses import Stumps
    >>> promises(AcceptAll(), 0.1), promises(Unconstrained(Stumps(), "fpr"), 0.1)
    (True, False)
    """
    if limit >= 1 or isinstance(learner, AcceptAll | Uniform):
        return True
    if isinstance(learner, CertifiedLearner):
        return learner.allowed_gap <= limit
    if not isinstance(learner, TwoPhaseLearner):
        return False
    return learner.slack is None or learner.slack.limit + learner.slack.beta <= limit + 1e-9


def notes_of(learner: Learner) -> str:
    """What a learner with epochs has to say about its run."""
    return " ".join(learner.notes) if isinstance(learner, EpochLearner) else ""


# the epochs of a run


@dataclass(frozen=True, eq=False, repr=False)
class Trail(Brief):
    """A run epoch by epoch: the true gap, the certified one, and the one on the gathered labels.

    Parameters
    ----------
    rounds : array of int
        Where each epoch ends.
    gap : array of float
        |gap| of the epoch's policy on the population.
    in_sample : array of float
        |gap| of the policy on all labels gathered before the epoch, each label counted once, as if
        the accepted were the population; NaN where nothing was gathered yet.
    certified : array of float
        The largest |gap| that the learner's certificate allowed for the policy; NaN for learners
        that certify nothing.
    weight : array of float
        The share of the policy that is not a constant.
    audit : array of float
        The share of the policy that accepts everybody.

    Examples
    --------
    >>> import numpy as np
    >>> gap = np.array([0.0, 0.02, 0.04])
    >>> epochs = Trail(np.array([100, 400, 900]), gap, gap, gap + 0.01, 10 * gap, 1 - 10 * gap)
    >>> epochs.at("gap", np.array([50.0, 500.0])).tolist()
    [0.0, 0.04]
    >>> Trail.from_json(epochs.to_json()).certified.tolist()
    [0.01, 0.03, 0.05]
    """

    rounds: IntArray
    gap: FloatArray
    in_sample: FloatArray
    certified: FloatArray
    weight: FloatArray
    audit: FloatArray

    def at(self, column: str, rounds: FloatArray) -> FloatArray:
        """Return the value of a column in the epochs of given rounds.

        Parameters
        ----------
        column : str
            The name of the column.
        rounds : array of float
            The rounds.

        Returns
        -------
        array of float
            One value per round.
        """
        return value_at(self.rounds, getattr(self, column), rounds)

    def to_json(self) -> Json:
        """Return the epochs as plain JSON.

        Returns
        -------
        dict
            One list per column; NaN becomes null.
        """
        return plain_fields(self)

    @classmethod
    def from_json(cls, document: Params) -> "Trail":
        """Read what `to_json` wrote, bit for bit.

        Parameters
        ----------
        document : mapping
            What `to_json` returned.

        Returns
        -------
        Trail
            The same epochs.
        """
        rounds, *others = (one.name for one in fields(cls))
        columns = {name: np.array(document[name], np.float64) for name in others}
        return cls(np.array(document[rounds], np.int64), **columns)


def trail(run: Run[Learner], environment: Environment) -> Trail | None:
    """Follow a run epoch by epoch.

    Parameters
    ----------
    run : Run
        What `simulate` returned.
    environment : Environment
        The population on which it was played.

    Returns
    -------
    Trail or None
        None unless the learner has epochs and the population is `Discrete`.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import FairOnGathered
    >>> from evenhand.simulate import simulate
    >>> world = lending()
    >>> run = simulate(FairOnGathered(world.hypotheses, "fpr", 0.1), world, 1_000, seed=0)
    >>> epochs = trail(run, world)
    >>> epochs.rounds.tolist() == run.rounds.tolist(), epochs.gap.tolist() == run.gaps.tolist()
    (True, True)
    """
    learner = run.learner
    if not isinstance(environment, Discrete) or not isinstance(learner, EpochLearner):
        return None
    # the labels that each epoch gathered, (good, bad) per context; a context's number is its
    # only feature
    contexts = len(environment)
    by_epoch: dict[int, FloatArray] = {}
    for epoch, log in learner.gathered:
        place = log.features[:, 0].astype(np.int64)
        counts = [np.bincount(place, column, contexts) for column in (log.positive, log.negative)]
        by_epoch[epoch] = by_epoch.get(epoch, np.zeros((2, contexts))) + np.array(counts)
    gathered, in_sample = np.zeros((2, contexts)), []
    for number, policy in enumerate(run.policies, start=1):
        in_sample.append(_gap_on(gathered, policy, environment, learner.rates))
        gathered = gathered + by_epoch.get(number, 0.0)
    certified = np.full(len(run.rounds), np.nan)
    if isinstance(learner, CertifiedLearner):
        bounds = [
            max(float(upper.max(initial=0.0)), float(-lower.min(initial=0.0)))
            for _, lower, upper in learner.trail
        ]
        certified = np.array(bounds[: len(run.rounds)])
    return Trail(
        rounds=run.rounds,
        gap=run.gaps,
        in_sample=np.array(in_sample),
        certified=certified,
        weight=np.array([learned_weight(policy) for policy in run.policies]),
        audit=np.array([audit_weight(policy) for policy in run.policies]),
    )


def _gap_on(
    labels: FloatArray, policy: Policy, environment: Discrete, rates: Sequence[Rate]
) -> float:
    """The largest |gap| of a policy on gathered labels, (good, bad) per context; NaN where the
    labels do not say.
    """
    count, table = labels.ravel(), environment.population_sample()
    seen = count > 0
    if not seen.any():
        return float("nan")
    rows = (table.features[seen], table.group[seen], table.label[seen])
    sample = LabelledSample(*rows, count[seen])
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
    """The weight of accepting everybody; 0 for a policy that is no mixture."""
    return float(policy.weight_of(ACCEPT_ALL)) if isinstance(policy, Mixture) else 0.0


def constant_costs(environment: Environment, prices: Prices) -> tuple[float, float]:
    """The cost per person of accepting everybody, and of rejecting everybody."""
    accept, reject = (
        float(environment.loss(Mixture((rule,), (1.0,)), prices))
        for rule in (ACCEPT_ALL, REJECT_ALL)
    )
    return accept, reject


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
    promise : float
        The gap that the learner promises.
    beta : float
        The slack of the exploration sample.

    Examples
    --------
    >>> from evenhand.policies import Mixture
    >>> from evenhand.hypotheses.constants import ACCEPT_ALL
    >>> constant = Mixture((ACCEPT_ALL,), (1.0,))
    >>> PolicySet(0.4, constant, 0.0, constant, limit=0.1, promise=0.2, beta=0.1).worst_gap
    0.0
    """

    best_loss: float
    best: Mixture
    worst_gap: float
    worst: Mixture
    limit: float
    promise: float
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
        slack.limit,
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
        promise=slack.promise,
        beta=slack.beta,
    )


def _explored(learner: Learner) -> tuple[TwoPhaseLearner, LabelledSample, Slack]:
    """A learner whose exploration is over, with the sample and the slack that it ended with."""
    if not isinstance(learner, TwoPhaseLearner):
        raise InvalidInput(
            f"{type(learner).__name__} has no exploration sample; "
            "only two-phase learners compete in a set of their own.",
            hint="use Run.regret, which compares with the best fair policy of the population.",
        )
    if learner.sample is None or learner.slack is None:
        raise InvalidInput(
            f"the learner is still exploring after {learner.round} rounds; "
            "its set is not yet known.",
            hint="play more rounds; report.notes says how many are missing.",
        )
    return learner, learner.sample, learner.slack


def regret_in_set(run: Run[Learner], environment: Environment) -> FloatArray:
    """Return the regret of the bandit alone: to the best policy of the learner's own set.

    Parameters
    ----------
    run : Run
        A run of a two-phase learner whose exploration is over.
    environment : Environment
        The population on which it was played.

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
    later = np.array([phase != "explore" for phase in run.phases])
    best = policy_set(run.learner, environment).best_loss
    return np.asarray(np.cumsum(run.lengths * later * (run.losses - best)))
