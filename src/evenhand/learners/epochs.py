"""What all learners share: rounds are counted, a policy is fixed within an epoch, and labels flow back through a log.

A learner plays in epochs. Within one the policy does not change, so people may be decided one by one, in blocks, or (by a
simulator) as counts; the same code closes the epoch and plans the next one from everything that has been resolved by then.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.contracts import GroupUse
from evenhand.errors import InvalidInput, NotSerialisable, ProtocolError
from evenhand.estimation import RoundLog, TransformedLoss
from evenhand.learners import storage
from evenhand.learners.codec import storable
from evenhand.learners.rounds import Block, RoundBook
from evenhand.learners.settings import require_common
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.words import Decisions, FloatArray, GroupArray, Prices, as_features, as_group, as_numbers

Kind = TypeVar("Kind", bound=NDArray[Any])


@storable
@dataclass(frozen=True)
class Epoch:
    """What is deployed: `policy` for `rounds` rounds from `first_round` on. The rest is for the report."""

    number: int
    phase: str
    first_round: int
    rounds: int
    policy: Mixture
    exploration_floor: float = 0.0
    iterations: int = 0
    oracle_calls: int = 0
    halted: bool = True


@dataclass(frozen=True)
class LearnerReport:
    """For a human: where the learner stands and what every epoch took. `notes` say what is missing, if anything."""

    round: int
    phase: str
    epochs: tuple[Epoch, ...]
    oracle_calls: int
    missing_labels: int
    notes: tuple[str, ...] = ()


@storable
@dataclass(eq=False)
class History:
    """Everything resolved so far: logs per epoch, and how many rounds were played."""

    logs: list[tuple[int, RoundLog]] = field(default_factory=list)

    def of(self, epochs: set[int] | None = None, *, with_group: bool = True) -> RoundLog | None:
        """The log of some epochs (all by default) as one, aggregated by context; None if it is empty."""
        chosen = [log for epoch, log in self.logs if epochs is None or epoch in epochs]
        if not chosen:
            return None
        if not with_group:
            chosen = [without_group(log) for log in chosen]
        return RoundLog.concatenate(chosen).aggregated()

    def compact(self) -> None:
        """One log per epoch (two, if the group was told for some and not for others)."""
        merged: dict[tuple[int, bool], list[RoundLog]] = {}
        for epoch, log in self.logs:
            merged.setdefault((epoch, log.group is None), []).append(log)
        self.logs = [
            (e, logs[0] if len(logs) == 1 else RoundLog.concatenate(logs).aggregated())
            for (e, _), logs in merged.items()
        ]


def without_group(log: RoundLog) -> RoundLog:
    """The same rounds, the group not shown."""
    return RoundLog(log.features, None, log.acceptance, log.rejected, log.positive, log.negative, log.prices)


LEARNERS: dict[str, "type[EpochLearner]"] = {}
"""Every learner by the name under which it is stored; one of your own has its module before its name."""


class EpochLearner(ABC):
    """A learner that plays in epochs; subclasses plan them in `_plan`.

    A subclass that remembers more than its settings extends `_state` and `_restore`; see there.
    """

    needs_group: bool = True
    """Whether decide() must be told the group (for the constraint), even if no hypothesis may see it."""
    _not_stored: frozenset[str] = frozenset({"_settings", "_check_rows"})
    """Private attributes that follow from the settings; every other one must be in `_state`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        LEARNERS[_stored_name(cls)] = cls

    def __init__(self, *, prices: Prices, group_use: GroupUse, seed: int | None, settings: Mapping[str, Any]) -> None:
        require_common(prices, group_use, seed)
        self.prices = prices
        self.loss = TransformedLoss(prices, _normaliser(prices))
        self.group_use: GroupUse = group_use
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
        self._settings = dict(settings)
        self._coins = stream(self.seed, "coins")
        self._round = 0
        self._columns: int | None = None
        self._check_rows = getattr(getattr(self, "hypotheses", None), "check_rows", None)
        self._priced: bool | None = None
        self._book = RoundBook()
        self._history = History()
        self._epochs: list[Epoch] = [self._plan(1, 0)]

    @abstractmethod
    def _plan(self, number: int, round: int) -> Epoch:
        """The epoch that begins after `round` rounds, from the history alone; deterministic."""

    @property
    def params(self) -> Mapping[str, Any]:
        """The settings as plain values."""
        return {"learner": type(self).__name__, **{name: _plain(value) for name, value in self._settings.items()}}

    def restarted(self, seed: int | None = None) -> "EpochLearner":
        """A fresh learner with the same settings."""
        return type(self)(**{**self._settings, "seed": seed})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Store everything in one file, without pickle; `evenhand.load` reads it, and the learner continues bit for bit.

        An older file of that name is replaced at once or not at all.
        """
        self._book.bind_up()
        state = self._state()
        forgotten = sorted(
            name for name in vars(self) if name.startswith("_") and name not in {*state, *self._not_stored}
        )
        if forgotten:
            raise NotSerialisable(
                f"{type(self).__name__} keeps {', '.join(forgotten)}, which its _state() does not give.",
                hint="extend _state(), or list what follows from the settings in _not_stored.",
            )
        storage.write(path, storage.Stored(_stored_name(type(self)), self._settings, state))

    def _state(self) -> dict[str, Any]:
        """What the settings do not say, as values that `codec.Encoder` knows: plain values, arrays, collections, generators, policies,
        and dataclasses marked with `codec.storable`. Subclasses add to it: `super()._state() | {"sample": self.sample}`.
        """
        names = ("seed", "_coins", "_round", "_columns", "_priced", "_book", "_history", "_epochs")
        return {name: getattr(self, name) for name in names}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `_state` gave; by default each entry is the attribute of that name."""
        for name, value in state.items():
            setattr(self, name, value)

    @property
    def round(self) -> int:
        """Rounds played."""
        return self._round

    @property
    def epoch(self) -> Epoch:
        """The epoch that is open (or was the last one to be filled)."""
        return self._epochs[-1]

    @property
    def policy(self) -> Mixture:
        """The policy of that epoch."""
        return self.epoch.policy

    @property
    def rounds_left(self) -> int:
        """Rounds until the epoch is full; 0 means that the next decision opens another one."""
        return self.epoch.first_round + self.epoch.rounds - self._round

    @property
    def report(self) -> LearnerReport:
        """Where the learner stands."""
        calls = sum(epoch.oracle_calls for epoch in self._epochs)
        return LearnerReport(
            self._round, self.epoch.phase, tuple(self._epochs), calls, self._book.missing_labels, tuple(self._notes())
        )

    def _notes(self) -> list[str]:
        return []

    def acceptance(self, features: ArrayLike, group: ArrayLike | None = None) -> FloatArray:
        """P[accept] of each row under the current policy; changes nothing."""
        return self.policy.acceptance(features, group)

    def decide(self, features: ArrayLike, group: ArrayLike | None = None, *, prices: Prices | None = None) -> Decisions:
        """Decide about one person per row, each with a fresh coin; each is one round."""
        rows = _own(self._checked(features), features)
        seen = self._checked_group(group, len(rows))
        seen = None if seen is None else _own(seen, group)
        self._check_prices(prices, len(rows))
        self._columns, self._priced, first = rows.shape[1], prices is not None, self._round
        if not len(rows):
            return _joined([], first)
        self.open_epoch()
        if len(rows) <= self.rounds_left:
            return _as_decisions(
                self._decide_block(rows, seen, prices and _part(prices, slice(None), len(rows))), first
            )
        self._book.hold(first)
        try:
            return _joined(self._decide_across_epochs(rows, seen, prices), first)
        finally:
            self._book.in_hand = None

    def _decide_across_epochs(self, rows: FloatArray, seen: GroupArray | None, prices: Prices | None) -> list[Block]:
        pieces, start = [], 0
        while start < len(rows):
            self.open_epoch()
            stop = min(len(rows), start + self.rounds_left)
            part = slice(start, stop)
            pieces.append(
                self._decide_block(rows[part], None if seen is None else seen[part], _part(prices, part, len(rows)))
            )
            start = stop
        return pieces

    def _decide_block(self, rows: FloatArray, group: GroupArray | None, prices: Prices | None) -> Block:
        acceptance = self.policy.acceptance_of_checked(rows, group)
        accept = self._coins.random(len(rows)) < acceptance
        block = Block(
            first=self._round,
            epoch=self.epoch.number,
            features=rows,
            group=group,
            accept=accept,
            acceptance=acceptance,
            prices=prices,
            label=np.zeros(len(rows), np.int64),
            logged=np.zeros(len(rows), bool),
        )
        self._book.add(block)
        self._round += len(rows)
        return block

    def observe(self, round: ArrayLike, label: ArrayLike) -> None:
        """Tell the label of one accepted round, or of several (two arrays)."""
        rounds, labels = np.atleast_1d(np.asarray(round)), np.atleast_1d(np.asarray(label))
        if rounds.ndim != 1 or rounds.shape != labels.shape:
            raise InvalidInput(f"{rounds.size} rounds come with {labels.size} labels; each round needs one.")
        if rounds.dtype.kind not in "iu" and rounds.size:
            raise InvalidInput(f"round is {rounds[0]!r}; rounds are whole numbers.", hint="use Decision.round.")
        self._book.observe(rounds.astype(np.int64), labels)

    def open_epoch(self) -> Epoch:
        """If the current epoch is full, close it with all that is resolved, and open the next one."""
        if self.rounds_left == 0:
            self._collect()
            self._epochs.append(self._plan(self.epoch.number + 1, self._round))
        return self.epoch

    def _collect(self) -> None:
        """Move what has been resolved into the history."""
        self._history.logs.extend(self._book.harvest())
        self._history.compact()

    def absorb(self, log: RoundLog) -> None:
        """Rounds that were played under the current policy in aggregate: counts instead of people."""
        rounds = round_count(log)
        if rounds > self.rounds_left:
            raise ProtocolError(f"{rounds} rounds do not fit into the epoch, which has {self.rounds_left} left.")
        self._columns = log.features.shape[1]
        self._take(log)
        self._round += rounds

    def _take(self, log: RoundLog) -> None:
        self._history.logs.append((self.epoch.number, log))

    def _checked(self, features: ArrayLike) -> FloatArray:
        rows = as_features(features)
        if self._columns not in (None, rows.shape[1]):
            raise InvalidInput(
                f"features has {rows.shape[1]} columns, but earlier people had {self._columns}; the number cannot change.",
                hint="pass the same columns, in the same order, for everybody.",
            )
        if self._check_rows is not None:
            self._check_rows(rows)
        return rows

    def _check_prices(self, prices: Prices | None, rows: int) -> None:
        """Prices per person are given for everybody or for nobody, and stay below the preset bound on their sum."""
        if self._priced not in (None, prices is not None):
            raise InvalidInput(
                f"prices per person were {'' if self._priced else 'not '}given before and are "
                f"{'missing' if self._priced else 'given'} now.",
                hint="give them for everybody or for nobody.",
            )
        if prices is not None:
            for name in ("false_accept", "false_reject"):
                as_numbers(getattr(prices, name), rows, f"the price {name}")
            self.loss.priced(prices)

    @property
    def _needs_group_now(self) -> bool:
        return self.group_use == "decide" or (self.needs_group and self.epoch.phase == "explore")

    def _checked_group(self, group: ArrayLike | None, rows: int) -> GroupArray | None:
        if group is None:
            if self._needs_group_now:
                raise InvalidInput(
                    "group is None, but the group of each person is needed to measure the gap between groups.",
                    hint='with group_use="certify_only" it is used for measuring only and never influences a decision.',
                )
            return None
        return as_group(group, rows)


def _own(checked: Kind, given: object) -> Kind:
    """An array that nobody else can change."""
    return checked.copy() if checked is given or checked.base is not None else checked


def _stored_name(kind: type) -> str:
    own = kind.__module__.startswith("evenhand.")
    return kind.__name__ if own else f"{kind.__module__}.{kind.__qualname__}"


def round_count(log: RoundLog) -> int:
    """How many rounds a log holds."""
    return round(log.rounds)


def _normaliser(prices: Prices) -> float:
    largest = float(np.max(np.asarray(prices.false_accept) + np.asarray(prices.false_reject)))
    if largest == 0:
        raise InvalidInput(
            "both prices are 0; nothing would be worth learning.", hint="set at least one price above 0."
        )
    return largest


def _part(prices: Prices | None, part: slice, rows: int) -> Prices | None:
    if prices is None:
        return None
    columns = (
        np.broadcast_to(np.asarray(value), (rows,))[part] for value in (prices.false_accept, prices.false_reject)
    )
    return Prices(*columns)


def _as_decisions(block: Block, first: int) -> Decisions:
    accept = block.accept
    epoch = np.empty(len(accept), np.int64)
    epoch.fill(block.epoch)
    audit = np.zeros(len(accept), bool) if block.audit is None else block.audit
    return Decisions(accept, _propensity(block), first, epoch, audit)


def _propensity(block: Block) -> FloatArray:
    """The probability of what was done: p for an accept, 1 - p for a reject."""
    if len(block.accept) == 1:  # most decisions are made one at a time
        chance = float(block.acceptance[0])
        return np.array([chance if block.accept[0] else 1.0 - chance])
    return np.where(block.accept, block.acceptance, 1.0 - block.acceptance)


def _joined(blocks: list[Block], first: int) -> Decisions:
    parts = [_as_decisions(block, first) for block in blocks]
    kinds = {"accept": bool, "propensity": float, "epoch": int, "audit": bool}
    columns = {
        name: np.concatenate([np.zeros(0, kind), *(getattr(part, name) for part in parts)])
        for name, kind in kinds.items()
    }
    return Decisions(**columns, first_round=first)


def _plain(value: Any) -> Any:
    """Settings as values that JSON can hold."""
    if isinstance(value, Prices):
        return {
            "false_accept": np.asarray(value.false_accept).tolist(),
            "false_reject": np.asarray(value.false_reject).tolist(),
        }
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "params"):
        return dict(value.params)
    return getattr(value, "symbol", value)
