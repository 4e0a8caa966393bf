"""Decisions: what is asked, on which terms, how it is drawn inside a transaction, and what is
answered.

    U = HMAC(secret of the window, person | product | window)
    accept = (U < acceptance),   audit = (U < audit_weight)

A key that is known is answered from the ledger; only a key that is new is drawn. Erasing a person
is here too: it destroys what a draw has stored about the person.
"""

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqlalchemy import bindparam, select, update

from evenhand.canonical import canonical, number_literal, text_literal
from evenhand.contracts import Json
from evenhand.fairness.certificate import Scalar
from evenhand.randomness import KeyedHash
from evenhand_service.ledger.chain import Basis, Transaction
from evenhand_service.ledger.database import (
    ARCHIVED,
    ARCHIVED_EVENT,
    DECISIONS,
    EVENTS,
    OUTCOMES,
    PEOPLE,
    PERSONAL,
    POLICIES,
    WINDOWS,
)
from evenhand_service.ledger.keyring import (
    Entropy,
    Keyring,
    Opened,
    open_past,
    open_row,
    seal_decision,
)
from evenhand_service.ledger.refusals import (
    Archived,
    Conflict,
    Damaged,
    GapUnconfirmed,
    Gone,
    Invalid,
    LedgerUnavailable,
    NotFound,
    Refusal,
    Switched,
    Tampered,
)

if TYPE_CHECKING:
    from evenhand_service.ledger.hard_counts import HardCounts

Mode = Literal["live", "shadow", "killed"]
MAX_NAME = 200
"""Characters in a key, a person or a product."""
PRINTABLE = (
    r"^[^\u0000-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680"
    r"\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ue000-\uf8ff\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000f0000-\U0010ffff]*$"
)
"""Text without control, format and private characters, and without spaces but the plain one. A
regular expression, because `str.isprintable` says something else in each version of Python, and the
OpenAPI document has to state the requirement. Half a pair of surrogates is refused besides.
"""
_printable = re.compile(PRINTABLE).fullmatch


def is_printable(text: str) -> bool:
    """Whether a text can be printed, and be stored as UTF-8.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    bool
        Whether it keeps the requirement of `PRINTABLE`.

    Examples
    --------
    >>> is_printable("Zoë 王"), is_printable("a\\u202eb"), is_printable("\\ud800")
    (True, False, False)
    """
    if text.isascii():
        return text.isprintable()
    return _printable(text) is not None and not any("\ud800" <= c <= "\udfff" for c in text)


NAMED = f"^(?! )(?!.* $){PRINTABLE[1:]}"
"""`PRINTABLE` without blanks around it. That it is in NFC besides, no regular expression can say.
"""


def is_name(text: str) -> bool:
    """Whether a text can name a person, a key or a group, and no other text looks like it.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    bool
        Whether it is printable, has no blanks around it and is in Unicode's normal form C: else
        the same person would have two coins, and erasing one would leave the other.

    Examples
    --------
    >>> is_name("Zoë"), is_name("Zoe\\u0308"), is_name("Zoë ")
    (True, False, False)
    """
    if text[:1] == " " or text[-1:] == " ":
        return False
    if text.isascii():
        return text.isprintable()
    return is_printable(text) and unicodedata.is_normalized("NFC", text)


def require_name(what: str, value: object) -> None:
    """Refuse what is no name: 1 to 200 characters, printable, in NFC, without blanks around them.

    Parameters
    ----------
    what : str
        What is named, for the message.
    value : object
        The name. The message does not repeat it, because it may be personal.

    Raises
    ------
    Invalid
        If it is no name.

    Examples
    --------
    >>> require_name("person", "Ada")
    >>> require_name("person", "")
    Traceback (most recent call last):
        ...
    evenhand_service.ledger.refusals.Invalid: person must be a text of 1 to 200 characters.
    """
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME:
        raise Invalid(f"{what} must be a text of 1 to {MAX_NAME} characters.")
    if not is_name(value):
        raise Invalid(
            f"{what} contains characters that cannot be printed, has blanks around it, or is not "
            "in Unicode's normal form C.",
            hint="send plain text: strip it, and normalise it to NFC.",
        )


@dataclass(frozen=True, eq=False)
class Application:
    """What a person asks.

    Parameters
    ----------
    key : str
        The name of the application: it is answered once, and then always in the same way.
    person : str
        Who applies.
    product : str
        What for.
    features : sequence of float
        What the policy looks at; finite numbers.
    group : str, int, float, bool or None
        The group of the person, if it is known before the decision.
    prices : (float, float) or None
        What a wrong acceptance and a wrong rejection of this person cost.
    body : bytes or None
        The request as it came. The same key with another body is a `Conflict`. Without it, person,
        product, features, group and prices are compared.

    Raises
    ------
    Invalid
        If a name is no name, or a number is not finite.

    Examples
    --------
    >>> Application("k1", "p1", "loan", [0.5, 2]).features
    (0.5, 2.0)
    """

    key: str
    person: str
    product: str
    features: Sequence[float]
    group: Scalar | None = None
    prices: tuple[float, float] | None = None
    body: bytes | None = None

    def __post_init__(self) -> None:

        require_name("key", self.key)
        require_name("person", self.person)
        require_name("product", self.product)
        object.__setattr__(self, "features", tuple(map(float, self.features)))
        if not all(map(math.isfinite, (*self.features, *(self.prices or ())))):
            raise Invalid(
                "features and prices must be finite numbers.",
                hint="impute or drop what is missing.",
            )
        if isinstance(self.group, float) and not math.isfinite(self.group):
            raise Invalid("group must be a text, a finite number or nothing.")

    @classmethod
    def unchecked(
        cls,
        key: str,
        person: str,
        product: str,
        features: Sequence[float],
        group: Scalar | None,
        prices: tuple[float, float] | None = None,
    ) -> "Application":
        """Make one of what is known to keep the requirements; whoever calls this has checked them.

        Parameters
        ----------
        key, person, product : str
            Names.
        features : sequence of float
            Finite numbers of the type float.
        group : str, int, float, bool or None
            A text, a finite number or nothing.
        prices : (float, float) or None
            Finite numbers.

        Returns
        -------
        Application
            Without a body of its own.
        """
        made = object.__new__(cls)
        made.__dict__.update(
            key=key,
            person=person,
            product=product,
            features=tuple(features),
            group=group,
            prices=prices,
            body=None,
        )
        return made

    @property
    def asked(self) -> str:
        """What the conflict check compares."""
        return _texts(self)[-1]


@dataclass(frozen=True, slots=True)
class Terms:
    """How a decision is to be drawn.

    Parameters
    ----------
    policy : str
        The id of the policy that decides.
    acceptance : float
        The probability with which that policy accepts this person.
    audit_weight : float
        The part of that probability which ignores the person.
    epoch : int
        The epoch of the policy.
    mode : {"live", "shadow", "killed"}
        Whether the decision counts for learning and certificates ("live").
    basis : Basis, optional
        The `Ledger.basis` on which these terms were made. If it has changed when the transaction
        begins, nothing is drawn (`Switched`). Without it, this is not looked at.
    gate : Gate, optional
        Counts that are never exceeded, and the terms that hold while they are used up.

    Raises
    ------
    Invalid
        If not 0 <= audit_weight <= acceptance <= 1.

    Examples
    --------
    >>> Terms("policy", 0.25, audit_weight=0.05).mode
    'live'
    """

    policy: str
    acceptance: float
    audit_weight: float = 0.0
    epoch: int = 0
    mode: Mode = "live"
    basis: Basis | None = None
    gate: "Gate | None" = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.acceptance <= 1.0:
            raise Invalid(f"acceptance is {self.acceptance}; a probability lies in [0, 1].")
        if not 0.0 <= self.audit_weight <= self.acceptance:
            raise Invalid(
                f"audit_weight is {self.audit_weight}; "
                f"it is part of the acceptance {self.acceptance}."
            )


@dataclass(frozen=True, slots=True)
class Gate:
    """Counts that no draw exceeds, and what decides while they are used up.

    Parameters
    ----------
    quota : (int, float) or None
        How many people may be accepted in a period, and how many seconds a period lasts.
    audit_budget : float or None
        How many people whom the audit coin accepts may be bad, or may yet turn out to be.
    paused, spent : Terms or None
        On which terms the person is drawn while the audit budget, and the quota, is used up: both
        were fixed with the policy, before its first coin.

    Raises
    ------
    Invalid
        If a count has no terms beside it, or those could exceed it.

    Examples
    --------
    >>> Gate((50, 86400.0), None, None, Terms("reject", 0.0)).spent.acceptance
    0.0
    """

    quota: tuple[int, float] | None
    audit_budget: float | None
    paused: Terms | None
    spent: Terms | None

    def __post_init__(self) -> None:
        if self.quota is not None and (self.spent is None or self.spent.acceptance > 0.0):
            raise Invalid("a quota needs terms that accept nobody.")
        if self.paused is not None and self.paused.audit_weight > 0.0:
            raise Invalid("terms without audits have an audit weight.")


DrawRequest = tuple[Application, Terms]
"""What is drawn for: an application, and its terms."""


class Drawn(NamedTuple):
    """One decision as it stands in the ledger.

    Parameters
    ----------
    seq : int
        The number of its row.
    at : float
        When it was drawn, in seconds.
    key, person, product : str
        As in the application.
    window : str
        The name of the window whose secret drew it.
    u : float
        The number in [0, 1) by which it was drawn.
    acceptance : float
        The probability of "accept".
    accept : bool
        The decision: u < acceptance.
    policy : str
        The id of the policy.
    epoch : int
        The epoch of the policy.
    audit_weight : float
        The part of the acceptance that ignores the person.
    audit : bool
        Whether the person was accepted by that part: u < audit_weight.
    first : bool
        Whether the person had not applied for the product in this window before.
    mode : {"live", "shadow", "killed"}
        As in the terms.

    Examples
    --------
    >>> drawn = Drawn(7, 0.0, "k1", "p1", "loan", "w0", 0.9, 0.25, False, "policy", 1,
    ...               0.0, False, True, "live")
    >>> drawn.propensity, drawn.usable
    (0.75, True)
    """

    seq: int
    at: float
    key: str
    person: str
    product: str
    window: str
    u: float
    acceptance: float
    accept: bool
    policy: str
    epoch: int
    audit_weight: float
    audit: bool
    first: bool
    mode: Mode

    @property
    def propensity(self) -> float:
        """The probability of the decision that was drawn."""
        return self.acceptance if self.accept else 1.0 - self.acceptance

    @property
    def usable(self) -> bool:
        """Whether it may be learned from and certified: the first live application of the person in
        the window.
        """
        return self.first and self.mode == "live"


class Answer(NamedTuple):
    """What leaves the service.

    Parameters
    ----------
    body : bytes
        The answer; the same bytes for ever.
    drawn : Drawn
        The decision behind it.
    replayed : bool
        Whether it had been stored before.

    Examples
    --------
    >>> drawn = Drawn(7, 0.0, "k1", "p1", "loan", "w0", 0.9, 0.25, False, "policy", 1,
    ...               0.0, False, True, "live")
    >>> Answer(render_answer(drawn), drawn).replayed
    False
    """

    body: bytes
    drawn: Drawn
    replayed: bool = False


Render = Callable[[Drawn], bytes]


def render_answer(drawn: Drawn) -> bytes:
    """Write the plain answer: what was decided, with which probability, by which policy.

    Parameters
    ----------
    drawn : Drawn
        The decision.

    Returns
    -------
    bytes
        Canonical JSON.

    Examples
    --------
    >>> drawn = Drawn(7, 0.0, "k1", "p1", "loan", "w0", 0.9, 0.25, False, "policy", 1,
    ...               0.0, False, True, "live")
    >>> render_answer(drawn)[:36]
    b'{"accept":false,"at":0,"audit":false'
    """
    names = ("key", "accept", "propensity", "policy", "audit", "at", "window")
    document = {name: getattr(drawn, name) for name in names} | {"row": drawn.seq}
    return canonical(document).encode()


@dataclass(frozen=True)
class WindowPlan:
    """When windows begin and end.

    Windows follow one another without a gap: number n covers
    [origin + n length, origin + (n + 1) length).

    Parameters
    ----------
    length : float
        Seconds in a window.
    origin : float
        The beginning of window 0, in seconds.

    Raises
    ------
    Invalid
        If the length is not positive, or a number is not finite.

    Examples
    --------
    >>> WindowPlan(length=60.0).at(90.0)
    ('w1', 60.0, 120.0)
    """

    length: float = 30 * 86400.0
    origin: float = 0.0

    def __post_init__(self) -> None:
        if not (self.length > 0 and math.isfinite(self.length) and math.isfinite(self.origin)):
            raise Invalid(f"a window of {self.length} seconds from {self.origin} on cannot be.")

    def at(self, now: float) -> tuple[str, float, float]:
        """Find the window that holds a time.

        Parameters
        ----------
        now : float
            The time, in seconds.

        Returns
        -------
        (str, float, float)
            Its name, its start and its end.
        """
        number = math.floor((now - self.origin) / self.length)
        # rounding can put a time beside its window
        number += self.origin + (number + 1) * self.length <= now
        number -= self.origin + number * self.length > now
        start, end = (self.origin + n * self.length for n in (number, number + 1))
        return f"w{number}", start, end


class PlanInForce(NamedTuple):
    """A plan of windows as it stands in the chain: the first one has no start, each later one
    begins where a window of the one before ends.
    """

    number: int
    plan: WindowPlan
    starts: float | None

    def at(self, now: float) -> tuple[str, float, float]:
        """(name, start, end) of the window that holds a time; no two plans share a name."""
        name, start, end = self.plan.at(now)
        return (name if self.number == 0 else f"p{self.number}{name}"), start, end

    @property
    def info(self) -> Json:
        """What the chain says of it."""
        plan = {"length": self.plan.length, "origin": self.plan.origin}
        return {"number": self.number, "starts": self.starts, **plan}


def read_plans(transaction: Transaction) -> list[PlanInForce]:
    """The plans in the chain, oldest first: that of the first row, and those that came later."""
    transaction.require_sealed_rows()
    return plans_of(transaction.rows(PLANNED))


PLANNED = (
    select(EVENTS.c.body)
    .where(EVENTS.c.action.in_(["genesis", "window_plan"]))
    .order_by(EVENTS.c.seq)
)
"""The rows that say when windows begin."""


def plans_of(rows: Iterable[Any]) -> list[PlanInForce]:
    """The plans that the rows of `PLANNED` hold."""
    found = []
    for row in rows:
        body = json.loads(row.body)
        info = body["info"]["windows"] if body["action"] == "genesis" else body["info"]
        plan = WindowPlan(info["length"], info["origin"])
        found.append(PlanInForce(info["number"], plan, info["starts"]))
    return found


def require_plan(transaction: Transaction, given: WindowPlan | None) -> None:
    """Invalid if the newest plan of windows in the chain is not the given one."""
    plans = read_plans(transaction)
    if given is not None:
        require_same_plan(plans[-1], given)


def require_same_plan(newest: PlanInForce, given: WindowPlan) -> None:
    """Invalid if the newest plan of a ledger is not the given one."""
    same_origin = newest.number > 0 or given.origin == newest.plan.origin
    if given.length != newest.plan.length or not same_origin:
        raise _other_plan(given, newest.plan.length)


def _other_plan(given: WindowPlan, days: float) -> Invalid:
    return Invalid(
        f"this ledger draws in windows of {days / 86400.0:g} days, and windows of "
        f"{given.length / 86400.0:g} days from {given.origin:g} on are asked for; another plan "
        "would give people other coins.",
        hint=f"put window_days = {days / 86400.0:g} back, or change the plan from the end of the "
        "present window on: evenhand audit plan-windows.",
    )


def change_plan(transaction: Transaction, length: float, by: str, note: str) -> WindowPlan:
    """Append a plan that begins where the present window ends."""
    last = read_plans(transaction)[-1]
    if last.starts is not None and last.starts > transaction.now:
        raise Invalid(
            f"windows of {last.plan.length / 86400.0:g} days begin in "
            f"{last.starts - transaction.now:.0f} s; until then the plan cannot be changed again.",
            hint="wait until they have begun.",
        )
    _, _, ends = last.at(transaction.now)
    plan = PlanInForce(last.number + 1, WindowPlan(float(length), ends), ends)
    transaction.append_event("window_plan", by, note, info=plan.info)
    return plan.plan


@dataclass(frozen=True)
class Window:
    """A window whose secret has been committed to.

    Parameters
    ----------
    name : str
        Its name.
    starts, ends : float
        From when until when its secret decides, in seconds.
    commitment : str
        The SHA-256 of the secret, in hexadecimal.

    Examples
    --------
    >>> Window("w1", 60.0, 120.0, "6f1c...").ends
    120.0
    """

    name: str
    starts: float
    ends: float
    commitment: str


# What the ledger knows before it draws

SEALED = (PERSONAL.c.sealed, PEOPLE.c.key.label("wrapped"), PEOPLE.c.lookup.label("whose"))
"""What is personal, the wrapped key that opens it, and by what its person is found."""
STORED_DECISIONS = (
    select(*DECISIONS.c["key", "seq", "at", "body"], *SEALED)
    .join(PERSONAL, PERSONAL.c.seq == DECISIONS.c.seq)
    .join(PEOPLE, PEOPLE.c.id == PERSONAL.c.person)
)
DECISIONS_BY_KEY = STORED_DECISIONS.where(DECISIONS.c.key.in_(bindparam("among", expanding=True)))
ARCHIVED_KEYS = select(ARCHIVED.c["key"], ARCHIVED.c.seq)
ARCHIVED_BY_KEY = ARCHIVED_KEYS.where(ARCHIVED.c["key"].in_(bindparam("among", expanding=True)))
_ARCHIVES = select(EVENTS.c.seq).where(EVENTS.c.action == ARCHIVED_EVENT).limit(1)
_PEOPLE = select(PEOPLE.c.lookup, PEOPLE.c.id, PEOPLE.c.key)
_SLOTS_AFTER = (
    select(DECISIONS.c.slot)
    .join(PERSONAL, PERSONAL.c.seq == DECISIONS.c.seq)
    .where(PERSONAL.c.seq > bindparam("after", 0, PERSONAL.c.seq.type))
)


class StoredDecision(NamedTuple):
    """A row of STORED_DECISIONS; `sealed` is None if the person has been erased."""

    key: str
    seq: int
    at: float
    body: str
    sealed: bytes | None
    wrapped: bytes
    whose: bytes

    def fields(self, keyring: Keyring, body: Json) -> Opened | None:
        """The personal fields, None if the person has been erased; Damaged if they are not those of
        this row, or of another key or person than those by which they were found. `body` is the
        text, parsed.
        """
        if self.sealed is None:
            return None
        whose = bytes(self.whose)
        opened = open_row(keyring, self.body, self.sealed, self.wrapped or b"", whose)
        who = opened.fields["who"]
        keys = {body["key"], key_digest(keyring, who["key"])}
        if keys != {self.key} or person_digest(keyring, who["person"]) != whose:
            raise Damaged(
                f"row {self.seq} was found by another key or person than its own.",
                hint="the database was changed: evenhand audit verify --deep names the rows.",
            )
        return opened

    def opened(self, keyring: Keyring) -> tuple[Drawn, Opened]:
        """The decision, and the personal fields; Gone if the person has been erased."""
        body: Json = json.loads(self.body)
        opened = self.fields(keyring, body)
        if opened is None:
            raise Gone(
                "the person behind this key has been erased; the key will not be answered again.",
                hint="a new application needs a new key.",
            )
        stored = body | opened.fields["who"] | {"seq": self.seq, "at": self.at}
        return Drawn(**{name: stored[name] for name in Drawn._fields}), opened


def key_digest(keyring: Keyring, key: str) -> str:
    """By which a key is found, before and after its person is erased."""
    return keyring.digest("key", key).hex()


def archived_key(seq: int) -> Archived:
    """The decision of a key is in an archive."""
    return Archived(
        f"the decision of this key is row {seq}, whose window has ended; it is in an archive, so "
        "it is neither answered nor drawn again, and nothing more can be reported about it.",
        hint="whoever holds the archive can open it (evenhand audit proof --archive); a new "
        "application needs a new key.",
    )


def person_digest(keyring: Keyring, person: str) -> bytes:
    """By which a person is found."""
    return keyring.digest("person", person)


class _Window(NamedTuple):
    """A window with its secret, and its row of the chain: all its decisions come after it."""

    name: str
    starts: float
    ends: float
    secret: KeyedHash
    seq: int


_FLAG = ("false", "true")


def _texts(a: Application) -> tuple[str, str, str, str, str]:
    """(features, group, prices, person, what the conflict check compares) of an application, as
    canonical JSON.
    """
    features = ",".join([number_literal(value) for value in a.features])
    group = text_literal(a.group) if type(a.group) is str else canonical(a.group)
    prices = "null" if a.prices is None else canonical(a.prices)
    person = text_literal(a.person)
    asked = f"[{person},{text_literal(a.product)},[{features}],{group},{prices}]"
    return f"[{features}]", group, prices, person, asked if a.body is None else a.body.hex()


class _Wanted(NamedTuple):
    """An application with the digests by which the ledger knows its key, its person, and the person
    in this window.
    """

    application: Application
    terms: Terms
    key: str
    person: bytes
    slot: str


class SharedParts:
    """What decisions on the same terms share: the parts of their draws and of their texts that do
    not change from one to the next.

    It is here for its speed: `canonical` of the body takes 14.4 us and `text` 1.2 us, of the 40 us
    that a decision of a batch takes in all (docs/decisions/0024). Tests compare `text` with
    `canonical`, and `uniform` with `keyed_uniform`.
    """

    def __init__(self, product: str, terms: Terms, window: str) -> None:
        whole = terms.acceptance
        part = terms.audit_weight
        chances = f'"acceptance":{canonical(whole)},"audit":'
        weight = f',"audit_weight":{canonical(part)},"commit":{{'
        self._starts = [
            [f'{{"accept":{accept},{chances}{audit}{weight}' for audit in _FLAG] for accept in _FLAG
        ]
        self._epoch = f'}},"epoch":{terms.epoch},"first":'
        names = f'","mode":"{terms.mode}","policy":{text_literal(terms.policy)},"product":'
        self._names = [
            f'{names}{text_literal(product)},"propensity":{canonical(chance)},"sealed":"'
            for chance in (1.0 - whole, whole)
        ]
        self._end = f',"window":{text_literal(window)}}}'
        # keyed_uniform joins the parts, each preceded by its length
        self._after = _with_length(product) + _with_length(window)

    def uniform(self, secret: KeyedHash, person: str) -> float:
        """`keyed_uniform` of person, product and window."""
        name = person.encode()
        digest = secret(len(name).to_bytes(4, "big") + name + self._after)
        return (int.from_bytes(digest[:8], "big") >> 11) / 2**53

    def text(self, drawn: Drawn, key: str, slot: str, commit: str, sealed: str) -> str:
        """What the chain says of a decision: `canonical` of the body, in a fifth of the time."""
        accept = drawn.accept
        return (
            f"{self._starts[accept][drawn.audit]}{commit}{self._epoch}{_FLAG[drawn.first]},"
            f'"key":"{key}{self._names[accept]}{sealed}","slot":"{slot}","u":'
            f"{number_literal(drawn.u)}{self._end}"
        )


def _with_length(part: str) -> bytes:
    encoded = part.encode()
    return len(encoded).to_bytes(4, "big") + encoded


@dataclass(slots=True)
class _Group:
    """What the ledger knows about a group of applications, and what has been drawn for them."""

    transaction: Transaction
    window: _Window
    known: dict[str, StoredDecision]
    archived: dict[str, int]
    """The rows of keys that are in archives."""
    slots: set[str]
    people: dict[bytes, tuple[int, bytes | None]]
    fresh: dict[str, tuple[str, Answer]]
    shared: dict[tuple[int, str], SharedParts]
    """By the identity of the terms and the product, which may be drawn for."""


class Drawer:
    """Draws decisions.

    `_window` (the present one) and `_policies` remember what is in the chain for good.
    """

    def __init__(
        self,
        ledger: str,
        keyring: Keyring,
        render: Render,
        entropy: Entropy,
        counts: "HardCounts",
    ) -> None:
        self.ledger = ledger
        self.counts = counts
        self.keyring = keyring
        self.render = render
        self.entropy = entropy
        self.refusal: Callable[[], Refusal | None] = lambda: None
        self._window: _Window | None = None
        self._policies: set[tuple[str, str]] = set()
        self._told = (-1, True, False)

    def draw(self, transaction: Transaction, asked: list[DrawRequest]) -> list[Answer | Refusal]:
        """Answer all applications; a refused application leaves nothing behind and does not stop
        the others.
        """
        window = self.open_window(transaction)
        digest = self.keyring.peppered
        name = window.name
        wanted = [
            _Wanted(
                a,
                terms,
                digest(f"key\x1f{a.key}".encode()).hex(),
                digest(f"person\x1f{a.person}".encode()),
                digest(f"slot\x1f{a.person}\x1f{a.product}\x1f{name}".encode()).hex(),
            )
            for a, terms in asked
        ]
        # two questions for the whole group, and a third about those who have been here before
        keys = {one.key for one in wanted}
        known = transaction.rows_among(STORED_DECISIONS, DECISIONS.c.key, list(keys))
        lookups = {one.person for one in wanted}
        people = transaction.rows_among(_PEOPLE, PEOPLE.c.lookup, list(lookups))
        numbers = [number for _, number, _ in people]
        slots = transaction.rows_among(_SLOTS_AFTER, PERSONAL.c.person, numbers, window.seq)
        group = _Group(
            transaction,
            window,
            known={row[0]: StoredDecision(*row) for row in known},
            archived=self._archived(transaction, keys),
            slots={slot for (slot,) in slots},
            people={bytes(lookup): (number, wrapped) for lookup, number, wrapped in people},
            fresh={},
            shared={},
        )
        self.counts.begin(transaction)
        answers: list[Answer | Refusal] = []
        for one in wanted:
            try:
                answers.append(self._answer(group, one))
            except Tampered:
                raise  # nobody is answered
            except Refusal as refusal:
                answers.append(refusal)
        return answers

    def _archived(self, transaction: Transaction, keys: set[str]) -> dict[str, int]:
        """Those of the keys that are in archives, with their rows; nobody is asked while there is
        no archive.
        """
        _, archives = self._switches(transaction)
        if not archives:
            return {}
        digests = [bytes.fromhex(key) for key in keys]
        found = transaction.rows_among(ARCHIVED_KEYS, ARCHIVED.c["key"], digests)
        return {bytes(key).hex(): int(seq) for key, seq in found}

    def _switches(self, transaction: Transaction) -> tuple[bool, bool]:
        """(whether a gap is unconfirmed, whether there are archives): asked again when a row has
        changed what decides.
        """
        switched = transaction.basis.switched
        if self._told[0] != switched:
            transaction.require_sealed_rows()
            gap = has_gap(transaction.rows(GAPS))
            self._told = (switched, gap, bool(transaction.rows(_ARCHIVES)))
        return self._told[1:]

    def _answer(self, group: _Group, wanted: _Wanted) -> Answer | Refusal:
        """The stored answer of a key that is known; else a new one."""
        application = wanted.application
        terms = wanted.terms
        if terms.basis is not None and terms.basis != group.transaction.basis:
            return Switched(
                "what decides, or who may ask, was changed while this was on its way.",
                hint="send the request again.",
            )
        texts = _texts(application)
        request = hashlib.sha256(texts[-1].encode()).hexdigest()
        if wanted.key in group.known:
            drawn, opened = group.known[wanted.key].opened(self.keyring)
            reply = opened.fields["reply"]
            _require_same(reply["request"], request)
            return Answer(reply["body"].encode(), drawn, replayed=True)
        if wanted.key in group.archived:
            raise archived_key(group.archived[wanted.key])
        if wanted.key in group.fresh:
            first, answer = group.fresh[wanted.key]
            _require_same(first, request)
            return Answer(answer.body, answer.drawn, replayed=True)
        if (refusal := self.refusal()) is not None:
            raise refusal
        gate = terms.gate
        if gate is not None:
            # by the rows before this one, in the transaction that writes it
            terms = self.counts.admit(group.transaction, application.product, terms, gate)
            wanted = wanted._replace(terms=terms)
        named = (id(terms), application.product)
        shared = group.shared.get(named)
        if shared is None:
            shared = group.shared[named] = self._shared_parts(group, application, terms)
        answer = self._draw(group, wanted, shared, texts, request)
        if gate is not None:
            self.counts.add(answer.drawn, gate)
        group.fresh[wanted.key] = (request, answer)
        return answer

    def _shared_parts(self, group: _Group, application: Application, terms: Terms) -> SharedParts:
        """What the draws on these terms share; refused, if nothing may be drawn on them."""
        # after a restore nothing is drawn until somebody has confirmed the gap; what is stored may
        # be answered
        transaction = group.transaction
        gap, _ = self._switches(transaction)
        if gap:
            raise gap_unconfirmed()
        # the policy has been published
        named = (terms.policy, application.product)
        if named not in self._policies:
            c = POLICIES.c
            published = select(c.seq).where(c.id == named[0], c.product == named[1])
            if not transaction.rows(published):
                raise NotFound(
                    f"policy {terms.policy} has not been published for this product.",
                    hint="publish it before it decides.",
                )
            self._policies.add(named)
        return SharedParts(application.product, terms, group.window.name)

    def _draw(
        self,
        group: _Group,
        wanted: _Wanted,
        shared: SharedParts,
        texts: tuple[str, ...],
        request: str,
    ) -> Answer:
        """Draw for a key that is new; the row is appended to the chain, its personal fields are
        sealed beside it.
        """
        transaction = group.transaction
        window = group.window
        a, terms, key, lookup, slot = wanted
        u = shared.uniform(window.secret, a.person)
        drawn = Drawn(  # in the order of its fields: by name it takes four times as long
            transaction.seq + 1,
            transaction.now,
            a.key,
            a.person,
            a.product,
            window.name,
            u,
            terms.acceptance,
            u < terms.acceptance,
            terms.policy,
            terms.epoch,
            terms.audit_weight,
            u < terms.audit_weight,
            slot not in group.slots,
            terms.mode,
        )
        body = self.render(drawn)
        person, secret, wrapped = self._person(group, lookup)
        # what is personal, as canonical JSON
        features, group_text, prices, person_text, _ = texts
        commit, sealed, data = seal_decision(
            secret,
            f'{{"features":{features},"prices":{prices}}}',
            group_text,
            f'{{"body":{text_literal(body.decode())},"request":"{request}"}}',
            f'{{"key":{text_literal(a.key)},"person":{person_text}}}',
            self.entropy,
        )
        columns = (key, slot, a.product, terms.policy, drawn.accept, drawn.usable)
        text = shared.text(drawn, key, slot, commit, sealed)
        seq = transaction.append_text("decision", text, columns)
        transaction.pending[PERSONAL].append((seq, person, data))
        if wrapped is not None:
            transaction.pending[PEOPLE].append((person, lookup, wrapped))
        group.slots.add(slot)
        return Answer(body, drawn)

    def _person(self, group: _Group, lookup: bytes) -> tuple[int, bytes, bytes | None]:
        """(number, key, the key wrapped if there is no row of this person yet); somebody new, or
        back after an erasure, gets a new key.
        """
        number, wrapped = group.people.get(lookup, (None, None))
        if number is not None and wrapped is not None:
            return number, self.keyring.unwrap(wrapped, lookup), None
        key, wrapped = self.keyring.new_key(self.entropy, lookup)
        if number is None:
            # the number of the person's first row: nobody else can have it
            number = group.transaction.seq + 1
            group.people[lookup] = (number, wrapped)
            return number, key, wrapped
        group.transaction.flush()
        change = update(PEOPLE).where(PEOPLE.c.id == number).values(key=wrapped)
        group.transaction.connection.execute(change)
        group.people[lookup] = (number, wrapped)
        return number, key, None

    # what must be in the chain before a draw

    def open_window(self, transaction: Transaction) -> _Window:
        """The window of now; its secret's hash is in the chain when this returns."""
        now = transaction.now
        known = self._window
        if known is not None and known.starts <= now < known.ends:
            return known
        plans = read_plans(transaction)
        if not plans:
            raise LedgerUnavailable(
                "the plan of windows is not in the chain; nothing is drawn.",
                hint="start the service again.",
            )
        plan = [plan for plan in plans if plan.starts is None or plan.starts <= now][-1]
        name, starts, ends = plan.at(now)
        # a window keeps the root under which it was opened; a new one is opened under the active
        names = [name, *(f"{name}r{number}" for number in range(1, self.keyring.roots))]
        columns = (WINDOWS.c.seq, WINDOWS.c.window, WINDOWS.c.body)
        stored = transaction.rows(select(*columns).where(WINDOWS.c.window.in_(names)))
        name = stored[0].window if stored else names[self.keyring.active]
        secret = self.keyring.window_secret(self.ledger, name)
        body = {
            "window": name,
            "starts": starts,
            "ends": ends,
            "commitment": hashlib.sha256(secret).hexdigest(),
        }
        if stored and json.loads(stored[0].body) != body:
            raise Damaged(
                f"window {name} is in the chain with another beginning, end or secret than the "
                "plan and the keyring give; nothing is drawn in it.",
                hint="verify the ledger (evenhand audit verify --deep).",
            )
        seq = stored[0].seq if stored else transaction.append("window", body)
        self._window = _Window(name, starts, ends, KeyedHash(secret), seq)
        return self._window

    def forget(self) -> None:
        """After a rollback: what was remembered may not be in the chain."""
        self._window = None
        self.counts.forget()
        self._policies.clear()
        self._told = (-1, True, False)


GAPS = (
    select(EVENTS.c.action)
    .where(EVENTS.c.action.in_(["restored", "gap_confirmed"]))
    .order_by(EVENTS.c.seq.desc())
    .limit(1)
)
"""The row that says whether the ledger draws."""


def gap_unconfirmed() -> GapUnconfirmed:
    """The refusal to draw after a restore, until somebody has confirmed the gap."""
    return GapUnconfirmed(
        "this ledger was restored from a backup, and decisions made after it may be "
        "missing; it does not draw.",
        hint="check what was answered in between, then confirm_gap(by, note).",
    )


def has_gap(rows: Iterable[Any]) -> bool:
    """Whether the ledger was restored and nobody has confirmed the gap, by the row of `GAPS`."""
    return any(row.action == "restored" for row in rows)


def _require_same(first: str, request: str) -> None:
    if first != request:
        raise Conflict(
            "this key was used before with another body; the first answer stands.",
            hint="repeat the first request to see its answer, "
            "or use a new key for a new application.",
        )


def text_agrees(text: str, columns: tuple[Any, ...], fingerprint: str) -> bool:
    """Whether the text of a decision says what stands in its columns and beside it.

    This is what parsing would find, in less than half the time: quotation marks inside of a
    canonical text are escaped, so `"name":value` stands in it only if it is a member. Where this
    is False, parse the text to see what is wrong.
    """
    key, slot, product, policy, accept, usable = columns
    live = '"first":true,' in text and '"mode":"live",' in text
    try:
        return (
            (accept, usable) == (text.startswith('{"accept":true,'), live)
            and f'"key":{text_literal(key)},' in text
            and f'"policy":{text_literal(policy)},"product":{text_literal(product)},' in text
            and f'"sealed":"{fingerprint}","slot":{text_literal(slot)},' in text
        )
    except TypeError:  # a column that is no text
        return False


MOST_ERASED = 5000
"""Rows of a person that one statement empties."""


def erase(transaction: Transaction, keyring: Keyring, person: str, by: str) -> int:
    """Erase a person: how many decisions they were; NotFound if there is nothing to erase, Damaged
    if what is stored under the person is somebody else's.

    The key is destroyed, the sealed fields are emptied, and the chain says which rows they were.
    The chain's commitments stay as they are, so it stays valid; without salt and key they say
    nothing. What is in archives is sealed under the same key. The erasure itself names no person.
    """
    lookup = person_digest(keyring, person)
    known = (PEOPLE.c.lookup == lookup, PEOPLE.c.key.is_not(None))
    people = transaction.rows(select(PEOPLE.c.id).where(*known))
    if not people:
        raise NotFound(
            "nothing was erased: no person is known by this identifier.",
            hint="check the identifier. If decisions about the person can still be "
            "read, the index of people was changed: run evenhand audit verify --deep.",
        )
    number = people[0].id
    p = PERSONAL.c
    stored = select(p.seq).where(p.person == number, p.sealed.is_not(None))
    rows = [int(row.seq) for row in transaction.rows(stored.order_by(p.seq))]
    # each of them is opened, so that nothing of somebody else is destroyed
    mine = STORED_DECISIONS.where(p.person == number, p.sealed.is_not(None))
    decided = 0
    for row in transaction.rows(mine):
        decision = StoredDecision._make(row)
        decision.fields(keyring, json.loads(decision.body))
        decided += 1
    reports = select(OUTCOMES.c.body, *SEALED).join(PERSONAL, p.seq == OUTCOMES.c.seq)
    reports = reports.join(PEOPLE, PEOPLE.c.id == p.person)
    for report in transaction.rows(reports.where(p.person == number, p.sealed.is_not(None))):
        open_row(keyring, report.body, report.sealed, report.wrapped, bytes(report.whose))
    a = ARCHIVED.c
    archived = select(a["key"], a.hash, *SEALED).join(PERSONAL, p.seq == a.seq)
    archived = archived.join(PEOPLE, PEOPLE.c.id == p.person)
    for left in transaction.rows(archived.where(p.person == number, p.sealed.is_not(None))):
        # the key that is destroyed below is the one under which the archive holds the row
        open_past(keyring.unwrap(left.wrapped, bytes(left.whose)), left.sealed, bytes(left.hash))
        decided += left.key is not None
    transaction.append("erasure", {"rows": rows, "by": by})
    # in pieces, because somebody may have a great many rows, and no statement may take long
    for start in range(0, len(rows), MOST_ERASED):
        piece = rows[start : start + MOST_ERASED]
        between = p.seq.between(piece[0], piece[-1])
        emptied = update(PERSONAL).where(p.person == number, between).values(sealed=None)
        transaction.connection.execute(emptied)
    transaction.connection.execute(update(PEOPLE).where(PEOPLE.c.id == number).values(key=None))
    return decided
