"""FairClassifier: the fair oracle as a scikit-learn estimator.

fit solves FairCSC on the training table; predict_proba gives the mixture's probability of
accepting, predict draws from it. The limit holds for the mixture on the training table: it is
measured in sample and certifies nothing about the population (the learners do).
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.contracts import GroupUse, Hypothesis, HypothesisClass
from evenhand.errors import BadLabel, InvalidInput
from evenhand.faircsc import solve_fair
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.hypotheses import Estimator, Linear
from evenhand.words import (
    CostSensitiveProblem,
    FloatArray,
    GroupArray,
    LabelledSample,
    Prices,
    as_group,
    as_numbers,
)


@dataclass(frozen=True)
class Component:
    """One model of the mixture and the probability with which it decides."""

    weight: float
    hypothesis: Hypothesis


class FairClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The cheapest mixture of models whose groups' rates differ by at most allowed_gap on the
    training table.

    estimator: a scikit-learn classifier with sample_weight, or an evenhand class (Stumps(), ...);
    default a linear rule. rate: "fpr", "fnr", "selection", "equalised-odds", a Rate, or several.
    The second of the sorted classes is the good outcome (+1). Groups come with fit(X, y,
    sensitive_features=...); with group_use="certify_only" they are not needed, nor used, to
    predict.
    """

    def __init__(
        self,
        estimator: Any = None,
        rate: RateLike = "fpr",
        allowed_gap: float = 0.05,
        prices: Prices | None = None,
        *,
        group_use: GroupUse = "certify_only",
        max_calls: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.rate = rate
        self.allowed_gap = allowed_gap
        self.prices = prices
        self.group_use = group_use
        self.max_calls = max_calls
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Solve the fair problem on the table (X, y) with groups `sensitive_features`; rows of
        weight 0 are left out.
        """
        features, outcome = _checked(self, X, y)
        group = _group(sensitive_features, len(features))
        weight = (
            np.ones(len(group))
            if sample_weight is None
            else as_numbers(np.asarray(sample_weight), len(group), "sample_weight")
        )
        used = weight > 0
        if not used.any():
            raise InvalidInput("sample_weight is zero for every row; at least one row must count.")
        self.classes_, label = _labels(outcome[used], outcome)
        sample = LabelledSample(features[used], group[used], label, weight[used])
        problem = self._problem(sample)
        solution = solve_fair(
            problem,
            _hypotheses(self.estimator),
            as_rates(self.rate),
            sample,
            self.allowed_gap,
            group_use=self.group_use,
            max_calls=self.max_calls,
        )
        self.policy_, self.cost_, self.oracle_calls_ = (
            solution.policy,
            solution.cost,
            solution.oracle_calls,
        )
        self.components_ = [
            Component(w, h)
            for w, h in zip(self.policy_.weights, self.policy_.hypotheses, strict=True)
        ]
        self.gaps_ = dict(
            zip(solution.report.constraint_names, solution.gaps.tolist(), strict=True)
        )
        return self

    def _problem(self, sample: LabelledSample) -> CostSensitiveProblem:
        plain = (self.prices or Prices()).problem(sample.features, sample.group, sample.label)
        weight = sample.weight
        return CostSensitiveProblem(
            sample.features,
            sample.group,
            weight * plain.cost_if_rejected,
            weight * plain.cost_if_accepted,
        )

    def predict_proba(
        self, X: ArrayLike, *, sensitive_features: ArrayLike | None = None
    ) -> FloatArray:
        """(rows, 2): the probability of each class under the mixture."""
        check_is_fitted(self)
        features = _checked(self, X, reset=False)
        group = None if sensitive_features is None else _group(sensitive_features, len(features))
        accepted = self.policy_.acceptance(features, group)
        return np.stack([1.0 - accepted, accepted], axis=1)

    def predict(
        self, X: ArrayLike, *, sensitive_features: ArrayLike | None = None, random_state: Any = None
    ) -> NDArray[Any]:
        """One draw per row.

        Fairness is a property of the mixture: the draw that a person meets decides for that person
        only.
        """
        accepted = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        generator = check_random_state(self.random_state if random_state is None else random_state)
        return np.asarray(
            self.classes_[(generator.random_sample(len(accepted)) < accepted).astype(int)]
        )

    def describe(self) -> str:
        """The mixture in words."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return self.policy_.describe(None if names is None else [str(name) for name in names])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = True
        return tags


def _checked(model: FairClassifier, *data: Any, **settings: Any) -> Any:
    """scikit-learn's own validation; a text column is refused with the way out."""
    try:
        return validate_data(model, *data, dtype=np.float64, **settings)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise InvalidInput(
            f"X holds text ({error}); a rule compares numbers.",
            hint="encode it before, for example "
            "make_pipeline(make_column_transformer((OneHotEncoder(), ['city']), "
            "remainder='passthrough'), FairClassifier()).",
        ) from error


def _group(told: ArrayLike | None, rows: int) -> GroupArray:
    """One group per row, out of an array, a series or a frame with one column."""
    if told is None:
        raise InvalidInput(
            "fit needs the group of each row, but sensitive_features is None.",
            hint="fit(X, y, sensitive_features=table['group']); in a pipeline: "
            "model__sensitive_features, or set_fit_request.",
        )
    values = np.asarray(told)
    if values.ndim == 2 and values.shape[1] > 1:
        raise InvalidInput(
            f"sensitive_features has {values.shape[1]} columns; a person is of one group.",
            hint="join them into one column, for example table['sex'] + ', ' + table['region'].",
        )
    return as_group(values.reshape(-1), rows)


def _labels(
    outcome: NDArray[Any], everybody: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The two classes in order, and -1 / +1 for each row that counts."""
    from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(everybody)
    classes = np.unique(outcome)
    if len(classes) > 2:
        raise BadLabel(
            f"y has {len(classes)} classes. Only binary classification is supported.",
            hint="the second of two sorted classes is the good outcome.",
        )
    if len(classes) < 2:
        raise BadLabel(
            f"y has only one class, {classes[0]!r}; a classifier can't be trained on one class."
        )
    return classes, np.where(outcome == classes[1], 1, -1).astype(np.int64)


def _hypotheses(estimator: Any) -> HypothesisClass:
    if estimator is None:
        return Linear()
    return estimator if hasattr(estimator, "bind") else Estimator(estimator)
