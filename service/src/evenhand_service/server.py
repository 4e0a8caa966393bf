"""From the settings to a running process: where it may listen, what it needs, its first key, and
one uvicorn server around the application.
"""

import contextlib
import gc
import ipaddress
import logging
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from evenhand.errors import InvalidInput
from evenhand_service.keys import LedgerKeys
from evenhand_service.ledger import (
    Keyring,
)
from evenhand_service.ledger.guard import LOG
from evenhand_service.monitoring import RequestLog, log_as_json
from evenhand_service.opening import (
    begun_by,
    keyring_is_away,
    mark_of,
    require_as_begun,
    require_private_keyring,
)
from evenhand_service.request_guard import RequestGuard
from evenhand_service.settings import Settings
from evenhand_service.state import LOG as SERVICE_LOG
from evenhand_service.traces import TracedRequests, require_installed

FILES = 200
"""Files that the process opens besides connections."""
STARTUP_FAILED = 3
"""How the process ends that could not start."""
IDLE_SECONDS = 75
"""For a kept connection: longer than a proxy keeps one, so that the proxy closes it."""


def warn_without_witness(settings: Settings) -> None:
    """Say in the log that nobody outside knows how far the chain went."""
    mark = mark_of(settings)
    known = f"the file {mark} alone" if mark is not None else "nothing"
    LOG.warning(
        "there is no [[witness]]: an older state of the database that is put back is seen by %s, "
        "and history that is rewritten with the keyring by nothing",
        known,
    )


def first_key(keys: LedgerKeys, settings: Settings) -> Path | None:
    """Where the first key, with every scope, was written, if there was none: a file beside the
    keyring that only its owner can read. A key is never printed, because a log is read by others.
    """
    if len(keys):
        return None
    if settings.keyring_file is None:
        LOG.warning("there is no API key yet: evenhand keys create")
        return None
    path = settings.keyring_file.with_name("first-key")
    beside = path.with_name(f".first-key.{os.getpid()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # before the key is made
    with os.fdopen(handle, "w") as file:
        token = keys.first(by="evenhand serve")
        if token is not None:
            file.write(f"{token}\n")
            file.flush()
            os.fsync(file.fileno())
    if token is None:  # another replica was faster
        beside.unlink()
        return None
    os.replace(beside, path)
    return path


def require_safe_address(settings: Settings) -> None:
    """The service stays on this machine, unless a proxy stands in front of it, which ends TLS and
    keeps slow clients away; an open dashboard always does.
    """
    with contextlib.suppress(ValueError):  # a name, not an address
        if settings.host == "localhost" or ipaddress.ip_address(settings.host).is_loopback:
            return
    if settings.open_dashboard:
        raise InvalidInput(
            f"the demo listens on {settings.host}; "
            "its dashboard is open, so it stays on this machine."
        )
    if not settings.behind_proxy:
        raise InvalidInput(
            f"{settings.host} can be reached from elsewhere: API keys would travel in the clear, "
            "and slow clients would keep others waiting.",
            hint="put a proxy in front (service/deploy/nginx.conf), and give --behind-proxy.",
        )


def require_places(settings: Settings) -> None:
    """What the service writes lies in directories where it can: a SQLite ledger, and a keyring that
    is still to be made.
    """
    wanted = {"ledger": settings.ledger_file}
    if settings.keyring_file is not None and not settings.keyring_file.is_file():
        wanted["keyring"] = settings.keyring_file
    for name, file in wanted.items():
        if file is None:
            continue
        place = file.absolute()
        if place.is_dir() or not os.access(place.parent, os.W_OK | os.X_OK):
            raise InvalidInput(
                f"{name} of [service] is {str(place)!r}; it should be a file in a directory where "
                "this user can write.",
                hint=f"mkdir -p {place.parent}, and give it to the user of the service.",
            )


def check(settings: Settings) -> Iterator[str]:
    """Everything that a start needs, one line for each thing that holds; the first that does not
    is refused. Nothing is written.
    """
    products = ", ".join(product.name for product in settings.products)
    yield f"settings: {len(settings.products)} products ({products})"
    require_safe_address(settings)
    bound(settings).close()
    yield f"address: {settings.host}:{settings.port}"
    if settings.traces:
        require_installed()
        yield "traces: OpenTelemetry is installed"
    require_places(settings)
    begun = begun_by(settings)
    keyring = None
    if settings.keyring_file is None or settings.keyring_file.exists():
        require_private_keyring(settings)
        keyring = Keyring.from_source(settings.keyring)
        yield f"keyring: {keyring.public_key}"
    elif begun is not None:
        raise keyring_is_away(settings.keyring_file, begun)
    else:
        yield "keyring: none yet; the first start makes one"
    if keyring is not None and begun not in (None, keyring.public_key):
        raise InvalidInput(
            f"the ledger in the database was begun by the holder of {begun}; keyring of [service] "
            f"is that of {keyring.public_key}.",
            hint="give the keyring that belongs to the ledger, or another database.",
        )
    if settings.ledger_file is None:
        state = "begins at the first start" if begun is None else "holds a ledger of this keyring"
        yield f"ledger: the database answers; it {state}"
    else:
        exists = settings.ledger_file.exists()
        yield f"ledger: {settings.ledger}{'' if exists else ' (the first start makes it)'}"
    if keyring is not None:
        yield from require_as_begun(settings, keyring)


def bound(settings: Settings) -> socket.socket:
    """A socket on the address of the settings; it listens once the server starts."""
    made = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((settings.host, settings.port))
    except OSError as error:
        made.close()
        raise InvalidInput(
            f"host and port of [service] are {settings.host}:{settings.port}; "
            f"they should be free to listen on: {error.strerror}.",
            hint="stop what listens there, or choose another port.",
        ) from None
    return made


class DrainingServer(uvicorn.Server):
    """A server that is not ready any more as soon as it is asked to stop; uvicorn then answers
    those who are still asking.
    """

    def __init__(self, config: uvicorn.Config, on_drain: Callable[[], None]) -> None:
        super().__init__(config)
        self.on_drain = on_drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's."""
        self.on_drain()
        await super().shutdown(sockets)


def make_server(app: ASGIApp, settings: Settings) -> DrainingServer:
    """A server that logs neither requests (their paths hold keys of applications) nor its own
    version, and answers all before it stops. Slow and silent clients are the proxy's: see
    service/deploy/nginx.conf.
    """
    require_safe_address(settings)
    config = uvicorn.Config(
        TracedRequests(app) if settings.traces else app,
        host=settings.host,
        port=settings.port,
        http="httptools",
        loop="asyncio",
        ws="none",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the guard believes a proxy that the settings name
        log_level="error",
        limit_concurrency=_room_for_connections(settings),
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=5,
    )

    if settings.log_requests and isinstance(app, RequestGuard):
        app.service.request_log = RequestLog()
        SERVICE_LOG.setLevel(logging.INFO)  # what was published, and by which model

    def stop_being_ready() -> None:
        if isinstance(app, RequestGuard):
            app.service.health.draining = True

    return DrainingServer(config, stop_being_ready)


def _room_for_connections(settings: Settings) -> int:
    """As many connections as the settings say and files may be opened."""
    try:
        import resource
    except ImportError:  # Windows knows no such limit
        return settings.max_connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.max_connections + FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(min(settings.max_connections, soft - FILES), 1)


def run(server: uvicorn.Server, listening: socket.socket | None = None) -> None:
    """Serve until stopped, on a socket that was bound before, if there is one. Ctrl-C is how one
    stops it by hand, and no failure; SIGTERM ends the process as ever.

    What is there by now stays as long as the process, so the garbage collector need not look at it
    again; and the requests that share a commit have more young objects than its usual 700. Together
    about a tenth of the time of a request.
    """
    log_as_json()
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn drains, then raises it again
        server.run(sockets=None if listening is None else [listening])
    if not server.started:  # the log says why; uvicorn's command ends so, too
        raise SystemExit(STARTUP_FAILED)
