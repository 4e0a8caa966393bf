"""Weights Q over policies (section 3, step 2), their completion, and the smoothed policy Q^mu that
is deployed.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TypeVar, cast

from numpy.typing import ArrayLike

from evenhand.contracts import GroupUse, Hypothesis
from evenhand.errors import InvalidInput
from evenhand.policies.mixture import Mixture
from evenhand.words import FloatArray

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class PolicyWeights:
    """Q(pi_k) = weights[k] >= 0, summing to one or less; what is missing belongs to the best policy
    pi_0.
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
                'some policies use the group ("decide") and others do not; they cannot share weights.'
            )

    @property
    def total(self) -> float:
        """sum_pi Q(pi)."""
        return fsum(self.weights)

    def completed(self, best: Mixture) -> "PolicyWeights":
        """Q(pi_0) grows by 1 - sum Q; equal policies become one, and policies without weight go."""
        return self._merged([*self._pairs(), (best, max(0.0, 1.0 - self.total))])

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """Q(+1|x) = sum_pi Q(pi) P[pi(x) = +1] for each row; Q must sum to one."""
        return self.flattened().acceptance(features, group)

    def flattened(self) -> Mixture:
        """Q as one mixture of hypotheses: draw pi, then h."""
        return self.smoothed(0.0, ())

    def smoothed(self, exploration_floor: float, explored: Sequence[Hypothesis]) -> Mixture:
        """Q^mu = mu on each of the K `explored` constants + (1 - K mu) Q, as one mixture with equal
        hypotheses merged.

        Two-sided (the paper): explored = (ACCEPT_ALL, REJECT_ALL). One-sided: (ACCEPT_ALL,).
        """
        rest = 1.0 - len(explored) * exploration_floor
        if not (exploration_floor >= 0 and rest >= -1e-12):
            raise InvalidInput(
                f"exploration_floor is {exploration_floor}; it lies between 0 and 1/{max(1, len(explored))}, "
                "because each explored decision takes that much of the probability.",
            )
        if abs(self.total - 1.0) > 1e-9:
            raise InvalidInput(
                f"the weights sum to {self.total}, not to 1.", hint="call completed(best) first."
            )
        drawn = [
            (h, q * p)
            for pi, q in self._pairs()
            for h, p in zip(pi.hypotheses, pi.weights, strict=True)
        ]
        parts = [(h, exploration_floor) for h in explored] + [
            (h, max(rest, 0.0) * weight) for h, weight in drawn
        ]
        return _mixture(parts, self.policies[0].group_use)

    def _pairs(self) -> list[tuple[Mixture, float]]:
        return list(zip(self.policies, self.weights, strict=True))

    @staticmethod
    def _merged(pairs: Iterable[tuple[Mixture, float]]) -> "PolicyWeights":
        merged = _sums((policy_key(policy), policy, weight) for policy, weight in pairs)
        return PolicyWeights(
            tuple(policy for policy, _ in merged), tuple(weight for _, weight in merged)
        )


def policy_key(policy: Mixture) -> Hashable:
    """Equal for mixtures of equal hypotheses with equal weights, in whatever order they are listed."""
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


def _mixture(parts: Iterable[tuple[Hypothesis, float]], group_use: GroupUse) -> Mixture:
    merged = _sums(
        (_hypothesis_key(hypothesis), hypothesis, weight) for hypothesis, weight in parts
    )
    return Mixture(tuple(h for h, _ in merged), tuple(weight for _, weight in merged), group_use)


def _sums(parts: Iterable[tuple[Hashable, Thing, float]]) -> list[tuple[Thing, float]]:
    """One entry per key, in order of first appearance, with the sum of its weights; entries of
    weight 0 go.
    """
    found: dict[Hashable, tuple[Thing, float]] = {}
    for key, thing, weight in parts:
        first, total = found.get(key, (thing, 0.0))
        found[key] = (first, total + weight)
    return [(thing, weight) for thing, weight in found.values() if weight > 0]
