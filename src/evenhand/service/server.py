"""From the settings to a running process: opening the keyring, the ledger and the keys, and one
uvicorn server around the application.
"""

import asyncio
import contextlib
import gc
import ipaddress
import json
import os
import shutil
import socket
import sqlite3
import ssl
import stat
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from sqlalchemy import inspect, select
from sqlalchemy.exc import DBAPIError
from starlette.types import ASGIApp

from evenhand.errors import InvalidInput
from evenhand.ledger import Clock, Keyring, Ledger, LedgerLocked, LedgerUnavailable, WindowPlan
from evenhand.ledger.database import EVENTS, open_store
from evenhand.service.connections import HEAD_SECONDS, Connection, Crowd, DrainingServer
from evenhand.service.decider import render
from evenhand.service.keys import KeyStore, LedgerKeys
from evenhand.service.monitoring import RequestLog, log_as_json
from evenhand.service.request_guard import RequestGuard
from evenhand.service.settings import DAY, Settings
from evenhand.service.state import LOG

SOURCES = ("env:", "command:")
"""How a keyring begins that is no file."""
FILES = 200
"""Files that the process opens besides connections."""


def open_keyring(settings: Settings) -> Keyring:
    """The keyring; a new one is made only where there is no ledger yet, and only as a file."""
    if settings.keyring.startswith(SOURCES):
        return Keyring.from_source(settings.keyring)
    path = Path(settings.keyring)
    if path.exists():
        require_private_keyring(settings)
        return Keyring.load(path)
    if "://" not in settings.ledger and Path(settings.ledger).exists():
        raise InvalidInput(
            f"the ledger {settings.ledger} exists, but its keyring {path} does not.",
            hint="put the keyring back: without it nothing in the ledger can be read.",
        )
    begun = _begun_by(settings)
    if begun is not None and not path.exists():
        raise _keyring_is_away(path, begun)
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):  # another replica was faster
        Keyring.generate().save(path)
    return Keyring.load(path)


def require_private_keyring(settings: Settings) -> None:
    """A keyring's file is for the service alone; a group may read it where the service gets it from
    one, as in a cluster.
    """
    if settings.keyring.startswith(SOURCES) or os.name != "posix":
        return
    mode = stat.S_IMODE(Path(settings.keyring).stat().st_mode)
    if mode & stat.S_IRWXO:
        raise InvalidInput(
            f"keyring of [service] is {settings.keyring!r}, with mode {mode:04o}; nobody but its "
            "owner should get at it, for whoever has it and the database predicts every coin.",
            hint=f"chmod 600 {settings.keyring}; if others could read it, rotate the root "
            "(evenhand audit rotate-root).",
        )


def _begun_by(settings: Settings) -> str | None:
    """The public key with which the ledger in a database was begun; None if it was not."""
    if "://" not in settings.ledger:
        return None
    try:
        with (
            contextlib.closing(open_store(settings.ledger)) as store,
            store.reader.connect() as connection,
        ):
            if not inspect(connection).has_table(EVENTS.name):
                return None
            first = connection.scalar(select(EVENTS.c.body).where(EVENTS.c.seq == 1))
    except DBAPIError as error:
        raise LedgerUnavailable(
            f"the database cannot be opened: {type(error.orig).__name__}.",
            hint="check that it runs, and the URL in the settings.",
        ) from error
    return None if first is None else str(json.loads(first)["info"]["public_key"])


def _keyring_is_away(where: Path, begun: str) -> InvalidInput:
    return InvalidInput(
        f"the ledger in the database was begun by the holder of {begun}, and {where} does not "
        "exist.",
        hint="put the keyring back: without it nothing in the ledger can be read.",
    )


def open_ledger(settings: Settings, clock: Clock, path: Path | None = None) -> Ledger:
    """The ledger of the settings, begun if there is none; or a copy of it at `path`."""
    return Ledger.open(
        path or settings.ledger,
        keyring=open_keyring(settings),
        clock=clock,
        windows=WindowPlan(settings.window_days * DAY),
        render=render,
    )


@contextlib.contextmanager
def ledger_or_snapshot(settings: Settings, clock: Clock) -> Iterator[tuple[Ledger, bool]]:
    """(ledger, whether it is the ledger itself): while another process has it open, a snapshot;
    where a SQLite ledger cannot be written (an auditor's read-only copy), a copy elsewhere.
    """
    read_only = is_read_only(settings)
    if not read_only:
        try:
            with open_ledger(settings, clock) as ledger:
                yield ledger, True
                return
        except LedgerLocked:
            pass
    with tempfile.TemporaryDirectory(prefix="evenhand-") as directory:
        source, copy = Path(settings.ledger).absolute(), Path(directory) / "snapshot.sqlite"
        if read_only:  # nobody writes to it, and SQLite could not open its log beside it
            for end in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(f"{source}{end}", f"{copy}{end}")
        else:  # SQLite's online copy through a connection that cannot write
            with (
                contextlib.closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as old,
                contextlib.closing(sqlite3.connect(copy)) as new,
            ):
                old.backup(new)
        with open_ledger(settings, clock, copy) as ledger:
            yield ledger, False


def is_read_only(settings: Settings) -> bool:
    """Whether the ledger is a SQLite file that this user, or anybody, cannot write."""
    if "://" in settings.ledger or not Path(settings.ledger).exists():
        return False
    effective = os.access in os.supports_effective_ids
    place = Path(settings.ledger).absolute()
    return not all(os.access(p, os.W_OK, effective_ids=effective) for p in (place, place.parent))


def open_keys(ledger: Ledger, settings: Settings) -> tuple[LedgerKeys, dict[str, str]]:
    """The API keys, and the tokens that had to be made: one with every scope for each tenant that
    has none. Of several replicas that start at once, one makes them.

    A ledger without keys takes over those of the file in which they were kept before.
    """
    keys, file = LedgerKeys(ledger), Path(settings.keys)
    if len(keys) == 0 and file.exists():
        number = keys.take_over(KeyStore(file), by="evenhand serve")
        LOG.warning("%d API keys of %s are in the ledger now; delete the file.", number, file)
    tenants = dict.fromkeys(product.tenant for product in settings.products)
    return keys, keys.first(tenants, by="evenhand serve")


def require_safe_address(settings: Settings) -> None:
    """Plain HTTP stays on this machine, unless it was asked for (a proxy in front ends TLS); an
    open dashboard always does.
    """
    with contextlib.suppress(ValueError):  # a name, not an address
        if settings.host == "localhost" or ipaddress.ip_address(settings.host).is_loopback:
            return
    if settings.open_dashboard:
        raise InvalidInput(
            f"the demo listens on {settings.host}; "
            "its dashboard is open, so it stays on this machine."
        )
    if settings.tls_certificate is None and not settings.plain_http:
        raise InvalidInput(
            f"{settings.host} can be reached from elsewhere, "
            "and API keys would travel in the clear.",
            hint="set tls_certificate and tls_key, "
            "or plain_http = true behind a proxy that ends TLS.",
        )


def require_tls_files(settings: Settings) -> None:
    """Both files of TLS or none, and a key that belongs to the certificate."""
    files = {"tls_certificate": settings.tls_certificate, "tls_key": settings.tls_key}
    if None in files.values() and any(files.values()):
        (given, path), (missing, _) = sorted(files.items(), key=lambda one: one[1] is None)
        raise InvalidInput(
            f"{given} of [service] is {path!r}, and {missing} is not set; TLS needs a certificate "
            "and its key.",
            hint="give both, or neither behind a proxy that ends TLS (plain_http = true).",
        )
    for name, path in files.items():
        if path is not None and not os.access(path, os.R_OK):
            raise InvalidInput(
                f"{name} of [service] is {path!r}; it should be a file that this user can read.",
                hint="a PEM file; a path without / at its beginning is beside the settings.",
            )
    if settings.tls_certificate is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                settings.tls_certificate, settings.tls_key, password=""
            )
        except (ssl.SSLError, OSError) as error:
            raise InvalidInput(
                f"tls_certificate and tls_key of [service] are {settings.tls_certificate!r} and "
                f"{settings.tls_key!r}; they should be a certificate and its key in PEM: {error}.",
                hint="openssl x509 -in FILE -text shows a certificate.",
            ) from None


def require_places(settings: Settings) -> None:
    """What the service writes lies in directories where it can: a SQLite ledger, and a keyring that
    is still to be made.
    """
    wanted = [] if "://" in settings.ledger else ["ledger"]
    if not settings.keyring.startswith(SOURCES) and not Path(settings.keyring).is_file():
        wanted.append("keyring")
    for name in wanted:
        place = Path(getattr(settings, name)).absolute()
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
    products = ", ".join(f"{p.tenant}/{p.name}" for p in settings.products)
    yield f"settings: {len(settings.products)} products ({products})"
    require_safe_address(settings)
    require_tls_files(settings)
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise InvalidInput(
                f"host and port of [service] are {settings.host}:{settings.port}; "
                f"they should be free to listen on: {error.strerror}.",
                hint="stop what listens there, or choose another port.",
            ) from None
    yield f"address: {settings.host}:{settings.port}" + (
        "" if settings.tls_certificate is None else ", TLS"
    )
    require_places(settings)
    begun, keyring = _begun_by(settings), None
    if settings.keyring.startswith(SOURCES) or Path(settings.keyring).exists():
        require_private_keyring(settings)
        keyring = Keyring.from_source(settings.keyring)
        yield f"keyring: {keyring.public_key}"
    elif begun is not None:
        raise _keyring_is_away(Path(settings.keyring), begun)
    else:
        yield "keyring: none yet; the first start makes one"
    if keyring is not None and begun not in (None, keyring.public_key):
        raise InvalidInput(
            f"the ledger in the database was begun by the holder of {begun}; keyring of [service] "
            f"is that of {keyring.public_key}.",
            hint="give the keyring that belongs to the ledger, or another database.",
        )
    if "://" in settings.ledger:
        told = "begins at the first start" if begun is None else "holds a ledger of this keyring"
        yield f"ledger: the database answers; it {told}"
    else:
        exists = Path(settings.ledger).exists()
        yield f"ledger: {settings.ledger}{'' if exists else ' (the first start makes it)'}"


def make_server(app: ASGIApp, settings: Settings) -> DrainingServer:
    """A server that logs neither requests (their paths hold keys of applications) nor its own
    version, keeps slow and silent clients out, and answers everybody before it stops.
    """
    require_safe_address(settings)
    require_tls_files(settings)
    crowd = Crowd(*_room_for_connections(settings))
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        http=partial(Connection, crowd),  # type: ignore[arg-type]
        loop="evenhand.service.server:event_loop",
        ws="none",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the address of a client is that of its connection
        log_level="error",
        timeout_graceful_shutdown=5,
    )

    if settings.log_requests and isinstance(app, RequestGuard):
        app.service.request_log = RequestLog()

    def stop_being_ready() -> None:
        if isinstance(app, RequestGuard):
            app.service.health.draining = True

    return DrainingServer(config, crowd, stop_being_ready)


def _room_for_connections(settings: Settings) -> tuple[int, int]:
    """(connections in all, of one client): as many as the settings say and files may be opened."""
    try:
        import resource
    except ImportError:  # Windows knows no such limit
        return settings.max_connections, settings.max_connections_per_client
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.max_connections + FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    most = max(min(settings.max_connections, soft - FILES), 1)
    return most, min(settings.max_connections_per_client, most)


class _EventLoop(asyncio.SelectorEventLoop):
    """asyncio's, which gives up a TLS handshake as early as the head of a request."""

    async def create_server(self, *given: Any, **named: Any) -> asyncio.Server:
        """As asyncio's."""
        if named.get("ssl") is not None:
            named.setdefault("ssl_handshake_timeout", HEAD_SECONDS)
        return await super().create_server(*given, **named)


def event_loop() -> asyncio.AbstractEventLoop:
    """A new event loop for the server."""
    return _EventLoop()


def run(server: uvicorn.Server) -> None:
    """Serve until stopped.

    What is there by now lives as long as the process, so the garbage collector need not look at it
    again; and the requests that share a commit have more young objects than its usual 700. Together
    about a tenth of the time of a request.
    """
    log_as_json()
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000)
    server.run()
