import numpy as np
import pytest

from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.hypotheses import Stumps
from evenhand.hypotheses.common import (
    column_name,
    first_minimum,
    require_columns,
)
from evenhand.words import as_features


def test_rows_and_columns_are_needed():
    for shape in ((0, 2), (2, 0)):
        with pytest.raises(InvalidInput, match="column"):
            as_features(np.zeros(shape), may_be_empty=False)
    with pytest.raises(InvalidInput, match=r'"a rule" .* 2 columns'):
        require_columns(np.zeros((1, 3)), 2, "a rule")


def test_channels_fit_the_rows():
    bound = Stumps().bind(np.array([[1.0], [2.0], [3.0]]), None)
    assert bound.totals([[1, 2, 4]]).dtype == np.float64
    with pytest.raises(LengthMismatch, match=r"\(k, 3\)"):
        bound.totals(np.zeros((1, 2)))


def test_a_column_without_a_name_has_a_number():
    assert [column_name(0, ["age"]), column_name(1, ["age"]), column_name(2, None)] == [
        "age",
        "x1",
        "x2",
    ]


def test_ties_go_to_the_lowest_index():
    assert first_minimum(np.array([1.0, 1e-14, 0.0]), np.array([1.0])) == 1
    assert first_minimum(np.array([1.0, 1e-12, 0.0]), np.array([1.0])) == 2
