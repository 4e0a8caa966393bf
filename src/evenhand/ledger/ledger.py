"""The ledger: one object through which decisions, outcomes, policies and certificates are written
and read. See `docs/ledger.md`.
"""

import asyncio
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Self, TypeVar, cast

from sqlalchemy import Connection, select

from evenhand.canonical import canonical_digest
from evenhand.contracts import Json
from evenhand.ledger import erasing, history, publishing
from evenhand.ledger.chain import Transaction, read_head
from evenhand.ledger.database import (
    CERTIFICATES,
    CHECKPOINTS,
    EVENTS,
    POLICIES,
    WINDOWS,
    Store,
    migrate,
    open_store,
)
from evenhand.ledger.decision_draw import Drawer
from evenhand.ledger.history import FOREVER, Explained
from evenhand.ledger.keyring import Entropy, Keyring, Reserve
from evenhand.ledger.outcome_status import Report, Reporter, Told, Verdict
from evenhand.ledger.records import (
    Active,
    Answer,
    Application,
    Asked,
    CertificateRow,
    Clock,
    Counts,
    Event,
    Head,
    LateGroup,
    Lease,
    Overruled,
    Policy,
    Render,
    Row,
    SignedHead,
    Terms,
    Window,
    WindowPlan,
    render_answer,
    require_json,
    require_name,
)
from evenhand.ledger.refusals import Damaged, Invalid, NotFound, Refusal, TooEarly
from evenhand.ledger.writer import Job, Writer

Kind = TypeVar("Kind")


class Ledger:
    """Append-only; open it with `Ledger.open`. Writing methods return when what they wrote is on
    the disk.
    """

    writer_class: type[Writer] = Writer

    def __init__(
        self,
        store: Store,
        *,
        keyring: Keyring,
        clock: Clock,
        windows: WindowPlan,
        render: Render,
        entropy: Entropy,
    ) -> None:
        self.store, self.keyring, self.clock, self.entropy, self.window_plan = (
            store,
            keyring,
            clock,
            entropy,
            windows,
        )
        with store.writer.begin() as connection:
            if migrate(connection):
                self._write_genesis(self._transaction(connection))
        self.id, public_key = self._genesis()
        if public_key != keyring.public_key:
            raise Damaged(
                f"this ledger was begun by the holder of {public_key}; the keyring given is that of {keyring.public_key}.",
                hint="load the keyring that belongs to the ledger.",
            )
        self._drawer = Drawer(self.id, keyring, windows, render, Reserve(entropy))
        self._reporter = Reporter(keyring, entropy)
        fail_stop = store.path is not None
        self._writer = self.writer_class(
            store.writer,
            self._transaction,
            self._drawer.draw,
            self._drawer.forget,
            fail_stop=fail_stop,
        )

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str],
        *,
        keyring: Keyring,
        clock: Clock,
        windows: WindowPlan | None = None,
        render: Render = render_answer,
        entropy: Entropy = os.urandom,
    ) -> Self:
        """Open a ledger, or begin one: `where` is a path (SQLite) or a URL of PostgreSQL."""
        store = open_store(where)
        try:
            return cls(
                store,
                keyring=keyring,
                clock=clock,
                windows=windows or WindowPlan(),
                render=render,
                entropy=entropy,
            )
        except BaseException:
            store.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is queued, and let go of the files."""
        self._writer.close()
        self.store.close()

    def _transaction(self, connection: Connection) -> Transaction:
        return Transaction(connection, self.clock(), self.keyring.head_seal)

    def _write_genesis(self, transaction: Transaction) -> None:
        info = {
            "ledger": self.entropy(16).hex(),
            "public_key": self.keyring.public_key,
            "format": 1,
        }
        publishing.append_event(transaction, "genesis", "evenhand", "", info=info)
        transaction.flush()

    def _genesis(self) -> tuple[str, str]:
        with self.store.writer.begin() as connection:
            row = connection.execute(
                select(EVENTS.c.body).where(EVENTS.c.seq == 1)
            ).scalar_one_or_none()
        if row is None:
            raise Damaged(
                "the first row of the ledger is missing.", hint="restore it from a backup."
            )
        info = json.loads(row)["info"]
        return info["ledger"], info["public_key"]

    # writing

    def _write(self, work: Callable[[Transaction], Kind], *, tidy: bool = False) -> Kind:
        return cast(Kind, self._writer.submit(Job(work=work, tidy=tidy)).future.result())

    @property
    def broken(self) -> str | None:
        """Why nothing is written any more, for the health check."""
        return self._writer.broken

    # deciding

    def decide(self, application: Application, terms: Terms) -> Answer:
        """Answer one application; the answer is durable when this returns."""
        answer = self.decide_many([(application, terms)])[0]
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def decide_many(self, asked: Sequence[Asked]) -> list[Answer | Refusal]:
        """Answer several in one transaction; a refused one does not stop the others."""
        return self.submit(asked).result()

    def submit(self, asked: Sequence[Asked]) -> "Future[list[Answer | Refusal]]":
        """The same without waiting."""
        return self._writer.submit(Job(asked=list(asked))).future

    async def decide_async(self, asked: Sequence[Asked]) -> list[Answer | Refusal]:
        """The same for an event loop, which is woken once for all who share a commit."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[list[Answer | Refusal]] = loop.create_future()
        self._writer.submit(Job(asked=list(asked), future=cast(Any, waiting), loop=loop))
        return await waiting

    async def write_async(self, work: Callable[[], Kind]) -> Kind:
        """Any other method, in a thread: `await ledger.write_async(lambda: ledger.report(...))`."""
        return await asyncio.to_thread(work)

    def find(self, tenant: str, key: str) -> Answer:
        """The stored answer; NotFound, or Gone."""
        with self.store.reader.connect() as connection:
            return history.known(connection, self.keyring, tenant, key).answer

    def explain(self, tenant: str, key: str) -> Explained:
        """The decision with everything that is known of it."""
        with self.store.reader.connect() as connection:
            return history.explained(
                connection, self.keyring, history.known(connection, self.keyring, tenant, key)
            )

    # outcomes

    def report(self, tenant: str, key: str, report: Report) -> Verdict:
        """Enter one report; see `Verdict.result`."""
        verdict = self.report_many([(tenant, key, report)])[0]
        if isinstance(verdict, Refusal):
            raise verdict
        return verdict

    def report_many(self, told: Sequence[Told]) -> list[Verdict | Refusal]:
        """Enter several in one transaction."""
        return self._write(lambda transaction: self._reporter.report(transaction, told))

    # policies, certificates, operators

    def acquire_lease(self, name: str, holder: str, seconds: float) -> Lease:
        """Take or prolong a lease; LeaseHeld if another holds it."""
        return self._write(
            lambda transaction: publishing.acquire(transaction, name, holder, seconds)
        )

    def publish(
        self,
        tenant: str,
        product: str,
        policy_json: Json,
        *,
        epoch: int,
        parent: str | None,
        checkpoint: Json,
        certificate: Json | None = None,
        info: Json | None = None,
        lease: Lease | None = None,
    ) -> Policy:
        """Publish the next policy of a product, by compare-and-swap on its parent; StalePolicy if
        another was faster.

        checkpoint: the state of the learner behind it, from which a trainer goes on after a restart
        or an erasure. It becomes a row of the chain in the same transaction, and the policy's
        signed record names its digest.
        """
        return self._publish(
            tenant, product, policy_json, epoch, parent, checkpoint, certificate, info, lease
        )

    def register(
        self, tenant: str, product: str, policy_json: Json, info: Json | None = None
    ) -> Policy:
        """A policy outside the lineage: a constant for the kill switch. Nothing was learned for it,
        so it has no checkpoint.
        """
        return self._publish(tenant, product, policy_json, 0, None, None, None, info, None)

    def _publish(
        self,
        tenant: str,
        product: str,
        document: Json,
        epoch: int,
        parent: str | None,
        checkpoint: Json | None,
        certificate: Json | None,
        info: Json | None,
        lease: Lease | None,
    ) -> Policy:
        require_name("tenant", tenant)
        require_name("product", product)
        parts = {
            "the policy": document,
            "the certificate": certificate,
            "the checkpoint": checkpoint,
            "info": info,
        }
        for what, part in parts.items():
            require_json(what, part or {})
        policy = publishing.unsigned(
            tenant,
            product,
            document,
            epoch=epoch,
            parent=parent,
            info=info,
            certificate=certificate,
            checkpoint=checkpoint,
            lineage=checkpoint is not None,
        )
        more: dict[str, Any] = {
            "certificate": certificate,
            "checkpoint": checkpoint,
            "lease": lease,
        }
        return self._write(lambda t: publishing.publish(t, self.keyring, policy, **more))

    def certify(self, tenant: str, product: str, certificate: Json, *, epoch: int) -> int:
        """Record a certificate without a new policy: a renewal, a suspension."""
        require_json("the certificate", certificate)
        return self._write(lambda t: publishing.certify(t, tenant, product, epoch, certificate))

    def operate(
        self,
        tenant: str,
        product: str,
        action: str,
        by: str,
        note: str = "",
        policy: str | None = None,
    ) -> int:
        """Record what an operator or a trainer did; "kill", "revive", "rollback", "shadow" and
        "live" change what is `active`.
        """
        return self._write(
            lambda t: publishing.operate(t, tenant, product, action, by, note, policy)
        )

    def policies(self, tenant: str, product: str) -> list[Policy]:
        """All policies of a product, oldest first."""
        return [
            Policy.from_body(row.seq, json.loads(row.body))
            for row in self._read(publishing.policies_of(tenant, product))
        ]

    def policy(self, policy: str) -> Policy:
        """The policy with that id, as last published."""
        rows = self._read(
            select(POLICIES.c.seq, POLICIES.c.body)
            .where(POLICIES.c.id == policy)
            .order_by(POLICIES.c.seq.desc())
        )
        if not rows:
            raise NotFound(f"no policy has the id {policy}.")
        return Policy.from_body(rows[0].seq, json.loads(rows[0].body))

    def active(self, tenant: str, product: str) -> Active | None:
        """What decides now; None before the first publication."""
        return publishing.active(self.policies(tenant, product), self.events(tenant, product))

    def checkpoint(self, policy: Policy) -> Json:
        """The state of the learner that made a policy; Damaged if it is not the one that the
        policy's signed record names.
        """
        c = CHECKPOINTS.c
        mine = (c.tenant == policy.tenant, c.product == policy.product, c.epoch == policy.epoch)
        found: list[Json] = [
            json.loads(row.body)["checkpoint"] for row in self._read(select(c.body).where(*mine))
        ]
        if len(found) != 1 or canonical_digest(found[0]) != policy.checkpoint:
            raise Damaged(
                f"epoch {policy.epoch} of product {policy.product!r} has no checkpoint with the digest {policy.checkpoint}.",
                hint="verify the ledger: a policy of rules 2 is published together with its checkpoint.",
            )
        return found[0]

    def certificates(self, tenant: str, product: str) -> list[CertificateRow]:
        """All certificates of a product, oldest first."""
        c = CERTIFICATES.c
        rows = self._read(
            select(c.seq, c.at, c.epoch, c.body)
            .where(c.tenant == tenant, c.product == product)
            .order_by(c.seq)
        )
        return [
            CertificateRow(row.seq, row.at, row.epoch, json.loads(row.body)["certificate"])
            for row in rows
        ]

    def events(self, tenant: str | None = None, product: str | None = None) -> list[Event]:
        """What operators, trainers and the ledger did, oldest first."""
        return [
            publishing.event_from(row) for row in self._read(publishing.events_of(tenant, product))
        ]

    def _read(self, statement: Any) -> list[Any]:
        with self.store.reader.connect() as connection:
            return list(connection.execute(statement).all())

    # people, windows, heads

    def erase(self, tenant: str, person: str, by: str) -> int:
        """Destroy everything personal about somebody; their keys are Gone from then on. How many
        decisions they were.
        """
        return self._write(lambda t: erasing.erase(t, self.keyring, tenant, person, by), tidy=True)

    def window(self) -> Window:
        """The current window; its secret's hash is published when this returns."""
        name = self._write(self._drawer.open_window).name
        return next(window for window in self.windows() if window.name == name)

    def windows(self) -> list[Window]:
        """Every window so far."""
        bodies = [
            json.loads(row.body)
            for row in self._read(select(WINDOWS.c.body).order_by(WINDOWS.c.seq))
        ]
        return [
            Window(body["window"], body["starts"], body["ends"], body["commitment"])
            for body in bodies
        ]

    def reveal(self, name: str, by: str) -> bytes:
        """The secret of a window that has ended, for an auditor; that it was revealed is recorded."""
        found = [window for window in self.windows() if window.name == name]
        if not found:
            raise NotFound(f"there is no window {name!r}.")
        return self._write(lambda transaction: self._reveal(transaction, found[0], by))

    def _reveal(self, transaction: Transaction, window: Window, by: str) -> bytes:
        if transaction.now < window.ends:
            raise TooEarly(
                f"window {window.name} ends in {window.ends - transaction.now:.0f} s; until then its secret decides.",
                hint="wait until the window has ended.",
            )
        secret = self.keyring.window_secret(self.id, window.name)
        if hashlib.sha256(secret).hexdigest() != window.commitment:
            raise Damaged(
                f"the keyring does not hold the secret to which window {window.name} is committed."
            )
        publishing.append_event(transaction, "revealed", by, "", info={"window": window.name})
        return secret

    def head(self) -> Head:
        """The end of the chain."""
        with self.store.reader.connect() as connection:
            return read_head(connection)

    def signed_head(self) -> SignedHead:
        """The end of the chain, signed: publish it where the operator cannot change it."""
        return SignedHead.of(self.id, self.head(), self.keyring.public_key, self.keyring.sign)

    def confirm_gap(self, by: str, note: str) -> None:
        """An operator has looked into what a restored ledger is missing; it may draw again."""
        if not note.strip():
            raise Invalid("the note is empty; it must say what was checked.")
        self._write(
            lambda transaction: publishing.append_event(transaction, "gap_confirmed", by, note)
        )

    # learning and counting

    def history(
        self,
        tenant: str,
        product: str,
        *,
        after: int = 0,
        upto: int | None = None,
        decided_before: float = math.inf,
        usable_only: bool = True,
        maturity: float | None = None,
    ) -> Iterator[Row]:
        """Decisions in the order of the chain with the reports up to row `upto` (now): everybody
        whom a certificate may be about.

        maturity: seconds after which a person's own window ends; what was told later changes
        neither `settled` nor `group`.
        """
        last = self.head().seq if upto is None else upto
        return history.history(
            self.store.reader,
            self.keyring,
            tenant,
            product,
            after=after,
            upto=last,
            decided_before=decided_before,
            usable_only=usable_only,
            maturity=maturity,
        )

    def count_usable(
        self, tenant: str, product: str, *, after: int = 0, upto: int | None = None
    ) -> int:
        """How many rows `history` must give; counted by the database from the columns, not by
        reading the rows.
        """
        last = self.head().seq if upto is None else upto
        with self.store.reader.connect() as connection:
            return history.count_usable(connection, tenant, product, after, last)

    def newest_erasure(self, tenant: str, product: str, after: int = 0, upto: int = FOREVER) -> int:
        """The last row after `after` up to `upto` by which decisions of a product were erased;
        `after` if there is none.
        """
        with self.store.reader.connect() as connection:
            return history.newest_erasure(connection, tenant, product, after, upto)

    def count_overrides(self, tenant: str, product: str, upto: int = FOREVER) -> int:
        """How many overrides were reported in rows up to `upto`, those that agree with the draw
        among them.
        """
        with self.store.reader.connect() as connection:
            return history.count_overrides(connection, tenant, product, upto)

    def late_groups(self, tenant: str, product: str, after: int, upto: int) -> list[LateGroup]:
        """Usable decisions whose group is another one at row `upto` than it was at row `after`."""
        with self.store.reader.connect() as connection:
            return history.late_groups(connection, self.keyring, tenant, product, after, upto)

    def overruled(self, tenant: str, product: str, after: int, upto: int) -> list[Overruled]:
        """Usable decisions that people have overruled at row `upto`, and had not at row `after`."""
        with self.store.reader.connect() as connection:
            return history.overruled(connection, self.keyring, tenant, product, after, upto)

    def counts(self, tenant: str, product: str) -> Counts:
        """How many decisions stand where."""
        with self.store.reader.connect() as connection:
            return history.counts(connection, tenant, product)
