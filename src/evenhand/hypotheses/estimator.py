"""Any scikit-learn classifier as a CSC oracle: weighted classification of 1[c_i < 0] with the
weights
|c_i|.

Every call fits a clone from scratch. Rows are handed over in a canonical order, weights with mean 1
and ten decimals, and an unset random_state is set to 0: the order of rows, the scale of costs and
earlier calls then change nothing.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contracts import Hypothesis, HypothesisClass, Json, Partition, RowOracle
from evenhand.errors import NotSerialisable, UnsuitableEstimator
from evenhand.hypotheses._rows import checked_costs, checked_rows, require_columns
from evenhand.hypotheses._threads import one_blas_thread
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, Constant
from evenhand.hypotheses.linear import LinearRule, partition_of, row_scores
from evenhand.hypotheses.thresholds import Cuts
from evenhand.hypotheses.trees import leaves_of, tree_of
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model of any kind: accept iff model.predict says 1."""

    model: Any
    columns: int

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """model.predict(features) == 1."""
        require_columns(features, self.columns, type(self.model).__name__)
        return (
            np.asarray(self.model.predict(features) == 1, dtype=bool)
            if len(features)
            else np.zeros(0, bool)
        )

    def describe(self, names: Sequence[str] | None = None) -> str:
        """In words."""
        return f"accept if the fitted {type(self.model).__name__} predicts success"

    def to_json(self) -> Json:
        """Always NotSerialisable: evenhand does not pickle."""
        raise NotSerialisable(
            f"a fitted {type(self.model).__name__} has no plain JSON form.",
            hint="use Stumps, Linear, or Estimator with DecisionTreeClassifier or LogisticRegression.",
        )


@dataclass(frozen=True, eq=False)
class Estimator(HypothesisClass):
    """Whatever `classifier` can express; a heuristic oracle."""

    classifier: Any
    _weight_name: str = field(init=False, repr=False)
    exact = False
    uses_group = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "_weight_name", _weight_parameter(self.classifier))

    @property
    def params(self) -> Mapping[str, Any]:
        """Class, the classifier's class and its parameters."""
        settings = {
            key: _plain(value) for key, value in sorted(self.classifier.get_params().items())
        }
        return {
            "class": "Estimator",
            "classifier": type(self.classifier).__name__,
            "classifier_params": settings,
        }

    @property
    def log_size(self) -> float:
        """Infinite."""
        return math.inf

    def log_growth(self, rows: int, columns: int) -> float:
        """Unknown, so infinite."""
        return math.inf

    def bind(self, features: FloatArray, group: GroupArray | None) -> RowOracle:
        """Put the rows into their canonical order once."""
        rows = checked_rows(features)
        order, rank = _ordered(rows)
        return _BoundEstimator(rows, order, rank, self.classifier, self._weight_name)


@dataclass(frozen=True, eq=False)
class _BoundEstimator:
    """Rows, their lexicographic order, and the rank of each among the distinct rows (None where all
    are distinct).
    """

    rows: FloatArray
    order: IntArray
    rank: IntArray | None
    classifier: Any
    weight_name: str

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """The classifier fitted to 1[c < 0] with weights |c|."""
        model = self._fitted(acceptance_cost)
        if isinstance(model, Constant):
            return model
        plain = _PLAIN_FORMS.get(_name(model))
        return plain(model) if plain else Fitted(model, self.rows.shape[1])

    def partition(self, acceptance_cost: FloatArray) -> Partition | None:
        """The leaves of a tree, the cut-offs of a logistic score; None for other models, and where
        other labels or cut-offs would leave the class: under monotonic constraints, without an
        intercept."""
        cells, settings = _PARTITIONS.get(_name(self.classifier)), self.classifier.get_params()
        if (
            cells is None
            or settings.get("monotonic_cst") is not None
            or not settings.get("fit_intercept", True)
        ):
            return None
        model = self._fitted(acceptance_cost)
        if isinstance(model, Constant):
            return Partition(
                np.zeros(len(self.rows), np.int64),
                1,
                False,
                lambda accept: ACCEPT_ALL if accept[0] else REJECT_ALL,
            )
        return cells(model, self)

    def _fitted(self, acceptance_cost: FloatArray) -> Any:
        """The fitted model; a constant where all costs have one sign."""
        cost = checked_costs(acceptance_cost, len(self.rows))
        order = self.order if self.rank is None else np.lexsort((cost, self.rank))
        weight = normalised(np.abs(cost[order]))
        order, weight = order[weight > 0], weight[weight > 0]
        accept = (cost[order] < 0).astype(np.int64)
        if accept.all() or not accept.any():
            return ACCEPT_ALL if accept.all() else REJECT_ALL
        with one_blas_thread():
            return _seeded_clone(self.classifier).fit(
                self.rows[order], accept, **{self.weight_name: weight}
            )

    @cached_property
    def single(self) -> NDArray[np.float32]:
        """The rows in single precision, as trees compare them."""
        with np.errstate(over="ignore"):
            return self.rows.astype(np.float32)


def normalised(weight: FloatArray) -> FloatArray:
    """weight / mean weight to ten decimals: the scale of costs is gone, and so is its rounding
    noise.
    """
    top = weight.max(initial=0.0)
    if top == 0.0:
        return weight
    share = weight / top
    return np.asarray(np.round(share / share.mean(), 10))


def _ordered(rows: FloatArray) -> tuple[IntArray, IntArray | None]:
    """The lexicographic order of the rows, and the rank of each among the distinct ones; None where
    all are distinct.
    """
    order = np.lexsort(rows.T[::-1])
    new = np.any(rows[order[1:]] != rows[order[:-1]], axis=1)
    if new.all():
        return order, None
    rank = np.empty(len(rows), dtype=np.int64)
    rank[order] = np.concatenate([[0], np.cumsum(new)])
    return order, rank


def _seeded_clone(classifier: Any) -> Any:
    from sklearn.base import (
        clone,
    )  # heavy: loaded only by those who bring a scikit-learn classifier

    copy = clone(classifier)
    unset = [
        k
        for k, v in copy.get_params().items()
        if v is None and k.rsplit("__", 1)[-1] == "random_state"
    ]
    return copy.set_params(**dict.fromkeys(unset, 0))


def _weight_parameter(classifier: Any) -> str:
    """The name under which `fit` takes sample weights; UnsuitableEstimator if there is none."""
    from sklearn.utils.validation import has_fit_parameter  # heavy, see above

    _require_classifier(classifier)
    if has_fit_parameter(classifier, "sample_weight"):
        return "sample_weight"
    steps = getattr(classifier, "steps", None)
    if steps and has_fit_parameter(steps[-1][1], "sample_weight"):
        return f"{steps[-1][0]}__sample_weight"
    raise UnsuitableEstimator(
        f"{type(classifier).__name__}.fit takes no sample_weight, so it cannot weigh costs.",
        hint="use one that does, for example LogisticRegression, DecisionTreeClassifier or GradientBoostingClassifier.",
    )


def _require_classifier(classifier: Any) -> None:
    from sklearn.base import is_regressor  # heavy, see above

    if isinstance(classifier, type):
        raise UnsuitableEstimator(
            f"{classifier.__name__} is a class.", hint=f"pass an instance, {classifier.__name__}()."
        )
    lacking = [
        m for m in ("fit", "predict", "get_params", "set_params") if not hasattr(classifier, m)
    ]
    if lacking:
        raise UnsuitableEstimator(
            f"{classifier!r} has no {', '.join(lacking)}; it is not a scikit-learn classifier.",
            hint="derive it from sklearn.base.ClassifierMixin and BaseEstimator.",
        )
    if hasattr(classifier, "__sklearn_tags__") and is_regressor(classifier):
        raise UnsuitableEstimator(
            f"{type(classifier).__name__} is a regressor; yes or no needs a classifier."
        )


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def _name(model: Any) -> str:
    return f"{type(model).__module__.split('.')[0]}.{type(model).__qualname__}"


def _linear_of(fitted: Any) -> LinearRule:
    """coef.x + intercept > 0, written as w.x >= the number just above -intercept."""
    return LinearRule(
        tuple(fitted.coef_[0].tolist()), float(np.nextafter(-fitted.intercept_[0], np.inf))
    )


_PLAIN_FORMS: Mapping[str, Callable[[Any], Hypothesis]] = {
    "sklearn.DecisionTreeClassifier": tree_of,
    "sklearn.ExtraTreeClassifier": tree_of,
    "sklearn.LogisticRegression": _linear_of,
}
"""Models whose fitted form is a few numbers; all others stay opaque."""


def _cut_offs_of(fitted: Any, bound: _BoundEstimator) -> Partition:
    rule = _linear_of(fitted)
    cuts = Cuts.on(row_scores(bound.rows, rule.weights))
    return partition_of(rule.weights, cuts, (int(np.searchsorted(cuts.values, rule.threshold)),))


_PARTITIONS: Mapping[str, Callable[[Any, _BoundEstimator], Partition]] = {
    "sklearn.DecisionTreeClassifier": lambda fitted, bound: leaves_of(fitted, bound.single),
    "sklearn.ExtraTreeClassifier": lambda fitted, bound: leaves_of(fitted, bound.single),
    "sklearn.LogisticRegression": _cut_offs_of,
}
"""Models that partition the rows."""
