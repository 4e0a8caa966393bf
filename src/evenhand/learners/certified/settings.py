"""What a certified learner is told, and which bound covers which class."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from evenhand.contracts import FixedCountBound, GroupUse, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.hypotheses.estimator import Estimator, as_class
from evenhand.hypotheses.models import require_skops
from evenhand.learners.certified.intervals import AUDIT_BOUNDS
from evenhand.learners.certified.run import MOST_LOG_SIZE, Guarantee
from evenhand.learners.settings import (
    require_choice,
    require_delta,
    require_gap,
    require_horizon,
    require_number,
)
from evenhand.words import Group, Prices

BoundName = Literal["betting", "nominate", "hoeffding", "kl", "binomial", "dkw"]


@dataclass(frozen=True, eq=False)
class CertifiedSettings:
    """The arguments of a `CertifiedLearner`, and what must be true of them."""

    hypotheses: HypothesisClass
    rate: RateLike
    allowed_gap: float
    failure_probability: float
    horizon: int | None
    bound: BoundName | FixedCountBound | None
    prices: Prices | None
    group_use: GroupUse
    audit_rate: float | Literal["auto"]
    audit_budget: float | None
    maturity: float | None
    fallback: Literal["accept", "reject"]
    groups: Sequence[Group] | None
    drift_false_alarm: float
    seed: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "hypotheses", as_class(self.hypotheses))
        if isinstance(self.hypotheses, Estimator):
            require_skops()
        require_gap(self.allowed_gap)
        require_delta(self.failure_probability)
        if isinstance(self.bound, FixedCountBound):
            if self.bound.name in ("betting", "nominate", *AUDIT_BOUNDS):
                raise InvalidInput(
                    f"the bound of your own is called {self.bound.name!r}, as one of evenhand's "
                    "is.",
                    hint="give it another name, by which certificates tell them apart.",
                )
        elif self.bound is not None:
            require_choice("bound", self.bound, ("betting", "nominate", *AUDIT_BOUNDS))
        if not (isinstance(self.audit_rate, str) and self.audit_rate == "auto"):
            law = 'it is "auto" or a probability in (0, 1]'
            require_number("audit_rate", self.audit_rate, lambda rate: 0 < rate <= 1, law)
        if self.audit_budget is not None:
            law = "it is the number of bad accepts that audits may cost, finite and at least 0"
            none = "None sets no budget."
            require_number("audit_budget", self.audit_budget, lambda many: many >= 0, law, none)
        require_choice("fallback", self.fallback, ("accept", "reject"))
        if self.maturity is not None:
            law = "a window is a positive, finite span of time"
            hint = "None says that labels come before the next decision."
            require_number("maturity", self.maturity, lambda window: window > 0, law, hint)
        if self.horizon is not None:
            require_horizon(self.horizon)
        law = "the probability of suspending without a reason lies strictly between 0 and 1"
        hint, alarm = "0.001 is the default.", self.drift_false_alarm
        require_number("drift_false_alarm", alarm, lambda share: 0 < share < 1, law, hint)
        self._require_fitting_class()

    def _require_fitting_class(self) -> None:
        hypotheses, name = self.hypotheses, type(self.hypotheses).__name__
        if hypotheses.uses_group and self.group_use != "decide":
            raise InvalidInput(
                f'{name} looks at the group, but group_use is "{self.group_use}".',
                hint='choose group_use="decide".',
            )
        as_rates(self.rate)
        if self.bound not in (None, "nominate") and self._too_rich:
            raise InvalidInput(
                f"{name} is too rich for a union over its members, which the bound "
                f"{self.bound_name!r} pays.",
                hint='use bound="nominate".',
            )
        # thresholds and stumps are infinitely many, but a grid of cuts from the first rounds is a
        # finite class for all later ones
        if self.bound == "dkw" and not (hypotheses.exact and not isfinite(hypotheses.log_size)):
            raise InvalidInput(
                f"the bound 'dkw' covers thresholds on a column, and {name} may hold any rules.",
                hint='use bound="betting", or a class of thresholds.',
            )

    @property
    def _too_rich(self) -> bool:
        """Whether no union over the class can be paid: it cannot be enumerated, or is too large."""
        size = self.hypotheses.log_size
        return not self.hypotheses.exact or (isfinite(size) and size > MOST_LOG_SIZE)

    @property
    def bound_name(self) -> str:
        """The name of the bound; by default the one that covers the class."""
        if self.bound is None:
            return "nominate" if self._too_rich else "betting"
        return self.bound.name if isinstance(self.bound, FixedCountBound) else self.bound

    @property
    def fitted(self) -> bool:
        """Whether hypotheses are fitted and nominated one by one."""
        return self.bound_name == "nominate"

    def guarantee(self, seed: int) -> Guarantee:
        """What is guaranteed."""
        return Guarantee(
            rates=as_rates(self.rate),
            limit=float(self.allowed_gap),
            failure_probability=self.failure_probability,
            bound=self.bound_name,
            group_use=self.group_use,
            maturity=self.maturity,
            drift_false_alarm=self.drift_false_alarm,
            seed=seed,
        )
