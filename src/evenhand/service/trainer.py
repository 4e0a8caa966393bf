"""The trainer: closes an epoch, learns from the ledger alone, certifies, and publishes by
compare-and-swap under a lease.

    upto     the last row that counts, read before anything is learned
    closed   the usable decisions up to that row whose maturity window has passed: all of them, in
             the order of the chain, as they were drawn
    plan     CertifiedLearner.replay(closed, rounds), the same code as in the library
    publish  policy, certificate, checkpoint and the closing, in one transaction

A trainer holds nothing that the ledger does not. `catch_up` takes up the newest checkpoint with the
people who are left: the sums over closed cohorts are those that were published, whoever was erased
since. So a trainer that has just started publishes the same next policy and certificate as one that
has been running, bit for bit. A lineage that ends under older rules is not learned from: a new life
takes it over.

Two trainers never publish the same epoch: the lease keeps the second one waiting, its token fences
off one that was asleep, and the parent's id decides the rest.
"""

import contextlib
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
from evenhand.hypotheses.models import trusting
from evenhand.learners import CertifiedLearner
from evenhand.learners.rounds import Block
from evenhand.ledger import RULES, Damaged, Lease, LeaseHeld, Ledger, Policy, Row, StalePolicy
from evenhand.policies import Mixture
from evenhand.policies.mixture import models_apart, models_inside
from evenhand.service.decider import stored_mixture
from evenhand.service.settings import Product
from evenhand.words import Prices

LEASE_SECONDS = 60.0


@dataclass(frozen=True)
class Closing:
    """What a closing saw: rows up to `upto`, at time `at`, `rounds` usable decisions in all, of
    which `people` have been closed, the last of them in row `closed`.
    """

    upto: int = 0
    at: float = 0.0
    rounds: int = 0
    closed: int = 0
    people: int = 0

    @classmethod
    def of(cls, policy: Policy) -> "Closing":
        """The closing that is on record with a policy."""
        return cls(**policy.info["closing"])


class PromiseChanged(EvenhandError):
    """The settings promise something else than the ledger was begun with."""


class Trainer:
    """Trains, certifies and publishes the policies of one product.

    The methods block, so run them in a thread. Only one call works at a time.

    Parameters
    ----------
    ledger : Ledger
        Where decisions are read and policies are published.
    product : Product
        The product with its promise.
    holder : str
        The name of this trainer in the lease.
    lease_seconds : float
        How long the lease is held.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from evenhand.ledger import Keyring
    >>> place = Path(tempfile.mkdtemp()) / "ledger.sqlite"
    >>> with Ledger.open(place, keyring=Keyring.generate(), clock=lambda: 1e9) as ledger:
    ...     trainer = Trainer(ledger, Product("bank", "loan", ("score",)), "doctest")
    ...     trainer.begin()
    ...     ledger.active("bank", "loan").policy.epoch, trainer.due()
    (1, False)
    """

    def __init__(
        self, ledger: Ledger, product: Product, holder: str, *, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self.ledger, self.product = ledger, product
        self.holder, self.lease_seconds = holder, lease_seconds
        self._leased: str | None = None
        self._names = product.names
        self._busy = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._learner: CertifiedLearner = self.product.learner()
        self._last: Policy | None = None
        self._closing = Closing()
        self._erased = 0

    @property
    def learner(self) -> CertifiedLearner:
        """The learner as far as it has caught up; to be looked at, not played."""
        return self._learner

    @property
    def older_rules(self) -> int | None:
        """The rules of the newest policy, if they are not the present ones: then a closing begins a
        new life.
        """
        return None if self._last is None or self._last.rules == RULES else self._last.rules

    # publishing

    def begin(self) -> None:
        """Publish the first policy, if there is none: everybody is accepted."""
        with self._busy:
            self.catch_up()
            if self._last is None:
                self._publish(self._lease())

    def due(self) -> bool:
        """Tell whether as many people have been decided as the epoch was planned for.

        Returns
        -------
        bool
            The answer, at the price of one count.
        """
        epoch = self._learner.epoch
        return self.ledger.counts(*self._names).usable >= epoch.first_round + epoch.rounds

    def close_if_due(self) -> Policy | None:
        """Close the epoch and publish, if it is time and nobody else does.

        A lineage of older rules is succeeded at once.

        Returns
        -------
        Policy or None
            What was published.
        """
        with self._busy:
            self.catch_up()
            if self.older_rules is None:
                if not self.due():
                    return None
                # a closing that sees nobody new would only renew the policy
                waiting = self.ledger.history(*self._names, after=self._closing.closed)
                now = max(self.ledger.clock(), self.ledger.head().at)
                if not any(self._matured(row, now) for row in itertools.islice(waiting, 1)):
                    return None
            try:
                return self.close()
            except (LeaseHeld, StalePolicy):
                return None

    def close(self) -> Policy:
        """Close the epoch now, train, certify and publish.

        Returns
        -------
        Policy
            What was published.

        Raises
        ------
        LeaseHeld, StalePolicy
            If another trainer is at work, or was faster.
        """
        with self._busy:
            lease = self._lease()
            self.catch_up()
            if self._last is None:
                return self._publish(lease)
            self.ledger.require_chain(self._closing.closed)  # or a label may be nobody's
            head = self.ledger.head()
            step = self._close if self.older_rules is None else self._succeed
            try:
                step(head.seq, max(self.ledger.clock(), head.at))
                return self._publish(lease)
            except BaseException:
                self._forget()  # what was learned was not published; start again from the ledger
                raise

    def _lease(self) -> Lease:
        name = f"train/{self.product.tenant}/{self.product.name}"
        self._leased = name
        return self.ledger.acquire_lease(name, self.holder, self.lease_seconds)

    def release(self) -> None:
        """Give the lease back: who trains next need not wait for its end."""
        with self._busy:
            if self._leased is not None:
                with contextlib.suppress(LeaseHeld):
                    self.ledger.acquire_lease(self._leased, self.holder, 0.0)
            self._leased = None

    def _publish(self, lease: Lease) -> Policy:
        learner, parent = self._learner, self._last
        models: dict[str, Json] = {}
        self._last = self.ledger.publish(
            *self._names,
            models_apart(learner.policy.to_json(), models),
            epoch=learner.epoch.number,
            parent=None if parent is None else parent.id,
            checkpoint=models_apart(learner.checkpoint(), models),
            certificate=learner.certificate.to_json(),
            info=self._info(),
            lease=lease,
            models=models,
        )
        if parent is not None:
            note = str(self._closing.upto)
            self.ledger.operate(*self._names, "epoch_closed", self.holder, note=note)
        return self._last

    def _info(self) -> Json:
        """What is published with a policy beside its certificate."""
        learner = self._learner
        epoch, drift, report = learner.epoch, learner.drift, learner.report
        return {
            "promise": self.product.digest,
            "closing": asdict(self._closing),
            "phase": epoch.phase,
            "first_round": epoch.first_round,
            "rounds": min(epoch.rounds, 2**53),
            "learned_weight": learner.learned_weight,
            "oracle_calls": epoch.oracle_calls,
            "delta": [entry.to_json() for entry in learner.bookings],
            "drift": [
                {
                    "stream": name,
                    "rule": self._watched_rule(name),
                    "people": int(sum(test.total)),
                    "evidence": test.peak,
                    "alarm_at": -math.log(test.false_alarm),
                    "alarm": test.alarmed,
                }
                for name, test in ({} if drift is None else drift.streams).items()
            ],
            "notes": list(report.notes),
            "forecast": list(report.forecast),
        }

    def _watched_rule(self, stream: str) -> str | None:
        """The rule that a stream of the drift test is about, in words."""
        watched = self._learner.state.run.watched
        for number, rule in zip(watched.numbers, watched.rules, strict=True) if watched else ():
            if stream.endswith(f" accepted by rule {number}"):
                return rule.describe(self.product.slots)
        return None

    # learning

    def catch_up(self) -> None:
        """Take up the newest policy on record, if it is new here or somebody was erased since.

        Nothing of an erased person stays in memory, and nothing that was certified is computed
        again.

        Raises
        ------
        PromiseChanged
            If a policy was published under another promise.
        Damaged
            If a policy does not verify, or was published under newer rules.
        """
        with self._busy:
            lineage = self._lineage()
            erased = self.ledger.newest_erasure(*self._names, self._erased)
            seen = self._last is not None and lineage and self._last.seq == lineage[-1].seq
            if not lineage or (seen and erased == self._erased):
                self._erased = erased
                return
            self._forget()
            self._erased, newest = erased, lineage[-1]
            if newest.rules == RULES:
                if len(lineage) > 1:
                    self.ledger.require_chain()
                # each closed cohort as it was known at its closing
                cohorts: list[Block] = []
                for before, after in itertools.pairwise(lineage):
                    if before.rules == RULES:
                        then, now = Closing.of(before), Closing.of(after)
                        rows = self._rows(then.closed, now.closed, known=now.upto)
                        cohorts += self._blocks(rows, then.people)
                policies = [self._mixture(policy) for policy in lineage]
                written = self.ledger.checkpoint(newest)
                with trusting(self.product.trusted):
                    whole = models_inside(written, self.ledger.models(written))
                    self._learner.resume(whole, policies, cohorts)
            self._last, self._closing = newest, Closing.of(newest)

    def _mixture(self, policy: Policy) -> Mixture:
        return stored_mixture(self.ledger, policy, self.product.trusted)

    def _lineage(self) -> list[Policy]:
        """The published policies, oldest first, each signed by this ledger's key and under this
        product's promise.
        """
        lineage = [policy for policy in self.ledger.policies(*self._names) if policy.in_lineage]
        for policy in lineage:
            policy.verify(self.ledger.keyring.public_key)
            which = f"epoch {policy.epoch} of product {self.product.name!r} was published under"
            if policy.rules > RULES:
                raise Damaged(
                    f"{which} rules {policy.rules}; this evenhand knows rules {RULES}.",
                    hint="use the evenhand that published it, or a newer one.",
                )
            if policy.info.get("promise") != self.product.digest:
                raise PromiseChanged(
                    f"{which} another promise than the settings'.",
                    hint="put the settings back, or give the new promise a new product name: "
                    "a promise holds for a whole life.",
                )
        return lineage

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
            [self._mixture(policy) for policy in lineage],
            [Booking(**entry) for entry in last.info["delta"]],
            people,
            f"epochs 1 to {last.epoch} were published under rules {last.rules}, "
            f"and rules {RULES} hold now",
            lives=max(lives, default=1),
        )
        self._closing = Closing(upto, at, people, upto, people)

    def _close(self, upto: int, at: float) -> None:
        """Feed what has matured by `at`, as it was known at row `upto`."""
        seen = self._closing
        rows = self._rows(seen.closed, upto, known=upto)
        matured = list(itertools.takewhile(lambda row: self._matured(row, at), rows))
        rounds = seen.people + len(rows)
        self._learner.replay(self._blocks(matured, seen.people), rounds, at=at)
        last = matured[-1].seq if matured else seen.closed
        self._closing = Closing(upto, at, rounds, last, seen.people + len(matured))

    def _rows(self, after: int, upto: int, *, known: int) -> list[Row]:
        """Every usable decision of the rows after `after` up to `upto`, with what had been told
        about it by row `known`.
        """
        history = self.ledger.history(
            *self._names, after=after, upto=known, maturity=self.product.maturity
        )
        rows = list(itertools.takewhile(lambda row: row.seq <= upto, history))
        usable = self.ledger.count_usable(*self._names, after=after, upto=upto)
        if len(rows) != usable:
            raise Damaged(
                f"the history of rows {after + 1} to {upto} gives {len(rows)} decisions, "
                f"but {usable} are usable; a certificate looks at everybody.",
                hint="verify the ledger (evenhand audit verify --deep).",
            )
        return rows

    def _blocks(self, rows: Sequence[Row], first: int) -> list[Block]:
        lineage = {p.epoch: p.id for p in self.ledger.policies(*self._names) if p.in_lineage}
        return list(blocks_of(rows, lineage, first=first, columns=self.product.width))

    def _matured(self, row: Row, at: float) -> bool:
        window = self.product.maturity
        return window is None or row.at + window <= at


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
                f"decision {row.seq} was drawn by policy {row.policy} of epoch {row.epoch}, "
                "which is not in the lineage.",
                hint="verify the ledger (evenhand audit verify --deep).",
            )
    for epoch, run in itertools.groupby(rows, key=lambda row: row.epoch):
        people = list(run)
        group = np.empty(len(people), dtype=object)
        group[:] = [row.group for row in people]
        left = [row for row in people if not row.erased]
        priced = bool(left) and all(row.prices is not None for row in left)
        prices = np.array([row.prices or (0.0, 0.0) for row in people], dtype=np.float64)
        features = [row.features or (0.0,) * columns for row in people]
        yield Block(
            first=first,
            epoch=epoch,
            features=np.array(features, dtype=np.float64),
            group=group,
            accept=np.array([row.accept for row in people], dtype=bool),
            acceptance=np.array([row.acceptance for row in people], dtype=np.float64),
            prices=Prices(*prices.T) if priced else None,
            label=np.array([0 if row.erased else row.label for row in people], dtype=np.int64),
            logged=np.zeros(len(people), dtype=bool),
            audit=np.array([row.audit for row in people], dtype=bool),
            at=people[-1].at,
            overruled=np.array([row.overruled for row in people], dtype=bool),
            erased=np.array([row.erased for row in people], dtype=bool),
            settled=np.array([row.settled for row in people], dtype=np.int64),
            group_late=np.array([row.group_late for row in people], dtype=bool),
        )
        first += len(people)
