"""What runs look like: regret over time, and the true gap of every policy deployed, with the promise drawn in.

Regret: the mean over runs, with a band that holds the middle 80% of them; beside it the same on logarithmic axes. Gap: one panel per
learner, every run as a thin line, the run with the largest gap in bold.
"""

from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.report.palette import ALARM, INK, MUTED, RULE, Look, looks, themed
from evenhand.report.region import require_matplotlib
from evenhand.simulate import Comparison, LearnerRuns, RunRecord, Tradeoff
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Draw = Callable[["Axes"], None]

STYLE: dict[str, Any] = {
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "svg.hashsalt": "evenhand",  # the same figure gives the same SVG
}
REFERENCES = ("accept-all", "uniform")
"""Learners that do not learn: their regret is drawn but does not set the scale."""
PANEL = (5.6, 4.0)
SMALL = (3.9, 2.9)


def regret_figure(comparison: Comparison) -> "Figure":
    """Both regret panels side by side, for a paper."""
    return _sheet(regret_panels(comparison), 2, PANEL)


def regret_panels(comparison: Comparison) -> list[Draw]:
    """Linear axes, then logarithmic ones."""
    return [lambda axes: _linear(axes, comparison), lambda axes: _logarithmic(axes, comparison)]


def gap_figure(comparison: Comparison) -> "Figure":
    """The gap panels of all learners, for a paper."""
    return _sheet(gap_panels(comparison), min(3, len(comparison.learners)), SMALL)


def gap_panels(comparison: Comparison) -> list[Draw]:
    """One panel per learner."""
    top = _gap_top(comparison)
    chosen = looks([learner.name for learner in comparison.learners])

    def panel(learner: LearnerRuns) -> Draw:
        return lambda axes: _gaps(axes, learner, comparison, chosen[learner.name], top)

    return [panel(learner) for learner in comparison.learners]


def regret_and_gap_figure(comparison: Comparison) -> "Figure":
    """One learner: its regret on linear axes, and its gaps."""
    return _sheet([regret_panels(comparison)[0], gap_panels(comparison)[0]], 2, PANEL)


def tradeoff_figure(found: Tradeoff) -> "Figure":
    """Both panels of the trade-off, for a paper."""
    return _sheet(tradeoff_panels(found), 2, PANEL)


def tradeoff_panels(found: Tradeoff) -> list[Draw]:
    """The excess gap against T, then the cost against T."""
    return [
        lambda axes: _powers(axes, found, "excess_gap", "Exploring longer buys a smaller gap", -1.0),
        lambda axes: _powers(axes, found, "cost", "... and costs more", 2.0),
    ]


def inline_svg(draw: Draw, size: tuple[float, float], prefix: str) -> str:
    """One panel as SVG for a page, whose style sheet colours it."""
    figure = _sheet([draw], 1, size)
    _, rc_context = require_matplotlib()
    out = StringIO()
    with rc_context(STYLE):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return themed(out.getvalue(), prefix)


def _sheet(panels: Sequence[Draw], columns: int, size: tuple[float, float]) -> "Figure":
    figure_class, rc_context = require_matplotlib()
    rows = -(-len(panels) // columns)
    with rc_context(STYLE):
        figure: Figure = figure_class(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
        places = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, draw in zip(places, panels, strict=False):
            draw(axes)
        for axes in places[len(panels) :]:
            axes.set_visible(False)
    return figure


# regret


def _grid(comparison: Comparison) -> FloatArray:
    """Rounds at which curves are drawn: dense at both scales, and the corners themselves where they are few."""
    rounds = comparison.rounds
    even = np.unique(np.r_[np.geomspace(min(10, rounds), rounds, 120), np.linspace(1, rounds, 120)])
    corners = np.unique(np.concatenate([run.rounds for one in comparison.learners for run in one.runs]))
    return np.union1d(even, corners) if len(corners) <= 200 else even


def _linear(axes: "Axes", comparison: Comparison) -> None:
    grid, chosen = np.r_[0.0, _grid(comparison)], looks([one.name for one in comparison.learners])
    curves = {learner.name: learner.regret_curves(grid) for learner in comparison.learners}
    for name, runs in curves.items():
        _curve(axes, grid, runs, chosen[name])
    axes.set_ylim(*_frame(curves))
    axes.set_xlim(0, comparison.rounds)
    axes.axhline(0.0, color=MUTED, linewidth=1.0, zorder=1)
    axes.set_title("Regret so far")
    axes.set_xlabel("round")
    axes.set_ylabel(f"errors beyond the best policy\nwith a gap of at most {comparison.regret_gap:g}")
    _plain_numbers(axes)
    _label_ends(axes, [(name, float(runs[:, -1].mean())) for name, runs in curves.items()], chosen)


def _frame(curves: dict[str, FloatArray]) -> tuple[float, float]:
    """The vertical range: that of the learners that learn, and zero."""
    learning = [runs for name, runs in curves.items() if name not in REFERENCES] or list(curves.values())
    low = min(0.0, *(float(np.quantile(runs, 0.1, axis=0).min()) for runs in learning))
    high = max(0.0, *(float(np.quantile(runs, 0.9, axis=0).max()) for runs in learning))
    margin = 0.06 * (high - low or 1.0)
    return low - margin, high + 2 * margin


def _logarithmic(axes: "Axes", comparison: Comparison) -> None:
    start = max(10.0, comparison.rounds / 1000) if comparison.rounds > 10 else 1.0
    grid, chosen = _grid(comparison), looks([one.name for one in comparison.learners])
    means = {one.name: one.regret_curves(grid).mean(axis=0) for one in comparison.learners}
    shown = {name: np.where(mean > 0, mean, np.nan) for name, mean in means.items() if mean[-1] > 0}
    for name, mean in shown.items():
        look = chosen[name]
        axes.plot(grid, mean, color=look.colour, linestyle=look.dash, linewidth=look.width)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(start, max(comparison.rounds, 1.1 * start))
    if shown:
        values = np.concatenate([mean[grid >= start] for mean in shown.values()])
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        axes.set_ylim(max(low / 1.5, high * 1e-4), high * 1.8)
    _slopes(axes, start, comparison.rounds)
    axes.set_title("The same on logarithmic axes")
    axes.set_xlabel("round")
    axes.set_ylabel("regret (learners that end above zero)")
    _label_ends(axes, [(name, float(mean[-1])) for name, mean in shown.items()], chosen)


def _slopes(axes: "Axes", start: float, stop: float) -> None:
    """Guides of slope 1/2 and 1 through the lower right."""
    low, high = axes.get_ylim()
    x = np.array([start * (stop / start) ** 0.62, start * (stop / start) ** 0.9])
    foot = low * (high / low) ** 0.06
    for power, name in ((0.5, "√T"), (1.0, "T")):
        y = foot * (x / x[0]) ** power
        axes.plot(x, y, color=MUTED, linewidth=1.0, zorder=1)
        axes.annotate(
            name, (x[1], y[1]), xytext=(3, 0), textcoords="offset points", color=MUTED, fontsize=9, va="center"
        )


def _curve(axes: "Axes", grid: FloatArray, curves: FloatArray, look: Look) -> None:
    low, high = np.quantile(curves, [0.1, 0.9], axis=0)
    axes.fill_between(grid, low, high, color=look.colour, alpha=0.16, linewidth=0)
    axes.plot(grid, curves.mean(axis=0), color=look.colour, linestyle=look.dash, linewidth=look.width)


def _label_ends(axes: "Axes", ends: list[tuple[str, float]], chosen: dict[str, Look]) -> None:
    """The learner's name where its line ends, moved apart where names would touch; lines that leave the frame tell where they end."""
    to_axes = axes.transData + axes.transAxes.inverted()
    spots = sorted((float(to_axes.transform((axes.get_xlim()[1], value))[1]), name, value) for name, value in ends)
    places = _apart(np.array([min(spot, 1.0) for spot, *_ in spots]), 0.07)
    for (spot, name, value), place in zip(spots, places, strict=True):
        colour, leaves = chosen[name].colour, spot > 1.0
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 1, "relpos": (0, 0.5)}
        axes.annotate(
            f"{name} \u2191 {short_number(float(f'{value:.2g}'))}" if leaves else name, (1.0, min(spot, 1.0)),
            xytext=(1.06, place), xycoords="axes fraction", textcoords="axes fraction", color=colour, fontsize=9.5,
            va="center", fontweight="bold" if chosen[name].width > 2 else "normal",
            arrowprops=None if leaves else line,
        )  # fmt: skip


def _apart(positions: FloatArray, height: float) -> FloatArray:
    """Sorted positions moved as little as needed so that neighbours differ by `height`, and the block stays in [0, 1].

    >>> _apart(np.array([0.5, 0.5]), 0.1).round(3).tolist()
    [0.45, 0.55]
    """
    placed = positions.astype(float).copy()
    for _ in range(200):
        for i in range(len(placed) - 1):
            overlap = height - (placed[i + 1] - placed[i])
            if overlap > 1e-9:
                placed[i] -= overlap / 2
                placed[i + 1] += overlap / 2
        if len(placed) and placed[0] < 0:
            placed[0] = 0.0
        if len(placed) and placed[-1] > 1:
            placed[-1] = 1.0
    return placed


def _plain_numbers(axes: "Axes") -> None:
    """At most five ticks a side, 20k for 20,000."""
    axes.locator_params(nbins=5)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: short_number(value))


def short_number(value: float) -> str:
    """A number as a tick shows it.

    >>> [short_number(x) for x in (0, 250, 1500, 20_000, 1e6, 2.5e6)]
    ['0', '250', '1.5k', '20k', '1M', '2.5M']
    """
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{name}".replace("-", "\u2212")
    return f"{value:g}".replace("-", "\u2212")


# gaps


def _gap_top(comparison: Comparison) -> float:
    worst = max(run.worst_gap for learner in comparison.learners for run in learner.runs)
    return 1.12 * max(worst, 1.25 * comparison.promise)


def _gaps(axes: "Axes", learner: LearnerRuns, comparison: Comparison, look: Look, top: float) -> None:
    start = max(1.0, comparison.rounds / 1000)
    promise = comparison.promise
    worst = max(learner.runs, key=lambda run: (run.worst_gap, run.share_above(promise)))
    axes.axhspan(promise, top, color=ALARM, alpha=0.09, linewidth=0, zorder=0)
    axes.axhline(promise, color=ALARM, linewidth=1.3, linestyle=(0, (4, 2)), zorder=4)
    for run in learner.runs:
        axes.plot(*_steps(run, start), color=look.colour, linewidth=0.7, alpha=0.45)
    axes.plot(*_steps(worst, start), color=look.colour, linewidth=2.3, zorder=5, clip_on=False)
    axes.annotate(
        f"promise\n{promise:g}", (1.0, promise), xycoords=("axes fraction", "data"), xytext=(4, 0),
        textcoords="offset points", va="center", color=ALARM, fontsize=9,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(start, max(comparison.rounds, 1.1 * start))
    axes.set_ylim(0.0, top)
    axes.locator_params(axis="y", nbins=5)
    axes.set_title(learner.name, color=look.colour, pad=18)
    axes.annotate(_verdict(learner, promise), (0.0, 1.0), xycoords="axes fraction", xytext=(0, 5),
                  textcoords="offset points", fontsize=9, color=MUTED)  # fmt: skip
    axes.set_xlabel("round")
    axes.set_ylabel("true gap")


def _steps(run: RunRecord, start: float) -> tuple[FloatArray, FloatArray]:
    """The gap of each round as corners of a step line."""
    x = np.repeat(np.r_[0, run.rounds].astype(float), 2)[1:-1]
    return np.maximum(x, start), np.repeat(run.gaps, 2)


def _verdict(learner: LearnerRuns, promise: float) -> str:
    row = learner.summary(promise)
    if not row.runs_above:
        return f"never above, worst {row.worst_gap:.3f} ({row.runs} run{'s' * (row.runs > 1)})"
    return f"above in {row.runs_above} of {row.runs} runs, {row.rounds_above:.0%} of rounds"


# the trade-off

_EXPONENT_LOOKS = (
    Look("#0072b2", "#5cb8f5", width=2.2),
    Look("#009e73", "#3fd0a4", (0, (5, 1.5)), 2.2),
    Look("#d55e00", "#ff8f45", (0, (2, 1.2)), 2.2),
    Look("#882255", "#e58fb9", (0, (6, 1.5, 1.2, 1.5)), 2.2),
)


def _powers(axes: "Axes", found: Tradeoff, what: str, title: str, factor: float) -> None:
    from matplotlib.ticker import LogLocator

    horizons, values = np.array(found.horizons), np.asarray(getattr(found, what))
    for row, exponent in enumerate(found.exponents):
        look = _EXPONENT_LOOKS[row % len(_EXPONENT_LOOKS)]
        theory = min(factor * exponent, 1.0)
        name = f"\u03b1 = {exponent:.3g}: slope {found.slope(row, what):+.2f} (theory {theory:+.2f})".replace(
            "-", "\u2212"
        )
        axes.plot(horizons, values[row], color=look.colour, linestyle=look.dash, linewidth=look.width, marker="o",
                  markersize=5, label=name)  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    if values.max() < 100 * values.min():
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(lambda *_: "")
        axis.set_major_formatter(lambda value, _: short_number(value))
    axes.set_title(title)
    axes.set_xlabel("horizon T")
    axes.set_ylabel(
        "worst gap in the set, beyond \u03b3" if what == "excess_gap" else "exploration + regret in the set"
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), handlelength=3.2)
