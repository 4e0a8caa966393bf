"""The trainer: closes an epoch, learns from the ledger alone, certifies, and publishes by
compare-and-swap under a lease.

    upto  = the last row that counts                    read before anything is learned
    close = usable decisions of rows <= upto whose maturity window has passed, all of them, in the chain's order, as they were drawn
    plan  = CertifiedLearner.replay(close, rounds)      the same code as in the library; U, not the learner's coins, drew the decisions
    publish(policy, certificate, checkpoint, info = {upto, at, rounds, ...})     one transaction, so a rebuild sees exactly what was seen

A trainer holds nothing that the ledger does not. `catch_up` takes up the newest checkpoint with the
people who are left: the sums over closed cohorts are those that were published, whoever was erased
since, and only the loss misses them. So a trainer that has just started, and one that has been
running, publish the same next policy and certificate, bit for bit. A lineage that ends under older
rules is not learned from: a new life takes it over.

Two trainers never publish the same epoch: the lease keeps the second one waiting, its token fences
off one that was asleep, and the parent's id decides the rest.
"""

import itertools
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.fairness.delta_ledger import Booking
from evenhand.fairness.drift import ConstancyTest
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.learners import CertifiedLearner
from evenhand.learners.rounds import Block
from evenhand.ledger import RULES, Damaged, Lease, LeaseHeld, Ledger, Policy, Row, StalePolicy
from evenhand.service.config import Product
from evenhand.words import Prices

LEASE_SECONDS = 60.0


@dataclass(frozen=True)
class Closing:
    """What a closing saw: rows up to `upto`, at time `at`, `rounds` usable decisions in all, of
    which `people` have been closed, the last of them in row `closed`."""

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
    """One product's trainer.

    Its methods block; run them in a thread. Only one call works at a time.
    """

    def __init__(
        self, ledger: Ledger, product: Product, holder: str, *, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self.ledger, self.product, self.holder, self.lease_seconds = (
            ledger,
            product,
            holder,
            lease_seconds,
        )
        self._names = (product.tenant, product.name)
        self._busy = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._learner: CertifiedLearner = self.product.learner()
        self._last: Policy | None = None
        self._closing = Closing(0, 0.0, 0, 0, 0)
        self._erased = 0

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
        usable = self.ledger.counts(*self._names).usable
        return usable >= epoch.first_round + epoch.rounds

    def close_if_due(self) -> Policy | None:
        """Close and publish if it is time and nobody else does; None otherwise. A lineage of older
        rules is succeeded at once.
        """
        with self._busy:
            self.catch_up()
            if self.older_rules is None and not (self.due() and self._something_matured()):
                return None
            try:
                return self.close()
            except (LeaseHeld, StalePolicy):
                return None

    def close(self) -> Policy:
        """Close the epoch now, train, certify, publish.

        LeaseHeld or StalePolicy if another trainer is at it or was faster.
        """
        with self._busy:
            lease = self.ledger.acquire_lease(self.lease_name, self.holder, self.lease_seconds)
            self.catch_up()
            if self._last is None:
                return self._publish(lease)
            head = self.ledger.head()
            step = self._close if self.older_rules is None else self._succeed
            try:
                step(head.seq, max(self.ledger.clock(), head.at))
                return self._publish(lease)
            except BaseException:
                self._forget()  # what was learned has not been published; start again from the ledger
                raise

    def _publish(self, lease: Lease) -> Policy:
        parent = self._last
        policy = self.ledger.publish(
            *self._names,
            self._learner.policy.to_json(),
            epoch=self._learner.epoch.number,
            parent=None if parent is None else parent.id,
            checkpoint=self._learner.checkpoint(),
            certificate=self._learner.certificate.to_json(),
            info=self._info(),
            lease=lease,
        )
        self._last = policy
        if parent is not None:
            self.ledger.operate(
                *self._names, "epoch_closed", self.holder, note=str(self._closing.upto)
            )
        return policy

    def _info(self) -> Json:
        """What the record says besides the policy: the closing, and what a human wants to know."""
        epoch, drift, report = self._learner.epoch, self._learner.drift, self._learner.report
        return {
            "promise": self.product.digest,
            "closing": self._closing.to_json(),
            "phase": epoch.phase,
            "first_round": epoch.first_round,
            "rounds": min(epoch.rounds, 2**53),
            "learned_weight": self._learner.learned_weight,
            "oracle_calls": epoch.oracle_calls,
            "delta": [entry.to_json() for entry in self._learner.bookings],
            "drift": []
            if drift is None
            else [_stream(name, test) for name, test in drift.streams.items()],
            "notes": list(report.notes),
            "forecast": list(report.forecast),
        }

    # learning

    def catch_up(self) -> None:
        """Take up the newest policy on record, if it has not been seen here or somebody was erased
        since: nothing of that person stays in memory, and nothing that was certified is computed
        again."""
        with self._busy:
            lineage = self._lineage()
            erased = self.ledger.newest_erasure(*self._names, self._erased)
            newest = lineage[-1] if lineage else None
            if newest is None or (
                self._last is not None and self._last.seq == newest.seq and erased == self._erased
            ):
                self._erased = erased
                return
            self._forget()
            self._erased = erased
            if newest.rules == RULES:
                self._resume(lineage)
            self._last, self._closing = newest, _closing(newest)

    @property
    def older_rules(self) -> int | None:
        """The rules under which the newest policy was published, if they are not those of now: then
        a closing begins a new life.
        """
        return None if self._last is None or self._last.rules == RULES else self._last.rules

    def _lineage(self) -> list[Policy]:
        """The published policies, oldest first, each signed by this ledger's key and under this
        product's promise.
        """
        lineage = [policy for policy in self.ledger.policies(*self._names) if policy.in_lineage]
        for policy in lineage:
            policy.verify(self.ledger.keyring.public_key)
            if policy.rules > RULES:
                raise Damaged(
                    f"epoch {policy.epoch} of product {self.product.name!r} was published under rules {policy.rules}; this evenhand "
                    f"knows rules {RULES}.",
                    hint="use the evenhand that published it, or a newer one.",
                )
            if policy.info.get("promise") != self.product.digest:
                raise PromiseChanged(
                    f"epoch {policy.epoch} of product {self.product.name!r} was published under another promise than the settings'.",
                    hint="put the settings back, or give the new promise a new product name: a promise holds for a whole life.",
                )
        return lineage

    def _resume(self, lineage: Sequence[Policy]) -> None:
        """The learner behind the newest policy: its checkpoint, and each closed cohort as it was
        known at its closing.
        """
        closed: list[Block] = []
        for before, after in itertools.pairwise(lineage):
            then, now = _closing(before), _closing(after)
            if before.rules == RULES:
                rows = self._rows(then.closed, now.closed, known=now.upto)
                closed += self._blocks(rows, then.people)
        policies = [policy_from_json(policy.document) for policy in lineage]
        self._learner.resume(self.ledger.checkpoint(lineage[-1]), policies, closed)

    def _succeed(self, upto: int, at: float) -> None:
        """A new life takes over a lineage of older rules: what was booked stays booked, and only
        people decided from now on count.
        """
        lineage = self._lineage()
        last = lineage[-1]
        people = self.ledger.count_usable(*self._names, upto=upto)
        notes = (note for policy in lineage for note in policy.info.get("notes", ()))
        lives = [int(life) for note in notes for life in re.findall(r"this is life (\d+)", note)]
        self._learner = self.product.learner()
        self._learner.succeed(
            [policy_from_json(policy.document) for policy in lineage],
            [Booking(**entry) for entry in last.info["delta"]],
            people,
            f"epochs 1 to {last.epoch} were published under rules {last.rules}, and rules {RULES} hold now",
            lives=max(lives, default=1),
        )
        self._closing = Closing(upto, at, people, upto, people)

    def _close(self, upto: int, at: float) -> None:
        """Feed what has matured by `at`, as it was known at row `upto`."""
        seen = self._closing
        rows = self._rows(seen.closed, upto, known=upto)
        closed = list(itertools.takewhile(lambda row: self._matured(row, at), rows))
        rounds = seen.people + len(rows)
        self._learner.replay(self._blocks(closed, seen.people), rounds, at=at)
        last = closed[-1].seq if closed else seen.closed
        self._closing = Closing(upto, at, rounds, last, seen.people + len(closed))

    def _rows(self, after: int, upto: int, *, known: int) -> list[Row]:
        """Every usable decision of the rows after `after` up to `upto`, with what had been told
        about it by row `known`.
        """
        found = self.ledger.history(
            *self._names, after=after, upto=known, maturity=self.product.maturity
        )
        rows = list(itertools.takewhile(lambda row: row.seq <= upto, found))
        usable = self.ledger.count_usable(*self._names, after=after, upto=upto)
        if len(rows) != usable:
            raise Damaged(
                f"the history of rows {after + 1} to {upto} gives {len(rows)} decisions, but {usable} are usable; "
                "a certificate looks at everybody.",
                hint="verify the ledger (evenhand audit verify --deep).",
            )
        return rows

    def _blocks(self, rows: Sequence[Row], first: int) -> list[Block]:
        lineage = {p.epoch: p.id for p in self.ledger.policies(*self._names) if p.in_lineage}
        return list(blocks_of(rows, lineage, first=first, columns=len(self.product.features)))

    def _something_matured(self) -> bool:
        """Whether a closing would see anybody new; without, it would only renew the policy."""
        first = next(iter(self.ledger.history(*self._names, after=self._closing.closed)), None)
        return first is not None and self._matured(
            first, max(self.ledger.clock(), self.ledger.head().at)
        )

    def _matured(self, row: Row, at: float) -> bool:
        window = self.product.maturity
        return window is None or row.at + window <= at


def _closing(policy: Policy) -> Closing:
    return Closing(**policy.info["closing"])


def _stream(name: str, test: ConstancyTest) -> Json:
    """How much speaks against a stream being constant, and how much would be an alarm."""
    people, limit = int(sum(test.total)), -math.log(test.false_alarm)
    return {
        "stream": name,
        "people": people,
        "evidence": test.peak,
        "alarm_at": limit,
        "alarm": test.alarmed,
    }


def blocks_of(
    rows: Sequence[Row], lineage: Mapping[int, str], *, first: int, columns: int
) -> Iterator[Block]:
    """All of the decisions as the learner's blocks, one for each run of rows of one epoch, numbered
    from `first` on without a gap.

    Whoever was erased keeps the place: draw and probability stay, the features are zeros, the group
    and the label are unknown. A row whose policy is not the one that the lineage has for its epoch
    is Damaged: it cannot be left out, and nobody knows how it was drawn.
    """
    for row in rows:
        if lineage.get(row.epoch) != row.policy:
            raise Damaged(
                f"decision {row.seq} was drawn by policy {row.policy} of epoch {row.epoch}, which is not in the lineage.",
                hint="verify the ledger (evenhand audit verify --deep).",
            )
    for epoch, run in itertools.groupby(rows, key=lambda row: row.epoch):
        found = list(run)
        yield _block(epoch, found, first, columns)
        first += len(found)


def _block(epoch: int, rows: list[Row], first: int, columns: int) -> Block:
    group = np.empty(len(rows), dtype=object)
    group[:] = [row.group for row in rows]
    left = [row for row in rows if not row.erased]
    priced = bool(left) and all(row.prices is not None for row in left)
    prices = np.array([row.prices or (0.0, 0.0) for row in rows], dtype=np.float64)
    return Block(
        first=first,
        epoch=epoch,
        features=np.array([row.features or (0.0,) * columns for row in rows], dtype=np.float64),
        group=group,
        accept=np.array([row.accept for row in rows], dtype=bool),
        acceptance=np.array([row.acceptance for row in rows], dtype=np.float64),
        prices=Prices(*prices.T) if priced else None,
        label=np.array([0 if row.erased else row.label for row in rows], dtype=np.int64),
        logged=np.zeros(len(rows), dtype=bool),
        audit=np.array([row.audit for row in rows], dtype=bool),
        at=rows[-1].at,
        overruled=np.array([row.overruled for row in rows], dtype=bool),
        erased=np.array([row.erased for row in rows], dtype=bool),
        settled=np.array([row.settled for row in rows], dtype=np.int64),
        group_late=np.array([row.group_late for row in rows], dtype=bool),
    )
