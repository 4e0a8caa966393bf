"""A small comparison and a small study with invented numbers, for the tests of this folder."""

import numpy as np

from evenhand.simulation import Comparison, LearnerRuns, RunRecord
from evenhand.simulation.study import Source, Study, StudyPlan

ROUNDS = np.array([1000, 4000, 10_000])


def run(seed: int, gaps: list[float], regret: float, *, guaranteed: bool = True) -> RunRecord:
    return RunRecord(
        seed=seed,
        rounds=ROUNDS,
        regret=regret * np.array([0.5, 0.7, 1.0]),
        gaps=np.array(gaps),
        losses=np.full(3, 0.3),
        accepted=np.array([1000, 2000, 4000]),
        phases=("explore", "bandit", "bandit"),
        optimum=0.25,
        oracle_calls=12,
        seconds=0.1,
        constant=0.4,
        guaranteed=guaranteed,
        learned=np.array([0.0, 0.5, 0.9]),
        audit=np.array([1.0, 0.5, 0.1]),
        regret_in_set=10.0 if guaranteed else None,
    )


def runs(name: str, gaps: list[float], regret: float, *, guaranteed: bool = True) -> LearnerRuns:
    records = (run(seed, gaps, regret + seed, guaranteed=guaranteed) for seed in range(4))
    return LearnerRuns(name, {}, tuple(records))


def comparison(*learners: LearnerRuns) -> Comparison:
    """Four learners with four runs each, or those that are given."""
    return Comparison(
        environment={"environment": "toy <&>"},
        rounds=10_000,
        seeds=(0, 1, 2, 3),
        limit=0.15,
        delta=0.05,
        regret_gap=0.02,
        optimum=0.25,
        constant=0.4,
        learners=learners
        or (
            runs("two-phase", [0.0, 0.1, 0.12], 500.0),
            runs("explore-then-commit-same", [0.0, 0.1, 0.1], 450.0),
            runs("unconstrained", [0.0, 0.3, 0.28], -90.0, guaranteed=False),
            runs("two-phase:reading=paper", [0.0, 0.1, 0.1], 480.0, guaranteed=False),
        ),
    )


STUDIED = {
    "certified": ([0.0, 0.015, 0.03], 0.4, True),
    "unconstrained": ([0.04, 0.13, 0.26], -0.3, False),
}
"""The gaps, the regret as a share of the constant's, and whether the limit is guaranteed."""


def study(
    *,
    gaps: list[float] | None = None,
    regret_over_constant: float | None = None,
    constant: float = 0.25,
) -> Study:
    """The certified learner and an unconstrained one on one table, with the same gaps or the same
    regret for both if they are given.
    """
    plan = StudyPlan((Source("loans"),), tuple(STUDIED), seeds=2, rounds=1000)
    learners = []
    for name, (own_gaps, own_ratio, guaranteed) in STUDIED.items():
        ratio = own_ratio if regret_over_constant is None else regret_over_constant
        records = [
            RunRecord(
                seed=seed,
                rounds=np.array([30, 500, 1000]),
                regret=ratio * (0.25 - 0.15) * np.array([30.0, 500.0, 1000.0]),
                gaps=np.array(gaps or own_gaps),
                losses=np.array([0.25, 0.2, 0.19]),
                accepted=np.array([30, 270, 300]),
                phases=("bandit",) * 3,
                optimum=0.15,
                oracle_calls=12,
                seconds=1.0,
                constant=constant,
                guaranteed=guaranteed,
                learned=np.full(3, 0.9),
                audit=np.full(3, 0.1),
            )
            for seed in (0, 1)
        ]
        learners.append(LearnerRuns(name, {}, tuple(records)))
    compared = Comparison(
        environment={"environment": "loans"},
        rounds=1000,
        seeds=(0, 1),
        limit=0.05,
        delta=0.05,
        regret_gap=0.05,
        optimum=0.15,
        constant=constant,
        learners=tuple(learners),
    )
    return Study(plan, (compared,))
