"""Learners that are saved under one scikit-learn and go on under another, in two real environments:
the lowest version that evenhand takes, and the newest.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEEDED = ("skops>=0.11", "joblib", "threadpoolctl", "narwhals", "click", "rich")
VERSIONS = {
    "1.6": ("scikit-learn==1.6.*", "pandas>=2.1,<3", *NEEDED),
    "newest": ("scikit-learn", "pandas>=2.1", *NEEDED),
}

LIVES = """
import json, sys, warnings
import numpy as np, pandas as pd, sklearn
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
import evenhand as eh

MODELS = {
    "logistic": LogisticRegression(C=2.0),
    "forest": RandomForestClassifier(8, max_depth=4),
    "boosting": GradientBoostingClassifier(n_estimators=8),
}

def pipeline(model):
    return make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["city"]),
            (TfidfVectorizer(), "remark"),
            (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["income"]),
            remainder="passthrough",
        ),
        model,
    )

def table(rows, seed):
    r = np.random.default_rng(seed)
    group = np.where(r.random(rows) < 0.4, "b", "a")
    income, city = r.normal(30, 10, rows), r.choice(["Oslo", "Rome", "Bonn"], rows)
    chance = income / 10 + (city == "Oslo") + r.normal(size=rows) - 0.6 * (group == "b")
    frame = pd.DataFrame({
        "income": np.where(r.random(rows) < 0.1, np.nan, income), "city": city,
        "remark": [f"{one} {two}" for one, two in zip(city, r.choice(["new", "old"], rows))],
        "age": r.integers(20, 70, rows),
    })
    return frame, group, np.where(chance > 3.3, 1, -1)

def live(learner, rows, seed):
    frame, group, label = table(rows, seed)
    for start in range(0, rows, 400):
        part = slice(start, start + 400)
        decisions = learner.decide(frame[part], group[part])
        took = decisions.accept
        learner.observe(decisions.round[took], label[part][took])

action, path, name = sys.argv[1:]
if action == "begin":
    if name == "bare":  # a bare classifier, on numbers
        learner = eh.CertifiedLearner(eh.Estimator(LogisticRegression(C=2.0)), "fpr", 0.3, 0.05)
        numbers = table(400, 5)[0][["age"]].to_numpy(dtype=float)
        learner.decide(numbers, table(400, 5)[1])
        learner.save(path)
        print(json.dumps({"version": sklearn.__version__}))
        sys.exit()
    schema = eh.schema.Schema.of(table(2400, 1)[0]).changed("income", missing=True)
    learner = eh.CertifiedLearner(
        eh.Estimator(pipeline(MODELS[name]), schema), "fpr", 0.3, 0.05, seed=1)
    live(learner, 2400, 1)
    learner.save(path)
    warned, notes = [], []
else:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = eh.load(path)
    warned = [str(one.message) for one in caught if "was saved with" in str(one.message)]
    others = [str(one.message) for one in caught if "unpickle" in str(one.message)]
    assert not others, others
if name != "bare":
    frame = table(200, 7)[0]
    members = learner.state.process.members
    said = {
        "acceptance": learner.acceptance(frame).tolist(),
        "members": len(members),
        "unread": [one.kind for one in learner.notes].count("unread rules"),
        "learned": learner.learned_weight,
        "booked": [one.to_json() for one in learner.bookings],
        "round": learner.round,
    }
else:
    said = {"round": learner.round}
if action == "go on":
    if name == "bare":
        learner.decide(np.zeros((2, 1)), ["a", "b"])
    else:
        live(learner, 1200, 2)  # with a closing or two, in which models are fitted here
    learner.save(path)
print(json.dumps({"version": sklearn.__version__, "warned": warned, **said}))
"""


@pytest.fixture(scope="session")
def environments(tmp_path_factory):
    """A Python of its own for each version; the test is skipped where no registry answers."""
    made = {}
    for name, packages in VERSIONS.items():
        folder = tmp_path_factory.mktemp("environment") / "python"
        venv.create(folder, with_pip=True)
        python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        command = [python, "-m", "pip", "install", "--quiet", *packages]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            pytest.skip(f"no registry gave {', '.join(packages)}: {installed.stderr[-300:]}")
        made[name] = python
    return made


def lives(python, action, path, name):
    """What the learner says in that environment."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [python, "-W", "ignore", "-c", LIVES, action, str(path), name]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", "forest", "boosting"])
@pytest.mark.parametrize("way", [("1.6", "newest"), ("newest", "1.6")], ids="-".join)
def test_a_learner_goes_on_under_another_scikit_learn_and_back(environments, way, name, tmp_path):
    """With a warning, the same policy, and the bookings so far; and it learns on there."""
    here, there = (environments[one] for one in way)
    path = tmp_path / "learner"
    begun = lives(here, "begin", path, name)
    assert begun["members"] > 0
    assert begun["learned"] > 0
    for python in (there, here):
        before = lives(python, "look", path, name)
        assert len(before["warned"]) == 1
        assert f"scikit-learn {begun['version']}" in before["warned"][0]
        assert before["unread"] == 0
        assert before["acceptance"] == begun["acceptance"]
        assert before["booked"] == begun["booked"]
        assert before["round"] == begun["round"]
        lives(python, "go on", path, name)
        begun = lives(python, "look", path, name)
        assert begun["warned"] == []  # the file is of this version now
        assert begun["round"] == before["round"] + 1200


@pytest.mark.slow
@pytest.mark.parametrize("way", [("1.6", "newest"), ("newest", "1.6")], ids="-".join)
def test_a_bare_classifier_is_made_again_with_the_settings_that_are_known(
    environments, way, tmp_path
):
    here, there = (environments[one] for one in way)
    lives(here, "begin", tmp_path / "learner", "bare")
    assert lives(there, "go on", tmp_path / "learner", "bare")["round"] == 400
