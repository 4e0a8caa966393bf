"""Faults under load: three replicas on PostgreSQL over real sockets are killed, stopped and cut
off, and the database is killed, stopped, starved of connections and of disk. Every request is
recorded, and the recorded history is held against the ledger. Where the machine allows it each
replica has a network namespace of its own, and a partition is a cable that is pulled.

A request begins and ends at a tick of one counter, so that "was acknowledged before the other
began" needs no clock. What was not acknowledged may be in the ledger or not; what was must be.
"""

import asyncio
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from service.tests.ledger import conftest as postgres
from service.tests.ports import free_port
from service.tests.torture.replicas import Replica, ledger_of
from service.tests.torture.serving import application, folder
from tests.tools import find, need
from tests.without_clocks import PATIENCE, until

from evenhand_service.ledger import verify
from evenhand_service.ledger.chain import chain_rows
from evenhand_service.ledger.decision_draw import STORED_DECISIONS, StoredDecision
from evenhand_service.ledger.publishing import active
from evenhand_service.ledger.standalone_verifier import uniform

PEOPLE = 25
"""So few that each of them applies often, at every replica."""
EACH = 2
"""Clients of a replica."""
SLOTS = 40
"""Connections that the database has in all."""

# the history


class Call(NamedTuple):
    """A request: of a key, or (key is None) of a switch, which is found by its note."""

    key: str | None
    note: str | None
    replica: int
    start: int
    end: int
    status: int | None
    body: bytes

    @property
    def acknowledged(self):
        return self.status == 200


class Written(NamedTuple):
    """A decision in the ledger: what the chain says, and the answer as it was stored."""

    seq: int
    key: str
    person: str
    body: dict
    reply: bytes


@dataclass(frozen=True)
class Found:
    """The ledger afterwards; `between` are readings of the database's clock before and after."""

    rows: list
    policies: list
    events: list
    dates: list
    secrets: dict
    between: tuple
    problems: list


def found_in(ledger, between):
    with ledger.store.reader.connect() as connection:
        stored = [StoredDecision(*row) for row in connection.execute(STORED_DECISIONS)]
        dates = [(seq, float(row[1])) for seq, _, row in chain_rows(connection)]
    rows = []
    for one in sorted(stored, key=lambda one: one.seq):
        _, opened = one.opened(ledger.keyring)
        who, reply = opened.fields["who"], opened.fields["reply"]["body"].encode()
        rows.append(Written(one.seq, who["key"], who["person"], json.loads(one.body), reply))
    windows = {row.body["window"] for row in rows}
    return Found(
        rows,
        ledger.policies("loan"),
        ledger.events("loan"),
        dates,
        {name: ledger.keyring.window_secret(ledger.id, name) for name in windows},
        between,
        list(verify(ledger, deep=True).problems),
    )


def person_of(key):
    return f"p{int(key.rsplit('-', 1)[1]) % PEOPLE}"


# the laws: each counts what breaks it


def lost(calls, found):
    """Acknowledged decisions and switches that the ledger does not have."""
    keys, notes = {row.key for row in found.rows}, {event.note for event in found.events}
    told = {(call.key, call.note) for call in calls if call.acknowledged}
    return sum(key not in keys if key else note not in notes for key, note in told)


def doubled(calls, found):
    """Keys and switches with two rows, and rows for which nobody asked."""
    asked = {call.key for call in calls} | {call.note for call in calls}
    names = [row.key for row in found.rows]
    names += [event.note for event in found.events if event.note]
    return len(names) - len(set(names)) + sum(name not in asked for name in set(names))


def changed(calls, found):
    """Answers, the first one or that of a retry, that are not the stored one, byte by byte; and
    stored ones that do not say what the chain says.
    """
    stored = {row.key: row.reply for row in found.rows}
    told = [call for call in calls if call.acknowledged and call.key in stored]
    wrong = sum(call.body != stored[call.key] for call in told)
    for row in found.rows:
        reply = json.loads(row.reply)
        same = all(reply[name] == row.body[name] for name in ("accept", "policy", "mode", "window"))
        wrong += not (same and (reply["row"], reply["key"]) == (row.seq, row.key))
    return wrong


def redrawn(calls, found):
    """Draws that are not the HMAC of the window's secret and (person, product, window) as the
    client named them, and decisions that do not follow from them.
    """
    wrong = 0
    for row in found.rows:
        window = row.body["window"]
        u = uniform(found.secrets[window], person_of(row.key), "loan", window)
        follows = row.body["accept"] == (u < row.body["acceptance"])
        wrong += row.body["u"] != u or row.person != person_of(row.key) or not follows
    return wrong


def not_active(calls, found):
    """Decisions whose policy or mode was not active at their place in the chain."""
    switches = sorted(one.seq for one in (*found.policies, *found.events))
    wrong, place, then = 0, 0, None
    for row in sorted(found.rows):
        while place < len(switches) and switches[place] < row.seq:
            place, then = place + 1, None
        if then is None:
            before = (
                [one for one in part if one.seq < row.seq]
                for part in (found.policies, found.events)
            )
            then = active(*before)
        wrong += (row.body["policy"], row.body["mode"]) != (then.policy.id, then.mode)
    return wrong


def misdated(calls, found):
    """Rows of the chain that are dated before the row in front of them, or outside of what the
    database's own clock said before the first and after the last request.
    """
    times, (first, last) = [at for _, at in sorted(found.dates)], found.between
    backwards = sum(b < a for a, b in itertools.pairwise(times))
    return backwards + sum(not first <= at <= last for at in times)


def out_of_order(calls, found):
    """Decisions and switches that began after another had been acknowledged, and stand before it:
    the chain's order is one in which all could have happened one by one.
    """
    places = {row.key: row.seq for row in found.rows}
    places |= {event.note: event.seq for event in found.events}
    spans = {}
    for call in calls:
        name = call.key or call.note
        start, end = spans.get(name, (call.start, None))
        if call.acknowledged:
            end = call.end if end is None else min(end, call.end)
        spans[name] = (min(start, call.start), end)
    told = [(s, e, places[n]) for n, (s, e) in spans.items() if e is not None and n in places]
    ended, wrong, latest, place = sorted((e, seq) for _, e, seq in told), 0, 0, 0
    for start, _, seq in sorted(told):
        while place < len(ended) and ended[place][0] < start:
            latest, place = max(latest, ended[place][1]), place + 1
        wrong += seq < latest
    return wrong


def unsound(calls, found):
    """What `verify --deep` finds."""
    return len(found.problems)


LAWS = (lost, doubled, changed, redrawn, not_active, misdated, out_of_order, unsound)


def violations(calls, found):
    """{law: how often it is broken}, without those that hold."""
    counted = {law.__name__: law(calls, found) for law in LAWS}
    return {name: number for name, number in counted.items() if number}


# histories and ledgers that somebody has altered: each must be seen by its law


def _one(found, number, **changes):
    """With another row in the place of one."""
    rows = list(found.rows)
    rows[number] = rows[number]._replace(**changes)
    return replace(found, rows=rows)


def _other(found, number, **changes):
    return _one(found, number, body=found.rows[number].body | changes)


def forgeries(calls, found):
    """(law, calls, ledger): one forgery each."""
    half, rows = len(found.rows) // 2, found.rows
    row, told = rows[half], {call.key for call in calls if call.acknowledged}
    kept = next(i for i, one in enumerate(rows) if one.key in told)
    answer = next(i for i, call in enumerate(calls) if call.acknowledged and call.key)
    altered = list(calls)
    altered[answer] = calls[answer]._replace(body=calls[answer].body.replace(b'"row":', b'"row":1'))
    policies = [one.id for one in found.policies if one.id != row.body["policy"]]
    mode = "live" if row.body["mode"] != "live" else "shadow"
    swapped = [(seq, at) for (seq, _), (_, at) in zip(found.dates, found.dates[::-1], strict=True)]
    first, last = rows[0], rows[-1]
    turned = [first._replace(seq=last.seq), *rows[1:-1], last._replace(seq=first.seq)]
    switch = next(c.note for c in calls if c.note and c.acknowledged)
    fewer = [event for event in found.events if event.note != switch]
    return [
        ("lost", calls, replace(found, rows=[*rows[:kept], *rows[kept + 1 :]])),
        ("lost", calls, replace(found, events=fewer)),
        ("doubled", calls, replace(found, rows=[*rows, row._replace(seq=last.seq + 1)])),
        ("doubled", calls, _one(found, half, key="nobody-1")),
        ("changed", altered, found),
        ("redrawn", calls, _other(found, half, u=(row.body["u"] + 0.5) % 1.0)),
        ("redrawn", calls, _one(found, half, person="somebody else")),
        ("not_active", calls, _other(found, half, policy=policies[-1])),
        ("not_active", calls, _other(found, half, mode=mode)),
        ("misdated", calls, replace(found, dates=swapped)),
        ("out_of_order", calls, replace(found, rows=turned)),
        ("unsound", calls, replace(found, problems=[*found.problems, "a problem"])),
    ]


# the database


class Server:
    """A PostgreSQL with few connections, on a small disk of its own where one can be mounted."""

    def __init__(self):
        self.home = Path(tempfile.mkdtemp(prefix="evenhand-pg-", dir="/tmp"))
        self.tools, self.run = postgres.tools(), postgres._runner(self.home)
        self.port, self.disk = free_port(), self.home / "disk"
        self.disk.mkdir()
        self.disk.chmod(0o777)
        mount = find("mount")
        self.small = os.geteuid() == 0 and mount is not None
        if self.small:
            words = [mount, "-t", "tmpfs", "-o", "size=256m,mode=1777", "none", str(self.disk)]
            made = subprocess.run(words, check=False, capture_output=True)
            self.small = made.returncode == 0

    def ctl(self, *words):
        self.run(self.tools / "pg_ctl", "-D", self.disk / "data", "-w", "-t", "300", *words)

    def create(self):
        words = ("-U", "evenhand", "-A", "trust", "-N", "--wal-segsize=1")
        self.run(self.tools / "initdb", "-D", self.disk / "data", *words)
        with (self.disk / "data" / "pg_hba.conf").open("a") as file:
            file.write(f"host all all {NETWORK}.0.0/16 trust\n")
        self.start()

    def start(self):
        settings = (
            f"-c listen_addresses=* -c unix_socket_directories={self.home} -p {self.port} "
            f"-c max_connections={SLOTS} -c min_wal_size=4MB -c max_wal_size=16MB"
        )
        self.ctl("-o", settings, "-l", self.home / "log", "start")

    def stop(self):
        self.ctl("-m", "immediate", "stop")

    def kill(self):
        """kill -9 of its first process; the others notice, and go when they are done."""
        pid = int((self.disk / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the postmaster")

    def start_again(self):
        """After a kill: as soon as nobody holds its memory any more."""

        def started():
            with contextlib.suppress(subprocess.CalledProcessError):
                self.start()
                return True

        until(started, "a new start of the database")

    def ensure(self):
        """It may have given up by itself."""
        try:
            self.ctl("status")
        except subprocess.CalledProcessError:
            self.start()

    def url(self, name, host="127.0.0.1", port=None):
        return f"postgresql://evenhand@{host}:{port or self.port}/{name}"

    def ask(self, name, statement):
        import psycopg

        with psycopg.connect(self.url(name), autocommit=True) as connection:
            found = connection.execute(statement)
            return found.fetchone()[0] if found.description else None

    def hold_all(self, name):
        """Take every connection that there is, and end all the others."""
        import psycopg

        end = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
            "backend_type = 'client backend' AND application_name <> 'greedy'"
        )
        held = []
        url = self.url(name) + "?application_name=greedy"
        while len(held) < SLOTS:
            with contextlib.suppress(psycopg.OperationalError):
                held.append(psycopg.connect(url, autocommit=True))
            if held:
                held[0].execute(end)
        return held

    def fill(self):
        """Not a byte is left on its disk."""
        with (self.disk / "filler").open("wb", buffering=0) as file:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass

    def empty(self):
        (self.disk / "filler").unlink(missing_ok=True)
        self.ensure()

    def remove(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop()
        if self.small:
            subprocess.run(["umount", "-l", str(self.disk)], check=False, capture_output=True)
        shutil.rmtree(self.home, ignore_errors=True)


class Way:
    """The way from one replica to the database, by a proxy: when it is cut, nothing is refused and
    nothing comes through, and afterwards all of it does. For machines without namespaces.
    """

    host = to_database = "127.0.0.1"
    namespace, settings = None, ""

    def __init__(self, port):
        self.to, self.clear = port, asyncio.Event()
        self.clear.set()

    async def open(self):
        self.listening = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self.listening.sockets[0].getsockname()[1]
        return self

    async def cut(self):
        self.clear.clear()

    async def mend(self):
        self.clear.set()

    async def close(self):
        self.clear.set()
        self.listening.close()

    async def _carry(self, reader, writer):
        await self.clear.wait()
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.close()
            return
        with contextlib.suppress(asyncio.CancelledError):  # the end of the trial
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader, writer):
        with contextlib.suppress(OSError):
            while part := await reader.read(65536):
                await self.clear.wait()
                writer.write(part)
                await writer.drain()
        writer.close()


NETWORK = "198.18"
"""Addresses that are set aside for such trials (RFC 2544)."""


class Cable:
    """A namespace of a replica, with two cables: one to its clients and one to the database, which
    can be pulled. What is on its way is lost, and neither side is told.
    """

    numbers = itertools.count()

    def __init__(self, port, ip):
        number, self.port, self.ip = next(self.numbers), port, ip
        name = f"eh{os.getpid()}x{number}"
        self.namespace, self.ends = name, (f"{name}a", f"{name}b")
        net = f"{NETWORK}.{os.getpid() % 256}"
        first = 8 * (number % 32)
        self.host, self.to_database = f"{net}.{first + 2}", f"{net}.{first + 5}"
        self.settings = f'host = "{self.host}"\nbehind_proxy = true'
        inside = (ip, "-n", name)
        self.made = [(ip, "netns", "add", name), (*inside, "link", "set", "dev", "lo", "up")]
        for end, low in zip(self.ends, (first + 1, first + 5), strict=True):
            self.made += [
                (ip, "link", "add", end, "type", "veth", "peer", "name", end[-1], "netns", name),
                (ip, "addr", "add", f"{net}.{low}/30", "dev", end),
                (*inside, "addr", "add", f"{net}.{low + 1}/30", "dev", end[-1]),
                (*inside, "link", "set", "dev", end[-1], "up"),
                (ip, "link", "set", "dev", end, "up"),
            ]

    async def open(self):
        for words in self.made:
            await asyncio.to_thread(_run, *words)
        return self

    async def cut(self):
        await asyncio.to_thread(_run, self.ip, "link", "set", "dev", self.ends[1], "down")

    async def mend(self):
        await asyncio.to_thread(_run, self.ip, "link", "set", "dev", self.ends[1], "up")

    async def close(self):
        for end in self.ends:
            subprocess.run([self.ip, "link", "del", end], check=False, capture_output=True)
        subprocess.run([self.ip, "netns", "del", self.namespace], check=False, capture_output=True)


def _run(*words):
    subprocess.run(words, check=True, capture_output=True)


async def ways_to(port):
    """Three ways to the database: cables where the machine lets us have namespaces."""
    made, ip = [], find("ip")
    try:
        for _ in range(3 if ip is not None else 0):
            made.append(Cable(port, ip))
            await made[-1].open()
    except (OSError, subprocess.CalledProcessError):  # no right to use it
        for one in made:
            await one.close()
        made = []
    return made or [await Way(port).open() for _ in range(3)]


# the load


@dataclass
class Load:
    """Clients of three replicas, and an operator; `calls` is what they have seen."""

    replicas: list
    chosen: random.Random
    spared: int | None = None
    """A replica that the operator does not use."""
    calls: list = field(default_factory=list)
    seen: Counter = field(default_factory=Counter)
    """(client, whether it was acknowledged): how many."""
    unknown: list = field(default_factory=list)
    ticks: "itertools.count" = field(default_factory=itertools.count)
    done: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, client, replica, path, body, name):
        """One request, recorded; `name` is (key, note)."""
        start = next(self.ticks)
        answer = await client.post(path, body)
        status, content = answer or (None, b"")
        self.calls.append(Call(*name, replica, start, next(self.ticks), status, content))
        return status == 200

    async def ask(self, number):
        """New keys; now and then one that was not answered, or was: perhaps elsewhere."""
        place, told = number % len(self.replicas), []
        client = self.replicas[place].client()
        for i in itertools.count():
            if self.done:
                break
            key = f"{number}-{i}"
            if i % 3 == 2 and self.unknown:
                key = self.unknown.pop(0)
            elif i % 7 == 6 and told:
                key = self.chosen.choice(told)
            good = await self.send(
                client, place, "/v1/decisions", application(key, person_of(key)), (key, None)
            )
            self.seen[number, good] += 1
            self.news.set()
            (told if good else self.unknown).append(key)
            if not good:
                client.close()
                await asyncio.sleep(0.02)
                client = self.replicas[place].client()
        client.close()

    async def operate(self, every=12):
        """Another switch whenever so many have been answered."""
        for number, action in enumerate(itertools.cycle(("kill", "revive", "shadow", "live"))):
            goal = self.answered() + every
            await self.until(lambda goal=goal: self.done or self.answered() >= goal)
            if self.done:
                break
            usable = [i for i in range(len(self.replicas)) if i != self.spared]
            place, note = self.chosen.choice(usable), f"switch {number}"
            client, body = self.replicas[place].client(), {"product": "loan", "note": note}
            await self.send(client, place, f"/v1/{action}", body, (None, note))
            client.close()

    def answered(self):
        return sum(number for (_, good), number in self.seen.items() if good)

    def refused(self):
        return sum(number for (_, good), number in self.seen.items() if not good)

    async def until(self, happened):
        while not happened():
            self.news.clear()
            await self.news.wait()

    async def more(self, number, replicas, *, good=True):
        """Until each client of these replicas has had so many more answers."""
        clients = [
            n for n in range(EACH * len(self.replicas)) if n % len(self.replicas) in replicas
        ]

        def had(client):
            return self.seen[client, True] + (0 if good else self.seen[client, False])

        goal = {client: had(client) + number for client in clients}
        await asyncio.wait_for(
            self.until(lambda: all(had(client) >= goal[client] for client in clients)), PATIENCE
        )

    async def refusals(self, number):
        """Until so many were refused, and everybody has had an answer of either kind since."""
        goal = self.refused() + number
        await asyncio.wait_for(self.until(lambda: self.refused() >= goal), PATIENCE)
        await self.more(2, {0, 1, 2}, good=False)

    async def ask_again(self):
        """Every key once more, anywhere."""
        keys = sorted({call.key for call in self.calls if call.key})

        async def some(place):
            replica = place % len(self.replicas)
            client = self.replicas[replica].client()
            for key in keys[place :: 2 * len(self.replicas)]:
                body = application(key, person_of(key))
                await self.send(client, replica, "/v1/decisions", body, (key, None))
            client.close()

        before = len(self.calls)
        await asyncio.gather(*(some(place) for place in range(2 * len(self.replicas))))
        return sum(not call.acknowledged for call in self.calls[before:])


# the faults


@dataclass
class Arena:
    server: Server
    name: str
    ways: list
    replicas: list
    load: Load

    def others(self, who):
        return {place for place in range(3) if place != who}

    async def killed(self, who):
        """kill -9, and a new start."""
        self.replicas[who].kill()
        await self.load.more(2, self.others(who))
        await asyncio.to_thread(self.replicas[who].start)

    async def stopped(self, who):
        """SIGSTOP; what it held is taken from it, and it is continued."""
        os.kill(self.replicas[who].pid, signal.SIGSTOP)
        try:
            await self.load.more(2, self.others(who))
        finally:
            os.kill(self.replicas[who].pid, signal.SIGCONT)

    async def cut_off(self, who):
        """A partition: the way of one replica to the database."""
        await self.ways[who].cut()
        try:
            await self.load.more(4, self.others(who))
        finally:
            await self.ways[who].mend()
        await self.load.more(12, {who})  # meanwhile the operator goes once around

    async def database_stopped(self, who):
        await asyncio.to_thread(self.server.stop)
        await self.load.refusals(3)
        await asyncio.to_thread(self.server.start)

    async def postmaster_killed(self, who):
        """kill -9 of the database's first process."""
        await asyncio.to_thread(self.server.kill)
        await self.load.refusals(3)
        await asyncio.to_thread(self.server.start_again)

    async def backend_killed(self, who):
        """kill -9 of a process of the database that serves a replica: it ends all, and recovers."""
        newest = (
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND "
            "pid <> pg_backend_pid() ORDER BY state_change DESC LIMIT 1"
        )
        pid = await asyncio.to_thread(self.server.ask, self.name, newest)
        os.kill(pid, signal.SIGKILL)
        await self.load.more(2, self.others(who))

    async def no_connections(self, who):
        held = await asyncio.to_thread(self.server.hold_all, self.name)
        await self.load.refusals(3)
        for connection in held:
            connection.close()

    async def no_disk(self, who):
        await asyncio.to_thread(self.server.fill)
        await self.load.refusals(3)
        await asyncio.to_thread(self.server.empty)

    async def clock_ahead(self, who):
        """The clock of one replica is 400 days ahead for a while."""
        replica = self.replicas[who]
        for under in ([find("faketime"), "-f", "+400d"], []):
            replica.kill()
            replica.under = under
            await asyncio.to_thread(replica.start)
            await self.load.more(2, {who})


FAULTS = {
    "kill -9": Arena.killed,
    "SIGSTOP": Arena.stopped,
    "partition": Arena.cut_off,
    "kill -9 of a backend": Arena.backend_killed,
    "kill -9 of the postmaster": Arena.postmaster_killed,
    "stop -m immediate": Arena.database_stopped,
    "no connections": Arena.no_connections,
    "no disk": Arena.no_disk,
    "clock ahead": Arena.clock_ahead,
}
OF_ONE = ("kill -9", "SIGSTOP", "partition")
"""Faults of one replica, which each of them has in its turn."""
MUTANTS = {
    "kill -9": "mutant",
    "SIGSTOP": "mutant",
    "kill -9 of a backend": "mutant",
    "partition": "unaware",
    "kill -9 of the postmaster": "obliging",
    "stop -m immediate": "obliging",
    "no connections": "obliging",
    "no disk": "obliging",
    "clock ahead": "trusting",
}
"""The service that must fall under it: the last of the three. It answers before the commit, draws
on terms that nobody compares, answers what it could not write, or believes its own clock."""


@contextlib.asynccontextmanager
async def arena(server, name, kind, seed):
    await asyncio.to_thread(server.ask, "postgres", f"CREATE DATABASE {name}")
    ways, shared, replicas = await ways_to(server.port), folder(), []
    for way, one in zip(ways, ("real", "real", kind), strict=True):
        url = server.url(name, way.to_database, way.port)
        replicas.append(Replica(shared, url, one, way.settings))
        replicas[-1].host = way.host
        if way.namespace is not None:
            (replicas[-1].folder / "namespace").write_text(way.namespace)
    try:
        for replica in replicas:
            await asyncio.to_thread(replica.start)
        spared = None if kind == "real" else 2
        yield Arena(server, name, ways, replicas, Load(replicas, random.Random(seed), spared))
    finally:
        for replica in replicas:
            if replica.pid is not None:
                replica.kill()
        for way in ways:
            await way.close()


async def _history(server, name, kind, faults, seed):
    """(calls, what the ledger holds, requests that were refused when all was over, what was cut in
    a partition).
    """
    clock = "SELECT extract(epoch FROM clock_timestamp())::float8"
    first = await asyncio.to_thread(server.ask, "postgres", clock)
    async with arena(server, name, kind, seed) as made:
        load, everybody = made.load, {0, 1, 2} if kind == "real" else {2}
        tasks = [asyncio.create_task(load.ask(number)) for number in range(3 * EACH)]
        tasks.append(asyncio.create_task(load.operate()))
        for fault, who in faults:
            await load.more(3, everybody)
            await FAULTS[fault](made, who)
        if kind == "real":
            await load.more(3, everybody)
        load.done = True
        load.news.set()
        if kind != "real":
            made.replicas[2].kill()
        await asyncio.gather(*tasks)
        late = await load.ask_again() if kind == "real" else 0
        last = await asyncio.to_thread(server.ask, "postgres", clock)
        with ledger_of(made.replicas, server.url(name)) as ledger:
            found = await asyncio.to_thread(found_in, ledger, (first, last))
            return load.calls, found, late, type(made.ways[0]).__name__.lower()


def _absent(server):
    """{fault: why it cannot be made here}."""
    return {
        **({} if server.small else {"no disk": "no small disk can be mounted"}),
        **({"clock ahead": "no faketime"} if find("faketime") is None else {}),
    }


def _program(quick, skipped):
    """((fault, replica), ...) for the service as it is; and the faults whose mutants are tried."""
    if quick:
        tried = [f for f in FAULTS if f != "clock ahead" and f not in skipped]
        return [(fault, n % 3) for n, fault in enumerate(tried)], ["kill -9"]
    rounds = [(fault, who) for who in range(3) for fault in FAULTS] * 2
    rounds += [(fault, who) for who in range(3) for fault in OF_ONE] * 2
    random.Random(14).shuffle(rounds)
    return [one for one in rounds if one[0] not in skipped], [
        f for f in MUTANTS if f not in skipped
    ]


def chaos(quick):
    target = "every acknowledged request once, unchanged, in order; forgeries and mutants are seen"
    need("postgresql")
    server = Server()
    try:
        server.create()
        skipped = _absent(server)
        faults, mutants = _program(quick, skipped)
        calls, found, late, cut = asyncio.run(_history(server, "real", "real", faults, 1))
        wrong = violations(calls, found)
        forged = forgeries(calls, found)
        seen = sum(law in violations(*rest) for law, *rest in forged)
        fell = {}
        for number, fault in enumerate(mutants):
            alone = _history(server, f"mutant_{number}", MUTANTS[fault], [(fault, 2)], number)
            fell[fault] = violations(*asyncio.run(alone)[:2])
    finally:
        server.remove()
    told = Counter(fault for fault, _ in faults)
    figure = (
        f"{_numbers(calls)}; {len(faults)} faults ({_shown(told)}; partitions by "
        f"{'namespaces' if cut == 'cable' else 'a proxy'}): "
        f"{sum(wrong.values())} violations{_shown(wrong, ' ')}, {late} refused afterwards; "
        f"{seen} of {len(forged)} forgeries seen; mutants: "
        + "; ".join(
            f"{fault}, {MUTANTS[fault]}: {_shown(f) or 'NOTHING'}" for fault, f in fell.items()
        )
        + "".join(f"; {fault} was skipped: {why}" for fault, why in skipped.items())
    )
    held = not wrong and late == 0 and seen == len(forged) and all(fell.values())
    return target, figure, held


def _numbers(calls):
    asked = [call for call in calls if call.key]
    told = [call for call in asked if call.acknowledged]
    keys, switches = {call.key for call in told}, [c for c in calls if c.note and c.acknowledged]
    return (
        f"{len(keys):,} decisions acknowledged {len(told):,} times in {len(asked):,} requests, "
        f"{len(switches)} switches"
    )


def _shown(counted, before=""):
    return before + ", ".join(f"{name} {n}" for name, n in counted.items()) if counted else ""
