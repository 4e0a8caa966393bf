"""The ledger: one object through which decisions, outcomes, policies and certificates are written
and read. See `service/docs/ledger.md`.
"""

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.exc import DBAPIError

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand_service.ledger import decision_draw, postgres, publishing
from evenhand_service.ledger.chain import (
    Basis,
    Head,
    Job,
    Transaction,
    Writer,
    follow,
    read_basis,
    read_clock,
    read_head,
    read_sealed_end,
    row_hashes,
)
from evenhand_service.ledger.database import (
    ENDED_SESSIONS,
    EVENTS,
    IDLE_SECONDS,
    PEOPLE,
    SUMMARIES,
    Store,
    migrate,
    open_store,
)
from evenhand_service.ledger.decision_draw import (
    Answer,
    Application,
    Drawer,
    DrawRequest,
    PlanInForce,
    Render,
    Terms,
    Window,
    WindowPlan,
    render_answer,
)
from evenhand_service.ledger.guard import LOG, Clock, HeadGuard, Mark, SystemClock, tampered
from evenhand_service.ledger.hard_counts import HardCounts
from evenhand_service.ledger.history import LedgerReader, read_key_events, seal_of_keys
from evenhand_service.ledger.keyring import Entropy, Keyring, Reserve
from evenhand_service.ledger.outcome_status import (
    KEEP_EVERY,
    SUMMARY,
    Counts,
    KeyedReport,
    Report,
    Reporter,
    RunningCounts,
    Verdict,
)
from evenhand_service.ledger.publishing import Event, Lease, PolicyRecord, Publication
from evenhand_service.ledger.refusals import (
    ClockJumped,
    Damaged,
    Invalid,
    KeyRevoked,
    LedgerUnavailable,
    NotFound,
    Refusal,
    SecondKeyNeeded,
    Tampered,
    TooEarly,
)

FORMAT = 1
"""The format of the chain, which its first row names."""

PROPOSAL_SECONDS = 3600.0
"""For how long a proposal waits for a second key."""

Kind = TypeVar("Kind")
KeyChange = tuple[str, str, Json]
"""What is recorded of an API key: "key_created" or "key_revoked", by whom, and what
belongs to it.
"""


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
    windows : WindowPlan or None
        When windows begin and end; None: as the ledger has it.
    render : callable
        Gives the bytes of an answer from the decision (`Drawn`).
    entropy : callable
        Gives so many random bytes.
    mark : Path, optional
        The file that remembers how far the chain went; see `open`.

    Raises
    ------
    Damaged
        If the keyring is not that of the ledger, or the first row is missing.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand_service.ledger import Application, Keyring, Label, Ledger, Terms, verify
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(
    ...         f"{folder}/ledger.sqlite", keyring=Keyring.generate(), clock=lambda: 0.0
    ...     ) as ledger,
    ... ):
    ...     policy = ledger.publish(
    ...         "loan", {"accept": "all"}, epoch=1, parent=None, checkpoint={}
    ...     )
    ...     application = Application("k1", "p1", "loan", [0.5])
    ...     answer = ledger.decide(application, Terms(policy.id, acceptance=1.0))
    ...     verdict = ledger.report("k1", Label(+1))
    ...     answer.drawn.accept, verdict.standing.label, verify(ledger).ok
    (True, 1, True)
    """

    writer_class: type[Writer] = Writer
    guard_class: type[HeadGuard] = HeadGuard

    def __init__(
        self,
        store: Store,
        *,
        keyring: Keyring,
        clock: Clock,
        windows: WindowPlan | None,
        render: Render,
        entropy: Entropy,
        mark: Path | None = None,
    ) -> None:
        self.store = store
        self.keyring = keyring
        self.clock = clock
        self.entropy = entropy
        self._counted: dict[str, RunningCounts] = {}
        if mark is None and store.path is not None:
            mark = store.path.with_name(store.path.name + ".mark")
        self._guard = self.guard_class(keyring, clock, None if mark is None else Mark(mark))
        self.id, basis, refusal = self._begin(windows)
        self._drawer = Drawer(self.id, keyring, render, Reserve(entropy), HardCounts())
        self._reporter = Reporter(keyring, entropy)
        self._writer = self.writer_class(
            store.writer, self._guard, self._drawer, fail_stop=store.path is not None
        )
        self._writer.basis = basis
        if refusal is not None:
            self._writer.stop(refusal)

    def _begin(self, windows: WindowPlan | None) -> tuple[str, Basis, Tampered | None]:
        """Begin the chain, or look whether it may be continued; its id, its basis, and why nothing
        may be written although it can be read.
        """
        with self.store.writer.begin() as connection:
            if migrate(connection):
                name = self.entropy(16).hex()
                info = {
                    "ledger": name,
                    "public_key": self.keyring.public_key,
                    "format": FORMAT,
                    "windows": PlanInForce(0, windows or WindowPlan(), None).info,
                }
                if self.store.path is None:
                    info["instance"] = postgres.instance(connection)
                transaction = Transaction(connection, self._guard)
                transaction.append_event("genesis", "evenhand", info=info)
            else:
                name = self._require_mine(connection)
                try:
                    try:
                        transaction = Transaction(connection, self._guard)
                    except ClockJumped:  # every transaction looks at the clock again
                        if self._guard.mark is not None:
                            self._guard.mark.ledger = name
                        return name, read_basis(connection, self._guard), None
                except Tampered as refusal:  # it can be read
                    return name, Basis(-1, -1), refusal
                self._mark_if_restored(transaction, name)
            decision_draw.require_plan(transaction, windows)
            transaction.flush()
        if self._guard.mark is not None:
            self._guard.mark.ledger = name
        transaction.committed()
        return name, transaction.basis, None

    def _require_mine(self, connection: Connection) -> str:
        """The id of the ledger, from its first row; Damaged if the keyring is another one, or
        lacks the root that is active. The keyring takes that root up.
        """
        first = connection.scalar(select(EVENTS.c.body).where(EVENTS.c.seq == 1))
        if first is None:
            raise Damaged(
                "the first row of the ledger is missing.", hint="restore it from a backup."
            )
        genesis = json.loads(first)["info"]
        if genesis["format"] != FORMAT:
            raise Damaged(
                f"the ledger has format {genesis['format']!r}; this evenhand knows format {FORMAT} "
                "alone.",
                hint="use the evenhand that began it.",
            )
        if genesis["public_key"] != self.keyring.public_key:
            raise Damaged(
                f"this ledger was begun by the holder of {genesis['public_key']}; "
                f"the keyring given is that of {self.keyring.public_key}.",
                hint="load the keyring that belongs to the ledger.",
            )
        rotated = select(EVENTS.c.body).where(EVENTS.c.action == "root_rotated")
        numbers = [json.loads(body)["info"]["root"] for body in connection.scalars(rotated)]
        active = max(numbers, default=0)
        if active >= self.keyring.roots:
            raise Damaged(
                f"the ledger is at root {active}, and the keyring holds {self.keyring.roots} of "
                "its roots, counted from 0.",
                hint="load the keyring to which the new root was added.",
            )
        self.keyring.active = max(active, self.keyring.active)
        return str(genesis["ledger"])

    def _mark_if_restored(self, transaction: Transaction, name: str) -> None:
        """If an older state of the database was put in its place, or the chain is in another
        PostgreSQL than before, nothing is drawn until the gap is confirmed. A standby that was
        promoted, and holds the last row that the mark remembers, lacks nothing.
        """
        # the mark remembers the last row that was written here, of this ledger
        seen = {} if self._guard.mark is None else self._guard.mark.load()
        seq = int(seen.get("seq", 0)) if seen.get("ledger") == name else 0
        found = row_hashes(transaction.connection, seq - 1, seq).get(seq)
        if seq and (found and found.hex()) != seen.get("hash"):
            note = f"row {seq} had been written and is not in this database: an older state of it"
            LOG.critical("%s; nothing is drawn until the gap is confirmed", note)
            seen_here: dict[str, int | str] = {"head": transaction.seq, "seen": seq}
            if self.store.path is None:
                seen_here["instance"] = postgres.instance(transaction.connection)
            transaction.append_event("restored", "evenhand", note, info=seen_here)
            return
        if self.store.path is not None:
            return
        here = postgres.instance(transaction.connection)
        about = EVENTS.c.action.in_(["genesis", "restored", "failed_over"])
        bodies = transaction.rows(select(EVENTS.c.body).where(about).order_by(EVENTS.c.seq))
        known = [json.loads(row.body)["info"].get("instance") for row in bodies]
        last = next(name for name in reversed(known) if name is not None)
        if last == here:
            return
        if seq and postgres.same_but_promoted(last, here):
            # what this replica acknowledged is in the chain, and every other one looks for its own
            note = f"a standby was promoted: {last} is {here} now"
            LOG.warning("%s; all that was written here is in it", note)
            moved = {"head": transaction.seq, "instance": here}
            transaction.append_event("failed_over", "evenhand", note, info=moved)
            return
        note = f"the chain was last in the database {last}; this one is {here}"
        LOG.critical("%s; nothing is drawn until the gap is confirmed", note)
        moved = {"head": transaction.seq, "instance": here}
        transaction.append_event("restored", "evenhand", note, info=moved)

    def rotate_root(self, by: str, note: str = "") -> int:
        """Let the next root of the keyring wrap, seal, and make the secrets of new windows.

        Nothing in the chain is rewritten: old windows keep their root, so old draws verify. The
        keys of all people are wrapped anew.

        Parameters
        ----------
        by : str
            Who rotates it.
        note : str
            Why.

        Returns
        -------
        int
            How many people's keys were wrapped anew.

        Raises
        ------
        Invalid
            If the keyring holds no newer root.
        """

        def rotate(transaction: Transaction) -> None:
            transaction.flush()  # others may share the transaction
            if self.keyring.active + 1 >= self.keyring.roots:
                raise Invalid(
                    "the keyring holds no newer root.",
                    hint="add one to it, for every replica, before it is taken up.",
                )
            transaction.require_sealed_rows()
            transaction.root = self.keyring.active + 1  # seals this head; active once it is durable
            # from now on keys are sealed by the new root; the older ones are those of this list
            events = read_key_events(transaction.connection, 0)
            keys = seal_of_keys(self.keyring, transaction.root, events)
            info = {"root": transaction.root, "keys": keys}
            transaction.append_event("root_rotated", by, note, info=info)

        self._write(rotate)
        return self.rewrap()

    def rewrap(self) -> int:
        """Wrap the keys of all people under the active root.

        Returns
        -------
        int
            How many there were.
        """
        c = PEOPLE.c
        after = 0
        wrapped = 0
        while True:

            def some(transaction: Transaction, after: int = after) -> list[int]:
                mine = select(c.id, c.key, c.lookup).where(c.id > after, c.key.is_not(None))
                rows = transaction.rows(mine.order_by(c.id).limit(500))
                for row in rows:
                    whose = bytes(row.lookup)
                    key = self.keyring.unwrap(row.key, whose)
                    anew = self.keyring.wrap(key, self.entropy, whose)
                    change = update(PEOPLE).where(c.id == row.id).values(key=anew)
                    transaction.connection.execute(change)
                return [int(row.id) for row in rows]

            done = self._write(some, tidy=True)
            if not done:
                break
            after = done[-1]
            wrapped = wrapped + len(done)
        if self.store.path is None:
            postgres.vacuum(self.store.reader)
        return wrapped

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
        mark: Path | None = None,
        idle_seconds: float = IDLE_SECONDS,
    ) -> Self:
        """Open a ledger, or begin one.

        Parameters
        ----------
        where : path-like or str
            A path (SQLite), or a URL of PostgreSQL.
        keyring : Keyring
            The keyring of the ledger.
        clock : callable
            Gives the time, in seconds. Time is read from nowhere else; a `SystemClock` compares
            it with the database's and with the time since boot.
        windows : WindowPlan, optional
            When windows begin and end; without it, as the ledger has it, and every 30 days in a
            new one. It is in the chain before the first draw, and cannot be changed by opening.
        render : callable
            Gives the bytes of an answer from the decision (`Drawn`). It is called inside of the
            transaction and must be pure.
        entropy : callable
            Gives so many random bytes.
        mark : Path, optional
            A file that remembers how far the chain went, where whoever writes the database cannot:
            beside the keyring. An older state of the database in its place is seen by it. Without
            it, a SQLite ledger has one beside it, and PostgreSQL none.
        idle_seconds : float
            After how many seconds of silence PostgreSQL ends a transaction of this process, so that
            others go on.

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
        LedgerUnavailable
            If the database cannot be reached.
        Invalid
            If the ledger has another plan of windows.
        """
        store = open_store(where, idle_seconds)
        try:
            return cls(
                store,
                keyring=keyring,
                clock=clock,
                windows=windows,
                render=render,
                entropy=entropy,
                mark=mark,
            )
        except BaseException as error:
            store.close()
            if store.path is None and isinstance(error, DBAPIError):
                raise LedgerUnavailable(
                    f"the database cannot be opened: {type(error.orig).__name__}.",
                    hint="check that it runs, and the URL in the settings.",
                ) from error
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is queued, and let go of the files."""
        self._writer.close()
        if self._guard.mark is not None:
            self._guard.mark.close()
        self.store.close()

    def _write(
        self, work: Callable[[Transaction], Kind], *, tidy: bool = False, compact: bool = False
    ) -> Kind:
        """Do some work in a transaction of the writer; it must refuse before it appends. Nothing is
        done for whoever asks by a key that has been revoked by then (`asked_by`).
        """
        asked_by = _ASKED_BY.get()
        if asked_by is not None and asked_by[0] == self.id:
            work = partial(_if_still_allowed, work, *asked_by[1:])
        job = Job(work=work, tidy=tidy or compact, compact=compact)
        return cast(Kind, self._writer.submit(job).future.result())

    def asked_by(self, sha256: str, known: int) -> None:
        """Let whatever is written from now on in this context be asked for by an API key.

        A key is checked before the work begins, and may be revoked by another replica before the
        work is done. So each transaction looks whether there is such a revocation: if so, it
        refuses (`KeyRevoked`).

        Parameters
        ----------
        sha256 : str
            The hash of the key, as its row has it.
        known : int
            The newest key event that was known when the key was checked: `Basis.keys`.
        """
        _ASKED_BY.set((self.id, sha256, known))

    @property
    def broken(self) -> str | None:
        """Why nothing is written any more, for the health check."""
        return self._writer.broken or self._writer.no_room

    @property
    def failed_commits(self) -> int:
        """How many commits have failed since this ledger was opened, for the metrics."""
        return self._writer.failed_commits

    def basis(self) -> Basis:
        """Return which rows last changed what decides, and who may ask.

        Returns
        -------
        Basis
            Read from the database, because another replica may have changed it; a SQLite ledger
            belongs to one process, which knows.
        """
        if self.store.path is not None:
            return self._writer.basis
        with self.store.reader.connect() as connection:
            return self._sealed(connection)

    def _sealed(self, connection: Connection, *, rows: bool = False) -> Basis:
        """The basis of what the connection sees; if the keyring did not seal it, nothing is written
        any more, and nothing is compared: a ledger that has been changed can still be looked at.
        """
        if self._writer.tampered:
            return Basis(-1, -1)
        try:
            return read_basis(connection, self._guard, rows=rows)
        except Tampered as refusal:
            self._writer.stop(refusal)
            raise

    def sealed_head(self) -> Head:
        """Read the end of the chain; Tampered unless the keyring has sealed it.

        Returns
        -------
        Head
            Its number, its hash and its time.
        """
        if self._writer.tampered:
            raise tampered(str(self.broken))
        seen = self._guard.seen  # before the look: the writer may move it meanwhile
        try:
            with self.store.reader.connect() as connection, connection.begin():
                self._guard.require_end(*read_sealed_end(connection), at_least=seen)
                return read_head(connection)
        except Tampered as refusal:
            self._writer.stop(refusal)
            raise

    def require_chain(self, after: int = 0, connection: Connection | None = None) -> None:
        """Check that every row after some row stands in the sealed chain.

        To be asked before something is learned from them: labels are rows like others. No report in
        an earlier row may be about a later decision, either.

        Parameters
        ----------
        after : int
            The row.
        connection : Connection, optional
            A reading one of this ledger, where what it sees is about to be signed; without it, a
            new one.

        Raises
        ------
        Tampered
            If somebody without the keyring has added, changed or removed a row. Nothing is written
            from then on.
        """
        with contextlib.ExitStack() as stack:
            reading = connection or stack.enter_context(self.store.reader.connect())
            try:
                follow(reading, self._guard, after)
            except Tampered as refusal:
                self._writer.stop(refusal)
                raise

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

    def decide_many(self, asked: Sequence[DrawRequest]) -> list[Answer | Refusal]:
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

    def submit(self, asked: Sequence[DrawRequest]) -> "Future[list[Answer | Refusal]]":
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

    async def decide_async(self, asked: Sequence[DrawRequest]) -> list[Answer | Refusal]:
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

    def refusal_to_draw(self) -> Refusal | None:
        """Say why a decision under a new key would be refused now, for the health check.

        Clock, witnesses and gap are asked as a draw asks them, by the same functions; nothing is
        locked or written.

        Returns
        -------
        Refusal or None
            `ClockJumped`, `GapUnconfirmed` or `LedgerUnavailable`; None if it would be drawn.
        """
        if self.broken is not None:
            return LedgerUnavailable(f"nothing can be written: {self.broken}.")
        with self.store.reader.connect() as connection:
            try:
                self._guard.date(read_clock(connection))
            except ClockJumped as refusal:
                return refusal
            if decision_draw.has_gap(connection.execute(decision_draw.GAPS)):
                return decision_draw.gap_unconfirmed()
        return self._drawer.refusal()

    # outcomes

    def report(self, key: str, report: Report) -> Verdict:
        """Enter a report on a decision.

        Parameters
        ----------
        key : str
            Those of the application.
        report : Label, Settlement, Override or GroupReport
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
        return _or_raise(self.report_many([(key, report)])[0])

    def report_many(self, reports: Sequence[KeyedReport]) -> list[Verdict | Refusal]:
        """Enter several reports in one transaction.

        Parameters
        ----------
        reports : sequence of (str, str, report)
            Key and report of each.

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
        product: str,
        policy_json: Json,
        *,
        epoch: int,
        parent: str | None,
        checkpoint: Json,
        certificate: Json | None = None,
        info: Json | None = None,
        lease: Lease | None = None,
        models: Mapping[str, Json] | None = None,
    ) -> PolicyRecord:
        """Publish the next policy of a product, by compare-and-swap on its parent.

        Parameters
        ----------
        product : str
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
        models : mapping, optional
            Fitted models by their sha256, to which policy and checkpoint refer, as
            ``policy.to_json(models)`` writes them. Each becomes a row of the chain, once.

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
        learned = (epoch, parent, checkpoint, certificate, info, lease, models or {})
        publication = Publication(product, policy_json, *learned)
        return self._write(lambda t: publication.publish(t, self.keyring))

    def register(
        self,
        product: str,
        policy_json: Json,
        info: Json | None = None,
        models: Mapping[str, Json] | None = None,
    ) -> PolicyRecord:
        """Publish a policy outside of the lineage.

        That is a constant for the kill switch, or what takes the place of a policy while a count is
        used up.

        Nothing was learned for it, so it has no checkpoint. The same policy is published once,
        whoever else does so at the same time.

        Parameters
        ----------
        product : str
            For whom and for what it may decide.
        policy_json : dict
            The policy as JSON.
        info : dict, optional
            What the publisher says of it.
        models : dict, optional
            Its fitted models, by their hashes.

        Returns
        -------
        PolicyRecord
            The policy, signed.
        """
        publication = Publication(product, policy_json, info=info, models=models or {})
        return self._write(
            lambda t: publication.registered(t) or publication.publish(t, self.keyring)
        )

    def certify(self, product: str, certificate: Json, *, epoch: int) -> int:
        """Record a certificate without a new policy: a renewal, a suspension.

        Parameters
        ----------
        product : str
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
        return self._write(lambda t: publishing.certify(t, product, epoch, certificate))

    def operate(
        self,
        product: str,
        action: str,
        by: str,
        note: str = "",
        policy: str | None = None,
    ) -> int:
        """Record what an operator or a trainer did.

        Parameters
        ----------
        product : str
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
            publishing.require_action(transaction, product, action, policy)
            about = {"product": product, "policy": policy}
            return transaction.append_event(action, by, note, **about)

        return self._write(record)

    # counts

    def counts(self, product: str, rows: int | None = None) -> Counts:
        """Count the decisions of each kind, from where the last look ended.

        Parameters
        ----------
        product : str
            Whose decisions.
        rows : int, optional
            Read at most so many rows of the chain; `uncounted` says how many are left.

        Returns
        -------
        Counts
            The numbers of now, or those of the rows that have been read.
        """
        running = self._counted.setdefault(product, RunningCounts(product))
        with self.store.reader.connect() as connection, connection.begin():
            counts = running.look(connection, read_head(connection).seq, self.keyring, rows)
        if running.upto - running.kept >= KEEP_EVERY:
            running.kept = running.upto
            self.keep_summary(product, "counts", running.upto, asdict(counts))
        return counts

    def uncounted(self, product: str) -> int:
        """Return how many rows of the chain `counts` has not read yet.

        Parameters
        ----------
        product : str
            Whose decisions.

        Returns
        -------
        int
            0 if what it last returned is of now.
        """
        running = self._counted.get(product)
        return self.head().seq - (0 if running is None else running.upto)

    def keep_summary(self, product: str, what: str, upto: int, found: Json) -> None:
        """Keep what has been counted, sealed, so that the next start need not count again.

        It is a cache: a ledger that cannot write goes on without it.

        Parameters
        ----------
        product, what : str
            Its names.
        upto : int
            The row up to which it counts.
        found : dict
            What has been counted.
        """
        document = canonical({**found, "about": [product, what, upto]})
        sealed = self.keyring.wrap(document.encode(), self.entropy, SUMMARY)
        row = (product, what, upto, sealed)
        s = SUMMARIES.c
        mine = (s.product == product, s.what == what)

        def keep(transaction: Transaction) -> None:
            transaction.connection.execute(delete(SUMMARIES).where(*mine))
            transaction.pending[SUMMARIES].append(row)

        with contextlib.suppress(Refusal):
            self._write(keep)

    # people, windows, gaps

    def erase(self, person: str, by: str) -> int:
        """Destroy everything personal about somebody; their keys are `Gone` from then on.

        Parameters
        ----------
        person : str
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
        decisions = self._write(
            lambda t: decision_draw.erase(t, self.keyring, person, by), tidy=True
        )
        if self.store.path is None:
            postgres.vacuum(self.store.reader)
        return decisions

    def write_archive(self, remove: Callable[[Transaction], Json]) -> Json:
        """Remove rows that are in an archive; see `evenhand_service.ledger.archive`.

        Parameters
        ----------
        remove : callable
            The work, in one transaction.

        Returns
        -------
        dict
            What it returned. A SQLite file is smaller by then.
        """
        return self._write(remove, compact=True)

    def window(self) -> Window:
        """Open the current window.

        Returns
        -------
        Window
            The window; the hash of its secret is published when this returns.
        """
        name = self._write(self._drawer.open_window).name
        return next(window for window in self.windows() if window.name == name)

    def plan_windows(self, length: float, by: str, note: str = "") -> WindowPlan:
        """Change the length of windows, from the end of the present one on.

        Parameters
        ----------
        length : float
            Seconds in a window.
        by : str
            Who changes it; it is recorded.
        note : str
            Why.

        Returns
        -------
        WindowPlan
            The new plan; its origin is where the present window ends.

        Raises
        ------
        Invalid
            If a change is under way already, or the length is no length.
        """
        return self._write(lambda t: decision_draw.change_plan(t, length, by, note))

    def draw_only_if(self, refusal: Callable[[], Refusal | None]) -> None:
        """Ask before every draw whether one may be made.

        Parameters
        ----------
        refusal : callable
            Gives why nothing may be drawn, or None. What is stored is answered all the same.
        """
        self._drawer.refusal = refusal

    def confirm_clock(self, by: str, note: str) -> None:
        """Believe the clock as it stands: an operator has looked at it after a `ClockJumped`.

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
        if isinstance(self.clock, SystemClock):
            self.clock.restart()
        self._write(lambda t: t.append_event("clock_confirmed", by, note))

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
            raise NotFound(f"there is no window {name[:200]!r}.")

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
            transaction.append_event("revealed", by, info={"window": name})
            return secret

        return self._write(record)

    def mark_restored(self, by: str, note: str = "") -> None:
        """Draw nothing from now on until `confirm_gap`.

        Parameters
        ----------
        by : str
            Who restored the ledger from a backup.
        note : str
            How, or how it was noticed.
        """
        info = {"head": self.head().seq}
        self._write(lambda t: t.append_event("restored", by, note, info=info))

    def confirm_gap(self, by: str, note: str) -> None:
        """Draw again: somebody has looked into what a restored ledger is missing.

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
        self._write(lambda t: t.append_event("gap_confirmed", by, note))

    def require_second(self, what: str, request: Json, key: str, by: str) -> None:
        """Four eyes: pass only if another key has asked for the same within the last hour.

        What is asked for is on record as a keyed fingerprint, so that no person is named by it. A
        proposal is confirmed once.

        Parameters
        ----------
        what : str
            What is to be done.
        request : dict
            All that matters of it; the same for both.
        key : str
            The SHA-256 of the key that asks.
        by : str
            Who asks, for the record.

        Raises
        ------
        SecondKeyNeeded
            If no other key has asked; it is on record then, and another one can.
        """
        digest = self.keyring.digest("proposal", canonical([what, request])).hex()

        def look(transaction: Transaction) -> int | None:
            transaction.require_sealed_rows()  # others may share the transaction
            c = EVENTS.c
            recent = select(c.seq, c.action, c.body).where(
                c.action.in_(["proposed", "confirmed"]), c.at >= transaction.now - PROPOSAL_SECONDS
            )
            proposed: dict[int, str] = {}
            for row in transaction.rows(recent.order_by(c.seq)):
                info = json.loads(row.body)["info"]
                if row.action == "confirmed":
                    proposed.pop(info["row"], None)
                elif info["request"] == digest:
                    proposed[int(row.seq)] = info["key"]
            others = [seq for seq, asker in proposed.items() if asker != key]
            if others:
                confirmed = {"row": others[0], "what": what, "key": key}
                transaction.append_event("confirmed", by, info=confirmed)
                return None
            if proposed:
                return next(iter(proposed))
            about = {"what": what, "request": digest, "key": key}
            return transaction.append_event("proposed", by, info=about)

        row = self._write(look)
        if row is not None:
            raise SecondKeyNeeded(
                f"{what} needs two keys; this is on record as row {row}, and nothing was done.",
                hint="another key with the same scope sends the same request within an hour.",
            )

    # API keys and sessions: who may ask

    def change_keys(
        self, change: Callable[[list[Event]], Sequence[KeyChange]], after: int = 0
    ) -> list[Event]:
        """Record API keys that are created or revoked, in one transaction with what it rests on.

        Parameters
        ----------
        change : callable
            Gives what is to be recorded, from the key events after `after` that the transaction
            sees. It must be pure; what it raises leaves nothing behind.
        after : int
            The last key event that the caller knows.

        Returns
        -------
        list of Event
            Those that the caller did not know, and then what was recorded.
        """

        def record(transaction: Transaction) -> list[Event]:
            transaction.require_sealed_rows()  # others may share the transaction
            events = read_key_events(transaction.connection, after)
            for action, by, info in change(events):
                seq = transaction.append_event(action, by, info=info)
                now = transaction.now
                nothing = None
                events.append(Event(seq, now, None, action, by, "", nothing, info))
            return events

        return self._write(record)

    def end_session(self, session: bytes, expires: float) -> None:
        """Remember that a session of the dashboard has ended before it expired.

        Parameters
        ----------
        session : bytes
            Its digest, of 32 bytes.
        expires : float
            When it would have ended, in seconds.
        """

        def note(transaction: Transaction) -> None:
            known = select(ENDED_SESSIONS.c.expires).where(ENDED_SESSIONS.c.session == session)
            if not transaction.rows(known):
                transaction.pending[ENDED_SESSIONS].append((session, expires))

        self._write(note)


_ASKED_BY: ContextVar[tuple[str, str, int] | None] = ContextVar("asked by", default=None)
"""By whose key the work of this context is asked for: ledger, hash of the key, newest key event."""


def _if_still_allowed(
    work: Callable[[Transaction], Kind], sha256: str, known: int, transaction: Transaction
) -> Kind:
    """The work, unless the key was revoked after the row `known`."""
    if transaction.basis.keys > known:
        transaction.flush()  # others may share the transaction
        for event in read_key_events(transaction.connection, known):
            if (event.action, event.info.get("sha256")) == ("key_revoked", sha256):
                raise KeyRevoked(
                    "the API key was revoked before this was done, and nothing was.",
                    hint="send Authorization: Bearer eh_..., with a key that is valid.",
                )
    return work(transaction)


def _or_raise(result: Kind | Refusal) -> Kind:
    if isinstance(result, Refusal):
        raise result
    return result
