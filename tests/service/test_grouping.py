"""Requests that are in the house together share a commit; nobody waits for somebody who does not come, or suffers for another."""

import asyncio
import time

import pytest

from evenhand.ledger import LedgerUnavailable
from evenhand.service.grouping import PATIENCE, Crowd, Grouping


class Book:
    """A ledger that remembers its jobs and refuses everything that is called bad."""

    def __init__(self):
        self.jobs = []

    async def decide_async(self, asked):
        self.jobs.append(list(asked))
        await asyncio.sleep(0.001)
        if "bad" in asked:
            raise LedgerUnavailable("bad")
        return [f"answer to {one}" for one in asked]


def test_those_who_are_inside_together_go_in_two_halves():
    async def play():
        book, crowd = Book(), Crowd(inside=5)
        grouping = Grouping(book, crowd)
        found = await asyncio.gather(*(grouping.decide([f"{i}", f"{i}'"]) for i in range(5)))
        return book.jobs, found

    jobs, found = asyncio.run(play())
    assert [len(job) for job in jobs] == [6, 4]
    assert found == [[f"answer to {i}", f"answer to {i}'"] for i in range(5)]


def test_a_lone_client_does_not_wait():
    async def play():
        grouping = Grouping(Book(), Crowd(inside=1))
        began = time.perf_counter()
        await grouping.decide(["a"])
        return time.perf_counter() - began

    assert asyncio.run(play()) < PATIENCE


def test_somebody_who_never_gets_ready_is_not_waited_for():
    async def play():
        return await asyncio.wait_for(Grouping(Book(), Crowd(inside=2)).decide(["a"]), 2.0)

    assert asyncio.run(play()) == ["answer to a"]


def test_those_who_get_ready_while_the_disk_works_go_when_it_is_done():
    """Two of six are on their way; the next two are no half of those who are left, but everybody who can come after them."""

    async def play():
        book, crowd = Book(), Crowd(inside=4)
        grouping = Grouping(book, crowd)
        first = [asyncio.create_task(grouping.decide([name])) for name in ("a", "b")]
        await asyncio.sleep(0)
        crowd.inside = 6
        second = [asyncio.create_task(grouping.decide([name])) for name in ("c", "d")]
        await asyncio.gather(*first)
        crowd.inside = 4
        await asyncio.wait_for(asyncio.gather(*second), PATIENCE * 4)
        return book.jobs

    assert asyncio.run(play()) == [["a", "b"], ["c", "d"]]


def test_nobody_suffers_for_another():
    async def play():
        grouping = Grouping(Book(), Crowd(inside=3))
        return await asyncio.gather(*(grouping.decide([one]) for one in ("a", "bad", "c")), return_exceptions=True)

    first, second, third = asyncio.run(play())
    assert (first, third) == (["answer to a"], ["answer to c"])
    assert isinstance(second, LedgerUnavailable)


def test_a_client_who_leaves_takes_nobody_along():
    async def play():
        grouping = Grouping(Book(), Crowd(inside=2))
        gone = asyncio.create_task(grouping.decide(["gone"]))
        await asyncio.sleep(0)
        gone.cancel()
        found = await grouping.decide(["stays"])
        with pytest.raises(asyncio.CancelledError):
            await gone
        return found

    assert asyncio.run(play()) == ["answer to stays"]


def test_whoever_leaves_is_no_longer_counted():
    crowd = Crowd()

    def fail():
        with crowd.entered():
            assert crowd.inside == 1
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fail()
    assert crowd.inside == 0
