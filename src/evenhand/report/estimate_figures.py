"""Figures of what is estimated and not known: a launch plan, and the evaluation of a log.

A plan: when weight is certified, what each way to decide costs, and who is accepted.
An evaluation: each gap along the rows of the log, with its interval and the limit, and the cost.
"""

from dataclasses import replace
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from evenhand.evaluation import Evaluation
from evenhand.media import drawing
from evenhand.planning import LaunchPlan
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (5.3, 3.9)
LEARNED = drawing.LOOKS["certified"]
AUDITED = drawing.Look(drawing.INK, drawing.INK, width=2.0)
WARNING: drawing.DrawOptions = {
    "xycoords": "axes fraction",
    "va": "top",
    "fontsize": 9,
    "color": drawing.ALARM,
    "linespacing": 1.25,
}
"""How a warning is written inside a panel."""


def plan_figure(plan: LaunchPlan) -> "Figure":
    """Draw a launch plan: the certified weight, what each way to decide costs, who is accepted.

    Parameters
    ----------
    plan : LaunchPlan
        What `evenhand.plan` returned.

    Returns
    -------
    matplotlib.figure.Figure
        Three panels side by side.

    Examples
    --------
    >>> import evenhand as eh
    >>> plan = eh.plan(
    ...     limit=0.5, group_shares={"a": 0.6, "b": 0.4}, bad_rates={"a": 0.4, "b": 0.5},
    ...     separation=1.5, horizon=500, runs=1,
    ... )
    >>> [axes.get_title(loc="left") for axes in plan_figure(plan).axes][1:]
    ['What each way to decide costs', 'Who is accepted']
    """
    drawn = {
        "Certified weight by round": draw_plan_weight,
        "Cost of each way to decide by round": draw_plan_cost,
        "Shares of people who are accepted and audited by round": draw_plan_accepted,
    }
    panels = [drawing.Panel(partial(draw, plan=plan), label) for label, draw in drawn.items()]
    return drawing.draw_panels(panels, 3, PANEL)


def draw_plan_weight(axes: "Axes", plan: LaunchPlan) -> None:
    """The certified share of the learned policy's weight, and when it reaches half and 95%."""
    share_of_people(axes, plan)
    curves = (plan.weight.mean, plan.weight.low, plan.weight.high)
    drawing.draw_band(axes, plan.rounds, curves, replace(LEARNED, width=2.6))
    for milestone, name in ((plan.half, "half"), (plan.full, "95%")):
        line: drawing.DrawOptions = {"linewidth": 0.8, "linestyle": (0, (1, 2)), "zorder": 1}
        axes.axhline(milestone.share, color=drawing.MUTED, **line)
        if milestone.round is not None:
            at = (milestone.round, milestone.share)
            axes.plot(*at, marker="o", markersize=6, color=drawing.INK, zorder=6)
            written: drawing.DrawOptions = {"ha": "right", "fontsize": 9.5, "zorder": 7}
            text = f"{name}: {milestone.round:,}"
            drawing.write_at(axes, text, at, (-8, 6), color=drawing.INK, **written)
    if plan.half.round is None and plan.full_weight > 0:
        lines = wrap(f"half of the weight: {plan.half.describe()}", 44)
        axes.annotate("\n".join(lines), (0.03, 0.88), **WARNING)
    axes.set_title("How much of the learned policy is certified")
    axes.set_ylabel("share of its full weight")


def draw_plan_cost(axes: "Axes", plan: LaunchPlan) -> None:
    """Cost beyond the best policy within the limit; a line below the best constant's paid off."""
    whole = {1.0: "accept all applicants", 0.0: "reject all applicants"}
    constant = whole.get(plan.constant_share, plan.constant)
    chosen = drawing.looks(course.name for course in plan.courses)
    chosen[constant] = drawing.LOOKS["accept-all"]
    ends = {}
    best = plan.rounds * plan.best_cost
    for course in plan.courses:
        if course.cost is not None:
            cost = np.array([course.cost.mean, course.cost.low, course.cost.high]) - best
            drawing.draw_band(axes, plan.rounds, cost, chosen[course.name])
            ends[course.name] = float(cost[0, -1])
    cost = plan.rounds * (plan.constant_cost - plan.best_cost)
    look = chosen[constant]
    axes.plot(plan.rounds, cost, **look.line)
    ends[constant] = float(cost[-1])
    own = [end for name, end in ends.items() if name in ("certified", constant)]
    axes.set(xlim=(0, plan.horizon), ylim=(0, max(1.25 * max(own), 1e-9)))
    axes.set(title="What each way to decide costs", xlabel="people so far")
    axes.set_ylabel(f"{plan.unit} so far, beyond the best\npolicy within the limit")
    drawing.short_numbers(axes)
    drawing.label_line_ends(axes, ends, chosen)
    missing = [course.name for course in plan.courses if course.infeasible is not None]
    if missing:
        text = "\n".join(["infeasible at this volume:", *missing])
        axes.annotate(text, (0.03, 0.96), **WARNING)


def draw_plan_accepted(axes: "Axes", plan: LaunchPlan) -> None:
    """The share of people who are accepted, with the capacity; the part of the audit coin, and what
    all audits cost.
    """
    share_of_people(axes, plan)
    for curve, look in ((plan.accepted, LEARNED), (plan.audit, AUDITED)):
        drawing.draw_band(axes, plan.rounds, (curve.mean, curve.low, curve.high), look)
    ends = {"accepted": plan.accepted.mean[-1], "by the audit coin": plan.audit.mean[-1]}
    looks = {"accepted": LEARNED, "by the audit coin": AUDITED}
    drawing.label_line_ends(axes, {name: float(end) for name, end in ends.items()}, looks)
    if plan.accept_at_most is not None:
        axes.axhline(plan.accept_at_most, color=drawing.ALARM, linewidth=1.3, linestyle=(0, (4, 2)))
    axes.set(title="Who is accepted", ylabel="share of the people")
    total = (
        f"audited: {plan.audited.mean:,.0f} people,\n{plan.audited_bad.mean:,.0f} of them bad:\n"
        f"a bill of {plan.bill.mean:,.0f}"
    )
    corners = (((0.97, 0.95), "top", "right"), ((0.03, 0.05), "bottom", "left"))
    # the corner that the curves leave free
    corner, va, ha = corners[bool(max(plan.audit.mean[-1], plan.accepted.mean[-1]) > 0.5)]
    ink: drawing.DrawOptions = {"fontsize": 9.5, "color": drawing.INK}
    axes.annotate(total, corner, va=va, ha=ha, xycoords="axes fraction", **ink)


def share_of_people(axes: "Axes", plan: LaunchPlan) -> None:
    """Axes for a share from 0 to 1 by the number of people so far."""
    start = float(plan.rounds[plan.rounds >= min(100, plan.horizon / 2)][0])
    drawing.logarithmic_rounds(axes, start, plan.horizon)
    axes.set(xlabel="people so far", ylim=(0, 1.04))


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
