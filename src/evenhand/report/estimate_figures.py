"""Figures of the evaluation of a log: each gap along its rows, with its interval and the limit, and
the cost.
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from evenhand.evaluation import Evaluation
from evenhand.media import drawing
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (5.3, 3.9)
LEARNED = drawing.LOOKS["certified"]


def evaluation_figure(evaluation: Evaluation) -> "Figure":
    """Draw what a log says about a candidate policy: each gap, then the cost.

    Parameters
    ----------
    evaluation : Evaluation
        What `evenhand.evaluation.evaluate` returned.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per gap, with its interval along the rows of the log, and one for the cost.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.evaluation import DecisionLog, evaluate
    >>> from evenhand.hypotheses.constants import ACCEPT_ALL
    >>> from evenhand.policies import Mixture
    >>> rng = np.random.default_rng(0)
    >>> accept, label = rng.random(200) < 0.5, np.where(rng.random(200) < 0.7, 1, -1)
    >>> log = DecisionLog.of(
    ...     rng.normal(size=(200, 1)), accept, np.full(200, 0.5), np.where(accept, label, 0),
    ...     group=["a", "b"] * 100,
    ... )
    >>> figure = evaluation_figure(evaluate(log, Mixture((ACCEPT_ALL,), (1.0,))))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Within the limit', 'What it would cost']
    """
    draw_gap = partial(draw_estimated_gap, evaluation=evaluation)
    panels = [
        drawing.Panel(
            partial(draw_gap, number=number), f"Estimated gap {gap.name} by row of the log"
        )
        for number, gap in enumerate(evaluation.gaps)
    ]
    draw_loss = partial(draw_estimated_loss, evaluation=evaluation)
    panels.append(drawing.Panel(draw_loss, "Estimated loss by row of the log"))
    return drawing.draw_panels(panels, min(len(panels), 3), PANEL)


def draw_estimated_gap(axes: "Axes", evaluation: Evaluation, number: int) -> None:
    """One gap of the evaluation, with the limit on both sides of zero."""
    gap = evaluation.gaps[number]
    curve = evaluation.course.gaps[:, number]
    limit = evaluation.limit
    for side in (-limit, limit):
        axes.axhline(side, color=drawing.ALARM, linewidth=1.3, linestyle=(0, (4, 2)), zorder=2)
    axes.axhline(0.0, color=drawing.INK, linewidth=0.6, zorder=1)
    draw_interval(axes, evaluation.course.rows, curve)
    top = max(3.0 * limit, 1.3 * float(np.abs(curve[-1, 1:]).max()), 0.05)
    axes.set_ylim(-top, top)
    written: drawing.DrawOptions = {"xycoords": ("axes fraction", "data"), "fontsize": 9.5}
    text = f"limit {limit:g}"
    drawing.write_at(axes, text, (0.02, limit), (0, 4), color=drawing.ALARM, **written)
    titles = {"within": "Within the limit", "above": "Above the limit"}
    axes.set(title=titles.get(gap.stands(limit), "Not shown"), ylabel=f"gap {gap.name}")


def draw_estimated_loss(axes: "Axes", evaluation: Evaluation) -> None:
    """The loss per person."""
    curve = evaluation.course.loss
    draw_interval(axes, evaluation.course.rows, curve)
    spread = max(2.5 * float(curve[-1, 2] - curve[-1, 1]), 1e-3)
    middle = float(curve[-1, 1:].mean())
    axes.set_ylim(max(0.0, middle - spread), middle + spread)
    axes.set(title="What it would cost", ylabel="loss per person")


def draw_interval(axes: "Axes", rows: FloatArray, curve: FloatArray) -> None:
    """curve (T, 3): estimate, lower end and upper end after each number of rows."""
    drawing.draw_band(axes, rows, curve.T, replace(LEARNED, width=2.0))
    if len(rows) > 1:
        drawing.logarithmic_rounds(axes, float(rows[0]), int(rows[-1]))
    axes.set_xlabel("rows of the log so far")
