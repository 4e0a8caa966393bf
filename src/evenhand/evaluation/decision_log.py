"""A log of decisions as it comes from a file: who was accepted with which probability, and the
outcomes of the accepted; whether it can be believed; and how the columns of a file become one:
which has which role, and how labels, decisions and probabilities are written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from math import nan
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import BadLabel, InvalidInput, LengthMismatch, MissingColumn, NotFinite
from evenhand.evaluation.policy_files import PolicyFile
from evenhand.people import (
    GroupColumn,
    as_decisions,
    as_known_groups,
    as_weights,
    labels_of_accepted,
    require_same_order,
)
from evenhand.tables import (
    MISSING_VALUE,
    Frame,
    TableColumn,
    group_texts,
    listed,
    matching_values,
    number,
    prepare,
    same_value,
)
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, as_features

WAY_OUT = (
    "record with every decision the probability with which it was drawn (column 'acceptance'); "
    "for decisions by people or by a fixed rule, accept a small share at random with a coin that "
    "ignores the person, and log it; `evenhand plan` estimates how many such audits it takes."
)
ORDER = ("round", "time")
"""Columns that show in which order the decisions were drawn."""
MOST_SURPRISE = 21.0
"""The exponent of Bernstein's inequality from which on a log is refused: a correct one with
probability 2e-9."""


def no_propensities(source: str) -> InvalidInput:
    """The refusal of historic decisions: why, and what to do."""
    return InvalidInput(
        f"{source} holds no propensities: nobody knows with which probability these people were "
        "accepted, so nothing can be certified from it. Whoever decided may have seen what the log "
        "does not hold; then the accepted differ from the rejected in ways that bear on the "
        "outcome, and no weighting can repair that.",
        hint=f"{WAY_OUT} Ranges over all outcomes that the rejected might have had need no "
        "probabilities: `evenhand apply` a policy to these people, and `evenhand measure` its "
        "decisions.",
    )


@dataclass(frozen=True, eq=False)
class DecisionLog:
    """Decisions in the order in which they were drawn, one row each (or `count` equal ones).

    Parameters
    ----------
    features : array of float, shape (n, d)
        What was known of each person.
    accept : array of bool, shape (n,)
        What was drawn.
    acceptance : array of float, shape (n,)
        The probability of being accepted, given the person and the past, as it was drawn.
    label : array of int, shape (n,)
        +1 or -1 where the outcome is known, 0 where it is open, and always 0 for the rejected:
        there is no place for their labels.
    group : array of object, shape (n,)
        Texts, None where the group is not known.
    names : tuple of str
        The names of the features.
    count : array of float, shape (n,)
        How many equal decisions each row stands for.
    id : array of object, shape (n,), optional
        Texts, all different; None for row numbers from 1 on.
    round : array of float, shape (n,), optional
        The numbers of the decisions in the order in which they were drawn; NaN where not known.
    time : array of float, shape (n,), optional
        When they were drawn, in any unit; NaN where not known.
    source : str
        Where the log is from, for messages.
    notes : tuple of str
        What was done to the rows, in words.

    Examples
    --------
    >>> log = DecisionLog.of([[3.0], [4.0]], [True, False], [0.5, 0.2], [1, 0], group=["a", "b"])
    >>> len(log), log.groups, log.propensity.tolist()
    (2, ('a', 'b'), [0.5, 0.8])
    """

    features: FloatArray
    accept: BoolArray
    acceptance: FloatArray
    label: IntArray
    group: GroupArray
    names: tuple[str, ...]
    count: FloatArray
    id: GroupArray | None = None
    round: FloatArray | None = None
    time: FloatArray | None = None
    source: str = "the log"
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        features: ArrayLike,
        accept: ArrayLike,
        acceptance: ArrayLike,
        label: ArrayLike,
        *,
        group: GroupColumn | Iterable[object] | None = None,
        names: Sequence[str] | None = None,
        count: ArrayLike = 1.0,
        id: Iterable[object] | None = None,
        round: ArrayLike | None = None,
        time: ArrayLike | None = None,
        source: str = "the log",
    ) -> "DecisionLog":
        """Check and convert what another program holds.

        Parameters
        ----------
        features, accept, acceptance, count, round, time, source
            As in the class; decisions may be True and False, 1 and 0, or +1 and -1.
        label : array
            +1 (good) and -1, or True and False; NaN, None or 0 where none is known. 0 as the bad
            outcome is understood where open ones are NaN. Those of the rejected are dropped, with a
            note, and never read: they may be anything.
        group, id : iterable, optional
            None, NaN or "" where one is missing.
        names : sequence of str, optional
            By default x0, x1, ...

        Returns
        -------
        DecisionLog
            The log.

        Raises
        ------
        InvalidInput
            If a row cannot have happened; the message names it.
        """
        table = as_features(features)
        rows = len(table)
        columns = {"features": features, "accept": accept, "acceptance": acceptance}
        require_same_order({**columns, "label": label, "group": group, "count": count})
        taken = as_decisions(accept, rows, "accept")
        labels, unused = labels_of_accepted(label, taken)
        note = (
            f"{unused:,} labels of rejected people are not used: an outcome that nobody could see "
            "was guessed or came by another way, and mixing it in would break the weighting"
        )
        return cls(
            table,
            taken,
            np.asarray(acceptance, dtype=np.float64),
            labels,
            as_texts(None if group is None else as_known_groups(group, rows), rows),
            tuple(names) if names is not None else tuple(f"x{j}" for j in range(table.shape[1])),
            as_weights(count, rows),
            None if id is None else as_texts(id, rows),
            None if round is None else np.asarray(round, dtype=np.float64),
            None if time is None else np.asarray(time, dtype=np.float64),
            source,
            (note,) if unused else (),
        )

    def __repr__(self) -> str:
        people = f"{len(self):,} rows, {int(self.accept.sum()):,} accepted"
        known = f"features: {listed(self.names)}; groups: {listed(self.groups) or 'none'}"
        return f"<DecisionLog {self.source!r}: {people}; {known}>"

    def __post_init__(self) -> None:
        rows = len(self.features)
        if rows == 0:
            raise InvalidInput(f"{self.source} has no rows; at least one decision is needed.")
        if len(self.names) != self.features.shape[1] or len(set(self.names)) < len(self.names):
            raise InvalidInput(
                f"{self.source} has {self.features.shape[1]} feature columns named "
                f"{', '.join(self.names)}; each needs a name of its own."
            )
        for name in ("accept", "acceptance", "label", "group", "count", "id", *ORDER):
            if getattr(self, name) is not None:
                _require_length(getattr(self, name), rows, name)
        p = self.acceptance
        accept = self.accept
        label = self.label
        every = "every decision needs the one it was drawn with"
        self._refuse(np.isnan(p), "has no acceptance probability", every)
        self._refuse(
            ~((p >= 0) & (p <= 1)),
            "has the acceptance probability {:g}",
            "a probability lies between 0 and 1",
            "a weight 1/p is no propensity: log p itself.",
        )
        never = "was accepted with"
        always = "was rejected though accepted with"
        self._refuse((p == 0) & accept, never + " probability {:g}", "that cannot have happened")
        self._refuse((p == 1) & ~accept, always + " probability {:g}", "that cannot be")
        bad = ~np.isin(label, (-1, 0, 1)) | ((label != 0) & ~accept)
        if bad.any():
            row = int(np.argmax(bad))
            raise BadLabel(
                f"{self.source}: the label of {self._row(row)} is {label[row]:g}; labels are "
                "-1 and +1, 0 where none is known, and the rejected have none."
            )
        countless = ~((self.count > 0) & np.isfinite(self.count))
        if countless.any():
            row = int(np.argmax(countless))
            raise NotFinite(
                f"{self.source}: {self._row(row)} stands for {self.count[row]:g} decisions; "
                "it needs more than 0."
            )
        if self.id is not None:
            self._require_different(self.id.tolist())

    def _require_different(self, ids: list[str]) -> None:
        first: dict[str, int] = {}
        for row, name in enumerate(ids):
            if first.setdefault(name, row) < row:
                raise InvalidInput(
                    f"{self.source}: id {name!r} occurs in row {first[name] + 1} and in row "
                    f"{row + 1}; a decision counts once.",
                    hint="leave the copies out; "
                    "a person who applied twice has two decisions with two ids.",
                )

    def _refuse(self, bad: BoolArray, what: str, requirement: str, hint: str | None = None) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidInput(
                f"{self.source}: {self._row(row)} {what.format(self.acceptance[row])} "
                f"({int(bad.sum()):,} such rows); {requirement}.",
                hint=hint or WAY_OUT,
            )

    def _row(self, row: int) -> str:
        return f"row {row + 1}" + ("" if self.id is None else f" (id {self.id[row]})")

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def people(self) -> float:
        """Decisions in all."""
        return float(self.count.sum())

    @property
    def open(self) -> BoolArray:
        """Accepted people whose outcome is not known."""
        return np.asarray(self.accept & (self.label == 0))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups that occur, in alphabetical order."""
        return tuple(sorted({value for value in self.group.tolist() if value is not None}))

    @property
    def propensity(self) -> FloatArray:
        """The probability of the decision that was taken, as other tools want it."""
        return np.where(self.accept, self.acceptance, 1.0 - self.acceptance)

    @property
    def ids(self) -> list[str]:
        """The ids, or row numbers."""
        return [str(row + 1) for row in range(len(self))] if self.id is None else self.id.tolist()

    def require_support(self) -> None:
        """Refuse a log in which somebody had no chance of being accepted.

        Raises
        ------
        InvalidInput
            If there is such a person: nothing is known about people like them, and nothing can be.
        """
        self._refuse(
            self.acceptance == 0,
            "had the acceptance probability {:g}",
            "an outcome that could not be seen cannot be weighted, "
            "and people like this one stay unknown",
            "explore: accept all applicants with a small probability, as evenhand's learners do; "
            "`evenhand plan` estimates what it costs.",
        )

    def require_honest(self) -> None:
        """Refuse a log whose propensities do not fit its decisions, or in which knowing a group
        hangs on the decision.

        Raises
        ------
        InvalidInput
            If a correct log would look like this with a probability of at most 2e-9.

        Notes
        -----
        If the coins A were drawn with p, then s = sum (A - p) u has mean 0 and variance v = sum p
        (1 - p) u, for u = 1 and, if knowing the group does not hang on the coin, for u = 1[no
        group]. Bernstein: P(|s| >= x) <= 2 exp(-x^2 / (2 (v + x/3))), because |A - p| <= 1.
        """
        p = self.acceptance
        unknown = np.array([value is None for value in self.group.tolist()], dtype=np.float64)

        def surprise(among: FloatArray) -> float:
            weight = self.count * among
            x = abs(float(np.dot(weight, self.accept - p)))
            return x**2 / (2.0 * (float(np.dot(weight, p * (1.0 - p))) + x / 3.0)) if x > 0 else 0.0

        if surprise(np.ones(len(self))) > MOST_SURPRISE:
            raise InvalidInput(
                f"{self.source}: {float(np.dot(self.count, self.accept)):,.0f} people were "
                f"accepted, but its propensities expect {float(np.dot(self.count, p)):,.0f}: "
                "the decisions were not drawn with these probabilities.",
                hint="`acceptance` is the probability of being accepted, for the rejected too; "
                "`propensity` that of what was decided.",
            )
        if not unknown.all() and surprise(unknown) > MOST_SURPRISE:
            accepted, rejected = (
                np.average(unknown, weights=self.count * part)
                for part in (self.accept, ~self.accept)
            )
            raise InvalidInput(
                f"{self.source}: the group is unknown for {accepted:.1%} of the accepted and "
                f"{rejected:.1%} of the rejected, more unevenly than the propensities explain: "
                "whether it is known depends on the decision, so these groups are not those of the "
                "population.",
                hint="ask for the group before deciding, "
                "or of a share of people that a coin of its own chooses.",
            )

    @property
    def ordered_by(self) -> tuple[str, ...]:
        """Which of "round" and "time" the log holds, by which its order can be checked."""
        return tuple(name for name in ORDER if getattr(self, name) is not None)

    def require_order(self) -> None:
        """Raise an error for a log whose rows are not in the order in which they were drawn.

        The bets on a row are fixed from the rows before it. In another order, by group or by
        decision say, what comes first tells of what was drawn later, and an interval can be wrong
        more often than delta says. Nothing is sorted here: rows that have the same time have no
        order that a sort could find, and a column that is not the order would go unnoticed.

        Raises
        ------
        InvalidInput
            If round numbers do not ascend, or times go back.

        Examples
        --------
        >>> DecisionLog.of([[3.0], [4.0]], [1, 0], [0.5, 0.2], [1, 0], round=[7, 8]).require_order()
        """
        for name in self.ordered_by:
            column = getattr(self, name)
            known = np.flatnonzero(~np.isnan(column))
            step = np.diff(column[known])
            # two people may come in the same second, but no two decisions have one number
            back = step <= 0 if name == "round" else step < 0
            if back.any():
                place = int(np.argmax(back))
                before = int(known[place])
                after = int(known[place + 1])
                raise InvalidInput(
                    f"{self.source}: the {name} of {self._row(after)} is {column[after]:.15g}, "
                    f"after {column[before]:.15g} in {self._row(before)}; rows stand in the order "
                    "in which the decisions were drawn, and the intervals rest on it.",
                    hint=f"sort the log by {name} as the decisions were drawn; if this column is "
                    "not about their order, leave it out or give it another name.",
                )

    def without_first(self, rows: int) -> "DecisionLog":
        """Leave out the first rows, because the candidate was chosen with their help.

        Parameters
        ----------
        rows : int
            How many.

        Returns
        -------
        DecisionLog
            The log from row `rows` + 1 on.

        Raises
        ------
        InvalidInput
            If no row would remain.
        """
        if not 0 <= rows < len(self):
            raise InvalidInput(
                f"the first {rows} rows of {len(self)} were to be left out; "
                "at least one row must remain."
            )
        columns = ("features", "accept", "acceptance", "label", "group", "count", *self.ordered_by)
        kept = {name: getattr(self, name)[rows:] for name in columns}
        return replace(self, **kept, id=np.array(self.ids, dtype=object)[rows:]) if rows else self


def as_texts(values: Iterable[object] | None, rows: int) -> GroupArray:
    """Objects: texts, None where the value is missing."""
    texts = np.full(rows, None, dtype=object)
    if values is None:
        return texts
    given = values.tolist() if isinstance(values, np.ndarray) else list(values)
    _require_length(np.empty(len(given)), rows, "group or id")
    for row, value in enumerate(given):
        if value is not None and value == value and value != "":
            texts[row] = value if isinstance(value, str) else str(value)
    return texts


def _require_length(column: NDArray[np.generic], rows: int, name: str) -> None:
    if column.shape != (rows,):
        raise LengthMismatch(
            f"{name} has shape {column.shape} but there are {rows} rows; "
            "it needs one entry per row."
        )


# from the columns and lines of a file


APPLIED = {"accept": "decision", "acceptance": "probability"}
"""What `evenhand apply` writes, by the role it has in a log."""
ROLES = ("id", "group", "accept", "acceptance", "propensity", "label", "count", *ORDER)
FEATURE = "feature_"
"""With this prefix a column is a feature; without any such column all that have no role are."""
YES = frozenset({"1", "1.0", "true", "yes", "accept", "accepted"})
NO = frozenset({"0", "0.0", "false", "no", "reject", "rejected"})
TOLERANCE = 1e-6
"""How far two statements of one probability may differ: other tools write single precision."""


@dataclass(frozen=True)
class LogReading:
    """Where a log is from, and what its reader knows about it.

    columns: role -> name of the column where it differs; features: those to keep; good: the good
    value of the label.

    policy: the policy that will be asked about, if it says how it reads a table: its columns become
    the features, and its names of outcome and group are known. unseen, drop_missing: as in
    `prepare`. constant: whether it looks at no feature; then what is no number is left out.
    """

    source: str
    columns: Mapping[str, str] = field(default_factory=dict)
    features: Sequence[str] | None = None
    good: str | None = None
    policy: PolicyFile | None = None
    constant: bool = False
    unseen: Literal["refuse", "ignore"] = "refuse"
    drop_missing: bool = False

    def __post_init__(self) -> None:
        strange = [role for role in self.columns if role not in ROLES]
        if strange:
            raise InvalidInput(
                f"{strange[0]!r} is no role of a column; the roles are {', '.join(ROLES)}."
            )

    def log(self, frame: Frame) -> DecisionLog:
        """The log that the columns hold."""
        named = self.named(frame.columns)
        features, names, frame, notes = self.features_of(frame, set(named.values()))
        roles = {role: frame.columns[name] for role, name in named.items()}
        accept = self.decisions(roles["accept"])
        log = DecisionLog.of(
            features=features,
            accept=accept,
            acceptance=self.acceptance(roles, accept),
            label=self.labels(roles["label"], accept, named["label"]),
            group=self.groups(roles, named.get("group"), frame.typed),
            names=names,
            count=self.numbers(roles["count"], "count") if "count" in roles else 1.0,
            id=self.ids(roles.get("id"), frame.typed),
            round=self.numbers(roles["round"], "round", gaps=True) if "round" in roles else None,
            time=self.times(roles["time"]) if "time" in roles else None,
            source=self.source,
        )
        return replace(log, notes=(*log.notes, *notes))

    def named(self, columns: Mapping[str, TableColumn]) -> dict[str, str]:
        """The column of each role that there is one for."""
        # role -> column: as given, else the column of that name; the service writes `seq` for `id`
        named = {role: self.columns.get(role, role) for role in ROLES}
        for role, name in self.columns.items():
            if name not in columns:
                raise MissingColumn(
                    f"{self.source} has no column {name!r} for {role}; "
                    f"it has: {', '.join(columns)}.",
                    hint=Frame(self.source, columns, ()).missing_hint(name),
                    remedies=Frame(self.source, columns, ()).missing_remedies(),
                )
        if named["id"] not in columns and "seq" in columns:
            named["id"] = "seq"
        for role, name in APPLIED.items():
            if named[role] not in columns and name in columns:
                named[role] = name
        if any(name.startswith(FEATURE) for name in columns):
            # other columns than features are about the decisions; these are the service's
            for role, name in (("round", "seq"), ("time", "at")):
                if named[role] not in columns:
                    named[role] = name
        if self.policy is not None:
            own = {"label": self.policy.label, "group": self.policy.group}
            for role, known in own.items():
                if named[role] not in columns and known is not None and known in columns:
                    named[role] = known
        roles = {role: name for role, name in named.items() if name in columns}
        missing = [role for role in ("accept", "label") if role not in roles]
        if missing:
            raise MissingColumn(
                f"{self.source} has no column for {' and '.join(missing)}; "
                f"it has: {', '.join(columns)}.",
                hint=f"name the column of the role {missing[0]!r} (roles: {', '.join(ROLES)}).",
                argument="column",
            )
        return roles

    def features_of(
        self, frame: Frame, used: set[str]
    ) -> tuple[FloatArray, tuple[str, ...], Frame, list[str]]:
        """The features as numbers, their names, the rows that have them, and what was done. Columns
        that the policy does not look at help to guess outcomes, if they are numbers.
        """
        left = self.feature_columns(frame.columns, used)
        notes: list[str] = []
        found: dict[str, FloatArray] = {}
        looked_at: set[str] = set()
        needed = not self.constant
        if self.policy is not None and needed and not self.encoded(set(left)):
            # The policy may look at what is the group here, so columns with a role count, too.
            every = self.feature_columns(frame.columns, set())
            columns = {name: frame.columns[column] for name, column in every.items()}
            ready = prepare(
                replace(frame, columns=columns),
                self.policy.recipe,
                drop_missing=self.drop_missing,
                unseen=self.unseen,
            )
            names = [str(name) for one in self.policy.recipe for name in one.names]
            found = dict(zip(names, ready.features.T, strict=True))
            frame = frame.where(ready.complete)
            notes += map(str, ready.notes)
            looked_at = {one.name for one in self.policy.recipe} | set(names)
            needed = False
        unread = []
        for name, column in left.items():
            if name in looked_at:
                continue
            try:
                found[name] = self.numbers(frame.columns[column], name)
            except InvalidInput:
                if needed:
                    raise
                unread.append(name)
        if unread:
            notes.append(
                f"{listed(unread)}: not all numbers, so these columns do not help to guess "
                "outcomes; intervals are valid without, and wider"
            )
        rows = np.column_stack(list(found.values())) if found else np.zeros((len(frame), 0))
        return rows, tuple(found), frame, notes

    def encoded(self, names: set[str]) -> bool:
        """Whether the features are those that the policy's recipe makes, not those it reads."""
        assert self.policy is not None
        recipe = self.policy.recipe
        made = {str(name) for one in recipe for name in one.names}
        return made <= names and not {one.name for one in recipe} <= names

    def ids(self, column: TableColumn | None, typed: bool) -> Iterable[object] | None:
        """What stands in the column, if there is one; a typed source has no word for a gap."""
        if column is None:
            return None
        return column.cells if typed else column.texts

    def groups(
        self, roles: Mapping[str, TableColumn], column: str | None, typed: bool
    ) -> Iterable[object] | None:
        """The group of each row; names that differ in case alone are one, and NA is a gap, unless
        the source is `typed`. Groups are spelled as the policy does, and those whom it knows as the
        group of nobody else are one.
        """
        if "group" not in roles:
            return None
        if typed and self.policy is None:
            return roles["group"].cells
        texts = group_texts(Frame(self.source, {"group": roles["group"]}, ()), "group", [])
        if self.policy is None:
            return texts
        # A group that was named by hand may be another grouping than the policy's own.
        own = column == self.policy.group or "group" not in self.columns
        nobody = MISSING_VALUE if own and MISSING_VALUE in self.policy.groups else ""
        spelled = self.policy.spelled(nobody if text is None else text for text in texts)
        strange = sorted(set(spelled) - {*self.policy.groups, ""})
        if self.policy.uses_group and self.policy.groups and strange and self.unseen == "refuse":
            raise InvalidInput(
                f"{self.source}: the group, which the policy looks at, holds "
                f"{listed(map(repr, strange))}, which the policy has never seen; it knows "
                f"{listed(self.policy.groups, 10)}.",
                hint='name the column of the policy\'s group; or with unseen="ignore" these people '
                "are treated as a group without a rule of its own.",
                argument="unseen",
            )
        return spelled

    def times(self, column: TableColumn) -> FloatArray:
        """Times as numbers: as they are, or the seconds since 1970 of dates and times in ISO 8601
        (UTC where no zone is named); NaN where one is missing.
        """
        plain = column.notation is not None and column.notation.kind == "number"
        if plain and column.numbers is not None:
            return column.numbers
        seconds = []
        for row, text in enumerate(column.texts):
            try:
                seconds.append(np.nan if text is None else seconds_of(text))
            except ValueError:
                raise InvalidInput(
                    f"{self.source}: the time in row {row + 1} is {text!r}; it is a number, or a "
                    "date and time in ISO 8601.",
                    hint="write it as 2026-01-31T14:05:00, or leave the column out.",
                ) from None
        return np.array(seconds)

    def decisions(self, column: TableColumn) -> BoolArray:
        if isinstance(column.cells, np.ndarray) and column.cells.dtype.kind == "b":
            return column.cells
        texts = [str(cell).strip().lower() for cell in column.cells]
        for row, text in enumerate(texts):
            if text not in YES and text not in NO:
                raise InvalidInput(
                    f"{self.source}: the decision in row {row + 1} is {text!r}; "
                    "it is 1 or 0, true or false, yes or no, accept or reject."
                )
        return np.array([text in YES for text in texts], dtype=bool)

    def feature_columns(self, columns: Mapping[str, TableColumn], used: set[str]) -> dict[str, str]:
        """The columns of the features, by their names."""
        marked = {n.removeprefix(FEATURE): n for n in columns if n.startswith(FEATURE)}
        left = marked or {name: name for name in columns if name not in used}
        if self.features is not None:
            lost = [name for name in self.features if name not in left]
            if lost:
                raise MissingColumn(
                    f"{self.source} has no feature {lost[0]!r}; it has: {', '.join(left)}."
                )
            left = {name: left[name] for name in self.features}
        return {name: column for name, column in left.items() if column not in used}

    def numbers(self, column: TableColumn, name: str, gaps: bool = False) -> FloatArray:
        """A column as numbers; missing values are NaN if there may be `gaps`, else refused."""
        read = column.numbers
        if read is None and all(isinstance(cell, bool | np.bool_) for cell in column.cells):
            read = np.array(column.cells, dtype=np.float64)
        if column.ambiguity is not None:
            raise InvalidInput(
                f"{self.source}: {name} cannot be read as numbers: {column.ambiguity.text}.",
                argument=column.ambiguity.argument,
            )
        if read is None:
            texts = column.texts
            row = next(i for i, t in enumerate(texts) if t is not None and number(t) is None)
            raise InvalidInput(
                f"{self.source}: {name} is {column.cells[row]!r} in row {row + 1}; "
                "it must be a number.",
                hint="encode texts as numbers, or leave the column out of the features.",
                argument="features",
            )
        if np.isnan(read).any() and not gaps:
            raise InvalidInput(
                f"{self.source}: {name} is missing in row {int(np.argmax(np.isnan(read))) + 1}.",
                hint="leave the row or the column out.",
            )
        return read

    def acceptance(self, roles: Mapping[str, TableColumn], accept: BoolArray) -> FloatArray:
        """p from `acceptance`, or from `propensity` (of the decision that was taken)."""
        given = {
            name: self.numbers(roles[name], name, gaps=True)
            for name in ("acceptance", "propensity")
            if name in roles
        }
        if all(np.isnan(column).all() for column in given.values()):
            raise no_propensities(self.source)
        if "propensity" not in given:
            return given["acceptance"]
        taken = np.where(accept, given["propensity"], 1.0 - given["propensity"])
        return self.agreed(given["acceptance"], taken) if "acceptance" in given else taken

    def agreed(self, exact: FloatArray, derived: FloatArray) -> FloatArray:
        """`exact`, if the other statement of the same probabilities agrees with it."""
        apart = np.abs(exact - derived) > TOLERANCE
        if apart.any():
            row = int(np.argmax(apart))
            raise InvalidInput(
                f"{self.source}: row {row + 1} states the acceptance probability {exact[row]:g}, "
                f"but the propensity of its decision says {derived[row]:g}; "
                "both are about the same coin."
            )
        return exact

    def labels(self, column: TableColumn, accepted: BoolArray, name: str) -> FloatArray:
        """+1, -1, or NaN where a value is missing. The accepted say how labels are written: 1 and
        -1, 1 and 0, or `good` and others; the policy knows the good value of its own outcome.
        """
        plain = column.notation is not None and column.notation.kind == "number"
        read = column.numbers if plain else None
        if read is not None:  # most labels are numbers, and there may be millions of them
            values = np.unique(read[accepted])
            distinct = {f"{value:g}" for value in values[~np.isnan(values)].tolist()}
        else:
            seen = {column.texts[row] for row in np.flatnonzero(accepted).tolist()}
            distinct = {text for text in seen if text is not None}
        good = self.good
        if good is None and self.policy is not None and name == self.policy.label:
            own = self.policy.good or ""
            good = own if any(text.casefold() == own.casefold() for text in distinct) else None
        if good is None:
            numbers = {number(text) for text in distinct}
            if not (numbers <= {1.0, -1.0} or numbers <= {1.0, 0.0}):
                raise BadLabel(
                    f"{self.source}: the labels of the accepted are {listed(sorted(distinct))}; "
                    "they must be 1 and -1, or 1 and 0 (1 is good).",
                    hint="leave the label of an open outcome empty."
                    if numbers == {1.0, 0.0, -1.0}
                    else "say which value is good.",
                    argument="good",
                )
            good = "1"
        elif distinct:
            try:
                chosen = matching_values(good, distinct, "the label", "good")
            except InvalidInput:
                raise BadLabel(
                    f"{self.source}: no accepted person has the good outcome {good!r}; "
                    f"the labels are {listed(sorted(distinct))}.",
                    hint="say which value is good.",
                    argument="good",
                ) from None
            if read is None:
                every = {text for text in column.texts if text}
                chosen = matching_values(good, every, "the label", "good")
                sign = {text: 1.0 if text in chosen else -1.0 for text in every}
                return np.array([nan if text is None else sign[text] for text in column.texts])
        if read is not None:
            return np.where(np.isnan(read), nan, np.where(read == number(good), 1.0, -1.0))
        sign = {text: 1.0 if same_value(text, good) else -1.0 for text in set(column.texts) if text}
        return np.array([nan if text is None else sign[text] for text in column.texts])


def seconds_of(text: str) -> float:
    """The seconds since 1970 of a time in ISO 8601; ValueError if it is none.

    >>> seconds_of("1970-01-02T00:00:01")
    86401.0
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()
