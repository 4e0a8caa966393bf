"""The public face: the names of the flat namespace, what importing costs, and the notation's names."""

import re
import subprocess
import sys
from pathlib import Path

import evenhand as eh

ROOT = Path(__file__).parents[1]


def test_every_exported_name_exists_and_is_sorted():
    assert sorted(eh.__all__) == eh.__all__
    assert all(hasattr(eh, name) for name in eh.__all__)
    assert len(set(eh.__all__)) == len(eh.__all__)


def test_the_names_of_the_design_are_there():
    wanted = (
        *("Applicants", "LabelledSample", "CostSensitiveProblem", "Prices"),
        *("FiniteClass", "ScoreThresholds", "Stumps", "Linear", "Estimator"),
        *("FalsePositiveRate", "FalseNegativeRate", "SelectionRate"),
        *(
            "solve_fair",
            "TwoPhaseLearner",
            "CertifiedLearner",
            "environments",
            "simulate",
            "load",
            "plan",
            "FairClassifier",
        ),
    )
    assert [name for name in wanted if not hasattr(eh, name)] == []


def test_importing_loads_nothing_heavy():
    """scikit-learn, scipy.optimize, numba and matplotlib load when they are used."""
    code = "import sys, evenhand; print([m for m in ('sklearn', 'scipy.optimize', 'numba', 'matplotlib', 'pandas') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_importing_costs_less_than_half_a_second_more_than_numpy():
    """CPU time, least of five runs each, so that a busy machine does not decide."""

    def seconds(module: str) -> float:
        code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
        runs = [
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
            for _ in range(5)
        ]
        return min(float(out) for out in runs)

    assert seconds("evenhand") - seconds("numpy") < 0.5


def test_every_name_of_the_notation_exists_in_the_code():
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    table = (ROOT / "docs" / "notation.md").read_text()
    names = re.findall(r"^\|[^|]*\| `(\w+)` \|", table, flags=re.MULTILINE)
    assert len(names) > 20
    assert [name for name in names if not re.search(rf"\b{name}\b", source)] == []
