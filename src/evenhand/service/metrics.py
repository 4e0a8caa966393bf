"""Prometheus metrics: counts of requests, and where the decisions of each product stand. No person,
key or group is a label.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from evenhand.service.decider import Decider
from evenhand.service.health import Health
from evenhand.service.settings import Product

GAUGES: Mapping[str, tuple[str, list[str]]] = {
    "people": ("Decisions by where they stand", ["product", "standing"]),
    "policy_weight": ("Weights in force", ["product", "part"]),
    "epoch": ("The epoch in force", ["product"]),
    "mode": ("1 for the mode in which the product decides", ["product", "mode"]),
    "certificate_suspended": ("1 if the certificate in force is suspended", ["product"]),
    "policy_age_seconds": ("Since the newest certificate was issued", ["product"]),
    "label_lag_seconds": ("Since the newest label came", ["product"]),
    "refresh_age_seconds": ("Since this process looked at what is active", []),
    "database_up": ("1 if the ledger can be read and written", []),
    "failed_commits": ("Commits since the start of which nobody knows whether they were done", []),
    "witness_lag_seconds": ("Since a witness took a head", ["witness"]),
    "witness_lag_rows": ("Rows that a witness has not seen", ["witness"]),
}
"""Gauges: what they tell, and their labels."""


class TenantMetrics:
    """What one tenant asked for, in a registry of its own: no tenant sees another's."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.decisions = Counter(
            "evenhand_decisions", "Answers given", ["mode", "accept"], registry=self.registry
        )
        self.replayed = Counter(
            "evenhand_replayed", "Answers that had been stored before", registry=self.registry
        )
        self.refused = Counter("evenhand_refused", "Applications refused", registry=self.registry)
        self.outcomes = Counter(
            "evenhand_outcomes", "Reports by their result", ["result"], registry=self.registry
        )
        self.seconds = Histogram(
            "evenhand_decision_seconds",
            "From request to durable answer",
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
            registry=self.registry,
        )


class Metrics:
    """The metrics of this process, and those of each tenant (`of`).

    The registries are its own, so that several applications can live in one process.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self.registry = CollectorRegistry()
        self.of: defaultdict[str, TenantMetrics] = defaultdict(TenantMetrics)
        self.failed_trainings = Counter(
            "evenhand_failed_trainings", "Trainings refused", registry=self.registry
        )
        self.failed_refreshes = Counter(
            "evenhand_failed_refreshes",
            "Looks at the ledger that failed",
            registry=self.registry,
        )

    def text(self, tenant: str, health: Health) -> bytes:
        """The exposition format: the process, and one tenant with its products."""
        products = CollectorRegistry()
        products.register(ProductGauges(self._decider, health, tenant))
        registries = (self.of[tenant].registry, self.registry, products)
        return b"".join(map(generate_latest, registries))


@dataclass(frozen=True, eq=False)
class ProductGauges:
    """Gauges of one tenant's products and of the process, read when they are asked for."""

    decider: Decider
    health: Health
    tenant: str

    def collect(self) -> Iterable[Metric]:
        """One family of gauges per question."""
        families = {
            name: GaugeMetricFamily(f"evenhand_{name}", about, labels=labels)
            for name, (about, labels) in GAUGES.items()
        }

        def tell(name: str, value: float, *labels: str) -> None:
            families[name].add_metric(labels, value)

        database = self.health.database()
        tell("database_up", float(database == "ok"))
        tell("refresh_age_seconds", self.decider.refresh_age)
        tell("failed_commits", self.decider.ledger.failed_commits)
        if database == "ok":
            for witness, (seconds, rows, _) in self.health.witness_lag().items():
                tell("witness_lag_seconds", seconds, witness)
                tell("witness_lag_rows", rows, witness)
            for (tenant, name), product in self.decider.products.items():
                if tenant == self.tenant:
                    self._product(name, product, tell)
        return families.values()

    def _product(self, name: str, product: Product, tell: Callable[..., None]) -> None:
        ledger, active = self.decider.ledger, self.decider.active(product)
        for standing, number in asdict(ledger.counts(*product.names)).items():
            tell("people", number, name, standing)
        tell("policy_weight", active.learned_weight, name, "learned")
        tell("policy_weight", active.audit_weight, name, "audit")
        tell("epoch", active.policy.epoch, name)
        for mode in ("live", "shadow", "killed"):
            tell("mode", float(active.mode == mode), name, mode)
        issued = ledger.certificates(*product.names)
        mine = next((row for row in reversed(issued) if row.epoch == active.policy.epoch), None)
        suspended = mine is not None and mine.document.get("status") == "suspended"
        tell("certificate_suspended", float(suspended), name)
        now = max(ledger.clock(), ledger.head().at)
        if issued:
            tell("policy_age_seconds", now - issued[-1].at, name)
        newest = ledger.newest_label(*product.names)
        if newest is not None:
            tell("label_lag_seconds", now - newest, name)
