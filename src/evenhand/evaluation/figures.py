"""What an evaluation says, as records: intervals, their course along the log, and the verdict."""

from dataclasses import dataclass
from typing import Any, Literal

from evenhand.contracts import Json
from evenhand.evaluation.support import Support
from evenhand.fairness.certificate import TOLERANCE
from evenhand.fairness.delta_ledger import DeltaLedger
from evenhand.words import FloatArray

Verdict = Literal["within", "above", "not shown", "contradiction", "no groups"]


@dataclass(frozen=True)
class Estimate:
    """A doubly robust estimate and the interval that contains the truth; None where nothing can be
    estimated.
    """

    value: float | None
    low: float
    high: float

    def to_json(self) -> Json:
        """Plain JSON."""
        return {"estimate": self.value, "low": self.low, "high": self.high}

    def describe(self, sign: str = "") -> str:
        """ "+0.031 [+0.002, +0.060]"."""
        told = "unknown" if self.value is None else f"{self.value:{sign}.3f}"
        return f"{told} [{self.low:{sign}.3f}, {self.high:{sign}.3f}]"


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

    def stands(self, limit: float) -> Verdict:
        """Where its interval lies: within the limit, wholly above it, or neither."""
        low, high = self.estimate.low, self.estimate.high
        if max(high, -low) <= limit + TOLERANCE:
            return "within"
        return "above" if low > limit + TOLERANCE or high < -limit - TOLERANCE else "not shown"


@dataclass(frozen=True, eq=False)
class EstimateCourse:
    """Estimates and intervals along the log: rows (T,); gaps (T, gaps, 3) and loss (T, 3) as
    estimate, low, high.
    """

    rows: FloatArray
    gaps: FloatArray
    loss: FloatArray

    def to_json(self) -> Json:
        """Plain JSON; NaN becomes null."""
        plain = {"rows": self.rows, "gaps": self.gaps, "loss": self.loss}
        return {name: _plain(value.tolist()) for name, value in plain.items()}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a log says about a candidate policy, with probability 1 - delta over all rows and
    figures at once.
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
        found = [gap.stands(self.limit) for gap in self.gaps]
        if not found:
            return "no groups"
        return (
            "above" if "above" in found else "within" if set(found) == {"within"} else "not shown"
        )

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        return _SENTENCES[self.verdict](self)

    def to_json(self) -> Json:
        """Plain JSON."""
        return {
            "candidate": self.candidate,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "limit": self.limit,
            "delta": self.ledger.to_json(),
            "loss": self.loss.to_json(),
            "rates": [
                {"rate": r.rate, "group": r.group, "labelled": r.labelled, "effective": r.effective}
                | r.estimate.to_json()
                for r in self.rates
            ],
            "gaps": [
                {
                    "rate": g.rate,
                    "group": g.group,
                    "reference": g.reference,
                    "stands": g.stands(self.limit),
                }
                | g.estimate.to_json()
                for g in self.gaps
            ],
            "people": self.people,
            "accepted": self.accepted,
            "open": self.open,
            "outside": self.outside,
            "support": self.support.to_json(),
            "assumptions": list(self.assumptions),
            "warnings": list(self.warnings),
            "course": self.course.to_json(),
        }


def _plain(value: Any) -> Any:
    return (
        [_plain(part) for part in value]
        if isinstance(value, list)
        else None
        if value != value
        else value
    )


def _certainty(found: Evaluation) -> str:
    return f"with probability {1 - found.failure_probability:.6g} under the assumptions below"


def _within(found: Evaluation) -> str:
    rates = " and ".join(dict.fromkeys(gap.rate for gap in found.gaps))
    return f"Certified {_certainty(found)}: the candidate's gap in {rates} between any two groups is at most {found.limit:g}."


def _above(found: Evaluation) -> str:
    gaps = [gap for gap in found.gaps if gap.stands(found.limit) == "above"]
    told = "; ".join(
        f"{gap.name} lies between {gap.estimate.low:+.3f} and {gap.estimate.high:+.3f}"
        for gap in gaps
    )
    return f"Above the limit of {found.limit:g}, shown {_certainty(found)}: {told}."


def _not_shown(found: Evaluation) -> str:
    worst = max(found.gaps, key=lambda gap: max(gap.estimate.high, -gap.estimate.low))
    reach, value = max(worst.estimate.high, -worst.estimate.low), worst.estimate.value
    told = f"Not shown: the log does not decide whether every gap is within {found.limit:g}; {worst.name} may reach {reach:.3f}."
    if value is None or abs(value) >= found.limit:
        return told
    more = ((reach - abs(value)) / (found.limit - abs(value))) ** 2
    return f"{told} If the estimate is right, a log of roughly {found.people * more:,.0f} people would show it."


def _contradiction(_: Evaluation) -> str:
    return (
        "Nothing is claimed: no value is consistent with the log, so an assumption below is broken (a population that changed, "
        "propensities that are not those of the draws)."
    )


def _no_groups(found: Evaluation) -> str:
    return f"The cost holds {_certainty(found)}; nothing is said about gaps, for which two groups are needed."


_SENTENCES = {
    "within": _within,
    "above": _above,
    "not shown": _not_shown,
    "contradiction": _contradiction,
    "no groups": _no_groups,
}
