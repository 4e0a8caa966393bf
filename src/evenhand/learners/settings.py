"""What the settings of learners must be: everything that makes no sense is refused when a learner
is made, before anybody is decided about.

Each refusal names the setting, its value, the law and, where there is one, the way out.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from functools import wraps
from inspect import Parameter, signature
from math import isfinite, nan
from numbers import Integral, Real
from reprlib import repr as short
from sys import float_info
from typing import Concatenate, ParamSpec, TypeVar

from evenhand.errors import InvalidInput
from evenhand.words import Group, Prices, as_known_groups

LARGEST = float_info.max
Given = ParamSpec("Given")
Record = TypeVar("Record")
Made = TypeVar("Made")


def made_with(
    record: Callable[Given, Record],
) -> Callable[[Callable[[Made, Record], None]], Callable[Concatenate[Made, Given], None]]:
    """Decorates an `__init__` that is given a record of settings: it takes the fields of the
    record as its arguments, so that each setting is named, typed and defaulted in one place.
    """

    def decorate(init: Callable[[Made, Record], None]) -> Callable[Concatenate[Made, Given], None]:
        @wraps(init)
        def made(self: Made, /, *args: Given.args, **named: Given.kwargs) -> None:
            init(self, record(*args, **named))

        own, fields = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), signature(record)
        shown = fields.replace(parameters=[own, *fields.parameters.values()])
        setattr(made, "__signature__", shown)  # noqa: B010  (mypy knows no such attribute)
        return made

    return decorate


def require_number(
    name: str, value: object, allowed: Callable[[float], bool], law: str, hint: str | None = None
) -> None:
    """InvalidInput unless `value` is a finite number, no truth value, and allowed."""
    number = nan
    if not isinstance(value, bool) and isinstance(value, Real):
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond all floats, which is finite
            number = -LARGEST if value < 0 else LARGEST
    if not isfinite(number) or not allowed(number):
        raise InvalidInput(f"{name} is {value!r}; {law}.", hint=hint)


def require_whole(name: str, value: object, least: int, law: str, hint: str | None = None) -> None:
    """InvalidInput unless `value` is a whole number of at least `least`; 1e6 is one."""
    require_number(name, value, lambda number: number == number // 1 and number >= least, law, hint)


def require_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """InvalidInput unless `value` is one of the words."""
    if not isinstance(value, str) or value not in choices:
        words = [f'"{choice}"' for choice in choices]
        raise InvalidInput(f"{name} is {value!r}; it is {', '.join(words[:-1])} or {words[-1]}.")


def as_groups(groups: object) -> tuple[Group, ...] | None:
    """The groups of a promise, in their order: at least two, each named once and none of them
    unknown; None if they are not given.
    """
    if groups is None:
        return None
    law = "the groups of the promise are a list of at least two, each named once"
    if isinstance(groups, str | bytes | Set | Mapping) or not hasattr(groups, "__len__"):
        raise InvalidInput(f"groups is {short(groups)}; {law}.", hint='for example ["a", "b"].')
    named = as_known_groups(groups, len(groups)).tolist()
    if None in named:
        raise InvalidInput(
            f"groups is {short(named)}; {law}, and an unknown group is none.",
            hint="leave out None and NaN.",
        )
    if len(named) < 2 or len(set(named)) < len(named):
        raise InvalidInput(
            f"groups is {short(named)}; {law}.", hint="a gap lies between two groups."
        )
    return tuple(named)


def require_common(prices: object, group_use: object, seed: object) -> None:
    """What every learner is told."""
    if not isinstance(prices, Prices):
        raise InvalidInput(
            f"prices is {short(prices)}; it says what errors cost.",
            hint="use evenhand.Prices(false_accept, false_reject).",
        )
    require_choice("group_use", group_use, ("certify_only", "decide"))
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0):
        raise InvalidInput(
            f"seed is {seed!r}; a seed is a whole number of at least 0.",
            hint="None draws one; the learner's `seed` shows it.",
        )


def require_gap(allowed_gap: object) -> None:
    """The limit of the gap."""
    require_number(
        "allowed_gap",
        allowed_gap,
        lambda gap: 0 < gap <= 1,
        "the gap that may never be exceeded is a number in (0, 1]",
        "0 can be kept by constants alone; choose a small positive number, and let evenhand.plan "
        "say what it costs.",
    )


def require_delta(failure_probability: object) -> None:
    """The failure probability of a promise."""
    require_number(
        "failure_probability",
        failure_probability,
        lambda delta: 0 < delta < 1,
        "it must lie strictly between 0 and 1",
        "0.05 promises the limit with probability 95%.",
    )


def require_horizon(horizon: object, least: int = 1) -> None:
    """The number of rounds that are going to be played."""
    require_whole("horizon", horizon, least, f"it is a whole number of rounds, at least {least}")


def require_exploration(
    comparator_gap: object, exploration_rounds: object, tradeoff_exponent: object
) -> None:
    """What says how long a learner explores, and whom it competes with."""
    if comparator_gap is not None:
        law = "the gap of the policies with which the learner competes is a number in [0, 1]"
        require_number("comparator_gap", comparator_gap, lambda gap: 0 <= gap <= 1, law)
    if exploration_rounds is not None:
        law = "at least one person must be accepted to learn, and rounds are whole"
        require_whole("exploration_rounds", exploration_rounds, 1, law)
    if tradeoff_exponent is not None:
        law = "alpha of T^(2 alpha) exploration rounds is a number in [1/4, 1/2]"
        hint = (
            "1/4 gives regret T^(1/2) and slack T^(-1/4); 1/2 gives slack T^(-1/2) and no useful "
            "regret."
        )
        require_number(
            "tradeoff_exponent", tradeoff_exponent, lambda alpha: 0.25 <= alpha <= 0.5, law, hint
        )
