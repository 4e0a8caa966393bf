"""One function per row of the table: (quick) -> (target, figure, held)."""

import asyncio
import json
import random
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
from tests.service.bank import DAY, KEYRING, LOAN, Bank
from tests.service.bank import application as asked
from tests.torture.serving import Client, Process, application

from evenhand.ledger import Ledger, Policy, WindowPlan, recompute, verify
from evenhand.service import Trainer
from evenhand.service.config import load_settings
from evenhand.service.in_force import load
from evenhand.service.opening import open_keyring


def folder():
    return Path(tempfile.mkdtemp(prefix="evenhand-torture-"))


def bank():
    return Bank(folder() / "ledger.sqlite")


# kill -9


async def _load(process, token, acknowledged, number, seconds, clients=16):
    async def one(client_number):
        client, i = Client(process.port, token), 0
        while time.monotonic() < end:
            key = f"r{number}-c{client_number}-{i}"
            answer = await client.post("/v1/decisions", application(key))
            if answer is None:
                return
            if answer[0] == 200:
                acknowledged[key] = answer[1]
            i += 1

    end = time.monotonic() + seconds + 5
    tasks = [asyncio.create_task(one(c)) for c in range(clients)]
    await asyncio.sleep(seconds)
    process.kill()
    await asyncio.gather(*tasks)


async def _changed(process, token, acknowledged):
    client, wrong = Client(process.port, token), 0
    for key, body in acknowledged.items():
        answer = await client.post("/v1/decisions", application(key))
        wrong += answer is None or answer[1] != body
    client.close()
    return wrong


def _kills(kind, rounds):
    place = folder()
    process, acknowledged, wrong = Process(place, kind), {}, 0
    for number in range(rounds):
        process.start()
        fresh = {}
        asyncio.run(_load(process, process.token, fresh, number, random.uniform(0.1, 0.4)))
        process.start()
        wrong += asyncio.run(_changed(process, process.token, fresh))
        process.kill()
        acknowledged |= fresh
    settings = load_settings(place / "service.toml")
    with Ledger.open(
        settings.ledger, keyring=open_keyring(settings), clock=time.time, windows=WindowPlan(30 * DAY)
    ) as ledger:
        sound, stored = verify(ledger).ok, ledger.counts("bank", "loan").decisions
    return acknowledged, wrong, sound, stored


def kill_the_service(quick):
    rounds = 2 if quick else 100
    acknowledged, wrong, sound, stored = _kills("real", rounds)
    chain = "sound" if sound else "BROKEN"
    figure = (
        f"{rounds} kills, {len(acknowledged):,} acknowledged, {stored:,} stored: {wrong} lost or changed, chain {chain}"
    )
    return "0 lost, 0 changed", figure, wrong == 0 and sound and len(acknowledged) > 0


def kill_the_mutant(quick):
    for attempt in range(2 if quick else 10):
        acknowledged, wrong, _, _ = _kills("mutant", 2)
        if wrong:
            return (
                "the defect is seen",
                f"{wrong} of {len(acknowledged):,} acknowledged were lost ({attempt + 1} tries)",
                True,
            )
    return "the defect is seen", "not seen", False


# identity


def identical_requests(quick):
    times, made = 3 if quick else 100, bank()
    different = 0
    with ThreadPoolExecutor(24) as pool:
        for number in range(times):
            body = asked(f"same-{number}")
            found = set(pool.map(lambda _, body=body: made.post("/v1/decisions", body).content, range(100)))
            different += len(found) != 1
    stored = made.ledger.counts("bank", "loan").decisions
    made.close()
    return (
        "one draw each, equal bodies",
        f"{times} x 100: {different} with different bodies, {stored} draws",
        different == 0 and stored == times,
    )


def other_body(quick):
    made, number, passed = bank(), 100 if quick else 2000, 0
    chosen = random.Random(1)
    for i in range(number):
        made.post("/v1/decisions", asked(f"k{i}", group="a"))
        other = chosen.choice(
            [
                asked(f"k{i}", group="b"),
                asked(f"k{i}", features=[chosen.random()], group="a"),
                asked(f"k{i}", person="q", group="a"),
            ]
        )
        passed += made.post("/v1/decisions", other).status_code != 409
    made.close()
    return "always a conflict", f"{number:,} tries, {passed} passed", passed == 0


def late_retries(quick):
    made, changed = bank(), 0
    first = {i: made.post("/v1/decisions", asked(f"k{i}")).content for i in range(50)}
    for days in (1, 400, 2000):
        made.clock.now += days * DAY
        changed += sum(made.post("/v1/decisions", asked(f"k{i}")).content != body for i, body in first.items())
    made.close()
    return "identical answers", f"after 1, 400, 2,000 days: {changed} of 150 changed", changed == 0


# policies


def swaps_under_load(quick):
    made, swaps, each = bank(), 10 if quick else 100, 25
    stop = threading.Event()

    def swap():
        for number in range(swaps):
            made.post(("/v1/kill", "/v1/revive", "/v1/shadow", "/v1/live")[number % 4], {"product": "loan", "by": "op"})
            time.sleep(0.01)
        stop.set()

    thread = threading.Thread(target=swap)
    thread.start()
    total, number = 0, 0
    while not stop.is_set() or total < (500 if quick else 10_000):
        body = {"decisions": [asked(f"s{number}-{i}", features=[0.1 * i]) for i in range(each)]}
        assert made.post("/v1/decisions/batch", body).status_code == 200
        total, number = total + each, number + 1
    thread.join()
    checked = recompute(made.ledger, "bank", "loan")
    made.close()
    return "every propensity recomputes", f"{swaps} swaps, {total:,} requests, {checked:,} recomputed", checked == total


def flipped_bytes(quick):
    made = bank()
    policy = next(p for p in made.ledger.policies("bank", "loan") if p.in_lineage)
    text = json.dumps(policy.signed | {"signature": policy.signature}).encode()
    loads, tried = 0, 0
    for place in range(len(text)):
        for bit in (0,) if quick else range(8):
            changed = bytearray(text)
            changed[place] ^= 1 << bit
            tried += 1
            try:
                read = Policy.from_body(policy.seq, json.loads(changed))
                load(read, made.ledger.keyring.public_key)
                loads += read != policy
            except Exception:  # noqa: BLE001 - whatever refuses it is fine
                continue
    made.close()
    return "0 loads", f"{tried:,} flips, {loads} loads", loads == 0


def four_trainers(quick, url=None):
    """On PostgreSQL, if a URL is given (make torture starts a server), else on one SQLite ledger."""
    if url is None:
        return "one publication per epoch", "skipped: no PostgreSQL", True
    ledgers = [Ledger.open(url, keyring=KEYRING, clock=time.time, windows=WindowPlan(30 * DAY)) for _ in range(4)]
    trainers = [Trainer(ledger, LOAN, f"trainer-{i}", lease_seconds=0.3) for i, ledger in enumerate(ledgers)]
    trainers[0].begin()
    asleep, refused = threading.Event(), [0]
    epochs = 3 if quick else 10

    def work(trainer, sleepy):
        while max(p.epoch for p in trainer.ledger.policies("bank", "loan") if p.in_lineage) < epochs:
            try:
                if sleepy and not asleep.is_set():
                    asleep.set()
                    lease = trainer.ledger.acquire_lease(trainer.lease_name, trainer.holder, 0.3)
                    trainer.catch_up()
                    time.sleep(1.5)
                    trainer._close(trainer.ledger.head().seq, time.time())
                    trainer._publish(lease)
                else:
                    trainer.close()
            except Exception:  # noqa: BLE001 - the loser of a race
                refused[0] += 1
                trainer._forget()
            time.sleep(0.05)

    threads = [threading.Thread(target=work, args=(t, i == 3)) for i, t in enumerate(trainers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [p for p in ledgers[0].policies("bank", "loan") if p.in_lineage]
    linked = all(b.parent == a.id and b.epoch == a.epoch + 1 for a, b in pairwise(found))
    sound = verify(ledgers[0]).ok
    for ledger in ledgers:
        ledger.close()
    distinct, lineage = len({p.epoch for p in found}), "unbroken" if linked else "BROKEN"
    figure = f"{len(found)} epochs, {distinct} distinct, lineage {lineage}, {refused[0]} refused"
    return "one publication per epoch", figure, linked and sound and len({p.epoch for p in found}) == len(found)


# bad input


def _junk(chosen, depth=0):
    kinds = ["int", "float", "text", "none", "bool", "list", "dict", "huge", "odd"]
    match chosen.choice(kinds[: 5 if depth > 3 else None]):
        case "int":
            return chosen.randint(-3, 3)
        case "float":
            return chosen.choice([0.5, -1e308, 1e-300, 1.5])
        case "text":
            return "".join(
                chr(chosen.choice([65, 0, 9, 0xD800, 0x1F600, 39, 34, 60, 0x202E])) for _ in range(chosen.randint(0, 5))
            )
        case "none":
            return None
        case "bool":
            return chosen.random() < 0.5
        case "list":
            return [_junk(chosen, depth + 1) for _ in range(chosen.randint(0, 4))]
        case "dict":
            return {
                chosen.choice(["key", "label", "x", ""]): _junk(chosen, depth + 1) for _ in range(chosen.randint(0, 4))
            }
        case "huge":
            return chosen.choice([10**30, -(2**63), "k" * 1000, 10**400])
    return chosen.choice(["'; DROP TABLE decisions; --", "../../etc/passwd", "%00", "{{7*7}}"])


GOOD = {
    "/v1/decisions": lambda c: asked(f"f{c.randint(0, 300)}", group=c.choice(["a", None, 3])),
    "/v1/decisions/batch": lambda c: {"decisions": [asked(f"f{c.randint(0, 300)}") for _ in range(c.randint(0, 3))]},
    "/v1/outcomes": lambda c: {"key": f"f{c.randint(0, 300)}", "label": c.choice([1, -1])},
    "/v1/outcomes/batch": lambda c: {"outcomes": [{"key": f"f{c.randint(0, 300)}", "label": 1}]},
    "/v1/overrides": lambda c: {"key": f"f{c.randint(0, 300)}", "accept": True, "by": "x"},
    "/v1/groups": lambda c: {"key": f"f{c.randint(0, 300)}", "group": "a"},
    "/v1/settlements": lambda c: {"key": f"f{c.randint(0, 300)}", "label": 1, "by": "x"},
    "/v1/keys": lambda c: {"scopes": ["audit"]},
    "/v1/rollback": lambda c: {"product": "loan", "by": "x"},
    "/v1/erasures": lambda c: {"person": f"p-f{c.randint(0, 300)}", "by": "x"},
}


def fuzz(quick):
    made, number, chosen = bank(), 300 if quick else 10_000, random.Random(7)
    bad, statuses = 0, {}
    for _ in range(number):
        path = chosen.choice(list(GOOD))
        body = GOOD[path](chosen)
        if chosen.random() < 0.8 and isinstance(body, dict):
            body[chosen.choice([*body, "extra"])] = _junk(chosen)
        raw = json.dumps(body if chosen.random() < 0.95 else _junk(chosen)).encode()
        if chosen.random() < 0.1:
            raw = raw[: chosen.randint(0, len(raw))] + bytes([chosen.randint(0, 255)])
        headers = {"Authorization": f"Bearer {made.all}", "Content-Type": "application/json"}
        status = made.client.post(path, content=raw, headers=headers).status_code
        statuses[status] = statuses.get(status, 0) + 1
        bad += status >= 500
    sound = verify(made.ledger, deep=True).ok and recompute(made.ledger, "bank", "loan") >= 0
    made.close()
    spread = ", ".join(f"{k}: {v:,}" for k, v in sorted(statuses.items()))
    return (
        "0 of 5xx, 0 bad rows",
        f"{number:,} requests ({spread}); chain {'sound' if sound else 'BROKEN'}",
        bad == 0 and sound,
    )


def monsters(quick):
    process = Process(folder()).start()
    token, before = process.token, process.memory()
    bodies = [
        b"[" + b"0," * 5_000_000 + b"0]",
        b"[" * 10_000 + b"]" * 10_000,
        json.dumps({"decisions": [{"key": "k"}] * (50_000 if quick else 1_000_000)}).encode(),
    ]
    times, statuses, peak, stop = [], [], [before], threading.Event()

    async def others():
        client, i = Client(process.port, token), 0
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
                answer = await Client(process.port, token).post("/v1/decisions/batch", body)
                statuses.append(None if answer is None else answer[0])

    watching = threading.Thread(target=lambda: asyncio.run(others()))
    watching.start()
    asyncio.run(attack())
    stop.set()
    watching.join()
    process.kill()
    p99, more = 1000 * float(np.quantile(times, 0.99)), max(peak) - before
    refused = all(status in (413, 422) for status in statuses)
    return (
        "refused; < 300 MB more; p99 < 250 ms",
        f"answers {sorted(set(map(str, statuses)))}, {more:.0f} MB more, p99 {p99:.0f} ms of {len(times)}",
        refused and more < 300 and p99 < 250,
    )


# speed


async def _throughput(process, seconds, clients, batch):
    token, done = process.token, [0]
    end = time.monotonic() + seconds

    async def one(number):
        client, i = Client(process.port, token), 0
        while time.monotonic() < end:
            keys = [f"t{batch}-{end}-{number}-{i}-{j}" for j in range(batch)]
            if batch == 1:
                answer = await client.post("/v1/decisions", application(keys[0]))
            else:
                answer = await client.post("/v1/decisions/batch", {"decisions": [application(key) for key in keys]})
            done[0] += batch * (answer is not None and answer[0] == 200)
            i += 1
        client.close()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return done[0] / seconds


def throughput(quick):
    seconds = 2 if quick else 6
    ratios, shown = [], ""
    for _ in range(1 if quick else 3):
        rates = {}
        for kind, batch, clients in (("dry", 1, 64), ("real", 1, 64), ("real", 100, 4)):
            process = Process(folder(), kind).start()
            rates[kind, batch] = asyncio.run(_throughput(process, seconds, clients, batch))
            process.kill()
        single = rates["real", 1]
        ratios.append((single / rates["dry", 1], rates["real", 100] / single))
        shown = f"dry {rates['dry', 1]:.0f}/s, durable {single:.0f}/s, in batches {rates['real', 100]:.0f}/s"
    one, many = (float(np.median([r[i] for r in ratios])) for i in (0, 1))
    return (
        "singles >= .8 of no write; batches >= 5 times",
        f"{one:.2f} and {many:.1f} times (last: {shown})",
        one >= 0.8 and many >= 5,
    )


def restart(quick):
    made = bank()
    made.arrive(500 if quick else 20_000, seed=3)
    path, clock = made.ledger.store.path, made.clock
    made.close()
    began = time.perf_counter()
    again = Bank(path, clock)
    assert again.post("/v1/decisions", asked("after")).status_code == 200
    seconds = time.perf_counter() - began
    rows = again.ledger.head().seq
    again.close()
    return "< 1 s until the first answer", f"{seconds:.2f} s with {rows:,} rows (imports apart)", seconds < 1


ROWS = {
    "kill -9 under load over HTTP": kill_the_service,
    "a mutant that answers before commit": kill_the_mutant,
    "100 identical requests at once": identical_requests,
    "same key, other body": other_body,
    "retry after 1, 400, 2,000 days": late_retries,
    "policy swaps under load": swaps_under_load,
    "four trainers, one asleep": four_trainers,
    "each byte of a policy flipped": flipped_bytes,
    "fuzzed requests": fuzz,
    "10 MB body, depth 10,000, batch of 1e6": monsters,
    "durable throughput, 64 clients": throughput,
    "restart": restart,
}
