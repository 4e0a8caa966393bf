"""Gradient-boosted trees as a hypothesis class (LightGBM).

It is a heuristic oracle like any `Estimator`: weighted classification of 1[c_i < 0] with the
weights |c_i|. It needs the extra `trees`.
"""

from typing import Any

from evenhand.contracts import Params
from evenhand.errors import InvalidInput, install_hint
from evenhand.hypotheses.estimator import Estimator

SETTINGS: Params = {
    "n_estimators": 60,
    "num_leaves": 15,
    "learning_rate": 0.1,
    "min_child_samples": 30,
    "random_state": 0,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,
}


def lightgbm_class(**settings: Any) -> Estimator:
    """Boosted trees (LightGBM).

    With one thread and fixed seeds: the same rows and costs give the same trees.
    """
    return Estimator(_lightgbm().LGBMClassifier(**{**SETTINGS, "n_jobs": 1, **settings}))


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError:
        raise InvalidInput("LightGBM is not installed.", hint=install_hint("trees")) from None
    except OSError as error:  # its wheel brings no OpenMP along
        raise InvalidInput(
            f"LightGBM is installed and cannot be loaded: {error}.",
            hint="install the OpenMP library (Debian: apt-get install libgomp1).",
        ) from None
    return lightgbm
