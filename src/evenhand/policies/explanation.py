"""Why a policy accepts a person with this probability, and the least change that raises it.

One function for the library, the command line and the service. The shares are exact Shapley values
of the acceptance probability over *source* columns, against people who are named (`reasons`): a
category that takes several 0/1 columns is one column. Decisions of a mixture are drawn, so a change
comes with the probability before and after, and promises no acceptance.

The group is no column. Where a policy may look at it, it stays as it is for the person and for
those they are compared with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenhand.contracts import Hypothesis, Json
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.people import as_group
from evenhand.policies.reason_words import Direction, ReasonWords, joined
from evenhand.policies.reasons import (
    MOST_EVALUATIONS,
    Attribution,
    Change,
    Changeable,
    WeightedRule,
    attribution,
    least_change,
)
from evenhand.schema import MISSING, Column, Schema
from evenhand.shown import INK, LIMIT, MUTED_INK, Brief, Cell, Shown, counted, plain
from evenhand.words import FloatArray, GroupArray, as_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evenhand.policies.mixture import Mixture

COMPARED = 200
"""People whom somebody is compared with at most."""
FEWEST_COMPARED = 32
"""So many at least, also where that makes the shares of a model on many columns inexact."""
ROUNDING = 1e-12
"""A smaller share is none."""
TIED = 1e-9
WITH_BORDERS = ("constant", "group", "threshold", "per-group", "tree", "linear")
"""Kinds of rules whose every change of answer is known, see `hyperplanes`."""

Value = float | bool | str | None
"""Of a column, as it was given; None where it is missing."""


@dataclass(frozen=True)
class SourceColumn:
    """A column as a person is asked for it, and the numbers that stand for it.

    Parameters
    ----------
    name : str
        The column.
    place : slice
        Where its numbers stand in a row.
    kind : {"number", "date", "name", "text"}
        A date is a number of days since 1970-01-01. A name, as a category is one, has `options`. A
        text is anybody's own words, and never proposed.
    options : tuple of (value, tuple of float)
        The values of a name, each with its numbers.
    missing : float, optional
        The code of a missing value.
    column : Column, optional
        What reads a text back.

    Examples
    --------
    >>> housing = SourceColumn(
    ...     "housing", slice(0, 2), "name", (("own", (1.0, 0.0)), ("rent", (0.0, 1.0)))
    ... )
    >>> housing.value(np.array([0.0, 1.0])), housing.value(np.array([0.0, 0.0])) is None
    ('rent', True)
    """

    name: str
    place: slice
    kind: Literal["number", "date", "name", "text"] = "number"
    options: tuple[tuple[Value, tuple[float, ...]], ...] = ()
    missing: float | None = None
    column: Column | None = None

    def value(self, row: FloatArray) -> Value:
        """The value in a row.

        Parameters
        ----------
        row : array of shape (columns,)
            The numbers of a person.

        Returns
        -------
        float, bool, str or None
            None where it is missing, or none of the options.
        """
        codes = row[self.place]
        if self.missing is not None and codes[0] == self.missing:
            return None
        if self.kind == "name":
            return next((name for name, code in self.options if tuple(codes) == code), None)
        if self.column is not None:
            read = self.column.values(codes[None, :], None)[0]
            return read if isinstance(read, float | int | str | bool) else None
        if self.kind == "date":
            return (date(1970, 1, 1) + timedelta(days=float(codes[0]))).isoformat()
        return float(codes[0])


def number_columns(names: Sequence[str]) -> tuple[SourceColumn, ...]:
    """Columns that are all numbers.

    Parameters
    ----------
    names : sequence of str
        Their names.

    Returns
    -------
    tuple of SourceColumn
        One for each number of a row.
    """
    return tuple(SourceColumn(name, slice(j, j + 1)) for j, name in enumerate(names))


def schema_columns(schema: Schema) -> tuple[SourceColumn, ...]:
    """The columns of a frame.

    Parameters
    ----------
    schema : Schema
        What the rows stand for.

    Returns
    -------
    tuple of SourceColumn
        One for each column of the frame.
    """
    found = []
    for column in schema.columns:
        place = schema.places[column.name]
        missing = MISSING if column.missing else None
        if column.kind == "boolean":
            options: tuple[tuple[Value, tuple[float, ...]], ...] = ((False, (0.0,)), (True, (1.0,)))
            one = SourceColumn(column.name, place, "name", options, missing)
        elif column.kind == "category":
            options = tuple(
                (value if isinstance(value, bool | float | int) else str(value), (float(code),))
                for code, value in enumerate(column.categories)
            )
            one = SourceColumn(column.name, place, "name", options, missing)
        else:
            kind: Literal["number", "text"] = "number" if column.kind == "number" else "text"
            one = SourceColumn(column.name, place, kind, (), missing, column)
        found.append(one)
    return tuple(found)


@dataclass(frozen=True)
class Reason:
    """What a column did to the probability, compared with other people.

    Parameters
    ----------
    column : str
        The column.
    value : float, bool, str or None
        The person's value.
    share : float
        Its Shapley value: by how much it raises (or lowers) the probability.
    direction : {"low", "high", "any"}
        Of a number: whether the value is low or high beside those that would change the
        probability.
    text : str
        In words; the institution's own where there are some.
    code : str
        The institution's code.
    worded : bool
        Whether the institution has words for it.
    """

    column: str
    value: Value
    share: float
    direction: Direction = "any"
    text: str = ""
    code: str = ""
    worded: bool = False


@dataclass(frozen=True)
class ProposedChange:
    """The least change with which the probability is larger than a number.

    Parameters
    ----------
    columns : tuple of str
        The columns that change.
    now, then : tuple
        Their values, and the new ones.
    before, after : float
        The probability of being accepted.
    size : float
        How large the change is, in units of the columns' spread.
    words : str
        The change in words.
    """

    columns: tuple[str, ...]
    now: tuple[Value, ...]
    then: tuple[Value, ...]
    before: float
    after: float
    size: float
    words: str


@dataclass(frozen=True, repr=False)
class Explanation(Shown, Brief):
    """Why a person's probability of being accepted is what it is.

    Parameters
    ----------
    probability : float
        Of being accepted.
    reference_probability : float
        The mean of the people compared with; the shares of all columns add up to the difference.
    reference : str
        Who they are.
    compared_with : int
        How many they are.
    reasons : tuple of Reason
        The columns with a share, the largest first. Protected columns are not among them.
    change : ProposedChange or None
        The least change that raises the probability; None if none within what was observed does,
        or if the person is certain to be accepted.
    protected : tuple of Reason
        Shares of protected columns: no reasons that may be given, but something to mend.
    standard_error : float
        0 where the shares are exact.
    notes : tuple of str
        What must be known.

    Examples
    --------
    >>> from evenhand.hypotheses import ACCEPT_ALL, Threshold
    >>> from evenhand.policies import Mixture
    >>> policy = Mixture((Threshold(0, 600.0, 2), ACCEPT_ALL), (0.8, 0.2))
    >>> people = np.array([[650.0, 1.0], [700.0, 2.0], [520.0, 3.0], [610.0, 4.0]])
    >>> found = policy.explain([580.0, 9.0], people, columns=["score", "debt"])
    >>> found.probability, found.reference_probability
    (0.2, 0.8)
    >>> [(one.column, one.direction, round(one.share, 3)) for one in found.reasons]
    [('score', 'low', -0.6)]
    >>> found.change.words, found.change.after
    ('score of 600 (it is 580)', 1.0)
    """

    probability: float
    reference_probability: float
    reference: str
    compared_with: int
    reasons: tuple[Reason, ...]
    change: ProposedChange | None
    protected: tuple[Reason, ...] = ()
    standard_error: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def against(self) -> tuple[Reason, ...]:
        """The reasons that lower the probability, the strongest first."""
        return tuple(one for one in self.reasons if one.share < 0)

    @property
    def chance_decides(self) -> bool:
        """Whether the decision is drawn."""
        return 0.0 < self.probability < 1.0

    def principal_reasons(self, most: int = 4) -> tuple[Reason, ...]:
        """The reasons that a letter gives: those that speak against the person.

        Parameters
        ----------
        most : int
            How many at most.

        Returns
        -------
        tuple of Reason
            The strongest first.
        """
        return self.against[:most]

    def describe(self) -> str:
        """The explanation in words.

        Returns
        -------
        str
            The probability, the reasons, and the least change.
        """
        drawn = " The decision is drawn with it." if self.chance_decides else ""
        lines = [
            f"Probability of being accepted: {self.probability:.4g}.{drawn}",
            f"Compared with {counted(self.compared_with)} ({self.reference}), whose mean "
            f"probability is {self.reference_probability:.4g}.",
        ]
        for title, sign in (("Against acceptance", -1), ("For acceptance", 1)):
            mine = [one for one in self.reasons if one.share * sign > 0]
            lines += [f"{title}:"] if mine else []
            for one in mine:
                code = f" [{one.code}]" if one.code else ""
                lines.append(f"  {one.share:+.4f}  {one.text}{code}")
        if not self.reasons:
            lines.append("No column has a share in the difference.")
        if self.standard_error:
            lines.append(
                f"Shares are estimates with a standard error of {self.standard_error:.4f}."
            )
        return "\n".join([*lines, self.change_sentence, *self.notes])

    @property
    def change_sentence(self) -> str:
        """The least change in a sentence, with the probability before and after."""
        change = self.change
        if change is None:
            if self.probability >= 1.0 - ROUNDING:
                return "The person is certain to be accepted."
            return "No change of one or two columns within what was observed raises it."
        coin = "" if change.after >= 1.0 - ROUNDING else " The decision would still be drawn."
        return (
            f"Least change that raises it: {change.words}. The probability of being accepted is "
            f"then {change.after:.4g} instead of {change.before:.4g}.{coin}"
        )

    def to_json(self) -> Json:
        """The explanation as plain JSON.

        Returns
        -------
        dict
            The fields.
        """
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}

    def _headline(self) -> str:
        return (
            f"Probability of being accepted {self.probability:.4g}; {self.reference}: "
            f"{self.reference_probability:.4g}"
        )

    def _columns(self) -> dict[str, Sequence[Cell]]:
        rows = (*self.reasons, *self.protected)
        return {
            "column": [one.column for one in rows],
            "value": [None if one.value is None else str(one.value) for one in rows],
            "share": [one.share for one in rows],
            "direction": [one.direction for one in rows],
            "text": [one.text for one in rows],
            "code": [one.code for one in rows],
            "protected": [one in self.protected for one in rows],
        }

    def _draw(self, axes: "Axes") -> None:
        rows = (*self.reasons, *self.protected)[::-1]
        for place, one in enumerate(rows):
            colour = LIMIT if one.share < 0 else INK
            axes.barh([place], [one.share], color=colour, height=0.6)
            axes.annotate(
                f"{one.share:+.2g}",
                (one.share, place),
                xytext=(3 if one.share > 0 else -3, 0),
                textcoords="offset points",
                ha="left" if one.share > 0 else "right",
                va="center",
                fontsize="small",
            )
        names = [
            one.column if one.value is None else f"{one.column} = {_number(one.value)}"
            for one in rows
        ]
        axes.set_yticks(range(len(rows)), names)
        axes.axvline(0.0, color=MUTED_INK, linewidth=1)
        axes.margins(x=0.2)
        axes.set_xlabel(
            f"share of the probability: {self.probability:.3g} here, "
            f"{self.reference_probability:.3g} among {self.compared_with:,} others"
        )


def explain(
    policy: "Mixture",
    person: Any,
    reference: Any,
    *,
    columns: Sequence[str] | Sequence[SourceColumn] | None = None,
    group: object = None,
    words: ReasonWords | None = None,
    above: float | None = None,
    reference_name: str = "the reference",
) -> Explanation:
    """Explain a person's probability of being accepted.

    Parameters
    ----------
    policy : Mixture
        The policy.
    person : array_like of shape (columns,), mapping or frame of one row
        The person; a mapping or a frame for a policy that knows its columns by name.
    reference : array_like of shape (people, columns), or frame
        The people to compare with; where a model uses many columns, only the last of them, so that
        shares stay exact.
    columns : sequence of str or SourceColumn, optional
        The columns: their names, or what the numbers of a row stand for.
    group : object, optional
        The person's group, where the policy looks at it.
    words : ReasonWords, optional
        The institution's words, and what may not be said or proposed.
    above : float, optional
        The change is the least one with a probability above this; by default above the present one.
    reference_name : str
        Who the reference is, for the text.

    Returns
    -------
    Explanation
        With `describe`, `to_frame`, `plot` and `to_json`.

    Raises
    ------
    InvalidInput
        If the person or the reference does not fit the policy, or nobody is there to compare with.

    Notes
    -----
    phi_j = sum over S without j of |S|! (m - |S| - 1)! / m! (v(S + j) - v(S)), where v(S) is the
    mean probability of the reference with the person's values in S (`evenhand.policies.reasons`).

    Examples
    --------
    >>> from evenhand.hypotheses import Threshold
    >>> from evenhand.policies import Mixture
    >>> policy = Mixture((Threshold(0, 2.0, 2), Threshold(1, 5.0, 2)), (0.5, 0.5))
    >>> found = explain(policy, [1.0, 7.0], [[3.0, 6.0], [4.0, 1.0]], columns=["a", "b"])
    >>> [(one.column, one.share) for one in found.reasons]
    [('a', -0.5), ('b', 0.25)]
    """
    row, others = _rows(policy, person, reference)
    sources = _sources(policy, columns, len(row))
    words = words or ReasonWords()
    words.require_columns([one.name for one in sources])
    groups = _groups(policy, group)
    if not len(others):
        raise InvalidInput(
            "there is nobody in the reference to compare with.",
            hint="bring people of the population that the policy decides about.",
            argument="reference",
        )
    found, compared = shares_of(policy, row, others, sources, groups)

    def acceptance(rows: FloatArray) -> FloatArray:
        asked = None if groups is None else np.repeat(groups, len(rows))
        return policy.acceptance_of_checked(rows, asked)

    every = []
    for source, share in zip(sources, found.values.tolist(), strict=True):
        if abs(share) > ROUNDING:
            every.append(_reason(source, share, row, others, acceptance, words))
    every.sort(key=lambda one: -round(abs(one.share), 9))
    protected = tuple(one for one in every if one.column in words.protected)
    change = None
    least = found.acceptance + ROUNDING if above is None else above
    if least < 1.0:
        change = _proposal(policy, row, others, sources, acceptance, words, least)
    return Explanation(
        probability=found.acceptance,
        reference_probability=found.baseline,
        reference=reference_name,
        compared_with=compared,
        reasons=tuple(one for one in every if one.column not in words.protected),
        change=None if change is None else replace(change, before=found.acceptance),
        protected=protected,
        standard_error=found.standard_error,
        notes=_notes(protected, groups),
    )


def _rows(policy: "Mixture", person: Any, reference: Any) -> tuple[FloatArray, FloatArray]:
    """The numbers of the person, and of the people compared with."""
    if policy.schema is not None:
        one = [person] if isinstance(person, Mapping) else person
        if not isinstance(one, list) and getattr(one, "ndim", 2) == 1:
            one = np.asarray(one, dtype=np.float64)[None, :]
        row = policy.schema.encode(one)
        others = policy.schema.encode(reference)
    else:
        given = np.asarray(person, dtype=np.float64)
        row = as_features(given[None, :] if given.ndim == 1 else given)
        others = as_features(reference)
    if len(row) != 1:
        raise InvalidInput(
            f"{len(row)} people were given; one person is explained at a time.",
            hint="explain them one by one.",
            argument="person",
        )
    if row.shape[1] != others.shape[1]:
        raise InvalidInput(
            f"the person has {row.shape[1]} columns and the reference {others.shape[1]}.",
            hint="bring the same columns in the same order.",
            argument="reference",
        )
    return row[0], others


def _sources(
    policy: "Mixture", columns: Sequence[str] | Sequence[SourceColumn] | None, width: int
) -> tuple[SourceColumn, ...]:
    if columns is None and policy.schema is not None:
        return schema_columns(policy.schema)
    if columns is None:
        return number_columns([f"x{j}" for j in range(width)])
    sources = tuple(
        one if isinstance(one, SourceColumn) else SourceColumn(str(one), slice(j, j + 1))
        for j, one in enumerate(columns)
    )
    covered = sum(one.place.stop - one.place.start for one in sources)
    if covered != width:
        raise InvalidInput(
            f"the columns stand for {covered} numbers, and a person has {width}.",
            hint="name every column once.",
            argument="columns",
        )
    return sources


def _groups(policy: "Mixture", group: object) -> GroupArray | None:
    """The group, where the policy looks at it."""
    if policy.group_use != "decide":
        return None
    if group is None:
        raise InvalidInput(
            "the policy may look at the group, and the person's group is not given.",
            hint="group=...",
            argument="group",
        )
    return as_group([group], 1)


def _notes(protected: Sequence[Reason], groups: GroupArray | None) -> tuple[str, ...]:
    notes = []
    if protected:
        notes.append(
            f"The protected column {joined(one.column for one in protected)} has a share in the "
            "probability. It is not given as a reason; the policy should not look at it."
        )
    if groups is not None:
        notes.append(
            "The policy may look at the group, which is held as it is: what it does is in no share."
        )
    return tuple(notes)


def shares_of(
    policy: "Mixture",
    row: FloatArray,
    others: FloatArray,
    sources: Sequence[SourceColumn],
    groups: GroupArray | None,
) -> tuple[Attribution, int]:
    """What each column did to the person's probability, and how many people it is compared with:
    fewer for a model on many columns, such that the shares stay exact.

    Parameters
    ----------
    policy : Mixture
        The policy.
    row : array of shape (columns,)
        The person.
    others : array of shape (people, columns)
        The people compared with; the last ones are taken.
    sources : sequence of SourceColumn
        What the numbers stand for.
    groups : array of shape (1,), optional
        The person's group, where the policy looks at it.

    Returns
    -------
    tuple of Attribution and int
        The shares, and the number of people.
    """
    rules = []
    widest = 0
    for rule, weight in zip(policy.hypotheses, policy.weights, strict=True):
        used = columns_of(rule, sources)
        widest = max(widest, len(used))
        rules.append(WeightedRule(weight, partial(_answers, rule, groups), used))
    # A model takes longer than a rule, and is asked less often.
    asked = MOST_EVALUATIONS if _has_borders(policy) else MOST_EVALUATIONS // 4
    fitting = min(COMPARED, max(FEWEST_COMPARED, asked >> min(widest, 30)))
    compared = others[-fitting:]
    places = [one.place for one in sources]
    return attribution(rules, row, compared, places=places), len(compared)


def _answers(rule: Hypothesis, groups: GroupArray | None, rows: FloatArray) -> FloatArray:
    asked = None if groups is None else np.repeat(groups, len(rows))
    return np.asarray(rule.accepts(rows, asked), dtype=np.float64)


def columns_of(rule: Hypothesis, sources: Sequence[SourceColumn]) -> tuple[int, ...]:
    """The source columns that a rule may look at.

    Parameters
    ----------
    rule : Hypothesis
        The rule.
    sources : sequence of SourceColumn
        What the numbers stand for.

    Returns
    -------
    tuple of int
        Places in `sources`; all of them, if the rule does not know.
    """
    if rule.columns_used is None:
        return tuple(range(len(sources)))
    used = set(rule.columns_used)
    return tuple(
        at
        for at, one in enumerate(sources)
        if used.intersection(range(one.place.start, one.place.stop))
    )


def _reason(
    source: SourceColumn,
    share: float,
    row: FloatArray,
    others: FloatArray,
    acceptance: Any,
    words: ReasonWords,
) -> Reason:
    value = source.value(row)
    direction: Direction = "any"
    if source.kind in ("number", "date") and value is not None:
        direction = _direction(source, share, row, others[-COMPARED:], acceptance)
    found = words.find(source.name, direction, value)
    shown = "missing" if value is None else _number(value)
    text = f"{source.name} is {shown}"
    if direction != "any":
        text = f"{source.name} is {direction} ({shown})"
    if found is None:
        return Reason(source.name, value, share, direction, text)
    return Reason(source.name, value, share, direction, found.text, found.code, True)


def _direction(
    source: SourceColumn, share: float, row: FloatArray, others: FloatArray, acceptance: Any
) -> Direction:
    """Whether a number is low or high: on which side of it lie the values of other people with
    which the probability would be larger (for a share that speaks against) or smaller.
    """
    at = source.place.start
    seen = others[:, at]
    if source.missing is not None:
        seen = seen[seen != source.missing]
    asked = np.tile(row, (len(seen), 1))
    asked[:, at] = seen
    gains = np.asarray(acceptance(asked)) - float(acceptance(row[None, :])[0])
    better = np.maximum(gains if share < 0 else -gains, 0.0)
    from_above = float(better[seen > row[at]].sum())
    from_below = float(better[seen < row[at]].sum())
    if from_above == from_below:
        # No single value changes anything by itself: beside the mean.
        return "low" if row[at] < seen.mean() else "high"
    return "low" if from_above > from_below else "high"


def _proposal(
    policy: "Mixture",
    row: FloatArray,
    others: FloatArray,
    sources: Sequence[SourceColumn],
    acceptance: Any,
    words: ReasonWords,
    above: float,
) -> ProposedChange | None:
    """The least change that may be proposed, with a probability above a number."""
    lines, right = hyperplanes([_document(rule) for rule in policy.hypotheses], len(row))
    if not _has_borders(policy):
        more_lines, more_right = _observed_values(sources, others)
        lines = np.vstack([lines, more_lines])
        right = np.r_[right, more_right]
    columns = [_changeable(one, words) for one in sources]
    change = least_change(acceptance, row, (lines, right), others, above, columns)
    if change is None:
        return None
    return _in_words(change, row, sources)


def _document(rule: Hypothesis) -> Json:
    """A rule as JSON; nothing for somebody's own function."""
    try:
        return rule.to_json()
    except NotSerialisable:
        return {}


def _has_borders(policy: "Mixture") -> bool:
    """Whether every change of answer of its rules is known."""
    return all(_document(rule).get("kind") in WITH_BORDERS for rule in policy.hypotheses)


def _changeable(source: SourceColumn, words: ReasonWords) -> Changeable:
    """What may be proposed: numbers along their range, names that were observed, and never a text,
    which may be somebody else's own words, nor a protected or fixed column.
    """
    way: Literal["any", "up", "down"] = "any"
    if source.name in words.only_up:
        way = "up"
    elif source.name in words.only_down:
        way = "down"
    kind: Literal["number", "name", "fixed"] = "number"
    if source.kind == "text" or source.name in (*words.protected, *words.fixed):
        kind = "fixed"
    elif source.kind == "name":
        kind = "name"
    return Changeable(source.place, kind, source.missing, way)


def _in_words(change: Change, row: FloatArray, sources: Sequence[SourceColumn]) -> ProposedChange:
    changed = [sources[j] for j in change.columns]
    now = tuple(one.value(row) for one in changed)
    then = tuple(one.value(change.row) for one in changed)
    names = tuple(one.name for one in changed)
    words = change_words(names, now, then)
    return ProposedChange(names, now, then, np.nan, change.acceptance, change.size, words)


def _observed_values(
    sources: Sequence[SourceColumn], others: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(w, c) of every w.x = c at which a model without known borders is tried: numbers that were
    observed, at most 33 of each column.
    """
    width = others.shape[1]
    weights = [np.zeros((0, width))]
    right = [np.zeros(0)]
    for source in sources:
        if source.kind not in ("number", "date"):
            continue
        at = source.place.start
        seen = others[:, at]
        if source.missing is not None:
            seen = seen[seen != source.missing]
        if len(seen):
            tried = np.unique(np.quantile(seen, np.linspace(0, 1, 33), method="nearest"))
            weights.append(np.tile(np.eye(width)[at], (len(tried), 1)))
            right.append(tried)
    return np.vstack(weights), np.concatenate(right)


def _number(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def change_words(
    names: Sequence[str], now: Sequence[Value], then: Sequence[Value], verb: str = "is"
) -> str:
    """A change in words: "score of 612 (it is 580)".

    Parameters
    ----------
    names : sequence of str
        The columns.
    now, then : sequence
        Their values, and the new ones.
    verb : {"is", "was"}
        Tense of the person's present values.

    Returns
    -------
    str
        The words.
    """
    return joined(
        _moved(name, was, to, verb) for name, was, to in zip(names, now, then, strict=True)
    )


def _moved(name: str, was: Value, to: Value, verb: str) -> str:
    """A change in words, with so many digits that the two numbers read differently."""
    before = "missing" if was is None else str(was)
    if isinstance(to, bool | str) or to is None:
        return f"{name} {str(to)!r} (it {verb} {before!r})"
    if isinstance(was, float | int):
        texts = (f"{was:.{digits}g}" for digits in (6, 10, 14, 17))
        before = next((text for text in texts if float(text) != to), before)
    return f"{name} of {to:.10g} (it {verb} {before})"


def hyperplanes(document: Any, width: int) -> tuple[FloatArray, FloatArray]:
    """(w, c) of every w.x = c at which a rule of a policy's document changes its answer.

    Parameters
    ----------
    document : dict
        A policy as JSON.
    width : int
        How many numbers a row has.

    Returns
    -------
    tuple of array
        w, shape (lines, width), and c, shape (lines,).

    Examples
    --------
    >>> hyperplanes({"kind": "threshold", "column": 1, "value": 7.0}, 2)
    (array([[0., 1.]]), array([7.]))
    """
    found: list[tuple[FloatArray, float]] = []

    def look(part: Any) -> None:
        match part:
            case {"kind": "threshold", "column": column, "value": value}:
                found.append((np.eye(width)[column], value))
            case {"kind": "tree", "column": columns, "value": values}:
                cuts = zip(columns, values, strict=True)
                found.extend((np.eye(width)[at], cut) for at, cut in cuts if at >= 0)
            case {"kind": "linear", "weights": weights, "threshold": threshold}:
                found.append((np.array(weights, dtype=np.float64), threshold))
            case dict():
                for inner in part.values():
                    look(inner)
            case list():
                for inner in part:
                    look(inner)

    look(document)
    right = np.array([c for _, c in found], dtype=np.float64)
    return np.array([w for w, _ in found], dtype=np.float64).reshape(-1, width), right
