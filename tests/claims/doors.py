"""What the claims about the doors share: small populations, and lives whose rounds are drawn
outside of the learner and handed to `replay`.

A service works so: its ledger draws, people overrule some decisions, and the learner is told at the
next closing. One row is one person, so a claim can do to each of them what the world does
(overrule, leave out), and a life of three million people takes seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.environments import Discrete
from evenhand.fairness import FalsePositiveRate
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.learners.rounds import Block
from evenhand.policies import Mixture

FPR = FalsePositiveRate()
DELTA = 0.05
ROUNDING = 1e-9


def two_scores() -> Discrete:
    """Groups a and b have people with poor and with good scores (contexts 0 and 1 of a, 2 and 3 of
    b); the only rule accepts good ones.

    Its false positive rate is .538 in a and .333 in b, so at a limit of .1 the best fair policy
    plays it with probability .49 and otherwise rejects everybody: its gap is exactly the limit, and
    evidence that is off by little breaks the promise.
    """
    shares, rates = 0.5 * np.array([0.3, 0.7, 0.5, 0.5]), [0.2, 0.6, 0.2, 0.6]
    return Discrete(
        shares,
        rates,
        ["a", "a", "b", "b"],
        np.array([[False, True, False, True]]),
        name="two scores",
    )


@dataclass(frozen=True, eq=False)
class People:
    """People decided under one policy.

    outcome: the label of everybody, also of the rejected, whom nobody will ever ask.
    """

    context: np.ndarray
    group: np.ndarray
    acceptance: np.ndarray
    accept: np.ndarray
    audit: np.ndarray
    outcome: np.ndarray

    @classmethod
    def drawn(
        cls, world: Discrete, policy: Mixture, rounds: int, generator: np.random.Generator
    ) -> "People":
        """One coin for each: below the weight of accept-all it is an audit, below the person's own
        probability an accept.
        """
        context = generator.choice(len(world), size=rounds, p=world.probability)
        acceptance, coin = (
            policy.acceptance(world.features, world.group)[context],
            generator.random(rounds),
        )
        audits = sum(
            w for h, w in zip(policy.hypotheses, policy.weights, strict=True) if h == ACCEPT_ALL
        )
        outcome = np.where(generator.random(rounds) < world.positive_rate[context], 1, -1)
        return cls(
            context, world.group[context], acceptance, coin < acceptance, coin < audits, outcome
        )

    def block(
        self,
        world: Discrete,
        first: int,
        epoch: int,
        *,
        overruled: np.ndarray | None = None,
        come: np.ndarray | None = None,
    ) -> Block:
        """Everybody, as the learner is told about them; come: whose labels have come (default:
        those of all).
        """
        nobody = np.zeros(len(self.accept), bool)
        overruled, come = (
            nobody if overruled is None else overruled,
            ~nobody if come is None else come,
        )
        label = np.where(self.accept & come & ~overruled, self.outcome, 0)
        return Block(
            first=first,
            epoch=epoch,
            features=world.features[self.context],
            group=self.group,
            accept=self.accept,
            acceptance=self.acceptance,
            prices=None,
            label=label,
            logged=nobody,
            audit=self.audit,
            overruled=overruled,
            settled=label,
        )

    def part(self, rows: np.ndarray) -> "People":
        """Some of them."""
        columns = (self.context, self.group, self.acceptance, self.accept, self.audit, self.outcome)
        return People(*(column[rows] for column in columns))


Fate = Callable[[People, np.ndarray], np.ndarray]
"""Who is met by it, from the people and a uniform number for each of them."""


@dataclass(frozen=True)
class Played:
    """One life in numbers; regret is to the best policy whose gap is within the limit."""

    worst_gap: float
    regret: float
    learned: float
    suspended: bool
    limit: float

    @property
    def violated(self) -> bool:
        return self.worst_gap > self.limit + ROUNDING


def replayed(
    learner: CertifiedLearner,
    world: Discrete,
    rounds: int,
    seed: int,
    overruled: Fate | None = None,
    *,
    leave_out: bool = False,
) -> Played:
    """A life by replay, one closing per epoch.

    leave_out: the learner is told of the others alone, numbered without gaps.
    """
    generator, fates = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    played, told, worst, regret = 0, 0, 0.0, 0.0
    optimum = world.optimum(learner.allowed_gap, learner.rates)[0]
    while played < rounds:
        epoch = learner.epoch
        worst = max(worst, float(np.abs(world.gaps(epoch.policy, learner.rates)).max()))
        people = People.drawn(world, epoch.policy, min(epoch.rounds, rounds - played), generator)
        size = len(people.accept)
        met = np.zeros(size, bool) if overruled is None else overruled(people, fates.random(size))
        regret += size * (world.loss(epoch.policy) - optimum)
        if leave_out:
            people, met = people.part(~met), met[~met]
        learner.replay(
            [people.block(world, told, epoch.number, overruled=met)], told + len(people.accept)
        )
        played, told = played + size, told + len(people.accept)
    worst = max(worst, float(np.abs(world.gaps(learner.policy, learner.rates)).max()))
    return Played(
        worst, regret, learner.learned_weight, learner.state.run.number > 1, learner.allowed_gap
    )
