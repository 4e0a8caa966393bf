"""The launch plan: a record of what a launch is expected to cost and to bring, and the sentences
that say so.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Literal

import numpy as np

from evenhand.learners.certified.forecast import RateForecast, sentences
from evenhand.words import FloatArray

Answer = Literal["worth it", "close call", "not worth it", "nothing to gain"]

MARGIN = 0.80
"""Bands hold the middle 80% of the simulated lives."""


@dataclass(frozen=True)
class Spread:
    """A figure over the simulated lives: its mean, and the band that holds the middle 80% of them."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: FloatArray) -> "Spread":
        """Mean and band."""
        low, high = np.quantile(values, [(1 - MARGIN) / 2, (1 + MARGIN) / 2])
        return cls(float(np.mean(values)), float(low), float(high))

    def describe(self) -> str:
        """ "1,234 (1,100 to 1,400)"."""
        return f"{self.mean:,.0f} ({self.low:,.0f} to {self.high:,.0f})".replace(
            "-", "\N{MINUS SIGN}"
        )


@dataclass(frozen=True, eq=False)
class Curve:
    """A figure over rounds, with its band over the simulated lives."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, lives: FloatArray) -> "Curve":
        """lives: (lives, rounds)."""
        low, high = np.quantile(lives, [(1 - MARGIN) / 2, (1 + MARGIN) / 2], axis=0)
        return cls(lives.mean(axis=0), low, high)

    def to_json(self) -> dict[str, list[float]]:
        """Three lists."""
        return {"mean": self.mean.tolist(), "low": self.low.tolist(), "high": self.high.tolist()}


@dataclass(frozen=True)
class Milestone:
    """The round from which a share of the learned policy's full weight is deployed for good: median
    and band over lives.

    None: not within the horizon.
    """

    share: float
    round: int | None
    early: int | None
    late: int | None
    reached: int
    lives: int

    @classmethod
    def of(cls, share: float, rounds: FloatArray, weights: FloatArray) -> "Milestone":
        """weights: (lives, rounds), in units of the full weight."""
        ends = np.array([_from_then_on(rounds, row >= share - 1e-9) for row in weights])
        early, median, late = np.quantile(
            ends, [(1 - MARGIN) / 2, 0.5, (1 + MARGIN) / 2], method="inverted_cdf"
        )
        return cls(
            share,
            _whole(median),
            _whole(early),
            _whole(late),
            int(np.isfinite(ends).sum()),
            len(ends),
        )

    def describe(self) -> str:
        """ "after 12,000 people (9,000 to 20,000)"."""
        if self.round is None:
            return f"not within the horizon ({self.reached} of {self.lives} simulated lives)"
        return f"after {self.round:,} people ({self.early:,} to {'beyond the horizon' if self.late is None else f'{self.late:,}'})"


@dataclass(frozen=True, eq=False)
class Course:
    """One way to decide, simulated. cost: cumulative; regret: cost beyond the best policy within
    the limit, at the horizon.

    infeasible: why it cannot run at this horizon, or None; then there are no figures. promised:
    whether its own bound covers the limit.
    """

    name: str
    explored: float
    promised: bool
    infeasible: str | None = None
    regret: Spread | None = None
    total: Spread | None = None
    worst_gap: float | None = None
    cost: Curve | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "name": self.name,
            "explored": self.explored if isfinite(self.explored) else None,
            "promised": self.promised,
            "infeasible": self.infeasible,
            "regret": None if self.regret is None else asdict(self.regret),
            "total_cost": None if self.total is None else asdict(self.total),
            "worst_gap": self.worst_gap,
            "cost": None if self.cost is None else self.cost.to_json(),
        }


@dataclass(frozen=True, eq=False)
class LaunchPlan:
    """What a launch of the certified learner is expected to cost and to bring, by simulation,
    before anybody is decided about.

    full_weight: the learned rules' weight in the best policy within the limit (the rest of it are
    constants). weight, audit, gap: over `rounds`, the share of that weight that is certified, the
    share of people whom the audit coin accepts, and the true |gap|. Costs are in units of the
    prices (errors, if both are 1); constant_cost, best_cost and free_cost (no limit) per person.
    forecast: what the learner itself would expect of the rounds ahead, by the formula by which it
    audits; everything else is simulated.
    """

    limit: float
    failure_probability: float
    horizon: int
    per_day: float | None
    population: Mapping[str, Any]
    prices: tuple[float, float]
    lives: int
    constant: str
    constant_cost: float
    best_cost: float
    free_cost: float
    full_weight: float
    audited: Spread
    audited_bad: Spread
    bill: Spread
    bill_beyond_constant: Spread
    half: Milestone
    full: Milestone
    saving: Spread
    saving_share: float
    break_even: int | None
    final_share: float
    answer: Answer
    verdict: str
    advice: tuple[str, ...]
    rounds: FloatArray
    weight: Curve
    audit: Curve
    gap: Curve
    courses: tuple[Course, ...]
    forecast: tuple[RateForecast, ...] = ()

    @property
    def outlook(self) -> tuple[str, ...]:
        """The forecast in sentences: when half of the weight is learned, or which rate lacks how
        many labelled people.
        """
        return sentences(self.forecast)

    @property
    def worth_it(self) -> bool:
        """Whether the launch is expected to be cheaper than the best constant."""
        return self.answer == "worth it"

    @property
    def certified(self) -> Course:
        """The certified learner's course."""
        return self.courses[0]

    @property
    def unit(self) -> str:
        """What costs are counted in."""
        return "errors" if self.prices == (1.0, 1.0) else "units of cost"

    def days(self, people: float) -> str:
        """ "12 days", where the volume per day is known; else nothing."""
        return "" if self.per_day is None else f"{people / self.per_day:,.0f} days"

    def describe(self) -> str:
        """The plan in words."""
        return "\n".join(_lines(self))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, curves included."""
        plain = (
            "limit", "failure_probability", "horizon", "per_day", "lives", "constant", "constant_cost", "best_cost", "free_cost",
            "full_weight", "saving_share", "break_even", "final_share", "answer", "verdict",
        )  # fmt: skip
        records = (
            "audited",
            "audited_bad",
            "bill",
            "bill_beyond_constant",
            "half",
            "full",
            "saving",
        )
        return {
            **{name: getattr(self, name) for name in plain},
            "population": dict(self.population),
            "prices": {"false_accept": self.prices[0], "false_reject": self.prices[1]},
            **{name: asdict(getattr(self, name)) for name in records},
            "advice": list(self.advice),
            "rounds": self.rounds.tolist(),
            **{name: getattr(self, name).to_json() for name in ("weight", "audit", "gap")},
            "courses": [course.to_json() for course in self.courses],
            "forecast": [_finite(asdict(one)) for one in self.forecast],
            "outlook": list(self.outlook),
            "assumptions": list(ASSUMPTIONS),
        }


ASSUMPTIONS = (
    "a plan is an expectation, not a certificate: it is as good as the numbers it was given",
    "people arrive independently from one population that does not change",
    "labels of accepted people arrive before the next epoch; a maturity window delays every milestone by its length",
    "bands hold the middle 80% of the simulated lives",
)


def _lines(plan: LaunchPlan) -> list[str]:
    when = f" ({plan.days(plan.horizon)} at {plan.per_day:,.0f} a day)" if plan.per_day else ""
    constant, best = plan.horizon * plan.constant_cost, plan.horizon * plan.best_cost
    more = (
        ""
        if plan.constant.startswith("accepting")
        else f", {plan.bill_beyond_constant.describe()} beyond {plan.constant}"
    )
    return [
        plan.verdict,
        *plan.advice,
        *(f"Forecast: {text}" for text in plan.outlook),
        "",
        f"The promise: |gap| at most {plan.limit:g} at every round, certified with probability at least "
        f"{1 - plan.failure_probability:g} under its assumptions.",
        f"Volume: {plan.horizon:,} people{when}.",
        f"Accepted by the audit coin, whatever their features: {plan.audited.describe()} people.",
        f"  of them with a bad outcome: {plan.audited_bad.describe()}; at {plan.prices[0]:g} each a bill of {plan.bill.describe()}{more}.",
        f"Half of the learned policy's weight is certified {plan.half.describe()}, 95% of it {plan.full.describe()}.",
        f"Over the horizon {plan.constant} costs {constant:,.0f}, the best policy within the limit {best:,.0f}. Regret beyond that:",
        *(_course_line(course) for course in plan.courses),
        f"Simulated on {plan.population['source']}; a class of {plan.population['rules']:,} rules; {plan.lives} lives.",
        *(f"  - {text}" for text in ASSUMPTIONS),
    ]


def _course_line(course: Course) -> str:
    if course.infeasible is not None or course.regret is None:
        return f"  {course.name}: infeasible; {course.infeasible}."
    return f"  {course.name}: {course.regret.describe()}; largest true gap in simulation {course.worst_gap:.3f}."


def _from_then_on(rounds: FloatArray, holds: Any) -> float:
    """The first round from which on it holds to the end."""
    if not holds[-1]:
        return float("inf")
    broken = np.flatnonzero(~holds)
    return float(rounds[0 if len(broken) == 0 else broken[-1] + 1])


def _finite(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that are too large to be counted become None."""
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in fields.items()
    }


def _whole(value: float) -> int | None:
    return int(value) if isfinite(value) else None
