"""The edge over real sockets, without a clock: the order of events, and mutants that miss it."""

import asyncio
import contextlib
import datetime
import socket
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.torture.edge import drain, strange_messages, unfinished_bodies
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


def certificate(place):
    """The settings of a service that speaks TLS, and a context that trusts it."""
    key, name = ec.generate_private_key(ec.SECP256R1()), "localhost"
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (place / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (place / "key.pem").write_bytes(text)
    trusting = ssl.create_default_context(cafile=str(place / "cert.pem"))
    return f'tls_certificate = "{place}/cert.pem"\ntls_key = "{place}/key.pem"\n', trusting


def refusal_of_a_large_body(kind, secure=False):
    """What somebody without a key reads who sends 16 MB before listening; b"" after a reset."""
    place = folder()
    more, trusting = certificate(place) if secure else ("", None)
    with (
        Process(place, kind, more=more).running() as process,
        contextlib.ExitStack() as stack,
    ):
        stranger = stack.enter_context(socket.create_connection(("127.0.0.1", process.port)))
        if trusting is not None:
            stranger = stack.enter_context(
                trusting.wrap_socket(stranger, server_hostname="localhost")
            )
        head = HALF.replace(b"2000", b"16777216")
        told = b""
        try:
            stranger.sendall(head + bytes(2**24 - 5))
            while piece := stranger.recv(65536):
                told += piece
        except OSError:
            return b""
        return told


@pytest.mark.parametrize(
    ("kind", "secure"), [("real", False), ("real", True), ("curt", False)], ids=str
)
def test_who_sends_a_large_body_without_a_key_can_read_why_it_was_refused(kind, secure):
    told = refusal_of_a_large_body(kind, secure)
    if kind == "real":
        assert told.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close" in told
        assert told.endswith(b"}")
    else:
        assert told == b""


def test_a_service_that_closes_kept_connections_at_once_is_caught():
    assert not drain(True, "abrupt")[2]


def test_a_service_that_takes_trailers_for_headers_is_caught():
    _, told, held = strange_messages(True, "gullible")
    assert not held
    smuggled = (
        "a wish for h2c, a request as its body: [422, 200, 200]",
        "a key as a trailer: [200",
    )
    assert all(part in told for part in smuggled)


def test_a_service_where_a_whole_head_is_enough_to_stay_is_caught():
    assert not unfinished_bodies(True, "hospitable")[2]
