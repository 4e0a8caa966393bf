"""The contracts of evenhand, each with its laws; `evenhand.testing` checks them by machine.

A hypothesis says yes or no to every row. A hypothesis class, bound to fixed rows, is a CSC oracle:
it answers a vector of acceptance costs with the cheapest hypothesis. An enumerable class also
answers with the totals of *all* its hypotheses.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import CannotEstimateRate
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

GroupUse = Literal["certify_only", "decide"]
"""Whether the group may influence a decision.

In "certify_only" hypotheses are called with group=None.
"""

Json = dict[str, Any]


@runtime_checkable
class Hypothesis(Protocol):
    """h: X x A -> {accept, reject}.

    Laws: `accepts` gives one bool per row, depends on each row alone, and never changes.
    """

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """Which rows are accepted."""
        ...

    def describe(self, names: Sequence[str] | None = None) -> str:
        """The rule in words, "accept if income >= 30"; `names` are the columns' names."""
        ...

    def to_json(self) -> Json:
        """Plain JSON with a "kind"; `hypothesis_from_json` reads it back. NotSerialisable where
        that cannot be.
        """
        ...


class Batch(Protocol):
    """Several hypotheses of one kind, asked together. A kind opts in with a static method
    `together(members) -> Batch`.

    Law: the answers are those of the members, row by row and bit for bit.
    """

    @property
    def columns(self) -> int | None:
        """How many columns the rows must have; None if any number will do."""
        ...

    def __call__(self, columns: FloatArray) -> BoolArray:
        """(columns, rows), the features transposed, without a copy -> (members, rows): who accepts
        whom.
        """
        ...

    def one(self, person: FloatArray) -> Sequence[int]:
        """The same for a single person, (1, columns), as bools or bytes: quick, because most
        decisions are made one at a time.
        """
        ...


@runtime_checkable
class RowOracle(Protocol):
    """A hypothesis class bound to fixed rows."""

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """argmin over h of sum_i acceptance_cost_i 1[h accepts i] (for a heuristic class: a good
        attempt at it).

        Laws: scaling the costs by a positive number changes nothing; permuting rows changes
        nothing; on an exact class the answer is never worse than any member of the class.
        """
        ...


@dataclass(frozen=True, eq=False)
class Partition:
    """What a search found besides its answer: cells of the rows, of which others may be accepted
    without another search.

    cell: (rows,), the number of each row's cell, below `cells`. ordered: the class accepts the
    cells from some number on (cut-offs on a score); else any set of them (the leaves of a tree).
    hypothesis: which cells are accepted, (cells,) -> that member of the class.

    Law: the member accepts the rows of those cells and no others, bit for bit.
    """

    cell: IntArray
    cells: int
    ordered: bool
    hypothesis: Callable[[BoolArray], Hypothesis]


@runtime_checkable
class Partitioning(RowOracle, Protocol):
    """A bound class whose search partitions the rows."""

    def partition(self, acceptance_cost: FloatArray) -> Partition | None:
        """The partition behind best(acceptance_cost), which is one of its members; None where
        nothing is known but the answer.
        """
        ...


@runtime_checkable
class Enumeration(RowOracle, Protocol):
    """A bound class whose every distinct behaviour on the rows can be summed up in one pass."""

    def totals(self, channels: FloatArray) -> FloatArray:
        """(k, rows) channels -> (k, members): totals[c, h] = sum_i channels[c, i] 1[member h
        accepts i].
        """
        ...

    def hypothesis(self, member: int) -> Hypothesis:
        """The member with that index in `totals`."""
        ...


class HypothesisClass(Protocol):
    """A set of hypotheses behind an oracle.

    Subclass it (or write the same members) to bring your own.
    """

    exact: bool
    """Whether the oracle's answer is a true argmin over the class."""
    uses_group: bool
    """Whether its hypotheses look at the group (then it needs group_use="decide")."""

    @property
    def params(self) -> Mapping[str, Any]:
        """What distinguishes this class from another, as plain values for reports and certificates."""
        ...

    @property
    def log_size(self) -> float:
        """ln|H|; infinity for an infinite class."""
        ...

    def log_growth(self, rows: int, columns: int) -> float:
        """ln of a bound on the number of distinct behaviours on `rows` rows with `columns` features
        (infinity if unknown).
        """
        ...

    def bind(self, features: FloatArray, group: GroupArray | None) -> RowOracle:
        """Do once whatever depends on the rows alone (sort, bin, evaluate), and answer many cost
        vectors afterwards.
        """
        ...

    def best(self, problem: CostSensitiveProblem) -> Hypothesis:
        """The CSC oracle of the paper: argmin over h of sum_j c_j^{h(x_j)}."""
        return self.bind(problem.features, problem.group).best(problem.acceptance_cost)


class Policy(Protocol):
    """A probability distribution over hypotheses.

    Laws: `acceptance` is a probability for each row; JSON round trip is identical.
    """

    def acceptance(self, features: FloatArray, group: GroupArray | None = None) -> FloatArray:
        """P[pi(x) = +1] for each row."""
        ...

    def describe(self, names: Sequence[str] | None = None) -> str:
        """The mixture in words."""
        ...

    def to_json(self) -> Json:
        """Plain JSON."""
        ...


@runtime_checkable
class Rate(Protocol):
    """One rate per group that is linear in acceptance. Subclass it and say who counts, and with
    which sign.

        rate_j(pi) = offset + sum_i w_ji P[pi(x_i) = +1],    w_ji = sign 1[a_i = j, i counts] / n_j

    with n_j the people of group j who count.

    Laws: rates lie between 0 and 1 whatever is accepted; the constants have no gap; swapping two
    groups flips the sign of their gap; the order of the rows changes nothing.
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
        """Which labels count for this rate."""
        ...

    def group_weights(self, sample: LabelledSample) -> FloatArray:
        """(groups, rows): w_ji in the order of sample.groups.

        Raises CannotEstimateRate if there is one group only, or nobody of a group counts.
        """
        sample.require_two_groups()
        counted = self.in_denominator(sample.label) * sample.weight
        weights = np.zeros((len(sample.groups), len(sample)))
        for j, group in enumerate(sample.groups):
            members = np.where(sample.group == group, counted, 0.0)
            total = members.sum()
            if total == 0:
                people = sample.weight[sample.group == group].sum()
                raise CannotEstimateRate(
                    f"group {group!r} has {people:g} people in the sample but 0 {self.denominator_name}, "
                    f"so its {self.name} cannot be estimated.",
                    hint=f"gather more people of group {group!r}, or constrain another rate.",
                )
            weights[j] = self.sign * members / total
        return weights


class FairAnswer(Protocol):
    """What a fair oracle answers: a policy, its acceptance on the oracle's objective rows, and what
    it took to find it.
    """

    @property
    def policy(self) -> Policy:
        """The cheapest fair policy found."""
        ...

    @property
    def acceptance(self) -> FloatArray:
        """P[pi(x_i) = +1] on the objective rows to which the oracle is bound."""
        ...

    @property
    def oracle_calls(self) -> int:
        """Calls of the CSC oracle behind it."""
        ...


class FairOracle(Protocol):
    """FairCSC bound to fixed objective rows and a fixed labelled sample (section 3.1 of the paper)."""

    def cheapest(self, acceptance_cost: FloatArray) -> FairAnswer:
        """argmin over fair mixtures pi of sum_i acceptance_cost_i P[pi(x_i) = +1].

        Law: the answer meets every constraint; for an exact class no fair mixture is cheaper.
        """
        ...


class Learner(Protocol):
    """A learner under one-sided feedback.

    `simulate`, `compare` and `study` need no more than this. They look at `policy` before every
    person, unless the learner is an `EpochLearner`, which says for how long its policy lasts;
    return the same object as long as it is the same policy. The `epoch` of a decision counts the
    policies: it is larger whenever the policy is another one.

    Laws: each person is one round, also where several threads call; `decide` alone advances the
    counter; looking at `policy` changes nothing; a label can be observed once, for an accepted
    round, in any order, however late, or never; what is refused changes nothing; a group may be
    unknown (None, NaN and pandas.NA are the same) or new. What else may happen to a round is a
    capability of its own, which a learner has by having the method: `SupportsOverrule`,
    `SupportsErasure`, `SupportsLateGroups`, `SupportsStorage`.
    """

    @property
    def policy(self) -> Policy:
        """The policy that the next person meets."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
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
        """A fresh learner with the same settings, which has met nobody."""
        ...

    def decide(self, features: FloatArray, group: GroupArray | None = None) -> Decisions:
        """Decide about one person per row."""
        ...

    def observe(self, round: ArrayLike, label: ArrayLike) -> None:
        """Tell the label of an accepted round, or of several (two arrays): all of them are taken,
        or none.
        """
        ...


@runtime_checkable
class SupportsOverrule(Protocol):
    """A learner that can be told that a human decided otherwise. The round stays as it was drawn.

    Laws: the label of an accept that was refused teaches nothing, whether it was told before (then
    it is forgotten) or is told afterwards (then it is refused); a reject that was accepted stays
    rejected, and its label is refused; to overrule what was decided anyway, or the same round
    again, changes nothing.
    """

    def overrule(self, round: ArrayLike, accept: ArrayLike) -> None:
        """A human decided `accept` in this round, or in several (two arrays)."""
        ...


@runtime_checkable
class SupportsErasure(Protocol):
    """A learner that can forget a person.

    Laws: whoever is erased before the next decision leaves no trace but the round, its draw and its
    propensity: two runs that differ in that person's features, group and label alone are equal from
    then on, and so are their stored files; an erased round takes no label, group or overruling; to
    erase it again changes nothing.
    """

    def erase(self, round: ArrayLike) -> None:
        """Forget the person of this round, or of several."""
        ...


@runtime_checkable
class SupportsLateGroups(Protocol):
    """A learner that can be told a group after the decision.

    Laws: a group is told once; telling it again changes nothing, and another one is refused.
    """

    def tell_group(self, round: ArrayLike, group: ArrayLike) -> None:
        """The group of a round that was decided without it, or of several (two arrays)."""
        ...


@runtime_checkable
class SupportsStorage(Protocol):
    """A learner that can be stored; `evenhand.load` reads it back.

    Laws: the copy decides as the original would have, and knows what was reported; or `save` raises
    NotSerialisable.
    """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Store everything in one file."""
        ...


class Environment(Protocol):
    """A population that people are drawn from, together with its truth.

    Laws: a draw depends on the generator alone (for a stream also on what was drawn before); loss,
    gaps and optimum are those of the population and never change; the optimum keeps its limit, and
    no mixture of `hypotheses` and the constants that keeps it has a smaller loss. Labels of a draw
    are the truth: whoever runs a learner hides those of the rejected.
    """

    @property
    def params(self) -> Mapping[str, Any]:
        """What distinguishes this environment from another, as plain values."""
        ...

    @property
    def hypotheses(self) -> HypothesisClass | None:
        """The class that belongs to it, if any."""
        ...

    def fresh(self) -> Self:
        """The same environment at its beginning; only a stream has a past to forget."""
        ...

    def draw(self, rounds: int, generator: np.random.Generator) -> LabelledSample:
        """The next `rounds` people with their labels."""
        ...

    def loss(self, policy: Policy, prices: Prices, /) -> float:
        """E[false_accept 1[accepted, y = -1] + false_reject 1[rejected, y = +1]] on the population."""
        ...

    def gaps(self, policy: Policy, rates: Rate | Sequence[Rate], /) -> FloatArray:
        """The signed gap of each rate and pair of groups on the population, later group minus
        earlier.
        """
        ...

    def optimum(
        self, allowed_gap: float, rates: Rate | Sequence[Rate], prices: Prices, /
    ) -> tuple[float, Policy]:
        """The smallest loss of a mixture with all gaps within the limit, and that mixture."""
        ...
