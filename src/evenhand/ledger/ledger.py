"""The ledger: one object through which decisions, outcomes, policies and certificates are written
and read. See `docs/ledger.md`.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Self, TypeVar, cast

from sqlalchemy import select

from evenhand.contracts import Json
from evenhand.ledger import decision_draw, publishing
from evenhand.ledger.chain import Clock, Job, Transaction, Writer
from evenhand.ledger.database import EVENTS, Store, migrate, open_store
from evenhand.ledger.decision_draw import (
    Answer,
    Application,
    Asked,
    Drawer,
    Render,
    Terms,
    Window,
    WindowPlan,
    render_answer,
)
from evenhand.ledger.history import LedgerReader
from evenhand.ledger.keyring import Entropy, Keyring, Reserve
from evenhand.ledger.outcome_status import KeyedReport, Report, Reporter, Verdict
from evenhand.ledger.publishing import Lease, PolicyRecord, Publication
from evenhand.ledger.refusals import Damaged, Invalid, NotFound, Refusal, TooEarly

Kind = TypeVar("Kind")


class Ledger(LedgerReader):
    """An append-only ledger of decisions; open it with `Ledger.open`.

    All methods may be called from any thread. Writing methods return when what they wrote is on the
    disk.

    Parameters
    ----------
    store : Store
        The connections to the database.
    keyring : Keyring
        The keyring with which the ledger was begun.
    clock : callable
        Gives the time, in seconds.
    windows : WindowPlan
        When windows begin and end.
    render : callable
        Gives the bytes of an answer from the decision (`Drawn`).
    entropy : callable
        Gives so many random bytes.

    Raises
    ------
    Damaged
        If the keyring is not that of the ledger, or the first row is missing.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.ledger import Application, Keyring, Label, Ledger, Terms, verify
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(
    ...         f"{folder}/ledger.sqlite", keyring=Keyring.generate(), clock=lambda: 0.0
    ...     ) as ledger,
    ... ):
    ...     policy = ledger.publish(
    ...         "bank", "loan", {"accept": "all"}, epoch=1, parent=None, checkpoint={}
    ...     )
    ...     application = Application("bank", "k1", "p1", "loan", [0.5])
    ...     answer = ledger.decide(application, Terms(policy.id, acceptance=1.0))
    ...     verdict = ledger.report("bank", "k1", Label(+1))
    ...     answer.drawn.accept, verdict.standing.label, verify(ledger).ok
    (True, 1, True)
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
        self.store, self.keyring, self.clock = store, keyring, clock
        self.entropy, self.window_plan = entropy, windows

        with store.writer.begin() as connection:
            if migrate(connection):
                info = {"ledger": entropy(16).hex(), "public_key": keyring.public_key, "format": 1}
                transaction = Transaction(connection, clock(), keyring)
                publishing.append_event(transaction, "genesis", "evenhand", info=info)
                transaction.flush()
            first_row = select(EVENTS.c.body).where(EVENTS.c.seq == 1)
            first = connection.execute(first_row).scalar_one_or_none()
        if first is None:
            raise Damaged(
                "the first row of the ledger is missing.", hint="restore it from a backup."
            )
        genesis = json.loads(first)["info"]
        self.id = genesis["ledger"]
        if genesis["public_key"] != keyring.public_key:
            raise Damaged(
                f"this ledger was begun by the holder of {genesis['public_key']}; "
                f"the keyring given is that of {keyring.public_key}.",
                hint="load the keyring that belongs to the ledger.",
            )
        self._drawer = Drawer(self.id, keyring, windows, render, Reserve(entropy))
        self._reporter = Reporter(keyring, entropy)
        self._writer = self.writer_class(
            store.writer, clock, keyring, self._drawer, fail_stop=store.path is not None
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
        """Open a ledger, or begin one.

        Parameters
        ----------
        where : path-like or str
            A path (SQLite), or a URL of PostgreSQL.
        keyring : Keyring
            The keyring of the ledger.
        clock : callable
            Gives the time, in seconds. Time is read from nowhere else.
        windows : WindowPlan, optional
            When windows begin and end; without it, every 30 days.
        render : callable
            Gives the bytes of an answer from the decision (`Drawn`). It is called inside of the
            transaction and must be pure.
        entropy : callable
            Gives so many random bytes.

        Returns
        -------
        Ledger
            A context manager that closes it.

        Raises
        ------
        LedgerLocked
            If another process has opened the SQLite file.
        Damaged
            If the keyring is not that of the ledger.
        """
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

    def _write(self, work: Callable[[Transaction], Kind], *, tidy: bool = False) -> Kind:
        """Do some work in a transaction of the writer; it must refuse before it appends."""
        return cast(Kind, self._writer.submit(Job(work=work, tidy=tidy)).future.result())

    @property
    def broken(self) -> str | None:
        """Why nothing is written any more, for the health check."""
        return self._writer.broken

    # deciding

    def decide(self, application: Application, terms: Terms) -> Answer:
        """Answer one application.

        Parameters
        ----------
        application : Application
            What is asked.
        terms : Terms
            How it is to be drawn, if its key is new.

        Returns
        -------
        Answer
            It is durable when this returns.

        Raises
        ------
        Refusal
            `Conflict`, `Gone`, `NotFound`, `GapUnconfirmed` or `LedgerUnavailable`.
        """
        return _or_raise(self.decide_many([(application, terms)])[0])

    def decide_many(self, asked: Sequence[Asked]) -> list[Answer | Refusal]:
        """Answer several applications in one transaction.

        Parameters
        ----------
        asked : sequence of (Application, Terms)
            What is asked, and how it is to be drawn.

        Returns
        -------
        list of Answer or Refusal
            In the same order; a refused one does not stop the others.
        """
        return self.submit(asked).result()

    def submit(self, asked: Sequence[Asked]) -> "Future[list[Answer | Refusal]]":
        """Answer several applications without waiting.

        Parameters
        ----------
        asked : sequence of (Application, Terms)
            What is asked, and how it is to be drawn.

        Returns
        -------
        Future
            Of what `decide_many` returns.
        """
        return self._writer.submit(Job(asked=list(asked))).future

    async def decide_async(self, asked: Sequence[Asked]) -> list[Answer | Refusal]:
        """Answer several applications from an event loop.

        The loop is woken once for all who share a commit.

        Parameters
        ----------
        asked : sequence of (Application, Terms)
            What is asked, and how it is to be drawn.

        Returns
        -------
        list of Answer or Refusal
            As `decide_many`.
        """
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[list[Answer | Refusal]] = loop.create_future()
        self._writer.submit(Job(asked=list(asked), future=cast(Any, waiting), loop=loop))
        return await waiting

    async def write_async(self, work: Callable[[], Kind]) -> Kind:
        """Call any other method in a thread.

        Parameters
        ----------
        work : callable
            The call: `await ledger.write_async(lambda: ledger.report(...))`.

        Returns
        -------
        object
            What it returned.
        """
        return await asyncio.to_thread(work)

    # outcomes

    def report(self, tenant: str, key: str, report: Report) -> Verdict:
        """Enter a report on a decision.

        Parameters
        ----------
        tenant, key : str
            Those of the application.
        report : Label, Settlement, Override or GroupTold
            What became known.

        Returns
        -------
        Verdict
            What became of it.

        Raises
        ------
        NotFound
            If no decision has this key.
        Gone
            If the person has been erased.
        """
        return _or_raise(self.report_many([(tenant, key, report)])[0])

    def report_many(self, reports: Sequence[KeyedReport]) -> list[Verdict | Refusal]:
        """Enter several reports in one transaction.

        Parameters
        ----------
        reports : sequence of (str, str, report)
            Tenant, key and report of each.

        Returns
        -------
        list of Verdict or Refusal
            In the same order; a refused one does not stop the others.
        """
        return self._write(lambda transaction: self._reporter.report(transaction, reports))

    # policies, certificates, operators

    def acquire_lease(self, name: str, holder: str, seconds: float) -> Lease:
        """Take or prolong a lease.

        Parameters
        ----------
        name : str
            What it is the right to.
        holder : str
            Who takes it.
        seconds : float
            For how long.

        Returns
        -------
        Lease
            The lease; its token grows when it changes hands or had expired.

        Raises
        ------
        LeaseHeld
            If another holds it.
        """
        return self._write(lambda t: publishing.acquire(t, name, holder, seconds))

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
    ) -> PolicyRecord:
        """Publish the next policy of a product, by compare-and-swap on its parent.

        Parameters
        ----------
        tenant, product : str
            For whom and for what it decides.
        policy_json : dict
            The policy as JSON.
        epoch : int
            One more than that of the last policy.
        parent : str or None
            The id of the last policy; None for the first.
        checkpoint : dict
            The state of the learner behind it, from which a trainer goes on after a restart or an
            erasure. It becomes a row of the chain in the same transaction, and the policy's signed
            record names its digest.
        certificate : dict, optional
            The certificate of the policy.
        info : dict, optional
            What the publisher says of it.
        lease : Lease, optional
            The right to publish.

        Returns
        -------
        PolicyRecord
            The policy, signed.

        Raises
        ------
        StalePolicy
            If another was faster, or the lease has passed to another.
        Invalid
            If something cannot be written as JSON.
        """
        publication = Publication(
            tenant,
            product,
            policy_json,
            epoch,
            parent,
            checkpoint=checkpoint,
            certificate=certificate,
            info=info,
            lease=lease,
        )
        return self._write(lambda t: publication.publish(t, self.keyring))

    def register(
        self, tenant: str, product: str, policy_json: Json, info: Json | None = None
    ) -> PolicyRecord:
        """Publish a policy outside of the lineage: a constant for the kill switch.

        Nothing was learned for it, so it has no checkpoint.

        Parameters
        ----------
        tenant, product : str
            For whom and for what it may decide.
        policy_json : dict
            The policy as JSON.
        info : dict, optional
            What the publisher says of it.

        Returns
        -------
        PolicyRecord
            The policy, signed.
        """
        publication = Publication(tenant, product, policy_json, info=info)
        return self._write(lambda t: publication.publish(t, self.keyring))

    def certify(self, tenant: str, product: str, certificate: Json, *, epoch: int) -> int:
        """Record a certificate without a new policy: a renewal, a suspension.

        Parameters
        ----------
        tenant, product : str
            Whose certificate.
        certificate : dict
            The certificate as JSON.
        epoch : int
            The epoch that it is about.

        Returns
        -------
        int
            The number of its row.
        """
        publishing.require_json("the certificate", certificate)
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
        """Record what an operator or a trainer did.

        Parameters
        ----------
        tenant, product : str
            To what it was done.
        action : str
            "kill", "revive", "rollback", "shadow" and "live" change what is `active`; "suspend",
            "epoch_closed" and "note" do not.
        by : str
            Who did it.
        note : str
            What they write about it.
        policy : str, optional
            The policy that "kill" or "rollback" names.

        Returns
        -------
        int
            The number of its row.

        Raises
        ------
        NotFound
            If the policy was never published for this product.
        Invalid
            If there is no such action, or one cannot return to this policy.
        """

        def record(transaction: Transaction) -> int:
            publishing.require_action(transaction, tenant, product, action, policy)
            about = {"tenant": tenant, "product": product, "policy": policy}
            return publishing.append_event(transaction, action, by, note, **about)

        return self._write(record)

    # people, windows, gaps

    def erase(self, tenant: str, person: str, by: str) -> int:
        """Destroy everything personal about somebody; their keys are `Gone` from then on.

        Parameters
        ----------
        tenant, person : str
            Who is to be erased.
        by : str
            Who erases them.

        Returns
        -------
        int
            How many decisions they were.

        Raises
        ------
        NotFound
            If nothing is stored about them.
        """
        return self._write(
            lambda t: decision_draw.erase(t, self.keyring, tenant, person, by), tidy=True
        )

    def window(self) -> Window:
        """Open the current window.

        Returns
        -------
        Window
            The window; the hash of its secret is published when this returns.
        """
        name = self._write(self._drawer.open_window).name
        return next(window for window in self.windows() if window.name == name)

    def reveal(self, name: str, by: str) -> bytes:
        """Give an auditor the secret of a window that has ended.

        Parameters
        ----------
        name : str
            The name of the window.
        by : str
            Who asks; it is recorded.

        Returns
        -------
        bytes
            The secret.

        Raises
        ------
        NotFound
            If there is no such window.
        TooEarly
            If it has not ended.
        Damaged
            If the keyring does not hold the secret to which the window is committed.
        """
        window = next((window for window in self.windows() if window.name == name), None)
        if window is None:
            raise NotFound(f"there is no window {name!r}.")

        def record(transaction: Transaction) -> bytes:
            left = window.ends - transaction.now
            if left > 0:
                raise TooEarly(
                    f"window {name} ends in {left:.0f} s; until then its secret decides.",
                    hint="wait until the window has ended.",
                )
            secret = self.keyring.window_secret(self.id, name)
            if hashlib.sha256(secret).hexdigest() != window.commitment:
                raise Damaged(
                    f"the keyring does not hold the secret to which window {name} is committed."
                )
            publishing.append_event(transaction, "revealed", by, info={"window": name})
            return secret

        return self._write(record)

    def mark_restored(self, by: str) -> None:
        """Draw nothing from now on until `confirm_gap`.

        Parameters
        ----------
        by : str
            Who restored the ledger from a backup.
        """
        info = {"head": self.head().seq}
        self._write(lambda t: publishing.append_event(t, "restored", by, info=info))
        self._drawer.hold()

    def confirm_gap(self, by: str, note: str) -> None:
        """Draw again: an operator has looked into what a restored ledger is missing.

        Parameters
        ----------
        by : str
            Who looked.
        note : str
            What was checked.

        Raises
        ------
        Invalid
            If the note is empty.
        """
        if not note.strip():
            raise Invalid("the note is empty; it must say what was checked.")
        self._write(lambda t: publishing.append_event(t, "gap_confirmed", by, note))


def _or_raise(result: Kind | Refusal) -> Kind:
    if isinstance(result, Refusal):
        raise result
    return result
