"""The application: one process that decides, learns, and shows. `create_app` puts the parts
together; the routes are thin.
"""

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from evenhand.errors import EvenhandError
from evenhand.ledger import Ledger
from evenhand.service.board import ProductCounts
from evenhand.service.config import Product, Settings
from evenhand.service.desk import Desk
from evenhand.service.keys import Key, KeyStore, Scope
from evenhand.service.limits import Buckets, Door
from evenhand.service.metrics import Metrics
from evenhand.service.problems import (
    MEDIA_TYPE,
    ProblemError,
    encode,
    of_refusal,
    of_validation,
    problem,
)
from evenhand.service.trainer import Trainer

LOG = logging.getLogger("evenhand.service")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
TURN = 0.0005
"""Seconds."""


class Service:
    """What the routes share: desk, trainers, tallies, keys, buckets, metrics."""

    def __init__(self, ledger: Ledger, settings: Settings, keys: KeyStore) -> None:
        self.ledger, self.settings, self.keys = ledger, settings, keys
        self.desk = Desk(ledger, settings)
        holder = f"{socket.gethostname()}:{os.getpid()}"
        self.trainers = {(p.tenant, p.name): Trainer(ledger, p, holder) for p in settings.products}
        self.tallies = {(p.tenant, p.name): ProductCounts(ledger, p) for p in settings.products}
        self.buckets = Buckets(settings.rate, settings.burst)
        self.strangers = Buckets(5.0, 50.0)
        self.metrics = Metrics(self.desk)

    def begin(self) -> None:
        """Every product has a policy before the first request.

        A restored ledger has one, and draws nothing.
        """
        from evenhand.service.in_force import register_constants

        for product in self.settings.products:
            register_constants(self.ledger, product)
            if self.ledger.active(product.tenant, product.name) is None:
                self.trainer(product).begin()
            self.desk.refresh(product)

    def trainer(self, product: Product) -> Trainer:
        """The product's trainer."""
        return self.trainers[product.tenant, product.name]

    def tally(self, product: Product) -> ProductCounts:
        """What is counted of the product by group."""
        return self.tallies[product.tenant, product.name]

    def train(self, product: Product) -> None:
        """Close the epoch if it is due, and take up what has been published, here or elsewhere."""
        published = self.trainer(product).close_if_due()
        if published is not None:
            LOG.info("product %s: epoch %d published", product.name, published.epoch)
        self.desk.refresh(product)

    def caller(self, request: Request, scope: Scope) -> Key:
        """Whose request this is; 401 without a valid key, 403 without the scope, 429 if too often."""
        words = request.headers.get("authorization", "").split()
        key = self.keys.find(words[1]) if len(words) == 2 and words[0].lower() == "bearer" else None
        if key is None:
            self._take(self.strangers, request.client.host if request.client else "?")
            raise ProblemError(
                401,
                "unauthorised",
                "the request carries no valid API key.",
                hint="send Authorization: Bearer eh_...",
                headers={"WWW-Authenticate": "Bearer"},
            )
        self._take(self.buckets, key.id)
        if scope not in key.scopes:
            raise ProblemError(
                403,
                "forbidden",
                f"this needs the scope {scope!r}.",
                hint="ask an admin for such a key.",
            )
        return key

    @staticmethod
    def _take(buckets: Buckets, name: str) -> None:
        wait = buckets.take(name)
        if wait > 0:
            raise ProblemError(
                429,
                "too-many",
                f"more than {buckets.rate:g} requests a second.",
                hint="wait, or send batches.",
                headers={"Retry-After": str(max(1, round(wait)))},
            )


def service_of(request: Request) -> Service:
    """The service behind a request."""
    found: Service = request.app.state.service
    return found


def caller(scope: Scope) -> Callable[[Request], Awaitable[Key]]:
    """A dependency: the key of the request, which must have that scope."""

    async def check(request: Request) -> Key:
        return service_of(request).caller(request, scope)

    return check


async def serving(request: Request) -> Service:
    """The same as a dependency: FastAPI would send a plain function through a pool of threads, once
    per request.
    """
    return service_of(request)


Serving = Annotated[Service, Depends(serving)]
MayDecide = Annotated[Key, Depends(caller("decide"))]
MayObserve = Annotated[Key, Depends(caller("observe"))]
MayAudit = Annotated[Key, Depends(caller("audit"))]
MayAdmin = Annotated[Key, Depends(caller("admin"))]


def problem_response(document: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    """A problem document as a response."""
    return Response(encode(document), document["status"], headers, MEDIA_TYPE)


async def _on_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return problem_response(error.document, error.headers)


async def _on_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, EvenhandError)
    return problem_response(of_refusal(error))


async def _on_validation(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(of_validation(error.errors()))


async def _on_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kinds = {404: "not-found", 405: "method"}
    kind = kinds.get(error.status_code, "bad-json")
    return problem_response(
        problem(
            error.status_code,
            kind,
            f"{error.detail}.",
            hint="GET /openapi.json lists what there is.",
        ),
        dict(error.headers or {}),
    )


async def _on_crash(_: Request, __: Exception) -> Response:
    """Nobody is told what broke; the door logs its kind, and not the request, which may hold a
    group.
    """
    return problem_response(
        problem(503, "ledger-unavailable", "the request could not be completed.", hint="try again.")
    )


def create_app(ledger: Ledger, settings: Settings, keys: KeyStore, *, train: bool = True) -> Any:
    """The ASGI application. `train`: whether this process also closes epochs."""
    from evenhand.service import dashboard, routes_decide, routes_operate, routes_read

    service = Service(ledger, settings, keys)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.begin)
        task = asyncio.create_task(
            _keep_up(service, service.train if train else service.desk.refresh)
        )
        with _short_turns():
            yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    app = FastAPI(
        title="evenhand",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        lifespan=lifespan,
    )
    app.state.service = service
    for router in (
        routes_decide.ROUTER,
        routes_read.ROUTER,
        routes_operate.ROUTER,
        dashboard.ROUTER,
    ):
        app.include_router(router)
    app.add_exception_handler(ProblemError, _on_problem)
    app.add_exception_handler(EvenhandError, _on_refusal)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_crash)
    hosts = frozenset(name.lower() for name in (*LOOPBACK, *settings.allowed_hosts))
    return Door(app, hosts, settings.max_body, settings.max_depth)


@contextlib.contextmanager
def _short_turns() -> Iterator[None]:
    """SQLite lets go of the interpreter at each step; the ledger's thread gets it back after TURN,
    not after 5 ms, and so reaches the disk while the event loop still has work."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


async def _keep_up(service: Service, step: Callable[[Product], Any]) -> None:
    """Every few seconds, off the event loop: train, or only take up what another process has
    published. A step that fails is tried again and never stops the deciding."""
    while True:
        await asyncio.sleep(service.settings.train_every)
        for product in service.settings.products:
            try:
                await asyncio.to_thread(step, product)
            except EvenhandError as refusal:
                LOG.warning("product %s is not trained: %s", product.name, refusal)
                service.metrics.failed_trainings.inc()
