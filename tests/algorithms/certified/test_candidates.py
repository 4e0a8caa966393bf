"""Rules of the incumbent are members from the first round; what is no rule, or reads other columns,
is an error before anybody is decided about.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import evenhand as eh
from evenhand.algorithms.certified.candidates import as_candidates
from evenhand.errors import InvalidInput
from evenhand.hypotheses import ACCEPT_ALL, LinearRule, Threshold
from evenhand.policies import Mixture

TODAY = Threshold(column=0, value=0.6, columns=1)
PEOPLE = eh.environments.Scores().draw(3000, np.random.default_rng(1))


def learner(candidates, hypotheses=None, **settings):
    rules = eh.ScoreThresholds() if hypotheses is None else hypotheses
    return eh.CertifiedLearner(
        rules, "fpr", 0.2, 0.05, **{"seed": 4, "candidates": candidates, **settings}
    )


def played(told, people=PEOPLE, block=50):
    for start in range(0, len(people.features), block):
        rows = slice(start, start + block)
        decisions = told.decide(people.features[rows], people.group[rows])
        chosen = np.flatnonzero(decisions.accept)
        told.observe(decisions.first_round + chosen, people.label[rows][chosen])
    return told


@pytest.mark.parametrize("hypotheses", [eh.ScoreThresholds(), eh.Linear()], ids=["cuts", "linear"])
def test_they_are_the_first_members_and_have_certificates(hypotheses):
    told = played(learner([TODAY], hypotheses))
    assert told.state.process.members[0] == TODAY
    certificate = told.certify(Mixture((TODAY, ACCEPT_ALL), (0.05, 0.95)))
    assert certificate.gaps
    assert told.state.ledger.spent <= 0.05


def test_each_counts_once_and_constants_are_members_anyway():
    rules = as_candidates([TODAY, TODAY.to_json(), ACCEPT_ALL])
    assert rules == (TODAY,)


def test_a_scorecard_and_a_fitted_pipeline_are_rules():
    scorecard = LinearRule((1.0,), 0.5)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(PEOPLE.features[:500], PEOPLE.label[:500])
    told = played(learner([scorecard, model]))
    first, second = told.state.process.members[:2]
    assert first == scorecard
    expected = model.predict(PEOPLE.features) == 1
    assert (second.accepts(PEOPLE.features) == expected).all()


def test_a_pipeline_that_was_fitted_to_a_frame_reads_frames():
    frame = pd.DataFrame({"income": PEOPLE.features[:, 0], "debt": PEOPLE.features[:, 0] ** 2})
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, PEOPLE.label)
    told = learner([model], eh.Stumps())
    for start in range(0, 1000, 50):
        rows = slice(start, start + 50)
        decisions = told.decide(frame.iloc[rows], PEOPLE.group[rows])
        told.observe(
            decisions.round[decisions.accept], PEOPLE.label[rows][np.asarray(decisions.accept)]
        )
    rule = told.state.process.members[0]
    rows = frame[list(told.schema.slots)].to_numpy()
    assert (rule.accepts(rows) == (model.predict(frame) == 1)).all()
    other = frame.rename(columns={"debt": "loan"})
    fresh = learner([model], eh.Stumps())
    with pytest.raises(InvalidInput, match=r"candidates\[0\]"):
        fresh.decide(other.iloc[:5], PEOPLE.group[:5])
    assert fresh.round == 0
    assert fresh.schema is None


def test_they_are_stored(tmp_path):
    told = played(learner([TODAY]))
    told.save(tmp_path / "x")
    again = eh.load(tmp_path / "x", same_coins=True)
    assert again.certificate == told.certificate
    assert again.params["candidates"] == ["accept if x0 >= 0.6"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("rule", "candidates is 'rule'"),
        (TODAY, "candidates is"),
        ([3], r"candidates\[0\] is 3"),
        ([TODAY, {"kind": "x"}], r"candidates\[1\] .*JSON"),
        ([LogisticRegression()], r"candidates\[0\] .*fitted"),
        ([eh.ScoreThresholds()], r"candidates\[0\]"),
    ],
)
def test_what_is_no_rule_is_refused(given, said):
    with pytest.raises(InvalidInput, match=said) as refused:
        learner(given)
    assert refused.value.argument == "candidates"
    assert refused.value.hint


def test_a_model_that_never_predicts_one_is_refused():
    model = LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    with pytest.raises(InvalidInput):
        learner([model])


@pytest.mark.parametrize(
    "rule", [Threshold(column=2, value=1.0, columns=3), LinearRule((1.0, 2.0), 0.0)]
)
def test_a_rule_that_reads_other_columns_is_refused_before_anybody_is_decided(rule):
    told = learner([TODAY, rule])
    with pytest.raises(InvalidInput, match=r"candidates\[1\].*1 columns"):
        told.decide(PEOPLE.features[:5], PEOPLE.group[:5])
    assert told.round == 0
    assert told.columns is None
