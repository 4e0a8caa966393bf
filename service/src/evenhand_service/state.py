"""What the routes of one process share."""

import asyncio
import contextlib
import logging
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from evenhand.contracts import Json
from evenhand.words import Group
from evenhand_service.decider import Decider
from evenhand_service.keys import KeyGuard, LedgerKeys, PeopleOfProxy, RateLimiter, Sessions
from evenhand_service.ledger import LeaseHeld, Ledger, StalePolicy
from evenhand_service.ledger.outcome_status import KEEP_EVERY
from evenhand_service.ledger.witness import HeadWitnesses, witness_of
from evenhand_service.monitoring import ROWS_AT_ONCE, Health, Metrics, RequestLog
from evenhand_service.product_changes import require_unchanged
from evenhand_service.settings import Product, Settings
from evenhand_service.threads import Threads
from evenhand_service.trainer import Trainer, model_id

LOG = logging.getLogger("evenhand_service")
PUBLIC_RATE = 100.0
"""Requests a second of one address to paths that need no key."""
SMALLEST_GROUP = 10
"""People that a group must have to be shown."""


@dataclass(frozen=True)
class OverruledLine:
    """Decisions of one group that people overruled in one direction; the group is None where it is
    unknown, erased or not to be named.
    """

    group: str | None
    drawn: Literal["accept", "reject"]
    decisions: int


@dataclass
class ProductCounts:
    """People, acceptances and overruled decisions of a product by group, grown from the ledger.

    Only usable decisions count, so people and not applications. Somebody whose group is reported
    later moves to that group. overruled: (group, accept as drawn) -> decisions.
    """

    ledger: Ledger
    product: Product
    people: Counter[Group] = field(default_factory=Counter)
    accepted: Counter[Group] = field(default_factory=Counter)
    overruled: Counter[tuple[Group, bool]] = field(default_factory=Counter)
    _last_decision: int = 0
    _last_row: int = 0
    _kept: int = 0
    _whole: bool = False
    _archives: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self, rows: int | None = None) -> None:
        """Read all groups and overrides that were reported since, and `rows` new decisions at most.
        A new process goes on from what another has kept.
        """
        name = self.product.name
        limit = ROWS_AT_ONCE if rows is None else rows
        with self._lock:
            newest = max((int(one["seq"]) for one in self.ledger.archives()), default=0)
            if newest != self._archives:
                # reports on decisions that are in an archive now may not have been seen
                self._archives = newest
                self._last_row = self._last_decision = self._kept = 0
                self.people.clear()
                self.accepted.clear()
                self.overruled.clear()
            if self._last_row == 0:
                self._resume()
            since = self._last_row
            upto = self.ledger.head().seq
            if upto == since and self._whole:
                return
            for late in self.ledger.late_groups(name, since, upto):
                for group, change in ((late.before, -1), (late.now, 1)):
                    if late.seq <= self._last_decision:
                        self._count(group, late.accept, change)
                    if late.overruled:
                        self.overruled[group, late.accept] += change
            for one in self.ledger.overruled(name, since, upto):
                self.overruled[one.group, one.accept] += 1
            read = 0
            for seq, group, accept in self.ledger.usable_groups(
                name, self._last_decision, upto, limit
            ):
                self._count(group, accept, 1)
                self._last_decision = seq
                read += 1
            self._last_row = upto
            self._whole = read < limit
            if upto - self._kept >= KEEP_EVERY:
                self._keep()

    def _resume(self) -> None:
        found = self.ledger.summary(self.product.name, "groups")
        if found is not None and found[0] >= self._archives:
            self._last_row = self._kept = found[0]
            self._last_decision = found[1]["last_decision"]
            self.people, self.accepted = (
                Counter(dict(map(tuple, found[1][name]))) for name in ("people", "accepted")
            )
            self.overruled = Counter({(g, accept): n for g, accept, n in found[1]["overruled"]})

    def _keep(self) -> None:
        self._kept = self._last_row
        found: Json = {
            "last_decision": self._last_decision,
            "people": [[group, number] for group, number in self.people.items()],
            "accepted": [[group, number] for group, number in self.accepted.items()],
            "overruled": [[*which, number] for which, number in self.overruled.items()],
        }
        self.ledger.keep_summary(self.product.name, "groups", self._last_row, found)

    def _count(self, group: Group, accept: bool, people: int) -> None:
        self.people[group] += people
        self.accepted[group] += people * accept

    @property
    def shown(self) -> list[Group]:
        """Known groups with enough people, in the order of their names."""
        large = (g for g, n in self.people.items() if g is not None and n >= SMALLEST_GROUP)
        return sorted(large, key=str)

    def overruled_lines(self, named: Sequence[Group] | None = None) -> tuple[OverruledLine, ...]:
        """By group and direction; groups not in `named` (default: all) count as unknown."""
        lines: Counter[tuple[str | None, Literal["accept", "reject"]]] = Counter()
        for (group, accept), decisions in self.overruled.items():
            if decisions:
                shown = group is not None and (named is None or group in named)
                lines[str(group) if shown else None, "accept" if accept else "reject"] += decisions
        return tuple(OverruledLine(*line, lines[line]) for line in sorted(lines, key=str))


class Service:
    """The decider, the trainers, the counts for the dashboard, the keys and the metrics."""

    def __init__(self, ledger: Ledger, settings: Settings, keys: LedgerKeys) -> None:
        self.ledger = ledger
        self.settings = settings
        self.keys = keys
        self.decider = Decider(ledger, settings.products, keys, settings.refresh_limit)
        self.people_of_proxy = PeopleOfProxy(settings)
        self.key_guard = KeyGuard(
            keys,
            RateLimiter(settings.rate, settings.burst),
            RateLimiter(5.0, 50.0),
            self.decider.current,
            self.people_of_proxy.client,
        )
        self.bytes_of_key = RateLimiter(
            settings.bytes_per_second, max(2 * settings.bytes_per_second, settings.max_body)
        )
        self.public = RateLimiter(PUBLIC_RATE, 2 * PUBLIC_RATE)
        self.large_bodies = asyncio.Lock()
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
        self.trainers = {name: Trainer(ledger, product, holder) for name, product in products}
        self.witnesses = HeadWitnesses(
            ledger,
            [witness_of(table) for table in settings.witnesses],
            every_seconds=settings.witness_seconds,
            required_seconds=settings.witness_required_seconds,
        )
        self.health.witness_lag = self.witnesses.lag
        self.counts = {name: ProductCounts(ledger, product) for name, product in products}

    def begin(self) -> None:
        """Give every product a policy, if its ledger has none yet. Another replica may do so at
        the same time. GuaranteeChanged if a product is not the one that the ledger knows.
        """
        for product in self.settings.products:
            require_unchanged(
                self.ledger.policies(product.name), product, self.ledger.keyring.public_key
            )
        for product in self.settings.products:
            self.decider.constants(product)
            while self.ledger.active(product.name) is None:
                try:
                    self.trainer(product).begin()
                    # this process may never train (--no-train): another need not wait for the lease
                    self.trainer(product).release()
                except (LeaseHeld, StalePolicy):
                    time.sleep(0.1)
        self.decider.keep_up()
        for product in self.settings.products:
            self.decider.active(product)  # another replica may have begun with other settings
            self._say_model(product)

    def _say_model(self, product: Product) -> None:
        """In the log: which model of one's own is fitted from now on, and whether that is new."""
        version = product.model_version
        if version is None:
            return
        told = (product.name, version["name"], version["id"])
        LOG.info("product %s: the model is %s, version %s", *told)
        lineage = [one for one in self.ledger.policies(product.name) if one.in_lineage]
        if lineage and model_id(lineage[-1]) != version["id"]:
            LOG.warning(
                "product %s: the policies so far were planned with the version %s of the model; "
                "the next closing fits the version %s",
                *(product.name, model_id(lineage[-1]), version["id"]),
            )

    def trainer(self, product: Product) -> Trainer:
        """The trainer of a product."""
        return self.trainers[product.name]

    def release(self) -> None:
        """Before the end: give back the right to train, where the ledger can be reached."""
        for trainer in self.trainers.values():
            with contextlib.suppress(Exception):
                trainer.release()

    def count(self, product: Product) -> None:
        """Count what was decided and reported since the last look, a part of it if it is much: so
        whoever looks later finds it counted.
        """
        self.counts[product.name].refresh()
        self.ledger.counts(product.name, ROWS_AT_ONCE)

    def train(self, product: Product) -> None:
        """Close the epoch if it is due, and decide by what was published, here or elsewhere."""
        published = self.trainer(product).close_if_due()
        if published is not None:
            LOG.info("product %s: epoch %d published", product.name, published.epoch)
        self.decider.keep_up()
