"""Apple tasting becomes a bandit (Proposition 2.1 of the paper): a loss that is known after every
decision.

The 0-1 loss of a reject is never seen, because the label is not. Adding the price of a false reject
to *both* decisions about a person with y = -1 changes no difference between two policies, and makes
the loss of a reject a known constant.
"""

from dataclasses import dataclass, field

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.words import BoolArray, FloatArray, IntArray, Prices


@dataclass(frozen=True, eq=False)
class TransformedLoss:
    """The transformed loss in [0, 1], with fa and fr the prices of a false accept and a false
    reject:

                  y = +1     y = -1
        accept    0          (fa + fr) / M
        reject    fr / M     fr / M

    M (`normaliser`) is a preset bound on fa + fr; the paper is fa = fr = 1, M = 2. For every policy
    M * transformed loss = original loss + E[fr 1(y = -1)], so regret in original units is M *
    transformed regret.
    """

    prices: Prices = field(default_factory=Prices)
    normaliser: float = 2.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.normaliser) and self.normaliser > 0):
            raise InvalidInput(
                f"normaliser is {self.normaliser}; it must be a finite number above 0."
            )
        largest = float(
            np.max(self.prices.false_accept + np.asarray(self.prices.false_reject), initial=0.0)
        )
        if largest > self.normaliser * (1 + 1e-12):
            raise InvalidInput(
                f"the prices of a false accept and a false reject sum to {largest:g}, above the normaliser "
                f"{self.normaliser:g}; losses would leave [0, 1].",
                hint=f"set normaliser to a bound on that sum before the first round, here at least {largest:g}.",
            )

    @property
    def of_reject(self) -> float | FloatArray:
        """The loss of rejecting, whatever the label: fr / M."""
        return self.prices.false_reject / self.normaliser

    @property
    def of_false_accept(self) -> float | FloatArray:
        """The loss of accepting y = -1: (fa + fr) / M. Accepting y = +1 costs 0."""
        return (self.prices.false_accept + self.prices.false_reject) / self.normaliser

    def of(self, accept: BoolArray, label: IntArray) -> FloatArray:
        """The loss of each decision; the label of a rejected row is not looked at."""
        accepted_loss = np.where(label == -1, self.of_false_accept, 0.0)
        return np.where(accept, accepted_loss, self.of_reject)

    def acceptance_difference(self, label: IntArray) -> FloatArray:
        """Loss of accepting minus loss of rejecting: -fr / M where y = +1, +fa / M where y = -1."""
        return self.prices.acceptance_cost(label) / self.normaliser

    def original_regret(self, transformed_regret: float) -> float:
        """Regret in the units of the prices."""
        return self.normaliser * transformed_regret

    def priced(self, prices: Prices | None) -> "TransformedLoss":
        """The same normaliser with prices of one's own for each row (None: these prices)."""
        return self if prices is None else TransformedLoss(prices, self.normaliser)
