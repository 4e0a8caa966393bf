"""A finding is an interval beside what is allowed; three verdicts, and no fourth.

Above only if the whole interval lies beyond the limit, within only if all of it lies inside: what
is neither is "not shown", a verdict about the evidence and not about the decisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evenhand.shares import require_least_ratio, require_limit

Status = Literal["within", "above", "not shown"]


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
        if self.at_least:
            if self.low >= self.limit:
                return "within"
            return "above" if self.high < self.limit else "not shown"
        if self.high <= self.limit:
            return "within"
        return "above" if self.low > self.limit else "not shown"

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
