"""A log of decisions as it comes from a file: who was accepted with which probability, and the
outcomes of the accepted; and whether it can be believed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import BadLabel, InvalidInput, LengthMismatch, NotFinite
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, as_features, as_numbers

WAY_OUT = (
    "record with every decision the probability with which it was drawn (column 'acceptance'); "
    "for decisions by people or by a fixed rule, accept a small share at random with a coin that "
    "ignores the person, and log it; `evenhand plan` tells how many such audits it takes."
)
MOST_SURPRISE = 21.0
"""The exponent of Bernstein's inequality from which on a log is refused: a correct one with
probability 2e-9."""


def no_propensities(source: str) -> InvalidInput:
    """The refusal of historic decisions: why, and what to do."""
    return InvalidInput(
        f"{source} holds no propensities: nobody can tell with which probability these people were "
        "accepted, so nothing can be certified from it. Whoever decided may have seen what the log "
        "does not hold; then the accepted differ from the rejected in ways that bear on the "
        "outcome, and no weighting can repair that.",
        hint=WAY_OUT,
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
        group: Iterable[Any] | None = None,
        names: Sequence[str] | None = None,
        count: ArrayLike = 1.0,
        id: Iterable[Any] | None = None,
        source: str = "the log",
    ) -> "DecisionLog":
        """Check and convert what another program holds.

        Parameters
        ----------
        features, accept, acceptance, count, source
            As in the class.
        label : array
            NaN or 0 where none is known; those of the rejected are dropped, with a note.
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
        taken = np.asarray(accept, dtype=bool)
        known = np.nan_to_num(np.asarray(label, dtype=np.float64))
        for name, column in (("accept", taken), ("label", known)):
            _require_length(column, rows, name)
        labels: Any = known  # other values are refused below
        if np.isin(known, (-1, 0, 1)).all():
            labels = np.where(taken, known, 0.0).astype(np.int64)
        unused = int(((known != 0) & ~taken).sum())
        note = (
            f"{unused:,} labels of rejected people are not used: an outcome that nobody could see "
            "was guessed or came by another way, and mixing it in would break the weighting"
        )
        return cls(
            table,
            taken,
            np.asarray(acceptance, dtype=np.float64),
            labels,
            _texts(group, rows),
            tuple(names) if names is not None else tuple(f"x{j}" for j in range(table.shape[1])),
            as_numbers(count, rows, "count"),
            None if id is None else _texts(id, rows),
            source,
            (note,) if unused else (),
        )

    def __post_init__(self) -> None:
        rows = len(self.features)
        if rows == 0:
            raise InvalidInput(f"{self.source} has no rows; at least one decision is needed.")
        if len(self.names) != self.features.shape[1] or len(set(self.names)) < len(self.names):
            raise InvalidInput(
                f"{self.source} has {self.features.shape[1]} feature columns named "
                f"{', '.join(self.names)}; each needs a name of its own."
            )
        for name in ("accept", "acceptance", "label", "group", "count", "id"):
            if getattr(self, name) is not None:
                _require_length(getattr(self, name), rows, name)
        p, accept, label = self.acceptance, self.accept, self.label
        every = "every decision needs the one it was drawn with"
        self._refuse(np.isnan(p), "has no acceptance probability", every)
        self._refuse(
            ~((p >= 0) & (p <= 1)),
            "has the acceptance probability {:g}",
            "a probability lies between 0 and 1",
            "a weight 1/p is no propensity: log p itself.",
        )
        never, always = "was accepted with", "was rejected though accepted with"
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

    def _refuse(self, bad: BoolArray, what: str, law: str, hint: str | None = None) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidInput(
                f"{self.source}: {self._row(row)} {what.format(self.acceptance[row])} "
                f"({int(bad.sum()):,} such rows); {law}.",
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
            "explore: accept everybody with a small probability, as evenhand's learners do; "
            "`evenhand plan` tells what it costs.",
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

    def require_single(self, format: str) -> None:
        """Refuse rows that stand for several decisions, which other tools' formats cannot say.

        Parameters
        ----------
        format : str
            The format, for the message.

        Raises
        ------
        InvalidInput
            If there is such a row.
        """
        if not (self.count == 1).all():
            raise InvalidInput(
                f"{self.source} has rows that stand for several decisions; {format} has no counts.",
                hint="write Parquet, CSV or JSON lines, or repeat the rows.",
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
        columns = ("features", "accept", "acceptance", "label", "group", "count")
        kept = {name: getattr(self, name)[rows:] for name in columns}
        return replace(self, **kept, id=np.array(self.ids, dtype=object)[rows:]) if rows else self


def _texts(values: Iterable[Any] | None, rows: int) -> GroupArray:
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


def _require_length(column: Any, rows: int, name: str) -> None:
    if column.shape != (rows,):
        raise LengthMismatch(
            f"{name} has shape {column.shape} but there are {rows} rows; "
            "it needs one entry per row."
        )
