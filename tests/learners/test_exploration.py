from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.learners.play import FPR, WORLD, two_phase

from evenhand.bounds import ClopperPearson, Dkw, JointHoeffding
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.fairness import FalseNegativeRate, SelectionRate
from evenhand.hypotheses import Estimator, FiniteClass, Linear, ScoreThresholds, Stumps
from evenhand.learners.exploration import (
    Arrivals,
    Explorer,
    Slack,
    as_bound,
    denominators,
    forgotten,
    next_size,
    sample_of,
)
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
    return LabelledSample(
        np.zeros((len(counts), 1)), np.array(group), np.array(label), np.array(people, float)
    )


def arrivals(*counts):
    """counts: (group, label, people); group None and label 0 where they are unknown."""
    group, label, people = zip(*counts, strict=True)
    return Arrivals(
        (np.zeros((len(counts), 1)),),
        np.array(group, object),
        np.array(label),
        np.array(people, float),
    )


BALANCED = sample(("a", -1, 200), ("a", 1, 50), ("b", -1, 100), ("b", 1, 70))


def test_the_sample_of_a_log_counts_every_label_once():
    log = RoundLog(
        np.array([[0.0], [1.0]]),
        np.array(["a", "b"]),
        np.ones(2),
        np.zeros(2),
        np.array([2.0, 0]),
        np.array([1.0, 4]),
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
        (arrivals(("a", -1, 5)), ["only group 'a'", "two groups"]),
        (
            arrivals(("a", -1, 5), ("b", 1, 7)),
            ["group 'b' has 7 people but 0 negatives", "at least one is needed"],
        ),
        (arrivals(("a", -1, 5), ("b", 0, 7)), ["group 'b' has 7 people but 0 negatives"]),
        (arrivals(("a", -1, 500), ("b", -1, 5)), ["group 'a' has 500 negatives", "more people"]),
    ],
)
def test_what_is_missing_is_said_with_numbers(people, told):
    text = explorer().shortfall(people)
    assert all(part in text for part in told), text


def test_the_forecast_of_people_is_enough_and_no_more_than_needed():
    rule = explorer()
    text = rule.shortfall(arrivals(*grown(1.0)))
    more = int(text.split("about ")[-1].split()[0])
    total = BALANCED.weight.sum()
    assert rule.verdict(arrivals(*grown(1 + (more + 2) / total)), on_counts=True) == "enough"
    assert rule.verdict(arrivals(*grown(1 + (more - 6) / total)), on_counts=True) == "too few"
    assert explorer().shortfall(arrivals(*grown(50.0))) is None


def grown(factor):
    return [
        (g, y, np.ceil(n * factor))
        for g, y, n in (("a", -1, 200), ("a", 1, 50), ("b", -1, 100), ("b", 1, 70))
    ]


def test_the_exploration_ends_on_counts_and_never_on_features():
    shuffled = LabelledSample(
        np.arange(4.0)[:, None], BALANCED.group, BALANCED.label, BALANCED.count
    )
    assert explorer().beta(shuffled) == explorer().beta(BALANCED)


def test_a_promise_below_the_slack_keeps_exploring_even_if_the_length_is_given():
    """With beta above the promise a policy without any empirical gap may break it."""
    rule = explorer(promised=0.15)
    assert rule.beta(BALANCED) > 0.15
    seen = arrivals(*grown(1.0))
    assert rule.verdict(seen, on_counts=False) == "too few"
    assert "more" in rule.shortfall(seen, on_counts=False)
    assert explorer(promised=0.3).verdict(seen, on_counts=False) == "enough"
    assert explorer(promised=None).verdict(seen, on_counts=False) == "enough"
    assert (
        explorer(promised=1.0).verdict(arrivals(("a", -1, 1), ("b", -1, 1)), on_counts=False)
        == "enough"
    )


def test_the_preset_sizes():
    sizes = [64]
    while sizes[-1] < 3000:
        sizes.append(next_size(sizes[-1]))
    assert sizes[:4] == [64, 128, 192, 256]
    assert sizes[-3:] == [2785, 2924, 3070]


def test_the_verdict_is_the_one_that_all_labels_would_give():
    """Every completion of the missing labels is tried, and for people without a group every group:
    200 random cases, no chance of error.
    """
    draw, seen = np.random.default_rng(0), set()
    for _ in range(200):
        rates = (FPR, FalseNegativeRate()) if draw.random() < 0.5 else (SelectionRate(),)
        rule = explorer(rates=rates, promised=float(draw.choice([0.85, 0.9, 0.95])))
        group = np.array(list("ab") * 8, object)
        label, count = draw.choice([-1, 1], 16), draw.integers(2, 12, 16).astype(float)
        lost = draw.choice(16, 4, replace=False)
        complete = Arrivals((np.zeros((16, 1)),), group, label, count)
        told, known = label.copy(), group.copy()
        told[lost], known[lost[0]] = 0, None
        verdict = rule.verdict(replace(complete, group=known, label=told), on_counts=False)
        for labels in product([-1, 1], repeat=4):
            for other in "ab":
                told[lost], known[lost[0]] = labels, other
                truth = rule.verdict(replace(complete, group=known, label=told), on_counts=False)
                assert verdict in (truth, "open")
        seen.add(verdict)
    assert seen == {"enough", "too few", "open"}


def test_k_lost_rows_move_no_gap_by_more_than_k_over_the_smallest_denominator():
    """300 random samples that lose the k rows whose loss is worst, and every one of 16 hypotheses:
    the law has no exception, and half of it would have some."""
    draw, closest = np.random.default_rng(1), 0.0
    for _ in range(300):
        n, k = int(draw.integers(8, 40)), int(draw.integers(1, 5))
        group, accepts = (
            np.where(np.arange(n) % 2 == 0, "a", "b"),
            draw.random((16, n)) < draw.random((16, 1)),
        )
        order = np.argsort(
            accepts[0] ^ (group == "a")
        )  # those whose loss moves the gap of the first hypothesis most
        kept = np.sort(order[k:])
        left = np.array([(group[kept] == g).sum() for g in "ab"])
        if left.min() == 0:
            continue
        moved = np.abs(gaps(accepts, group) - gaps(accepts[:, kept], group[kept]))
        assert moved.max() <= k / left.min() + 1e-12
        closest = max(closest, float(moved.max() * left.min() / k))
    assert closest > 0.5


def gaps(accepts, group):
    return accepts[:, group == "b"].mean(axis=1) - accepts[:, group == "a"].mean(axis=1)


def test_missing_rows_widen_the_slack_by_k_over_the_smallest_denominator():
    rule = explorer()
    whole, lossy = rule.slack(BALANCED), rule.slack(BALANCED, 3)
    assert lossy.beta == whole.beta + 3 / 100
    assert lossy.limit == pytest.approx(whole.limit - 3 / 100)
    assert (whole.missing, lossy.missing) == (0, 3)


def test_a_label_without_a_group_is_outside_of_the_sample():
    people = arrivals(("a", -1, 2), (None, -1, 5), ("b", 1, 3), ("b", -1, 1), ("b", 0, 4))
    assert people.missing == 4
    found = people.sample()
    assert sorted(zip(found.group, found.label, found.weight, strict=True)) == [
        ("a", -1, 2),
        ("b", -1, 1),
        ("b", 1, 3),
    ]
    fewest, most = people.denominators((FPR,))
    assert (fewest.tolist(), most.tolist()) == ([[2, 1]], [[2, 5]])


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


def test_a_person_is_forgotten_once_and_their_row_is_wiped():
    people = LabelledSample([[3.0], [4.0]], ["a", "b"], [-1, -1], [2.0, 1.0])
    once = forgotten(people, np.array([3.0]), "a", -1)
    assert (once.features[:, 0].tolist(), once.weight.tolist()) == ([3.0, 4.0], [1.0, 1.0])
    gone = forgotten(once, np.array([4.0]), "b", -1)
    assert (gone.features[:, 0].tolist(), gone.weight.tolist()) == ([3.0, 0.0], [1.0, 0.0])


def test_a_group_of_which_nobody_is_left_is_not_forgotten():
    """Two others are left; but about the third nothing is known any more, so nothing is promised to
    a new policy.
    """
    rule = explorer()
    left = forgotten(sample(("a", -1, 500), ("b", -1, 500), ("c", -1, 1)), np.array([0.0]), "c", -1)
    assert rule.beta(left, 1) < 0.3  # what the two others alone would promise
    gone = rule.narrowed(Slack(0.25, 0.05, 0.3), left)
    assert (gone.beta, gone.limit, gone.promise, gone.missing) == (2.0, 0.0, 0.3, 1)
    assert not rule.keeps(gone)
