"""Why a policy accepts a person with this probability, and the least change that raises it.

One function for the library, the command line and the service. The shares are Shapley values over
*source* columns, against all people of a named reference (`reasons`): a category that takes several
0/1 columns is one column. What is shared out depends on the rules (`Comparison`):

- each looks at one column (thresholds, stumps): the probability, exactly and in closed form;
- they are linear: the score of those that reject the person, exactly and in closed form;
- all others: the probability, over all subsets of columns, or as an estimate with its error.

Decisions of a mixture are drawn, so a change comes with the probability before and after, and
promises no acceptance.

The group is no column. Where a policy may look at it, it stays as it is for the person and for
those they are compared with.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenhand.contracts import Hypothesis, Json
from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.media import Told
from evenhand.people import as_group
from evenhand.policies.explained import explained
from evenhand.policies.reason_words import Direction, ReasonWords, joined
from evenhand.policies.reasons import (
    MOST_EVALUATIONS,
    Acceptance,
    Change,
    Changeable,
    WeightedRule,
    attribution,
    least_change,
)
from evenhand.policies.sensitive import protected_kind
from evenhand.result import Result
from evenhand.schema import MISSING, Column, Schema
from evenhand.shown import Brief
from evenhand.words import FloatArray, GroupArray, as_features

if TYPE_CHECKING:
    from evenhand.policies.mixture import Mixture

ROUNDING = 1e-12
"""A smaller share is none."""
TIED = 1e-9
CERTAIN = 2.0
"""Standard errors by which one share must be larger than the next for their order to be settled."""
MOST_OBSERVED = 2000
"""People whose values are proposed at most: ranges and names are looked up for every person."""
LEVELS = 201
"""Values of a column, spread evenly over the people compared with, that say whether a person's own
is low or high.
"""
LEAST_SHARE = 0.01
"""Of the strongest reason's share: what is smaller is given to nobody as a reason."""
MARK = " missing"
"""How the names of columns end that mark the blanks of another one (`read_table`)."""
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
        Its Shapley value: by how much it raises (or lowers) the probability or the score, see
        `Explanation.unit`.
    direction : {"low", "high", "any"}
        Of a number: whether the value is low or high beside those that would change the
        probability.
    text : str
        In words; the institution's own where there are some.
    code : str
        The institution's code.
    worded : bool
        Whether the institution has words for it.
    error : float
        The standard error of the share; 0 where it is exact.
    """

    column: str
    value: Value
    share: float
    direction: Direction = "any"
    text: str = ""
    code: str = ""
    worded: bool = False
    error: float = 0.0


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
class Explanation(Told, Brief):
    """Why a person's probability of being accepted is what it is.

    Parameters
    ----------
    probability : float
        Of being accepted.
    reference_probability : float
        The mean of the people compared with. Where the unit is "probability", the shares of all
        columns add up to the difference.
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
        The largest of a share; 0 where all are exact.
    notes : tuple of str
        What must be known.
    unit : {"probability", "score"}
        What the shares are parts of. Of linear rules: how far the person's score is from the mean
        of the people compared with, in standard deviations of the score among them.
    rejecting : float
        The weight of the rules that look at the person and reject. Where it is 0, the draw alone
        can reject, and no column is a reason for that.
    unsettled : tuple of (str, str)
        Columns that speak against the person, and the next one of them, where their order may be
        an effect of the estimation.

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
    unit: Literal["probability", "score"] = "probability"
    rejecting: float = 1.0
    unsettled: tuple[tuple[str, str], ...] = ()

    @property
    def against(self) -> tuple[Reason, ...]:
        """The reasons that lower the probability or the score, the strongest first."""
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
            The strongest first; none where no rule rejects the person, so that the draw decided. A
            share of less than LEAST_SHARE of the strongest is no reason.
        """
        if self.rejecting <= ROUNDING or not self.against:
            return ()
        least = LEAST_SHARE * self.against[0].share
        return tuple(one for one in self.against[:most] if one.share <= least)

    def result(self) -> Result:
        """What is said of the explanation.

        Returns
        -------
        Result
            The probability, the least change, and the table "reasons".
        """
        return explained(self)

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
    seed: int = 0,
) -> Explanation:
    """Explain a person's probability of being accepted.

    Parameters
    ----------
    policy : Mixture
        The policy.
    person : array_like of shape (columns,), mapping or frame of one row
        The person; a mapping or a frame for a policy that knows its columns by name.
    reference : array_like of shape (people, columns), frame or Comparison
        The people to compare with: all of them. Who explains many people makes a `Comparison` once.
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
    seed : int
        Of the estimate, where shares have to be estimated; exact ones do not depend on it.

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
    mean probability (or score) of the reference with the person's values in S. For thresholds,
    stumps and linear rules this has a closed form (`Comparison`).

    Examples
    --------
    >>> from evenhand.hypotheses import Threshold
    >>> from evenhand.policies import Mixture
    >>> policy = Mixture((Threshold(0, 2.0, 2), Threshold(1, 5.0, 2)), (0.5, 0.5))
    >>> found = explain(policy, [1.0, 7.0], [[3.0, 6.0], [4.0, 1.0]], columns=["a", "b"])
    >>> [(one.column, one.share) for one in found.reasons]
    [('a', -0.5), ('b', 0.25)]
    """
    compared: Comparison = (
        reference
        if isinstance(reference, Comparison)
        else Comparison.of(policy, reference, columns)
    )
    row = _row(policy, person, compared.others.shape[1])
    words = words or ReasonWords()
    words.require_columns([one.name for one in compared.sources])
    return compared.explain(
        row, group, words=words, above=above, reference_name=reference_name, seed=seed
    )


def _row(policy: "Mixture", person: Any, width: int) -> FloatArray:
    """The numbers of the person."""
    if policy.schema is not None:
        one = [person] if isinstance(person, Mapping) else person
        if not isinstance(one, list) and getattr(one, "ndim", 2) == 1:
            one = np.asarray(one, dtype=np.float64)[None, :]
        row = policy.schema.encode(one)
    else:
        given = np.asarray(person, dtype=np.float64)
        row = as_features(given[None, :] if given.ndim == 1 else given)
    if len(row) != 1:
        raise InvalidInput(
            f"{len(row)} people were given; one person is explained at a time.",
            hint="explain them one by one.",
            argument="person",
        )
    if row.shape[1] != width:
        raise InvalidInput(
            f"the person has {row.shape[1]} columns and the reference {width}.",
            hint="bring the same columns in the same order.",
            argument="reference",
        )
    return np.asarray(row[0])


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


def _notes(
    protected: Sequence[Reason], against: Sequence[Reason], by_group: bool, rules: str
) -> tuple[str, ...]:
    notes = [rules] if rules else []
    if protected:
        notes.append(
            f"The protected column {joined(one.column for one in protected)} has a share in the "
            "difference. It is not given as a reason; the policy should not look at it."
        )
    if by_group:
        notes.append(
            "The policy may look at the group, which is held as it is: what it does is in no share."
        )
    return (*notes, *sensitive_notes(one.column for one in against))


def sensitive_notes(columns: Iterable[str]) -> tuple[str, ...]:
    """A warning for reasons whose columns name what the law protects.

    Parameters
    ----------
    columns : iterable of str
        The columns of reasons.

    Returns
    -------
    tuple of str
        One sentence for each column whose name says age, sex, race, marital status and the like.

    Examples
    --------
    >>> sensitive_notes(["income", "Marital"])[0][:43]
    "the reason 'Marital' names marital status. "
    """
    kinds = {name: protected_kind(name) for name in columns}
    return tuple(
        f"the reason {name!r} names {kind}. Deciding by it may be unlawful; have this "
        "checked before the reason is given. Protecting the column takes it out of the reasons, "
        "not out of the policy."
        for name, kind in kinds.items()
        if kind is not None
    )


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


@dataclass(frozen=True, eq=False)
class Comparison:
    """A policy and all people of a reference, with what is the same for everybody who is explained.

    Parameters
    ----------
    policy : Mixture
        The policy.
    others : array of shape (people, columns)
        The people compared with.
    sources : tuple of SourceColumn
        What the numbers stand for.

    Notes
    -----
    p(x) = sum_k q_k 1[h_k(x)] with the weights q_k. If each h_k looks at one column, p is additive,
    and phi_j = f_j(x_j) - mean f_j with f_j the sum of q_k over the rules on column j that accept.

    If the rules are linear, h_k(x) = 1[s_k(x) >= t_k] with s_k(x) = w_k.x, the probability has no
    closed form, and says little: it is 0 for all whom every rule rejects, by however much. The
    score is explained instead. Of several rules the person was rejected by those with
    s_k(x) < t_k; let R be these (all of them if there are none). Their mean score, each in units of
    its standard deviation sigma_k among the people compared with,

        s(x) = sum_R q_k s_k(x) / sigma_k / sum_R q_k,

    is linear, and so is exactly shared out by

        phi_j = sum over numbers i of column j  u_i (x_i - mean_i),
        u     = sum_R q_k w_k / sigma_k / sum_R q_k

    A rule that accepts the person gives no reason for a rejection, so that it has no part; and a
    rule that decides more often counts more. Rules without columns (constants, groups) have no
    score: they move the probability of all people alike.

    Examples
    --------
    >>> from evenhand.hypotheses import LinearRule
    >>> from evenhand.policies import Mixture
    >>> policy = Mixture((LinearRule((2.0, -1.0), 4.0),), (1.0,))
    >>> people = Comparison.of(policy, [[3.0, 1.0], [1.0, 1.0]], ["income", "debt"])
    >>> found = policy.explain([1.0, 3.0], people)
    >>> found.unit, [(one.column, one.direction, one.share) for one in found.reasons]
    ('score', [('income', 'low', -1.0), ('debt', 'high', -1.0)])
    """

    policy: "Mixture"
    others: FloatArray
    sources: tuple[SourceColumn, ...]

    @classmethod
    def of(
        cls,
        policy: "Mixture",
        reference: Any,
        columns: Sequence[str] | Sequence[SourceColumn] | None = None,
    ) -> "Comparison":
        """The comparison with a reference.

        Parameters
        ----------
        policy : Mixture
            The policy.
        reference : array_like of shape (people, columns), or frame
            The people to compare with.
        columns : sequence of str or SourceColumn, optional
            As `explain` takes them.

        Returns
        -------
        Comparison
            For any number of people.

        Raises
        ------
        InvalidInput
            If nobody is in the reference, or the columns do not fit.
        """
        schema = policy.schema
        others = as_features(reference) if schema is None else schema.encode(reference)
        if not len(others):
            raise InvalidInput(
                "there is nobody in the reference to compare with.",
                hint="bring people of the population that the policy decides about.",
                argument="reference",
            )
        return cls(policy, others, _sources(policy, columns, others.shape[1]))

    def explain(
        self,
        row: FloatArray,
        group: object,
        *,
        words: ReasonWords,
        above: float | None,
        reference_name: str,
        seed: int,
    ) -> Explanation:
        """One person, see `explain`.

        Parameters
        ----------
        row : array of shape (columns,)
            The person.
        group : object
            The person's group; looked at only where the policy does.
        words : ReasonWords
            The institution's words.
        above : float or None
            The change is the least one with a probability above this.
        reference_name : str
            Who the people are.
        seed : int
            Of estimates.

        Returns
        -------
        Explanation
            The reasons, and the change.
        """
        by_group = self.policy.group_use == "decide"
        if by_group and group is None:
            raise InvalidInput(
                "the policy may look at the group, and the person's group is not given.",
                hint="group=...",
                argument="group",
            )
        rules = self.rules_for(group if by_group else None)
        found = _with_marks(rules.way.shares(row, seed), self.marks)
        blank = {of: mark for mark, of in self.marks if row[self.sources[mark].place.start] == 1.0}
        every = []
        for at in np.flatnonzero(np.abs(found.values) > ROUNDING).tolist():
            source = self.sources[at]
            value = None if at in blank else source.value(row)
            direction: Direction = "any"
            if source.kind in ("number", "date") and value is not None:
                direction = rules.way.direction(at, row, found)
            reason = _reason(source, value, at, direction, found, words)
            if at in blank and not reason.worded:
                own = words.find(self.sources[blank[at]].name, "any", "yes")
                if own is not None:
                    reason = replace(reason, text=own.text, code=own.code, worded=True)
            every.append(reason)
        every.sort(key=lambda one: -round(abs(one.share), 9))
        protected = tuple(one for one in every if one.column in words.protected)
        reasons = tuple(one for one in every if one.column not in words.protected)
        against = tuple(one for one in reasons if one.share < 0)
        probability = float(rules.acceptance(row[None, :])[0])
        change = None
        least = probability + ROUNDING if above is None else above
        if least < 1.0:
            change = _proposal(self, row, rules.acceptance, words, least)
        return Explanation(
            probability=probability,
            reference_probability=rules.usual,
            reference=reference_name,
            compared_with=len(self.others),
            reasons=reasons,
            change=None if change is None else replace(change, before=probability),
            protected=protected,
            standard_error=float(np.sqrt(np.diagonal(found.covariance)).max(initial=0.0)),
            notes=_notes(protected, against, by_group, found.note),
            unit=rules.way.unit,
            rejecting=found.rejecting,
            unsettled=_unsettled(against, found.covariance, [one.name for one in self.sources]),
        )

    def rules_for(self, group: object) -> "_Rules":
        """What is the same for all people of a group.

        Parameters
        ----------
        group : object
            The group; None where the policy does not look at it.

        Returns
        -------
        _Rules
            Kept for the next person.
        """
        if group not in self._by_group:
            self._by_group[group] = _Rules(self, group)
        return self._by_group[group]

    @cached_property
    def _by_group(self) -> "dict[object, _Rules]":
        return {}

    @cached_property
    def documents(self) -> tuple[Json, ...]:
        """The policy's rules as JSON."""
        return tuple(_document(rule) for rule in self.policy.hypotheses)

    @cached_property
    def has_borders(self) -> bool:
        """Whether every change of answer of its rules is known."""
        return all(one.get("kind") in WITH_BORDERS for one in self.documents)

    @cached_property
    def borders(self) -> tuple[FloatArray, FloatArray]:
        """(w, c) of every w.x = c at which a rule changes its answer, or where a model is tried."""
        lines, right = hyperplanes(list(self.documents), self.others.shape[1])
        if self.has_borders:
            return lines, right
        more_lines, more_right = _observed_values(self.sources, self.observed)
        return np.vstack([lines, more_lines]), np.r_[right, more_right]

    @cached_property
    def marks(self) -> tuple[tuple[int, int], ...]:
        """Each column that marks the blanks of another one, and that other column: a person who
        left a field blank said one thing, not two, and never the value that was filled in.
        """
        names = [one.name for one in self.sources]
        marks = ((at, name.removesuffix(MARK)) for at, name in enumerate(names) if MARK in name)
        return tuple((at, names.index(name)) for at, name in marks if name in names)

    @cached_property
    def observed(self) -> FloatArray:
        """The people whose values a change may take: all, or MOST_OBSERVED of them, evenly."""
        return self.others[:: -(-len(self.others) // MOST_OBSERVED)]

    @cached_property
    def levels(self) -> tuple[FloatArray, ...]:
        """Of each source column of numbers: values spread evenly over the people, sorted."""
        found = []
        for source in self.sources:
            seen = self.others[:, source.place.start]
            if source.missing is not None:
                seen = seen[seen != source.missing]
            if len(seen) > LEVELS:
                seen = np.quantile(seen, np.linspace(0.0, 1.0, LEVELS), method="nearest")
            found.append(np.sort(seen))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class _Shares:
    """The shares of one person, by source column; their covariance as estimates; the weight of the
    rules that look at the person and reject; what must be known; and of a score, what each number
    of a row counts for.
    """

    values: FloatArray
    covariance: FloatArray
    rejecting: float
    note: str = ""
    slopes: FloatArray | None = None


def _with_marks(found: _Shares, marks: Sequence[tuple[int, int]]) -> _Shares:
    """The shares, those of marks of blanks added to the columns that they mark."""
    if not marks:
        return found
    joins = np.eye(len(found.values))
    for mark, of in marks:
        joins[of, mark] = 1.0
        joins[mark, mark] = 0.0
    return replace(
        found, values=joins @ found.values, covariance=joins @ found.covariance @ joins.T
    )


@dataclass(frozen=True)
class _Rule:
    """A rule that looks at a person, as it is for one group."""

    weight: float
    accepts: Acceptance
    columns: tuple[int, ...]
    document: Json


class _Rules:
    """The rules of a policy for the people of one group, and the way in which it is explained."""

    def __init__(self, compared: Comparison, group: object) -> None:
        groups: GroupArray | None = None
        if group is not None:
            groups = as_group([group], 1)

        def asked(rows: FloatArray) -> GroupArray | None:
            return None if groups is None else np.repeat(groups, len(rows))

        def acceptance(rows: FloatArray) -> FloatArray:
            return compared.policy.acceptance_of_checked(rows, asked(rows))

        def answers(rule: Hypothesis) -> Acceptance:
            return lambda rows: np.asarray(rule.accepts(rows, asked(rows)), dtype=np.float64)

        looking = []
        for rule, weight in zip(compared.policy.hypotheses, compared.policy.weights, strict=True):
            own = _rule_of_group(rule, group)
            columns = columns_of(own, compared.sources)
            if columns and weight > 0.0:
                looking.append(_Rule(weight, answers(rule), columns, _document(own)))
        self.acceptance: Acceptance = acceptance
        self.usual = float(acceptance(compared.others).mean())
        linear = all(rule.document.get("kind") == "linear" for rule in looking)
        additive = all(len(rule.columns) == 1 for rule in looking)
        self.way: _ScoreWay | _ProbabilityWay
        if linear and not additive:
            self.way = _ScoreWay(compared, looking)
        else:
            self.way = _ProbabilityWay(compared, looking, acceptance)


class _ScoreWay:
    """Linear rules: the mean score of those that reject, see `Comparison`."""

    unit: Literal["score"] = "score"

    def __init__(self, compared: Comparison, rules: Sequence[_Rule]) -> None:
        self.rules = rules
        self.sources = compared.sources
        self.mean = compared.others.mean(axis=0)
        weights = np.array([rule.document["weights"] for rule in rules], dtype=np.float64)
        spread = np.array([_spread(compared.others, one) for one in weights])
        self.weights = weights / spread[:, None]

    def shares(self, row: FloatArray, seed: int) -> _Shares:
        """Of a person; nothing is drawn."""
        weight = np.array([rule.weight for rule in self.rules])
        accepts = np.array([rule.accepts(row[None, :])[0] for rule in self.rules])
        rejecting = weight * (1.0 - accepts)
        together = float(rejecting.sum())
        part = rejecting if together > 0.0 else weight
        slopes = part @ self.weights / part.sum()
        by_number = slopes * (row - self.mean)
        values = np.array([by_number[one.place].sum() for one in self.sources])
        note = ""
        if len(self.rules) > 1 and together > 0.0:
            note = (
                f"{np.count_nonzero(rejecting)} of the policy's {len(self.rules)} scores reject "
                f"the person (together with probability {together:.4g}); the shares are parts of "
                "their mean, each with its probability as weight."
            )
        return _Shares(values, np.zeros((len(values), len(values))), together, note, slopes)

    def direction(self, at: int, row: FloatArray, shares: _Shares) -> Direction:
        """On which side of the mean a number lies, if this is why it has its share: a column of
        several numbers may owe it to another one of them.
        """
        assert shares.slopes is not None
        place = self.sources[at].place.start
        away = float(row[place] - self.mean[place])
        if shares.slopes[place] * away * shares.values[at] <= 0.0:
            return "any"
        return "high" if away > 0 else "low"


class _ProbabilityWay:
    """All other rules: the probability. Its additive part, the rules on one column each, in closed
    form; the rest over all subsets, or by walks.
    """

    unit: Literal["probability"] = "probability"

    def __init__(
        self, compared: Comparison, rules: Sequence[_Rule], acceptance: Acceptance
    ) -> None:
        self.compared = compared
        self.acceptance = acceptance
        # A model takes longer than a rule, and is asked less often.
        known = compared.has_borders
        self.most_evaluations = MOST_EVALUATIONS if known else MOST_EVALUATIONS // 4
        self.single = [rule for rule in rules if len(rule.columns) == 1]
        self.usual_single = [float(rule.accepts(compared.others).mean()) for rule in self.single]
        self.joint = [
            WeightedRule(rule.weight, rule.accepts, rule.columns)
            for rule in rules
            if len(rule.columns) > 1
        ]
        self.usual_joint = sum(
            part.weight * float(part.accepts(compared.others).mean()) for part in self.joint
        )

    def shares(self, row: FloatArray, seed: int) -> _Shares:
        """Of a person; the seed is that of the walks."""
        places = [one.place for one in self.compared.sources]
        values = np.zeros(len(places))
        covariance = np.zeros((len(places), len(places)))
        rejecting = 0.0
        for rule, usual in zip(self.single, self.usual_single, strict=True):
            own = float(rule.accepts(row[None, :])[0])
            values[rule.columns[0]] += rule.weight * (own - usual)
            rejecting += rule.weight * (1.0 - own)
        if self.joint:
            others = self.compared.others
            most = self.most_evaluations
            found = attribution(self.joint, row, others, most, places, self.usual_joint, seed)
            values += found.values
            covariance += found.covariance
            rejecting += sum(part.weight for part in self.joint) - found.acceptance
        return _Shares(values, covariance, rejecting)

    def direction(self, at: int, row: FloatArray, shares: _Shares) -> Direction:
        """On which side of a number lie the values of other people with which the probability would
        be larger (for a share that speaks against) or smaller.
        """
        place = self.compared.sources[at].place.start
        seen = self.compared.levels[at]
        asked = np.tile(row, (len(seen), 1))
        asked[:, place] = seen
        gains = self.acceptance(asked) - self.acceptance(row[None, :])[0]
        better = np.maximum(gains if shares.values[at] < 0 else -gains, 0.0)
        from_above = float(better[seen > row[place]].sum())
        from_below = float(better[seen < row[place]].sum())
        if from_above == from_below:
            # No single value changes anything by itself: beside the mean.
            return "low" if row[place] < seen.mean() else "high"
        return "low" if from_above > from_below else "high"


def _rule_of_group(rule: Hypothesis, group: object) -> Hypothesis:
    """The rule that a group has in a rule per group."""
    if group is None or _document(rule).get("kind") != "per-group":
        return rule
    by_group: tuple[tuple[object, Hypothesis], ...] = getattr(rule, "rules", ())
    return next((one for value, one in by_group if value == group), rule)


def _spread(others: FloatArray, weights: FloatArray) -> float:
    """The standard deviation of a score; 1 where all have the same."""
    score = others @ weights
    spread = float(score.std())
    return spread if spread > 1e-12 * max(1.0, float(np.abs(score).max())) else 1.0


def _unsettled(
    against: Sequence[Reason], covariance: FloatArray, names: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Neighbours among the reasons whose order may be an effect of the estimation."""
    found = []
    for one, other in pairwise(against):
        i = names.index(one.column)
        j = names.index(other.column)
        difference = abs(one.share) - abs(other.share)
        # both shares are negative: the variance of their difference
        variance = covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j]
        if variance > 0.0 and difference < CERTAIN * np.sqrt(variance):
            found.append((one.column, other.column))
    return tuple(found)


def _reason(
    source: SourceColumn,
    value: Value,
    at: int,
    direction: Direction,
    shares: _Shares,
    words: ReasonWords,
) -> Reason:
    share = float(shares.values[at])
    error = float(np.sqrt(shares.covariance[at, at]))
    found = words.find(source.name, direction, value)
    if found is not None:
        return Reason(source.name, value, share, direction, found.text, found.code, True, error)
    shown = "missing" if value is None else _number(value)
    text = f"{source.name} is {shown}"
    if direction != "any":
        text = f"{source.name} is {direction} ({shown})"
    return Reason(source.name, value, share, direction, text, error=error)


def _proposal(
    compared: Comparison,
    row: FloatArray,
    acceptance: Acceptance,
    words: ReasonWords,
    above: float,
) -> ProposedChange | None:
    """The least change that may be proposed, with a probability above a number."""
    columns = [_changeable(one, words) for one in compared.sources]
    change = least_change(acceptance, row, compared.borders, compared.observed, above, columns)
    if change is None:
        return None
    return _in_words(change, row, compared.sources)


def _document(rule: Hypothesis) -> Json:
    """A rule as JSON; nothing for somebody's own function."""
    try:
        return rule.to_json()
    except NotSerialisable:
        return {}


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
