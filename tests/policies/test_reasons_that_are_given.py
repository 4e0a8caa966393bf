"""Whom a letter of reasons speaks of: nothing that the person never said, nothing that weighs
nothing, and no draw where none was held.
"""

import numpy as np
import pytest

from evenhand.cli.explain import reasons_cell, without_reasons
from evenhand.hypotheses import LinearRule, Threshold
from evenhand.policies import Mixture, ReasonWords
from evenhand.policies.explanation import Comparison

COLUMNS = ["income", "owner", "owner missing"]


def explained(policy, row, reference, columns=COLUMNS, **settings):
    compared = Comparison.of(policy, np.array(reference, dtype=float), columns)
    return policy.explain(row, compared, **settings)


def test_a_rejection_without_a_draw_is_never_said_to_be_drawn():
    """Above the mean of the reference by every column, and below the cut."""
    policy = Mixture((LinearRule((1.0, 1.0), 9.0),), (1.0,))
    found = explained(policy, [3.0, 3.0], [[1.0, 1.0], [2.0, 3.0]], ["income", "years"])
    assert found.probability == 0.0
    assert found.principal_reasons() == ()
    assert "draw" not in reasons_cell(found, 4)
    (note,) = without_reasons([found])
    assert "1 person whom rules reject has no reason" in note.text
    assert "--reference" in note.text


def test_where_the_draw_alone_rejects_it_says_so():
    policy = Mixture((Threshold(0, 1.0, 2), LinearRule((0.0, 0.0), 1.0)), (0.5, 0.5))
    found = explained(policy, [3.0, 3.0], [[1.0, 1.0], [2.0, 3.0]], ["income", "years"])
    assert found.rejecting == pytest.approx(0.0)
    assert reasons_cell(found, 4).endswith("the draw decided")
    assert without_reasons([found]) == []


def test_a_blank_is_one_reason_and_its_filled_value_none():
    """weights . x: the person's blank was filled with 0, which alone would speak for the person."""
    policy = Mixture((LinearRule((1.0, -2.0, -3.0), 5.0),), (1.0,))
    reference = [[4.0, 1.0, 0.0], [6.0, 0.0, 0.0], [5.0, 1.0, 1.0]]
    found = explained(policy, [1.0, 0.0, 1.0], reference)
    mean = np.mean(reference, axis=0)
    spread = np.std(np.array(reference) @ [1.0, -2.0, -3.0])
    both = (-2.0 * (0.0 - mean[1]) - 3.0 * (1.0 - mean[2])) / spread
    assert [(one.column, one.value, one.text) for one in found.against] == [
        ("income", 1.0, "income is low (1)"),
        ("owner", None, "owner is missing"),
    ]
    assert found.against[1].share == pytest.approx(both)
    total = sum(one.share for one in found.reasons)
    assert total == pytest.approx(((np.array([1.0, 0.0, 1.0]) - mean) @ [1.0, -2.0, -3.0]) / spread)
    text = '[[reason]]\ncolumn = "owner missing"\ncode = "R1"\ntext = "Say whether you own."\n'
    worded = explained(policy, [1.0, 0.0, 1.0], reference, words=ReasonWords.from_toml(text))
    assert [one.code for one in worded.against] == ["", "R1"]


def test_whoever_gave_a_value_has_it_as_the_reason():
    policy = Mixture((LinearRule((1.0, -2.0, -3.0), 5.0),), (1.0,))
    found = explained(policy, [1.0, 1.0, 0.0], [[4.0, 0.0, 0.0], [6.0, 0.0, 1.0]])
    assert [one.text for one in found.against] == ["income is low (1)", "owner is high (1)"]


def test_what_weighs_nothing_is_no_reason():
    policy = Mixture((LinearRule((1.0, 1.0), 9.0),), (1.0,))
    found = explained(policy, [1.0, 2.0], [[9.0, 2.01], [8.0, 2.01]], ["income", "years"])
    assert [one.column for one in found.against] == ["income", "years"]
    assert [one.column for one in found.principal_reasons()] == ["income"]
