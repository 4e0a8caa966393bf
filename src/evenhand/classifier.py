"""FairClassifier: the fair oracle as a scikit-learn estimator.

fit solves FairCSC on the training table; predict_proba gives the mixture's probability of
accepting, predict draws from it: by `random_state` and by who a person is, not by where the person
stands in the table. The limit holds for the mixture on the training table: it is
measured in sample and certifies nothing about the population. With `certify=0.05` a part of the
table is kept for certifying, and the limit holds for the population with probability 0.95.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from evenhand.contracts import GroupUse, Hypothesis, HypothesisClass, class_reading
from evenhand.errors import BadLabel, InvalidInput
from evenhand.faircsc import solve_fair
from evenhand.fairness.certificate import Certificate
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.hypotheses import Estimator, Linear, PerGroupCuts
from evenhand.hypotheses.named import as_class
from evenhand.people import (
    as_classes,
    as_counts,
    as_group,
    as_weights,
    dimensions,
    require_no_permutation,
)
from evenhand.randomness import uniform_by_row
from evenhand.schema import Schema, is_frame
from evenhand.table_certificate import TableCertification, certify
from evenhand.words import FloatArray, Group, GroupArray, LabelledSample, Prices

ClassArray = NDArray[np.generic]
"""Classes of scikit-learn: numbers, truth values or texts."""
RandomState = int | np.random.RandomState | None
"""What scikit-learn takes as a source of chance."""


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
    'accept all applicants'
    """

    weight: float
    hypothesis: Hypothesis


class FairClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it has no types
    """The cheapest mixture of models whose groups' rates differ by at most a limit.

    A scikit-learn estimator. The limit holds for the mixture on the training table.

    Parameters
    ----------
    estimator : classifier, hypothesis class or str, optional
        A scikit-learn classifier with sample_weight, an evenhand class (Stumps(), ...), or its name
        ("stumps"); a linear rule by default.
    rate : str, Rate or sequence of them, default "fpr"
        "fpr", "fnr" or "tpr", "selection" or "demographic_parity", "equalized_odds", a Rate, or
        several.
    limit : float, default 0.05
        The limit.
    prices : Prices, optional
        What errors cost; 1 and 1 by default.
    group_use : "certify_only" or "decide", default "certify_only"
        With "certify_only" groups are not needed, nor used, to predict. With "decide" a model has a
        cut-off of its own in each group.
    pos_label : object, optional
        The class that is the good outcome. Of two numbers it is by default the larger one, with
        a warning unless they are 0 and 1 or -1 and 1; where the classes are texts it must be named,
        because the alphabet knows nothing of outcomes.
    neg_label : object, optional
        The other class. It is needed inside estimators that hand on texts as 0 and 1 in the order
        of the alphabet (VotingClassifier, StackingClassifier, cross_val_predict of probabilities):
        from both names it is known which of the numbers is the good outcome.
    max_calls : int, optional
        The budget of fits.
    random_state : int or RandomState, optional
        The source of chance of `predict`, which an int makes reproducible; it also splits the table
        if `certify` is given. Then fix it, and the limit, beforehand: delta does not cover the best
        of several fits.
    certify : float, optional
        delta: fit on a third of the table (half, if the class is not exact) and certify on the
        rest, so that the limit holds for the population with probability 1 - delta
        (`evenhand.certify`). None limits the gap on the training table alone.
    randomise : bool, default True
        With `certify`: whether the policy may toss coins; if not, it is the cheapest single rule
        that passes.
    ceilings : dict, optional
        With `certify`: ceilings on rates of all people, {"fpr": 0.1, "selection": 0.2}.

    Attributes
    ----------
    certificate_ : Certificate or None
        What is certified for the population; None without `certify`.
    certification_ : TableCertification or None
        The certified rules and their intervals.
    classes_ : array, shape (2,)
        The two classes in order.
    pos_label_ : object
        The one of them that is the good outcome (+1), which accepted people are expected to have.
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
    schema_ : Schema or None
        The columns of the frame that it was fitted to; None after an array. Frames are then put in
        order by name, and refused if a column is missing, unknown or of another kind.

    Notes
    -----
    `fit` solves FairCSC (section 3.1 of the paper) on the training table. What it measures is in
    sample and certifies nothing about the population; with `certify` a certificate does. Then
    `cost_` is that of the people who were kept for certifying, scaled to the whole table, and
    `gaps_` has the middle of each certified interval.

    Examples
    --------
    >>> import numpy as np, evenhand as eh
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]] * 2)
    >>> y = np.array([0, 0, 1, 1] * 2)
    >>> model = FairClassifier(eh.Stumps(), limit=0.1, random_state=0)
    >>> _ = model.fit(X, y, sensitive_features=["a"] * 4 + ["b"] * 4)
    >>> model.predict(X[:4]), model.describe()
    (array([0, 0, 1, 1]), 'always: accept if x0 >= 3')
    """

    # With metadata routing the groups find their way here without being asked for.
    __metadata_request__fit: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}

    def __init__(
        self,
        estimator: object = None,
        rate: RateLike = "fpr",
        limit: float = 0.05,
        prices: Prices | None = None,
        *,
        group_use: GroupUse = "certify_only",
        pos_label: Group = None,
        neg_label: Group = None,
        max_calls: int | None = None,
        random_state: RandomState = None,
        certify: float | None = None,
        randomise: bool = True,
        ceilings: Mapping[str, float] | None = None,
    ) -> None:
        self.estimator = estimator
        self.rate = rate
        self.limit = limit
        self.prices = prices
        self.group_use = group_use
        self.pos_label = pos_label
        self.neg_label = neg_label
        self.max_calls = max_calls
        self.random_state = random_state
        self.certify = certify
        self.randomise = randomise
        self.ceilings = ceilings

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
        X : array_like of shape (rows, columns), or frame
            Finite numbers; or a frame of pandas, polars or pyarrow, whose columns may be numbers,
            truth values, categories and texts, with missing values, if the estimator is a pipeline
            that can deal with them.
        y : array_like, shape (rows,)
            Two classes.
        sensitive_features : array_like, shape (rows,)
            The group of each row; several columns are joined, "f & black".
        sample_weight : array_like, shape (rows,), optional
            Numbers of at least 0; rows of weight 0 are left out.

        Returns
        -------
        FairClassifier
            The classifier itself.

        Raises
        ------
        InvalidInput
            If the groups are missing, a weight is negative, or no row counts.
        BadLabel
            If there are not two classes, or they are texts and `pos_label` is not named.
        CannotEstimateRate
            If nobody of a group counts for the rate.
        """
        columns = {"X": X, "y": y, "sensitive_features": sensitive_features}
        require_no_permutation({**columns, "sample_weight": sample_weight})
        y = as_classes(y)
        hypotheses = as_class(Linear() if self.estimator is None else self.estimator)
        if self.group_use == "decide" and isinstance(hypotheses, Linear | Estimator):
            hypotheses = PerGroupCuts(hypotheses)
        features, outcome, self.schema_ = _fitted_to(self, X, y, hypotheses)
        weight = _weights(sample_weight, len(features))
        used = weight > 0
        _require_somebody(weight)
        self.classes_, self.pos_label_ = _classes(
            outcome[used], outcome, self.pos_label, self.neg_label
        )
        group = _group(sensitive_features, len(features))
        self.groups_ = sorted(set(group.tolist()), key=str)
        label = np.where(outcome[used] == self.pos_label_, 1, -1).astype(np.int64)
        sample = LabelledSample(features[used], group[used], label, weight[used], self.schema_)
        prices = self.prices or Prices()
        self.certificate_: Certificate | None = None
        self.certification_: TableCertification | None = None
        if self.certify is not None:
            as_counts(weight[used], "a certificate counts people", "sample_weight")
            return self._certified(hypotheses, sample, prices)
        if not self.randomise or self.ceilings:
            raise InvalidInput(
                "randomise=False and ceilings belong to a certificate, and certify is None.",
                hint="FairClassifier(..., certify=0.05).",
            )
        solution = solve_fair(
            prices.problem(sample.features, sample.group, sample.label, sample.count),
            hypotheses,
            as_rates(self.rate),
            sample,
            self.limit,
            group_use=self.group_use,
            max_calls=self.max_calls,
        )
        policy = solution.policy
        names = solution.report.constraint_names
        self.policy_ = policy
        self.cost_ = solution.cost
        self.oracle_calls_ = solution.oracle_calls
        self.components_ = list(map(Component, policy.weights, policy.hypotheses))
        self.gaps_ = dict(zip(names, solution.gaps.tolist(), strict=True))
        return self

    def _certified(
        self, hypotheses: HypothesisClass, sample: LabelledSample, prices: Prices
    ) -> Self:
        """Fit and certify on one table."""
        found = certify(
            hypotheses,
            sample,
            self.limit,
            rates=self.rate,
            prices=prices,
            delta=0.05 if self.certify is None else self.certify,
            ceilings=self.ceilings,
            randomise=self.randomise,
            group_use=self.group_use,
            max_calls=self.max_calls,
            seed=self.random_state if isinstance(self.random_state, int) else 0,
        )
        self.certification_ = found
        self.certificate_ = found.certificate
        self.policy_ = found.policy
        self.cost_ = found.cost * float(sample.weight.sum())
        self.oracle_calls_ = found.oracle_calls
        self.components_ = list(map(Component, found.policy.weights, found.policy.hypotheses))
        # The middle of each interval: the estimate is not the claim, and the claim is the interval.
        self.gaps_ = {
            name: (gap.low + gap.high) / 2
            for name, gap in zip(found.names, found.certificate.gaps, strict=True)
        }
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
        features, group = self._people(X, sensitive_features)
        accepted = self.policy_.acceptance(features, group)
        good_first = self.classes_[0] == self.pos_label_
        columns = [accepted, 1.0 - accepted] if good_first else [1.0 - accepted, accepted]
        return np.stack(columns, axis=1)

    def _people(
        self, X: ArrayLike, sensitive_features: ArrayLike | None
    ) -> tuple[FloatArray, GroupArray | None]:
        """Rows as the mixture sees them, and their groups."""
        # A fit that failed may have left other attributes behind.
        check_is_fitted(self, "policy_")
        # An array has no names; after a frame of plain numbers it is taken in the order of the
        # columns, as scikit-learn does, with scikit-learn's warning.
        schema: Schema | None = getattr(self, "schema_", None)
        features: FloatArray
        if schema is not None and is_frame(X):
            features = schema.encode(X)
        elif schema is None or schema.plain:
            features = _checked(self, X, reset=False)
        else:
            raise InvalidInput(
                "X has no column names, and the classifier was fitted to the columns "
                f"{schema.describe()}.",
                hint="pass a frame with these columns, in any order.",
            )
        group = None if sensitive_features is None else _group(sensitive_features, len(features))
        if group is not None and self.group_use == "decide":
            strange = sorted(set(group.tolist()) - set(self.groups_), key=str)
            if strange:
                raise InvalidInput(
                    f"the group {strange[0]!r} was not in the training table, whose groups are "
                    f"{', '.join(map(repr, self.groups_))}; the mixture decides by the group.",
                    hint="correct it, or fit again with people of this group.",
                )
        return features, group

    def predict(
        self,
        X: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> ClassArray:
        """One draw per row from the mixture.

        Fairness is a property of the mixture: the draw that a person meets decides for that person
        only. With an int as `random_state` the same person meets the same draw, wherever they
        stand in a table, and independently of the other rows.

        Parameters
        ----------
        X : array_like, shape (rows, columns)
            One person per row.
        sensitive_features : array_like, shape (rows,), optional
            Their groups; looked at with group_use="decide" only.
        ids : array_like, shape (rows,), optional
            Who they are. Draws then go by the id. By default they go by the features, and among
            people with equal features by their number; people who are asked about one by one need
            ids, since equal features would otherwise meet the same draw in every call.
        random_state : int or RandomState, optional
            The source of chance; that of the classifier by default.

        Returns
        -------
        array, shape (rows,)
            A class for each row.
        """
        features, group = self._people(X, sensitive_features)
        chance = self.policy_.acceptance(features, group)
        chosen = self.random_state if random_state is None else random_state
        key = check_random_state(chosen).bytes(16)
        if ids is not None:
            who = [f"{one!r}".encode() for one in as_group(np.asarray(ids), len(features)).tolist()]
            drawn = np.array([uniform_by_row(key, [one])[0] for one in who])
        else:
            plain = features + 0.0  # 0.0 and -0.0 are one value
            seen = [row.tobytes() for row in plain]
            if group is not None and self.group_use == "decide":
                seen = [row + f"{g!r}".encode() for row, g in zip(seen, group, strict=True)]
            drawn = uniform_by_row(key, seen)
        good = int(self.classes_[1] == self.pos_label_)
        return np.asarray(self.classes_[np.where(drawn < chance, good, 1 - good)])

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        """The share of rows that are expected to be drawn right.

        Parameters
        ----------
        X : array_like, shape (rows, columns)
            One person per row.
        y : array_like, shape (rows,)
            Their true classes.
        sample_weight : array_like, shape (rows,), optional
            What each row counts for.
        sensitive_features : array_like, shape (rows,), optional
            Their groups; needed with group_use="decide" only.

        Returns
        -------
        float
            The expected accuracy of `predict`: the mean probability of the true class. No draw is
            in it, so that a search over parameters compares no noise.
        """
        chance = self.predict_proba(X, sensitive_features=sensitive_features)
        truth = column_or_1d(as_classes(y))
        check_consistent_length(X, truth)
        strange = truth[~np.isin(truth, self.classes_)]
        if len(strange):
            raise BadLabel(
                f"y contains {strange[0]!r}, and the classes are {self.classes_.tolist()}.",
                hint="write outcomes as they were written in fit.",
                argument="y",
            )
        right = np.where(truth == self.classes_[1], chance[:, 1], 0.0)
        right[truth == self.classes_[0]] = chance[truth == self.classes_[0], 0]
        weight = _weights(sample_weight, len(right))
        _require_somebody(weight)
        return float(np.average(right, weights=weight))

    def describe(self) -> str:
        """The mixture in words.

        Returns
        -------
        str
            One line per model.
        """
        check_is_fitted(self)
        return self.policy_.describe()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = True
        return tags


def _fitted_to(
    model: FairClassifier, X: ArrayLike, y: ArrayLike, hypotheses: HypothesisClass
) -> tuple[FloatArray, ClassArray, Schema | None]:
    """The rows and classes of a training table, and its schema if it is a frame; scikit-learn's own
    validation for arrays.
    """
    if not is_frame(X):
        features, outcome = _checked(model, X, y)
        return features, outcome, None
    known: Schema | None = getattr(hypotheses, "schema", None)
    schema = Schema.of(X) if known is None else known
    class_reading(hypotheses, schema)
    features = schema.encode(X)
    model.feature_names_in_ = np.array(schema.names, dtype=object)
    model.n_features_in_ = len(schema.names)
    if len(features) == 0:
        raise InvalidInput("X has no rows; at least one is needed.")
    outcome = column_or_1d(y, warn=True)
    check_consistent_length(X, outcome)
    return features, outcome, schema


def _checked(model: FairClassifier, *data: ArrayLike, **settings: bool) -> Any:
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
    """One group per row, out of an array, a series or a frame; several columns are joined."""
    if given is None:
        raise InvalidInput(
            "fit needs the group of each row, but sensitive_features is None.",
            hint="fit(X, y, sensitive_features=table['group']); in a pipeline: "
            "model__sensitive_features, or with metadata routing "
            "set_fit_request(sensitive_features=True); where scores are computed with the group, "
            "set_score_request(sensitive_features=True) too.",
        )
    if dimensions(given) == 1:
        return as_group(given, rows, "sensitive_features")
    values = np.asarray(given)
    if values.ndim == 2 and values.shape[1] > 1:
        # As everywhere: whoever lacks one of several groups has none.
        joined: list[Any] = [
            None if any(one is None or one != one for one in row) else " & ".join(map(str, row))
            for row in values.tolist()
        ]
        return as_group(np.array(joined, dtype=object), rows, "sensitive_features")
    return as_group(values.reshape(-1), rows, "sensitive_features")


def _weights(given: ArrayLike | None, rows: int) -> FloatArray:
    """One weight of at least 0 per row, 1 where none are given."""
    if given is None:
        return np.ones(rows)
    return as_weights(given, rows, "sample_weight")


def _require_somebody(weight: FloatArray) -> None:
    if not weight.any():
        raise InvalidInput("sample_weight is zero for every row; at least one row must count.")


def _classes(
    outcome: ClassArray, y: ClassArray, pos_label: Group, neg_label: Group
) -> tuple[ClassArray, Group]:
    """The two classes in order, and the good one."""
    from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(y)
    classes = np.unique(outcome)
    if len(classes) > 2:
        raise BadLabel(
            f"y has {len(classes)} classes. Only binary classification is supported.",
            hint="an outcome is good or bad; pos_label says which class is the good one.",
        )
    if len(classes) < 2:
        raise BadLabel(
            f"y has only one class, {classes[0]!r}; a classifier can't be trained on one class."
        )
    first, second = classes.tolist()
    if pos_label is not None:
        # Estimators around this one may hand on texts as their places in the alphabet.
        encoded = (first, second) == (0, 1) and isinstance(pos_label, str)
        if encoded and isinstance(neg_label, str) and neg_label != pos_label:
            return classes, int(str(pos_label) > neg_label)
        if pos_label not in (first, second):
            hint = "name the class that is the good outcome."
            if encoded:
                hint = (
                    "an estimator around this one has written texts as 0 and 1; name both of them, "
                    f"FairClassifier(..., pos_label={pos_label!r}, neg_label=...), and it is known "
                    "which is which."
                )
            raise BadLabel(
                f"pos_label is {pos_label!r}, but the classes of y are {first!r} and {second!r}.",
                hint=hint,
            )
        if neg_label is not None and {pos_label, neg_label} != {first, second}:
            raise BadLabel(
                f"pos_label and neg_label are {pos_label!r} and {neg_label!r}, but the classes of "
                f"y are {first!r} and {second!r}.",
                hint="name these two.",
            )
        return classes, pos_label
    if neg_label is not None:
        raise BadLabel(
            f"neg_label is {neg_label!r}, and pos_label is not named.",
            hint="name the class that is the good outcome: pos_label=....",
        )
    if classes.dtype.kind not in "biuf":
        raise BadLabel(
            f"the classes of y are the texts {first!r} and {second!r}, and nothing says "
            "which of them is the good outcome; the alphabet does not know it.",
            hint=f"FairClassifier(..., pos_label={second!r}) or pos_label={first!r}.",
        )
    if (first, second) not in ((0, 1), (-1, 1)):
        warnings.warn(
            f"y holds {first!r} and {second!r}, and pos_label is not named: {second!r}, the larger "
            f"one, is taken for the good outcome. FairClassifier(..., pos_label={second!r}) says "
            f"so, and pos_label={first!r} the opposite.",
            stacklevel=4,
        )
    return classes, second
