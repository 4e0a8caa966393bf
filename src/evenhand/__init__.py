"""evenhand: accept or reject people with error rates that stay close across groups at every round,
although the outcome is only learned for those accepted.

These names are the public interface, with the contracts of `evenhand.contracts`. Everything else
can be imported from its module, and may change.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand import environments
from evenhand.contracts import Policy, Rate
from evenhand.errors import EvenhandError, Infeasible, InvalidInput, ProtocolError
from evenhand.faircsc import solve_fair
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.fairness.certificate import Certificate
from evenhand.hypotheses import Estimator, FiniteClass, Linear, ScoreThresholds, Stumps
from evenhand.learners import CertifiedLearner, TwoPhaseLearner, load
from evenhand.planning import plan
from evenhand.policies import explain
from evenhand.simulation import simulate
from evenhand.words import CostSensitiveProblem, LabelledSample, Prices

if TYPE_CHECKING:
    from evenhand.classifier import FairClassifier
    from evenhand.evaluation import impact, measure
    from evenhand.table_alternatives import alternatives
    from evenhand.table_certificate import certify
    from evenhand.tables import read_table

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "CertifiedLearner",
    "CostSensitiveProblem",
    "Estimator",
    "EvenhandError",
    "FairClassifier",
    "FalseNegativeRate",
    "FalsePositiveRate",
    "FiniteClass",
    "Infeasible",
    "InvalidInput",
    "LabelledSample",
    "Linear",
    "Policy",
    "Prices",
    "ProtocolError",
    "Rate",
    "ScoreThresholds",
    "SelectionRate",
    "Stumps",
    "TwoPhaseLearner",
    "__version__",
    "alternatives",
    "certify",
    "environments",
    "explain",
    "impact",
    "load",
    "measure",
    "plan",
    "read_table",
    "simulate",
    "solve_fair",
]


_LATER = {
    "FairClassifier": "evenhand.classifier",
    "alternatives": "evenhand.table_alternatives",
    "certify": "evenhand.table_certificate",
    "impact": "evenhand.evaluation",
    "measure": "evenhand.evaluation",
    "read_table": "evenhand.tables",
}
"""Names that load scikit-learn, scipy or pyarrow, which happens when they are asked for."""


def __getattr__(name: str) -> Any:
    """The names whose packages load when they are asked for."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The promised names, those that load later among them."""
    return __all__
