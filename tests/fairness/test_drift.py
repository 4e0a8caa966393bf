"""Drift: an e-process by enumeration, no false alarms over long runs, and how soon a shift is
seen.
"""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.fairness import drift
from evenhand.fairness.drift import (
    ConstancyTest,
    DriftMonitor,
    Stream,
    change_weight,
    kept,
    log_likelihood,
    log_mixture,
)
from evenhand.randomness import stream

GROUP_MIX = Stream("group mix")
LABELS_OF_A = Stream("labels", "a")


def paths(test: ConstancyTest, length: int) -> Iterator[tuple[int, int, ConstancyTest]]:
    """Every binary sequence of every length up to `length`, as (length, ones, test after it),
    parents before children.
    """
    level = [(0, test)]
    for n in range(1, length + 1):
        level = [(ones + x, t.update([1 - x, x])) for ones, t in level for x in (0, 1)]
        yield from ((n, ones, t) for ones, t in level)


def log_q(test: ConstancyTest) -> float:
    """ln Q(X_1..X_t): the numerator of E_t (before the block is closed, which changes no
    probability).
    """
    return test.log_evidence() + float(log_likelihood(np.array(test.total)))


class TestByEnumeration:
    @pytest.mark.thorough
    def test_q_is_a_probability_law_of_sequences(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With every candidate kept, Q sums to one at each length and each Q(x) is the sum over its
        two continuations.
        """
        monkeypatch.setattr(drift, "kept", lambda block, blocks: True)
        level = [ConstancyTest.start(2, 0.1, block=2)]
        for _ in range(9):
            following = [[t.update([1, 0]), t.update([0, 1])] for t in level]
            for parent, children in zip(level, following, strict=True):
                assert sum(math.exp(log_q(c)) for c in children) == pytest.approx(
                    math.exp(log_q(parent)), rel=1e-10
                )
            level = [child for children in following for child in children]
        assert sum(math.exp(log_q(t)) for t in level) == pytest.approx(1.0, rel=1e-10)

    @pytest.mark.thorough
    def test_thinning_only_lowers_the_evidence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        thinned = [t.log_evidence() for _, _, t in paths(ConstancyTest.start(2, 0.1, block=1), 9)]
        monkeypatch.setattr(drift, "kept", lambda block, blocks: True)
        full = [t.log_evidence() for _, _, t in paths(ConstancyTest.start(2, 0.1, block=1), 9)]
        assert all(a <= b + 1e-12 for a, b in zip(thinned, full, strict=True))
        assert thinned != full

    @pytest.mark.thorough
    @pytest.mark.parametrize("theta", [0.01, 0.2, 0.5, 0.9])
    def test_the_exact_false_alarm_probability_is_below_alpha(self, theta: float) -> None:
        """All 2^11 runs; alpha as large as .9 so that alarms occur at all."""
        runs = [
            (k, t.peak) for n, k, t in paths(ConstancyTest.start(2, 0.1, block=1), 11) if n == 11
        ]
        for alpha in (0.9, 0.7, 0.5):
            alarm = sum(
                theta**k * (1 - theta) ** (11 - k) for k, peak in runs if peak >= -math.log(alpha)
            )
            assert alarm <= alpha

    @pytest.mark.parametrize("theta", [0.2, 0.5])
    def test_the_expected_evidence_is_at_most_one(self, theta: float) -> None:
        for length in (3, 8):
            ends = [
                (k, t.log_evidence())
                for n, k, t in paths(ConstancyTest.start(2, 0.1, block=2), length)
                if n == length
            ]
            assert (
                sum(theta**k * (1 - theta) ** (length - k) * math.exp(e) for k, e in ends)
                <= 1 + 1e-12
            )


def peaks(probability: list[float], people: int, step: int, runs: int, seed: int) -> np.ndarray:
    """The largest ln E in each of `runs` runs of one stream on a fixed population: ConstancyTest
    for many runs at once.
    """
    generator, total = stream(seed, "lives"), np.zeros((runs, len(probability)))
    boundaries: list[tuple[int, np.ndarray, np.ndarray]] = []
    peak = np.zeros(runs)
    for number in range(1, people // step + 1):
        total = total + generator.multinomial(step, probability, size=runs)
        terms = [math.log(drift.no_change_weight(number - 1)) + log_mixture(total)]
        terms += [
            math.log(change_weight(j)) + before + log_mixture(total - counts)
            for j, counts, before in boundaries
        ]
        peak = np.maximum(peak, np.logaddexp.reduce(terms) - log_likelihood(total))
        boundaries.append((number, total, log_mixture(total)))
        boundaries = [entry for entry in boundaries if kept(entry[0], number)]
    return peak


def test_many_runs_at_once_are_the_test_itself() -> None:
    generator = stream(4, "lives")
    test = ConstancyTest.start(2, 1e-3, block=100)
    for _ in range(60):
        test = test.update(generator.multinomial(100, [0.3, 0.7], size=1)[0])
    assert peaks([0.3, 0.7], 6000, 100, runs=1, seed=4)[0] == pytest.approx(test.peak, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("probability", "seed"), [([0.05, 0.95], 1), ([0.5, 0.5], 2), ([0.7, 0.2, 0.1], 3)]
)
def test_no_false_alarm_in_300_runs_of_a_million(probability: list[float], seed: int) -> None:
    """The theorem says at most 1e-3 per run; one alarm in 300 runs would have probability below
    .26, in all three streams.
    """
    peak = peaks(probability, 1_000_000, 1000, runs=300, seed=seed)
    assert peak.max() < math.log(1000)


@pytest.mark.claims
def test_no_false_alarm_when_looked_at_every_250_people() -> None:
    for seed, probability in enumerate(([0.1, 0.9], [0.4, 0.6])):
        assert peaks(probability, 1_000_000, 250, runs=300, seed=10 + seed).max() < math.log(1000)


def test_repeated_fixed_sample_tests_would_cry_wolf() -> None:
    """Negative control: a 1e-3 two-sample z-test at each block, on the same runs, alarms in most
    of them.
    """
    generator, runs, step = stream(2, "naive"), 100, 2000
    counts = generator.binomial(step, 0.5, size=(runs, 500)).astype(float)
    before = counts.cumsum(axis=1)[:, :-1] / (step * np.arange(1, 500))
    deviation = np.abs(counts[:, 1:] / step - before) / np.sqrt(
        0.25 / step * (1 + 1 / np.arange(1, 500))
    )
    assert (deviation.max(axis=1) > 3.29).mean() > 0.3


def test_a_plug_in_denominator_would_cry_wolf() -> None:
    """Negative control: the mean of the first 2,000 people taken for the truth makes runs of
    200,000 alarm.
    """
    generator = stream(8, "plug-in")
    first = generator.binomial(2000, 0.5, size=200) / 2000
    rest = generator.binomial(198_000, 0.5, size=200).astype(float)
    counts = np.stack([rest, 198_000 - rest], axis=1)
    evidence = log_mixture(counts) - rest * np.log(first) - (198_000 - rest) * np.log(1 - first)
    assert (evidence > math.log(1000)).mean() > 0.5


def delay(
    before: float, after: float, people_before: int, generator: np.random.Generator, *, most: int
) -> int:
    """People of the group who are audited between a shift and its alarm, looked at every 50; `most`
    if there is none.
    """
    names = {GROUP_MIX: 2, LABELS_OF_A: 2, Stream("labels", "b"): 2}
    test = DriftMonitor.start(names).streams[LABELS_OF_A]
    for _ in range(people_before // 250):
        test = test.update(generator.multinomial(250, [before, 1 - before]))
    assert not test.alarmed
    for seen in range(50, most, 50):
        test = test.update(generator.multinomial(50, [after, 1 - after]))
        if test.alarmed:
            return seen
    return most


@pytest.mark.thorough
@pytest.mark.parametrize(("before", "after"), [(0.1, 0.2), (0.3, 0.4), (0.5, 0.4)])
def test_a_shift_of_a_tenth_in_one_group_is_flagged(before: float, after: float) -> None:
    """After 20,000 audited people: median within 2,000, all within 4,000 further ones."""
    generator = stream(6, "delay", str(before))
    delays = [delay(before, after, 20_000, generator, most=4000) for _ in range(25)]
    assert np.median(delays) <= 2000
    assert max(delays) < 4000


def test_a_changed_group_mix_is_flagged_and_named() -> None:
    generator, monitor = stream(7, "mix"), DriftMonitor.start({GROUP_MIX: 3, LABELS_OF_A: 2})
    for share in ([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]):
        for _ in range(40):
            monitor = monitor.watch(GROUP_MIX, generator.multinomial(250, share))
            monitor = monitor.watch(LABELS_OF_A, generator.multinomial(100, [0.3, 0.7]))
    assert monitor.alarms == (GROUP_MIX,)
    assert "ALARM" in monitor.describe()


def test_an_alarm_is_for_ever() -> None:
    test = ConstancyTest.start(2, 0.01, block=100)
    for counts in [[90, 10]] * 10 + [[10, 90]] * 10 + [[50, 50]] * 500:
        test = test.update(counts)
    assert test.alarmed


def test_shares_of_all_streams_sum_to_at_most_the_false_alarm_probability() -> None:
    names = {GROUP_MIX: 2, LABELS_OF_A: 2, Stream("labels", "b"): 3}
    monitor = DriftMonitor.start(names, false_alarm=1e-3)
    rules = [Stream("share", "a", n) for n in range(200)]
    for name in rules:
        monitor = monitor.watch(name, [1, 2])
    assert sum(test.false_alarm for test in monitor.streams.values()) <= 1e-3
    retired = monitor.retire(rules[0]).watch(rules[0], [1, 2])
    assert retired.streams[rules[0]].false_alarm < monitor.streams[rules[199]].false_alarm


@pytest.mark.thorough
def test_the_state_stays_small() -> None:
    test = ConstancyTest.start(2, 1e-3, block=10)
    for _ in range(3000):
        test = test.update([5, 5])
    assert test.blocks == 3000
    assert len(test.boundaries) <= 4 * math.log2(3000)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InvalidInput, match="categories"):
        ConstancyTest.start(1, 1e-3)
    with pytest.raises(LengthMismatch, match="2 categories"):
        ConstancyTest.start(2, 1e-3).update([1, 2, 3])
