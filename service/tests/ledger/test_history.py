"""Who is in the history is fixed before the coin; afterwards a row may only lose information."""

import random

import pytest
from service.tests.ledger.helpers import DAY, PRODUCT, decided, opened, person, published

from evenhand_service.ledger import GroupReport, Label, Override, Settlement, Terms

WINDOW = 5 * DAY


def rows_of(ledger, **options):
    return {row.seq: row for row in ledger.history(PRODUCT, **options)}


def drawn_of(ledger, policy, numbers, acceptance=0.5):
    """(accepted, rejected) draws."""
    found = [answer.drawn for answer in decided(ledger, policy, numbers, acceptance)]
    return [d for d in found if d.accept], [d for d in found if not d.accept]


DRAWN = ("accept", "acceptance", "audit", "audit_weight", "epoch", "policy", "u", "window", "at")


def test_no_fate_takes_anybody_out_or_changes_the_draw(where):
    """Negative control: the law that `usable` once had (nobody overridden) gives another number of
    rows.
    """
    with opened(where) as ledger:
        policy, generator = published(ledger), random.Random(4)
        ledger.decide_many(
            [(person(n, group=None if n % 3 else "a"), Terms(policy, 0.5, 0.1)) for n in range(120)]
        )
        ledger.decide(person(5, key="again"), Terms(policy, 0.5))
        ledger.decide(person(500), Terms(policy, 0.5, mode="shadow"))
        before = rows_of(ledger)
        for n in range(120):
            key, accept = f"k{n}", ledger.find(f"k{n}").drawn.accept
            told = [
                Label(generator.choice([-1, 1])),
                Override(generator.random() < 0.5, "clerk"),
                GroupReport("b"),
            ]
            for report in generator.sample(told, generator.randrange(4)):
                ledger.report(key, report)
            if generator.random() < 0.2 and accept:
                ledger.erase(f"p{n}", "officer")
        after = rows_of(ledger)
        assert list(after) == list(before)
        assert len(after) == 120 == ledger.count_usable(PRODUCT) == ledger.counts(PRODUCT).usable
        for seq, row in after.items():
            assert {name: getattr(row, name) for name in DRAWN} == {
                name: getattr(before[seq], name) for name in DRAWN
            }
        assert sum(row.overruled for row in after.values()) > 10
        assert sum(row.erased for row in after.values()) > 5
        left = [row for row in after.values() if row.status != "overruled" and not row.erased]
        assert len(left) < 120  # what leaving out would keep
        half = sorted(after)[60]
        assert ledger.count_usable(PRODUCT, after=half) == 59


def test_an_overruled_decision_stays_as_drawn_without_a_label(ledger, policy):
    yes, no = drawn_of(ledger, policy, range(40))
    ledger.report(yes[0].key, Label(1))
    refused = ledger.report(yes[0].key, Override(False, "clerk"))
    ledger.report(yes[1].key, Override(False, "clerk"))
    ledger.report(yes[1].key, Label(-1))
    accepted = ledger.report(no[0].key, Override(True, "clerk"))
    ledger.report(yes[2].key, Label(-1))
    agreed = ledger.report(yes[2].key, Override(True, "clerk"))
    assert ledger.report(no[1].key, Override(False, "clerk")).result == "recorded"
    assert (refused.standing.status, accepted.standing.status, agreed.standing.status) == (
        "overruled",
        "rejected",
        "resolved",
    )
    rows = rows_of(ledger)
    found = [
        (rows[d.seq].accept, rows[d.seq].label, rows[d.seq].overruled) for d in (*yes[:3], *no[:2])
    ]
    assert found == [
        (True, 0, True),
        (True, 0, True),
        (True, -1, False),
        (False, 0, True),
        (False, 0, False),
    ]
    assert ledger.report(no[0].key, Label(1)).result == "quarantined"
    assert ledger.counts(PRODUCT).overruled == 3
    assert [
        (o.seq, o.accept, o.group) for o in ledger.overruled(PRODUCT, 0, ledger.head().seq)
    ] == sorted([(yes[0].seq, True, "a"), (yes[1].seq, True, "a"), (no[0].seq, False, "a")])
    then = ledger.head().seq
    ledger.report(yes[0].key, Override(True, "clerk"))  # the one against the draw counts
    ledger.report(yes[3].key, Override(False, "clerk"))
    assert [o.seq for o in ledger.overruled(PRODUCT, then, ledger.head().seq)] == [yes[3].seq]


def test_what_is_settled_is_what_the_chain_said_at_the_end_of_the_window(ledger, policy, clock):
    """Labels, overrides and settlements before and after the end, and at it; nothing that comes
    later changes a category.
    """
    yes, _ = drawn_of(ledger, policy, range(40))
    names = [
        "in time",
        "never",
        "late",
        "overruled in time",
        "overruled late",
        "disputed",
        "dispute settled late",
        "agreed",
    ]
    seqs = dict(zip(names, yes, strict=False))

    def tell(name, *reports):
        for report in reports:
            ledger.report(seqs[name].key, report)

    clock.now += WINDOW  # the end itself belongs to the window
    tell("in time", Label(1))
    tell("overruled in time", Label(1), Override(False, "c"))
    tell("overruled late", Label(-1))
    tell("disputed", Label(1), Label(-1))
    tell("dispute settled late", Label(1), Label(-1))
    tell("agreed", Label(-1), Override(True, "c"))
    expected = {"in time": 1, "overruled late": -1, "agreed": -1}
    closed = rows_of(ledger, maturity=WINDOW)
    assert {name: closed[d.seq].settled for name, d in seqs.items()} == {
        name: expected.get(name, 0) for name in names
    }
    clock.now += 1
    tell("late", Label(1))
    tell("overruled late", Override(False, "c"))
    tell("dispute settled late", Settlement(1, "judge"))
    tell("in time", Label(-1))
    ledger.erase(seqs["agreed"].person, "officer")
    later = rows_of(ledger, maturity=WINDOW)
    assert {seq: row.settled for seq, row in later.items()} == {
        seq: row.settled for seq, row in closed.items()
    }
    assert {name: later[d.seq].label for name, d in seqs.items()} == {
        "in time": 0,  # disputed by now
        "never": 0,
        "late": 1,
        "overruled in time": 0,
        "overruled late": 0,
        "disputed": 0,
        "dispute settled late": 1,
        "agreed": -1,
    }
    without = rows_of(ledger)
    assert {row.settled == row.label for row in without.values()} == {
        True
    }  # without a window there is no end


def test_a_group_counts_if_it_was_told_within_the_window_and_says_that_it_was_late(
    ledger, policy, clock
):
    asked = [(person(n, group="a" if n == 0 else None), Terms(policy, 0.5)) for n in range(5)]
    drawn = [answer.drawn for answer in ledger.decide_many(asked)]
    ledger.report("k0", GroupReport("a"))
    ledger.report("k1", GroupReport("b"))
    ledger.report("k2", GroupReport("b"))
    ledger.report("k2", GroupReport("a"))  # two groups: none is known
    clock.now += WINDOW + 1
    ledger.report("k3", GroupReport("b"))
    ledger.report("k1", GroupReport("a"))
    rows = rows_of(ledger, maturity=WINDOW)
    assert [(rows[d.seq].group, rows[d.seq].group_late) for d in drawn] == [
        ("a", False),
        ("b", True),
        (None, False),
        (None, False),
        (None, False),
    ]
    now = rows_of(ledger)
    assert [now[d.seq].group for d in drawn] == ["a", None, None, "b", None]


@pytest.mark.parametrize("maturity", [None, WINDOW])
def test_an_erased_row_keeps_its_draw(ledger, policy, maturity):
    yes, no = drawn_of(ledger, policy, range(30))
    ledger.report(yes[0].key, Label(1))
    for d in (yes[0], no[0]):
        ledger.erase(d.person, "officer")
    rows = rows_of(ledger, maturity=maturity)
    for d in (yes[0], no[0]):
        row = rows[d.seq]
        assert (row.erased, row.features, row.group, row.prices) == (True, None, None, None)
        assert (row.accept, row.acceptance, row.audit, row.epoch) == (
            d.accept,
            d.acceptance,
            d.audit,
            d.epoch,
        )


def test_the_short_way_to_the_groups_finds_what_the_history_says(where, monkeypatch):
    """Also where keys and groups hold what looks like a member of the sealed text."""
    monkeypatch.setattr("evenhand_service.ledger.history.PAGE", 7)
    nasty = ['"group":"x"', ',"group":1', "Zoë", True, 7, -0.25, None, "a\\", 'a","group":"b']
    with opened(where) as ledger:
        policy = published(ledger)
        asked = [
            (person(n, key=f'k","group":{n}', group=nasty[n % 9]), Terms(policy, 0.5))
            for n in range(40)
        ]
        asked.append((person(3, key="again"), Terms(policy, 0.5)))
        asked.append((person(90), Terms(policy, 0.5, mode="shadow")))
        ledger.decide_many(asked)
        ledger.report('k","group":6', GroupReport("late"))
        ledger.erase("p2", "officer")
        upto = ledger.head().seq
        ledger.report('k","group":15', GroupReport("too late"))
        for after, most in ((0, 100), (0, 12), (20, 14), (0, 0)):
            rows = [*ledger.history(PRODUCT, after=after, upto=upto)][:most]
            assert [*ledger.usable_groups(PRODUCT, after, upto, most)] == [
                (row.seq, row.group, row.accept) for row in rows
            ]
        assert len(rows_of(ledger)) == 40
