"""The picture of the front page and of the README: true gap and errors of the same runs.

`python docs/pictures.py` writes docs/picture.png, which the README shows; the front page of the
documentation draws it anew at every build.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import evenhand as eh
from evenhand.learners import FairOnGathered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIMIT, RUNS, ROUNDS = 0.10, 8, 60_000
GATHERED, CERTIFIED, OPTIMUM, LINE = "#8a4b08", "#117733", "#33518a", "#c4400c"


class Panel(NamedTuple):
    """One way to decide: a line per run, as (edges, gaps, errors so far per person)."""

    title: str
    colour: str
    lines: list[tuple[np.ndarray, np.ndarray, np.ndarray]]

    @property
    def above(self) -> int:
        """How many runs were above the limit at some time."""
        return sum(bool(np.max(gaps) > LIMIT + 1e-9) for _, gaps, _ in self.lines)

    @property
    def errors(self) -> float:
        """The share of all people about whom the decision was wrong, over all runs."""
        return float(np.mean([errors[-1] for _, _, errors in self.lines]))


def line(run: eh.simulation.Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the policies of a run begin and end, their true gaps, and the errors so far."""
    edges = np.r_[0, run.rounds]
    errors = np.cumsum(np.diff(edges) * run.losses) / edges[1:]
    return edges, np.abs(run.gaps), errors


@cache
def panels() -> list[Panel]:
    """The three ways to decide, with the same people in the first two."""
    world = eh.environments.lending()
    setting = (world.hypotheses, eh.FalsePositiveRate(), LIMIT)
    learners = (
        ("Equal on the outcomes you collect", GATHERED, FairOnGathered(*setting)),
        ("evenhand: certified", CERTIFIED, eh.CertifiedLearner(*setting, 0.05)),
    )
    shown = [
        Panel(
            title,
            colour,
            [
                line(eh.simulate(learner, world, rounds=ROUNDS, seed=seed, comparator_gap=LIMIT))
                for seed in range(RUNS)
            ],
        )
        for title, colour, learner in learners
    ]
    loss, policy = world.optimum(LIMIT)
    edges = np.array([0, ROUNDS])
    best = (edges, np.abs([world.gap(policy)]), np.array([loss]))
    return [*shown, Panel("Ideal: the best within the limit", OPTIMUM, [best])]


def draw_gaps(axes: "Axes", panel: Panel, note: str) -> None:
    """The true gap of the policy that decides, and the limit."""
    for edges, gaps, _ in panel.lines:
        width = 1.3 if len(panel.lines) > 1 else 4  # it lies on the limit
        axes.stairs(gaps, edges, baseline=None, color=panel.colour, linewidth=width, alpha=0.8)
    axes.axhline(LIMIT, color=LINE, linestyle=(0, (4, 2)), linewidth=1.4)
    if panel.above == 0:  # where there is room for a word
        place = {"textcoords": "offset points", "ha": "right", "color": LINE}
        axes.annotate("limit", (ROUNDS, LIMIT), (-3, 4), **place)
    bold = {"fontsize": "medium", "fontweight": "bold"}
    axes.set_title(panel.title, loc="left", color=panel.colour, **bold)
    axes.annotate(note, (0.03, 0.9), xycoords="axes fraction", va="center", fontsize="small")
    axes.set(ylim=(0, 0.3))


def draw_errors(axes: "Axes", panel: Panel, best: float) -> None:
    """The share of people decided wrongly so far, and that of the best policy (dotted)."""
    axes.axhline(100 * best, color=OPTIMUM, linestyle=":", linewidth=1.4)
    for edges, _, errors in panel.lines:
        people = np.r_[edges[1:]] if len(errors) > 1 else edges
        share = errors if len(errors) > 1 else np.repeat(errors, 2)
        axes.plot(people, 100 * share, color=panel.colour, linewidth=1.3, alpha=0.8)
    note = f"{100 * panel.errors:.1f} errors per 100 of {ROUNDS:,} people"
    if panel.above:
        note += "\n(above the limit)"
    axes.annotate(note, (0.03, 0.9), xycoords="axes fraction", va="center", fontsize="small")
    axes.set(ylim=(20, 50))


def true_gap_and_errors(phone: bool = False) -> "Figure":
    """Above, the true gap by the number of people; below, the errors so far. Each line is a run.

    On a phone the panels stand one above the other.
    """
    from matplotlib import pyplot

    shown = panels()
    rows, columns, size = (6, 1, (4.4, 13)) if phone else (2, 3, (11, 4.8))
    figure, axes = pyplot.subplots(rows, columns, figsize=size, layout="constrained")
    places = axes.reshape(3, 2) if phone else axes.T
    for (above, below), panel in zip(places, shown, strict=True):
        note = f"{panel.above} of {RUNS} runs break the limit"
        if len(panel.lines) == 1:
            note = "it needs the outcomes of all people"
        draw_gaps(above, panel, note)
        draw_errors(below, panel, shown[-1].errors)
        for one in (above, below):
            one.set(xlim=(0, ROUNDS))
            one.set_xticks(range(0, ROUNDS + 1, 20_000))
            one.xaxis.set_major_formatter("{x:,.0f}")
            one.spines[["top", "right"]].set_visible(False)
        below.set_xlabel("people decided")
    for above, below in places if phone else places[:1]:
        above.set_ylabel("true gap in FPR")
        below.set_ylabel("errors per 100 people")
    return figure


if __name__ == "__main__":
    true_gap_and_errors().savefig(Path(__file__).with_name("picture.png"), dpi=110)
