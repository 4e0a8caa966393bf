"""Group commit: one thread, one connection; whoever waits while a commit is on its way shares the
next one.

    take all jobs that wait -> BEGIN -> do them -> COMMIT (fsync) -> and only then deliver the results

If something fails before the commit, everything is rolled back and each job is tried alone, so that
it can only hurt itself. If the commit itself fails on SQLite, nobody knows what the disk holds: no
result is delivered, and the writer stops for good (opening the ledger again recovers). PostgreSQL
looks after its own disk; there the next transaction is tried.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from sqlalchemy import Connection, Engine

from evenhand.ledger.chain import Transaction
from evenhand.ledger.records import Asked
from evenhand.ledger.refusals import LedgerUnavailable, Refusal

MAX_GROUP = 2000
"""Decisions in one transaction."""

Begin = Callable[[Connection], Transaction]
Work = Callable[[Transaction], Any]
Draw = Callable[[Transaction, list[Asked]], list[Any]]


@dataclass(eq=False)
class Job:
    """Either decisions to be drawn together with those of others, or work of another kind."""

    asked: list[Asked] = field(default_factory=list)
    work: Work | None = None
    future: "Future[Any]" = field(default_factory=Future)
    loop: Any = None
    """The event loop that waits, if it is not a thread."""
    tidy: bool = False
    """Whether SQLite's WAL is to be emptied afterwards, because it may still hold what was erased.
    """
    result: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        """Tell whoever waits."""
        if self.future.done():
            return
        with suppress(InvalidStateError):  # the one who waited has gone
            if self.error is not None:
                self.future.set_exception(self.error)
            else:
                self.future.set_result(self.result)


class Writer:
    """The only one who writes."""

    def __init__(
        self,
        engine: Engine,
        begin: Begin,
        draw: Draw,
        forget: Callable[[], None],
        *,
        fail_stop: bool,
    ) -> None:
        self._engine, self._begin, self._draw, self._forget, self._fail_stop = (
            engine,
            begin,
            draw,
            forget,
            fail_stop,
        )
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._broken: str | None = None
        self._disk_failed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._run, name="evenhand-ledger-writer", daemon=True
        )
        self._thread.start()

    @property
    def broken(self) -> str | None:
        """Why nothing is written any more."""
        return self._broken

    def submit(self, job: Job) -> Job:
        """Queue a job; its future is settled after the commit."""
        with self._lock:
            if self._broken is not None:
                raise _unavailable(self._broken)
            self._jobs.put(job)
        return job

    def close(self) -> None:
        """Do what is queued, then stop."""
        with self._lock:
            self._broken = self._broken or "the ledger has been closed"
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        closing = False
        while not closing:
            jobs, closing = self._take()
            if jobs:
                self._serve(jobs)

    def _take(self) -> tuple[list[Job], bool]:
        """Everybody who waits, up to MAX_GROUP decisions; wait for the first."""
        jobs: list[Job] = []
        size, job = 0, self._jobs.get()
        while job is not None:
            jobs.append(job)
            size += max(1, len(job.asked))
            if size >= MAX_GROUP:
                return jobs, False
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return jobs, False
        return jobs, True

    def _serve(self, jobs: list[Job]) -> None:
        self._attempt(jobs)
        failed = [
            job for job in jobs if job.error is not None and not isinstance(job.error, Refusal)
        ]
        if failed and len(jobs) > 1 and self._broken is None:
            for job in jobs:
                job.error = None
                self._attempt([job])
        for job in jobs:
            if job.error is not None and not isinstance(job.error, Refusal):
                job.error = _unavailable(f"{type(job.error).__name__} while writing", job.error)
        deliver(jobs)

    def _attempt(self, jobs: list[Job]) -> None:
        """One transaction; afterwards every job has a result that is durable, or an error."""
        if self._disk_failed:
            self._fail(jobs, _unavailable(str(self._broken)))
            return
        try:
            with self._engine.connect() as connection:
                self._transact(connection, jobs)
                if connection.dialect.name == "sqlite" and any(job.tidy for job in jobs):
                    connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except Exception as error:  # noqa: BLE001 - whoever waits must be told, whatever it was
            self._forget()
            self._fail(jobs, error)

    def _transact(self, connection: Connection, jobs: list[Job]) -> None:
        with connection.begin() as handle:
            transaction = self._begin(connection)
            perform(transaction, jobs, self._draw)
            transaction.flush()
            try:
                handle.commit()
            except Exception as error:
                raise self._stopped(error) from error

    def _stopped(self, error: BaseException) -> LedgerUnavailable:
        """A commit failed: what it held may or may not be there, so it is neither answered nor
        tried again.
        """
        reason = f"a commit failed ({type(error).__name__}), so nobody knows what the disk holds"
        if self._fail_stop:
            with self._lock:
                self._disk_failed, self._broken = True, reason
        return _unavailable(reason)

    @staticmethod
    def _fail(jobs: list[Job], error: BaseException) -> None:
        for job in jobs:
            job.result, job.error = None, error


def perform(transaction: Transaction, jobs: list[Job], draw: Draw) -> None:
    """Do the jobs in their order; decisions that follow one another are drawn together."""
    run: list[Job] = []
    for job in [*jobs, None]:
        if job is not None and job.work is None:
            run.append(job)
            continue
        if run:
            _draw_run(transaction, run, draw)
            run = []
        if job is not None:
            _work(transaction, job)


def _draw_run(transaction: Transaction, run: list[Job], draw: Draw) -> None:
    answers = iter(draw(transaction, [asked for job in run for asked in job.asked]))
    for job in run:
        job.result = [next(answers) for _ in job.asked]


def _work(transaction: Transaction, job: Job) -> None:
    """Law: work refuses before it appends, so that a refusal leaves nothing behind."""
    before = transaction.seq
    assert job.work is not None
    try:
        job.result = job.work(transaction)
    except Refusal as refusal:
        if transaction.seq != before:
            raise RuntimeError("a refusal came after a row had been appended") from refusal
        job.error = refusal


def deliver(jobs: list[Job]) -> None:
    """Settle the futures: those of an event loop by one call into it, those of threads here."""
    by_loop: dict[Any, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, waiting in by_loop.items():
        if loop is None:
            _settle(waiting)
        else:
            with suppress(
                RuntimeError
            ):  # the loop has been closed, and with it everybody who waited
                loop.call_soon_threadsafe(_settle, waiting)


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        job.settle()


def _unavailable(reason: str, cause: BaseException | None = None) -> LedgerUnavailable:
    refusal = LedgerUnavailable(
        f"nothing can be written: {reason}.", hint="look at the disk, then start the service again."
    )
    refusal.__cause__ = cause
    return refusal
