"""What the claims about the entry points share: small populations, and runs whose rounds are drawn
outside of the learner and appended to its table.

A service works so: its ledger draws, people overrule some decisions, and the algorithm sees them at
the next closing. One row is one person, so a claim can do to each of them what the world does
(overrule, leave out), and a run of three million people takes seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from evenhand.environments import Discrete
from evenhand.fairness import FalsePositiveRate
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.policies import Mixture

FPR = FalsePositiveRate()
DELTA = 0.05
ROUNDING = 1e-9


def two_scores() -> Discrete:
    """Groups a and b have people with poor and with good scores (contexts 0 and 1 of a, 2 and 3 of
    b); the only rule accepts good ones.

    Its false positive rate is .538 in a and .333 in b, so at a limit of .1 the best fair policy
    uses it with probability .49 and otherwise rejects: its gap is exactly the limit, and evidence
    that is off by little breaks the guarantee.
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
        acceptance = policy.acceptance(world.features, world.group)[context]
        coin = generator.random(rounds)
        audits = policy.weight_of(ACCEPT_ALL)
        outcome = np.where(generator.random(rounds) < world.positive_rate[context], 1, -1)
        return cls(
            context, world.group[context], acceptance, coin < acceptance, coin < audits, outcome
        )

    def append_to(
        self,
        learner: CertifiedLearner,
        world: Discrete,
        *,
        overruled: np.ndarray | None = None,
        come: np.ndarray | None = None,
    ) -> None:
        """They are the next rounds of the learner's table; come: whose labels have come (default:
        those of all).
        """
        nobody = np.zeros(len(self.accept), bool)
        overruled = nobody if overruled is None else overruled
        come = ~nobody if come is None else come
        label = np.where(self.accept & come & ~overruled, self.outcome, 0)
        columns = {
            "epoch": np.full(len(self.accept), learner.epoch.number),
            "at": np.full(len(self.accept), np.nan),
            "accept": self.accept,
            "acceptance": self.acceptance,
            "audit": self.audit,
            "label": label,
            "settled": label,
            "overruled": overruled,
            "erased": nobody,
            "group_late": nobody,
        }
        features = world.features[self.context]
        learner.rounds.append_rows(features, self.group, columns, None)

    def part(self, rows: np.ndarray) -> "People":
        """Some of them."""
        columns = (self.context, self.group, self.acceptance, self.accept, self.audit, self.outcome)
        return People(*(column[rows] for column in columns))


def close_epoch(learner: CertifiedLearner, published: Mixture | None = None) -> None:
    """The epoch ends here, as the trainer of a service ends it: step, and open what comes next.

    published: another policy that is deployed instead, with a record of its own.
    """
    learner.rounds.overdue = True
    learner.state, epoch = learner.algorithm.step(learner.state, learner.rounds, None)
    if epoch is None or epoch.number == learner.epoch.number:  # the same policy goes on
        epoch = replace(
            epoch or learner.epoch, number=learner.epoch.number + 1, first_round=learner.round
        )
    learner.rounds.open(epoch)
    if published is not None:
        epoch = replace(epoch, policy=published, audit=published.weight_of(ACCEPT_ALL))
        algorithm = learner.algorithm
        people = algorithm._closed_people(learner.state, learner.rounds)
        learner.state, epoch = algorithm._opened(learner.state, epoch, learner.rounds, people)
        learner.rounds.epochs[-1] = epoch


Fate = Callable[[People, np.ndarray], np.ndarray]
"""Who is met by it, from the people and a uniform number for each of them."""


@dataclass(frozen=True)
class Played:
    """One run in numbers; regret is to the best policy whose gap is within the limit."""

    worst_gap: float
    regret: float
    learned: float
    suspended: bool
    limit: float

    @property
    def violated(self) -> bool:
        return self.worst_gap > self.limit + ROUNDING


def played(
    learner: CertifiedLearner,
    world: Discrete,
    rounds: int,
    seed: int,
    overruled: Fate | None = None,
    *,
    leave_out: bool = False,
) -> Played:
    """A run with one closing per epoch.

    leave_out: the learner sees the others alone, numbered without gaps.
    """
    generator = np.random.default_rng([seed, 1])
    fates = np.random.default_rng([seed, 2])
    arrived = 0
    worst = 0.0
    regret = 0.0
    optimum = world.optimum(learner.limit, learner.rates)[0]
    while arrived < rounds:
        epoch = learner.epoch
        worst = max(worst, float(np.abs(world.gaps(epoch.policy, learner.rates)).max()))
        people = People.drawn(world, epoch.policy, min(epoch.rounds, rounds - arrived), generator)
        size = len(people.accept)
        met = np.zeros(size, bool) if overruled is None else overruled(people, fates.random(size))
        regret += size * (world.loss(epoch.policy) - optimum)
        if leave_out:
            people, met = people.part(~met), met[~met]
        people.append_to(learner, world, overruled=met)
        close_epoch(learner)
        arrived += size
    worst = max(worst, float(np.abs(world.gaps(learner.policy, learner.rates)).max()))
    return Played(worst, regret, learner.learned_weight, learner.state.run > 1, learner.limit)
