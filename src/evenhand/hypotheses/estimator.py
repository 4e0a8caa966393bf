"""Any scikit-learn classifier as a CSC oracle: weighted classification of 1[c_i < 0] with the
weights |c_i|.

Every call fits a clone from scratch. Rows are handed over in a canonical order, weights with mean 1
and ten decimals, and an unset random_state is set to 0: the order of rows, the scale of costs and
earlier calls then change nothing. What is fitted becomes a plain rule where it can be: a tree
becomes a `Tree`, a logistic regression a `LinearRule`; all other models stay opaque (`Fitted`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenhand.computing import one_blas_thread
from evenhand.contracts import (
    Batch,
    Hypothesis,
    HypothesisClass,
    Json,
    Params,
    Partition,
    RowOracle,
)
from evenhand.errors import EvenhandError, InvalidInput, NotSerialisable, UnsuitableEstimator
from evenhand.hypotheses.common import comparison, require_columns
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, Constant
from evenhand.hypotheses.linear import LinearRule, partition_of, row_scores, spread_of
from evenhand.hypotheses.models import StoredModel, load_model, store_model
from evenhand.hypotheses.thresholds import Cuts
from evenhand.schema import Schema
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, as_features, as_numbers

T = TypeVar("T")
SAME_SCORE = 1e-9
"""Scores that differ by less, in proportion to the largest, are equal."""
MOST_PATHS = 6
"""Maximum number of accepting paths shown in a description."""


@dataclass(frozen=True, repr=False)
class Tree(Hypothesis, Brief):
    """A decision tree as plain arrays, one entry per node; node 0 is the root.

    It says what the fitted scikit-learn tree says, bit for bit, without scikit-learn: features are
    compared as float32, as there.

    Parameters
    ----------
    column : tuple of int
        The column that a node compares; -1 for a leaf.
    value : tuple of float
        Go left iff float32(x_column) <= value.
    left, right : tuple of int
        The nodes below.
    accept : tuple of bool
        What a leaf says.
    columns : int
        How many columns the rows have.

    Examples
    --------
    >>> import numpy as np
    >>> stump = Tree((0, -1, -1), (30.0, 0, 0), (1, -1, -1), (2, -1, -1), (False, False, True), 1)
    >>> stump.accepts(np.array([[30.0], [31.0]])).tolist()
    [False, True]
    >>> stump.describe(["income"])
    'accept if (income > 30)'
    """

    column: tuple[int, ...]
    value: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    accept: tuple[bool, ...]
    columns: int

    @property
    def columns_used(self) -> tuple[int, ...]:
        # Relabelling may give both sides of a node the same answer: its column then counts as used,
        # which errs on the side of a warning.
        return tuple(sorted({column for column in self.column if column >= 0}))

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
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
    def _arrays(self) -> tuple[IntArray, FloatArray, IntArray, IntArray, BoolArray]:
        column, left, right = (
            np.array(part, dtype=np.int64) for part in (self.column, self.left, self.right)
        )
        return column, np.array(self.value, np.float64), left, right, np.array(self.accept, bool)

    def describe(self, names: Sequence[str] | None = None) -> str:
        paths = [" and ".join(path) for path in self._accepting_paths(0, (), names)]
        if not paths or paths == [""]:
            return "accept all applicants" if paths else "reject all applicants"
        listed = " or ".join(f"({path})" for path in paths[:MOST_PATHS])
        more = max(len(paths) - MOST_PATHS, 0)
        others = {0: "", 1: " or one other path"}.get(more, f" or one of {more} other paths")
        return f"accept if {listed}{others}"

    def _accepting_paths(
        self, node: int, path: tuple[str, ...], names: Sequence[str] | None
    ) -> Iterator[tuple[str, ...]]:
        if self.column[node] < 0:
            yield from [path] if self.accept[node] else []
            return
        value = f"{self.value[node]:.6g}"
        left = comparison(self.column[node], names, "<=", value)
        right = comparison(self.column[node], names, ">", value)
        yield from self._accepting_paths(self.left[node], (*path, left), names)
        yield from self._accepting_paths(self.right[node], (*path, right), names)

    def to_json(self) -> Json:
        parts = ("column", "value", "left", "right", "accept")
        return {
            "kind": "tree",
            "columns": self.columns,
            **{part: list(getattr(self, part)) for part in parts},
        }


@dataclass(frozen=True, eq=False)
class Fitted(Hypothesis):
    """A fitted model of any kind: accept iff it predicts 1, or iff its score reaches a threshold.

    Parameters
    ----------
    model : object
        It has `predict`.
    columns : int
        How many columns the rows have.
    schema : Schema, optional
        What the rows stand for; the model is then shown frames of pandas with these columns.
    threshold : float, optional
        Accept iff the score is at least this: the probability of success that the model predicts,
        or its decision function where it has none. None follows what it predicts.

    Notes
    -----
    Two of them are equal if their models are, byte for byte, and their thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier().fit([[0.0], [1.0]], [1, 1])
    >>> Fitted(model, 1).accepts(np.array([[5.0]])).tolist()
    [True]
    """

    model: Any
    columns: int
    schema: Schema | None = None
    threshold: float | None = None

    @cached_property
    def columns_used(self) -> tuple[int, ...]:
        """The columns that the model can see; all of them where it does not say less."""
        return _columns_seen(self.model, self.columns, self.schema)

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        require_columns(features, self.columns, type(self.model).__name__)
        answers: BoolArray = _Together((self,))(features.T)[0]
        return answers

    @staticmethod
    def together(members: "Sequence[Fitted]") -> Batch:
        """Several rules at once: they share the frame, and rules of one model its score.

        Parameters
        ----------
        members : sequence of Fitted
            The rules.

        Returns
        -------
        Batch
            Who is accepted by which of them.
        """
        return _Together(tuple(members))

    def score(self, features: FloatArray) -> FloatArray | None:
        """What a threshold is compared with; None if the model has no score.

        Parameters
        ----------
        features : array of shape (rows, columns)
            The rows.

        Returns
        -------
        array of float or None
            One number per row.
        """
        if not (hasattr(self.model, "predict_proba") or hasattr(self.model, "decision_function")):
            return None
        return self._asked(self._shown(features), self._scored)

    def _scored(self, rows: Any) -> Any:
        if hasattr(self.model, "predict_proba"):
            return np.asarray(self.model.predict_proba(rows))[:, 1]
        return self.model.decision_function(rows)

    def _shown(self, features: FloatArray) -> Any:
        """Rows as the model was fitted to them."""
        return features if self.schema is None else self.schema.frame(features)

    def _asked(self, shown: Any, answer: Callable[[Any], Any]) -> NDArray[Any]:
        """What the model answers about rows."""
        if self.schema is None:
            return np.asarray(answer(shown))
        try:
            return np.asarray(answer(shown))
        except EvenhandError:
            raise
        except Exception as error:  # whatever the steps of a pipeline raise
            raise _CannotRead(
                f"the fitted {type(self.model).__name__} cannot decide about these people: "
                f"{_first_line(error)}",
                hint="a value that it has not met when it was fitted needs a step that can deal "
                'with it, for example OneHotEncoder(handle_unknown="ignore") or SimpleImputer().',
            ) from error

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Fitted):
            return self is other or NotImplemented
        mine = (self.columns, self.schema, self.threshold)
        if mine != (other.columns, other.schema, other.threshold):
            return False
        try:
            return self._stored.sha256 == other._stored.sha256
        except (NotSerialisable, InvalidInput):  # they cannot be written, or skops is missing
            return False

    def __hash__(self) -> int:
        return hash((Fitted, self.columns))

    def describe(self, names: Sequence[str] | None = None) -> str:
        name = type(self.model).__name__
        if self.threshold is None:
            return f"accept if the fitted {name} predicts success"
        score = "probability" if hasattr(self.model, "predict_proba") else "score"
        return f"accept if the {score} of the fitted {name} is at least {self.threshold:.6g}"

    def to_json(self) -> Json:
        """Write the model as a skops archive in base64, beside its hash.

        Raises
        ------
        NotSerialisable
            If skops cannot write the model.
        """
        named: Json = {} if self.schema is None else {"schema": self.schema.to_json()}
        model = self._stored.to_json()
        if self.threshold is not None:
            named["threshold"] = self.threshold
        return {"kind": "fitted", "columns": self.columns, "model": model, **named}

    @cached_property
    def _stored(self) -> StoredModel:
        return store_model(self.model)

    @property
    def _same_model(self) -> object:
        """Equal for rules of one model: of one object, or of the same bytes where they were
        read.
        """
        stored = self.__dict__.get("_stored")
        return id(self.model) if stored is None else stored.sha256

    @classmethod
    def from_json(cls, data: Json) -> "Fitted":
        """Read what `to_json` wrote.

        Parameters
        ----------
        data : dict
            As it was written.

        Returns
        -------
        Fitted
            The same rule; it keeps the bytes it was read from.
        """
        stored = StoredModel.from_json(data["model"])
        schema = None if data.get("schema") is None else Schema.from_json(data["schema"])
        rule = cls(load_model(stored), data["columns"], schema, data.get("threshold"))
        rule.__dict__["_stored"] = stored
        return rule


class _CannotRead(InvalidInput):
    """A model cannot read a person."""


_unread_rejected: ContextVar[bool] = ContextVar("unread_rejected", default=False)


def rejecting_unread(call: Callable[..., T], *arguments: Any) -> T:
    """The answer of a call in which models reject whom they cannot read, instead of raising an
    error: where people are counted who were decided about by other rules.

    It runs in a context of its own, so that nothing has to be set back afterwards: an interruption,
    wherever it falls, cannot leave the setting behind.
    """
    own = copy_context()
    own.run(_unread_rejected.set, True)
    return own.run(call, *arguments)


class _Together:
    """Fitted rules that are asked at once: one frame for those of one schema, of which each model
    gets a copy, and one answer for rules of one model.
    """

    def __init__(self, members: tuple[Fitted, ...]) -> None:
        self.members = members
        widths = {rule.columns for rule in members}
        self.columns = widths.pop() if len(widths) == 1 else None
        schemas: list[Schema | None] = []
        for rule in members:
            if rule.schema not in schemas:
                schemas.append(rule.schema)
        self._schema = [schemas.index(rule.schema) for rule in members]

    def __call__(self, columns: FloatArray) -> BoolArray:
        features = columns.T
        answers = np.zeros((len(self.members), len(features)), dtype=bool)
        if len(features) == 0:
            return answers
        frames: dict[int, Any] = {}
        said: dict[tuple[int, object, bool], Any] = {}
        for number, rule in enumerate(self.members):
            schema = self._schema[number]
            if schema not in frames:
                frames[schema] = rule._shown(features)
            by_score = rule.threshold is not None
            same = (schema, rule._same_model, by_score)
            try:
                if same not in said:
                    shown = frames[schema] if rule.schema is None else frames[schema].copy()
                    ask = rule._scored if by_score else rule.model.predict
                    said[same] = rule._asked(shown, ask)
                answer = said[same]
                answers[number] = answer >= rule.threshold if by_score else answer == 1
            except _CannotRead:
                if not _unread_rejected.get():
                    raise
                if len(features) > 1:  # only those whom it cannot read are rejected
                    half = len(features) // 2
                    alone = _Together((rule,))
                    answers[number, :half] = alone(columns[:, :half])
                    answers[number, half:] = alone(columns[:, half:])
        return answers

    def one(self, person: FloatArray) -> Sequence[int]:
        """The same about one person."""
        answers: list[int] = self(person.T)[:, 0].tolist()
        return answers


def _columns_seen(model: Any, columns: int, schema: Schema | None) -> tuple[int, ...]:
    """The columns of the matrix that a fitted model looks at.

    Boosted trees of LightGBM count the splits of each column. A pipeline that begins with a
    ColumnTransformer names the columns that it lets through. Every other model counts as looking at
    all columns.
    """
    everything = tuple(range(columns))
    booster = getattr(model, "booster_", None)
    if booster is not None and schema is None:
        splits = booster.feature_importance(importance_type="split")
        return tuple(np.flatnonzero(splits).tolist())
    first = model.steps[0][1] if getattr(model, "steps", None) else model
    seen: set[int] = set()
    for _, step, chosen in getattr(first, "transformers_", [("", None, slice(None))]):
        if isinstance(step, str) and step == "drop":
            continue
        if isinstance(chosen, slice) or callable(chosen):
            return everything
        for column in [chosen] if isinstance(chosen, str | int) else chosen:
            if isinstance(column, str) and schema is not None:
                place = schema.places[column]
                seen.update(range(place.start, place.stop))
            elif isinstance(column, int | np.integer) and not isinstance(column, bool):
                if schema is None:
                    seen.add(int(column) % columns)  # -1 is the last column
                else:
                    place = schema.places[schema.names[int(column)]]
                    seen.update(range(place.start, place.stop))
            else:
                return everything  # a mask, or names without a schema
    return tuple(sorted(seen))


@dataclass(frozen=True, eq=False)
class Estimator(HypothesisClass):
    """Whatever a scikit-learn classifier can express; a heuristic oracle.

    Parameters
    ----------
    classifier : object
        A classifier (not its class) whose `fit` takes sample weights, or a pipeline that ends in
        one.
    schema : Schema, optional
        The columns of the people, if they come in frames: the classifier is then fitted to frames
        of pandas with the names, types and categories of the schema, and missing values as NaN. By
        default it is what the first frame shows.

    Raises
    ------
    UnsuitableEstimator
        If it is a class or a regressor, or takes no sample weights.

    Notes
    -----
    Costs become the weighted classification of 1[c_i < 0] with weights |c_i|. ln|H| and the number
    of behaviours are unknown, so they are infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> trees = Estimator(DecisionTreeClassifier(max_depth=1))
    >>> oracle = trees.bind(np.array([[1.0], [2.0], [3.0]]), None)
    >>> oracle.best(np.array([1.0, -2.0, -1.0])).describe(["score"])
    'accept if (score > 1.5)'
    """

    classifier: Any
    schema: Schema | None = None
    _weight_name: str = field(init=False, repr=False)
    exact = False
    uses_group = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "_weight_name", _weight_parameter(self.classifier))

    @property
    def params(self) -> Params:
        settings = {
            key: value if isinstance(value, bool | int | float | str | None) else repr(value)
            for key, value in sorted(self.classifier.get_params().items())
        }
        name = type(self.classifier).__name__
        named = {} if self.schema is None else {"schema": self.schema.sha256}
        return {"class": "Estimator", "classifier": name, "classifier_params": settings, **named}

    def reading(self, schema: Schema) -> "Estimator":
        """The class for people with these columns.

        Parameters
        ----------
        schema : Schema
            What the rows stand for.

        Returns
        -------
        Estimator
            The same classifier with this schema.

        Raises
        ------
        InvalidInput
            If it has another schema.
        """
        if self.schema not in (None, schema):
            raise InvalidInput(
                f"the estimator was made for the columns {self.schema.describe()}, and the people "
                f"have {schema.describe()}.",
                hint="encode them by the same schema: LabelledSample(..., schema=...).",
            )
        return replace(self, schema=schema)

    def bind(self, features: FloatArray, group: GroupArray | None) -> RowOracle:
        rows = as_features(features, may_be_empty=False)
        if self.schema is not None:
            self.schema.checked(rows)
        order = np.lexsort(rows.T[::-1])
        new = np.any(rows[order[1:]] != rows[order[:-1]], axis=1)
        rank = None
        if not new.all():
            rank = np.empty(len(rows), dtype=np.int64)
            rank[order] = np.concatenate([[0], np.cumsum(new)])
        return _BoundEstimator(rows, order, rank, self.classifier, self._weight_name, self.schema)


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
    schema: Schema | None = None

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """The classifier fitted to 1[c < 0] with weights |c|."""
        model = self._fitted(acceptance_cost)
        if isinstance(model, Constant):
            return model
        plain = _PLAIN_FORMS.get(_model_name(model)) if self._plain else None
        if plain is None:
            return Fitted(model, self.rows.shape[1], self.schema)
        rule = plain(model)
        return replace(rule, spread=self.spread) if isinstance(rule, LinearRule) else rule

    def partition(self, acceptance_cost: FloatArray) -> Partition | None:
        """The leaves of a tree, the cut-offs of a logistic score; None for other models, and where
        other labels or cut-offs would leave the class: under monotonic constraints, without an
        intercept."""
        cells = _PARTITIONS.get(_model_name(self.classifier))
        settings = self.classifier.get_params()
        if (
            cells is None
            or not self._plain
            or settings.get("monotonic_cst") is not None
            or not settings.get("fit_intercept", True)
        ):
            return None
        model = self._fitted(acceptance_cost)
        if isinstance(model, Constant):
            one_cell = np.zeros(len(self.rows), np.int64)
            return Partition(
                one_cell, 1, False, lambda accept: ACCEPT_ALL if accept[0] else REJECT_ALL
            )
        return cells(model, self)

    def cut_offs(self, acceptance_cost: FloatArray) -> Partition | None:
        """The values of the model's score, as cells: for models whose rules are no cut-offs
        themselves. None if it has neither predict_proba nor decision_function.

        Scores that differ by rounding alone fall into one cell, and a cut-off lies between two
        cells: it parts the same people wherever a row stands among others.
        """
        model = self._fitted(acceptance_cost)
        if isinstance(model, Constant):
            one_cell = np.zeros(len(self.rows), np.int64)
            return Partition(
                one_cell, 1, True, lambda accept: ACCEPT_ALL if accept[0] else REJECT_ALL
            )
        fitted = Fitted(model, self.rows.shape[1], self.schema, -np.inf)
        score = fitted.score(self.rows)
        if score is None:
            return None
        values, place = np.unique(score, return_inverse=True)
        wide = np.diff(values) > SAME_SCORE * max(1.0, float(np.abs(values).max()))
        cell = np.concatenate([[0], np.cumsum(wide)])[place.reshape(-1)]
        middles = (values[1:] + values[:-1])[wide] / 2

        def rule(accept: BoolArray) -> Hypothesis:
            first = len(accept) - int(np.count_nonzero(accept))
            if first in (0, len(accept)):
                return ACCEPT_ALL if first == 0 else REJECT_ALL
            return replace(fitted, threshold=float(middles[first - 1]))

        return Partition(cell, len(middles) + 1, True, rule)

    def _fitted(self, acceptance_cost: FloatArray) -> Any:
        """The fitted model; a constant where all costs have one sign."""
        cost = as_numbers(acceptance_cost, len(self.rows), "acceptance_cost")
        order = self.order if self.rank is None else np.lexsort((cost, self.rank))
        weight = normalised(np.abs(cost[order]))
        order = order[weight > 0]
        weight = weight[weight > 0]
        accept = (cost[order] < 0).astype(np.int64)
        if accept.all() or not accept.any():
            return ACCEPT_ALL if accept.all() else REJECT_ALL
        from sklearn import config_context  # heavy: only for those who bring such a classifier
        from sklearn.base import clone

        model = clone(self.classifier)
        names = [name for name, value in model.get_params().items() if value is None]
        unset = [name for name in names if name.rsplit("__", 1)[-1] == "random_state"]
        model.set_params(**dict.fromkeys(unset, 0))
        # Weights are handed over as a plain argument of `fit`: inside, nothing is to be routed,
        # whatever the caller has set for the estimators around this one.
        with one_blas_thread(), config_context(enable_metadata_routing=False):
            if self.schema is None or (self._plain and _model_name(model) in _PLAIN_FORMS):
                try:
                    return model.fit(self.rows[order], accept, **{self.weight_name: weight})
                except Exception as error:  # whatever a model of the user's raises
                    raise UnsuitableEstimator(
                        f"{type(model).__name__} cannot be fitted: {_first_line(error)}"
                    ) from error
            frame = self._frame.iloc[order].reset_index(drop=True)
            try:
                return model.fit(frame, accept, **{self.weight_name: weight})
            except Exception as error:  # whatever the steps of a pipeline raise
                raise UnsuitableEstimator(
                    f"{type(model).__name__} cannot be fitted to the columns "
                    f"{self.schema.describe()}: {_first_line(error)}",
                    hint="put the steps that it needs before it: make_pipeline("
                    "make_column_transformer((OneHotEncoder(handle_unknown='ignore'), "
                    "make_column_selector(dtype_exclude='number')), remainder=SimpleImputer()), "
                    "LogisticRegression()).",
                ) from error

    @property
    def _plain(self) -> bool:
        """Whether the rows are numbers that a plain rule may compare."""
        return self.schema is None or self.schema.plain

    @cached_property
    def _frame(self) -> Any:
        """The rows as the classifier sees them."""
        assert self.schema is not None
        return self.schema.frame(self.rows)

    @cached_property
    def spread(self) -> tuple[float, ...]:
        """Of each column, to describe a linear rule by what its columns contribute."""
        return spread_of(self.rows)

    @cached_property
    def single(self) -> NDArray[np.float32]:
        """The rows in single precision, as trees compare them."""
        with np.errstate(over="ignore"):
            return self.rows.astype(np.float32)


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".") + "."


def normalised(weight: FloatArray) -> FloatArray:
    """weight / mean weight to ten decimals: the scale of costs is gone, and so is its rounding
    noise.
    """
    top = weight.max(initial=0.0)
    if top == 0.0:
        return weight
    share = weight / top
    return np.asarray(np.round(share / share.mean(), 10))


def _weight_parameter(classifier: Any) -> str:
    """The name under which `fit` takes sample weights; UnsuitableEstimator if there is none."""
    from sklearn.base import is_regressor  # heavy, see above
    from sklearn.utils.validation import has_fit_parameter

    if isinstance(classifier, type):
        raise UnsuitableEstimator(
            f"{classifier.__name__} is a class.", hint=f"pass an instance, {classifier.__name__}()."
        )
    needed = ("fit", "predict", "get_params", "set_params")
    lacking = [name for name in needed if not hasattr(classifier, name)]
    if lacking:
        raise UnsuitableEstimator(
            f"{classifier!r} has no {', '.join(lacking)}; it is not a scikit-learn classifier.",
            hint="derive it from sklearn.base.ClassifierMixin and BaseEstimator.",
        )
    if hasattr(classifier, "__sklearn_tags__") and is_regressor(classifier):
        raise UnsuitableEstimator(
            f"{type(classifier).__name__} is a regressor; yes or no needs a classifier."
        )
    if has_fit_parameter(classifier, "sample_weight"):
        return "sample_weight"
    steps = getattr(classifier, "steps", None)
    if steps and has_fit_parameter(steps[-1][1], "sample_weight"):
        return f"{steps[-1][0]}__sample_weight"
    raise UnsuitableEstimator(
        f"{type(classifier).__name__}.fit takes no sample_weight, so it cannot weigh costs.",
        hint="use one that does, for example LogisticRegression, DecisionTreeClassifier or "
        "GradientBoostingClassifier.",
    )


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


def linear_of(fitted: Any) -> LinearRule:
    """coef.x + intercept > 0, written as w.x >= the number just above -intercept."""
    threshold = float(np.nextafter(-fitted.intercept_[0], np.inf))
    return LinearRule(tuple(fitted.coef_[0].tolist()), threshold)


def _leaves_of(fitted: Any, bound: _BoundEstimator) -> Partition:
    """The leaves of a fitted DecisionTreeClassifier: each may be accepted or not."""
    tree = tree_of(fitted)
    leaf = fitted.tree_.children_left < 0

    def relabelled(accept: BoolArray) -> Hypothesis:
        if accept[leaf].all() or not accept[leaf].any():
            return ACCEPT_ALL if accept[leaf].all() else REJECT_ALL
        return replace(tree, accept=tuple((accept & leaf).tolist()))

    return Partition(
        fitted.tree_.apply(bound.single).astype(np.int64), len(leaf), False, relabelled
    )


def _cut_offs_of(fitted: Any, bound: _BoundEstimator) -> Partition:
    """The cut-offs along the direction of a fitted LogisticRegression."""
    rule = linear_of(fitted)
    cuts = Cuts.on(row_scores(bound.rows, rule.weights))
    border = int(np.searchsorted(cuts.values, rule.threshold))
    return partition_of(rule.weights, cuts, border, spread=bound.spread)


def _model_name(model: object) -> str:
    return f"{type(model).__module__.split('.')[0]}.{type(model).__qualname__}"


_PLAIN_FORMS: Mapping[str, Callable[[Any], Hypothesis]] = {
    "sklearn.DecisionTreeClassifier": tree_of,
    "sklearn.ExtraTreeClassifier": tree_of,
    "sklearn.LogisticRegression": linear_of,
}
"""Models whose fitted form is a few numbers; all others stay opaque."""

_PARTITIONS: Mapping[str, Callable[[Any, _BoundEstimator], Partition]] = {
    "sklearn.DecisionTreeClassifier": _leaves_of,
    "sklearn.ExtraTreeClassifier": _leaves_of,
    "sklearn.LogisticRegression": _cut_offs_of,
}
"""Models that partition the rows."""
