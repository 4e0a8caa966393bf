"""A mixture pi of hypotheses (section 1.1): draw h with probability pi(h), then do as h says.

    P[pi(x) = +1] = min(1, w_1 1[h_1(x) = +1] + w_2 1[h_2(x) = +1] + ...)

`Compiled` is the one definition of the sum, to the last bit: rules of one kind stand together,
kinds in order of first appearance, and the terms are added one after the other. A person's
probability is therefore the same alone and among a million others.

`PolicyWeights` are weights Q over mixtures (section 3, step 2): completed with the best policy, and
smoothed to the policy Q^mu that is deployed.
"""

from collections.abc import Hashable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import compress
from math import fsum
from operator import add
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from evenhand.canonical import canonical_digest
from evenhand.contracts import Batch, GroupUse, Hypothesis, Json, Policy, all_columns_used
from evenhand.errors import InvalidInput
from evenhand.people import as_group
from evenhand.schema import Schema
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, GroupArray, as_features

if TYPE_CHECKING:
    from evenhand.policies.explanation import Explanation

Thing = TypeVar("Thing")
ANY_WIDTH = 0
NO_WIDTH = -1
TILE = 4096
"""People who are decided about at a time: few enough for the cache, enough to make numpy worth
while.
"""
ROUNDING = 1e-12
"""A weight below this is what arithmetic left over; it is not worth a line."""


class DeployedPolicy(Policy, Protocol):
    """A policy that can be asked again and again about rows that have been checked once.

    Subclass it and write the members of `Policy`; override the two methods below where the answer
    can be had faster.

    Examples
    --------
    >>> class Coin(DeployedPolicy):
    ...     def acceptance(self, features, group=None):
    ...         return np.full(len(features), 0.5)
    >>> Coin().acceptance_of_one(np.zeros((1, 2)), None)
    0.5
    """

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """The probability of accepting each person.

        Parameters
        ----------
        features : array_like, shape (rows, columns)
            One person per row.
        group : array_like, shape (rows,), optional
            Their groups.

        Returns
        -------
        array, shape (rows,)
            The probabilities.
        """
        ...

    def acceptance_of_checked(self, features: FloatArray, group: GroupArray | None) -> FloatArray:
        """P[pi(x) = +1] for arrays that `as_features` and `as_group` have let pass.

        Parameters
        ----------
        features : array, shape (rows, columns)
            One person per row.
        group : array, shape (rows,), or None
            Their groups.

        Returns
        -------
        array, shape (rows,)
            The probabilities.
        """
        return self.acceptance(features, group)

    def acceptance_of_one(self, person: FloatArray, group: GroupArray | None) -> float:
        """The same for one such row.

        Parameters
        ----------
        person : array, shape (1, columns)
            The person.
        group : array, shape (1,), or None
            The person's group.

        Returns
        -------
        float
            The probability.
        """
        return float(self.acceptance_of_checked(person, group)[0])


@dataclass(frozen=True, repr=False)
class Mixture(DeployedPolicy, Brief):
    """A probability distribution over hypotheses: draw one, then do as it says.

    Parameters
    ----------
    hypotheses : tuple of Hypothesis
        At least one.
    weights : tuple of float
        pi(h_k), at least 0 each; they sum to 1.
    group_use : "certify_only" or "decide", default "certify_only"
        With "certify_only" the group is never shown to a hypothesis.
    schema : Schema, optional
        The columns of the people, if they come in frames: frames are then put in order by name, and
        arrays are taken as rows that the schema has encoded.

    Raises
    ------
    InvalidInput
        If the weights are no probability distribution over the hypotheses.

    Notes
    -----
    P[pi(x) = +1] = sum_h pi(h) 1[h(x) = +1] (section 1.1 of the paper). The probability of a person
    has the same bits alone and among others.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.hypotheses import ACCEPT_ALL, Threshold
    >>> policy = Mixture((ACCEPT_ALL, Threshold(0, 600.0, 1)), (0.25, 0.75))
    >>> policy.acceptance(np.array([[580.0], [640.0]]))
    array([0.25, 1.  ])
    """

    hypotheses: tuple[Hypothesis, ...]
    weights: tuple[float, ...]
    group_use: GroupUse = "certify_only"
    schema: Schema | None = None

    def __post_init__(self) -> None:
        if len(self.hypotheses) != len(self.weights) or not self.weights:
            raise InvalidInput(
                f"a mixture of {len(self.hypotheses)} hypotheses has {len(self.weights)} weights; "
                "it needs one each."
            )
        if min(self.weights) < 0 or abs(sum(self.weights) - 1.0) > 1e-9:
            raise InvalidInput(
                f"the weights {self.weights} are not a probability distribution; they must be >= 0 "
                "and sum to 1."
            )

    def weight_of(self, *hypotheses: Hypothesis) -> float:
        """The probability with which one of these hypotheses decides.

        Parameters
        ----------
        *hypotheses : Hypothesis
            Compared by equality, for example ACCEPT_ALL.

        Returns
        -------
        float
            The sum of their weights; 0 if none of them is in the mixture.

        Examples
        --------
        >>> from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, Threshold
        >>> policy = Mixture((ACCEPT_ALL, Threshold(0, 600.0, 1)), (0.25, 0.75))
        >>> policy.weight_of(ACCEPT_ALL), policy.weight_of(REJECT_ALL)
        (0.25, 0)
        """
        return sum(w for h, w in zip(self.hypotheses, self.weights, strict=True) if h in hypotheses)

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """The probability of accepting each person.

        Parameters
        ----------
        features : array_like of shape (rows, columns), or frame
            One person per row. A policy with a schema finds the columns of a frame by name, in any
            order, and refuses a frame in which one is missing, unknown or of another kind.
        group : array_like, shape (rows,), optional
            Their groups; looked at with group_use="decide" only.

        Returns
        -------
        array, shape (rows,)
            P[pi(x) = +1].
        """
        rows = as_features(features) if self.schema is None else self.schema.encode(features)
        if group is None or self.group_use != "decide":
            return self._compiled.acceptance(rows, None)
        return self._compiled.acceptance(rows, as_group(group, len(rows)))

    def acceptance_of_checked(self, features: FloatArray, group: GroupArray | None) -> FloatArray:
        return self._compiled.acceptance(features, group if self.group_use == "decide" else None)

    def acceptance_of_one(self, person: FloatArray, group: GroupArray | None) -> float:
        seen = group if self.group_use == "decide" else None
        return self._compiled.acceptance_of_one(person, seen)

    @cached_property
    def columns_used(self) -> tuple[int, ...] | None:
        """The columns that a rule of positive weight looks at; None if one does not know its own.

        Examples
        --------
        >>> from evenhand.hypotheses import ACCEPT_ALL, Threshold
        >>> Mixture((ACCEPT_ALL, Threshold(1, 600.0, 3)), (0.25, 0.75)).columns_used
        (1,)
        """
        return all_columns_used(compress(self.hypotheses, self.weights))

    @cached_property
    def _compiled(self) -> "Compiled":
        return Compiled.of(self.hypotheses, self.weights)

    def explain(self, person: Any, reference: Any, **settings: Any) -> "Explanation":
        """Explain a person's probability of being accepted.

        Parameters
        ----------
        person : array_like of shape (columns,), mapping or frame of one row
            The person.
        reference : array_like of shape (people, columns), or frame
            The people whom the person is compared with.
        **settings
            As `evenhand.explain` takes them: columns, group, words, above, reference_name.

        Returns
        -------
        Explanation
            The reasons, and the least change that raises the probability.

        Examples
        --------
        >>> from evenhand.hypotheses import Threshold
        >>> policy = Mixture((Threshold(0, 600.0, 1),), (1.0,))
        >>> policy.explain([580.0], [[650.0], [590.0]], columns=["score"]).change.words
        'score of 600 (it is 580)'
        """
        from evenhand.policies.explanation import explain

        return explain(self, person, reference, **settings)

    def describe(self, names: Sequence[str] | None = None) -> str:
        """The mixture in words.

        Parameters
        ----------
        names : sequence of str, optional
            The names of the columns; those of the schema by default.

        Returns
        -------
        str
            One line per hypothesis: "with probability 0.73: accept if score >= 612". Weights that
            are rounding (below 1e-12) are not shown.
        """
        if names is None and self.schema is not None:
            names = self.schema.slots
        pairs = zip(self.weights, self.hypotheses, strict=True)
        parts = sorted((part for part in pairs if part[0] >= ROUNDING), key=lambda part: -part[0])
        if len(parts) == 1:
            return f"always: {parts[0][1].describe(names)}"
        return "\n".join(
            f"with probability {weight:.4g}: {hypothesis.describe(names)}"
            for weight, hypothesis in parts
        )

    def to_json(self, models: MutableMapping[str, Json] | None = None) -> Json:
        """Plain JSON.

        Parameters
        ----------
        models : dict, optional
            Where fitted models are put, each once, by their sha256 and as JSON; the document then
            refers to them. By default they stand in the document itself.

        Returns
        -------
        dict
            `evenhand.hypotheses.policy_from_json` reads it back, bit for bit.

        Raises
        ------
        NotSerialisable
            If a hypothesis has no plain JSON form.
        """
        parts = [
            {"weight": w, "hypothesis": h.to_json()}
            for w, h in zip(self.weights, self.hypotheses, strict=True)
        ]
        named = {} if self.schema is None else {"schema": self.schema.to_json()}
        data = {"kind": "mixture", "group_use": self.group_use, "parts": parts, **named}
        return data if models is None else models_apart(data, models)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The sha256 of each fitted model in it, each once, in order."""
        held: dict[str, Json] = {}
        self.to_json(held)
        return tuple(held)

    @cached_property
    def sha256(self) -> str:
        """The hash of its canonical JSON, in which models are referred to by their own hashes.

        Raises
        ------
        NotSerialisable
            If a hypothesis has no plain JSON form.
        """
        return canonical_digest(self.to_json({}))


@dataclass(frozen=True, repr=False)
class PolicyWeights(Brief):
    """Weights Q over policies; what is missing to a sum of one belongs to the best policy pi_0.

    Parameters
    ----------
    policies : tuple of Mixture
        The policies, all with the same group_use.
    weights : tuple of float
        Q(pi_k), at least 0 each, summing to one or less.

    Raises
    ------
    InvalidInput
        If the weights are not such weights, or the policies differ in their group_use.

    Examples
    --------
    >>> from evenhand.hypotheses import ACCEPT_ALL, Threshold
    >>> best = Mixture((Threshold(0, 600.0, 1),), (1.0,))
    >>> weights = PolicyWeights((Mixture((ACCEPT_ALL,), (1.0,)),), (0.25,))
    >>> weights.completed(best).weights
    (0.25, 0.75)
    """

    policies: tuple[Mixture, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.policies) != len(self.weights):
            raise InvalidInput(
                f"{len(self.policies)} policies have {len(self.weights)} weights; each needs one."
            )
        if self.weights and (min(self.weights) < 0 or not self.total <= 1.0 + 1e-12):
            raise InvalidInput(
                f"the weights sum to {self.total} (least: {min(self.weights)}); they lie in [0, 1]."
            )
        if len({policy.group_use for policy in self.policies}) > 1:
            raise InvalidInput(
                'some policies use the group ("decide") and others do not; they cannot share '
                "weights."
            )

    @property
    def total(self) -> float:
        """sum_pi Q(pi)."""
        return fsum(self.weights)

    def completed(self, best: Mixture) -> "PolicyWeights":
        """Q with the missing weight on one policy.

        Parameters
        ----------
        best : Mixture
            pi_0, whose weight grows by 1 - sum Q.

        Returns
        -------
        PolicyWeights
            Weights that sum to one; equal policies have become one, and policies without weight are
            gone.
        """
        pairs = [*zip(self.policies, self.weights, strict=True)]
        pairs.append((best, max(0.0, 1.0 - self.total)))
        keyed = ((policy_key(policy), policy, weight) for policy, weight in pairs)
        return PolicyWeights(*_merged(keyed))

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """The probability of accepting each person when a policy is drawn from Q.

        Parameters
        ----------
        features : array_like, shape (rows, columns)
            One person per row.
        group : array_like, shape (rows,), optional
            Their groups.

        Returns
        -------
        array, shape (rows,)
            Q(+1|x) = sum_pi Q(pi) P[pi(x) = +1]; Q must sum to one.
        """
        return self.flattened().acceptance(features, group)

    def flattened(self) -> Mixture:
        """Q as one mixture of hypotheses: draw pi, then h.

        Returns
        -------
        Mixture
            Equal hypotheses have become one.
        """
        return self.smoothed(0.0, ())

    def smoothed(self, exploration_floor: float, explored: Sequence[Hypothesis]) -> Mixture:
        """The policy that is deployed: Q^mu = mu on each explored constant + (1 - K mu) Q.

        Parameters
        ----------
        exploration_floor : float
            mu.
        explored : sequence of Hypothesis
            The K constants that are explored. Two-sided (the paper): (ACCEPT_ALL, REJECT_ALL);
            one-sided: (ACCEPT_ALL,).

        Returns
        -------
        Mixture
            One mixture of hypotheses; equal ones have become one.

        Raises
        ------
        InvalidInput
            If the floor takes more than the whole probability, or Q does not sum to one.
        """
        rest = 1.0 - len(explored) * exploration_floor
        if not (exploration_floor >= 0 and rest >= -1e-12):
            raise InvalidInput(
                f"exploration_floor is {exploration_floor}; it lies between 0 and "
                f"1/{max(1, len(explored))}, because each explored decision takes that much of the "
                "probability."
            )
        if abs(self.total - 1.0) > 1e-9:
            raise InvalidInput(
                f"the weights sum to {self.total}, not to 1.", hint="call completed(best) first."
            )
        drawn = [
            (h, max(rest, 0.0) * (q * p))
            for pi, q in zip(self.policies, self.weights, strict=True)
            for h, p in zip(pi.hypotheses, pi.weights, strict=True)
        ]
        parts = [(h, exploration_floor) for h in explored] + drawn
        hypotheses, weights = _merged((_hypothesis_key(h), h, weight) for h, weight in parts)
        return Mixture(hypotheses, weights, self.policies[0].group_use)


def policy_key(policy: Mixture) -> Hashable:
    """Equal for mixtures of equal hypotheses with equal weights, in whatever order."""
    parts = zip(policy.hypotheses, policy.weights, strict=True)
    return policy.group_use, frozenset((_hypothesis_key(h), weight) for h, weight in parts)


def _hypothesis_key(hypothesis: Hypothesis) -> Hashable:
    """The hypothesis itself, or its identity where it cannot be hashed (a table of arrays, a fitted
    model).
    """
    try:
        hash(hypothesis)
    except TypeError:
        return id(hypothesis)
    return cast(Hashable, hypothesis)


def _merged(
    parts: Iterable[tuple[Hashable, Thing, float]],
) -> tuple[tuple[Thing, ...], tuple[float, ...]]:
    """Things and weights: one entry per key, in order of first appearance, with the sum of its
    weights; entries of weight 0 are left out.
    """
    sums: dict[Hashable, tuple[Thing, float]] = {}
    for key, thing, weight in parts:
        first, total = sums.get(key, (thing, 0.0))
        sums[key] = (first, total + weight)
    kept = [(thing, weight) for thing, weight in sums.values() if weight > 0]
    return tuple(thing for thing, _ in kept), tuple(weight for _, weight in kept)


def models_apart(data: Any, models: MutableMapping[str, Json]) -> Any:
    """Plain JSON in which stored models are referred to by their hash.

    A stored model is an object with "format", "sha256" and "data", wherever it stands.

    Parameters
    ----------
    data : object
        Plain JSON.
    models : dict
        Where the models are put, each once, by their sha256.

    Returns
    -------
    object
        The same JSON without their "data".

    Examples
    --------
    >>> models = {}
    >>> rule = {"kind": "fitted", "model": {"format": "skops", "sha256": "f00", "data": "UEsD"}}
    >>> models_apart(rule, models)
    {'kind': 'fitted', 'model': {'format': 'skops', 'sha256': 'f00'}}
    >>> models_inside(models_apart(rule, {}), models) == rule
    True
    """
    if isinstance(data, list):
        return [models_apart(item, models) for item in data]
    if not isinstance(data, dict):
        return data
    if {"format", "sha256", "data"} <= data.keys():
        models[data["sha256"]] = data
        return {name: value for name, value in data.items() if name != "data"}
    return {name: models_apart(value, models) for name, value in data.items()}


def models_inside(data: Any, models: Mapping[str, Json]) -> Any:
    """The inverse of `models_apart`.

    Parameters
    ----------
    data : object
        Plain JSON in which models are referred to by their hash.
    models : mapping
        The models by their sha256.

    Returns
    -------
    object
        The same JSON with their "data".

    Raises
    ------
    InvalidInput
        If a model is not there.
    """
    if isinstance(data, list):
        return [models_inside(item, models) for item in data]
    if not isinstance(data, dict):
        return data
    if {"format", "sha256"} <= data.keys() and "data" not in data:
        stored = models.get(data["sha256"])
        if stored is None:
            raise InvalidInput(
                f"the policy refers to a model of the hash {data['sha256']}, which is not among "
                f"the {len(models)} models that were given.",
                hint="policy_from_json(document, models=...) takes what to_json(models) has put "
                "apart.",
            )
        return {**data, "data": stored["data"]}
    return {name: models_inside(value, models) for name, value in data.items()}


@dataclass(frozen=True, eq=False)
class CompiledPart:
    """Rules of one kind with their weights; `batch` is None for kinds that can only be asked one by
    one.
    """

    hypotheses: tuple[Hypothesis, ...]
    weights: tuple[float, ...]
    batch: Batch | None

    def one_by_one(self, features: FloatArray, group: GroupArray | None) -> list[BoolArray]:
        """The answers of each rule, which is asked itself."""
        return [hypothesis.accepts(features, group) for hypothesis in self.hypotheses]


@dataclass(frozen=True, eq=False)
class Compiled:
    """The parts of a mixture, in the order in which they are added up; `width`: the number of
    columns that they ask for.
    """

    parts: tuple[CompiledPart, ...]
    width: int

    @classmethod
    def of(cls, hypotheses: Sequence[Hypothesis], weights: Sequence[float]) -> "Compiled":
        """Sort the rules by kind."""
        kinds: dict[type, list[tuple[Hypothesis, float]]] = {}
        for hypothesis, weight in zip(hypotheses, weights, strict=True):
            kinds.setdefault(type(hypothesis), []).append((hypothesis, weight))
        parts = []
        widths = set()
        for kind, members in kinds.items():
            rules, shares = zip(*members, strict=True)
            together = getattr(kind, "together", None)
            batch: Batch | None = together(rules) if together else None
            parts.append(CompiledPart(rules, shares, batch))
            if batch is not None and batch.columns is not None:
                widths.add(batch.columns)
        width = NO_WIDTH if len(widths) > 1 else max(widths, default=ANY_WIDTH)
        return cls(tuple(parts), width)

    def acceptance(self, features: FloatArray, group: GroupArray | None) -> FloatArray:
        """The sum for each row; the rows have been checked."""
        if len(features) == 1:
            return np.array([self.acceptance_of_one(features, group)])
        if self.width not in (ANY_WIDTH, features.shape[1]):
            self._complain(features, group)
        total = np.zeros(len(features))
        for start in range(0, len(features), TILE):
            rows = slice(start, start + TILE)
            seen = features[rows]
            theirs = None if group is None else group[rows]
            some = total[rows]
            term = np.empty(len(seen))
            try:
                for part in self.parts:
                    answers: Iterable[BoolArray] = (
                        part.one_by_one(seen, theirs) if part.batch is None else part.batch(seen.T)
                    )
                    for weight, accepts in zip(part.weights, answers, strict=True):
                        some += np.multiply(accepts, weight, out=term)
            except InvalidInput:
                self._complain(features, group)
                raise
        return np.minimum(total, 1.0, out=total)

    def acceptance_of_one(self, person: FloatArray, group: GroupArray | None) -> float:
        """The same for a single row, in Python's floats, which are numpy's."""
        if self.width not in (ANY_WIDTH, person.shape[1]):
            self._complain(person, group)
        total = 0.0
        for part in self.parts:
            if part.batch is not None:
                answers = part.batch.one(person)
            else:
                answers = [bool(answer[0]) for answer in part.one_by_one(person, group)]
            total = reduce(add, compress(part.weights, answers), total)
        return total if total < 1.0 else 1.0

    def _complain(self, features: FloatArray, group: GroupArray | None) -> None:
        """Some rule refuses these rows: let it say so itself, about all of them at once."""
        for part in self.parts:
            part.one_by_one(features, group)
