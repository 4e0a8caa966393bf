"""A mixture pi of hypotheses (section 1.1): draw h with probability pi(h), then do as h says.

    P[pi(x) = +1] = min(1, w_1 1[h_1(x) = +1] + w_2 1[h_2(x) = +1] + ...)

`Compiled` is the one definition of the sum, to the last bit: rules of one kind stand together,
kinds in order of first appearance, and the terms are added one after the other. A person's
probability is therefore the same alone and among a million others.
"""

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import compress
from operator import add
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from evenhand.canonical import canonical_digest
from evenhand.contracts import Batch, GroupUse, Hypothesis, Json, Policy
from evenhand.errors import InvalidInput
from evenhand.schema import Schema
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, GroupArray, as_features, as_group

ANY_WIDTH, NO_WIDTH = 0, -1
TILE = 4096
"""People who are decided about at a time: few enough for the cache, enough to make numpy worth
while.
"""


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
    def _compiled(self) -> "Compiled":
        return Compiled.of(self.hypotheses, self.weights)

    def describe(self, names: Sequence[str] | None = None) -> str:
        """The mixture in words.

        Parameters
        ----------
        names : sequence of str, optional
            The names of the columns; those of the schema by default.

        Returns
        -------
        str
            One line per hypothesis: "with probability 0.73: accept if score >= 612".
        """
        if names is None and self.schema is not None:
            names = self.schema.slots
        if len(self.weights) == 1:
            return f"always: {self.hypotheses[0].describe(names)}"
        parts = sorted(zip(self.weights, self.hypotheses, strict=True), key=lambda part: -part[0])
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
            `evenhand.policy_from_json` reads it back, bit for bit.

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
        parts, widths = [], set()
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
            seen, theirs = features[rows], None if group is None else group[rows]
            some, term = total[rows], np.empty(len(seen))
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
            answers = (
                part.batch.one(person)
                if part.batch is not None
                else [bool(answer[0]) for answer in part.one_by_one(person, group)]
            )
            total = reduce(add, compress(part.weights, answers), total)
        return total if total < 1.0 else 1.0

    def _complain(self, features: FloatArray, group: GroupArray | None) -> None:
        """Some rule refuses these rows: let it say so itself, about all of them at once."""
        for part in self.parts:
            part.one_by_one(features, group)
