"""Two small drawings as inline SVG: a band over time against a limit, and lines over time. Colours
come from the page's classes.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 460.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 12.0, 12.0, 30.0


@dataclass(frozen=True)
class Axes:
    """From (time, value) to the page."""

    first: float
    last: float
    low: float
    high: float

    def x(self, at: float) -> float:
        """Where a time lies."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - self.first) / max(self.last - self.first, 1e-9)

    def y(self, value: float) -> float:
        """Where a value lies; what is outside is drawn at the border."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)


def steps(axes: Axes, times: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Corners of a step function: each value holds until the next time; the last one until the end."""
    corners = []
    for at, until, value in zip(times, [*times[1:], axes.last], values, strict=True):
        corners += [(axes.x(at), axes.y(value)), (axes.x(until), axes.y(value))]
    return corners


def _points(corners: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)


def _frame(axes: Axes, ticks: Sequence[float], words: Callable[[float], str]) -> list[str]:
    parts = []
    for tick in ticks:
        y = axes.y(tick)
        parts.append(
            f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        )
        parts.append(
            f'<text class="tick end" x="{LEFT - 6}" y="{y + 4:.1f}">{escape(words(tick))}</text>'
        )
    for at, anchor in ((axes.first, ""), (axes.last, " end")):
        parts.append(
            f'<text class="tick{anchor}" x="{axes.x(at):.1f}" y="{HEIGHT - 8}">{_day(at)}</text>'
        )
    return parts


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def _svg(name: str, title: str, parts: Sequence[str]) -> Markup:
    head = f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-labelledby="{name}"><title id="{name}">'
    return Markup(f"{head}{escape(title)}</title>{''.join(parts)}</svg>")


def gap_chart(
    times: Sequence[float], low: Sequence[float], high: Sequence[float], limit: float, now: float
) -> Markup:
    """The band in which the gap of the deployed policy is certified to lie, and the two lines that
    it may not cross.
    """
    top = max(1.35 * limit, 1e-3)
    axes = Axes(times[0], max(now, times[-1] + 1.0), -top, top)
    upper, lower = steps(axes, times, high), steps(axes, times, low)
    edges = "".join(
        f'<line class="limit" x1="{LEFT}" y1="{axes.y(v):.1f}" x2="{WIDTH - RIGHT}" y2="{axes.y(v):.1f}"/>'
        for v in (limit, -limit)
    )
    words = f'<text class="limit-word end" x="{WIDTH - RIGHT - 4}" y="{axes.y(limit) - 6:.1f}">limit {limit:g}</text>'
    band = f'<polygon class="band" points="{_points([*upper, *reversed(lower)])}"/>'
    lines = "".join(f'<polyline class="edge" points="{_points(line)}"/>' for line in (upper, lower))
    frame = _frame(axes, (-limit, 0.0, limit), lambda v: f"{v:+.2g}" if v else "0")
    title = (
        f"Gap of the deployed policy: between {low[-1]:+.3f} and {high[-1]:+.3f}, limit {limit:g}"
    )
    return _svg("gap-title", title, [*frame, band, lines, edges, words])


def share_chart(
    times: Sequence[float], lines: Sequence[tuple[str, str, Sequence[float]]], now: float
) -> Markup:
    """Shares between 0 and 1 over time; a line is (class, name, values), and differs from its
    neighbours by its dashes too.
    """
    axes = Axes(times[0], max(now, times[-1] + 1.0), 0.0, 1.0)
    frame = _frame(axes, (0.0, 0.5, 1.0), lambda v: f"{v:.0%}")
    drawn = [
        f'<polyline class="line {kind}" points="{_points(steps(axes, times, values))}"/>'
        for kind, _, values in lines
    ]
    title = ", ".join(f"{name} {values[-1]:.1%}" for _, name, values in lines)
    return _svg("share-title", title, [*frame, *drawn])
