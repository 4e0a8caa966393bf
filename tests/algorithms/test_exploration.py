from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.play import FPR, WORLD, decide_people, report_all, two_phase

from evenhand.algorithms.arrivals import Arrivals, arrivals_before
from evenhand.algorithms.exploration import (
    ExplorationRule,
    ExplorationState,
    Slack,
    as_bound,
    denominators,
    labelled_sample,
    next_size,
    possible_denominators,
    sample_of,
)
from evenhand.bounds import ClopperPearson, Dkw, JointHoeffding
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.fairness import FalseNegativeRate, SelectionRate
from evenhand.hypotheses import ACCEPT_ALL, Estimator, FiniteClass, Linear, ScoreThresholds, Stumps
from evenhand.policies import Mixture
from evenhand.rounds import Rounds, reports
from evenhand.words import LabelledSample


def exploration_rule(**changed):
    settings = dict(
        bound=JointHoeffding(),
        hypotheses=WORLD.hypotheses,
        rates=(FPR,),
        limit=0.3,
        comparator=0.1,
        delta=0.05,
        slack_rule="corrected",
        rounds=None,
    )
    return ExplorationRule(**{**settings, **changed})


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
        np.zeros((len(counts), 1)),
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


def test_the_limit_on_the_sample_is_the_limit_minus_beta():
    found = exploration_rule().slack(BALANCED)
    beta = np.sqrt((1 / 200 + 1 / 100) * np.log(2 * 8 / 0.05) / 2)
    assert found.beta == pytest.approx(beta, rel=1e-12)
    assert found.limit == 0.3 - found.beta
    assert found.guarantee == 0.3


def test_without_a_limit_the_guarantee_follows_from_beta():
    found = exploration_rule(limit=None, rounds=100).slack(BALANCED)
    assert found.guarantee == 0.1 + 2 * found.beta
    assert found.limit == pytest.approx(0.1 + found.beta)


def test_the_rule_as_printed_is_offered_and_different():
    found = exploration_rule(slack_rule="as printed").slack(BALANCED)
    assert found.limit == found.guarantee == 0.1 + found.beta


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
    text = exploration_rule().shortfall(people)
    assert all(part in text for part in told), text


def test_the_forecast_of_people_is_enough_and_no_more_than_needed():
    rule = exploration_rule()
    text = rule.shortfall(arrivals(*grown(1.0)))
    more = int(text.split("about ")[-1].split()[0])
    total = BALANCED.weight.sum()
    assert rule.verdict(arrivals(*grown(1 + (more + 2) / total))) == "enough"
    assert rule.verdict(arrivals(*grown(1 + (more - 6) / total))) == "too few"
    assert exploration_rule().shortfall(arrivals(*grown(50.0))) is None


def grown(factor):
    return [
        (g, y, np.ceil(n * factor))
        for g, y, n in (("a", -1, 200), ("a", 1, 50), ("b", -1, 100), ("b", 1, 70))
    ]


def test_the_exploration_ends_on_counts_and_never_on_features():
    shuffled = LabelledSample(
        np.arange(4.0)[:, None], BALANCED.group, BALANCED.label, BALANCED.count
    )
    assert exploration_rule().beta(shuffled) == exploration_rule().beta(BALANCED)


def test_a_limit_below_the_slack_keeps_exploring_even_if_the_length_is_given():
    """With beta above the limit a policy without any empirical gap may break it."""
    rule = exploration_rule(limit=0.15, rounds=420)
    assert rule.beta(BALANCED) > 0.15
    seen = arrivals(*grown(1.0))
    assert rule.verdict(seen) == "too few"
    assert "more" in rule.shortfall(seen)
    assert exploration_rule(limit=0.3, rounds=420).verdict(seen) == "enough"
    assert exploration_rule(limit=None, rounds=420).verdict(seen) == "enough"
    two = arrivals(("a", -1, 1), ("b", -1, 1))
    assert exploration_rule(limit=1.0, rounds=2).verdict(two) == "enough"


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
        limit = float(draw.choice([0.85, 0.9, 0.95]))
        rule = exploration_rule(rates=rates, limit=limit, rounds=16)
        group = np.array(list("ab") * 8, object)
        label, count = draw.choice([-1, 1], 16), draw.integers(2, 12, 16).astype(float)
        lost = draw.choice(16, 4, replace=False)
        complete = Arrivals(np.zeros((16, 1)), group, label, count)
        told, known = label.copy(), group.copy()
        told[lost], known[lost[0]] = 0, None
        verdict = rule.verdict(replace(complete, group=known, label=told))
        for labels in product([-1, 1], repeat=4):
            for other in "ab":
                told[lost], known[lost[0]] = labels, other
                truth = rule.verdict(replace(complete, group=known, label=told))
                assert verdict in (truth, "open")
        seen.add(verdict)
    assert seen == {"enough", "too few", "open"}


def test_k_lost_rows_move_no_gap_by_more_than_k_over_the_smallest_denominator():
    """300 random samples that lose the k rows whose loss is worst, and every one of 16 hypotheses:
    the inequality has no exception, and half of it would have some."""
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
    rule = exploration_rule()
    whole, lossy = rule.slack(BALANCED), rule.slack(BALANCED, 3)
    assert lossy.beta == whole.beta + 3 / 100
    assert lossy.limit == pytest.approx(whole.limit - 3 / 100)
    assert (whole.missing, lossy.missing) == (0, 3)


def test_a_label_without_a_group_is_outside_of_the_sample():
    people = arrivals(("a", -1, 2), (None, -1, 5), ("b", 1, 3), ("b", -1, 1), ("b", 0, 4))
    assert people.missing == 4
    found = labelled_sample(people)
    assert sorted(zip(found.group, found.label, found.weight, strict=True)) == [
        ("a", -1, 2),
        ("b", -1, 1),
        ("b", 1, 3),
    ]
    fewest, most = possible_denominators(people, (FPR,))
    assert (fewest.tolist(), most.tolist()) == ([[2, 1]], [[2, 5]])


def test_bounds_by_name_and_by_default():
    assert isinstance(as_bound(None, WORLD.hypotheses), JointHoeffding)
    assert isinstance(as_bound(None, ScoreThresholds()), Dkw)
    assert isinstance(as_bound(None, Stumps()), Dkw)
    assert isinstance(as_bound("clopper-pearson", WORLD.hypotheses), ClopperPearson)
    own = JointHoeffding()
    assert as_bound(own, WORLD.hypotheses) is own
    with pytest.raises(InvalidInput) as caught:
        as_bound("bootstrap", WORLD.hypotheses)
    assert caught.value.argument == "bound"


def test_dkw_is_refused_for_rules_that_are_no_thresholds():
    from sklearn.tree import DecisionTreeClassifier

    for hypotheses in (Linear(), Estimator(DecisionTreeClassifier())):
        for bound in (None, "dkw", Dkw()):
            with pytest.raises(InvalidInput) as caught:
                as_bound(bound, hypotheses)
            assert caught.value.argument == "bound"
    with pytest.raises(InvalidInput):
        two_phase(hypotheses=FiniteClass.from_table(np.eye(6, dtype=bool)), bound="dkw")


# over the table of rounds


def explored_rounds(*counts):
    """Everybody accepted, all labels known. counts: (group, label, people)."""
    group = np.concatenate([np.full(people, g, object) for g, _, people in counts])
    label = np.concatenate([np.full(people, y) for _, y, people in counts])
    people = LabelledSample(np.arange(len(label), dtype=float)[:, None], group, label)
    accept_all = Mixture((ACCEPT_ALL,), (1.0,))
    rounds = decide_people(Rounds(), people, accept_all, np.random.default_rng(0))
    return report_all(rounds, people)


def test_the_exploration_closes_with_its_groups_and_keeps_its_size():
    rounds = explored_rounds(("a", -1, 300), ("b", -1, 300), ("b", 1, 100))
    rule = exploration_rule(rounds=700)
    found = rule.explore(rule.start(), rounds)
    assert (found.size, found.groups, found.unlabelled) == (700, ("a", "b"), ())
    assert found.slack == rule.slack(rule.sample(found, rounds))
    assert rule.explore(ExplorationState(701), rounds).slack is None


def test_who_is_forgotten_leaves_the_sample_once():
    rounds = explored_rounds(("a", -1, 300), ("b", -1, 300))
    rule = exploration_rule(rounds=600)
    found = rule.explore(rule.start(), rounds)
    for lost in (np.array([3, 4]), np.array([4])):
        reports.erase(rounds, lost)
        found = rule.forget(found, rounds, lost)
    assert found.unlabelled == (3, 4)
    assert found.slack.missing == 2
    left = rule.sample(found, rounds)
    assert left.weight.sum() == 598
    assert not {3.0, 4.0} & set(left.features[:, 0])
    assert found.slack.beta == rule.beta(left, 2)


def test_a_group_of_which_nobody_is_left_is_not_forgotten():
    """Two others are left; but about the third nothing is known any more, so nothing is guaranteed
    for a new policy.
    """
    rounds = explored_rounds(("a", -1, 500), ("b", -1, 500), ("c", -1, 1))
    rule = exploration_rule()
    found = ExplorationState(1001, Slack(0.25, 0.05, 0.3), ("a", "b", "c"))
    reports.erase(rounds, np.array([1000]))
    gone = rule.forget(found, rounds, np.array([1000])).slack
    two = labelled_sample(arrivals_before(rounds, 1000))
    assert rule.beta(two, 1) < 0.3  # what the two others alone would guarantee
    assert (gone.beta, gone.limit, gone.guarantee, gone.missing) == (2.0, 0.0, 0.3, 1)
    assert not rule.keeps(gone)


def test_groups_that_the_sample_missed_are_named_and_counted():
    rounds = explored_rounds(("a", -1, 300), ("b", -1, 300), ("c", -1, 5))
    rule = exploration_rule(rounds=600)
    found = rule.explore(rule.start(), rounds)
    notes = rule.notes(found, rounds)
    assert [(note.kind, note.group) for note in notes] == [("groups", None), ("outside", "c")]
