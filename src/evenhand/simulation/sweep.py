"""The sweep: many runs, made in this process or by the workers of joblib's backend (processes of
this machine, or a cluster), and kept in a journal so that a sweep that was killed goes on.

Comparisons and studies are the same sweep over learners, populations, limits and seeds; they differ
in how they summarise its records. Each run has its own named streams of random numbers, so neither
the number of processes nor the order in which they finish changes a figure.

The journal has one line of JSON per finished task, appended and forced to disk before anything else
happens. A process may be killed at any moment: a line is either whole or cut off, and a cut-off
last line is dropped when the journal is opened again.
"""

import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, TypeVar

from evenhand.contracts import Environment, Json, Learner, Params, Policy, Rate
from evenhand.environments.population import TablePopulation
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.hypotheses import policy_from_json
from evenhand.policies import Mixture
from evenhand.simulation.record import RunRecord, record
from evenhand.simulation.run import Engine, simulate
from evenhand.words import Prices

try:
    import fcntl
except ImportError:  # not a Unix: nothing stops two sweeps from writing one journal
    fcntl = None  # type: ignore[assignment]

JOURNAL = "journal.jsonl"
TASKS_PER_WORKER = 4
"""Of one call of a backend that returns nothing before the whole call is done."""
Population = Environment | Callable[[], Environment]
"""A population, or the function that makes it. A function is called where the run is made, so a
large table is read there and not sent with every run."""
Progress = Callable[[int], None]
"""Called with the number of finished tasks."""


# the tasks


class Result(Protocol):
    """The result of a task; the journal holds its JSON."""

    def to_json(self) -> Json:
        """The result as plain JSON."""
        ...


Found = TypeVar("Found", bound=Result)
FoundLater = TypeVar("FoundLater", bound=Result, covariant=True)


class Task(Protocol[FoundLater]):
    """One piece of work that can be sent to another process."""

    @property
    def key(self) -> str:
        """The name under which the journal keeps the result: equal keys mean equal results."""
        ...

    def result(self) -> FoundLater:
        """Do the work."""
        ...

    def from_json(self, document: Params) -> FoundLater:
        """Read the result from the journal."""
        ...


@dataclass(frozen=True, eq=False)
class RunTask:
    """One run: a learner on a population with a limit and a seed.

    Parameters
    ----------
    learner : Learner
        The learner, at its beginning.
    population : Environment, or callable that makes one
        The population.
    rounds : int
        How many people are decided about.
    seed : int
        The seed of the run.
    limit : float
        The gap that no policy should exceed.
    regret_gap : float
        Regret is measured against the best policy with gaps of at most this.
    engine : {"auto", "events", "counts"}
        As for `simulate`.
    optimum : float, optional
        The loss of that policy, if it is known already.
    key : str
        The name of the run in a journal.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> task = RunTask(AcceptAll(), lending(), rounds=100, seed=0, limit=0.1, regret_gap=0.1)
    >>> task.result().accepted_share
    1.0
    """

    learner: Learner
    population: Population
    rounds: int
    seed: int
    limit: float
    regret_gap: float
    engine: Engine = "auto"
    optimum: float | None = None
    key: str = ""

    def result(self) -> RunRecord:
        """Simulate the run, and measure it by the truth about the population.

        Returns
        -------
        RunRecord
            The figures of the run.
        """
        world = _made(self.population)
        run = simulate(
            self.learner, world, self.rounds, self.seed, self.regret_gap, engine=self.engine
        )
        return record(run, world, self.limit, self.optimum)

    def from_json(self, document: Params) -> RunRecord:
        """Read the record of the run.

        Parameters
        ----------
        document : mapping
            What `RunRecord.to_json` returned.

        Returns
        -------
        RunRecord
            The record.
        """
        return RunRecord.from_json(document)


@dataclass(frozen=True)
class Optimum:
    """The best policy within a limit, in hindsight.

    Parameters
    ----------
    loss : float
        Its loss.
    policy : Mixture or None
        The policy; None if its rules have no JSON form, so that it has to be found again.
    """

    loss: float
    policy: Mixture | None

    def to_json(self) -> Json:
        """Return it as plain JSON.

        Returns
        -------
        dict
            The loss and the policy.
        """
        return {"loss": self.loss, "policy": self.policy and _policy_to_json(self.policy)}


@dataclass(frozen=True, eq=False)
class OptimumTask:
    """The search for the best policy within a limit: done once for all runs that are compared with
    it.

    Parameters
    ----------
    population : Environment, or callable that makes one
        The population.
    limit : float
        The largest gap of the policy.
    rates : tuple of Rate
        The rates whose gaps are limited.
    prices : Prices
        What errors cost.
    key : str
        The name of the optimum in a journal.
    shares : (float, float), optional
        The smallest and the largest share of the people that the policy may accept.
    """

    population: Population
    limit: float
    rates: tuple[Rate, ...]
    prices: Prices
    key: str = ""
    shares: tuple[float, float] | None = None

    def result(self) -> Optimum:
        """Find the policy.

        Returns
        -------
        Optimum
            The policy and its loss.
        """
        world = _made(self.population)
        if self.shares is None:
            loss, policy = world.optimum(self.limit, self.rates, self.prices)
        elif isinstance(world, TablePopulation):
            least, most = self.shares
            loss, policy = world.optimum_within(self.limit, self.rates, self.prices, most, least)
        else:
            raise InvalidInput(
                f"{type(world).__name__} does not know its best policy within a cap.",
                hint="use a population that is a table.",
            )
        return Optimum(float(loss), policy if isinstance(policy, Mixture) else None)

    def from_json(self, document: Params) -> Optimum:
        """Read the optimum.

        Parameters
        ----------
        document : mapping
            What `Optimum.to_json` returned.

        Returns
        -------
        Optimum
            The policy and its loss.
        """
        policy = document["policy"]
        return Optimum(document["loss"], None if policy is None else policy_from_json(policy))


def _made(population: Population) -> Environment:
    return population() if callable(population) else population


def _policy_to_json(policy: Policy) -> Json | None:
    try:
        return policy.to_json()
    except NotSerialisable:
        return None


# the sweep


def sweep(
    tasks: Sequence[Task[Found]],
    n_jobs: int = 1,
    journal: "Journal | None" = None,
    progress: Progress | None = None,
) -> tuple[Found, ...]:
    """Do all tasks that the journal does not hold yet.

    Parameters
    ----------
    tasks : sequence of RunTask or of OptimumTask
        The tasks. With a journal, each has a key of its own.
    n_jobs : int
        1 does the work in this process; more are workers of joblib's backend, of which -1 takes
        all. That backend is processes of this machine unless `joblib.parallel_config` names
        another one.
    journal : Journal, optional
        The open journal of the sweep; by default nothing is kept on disk.
    progress : callable, optional
        Called with the number of finished tasks, those in the journal included.

    Returns
    -------
    tuple of RunRecord or of Optimum
        The results in the order of the tasks, whatever order they finished in and whoever did
        the work.

    Raises
    ------
    InvalidInput
        If `n_jobs` is neither -1 nor at least 1.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> world = lending()
    >>> runs = sweep([RunTask(AcceptAll(), world, 100, seed, 0.1, 0.1) for seed in range(3)])
    >>> [run.seed for run in runs]
    [0, 1, 2]
    """
    if n_jobs < 1 and n_jobs != -1:
        raise InvalidInput(
            f"n_jobs is {n_jobs}; at least one process must do the work.",
            hint="-1 uses all cores.",
        )
    found: dict[int, Found] = {}
    if journal is not None:
        for place, task in enumerate(tasks):
            if task.key in journal.results:
                found[place] = task.from_json(journal.results[task.key])

    left = [place for place in range(len(tasks)) if place not in found]
    if left:
        for number, result in _as_they_come([tasks[place] for place in left], n_jobs):
            place = left[number]
            if journal is not None:
                # The result is read back from what was written: a sweep that was stopped and one
                # that was not return the same.
                key = tasks[place].key
                journal.add(key, result.to_json())
                result = tasks[place].from_json(journal.results[key])
            found[place] = result
            if progress is not None:
                progress(len(found))
    return tuple(found[place] for place in range(len(tasks)))


# the journal


class Journal:
    """The results of finished tasks by key, in a file that one process at a time may write.

    Parameters
    ----------
    path : pathlib.Path
        The file; it is made when the journal is opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "journal.jsonl"
    ...     with Journal(path) as journal:
    ...         journal.add("a key", {"loss": 0.25})
    ...     with Journal(path) as journal:
    ...         print(journal.results)
    {'a key': {'loss': 0.25}}
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, Json] = {}
        self._file: IO[bytes] | None = None

    def __enter__(self) -> "Journal":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a+b")
        if fcntl is not None:
            try:
                fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.close()
                raise InvalidInput(
                    f"another process is writing {self.path}.",
                    hint="wait for it to end, or choose another folder.",
                ) from None
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entry = json.loads(line)
                self.results[entry["key"]] = entry["result"]
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInput(
                    f"line {number} of {self.path} is no entry of a journal ({error}).",
                    hint="it was changed by hand; move the file away to start anew.",
                ) from error
        if len(whole) < len(content):  # a killed process left a line half written
            self._file.truncate(len(whole))
        self._file.seek(0, os.SEEK_END)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, key: str, result: Json) -> None:
        """Append the result of one task; it is on the disk when this returns.

        Parameters
        ----------
        key : str
            The task's key.
        result : dict
            Its result as plain JSON.
        """
        assert self._file is not None  # it is open
        entry = json.dumps({"key": key, "result": result})
        self._file.write(entry.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.results[key] = json.loads(entry)["result"]


# who does the work


def _as_they_come(tasks: Sequence[Task[Found]], n_jobs: int) -> Iterator[tuple[int, Found]]:
    """The place of each task and its result, in the order in which they finish."""
    if n_jobs == 1 or len(tasks) < 2:
        yield from map(do_task, enumerate(tasks))
        return

    from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]
    from joblib.parallel import get_active_backend  # type: ignore[import-untyped]

    jobs = min(effective_n_jobs(n_jobs), len(tasks))
    backend, _ = get_active_backend()
    if backend.supports_return_generator:
        way, block = "generator_unordered", len(tasks)
    else:  # Ray's and Spark's return a whole call at once: the journal is written between calls
        way, block = "list", TASKS_PER_WORKER * jobs
    numbered = list(enumerate(tasks))
    with warnings.catch_warnings():
        # joblib replaces a process whose memory has grown, as VW's does, and warns; the task
        # itself is done
        ignored = "A worker stopped while some jobs"
        warnings.filterwarnings("ignore", message=ignored, category=UserWarning)
        # one task at a time for each worker: a kill loses no more than those under way
        with Parallel(jobs, return_as=way, batch_size=1, pre_dispatch="n_jobs") as pool:
            for first in range(0, len(tasks), block):
                yield from pool(delayed(do_task)(one) for one in numbered[first : first + block])


def do_task(numbered: tuple[int, Task[Found]]) -> tuple[int, Found]:
    """Do one task; one BLAS thread, so that no figure depends on the machine's cores."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

    number, task = numbered
    with threadpool_limits(1):
        return number, task.result()
