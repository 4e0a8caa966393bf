"""The door: which hosts are answered, how large and how deep a body may be, how often somebody may
come. Plain ASGI, before any parsing.
"""

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.service.problems import MEDIA_TYPE, ProblemError, encode

LOG = logging.getLogger("evenhand.service")
Message = dict[str, Any]
Scope = dict[str, Any]
DRAIN = 64 * 2**20
"""Bytes of a refused body that are thrown away so that the client can read the refusal."""
SLOWEST = 30.0
"""Seconds that a body may take."""
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"cache-control", b"no-store"),
)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.S)


def depth_of(body: bytes) -> int:
    """How deeply arrays and objects are nested, without building them; brackets inside of strings
    do not count.
    """
    marks = np.frombuffer(_STRING.sub(b"", body), dtype=np.uint8)
    opened = (marks == ord("[")) | (marks == ord("{"))
    closed = (marks == ord("]")) | (marks == ord("}"))
    return int(np.cumsum(opened.astype(np.int32) - closed.astype(np.int32)).max(initial=0))


@dataclass
class Buckets:
    """Token buckets: `rate` requests a second each, `burst` at once. The least recently seen are
    forgotten beyond `most`.
    """

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    most: int = 10_000
    _levels: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)

    def take(self, name: str, cost: float = 1.0) -> float:
        """0 if there was room, else the seconds until there is."""
        now = self.clock()
        level, seen = self._levels.pop(name, (self.burst, now))
        level = min(self.burst, level + (now - seen) * self.rate)
        wait = 0.0 if level >= cost else (cost - level) / self.rate
        self._levels[name] = (level - cost if wait == 0.0 else level, now)
        if len(self._levels) > self.most:
            self._levels.popitem(last=False)
        return wait


@dataclass
class Door:
    """The outermost ASGI application."""

    app: Any
    hosts: frozenset[str]
    max_body: int
    max_depth: int

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Let through what keeps the limits."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in HEADERS if pair[0] not in present),
                ]
            await send(message)

        try:
            headers = dict(scope["headers"])
            self._require_host(headers.get(b"host", b"").decode("latin-1"))
            body = await self._body(headers, receive)
        except ProblemError as refused:
            await answer(refused, guarded)
            return
        try:
            await self.app(scope, _once(body, receive), guarded)
        except Exception as error:  # noqa: BLE001 - it has been answered; a traceback in the log could quote the request
            LOG.error("a request failed with %s", type(error).__name__)

    def _require_host(self, host: str) -> None:
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if "*" not in self.hosts and name.lower() not in self.hosts:
            raise ProblemError(
                421,
                "wrong-host",
                "the Host header does not name this service.",
                hint="list the name in allowed_hosts of the settings.",
            )

    async def _body(self, headers: dict[bytes, bytes], receive: Any) -> bytes:
        announced = headers.get(b"content-length", b"0")
        size = int(announced) if announced.isdigit() and len(announced) < 16 else self.max_body + 1
        try:
            async with asyncio.timeout(SLOWEST):
                body = await self._read(receive, keep=size <= self.max_body)
        except TimeoutError:
            raise ProblemError(
                413,
                "too-large",
                f"the body took longer than {SLOWEST:g} s.",
                hint="send it at once.",
            ) from None
        if body is None:
            raise ProblemError(
                413,
                "too-large",
                f"the body has more than {self.max_body:,} bytes.",
                hint="send batches of at most 1,000.",
                law=f"at most {self.max_body} bytes",
            )
        if len(body) > self.max_depth and depth_of(body) > self.max_depth:
            raise ProblemError(
                422,
                "too-deep",
                f"the body is nested deeper than {self.max_depth} levels.",
                hint="send plain objects.",
            )
        return body

    async def _read(self, receive: Any, *, keep: bool) -> bytes | None:
        """The body, or None if it is too large; what is too large is read and thrown away, up to a
        point.
        """
        parts: list[bytes] = []
        size, more = 0, True
        while more and size <= DRAIN:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            part, more = message.get("body", b""), message.get("more_body", False)
            size += len(part)
            keep = keep and size <= self.max_body
            if keep:
                parts.append(part)
            else:
                parts.clear()
        return b"".join(parts) if keep else None


def _once(body: bytes, receive: Any) -> Any:
    """A `receive` that hands over the body that was read, then waits for the client to go."""
    handed = False

    async def again() -> Message:
        nonlocal handed
        if not handed:
            handed = True
            return {"type": "http.request", "body": body, "more_body": False}
        return dict(await receive())

    return again


async def answer(refused: ProblemError, send: Any) -> None:
    """Send a problem document."""
    body = encode(refused.document)
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in refused.headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
