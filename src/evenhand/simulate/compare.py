"""Many learners, many seeds, one population: runs in parallel, and the figures by which they are
compared.

Every (learner, seed) is a task of its own with its own named streams, so the number of processes
changes nothing but the time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import sqrt
from typing import Any

import numpy as np
import scipy

from evenhand.contracts import Environment, Json, Learner, Params
from evenhand.errors import InvalidInput
from evenhand.simulate.record import RunRecord, record
from evenhand.simulate.run import Engine, simulate
from evenhand.words import FloatArray


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
    if jobs < 1:
        raise InvalidInput(f"jobs is {jobs}; at least one process must do the work.")
    answers: Iterable[tuple[int, RunRecord]] = map(_play, enumerate(tasks))
    if jobs > 1 and len(tasks) > 1:
        from joblib import Parallel, delayed  # type: ignore[import-untyped]  # for parallel runs

        pool = Parallel(n_jobs=min(jobs, len(tasks)), return_as="generator_unordered")
        answers = pool(delayed(_play)(task) for task in enumerate(tasks))
    kept = {}
    for number, answer in answers:
        kept[number] = answer
        if progress is not None:
            progress(len(kept))
    return tuple(kept[number] for number in range(len(tasks)))


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


@dataclass(frozen=True, eq=False)
class LearnerRuns:
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


@dataclass(frozen=True, eq=False)
class Comparison:
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

    environment: Mapping[str, Any]
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
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        del plain["learners"]
        return {
            **plain,
            "environment": dict(self.environment),
            "seeds": list(self.seeds),
            "summaries": [asdict(row) for row in self.summaries],
            "learners": [
                {
                    "name": one.name,
                    "params": dict(one.params),
                    "runs": [run.to_json() for run in one.runs],
                }
                for one in self.learners
            ],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Comparison":
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
        plain = {one.name: document[one.name] for one in fields(cls)}
        plain["seeds"] = tuple(document["seeds"])
        plain["learners"] = tuple(
            LearnerRuns(one["name"], one["params"], tuple(map(RunRecord.from_json, one["runs"])))
            for one in document["learners"]
        )
        return cls(**plain)


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
