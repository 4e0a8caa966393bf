"""Whom a policy accepts of the people who judge it, and what it gains over deciding alike for all.

Figures on these people, beside a certificate or a test, and no claims about the population: a
policy within the limit may reject nearly everybody, and then a reader must see that.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from math import inf, nan, sqrt
from typing import Literal, Self

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.findings import ROUNDING
from evenhand.result import Table, column
from evenhand.words import FloatArray, Group, GroupArray, IntArray

GroupLabel = str | int | float | bool
"""A group's label in JSON; other kinds are written as their text."""
Use = Literal["constant", "no gain", "within chance", "gain"]

CHANCE = 2.0
"""A saving below so many standard errors may be chance."""
MEANING = "These are figures on these people, not claims about the population."


@dataclass(frozen=True)
class AcceptedCount:
    """How many people of a group with an outcome a policy accepts.

    Parameters
    ----------
    group : str, int, float or bool
        The group.
    label : int
        The outcome: -1 is bad, +1 good.
    people : int
        How many there are.
    accepted : float
        How many of them are accepted, in expectation over the coins of the policy.

    Examples
    --------
    >>> AcceptedCount("a", 1, 40, 12.5).accepted
    12.5
    """

    group: GroupLabel
    label: int
    people: int
    accepted: float

    def __post_init__(self) -> None:
        if self.label not in (-1, 1):
            raise InvalidInput(f"the label is {self.label}; labels are -1 and +1.")
        if not -ROUNDING <= self.accepted <= self.people * (1 + ROUNDING):
            raise InvalidInput(f"{self.accepted:g} of {self.people} people are accepted.")


@dataclass(frozen=True)
class Saving:
    """What a policy saves against the better constant, on the same people.

    With c = 1 where accepting all applicants is the cheaper constant and 0 where rejecting all is,
    p_i the probability that the policy accepts person i, and x_i what accepting i costs more than
    rejecting i, the constant costs d_i = x_i (c - p_i) more than the policy for person i. The
    saving per person is the mean of the d_i, and its standard error sqrt(sum_i (d_i - mean)^2 /
    (n (n - 1))). The constant is chosen on the same people, as part of the policy may have been, so
    that these are no estimates for the population.

    Parameters
    ----------
    cost, constant_cost : float
        The cost per person of the policy, and of the better constant.
    constant_accepts : bool
        Whether that constant accepts all applicants.
    error : float
        The standard error of the saving; infinite for a single person.

    Examples
    --------
    >>> saving = Saving(0.30, 0.40, False, 0.02)
    >>> round(saving.mean, 3), round(saving.share, 3), saving.constant
    (0.1, 0.25, 'rejecting all applicants')
    """

    cost: float
    constant_cost: float
    constant_accepts: bool
    error: float

    @property
    def mean(self) -> float:
        """What is saved per person; negative if the policy costs more than the constant. Rounding
        is no saving.
        """
        saved = self.constant_cost - self.cost
        return saved if abs(saved) > ROUNDING * max(self.cost, self.constant_cost) else 0.0

    @property
    def share(self) -> float:
        """The same as a share of what the constant costs."""
        return self.mean / self.constant_cost if self.constant_cost > 0 else 0.0

    @property
    def constant(self) -> str:
        """The better constant, in words."""
        return "accepting all applicants" if self.constant_accepts else "rejecting all applicants"


@dataclass(frozen=True)
class Acceptance:
    """Whom a policy accepts of the people who judge it, and a verdict about its use.

    Parameters
    ----------
    counts : tuple of AcceptedCount
        By group and outcome.
    learned_weight : float
        The weight of rules that are no constants.
    saving : Saving or None
        What it saves against the better constant; None if no prices are known.

    Examples
    --------
    >>> cells = (("a", 1, 50, 6.0), ("a", -1, 50, 1.0))
    >>> found = Acceptance(
    ...     tuple(AcceptedCount(*one) for one in cells), 1.0, Saving(0.45, 0.5, False, 0.02)
    ... )
    >>> found.use, found.share(), found.share(label=1)
    ('gain', 0.07, 0.12)
    >>> print(found.sentences[0])
    The policy costs 10.0% less than rejecting all applicants.
    >>> print(found.sentences[1])  # doctest: +NORMALIZE_WHITESPACE
    It accepts 7.0% of these 100 people: of those with a good outcome it rejects 88.0%, of those
    with a bad one 98.0%.
    """

    counts: tuple[AcceptedCount, ...]
    learned_weight: float
    saving: Saving | None = None

    @classmethod
    def of(
        cls,
        chance: FloatArray,
        group: GroupArray,
        label: IntArray,
        *,
        groups: Mapping[Group, GroupLabel],
        learned_weight: float,
        count: IntArray | None = None,
        costs: tuple[FloatArray, FloatArray] | None = None,
    ) -> Self:
        """Count.

        Parameters
        ----------
        chance : array of float
            The probability with which each person is accepted.
        group, label : array
            Of each person.
        groups : mapping
            The groups, in their order, each with its label in JSON.
        learned_weight : float
            The weight of rules that are no constants.
        count : array of int, optional
            How many people each row stands for; 1 by default.
        costs : (array, array), optional
            What accepting each person costs more than rejecting, and what rejecting costs.

        Returns
        -------
        Acceptance
            The figures.
        """
        weight = np.ones(len(chance)) if count is None else np.asarray(count, dtype=np.float64)
        cells = []
        for value, name in groups.items():
            for outcome in (-1, 1):
                here = weight * (np.asarray(group == value) & (label == outcome))
                cells.append(AcceptedCount(name, outcome, int(here.sum()), float(here @ chance)))
        saving = None if costs is None else _saving(chance, weight, *costs)
        return cls(tuple(cells), float(learned_weight), saving)

    def people(self, group: GroupLabel | None = None, label: int | None = None) -> int:
        """How many people there are, of one group and outcome or of all."""
        return sum(one.people for one in self._chosen(group, label))

    def share(self, group: GroupLabel | None = None, label: int | None = None) -> float:
        """The share of them that is accepted; not a number if there is nobody."""
        people = self.people(group, label)
        accepted = sum(one.accepted for one in self._chosen(group, label))
        return accepted / people if people else nan

    def _chosen(self, group: GroupLabel | None, label: int | None) -> list[AcceptedCount]:
        return [
            one
            for one in self.counts
            if (group is None or one.group == group) and (label is None or one.label == label)
        ]

    @property
    def groups(self) -> tuple[GroupLabel, ...]:
        """The groups, in their order."""
        return tuple(dict.fromkeys(one.group for one in self.counts))

    @property
    def use(self) -> Use | None:
        """The verdict about use, on these people.

        "constant": no learned rule has any weight. "no gain": nothing is saved. "within chance":
        less than CHANCE standard errors. "gain": at least that. None if no prices are known.
        """
        if self.learned_weight <= ROUNDING:
            return "constant"
        if self.saving is None:
            return None
        if self.saving.mean <= 0:
            return "no gain"
        return "within chance" if self.saving.mean < CHANCE * self.saving.error else "gain"

    @property
    def useful(self) -> bool:
        """Whether nothing speaks against the use of the policy here."""
        return self.use in ("gain", None)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict about use, and whom the policy accepts, in words."""
        if not self.people():
            return ("Nobody is there whom the policy could accept.",)
        said = self._use_sentence
        if self.use == "constant":
            return (said,)
        people = self.people()
        them = "the one person" if people == 1 else f"these {people:,} people"
        who = f"It accepts {self.share():.1%} of {them}"
        both = (self.share(label=1), self.share(label=-1))
        if self.people(label=1) and self.people(label=-1):
            good, bad = (max(0.0, 1.0 - share) for share in both)
            who += (
                f": of those with a good outcome it rejects {good:.1%}, of those with a bad one "
                f"{bad:.1%}"
            )
        return (said, f"{who}.") if said else (who.replace("It", "The policy", 1) + ".",)

    @property
    def _use_sentence(self) -> str:
        saving = self.saving
        if self.use == "constant":
            share = round(self.share(), 9)
            whole = {1.0: "accepts all applicants", 0.0: "rejects all applicants"}
            does = whole.get(share, f"accepts {share:.1%} by lot")
            if saving is None:
                return f"Nothing was learned: the policy {does}."
            if saving.mean < 0:
                return (
                    f"Nothing was learned: the policy {does}. It costs {saving.cost:.4f} per "
                    f"person, and {saving.constant} {saving.constant_cost:.4f}."
                )
            return f"Nothing was learned, and nothing gained: the policy {does}."
        if saving is None:
            return ""
        if self.use == "no gain":
            return (
                f"Nothing was gained: the policy costs {saving.cost:.4f} per person, and "
                f"{saving.constant} {saving.constant_cost:.4f}."
            )
        text = f"The policy costs {saving.share:.1%} less than {saving.constant}"
        if self.use == "within chance":
            text += ", which may be chance: it is less than two standard errors"
        return f"{text}."

    def to_json(self) -> Json:
        """The figures as plain JSON.

        Returns
        -------
        dict
            `from_json` reads it back; "use" and "share" are there to be read.
        """
        saving = None if self.saving is None else asdict(self.saving)
        if saving is not None and saving["error"] == inf:
            saving["error"] = None
        return {
            "use": self.use,
            "share": None if not self.people() else self.share(),
            "learned_weight": self.learned_weight,
            "saving": saving,
            "counts": [asdict(one) for one in self.counts],
        }

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """Read what `to_json` wrote.

        Parameters
        ----------
        value : dict
            The JSON.

        Returns
        -------
        Acceptance
            The figures.
        """
        saving = value["saving"]
        if saving is not None:
            error = inf if saving["error"] is None else saving["error"]
            saving = Saving(**{**saving, "error": error})
        counts = tuple(AcceptedCount(**one) for one in value["counts"])
        return cls(counts, value["learned_weight"], saving)


def _saving(
    chance: FloatArray, weight: FloatArray, more: FloatArray, rejecting: FloatArray
) -> Saving | None:
    """The saving of `Saving`; weight: people of each row. None if there is nobody."""
    people = float(weight.sum())
    if people == 0:
        return None
    reject = float(weight @ rejecting) / people
    accept = reject + float(weight @ more) / people
    constant = float(accept < reject)
    saved = more * (constant - chance)
    mean = float(weight @ saved) / people
    cost = min(accept, reject) - mean
    error = inf
    if people > 1:
        error = sqrt(float(weight @ (saved - mean) ** 2) / (people * (people - 1)))
    return Saving(cost, min(accept, reject), bool(constant), error)


def acceptance_table(found: Acceptance, title: str) -> Table:
    """The shares of each group that are accepted: of all, of the good, of the bad."""

    def of(label: int | None) -> Callable[[tuple[str, GroupLabel | None]], float | None]:
        def share(row: tuple[str, GroupLabel | None]) -> float | None:
            value = found.share(row[1], label)
            return None if value != value else value

        return share

    rows: list[tuple[str, GroupLabel | None]] = [(str(name), name) for name in found.groups]
    return Table.of(
        "acceptance",
        title,
        [*rows, ("all", None)],
        column("group", take=lambda row: row[0]),
        column("people", "people", "count", lambda row: found.people(row[1])),
        column("accepted", "accepted", "percent", of(None)),
        column("good", "of the good", "percent", of(1)),
        column("bad", "of the bad", "percent", of(-1)),
        note=MEANING,
    )
