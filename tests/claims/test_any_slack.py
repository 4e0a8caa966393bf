"""Remark 3.2: for any beta > 0 a guarantee of gamma + beta costs ln(|H|/delta)/beta^2 on top of the
bandit's sqrt(T) ln(|H|/delta).

The guarantee is gamma' = gamma + slack, for slacks from .4 to .025 at one T, which is more than a
factor of 16 in the slack and of 256 in what the remark adds. Exploring is counted as 1 a round.
"""

import math

import pytest
from tests.claims.measure import DELTA, GAMMA, column, lifetimes, mean, population, slope

SLACKS = (0.4, 0.2, 0.1, 0.05, 0.025)


def runs_for(name, slack, horizon, seeds, workers=1, frozen=None):
    """Runs under gamma + slack; `frozen` explores so many rounds whatever the slack is, and
    guarantees nothing: the negative control.
    """
    how = {"limit": GAMMA + slack}
    if frozen is not None:
        how = {"limit": None, "exploration_rounds": frozen}
    return lifetimes(seeds, "two-phase", name, horizon, workers=workers, **how)


def outside(runs, slack):
    """Runs whose set has a member with a true gap above gamma + slack."""
    return int((column(runs, "set_gap") > GAMMA + slack + 1e-9).sum())


def constants(name, found, horizon):
    """By slack: T0 + regret in the set over ln(|H|/delta)/slack^2 + sqrt(T) ln(|H| T/delta)."""
    logarithm = population(name).hypotheses.log_size - math.log(DELTA)
    bandit = math.sqrt(horizon) * (logarithm + math.log(horizon))
    return [
        (mean(runs, "exploration") + mean(runs, "bandit_regret")) / (logarithm / slack**2 + bandit)
        for slack, runs in found.items()
    ]


def faults(name, found, horizon):
    """What the remark forbids: a member above the guarantee, an exploration that grows otherwise
    than 1/slack^2, and a cost that is not of the order of the two terms.
    """
    laws = {
        "guarantee": all(outside(runs, slack) == 0 for slack, runs in found.items()),
        "exploration": abs(
            slope(list(found), [mean(runs, "exploration") for runs in found.values()]) + 2
        )
        <= 0.1,
        "cost": max(constants(name, found, horizon)) <= 15,
    }
    return [law for law, kept in laws.items() if not kept]


@pytest.mark.thorough
def test_a_smaller_slack_costs_its_square():
    """random, T = 1e6, 2 seeds, slacks .2, .1, .05: T0 varies by 2%, so a slope of -2 +- .1 raises
    no false alarm; a false guarantee has a probability of 5% a run at most. Negative control: the
    same with the exploration frozen.
    """
    found = {slack: runs_for("random", slack, 10**6, range(2)) for slack in (0.2, 0.1, 0.05)}
    assert faults("random", found, 10**6) == []
    frozen = {
        slack: runs_for("random", slack, 10**6, range(2), frozen=2000) for slack in (0.2, 0.1, 0.05)
    }
    assert faults("random", frozen, 10**6) == ["guarantee", "exploration"]


def test_the_check_sees_a_cost_of_another_order():
    """Negative control: accepting everybody for half of all rounds."""
    found = {slack: runs_for("random", slack, 10**6, range(1), frozen=500_000) for slack in (0.2,)}
    assert max(constants("random", found, 10**6)) > 15


@pytest.mark.claims
@pytest.mark.parametrize("name", ["random", "lending"])
def test_full(claims, workers, name):
    """T = 1e7, 10 seeds, five slacks; T0 has a standard error of at most 1.1%."""
    horizon = 10**7
    found = {slack: runs_for(name, slack, horizon, range(10), workers) for slack in SLACKS}
    frozen = {
        slack: runs_for(name, slack, horizon, range(3), workers, frozen=2000) for slack in SLACKS
    }
    explored = [mean(runs, "exploration") for runs in found.values()]
    bandit = [mean(runs, "bandit_regret") for runs in found.values()]
    wrong = faults(name, found, horizon)
    control = faults(name, frozen, horizon)
    claims.add(
        f"remark 3.2: guarantees gamma + .4, .2, .1, .05, .025 on {name}, T=1e7, 10 seeds",
        "no member of a set above; T0 ~ slack^-2 +- .1; T0 + regret <= 15 (ln(|H|/delta)/slack^2 + "
        "sqrt(T) ln(|H|T/delta))",
        f"{sum(outside(runs, slack) for slack, runs in found.items())} above; T0 "
        f"{', '.join(f'{x:,.0f}' for x in explored)} (slope {slope(SLACKS, explored):.3f}); regret "
        f"in the set {', '.join(f'{x:,.0f}' for x in bandit)}; constant "
        f"{', '.join(f'{x:.2f}' for x in constants(name, found, horizon))} (T0 frozen at 2,000 "
        f"breaks: {', '.join(control)})",
        not wrong,
    )
    assert wrong == []
    assert set(control) == {"guarantee", "exploration"}
