"""Many learners, many seeds, one population: runs in parallel, and the figures by which they are
compared.

Every (learner, seed) is a task of its own with its own named streams, so the number of processes
changes nothing but the time.

Two more figures over many runs: what a longer exploration buys and costs (`tradeoff`), and what a
promised limit costs (`promise_cost`).

The trade-off of the paper's main theorem: exploring T^(2 alpha) rounds buys a gap of order
T^(-alpha). For each exponent alpha in [1/4, 1/2] and each horizon T, over seeds:

    excess gap    max over the learner's set Pi of |gap on D|, minus gamma;
                  theory: slope -alpha in T
    cost          regret of the exploration, plus the bandit's regret to the best policy in Pi;
                  theory: slope 2 alpha (up to 1)

The cost of a promise, per person:

    best without a limit + price of the limit    + price of learning and certifying it
    = opt(1)             + (opt(limit) - opt(1)) + (mean loss of the learner - opt(limit))
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import product
from math import sqrt
from typing import TypeVar

import numpy as np
import scipy

from evenhand.contracts import Environment, HypothesisClass, Json, Learner, Params
from evenhand.environments.population import TablePopulation
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import Rate
from evenhand.learners import CertifiedLearner, TwoPhaseLearner
from evenhand.shown import Brief, plain, plain_fields
from evenhand.simulate.record import RunRecord, constant_costs, record
from evenhand.simulate.run import Engine, simulate
from evenhand.words import FloatArray

Given = TypeVar("Given")
Answered = TypeVar("Answered")
EXPONENTS = (1 / 4, 1 / 3, 1 / 2)
HORIZONS = 5
"""How many horizons, from T/10 to 10 T."""
TABLES = "lending, random, thresholds, lower-bound or hard"
LIMITS = (0.02, 0.04, 0.07, 0.12, 0.2)
MOST_SEEDS = 3
"""Runs per limit at most: the figure shows a trend, not a claim."""


@dataclass(frozen=True)
class RunToPlay:
    """One run to be played.

    regret_gap: the gap of the policies that the regret is measured against; limit: the promise.
    """

    learner: Learner
    environment: Environment
    rounds: int
    seed: int
    regret_gap: float
    limit: float
    engine: Engine = "auto"


def play_all(
    tasks: Sequence[RunToPlay], jobs: int = 1, progress: Callable[[int], None] | None = None
) -> tuple[RunRecord, ...]:
    """Play all tasks on `jobs` processes; the answers are in the order of the tasks, whatever order
    they finished in.
    """
    kept = {}
    for number, answer in in_processes(_play, list(enumerate(tasks)), require_jobs(jobs)):
        kept[number] = answer
        if progress is not None:
            progress(len(kept))
    return tuple(kept[number] for number in range(len(tasks)))


def require_jobs(jobs: int) -> int:
    """At least one process."""
    if jobs < 1:
        raise InvalidInput(f"jobs is {jobs}; at least one process must do the work.")
    return jobs


def in_processes(
    work: Callable[[Given], Answered], tasks: Sequence[Given], jobs: int
) -> Iterator[Answered]:
    """The answers to all tasks, as they come: from this process, or from several (joblib), each of
    which has one task at a time.
    """
    if jobs == 1 or len(tasks) < 2:
        yield from map(work, tasks)
        return
    from joblib import Parallel, delayed  # type: ignore[import-untyped]  # for parallel runs

    processes = min(jobs, len(tasks))
    pool = Parallel(processes, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
    with warnings.catch_warnings():
        # joblib replaces a process whose memory has grown, as VW's does, and warns; the task
        # itself is played
        ignored = "A worker stopped while some jobs"
        warnings.filterwarnings("ignore", message=ignored, category=UserWarning)
        yield from pool(delayed(work)(task) for task in tasks)


def _play(numbered: tuple[int, RunToPlay]) -> tuple[int, RunRecord]:
    number, task = numbered
    run = simulate(
        task.learner, task.environment, task.rounds, task.seed, task.regret_gap, engine=task.engine
    )
    return number, record(run, task.environment, task.limit)


@dataclass(frozen=True)
class Summary:
    """One learner of a comparison in one row: means over its runs.

    Parameters
    ----------
    name : str
        The learner's name.
    runs : int
        How many runs there were.
    regret, regret_error : float
        The mean regret, and the standard error of the mean (None for a single run).
    regret_in_set : float or None
        The mean regret to the best policy of the learner's own set.
    worst_gap : float
        The largest |true gap| of any run.
    runs_above : int
        Runs in which any policy was above the promise.
    runs_above_upper : float
        The 95% upper confidence limit (Clopper and Pearson) for the chance of that, from these runs
        alone.
    rounds_above : float
        The mean share of rounds above the promise.
    accepted_share, explored_rounds, oracle_calls, seconds : float
        Means over the runs.
    promised : bool
        Whether the learner's own bound covers the promise in every run.
    exploring : int
        Runs that never left the exploration.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0, 1],
    ...     promise=0.1, failure_probability=0.05, regret_gap=0.1,
    ... )
    >>> row = comparison.summaries[0]
    >>> row.name, row.runs, row.accepted_share, row.promised
    ('accept-all', 2, 1.0, True)
    """

    name: str
    runs: int
    regret: float
    regret_error: float | None
    regret_in_set: float | None
    worst_gap: float
    runs_above: int
    runs_above_upper: float
    rounds_above: float
    accepted_share: float
    explored_rounds: float
    oracle_calls: float
    seconds: float
    promised: bool
    exploring: int


@dataclass(frozen=True, eq=False, repr=False)
class LearnerRuns(Brief):
    """All runs of one learner of a comparison.

    Parameters
    ----------
    name : str
        The learner's name.
    params : mapping
        Its settings, without the seed.
    runs : tuple of RunRecord
        One run per seed.

    Examples
    --------
    >>> import numpy as np
    >>> two, zero = np.array([1, 2]), np.zeros(2)
    >>> run = RunRecord(0, two, two * 1.5, zero, zero, two, ("a", "b"), 0.0, 0, 0.0, True)
    >>> runs = LearnerRuns("example", {}, (run, run))
    >>> runs.regret_curves(np.array([0.5, 2.0])).tolist()
    [[0.75, 3.0], [0.75, 3.0]]
    >>> runs.summary(0.1).regret
    3.0
    """

    name: str
    params: Params
    runs: tuple[RunRecord, ...]

    def regret_curves(self, rounds: FloatArray) -> FloatArray:
        """Return the cumulative regret of each run.

        Parameters
        ----------
        rounds : array of float
            After how many rounds.

        Returns
        -------
        array of float
            (runs, rounds).
        """
        return np.array([run.regret_at(rounds) for run in self.runs])

    def summary(self, promise: float) -> Summary:
        """Return the means over the runs.

        Parameters
        ----------
        promise : float
            The gap above which a round counts as a violation.

        Returns
        -------
        Summary
            One row.
        """
        runs, last = self.runs, np.array([run.regret[-1] for run in self.runs])
        inside = [run.regret_in_set for run in runs if run.regret_in_set is not None]
        shares = [run.share_above(promise) for run in runs]
        runs_above = sum(share > 0 for share in shares)
        return Summary(
            name=self.name,
            runs=len(runs),
            regret=float(last.mean()),
            regret_error=float(last.std(ddof=1) / sqrt(len(runs))) if len(runs) > 1 else None,
            regret_in_set=float(np.mean(inside)) if inside else None,
            worst_gap=max(run.worst_gap for run in runs),
            runs_above=runs_above,
            runs_above_upper=upper_limit(runs_above, len(runs)),
            rounds_above=float(np.mean(shares)),
            accepted_share=float(np.mean([run.accepted.sum() / run.rounds[-1] for run in runs])),
            explored_rounds=float(np.mean([run.explored for run in runs])),
            oracle_calls=float(np.mean([run.oracle_calls for run in runs])),
            seconds=float(np.mean([run.seconds for run in runs])),
            promised=all(run.promised for run in runs),
            exploring=sum(run.phases[-1] == "explore" for run in runs),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Brief):
    """Several learners on one population.

    Parameters
    ----------
    environment : mapping
        The population's `params`.
    rounds : int
        Rounds of each run.
    seeds : tuple of int
        The seeds of each learner's runs.
    promise : float
        gamma', the gap that counts as a violation when it is exceeded.
    failure_probability : float
        delta, the share of runs in which a certified learner may exceed it.
    regret_gap : float
        Regret is measured against the best policy with gaps of at most this.
    optimum : float
        The loss of that policy.
    learners : tuple of LearnerRuns
        All runs.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0],
    ...     promise=0.1, failure_probability=0.05, regret_gap=0.1,
    ... )
    >>> again = Comparison.from_json(comparison.to_json())
    >>> again.summaries == comparison.summaries
    True
    """

    environment: Params
    rounds: int
    seeds: tuple[int, ...]
    promise: float
    failure_probability: float
    regret_gap: float
    optimum: float
    learners: tuple[LearnerRuns, ...]

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """One row per learner."""
        return tuple(learner.summary(self.promise) for learner in self.learners)

    def to_json(self) -> Json:
        """Return the comparison as plain JSON.

        Returns
        -------
        dict
            The settings, the summaries, and every run.
        """
        document = plain_fields(self)
        learners = document.pop("learners")
        return {**document, "summaries": plain(self.summaries), "learners": learners}

    @classmethod
    def from_json(cls, document: Params) -> "Comparison":
        """Read what `to_json` wrote, bit for bit; summaries are computed anew.

        Parameters
        ----------
        document : mapping
            What `to_json` returned.

        Returns
        -------
        Comparison
            The same comparison.
        """
        known: Json = {one.name: document[one.name] for one in fields(cls)}
        known["seeds"] = tuple(document["seeds"])
        known["learners"] = tuple(
            LearnerRuns(one["name"], one["params"], tuple(map(RunRecord.from_json, one["runs"])))
            for one in document["learners"]
        )
        return cls(**known)


def compare(
    learners: Mapping[str, Learner],
    environment: Environment,
    rounds: int,
    seeds: Sequence[int],
    *,
    promise: float,
    failure_probability: float,
    regret_gap: float,
    engine: Engine = "auto",
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Run every learner with every seed on one population.

    The same seed means the same people for each learner, as far as their decisions agree.

    Parameters
    ----------
    learners : mapping of str to Learner
        The learners by name.
    environment : Environment
        The population.
    rounds : int
        Rounds of each run.
    seeds : sequence of int
        One run per seed and learner.
    promise : float
        The gap above which a round counts as a violation.
    failure_probability : float
        delta of the certified learners, for the report.
    regret_gap : float
        Regret is measured against the best policy with gaps of at most this.
    engine : {"auto", "events", "counts"}
        As for `simulate`.
    jobs : int
        How many processes do the work.
    progress : callable, optional
        Called with the number of runs that are finished.

    Returns
    -------
    Comparison
        All runs.

    Raises
    ------
    InvalidInput
        If there is no learner or no seed, or `jobs` is below 1.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll, Uniform
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll(), "coin": Uniform()}, lending(), rounds=100, seeds=[0],
    ...     promise=0.1, failure_probability=0.05, regret_gap=0.1,
    ... )
    >>> [row.name for row in comparison.summaries]
    ['accept-all', 'coin']
    """
    if not learners or not seeds:
        raise InvalidInput(
            f"{len(learners)} learners and {len(seeds)} seeds were given; "
            "a comparison needs one of each."
        )
    tasks = [
        RunToPlay(learner, environment, rounds, seed, regret_gap, promise, engine)
        for learner in learners.values()
        for seed in seeds
    ]
    runs, each = play_all(tasks, jobs, progress), len(seeds)
    by_learner = []
    for i, (name, learner) in enumerate(learners.items()):
        params = {key: value for key, value in learner.params.items() if key != "seed"}
        by_learner.append(LearnerRuns(name, params, runs[i * each : (i + 1) * each]))
    return Comparison(
        environment=dict(environment.params),
        rounds=rounds,
        seeds=tuple(seeds),
        promise=promise,
        failure_probability=failure_probability,
        regret_gap=regret_gap,
        optimum=runs[0].optimum,
        learners=tuple(by_learner),
    )


def upper_limit(events: int, trials: int, confidence: float = 0.95) -> float:
    """The exact (Clopper-Pearson) one-sided upper confidence limit for a probability, from `events`
    in `trials`.

    >>> round(upper_limit(0, 20), 3), upper_limit(3, 3)
    (0.139, 1.0)
    """
    if events >= trials:
        return 1.0
    return float(scipy.special.betaincinv(events + 1, trials - events, confidence))


# over exponents and horizons, and over limits


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff(Brief):
    """What longer explorations bought and cost: means over seeds.

    Parameters
    ----------
    exponents : tuple of float
        The exponents alpha.
    horizons : tuple of int
        The horizons T.
    seeds : tuple of int
        The seeds of each mean.
    comparator_gap : float
        gamma.
    excess_gap, cost, explored : array of float
        (exponents, horizons): the worst gap in the set beyond gamma, the regret of the exploration
        plus the regret inside the set, and the rounds explored.

    Examples
    --------
    >>> import numpy as np
    >>> gap = np.array([[0.2, 0.1]])
    >>> measured = Tradeoff((0.25,), (100, 1600), (0,), 0.02, gap, 1 / gap**2, 1 / gap)
    >>> round(measured.slope(0, "excess_gap"), 2), round(measured.slope(0, "cost"), 2)
    (-0.25, 0.5)
    >>> measured.to_json()["horizons"]
    [100, 1600]
    """

    exponents: tuple[float, ...]
    horizons: tuple[int, ...]
    seeds: tuple[int, ...]
    comparator_gap: float
    excess_gap: FloatArray
    cost: FloatArray
    explored: FloatArray

    def slope(self, row: int, what: str) -> float:
        """Return the least-squares slope of log(what) against log T for one exponent.

        Parameters
        ----------
        row : int
            The place of the exponent.
        what : {"excess_gap", "cost"}
            What grows or falls with T.

        Returns
        -------
        float
            The slope; NaN if a value is not positive.
        """
        values = np.asarray(getattr(self, what))[row]
        if not (values > 0).all():
            return float("nan")
        return float(np.polyfit(np.log(self.horizons), np.log(values), 1)[0])

    def to_json(self) -> Json:
        """Return the measures as plain JSON, with the slopes.

        Returns
        -------
        dict
            One entry per field, and "slopes", where a slope that does not exist is null.
        """
        slopes = {
            what: [self.slope(row, what) for row in range(len(self.exponents))]
            for what in ("excess_gap", "cost")
        }
        return {**plain_fields(self), "slopes": plain(slopes)}


def tradeoff(
    environment: Environment,
    hypotheses: HypothesisClass,
    rate: Rate,
    rounds: int,
    seeds: Sequence[int],
    *,
    comparator_gap: float,
    failure_probability: float,
    exponents: Sequence[float] = EXPONENTS,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Tradeoff:
    """Play the two-phase learner at each exponent and horizon.

    Parameters
    ----------
    environment : TablePopulation
        A population that is a table; elsewhere the learner's set has no known truth.
    hypotheses : HypothesisClass
        The class of the learner.
    rate : Rate
        The rate whose gap is limited.
    rounds : int
        The horizons reach from a tenth of this to ten times as many.
    seeds : sequence of int
        One run per seed, exponent and horizon.
    comparator_gap : float
        gamma, the gap of the policies that the learner competes with.
    failure_probability : float
        delta.
    exponents : sequence of float
        The exponents alpha.
    jobs : int
        How many processes do the work.
    progress : callable, optional
        Called with the number of runs that are finished.

    Returns
    -------
    Tradeoff
        Means over the seeds.

    Raises
    ------
    InvalidInput
        If the population is not a table, there are fewer than 1000 rounds, or a run did not finish
        its exploration.

    Notes
    -----
    The main theorem of the paper: T_0 = T^(2 alpha) rounds of exploration give a gap of
    gamma + O(T^(-alpha)) and a regret of O(T^(2 alpha)).

    Examples
    --------
    >>> import evenhand as eh
    >>> world = eh.environments.lending()
    >>> measured = tradeoff(
    ...     world, world.hypotheses, eh.FalsePositiveRate(), 1_000, [0],
    ...     comparator_gap=0.02, failure_probability=0.05, exponents=[1 / 2],
    ... )
    >>> measured.horizons
    (100, 316, 1000, 3162, 10000)
    """
    if not isinstance(environment, TablePopulation):
        raise InvalidInput(
            f"the truth about a learner's set is not known on {type(environment).__name__}, "
            "so there is no trade-off to measure.",
            hint=f"use a population that is a table: {TABLES}.",
        )
    if rounds < 1000:
        raise InvalidInput(
            f"the trade-off is measured from a tenth of {rounds} rounds to ten times as many; "
            "it needs at least 1000."
        )
    horizons = tuple(int(h) for h in np.geomspace(rounds / 10, rounds * 10, HORIZONS).round())
    tasks, settings = [], (hypotheses, rate, None, failure_probability)
    for alpha, horizon in product(exponents, horizons):
        learner = TwoPhaseLearner(
            *settings, horizon, comparator_gap=comparator_gap, tradeoff_exponent=alpha
        )
        play = partial(RunToPlay, regret_gap=comparator_gap, limit=1.0)
        tasks += [play(learner, environment, horizon, seed) for seed in seeds]
    measures = np.array([_gap_cost_explored(run) for run in play_all(tasks, jobs, progress)])
    shape = (len(exponents), len(horizons), len(seeds))
    gaps, cost, explored = (column.reshape(shape).mean(axis=2) for column in measures.T)
    grid = (tuple(exponents), horizons, tuple(seeds))
    return Tradeoff(*grid, comparator_gap, gaps - comparator_gap, cost, explored)


def _gap_cost_explored(run: RunRecord) -> tuple[float, float, float]:
    if run.worst_gap_in_set is None:
        raise InvalidInput(
            f"a run of {run.rounds[-1]} rounds (seed {run.seed}) did not finish its exploration, "
            "so it has no set to measure.",
            hint="use more rounds.",
        )
    cost = run.exploration_regret + (run.regret_in_set or 0.0)
    return run.worst_gap_in_set, cost, float(run.explored)


@dataclass(frozen=True)
class PromiseCost:
    """What promising a limit costs per person, over a grid of limits.

    Parameters
    ----------
    limits : tuple of float
        The limits; the fields below have one entry per limit.
    learner, low, high : tuple of float
        The mean, the least and the largest cost of the simulated runs.
    optimum : tuple of float
        The cost of the best policy within the limit.
    unlimited : float
        The cost of the best policy without a limit.
    constant : float
        The cost of the better constant.
    rounds : int
        Rounds of each run.
    seeds : tuple of int
        The seeds of each mean.

    Examples
    --------
    >>> cost = PromiseCost(
    ...     limits=(0.05, 0.1), learner=(0.35, 0.33), low=(0.34, 0.32), high=(0.36, 0.34),
    ...     optimum=(0.3, 0.28), unlimited=0.26, constant=0.41, rounds=8_000, seeds=(0, 1),
    ... )
    >>> PromiseCost.from_json(cost.to_json()) == cost
    True
    """

    limits: tuple[float, ...]
    learner: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    optimum: tuple[float, ...]
    unlimited: float
    constant: float
    rounds: int
    seeds: tuple[int, ...]

    def to_json(self) -> Json:
        """Return the costs as plain JSON.

        Returns
        -------
        dict
            One entry per field.
        """
        return plain_fields(self)

    @classmethod
    def from_json(cls, document: Params) -> "PromiseCost":
        """Read what `to_json` wrote.

        Parameters
        ----------
        document : mapping
            What `to_json` returned.

        Returns
        -------
        PromiseCost
            The same costs.
        """
        known: Json = {one.name: document[one.name] for one in fields(cls)}
        for name, value in known.items():
            known[name] = tuple(value) if isinstance(value, list) else value
        return cls(**known)


def promise_cost(
    learners: Sequence[CertifiedLearner],
    environment: Environment,
    rounds: int,
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> PromiseCost:
    """Play certified learners that promise different limits, and tell what each limit costs.

    Parameters
    ----------
    learners : sequence of CertifiedLearner
        The learners, alike but for the limit that they promise.
    environment : Environment
        The population.
    rounds : int
        Rounds of each run.
    seeds : sequence of int
        One run per seed and limit, of at most three seeds.
    jobs : int
        How many processes do the work.
    progress : callable, optional
        Called with the number of runs that are finished.

    Returns
    -------
    PromiseCost
        Costs per person.

    Examples
    --------
    >>> import evenhand as eh
    >>> world = eh.environments.lending()
    >>> certified = [
    ...     eh.CertifiedLearner(world.hypotheses, eh.FalsePositiveRate(), limit, 0.05)
    ...     for limit in (0.1, 0.2)
    ... ]
    >>> cost = promise_cost(certified, world, rounds=500, seeds=[0])
    >>> cost.unlimited <= cost.optimum[1] <= cost.optimum[0] <= cost.constant
    True
    """
    learners, chosen = sorted(learners, key=lambda one: one.allowed_gap), tuple(seeds)[:MOST_SEEDS]
    grid = tuple(learner.allowed_gap for learner in learners)
    tasks = [
        RunToPlay(learner, environment, rounds, seed, limit, limit)
        for learner, limit in zip(learners, grid, strict=True)
        for seed in chosen
    ]
    runs = play_all(tasks, jobs, progress)
    costs = np.array([float(run.lengths @ run.losses) / rounds for run in runs])
    costs = costs.reshape(len(grid), len(chosen))
    rates, prices = learners[0].rates, learners[0].prices
    return PromiseCost(
        limits=grid,
        learner=tuple(costs.mean(axis=1).tolist()),
        low=tuple(costs.min(axis=1).tolist()),
        high=tuple(costs.max(axis=1).tolist()),
        optimum=tuple(float(environment.optimum(limit, rates, prices)[0]) for limit in grid),
        unlimited=float(environment.optimum(1.0, rates, prices)[0]),
        constant=float(min(constant_costs(environment, prices))),
        rounds=rounds,
        seeds=chosen,
    )
