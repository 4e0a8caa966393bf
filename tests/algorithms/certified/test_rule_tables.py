"""Tables of who accepts whom: remembered, and equal to what each rule answers."""

import numpy as np
import pytest
from tests.play import WORLD

from evenhand.algorithms.certified import rule_tables
from evenhand.algorithms.certified.rule_tables import MemberTables, acceptance_table
from evenhand.hypotheses import ACCEPT_ALL, Threshold
from evenhand.hypotheses.linear import LinearRule

ROWS = WORLD.hypotheses.bind(WORLD.features, None)
MEMBERS = tuple(ROWS.hypothesis(i) for i in range(2, 8))


def test_a_table_is_remembered_and_equal_to_the_members_answers():
    tables = MemberTables(MEMBERS)
    first = tables.on(WORLD.features, None)
    assert tables.on(WORLD.features.copy(), None) is first
    one_by_one = np.stack([member.accepts(WORLD.features) for member in MEMBERS])
    np.testing.assert_array_equal(first, one_by_one)
    assert acceptance_table((), WORLD.features, None).shape == (0, len(WORLD.features))


RULES = {
    "few stumps": tuple(Threshold(i % 3, 0.2 * i - 0.3, 3, at_least=i % 2 == 0) for i in range(3)),
    "stumps": tuple(Threshold(i % 3, 0.1 * i - 0.5, 3, at_least=i % 2 == 0) for i in range(12)),
    "linear": tuple(LinearRule((0.1 * i, 1.0, -0.3), 0.05 * i) for i in range(5)),
    "table": MEMBERS,
    "constant": (ACCEPT_ALL,),
}


@pytest.mark.parametrize("answers", [1, 10**6])
@pytest.mark.parametrize("kind", RULES)
def test_a_table_of_many_parts_equals_the_members_answers_in_the_layout_of_one(
    kind, answers, monkeypatch
):
    members = RULES[kind]
    features = np.random.default_rng(3).normal(size=(150, 3))
    if kind == "table":
        features = WORLD.features[np.arange(150) % len(WORLD.features)]
    whole = type(members[0]).together(members)(features.T)
    monkeypatch.setattr(rule_tables, "ANSWERS_AT_ONCE", answers)
    found = acceptance_table(members, features, None)
    np.testing.assert_array_equal(found, np.stack([rule.accepts(features) for rule in members]))
    if kind != "constant":  # its answers are one number, read again and again
        assert found.flags.c_contiguous == whole.flags.c_contiguous
    assert acceptance_table(members, features[:0], None).shape == (len(members), 0)
