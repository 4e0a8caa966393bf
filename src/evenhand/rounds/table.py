"""The table of decided people: its columns, its epochs, and the one place that appends."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.errors import ProtocolError
from evenhand.estimation import RoundLog
from evenhand.policies import DeployedPolicy, Mixture
from evenhand.rounds.cache import Cache, Span
from evenhand.rounds.counts import Counts
from evenhand.rounds.features import FIRST_CAPACITY, Column, FeatureTable, grown
from evenhand.rounds.groups import GroupCodes
from evenhand.schema import Schema
from evenhand.words import BoolArray, FloatArray, Group, GroupArray, IntArray, Prices

Keep = Literal["rows", "counts"]
"""What a table keeps of people: their rows, or counts alone."""
FOREVER = NEVER = 2**52
"""The length of an epoch that never ends, and the round of a look that never comes: below 2^53, so
that JSON holds it exactly.
"""

KINDS: Mapping[str, type] = {
    "round": np.int64,  # the number of the round
    "epoch": np.int32,  # which policy decided
    "at": np.float64,  # the time of the decision; NaN where no time is given
    "call_left": np.int32,  # people whom the same call decided after this one
    "group": np.int32,  # code of the group, UNKNOWN where it is not known
    "accept": np.bool_,  # the coin; it stays as drawn, whatever happens
    "acceptance": np.float64,  # the probability of accepting
    "audit": np.bool_,  # whether the audit coin had accepted
    "label": np.int8,  # -1, +1; 0 where it is not known
    "settled": np.int8,  # the label as known at the end of the person's own window: drift tests
    "label_late": np.bool_,  # the label came after the cohort had closed
    "overruled": np.bool_,  # a human decided otherwise than was drawn
    "erased": np.bool_,  # the person is forgotten
    "group_late": np.bool_,  # the group was reported after the coin
    "billed": np.bool_,  # overruled after a bad label had come, which stays in the bill of audits
}
"""The columns beside features and prices, with their kinds."""


@dataclass(frozen=True)
class Epoch:
    """What is deployed: one policy for some rounds, and all that is fixed with it.

    Parameters
    ----------
    number : int
        1 for the first epoch.
    phase : str
        What the algorithm does in it: "explore", "bandit", "certified", "frozen", ...
    first_round, rounds : int
        Where it begins, and how many rounds it is planned for.
    policy : DeployedPolicy
        What is deployed.
    audit : float, optional
        The probability of the audit coin, which ignores the person; None where there is none.
    closed : int
        Rounds before this one belonged to closed cohorts when the epoch was opened.
    look_at : int
        The round at which the algorithm wants to look at the rounds, even before the end.
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
    audit: float | None = None
    closed: int = 0
    look_at: int = NEVER
    exploration_floor: float = 0.0
    iterations: int = 0
    oracle_calls: int = 0
    halted: bool = True

    @property
    def end(self) -> int:
        """The first round after it, as planned."""
        return self.first_round + self.rounds

    @property
    def mixture(self) -> Mixture:
        """The policy of an algorithm that deploys mixtures alone."""
        assert isinstance(self.policy, Mixture)
        return self.policy


class Rounds:
    """Every decided round, one row each, and the epochs in which they were decided.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.policies import Mixture
    >>> from evenhand.hypotheses.constants import ACCEPT_ALL
    >>> from evenhand.rounds import reports
    >>> rounds = Rounds()
    >>> rounds.open(Epoch(1, "explore", 0, 100, Mixture((ACCEPT_ALL,), (1.0,))))
    >>> rounds.append(
    ...     epoch=1, features=np.array([[0.2], [0.7]]), group=np.array(["a", "b"]),
    ...     accept=np.array([True, True]), acceptance=np.ones(2),
    ... )
    >>> reports.enter_labels(rounds, np.array([0]), np.array([-1]))
    >>> len(rounds), rounds["label"].tolist(), rounds.missing_labels
    (2, [-1, 0], 1)
    """

    def __init__(self, keep: Keep = "rows") -> None:
        self.keep = keep
        """"rows": every row for good; "counts": rows leave once they have been counted."""
        self.dropped = 0
        """How many rows have left."""
        self.dropped_bill = 0
        """What they add to `audit_bill`."""
        self.n_rows = 0
        self.data: dict[str, Column] = {
            name: np.zeros(FIRST_CAPACITY, kind) for name, kind in KINDS.items()
        }
        self.data["at"] = _no_times(FIRST_CAPACITY)
        self._timed = False  # whether a time was ever given
        self._capacity = FIRST_CAPACITY
        self.features = FeatureTable(0)
        self.owed: FloatArray | None = None  # (capacity, 2): false accept, false reject
        self.group_codes = GroupCodes()
        self.counted: list[Counts] = []
        """Rounds that were decided in aggregate (by a simulator): they have no rows."""
        self.before: list[tuple[RoundLog, bool]] = []
        """What was known before the first round, and whether it was gathered by a coin that
        ignored the person. It serves the loss and the planning."""
        self.epochs: list[Epoch] = []
        """Every epoch, with its policy; the last one is open."""
        self.overdue = False
        """Whether the open epoch goes on beyond its planned end, because nothing new is known."""
        self.schema: Schema | None = None
        """The columns of the features, where people come in frames."""
        self.decided = 0
        """How many rounds have been decided in all."""
        self.returned = 0
        """Rounds before this one have been returned to the caller. Nobody can have seen the
        outcome of a round whose call of decide() has not returned."""
        self.has_new_labels = False
        """Whether labels were reported since the last step."""
        self.cache = Cache()
        self.complete_to = 0
        """No round before this one lacks its label (a memory of `windows.first_missing`)."""
        self.audit_bill = 0
        """People whom the audit coin accepted and who were bad, or may have been: their label has
        not come, or they were erased. Whom a human rejected before the label came is none of
        them."""
        self.audits_pending = 0
        """Those of them whose label may still come."""

    # reading

    @property
    def epoch(self) -> Epoch:
        """The epoch that is open."""
        return self.epochs[-1]

    @property
    def epoch_is_over(self) -> bool:
        """Whether the open epoch has reached its planned end."""
        return self.overdue or self.decided >= self.epoch.end

    def mixture(self, epoch: int) -> Mixture:
        """The policy of an epoch of an algorithm that deploys mixtures alone."""
        return self.epochs[epoch - 1].mixture

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Column:
        """One column, as a view of its rows."""
        return self.data[name][: self.n_rows]

    @property
    def columns(self) -> int:
        """How many features a person has; 0 while nobody has been decided."""
        return self.features.columns

    def features_of(self, rows: slice | IntArray | BoolArray) -> FloatArray:
        """The features of some rows; zeros where the person was erased."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.n_rows)
            return self.features.between(start, max(start, stop))
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        return self.features.at(rows.astype(np.int64, copy=False))

    @property
    def prices(self) -> Prices | None:
        """What errors cost, where people have prices of their own."""
        if self.owed is None:
            return None
        owed = self.owed[: self.n_rows]
        return Prices(owed[:, 0], owed[:, 1])

    @property
    def label_discarded(self) -> BoolArray:
        """Rounds whose label counts for nothing: erased, or drawn to be accepted and rejected by a
        human.
        """
        return np.asarray(self["erased"] | (self["overruled"] & self["accept"]))

    @property
    def missing_labels(self) -> int:
        """Accepted rounds whose label has not come and may still be reported."""
        waiting = self["accept"] & (self["label"] == 0) & ~self.label_discarded
        return int(waiting.sum())

    def groups_of(self, rows: slice | IntArray | BoolArray) -> GroupArray:
        """The groups of some rows: texts or numbers where all are known, else objects."""
        return self.group_codes.values_of(self["group"][rows])

    def rows_between(self, first: int, stop: int | None = None) -> slice:
        """The rows of rounds first .. stop - 1."""
        numbers = self["round"]
        begin = int(np.searchsorted(numbers, first))
        end = self.n_rows if stop is None else int(np.searchsorted(numbers, stop))
        return slice(begin, end)

    @property
    def has_gaps(self) -> bool:
        """Whether there are rounds without a row."""
        return bool(self.counted or self.dropped)

    def rows_of(self, round_ids: IntArray) -> IntArray:
        """The row of each of these rounds, which were decided one by one."""
        return np.asarray(np.searchsorted(self["round"], round_ids)) if self.has_gaps else round_ids

    def find(self, round_ids: IntArray) -> IntArray:
        """The row of each round; ProtocolError if one is unknown."""
        numbers = self["round"]
        if not self.has_gaps and len(numbers):
            rows = round_ids  # round n is row n
            unknown = (round_ids < 0) | (round_ids >= len(numbers))
        else:
            rows = np.searchsorted(numbers, round_ids)
            known = np.append(numbers, -1)[np.minimum(rows, len(numbers))]
            unknown = known != round_ids
        if unknown.any() and self.dropped:
            round = round_ids[int(np.argmax(unknown))]
            raise ProtocolError(
                f"round {round} is unknown, or has been counted: counts alone are kept, and "
                "nothing can be reported about a person who is in them.",
                hint='report each label once, before its cohort closes; or use keep="rows".',
            )
        if unknown.any():
            raise ProtocolError(
                f"round {round_ids[int(np.argmax(unknown))]} is unknown: decide() has not decided "
                "it one by one.",
                hint="use the round that the decision carries.",
            )
        return rows

    def is_aggregated(self, first: int) -> bool:
        """Whether the rounds from this one on were decided in aggregate."""
        return self.counts_from(first) is not None

    def counts_from(self, first: int) -> Counts | None:
        """The rounds that were decided in aggregate and begin with this one."""
        place = bisect_left(self.counted, first, key=_first_round)
        if place < len(self.counted) and self.counted[place].first == first:
            return self.counted[place]
        return None

    def spans(self, first: int, stop: int) -> Iterator[Span]:
        """(epoch, first, stop) of the runs of rounds of one epoch between two rounds; rounds that
        were decided in aggregate are runs of their own.
        """
        begin = bisect_left(self.counted, first, key=_first_round)
        end = bisect_left(self.counted, stop, key=_first_round)
        found = [(chunk.epoch, chunk.first, chunk.stop) for chunk in self.counted[begin:end]]
        rows = self.rows_between(first, stop)
        rounds = self["round"][rows]
        if len(rounds):
            epochs = self["epoch"][rows]
            new = (np.diff(epochs) != 0) | (np.diff(rounds) != 1)
            starts = np.concatenate([[0], np.flatnonzero(new) + 1])
            ends = np.concatenate([starts[1:], [len(rounds)]])
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                found.append((int(epochs[start]), int(rounds[start]), int(rounds[end - 1]) + 1))
        yield from sorted(found, key=lambda span: span[1])

    # what happens to people, in the order in which it happens

    def open(self, epoch: Epoch) -> None:
        """The next epoch begins: the one before it ends here."""
        if self.epochs:
            last = self.epochs[-1]
            self.epochs[-1] = replace(last, rounds=self.decided - last.first_round)
        self.epochs.append(epoch)
        self.overdue = False

    def reopen(self, epoch: Epoch) -> None:
        """Another policy in place of the one of the open epoch, which has decided nobody yet."""
        if self.epoch.first_round != self.decided:
            raise ProtocolError(
                f"epoch {self.epoch.number} has decided about people; its policy cannot change."
            )
        self.epochs[-1] = epoch

    def keep_open(self, epoch: Epoch, *, longer: bool) -> None:
        """The open epoch goes on. `longer`: beyond its planned end, for twice as long, because
        nothing new is known.
        """
        if longer:
            epoch = replace(epoch, rounds=2 * epoch.rounds)
        self.epochs[-1] = epoch
        self.overdue = self.overdue or longer

    def end_epoch_here(self) -> None:
        """The open epoch is full: the next decision opens another one."""
        self.epochs[-1] = replace(self.epoch, rounds=self.decided - self.epoch.first_round)

    def append(
        self,
        *,
        epoch: int,
        features: FloatArray,
        group: GroupArray | None,
        accept: BoolArray,
        acceptance: FloatArray,
        audit: BoolArray | None = None,
        prices: Prices | None = None,
        at: float | None = None,
        call_end: int | None = None,
    ) -> None:
        """People were decided; they are the next rounds, in this order."""
        people = len(accept)
        start = self._make_room(people, features.shape[1], prices is not None)
        rows = slice(start, start + people)
        data = self.data
        data["round"][rows] = np.arange(self.decided, self.decided + people)
        data["epoch"][rows] = epoch
        self._write_time(rows, at)
        end = self.decided + people if call_end is None else call_end
        data["call_left"][rows] = end - 1 - data["round"][rows]
        data["group"][rows] = self.group_codes.codes_of(group, people)
        data["accept"][rows] = accept
        data["acceptance"][rows] = acceptance
        data["audit"][rows] = False if audit is None else audit
        self.features.write(start, features)
        if self.owed is not None and prices is not None:
            self.owed[rows, 0] = prices.false_accept
            self.owed[rows, 1] = prices.false_reject
        self.n_rows += people
        self.decided += people
        if audit is not None:
            audits = int(audit.sum())
            self.audit_bill += audits
            self.audits_pending += audits

    def append_rows(
        self,
        features: FloatArray,
        group: GroupArray,
        columns: Mapping[str, Column],
        prices: Prices | None,
    ) -> None:
        """People were decided elsewhere (a service's ledger holds them); they are the next rounds,
        with all that is known of them now.

        columns: epoch, at, accept, acceptance, audit, label, settled, overruled, erased and
        group_late, one entry per person, and billed where somebody is. Features are zeros and the
        group is None where the person was erased.
        """
        people = len(columns["accept"])
        start = self._make_room(people, features.shape[1], prices is not None)
        rows = slice(start, start + people)
        self.data["round"][rows] = np.arange(self.decided, self.decided + people)
        self.data["call_left"][rows] = 0
        self.data["group"][rows] = self.group_codes.codes_of(group, people)
        self.data["label_late"][rows] = False
        self.data["billed"][rows] = False
        for name, column in columns.items():
            if name != "at":
                self.data[name][rows] = column
        self._write_time(rows, columns["at"])
        self.features.write(start, features)
        if self.owed is not None and prices is not None:
            self.owed[rows, 0] = prices.false_accept
            self.owed[rows, 1] = prices.false_reject
        self.n_rows += people
        self.decided += people
        self.returned = self.decided
        self.recount_bill()

    def _write_time(self, rows: slice | int, at: float | FloatArray | None) -> None:
        """The time of these rows. Where nobody ever gives one, the column takes no memory."""
        if not self._timed:
            if at is None:
                return
            self._timed = True
            self.data["at"] = np.full(self._capacity, np.nan)
        self.data["at"][rows] = np.nan if at is None else at

    def drop_from(self, round: int) -> None:
        """Take out the rounds from this one on: they will be appended again, as they are known
        then.
        """
        self.n_rows = int(np.searchsorted(self["round"], round))
        self.cache.forget()
        self.decided = round
        self.returned = min(self.returned, round)
        self.complete_to = min(self.complete_to, round)
        self.recount_bill()

    def append_one(
        self,
        epoch: int,
        features: FloatArray,
        group: Group,
        accept: bool,
        acceptance: float,
        audit: bool,
        prices: Prices | None,
        at: float | None,
    ) -> None:
        """One person was decided. Most people come alone, so this writes entry by entry."""
        row = self._make_room(1, features.shape[1], prices is not None)
        data = self.data
        data["round"][row] = self.decided
        data["epoch"][row] = epoch
        self._write_time(row, at)
        data["call_left"][row] = 0
        data["group"][row] = self.group_codes.code_of(group)
        data["accept"][row] = accept
        data["acceptance"][row] = acceptance
        data["audit"][row] = audit
        self.features.write_one(row, features[0])
        if self.owed is not None and prices is not None:
            self.owed[row, 0] = np.ravel(prices.false_accept)[0]
            self.owed[row, 1] = np.ravel(prices.false_reject)[0]
        self.n_rows = row + 1
        self.decided += 1
        if audit:
            self.audit_bill += 1
            self.audits_pending += 1

    def append_counts(self, counts: Counts) -> None:
        """Rounds were decided in aggregate."""
        if counts.first != self.decided:
            raise ProtocolError(
                f"counts begin with round {counts.first}, but {self.decided} rounds were decided."
            )
        self.counted.append(counts)
        self.decided = counts.stop
        self.returned = counts.stop
        self.audit_bill += _bill_of(counts)

    def keep_only(self, needed: BoolArray) -> None:
        """Where counts alone are kept: the rows that are not needed any more leave. Their people
        are in sums, and nothing else can become known of them.
        """
        bill, pending = self.bill_of(np.flatnonzero(~needed))
        self.dropped_bill += bill
        self.audits_pending -= pending
        self.dropped += int((~needed).sum())
        self.replace_rows(
            {name: self[name][needed] for name in KINDS},
            self.features_of(needed),
            None if self.owed is None else self.owed[: self.n_rows][needed],
            timed=self._timed,
        )

    def replace_rows(
        self,
        columns: Mapping[str, Column],
        features: FloatArray,
        owed: FloatArray | None,
        *,
        timed: bool,
    ) -> None:
        """These rows take the place of all others."""
        size = len(columns["accept"])
        self.data = dict(columns)
        if not timed:
            self.data["at"] = _no_times(size)
        self.features = FeatureTable.of(features)
        self.owed = owed
        self.n_rows = size
        self._capacity = size
        self._timed = timed

    def bill_of(self, rows: IntArray | slice) -> tuple[int, int]:
        """What these rows add to `audit_bill` and `audits_pending`."""
        label = self["label"][rows]
        overruled = self["overruled"][rows]
        audited = self["audit"][rows] & (~overruled | self["billed"][rows])
        pending = audited & (label == 0) & ~self["erased"][rows] & ~overruled
        return int((audited & (label != 1)).sum()), int(pending.sum())

    def recount_bill(self, rows: IntArray | None = None, before: tuple[int, int] = (0, 0)) -> None:
        """Count the bill anew; or, after a change of some rows, what they add now instead of
        before.
        """
        bill, pending = self.bill_of(slice(0, self.n_rows) if rows is None else rows)
        if rows is None:
            aggregated = sum(_bill_of(chunk) for chunk in self.counted)
            self.audit_bill = bill + aggregated + self.dropped_bill
            self.audits_pending = pending
        else:
            self.audit_bill += bill - before[0]
            self.audits_pending += pending - before[1]

    def _make_room(self, people: int, columns: int, priced: bool) -> int:
        """The first free row. Capacity doubles, so that appending costs O(1) per person; pages that
        nobody has written to take no memory. One column after the other is copied, so that hardly
        more than the table itself is needed; features are never copied once there are many.
        """
        if self.features.columns != columns:
            self.features = FeatureTable(columns)
        if priced and self.owed is None:
            self.owed = np.zeros((self._capacity, 2))
        needed = self.n_rows + people
        if needed > self._capacity:
            self._capacity = max(2 * self._capacity, needed)
            for name in KINDS:
                if name == "at" and not self._timed:
                    self.data["at"] = _no_times(self._capacity)
                else:
                    self.data[name] = grown(self.data[name], self._capacity)
            if self.owed is not None:
                self.owed = grown(self.owed, self._capacity)
        if needed > self.features.capacity:
            self.features.make_room(needed)
        return self.n_rows


def _first_round(counts: Counts) -> int:
    return counts.first


def _no_times(rows: int) -> FloatArray:
    """So many times that are not given: one number, read again and again."""
    return np.broadcast_to(np.nan, rows)


def _bill_of(counts: Counts) -> int:
    """Bad audits of rounds that were decided in aggregate."""
    return int(counts.audited_negative.sum())
