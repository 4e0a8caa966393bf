"""How long does one wait for a long simulation, a plan, a log to be aggregated, the demo? The work
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
from evenhand.simulation import simulate


def waiting_times(_tables: Tables, quick: bool) -> list[Record]:
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
    long, short = (2_000, 1_000) if quick else (10_000_000, 100_000)
    ratios = tuple(
        clock(lambda: play(long))[0] / clock(lambda: play(short))[0]
        for _ in range(1 if quick else 15)
    )
    middle = median(ratios)
    return Record(
        f"count-level simulation, T = {long:.0e}",
        f"<= 3 x T = {short:.0e}",
        f"{number(middle)} x",
        middle <= 3,
        ratios,
    )


def _plan(quick: bool) -> Record:
    """A plan for a million people, four runs."""
    horizon = 500 if quick else 1_000_000

    def make() -> None:
        shares, bad = {"a": 0.6, "b": 0.4}, {"a": 0.2, "b": 0.3}
        plan(
            limit=0.05,
            group_shares=shares,
            bad_rates=bad,
            separation=1.0,
            horizon=horizon,
            runs=1 if quick else 4,
        )

    if not quick:
        make()
    spent = tuple(clock(make)[0] for _ in range(1 if quick else 5))
    middle = median(spent)
    return Record(
        f"a plan for {horizon:.0e} people",
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
    rows = 1_000 if quick else 100_000
    features = np.tile(np.random.default_rng(0).normal(size=(rows // 2, 12)), (2, 1))
    log = RoundLog.from_rounds(features, np.zeros(rows, dtype=bool), [], 0.5)
    log.aggregated()
    turns = [
        (clock(lambda: np.unique(features, axis=0))[0], clock(log.aggregated)[0])
        for _ in range(1 if quick else 9)
    ]
    ratios = tuple(theirs / ours for theirs, ours in turns)
    middle, seconds = median(ratios), median([ours for _, ours in turns])
    note = f"{seconds:.3f} s CPU (target: < 1 s)"
    passed = middle >= 2 and seconds < 1
    return Record(
        f"{rows:.0e} rows aggregated",
        ">= 2 x np.unique over rows",
        f"{number(middle)} x",
        passed,
        ratios,
        note,
    )


def _demo(quick: bool) -> Record:
    """`evenhand demo` from a cold start, all its processes together."""
    words = [sys.executable, "-m", "evenhand", "demo", *(["--seeds", "0"] if quick else [])]
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
