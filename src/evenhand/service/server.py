"""From the settings to a running process: opening the keyring, the ledger and the keys, and one
uvicorn server around the application.
"""

import contextlib
import gc
import ipaddress
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from evenhand.errors import InvalidInput
from evenhand.ledger import Clock, Keyring, Ledger, LedgerLocked, WindowPlan
from evenhand.service.decider import render
from evenhand.service.keys import SCOPES, KeyStore
from evenhand.service.settings import DAY, Settings


def open_keyring(settings: Settings) -> Keyring:
    """The keyring; a new one is made only where there is no ledger yet."""
    path = Path(settings.keyring)
    if path.exists():
        return Keyring.load(path)
    if "://" not in settings.ledger and Path(settings.ledger).exists():
        raise InvalidInput(
            f"the ledger {settings.ledger} exists, but its keyring {path} does not.",
            hint="put the keyring back: without it nothing in the ledger can be read.",
        )
    made = Keyring.generate()
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(path)
    return made


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
    """(ledger, whether it is the ledger itself): while another process has it open, a snapshot."""
    try:
        with open_ledger(settings, clock) as ledger:
            yield ledger, True
            return
    except LedgerLocked:
        pass
    with tempfile.TemporaryDirectory(prefix="evenhand-") as directory:
        copy = Path(directory) / "snapshot.sqlite"
        # SQLite's online copy through a connection that cannot write
        source = f"{Path(settings.ledger).absolute().as_uri()}?mode=ro"
        with (
            contextlib.closing(sqlite3.connect(source, uri=True)) as reading,
            contextlib.closing(sqlite3.connect(copy)) as writing,
        ):
            reading.backup(writing)
        with open_ledger(settings, clock, copy) as ledger:
            yield ledger, False


def open_keys(settings: Settings) -> tuple[KeyStore, dict[str, str]]:
    """The API keys, and the tokens that had to be made: one with every scope for each tenant that
    has none.
    """
    store, made = KeyStore(Path(settings.keys)), {}
    for tenant in dict.fromkeys(product.tenant for product in settings.products):
        if not store.all(tenant):
            made[tenant] = store.add(tenant, SCOPES, "first")
    return store, made


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


def make_server(app: ASGIApp, settings: Settings) -> uvicorn.Server:
    """A server that logs neither requests (their paths hold keys of applications) nor its own
    version.
    """
    require_safe_address(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        access_log=False,
        server_header=False,
        log_level="warning",
        limit_concurrency=2000,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


def run(server: uvicorn.Server) -> None:
    """Serve until stopped.

    What is there by now lives as long as the process, so the garbage collector need not look at it
    again; and the requests that share a commit have more young objects than its usual 700. Together
    about a tenth of the time of a request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000)
    server.run()
