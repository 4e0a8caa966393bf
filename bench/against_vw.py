"""The certified learner against Vowpal Wabbit's Python epsilon-greedy on the same stream of people:
seconds of CPU for 1e5 rounds.

Both see the same people in the same order. VW predicts and learns person by person, as its users
do; ours decides in blocks, fits linear rules and keeps certificates. Drawing people and measuring
the truth are left out of both. They run in turns, several times, and a table's ratio is the median:
single runs of either side differ by half on a busy machine.
"""

from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bench.data import Name, Table
from bench.record import Record, number
from bench.tables import Tables
from evenhand import CertifiedLearner, FalsePositiveRate, Linear

ROUNDS = 100_000
REPEATS = 5


def speed(tables: Tables, quick: bool) -> list[Record]:
    """Ours over VW's, per table; below 1 is faster."""
    rounds = 500 if quick else ROUNDS
    names: tuple[Name, ...] = ("compas",) if quick else ("compas", "taiwan", "adult")
    found = {name: _turns(tables.get(name), rounds, 1 if quick else REPEATS) for name in names}
    ratios = {name: [ours / theirs for ours, theirs in turns] for name, turns in found.items()}
    medians = {name: float(np.median(values)) for name, values in ratios.items()}
    shown = "; ".join(
        f"{name}: {number(medians[name])} ({number(min(values))} to {number(max(values))})"
        for name, values in ratios.items()
    )
    return [
        Record(
            f"certified learner, linear rules, {rounds:.0e} rounds, "
            "against VW epsilon-greedy (Python)",
            "<= .6 on each table",
            f"{number(max(medians.values()))} at most",
            max(medians.values()) <= 0.6,
            tuple(medians.values()),
            note=f"{shown} {tables.note}",
            detail=tuple(
                {"table": name, "ours": a, "vw": b}
                for name, turns in found.items()
                for a, b in turns
            ),
        )
    ]


def _turns(table: Table, rounds: int, repeats: int) -> list[tuple[float, float]]:
    """(ours, VW's) of each turn, one BLAS thread for both; a limit only reaches libraries that are
    loaded, so a short run comes first.
    """
    people = np.random.default_rng(0).integers(0, len(table), rounds)
    ours(table, people[: rounds // 50])
    with threadpool_limits(1):
        return [(ours(table, people), vw(table, people)) for _ in range(repeats)]


def ours(table: Table, people: Any) -> float:
    """CPU seconds of decide and observe, epoch by epoch."""
    learner = CertifiedLearner(
        Linear(), FalsePositiveRate(), 0.05, 0.05, horizon=len(people), seed=0
    )
    start, at = process_time(), 0
    while at < len(people):
        learner.open_epoch()
        rows = people[at : at + learner.rounds_left]
        decided = learner.decide(table.features[rows], table.group[rows])
        taken = np.flatnonzero(decided.accept)
        learner.observe(decided.first_round + taken, table.label[rows][taken])
        at += len(rows)
    return process_time() - start


def vw(table: Table, people: Any) -> float:
    """CPU seconds of predict and learn, person by person."""
    from vowpalwabbit import Workspace

    workspace, coins = (
        Workspace("--cb_explore 2 --epsilon 0.05 --quiet"),
        np.random.default_rng(1).random(len(people)),
    )
    start = process_time()
    for row, coin in zip(people.tolist(), coins.tolist(), strict=True):
        values = table.features[row]
        told = " ".join(f"{j}:{values[j]:g}" for j in np.flatnonzero(values).tolist())
        chance = workspace.predict(f"| {told}")
        accept = coin < chance[0]
        cost = 0.5 if not accept else float(table.label[row] == -1)
        workspace.learn(f"{1 if accept else 2}:{cost}:{chance[0 if accept else 1]} | {told}")
    return process_time() - start
