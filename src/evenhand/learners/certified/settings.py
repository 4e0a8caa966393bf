"""The laws of a certified learner's settings, and which bound covers which class."""

from typing import Any

import numpy as np

from evenhand.contracts import HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.learners.certified.run import AUDIT_BOUNDS, MOST_LOG_SIZE
from evenhand.learners.settings import (
    require_choice,
    require_delta,
    require_gap,
    require_horizon,
    require_number,
)


def require_settings(
    allowed_gap: Any,
    failure_probability: Any,
    bound: Any,
    audit_rate: Any,
    audit_budget: Any,
    fallback: Any,
    maturity: Any,
    horizon: Any,
    drift_false_alarm: Any,
) -> None:
    """What the certified learner alone is told."""
    require_gap(allowed_gap)
    require_delta(failure_probability)
    if bound is not None:
        require_choice("bound", bound, ("betting", "nominate", *AUDIT_BOUNDS))
    if not (isinstance(audit_rate, str) and audit_rate == "auto"):
        law = 'it is "auto" or a probability in (0, 1]'
        require_number("audit_rate", audit_rate, lambda rate: 0 < rate <= 1, law)
    if audit_budget is not None:
        law = "it is the number of bad accepts that audits may cost, finite and at least 0"
        require_number(
            "audit_budget", audit_budget, lambda budget: budget >= 0, law, "None sets no budget."
        )
    require_choice("fallback", fallback, ("accept", "reject"))
    if maturity is not None:
        law = "a window is a positive, finite span of time"
        hint = "None says that labels come before the next decision."
        require_number("maturity", maturity, lambda window: window > 0, law, hint)
    if horizon is not None:
        require_horizon(horizon)
    law = "the probability of suspending without a reason lies strictly between 0 and 1"
    require_number(
        "drift_false_alarm",
        drift_false_alarm,
        lambda alarm: 0 < alarm < 1,
        law,
        "0.001 is the default.",
    )


# which bound covers which class


def _has_cuts(hypotheses: HypothesisClass) -> bool:
    """Thresholds and stumps: infinitely many, but a grid of cuts from the first rounds is a finite
    class for all later ones.
    """
    return hypotheses.exact and not np.isfinite(hypotheses.log_size)


def too_rich(hypotheses: HypothesisClass) -> bool:
    """Whether no union over the class can be paid: it cannot be enumerated, or it is too large."""
    return not hypotheses.exact or (
        np.isfinite(hypotheses.log_size) and hypotheses.log_size > MOST_LOG_SIZE
    )


def require_bound(bound: str, hypotheses: HypothesisClass) -> None:
    """InvalidInput for a bound that does not cover the class."""
    name = type(hypotheses).__name__
    if bound != "nominate" and too_rich(hypotheses):
        raise InvalidInput(
            f"{name} is too rich for a union over its members, which the bound {bound!r} pays.",
            hint='use bound="nominate".',
        )
    if bound == "dkw" and not _has_cuts(hypotheses):
        raise InvalidInput(
            f"the bound 'dkw' covers thresholds on a column, and {name} may hold any rules.",
            hint='use bound="betting", or a class of thresholds.',
        )
