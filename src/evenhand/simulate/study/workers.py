"""Who does the work: this process, processes of this machine (joblib), or a Dask cluster. The
answers do not depend on it.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from math import ceil
from typing import Any, Protocol

from evenhand.errors import InvalidInput
from evenhand.simulate.study.tasks import Task, played

Answer = tuple[str, dict[str, Any], float]
BATCHES_PER_WORKER = 8
LARGEST_BATCH = 8
ALLOWED_FAILURES = 10
"""How many workers may die under a task before it counts as the task's fault."""


class Workers(Protocol):
    """Law: every task is answered once, in whatever order, and with the same row wherever it was
    played.
    """

    def answers(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """(key, row, seconds) of each task, as they come."""
        ...


class Local:
    """This process, or `jobs` processes of this machine."""

    def __init__(self, jobs: int = 1) -> None:
        if jobs < 1:
            raise InvalidInput(f"jobs is {jobs}; at least one process must do the work.")
        self.jobs = jobs

    def answers(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """One task at a time each, so that a kill loses no more than those under way."""
        if self.jobs == 1 or len(tasks) < 2:
            yield from map(played, tasks)
            return
        from joblib import Parallel, delayed  # type: ignore[import-untyped]  # only a parallel run needs it

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
            yield from pool(delayed(played)(task) for task in tasks)


class Dask:
    """A Dask cluster: "local" starts one with `jobs` worker processes, anything else is the address
    of a scheduler.
    """

    def __init__(self, address: str = "local", jobs: int = 2, timeout: float = 10.0) -> None:
        self.address, self.jobs, self.timeout = address, jobs, timeout
        self.client: Any = None

    def answers(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """Tasks go out in batches; those of a worker that dies are played by another one."""
        with ExitStack() as stack:
            self.client = stack.enter_context(self._connected(stack))
            import distributed

            as_completed: Any = distributed.as_completed  # Dask is not typed
            futures = self.client.map(
                _batch, self._batches(tasks), pure=False, retries=ALLOWED_FAILURES
            )
            for done in as_completed(futures):
                yield from done.result()

    def _batches(self, tasks: Sequence[Task]) -> list[list[Task]]:
        size = max(
            1, min(LARGEST_BATCH, ceil(len(tasks) / (BATCHES_PER_WORKER * max(self.jobs, 1))))
        )
        return [list(tasks[i : i + size]) for i in range(0, len(tasks), size)]

    def _connected(self, stack: ExitStack) -> AbstractContextManager[Any]:
        try:
            import dask
            import distributed
        except ImportError:
            raise InvalidInput(
                "Dask is not installed.", hint="pip install 'evenhand[dask]'."
            ) from None
        stack.enter_context(
            dask.config.set({"distributed.scheduler.allowed-failures": ALLOWED_FAILURES})
        )
        cluster_of: Any = distributed.LocalCluster  # Dask is not typed
        client_of: Any = distributed.Client
        if self.address == "local":
            cluster = cluster_of(
                n_workers=self.jobs,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=50,
            )
            where: Any = stack.enter_context(cluster)
        else:
            where = self.address
        try:
            client: AbstractContextManager[Any] = client_of(where, timeout=self.timeout)
        except (OSError, ValueError, TimeoutError) as error:
            raise InvalidInput(
                f"no Dask scheduler answers at {self.address} ({error}).",
                hint="start one with 'dask scheduler', check the address (tcp://host:8786), or use --dask local.",
            ) from error
        return client


def _batch(tasks: list[Task]) -> list[Answer]:
    return [played(task) for task in tasks]
