"""What an evaluation says, as records: intervals, their course along the log, how well the log
knows the people whom the candidate would accept, and the verdict.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evenhand.contracts import Json
from evenhand.evaluation.decision_log import DecisionLog
from evenhand.fairness.certificate import TOLERANCE
from evenhand.fairness.delta_ledger import DeltaLedger
from evenhand.words import BoolArray, FloatArray

Verdict = Literal["within", "above", "not shown", "contradiction", "no groups"]
THIN = 0.05
"""An acceptance probability below this is little support."""
MUCH = 0.1
"""From this share on, thin support or one person's weight is worth a warning."""
FEW = 30
"""Effective people below this are worth a warning."""
CONTRADICTION = (
    "Nothing is claimed: no value is consistent with the log, so an assumption below is broken "
    "(a population that changed, propensities that are not those of the draws)."
)


@dataclass(frozen=True)
class Estimate:
    """A doubly robust estimate and the interval that contains the truth.

    Parameters
    ----------
    value : float or None
        None where nothing can be estimated.
    lower, upper : float
        The ends of the interval.

    Examples
    --------
    >>> Estimate(0.031, 0.002, 0.06).describe("+")
    '+0.031 [+0.002, +0.060]'
    """

    value: float | None
    lower: float
    upper: float

    @classmethod
    def of(cls, value: float, lower: float, upper: float) -> "Estimate":
        """The estimate, brought inside its interval, where the truth is; NaN is no estimate."""
        inside = None if np.isnan(value) else float(np.clip(value, lower, upper))
        return cls(inside, float(lower), float(upper))

    def to_json(self) -> Json:
        """Plain JSON."""
        return {"estimate": self.value, "low": self.lower, "high": self.upper}

    def describe(self, sign: str = "") -> str:
        """The estimate and its interval in one line; "+" as `sign` shows the sign always."""
        shown = "unknown" if self.value is None else f"{self.value:{sign}.3f}"
        return f"{shown} [{self.lower:{sign}.3f}, {self.upper:{sign}.3f}]"


@dataclass(frozen=True)
class GroupRate:
    """One group's rate under the candidate: `labelled` people of its denominator, worth `effective`
    equal ones.
    """

    rate: str
    group: str
    estimate: Estimate
    labelled: float
    effective: float

    def to_json(self) -> Json:
        """Plain JSON."""
        own = {name: getattr(self, name) for name in ("rate", "group", "labelled", "effective")}
        return own | self.estimate.to_json()


@dataclass(frozen=True)
class Gap:
    """rate[group] - rate[reference] under the candidate."""

    rate: str
    group: str
    reference: str
    estimate: Estimate

    @property
    def name(self) -> str:
        """ "FPR south - north"."""
        return f"{self.rate} {self.group} - {self.reference}"

    @property
    def reach(self) -> float:
        """The largest absolute value in its interval."""
        return max(self.estimate.upper, -self.estimate.lower)

    def stands(self, limit: float) -> Verdict:
        """Where its interval lies: within the limit, wholly above it, or neither."""
        if self.reach <= limit + TOLERANCE:
            return "within"
        least = max(self.estimate.lower, -self.estimate.upper)
        return "above" if least > limit + TOLERANCE else "not shown"

    def to_json(self, limit: float) -> Json:
        """Plain JSON."""
        own = {name: getattr(self, name) for name in ("rate", "group", "reference")}
        return own | {"stands": self.stands(limit)} | self.estimate.to_json()


@dataclass(frozen=True, eq=False)
class EstimateCourse:
    """Estimates and intervals along the log: rows (T,); gaps (T, gaps, 3) and loss (T, 3) as
    estimate, lower end, upper end.
    """

    rows: FloatArray
    gaps: FloatArray
    loss: FloatArray

    def to_json(self) -> Json:
        """Plain JSON; NaN becomes null."""

        def plain(value: Any) -> Any:
            if isinstance(value, list):
                return [plain(part) for part in value]
            return None if value != value else value

        return {name: plain(getattr(self, name).tolist()) for name in ("rows", "gaps", "loss")}


@dataclass(frozen=True)
class Support:
    """The log's knowledge of the candidate.

    least_acceptance: the smallest p; thin_share: sum pi 1[p < THIN] / sum pi, the part of the
    candidate's accepts that the log hardly saw; effective_accepts: (sum w)^2 / sum w^2 with w = A
    pi / p.
    """

    least_acceptance: float
    thin_share: float
    effective_accepts: float

    @classmethod
    def of(cls, log: DecisionLog, policy: FloatArray) -> "Support":
        """How well the log covers a candidate with acceptance pi."""
        mass = log.count * policy
        thin = float(mass[log.acceptance < THIN].sum() / mass.sum()) if mass.sum() > 0 else 0.0
        weights = np.where(log.accept, policy / log.acceptance, 0.0)
        return cls(float(log.acceptance.min()), thin, effective(weights, log.count))

    def to_json(self) -> Json:
        """Plain JSON."""
        return {
            "least_acceptance": self.least_acceptance,
            "thin_support_share": self.thin_share,
            "effective_accepts": self.effective_accepts,
        }

    def warnings(self) -> list[str]:
        """In words, where there is something to warn of."""
        return [
            f"{self.thin_share:.0%} of the people whom the candidate accepts were accepted with a "
            f"probability below {THIN:g} when the log was made: little is known about them"
        ] * (self.thin_share > MUCH)


def effective(weight: FloatArray, count: FloatArray) -> float:
    """How many equal people weighted ones are worth: (sum w)^2 / sum w^2."""
    squares = float(count @ weight**2)
    return float(count @ weight) ** 2 / squares if squares > 0 else 0.0


def heaviest(weight: FloatArray, count: FloatArray) -> float:
    """The largest share that one person has in the sum of weights."""
    total = float(count @ weight)
    return float(weight.max(initial=0.0)) / total if total > 0 else 0.0


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
            f"one person carries {most:.0%} of the weight of the {name} of group {group}: "
            "its rate hangs on that person"
        ]
    return [f"the {name} of group {group} are worth {people:.0f} people only"] * (people < FEW)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a log says about a candidate policy, with probability 1 - delta over all rows and
    figures at once.

    Parameters
    ----------
    candidate : str
        The policy that was asked about.
    limit : float
        The largest allowed gap.
    loss : Estimate
        Its cost per person.
    rates : tuple of GroupRate
        Each rate of each group.
    gaps : tuple of Gap
        Each rate's difference for each pair of groups.
    contradiction : bool
        Whether no value is consistent with the log.
    people, accepted, open, outside : float
        Decisions in all, accepted ones, accepted ones without an outcome, people of no group that
        is compared.
    support : Support
        How well the log knows the people whom the candidate would accept.
    ledger : DeltaLedger
        How the failure probability was spent.
    assumptions, warnings : tuple of str
        What it rests on, and what to beware of.
    course : EstimateCourse
        Estimates and intervals along the log.

    Examples
    --------
    >>> from evenhand.evaluation import Candidate, DecisionLog, evaluate
    >>> log = DecisionLog.of([[1.0]] * 200, [True, False] * 100, [0.5] * 200, [1, 0] * 100)
    >>> result = evaluate(log, Candidate.read("accept-all"))
    >>> result.verdict, result.people, result.loss.value
    ('no groups', 200.0, 0.0)
    """

    candidate: str
    limit: float
    loss: Estimate
    rates: tuple[GroupRate, ...]
    gaps: tuple[Gap, ...]
    contradiction: bool
    people: float
    accepted: float
    open: float
    outside: float
    support: Support
    ledger: DeltaLedger
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    course: EstimateCourse

    @property
    def failure_probability(self) -> float:
        """delta, for everything that is said."""
        return self.ledger.failure_probability

    @property
    def verdict(self) -> Verdict:
        """within: every gap; above: at least one gap; contradiction: no value fits the log, an
        assumption is broken.
        """
        if self.contradiction:
            return "contradiction"
        each = {gap.stands(self.limit) for gap in self.gaps}
        if not each:
            return "no groups"
        return "above" if "above" in each else "within" if each == {"within"} else "not shown"

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        sure = f"with probability {1 - self.failure_probability:.6g} under the assumptions below"
        match self.verdict:
            case "within":
                rates = " and ".join(dict.fromkeys(gap.rate for gap in self.gaps))
                return (
                    f"Certified {sure}: the candidate's gap in {rates} between any two groups is "
                    f"at most {self.limit:g}."
                )
            case "above":
                shown = "; ".join(
                    f"{gap.name} lies between {gap.estimate.lower:+.3f} and "
                    f"{gap.estimate.upper:+.3f}"
                    for gap in self.gaps
                    if gap.stands(self.limit) == "above"
                )
                return f"Above the limit of {self.limit:g}, shown {sure}: {shown}."
            case "not shown":
                worst = max(self.gaps, key=lambda gap: gap.reach)
                told = (
                    f"Not shown: the log does not decide whether every gap is within "
                    f"{self.limit:g}; {worst.name} may reach {worst.reach:.3f}."
                )
                value = worst.estimate.value
                if value is None or abs(value) >= self.limit:
                    return told
                more = ((worst.reach - abs(value)) / (self.limit - abs(value))) ** 2
                return (
                    f"{told} If the estimate is right, a log of roughly "
                    f"{self.people * more:,.0f} people would show it."
                )
            case "contradiction":
                return CONTRADICTION
            case "no groups":
                return (
                    f"The cost holds {sure}; nothing is said about gaps, "
                    "for which two groups are needed."
                )

    def to_json(self) -> Json:
        """Turn it into plain JSON.

        Returns
        -------
        dict
            All figures, and the curves behind them.
        """
        return {
            "candidate": self.candidate,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "limit": self.limit,
            "delta": self.ledger.to_json(),
            "loss": self.loss.to_json(),
            "rates": [rate.to_json() for rate in self.rates],
            "gaps": [gap.to_json(self.limit) for gap in self.gaps],
            "people": self.people,
            "accepted": self.accepted,
            "open": self.open,
            "outside": self.outside,
            "support": self.support.to_json(),
            "assumptions": list(self.assumptions),
            "warnings": list(self.warnings),
            "course": self.course.to_json(),
        }
