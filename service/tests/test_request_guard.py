"""Limits of every request: host, size, depth; and the headers of every answer."""

import json

import pytest

from evenhand_service.request_guard import nesting_depth


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


@pytest.mark.parametrize("pair", [("[", "]"), ('{"a":', "}")])
def test_a_deep_body_is_refused(bank, pair):
    refused = raw(bank, (pair[0] * 10_000 + "1" + pair[1] * 10_000).encode())
    assert refused.status_code == 422
    assert refused.json()["type"].endswith("too-deep")


def test_brackets_in_strings_are_not_depth():
    assert nesting_depth(json.dumps({"a": "[[[[[[[", "b": ['\\"[[', []]}).encode()) == 3


def test_another_host_is_not_answered(bank):
    refused = bank.client.get("/health", headers={"Host": "evil.example"})
    assert refused.status_code == 421


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


@pytest.mark.parametrize("part", [b'\\"', b'"a', b'"', b'["', b"\\", b'"\\', b"[", b'{"a":'])
def test_hostile_bodies_are_looked_at_once(part):
    """By an expression that begins anew at every quote this would take hours."""
    body = part * (2**21 // len(part))
    assert nesting_depth(body) in (0, 1, len(body) // len(part), len(body) // len(part) // 2)


@pytest.mark.parametrize(
    "path", ["/v1/decisions", "/v1/outcomes/batch", "/metrics", "/nothing", "/v1/keys"]
)
def test_without_a_key_nobody_looks_into_the_body(bank, monkeypatch, path):
    def look(body):
        raise AssertionError("the body was looked at")

    monkeypatch.setattr("evenhand_service.request_guard.nesting_depth", look)
    refused = bank.client.post(path, content=b"[" * 1000)
    assert refused.status_code == 401
    assert raw(bank, b"[" * 1000).status_code == 503  # with a key it is: the negative control


def test_where_no_key_is_needed_a_body_is_small(bank):
    assert bank.client.post("/dashboard/login", content=b"key=" + b"a" * 9000).status_code == 413
