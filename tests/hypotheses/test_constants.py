import numpy as np
import pytest

from evenhand.errors import InvalidInput
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, Constant, GroupClassifier


def test_constants_accept_all_applicants_or_nobody():
    rows = np.zeros((3, 2))
    assert ACCEPT_ALL.accepts(rows).all()
    assert not REJECT_ALL.accepts(rows).any()
    both = Constant.together([ACCEPT_ALL, REJECT_ALL])
    assert both(rows.T).tolist() == [[True] * 3, [False] * 3]
    assert list(both.one(rows[:1])) == [True, False]


def test_a_group_classifier_needs_the_group():
    rule = GroupClassifier("a")
    assert rule.accepts(np.zeros((2, 1)), np.array(["b", "a"])).tolist() == [False, True]
    assert rule.describe() == "accept if group is a"
    with pytest.raises(InvalidInput, match="accept if group is a"):
        rule.accepts(np.zeros((2, 1)))
