"""Counts that no draw exceeds: compared, after every transaction, with a count over all rows."""

import random

import pytest
from service.tests.ledger.helpers import PRODUCT, Clock, coin, opened, person, published

from evenhand_service.ledger import Gate, Invalid, Label, Override, Terms
from evenhand_service.ledger.hard_counts import HardCounts

DAY = 86400.0


def terms_of(ledger, *, quota=None, budget=None, acceptance=0.7, audit=0.4):
    policy = published(ledger, acceptance)
    paused = ledger.register(PRODUCT, coin(acceptance - audit)).id
    spent = ledger.register(PRODUCT, coin(0.0)).id
    gate = Gate(quota, budget, Terms(paused, acceptance - audit, 0.0, 8), Terms(spent, 0.0, 0.0, 9))
    return Terms(policy, acceptance, audit, 1, gate=gate)


def most_in_a_period(ledger, seconds):
    accepted = {}
    for row in ledger.history(PRODUCT, usable_only=False):
        accepted[row.at // seconds] = accepted.get(row.at // seconds, 0) + row.accept
    return max(accepted.values())


def could_be_bad(ledger):
    """Audits whose label is not good, as everything is known now, counted over all rows."""
    rows = ledger.history(PRODUCT, usable_only=False)
    return sum(row.audit and row.label != 1 and (row.billed or not row.overruled) for row in rows)


def run_with(where, clock, *, quota, budget, seed):
    """Some people one by one and in batches, labels that come late or never, a new process now and
    then. (most accepted in a period, most audits that could be bad, people)
    """
    chosen = random.Random(seed)
    waiting, most, number = [], 0, 0
    with opened(where, clock) as ledger:
        terms = terms_of(ledger, quota=quota, budget=budget)
    while number < 150:
        with opened(where, clock) as ledger:
            for _ in range(10):
                size = chosen.choice([1, 1, 7, 30])
                people = [person(number + i) for i in range(size)]
                number += size
                answers = ledger.decide_many([(one, terms) for one in people])
                accepted = [answer.drawn.key for answer in answers if answer.drawn.accept]
                waiting += [key for key in accepted if chosen.random() < 0.7]
                most = max(most, could_be_bad(ledger))
                chosen.shuffle(waiting)
                while waiting and chosen.random() < 0.6:
                    told = Label(chosen.choice([1, 1, -1]))
                    told = Override(False, "clerk") if chosen.random() < 0.1 else told
                    ledger.report(waiting.pop(), told)
                clock.now += chosen.choice([0.0, 600.0, 7200.0])
            peak = most_in_a_period(ledger, DAY)
    return peak, most, number


@pytest.mark.parametrize("budget", [1, 5])
def test_neither_count_is_ever_exceeded(where, budget):
    quota = (15, DAY)
    peak, most, people = run_with(where, Clock(), quota=quota, budget=budget, seed=budget)
    assert peak <= 15
    assert most <= budget
    assert people >= 150
    assert most == budget  # and it is used: this is no trivial ledger


def test_a_ledger_that_counts_nothing_exceeds_both(tmp_path, monkeypatch):
    """The negative control."""
    monkeypatch.setattr(HardCounts, "admit", lambda self, transaction, product, terms, gate: terms)
    monkeypatch.setattr(HardCounts, "add", lambda self, drawn, gate: None)
    peak, most, _ = run_with(tmp_path / "l.sqlite", Clock(), quota=(15, DAY), budget=5, seed=5)
    assert peak > 15
    assert most > 5


def test_a_ledger_that_forgets_other_processes_exceeds_the_quota(where, monkeypatch):
    """The mutant: it counts its own rows alone."""
    monkeypatch.setattr("evenhand_service.ledger.hard_counts.follow", lambda *given: None)
    with opened(where) as ledger:
        terms = terms_of(ledger, quota=(3, DAY), acceptance=1.0, audit=0.0)
    for start in (0, 10):
        with opened(where) as ledger:
            ledger.decide_many([(person(start + i), terms) for i in range(10)])
            peak = most_in_a_period(ledger, DAY)
    assert peak == 6


def test_a_transaction_that_failed_counts_nothing(where, monkeypatch):
    """After a rollback the place is free again, and taken once."""
    with opened(where) as ledger:
        terms = terms_of(ledger, quota=(3, DAY), acceptance=1.0, audit=0.0)
        ledger.decide(person(0), terms)
        render = ledger._drawer.render

        def fail(drawn):
            if drawn.key == "k2":
                raise RuntimeError
            return render(drawn)

        monkeypatch.setattr(ledger._drawer, "render", fail)
        with pytest.raises(Exception, match="written"):
            ledger.decide_many([(person(number), terms) for number in (1, 2)])
        monkeypatch.setattr(ledger._drawer, "render", render)
        answers = ledger.decide_many([(person(number), terms) for number in range(1, 9)])
        assert [one.drawn.accept for one in answers] == [True] * 2 + [False] * 6
        assert [one.drawn.epoch for one in answers] == [1] * 2 + [9] * 6


def audits_of(ledger, terms, reports, people=60):
    """How many people the audit coin accepted, if these reports follow each of them."""
    found = 0
    for number in range(people):
        drawn = ledger.decide(person(number), terms).drawn
        if drawn.audit:
            found += 1
            for report in reports:
                ledger.report(drawn.key, report)
    return found


def test_a_bad_label_stays_in_the_count_when_the_person_is_overruled_afterwards(where):
    with opened(where) as ledger:
        terms = terms_of(ledger, budget=3)
        assert audits_of(ledger, terms, (Label(-1), Override(False, "clerk"))) == 3
    with opened(where) as ledger:  # a new process counts them in the chain
        assert could_be_bad(ledger) == 3
        assert audits_of(ledger, terms, ()) == 3  # the same people have the same draws
        assert not any(ledger.decide(person(100 + n), terms).drawn.audit for n in range(30))


@pytest.mark.parametrize("reports", [(Override(False, "clerk"),), (Label(1),)])
def test_who_was_rejected_before_a_label_came_or_turned_out_well_takes_no_place(tmp_path, reports):
    with opened(tmp_path / "l.sqlite") as ledger:
        terms = terms_of(ledger, budget=3)
        assert audits_of(ledger, terms, reports) > 10
        assert could_be_bad(ledger) == 0


def test_a_quota_needs_terms_that_accept_nobody():
    with pytest.raises(Invalid, match="accept nobody"):
        Gate((3, DAY), None, None, Terms("p", 0.1))
    with pytest.raises(Invalid, match="audit weight"):
        Gate(None, 3.0, Terms("p", 0.1, audit_weight=0.1), None)
