"""One job for many who wait: requests that come in together share a commit.

A commit costs the same for one decision as for sixty, and a ledger that works beside a busy event
loop slows both down. So a job leaves when the disk is idle and the house is quiet: for QUIET turns
of the event loop nobody else got ready (a lone client waits for a fraction of a millisecond).
Nobody waits longer than PATIENCE seconds for the others.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from evenhand.errors import EvenhandError
from evenhand.ledger import Answer, Asked, Ledger, Refusal

PATIENCE = 0.05
QUIET = 4
"""From the last byte of a request to the desk it takes at most so many turns."""
Answers = list[Answer | Refusal]


@dataclass
class Grouping:
    """Between the desk and the ledger; lives on one event loop."""

    ledger: Ledger
    _ready: list[tuple[Sequence[Asked], "asyncio.Future[Answers]"]] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set)
    _on_the_way: int = 0
    _watching: bool = False

    async def decide(self, asked: Sequence[Asked]) -> Answers:
        """Durable when this returns."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answers] = loop.create_future()
        self._ready.append((asked, future))
        if self._timer is None:
            self._timer = loop.call_later(PATIENCE, self._go)
        self._watch()
        return await future

    def _watch(self) -> None:
        """Wait for quiet, if somebody is ready."""
        if self._ready and not self._watching:
            self._watching = True
            asyncio.get_running_loop().call_soon(self._turn, len(self._ready), 0)

    def _turn(self, ready: int, quiet: int) -> None:
        """One more turn of the event loop; `ready` were ready before it, and the `quiet` turns
        before brought nobody.
        """
        now = len(self._ready)
        quiet = quiet + 1 if now == ready else 0
        if quiet < QUIET:
            asyncio.get_running_loop().call_soon(self._turn, now, quiet)
            return
        self._watching = False
        if self._on_the_way == 0:  # otherwise they go when the disk is done
            self._go()

    def _go(self) -> None:
        """Everybody who is ready, as one job."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        group, self._ready = self._ready, []
        if group:
            self._on_the_way += 1
            task = asyncio.get_running_loop().create_task(self._submit(group))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _submit(self, group: list[tuple[Sequence[Asked], "asyncio.Future[Answers]"]]) -> None:
        try:
            answers = iter(
                await self.ledger.decide_async([one for asked, _ in group for one in asked])
            )
            for asked, future in group:
                found = [next(answers) for _ in asked]
                if not future.done():  # the client may have gone
                    future.set_result(found)
        except EvenhandError as refusal:
            await self._each_alone(group, refusal)
        finally:
            self._on_the_way -= 1
            self._watch()

    async def _each_alone(
        self, group: list[tuple[Sequence[Asked], "asyncio.Future[Answers]"]], refusal: EvenhandError
    ) -> None:
        """A group that failed is tried one by one, so that nobody suffers for another; keys make
        that harmless.
        """
        for asked, future in group:
            try:
                found = await self.ledger.decide_async(asked) if len(group) > 1 else refusal
            except EvenhandError as alone:
                found = alone
            if future.done():
                continue
            if isinstance(found, EvenhandError):
                future.set_exception(found)
            else:
                future.set_result(found)
