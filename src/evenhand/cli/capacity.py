"""The options that say how many people may be accepted, and which rule decides today; `plan`,
`simulate`, `compare` and `study` share them.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evenhand.algorithms.certified.candidates import as_candidates
from evenhand.algorithms.certified.quota import Quota
from evenhand.cli.options import (
    Function,
    Share,
)
from evenhand.contracts import Hypothesis
from evenhand.errors import InvalidInput
from evenhand.hypotheses import policy_from_json
from evenhand.hypotheses.serialise import hypothesis_from_json
from evenhand.hypotheses.thresholds import Threshold
from evenhand.tables import number

A_RULE = (
    'it is a cut-off on a column ("score>=620", "debt<0.4"), a policy file of `evenhand solve`, or '
    "a file with the JSON of a rule"
)
WAY_OUT = 'name a column of the table and a number: --incumbent "score>=620".'


@dataclass(frozen=True)
class Capacity:
    """Who may be accepted, and by which rules people are decided about today, as they were asked
    for.
    """

    capacity: float | None = None
    floor: float | None = None
    quota: str | None = None
    incumbent: str | None = None

    def settings(self, *, days: bool = False) -> dict[str, Any]:
        """Cap, floor and quota as arguments of the certified learner; those that were given.
        days: whether a quota without a number of people is one for each day.
        """
        quota = None if self.quota is None else read_quota(self.quota, days=days)
        named = {
            "accept_at_most": self.capacity,
            "accept_at_least": self.floor,
            "quota": quota,
        }
        return {name: value for name, value in named.items() if value is not None}

    def candidates(self, columns: Sequence[str]) -> tuple[Hypothesis, ...]:
        """The incumbent's rules, for people with these columns."""
        return () if self.incumbent is None else read_incumbent(self.incumbent, columns)


def capacity_options(command: Function) -> Function:
    """Who may be accepted. Hands on `capacity`: Capacity."""

    @click.option(
        "--capacity",
        metavar="SHARE",
        type=Share("(0, 1]"),
        help="The share of the people who may be accepted at most, for example 0.2.",
    )
    @click.option(
        "--floor",
        metavar="SHARE",
        type=Share("[0, 1]"),
        help="The share of the people who must be accepted at least.",
    )
    @click.option(
        "--quota",
        metavar="COUNT/PEOPLE",
        help="A hard count: never more than COUNT accepted of each PEOPLE who come, for example "
        "50/1000.",
    )
    @click.option(
        "--incumbent",
        metavar="RULE",
        help='The rule of today, a candidate from the first person on: "COLUMN>=NUMBER", '
        '"COLUMN<NUMBER", or a policy or rule in a JSON file.',
    )
    @functools.wraps(command)
    def with_capacity(
        *args: Any,
        capacity: float | None,
        floor: float | None,
        quota: str | None,
        incumbent: str | None,
        **options: Any,
    ) -> None:
        command(*args, capacity=Capacity(capacity, floor, quota, incumbent), **options)

    return with_capacity


def read_quota(text: str, *, days: bool = False) -> Quota:
    """A quota with people as its unit of time.

    >>> read_quota("50/1000")
    Quota(count=50, period=1000.0, people=1000.0)
    >>> read_quota("50", days=True)
    Quota(count=50, period=1.0, people=None)
    """
    first, slash, second = text.partition("/")
    count = number(first)
    people = number(second) if slash else None
    per_day = days and not slash
    if count is None or count != int(count) or (people is None and not per_day):
        raise InvalidInput(
            f"--quota is {text!r}",
            requirement="it is a whole number of people who may be accepted, of how many who come",
            hint="--quota 50/1000 accepts at most 50 of each 1,000 people"
            + ("; with --per-day, --quota 50 accepts at most 50 a day." if days else "."),
            argument="quota",
        )
    if people is None:
        return Quota(int(count), period=1.0)
    return Quota(int(count), period=people, people=people)


def read_incumbent(text: str, columns: Sequence[str]) -> tuple[Hypothesis, ...]:
    """The rules of today, for people with these columns.

    >>> (rule,) = read_incumbent("score>=620", ["debt", "score"])
    >>> rule.describe(["debt", "score"])
    'accept if score >= 620'
    """
    for sign, at_least in ((">=", True), ("<", False)):
        name, found, cut = text.partition(sign)
        value = number(cut)
        if found and value is not None:
            column = _place(name.strip(), text, columns)
            return (Threshold(column, value, len(columns), at_least),)
    path = Path(text)
    if not path.is_file():
        raise InvalidInput(
            f"--incumbent is {text!r}; there is no such file",
            requirement=A_RULE,
            hint=WAY_OUT,
            argument="incumbent",
        )
    return _read_rules(path, columns)


def _place(name: str, text: str, columns: Sequence[str]) -> int:
    if name in columns:
        return list(columns).index(name)
    raise InvalidInput(
        f"--incumbent is {text!r}, and the people have no column {name!r}",
        requirement=f"a candidate reads their columns, and no others: {', '.join(columns)}",
        hint=WAY_OUT,
        argument="incumbent",
    )


def _read_rules(path: Path, columns: Sequence[str]) -> tuple[Hypothesis, ...]:
    """The rules of a policy file, or the one rule of a JSON file."""
    from evenhand.evaluation.policy_files import read_document

    document = read_document(path)
    named = document.get("columns")
    if isinstance(named, list) and list(map(str, named)) != list(columns):
        raise InvalidInput(
            f"the policy of {path} reads the columns {', '.join(map(str, named))}",
            requirement=f"a candidate reads the columns of the people: {', '.join(columns)}",
            hint="use the columns that the policy was made with (--features).",
            argument="incumbent",
        )
    try:
        if "policy" in document:
            rules = policy_from_json(document["policy"]).hypotheses
        else:
            rules = (hypothesis_from_json(document),)
    except (InvalidInput, LookupError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"--incumbent {path} holds no rule ({error})",
            requirement=A_RULE,
            hint=WAY_OUT,
            argument="incumbent",
        ) from error
    return as_candidates(rules)
