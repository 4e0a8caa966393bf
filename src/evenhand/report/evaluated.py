"""An evaluation in one figure: each gap with its band along the rows of the log, against the limit, and the cost beside it."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from evenhand.evaluation import Evaluation
from evenhand.report.certified import _log_rounds
from evenhand.report.palette import ALARM, INK, looks
from evenhand.report.runs import Draw, _sheet
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (5.3, 3.9)


def evaluation_figure(found: Evaluation) -> "Figure":
    """One panel per gap, then the cost."""
    panels = evaluation_panels(found)
    return _sheet(panels, min(len(panels), 3), PANEL)


def evaluation_panels(found: Evaluation) -> list[Draw]:
    """The panels."""
    return [*(partial(_gap, found=found, at=at) for at in range(len(found.gaps))), partial(_loss, found=found)]


def _gap(axes: "Axes", found: Evaluation, at: int) -> None:
    gap, curve = found.gaps[at], found.course.gaps[:, at]
    for limit in (-found.limit, found.limit):
        axes.axhline(limit, color=ALARM, linewidth=1.3, linestyle=(0, (4, 2)), zorder=2)
    axes.axhline(0.0, color=INK, linewidth=0.6, zorder=1)
    _band(axes, found.course.rows, curve)
    top = max(3.0 * found.limit, 1.3 * float(np.abs(curve[-1, 1:]).max()), 0.05)
    axes.set_ylim(-top, top)
    axes.annotate(
        f"limit {found.limit:g}", (0.02, found.limit), xycoords=("axes fraction", "data"), xytext=(0, 4),
        textcoords="offset points", fontsize=9.5, color=ALARM,
    )  # fmt: skip
    axes.set_title({"within": "Within the limit", "above": "Above the limit"}.get(gap.stands(found.limit), "Not shown"))
    axes.set_ylabel(f"gap {gap.name}")


def _loss(axes: "Axes", found: Evaluation) -> None:
    curve = found.course.loss
    _band(axes, found.course.rows, curve)
    spread = max(2.5 * float(curve[-1, 2] - curve[-1, 1]), 1e-3)
    middle = float(curve[-1, 1:].mean())
    axes.set_ylim(max(0.0, middle - spread), middle + spread)
    axes.set_title("What it would cost")
    axes.set_ylabel("loss per person")


def _band(axes: "Axes", rows: FloatArray, curve: FloatArray) -> None:
    """curve (T, 3): estimate, low, high."""
    colour = looks(["certified"])["certified"].colour
    axes.fill_between(rows, curve[:, 1], curve[:, 2], color=colour, alpha=0.16, linewidth=0)
    axes.plot(rows, curve[:, 0], color=colour, linewidth=2.0)
    if len(rows) > 1:
        _log_rounds(axes, float(rows[0]), int(rows[-1]))
    axes.set_xlabel("rows of the log so far")
