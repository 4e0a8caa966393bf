"""Section 1: equalising rates on the labels that happened to be gathered is a feedback loop and
does not keep rates equal on D.
"""

import pytest
from tests.claims.measure import GAMMA, binomial_limit, column, lifetimes

NAMES = ("random", "thresholds", "lending", "D1", "D2")
ABOVE = GAMMA + 0.05


def ending_above(learner, name, seeds, horizon=100_000, workers=1, **settings):
    """The share of runs whose last policy has a true gap above gamma + .05."""
    runs = lifetimes(seeds, learner, name, horizon, workers=workers, **settings)
    return float((column(runs, "last_gap") > ABOVE).mean()), runs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "thresholds"])
def test_greedy_on_gathered_labels_ends_unfair(name):
    """24 runs of T = 1e5. The shares are .57 and .40 (200 seeds); fewer than 3 of 24 have a
    probability of at most 1e-3.

    Negative control: the two-phase learner with a guarantee of gamma + .05 must not be seen as
    unfair by the same check.
    """
    greedy, _ = ending_above("fair-on-gathered", name, range(24), limit=GAMMA)
    ours, _ = ending_above("two-phase", name, range(4), 120_000, limit=ABOVE)
    assert greedy >= 3 / 24
    assert ours == 0


@pytest.mark.claims
@pytest.mark.parametrize("name", NAMES)
def test_full(claims, workers, name):
    """200 runs of T = 1e5 each. For a share of .35, fewer than 50 of 200 occur with probability
    .001; a share of .18 or less is refused with probability .99. D1 and D2 are close to the target
    (27%): asserted at 15%, the table says whether 25% is met. The share depends on the first_rounds
    of the greedy learner (256 by default), see docs/guarantee/claims.md."""
    share, runs = ending_above("fair-on-gathered", name, range(200), workers=workers, limit=GAMMA)
    ours, kept = ending_above("two-phase", name, range(20), 200_000, workers=workers, limit=ABOVE)
    commit, _ = ending_above(
        "explore-then-commit",
        name,
        range(20),
        200_000,
        workers=workers,
        limit=ABOVE,
        same_exploration=True,
    )
    claims.add(
        f"negative control: fair on gathered data ends above gamma + .05, {name}",
        ">= 25% of runs",
        f"{share:.1%} (worst last gap {column(runs, 'last_gap').max():.3f}); "
        f"two-phase with that guarantee: {ours:.0%}",
        share >= 0.25,
        f"{commit:.0%}",
    )
    assert ours * 20 <= binomial_limit(20, 0.05, 1e-3)
    assert (column(kept, "worst_gap") <= ABOVE).all()
    assert share >= (0.25 if name in ("random", "thresholds", "lending") else 0.15)
