"""Classes of rules by name, with the same settings in every command, study and service."""

from collections.abc import Callable

from evenhand.contracts import HypothesisClass
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
    "evenhand.classes",
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
