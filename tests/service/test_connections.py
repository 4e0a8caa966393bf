"""Connections under a clock that is turned by hand: what a client may take, and who has to go."""

import asyncio
import socket

import pytest
import uvicorn
from uvicorn.server import ServerState

from evenhand.service import connections
from evenhand.service.connections import Connection, Crowd

HEAD = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"


class Task:
    """One that never runs."""

    def add_done_callback(self, _):
        pass


async def application(scope, receive, send):
    """Never called."""


class Loop:
    """An event loop of which only the clock and one timer are used."""

    def __init__(self):
        self.now, self.timers, self.tasks = 0.0, [], []

    def time(self):
        return self.now

    def call_later(self, seconds, action, *given):
        self.timers.append((self.now + seconds, action, given))
        return self.timers[-1]

    def create_task(self, coroutine):
        self.tasks.append(coroutine)
        return Task()

    def turn(self, seconds):
        """So much time passes."""
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer[0] <= end]:
            first = min(due, key=lambda timer: timer[0])
            self.timers.remove(first)
            self.now = first[0]
            first[1](*first[2])
        self.now = end


class Wire(asyncio.Transport):
    """What was sent, and how it ended."""

    def __init__(self, address):
        self.inner = Inner(address=address)
        super().__init__({"peername": (address, 1), "sockname": ("b", 2), "socket": self.inner})
        self.sent, self.end, self.reading = b"", None, True

    def write(self, data):
        self.sent += data

    def is_closing(self):
        return self.end is not None

    def close(self):
        self.end = self.end or "closed"

    def abort(self):
        self.end = "aborted"

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


class Inner:
    """A socket that has a lot to say, and counts what becomes of it."""

    def __init__(self, bytes_left=10**9, address="a"):
        self.left, self.events, self.address = bytes_left, [], address

    def getpeername(self):
        return self.address, 1

    def getsockname(self):
        return "b", 2

    def dup(self):
        self.events.append("dup")
        return self

    def setblocking(self, _):
        pass

    def shutdown(self, how):
        assert how == socket.SHUT_WR
        self.events.append("shutdown")

    def recv_into(self, buffer, nbytes, flags):
        taken = min(len(buffer), self.left)
        self.left -= taken
        self.events.append(taken)
        return taken

    def close(self):
        self.events.append("close")


class Server:
    """Connections of one crowd."""

    def __init__(self, most=3, per_client=2):
        self.loop, self.crowd, self.state = Loop(), Crowd(most, per_client), ServerState()
        self.config = uvicorn.Config(application, http="httptools", ws="none", lifespan="off")

    def connect(self, address="a"):
        made = Connection(
            self.crowd,
            config=self.config,
            server_state=self.state,
            app_state={},
            _loop=self.loop,
        )
        made.connection_made(Wire(address))
        return made

    def close(self):
        for task in self.loop.tasks:
            task.close()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


def answer(one):
    """The application answers."""
    one.cycle.response_started = one.cycle.response_complete = True
    one.on_response_complete()


def test_who_says_nothing_is_closed_and_who_says_half_is_told(server):
    silent, half = server.connect(), server.connect()
    half.data_received(HEAD[:20])
    server.loop.turn(connections.HEAD_SECONDS - 0.1)
    assert (silent.transport.end, half.transport.end) == (None, None)
    half.data_received(HEAD[20:30])  # a byte now and then gains nothing
    server.loop.turn(1.0)
    assert (silent.transport.end, half.transport.end) == ("closed", "closed")
    assert silent.transport.sent == b""
    assert b" 408 " in half.transport.sent
    assert b"urn:evenhand:problem:too-slow" in half.transport.sent
    assert server.crowd.closed_slow == 2


def test_a_body_has_its_time(server):
    slow = server.connect()
    slow.data_received(HEAD + b"ab")
    server.loop.turn(connections.BODY_SECONDS - 1)
    assert slow.transport.end is None
    server.loop.turn(2.0)
    assert slow.transport.end == "closed"
    assert b" 408 " in slow.transport.sent


def test_a_body_is_read_when_the_application_asks_for_it(server):
    one, small = server.connect(), server.connect()
    one.data_received(HEAD + b"ab")
    assert not one.transport.reading
    assert asyncio.run(one.cycle.receive())["body"] == b"ab"
    assert one.transport.reading
    small.data_received(HEAD + b"abcd")  # what comes in one piece costs no pause
    assert small.transport.reading


def test_an_answer_before_the_body_is_the_last_one(server):
    refused, served = server.connect(), server.connect()
    refused.data_received(HEAD + b"ab")
    served.data_received(HEAD + b"ab")
    served.data_received(b"cd")
    assert (refused.cycle.keep_alive, served.cycle.keep_alive) == (False, True)
    answer(refused)
    answer(served)
    assert (refused.transport.end, served.transport.end) == ("closed", None)
    assert refused.transport.inner.events == ["dup"]
    refused.connection_lost(None)  # the answer has been sent
    assert refused.transport.inner.events == ["dup", "shutdown"]
    assert len(server.crowd.lingering) == 1


def test_what_a_refused_client_sends_is_thrown_away_by_the_clock(server):
    lingering, loop = server.crowd.lingering, server.loop
    patient, endless = Inner(600_000), Inner()
    for one in (patient, endless):
        lingering.add(one, loop)
    loop.turn(connections.LINGER_PAUSE * 6.5)
    half = connections.LINGER_SIZE // 2  # there are two of them
    assert patient.events == ["shutdown", *[half] * 4, 600_000 - 4 * half, 0, "close"]
    assert endless.events == ["shutdown", *[half] * 6]
    loop.turn(connections.LINGER_PAUSE * 2)
    assert endless.events[-2:] == [2 * half] * 2
    loop.turn(connections.LINGER_SECONDS + 1)
    assert endless.events[-1] == "close"
    assert (len(lingering), loop.timers) == (0, [])


def test_a_look_at_many_costs_no_more_than_at_a_few(server):
    lingering, loop = server.crowd.lingering, server.loop
    crowd = [Inner() for _ in range(20)]
    for one in crowd:
        lingering.add(one, loop)
    piece = connections.LINGER_SIZE // connections.MOST_LOOKED_AT
    for looks, times in ((1.5, (1, 0, 0)), (1, (1, 1, 0)), (1, (2, 1, 1))):
        loop.turn(connections.LINGER_PAUSE * looks)
        assert tuple(crowd[i].events.count(piece) for i in (0, 8, 16)) == times


def test_few_may_linger(server):
    crowd = [Inner() for _ in range(connections.MOST_LINGERING + 2)]
    for one in crowd:
        server.crowd.lingering.add(one, server.loop)
    assert len(server.crowd.lingering) == connections.MOST_LINGERING
    assert [one.events[-1] for one in crowd[:3]] == ["close", "close", "shutdown"]


def test_an_answer_may_take_its_time_and_a_kept_connection_may_rest(server):
    one = server.connect()
    one.data_received(HEAD + b"abcd")
    server.loop.turn(1000.0)
    assert one.transport.end is None
    answer(one)
    server.loop.turn(connections.IDLE_SECONDS - 1)
    one.data_received(HEAD + b"abcd")
    answer(one)
    server.loop.turn(connections.IDLE_SECONDS - 1)
    assert one.transport.end is None
    server.loop.turn(2.0)
    assert one.transport.end == "closed"


def test_a_client_that_does_not_read_its_answer_is_cut_off(server):
    one = server.connect()
    one.data_received(HEAD + b"abcd")
    one.pause_writing()
    server.loop.turn(connections.WRITE_SECONDS + 1)
    assert one.transport.end == "aborted"


def test_a_head_without_an_end_is_refused(server):
    one = server.connect()
    one.data_received(HEAD[:-2])
    for _ in range(80):
        one.data_received(b"X-A: " + b"a" * 1000 + b"\r\n")
    assert b" 431 " in one.transport.sent
    assert one.transport.end == "closed"


def test_a_large_body_is_no_head(server):
    one = server.connect()
    for _ in range(3):
        one.data_received(HEAD.replace(b" 4", b" 300000") + bytes(100_000))
        one.data_received(bytes(200_000))
        answer(one)
    one.data_received(HEAD + b"abcd" + HEAD[:20])
    assert (one.transport.sent, one.transport.end) == (b"", None)


def test_the_longest_silent_one_has_to_go(server):
    first, second = server.connect("a"), server.connect("a")
    first.data_received(HEAD + b"abcd")  # it is being answered
    third = server.connect("a")  # one more than this client may have
    assert [one.transport.end for one in (first, second, third)] == [None, "aborted", None]
    other, last = server.connect("b"), server.connect("c")
    assert [one.transport.end for one in (third, other, last)] == ["aborted", None, None]
    assert server.crowd.closed_for_others == 2


def test_nobody_who_is_being_answered_has_to_go(server):
    busy = [server.connect(address) for address in "abc"]
    for one in busy:
        one.data_received(HEAD + b"abcd")
    late = server.connect("d")
    assert b" 503 " in late.transport.sent
    assert [one.transport.end for one in busy] == [None] * 3
    busy[0].connection_lost(None)
    assert server.connect("d").transport.end is None


def test_what_is_no_http_is_answered_by_a_problem_document(server):
    one = server.connect()
    one.data_received(b"\x16\x03\x01\x02\x00")
    assert b" 400 " in one.transport.sent
    assert b"application/problem+json" in one.transport.sent


def test_while_draining_every_answer_says_goodbye(server):
    asked, later = server.connect("a"), server.connect("b")
    asked.data_received(HEAD + b"abcd")
    turns = iter([False, True])
    asyncio.run(server.crowd.drain(lambda: next(turns)))
    later.data_received(HEAD + b"abcd")
    assert (asked.cycle.keep_alive, later.cycle.keep_alive) == (False, False)
