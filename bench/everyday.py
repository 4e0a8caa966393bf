"""What people wait for: a long simulation, a plan, a log to be aggregated, the demo. The work
behind it is counted in the tests.
"""

import resource
import subprocess
import sys
import tempfile

import numpy as np

from bench.record import Record, clock, median, number
from bench.tables import Tables
from evenhand import FalsePositiveRate, TwoPhaseLearner, plan
from evenhand.environments import random_population
from evenhand.estimation import RoundLog
from evenhand.simulate import simulate


def everyday(_tables: Tables, quick: bool) -> list[Record]:
    """Seconds are CPU seconds on this machine; the two ratios hold on any."""
    return [_count_level(quick), _plan(quick), _aggregation(quick), _demo(quick)]


def _count_level(quick: bool) -> Record:
    """T = 1e7 beside T = 1e5, in turns."""
    world = random_population()

    def play(rounds: int) -> None:
        learner = TwoPhaseLearner(
            world.hypotheses,
            FalsePositiveRate(),
            None,
            0.05,
            rounds,
            comparator_gap=0.02,
            exploration_rounds=400,
        )
        simulate(learner, world, rounds, 2, engine="counts")

    play(1_000)
    ratios = tuple(
        clock(lambda: play(10_000_000))[0] / clock(lambda: play(100_000))[0]
        for _ in range(3 if quick else 15)
    )
    middle = median(ratios)
    return Record(
        "count-level simulation, T = 1e7",
        "<= 3 x T = 1e5",
        f"{number(middle)} x",
        middle <= 3,
        ratios,
    )


def _plan(quick: bool) -> Record:
    """A plan for a million people, four lives."""

    def make() -> None:
        shares, bad = {"a": 0.6, "b": 0.4}, {"a": 0.2, "b": 0.3}
        plan(
            limit=0.05,
            group_shares=shares,
            bad_rates=bad,
            separation=1.0,
            horizon=1_000_000,
            lives=4,
        )

    make()
    spent = tuple(clock(make)[0] for _ in range(1 if quick else 5))
    middle = median(spent)
    return Record(
        "a plan for 1e6 people",
        "< 30 s CPU",
        f"{middle:.2f} s",
        middle < 30,
        spent,
        "seconds, not ratios",
    )


def _aggregation(quick: bool) -> Record:
    """1e5 continuous rows of twelve columns, each of them there twice, beside np.unique over the
    rows.
    """
    features = np.tile(np.random.default_rng(0).normal(size=(50_000, 12)), (2, 1))
    log = RoundLog.from_rounds(features, np.zeros(100_000, dtype=bool), [], 0.5)
    log.aggregated()
    turns = [
        (clock(lambda: np.unique(features, axis=0))[0], clock(log.aggregated)[0])
        for _ in range(3 if quick else 9)
    ]
    ratios = tuple(theirs / ours for theirs, ours in turns)
    middle, seconds = median(ratios), median([ours for _, ours in turns])
    note = f"{seconds:.3f} s CPU (target: < 1 s)"
    passed = middle >= 2 and seconds < 1
    return Record(
        "1e5 rows aggregated",
        ">= 2 x np.unique over rows",
        f"{number(middle)} x",
        passed,
        ratios,
        note,
    )


def _demo(quick: bool) -> Record:
    """`evenhand demo` from a cold start, all its processes together."""
    words = [sys.executable, "-m", "evenhand", "demo", *(["--seeds", "1"] if quick else [])]
    before = _children()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
    spent = _children() - before
    return Record(
        "evenhand demo", "< 60 s CPU", f"{spent:.1f} s", spent < 60, (spent,), "seconds, not ratios"
    )


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
