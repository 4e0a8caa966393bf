import numpy as np
import pytest
from tests.learners.play import FPR, WORLD, two_phase

from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.fairness import FalseNegativeRate
from evenhand.fairness.bounds.slack import ClopperPearson, Dkw, JointHoeffding
from evenhand.hypotheses import Estimator, FiniteClass, Linear, ScoreThresholds, Stumps
from evenhand.learners.exploration import Explorer, as_bound, denominators, sample_of
from evenhand.words import LabelledSample


def explorer(**changed):
    settings = dict(
        bound=JointHoeffding(),
        hypotheses=WORLD.hypotheses,
        rates=(FPR,),
        promised=0.3,
        comparator=0.1,
        failure_probability=0.05,
        reading="evenhand",
    )
    return Explorer(**{**settings, **changed})


def sample(*counts):
    """counts: (group, label, people)."""
    group, label, people = zip(*counts, strict=True)
    return LabelledSample(np.zeros((len(counts), 1)), np.array(group), np.array(label), np.array(people, float))


BALANCED = sample(("a", -1, 200), ("a", 1, 50), ("b", -1, 100), ("b", 1, 70))


def test_the_sample_of_a_log_counts_every_label_once():
    log = RoundLog(
        np.array([[0.0], [1.0]]), np.array(["a", "b"]), np.ones(2), np.zeros(2), np.array([2.0, 0]), np.array([1.0, 4])
    )
    found = sample_of(log)
    rows = sorted(zip(found.features[:, 0], found.group, found.label, found.weight, strict=True))
    assert rows == [(0.0, "a", -1, 1.0), (0.0, "a", 1, 2.0), (1.0, "b", -1, 4.0)]


def test_denominators_are_people_per_rate_and_group():
    assert denominators(BALANCED, (FPR, FalseNegativeRate())).tolist() == [[200, 100], [50, 70]]


def test_the_limit_is_the_promise_minus_beta():
    found = explorer().slack(BALANCED)
    beta = np.sqrt((1 / 200 + 1 / 100) * np.log(2 * 8 / 0.05) / 2)
    assert found.beta == pytest.approx(beta, rel=1e-12)
    assert found.limit == 0.3 - found.beta
    assert found.promise == 0.3


def test_without_a_promise_it_follows_from_beta():
    found = explorer(promised=None).slack(BALANCED)
    assert found.promise == 0.1 + 2 * found.beta
    assert found.limit == pytest.approx(0.1 + found.beta)


def test_the_paper_s_reading_is_offered_and_different():
    found = explorer(reading="paper").slack(BALANCED)
    assert found.limit == found.promise == 0.1 + found.beta


@pytest.mark.parametrize(
    ("people", "told"),
    [
        (None, ["nobody has been seen", "two groups"]),
        (sample(("a", -1, 5)), ["only group 'a'", "two groups"]),
        (sample(("a", -1, 5), ("b", 1, 7)), ["group 'b' has 7 people but 0 negatives", "at least one is needed"]),
        (sample(("a", -1, 500), ("b", -1, 5)), ["group 'a' has 500 negatives", "more people"]),
    ],
)
def test_what_is_missing_is_said_with_numbers(people, told):
    text = explorer().shortfall(people)
    assert all(part in text for part in told), text


def test_the_forecast_of_people_is_enough_and_no_more_than_needed():
    rule = explorer()
    text = rule.shortfall(BALANCED)
    more = int(text.split("about ")[-1].split()[0])
    total = BALANCED.weight.sum()
    assert rule.suffices(sample(*grown(1 + (more + 2) / total)), on_counts=True)
    assert not rule.suffices(sample(*grown(1 + (more - 6) / total)), on_counts=True)
    assert explorer().shortfall(sample(*grown(50.0))) is None


def grown(factor):
    return [(g, y, np.ceil(n * factor)) for g, y, n in (("a", -1, 200), ("a", 1, 50), ("b", -1, 100), ("b", 1, 70))]


def test_the_exploration_ends_on_counts_and_never_on_features():
    shuffled = LabelledSample(np.arange(4.0)[:, None], BALANCED.group, BALANCED.label, BALANCED.count)
    assert explorer().beta(shuffled) == explorer().beta(BALANCED)


def test_a_promise_below_the_slack_keeps_exploring_even_if_the_length_is_given():
    """With beta above the promise a policy without any empirical gap may break it."""
    rule = explorer(promised=0.15)
    assert rule.beta(BALANCED) > 0.15
    assert not rule.suffices(BALANCED, on_counts=False)
    assert "more" in rule.shortfall(BALANCED, on_counts=False)
    assert explorer(promised=0.3).suffices(BALANCED, on_counts=False)
    assert explorer(promised=None).suffices(BALANCED, on_counts=False)
    assert explorer(promised=1.0).suffices(sample(("a", -1, 1), ("b", -1, 1)), on_counts=False)


def test_bounds_by_name_and_by_default():
    assert isinstance(as_bound(None, WORLD.hypotheses), JointHoeffding)
    assert isinstance(as_bound(None, ScoreThresholds()), Dkw)
    assert isinstance(as_bound(None, Stumps()), Dkw)
    assert isinstance(as_bound("clopper-pearson", WORLD.hypotheses), ClopperPearson)
    own = JointHoeffding()
    assert as_bound(own, WORLD.hypotheses) is own
    with pytest.raises(InvalidInput, match="bound is 'bootstrap'"):
        as_bound("bootstrap", WORLD.hypotheses)


def test_dkw_is_refused_for_rules_that_are_no_thresholds():
    from sklearn.tree import DecisionTreeClassifier

    for hypotheses in (Linear(), Estimator(DecisionTreeClassifier())):
        for bound in (None, "dkw", Dkw()):
            with pytest.raises(InvalidInput, match="covers thresholds on one column"):
                as_bound(bound, hypotheses)
    with pytest.raises(InvalidInput, match="DKW"):
        two_phase(hypotheses=FiniteClass.from_table(np.eye(6, dtype=bool)), bound="dkw")
