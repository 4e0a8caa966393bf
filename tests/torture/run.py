"""The service in a process: real, verbose (it logs everything), cramped (a disk without room),
hasty (a mutant), or dry.

python -m tests.torture.run CONFIG KIND LOG        one service
python -m tests.torture.run --nursery              one for each line of input, forked
"""

import json
import logging
import os
import resource
import signal
import sys
import time
from pathlib import Path

from tests.ledger.crash import HastyLedger

from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.ledger import Answer, Drawn, Ledger, WindowPlan
from evenhand.ledger.standalone_verifier import uniform
from evenhand.policies import Mixture
from evenhand.service import create_app, load_settings, render
from evenhand.service.server import make_server, open_keyring, open_keys, run

SECRET = bytes(32)
TURN = "the trainer has had its turn"


class DryLedger(Ledger):
    """The same application without any write: the same routes, key check, validation, draw and
    answer; nothing is stored.
    """

    async def decide_async(self, asked):
        return [Answer(render(drawn), drawn) for drawn in (_drawn(a, t) for a, t in asked)]


def _drawn(a, terms):
    u = uniform(SECRET, a.tenant, a.person, a.product, "w1")
    return Drawn(
        1, time.time(), a.tenant, a.key, a.person, a.product, "w1",
        u, terms.acceptance, u < terms.acceptance, terms.policy, terms.epoch,
        terms.audit_weight, u < terms.audit_weight, True, terms.mode,
    )  # fmt: skip


def _told(train):
    """The trainer's turn, and a line in the log when it is over, however it ended."""

    def turn(product):
        try:
            train(product)
        finally:
            print(TURN, flush=True)

    return turn


KINDS = {
    "real": Ledger,
    "verbose": Ledger,
    "cramped": Ledger,
    "mutant": HastyLedger,
    "dry": DryLedger,
}


def main(config, kind, log):
    """Serve until killed; both outputs go to the log."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    if kind == "verbose":
        logging.basicConfig(level=logging.DEBUG)
        for name in ("sqlalchemy", "sqlalchemy.engine", "sqlalchemy.pool"):
            logging.getLogger(name).setLevel(logging.DEBUG)
    settings = load_settings(Path(config))
    keys, fresh = open_keys(settings)
    if fresh:
        (Path(config).parent / "token").write_text(fresh["bank"])
    where = settings.ledger if kind != "dry" else settings.ledger + ".dry"
    ledger = KINDS[kind].open(
        where,
        keyring=open_keyring(settings),
        clock=time.time,
        windows=WindowPlan(30 * 86400.0),
        render=render,
    )
    app = create_app(ledger, settings, keys, train=kind == "verbose")
    service = app.app.state.service
    service.begin()
    product = settings.products[0]
    if (
        service.decider.active(product).policy.epoch == 1 and kind != "verbose"
    ):  # a coin, so that draws matter
        first = service.decider.active(product).policy
        coin = Mixture((ACCEPT_ALL, REJECT_ALL), (0.5, 0.5)).to_json()
        ledger.publish("bank", "loan", coin, epoch=2, parent=first.id, checkpoint={})
        service.decider.refresh(product)
    if kind == "cramped":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    running = make_server(app, settings)
    if kind == "verbose":
        service.train = _told(service.train)
        for name in (
            "uvicorn",
            "uvicorn.error",
            "uvicorn.asgi",
            "asyncio",
            "evenhand",
            "evenhand.service",
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
