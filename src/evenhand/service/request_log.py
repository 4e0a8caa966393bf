"""The log of requests: JSON, one line each, with a request id; no person, no key, no group. Paths
hold keys of applications, so the route stands for the path.
"""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable
from typing import TextIO

from starlette.types import Scope

FLUSH_SECONDS = 0.25
"""Lines are written together, at the latest after so long."""

LONGEST_ADDRESS = 64
"""Characters of a forwarded address that are written."""


def one_line(event: str, **facts: object) -> str:
    """An event as JSON."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps({"at": at, "event": event, **facts})


class RequestLog:
    """Writes one line for each request, a few at a time, so that deciding does not wait for it.

    out: where to; standard error by default.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out
        self._lines: list[str] = []
        self._waiting = False

    def request(
        self, request: str, scope: Scope, status: int, seconds: float, told: str = ""
    ) -> None:
        """One request. Who fails to log in is told with the address of the connection, and with
        the one that a trusted proxy has `told`; nobody else is.
        """
        route = str(scope.get("evenhand.route") or getattr(scope.get("route"), "path", "-"))
        event, where = "request", ""
        if status in (401, 403, 429):
            client = scope["client"][0] if scope.get("client") else "?"
            where = f',"client":{json.dumps(client)}'
            if told not in ("", client):
                where += f',"forwarded":{json.dumps(told[:LONGEST_ADDRESS])}'
            if status == 401 or route.endswith("/login"):
                event = "login_failed"
        self._lines.append(
            f'{{"at":{time.time():.3f},"event":"{event}","id":"{request}",'
            f'"method":{json.dumps(scope["method"])},"route":{json.dumps(route)},'
            f'"status":{status},"ms":{1000 * seconds:.2f}{where}}}'
        )
        if not self._waiting:
            self._waiting = True
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what has not been written."""
        lines, self._lines, self._waiting = self._lines, [], False
        if lines:
            out = self._out or sys.stderr
            out.write("\n".join(lines) + "\n")
            out.flush()


class JsonFormatter(logging.Formatter):
    """What else the service has to say, in the same form."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback is not written, because it could quote a request."""
        return one_line("log", level=record.levelname.lower(), message=record.getMessage())


def log_as_json(out: Callable[[], logging.Handler] = logging.StreamHandler) -> None:
    """Let every line of the service and of its server be JSON."""
    for name in ("evenhand", "uvicorn"):
        logger = logging.getLogger(name)
        if not any(isinstance(one.formatter, JsonFormatter) for one in logger.handlers):
            handler = out()
            handler.setFormatter(JsonFormatter())
            logger.handlers[:] = [handler]
            logger.propagate = False
