"""What is known of one decision, as a function of the set of its reports: the order in which they
came does not matter.

    rejected    by the machine; labels are refused and quarantined, whatever a human did afterwards
    overruled   drawn "accept", but a human refused: labels are kept, none is learned from
    disputed    labels +1 and -1 were both reported, and no settlement (or two that differ) decides
    resolved    one label
    pending     accepted, no label yet

A decision stays as it was drawn, whatever people made of it: an override can take its label away,
and nothing else. One that agrees with the draw is on record and changes nothing. Adding a report to
a set is commutative and idempotent, and `Facts.standing` looks at the set alone; that is the whole
proof. A settlement is entered only where two labels contradict each other already (`Conflict`): one
that came first would decide a dispute that nobody has seen.
"""

import json
import threading
from collections.abc import Callable, Container, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    ScalarSelect,
    Select,
    Table,
    and_,
    bindparam,
    case,
    func,
    literal,
    not_,
    or_,
    select,
    union,
    union_all,
)

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.fairness.certificate import Scalar
from evenhand_service.ledger.chain import Transaction, read_archives
from evenhand_service.ledger.database import (
    ARCHIVED,
    DECISIONS,
    ERASURES,
    OUTCOMES,
    PERSONAL,
    QUARANTINE,
    SUMMARIES,
)
from evenhand_service.ledger.decision_draw import (
    ARCHIVED_KEYS,
    STORED_DECISIONS,
    StoredDecision,
    archived_key,
    key_digest,
)
from evenhand_service.ledger.keyring import Entropy, Keyring, seal_fields
from evenhand_service.ledger.refusals import Conflict, Invalid, NotFound, Refusal

Status = Literal["rejected", "pending", "resolved", "disputed", "overruled"]
Result = Literal["recorded", "repeated", "disputed", "quarantined"]


def _require_label(label: int) -> None:
    if type(label) is not int or label not in (-1, 1):
        raise Invalid("a label is -1 (bad outcome) or +1 (good outcome), as a whole number.")


@dataclass(frozen=True)
class Label:
    """The outcome of an accepted person.

    Parameters
    ----------
    label : {-1, +1}
        +1 is the good outcome.

    Raises
    ------
    Invalid
        If it is neither.

    Examples
    --------
    >>> Label(+1).label
    1
    """

    label: int

    def __post_init__(self) -> None:
        _require_label(self.label)


@dataclass(frozen=True)
class Settlement:
    """An operator says which of two disputed labels holds.

    Parameters
    ----------
    label : {-1, +1}
        The label that holds.
    by : str
        Who says so.
    note : str
        Why.

    Raises
    ------
    Invalid
        If the label is neither.

    Examples
    --------
    >>> Settlement(-1, by="Ada", note="two letters of the debtor").label
    -1
    """

    label: int
    by: str
    note: str = ""

    def __post_init__(self) -> None:
        _require_label(self.label)


@dataclass(frozen=True)
class Override:
    """A human decided, whatever the machine had drawn.

    The decision stays on record as it was drawn.

    Parameters
    ----------
    accept : bool
        What the human decided.
    by : str
        Who it was.
    note : str
        Why.

    Examples
    --------
    >>> Override(True, by="Ada").accept
    True
    """

    accept: bool
    by: str
    note: str = ""


@dataclass(frozen=True)
class GroupReport:
    """A group that became known after the decision, for accepted and rejected people alike.

    Parameters
    ----------
    group : str, int, float or bool
        The group.

    Examples
    --------
    >>> GroupReport("a").group
    'a'
    """

    group: Scalar


Report = Label | Settlement | Override | GroupReport


@dataclass(frozen=True)
class Standing:
    """What the reports on a decision add up to.

    Parameters
    ----------
    status : {"rejected", "pending", "resolved", "disputed", "overruled"}
        See the module.
    label : {-1, 0, +1}
        0 unless the status is "resolved".
    overruled : bool
        Whether a human decided otherwise than was drawn. Somebody who was rejected stays rejected
        then.

    Examples
    --------
    >>> Facts(accept=True).with_report(Label(+1)).standing
    Standing(status='resolved', label=1, overruled=False)
    """

    status: Status
    label: int = 0
    overruled: bool = False


@dataclass(frozen=True)
class Facts:
    """The set of reports on one decision.

    Parameters
    ----------
    accept : bool
        What was drawn.
    labels, settlements : frozenset of int
        The labels that were reported, and those that operators settled on.
    overrides : frozenset of bool
        What humans decided.
    groups : frozenset of str
        The digests of the groups that were reported: they are distinguished by them, never by their
        values.

    Examples
    --------
    >>> facts = Facts(accept=True).with_report(Label(+1)).with_report(Label(-1))
    >>> facts.standing.status
    'disputed'
    >>> facts.with_report(Settlement(-1, by="Ada")).standing.label
    -1
    """

    accept: bool
    labels: frozenset[int] = frozenset()
    settlements: frozenset[int] = frozenset()
    overrides: frozenset[bool] = frozenset()
    groups: frozenset[str] = frozenset()

    @property
    def standing(self) -> Standing:
        """The status, and the label that may be learned.

        Of two overrides that contradict each other, the one against the draw counts.
        """
        overruled = (not self.accept) in self.overrides
        if not self.accept:
            return Standing("rejected", overruled=overruled)
        if overruled:
            return Standing("overruled", overruled=True)
        if not self.labels:
            return Standing("pending")
        for labels in (self.labels, self.settlements):
            if len(labels) == 1:
                return Standing("resolved", next(iter(labels)))
        return Standing("disputed")

    @property
    def costs_an_audit(self) -> bool:
        """Whether an acceptance by the audit coin counts as bad: unless the label is good, or a
        human rejected the person and no label came, which only somebody who was accepted has.
        """
        if self.standing.overruled and not self.labels:
            return False
        return replace(self, overrides=frozenset()).standing.label != 1

    def refuses(self, report: Report) -> bool:
        """Say whether a report is a label of a person whom the machine rejected.

        Parameters
        ----------
        report : Label, Settlement, Override or GroupReport
            The report.

        Returns
        -------
        bool
            True: it goes into quarantine.
        """
        return not self.accept and isinstance(report, Label | Settlement)

    def with_report(self, report: Report, digest: str = "") -> "Facts":
        """Add a report to the set.

        Parameters
        ----------
        report : Label, Settlement, Override or GroupReport
            The report. One that is refused changes nothing.
        digest : str
            The digest of its group, if it names one.

        Returns
        -------
        Facts
            The set with one more member.
        """
        if self.refuses(report):
            return self
        kind, value = kind_and_value(report, digest)
        name, read = _FACTS[kind]
        changed: dict[str, Any] = {name: getattr(self, name) | {read(value)}}
        return replace(self, **changed)


_FACTS: dict[str, tuple[str, Callable[[str], int | bool | str]]] = {
    "label": ("labels", int),
    "settlement": ("settlements", int),
    "override": ("overrides", lambda value: value == "accept"),
    "group": ("groups", str),
}
"""By the kind of a report: where `Facts` keeps it, and how its value is read."""


@dataclass(frozen=True)
class Verdict:
    """What became of a report.

    Parameters
    ----------
    result : {"recorded", "repeated", "disputed", "quarantined"}
        What was done with it. "quarantined" is a label of a rejected person.
    standing : Standing
        What is known of the decision now.
    seq : int
        The number of the row of the report.

    Examples
    --------
    >>> Verdict("recorded", Standing("resolved", 1), 12).standing.label
    1
    """

    result: Result
    standing: Standing
    seq: int


def result_of(before: Facts, report: Report, after: Facts) -> Result:
    """What the reporter is answered."""
    if before.refuses(report):
        return "quarantined"
    if before == after:
        return "repeated"
    disputed = after.standing.status == "disputed" or (
        isinstance(report, GroupReport) and len(after.groups) > 1
    )
    return "disputed" if disputed else "recorded"


def kind_and_value(report: Report, digest: str = "") -> tuple[str, str]:
    """(kind, value): by which two reports about one decision are the same."""
    match report:
        case Label(label):
            return "label", f"{label:+d}"
        case Settlement(label):
            return "settlement", f"{label:+d}"
        case Override(accept):
            return "override", "accept" if accept else "reject"
        case GroupReport():
            return "group", digest


def facts_from(accept: bool, reports: list[tuple[str, str]]) -> Facts:
    """The set that stored (kind, value) pairs stand for."""
    known: dict[str, Any] = {
        name: frozenset(read(value) for reported, value in reports if reported == kind)
        for kind, (name, read) in _FACTS.items()
    }
    return Facts(accept, **known)


# Entering reports

KeyedReport = tuple[str, Report]
"""(key, report)."""


def _reports_in(table: Table, quarantined: int) -> Select[int, int, str, str, int]:
    c = table.c
    set_aside = literal(quarantined).label("set_aside")
    about = c.decision.in_(bindparam("decisions", expanding=True))
    return select(c.seq, c.decision, c.report, c.value, set_aside).where(about)


_REPORTS = union_all(_reports_in(OUTCOMES, 0), _reports_in(QUARANTINE, 1))


def missing_key() -> NotFound:
    """No decision has that key."""
    return NotFound("no decision has this key.", hint="use the key of the application.")


class Reporter:
    """Enters reports."""

    def __init__(self, keyring: Keyring, entropy: Entropy) -> None:
        self._keyring = keyring
        self._entropy = entropy

    def report(
        self, transaction: Transaction, reports: Sequence[KeyedReport]
    ) -> list[Verdict | Refusal]:
        """Enter all reports; a refused one leaves nothing behind and does not stop the
        others.
        """
        digests = [key_digest(self._keyring, key) for key, _ in reports]
        stored = transaction.rows_among(STORED_DECISIONS, DECISIONS.c.key, list(set(digests)))
        decisions = {row[0]: StoredDecision(*row) for row in stored}
        missing = [bytes.fromhex(digest) for digest in set(digests) - decisions.keys()]
        archived = {
            bytes(key).hex(): int(seq)
            for key, seq in transaction.rows_among(ARCHIVED_KEYS, ARCHIVED.c["key"], missing)
        }
        entered = _Entered(transaction, [row.seq for row in decisions.values()])
        verdicts: list[Verdict | Refusal] = []
        for digest, (_, report) in zip(digests, reports, strict=True):
            try:
                if digest in archived:
                    raise archived_key(archived[digest])
                if digest not in decisions:
                    raise missing_key()
                verdicts.append(self._enter(transaction, decisions[digest], report, entered))
            except Refusal as refusal:
                verdicts.append(refusal)
        return verdicts

    def _enter(
        self, transaction: Transaction, row: StoredDecision, report: Report, entered: "_Entered"
    ) -> Verdict:
        drawn, opened = row.opened(self._keyring)
        before = facts_from(drawn.accept, entered.counted(row.seq))
        digest = ""
        if isinstance(report, GroupReport):
            # a group that was known before the decision counts as reported
            known = opened.fields["group"]
            if known is not None:
                digest = self._group_digest(row.seq, known, before.groups)
                before = before.with_report(GroupReport(known), digest)
            digest = self._group_digest(row.seq, report.group, before.groups)
        contradicted = len(before.labels) > 1 or not drawn.accept
        if isinstance(report, Settlement) and not contradicted:
            raise Conflict(
                "no two labels of this decision contradict each other; there is nothing to settle.",
                hint="report the outcome itself (POST /v1/outcomes).",
            )
        after = before.with_report(report, digest)
        result = result_of(before, report, after)
        kind, value = kind_and_value(report, digest)
        seq = entered.seq_of(row.seq, kind, value)
        if seq is None and result != "repeated":
            details = {}
            if isinstance(report, Settlement | Override):
                details = {"by": report.by, "note": report.note}
            body = {"decision": row.seq, "report": kind, "value": value, "details": details}
            if isinstance(report, GroupReport):
                # a group is personal: it is committed to in the chain, and sealed beside it
                key = self._keyring.unwrap(row.wrapped, bytes(row.whose))
                texts = {"group": canonical(report.group)}
                sealed = seal_fields(key, texts, self._entropy)
                whose = select(PERSONAL.c.person).where(PERSONAL.c.seq == row.seq)
                (person,) = transaction.rows(whose)[0]
                more = {"commit": sealed.commit, "sealed": sealed.fingerprint}
                seq = transaction.append("outcome", body | more)
                transaction.pending[PERSONAL].append((seq, person, sealed.data))
            else:
                table = "quarantine" if result == "quarantined" else "outcome"
                seq = transaction.append(table, body)
            entered.add(row.seq, kind, value, seq, quarantined=result == "quarantined")
        return Verdict(result, after.standing, row.seq if seq is None else seq)

    def _group_digest(self, decision: int, group: Scalar, known: Container[str] = ()) -> str:
        """Distinguishes groups of *one* decision; between decisions it says nothing, so nobody can
        be counted by it. Equal numbers are one group: 1 is known if 1.0 is, and the other way
        round.
        """
        spellings = [group]
        if type(group) in (int, float) and group == 0:
            spellings += [0, 0.0, -0.0]
        elif isinstance(group, float) and group.is_integer():
            spellings.append(int(group))
        elif type(group) is int and abs(group) <= 2**53:
            spellings.append(float(group))
        digests = [
            self._keyring.digest("group", str(decision), canonical(one)).hex() for one in spellings
        ]
        return next((digest for digest in digests if digest in known), digests[0])


class _Entered:
    """The reports in the ledger on some decisions, and those that were added since."""

    def __init__(self, transaction: Transaction, decisions: list[int]) -> None:
        self._entries: dict[int, dict[tuple[str, str], tuple[int, bool]]] = {}
        for row in transaction.rows(_REPORTS, {"decisions": decisions}) if decisions else ():
            self.add(row.decision, row.report, row.value, row.seq, quarantined=bool(row.set_aside))

    def add(self, decision: int, kind: str, value: str, seq: int, *, quarantined: bool) -> None:
        self._entries.setdefault(decision, {})[kind, value] = (seq, quarantined)

    def seq_of(self, decision: int, kind: str, value: str) -> int | None:
        seq, _ = self._entries.get(decision, {}).get((kind, value), (None, False))
        return seq

    def counted(self, decision: int) -> list[tuple[str, str]]:
        entries = self._entries.get(decision, {}).items()
        return [pair for pair, (_, quarantined) in entries if not quarantined]


# counts of the decisions by where they stand

KEEP_EVERY = 5000
"""Rows after which a summary is kept again."""
SUMMARY = b"summary"
"""Whose what is kept: nobody's, so that no key of a person opens as one, nor the other way round.
"""


@dataclass(frozen=True)
class Counts:
    """How many decisions of a product there are of each kind.

    Parameters
    ----------
    decisions, accepted, usable : int
        All, those drawn "accept", and those that may be learned from.
    pending, resolved, disputed, overruled : int
        By the status of their outcome; see `Standing`. Also rejected people can be overruled.
    quarantined : int
        Labels of rejected people.
    erased : int
        Decisions about people who have been erased.

    Examples
    --------
    >>> Counts(decisions=3, accepted=2, pending=2).resolved
    0
    """

    decisions: int = 0
    accepted: int = 0
    usable: int = 0
    pending: int = 0
    resolved: int = 0
    disputed: int = 0
    overruled: int = 0
    quarantined: int = 0
    erased: int = 0


def _number(table: Table, *conditions: ColumnElement[bool]) -> ScalarSelect[int]:
    known = table.c.seq <= bindparam("upto")
    mine = select(func.count()).where(table.c.decision == DECISIONS.c.seq, known, *conditions)
    return mine.scalar_subquery()


def _reported(report: str, value: str) -> ScalarSelect[int]:
    return _number(OUTCOMES, OUTCOMES.c.report == report, OUTCOMES.c.value == value)


def _sums(*which: ColumnElement[bool]) -> Executable:
    """The sums over some decisions of a product, as known at row `upto`; all but erased."""
    one = (
        select(
            DECISIONS.c.accept,
            DECISIONS.c.usable,
            (_reported("label", "+1") + _reported("label", "-1")).label("labels"),
            (_reported("settlement", "+1") + _reported("settlement", "-1")).label("settlements"),
            case(
                (DECISIONS.c.accept, _reported("override", "reject")),
                else_=_reported("override", "accept"),
            ).label("overruled"),
            _number(QUARANTINE).label("quarantined"),
        )
        .where(
            DECISIONS.c.product == bindparam("product"),
            *which,
        )
        .subquery()
        .c
    )
    open_to_labels = and_(one.accept, one.overruled == 0)
    contradicted = one.labels == 2
    settled = one.settlements == 1
    conditions = {
        "accepted": one.accept,
        "usable": one.usable,
        "pending": and_(open_to_labels, one.labels == 0),
        "resolved": and_(open_to_labels, or_(one.labels == 1, and_(contradicted, settled))),
        "disputed": and_(open_to_labels, contradicted, not_(settled)),
        "overruled": one.overruled > 0,
    }
    sums: dict[str, ColumnElement[int]] = {
        name: func.sum(case((test, 1), else_=0)) for name, test in conditions.items()
    }
    sums |= {"decisions": func.count(), "quarantined": func.sum(one.quarantined)}
    return select(*(value.label(name) for name, value in sums.items()))


_new = (DECISIONS.c.seq > bindparam("since"), DECISIONS.c.seq <= bindparam("upto"))
_told = union(
    *(
        select(table.c.decision).where(
            table.c.seq > bindparam("since"), table.c.seq <= bindparam("last")
        )
        for table in (OUTCOMES, QUARANTINE)
    )
)
_NEW = _sums(*_new)
_CHANGED = _sums(DECISIONS.c.seq <= bindparam("since"), DECISIONS.c.seq.in_(_told))
_ERASURES = select(ERASURES.c.seq, ERASURES.c.body).where(
    ERASURES.c.seq > bindparam("since"), ERASURES.c.seq <= bindparam("upto")
)


def sums_of(connection: Connection, product: str, last: int, known: int) -> dict[str, int]:
    """The counts of the decisions up to row `last`, as known at row `known`."""
    given = {"product": product, "since": 0, "upto": known, "end": last}
    old = _sums(DECISIONS.c.seq <= bindparam("end"))
    (row,) = connection.execute(old, given).all()
    counts = {name: int(value or 0) for name, value in row._mapping.items()}
    emptied = (
        select(func.count())
        .select_from(DECISIONS)
        .join(PERSONAL, PERSONAL.c.seq == DECISIONS.c.seq)
        .where(DECISIONS.c.product == product, DECISIONS.c.seq <= last, PERSONAL.c.sealed.is_(None))
    )
    return {**counts, "erased": int(connection.execute(emptied).scalar_one())}


class RunningCounts:
    """The counts of one product; `look` brings them up to a row.

    Decisions that are in archives are counted by what the chain says of them. When a new archive is
    made, everything is counted again: the reports on its decisions are gone.
    """

    def __init__(self, product: str) -> None:
        self.product = product
        self.upto = 0
        self.kept = 0
        self._archives: list[Json] = []
        self.counts = Counts()
        self.lock = threading.Lock()

    def look(
        self, connection: Connection, upto: int, keyring: Keyring, rows: int | None = None
    ) -> Counts:
        """The counts as of row `upto`, or of `rows` rows after those that were counted before."""
        with self.lock:
            archives = [one for one in read_archives(connection) if one["seq"] <= upto]
            if archives != self._archives:
                self._archives = archives
                self.upto = 0
            if self.upto == 0:
                self._begin()
                self._resume(connection, upto, keyring)
            if rows is not None:
                upto = min(upto, self.upto + rows)
            if upto > self.upto:
                given = {"product": self.product, "since": self.upto, "last": upto}

                def summed(statement: Executable, known: int) -> dict[str, int]:
                    (row,) = connection.execute(statement, {**given, "upto": known}).all()
                    return {name: int(value or 0) for name, value in row._mapping.items()}

                new = summed(_NEW, upto)
                now = summed(_CHANGED, upto)
                before = summed(_CHANGED, self.upto)
                changes = {name: new[name] + now[name] - before[name] for name in new}
                changes["erased"] = self._erased(connection, upto)
                whole = asdict(self.counts)
                self.counts = Counts(**{name: whole[name] + changes[name] for name in whole})
                self.upto = upto
            return self.counts

    def _erased(self, connection: Connection, upto: int) -> int:
        found = connection.execute(_ERASURES, {"since": self.upto, "upto": upto}).all()
        rows = [seq for _, body in found for seq in json.loads(body)["rows"]]
        number = 0
        for erasure, body in found if self._archives else ():
            # who had been erased when the archive was made is in its counts
            last = max((one["last"] for one in self._archives if one["seq"] < erasure), default=0)
            listed = [seq for seq in json.loads(body)["rows"] if seq <= last]
            number += self._number_among(connection, ARCHIVED, listed)
        return number + self._number_among(connection, DECISIONS, rows)

    def _number_among(self, connection: Connection, table: Table, rows: list[int]) -> int:
        """How many of the rows are decisions of the product in this table."""
        number = 0
        for start in range(0, len(rows), 500):
            listed = table.c.seq.in_(rows[start : start + 500])
            mine = select(func.count()).where(listed, table.c.product == self.product)
            number += int(connection.execute(mine).scalar_one())
        return number

    def _begin(self) -> None:
        """What is in archives."""
        counts = asdict(Counts())
        for one in self._archives:
            mine = one["counts"].get(self.product, {})
            counts = {name: counts[name] + mine.get(name, 0) for name in counts}
        self.counts = Counts(**counts)

    def _resume(self, connection: Connection, upto: int, keyring: Keyring) -> None:
        found = read_summary(connection, keyring, "counts", self.product)
        if found is None or any(one["seq"] > found[0] for one in self._archives):
            return
        if found[0] <= upto and set(found[1]) == set(asdict(Counts())):
            self.upto = self.kept = found[0]
            self.counts = replace(Counts(), **found[1])


def read_summary(
    connection: Connection, keyring: Keyring, what: str, product: str
) -> tuple[int, Json] | None:
    """(the row up to which it counts, what was kept); None if there is none that opens."""
    s = SUMMARIES.c
    mine = select(s.upto, s.data).where(s.product == product, s.what == what)
    row = connection.execute(mine).first()
    if row is None:
        return None
    try:
        document: Json = json.loads(keyring.unwrap(bytes(row.data), SUMMARY))
    except (Refusal, ValueError):
        return None
    # what it is about is sealed too, so that no summary can be put in the place of another
    if document.pop("about", None) != [product, what, row.upto]:
        return None
    return int(row.upto), document
