"""The edge over real sockets, without a clock: the order of events, and mutants that miss it."""

import asyncio
import socket

import pytest
from tests.torture.edge import drain
from tests.torture.serving import Process, folder

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
        stranger.setblocking(False)
        try:
            return stranger.recv(12) == b"HTTP/1.1 401"
        except BlockingIOError:
            return False


@pytest.mark.parametrize("kind", ["real", "looks first"])
def test_a_body_is_not_read_before_the_key_is_known(kind):
    assert asks_for_the_key_first(kind) == (kind == "real")


def test_a_service_that_closes_kept_connections_at_once_is_caught():
    assert not drain(True, "abrupt")[2]
