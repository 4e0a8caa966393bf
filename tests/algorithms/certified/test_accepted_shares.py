"""The shares that rules accept: who counts, at which value, and from when on."""

import numpy as np
import pytest

from evenhand.algorithms.certified.accepted_shares import AcceptedShares


def start(rules=2, *, capped=True, floored=True):
    return AcceptedShares.start(np.full(rules, 0.01), capped=capped, floored=floored)


def test_counts_are_those_of_a_loop():
    accepts = np.array([[True, False, True], [False, False, True]])
    people = np.array([5.0, 7.0, 11.0])
    seen = (
        start()
        .update(accepts @ people, people.sum(), 0.0)
        .update(accepts @ people, people.sum(), 3.0)
    )
    assert seen.people.tolist() == [49.0, 49.0]
    assert seen.least.tolist() == [32.0, 22.0]
    assert seen.most.tolist() == [35.0, 25.0]


def test_whoever_is_not_known_any_more_counts_at_its_worst():
    accepts = np.array([[True, False]])
    known = start(1).update(accepts @ np.array([200.0, 800.0]), 1000.0, 0.0)
    doubt = start(1).update(accepts @ np.array([150.0, 750.0]), 900.0, 100.0)
    assert doubt.upper[0] > known.upper[0]
    assert doubt.lower[0] < known.lower[0]
    assert doubt.people[0] == known.people[0]


def test_ends_never_widen():
    shares = start(1)
    generator = np.random.default_rng(0)
    for _ in range(50):
        before = shares
        chosen = float(generator.binomial(40, 0.3))
        shares = shares.update(np.array([chosen]), 40.0, 0.0)
        assert shares.upper[0] <= before.upper[0]
        assert shares.lower[0] >= before.lower[0]
    assert shares.lower[0] < 0.3 < shares.upper[0]


def test_a_rule_that_joins_is_judged_by_later_people_only():
    accepts = np.array([[True, False], [True, True]])
    people = np.array([10.0, 90.0])
    shares = start().update(accepts @ people, people.sum(), 0.0).joined_by(0.005)
    later = shares.update(accepts @ people, people.sum(), 0.0)
    assert later.people.tolist() == [200.0, 200.0, 0.0]
    assert later.upper[2] == 1.0
    assert later.deltas.tolist() == [0.01, 0.01, 0.005]


@pytest.mark.parametrize("side", ["capped", "floored"])
def test_an_end_that_nobody_asked_for_is_not_claimed(side):
    one = start(1, **{"capped": False, "floored": False, side: True})
    one = one.update(np.array([300.0]), 1000.0, 0.0)
    both = start(1).update(np.array([300.0]), 1000.0, 0.0)
    if side == "capped":
        assert one.lower[0] == 0.0
        assert one.upper[0] < both.upper[0]  # the one end has all of delta
    else:
        assert one.upper[0] == 1.0
        assert one.lower[0] > both.lower[0]


def test_a_share_that_changes_contradicts_itself():
    shares = start(1).update(np.array([2000.0]), 2000.0, 0.0)
    assert shares.contradictions == 0
    shares = shares.update(np.array([0.0]), 2_000_000.0, 0.0)
    assert shares.contradictions == 1
