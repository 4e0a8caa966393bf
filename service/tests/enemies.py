"""A service behind real HTTP (uvicorn on loopback), and people who know every coin, label and group
and choose their reports by them.

The population is as simple as it can be: a score of 0 or 1. The only rule worth learning accepts
the score 1, and what every published policy really does to the two groups is computed exactly,
without simulating anything.
"""

import contextlib
import http.client
import json
import random
import threading
from dataclasses import dataclass

import numpy as np
from service.tests.bank import DAY, KEYRING, Clock
from service.tests.ports import free_port
from tests.without_clocks import until

from evenhand.hypotheses.serialise import policy_from_json
from evenhand_service import SCOPES, LedgerKeys, Product, Settings, create_app, render
from evenhand_service.ledger import Ledger, WindowPlan
from evenhand_service.server import make_server


@dataclass(frozen=True)
class World:
    """north, south: P(score 1 | group), half of the people are of each; good: P(good outcome |
    score 0 or 1).
    """

    north: float = 0.60
    south: float = 0.30
    good: tuple[float, float] = (0.2, 0.9)

    def gap(self, document, rate="selection"):
        """The gap that a policy really has."""
        chance = policy_from_json(document).acceptance([[0.0], [1.0]])
        counted = np.ones(2) if rate == "selection" else 1.0 - np.array(self.good)
        found = []
        for share in (self.north, self.south):
            weight = np.array([1 - share, share]) * counted
            found.append(float(chance @ weight / weight.sum()))
        return abs(found[0] - found[1])


CLEAR = World()
"""The rule has a selection gap of .30."""
MIXED = World(good=(0.2, 0.6))
"""The rule has a gap of .25 in the false positive rate."""


def product(**changed):
    """A limit of .1. A false accept is expensive, so rejecting all is the better constant."""
    chosen = {
        "rates": ("selection",),
        "limit": 0.1,
        "groups": ("north", "south"),
        "seed": 11,
        "price_false_accept": 2.0,
    }
    return Product("loan", ("score",), hypotheses="thresholds", **{**chosen, **changed})


class Served:
    """The application on a port, in a thread; `post` and `get` speak HTTP/1.1 over one kept
    connection.
    """

    def __init__(self, where, chosen, *, seed=0, world=CLEAR):
        self.product, self.world, self.clock = chosen, world, Clock()
        plan, entropy = WindowPlan(3000 * DAY), random.Random(seed).randbytes
        self.ledger = Ledger.open(
            where, keyring=KEYRING, clock=self.clock, windows=plan, render=render, entropy=entropy
        )
        keys = LedgerKeys(self.ledger)
        settings = Settings(
            products=(chosen,),
            port=free_port(),
            rate=1e9,
            burst=1e9,
            train_every=3600.0,
            log_requests=False,
        )
        self.app = create_app(self.ledger, settings, keys)
        self.service, self.token = self.app.app.state.service, keys.add(SCOPES, days=3650)
        self.server, self.generator, self.number = (
            make_server(self.app, settings),
            np.random.default_rng(seed),
            0,
        )
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        until(lambda: self.server.started, "the start of uvicorn")
        self.connection = http.client.HTTPConnection("127.0.0.1", settings.port)

    def close(self):
        self.connection.close()
        self.server.should_exit = True
        self.thread.join()
        self.ledger.close()

    def call(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def post(self, path, body, *, expect=200):
        status, found = self.call("POST", path, body)
        assert status == expect, found
        return found

    def get(self, path):
        status, found = self.call("GET", path)
        assert status == 200, found
        return found

    # honest people

    def arrive(self, number, *, report_group=True):
        """(key, score, group, label, whether accepted) of each."""
        people = []
        for start in range(0, number, 1000):
            asked, facts = [], []
            for _ in range(min(1000, number - start)):
                group = "north" if self.generator.random() < 0.5 else "south"
                score = int(self.generator.random() < getattr(self.world, group))
                label = 1 if self.generator.random() < self.world.good[score] else -1
                key = f"k{self.number}"
                self.number += 1
                body = {"key": key, "person": f"p-{key}", "product": "loan", "features": [score]}
                asked.append({**body, "group": group} if report_group else body)
                facts.append((key, score, group, label))
            answers = self.post("/v1/decisions/batch", {"decisions": asked})["decisions"]
            people += [
                (*fact, answer["accept"]) for fact, answer in zip(facts, answers, strict=True)
            ]
        return people

    def repay(self, people):
        told = [{"key": key, "label": label} for key, _, _, label, accept in people if accept]
        for start in range(0, len(told), 1000):
            self.post("/v1/outcomes/batch", {"outcomes": told[start : start + 1000]})

    def train(self):
        """POST /v1/train; the published policy."""
        self.clock.now += 3600.0
        found = self.post("/v1/train", {"product": "loan", "by": "enemy"})
        return next(p for p in reversed(self.lineage) if p.epoch == found["epoch"])

    @property
    def lineage(self):
        return [p for p in self.ledger.policies("loan") if p.in_lineage]

    @property
    def worst(self):
        """The largest true gap of all policies that were ever published."""
        return max(self.world.gap(p.document, self.product.rates[0]) for p in self.lineage)

    def certificates(self):
        return [row.document for row in self.ledger.certificates("loan")]


@contextlib.contextmanager
def served(where, chosen, **options):
    made = Served(where, chosen, **options)
    try:
        yield made
    finally:
        made.close()
