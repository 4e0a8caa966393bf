"""Alternatives to an incumbent at full size: proofs beside an enumeration, verdicts in populations.

Populations and the enumeration are those of tests/test_table_alternatives.py. At 200 populations
more than 20 wrong ones refute delta = .05 (false-alarm rate 1.5e-3); a miss probability of .15 is
caught with probability .97. The negative controls take the tested people for the population.
"""

from copy import copy

import numpy as np
import pytest
from tests.test_table_alternatives import Population, brute_least_gap, errors_of, played
from tests.test_table_exclusion import exact_problem

import evenhand as eh
from evenhand.table_alternatives import alternatives
from evenhand.table_exclusion import least_gap

PROBLEMS = 200
POPULATIONS = 200
DELTA = 0.05
SIZES = (2000, 8000, 30_000)


@pytest.mark.claims
def test_full_proofs_beside_the_enumeration(claims):
    wrong = loose = informative = by_points = 0
    for seed in range(PROBLEMS):
        costs, gaps, extra = exact_problem(seed)
        bound, proof = least_gap(costs, gaps[:, None], gaps[:, None], extra)
        truth = brute_least_gap(costs, gaps, extra)
        wrong += bound > truth + 1e-9
        loose += bound < truth - 1e-6
        informative += truth > 0
        p, q, r = 1.5 * proof
        by_points += (gaps * (p - q) + r * (costs - extra)).min() > truth + 1e-9
    name = "alternatives: proofs for a whole class against enumerated mixtures"
    figure = f"{wrong} wrong, {loose} not tight, of {PROBLEMS} ({informative} with a gap above 0)"
    claims.add(name, f"0 wrong of {PROBLEMS}", figure, wrong == 0)
    claims.add(
        f"{name}: multipliers that prove too much (control)",
        "falls",
        f"{by_points} wrong",
        by_points > 10,
    )
    assert wrong == 0
    assert by_points > 10


def beside_the_cheapest(seed, people):
    """Nothing is cheaper than the incumbent, so that no other stump is better: whether ours says
    that one is, and whether some stump is on the very people, at face value.
    """
    world = Population(seed)
    incumbent = min(world.stumps(), key=world.cost)
    sample, decided = world.drawn(people, incumbent)
    found = alternatives(eh.Stumps(), sample, decided, prices=world.prices, seed=seed)
    cell = {
        kind: at for at, kind in enumerate(zip(world.group, world.label, *world.x.T, strict=True))
    }
    kinds = [cell[one] for one in zip(sample.group, sample.label, *sample.features.T, strict=True)]
    drawn = copy(world)
    drawn.chance = np.bincount(kinds, minlength=len(world.chance)) / people
    cheap = drawn.cost(incumbent)
    gap = abs(drawn.gap(incumbent))
    taken = (drawn.cost(one) <= cheap and abs(drawn.gap(one)) < gap for one in world.stumps())
    return found.verdict == "found", any(taken)


@pytest.mark.claims
def test_full_verdicts_in_populations(claims):
    wrong = outside = found = excluded = 0
    for seed in range(POPULATIONS):
        one, false, missed = played(1000 + seed, SIZES[seed % 3], DELTA)
        wrong += bool(false)
        outside += bool(missed)
        found += one.verdict == "found"
        excluded += one.exclusion.at_extra_cost > 0
    beside = [beside_the_cheapest(1000 + seed, 200) for seed in range(60)]
    ours = sum(one for one, _ in beside)
    control = sum(taken for _, taken in beside)
    name = f"alternatives in {POPULATIONS} populations, delta .05"
    limit = 20
    said = f"found {found}, gaps excluded at the incumbent's cost {excluded}"
    claims.add(f"{name}: wrong verdicts", f"<= {limit}", f"{wrong}; {said}", wrong <= limit)
    claims.add(f"{name}: intervals that miss", f"<= {limit}", str(outside), outside <= limit)
    claims.add(
        "alternatives to the cheapest rule, 200 people: searched and tested on them (control)",
        "falls",
        f"{control} of 60 found, all wrong; ours {ours}",
        control > 9 >= ours,
    )
    assert wrong <= limit
    assert outside <= limit
    assert found >= 40
    assert excluded >= 10
    assert control > 9 >= ours


@pytest.mark.claims
def test_full_brackets_without_their_width_fall(claims, monkeypatch):
    """The negative control of the proof on samples: point figures instead of intervals."""

    def exactly(total, squares, people, width, stake, alpha):
        return total / people

    def points(least, most, people, signs, delta):
        rates = least / people
        gap = (rates[:, :, 1:] - rates[:, :, :1])[:, :, 0]
        return gap, gap

    monkeypatch.setattr("evenhand.table_exclusion.least_means", exactly)
    monkeypatch.setattr("evenhand.table_exclusion.gap_ends", points)
    wrong = 0
    for seed in range(40):
        world = Population(1000 + seed)
        incumbent = world.incumbent()
        sample, decided = world.drawn(2000, incumbent)
        found = alternatives(eh.Stumps(), sample, decided, prices=world.prices, seed=seed)
        wrong += bool(errors_of(world, incumbent, found)[0])
    name = "alternatives: proofs from point figures (control)"
    claims.add(name, "falls", f"{wrong} of 40 wrong", wrong > 6)
    assert wrong > 6
