"""Prometheus metrics: counts of requests, and where the decisions of each product stand. No person,
key or group is a label.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from evenhand.service.decider import Decider


class Metrics:
    """A registry of its own, so that several applications can live in one process."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
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
        self.failed_trainings = Counter(
            "evenhand_failed_trainings", "Trainings refused", registry=self.registry
        )
        self.seconds = Histogram(
            "evenhand_decision_seconds",
            "From request to durable answer",
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
            registry=self.registry,
        )

    def text(self, tenant: str) -> bytes:
        """The exposition format; of the products, those of one tenant."""
        products = CollectorRegistry()
        products.register(ProductGauges(self._decider, tenant))
        return generate_latest(self.registry) + generate_latest(products)


@dataclass(frozen=True)
class ProductGauges:
    """Gauges of one tenant's products, read from the ledger when they are asked for."""

    decider: Decider
    tenant: str

    def collect(self) -> Iterable[Metric]:
        """One family of gauges per question."""
        people = GaugeMetricFamily(
            "evenhand_people", "Decisions by where they stand", labels=["product", "standing"]
        )
        weights = GaugeMetricFamily(
            "evenhand_policy_weight", "Weights in force", labels=["product", "part"]
        )
        epoch = GaugeMetricFamily("evenhand_epoch", "The epoch in force", labels=["product"])
        for (tenant, name), product in self.decider.products.items():
            if tenant != self.tenant:
                continue
            for standing, number in asdict(self.decider.ledger.counts(tenant, name)).items():
                people.add_metric([name, standing], number)
            active = self.decider.active(product)
            weights.add_metric([name, "learned"], active.learned_weight)
            weights.add_metric([name, "audit"], active.audit_weight)
            epoch.add_metric([name], active.policy.epoch)
        return [people, weights, epoch]
