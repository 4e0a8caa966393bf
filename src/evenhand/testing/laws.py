"""A law is a named function: it says nothing while it holds, and raises `LawBroken` with figures
when it does not.
"""

import json
from typing import Any

import numpy as np

from evenhand.contracts import Json

EQUAL = 1e-12
"""Costs that differ by at most EQUAL * sum|cost| are equal."""


class LawBroken(AssertionError):
    """A contract's law does not hold; `law` is its name."""

    def __init__(self, law: str, figures: str) -> None:
        super().__init__(f'the law "{law.replace("_", " ")}" is broken: {figures}')
        self.law = law


def require(holds: bool, law: str, figures: str) -> None:
    """LawBroken unless `holds`."""
    if not holds:
        raise LawBroken(law, figures)


def same(left: object, right: object) -> bool:
    """Equal arrays, entry for entry."""
    return np.array_equal(np.asarray(left), np.asarray(right))


def through_text(data: Json) -> Any:
    """What is left of `data` after being written as strict JSON and read again."""
    return json.loads(json.dumps(data, allow_nan=False))
