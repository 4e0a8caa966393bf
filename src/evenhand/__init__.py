"""evenhand: decisions about people that stay even-handed at every round although the truth is only
seen for those accepted.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand import environments, theory
from evenhand.algorithms.certified.quota import Quota
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
from evenhand.simulation import Run, simulate
from evenhand.words import (
    CostSensitiveProblem,
    Decision,
    Decisions,
    LabelledSample,
    Prices,
)

if TYPE_CHECKING:
    from evenhand.classifier import FairClassifier
    from evenhand.evaluation import impact, measure
    from evenhand.table_certificate import certify

__version__ = "0.1.0"

__all__ = [
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
    "Prices",
    "ProtocolError",
    "Quota",
    "Run",
    "Schema",
    "ScoreThresholds",
    "SelectionRate",
    "StorageError",
    "Stumps",
    "TwoPhaseLearner",
    "UnsuitableEstimator",
    "__version__",
    "certify",
    "environments",
    "frontier",
    "hypothesis_from_json",
    "impact",
    "load",
    "measure",
    "plan",
    "plan_from_sample",
    "policy_from_json",
    "simulate",
    "solve_fair",
    "theory",
]


_LATER = {
    "certify": "evenhand.table_certificate",
    "impact": "evenhand.evaluation",
    "FairClassifier": "evenhand.classifier",
    "measure": "evenhand.evaluation",
}
"""Names that load scikit-learn or scipy, which happens when they are asked for."""


def __getattr__(name: str) -> Any:
    """The names whose packages load when they are asked for."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
