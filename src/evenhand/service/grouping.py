"""One job for many who wait: requests that are in the house together share a commit.

A commit costs the same for one decision as for thirty, and while the disk works the processor is free. So requests go in two halves: a job
leaves when nothing is on its way to the disk and half of those in the house are ready, or when everybody else is on the way already (a lone
client waits for nobody), or after PATIENCE seconds. While one half is written, the other half is read and answered.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from evenhand.errors import EvenhandError
from evenhand.ledger import Answer, Ledger, Refusal
from evenhand.ledger.records import Asked

PATIENCE = 0.05
Answers = list[Answer | Refusal]


@dataclass
class Crowd:
    """How many requests for decisions are in the house, from the last byte of the body to the answer."""

    inside: int = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        """One more, until it leaves."""
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1


@dataclass
class Grouping:
    """Between the desk and the ledger; lives on one event loop."""

    ledger: Ledger
    crowd: Crowd
    _ready: list[tuple[Sequence[Asked], "asyncio.Future[Answers]"]] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set)
    _on_the_way: int = 0

    async def decide(self, asked: Sequence[Asked]) -> Answers:
        """Durable when this returns."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answers] = loop.create_future()
        self._ready.append((asked, future))
        if self._timer is None:
            self._timer = loop.call_later(PATIENCE, self._go)
        self._go_if_enough()
        return await future

    def _go_if_enough(self) -> None:
        """Half of the house, if the disk is idle; the rest of the house at any time."""
        ready, inside = len(self._ready), self.crowd.inside
        if ready + self._on_the_way >= inside or (self._on_the_way == 0 and 2 * ready >= inside):
            self._go()

    def _go(self) -> None:
        """Everybody who is ready, as one job."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        group, self._ready = self._ready, []
        if group:
            task = asyncio.get_running_loop().create_task(self._submit(group))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _submit(self, group: list[tuple[Sequence[Asked], "asyncio.Future[Answers]"]]) -> None:
        self._on_the_way += len(group)
        try:
            answers = iter(await self.ledger.decide_async([one for asked, _ in group for one in asked]))
            for asked, future in group:
                found = [next(answers) for _ in asked]
                if not future.done():  # the client may have gone
                    future.set_result(found)
        except EvenhandError as refusal:
            await self._each_alone(group, refusal)
        finally:
            self._on_the_way -= len(group)
            self._go_if_enough()

    async def _each_alone(
        self, group: list[tuple[Sequence[Asked], "asyncio.Future[Answers]"]], refusal: EvenhandError
    ) -> None:
        """A group that failed is tried one by one, so that nobody suffers for another; keys make that harmless."""
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
