"""Decision trees as plain arrays: what a fitted scikit-learn tree says, without scikit-learn.

Features are compared as float32, as scikit-learn does, so that the answers are equal bit for bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contracts import Hypothesis, Json, Partition
from evenhand.hypotheses._rows import column_name, require_columns
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.words import BoolArray, FloatArray, GroupArray

_TOLD = 6


@dataclass(frozen=True)
class Tree:
    """Node 0 is the root; go left[n] if float32(x_column[n]) <= value[n], else right[n]; a leaf has
    column[n] = -1.
    """

    column: tuple[int, ...]
    value: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    accept: tuple[bool, ...]
    columns: int

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """accept[the leaf that the row falls into]."""
        require_columns(features, self.columns, "a decision tree")
        column, value, left, right, accept = self._arrays
        with np.errstate(over="ignore"):
            seen = features.astype(np.float32)
        node = np.zeros(len(seen), dtype=np.int64)
        inner = np.flatnonzero(column[node] >= 0)
        while len(inner):
            at = node[inner]
            node[inner] = np.where(seen[inner, column[at]] <= value[at], left[at], right[at])
            inner = inner[column[node[inner]] >= 0]
        return accept[node]

    @cached_property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        kinds = (np.int64, np.float64, np.int64, np.int64, np.bool_)
        parts = (self.column, self.value, self.left, self.right, self.accept)
        return tuple(np.array(part, dtype=kind) for part, kind in zip(parts, kinds, strict=True))

    def describe(self, names: Sequence[str] | None = None) -> str:
        """ "accept if (age <= 30 and income > 5) or (...)", the first six paths."""
        paths = [" and ".join(path) for path in self._accepting_paths(0, (), names)]
        if not paths or paths == [""]:
            return "accept everybody" if paths else "reject everybody"
        told = " or ".join(f"({path})" for path in paths[:_TOLD])
        return f"accept if {told}" + (
            f" or one of {len(paths) - _TOLD} other paths" if len(paths) > _TOLD else ""
        )

    def _accepting_paths(
        self, node: int, path: tuple[str, ...], names: Sequence[str] | None
    ) -> Iterator[tuple[str, ...]]:
        if self.column[node] < 0:
            yield from [path] if self.accept[node] else []
            return
        name, value = column_name(self.column[node], names), f"{self.value[node]:.6g}"
        yield from self._accepting_paths(self.left[node], (*path, f"{name} <= {value}"), names)
        yield from self._accepting_paths(self.right[node], (*path, f"{name} > {value}"), names)

    def to_json(self) -> Json:
        """Plain JSON."""
        parts = ("column", "value", "left", "right", "accept")
        return {
            "kind": "tree",
            "columns": self.columns,
            **{part: list(getattr(self, part)) for part in parts},
        }


def tree_of(fitted: Any) -> Tree:
    """The plain form of a fitted DecisionTreeClassifier whose classes are 0 (reject) and 1
    (accept).
    """
    inner = fitted.tree_
    leaf = inner.children_left < 0
    return Tree(
        column=tuple(np.where(leaf, -1, inner.feature).tolist()),
        value=tuple(np.where(leaf, 0.0, inner.threshold).tolist()),
        left=tuple(np.where(leaf, -1, inner.children_left).tolist()),
        right=tuple(np.where(leaf, -1, inner.children_right).tolist()),
        accept=tuple((inner.value[:, 0, 1] > inner.value[:, 0, 0]).tolist()),
        columns=int(fitted.n_features_in_),
    )


def leaves_of(fitted: Any, rows: NDArray[np.float32]) -> Partition:
    """The leaves of a fitted DecisionTreeClassifier: each may be accepted or not."""
    tree, leaf = tree_of(fitted), fitted.tree_.children_left < 0

    def relabelled(accept: BoolArray) -> Hypothesis:
        constant = (
            ACCEPT_ALL if accept[leaf].all() else REJECT_ALL if not accept[leaf].any() else None
        )
        return constant or replace(tree, accept=tuple((accept & leaf).tolist()))

    return Partition(fitted.tree_.apply(rows).astype(np.int64), len(leaf), False, relabelled)
