"""Ways to break exponential weights over the fair net that its tests once did not see: a learning
rate of 0 or a hundred times too small, and the two members of each pair swapped.

Two checks are exact; that it learns is statistical (`tests/algorithms/exp4_checks.py` has its error
rates). They pass on the code as it is in `tests/algorithms/test_exponential_weights.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.algorithms import exp4_checks

from evenhand.algorithms import fair_net
from evenhand.algorithms.fair_net import FairNet

CHECKS = (
    exp4_checks.check_exp4_is_the_formula,
    exp4_checks.check_exp4_two_sided_is_the_formula,
    exp4_checks.check_exp4_learns,
)


@dataclass(frozen=True)
class Mutant:
    """What is broken, and how."""

    name: str
    breaks: Callable[[pytest.MonkeyPatch], None]


def rate_times(factor):
    real = FairNet.mean

    def breaks(patch):
        patch.setattr(FairNet, "mean", lambda net, rate: real(net, factor * rate))

    return breaks


def members_swapped(patch):
    real = fair_net._Total.add
    patch.setattr(
        fair_net._Total,
        "add",
        lambda total, log_mass, first, second, weight: real(total, log_mass, second, first, weight),
    )


def ends_left_out(patch):
    """The net is a grid alone."""
    nothing = property(lambda pairs: pairs.low < 0)
    patch.setattr(fair_net._Pairs, "has_low", nothing)
    patch.setattr(fair_net._Pairs, "has_high", nothing)


MUTANTS = (
    Mutant("rate 0", rate_times(0.0)),
    Mutant("rate 100 times too small", rate_times(0.01)),
    Mutant("members of a pair swapped", members_swapped),
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_mutant_is_caught(mutant, check, monkeypatch):
    mutant.breaks(monkeypatch)
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize("check", CHECKS[:2], ids=lambda check: check.__name__)
def test_a_net_without_the_ends_is_caught(check, monkeypatch):
    ends_left_out(monkeypatch)
    with pytest.raises(AssertionError):
        check()
