"""What is known of a decision does not depend on the order in which it became known."""

import contextlib
import random
from dataclasses import asdict

import pytest
from service.tests.ledger.helpers import PRODUCT, decided, opened, person, published
from sqlalchemy import delete, select, update

from evenhand_service.ledger import (
    Conflict,
    Facts,
    Gone,
    GroupReport,
    Label,
    NotFound,
    Override,
    Settlement,
    Terms,
    verify,
)
from evenhand_service.ledger.database import SUMMARIES
from evenhand_service.ledger.outcome_status import (
    KEEP_EVERY,
    Counts,
    RunningCounts,
    facts_from,
    kind_and_value,
    result_of,
)
from evenhand_service.ledger.refusals import Invalid

REPORTS = [
    *(Label(label) for label in (-1, 1)),
    *(Settlement(label, "judge") for label in (-1, 1)),
    *(Override(accept, "clerk") for accept in (False, True)),
    *(GroupReport(group) for group in ("a", "b")),
]


def folded(accept, reports):
    facts = Facts(accept)
    for report in reports:
        facts = facts.with_report(report, str(report))
    return facts


def test_10_000_random_interleavings_end_in_one_state_and_no_rejected_person_has_a_label():
    generator, labels_of_rejected = random.Random(6), 0
    for _ in range(10_000):
        accept = generator.random() < 0.5
        reports = generator.choices(REPORTS, k=generator.randrange(1, 9))
        shuffled = generator.sample(reports, len(reports)) + generator.choices(reports, k=3)
        one, other = folded(accept, reports), folded(accept, shuffled)
        assert one == other
        assert one.standing == other.standing
        labels_of_rejected += not accept and one.standing.label != 0
        labels_of_rejected += not accept and bool(one.labels | one.settlements)
    assert labels_of_rejected == 0


@pytest.mark.parametrize(
    ("accept", "reports", "status", "label"),
    [
        (True, [], "pending", 0),
        (True, [Label(1)], "resolved", 1),
        (True, [Label(-1), Label(-1)], "resolved", -1),
        (True, [Label(1), Label(-1)], "disputed", 0),
        (True, [Settlement(1, "j"), Label(1), Label(-1)], "resolved", 1),
        (True, [Settlement(1, "j"), Settlement(-1, "j"), Label(1), Label(-1)], "disputed", 0),
        (True, [Settlement(1, "j")], "pending", 0),
        (True, [Label(1), Override(False, "c")], "overruled", 0),
        (True, [Label(1), Label(-1), Settlement(1, "j"), Override(False, "c")], "overruled", 0),
        (True, [Label(1), Override(True, "c")], "resolved", 1),
        (True, [Override(True, "c")], "pending", 0),
        (True, [Label(1), Override(True, "c"), Override(False, "c")], "overruled", 0),
        (False, [], "rejected", 0),
        (False, [Label(1)], "rejected", 0),
        (False, [Override(True, "c"), Label(1)], "rejected", 0),
        (False, [Override(False, "c")], "rejected", 0),
        (False, [Override(False, "c"), Override(True, "c")], "rejected", 0),
    ],
)
def test_every_status(accept, reports, status, label):
    standing = folded(accept, reports).standing
    assert (standing.status, standing.label) == (status, label)
    assert standing.overruled == any(
        isinstance(told, Override) and told.accept != accept for told in reports
    )


def test_an_override_that_agrees_with_the_draw_changes_nothing_that_may_be_learned():
    generator = random.Random(8)
    for _ in range(2_000):
        accept = generator.random() < 0.5
        reports = generator.choices(REPORTS, k=generator.randrange(6))
        assert (
            folded(accept, [*reports, Override(accept, "c")]).standing
            == folded(accept, reports).standing
        )


def test_an_override_never_adds_information():
    """Drawn accept: the label goes, and no report brings it back. Drawn reject: the standing stays
    "rejected".
    """
    generator = random.Random(9)
    for _ in range(2_000):
        accept = generator.random() < 0.5
        before = folded(accept, generator.choices(REPORTS, k=generator.randrange(6)))
        after = before.with_report(Override(not accept, "c"))
        for report in generator.choices(REPORTS, k=5):
            after = after.with_report(report, str(report))
            assert (after.standing.overruled, after.standing.label) == (True, 0)
            assert after.standing.status == ("overruled" if accept else "rejected")


def test_results():
    accepted, rejected = Facts(True), Facts(False)
    once = accepted.with_report(Label(1))
    assert result_of(accepted, Label(1), once) == "recorded"
    assert result_of(once, Label(1), once.with_report(Label(1))) == "repeated"
    assert result_of(once, Label(-1), once.with_report(Label(-1))) == "disputed"
    assert result_of(rejected, Label(1), rejected.with_report(Label(1))) == "quarantined"


def test_stored_pairs_stand_for_the_same_set():
    for accept in (True, False):
        for report in REPORTS:
            facts = Facts(accept).with_report(report, "digest")
            pairs = [] if Facts(accept).refuses(report) else [kind_and_value(report, "digest")]
            assert facts_from(accept, pairs) == facts


@pytest.mark.parametrize("label", [0, 2, True, 1.0, "1", None])
def test_only_two_labels_exist(label):
    with pytest.raises(Invalid):
        Label(label)


def _one_of_each(ledger, policy):
    """(an accepted key, a rejected key)."""
    drawn = [answer.drawn for answer in decided(ledger, policy, range(40))]
    return next(d.key for d in drawn if d.accept), next(d.key for d in drawn if not d.accept)


def test_reports_in_the_ledger(where):
    with opened(where) as ledger:
        yes, no = _one_of_each(ledger, published(ledger))
        told = [
            (yes, Label(1)),
            (yes, Label(1)),
            (yes, Label(-1)),
            (no, Label(1)),
            (no, Label(1)),
            (no, Override(True, "clerk", "why")),
        ]
        verdicts = [ledger.report(key, report) for key, report in told]
        assert [v.result for v in verdicts] == [
            "recorded",
            "repeated",
            "disputed",
            "quarantined",
            "quarantined",
            "recorded",
        ]
        assert verdicts[0].seq == verdicts[1].seq
        assert verdicts[3].seq == verdicts[4].seq  # kept once
        assert ledger.report(yes, Settlement(-1, "judge", "papers")).standing.label == -1
        counts = ledger.counts(PRODUCT)
        assert (counts.resolved, counts.disputed, counts.quarantined, counts.overruled) == (
            1,
            0,
            1,
            1,
        )
        assert ledger.explain(yes).standing.label == -1
        assert verify(ledger, deep=True).ok


def test_interleavings_through_the_ledger_train_on_no_label_of_a_rejected_person(ledger, policy):
    generator = random.Random(7)
    answers = decided(ledger, policy, range(60))
    truth = {
        answer.drawn.key: generator.choices(REPORTS[:7], k=generator.randrange(6))
        for answer in answers
    }
    told = [(key, report) for key, reports in truth.items() for report in reports]
    for start in range(0, len(told), 7):
        ledger.report_many(generator.sample(told, 7) + told[start : start + 7])
    # those that came before their dispute were refused
    ledger.report_many([one for one in told if isinstance(one[1], Settlement)])
    rows = {row.seq: row for row in ledger.history(PRODUCT, usable_only=False)}
    for answer in answers:
        row, standing = (
            rows[answer.drawn.seq],
            folded(answer.drawn.accept, truth[answer.drawn.key]).standing,
        )
        assert (row.status, row.label) == (standing.status, standing.label)
        assert row.accept or row.label == 0


def test_a_group_may_come_later_and_is_used_unless_two_were_told(ledger, policy):
    answers = ledger.decide_many([(person(n, group=None), Terms(policy, 0.5)) for n in range(3)])
    keys = [answer.drawn.key for answer in answers]
    assert ledger.report(keys[0], GroupReport("a")).result == "recorded"
    assert ledger.report(keys[1], GroupReport("a")).result == "recorded"
    assert ledger.report(keys[1], GroupReport("a")).result == "repeated"
    assert ledger.report(keys[1], GroupReport("b")).result == "disputed"
    assert [row.group for row in ledger.history(PRODUCT)] == ["a", None, None]
    ledger.decide(person(9, group="b"), Terms(policy, 0.5))
    assert ledger.report("k9", GroupReport("b")).result == "repeated"
    assert ledger.report("k9", GroupReport("a")).result == "disputed"
    assert ledger.explain("k9").group == "b"
    ledger.erase("p0", "officer")
    assert verify(ledger, deep=True).ok


def test_a_report_on_nobody_or_on_an_erased_person(ledger, policy):
    decided(ledger, policy, [1])
    with pytest.raises(NotFound):
        ledger.report("unknown", Label(1))
    ledger.erase("p1", "officer")
    with pytest.raises(Gone):
        ledger.report("k1", Label(1))


@pytest.mark.parametrize(("first", "second"), [(1, 1.0), (1.0, 1), (-0.0, 0), (2.5, 2.5)])
def test_equal_numbers_are_one_group(ledger, policy, first, second):
    """Whether the first one was known before the decision or told afterwards."""
    terms = Terms(policy, 0.5)
    ledger.decide_many([(person(1, group=None), terms), (person(2, group=first), terms)])
    assert ledger.report("k1", GroupReport(first)).result == "recorded"
    for key in ("k1", "k2"):
        assert ledger.report(key, GroupReport(second)).result == "repeated"
        assert ledger.report(key, GroupReport(first)).result == "repeated"
    assert [row.group for row in ledger.history(PRODUCT)] == [first, first]
    for other in (True, "1", 7):  # the control
        assert ledger.report("k2", GroupReport(other)).result == "disputed"


# running counts: the same as counting everything again, whatever happened in between, at the price
# of what happened


def counted_anew(ledger):
    """By somebody who has never looked before."""
    with ledger.store.reader.connect() as connection, connection.begin():
        anew = RunningCounts("loan")
        anew.kept = anew.upto = 0
        anew._resume = lambda *_: None
        return anew.look(connection, ledger.head().seq, ledger.keyring)


def by_hand(ledger):
    """From the history, one by one: an independent way."""
    rows = list(ledger.history("loan", usable_only=False))
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
                ledger.report_many([(key, report)])
            case 6:
                report = Override(chosen.random() < 0.5, "clerk")
                ledger.report_many([(key, report)])
            case 7:
                ledger.report_many([(key, Settlement(1, "judge"))])
            case 8:
                ledger.report_many([(key, GroupReport("g"))])
            case 9 if chosen.random() < 0.3:
                ledger.erase(f"p{number}", "clerk")


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_in_between_the_counts_are_those_of_counting_anew(where, clock, seed):
    chosen = random.Random(seed)
    with opened(where, clock) as ledger:
        policy = published(ledger)
        for _ in range(25):
            with contextlib.suppress(Gone, NotFound):
                happen(ledger, policy, chosen, chosen.randint(1, 12))
            assert ledger.counts("loan") == counted_anew(ledger)
        # The coins above are secret; these two are accepted whatever the secret is.
        ledger.decide_many([(person(number), Terms(policy, 1.0)) for number in (98, 99)])
        ledger.report_many([("k98", Label(1))])
        ledger.erase("p99", "clerk")
        found = ledger.counts("loan")
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
            ledger.counts("loan")
            decided(ledger, policy, last, last + 10)
            running = ledger._counted["loan"]

            def look(connection, running=running):
                running.look(connection, ledger.head().seq, ledger.keyring)

            cost.append(steps(ledger, look))
        anew = steps(
            ledger,
            lambda c: RunningCounts("loan").look(c, ledger.head().seq, ledger.keyring),
        )
        assert cost[1] <= 2 * cost[0] + 2
        assert anew > 20 * (cost[1] + 1)  # the negative control: everything again


def test_a_new_process_goes_on_from_what_was_kept(where, clock, monkeypatch):
    monkeypatch.setattr("evenhand_service.ledger.ledger.KEEP_EVERY", 10)
    with opened(where, clock) as ledger:
        policy = published(ledger)
        for i in range(30):
            ledger.decide(person(i), Terms(policy, 0.5))
        before = ledger.counts("loan")
    with opened(where, clock) as ledger:
        assert ledger.summary("loan", "counts")[0] > 20
        assert ledger.counts("loan") == before == counted_anew(ledger)
        assert ledger._counted["loan"].kept > 20


@pytest.mark.parametrize("attack", ["flipped", "moved", "gone"])
def test_a_summary_that_was_tampered_with_is_thrown_away(where, clock, attack):
    with opened(where, clock) as ledger:
        policy = published(ledger)
        ledger.decide(person(1), Terms(policy, 1.0))
        ledger.keep_summary("loan", "counts", 2, asdict(Counts(decisions=999)))
        with ledger.store.writer.begin() as connection:
            if attack == "gone":
                connection.execute(delete(SUMMARIES))
            elif attack == "moved":
                connection.execute(update(SUMMARIES).values(upto=1))
            else:
                data = bytearray(connection.execute(select(SUMMARIES.c.data)).scalar_one())
                data[-1] ^= 1
                connection.execute(update(SUMMARIES).values(data=bytes(data)))
        assert ledger.summary("loan", "counts") is None
        assert ledger.counts("loan") == counted_anew(ledger)
        assert ledger.counts("loan").decisions == 1


def test_counts_of_nobody_are_zeros(where, clock):
    with opened(where, clock) as ledger:
        assert ledger.counts("nothing") == Counts()
    assert KEEP_EVERY > 0


def test_a_settlement_before_its_dispute_is_refused(ledger, policy):
    answers = decided(ledger, policy, range(20))
    yes = next(a.drawn.key for a in answers if a.drawn.accept)
    no = next(a.drawn.key for a in answers if not a.drawn.accept)
    for reports in ([], [Label(1)]):
        for report in reports:
            ledger.report(yes, report)
        with pytest.raises(Conflict, match="settle"):
            ledger.report(yes, Settlement(1, "judge"))
    both = ledger.report_many([(yes, Label(-1)), (yes, Settlement(1, "judge"))])
    assert [one.result for one in both] == ["disputed", "recorded"]
    assert ledger.report(no, Settlement(1, "judge")).result == "quarantined"
