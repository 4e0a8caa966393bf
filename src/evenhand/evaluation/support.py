"""What a log can say at all: do its propensities fit its decisions, and does it know the people
whom the candidate would accept?

calibration   s = sum (A - p),      v = sum p (1 - p)        if the coins were drawn with p, s has mean 0 and variance v
groups        s = sum (A - p) u,    v = sum p (1 - p) u      u = 1[no group]: likewise, if knowing the group does not hang on the coin
Bernstein     P(|s| >= x) <= 2 exp(-x^2 / (2 (v + x/3)))     (|A - p| <= 1)
effective     (sum w)^2 / sum w^2,  w = A/p                  over the labelled people of a denominator
thin support  sum pi 1[p < THIN] / sum pi                    the part of the candidate's accepts that the log hardly saw
"""

from dataclasses import dataclass

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.evaluation.decision_log import DecisionLog
from evenhand.words import BoolArray, FloatArray

MOST_SURPRISE = 21.0
"""The exponent of Bernstein's inequality from which on a log is refused: a correct one with
probability 2e-9.
"""
THIN = 0.05
"""An acceptance probability below this is little support."""
MUCH = 0.1
"""From this share on, thin support or one person's weight is worth a warning."""
FEW = 30
"""Effective people below this are worth a warning."""


@dataclass(frozen=True)
class Support:
    """The log's knowledge of the candidate, in numbers."""

    least_acceptance: float
    thin_share: float
    effective_accepts: float

    def to_json(self) -> Json:
        """Plain JSON."""
        return {
            "least_acceptance": self.least_acceptance,
            "thin_support_share": self.thin_share,
            "effective_accepts": self.effective_accepts,
        }

    def warnings(self) -> list[str]:
        """In words, where there is something to warn of."""
        if self.thin_share <= MUCH:
            return []
        return [
            f"{self.thin_share:.0%} of the people whom the candidate accepts were accepted with a probability below {THIN:g} when the log "
            "was made: little is known about them"
        ]


def support_of(log: DecisionLog, policy: FloatArray) -> Support:
    """How well the log covers a candidate with acceptance pi."""
    mass = log.count * policy
    thin = float(mass[log.acceptance < THIN].sum() / mass.sum()) if mass.sum() > 0 else 0.0
    weights = np.where(log.accept, policy / log.acceptance, 0.0)
    return Support(float(log.acceptance.min()), thin, effective(weights, log.count))


def effective(weight: FloatArray, count: FloatArray) -> float:
    """(sum w)^2 / sum w^2."""
    squares = float(count @ weight**2)
    return float(count @ weight) ** 2 / squares if squares > 0 else 0.0


def heaviest(weight: FloatArray, count: FloatArray) -> float:
    """The largest share that one person has in the sum of weights."""
    total = float(count @ weight)
    return float(weight.max(initial=0.0)) / total if total > 0 else 0.0


def require_honest(log: DecisionLog) -> None:
    """InvalidInput for propensities that do not fit the decisions, or groups whose being known
    hangs on the decision.
    """
    _require_calibrated(log)
    unknown = np.array([value is None for value in log.group.tolist()], dtype=np.float64)
    if not unknown.all():
        _require_even_groups(log, unknown)


def _require_calibrated(log: DecisionLog) -> None:
    accepted, expected = (
        float(np.dot(log.count, column)) for column in (log.accept, log.acceptance)
    )
    if _surprise(log, np.ones(len(log))) > MOST_SURPRISE:
        raise InvalidInput(
            f"{log.source}: {accepted:,.0f} people were accepted, but its propensities expect {expected:,.0f}: "
            "the decisions were not drawn with these probabilities.",
            hint="`acceptance` is the probability of being accepted, for the rejected too; `propensity` that of what was decided.",
        )


def _require_even_groups(log: DecisionLog, unknown: FloatArray) -> None:
    if _surprise(log, unknown) > MOST_SURPRISE:
        accepted, rejected = (
            np.average(unknown, weights=log.count * part) for part in (log.accept, ~log.accept)
        )
        raise InvalidInput(
            f"{log.source}: the group is unknown for {accepted:.1%} of the accepted and {rejected:.1%} of the rejected, more unevenly than "
            "the propensities explain: whether it is known depends on the decision, so these groups are not those of the population.",
            hint="ask for the group before deciding, or of a share of people that a coin of its own chooses.",
        )


def _surprise(log: DecisionLog, among: FloatArray) -> float:
    """x^2 / (2 (v + x/3)) of the accepts among some people."""
    p, weight = log.acceptance, log.count * among
    x, v = abs(float(np.dot(weight, log.accept - p))), float(np.dot(weight, p * (1.0 - p)))
    return x**2 / (2.0 * (v + x / 3.0)) if x > 0 else 0.0


def denominator_warnings(
    name: str, group: str, weight: FloatArray, count: FloatArray, used: BoolArray
) -> list[str]:
    """For one rate and group: nobody, few effective people, or one person who decides."""
    here = np.where(used, weight, 0.0)
    people, most = effective(here, count), heaviest(here, count)
    if people == 0:
        return [f"group {group} has no labelled {name}: its rate is unknown, not zero"]
    if most > MUCH:
        return [
            f"one person carries {most:.0%} of the weight of the {name} of group {group}: its rate hangs on that person"
        ]
    return (
        [f"the {name} of group {group} are worth {people:.0f} people only"] if people < FEW else []
    )
