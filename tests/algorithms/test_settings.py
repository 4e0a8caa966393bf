"""The settings of algorithms are frozen records; a setting that makes no sense is an error when the
record is made, with the name of the setting and its value as it was given.
"""

from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.play import FPR, WORLD

import evenhand as eh
from evenhand.algorithms.baselines import Greedy, unconstrained
from evenhand.algorithms.certified.step import Certified
from evenhand.algorithms.exponential_weights import exp4
from evenhand.algorithms.settings import as_groups, require_whole
from evenhand.algorithms.two_phase import TwoPhase
from evenhand.errors import EvenhandError, InvalidInput
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.hypotheses import ACCEPT_ALL, ScoreThresholds, Stumps, Threshold
from evenhand.learners import AcceptAll, Uniform
from evenhand.words import Prices

NAN, INF = float("nan"), float("inf")
NO_NUMBERS = ["0.1", NAN, INF, -INF, True, [0.1], 1j]


def certified(**settings):
    given = dict(hypotheses=WORLD.hypotheses, rate=FPR, limit=0.2, delta=0.05)
    return Certified(**{**given, **settings})


def two_phase(**settings):
    given = dict(hypotheses=WORLD.hypotheses, rate=FPR, limit=0.4, delta=0.1, horizon=3000)
    return TwoPhase(**{**given, **settings})


def greedy(**settings):
    given = dict(
        hypotheses=WORLD.hypotheses,
        rate=FPR,
        limit=0.4,
        first_rounds=100,
        prices=Prices(),
        group_use="certify_only",
        plan=unconstrained,
        needs_group="never",
    )
    return Greedy(**{**given, **settings})


def saddle(**settings):
    return two_phase(**{"method": "saddle-point", **settings})


GAPS = [*NO_NUMBERS, 0, -0.1, 1.5]
CLASSES = [LogisticRegression, [Threshold(0, 0.5, 1)], ACCEPT_ALL, Stumps, None, "stump", 3]
RATES = [[], [FPR, FPR], FalsePositiveRate, None, 1, [FPR, None], {FPR}, iter([FPR])]
PRICES = [3, "dear", (1.0, 2.0), {"false_accept": 1.0}]
USES = ["yes", None, True, "certify"]
HORIZONS = [*NO_NUMBERS, 2.5, -3, 0]
GROUPS = [
    *("ab", b"ab", {"a", "b"}, {"a": 1, "b": 2}, 3, ["a"], [], ["a", "a"], [1, True]),
    *(["a", None], ["a", "b", NAN], np.array(["a", None]), [pd.NA, "a", "b"]),
]
WRONG = [
    *((make, "limit", GAPS) for make in (certified, two_phase, greedy)),
    *((make, "hypotheses", CLASSES) for make in (certified, two_phase, greedy)),
    *((make, "rate", RATES) for make in (certified, two_phase, greedy)),
    *((make, "prices", PRICES) for make in (certified, two_phase, greedy)),
    *((make, "group_use", USES) for make in (certified, two_phase, greedy)),
    *((make, "delta", [*NO_NUMBERS, None, 0, 1, 1.5]) for make in (certified, two_phase)),
    (certified, "limit", [None]),
    (certified, "horizon", HORIZONS),
    (two_phase, "horizon", [*HORIZONS, None, 1]),
    (two_phase, "exploration_rounds", [*NO_NUMBERS, 0, 2.5]),
    (two_phase, "comparator_gap", [*NO_NUMBERS, -0.1, 2]),
    (two_phase, "tradeoff_exponent", [*NO_NUMBERS, 0.2, 0.51]),
    (two_phase, "estimator", ["three-sided", None]),
    (two_phase, "slack_rule", ["paper", None]),
    (two_phase, "method", ["simplex", None, 1]),
    (two_phase, "epochs", ["never", None, 64]),
    (saddle, "oracle_tolerance", [*NO_NUMBERS, 0, -0.1, 0.2]),
    (two_phase, "oracle_tolerance", [0.01]),
    (two_phase, "bound", ["bootstrap", "as printed"]),
    (greedy, "first_rounds", [*NO_NUMBERS, 0, 2.5, None]),
    (certified, "audit_rate", [*NO_NUMBERS, None, 0, 1.5, "often"]),
    (certified, "audit_budget", [*NO_NUMBERS, -1, 0, 0.9]),
    (certified, "accept_at_most", [*NO_NUMBERS, 0, -0.1, 1.01]),
    (certified, "accept_at_least", [*NO_NUMBERS, -0.1, 1.01]),
    (certified, "quota", [*NO_NUMBERS, 0, 50, {"count": 5}]),
    (certified, "candidates", ["rule", 3, [3], [None], {"kind": "constant"}]),
    (certified, "maturity", [*NO_NUMBERS, 0, -1.0]),
    (certified, "drift_false_alarm", [*NO_NUMBERS, None, 0, 1, 2, -1e-3]),
    (certified, "fallback", ["wait", None, True, 0]),
    (certified, "groups", GROUPS),
]


@pytest.mark.parametrize(
    ("make", "name", "values"), WRONG, ids=[f"{make.__name__}-{name}" for make, name, _ in WRONG]
)
def test_a_setting_that_makes_no_sense_is_an_error_that_names_it(make, name, values):
    for value in values:
        with pytest.raises(InvalidInput) as caught:
            make(**{name: value})
        assert caught.value.argument == name, value


@pytest.mark.parametrize("value", [0.1, "0.1", NAN, -3])
def test_the_value_is_shown_as_it_was_given(value):
    with pytest.raises(InvalidInput) as caught:
        require_whole("rounds", value, 1, "rounds are whole")
    assert repr(value) in caught.value.message
    assert caught.value.requirement == "rounds are whole"


def test_a_class_that_looks_at_the_group_names_the_use_of_the_group():
    with pytest.raises(InvalidInput) as caught:
        certified(hypotheses=ScoreThresholds(per_group=True))
    assert caught.value.argument == "group_use"


@pytest.mark.parametrize("make", [AcceptAll, Uniform])
@pytest.mark.parametrize("seed", [1.5, 1.0, True, -1, "1", NAN, [1], np.float64(2)])
def test_a_seed_is_a_whole_number(make, seed):
    with pytest.raises(InvalidInput) as caught:
        make(seed=seed)
    assert caught.value.argument == "seed"


@pytest.mark.parametrize("seed", [0, 7, 2**70, np.int64(3)])
def test_seeds_that_are_seeds(seed):
    assert Uniform(seed=seed).seed == seed


@pytest.mark.parametrize("grid", [0, 2.5, "3", True])
def test_the_net_of_exp4_has_weights(grid):
    with pytest.raises(InvalidInput) as caught:
        exp4(grid, 0.25)
    assert caught.value.argument == "grid"


@pytest.mark.parametrize("growth", [-0.1, 1.5, "often", None, True])
def test_epochs_of_exp4_are_a_share_of_the_rounds_before(growth):
    with pytest.raises(InvalidInput) as caught:
        exp4(8, growth)
    assert caught.value.argument == "growth"


@pytest.mark.parametrize("make", [certified, two_phase, greedy])
def test_settings_are_frozen(make):
    with pytest.raises(FrozenInstanceError):
        make().limit = 0.9


@pytest.mark.parametrize("make", [certified, two_phase, greedy])
def test_rates_by_name_and_several_of_them(make):
    with pytest.raises(InvalidInput):
        make(rate="npv")
    assert make(rate="fnr").rates == (FalseNegativeRate(),)
    assert make(rate=["fpr", SelectionRate()]).rates == (FPR, SelectionRate())
    assert make(rate="equalised-odds").rates == (FPR, FalseNegativeRate())


@pytest.mark.parametrize(
    "groups", [["a", "b"], ("a", "b"), np.array(["a", "b"]), pd.Series(["a", "b"])], ids=str
)
def test_groups_are_taken_in_their_order(groups):
    assert as_groups(groups) == ("a", "b")
    assert certified(groups=groups[::-1]).guarantee(0).groups == ("b", "a")
    assert as_groups(None) is None


def test_settings_that_make_sense_are_taken():
    certified(
        rate=[FPR, FalseNegativeRate()],
        limit=1,
        audit_rate=1,
        audit_budget=1,
        accept_at_most=1,
        accept_at_least=0,
        candidates=[Threshold(0, 0.5, 1)],
        maturity=np.float32(0.5),
        horizon=np.int64(10**6),
        drift_false_alarm=0.5,
        groups=["a", "b", "c"],
        prices=Prices(1, 2),
    )
    assert certified(horizon=10**400).horizon == 10**400
    assert two_phase(horizon=1e5, exploration_rounds=1e3).exploration_rule.rounds == 1000


@pytest.mark.thorough
def test_a_model_becomes_a_class_from_which_rules_are_nominated():
    assert certified(hypotheses=DecisionTreeClassifier(max_depth=2)).nominates
    listed = eh.FiniteClass([ACCEPT_ALL, Threshold(0, 0.5, 1)])
    assert not certified(hypotheses=listed).nominates


def test_nothing_raw_ever_leaves_a_constructor():
    """Whatever is given for whatever setting: a learner, or an error of evenhand's own."""
    strange = [*NO_NUMBERS, None, object(), b"x", {}, set(), np.zeros(3), np.array(["x"])]
    strange += [lambda: 0, -1, 0, 1e400, 10**400, pd.NA]
    common = (WORLD.hypotheses, FPR, 0.4, 0.1)
    learners = {
        Uniform: ((), ("rate", "prices", "seed")),
        eh.learners.Unconstrained: (common[:2], ("limit", "group_use", "first_rounds", "prices")),
        eh.TwoPhaseLearner: (
            (*common, 3000),
            (
                *("comparator_gap", "exploration_rounds", "tradeoff_exponent", "bound", "schedule"),
                *("method", "oracle_tolerance", "epochs"),
            ),
        ),
        eh.CertifiedLearner: (
            common,
            (
                *("audit_rate", "audit_budget", "maturity", "fallback", "groups", "seed"),
                *("accept_at_most", "accept_at_least", "quota", "candidates"),
            ),
        ),
    }
    for make, (given, names) in learners.items():
        for name in names:
            for value in strange:
                try:
                    make(*given, **{name: value})
                except EvenhandError:
                    continue
