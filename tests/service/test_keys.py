"""Keys, scopes and limits: who may do what, and how often."""

import stat

import pytest
from tests.service.attacks import (
    PUBLIC,
    ROUTES,
    routes_of,
    scope_matrix,
    template,
)
from tests.service.bank import Bank

from evenhand.service import SCOPES, KeyStore
from evenhand.service.keys import RateLimiter


def test_the_scope_matrix(bank):
    wrong, tried = scope_matrix(bank)
    assert wrong == []
    assert tried == len(ROUTES) * (len(SCOPES) + 6)


def test_every_route_of_the_api_is_in_the_matrix(bank):
    assert routes_of(bank) - PUBLIC == {(method, template(path)) for method, path in ROUTES}


def test_a_revoked_key_opens_nothing(bank):
    token = bank.post("/v1/keys", {"scopes": ["audit"], "name": "auditor"}).json()["token"]
    assert bank.get("/v1/head", token).status_code == 200
    key = next(row for row in bank.get("/v1/keys").json()["keys"] if row["name"] == "auditor")
    assert bank.call("DELETE", f"/v1/keys/{key['id']}").status_code == 200
    assert bank.get("/v1/head", token).status_code == 401


def test_keys_are_stored_hashed_in_a_file_of_their_owner(tmp_path):
    path = tmp_path / "keys.json"
    token = KeyStore(path).add("bank", ["decide"])
    assert token not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = KeyStore(path).find(token)
    assert found is not None
    assert found.tenant == "bank"
    assert KeyStore(path).find(token + "x") is None


def test_somebody_who_comes_too_often_waits():
    now = [0.0]
    buckets = RateLimiter(rate=10.0, burst=3.0, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert buckets.take("a") == pytest.approx(0.1)
    assert buckets.take("b") == 0.0
    now[0] += 0.1
    assert buckets.take("a") == 0.0


def test_the_rate_limit_answers_429(tmp_path):
    bank = Bank(tmp_path / "ledger.sqlite")
    bank.service.key_guard.by_key = RateLimiter(rate=0.001, burst=2.0, clock=lambda: 0.0)
    found = [bank.get("/v1/head") for _ in range(3)]
    assert [one.status_code for one in found] == [200, 200, 429]
    assert int(found[2].headers["retry-after"]) > 1
    bank.close()
