import numpy as np
import pytest
from tests.without_clocks import calls

from evenhand import words
from evenhand.computing import computing_in
from evenhand.errors import BadLabel, InvalidInput, LengthMismatch
from evenhand.estimation import RoundLog
from evenhand.estimation import log as module
from evenhand.estimation.log import find_contexts, joined_people, numbered, prices_of
from evenhand.words import Prices


def events(seed=0, rounds=300, **more):
    random = np.random.default_rng(seed)
    features = random.integers(3, size=(rounds, 2)).astype(float)
    chance = random.choice([0.25, 0.5], size=rounds)
    accept = random.random(rounds) < chance
    label = random.choice([-1, 1], size=int(accept.sum()))
    return RoundLog.from_rounds(features, accept, label, chance, **more)


def test_rounds_become_rows_with_one_round_each():
    log = RoundLog.from_rounds([[1.0], [2.0], [3.0]], [True, False, True], [1, -1], [0.5, 0.5, 1.0])
    assert log.positive.tolist() == [1, 0, 0]
    assert log.rejected.tolist() == [0, 1, 0]
    assert log.negative.tolist() == [0, 0, 1]
    assert log.rounds == 3


def test_a_label_for_a_rejected_round_has_no_place():
    with pytest.raises(LengthMismatch, match="label"):
        RoundLog.from_rounds([[1.0], [2.0]], [True, False], [1, -1], 0.5)


@pytest.mark.parametrize("label", [0.5, 2])
def test_labels_are_minus_and_plus_one(label):
    with pytest.raises(BadLabel):
        RoundLog.from_rounds([[1.0]], [True], [label], 0.5)


@pytest.mark.parametrize(
    ("acceptance", "rejected", "positive", "message"),
    [
        (1.0, 2, 0, "rejected is 2"),
        (0.0, 0, 3, "accepted is 3"),
        (1.2, 0, 1, "between 0 and 1"),
        (0.5, -1, 0, "below 0"),
    ],
)
def test_rows_that_cannot_have_happened_are_refused(acceptance, rejected, positive, message):
    with pytest.raises(InvalidInput, match=message):
        RoundLog([[0.0]], None, acceptance, rejected, positive, 0)


def test_aggregation_agrees_with_a_dictionary():
    log = events(group=np.random.default_rng(1).choice(["a", "b"], size=300))
    expected: dict[tuple, np.ndarray] = {}
    for i in range(len(log)):
        key = (*log.features[i], log.group[i], log.acceptance[i])
        expected[key] = expected.get(key, 0) + np.array(
            [log.rejected[i], log.positive[i], log.negative[i]]
        )
    small = log.aggregated()
    keys = [
        (*f, g, p) for f, g, p in zip(small.features, small.group, small.acceptance, strict=True)
    ]
    assert keys == list(expected)
    np.testing.assert_array_equal(
        np.c_[small.rejected, small.positive, small.negative], list(expected.values())
    )
    assert len(small.aggregated()) == len(small)


def test_aggregation_keeps_prices_apart():
    prices = Prices(np.array([1.0, 1.0, 2.0]), 1.0)
    log = RoundLog.from_rounds([[0.0]] * 3, [True] * 3, [1, 1, 1], 0.5, prices=prices).aggregated()
    assert log.positive.tolist() == [2, 1]
    assert log.prices.false_accept.tolist() == [1, 2]
    assert log.prices.false_reject.tolist() == [1, 1]


def test_groups_of_mixed_kinds_can_be_aggregated():
    group = np.array(["a", 1, "a", 1, frozenset({2, 3})], dtype=object)
    log = RoundLog.from_rounds([[0.0]] * 5, [False] * 5, [], 0.5, group=group).aggregated()
    assert log.rejected.tolist() == [2, 2, 1]


def test_minus_zero_equals_zero():
    assert len(RoundLog.from_rounds([[0.0], [-0.0]], [False] * 2, [], 0.5).aggregated()) == 1


def test_colliding_hashes_never_merge_different_rows(plain, monkeypatch):
    monkeypatch.setattr(module, "_row_hash", lambda parts: np.zeros(len(parts[0]), np.uint64))
    features = np.random.default_rng(0).integers(3, size=(50, 2)).astype(float)
    found = find_contexts(features, None)
    assert len(found) == len(np.unique(features, axis=0))
    np.testing.assert_array_equal(features[found.first[found.index]], features)
    assert (np.diff(found.first) > 0).all()


@pytest.fixture
def plain():
    """Without compiled code, whoever has loaded it before."""
    with computing_in("numpy"):
        yield


@pytest.fixture
def compiled():
    pytest.importorskip("numba")
    with computing_in("numba"):
        yield


@pytest.mark.parametrize("known", [0, 1, 3_000, 4_000])
def test_compiled_and_plain_hashes_find_the_same_contexts(known):
    """Also where the first rows lie in a table of their own."""
    rng = np.random.default_rng(1)
    features, group = (
        rng.choice([-0.0, 0.0, 1.0, 2.5], size=(4_000, 3)),
        rng.choice(["a", "b"], size=4_000),
    )
    rows = (
        {"features": features[known:], "before": features[:known]}
        if known
        else {"features": features}
    )
    found = []
    for how in ("numpy", "numba"):
        with computing_in(how):
            found.append(find_contexts(group=group, **rows))
            found.append(find_contexts(np.asfortranarray(features), group, features[:, 0] * 2))
    for one in found[1:]:
        np.testing.assert_array_equal(one.index, found[0].index)
        np.testing.assert_array_equal(one.first, found[0].first)
    assert len(found[0]) == 2 * 3**3


def test_the_compiled_pass_tells_apart_what_sums_of_values_would_not(compiled):
    """The same values in other columns, values that differ in their last bit, and a value moved
    between features and the rest.
    """
    features = np.array(
        [[1.0, 0.0], [0.0, 1.0], [np.nextafter(1.0, 2.0), 0.0], [1.0, 0.0], [0.0, 0.0], [-0.0, 0.0]]
    )
    assert find_contexts(features, None).index.tolist() == [0, 1, 2, 0, 3, 3]
    assert find_contexts(np.array([[1.0], [0.0]]), None, np.array([0.0, 1.0])).index.tolist() == [
        0,
        1,
    ]


@pytest.mark.parametrize("kind", [str, int, float, bool, object])
@pytest.mark.parametrize("many", [2, 40])
def test_groups_are_numbered_in_the_order_of_their_appearance(kind, many):
    group = np.random.default_rng(0).integers(0, many, 500).astype(kind)
    values, codes = numbered(group)
    assert values == list(dict.fromkeys(group.tolist()))
    assert [values[code] for code in codes] == group.tolist()


def test_concatenation_is_end_to_end():
    one, two = events(1), events(2)
    both = RoundLog.concatenate([one, two])
    assert len(both) == len(one) + len(two)
    np.testing.assert_array_equal(both.positive, np.r_[one.positive, two.positive])
    whole, parts = (
        both.aggregated(),
        RoundLog.concatenate([one.aggregated(), two.aggregated()]).aggregated(),
    )
    np.testing.assert_array_equal(whole.features, parts.features)
    np.testing.assert_array_equal(whole.negative, parts.negative)


def test_concatenation_refuses_half_a_group_column_and_nothing_at_all():
    with pytest.raises(InvalidInput, match="group"):
        RoundLog.concatenate([events(1), events(2, group=np.zeros(300))])
    with pytest.raises(InvalidInput, match="log"):
        RoundLog.concatenate([])


def test_concatenation_joins_prices():
    one, two = events(1, prices=Prices(2.0, 1.0)), events(2, prices=Prices(3.0, 1.0))
    assert RoundLog.concatenate([one, two]).prices.false_accept[[0, -1]].tolist() == [2, 3]


def test_where_keeps_rows_with_their_prices_and_group():
    log = events(3, group=np.arange(300).astype(str), prices=Prices(np.arange(300.0), 1.0))
    kept = log.where(log.acceptance < 0.5)
    assert set(kept.acceptance) == {0.25}
    np.testing.assert_array_equal(kept.group.astype(float), kept.prices.false_accept)


def repeated(rows, repeats):
    """Continuous rows, each of them `repeats` times."""
    features = np.tile(np.random.default_rng(0).normal(size=(rows // repeats, 12)), (repeats, 1))
    return RoundLog.from_rounds(features, np.zeros(rows, bool), [], 0.5)


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.thorough
def test_a_hundred_thousand_continuous_rows_are_aggregated_by_one_sort_of_numbers(
    repeats, plain, monkeypatch
):
    """One sort, of one number per row, and not one function call more than for a hundred rows. In
    seconds: `make bench`.

    Negative control: with a hash that tells no rows apart, the rows themselves are sorted.
    """
    small, large, sorted_shapes, unique = (
        repeated(100, repeats),
        repeated(100_000, repeats),
        [],
        np.unique,
    )
    assert calls(large.aggregated) == calls(small.aggregated)
    monkeypatch.setattr(
        np, "unique", lambda key, **how: sorted_shapes.append(key.shape) or unique(key, **how)
    )
    assert len(large.aggregated()) == 100_000 // repeats
    assert sorted_shapes == [(100_000,)]
    monkeypatch.setattr(module, "_row_hash", lambda parts: np.zeros(len(parts[0]), np.uint64))
    assert len(small.aggregated()) == 100 // repeats
    assert (100, 13) in sorted_shapes


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.thorough
def test_compiled_code_sorts_nothing(repeats, compiled, monkeypatch):
    small, large = repeated(100, repeats), repeated(100_000, repeats)
    assert calls(large.aggregated) == calls(small.aggregated)
    monkeypatch.setattr(np, "unique", None)
    assert len(large.aggregated()) == 100_000 // repeats


@pytest.mark.parametrize("more", [{}, {"prices": Prices(2.0, 1.0)}, {"group": np.arange(300) % 3}])
@pytest.mark.parametrize("how", ["plain", "compiled"])
def test_merged_logs_are_concatenated_and_aggregated(more, how, request):
    request.getfixturevalue(how)
    logs = [events(seed, **more) for seed in (1, 2, 3)]
    slow = RoundLog.concatenate(logs).aggregated()
    for parts in (logs, [RoundLog.merged(logs[:2]), logs[2]], [RoundLog.concatenate(logs)]):
        quick = RoundLog.merged(parts)
        for name in ("features", "group", "acceptance", "rejected", "positive", "negative"):
            np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name))
        assert (quick.prices is None) == (slow.prices is None)


def test_merging_refuses_logs_of_different_widths():
    other = RoundLog.from_rounds([[0.0]], [False], [], 0.5)
    with pytest.raises(InvalidInput, match="feature columns"):
        RoundLog.merged([events(1), other])


def test_parts_of_logs_are_not_checked_again(monkeypatch):
    """Every column was checked when its log was made; a part of it, or several end to end, need no
    second look.

    Negative control: a log that is made anew looks at its features.
    """
    one, two, looks = events(1), events(2), []
    look = words._require_finite
    monkeypatch.setattr(
        words, "_require_finite", lambda array, name: looks.append(name) or look(array, name)
    )
    RoundLog.merged([one, two])
    RoundLog.concatenate([one, two])
    one.where(one.acceptance < 0.5)
    assert one.where(one.acceptance > 0) is one
    assert looks == []
    RoundLog(one.features, None, one.acceptance, one.rejected, one.positive, one.negative)
    assert "features" in looks


def test_prices_of_some_people_and_end_to_end():
    prices = Prices(np.array([1.0, 2.0, 3.0]), 5.0)
    some = prices_of(prices, 3, np.array([True, False, True]))
    assert some.false_accept.tolist() == [1.0, 3.0]
    assert some.false_reject.tolist() == [5.0, 5.0]
    groups = [np.array(["a", "b", "a"]), np.array([1, 2])]
    group, both = joined_people(groups, [prices, Prices(7.0, 8.0)], [3, 2])
    assert group.tolist() == ["a", "b", "a", 1, 2]
    assert both.false_accept.tolist() == [1.0, 2.0, 3.0, 7.0, 7.0]
    assert joined_people([groups[0], None], [prices, None], [3, 2]) == (None, None)
