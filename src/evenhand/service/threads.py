"""Threads for what takes long, apart from the pool that deciding, operating and the probes share: a
flood of questions keeps other questions waiting, and nobody else.
"""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from evenhand.service.problems import ProblemError

Given = ParamSpec("Given")
Found = TypeVar("Found")


def in_thread(work: Callable[[], Found]) -> "asyncio.Future[Found]":
    """Begin a piece of work in a thread of its own, which does not keep the process from ending.

    Parameters
    ----------
    work : callable
        What is done.

    Returns
    -------
    asyncio.Future
        What it returns or raises. Work that has begun cannot be cancelled.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Found] = loop.create_future()

    def settle(error: BaseException | None, found: Found | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(found)  # type: ignore[arg-type]  # it was returned
        else:
            future.set_exception(error)

    def call() -> None:
        error, found = None, None
        try:
            found = work()
        except BaseException as raised:  # noqa: BLE001 - whoever waits gets it
            error = raised
        if not loop.is_closed():  # at the end of the process nobody waits
            loop.call_soon_threadsafe(settle, error, found)

    # the context goes along: the ledger asks in it whose key wants the work
    threading.Thread(target=copy_context().run, args=(call,), daemon=True).start()
    return future


class Threads:
    """At most so many pieces of work at once and so many that wait, few of them of one caller.

    Parameters
    ----------
    most : int
        Pieces of work that are done at once.
    waiting : int
        Pieces that wait for their turn.
    each : int
        Pieces of one caller, at work and waiting.
    seconds : int
        When to come again, for whoever is refused.
    """

    def __init__(self, most: int, waiting: int, each: int, seconds: int) -> None:
        self.most, self.waiting, self.each, self.seconds = most, waiting, each, seconds
        self.at_work = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._asked: Counter[str] = Counter()

    def __len__(self) -> int:
        return self.at_work + len(self._queue)

    async def run(
        self, who: str, work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs
    ) -> Found:
        """What the work returns, when its turn has come.

        Parameters
        ----------
        who : str
            Who asks.
        work : callable
            What is done with the other arguments.

        Returns
        -------
        object
            What it returns.

        Raises
        ------
        ProblemError
            429 with Retry-After: too many are waiting, or too many of this caller.
        """
        if len(self) >= self.most + self.waiting or self._asked[who] >= self.each:
            raise ProblemError(
                "too-many",
                f"{len(self)} such requests are waiting or at work, {self._asked[who]} of yours.",
                hint="wait for an answer before you ask again.",
                headers={"Retry-After": str(self.seconds)},
                law=f"at most {self.each} at once",
            )
        self._asked[who] += 1
        try:
            await self._turn()
            try:
                future = in_thread(lambda: work(*given, **named))
            except RuntimeError:  # the system gives no more threads
                self._leave()
                raise
            future.add_done_callback(self._done)
            # who goes away leaves the thread at work, and it counts until it is done
            return await asyncio.shield(future)
        finally:
            self._asked[who] -= 1
            if not self._asked[who]:
                del self._asked[who]

    async def _turn(self) -> None:
        """A place among those at work; whoever leaves one hands it to the first who waits."""
        if self.at_work < self.most:
            self.at_work += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._leave()  # the place was handed over already
            elif turn in self._queue:
                self._queue.remove(turn)
            raise

    def _leave(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.at_work -= 1

    def _done(self, future: "asyncio.Future[Found]") -> None:
        if not future.cancelled():
            future.exception()  # nobody may wait for it any more
        self._leave()
