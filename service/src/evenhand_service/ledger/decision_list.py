"""A list of decisions, newest first, page by page: found by indexes, never by reading everything.

A page is cut by the number of its rows (keyset), so the thousandth costs what the first one does.
Product, time and policy are looked up in an index; the other conditions are tested on at most
LOOKED_AT decisions per page. A page that is not full then says where it stopped, and the next one
goes on from there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    exists,
    func,
    not_,
    or_,
    select,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.sql.elements import KeyedColumnElement

from evenhand_service.ledger.database import DECISIONS, OUTCOMES
from evenhand_service.ledger.history import FOREVER, LedgerReader, Row
from evenhand_service.ledger.refusals import Invalid

PAGE = 50
"""Decisions on a page."""
LOOKED_AT = 20_000
"""Decisions of a product that one page looks at; opening the sealed group costs more, see below."""
OPENED = 2_000
"""Decisions whose group is opened for one page."""

Outcome = Literal["pending", "good", "bad", "disputed", "overruled", "none"]
OUTCOMES_LISTED: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True)
class Wanted:
    """Which decisions are listed; None means any.

    Parameters
    ----------
    accept : bool, optional
        What was drawn.
    outcome : str, optional
        "pending" (accepted, no label yet), "good", "bad", "disputed", "overruled" (a human decided
        otherwise than was drawn), "none" (rejected, so no outcome can be seen).
    group_known : bool, optional
        Whether the group is known by now.
    policy : str, optional
        The id of the policy that decided.
    since, until : float, optional
        Decided at this time or later, and before this time; in seconds.

    Raises
    ------
    Invalid
        If the outcome is none of these.

    Examples
    --------
    >>> Wanted(accept=False).accept
    False
    >>> Wanted(outcome="fine")
    Traceback (most recent call last):
        ...
    evenhand_service.ledger.refusals.Invalid: no decision has the outcome 'fine'. ...
    """

    accept: bool | None = None
    outcome: str | None = None
    group_known: bool | None = None
    policy: str | None = None
    since: float | None = None
    until: float | None = None

    def __post_init__(self) -> None:
        if self.outcome is not None and self.outcome not in OUTCOMES_LISTED:
            raise Invalid(
                f"no decision has the outcome {self.outcome[:40]!r}.",
                hint=f"the outcomes are {', '.join(OUTCOMES_LISTED)}.",
            )


@dataclass(frozen=True)
class DecisionPage:
    """Some decisions, newest first.

    Parameters
    ----------
    rows : tuple of Row
        At most PAGE of them.
    looked_at : int
        How many decisions were looked at for them.
    older : int or None
        The row before which the next page goes on; None if nothing is left.
    newer : int or None
        The row after which the page before goes on; None if there is nothing newer.

    Examples
    --------
    >>> DecisionPage((), 0, None, None).rows
    ()
    """

    rows: tuple[Row, ...]
    looked_at: int
    older: int | None
    newer: int | None


def list_decisions(
    ledger: LedgerReader,
    product: str,
    wanted: Wanted | None = None,
    *,
    before: int | None = None,
    after: int | None = None,
) -> DecisionPage:
    """List decisions of a product, newest first.

    Parameters
    ----------
    ledger : Ledger
        Where they are.
    product : str
        Whose decisions.
    wanted : Wanted, optional
        Which of them; all without it.
    before, after : int, optional
        The page that ends before this row, or the one that begins after it; the newest one without
        them.

    Returns
    -------
    DecisionPage
        The decisions, and where the pages beside it are.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand_service.ledger import Application, Keyring, Ledger, Terms
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Ledger.open(
    ...         f"{folder}/ledger.sqlite", keyring=Keyring.generate(), clock=lambda: 0.0
    ...     ) as ledger,
    ... ):
    ...     policy = ledger.publish(
    ...         "loan", {"accept": "all"}, epoch=1, parent=None, checkpoint={}
    ...     )
    ...     for key in ("k1", "k2"):
    ...         application = Application(key, key, "loan", [0.5])
    ...         _ = ledger.decide(application, Terms(policy.id, acceptance=1.0))
    ...     [row.key for row in list_decisions(ledger, "loan").rows]
    ['k2', 'k1']
    """
    wanted = wanted or Wanted()
    forward = before is None and after is not None
    c = DECISIONS.c
    tests = _tests(wanted)
    with ledger.store.reader.connect() as connection:
        low = 0 if wanted.since is None else _first_at(connection, wanted.since) - 1
        high = FOREVER if wanted.until is None else _first_at(connection, wanted.until)
        low = max(low, after or 0) if forward else low
        high = min(high, before or FOREVER)
        mine = [c.product == product, c.seq > low, c.seq < high]
        if wanted.policy is not None:
            mine.append(c.policy == wanted.policy)
        most = PAGE + 1 if not tests else LOOKED_AT
        most = most if wanted.group_known is None else OPENED
        order = c.seq if forward else c.seq.desc()
        # what is looked at, and what of it passes
        looked = select(c.seq, c.accept).where(*mine).order_by(order).limit(most).subquery().c
        passed = select(looked.seq).where(*(test(looked) for test in tests))
        passed = passed.order_by(looked.seq if forward else looked.seq.desc())
        passed = passed if wanted.group_known is not None else passed.limit(PAGE + 1)
        border = func.max(looked.seq) if forward else func.min(looked.seq)
        looked_at, reached = connection.execute(select(func.count(), border)).one()
        rows = ledger.rows_of(connection, list(connection.execute(passed).scalars()))
    if wanted.group_known is not None:
        rows = [row for row in rows if (row.group is not None) == wanted.group_known]
    page = rows[:PAGE]
    more = reached if looked_at == most else None
    more = page[-1].seq if len(rows) > PAGE else more
    if forward:
        older = page[0].seq if page else (after or 0) + 1
        return DecisionPage(tuple(page[::-1]), looked_at, older, more)
    newer = None if before is None else page[0].seq if page else before - 1
    return DecisionPage(tuple(page), looked_at, more, newer)


Columns = ReadOnlyColumnCollection[str, KeyedColumnElement[Any]]
Test = Callable[[Columns], ColumnElement[bool]]
"""A condition on the columns of a decision."""


def _tests(wanted: Wanted) -> list[Test]:
    """The conditions that are tested decision by decision: each has few reports, all indexed."""

    def reported(report: str, value: str) -> Test:
        o = OUTCOMES.c
        return lambda d: exists().where(o.decision == d.seq, o.report == report, o.value == value)

    good = reported("label", "+1")
    bad = reported("label", "-1")
    for_good = reported("settlement", "+1")
    for_bad = reported("settlement", "-1")

    def overruled(d: Columns) -> ColumnElement[bool]:
        refused = reported("override", "reject")
        let_in = reported("override", "accept")
        return or_(and_(d.accept, refused(d)), and_(not_(d.accept), let_in(d)))

    def labelled(
        d: Columns, one: Test, other: Test, settled: Test, against: Test
    ) -> ColumnElement[bool]:
        contradicted = and_(other(d), settled(d), not_(against(d)))
        return and_(d.accept, not_(overruled(d)), one(d), or_(not_(other(d)), contradicted))

    outcomes: dict[str, Test] = {
        "none": lambda d: and_(not_(d.accept), not_(overruled(d))),
        "overruled": overruled,
        "pending": lambda d: and_(d.accept, not_(overruled(d)), not_(good(d)), not_(bad(d))),
        "good": lambda d: labelled(d, good, bad, for_good, for_bad),
        "bad": lambda d: labelled(d, bad, good, for_bad, for_good),
        "disputed": lambda d: and_(
            d.accept, not_(overruled(d)), good(d), bad(d), for_good(d) == for_bad(d)
        ),
    }
    tests: list[Test] = []
    if wanted.accept is not None:
        tests.append(lambda d: d.accept if wanted.accept else not_(d.accept))
    if wanted.outcome is not None:
        tests.append(outcomes[wanted.outcome])
    return tests


def _first_at(connection: Connection, at: float) -> int:
    """The first row of a decision at this time or later: times never fall along the chain, so the
    row is found by halving.
    """
    c = DECISIONS.c
    low = 0
    high = int(connection.execute(select(func.max(c.seq))).scalar() or 0) + 1
    while low + 1 < high:
        middle = (low + high) // 2
        from_middle = select(c.seq, c.at).where(c.seq >= middle).order_by(c.seq).limit(1)
        found = connection.execute(from_middle).one_or_none()
        if found is None or found.at >= at:
            high = middle
        else:
            low = found.seq
    return high
