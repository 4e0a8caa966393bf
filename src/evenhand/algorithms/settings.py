"""What the settings of learners must be: a setting that makes no sense is an error when the learner
is made, before anybody is decided about.

Each error names the setting, its value, the requirement and, where there is one, a hint.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from math import isfinite, nan
from numbers import Integral, Real
from reprlib import repr as short
from sys import float_info

from evenhand.errors import InvalidInput
from evenhand.people import as_known_groups
from evenhand.shares import require_share
from evenhand.words import Group, Prices

LARGEST = float_info.max


def require_number(
    name: str,
    value: object,
    allowed: Callable[[float], bool],
    requirement: str,
    hint: str | None = None,
) -> None:
    """InvalidInput unless `value` is a finite number, no truth value, and allowed."""
    number = nan
    if not isinstance(value, bool) and isinstance(value, Real):
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond all floats, which is finite
            number = -LARGEST if value < 0 else LARGEST
    if not isfinite(number) or not allowed(number):
        raise InvalidInput(
            f"{name} is {value!r}", requirement=requirement, hint=hint, argument=name
        )


def require_whole(
    name: str, value: object, least: int, requirement: str, hint: str | None = None
) -> None:
    """InvalidInput unless `value` is a whole number of at least `least`; 1e6 is one."""
    require_number(
        name, value, lambda number: number == number // 1 and number >= least, requirement, hint
    )


def require_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """InvalidInput unless `value` is one of the words."""
    if not isinstance(value, str) or value not in choices:
        words = [f'"{choice}"' for choice in choices]
        requirement = f"it is {', '.join(words[:-1])} or {words[-1]}"
        raise InvalidInput(f"{name} is {value!r}", requirement=requirement, argument=name)


def as_groups(groups: object) -> tuple[Group, ...] | None:
    """The groups of a guarantee, in their order: at least two, each named once and none of them
    unknown; None if they are not given.
    """
    if groups is None:
        return None
    requirement = "the groups of the guarantee are a list of at least two, each named once"
    if isinstance(groups, str | bytes | Set | Mapping) or not hasattr(groups, "__len__"):
        raise InvalidInput(
            f"groups is {short(groups)}",
            requirement=requirement,
            hint='for example ["a", "b"].',
            argument="groups",
        )
    named = as_known_groups(groups, len(groups), "groups").tolist()
    if None in named:
        raise InvalidInput(
            f"groups is {short(named)}",
            requirement=f"{requirement}, and an unknown group is none",
            hint="leave out None and NaN.",
            argument="groups",
        )
    if len(named) < 2 or len(set(named)) < len(named):
        raise InvalidInput(
            f"groups is {short(named)}",
            requirement=requirement,
            hint="a gap lies between two groups.",
            argument="groups",
        )
    return tuple(named)


def require_prices(prices: object) -> None:
    """What errors cost."""
    if not isinstance(prices, Prices):
        raise InvalidInput(
            f"prices is {short(prices)}",
            requirement="it says what errors cost",
            hint="use evenhand.Prices(false_accept, false_reject).",
            argument="prices",
        )


def require_group_use(group_use: object) -> None:
    """Whether the group may influence a decision."""
    require_choice("group_use", group_use, ("certify_only", "decide"))


def require_seed(seed: object) -> None:
    """The seed of all random draws."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0):
        raise InvalidInput(
            f"seed is {seed!r}",
            requirement="a seed is a whole number of at least 0",
            hint="None draws one; the learner's `seed` shows it.",
            argument="seed",
        )


def require_horizon(horizon: object, least: int = 1) -> None:
    """The number of rounds that are going to be played."""
    require_whole("horizon", horizon, least, f"it is a whole number of rounds, at least {least}")


def require_exploration(
    comparator_gap: object, exploration_rounds: object, tradeoff_exponent: object
) -> None:
    """What says how long a learner explores, and whom it competes with."""
    if comparator_gap is not None:
        require_share("comparator_gap", comparator_gap, "[0, 1]")
    if exploration_rounds is not None:
        requirement = "at least one person must be accepted to learn, and rounds are whole"
        require_whole("exploration_rounds", exploration_rounds, 1, requirement)
    if tradeoff_exponent is not None:
        requirement = "alpha of T^(2 alpha) exploration rounds is a number in [1/4, 1/2]"
        hint = (
            "1/4 gives regret T^(1/2) and slack T^(-1/4); 1/2 gives slack T^(-1/2) and no useful "
            "regret."
        )
        require_number(
            "tradeoff_exponent",
            tradeoff_exponent,
            lambda alpha: 0.25 <= alpha <= 0.5,
            requirement,
            hint,
        )
