"""What an algorithm is: a pure function over the table of rounds.

    state, epoch = algorithm.step(state, rounds, now)

`rounds` is the table of decided people (`evenhand.rounds`); an algorithm reads it and never
writes it. `state` is a frozen record of sums, intervals and bookings, without people; whoever
calls (`evenhand.learner.EpochLearner`, the trainer of a service) keeps it and hands it back. An
`Epoch` is what is deployed until the next step.
"""

from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, runtime_checkable

from evenhand.contracts import GroupUse, HypothesisClass, Rate
from evenhand.estimation import TransformedLoss
from evenhand.rounds import Epoch, Keep, Rounds
from evenhand.schema import Schema
from evenhand.words import BoolArray, FloatArray, Group, IntArray

GroupNeeded = Literal["always", "exploring", "never"]
"""When the group of a person must be known at the decision: always, in epochs of the phase
"explore", or never."""


@dataclass(frozen=True)
class Note:
    """Something a human wants to know about a learner.

    Parameters
    ----------
    kind : str
        What it is about, for programs: "waiting for people", "unresolved labels", ...
    text : str
        The sentence, for people.
    group : optional
        The group that it is about.

    Examples
    --------
    >>> print(Note("frozen", "the audit budget is spent: the policy is frozen."))
    the audit budget is spent: the policy is frozen.
    """

    kind: str
    text: str
    group: Group = None

    def __str__(self) -> str:
        return self.text


class Algorithm(Protocol):
    """A learner without people and without a lock: settings, and the pure functions init and step.

    Notes
    -----
    Requirements: no method changes `rounds` or the state it is given; the same arguments give the
    same answer, also after a step that was interrupted (what the table remembers for an algorithm
    can be read again from its rows, and no answer depends on it). All by which the people of an
    epoch are judged later is in the state that opened the epoch, so nothing that happens to people
    afterwards can change it.
    """

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates whose gaps it is judged by."""
        ...

    @property
    def hypotheses(self) -> HypothesisClass | None:
        """The class of rules that it mixes, if it has one."""
        ...

    @property
    def group_use(self) -> GroupUse:
        """Whether the group may influence a decision."""
        ...

    @property
    def loss(self) -> TransformedLoss:
        """What errors cost, in [0, 1]."""
        ...

    @property
    def needs_group(self) -> GroupNeeded:
        """When the group of a person must be known at the decision."""
        ...

    @property
    def maturity(self) -> float | None:
        """How long after a decision its label is complete, for algorithms that wait for that."""
        ...

    def reading(self, schema: Schema) -> Self:
        """The same algorithm for people with these columns; InvalidInput if it cannot read them."""
        ...

    def init(self, seed: int) -> tuple[Any, Epoch]:
        """The state before the first round, and the first epoch."""
        ...

    def step(self, state: Any, rounds: Rounds, now: float | None) -> tuple[Any, Epoch | None]:
        """Take in what has become known, and open the next epoch.

        It is called before a decision: when the epoch is over, and at the round `look_at` of the
        epoch.

        Returns
        -------
        state
            What the next step needs.
        epoch : Epoch or None
            What is deployed from now on. None if nothing new is known: the open epoch goes on. An
            epoch with the number of the open one takes its place (it looks at another round).
        """
        ...


@runtime_checkable
class Forgets(Protocol):
    """An algorithm whose state depends on people who may be overruled or erased."""

    def forget(self, state: Any, rounds: Rounds, lost: IntArray) -> Any:
        """The state after the people of these rounds were overruled or erased just now."""
        ...


@runtime_checkable
class Gated(Protocol):
    """An algorithm with hard counts: of people who may be accepted in a period, and of bad accepts
    that audits may cost.
    """

    @property
    def gated(self) -> bool:
        """Whether any count is set."""
        ...

    def gate(self, state: Any, rounds: Rounds, now: float | None) -> tuple[Any, Epoch | None]:
        """Called before a person's coin is tossed: the state, and the epoch that takes the place of
        the open one because a count is used up, or is not any more; None if all stays.
        """
        ...

    def remaining(self, rounds: Rounds, now: float | None) -> tuple[float, float]:
        """How many people may be accepted by the audit coin, and accepted at all, from now on."""
        ...


@runtime_checkable
class KeepsCounts(Protocol):
    """An algorithm that can do with sums instead of people."""

    @property
    def keep(self) -> Keep:
        """Whether rows are kept, or counts alone."""
        ...

    def needed_rows(self, state: Any, rounds: Rounds) -> BoolArray | None:
        """Which rows are still needed; None: all of them."""
        ...


@runtime_checkable
class HasNotes(Protocol):
    """An algorithm with something to say."""

    def notes(self, state: Any, rounds: Rounds) -> tuple[Note, ...]:
        """What a human wants to know."""
        ...


@runtime_checkable
class ReadsPeople(Protocol):
    """An algorithm whose models must be able to read every person, before the coin is tossed."""

    def check_people(self, state: Any, rows: FloatArray, rounds: Rounds) -> None:
        """InvalidInput if a model that is going to judge these people cannot read them."""
        ...


@runtime_checkable
class OutlivesRules(Protocol):
    """An algorithm that goes on if some of its rules cannot be read from a file."""

    def without_unread(
        self, state: Any, rounds: Rounds, now: float | None
    ) -> tuple[Any, Epoch | None]:
        """The state, and the epoch that takes the place of the open one."""
        ...
