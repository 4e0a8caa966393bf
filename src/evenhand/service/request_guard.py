"""What is checked of every request before anything is parsed: the host, the size of the body, how
long it takes, and how deeply it is nested. Every answer gets the security headers.
"""

import asyncio
import logging
import re

import numpy as np
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.service.problems import ProblemError, problem_response

LOG = logging.getLogger("evenhand.service")
MOST_DRAINED = 64 * 2**20
"""Bytes of a refused body that are read and thrown away; then the client can read the refusal."""
SLOWEST_BODY = 30.0
"""Seconds that a body may take."""
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"cache-control", b"no-store"),
)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.S)


def nesting_depth(body: bytes) -> int:
    """How deeply arrays and objects are nested; brackets inside of strings do not count."""
    marks = np.frombuffer(_STRING.sub(b"", body), dtype=np.uint8)
    opened = (marks == ord("[")) | (marks == ord("{"))
    closed = (marks == ord("]")) | (marks == ord("}"))
    return int(np.cumsum(opened.astype(np.int32) - closed.astype(np.int32)).max(initial=0))


class RequestGuard:
    """The outermost ASGI application: it passes on the requests that keep the limits.

    hosts: the names for which the service answers, in lower case; "*" means any. Starlette's
    TrustedHostMiddleware would answer without a problem document and does not know "[::1]".
    """

    def __init__(
        self, app: ASGIApp, *, hosts: frozenset[str], max_body: int, max_depth: int
    ) -> None:
        self.app, self.hosts, self.max_body, self.max_depth = app, hosts, max_body, max_depth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body: bytes | None = None

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                missing = (pair for pair in SECURITY_HEADERS if pair[0] not in present)
                message["headers"] = [*message["headers"], *missing]
            await send(message)

        async def receive_body_once() -> Message:
            nonlocal body
            if body is None:
                return await receive()  # the client goes
            content, body = body, None
            return {"type": "http.request", "body": content, "more_body": False}

        try:
            body = await self._checked_body(dict(scope["headers"]), receive)
        except ProblemError as refused:
            response = problem_response(refused.document, refused.headers)
            await response(scope, receive, send_with_headers)
            return
        try:
            await self.app(scope, receive_body_once, send_with_headers)
        # it has been answered; a traceback in the log could quote the request
        except Exception as error:  # noqa: BLE001
            LOG.error("a request failed with %s", type(error).__name__)

    async def _checked_body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        host = headers.get(b"host", b"").decode("latin-1")
        name = host if host.endswith("]") else host.rsplit(":", 1)[0]
        if "*" not in self.hosts and name.lower() not in self.hosts:
            raise ProblemError(
                "wrong-host",
                "the Host header does not name this service.",
                hint="list the name in allowed_hosts of the settings.",
            )
        announced = headers.get(b"content-length", b"0")
        keep = announced.isdigit() and len(announced) < 16 and int(announced) <= self.max_body
        parts: list[bytes] = []
        size, more = 0, True
        try:
            async with asyncio.timeout(SLOWEST_BODY):
                while more and size <= MOST_DRAINED:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        break
                    part, more = message.get("body", b""), message.get("more_body", False)
                    size += len(part)
                    keep = keep and size <= self.max_body
                    if keep:
                        parts.append(part)
        except TimeoutError:
            raise ProblemError(
                "too-large",
                f"the body took longer than {SLOWEST_BODY:g} s.",
                hint="send it at once.",
            ) from None
        if not keep:
            raise ProblemError(
                "too-large",
                f"the body has more than {self.max_body:,} bytes.",
                hint="send batches of at most 1,000.",
                law=f"at most {self.max_body} bytes",
            )
        body = b"".join(parts)
        if len(body) > self.max_depth and nesting_depth(body) > self.max_depth:
            raise ProblemError(
                "too-deep",
                f"the body is nested deeper than {self.max_depth} levels.",
                hint="send plain objects.",
            )
        return body
