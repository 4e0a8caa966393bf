"""The picture of the front page and of the README: true gaps with and without a certificate.

`python docs/pictures.py` writes docs/picture.png, which the README shows; the front page of the
documentation draws it anew at every build.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import evenhand as eh
from evenhand.learners import FairOnGathered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT, LIVES, ROUNDS = 0.10, 8, 60_000
GATHERED, CERTIFIED, LINE = "#8a4b08", "#117733", "#c4400c"


@cache
def simulated() -> list[tuple[str, str, list[eh.simulation.Run]]]:
    """The lives of both learners: title, colour, runs."""
    world, rate = eh.environments.lending(), eh.FalsePositiveRate()
    shown = (
        (FairOnGathered(world.hypotheses, rate, LIMIT), "Equal on the labels gathered", GATHERED),
        (eh.CertifiedLearner(world.hypotheses, rate, LIMIT, 0.05), "Certified", CERTIFIED),
    )
    return [
        (
            title,
            colour,
            [
                eh.simulate(learner, world, rounds=ROUNDS, seed=seed, comparator_gap=LIMIT)
                for seed in range(LIVES)
            ],
        )
        for learner, title, colour in shown
    ]


def eight_lives(phone: bool = False) -> "Figure":
    """Each line is one life: the true gap of the policy in charge, round by round.

    On a phone the panels stand one above the other.
    """
    from matplotlib import pyplot

    rows, columns, size = (2, 1, (4.4, 5.6)) if phone else (1, 2, (9.2, 3.3))
    figure, panels = pyplot.subplots(rows, columns, figsize=size, sharey=True, layout="constrained")
    for panel, (title, colour, runs) in zip(panels, simulated(), strict=True):
        above = sum(bool(np.max(run.gaps) > LIMIT) for run in runs)
        for run in runs:
            edges = np.r_[0, run.rounds]
            panel.stairs(run.gaps, edges, baseline=None, color=colour, linewidth=1.4, alpha=0.8)
        panel.axhline(LIMIT, color=LINE, linestyle=(0, (4, 2)), linewidth=1.4)
        panel.annotate("limit", (ROUNDS, LIMIT), (-4, -13), textcoords="offset points", ha="right")
        counted = f"{title}\n{above} of {LIVES} lives above the limit"
        panel.set_title(counted, loc="left", fontsize="medium", fontweight="bold")
        panel.set(xlim=(0, ROUNDS), ylim=(0, 0.3), xlabel="people decided about")
        panel.set_xticks(range(0, ROUNDS + 1, 20_000))
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels if phone else panels[:1]:
        panel.set_ylabel("true gap of the policy in charge")
    return figure


if __name__ == "__main__":
    eight_lives().savefig(Path(__file__).with_name("picture.png"), dpi=110)
