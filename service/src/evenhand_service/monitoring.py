"""What the operators of the service see: whether it can decide (health), how much it does and where
the decisions of each product stand (metrics), and what it was asked (the log of requests).

No person and no key is named in any of them, and no group is a label of a metric.
"""

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TextIO

from anyio import CapacityLimiter, to_thread
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import Scope

from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.fairness.certificate import Certificate
from evenhand_service.decider import Decider
from evenhand_service.keys import SOON
from evenhand_service.ledger import ClockJumped, GapUnconfirmed, Ledger
from evenhand_service.settings import Product, Settings

# health: live says that the process answers, ready that an answer would be durable and under the
# policy of now

LOOKED_FOR = 1.0
"""Seconds for which an answer is remembered: who asks more often costs nothing."""
PATIENCE = 3.0
"""Seconds that the database has to answer."""
LEAST_ROOM = 64 * 2**20
"""Free bytes below which a disk counts as full."""


LATE_WITNESS = 3600.0
"""Seconds after which the fastest witness counts as late."""


@dataclass
class Health:
    """What is known of the service's state. Whoever has no key sees the words alone."""

    ledger: Ledger
    decider: Decider
    settings: Settings
    witness_lag: Callable[[], Mapping[str, tuple[float, int, int]]] = dict
    draining: bool = False
    _told: tuple[float, Json] | None = None
    _looking: "asyncio.Future[Json] | None" = None

    def database(self) -> str:
        """ "ok", "broken" (nothing is written any more) or "unreachable"."""
        if self.ledger.broken is not None:
            return "broken"
        try:
            self.ledger.head()
        except Exception:  # noqa: BLE001 - whatever it is, nothing can be read
            return "unreachable"
        return "ok"

    def room(self) -> int | None:
        """Free bytes on the disk of a SQLite ledger; None for a database elsewhere."""
        file = self.settings.ledger_file
        if file is None:
            return None
        try:
            disk = os.statvfs(file.absolute().parent)
        except OSError:
            return 0
        return disk.f_bavail * disk.f_frsize

    def certificate(self, product: Product) -> str:
        """The status of the certificate of the policy in force, or "none"."""
        row = self.ledger.certificate_of(self.decider.active(product).policy)
        return "none" if row is None else Certificate.from_json(row.document).status

    async def writes(self) -> bool:
        """Whether decisions can be made durable, as far as is known."""
        return self.ledger.broken is None and (await self._found())["database"] == "ok"

    async def ready(self) -> Json:
        """{"ready": whether it can decide, and a word on each thing that this needs}."""
        words = dict(await self._found())
        if self.draining:
            words["stopping"] = "yes"
        stops = {"broken", "unreachable", "full", "old", "yes", "changed", "wrong", "unconfirmed"}
        stops |= {"required"}
        return {"ready": not stops & set(words.values()), **words}

    async def _found(self) -> Json:
        """What was found LOOKED_FOR seconds ago at most. Whoever asks shares one look, and no
        second one begins while a database keeps the first one waiting: asking needs no key.
        """
        if self._told is not None and time.monotonic() - self._told[0] <= LOOKED_FOR:
            return self._told[1]
        if self._looking is None:
            # in a thread of its own, whatever else is going on
            look = to_thread.run_sync(self._look, limiter=CapacityLimiter(1))
            self._looking = asyncio.ensure_future(look)
        looking = self._looking
        await asyncio.wait({looking}, timeout=PATIENCE)
        found: Json = {"database": "unreachable"}
        if looking.done():
            self._looking = None
            found = found if looking.exception() is not None else looking.result()
        self._told = (time.monotonic(), found)
        return found

    def _look(self) -> Json:
        words = {"database": self.database()}
        room = self.room()
        if room is not None:
            words["disk"] = "ok" if room >= LEAST_ROOM else "full"
        late = self.decider.refresh_age > self.decider.refresh_limit
        words["refresh"] = "old" if late else "ok"
        if words["database"] == "ok":
            try:
                found = {self.certificate(product) for product in self.settings.products}
            except EvenhandError:
                found = set()
            words["certificate"] = "suspended" if "suspended" in found else "ok"
            if self.decider.changed:  # another replica has published for other settings
                words["product"] = "changed"
            lags = [seconds for seconds, _, _ in self.witness_lag().values()]
            late = bool(lags) and min(lags) > LATE_WITNESS
            words["witness"] = "none" if not lags else "late" if late else "ok"
            try:
                refusal = self.ledger.refusal_to_draw()
            except SQLAlchemyError:
                return words | {"database": "unreachable"}
            match refusal:
                case None:
                    pass
                case ClockJumped():
                    words["clock"] = "wrong"
                case GapUnconfirmed():  # after a restore, until somebody has confirmed it
                    words["gap"] = "unconfirmed"
                case _ if self.ledger.broken is not None:
                    words["database"] = "broken"
                case _:  # witness_required_seconds have passed
                    words["witness"] = "required"
        return words


# metrics, for Prometheus

ROWS_AT_ONCE = 20_000
"""Rows that one look reads at most: about a third of a second, also where nobody has looked before.
"""
GAUGES: Mapping[str, tuple[str, list[str]]] = {
    "people": ("Decisions by where they stand", ["product", "standing"]),
    "uncounted_rows": ("Rows of the ledger that `people` does not count yet", ["product"]),
    "policy_weight": ("Weights in force", ["product", "part"]),
    "epoch": ("The epoch in force", ["product"]),
    "mode": ("1 for the mode in which the product decides", ["product", "mode"]),
    "product_changed": ("1 if the ledger means another product than the settings", ["product"]),
    "certificate_suspended": ("1 if the certificate in force is suspended", ["product"]),
    "policy_age_seconds": ("Since the newest certificate was issued", ["product"]),
    "label_lag_seconds": ("Since the newest label came", ["product"]),
    "refresh_age_seconds": ("Since this process looked at what is active", []),
    "database_up": ("1 if the ledger can be read and written", []),
    "clock_wrong": ("1 if nothing is written because a clock is ahead of the others", []),
    "failed_commits": ("Commits since the start of which nobody knows whether they were done", []),
    "key_ends_seconds": ("Until the next valid API key ends", []),
    "keys_ending": ("Valid API keys that end within 14 days", []),
    "witnesses": ("Witnesses in the settings; 0: a state put back is seen by the mark alone", []),
    "witness_lag_seconds": ("Since a witness took a head", ["witness"]),
    "witness_lag_rows": ("Rows that a witness has not seen", ["witness"]),
}
"""Gauges: what they measure, and their labels."""


class Metrics:
    """The metrics of this process.

    The registry is its own, so that several applications can run in one process.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        self.decisions = counter("evenhand_decisions", "Answers given", ["mode", "accept"])
        self.replayed = counter("evenhand_replayed", "Answers that had been stored before")
        self.refused = counter("evenhand_refused", "Applications refused")
        self.outcomes = counter("evenhand_outcomes", "Reports by their result", ["result"])
        self.seconds = Histogram(
            "evenhand_decision_seconds",
            "From request to durable answer",
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
            registry=self.registry,
        )
        self.failed_trainings = counter("evenhand_failed_trainings", "Trainings refused")
        looks = "Looks at the ledger that failed"
        self.failed_refreshes = counter("evenhand_failed_refreshes", looks)

    def text(self, health: Health) -> bytes:
        """The exposition format: the process and its products."""
        products = CollectorRegistry()
        products.register(ProductGauges(self._decider, health))
        return b"".join(map(generate_latest, (self.registry, products)))


@dataclass(frozen=True, eq=False)
class ProductGauges:
    """Gauges of the products and of the process, read when they are asked for."""

    decider: Decider
    health: Health

    def collect(self) -> Iterable[Metric]:
        """One family of gauges per question."""
        families = {
            name: GaugeMetricFamily(f"evenhand_{name}", about, labels=labels)
            for name, (about, labels) in GAUGES.items()
        }

        def set_gauge(name: str, value: float, *labels: str) -> None:
            families[name].add_metric(labels, value)

        database = self.health.database()
        set_gauge("database_up", float(database == "ok"))
        set_gauge("refresh_age_seconds", self.decider.refresh_age)
        keys = self.decider.keys
        endings = [] if keys is None else keys.endings()
        if endings:
            set_gauge("key_ends_seconds", endings[0])
        set_gauge("keys_ending", sum(left < SOON for left in endings))
        set_gauge("witnesses", len(self.health.settings.witnesses))
        set_gauge("failed_commits", self.decider.ledger.failed_commits)
        if database == "ok":
            for witness, (seconds, rows, _) in self.health.witness_lag().items():
                set_gauge("witness_lag_seconds", seconds, witness)
                set_gauge("witness_lag_rows", rows, witness)
            refusal = self.health.ledger.refusal_to_draw()
            set_gauge("clock_wrong", float(isinstance(refusal, ClockJumped)))
            for product in self.decider.products.values():
                changed = product.name in self.decider.changed
                set_gauge("product_changed", float(changed), product.name)
                if not changed:
                    self._product(product.name, product, set_gauge)
        return families.values()

    def _product(self, name: str, product: Product, set_gauge: Callable[..., None]) -> None:
        ledger = self.decider.ledger
        active = self.decider.active(product)
        for standing, number in asdict(ledger.counts(product.name, ROWS_AT_ONCE)).items():
            set_gauge("people", number, name, standing)
        set_gauge("uncounted_rows", ledger.uncounted(product.name), name)
        set_gauge("policy_weight", active.learned_weight, name, "learned")
        set_gauge("policy_weight", active.audit_weight, name, "audit")
        set_gauge("epoch", active.policy.epoch, name)
        for mode in ("live", "shadow", "killed"):
            set_gauge("mode", float(active.mode == mode), name, mode)
        issued = ledger.certificates(product.name)
        suspended = self.health.certificate(product) == "suspended"
        set_gauge("certificate_suspended", float(suspended), name)
        now = max(ledger.clock(), ledger.head().at)
        if issued:
            set_gauge("policy_age_seconds", now - issued[-1].at, name)
        newest = ledger.newest_label(product.name)
        if newest is not None:
            set_gauge("label_lag_seconds", now - newest, name)


# the log of requests: JSON, one line each, with a request id. Paths hold keys of applications, so
# the route stands for the path

FLUSH_SECONDS = 0.25
"""Lines are written together, at the latest after so long."""

LONGEST_ADDRESS = 64
"""Characters of a forwarded address that are written."""


def one_line(event: str, **facts: object) -> str:
    """An event as JSON."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps({"at": at, "event": event, **facts})


class RequestLog:
    """Writes one line for each request, a few at a time, so that deciding does not wait for it.

    out: where to; standard error by default.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out
        self._lines: list[str] = []
        self._waiting = False

    def request(
        self, request: str, scope: Scope, status: int, seconds: float, forwarded: str = ""
    ) -> None:
        """One request. Who fails to log in is logged with the address of the connection, and with
        the one that a trusted proxy has reported (`forwarded`); nobody else is.
        """
        route = str(scope.get("evenhand.route") or getattr(scope.get("route"), "path", "-"))
        event = "request"
        where = ""
        if status in (401, 403, 429):
            client = scope["client"][0] if scope.get("client") else "?"
            where = f',"client":{json.dumps(client)}'
            if forwarded not in ("", client):
                where += f',"forwarded":{json.dumps(forwarded[:LONGEST_ADDRESS])}'
            if status == 401 or route.endswith("/login"):
                event = "login_failed"
        self._lines.append(
            f'{{"at":{time.time():.3f},"event":"{event}","id":"{request}",'
            f'"method":{json.dumps(scope["method"])},"route":{json.dumps(route)},'
            f'"status":{status},"ms":{1000 * seconds:.2f}{where}}}'
        )
        if not self._waiting:
            self._waiting = True
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what has not been written."""
        lines = self._lines
        self._lines = []
        self._waiting = False
        if lines:
            out = self._out or sys.stderr
            out.write("\n".join(lines) + "\n")
            out.flush()


class JsonFormatter(logging.Formatter):
    """What else the service has to say, in the same form."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback is not written, because it could quote a request."""
        return one_line("log", level=record.levelname.lower(), message=record.getMessage())


def log_as_json(out: Callable[[], logging.Handler] = logging.StreamHandler) -> None:
    """Let every line of the service and of its server be JSON."""
    for name in ("evenhand", "evenhand_service", "uvicorn", "opentelemetry"):
        logger = logging.getLogger(name)
        if not any(isinstance(one.formatter, JsonFormatter) for one in logger.handlers):
            handler = out()
            handler.setFormatter(JsonFormatter())
            logger.handlers[:] = [handler]
            logger.propagate = False
