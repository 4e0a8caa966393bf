"""What it costs to close an epoch after 1e5, 1e6 and 1e7 people, in blocks of 1,000, each class in
a process of its own.

A call of decide() that opens the next epoch closes the last one: its CPU seconds are those of a
closing. A closing "at" a number of people is the dearest one within a factor of 1.6 below it; an
epoch is a quarter as long as all before it, so there are two. Memory is the high-water mark less
what the process had before the first person. People are made block by block; that is not timed.

Beside it, on the same people: one call of river's `learn_one` and of Vowpal Wabbit's `learn` per
person, which neither certify nor remember anybody.
"""

import json
import os
import subprocess
import sys
from time import process_time
from typing import Any

import numpy as np

from bench.record import Record, number
from bench.scale import ROOT, peak, resident
from bench.tables import Tables
from evenhand.words import FloatArray

BLOCK = 1_000
SIZES = (10**5, 10**6, 10**7)
QUICK_SIZES = (2_000,)
COLUMNS = {"thresholds": 1, "finite": 5, "stumps": 20}
CASES = (("thresholds", "rows"), ("thresholds", "counts"), ("finite", "rows"), ("stumps", "rows"))
MOST_GROWTH = 3.0
MOST_SECONDS = 1.0
BYTES_A_PERSON = 64
MOST_BYTES = 2e8
"""What a person may take beside the features where rows are kept, and all of them together where
counts alone are.
"""
ONE_BY_ONE = 100_000


def closing(_: Tables, quick: bool) -> list[Record]:
    """A row for each class, and one beside learners that take people one by one."""
    sizes = QUICK_SIZES if quick else SIZES
    cases = CASES[:1] if quick else CASES
    found = [_measured(kind, keep, sizes[-1]) for kind, keep in cases]
    return [*(_record(point, sizes) for point in found), _beside(500 if quick else ONE_BY_ONE)]


def _record(point: dict[str, Any], sizes: tuple[int, ...]) -> Record:
    seconds = {size: _closing_at(point["closings"], size) for size in sizes}
    first = seconds[sizes[0]]
    growth = max(seconds[size] / first for size in sizes)
    people = sizes[-1]
    features = 8 * COLUMNS[point["kind"]]
    each = point["peak"] / people
    rows = point["keep"] == "rows"
    memory = (
        f"{features + BYTES_A_PERSON} bytes a person" if rows else f"{number(MOST_BYTES / 1e6)} MB"
    )
    memory_shown = f"{number(each)} bytes a person" if rows else f"{number(point['peak'] / 1e6)} MB"
    small = each <= features + BYTES_A_PERSON if rows else point["peak"] <= MOST_BYTES
    shown = ", ".join(f"{size:.0e}: {number(one)} s" for size, one in seconds.items())
    return Record(
        f"{point['kind']}, keep={point['keep']!r}: closing an epoch, {people:.0e} people in blocks "
        f"of {BLOCK:,}",
        f"<= {MOST_GROWTH:g} x that at {sizes[0]:.0e}, < {MOST_SECONDS:g} s, memory <= {memory}",
        f"{number(growth)} x, {number(max(seconds.values()))} s; {memory_shown}; longest call "
        f"{number(point['longest'])} s, {number(point['seconds'])} s of CPU in all",
        growth <= MOST_GROWTH and max(seconds.values()) < MOST_SECONDS and small,
        note=f"closings at {shown}; {number(1e6 * point['seconds'] / people)} us of CPU a person; "
        f"peak {number(point['peak'] / 1e6)} MB, {features} bytes a person are features",
        detail=(point,),
    )


def _closing_at(closings: list[list[float]], people: int) -> float:
    near = [seconds for at, seconds in closings if people / 1.6 <= at <= people]
    return max(near or [seconds for _, seconds in closings])


def _measured(kind: str, keep: str, people: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.closing", kind, keep, str(people)]
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    told = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, env=one_thread
    )
    found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return found


def _inside(kind: str, keep: str, people: int) -> dict[str, Any]:
    learner = _learner(kind, keep, seed=0)
    warm = _learner(kind, keep, seed=0)
    _run(warm, kind, min(people, 3_000))  # load what is loaded at the first closing
    before = resident()
    closings, longest, seconds = _run(learner, kind, people)
    return {
        "kind": kind,
        "keep": keep,
        "people": people,
        "closings": closings,
        "longest": longest,
        "seconds": seconds,
        "peak": peak() - before,
    }


def _run(learner: Any, kind: str, people: int) -> tuple[list[tuple[int, float]], float, float]:
    """(people, CPU seconds) of each closing, the longest call, and all calls together."""
    generator = np.random.default_rng(0)
    closings = []
    longest = total = 0.0
    while learner.round < people:
        features, group, label = _people(generator, BLOCK, COLUMNS[kind])
        epoch = learner.epoch.number
        start = process_time()
        decided = learner.decide(features, group)
        seconds = process_time() - start
        if learner.epoch.number > epoch:
            closings.append((learner.round, seconds))
        accept = decided.accept
        start = process_time()
        learner.observe(decided.round[accept], label[accept])
        reported = process_time() - start
        longest = max(longest, seconds, reported)
        total += seconds + reported
    return closings, longest, total


def _learner(kind: str, keep: Any, seed: int) -> Any:
    from evenhand import CertifiedLearner, ScoreThresholds, Stumps
    from evenhand.hypotheses import FiniteClass
    from evenhand.hypotheses.linear import LinearRule

    directions = np.random.default_rng(5).normal(size=(60, COLUMNS["finite"])).tolist()
    classes = {
        "thresholds": ScoreThresholds(),
        "stumps": Stumps(),
        "finite": FiniteClass([LinearRule(tuple(weights), 0.0) for weights in directions]),
    }
    return CertifiedLearner(classes[kind], "fpr", 0.1, 0.05, seed=seed, keep=keep)


def _people(
    generator: np.random.Generator, people: int, columns: int
) -> tuple[FloatArray, Any, Any]:
    """Two groups; the first column says half of what there is to know about the label."""
    group = generator.random(people) < 0.4
    features = generator.normal(size=(people, columns))
    features[:, 0] += 0.3 * group
    score = 1.2 * features[:, 0] + 0.1 * group - 0.2
    label = np.where(generator.random(people) < 1.0 / (1.0 + np.exp(-score)), 1, -1)
    return features, np.where(group, "a", "b"), label


def _beside(people: int) -> Record:
    """Microseconds of CPU a person, on 20 columns: ours decides and learns in blocks (stumps),
    river and VW learn one by one.
    """
    features, _, label = _people(np.random.default_rng(1), people, COLUMNS["stumps"])
    _, _, ours = _run(_learner("stumps", "rows", seed=0), "stumps", people)
    each = {
        "evenhand": ours / people,
        "river learn_one": _river(features, label) / people,
        "VW learn": _vw(features, label) / people,
    }
    shown = ", ".join(f"{name}: {number(1e6 * seconds)} us" for name, seconds in each.items())
    others = min(seconds for name, seconds in each.items() if name != "evenhand")
    ratio = ours / people / others
    return Record(
        f"a person in a certified learner beside river and VW, {people:.0e} people, 20 columns",
        "shown",
        f"{number(ratio)} x the faster of the two ({shown})",
        True,
        detail=(each,),
    )


def _river(features: FloatArray, label: Any) -> float:
    """CPU seconds of a scaled logistic regression that learns person by person."""
    from river import compose, linear_model, preprocessing

    model = compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    people = [dict(enumerate(row)) for row in features.tolist()]
    outcomes = (label == 1).tolist()
    start = process_time()
    for person, outcome in zip(people, outcomes, strict=True):
        model.learn_one(person, outcome)
    return process_time() - start


def _vw(features: FloatArray, label: Any) -> float:
    """CPU seconds of Vowpal Wabbit's logistic loss, text included."""
    from vowpalwabbit import Workspace

    workspace = Workspace("--loss_function logistic --quiet")
    start = process_time()
    for row, outcome in zip(features.tolist(), label.tolist(), strict=True):
        told = " ".join(f"{j}:{value:g}" for j, value in enumerate(row))
        workspace.learn(f"{outcome} | {told}")
    return process_time() - start


if __name__ == "__main__":
    print(json.dumps(_inside(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
