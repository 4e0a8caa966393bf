"""Sweeps of learners x tables x limits x seeds: resumable, deterministic, on one machine or on a
Dask cluster.
"""

from evenhand.simulate.study.study import (
    Cell,
    Dask,
    Journal,
    Local,
    Study,
    Workers,
    study,
    unfinished,
    write_parquet,
)
from evenhand.simulate.study.tasks import (
    OptimumTask,
    Question,
    RunTask,
    Source,
    StudyPlan,
    source_of,
)

__all__ = [
    "Cell",
    "Dask",
    "Journal",
    "Local",
    "OptimumTask",
    "Question",
    "RunTask",
    "Source",
    "Study",
    "StudyPlan",
    "Workers",
    "source_of",
    "study",
    "unfinished",
    "write_parquet",
]
