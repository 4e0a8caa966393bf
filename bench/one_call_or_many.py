"""Does a large call cost more than many small ones? The certified learner decides about a million
people in one call, and about the same people in 200 calls; labels are reported after each call.

What is timed is everything from the first call to the policy that has seen all of them: deciding,
reporting labels, closing, planning. Each row is measured twice: at the very beginning, when nothing
is certified, and after 5,000 others, when there are intervals to be narrowed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.record import Record, clock, median, number
from bench.tables import Tables
from evenhand import CertifiedLearner, FalsePositiveRate, FiniteClass, LabelledSample
from evenhand.contracts import HypothesisClass
from evenhand.environments import random_population
from evenhand.hypotheses.linear import LinearRule

PEOPLE, CALLS = 1_000_000, 200
QUICK_PEOPLE, QUICK_CALLS = 1_000, 5
COLUMNS, RULES = 12, 16


def one_call_or_many(_tables: Tables, quick: bool) -> list[Record]:
    """204 hypotheses on 100 contexts, and 16 linear rules on twelve continuous columns."""
    world = random_population(0)
    cases: list[tuple[str, HypothesisClass, Callable[..., Any]]] = [
        ("204 hypotheses x 100 contexts", world.hypotheses, world.draw),
        (f"{RULES} linear rules, {COLUMNS} continuous columns", _rules(), _continuous),
    ]
    before = (0, 200) if quick else (0, 5_000)
    return [_row(*case, others, quick) for case in cases for others in before]


def _rules() -> FiniteClass:
    r = np.random.default_rng(0)
    return FiniteClass(
        [
            LinearRule(tuple(r.normal(size=COLUMNS).tolist()), float(r.normal()))
            for _ in range(RULES)
        ]
    )


def _continuous(rows: int, generator: np.random.Generator) -> LabelledSample:
    features = generator.normal(size=(rows, COLUMNS))
    group = np.where(generator.random(rows) < 0.4, 1, -1)
    label = np.where(features[:, 0] + 0.3 * features[:, 1] + generator.normal(size=rows) > 0, 1, -1)
    return LabelledSample(features, group, label)


def _row(
    what: str,
    hypotheses: HypothesisClass,
    draw: Callable[..., Any],
    before: int,
    quick: bool,
) -> Record:
    people = QUICK_PEOPLE if quick else PEOPLE
    calls = QUICK_CALLS if quick else CALLS
    sample = draw(before + people, np.random.default_rng(1))

    def run(size: int) -> Callable[[], None]:
        def play() -> None:
            learner = CertifiedLearner(
                hypotheses, FalsePositiveRate(), 0.05, 0.05, horizon=before + people, seed=0
            )
            start = 0
            while start < before + people:
                part = slice(start, start + (100 if start < before else size))
                decided = learner.decide(sample.features[part], sample.group[part])
                taken = np.flatnonzero(decided.accept)
                learner.observe(start + taken, sample.label[part][taken])
                start += len(decided)
            learner.decide(
                sample.features[:1], sample.group[:1]
            )  # the call after the last labels closes and plans

        return play

    turns = [
        (clock(run(people))[0], clock(run(people // calls))[0]) for _ in range(1 if quick else 3)
    ]
    ratios = tuple(one / many for one, many in turns)
    middle = median(ratios)
    whole, cut = (median(seconds) for seconds in zip(*turns, strict=True))
    note = f"{whole:.3g} s against {cut:.3g} s"
    when = "at the beginning" if before == 0 else f"after {before:,} others"
    row = (
        f"a block of {people:.0e} people beside {calls} blocks of {people // calls:,}, {when}: "
        f"{what}"
    )
    return Record(row, "<= 2 x", f"{number(middle)} x (median)", middle <= 2, ratios, note)
