"""The instance of section 4 as a trap: learners that stop looking lock in to a wrong policy, and learners that do not know their
promise pass through unfair ones. The two-phase learner does neither."""

import pytest
from tests.claims.measure import PROMISE, column, lifetimes, mean

LOCKED = 0.01
"""A last policy whose loss exceeds the optimum by more is locked in (the exploration floor at T = 1e5 costs .001)."""

WORLDS = [("D1", (1 / 16,)), ("D2", (1 / 16,)), ("D1", (0.03,)), ("D2", (0.03,))]


def verdict(learner, world, seeds, workers=1, **settings):
    """(runs that lock in, largest share of rounds above the promise, the runs)."""
    name, arguments = world
    runs = lifetimes(seeds, learner, name, 100_000, workers=workers, arguments=arguments, **settings)
    return int((column(runs, "last_excess") > LOCKED).sum()), float(column(runs, "share_above").max()), runs


@pytest.mark.parametrize("world", WORLDS)
def test_no_lock_in_and_no_round_above_the_promise(world):
    """6 seeds. Both events have a probability below delta = .05 together, and were never seen; 0 of 6 catches a rate of .54 (power .99)."""
    locked, above, _ = verdict("two-phase", world, range(6))
    assert (locked, above) == (0, 0.0)


def test_the_checks_see_lock_in_and_unfair_rounds():
    """Negative controls: greedy after 8 rounds locks in; the unconstrained bandit passes through unfair policies."""
    locked, _, _ = verdict("fair-on-gathered", WORLDS[2], range(20), first_rounds=8)
    _, above, _ = verdict("unconstrained", WORLDS[0], range(20))
    assert locked >= 1
    assert above > 0


@pytest.mark.claims
@pytest.mark.parametrize("world", WORLDS)
def test_full(claims, workers, world):
    """20 seeds. 0 of 20 catches a rate of lock-in or of unfair rounds of .21 with probability .99."""
    locked, above, runs = verdict("two-phase", world, range(20), workers)
    commit = verdict("explore-then-commit", world, range(20), workers, same_exploration=True)
    greedy = verdict("fair-on-gathered", world, range(20), workers, first_rounds=8)
    free = verdict("unconstrained", world, range(20), workers)
    claims.add(
        f"lower-bound instance {world[0]}, gap {world[1][0]:.4g}, T=1e5, 20 seeds, promise {PROMISE}",
        "no lock-in, zero rounds above the promise",
        f"{locked} lock in, {above:.1%} of rounds above, regret {mean(runs, 'regret'):.0f} (greedy from 8 rounds: {greedy[0]} of 20 "
        f"lock in; unconstrained bandit: up to {free[1]:.2%} of rounds above)",
        (locked, above) == (0, 0.0),
        f"{commit[0]} lock in, {commit[1]:.1%} above, regret {mean(commit[2], 'regret'):.0f}",
    )
    assert (locked, above) == (0, 0.0)
