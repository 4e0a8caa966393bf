"""Drawing decisions inside a transaction.

    U = HMAC(secret of the window, tenant | person | product | window),   accept = (U < acceptance),   audit = (U < audit_weight)

A key that is known is answered from the ledger; only a key that is new is drawn.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select, update

from evenhand.canonical import canonical, text_literal
from evenhand.contracts import Json
from evenhand.ledger.chain import Transaction
from evenhand.ledger.database import DECISIONS, EVENTS, PEOPLE, PERSONAL, POLICIES, WINDOWS
from evenhand.ledger.keyring import Entropy, Keyring, Opened, Sealed, open_fields, seal_fields
from evenhand.ledger.records import Answer, Application, Asked, Drawn, Render, Terms, WindowPlan
from evenhand.ledger.refusals import Conflict, GapUnconfirmed, Gone, NotFound, Refusal
from evenhand.randomness import keyed_uniform

_KNOWN = (
    select(
        DECISIONS.c.key,
        DECISIONS.c.seq,
        DECISIONS.c.at,
        DECISIONS.c.body,
        PERSONAL.c.sealed,
        PEOPLE.c.key.label("wrapped"),
    )
    .join(PERSONAL, PERSONAL.c.seq == DECISIONS.c.seq)
    .join(PEOPLE, PEOPLE.c.id == PERSONAL.c.person)
)
KNOWN_BY_KEY = _KNOWN.where(DECISIONS.c.key.in_(bindparam("among", expanding=True)))
_PEOPLE = select(PEOPLE.c.lookup, PEOPLE.c.id, PEOPLE.c.key).where(
    PEOPLE.c.lookup.in_(bindparam("among", expanding=True))
)
_SLOTS = (
    select(DECISIONS.c.slot)
    .join(PERSONAL, PERSONAL.c.seq == DECISIONS.c.seq)
    .where(
        PERSONAL.c.person.in_(bindparam("among", expanding=True)),
        PERSONAL.c.seq > bindparam("after", 0),
    )
)
_WINDOW = select(WINDOWS.c.seq).where(WINDOWS.c.window == bindparam("name"))
_POLICY = select(POLICIES.c.seq).where(
    POLICIES.c.id == bindparam("policy"),
    POLICIES.c.tenant == bindparam("tenant"),
    POLICIES.c.product == bindparam("product"),
)
_RESTORES = (
    select(EVENTS.c.action)
    .where(EVENTS.c.action.in_(["restored", "gap_confirmed"]))
    .order_by(EVENTS.c.seq.desc())
    .limit(1)
)


def key_digest(keyring: Keyring, tenant: str, key: str) -> str:
    """By which a key is found, before and after its person is erased."""
    return keyring.digest("key", tenant, key).hex()


def person_digest(keyring: Keyring, tenant: str, person: str) -> bytes:
    """By which a person is found."""
    return keyring.digest("person", tenant, person)


@dataclass(frozen=True)
class Known:
    """A decision that stands in the ledger, opened."""

    drawn: Drawn
    opened: Opened
    commit: Mapping[str, str]

    @property
    def answer(self) -> Answer:
        """The stored bytes."""
        return Answer(self.opened.fields["reply"]["body"].encode(), self.drawn, replayed=True)


class StoredDecision(NamedTuple):
    """A row of KNOWN_BY_KEY; `sealed` is None if the person has been erased."""

    key: str
    seq: int
    at: float
    body: str
    sealed: bytes | None
    wrapped: bytes


def open_known(keyring: Keyring, row: StoredDecision) -> Known:
    """A row of KNOWN_BY_KEY; Gone if its person has been erased."""
    if row.sealed is None:
        raise Gone(
            "the person behind this key has been erased; the key will not be answered again.",
            hint="a new application needs a new key.",
        )
    body: Json = json.loads(row.body)
    opened = open_fields(keyring.unwrap(row.wrapped), row.sealed)
    return Known(drawn_from(row.seq, row.at, body, opened.fields["who"]), opened, body["commit"])


def drawn_from(seq: int, at: float, body: Json, who: Json) -> Drawn:
    """The decision of a row of the chain, with the names that were opened."""
    names = (
        "tenant",
        "product",
        "window",
        "u",
        "acceptance",
        "accept",
        "policy",
        "epoch",
        "audit_weight",
        "audit",
        "first",
        "mode",
    )
    return Drawn(
        seq=seq, at=at, key=who["key"], person=who["person"], **{name: body[name] for name in names}
    )


@dataclass(slots=True)
class _Wanted:
    """An application with the digests by which the ledger knows its key, its person, and the person
    in this window.
    """

    application: Application
    terms: Terms
    key: str
    person: bytes
    slot: str


class _Window(NamedTuple):
    """A window with its secret, and its row of the chain: all its decisions come after it."""

    name: str
    secret: bytes
    seq: int


@dataclass
class _Plan:
    """What the ledger knows about a group of applications, and what has been drawn for them so far."""

    window: _Window
    gap: Refusal | None
    known: dict[str, StoredDecision]
    slots: set[str]
    people: dict[bytes, tuple[int, bytes | None]]
    fresh: dict[str, tuple[str, Answer]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, transaction: Transaction, wanted: list[_Wanted], gap: Refusal | None, window: _Window
    ) -> "_Plan":
        """Two questions for the whole group, and a third about those who have been here before."""
        known = transaction.rows_among(KNOWN_BY_KEY, list({w.key for w in wanted}))
        people = transaction.rows_among(_PEOPLE, list({w.person for w in wanted}))
        slots = transaction.rows_among(_SLOTS, [number for _, number, _ in people], window.seq)
        return cls(
            window,
            gap,
            {row[0]: StoredDecision(*row) for row in known},
            {slot for (slot,) in slots},
            {bytes(lookup): (number, wrapped) for lookup, number, wrapped in people},
        )


@dataclass
class Drawer:
    """Everything that a draw depends on besides the application.

    `_windows` and `_policies` remember what is in the chain for good.
    """

    ledger: str
    keyring: Keyring
    windows: WindowPlan
    render: Render
    entropy: Entropy
    _windows: dict[str, _Window] = field(default_factory=dict)
    _policies: set[tuple[str, str, str]] = field(default_factory=set)
    _may_draw: bool = False

    def draw(self, transaction: Transaction, asked: list[Asked]) -> list[Answer | Refusal]:
        """Answer everybody; a refused application leaves nothing behind and does not stop the
        others.
        """
        gap, window = self._gap(transaction), self.open_window(transaction)
        wanted = [self._wanted(application, terms, window.name) for application, terms in asked]
        plan = _Plan.of(transaction, wanted, gap, window)
        return [self._one(transaction, plan, one) for one in wanted]

    def _wanted(self, application: Application, terms: Terms, window: str) -> "_Wanted":
        a = application
        return _Wanted(
            application,
            terms,
            key=key_digest(self.keyring, a.tenant, a.key),
            person=person_digest(self.keyring, a.tenant, a.person),
            slot=self.keyring.digest("slot", a.tenant, a.person, a.product, window).hex(),
        )

    def _one(self, transaction: Transaction, plan: "_Plan", wanted: "_Wanted") -> Answer | Refusal:
        try:
            if wanted.key in plan.known:
                return _replayed(
                    open_known(self.keyring, plan.known[wanted.key]), wanted.application
                )
            if wanted.key in plan.fresh:
                request, answer = plan.fresh[wanted.key]
                _require_same(request, wanted.application)
                return Answer(answer.body, answer.drawn, replayed=True)
            if plan.gap is not None:
                return plan.gap
            self._require_policy(transaction, wanted.application, wanted.terms)
        except Refusal as refusal:
            return refusal
        return self._fresh(transaction, plan, wanted)

    def _fresh(self, transaction: Transaction, plan: "_Plan", wanted: "_Wanted") -> Answer:
        application = wanted.application
        drawn = self._drawn(transaction, plan, wanted)
        answer, request = Answer(self.render(drawn), drawn), _request(application)
        person, secret = self._person(transaction, plan, wanted.person)
        sealed = seal_fields(secret, _fields(application, request, answer), self.entropy)
        seq = transaction.append_text(
            "decision",
            decision_text(drawn, wanted.key, wanted.slot, sealed),
            _columns(drawn, wanted),
        )
        transaction.insert(PERSONAL, (seq, person, sealed.data))
        plan.slots.add(wanted.slot)
        plan.fresh[wanted.key] = (request, answer)
        return answer

    def _drawn(self, transaction: Transaction, plan: "_Plan", wanted: "_Wanted") -> Drawn:
        """The draw itself."""
        a, terms, window = wanted.application, wanted.terms, plan.window
        u = keyed_uniform(window.secret, a.tenant, a.person, a.product, window.name)
        return Drawn(
            seq=transaction.seq + 1,
            at=transaction.now,
            tenant=a.tenant,
            key=a.key,
            person=a.person,
            product=a.product,
            window=window.name,
            u=u,
            acceptance=terms.acceptance,
            accept=u < terms.acceptance,
            policy=terms.policy,
            epoch=terms.epoch,
            audit_weight=terms.audit_weight,
            audit=u < terms.audit_weight,
            first=wanted.slot not in plan.slots,
            mode=terms.mode,
        )

    def _person(self, transaction: Transaction, plan: "_Plan", lookup: bytes) -> tuple[int, bytes]:
        """(number, key) of a person; somebody new, or back after an erasure, gets a new key."""
        number, wrapped = plan.people.get(lookup, (None, None))
        if number is not None and wrapped is not None:
            return number, self.keyring.unwrap(wrapped)
        key = self.entropy(32)
        wrapped = self.keyring.wrap(key, self.entropy)
        if number is None:
            number = (
                transaction.seq + 1
            )  # the number of the person's first row: nobody else can have it
            transaction.insert(PEOPLE, (number, lookup, wrapped))
        else:
            transaction.flush()
            transaction.connection.execute(
                update(PEOPLE).where(PEOPLE.c.id == number).values(key=wrapped)
            )
        plan.people[lookup] = (number, wrapped)
        return number, key

    # what must be in the chain before a draw

    def open_window(self, transaction: Transaction) -> _Window:
        """The window of now; its secret's hash is in the chain when this returns."""
        name, starts, ends = self.windows.at(transaction.now)
        if name not in self._windows:
            secret = self.keyring.window_secret(self.ledger, name)
            stored = transaction.rows(_WINDOW, {"name": name})
            committed = hashlib.sha256(secret).hexdigest()
            body = {"window": name, "starts": starts, "ends": ends, "commitment": committed}
            seq = stored[0].seq if stored else transaction.append("window", body)
            self._windows[name] = _Window(name, secret, seq)
        return self._windows[name]

    def hold(self) -> None:
        """Look again whether the ledger may draw."""
        self._may_draw = False

    def forget(self) -> None:
        """After a rollback: what was remembered may not be in the chain."""
        self._windows.clear()
        self._policies.clear()

    def _require_policy(
        self, transaction: Transaction, application: Application, terms: Terms
    ) -> None:
        named = (terms.policy, application.tenant, application.product)
        if named in self._policies:
            return
        if not transaction.rows(
            _POLICY, dict(zip(("policy", "tenant", "product"), named, strict=True))
        ):
            raise NotFound(
                f"policy {terms.policy} has not been published for this tenant and product.",
                hint="publish it before it decides.",
            )
        self._policies.add(named)

    def _gap(self, transaction: Transaction) -> GapUnconfirmed | None:
        """Why nothing may be drawn, although what is stored may be answered."""
        self._may_draw = self._may_draw or [row.action for row in transaction.rows(_RESTORES)] != [
            "restored"
        ]
        if not self._may_draw:
            return GapUnconfirmed(
                "this ledger was restored from a backup, and decisions made after it may be missing; it does not draw.",
                hint="check what was answered in between, then confirm_gap(by, note).",
            )
        return None


def _replayed(known: Known, application: Application) -> Answer:
    _require_same(known.opened.fields["reply"]["request"], application)
    return known.answer


def _request(application: Application) -> str:
    return hashlib.sha256(application.asked.encode()).hexdigest()


def _require_same(request: str, application: Application) -> None:
    if request != _request(application):
        raise Conflict(
            "this key was used before with another body; the first answer stands.",
            hint="repeat the first request to see its answer, or use a new key for a new application.",
        )


def _fields(a: Application, request: str, answer: Answer) -> dict[str, str]:
    """What is personal, as canonical JSON."""
    return {
        "features": f'{{"features":{a.features_text},"prices":{canonical(a.prices)}}}',
        "group": canonical(a.group),
        "reply": f'{{"body":{text_literal(answer.body.decode())},"request":"{request}"}}',
        "who": f'{{"key":{text_literal(a.key)},"person":{text_literal(a.person)}}}',
    }


_FLAG = {True: "true", False: "false"}


def decision_text(drawn: Drawn, key: str, slot: str, sealed: Sealed) -> str:
    """What the chain says of a decision: `canonical` of the body, in less than half the time."""
    d = drawn
    commit = ",".join([f'"{name}":"{digest}"' for name, digest in sealed.commit.items()])
    return (
        f'{{"accept":{_FLAG[d.accept]},"acceptance":{canonical(d.acceptance)},"audit":{_FLAG[d.audit]},'
        f'"audit_weight":{canonical(d.audit_weight)},"commit":{{{commit}}},"epoch":{d.epoch},'
        f'"first":{_FLAG[d.first]},"key":"{key}","mode":"{d.mode}","policy":{text_literal(d.policy)},'
        f'"product":{text_literal(d.product)},"propensity":{canonical(d.propensity)},'
        f'"sealed":"{sealed.fingerprint}","slot":"{slot}","tenant":{text_literal(d.tenant)},'
        f'"u":{d.u!r},"window":{text_literal(d.window)}}}'
    )


def _columns(drawn: Drawn, wanted: "_Wanted") -> tuple[Any, ...]:
    """By which the row is found, in the order of the table."""
    return wanted.key, wanted.slot, drawn.tenant, drawn.product, drawn.accept, drawn.usable


def text_agrees(text: str, columns: tuple[Any, ...], fingerprint: str) -> bool:
    """Whether the text of a decision says what stands in its columns and beside it.

    This is what parsing would find, in less than half the time: quotation marks inside of a
    canonical text are escaped, so `"name":value` stands in it only if it is a member. Where this
    is False, parse the text to see what is wrong.
    """
    key, slot, tenant, product, accept, usable = columns
    live = '"first":true,' in text and '"mode":"live",' in text
    try:
        return (
            (accept, usable) == (text.startswith('{"accept":true,'), live)
            and f'"key":{text_literal(key)},' in text
            and f'"product":{text_literal(product)},' in text
            and f'"sealed":"{fingerprint}","slot":{text_literal(slot)},'
            f'"tenant":{text_literal(tenant)},'
            in text
        )
    except TypeError:  # a column that is no text
        return False
