"""One's own model, end to end: a table with texts, categories, truth values and missing values, and
the models that people bring; fitted, asked, certified, saved, and loaded in another process.
"""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.tools import need
from tests.without_clocks import calls

import evenhand as eh
from evenhand.fairness.certificate import Certificate
from evenhand.hypotheses.models import StoredModel
from evenhand.learners import FairOnGathered

LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
ROWS = 900


def table(rows=ROWS, seed=0):
    """People, their groups and their labels; the income of some is missing."""
    r = np.random.default_rng(seed)
    group = np.where(r.random(rows) < 0.4, "b", "a")
    income, city = r.normal(30, 10, rows), r.choice(["Oslo", "Rome", "Bonn"], rows)
    chance = income / 10 + (city == "Oslo") + r.normal(size=rows) - 0.6 * (group == "b")
    frame = pd.DataFrame(
        {
            "income": np.where(r.random(rows) < 0.1, np.nan, income),
            "city": city,
            "tenure": pd.Categorical(r.choice(["rents", "owns"], rows), ["owns", "rents", "other"]),
            "remark": [
                f"{a} {b}" for a, b in zip(city, r.choice(["new", "old"], rows), strict=True)
            ],
            "member": r.random(rows) < 0.5,
            "age": r.integers(20, 70, rows),
        }
    )
    return frame, group, np.where(chance > 3.3, 1, -1)


def pipeline(model, *, texts=True):
    """One-hot columns, words of the remark, imputed numbers."""
    steps = [
        (OneHotEncoder(handle_unknown="ignore"), ["city", "tenure", "member"]),
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["income", "age"]),
    ]
    return make_pipeline(
        make_column_transformer(*steps, *([(TfidfVectorizer(), "remark")] if texts else [])), model
    )


def lightgbm():
    """LightGBM reads categories and missing values itself; texts are left out."""
    need("libgomp")
    boosting = pytest.importorskip("lightgbm")
    model = boosting.LGBMClassifier(
        n_estimators=8, min_child_samples=10, n_jobs=1, verbosity=-1, deterministic=True
    )
    return make_pipeline(drop_texts(), model)


def drop_texts():
    kept = make_column_transformer(
        ("drop", ["city", "remark"]), remainder="passthrough", verbose_feature_names_out=False
    )
    return kept.set_output(transform="pandas")


def xgboost():
    boosting = pytest.importorskip("xgboost")
    model = boosting.XGBClassifier(
        n_estimators=8, max_depth=3, n_jobs=1, enable_categorical=True, tree_method="hist"
    )
    return make_pipeline(drop_texts(), model)


def catboost():
    boosting = pytest.importorskip("catboost")
    return pipeline(
        boosting.CatBoostClassifier(
            iterations=8, verbose=False, thread_count=1, allow_writing_files=False
        )
    )


MODELS = {
    "logistic": lambda: pipeline(LogisticRegression()),
    "forest": lambda: pipeline(RandomForestClassifier(8, max_depth=4)),
    "histogram": lambda: make_pipeline(
        drop_texts(), HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype")
    ),
    "lightgbm": lightgbm,
    "xgboost": xgboost,
    "catboost": catboost,
}


@pytest.fixture(params=list(LIBRARIES))
def library(request):
    return LIBRARIES[request.param]


@pytest.fixture(scope="module", params=list(MODELS))
def fitted(request):
    frame, group, label = table()
    model = eh.FairClassifier(MODELS[request.param](), limit=0.05, random_state=0)
    return model.fit(frame, label, sensitive_features=group), frame, group


# what every model must survive


def test_the_order_of_columns_and_the_library_change_nothing(fitted, library):
    model, frame, _ = fitted
    expected = model.predict_proba(frame)
    assert 0 < expected[:, 1].mean() < 1
    assert np.array_equal(model.predict_proba(library(frame[frame.columns[::-1]])), expected)
    assert np.array_equal(model.policy_.acceptance(library(frame)), expected[:, 1])


ATTACKS = {
    "renamed": (lambda frame: frame.rename(columns={"income": "Income"}), "'income'"),
    "missing": (lambda frame: frame.drop(columns="age"), "'age'"),
    "unknown": (lambda frame: frame.assign(score=1.0), "'score'"),
    "another kind": (lambda frame: frame.assign(age=frame["age"].astype(str)), "'age' is '"),
    "a gap": (lambda frame: frame.assign(member=[None, *frame["member"][1:]]), "'member' is miss"),
    "unseen": (lambda frame: frame.assign(tenure="squats"), "'tenure'.*'squats'"),
}


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_frames_of_other_columns_are_refused(fitted, library, attack):
    model, frame, _ = fitted
    change, sentence = ATTACKS[attack]
    for ask in (model.predict_proba, model.predict, model.policy_.acceptance):
        with pytest.raises(eh.InvalidInput, match=sentence):
            ask(library(change(frame.head(20))))


def test_arrays_are_refused_where_names_are_needed(fitted):
    model, frame, _ = fitted
    with pytest.raises(eh.InvalidInput, match="X"):
        model.predict(frame.to_numpy())
    with pytest.raises(eh.InvalidInput, match="features"):
        model.policy_.acceptance(frame.to_numpy())


def test_a_word_that_nobody_said_before_is_the_models_own_affair(fitted, library):
    """Texts are open: the pipeline sees the very word, and its encoder ignores it."""
    model, frame, _ = fitted
    new = frame.head(50).assign(city="Ulan Bator", remark="something else entirely")
    own = [part.hypothesis for part in model.components_ if hasattr(part.hypothesis, "model")]
    assert own
    for rule in own:
        said = rule.accepts(model.schema_.encode(library(new)))
        assert np.array_equal(said, np.asarray(rule.model.predict(new)) == 1)


def test_a_policy_goes_through_json_with_its_models_beside_it(fitted):
    model, frame, _ = fitted
    policy, models = model.policy_, {}
    document = json.loads(json.dumps(policy.to_json(models)))
    assert sorted(models) == sorted(policy.models)
    assert policy.models
    assert "data" not in json.dumps(document["parts"])
    for name, stored in models.items():
        assert StoredModel.from_json(stored).sha256 == name
    read = eh.hypotheses.policy_from_json(document, models=json.loads(json.dumps(models)))
    assert read == policy
    assert (read.sha256, read.schema) == (policy.sha256, model.schema_)
    assert np.array_equal(read.acceptance(frame), policy.acceptance(frame))
    whole = eh.hypotheses.policy_from_json(json.loads(json.dumps(policy.to_json())))
    assert whole == policy
    assert whole.sha256 == policy.sha256
    with pytest.raises(eh.InvalidInput, match="hash"):
        eh.hypotheses.policy_from_json(document, models={})


def test_a_model_that_was_changed_or_exchanged_is_refused(fitted):
    """The enemy: another model under the hash of this one."""
    policy, models = fitted[0].policy_, {}
    document = policy.to_json(models)
    name = policy.models[0]
    honest = models[name]["data"]
    models[name]["data"] = honest[:200] + ("A" if honest[200] != "A" else "B") + honest[201:]
    with pytest.raises(eh.InvalidInput, match="bytes"):
        eh.hypotheses.policy_from_json(document, models=models)


def test_rows_decided_alone_are_decided_as_among_others(fitted):
    model, frame, _ = fitted
    together = model.policy_.acceptance(frame.head(12))
    alone = [model.policy_.acceptance(frame.iloc[[row]])[0] for row in range(12)]
    assert alone == together.tolist()


# learners

ANSWER = """
import sys, json, numpy as np, pandas as pd, evenhand as eh
learner, people = eh.load(sys.argv[1], same_coins=True), pd.read_pickle(sys.argv[2])
decisions = learner.decide(people[people.columns[::-1]], ["a"] * len(people))
print(json.dumps([decisions.accept.tolist(), decisions.propensity.tolist(),
                  learner.certificate.digest, learner.certificate.describe()]))
"""


def lived(model, rows=2400):
    """A learner that has met people in blocks and knows the labels of those whom it accepted."""
    frame, group, label = table(rows)
    learner = eh.CertifiedLearner(model, "fpr", 0.3, 0.05, seed=1)
    for start in range(0, rows, 400):
        part = slice(start, start + 400)
        decisions = learner.decide(frame[part], group[part])
        took = decisions.accept
        learner.observe(decisions.round[took], label[part][took])
    return learner


@pytest.mark.parametrize(
    "name",
    [
        "logistic",
        pytest.param("histogram", marks=pytest.mark.slow),
        pytest.param("lightgbm", marks=pytest.mark.slow),
    ],
)
def test_a_learner_is_certified_saved_and_goes_on_in_another_process(name, tmp_path):
    learner = lived(MODELS[name]())
    assert learner.learned_weight > 0
    path, people = tmp_path / "learner.eh", tmp_path / "people.pkl"
    learner.save(path)
    frame, _, _ = table(60, seed=5)
    frame.to_pickle(people)
    answer = subprocess.run(
        [sys.executable, "-c", ANSWER, str(path), str(people)],
        capture_output=True,
        text=True,
        check=True,
    )
    accept, propensity, digest, text = json.loads(answer.stdout)
    decisions = learner.decide(frame, ["a"] * 60)
    certificate = learner.certificate  # the other process asks after its decisions, too
    assert decisions.accept.tolist() == accept
    assert decisions.propensity.tolist() == propensity
    assert certificate.digest == digest
    assert f"sha256 {learner.policy.models[0]}" in text
    assert f"sha256 {learner.schema.sha256}" in text
    assert "city (text)" in text
    assert "not serialisable" not in text
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.digest == digest


def test_the_first_frame_fixes_the_columns_of_a_learner(library):
    frame, group, _ = table(200)
    learner = FairOnGathered(pipeline(LogisticRegression()), "fpr", 0.3, seed=1)
    assert learner.schema is None
    learner.decide(library(frame), group)
    assert learner.schema.names == tuple(frame.columns)
    with pytest.raises(eh.InvalidInput, match="'city'"):
        learner.decide(library(frame.rename(columns={"city": "town"})), group)
    assert learner.round == 200  # nobody of those has been decided about
    rows = learner.schema.encode(frame)
    assert len(learner.decide(rows, group)) == 200  # an array: rows that the schema has encoded
    with pytest.raises(eh.InvalidInput, match="numbers each"):
        learner.decide(np.zeros((3, 6)), group[:3])


def test_a_schema_may_be_given_before_the_first_person():
    frame, group, _ = table(200)
    schema = eh.schema.Schema.of(frame).changed("age", missing=True)
    learner = eh.CertifiedLearner(
        eh.Estimator(pipeline(LogisticRegression()), schema), "fpr", 0.3, 0.05, seed=1
    )
    assert learner.policy.schema == schema
    learner.decide(frame.head(1), group[:1])
    learner.decide(frame.head(1).assign(age=np.nan), group[:1])
    plain = eh.CertifiedLearner(pipeline(LogisticRegression()), "fpr", 0.3, 0.05, seed=1)
    plain.decide(frame.head(1), group[:1])
    with pytest.raises(eh.InvalidInput, match=r"'age'.*row 0.*missing=True"):
        plain.decide(frame.head(1).assign(age=np.nan), group[:1])


def test_frames_after_arrays_are_refused_and_rules_on_numbers_say_what_to_do():
    frame, group, _ = table(200)
    numbers = frame[["age", "member"]]
    learner = eh.CertifiedLearner(eh.Stumps(), "fpr", 0.3, 0.05, seed=1)
    learner.decide(numbers.to_numpy(dtype=float), group)
    with pytest.raises(eh.InvalidInput, match="arrays"):
        learner.decide(numbers, group)
    other = eh.CertifiedLearner(eh.Stumps(), "fpr", 0.3, 0.05, seed=1)
    with pytest.raises(eh.InvalidInput, match=r"Stumps.*income"):
        other.decide(frame, group)
    assert (other.round, other.schema) == (0, None)
    other.decide(numbers, group)  # what was refused has changed nothing


def test_a_frame_of_numbers_is_decided_as_its_array_is():
    """Bit for bit, for rules on numbers; and reversed columns change nothing."""
    frame, group, label = table(1500)
    numbers = frame[["age", "member"]].assign(income=frame["income"].fillna(30.0))
    rows = numbers.to_numpy(dtype=float)
    learners = [eh.CertifiedLearner(eh.Stumps(), "fpr", 0.3, 0.05, seed=1) for _ in range(3)]
    shown = [rows, numbers, numbers]
    for start in range(0, 1500, 300):
        part, answers = slice(start, start + 300), []
        for number, (learner, people) in enumerate(zip(learners, shown, strict=True)):
            block = people[part]
            if number == 2 and start:
                block = block[block.columns[::-1]]
            decisions = learner.decide(block, group[part])
            took = decisions.accept
            learner.observe(decisions.round[took], label[part][took])
            answers.append((took.tolist(), decisions.propensity.tolist()))
        assert answers[0] == answers[1] == answers[2]
    assert learners[0].policy.hypotheses == learners[1].policy.hypotheses
    assert "income" in learners[1].policy.describe() or "age" in learners[1].policy.describe()


def test_who_is_erased_leaves_no_word_in_the_file(tmp_path):
    frame, group, label = table(1200)
    known = eh.Estimator(pipeline(LogisticRegression()), eh.schema.Schema.of(frame))
    learner = eh.CertifiedLearner(known, "fpr", 0.3, 0.05, seed=1)
    secret = frame.head(1).assign(remark="Rumpelstiltskin")
    decision = learner.decide(secret, ["a"])
    learner.erase(decision.round)
    for start in range(0, 1200, 200):
        part = slice(start, start + 200)
        decisions = learner.decide(frame[part], group[part])
        took = decisions.accept
        learner.observe(decisions.round[took], label[part][took])
    learner.save(tmp_path / "learner.eh")
    loaded = eh.load(tmp_path / "learner.eh")
    packed = loaded.schema["remark"].encode(["Rumpelstiltskin"])[0, :2]
    words = loaded.rounds.features_of(slice(None))[:, loaded.schema.places["remark"]]
    assert not (words[:, :2] == packed).all(axis=1).any()


# what is accepted, or refused at once


def test_a_bare_classifier_and_a_rate_as_text_are_taken():
    made = eh.CertifiedLearner(LogisticRegression(), "fpr", 0.2, 0.05, seed=1)
    assert isinstance(made.hypotheses, eh.Estimator)
    assert [rate.symbol for rate in made.rates] == ["FPR"]
    assert made.params["hypotheses"]["classifier"] == "LogisticRegression"
    made.decide(np.zeros((2, 1)), ["a", "b"])
    with pytest.raises(eh.InvalidInput, match="CertifiedLearner"):
        eh.TwoPhaseLearner(LogisticRegression(), "fpr", 0.2, 0.05, 5000)


@pytest.mark.parametrize("learner", [eh.CertifiedLearner, eh.TwoPhaseLearner])
def test_what_is_no_class_is_refused_at_once(learner):
    horizon = () if learner is eh.CertifiedLearner else (5000,)
    for wrong, sentence in {
        LogisticRegression: "LogisticRegression",
        "forest": "class of rules",
        3: "hypothesis class",
    }.items():
        with pytest.raises(eh.InvalidInput, match=sentence):
            learner(wrong, "fpr", 0.2, 0.05, *horizon)
    with pytest.raises(eh.InvalidInput, match="fprr"):
        learner(eh.Stumps(), "fprr", 0.2, 0.05, *horizon)


def test_solve_fair_takes_bare_classifiers_and_frames():
    frame, group, label = table()
    sample = eh.LabelledSample(frame, group, label)
    problem = eh.Prices().problem(frame, group, label)
    solution = eh.solve_fair(problem, pipeline(LogisticRegression()), "fpr", sample, 0.05)
    assert np.abs(solution.gaps).max() <= 0.05 + 1e-9
    assert np.array_equal(
        solution.policy.acceptance(frame[frame.columns[::-1]]), solution.acceptance
    )
    other = eh.Prices().problem(frame.drop(columns="age"), group, label)
    with pytest.raises(eh.InvalidInput, match="columns"):
        eh.solve_fair(other, LogisticRegression(), "fpr", sample, 0.05)
    with pytest.raises(eh.InvalidInput, match="instance"):
        eh.solve_fair(problem, LogisticRegression, "fpr", sample, 0.05)
    with pytest.raises(eh.errors.UnsuitableEstimator, match="columns"):
        eh.solve_fair(problem, LogisticRegression(), "fpr", sample, 0.05)


# a stranger's own classes


class Shout(TransformerMixin, BaseEstimator):
    """A step of one's own, which looks at columns by name."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return pd.DataFrame({"oslo": X["city"].str.upper() == "OSLO", "age": X["age"]})


class Majority(ClassifierMixin, BaseEstimator):
    """A classifier of one's own on a frame: what most people of the city are."""

    def fit(self, X, y, sample_weight=None):
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.classes_ = np.unique(y)
        votes = pd.Series(np.where(np.asarray(y) == 1, weight, -weight))
        self.votes_ = votes.groupby(X["city"].to_numpy()).sum().to_dict()
        return self

    def predict(self, X):
        return np.array([1 if self.votes_.get(city, -1.0) > 0 else 0 for city in X["city"]])


@pytest.mark.parametrize("model", [Majority(), make_pipeline(Shout(), LogisticRegression())])
def test_a_strangers_estimator_on_a_frame(model, tmp_path):
    """It lives in a simulation; its types are loaded if the reader names them."""
    frame, group, label = table(400)
    rules = eh.Estimator(model, eh.schema.Schema.of(frame))
    world = eh.environments.Replay(eh.LabelledSample(frame, group, label), hypotheses=rules)
    learner = eh.CertifiedLearner(rules, "fpr", 0.5, 0.05, seed=0)
    run = eh.simulate(learner, world, 3000, seed=0)
    assert run.learner.learned_weight > 0
    fair = eh.FairClassifier(model, limit=0.1).fit(frame, label, sensitive_features=group)
    document = fair.policy_.to_json()
    own = f"{type(model).__module__}.{Majority.__name__}"
    step = f"{__name__}.{Shout.__name__}"
    with pytest.raises(eh.InvalidInput, match="types"):
        eh.hypotheses.policy_from_json(document)
    read = eh.hypotheses.policy_from_json(document, trusted=[own, step])
    assert np.array_equal(read.acceptance(frame), fair.policy_.acceptance(frame))


def test_a_strict_encoder_says_that_it_met_a_new_word():
    frame, group, label = table()
    strict = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["city", "remark"])),
        LogisticRegression(),
    )
    model = eh.FairClassifier(strict).fit(frame, label, sensitive_features=group)
    with pytest.raises(eh.InvalidInput, match="handle_unknown"):
        model.predict(frame.head(3).assign(city="Ulan Bator"))


def test_a_learner_refuses_whom_its_models_cannot_read_and_goes_on(tmp_path):
    """The enemy: a strict encoder, and a word that is first said late. The person is refused before
    anything is decided, also while no policy asks the model; all others are decided as ever.
    """
    frame, group, label = table(2400)
    strict = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["city"]), (SimpleImputer(), ["income", "age"])),
        LogisticRegression(),
    )
    learner = eh.CertifiedLearner(
        eh.Estimator(strict, eh.schema.Schema.of(frame)), "fpr", 0.3, 0.05, seed=1
    )
    for start in range(0, 2400, 400):
        part = slice(start, start + 400)
        decisions = learner.decide(frame[part], group[part])
        took = decisions.accept
        learner.observe(decisions.round[took], label[part][took])
    assert learner.state.process.members
    before = learner.round
    with pytest.raises(eh.InvalidInput, match="these people"):
        learner.decide(frame.head(5).assign(city="Ulan Bator"), group[:5])
    with pytest.raises(eh.InvalidInput, match="these people"):
        learner.decide(frame.head(1).assign(city="Ulan Bator"), group[:1])
    assert learner.round == before
    learner.decide(frame.head(5), group[:5])


def test_a_file_holds_each_model_once_and_names_of_types_are_asked_for(tmp_path):
    learner = lived(make_pipeline(Shout(), LogisticRegression()), 2000)
    assert learner.learned_weight > 0
    path = tmp_path / "learner.eh"
    learner.save(path)
    with np.load(path) as members:
        document = json.loads(bytes(members["document"]))
    assert set(learner.policy.models) <= document["models"].keys()
    text = json.dumps(document["state"])
    assert learner.policy.models[0] in text
    assert document["models"][learner.policy.models[0]]["data"][:100] not in text
    own = f"{__name__}.{Shout.__name__}"
    with pytest.raises(eh.EvenhandError):
        eh.load(path)
    again = eh.load(path, trusted=[own], same_coins=True)
    assert again.certificate.digest == learner.certificate.digest
    frame, group, _ = table(50, seed=3)
    first, second = learner.decide(frame, group), again.decide(frame, group)
    assert first.propensity.tolist() == second.propensity.tolist()


def test_readers_of_files_are_never_loaded():
    """The enemy: a pipeline whose step is a function that reads pickles."""
    from sklearn.preprocessing import FunctionTransformer

    from evenhand.hypotheses.models import load_model, store_model

    step = make_pipeline(FunctionTransformer(pd.read_pickle), LogisticRegression())
    with pytest.raises(eh.InvalidInput, match="read_pickle"):
        load_model(store_model(step))
    harmless = make_pipeline(FunctionTransformer(np.log1p), LogisticRegression())
    load_model(store_model(harmless))


def test_a_decision_about_one_row_costs_what_the_models_own_predictions_cost(monkeypatch):
    """At most 1.3 times the function calls of the parts' own `predict`; one frame, each model of
    the policy once and no other, and nothing about threads.
    """
    frame, group, label = table()
    learner = eh.CertifiedLearner(
        eh.Estimator(pipeline(LogisticRegression()), eh.schema.Schema.of(frame)),
        "fpr",
        0.4,
        0.05,
        horizon=10_000,
        seed=1,
    )
    for block in np.split(np.arange(ROWS), 6):
        decisions = learner.decide(frame.iloc[block], group[block])
        accept = decisions.accept
        learner.observe(decisions.round[accept], label[block][accept])
    one = learner.schema.encode(frame.iloc[:1])
    learner.decide(one, group[:1])  # opens the epoch
    parts = [rule.model for rule in learner.policy.hypotheses if hasattr(rule, "model")]
    assert parts
    assert len(learner.state.process.members) > len(parts)  # rules that the policy does not ask
    alone = sum(calls(model.predict, frame.iloc[:1]) for model in parts)
    assert calls(learner.decide, one, group[:1]) <= 1.3 * alone

    made = []
    schema, model = type(learner.schema), type(parts[0])
    show, predict = schema.frame, model.predict
    monkeypatch.setattr(
        schema, "frame", lambda self, rows: made.append("frame") or show(self, rows)
    )
    monkeypatch.setattr(model, "predict", lambda self, X: made.append("asked") or predict(self, X))
    monkeypatch.setattr("evenhand.learner.one_blas_thread", lambda: made.append("threads"))
    learner.decide(one, group[:1])
    assert made == ["frame", *["asked"] * len(parts)]


def test_rules_of_one_model_ask_it_once_and_no_model_sees_what_another_did_to_the_frame():
    from evenhand.hypotheses.estimator import Fitted

    class Scribbles(ClassifierMixin, BaseEstimator):
        """A model that writes into the frame it is shown."""

        asked = 0

        def predict(self, X):
            return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

        def predict_proba(self, X):
            self.asked += 1
            assert list(X.columns) == ["age"]
            X["age"] = X["age"] * 2
            X["more"] = 1
            return np.stack([1 - X["age"] / 200, X["age"] / 200], axis=1)

    schema = eh.schema.Schema((eh.schema.Column("age"),))
    model, other = Scribbles(), Scribbles()
    rules = (Fitted(model, 1, schema, 0.2), Fitted(model, 1, schema, 0.6), Fitted(other, 1, schema))
    rows = np.array([[10.0], [40.0], [70.0]])
    together = Fitted.together(rules)(rows.T)
    assert together.tolist() == [[False, True, True], [False, False, True], [False, False, True]]
    assert (model.asked, other.asked) == (1, 1)
    assert [rule.accepts(rows).tolist() for rule in rules] == together.tolist()
    assert Fitted.together(rules).one(rows[1:2]) == [True, False, False]


def test_whom_a_rule_outside_the_policy_cannot_read_it_rejects():
    """Strict encoders, and single people with a new word: the policy reads them, other rules of the
    certificate do not. The learner goes on, and counts them as rejected by these rules.
    """
    from evenhand.hypotheses.estimator import Fitted, rejecting_unread

    frame, group, label = table(2400)
    strict = make_pipeline(OneHotEncoder(), LogisticRegression())
    schema = eh.schema.Schema.of(frame[["city"]])
    rule = Fitted(strict.fit(frame[["city"]], label), schema.width, schema)
    people = frame[["city"]].head(9).copy()
    people.loc[[2, 5], "city"] = "Ulan Bator"
    rows = schema.encode(people)
    with pytest.raises(eh.InvalidInput, match="handle_unknown"):
        rule.accepts(rows)
    said = rejecting_unread(rule.accepts, rows)
    known = np.delete(np.arange(9), [2, 5])
    assert not said[[2, 5]].any()
    assert said[known].tolist() == rule.accepts(rows[known]).tolist()
    assert said.any()

    learner = eh.CertifiedLearner(eh.Estimator(strict, schema), "fpr", 0.3, 0.05, seed=1)
    block = np.random.default_rng(0)
    for start in range(0, 2400, 400):
        part = slice(start, start + 400)
        decisions = learner.decide(frame[["city"]][part], group[part])
        took = decisions.accept
        learner.observe(decisions.round[took], label[part][took])
    assert learner.state.process.members
    constant = eh.policies.Mixture((eh.hypotheses.ACCEPT_ALL,), (1.0,), schema=learner.schema)
    epochs = learner.rounds.epochs
    epochs[-1] = replace(epochs[-1], policy=constant)  # asks no model
    for _ in range(30):
        row = learner.decide(rows[2:3], ["a"])
        learner.observe(row.round, [1])
    for _ in range(12):  # several closings later
        at = block.integers(0, 2400, 100)
        decisions = learner.decide(frame[["city"]].iloc[at], group[at])
        took = decisions.accept
        learner.observe(decisions.round[took], label[at][took])
    assert learner.state.closed_to > 2430
