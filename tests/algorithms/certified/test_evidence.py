"""What a certificate has seen: sums over closed cohorts, compared with loops over the people; and
the people of the past, of whom whoever is erased is gone.
"""

from collections import Counter

import numpy as np
import pytest
from tests.play import FPR, WORLD, decide_people, report_all

from evenhand.algorithms.certified.evidence import (
    FIRST_PEOPLE,
    MOST_PAST,
    OUTSIDE,
    Evidence,
    PastPeople,
    group_codes,
    people_before,
    people_left,
    with_people_of,
)
from evenhand.fairness import FalseNegativeRate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import Rounds, counting, reports

MIXED = Mixture((ACCEPT_ALL, REJECT_ALL), (0.6, 0.4))
PEOPLE = WORLD.draw(400, np.random.default_rng(1))


def table(*, told=True):
    rounds = decide_people(Rounds(), PEOPLE, MIXED, stream(3, "table"))
    return report_all(rounds, PEOPLE) if told else rounds


def test_codes_of_groups():
    group = np.array(["b", None, "a", "c"], dtype=object)
    assert group_codes(group, ("a", "b")).tolist() == [1, OUTSIDE, 0, OUTSIDE]


def test_counts_are_those_of_a_loop_over_the_people():
    rounds = table()
    reports.erase(rounds, np.array([0, 1, 2]))
    evidence = Evidence().add(counting.count(rounds, 0, 400), ("a", "b"), judged=True)
    labels, seen = Counter(), Counter()
    for i in range(3, 400):
        seen[PEOPLE.group[i]] += 1
        if rounds["accept"][i]:
            labels[PEOPLE.group[i], int(PEOPLE.label[i])] += 1
    assert evidence.counts == evidence.judged == labels
    assert evidence.seen == seen
    assert (evidence.people, evidence.erased) == (400, 3)
    assert evidence.accepted == sum(labels.values())
    assert evidence.negatives == sum(n for (_, y), n in labels.items() if y == -1)


def test_cohorts_add_up():
    rounds = table()
    whole = Evidence().add(counting.count(rounds, 0, 400), None, judged=False)
    parts = Evidence()
    for first, stop in ((0, 100), (100, 150), (150, 400)):
        parts = parts.add(counting.count(rounds, first, stop), None, judged=False)
    assert vars(parts) == vars(whole)
    assert whole.judged == {}


def test_a_group_is_one_from_its_first_ten_people_on():
    rounds = Rounds()
    group = np.array(["a"] * 30 + ["b"] * 30 + ["typo"] * (FIRST_PEOPLE - 1), dtype=object)
    people = type(PEOPLE)(np.zeros((69, 1)), group, np.tile([1, -1, 1], 23))
    report_all(decide_people(rounds, people, MIXED, stream(1, "coins")), people)
    evidence = Evidence().add(counting.count(rounds, 0, 69), None, judged=False)
    assert evidence.groups == ("a", "b")
    assert evidence.seen["typo"] == FIRST_PEOPLE - 1


def test_what_is_missing_to_begin():
    rates = (FPR, FalseNegativeRate())
    counts = {("a", 1): 50.0, ("a", -1): 10.0, ("b", 1): 9.0, ("b", -1): 12.0}
    evidence = Evidence(counts=counts, seen={"a": 60.0, "b": 21.0})
    assert evidence.denominator("a", FPR) == 10
    assert evidence.missing(rates, None) == [("b", FalseNegativeRate(), 9.0)]
    assert [entry[0] for entry in evidence.missing((FPR,), ("a", "c"))] == ["c"]
    assert Evidence().missing(rates, None) == [(None, FPR, 0.0)]


@pytest.mark.parametrize("erased", [0, 100])
def test_past_people_are_those_of_closed_cohorts_who_are_left(erased):
    rounds = table()
    reports.erase(rounds, np.arange(erased))
    spans = [(1, 0, 150), (1, 150, 300)]
    past = people_before(rounds)
    for span in spans:
        past = with_people_of(past, rounds, span)
    expected = Counter(zip(PEOPLE.features[erased:300, 0], PEOPLE.group[erased:300], strict=True))
    found = dict(zip(zip(past.features[:, 0], past.group, strict=True), past.weight, strict=True))
    assert found == expected


def test_of_very_many_people_a_sample_is_kept():
    many = np.arange(3.0 * MOST_PAST)[:, None]
    past = PastPeople.nobody().add(many, np.full(len(many), "a", object), np.ones(len(many)))
    assert len(past.weight) == MOST_PAST


def test_people_are_those_who_were_not_erased():
    rounds = table()
    reports.erase(rounds, np.array([4, 7]))
    features, group, weight = people_left(rounds, 0, 20)
    left = np.setdiff1d(np.arange(20), [4, 7])
    assert (features == PEOPLE.features[left]).all()
    assert (group == PEOPLE.group[left]).all()
    assert weight.sum() == 18
