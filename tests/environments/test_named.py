"""The populations of section 4 and the named ones are what their descriptions say."""

import numpy as np
import pytest

from evenhand import FalsePositiveRate, Mixture
from evenhand.environments import LowerBound, hard, lending, random_population, threshold_population
from evenhand.errors import InvalidInput
from evenhand.hypotheses.constants import ACCEPT_ALL


def losses_and_gaps(env: LowerBound) -> tuple[list[float], list[float]]:
    bound = env.hypotheses.bind(env.features, None)
    policies = [Mixture((bound.hypothesis(h),), (1.0,)) for h in range(4)]  # type: ignore[attr-defined]
    return [env.loss(p) for p in policies], [env.gap(p) for p in policies]


@pytest.mark.parametrize("gap", [1 / 16, 0.05, 0.003])
def test_the_lower_bound_instances_have_the_papers_losses_and_gaps(gap: float) -> None:
    """The two tables of section 4: reject, accept, h1, h2."""
    for which, losses, gaps in (
        (1, [0.5, 0.5, 0.25, 0.25 - 2 * gap], [0, 0, 4 * gap, 0]),
        (2, [0.5, 0.5, 0.25 - 2 * gap, 0.25], [0, 0, 0, 4 * gap]),
    ):
        env = LowerBound(which, gap)
        found = losses_and_gaps(env)
        assert found[0] == pytest.approx(losses, abs=1e-14)
        assert found[1] == pytest.approx(gaps, abs=1e-14)
        assert env.optimum(0.0)[0] == pytest.approx(0.25 - 2 * gap, abs=1e-12)
        assert env.params == {"environment": "lower bound", "which": which, "gap": gap}


def test_what_one_instance_calls_best_is_unfair_on_the_other() -> None:
    first, second = LowerBound(1, 0.05), LowerBound(2, 0.05)
    assert second.gap(first.optimum(0.0)[1]) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("which", "gap", "words"),
    [(3, 0.01, "which is 3"), (1, 0.07, "1/16"), (2, 0.0, "1/16"), (1, np.nan, "1/16")],
)
def test_other_instances_do_not_exist(which: int, gap: float, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        LowerBound(which, gap)


def test_the_hard_instance_shrinks_with_the_fourth_root_of_the_horizon() -> None:
    assert hard(1e4).rate_gap == pytest.approx(0.03)
    assert hard(1e8).rate_gap == pytest.approx(0.003)
    with pytest.raises(InvalidInput, match="1/16"):
        hard(100)
    with pytest.raises(InvalidInput, match="horizon"):
        hard(0)


@pytest.mark.parametrize(
    ("env", "shape", "optima"),
    [
        (
            random_population(0),
            (204, 100),
            [0.229003515001, 0.228685871909, 0.228209407273, 0.226947831071],
        ),
        (
            random_population(3),
            (204, 100),
            [0.267307581349, 0.266221730523, 0.264592954283, 0.263314142622],
        ),
        (
            threshold_population(),
            (441, 100),
            [0.238482206525, 0.235730521192, 0.232683573122, 0.224828044141],
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_measured_populations_never_change(
    env: LowerBound, shape: tuple[int, int], optima: list[float]
) -> None:
    """Optimal losses at allowed gaps 0, .02, .05 and 1, of the definitions with which the
    documents' figures were measured.
    """
    assert env.accepts.shape == shape
    assert [env.optimum(limit)[0] for limit in (0, 0.02, 0.05, 1)] == pytest.approx(
        optima, abs=1e-10
    )


def test_lending_is_as_described() -> None:
    env = lending()
    table = env.population_sample()
    assert env.accepts.shape == (98, 60)
    assert np.array_equal(env.accepts[:, :30], env.accepts[:, 30:]), (
        "scorecards never look at the region"
    )
    repaid = {}
    for region in ("north", "south"):
        members = table.group == region
        repaid[region] = (
            table.weight[members & (table.label == 1)].sum() / table.weight[members].sum()
        )
    assert table.weight[table.group == "north"].sum() == pytest.approx(0.7)
    assert repaid == pytest.approx({"north": 0.668, "south": 0.411}, abs=5e-4)
    assert [env.optimum(limit)[0] for limit in (1, 0.05, 0.02, 0)] == pytest.approx(
        [0.260, 0.284, 0.291, 0.296], abs=5e-4
    )
    assert env.gap(env.optimum(1)[1], FalsePositiveRate()) == pytest.approx(-0.1785, abs=5e-4)
    assert env.loss(Mixture((ACCEPT_ALL,), (1.0,))) == pytest.approx(0.409, abs=5e-4)
