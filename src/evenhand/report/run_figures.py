"""Figures of simulated runs: the regret of learners, their true gaps, and the cost so far.

regret      the mean over runs, in a band that holds the middle 80% of them; on linear and on
            logarithmic axes
gap         one panel per learner: every run as a thin line, the run with the largest gap in bold
study       the true gap of every round and the cost so far, on one table with one limit

and of the certified learner among them:

certified   the certified bound on |gap| and the true |gap| of every policy, against the limit;
            beside it how much of the policy is learned, and how many people the audit coin accepts
in sample   each policy as a point (gap on the gathered labels, true gap): a point above the limit
            that was measured below it looks fair and is not
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from evenhand.findings import ROUNDING
from evenhand.media.drawing import (
    ALARM,
    INK,
    LOOKS,
    MUTED,
    DrawOptions,
    Look,
    Panel,
    draw_band,
    draw_panels,
    label_at_right,
    label_beside,
    label_line_ends,
    logarithmic_rounds,
    looks,
    mean_and_middle,
    short_numbers,
    step_corners,
    title_with_note,
)
from evenhand.simulation import Comparison, LearnerRuns, RunRecord
from evenhand.simulation.record import value_at
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# sizes of one panel in inches
PANEL = (5.6, 4.0)
SMALL = (3.9, 2.9)
STUDY_PANEL = (1.5 * SMALL[0], 1.5 * SMALL[1])
WIDE = (5.6, 3.7)
SQUARE = (4.3, 4.1)
NOT_LEARNING = ("accept-all", "uniform")
"""Learners that do not learn: their regret is drawn but does not set the scale."""
BOUND = "#0072b2"
"""The colour of what is certified; the truth has the learner's own colour."""
MOST_POINTS = 2500


# regret


def regret_figure(comparison: Comparison) -> "Figure":
    """Draw the regret of every learner by round, on linear and on logarithmic axes.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulation.compare` returned.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels side by side.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulation import compare
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0, 1],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> [axes.get_title(loc="left") for axes in regret_figure(comparison).axes]
    ['Regret so far', 'The same on logarithmic axes']
    """
    return draw_panels(regret_panels(comparison), 2, PANEL)


def regret_panels(comparison: Comparison) -> list[Panel]:
    """Regret on linear axes, then on logarithmic ones."""
    label = "Regret of each learner by round"
    return [
        Panel(partial(draw_regret, comparison=comparison), label),
        Panel(partial(draw_log_regret, comparison=comparison), f"{label}, logarithmic axes"),
    ]


def regret_grid(comparison: Comparison) -> FloatArray:
    """Rounds at which curves are drawn, and those at which policies change if they are few."""
    rounds = comparison.rounds
    even = np.r_[np.geomspace(min(10, rounds), rounds, 120), np.linspace(1, rounds, 120)]
    runs = [run for learner in comparison.learners for run in learner.runs]
    changes = np.unique(np.concatenate([run.rounds for run in runs]))
    return np.union1d(even, changes) if len(changes) <= 200 else np.unique(even)


def draw_regret(axes: "Axes", comparison: Comparison) -> None:
    """Mean regret with a band of the middle 80%; the learners that learn set the scale."""
    grid = np.r_[0.0, regret_grid(comparison)]
    chosen = looks(one.name for one in comparison.learners)
    curves = {learner.name: learner.regret_curves(grid) for learner in comparison.learners}
    for name, runs in curves.items():
        draw_band(axes, grid, mean_and_middle(runs), chosen[name])
    learning = [runs for name, runs in curves.items() if name not in NOT_LEARNING]
    bands = [mean_and_middle(runs)[1:] for runs in learning or curves.values()]
    bottom = min(0.0, float(np.min(bands)))
    top = max(0.0, float(np.max(bands)))
    margin = 0.06 * (top - bottom or 1.0)
    axes.set(ylim=(bottom - margin, top + 2 * margin), xlim=(0, comparison.rounds))
    axes.axhline(0.0, color=MUTED, linewidth=1.0, zorder=1)
    best = f"the best policy\nwith a gap of at most {comparison.regret_gap:g}"
    axes.set(title="Regret so far", xlabel="round", ylabel=f"errors beyond {best}")
    short_numbers(axes)
    ends = {name: float(runs[:, -1].mean()) for name, runs in curves.items()}
    label_line_ends(axes, ends, chosen)


def draw_log_regret(axes: "Axes", comparison: Comparison) -> None:
    """Mean regret of the learners that end above zero, with guide lines of slope 1/2 and 1."""
    start = max(10.0, comparison.rounds / 1000) if comparison.rounds > 10 else 1.0
    stop = max(comparison.rounds, 1.1 * start)
    grid = regret_grid(comparison)
    chosen = looks(one.name for one in comparison.learners)
    means = {one.name: one.regret_curves(grid).mean(axis=0) for one in comparison.learners}
    shown = {name: np.where(mean > 0, mean, np.nan) for name, mean in means.items() if mean[-1] > 0}
    for name, mean in shown.items():
        axes.plot(grid, mean, **chosen[name].line)
    axes.set(xscale="log", yscale="log", xlim=(start, stop))
    if shown:
        values = np.concatenate([mean[grid >= start] for mean in shown.values()])
        least = float(np.nanmin(values))
        most = float(np.nanmax(values))
        axes.set_ylim(max(least / 1.5, most * 1e-4), most * 1.8)
    # the guide lines start near the lower right corner
    bottom, top = axes.get_ylim()
    span = comparison.rounds / start
    x = np.array([start * span**0.62, start * span**0.9])
    for power, name in ((0.5, "√T"), (1.0, "T")):
        y = bottom * (top / bottom) ** 0.06 * (x / x[0]) ** power
        axes.plot(x, y, color=MUTED, linewidth=1.0, zorder=1)
        label_beside(axes, (x[1], y[1]), name, MUTED)
    axes.set(title="The same on logarithmic axes", xlabel="round")
    axes.set_ylabel("regret (learners that end above zero)")
    label_line_ends(axes, {name: float(mean[-1]) for name, mean in shown.items()}, chosen)


# gaps


def gap_figure(comparison: Comparison) -> "Figure":
    """Draw the true gap of every policy that was deployed, one panel per learner.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulation.compare` returned.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per learner, three in a row, all on the same scale, with the limit drawn in.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulation import compare
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0, 1],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> print(gap_figure(comparison).axes[0].texts[-1].get_text())
    never above, worst 0.000 (2 runs)
    """
    return draw_panels(gap_panels(comparison), min(3, len(comparison.learners)), SMALL)


def gap_panels(comparison: Comparison) -> list[Panel]:
    """The gaps of each learner, all on the same scale."""
    worst = max(run.worst_gap for learner in comparison.learners for run in learner.runs)
    top = 1.12 * max(worst, 1.25 * comparison.limit)
    draw = partial(draw_gaps, comparison=comparison, top=top)
    return [
        Panel(partial(draw, learner=learner), f"True gap by round: {learner.name}")
        for learner in comparison.learners
    ]


def regret_and_gap_figure(comparison: Comparison) -> "Figure":
    """Draw the regret and the gaps of the first learner of a comparison side by side.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulation.compare` returned; usually of one learner.

    Returns
    -------
    matplotlib.figure.Figure
        Regret on linear axes, and the true gap of every policy.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulation import compare
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> [axes.get_title(loc="left") for axes in regret_and_gap_figure(comparison).axes]
    ['Regret so far', 'accept-all']
    """
    return draw_panels([regret_panels(comparison)[0], gap_panels(comparison)[0]], 2, PANEL)


def draw_gaps(axes: "Axes", learner: LearnerRuns, comparison: Comparison, top: float) -> None:
    """The true gap of every round of every run; the run with the largest gap in bold."""
    look = looks(one.name for one in comparison.learners)[learner.name]
    start = max(1.0, comparison.rounds / 1000)
    limit = comparison.limit
    worst = max(learner.runs, key=lambda run: (run.worst_gap, run.share_above(limit)))
    axes.axhspan(limit, top, color=ALARM, alpha=0.09, linewidth=0, zorder=0)
    axes.axhline(limit, color=ALARM, linewidth=1.3, linestyle=(0, (4, 2)), zorder=4)
    for run in learner.runs:
        corners = step_corners(run.rounds, run.gaps, start)
        axes.plot(*corners, color=look.colour, linewidth=0.7, alpha=0.45)
    corners = step_corners(worst.rounds, worst.gaps, start)
    axes.plot(*corners, color=look.colour, linewidth=2.3, zorder=5, clip_on=False)
    label_at_right(axes, limit, f"limit\n{limit:g}", ALARM)
    axes.set(xscale="log", xlim=(start, max(comparison.rounds, 1.1 * start)), ylim=(0.0, top))
    axes.locator_params(axis="y", nbins=5)
    row = learner.summary(limit)
    if row.runs_above:
        verdict = f"above in {row.runs_above} of {row.runs} runs, {row.rounds_above:.0%} of rounds"
    else:
        verdict = f"never above, worst {row.worst_gap:.3f} ({row.runs} run{'s' * (row.runs > 1)})"
    title_with_note(axes, learner.name, look.colour, verdict)
    axes.set(xlabel="round", ylabel="true gap")


# one table of a study with one limit


def study_panels(comparison: Comparison) -> list[Panel]:
    """The true gap of every round in the worst run, then the mean cost so far."""
    gap = partial(draw_study_gap, comparison=comparison)
    cost = partial(draw_study_cost, comparison=comparison)
    return [
        Panel(gap, "True gap of the deployed policy by round"),
        Panel(cost, "Mean cost per person so far by round"),
    ]


def study_grid(comparison: Comparison) -> FloatArray:
    """Rounds at which curves are drawn."""
    last = comparison.rounds
    return np.geomspace(min(100, last), last, 400)


def draw_study_gap(axes: "Axes", comparison: Comparison) -> None:
    """For each learner, the largest true gap over its runs."""
    grid = study_grid(comparison)
    chosen = looks(learner.name for learner in comparison.learners)
    for learner in comparison.learners:
        worst = np.max([value_at(run.rounds, run.gaps, grid) for run in learner.runs], axis=0)
        look = chosen[learner.name]
        axes.plot(grid, worst, **look.line, drawstyle="steps-post", label=learner.name)
    axes.axhline(comparison.limit, color=ALARM, linestyle=(0, (4, 2)), linewidth=1.2)
    axes.set(title="How far apart the groups were", xscale="log")
    axes.set(xlabel="people decided about", ylabel="true gap, worst run")
    axes.set_ylim(bottom=0.0)
    # below the axes, where no curve is
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=3)


def draw_study_cost(axes: "Axes", comparison: Comparison) -> None:
    """For each learner, the mean cost per person so far; what costs far more is cut off."""
    grid = study_grid(comparison)
    chosen = looks(learner.name for learner in comparison.learners)
    constant = comparison.constant
    optimum = comparison.optimum
    lowest = optimum
    for learner in comparison.learners:
        costs = []
        for run in learner.runs:
            total = np.cumsum(run.lengths * run.losses)
            costs.append(np.interp(grid, np.r_[0, run.rounds], np.r_[0.0, total]) / grid)
        mean = np.mean(costs, axis=0)
        lowest = min(lowest, float(mean.min()))
        axes.plot(grid, mean, **chosen[learner.name].line)
    for level, name in ((constant, "better constant"), (optimum, "best fair policy in hindsight")):
        axes.axhline(level, color=MUTED, linestyle=(0, (1, 1.6)), linewidth=1.0)
        axes.text(grid[0], level, name, color=MUTED, fontsize=8, va="bottom")
    top = max(lowest + 1.6 * (constant - lowest), 1.02 * constant)
    axes.set(title="What it cost", xscale="log", ylim=(lowest - 0.1 * (top - lowest), top))
    axes.set(xlabel="people decided about", ylabel="cost per person so far")


# what was certified and what was true


def certified_runs(comparison: Comparison) -> LearnerRuns | None:
    """Find the first learner of a comparison that certified every policy it deployed.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulation.compare` returned.

    Returns
    -------
    LearnerRuns or None
        None if no learner certifies, or if the population is not discrete.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> from evenhand.simulation import compare
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> certified_runs(comparison) is None
    True
    """
    for learner in comparison.learners:
        if all(run.certified is not None for run in learner.runs):
            return learner
    return None


def certified_figure(comparison: Comparison, learner: LearnerRuns) -> "Figure":
    """Draw what a learner certified and what was true, and how much of its policy was learned.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulation.compare` returned.
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
    >>> from evenhand.simulation import compare
    >>> world = lending()
    >>> rate = eh.FalsePositiveRate()
    >>> learner = eh.CertifiedLearner(world.hypotheses, rate, 0.1, 0.05, horizon=300)
    >>> comparison = compare(
    ...     {"certified": learner}, world, rounds=300, seeds=[0],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> figure = certified_figure(comparison, certified_runs(comparison))
    >>> figure.axes[0].get_title(loc="left")
    'Certified below the limit, and truly below'
    """
    return draw_panels(certified_panels(comparison, learner), 2, WIDE)


def certified_panels(comparison: Comparison, learner: LearnerRuns) -> list[Panel]:
    """The certified and the true gap, then the weight of the learned policy and of the audits."""
    look = looks(one.name for one in comparison.learners)[learner.name]
    return certified_run_panels(learner.runs, comparison.limit, look)


def certified_run_panels(runs: Sequence[RunRecord], limit: float, look: Look) -> list[Panel]:
    """The same for any runs of a certified learner."""
    certified = partial(draw_certified, runs=runs, limit=limit, look=look)
    weight = "Weight of the learned policy and of the audit coin by round"
    return [
        Panel(certified, "Certified and true gap by round"),
        Panel(partial(draw_weight, runs=runs, look=look), weight),
    ]


def certified_run_figure(run: RunRecord, limit: float) -> "Figure":
    """Draw one run of the certified learner: certified and true gap, and the learned weight.

    Parameters
    ----------
    run : RunRecord
        A run on a discrete population, from `evenhand.simulation.record`.
    limit : float
        The gap that no policy may exceed.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels side by side.

    Examples
    --------
    >>> import evenhand as eh
    >>> from evenhand.simulation import record
    >>> world = eh.environments.lending()
    >>> learner = eh.CertifiedLearner(world.hypotheses, "fpr", 0.1, 0.05, horizon=300)
    >>> run = eh.simulate(learner, world, rounds=300, seed=0)
    >>> len(certified_run_figure(record(run, world, 0.1), 0.1).axes)
    2
    """
    return draw_panels(certified_run_panels([run], limit, LOOKS["certified"]), 2, WIDE)


def draw_certified(axes: "Axes", runs: Sequence[RunRecord], limit: float, look: Look) -> None:
    """The certified bound and the true gap of every round; in bold the run with the largest."""
    rounds = int(runs[0].rounds[-1])
    top = 1.35 * limit
    start = max(1.0, min(50.0, rounds / 100))
    worst = max(runs, key=lambda run: run.worst_gap)
    axes.axhspan(limit, top, color=ALARM, alpha=0.09, linewidth=0, zorder=0)
    axes.axhline(limit, color=ALARM, linewidth=1.4, linestyle=(0, (4, 2)), zorder=3)
    for run in runs:
        bold = run is worst
        assert run.certified is not None  # certified_runs chose them
        corners = step_corners(run.rounds, run.certified, start)
        width, alpha, dash = (1.9, 1.0, (0, (5, 1.3))) if bold else (0.7, 0.35, "-")
        axes.plot(*corners, color=BOUND, linewidth=width, alpha=alpha, linestyle=dash, zorder=4)
        corners = step_corners(run.rounds, run.gaps, start)
        width, alpha = (2.4, 1.0) if bold else (0.7, 0.4)
        axes.plot(*corners, color=look.colour, linewidth=width, alpha=alpha, zorder=5)
    logarithmic_rounds(axes, start, rounds)
    axes.set(ylim=(0.0, top), title="Certified below the limit, and truly below")
    axes.locator_params(axis="y", nbins=5)
    axes.set_ylabel("|gap| of the policy of the round")
    # the labels of the three lines are kept apart
    assert worst.certified is not None
    upper = min(float(worst.certified[-1]), limit - 0.045 * top)
    lower = min(float(worst.gaps[-1]), upper - 0.13 * top)
    label_at_right(axes, limit + 0.035 * top, f"limit {limit:g}", ALARM)
    label_at_right(axes, upper, "certified\nat most", BOUND)
    label_at_right(axes, lower, "true", look.colour, bold=True)


def draw_weight(axes: "Axes", runs: Sequence[RunRecord], look: Look) -> None:
    """The mean over runs, in a band that holds the middle 80% of them."""
    rounds = int(runs[0].rounds[-1])
    start = max(1.0, min(50.0, rounds / 100))
    grid = np.geomspace(start, rounds, 240)
    learned = np.array([value_at(run.rounds, run.learned, grid) for run in runs])
    solid = replace(look, dash="-", width=2.4)
    draw_band(axes, grid, mean_and_middle(learned), solid)
    end = float(learned[:, -1].mean())
    label_at_right(axes, end, "learned\npolicy", solid.colour, bold=True)
    audits = np.array([value_at(run.rounds, run.audit, grid) for run in runs])
    dashed = Look(INK, INK, (0, (3, 1.3)), 1.7)
    draw_band(axes, grid, mean_and_middle(audits), dashed)
    end = float(audits[:, -1].mean())
    label_at_right(axes, end, "audit coin\n(accept all)", dashed.colour)
    axes.axhline(0.5, color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    logarithmic_rounds(axes, start, rounds)
    axes.set(ylim=(-0.02, 1.04), ylabel="share of the policy")
    axes.set_title("Evidence moves weight to the learned policy")


# the gap on the gathered labels against the true gap


def in_sample_figure(comparison: Comparison, learner: LearnerRuns) -> "Figure":
    """Draw the gap that ordinary tools would measure against the true gap, policy by policy.

    Parameters
    ----------
    comparison : Comparison
        What `evenhand.simulation.compare` returned.
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
    >>> from evenhand.simulation import compare
    >>> world = lending()
    >>> rate = eh.FalsePositiveRate()
    >>> learner = eh.CertifiedLearner(world.hypotheses, rate, 0.1, 0.05, horizon=300)
    >>> comparison = compare(
    ...     {"certified": learner}, world, rounds=300, seeds=[0],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> len(in_sample_figure(comparison, certified_runs(comparison)).axes)
    1
    """
    panels = in_sample_panels(comparison, learner)
    return draw_panels(panels, len(panels), SQUARE)


def in_sample_panels(comparison: Comparison, learner: LearnerRuns) -> list[Panel]:
    """The learner that ordinary tools resemble most, if it was run, beside the certified one."""
    others = [one for one in comparison.learners if one.name.startswith("fair-on-gathered")]
    chosen = looks(one.name for one in comparison.learners)
    shown = [*others[:1], learner]
    worst = max(run.worst_gap for one in shown for run in one.runs)
    limit = comparison.limit
    draw = partial(draw_in_sample, limit=limit, top=1.08 * max(1.6 * limit, worst))
    label = "Gap on the gathered labels against the true gap"
    return [Panel(partial(draw, learner=one, look=chosen[one.name]), label) for one in shown]


def in_sample_points(learner: LearnerRuns) -> FloatArray:
    """(3, points): measured gap, true gap, and rounds of every policy that is not a constant."""
    parts = [np.zeros((3, 0))]
    for run in learner.runs:
        if run.in_sample is not None:
            points = np.array([run.in_sample, run.gaps, run.lengths])
            parts.append(points[:, np.isfinite(run.in_sample) & (run.learned > 0)])
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
    sizes = 12 + 60 * (rounds / rounds.max(initial=1.0)) ** 0.5
    x = np.minimum(measured, top)
    dots: DrawOptions = dict(alpha=0.45, linewidth=0, zorder=4, clip_on=False)
    axes.scatter(x, true, s=sizes, color=look.colour, **dots)
    axes.set(xlim=(0, top), ylim=(0, top), aspect="equal")
    axes.locator_params(nbins=5)
    hidden = (measured <= limit + ROUNDING) & (true > limit + ROUNDING)
    if hidden.any():
        share = float(rounds[hidden].sum() / rounds.sum())
        verdict = f"looks fair and is not in {share:.0%} of the rounds"
    else:
        verdict = "no policy that looks fair is above the limit"
    title_with_note(axes, learner.name, look.colour, verdict)
    label_beside(axes, (limit, 0.97 * top), "\u2190 looks fair, is not", ALARM)
    axes.set(xlabel="|gap| on the labels gathered so far", ylabel="true |gap|")
