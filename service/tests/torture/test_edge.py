"""The edge over real sockets: the order of events, and mutants that miss it."""

import asyncio
import socket

import pytest
from service.tests.torture.proxy import behind
from service.tests.torture.serving import Process, folder
from tests.tools import need
from tests.without_clocks import PATIENCE

HALF = (
    b"POST /v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b'Content-Length: 2000\r\n\r\n{"key'
)


def asks_for_the_key_first(kind):
    """Whether a request without a key is refused while half of its body is still to come."""
    with (
        Process(folder(), kind).running() as process,
        socket.create_connection(("127.0.0.1", process.port)) as stranger,
    ):
        stranger.sendall(HALF)

        async def others():
            client = process.client()
            for _ in range(20):
                assert (await client.get("/health"))[0] == 200
            client.close()

        asyncio.run(others())
        if kind == "real":  # its answer comes at some time, however busy the machine is
            stranger.settimeout(PATIENCE)
            return stranger.makefile("rb").read(12) == b"HTTP/1.1 401"
        stranger.setblocking(False)
        try:
            return stranger.recv(1) != b""
        except BlockingIOError:  # the mutant waits for the rest of the body
            return False


@pytest.mark.parametrize("kind", ["real", "looks first"])
def test_a_body_is_not_read_before_the_key_is_known(kind):
    assert asks_for_the_key_first(kind) == (kind == "real")


def test_who_sends_a_large_body_without_a_key_can_read_why_it_was_refused():
    need("nginx")
    told = b""
    with (
        behind(Process(folder())) as process,
        socket.create_connection(("127.0.0.1", process.port)) as stranger,
    ):
        head = HALF.replace(b"2000", b"1900000").replace(b"Host:", b"Connection: close\r\nHost:")
        stranger.sendall(head + bytes(1_900_000 - 5))
        while piece := stranger.recv(65536):
            told += piece
    assert told.startswith(b"HTTP/1.1 401 ")
    assert told.endswith(b"}")
