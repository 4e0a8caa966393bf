"""Whether a launch is worth it, in one sentence with numbers; and if it is held back, which limit
or volume would do.
"""

from dataclasses import dataclass, replace

import numpy as np

from evenhand.planning.lives import LaunchTerms, Lives, certified, live
from evenhand.planning.plan import Answer, Spread
from evenhand.planning.population import Planned
from evenhand.simulate.record import learned_weight
from evenhand.words import FloatArray

WIDER = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Multiples of the limit that are tried when a launch is held back by it."""
LONGER = (3.0, 10.0, 30.0)
"""Multiples of the horizon, likewise."""
MOST_ROUNDS = 10_000_000
FIRST = 200
"""Ahead by then is ahead from the start."""
HELD_BACK, NOTHING = 0.5, 0.1
"""Below these shares of the learned policy's full weight a launch counts as held back, and
practically nothing as certified (also if the weight itself is below their product: a limit of .001
allows .001 of any rule without evidence)."""


@dataclass(frozen=True, eq=False)
class Stakes:
    """What a verdict weighs: costs per person of the best constant and of the best policy within
    the limit, and the simulated lives.
    """

    terms: LaunchTerms
    constant: str
    constant_cost: float
    best_cost: float
    lives: Lives
    final_share: float

    @property
    def possible(self) -> float:
        """What the best policy within the limit would save over the horizon."""
        return self.terms.horizon * (self.constant_cost - self.best_cost)

    @property
    def saving(self) -> FloatArray:
        """What each life saved."""
        return self.terms.horizon * self.constant_cost - self.lives.cost[:, -1]

    @property
    def unit(self) -> str:
        """What costs are counted in."""
        plain = self.terms.prices.false_accept == 1.0 and self.terms.prices.false_reject == 1.0
        return "errors" if plain else "units of cost"


def answer(stakes: Stakes) -> Answer:
    """Clear, where the band over lives lies on one side of zero."""
    if stakes.possible <= 1e-9 * stakes.terms.horizon:
        return "nothing to gain"
    band = Spread.of(stakes.saving)
    if band.low > 0:
        return "worth it"
    return "close call" if band.high > 0 else "not worth it"


def break_even(stakes: Stakes) -> int | None:
    """The round from which the mean cost stays below the best constant's; None if it is above at
    the horizon.
    """
    rounds = stakes.lives.rounds
    ahead = rounds * stakes.constant_cost - stakes.lives.cost.mean(axis=0)
    if ahead[-1] <= 0:
        return None
    behind = np.flatnonzero(ahead <= 0)
    return int(rounds[0 if len(behind) == 0 else behind[-1] + 1])


def verdict(stakes: Stakes) -> str:
    """One sentence with numbers."""
    found, terms = answer(stakes), stakes.terms
    if found == "nothing to gain":
        return (
            f"Nothing to gain: within a gap of {terms.limit:g} no mixture of the rules is cheaper than {stakes.constant}, "
            "at any volume."
        )
    mean, even = float(stakes.saving.mean()), break_even(stakes)
    size = f"{abs(mean):,.0f} {stakes.unit} {'less' if mean > 0 else 'more'} than {stakes.constant}"
    expected = f"over {terms.horizon:,} people the certified learner is expected to cost {size}"
    if found == "worth it":
        since = (
            ", and is ahead from the start"
            if (even or 0) <= FIRST
            else f", and is ahead from about {even:,} people on"
        )
        part = f"{mean / stakes.possible:.0%} of the {stakes.possible:,.0f} that the best policy within the limit would save"
        return f"Worth it: {expected} ({part}){since}."
    opening = "A close call" if found == "close call" else "Not worth it at this volume"
    cheaper = (
        f"it is cheaper in {int((stakes.saving > 0).sum())} of {len(stakes.saving)} simulated lives"
    )
    return f"{opening}: {expected}; {cheaper}, and the best policy within the limit would save {stakes.possible:,.0f}."


def advice(population: Planned, stakes: Stakes) -> tuple[str, ...]:
    """What holds the launch back, and which limit or volume would do: the first that succeeds in
    two simulated lives.
    """
    found = answer(stakes)
    if found == "nothing to gain":
        return _gain_elsewhere(population, stakes)
    if found == "worth it" and stakes.final_share >= HELD_BACK:
        return ()
    terms = stakes.terms
    limits = (replace(terms, limit=terms.limit * k) for k in WIDER if terms.limit * k <= 1)
    horizons = (
        replace(terms, horizon=int(terms.horizon * k))
        for k in LONGER
        if terms.horizon * k <= MOST_ROUNDS
    )
    wider = next((t for t in limits if _succeeds(population, t, stakes.constant_cost)), None)
    longer = next((t for t in horizons if _succeeds(population, t, stakes.constant_cost)), None)
    return (*_held_back(stakes), *_way_out(terms, wider, longer))


def _held_back(stakes: Stakes) -> list[str]:
    if stakes.final_share >= HELD_BACK:
        return []
    little = (
        stakes.final_share < NOTHING
        or float(np.median(stakes.lives.weight[:, -1])) < NOTHING * HELD_BACK
    )
    share = "practically nothing" if little else f"{stakes.final_share:.0%}"
    return [
        f"Of the learned policy's weight {share} is certified within {stakes.terms.horizon:,} people; the rest stays on constants."
    ]


def _way_out(
    terms: LaunchTerms, wider: LaunchTerms | None, longer: LaunchTerms | None
) -> list[str]:
    ways = [f"a limit of about {wider.limit:.2g} at this volume"] if wider is not None else []
    ways += [f"about {longer.horizon:,} people at this limit"] if longer is not None else []
    if ways:
        goal = "at least half of the weight certified, and cheaper than the best constant"
        return [f"What would do ({goal}): {', or '.join(ways)}."]
    most = min(terms.horizon * LONGER[-1], MOST_ROUNDS)
    return [
        f"Neither a limit of {min(terms.limit * WIDER[-1], 1.0):.2g} nor {most:,.0f} people would do; features that tell good from bad "
        "better would."
    ]


def _gain_elsewhere(population: Planned, stakes: Stakes) -> tuple[str, ...]:
    terms = stakes.terms
    for limit in (min(terms.limit * k, 1.0) for k in (*WIDER, 1 / terms.limit)):
        gain = stakes.constant_cost - population.world.optimum(limit, terms.rates, terms.prices)[0]
        if gain > 1e-9:
            return (
                f"From a limit of about {limit:.2g} on there is something to gain: {gain:.2g} {stakes.unit} per person.",
            )
    return (
        "At these prices the rules cannot beat the constant even without a limit; check prices and features.",
    )


def _succeeds(population: Planned, terms: LaunchTerms, constant: float) -> bool:
    full = learned_weight(population.world.optimum(terms.limit, terms.rates, terms.prices)[1])
    if full == 0:
        return False
    lives = live(certified(population, terms), population, terms, range(2))
    ahead = terms.horizon * constant - lives.cost[:, -1]
    return bool((ahead > 0).all() and np.median(lives.weight[:, -1]) >= HELD_BACK * full)
