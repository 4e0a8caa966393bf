"""Free ports of this machine that stay free until the process that was given one listens there."""

import os
import socket
from collections import deque

KEPT = 64
"""Ports that stay reserved, the newest ones: more than are ever waiting for their listener."""

_reserved: "deque[int]" = deque()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens to and that stays reserved.

    The socket that found the port stays bound and never listens. So the kernel gives the port to
    nobody: not to another `bind` to port 0, and not as the source of a connection. The second
    matters as well: whoever asks again and again whether a service listens already would at some
    time be connected from that port to itself, and take this for an answer. A listener with
    SO_REUSEADDR (uvicorn, nginx and PostgreSQL set it) may still take the port.
    """
    probe = socket.socket()
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind(("127.0.0.1", 0))
    port: int = probe.getsockname()[1]
    _reserved.append(probe.detach())
    if len(_reserved) > KEPT:
        os.close(_reserved.popleft())
    return port
