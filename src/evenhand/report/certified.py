"""The certified learner in figures: what was certified, what was true, what it cost, and what ordinary tools would have seen.

promise     the certified end of |gap| and the true |gap| of every policy, both below the limit, from the first round on
weight      how much of the policy is learned, and how many people the audit coin accepts
in sample   each policy as a point (gap measured on the gathered labels, true gap): points above the limit but measured below it look fair
cost        what the promise costs over a grid of limits, split into the price of fairness and that of learning and certifying it
"""

from typing import TYPE_CHECKING

import numpy as np

from evenhand.report.palette import ALARM, INK, MUTED, Look, looks
from evenhand.report.runs import Draw, _sheet, short_number
from evenhand.simulate import Comparison, LearnerRuns, PromiseCost, Trail
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE = (5.6, 3.7)
SQUARE = (4.3, 4.1)
BOUND = "#0072b2"
"""The colour of what is certified; the truth has the learner's own."""
MOST_POINTS = 2500
CLOSE = 1e-9
"""Rounding that does not count as exceeding a limit."""


def is_certified(learner: LearnerRuns) -> bool:
    """Whether its runs carry certified ends."""
    trails = trails_of(learner)
    return bool(trails) and all(bool(np.isfinite(one.certified).all()) for one in trails)


def trails_of(learner: LearnerRuns) -> list[Trail]:
    """The trails of its runs, where there are any."""
    return [run.trail for run in learner.runs if run.trail is not None]


def certified_runs(comparison: Comparison) -> LearnerRuns | None:
    """The first certified learner of a comparison, or None."""
    return next((learner for learner in comparison.learners if is_certified(learner)), None)


def certified_figure(comparison: Comparison, learner: LearnerRuns) -> "Figure":
    """Promise and weight side by side, for a paper."""
    return _sheet(certified_panels(comparison, learner), 2, WIDE)


def certified_panels(comparison: Comparison, learner: LearnerRuns) -> list[Draw]:
    """The promise, then weight and audits."""
    look = looks([one.name for one in comparison.learners])[learner.name]
    trails, limit, rounds = trails_of(learner), comparison.promise, comparison.rounds
    return [
        lambda axes: draw_promise(axes, trails, limit, rounds, look),
        lambda axes: draw_weight(axes, trails, rounds, look),
    ]


def life_figure(life: Trail, limit: float) -> "Figure":
    """One life of the certified learner: promise and weight."""
    look, rounds = looks(["certified"])["certified"], int(life.rounds[-1])
    panels: list[Draw] = [
        lambda axes: draw_promise(axes, [life], limit, rounds, look),
        lambda axes: draw_weight(axes, [life], rounds, look),
    ]
    return _sheet(panels, 2, WIDE)


def in_sample_figure(comparison: Comparison, learner: LearnerRuns) -> "Figure":
    """In-sample against true gap, for a paper."""
    panels = in_sample_panels(comparison, learner)
    return _sheet(panels, len(panels), SQUARE)


def in_sample_panels(comparison: Comparison, learner: LearnerRuns) -> list[Draw]:
    """The learner that ordinary tools resemble most (if it was run) beside the certified one."""
    others = [one for one in comparison.learners if one.name.startswith("fair-on-gathered")]
    chosen, shown = looks([one.name for one in comparison.learners]), [*others[:1], learner]
    top = 1.08 * max(1.6 * comparison.promise, *(float(np.nanmax(t.gap)) for one in shown for t in trails_of(one)))

    def panel(one: LearnerRuns) -> Draw:
        return lambda axes: draw_in_sample(axes, one, comparison.promise, chosen[one.name], top)

    return [panel(one) for one in shown]


def promise_cost_figure(found: PromiseCost) -> "Figure":
    """The cost of the promise, for a paper."""
    return _sheet([lambda axes: draw_promise_cost(axes, found)], 1, (6.4, 4.0))


# the promise


def draw_promise(axes: "Axes", trails: list[Trail], limit: float, rounds: int, look: Look) -> None:
    """Steps of the certified end and of the true gap; bold: the life with the largest true gap."""
    start, top = max(1.0, min(50.0, rounds / 100)), 1.35 * limit
    worst = max(trails, key=lambda one: float(one.gap.max()))
    axes.axhspan(limit, top, color=ALARM, alpha=0.09, linewidth=0, zorder=0)
    axes.axhline(limit, color=ALARM, linewidth=1.4, linestyle=(0, (4, 2)), zorder=3)
    for one in trails:
        bold = one is worst
        axes.plot(*_steps(one, "certified", start), color=BOUND, linewidth=1.9 if bold else 0.7, alpha=1 if bold else 0.35,
                  linestyle=(0, (5, 1.3)) if bold else "-", zorder=4)  # fmt: skip
        axes.plot(*_steps(one, "gap", start), color=look.colour, linewidth=2.4 if bold else 0.7, alpha=1 if bold else 0.4,
                  zorder=5)  # fmt: skip
    _log_rounds(axes, start, rounds)
    axes.set_ylim(0.0, top)
    axes.locator_params(axis="y", nbins=5)
    axes.set_title("Certified below the limit, and truly below")
    axes.set_ylabel("|gap| of the policy of the round")
    places = _two_apart(float(worst.certified[-1]), float(worst.gap[-1]), 0.13 * top, limit - 0.045 * top)
    _at_end(axes, limit + 0.035 * top, f"limit {limit:g}", ALARM)
    _at_end(axes, places[0], "certified\nat most", BOUND)
    _at_end(axes, places[1], "true", look.colour, bold=True)


def draw_weight(axes: "Axes", trails: list[Trail], rounds: int, look: Look) -> None:
    """Mean over lives, with the band of the middle 80%."""
    start = max(1.0, min(50.0, rounds / 100))
    grid = np.geomspace(start, rounds, 240)
    for column, name, colour, dash in (
        ("weight", "learned\npolicy", look.colour, "-"),
        ("audit", "audit coin\n(accept all)", INK, (0, (3, 1.3))),
    ):
        lives = np.array([one.at(column, grid) for one in trails])
        low, high = np.quantile(lives, [0.1, 0.9], axis=0)
        axes.fill_between(grid, low, high, color=colour, alpha=0.15, linewidth=0, step="mid")
        axes.plot(grid, lives.mean(axis=0), color=colour, linestyle=dash, linewidth=2.4 if column == "weight" else 1.7)
        _at_end(axes, float(lives[:, -1].mean()), name, colour, bold=column == "weight")
    axes.axhline(0.5, color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    _log_rounds(axes, start, rounds)
    axes.set_ylim(-0.02, 1.04)
    axes.set_title("Evidence moves weight to the learned policy")
    axes.set_ylabel("share of the policy")


# in sample against true


def draw_in_sample(axes: "Axes", learner: LearnerRuns, limit: float, look: Look, top: float) -> None:
    """One point per policy that learned; the shaded part looks fair and is not."""
    axes.fill_between([0, limit], limit, top, color=ALARM, alpha=0.13, linewidth=0, zorder=0)
    axes.plot([0, top], [0, top], color=MUTED, linewidth=0.9, zorder=1)
    axes.axhline(limit, color=ALARM, linewidth=1.3, linestyle=(0, (4, 2)), zorder=2)
    axes.axvline(limit, color=ALARM, linewidth=0.9, linestyle=(0, (1, 2)), zorder=2)
    measured, true, rounds = _points(learner)
    size = 12 + 60 * (rounds / rounds.max(initial=1.0)) ** 0.5 if len(rounds) else rounds
    axes.scatter(
        np.minimum(measured, top), true, s=size, color=look.colour, alpha=0.45, linewidth=0, zorder=4, clip_on=False
    )
    axes.set_xlim(0, top)
    axes.set_ylim(0, top)
    axes.set_aspect("equal")
    axes.locator_params(nbins=5)
    hidden = (measured <= limit + CLOSE) & (true > limit + CLOSE)
    share = float(rounds[hidden].sum() / rounds.sum()) if rounds.sum() else 0.0
    axes.set_title(learner.name, color=look.colour, pad=18)
    told = (
        f"looks fair and is not in {share:.0%} of the rounds"
        if hidden.any()
        else "no policy that looks fair is above the limit"
    )
    axes.annotate(
        told, (0.0, 1.0), xycoords="axes fraction", xytext=(0, 5), textcoords="offset points", fontsize=9, color=MUTED
    )
    axes.annotate("\u2190 looks fair, is not", (limit, 0.97 * top), xytext=(4, 0), textcoords="offset points", color=ALARM, fontsize=9,
                  va="center")  # fmt: skip
    axes.set_xlabel("|gap| on the labels gathered so far")
    axes.set_ylabel("true |gap|")


def _points(learner: LearnerRuns) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(measured, true, rounds) of every policy that is not a constant."""
    parts = []
    for one in trails_of(learner):
        kept = np.isfinite(one.in_sample) & (one.weight > 0)
        parts.append(np.array([one.in_sample, one.gap, np.diff(one.rounds, prepend=0)])[:, kept])
    found: FloatArray = np.concatenate([np.zeros((3, 0)), *parts], axis=1)
    most = found[:, :: max(1, found.shape[1] // MOST_POINTS)]
    measured, true, rounds = most
    return measured, true, rounds


# the cost of the promise


def draw_promise_cost(axes: "Axes", found: PromiseCost) -> None:
    """Stacked from below: what the limit itself costs, then learning and certifying; per 100 people, beyond the best without a limit."""
    limits = np.array(found.limits)
    optimum, learner, low, high = (
        100 * (np.array(values) - found.unlimited) for values in (found.optimum, found.learner, found.low, found.high)
    )
    constant = 100 * (found.constant - found.unlimited)
    own = looks(["certified"])["certified"].colour
    axes.fill_between(limits, 0, optimum, color=BOUND, alpha=0.22, linewidth=0, label="price of the limit itself")
    axes.fill_between(
        limits, optimum, learner, color=own, alpha=0.22, linewidth=0, label="price of learning and certifying it"
    )
    axes.plot(limits, optimum, color=BOUND, linewidth=1.6, linestyle=(0, (5, 1.3)))
    axes.errorbar(limits, learner, [learner - low, high - learner], color=own, linewidth=2.4, elinewidth=1.2, capsize=2.5,
                  marker="o", markersize=4.5, label="certified learner")  # fmt: skip
    axes.axhline(
        constant,
        color=INK,
        linewidth=1.3,
        linestyle=(0, (1, 1.5)),
        label="best constant: a gap of 0, no evidence needed",
    )
    axes.set_xscale("log")
    axes.set_xticks(limits, [f"{limit:g}" for limit in limits])
    axes.xaxis.set_minor_formatter(lambda *_: "")
    axes.minorticks_off()
    axes.set_xlim(limits[0] / 1.04, limits[-1] * 1.04)
    axes.set_ylim(0, 1.1 * max(constant, float(high.max())))
    axes.locator_params(axis="y", nbins=6)
    axes.set_title(f"What a promise costs over {short_number(found.rounds)} people")
    axes.set_xlabel("the limit that is promised")
    axes.set_ylabel("cost per 100 people beyond\nthe best policy without a limit")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), ncols=2, handlelength=2.4, columnspacing=1.4)


# shared


def _steps(one: Trail, column: str, start: float) -> tuple[FloatArray, FloatArray]:
    """A column as corners of a step line."""
    x = np.repeat(np.r_[0, one.rounds].astype(float), 2)[1:-1]
    return np.maximum(x, start), np.repeat(getattr(one, column), 2)


def _log_rounds(axes: "Axes", start: float, rounds: int) -> None:
    axes.set_xscale("log")
    axes.set_xlim(start, rounds)
    axes.xaxis.set_major_formatter(lambda value, _: short_number(value))
    axes.xaxis.set_minor_formatter(lambda *_: "")
    axes.set_xlabel("round")


def _at_end(axes: "Axes", value: float, text: str, colour: str, *, bold: bool = False) -> None:
    axes.annotate(
        text, (1.0, value), xycoords=("axes fraction", "data"), xytext=(5, 0), textcoords="offset points", va="center",
        color=colour, fontsize=9, fontweight="bold" if bold else "normal", linespacing=1.05,
    )  # fmt: skip


def _two_apart(upper: float, lower: float, space: float, ceiling: float) -> tuple[float, float]:
    """Two heights below `ceiling` and at least `space` apart, the upper one first."""
    first = min(upper, ceiling)
    return first, min(lower, first - space)
