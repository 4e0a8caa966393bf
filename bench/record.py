"""One row of the table, and how times are compared: both sides in turns, ratios, medians."""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Record:
    """One promise and what was measured.

    `ratios` are the single measurements behind the figure, `detail` the parts behind them; `error`
    is the traceback of a row that could not be measured.
    """

    row: str
    target: str
    figure: str
    holds: bool
    ratios: tuple[float, ...] = ()
    note: str = ""
    detail: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    error: str | None = None

    @classmethod
    def of_failure(cls, row: str, what: str, error: str) -> "Record":
        """A row that failed."""
        return cls(row, "", "failed", False, note=what, error=error)

    @property
    def spread(self) -> str:
        """Smallest and largest single measurement."""
        return f"{number(min(self.ratios))} .. {number(max(self.ratios))}" if self.ratios else ""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "spread": self.spread}


def number(value: float) -> str:
    """Three digits, no exponent where a person can do without."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def clock(action: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, and the answer.

    Everything here runs in one thread, so on an idle machine this is the wall clock. On a busy one
    the wall clock flatters whoever is short: a run of a millisecond is seldom interrupted, one of
    seconds always is.
    """
    gc.collect()
    start = time.process_time()
    answer = action()
    return time.process_time() - start, answer


def median(values: Sequence[float]) -> float:
    """The middle."""
    return float(np.median(np.asarray(values)))


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean for ratios: a case twice as fast and one half as fast cancel."""
    return float(np.exp(np.log(np.asarray(ratios)).mean()))
