"""Audit-only intervals: exact coverage by enumeration, unresolved labels by brute force, and the
trap of pooled audits.
"""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.bounds import (
    AuditBinomial,
    AuditCounts,
    AuditDkw,
    AuditHoeffding,
    AuditIntervals,
    AuditKl,
    PresetLooks,
    fixed_count,
)
from evenhand.contracts import FixedCountBound
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.randomness import stream

BOUNDS = [AuditHoeffding(), AuditKl(), AuditBinomial(), AuditDkw()]
RATES = (0.0, 0.01, 0.05, 0.2, 0.37, 0.5, 0.8, 0.97, 1.0)
by_name = pytest.mark.parametrize("bound", BOUNDS, ids=lambda b: b.name)


def look(
    bound: FixedCountBound,
    counts: AuditCounts,
    delta: float = 0.05,
    log_size: float = 0.0,
    columns: int = 1,
) -> AuditIntervals:
    return bound.intervals(counts, delta=delta, log_size=log_size, columns=columns)


def worst_miss(intervals: AuditIntervals, n: int, m: int) -> float:
    """The largest probability over a grid of true rates that the gap f_2 - f_1 is outside; rows are
    all pairs of counts.
    """
    worst = 0.0
    for p, q in product(RATES, RATES):
        mass = (
            binom.pmf(np.arange(n + 1), n, p)[:, None] * binom.pmf(np.arange(m + 1), m, q)
        ).ravel()
        out = (intervals.lower[:, 0] > q - p + 1e-12) | (intervals.upper[:, 0] < q - p - 1e-12)
        worst = max(worst, float(mass[out].sum()))
    return worst


def all_pairs(n: int, m: int) -> AuditCounts:
    return AuditCounts.of(list(product(range(n + 1), range(m + 1))), [[n, m]])


@by_name
@pytest.mark.parametrize(("n", "m"), [(4, 7), (12, 5), (20, 20), (60, 15)])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3])
def test_coverage_is_exact_for_two_binomials(
    bound: FixedCountBound, n: int, m: int, delta: float
) -> None:
    assert worst_miss(look(bound, all_pairs(n, m), delta), n, m) <= delta


def test_the_enumeration_catches_a_radius_off_by_sqrt_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the staircase shrunk by sqrt 2 misses more than delta."""
    honest = fixed_count.staircase

    def shrunk(log_alpha: float) -> fixed_count.Staircase:
        radius = -float(_normal_quantile(honest(log_alpha).log_first[0]))
        return fixed_count.Staircase.at_radius(radius / math.sqrt(2))

    monkeypatch.setattr(fixed_count, "staircase", shrunk)
    assert worst_miss(look(AuditBinomial(), all_pairs(20, 20), 0.05), 20, 20) > 0.05


def _normal_quantile(log_tail: float) -> float:
    from scipy.special import ndtri_exp

    return float(ndtri_exp(log_tail))


def test_the_binomial_bound_is_not_needlessly_wide() -> None:
    """Sharpness at n = 60: its worst miss is over a fifth of delta; a disc of two dimensions pays
    for what a half-plane would not.
    """
    exact, kl = (
        worst_miss(look(b, all_pairs(60, 60)), 60, 60) for b in (AuditBinomial(), AuditKl())
    )
    assert exact > 0.2 * 0.05 > kl


@pytest.mark.parametrize("log_alpha", [math.log(0.3), math.log(1e-3), -20.0, -300.0, -680.0])
def test_the_staircase_has_the_stated_probability(log_alpha: float) -> None:
    miss = fixed_count.staircase(log_alpha).miss()
    assert math.log(miss) == pytest.approx(log_alpha, abs=1e-5)
    assert miss <= math.exp(log_alpha)


def test_the_staircase_formula_agrees_with_uniform_draws() -> None:
    stairs = fixed_count.staircase(math.log(0.1))
    u = stream(5, "stairs").random((200_000, 2))
    inside = np.zeros(len(u), dtype=bool)
    for s, t in zip(np.exp(stairs.log_first), np.exp(stairs.log_second), strict=True):
        inside |= (u[:, 0] > s) & (u[:, 1] > t)
    assert 1 - inside.mean() == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 200_000))


def test_a_share_too_small_for_floating_point_says_nothing() -> None:
    intervals = look(AuditBinomial(), AuditCounts.of([[3, 4]], [[10, 10]]), log_size=1000.0)
    assert (intervals.lower[0, 0], intervals.upper[0, 0]) == (-1.0, 1.0)
    assert look(AuditKl(), AuditCounts.of([[3, 4]], [[10, 10]]), log_size=1000.0).upper[0, 0] == 1.0


@by_name
def test_laws_of_the_contract(bound: FixedCountBound) -> None:
    counts, people = np.array([[5, 20, 3], [0, 0, 0], [50, 80, 30]]), [[50, 80, 30]]
    intervals = look(bound, AuditCounts.of(counts, people))
    assert isinstance(bound, FixedCountBound)
    assert (intervals.lower >= -1).all()
    assert (intervals.upper <= 1).all()
    assert not intervals.empty.any()
    exchanged = look(bound, AuditCounts.of(counts[:, [1, 0, 2]], [[80, 50, 30]]))
    assert intervals.upper[:, 0] == pytest.approx(-exchanged.lower[:, 0], abs=1e-9)
    empty = look(bound, AuditCounts.of([[0, 7]], [[0, 10]]))
    assert empty.upper[0, 0] > 0.7
    assert empty.lower[0, 0] < -0.3


@by_name
def test_the_false_negative_rate_has_the_mirrored_gap(bound: FixedCountBound) -> None:
    both = AuditCounts.of([[5, 20, 5, 20]], [[50, 80], [50, 80]], signs=[1, -1])
    intervals = look(bound, both)
    assert intervals.upper[0, 0] == pytest.approx(-intervals.lower[0, 1], abs=1e-12)
    assert intervals.lower[0, 0] == pytest.approx(-intervals.upper[0, 1], abs=1e-12)


@by_name
def test_unresolved_labels_cover_every_completion(bound: FixedCountBound) -> None:
    """Resolved (k, n) = (3, 9), (5, 11); unresolved accepted/rejected (2, 3) and (1, 2): all 2^8
    completions by their counts.
    """
    accepted, people, taken, refused = (3, 5), (9, 11), (2, 1), (3, 2)
    reported = look(
        bound,
        AuditCounts.of(
            [accepted],
            [people],
            unresolved_accepted=[taken],
            unresolved=[[t + r for t, r in zip(taken, refused, strict=True)]],
        ),
    )
    for a, b, c, d in product(range(3), range(4), range(2), range(3)):
        complete = look(bound, AuditCounts.of([[3 + a, 5 + c]], [[9 + a + b, 11 + c + d]]))
        assert reported.lower[0, 0] <= complete.lower[0, 0] + 1e-9
        assert reported.upper[0, 0] >= complete.upper[0, 0] - 1e-9


@pytest.mark.parametrize(("accepted", "n"), [(0, 10), (3, 10), (10, 10), (0, 1), (40, 1000)])
def test_the_kl_limit_contains_the_exact_one(accepted: int, n: int) -> None:
    k, people = np.array([float(accepted)]), np.array([float(n)])
    log_tails = np.array([-0.1, -3.0, -12.0])
    assert (
        AuditKl.upper_limit(k, people, log_tails)
        >= AuditBinomial.upper_limit(k, people, log_tails) - 1e-12
    ).all()


def test_joint_binomial_is_never_wider_than_kl_and_far_sharper_than_hoeffding_near_zero() -> None:
    counts = AuditCounts.of([[20, 40]], [[1000, 2000]])
    width = {
        b.name: float(np.ptp([i.lower[0, 0], i.upper[0, 0]]))
        for b in BOUNDS
        for i in [look(b, counts, log_size=5.3)]
    }
    assert width["joint exact binomial on audits"] < width["joint KL on audits"]
    assert width["joint exact binomial on audits"] < 0.33 * width["joint Hoeffding on audits"]


def test_dkw_holds_for_thresholds_found_in_the_data() -> None:
    """All cut-offs at once, 1,000 samples: misses <= 80 has false alarm 2e-5 at .05."""
    generator, n, m, misses = stream(9, "dkw"), 40, 70, 0
    for _ in range(1000):
        first, second = generator.random(n), generator.random(m)
        cuts = np.sort(np.concatenate([first, second]))
        accepted = np.stack(
            [(first[:, None] <= cuts).sum(0), (second[:, None] <= cuts).sum(0)], axis=1
        )
        intervals = look(AuditDkw(), AuditCounts.of(accepted, [[n, m]]), log_size=math.inf)
        misses += bool(((intervals.lower > 0) | (intervals.upper < 0)).any())
    assert misses <= 80


@by_name
def test_all_hypotheses_hold_at_once_only_because_the_union_is_paid(bound: FixedCountBound) -> None:
    """300 unrelated hypotheses with rate .2, 200 samples: <= 24 samples with a miss (false alarm
    1e-4 at delta = .05).

    Negative control, delta not split: the sharp bound then misses in nearly every sample. DKW: each
    on a column of its own.
    """
    counts = stream(12, "union").binomial([400, 250], 0.2, size=(200, 300, 2))

    def samples_missed(log_size: float, columns: int) -> int:
        rows = AuditCounts.of(counts.reshape(-1, 2), [[400, 250]])
        intervals = look(bound, rows, log_size=log_size, columns=columns)
        return int(
            ((intervals.lower > 0) | (intervals.upper < 0)).reshape(200, 300).any(axis=1).sum()
        )

    assert samples_missed(math.log(300), 300) <= 24
    if isinstance(bound, AuditBinomial):
        assert samples_missed(0.0, 1) > 150


def test_bad_counts_are_refused() -> None:
    with pytest.raises(LengthMismatch):
        AuditCounts.of([[1, 2, 3]], [[5, 5]])
    with pytest.raises(InvalidInput, match="outside"):
        AuditCounts.of([[6, 2]], [[5, 5]])
    with pytest.raises(InvalidInput, match="unresolved_accepted"):
        AuditCounts.of([[1, 2]], [[5, 5]], unresolved_accepted=[[1, 1]])
    with pytest.raises(InvalidInput, match="union"):
        look(AuditBinomial(), AuditCounts.of([[1, 2]], [[5, 5]]), log_size=math.inf)
    with pytest.raises(InvalidInput, match="looks"):
        PresetLooks(first=0)


def test_looks_are_strictly_increasing_and_their_shares_sum_to_delta() -> None:
    looks = PresetLooks(first=1, growth=1.01)
    counts = [looks.count(k) for k in range(1, 60)]
    assert all(a < b for a, b in pairwise(counts))
    assert sum(looks.delta_of(k, 0.05) for k in range(1, 5000)) < 0.05
    assert [looks.reached(n) for n in (0, 1, 2)] == [0, 1, 2]


def test_intersections_shrink_and_an_empty_one_is_seen() -> None:
    first = AuditIntervals(np.array([[-0.1]]), np.array([[0.2]]))
    second = AuditIntervals(np.array([[0.0]]), np.array([[0.3]]))
    both = first.intersect(second)
    assert (both.lower[0, 0], both.upper[0, 0]) == (0.0, 0.2)
    assert first.intersect(AuditIntervals(np.array([[0.25]]), np.array([[0.3]]))).empty.all()


class TestTheTrap:
    """An adversary who stops auditing when the pooled interval misses the truth, against the same
    bound at preset counts.
    """

    runs, audits, delta = 1000, 6000, 0.05

    def accepted(self) -> np.ndarray:
        """(runs, audits/2, 2) running counts of accepted negatives of two groups that arrive in
        turn; both rates are 1/2.
        """
        draws = stream(1, "trap").random((self.runs, self.audits // 2, 2)) < 0.5
        return draws.cumsum(axis=1)

    def misses(self, counts: np.ndarray, n: int, delta: float) -> np.ndarray:
        intervals = look(AuditHoeffding(), AuditCounts.of(counts[:, n - 1], [[n, n]]), delta)
        return np.asarray((intervals.lower[:, 0] > 0) | (intervals.upper[:, 0] < 0))

    def test_pooling_audits_up_to_a_round_chosen_by_their_features_misses(self) -> None:
        """Nominal 5%: 1,000 runs, so more than 86 misses has probability 1e-6 under the nominal
        rate.
        """
        counts, stopped = self.accepted(), np.zeros(self.runs, dtype=bool)
        for n in range(5, self.audits // 2, 2):
            stopped |= self.misses(counts, n, self.delta)
        assert stopped.sum() > 86

    def test_preset_counts_do_not(self) -> None:
        counts, missed, looks = (
            self.accepted(),
            np.zeros(self.runs, dtype=bool),
            PresetLooks(first=5, growth=1.5),
        )
        for k in range(1, looks.reached(self.audits // 2) + 1):
            missed |= self.misses(counts, looks.count(k), looks.delta_of(k, self.delta))
        assert missed.sum() <= 86
