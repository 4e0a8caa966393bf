"""evenhand: decisions about people that stay even-handed at every round although the truth is only seen for those accepted."""

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
from evenhand.policies import Mixture
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

__version__ = "0.1.0"

__all__ = [
    "Applicants",
    "BadLabel",
    "CannotEstimateRate",
    "CertifiedLearner",
    "CostSensitiveProblem",
    "Decision",
    "Decisions",
    "Estimator",
    "EvenhandError",
    "FairSolution",
    "FalseNegativeRate",
    "FalsePositiveRate",
    "FiniteClass",
    "Frontier",
    "Infeasible",
    "InvalidInput",
    "LabelledSample",
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
    "policy_from_json",
    "simulate",
    "solve_fair",
    "theory",
]
