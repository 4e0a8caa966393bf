"""A finding is an interval beside what is allowed; three verdicts, and no fourth.

Above only if the whole interval lies beyond the limit, within only if all of it lies inside: what
is neither is "not shown", a verdict about the evidence and not about the decisions.

`stands` is the one comparison of an interval with a limit: certificates, gates, pages, commands and
documents ask it, so what one of them says no other contradicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evenhand.shares import require_least_ratio, require_limit

Status = Literal["within", "above", "not shown"]

ROUNDING = 1e-9
"""How far a solver's rounding may carry an end beyond a limit."""


def stands(low: float, high: float, limit: float, *, at_least: bool = False) -> Status:
    """How an interval stands to a limit.

    With r = 1e-9 for rounding: within iff high <= limit + r, above iff low > limit + r; for a limit
    that is the least allowed, within iff low >= limit - r, above iff high < limit - r. An empty
    interval (low > high + r) shows nothing.

    Parameters
    ----------
    low, high : float
        The interval.
    limit : float
        What is allowed.
    at_least : bool, default False
        Whether the limit is the least that is allowed (a ratio), not the most (a gap).

    Returns
    -------
    {"within", "above", "not shown"}
        How it stands.

    Examples
    --------
    >>> stands(0.0, 0.05000000000000001, 0.05), stands(0.0, 0.0501, 0.05), stands(0.06, 0.1, 0.05)
    ('within', 'not shown', 'above')
    """
    if low > high + ROUNDING:
        return "not shown"
    if at_least:
        if low >= limit - ROUNDING:
            return "within"
        return "above" if high < limit - ROUNDING else "not shown"
    if high <= limit + ROUNDING:
        return "within"
    return "above" if low > limit + ROUNDING else "not shown"


def size_of(low: float, high: float) -> tuple[float, float]:
    """Between which values |gap| lies if the gap lies between two ends.

    The ends are max(0, low, -high) and max(|low|, |high|). If no value of the gap is consistent
    with the data (low > high), nothing is claimed: 0 to 1.

    >>> size_of(-0.04, 0.01), size_of(0.02, 0.07), size_of(0.02, 0.01)
    ((0.0, 0.04), (0.02, 0.07), (0.0, 1.0))
    """
    if low > high + ROUNDING:
        return 0.0, 1.0
    return max(0.0, low, -high), max(abs(low), abs(high))


@dataclass(frozen=True)
class Finding:
    """An interval beside what is allowed.

    Parameters
    ----------
    what : str
        What was measured.
    low, high : float
        Its interval.
    limit : float
        What is allowed.
    at_least : bool
        Whether the limit is the least that is allowed (a ratio), not the most (a gap).

    Examples
    --------
    >>> Finding("gap FPR b minus a", 0.01, 0.04, 0.05).status
    'within'
    >>> Finding("ratio SR b / a", 0.61, 0.78, 0.8, at_least=True).status
    'above'
    """

    what: str
    low: float
    high: float
    limit: float
    at_least: bool = False

    def __post_init__(self) -> None:
        if self.at_least:
            require_least_ratio(self.limit)
        else:
            require_limit(self.limit)

    @property
    def status(self) -> Status:
        """Within, above (beyond what is allowed), or not shown."""
        return stands(self.low, self.high, self.limit, at_least=self.at_least)

    @property
    def sentence(self) -> str:
        """The finding in words."""
        asked = "at least" if self.at_least else "at most"
        shown = {"within": "holds", "above": "does not hold", "not shown": "is not shown"}
        return (
            f"{self.what} lies between {self.low:.4f} and {self.high:.4f}; {asked} "
            f"{self.limit:g} {shown[self.status]}"
        )


def judge(findings: Sequence[Finding]) -> Status:
    """The verdict on all findings together.

    Parameters
    ----------
    findings : sequence of Finding
        The findings; none show nothing.

    Returns
    -------
    {"within", "above", "not shown"}
        Above if one finding is; within if all are; else not shown.

    Examples
    --------
    >>> judge([Finding("a", 0.0, 0.04, 0.05), Finding("b", 0.0, 0.2, 0.05)])
    'not shown'
    """
    statuses = {one.status for one in findings}
    if "above" in statuses:
        return "above"
    return "within" if statuses == {"within"} else "not shown"
