"""What the settings of the certified learner must be, and which bound covers which class."""

import numpy as np

from evenhand.contracts import HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.learners.lives import AUDIT_BOUNDS, MOST_LOG_SIZE


def _has_cuts(hypotheses: HypothesisClass) -> bool:
    """Thresholds and stumps: infinitely many, but a grid of cuts from the first rounds is a finite class for all later ones."""
    return hypotheses.exact and not np.isfinite(hypotheses.log_size)


def too_rich(hypotheses: HypothesisClass) -> bool:
    """Whether no union over the class can be paid: it cannot be enumerated, or it is too large."""
    return not hypotheses.exact or (np.isfinite(hypotheses.log_size) and hypotheses.log_size > MOST_LOG_SIZE)


def require_bound(bound: str, hypotheses: HypothesisClass) -> None:
    """InvalidInput for an unknown bound, or one that does not cover the class."""
    name = type(hypotheses).__name__
    if bound not in ("betting", "nominate", *AUDIT_BOUNDS):
        raise InvalidInput(f"bound is {bound!r}; it is one of betting, nominate, {', '.join(AUDIT_BOUNDS)}.")
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


def require_settings(
    allowed_gap: float,
    audit_rate: float | str,
    audit_budget: float | None,
    fallback: str,
    maturity: float | None,
    horizon: int | None,
) -> None:
    """InvalidInput for a number or name that makes no sense."""
    if not 0 < allowed_gap <= 1:
        raise InvalidInput(
            f"allowed_gap is {allowed_gap}; the gap that may never be exceeded is a number in (0, 1].",
            hint="0 can be kept by constants alone; choose a small positive number, and let evenhand.plan say what it costs.",
        )
    if audit_rate != "auto" and (isinstance(audit_rate, str) or not 0 < audit_rate <= 1):
        raise InvalidInput(f'audit_rate is {audit_rate!r}; it is "auto" or a probability in (0, 1].')
    if audit_budget is not None and audit_budget < 0:
        raise InvalidInput(
            f"audit_budget is {audit_budget}; it is the number of bad accepts that audits may cost, at least 0."
        )
    if fallback not in ("accept", "reject"):
        raise InvalidInput(f'fallback is {fallback!r}; it is "accept" or "reject".')
    if maturity is not None and not maturity > 0:
        raise InvalidInput(f"maturity is {maturity}; a window is a positive span of time.")
    if horizon is not None and horizon < 1:
        raise InvalidInput(f"horizon is {horizon}; it is a number of rounds, or None if unknown.")
