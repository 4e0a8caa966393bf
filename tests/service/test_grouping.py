"""Requests that come in together share a commit; nobody waits for somebody who does not come, or suffers for another."""

import asyncio
import time

import pytest

from evenhand.ledger import LedgerUnavailable
from evenhand.service import grouping as grouping_module
from evenhand.service.grouping import PATIENCE, QUIET, Grouping


class Book:
    """A ledger that remembers its jobs and refuses everything that is called bad."""

    def __init__(self):
        self.jobs = []
        self.disk = asyncio.Event()
        self.disk.set()

    async def decide_async(self, asked):
        self.jobs.append(list(asked))
        await asyncio.sleep(0.001)
        await self.disk.wait()
        if "bad" in asked:
            raise LedgerUnavailable("bad")
        return [f"answer to {one}" for one in asked]


def test_those_who_come_in_together_share_a_job():
    """They need different numbers of turns of the event loop until they are ready; none brings QUIET turns in which nobody comes."""

    async def play():
        book = Book()
        grouping = Grouping(book)

        async def one(i):
            for _ in range(i * (QUIET - 1)):
                await asyncio.sleep(0)
            return await grouping.decide([f"{i}", f"{i}'"])

        return book.jobs, await asyncio.gather(*map(one, range(5)))

    jobs, found = asyncio.run(play())
    assert [len(job) for job in jobs] == [10]
    assert found == [[f"answer to {i}", f"answer to {i}'"] for i in range(5)]


def test_a_lone_client_does_not_wait():
    async def play():
        grouping = Grouping(Book())
        began = time.perf_counter()
        await grouping.decide(["a"])
        return time.perf_counter() - began

    assert asyncio.run(play()) < PATIENCE


def test_those_who_never_stop_coming_are_not_waited_for():
    """Somebody new in every turn: without PATIENCE the first would wait for the last."""

    async def play():
        book = Book()
        grouping = Grouping(book)
        first, others = asyncio.create_task(grouping.decide(["first"])), []
        while not first.done() and len(others) < 1_000_000:
            others.append(asyncio.create_task(grouping.decide([str(len(others))])))
            await asyncio.sleep(0)
        first_job = len(book.jobs[0])
        await asyncio.gather(*others)
        return first_job, len(others)

    first_job, others = asyncio.run(play())
    assert 1 < first_job < others


def test_those_who_get_ready_while_the_disk_works_go_together_when_it_is_done(monkeypatch):
    monkeypatch.setattr(
        grouping_module, "PATIENCE", 60.0
    )  # so that it is the disk, and not the clock, that lets them go

    async def play():
        book = Book()
        grouping = Grouping(book)
        book.disk.clear()
        first = asyncio.create_task(grouping.decide(["a"]))
        while not book.jobs:
            await asyncio.sleep(0)
        second = asyncio.create_task(grouping.decide(["b"]))
        for _ in range(2 * QUIET):
            await asyncio.sleep(0)
        third = asyncio.create_task(grouping.decide(["c"]))
        await asyncio.sleep(0)
        book.disk.set()
        await asyncio.wait_for(asyncio.gather(first, second, third), 10.0)
        return book.jobs

    assert asyncio.run(play()) == [["a"], ["b", "c"]]


def test_nobody_suffers_for_another():
    async def play():
        grouping = Grouping(Book())
        return await asyncio.gather(*(grouping.decide([one]) for one in ("a", "bad", "c")), return_exceptions=True)

    first, second, third = asyncio.run(play())
    assert (first, third) == (["answer to a"], ["answer to c"])
    assert isinstance(second, LedgerUnavailable)


def test_a_client_who_leaves_takes_nobody_along():
    async def play():
        grouping = Grouping(Book())
        gone = asyncio.create_task(grouping.decide(["gone"]))
        await asyncio.sleep(0)
        gone.cancel()
        found = await grouping.decide(["stays"])
        with pytest.raises(asyncio.CancelledError):
            await gone
        return found

    assert asyncio.run(play()) == ["answer to stays"]
