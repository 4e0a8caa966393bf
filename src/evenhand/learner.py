"""The one stateful learner: a lock, the table of rounds, the coins, and an algorithm.

`EpochLearner` does what every learner does, in the order in which it happens: check the people,
open the next epoch if the last one is over, toss a coin for each person, write the rounds down;
later take labels, overruled decisions, erasures and late groups. What is deployed is the
algorithm's business (`evenhand.algorithms`), a pure function that it calls between two decisions.
The learners that people hold (`evenhand.learners`) add a signature, a docstring and things to look
at.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from threading import RLock
from types import UnionType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand import storage
from evenhand.algorithms.base import (
    Algorithm,
    Forgets,
    Gated,
    HasNotes,
    KeepsCounts,
    Note,
    OutlivesRules,
    ReadsPeople,
)
from evenhand.algorithms.certified.quota import Quota
from evenhand.algorithms.settings import require_group_use, require_number, require_seed
from evenhand.computing import one_blas_thread
from evenhand.contracts import GroupUse, Hypothesis, Json, Params, Rate
from evenhand.errors import AlreadyObserved, InvalidInput, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.estimation.log import prices_of
from evenhand.keys import KeyBook, NamedKey, as_keys, person_hashes
from evenhand.people import as_known_groups, require_same_order
from evenhand.policies import DeployedPolicy, Mixture
from evenhand.randomness import stream
from evenhand.rounds import Counts, Epoch, Rounds, learning, reports, windows
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
    as_numbers,
    as_people,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SHELL: Mapping[str, type | UnionType] = {
    "seed": int,
    "coins": np.random.Generator,
    "audit_coins": np.random.Generator,
    "now": float | None,
    "columns": int | None,
    "priced": bool | None,
    "coins_from_seed": bool,
    "keys": dict,
}
"""What a learner knows beside the state of its algorithm and the table of rounds, with its kind."""


@dataclass(frozen=True, repr=False)
class LearnerReport(Brief):
    """Where a learner stands, and what every epoch took, for a human.

    Parameters
    ----------
    round : int
        Rounds decided.
    phase : str
        That of the last epoch.
    epochs : tuple of Epoch
        All epochs.
    oracle_calls : int
        Calls of the oracle in all of them.
    missing_labels : int
        Accepted rounds whose label may still come.
    notes : tuple of Note
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
    notes: tuple[Note, ...] = ()
    forecast: tuple[str, ...] = ()


class EpochLearner(Shown):
    """People, coins and a lock around an algorithm, whose policy lasts for an epoch.

    Every public method holds the lock, so a learner may be used by several threads. Write an
    algorithm of your own (`evenhand.algorithms.base.Algorithm`) and hand it over; or use
    one of `evenhand.learners`.

    Parameters
    ----------
    algorithm : Algorithm
        What is deployed, and why.
    seed : int, optional
        Seed of all random draws, the coins too. None takes the coins from the entropy of the
        system, and draws a seed for the rest.
    settings : mapping
        The other arguments with which the learner was made, by name, for `params` and `save`.

    Examples
    --------
    >>> from evenhand.learners import Uniform
    >>> learner = Uniform(seed=1)
    >>> decisions = learner.decide([[0.0], [1.0], [2.0]])
    >>> learner.observe(decisions.round[decisions.accept], [1] * int(decisions.accept.sum()))
    >>> learner.round, learner.report.missing_labels
    (3, 0)
    """

    def __init__(
        self, algorithm: Algorithm, *, seed: int | None, settings: Mapping[str, Any]
    ) -> None:
        require_group_use(algorithm.group_use)
        require_seed(seed)
        algorithm.loss  # noqa: B018  (an error if prices make no sense)
        self.settings = {**settings, "seed": seed}
        self.files: dict[str, str] = {}
        """The saves that this learner goes on from: the mark of the newest one, by path."""
        self.lock = RLock()
        """Held by whoever reads or changes state and rounds: they belong together."""
        self.algorithm = algorithm
        self.coins_from_seed = seed is not None
        """Whether some coins could be recomputed by whoever knows the seed."""
        if seed is None:
            self.coins = np.random.default_rng()
            self.audit_coins = np.random.default_rng()
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        else:
            self.coins = stream(int(seed), "coins")
            self.audit_coins = stream(int(seed), "audit")
        self.seed = int(seed)
        self.rounds = Rounds(algorithm.keep if isinstance(algorithm, KeepsCounts) else "rows")
        gated = isinstance(algorithm, Gated) and algorithm.gated
        self._gates = algorithm if gated and isinstance(algorithm, Gated) else None
        self.keys = KeyBook()
        self._not_looked_at = (np.zeros(0), np.zeros(0))
        self._needs_time = needs_time(algorithm)
        self.now: float | None = None
        self.columns: int | None = None
        self.priced: bool | None = None
        schema = getattr(algorithm.hypotheses, "schema", None)
        if schema is not None:
            self._read_columns(schema)
        self.state, first = self.algorithm.init(self.seed)
        self.rounds.open(self._with_schema(first))

    def __getstate__(self) -> Json:
        with self.lock:
            return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: Json) -> None:
        self.__dict__.update(state)
        self.lock = RLock()

    # deciding

    def decide(
        self,
        features: ArrayLike,
        group: ArrayLike | None = None,
        *,
        prices: Prices | None = None,
        at: float | None = None,
        key: object = None,
    ) -> Decisions:
        """Decide about one person per row, each with a coin of its own; each is one round.

        Parameters
        ----------
        features : array of shape (people, columns), or frame
            The people. The first frame fixes the columns (`schema`); later frames are put in order
            by name, and are an error if a column is missing, unknown or of another kind. An array
            after a frame is taken as rows that the schema has encoded.
        group : array, optional
            Their groups, None where unknown.
        prices : Prices, optional
            What errors cost for each of them.
        at : float, optional
            The time of the decision; needed where labels have a maturity window.
        key : str, int or a list of them, optional
            Your own ids of the people, one each, by which everything else can be reported. Where a
            key is known, the decision that was taken under it is returned and no coin is tossed.

        Returns
        -------
        Decisions
            One decision per row.

        Raises
        ------
        InvalidInput
            If features, group or prices make no sense. Then nobody has been decided about.
        ProtocolError
            If a key is known for a person with other features, another group or other prices, or
            for one who was erased. Then nobody has been decided about.

        Examples
        --------
        >>> from evenhand.learners import Uniform
        >>> learner = Uniform(seed=1)
        >>> first = learner.decide([[0.2], [0.7]], key=["anna", "bert"])
        >>> again = learner.decide([[0.7], [0.1]], key=["bert", "cleo"])
        >>> again.round.tolist(), bool(again.accept[0] == first.accept[1]), learner.round
        ([1, 2], True, 3)
        """
        with self.lock:
            if at is None and self._needs_time is not None:
                raise InvalidInput(
                    f"{self._needs_time}, so decide() needs the time of the decision.",
                    hint="pass at=...",
                    argument="at",
                )
            now = self._checked_time(at)
            if key is not None:
                return self._decide_by_key(features, group, prices, now, key)
            return self._decide_new(features, group, prices, now)

    def _decide_by_key(
        self,
        features: ArrayLike,
        group: ArrayLike | None,
        prices: Prices | None,
        now: float | None,
        key: object,
    ) -> Decisions:
        """People whose key is known have their decision; a coin is tossed for the others."""
        require_same_order({"features": features, "group": group, "key": key})
        self._require_named(features)
        rows, groups, _ = as_arrivals(features, group, self.rounds.schema, group_needed=False)
        keys = as_keys(key, len(rows))
        self._check_prices(prices, len(rows))
        persons = person_hashes(rows, groups, prices)
        places = self.keys.places(keys)
        self.keys.require_same(keys, places, persons)
        new = [row for row, place in enumerate(places) if place < 0]
        if len(new) == len(keys):
            people = features if self.rounds.schema is None else rows  # encoded once
            return self._decide_new(people, group, prices, now, keys, persons)
        if new:
            self._decide_new(
                rows[new],
                None if groups is None else groups[new],
                prices and prices_of(prices, len(rows), np.array(new)),
                now,
                [keys[row] for row in new],
                [persons[row] for row in new],
            )
        found = self.keys.decisions(self.keys.places(keys))
        if len(found) > 1:
            return found
        one = found[0]
        return OneDecision(one.accept, one.propensity, one.round, one.epoch, one.audit)

    def _decide_new(
        self,
        features: ArrayLike,
        group: ArrayLike | None,
        prices: Prices | None,
        now: float | None,
        keys: Sequence[NamedKey] = (),
        persons: Sequence[int] = (),
    ) -> Decisions:
        """A coin for each person; they are entered under their keys, if they have some."""
        first = self.rounds.decided
        self.rounds.returned = first  # what earlier calls decided is in the caller's hands
        if self.algorithm.needs_group == "exploring":
            self._step_if_due()  # the next epoch may not need the group any more
        rows, groups = self._checked_people(features, group, prices)
        people = len(rows)
        self.now = now
        if people == 1:
            self._step_if_due()
            decided = self._decide_one(rows, groups, prices)
            if keys:
                self.keys.add(keys, persons, decided)
            return decided
        try:
            parts = self._decide_all(rows, groups, prices, keys, persons)
        finally:
            self.rounds.returned = self.rounds.decided
        return _joined(parts, first)

    def _decide_all(
        self,
        rows: FloatArray,
        groups: GroupArray | None,
        prices: Prices | None,
        keys: Sequence[NamedKey],
        persons: Sequence[int],
    ) -> list[Decisions]:
        """A call may go on beyond the end of an epoch; then the next one decides about the rest."""
        people = len(rows)
        call_end = self.rounds.decided + people
        parts = []
        start = 0
        while start < people:
            self._step_if_due()
            stop = min(people, start + self.rounds_left)
            part = slice(start, stop)
            shown = None if groups is None else groups[part]
            own_prices = prices and prices_of(prices, people, part)
            parts.append(self._decide_block(rows[part], shown, own_prices, call_end))
            stop = start + len(parts[-1])
            if keys:  # at once: if a later part fails, the call can be repeated
                self.keys.add(keys[start:stop], persons[start:stop], parts[-1])
            start = stop
        return parts

    def _decide_block(
        self,
        rows: FloatArray,
        groups: GroupArray | None,
        prices: Prices | None,
        call_end: int,
    ) -> Decisions:
        """Decide about the rows; where a hard count is used up by one of them, about the rows up to
        it.
        """
        epoch = self.rounds.epoch
        first = self.rounds.decided
        acceptance = epoch.policy.acceptance_of_checked(rows, groups)
        coins, audit_coins = self._toss(len(rows), audited=epoch.audit is not None)
        accept = coins < acceptance
        audit = np.zeros(len(rows), dtype=bool)
        if epoch.audit is not None:
            share = np.zeros(len(rows))
            np.divide(epoch.audit, acceptance, out=share, where=acceptance > 0)
            audit = accept & (audit_coins < share)
        if self._gates is not None:
            stop = _first_full(self.remaining, audit, accept)
            if stop < len(rows):
                # whoever comes later has another policy, and a coin that nobody has looked at
                later = zip((coins, audit_coins), self._not_looked_at, strict=True)
                left, audits_left = (np.concatenate([one[stop:], two]) for one, two in later)
                self._not_looked_at = (left, audits_left)
                rows, acceptance = rows[:stop], acceptance[:stop]
                accept, audit = accept[:stop], audit[:stop]
                groups = None if groups is None else groups[:stop]
                prices = prices and prices_of(prices, len(coins), slice(0, stop))
        self.rounds.append(
            epoch=epoch.number,
            features=rows,
            group=groups,
            accept=accept,
            acceptance=acceptance,
            audit=audit,
            prices=prices,
            at=self.now,
            call_end=call_end,
        )
        propensity = np.where(accept, acceptance, 1.0 - acceptance)
        return Decisions(accept, propensity, first, np.full(len(rows), epoch.number), audit)

    def _toss(self, people: int, *, audited: bool) -> tuple[FloatArray, FloatArray]:
        """A coin for each person, and one of the audit where there are audits; first those that
        were tossed in this call and not looked at.
        """
        coins, audit_coins = self._not_looked_at
        new = max(people - len(coins), 0)
        if new:
            coins = np.concatenate([coins, self.coins.random(new)])
            more_audits = self.audit_coins.random(new) if audited else np.zeros(0)
            audit_coins = np.concatenate([audit_coins, more_audits])
        self._not_looked_at = (coins[people:], audit_coins[people:])
        return coins[:people], audit_coins[:people]

    def _decide_one(
        self, row: FloatArray, groups: GroupArray | None, prices: Prices | None
    ) -> Decisions:
        """The same for one person: most people come alone, and arrays of one entry take time."""
        epoch = self.rounds.epoch
        first = self.rounds.decided
        chance = epoch.policy.acceptance_of_one(row, groups)
        accept = self.coins.random() < chance
        audit = False
        if epoch.audit is not None:
            share = epoch.audit / chance if chance > 0 else 0.0
            coin = self.audit_coins.random()  # tossed for all people, whatever was drawn
            audit = accept and coin < share
        group = None if groups is None else groups.item()
        self.rounds.append_one(epoch.number, row, group, accept, chance, audit, prices, self.now)
        self.rounds.returned = self.rounds.decided
        propensity = chance if accept else 1.0 - chance
        return OneDecision(accept, propensity, first, epoch.number, audit)

    def _checked_people(
        self, features: ArrayLike, group: ArrayLike | None, prices: Prices | None
    ) -> tuple[FloatArray, GroupArray | None]:
        """The rows of people and their groups; InvalidInput if they cannot be decided about."""
        needed = self._group_needed
        self._require_named(features)
        rows, groups, schema = as_arrivals(features, group, self.rounds.schema, group_needed=needed)
        people, columns = rows.shape
        if groups is None and needed:
            raise InvalidInput(
                "group is None, but the group of each person is needed to measure the gap "
                "between groups.",
                hint='with group_use="certify_only" it is used for measuring only and never '
                "influences a decision.",
                argument="group",
            )
        if self.columns not in (None, columns):
            raise InvalidInput(
                f"features has {columns} columns, but earlier people had {self.columns}; the "
                "number cannot change.",
                hint="pass the same columns, in the same order, for all people.",
                argument="features",
            )
        check_rows = getattr(self.algorithm.hypotheses, "check_rows", None)
        if check_rows is not None:
            check_rows(rows)
        if self.rounds.decided == 0 and people and hasattr(self.algorithm, "check_first"):
            new = schema is not None and self.rounds.schema is None
            algorithm = self.algorithm.reading(schema) if new and schema else self.algorithm
            algorithm.check_first(rows, groups)
        if schema is not None and not schema.plain and isinstance(self.algorithm, ReadsPeople):
            self.algorithm.check_people(self.state, rows, self.rounds)
        self._check_prices(prices, people)
        if schema is not None and self.rounds.schema is None:  # the first frame, and all is well
            self._read_columns(schema)
            self.rounds.epochs[-1] = self._with_schema(self.rounds.epoch)
        self.columns = columns
        self.priced = prices is not None
        return rows, groups

    @property
    def _group_needed(self) -> bool:
        if self.algorithm.group_use == "decide" or self.algorithm.needs_group == "always":
            return True
        return self.algorithm.needs_group == "exploring" and self.rounds.epoch.phase == "explore"

    def _check_prices(self, prices: Prices | None, people: int) -> None:
        """Prices per person are given for all people or for none, and stay below the preset
        bound.
        """
        if self.priced not in (None, prices is not None):
            raise InvalidInput(
                f"prices per person were {'' if self.priced else 'not '}given before and are "
                f"{'missing' if self.priced else 'given'} now.",
                hint="give them for all people or for none.",
                argument="prices",
            )
        if prices is not None:
            for name in ("false_accept", "false_reject"):
                as_numbers(getattr(prices, name), people, f"the price {name}")
            self.algorithm.loss.priced(prices)

    def _require_named(self, features: object) -> None:
        """InvalidInput for a frame after arrays: nobody can say which of its columns is which."""
        arrays_before = self.rounds.schema is None and self.columns is not None
        if not isinstance(features, np.ndarray) and arrays_before and is_frame(features):
            raise InvalidInput(
                "features is a frame, but earlier people came in arrays, which have no names; "
                "nobody can say which column is which.",
                hint="pass frames from the first person on; or frame[names].to_numpy(), with the "
                "columns in the order of the arrays.",
                argument="features",
            )

    def _read_columns(self, schema: Schema) -> None:
        """From now on people have these columns."""
        self.algorithm = self.algorithm.reading(schema)
        self.rounds.schema = schema

    def _with_schema(self, epoch: Epoch) -> Epoch:
        policy = epoch.policy
        if not isinstance(policy, Mixture) or policy.schema == self.rounds.schema:
            return epoch
        return replace(epoch, policy=replace(policy, schema=self.rounds.schema))

    def _checked_time(self, at: float | None) -> float | None:
        """The time from now on; ProtocolError if it ran backwards."""
        if at is None:
            return self.now
        require_number("at", at, lambda _: True, "the time is a finite number")
        if self.now is not None and at < self.now:
            raise ProtocolError(
                f"the time is {at}, but it has been {self.now} before; time does not run backwards."
            )
        return float(at)

    # epochs

    def open_epoch(self) -> Epoch:
        """If the current epoch is full, close it with all that is resolved, and open the next one.

        An epoch that is full although nothing new is known goes on instead, twice as long, so that
        a call with n people is cut into O(log n) parts. It ends at the first call that finds
        something resolved.

        Returns
        -------
        Epoch
            The epoch that is open now.
        """
        with self.lock:
            self._step_if_due()
            return self.rounds.epoch

    def _step_if_due(self) -> None:
        """The same for a caller that holds the lock: it runs before every single decision."""
        rounds = self.rounds
        epoch = rounds.epoch
        full = rounds.decided >= epoch.end
        if full or rounds.decided >= epoch.look_at or self._overdue_with_news:
            with one_blas_thread():
                self.state, opened = self.algorithm.step(self.state, rounds, self.now)
            rounds.has_new_labels = False
            if opened is not None and opened.number > epoch.number:
                rounds.open(self._with_schema(opened))
            else:
                rounds.keep_open(opened or epoch, longer=full)
            if rounds.keep == "counts" and isinstance(self.algorithm, KeepsCounts):
                needed = self.algorithm.needed_rows(self.state, rounds)
                if needed is not None and not needed.all():
                    rounds.keep_only(needed)
        if self._gates is not None:
            self.state, other = self._gates.gate(self.state, rounds, self.now)
            if other is not None and other.number > rounds.epoch.number:
                rounds.open(self._with_schema(other))
            elif other is not None:
                rounds.reopen(self._with_schema(other))

    @property
    def _overdue_with_news(self) -> bool:
        rounds = self.rounds
        if not rounds.overdue:
            return False
        if self.algorithm.maturity is None:
            return rounds.has_new_labels
        return windows.matured(rounds, self.now, self.algorithm.maturity) > rounds.epoch.closed

    @property
    def rounds_left(self) -> int:
        """Rounds until the epoch is full; 0 means that the next decision opens another one."""
        return self.rounds.epoch.end - self.rounds.decided

    @property
    def has_hard_counts(self) -> bool:
        """Whether an audit budget or a quota may be used up by single people."""
        return self._gates is not None

    @property
    def remaining(self) -> tuple[float, float]:
        """How many people may be accepted by the audit coin, and accepted at all."""
        return (inf, inf) if self._gates is None else self._gates.remaining(self.rounds, self.now)

    @property
    def people_at_once(self) -> float:
        """How many people may come before their labels are worth waiting for: where hard counts
        could be used up by people whose labels have not come, a few; else infinitely many.
        """
        if not self.has_hard_counts:
            return inf
        audits, _ = self.remaining
        coin = self.epoch.audit or 0.0
        if coin == 0.0 or audits == inf:
            return inf
        return max(float(audits // (4.0 * max(coin, 0.01))), 1.0)

    def absorb(self, log: RoundLog) -> None:
        """Take rounds that were decided under the current policy in counts instead of one by one.

        Parameters
        ----------
        log : RoundLog
            The rounds; they must fit into the epoch.

        Raises
        ------
        ProtocolError
            If they do not.
        """
        with self.lock:
            if self._gates is not None:
                raise ProtocolError(
                    "an audit budget or a quota is a count of single people, and cannot be kept by "
                    "rounds that are decided in aggregate.",
                    hint="decide() about people, in blocks of any size.",
                )
            people = round(log.rounds)
            if people > self.rounds_left:
                raise ProtocolError(
                    f"{people} rounds do not fit into the epoch, which has {self.rounds_left} left."
                )
            epoch = self.rounds.epoch
            self.columns = log.features.shape[1]
            self.rounds.append_counts(
                Counts.of_log(
                    epoch.number, self.rounds.decided, log, epoch.audit or 0.0, self.audit_coins
                )
            )
            self.rounds.has_new_labels = True

    # what becomes of rounds

    def observe(
        self,
        round: ArrayLike | None = None,
        label: ArrayLike | None = None,
        *,
        key: object = None,
        group: ArrayLike | None = None,
        at: float | None = None,
    ) -> None:
        """Report the label of one accepted round, or of several.

        Parameters
        ----------
        round, label : int or array of int
            The rounds, and a label of -1 or +1 for each.
        key : str, int or a list of them
            In place of the rounds: the keys under which the people were decided about.
        group : array, optional
            Their groups, which must not contradict those that are known. A group that was unknown
            stays unknown, because only accepted people have outcomes: see `report_group`.
        at : float, optional
            The time.

        Raises
        ------
        ProtocolError, BadLabel
            If a round or key is unknown, was rejected, overruled or erased, or has another label.
            Then nothing has changed.
        AlreadyObserved
            If each of the keys has this label already. Then nothing has changed either. If only
            some of them have it, the outcomes of the others are taken.
        """
        label = _given("label", label)
        with self.lock:
            now = self._checked_time(at)
            if key is not None:
                round, label, group = self._not_observed_yet(round, label, group, key)
            if group is None and self._observed_one(round, label, now):
                return
            require_same_order({"round": round, "label": label, "group": group})
            round_ids = self._named_rounds(round, None)
            labels = np.atleast_1d(np.asarray(label))
            if round_ids.shape != labels.shape:
                raise InvalidInput(
                    f"{round_ids.size} rounds come with {labels.size} labels; each round needs "
                    "one.",
                    argument="label",
                )
            if group is not None:
                reports.check_groups(
                    self.rounds, round_ids, as_reported_groups(group, len(round_ids))
                )
            reports.enter_labels(
                self.rounds,
                round_ids,
                labels,
                window_open=windows.window_open(
                    self.rounds, round_ids, now, self.algorithm.maturity
                ),
                closed=self.rounds.epoch.closed,
            )
            self.now = now

    def _not_observed_yet(
        self, round: object, label: ArrayLike, group: ArrayLike | None, key: object
    ) -> tuple[Any, Any, Any]:
        """Rounds, labels and groups of the keys whose outcome is new: whoever repeats a report in
        other blocks reports some of it for the first time. An error if nothing is new.
        """
        round_ids = self._named_rounds(round, key)
        labels = np.atleast_1d(np.asarray(label))
        if round_ids.shape != labels.shape:
            return round_ids, label, group  # refused below
        known = np.array([reports.known_label(self.rounds, one) for one in round_ids.tolist()])
        new = (known == 0) | (known != labels)
        if not new.any():
            given = as_keys(key)[0].given
            raise AlreadyObserved(
                f"the outcome {known[0]:+d} was reported before under the key {given!r}"
                f"{', and so was that of each other key' * (len(round_ids) > 1)}.",
                hint="nothing has changed, and nothing is left to do.",
                argument="key",
            )
        if len(round_ids) == 1:
            return int(round_ids[0]), labels.tolist()[0], group
        if group is not None:
            group = as_reported_groups(group, len(round_ids))[new]
        return round_ids[new], labels[new], group

    def _named_rounds(self, round: Any, key: object) -> IntArray:
        """The rounds that are meant: by number, or by key."""
        if (round is None) == (key is None):
            raise InvalidInput(
                f"{'neither round nor key is' if key is None else 'round and key are both'} given.",
                hint="say whom it is about by one of them: round=... or key=...",
                argument="key",
            )
        return as_rounds(round) if key is None else self.keys.rounds(as_keys(key))

    def _observed_one(self, round: object, label: object, now: float | None) -> bool:
        """Most labels come one by one: enter a plain one without arrays."""
        if not isinstance(round, int) or type(label) is not int:
            return False  # True equals 1, and is none of the two labels
        entered = reports.enter_label(
            self.rounds,
            round,
            label,
            now=now,
            window=self.algorithm.maturity,
            closed=self.rounds.epoch.closed,
        )
        if entered:
            self.now = now
        return entered

    def overrule(
        self,
        round: ArrayLike | None = None,
        accept: ArrayLike | None = None,
        *,
        key: object = None,
    ) -> None:
        """Report that a human decided otherwise about one round, or about several.

        The round stays as it was drawn: the guarantee is about the policy (manual overrides are not
        covered). The label of a person who was drawn to be accepted and was rejected counts for
        nothing, whether it was reported before or not, and cannot be reported any more; a bad one
        that has come stays in the bill of the audit budget. A person
        who was drawn to be rejected and was accepted stays rejected. A decision that agrees with
        the draw changes nothing, nor does reporting it again.

        Parameters
        ----------
        round : int or array of int
            The rounds of the decisions.
        accept : bool or array of bool
            What the human decided: one for each round, or one for all.
        key : str, int or a list of them
            In place of the rounds: the keys under which the people were decided about.

        Raises
        ------
        ProtocolError
            If a round or key is unknown, or was erased. Then nothing has changed.
        """
        accept = _given("accept", accept)
        with self.lock:
            round_ids = self._named_rounds(round, key)
            decided = np.asarray(accept)
            if decided.dtype.kind != "b" or decided.shape not in ((), round_ids.shape):
                raise InvalidInput(
                    f"accept is {accept!r} for {round_ids.size} rounds; what a human decided is "
                    "True or False, for each round or for all.",
                    argument="accept",
                )
            decided = np.broadcast_to(decided, round_ids.shape)
            window_open = self._window_open(round_ids)
            self._forget(reports.overrule(self.rounds, round_ids, decided, window_open=window_open))

    def erase(self, round: ArrayLike | None = None, *, key: object = None) -> None:
        """Forget the person of one round, or of several.

        Features, group, prices and label are wiped. A round keeps its place: in a cohort that is
        still open it counts at its worst; the sums of a closed one stay as they are, and the loss
        alone forgets the person. Erasing somebody again changes nothing; nothing else can be
        reported about the round any more. A key is never free again: its hash stays, and nobody
        is decided about under it.

        Parameters
        ----------
        round : int or array of int
            The rounds of the decisions.
        key : str, int or a list of them
            In place of the rounds: the keys under which the people were decided about.

        Raises
        ------
        ProtocolError
            If a round or key is unknown. Then nobody has been erased.
        """
        with self.lock:
            round_ids = self._named_rounds(round, key)
            window_open = self._window_open(round_ids)
            self._forget(reports.erase(self.rounds, round_ids, window_open=window_open))
            self.keys.erase(round_ids)

    def report_group(
        self,
        round: ArrayLike | None = None,
        group: ArrayLike | None = None,
        *,
        key: object = None,
    ) -> None:
        """Report groups that become known after the decision.

        Report them for accepted and rejected people alike.

        Parameters
        ----------
        round, group : array
            The rounds, and the group of each; None where it is still unknown. They count in a
            cohort that is still open.
        key : str, int or a list of them
            In place of the rounds: the keys under which the people were decided about.

        Notes
        -----
        Requirement, which is on record in the certificate with the number of people by group and
        draw: whether and when a group becomes known does not depend on the draw.
        """
        with self.lock:
            round_ids = self._named_rounds(round, key)
            groups = as_reported_groups(group, len(round_ids))
            reports.enter_groups(self.rounds, round_ids, groups, closed=self.rounds.epoch.closed)

    def _window_open(self, round_ids: IntArray) -> Any:
        return windows.window_open(self.rounds, round_ids, self.now, self.algorithm.maturity)

    def _forget(self, lost: IntArray) -> None:
        if len(lost) and isinstance(self.algorithm, Forgets):
            self.state = self.algorithm.forget(self.state, self.rounds, lost)

    # what there is to look at

    @property
    def policy(self) -> DeployedPolicy:
        """The policy of the open epoch."""
        return self.epoch.policy

    @property
    def epoch(self) -> Epoch:
        """The epoch that is open (or was the last one to be filled)."""
        return self.rounds.epoch

    @property
    def round(self) -> int:
        """Rounds decided."""
        return self.rounds.decided

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates whose gaps it is judged by."""
        return self.algorithm.rates

    @property
    def prices(self) -> Prices:
        """What its errors cost."""
        return self.algorithm.loss.prices

    @property
    def group_use(self) -> GroupUse:
        """Whether the group may influence a decision."""
        return self.algorithm.group_use

    @property
    def params(self) -> Params:
        """The settings as plain values."""
        settings = {name: plain_setting(value) for name, value in self.settings.items()}
        return {"learner": type(self).__name__, **settings}

    @property
    def schema(self) -> Schema | None:
        """The columns of the people: those of the first frame, or of the class; None as long as
        they come in arrays, which have no names.
        """
        return self.rounds.schema

    @property
    def oracle_calls(self) -> int:
        """Calls of the oracle so far."""
        return sum(epoch.oracle_calls for epoch in self.rounds.epochs)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a human wants to know."""
        with self.lock:
            if not isinstance(self.algorithm, HasNotes):
                return ()
            return self.algorithm.notes(self.state, self.rounds)

    @property
    def report(self) -> LearnerReport:
        """Where the learner stands."""
        return self._report(forecast=())

    def _report(self, forecast: tuple[str, ...]) -> LearnerReport:
        """The same, with what is expected of the rounds ahead."""
        with self.lock:
            epochs = tuple(self.rounds.epochs)
            return LearnerReport(
                round=self.rounds.decided,
                phase=epochs[-1].phase,
                epochs=epochs,
                oracle_calls=sum(epoch.oracle_calls for epoch in epochs),
                missing_labels=self.rounds.missing_labels,
                notes=self.notes,
                forecast=forecast,
            )

    @property
    def gathered(self) -> tuple[tuple[int, RoundLog], ...]:
        """(epoch, log) of all rounds whose outcome is known."""
        with self.lock:
            return tuple(learning.logs(self.rounds))

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
        with self.lock:
            self._require_named(features)
            rows, _ = as_people(features, self.rounds.schema)
            return self.rounds.epoch.policy.acceptance(rows, group)

    # storing

    def save(self, path: str | os.PathLike[str]) -> None:
        """Store everything in one file, without pickle; `evenhand.load` reads it.

        Parameters
        ----------
        path : str or path
            The file. An older one of that name is replaced at once or not at all.

        Raises
        ------
        NotSerialisable
            If a setting or something in the state cannot be stored as data.
        ProtocolError
            If there is a file of that name which this learner has neither loaded nor saved: another
            learner, perhaps in another process, went on from here, and its people would be lost.
        """
        # the table is written as it stands, so nobody may decide or report meanwhile
        with self.lock:
            stored = self._stored()
            mark = storage.write(path, stored, set(self.files.values()))
            self.files[os.path.realpath(path)] = mark

    def _stored(self) -> storage.Stored:
        shell = {name: getattr(self, name) for name in SHELL}
        shell["keys"] = self.keys.to_fields()
        # repeated, so that a file in which somebody has changed the settings is recognised
        shell["settings"] = dict(self.settings)
        name = storage.stored_name(type(self))
        return storage.Stored(name, dict(self.settings), self.state, self.rounds, shell)

    def restore(self, stored: storage.Stored) -> None:
        """Go on where a learner with the same settings was stored.

        Parameters
        ----------
        stored : Stored
            What `evenhand.storage.read` returned.
        """
        with self.lock:
            for name in SHELL:
                setattr(self, name, stored.shell[name])
            self.keys = KeyBook.from_fields(stored.shell["keys"], stored.rounds.decided)
            if stored.rounds.schema is not None:
                self._read_columns(stored.rounds.schema)
            self.state = stored.state
            self.rounds = stored.rounds

    def leave_unread_rules(self) -> bool:
        """Put a policy into force that has none of the rules that could not be read.

        Returns
        -------
        bool
            False if the algorithm cannot go on without them.
        """
        with self.lock:
            if not isinstance(self.algorithm, OutlivesRules):
                return False
            with one_blas_thread():
                self.state, epoch = self.algorithm.without_unread(self.state, self.rounds, self.now)
            if epoch is not None:
                self.rounds.open(self._with_schema(epoch))
            return True

    def toss_fresh_coins(self) -> None:
        """Take the coins from new entropy, so that a copy of the learner does not tell them."""
        with self.lock:
            self.coins = np.random.default_rng()
            self.audit_coins = np.random.default_rng()
            self._not_looked_at = (np.zeros(0), np.zeros(0))
            if self.rounds.decided == 0:
                self.coins_from_seed = False

    def restarted(self, seed: int | None = None) -> Self:
        """A fresh learner with the same settings.

        Parameters
        ----------
        seed : int, optional
            Seed of its random draws; None draws one.

        Returns
        -------
        EpochLearner
            A learner that has met nobody.
        """
        return type(self)(**{**self.settings, "seed": seed})

    def __repr__(self) -> str:
        return f"<{self._headline()}>"

    def _headline(self) -> str:
        epochs = self.rounds.epochs
        limit = getattr(self, "limit", None)
        rates = [rate.symbol for rate in getattr(self, "rates", ())]
        limited = "" if limit is None else f"{' and '.join(rates)} gap at most {limit:g}, "
        return (
            f"{type(self).__name__}: {limited}{self.round:,} rounds, {len(epochs)} epochs, now "
            f"{epochs[-1].phase!r}"
        )

    def _columns(self) -> dict[str, Sequence[Any]]:
        rounds = self.rounds
        ends = [min(epoch.end, rounds.decided) for epoch in rounds.epochs]
        return {
            "epoch": [epoch.number for epoch in rounds.epochs],
            "phase": [epoch.phase for epoch in rounds.epochs],
            "first_round": [epoch.first_round for epoch in rounds.epochs],
            "rounds": [
                end - epoch.first_round for epoch, end in zip(rounds.epochs, ends, strict=True)
            ],
            "oracle_calls": [epoch.oracle_calls for epoch in rounds.epochs],
        }

    def _draw(self, axes: "Axes") -> None:
        columns = self._columns()
        phases = list(dict.fromkeys(columns["phase"]))
        rows = zip(columns["phase"], columns["first_round"], columns["rounds"], strict=True)
        for phase, first, rounds in rows:
            axes.barh(phases.index(phase), rounds, left=first, color=INK, edgecolor="white")
        axes.set_yticks(range(len(phases)), phases)
        axes.set_xlabel("round")
        axes.set_ylabel("phase")


def _given(name: str, value: ArrayLike | None) -> ArrayLike:
    """What has to be given beside a round or a key."""
    if value is None:
        raise InvalidInput(f"{name} is missing.", hint=f"pass {name}=...", argument=name)
    return value


def as_rounds(round: ArrayLike) -> IntArray:
    """One round or several, as whole numbers."""
    rounds = np.atleast_1d(np.asarray(round))
    if rounds.ndim != 1 or (rounds.dtype.kind not in "iu" and rounds.size):
        raise InvalidInput(
            f"round is {rounds.reshape(-1)[0]!r}; rounds are whole numbers, one or a list of them.",
            hint="use Decision.round.",
            argument="round",
        )
    return rounds.astype(np.int64)


def as_reported_groups(group: object, rounds: int) -> GroupArray:
    """The group of one round or of several, None where it is unknown."""
    alone = not isinstance(group, list | tuple) and np.asarray(group, dtype=object).ndim == 0
    return as_known_groups([group] if alone else group, rounds)


def plain_setting(value: object) -> object:
    """A setting as a value that JSON can hold."""
    if isinstance(value, Prices):
        return {
            "false_accept": np.asarray(value.false_accept).tolist(),
            "false_reject": np.asarray(value.false_reject).tolist(),
        }
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain_setting(item) for item in value]
    if hasattr(value, "params"):
        return dict(value.params)
    if isinstance(value, Quota):
        return asdict(value)
    if isinstance(value, Hypothesis):
        return value.describe()
    return getattr(value, "symbol", value)


def _first_full(remaining: tuple[float, float], audit: BoolArray, accept: BoolArray) -> int:
    """How many rows may be decided under one policy: up to the one that uses up a count."""
    stop = len(accept)
    for left, counted in zip(remaining, (audit, accept), strict=True):
        places = np.flatnonzero(counted)
        if 1 <= left <= len(places):
            stop = min(stop, int(places[int(left) - 1]) + 1)
    return stop


def needs_time(algorithm: Algorithm) -> str | None:
    """Why decide() needs the time of the decision; None if it does not."""
    if getattr(algorithm, "quota", None) is not None:
        return "people may be accepted up to a quota in each period"
    if algorithm.maturity is not None:
        return "labels have a maturity window"
    return None


def _joined(parts: list[Decisions], first: int) -> Decisions:
    if len(parts) == 1:
        return parts[0]
    nothing = Decisions(
        np.zeros(0, bool), np.zeros(0), first, np.zeros(0, np.int64), np.zeros(0, bool)
    )
    blocks = [nothing, *parts]
    return Decisions(
        np.concatenate([block.accept for block in blocks]),
        np.concatenate([block.propensity for block in blocks]),
        first,
        np.concatenate([block.epoch for block in blocks]),
        np.concatenate([block.audit for block in blocks]),
    )
