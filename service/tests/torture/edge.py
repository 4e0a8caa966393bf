"""The edge of the service, over real sockets and behind Debian's nginx: hostile bodies without a
key, silent and slow connections, and a signal to stop under load. Each has a mutant (run.py) that
fails it; `unproxied` is the service without nginx.
"""

import asyncio
import contextlib
import json
import os
import re
import resource
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from math import inf
from pathlib import Path

import numpy as np
from service.tests.ports import free_port
from service.tests.torture.proxy import behind
from service.tests.torture.serving import (
    ROOT,
    TOML,
    Client,
    Process,
    application,
    folder,
    processor,
)
from tests.tools import need
from tests.without_clocks import PATIENCE, until

MEGABYTE = 2**20
HOSTILE = {
    "escaped quotes": b'\\"',
    "open strings": b'"a',
    "open arrays": b"[",
    "open objects": b'{"a":',
    "backslashes": b"\\",
    "numbers": b"0,",
}
"""What a body of 2 MB is made of; a regular expression, a parser or a stack may suffer from it."""


def and_mutant(row, kind):
    """The row; at full size, a mutant of the service has to fail it."""

    def run(quick):
        target, figure, held = row(quick)
        if quick:
            return target, figure, held
        _, told, passed = row(True, kind)
        return target, f"{figure}. The mutant {kind!r}: {told}", held and not passed

    return run


def bodies(what, size):
    """Bodies of one kind; the harmless ones are as long, and a plain text of JSON."""
    parts = HOSTILE.values() if what == "hostile" else (b'"' + b"a" * 4094 + b'"',)
    return [part * (size // len(part)) for part in parts]


def attack(port, size):
    """For each line "kind number" on the input: send so many bodies without a key, and print how
    many were answered 401 or 429.
    """
    os.nice(19)  # enemies come from elsewhere and do not share our processor
    made = {what: bodies(what, size) for what in ("harmless", "hostile")}
    print("ready", flush=True)
    for line in sys.stdin:
        what, number = line.split()
        refused = 0
        for i in range(int(number)):
            body = made[what][i % len(made[what])]
            head = (
                "POST /v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as one:
                one.sendall(head.encode() + body)
                status = one.recv(12, socket.MSG_WAITALL)[9:12]
                refused += status in (b"401", b"429")
        print(refused, flush=True)


class Attackers:
    """Attackers in processes of their own, which are ready before anything is measured."""

    def __init__(self, port, size, workers=4):
        words = [sys.executable, "-m", "service.tests.torture.edge", "attack", str(port), str(size)]
        self.running = [
            subprocess.Popen(
                words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(workers)
        ]
        for one in self.running:
            one.stdout.readline()

    def send(self, what, number):
        """Let them begin to send so many bodies in all."""
        for one in self.running:
            one.stdin.write(f"{what} {number // len(self.running)}\n")
            one.stdin.flush()

    def refused(self):
        """Wait for the last of them; how many bodies were refused."""
        return sum(int(one.stdout.readline()) for one in self.running)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.running:
            one.kill()
            one.communicate()


def elsewhere():
    """Print a port, and answer 401 to whoever comes there: what the attackers do to the machine
    when they do nothing to the service.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            one, _ = server.accept()
            with one, contextlib.suppress(OSError):
                one.recv(65536)
                one.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):
                    pass


@contextlib.contextmanager
def attackers_elsewhere(size):
    """Attackers of such a process."""
    words = [sys.executable, "-m", "service.tests.torture.edge", "elsewhere"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as sink:
        try:
            with Attackers(int(sink.stdout.readline()), size) as enemies:
                yield enemies
        finally:
            sink.kill()


def _work(process):
    """Milliseconds of processor that the thread of the event loop has used."""
    with open(f"/proc/{process.pid}/task/{process.pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e6


async def _health(process, least, busy=None):
    """Of each answer of /health, on a kept connection: the milliseconds until it came (infinitely
    many if it was not "ok"), and those of processor that the event loop used meanwhile, which do
    not depend on what else the machine does. So many answers at least, and until `busy` (awaited in
    a thread) is over; with what `busy` gave.
    """
    client, times = process.client(), []
    waiting = asyncio.create_task(asyncio.to_thread(busy or (lambda: None)))
    await client.get("/health")
    while len(times) < least or not waiting.done():
        worked, began = _work(process), time.perf_counter()
        answer = await client.get("/health")
        sound = answer is not None and answer[0] == 200
        took = 1000 * (time.perf_counter() - began) if sound else inf
        times.append((took, _work(process) - worked))
        await asyncio.sleep(0.002)
    client.close()
    return times, await waiting


def _under(process, enemies, what, each, least):
    """(so many times of /health at least, while bodies are sent; how many were sent, refused)."""
    times, sent, refused = [], 0, 0
    while not sent or len(times) < least:
        enemies.send(what, each)
        found, number = asyncio.run(_health(process, 1, enemies.refused))
        times, sent, refused = times + found, sent + each, refused + number
    return times, sent, refused


def hostile_bodies(quick, kind="real", rounds=None):
    """p99 of /health in calm, under harmless and hostile bodies of one size, and while the same
    attackers send theirs to another process, in turns: what else the machine does meets all four.
    Then a signal to stop while it goes on.
    """
    turns, each, least, size = (2, 4, 1, MEGABYTE // 32) if quick else (12, 100, 100, 2 * MEGABYTE)
    turns = rounds or turns
    times = {what: [] for what in ("calm", "harmless", "hostile", "elsewhere")}
    sent = refused = used = 0
    with (
        behind(Process(folder(), kind)) as process,
        Attackers(process.port, size) as enemies,
        attackers_elsewhere(size) as others,
    ):
        for turn in range(turns):
            # not always in the same order: whoever comes first meets what the last one has left
            for what in np.random.default_rng([7, turn]).permutation(list(times)):
                if what == "calm":
                    times[what] += asyncio.run(_health(process, 200))[0]
                elif what == "elsewhere":
                    times[what] += _under(process, others, "hostile", each, least)[0]
                else:
                    before = processor(process)
                    found, *numbers = _under(process, enemies, what, each, least)
                    times[what] += found
                    if what == "hostile":
                        used += processor(process) - before
                        sent, refused = sent + numbers[0], refused + numbers[1]
        enemies.send("hostile", turns * each)
        began = time.perf_counter()
        os.kill(process.pid, signal.SIGTERM)
        until(lambda: not process.alive(), "the end of the service under attack")
        stopped = time.perf_counter() - began
    failed = sum(took == inf for found in times.values() for took, _ in found)
    slow, work = (
        {
            what: float(np.quantile([one[place] for one in found], 0.99, method="higher"))
            for what, found in times.items()
        }
        for place in (0, 1)
    )
    figure = (
        f"{refused:,} of {sent:,} bodies of {size / MEGABYTE:g} MB refused, {failed} answers of "
        "/health not ok; p99 of /health "
        f"{slow['hostile']:.1f} ms, under harmless bodies {slow['harmless']:.1f} ms, calm "
        f"{slow['calm']:.1f} ms ({slow['hostile'] / slow['calm']:.1f} times, of "
        f"{len(times['hostile']):,} and {len(times['calm']):,}); {slow['elsewhere']:.1f} ms while "
        f"the same attackers send to another process; in {turns} turns. The event loop's own "
        f"processor until such an answer, p99: {work['hostile']:.2f} ms, calm "
        f"{work['calm']:.2f} ms ({work['hostile'] / work['calm']:.1f} times); "
        f"{1e6 * used / max(sent, 1):.0f} us of processor a body, those of /health among them; "
        f"stopped under attack within {stopped:.1f} s"
    )
    target = "p99 of /health at most 3 times its calm value; SIGTERM works meanwhile"
    held = (refused, failed) == (sent, 0) and stopped < 10
    held &= slow["hostile"] <= 3 * slow["calm"]
    return target, figure, held


def hostile_bodies_and_mutants(quick):
    """The row; at full size, a service that looks into the body first has to fail it with a few
    small bodies already, and one that only reads the body first with some of the large ones.
    """
    target, figure, held = hostile_bodies(quick)
    if quick:
        return target, figure, held
    for few, kind, turns in ((True, "looks first", None), (False, "reads first", 3)):
        _, told, passed = hostile_bodies(few, kind, turns)
        figure, held = f"{figure}. The mutant {kind!r}: {told}", held and not passed
    return target, figure, held


# messages that are not what they seem

CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
PROXY = """proxy_header = "X-Auth-Request-Email"
proxy_addresses = ["127.0.0.1"]
"""


def answers(process, *parts, source="127.0.0.1"):
    """The statuses of all answers on one connection, on which the parts are sent, each after the
    service has read the one before; then one more request, which is the last.
    """
    last = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    told = b""
    with socket.create_connection(("127.0.0.1", process.port), None, (source, 0)) as one:
        with contextlib.suppress(OSError):
            for part in (*parts, last):
                one.sendall(part)
                asyncio.run(_another(process))
        with contextlib.suppress(OSError):
            while piece := one.recv(65536):
                told += piece
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", told)]


async def _another(process, rounds=3):
    """Answers on another connection: what was sent before has been read."""
    client = process.client()
    for _ in range(rounds):
        assert (await client.get("/health/live"))[0] == 200
    client.close()


def odd_messages(process):
    """(what, parts, the statuses that they are answered with) of each message."""
    key = b"Authorization: Bearer " + process.token.encode() + b"\r\n"
    host, plain = b"Host: 127.0.0.1\r\n", b"Content-Type: application/json\r\n"
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    inner = b"GET /v1/keys HTTP/1.1\r\n" + host + key + b"\r\n"
    asked = json.dumps(application("odd")).encode()
    decide = b"POST /v1/decisions HTTP/1.1\r\n" + host + plain
    size = b"Content-Length: %d\r\n\r\n"
    whole = decide + key + upgrade + size % len(asked)
    keys, login = b"GET /v1/keys HTTP/1.1\r\n", b"POST /dashboard/login HTTP/1.1\r\n"
    pieces = [b"%x\r\n" % len(asked), asked[:9], asked[9:], b"\r\n", b"0\r\n", b"\r\n"]
    return [
        ("a wish for h2c, the body in one packet", [whole + asked], [200, 200]),
        ("a wish for h2c, the body later", [whole, asked[:5], asked[5:]], [200, 200]),
        (
            "a wish for h2c, a request as its body",
            [decide + key + upgrade + size % len(inner), inner],
            [400, 200],
        ),
        ("the same without a key", [decide + upgrade + size % len(inner), inner], [401, 200]),
        ("sizes of chunks in packets of their own", [decide + key + CHUNKED, *pieces], [200, 200]),
        ("a key as a trailer", [keys + host + CHUNKED + b"0\r\n" + key + b"\r\n"], [401, 200]),
        (
            "a host as a trailer",
            [b"GET /health/live HTTP/1.1\r\nHost: evil\r\n" + CHUNKED + b"0\r\n" + host + b"\r\n"],
            [421, 200],
        ),
        (
            "an identity as a trailer",
            [
                b"GET /dashboard HTTP/1.1\r\n" + host + CHUNKED,
                b"0\r\nX-Auth-Request-Email: a@b\r\n\r\n",
            ],
            [303, 200],
        ),
        ("two hosts", [keys + host + b"Host: evil\r\n" + key + b"\r\n"], [400]),
        ("no host", [keys + key + b"\r\n"], [400]),
        ("two keys", [keys + host + b"Authorization: Bearer x\r\n" + key + b"\r\n"], [400]),
        ("a tunnel", [b"CONNECT 127.0.0.1:80 HTTP/1.1\r\n" + host + b"\r\n", inner], [400]),
        ("two lengths", [login + host + b"Content-Length: 1\r\n" + size % 2], [400]),
        (
            "17 requests at once, and nonsense",
            [(b"GET /health/live HTTP/1.1\r\n" + host + b"\r\n") * 17 + b"nonsense\r\n\r\n"],
            [*[200] * 17, 400],
        ),
    ]


def forwarded(process):
    """What the log tells of a stranger who names others in headers and trailers."""
    head = b"GET /v1/windows HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: 6.6.6.6, 9.9.9.9\r\n"
    answers(process, head + CHUNKED + b"0\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n", source=ENEMY)

    def failures():
        whole = process.log.read_text().split("\n")[:-1]  # the rest is still being written
        return [line for line in whole if "login_failed" in line]

    lines = until(failures, "the first line of the log about a stranger")
    told = json.loads(lines[0])
    return told["event"], told["client"], told.get("forwarded")


def strange_messages(quick, kind="real"):
    """Upgrades, trailers and headers that come twice, over one connection each."""
    with behind(Process(folder(), kind, more=PROXY + "log_requests = true\n")) as process:
        who, cases = forwarded(process), odd_messages(process)
        wrong = [
            f"{what}: {found}"
            for what, parts, expected in cases
            if (found := answers(process, *parts)) != expected
        ]
        if who != ("login_failed", "127.0.0.1", ENEMY):
            wrong.append(f"an address that the client tells: {who}")
    number = len(cases) + 1
    figure = f"{number - len(wrong)} of {number} answered as they should be" + (
        f"; {'; '.join(wrong)}" if wrong else ""
    )
    target = "one answer to each message; trailers are no headers, and a body is no request"
    return target, figure, not wrong


FLOODS = {
    "trailers": (b"0\r\n", b"a:b\r\n"),
    "long trailers": (b"0\r\n", b"a: " + b"b" * 1000 + b"\r\n"),
    "an extension": (b"1;", b"e" * 1000),
    "a trailer": (b"0\r\na: ", b"b" * 1000),
    "pipelined requests": (
        b"0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ),
}
"""What follows a head without a key, once and then again and again."""


def flood(process, first, part, size):
    """Bytes that somebody sends, of `size`, before the other side ends the connection."""
    head = b"POST /dashboard/login HTTP/1.1\r\nHost: 127.0.0.1\r\n" + CHUNKED
    block, sent = part * (65536 // len(part)), 0
    with socket.create_connection(("127.0.0.1", process.port)) as one:
        try:
            one.sendall(head + first)
            while sent < size and not _ended(one):
                one.sendall(block)
                sent += len(block)
        except OSError:
            return sent
    return sent


def _ended(one):
    """Whether the other side has said its last word; what it said before is thrown away."""
    try:
        return one.recv(MEGABYTE, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False


def floods(quick, kind="real"):
    """Without a key: what surrounds a body and never ends, and heads of many lines. The mutant is
    spared the smallest parts, which would take the memory of the machine.
    """
    size = 32 * MEGABYTE if quick else 80 * MEGABYTE
    spared = ("trailers", "pipelined requests") if kind != "real" else ()
    with behind(Process(folder(), kind)) as process, contextlib.ExitStack() as stack:
        asyncio.run(_another(process))
        before = process.memory()
        sent = {
            what: flood(process, *parts, size)
            for what, parts in FLOODS.items()
            if what not in spared
        }
        for _ in range(50 if quick else 500):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", process.port)))
            with contextlib.suppress(OSError):
                one.sendall(b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * 12_000)
        asyncio.run(_another(process))
        grown = process.memory() - before
    figure = (
        f"of {size // MEGABYTE} MB each were sent before the end: "
        + ", ".join(f"{what} {number / MEGABYTE:.1f} MB" for what, number in sent.items())
        + f"; resident memory grew by {grown:.0f} MB, heads of 12,000 lines among them"
    )
    return "others are served; the service's memory grows by less than 50 MB", figure, grown < 50


# silent and slow connections

ENEMY = "127.0.0.2"
"""Attackers come from there, and others from 127.0.0.1."""
FEW = "max_connections = 60\n"
"""The service takes fewer connections than an attacker of the quick rows opens."""
HALF = b"POST /v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def _connected(process, stack, address, start):
    """A connection from an address, on which something was sent."""
    one = stack.enter_context(socket.socket())
    one.bind((address, 0))
    one.connect(("127.0.0.1", process.port))
    with contextlib.suppress(OSError):
        one.sendall(start)
    one.setblocking(False)
    return one


def _closed(waiting):
    """Take those that were closed out of the selector; how many are left."""
    for key, _ in waiting.select(0):
        with contextlib.suppress(BlockingIOError):
            try:
                gone = key.fileobj.recv(4096) == b""
            except ConnectionError:
                gone = True
            if gone:
                waiting.unregister(key.fileobj)
    return len(waiting.get_map())


def _many_files():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))


async def _others(process, number, name):
    """How many of so many requests are answered, each on a connection of its own."""
    answered = 0
    for i in range(number):
        client = process.client()
        answer = await client.post("/v1/decisions", application(f"{name}{i}"))
        answered += answer is not None and answer[0] == 200
        client.close()
    return answered


def silent_connections(quick, kind="real"):
    """More connections than the service keeps, from another address: in turns they say nothing,
    half a head, or a head without its body.
    """
    target = "all are closed after a few seconds (at most 10); others are served"
    need("nginx")
    number = 90 if quick else 2100
    _many_files()
    starts = (b"", HALF, HALF + b"Content-Length: 100\r\n\r\n")
    with (
        behind(Process(folder(), kind, more=FEW if quick else "")) as process,
        contextlib.ExitStack() as stack,
    ):
        began, waiting = time.monotonic(), selectors.DefaultSelector()
        for i in range(number):
            one = _connected(process, stack, ENEMY, starts[i % 3])
            waiting.register(one, selectors.EVENT_READ)
        during = asyncio.run(_others(process, 30, "during"))
        patience = inf if kind == "real" else 10
        until(
            lambda: not _closed(waiting) or time.monotonic() - began > patience,
            "the end of silent connections",
        )
        left, seconds = len(waiting.get_map()), time.monotonic() - began
        after = asyncio.run(_others(process, 30, "after"))
    figure = (
        f"{number - left:,} of {number:,} closed after {seconds:.1f} s; others meanwhile: "
        f"{during} of 30 answered, afterwards {after} of 30"
    )
    return target, figure, left == 0 and (during, after) == (30, 30) and (quick or seconds <= 10)


async def _another_key(process):
    """A valid key of its own."""
    asked = json.dumps({"scopes": ["decide"], "name": "enemy"}).encode()
    admin = process.client()
    answer = await admin.call("POST", "/v1/keys", asked)
    admin.close()
    return json.loads(answer[1])["token"]


def _drip(connections, stop):
    """A byte on each connection now and then, until `stop` is set."""
    while not stop.wait(1.0):
        for one in connections:
            with contextlib.suppress(OSError):
                one.send(b" ")


def slow_bodies(address):
    """The row of attackers at an address: one valid key, many bodies that come byte by byte."""

    def row(quick, kind="real"):
        target = "others, with a key of their own, are served: 50 of 50, and 10 of 10 probes"
        need("nginx")
        number = 90 if quick else 2000
        _many_files()
        with (
            behind(Process(folder(), kind, more=FEW if quick else "")) as process,
            contextlib.ExitStack() as stack,
        ):
            token = asyncio.run(_another_key(process))
            head = HALF + f"Authorization: Bearer {token}\r\n".encode()
            head += b"Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n{"
            slow = []
            for place in range(number):
                slow.append(_connected(process, stack, address, head))
                # one after another: what comes in together is refused together, and takes nothing
                if quick or place % 20 == 19:
                    asyncio.run(_probes(process, 1))
            stop = threading.Event()
            dripping = threading.Thread(target=_drip, args=(slow, stop))
            dripping.start()
            try:
                served = asyncio.run(_others(process, 50, "other"))
                probes = asyncio.run(_probes(process, 10))
            finally:
                stop.set()
                dripping.join()
        figure = (
            f"{number:,} bodies from {address}, a byte a second each: others {served} of 50, "
            f"probes {probes} of 10"
        )
        return target, figure, (served, probes) == (50, 10)

    return row


async def _probes(process, number):
    """How many probes are answered, each on a connection of its own."""
    answered = 0
    for _ in range(number):
        client = process.client()
        answer = await client.get("/health/live")
        answered += answer is not None and answer[0] == 200
        client.close()
    return answered


# a flood of questions

PLAN = {
    "product": "loan",
    "group_shares": {"a": 0.5, "b": 0.5},
    "bad_rates": {"a": 0.3, "b": 0.4},
    "auc": 0.7,
    "horizon": 200_000,
}


async def _flooded(process, number):
    """(the statuses of those of `number` plans at once that are not simulated, the status and the
    seconds of each request of others); a mutant has 10 s for each.
    """
    asked = json.dumps({"scopes": ["audit"], "name": "auditor"}).encode()
    admin = process.client()
    token = json.loads((await admin.call("POST", "/v1/keys", asked))[1])["token"]
    await admin.post("/v1/decisions", application("accepted"))
    many = [Client(process.port, token) for _ in range(number)]
    plans = [asyncio.create_task(one.post("/v1/plan", PLAN)) for one in many]
    patience = None if process.kind == "real" else 1
    # one is simulated and one waits; the others are answered at once
    for others in asyncio.as_completed(plans, timeout=patience):
        with contextlib.suppress(TimeoutError):
            await others
        if sum(task.done() for task in plans) >= number - 2 or patience:
            break
    refused = [task.result()[0] for task in plans if task.done()]
    told, signed = {}, {"product": "loan", "by": "Ada", "note": "flood"}
    for what, method, path, body in (
        ("ready", "GET", "/health/ready", None),
        ("label", "POST", "/v1/outcomes", {"key": "accepted", "label": 1}),
        ("decide", "POST", "/v1/decisions", application("flood")),
        ("metrics", "GET", "/metrics", None),
        ("kill", "POST", "/v1/kill", signed),
    ):
        began, content = time.perf_counter(), b"" if body is None else json.dumps(body).encode()
        patience, one = None if process.kind == "real" else 10, process.client()
        with contextlib.suppress(TimeoutError):
            answer = None
            answer = await asyncio.wait_for(one.call(method, path, content), patience)
        told[what] = (answer and answer[0], time.perf_counter() - began)
        one.close()
    for task in plans:
        task.cancel()
    await asyncio.gather(*plans, return_exceptions=True)
    for one in (*many, admin):
        one.close()
    return refused, told


def flood_of_plans(quick, kind="real"):
    """A key that may only look asks for many plans at once, each of which takes seconds."""
    number = 12 if quick else 40
    with Process(folder(), kind).running() as process:
        refused, told = asyncio.run(_flooded(process, number))
    figure = (
        f"{refused.count(429)} of {number} plans at once refused with 429; meanwhile "
        + ", ".join(f"{what} {status} after {took:.2f} s" for what, (status, took) in told.items())
    )
    # the label is for a person whom the coin may have rejected
    sound = all(
        status in ((200, 409) if what == "label" else (200,)) for what, (status, _) in told.items()
    )
    quickly = quick or max(took for _, took in told.values()) < 2
    target = "all but two are refused; deciding, labels, probes and the kill switch within 2 s"
    # where the machine is busy, a plan may be done before the last is asked for: its place is free
    done = refused.count(200)
    limited = refused.count(429) + done == len(refused) and done <= (2 if quick else 0)
    return target, figure, sound and quickly and limited and len(refused) >= number - 2


# the OpenAPI document


def openapi(quick, kind="real"):
    """schemathesis plays the document against the service: data that keep it and data that do not,
    and sequences of requests. What is simulated for seconds (POST /v1/plan) is left out.
    """
    with Process(folder(), kind).running() as process:
        words = [
            sys.executable, "-m", "schemathesis.cli",
            "--config-file", str(Path(__file__).parent / "schemathesis.toml"),
            "run", f"http://127.0.0.1:{process.port}/openapi.json",
            "--header", f"Authorization: Bearer {process.token}",
            "--seed", "7", "--max-examples", "3" if quick else "50", "--no-color",
            "--exclude-path", "/v1/plan", "--generation-database", "none",
            "--suppress-health-check", "all",  # those are about the speed of this machine
            "--request-timeout", str(PATIENCE),  # and so is this
            "--phases", "fuzzing,stateful" if quick else "examples,coverage,fuzzing,stateful",
        ]  # fmt: skip
        if quick:
            words += ["--include-path-regex", "head|windows|keys|health|decisions/{key}$|metrics"]
        done = subprocess.run(
            words, cwd=process.folder, capture_output=True, text=True, check=False
        )
    lines = done.stdout.splitlines()
    counted = [line.strip() for line in lines if " generated, " in line]
    failed = [line.strip(" \u274c") for line in lines if "\u274c ST" in line]
    where = [f"at {line.strip('_ ')}" for line in lines if re.fullmatch(r"_+ [A-Z]+ /.* _+", line)]
    figure = "; ".join([*counted, *failed, *where]) or done.stdout[-500:] + done.stderr[-500:]
    return "0 failures, the stateful phase included", figure, done.returncode == 0 and bool(counted)


# settings

IMPOSSIBLE = (
    ("rate", "-1"), ("rate", '"fast"'), ("rate", "inf"), ("burst", "0.5"), ("window_days", "0"),
    ("window_days", "nan"), ("port", "99999"), ("port", '"80"'), ("host", '""'),
    ("allowed_hosts", '"bank.example"'), ("allowed_hosts", '["https://bank.example"]'),
    ("max_body", "7"), ("bytes_per_second", "true"), ("train_every", "-2"),
    ("behind_proxy", '"yes"'), ("ledger", '"mysql://db/x"'),
    ("ledger", '"nowhere/ledger.sqlite"'), ("nonsense", "1"),
)  # fmt: skip


BELIEVING = """
from dataclasses import MISSING, fields
from evenhand_service import server, settings

def believe(self, *values, **given):
    names = [field.name for field in fields(self)]
    for field in fields(self):
        default = None if field.default is MISSING else field.default
        object.__setattr__(self, field.name, default)
    for name, value in {**dict(zip(names, values)), **given}.items():
        object.__setattr__(self, name, value)

settings.Settings.__init__ = believe
server.require_places = lambda settings: None
"""
"""The mutant: it compares no setting with its law, and looks at no file before it starts."""


def impossible_settings(quick, kind="real"):
    """`evenhand serve` with each of them: an error that names it and a way out, and no service."""
    change = "" if kind == "real" else BELIEVING
    command = f"import sys\nfrom evenhand.cli import main\n{change}\nmain(sys.argv[1:])"
    chosen, wrong = (IMPOSSIBLE[::7] if quick else IMPOSSIBLE), []
    for name, value in chosen:
        place = folder()
        path = place / "service.toml"
        text = TOML.format(port=free_port(), train_every=2.0, more="", product="")
        kept = [line for line in text.splitlines() if not line.startswith(f"{name} =")]
        path.write_text("\n".join([kept[0], f"{name} = {value}", *kept[1:]]))
        words = [sys.executable, "-c", command, "serve", "--config", str(path)]
        done = subprocess.run(
            [*words, "--seconds", "0"], capture_output=True, text=True, check=False
        )
        told = done.stderr
        refused = done.returncode != 0 and name in told and "Hint: " in told
        refused &= "Traceback" not in told
        wrong += [] if refused else [f"{name} = {value}"]
    figure = f"{len(chosen) - len(wrong)} of {len(chosen)} refused by name" + (
        f"; accepted or unnamed: {', '.join(wrong)}" if wrong else ""
    )
    return "each is refused at start by name, value, law and way out", figure, not wrong


if __name__ == "__main__":
    {"attack": attack, "elsewhere": elsewhere}[sys.argv[1]](*map(int, sys.argv[2:]))
