import inspect

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import InvalidInput
from evenhand.faircsc import frontier
from evenhand.hypotheses import CLASSES, Estimator, Linear, ScoreThresholds, Stumps, as_class
from evenhand.planning import plan_from_sample


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("stumps", Stumps),
        ("thresholds", ScoreThresholds),
        ("linear", Linear),
        ("tree", Estimator),
        ("logistic", Estimator),
    ],
)
def test_a_name_makes_its_class(name, kind):
    assert isinstance(CLASSES[name](), kind)


def test_an_unknown_class_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match=r"'forest'.*stumps"):
        CLASSES["forest"]


def entries() -> dict[str, object]:
    """Every function and class in which people name a rate, with a class of rules given."""
    drawn = eh.environments.Scores().draw(400, np.random.default_rng(0))
    # few cuts, so that a plan is quick
    people = eh.LabelledSample(np.round(drawn.features), drawn.group, drawn.label)
    problem = eh.Prices().problem(people.features, people.group, people.label)
    accepted = people.features[:, 0] >= 0
    return {
        "CertifiedLearner": lambda rules: eh.CertifiedLearner(rules, "fpr", 0.2, 0.05).hypotheses,
        "TwoPhaseLearner": lambda rules: eh.TwoPhaseLearner(rules, "fpr", 0.4, 0.1, 99).hypotheses,
        "solve_fair": lambda rules: eh.solve_fair(problem, rules, "fpr", people, 0.1),
        "frontier": lambda rules: frontier(problem, rules, "fpr", people, [0.1]),
        "certify": lambda rules: eh.certify(rules, people, 0.3),
        "alternatives": lambda rules: eh.alternatives(rules, people, accepted),
        "FairClassifier": lambda rules: (
            eh.FairClassifier(rules)
            .fit(people.features, people.label, sensitive_features=people.group)
            .predict_proba(people.features)
        ),
        "plan_from_sample": lambda rules: plan_from_sample(
            people, rules, limit=0.2, rate="fpr", horizon=200, runs=1
        ),
        "Replay": lambda rules: eh.environments.Replay(people, hypotheses=rules).optimum(0.1)[0],
    }


QUICK = ["CertifiedLearner", "TwoPhaseLearner", "solve_fair", "frontier", "Replay"]
LONGER = ["certify", "alternatives", "FairClassifier", "plan_from_sample"]


@pytest.mark.parametrize(
    "entry", [*QUICK, *(pytest.param(name, marks=pytest.mark.thorough) for name in LONGER)]
)
def test_rules_are_named_wherever_rates_are(entry):
    call = entries()[entry]
    assert repr(call("stumps")) == repr(call(Stumps()))
    with pytest.raises(InvalidInput, match=r"'forest'.*known are stumps, thresholds") as raised:
        call("forest")
    assert raised.value.argument == "hypotheses"


def test_every_entry_of_the_face_that_takes_rules_is_tried():
    """A parameter called hypotheses, model or estimator: rules, or what makes them."""
    rules = {"hypotheses", "model", "estimator"}
    callables = [name for name in eh.__all__ if callable(getattr(eh, name))]
    parameters = {name: inspect.signature(getattr(eh, name)).parameters for name in callables}
    taking = {name for name, ones in parameters.items() if rules & set(ones)}
    not_rules = {"FiniteClass", "load"}  # a list of rules; the class of a file, which has its name
    assert taking - not_rules <= {*QUICK, *LONGER}


def test_a_class_itself_and_a_list_are_answered_with_the_way_out():
    with pytest.raises(InvalidInput, match=r"pass an instance, Stumps"):
        as_class(Stumps)
    with pytest.raises(InvalidInput, match=r"FiniteClass\(\[rule"):
        as_class(["stumps"])
