"""The truth of a discrete population against plain loops, and its two ways of drawing against each
other.
"""

from itertools import combinations_with_replacement
from math import factorial

import numpy as np
import pytest
from scipy.stats import chi2

from evenhand import FalseNegativeRate, FalsePositiveRate, Prices, SelectionRate
from evenhand.environments import Discrete
from evenhand.errors import CannotEstimateRate, InvalidInput, LengthMismatch
from evenhand.fairness import GapConstraints, Rate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture

FALSE_ALARM = 1e-6
"""The chance that a right chi-square test of this file would reject, were its seed not fixed."""


def population(seed: int, contexts: int = 12, members: int = 7, groups: int = 2) -> Discrete:
    r = np.random.default_rng(seed)
    return Discrete(
        r.dirichlet(np.ones(contexts)),
        r.random(contexts),
        np.arange(contexts) % groups,
        r.random((members, contexts)) < 0.5,
    )


def some_policy(env: Discrete, seed: int) -> Mixture:
    r = np.random.default_rng(seed)
    bound = env.hypotheses.bind(env.features, None)
    parts = [bound.hypothesis(int(h)) for h in r.choice(len(env.hypotheses), 3, replace=False)]
    return Mixture((*parts, ACCEPT_ALL), tuple(r.dirichlet(np.ones(4)).tolist()))


def rate_by_loops(env: Discrete, acceptance: np.ndarray, group: object, kind: type[Rate]) -> float:
    wrong = total = 0.0
    for p, eta, g, a in zip(env.probability, env.positive_rate, env.group, acceptance, strict=True):
        for label, mass in ((1, p * eta), (-1, p * (1 - eta))):
            counted = {
                FalsePositiveRate: label == -1,
                FalseNegativeRate: label == 1,
                SelectionRate: True,
            }[kind]
            if g == group and counted:
                total += mass
                wrong += mass * (1 - a if kind is FalseNegativeRate else a)
    return wrong / total


@pytest.mark.parametrize("seed", range(5))
def test_loss_is_the_probability_of_a_mistake(seed: int) -> None:
    env = population(seed)
    policy = some_policy(env, seed)
    accept = policy.acceptance(env.features)
    mistake = sum(
        p * (eta * (1 - a) + (1 - eta) * a)
        for p, eta, a in zip(env.probability, env.positive_rate, accept, strict=True)
    )
    assert env.loss(policy) == pytest.approx(mistake, abs=1e-14)


@pytest.mark.parametrize("kind", [FalsePositiveRate, FalseNegativeRate, SelectionRate])
@pytest.mark.parametrize("seed", range(3))
def test_gap_is_the_difference_of_rates(seed: int, kind: type[Rate]) -> None:
    env = population(seed)
    policy = some_policy(env, seed)
    accept = policy.acceptance(env.features)
    expected = rate_by_loops(env, accept, 1, kind) - rate_by_loops(env, accept, 0, kind)
    assert env.gap(policy, kind()) == pytest.approx(expected, abs=1e-13)


def test_all_pairs_of_three_groups_and_two_rates() -> None:
    env = population(3, groups=3)
    policy = some_policy(env, 1)
    accept = policy.acceptance(env.features)
    expected = [
        rate_by_loops(env, accept, k, kind) - rate_by_loops(env, accept, j, kind)
        for kind in (FalsePositiveRate, FalseNegativeRate)
        for j, k in ((0, 1), (0, 2), (1, 2))
    ]
    assert env.gaps(policy, [FalsePositiveRate(), FalseNegativeRate()]) == pytest.approx(
        expected, abs=1e-13
    )
    with pytest.raises(InvalidInput, match="gaps"):
        env.gap(policy)


def test_prices_are_numbers_or_one_per_context() -> None:
    env = population(4)
    policy = some_policy(env, 2)
    accept = policy.acceptance(env.features)
    r = np.random.default_rng(0)
    fa, fr = r.random(len(env)), r.random(len(env))
    expected = float(
        (
            env.probability
            * (env.positive_rate * fr * (1 - accept) + (1 - env.positive_rate) * fa * accept)
        ).sum()
    )
    assert env.loss(policy, Prices(fa, fr)) == pytest.approx(expected, abs=1e-14)
    assert env.loss(policy, Prices(2.0, 2.0)) == pytest.approx(2 * env.loss(policy))
    with pytest.raises(LengthMismatch, match="price"):
        env.loss(policy, Prices(fa[:3], 1.0))


def test_the_population_sample_has_the_populations_rates() -> None:
    env = population(5)
    sample = env.population_sample()
    assert sample.weight.sum() == pytest.approx(1.0)
    policy = some_policy(env, 3)
    measured = GapConstraints.on(FalsePositiveRate(), sample).gaps(
        policy.acceptance(sample.features)
    )
    assert measured[0] == env.gap(policy)


def test_constants_have_no_gap_and_the_losses_of_the_base_rate() -> None:
    env = population(6)
    positive = float(env.probability @ env.positive_rate)
    for constant, loss in ((ACCEPT_ALL, 1 - positive), (REJECT_ALL, positive)):
        policy = Mixture((constant,), (1.0,))
        assert env.loss(policy) == pytest.approx(loss)
        assert abs(env.gap(policy)) < 1e-14


# the law of draws


def tiny() -> tuple[Discrete, np.ndarray]:
    """Two contexts; the acceptance of each."""
    return Discrete([0.3, 0.7], [0.6, 0.25], [-1, 1], [[True, False]]), np.array([0.8, 0.4])


def cell_probabilities(env: Discrete, acceptance: np.ndarray) -> np.ndarray:
    """Rejected, accepted positive, accepted negative, for each context."""
    accepted = env.probability * acceptance
    cells = [
        env.probability - accepted,
        accepted * env.positive_rate,
        accepted * (1 - env.positive_rate),
    ]
    return np.concatenate(cells)


def outcomes(rounds: int, cells: np.ndarray) -> dict[tuple[int, ...], float]:
    """The exact probability of every vector of counts."""
    found = {}
    for draw in combinations_with_replacement(range(len(cells)), rounds):
        counts = tuple(np.bincount(draw, minlength=len(cells)).tolist())
        ways = factorial(rounds) / np.prod([factorial(c) for c in counts])
        found[counts] = float(ways * np.prod(cells ** np.array(counts)))
    return found


def chi_square_p(observed: list[tuple[int, ...]], law: dict[tuple[int, ...], float]) -> float:
    total = len(observed)
    seen = dict.fromkeys(law, 0)
    for key in observed:
        seen[key] += 1
    statistic = sum((seen[key] - total * p) ** 2 / (total * p) for key, p in law.items())
    return float(chi2.sf(statistic, len(law) - 1))


def counted(
    env: Discrete, acceptance: np.ndarray, rounds: int, generator: np.random.Generator
) -> tuple[int, ...]:
    counts = env.draw_counts(rounds, acceptance, generator)
    assert counts.rounds == rounds
    return tuple(
        np.concatenate(
            [counts.rejected, counts.accepted_positive, counts.accepted_negative]
        ).tolist()
    )


def one_by_one(
    env: Discrete, acceptance: np.ndarray, rounds: int, generator: np.random.Generator
) -> tuple[int, ...]:
    people = env.draw(rounds, generator)
    context = people.features[:, 0].astype(int)
    accepted = generator.random(rounds) < acceptance[context]
    kind = np.where(accepted, np.where(people.label == 1, 1, 2), 0)
    return tuple(np.bincount(kind * len(env) + context, minlength=3 * len(env)).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("engine", [counted, one_by_one])
def test_both_engines_have_the_exact_joint_law(engine) -> None:
    """All 21 outcomes of two rounds; what would be seen is shown by the negative control below."""
    env, acceptance = tiny()
    generator = np.random.default_rng(11)
    observed = [engine(env, acceptance, 2, generator) for _ in range(10_000)]
    assert chi_square_p(observed, outcomes(2, cell_probabilities(env, acceptance))) > FALSE_ALARM


@pytest.mark.slow
def test_the_test_of_the_law_can_fail() -> None:
    """Negative control: labels .3 instead of .25, and acceptances .05 too large."""
    env, acceptance = tiny()
    law = outcomes(2, cell_probabilities(env, acceptance))
    generator = np.random.default_rng(12)
    other = Discrete([0.3, 0.7], [0.6, 0.3], [-1, 1], [[True, False]])
    assert (
        chi_square_p([counted(other, acceptance, 2, generator) for _ in range(10_000)], law)
        < FALSE_ALARM
    )
    assert (
        chi_square_p([counted(env, acceptance + 0.05, 2, generator) for _ in range(10_000)], law)
        < FALSE_ALARM
    )


def test_both_engines_agree_on_a_large_population() -> None:
    env = population(7, contexts=40)
    acceptance = np.random.default_rng(0).random(40)
    both = np.array(
        [
            engine(env, acceptance, 200_000, np.random.default_rng(13))
            for engine in (counted, one_by_one)
        ]
    )
    expected = both.sum(axis=0) / 2
    kept = expected > 5
    statistic = float((((both - expected) ** 2)[:, kept] / expected[kept]).sum())
    assert chi2.sf(statistic, int(kept.sum()) - 1) > FALSE_ALARM


def test_impossible_things_are_never_drawn() -> None:
    env = Discrete([0.5, 0.5, 0.0], [0.0, 1.0, 0.5], [0, 1, 0], [[True, False, True]])
    counts = env.draw_counts(10**6, [0.0, 1.0, 1.0], np.random.default_rng(0))
    assert counts.rejected[2] == counts.accepted[2] == 0
    assert counts.accepted[0] == 0
    assert counts.accepted_negative[1] == counts.rejected[1] == 0


def test_ten_million_rounds_cost_no_more_than_a_thousand() -> None:
    env, acceptance = tiny()
    counts = env.draw_counts(10**12, acceptance, np.random.default_rng(0))
    assert counts.rounds == 10**12


def test_draws_depend_on_the_generator_alone() -> None:
    env = population(8)
    first, second = (env.draw(50, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first.features, second.features)
    assert np.array_equal(first.label, second.label)
    assert env.fresh() is env


# refusals

GOOD = {
    "probability": [0.5, 0.5],
    "positive_rate": [0.2, 0.3],
    "group": [0, 1],
    "accepts": [[True, False]],
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"probability": [0.5, 0.6]}, "1.1"),
        ({"probability": [1.5, -0.5]}, r"probability\[0\] is 1.5"),
        ({"probability": []}, "context"),
        ({"probability": [np.nan, 1.0]}, "nan"),
        ({"positive_rate": [0.2, 1.2]}, r"positive_rate\[1\] is 1.2"),
        ({"positive_rate": [0.2]}, "positive_rate"),
        ({"group": [0, 0]}, "two groups"),
        ({"probability": [1.0, 0.0]}, "two groups"),
        ({"group": [0, 1, 1]}, "shape"),
        ({"accepts": [[True, False, True]]}, r"\(hypotheses, 2\)"),
        ({"accepts": [True, False]}, r"\(hypotheses, 2\)"),
        ({"accepts": [[0.5, 1.0]]}, "boolean"),
    ],
)
def test_impossible_populations_cannot_be_built(change: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Discrete(**{**GOOD, **change})  # type: ignore[arg-type]


def test_bad_draws_are_refused() -> None:
    env, acceptance = tiny()
    generator = np.random.default_rng(0)
    with pytest.raises(InvalidInput):
        env.draw(0, generator)
    with pytest.raises(InvalidInput, match=r"acceptance\[0\]"):
        env.draw_counts(10, [1.5, 0.0], generator)
    with pytest.raises(InvalidInput, match="rounds"):
        env.draw_counts(-1, acceptance, generator)


def test_a_group_without_negatives_has_no_false_positive_rate() -> None:
    env = Discrete([0.5, 0.5], [1.0, 0.3], [0, 1], [[True, False]])
    with pytest.raises(CannotEstimateRate, match="group 0"):
        env.gap(Mixture((ACCEPT_ALL,), (1.0,)))


def test_params_tell_populations_apart() -> None:
    first, second = population(0), population(1)
    assert first.params["digest"] != second.params["digest"]
    assert first.params["groups"] == [0, 1]
    assert "contexts=12" in repr(first)
