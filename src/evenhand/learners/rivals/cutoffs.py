"""A policy that accepts with a probability growing with a score is a mixture of linear rules with
one direction and a random cut-off.

P[pi(x) = +1] = F(w.x) = sum_k p_k 1[w.x >= t_k],   F the distribution function of the cut-off
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.hypotheses.linear import LinearRule, row_scores
from evenhand.policies import Mixture
from evenhand.words import FloatArray, GroupArray, as_features

STEPS = 200
"""Cut-offs by which a continuous distribution function is stood for."""


@dataclass(frozen=True)
class RandomCutoff(Mixture):
    """The mixture, evaluated by one score for all its rules."""

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """F(w.x) for each row."""
        return self.acceptance_of_checked(as_features(features), None)

    def acceptance_of_checked(self, features: FloatArray, group: GroupArray | None) -> FloatArray:
        """The same for arrays that have been checked."""
        rules = [
            (h.threshold, w)
            for h, w in zip(self.hypotheses, self.weights, strict=True)
            if isinstance(h, LinearRule)
        ]
        thresholds, weights = np.array(rules).T
        reached = np.concatenate([[0.0], np.cumsum(weights)])
        direction = self.hypotheses[0].weights  # type: ignore[attr-defined]  # all rules are linear and share it
        place = np.searchsorted(thresholds, row_scores(features, direction), side="right")
        return np.asarray(np.minimum(reached[place], 1.0), dtype=np.float64)

    def acceptance_of_one(self, person: FloatArray, group: GroupArray | None) -> float:
        """The same for one such row."""
        return float(self.acceptance_of_checked(person, None)[0])

    def describe(self, names: Sequence[str] | None = None) -> str:
        """The direction, and how the probability grows along it."""
        middle = self.hypotheses[int(np.searchsorted(np.cumsum(self.weights), 0.5))]
        return f"a probability that grows with a score; at one half: {middle.describe(names)}"


def random_cutoff(
    direction: FloatArray, offset: float, probability: Callable[[FloatArray], FloatArray]
) -> Mixture:
    """The policy that accepts with probability(w.x + offset), which does not decrease; the steps
    are finest around 0.
    """
    grid = np.sinh(np.linspace(-4.0, 4.0, STEPS)) / 3.0
    levels = np.clip(probability(np.concatenate([[-40.0], grid])), 0.0, 1.0)
    levels[-1] = 1.0
    mass = np.diff(levels, prepend=0.0)
    cuts = np.concatenate([[-1e300], grid - offset])
    kept = mass > 0
    weights = tuple(float(f"{w:.9g}") for w in direction)
    rules = tuple(LinearRule(weights, float(cut)) for cut in cuts[kept])
    return RandomCutoff(rules, tuple((mass[kept] / mass[kept].sum()).tolist()))


def logistic(score: FloatArray) -> FloatArray:
    """1 / (1 + exp(-s))."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(score, -40.0, 40.0))))


@dataclass(frozen=True, eq=False)
class Standard:
    """Features with mean 0 and variance 1, and the way back to weights on the features as they are."""

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, features: FloatArray) -> "Standard":
        """From rows; constant columns stay as they are."""
        spread = features.std(axis=0)
        return cls(features.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def rows(self, features: FloatArray) -> FloatArray:
        """Standardised rows with a 1 at their end."""
        return np.column_stack([(features - self.mean) / self.scale, np.ones(len(features))])

    def back(self, weights: FloatArray) -> tuple[FloatArray, float]:
        """(w, b) on plain features for weights (the last one the constant's) on standardised ones."""
        plain = weights[:-1] / self.scale
        return plain, float(weights[-1] - plain @ self.mean)
