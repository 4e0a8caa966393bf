"""Requests that come in together share a commit; nobody waits for somebody who does not come, or
suffers for another.

The event loop's clock stands still, so that turns of the loop count and seconds do not; LONGEST_WAIT
passes when a test says so.
"""

import asyncio

import pytest

from evenhand.ledger import LedgerUnavailable
from evenhand.service.decider import LONGEST_WAIT, QUIET_TURNS, GroupCommit


class StillLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock is turned by hand."""

    now = 0.0

    def time(self):
        return self.now


def played(story):
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        return runner.run(story())


async def turns(number):
    for _ in range(number):
        await asyncio.sleep(0)


async def answers(*tasks):
    """What they return or raise, within a thousand turns of the loop."""
    for _ in range(1_000):
        if all(task.done() for task in tasks):
            break
        await asyncio.sleep(0)
    assert all(task.done() for task in tasks), "somebody waits for ever"
    return await asyncio.gather(*tasks, return_exceptions=True)


class Book:
    """A ledger that remembers its jobs and refuses everything that is called bad."""

    def __init__(self):
        self.jobs = []
        self.disk = asyncio.Event()
        self.disk.set()

    async def decide_async(self, asked):
        self.jobs.append(list(asked))
        await turns(2)
        await self.disk.wait()
        if "bad" in asked:
            raise LedgerUnavailable("bad")
        return [f"answer to {one}" for one in asked]


def test_those_who_come_in_together_share_a_job():
    """They need different numbers of turns of the event loop until they are ready; none brings
    QUIET_TURNS turns in which nobody comes.
    """

    async def story():
        book = Book()
        grouping = GroupCommit(book)

        async def one(i):
            await turns(i * (QUIET_TURNS - 1))
            return await grouping.decide([f"{i}", f"{i}'"])

        return book.jobs, await answers(*(asyncio.create_task(one(i)) for i in range(5)))

    jobs, found = played(story)
    assert [len(job) for job in jobs] == [10]
    assert found == [[f"answer to {i}", f"answer to {i}'"] for i in range(5)]


def test_a_lone_client_does_not_wait():
    """QUIET_TURNS turns and a few to and fro; no second passes, so no timer can have let it go."""

    async def story():
        alone = asyncio.create_task(GroupCommit(Book()).decide(["a"]))
        await turns(3 * QUIET_TURNS)
        return alone.done()

    assert played(story)


def test_those_who_never_stop_coming_are_not_waited_for():
    """Somebody new in every turn, of which a hundred make LONGEST_WAIT: without it the first would wait
    for the last.
    """

    async def story():
        book, loop = Book(), asyncio.get_running_loop()
        grouping = GroupCommit(book)
        first, others = asyncio.create_task(grouping.decide(["first"])), []
        while not first.done() and len(others) < 1_000:
            others.append(asyncio.create_task(grouping.decide([str(len(others))])))
            loop.now += LONGEST_WAIT / 100
            await asyncio.sleep(0)
        await answers(first, *others)
        return len(book.jobs[0]), len(others)

    first_job, others = played(story)
    assert 90 < first_job < 110
    assert first_job < others


def test_those_who_get_ready_while_the_disk_works_go_together_when_it_is_done():
    async def story():
        book = Book()
        grouping = GroupCommit(book)
        book.disk.clear()
        first = asyncio.create_task(grouping.decide(["a"]))
        await turns(2 * QUIET_TURNS)
        assert book.jobs == [["a"]]
        second = asyncio.create_task(grouping.decide(["b"]))
        await turns(2 * QUIET_TURNS)
        third = asyncio.create_task(grouping.decide(["c"]))
        await turns(2 * QUIET_TURNS)
        book.disk.set()
        await answers(first, second, third)
        return book.jobs

    assert played(story) == [["a"], ["b", "c"]]


def test_nobody_suffers_for_another():
    async def story():
        grouping = GroupCommit(Book())
        return await answers(
            *(asyncio.create_task(grouping.decide([one])) for one in ("a", "bad", "c"))
        )

    first, second, third = played(story)
    assert (first, third) == (["answer to a"], ["answer to c"])
    assert isinstance(second, LedgerUnavailable)


def test_a_client_who_leaves_takes_nobody_along():
    async def story():
        grouping = GroupCommit(Book())
        gone = asyncio.create_task(grouping.decide(["gone"]))
        await turns(1)
        gone.cancel()
        (found,) = await answers(asyncio.create_task(grouping.decide(["stays"])))
        with pytest.raises(asyncio.CancelledError):
            await gone
        return found

    assert played(story) == ["answer to stays"]
