"""A table ready to be decided about: numeric features with names, the group and the label of each
row, +1 the good outcome.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.environments.replay import Replay
from evenhand.words import (
    CostSensitiveProblem,
    FloatArray,
    GroupArray,
    IntArray,
    LabelledSample,
    Prices,
)

Row = Mapping[str, str]


@dataclass(frozen=True)
class GroupFigures:
    """One group of a table: how many people, which share of all, and how many of them had the good
    outcome.
    """

    group: Any
    people: int
    share: float
    good_rate: float


@dataclass(frozen=True, eq=False)
class Table:
    """Numeric features with their names, group and label of each row; `generated` says that the
    rows were made up.

    notes: what was done to the rows on the way here, in words.
    """

    name: str
    features: FloatArray
    names: tuple[str, ...]
    group: GroupArray
    label: IntArray
    generated: bool = False
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.label)

    @property
    def sample(self) -> LabelledSample:
        """The rows on which rates are measured."""
        return LabelledSample(self.features, self.group, self.label)

    @property
    def problem(self) -> CostSensitiveProblem:
        """0-1 loss on the same rows."""
        return Prices().problem(self.features, self.group, self.label)

    def population(
        self, hypotheses: HypothesisClass | None = None, group_use: GroupUse = "certify_only"
    ) -> Replay:
        """The table as a population: rows drawn with replacement, so its own rates are the exact
        truth.
        """
        return Replay(self.sample, hypotheses=hypotheses, group_use=group_use, name=self.name)

    @property
    def figures(self) -> tuple[GroupFigures, ...]:
        """Each group with its size and its rate of good outcomes."""
        found = []
        for value in self.sample.groups:
            here = self.group == value
            found.append(
                GroupFigures(
                    value,
                    int(here.sum()),
                    float(here.mean()),
                    float((self.label[here] == 1).mean()),
                )
            )
        return tuple(found)

    def logged(self, columns: Sequence[str]) -> "Table":
        """The same rows with log(1 + x) of some columns: numbers with long tails then suit linear
        rules, and other rules do not mind.
        """
        if not columns:
            return self
        places = [self.names.index(column) for column in columns]
        features, names = self.features.copy(), list(self.names)
        features[:, places] = np.log1p(features[:, places])
        for place in places:
            names[place] = f"log(1 + {names[place]})"
        note = f"{', '.join(columns)} enter as log(1 + x)"
        return replace(self, features=features, names=tuple(names), notes=(*self.notes, note))

    def subset(self, rows: int, seed: int = 0) -> "Table":
        """A fixed random subset (all rows where there are no more)."""
        chosen = np.sort(np.random.default_rng(seed).permutation(len(self.label))[:rows])
        return replace(
            self, features=self.features[chosen], group=self.group[chosen], label=self.label[chosen]
        )


def encoded(
    name: str,
    rows: Sequence[Row],
    *,
    numbers: Sequence[str],
    kinds: Sequence[str] = (),
    group: Sequence[str],
    good: Sequence[bool],
    notes: tuple[str, ...] = (),
) -> Table:
    """Columns of numbers as they are, columns of kinds as one 0/1 column per value."""
    columns = [np.array([float(row[column]) for row in rows]) for column in numbers]
    names = list(numbers)
    for kind in kinds:
        values = np.array([row[kind] for row in rows])
        for value in np.unique(values).tolist():
            columns.append((values == value).astype(np.float64))
            names.append(f"{kind}={value}")
    label = np.where(good, 1, -1).astype(np.int64)
    return Table(name, np.stack(columns, axis=1), tuple(names), np.array(group), label, notes=notes)


def imputed(rows: Sequence[Row], column: str) -> tuple[list[str], str]:
    """The column with missing values replaced by the median, and a 0/1 column's name that says
    where; see `with_imputed`.
    """
    known = [float(row[column]) for row in rows if row[column] not in ("", "NA")]
    middle = f"{float(np.median(known)):.12g}"
    return [
        row[column] if row[column] not in ("", "NA") else middle for row in rows
    ], f"{column} missing"


def with_imputed(
    rows: Sequence[Row], columns: Sequence[str]
) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """Rows whose missing values in `columns` are the median, each beside a new 0/1 column "<column>
    missing"; and those columns.
    """
    told = [dict(row) for row in rows]
    flags = []
    for column in columns:
        filled, flag = imputed(rows, column)
        for row, old, value in zip(told, rows, filled, strict=True):
            row[column], row[flag] = value, str(int(old[column] in ("", "NA")))
        flags.append(flag)
    return told, tuple(flags)
