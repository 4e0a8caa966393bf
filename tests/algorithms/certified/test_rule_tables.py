"""Tables of who accepts whom: remembered, and equal to what each rule answers."""

import numpy as np
from tests.play import WORLD

from evenhand.algorithms.certified.rule_tables import MemberTables, acceptance_table

ROWS = WORLD.hypotheses.bind(WORLD.features, None)
MEMBERS = tuple(ROWS.hypothesis(i) for i in range(2, 8))


def test_a_table_is_remembered_and_equal_to_the_members_answers():
    tables = MemberTables(MEMBERS)
    first = tables.on(WORLD.features, None)
    assert tables.on(WORLD.features.copy(), None) is first
    one_by_one = np.stack([member.accepts(WORLD.features) for member in MEMBERS])
    np.testing.assert_array_equal(first, one_by_one)
    assert acceptance_table((), WORLD.features, None).shape == (0, len(WORLD.features))
