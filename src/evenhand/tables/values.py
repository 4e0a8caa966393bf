"""What the values of a column mean: the two values of an outcome or a decision, and groups."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from evenhand.errors import BadLabel, InvalidInput
from evenhand.tables.column import FALSE, TRUE, TableColumn, listed, number, same_value
from evenhand.tables.frame import MISSING_VALUE, Frame, Note
from evenhand.words import FloatArray


def with_missing_group(frame: Frame, name: str) -> Frame:
    """Make a group of the people whose group is missing.

    Parameters
    ----------
    frame : Frame
        The rows.
    name : str
        The column of the group.

    Returns
    -------
    Frame
        The same rows, in which they are of the group `MISSING_VALUE`.

    Examples
    --------
    >>> frame = Frame("toy", {"sex": TableColumn(("f", ""))}, (2, 3))
    >>> with_missing_group(frame, "sex")["sex"].texts
    ('f', 'missing')
    """
    texts = tuple(MISSING_VALUE if text is None else text for text in frame[name].texts)
    return replace(frame, columns={**frame.columns, name: TableColumn(texts)})


def chosen_groups(frame: Frame, name: str, groups: tuple[str, ...]) -> Frame:
    """Keep the rows of some groups.

    Parameters
    ----------
    frame : Frame
        The rows.
    name : str
        The column of the group.
    groups : tuple of str
        The groups; empty for all.

    Returns
    -------
    Frame
        The rows of these groups.

    Raises
    ------
    InvalidInput
        If one of them does not occur.

    Examples
    --------
    >>> from evenhand.tables.column import TableColumn
    >>> frame = Frame("toy", {"sex": TableColumn(("f", "m", "x"))}, (2, 3, 4))
    >>> chosen_groups(frame, "sex", ("f", "m")).lines
    (2, 3)
    """
    if not groups:
        return frame
    texts = frame.columns[name].texts
    where = f"the group column {name!r}"
    chosen = {text for wanted in groups for text in matching_values(wanted, texts, where, "groups")}
    return frame.where(np.array([text in chosen for text in texts], dtype=bool))


def matching_values(
    value: str, texts: Iterable[str | None], where: str, argument: str
) -> list[str]:
    """Find the values of a column that mean the same as a given one.

    1 and 1.0 mean the same, as do yes and Yes; and Y, if the column holds nothing but words for yes
    and no.

    Parameters
    ----------
    value : str
        The value as it was asked for.
    texts : iterable of str or None
        The values of the column.
    where : str
        The column in words, for the error.
    argument : str
        The argument that gave the value, for the error.

    Returns
    -------
    list of str
        The values as the column has them, `value` itself first.

    Raises
    ------
    InvalidInput
        If it does not occur.

    Examples
    --------
    >>> matching_values("Yes", ["yes", "Y", "n", None], "the label", "good")
    ['Y', 'yes']
    """
    distinct = sorted({text for text in texts if text is not None})
    same = [text for text in distinct if _alike(text, value)]
    words = {text.lower() for text in distinct}
    side = next((side for side in (TRUE, FALSE) if value.strip().lower() in side), frozenset())
    if words <= TRUE | FALSE and side and any(number(word) is None for word in words):
        same = [text for text in distinct if text.lower() in side]
    same.sort(key=lambda text: text != value)
    if not same:
        raise InvalidInput(
            f"{argument} {value!r} does not occur in {where}; "
            f"its values are: {listed(distinct, 10)}.",
            hint="name a value that occurs; blanks around it and upper or lower case do not "
            "matter.",
            argument=argument,
            value=repr(value),
        )
    return same


def _alike(text: str, other: str) -> bool:
    """Whether two values are one: equal numbers, or texts that differ in case alone."""
    return same_value(text, other) or text.casefold() == other.strip().casefold()


@dataclass(frozen=True)
class TwoValues:
    """How messages speak of a column with two values: what it is, and the arguments that name them.

    Parameters
    ----------
    noun : str
        What the column is called.
    first, one, requirement : str
        What the first value means, in one word, and what the two values are.
    argument, other : str
        The arguments that name the first value and the others.

    Examples
    --------
    >>> DECISION.argument
    'accepted'
    """

    noun: str
    first: str
    one: str
    requirement: str
    argument: str
    other: str


OUTCOME = TwoValues(
    noun="label",
    first="the good outcome",
    one="good",
    requirement="an outcome is good or bad",
    argument="good",
    other="bad",
)
DECISION = TwoValues(
    noun="decision",
    first="an acceptance",
    one="accepted",
    requirement="a person is accepted or rejected",
    argument="accepted",
    other="rejected",
)


def two_values(
    frame: Frame,
    name: str,
    first: str | None,
    others: tuple[str, ...] = (),
    words: TwoValues = OUTCOME,
) -> tuple[FloatArray, str]:
    """Read a column with two values.

    Parameters
    ----------
    frame : Frame
        The rows.
    name : str
        The column.
    first : str, optional
        The value that becomes +1, or several with commas between them; by default the only value
        besides `others`, or 1 where the column holds 0 and 1, or -1 and 1. It need not occur where
        `others` are all values that do.
    others : tuple of str
        The values that become -1, which must be named where there are several.
    words : TwoValues
        How messages speak of it.

    Returns
    -------
    tuple
        +1, -1, or not a number where the value is missing; and the value taken as the first.

    Raises
    ------
    BadLabel
        If it is not clear which value is which. Nothing is guessed from the alphabet.

    Examples
    --------
    >>> from evenhand.tables.column import TableColumn
    >>> frame = Frame("loans", {"repaid": TableColumn(("yes", "no", ""))}, (2, 3, 4))
    >>> two_values(frame, "repaid", "yes")
    (array([ 1., -1., nan]), 'yes')
    >>> two_values(frame, "repaid", None, ("no",))
    (array([ 1., -1., nan]), 'yes')
    """
    texts = frame.columns[name].texts
    distinct = sorted({text for text in texts if text is not None})
    named = {text for text in distinct if any(_alike(text, other) for other in others)}
    unnamed = [text for text in distinct if text not in named]
    if first is None and named and unnamed and all(_alike(unnamed[0], text) for text in unnamed):
        first = unnamed[0]
    if first is None:
        read = {number(text): text for text in distinct}
        usual = any(set(read) <= pair for pair in ({0.0, 1.0}, {-1.0, 1.0}))
        if not read or not usual or len(read) < len(distinct):
            raise BadLabel(
                f"{frame.source}: the {words.noun} column {name!r} holds {listed(distinct)}; "
                f"unless a value is named, it must hold 0 and 1, or -1 and 1 (1 is {words.one}).",
                hint=f"say which of its values is {words.first} ({words.argument}).",
                argument=words.argument,
                column=name,
            )
        chosen = [read[1.0]] if 1.0 in read else []
        shown_as = "1"
    elif named and named.issuperset(distinct):
        chosen = []
        shown_as = first
    else:
        where = f"the {words.noun} column {name!r}"
        # A value may itself hold a comma: it is split only where the whole does not occur.
        whole = "," not in first or any(_alike(text, first) for text in distinct)
        wanted = [first] if whole else [part.strip() for part in first.split(",") if part.strip()]
        alike = [matching_values(one, distinct, where, words.argument) for one in wanted]
        chosen = [text for several in alike for text in several]
        shown_as = ",".join(several[0] for several in alike)
        if named & set(chosen):
            both = sorted(named & set(chosen))
            raise BadLabel(
                f"{frame.source}: {both[0]!r} is named as {words.argument} and as {words.other}",
                requirement=words.requirement,
                hint="name it once.",
                argument=words.argument,
                column=name,
            )
    rest = [text for text in distinct if text not in chosen]
    flags = {text.lower() for text in distinct} <= TRUE | FALSE
    one = flags or all(_alike(text, rest[0]) for text in rest)
    if not named.issuperset(rest) and (others or not one):
        shown = ", ".join(map(repr, rest[:5]))
        raise BadLabel(
            f"{frame.source}: besides {shown_as!r} the {words.noun} {name!r} has the values "
            f"{shown}",
            requirement=words.requirement,
            hint=f"name every value that counts as {words.one} ({words.argument}: A,B) and all "
            f"others ({words.other}), and remove rows that are neither.",
            argument=words.other,
            remedies=(words.argument,),
            column=name,
        )
    sign = {text: 1.0 if text in chosen else -1.0 for text in distinct}
    values = [np.nan if text is None else sign[text] for text in texts]
    return np.array(values, dtype=np.float64), shown_as


def group_texts(frame: Frame, name: str, notes: list[Note]) -> list[str | None]:
    """Read the group of each row; groups whose names differ in case alone are one.

    Parameters
    ----------
    frame : Frame
        The rows.
    name : str
        The column.
    notes : list of Note
        Gets a note where names were joined.

    Returns
    -------
    list of str or None
        The group of each row, None where it is missing.

    Examples
    --------
    >>> from evenhand.tables.column import TableColumn
    >>> frame = Frame("toy", {"sex": TableColumn(("f", "F", "f", "m"))}, (2, 3, 4, 5))
    >>> notes = []
    >>> group_texts(frame, "sex", notes)
    ['f', 'f', 'f', 'm']
    >>> print(notes[0])
    the groups F, f of 'sex' are taken for one, f
    """
    texts = frame.columns[name].texts
    sizes = Counter(texts)
    folded: dict[str, list[str]] = {}
    for text in sorted(text for text in sizes if text is not None):
        folded.setdefault(text.casefold(), []).append(text)
    shown: dict[str | None, str | None] = {None: None}
    for several in folded.values():
        most = max(several, key=lambda text: sizes[text])
        shown |= dict.fromkeys(several, most)
        if len(several) > 1:
            text = f"the groups {', '.join(several)} of {name!r} are taken for one, {most}"
            notes.append(Note("joined groups", text, name))
    return [shown[text] for text in texts]
