"""One row of the table, and how times are compared: interleaved repeats, ratios, medians."""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Record:
    """One promise and what was measured. `ratios` are the single measurements behind the figure, `detail` the parts behind them."""

    row: str
    target: str
    figure: str
    passed: bool
    ratios: tuple[float, ...] = ()
    note: str = ""
    detail: tuple[dict[str, Any], ...] = field(default=(), repr=False)

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
    """Seconds of wall clock, and the answer."""
    gc.collect()
    start = time.perf_counter()
    answer = action()
    return time.perf_counter() - start, answer


def interleaved(slow: Callable[[], Any], fast: Callable[[], Any], repeats: int, per_slow: int = 5) -> tuple[float, ...]:
    """slow / fast, once per repeat: slow is run once, fast `per_slow` times (their median) right after it."""
    ratios = []
    for _ in range(repeats):
        one, _ = clock(slow)
        ratios.append(one / median([clock(fast)[0] for _ in range(per_slow)]))
    return tuple(ratios)


def median(values: Sequence[float]) -> float:
    """The middle."""
    return float(np.median(np.asarray(values)))


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean for ratios: a case twice as fast and one half as fast cancel."""
    return float(np.exp(np.log(np.asarray(ratios)).mean()))
