"""Keys, scopes and limits: who may do what, and how often."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from service.tests.attacks import (
    PUBLIC,
    ROUTES,
    routes_of,
    scope_matrix,
    template,
)
from service.tests.bank import Bank, application, settings
from service.tests.ledger.helpers import opened
from starlette.testclient import TestClient
from tests.without_clocks import PATIENCE

from evenhand.errors import InvalidInput
from evenhand_service import SCOPES, LedgerKeys
from evenhand_service.keys import RateLimiter
from evenhand_service.ledger import Keyring, Ledger, verify


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


def test_a_key_is_stored_as_its_hash_alone(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path, keyring=Keyring.generate(), clock=lambda: 1e9) as ledger:
        token = LedgerKeys(ledger).add(["decide"])
        found = LedgerKeys(ledger).find(token)
        assert LedgerKeys(ledger).find(token + "x") is None
    stored = path.read_bytes()
    assert found.sha256.encode() in stored
    assert token.encode() not in stored


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


# keys are rows of the chain


@pytest.fixture
def replicas(postgres_url):
    """Three replicas that look at their ledger every twenty minutes, unless they must."""
    made = [LedgerBank(postgres_url, refresh_limit=3600.0) for _ in range(3)]
    yield made
    for bank in made:
        bank.close()


class LedgerBank(Bank):
    """A bank whose keys are in its ledger."""

    def new_keys(self):
        return LedgerKeys(self.ledger)


def key_of(bank, token):
    return bank.service.keys.find(token).id


def test_a_revocation_holds_on_every_replica_when_it_is_acknowledged(replicas):
    one, two, three = replicas
    for number in range(6):
        token = one.post("/v1/keys", {"scopes": ["decide", "audit"], "name": "n"}).json()["token"]
        # a key of another replica is known at once
        assert two.get("/v1/head", token).status_code == 200
        first = three.post("/v1/decisions", application(f"k{number}"), token)
        assert first.status_code == 200
        assert two.call("DELETE", f"/v1/keys/{key_of(one, token)}").status_code == 200
        assert one.get("/v1/head", token).status_code == 401
        assert three.post("/v1/decisions", application(f"new-{number}"), token).status_code == 401
        assert one.post("/v1/decisions", application(f"k{number}"), token).status_code == 401
        unsound = application("x", features=[1, 2])
        assert three.post("/v1/decisions", unsound, token).status_code == 401
        assert two.get(f"/v1/decisions/k{number}", token).status_code == 401
    found = [(e.action, e.by) for e in one.ledger.key_events() if e.info["name"] == "n"]
    by = [f"key {key_of(bank, bank.all)}" for bank in (one, two)]
    assert found == [("key_created", by[0]), ("key_revoked", by[1])] * 6


WRITES = {
    "/v1/outcomes": {"key": "k1", "label": 1},
    "/v1/outcomes/batch": {"outcomes": [{"key": "k1", "label": 1}]},
    "/v1/overrides": {"key": "k1", "accept": False},
    "/v1/groups": {"key": "k1", "group": "b"},
    "/v1/settlements": {"key": "k1", "label": 1},
    "/v1/kill": {"product": "loan"},
    "/v1/revive": {"product": "loan"},
    "/v1/shadow": {"product": "loan"},
    "/v1/live": {"product": "loan"},
    "/v1/train": {"product": "loan"},
    "/v1/erasures": {"person": "p-k1"},
    "/v1/gap": {"note": "looked"},
    "/v1/keys": {"scopes": ["admin"], "name": "backdoor"},
    "/v1/windows/w1/reveal": {},
}
"""Everything that is written by somebody's key, decisions apart."""


def held_back(bank):
    """(set when some work has passed the check of its key and waits, to be set to let it go)."""
    came, go, write = threading.Event(), threading.Event(), bank.ledger._write

    def wait_and_write(*given, **named):
        came.set()
        assert go.wait(PATIENCE)
        return write(*given, **named)

    bank.ledger._write = wait_and_write
    return came, go, write


def test_nothing_is_written_by_a_key_that_was_revoked_while_the_work_waited(replicas):
    """The key is checked by one replica, another one acknowledges its revocation, then the work is
    done: it looks again inside of its transaction. The control is a replica that does not.
    """
    one, two, _ = replicas
    assert one.post("/v1/decisions", application("k1")).status_code == 200
    window = one.ledger.windows()[0].name
    posts = [(path.replace("w1", window), body, 401) for path, body in WRITES.items()]
    posts += [("/v1/keys", None, 201)]
    for path, body, status in posts:
        token = one.post("/v1/keys", {"scopes": list(SCOPES), "name": "n"}).json()["token"]
        assert two.get("/v1/head", token).status_code == 200
        if body is None:
            body, two.ledger.asked_by = WRITES[path], lambda *_: None
        came, go, write = held_back(two)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(two.post, path, body, token)
            assert came.wait(PATIENCE)
            assert one.call("DELETE", f"/v1/keys/{key_of(one, token)}").status_code == 200
            before = one.ledger.head().seq
            go.set()
            found = answer.result()
        two.ledger._write = write
        assert (path, found.status_code) == (path, status)
        assert (found.headers.get("www-authenticate") == "Bearer") == (status == 401)
        assert (one.ledger.head().seq == before) == (status == 401)


def test_creations_and_revocations_at_once_lose_nothing(replicas):
    """Every replica makes keys and revokes those of the others, all at the same time."""
    made, lock = {}, threading.Lock()

    def work(number):
        bank, keys = replicas[number % 3], replicas[number % 3].service.keys
        for turn in range(4):
            token = keys.add(["decide"], f"{number}-{turn}", by="test")
            with lock:
                made[token] = False
            revoked = keys.add(["decide"], f"gone-{number}-{turn}", by="test")
            other = replicas[(number + 1) % 3].service.keys
            assert other.revoke(hashlib.sha256(revoked.encode()).hexdigest()[:12], "test")
            with lock:
                made[revoked] = True
            assert bank.post("/v1/decisions", application("k"), revoked).status_code == 401

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    for bank in replicas:
        bank.service.decider.keep_up()
        lost = [t for t, gone in made.items() if not gone and bank.service.keys.find(t) is None]
        resurrected = [t for t, gone in made.items() if gone and bank.service.keys.find(t)]
        assert (lost, resurrected) == ([], [])
    assert verify(replicas[0].ledger).ok


def test_a_key_that_the_database_alone_wrote_opens_nothing(tmp_path):
    """Whoever can write the rows, but has no keyring, changes a copy of a key."""
    with opened(tmp_path / "l.sqlite") as ledger:
        keys = LedgerKeys(ledger)
        token = keys.add(["decide"], "shop", by="Ada")
        info = ledger.key_events()[0].info
        forged = dict(info, sha256=hashlib.sha256(b"eh_forged").hexdigest())
        wider = dict(info, scopes=["admin", "decide"])
        ledger.change_keys(lambda _: [("key_created", "", f) for f in (forged, wider)])
        keys.refresh()
        assert keys.find("eh_forged") is None
        assert sorted(keys.find(token).scopes) == ["decide"]
        assert [sorted(key.scopes) for key in LedgerKeys(ledger).all()] == [["decide"]]
        assert token not in str([event.info for event in ledger.key_events()])


def test_who_did_it_is_the_name_of_the_key(tmp_path):
    bank = LedgerBank(tmp_path / "ledger.sqlite")
    token = bank.post("/v1/keys", {"scopes": ["admin", "observe"], "name": "Ada"}).json()["token"]
    bank.post("/v1/decisions", application("k1"))
    bank.post("/v1/shadow", {"product": "loan", "by": "the boss", "note": "a trial"}, token)
    bank.post("/v1/live", {"product": "loan"}, token)
    bank.post("/v1/overrides", {"key": "k1", "accept": False, "by": "the boss"}, token)
    events = [(e.action, e.by, e.note) for e in bank.ledger.events("loan")]
    assert events[-2:] == [("shadow", "Ada", "the boss: a trial"), ("live", "Ada", "")]
    bank.close()


def test_asking_for_a_window_that_is_none_is_not_recorded(bank):
    bank.post("/v1/decisions", application("k"))
    before = bank.ledger.head().seq
    for name in ("w0", "x" * 3000):
        refused = bank.post(f"/v1/windows/{name}/reveal", None)
        assert refused.status_code == 404
        assert len(refused.content) < 1000
    assert bank.ledger.head().seq == before


# sessions, and people behind a proxy


def log_in(bank, token):
    """The cookie, or None."""
    form = {"content-type": "application/x-www-form-urlencoded"}
    found = bank.client.post(
        "/dashboard/login", content=f"key={token}", headers=form, follow_redirects=False
    )
    bank.client.cookies.clear()
    if found.status_code != 303:
        return None
    return found.headers["set-cookie"].split(";")[0].split("=", 1)[1]


def with_cookie(bank, method, path, cookie):
    headers = {"cookie": f"evenhand_session={cookie}".encode()}
    return bank.client.request(method, path, headers=headers, follow_redirects=False)


def looks(bank, cookie):
    return with_cookie(bank, "GET", "/dashboard", cookie).status_code == 200


def test_a_session_holds_on_every_replica_and_so_does_its_end(replicas):
    one, two, three = replicas
    token = one.post("/v1/keys", {"scopes": ["audit"], "name": "auditor"}).json()["token"]
    cookie, other = log_in(one, token), log_in(two, token)
    assert [looks(bank, cookie) for bank in replicas] == [True] * 3
    with_cookie(two, "POST", "/dashboard/logout", cookie)
    assert [looks(bank, cookie) for bank in replicas] == [False] * 3
    assert looks(three, other)
    one.call("DELETE", f"/v1/keys/{key_of(one, token)}")
    assert [looks(bank, other) for bank in replicas] == [False] * 3


def test_a_cookie_that_was_changed_opens_nothing(bank):
    cookie = log_in(bank, bank.tokens["audit"])
    digest, end, nonce, seal = cookie.split(".")
    another = hashlib.sha256(bank.all.encode()).hexdigest()
    assert looks(bank, cookie)
    later = int(end) + 1
    for changed in (
        f"{another}.{end}.{nonce}.{seal}", f"{digest}.{later}.{nonce}.{seal}",
        "", "....", "ä.ä.ä.ä",
        f"{digest}.{end}.{nonce}.", f"{digest}.{end}.{nonce}.{seal[:-1]}",
        f"{digest}.x.{nonce}.{seal}",
    ):  # fmt: skip
        assert not looks(bank, changed)
    assert log_in(bank, bank.tokens["decide"]) is None


PROXY = {"proxy_header": "X-Person", "proxy_addresses": ("10.0.0.5",)}


def visit(bank, address, *people):
    """What somebody at an address gets with the header `people` times."""
    client = TestClient(bank.app, base_url="http://127.0.0.1", client=(address, 1234))
    headers = [("x-person", person) for person in people]
    return client.get("/dashboard", headers=headers, follow_redirects=False)


def test_people_behind_the_proxy_look_at_the_dashboard_and_nobody_else_is_believed(tmp_path):
    bank = Bank(tmp_path / "ledger.sqlite", **PROXY)
    seen = visit(bank, "10.0.0.5", "ada@bank.example")
    assert seen.status_code == 200
    for address, people in (
        ("10.0.0.6", ["ada"]), ("127.0.0.1", ["ada"]), ("::1", ["ada"]), ("testclient", ["ada"]),
        ("10.0.0.5", []), ("10.0.0.5", [""]), ("10.0.0.5", ["ada", "eve"]),
    ):  # fmt: skip
        assert visit(bank, address, *people).status_code == 303, (address, people)
    # they look, and never change anything: the API wants a key
    client = TestClient(bank.app, base_url="http://127.0.0.1", client=("10.0.0.5", 1))
    found = client.post("/v1/kill", json={"product": "loan"}, headers={"x-person": "ada"})
    assert found.status_code == 401
    bank.close()


def test_by_default_no_header_is_believed(bank):
    assert visit(bank, "127.0.0.1", "ada").status_code == 303


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"proxy_addresses": ()}, "anybody"),
        ({"proxy_addresses": ("0.0.0.0/0",)}, "half"),
        ({"proxy_addresses": ("proxy.bank",)}, "network"),
        ({"proxy_header": "X Person"}, "header"),
    ],
)
def test_an_unsafe_proxy_is_refused(options, said):
    with pytest.raises(InvalidInput, match=said):
        settings(**(PROXY | options))


def test_every_key_ends_and_a_rotation_overlaps(bank, caplog):
    day = 86400.0
    token = bank.keys.add(["audit"], "dashboard", by="Ada")
    (old,) = [key for key in bank.keys.all() if key.name == "dashboard"]
    bank.clock.now += 80 * day
    assert bank.get("/v1/head", token).status_code == 200
    assert "ends in 10.0 days" in caplog.text
    made = bank.post(f"/v1/keys/{old.id}/rotate", {"overlap_days": 2})
    assert made.status_code == 201
    new = made.json()["token"]
    assert "evenhand_keys_ending 1.0" in bank.get("/metrics").text
    for days, opens in ((1, (200, 200)), (2, (401, 200)), (90, (401, 401))):
        bank.clock.now += days * day
        assert (
            bank.get("/v1/head", token).status_code,
            bank.get("/v1/head", new).status_code,
        ) == opens
    assert bank.post(f"/v1/keys/{old.id}/rotate", {}).status_code == 404
    # another process finds the same ends
    again = bank.new_keys()
    assert (again.find(token), again.find(new)) == (None, None)
    assert [k.ends for k in again.all()] == [k.ends for k in bank.keys.all()]
    for days in (0, -1, 4000, float("nan")):
        with pytest.raises(InvalidInput):
            bank.keys.add(["audit"], days=days)
