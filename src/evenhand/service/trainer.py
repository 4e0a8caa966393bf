"""The trainer: closes an epoch, learns from the ledger alone, certifies, and publishes by compare-and-swap under a lease.

    upto  = the last row that counts                    read before anything is learned
    close = usable decisions of rows <= upto whose maturity window has passed, accepted and rejected alike, in the chain's order
    plan  = CertifiedLearner.replay(close, rounds)      the same code as in the library; U, not the learner's coins, drew the decisions
    publish(policy, certificate, info = {upto, at, rounds, ...})        one signed row, so a rebuild sees exactly what was seen

A trainer holds nothing that the ledger does not: `catch_up` replays every closing on record. After an erasure it starts again from those
who are left; what was published stays as it was published. Two trainers never publish the same epoch:
the lease keeps the second one waiting, its token fences off one that was asleep, and the parent's id decides the rest.
"""

import itertools
import math
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.fairness.drift import ConstancyTest
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.learners import CertifiedLearner
from evenhand.learners.rounds import Block
from evenhand.ledger import Lease, LeaseHeld, Ledger, Policy, Row, StalePolicy
from evenhand.service.config import Product
from evenhand.words import Prices

LEASE_SECONDS = 60.0


@dataclass(frozen=True)
class Closing:
    """What a closing saw: rows up to `upto`, at time `at`, `rounds` usable decisions in all, of which `people` have been closed, the last
    of them in row `closed`."""

    upto: int
    at: float
    rounds: int
    closed: int
    people: int

    def to_json(self) -> Json:
        """Plain JSON, part of the policy's signed record."""
        return asdict(self)


class PromiseChanged(EvenhandError):
    """The settings promise something else than the ledger was begun with."""


class Trainer:
    """One product's trainer. Its methods block; run them in a thread. Only one call works at a time."""

    def __init__(self, ledger: Ledger, product: Product, holder: str, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self.ledger, self.product, self.holder, self.lease_seconds = ledger, product, holder, lease_seconds
        self._busy = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._learner: CertifiedLearner = self.product.learner()
        self._last: Policy | None = None
        self._closing = Closing(0, 0.0, 0, 0, 0)
        self._erased = self.ledger.newest_erasure(self.product.tenant, self.product.name)

    @property
    def learner(self) -> CertifiedLearner:
        """The learner as far as it has been caught up; to be looked at, not played."""
        return self._learner

    @property
    def lease_name(self) -> str:
        """One lease per product."""
        return f"train/{self.product.tenant}/{self.product.name}"

    # publishing

    def begin(self) -> None:
        """Publish the first policy, if there is none: everybody is accepted, which is exactly fair."""
        with self._busy:
            self.catch_up()
            if self._last is None:
                lease = self.ledger.acquire_lease(self.lease_name, self.holder, self.lease_seconds)
                self._publish(lease)

    def due(self) -> bool:
        """Whether as many people have been decided as the epoch was planned for. Cheap: one count."""
        epoch = self._learner.epoch
        usable = self.ledger.counts(self.product.tenant, self.product.name).usable
        return usable >= epoch.first_round + epoch.rounds

    def close_if_due(self) -> Policy | None:
        """Close and publish if it is time and nobody else does; None otherwise."""
        with self._busy:
            self.catch_up()
            if not (self.due() and self._something_matured()):
                return None
            try:
                return self.close()
            except (LeaseHeld, StalePolicy):
                return None

    def close(self) -> Policy:
        """Close the epoch now, train, certify, publish. LeaseHeld or StalePolicy if another trainer is at it or was faster."""
        with self._busy:
            lease = self.ledger.acquire_lease(self.lease_name, self.holder, self.lease_seconds)
            self.catch_up()
            if self._last is None:
                return self._publish(lease)
            head = self.ledger.head()
            try:
                self._close(head.seq, max(self.ledger.clock(), head.at))
                return self._publish(lease)
            except BaseException:
                self._forget()  # what was learned has not been published; start again from the ledger
                raise

    def _publish(self, lease: Lease) -> Policy:
        product, parent = self.product, self._last
        policy = self.ledger.publish(
            product.tenant,
            product.name,
            self._learner.policy.to_json(),
            epoch=self._learner.epoch.number,
            parent=None if parent is None else parent.id,
            certificate=self._learner.certificate.to_json(),
            info=self._info(),
            lease=lease,
        )
        self._last = policy
        if parent is not None:
            note = str(self._closing.upto)
            self.ledger.operate(product.tenant, product.name, "epoch_closed", self.holder, note=note)
        return policy

    def _info(self) -> Json:
        """What the record says besides the policy: the closing, and what a human wants to know."""
        epoch, drift = self._learner.epoch, self._learner.drift
        return {
            "promise": self.product.digest,
            "closing": self._closing.to_json(),
            "phase": epoch.phase,
            "first_round": epoch.first_round,
            "rounds": min(epoch.rounds, 2**53),
            "learned_weight": self._learner.learned_weight,
            "oracle_calls": epoch.oracle_calls,
            "delta": [entry.to_json() for entry in self._learner.bookings],
            "drift": [] if drift is None else [_stream(name, test) for name, test in drift.streams.items()],
            "notes": list(self._learner.report.notes),
        }

    # learning

    def catch_up(self) -> None:
        """Replay every closing that is on record and has not been seen here: other replicas', or all of them after a restart, or after
        somebody was erased, so that nothing of that person stays in memory."""
        with self._busy:
            if self.ledger.newest_erasure(self.product.tenant, self.product.name, self._erased) != self._erased:
                self._forget()
            lineage = [p for p in self.ledger.policies(self.product.tenant, self.product.name) if p.in_lineage]
            for policy in lineage:
                if self._last is None or policy.epoch > self._last.epoch:
                    self._follow(policy)

    def _follow(self, policy: Policy) -> None:
        policy.verify(self.ledger.keyring.public_key)
        if policy.info.get("promise") != self.product.digest:
            raise PromiseChanged(
                f"epoch {policy.epoch} of product {self.product.name!r} was published under another promise than the settings'.",
                hint="put the settings back, or give the new promise a new product name: a promise holds for a whole life.",
            )
        if self._last is not None:
            closing = Closing(**policy.info["closing"])
            self._close(closing.upto, closing.at, policy)
        self._last = policy

    def _close(self, upto: int, at: float, record: Policy | None = None) -> None:
        """Feed what has matured by `at`, as it was known at row `upto`."""
        names = (self.product.tenant, self.product.name)
        seen, learner = self._closing, self._learner
        rows = list(self.ledger.history(*names, after=seen.closed, upto=upto))
        closed = list(itertools.takewhile(lambda row: self._matured(row, at), rows))
        rounds = (
            max(seen.people + len(rows), learner.round) if record is None else int(record.info["closing"]["rounds"])
        )
        published = None if record is None else policy_from_json(record.document)
        learner.replay(list(blocks_of(closed, self._lineage_ids())), rounds, at=at, published=published)
        last = closed[-1].seq if closed else seen.closed
        self._closing = Closing(upto, at, rounds, last, seen.people + len(closed))

    def _something_matured(self) -> bool:
        """Whether a closing would see anybody new; without, it would only renew the policy."""
        rows = self.ledger.history(self.product.tenant, self.product.name, after=self._closing.closed)
        first = next(iter(rows), None)
        return first is not None and self._matured(first, max(self.ledger.clock(), self.ledger.head().at))

    def _matured(self, row: Row, at: float) -> bool:
        window = self.product.maturity
        return window is None or row.at + window <= at

    def _lineage_ids(self) -> set[str]:
        return {p.id for p in self.ledger.policies(self.product.tenant, self.product.name) if p.in_lineage}


def _stream(name: str, test: ConstancyTest) -> Json:
    """How much speaks against a stream being constant, and how much would be an alarm."""
    people, limit = int(sum(test.total)), -math.log(test.false_alarm)
    return {"stream": name, "people": people, "evidence": test.peak, "alarm_at": limit, "alarm": test.alarmed}


def blocks_of(rows: Iterable[Row], known: set[str]) -> Iterator[Block]:
    """Decisions as the learner's blocks, one for each run of rows of one epoch. People who were erased meanwhile have no features
    and are left out, as are rows of a policy outside the lineage."""
    learnable = (row for row in rows if row.features is not None and row.policy in known)
    for epoch, run in itertools.groupby(learnable, key=lambda row: row.epoch):
        yield _block(epoch, list(run))


def _block(epoch: int, rows: list[Row]) -> Block:
    group = np.empty(len(rows), dtype=object)
    group[:] = [row.group for row in rows]
    priced = [row.prices for row in rows if row.prices is not None]
    return Block(
        first=0,
        epoch=epoch,
        features=np.array([row.features for row in rows], dtype=np.float64),
        group=group,
        accept=np.array([row.accept for row in rows], dtype=bool),
        acceptance=np.array([row.acceptance for row in rows], dtype=np.float64),
        prices=Prices(*np.array(priced, dtype=np.float64).T) if len(priced) == len(rows) else None,
        label=np.array([row.label for row in rows], dtype=np.int64),
        logged=np.zeros(len(rows), dtype=bool),
        audit=np.array([row.audit for row in rows], dtype=bool),
        at=rows[-1].at,
    )
