"""The study, a sweep of learners x tables x limits x seeds: optima first, then all runs, on one
machine or on a Dask cluster; whatever the journal holds is not computed again.

A study consists of tasks: runs, each a learner on a table with a limit and a seed, and the optima
they are compared with. A task is a few plain values, so it can be sent anywhere, and its key names
it for ever: the same key means the same result.

The journal has one line of JSON per finished task, appended and forced to disk before anything else
happens. A process may be killed at any moment: a line is either whole or cut off, and a cut-off
last line is dropped when the journal is opened again.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from math import ceil, sqrt
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import IO, Any, Protocol

import numpy as np

from evenhand.contracts import Json, Learner, Params
from evenhand.environments import Replay
from evenhand.errors import InvalidInput, NotSerialisable, install_hint
from evenhand.fairness.rates import RATES
from evenhand.hypotheses import policy_from_json
from evenhand.hypotheses.named import CLASSES
from evenhand.shown import Brief
from evenhand.simulate.compare import in_processes, require_jobs
from evenhand.simulate.named import LEARNERS, Setting, make_learner, require_playable
from evenhand.simulate.record import audit_weight, constant_costs, notes_of, promises
from evenhand.simulate.run import Run, simulate
from evenhand.tables import Description, Table, import_pyarrow, read_table
from evenhand.words import FloatArray, Prices

try:
    import fcntl
except ImportError:  # not a Unix: whoever starts two studies in one folder is not stopped
    fcntl = None  # type: ignore[assignment]

JOURNAL = "journal.jsonl"
BATCHES_PER_WORKER = 8
LARGEST_BATCH = 8
ALLOWED_FAILURES = 10
"""How many workers may die under a task before it counts as the task's fault."""
Answer = tuple[str, Json, float]
"""(key, row, seconds) of a finished task."""
Progress = Callable[[int, int], None]


# what is played

FORMAT = 1
"""Raised when the meaning of a row changes, so that old journals are not taken for new ones."""


@dataclass(frozen=True)
class Source:
    """Where a table comes from.

    Parameters
    ----------
    name : str
        A published table's name, the path of a description, or the name of a described table.
    description : Description, optional
        The description of a table of one's own.
    digest : str
        A digest of its rows, so that a changed table is a new one.

    Examples
    --------
    >>> len(Source("lending").table().label)
    1200
    """

    name: str
    description: Description | None = None
    digest: str = ""

    def table(self) -> Table:
        """Read the table.

        Returns
        -------
        Table
            Its rows, encoded as numbers.
        """
        return read_table(self.description or self.name).encoded()


def source_of(name: str, description: Description | None = None) -> Source:
    """Read a table once, and return its source with the digest of its rows.

    Parameters
    ----------
    name : str
        A published table's name, or the path of a description.
    description : Description, optional
        The description of a table of one's own.

    Returns
    -------
    Source
        The source.

    Examples
    --------
    >>> source_of("lending").name
    'lending'
    """
    table = Source(name, description).table()
    parts = (
        table.features.tobytes(),
        "\x1f".join(map(str, table.group.tolist())).encode(),
        table.label.tobytes(),
    )
    digest = hashlib.sha256(b"\x1e".join(parts)).hexdigest()[:16]
    return Source(table.name if description is not None else name, description, digest)


@dataclass(frozen=True)
class Question:
    """What is asked on a table.

    Parameters
    ----------
    source : Source
        The table.
    limit : float
        The gap that no policy may exceed.
    rate : str
        The name of the rate.
    kind : str
        The name of the class of rules.
    false_accept, false_reject : float
        What the errors cost.

    Examples
    --------
    >>> question = Question(Source("loans"), 0.05)
    >>> question.plain["class"], question.prices.false_accept
    ('linear', 1.0)
    """

    source: Source
    limit: float
    rate: str = "fpr"
    kind: str = "linear"
    false_accept: float = 1.0
    false_reject: float = 1.0

    @property
    def prices(self) -> Prices:
        """The costs as the learners know them."""
        return Prices(self.false_accept, self.false_reject)

    @property
    def plain(self) -> Json:
        """What names the question, as plain values."""
        return {
            "table": self.source.name,
            "digest": self.source.digest,
            "limit": self.limit,
            "rate": self.rate,
            "class": self.kind,
            "false_accept": self.false_accept,
            "false_reject": self.false_reject,
        }


@dataclass(frozen=True)
class OptimumTask:
    """The best fair policy of the class in hindsight, and the best constant.

    Parameters
    ----------
    question : Question
        What is asked.

    Examples
    --------
    >>> task = OptimumTask(Question(source_of("lending"), 0.05, kind="stumps"))
    >>> row = task.play()
    >>> row["optimum"] < row["constant"] <= row["accept_all"]
    True
    """

    question: Question

    @cached_property
    def key(self) -> str:
        """The task's name for ever."""
        return _key({"optimum": self.question.plain})

    def play(self) -> Json:
        """Solve the question on the whole table.

        Returns
        -------
        dict
            The question, the loss and the policy of the optimum, and the losses of constants.
        """
        asked = self.question
        world = population(asked.source, asked.kind)
        loss, policy = world.optimum(asked.limit, RATES[asked.rate], asked.prices)
        costs = constant_costs(world, asked.prices)
        try:
            plain_policy = policy.to_json()
        except NotSerialisable:
            plain_policy = None
        return {
            **asked.plain,
            "optimum": loss,
            "constant": min(costs),
            "accept_all": costs[0],
            "policy": plain_policy,
        }


@dataclass(frozen=True)
class RunTask:
    """One run of a learner.

    Parameters
    ----------
    question : Question
        The table, the limit, the rate, the class and the prices.
    learner : str
        The learner's name, with options.
    seed : int
        The seed of the run.
    rounds : int
        How many people are decided about.
    failure_probability : float
        delta.
    optimum : str
        What the optimum's task returned, as JSON; it follows from the question.

    Examples
    --------
    >>> import json
    >>> question = Question(source_of("lending"), 0.05, kind="stumps")
    >>> optimum = json.dumps(OptimumTask(question).play())
    >>> task = RunTask(question, "accept-all", 0, 100, 0.05, optimum)
    >>> round(task.play()["worst_gap"], 6)
    0.0
    """

    question: Question
    learner: str
    seed: int
    rounds: int
    failure_probability: float
    optimum: str = ""

    @cached_property
    def key(self) -> str:
        """The task's name for ever; the optimum follows from the question."""
        return _key({"run": self.plain})

    @property
    def plain(self) -> Json:
        """What names the run, as plain values."""
        names = ("learner", "seed", "rounds", "failure_probability")
        return {**self.question.plain, **{name: getattr(self, name) for name in names}}

    def play(self) -> Json:
        """Simulate the run, and measure it by the table's truth.

        Returns
        -------
        dict
            The task, and the figures of the run.
        """
        asked, best = self.question, json.loads(self.optimum)
        world, rate = population(asked.source, asked.kind), RATES[asked.rate]
        if best["policy"] is not None:
            policy = policy_from_json(best["policy"])
            world.know_optimum(asked.limit, rate, asked.prices, best["optimum"], policy)
        setting = Setting(
            hypotheses=CLASSES[asked.kind](),
            rate=rate,
            allowed_gap=asked.limit,
            comparator_gap=None,
            failure_probability=self.failure_probability,
            horizon=self.rounds,
            prices=asked.prices,
        )
        learner = make_learner(self.learner, setting)
        run = simulate(learner, world, self.rounds, self.seed, asked.limit)
        return {**self.plain, **measured(run, asked.limit, best["optimum"], best["constant"])}


Task = OptimumTask | RunTask


def measured(run: Run[Learner], limit: float, optimum: float, constant: float) -> Json:
    """The figures of a run: costs per person, regret, gaps, audits, and the curves behind the
    figures.
    """
    share = run.lengths / run.rounds[-1]
    regret = float((run.lengths * (run.losses - optimum)).sum())
    worth = float(run.rounds[-1]) * (constant - optimum)
    audits = [audit_weight(policy) for policy in run.policies]
    return {
        "error": float(share @ run.losses),
        "last_error": float(run.losses[-1]),
        "optimum": optimum,
        "constant": constant,
        "regret": regret,
        "regret_over_constant": regret / worth if constant - optimum > 1e-9 else None,
        "worst_gap": run.worst_gap,
        "last_gap": float(run.gaps[-1]),
        "rounds_above": run.share_above(limit),
        "audit_share": float(share @ audits),
        "accepted_share": float(run.accepted.sum() / run.rounds[-1]),
        "promised": promises(run.learner, limit),
        "oracle_calls": run.oracle_calls,
        "note": notes_of(run.learner),
        "curve_rounds": run.rounds.tolist(),
        "curve_loss": run.losses.tolist(),
        "curve_gap": run.gaps.tolist(),
    }


@lru_cache(maxsize=4)
def population(source: Source, kind: str) -> Replay:
    """The table as a population; a process keeps the last four."""
    return Replay.of_table(source.table(), CLASSES[kind]())


def play(task: Task) -> tuple[str, Json, float]:
    """Play a task: (key, row, seconds). One BLAS thread, so that a row does not depend on the
    machine's cores.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

    begun = perf_counter()
    with threadpool_limits(1):
        row = task.play()
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in row.items()
    }
    return task.key, plain, perf_counter() - begun


def _key(named: Json) -> str:
    # not `evenhand.canonical`, whose texts have no spaces: old journals have these keys
    text = json.dumps({"format": FORMAT, **named}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class StudyPlan:
    """Learners x tables x limits x seeds.

    Parameters
    ----------
    sources : tuple of Source
        The tables.
    learners : tuple of str
        The names of the learners.
    limits : tuple of float
        The gaps that no policy may exceed.
    seeds : int
        How many runs of each kind.
    rounds : int
        How many people are decided about in each run.
    rate : str
        The name of the rate.
    kind : str
        The name of the class of rules.
    failure_probability : float
        delta.
    false_accept, false_reject : float
        What the errors cost.
    first_seed : int
        The seed of the first run of each kind.

    Examples
    --------
    >>> plan = StudyPlan((Source("loans"),), ("certified", "accept-all"), limits=(0.05, 0.1))
    >>> len(plan.questions), len(plan.optima)
    (2, 2)
    >>> runs = plan.runs({task.key: {} for task in plan.optima})
    >>> len(list(runs))
    20
    """

    sources: tuple[Source, ...]
    learners: tuple[str, ...]
    limits: tuple[float, ...] = (0.05,)
    seeds: int = 5
    rounds: int = 50_000
    rate: str = "fpr"
    kind: str = "linear"
    failure_probability: float = 0.05
    false_accept: float = 1.0
    false_reject: float = 1.0
    first_seed: int = 0

    def __post_init__(self) -> None:
        for name in self.learners:
            LEARNERS[name]  # InvalidInput if there is none
        some = all((self.sources, self.learners, self.limits))
        if not some or self.seeds < 1 or self.rounds < 1:
            raise InvalidInput("a study needs at least one table, learner, limit, seed and round.")
        names = [source.name for source in self.sources]
        if len(set(names)) < len(names):
            raise InvalidInput(
                f"two tables are called {max(names, key=names.count)!r}.",
                hint="give one of them another name.",
            )
        RATES[self.rate]  # InvalidInput if there is none
        for limit in self.limits:
            if not 0 < limit <= 1:
                raise InvalidInput(f"the limit {limit} is not in (0, 1].")
        CLASSES[self.kind]  # InvalidInput if there is none
        for name in self.learners:
            require_playable(name, self.kind)

    @property
    def questions(self) -> tuple[Question, ...]:
        """Table by table, limit by limit."""
        return tuple(
            Question(source, limit, self.rate, self.kind, self.false_accept, self.false_reject)
            for source in self.sources
            for limit in self.limits
        )

    @property
    def optima(self) -> tuple[OptimumTask, ...]:
        """What is solved first."""
        return tuple(OptimumTask(question) for question in self.questions)

    def runs(self, optima: dict[str, Json]) -> Iterator[RunTask]:
        """Return all runs, in the order of the table of results.

        Parameters
        ----------
        optima : dict
            What the optima's tasks returned, by their keys.

        Returns
        -------
        iterator of RunTask
            The runs.
        """
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        for question in self.questions:
            best = json.dumps(optima[OptimumTask(question).key])
            for learner in self.learners:
                for seed in seeds:
                    yield RunTask(
                        question, learner, seed, self.rounds, self.failure_probability, best
                    )

    @property
    def plain(self) -> Json:
        """The settings as plain values."""
        sources = [{"name": source.name, "digest": source.digest} for source in self.sources]
        return {**asdict(self), "sources": sources}


# the journal


class Journal:
    """The finished tasks of a study by key, in a file that one process at a time may write.

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
    ...         journal.add("a key", {"error": 0.25}, seconds=1.5)
    ...     with Journal(path) as journal:
    ...         print(journal.rows, journal.seconds)
    {'a key': {'error': 0.25}} {'a key': 1.5}
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, Json] = {}
        self.seconds: dict[str, float] = {}
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
                    hint="wait for it to end, or choose another folder with --out.",
                ) from None
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entry = json.loads(line)
                key, row, seconds = entry["key"], entry["row"], entry["seconds"]
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInput(
                    f"line {number} of {self.path} is no entry of a study's journal ({error}).",
                    hint="it was changed by hand; move the file away, and the study starts anew.",
                ) from error
            self.rows[key], self.seconds[key] = row, seconds
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

    def add(self, key: str, row: Json, seconds: float) -> None:
        """Append one finished task; it is on the disk when this returns.

        Parameters
        ----------
        key : str
            The task's key.
        row : dict
            Its result, as plain values.
        seconds : float
            How long it took.
        """
        assert self._file is not None  # it is open
        entry = json.dumps({"key": key, "seconds": seconds, "row": row})
        self._file.write(entry.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.rows[key], self.seconds[key] = json.loads(entry)["row"], seconds


# who does the work


class Workers(Protocol):
    """Who plays the tasks of a study.

    Law: every task is answered once, in whatever order, and with the same row wherever it was
    played.

    Examples
    --------
    >>> class Myself:
    ...     def answers(self, tasks):
    ...         return map(play, tasks)
    >>> from evenhand.simulate.study import play
    >>> list(Myself().answers([]))
    []
    """

    def answers(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """Play the tasks.

        Parameters
        ----------
        tasks : sequence of OptimumTask or RunTask
            What is to be played.

        Returns
        -------
        iterator of (key, row, seconds)
            The results, as they come.
        """
        ...


class Local:
    """This process, or several processes of this machine (joblib).

    Parameters
    ----------
    jobs : int
        How many processes.

    Examples
    --------
    >>> Local(jobs=2).jobs
    2
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = require_jobs(jobs)

    def answers(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """Play the tasks, one at a time in each process: a kill loses no more than those under way.

        Parameters
        ----------
        tasks : sequence of OptimumTask or RunTask
            What is to be played.

        Returns
        -------
        iterator of (key, row, seconds)
            The results, as they come.
        """
        return in_processes(play, tasks, self.jobs)


class Dask:
    """A Dask cluster.

    Parameters
    ----------
    address : str
        "local" starts a cluster with `jobs` worker processes; anything else is the address of a
        scheduler.
    jobs : int
        Worker processes of a local cluster.
    timeout : float
        Seconds to wait for a scheduler.

    Examples
    --------
    >>> Dask("tcp://scheduler:8786").address
    'tcp://scheduler:8786'
    """

    def __init__(self, address: str = "local", jobs: int = 2, timeout: float = 10.0) -> None:
        self.address, self.jobs, self.timeout = address, jobs, timeout
        self.client: Any = None

    def answers(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """Play the tasks in batches; those of a worker that dies are played by another one.

        Parameters
        ----------
        tasks : sequence of OptimumTask or RunTask
            What is to be played.

        Returns
        -------
        iterator of (key, row, seconds)
            The results, as they come.
        """
        try:
            import dask
            import distributed
        except ImportError:
            raise InvalidInput("Dask is not installed.", hint=install_hint("dask")) from None
        untyped: Any = distributed
        settings = {"distributed.scheduler.allowed-failures": ALLOWED_FAILURES}
        with dask.config.set(settings), ExitStack() as stack:
            where: object = self.address
            if self.address == "local":
                workers = dict(n_workers=self.jobs, threads_per_worker=1, processes=True)
                cluster = untyped.LocalCluster(**workers, dashboard_address=None, silence_logs=50)
                where = stack.enter_context(cluster)
            try:
                client = untyped.Client(where, timeout=self.timeout)
            except (OSError, ValueError, TimeoutError) as error:
                raise InvalidInput(
                    f"no Dask scheduler answers at {self.address} ({error}).",
                    hint="start one with 'dask scheduler', check the address (tcp://host:8786), or "
                    "use --dask local.",
                ) from error
            self.client = stack.enter_context(client)
            size = ceil(len(tasks) / (BATCHES_PER_WORKER * max(self.jobs, 1)))
            size = max(1, min(LARGEST_BATCH, size))
            batches = [list(tasks[i : i + size]) for i in range(0, len(tasks), size)]
            futures = self.client.map(_play_batch, batches, pure=False, retries=ALLOWED_FAILURES)
            for done in untyped.as_completed(futures):
                yield from done.result()


def _play_batch(tasks: list[Task]) -> list[Answer]:
    return [play(task) for task in tasks]


# the study


@dataclass(frozen=True, eq=False, repr=False)
class Study(Brief):
    """The results of a study.

    Parameters
    ----------
    plan : StudyPlan
        What was played.
    rows : tuple of mapping
        The figures of each run, in the order of the plan.
    seconds : tuple of float
        How long each run took, which is no result.

    Examples
    --------
    >>> from evenhand.simulate.study import Source, StudyPlan
    >>> plan = StudyPlan((Source("loans"),), ("certified",), seeds=1)
    >>> row = {"table": "loans", "limit": 0.05, "learner": "certified", "worst_gap": 0.03}
    >>> results = Study(plan, (row,), (1.0,))
    >>> results.of("loans", 0.05, "certified").worst_gap, len(results.cells)
    (0.03, 1)
    """

    plan: StudyPlan
    rows: tuple[Params, ...]
    seconds: tuple[float, ...]

    def of(self, table: str, limit: float, learner: str) -> "Cell":
        """Return the runs of one learner on one table with one limit.

        Parameters
        ----------
        table, limit, learner
            As they are named in the plan.

        Returns
        -------
        Cell
            One run per seed.
        """
        asked = (table, limit, learner)
        chosen = [
            (row, seconds)
            for row, seconds in zip(self.rows, self.seconds, strict=True)
            if (row["table"], row["limit"], row["learner"]) == asked
        ]
        rows, seconds = tuple(row for row, _ in chosen), tuple(took for _, took in chosen)
        return Cell(learner, rows, seconds)

    @property
    def cells(self) -> tuple["Cell", ...]:
        """One for each table, limit and learner."""
        return tuple(
            self.of(question.source.name, question.limit, learner)
            for question in self.plan.questions
            for learner in self.plan.learners
        )


@dataclass(frozen=True, eq=False, repr=False)
class Cell(Brief):
    """All seeds of one learner on one table with one limit.

    Parameters
    ----------
    learner : str
        The learner's name.
    rows : tuple of mapping
        The figures of each run.
    seconds : tuple of float
        How long each run took.

    Examples
    --------
    >>> first = {"table": "loans", "limit": 0.05, "error": 0.2, "worst_gap": 0.03,
    ...          "rounds_above": 0.0, "promised": True}
    >>> cell = Cell("certified", (first, {**first, "error": 0.3}), (1.0, 1.0))
    >>> cell.mean("error"), round(cell.error("error"), 3), cell.runs_above, cell.promised
    (0.25, 0.05, 0, True)
    """

    learner: str
    rows: tuple[Params, ...]
    seconds: tuple[float, ...]

    @property
    def table(self) -> str:
        """The table's name."""
        return str(self.rows[0]["table"])

    @property
    def limit(self) -> float:
        """The limit."""
        return float(self.rows[0]["limit"])

    def values(self, name: str) -> FloatArray:
        """Return one column of the rows.

        Parameters
        ----------
        name : str
            The name of the column.

        Returns
        -------
        array of float
            One value per run; None is left out.
        """
        return np.array([row[name] for row in self.rows if row[name] is not None], dtype=np.float64)

    def mean(self, name: str) -> float:
        """Return the mean of a column over the seeds.

        Parameters
        ----------
        name : str
            The name of the column.

        Returns
        -------
        float
            The mean; NaN where nothing is known.
        """
        values = self.values(name)
        return float(values.mean()) if len(values) else float("nan")

    def error(self, name: str) -> float | None:
        """Return the standard error of the mean of a column.

        Parameters
        ----------
        name : str
            The name of the column.

        Returns
        -------
        float or None
            The standard error; None for a single run.
        """
        values = self.values(name)
        return float(values.std(ddof=1) / sqrt(len(values))) if len(values) > 1 else None

    @property
    def worst_gap(self) -> float:
        """The largest true gap of any round of any seed."""
        return float(self.values("worst_gap").max())

    @property
    def runs_above(self) -> int:
        """The runs in which some round was above the limit."""
        return int((self.values("rounds_above") > 0).sum())

    @property
    def promised(self) -> bool:
        """Whether the learner's own bound covers the limit in every run."""
        return all(row["promised"] for row in self.rows)


def study(
    plan: StudyPlan, folder: Path, workers: Workers | None = None, progress: Progress | None = None
) -> Study:
    """Play what the journal in a folder does not hold yet, and collect all results.

    Parameters
    ----------
    plan : StudyPlan
        Learners x tables x limits x seeds.
    folder : pathlib.Path
        Where the journal is; a study that was stopped goes on from there.
    workers : Workers, optional
        Who does the work; by default this process.
    progress : callable, optional
        Called with the number of finished tasks, and of all tasks.

    Returns
    -------
    Study
        The results of all runs; they do not depend on who did the work.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from evenhand.simulate.study import StudyPlan, source_of
    >>> plan = StudyPlan(
    ...     (source_of("lending"),), ("accept-all",), seeds=1, rounds=100, kind="stumps"
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = study(plan, Path(folder))
    >>> round(results.cells[0].worst_gap, 6)
    0.0
    """
    with Journal(folder / JOURNAL) as journal:
        total = len(plan.questions) * (1 + len(plan.learners) * plan.seeds)

        def finish(tasks: Iterable[Task]) -> None:
            left = [task for task in tasks if task.key not in journal.rows]
            for key, row, seconds in (workers or Local()).answers(left) if left else ():
                journal.add(key, row, seconds)
                if progress is not None:
                    progress(min(len(journal.rows), total), total)

        finish(plan.optima)
        runs = tuple(plan.runs(journal.rows))
        finish(runs)
        rows = tuple(journal.rows[task.key] for task in runs)
        return Study(plan, rows, tuple(journal.seconds[task.key] for task in runs))


def unfinished(plan: StudyPlan, folder: Path) -> Sequence[RunTask]:
    """Return the runs that the journal in a folder does not hold.

    Parameters
    ----------
    plan : StudyPlan
        The study.
    folder : pathlib.Path
        Where its journal is, if it was begun.

    Returns
    -------
    sequence of RunTask
        The runs that are left.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from evenhand.simulate.study import Source, StudyPlan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan = StudyPlan((Source("loans"),), ("certified",), seeds=2)
    ...     print(len(unfinished(plan, Path(folder))))
    2
    """
    with Journal(folder / JOURNAL) as journal:
        known = {task.key: journal.rows.get(task.key, {}) for task in plan.optima}
        return [task for task in plan.runs(known) if task.key not in journal.rows]


def write_parquet(results: Study, path: Path) -> None:
    """Write the results of a study as a Parquet file.

    Times are left out, which are no result: the same study gives the same file, wherever it ran.

    Parameters
    ----------
    results : Study
        What `study` returned.
    path : pathlib.Path
        The file; it is replaced whole.

    Raises
    ------
    InvalidInput
        If pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from evenhand.simulate.study import Source, StudyPlan
    >>> results = Study(StudyPlan((Source("loans"),), ("certified",)), ({"error": 0.2},), (1.0,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(results, Path(folder) / "results.parquet")
    ...     print([path.name for path in Path(folder).iterdir()])
    ['results.parquet']
    """
    pyarrow, parquet = import_pyarrow("the table of results (Parquet)")
    numbers = pyarrow.list_(pyarrow.float64())
    types = {
        "curve_loss": numbers,
        "curve_gap": numbers,
        "curve_rounds": pyarrow.list_(pyarrow.int64()),
        "regret_over_constant": pyarrow.float64(),
    }
    arrays = {
        name: pyarrow.array([row.get(name) for row in results.rows], type=types.get(name))
        for name in results.rows[0]
    }
    partial = path.with_suffix(".part")
    parquet.write_table(pyarrow.table(arrays), partial)
    partial.replace(path)
