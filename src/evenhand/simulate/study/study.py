"""The study: optima first, then all runs; whatever the journal holds is not computed again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.simulate.study.journal import Journal
from evenhand.simulate.study.tasks import RunTask, StudyPlan, Task
from evenhand.simulate.study.workers import Local, Workers
from evenhand.words import FloatArray

JOURNAL = "journal.jsonl"
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Study:
    """The rows of all runs in the order of the plan, with the seconds that each took (which are no
    result).
    """

    plan: StudyPlan
    rows: tuple[Mapping[str, Any], ...]
    seconds: tuple[float, ...]

    def of(self, table: str, limit: float, learner: str) -> "Cell":
        """The runs of one learner on one question."""
        chosen = [
            i
            for i, row in enumerate(self.rows)
            if (row["table"], row["limit"], row["learner"]) == (table, limit, learner)
        ]
        return Cell(
            learner, tuple(self.rows[i] for i in chosen), tuple(self.seconds[i] for i in chosen)
        )

    @property
    def cells(self) -> tuple["Cell", ...]:
        """One for each table, limit and learner."""
        return tuple(
            self.of(question.source.name, question.limit, learner)
            for question in self.plan.questions
            for learner in self.plan.learners
        )


@dataclass(frozen=True, eq=False)
class Cell:
    """All seeds of one learner on one table with one limit."""

    learner: str
    rows: tuple[Mapping[str, Any], ...]
    seconds: tuple[float, ...]

    @property
    def table(self) -> str:
        """The table's name."""
        return str(self.rows[0]["table"])

    @property
    def limit(self) -> float:
        """The limit."""
        return float(self.rows[0]["limit"])

    def values(self, name: str) -> FloatArray:
        """One column; None is left out."""
        return np.array([row[name] for row in self.rows if row[name] is not None], dtype=np.float64)

    def mean(self, name: str) -> float:
        """The mean over seeds; NaN where nothing is known."""
        found = self.values(name)
        return float(found.mean()) if len(found) else float("nan")

    def error(self, name: str) -> float | None:
        """The standard error of that mean."""
        found = self.values(name)
        return float(found.std(ddof=1) / sqrt(len(found))) if len(found) > 1 else None

    @property
    def worst_gap(self) -> float:
        """The largest true gap of any round of any seed."""
        return float(self.values("worst_gap").max())

    @property
    def runs_above(self) -> int:
        """Runs in which some round was above the limit."""
        return int((self.values("rounds_above") > 0).sum())

    @property
    def promised(self) -> bool:
        """Whether the learner's own bound covers the limit in every run."""
        return all(row["promised"] for row in self.rows)


def study(
    plan: StudyPlan, folder: Path, workers: Workers | None = None, progress: Progress | None = None
) -> Study:
    """Run what the journal in `folder` does not hold yet, and collect the rows."""
    told = progress or (lambda *_: None)
    with Journal(folder / JOURNAL) as journal:
        team, total = (
            workers or Local(),
            len(plan.questions) * (1 + len(plan.learners) * plan.seeds),
        )
        _finish(plan.optima, journal, team, lambda: told(_done(plan, journal), total))
        runs = tuple(plan.runs(journal.rows))
        _finish(runs, journal, team, lambda: told(_done(plan, journal), total))
        rows = tuple(journal.rows[task.key] for task in runs)
        return Study(plan, rows, tuple(journal.seconds[task.key] for task in runs))


def _finish(
    tasks: Iterable[Task], journal: Journal, workers: Workers, told: Callable[[], None]
) -> None:
    left = [task for task in tasks if task.key not in journal.rows]
    if not left:
        return
    for key, row, seconds in workers.answers(left):
        journal.add(key, row, seconds)
        told()


def _done(plan: StudyPlan, journal: Journal) -> int:
    return min(len(journal.rows), len(plan.questions) * (1 + len(plan.learners) * plan.seeds))


def write_parquet(found: Study, path: Path) -> None:
    """The rows as Parquet, without times, which are no result: the same study gives the same file,
    wherever it ran.
    """
    try:
        import pyarrow  # type: ignore[import-untyped]  # optional, and without types
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidInput(
            "the table of results is Parquet, and pyarrow is not installed.",
            hint="pip install 'evenhand[study]'.",
        ) from None
    columns = {name: [row.get(name) for row in found.rows] for name in found.rows[0]}
    types = {name: pyarrow.list_(pyarrow.float64()) for name in ("curve_loss", "curve_gap")}
    types |= {
        "curve_rounds": pyarrow.list_(pyarrow.int64()),
        "regret_over_constant": pyarrow.float64(),
    }
    arrays = {name: pyarrow.array(values, type=types.get(name)) for name, values in columns.items()}
    partial = path.with_suffix(".part")
    pyarrow.parquet.write_table(pyarrow.table(arrays), partial)
    partial.replace(path)


def unfinished(plan: StudyPlan, folder: Path) -> Sequence[RunTask]:
    """The runs that the journal does not hold; all of them where an optimum is missing."""
    with Journal(folder / JOURNAL) as journal:
        known = {task.key: journal.rows.get(task.key, {}) for task in plan.optima}
        return [task for task in plan.runs(known) if task.key not in journal.rows]
