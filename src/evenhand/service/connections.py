"""Connections: how long a client may take, how many may be open, and how they end.

    head     HEAD_SECONDS from the first byte (of a new connection: from its beginning), MOST_HEAD
    body     BODY_SECONDS from the end of the head
    idle     IDLE_SECONDS between two requests
    answer   WRITE_SECONDS in which a client that has stopped reading takes some of it
    unread   LINGER_SECONDS for a client that was answered before its body was here

uvicorn knows the third alone. The times are absolute: a client that sends a byte now and then gains
nothing. One timer looks at all connections, so a request costs no timer of its own.

A body is read only when the application asks for it. Whoever is answered earlier (no key, too
large) is told goodbye, and what is left of the body stays in the kernel: see `Lingering`.
"""

import asyncio
import contextlib
import json
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenhand.contracts import Json
from evenhand.service.problems import problem

HEAD_SECONDS = 5.0
BODY_SECONDS = 30.0
IDLE_SECONDS = 30.0
WRITE_SECONDS = 30.0
FAREWELL_SECONDS = 2.0
"""How long a connection that is being closed may take to read its last answer."""
SWEEP_SECONDS = 0.5
"""Between two looks at all connections."""
MOST_HEAD = 64 * 2**10
"""Bytes of a head."""
READ_SIZE, FIRST_READ = 64 * 2**10, 16 * 2**10
"""Bytes that are read at once; and of a head, with as much of the body as comes along with it."""
LINGER_SECONDS = 5.0
"""How long what a refused client still sends is thrown away, so that it can read the refusal."""
LINGER_PAUSE = 0.02
"""Seconds between two looks at those clients."""
LINGER_SIZE = 256 * 2**10
"""Bytes that are thrown away at a look, of all that are looked at together."""
MOST_LOOKED_AT = 8
"""Clients that are looked at; then it is the turn of the others."""
MOST_LINGERING = 64
"""Clients that may linger; one more, and the oldest is cut off."""
DRAIN_SECONDS = 5.0
"""After a signal to stop: how long those who are still asking are answered."""
DRAIN_IDLE_SECONDS = 1.0
"""After a signal to stop: how long a kept connection may stay silent, and the port stays open."""


REASONS = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}


class Lingering:
    """Clients that were answered before they had sent their body, at most MOST_LINGERING.

    Closing at once would be a reset, which can take the answer away from a client that is still
    sending. So our half is closed, and what comes is thrown away for a while: by the clock, not by
    the client's speed, and on Linux (MSG_TRUNC) without being copied out of the kernel. A flood of
    bodies finds its windows full and has to wait, and nobody else does.
    """

    def __init__(self) -> None:
        self._ends: dict[socket.socket, float] = {}
        self._nowhere = memoryview(bytearray(LINGER_SIZE))
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, one: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        """Whatever was to be sent to it has been sent."""
        try:
            one.setblocking(False)
            one.shutdown(socket.SHUT_WR)
        except OSError:  # the client has gone
            one.close()
            return
        self._ends[one] = loop.time() + LINGER_SECONDS
        if len(self._ends) > MOST_LINGERING:
            oldest = min(self._ends, key=self._ends.__getitem__)
            del self._ends[oldest]
            oldest.close()
        if self._timer is None:
            self._timer = loop.call_later(LINGER_PAUSE, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now, mine = loop.time(), list(islice(self._ends, MOST_LOOKED_AT))
        piece = self._nowhere[: LINGER_SIZE // len(mine)]
        for one in mine:
            try:
                over = one.recv_into(piece, 0, _UNCOPIED) == 0
            except BlockingIOError:
                over = False
            except OSError:
                over = True
            end = self._ends.pop(one)
            if over or end < now:
                one.close()
            else:  # behind the others
                self._ends[one] = end
        self._timer = loop.call_later(LINGER_PAUSE, self._look, loop) if self._ends else None


_UNCOPIED = getattr(socket, "MSG_TRUNC", 0)


@dataclass
class Crowd:
    """All connections of a server: at most `most`, and `most_per_client` of one address.

    Where there are too many, the one that has been silent for longest is closed; if every
    connection is busy with a request, the newcomer is refused.
    """

    most: int
    most_per_client: int
    draining: bool = False
    closed_slow: int = 0
    closed_for_others: int = 0
    lingering: Lingering = field(default_factory=Lingering)
    buffer: memoryview = field(default_factory=lambda: memoryview(bytearray(READ_SIZE)))
    """Into which every connection reads, one at a time."""
    _all: "dict[Connection, None]" = field(default_factory=dict)
    _silent: "dict[Connection, None]" = field(default_factory=dict)
    _per_client: Counter[str] = field(default_factory=Counter)
    _timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, one: "Connection") -> bool:
        """Count a new connection; False if there is no room for it."""
        mine = self._per_client[one.address] >= self.most_per_client
        if mine or len(self._all) >= self.most:
            silent = (c for c in self._silent if not mine or c.address == one.address)
            victim = next(silent, None)
            if victim is None:
                return False
            self.closed_for_others += 1
            self.leave(victim)
            victim.transport.abort()
        self._all[one] = self._silent[one] = None
        self._per_client[one.address] += 1
        if self._timer is None:
            self._timer = one.loop.call_later(SWEEP_SECONDS, self._sweep, one.loop)
        return True

    def leave(self, one: "Connection") -> None:
        """Forget a connection."""
        self._silent.pop(one, None)
        if self._all.pop(one, one) is None:
            self._per_client[one.address] -= 1
            if not self._per_client[one.address]:
                del self._per_client[one.address]

    def busy(self, one: "Connection") -> None:
        """A connection has sent a whole head."""
        self._silent.pop(one, None)

    def silent(self, one: "Connection") -> None:
        """A connection waits for the next request."""
        if one in self._all:
            self._silent[one] = None

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for one in [one for one in self._all if one.deadline < now]:
            self.closed_slow += 1
            one.expire(now)
        self._timer = loop.call_later(SWEEP_SECONDS, self._sweep, loop) if self._all else None

    async def drain(self, stop: Callable[[], bool]) -> None:
        """Answer who is still asking, say goodbye with each answer, and close who stays silent."""
        self.draining = True
        loop = asyncio.get_running_loop()
        began = loop.time()
        for one in self._all:
            if one not in self._silent:
                one.cycle.keep_alive = False
        while not stop():
            passed = loop.time() - began
            if passed > DRAIN_IDLE_SECONDS:
                for one in list(self._silent):
                    one.transport.close()
                if not (self._all or self.lingering) or passed > DRAIN_SECONDS:
                    return
            await asyncio.sleep(0.05)


class Connection(HttpToolsProtocol, asyncio.BufferedProtocol):
    """One connection, which keeps the times of this module."""

    def __init__(self, crowd: Crowd, **given: Any) -> None:
        super().__init__(**given)
        self.crowd, self.deadline, self.address = crowd, inf, "?"
        self._begun = False  # some of the head is here
        self._in_head = True
        self._head = self._messages = 0
        self._whole = True  # no body is awaited
        self._keep_alive = True  # what the client wants
        self._left: socket.socket | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else "?"
        self.deadline = self.loop.time() + HEAD_SECONDS
        if not self.crowd.enter(self):
            busy = "too many connections are open."
            self._refuse(problem("too-many", busy, hint="try again later.") | {"status": 503})

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self.crowd.leave(self)
        super().connection_lost(exc)
        if self._left is not None:
            self.crowd.lingering.add(self._left, self.loop)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return self.crowd.buffer[:FIRST_READ] if self._in_head else self.crowd.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes are there."""
        self.data_received(bytes(self.crowd.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Some bytes."""
        if not self._begun:
            self._begun = True
            self.deadline = min(self.deadline, self.loop.time() + HEAD_SECONDS)
        before = self._messages
        super().data_received(data)
        if self._in_head and self._messages == before:
            self._head += len(data)
            if self._head > MOST_HEAD and not self.transport.is_closing():
                long = f"the head of the request has more than {MOST_HEAD:,} bytes."
                self._refuse(problem("too-large", long, hint="send less.") | {"status": 431})
        elif not self._whole:
            self.flow.pause_reading()  # until the application asks for more

    def on_headers_complete(self) -> None:
        """A whole head: the request begins."""
        super().on_headers_complete()
        self._in_head = self._whole = False
        self._head = 0
        self.deadline = self.loop.time() + BODY_SECONDS
        self.crowd.busy(self)
        # an answer that comes before the body is the last one
        self._keep_alive, self.cycle.keep_alive = self.cycle.keep_alive, False

    def on_message_complete(self) -> None:
        """The whole body."""
        self._whole = self._in_head = True
        self._begun = False
        self._messages += 1
        if not (self.cycle.response_started or self.crowd.draining):
            self.cycle.keep_alive = self._keep_alive
        super().on_message_complete()
        self.deadline = inf
        if self.cycle.response_complete:
            self._rest()

    def on_response_complete(self) -> None:
        """The whole answer is written; uvicorn's way, without its timer for each request."""
        self.server_state.total_requests += 1
        if not (self._whole or self.pipeline):  # nobody reads the rest of the body
            self._linger()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        else:
            self._rest()

    def _linger(self) -> None:
        """Close; the socket itself lives on among the `Lingering` when the answer is sent."""
        known = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # no more files
            self._left = known and known.dup()
        self.deadline = self.loop.time() + FAREWELL_SECONDS
        self.transport.close()
        if self.scheme == "https":  # which would decrypt what comes until the client is done
            self.transport.abort()

    def _rest(self) -> None:
        self.deadline = self.loop.time() + IDLE_SECONDS
        self.crowd.silent(self)

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self.deadline = self.loop.time() + WRITE_SECONDS

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self.deadline = inf if self._whole else self.loop.time() + BODY_SECONDS

    def expire(self, now: float) -> None:
        """The time is over: an answer that says so if one can be heard, and the end."""
        answering = not self._in_head and self.cycle.response_started
        if self.transport.is_closing() or self.flow.write_paused:
            self.transport.abort()
        elif not self._begun or answering:
            self.transport.close()
        else:
            part, seconds = ("head", HEAD_SECONDS) if self._in_head else ("body", BODY_SECONDS)
            slow = f"the {part} of the request took longer than {seconds:g} s."
            self._refuse(problem("too-slow", slow, hint="send it at once."))
        self.deadline = now + FAREWELL_SECONDS

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered as all else that is refused."""
        self._refuse(problem("bad-json", "this is no HTTP request.", hint="speak HTTP/1.1."))

    def _refuse(self, document: Json) -> None:
        body, status = json.dumps(document).encode(), document["status"]
        head = (
            f"HTTP/1.1 {status} {REASONS.get(status, 'Service Unavailable')}\r\n"
            f"content-type: application/problem+json\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
        self.deadline = self.loop.time() + FAREWELL_SECONDS


class DrainingServer(uvicorn.Server):
    """A server that answers everybody who is still asking before it stops."""

    def __init__(self, config: uvicorn.Config, crowd: Crowd, on_drain: Callable[[], None]) -> None:
        super().__init__(config)
        self.crowd, self.on_drain = crowd, on_drain

    async def shutdown(self, sockets: Any = None) -> None:
        """Drain first; a second signal cuts it short."""
        self.on_drain()
        await self.crowd.drain(lambda: self.force_exit)
        await super().shutdown(sockets)
