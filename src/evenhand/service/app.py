"""The ASGI application: one process that decides, learns and shows."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from fastapi import FastAPI

from evenhand.errors import EvenhandError
from evenhand.ledger import Ledger
from evenhand.service import dashboard, routes
from evenhand.service.keys import KeyStore
from evenhand.service.problems import ANSWERED_ERRORS, answer_error
from evenhand.service.request_guard import RequestGuard
from evenhand.service.settings import Product, Settings
from evenhand.service.state import LOG, Service

LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
SWITCH_INTERVAL = 0.0005
"""Seconds after which Python lets another thread run, while the service does."""


def create_app(
    ledger: Ledger, settings: Settings, keys: KeyStore, *, train: bool = True
) -> RequestGuard:
    """Make the ASGI application.

    Parameters
    ----------
    ledger : Ledger
        Where decisions are written; opened with `render=render`.
    settings : Settings
        The products and the limits.
    keys : KeyStore
        The API keys.
    train : bool
        Whether this process also closes epochs; otherwise it only takes up what others publish.

    Returns
    -------
    RequestGuard
        An ASGI application; its `app` is the FastAPI application, whose state holds the service.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from starlette.testclient import TestClient
    >>> from evenhand.ledger import Keyring
    >>> from evenhand.service import render
    >>> place = Path(tempfile.mkdtemp()) / "ledger.sqlite"
    >>> settings = Settings((Product("bank", "loan", ("score",)),))
    >>> keys = KeyStore(None)
    >>> headers = {"Authorization": "Bearer " + keys.add("bank", ["decide"])}
    >>> asked = {"key": "k1", "person": "p1", "product": "loan", "features": [612.0]}
    >>> with Ledger.open(
    ...     place, keyring=Keyring.generate(), clock=lambda: 1e9, render=render
    ... ) as ledger:
    ...     app = create_app(ledger, settings, keys)
    ...     with TestClient(app, base_url="http://localhost", headers=headers) as client:
    ...         client.post("/v1/decisions", json=asked).json()["accept"]
    True
    """
    service = Service(ledger, settings, keys)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.begin)
        step = service.train if train else service.decider.refresh
        task = asyncio.create_task(keep_up(service, step))
        with _short_switch_interval():
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
    app.include_router(routes.ROUTER)
    app.include_router(dashboard.ROUTER)
    for error in ANSWERED_ERRORS:
        app.add_exception_handler(error, answer_error)
    hosts = frozenset(name.lower() for name in (*LOCAL_HOSTS, *settings.allowed_hosts))
    return RequestGuard(app, hosts=hosts, max_body=settings.max_body, max_depth=settings.max_depth)


@contextlib.contextmanager
def _short_switch_interval() -> Iterator[None]:
    """SQLite lets go of the interpreter at each step. The ledger's thread gets it back after
    SWITCH_INTERVAL instead of 5 ms, and so reaches the disk while the event loop still has work.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


async def keep_up(service: Service, step: Callable[[Product], Any]) -> None:
    """Every few seconds, off the event loop: train, or only take up what another process has
    published. A step that fails is tried again and never stops the deciding.
    """
    while True:
        await asyncio.sleep(service.settings.train_every)
        for product in service.settings.products:
            try:
                await asyncio.to_thread(step, product)
            except EvenhandError as refusal:
                LOG.warning("product %s is not trained: %s", product.name, refusal)
                service.metrics.failed_trainings.inc()
