"""Exact intervals by enumeration, missing outcomes against every completion, and refusals."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.stats

import evenhand as eh
from evenhand.bounds.proportions import Interval, difference_interval
from evenhand.errors import InvalidInput
from evenhand.evaluation import measurement
from evenhand.evaluation.measurement import measure, measure_policy
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.thresholds import Threshold

NAN = float("nan")


def test_known_outcomes_give_the_rates_themselves():
    accepted = np.array([True, False, True, True, False, True, False, False])
    label = np.array([1, 1, -1, 1, 1, -1, -1, -1.0])
    group = list("aaaabbbb")
    measured = measure(accepted, group, label)
    rates = {rate.symbol: rate for rate in measured.rates}
    assert [round(one.least, 6) for one in rates["SR"].groups] == [0.75, 0.25]
    assert [round(one.least, 6) for one in rates["FPR"].groups] == [1.0, round(1 / 3, 6)]
    assert [round(one.least, 6) for one in rates["FNR"].groups] == [round(1 / 3, 6), 1.0]
    assert [round(one.least, 6) for one in rates["PPV"].groups] == [round(2 / 3, 6), 0.0]
    assert rates["SR"].gap == 0.5
    assert rates["SR"].ratio == pytest.approx(1 / 3)
    assert all(rate.is_identified for rate in measured.rates)
    for rate in measured.rates:
        assert rate.gap_interval[0] <= rate.gap <= rate.gap_interval[1]
    both = measure(accepted, group, label, compare="both")
    for rate in both.rates:
        if rate.ratio is not None:
            assert rate.ratio_interval[0] <= rate.ratio <= rate.ratio_interval[1]


@pytest.mark.parametrize("seed", range(5))
def test_missing_outcomes_cover_every_completion(seed):
    rng = np.random.default_rng(seed)
    accepted = rng.random(9) < 0.6
    group = ["a", "b", "a", "b", "a", "b", "a", "b", "a"]
    full = rng.choice([-1.0, 1.0], 9)
    missing = rng.choice(9, 4, replace=False)
    label = full.copy()
    label[missing] = NAN
    told = measure(accepted, group, label)
    for completion in itertools.product([-1.0, 1.0], repeat=4):
        label[missing] = completion
        exact = measure(accepted, group, label)
        for rate, true in zip(told.rates, exact.rates, strict=True):
            for one, real in zip(rate.groups, true.groups, strict=True):
                if not math.isnan(real.least):
                    assert one.least - 1e-12 <= real.least <= one.largest + 1e-12
                assert one.lower <= real.lower + 1e-12
                assert one.upper >= real.upper - 1e-12
            # The regions of exact differences are not nested over sample sizes, so a completion's
            # interval may stick out a little; that the population is covered is tested elsewhere.
            assert rate.gap_interval[0] <= true.gap_interval[0] + 0.02
            assert rate.gap_interval[1] >= true.gap_interval[1] - 0.02


def test_one_sided_outcomes_leave_the_false_positive_rate_open():
    """The trap of the whole field: outcomes of the accepted alone say nothing about FPR."""
    accepted = np.array([True] * 6 + [False] * 6)
    label = np.array([1, 1, -1, 1, -1, -1] + [NAN] * 6)
    measured = measure(accepted, list("ab" * 6), label)
    rates = {rate.symbol: rate for rate in measured.rates}
    assert rates["FPR"].gap is None
    assert not rates["FPR"].is_identified
    assert rates["FPR"].groups[0].largest == 1.0
    assert rates["PPV"].is_identified


def test_without_outcomes_only_selection_is_measured():
    measured = measure(np.array([True, False]), ["a", "b"])
    assert [rate.symbol for rate in measured.rates] == ["SR"]
    with pytest.raises(InvalidInput, match="outcomes"):
        measure(np.array([True, False]), ["a", "b"], rates="fpr")


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="group has shape"):
        measure(np.array([True, False]), ["a"])
    with pytest.raises(InvalidInput, match="delta"):
        measure(np.array([True]), ["a"], delta=1.5)


def test_the_difference_of_a_rate_holds():
    """150 lists of 40 people; the difference of one rate holds in at least 95%.

    A correct program has more than 18 misses with probability below 1e-3 (binomial, 150 trials, at
    most .05); the control, whose intervals are a third as wide, misses in most lists.
    """
    rng = np.random.default_rng(5)
    misses = narrow = 0
    truth = {"FPR": 0.3}
    for _ in range(150):
        group = rng.choice(["a", "b"], 40)
        label = np.where(rng.random(40) < 0.5, 1.0, -1.0)
        chance = np.where(label > 0, 0.7, np.where(group == "b", 0.5, 0.2))
        measured = measure(rng.random(40) < chance, group, label, rates=["fpr"])
        pairs = [(truth[rate.symbol], rate.pairs[0]) for rate in measured.rates]
        misses += any(
            not pair.difference_interval[0] <= true <= pair.difference_interval[1]
            for true, pair in pairs
        )
        narrow += any(
            abs(pair.difference - true)
            > (pair.difference_interval[1] - pair.difference_interval[0]) / 6
            for true, pair in pairs
        )
    assert misses <= 18
    assert narrow > 40


def test_fewer_comparisons_are_narrower():
    rng = np.random.default_rng(1)
    group = rng.choice(["a", "b", "c", "d"], 400)
    accepted = rng.random(400) < 0.5

    def width(**asked):
        (rate,) = measure(accepted, group, rates="selection", **asked).rates
        found = next(one for one in rate.pairs if {one.group, one.reference} == {"a", "b"})
        return found.difference_interval[1] - found.difference_interval[0]

    assert width() > width(reference="a") > width(pairs=[("b", "a")])


def test_several_groupings_are_crossed_and_share_delta():
    rng = np.random.default_rng(2)
    sex = rng.choice(["f", "m"], 200)
    race = rng.choice(["x", "y", "z"], 200)
    accepted = rng.random(200) < 0.4
    measured = measure(accepted, {"sex": sex, "race": race}, rates="selection")
    assert [rate.grouping for rate in measured.rates] == ["sex", "race", "sex x race"]
    assert [len(rate.pairs) for rate in measured.rates] == [1, 3, 15]
    alone = measure(accepted, sex, rates="selection", delta=0.05 / 19)
    assert measured.rates[0].pairs[0] == alone.rates[0].pairs[0]


def test_a_group_of_one_person_is_set_aside():
    accepted = np.array([True] * 30 + [False] * 30 + [True])
    group = ["a"] * 30 + ["b"] * 30 + ["c"]
    measured = measure(accepted, group, rates="selection", fewest=5)
    assert measured.set_aside == ("c has 1 person, fewer than 5",)
    assert [one.group for one in measured.rates[0].groups] == ["a", "b", "c"]
    assert [pair.name for pair in measured.rates[0].pairs] == ["b minus a"]


def test_a_measurement_shows_itself():
    measured = measure(np.array([True, False] * 20), ["a", "b"] * 20, compare="both")
    frame = measured.to_frame()
    assert frame["difference"].tolist() == [-1.0]
    assert frame["ratio_interval_low"].tolist() == [0.0]
    assert set(measured.to_frame("rates")["here_low"]) == {0.0, 1.0}
    assert measured.to_json()["rates"][0]["gap"] == 1.0
    assert measured.plot().get_xlabel()


def test_watching_holds_at_every_look():
    """100 growing tables without a gap: what is excluded at one of 64 looks stays excluded, and at
    most delta = .05 of the tables are ever wrong (more than 13 with probability below 1e-3). An
    approximate interval for a fixed size, looked at ten times, is wrong in more.
    """
    rng = np.random.default_rng(8)
    group = np.array(["a", "b"] * 500)
    wrong = control = 0
    for _ in range(100):
        accepted = rng.random(1000) < 0.3
        watched = measure(accepted, group, rates="selection", watch=True)
        wrong += watched.rates[0].gap_interval[0] > 0
        gaps = [
            (accepted[:n:2].mean() - accepted[1:n:2].mean(), n / 2) for n in range(100, 1001, 100)
        ]
        control += any(abs(gap) > 1.96 * math.sqrt(2 * 0.21 / n) for gap, n in gaps)
    assert wrong <= 13
    assert control > 13


@dataclass
class Growing:
    """A table that grows and is looked at again: its groups in order of arrival, each with its
    rate, and the share of people of each from the person on from whom it turns up.
    """

    rates: dict[str, float]
    shares: dict[str, float]
    turns_up: dict[str, int]
    people: int
    looks: int
    delta: float

    def drawn(self, rng):
        """Who was accepted, of which group."""
        names = np.array(list(self.rates))
        share = np.array([[self.shares[one]] for one in names]) * (
            np.arange(self.people) >= np.array([[self.turns_up.get(one, 0)] for one in names])
        )
        steps = np.cumsum(share / share.sum(axis=0), axis=0)
        group = names[(rng.random(self.people) > steps).sum(axis=0)]
        return rng.random(self.people) < np.vectorize(self.rates.get)(group), group

    def misses(self, rng, watch, pairs):
        """Whether a group's own interval, and whether a comparison, misses at any look."""
        accepted, group = self.drawn(rng)
        times = np.unique(np.geomspace(20, self.people, self.looks).astype(int))
        own = compared = False
        for n in times:
            found = measure(
                accepted[:n],
                group[:n],
                rates="selection",
                watch=watch,
                delta=self.delta,
                pairs=None if pairs else [],
            ).rates[0]
            for one in found.groups:
                own |= not one.lower <= self.rates[one.group] <= one.upper
            for pair in found.pairs:
                low, high = pair.difference_interval
                compared |= not low <= self.rates[pair.group] - self.rates[pair.reference] <= high
        return own, compared

    def runs(self, seed, runs, watch=True, pairs=False):
        """In how many runs each of the two happens."""
        rng = np.random.default_rng(seed)
        return np.sum([self.misses(rng, watch, pairs) for _ in range(runs)], axis=0)


GROWING = {
    "two groups": Growing({"a": 0.3, "b": 0.3}, {"a": 1, "b": 1}, {}, 2000, 20, 0.5),
    "many looks": Growing({"a": 0.3, "b": 0.3}, {"a": 1, "b": 1}, {}, 3000, 100, 0.05),
    "a small group": Growing({"a": 0.01, "b": 0.02}, {"a": 97, "b": 3}, {}, 3000, 20, 0.5),
    "groups that turn up later": Growing(
        {"a": 0.3, "b": 0.3, "c": 0.5, "d": 0.1, "e": 0.3, "f": 0.3},
        dict.fromkeys("abcdef", 1),
        {"c": 100, "d": 300, "e": 600, "f": 1000},
        2000,
        20,
        0.5,
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["two groups", "groups that turn up later"])
def test_the_rate_of_a_group_holds_at_every_look(name):
    """40 growing tables: more misses than `most` have probability below 1e-3. Clopper and Pearson's
    intervals, which are for one look, are wrong in more of them.
    """
    table = replace(GROWING[name], looks=12)
    most = int(scipy.stats.binom.ppf(0.999, 40, table.delta))
    assert table.runs(91, 40)[0] <= most
    assert table.runs(91, 40, watch=False)[0] > most


@pytest.mark.slow
@pytest.mark.parametrize("name", GROWING)
def test_rates_and_comparisons_hold_at_every_look(name):
    """60 tables, as above, with all pairs; of intervals for one look more are wrong."""
    table = GROWING[name]
    most = int(scipy.stats.binom.ppf(0.999, 60, table.delta))
    assert (table.runs(92, 60, pairs=True) <= most).all()
    assert table.runs(92, 60, watch=False)[0] > most


def watched_levels(order, delta=0.05, **asked):
    """What each group and each pair may miss with, two ends each, by the order of arrival."""
    seen = {}

    def noted(events, people, alpha):
        seen.setdefault("rates", []).append(2 * alpha)
        return Interval(0.0, 1.0)

    def noted_pair(first, second, alpha):
        seen.setdefault("pairs", []).append(2 * alpha)
        return Interval(-1.0, 1.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "proportion_sequence", noted)
        patch.setattr(measurement, "difference_sequence", noted_pair)
        found = measure([True] * len(order), list(order), delta=delta, watch=True, **asked)
    rate = found.rates[0]
    groups = {one.group: level for one, level in zip(rate.groups, seen["rates"], strict=True)}
    pairs = {
        frozenset((one.group, one.reference)): level
        for one, level in zip(rate.pairs, seen.get("pairs", []), strict=True)
    }
    return groups, pairs


def test_no_share_of_delta_changes_when_a_group_turns_up_and_all_shares_stay_within_it():
    """The levels are asked for at every look of a table in which 120 groups turn up one by one."""
    order = [f"g{j:03}" for j in np.random.default_rng(5).permutation(120)]
    for asked in ({}, {"reference": order[0]}):
        before: tuple[dict, dict] = ({}, {})
        for people in (1, 2, 3, 10, 40, 120):
            levels = watched_levels(order[:people], rates="selection", **asked)
            for was, now in zip(before, levels, strict=True):
                assert was.items() <= now.items()
                assert sum(now.values()) <= 0.05
            before = levels
        assert sum(before[0].values()) > 0.049
        assert sum(before[1].values()) > 0.049
    named = watched_levels(order, rates="selection", pairs=[(order[5], order[7])])[1]
    assert list(named.values()) == [0.05]


def test_rates_that_cannot_be_measured_yet_have_their_share_of_delta():
    accepted = np.array([True, False] * 20)
    group = ["a", "b"] * 20
    unknown = np.full(40, np.nan)
    known = np.array([1.0, -1.0] * 20)
    first = measure(accepted, group, unknown, watch=True).rates[0]
    later = measure(accepted, group, known, watch=True).rates[0]
    assert first == later
    assert "at all looks" in measure(accepted, group, watch=True).to_json()["meaning"]


def exact_ends(events, people, alpha):
    """Clopper and Pearson's ends as scipy.stats computes them."""
    found = scipy.stats.binomtest(events, people).proportion_ci(1 - 2 * alpha, method="exact")
    return found.low, found.high


@pytest.mark.parametrize("seed", range(4))
def test_a_policy_on_counted_rows_by_brute_force(seed):
    """Every person is a tuple in a list; shares, intervals and costs are counted from the list."""
    rng = np.random.default_rng(seed)
    rows = 25
    score = rng.integers(0, 6, rows).astype(float)
    group = rng.choice(["a", "b", "c"], rows)
    group[:3] = ["a", "b", "c"]
    label = rng.choice([-1, 1], rows)
    count = rng.integers(0, 30, rows)
    count[:3] = 5
    sample = eh.LabelledSample(score[:, None], group, label, count)
    rules = (Threshold(0, 2.0, 1), Threshold(0, 4.0, 1, at_least=False), REJECT_ALL, ACCEPT_ALL)
    weights = (0.4, 0.3, 0.2, 0.1)
    answers = (
        lambda x: x >= 2,
        lambda x: x < 4,
        lambda _: False,
        lambda _: True,
    )
    delta = 0.1
    measured = measure_policy(
        eh.policies.Mixture(rules, weights), sample, prices=(3.0, 2.0), delta=delta
    )

    listed = []
    for x, a, y, n in zip(score, group, label, count, strict=True):
        listed.extend([(x, a, y)] * int(n))
    # three rates of three groups, two ends each, two rules that are no constants
    alpha = delta / (2 * 3 * 3) / 2

    def expected(people, event):
        value = lower = upper = 0.0
        for number, (accepts, weight) in enumerate(zip(answers, weights, strict=True)):
            hits = sum(event(accepts(x)) for x, _, _ in people)
            low, high = exact_ends(hits, len(people), alpha)
            if number >= 2:  # a constant has its rate by definition
                low = high = hits / len(people)
            value += weight * hits / len(people)
            lower += weight * low
            upper += weight * high
        return value, lower, min(upper, 1.0)

    def accepted(accept):
        return accept

    def rejected(accept):
        return not accept

    assert measured.people == len(listed)
    in_denominator = {"SR": (-1, 1), "FPR": (-1,), "FNR": (1,)}
    for rate in measured.rates:
        event = rejected if rate.symbol == "FNR" else accepted
        hits = {}
        for one in rate.groups:
            people = [
                p for p in listed if p[1] == one.group and p[2] in in_denominator[rate.symbol]
            ]
            assert one.people == len(people)
            if not people:
                assert (one.lower, one.upper) == (0.0, 1.0)
            else:
                value, lower, upper = expected(people, event)
                assert one.least == pytest.approx(value, abs=1e-12)
                assert one.lower == pytest.approx(lower, abs=1e-9)
                assert one.upper == pytest.approx(upper, abs=1e-9)
            hits[one.group] = [
                (sum(event(accepts(x)) for x, _, _ in people), len(people)) for accepts in answers
            ]
        for pair in rate.pairs:
            ends = [
                difference_interval(*hits[pair.group][j], *hits[pair.reference][j], alpha)
                for j in range(2)
            ]
            found = [sum(w * end[k] for w, end in zip(weights, ends, strict=False)) for k in (0, 1)]
            assert pair.difference_interval == pytest.approx(tuple(found), abs=1e-9)

    cost = sum(
        weight
        * sum(
            3.0 * (answer(x) and y == -1) + 2.0 * (not answer(x) and y == 1) for x, _, y in listed
        )
        for answer, weight in zip(answers, weights, strict=True)
    ) / len(listed)
    assert measured.cost == pytest.approx(cost, abs=1e-12)
    assert measured.cost_interval[0] <= cost <= measured.cost_interval[1]


def test_a_gap_of_counted_people_is_found():
    """False positive rates of .2 and .6 in 2,000 negatives of each group, as four rows: counted as
    rows the interval began at 0 and the verdict was "within".
    """
    sample = eh.LabelledSample(
        [[0.0], [1.0], [0.0], [1.0]], ["a", "a", "b", "b"], [-1] * 4, [1600, 400, 800, 1200]
    )
    rule = eh.policies.Mixture((Threshold(0, 1.0, 1),), (1.0,))
    measured = measure_policy(rule, sample, rates="fpr", prices=None)
    (rate,) = measured.rates
    assert rate.gap == pytest.approx(0.4)
    assert 0.3 < rate.gap_interval[0] < 0.4 < rate.gap_interval[1] < 0.5
    assert measured.verdict("FPR", 0.1) == "above"


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, float("nan")])
def test_a_policy_is_measured_with_a_delta_between_0_and_1(delta):
    sample = eh.LabelledSample([[0.0], [1.0]], ["a", "b"], [-1, -1])
    with pytest.raises(InvalidInput, match="delta"):
        measure_policy(eh.policies.Mixture((ACCEPT_ALL,), (1.0,)), sample, delta=delta)
