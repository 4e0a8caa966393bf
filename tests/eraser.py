"""An eraser who knows the coins of the open epoch: the attack that broke bets which were fitted at
a closing.

A person of context x counts in the evidence with phi = m(x) + 1[accepted]/p (N - m(x)): N says
whether the label is in the rate's denominator, and m(x) is a regression from people whose epochs
have closed. The sum of phi over the n_x people of a context is

    sum over the accepted of N/p  +  m(x) (n_x - accepted_x / p).

Whoever may still move m after the coins moves it up where few were accepted and down where many
were, and so makes the evidence say what he likes. The regression forgets people who are erased:
erase the accepted people of x with one label, and m(x) moves towards the other.

The eraser uses the public calls alone. His calls of `decide` run over the end of an epoch: the
coins of the next epoch are tossed before anybody is told that the last one has ended.
"""

import copy
from dataclasses import dataclass

import numpy as np

from evenhand import CertifiedLearner, Prices
from evenhand.environments import Discrete
from evenhand.words import Decisions

LIMIT, DELTA, ROUNDING = 0.1, 0.05, 1e-9
CONTEXTS = 400
PATIENCE = 3000
"""He begins after so many people: whom he erases early he cannot erase when it matters."""
SHARE_OF_HIGH = {"a": 0.62, "b": 0.38}
"""The part of each group whom the only rule accepts."""
GOOD_RATES = {"fpr": (0.8, 0.6), "fnr": (0.65, 0.35), "selection": (0.65, 0.35)}
"""P[y = +1] of those whom the rule accepts, and of the others: the gap of the rule is .215 in the
false positive rate, .220 in the false negative rate.
"""
PRICES = {"fpr": Prices(2.2, 1.0), "fnr": Prices(1.05, 1.0), "selection": Prices(1.05, 1.0)}
"""Rule and constants cost nearly the same, so that neither is left alone for long."""


def many_contexts(rate: str, contexts: int = CONTEXTS) -> Discrete:
    """Contexts that one rule sees alike, in two groups: only a regression tells them apart."""
    each = contexts // 4
    share = [
        0.5 * part / each
        for high in SHARE_OF_HIGH.values()
        for part in (high, 1.0 - high)
        for _ in range(each)
    ]
    accepts = np.tile(np.repeat([True, False], each), 2)
    good = np.where(accepts, *GOOD_RATES[rate])
    return Discrete(share, good, np.repeat(["a", "b"], 2 * each), accepts[np.newaxis], name="many")


def wanted_direction(world: Discrete, rate: str) -> np.ndarray:
    """For each context +1 if the evidence should count more people there than there are, else -1:
    so the gap of the rule looks smaller than it is.
    """
    accepts, group = world.accepts[0], world.group
    bad = 1.0 - world.positive_rate
    inside = world.probability * (bad if rate == "fpr" else world.positive_rate)
    accepted = {g: inside[accepts & (group == g)].sum() / inside[group == g].sum() for g in "ab"}
    larger = max(accepted, key=lambda g: accepted[g])
    return np.where((group == larger) == accepts, -1, 1)


@dataclass(frozen=True)
class Attacked:
    """One run. worst_gap: the largest true gap of a policy that was deployed; erased: how many
    people; counted: how many of them the certificate counted at their worst; crossed: how many
    calls ran over the end of an epoch.
    """

    worst_gap: float
    erased: int
    counted: int
    crossed: int
    suspended: bool

    @property
    def violated(self) -> bool:
        return self.worst_gap > LIMIT + ROUNDING


def rounds_ahead(learner: CertifiedLearner) -> int:
    """The rest of the open epoch, and all of the next one but its last person; the first call stops
    before the end of the first epoch, of which nothing would be known.
    """
    epoch = learner.epoch
    end = epoch.first_round + epoch.rounds
    left = max(end - learner.round, 0)
    return left - 1 if learner.round == 0 else left + max(50, end // 2) - 1


def by_coins(
    world: Discrete,
    direction: np.ndarray,
    rate: str,
    context: np.ndarray,
    decisions: Decisions,
    contexts: np.ndarray,
    labels: np.ndarray,
    own_coins: np.random.Generator | None = None,
) -> np.ndarray:
    """Which of all people have a label that the regression should see less of, by the coins of the
    newest epoch; own_coins: by coins of his own.
    """
    accept = np.asarray(decisions.accept)
    chance = np.where(accept, decisions.propensity, 1.0 - decisions.propensity)
    coins = accept if own_coins is None else own_coins.random(len(accept)) < chance
    epochs = np.asarray(decisions.epoch)
    here = epochs == epochs[-1]
    # n_x - accepted_x / p among its people
    surplus = np.bincount(context[here], 1.0 - coins[here] / chance[here], minlength=len(world))
    more_inside = direction * surplus > 0
    inside = -1 if rate == "fpr" else 1
    unwanted = np.where(more_inside, -inside, inside)
    return (surplus[contexts] != 0) & (labels == unwanted[contexts])


def attacked(
    rate: str, seed: int, rounds: int, *, knows_coins: bool = True, ahead: bool = False
) -> Attacked:
    """A run in which people of closed epochs are erased after every call.

    knows_coins: whether he looks at the coins of the open epoch; else he tosses coins of his own
    and erases by them, as many people and as one-sidedly. ahead: he holds the seed, tosses the
    coins of the epoch that comes next in a copy of the learner, and erases before it begins. The
    assumption that whoever erases does not know coming coins is then broken.
    """
    world = many_contexts(rate)
    learner = CertifiedLearner(world.hypotheses, rate, LIMIT, DELTA, prices=PRICES[rate], seed=seed)
    direction = wanted_direction(world, rate)
    people = np.random.default_rng([seed, 1])
    own_coins = np.random.default_rng([seed, 2])
    contexts = np.zeros(0, dtype=np.int64)
    labels = np.zeros(0, dtype=np.int64)
    told = np.zeros(0, dtype=bool)  # accepted, and not erased
    erased, crossed = 0, 0
    while learner.round < rounds:
        first, coming = learner.round, rounds_ahead(learner)
        context = people.choice(len(world), size=coming, p=world.probability)
        label = np.where(people.random(coming) < world.positive_rate[context], 1, -1)
        if ahead and first > PATIENCE:
            copied = copy.deepcopy(learner).decide(world.features[context], world.group[context])
            chosen = np.arange(len(contexts)) < learner.epoch.closed
            chosen &= told & by_coins(world, direction, rate, context, copied, contexts, labels)
            learner.erase(np.flatnonzero(chosen))
            told[chosen] = False
            erased += int(chosen.sum())
        decisions = learner.decide(world.features[context], world.group[context])
        accept = np.asarray(decisions.accept)
        learner.observe(first + np.flatnonzero(accept), label[accept])
        contexts, labels = np.append(contexts, context), np.append(labels, label)
        told = np.append(told, accept)
        crossed += decisions.epoch[0] != decisions.epoch[-1]
        if ahead or first <= PATIENCE:
            continue
        chosen = np.arange(len(contexts)) < first  # their epochs have closed
        chosen &= told & by_coins(
            world,
            direction,
            rate,
            context,
            decisions,
            contexts,
            labels,
            own_coins=None if knows_coins else own_coins,
        )
        rows = np.flatnonzero(chosen)
        learner.erase(rows)
        told[rows] = False
        erased += len(rows)
    epochs_played = learner.report.epochs
    return Attacked(
        worst_gap=max(
            float(np.abs(world.gaps(epoch.policy, learner.rates)).max()) for epoch in epochs_played
        ),
        erased=erased,
        counted=learner.certificate.erased,
        crossed=int(crossed),
        suspended=learner.certificate.status != "certified",
    )
