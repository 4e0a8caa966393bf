"""The trainer: closes an epoch, learns from the ledger alone, certifies, and publishes by
compare-and-swap under a lease.

    upto     the last row that counts, read before anything is learned
    rounds   the usable decisions up to that row, in the order of the chain, as they were drawn: a
             table of rounds like that of a learner
    step     state, epoch = algorithm.step(state, rounds, now), the same code as in the library
    publish  policy, certificate, state and the closing, in one transaction

A trainer holds nothing that the ledger does not. `catch_up` takes up the newest state with the
people who are left: the sums over closed cohorts, and the bets that were fixed when each epoch was
opened, are those that were published, whoever was erased since. So a trainer that has just started
publishes the same next policy and certificate as one that has been running, bit for bit.

Two trainers never publish the same epoch: the lease keeps the second one waiting, its token fences
off one that was asleep, and the parent's id decides the rest.
"""

import contextlib
import itertools
import logging
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from evenhand.algorithms.certified.drift import next_look
from evenhand.algorithms.certified.state import CertifiedState
from evenhand.contracts import Json
from evenhand.fairness.certificate import known_label
from evenhand.hypotheses import ACCEPT_ALL
from evenhand.hypotheses.models import trusting
from evenhand.learners import CertifiedLearner
from evenhand.policies import Mixture, models_apart, models_inside
from evenhand.rounds import NEVER, PATIENCE, Epoch, Rounds
from evenhand.storage import state_from_json, state_to_json
from evenhand.words import Prices
from evenhand_service.decider import stored_mixture, variants_of
from evenhand_service.ledger import (
    Damaged,
    Lease,
    LeaseHeld,
    Ledger,
    PolicyRecord,
    Row,
    StalePolicy,
)
from evenhand_service.product_changes import require_unchanged
from evenhand_service.settings import Product
from evenhand_service.traces import span

LOG = logging.getLogger("evenhand_service")
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
    def of(cls, policy: PolicyRecord) -> "Closing":
        """The closing that is on record with a policy."""
        return cls(**policy.info["closing"])


class Trainer:
    """Trains, certifies and publishes the policies of one product.

    The methods block, so run them in a thread. Only one call works at a time.

    Parameters
    ----------
    ledger : Ledger
        Where decisions are read and policies are published.
    product : Product
        The product with its guarantee.
    holder : str
        The name of this trainer in the lease.
    lease_seconds : float
        How long the lease is held.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from evenhand_service.ledger import Keyring
    >>> place = Path(tempfile.mkdtemp()) / "ledger.sqlite"
    >>> with Ledger.open(place, keyring=Keyring.generate(), clock=lambda: 1e9) as ledger:
    ...     trainer = Trainer(ledger, Product("loan", ("score",)), "doctest")
    ...     trainer.begin()
    ...     ledger.active("loan").policy.epoch, trainer.due()
    (1, False)
    """

    def __init__(
        self, ledger: Ledger, product: Product, holder: str, *, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self.ledger = ledger
        self.product = product
        self.holder = holder
        self.lease_seconds = lease_seconds
        self._leased: str | None = None
        self._busy = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        learner = self.product.learner()
        self._learner: CertifiedLearner = learner
        # the ledger counts person by person, so all by which it may draw is published at once
        learner.state, epochs = learner.algorithm.with_variants(
            learner.state, learner.rounds.epoch, learner.rounds
        )
        learner.rounds.epochs = list(epochs)
        self._last: PolicyRecord | None = None
        self._closing = Closing()
        self._closed_rows: list[int] = []
        self._look_at = NEVER
        self._erased = 0

    @property
    def learner(self) -> CertifiedLearner:
        """A learner with the state and the people of the newest policy; to be looked at."""
        return self._learner

    # publishing

    def begin(self) -> None:
        """Publish the first policy, if there is none: all applicants are accepted."""
        with self._busy:
            self.catch_up()
            if self._last is None:
                self._publish(self._lease())

    def due(self) -> bool:
        """Whether as many people have been decided as the epoch was planned for.

        Returns
        -------
        bool
            The answer, at the price of one count.
        """
        return self.ledger.counts(self.product.name).usable >= self._learner.epoch.end

    def close_if_due(self) -> PolicyRecord | None:
        """Close the epoch and publish, if it is time and nobody else does.

        Between two closings the drift tests are looked at, where it is time for that.

        Returns
        -------
        PolicyRecord or None
            What was published.
        """
        with self._busy:
            self.catch_up()
            try:
                if self.due():
                    return self.close() if self._somebody_matured() else None
                if self.ledger.counts(self.product.name).usable >= self._look_at:
                    return self._look()
            except (LeaseHeld, StalePolicy):
                pass
            return None

    def _somebody_matured(self) -> bool:
        """A closing that sees nobody new would only renew the policy."""
        waiting = self.ledger.history(self.product.name, after=self._closing.closed)
        now = max(self.ledger.clock(), self.ledger.head().at)
        return any(self._matured(row, now) for row in itertools.islice(waiting, 1))

    def close(self) -> PolicyRecord:
        """Close the epoch now, train, certify and publish.

        Returns
        -------
        PolicyRecord
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
            with span("train", product=self.product.name) as note:
                published = self._step(lease, whole=True)
                assert published is not None  # a whole step publishes
                note(epoch=published.epoch)
            return published

    def _look(self) -> PolicyRecord | None:
        """In the midst of an epoch: feed the drift tests. An alarm is published at once; else
        nothing is kept, and the closing of the epoch feeds them again.
        """
        return self._step(self._lease(), whole=False)

    def _step(self, lease: Lease, *, whole: bool) -> PolicyRecord | None:
        """Let the algorithm step on the people of the ledger, and publish what it opens."""
        self.ledger.require_chain(self._closing.closed)  # or a label may be nobody's
        head = self.ledger.head()
        now = max(self.ledger.clock(), head.at)
        learner = self._learner
        before = learner.state
        try:
            self._read_open_rows(head.seq)
            learner.now = now
            learner.rounds.overdue = whole  # the operator, or the plan, ends the epoch here
            learner.state, epoch = learner.algorithm.step(before, learner.rounds, now)
            if epoch is None or epoch.number == learner.rounds.epoch.number:
                if not whole:
                    learner.state = before
                    self._look_at = max(next_look(learner.rounds.decided), int(1.1 * self._look_at))
                    return None
                epoch = replace(  # nothing new is known: the same policy goes on as a new epoch
                    epoch or learner.rounds.epoch,
                    number=learner.rounds.epoch.number + 1,
                    first_round=learner.rounds.decided,
                )
            learner.state, epochs = learner.algorithm.with_variants(
                learner.state, epoch, learner.rounds
            )
            self._open(epochs, head.seq, now)
            return self._publish(lease)
        except BaseException:
            self._forget()  # what was learned was not published; start again from the ledger
            raise

    def _lease(self) -> Lease:
        name = f"train/{self.product.name}"
        self._leased = name
        return self.ledger.acquire_lease(name, self.holder, self.lease_seconds)

    def release(self) -> None:
        """Give the lease back: who trains next need not wait for its end."""
        with self._busy:
            if self._leased is not None:
                with contextlib.suppress(LeaseHeld):
                    self.ledger.acquire_lease(self._leased, self.holder, 0.0)
            self._leased = None

    def _publish(self, lease: Lease) -> PolicyRecord:
        learner = self._learner
        parent = self._last
        models: dict[str, Json] = {}
        variants = self._register_variants()
        state = state_to_json(learner.state, learner.hypotheses)
        self._last = self.ledger.publish(
            self.product.name,
            models_apart(learner.policy.to_json(), models),
            epoch=learner.epoch.number,
            parent=None if parent is None else parent.id,
            checkpoint=models_apart(state, models),
            certificate=learner.certificate.to_json(),
            info=self._info(models) | variants,
            lease=lease,
            models=models,
        )
        if parent is not None and model_id(parent) != model_id(self._last):
            LOG.warning(
                "product %s: epoch %d is the first that was planned with the model %s, after %s",
                *(self.product.name, self._last.epoch, model_id(self._last), model_id(parent)),
            )
        if parent is not None:
            note = str(self._closing.upto)
            self.ledger.operate(self.product.name, "epoch_closed", self.holder, note=note)
        return self._last

    def _register_variants(self) -> Json:
        """What is published of the counts that must hold, and of the policies that take the place
        of the new one while they are used up.
        """
        if not self._learner.algorithm.gated:
            return {}
        variants = []
        for epoch in self._learner.rounds.epochs[:-1]:
            if epoch.number <= (0 if self._last is None else self._last.epoch):
                continue
            used_up = "quota" if epoch.phase == "quota used up" else "audit_budget"
            models: dict[str, Json] = {}
            document = models_apart(epoch.mixture.to_json(), models)
            record = self.ledger.register(self.product.name, document, {"variant": used_up}, models)
            about = {"used_up": used_up, "phase": epoch.phase}
            variants.append({**about, "epoch": epoch.number, "policy": record.id})
        quota = self.product.hard_quota
        return {
            "counts": {
                "quota": None if quota is None else [quota.count, quota.period],
                "audit_budget": self.product.audit_budget,
                "variants": variants,
            }
        }

    def _info(self, models: Mapping[str, Json]) -> Json:
        """What is published with a policy beside its certificate.

        models: the fitted ones in it and in its checkpoint. Each was fitted by the version that is
        in use now, unless the policy before knew it.
        """
        version = self.product.model_version
        fitted_before = {} if self._last is None else self._last.info.get("fitted_by", {})
        now = None if version is None else version["id"]
        learner = self._learner
        epoch = learner.epoch
        report = learner.report
        return {
            "guarantee": self.product.guarantee,
            "model": version,
            "fitted_by": {sha256: fitted_before.get(sha256, now) for sha256 in sorted(models)},
            "closing": asdict(self._closing),
            "phase": epoch.phase,
            "first_round": epoch.first_round,
            "rounds": min(epoch.rounds, 2**53),
            "look_at": min(epoch.look_at, 2**53),
            "learned_weight": learner.learned_weight,
            "oracle_calls": epoch.oracle_calls,
            "delta": [entry.to_json() for entry in learner.bookings],
            "drift": self._streams(),
            "notes": [
                {"kind": note.kind, "text": note.text, "group": known_label(note.group)}
                for note in report.notes
            ],
            "forecast": list(report.forecast),
        }

    def _streams(self) -> list[Json]:
        """The streams of the drift tests, each with the rule that it is about, in words."""
        watch = self._learner.state.drift
        if watch is None:
            return []
        streams = []
        for name, test in watch.monitor.streams.items():
            rule = watch.rule_of(name)
            streams.append(
                {
                    "stream": str(name),
                    "rule": None if rule is None else rule.describe(self.product.slots),
                    "people": int(sum(test.total)),
                    "evidence": test.peak,
                    "alarm_at": -math.log(test.false_alarm),
                    "alarm": test.alarmed,
                }
            )
        return streams

    # learning

    def catch_up(self) -> None:
        """Take up the newest policy on record, if it is new here or somebody was erased since.

        Nothing of an erased person stays in memory, and nothing that was certified is computed
        again.

        Raises
        ------
        GuaranteeChanged
            If a policy was published under another guarantee.
        Damaged
            If a policy does not verify.
        """
        with self._busy:
            lineage = self._lineage()
            erased = self.ledger.newest_erasure(self.product.name, self._erased)
            seen = self._last is not None and lineage and self._last.seq == lineage[-1].seq
            if not lineage or (seen and erased == self._erased):
                self._erased = erased
                return
            self._forget()
            self._erased = erased
            self._take_up(lineage)

    def _take_up(self, lineage: list[PolicyRecord]) -> None:
        """The state of the newest policy, and the people of the closed cohorts, each as they were
        known at its closing.
        """
        newest = lineage[-1]
        if len(lineage) > 1:
            self.ledger.require_chain()
        learner = self._learner
        written = self.ledger.checkpoint(newest)
        with trusting(self.product.trusted):
            whole = models_inside(written, self.ledger.models(written))
            state = state_from_json(whole, learner.hypotheses)
        if not isinstance(state, CertifiedState) or state.guarantee != learner.guarantee:
            raise Damaged(
                f"the state of epoch {newest.epoch} was made under another guarantee than the "
                "settings'.",
                hint="verify the ledger (evenhand audit verify --deep).",
            )
        for before, after in itertools.pairwise(lineage):
            now = Closing.of(after)
            self._append(self._rows(Closing.of(before).closed, now.closed, known=now.upto))
        learner.state = state
        learner.rounds.epochs = [one for policy in lineage for one in self._epochs(policy)]
        self._last = newest
        self._closing = Closing.of(newest)
        self._look_at = learner.rounds.epoch.look_at

    def _epochs(self, policy: PolicyRecord) -> list[Epoch]:
        """The variants of a published policy, and its own epoch."""
        info = policy.info
        numbered = [
            (one["epoch"], one["phase"], self.ledger.policy(one["policy"]))
            for one in variants_of(policy)
        ]
        found = []
        for number, phase, record in [*numbered, (policy.epoch, info["phase"], policy)]:
            mixture = self._mixture(record)
            found.append(
                Epoch(
                    number,
                    phase,
                    info["first_round"],
                    info["rounds"],
                    mixture,
                    audit=mixture.weight_of(ACCEPT_ALL),
                    closed=Closing.of(policy).people,
                    look_at=info["look_at"],
                )
            )
        return found

    def _mixture(self, policy: PolicyRecord) -> Mixture:
        return stored_mixture(self.ledger, policy, self.product.trusted)

    def _lineage(self) -> list[PolicyRecord]:
        """The published policies, oldest first, each signed by this ledger's key and under this
        product's guarantee.
        """
        lineage = [
            policy for policy in self.ledger.policies(self.product.name) if policy.in_lineage
        ]
        for policy in lineage:
            policy.verify(self.ledger.keyring.public_key)
        require_unchanged(lineage, self.product, self.ledger.keyring.public_key)
        return lineage

    def _read_open_rows(self, upto: int) -> None:
        """The people who have not closed, as they are known at row `upto`."""
        self._learner.rounds.drop_from(self._closing.people)
        del self._closed_rows[self._closing.people :]
        self._append(self._rows(self._closing.closed, upto, known=upto))
        self._settle_closed_rows(upto)

    def _settle_closed_rows(self, upto: int) -> None:
        """Closed people whom the drift tests have not been fed: the certificate keeps what was
        known at their closing, but their category is settled at the end of their own patience.
        """
        watch = self._learner.state.drift
        if watch is None or watch.fed_to >= self._closing.people:
            return
        before = self._closed_rows[watch.fed_to - 1] if watch.fed_to else 0
        rows = self._rows(before, upto, known=upto)
        settled = settled_labels(rows, self.product.maturity)
        closed = slice(watch.fed_to, self._closing.people)
        self._learner.rounds["settled"][closed] = settled[: closed.stop - closed.start]

    def _open(self, epochs: Sequence[Epoch], upto: int, now: float) -> None:
        """The next epoch begins, after its variants; what has closed is on record with it."""
        learner = self._learner
        for epoch in epochs:
            learner.rounds.open(
                replace(epoch, policy=replace(epoch.mixture, schema=self.product.schema))
            )
        people = learner.state.closed_to
        self._closing = Closing(
            upto=upto,
            at=now,
            rounds=learner.rounds.decided,
            closed=self._closed_rows[people - 1] if people else self._closing.closed,
            people=people,
        )
        self._look_at = epoch.look_at

    def _rows(self, after: int, upto: int, *, known: int) -> list[Row]:
        """Every usable decision of the rows after `after` up to `upto`, with what had been reported
        about it by row `known`. Those in archives are kept as they were known when they closed, and
        nobody reads them for another row.
        """
        archived = self.ledger.past(self.product.name, after, upto)
        history = self.ledger.history(
            self.product.name, after=after, upto=known, maturity=self.product.maturity
        )
        rows = archived + list(itertools.takewhile(lambda row: row.seq <= upto, history))
        usable = self.ledger.count_usable(self.product.name, after=after, upto=upto)
        if len(rows) != usable:
            raise Damaged(
                f"the history of rows {after + 1} to {upto} gives {len(rows)} decisions, "
                f"but {usable} are usable; a certificate looks at all people.",
                hint="verify the ledger (evenhand audit verify --deep).",
            )
        return rows

    def _append(self, rows: Sequence[Row]) -> None:
        """Decisions of the ledger become the next rounds of the table."""
        if not rows:
            return
        published = [p for p in self.ledger.policies(self.product.name) if p.in_lineage]
        lineage = {policy.epoch: policy.id for policy in published}
        for policy in published:
            lineage |= {one["epoch"]: one["policy"] for one in variants_of(policy)}
        # which policy drew an archived decision was compared before it left
        rows = [
            replace(row, policy=lineage.get(row.epoch, "")) if row.status == "archived" else row
            for row in rows
        ]
        append_rows(
            self._learner.rounds,
            rows,
            lineage,
            columns=self.product.width,
            maturity=self.product.maturity,
        )
        self._closed_rows += [row.seq for row in rows]

    def finished(self) -> list[Row]:
        """Read the decisions with which the learner has finished.

        They are closed, and the drift tests have been fed with them; what is told of them later
        changes nothing. So they may go into an archive.

        Returns
        -------
        list of Row
            In the order of the chain, from the first usable decision on, each as it was known when
            it was closed.
        """
        with self._busy:
            self.catch_up()
            rows: list[Row] = []
            for before, after in itertools.pairwise(self._lineage()):
                now = Closing.of(after)
                rows += self._rows(Closing.of(before).closed, now.closed, known=now.upto)
            watch = self._learner.state.drift
            return rows if watch is None else rows[: watch.fed_to]

    def _matured(self, row: Row, at: float) -> bool:
        window = self.product.maturity
        return window is None or row.at + window <= at


def model_id(policy: PolicyRecord) -> str | None:
    """The version of the model of one's own with which a policy was planned; see
    `Product.model_version`.
    """
    version = policy.info.get("model")
    return None if version is None else str(version["id"])


def append_rows(
    rounds: Rounds,
    rows: Sequence[Row],
    lineage: Mapping[int, str],
    *,
    columns: int,
    maturity: float | None,
) -> None:
    """All of the decisions become the next rounds of the table, in the order of the chain.

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
    left = [row for row in rows if not row.erased]
    priced = bool(left) and all(row.prices is not None for row in left)
    prices = np.array([row.prices or (0.0, 0.0) for row in rows], dtype=np.float64)
    features = [row.features or (0.0,) * columns for row in rows]
    group = np.empty(len(rows), dtype=object)
    group[:] = [None if row.erased else row.group for row in rows]
    rounds.append_rows(
        np.array(features, dtype=np.float64),
        group,
        {
            "epoch": np.array([row.epoch for row in rows]),
            "at": np.array([row.at for row in rows]),
            "call_left": np.array(ends_of_calls(rows)) - np.arange(1, len(rows) + 1),
            "accept": np.array([row.accept for row in rows]),
            "acceptance": np.array([row.acceptance for row in rows]),
            "audit": np.array([row.audit for row in rows]),
            "label": np.array([0 if row.erased else row.label for row in rows]),
            "settled": np.array(settled_labels(rows, maturity)),
            "overruled": np.array([row.overruled for row in rows]),
            "erased": np.array([row.erased for row in rows]),
            "group_late": np.array([row.group_late for row in rows]),
            "billed": np.array([row.billed for row in rows]),
        },
        Prices(prices[:, 0], prices[:, 1]) if priced else None,
    )


def ends_of_calls(rows: Sequence[Row]) -> list[int]:
    """The number of rows up to the end of the call that decided each: a batch is one transaction,
    with one time, and nobody can report an outcome before it has returned.
    """
    ends = [0] * len(rows)
    end = len(rows)
    for place in reversed(range(len(rows))):
        if place + 1 < len(rows) and rows[place].at != rows[place + 1].at:
            end = place + 1
        ends[place] = end
    return ends


def settled_labels(rows: Sequence[Row], maturity: float | None) -> list[int]:
    """The category of each person for the drift tests: the label at the end of the person's own
    window; without a window, the label if it had come when PATIENCE more people were decided.
    """
    if maturity is not None:
        return [row.settled for row in rows]
    settled = []
    for row, end in zip(rows, ends_of_calls(rows), strict=True):
        later = rows[end - 1 + PATIENCE] if end - 1 + PATIENCE < len(rows) else None
        in_time = later is None or (row.label_at is not None and row.label_at <= later.at)
        settled.append(row.settled if in_time else 0)
    return settled
