"""What the routes of one process share."""

import contextlib
import logging
import os
import socket
import time

from evenhand.ledger import LeaseHeld, Ledger, StalePolicy
from evenhand.ledger.witness import HeadWitnesses, WitnessRules, witness_of
from evenhand.service.dashboard_data import ProductCounts
from evenhand.service.decider import Decider
from evenhand.service.keys import KeyGuard, KeyStore, PeopleOfProxy, RateLimiter, Sessions
from evenhand.service.monitoring import Health, Metrics, RequestLog
from evenhand.service.settings import Product, Settings
from evenhand.service.threads import Threads
from evenhand.service.trainer import Trainer

LOG = logging.getLogger("evenhand.service")


class Service:
    """The decider, the trainers, the counts for the dashboard, the keys and the metrics."""

    def __init__(self, ledger: Ledger, settings: Settings, keys: KeyStore) -> None:
        self.ledger, self.settings, self.keys = ledger, settings, keys
        self.decider = Decider(ledger, settings.products, keys, settings.refresh_limit)
        self.people_of_proxy = PeopleOfProxy(settings)
        self.key_guard = KeyGuard(
            keys,
            RateLimiter(settings.rate, settings.burst),
            RateLimiter(5.0, 50.0),
            self.decider.current,
            self.people_of_proxy.client,
        )
        self.sessions = Sessions(keys, ledger)
        # apart from the pool in which the decider keeps up, so that none of them can take it all:
        # simulating, training when asked to, looking at the past, reports, and the switches
        self.planning = Threads(1, waiting=4, each=2, seconds=10)
        self.training = Threads(1, waiting=4, each=2, seconds=10)
        self.looking = Threads(4, waiting=120, each=60, seconds=1)
        self.reporting = Threads(3, waiting=2000, each=1000, seconds=1)
        self.operating = Threads(2, waiting=60, each=30, seconds=1)
        self.request_log: RequestLog | None = None
        self.health = Health(ledger, self.decider, settings)
        self.metrics = Metrics(self.decider)
        holder = f"{socket.gethostname()}:{os.getpid()}"
        products = self.decider.products.items()
        self.trainers = {names: Trainer(ledger, product, holder) for names, product in products}
        rules = WitnessRules(
            settings.witness_seconds, settings.witness_rows, settings.witness_required_seconds
        )
        self.witnesses = HeadWitnesses(ledger, [witness_of(t) for t in settings.witnesses], rules)
        self.health.witness_lag = self.witnesses.lag
        self.counts = {names: ProductCounts(ledger, product) for names, product in products}

    def begin(self) -> None:
        """Give every product a policy, if its ledger has none yet. Another replica may do so at
        the same time.
        """
        for product in self.settings.products:
            self.decider.constants(product)
            while self.ledger.active(*product.names) is None:
                try:
                    self.trainer(product).begin()
                except (LeaseHeld, StalePolicy):
                    time.sleep(0.1)
        self.decider.keep_up()

    def trainer(self, product: Product) -> Trainer:
        """The trainer of a product."""
        return self.trainers[product.names]

    def release(self) -> None:
        """Before the end: give back the right to train, where the ledger can be reached."""
        for trainer in self.trainers.values():
            with contextlib.suppress(Exception):
                trainer.release()

    def train(self, product: Product) -> None:
        """Close the epoch if it is due, and decide by what was published, here or elsewhere."""
        published = self.trainer(product).close_if_due()
        if published is not None:
            LOG.info("product %s: epoch %d published", product.name, published.epoch)
        self.decider.keep_up()
