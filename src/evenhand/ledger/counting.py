"""Running counts: what a product's decisions amount to, from the rows that are new since the last
look.

    counts(upto) = counts(since) + new decisions as of `upto`
                   + for each older decision that was reported on since:
                     what it counts as of `upto` - what it counted as of `since`

So a look costs as much as has happened since the last one. A process that starts goes on from a
summary that another has kept, sealed by the keyring, in a table of its own; one that does not open
is thrown away, and everything is counted again. The chain knows nothing of it.
"""

import json
import threading
from dataclasses import asdict, dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    ScalarSelect,
    Table,
    and_,
    bindparam,
    case,
    func,
    not_,
    or_,
    select,
    union,
)

from evenhand.contracts import Json
from evenhand.ledger.database import DECISIONS, ERASURES, OUTCOMES, QUARANTINE, SUMMARIES
from evenhand.ledger.keyring import Keyring
from evenhand.ledger.refusals import Refusal

KEEP_EVERY = 5000
"""Rows after which a summary is kept again."""


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
            DECISIONS.c.tenant == bindparam("tenant"),
            DECISIONS.c.product == bindparam("product"),
            *which,
        )
        .subquery()
        .c
    )
    open_to_labels = and_(one.accept, one.overruled == 0)
    contradicted, settled = one.labels == 2, one.settlements == 1
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
_NEW, _CHANGED = (
    _sums(*_new),
    _sums(DECISIONS.c.seq <= bindparam("since"), DECISIONS.c.seq.in_(_told)),
)
_ERASURES = select(ERASURES.c.body).where(
    ERASURES.c.seq > bindparam("since"), ERASURES.c.seq <= bindparam("upto")
)


class RunningCounts:
    """The counts of one product; `look` brings them up to a row."""

    def __init__(self, tenant: str, product: str) -> None:
        self.names = {"tenant": tenant, "product": product}
        self.upto, self.kept, self.counts = 0, 0, Counts()
        self.lock = threading.Lock()

    def look(self, connection: Connection, upto: int, keyring: Keyring) -> Counts:
        """The counts as of row `upto`."""
        with self.lock:
            kept = (
                read_summary(connection, keyring, "counts", **self.names) if not self.upto else None
            )
            if kept is not None and kept[0] <= upto and set(kept[1]) == set(asdict(Counts())):
                self.upto = self.kept = kept[0]
                self.counts = Counts(**kept[1])
            if upto > self.upto:
                given = {**self.names, "since": self.upto, "last": upto}

                def summed(statement: Executable, known: int) -> dict[str, int]:
                    (row,) = connection.execute(statement, {**given, "upto": known}).all()
                    return {name: int(value or 0) for name, value in row._mapping.items()}

                new = summed(_NEW, upto)
                now, before = summed(_CHANGED, upto), summed(_CHANGED, self.upto)
                changes = {name: new[name] + now[name] - before[name] for name in new}
                changes["erased"] = self._erased(connection, upto)
                whole = asdict(self.counts)
                self.counts = Counts(**{name: whole[name] + changes[name] for name in whole})
                self.upto = upto
            return self.counts

    def _erased(self, connection: Connection, upto: int) -> int:
        found = connection.execute(_ERASURES, {"since": self.upto, "upto": upto}).scalars()
        rows = [seq for body in found for seq in json.loads(body)["rows"]]
        number = 0
        for start in range(0, len(rows), 500):
            mine = select(func.count()).where(
                DECISIONS.c.seq.in_(rows[start : start + 500]),
                DECISIONS.c.tenant == self.names["tenant"],
                DECISIONS.c.product == self.names["product"],
            )
            number += int(connection.execute(mine).scalar_one())
        return number


def read_summary(
    connection: Connection, keyring: Keyring, what: str, tenant: str, product: str
) -> tuple[int, Json] | None:
    """(the row up to which it counts, what was kept); None if there is none that opens."""
    s = SUMMARIES.c
    mine = select(s.upto, s.data).where(s.tenant == tenant, s.product == product, s.what == what)
    row = connection.execute(mine).first()
    if row is None:
        return None
    try:
        document: Json = json.loads(keyring.unwrap(bytes(row.data)))
    except (Refusal, ValueError):
        return None
    # what it is about is sealed too, so that no summary can be put in the place of another
    if document.pop("about", None) != [tenant, product, what, row.upto]:
        return None
    return int(row.upto), document
