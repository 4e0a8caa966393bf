"""The one check of limits, probabilities, ratios and other shares of one.

Which ends are allowed depends on what is asked, and is the same wherever it is asked:

=====================================================  ===========
what is promised: the limit of a learner, of a          (0, 1]
certificate, of a plan, of a study
what is compared or solved on a table: the limit of     [0, 1]
a gate, of `evaluate`, of `solve_fair`
delta, and every part of it; shares that cut a table    (0, 1)
a least ratio, a cap, a ceiling above which nobody is   (0, 1]
a floor, a ceiling, a gap of others                     [0, 1]
=====================================================  ===========

A promise of 0 is kept by constants alone, so nobody who learns can make it. On a table 0 asks for
equal rates, and 1 switches the constraint off. Percentages (5 for 0.05) are refused: with a limit
of 5 every gate is green.
"""

from decimal import Decimal
from math import isfinite
from numbers import Real
from typing import Any, Literal

from evenhand.errors import InvalidInput

Span = Literal["(0, 1)", "(0, 1]", "[0, 1)", "[0, 1]"]
"""The numbers between 0 and 1 that are allowed: a round bracket leaves its end out."""


def require_share(
    name: str, value: object, span: Span = "(0, 1]", hint: str | None = None
) -> float:
    """The number, if it is one and lies in the span; InvalidInput names it and the way out.

    name: the argument; what else says it ("delta of a ledger") follows the first word.

    >>> require_share("delta", 0.05, "(0, 1)")
    0.05
    >>> require_share("least_ratio", 80)
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: least_ratio is 80; it is a number in (0, 1]. Hint: did you mean \
0.8?
    """
    plain: Any = value.item() if getattr(value, "ndim", None) == 0 else value  # type: ignore[attr-defined]
    number = _number(plain)
    if number is not None and _inside(number, span):
        return number
    raise InvalidInput(
        f"{name} is {plain!r}",
        requirement=f"it is a number in {span}",
        hint=_meant(plain, number, span) or hint or "0.05 stands for 5 in 100.",
        argument=name.split(maxsplit=1)[0],
    )


def require_promise(limit: object) -> float:
    """The limit that is never to be exceeded: in (0, 1]."""
    return require_share(
        "limit",
        limit,
        "(0, 1]",
        "0 can be kept by constants alone; choose a small positive number, and let evenhand.plan "
        "say what it costs.",
    )


def require_limit(limit: object) -> float:
    """The limit of a comparison, or of a policy on one table: in [0, 1]."""
    return require_share(
        "limit",
        limit,
        "[0, 1]",
        "0.05 allows five percentage points; 0 asks for exact equality; 1 switches the constraint "
        "off.",
    )


def require_delta(delta: object, name: str = "delta") -> float:
    """The probability that what is claimed is wrong: in (0, 1)."""
    return require_share(
        name, delta, "(0, 1)", "with 0.05 what is claimed holds with probability 95%."
    )


def require_least_ratio(least_ratio: object) -> float:
    """The smallest ratio of two rates that is allowed: in (0, 1]."""
    return require_share("least_ratio", least_ratio, "(0, 1]", "0.8 is four fifths.")


def _number(value: object) -> float | None:
    """A finite number; truth values and texts are none."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def _inside(number: float, span: Span) -> bool:
    above = number >= 0 if span[0] == "[" else number > 0
    return above and (number <= 1 if span[-1] == "]" else number < 1)


def _meant(value: object, number: float | None, span: Span) -> str | None:
    """What was probably meant: 5 and "5%" for 0.05, "0.05" for the number."""
    percent = number is not None and number > 1
    if isinstance(value, str):
        text = value.strip()
        percent = text.endswith("%")
        try:
            number = float(text.removesuffix("%"))
        except ValueError:
            return None
        percent = percent or number > 1
    if number is None:
        return None
    meant = number / 100 if percent else number
    return f"did you mean {meant:g}?" if _inside(meant, span) else None
