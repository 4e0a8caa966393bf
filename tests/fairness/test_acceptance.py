"""Whom a policy accepts, and the verdict about its use, against person-by-person computations."""

import json
import math
import statistics

import numpy as np
import pytest

from evenhand.errors import InvalidInput
from evenhand.fairness.acceptance import Acceptance, AcceptedCount, Saving, acceptance_table


def crowd(seed, people=60):
    rng = np.random.default_rng(seed)
    label = rng.choice([-1, 1], people, p=[0.4, 0.6])
    reject = np.where(label == 1, rng.uniform(0.5, 2.0, people), 0.0)
    accept = np.where(label == -1, rng.uniform(0.5, 4.0, people), 0.0)
    chance = np.clip(rng.random(people) + 0.2 * label, 0.0, 1.0)
    return chance, rng.choice(["a", "b", "c"], people), label, accept, reject


def of(chance, group, label, accept, reject, learned=1.0, count=None):
    names = {name: name for name in ("a", "b", "c")}
    return Acceptance.of(
        chance,
        group,
        label,
        groups=names,
        learned_weight=learned,
        count=count,
        costs=(accept - reject, reject),
    )


@pytest.mark.parametrize("seed", range(8))
def test_shares_and_saving_are_those_of_a_slow_count(seed):
    chance, group, label, accept, reject = crowd(seed)
    found = of(chance, group, label, accept, reject)
    for name in (None, "a", "b", "c"):
        for outcome in (None, -1, 1):
            here = [
                chance[i]
                for i in range(60)
                if name in (None, group[i]) and outcome in (None, label[i])
            ]
            assert found.people(name, outcome) == len(here)
            assert found.share(name, outcome) == pytest.approx(sum(here) / len(here))
    policy = [chance[i] * accept[i] + (1 - chance[i]) * reject[i] for i in range(60)]
    everybody = sum(accept) / 60
    nobody = sum(reject) / 60
    constant = list(accept if everybody < nobody else reject)
    saved = [constant[i] - policy[i] for i in range(60)]
    saving = found.saving
    assert saving.cost == pytest.approx(sum(policy) / 60)
    assert saving.constant_cost == pytest.approx(min(everybody, nobody))
    assert saving.constant_accepts == (everybody < nobody)
    assert saving.mean == pytest.approx(sum(saved) / 60)
    assert saving.error == pytest.approx(statistics.stdev(saved) / math.sqrt(60))
    # the rule of the verdict
    mean = sum(saved) / 60
    slow = "gain"
    if mean <= 1e-9 * sum(policy) / 60:
        slow = "no gain"
    elif mean < 2 * statistics.stdev(saved) / math.sqrt(60):
        slow = "within chance"
    assert found.use == slow


def test_a_row_with_a_count_stands_for_so_many_people():
    chance, group, label, accept, reject = crowd(1)
    count = np.random.default_rng(2).integers(1, 5, 60)
    row = np.repeat(np.arange(60), count)
    counted = of(chance, group, label, accept, reject, count=count)
    apart = of(chance[row], group[row], label[row], accept[row], reject[row])
    assert counted.people() == apart.people() == count.sum()
    assert counted.share() == pytest.approx(apart.share())
    assert counted.saving.mean == pytest.approx(apart.saving.mean)
    assert counted.saving.error == pytest.approx(apart.saving.error)


def with_saving(cost, constant=0.5, error=0.01, learned=1.0, share=0.1, accepts=False):
    cells = tuple(AcceptedCount("a", label, 50, 50 * share) for label in (-1, 1))
    return Acceptance(cells, learned, Saving(cost, constant, accepts, error))


@pytest.mark.parametrize(
    ("found", "use", "said"),
    [
        (with_saving(0.45), "gain", "costs 10.0% less than rejecting all applicants."),
        (with_saving(0.485), "within chance", "may be chance"),
        (with_saving(0.5), "no gain", "Nothing was gained: the policy costs 0.5000 per person"),
        (with_saving(0.6), "no gain", "and rejecting all applicants 0.5000."),
        (with_saving(0.45, accepts=True), "gain", "less than accepting all applicants."),
        (
            with_saving(0.5, learned=0.0, share=0.0),
            "constant",
            "Nothing was learned, and nothing gained: the policy rejects all applicants.",
        ),
        (
            with_saving(0.5, learned=1e-17, share=1.0, accepts=True),
            "constant",
            "Nothing was learned, and nothing gained: the policy accepts all applicants.",
        ),
        (
            with_saving(0.7, learned=0.0, share=0.0, accepts=True),
            "constant",
            "rejects all applicants. It costs 0.7000 per person, and accepting all applicants "
            "0.5000.",
        ),
        (with_saving(0.6, learned=0.0, share=0.2), "constant", "accepts 20.0% by lot"),
    ],
)
def test_the_verdict_about_use_in_words(found, use, said):
    assert found.use == use
    assert said in found.sentences[0]
    assert found.useful == (use == "gain")


def test_a_last_bit_is_neither_a_saving_nor_a_loss_in_any_currency():
    for unit in (1e-9, 1.0, 1e9):
        for bit in (-1, 0, 1):
            cost = 0.3 * unit * (1 + bit * 2**-52)
            assert with_saving(cost, 0.3 * unit, 0.0).use == "no gain"
        assert with_saving(0.29 * unit, 0.3 * unit, 0.001 * unit).use == "gain"


def test_a_policy_that_rejects_most_of_the_good_says_so():
    cells = (AcceptedCount("a", -1, 100, 4.0), AcceptedCount("a", 1, 400, 48.0))
    found = Acceptance(cells, 0.4, Saving(0.6676, 0.7254, False, 0.004))
    assert found.sentences == (
        "The policy costs 8.0% less than rejecting all applicants.",
        "It accepts 10.4% of these 500 people: of those with a good outcome it rejects 88.0%, of "
        "those with a bad one 96.0%.",
    )
    rows = acceptance_table(found, "Whom it accepts").rows
    assert rows == (("a", 500, 0.104, 0.12, 0.04), ("all", 500, 0.104, 0.12, 0.04))


def test_without_prices_there_is_no_verdict_but_the_shares():
    chance, group, label, _, _ = crowd(3)
    found = Acceptance.of(
        chance, group, label, groups={"a": "a", "b": "b", "c": "c"}, learned_weight=1.0
    )
    assert (found.use, found.saving, found.useful) == (None, None, True)
    assert found.sentences[0].startswith("The policy accepts ")


def test_nobody_one_person_and_one_outcome_are_said_as_they_are():
    nothing = np.zeros(0)
    empty = of(nothing, np.array([], dtype=str), nothing.astype(int), nothing, nothing)
    assert (empty.people(), empty.saving) == (0, None)
    assert math.isnan(empty.share())
    assert empty.sentences == ("Nobody is there whom the policy could accept.",)
    one = of(np.ones(1), np.array(["a"]), np.array([1]), np.zeros(1), np.ones(1))
    assert one.saving.error == math.inf
    assert one.use == "no gain"  # accepting everybody does the same
    assert acceptance_table(one, "").rows[-1] == ("all", 1, 1.0, 1.0)
    assert "bad one" not in " ".join(one.sentences)
    for found in (empty, one):
        document = json.loads(json.dumps(found.to_json(), allow_nan=False))
        assert Acceptance.from_json(document) == found


def test_json_has_the_verdict_and_is_read_back():
    chance, group, label, accept, reject = crowd(5)
    found = of(chance, group, label, accept, reject)
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["use"] == found.use
    assert document["share"] == found.share()
    assert Acceptance.from_json(document) == found


def test_more_accepted_than_there_are_has_no_constructor():
    with pytest.raises(InvalidInput):
        AcceptedCount("a", 1, 10, 11.0)
    with pytest.raises(InvalidInput):
        AcceptedCount("a", 0, 10, 1.0)
