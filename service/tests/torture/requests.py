"""Requests that cost more than they should, and requests that two readers read differently; over
real sockets, each with a mutant (lenient.py) that fails it.
"""

import asyncio
import contextlib
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from service.tests.torture.edge import _health, attackers_elsewhere
from service.tests.torture.proxy import nginx
from service.tests.torture.serving import ROOT, Client, Process, application, folder, processor
from tests.tools import need

SOUND = application("k", "p")
OTHERS = 16
"""Clients without a key that ask for the OpenAPI document."""


def costly(size):
    """(path, body) of each kind of body of some size that is costly to validate."""
    number = size // 14
    unknown = {**SOUND, **{f"x{i}": 1 for i in range(number)}}
    outcome = {"key": "k", "label": 1, **{f"x{i}": 1 for i in range(size // 12_000)}}
    return {
        "unknown fields": ("/v1/decisions", json.dumps(unknown).encode()),
        "unknown fields of outcomes": (
            "/v1/outcomes/batch",
            json.dumps({"outcomes": [outcome] * 1000}).encode(),
        ),
        "empty objects": (
            "/v1/decisions/batch",
            b'{"decisions":[' + b"{}," * (size // 3) + b"{}]}",
        ),
        "quotes": ("/v1/decisions", b'"' * size),
        "numbers": ("/v1/decisions", b"[" + b"0," * (size // 2) + b"0]"),
    }


def send(port, size):
    """For each line "kind number token" on the input: send so many such bodies at once, and print
    their statuses.
    """
    os.nice(19)  # enemies come from elsewhere and do not share our processor
    made = costly(size)
    print("ready", flush=True)
    for line in sys.stdin:
        kind, number, token = json.loads(line)
        path, body = made[kind]
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        content, statuses = head.encode() + body, []

        def one(message=content, statuses=statuses):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                with contextlib.suppress(OSError):
                    connection.sendall(message)
                statuses.append(int(connection.recv(12, socket.MSG_WAITALL)[9:12] or 0))

        senders = [threading.Thread(target=one) for _ in range(number)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        print(json.dumps(statuses), flush=True)


class Enemy:
    """Somebody with a valid key, in a process of its own that is ready before anything is measured.
    """  # fmt: skip

    def __init__(self, process, size):
        self.token = process.token
        words = [sys.executable, "-m", "service.tests.torture.requests", "send"]
        self.running = subprocess.Popen(
            [*words, str(process.port), str(size)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.running.stdout.readline()

    def send(self, kind, number, rounds):
        """The statuses of so many bodies at once, again and again."""
        statuses = []
        for _ in range(rounds):
            self.running.stdin.write(json.dumps([kind, number, self.token]) + "\n")
            self.running.stdin.flush()
            statuses += json.loads(self.running.stdout.readline())
        return statuses

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.running.kill()
        self.running.communicate()


def many_members(quick, kind="real"):
    """Ten bodies of 2 MB at once, of each kind in turn, while somebody asks for /health; and what
    the same bytes do to the machine when they are sent to another process.
    """
    size, turns, number, rounds = (2**17, 1, 3, 1) if quick else (2 * 2**20, 4, 10, 20)
    if kind != "real":  # it has no time for more
        size, turns, number, rounds = 2 * 2**20, 1, 10, 1
    size -= 100
    times = {"calm": [], "attacked": [], "elsewhere": []}
    statuses, sent, used = [], 0, 0.0
    with (
        Process(folder(), kind).running() as process,
        Enemy(process, size) as enemy,
        attackers_elsewhere(size) as others,
    ):
        for turn in range(turns):
            times["calm"] += asyncio.run(_health(process, 20 if quick else 300))[0]
            others.send("hostile", 4 * number * rounds)
            times["elsewhere"] += asyncio.run(_health(process, 1, others.refused))[0]
            for what in np.random.default_rng([7, turn]).permutation(list(costly(100))):
                before = processor(process)
                found, got = asyncio.run(
                    _health(process, 1, lambda what=what: enemy.send(what, number, rounds))
                )
                times["attacked"] += found
                statuses += got
                sent += number * rounds
                used += processor(process) - before
    slow = {
        what: float(np.quantile([took for took, _ in found], 0.99, method="higher"))
        for what, found in times.items()
    }
    longest = max(took for took, _ in times["attacked"])
    spread = ", ".join(f"{status}: {statuses.count(status)}" for status in sorted(set(statuses)))
    figure = (
        f"{sent} bodies of {size / 2**20:.2g} MB, {number} at once ({spread}), "
        f"{1000 * used / sent:.1f} ms of processor each; p99 of /health {slow['attacked']:.1f} ms, "
        f"calm {slow['calm']:.1f} ms ({slow['attacked'] / slow['calm']:.1f} times, of "
        f"{len(times['attacked']):,} and {len(times['calm']):,}), longest {longest:.0f} ms; "
        f"{slow['elsewhere']:.1f} ms while as much is sent to another process"
    )
    refused = len(statuses) == sent and set(statuses) <= {400, 422, 429}
    held = refused and ((quick and kind == "real") or slow["attacked"] <= 3 * slow["calm"])
    return "refused; p99 of /health at most 3 times its calm value", figure, held


# paths that need no key


def ask(port, clients):
    """For each line on the input: ask for the OpenAPI document until the next line comes, as so
    many clients do; print how many answers of each status there were.
    """
    os.nice(19)
    request = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    def one(stop, statuses):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            told = connection.makefile("rb")
            while not stop.is_set():
                connection.sendall(request)
                head = b"".join(iter(told.readline, b"\r\n"))
                told.read(int(re.search(rb"content-length: (\d+)", head)[1]))
                statuses.append(int(head[9:12]))

    print("ready", flush=True)
    for _ in sys.stdin:
        stop, statuses = threading.Event(), []
        askers = [threading.Thread(target=one, args=(stop, statuses)) for _ in range(clients)]
        for asker in askers:
            asker.start()
        sys.stdin.readline()
        stop.set()
        for asker in askers:
            asker.join()
        print(json.dumps({s: statuses.count(s) for s in sorted(set(statuses))}), flush=True)


async def _decided(process, name, number):
    """The milliseconds of so many decisions, one after another."""
    client, times = process.client(), []
    for i in range(number):
        began = time.perf_counter()
        answer = await client.post("/v1/decisions", application(f"{name}{i}"))
        times.append(1000 * (time.perf_counter() - began))
        assert answer is not None, "the connection broke"
        assert answer[0] == 200, answer
        await asyncio.sleep(0.002)
    client.close()
    return times


def public_paths(quick, kind="real"):
    """Sixteen clients without a key, for the largest document that needs none."""
    turns, number = (1, 20) if quick and kind == "real" else (4, 200)
    calm, asked, answers = [], [], {}
    with Process(folder(), kind).running() as process:
        words = [sys.executable, "-m", "service.tests.torture.requests", "ask"]
        with subprocess.Popen(
            [*words, str(process.port), str(OTHERS)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as crowd:
            crowd.stdout.readline()
            for turn in range(turns):
                calm += asyncio.run(_decided(process, f"calm{turn}-", number))
                crowd.stdin.write("begin\n")
                crowd.stdin.flush()
                asked += asyncio.run(_decided(process, f"asked{turn}-", number))
                crowd.stdin.write("end\n")
                crowd.stdin.flush()
                for status, times in json.loads(crowd.stdout.readline()).items():
                    answers[status] = answers.get(status, 0) + times
            crowd.stdin.close()
    slow, usual = (float(np.median(times)) for times in (asked, calm))
    figure = (
        f"{sum(answers.values()):,} answers ({answers}) to {OTHERS} clients; a decision meanwhile "
        f"p50 {slow:.1f} ms, calm {usual:.1f} ms ({slow / usual:.1f} times), longest "
        f"{max(asked):.0f} ms"
    )
    limited = answers.get("429", 0) > 0 or quick
    held = limited and answers.get("200", 0) > 0
    held = held and ((quick and kind == "real") or slow <= 3 * usual)
    return "p50 of decisions at most 3 times its calm value; a limit of 100 a second", figure, held


# what two readers read differently


def exchange(port, method, target, body=b"", **headers):
    """(status, body) of one request on a connection of its own, byte by byte as it is given."""
    given = {"Host": "127.0.0.1", "Content-Type": "application/json", **headers}
    if "Transfer-Encoding" not in given:
        given["Content-Length"] = str(len(body))
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        told = connection.makefile("rb")
        head = b"".join(iter(told.readline, b"\r\n"))
        size = re.search(rb"content-length: (\d+)", head, re.I)
        return int(head[9:12]), told.read(int(size[1]) if size else 0)


def _wrong(cases):
    """Those whose answer is not the expected one, in words."""
    return [
        f"{what}: {found} instead of {expected}"
        for what, found, expected in cases
        if found not in (expected if isinstance(expected, tuple) else (expected,))
    ]


def _told(cases):
    wrong = _wrong(cases)
    figure = f"{len(cases) - len(wrong)} of {len(cases)} as they should be"
    return figure + (f"; {'; '.join(wrong[:4])}" if wrong else ""), not wrong


SPELLINGS = {
    "decomposed": "P-Zoe\u0308",
    "a blank after": "P-Zoë ",
    "a blank before": " P-Zoë",
    "a blank without width": "P-Zoë\u200b",
    "a hard blank": "P-Zoë\u00a0",
    "full width": "\uff30-Zoe\u0308",
}


def one_spelling(quick, kind="real"):
    """One person under spellings that look the same: as person, key and group, in every request
    that takes one.
    """
    with Process(folder(), kind).running() as process:
        key = {"Authorization": f"Bearer {process.token}"}

        def post(path, body):
            return exchange(process.port, "POST", path, json.dumps(body).encode(), **key)[0]

        cases = [("itself", post("/v1/decisions", application("P-Zoë", "P-Zoë")), 200)]
        for what, text in SPELLINGS.items():
            cases += [
                (f"{what}, person", post("/v1/decisions", application("other", text)), 422),
                (f"{what}, key", post("/v1/decisions", application(text, "P-other")), 422),
                (f"{what}, group", post("/v1/groups", {"key": "P-Zoë", "group": text}), 422),
                (f"{what}, erased", post("/v1/erasures", {"person": text}), 422),
                (f"{what}, told", post("/v1/outcomes", {"key": text, "label": 1}), 422),
            ]
        cases.append(("erased by its name", post("/v1/erasures", {"person": "P-Zoë"}), 200))
    return "one spelling of a name; every other is refused", *_told(cases)


def one_reading(quick, kind="real"):
    """Members that come twice, other encodings, and other media types, on every way in."""
    twice = json.dumps(application("twice", "a"))[:-1] + ', "person": "b"}'
    features = '{"key":"t2","person":"p","product":"loan","features":{"score":1,"score":0}}'
    plain = json.dumps(application("enc", "Zoë"), ensure_ascii=False)
    with Process(folder(), kind).running() as process:
        key = {"Authorization": f"Bearer {process.token}"}

        def post(path, body, **headers):
            return exchange(process.port, "POST", path, body, **key, **headers)[0]

        ask, told = "/v1/decisions", '{"key":"enc","label":1,"label":-1}'
        cases = [
            ("a person twice", post(ask, twice.encode()), 400),
            ("in a batch", post(f"{ask}/batch", f'{{"decisions":[{twice}]}}'.encode()), 400),
            ("a feature twice", post(ask, features.encode()), 400),
            ("a label twice", post("/v1/outcomes", told.encode()), 400),
            ("scopes twice", post("/v1/keys", b'{"scopes":["audit"],"scopes":["admin"]}'), 400),
            ("the name escaped", post("/v1/erasures", b'{"person":"a","\\u0070erson":"b"}'), 400),
            *((e, post(ask, plain.encode(e)), 400) for e in ("utf-16", "utf-16-be", "utf-32")),
            ("a byte order mark", post(ask, plain.encode("utf-8-sig")), 400),
            *(
                (kind_of, post(ask, plain.encode(), Content_Type=kind_of), 415)
                for kind_of in (
                    "application/jsonp",
                    "application/json; charset=utf-16",
                    "application/json, text/plain",
                    "text/plain",
                )
            ),
            ("as it should be", post(ask, plain.encode()), 200),
        ]
    return "one reading of a body: each other is refused", *_told(cases)


def one_host(quick, kind="real"):
    """Names of other hosts, in the header and in the target, without and with nginx in front; and
    codings of a body that are not those of which the service knows.
    """
    target = "421 or 400 unless the service is named, as it should be"
    need("nginx")
    with Process(folder(), kind).running() as process, nginx(process.port) as proxied:
        key = {"Authorization": f"Bearer {process.token}"}
        cases = []
        odd = ("127.0.0.1:@evil.example", "127.0.0.1:80:80", "127.0.0.1.")
        for where, port in (("", process.port), (" behind nginx", proxied)):
            # of what begins with the service's name nginx passes that name alone
            normalised = (200,) if where else ()
            for host in ("evil.example", "evil.example@127.0.0.1", "", *odd):
                found = exchange(port, "GET", "/v1/head", Host=host, **key)[0]
                cases.append((host + where, found, (400, 421, *(normalised * (host in odd)))))
            coded = {"Transfer_Encoding": "gzip, chunked", **key}
            asked = exchange(port, "POST", "/v1/decisions", b"2\r\n{}\r\n0\r\n\r\n", **coded)
            cases.append((f"two codings{where}", asked[0], (400, 501)))
            cases.append((f"itself{where}", exchange(port, "GET", "/v1/head", **key)[0], 200))
        # a server has to take the name from the target (RFC 9112, 3.2.2): nginx does, and passes it
        cases += [
            (form, exchange(proxied, "GET", form, **key)[0], (400, 421))
            for form in ("http://evil.example/v1/head", "http://evil.example:80/v1/head")
        ]
        form = "http://127.0.0.1/v1/head"
        cases.append((form, exchange(proxied, "GET", form, Host="127.0.0.1", **key)[0], 200))
    return target, *_told(cases)


def narrow_scopes(quick, kind="real"):
    """A key that may report outcomes overrides nothing; a settlement comes after two labels."""
    with Process(folder(), kind).running() as process:

        def post(path, body, token=process.token):
            key = {"Authorization": f"Bearer {token}"}
            status, told = exchange(process.port, "POST", path, json.dumps(body).encode(), **key)
            return status, json.loads(told)

        people = [f"s{i}" for i in range(12)]
        drawn = {one: post("/v1/decisions", application(one))[1]["accept"] for one in people}
        accepted = next(one for one in people if drawn[one])
        shop = post("/v1/keys", {"scopes": ["observe"]})[1]["token"]
        clerk = post("/v1/keys", {"scopes": ["override"]})[1]["token"]
        other = next(one for one in people if one != accepted)
        override = {"key": other, "accept": not drawn[other]}
        settle = {"key": accepted, "label": 1}
        cases = [
            ("observe overrides", post("/v1/overrides", override, shop)[0], 403),
            ("override observes", post("/v1/outcomes", settle, clerk)[0], 403),
            ("override overrides", post("/v1/overrides", override, clerk)[0], 200),
            ("observe settles", post("/v1/settlements", settle, shop)[0], 403),
            ("a settlement before labels", post("/v1/settlements", settle)[0], 409),
            ("a label", post("/v1/outcomes", settle, shop)[0], 200),
            ("a settlement of one label", post("/v1/settlements", settle)[0], 409),
            ("another label", post("/v1/outcomes", {**settle, "label": -1}, shop)[0], 200),
            ("a settlement of two", post("/v1/settlements", settle)[0], 200),
        ]
        # in one batch: two labels that contradict each other are a dispute, not two records
        batch = [{"key": accepted, "label": 1}, {"key": accepted, "label": -1}]
        results = post("/v1/outcomes/batch", {"outcomes": batch}, shop)[1]["outcomes"]
        cases.append(
            ("both in a batch", {one.get("result") for one in results} == {"repeated"}, True)
        )
    return "403 without the scope override; 409 before two labels contradict", *_told(cases)


# the first look at a large ledger


def _first_metrics(place, kind):
    """(milliseconds of processor, rows left uncounted) of the first /metrics of a service on a
    folder, when nobody has looked before.
    """
    with contextlib.closing(sqlite3.connect(Path(place) / "ledger.sqlite")) as database, database:
        database.execute("DELETE FROM summaries")
    process = Process(Path(place), kind, train_every=1000.0)
    with process.running():
        before = processor(process)
        client = Client(process.port, process.token)
        status, text = asyncio.run(client.get("/metrics"))
        left = re.search(rb'evenhand_uncounted_rows\{product="loan"\} ([0-9.e+]+)', text)
        return status, 1000 * (processor(process) - before), float(left[1])


def first_look(quick, place):
    """What the first /metrics costs after a million decisions; the mutant counts them all."""
    (status, cost, left), (_, whole, _) = (
        _first_metrics(place, k) for k in ("real", "all at once")
    )
    figure = (
        f"{cost:.0f} ms of processor, {left:,.0f} rows left for later ({status}); the mutant "
        f"'all at once': {whole:.0f} ms"
    )
    held = status == 200 and (quick or (cost < 1500 and whole > 3 * cost))
    return "the first /metrics below 1.5 s of processor at 1e6 rows", figure, held


if __name__ == "__main__":
    {"send": send, "ask": ask}[sys.argv[1]](*map(int, sys.argv[2:]))
