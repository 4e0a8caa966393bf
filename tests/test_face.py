"""The public face: the names of the flat namespace, what importing costs, and the notation."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import evenhand as eh

ROOT = Path(__file__).parents[1]


def test_every_exported_name_exists_and_is_sorted():
    assert sorted(eh.__all__) == eh.__all__
    assert all(hasattr(eh, name) for name in eh.__all__)
    assert len(set(eh.__all__)) == len(eh.__all__)


def test_the_names_of_the_design_are_there():
    wanted = (
        *("LabelledSample", "CostSensitiveProblem", "Prices"),
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


def test_the_face_is_small_and_dir_shows_all_of_it():
    assert dir(eh) == sorted(eh.__all__)
    assert len(eh.__all__) <= 35
    assert not hasattr(eh, "Mixture")


def test_help_of_the_learners_begins_with_decide_and_observe():
    for learner in (eh.CertifiedLearner, eh.TwoPhaseLearner):
        first = " ".join(inspect.getdoc(learner).split("\n\n")[:2])
        assert "`decide`" in first
        assert "`observe`" in first


def things_that_people_hold() -> list[object]:
    """What the names of the face make and return."""
    people = eh.read_table("lending").encoded()
    sample = people.sample
    accepted = sample.features[:, 1] >= 620
    problem = eh.Prices().problem(sample.features, sample.group, sample.label)
    solved = eh.solve_fair(problem, "stumps", "fpr", sample, 0.05)
    learner = eh.CertifiedLearner("stumps", "fpr", limit=0.2, delta=0.05, seed=1)
    decisions = learner.decide(sample.features[:20], sample.group[:20])
    world = eh.environments.lending()
    made = [eh.FalsePositiveRate(), eh.FalseNegativeRate(), eh.SelectionRate(), eh.Prices()]
    made += [eh.Stumps(), eh.Linear(), eh.ScoreThresholds(), eh.FairClassifier("stumps")]
    made += [
        eh.FiniteClass.from_table([[True, False]]),
        eh.TwoPhaseLearner("stumps", "fpr", 0.3, 0.05, 99),
    ]
    made += [eh.read_table("lending"), people, sample, problem, solved, solved.policy, world]
    made += [learner, decisions, decisions[0], learner.certificate, learner.report, learner.policy]
    made += [eh.certify("stumps", sample, limit=0.2), eh.measure(accepted, sample.group)]
    made += [eh.impact(accepted, sample.group), eh.simulate(learner, world, rounds=20, seed=1)]
    made += [eh.explain(solved.policy, sample.features[0], sample.features)]
    return made


@pytest.mark.thorough
def test_everything_says_what_it_is():
    """No repr is that of `object`."""
    things = things_that_people_hold()
    assert [thing for thing in things if " object at 0x" in repr(thing)] == []
    assert " object at 0x" in repr(object())


@pytest.mark.parametrize("name", [name for name in eh.__all__ if callable(getattr(eh, name))])
def test_a_missing_argument_is_named_and_no_private_class(name):
    called = getattr(eh, name)
    needed = [
        one.name
        for one in inspect.signature(called).parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if needed and name not in ("Policy", "Rate"):  # contracts, which nobody calls
        with pytest.raises(TypeError) as raised:
            called()
        assert any(repr(one) in str(raised.value) for one in needed)
        said = str(raised.value).split("(")[0].removesuffix(".__init__")
        assert said in eh.__all__  # itself, or the public class from which it inherits


def test_importing_loads_nothing_heavy():
    """scikit-learn, scipy.optimize and scipy.special (with all of numpy.testing), numba and
    matplotlib load when they are used.
    """
    heavy = (
        "sklearn",
        "scipy.optimize",
        "scipy.special",
        "numpy.testing",
        "numba",
        "matplotlib",
        "pandas",
    )
    code = f"import sys, evenhand; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def modules_beyond_numpy(statement: str) -> list[str]:
    """What a fresh interpreter has loaded after it, and not after `import numpy`."""
    code = (
        f"import sys, numpy; known = set(sys.modules); {statement}; "
        "print(*sorted(set(sys.modules) - known))"
    )
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_importing_loads_little_beyond_numpy():
    """At most 200 modules of its own and 150 of others (measured: 111 and 76); the seconds they
    take are in `make bench`.

    Negative control: scipy.optimize alone is more than the others may be.
    """
    loaded = modules_beyond_numpy("import evenhand")
    own = [name for name in loaded if name.split(".")[0] == "evenhand"]
    assert 0 < len(own) <= 200
    assert len(loaded) - len(own) <= 150
    assert len(modules_beyond_numpy("import scipy.optimize")) > 150


def test_every_name_of_the_notation_exists_in_the_code():
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    table = (ROOT / "docs" / "reference" / "words.md").read_text()
    names = re.findall(r"^\|[^|]*\| `(\w+)` \|", table, flags=re.MULTILINE)
    assert len(names) > 20
    assert [name for name in names if not re.search(rf"\b{name}\b", source)] == []
