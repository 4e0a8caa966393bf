"""Gradient-boosted trees as hypothesis classes: LightGBM on one machine, and on a Dask cluster for
rows that outgrow one worker.

Both are heuristic oracles like any `Estimator`: weighted classification of 1[c_i < 0] with the
weights |c_i|. They need the extra `trees` (and `dask`).
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.contracts import Hypothesis, HypothesisClass, Params, RowOracle
from evenhand.errors import InvalidInput, install_hint
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.estimator import Estimator, Fitted, normalised
from evenhand.words import FloatArray, GroupArray, as_features, as_numbers

SETTINGS: Params = {
    "n_estimators": 60,
    "num_leaves": 15,
    "learning_rate": 0.1,
    "min_child_samples": 30,
    "random_state": 0,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,
}


def lightgbm_class(**settings: Any) -> Estimator:
    """Boosted trees (LightGBM).

    With one thread and fixed seeds: the same rows and costs give the same trees.
    """
    return Estimator(_lightgbm().LGBMClassifier(**{**SETTINGS, "n_jobs": 1, **settings}))


@dataclass(frozen=True)
class DaskBoosting(HypothesisClass):
    """LightGBM trained by the workers of a Dask cluster: `client` is a connected
    distributed.Client, rows go out in `partitions` once.

    No worker holds more than its partitions; the fitted model comes back and decides like any
    other.
    """

    client: Any
    partitions: int = 4
    settings: Params = field(default_factory=dict)
    exact = False
    uses_group = False

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise InvalidInput(
                f"partitions is {self.partitions}; the rows go out in at least one part."
            )

    @property
    def params(self) -> Params:
        """Class, partitions and settings."""
        return {
            "class": "DaskBoosting",
            "partitions": self.partitions,
            "settings": {**SETTINGS, **self.settings},
        }

    def bind(self, features: FloatArray, group: GroupArray | None) -> RowOracle:
        """Send the rows to the workers once."""
        rows = as_features(features, may_be_empty=False)
        size = math.ceil(len(rows) / self.partitions)
        return _BoundDask(self, _array(rows, (size, rows.shape[1])).persist(), rows.shape, size)


@dataclass(frozen=True, eq=False)
class _BoundDask:
    """Rows that lie on the workers."""

    owner: DaskBoosting
    rows: Any
    shape: tuple[int, ...]
    size: int

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """Boosted trees fitted to 1[c < 0] with weights |c|; rows of weight 0 stay, they count
        nothing.
        """
        cost = as_numbers(acceptance_cost, self.shape[0], "acceptance_cost")
        accept = cost < 0
        if not (cost > 0).any() or not accept.any():
            return ACCEPT_ALL if accept.any() or not (cost > 0).any() else REJECT_ALL
        settings = {**SETTINGS, "tree_learner": "data", **self.owner.settings}
        model = _lightgbm().DaskLGBMClassifier(client=self.owner.client, **settings)
        label, weight = (
            _array(part, (self.size,))
            for part in (accept.astype(np.int64), normalised(np.abs(cost)))
        )
        model.fit(self.rows, label, sample_weight=weight)
        return Fitted(model.to_local(), self.shape[1])


def _array(values: Any, chunks: tuple[int, ...]) -> Any:
    try:
        import dask.array
    except ImportError:
        raise InvalidInput("Dask is not installed.", hint=install_hint("dask")) from None
    from_array: Any = dask.array.from_array  # Dask is not typed
    return from_array(values, chunks=chunks)


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError:
        raise InvalidInput("LightGBM is not installed.", hint=install_hint("trees")) from None
    except OSError as error:  # its wheel brings no OpenMP along
        raise InvalidInput(
            f"LightGBM is installed and cannot be loaded: {error}.",
            hint="install the OpenMP library (Debian: apt-get install libgomp1).",
        ) from None
    return lightgbm
