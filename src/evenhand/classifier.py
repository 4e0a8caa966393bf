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

from evenhand.contracts import GroupUse, Hypothesis
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
    """One model of the mixture.

    Parameters
    ----------
    weight : float
        The probability with which it decides.
    hypothesis : Hypothesis
        The model.

    Examples
    --------
    >>> from evenhand.hypotheses import ACCEPT_ALL
    >>> Component(0.25, ACCEPT_ALL).hypothesis.describe()
    'accept everybody'
    """

    weight: float
    hypothesis: Hypothesis


class FairClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it has no types
    """The cheapest mixture of models whose groups' rates differ by at most a limit.

    A scikit-learn estimator. The limit holds for the mixture on the training table.

    Parameters
    ----------
    estimator : classifier or hypothesis class, optional
        A scikit-learn classifier with sample_weight, or an evenhand class (Stumps(), ...); a linear
        rule by default.
    rate : str, Rate or sequence of them, default "fpr"
        "fpr", "fnr", "selection", "equalised-odds", a Rate, or several.
    allowed_gap : float, default 0.05
        The limit.
    prices : Prices, optional
        What errors cost; 1 and 1 by default.
    group_use : "certify_only" or "decide", default "certify_only"
        With "certify_only" groups are not needed, nor used, to predict.
    max_calls : int, optional
        The budget of fits.
    random_state : int or RandomState, optional
        The source of chance of `predict`.

    Attributes
    ----------
    classes_ : array, shape (2,)
        The two classes in order; the second is the good outcome (+1).
    policy_ : Mixture
        The mixture.
    components_ : list of Component
        Its models with their weights.
    cost_ : float
        Its cost on the training table.
    gaps_ : dict
        Its gaps on the training table by name.
    oracle_calls_ : int
        How many models were fitted.

    Notes
    -----
    `fit` solves FairCSC (section 3.1 of the paper) on the training table. What it measures is in
    sample and certifies nothing about the population; the learners do.

    Examples
    --------
    >>> import numpy as np, evenhand as eh
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]] * 2)
    >>> y = np.array([0, 0, 1, 1] * 2)
    >>> model = FairClassifier(eh.Stumps(), allowed_gap=0.1, random_state=0)
    >>> _ = model.fit(X, y, sensitive_features=["a"] * 4 + ["b"] * 4)
    >>> model.predict(X[:4]), model.describe()
    (array([0, 0, 1, 1]), 'always: accept if x0 >= 3')
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
        """Solve the fair problem on a table.

        Parameters
        ----------
        X : array_like, shape (rows, columns)
            Finite numbers.
        y : array_like, shape (rows,)
            Two classes.
        sensitive_features : array_like, shape (rows,)
            The group of each row.
        sample_weight : array_like, shape (rows,), optional
            Rows of weight 0 are left out.

        Returns
        -------
        FairClassifier
            The classifier itself.

        Raises
        ------
        InvalidInput
            If the groups are missing, or no row counts.
        CannotEstimateRate
            If nobody of a group counts for the rate.
        """
        features, outcome = _checked(self, X, y)
        group = _group(sensitive_features, len(features))
        weight = np.ones(len(group))
        if sample_weight is not None:
            weight = as_numbers(np.asarray(sample_weight), len(group), "sample_weight")
        used = weight > 0
        if not used.any():
            raise InvalidInput("sample_weight is zero for every row; at least one row must count.")
        self.classes_, label = _labels(outcome[used], outcome)
        sample = LabelledSample(features[used], group[used], label, weight[used])
        plain = (self.prices or Prices()).problem(sample.features, sample.group, sample.label)
        costs = (sample.weight * c for c in (plain.cost_if_rejected, plain.cost_if_accepted))
        hypotheses = Linear() if self.estimator is None else self.estimator
        solution = solve_fair(
            CostSensitiveProblem(sample.features, sample.group, *costs),
            hypotheses if hasattr(hypotheses, "bind") else Estimator(hypotheses),
            as_rates(self.rate),
            sample,
            self.allowed_gap,
            group_use=self.group_use,
            max_calls=self.max_calls,
        )
        policy, names = solution.policy, solution.report.constraint_names
        self.policy_, self.cost_, self.oracle_calls_ = policy, solution.cost, solution.oracle_calls
        self.components_ = list(map(Component, policy.weights, policy.hypotheses))
        self.gaps_ = dict(zip(names, solution.gaps.tolist(), strict=True))
        return self

    def predict_proba(
        self, X: ArrayLike, *, sensitive_features: ArrayLike | None = None
    ) -> FloatArray:
        """The probability of each class under the mixture.

        Parameters
        ----------
        X : array_like, shape (rows, columns)
            One person per row.
        sensitive_features : array_like, shape (rows,), optional
            Their groups; looked at with group_use="decide" only.

        Returns
        -------
        array, shape (rows, 2)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        features = _checked(self, X, reset=False)
        group = None if sensitive_features is None else _group(sensitive_features, len(features))
        accepted = self.policy_.acceptance(features, group)
        return np.stack([1.0 - accepted, accepted], axis=1)

    def predict(
        self, X: ArrayLike, *, sensitive_features: ArrayLike | None = None, random_state: Any = None
    ) -> NDArray[Any]:
        """One draw per row from the mixture.

        Fairness is a property of the mixture: the draw that a person meets decides for that person
        only.

        Parameters
        ----------
        X : array_like, shape (rows, columns)
            One person per row.
        sensitive_features : array_like, shape (rows,), optional
            Their groups; looked at with group_use="decide" only.
        random_state : int or RandomState, optional
            The source of chance; that of the classifier by default.

        Returns
        -------
        array, shape (rows,)
            A class for each row.
        """
        accepted = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        generator = check_random_state(self.random_state if random_state is None else random_state)
        drawn = generator.random_sample(len(accepted)) < accepted
        return np.asarray(self.classes_[drawn.astype(int)])

    def describe(self) -> str:
        """The mixture in words.

        Returns
        -------
        str
            One line per model.
        """
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


def _group(given: ArrayLike | None, rows: int) -> GroupArray:
    """One group per row, out of an array, a series or a frame with one column."""
    if given is None:
        raise InvalidInput(
            "fit needs the group of each row, but sensitive_features is None.",
            hint="fit(X, y, sensitive_features=table['group']); in a pipeline: "
            "model__sensitive_features, or set_fit_request.",
        )
    values = np.asarray(given)
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
