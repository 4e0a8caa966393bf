"""An institution's own words for reasons: which text and code a column's share gets, and what may
not be said or proposed.

    protected = ["age"]                # never given as a reason, never proposed to be changed
    fixed = ["previous_defaults"]      # may be a reason; no change of it is proposed
    only_up = ["years_employed"]       # a proposed change may only raise it
    only_down = ["debt_ratio"]

    [[reason]]
    column = "debt_ratio"
    direction = "high"                 # too high; "low", or "any" (the default)
    code = "R07"
    text = "Debt is high in relation to income."

    [[reason]]
    column = "housing"
    value = "rent"                     # of a category: this value alone
    text = "Housing situation."
"""

import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from evenhand.errors import InvalidInput

Direction = Literal["low", "high", "any"]
DIRECTIONS = ("low", "high", "any")
LISTS = ("protected", "fixed", "only_up", "only_down")
KEYS = ("column", "direction", "value", "text", "code")


@dataclass(frozen=True)
class ReasonText:
    """How one reason is worded.

    Parameters
    ----------
    column : str
        The column.
    text : str
        What is said.
    direction : {"low", "high", "any"}
        Whether it is said of values that are too low, too high, or of any.
    value : str, optional
        Of a category: the value of which it is said.
    code : str
        The institution's code.
    """

    column: str
    text: str
    direction: Direction = "any"
    value: str | None = None
    code: str = ""


@dataclass(frozen=True)
class ReasonWords:
    """The words of an institution, and what may not be said or proposed.

    Parameters
    ----------
    texts : tuple of ReasonText
        The wordings; the most specific one is taken (value, then direction, then any).
    protected : tuple of str
        Columns that are never given as a reason and never proposed to be changed.
    fixed : tuple of str
        Columns that may be a reason, but of which no change is proposed.
    only_up, only_down : tuple of str
        Columns of which a proposed change goes in one direction only.

    Examples
    --------
    >>> words = ReasonWords.from_toml('''
    ... protected = ["age"]
    ... [[reason]]
    ... column = "debt"
    ... direction = "high"
    ... text = "Debt is high."
    ... ''')
    >>> words.find("debt", "high", 0.6).text, words.find("debt", "low", 0.1) is None
    ('Debt is high.', True)
    """

    texts: tuple[ReasonText, ...] = ()
    protected: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    only_up: tuple[str, ...] = ()
    only_down: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        seen = set()
        for one in self.texts:
            if one.column in self.protected:
                raise InvalidInput(
                    f"the wording of {one.column!r} words a protected column, which is never given "
                    "as a reason.",
                    hint="remove the wording; if a policy uses the column, change the policy.",
                    column=one.column,
                )
            if one.direction not in DIRECTIONS:
                raise InvalidInput(
                    f"the wording of {one.column!r} has the direction {one.direction!r}; it is "
                    f"one of {', '.join(DIRECTIONS)}.",
                    hint='"high" is said of values that are too high.',
                    column=one.column,
                )
            if not one.text.strip():
                raise InvalidInput(
                    f"the wording of {one.column!r} has no text.",
                    hint="say what the person reads.",
                    column=one.column,
                )
            key = (one.column, one.direction, one.value)
            if key in seen:
                raise InvalidInput(
                    f"{one.column!r} is worded twice for the same direction and value.",
                    hint="keep one of them.",
                    column=one.column,
                )
            seen.add(key)
        both = set(self.only_up) & set(self.only_down)
        if both:
            name = sorted(both)[0]
            raise InvalidInput(
                f"{name!r} is in only_up and in only_down.",
                hint="for a column that may not change: fixed.",
                column=name,
            )

    @classmethod
    def from_toml(cls, text: str, source: str = "the wording") -> "ReasonWords":
        """Read the words of a TOML document.

        Parameters
        ----------
        text : str
            The document; the module shows its form.
        source : str
            What it is called in messages.

        Returns
        -------
        ReasonWords
            The words.

        Raises
        ------
        InvalidInput
            If it is no TOML, or says what such a document cannot say.
        """
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(
                f"{source} is no TOML: {error}.", hint="begin with [[reason]] and column = ..."
            ) from error
        strange = sorted(set(document) - {*LISTS, "reason"})
        if strange:
            raise InvalidInput(
                f"{source} has {strange[0]!r}, which means nothing there.",
                hint=f"known are [[reason]], {', '.join(LISTS)}.",
            )
        lists = {name: _names(document.get(name, []), name, source) for name in LISTS}
        reasons = document.get("reason", [])
        if not isinstance(reasons, list) or not all(isinstance(one, dict) for one in reasons):
            raise InvalidInput(
                f"{source}: reason is no list of tables.", hint="write [[reason]] above each."
            )
        return cls(tuple(_text(one, at, source) for at, one in enumerate(reasons, 1)), **lists)

    def require_columns(self, known: Sequence[str], protected: Collection[str] = ()) -> None:
        """Raise an error for a column that the people do not have, or that is protected.

        Parameters
        ----------
        known : sequence of str
            The columns that a decision looks at.
        protected : collection of str
            Columns that are protected in any case: the group.

        Raises
        ------
        InvalidInput
            With the columns that there are.
        """
        for one in self.texts:
            if one.column in protected:
                raise InvalidInput(
                    f"the wording names {one.column!r}, which is the group and protected: it is "
                    "never given as a reason.",
                    hint="remove the wording.",
                    column=one.column,
                )
        named = [one.column for one in self.texts]
        for name in (*named, *self.fixed, *self.only_up, *self.only_down):
            if name not in known:
                raise InvalidInput(
                    f"the wording names the column {name!r}, and decisions look at no such column.",
                    hint=f"they look at {', '.join(known)}.",
                    column=name,
                )

    def find(self, column: str, direction: str, value: object) -> ReasonText | None:
        """The wording of a reason.

        Parameters
        ----------
        column : str
            The column.
        direction : {"low", "high", "any"}
            Whether the value is too low or too high; "any" for categories.
        value : object
            The person's value.

        Returns
        -------
        ReasonText or None
            The most specific wording; None if there is none.
        """
        mine = [one for one in self.texts if one.column == column]
        by_value = [one for one in mine if one.value is not None and one.value == str(value)]
        rest = [one for one in mine if one.value is None]
        exact = [one for one in rest if one.direction == direction]
        general = [one for one in rest if one.direction == "any"]
        return next(iter((*by_value, *exact, *general)), None)


def _names(given: Any, name: str, source: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise InvalidInput(
            f"{source}: {name} is {given!r}; it is a list of columns.", hint=f'{name} = ["age"]'
        )
    return tuple(given)


def _text(given: dict[str, Any], at: int, source: str) -> ReasonText:
    strange = sorted(set(given) - set(KEYS))
    if strange:
        raise InvalidInput(
            f"{source}: reason {at} has {strange[0]!r}, which means nothing there.",
            hint=f"known are {', '.join(KEYS)}.",
        )
    for key in ("column", "text"):
        if not isinstance(given.get(key), str):
            raise InvalidInput(
                f"{source}: reason {at} has no {key}.", hint=f'{key} = "..." in each [[reason]].'
            )
    written = {key: str(value) for key, value in given.items()}
    return ReasonText(
        written["column"],
        written["text"],
        cast(Direction, written.get("direction", "any")),
        written.get("value"),
        written.get("code", ""),
    )


def joined(names: Iterable[str]) -> str:
    """Names in a sentence: a, b and c."""
    listed = list(names)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} and {listed[-1]}"
