"""Prometheus metrics: counts of requests, and where the decisions of each product stand. No person,
key or group is a label.
"""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from evenhand.service.desk import Desk


class Metrics:
    """A registry of its own, so that several applications can live in one process."""

    def __init__(self, desk: Desk) -> None:
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
        self._desk = desk

    def text(self, tenant: str) -> bytes:
        """The exposition format; of the products, those of one tenant."""
        standing = CollectorRegistry()
        standing.register(_Standing(self._desk, tenant))
        return generate_latest(self.registry) + generate_latest(standing)


class _Standing:
    """Gauges that are read from the ledger when they are asked for."""

    def __init__(self, desk: Desk, tenant: str) -> None:
        self._desk, self._tenant = desk, tenant

    def collect(self) -> Iterable[Metric]:
        """One gauge family per question."""
        people = GaugeMetricFamily(
            "evenhand_people", "Decisions by where they stand", labels=["product", "standing"]
        )
        weights = GaugeMetricFamily(
            "evenhand_policy_weight", "Weights in force", labels=["product", "part"]
        )
        epoch = GaugeMetricFamily("evenhand_epoch", "The epoch in force", labels=["product"])
        for product in self._desk.products.values():
            if product.tenant != self._tenant:
                continue
            for name, number in vars_of(
                self._desk.ledger.counts(product.tenant, product.name)
            ).items():
                people.add_metric([product.name, name], number)
            force = self._desk.in_force(product)
            weights.add_metric([product.name, "learned"], force.learned_weight)
            weights.add_metric([product.name, "audit"], force.audit_weight)
            epoch.add_metric([product.name], force.policy.epoch)
        return [people, weights, epoch]


def vars_of(counts: object) -> dict[str, int]:
    """The fields of a record of numbers."""
    return {name: int(value) for name, value in vars(counts).items()}
