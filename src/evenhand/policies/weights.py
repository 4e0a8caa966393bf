"""Weights Q over policies (section 3, step 2), their completion, and the smoothed policy Q^mu that
is deployed.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TypeVar, cast

from numpy.typing import ArrayLike

from evenhand.contracts import Hypothesis
from evenhand.errors import InvalidInput
from evenhand.policies.mixture import Mixture
from evenhand.shown import Brief
from evenhand.words import FloatArray

Thing = TypeVar("Thing")


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
        merged = _merged((policy_key(policy), policy, weight) for policy, weight in pairs)
        return PolicyWeights(
            tuple(policy for policy, _ in merged), tuple(weight for _, weight in merged)
        )

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
                "probability.",
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
        merged = _merged((_hypothesis_key(h), h, weight) for h, weight in parts)
        hypotheses, weights = tuple(h for h, _ in merged), tuple(weight for _, weight in merged)
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


def _merged(parts: Iterable[tuple[Hashable, Thing, float]]) -> list[tuple[Thing, float]]:
    """One entry per key, in order of first appearance, with the sum of its weights; entries of
    weight 0 are left out.
    """
    sums: dict[Hashable, tuple[Thing, float]] = {}
    for key, thing, weight in parts:
        first, total = sums.get(key, (thing, 0.0))
        sums[key] = (first, total + weight)
    return [(thing, weight) for thing, weight in sums.values() if weight > 0]
