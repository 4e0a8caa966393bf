"""Running counts: the same as counting everything again, whatever happened in between, at the price
of what happened.
"""

import contextlib
import random
from dataclasses import asdict

import pytest
from sqlalchemy import delete, select, update
from tests.ledger.helpers import opened, person, published

from evenhand.ledger import Gone, GroupTold, Label, NotFound, Override, Settlement, Terms
from evenhand.ledger.counting import KEEP_EVERY, Counts, RunningCounts
from evenhand.ledger.database import SUMMARIES


def counted_anew(ledger):
    """By somebody who has never looked before."""
    with ledger.store.reader.connect() as connection, connection.begin():
        anew = RunningCounts("bank", "loan")
        anew.kept = anew.upto = 0
        anew._resume = lambda *_: None
        return anew.look(connection, ledger.head().seq, ledger.keyring)


def by_hand(ledger):
    """From the history, one by one: an independent way."""
    rows = list(ledger.history("bank", "loan", usable_only=False))
    standing = [row for row in rows if row.accept and not row.overruled]
    return {
        "decisions": len(rows),
        "accepted": sum(row.accept for row in rows),
        "overruled": sum(row.overruled for row in rows),
        "resolved": sum(row.label != 0 for row in standing if not row.erased),
        "erased": sum(row.erased for row in rows),
    }


def happen(ledger, policy, chosen, number):
    """So many things, chosen at random."""
    for _ in range(number):
        number = chosen.randint(0, 60)
        key = f"k{number}"
        match chosen.randint(0, 9):
            case 0 | 1 | 2 | 3:
                ledger.decide(person(number), Terms(policy, 0.6))
            case 4 | 5:
                report = Label(chosen.choice([-1, 1]))
                ledger.report_many([("bank", key, report)])
            case 6:
                report = Override(chosen.random() < 0.5, "clerk")
                ledger.report_many([("bank", key, report)])
            case 7:
                ledger.report_many([("bank", key, Settlement(1, "judge"))])
            case 8:
                ledger.report_many([("bank", key, GroupTold("g"))])
            case 9 if chosen.random() < 0.3:
                ledger.erase("bank", f"p{number}", "clerk")


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_in_between_the_counts_are_those_of_counting_anew(where, clock, seed):
    chosen = random.Random(seed)
    with opened(where, clock) as ledger:
        policy = published(ledger)
        for _ in range(25):
            with contextlib.suppress(Gone, NotFound):
                happen(ledger, policy, chosen, chosen.randint(1, 12))
            assert ledger.counts("bank", "loan") == counted_anew(ledger)
        # The coins above are secret; these two are accepted whatever the secret is.
        ledger.decide_many([(person(number), Terms(policy, 1.0)) for number in (98, 99)])
        ledger.report_many([("bank", "k98", Label(1))])
        ledger.erase("bank", "p99", "clerk")
        found = ledger.counts("bank", "loan")
        assert found == counted_anew(ledger)
        known = by_hand(ledger)
        assert {name: getattr(found, name) for name in known if name != "resolved"} == {
            name: number for name, number in known.items() if name != "resolved"
        }
        assert found.erased > 0
        assert found.resolved > 0


def steps(ledger, action):
    """How many hundred instructions SQLite's machine executes."""
    count = [0]

    def tick():
        count[0] += 1

    with ledger.store.reader.connect() as connection:
        raw = connection.connection.dbapi_connection
        raw.set_progress_handler(tick, 100)
        try:
            action(connection)
        finally:
            raw.set_progress_handler(None, 0)
    return count[0]


def test_a_look_costs_what_has_happened_since_the_last_one(path, clock):
    def decided(ledger, policy, first, last):
        people = [(person(i), Terms(policy, 0.5)) for i in range(first, last)]
        ledger.decide_many(people)

    with opened(path, clock) as ledger:
        policy = published(ledger)
        cost = []
        for first, last in ((0, 300), (310, 3000)):
            decided(ledger, policy, first, last)
            ledger.counts("bank", "loan")
            decided(ledger, policy, last, last + 10)
            running = ledger._counted["bank", "loan"]

            def look(connection, running=running):
                running.look(connection, ledger.head().seq, ledger.keyring)

            cost.append(steps(ledger, look))
        anew = steps(
            ledger,
            lambda c: RunningCounts("bank", "loan").look(c, ledger.head().seq, ledger.keyring),
        )
        assert cost[1] <= 2 * cost[0] + 2
        assert anew > 20 * (cost[1] + 1)  # the negative control: everything again


def test_a_new_process_goes_on_from_what_was_kept(where, clock, monkeypatch):
    monkeypatch.setattr("evenhand.ledger.ledger.KEEP_EVERY", 10)
    with opened(where, clock) as ledger:
        policy = published(ledger)
        for i in range(30):
            ledger.decide(person(i), Terms(policy, 0.5))
        before = ledger.counts("bank", "loan")
    with opened(where, clock) as ledger:
        assert ledger.summary("bank", "loan", "counts")[0] > 20
        assert ledger.counts("bank", "loan") == before == counted_anew(ledger)
        assert ledger._counted["bank", "loan"].kept > 20


@pytest.mark.parametrize("attack", ["flipped", "moved", "gone"])
def test_a_summary_that_was_tampered_with_is_thrown_away(where, clock, attack):
    with opened(where, clock) as ledger:
        policy = published(ledger)
        ledger.decide(person(1), Terms(policy, 1.0))
        ledger.keep_summary("bank", "loan", "counts", 2, asdict(Counts(decisions=999)))
        with ledger.store.writer.begin() as connection:
            if attack == "gone":
                connection.execute(delete(SUMMARIES))
            elif attack == "moved":
                connection.execute(update(SUMMARIES).values(upto=1))
            else:
                data = bytearray(connection.execute(select(SUMMARIES.c.data)).scalar_one())
                data[-1] ^= 1
                connection.execute(update(SUMMARIES).values(data=bytes(data)))
        assert ledger.summary("bank", "loan", "counts") is None
        assert ledger.counts("bank", "loan") == counted_anew(ledger)
        assert ledger.counts("bank", "loan").decisions == 1


def test_counts_of_nobody_are_zeros(where, clock):
    with opened(where, clock) as ledger:
        assert ledger.counts("bank", "nothing") == Counts()
    assert KEEP_EVERY > 0
