"""A small bank behind the API: a clock that is turned by hand, keys of every scope, a population
with one score.
"""

import contextlib
import json

import numpy as np
from service.tests.ledger.helpers import KnownName
from starlette.testclient import TestClient

from evenhand.environments import Scores
from evenhand.environments.scores import ScoreGroup
from evenhand_service import SCOPES, LedgerKeys, Product, Settings, create_app, render
from evenhand_service.keys import RateLimiter
from evenhand_service.ledger import Keyring, Ledger, Terms, WindowPlan

TOML = """[service]
ledger = "ledger.sqlite"
keyring = "keyring.json"

[[product]]
name = "loan"
features = ["score"]
class = "thresholds"
limit = 0.2
maturity_days = 5
seed = 3
"""
DAY = 86400.0
KEYRING = Keyring(bytes(range(32)))
LOAN = Product("loan", ("score",), hypotheses="thresholds", limit=0.2, maturity_days=5, seed=3)
CARD = Product("card", ("score", "income"), limit=0.1)
PEOPLE = Scores(
    {"north": ScoreGroup(0.6, 0.65, 1.4, -1.1), "south": ScoreGroup(0.4, 0.5, 1.2, -1.3)}
)


class Clock:
    """Seconds since the epoch, turned by hand."""

    def __init__(self, now=1_800_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


def settings(**options):
    return Settings(products=(LOAN, CARD), rate=1e6, burst=1e6, train_every=3600.0, **options)


class Bank:
    """The application with a client that may do everything, and tokens for single scopes.

    known: a bank on the same ledger before, whose tokens are taken up.
    """

    def __init__(self, path, clock=None, entropy=None, known=None, **options):
        self.clock = clock or Clock()
        self.ledger = Ledger.open(
            path,
            keyring=KEYRING,
            clock=self.clock,
            windows=WindowPlan(30 * DAY),
            render=render,
            entropy=entropy or KnownName(),
        )
        self.keys = self.new_keys()
        self.app = create_app(self.ledger, settings(**options), self.keys)
        self.service = self.app.app.state.service
        self.service.key_guard.by_address = RateLimiter(1e6, 1e6)
        if known is None:
            self.tokens = {scope: self.keys.add([scope], days=3650) for scope in SCOPES}
            self.all = self.keys.add(SCOPES, days=3650)
        else:
            self.tokens, self.all = known.tokens, known.all
        self._stack = contextlib.ExitStack()
        client = TestClient(self.app, base_url="http://127.0.0.1", raise_server_exceptions=False)
        self.client = self._stack.enter_context(client)

    def new_keys(self):
        return LedgerKeys(self.ledger)

    def close(self):
        self._stack.close()
        self.ledger.close()

    def call(self, method, path, body=None, token=None, **options):
        headers = {
            "Authorization": f"Bearer {token or self.all}",
            "Content-Type": "application/json",
        }
        content = None if body is None else json.dumps(body)
        return self.client.request(method, path, content=content, headers=headers, **options)

    def post(self, path, body, token=None):
        return self.call("POST", path, body, token)

    def get(self, path, token=None):
        return self.call("GET", path, None, token)

    # a population

    def arrive(self, number, seed, *, first=0, days=0.0):
        """People apply in batches; their outcomes are kept until `repay`."""
        sample = PEOPLE.draw(number, np.random.default_rng(seed))
        answers = []
        for start in range(0, number, 500):
            part = range(start, min(start + 500, number))
            asked = [
                application(
                    f"k{first + i}",
                    features=[float(sample.features[i, 0])],
                    group=str(sample.group[i]),
                )
                for i in part
            ]
            answers += self.post("/v1/decisions/batch", {"decisions": asked}).json()["decisions"]
            self.clock.now += days * DAY * len(part) / number
        return sample, answers

    def repay(self, sample, answers):
        told = [
            {"key": answer["key"], "label": int(label)}
            for answer, label in zip(answers, sample.label, strict=True)
            if answer["accept"]
        ]
        for start in range(0, len(told), 1000):
            assert (
                self.post(
                    "/v1/outcomes/batch", {"outcomes": told[start : start + 1000]}
                ).status_code
                == 200
            )


def application(key="k1", *, person=None, product="loan", features=(0.5,), **more):
    return {
        "key": key,
        "person": person or f"p-{key}",
        "product": product,
        "features": list(features),
        **more,
    }


def without_basis(*terms):
    """Terms that rest on nothing: nobody asks whether they still hold."""
    return Terms(*terms[:5])


def ledger_with_settings(folder):
    """A ledger of 120 people, one of them overruled, closed, with its keyring and settings."""
    bank = Bank(folder / "ledger.sqlite")
    bank.repay(*bank.arrive(120, seed=4))
    bank.post("/v1/overrides", {"key": "k0", "accept": False, "by": "officer"})
    bank.close()
    KEYRING.save(folder / "keyring.json")
    (folder / "service.toml").write_text(TOML)
    return folder
