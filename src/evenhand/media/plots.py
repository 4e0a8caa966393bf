"""The figures of a result, drawn with matplotlib in the style of all figures."""

from math import isfinite
from typing import TYPE_CHECKING, Literal

from evenhand.media.drawing import (
    ALARM,
    INK,
    LOOKS,
    MUTED,
    SPARE,
    STYLE,
    DrawOptions,
    Panel,
    draw_panels,
    inline_svg,
    logarithmic_rounds,
    looks,
    require,
    short_numbers,
)
from evenhand.result import Curves, Figure, Intervals, Points, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

MARKERS = "Dos^vP*X"
"""The shapes of points."""
PANEL = (6.4, 3.8)
"""Inches."""
FARTHEST_RATIO = 3.0
"""Ratios beyond it are drawn to the edge: some intervals have no end."""


def draw(figure: Figure, axes: "Axes | None" = None) -> "Axes":
    """Draw a figure.

    Parameters
    ----------
    figure : Intervals, Curves or Points
        The figure as data.
    axes : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    EvenhandError
        If matplotlib is not installed.
    """
    require("matplotlib")
    from matplotlib import pyplot, rc_context

    with rc_context(STYLE):
        if axes is None:
            axes = pyplot.subplots(figsize=size(figure), layout="constrained")[1]
        axes.spines[["top", "right"]].set_visible(False)
        _draw(figure, axes)
    return axes


def figure(result: Result) -> "Canvas":
    """All figures of a result side by side, to be saved.

    Parameters
    ----------
    result : Result
        What is said.

    Returns
    -------
    matplotlib.figure.Figure
        The figures.
    """
    sizes = [size(one) for one in result.figures]
    wide, high = (max(ends) for ends in zip(*sizes, strict=True))
    return draw_panels([panel(one) for one in result.figures], len(sizes), (wide, high))


def svg(figure: Figure, prefix: str) -> str:
    """A figure inside a page; `prefix` keeps its ids apart from those of others."""
    return inline_svg(panel(figure), size(figure), prefix)


def panel(figure: Figure) -> Panel:
    """A figure as a panel, with its words for people who cannot see it."""
    return Panel(lambda axes: _draw(figure, axes), f"{figure.title}: {figure.xlabel}")


def size(figure: Figure) -> tuple[float, float]:
    """Width and height in inches."""
    if not isinstance(figure, Intervals):
        return PANEL
    bars = figure.bars[: figure.most]
    longest = max((len(one.name) for one in bars), default=0)
    return 5.2 + min(longest, 44) * 0.065, 1.25 + 0.34 * max(len(bars), 1)


def _draw(figure: Figure, axes: "Axes") -> None:
    if isinstance(figure, Intervals):
        _draw_intervals(figure, axes)
    elif isinstance(figure, Curves):
        _draw_curves(figure, axes)
    else:
        _draw_points(figure, axes)
    axes.set(title=figure.title, xlabel=figure.xlabel)


def _draw_intervals(figure: Intervals, axes: "Axes") -> None:
    bars = figure.bars[: figure.most]
    ends = [end for one in bars for end in (one.low, one.high) if isfinite(end)]
    near = [end for end in ends if end <= FARTHEST_RATIO or figure.rest == 0]
    left = min([figure.rest, *figure.limits, *ends])
    right = max([figure.rest, *figure.limits, *near])
    room = 0.06 * max(right - left, 1e-3)
    axes.set_xlim(left - room, right + room)
    for place, one in enumerate(bars):
        span = [one.low, min(one.high, right + room)]
        colour = LOOKS["certified"].colour
        axes.plot(span, [place, place], color=colour, linewidth=2.4, solid_capstyle="butt")
        if one.value is not None:
            axes.plot([one.value], [place], "o", color=INK, markersize=6, zorder=4)
    axes.axvline(figure.rest, color=MUTED, linewidth=0.9, zorder=1)
    for limit in figure.limits:
        axes.axvline(limit, color=ALARM, linewidth=1.3, linestyle=(0, (4, 2)), zorder=2)
    axes.set_yticks(range(len(bars)), [_literal(one.name) for one in bars])
    axes.set_ylim(max(len(bars), 1) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)


def _draw_curves(figure: Curves, axes: "Axes") -> None:
    chosen = looks(one.name for one in figure.lines)
    step: Literal["post"] | None = "post" if figure.steps else None
    drawstyle = "steps-post" if figure.steps else "default"
    for one in figure.lines:
        look = chosen[one.name]
        if one.low is not None and one.high is not None:
            axes.fill_between(
                figure.x, one.low, one.high, color=look.colour, alpha=0.16, linewidth=0, step=step
            )
        name = _literal(one.name)
        axes.plot(figure.x, one.y, label=name, drawstyle=drawstyle, **look.line)
    for limit in figure.limits:
        axes.axhline(limit, color=ALARM, linewidth=1.3, linestyle=(0, (4, 2)))
    if len(figure.lines) > 1:
        axes.legend(frameon=False)
    axes.set_ylabel(figure.ylabel)
    short_numbers(axes)
    if figure.logarithmic and len(figure.x) > 1:
        places = [place for place in figure.x if place > 0]
        logarithmic_rounds(axes, float(places[0]), int(figure.x[-1]))
    if figure.top is not None:
        axes.set_ylim(0.0, 1.04 * figure.top)


def _draw_points(figure: Points, axes: "Axes") -> None:
    seen = [*figure.faded, *figure.reached, *((one.x, one.y) for one in figure.points)]
    xs = [x for x, _ in seen] + [x for one in figure.points for x in one.across or ()]
    ys = [y for _, y in seen] + [y for one in figure.points for y in one.along or ()]
    ys += [] if figure.highest is None else [figure.highest]
    if figure.joined:
        line = sorted((one.x, one.y) for one in figure.points)
        axes.plot(*zip(*line, strict=True), color=MUTED, linewidth=1.2, zorder=1)
    if figure.reached:
        x, y = zip(*figure.reached, strict=True)
        axes.fill(x, y, facecolor=LOOKS["certified"].colour, alpha=0.16, edgecolor=MUTED, zorder=0)
    if figure.faded:
        x, y = zip(*figure.faded, strict=True)
        axes.plot(x, y, "o", color=MUTED, markersize=4, alpha=0.55)
    for place, one in enumerate(figure.points):
        colour = LOOKS["certified"].colour if place else SPARE[0].colour
        if one.across is not None:
            axes.plot(one.across, [one.y, one.y], color=colour, linewidth=1.4)
        if one.along is not None:
            axes.plot([one.x, one.x], one.along, color=colour, linewidth=1.4)
        # Points may lie upon each other: each has a shape, and its name stands in the legend.
        shape = MARKERS[place % len(MARKERS)]
        axes.plot([one.x], [one.y], shape, color=colour, zorder=4, label=_literal(one.name))
    if figure.highest is not None:
        dashed: DrawOptions = {"linewidth": 1.3, "linestyle": (0, (4, 2)), "zorder": 2}
        axes.axhline(figure.highest, color=ALARM, label="the most that is allowed", **dashed)
    room = 0.08 * max(max(ys) - min(ys), 1e-6)
    reach = 0.08 * max(max(xs) - min(xs), 1e-6)
    axes.set(xlim=(min(0.0, min(xs) - reach), max(xs) + reach))
    axes.set(ylim=(min(ys) - room, max(ys) + room))
    if figure.excluded:
        x, y = zip(*figure.excluded, strict=True)
        named = "proved: nothing is here"
        axes.fill_betweenx(y, 0.0, x, color=MUTED, alpha=0.14, linewidth=0, label=named)
        axes.plot(x, y, color=MUTED, linewidth=1)
    if len(figure.points) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small")
    axes.set_ylabel(figure.ylabel)


def _literal(name: str) -> str:
    """A name as it is: matplotlib would read formulas between dollars."""
    return " ".join(name.split()).replace("$", r"\$")
