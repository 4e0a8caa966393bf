"""What arrives at the entry points: junk, huge bodies, attacks; and what must not leave through the
logs.
"""

import asyncio
import json
import random
import threading
import time
from functools import partial
from urllib.parse import quote

import numpy as np
from service.tests import attacks
from service.tests.ledger.helpers import recomputed
from service.tests.torture.identity import bank
from service.tests.torture.run import TURN
from service.tests.torture.serving import Process, application, folder
from tests.without_clocks import until

from evenhand_service.ledger import verify
from evenhand_service.opening import open_keyring
from evenhand_service.settings import load_settings


def attackers(quick):
    """The whole list costs a few seconds, so quick and full are the same."""
    passed, tried, told = [], 0, []
    listed = (
        ("scopes", attacks.scope_matrix),
        ("other sites", attacks.from_other_sites),
        ("scripts", attacks.stored_scripts),
        ("SQL", attacks.sql_payloads),
    )
    for name, attack in listed:
        made = bank()
        found, number = attack(made)
        whole = attacks.routes_of(made) - attacks.PUBLIC == {
            (m, attacks.template(p)) for m, p in attacks.ROUTES
        }
        passed += found + (
            [] if whole and verify(made.ledger).ok else [("chain or list of routes", name)]
        )
        tried += number
        told.append(f"{name} {number}")
        made.close()
    return (
        "0 pass",
        f"{tried:,} tries ({', '.join(told)}) on every route of the OpenAPI document: "
        f"{len(passed)} passed",
        not passed,
    )


# fuzz


def _junk(chosen, depth=0):
    kinds = ["int", "float", "text", "none", "bool", "list", "dict", "huge", "odd"]
    match chosen.choice(kinds[: 5 if depth > 3 else None]):
        case "int":
            return chosen.randint(-3, 3)
        case "float":
            return chosen.choice([0.5, -1e308, 1e-300, 1.5, float("nan"), float("inf")])
        case "text":
            return "".join(
                chr(chosen.choice([65, 0, 9, 0xD800, 0x1F600, 39, 34, 60, 0x202E]))
                for _ in range(chosen.randint(0, 5))
            )
        case "none":
            return None
        case "bool":
            return chosen.random() < 0.5
        case "list":
            return [_junk(chosen, depth + 1) for _ in range(chosen.randint(0, 4))]
        case "dict":
            names = ["key", "label", "x", "", "features", "\ud800"]
            return {
                chosen.choice(names): _junk(chosen, depth + 1) for _ in range(chosen.randint(0, 4))
            }
        case "huge":
            return chosen.choice([10**30, -(2**63), "k" * 1000, 10**400, 2**53 + 1])
    return chosen.choice(
        ["'; DROP TABLE decisions; --", "../../etc/passwd", "%00", "{{7*7}}", "0" * 64, "w1"]
    )


def _request(chosen):
    """(method, path, body): a route of the API with its body, of which mostly some part is junk."""
    routes = list(attacks.ROUTES.items())
    weights = [8 if "/decisions" in path or "/outcomes" in path else 1 for (_, path), _ in routes]
    (method, path), (_, good) = chosen.choices(routes, weights)[0]
    body = json.loads(json.dumps(good)) if good is not None else None
    if path == "/v1/plan" and method == "POST":
        body["auc"] = chosen.choice([2, "x", None])  # a good one is simulated for seconds
    if isinstance(body, dict):
        for part in (body, *body.get("decisions", ()), *body.get("outcomes", ())):
            part |= {"key": f"f{chosen.randint(0, 900)}"} if "key" in part else {}
            part |= {"person": f"p{chosen.randint(0, 900)}"} if "person" in part else {}
        if chosen.random() < 0.7:
            body[chosen.choice([*body, "extra"])] = _junk(chosen)
    if chosen.random() < 0.3:
        path = path.replace(
            "k0", quote(str(_junk(chosen)).encode("utf-8", "replace"), safe="")[:300]
        )
        path = path.replace(
            "=loan", "=" + quote(str(_junk(chosen)).encode("utf-8", "replace"))[:300]
        )
    if method == "DELETE" or path in ("/v1/train", "/v1/erasures"):
        path = path if chosen.random() < 0.3 else "/v1/decisions/f1"
        method = method if path != "/v1/decisions/f1" else "GET"
    return method, path, body if chosen.random() < 0.95 else _junk(chosen)


def fuzz(quick):
    made, number, chosen = bank(), 400 if quick else 10_000, random.Random(7)
    bad, statuses, routes = [], {}, set()
    headers = {"Authorization": f"Bearer {made.all}", "Content-Type": "application/json"}
    for _ in range(number):
        method, path, body = _request(chosen)
        raw = b"" if body is None else json.dumps(body).encode()
        if chosen.random() < 0.1:
            raw = raw[: chosen.randint(0, len(raw))] + bytes([chosen.randint(0, 255)])
        found = made.client.request(method, path, content=raw, headers=headers)
        statuses[found.status_code] = statuses.get(found.status_code, 0) + 1
        routes.add((method, path.split("?")[0]))
        bad += [(method, path)] if found.status_code >= 500 else []
        if found.status_code >= 400 and found.headers["content-type"] != "application/problem+json":
            bad.append((method, path))
    sound = verify(made.ledger, deep=True).ok
    rows = recomputed(made.ledger, "loan")
    made.close()
    spread = ", ".join(f"{k}: {v:,}" for k, v in sorted(statuses.items()))
    chain = "sound" if sound else "BROKEN"
    figure = (
        f"{number:,} requests ({spread}): {len(bad)} of 5xx or no problem document; "
        f"{rows:,} rows, chain {chain}"
    )
    return "0 answers of 5xx, 0 bad rows", figure, not bad and sound


# monsters


def monsters(quick):
    with Process(folder()).running() as process:
        before = process.memory()
        bodies = [
            b"[" + b"0," * 5_000_000 + b"0]",
            b"[" * 10_000 + b"]" * 10_000,
            json.dumps({"decisions": [{"key": "k"}] * (50_000 if quick else 1_000_000)}).encode(),
        ]
        times, statuses, peak, stop = [], [], [before], threading.Event()

        async def others():
            client, i = process.client(), 0
            while not stop.is_set():
                began = time.perf_counter()
                await client.post("/v1/decisions", application(f"o{i}"))
                times.append(time.perf_counter() - began)
                peak.append(process.memory())
                i += 1
                await asyncio.sleep(0.005)

        async def attack():
            end = time.monotonic() + (2 if quick else 10)
            while time.monotonic() < end:
                for body in bodies:
                    answer = await process.client().post("/v1/decisions/batch", body)
                    statuses.append(None if answer is None else answer[0])

        watching = threading.Thread(target=lambda: asyncio.run(others()))
        watching.start()
        asyncio.run(attack())
        stop.set()
        watching.join()
    p99, more = 1000 * float(np.quantile(times, 0.99)), max(peak) - before
    refused = all(status in (400, 413, 422, 429) for status in statuses)
    return (
        "refused; < 300 MB more; other clients' p99 < 250 ms",
        f"{len(statuses)} monsters answered {sorted(set(map(str, statuses)))}, {more:.0f} MB more, "
        f"p99 {p99:.0f} ms of {len(times)}",
        refused and more < 300 and (quick or p99 < 250),
    )


# canaries

CANARY = "canary7f3a"
SCORE = 0.77312941


async def _sing(process, place):
    """Every kind of request, good and bad, with canaries in every personal place; the bodies of all
    refusals.
    """
    client, said = process.client(), []

    async def call(method, path, body=None):
        content = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        found = await client.call(method, path, content)
        if found is not None and (found[0] >= 400 or path == "/metrics"):
            said.append(found[1].decode())
        return found

    def one(number, **more):
        return application(
            f"{CANARY}-key-{number}",
            f"{CANARY}-person-{number}",
            SCORE,
            **{"group": f"{CANARY}-group", **more},
        )

    ask, tell = partial(call, "POST", "/v1/decisions"), partial(call, "POST")
    for number in range(30):
        await ask(one(number))
    for bad in (
        {"group": [f"{CANARY}-group"]},
        {"features": [f"{CANARY}-x"]},
        {f"{CANARY}-field": SCORE},
        {"group": f"{CANARY}-other"},
        {"person": f"{CANARY}-somebody"},
        {"product": "card"},
        {"prices": {"false_accept": SCORE}},
        {"features": [SCORE] * 3},
        {"key": f"{CANARY}\x00"},
    ):
        await ask({**one(1), **bad})
        await tell("/v1/decisions/batch", {"decisions": [{**one(2), **bad}, one(3)]})
    await ask(json.dumps(one(4)).encode()[:-2])
    await ask(b'{"group": "' + CANARY.encode() + b'-group", "x": ' + b"[" * 50)
    for number in range(5):
        await tell("/v1/outcomes", {"key": f"{CANARY}-key-{number}", "label": 1})
        await tell("/v1/outcomes", {"key": f"{CANARY}-key-{number}", "label": -1})
        await tell("/v1/outcomes", {"key": f"{CANARY}-unknown-{number}", "label": 1})
        await tell("/v1/outcomes", {"key": f"{CANARY}-key-{number}", "label": f"{CANARY}-label"})
        await tell("/v1/groups", {"key": f"{CANARY}-key-{number}", "group": f"{CANARY}-group-2"})
        await call("GET", f"/v1/decisions/{CANARY}-unknown-{number}")
        await call("GET", f"/v1/decisions/{CANARY}-key-{number}")
        await call("GET", f"/v1/decisions/{CANARY}-key-{number}/explanation")
    await tell("/v1/erasures", {"person": f"{CANARY}-person-1", "by": "officer"})
    await ask(one(1))
    for action in ("train", "kill", "revive"):
        await tell(f"/v1/{action}", {"product": "loan", "by": "op"})
    fresh = json.loads((await tell("/v1/keys", {"scopes": ["audit"]}))[1])["token"]
    windows = json.loads((await call("GET", "/v1/windows"))[1])["windows"]
    await tell(f"/v1/windows/{windows[0]['name']}/reveal")
    await call("GET", "/metrics")
    spoilt, client.token = client.token, client.token[:-1] + "~"
    said.append((await client.get("/v1/head"))[1].decode())
    client.token = spoilt
    form = f"key={process.token}&x={CANARY}-form".encode()
    await client.call("POST", "/dashboard/login", form)

    def turns():
        return process.log.read_bytes().count(TURN.encode())

    before = turns()
    until(lambda: turns() >= before + 2, "a turn of the trainer that has begun after all this")
    client.close()
    return said, fresh, windows[0]["name"]


def canaries(quick):
    """Every logger at DEBUG, SQLAlchemy's with its parameters too."""
    place = folder()
    with Process(place, "verbose").running() as process:
        said, fresh, window = asyncio.run(_sing(process, place))
        token = process.token
    keyring = open_keyring(load_settings(place / "service.toml"))
    root = json.loads((place / "keyring.json").read_text())["root"]
    with_ledger = _ledger_id(place)
    secret = keyring.window_secret(with_ledger, window).hex()
    log = (place / "log").read_text(errors="replace")
    hidden = {
        "in the log": [CANARY, str(SCORE), token, fresh, root, secret],
        "in a refusal": [
            f"{CANARY}-group",
            f"{CANARY}-other",
            f"{CANARY}-person",
            str(SCORE),
            token,
            fresh,
            root,
            secret,
        ],
        "in the database": [token, fresh],
    }
    texts = {
        "in the log": log,
        "in a refusal": "\n".join(said),
        "in the database": "".join(
            path.read_bytes().decode("latin-1") for path in place.glob("ledger.sqlite*")
        ),
    }
    hits = {
        where: [word for word in words if word in texts[where]] for where, words in hidden.items()
    }
    number = sum(map(len, hits.values()))
    figure = (
        f"{len(log.splitlines()):,} lines of log at DEBUG, {len(said)} refusals and metrics, "
        f"the database: {number} hits"
    )
    found = "; ".join(f"{where}: {len(words)}" for where, words in hits.items() if words)
    lively = len(log) > 10_000 and "SELECT" in log and len(said) > 20
    return "0 hits", figure + (f" ({found})" if found else ""), number == 0 and lively


def _ledger_id(place):
    from service.tests.torture.kills import reopened

    with reopened(place) as ledger:
        return ledger.id
