"""Threads for what takes long, apart from the pool that deciding, operating and the probes share: a
flood of questions keeps other questions waiting, and nobody else.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from evenhand_service.problems import ProblemError

Given = ParamSpec("Given")
Found = TypeVar("Found")


class Threads:
    """At most so many pieces of work at once and so many that wait, few of them of one caller.

    anyio's limiter bounds the work that is done at once, and lets any number wait for it, all of
    one caller too. So a count of who has asked stands before it: whoever would wait too long is
    told so at once (429) instead of after a timeout, and nobody fills the queue alone.

    Work that has begun cannot be stopped: whoever goes away leaves it, and it counts until it is
    done.

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
        self.room = most + waiting
        self.each = each
        self.seconds = seconds
        self.limiter = CapacityLimiter(most)
        self._asked: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._asked.total()

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
        if len(self) >= self.room or self._asked[who] >= self.each:
            raise ProblemError(
                "too-many",
                f"{len(self)} such requests are waiting or at work, {self._asked[who]} of yours.",
                hint="wait for an answer before you ask again.",
                headers={"Retry-After": str(self.seconds)},
                requirement=f"at most {self.each} at once",
            )
        self._asked[who] += 1
        try:
            return await to_thread.run_sync(partial(work, *given, **named), limiter=self.limiter)
        finally:
            self._asked[who] -= 1
            if not self._asked[who]:
                del self._asked[who]
