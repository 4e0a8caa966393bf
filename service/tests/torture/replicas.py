"""Three replicas on PostgreSQL over real sockets: what one of them acknowledges holds on all, none
stops the others, and they may begin at the same time.
"""

import asyncio
import contextlib
import hashlib
import itertools
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from service.tests.ports import free_port
from service.tests.torture.policies import database
from service.tests.torture.proxy import nginx
from service.tests.torture.serving import (
    ROOT,
    TOML,
    Client,
    Process,
    application,
    folder,
)
from sqlalchemy import select
from tests.tools import need
from tests.without_clocks import until

from evenhand_service.ledger import Keyring, Ledger, SystemClock, WindowPlan, postgres, verify
from evenhand_service.ledger.database import DECISIONS, IDLE_SECONDS
from evenhand_service.ledger.publishing import active

MORE = """ledger = "{url}"
keyring = "{keyring}"
refresh_limit = 10000.0
{settings}
"""
"""They look at the ledger once an hour, so that only what is compared in a transaction helps."""


class Replica(Process):
    """One of several services; the first that is started makes the key."""

    def __init__(self, shared, url, kind="real", settings="", product=""):
        keyring = shared / "keyring.json"
        more = MORE.format(url=url, keyring=keyring, settings=settings)
        super().__init__(folder(), kind, train_every=3600.0, more=more, product=product)
        self.shared = shared

    def start(self):
        super().start()
        made = self.folder / "token"
        if made.exists():
            (self.shared / "token").write_text(made.read_text())
        return self

    @property
    def token(self):
        return (self.shared / "token").read_text()


@contextlib.contextmanager
def three(url, kind="real", settings="", product=""):
    """Three replicas; the last one is of another kind, perhaps."""
    shared = folder()
    with contextlib.ExitStack() as stack:
        kinds = ("real", "real", kind)
        made = [Replica(shared, url, one, settings, product) for one in kinds]
        yield [stack.enter_context(replica.running()) for replica in made]


@contextlib.contextmanager
def ledger_of(replicas, url):
    keyring = Keyring.load(replicas[0].shared / "keyring.json")
    with Ledger.open(
        url, keyring=keyring, clock=SystemClock(), windows=WindowPlan(30 * 86400.0)
    ) as ledger:
        yield ledger


def and_mutant(row, kind):
    """A row that holds for the service, and does not for a mutant of it."""

    def both(quick):
        found = []
        for one in ("real", kind):
            with database() as url:
                found.append(row(quick, url, one))
        (target, figure, held), (_, wrong, mutant) = found
        return target, f"{figure}; a mutant ({kind}): {wrong}", held and not mutant

    return both


# what is active


async def _switch_under_load(replicas, url, cycles):
    """How many were answered. The next switch comes when every client has had two answers after the
    last one; in each cycle the database ends all connections once.
    """
    answered, done = [0] * 6, asyncio.Event()

    async def ask(number):
        client = replicas[number % 3].client()
        i = 0
        while not done.is_set():
            found = await client.post("/v1/decisions", application(f"{number}-{i}"))
            if found is not None and found[0] == 200:
                answered[number] += 1
                i += 1
        client.close()

    async def progress():
        before = list(answered)
        while not all(now >= then + 2 for now, then in zip(answered, before, strict=True)):
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(ask(number)) for number in range(6)]
    operators = [replica.client() for replica in replicas]
    for number in range(cycles):
        for action in ("kill", "revive", "shadow", "live"):
            who = operators[(number + len(action)) % 3]
            found = await who.post(f"/v1/{action}", {"product": "loan", "note": "torture"})
            if found is not None and found[0] == 200:
                await progress()
        _end_all_connections(url)
        await progress()
    done.set()
    await asyncio.gather(*tasks)
    return sum(answered)


def _end_all_connections(url):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def _not_active(ledger):
    """(decisions, those whose policy or mode was not active when they were written, switches)."""
    policies, events = ledger.policies("loan"), ledger.events("loan")
    with ledger.store.reader.connect() as connection:
        rows = connection.execute(
            select(DECISIONS.c.seq, DECISIONS.c.body).order_by(DECISIONS.c.seq)
        ).all()
    wrong = 0
    for seq, text in rows:
        body = json.loads(text)
        then = active([p for p in policies if p.seq < seq], [e for e in events if e.seq < seq])
        wrong += (body["policy"], body["mode"]) != (then.policy.id, then.mode)
    return len(rows), wrong, len(events)


def switches(quick, url, kind):
    target = "0 decisions under a policy or mode that is not active when they are written"
    with three(url, kind) as replicas:
        answered = asyncio.run(_switch_under_load(replicas, url, 1 if quick else 12))
        with ledger_of(replicas, url) as ledger:
            written, wrong, number = _not_active(ledger)
            sound = verify(ledger, deep=True).ok
    figure = f"{written:,} decisions, {number} switches: {wrong} not active"
    return target, figure, wrong == 0 and sound and written >= answered


async def _hidden(replicas, url):
    """(switches, decisions in another mode than the acknowledged one, revoked keys that opened): a
    switch or a revocation is acknowledged by the first replica, and before the last one has heard
    of it somebody with the database's role moves the head's mark back.
    """
    import psycopg

    operator, other, thrown, hidden, opened = replicas[0].client(), replicas[2].client(), 0, 0, 0
    with psycopg.connect(url, autocommit=True) as intruder:
        for number, (action, mode) in enumerate(
            (("kill", "killed"), ("revive", "live"), ("shadow", "shadow"), ("live", "live"))
        ):
            await other.post("/v1/decisions", application(f"before-{number}"))
            before = intruder.execute("SELECT switched FROM head").fetchone()[0]
            told = await operator.post(f"/v1/{action}", {"product": "loan", "note": "torture"})
            if told[0] != 200:  # what was hidden from the mutant has stopped the others
                continue
            thrown += 1
            intruder.execute("UPDATE head SET switched = %s", [before])
            answer = await other.post("/v1/decisions", application(f"after-{number}"))
            hidden += answer[0] == 200 and json.loads(answer[1])["mode"] != mode
        made = await operator.post("/v1/keys", {"scopes": ["decide", "audit"], "name": "stolen"})
        if made[0] != 201:
            return thrown, hidden, opened
        token = json.loads(made[1])["token"]
        thief = Client(replicas[2].port, token)
        assert (await thief.get("/v1/windows"))[0] == 200
        before = intruder.execute('SELECT "keys" FROM head').fetchone()[0]
        path = f"/v1/keys/{hashlib.sha256(token.encode()).hexdigest()[:12]}"
        assert (await operator.call("DELETE", path, b""))[0] == 200
        intruder.execute('UPDATE head SET "keys" = %s', [before])
        for answer in (
            await thief.get("/v1/windows"),
            await thief.post("/v1/decisions", application("stolen")),
        ):
            opened += answer[0] == 200
    for client in (operator, other, thief):
        client.close()
    return thrown, hidden, opened


def moved_marks(quick, url, kind):
    target = "0 switches hidden, 0 revoked keys open"
    with three(url, kind) as replicas:
        thrown, hidden, opened = asyncio.run(_hidden(replicas, url))
        with ledger_of(replicas, url) as ledger:
            sound = verify(ledger, deep=True).ok
    figure = (
        f"{hidden} of {thrown} switches hidden, a revoked key opened {opened} of 2 entry points"
    )
    return target, figure, (thrown, hidden, opened) == (4, 0, 0) and sound


async def _added(replicas, url, seq):
    """(decisions in another mode than the acknowledged one, refusals, /health/ready that is 503): a
    product is killed, and somebody with a role that can only append adds a row that revives it.
    """
    import psycopg

    operator, other, alive, refused, ready = replicas[0].client(), replicas[2].client(), 0, 0, 0
    assert (await other.post("/v1/decisions", application("before")))[0] == 200
    assert (await operator.post("/v1/kill", {"product": "loan", "note": "torture"}))[0] == 200
    assert (await other.post("/v1/decisions", application("killed")))[0] == 200
    with psycopg.connect(url.replace("evenhand@", "appender@"), autocommit=True) as intruder:
        intruder.execute(
            "INSERT INTO events (seq, at, product, action, body, hash) SELECT "
            f"{seq}, at, product, 'revive', replace(body, '\"kill\"', '\"revive\"'), hash "
            "FROM events WHERE action = 'kill'"
        )
    for number, replica in enumerate((*reversed(replicas), *replicas)):
        client = replica.client()
        answer = await client.post("/v1/decisions", application(f"after-{number}"))
        alive += answer[0] == 200 and json.loads(answer[1])["mode"] != "killed"
        refused += answer[0] == 503
        ready += (await client.get("/health/ready"))[0] == 503
        client.close()
    operator.close()
    other.close()
    return alive, refused, ready


def added_rows(quick, url, kind):
    target = "0 decisions by a row that nobody with the keyring wrote; all replicas stop and say so"
    import psycopg

    told, held = [], True
    server, name = url.rpartition("/")[0], url.rpartition("/")[2]
    for where, seq in (
        ("beyond the head", "900000000"),
        ("below it", "(SELECT max(seq) FROM decisions)"),
    ):
        place = f"{name}_{where[:3]}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {place}")
            if not connection.execute(
                "SELECT 1 FROM pg_roles WHERE rolname = 'appender'"
            ).fetchone():
                connection.execute("CREATE ROLE appender LOGIN")
        with three(f"{server}/{place}", kind) as replicas:
            postgres.grant(f"{server}/{place}", "appender")
            alive, refused, ready = asyncio.run(_added(replicas, f"{server}/{place}", seq))
            said = sum(
                "does not stand in" in r.log.read_text() or "others than" in r.log.read_text()
                for r in replicas
            )
        held &= (alive, refused, said) == (0, 6, 3) and ready >= 3
        told.append(f"{where}: {alive} of 6 revived, {refused} refused, {said} of 3 logs say why")
    return target, "; ".join(told), held


# keys


async def _waited(replicas, number):
    """The status of what a key asked for that was revoked between its check and the work."""
    operator, place = replicas[0].client(), replicas[2].folder
    made = {"scopes": ["admin", "audit"], "name": "n"}
    token = json.loads((await operator.post("/v1/keys", made))[1])["token"]
    thief = Client(replicas[2].port, token)
    assert (await thief.get("/v1/windows"))[0] == 200
    (place / "hold").touch()
    asked = asyncio.create_task(thief.post("/v1/keys", made | {"name": f"backdoor {number}"}))
    await asyncio.to_thread(until, (place / "held").exists, "work that has passed the check")
    path = f"/v1/keys/{hashlib.sha256(token.encode()).hexdigest()[:12]}"
    assert (await operator.call("DELETE", path, b""))[0] == 200
    (place / "hold").unlink()
    found = await asked
    (place / "held").unlink()
    operator.close()
    thief.close()
    return found[0]


def revoked_on_the_way(quick, url, kind):
    target = "401 for what a key asked for that was revoked before it was done"
    number = 3 if quick else 20
    with three(url, "holding" if kind == "real" else kind) as replicas:
        found = [asyncio.run(_waited(replicas, i)) for i in range(number)]
        with ledger_of(replicas, url) as ledger:
            made = sum(e.info["name"].startswith("backdoor") for e in ledger.key_events())
    figure = f"{found.count(401)} of {number} refused, {made} keys made by a revoked key"
    return target, figure, found == [401] * number and made == 0


async def _race_for_keys(replicas, workers, turns):
    """(tokens that must open, times that a revoked key opened, times that a new one did not)."""
    kept, opened, unknown = [], 0, 0

    async def opens(token, number, later=(503, 429)):
        """Whether it opens; somebody who is told to try again later does so. An address that has
        sent many revoked keys is such a one, so a 429 says that a revoked key did not open.
        """
        client, found = Client(replicas[number % 3].port, token), []
        for method, path, body in (
            ("GET", "/v1/windows", b""),
            ("POST", "/v1/decisions", json.dumps(application(f"key-{number % 3}")).encode()),
        ):
            answer = (503, b"")
            while answer is None or answer[0] in later:
                answer = await client.call(method, path, body)
            if answer[0] not in (200, 401, 429):
                raise AssertionError(f"{method} {path} was answered by {answer}")
            found.append(answer[0] == 200)
        client.close()
        return tuple(found)

    async def work(number):
        nonlocal opened, unknown
        operators = [replica.client() for replica in replicas]
        for turn in range(turns):
            made = {"scopes": ["decide", "audit"], "name": f"{number}-{turn}"}
            tokens = []
            for _ in range(2):
                answer = await operators[(number + turn) % 3].post("/v1/keys", made)
                tokens.append(json.loads(answer[1])["token"])
            kept.append(tokens[0])
            for place in range(3):
                unknown += (await opens(tokens[1], place)) != (True, True)
            path = f"/v1/keys/{hashlib.sha256(tokens[1].encode()).hexdigest()[:12]}"
            gone = await operators[(number + turn + 1) % 3].call("DELETE", path, b"")
            for place in range(3) if gone[0] == 200 else ():
                opened += sum(await opens(tokens[1], place, later=(503,)))
        for client in operators:
            client.close()

    await asyncio.gather(*(work(number) for number in range(workers)))
    for token in kept:
        for place in range(3):
            unknown += (await opens(token, place)) != (True, True)
    return len(kept), opened, unknown


def keys_race(quick, url, kind):
    target = "0 revoked keys open, 0 new keys are lost; every key event is a row of the chain"
    workers, turns = (3, 2) if quick else (6, 10)
    with three(url, kind) as replicas:
        kept, opened, unknown = asyncio.run(_race_for_keys(replicas, workers, turns))
        with ledger_of(replicas, url) as ledger:
            events = [event.action for event in ledger.key_events()]
            sound = verify(ledger).ok
    number = workers * turns
    counted = (events.count("key_created"), events.count("key_revoked"))
    figure = (
        f"{2 * number} keys made and {number} revoked at once on three replicas: "
        f"{opened} opened after it, {unknown} lost"
    )
    held = (opened, unknown, kept) == (0, 0, number) and counted == (2 * number + 1, number)
    return target, figure, held and sound


# a pause


def _stopped(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


def _held_for_long(url):
    """Whether somebody has been silent in a transaction for three seconds of the database."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        silent = "state = 'idle in transaction' AND now() - state_change > interval '3 s'"
        found = connection.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {silent}")
        return found.fetchone()[0] > 0


async def _pause(replicas, url, number):
    """(seconds until another replica has answered, or None if it cannot; whether the key of the
    paused one was answered once).
    """
    paused, client, other = replicas[2], replicas[2].client(), replicas[number % 2].client()
    body = application(f"paused-{number}")
    (paused.folder / "pause").touch()
    held = asyncio.create_task(client.post("/v1/decisions", body))
    await asyncio.to_thread(until, lambda: _stopped(paused.pid), "the pause")
    began = time.monotonic()
    asked = asyncio.create_task(other.post("/v1/decisions", application(f"other-{number}")))
    while not asked.done() and not await asyncio.to_thread(_held_for_long, url):
        await asyncio.sleep(0)
    went_on = asked.done() and asked.result()[0] == 200 and _stopped(paused.pid)
    seconds = time.monotonic() - began if went_on else None
    os.kill(paused.pid, signal.SIGCONT)
    await asked
    answer, again = await held, await other.post("/v1/decisions", body)
    once = answer is not None and answer == again and answer[0] == 200
    client.close()
    other.close()
    return seconds, once


def paused(quick, url, kind):
    target = "the others go on within 2 s; what the paused one held is answered once"
    times = 2 if quick else 8
    with three(url, "pausing" if kind == "real" else kind) as replicas:
        found = [asyncio.run(_pause(replicas, url, number)) for number in range(times)]
        with ledger_of(replicas, url) as ledger:
            written, sound = ledger.counts("loan").decisions, verify(ledger).ok
    went_on, once = [s for s, _ in found if s is not None], sum(one for _, one in found)
    figure = f"{len(went_on)} of {times} pauses: the others went on"
    if went_on:
        figure += f" after {max(went_on):.1f} s at most, {once} keys answered once"
    in_time = quick or all(seconds <= 2.0 for seconds in went_on)
    held = len(went_on) == once == times and written == 2 * times and in_time
    return target, figure, held and sound


REPEATED = "proxy_read_timeout 5s;"
"""What bounds a silence, in the shipped nginx.conf."""
SLOW = [(REPEATED, "proxy_read_timeout 60s;")]
"""The mutant: nginx waits for a decision as long as for a training."""


async def _silence(replicas, port, clients, seconds):
    """(answers, longest seconds without an answer to anybody, longest seconds of one request,
    {key: bytes of the answer}): one replica stops in the midst of a transaction and goes on after
    so many seconds.
    """
    paused, token = replicas[-1], replicas[0].token
    answers, waits, done, came = {}, [], asyncio.Event(), [time.monotonic()]

    async def ask(number):
        client = Client(port, token)
        i = 0
        while not done.is_set():
            key = f"{number}-{i}"
            began = time.monotonic()
            found = await client.post("/v1/decisions", application(key))
            if found is not None and found[0] == 200:
                now = time.monotonic()
                came.append(now)
                waits.append(now - began)
                answers[key] = found[1]
                i += 1
            elif not done.is_set():
                await asyncio.sleep(0.05)  # 502, 503, 504: as a client does
        client.close()

    tasks = [asyncio.create_task(ask(number)) for number in range(clients)]
    while len(answers) < 2 * clients:
        await asyncio.sleep(0.01)
    (paused.folder / "pause").touch()
    await asyncio.to_thread(until, lambda: _stopped(paused.pid), "the pause")
    await asyncio.sleep(seconds)
    still = _stopped(paused.pid)
    os.kill(paused.pid, signal.SIGCONT)
    done.set()
    await asyncio.gather(*tasks)
    came.sort()
    gaps = [after - before for before, after in itertools.pairwise(came)]
    return still, max(gaps), max(waits), answers


def silent_replica(quick, url, kind):
    """Clients ask two replicas through nginx, and one of them is stopped in a transaction; with the
    timeouts that are shipped.
    """
    target = "no silence of more than 5 s for all clients together; every answer stays as it was"
    need("nginx")
    clients, seconds = (8, 12.0) if quick else (24, 60.0)
    settings = f"idle_transaction_seconds = {IDLE_SECONDS}"
    shared = folder()
    with contextlib.ExitStack() as stack:
        made = [Replica(shared, url, one, settings) for one in ("real", "pausing")]
        replicas = [stack.enter_context(replica.running()) for replica in made]
        change = SLOW if kind != "real" else ()
        port = stack.enter_context(nginx(*(r.port for r in replicas), change=change))
        still, silence, wait, answers = asyncio.run(_silence(replicas, port, clients, seconds))
        changed = asyncio.run(_changed(replicas, answers))
        with ledger_of(replicas, url) as ledger:
            sound = verify(ledger).ok and ledger.counts("loan").decisions >= len(answers)
    figure = (
        f"{len(answers):,} answers, longest silence {silence:.1f} s, longest request {wait:.1f} s, "
        f"{changed} changed"
    )
    return target, figure, still and silence <= 5.0 and changed == 0 and sound


async def _changed(replicas, answers):
    """How many answers another replica gives otherwise."""
    wrong = 0
    for place, (key, body) in enumerate(answers.items()):
        client = replicas[place % 2].client()
        found = await client.post("/v1/decisions", application(key))
        wrong += found is None or found != (200, body)
        client.close()
    return wrong


# a server that stands still


@contextlib.contextmanager
def frozen(url):
    """PostgreSQL with all its processes stopped, its sockets open: a paused machine."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        (data,) = connection.execute("SHOW data_directory").fetchone()
    server = int((Path(data) / "postmaster.pid").read_text().split()[0])
    os.kill(server, signal.SIGSTOP)  # first, so that it begins no new process
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    for pid in map(int, children):
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in (server, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


QUESTIONS = (
    ("POST", "/v1/decisions", application("frozen")),
    ("POST", "/v1/outcomes", {"key": "before", "label": 1}),
    ("POST", "/v1/kill", {"product": "loan", "note": "torture"}),
    ("GET", "/v1/decisions/before", None),
)
MOST_FROZEN = 15.0
"""Seconds after which the server goes on."""


async def _asked_while_frozen(replica, url):
    """The seconds until each question was answered by 503 (None: not while the server stood), and
    whether the decision was made once.
    """
    clients = [replica.client() for _ in QUESTIONS]
    assert (await clients[0].post("/v1/decisions", application("before")))[0] == 200

    async def ask(client, method, path, body):
        began = time.monotonic()
        answer = await client.call(method, path, b"" if body is None else json.dumps(body).encode())
        return answer is not None and answer[0] == 503, time.monotonic() - began

    with frozen(url):
        asked = [asyncio.create_task(ask(c, *q)) for c, q in zip(clients, QUESTIONS, strict=True)]
        done, _ = await asyncio.wait(asked, timeout=MOST_FROZEN)
        told = [one.result()[1] if one in done and one.result()[0] else None for one in asked]
    await asyncio.gather(*asked)
    again = (503, b"")
    while again is None or again[0] == 503:
        again = await clients[0].post("/v1/decisions", QUESTIONS[0][2])
    once = again == await clients[0].post("/v1/decisions", QUESTIONS[0][2])
    for client in clients:
        client.close()
    return told, once and again[0] == 200


def frozen_server(quick, url, kind):
    target = "503 within 10 s for whatever is asked of a server that stands still; then one answer"
    with three(url, kind) as replicas:
        told, once = asyncio.run(_asked_while_frozen(replicas[2], url))
        with ledger_of(replicas, url) as ledger:
            sound = verify(ledger).ok and ledger.counts("loan").decisions == 2
    seconds = [one for one in told if one is not None]
    figure = f"{len(seconds)} of {len(told)} answered"
    figure += f", after {max(seconds):.1f} s at most" if seconds else " while it stood"
    held = len(seconds) == len(told) and once and sound
    return target, figure, held and max(seconds) <= 10.0


# first starts

COMMAND = "import sys; from evenhand.cli import main; {change}; main(sys.argv[1:])"
EAGER = (
    "from evenhand_service.keys import LedgerKeys as K; "
    "K.first = lambda self, by: self.add(['admin'], 'first', by); K.__len__ = lambda self: 0"
)
"""The mutant: every replica makes a first key, without asking whether there is one."""


def first_starts(quick, url, kind):
    target = (
        "one ledger and one key, in a file of mode 0600, which opens all; an unreachable database "
        "and a busy port cost none"
    )
    change, place, ports = "pass" if kind == "real" else EAGER, folder(), []
    words = [sys.executable, "-c", COMMAND.format(change=change), "serve", "--no-train", "--config"]

    def start(where, number, port=None):
        port = port or free_port()
        more = MORE.format(url=where, keyring=place / "keyring.json", settings="")
        config = place / f"service-{number}.toml"
        config.write_text(TOML.format(port=port, train_every=3600.0, more=more, product=""))
        log = (place / f"log-{number}").open("w")
        ports.append(port)
        return subprocess.Popen([*words, str(config)], cwd=ROOT, stdout=log, stderr=log)

    away = start("postgresql://evenhand@127.0.0.1:1/none", "away").wait()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = start(url, "busy", taken.getsockname()[1]).wait()
    ports.clear()
    running = [start(url, number) for number in range(3)]
    try:
        until(
            lambda: (
                (all(_listens(port) for port in ports) and (place / "first-key").exists())
                or any(p.poll() for p in running)
            ),
            "the start of three replicas",
        )
        said = [(place / f"log-{number}").read_text() for number in range(3)]
        printed = sum(text.count("eh_") for text in said)
        tokens = [(place / "first-key").read_text().strip()]
        mode = stat.S_IMODE((place / "first-key").stat().st_mode)
        alive = sum(process.poll() is None for process in running)
        opened = sum(_opens(port, token) for port in ports for token in tokens)
    finally:
        for process in running:
            process.kill()
            process.wait()
    with Ledger.open(
        url, keyring=Keyring.load(place / "keyring.json"), clock=SystemClock()
    ) as ledger:
        actions = [event.action for event in ledger.events()]
        begun, keys = actions.count("genesis"), actions.count("key_created")
        sound = verify(ledger).ok
    figure = (
        f"{alive} of 3 replicas run, {begun} ledger, {keys} keys made, {printed} printed, "
        f"{opened} of 3 opened, mode {mode:04o}; unreachable: exit {away}; busy port: exit {busy}"
    )
    held = (alive, begun, keys, printed, opened, mode) == (3, 1, 1, 0, 3, 0o600)
    held = held and away == busy == 2
    return target, figure, held and sound


def _listens(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _opens(port, token):
    async def look():
        client = Client(port, token)
        found = await client.get("/v1/keys")
        client.close()
        return found is not None and found[0] == 200

    return _listens(port) and asyncio.run(look())


# who did it, and sessions


async def _session(replicas):
    """How many replicas believe a session of the first one: while it lasts, and after its end."""
    form = f"key={replicas[0].token}".encode()
    begun = await _page(replicas[0].port, "POST", "/dashboard/login", form)
    cookie = next(
        line.split(": ", 1)[1].split(";")[0]
        for line in begun.split("\r\n")
        if line.lower().startswith("set-cookie")
    )

    async def believed():
        # nobody's decision is not found; whoever is not logged in is sent to the form
        path = "/dashboard/decision?key=nobody"
        pages = [await _page(r.port, "GET", path, b"", cookie) for r in replicas]
        return sum(" 404 " in page.split("\r\n", 1)[0] for page in pages)

    during = await believed()
    await _page(replicas[1].port, "POST", "/dashboard/logout", b"", cookie)
    return during, await believed()


async def _page(port, method, path, content, cookie=""):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nCookie: {cookie}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    writer.write(head.encode() + content)
    page = (await reader.read()).decode(errors="replace")
    writer.close()
    return page


async def _shadowed(replica):
    client = replica.client()
    await client.post("/v1/shadow", {"product": "loan", "by": "the boss", "note": "why"})
    client.close()


def sessions(quick, url, kind):
    target = "by is the key's name; a session holds on all replicas, and ends on all"
    with three(url, kind) as replicas, ledger_of(replicas, url) as ledger:
        asyncio.run(_shadowed(replicas[0]))
        during, after = asyncio.run(_session(replicas))
        by = {event.by for event in ledger.events("loan") if event.action == "shadow"}
    figure = f"by {sorted(by)}, a session on {during} of 3, after its end on {after}"
    return target, figure, (during, after, by) == (3, 0, {"first"})


# a signal to stop


async def _asked_through(port, token, name, number, halfway):
    """The statuses of so many requests one after another; None where the connection broke."""
    client, told = Client(port, token), []
    for i in range(number):
        answer = await client.post("/v1/decisions", application(f"{name}-{i}"))
        told.append(answer and answer[0])
        if i == number // 3:
            halfway.release()
    client.close()
    return told


async def _stopped_under_load(replica, port, clients, number):
    """The statuses that clients of nginx got while one replica was told to stop."""
    halfway = asyncio.Semaphore(0)
    asking = [
        asyncio.create_task(_asked_through(port, replica.token, f"c{i}", number, halfway))
        for i in range(clients)
    ]
    for _ in asking:
        await halfway.acquire()
    os.kill(replica.pid, signal.SIGTERM)
    return [status for told in await asyncio.gather(*asking) for status in told]


ONCE = [("proxy_next_upstream error timeout non_idempotent;", "proxy_next_upstream off;")]
"""The mutant: nginx asks one replica, and no other."""


def drain(quick, url, kind):
    """Clients ask three replicas through nginx, and one of them is told to stop."""
    target = "every request is answered 200"
    need("nginx")
    clients, number = (10, 30) if quick else (30, 200)
    with (
        three(url) as replicas,
        nginx(*(r.port for r in replicas), change=ONCE if kind != "real" else ()) as port,
    ):
        told = asyncio.run(_stopped_under_load(replicas[0], port, clients, number))
        until(lambda: not replicas[0].alive(), "the end of the replica")
    wrong = Counter(status for status in told if status != 200)
    figure = f"{len(told) - wrong.total():,} of {len(told):,} answered 200, others: {dict(wrong)}"
    return target, figure, not wrong
