"""evenhand: decisions about people that stay even-handed at every round although the truth is only
seen for those accepted.
"""

from typing import TYPE_CHECKING, Any

from evenhand import environments, theory
from evenhand.errors import (
    BadLabel,
    CannotEstimateRate,
    EvenhandError,
    Infeasible,
    InvalidInput,
    LengthMismatch,
    MissingColumn,
    NotFinite,
    NotSerialisable,
    ProtocolError,
    StorageError,
    UnsuitableEstimator,
)
from evenhand.faircsc import FairSolution, Frontier, frontier, solve_fair
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.hypotheses import (
    Estimator,
    FiniteClass,
    Linear,
    ScoreThresholds,
    Stumps,
    hypothesis_from_json,
    policy_from_json,
)
from evenhand.learners import CertifiedLearner, TwoPhaseLearner, load
from evenhand.planning import LaunchPlan, plan, plan_from_sample
from evenhand.policies import Mixture
from evenhand.schema import Column, Schema
from evenhand.simulate import Run, simulate
from evenhand.words import (
    Applicants,
    CostSensitiveProblem,
    Decision,
    Decisions,
    LabelledSample,
    Outcome,
    Prices,
)

if TYPE_CHECKING:
    from evenhand.classifier import FairClassifier

__version__ = "0.1.0"

__all__ = [
    "Applicants",
    "BadLabel",
    "CannotEstimateRate",
    "CertifiedLearner",
    "Column",
    "CostSensitiveProblem",
    "Decision",
    "Decisions",
    "Estimator",
    "EvenhandError",
    "FairClassifier",
    "FairSolution",
    "FalseNegativeRate",
    "FalsePositiveRate",
    "FiniteClass",
    "Frontier",
    "Infeasible",
    "InvalidInput",
    "LabelledSample",
    "LaunchPlan",
    "LengthMismatch",
    "Linear",
    "MissingColumn",
    "Mixture",
    "NotFinite",
    "NotSerialisable",
    "Outcome",
    "Prices",
    "ProtocolError",
    "Run",
    "Schema",
    "ScoreThresholds",
    "SelectionRate",
    "StorageError",
    "Stumps",
    "TwoPhaseLearner",
    "UnsuitableEstimator",
    "__version__",
    "environments",
    "frontier",
    "hypothesis_from_json",
    "load",
    "plan",
    "plan_from_sample",
    "policy_from_json",
    "simulate",
    "solve_fair",
    "theory",
]


def __getattr__(name: str) -> Any:
    """FairClassifier is a scikit-learn estimator, so scikit-learn loads when it is asked for."""
    if name == "FairClassifier":
        from evenhand.classifier import FairClassifier

        return FairClassifier
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
