from itertools import combinations

import numpy as np
import pytest
from tests.requirements.parts import RATE_REQUIREMENTS, check_rate

import evenhand as eh
from evenhand.errors import CannotEstimateRate, InvalidInput
from evenhand.evaluation import Candidate, DecisionLog, evaluate, measure, measure_policy
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, GapConstraints, SelectionRate
from evenhand.fairness.rates import Rate, require_certifiable
from evenhand.hypotheses import ACCEPT_ALL, GroupClassifier
from evenhand.policies import Mixture
from evenhand.words import LabelledSample

RATES = [FalsePositiveRate(), FalseNegativeRate(), SelectionRate()]


def by_counting(symbol, sample, accepted, group):
    """The rate as a person would count it."""
    hits = people = 0.0
    for a, y, yes, n in zip(sample.group, sample.label, accepted, sample.weight, strict=True):
        if a == group and {"FPR": y == -1, "FNR": y == 1, "SR": True}[symbol]:
            people += n
            hits += n * (1 - yes if symbol == "FNR" else yes)
    return hits / people


def draw_sample(seed, groups):
    draw = np.random.default_rng(seed)
    group = np.concatenate([groups, groups, draw.choice(groups, 60)])
    label = np.concatenate([np.ones(len(groups)), -np.ones(len(groups)), draw.choice([-1, 1], 60)])
    return LabelledSample(
        draw.normal(size=(len(group), 1)), group, label, draw.integers(1, 4, len(group))
    )


@pytest.mark.parametrize("rate", RATES, ids=lambda r: r.symbol)
@pytest.mark.parametrize("groups", [["a", "b"], [-1, 1], ["a", "b", "c", "d", "e"]], ids=str)
def test_rates_and_gaps_equal_counting(rate, groups):
    for seed in range(5):
        sample = draw_sample(seed, groups)
        acceptance = np.random.default_rng(seed).random(len(sample))
        constraints = GapConstraints.on(rate, sample)
        expected = [by_counting(rate.symbol, sample, acceptance, g) for g in sample.groups]
        assert list(constraints.group_rates(acceptance)[rate.symbol].values()) == pytest.approx(
            expected
        )
        gaps = [expected[k] - expected[j] for j, k in combinations(range(len(expected)), 2)]
        assert constraints.gaps(acceptance).tolist() == pytest.approx(gaps)
        assert len(constraints.names) == len(gaps)


@pytest.mark.parametrize("rate", RATES, ids=lambda r: r.symbol)
@pytest.mark.parametrize("law", RATE_REQUIREMENTS, ids=lambda f: f.__name__)
def test_laws_of_rates(rate, law):
    for seed in range(3):
        law(rate, draw_sample(seed, ["a", "b"]))
    check_rate(rate)


def test_equalised_odds_is_two_lists_of_gaps():
    sample = draw_sample(0, ["a", "b", "c"])
    acceptance = np.random.default_rng(0).random(len(sample))
    both = GapConstraints.on([FalsePositiveRate(), FalseNegativeRate()], sample).gaps(acceptance)
    single = [
        GapConstraints.on(rate, sample).gaps(acceptance)
        for rate in (FalsePositiveRate(), FalseNegativeRate())
    ]
    assert both.tolist() == pytest.approx(np.concatenate(single).tolist())


def test_example_2_1_of_the_paper():
    """Group and quality are independent and uniform. "Accept iff female" has FPR 1 and 0, FNR 0 and
    1; mixed evenly with its contrary it is a coin, which equals both rates.
    """
    sample = LabelledSample(np.zeros((4, 1)), ["F", "F", "M", "M"], [1, -1, 1, -1])
    both = GapConstraints.on([FalsePositiveRate(), FalseNegativeRate()], sample)
    female = Mixture((GroupClassifier("F"),), (1.0,), "decide")
    accepts = female.acceptance(sample.features, sample.group)
    assert both.group_rates(accepts) == {"FPR": {"F": 1.0, "M": 0.0}, "FNR": {"F": 0.0, "M": 1.0}}
    assert np.abs(both.gaps(accepts)).tolist() == [1.0, 1.0]
    coin = Mixture((GroupClassifier("F"), GroupClassifier("M")), (0.5, 0.5), "decide")
    tossed = coin.acceptance(sample.features, sample.group)
    assert tossed.tolist() == [0.5] * 4
    assert both.gaps(tossed).tolist() == [0.0, 0.0]


def test_a_count_of_two_is_the_row_twice():
    once = LabelledSample(np.zeros((4, 1)), ["a", "a", "b", "b"], [-1, -1, -1, 1], [2, 1, 1, 1])
    twice = LabelledSample(np.zeros((5, 1)), ["a", "a", "a", "b", "b"], [-1, -1, -1, -1, 1])
    gap = GapConstraints.on(FalsePositiveRate(), once).gaps(np.array([1.0, 0, 1, 0]))
    assert gap == pytest.approx(
        GapConstraints.on(FalsePositiveRate(), twice).gaps(np.array([1.0, 1, 0, 1, 0]))
    )


@pytest.mark.parametrize(("rate", "label"), [(FalsePositiveRate(), 1), (FalseNegativeRate(), -1)])
def test_an_empty_denominator_says_which_group_and_how_many(rate, label):
    sample = LabelledSample(
        np.zeros((5, 1)), ["a", "a", "b", "b", "b"], [1, -1, label, label, label]
    )
    with pytest.raises(CannotEstimateRate, match=r"'b' has 3 people"):
        GapConstraints.on(rate, sample)


def test_one_group_only():
    sample = LabelledSample(np.zeros((2, 1)), ["a", "a"], [1, -1])
    for rate in RATES:
        with pytest.raises(CannotEstimateRate, match="'a'"):
            GapConstraints.on(rate, sample)


def test_no_rates():
    with pytest.raises(InvalidInput, match="rate"):
        GapConstraints.on([], draw_sample(0, ["a", "b"]))


class ErrorRate(SelectionRate):
    """What a researcher writes first: to accept a bad outcome is an error, to accept a good one
    avoids one.
    """

    name = "error rate"
    symbol = "ERR"

    def group_weights(self, sample):
        return -sample.label * super().group_weights(sample)


class Halved(FalsePositiveRate):
    name = "half of the false positive rate"
    offset = 0.5


class Unturned(FalseNegativeRate):
    name = "false negative rate without its offset"
    offset = 0.0


class Weighing(FalsePositiveRate):
    name = "weighed rate"

    @classmethod
    def in_denominator(cls, label):
        return np.where(label == -1, 1.0, 0.5)


class Nobody(FalsePositiveRate):
    name = "rate of nobody"
    labels = (0,)


class FirstPeople(FalsePositiveRate):
    name = "rate of the first two"

    @classmethod
    def in_denominator(cls, label):
        return np.arange(len(label)) < 2


class Shown(Rate):
    """P(rejected | group, y = -1), as the documents ask for it."""

    name, symbol, denominator_name = "true negative rate", "TNR", "negatives (label -1)"
    sign, offset = -1, 1.0

    @staticmethod
    def in_denominator(label):
        return label == -1


NOT_CERTIFIABLE = [ErrorRate(), Halved(), Unturned(), Weighing(), Nobody(), FirstPeople()]

UNEVEN = LabelledSample(
    np.tile(np.arange(50.0), 2)[:, None],
    np.repeat(["a", "b"], 50),
    np.where(np.tile(np.arange(50), 2) < np.repeat([25, 32], 50), -1, 1),
)
"""25 and 32 of 50 have bad outcomes: accepting everybody has a gap of .28 in ErrorRate."""


@pytest.mark.parametrize("rate", NOT_CERTIFIABLE, ids=lambda rate: rate.name)
def test_a_rate_of_another_form_is_not_certifiable(rate):
    with pytest.raises(InvalidInput, match=rate.name) as caught:
        require_certifiable([FalsePositiveRate(), rate])
    assert "solve_fair" in str(caught.value)


@pytest.mark.parametrize("rate", [*RATES, Shown()], ids=lambda rate: rate.name)
def test_a_rate_of_the_form_is_certifiable_whoever_wrote_it(rate):
    require_certifiable([rate])


def test_weights_given_to_one_object_are_seen_too():
    rate = Shown()
    rate.group_weights = ErrorRate().group_weights
    with pytest.raises(InvalidInput, match="group_weights"):
        require_certifiable([rate])


def test_solve_fair_limits_a_gap_that_the_constants_have():
    """Accepting everybody has a gap of .28, and a false accept costs next to nothing: the solver
    took accept-all for even and answered a mixture with a gap of .28 at a limit of .05.
    """
    constraints = GapConstraints.on(ErrorRate(), UNEVEN)
    assert constraints.gaps(np.ones(100))[0] == pytest.approx(0.28)
    problem = eh.Prices(0.01, 1.0).problem(UNEVEN.features, UNEVEN.group, UNEVEN.label)
    for hypotheses in (eh.Stumps(), eh.Linear()):
        found = eh.solve_fair(problem, hypotheses, ErrorRate(), UNEVEN, 0.05)
        true = constraints.gaps(found.policy.acceptance(UNEVEN.features))
        assert true == pytest.approx(found.gaps, abs=1e-9)
        assert abs(true[0]) <= 0.05 + 1e-9
    world = eh.environments.Discrete(
        np.full(4, 0.25), [0.5, 0.5, 0.2, 0.5], ["a", "a", "b", "b"], [[1, 0, 1, 0], [0, 1, 0, 1]]
    )
    _, best = world.optimum(0.05, ErrorRate(), eh.Prices(0.01, 1.0))
    assert abs(world.gap(best, ErrorRate())) <= 0.05 + 1e-9


def test_constants_of_the_usual_rates_have_no_gap_but_for_rounding():
    draw = np.random.default_rng(0)
    sample = LabelledSample(
        draw.normal(size=(997, 1)), draw.choice(["a", "b", "c"], 997), draw.choice([-1, 1], 997)
    )
    problem = eh.Prices(0.0, 1.0).problem(sample.features, sample.group, sample.label)
    found = eh.solve_fair(problem, eh.Stumps(), RATES, sample, 0.0)
    assert found.cost == 0.0
    assert found.gaps.tolist() == [0.0] * 9


@pytest.mark.parametrize(
    "certify",
    [
        lambda rate: measure_policy(
            eh.policies.Mixture((ACCEPT_ALL,), (1.0,)), UNEVEN, rates=[rate]
        ),
        lambda rate: measure(
            np.ones(100, bool), UNEVEN.group, UNEVEN.label.astype(float), rates=[rate]
        ),
        lambda rate: evaluate(
            DecisionLog.of(
                UNEVEN.features, [True, False] * 50, [0.5] * 100, [1, 0] * 50, group=UNEVEN.group
            ),
            Candidate.read("accept-all"),
            rates=[rate],
        ),
        lambda rate: eh.planning.plan_from_sample(
            UNEVEN, eh.Stumps(), limit=0.05, horizon=1_000, rate=rate, runs=1
        ),
    ],
    ids=["measure_policy", "measure", "evaluate", "plan_from_sample"],
)
def test_what_rests_on_the_form_raises_an_error_without_it(certify):
    with pytest.raises(InvalidInput, match="error rate"):
        certify(ErrorRate())
