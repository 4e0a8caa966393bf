"""Threads of their own: how many work at once, who is refused, and who gets the next turn."""

import asyncio
import threading
from contextvars import ContextVar

import pytest
from tests.without_clocks import until

from evenhand_service.problems import ProblemError
from evenhand_service.threads import Threads


class Work:
    """Pieces of work that end when they are told to."""

    def __init__(self):
        self.begun, self.gates = [], {}

    def __call__(self, name):
        self.begun.append(name)
        self.gates.setdefault(name, threading.Event()).wait()
        if name == "broken":
            raise ZeroDivisionError(name)
        return name.upper()

    def end(self, name):
        self.gates.setdefault(name, threading.Event()).set()


async def begun(work, number):
    await asyncio.to_thread(until, lambda: len(work.begun) >= number, "the work")


def test_what_is_returned_and_raised_reaches_whoever_waits():
    async def main():
        pool = Threads(1, waiting=1, each=2, seconds=1)
        assert await pool.run("a", lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await pool.run("a", lambda: 1 / 0)
        assert await pool.run("a", threading.get_ident) != threading.get_ident()
        assert len(pool) == 0

    asyncio.run(main())


def test_the_context_of_whoever_asks_goes_along():
    """The ledger looks there whose key wants the work, and whether it was revoked meanwhile."""
    asked_by = ContextVar("asked_by", default="nobody")

    async def main():
        asked_by.set("a key")
        assert await Threads(1, waiting=1, each=2, seconds=1).run("a", asked_by.get) == "a key"

    asyncio.run(main())


def test_so_many_at_once_in_the_order_of_their_coming():
    async def main():
        work, pool = Work(), Threads(2, waiting=3, each=5, seconds=7)
        tasks = [asyncio.create_task(pool.run("a", work, name)) for name in ("a", "b", "c", "d")]
        await begun(work, 2)
        assert (pool.limiter.borrowed_tokens, len(pool), sorted(work.begun)) == (2, 4, ["a", "b"])
        work.end("b")
        await begun(work, 3)
        assert (pool.limiter.borrowed_tokens, work.begun[2], await tasks[1]) == (2, "c", "B")
        for name in "acd":
            work.end(name)
        assert await asyncio.gather(*tasks) == ["A", "B", "C", "D"]
        assert len(pool) == 0
        assert await pool.run("a", work, "a") == "A"

    asyncio.run(main())


def test_one_caller_cannot_take_all_and_a_full_queue_refuses_everybody():
    async def main():
        work, pool = Work(), Threads(1, waiting=3, each=2, seconds=7)
        tasks = [asyncio.create_task(pool.run(who, work, who)) for who in "aabb"]
        await begun(work, 1)
        for who, counted in (("a", "2 of yours"), ("c", "0 of yours")):
            with pytest.raises(ProblemError, match=counted) as refused:
                await pool.run(who, work, who)
            assert refused.value.document["status"] == 429
            assert refused.value.headers == {"Retry-After": "7"}
        for name in "ab":
            work.end(name)
        await asyncio.gather(*tasks)
        work.end("c")
        assert await pool.run("c", work, "c") == "C"

    asyncio.run(main())


def test_who_goes_away_gives_the_turn_to_the_next_and_work_counts_until_it_is_done():
    async def main():
        work, pool = Work(), Threads(1, waiting=3, each=5, seconds=7)
        names = ("broken", "b", "c")
        tasks = [asyncio.create_task(pool.run("a", work, name)) for name in names]
        await begun(work, 1)
        tasks[0].cancel()
        tasks[1].cancel()
        await asyncio.sleep(0)
        assert (pool.limiter.borrowed_tokens, work.begun) == (1, ["broken"])
        for name in names:
            work.end(name)
        assert await tasks[2] == "C"
        assert work.begun == ["broken", "c"]
        assert (len(pool), pool._asked) == (0, {})

    asyncio.run(main())
