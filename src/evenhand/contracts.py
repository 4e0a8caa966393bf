"""The contracts of evenhand, each with its requirements.

A hypothesis says yes or no to every row. A hypothesis class, bound to fixed rows, is a CSC oracle:
it answers a vector of acceptance costs with the cheapest hypothesis. An enumerable class also
answers with the totals of *all* its hypotheses.

Write the members of a contract in a class of your own, and every stage takes it.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import CannotEstimateRate
from evenhand.schema import Schema
from evenhand.shown import counted
from evenhand.words import (
    BoolArray,
    CostSensitiveProblem,
    Decisions,
    FloatArray,
    GroupArray,
    IntArray,
    LabelledSample,
    Prices,
)

if TYPE_CHECKING:
    from evenhand.policies.mixture import Mixture

GroupUse = Literal["certify_only", "decide"]
"""Whether the group may influence a decision.

In "certify_only" hypotheses are called with group=None.
"""

Json = dict[str, Any]
"""A JSON object: texts, numbers, true, false, null, lists and objects."""
Params = Mapping[str, Any]
"""What an object says of itself in reports and certificates: names, and values that fit JSON."""


@runtime_checkable
class Hypothesis(Protocol):
    """A rule h: X x A -> {accept, reject}.

    Notes
    -----
    Requirements: `accepts` gives one bool per row, depends on each row alone, and never changes. A
    column that is not in `columns_used` never changes an answer.

    Examples
    --------
    >>> class AtLeast:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def accepts(self, features, group=None):
    ...         return features[:, 0] >= self.value
    ...     def describe(self, names=None):
    ...         return f"accept if {names[0] if names else 'x0'} >= {self.value}"
    ...     def to_json(self):
    ...         return {"kind": "at least", "value": self.value}
    ...     columns_used = (0,)
    >>> rule = AtLeast(600)
    >>> isinstance(rule, Hypothesis)
    True
    >>> rule.accepts(np.array([[580.0], [640.0]]))
    array([False,  True])
    """

    @property
    def columns_used(self) -> tuple[int, ...] | None:
        """The numbers of the columns that the rule looks at, in ascending order.

        All other columns may change without changing an answer. () for a rule that looks at no
        column; None where it is not known, as for a function. The group is no column.
        """
        ...

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """Which rows are accepted.

        Parameters
        ----------
        features : array, shape (rows, columns)
            One person per row.
        group : array, shape (rows,), optional
            Their groups; None where the group may not influence the decision.

        Returns
        -------
        array of bool, shape (rows,)
            True where the person is accepted.
        """
        ...

    def describe(self, names: Sequence[str] | None = None) -> str:
        """The rule in words.

        Parameters
        ----------
        names : sequence of str, optional
            The names of the columns.

        Returns
        -------
        str
            For example "accept if income >= 30".
        """
        ...

    def to_json(self) -> Json:
        """The rule as plain JSON.

        Returns
        -------
        dict
            An object with a "kind"; `evenhand.hypotheses.hypothesis_from_json` reads the kinds of
            evenhand back, and the class of rules its own (`ReadsRules`).

        Raises
        ------
        NotSerialisable
            If the rule cannot be written as JSON.
        """
        ...


def all_columns_used(hypotheses: Iterable[Hypothesis]) -> tuple[int, ...] | None:
    """The columns that at least one of several rules looks at.

    Parameters
    ----------
    hypotheses : iterable of Hypothesis
        The rules.

    Returns
    -------
    tuple of int, or None
        In ascending order; None if one of the rules does not know its columns.

    Examples
    --------
    >>> from evenhand.hypotheses import ACCEPT_ALL, Threshold
    >>> all_columns_used([ACCEPT_ALL, Threshold(2, 600.0, 3), Threshold(0, 1.0, 3)])
    (0, 2)
    """
    found: set[int] = set()
    for hypothesis in hypotheses:
        if hypothesis.columns_used is None:
            return None
        found.update(hypothesis.columns_used)
    return tuple(sorted(found))


class Batch(Protocol):
    """Several hypotheses of one kind, asked together.

    A kind of hypothesis offers this by a static method `together(members) -> Batch`.

    Notes
    -----
    Requirement: the answers are those of the members, row by row and bit for bit.

    Examples
    --------
    >>> from evenhand.hypotheses import Threshold
    >>> both = Threshold.together([Threshold(0, 600.0, 1), Threshold(0, 650.0, 1)])
    >>> both(np.array([[580.0, 640.0]]))
    array([[False,  True],
           [False, False]])
    """

    @property
    def columns(self) -> int | None:
        """How many columns the rows must have; None if any number will do."""
        ...

    def __call__(self, columns: FloatArray) -> BoolArray:
        """Ask all members about many people.

        Parameters
        ----------
        columns : array, shape (columns, rows)
            The features transposed, without a copy.

        Returns
        -------
        array of bool, shape (members, rows)
            Who accepts whom.
        """
        ...

    def one(self, person: FloatArray) -> Sequence[int]:
        """Ask all members about one person; most decisions are made one at a time.

        Parameters
        ----------
        person : array, shape (1, columns)
            The person.

        Returns
        -------
        sequence
            One bool or byte for each member.
        """
        ...


@runtime_checkable
class RowOracle(Protocol):
    """A hypothesis class bound to fixed rows.

    Examples
    --------
    >>> import evenhand as eh
    >>> oracle = eh.ScoreThresholds().bind(np.array([[580.0], [640.0]]), None)
    >>> oracle.best(np.array([1.0, -1.0])).describe()
    'accept if x0 >= 640'
    """

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """The hypothesis that minimises the total cost.

        Parameters
        ----------
        acceptance_cost : array, shape (rows,)
            What accepting each row costs beyond rejecting it.

        Returns
        -------
        Hypothesis
            argmin over h of sum_i acceptance_cost_i 1[h accepts i] (for a heuristic class: a good
            attempt at it).

        Notes
        -----
        Requirements: scaling the costs by a positive number changes nothing; permuting rows changes
        nothing; on an exact class the answer is never worse than any member of the class.
        """
        ...


@dataclass(frozen=True, eq=False)
class Partition:
    """What a search found besides its answer: cells of the rows.

    Other sets of cells may be accepted without another search.

    Parameters
    ----------
    cell : array, shape (rows,)
        The number of each row's cell, below `cells`.
    cells : int
        How many cells there are.
    ordered : bool
        Whether the class accepts the cells from some number on (cut-offs on a score), or any set of
        them (the leaves of a tree).
    hypothesis : callable
        Which cells are accepted, (cells,) -> that member of the class.
    chains : int
        Where the cells are ordered: into how many runs of equal length they fall, each with a
        cut-off of its own.

    Notes
    -----
    Requirement: the member accepts the rows of those cells and no others, bit for bit.

    Examples
    --------
    >>> from evenhand.hypotheses import Threshold
    >>> def rule(accepted):
    ...     return Threshold(0, 0.0 if accepted[0] else 640.0, 1)
    >>> cut = Partition(np.array([0, 1]), 2, True, rule)
    >>> cut.hypothesis(np.array([False, True])).describe()
    'accept if x0 >= 640'
    """

    cell: IntArray
    cells: int
    ordered: bool
    hypothesis: Callable[[BoolArray], Hypothesis]
    chains: int = 1


@runtime_checkable
class Partitioning(RowOracle, Protocol):
    """A bound class whose search partitions the rows.

    Examples
    --------
    >>> import evenhand as eh
    >>> features = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    >>> isinstance(eh.Linear().bind(features, None), Partitioning)
    True
    """

    def partition(self, acceptance_cost: FloatArray) -> Partition | None:
        """The partition behind best(acceptance_cost).

        Parameters
        ----------
        acceptance_cost : array, shape (rows,)
            What accepting each row costs beyond rejecting it.

        Returns
        -------
        Partition or None
            The answer of `best` is one of its members; None where nothing is known but the answer.
        """
        ...


@runtime_checkable
class Enumeration(RowOracle, Protocol):
    """A bound class whose every distinct behaviour on the rows can be summed up in one pass.

    Examples
    --------
    >>> import evenhand as eh
    >>> bound = eh.FiniteClass.from_table([[True, False], [True, True]]).bind(
    ...     np.array([[0.0], [1.0]]), None
    ... )
    >>> isinstance(bound, Enumeration)
    True
    >>> bound.totals(np.array([[3.0, 4.0]]))
    array([[3., 7.]])
    """

    def totals(self, channels: FloatArray) -> FloatArray:
        """The totals of all members at once.

        Parameters
        ----------
        channels : array, shape (k, rows)
            Several vectors of costs or weights.

        Returns
        -------
        array, shape (k, members)
            totals[c, h] = sum_i channels[c, i] 1[member h accepts i].
        """
        ...

    def hypothesis(self, member: int) -> Hypothesis:
        """One member of the class.

        Parameters
        ----------
        member : int
            Its index in `totals`.

        Returns
        -------
        Hypothesis
            The member.
        """
        ...


class HypothesisClass(Protocol):
    """A set of hypotheses behind an oracle.

    Subclass it, or write the same members, to bring your own; `evenhand.testing` has
    `check_hypothesis_class`.

    Examples
    --------
    >>> import evenhand as eh
    >>> problem = eh.CostSensitiveProblem([[580.0], [640.0]], None, [0.0, 1.0], [1.0, 0.0])
    >>> eh.ScoreThresholds().best(problem).describe()
    'accept if x0 >= 640'
    """

    exact: bool
    """Whether the oracle's answer is a true argmin over the class."""
    uses_group: bool
    """Whether its hypotheses look at the group (then it needs group_use="decide")."""

    @property
    def params(self) -> Mapping[str, object]:
        """What distinguishes this class from another, as plain values."""
        ...

    @property
    def log_size(self) -> float:
        """ln|H|; infinity, the default, for an infinite class."""
        return math.inf

    def log_growth(self, rows: int, columns: int) -> float:
        """ln of a bound on the number of distinct behaviours.

        Parameters
        ----------
        rows, columns : int
            The size of a table.

        Returns
        -------
        float
            Infinity, the default, if it is not known.
        """
        return math.inf

    def bind(self, features: FloatArray, group: GroupArray | None) -> RowOracle:
        """The class on fixed rows.

        Parameters
        ----------
        features : array, shape (rows, columns)
            One person per row.
        group : array, shape (rows,), or None
            Their groups, if hypotheses may look at them.

        Returns
        -------
        RowOracle
            What depends on the rows alone (sort, bin, evaluate) is done once; many cost vectors are
            answered afterwards.
        """
        ...

    def best(self, problem: CostSensitiveProblem) -> Hypothesis:
        """The CSC oracle of the paper (section 2).

        Parameters
        ----------
        problem : CostSensitiveProblem
            The rows and their costs.

        Returns
        -------
        Hypothesis
            argmin over h of sum_j c_j^{h(x_j)}.
        """
        return self.bind(problem.features, problem.group).best(problem.acceptance_cost)


@runtime_checkable
class ReadsSchema(Protocol):
    """A hypothesis class that can read people whose columns are not all numbers.

    Rows are always numbers; the schema says what they stand for (`Schema.frame` reads them back). A
    class without this method compares the numbers themselves, so that people with categories,
    texts or missing values are refused before it sees them.

    Examples
    --------
    >>> import evenhand as eh
    >>> from sklearn.linear_model import LogisticRegression
    >>> isinstance(eh.Estimator(LogisticRegression()), ReadsSchema)
    True
    """

    def reading(self, schema: Schema) -> HypothesisClass:
        """The class for people with these columns.

        Parameters
        ----------
        schema : Schema
            What the rows that it will be bound to stand for.

        Returns
        -------
        HypothesisClass
            The same class, which knows it.

        Raises
        ------
        InvalidInput
            If it cannot read them.
        """
        ...


@runtime_checkable
class ReadsRules(Protocol):
    """A hypothesis class that can read back what `to_json` of its own rules wrote.

    A learner with rules of your own is saved only if its class has this method.

    Examples
    --------
    >>> class HalfPlanes:
    ...     def read(self, rule):
    ...         return HalfPlane(rule["value"])
    >>> isinstance(HalfPlanes(), ReadsRules)
    True
    """

    def read(self, rule: Json) -> Hypothesis:
        """The rule h with h.to_json() == rule.

        Parameters
        ----------
        rule : dict
            What `to_json` returned.

        Returns
        -------
        Hypothesis
            The same rule.
        """
        ...


def class_reading(hypotheses: HypothesisClass, schema: Schema | None) -> HypothesisClass:
    """The class for people with these columns; InvalidInput if it cannot read them.

    Parameters
    ----------
    hypotheses : HypothesisClass
        Any class.
    schema : Schema or None
        None for arrays, which any class reads.

    Returns
    -------
    HypothesisClass
        The class, which knows the schema if it `ReadsSchema`.

    Raises
    ------
    InvalidInput
        If it compares numbers, and a column is none, or may be missing.

    Examples
    --------
    >>> import evenhand as eh
    >>> people = eh.schema.Schema((eh.schema.Column("city", "text"),))
    >>> class_reading(eh.Stumps(), people)
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: Stumps compares numbers, but the people have the columns city ...
    """
    if schema is None:
        return hypotheses
    if isinstance(hypotheses, ReadsSchema):
        return hypotheses.reading(schema)
    schema.require_plain(type(hypotheses).__name__)
    return hypotheses


class Policy(Protocol):
    """A way of deciding with a probability; most are probability distributions over hypotheses.

    Notes
    -----
    Requirements: `acceptance` is a probability for each row; a JSON round trip is identical.

    Examples
    --------
    >>> from evenhand.policies import Mixture
    >>> from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
    >>> coin: Policy = Mixture((ACCEPT_ALL, REJECT_ALL), (0.25, 0.75))
    >>> coin.acceptance(np.zeros((2, 1)))
    array([0.25, 0.25])
    """

    def acceptance(self, features: FloatArray, group: GroupArray | None = None) -> FloatArray:
        """The probability of accepting each person.

        Parameters
        ----------
        features : array, shape (rows, columns)
            One person per row.
        group : array, shape (rows,), optional
            Their groups.

        Returns
        -------
        array, shape (rows,)
            P[pi(x) = +1].
        """
        ...

    def describe(self, names: Sequence[str] | None = None) -> str:
        """The policy in words.

        Parameters
        ----------
        names : sequence of str, optional
            The names of the columns.

        Returns
        -------
        str
            One line per rule of a mixture.
        """
        ...

    def to_json(self) -> Json:
        """The policy as plain JSON.

        Returns
        -------
        dict
            `evenhand.hypotheses.policy_from_json` reads it back.

        Raises
        ------
        NotSerialisable
            If the policy cannot be written as JSON.
        """
        ...


@runtime_checkable
class Rate(Protocol):
    """One rate per group that is linear in acceptance.

    Subclass it and say who counts, and with which sign.

    Notes
    -----
    ::

        rate_j(pi) = offset + sum_i w_ji P[pi(x_i) = +1]
        w_ji = sign 1[a_i = j, i counts] / n_j

    with n_j the people of group j who count (section 1.1 of the paper).

    Requirements: rates lie between 0 and 1 whatever is accepted; the constants have no gap;
    swapping two groups flips the sign of their gap; the order of the rows changes nothing.

    What is certified, planned or measured with exact intervals must be P(accepted | group, label
    in S), or one minus it: declare `in_denominator` (the labels in S), with sign 1 and offset 0 or
    sign -1 and offset 1, and leave `group_weights` as it is. With weights of its own a rate can
    give accept-all a gap, as error rates do where base rates differ; `solve_fair` and
    `FairClassifier` limit such gaps on a table, everything else raises an error
    (`evenhand.fairness.rates.require_certifiable`). The offset is one number for all groups.

    Examples
    --------
    >>> class TruePositiveRate(Rate):
    ...     name, symbol, denominator_name = "true positive rate", "TPR", "positives (label +1)"
    ...     @staticmethod
    ...     def in_denominator(label):
    ...         return label == 1
    >>> sample = LabelledSample([[0.0]] * 4, ["a", "a", "b", "b"], [1, 1, 1, -1])
    >>> TruePositiveRate().group_weights(sample)
    array([[0.5, 0.5, 0. , 0. ],
           [0. , 0. , 1. , 0. ]])
    """

    name: ClassVar[str]
    """In words, "false positive rate"."""
    symbol: ClassVar[str]
    """In short, "FPR"."""
    denominator_name: ClassVar[str]
    """Who counts, in words: "negatives (label -1)"."""
    sign: ClassVar[int] = 1
    """+1 if accepting raises the rate, -1 if it lowers it."""
    offset: ClassVar[float] = 0.0
    """The rate where nobody is accepted."""

    @staticmethod
    def in_denominator(label: IntArray) -> BoolArray:
        """Who counts for this rate.

        Parameters
        ----------
        label : array, shape (rows,)
            Labels -1 and +1.

        Returns
        -------
        array of bool, shape (rows,)
            True where a person with that label is in the denominator.
        """
        ...

    def group_weights(self, sample: LabelledSample) -> FloatArray:
        """The weights with which acceptance on a sample becomes the rates of its groups.

        Parameters
        ----------
        sample : LabelledSample
            People with groups and labels.

        Returns
        -------
        array, shape (groups, rows)
            w_ji in the order of sample.groups.

        Raises
        ------
        CannotEstimateRate
            If there is one group only, or nobody of a group counts.
        """
        sample.require_two_groups()
        in_denominator = self.in_denominator(sample.label) * sample.weight
        weights = np.zeros((len(sample.groups), len(sample)))
        for j, group in enumerate(sample.groups):
            members = np.where(sample.group == group, in_denominator, 0.0)
            total = members.sum()
            if total == 0:
                people = sample.weight[sample.group == group].sum()
                raise CannotEstimateRate(
                    f"group {group!r} has {counted(float(people))} in the sample but 0 "
                    f"{self.denominator_name}, so its {self.name} cannot be estimated.",
                    hint=f"leave group {group!r} out (groups names those to keep), join it with "
                    "another one, gather more people of it, or limit another rate.",
                    remedies=("groups",),
                )
            weights[j] = self.sign * members / total
        return weights


class FairAnswer(Protocol):
    """What a fair oracle answers.

    Examples
    --------
    >>> import evenhand as eh
    >>> sample = eh.LabelledSample([[1.0], [2.0]] * 2, ["a", "a", "b", "b"], [-1, 1, -1, 1])
    >>> problem = eh.Prices().problem(sample.features, None, sample.label)
    >>> answer = eh.solve_fair(problem, eh.Stumps(), eh.FalsePositiveRate(), sample, 0.1)
    >>> answer.policy.describe(), answer.oracle_calls > 0
    ('always: accept if x0 >= 2', True)
    """

    @property
    def policy(self) -> "Mixture":
        """The cheapest fair mixture found: an `evenhand.policies.Mixture` and no other policy, as
        Q puts weights on the rules of mixtures.
        """
        ...

    @property
    def acceptance(self) -> FloatArray:
        """P[pi(x_i) = +1] on the objective rows to which the oracle is bound."""
        ...

    @property
    def oracle_calls(self) -> int:
        """How often the CSC oracle was called."""
        ...


class FairOracle(Protocol):
    """FairCSC bound to fixed objective rows and a fixed labelled sample (section 3.1 of the paper).

    Examples
    --------
    >>> from evenhand.policies import Mixture
    >>> from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
    >>> class Constants:
    ...     def cheapest(self, acceptance_cost):
    ...         rule = ACCEPT_ALL if acceptance_cost.sum() < 0 else REJECT_ALL
    ...         class Answer:
    ...             policy, oracle_calls = Mixture((rule,), (1.0,)), 1
    ...             acceptance = np.full(len(acceptance_cost), float(rule.accept))
    ...         return Answer()
    >>> Constants().cheapest(np.array([-1.0, 0.5])).acceptance
    array([1., 1.])
    """

    def cheapest(self, acceptance_cost: FloatArray) -> FairAnswer:
        """The cheapest fair mixture.

        Parameters
        ----------
        acceptance_cost : array, shape (rows,)
            What accepting each objective row costs beyond rejecting it.

        Returns
        -------
        FairAnswer
            argmin over fair mixtures pi of sum_i acceptance_cost_i P[pi(x_i) = +1].

        Notes
        -----
        Requirement: the answer meets every constraint; for an exact class no fair mixture is
        cheaper.
        """
        ...


class Learner(Protocol):
    """A learner under one-sided feedback.

    `simulate`, `compare` and `study` need no more than this. They look at `policy` before every
    person, unless the learner is an `EpochLearner`, which says for how long its policy lasts;
    return the same object as long as it is the same policy. The `epoch` of a decision counts the
    policies: it is larger whenever the policy is another one.

    Notes
    -----
    Requirements: each person is one round, also where several threads call; `decide` alone advances
    the counter; looking at `policy` changes nothing; a label can be observed once, for an accepted
    round, in any order, however late, or never; what is refused changes nothing; a group may be
    unknown (None, NaN and pandas.NA are the same) or new. What else may happen to a round is a
    capability of its own, which a learner has by having the method: `SupportsOverrule`,
    `SupportsErasure`, `SupportsLateGroups`, `SupportsStorage`.

    Examples
    --------
    >>> import evenhand as eh
    >>> learner: Learner = eh.CertifiedLearner(
    ...     eh.ScoreThresholds(), eh.FalsePositiveRate(), 0.1, 0.05, seed=1
    ... )
    >>> decisions = learner.decide(np.array([[610.0], [590.0]]), np.array(["a", "b"]))
    >>> len(decisions), learner.round
    (2, 2)
    >>> learner.observe(decisions.round, [1, -1])
    """

    @property
    def policy(self) -> Policy:
        """The policy that the next person meets."""
        ...

    @property
    def params(self) -> Mapping[str, object]:
        """The learner's settings as plain values."""
        ...

    @property
    def rates(self) -> Sequence[Rate]:
        """The rates whose gaps it is judged by; at least one."""
        ...

    @property
    def prices(self) -> Prices:
        """What its errors cost."""
        ...

    @property
    def round(self) -> int:
        """People decided about so far."""
        ...

    def restarted(self, seed: int | None = None) -> Self:
        """A fresh learner with the same settings, which has met nobody.

        Parameters
        ----------
        seed : int, optional
            The seed of its random numbers.

        Returns
        -------
        Learner
            Another object; this one stays as it is.
        """
        ...

    def decide(self, features: FloatArray, group: GroupArray | None = None) -> Decisions:
        """Decide about one person per row.

        Parameters
        ----------
        features : array, shape (rows, columns)
            One person per row.
        group : array, shape (rows,), optional
            Their groups; None where they are unknown.

        Returns
        -------
        Decisions
            One decision for each row, with the probability with which it was taken.
        """
        ...

    def observe(self, round: ArrayLike, label: ArrayLike) -> None:
        """Report the label of an accepted round, or of several: all of them are taken, or none.

        Parameters
        ----------
        round : int or array_like of int
            The rounds, as the decisions have them.
        label : int or array_like of int
            -1 or +1 for each of them.

        Raises
        ------
        ProtocolError
            If a round was not accepted, was not decided yet, or has its label already.
        """
        ...


@runtime_checkable
class SupportsOverrule(Protocol):
    """A learner that takes reports that a human decided otherwise. The round stays as it was drawn.

    Notes
    -----
    Requirements: the label of an accept that was refused teaches nothing, whether it was reported
    before (then it is forgotten) or is reported afterwards (then it is refused); a reject that was
    accepted stays rejected, and its label is refused; to overrule what was decided anyway, or the
    same round again, changes nothing.

    Examples
    --------
    >>> from evenhand import CertifiedLearner
    >>> issubclass(CertifiedLearner, SupportsOverrule)
    True
    """

    def overrule(self, round: ArrayLike, accept: ArrayLike) -> None:
        """Report that a human decided otherwise.

        Parameters
        ----------
        round : int or array_like of int
            The rounds.
        accept : bool or array_like of bool
            What the human decided in each of them.
        """
        ...


@runtime_checkable
class SupportsErasure(Protocol):
    """A learner that can forget a person.

    Notes
    -----
    Requirements: a person who is erased before the next decision leaves no trace but the round, its
    draw and its propensity: two runs that differ in that person's features, group and label alone
    are equal from then on, and so are their stored files; an erased round takes no label, group or
    overruling; to erase it again changes nothing.

    Examples
    --------
    >>> from evenhand import CertifiedLearner
    >>> issubclass(CertifiedLearner, SupportsErasure)
    True
    """

    def erase(self, round: ArrayLike) -> None:
        """Forget people.

        Parameters
        ----------
        round : int or array_like of int
            Their rounds.
        """
        ...


@runtime_checkable
class SupportsLateGroups(Protocol):
    """A learner that takes a report of the group after the decision.

    Notes
    -----
    Requirements: a group is reported once; reporting it again changes nothing, and another one is
    refused.

    Examples
    --------
    >>> from evenhand import CertifiedLearner
    >>> issubclass(CertifiedLearner, SupportsLateGroups)
    True
    """

    def report_group(self, round: ArrayLike, group: ArrayLike) -> None:
        """Report groups of people who were decided about without them.

        Parameters
        ----------
        round : int or array_like of int
            Their rounds.
        group : group or array_like of groups
            One group for each of them.
        """
        ...


@runtime_checkable
class SupportsStorage(Protocol):
    """A learner that can be stored; `evenhand.load` reads it back.

    Notes
    -----
    Requirements: the copy decides as the original would have, and knows what was reported; or
    `save` raises NotSerialisable.

    Examples
    --------
    >>> from evenhand import CertifiedLearner
    >>> issubclass(CertifiedLearner, SupportsStorage)
    True
    """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Store the learner.

        Parameters
        ----------
        path : str or path
            The file that is written; it holds everything.

        Raises
        ------
        NotSerialisable
            If something in the learner cannot be stored without pickle.
        """
        ...


class Environment(Protocol):
    """A population that people are drawn from, together with its truth.

    Notes
    -----
    Requirements: a draw depends on the generator alone (for a stream also on what was drawn
    before); loss, gaps and optimum are those of the population and never change; the optimum keeps
    its limit, and no mixture of `hypotheses` and the constants that keeps it has a smaller loss.
    Labels of a draw are the truth: the simulation hides those of the rejected.

    Examples
    --------
    >>> import evenhand as eh
    >>> world: Environment = eh.environments.Discrete(
    ...     [0.5, 0.5], [0.2, 0.8], ["a", "b"], [[True, False], [False, True]]
    ... )
    >>> len(world.draw(10, np.random.default_rng(0)))
    10
    >>> loss, policy = world.optimum(0.1, eh.FalsePositiveRate(), eh.Prices())
    >>> bool(np.abs(world.gaps(policy, eh.FalsePositiveRate())).max() <= 0.1 + 1e-9)
    True
    """

    @property
    def params(self) -> Mapping[str, object]:
        """What distinguishes this environment from another, as plain values."""
        ...

    @property
    def hypotheses(self) -> HypothesisClass | None:
        """The class that belongs to it, if any."""
        ...

    def fresh(self) -> Self:
        """The same environment at its beginning; only a stream has a past to forget.

        Returns
        -------
        Environment
            Itself, or a copy.
        """
        ...

    def draw(self, rounds: int, generator: np.random.Generator) -> LabelledSample:
        """The next people.

        Parameters
        ----------
        rounds : int
            How many.
        generator : numpy.random.Generator
            The source of chance.

        Returns
        -------
        LabelledSample
            The people with their true labels, one in each row (no counts).
        """
        ...

    def loss(self, policy: Policy, prices: Prices, /) -> float:
        """The cost per person of a policy on the population.

        Parameters
        ----------
        policy : Policy
            How people are decided about.
        prices : Prices
            What errors cost.

        Returns
        -------
        float
            E[false_accept 1[accepted, y = -1] + false_reject 1[rejected, y = +1]].
        """
        ...

    def gaps(self, policy: Policy, rates: Rate | Sequence[Rate], /) -> FloatArray:
        """The true gaps of a policy.

        Parameters
        ----------
        policy : Policy
            How people are decided about.
        rates : Rate or sequence of Rate
            Which rates are compared.

        Returns
        -------
        array, shape (gaps,)
            The signed gap of each rate and pair of groups, later group minus earlier.
        """
        ...

    def optimum(
        self, limit: float, rates: Rate | Sequence[Rate], prices: Prices, /
    ) -> tuple[float, Policy]:
        """The best that a policy can do within a limit.

        Parameters
        ----------
        limit : float
            The limit on all gaps.
        rates : Rate or sequence of Rate
            Whose gaps are limited.
        prices : Prices
            What errors cost.

        Returns
        -------
        loss : float
            The smallest loss of a mixture with all gaps within the limit.
        policy : Policy
            That mixture.
        """
        ...
