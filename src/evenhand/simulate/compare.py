"""Many learners, many seeds, one population: runs in parallel, and the figures they are compared
by.

Every (learner, seed) is a task of its own with its own named streams, so the number of processes
changes nothing but the time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
import scipy

from evenhand.contracts import Environment, Learner
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


def play(task: RunToPlay) -> RunRecord:
    """Play one task."""
    run = simulate(
        task.learner, task.environment, task.rounds, task.seed, task.regret_gap, engine=task.engine
    )
    return record(run, task.environment, task.limit)


def play_all(
    tasks: Sequence[RunToPlay], jobs: int = 1, progress: Callable[[int], None] | None = None
) -> tuple[RunRecord, ...]:
    """Play all tasks on `jobs` processes; the answers are in the order of the tasks, whatever order
    they finished in.
    """
    if jobs < 1:
        raise InvalidInput(f"jobs is {jobs}; at least one process must do the work.")
    told = progress or (lambda _: None)
    if jobs == 1 or len(tasks) < 2:
        return tuple(_counted((play(task) for task in tasks), told))
    from joblib import Parallel, delayed  # type: ignore[import-untyped]  # only a parallel run needs it

    pool = Parallel(n_jobs=min(jobs, len(tasks)), return_as="generator_unordered")
    found = _counted(pool(delayed(_numbered)(i, task) for i, task in enumerate(tasks)), told)
    return tuple(answer for _, answer in sorted(found, key=lambda pair: pair[0]))


def _numbered(number: int, task: RunToPlay) -> tuple[int, RunRecord]:
    return number, play(task)


def _counted(answers: Any, told: Callable[[int], None]) -> list[Any]:
    kept = []
    for answer in answers:
        kept.append(answer)
        told(len(kept))
    return kept


@dataclass(frozen=True)
class Summary:
    """One learner in a row: means over runs, with the standard error of the mean regret (None for a
    single run).

    runs_above: runs in which any policy was above the promise; runs_above_upper: the 95% upper
    limit (Clopper and Pearson) for the chance of that, from these runs alone; rounds_above: the
    mean share of rounds; exploring: runs that never left the exploration.
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
    """All runs of one learner."""

    name: str
    params: Mapping[str, Any]
    runs: tuple[RunRecord, ...]

    def regret_curves(self, rounds: FloatArray) -> FloatArray:
        """(runs, rounds): cumulative regret of each run after each of `rounds`."""
        return np.array([run.regret_at(rounds) for run in self.runs])

    def summary(self, promise: float) -> Summary:
        """Means over the runs."""
        runs, last = self.runs, np.array([run.regret[-1] for run in self.runs])
        inside = [run.regret_in_set for run in runs if run.regret_in_set is not None]
        above = [run.share_above(promise) for run in runs]
        return Summary(
            name=self.name,
            runs=len(runs),
            regret=float(last.mean()),
            regret_error=float(last.std(ddof=1) / sqrt(len(runs))) if len(runs) > 1 else None,
            regret_in_set=float(np.mean(inside)) if inside else None,
            worst_gap=max(run.worst_gap for run in runs),
            runs_above=sum(share > 0 for share in above),
            runs_above_upper=upper_limit(sum(share > 0 for share in above), len(runs)),
            rounds_above=float(np.mean(above)),
            accepted_share=float(np.mean([run.accepted.sum() / run.rounds[-1] for run in runs])),
            explored_rounds=float(np.mean([run.explored for run in runs])),
            oracle_calls=float(np.mean([run.oracle_calls for run in runs])),
            seconds=float(np.mean([run.seconds for run in runs])),
            promised=all(run.promised for run in runs),
            exploring=sum(run.phases[-1] == "explore" for run in runs),
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Learners on one population.

    `promise` is gamma', the gap that counts as a violation; `regret_gap` defines the regret.
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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: settings, summaries, and every run."""
        return {
            "environment": dict(self.environment),
            "rounds": self.rounds,
            "seeds": list(self.seeds),
            "promise": self.promise,
            "failure_probability": self.failure_probability,
            "regret_gap": self.regret_gap,
            "optimum": self.optimum,
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
        """What `to_json` wrote, bit for bit (summaries are computed anew)."""
        learners = tuple(
            LearnerRuns(
                one["name"], one["params"], tuple(RunRecord.from_json(run) for run in one["runs"])
            )
            for one in document["learners"]
        )
        plain = {
            key: document[key]
            for key in ("environment", "rounds", "promise", "failure_probability")
        }
        plain |= {key: document[key] for key in ("regret_gap", "optimum")}
        return cls(**plain, seeds=tuple(document["seeds"]), learners=learners)


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
    """Run every learner with every seed; the same seed means the same people for each of them, as
    far as their decisions agree.
    """
    if not learners or not seeds:
        raise InvalidInput(
            f"{len(learners)} learners and {len(seeds)} seeds were given; a comparison needs one of each."
        )
    tasks = [
        RunToPlay(learner, environment, rounds, seed, regret_gap, promise, engine)
        for learner in learners.values()
        for seed in seeds
    ]
    played = play_all(tasks, jobs, progress)
    per, names = len(seeds), list(learners)
    found = tuple(
        LearnerRuns(name, _settings(learners[name]), played[i * per : (i + 1) * per])
        for i, name in enumerate(names)
    )
    return Comparison(
        environment=dict(environment.params),
        rounds=rounds,
        seeds=tuple(seeds),
        promise=promise,
        failure_probability=failure_probability,
        regret_gap=regret_gap,
        optimum=played[0].optimum,
        learners=found,
    )


def _settings(learner: Learner) -> dict[str, Any]:
    """A learner's parameters; the seed is each run's own."""
    return {name: value for name, value in learner.params.items() if name != "seed"}


def upper_limit(events: int, trials: int, confidence: float = 0.95) -> float:
    """The exact (Clopper-Pearson) one-sided upper confidence limit for a probability, from `events`
    in `trials`.

    >>> round(upper_limit(0, 20), 3), upper_limit(3, 3)
    (0.139, 1.0)
    """
    return (
        1.0
        if events >= trials
        else float(scipy.special.betaincinv(events + 1, trials - events, confidence))
    )
