"""The study, a sweep of learners x tables x limits x seeds: optima first, then all runs, on one
machine or on a Dask cluster; whatever the journal holds is not computed again.

The journal has one line of JSON per finished task, appended and forced to disk before anything else
happens. A process may be killed at any moment: a line is either whole or cut off, and a cut-off
last line is dropped when the journal is opened again.
"""

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

import numpy as np

from evenhand.contracts import Json, Params
from evenhand.errors import InvalidInput, install_hint
from evenhand.shown import Brief
from evenhand.simulate.study_tasks import (
    OptimumTask,
    Question,
    RunTask,
    Source,
    StudyPlan,
    Task,
    play,
    source_of,
)
from evenhand.tables import import_pyarrow
from evenhand.words import FloatArray

__all__ = [
    "Cell",
    "Dask",
    "Journal",
    "Local",
    "OptimumTask",
    "Question",
    "RunTask",
    "Source",
    "Study",
    "StudyPlan",
    "Workers",
    "source_of",
    "study",
    "unfinished",
    "write_parquet",
]

JOURNAL = "journal.jsonl"
BATCHES_PER_WORKER = 8
LARGEST_BATCH = 8
ALLOWED_FAILURES = 10
"""How many workers may die under a task before it counts as the task's fault."""
Answer = tuple[str, Json, float]
"""(key, row, seconds) of a finished task."""
Progress = Callable[[int, int], None]


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
        _lock(self._file, self.path)
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


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not a Unix: whoever starts two studies in one folder is not stopped
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InvalidInput(
            f"another process is writing {path}.",
            hint="wait for it to end, or choose another folder with --out.",
        ) from None


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
    >>> from evenhand.simulate.study_tasks import play
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
        if jobs < 1:
            raise InvalidInput(f"jobs is {jobs}; at least one process must do the work.")
        self.jobs = jobs

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
        if self.jobs == 1 or len(tasks) < 2:
            yield from map(play, tasks)
            return
        from joblib import Parallel, delayed  # type: ignore[import-untyped]  # for parallel runs

        pool = Parallel(
            n_jobs=min(self.jobs, len(tasks)),
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",
        )
        with warnings.catch_warnings():
            # joblib replaces a process whose memory has grown, as VW's does, and warns; the task
            # itself is played
            warnings.filterwarnings(
                "ignore", message="A worker stopped while some jobs", category=UserWarning
            )
            yield from pool(delayed(play)(task) for task in tasks)


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
        with ExitStack() as stack:
            self.client = stack.enter_context(self._connected(stack))
            import distributed

            as_completed: Any = distributed.as_completed  # Dask is not typed
            size = ceil(len(tasks) / (BATCHES_PER_WORKER * max(self.jobs, 1)))
            size = max(1, min(LARGEST_BATCH, size))
            batches = [list(tasks[i : i + size]) for i in range(0, len(tasks), size)]
            futures = self.client.map(_play_batch, batches, pure=False, retries=ALLOWED_FAILURES)
            for done in as_completed(futures):
                yield from done.result()

    def _connected(self, stack: ExitStack) -> AbstractContextManager[Any]:
        try:
            import dask
            import distributed
        except ImportError:
            raise InvalidInput("Dask is not installed.", hint=install_hint("dask")) from None
        stack.enter_context(
            dask.config.set({"distributed.scheduler.allowed-failures": ALLOWED_FAILURES})
        )
        cluster_of: Any = distributed.LocalCluster  # Dask is not typed
        client_of: Any = distributed.Client
        where: object = self.address
        if self.address == "local":
            cluster = cluster_of(
                n_workers=self.jobs,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=50,
            )
            where = stack.enter_context(cluster)
        try:
            client: AbstractContextManager[Any] = client_of(where, timeout=self.timeout)
        except (OSError, ValueError, TimeoutError) as error:
            raise InvalidInput(
                f"no Dask scheduler answers at {self.address} ({error}).",
                hint="start one with 'dask scheduler', check the address (tcp://host:8786), or use "
                "--dask local.",
            ) from error
        return client


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
