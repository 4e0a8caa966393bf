"""Classes of rules by name, with the same settings in every command, study and service."""

from collections.abc import Callable, Sequence, Set
from reprlib import repr as short
from typing import cast

from evenhand.contracts import HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.hypotheses.boosting import lightgbm_class
from evenhand.hypotheses.estimator import Estimator
from evenhand.hypotheses.linear import Linear
from evenhand.hypotheses.thresholds import ScoreThresholds, Stumps
from evenhand.registry import Registry


def _tree() -> HypothesisClass:
    """Decision trees of depth 5 (scikit-learn)."""
    from sklearn.tree import DecisionTreeClassifier  # heavy: loaded only for this class

    return Estimator(DecisionTreeClassifier(max_depth=5, min_samples_leaf=20, random_state=0))


def _logistic() -> HypothesisClass:
    """Logistic regression (scikit-learn)."""
    from sklearn.linear_model import LogisticRegression  # heavy: loaded only for this class

    return Estimator(LogisticRegression(solver="newton-cholesky", max_iter=200))


CLASSES: Registry[Callable[[], HypothesisClass]] = Registry(
    "class",
    {
        "stumps": Stumps,
        "thresholds": ScoreThresholds,
        "linear": Linear,
        "tree": _tree,
        "logistic": _logistic,
        "lightgbm": lightgbm_class,
    },
)
"""How a class is made, by its name. Thresholds cut the first column."""

ClassLike = HypothesisClass | str
"""A class of rules, or its name."""

_CLASS = ("exact", "uses_group", "log_size", "params", "bind")
"""What a hypothesis class has, whoever wrote it."""


def as_class(hypotheses: object) -> HypothesisClass:
    """The class of rules that somebody asked for.

    Parameters
    ----------
    hypotheses : HypothesisClass, str or classifier
        A class, its name (of `CLASSES`), or a scikit-learn classifier, which becomes an
        `Estimator`.

    Returns
    -------
    HypothesisClass
        A class.

    Raises
    ------
    InvalidInput
        For anything else, with the way to make a class of it.

    Examples
    --------
    >>> as_class("stumps")
    Stumps(max_bins=None)
    >>> from sklearn.linear_model import LogisticRegression
    >>> as_class(LogisticRegression())
    Estimator(classifier=LogisticRegression(), schema=None)
    """
    missing = [name for name in _CLASS if not hasattr(hypotheses, name)]
    if isinstance(hypotheses, type):
        hint = f"pass an instance, {hypotheses.__name__}(...)."
    elif isinstance(hypotheses, str):
        return _class_named(hypotheses)
    elif not missing:
        return cast(HypothesisClass, hypotheses)
    elif hasattr(hypotheses, "fit") and hasattr(hypotheses, "predict"):
        return Estimator(hypotheses)
    elif (
        isinstance(hypotheses, Sequence | Set)
        or callable(hypotheses)
        or hasattr(hypotheses, "accepts")
    ):
        hint = "list the rules: evenhand.FiniteClass([rule, another_rule])."
    else:
        hint = "use evenhand.FiniteClass, Stumps, ScoreThresholds, Linear or Estimator."
    lacks = f", and this has no {', '.join(missing)}" if missing else ""
    raise InvalidInput(
        f"hypotheses is {short(hypotheses)}; it is a hypothesis class, an object with "
        f"{', '.join(_CLASS)}{lacks}, the name of one, or a scikit-learn classifier.",
        hint=hint,
        argument="hypotheses",
    )


def _class_named(name: str) -> HypothesisClass:
    """The class of this name; InvalidInput lists the names if there is none."""
    if name not in CLASSES:
        raise InvalidInput(
            f"hypotheses is {name!r}; there is no class of rules with this name.",
            hint=f"known are {', '.join(CLASSES)}; or pass a class, evenhand.Stumps().",
            argument="hypotheses",
        )
    return CLASSES[name]()
