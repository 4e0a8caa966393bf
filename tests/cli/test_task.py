"""From options to a problem; the reader itself is tested in tests/tables."""

import numpy as np
import pytest

from evenhand.cli.task import meaning, parse_limits


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("0:0.2:3", 0.1, [0, 0.1, 0.2]),
        ("0:0.3:4", 0.05, [0, 0.05, 0.1, 0.2, 0.3]),
        ("0.2,0", 0.0, [0, 0.2]),
        ("0.1", 0.1, [0.1]),
    ],
)
def test_limits(text, limit, expected):
    assert np.allclose(parse_limits(text, limit), expected)


def test_options_say_what_the_columns_mean():
    options = {"label": "y", "groups": "a, b", "missing": None, "drop_unlabelled": True, "seed": 1}
    assert meaning(options) == {"label": "y", "groups": ("a", "b"), "unlabelled": "drop"}
