"""Reading a ledger: decisions by key, the learner's history, policies, events and counts. Nothing
here writes.
"""

import itertools
import json
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Executable, Select, bindparam, func, select
from sqlalchemy import Row as FetchedRow

from evenhand.canonical import canonical, canonical_digest
from evenhand.contracts import Json
from evenhand.fairness.certificate import Scalar
from evenhand_service.ledger import publishing
from evenhand_service.ledger.chain import (
    Basis,
    Head,
    SignedHead,
    is_usable,
    read_archives,
    read_head,
)
from evenhand_service.ledger.database import (
    ARCHIVED,
    CERTIFICATES,
    CHECKPOINTS,
    DECISIONS,
    ENDED_SESSIONS,
    ERASURES,
    EVENTS,
    KEY_EVENTS,
    MODELS,
    OUTCOMES,
    PEOPLE,
    PERSONAL,
    POLICIES,
    WINDOWS,
    Store,
)
from evenhand_service.ledger.decision_draw import (
    ARCHIVED_BY_KEY,
    DECISIONS_BY_KEY,
    SEALED,
    STORED_DECISIONS,
    Answer,
    Drawn,
    StoredDecision,
    Window,
    archived_key,
    key_digest,
)
from evenhand_service.ledger.keyring import (
    Keyring,
    Opened,
    open_group,
    open_past,
    open_row,
    require_of_row,
)
from evenhand_service.ledger.outcome_status import (
    Facts,
    Standing,
    facts_from,
    missing_key,
    read_summary,
)
from evenhand_service.ledger.publishing import Active, CertificateRow, Event, PolicyRecord
from evenhand_service.ledger.refusals import Damaged, NotFound
from evenhand_service.ledger.standalone_verifier import model_hash, model_references

PAGE = 2000
"""Decisions that are read at once; between pages no reading transaction stays open."""

_OF_PRODUCT = (
    DECISIONS.c.product == bindparam("product"),
    DECISIONS.c.seq > bindparam("after"),
    DECISIONS.c.seq <= bindparam("upto"),
)
_PAGE = STORED_DECISIONS.where(*_OF_PRODUCT).order_by(DECISIONS.c.seq).limit(PAGE)
_REPORTS = (
    select(*OUTCOMES.c["decision", "at", "report", "value", "body"], *SEALED)
    .outerjoin(PERSONAL, PERSONAL.c.seq == OUTCOMES.c.seq)
    .outerjoin(PEOPLE, PEOPLE.c.id == PERSONAL.c.person)
    .where(
        OUTCOMES.c.decision.between(bindparam("first"), bindparam("last")),
        OUTCOMES.c.seq <= bindparam("upto"),
    )
    .order_by(OUTCOMES.c.seq)
)


_USABLE = (
    select(*DECISIONS.c["seq", "body"], *SEALED)
    .join(PERSONAL, PERSONAL.c.seq == DECISIONS.c.seq)
    .join(PEOPLE, PEOPLE.c.id == PERSONAL.c.person)
    .where(*_OF_PRODUCT, DECISIONS.c.usable)
    .order_by(DECISIONS.c.seq)
    .limit(bindparam("most"))
)
_PAST = (
    select(*ARCHIVED.c["seq", "past", "hash"], *SEALED)
    .join(PERSONAL, PERSONAL.c.seq == ARCHIVED.c.seq)
    .join(PEOPLE, PEOPLE.c.id == PERSONAL.c.person)
    .where(
        ARCHIVED.c.product == bindparam("product"),
        ARCHIVED.c.past.is_not(None),
        ARCHIVED.c.seq > bindparam("after"),
        ARCHIVED.c.seq <= bindparam("upto"),
    )
    .order_by(ARCHIVED.c.seq)
    .limit(bindparam("most"))
)
"""What stays of usable decisions that are in archives."""
_PAST_OVERRULED = _PAST.where(ARCHIVED.c.past.like("%true]"))
"""Those that people have overruled: the last member of `past_of`."""
LABELS_NEAR = 100_000
"""Rows among which the newest label is looked for."""
FOREVER = 2**62
"""A row that no ledger reaches."""


@dataclass(frozen=True, slots=True)
class Row:
    """One decision as a learner sees it: as it was drawn, with what is known of it.

    Parameters
    ----------
    seq : int
        The number of its row.
    at : float
        When it was drawn, in seconds.
    window : str
        The name of the window.
    features : tuple of float or None
        None if the person has been erased.
    group : str, int, float, bool or None
        As it was known before the draw; else as it was reported within the maturity window.
    prices : (float, float) or None
        What a wrong acceptance and a wrong rejection of this person cost.
    u, accept, acceptance, audit, audit_weight, policy, epoch
        As in `Drawn`.
    label : {-1, 0, +1}
        0 unless it is known and undisputed, and nobody overruled the decision.
    status : str
        As in `Standing`.
    erased : bool
        Whether the person has been forgotten.
    overruled : bool
        Whether a human decided otherwise than was drawn.
    settled : {-1, 0, +1}
        The label at the end of the person's own maturity window; what came later does not change
        it.
    group_late : bool
        Whether the group was reported after the draw.
    label_at : float or None
        When the last report about the outcome came; None if the label is not known.
    key : str or None
        The key of the application; None if the person has been erased.
    billed : bool
        Whether the decision was overruled although a label that is not good has come: an audit then
        stays in the bill of the audit budget.

    Examples
    --------
    >>> Row(7, 0.0, "w0", (0.5,), "a", None, 0.1, True, 0.25, False, 0.0, "policy", 1, label=1,
    ...     status="resolved", erased=False).settled
    0
    """

    seq: int
    at: float
    window: str
    features: tuple[float, ...] | None
    group: Scalar | None
    prices: tuple[float, float] | None
    u: float
    accept: bool
    acceptance: float
    audit: bool
    audit_weight: float
    policy: str
    epoch: int
    label: int
    status: str
    erased: bool
    overruled: bool = False
    settled: int = 0
    group_late: bool = False
    label_at: float | None = None
    key: str | None = None
    billed: bool = False


@dataclass(frozen=True, slots=True)
class LateGroup:
    """A decision whose group became known, or disputed, after it had been made.

    Parameters
    ----------
    seq : int
        The number of its row.
    accept : bool
        What was drawn.
    before, now : str, int, float, bool or None
        The group as it was known before, and now.
    overruled : bool
        Whether people had overruled the decision before.

    Examples
    --------
    >>> LateGroup(7, True, None, "a").now
    'a'
    """

    seq: int
    accept: bool
    before: Scalar | None
    now: Scalar | None
    overruled: bool = False


@dataclass(frozen=True, slots=True)
class Overruled:
    """A decision that a human overruled.

    Parameters
    ----------
    seq : int
        The number of its row.
    accept : bool
        What was drawn, so the human did the opposite.
    group : str, int, float, bool or None
        The group of the person.

    Examples
    --------
    >>> Overruled(7, True, "a").accept
    True
    """

    seq: int
    accept: bool
    group: Scalar | None


@dataclass(frozen=True)
class Explained:
    """One decision with everything that is known of it.

    Parameters
    ----------
    drawn : Drawn
        The decision.
    features : tuple of float
        What the policy looked at.
    group : str, int, float, bool or None
        The group of the person, as it is known now.
    standing : Standing
        What is known of the outcome.

    Examples
    --------
    >>> drawn = Drawn(7, 0.0, "k1", "p1", "loan", "w0", 0.1, 0.25, True, "policy", 1,
    ...               0.0, False, True, "live")
    >>> Explained(drawn, (0.5,), "a", Standing("pending")).standing.status
    'pending'
    """

    drawn: Drawn
    features: tuple[float, ...]
    group: Scalar | None
    standing: Standing


class LedgerReader:
    """What can be asked of a ledger; `Ledger` has all of these methods."""

    id: str
    store: Store
    keyring: Keyring

    @abstractmethod
    def _sealed(self, connection: Connection, *, rows: bool = False) -> Basis:
        """Tampered unless the events and policies that the connection sees were sealed."""

    @abstractmethod
    def sealed_head(self) -> Head:
        """Read the end of the chain; Tampered unless the keyring has sealed it.

        Returns
        -------
        Head
            Its number, its hash and its time.
        """

    def _read(self, statement: Executable) -> list[Any]:
        with self.store.reader.connect() as connection:
            return list(connection.execute(statement).all())

    # decisions

    def _stored(self, connection: Connection, key: str) -> tuple[Drawn, Opened]:
        """The decision of a key, opened; NotFound or Gone."""
        digest = key_digest(self.keyring, key)
        row = connection.execute(DECISIONS_BY_KEY, {"among": [digest]}).one_or_none()
        if row is None:
            for _, seq in connection.execute(ARCHIVED_BY_KEY, {"among": [bytes.fromhex(digest)]}):
                raise archived_key(int(seq))
            raise missing_key()
        return StoredDecision._make(row).opened(self.keyring)

    def find(self, key: str) -> Answer:
        """Find the stored answer of a key.

        Parameters
        ----------
        key : str
            Those of the application.

        Returns
        -------
        Answer
            The answer; `replayed` is true.

        Raises
        ------
        NotFound
            If no decision has this key.
        Gone
            If the person has been erased.
        """
        with self.store.reader.connect() as connection:
            drawn, opened = self._stored(connection, key)
        return Answer(opened.fields["reply"]["body"].encode(), drawn, replayed=True)

    def explain(self, key: str) -> Explained:
        """Find a decision with everything that is known of it.

        Parameters
        ----------
        key : str
            Those of the application.

        Returns
        -------
        Explained
            The decision, the features, the group, and what is known of the outcome.

        Raises
        ------
        NotFound
            If no decision has this key.
        Gone
            If the person has been erased.
        """
        with self.store.reader.connect() as connection:
            drawn, opened = self._stored(connection, key)
            reports = _Reports(connection, self.keyring, drawn.seq, drawn.seq, FOREVER)
        group, _ = reports.group(drawn.seq, opened.fields["group"])
        features, _ = _numbers(opened)
        standing = reports.facts(drawn.seq, drawn.accept).standing
        return Explained(drawn, features, group, standing)

    def history(
        self,
        product: str,
        *,
        after: int = 0,
        upto: int | None = None,
        usable_only: bool = True,
        maturity: float | None = None,
    ) -> Iterator[Row]:
        """Read decisions in the order of the chain: all people whom a certificate may be about.

        Nobody is left out because of what was reported.

        Parameters
        ----------
        product : str
            Whose decisions.
        after : int
            Only rows after this one.
        upto : int, optional
            Only rows up to this one, and only the reports in them; without it, the last row of now.
        usable_only : bool
            Only first live applications; see `Drawn.usable`. That is known before the draw.
        maturity : float, optional
            Seconds after which a person's own window ends; what was reported later changes neither
            `settled` nor `group`.

        Returns
        -------
        iterator of Row
            The decisions.
        """
        last = self.head().seq if upto is None else upto
        where = {"product": product, "upto": last}

        def pages(after: int) -> Iterator[Row]:
            while True:
                with self.store.reader.connect() as connection:
                    rows = connection.execute(_PAGE, {**where, "after": after})
                    page = [StoredDecision._make(row) for row in rows]
                    if not page:
                        return
                    reports = _Reports(
                        connection, self.keyring, page[0].seq, page[-1].seq, upto=last
                    )
                after = page[-1].seq
                for stored in page:
                    body = json.loads(stored.body)
                    if is_usable(body) or not usable_only:
                        yield self._row(stored, body, reports, maturity)

        return pages(after)

    def _row(
        self, stored: StoredDecision, body: Json, reports: "_Reports", maturity: float | None = None
    ) -> Row:
        """The decision of a row of _PAGE."""
        end = math.inf if maturity is None else stored.at + maturity
        facts = reports.facts(stored.seq, body["accept"])
        standing = facts.standing
        features = None
        prices = None
        group = None
        late = False
        key = None
        opened = stored.fields(self.keyring, body)
        if opened is not None:
            features, prices = _numbers(opened)
            group, late = reports.group(stored.seq, opened.fields["group"], end)
            key = str(opened.fields["who"]["key"])
        names = ("window", "u", "accept", "acceptance", "audit", "audit_weight", "policy", "epoch")
        return Row(
            seq=stored.seq,
            at=stored.at,
            features=features,
            group=group,
            prices=prices,
            label=standing.label,
            status=standing.status,
            erased=stored.sealed is None,
            overruled=standing.overruled,
            settled=reports.facts(stored.seq, body["accept"], end).standing.label,
            group_late=late,
            label_at=reports.last_outcome(stored.seq) if standing.label else None,
            key=key,
            billed=standing.overruled and body["accept"] and facts.costs_an_audit,
            **{name: body[name] for name in names},
        )

    def rows_of(self, connection: Connection, seqs: Sequence[int]) -> list[Row]:
        """Read decisions by the numbers of their rows.

        Parameters
        ----------
        connection : Connection
            A reading one of this ledger.
        seqs : sequence of int
            The numbers of the rows.

        Returns
        -------
        list of Row
            In the order asked for, with what is known of them now.
        """
        found: dict[int, Row] = {}
        for start in range(0, len(seqs), 200):
            part = seqs[start : start + 200]
            page = STORED_DECISIONS.where(DECISIONS.c.seq.in_(part))
            reports = _Reports(connection, self.keyring, min(part), max(part), FOREVER, among=part)
            for stored in map(StoredDecision._make, connection.execute(page)):
                found[stored.seq] = self._row(stored, json.loads(stored.body), reports)
        return [found[seq] for seq in seqs if seq in found]

    def usable_groups(
        self, product: str, after: int, upto: int, most: int
    ) -> Iterator[tuple[int, Scalar | None, bool]]:
        """Read the groups of usable decisions and nothing else: a quarter of the cost of `history`.

        Parameters
        ----------
        product : str
            Whose decisions.
        after, upto : int
            Only rows after the first, up to the second; only reports in rows up to the second.
        most : int
            How many decisions to read at most.

        Returns
        -------
        iterator of (int, group, bool)
            The number of the row, the group as `Row` has it (None if the person has been erased),
            and what was drawn; in the order of the chain.
        """
        for seq, past, private in self._pasts(product, after, upto, most):
            group: Scalar | None = _group_now(private)
            yield seq, group, past[_ACCEPT]
            after = seq
            most = most - 1
        where = {"product": product, "upto": upto}
        while most > 0:
            with self.store.reader.connect() as connection:
                some = {"after": after, "most": min(PAGE, most)}
                page: Sequence[Any] = connection.execute(_USABLE, where | some).all()
                if not page:
                    return
                reports = _Reports(connection, self.keyring, page[0].seq, page[-1].seq, upto)
            after = page[-1].seq
            most = most - len(page)
            for seq, body, sealed, wrapped, whose in page:
                group = None
                if sealed is not None:
                    require_of_row(body, sealed)
                    known = open_group(self.keyring.unwrap(wrapped or b"", bytes(whose)), sealed)
                    group, _ = reports.group(seq, known)
                # the body is what the chain says; its members are sorted, so this is the first
                yield seq, group, body.startswith('{"accept":true,')

    def past(self, product: str, after: int, upto: int) -> list[Row]:
        """Read usable decisions that are in archives, as they were known when they were closed.

        Parameters
        ----------
        product : str
            Whose decisions.
        after, upto : int
            Only rows after the first, up to the second.

        Returns
        -------
        list of Row
            In the order of the chain. Window, U, policy and key are in the archive alone.
        """
        rows = []
        for seq, past, private in self._pasts(product, after, upto, FOREVER):
            at, epoch, accept, acceptance, audit, label, settled, *marks, told, billed, _ = past
            overruled, late = marks
            features = None
            group = None
            prices = None
            if private is not None:
                features = tuple(map(float, private["features"]))
                group = private["group"]
                prices = private["prices"] and tuple(map(float, private["prices"]))
            rows.append(
                Row(
                    seq=seq,
                    at=float(at),
                    window="",
                    features=features,
                    group=group,
                    prices=prices,
                    u=math.nan,
                    accept=accept,
                    acceptance=acceptance,
                    audit=audit,
                    audit_weight=math.nan,
                    policy="",
                    epoch=epoch,
                    label=label,
                    status="archived",
                    erased=private is None,
                    overruled=overruled,
                    settled=settled,
                    group_late=late and private is not None,
                    label_at=None if told is None else float(told),
                    billed=billed,
                )
            )
        return rows

    def _pasts(
        self, product: str, after: int, upto: int, most: int, which: Select[Any] = _PAST
    ) -> Iterator[tuple[int, list[Any], Json | None]]:
        """(row, what `past_of` wrote, its private part or None if the person has been erased)."""
        where = {"product": product, "upto": upto}
        while most > 0:
            with self.store.reader.connect() as connection:
                some = {"after": after, "most": min(PAGE, most)}
                page: Sequence[Any] = connection.execute(which, where | some).all()
            for seq, past, digest, sealed, wrapped, whose in page:
                private = None
                if sealed is not None:
                    key = self.keyring.unwrap(wrapped or b"", bytes(whose))
                    private = open_past(key, sealed, bytes(digest))
                yield int(seq), json.loads(past), private
                after = int(seq)
            most = most - len(page)
            if len(page) < PAGE:
                return

    def archives(self) -> list[Json]:
        """Read what the chain says of its archives.

        Returns
        -------
        list of dict
            Oldest first: the rows, the SHA-256 of the file, and the row of the event as `seq`.
        """
        with self.store.reader.connect() as connection:
            return read_archives(connection)

    def late_groups(self, product: str, after: int, upto: int) -> list[LateGroup]:
        """Find usable decisions whose group has changed.

        Parameters
        ----------
        product : str
            Whose decisions.
        after, upto : int
            Two rows: the group at the second is another one than it was at the first.

        Returns
        -------
        list of LateGroup
            In the order of the chain.
        """
        return [
            LateGroup(now.seq, now.accept, then.group, now.group, then.overruled)
            for then, now in self._changed(product, "group", after, upto, decided=after)
            if then.group != now.group
        ]

    def overruled(self, product: str, after: int, upto: int) -> list[Overruled]:
        """Find usable decisions that people have overruled.

        Parameters
        ----------
        product : str
            Whose decisions.
        after, upto : int
            Two rows: they are overruled at the second, and were not at the first.

        Returns
        -------
        list of Overruled
            In the order of the chain.
        """
        archived: list[Overruled] = []
        if after == 0:  # nothing more is reported about people who are in an archive
            found = self._pasts(product, 0, upto, FOREVER, _PAST_OVERRULED)
            archived = [Overruled(n, past[_ACCEPT], _group_now(mine)) for n, past, mine in found]
        return archived + [
            Overruled(now.seq, now.accept, now.group)
            for then, now in self._changed(product, "override", after, upto, decided=upto)
            if now.overruled and not then.overruled
        ]

    def _changed(
        self, product: str, report: str, after: int, upto: int, decided: int
    ) -> Iterator[tuple[Row, Row]]:
        """(as known at row `after`, as known at row `upto`) of usable decisions up to row `decided`
        on which such a report came between.
        """
        o = OUTCOMES.c
        reported = select(o.decision).where(o.report == report, o.seq > after, o.seq <= upto)
        statement = _PAGE.limit(None).where(DECISIONS.c.seq.in_(reported))
        between = {"product": product, "after": 0, "upto": decided}
        with self.store.reader.connect() as connection:
            for row in connection.execute(statement, between).all():
                stored = StoredDecision._make(row)
                body = json.loads(stored.body)
                seq = stored.seq
                if is_usable(body):
                    then = _Reports(connection, self.keyring, seq, seq, after)
                    now = _Reports(connection, self.keyring, seq, seq, upto)
                    yield self._row(stored, body, then), self._row(stored, body, now)

    def newest_erasure(self, product: str, after: int = 0) -> int:
        """Find the last row by which decisions of a product were erased.

        Parameters
        ----------
        product : str
            Whose decisions.
        after : int
            Only rows after this one.

        Returns
        -------
        int
            The number of the row; `after` if there is none.
        """
        erasures = select(ERASURES.c.seq, ERASURES.c.body).where(ERASURES.c.seq > after)
        with self.store.reader.connect() as connection:
            for erasure in connection.execute(erasures.order_by(ERASURES.c.seq.desc())).all():
                rows = json.loads(erasure.body)["rows"]
                # somebody may have a great many
                for start, table in itertools.product(
                    range(0, len(rows), PAGE), (DECISIONS, ARCHIVED)
                ):
                    listed = table.c.seq.in_(rows[start : start + PAGE])
                    erased = select(table.c.seq).where(listed, table.c.product == product)
                    if connection.execute(erased.limit(1)).first() is not None:
                        return int(erasure.seq)
        return after

    # counting

    def count_usable(self, product: str, *, after: int = 0, upto: int | None = None) -> int:
        """Count the rows that `history` must give.

        Parameters
        ----------
        product : str
            Whose decisions.
        after : int
            Only rows after this one.
        upto : int, optional
            Only rows up to this one; without it, the last row of now.

        Returns
        -------
        int
            As the database counts them from the columns, without reading the rows.
        """
        last = self.head().seq if upto is None else upto
        c = DECISIONS.c
        mine = select(func.count()).where(c.product == product, c.usable)
        here = int(self._read(mine.where(c.seq > after, c.seq <= last))[0][0])
        a = ARCHIVED.c
        mine = select(func.count()).where(a.product == product, a.past.is_not(None))
        return here + int(self._read(mine.where(a.seq > after, a.seq <= last))[0][0])

    def newest_label(self, product: str) -> float | None:
        """Return when the newest label of a product came.

        Parameters
        ----------
        product : str
            Whose.

        Returns
        -------
        float or None
            In seconds; None if there is none among the newest rows of the ledger.
        """
        near = self.head().seq - LABELS_NEAR
        # not a join: the database would begin with all decisions of the product
        mine = select(DECISIONS.c.seq).where(
            DECISIONS.c.seq == OUTCOMES.c.decision,
            DECISIONS.c.product == product,
        )
        newest = (
            select(OUTCOMES.c.at)
            .where(OUTCOMES.c.seq > near, OUTCOMES.c.report == "label", mine.exists())
            .order_by(OUTCOMES.c.seq.desc())
            .limit(1)
        )
        return next((float(row[0]) for row in self._read(newest)), None)

    def summary(self, product: str, what: str) -> tuple[int, Json] | None:
        """Read what was kept by `Ledger.keep_summary`.

        Parameters
        ----------
        product, what : str
            Its names.

        Returns
        -------
        (int, dict) or None
            The row up to which it counts, and what was kept; None if there is none that opens.
        """
        with self.store.reader.connect() as connection:
            return read_summary(connection, self.keyring, what, product)

    # policies, certificates, operators

    def policies(self, product: str) -> list[PolicyRecord]:
        """Read all policies of a product.

        Parameters
        ----------
        product : str
            Whose policies.

        Returns
        -------
        list of PolicyRecord
            Oldest first; those outside of the lineage are among them.
        """
        with self.store.reader.connect() as connection:
            return _policies(connection, product)

    def policy(self, policy: str) -> PolicyRecord:
        """Read one policy.

        Parameters
        ----------
        policy : str
            Its id.

        Returns
        -------
        PolicyRecord
            The policy as it was last published.

        Raises
        ------
        NotFound
            If no policy has this id.
        """
        c = POLICIES.c
        mine = select(c.seq, c.body).where(c.id == policy).order_by(c.seq.desc())
        rows = self._read(mine)
        if not rows:
            raise NotFound(f"no policy has the id {policy}.")
        return PolicyRecord.from_body(rows[0].seq, json.loads(rows[0].body))

    def active(self, product: str) -> Active | None:
        """Say what decides now.

        Parameters
        ----------
        product : str
            For whom and for what.

        Returns
        -------
        Active or None
            None before the first publication.

        Raises
        ------
        Tampered
            If the events and policies are not those that the keyring has sealed.
        """
        with self.store.reader.connect() as connection:  # one state of the database
            self._sealed(connection, rows=True)
            policies = _policies(connection, product)
            return publishing.active(policies, _events(connection, product))

    def checkpoint(self, policy: PolicyRecord) -> Json:
        """Read the state of the learner that made a policy.

        Parameters
        ----------
        policy : PolicyRecord
            A policy of the lineage.

        Returns
        -------
        dict
            The checkpoint that was published with it.

        Raises
        ------
        Damaged
            If it is not the one that the policy's signed record names.
        """
        c = CHECKPOINTS.c
        mine = (c.product == policy.product, c.epoch == policy.epoch)
        rows = self._read(select(c.body).where(*mine))
        stored: list[Json] = [json.loads(row.body)["checkpoint"] for row in rows]
        if len(stored) != 1 or canonical_digest(stored[0]) != policy.checkpoint:
            raise Damaged(
                f"epoch {policy.epoch} of product {policy.product!r} has no checkpoint "
                f"with the digest {policy.checkpoint}.",
                hint="verify the ledger: a policy of the lineage is published together with its "
                "checkpoint.",
            )
        return stored[0]

    def models(self, *documents: Json) -> dict[str, Json]:
        """Read the fitted models to which documents refer.

        Parameters
        ----------
        *documents : dict
            Policies or checkpoints, as they were published.

        Returns
        -------
        dict
            By their sha256, as `evenhand.hypotheses.policy_from_json` takes them.

        Raises
        ------
        Damaged
            If a model is missing, or its bytes do not have the hash.
        """
        wanted = {name for document in documents for name in model_references(document)}
        if not wanted:
            return {}
        rows = self._read(select(MODELS.c.sha256, MODELS.c.body).where(MODELS.c.sha256.in_(wanted)))
        found = {row.sha256: json.loads(row.body)["model"] for row in rows}
        for name in sorted(wanted):
            if name not in found or model_hash(found[name]) != name:
                raise Damaged(
                    f"model {name} is not in the ledger, or its bytes have another hash.",
                    hint="verify the ledger, and restore it from a backup.",
                )
        return found

    def certificates(self, product: str) -> list[CertificateRow]:
        """Read all certificates of a product.

        Parameters
        ----------
        product : str
            Whose certificates.

        Returns
        -------
        list of CertificateRow
            Oldest first.
        """
        c = CERTIFICATES.c
        mine = select(c.seq, c.at, c.epoch, c.body).where(c.product == product)
        return [
            CertificateRow(row.seq, row.at, row.epoch, json.loads(row.body)["certificate"])
            for row in self._read(mine.order_by(c.seq))
        ]

    def certificate_of(self, policy: PolicyRecord) -> CertificateRow | None:
        """Read the newest certificate of the epoch of a policy.

        Parameters
        ----------
        policy : PolicyRecord
            A policy.

        Returns
        -------
        CertificateRow or None
            None for a constant, which has no epoch of its own.
        """
        issued = reversed(self.certificates(policy.product))
        return next((row for row in issued if row.epoch == policy.epoch), None)

    def events(self, product: str | None = None) -> list[Event]:
        """Read what operators, trainers and the ledger did.

        Parameters
        ----------
        product : str, optional
            Whose events; without them, all.

        Returns
        -------
        list of Event
            Oldest first.
        """
        with self.store.reader.connect() as connection:
            return _events(connection, product)

    def key_events(self, after: int = 0) -> list[Event]:
        """Read which API keys were created and revoked.

        Parameters
        ----------
        after : int
            Only rows after this one.

        Returns
        -------
        list of Event
            Oldest first.

        Raises
        ------
        Tampered
            If the events and policies are not those that the keyring has sealed.
        """
        with self.store.reader.connect() as connection:
            self._sealed(connection, rows=True)
            return read_key_events(connection, after)

    def session_ended(self, session: bytes) -> bool:
        """Whether somebody has logged out of a session of the dashboard.

        Parameters
        ----------
        session : bytes
            The digest of the session.

        Returns
        -------
        bool
            The answer, for every replica.
        """
        ended = select(ENDED_SESSIONS.c.expires).where(ENDED_SESSIONS.c.session == session)
        return bool(self._read(ended))

    # windows, heads

    def windows(self) -> list[Window]:
        """Read every window so far.

        Returns
        -------
        list of Window
            Oldest first.
        """
        rows = self._read(select(WINDOWS.c.body).order_by(WINDOWS.c.seq))
        bodies = [json.loads(row.body) for row in rows]
        return [Window(b["window"], b["starts"], b["ends"], b["commitment"]) for b in bodies]

    def head(self) -> Head:
        """Read the end of the chain.

        Returns
        -------
        Head
            Its number, its hash and its time.
        """
        with self.store.reader.connect() as connection:
            return read_head(connection)

    def signed_head(self) -> SignedHead:
        """Sign the end of the chain: publish it where the operator cannot change it.

        Returns
        -------
        SignedHead
            The end of the chain, signed by the ledger's key.

        Raises
        ------
        Tampered
            If the keyring has not sealed it: nothing is signed that somebody else has written.
        """
        return self.sign_head(self.sealed_head())

    def sign_head(self, head: Head) -> SignedHead:
        """Sign a head that was found sealed, here or by `verify`.

        Parameters
        ----------
        head : Head
            The head.

        Returns
        -------
        SignedHead
            The head, signed by the ledger's key.
        """
        return SignedHead.of(self.id, head, self.keyring.public_key, self.keyring.sign)


class _Reports:
    """The reports on the decisions first..last that stand in rows up to `upto`.

    Each question may be asked as of a time: `until`.
    """

    def __init__(
        self,
        connection: Connection,
        keyring: Keyring,
        first: int,
        last: int,
        upto: int,
        among: Sequence[int] | None = None,
    ) -> None:
        statement = _REPORTS if among is None else _REPORTS.where(OUTCOMES.c.decision.in_(among))
        self._reports: dict[int, list[tuple[float, str, str]]] = {}
        self._groups: dict[int, list[tuple[float, Scalar]]] = {}
        for row in connection.execute(statement, {"first": first, "last": last, "upto": upto}):
            self._reports.setdefault(row.decision, []).append((row.at, row.report, row.value))
            if row.report == "group" and row.sealed is not None:
                sealed = (row.sealed, row.wrapped or b"", bytes(row.whose))
                opened = open_row(keyring, row.body, *sealed)
                self._groups.setdefault(row.decision, []).append((row.at, opened.fields["group"]))

    def facts(self, decision: int, accept: bool, until: float = math.inf) -> Facts:
        """The set of reports on one decision."""
        reports = self._reports.get(decision, [])
        return facts_from(accept, [(kind, value) for at, kind, value in reports if at <= until])

    def last_outcome(self, decision: int) -> float | None:
        """When the last report about the outcome of a decision came."""
        times = [at for at, kind, _ in self._reports.get(decision, []) if kind != "group"]
        return max(times, default=None)

    def group(
        self, decision: int, known: Scalar | None, until: float = math.inf
    ) -> tuple[Scalar | None, bool]:
        """(group, whether it was reported after the draw): as it was known when the decision was
        made, else as it was reported since, unless two were.
        """
        groups = [group for at, group in self._groups.get(decision, []) if at <= until]
        if known is not None or len(groups) != 1:
            return known, False
        return groups[0], True


_ACCEPT = 2
"""The place of the draw in what `past_of` writes."""


def _group_now(private: Json | None) -> Scalar | None:
    """The group of an archived person, as it is known now."""
    found: Scalar | None = None if private is None else private.get("now", private["group"])
    return found


def past_of(row: Row, now: Row) -> tuple[str, Json]:
    """What stays of a usable decision that goes into an archive, for the learner: its draw and what
    was known of it when it was closed, as canonical JSON, and the private part of that. `now` is
    the same decision as it is known now, for those who count groups and overruled decisions.
    """
    kept = (row.at, row.epoch, row.accept, row.acceptance, row.audit)
    marks = (row.overruled, row.group_late, row.label_at, row.billed)
    private: Json = {"features": row.features, "group": row.group, "prices": row.prices}
    if now.group != row.group:
        private["now"] = now.group
    return canonical([*kept, row.label, row.settled, *marks, now.overruled]), private


def _policies(connection: Connection, product: str) -> list[PolicyRecord]:
    rows = connection.execute(publishing.policies_of(product))
    return [PolicyRecord.from_body(row.seq, json.loads(row.body)) for row in rows]


def _events(connection: Connection, product: str | None) -> list[Event]:
    statement = select(EVENTS.c.seq, EVENTS.c.at, EVENTS.c.body).order_by(EVENTS.c.seq)
    if product is not None:
        statement = statement.where(EVENTS.c.product == product)
    return [_event(row) for row in connection.execute(statement)]


def read_key_events(connection: Connection, after: int) -> list[Event]:
    """Which API keys were created and revoked after a row, oldest first."""
    columns = (EVENTS.c.seq, EVENTS.c.at, EVENTS.c.body)
    about_keys = select(*columns).where(EVENTS.c.action.in_(KEY_EVENTS), EVENTS.c.seq > after)
    return [_event(row) for row in connection.execute(about_keys.order_by(EVENTS.c.seq))]


def seal_of_keys(keyring: Keyring, root: int, events: Sequence[Event]) -> str:
    """What a rotation says of the API keys that were there before it, sealed by the new root."""
    listed = [[one.seq, one.action, one.by, one.info] for one in events]
    return keyring.seal_of_root(root, "key events", canonical_digest(listed)).hex()


def _event(row: FetchedRow[int, float, str]) -> Event:
    names = ("product", "action", "by", "note", "policy", "info")
    body = json.loads(row.body)
    return Event(row.seq, row.at, *[body[name] for name in names])


def _numbers(opened: Opened) -> tuple[tuple[float, ...], tuple[float, float] | None]:
    stored = opened.fields["features"]
    try:
        prices = stored["prices"]
        features = tuple(map(float, stored["features"]))  # 1.0 is written as 1
        return features, None if prices is None else (float(prices[0]), float(prices[1]))
    except (KeyError, TypeError, ValueError, IndexError):
        raise Damaged("the sealed features are not what this ledger writes.") from None
