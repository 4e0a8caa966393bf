"""Plans that several tests look at."""

import pytest
from tests.planning.launches import BAD, EASY, SHARES

import evenhand as eh


@pytest.fixture(scope="module")
def easy() -> eh.planning.LaunchPlan:
    return eh.plan(**EASY)


@pytest.fixture(scope="module")
def hopeless() -> eh.planning.LaunchPlan:
    """A limit so small that nothing is certified within the horizon."""
    return eh.plan(
        limit=0.002,
        group_shares=SHARES,
        bad_rates=BAD,
        separation=1.0,
        horizon=5_000,
        prices=eh.Prices(5, 1),
        runs=2,
    )
