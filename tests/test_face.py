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
    """scikit-learn, scipy.optimize and scipy.special (with all of numpy.testing), numba and matplotlib load when they are used."""
    heavy = ("sklearn", "scipy.optimize", "scipy.special", "numpy.testing", "numba", "matplotlib", "pandas")
    code = f"import sys, evenhand; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_importing_costs_less_than_half_a_second_more_than_numpy():
    """On a machine that imports numpy in a tenth of a second: as a ratio of CPU times, least of five runs each, taken by turns."""
    code = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"

    def seconds(module: str) -> float:
        run = subprocess.run([sys.executable, "-c", code.format(module)], capture_output=True, text=True, check=True)
        return float(run.stdout)

    turns = [(seconds("numpy"), seconds("evenhand")) for _ in range(5)]
    numpy, evenhand = (min(column) for column in zip(*turns, strict=True))
    assert evenhand - numpy < 5 * numpy


def test_every_name_of_the_notation_exists_in_the_code():
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    table = (ROOT / "docs" / "notation.md").read_text()
    names = re.findall(r"^\|[^|]*\| `(\w+)` \|", table, flags=re.MULTILINE)
    assert len(names) > 20
    assert [name for name in names if not re.search(rf"\b{name}\b", source)] == []
