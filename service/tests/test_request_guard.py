"""Limits of every request: host, size, depth; and the headers of every answer."""

import pytest
from starlette.testclient import TestClient

from evenhand_service.keys import RateLimiter


def raw(bank, body, **headers):
    sent = {"Authorization": f"Bearer {bank.all}", "Content-Type": "application/json", **headers}
    return bank.client.post("/v1/decisions/batch", content=body, headers=sent)


def test_a_large_body_is_refused(bank):
    refused = raw(bank, b"[" + b"0," * 5_000_000 + b"0]")
    assert refused.status_code == 413
    assert refused.json()["requirement"].startswith("at most")


def test_a_body_that_lies_about_its_length_is_refused(bank):
    def chunks():
        yield from (b" " * 2**20 for _ in range(5))

    assert raw(bank, chunks()).status_code == 413


def test_another_host_is_not_answered(bank):
    refused = bank.client.get("/health", headers={"Host": "evil.example"})
    assert refused.status_code == 421


@pytest.mark.parametrize(
    ("arrived", "host", "status"),
    [
        ("10.1.2.3", "10.1.2.3:8377", 200),  # a probe of a cluster
        ("10.1.2.3", "10.1.2.3", 200),
        ("fd00::7", "[fd00::7]:8377", 200),
        ("10.1.2.3", "10.1.2.4:8377", 421),
        ("10.1.2.3", "evil.example", 421),
        ("evil.example", "evil.example", 421),  # not an address, whoever says so
    ],
)
def test_a_replica_answers_to_the_address_at_which_it_was_reached(bank, arrived, host, status):
    async def reached(scope, receive, send):
        await bank.app({**scope, "server": (arrived, 8377)}, receive, send)

    client = TestClient(reached, base_url="http://localhost")
    assert client.get("/health/live", headers={"Host": host}).status_code == status


@pytest.mark.parametrize("name", ["host", "authorization"])
def test_what_is_to_be_said_once_is_refused_twice(bank, name):
    """Somebody in front may have looked at the other one."""
    key, host = f"Bearer {bank.all}", "127.0.0.1"
    given = [("authorization", key), ("host", host), (name, {"host": host}.get(name, key))]
    refused = bank.client.get("/v1/head", headers=given)
    assert refused.status_code == 400
    assert refused.json()["type"].endswith("bad-request")
    assert name in refused.json()["detail"]
    for accepted in ([*given[:2], ("x-a", "1"), ("x-a", "2")], given[:1]):
        assert bank.client.get("/v1/head", headers=accepted).status_code == 200


def test_every_answer_carries_the_security_headers(bank):
    for found in (bank.client.get("/health"), bank.client.get("/nothing"), bank.get("/v1/head")):
        assert "default-src 'none'" in found.headers["content-security-policy"]
        assert found.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/v1/decisions", "/v1/outcomes/batch", "/metrics", "/nothing", "/v1/keys"]
)
def test_without_a_key_nobody_looks_into_the_body(bank, monkeypatch, path):
    def look(body):
        raise AssertionError("the body was looked at")

    monkeypatch.setattr("evenhand_service.bodies.parsed", lambda model, body: look(body))
    refused = bank.client.post(path, content=b"[" * 1000)
    assert refused.status_code == 401
    assert raw(bank, b"[" * 1000).status_code == 503  # with a key it is: the negative control


def test_where_no_key_is_needed_a_body_is_small(bank):
    assert bank.client.post("/dashboard/login", content=b"key=" + b"a" * 9000).status_code == 413


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:@evil", 421),
        ("127.0.0.1:80:80", 421),
        ("evil@127.0.0.1", 421),
        ("127.0.0.1:", 421),
        ("127.0.0.1/", 421),
        ("[::1", 421),
        ("[::1]:8377", 200),
        ("LOCALHOST:8377", 200),
    ],
)
def test_a_host_is_a_name_and_perhaps_a_port(bank, host, status):
    assert bank.client.get("/health/live", headers={"Host": host}).status_code == status


def test_a_body_in_another_transfer_encoding_is_refused(bank):
    assert raw(bank, b"{}", **{"Transfer-Encoding": "gzip, chunked"}).status_code == 400


def test_a_key_has_so_many_bytes_a_second(bank):
    """Whether it says how many there are or not; another key is not kept waiting."""

    def chunks():
        yield b" " * 700

    now = [0.0]
    bank.service.bytes_of_key = RateLimiter(100.0, 1000.0, clock=lambda: now[0])
    assert raw(bank, b" " * 700).status_code == 400
    for again in (b" " * 700, chunks()):
        refused = raw(bank, again)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "4")
    other = {"Authorization": f"Bearer {bank.tokens['decide']}"}
    assert raw(bank, b" " * 700, **other).status_code == 400
    now[0] = 4.0
    assert raw(bank, chunks()).status_code == 400


@pytest.mark.parametrize("path", ["/openapi.json", "/dashboard/login", "/dashboard/style.css"])
def test_where_no_key_is_needed_an_address_has_so_many_requests_a_second(bank, path):
    now = [0.0]
    bank.service.public = RateLimiter(2.0, 4.0, clock=lambda: now[0])
    statuses = [bank.client.get(path).status_code for _ in range(6)]
    assert statuses == [200] * 4 + [429] * 2
    now[0] = 0.5
    assert bank.client.get(path).status_code == 200
    assert bank.get("/v1/head").status_code == 200  # with a key


def test_probes_are_limited_last(bank):
    bank.service.public = RateLimiter(2.0, 4.0, clock=lambda: 0.0)
    statuses = [bank.client.get("/health/live").status_code for _ in range(42)]
    assert statuses.count(200) in (39, 40)  # tenths are no binary fractions


def test_the_openapi_document_is_written_once(bank, monkeypatch):
    first = bank.client.get("/openapi.json")
    monkeypatch.setattr("evenhand_service.app.canonical", lambda value: 1 / 0)
    assert bank.client.get("/openapi.json").content == first.content
    assert first.json()["paths"]["/v1/decisions"]["post"]["requestBody"]["required"]
