"""Running the service: which addresses are safe, and one uvicorn process around the application."""

import gc
import ipaddress
import threading
from typing import Any

import uvicorn

from evenhand.errors import InvalidInput
from evenhand.service.config import Settings


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_safe_address(settings: Settings) -> None:
    """Plain HTTP on loopback alone, unless it was asked for (a proxy in front ends TLS); an open
    dashboard never elsewhere.
    """
    if is_loopback(settings.host):
        return
    if settings.open_dashboard:
        raise InvalidInput(
            f"the demo listens on {settings.host}; its dashboard is open, so it stays on this machine."
        )
    if settings.tls_certificate is None and not settings.plain_http:
        raise InvalidInput(
            f"{settings.host} can be reached from elsewhere, and API keys would travel in the clear.",
            hint="set tls_certificate and tls_key, or plain_http = true behind a proxy that ends TLS.",
        )


def server(app: Any, settings: Settings) -> uvicorn.Server:
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


def run(running: uvicorn.Server) -> None:
    """Serve until stopped.

    What is there by now lives as long as the process, so the garbage collector need not look at it
    again; and the requests that share a commit have more young objects than its usual 700. Together
    about a tenth of the time of a request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000)
    running.run()


def stop_after(running: uvicorn.Server, seconds: float) -> threading.Timer:
    """Ask a server to stop after a while."""

    def stop() -> None:
        running.should_exit = True

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    return timer
