"""One run, by the protocol of section 2 of the paper: people arrive, the learner decides, and the
labels of the accepted come back at once.

There are two engines. "events" goes person by person, for any environment and any learner.
"counts" is for learners whose policy lasts for an epoch (`EpochLearner`) on a discrete environment:
there the counts of (context, decision, label) are multinomial, so a run costs O(epochs), not
O(rounds).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

import numpy as np

from evenhand.contracts import Environment, Learner, Policy
from evenhand.environments import Discrete
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.findings import ROUNDING
from evenhand.learners import EpochLearner
from evenhand.randomness import stream
from evenhand.shown import INK, Cell, Shown, draw_limit
from evenhand.words import FloatArray, GroupArray, IntArray, LabelledSample

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Engine = Literal["auto", "events", "counts"]
Played = TypeVar("Played", bound=Learner)
Finished = TypeVar("Finished", bound=Learner, covariant=True)  # a finished run is only read
PEOPLE_AT_ONCE = 1000
"""Number of people drawn together for a learner without epochs."""


@dataclass(frozen=True, eq=False, repr=False)
class RunFigures:
    """The figures that `Run` and `RunRecord` share, one entry per epoch."""

    seed: int
    rounds: IntArray
    regret: FloatArray
    gaps: FloatArray
    losses: FloatArray
    accepted: IntArray
    phases: tuple[str, ...]
    optimum: float
    oracle_calls: int
    seconds: float

    @property
    def lengths(self) -> IntArray:
        """The number of rounds of each epoch."""
        return np.diff(self.rounds, prepend=0)

    @property
    def worst_gap(self) -> float:
        """The largest |true gap| that was ever deployed."""
        return float(self.gaps.max())

    def share_above(self, limit: float) -> float:
        """Return the share of rounds whose policy had a true gap above the limit.

        Parameters
        ----------
        limit : float
            The limit; rounding of 1e-9 does not count as above.

        Returns
        -------
        float
            A share of all rounds.
        """
        return float(self.lengths[self.gaps > limit + ROUNDING].sum() / self.rounds[-1])

    @overload
    def regret_at(self, rounds: float) -> float: ...

    @overload
    def regret_at(self, rounds: FloatArray | IntArray) -> FloatArray: ...

    def regret_at(self, rounds: float | FloatArray | IntArray) -> float | FloatArray:
        """Return the cumulative regret after a number of rounds.

        Parameters
        ----------
        rounds : float or array of float
            After how many rounds.

        Returns
        -------
        float or array of float
            The regret; within an epoch, where the policy does not change, it grows linearly.
        """
        return np.interp(rounds, np.r_[0, self.rounds], np.r_[0.0, self.regret])


def epoch_columns(run: RunFigures) -> dict[str, Sequence[Cell]]:
    """The figures of a run as columns, one row per epoch."""
    return {
        "round": run.rounds.tolist(),
        "phase": run.phases,
        "gap": run.gaps.tolist(),
        "loss": run.losses.tolist(),
        "regret": run.regret.tolist(),
        "accepted": run.accepted.tolist(),
    }


def draw_gaps(axes: "Axes", run: RunFigures, limit: float | None = None) -> None:
    """The true gap of the deployed policy by round, and the limit where it is known."""
    axes.stairs(run.gaps, np.r_[0, run.rounds], color=INK, linewidth=2, baseline=None)
    if limit is not None:
        draw_limit(axes, limit)
    axes.set_ylim(bottom=0, top=1.25 * max(run.worst_gap, limit or 0.0) or 0.1)
    axes.set_xlim(0, int(run.rounds[-1]))
    axes.set_xlabel("round")
    axes.set_ylabel("true gap of the deployed policy")


@dataclass(frozen=True, eq=False, repr=False)
class Run(RunFigures, Shown, Generic[Finished]):
    """A simulated run, epoch by epoch.

    All arrays have one entry per epoch; the last epoch may have been cut off by the end of the run.
    For a learner without epochs, consecutive rounds with the same policy count as one.

    Parameters
    ----------
    rounds : array of int
        The number of rounds at the end of each epoch.
    regret : array of float
        The cumulative pseudo-regret then: the sum over rounds of loss(pi_t) - optimum.
    gaps : array of float
        The largest |true gap| of the policy that was deployed in the epoch.
    losses : array of float
        The population loss of that policy.
    accepted : array of int
        How many people were accepted in the epoch.
    phases : tuple of str
        What the learner did in the epoch, for example "explore".
    policies : tuple of Policy
        The policy of each epoch.
    optimum : float
        The loss of the best policy that the regret is measured against.
    oracle_calls : int
        Number of calls of the learner for the cheapest hypothesis of its class.
    seconds : float
        Duration of the run.
    seed : int
        The seed of the run.
    learner : Learner
        The learner at the end of the run.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> run = simulate(AcceptAll(), lending(), rounds=100, seed=0)
    >>> int(run.rounds[-1]), int(run.accepted.sum()), round(run.worst_gap, 9)
    (100, 100, 0.0)
    >>> bool(run.regret_at(50) == run.regret[-1] / 2), run.share_above(0.1)
    (True, 0.0)
    >>> run.to_frame().columns.tolist()
    ['round', 'phase', 'gap', 'loss', 'regret', 'accepted']
    """

    policies: tuple[Policy, ...]
    learner: Finished

    def __repr__(self) -> str:
        return f"<Run of {self._headline()}>"

    def _headline(self) -> str:
        return (
            f"{type(self.learner).__name__}: {int(self.rounds[-1]):,} rounds, regret "
            f"{float(self.regret[-1]):,.1f}, largest true gap {self.worst_gap:.3f}"
        )

    def _columns(self) -> dict[str, Sequence[Cell]]:
        return epoch_columns(self)

    def _draw(self, axes: "Axes") -> None:
        draw_gaps(axes, self, getattr(self.learner, "limit", None))


def simulate(
    learner: Played,
    environment: Environment,
    rounds: int,
    seed: int,
    comparator_gap: float | None = None,
    *,
    engine: Engine = "auto",
    progress: Callable[[int], None] | None = None,
) -> Run[Played]:
    """Run a fresh copy of a learner on a population, and measure it by the truth.

    The same seed gives the same run: people, coins and labels come from streams named after it.

    Parameters
    ----------
    learner : Learner
        The learner; it is not changed.
    environment : Environment
        The population that people are drawn from.
    rounds : int
        How many people are decided about.
    seed : int
        The seed of the run.
    comparator_gap : float, optional
        Regret is measured against the best policy whose gaps are at most this; by default the
        learner's own `comparator_gap`, and 1 for a learner that has none.
    engine : {"auto", "events", "counts"}
        "auto" is "counts" where that is possible.
    progress : callable, optional
        Called with the number of rounds so far.

    Returns
    -------
    Run
        The run; `run.learner` is the copy that made the decisions.

    Raises
    ------
    InvalidInput
        If there is no round, or the engine does not fit the learner and the population.

    Notes
    -----
    Pseudo-regret after T rounds is sum_t loss(pi_t) - T min loss(pi) over the mixtures pi with
    |gap(pi)| <= comparator_gap (section 2 of the paper), with true losses and gaps; for a learner
    with a cap, a floor or a quota, over those that also accept a permitted share.

    The clock counts people: the first one comes at time 0, the next one at time 1. So
    `Quota(50, period=1000)` accepts at most 50 of each 1,000 people.

    Examples
    --------
    >>> import evenhand as eh
    >>> world = eh.environments.lending()
    >>> learner = eh.CertifiedLearner(world.hypotheses, eh.FalsePositiveRate(), 0.1, 0.05)
    >>> run = eh.simulate(learner, world, rounds=2_000, seed=0, comparator_gap=0.1)
    >>> run.worst_gap <= 0.1
    True
    """
    if rounds < 1:
        raise InvalidInput(f"rounds is {rounds}; a run has at least one round.")
    if engine not in ("auto", "events", "counts"):
        raise InvalidInput(f'engine is {engine!r}; it is "auto", "events" or "counts".')
    game = _RunUnderWay(learner.restarted(seed), environment.fresh(), seed)
    player = game.learner
    world = game.world
    possible = isinstance(world, Discrete) and isinstance(player, EpochLearner)
    counts_people = isinstance(player, EpochLearner) and player.has_hard_counts
    if engine == "counts" and (not possible or counts_people):
        raise InvalidInput(
            "the count-level engine needs a Discrete environment and a learner with epochs and "
            f"without hard counts, not {type(world).__name__} and {type(player).__name__}.",
            hint='use engine="events".',
        )
    generator = stream(seed, "people")
    while player.round < rounds:
        left = rounds - player.round
        if isinstance(player, EpochLearner):
            player.open_epoch()
            block = int(min(player.rounds_left, left, player.people_at_once))
            # a policy for one person: counts would only be a longer way
            alone = engine == "auto" and player.epoch.rounds == 1
            person_by_person = engine == "events" or counts_people or alone
            if isinstance(world, Discrete) and not person_by_person:
                accepted = play_counts(player, world, block, generator)
                game.add(block, accepted, player.epoch.phase, player.policy)
            else:
                quota = getattr(player, "quota", None)
                at = None if quota is None else float(player.round)
                if quota is not None:  # a call brings people of one period alone
                    block = min(block, _left_of_period(player.round, quota.period))
                people = world.draw(block, generator)
                play_people(player, people.features, people.group, people.label, at)
                game.add_epochs(player, block)
        else:
            game.play_one_by_one(world.draw(min(PEOPLE_AT_ONCE, left), generator))
        if progress is not None:
            progress(player.round)
    return game.run(comparator_gap)


def play_counts(
    learner: EpochLearner, world: Discrete, rounds: int, generator: np.random.Generator
) -> int:
    """Simulate rounds of one epoch by their counts; the number of people accepted."""
    acceptance = learner.acceptance(world.features, world.group)
    counts = world.draw_counts(rounds, acceptance, generator)
    rejected, positive, negative = (
        column.astype(np.float64)
        for column in (counts.rejected, counts.accepted_positive, counts.accepted_negative)
    )
    learner.absorb(RoundLog(world.features, world.group, acceptance, rejected, positive, negative))
    return int(counts.accepted.sum())


def _left_of_period(round: int, period: float) -> int:
    """How many people from this one on come before the next period begins.

    >>> _left_of_period(0, 10.0), _left_of_period(7, 10.0), _left_of_period(2, 2.5)
    (10, 3, 1)
    """
    return max(ceil((floor(round / period) + 1) * period) - round, 1)


def play_people(
    learner: Learner,
    features: FloatArray,
    group: GroupArray,
    label: IntArray,
    at: float | None = None,
) -> int:
    """Decide about people, and report the labels of the accepted; the number of people accepted."""
    when: dict[str, Any] = {} if at is None else {"at": at}
    decisions = learner.decide(features, group, **when)
    accepted = np.flatnonzero(decisions.accept)
    if len(accepted):
        learner.observe(decisions.first_round + accepted, label[accepted], **when)
    return len(accepted)


def permitted_shares(learner: Learner) -> tuple[float, float]:
    """Between which shares of the people a learner accepts in the long run: its floor, and its cap
    or what its quota spreads over a period; a quota outranks the floor.
    """
    most = float(getattr(learner, "accept_at_most", 1.0))
    least = float(getattr(learner, "accept_at_least", 0.0))
    quota = getattr(learner, "quota", None)
    if quota is not None:  # a person comes in each unit of time
        most = min(most, quota.count / quota.period)
    return min(least, most), most


class _RunUnderWay(Generic[Played]):
    """A run under way: the policies so far, each with its rounds, how many it accepted, and its
    phase. The truth about them is asked for at the end.
    """

    def __init__(self, learner: Played, world: Environment, seed: int) -> None:
        self.learner = learner
        self.world = world
        self.seed = seed
        self.started = time.perf_counter()
        self.blocks: list[tuple[int, int, str, Policy]] = []

    def add(self, rounds: int, accepted: int, phase: str, policy: Policy) -> None:
        self.blocks.append((rounds, accepted, phase, policy))

    def add_epochs(self, player: EpochLearner, people: int) -> None:
        """The last so many people, epoch by epoch: a hard count may end one among them."""
        table = player.rounds
        rows = slice(len(table) - people, len(table))
        numbers = table["epoch"][rows]
        for number in np.unique(numbers).tolist():
            accepted = table["accept"][rows][numbers == number]
            epoch = table.epochs[number - 1]
            same = bool(self.blocks) and self.blocks[-1][3] is epoch.policy
            rounds, before, _, _ = self.blocks.pop() if same else (0, 0, "", epoch.policy)
            self.add(
                rounds + len(accepted), before + int(accepted.sum()), epoch.phase, epoch.policy
            )

    def play_one_by_one(self, people: LabelledSample) -> None:
        """For a learner without epochs: a round belongs to the last block if the policy is the
        same.
        """
        features = people.features
        group = people.group
        label = people.label
        for i in range(len(people)):
            policy = self.learner.policy  # the one that decides; observing may change it
            one = slice(i, i + 1)
            accepted = play_people(self.learner, features[one], group[one], label[one])
            rounds = 0
            before = 0
            if self.blocks and self.blocks[-1][3] is policy:
                rounds, before, _, _ = self.blocks.pop()
            self.add(rounds + 1, before + accepted, "online", policy)

    def run(self, comparator_gap: float | None) -> Run[Played]:
        seconds = time.perf_counter() - self.started
        learner = self.learner
        if comparator_gap is None:
            comparator_gap = float(getattr(learner, "comparator_gap", 1.0))
        rates = tuple(learner.rates)
        prices = learner.prices
        lengths, accepted, phases, policies = zip(*self.blocks, strict=True)
        losses = np.array([self.world.loss(policy, prices) for policy in policies])
        optimum = self._optimum(comparator_gap)
        return Run(
            rounds=np.cumsum(lengths),
            regret=np.cumsum(np.array(lengths) * (losses - optimum)),
            gaps=np.array([np.abs(self.world.gaps(policy, rates)).max() for policy in policies]),
            losses=losses,
            accepted=np.array(accepted),
            phases=phases,
            policies=policies,
            optimum=optimum,
            oracle_calls=learner.oracle_calls if isinstance(learner, EpochLearner) else 0,
            seconds=seconds,
            seed=self.seed,
            learner=learner,
        )

    def _optimum(self, comparator_gap: float) -> float:
        """The loss of the best policy that the learner may deploy: one within its cap, floor and
        quota, where the class can be enumerated.
        """
        learner = self.learner
        rates = tuple(learner.rates)
        least, most = permitted_shares(learner)
        optimum = getattr(self.world, "optimum_within", None)
        if optimum is None or (most == 1.0 and least == 0.0):
            return float(self.world.optimum(comparator_gap, rates, learner.prices)[0])
        return float(optimum(comparator_gap, rates, learner.prices, most, least)[0])
