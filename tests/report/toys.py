"""A small comparison and a small study with invented numbers, for the tests of this folder."""

import numpy as np

from evenhand.simulate import Comparison, LearnerRuns, RunRecord
from evenhand.simulate.study import Source, Study, StudyPlan

ROUNDS = np.array([1000, 4000, 10_000])


def run(seed: int, gaps: list[float], regret: float, *, promised: bool = True) -> RunRecord:
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
        promised=promised,
        regret_in_set=10.0 if promised else None,
    )


def runs(name: str, gaps: list[float], regret: float, *, promised: bool = True) -> LearnerRuns:
    records = (run(seed, gaps, regret + seed, promised=promised) for seed in range(4))
    return LearnerRuns(name, {}, tuple(records))


def comparison(*learners: LearnerRuns) -> Comparison:
    """Four learners with four runs each, or those that are given."""
    return Comparison(
        environment={"environment": "toy <&>"},
        rounds=10_000,
        seeds=(0, 1, 2, 3),
        promise=0.15,
        failure_probability=0.05,
        regret_gap=0.02,
        optimum=0.25,
        learners=learners
        or (
            runs("two-phase", [0.0, 0.1, 0.12], 500.0),
            runs("explore-then-commit-same", [0.0, 0.1, 0.1], 450.0),
            runs("unconstrained", [0.0, 0.3, 0.28], -90.0, promised=False),
            runs("two-phase:reading=paper", [0.0, 0.1, 0.1], 480.0, promised=False),
        ),
    )


def study(**changes: object) -> Study:
    """The certified learner and an unconstrained one on one table; `changes` to every row."""
    plan = StudyPlan((Source("loans"),), ("certified", "unconstrained"), seeds=2, rounds=1000)
    rows = []
    for learner, gap, above, promised, ratio in (
        ("certified", 0.03, 0.0, True, 0.4),
        ("unconstrained", 0.26, 0.97, False, -0.3),
    ):
        for seed in (0, 1):
            row = {
                "table": "loans",
                "limit": 0.05,
                "learner": learner,
                "seed": seed,
                "error": 0.2,
                "last_error": 0.19,
                "optimum": 0.15,
                "constant": 0.25,
                "regret": 50.0,
                "regret_over_constant": ratio,
                "worst_gap": gap,
                "rounds_above": above,
                "audit_share": 0.1,
                "accepted_share": 0.6,
                "promised": promised,
                "curve_rounds": [100, 500, 1000],
                "curve_loss": [0.25, 0.2, 0.19],
                "curve_gap": [0.0, gap / 2, gap],
            }
            rows.append(row | changes)
    return Study(plan, tuple(rows), (1.0,) * 4)
