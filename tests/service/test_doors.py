"""Keys, scopes, tenants and limits: what must not pass does not pass."""

import json
import stat
import sys

import pytest
from jinja2 import Environment
from tests.service.attacks import (
    PUBLIC,
    ROUTES,
    from_other_sites,
    other_tenants,
    routes_of,
    scope_matrix,
    sql_payloads,
    stored_scripts,
    template,
)
from tests.service.bank import Bank, application

from evenhand.service import SCOPES, KeyStore, dashboard
from evenhand.service.app import SWITCH_INTERVAL
from evenhand.service.keys import RateLimiter
from evenhand.service.request_guard import nesting_depth


def test_the_scope_matrix(bank):
    wrong, tried = scope_matrix(bank)
    assert wrong == []
    assert tried == len(ROUTES) * (len(SCOPES) + 6)


def test_every_route_of_the_api_is_in_the_matrix(bank):
    assert routes_of(bank) - PUBLIC == {(method, template(path)) for method, path in ROUTES}


@pytest.mark.parametrize(
    "attack",
    [other_tenants, from_other_sites, stored_scripts, sql_payloads],
    ids=lambda f: f.__name__,
)
def test_what_must_not_pass(bank, attack):
    passed, tried = attack(bank)
    assert passed == []
    assert tried > 10


def test_pages_that_do_not_escape_are_noticed(bank, monkeypatch):
    """The negative control of the attack with scripts."""
    careless = Environment(
        loader=dashboard._environment().loader,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    careless.filters.update(dashboard._environment().filters)
    monkeypatch.setattr(dashboard, "_environment", lambda: careless)
    passed, _ = stored_scripts(bank)
    assert {path for path, mark in passed if mark == "<script>alert"} >= {
        "/dashboard",
        "/dashboard/live",
    }


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


# limits


def raw(bank, body, **headers):
    sent = {"Authorization": f"Bearer {bank.all}", "Content-Type": "application/json", **headers}
    return bank.client.post("/v1/decisions/batch", content=body, headers=sent)


def test_a_large_body_is_refused(bank):
    refused = raw(bank, b"[" + b"0," * 5_000_000 + b"0]")
    assert refused.status_code == 413
    assert refused.json()["law"].startswith("at most")


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


def test_a_batch_has_at_most_a_thousand(bank):
    refused = bank.post(
        "/v1/decisions/batch", {"decisions": [application(f"k{i}") for i in range(1001)]}
    )
    assert refused.status_code == 422
    assert bank.ledger.counts("bank", "loan").decisions == 0


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


def test_turns_are_short_while_the_service_runs_and_as_before_afterwards(tmp_path):
    before = sys.getswitchinterval()
    bank = Bank(tmp_path / "ledger.sqlite")
    during = sys.getswitchinterval()
    bank.close()
    assert during == pytest.approx(SWITCH_INTERVAL)
    assert sys.getswitchinterval() == before


def test_another_host_is_not_answered(bank):
    refused = bank.client.get("/health", headers={"Host": "evil.example"})
    assert refused.status_code == 421


def test_every_answer_carries_the_security_headers(bank):
    for found in (bank.client.get("/health"), bank.client.get("/nothing"), bank.get("/v1/head")):
        assert "default-src 'none'" in found.headers["content-security-policy"]
        assert found.headers["x-content-type-options"] == "nosniff"


def test_unknown_paths_and_methods_are_problems(bank):
    for found in (bank.client.get("/nothing"), bank.client.put("/v1/decisions")):
        assert found.headers["content-type"] == "application/problem+json"
        assert found.status_code in (404, 405)


def test_canaries_are_in_no_log(bank, caplog):
    caplog.set_level("DEBUG")
    canary = "canary-group-9d"
    bank.post("/v1/decisions", application(group=canary))
    bank.post("/v1/decisions", application(group=[canary]))
    bank.post("/v1/groups", {"key": "k1", "group": canary + "2"})
    text = caplog.text
    assert canary not in text
    assert bank.all not in text


def test_nothing_durable_means_no_answer(bank):
    bank.post("/v1/decisions", application("before"))
    bank.ledger._writer._stopped(OSError("disk full"))
    for refused in (
        bank.post("/v1/decisions", application()),
        bank.post("/v1/outcomes", {"key": "before", "label": 1}),
    ):
        assert refused.status_code == 503
        assert refused.json()["type"].endswith("ledger-unavailable")
    assert bank.client.get("/health").status_code == 503
    bank.ledger._writer._broken = None
    bank.ledger._writer._disk_failed = False


def test_a_crash_says_nothing_about_itself(bank, caplog, monkeypatch):
    canary = "canary-7c"

    def crash(*_):
        raise RuntimeError(canary)

    monkeypatch.setattr(bank.service.decider, "prepare", crash)
    found = bank.post("/v1/decisions", application(group=canary))
    assert found.status_code == 503
    assert canary not in found.text + caplog.text
