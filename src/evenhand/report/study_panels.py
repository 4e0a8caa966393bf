"""The two pictures of a study's question: the true gap of every round, and the cost so far."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from evenhand.report.palette import ALARM, MUTED, Look, looks
from evenhand.report.runs import SMALL, Draw, inline_svg
from evenhand.simulate.study import Cell
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def study_figures(cells: Sequence[Cell], limit: float, number: int) -> str:
    """Both panels with their caption; `number` keeps their ids apart."""
    chosen = looks([cell.learner for cell in cells])
    panels: list[tuple[Draw, str]] = [
        (lambda axes: _gap_panel(axes, cells, chosen, limit), "True gap of the deployed policy by round"),
        (lambda axes: _cost_panel(axes, cells, chosen), "Mean cost per person so far by round"),
    ]
    svgs = [
        inline_svg(draw, (SMALL[0] * 1.5, SMALL[1] * 1.5), f"s{number}{i}").replace(
            "<svg", f'<svg role="img" aria-label="{escape(label)}"', 1
        )
        for i, (draw, label) in enumerate(panels)
    ]
    caption = (
        "Left: the true gap of the policy deployed at each round, in the worst of all runs; above the dashed line the limit is broken. "
        "Right: what a person has cost on average up to that round, mean over runs; dotted: the better constant, and the best fair policy "
        "in hindsight; what costs far more than the constant runs out of the picture."
    )
    return f'<figure><div class="panels">{"".join(svgs)}</div><figcaption>{escape(caption)}</figcaption></figure>'


def _grid(cells: Sequence[Cell]) -> FloatArray:
    last = max(cells[0].rows[0]["curve_rounds"])
    return np.geomspace(min(100, last), last, 400)


def _gap_panel(axes: "Axes", cells: Sequence[Cell], chosen: Mapping[str, Look], limit: float) -> None:
    grid = _grid(cells)
    for cell in cells:
        curves = [_step(row["curve_rounds"], row["curve_gap"], grid) for row in cell.rows]
        look = chosen[cell.learner]
        axes.plot(
            grid,
            np.max(curves, axis=0),
            color=look.colour,
            ls=look.dash,
            lw=look.width,
            label=cell.learner,
            ds="steps-post",
        )
    axes.axhline(limit, color=ALARM, ls=(0, (4, 2)), lw=1.2)
    axes.set(
        xscale="log", xlabel="people decided about", ylabel="true gap, worst run", title="How far apart the groups were"
    )
    axes.set_ylim(bottom=0.0)
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=3)  # below, where no curve is


def _cost_panel(axes: "Axes", cells: Sequence[Cell], chosen: Mapping[str, Look]) -> None:
    grid, first = _grid(cells), cells[0].rows[0]
    lowest = float(first["optimum"])
    for cell in cells:
        curves = [_mean_so_far(row["curve_rounds"], row["curve_loss"], grid) for row in cell.rows]
        look, mean = chosen[cell.learner], np.mean(curves, axis=0)
        lowest = min(lowest, float(mean.min()))
        axes.plot(grid, mean, color=look.colour, ls=look.dash, lw=look.width)
    for level, text in ((first["constant"], "better constant"), (first["optimum"], "best fair policy in hindsight")):
        axes.axhline(level, color=MUTED, ls=(0, (1, 1.6)), lw=1.0)
        axes.text(grid[0], level, text, color=MUTED, fontsize=8, va="bottom")
    top = max(
        lowest + 1.6 * (first["constant"] - lowest), 1.02 * first["constant"]
    )  # what costs far more runs out of the picture
    axes.set(xscale="log", xlabel="people decided about", ylabel="cost per person so far", title="What it cost")
    axes.set_ylim(lowest - 0.1 * (top - lowest), top)


def _step(rounds: Sequence[int], values: Sequence[float], grid: FloatArray) -> FloatArray:
    return np.asarray(values)[np.minimum(np.searchsorted(rounds, grid), len(values) - 1)]


def _mean_so_far(rounds: Sequence[int], losses: Sequence[float], grid: FloatArray) -> FloatArray:
    ends = np.r_[0, rounds]
    total = np.r_[0.0, np.cumsum(np.diff(ends) * np.asarray(losses))]
    return np.asarray(np.interp(grid, ends, total) / grid)
