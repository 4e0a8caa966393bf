"""What the settings of the certified algorithm mean, and the checks that they make sense: each
function takes the settings that it looks at.
"""

from math import isfinite
from typing import Literal

import numpy as np

from evenhand.algorithms.certified.quota import Quota
from evenhand.algorithms.own_parts import can_be_enumerated, is_own
from evenhand.algorithms.settings import require_choice, require_number
from evenhand.contracts import GroupUse, HypothesisClass, Rate
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import require_certifiable
from evenhand.hypotheses import ScoreThresholds
from evenhand.shares import require_share

FIRST_ROUNDS = 100
FIRST_NOMINATED = 1000
"""Rounds of the first epoch; rules that are chosen by labels need more of them than rules that are
judged as they are."""
MOST_LOG_SIZE = 12.0
"""A union bound is taken over classes up to this ln|H|."""
CUTS = 64
"""Cuts per column, for stumps."""


def must_nominate(hypotheses: HypothesisClass) -> bool:
    """Whether rules are nominated one by one: nobody can list the members of the class, or they
    are too many to pay for a union over them.
    """
    size = hypotheses.log_size
    if not hypotheses.exact or (isfinite(size) and size > MOST_LOG_SIZE):
        return True
    if is_own(hypotheses):
        return can_be_enumerated(hypotheses) is False
    return isinstance(hypotheses, ScoreThresholds) and hypotheses.per_group


def first_length(horizon: int | None, *, nominates: bool) -> int:
    """Rounds of the first epoch."""
    if not nominates:
        return FIRST_ROUNDS
    if horizon is None:
        return FIRST_NOMINATED
    return int(np.clip(horizon // 100, FIRST_ROUNDS, FIRST_NOMINATED))


def bound_or_none(given: float | None, none: float) -> float | None:
    """A cap of 1 and a floor of 0 are none."""
    return None if given is None or given == none else float(given)


def require_audits(audit_rate: float | Literal["auto"], audit_budget: float | None) -> None:
    """How often, and how many people, the audit coin may accept."""
    if not (isinstance(audit_rate, str) and audit_rate == "auto"):
        require_share("audit_rate", audit_rate, "(0, 1]", '"auto" chooses it.')
    if audit_budget is not None:
        requirement = "it is the number of bad accepts that audits may cost, finite and at least 1"
        require_number(
            "audit_budget",
            audit_budget,
            lambda many: many >= 1,
            requirement,
            "None sets no budget; without a single audit nothing can be certified.",
        )


def require_maturity(maturity: float | None) -> None:
    """How long labels take."""
    if maturity is not None:
        requirement = "a window is a positive, finite span of time"
        hint = "None says that labels come before the next decision."
        require_number("maturity", maturity, lambda window: window > 0, requirement, hint)


def require_false_alarm(drift_false_alarm: float) -> None:
    """How often the drift tests may be wrong."""
    require_share("drift_false_alarm", drift_false_alarm, "(0, 1)", "0.001 is the default.")


def require_shares(
    accept_at_most: float | None,
    accept_at_least: float | None,
    audit_rate: float | Literal["auto"],
) -> None:
    """Cap, floor and audit coin leave room for each other."""
    if accept_at_most is not None:
        hint = "0.2 accepts one person in five at most; None and 1 set no cap."
        require_share("accept_at_most", accept_at_most, "(0, 1]", hint)
    most = 1.0 if accept_at_most is None else float(accept_at_most)
    if accept_at_least is not None:
        require_share("accept_at_least", accept_at_least, "[0, 1]", "None and 0 set no floor.")
        if accept_at_least > most:
            raise InvalidInput(
                f"accept_at_least is {accept_at_least!r}, and accept_at_most is {most:g}",
                requirement="the floor lies at or below the cap",
                hint="lower accept_at_least, or raise accept_at_most.",
                argument="accept_at_least",
            )
    if audit_rate != "auto" and audit_rate > most:
        raise InvalidInput(
            f"audit_rate is {audit_rate!r}, and accept_at_most is {most:g}",
            requirement="the audit coin alone may not accept more than the cap",
            hint=f'use audit_rate="auto", or one of at most {most:g}.',
            argument="audit_rate",
        )


def require_quota(quota: object) -> None:
    """A Quota, if there is one."""
    if quota is not None and not isinstance(quota, Quota):
        raise InvalidInput(
            f"quota is {quota!r}",
            requirement="it says how many people may be accepted in each period",
            hint="use evenhand.Quota(count, period), for example Quota(50, period=1.0).",
            argument="quota",
        )


def require_keep(keep: str, quota: Quota | None) -> None:
    """Where counts alone are kept, nothing may look at people one by one."""
    require_choice("keep", keep, ("rows", "counts"))
    if quota is not None and keep == "counts":
        raise InvalidInput(
            'keep is "counts", and a quota looks at people one by one.',
            requirement="where counts alone are kept, every round is counted once",
            hint='use keep="rows".',
            argument="keep",
        )


def require_fitting_class(
    hypotheses: HypothesisClass, group_use: GroupUse, rates: tuple[Rate, ...]
) -> None:
    """Nobody sees the group unasked, and the rates can be certified."""
    if hypotheses.uses_group and group_use != "decide":
        raise InvalidInput(
            f'{type(hypotheses).__name__} looks at the group, but group_use is "{group_use}".',
            hint='choose group_use="decide".',
            argument="group_use",
        )
    require_certifiable(rates)
