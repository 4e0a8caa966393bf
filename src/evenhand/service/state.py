"""What the routes of one process share, and who may call them."""

import logging
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from evenhand.ledger import Ledger
from evenhand.service.dashboard_data import ProductCounts
from evenhand.service.decider import Decider
from evenhand.service.keys import Key, KeyGuard, KeyStore, RateLimiter, Scope, Sessions
from evenhand.service.metrics import Metrics
from evenhand.service.settings import Product, Settings
from evenhand.service.trainer import Trainer

LOG = logging.getLogger("evenhand.service")


class Service:
    """The decider, the trainers, the counts for the dashboard, the keys and the metrics."""

    def __init__(self, ledger: Ledger, settings: Settings, keys: KeyStore) -> None:
        self.ledger, self.settings, self.keys = ledger, settings, keys
        self.key_guard = KeyGuard(
            keys, RateLimiter(settings.rate, settings.burst), RateLimiter(5.0, 50.0)
        )
        self.sessions = Sessions(keys)
        self.decider = Decider(ledger, settings.products)
        self.metrics = Metrics(self.decider)
        holder = f"{socket.gethostname()}:{os.getpid()}"
        products = self.decider.products.items()
        self.trainers = {names: Trainer(ledger, product, holder) for names, product in products}
        self.counts = {names: ProductCounts(ledger, product) for names, product in products}

    def begin(self) -> None:
        """Give every product a policy, if its ledger has none yet."""
        for product in self.settings.products:
            self.decider.constants(product)
            if self.ledger.active(product.tenant, product.name) is None:
                self.trainer(product).begin()
            self.decider.refresh(product)

    def trainer(self, product: Product) -> Trainer:
        """The trainer of a product."""
        return self.trainers[product.tenant, product.name]

    def train(self, product: Product) -> None:
        """Close the epoch if it is due, and decide by what was published, here or elsewhere."""
        published = self.trainer(product).close_if_due()
        if published is not None:
            LOG.info("product %s: epoch %d published", product.name, published.epoch)
        self.decider.refresh(product)


@dataclass(frozen=True)
class Caller:
    """Somebody with a valid key, and the service that answers."""

    service: Service
    key: Key
    tenant: str


def _with_scope(scope: Scope) -> Callable[[Request], Awaitable[Caller]]:
    # a coroutine, because FastAPI sends plain functions through a pool of threads
    async def caller(request: Request) -> Caller:
        service: Service = request.app.state.service
        key = service.key_guard.require(request, scope)
        return Caller(service, key, key.tenant)

    return caller


MayDecide = Annotated[Caller, Depends(_with_scope("decide"))]
MayObserve = Annotated[Caller, Depends(_with_scope("observe"))]
MayAudit = Annotated[Caller, Depends(_with_scope("audit"))]
MayAdmin = Annotated[Caller, Depends(_with_scope("admin"))]
