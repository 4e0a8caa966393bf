"""The ASGI application: one process that decides, learns and shows."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache, partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import Counter
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Lifespan

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand_service import dashboard, routes
from evenhand_service.bodies import Reads
from evenhand_service.keys import LedgerKeys
from evenhand_service.ledger import Ledger
from evenhand_service.problems import (
    ProblemError,
    error_response,
    problem,
    problem_response,
    validation_problem,
)
from evenhand_service.request_guard import RequestGuard, WithScope
from evenhand_service.schemas import Body, ProblemDocument
from evenhand_service.settings import Settings
from evenhand_service.state import LOG, Service

LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
SWITCH_INTERVAL = 0.0005
"""Seconds after which Python lets another thread run, while the service does. SQLite lets go of the
interpreter at each step; so the ledger's thread gets it back after this time instead of 5 ms, and
reaches the disk while the event loop still has work.
"""


NO_TELEMETRY: Any = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""FastAPI's own telemetry puts paths, which hold keys of applications, and the words of errors,
which may quote a body, into the spans and logs of whoever sets OpenTelemetry's variables. `traces`
has ours. (Older versions know no such thing, and ignore it.)"""


def create_app(
    ledger: Ledger, settings: Settings, keys: LedgerKeys, *, train: bool = True
) -> RequestGuard:
    """Make the ASGI application.

    Parameters
    ----------
    ledger : Ledger
        Where decisions are written; opened with `render=render`.
    settings : Settings
        The products and the limits.
    keys : LedgerKeys
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
    >>> from evenhand_service.ledger import Keyring
    >>> from evenhand_service import Product, render
    >>> place = Path(tempfile.mkdtemp()) / "ledger.sqlite"
    >>> settings = Settings((Product("loan", ("score",)),))
    >>> asked = {"key": "k1", "person": "p1", "product": "loan", "features": [612.0]}
    >>> with Ledger.open(
    ...     place, keyring=Keyring.generate(), clock=lambda: 1e9, render=render
    ... ) as ledger:
    ...     keys = LedgerKeys(ledger)
    ...     headers = {"Authorization": "Bearer " + keys.add(["decide"])}
    ...     app = create_app(ledger, settings, keys)
    ...     with TestClient(app, base_url="http://localhost", headers=headers) as client:
    ...         client.post("/v1/decisions", json=asked).json()["accept"]
    True
    """
    service = Service(ledger, settings, keys)
    app = make_api(lambda _: running(service, train))
    app.state.service = service
    hosts = frozenset(name.lower() for name in (*LOCAL_HOSTS, *settings.allowed_hosts))
    return RequestGuard(app, service, hosts, routes.QUICK)


def make_api(lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    """Put the routes together.

    Parameters
    ----------
    lifespan : callable, optional
        What happens at the start and at the end of the process.

    Returns
    -------
    FastAPI
        Without a service it answers nothing, but `openapi()` describes it.

    Examples
    --------
    >>> make_api().openapi()["paths"]["/v1/erasures"]["post"]["security"]
    [{'key': ['admin']}]
    """
    app = FastAPI(
        title="evenhand",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry=NO_TELEMETRY,
        lifespan=lifespan,
    )
    written = app.openapi
    app.openapi = lambda: described(app, written)  # type: ignore[method-assign]
    document = cache(lambda: canonical(app.openapi()).encode())

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return Response(document(), media_type="application/json")

    app.include_router(routes.ROUTER)
    app.include_router(dashboard.ROUTER)
    app.state.plain_routes = [*routes.ROUTER.routes, *dashboard.ROUTER.routes]
    for error in (
        ProblemError,
        EvenhandError,
        RequestValidationError,
        HTTPException,
        Exception,
    ):
        app.add_exception_handler(error, answer_error)
    return app


async def answer_error(request: Request, error: Exception) -> Response:
    """The answer to a request that raised; nobody learns what broke inside."""
    match error:
        case ProblemError() | EvenhandError():
            return error_response(error)
        case RequestValidationError():
            return problem_response(validation_problem(error.errors()))
        case HTTPException(status_code=303):
            return Response(status_code=303, headers=error.headers)
        case HTTPException():
            kind = {404: "not-found", 405: "method"}.get(error.status_code, "bad-json")
            hint = "GET /openapi.json lists what there is."
            document = problem(kind, f"{error.detail}.", hint=hint)
            headers = error.headers
            if error.status_code == 405:
                # Starlette names the methods of one route; the path as the document has it may have
                # several ("batch" could be the key of a decision, too, and is not meant)
                matching = [
                    route
                    for route in request.app.state.plain_routes
                    if route.matches(request.scope)[0] is not Match.NONE
                ]
                if matching:
                    path = min(matching, key=lambda route: route.path.count("{")).path
                    methods = {m for route in matching if route.path == path for m in route.methods}
                    headers = {"Allow": ", ".join(sorted(methods))}
            return problem_response(document | {"status": error.status_code}, headers)
    return problem_response(
        problem("ledger-unavailable", "the request could not be completed.", hint="try again.")
    )


@contextlib.asynccontextmanager
async def running(service: Service, train: bool) -> AsyncIterator[None]:
    """From the start of the process to its end: what is repeated in the background."""
    await asyncio.to_thread(service.witnesses.start)
    await asyncio.to_thread(service.begin)
    settings = service.settings
    metrics = service.metrics
    products = settings.products if train else ()
    trainings = {f"training product {p.name}": partial(service.train, p) for p in products}
    looking = {"looking at the ledger": service.decider.keep_up}
    counting = {f"counting {p.name}": partial(service.count, p) for p in settings.products}
    often = min(settings.train_every, settings.refresh_limit / 3)
    # apart, because a training may take longer than the limit
    tasks = [
        asyncio.create_task(repeat(looking, often, metrics.failed_refreshes)),
        asyncio.create_task(repeat(trainings, settings.train_every, metrics.failed_trainings)),
        asyncio.create_task(repeat(counting, settings.train_every, metrics.failed_refreshes)),
    ]
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.to_thread(service.witnesses.close)
    await asyncio.to_thread(service.release)


def described(app: FastAPI, write: Callable[[], Json]) -> Json:
    """The OpenAPI document, with the scope of the key and the body that each route needs, and what
    a problem looks like.
    """
    if app.openapi_schema is not None:
        return app.openapi_schema
    document = write()
    parts = document.setdefault("components", {})
    parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    parts["schemas"]["ProblemDocument"] = ProblemDocument.model_json_schema()
    for name in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(name, None)
    taken: list[type[Body]] = []
    for route in app.state.plain_routes:
        if route.path not in document["paths"]:
            continue  # of the dashboard
        (method,) = route.methods
        operation = document["paths"][route.path][method.lower()]
        for part in route.dependant.dependencies:
            if isinstance(part.call, WithScope):
                operation["security"] = [{"key": [part.call.scope]}]
            elif isinstance(part.call, Reads):
                name = part.call.model.__name__
                schema = {"$ref": f"#/components/schemas/{name}"}
                content = {"application/json": {"schema": schema}}
                operation["requestBody"] = {"content": content, "required": True}
                taken.append(part.call.model)
    _, definitions = models_json_schema(
        [(model, "validation") for model in taken], ref_template="#/components/schemas/{model}"
    )
    parts["schemas"] |= definitions["$defs"]
    return document


async def repeat(
    steps: Mapping[str, Callable[[], None]], seconds: float, failures: Counter
) -> None:
    """Every so many seconds, off the event loop, for ever: whatever a step raises is logged and
    counted, and the next one comes all the same.
    """
    while True:
        await asyncio.sleep(seconds)
        for what, step in steps.items():
            try:
                await asyncio.to_thread(step)
            except EvenhandError as refusal:
                LOG.warning("%s: %s", what, refusal)
                failures.inc()
            except Exception as error:  # noqa: BLE001 - its message may quote what was written
                LOG.error("%s failed with %s; it is tried again", what, type(error).__name__)
                failures.inc()
