"""What a learned policy saves, as far as that is sure: how much of its weight is kept."""

from dataclasses import dataclass

import numpy as np

from evenhand.words import FloatArray

DOUBT, TRUST, SURE = 0.5, 1.5, 2.0
"""A learned policy that saves less than DOUBT standard errors has no weight, from TRUST of them on all that is certified; audits are
spent for what it saves beyond SURE of them."""


@dataclass(frozen=True)
class Gain:
    """What a learned policy is estimated to save per person over the better constant (0: accept, 1: reject), with its standard error.

    Without this caution estimates that are the best of many by chance are deployed, and the learner ends worse than the constant by
    more than its audits cost (false accepts 10 times as dear, 200,000 rounds: by up to 6,000).
    """

    constant: int
    saved: float
    error: float

    @classmethod
    def of(cls, acceptance: FloatArray, cost: FloatArray, variance: FloatArray) -> "Gain":
        """acceptance: the policy's on some rows; cost, variance: of accepting all people of a row, per person."""
        constant = 0 if cost.sum() <= 0 else 1
        change = (1.0 - constant) - acceptance
        return cls(constant, float(change @ cost), float(np.sqrt(variance @ change**2)))

    @property
    def trusted(self) -> float:
        """How much of its weight the policy keeps: 0 up to DOUBT standard errors, 1 from TRUST on."""
        doubt, trust = self.saved - DOUBT * self.error, (TRUST - DOUBT) * self.error
        return float(np.clip(doubt / trust, 0.0, 1.0)) if trust > 0 else float(doubt > 0)
