"""A port that was found free is nobody else's until its listener comes."""

import socket

import pytest
from service.tests.ports import KEPT, free_port


def connected_to_itself(port):
    """Whether a connection to the port has the port as its own source."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", port))
        one.connect(("127.0.0.1", port))
        return one.getsockname() == one.getpeername()


def test_a_reserved_port_is_given_to_nobody_who_does_not_ask_for_it():
    port = free_port()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    assert len({port, *(free_port() for _ in range(KEPT - 1))}) == KEPT


def test_a_listener_may_take_it_and_is_then_the_only_one():
    port = free_port()
    with (
        socket.create_server(("127.0.0.1", port)) as listener,
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        assert listener.accept()[1] == client.getsockname()
        with pytest.raises(OSError, match="in use"):
            socket.create_server(("127.0.0.1", port))


def test_a_port_that_is_not_reserved_can_be_connected_to_itself():
    """The control: what the reservation is for."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert connected_to_itself(port)
