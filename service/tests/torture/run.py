"""The service in a process: real, verbose (it logs everything), cramped (a disk without room),
hasty (a mutant), or dry.

python -m service.tests.torture.run CONFIG KIND LOG        one service
python -m service.tests.torture.run --nursery              one for each line of input, forked
"""

import asyncio
import contextlib
import ctypes
import json
import logging
import os
import re
import resource
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path

import psycopg
from fastapi import FastAPI
from pydantic import BaseModel
from service.tests.ledger.crash import HastyLedger
from service.tests.torture.lenient import MUTANTS
from tests.without_clocks import until

from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand_service import (
    bodies,
    create_app,
    decider,
    load_settings,
    monitoring,
    render,
    request_guard,
    threads,
)
from evenhand_service.keys import LedgerKeys, Sessions
from evenhand_service.ledger import (
    Answer,
    Basis,
    Drawn,
    Ledger,
    LedgerUnavailable,
    NotFound,
    SystemClock,
    Terms,
    WindowPlan,
    chain,
    database,
    decision_draw,
    hard_counts,
    history,
    keyring,
    postgres,
)
from evenhand_service.ledger.guard import HeadGuard
from evenhand_service.ledger.standalone_verifier import uniform
from evenhand_service.opening import mark_of, open_keyring
from evenhand_service.request_guard import RequestGuard
from evenhand_service.server import make_server, run

SECRET = bytes(32)
TURN = "the trainer has had its turn"
READY_WORDS = ("database", "refresh", "certificate", "witness")
"""What /health/ready says of a service whose ledger is in a database elsewhere."""


class DryLedger(Ledger):
    """The same application without any write: the same routes, key check, validation, draw and
    answer; nothing is stored.
    """

    async def decide_async(self, asked):
        return [Answer(render(drawn), drawn) for drawn in (_drawn(a, t) for a, t in asked)]


def _drawn(a, terms):
    u = uniform(SECRET, a.person, a.product, "w1")
    return Drawn(
        1, time.time(), a.key, a.person, a.product, "w1",
        u, terms.acceptance, u < terms.acceptance, terms.policy, terms.epoch,
        terms.audit_weight, u < terms.audit_weight, True, terms.mode,
    )  # fmt: skip


class ObligingLedger(Ledger):
    """The mutant that answers what it could not write."""

    async def decide_async(self, asked):
        try:
            return await super().decide_async(asked)
        except LedgerUnavailable:
            return [Answer(render(drawn), drawn) for drawn in (_drawn(a, t) for a, t in asked)]


class AgreeingLedger(Ledger):
    """The mutant for which an erasure that finds nobody has been done."""

    def erase(self, person, by):
        try:
            return super().erase(person, by)
        except NotFound:
            return 0


class TrustingGuard(HeadGuard):
    """The mutant that extends whatever chain it finds, by whatever clock."""

    def admit(self, head):
        return time.time()

    def remember(self, checked):
        pass


def basis_as_told(connection, guard, found, *, rows=False):
    """What the head says, whoever wrote it, and the rows as they are."""
    return Basis(int(found[2]), int(found[3])), chain.control_digest(connection), True


class TrustingLedger(Ledger):
    guard_class = TrustingGuard


def _told(train):
    """The trainer's turn, and a line in the log when it is over, however it ended."""

    def turn(product):
        try:
            train(product)
        finally:
            print(TURN, flush=True)

    return turn


class ReadsFirst(RequestGuard):
    """A mutant: it reads the whole body and counts its members before it asks for the key."""

    def look(self, body):
        bodies.counted(body)

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["method"] == "POST":
            parts, more = [], True
            while more:
                message = await receive()
                parts.append(message.get("body", b""))
                more = message.get("more_body", False)
            body = b"".join(parts)
            self.look(body)

            async def again():
                return {"type": "http.request", "body": body, "more_body": False}

            await super().__call__(scope, again, send)
        else:
            await super().__call__(scope, receive, send)


class LooksFirst(ReadsFirst):
    """A mutant: it does so by the regular expression that began anew at every quote."""

    strings = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.S)

    def look(self, body):
        self.strings.sub(b"", body)


class PlainAsked(BaseModel):
    """What the plain application takes."""

    key: str
    person: str
    product: str
    features: list[float]
    group: str | None = None


class PlainBatch(BaseModel):
    """Many of them, inserted in one transaction."""

    decisions: list[PlainAsked]


def plain_app(where):
    """FastAPI, pydantic, one INSERT and one COMMIT that waits for the disk: what deciding is
    compared with; of a batch, one `executemany` and one COMMIT. `where` is a path (SQLite) or a URL
    (PostgreSQL).
    """
    if "://" in where:
        connection, mark, begin = psycopg.connect(where, autocommit=True), "%s", "BEGIN"
    else:
        connection = sqlite3.connect(where, isolation_level=None, check_same_thread=False)
        mark, begin = "?", "BEGIN IMMEDIATE"
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("CREATE TABLE IF NOT EXISTS d (key TEXT PRIMARY KEY, body TEXT, accept INT)")
    text = f"INSERT INTO d VALUES ({mark}, {mark}, {mark})"
    app, one = FastAPI(), threading.Lock()

    def insert(many):
        rows = [(asked.key, asked.model_dump_json(), 1) for asked in many]
        with one:
            cursor = connection.cursor()
            cursor.execute(begin)
            cursor.executemany(text, rows)
            cursor.execute("COMMIT")

    @app.post("/v1/decisions")
    async def decide(asked: PlainAsked):
        await asyncio.to_thread(insert, [asked])
        return {"key": asked.key, "accept": True}

    @app.post("/v1/decisions/batch")
    async def decide_many(asked: PlainBatch):
        await asyncio.to_thread(insert, asked.decisions)
        return {"decisions": [{"key": one.key, "accept": True} for one in asked.decisions]}

    return app


def _mutated(running, kind):
    """undocumented: its OpenAPI document does not know what it answers. one pool: all work is done
    in asyncio's own threads.
    """
    if kind == "one pool":

        async def shared(self, who, work, *given, **named):
            return await asyncio.to_thread(work, *given, **named)

        threads.Threads.run = shared
    if kind == "undocumented":
        for operations in running.config.app.app.openapi()["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("404", None)
                operation["responses"].pop("422", None)


def without_basis(*terms):
    """Terms that rest on nothing: nobody asks whether they still hold."""
    return Terms(*terms[:5])


class PausingLedger(Ledger):
    """It stops its own process in the middle of a transaction, with the head in its hand, when
    there is a file `pause` in the working directory.
    """

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        draw = self._drawer.draw

        def pause_and_draw(transaction, asked):
            with contextlib.suppress(FileNotFoundError):
                PAUSE.unlink()
                os.kill(os.getpid(), signal.SIGSTOP)
            return draw(transaction, asked)

        self._drawer.draw = pause_and_draw


class HoldingLedger(Ledger):
    """Its work waits, after the key was checked, while there is a file `hold` in the folder."""

    def _write(self, work, **options):
        hold = PAUSE.with_name("hold")
        if hold.exists():
            PAUSE.with_name("held").touch()
            until(lambda: not hold.exists(), "leave to go on")
        return super()._write(work, **options)


class CheckedOnceLedger(HoldingLedger):
    """The mutant for which a key that was valid once is valid until its work is done."""

    def asked_by(self, sha256, known):
        pass


def _mutated_replica(kind, config):
    """Before the ledger is opened. unaware: it draws on terms that nobody compares. own keys: it
    knows the keys that it has made or was started with. endless: its transactions may be silent.
    own sessions: no other replica knows its sessions. hopeful: it is ready whatever it needs.
    untidy: it leaves what was erased to the server's own cleaning. careless: files are for
    everybody, and a "/" in a key parts the path. told: it believes what the head says of the newest
    switch and key. any row: whatever stands in the tables decides. uncounted: it counts what it has
    drawn itself. unmarked: it does not compare the chain with the mark. endless keys: no key ends.
    unbound: see `_unbind`. waiting: it never asks a silent server.
    """
    global PAUSE
    PAUSE = Path(config).parent / "pause"
    if kind in ("unaware", "own keys"):
        decider.Terms = without_basis
    if kind == "own keys":

        async def as_it_was(self):
            return None

        decider.Decider.current = as_it_was
    if kind == "endless":
        database.TIMEOUTS.clear()
    if kind == "own sessions":
        Sessions._seal = lambda self, parts, root: f"{os.getpid()}-{parts[-1]}"
    if kind == "told":
        chain.sealed_basis = basis_as_told
        HeadGuard.admit_basis = lambda self, basis: basis
    if kind == "waiting":
        database.SILENCE = 1e9
    if kind == "any row":
        chain.followed = lambda connection, known, *end: chain.control_digest(connection)
    if kind == "unbound":
        _unbind()
    if kind == "unmarked":
        Ledger._mark_if_restored = lambda self, transaction, name: None
    if kind == "endless keys":
        LedgerKeys.by_digest = lambda self, digest: self._keys.get(digest)
    if kind == "uncounted":
        hard_counts.follow = lambda *given: None
    if kind == "hopeful":
        monitoring.Health._look = lambda self: dict.fromkeys(READY_WORDS, "ok")
    if kind == "untidy":
        postgres.vacuum = lambda engine: True
    if kind == "careless":
        os.umask(0)
        database._keep_to_its_owner = lambda path: path.touch(0o644)
        request_guard._keep_parts_whole = lambda scope: None


def _unbind():
    """The mutant that opens whatever stands beside a row with whatever key a person has."""
    wrap, unwrap = keyring.Keyring.wrap, keyring.Keyring.unwrap
    new_key = keyring.Keyring.new_key
    keyring.Keyring.new_key = lambda self, entropy, whose: new_key(self, entropy, b"")
    keyring.Keyring.wrap = lambda self, key, entropy, whose: wrap(self, key, entropy, b"")
    keyring.Keyring.unwrap = lambda self, wrapped, whose: unwrap(self, wrapped, b"")
    keyring.require_of_row = history.require_of_row = lambda body, data: None

    def fields(self, ring, body):
        if self.sealed is None:
            return None
        return keyring.open_fields(ring.unwrap(self.wrapped, b""), self.sealed)

    decision_draw.StoredDecision.fields = fields


KINDS = {
    "unbound": Ledger,
    "unaware": Ledger,
    "own keys": Ledger,
    "pausing": PausingLedger,
    "endless": PausingLedger,
    "own sessions": Ledger,
    "told": Ledger,
    "any row": Ledger,
    "waiting": Ledger,
    "holding": HoldingLedger,
    "checked once": CheckedOnceLedger,
    "hopeful": Ledger,
    "untidy": Ledger,
    "unmarked": Ledger,
    "calendar": Ledger,
    "endless keys": Ledger,
    "uncounted": Ledger,
    "careless": Ledger,
    "real": Ledger,
    "looks first": Ledger,
    "reads first": Ledger,
    "one pool": Ledger,
    "unproxied": Ledger,
    "plain": Ledger,
    "undocumented": Ledger,
    "verbose": Ledger,
    "cramped": Ledger,
    "mutant": HastyLedger,
    "dry": DryLedger,
    "trusting": TrustingLedger,
    "forgetful": Ledger,
    "obliging": ObligingLedger,
    "agreeing": AgreeingLedger,
    **dict.fromkeys(MUTANTS, Ledger),
}


CALENDARS = ("calendar", "endless keys")


def _by_calendar(config):
    """A clock that is as many days ahead as the file `calendar` says."""
    calendar = Path(config).parent / "calendar"
    return lambda: time.time() + 86400.0 * float(calendar.read_text() or 0)


def enter_namespace(name):
    """From now on this process has the network of a namespace that `ip netns add` made."""
    with open(f"/run/netns/{name}") as file:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"the namespace {name} cannot be entered")


CLONE_NEWNET = 0x40000000


def main(config, kind, log):
    """Serve until killed; both outputs go to the log."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    if kind == "verbose":
        logging.basicConfig(level=logging.DEBUG)
        for name in ("sqlalchemy", "sqlalchemy.engine", "sqlalchemy.pool"):
            logging.getLogger(name).setLevel(logging.DEBUG)
    (Path(config).parent / "pid").write_text(str(os.getpid()))
    namespace = Path(config).parent / "namespace"
    if namespace.exists():
        enter_namespace(namespace.read_text())
    _mutated_replica(kind, config)
    MUTANTS.get(kind, lambda: None)()
    settings = load_settings(Path(config))
    if kind == "plain":
        (Path(config).parent / "token").write_text("none")
        where = settings.ledger if "://" in settings.ledger else settings.ledger + ".plain"
        run(make_server(plain_app(where), settings))
        return
    where = settings.ledger if kind != "dry" else settings.ledger + ".dry"
    if kind == "forgetful":  # the mutant that takes any database for its own
        postgres.instance = lambda connection: "anywhere"
    ledger = KINDS[kind].open(
        where,
        keyring=open_keyring(settings),
        clock=_by_calendar(config) if kind in CALENDARS else SystemClock(),
        mark=mark_of(settings) if kind != "dry" else None,
        windows=WindowPlan(settings.window_days * 86400.0),
        render=render,
        idle_seconds=settings.idle_transaction_seconds,
    )
    keys = LedgerKeys(ledger)
    fresh = keys.first(by="torture")
    if fresh is not None:
        (Path(config).parent / "token").write_text(fresh)
    app = create_app(ledger, settings, keys, train=kind == "verbose")
    if kind in ("looks first", "reads first"):
        mutant = LooksFirst if kind == "looks first" else ReadsFirst
        app = mutant(app.app, app.service, app.hosts)
    service = app.app.state.service
    service.begin()
    product = settings.products[0]
    published = {policy.epoch for policy in ledger.policies("loan")}
    if max(published) == 1 and kind != "verbose":  # a coin, so that draws matter
        first = service.decider.active(product).policy
        coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5)).to_json()
        issued = ledger.certificates("loan")[-1].document  # what the dashboard looks for
        ledger.publish(
            "loan", coin, epoch=2, parent=first.id, checkpoint={}, certificate=issued,
            info={"guarantee": product.guarantee},
        )  # fmt: skip
        service.decider.refresh(product)
    if kind == "cramped":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    running = make_server(app, settings)
    _mutated(running, kind)
    if kind == "verbose":
        service.train = _told(service.train)
        for name in (
            "uvicorn",
            "uvicorn.error",
            "uvicorn.asgi",
            "asyncio",
            "evenhand",
            "evenhand_service",
        ):
            logging.getLogger(name).setLevel(logging.DEBUG)
    run(running)


def nursery():
    """Fork a service for each line of input, and say its number.

    Children that end are not waited for.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                main(*json.loads(line))
            finally:
                os._exit(1)
        print(child, flush=True)


if __name__ == "__main__":
    nursery() if sys.argv[1:] == ["--nursery"] else main(*sys.argv[1:])
