"""What is checked of every request, in this order: the host, the key and how often it comes, the
size of the body and the bytes of its key. Nothing here looks into the body; bodies.py does, after
all this. Every answer gets the security headers.
"""

import ipaddress
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Request
from starlette import types
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Send

from evenhand.errors import EvenhandError
from evenhand_service import schemas
from evenhand_service.bodies import require_json
from evenhand_service.keys import Key, Scope, require_scope, too_many
from evenhand_service.problems import ProblemError, error_response, problem, problem_response
from evenhand_service.state import LOG, Service
from evenhand_service.threads import Found, Given

PUBLIC = ("/", "/openapi.json", "/health", "/health/live", "/health/ready")
"""Paths that need no key; the dashboard's, which has sessions, are the others."""
MOST_PUBLIC_BODY = 8 * 2**10
"""Bytes of a body where no key is needed: a form with a key."""
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
ONCE = (b"host", b"authorization")
"""Headers that a request may have once (RFC 9112, 3.2; RFC 9110, 11.6.2)."""
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
"""A name or an address, and perhaps a port (RFC 9110, 7.2): nothing of which two readers could take
different parts for the name.
"""
PROBE = 0.1
"""What a probe costs of the requests that an address may send where no key is needed. It is
answered from memory; and a machine that cannot ask whether the service runs would restart it.
"""


@dataclass(frozen=True)
class Caller:
    """Somebody with a valid key, and the service that answers."""

    service: Service
    key: Key

    @property
    def by(self) -> str:
        """Who it is, for the record: the name of the key."""
        return self.key.name or f"key {self.key.id}"

    async def look(
        self, work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs
    ) -> Found:
        """What the work finds, in a thread that deciding and operating do not need."""
        return await self.service.looking.run(self.key.id, work, *given, **named)

    async def operate(
        self, work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs
    ) -> Found:
        """What the work returns, in a thread that nobody else needs."""
        return await self.service.operating.run(self.key.id, work, *given, **named)

    async def require_second(self, what: str, **request: object) -> None:
        """409 until another key has asked for the same, where the settings want four eyes."""
        if self.service.settings.four_eyes:
            ledger = self.service.ledger
            await self.operate(ledger.require_second, what, request, self.key.sha256, self.by)

    def signed(self, body: schemas.Signed) -> dict[str, str]:
        """`by`, and the note with whom the caller names beside the key."""
        parts = (part for part in (body.by, body.note) if part)
        return {"by": self.by, "note": ": ".join(parts)}


QuickRoutes = Mapping[tuple[str, str], Callable[[Caller, bytes], Awaitable[Response]]]
"""By method and path: routes that answer without FastAPI."""


class _Exchange:
    """One request on its way: its id, when it began, its body until somebody has received it, and
    the status of the answer, 0 before there is one.
    """

    def __init__(self, receive: Receive, send: Send) -> None:
        self.began = time.perf_counter()
        self.id = os.urandom(8).hex()
        self.status = 0
        self.body: bytes | None = None
        self._receive = receive
        self._send = send

    async def receive(self) -> Message:
        """The body, once; then what comes from the client."""
        if self.body is None:
            return await self._receive()  # the client goes
        content = self.body
        self.body = None
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(self, message: Message) -> None:
        """Send a part of the answer; its start gets the headers of every answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            present = {name for name, _ in message["headers"]}
            missing = (pair for pair in SECURITY_HEADERS if pair[0] not in present)
            named = (b"x-request-id", self.id.encode())
            message["headers"] = [*message["headers"], *missing, named]
        await self._send(message)


class RequestGuard:
    """The outermost ASGI application: it passes on the requests that keep the limits.

    hosts: the names for which the service answers, in lower case; "*" means any. Starlette's
    TrustedHostMiddleware would answer without a problem document and does not know "[::1]".
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        hosts: frozenset[str],
        quick: QuickRoutes | None = None,
    ) -> None:
        self.app = app
        self.service = service
        self.hosts = hosts
        self.quick = quick or {}
        self.max_body = service.settings.max_body

    async def __call__(self, scope: types.Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(receive, send)
        try:
            headers = dict(scope["headers"])
            self._require_host(scope, headers)
            _keep_parts_whole(scope)
            most = await self._require_key(scope, headers)
            self._require_few_bytes(scope, _announced(headers))
            exchange.body = body = await _body(headers, receive, most)
            if body is None:
                return  # the client has gone
            if b"content-length" not in headers:
                self._require_few_bytes(scope, len(body))
            route = self.quick.get((scope["method"], scope["path"]))
            if route is None:
                await self.app(scope, exchange.receive, exchange.send)
            else:
                require_json(headers.get(b"content-type", b"").decode("latin-1"))
                key: Key = scope["evenhand.key"]
                scope["evenhand.route"] = scope["path"]
                response = await route(Caller(self.service, key), body)
                await response(scope, receive, exchange.send)
        except (ProblemError, EvenhandError) as refused:
            await error_response(refused)(scope, receive, exchange.send)
        # a traceback in the log could quote the request
        except Exception as error:  # noqa: BLE001
            LOG.error("request %s failed with %s", exchange.id, type(error).__name__)
            if exchange.status == 0:  # FastAPI answers by itself
                failed = "the request could not be completed."
                document = problem("ledger-unavailable", failed, hint="try again.")
                await problem_response(document)(scope, receive, exchange.send)
        finally:
            if self.service.request_log is not None:
                seconds = time.perf_counter() - exchange.began
                forwarded = self.service.people_of_proxy.client(scope)
                log = self.service.request_log.request
                log(exchange.id, scope, exchange.status, seconds, forwarded)

    def _require_host(self, scope: types.Scope, headers: Mapping[bytes, bytes]) -> None:
        """One host, which is this service, and at most one key: who sees the first of two may not
        be who sees the second.
        """
        if len(headers) < len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            twice = next((name for name in ONCE if names.count(name) > 1), None)
            if twice is not None:
                raise ProblemError(
                    "bad-request",
                    f"the request has several headers {twice.decode()!r}.",
                    hint="send it once.",
                    requirement="at most one",
                )
        if b"host" not in headers and scope.get("http_version") == "1.1":
            raise ProblemError(
                "bad-request",
                "the request has no header 'host'.",
                hint="name the service as allowed_hosts of its settings does.",
            )
        if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise ProblemError(
                "bad-request",
                "the body is encoded in another way than in chunks.",
                hint="send it as it is, with a Content-Length.",
            )
        host = _HOST.fullmatch(headers.get(b"host", b"").decode("latin-1").lower())
        known = host is not None and (self.hosts & {"*", host[1]} or host[1] == _arrived_at(scope))
        if not known:
            raise ProblemError(
                "wrong-host",
                "the Host header does not name this service.",
                hint="list the name in allowed_hosts of the settings.",
            )

    async def _require_key(self, scope: types.Scope, headers: Mapping[bytes, bytes]) -> int:
        """The bytes that the body may have; the key of the caller is left in the scope."""
        path: str = scope["path"]
        if path in PUBLIC or path == "/dashboard" or path.startswith("/dashboard/"):
            self._require_seldom(scope)
            return MOST_PUBLIC_BODY
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        try:
            key = await self.service.key_guard.authenticate(authorization, scope)
        except ProblemError:
            raise
        except Exception as error:
            raise ProblemError(
                "ledger-unavailable", "the key cannot be checked now.", hint="try again."
            ) from error
        scope["evenhand.key"] = key
        return self.max_body

    def _require_seldom(self, scope: types.Scope) -> None:
        """429 if an address asks too often where no key is needed."""
        public = self.service.public
        cost = PROBE if scope["path"].startswith("/health") else 1.0
        wait = public.take(self.service.people_of_proxy.client(scope), cost)
        if wait > 0:
            raise too_many(f"more than {public.rate:g} requests a second without a key.", wait)

    def _require_few_bytes(self, scope: types.Scope, size: int) -> None:
        """429 if a key sends more bytes than it may; before they are read, where it says how many
        there are.
        """
        key: Key | None = scope.get("evenhand.key")
        if key is not None and 0 < size <= self.max_body:  # more is refused anyway
            allowed = self.service.bytes_of_key
            wait = allowed.take(key.id, size)
            if wait > 0:
                raise too_many(f"more than {allowed.rate:,.0f} bytes a second of one key.", wait)


def _arrived_at(scope: types.Scope) -> str | None:
    """The address of this machine to which the connection was made, as a Host header has it.
    Probes of a cluster and Prometheus look at each replica by its address, and know no name; and
    unlike a name, nobody can let an address stand for another machine.
    """
    try:
        address = ipaddress.ip_address((scope.get("server") or ("",))[0])
    except ValueError:  # a socket of this machine, or a test
        return None
    return f"[{address}]" if address.version == 6 else str(address)


def _keep_parts_whole(scope: types.Scope) -> None:
    """A "/" that came encoded belongs to a part of the path, such as the key of an application: it
    is encoded still when routes are looked up, and `PathText` decodes it.
    """
    raw: bytes = scope.get("raw_path") or b""
    if b"%" in raw:
        parts = (unquote(part) for part in raw.decode("latin-1").split("/"))
        scope["path"] = "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def _announced(headers: Mapping[bytes, bytes]) -> int:
    """The bytes that the body is said to have; 0 if nothing is said, too many of what is none."""
    announced = headers.get(b"content-length", b"0")
    return int(announced) if announced.isdigit() and len(announced) < 16 else sys.maxsize


async def _body(headers: Mapping[bytes, bytes], receive: Receive, most: int) -> bytes | None:
    """The body, of at most so many bytes; None if the client has gone."""
    if _announced(headers) <= most:
        message = await receive()
        content: bytes = message.get("body", b"")
        parts = [content]
        size = len(content)
        while message["type"] == "http.request" and message.get("more_body") and size <= most:
            message = await receive()
            content = message.get("body", b"")
            parts.append(content)
            size += len(content)
        if message["type"] == "http.disconnect":
            return None
        if size <= most:
            return b"".join(parts)
    raise ProblemError(
        "too-large",
        f"the body has more than {most:,} bytes.",
        hint="send batches of at most 1,000.",
        requirement=f"at most {most} bytes",
    )


class WithScope:
    """A dependency of a route: the caller, if the key has a scope. `app.described` writes it into
    the document.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    # a coroutine, because FastAPI sends plain functions through a pool of threads
    async def __call__(self, request: Request) -> Caller:
        """The caller; 403 without the scope."""
        service: Service = request.app.state.service
        key: Key = request.scope["evenhand.key"]  # the guard has found it
        if self.scope != "decide" or request.method != "POST":
            # another replica may have revoked it; decisions ask inside of their transaction
            await service.decider.current()
            known = service.decider.basis.keys
            service.key_guard.require_valid(key)
            # and may do so while the work waits: the transaction that does it looks again
            service.ledger.asked_by(key.sha256, known)
        require_scope(key, self.scope)
        return Caller(service, key)


MayDecide = Annotated[Caller, Depends(WithScope("decide"))]
MayObserve = Annotated[Caller, Depends(WithScope("observe"))]
MayOverride = Annotated[Caller, Depends(WithScope("override"))]
MayAudit = Annotated[Caller, Depends(WithScope("audit"))]
MayAdmin = Annotated[Caller, Depends(WithScope("admin"))]
