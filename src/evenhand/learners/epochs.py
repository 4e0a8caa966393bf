"""What all learners share: rounds are counted, a policy is fixed within an epoch, and labels flow
back through a log.

A learner plays in epochs. Within one the policy does not change, so people may be decided one by
one, in blocks, or (by a simulator) as counts; the same code closes the epoch and plans the next one
from everything that has been resolved by then.

Every learner may be used by several threads: each of its public methods and properties holds the
learner's own lock.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from inspect import isfunction, signature
from threading import RLock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand.computing import one_blas_thread
from evenhand.contracts import GroupUse, HypothesisClass, Json, Params, Rate, class_reading
from evenhand.errors import InvalidInput, NotSerialisable, ProtocolError
from evenhand.estimation import RoundLog, TransformedLoss
from evenhand.estimation.log import History, prices_of
from evenhand.fairness.certificate import OLD_RULES, RULES
from evenhand.learners import storage
from evenhand.learners.rounds import Block, RoundBook, Single
from evenhand.learners.settings import require_common
from evenhand.learners.storage import DataRecord, storable, stored_as, stored_fields, stored_name
from evenhand.policies import DeployedPolicy, Mixture
from evenhand.randomness import stream
from evenhand.schema import Schema, is_frame
from evenhand.shown import INK, Brief, Shown
from evenhand.words import (
    BoolArray,
    Decisions,
    FloatArray,
    GroupArray,
    IntArray,
    OneDecision,
    Prices,
    as_arrivals,
    as_known_groups,
    as_numbers,
    as_people,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Kept = TypeVar("Kept", bound=Callable[..., object])
Owner = TypeVar("Owner", bound="EpochLearner")


@storable
@dataclass(frozen=True)
class Epoch:
    """What is deployed: one policy for some rounds.

    Parameters
    ----------
    number : int
        1 for the first epoch.
    phase : str
        What the learner does in it: "explore", "bandit", "certified", "frozen", ...
    first_round, rounds : int
        Where it begins, and how many rounds it has.
    policy : DeployedPolicy
        What is deployed.
    exploration_floor : float
        The least probability that the exploration keeps.
    iterations, oracle_calls, halted
        What it took to find the policy, and whether the solver halted by itself.

    Examples
    --------
    >>> from evenhand.learners import Uniform
    >>> epoch = Uniform(seed=1).epoch
    >>> epoch.number, epoch.phase, epoch.policy.weights
    (1, 'fixed', (0.5, 0.5))
    """

    number: int
    phase: str
    first_round: int
    rounds: int
    policy: DeployedPolicy
    exploration_floor: float = 0.0
    iterations: int = 0
    oracle_calls: int = 0
    halted: bool = True

    @property
    def mixture(self) -> Mixture:
        """The policy of a learner that deploys mixtures alone."""
        assert isinstance(self.policy, Mixture)
        return self.policy


@dataclass(frozen=True, repr=False)
class LearnerReport(Brief):
    """For a human: where the learner stands, and what every epoch took.

    Parameters
    ----------
    round : int
        Rounds played.
    phase : str
        That of the last epoch.
    epochs : tuple of Epoch
        All epochs.
    oracle_calls : int
        Calls of the oracle in all of them.
    missing_labels : int
        Accepted rounds whose label may still come.
    notes : tuple of str
        What is missing, if anything.
    forecast : tuple of str
        What a certified learner expects of the rounds ahead.

    Examples
    --------
    >>> from evenhand.learners import AcceptAll
    >>> learner = AcceptAll(seed=1)
    >>> decisions = learner.decide([[1.0], [2.0]])
    >>> learner.report.round, learner.report.missing_labels
    (2, 2)
    """

    round: int
    phase: str
    epochs: tuple[Epoch, ...]
    oracle_calls: int
    missing_labels: int
    notes: tuple[str, ...] = ()
    forecast: tuple[str, ...] = ()


@dataclass(eq=False, kw_only=True)
class LearnerState:
    """Everything that a learner knows and its settings do not say; `save` writes it field by field.

    seed: the one that was given or drawn. coins: those of the decisions. round: rounds played.
    columns: of the features, None before the first person. schema: what they stand for, if people
    come in frames. priced: whether people have prices of
    their own. book: the rounds, as they were decided and as far as they are known. history: what
    the loss has learned from. news, overdue: whether something was resolved since the last plan,
    and whether the epoch goes on beyond its planned end. rules: those under which the learner
    began.

    It changes while its learner decides, observes and closes epochs, and at no other time.
    """

    seed: int = field(metadata=stored_as("seed"))
    coins: np.random.Generator
    round: int = 0
    columns: int | None = None
    schema: Schema | None = None
    priced: bool | None = None
    book: RoundBook = field(default_factory=RoundBook)
    history: History = field(default_factory=History)
    epochs: list[Epoch] = field(default_factory=list)
    news: bool = False
    overdue: bool = False
    rules: int = RULES


def locked(
    method: Callable[Concatenate[Owner, Given], Answer],
) -> Callable[Concatenate[Owner, Given], Answer]:
    """The method of a learner, with the learner's lock held: another thread waits until it has
    ended.
    """

    @wraps(method)
    def under_lock(self: Owner, /, *args: Given.args, **named: Given.kwargs) -> Answer:
        with self._lock:
            return method(self, *args, **named)

    return under_lock


def holds_lock(method: Kept) -> Kept:
    """Marks a public method that takes the learner's lock itself: most decisions are made one at a
    time, and a wrapper would be felt.
    """
    method.holds_lock = True  # type: ignore[attr-defined]  # a mark
    return method


STORED_LEARNERS: dict[str, "type[EpochLearner]"] = {}
"""Every learner by the name under which it is stored; one of your own has its module before its
name.
"""


class EpochLearner(Shown):
    """A learner that plays in epochs; subclasses plan them in `_plan`.

    What it knows is one record, `state`; what a human wants to know is another, `report`. A
    subclass that remembers more gives its own state in `_first_state`, or extends `_state` and
    `_restore`; see there. Its public methods and properties are run under the learner's lock, so
    that they need not know of threads.

    Parameters
    ----------
    prices : Prices, optional
        What errors cost; 1 and 1 by default.
    group_use : {"certify_only", "decide"}
        Whether the group may influence a decision.
    seed : int, optional
        Of all coins; None draws one.
    settings : dataclass or mapping
        The arguments with which the learner was made, by name, for `params`, `restarted` and
        `save`.

    Examples
    --------
    >>> from evenhand.learners import Uniform
    >>> learner = Uniform(seed=1)
    >>> decisions = learner.decide([[0.0], [1.0], [2.0]])
    >>> learner.observe(decisions.round[decisions.accept], [1] * int(decisions.accept.sum()))
    >>> learner.round, learner.report.missing_labels
    (3, 0)
    """

    needs_group: bool = True
    """Whether decide() must be told the group (for the constraint), even if no hypothesis may see
    it.
    """
    rates: tuple[Rate, ...]
    """The rates whose gaps it is judged by."""
    prices: Prices
    """What its errors cost."""
    compares_numbers: bool = False
    """Whether it compares features itself, without a hypothesis class: then people with categories,
    texts or missing values are refused.
    """
    maturity: float | None = None
    """How long after a decision its label is complete, for learners who wait for that."""
    state: LearnerState
    """What the learner knows."""
    _not_stored: frozenset[str] = frozenset({"_lock", "_check_rows"})
    """Private attributes that follow from the settings; every other one must be in `_state`."""
    _lock: RLock

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        STORED_LEARNERS[stored_name(cls)] = cls
        # help() and the reference show how a learner is made, not __new__, which makes its lock
        taken = signature(cls.__init__)
        made = taken.replace(parameters=list(taken.parameters.values())[1:])
        setattr(cls, "__signature__", made)  # noqa: B010  (mypy knows no such attribute)
        for name, member in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isfunction(member) and not hasattr(member, "holds_lock"):
                setattr(cls, name, locked(member))
            elif isinstance(member, property) and member.fget is not None:
                read = locked(member.fget)
                setattr(cls, name, property(read, member.fset, member.fdel, member.__doc__))

    def __new__(cls, *_: object, **__: object) -> Self:
        """A learner has its lock before anything else, also one that is copied or comes from
        another process.
        """
        learner = super().__new__(cls)
        learner._lock = RLock()
        return learner

    def __getstate__(self) -> Json:
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __init__(
        self,
        *,
        prices: Prices | None = None,
        group_use: GroupUse = "certify_only",
        seed: int | None = None,
        settings: DataRecord | Mapping[str, object],
    ) -> None:
        prices = Prices() if prices is None else prices
        require_common(prices, group_use, seed)
        largest = float(np.max(np.asarray(prices.false_accept) + np.asarray(prices.false_reject)))
        if largest == 0:
            raise InvalidInput(
                "both prices are 0; nothing would be worth learning.",
                hint="set at least one price above 0.",
            )
        self.prices = prices
        self.loss = TransformedLoss(prices, largest)
        self.group_use: GroupUse = group_use
        self._settings: dict[str, Any] = (
            dict(settings)
            if isinstance(settings, Mapping)
            else {one.name: getattr(settings, one.name) for one in fields(settings)}
        )
        self._check_rows = getattr(getattr(self, "hypotheses", None), "check_rows", None)
        drawn = np.random.SeedSequence().generate_state(1)[0] if seed is None else seed
        self.state = self._first_state(int(drawn))
        self._read_by(getattr(getattr(self, "hypotheses", None), "schema", None))
        self.state.epochs.append(self._named(self._plan(1, 0)))

    def _first_state(self, seed: int) -> LearnerState:
        """Before the first round."""
        return LearnerState(seed=seed, coins=stream(seed, "coins"))

    def _read_by(self, schema: Schema | None) -> None:
        """From now on people have these columns."""
        if schema is None:
            return
        hypotheses: HypothesisClass | None = getattr(self, "hypotheses", None)
        if hypotheses is not None:
            self.hypotheses = class_reading(hypotheses, schema)
        elif self.compares_numbers:
            schema.require_plain(type(self).__name__)
        self.state.schema = schema

    def _require_readable(self, rows: FloatArray) -> None:
        """InvalidInput if a model that is going to judge these people cannot read them: a word that
        its encoder does not know, say. They are refused before they are decided about.
        """

    def _named(self, epoch: Epoch) -> Epoch:
        """The epoch, its policy with the schema of the learner."""
        policy, schema = epoch.policy, self.state.schema
        if not isinstance(policy, Mixture) or policy.schema == schema:
            return epoch
        return replace(epoch, policy=replace(policy, schema=schema))

    @abstractmethod
    def _plan(self, number: int, round: int) -> Epoch:
        """The epoch that begins after `round` rounds, from the history alone; deterministic."""

    @property
    @locked
    def params(self) -> Params:
        """The settings as plain values."""
        settings = {name: plain(value) for name, value in self._settings.items()}
        return {"learner": type(self).__name__, **settings}

    def restarted(self, seed: int | None = None) -> Self:
        """A fresh learner with the same settings.

        Parameters
        ----------
        seed : int, optional
            Of its coins; None draws one.

        Returns
        -------
        EpochLearner
            A learner that has met nobody.
        """
        return type(self)(**{**self._settings, "seed": seed})

    @locked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Store everything in one file, without pickle.

        `evenhand.load` reads it, and the learner continues bit for bit.

        Parameters
        ----------
        path : str or path
            The file. An older one of that name is replaced at once or not at all.

        Raises
        ------
        NotSerialisable
            If a setting or something in the state cannot be stored as data.
        """
        self.state.book.bind_up()
        state = self._state()
        forgotten = sorted(
            name
            for name in vars(self)
            if name.startswith("_") and name not in {*state, *self._not_stored}
        )
        if forgotten:
            raise NotSerialisable(
                f"{type(self).__name__} keeps {', '.join(forgotten)}, which its _state() does not "
                "give.",
                hint="extend _state(), or list what follows from the settings in _not_stored.",
            )
        storage.write(path, storage.Stored(stored_name(type(self)), self._settings, state))

    def _state(self) -> Json:
        """What is stored: the state by the names of its fields, each a value that
        `storage.Encoder` knows (plain values, arrays, collections, generators, policies, and
        dataclasses marked with `storage.storable`; every number is finite). Subclasses add to it:
        `super()._state() | {"sample": self.sample}`. The settings are repeated, so that a file in
        which somebody has changed them is recognised.
        """
        names = stored_fields(self.state, "_")
        state = {key: getattr(self.state, name) for key, name in names.items()}
        if self.state.schema is None:  # as in files that were written before there were schemas
            del state["_schema"]
        return {"_settings": self._settings, **state}

    def _restore(self, state: Mapping[str, object]) -> None:
        """Take back what `_state` gave: fields of the state, and attributes of that name."""
        names = stored_fields(self.state, "_")
        for key, value in state.items():
            setattr(self.state if key in names else self, names.get(key, key), value)
        self._read_by(self.state.schema)

    @property
    def schema(self) -> Schema | None:
        """The columns of the people: those of the first frame, or of the class; None as long as
        they come in arrays, which have no names.
        """
        return self.state.schema

    @property
    def seed(self) -> int:
        """The seed of all coins: the one that was given, or drawn."""
        return self.state.seed

    @property
    def round(self) -> int:
        """Rounds played."""
        return self.state.round

    @property
    def epoch(self) -> Epoch:
        """The epoch that is open (or was the last one to be filled)."""
        return self.state.epochs[-1]

    @property
    def policy(self) -> DeployedPolicy:
        """The policy of that epoch."""
        return self.epoch.policy

    def _headline(self) -> str:
        report = self.report
        return (
            f"{type(self).__name__}: {report.round:,} rounds, {len(report.epochs)} epochs, "
            f"now {report.phase!r}"
        )

    def _columns(self) -> dict[str, Sequence[Any]]:
        report = self.report
        ends = [min(one.first_round + one.rounds, report.round) for one in report.epochs]
        return {
            "epoch": [one.number for one in report.epochs],
            "phase": [one.phase for one in report.epochs],
            "first_round": [one.first_round for one in report.epochs],
            "rounds": [end - one.first_round for one, end in zip(report.epochs, ends, strict=True)],
            "oracle_calls": [one.oracle_calls for one in report.epochs],
        }

    def _draw(self, axes: "Axes") -> None:
        columns = self._columns()
        rows = list(zip(columns["phase"], columns["first_round"], columns["rounds"], strict=True))
        phases = list(dict.fromkeys(columns["phase"]))
        for phase, first, rounds in rows:
            axes.barh(phases.index(phase), rounds, left=first, color=INK, edgecolor="white")
        axes.set_yticks(range(len(phases)), phases)
        axes.set_xlabel("round")
        axes.set_ylabel("phase")

    @property
    @locked
    def rounds_left(self) -> int:
        """Rounds until the epoch is full; 0 means that the next decision opens another one."""
        return self._left

    @property
    def _clock(self) -> tuple[float | None, float | None]:
        """The time, and how long labels take, for learners who wait for that."""
        return None, self.maturity

    @property
    def _left(self) -> int:
        epoch = self.state.epochs[-1]
        return epoch.first_round + epoch.rounds - self.state.round

    @property
    @locked
    def report(self) -> LearnerReport:
        """Where the learner stands."""
        epochs, missing = tuple(self.state.epochs), self.state.book.missing_labels
        counts = epochs, self.oracle_calls, missing
        return LearnerReport(self.round, self.epoch.phase, *counts, self.notes, self._outlook())

    def _notes(self) -> list[str]:
        return []

    def _outlook(self) -> tuple[str, ...]:
        return ()

    @property
    def oracle_calls(self) -> int:
        """Calls of the oracle so far."""
        return sum(epoch.oracle_calls for epoch in self.state.epochs)

    @property
    @locked
    def notes(self) -> tuple[str, ...]:
        """What a human wants to know, in sentences."""
        rules, older = self.state.rules, []
        if rules != RULES:
            older.append(f"this learner began under rules {rules}: {OLD_RULES[rules]}.")
        return (*older, *self._notes())

    @property
    @locked
    def gathered(self) -> tuple[tuple[int, RoundLog], ...]:
        """(epoch, log) of what has been learned from so far."""
        return tuple(self.state.history.logs)

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """The probability of being accepted under the current policy; changes nothing.

        Parameters
        ----------
        features, group : array
            The people.

        Returns
        -------
        array of float
            One probability per row.
        """
        self._require_named(features)
        return self.policy.acceptance(as_people(features, self.state.schema)[0], group)

    def _require_named(self, features: object) -> None:
        """A frame after arrays is refused: nobody can say which of its columns is which."""
        arrays_before = self.state.schema is None and self.state.columns is not None
        if not isinstance(features, np.ndarray) and arrays_before and is_frame(features):
            raise InvalidInput(
                "features is a frame, but earlier people came in arrays, which have no names; "
                "nobody can say which column is which.",
                hint="pass frames from the first person on; or frame[names].to_numpy(), with the "
                "columns in the order of the arrays.",
            )

    @holds_lock
    def decide(
        self, features: ArrayLike, group: ArrayLike | None = None, *, prices: Prices | None = None
    ) -> Decisions:
        """Decide about one person per row, each with a fresh coin; each is one round.

        Parameters
        ----------
        features : array of shape (people, columns), or frame
            The people. The first frame fixes the columns (`schema`); later frames are put in order
            by name, and refused if a column is missing, unknown or of another kind. An array after
            a frame is taken as rows that the schema has encoded.
        group : array, optional
            Their groups, None where unknown.
        prices : Prices, optional
            What errors cost for each of them.

        Returns
        -------
        Decisions
            One decision per row.

        Raises
        ------
        InvalidInput
            If features, group or prices make no sense. Then nobody has been decided about.
        """
        with self._lock:
            rows, seen = self._checked_people(features, group, prices)
            state, people, first = self.state, len(rows), self.state.round
            if not people:
                return _joined([], first)
            if state.overdue or self._left == 0:
                self.open_epoch()
            if people <= self._left:
                own_prices = prices and prices_of(prices, people, slice(None))
                return _as_decisions(self._decide_block(rows, seen, own_prices), first)
            state.book.hold(first)  # the block goes on beyond the end of the epoch
            pieces, start = [], 0
            try:
                while start < people:
                    self.open_epoch()
                    part = slice(start, min(people, start + self._left))
                    shown = None if seen is None else seen[part]
                    own_prices = prices and prices_of(prices, people, part)
                    pieces.append(self._decide_block(rows[part], shown, own_prices))
                    start = part.stop
                return _joined(pieces, first)
            finally:
                state.book.in_hand = None

    def _checked_people(
        self, features: ArrayLike, group: ArrayLike | None, prices: Prices | None
    ) -> tuple[FloatArray, GroupArray | None]:
        """The rows of people and their groups; InvalidInput if they cannot be decided about."""
        state, group_needed = self.state, self._needs_group_now
        self._require_named(features)
        rows, seen, schema = as_arrivals(features, group, state.schema, group_needed=group_needed)
        people, columns = rows.shape
        if seen is None and group_needed:
            raise InvalidInput(
                "group is None, but the group of each person is needed to measure the gap "
                "between groups.",
                hint='with group_use="certify_only" it is used for measuring only and never '
                "influences a decision.",
            )
        if state.columns not in (None, columns):
            raise InvalidInput(
                f"features has {columns} columns, but earlier people had {state.columns}; the "
                "number cannot change.",
                hint="pass the same columns, in the same order, for everybody.",
            )
        if self._check_rows is not None:
            self._check_rows(rows)
        if schema is not None and not schema.plain:
            self._require_readable(rows)
        # prices per person are given for everybody or for nobody, and stay below the preset bound
        if state.priced not in (None, prices is not None):
            raise InvalidInput(
                f"prices per person were {'' if state.priced else 'not '}given before and are "
                f"{'missing' if state.priced else 'given'} now.",
                hint="give them for everybody or for nobody.",
            )
        if prices is not None:
            for name in ("false_accept", "false_reject"):
                as_numbers(getattr(prices, name), people, f"the price {name}")
            self.loss.priced(prices)
        if schema is not None and state.schema is None:  # the first frame, and all is well
            self._read_by(schema)
            state.epochs[-1] = self._named(state.epochs[-1])
        state.columns, state.priced = columns, prices is not None
        return rows, seen

    def _decide_block(
        self, rows: FloatArray, group: GroupArray | None, prices: Prices | None
    ) -> Block:
        state = self.state
        first, number = state.round, state.epochs[-1].number
        if len(rows) == 1:  # most decisions are made one at a time
            chance = self.policy.acceptance_of_one(rows, group)
            accepted = state.coins.random() < chance
            person, audit = (rows, group, accepted, chance, prices), self._audited(accepted, chance)
            block: Block = state.book.add_one(first, number, person, audit, self._clock[0])
        else:
            acceptance = self.policy.acceptance_of_checked(rows, group)
            accept = state.coins.random(len(rows)) < acceptance
            block = Block(
                first=first,
                epoch=number,
                features=rows,
                group=group,
                accept=accept,
                acceptance=acceptance,
                prices=prices,
                label=np.zeros(len(rows), np.int64),
                logged=np.zeros(len(rows), bool),
                audit=self._audited_rows(accept, acceptance),
                at=self._clock[0],
            )
            state.book.add(block)
        state.round = first + len(rows)
        return block

    def _audited(self, accepted: bool, chance: float) -> bool | None:
        """Whether the audit coin has accepted this person; None for learners without audits."""
        return None

    def _audited_rows(self, accept: BoolArray, acceptance: FloatArray) -> BoolArray | None:
        """The same for several people."""
        return None

    @locked
    def observe(self, round: ArrayLike, label: ArrayLike) -> None:
        """Tell the label of one accepted round, or of several.

        Parameters
        ----------
        round, label : int or array of int
            The rounds, and a label of -1 or +1 for each.

        Raises
        ------
        ProtocolError, BadLabel
            If a round is unknown, was rejected, overruled or erased, or has another label. Then
            nothing has changed.
        """
        rounds, labels = as_rounds(round), np.atleast_1d(np.asarray(label))
        if rounds.shape != labels.shape:
            raise InvalidInput(
                f"{rounds.size} rounds come with {labels.size} labels; each round needs one."
            )
        self.state.book.observe(rounds, labels, self.state.book.window_open(rounds, *self._clock))

    @locked
    def overrule(self, round: ArrayLike, accept: ArrayLike) -> None:
        """A human decided otherwise about one round, or about several.

        The round stays as it was drawn: the promise is about the policy, not about what people make
        of it. Of somebody who was drawn to be accepted and was refused the label counts for
        nothing, whether it was told before or not, and cannot be told any more. Somebody who was
        drawn to be rejected and was accepted stays rejected. A decision that agrees with the draw
        changes nothing, nor does saying it again.

        Parameters
        ----------
        round
            The rounds of the decisions.
        accept
            What the human decided, True or False: one for each round, or one for all.

        Raises
        ------
        ProtocolError
            If a round is unknown, or was erased. Then nothing has changed.
        """
        rounds, decided = as_rounds(round), np.asarray(accept)
        if decided.dtype.kind != "b" or decided.shape not in ((), rounds.shape):
            raise InvalidInput(
                f"accept is {accept!r} for {rounds.size} rounds; what a human decided is True or "
                "False, for each round or for all."
            )
        window_open = self.state.book.window_open(rounds, *self._clock)
        decided = np.broadcast_to(decided, rounds.shape)
        for lost in self.state.book.overrule(rounds, decided, window_open):
            self._lose(lost, erased=False)

    @locked
    def erase(self, round: ArrayLike) -> None:
        """Forget the person of one round, or of several.

        Features, group, prices and label are wiped.

        A round keeps its place: in a cohort that is still open it counts at its worst; the sums of
        a closed one stay as they are, and the loss alone forgets the person. Erasing somebody again
        changes nothing; nothing else can be said about the round any more.

        Parameters
        ----------
        round : int or array of int
            The rounds of the decisions.

        Raises
        ------
        ProtocolError
            If a round is unknown. Then nobody has been erased.
        """
        rounds = as_rounds(round)
        window_open = self.state.book.window_open(rounds, *self._clock)
        for lost in self.state.book.erase(rounds, window_open):
            self._lose(lost, erased=True)

    def _lose(self, lost: Block, *, erased: bool) -> None:
        """One round, as it was before it was overruled or erased just now: forget what the loss has
        learned from it. Subclasses forget more.
        """
        if lost.learned[0] and (erased or lost.accept[0]):
            self.state.history.forget(lost.epoch, lost.log(lost.learned))

    @locked
    def open_epoch(self) -> Epoch:
        """If the current epoch is full, close it with all that is resolved, and open the next one.

        An epoch that is full although nothing has been resolved since it was planned goes on
        instead: nothing could be planned but what is deployed already. It ends at the first call
        that finds something resolved, at the latest when it is full again.

        Returns
        -------
        Epoch
            The epoch that is open now.
        """
        if self._left == 0 or (self.state.overdue and self.state.book.ripe(*self._clock)):
            epoch, full = self.epoch, self._left == 0
            with one_blas_thread():
                self.state.news = self._collect() or self.state.news
            longer = None if self.state.news else self._prolonged(epoch) if full else epoch
            played = self.state.round - epoch.first_round
            self.state.epochs[-1] = longer or replace(epoch, rounds=played)
            self.state.overdue = longer is not None
            if longer is None:
                with one_blas_thread():
                    planned = self._plan(epoch.number + 1, self.state.round)
                self.state.epochs.append(self._named(planned))
                self.state.news = False
        return self.epoch

    def _prolonged(self, epoch: Epoch) -> Epoch | None:
        """The full epoch of which nothing is known yet, with more rounds: twice as many, so that a
        call of decide() with n people is cut into O(log n) parts. A subclass whose epochs must end
        where they were planned to end answers None."""
        return replace(epoch, rounds=2 * epoch.rounds)

    def _collect(self) -> bool:
        """Move what has been resolved into the history; whether there was anything."""
        logs = self.state.book.harvest()
        self.state.history.add(logs)
        return bool(logs)

    @locked
    def absorb(self, log: RoundLog) -> None:
        """Take rounds that were played under the current policy in counts instead of one by one.

        Parameters
        ----------
        log : RoundLog
            The rounds; they must fit into the epoch.

        Raises
        ------
        ProtocolError
            If they do not.
        """
        rounds = round_count(log)
        if rounds > self._left:
            raise ProtocolError(
                f"{rounds} rounds do not fit into the epoch, which has {self._left} left."
            )
        self.state.columns = log.features.shape[1]
        self._take(log)
        self.state.round += rounds
        self.state.news = True

    def _take(self, log: RoundLog) -> None:
        self.state.history.logs.append((self.epoch.number, log))

    @property
    def _needs_group_now(self) -> bool:
        """Whether people whose group is unknown are refused."""
        return self.group_use == "decide" or (self.needs_group and self.epoch.phase == "explore")


def as_rounds(round: ArrayLike) -> IntArray:
    """One round or several, as whole numbers."""
    rounds = np.atleast_1d(np.asarray(round))
    if rounds.ndim != 1 or (rounds.dtype.kind not in "iu" and rounds.size):
        raise InvalidInput(
            f"round is {rounds.reshape(-1)[0]!r}; rounds are whole numbers, one or a list of them.",
            hint="use Decision.round.",
        )
    return rounds.astype(np.int64)


def as_told_groups(group: ArrayLike, rounds: int) -> GroupArray:
    """The group of one round or of several, None where it is unknown."""
    alone = not isinstance(group, list | tuple) and np.ndim(group) == 0
    return as_known_groups([group] if alone else group, rounds)


def round_count(log: RoundLog) -> int:
    """How many rounds a log holds."""
    return round(log.rounds)


def _as_decisions(block: Block, first: int) -> Decisions:
    if isinstance(block, Single):
        _, _, took, chance, _ = block.person
        propensity = chance if took else 1.0 - chance
        return OneDecision.of(took, propensity, first, block.epoch, bool(block.audited))
    accept = block.accept
    epoch = np.empty(len(accept), np.int64)
    epoch.fill(block.epoch)
    audit = np.zeros(len(accept), bool) if block.audit is None else block.audit
    chances = np.where(accept, block.acceptance, 1.0 - block.acceptance)  # of what was done
    return Decisions(accept, chances, first, epoch, audit)


def _joined(blocks: list[Block], first: int) -> Decisions:
    parts = [_as_decisions(block, first) for block in blocks]
    kinds = {"accept": bool, "propensity": float, "epoch": int, "audit": bool}
    columns = {
        name: np.concatenate([np.zeros(0, kind), *(getattr(part, name) for part in parts)])
        for name, kind in kinds.items()
    }
    return Decisions(**columns, first_round=first)


def plain(value: object) -> object:
    """Settings as values that JSON can hold."""
    if isinstance(value, Prices):
        prices = {"false_accept": value.false_accept, "false_reject": value.false_reject}
        return {name: np.asarray(price).tolist() for name, price in prices.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "params"):
        return dict(value.params)
    return getattr(value, "symbol", value)
