"""Settings that make no sense are refused when a learner is made: by name, value, law and, where
there is one, the way out.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.learners.play import FPR, WORLD, two_phase

import evenhand as eh
from evenhand.errors import EvenhandError, InvalidInput
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.hypotheses import ACCEPT_ALL, Stumps, Threshold
from evenhand.learners import (
    AcceptAll,
    CertifiedLearner,
    Exp4,
    ExploreThenCommit,
    FairOnGathered,
    Unconstrained,
    Uniform,
)
from evenhand.learners.rivals import ExploreExploit, SemiLogistic
from evenhand.words import Prices

NAN, INF = float("nan"), float("inf")
NO_NUMBERS = ["0.1", NAN, INF, -INF, True, None, [0.1], 1j]


def certified(**settings):
    given = dict(hypotheses=WORLD.hypotheses, rate=FPR, allowed_gap=0.2, failure_probability=0.05)
    return CertifiedLearner(**{**given, **settings})


def commit(**settings):
    given = dict(
        hypotheses=WORLD.hypotheses,
        rate=FPR,
        allowed_gap=0.4,
        failure_probability=0.1,
        horizon=3000,
    )
    return ExploreThenCommit(**{**given, "comparator_gap": 0.02, **settings})


def exp4(**settings):
    given = dict(
        hypotheses=WORLD.hypotheses,
        rate=FPR,
        allowed_gap=0.4,
        failure_probability=0.1,
        horizon=3000,
    )
    return Exp4(**{**given, "comparator_gap": 0.02, **settings})


def greedy(**settings):
    return Unconstrained(**{"hypotheses": WORLD.hypotheses, "rate": FPR, **settings})


def gathered(**settings):
    return FairOnGathered(**{"hypotheses": WORLD.hypotheses, "rate": FPR, **settings})


def rival(**settings):
    return ExploreExploit(**{"rate": FPR, **settings})


def other_rival(**settings):
    return SemiLogistic(**{"rate": FPR, **settings})


EVERYBODY = [
    certified,
    two_phase,
    commit,
    exp4,
    greedy,
    gathered,
    rival,
    other_rival,
    AcceptAll,
    Uniform,
]
PROMISING = [certified, two_phase, commit, exp4]
WITH_A_CLASS = [*PROMISING, greedy, gathered]


def refused(make, name, value, law):
    """Refused as a whole sentence: the setting, its value as it was given, and the law."""
    with pytest.raises(InvalidInput) as caught:
        make(**{name: value})
    text = str(caught.value)
    assert text.startswith(f"{name} is ")
    assert law in text
    return text


@pytest.mark.parametrize("make", EVERYBODY)
class TestEverybody:
    @pytest.mark.parametrize("seed", [1.5, 1.0, True, -1, "1", NAN, [1], np.float64(2)])
    def test_seed(self, make, seed):
        assert repr(seed) in refused(make, "seed", seed, "whole number of at least 0")

    @pytest.mark.parametrize("seed", [0, 7, 2**70, np.int64(3)])
    def test_seeds_that_are_seeds(self, make, seed):
        assert make(seed=seed).seed == seed

    @pytest.mark.parametrize("rate", [[], ()])
    def test_no_rate(self, make, rate):
        refused(make, "rate", rate, "at least one rate")

    @pytest.mark.parametrize("rate", [[FPR, FPR], [FPR, SelectionRate(), FalsePositiveRate()]])
    def test_a_rate_twice(self, make, rate):
        refused(make, "rate", rate, "a rate occurs twice")

    @pytest.mark.parametrize("rate", [FalsePositiveRate, None, 1, [FPR, None], {FPR}, iter([FPR])])
    def test_what_is_no_rate(self, make, rate):
        assert "evenhand.FalsePositiveRate()" in refused(
            make, "rate", rate, "it is a rate, the name of one, or a list of them"
        )

    def test_a_rate_by_its_name(self, make):
        assert make(rate="fnr").rates == (FalseNegativeRate(),)
        assert make(rate=["fpr", SelectionRate()]).rates == (FPR, SelectionRate())
        with pytest.raises(
            InvalidInput, match=r"there is no rate 'tpr'\. Hint: known are fpr, fnr, selection"
        ):
            make(rate="tpr")

    def test_prices(self, make):
        for price in (3, "dear", (1.0, 2.0), {"false_accept": 1.0}):
            assert "evenhand.Prices" in refused(make, "prices", price, "what errors cost")
        for nonsense in (NAN, INF, -1.0, "2", True):
            with pytest.raises(InvalidInput, match="prices are finite numbers of at least 0"):
                make(prices=Prices(nonsense))

    def test_several_rates_in_a_list_or_a_tuple(self, make):
        for rates in ([FPR, FalseNegativeRate()], (SelectionRate(),), FPR):
            assert len(make(rate=rates).rates) == np.size(rates)


@pytest.mark.parametrize("make", [*PROMISING, greedy, gathered])
class TestGapsAndClasses:
    @pytest.mark.parametrize(
        "gap", [value for value in NO_NUMBERS if value is not None] + [0, -0.1, 1.5]
    )
    def test_allowed_gap(self, make, gap):
        assert f"is {gap!r};" in refused(make, "allowed_gap", gap, "a number in (0, 1]")

    @pytest.mark.parametrize("group_use", ["yes", None, True, "certify"])
    def test_group_use(self, make, group_use):
        refused(make, "group_use", group_use, '"certify_only" or "decide"')

    @pytest.mark.parametrize(
        ("hypotheses", "way_out"),
        [
            (LogisticRegression, "pass an instance, LogisticRegression"),
            ([Threshold(0, 0.5, 1)], "evenhand.FiniteClass(["),
            ((ACCEPT_ALL,), "evenhand.FiniteClass(["),
            (ACCEPT_ALL, "evenhand.FiniteClass(["),
            (lambda features, group: features[:, 0] > 0, "evenhand.FiniteClass(["),
            (Stumps, "Stumps(...)"),
            (None, "Stumps"),
            ("stumps", "evenhand.FiniteClass"),
            (3, "Stumps"),
        ],
    )
    def test_what_is_no_class_of_hypotheses(self, make, hypotheses, way_out):
        text = refused(make, "hypotheses", hypotheses, "it is a hypothesis class")
        assert way_out in text[text.index("Hint:") :]


@pytest.mark.parametrize("make", PROMISING)
@pytest.mark.parametrize("delta", [*NO_NUMBERS, 0, 1, 1.5, -0.05])
def test_failure_probability(make, delta):
    refused(make, "failure_probability", delta, "strictly between 0 and 1")


@pytest.mark.parametrize("make", [two_phase, commit, exp4])
class TestHorizonsAndExplorations:
    @pytest.mark.parametrize("horizon", [*NO_NUMBERS, 1, 2.5, -3])
    def test_horizon(self, make, horizon):
        refused(make, "horizon", horizon, "whole number of rounds")

    @pytest.mark.parametrize("rounds", [*[v for v in NO_NUMBERS if v is not None], 0, 2.5])
    def test_exploration_rounds(self, make, rounds):
        refused(make, "exploration_rounds", rounds, "rounds are whole")

    @pytest.mark.parametrize("gap", [*[v for v in NO_NUMBERS if v is not None], -0.1, 2])
    def test_comparator_gap(self, make, gap):
        refused(make, "comparator_gap", gap, "a number in [0, 1]")

    @pytest.mark.parametrize("exponent", [v for v in NO_NUMBERS if v is not None])
    def test_tradeoff_exponent(self, make, exponent):
        refused(make, "tradeoff_exponent", exponent, "a number")

    def test_a_horizon_may_be_written_as_1e5(self, make):
        assert make(horizon=1e5).horizon == 100_000


@pytest.mark.parametrize(
    ("name", "values", "law"),
    [
        ("audit_rate", [*NO_NUMBERS, 0, 1.5, "often", -0.1], '"auto" or a probability in (0, 1]'),
        ("audit_budget", [*[v for v in NO_NUMBERS if v is not None], -1], "finite and at least 0"),
        (
            "maturity",
            [*[v for v in NO_NUMBERS if v is not None], 0, -1.0],
            "positive, finite span of time",
        ),
        ("horizon", [*[v for v in NO_NUMBERS if v is not None], 0, 2.5], "whole number of rounds"),
        ("drift_false_alarm", [*NO_NUMBERS, 0, 1, 2, -1e-3], "strictly between 0 and 1"),
        ("fallback", ["wait", None, True, 0], '"accept" or "reject"'),
        (
            "groups",
            ["ab", b"ab", {"a", "b"}, {"a": 1, "b": 2}, 3, ["a"], [], ["a", "a"], [1, True]],
            "at least two",
        ),
        (
            "groups",
            [["a", None], ["a", "b", NAN], np.array(["a", None]), [pd.NA, "a", "b"]],
            "unknown group is none",
        ),
    ],
)
def test_settings_of_the_certified_learner(name, values, law):
    for value in values:
        refused(certified, name, value, law)


@pytest.mark.parametrize(
    "groups", [["a", "b"], ("a", "b"), np.array(["a", "b"]), pd.Series(["a", "b"])], ids=str
)
def test_groups_are_taken_in_their_order(groups):
    assert certified(groups=groups).state.run.wanted == ("a", "b")
    assert certified(groups=groups[::-1]).state.run.wanted == ("b", "a")


def test_settings_that_make_sense_are_taken():
    certified(
        rate=[FPR, FalseNegativeRate()],
        allowed_gap=1,
        audit_rate=1,
        audit_budget=0,
        maturity=np.float32(0.5),
        horizon=np.int64(10**6),
        drift_false_alarm=0.5,
        groups=["a", "b", "c"],
        prices=Prices(1, 2),
        seed=np.uint32(4),
    )
    assert certified(horizon=10**400).horizon == 10**400


def test_nothing_raw_ever_leaves_a_constructor():
    """Whatever is given for whatever setting: a learner, or an error of evenhand's own with a
    sentence.
    """
    strange = [*NO_NUMBERS, object(), b"x", {}, set(), np.zeros(3), np.array(["x"]), lambda: 0]
    strange += [-1, 0, 1e400, 10**400, pd.NA]
    common = ("rate", "prices", "seed")
    classes = (*common, "hypotheses", "allowed_gap", "group_use")
    promising = (*classes, "failure_probability", "horizon")
    names = {
        AcceptAll: common,
        greedy: (*classes, "first_rounds"),
        two_phase: (*promising, "comparator_gap", "exploration_rounds", "tradeoff_exponent"),
        certified: (
            *promising,
            "bound",
            "audit_rate",
            "audit_budget",
            "maturity",
            "fallback",
            "groups",
            "drift_false_alarm",
        ),
    }
    for make, settings in names.items():
        for name in settings:
            for value in strange:
                try:
                    make(**{name: value})
                except EvenhandError as error:
                    told = (make, name, value, str(error))
                    assert name.split("_")[0].rstrip("s") in str(error), told  # noqa: PT017


def test_the_way_out_works():
    learner = certified(hypotheses=eh.Estimator(DecisionTreeClassifier(max_depth=2)))
    assert learner.bound == "nominate"
    assert (
        certified(hypotheses=eh.FiniteClass([ACCEPT_ALL, Threshold(0, 0.5, 1)])).bound == "betting"
    )
