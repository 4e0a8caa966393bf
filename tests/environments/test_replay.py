"""A table as a population: drawn again and again, or streamed once."""

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.tree import DecisionTreeClassifier

from evenhand import (
    Estimator,
    FalsePositiveRate,
    FiniteClass,
    LabelledSample,
    Prices,
    ScoreThresholds,
)
from evenhand.environments import Discrete, Replay, Scores
from evenhand.errors import CannotEstimateRate, InvalidInput
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.hypotheses.thresholds import Threshold
from evenhand.policies import Mixture


def table(rows: int = 200, seed: int = 0) -> LabelledSample:
    return Scores().draw(rows, np.random.default_rng(seed))


def test_loss_and_gap_are_those_of_the_table() -> None:
    sample = table()
    env = Replay(sample)
    policy = Mixture((Threshold(0, 0.1, 1), ACCEPT_ALL), (0.7, 0.3))
    accept = policy.acceptance(sample.features)
    mistakes = np.where(sample.label == 1, 1 - accept, accept)
    assert env.loss(policy) == pytest.approx(mistakes.mean(), abs=1e-14)
    rates = [accept[(sample.group == j) & (sample.label == -1)].mean() for j in (1, -1)]
    assert env.gap(policy, FalsePositiveRate()) == pytest.approx(rates[0] - rates[1], abs=1e-13)
    amounts = np.arange(len(sample), dtype=float)
    assert env.loss(policy, Prices(amounts, 0.0)) == pytest.approx(
        (amounts * accept * (sample.label == -1)).mean()
    )
    with pytest.raises(InvalidInput, match="200 rows"):
        env.loss(policy, Prices(amounts[:5], 0.0))


def test_with_replacement_rows_come_in_proportion_to_their_counts() -> None:
    sample = LabelledSample(np.arange(4.0)[:, None], [0, 1, 0, 1], [1, 1, -1, -1], [1, 2, 3, 4])
    env = Replay(sample)
    seen = np.bincount(
        env.draw(20_000, np.random.default_rng(1)).features[:, 0].astype(int), minlength=4
    )
    expected = 20_000 * np.array([0.1, 0.2, 0.3, 0.4])
    assert chi2.sf(((seen - expected) ** 2 / expected).sum(), 3) > 1e-6
    assert chi2.sf(((seen - 5_000) ** 2 / 5_000).sum(), 3) < 1e-6
    assert env.remaining is None


@pytest.mark.parametrize("seed", [None, 7])
def test_a_stream_shows_each_row_once_and_then_says_so(seed: int | None) -> None:
    sample = table()
    env = Replay(sample, streamed=True, seed=seed)
    generator = np.random.default_rng(0)
    parts = [env.draw(150, generator), env.draw(50, generator)]
    seen = np.concatenate([part.features[:, 0] for part in parts])
    assert np.array_equal(np.sort(seen), np.sort(sample.features[:, 0]))
    assert np.array_equal(seen, sample.features[:, 0]) is (seed is None)
    with pytest.raises(InvalidInput, match="0 of the 200"):
        env.draw(1, generator)


def test_a_refused_draw_loses_nothing_and_fresh_starts_again() -> None:
    env = Replay(table(), streamed=True, seed=1)
    generator = np.random.default_rng(0)
    first = env.draw(190, generator)
    with pytest.raises(InvalidInput, match=r"11 .* 10 of the 200"):
        env.draw(11, generator)
    assert env.remaining == 10
    again = env.fresh()
    assert again.remaining == 200
    assert np.array_equal(again.draw(190, generator).features, first.features)
    assert env.remaining == 10


def test_the_optimum_of_a_replayed_population_is_the_populations() -> None:
    r = np.random.default_rng(5)
    env = Discrete(
        r.dirichlet(np.ones(10)), r.random(10), np.arange(10) % 2, r.random((9, 10)) < 0.5
    )
    replay = Replay(env.population_sample(), hypotheses=env.hypotheses)
    for limit in (0.0, 0.03, 1.0):
        assert replay.optimum(limit)[0] == pytest.approx(env.optimum(limit)[0], abs=1e-10)
        assert replay.loss(replay.optimum(limit)[1]) == pytest.approx(
            replay.optimum(limit)[0], abs=1e-10
        )
    priced = Prices(r.random(10), 2.0)
    both = Prices(np.tile(np.asarray(priced.false_accept), 2), 2.0)
    assert replay.optimum(0.03, prices=both)[0] == pytest.approx(
        env.optimum(0.03, prices=priced)[0], abs=1e-10
    )


def test_the_optimum_of_thresholds_is_the_best_of_all_cuts() -> None:
    sample = table(60)
    loss, policy = Replay(sample, hypotheses=ScoreThresholds()).optimum(1.0)
    cuts = np.append(sample.features[:, 0], np.inf)
    assert loss == pytest.approx(
        min(((sample.features[:, 0] >= c) != (sample.label == 1)).mean() for c in cuts)
    )
    assert len(policy.weights) == 1


def test_a_heuristic_class_still_keeps_the_limit() -> None:
    tree = Estimator(DecisionTreeClassifier(max_depth=2, random_state=0))
    env = Replay(table(500), hypotheses=tree)
    loss, policy = env.optimum(0.05)
    assert abs(env.gap(policy)) <= 0.05 + 1e-9
    assert loss == pytest.approx(env.loss(policy), abs=1e-9)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: Replay(table()).optimum(0.1), InvalidInput, "class"),
        (lambda: Replay(table(), seed=3), InvalidInput, "stream"),
        (
            lambda: Replay(LabelledSample([[0.0], [1.0]], [0, 1], [1, -1], [1, 2]), streamed=True),
            InvalidInput,
            "counts",
        ),
        (
            lambda: Replay(LabelledSample([[0.0], [1.0]], [0, 0], [1, -1])),
            CannotEstimateRate,
            "two groups",
        ),
        (lambda: Replay(table()).draw(0, np.random.default_rng(0)), InvalidInput, "one"),
    ],
)
def test_what_cannot_be_is_refused(build, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        build()


def test_params_say_how_rows_come() -> None:
    env = Replay(table(), streamed=True, seed=4, hypotheses=FiniteClass([lambda x, g: x[:, 0] > 0]))
    assert env.params == {
        "environment": "replay",
        "rows": 200,
        "columns": 1,
        "groups": [-1, 1],
        "streamed": True,
        "seed": 4,
    }
