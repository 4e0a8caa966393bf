"""A launch plan in one figure: when weight is certified, what each way to decide costs, and how many people are audited."""

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.planning import Curve, LaunchPlan
from evenhand.report.certified import _log_rounds
from evenhand.report.palette import ALARM, INK, MUTED, looks
from evenhand.report.runs import Draw, _label_ends, _plain_numbers, _sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (5.3, 3.9)
CONSTANT = "accept-all"
"""The look of the best constant."""


def plan_figure(plan: LaunchPlan) -> "Figure":
    """Three panels, for a paper or a meeting."""
    return _sheet(plan_panels(plan), 3, PANEL)


def plan_panels(plan: LaunchPlan) -> list[Draw]:
    """Certified weight, cost so far, audits."""
    return [lambda axes: _weight(axes, plan), lambda axes: _cost(axes, plan), lambda axes: _audits(axes, plan)]


def _weight(axes: "Axes", plan: LaunchPlan) -> None:
    colour = looks(["certified"])["certified"].colour
    _band(axes, plan, plan.weight, colour, 2.6)
    for stone, name in ((plan.half, "half"), (plan.full, "95%")):
        axes.axhline(stone.share, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        if stone.round is not None:
            axes.plot([stone.round], [stone.share], marker="o", markersize=6, color=INK, zorder=6)
            axes.annotate(
                f"{name}: {stone.round:,}", (stone.round, stone.share), xytext=(-8, 6), textcoords="offset points",
                ha="right", fontsize=9.5, color=INK, zorder=7,
            )  # fmt: skip
    if plan.half.round is None and plan.forecast and plan.forecast[0].half is None:
        told = "\n".join(line for text in plan.outlook for line in wrap(f"Forecast: {text}", 44))
        axes.annotate(told, (0.03, 0.88), xycoords="axes fraction", va="top", fontsize=9, color=ALARM, linespacing=1.25)
    _log_rounds(axes, float(plan.rounds[plan.rounds >= min(100, plan.horizon / 2)][0]), plan.horizon)
    axes.set_xlabel("people so far")
    axes.set_ylim(0, 1.04)
    axes.set_title("How much of the learned policy is certified")
    axes.set_ylabel("share of its full weight")


def _cost(axes: "Axes", plan: LaunchPlan) -> None:
    """Cost beyond the best policy within the limit; a line below the best constant's has paid off."""
    rounds, names = plan.rounds, [course.name for course in plan.courses]
    chosen = looks([*names, CONSTANT])
    ends = []
    for course in plan.courses:
        if course.cost is not None:
            beyond = [
                np.asarray(c) - rounds * plan.best_cost for c in (course.cost.mean, course.cost.low, course.cost.high)
            ]
            _band(
                axes,
                plan,
                Curve(*beyond),
                chosen[course.name].colour,
                chosen[course.name].width,
                chosen[course.name].dash,
            )
            ends.append((course.name, float(beyond[0][-1])))
    constant = rounds * (plan.constant_cost - plan.best_cost)
    axes.plot(rounds, constant, color=chosen[CONSTANT].colour, linewidth=1.8, linestyle=chosen[CONSTANT].dash)
    name = plan.constant.replace("ing everybody", " everybody")
    chosen = {**chosen, name: chosen[CONSTANT]}
    ends.append((name, float(constant[-1])))
    axes.set_xlim(0, plan.horizon)
    own = [value for course, value in ends if course in ("certified", name)]
    axes.set_ylim(0, max(1.25 * max(own), 1e-9))
    axes.set_title("What each way to decide costs")
    axes.set_xlabel("people so far")
    axes.set_ylabel(f"{plan.unit} so far, beyond the best\npolicy within the limit")
    _plain_numbers(axes)
    _label_ends(axes, ends, chosen)
    missing = [course.name for course in plan.courses if course.infeasible is not None]
    if missing:
        axes.annotate(
            "infeasible at this volume:\n" + "\n".join(missing), (0.03, 0.96), xycoords="axes fraction", va="top", fontsize=9,
            color=ALARM, linespacing=1.25,
        )  # fmt: skip


def _audits(axes: "Axes", plan: LaunchPlan) -> None:
    _band(axes, plan, plan.audit, INK, 2.0)
    _log_rounds(axes, float(plan.rounds[plan.rounds >= min(100, plan.horizon / 2)][0]), plan.horizon)
    axes.set_xlabel("people so far")
    axes.set_ylim(0, 1.04)
    axes.set_title("Accepted by the audit coin")
    axes.set_ylabel("share of the people")
    told = f"in all {plan.audited.mean:,.0f} people,\n{plan.audited_bad.mean:,.0f} of them bad:\na bill of {plan.bill.mean:,.0f}"
    high = plan.audit.mean[-1] > 0.5
    axes.annotate(told, (0.03 if high else 0.97, 0.05 if high else 0.95), xycoords="axes fraction", va="bottom" if high else "top",
                  ha="left" if high else "right", fontsize=9.5, color=INK)  # fmt: skip


def _band(axes: "Axes", plan: LaunchPlan, curve: Curve, colour: str, width: float, dash: Any = "-") -> None:
    axes.fill_between(plan.rounds, curve.low, curve.high, color=colour, alpha=0.16, linewidth=0)
    axes.plot(plan.rounds, curve.mean, color=colour, linewidth=width, linestyle=dash)
