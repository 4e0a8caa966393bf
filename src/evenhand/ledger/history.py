"""Reading the ledger: decisions by key, the learner's history, counts. Nothing here writes."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, and_, bindparam, case, func, not_, select

from evenhand.contracts import Json
from evenhand.fairness.certificate import Scalar
from evenhand.ledger.database import DECISIONS, ERASURES, OUTCOMES, PEOPLE, PERSONAL, QUARANTINE
from evenhand.ledger.decision_draw import (
    KNOWN_BY_KEY,
    Known,
    StoredDecision,
    key_digest,
    open_known,
)
from evenhand.ledger.keyring import Keyring, Opened, open_fields
from evenhand.ledger.outcome_status import Facts, Standing, facts_from, missing_key
from evenhand.ledger.records import Counts, Drawn, LateGroup, Overruled, Row
from evenhand.ledger.refusals import Damaged

PAGE = 2000
"""Decisions that are read at once; between pages no reading transaction stays open."""

_PAGE = (
    select(
        DECISIONS.c.seq,
        DECISIONS.c.at,
        DECISIONS.c.body,
        PERSONAL.c.sealed,
        PEOPLE.c.key.label("wrapped"),
    )
    .join(PERSONAL, PERSONAL.c.seq == DECISIONS.c.seq)
    .join(PEOPLE, PEOPLE.c.id == PERSONAL.c.person)
    .where(DECISIONS.c.tenant == bindparam("tenant"), DECISIONS.c.product == bindparam("product"))
    .where(DECISIONS.c.seq > bindparam("after"), DECISIONS.c.seq <= bindparam("upto"))
    .where(DECISIONS.c.at < bindparam("before"))
    .order_by(DECISIONS.c.seq)
    .limit(PAGE)
)
_REPORTS = (
    select(
        OUTCOMES.c.decision,
        OUTCOMES.c.at,
        OUTCOMES.c.report,
        OUTCOMES.c.value,
        PERSONAL.c.sealed,
        PEOPLE.c.key.label("wrapped"),
    )
    .outerjoin(PERSONAL, PERSONAL.c.seq == OUTCOMES.c.seq)
    .outerjoin(PEOPLE, PEOPLE.c.id == PERSONAL.c.person)
    .where(
        OUTCOMES.c.decision.between(bindparam("first"), bindparam("last")),
        OUTCOMES.c.seq <= bindparam("upto"),
    )
    .order_by(OUTCOMES.c.seq)
)
FOREVER = 2**62


@dataclass(frozen=True)
class Explained:
    """One decision with everything that is known of it."""

    drawn: Drawn
    features: tuple[float, ...]
    group: Scalar | None
    prices: tuple[float, float] | None
    standing: Standing


def known(connection: Connection, keyring: Keyring, tenant: str, key: str) -> Known:
    """The decision of a key, opened; NotFound or Gone."""
    row = connection.execute(
        KNOWN_BY_KEY, {"among": [key_digest(keyring, tenant, key)]}
    ).one_or_none()
    if row is None:
        raise missing_key()
    return open_known(keyring, StoredDecision(*row))


def explained(connection: Connection, keyring: Keyring, found: Known) -> Explained:
    """The decision with everything that is known of it."""
    seq = found.drawn.seq
    reports = Reports(connection, keyring, seq, seq, FOREVER)
    group, _ = reports.group(seq, found.opened.fields["group"])
    features, prices = _numbers(found.opened)
    return Explained(
        found.drawn, features, group, prices, reports.facts(seq, found.drawn.accept).standing
    )


class Reports:
    """The reports on the decisions first..last that stand in rows up to `upto`.

    Each question may be asked as of a time: `until`.
    """

    def __init__(
        self, connection: Connection, keyring: Keyring, first: int, last: int, upto: int
    ) -> None:
        self._told: dict[int, list[tuple[float, str, str]]] = {}
        self._groups: dict[int, list[tuple[float, Any]]] = {}
        for row in connection.execute(_REPORTS, {"first": first, "last": last, "upto": upto}):
            self._told.setdefault(row.decision, []).append((row.at, row.report, row.value))
            if row.report == "group" and row.sealed is not None:
                told = open_fields(keyring.unwrap(row.wrapped), row.sealed).fields["group"]
                self._groups.setdefault(row.decision, []).append((row.at, told))

    def facts(self, decision: int, accept: bool, until: float = math.inf) -> Facts:
        """The set of reports on one decision."""
        return facts_from(
            accept,
            [(kind, value) for at, kind, value in self._told.get(decision, []) if at <= until],
        )

    def group(self, decision: int, known_then: Any, until: float = math.inf) -> tuple[Any, bool]:
        """(group, whether it was told after the coin): as it was known when the decision was made,
        else as told since, unless two were.
        """
        told = [group for at, group in self._groups.get(decision, []) if at <= until]
        if known_then is not None or len(told) != 1:
            return known_then, False
        return told[0], True


def history(
    engine: Engine,
    keyring: Keyring,
    tenant: str,
    product: str,
    *,
    after: int,
    upto: int,
    decided_before: float,
    usable_only: bool,
    maturity: float | None,
) -> Iterator[Row]:
    """Decisions in the order of the chain, each with the reports up to row `upto`; nobody is left
    out because of what was reported.
    """
    where = {"tenant": tenant, "product": product, "upto": upto, "before": decided_before}
    while True:
        with engine.connect() as connection:
            page = connection.execute(_PAGE, {**where, "after": after}).all()
            if not page:
                return
            reports = Reports(connection, keyring, page[0].seq, page[-1].seq, upto)
        after = page[-1].seq
        found = (_row(keyring, row, reports, maturity, usable_only=usable_only) for row in page)
        yield from (row for row in found if row is not None)


def _row(
    keyring: Keyring, row: Any, reports: Reports, maturity: float | None, *, usable_only: bool
) -> Row | None:
    """`usable` is known before the coin: the first application of the person in the window, and
    live. Nothing that happens later counts.
    """
    body: Json = json.loads(row.body)
    if usable_only and not (body["first"] and body["mode"] == "live"):
        return None
    end = math.inf if maturity is None else row.at + maturity
    standing = reports.facts(row.seq, body["accept"]).standing
    opened = None if row.sealed is None else open_fields(keyring.unwrap(row.wrapped), row.sealed)
    features, prices = (None, None) if opened is None else _numbers(opened)
    group, late = (
        (None, False) if opened is None else reports.group(row.seq, opened.fields["group"], end)
    )
    names = ("window", "u", "accept", "acceptance", "audit", "audit_weight", "policy", "epoch")
    return Row(
        seq=row.seq,
        at=row.at,
        features=features,
        group=group,
        prices=prices,
        label=standing.label,
        status=standing.status,
        erased=opened is None,
        overruled=standing.overruled,
        settled=reports.facts(row.seq, body["accept"], end).standing.label,
        group_late=late,
        **{name: body[name] for name in names},
    )


def _numbers(opened: Opened) -> tuple[tuple[float, ...], tuple[float, float] | None]:
    stored = opened.fields["features"]
    try:
        prices = stored["prices"]
        return tuple(stored["features"]), None if prices is None else (prices[0], prices[1])
    except (KeyError, TypeError, IndexError):
        raise Damaged("the sealed features are not what this ledger writes.") from None


def count_usable(connection: Connection, tenant: str, product: str, after: int, upto: int) -> int:
    """Usable decisions of the rows after `after` up to `upto`, counted by the database and not by
    reading them.
    """
    c = DECISIONS.c
    mine = select(func.count()).where(c.tenant == tenant, c.product == product, c.usable)
    return int(connection.execute(mine.where(c.seq > after, c.seq <= upto)).scalar_one())


def count_overrides(connection: Connection, tenant: str, product: str, upto: int) -> int:
    """Overrides in rows up to `upto`, those that agree with the draw among them."""
    told = select(func.count()).select_from(
        OUTCOMES.join(DECISIONS, DECISIONS.c.seq == OUTCOMES.c.decision)
    )
    mine = told.where(
        DECISIONS.c.tenant == tenant,
        DECISIONS.c.product == product,
        OUTCOMES.c.report == "override",
    )
    return int(connection.execute(mine.where(OUTCOMES.c.seq <= upto)).scalar_one())


def newest_erasure(connection: Connection, tenant: str, product: str, after: int, upto: int) -> int:
    """The last row after `after` up to `upto` by which decisions of a product were erased; `after`
    if there is none.
    """
    between = (ERASURES.c.seq > after, ERASURES.c.seq <= upto)
    newest_first = (
        select(ERASURES.c.seq, ERASURES.c.body).where(*between).order_by(ERASURES.c.seq.desc())
    )
    for erasure in connection.execute(newest_first).all():
        listed = DECISIONS.c.seq.in_(json.loads(erasure.body)["rows"])
        mine = select(DECISIONS.c.seq).where(
            listed, DECISIONS.c.tenant == tenant, DECISIONS.c.product == product
        )
        if connection.execute(mine.limit(1)).first() is not None:
            return int(erasure.seq)
    return after


def late_groups(
    connection: Connection, keyring: Keyring, tenant: str, product: str, after: int, upto: int
) -> list[LateGroup]:
    """Usable decisions whose group is another one at row `upto` than it was at row `after`."""
    return [
        LateGroup(now.seq, now.accept, then.group, now.group, then.overruled)
        for then, now in _changed(
            connection, keyring, tenant, product, "group", after, upto, decided=after
        )
        if then.group != now.group
    ]


def overruled(
    connection: Connection, keyring: Keyring, tenant: str, product: str, after: int, upto: int
) -> list[Overruled]:
    """Usable decisions that people have overruled at row `upto`, and had not at row `after`."""
    return [
        Overruled(now.seq, now.accept, now.group)
        for then, now in _changed(
            connection, keyring, tenant, product, "override", after, upto, decided=upto
        )
        if now.overruled and not then.overruled
    ]


def _changed(
    connection: Connection,
    keyring: Keyring,
    tenant: str,
    product: str,
    report: str,
    after: int,
    upto: int,
    decided: int,
) -> Iterator[tuple[Row, Row]]:
    """(as known at row `after`, as known at row `upto`) of usable decisions up to row `decided`
    about which something was told between.
    """
    told = select(OUTCOMES.c.decision).where(
        OUTCOMES.c.report == report, OUTCOMES.c.seq > after, OUTCOMES.c.seq <= upto
    )
    where = {"tenant": tenant, "product": product, "after": 0, "upto": decided, "before": math.inf}
    for row in connection.execute(_PAGE.limit(None).where(DECISIONS.c.seq.in_(told)), where).all():
        then, now = (
            _row(
                keyring,
                row,
                Reports(connection, keyring, row.seq, row.seq, at),
                None,
                usable_only=True,
            )
            for at in (after, upto)
        )
        if then is not None and now is not None:
            yield then, now


def counts(connection: Connection, tenant: str, product: str) -> Counts:
    """How many decisions stand where."""
    mine = and_(DECISIONS.c.tenant == tenant, DECISIONS.c.product == product)
    per_decision = _per_decision().where(mine).subquery()
    c = per_decision.c
    told = c.positive + c.negative
    settled = c.settled_good + c.settled_bad == 1
    open_to_labels = and_(c.accept, c.overruled == 0)
    resolved = and_(open_to_labels, (told == 1) | and_(told == 2, settled))
    chosen = {
        "decisions": func.count(),
        "accepted": _sum(c.accept),
        "usable": _sum(c.usable),
        "pending": _sum(and_(open_to_labels, told == 0)),
        "resolved": _sum(resolved),
        "disputed": _sum(and_(open_to_labels, told == 2, not_(settled))),
        "overruled": _sum(c.overruled > 0),
        "quarantined": func.coalesce(func.sum(c.quarantined), 0),
        "erased": _sum(c.erased),
    }
    row = connection.execute(
        select(*(value.label(name) for name, value in chosen.items())).select_from(per_decision)
    ).one()
    return Counts(**{name: int(getattr(row, name)) for name in chosen})


def _sum(condition: Any) -> Any:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _per_decision() -> Any:
    """One row per decision with the number of its reports of each kind."""

    def number(table: Any, *conditions: Any) -> Any:
        return (
            select(func.count())
            .where(table.c.decision == DECISIONS.c.seq, *conditions)
            .scalar_subquery()
        )

    def told(report: str, value: str) -> Any:
        return number(OUTCOMES, OUTCOMES.c.report == report, OUTCOMES.c.value == value)

    erased = (
        select(PERSONAL.c.sealed.is_(None))
        .where(PERSONAL.c.seq == DECISIONS.c.seq)
        .scalar_subquery()
    )
    return select(
        DECISIONS.c.accept,
        DECISIONS.c.usable,
        told("label", "+1").label("positive"),
        told("label", "-1").label("negative"),
        told("settlement", "+1").label("settled_good"),
        told("settlement", "-1").label("settled_bad"),
        case(
            (DECISIONS.c.accept, told("override", "reject")), else_=told("override", "accept")
        ).label("overruled"),
        number(QUARANTINE).label("quarantined"),
        erased.label("erased"),
    )
