"""The list of decisions against the whole history, filtered one by one; and its work, counted."""

import contextlib
import itertools
import random

import pytest
from service.tests.ledger.helpers import (
    PRODUCT,
    Clock,
    coin,
    decided,
    opened,
    person,
    published,
)
from sqlalchemy import event

from evenhand_service.ledger import (
    Conflict,
    GroupReport,
    Invalid,
    Label,
    Override,
    Settlement,
    Terms,
    Wanted,
    list_decisions,
)
from evenhand_service.ledger import decision_list as listing

OUTCOME = {
    "none": lambda row: row.status == "rejected" and not row.overruled,
    "pending": lambda row: row.status == "pending",
    "good": lambda row: row.status == "resolved" and row.label == 1,
    "bad": lambda row: row.status == "resolved" and row.label == -1,
    "disputed": lambda row: row.status == "disputed",
    "overruled": lambda row: row.overruled,
}


@pytest.fixture
def busy(where, monkeypatch):
    """Two products, two policies, every kind of report, some people erased."""
    monkeypatch.setattr(listing, "PAGE", 7)
    monkeypatch.setattr(listing, "LOOKED_AT", 23)
    monkeypatch.setattr(listing, "OPENED", 11)
    clock, chosen = Clock(), random.Random(3)
    with opened(where, clock, entropy=random.Random(1).randbytes) as ledger:
        first = published(ledger)
        second = ledger.publish(PRODUCT, coin(0.4), epoch=2, parent=first, checkpoint={}).id
        other = ledger.publish("rival", coin(0.5), epoch=1, parent=None, checkpoint={})
        for number in range(150):
            clock.now += chosen.choice([0.0, 1.0])
            group = chosen.choice([None, "a", "b"])
            policy = chosen.choice([first, second, second])
            ledger.decide(person(number, group=group), Terms(policy, 0.5))
            if number % 3 == 0:
                ledger.decide(
                    person(number, key=f"r{number}", product="rival"), Terms(other.id, 0.5)
                )
            report = chosen.choice(
                [
                    Label(1), Label(-1), Override(True, "x"), Override(False, "x"),
                    GroupReport("a"), GroupReport("b"), Settlement(1, "x"), Settlement(-1, "x"),
                    None,
                ]
            )  # fmt: skip
            for about in (number, chosen.randrange(number + 1)):
                if report is not None:
                    with contextlib.suppress(Conflict):  # a settlement without a dispute
                        ledger.report(f"k{about}", report)
        for number in (3, 77, 149):
            ledger.erase(f"p{number}", "x")
        yield ledger


def walked(ledger, wanted):
    """All pages from the newest to the oldest, and back."""
    pages, before = [], None
    while True:
        pages.append(list_decisions(ledger, PRODUCT, wanted, before=before))
        before = pages[-1].older
        if before is None:
            break
    down = [row for page in pages for row in page.rows]
    up, after = list(pages[-1].rows), pages[-1].newer
    while after is not None:
        page = list_decisions(ledger, PRODUCT, wanted, after=after)
        up, after = [*page.rows, *up], page.newer
    return pages, down, up


@pytest.mark.slow
def test_every_filter_gives_what_the_history_gives(busy):
    every = list(busy.history(PRODUCT, usable_only=False))[::-1]
    times = [None, every[100].at, every[40].at]
    policies = sorted({row.policy for row in every})
    seen = 0
    combinations = itertools.product(
        (None, True, False), (None, *OUTCOME), (None, True, False), (None, policies[0]), times
    )
    for accept, outcome, known, policy, since in random.Random(5).sample(list(combinations), 50):
        until = None if since is None else since + 20
        expected = [
            row
            for row in every
            if (accept is None or row.accept == accept)
            and (outcome is None or OUTCOME[outcome](row))
            and (known is None or (row.group is not None) == known)
            and (policy is None or row.policy == policy)
            and (since is None or since <= row.at < until)
        ]
        wanted = Wanted(accept, outcome, known, policy, since, until)
        pages, down, up = walked(busy, wanted)
        assert down == expected, wanted
        assert up == expected, wanted
        assert all(len(page.rows) <= 7 and page.looked_at <= 23 for page in pages)
        seen += bool(expected)
    assert seen > 20
    keys = [row.key for row in every]
    assert keys.count(None) == 3


def test_an_outcome_that_does_not_exist_is_refused():
    with pytest.raises(Invalid, match=r"'fine'.*pending"):
        Wanted(outcome="fine")


def test_a_page_searches_indexes_and_never_scans(ledger, policy):
    """Each statement of a page, as SQLite would run it."""
    decided(ledger, policy, range(5))
    statements = []

    def note(_connection, _cursor, statement, parameters, *_):
        statements.append((statement, parameters))

    event.listen(ledger.store.reader, "before_cursor_execute", note)
    wanted = Wanted(False, "good", True, policy, since=1.0, until=3e9)
    list_decisions(ledger, PRODUCT, wanted, before=100)
    list_decisions(ledger, PRODUCT, Wanted(outcome="overruled"), after=0)
    event.remove(ledger.store.reader, "before_cursor_execute", note)
    plans = []
    with ledger.store.reader.connect() as connection:
        for statement, parameters in statements:
            explained = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans += [row[3] for row in explained]
        scan = connection.exec_driver_sql("EXPLAIN QUERY PLAN SELECT * FROM decisions WHERE at > 1")
        assert "SCAN decisions" in scan.all()[0][3]  # the control: this is how a scan looks
    assert len(statements) > 5
    assert [plan for plan in plans if plan.startswith("SCAN") and "anon" not in plan] == []
    assert any("decisions_by_policy" in plan for plan in plans)
    assert any("decisions_by_product" in plan for plan in plans)
