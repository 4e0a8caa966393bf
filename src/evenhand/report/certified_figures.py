"""Figures of the certified learner: what was certified, what was true, and what it cost.

certified   the certified bound on |gap| and the true |gap| of every policy, against the limit;
            beside it how much of the policy is learned, and how many people the audit coin accepts
in sample   each policy as a point (gap on the gathered labels, true gap): a point above the limit
            that was measured below it looks fair and is not
cost        what a promise costs over a grid of limits: the price of the limit, and on top of it
            the price of learning and certifying it
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from evenhand.report.drawing import (
    ALARM,
    INK,
    LOOKS,
    MUTED,
    Look,
    Panel,
    draw_band,
    draw_panels,
    label_at_right,
    label_beside,
    logarithmic_rounds,
    looks,
    mean_and_middle,
    short_number,
    step_corners,
    title_with_note,
)
from evenhand.simulate import Comparison, LearnerRuns, PromiseCost, Trail
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, SQUARE = (5.6, 3.7), (4.3, 4.1)
"""Sizes of one panel in inches."""
BOUND = "#0072b2"
"""The colour of what is certified; the truth has the learner's own colour."""
MOST_POINTS = 2500
ROUNDING = 1e-9
"""A gap that exceeds the limit by no more than this does not count as above it."""


def trails_of(learner: LearnerRuns) -> list[Trail]:
    """The epochs of each run, where they were recorded."""
    return [run.trail for run in learner.runs if run.trail is not None]


def certified_runs(comparison: Comparison) -> LearnerRuns | None:
    """Find the first learner of a comparison that certified every policy it deployed.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulate.compare` returned.

    Returns
    -------
    LearnerRuns or None
        None if no learner certifies, or if the population is not discrete.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulate import compare
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0],
    ...     promise=0.1, failure_probability=0.05, regret_gap=0.1,
    ... )
    >>> certified_runs(comparison) is None
    True
    """
    for learner in comparison.learners:
        trails = trails_of(learner)
        if trails and all(bool(np.isfinite(trail.certified).all()) for trail in trails):
            return learner
    return None


def certified_figure(comparison: Comparison, learner: LearnerRuns) -> "Figure":
    """Draw what a learner certified and what was true, and how much of its policy was learned.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulate.compare` returned.
    learner : LearnerRuns
        What `certified_runs` found in it.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels side by side.

    Examples
    --------
    >>> import evenhand as eh
    >>> from evenhand.environments import lending
    >>> from evenhand.simulate import compare
    >>> world = lending()
    >>> rate = eh.FalsePositiveRate()
    >>> learner = eh.CertifiedLearner(world.hypotheses, rate, 0.1, 0.05, horizon=300)
    >>> comparison = compare(
    ...     {"certified": learner}, world, rounds=300, seeds=[0],
    ...     promise=0.1, failure_probability=0.05, regret_gap=0.1,
    ... )
    >>> figure = certified_figure(comparison, certified_runs(comparison))
    >>> figure.axes[0].get_title(loc="left")
    'Certified below the limit, and truly below'
    """
    return draw_panels(certified_panels(comparison, learner), 2, WIDE)


def certified_panels(comparison: Comparison, learner: LearnerRuns) -> list[Panel]:
    """The certified and the true gap, then the weight of the learned policy and of the audits."""
    look = looks(one.name for one in comparison.learners)[learner.name]
    return trail_panels(trails_of(learner), comparison.promise, look)


def trail_panels(trails: Sequence[Trail], limit: float, look: Look) -> list[Panel]:
    """The same for any trails."""
    return [
        Panel(
            partial(draw_certified, trails=trails, limit=limit, look=look),
            "Certified and true gap by round",
        ),
        Panel(
            partial(draw_weight, trails=trails, look=look),
            "Weight of the learned policy and of the audit coin by round",
        ),
    ]


def certified_run_figure(trail: Trail, limit: float) -> "Figure":
    """Draw one run of the certified learner: certified and true gap, and the learned weight.

    Parameters
    ----------
    trail : Trail
        The epochs of the run, from `evenhand.simulate.trail`.
    limit : float
        The gap that no policy may exceed.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.simulate import Trail
    >>> gap = np.array([0.0, 0.02, 0.04])
    >>> trail = Trail(np.array([100, 400, 900]), gap, gap, gap + 0.01, 10 * gap, 1 - 10 * gap)
    >>> len(certified_run_figure(trail, 0.05).axes)
    2
    """
    return draw_panels(trail_panels([trail], limit, LOOKS["certified"]), 2, WIDE)


def draw_certified(axes: "Axes", trails: Sequence[Trail], limit: float, look: Look) -> None:
    """The certified bound and the true gap of every round; in bold the run with the largest."""
    rounds, top = int(trails[0].rounds[-1]), 1.35 * limit
    start = max(1.0, min(50.0, rounds / 100))
    worst = max(trails, key=lambda trail: float(trail.gap.max()))
    axes.axhspan(limit, top, color=ALARM, alpha=0.09, linewidth=0, zorder=0)
    axes.axhline(limit, color=ALARM, linewidth=1.4, linestyle=(0, (4, 2)), zorder=3)
    for trail in trails:
        bold = trail is worst
        x, certified = step_corners(trail.rounds, trail.certified, start)
        axes.plot(
            x,
            certified,
            color=BOUND,
            linewidth=1.9 if bold else 0.7,
            alpha=1 if bold else 0.35,
            linestyle=(0, (5, 1.3)) if bold else "-",
            zorder=4,
        )
        x, gap = step_corners(trail.rounds, trail.gap, start)
        width, alpha = (2.4, 1.0) if bold else (0.7, 0.4)
        axes.plot(x, gap, color=look.colour, linewidth=width, alpha=alpha, zorder=5)
    logarithmic_rounds(axes, start, rounds)
    axes.set_ylim(0.0, top)
    axes.locator_params(axis="y", nbins=5)
    axes.set_title("Certified below the limit, and truly below")
    axes.set_ylabel("|gap| of the policy of the round")
    # the labels of the three lines are kept apart
    upper = min(float(worst.certified[-1]), limit - 0.045 * top)
    lower = min(float(worst.gap[-1]), upper - 0.13 * top)
    label_at_right(axes, limit + 0.035 * top, f"limit {limit:g}", ALARM)
    label_at_right(axes, upper, "certified\nat most", BOUND)
    label_at_right(axes, lower, "true", look.colour, bold=True)


def draw_weight(axes: "Axes", trails: Sequence[Trail], look: Look) -> None:
    """The mean over runs, in a band that holds the middle 80% of them."""
    rounds = int(trails[0].rounds[-1])
    start = max(1.0, min(50.0, rounds / 100))
    grid = np.geomspace(start, rounds, 240)
    learned, audits = replace(look, dash="-", width=2.4), Look(INK, INK, (0, (3, 1.3)), 1.7)
    for column, name, line in (
        ("weight", "learned\npolicy", learned),
        ("audit", "audit coin\n(accept all)", audits),
    ):
        runs = np.array([trail.at(column, grid) for trail in trails])
        draw_band(axes, grid, mean_and_middle(runs), line)
        label_at_right(axes, float(runs[:, -1].mean()), name, line.colour, bold=column == "weight")
    axes.axhline(0.5, color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    logarithmic_rounds(axes, start, rounds)
    axes.set_ylim(-0.02, 1.04)
    axes.set_title("Evidence moves weight to the learned policy")
    axes.set_ylabel("share of the policy")


# the gap on the gathered labels against the true gap


def in_sample_figure(comparison: Comparison, learner: LearnerRuns) -> "Figure":
    """Draw the gap that ordinary tools would measure against the true gap, policy by policy.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulate.compare` returned.
    learner : LearnerRuns
        What `certified_runs` found in it.

    Returns
    -------
    matplotlib.figure.Figure
        The learner "fair-on-gathered", if it was compared, beside the certified learner.

    Examples
    --------
    >>> import evenhand as eh
    >>> from evenhand.environments import lending
    >>> from evenhand.simulate import compare
    >>> world = lending()
    >>> rate = eh.FalsePositiveRate()
    >>> learner = eh.CertifiedLearner(world.hypotheses, rate, 0.1, 0.05, horizon=300)
    >>> comparison = compare(
    ...     {"certified": learner}, world, rounds=300, seeds=[0],
    ...     promise=0.1, failure_probability=0.05, regret_gap=0.1,
    ... )
    >>> len(in_sample_figure(comparison, certified_runs(comparison)).axes)
    1
    """
    panels = in_sample_panels(comparison, learner)
    return draw_panels(panels, len(panels), SQUARE)


def in_sample_panels(comparison: Comparison, learner: LearnerRuns) -> list[Panel]:
    """The learner that ordinary tools resemble most, if it was run, beside the certified one."""
    others = [one for one in comparison.learners if one.name.startswith("fair-on-gathered")]
    chosen, shown = looks(one.name for one in comparison.learners), [*others[:1], learner]
    worst = max(float(np.nanmax(trail.gap)) for one in shown for trail in trails_of(one))
    draw = partial(
        draw_in_sample, limit=comparison.promise, top=1.08 * max(1.6 * comparison.promise, worst)
    )
    label = "Gap on the gathered labels against the true gap"
    return [Panel(partial(draw, learner=one, look=chosen[one.name]), label) for one in shown]


def in_sample_points(learner: LearnerRuns) -> FloatArray:
    """(3, points): measured gap, true gap, and rounds of every policy that is not a constant."""
    parts = [np.zeros((3, 0))]
    for trail in trails_of(learner):
        points = np.array([trail.in_sample, trail.gap, np.diff(trail.rounds, prepend=0)])
        parts.append(points[:, np.isfinite(trail.in_sample) & (trail.weight > 0)])
    points = np.concatenate(parts, axis=1)
    return points[:, :: max(1, points.shape[1] // MOST_POINTS)]


def draw_in_sample(
    axes: "Axes", learner: LearnerRuns, limit: float, look: Look, top: float
) -> None:
    """One point per policy that learned; policies in the shaded part look fair and are not."""
    axes.fill_between([0, limit], limit, top, color=ALARM, alpha=0.13, linewidth=0, zorder=0)
    axes.plot([0, top], [0, top], color=MUTED, linewidth=0.9, zorder=1)
    axes.axhline(limit, color=ALARM, linewidth=1.3, linestyle=(0, (4, 2)), zorder=2)
    axes.axvline(limit, color=ALARM, linewidth=0.9, linestyle=(0, (1, 2)), zorder=2)
    measured, true, rounds = in_sample_points(learner)
    axes.scatter(
        np.minimum(measured, top),
        true,
        s=12 + 60 * (rounds / rounds.max(initial=1.0)) ** 0.5,
        color=look.colour,
        alpha=0.45,
        linewidth=0,
        zorder=4,
        clip_on=False,
    )
    axes.set_xlim(0, top)
    axes.set_ylim(0, top)
    axes.set_aspect("equal")
    axes.locator_params(nbins=5)
    hidden = (measured <= limit + ROUNDING) & (true > limit + ROUNDING)
    if hidden.any():
        share = float(rounds[hidden].sum() / rounds.sum())
        verdict = f"looks fair and is not in {share:.0%} of the rounds"
    else:
        verdict = "no policy that looks fair is above the limit"
    title_with_note(axes, learner.name, look.colour, verdict)
    label_beside(axes, (limit, 0.97 * top), "\u2190 looks fair, is not", ALARM)
    axes.set_xlabel("|gap| on the labels gathered so far")
    axes.set_ylabel("true |gap|")


# the cost of the promise


def promise_cost_figure(measured: PromiseCost) -> "Figure":
    """Draw what promising a limit costs, over a grid of limits.

    Parameters
    ----------
    measured : PromiseCost
        What `evenhand.simulate.promise_cost` returned.

    Returns
    -------
    matplotlib.figure.Figure
        One panel: costs per 100 people beyond the best policy without a limit, stacked: the price
        of the limit itself, and above it the price of learning and certifying it.

    Examples
    --------
    >>> from evenhand.simulate import PromiseCost
    >>> cost = PromiseCost(
    ...     limits=(0.05, 0.1), learner=(0.35, 0.33), low=(0.34, 0.32), high=(0.36, 0.34),
    ...     optimum=(0.3, 0.28), unlimited=0.26, constant=0.41, rounds=8_000, seeds=(0, 1),
    ... )
    >>> promise_cost_figure(cost).axes[0].get_title(loc="left")
    'What a promise costs over 8k people'
    """
    return draw_panels([promise_cost_panel(measured)], 1, (6.4, 4.0))


def promise_cost_panel(measured: PromiseCost) -> Panel:
    """The cost of the promise by limit."""
    return Panel(partial(draw_promise_cost, measured=measured), "Cost of the promise by limit")


def draw_promise_cost(axes: "Axes", measured: PromiseCost) -> None:
    """Stacked from below: the price of the limit, then that of learning and certifying it."""
    limits, own = np.array(measured.limits), LOOKS["certified"].colour
    optimum, learner, low, high = (
        100 * (np.array(values) - measured.unlimited)
        for values in (measured.optimum, measured.learner, measured.low, measured.high)
    )
    constant = 100 * (measured.constant - measured.unlimited)
    for below, above, colour, name in (
        (np.zeros(len(limits)), optimum, BOUND, "price of the limit itself"),
        (optimum, learner, own, "price of learning and certifying it"),
    ):
        axes.fill_between(limits, below, above, color=colour, label=name, alpha=0.22, linewidth=0)
    axes.plot(limits, optimum, color=BOUND, linewidth=1.6, linestyle=(0, (5, 1.3)))
    axes.errorbar(
        limits,
        learner,
        [learner - low, high - learner],
        color=own,
        linewidth=2.4,
        elinewidth=1.2,
        capsize=2.5,
        marker="o",
        markersize=4.5,
        label="certified learner",
    )
    name, corner = "best constant: a gap of 0, no evidence needed", (0.5, -0.19)
    axes.axhline(constant, color=INK, linewidth=1.3, linestyle=(0, (1, 1.5)), label=name)
    axes.set_xscale("log")
    axes.set_xticks(limits, [f"{limit:g}" for limit in limits])
    axes.xaxis.set_minor_formatter(lambda *_: "")
    axes.minorticks_off()
    axes.set_xlim(limits[0] / 1.04, limits[-1] * 1.04)
    axes.set_ylim(0, 1.1 * max(constant, float(high.max())))
    axes.locator_params(axis="y", nbins=6)
    axes.set_title(f"What a promise costs over {short_number(measured.rounds)} people")
    axes.set_xlabel("the limit that is promised")
    axes.set_ylabel("cost per 100 people beyond\nthe best policy without a limit")
    axes.legend(
        loc="upper center", bbox_to_anchor=corner, ncols=2, handlelength=2.4, columnspacing=1.4
    )
