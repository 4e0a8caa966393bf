"""The edge of the service, over real sockets: hostile bodies without a key, silent connections, and
a signal to stop under load. Each has a mutant of the service (tests/torture/run.py) that fails it.
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
import time
from math import inf
from pathlib import Path

import numpy as np
from tests.torture.serving import (
    ROOT,
    TOML,
    Process,
    application,
    folder,
    free_port,
    processor,
)
from tests.without_clocks import until

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
                refused += one.recv(12)[9:12] in (b"401", b"429")
        print(refused, flush=True)


class Attackers:
    """Attackers in processes of their own, which are ready before anything is measured."""

    def __init__(self, port, size, workers=4):
        words = [sys.executable, "-m", "tests.torture.edge", "attack", str(port), str(size)]
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
    words = [sys.executable, "-m", "tests.torture.edge", "elsewhere"]
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
        Process(folder(), kind).running() as process,
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


# silent connections


def _open(port, number):
    """Connections that say nothing, half a head, or a head without its body, in turns."""
    half = b"POST /v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    starts = (b"", half, half + b"Content-Length: 100\r\n\r\n")
    made = []
    for i in range(number):
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(starts[i % 3])
        one.setblocking(False)
        made.append(one)
    return made


def _closed(waiting):
    """Take those that the service has closed out of the selector; how many are left."""
    for key, _ in waiting.select(0):
        with contextlib.suppress(BlockingIOError):
            try:
                gone = key.fileobj.recv(4096) == b""
            except ConnectionError:
                gone = True
            if gone:
                waiting.unregister(key.fileobj)
    return len(waiting.get_map())


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
    """More connections than the service keeps, none of which says a whole word."""
    number = 90 if quick else 2100
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with Process(folder(), kind).running() as process, contextlib.ExitStack() as stack:
        began = time.monotonic()
        silent = [stack.enter_context(one) for one in _open(process.port, number)]
        waiting = selectors.DefaultSelector()
        for one in silent:
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
    target = "all are closed after a few seconds (at most 10); others are served"
    return target, figure, left == 0 and (during, after) == (30, 30) and (quick or seconds <= 10)


# a signal to stop


async def _until_goodbye(process, name, asking, stopping, rests=False):
    """(answers, requests without one): one after another on a kept connection, until an answer says
    that it was the last, or nobody listens any more. Who rests asks once, and again when somebody
    else has been told goodbye.
    """
    answers = 0
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
    except ConnectionRefusedError:
        return 0, 0  # nothing was asked, so nothing was lost
    while True:
        body = json.dumps(application(f"{name}-{answers}")).encode()
        head = (
            f"POST /v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
            f"Authorization: Bearer {process.token}\r\nContent-Type: application/json\r\n\r\n"
        )
        try:
            writer.write(head.encode() + body)
            told = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(told.split(b"content-length: ")[1].split(b"\r\n")[0]))
        except (OSError, asyncio.IncompleteReadError):
            return answers, 1
        answers += told.startswith(b"http/1.1 200")
        if answers == (1 if rests else 5):
            asking.release()
        if b"connection: close" in told:
            stopping.set()
            writer.close()
            return answers, 0
        if rests:
            await stopping.wait()


async def _stopped_under_load(process, clients):
    asking, stopping = asyncio.Semaphore(0), asyncio.Event()
    tasks = [
        asyncio.create_task(_until_goodbye(process, f"c{i}", asking, stopping, rests=i % 3 == 0))
        for i in range(clients)
    ]
    for _ in tasks:
        await asking.acquire()
    os.kill(process.pid, signal.SIGTERM)
    newcomers = [
        asyncio.create_task(_until_goodbye(process, f"n{i}", asking, stopping)) for i in range(5)
    ]
    return await asyncio.gather(*tasks, *newcomers)


def drain(quick, kind="real"):
    """Of 30 clients 20 ask without a pause while the service is told to stop, and 10 ask again
    after that; three times over.
    """
    lives, answered, lost = (1 if quick else 3), 0, 0
    for _ in range(lives):
        with Process(folder(), kind).running() as process:
            found = asyncio.run(_stopped_under_load(process, 30))
            until(lambda p=process: not p.alive(), "the end of the service")
        answered += sum(answers for answers, _ in found)
        lost += sum(one for _, one in found)
    figure = f"{lives} stops under 30 clients and 5 newcomers: {answered:,} answered, {lost} reset"
    return "0 requests reset", figure, lost == 0 and answered > 60 * lives


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
    ("tls_certificate", '"nowhere.pem"'), ("tls_key", '"nowhere.pem"'),
    ("allowed_hosts", '"bank.example"'), ("allowed_hosts", '["https://bank.example"]'),
    ("max_body", "7"), ("max_depth", "true"), ("train_every", "-2"), ("plain_http", '"yes"'),
    ("ledger", '"mysql://db/x"'), ("ledger", '"nowhere/ledger.sqlite"'), ("nonsense", "1"),
)  # fmt: skip


BELIEVING = """
from dataclasses import MISSING, fields
from evenhand.service import server, settings

def believe(self, *values, **given):
    names = [field.name for field in fields(self)]
    for field in fields(self):
        default = None if field.default is MISSING else field.default
        object.__setattr__(self, field.name, default)
    for name, value in {**dict(zip(names, values)), **given}.items():
        object.__setattr__(self, name, value)

settings.Settings.__init__ = believe
server.require_tls_files = server.require_places = lambda settings: None
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
        text = TOML.format(port=free_port(), train_every=2.0, more="")
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
