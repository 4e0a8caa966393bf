"""Parts that users bring: hypothesis classes, rules, and the models inside of them.

What such a part raises is its own affair. It becomes an `OwnPartFailed` here, where the part is
called, and nowhere else, so that an algorithm can leave the policy in force and say why. An error
of evenhand's own code stays what it is.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from evenhand.contracts import (
    Enumeration,
    Hypothesis,
    HypothesisClass,
    Partition,
    Partitioning,
    RowOracle,
)
from evenhand.errors import UnsuitableEstimator
from evenhand.words import BoolArray, FloatArray, GroupArray

MOST_COLUMNS = 64
"""A class is tried on so many columns, at most, to see whether it can be enumerated."""


class OwnPartFailed(Exception):
    """A part that a user brought has raised an error."""


FAILED = (OwnPartFailed, UnsuitableEstimator)
"""What a class of the user's, or a model inside of one of evenhand's, fails with."""


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Inside the `with` a part of the user's is called, and nothing else."""
    try:
        yield
    except (OwnPartFailed, MemoryError):
        raise
    except Exception as error:
        lines = str(error).strip().splitlines()
        said = f": {lines[0]}" if lines else ""
        raise OwnPartFailed(f"{what} raised {type(error).__name__}{said}") from error


def is_own(part: object) -> bool:
    """Whether the user brought it: it is none of evenhand's, or has a model inside."""
    return not type(part).__module__.startswith("evenhand.") or hasattr(part, "model")


@contextmanager
def asking_rule(rule: Hypothesis) -> Iterator[None]:
    """Inside the `with` a rule is asked whom it accepts."""
    if not is_own(rule):
        yield
        return
    of = getattr(rule, "model", rule)
    with asking(f"a rule of the kind {type(of).__name__}"):
        yield


def watched(hypotheses: HypothesisClass) -> HypothesisClass:
    """The same class; one that the user brought fails with OwnPartFailed."""
    return OwnClass(hypotheses) if is_own(hypotheses) else hypotheses


class OwnClass(HypothesisClass):
    """A class that the user brought.

    Examples
    --------
    >>> class Broken:
    ...     exact, uses_group, params, log_size = True, False, {}, 1.0
    ...     def bind(self, features, group):
    ...         raise ValueError("no rows today")
    >>> try:
    ...     OwnClass(Broken()).bind(np.zeros((1, 1)), None)
    ... except OwnPartFailed as failure:
    ...     print(failure)
    the class Broken raised ValueError: no rows today
    """

    def __init__(self, given: HypothesisClass) -> None:
        self.given = given
        self.exact = given.exact
        self.uses_group = given.uses_group

    @property
    def params(self) -> Mapping[str, object]:
        """Those of the class."""
        return self.given.params

    @property
    def log_size(self) -> float:
        """That of the class."""
        return self.given.log_size

    def log_growth(self, rows: int, columns: int) -> float:
        """That of the class."""
        return self.given.log_growth(rows, columns)

    def bind(self, features: FloatArray, group: GroupArray | None) -> RowOracle:
        """The class on these rows, in a form that has the methods of the user's."""
        what = f"the class {type(self.given).__name__}"
        with asking(what):
            bound = self.given.bind(features, group)
        form = {
            (False, False): _Bound,
            (True, False): _Enumerated,
            (False, True): _Partitioned,
            (True, True): _Both,
        }[isinstance(bound, Enumeration), isinstance(bound, Partitioning)]
        return form(bound, what, features, group)


class _Bound:
    """A bound class of the user's. The rules that it answers with are asked once about the rows:
    whoever mixes them asks them the same.
    """

    def __init__(
        self, bound: RowOracle, what: str, features: FloatArray, group: GroupArray | None
    ) -> None:
        self.bound = bound
        self.what = what
        self.features = features
        self.group = group

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """Its answer."""
        with asking(self.what):
            return self._tried(self.bound.best(acceptance_cost))

    def _tried(self, rule: Hypothesis) -> Hypothesis:
        rule.accepts(self.features, self.group)
        return rule


class _Enumerated(_Bound):
    def totals(self, channels: FloatArray) -> FloatArray:
        """Its answer."""
        assert isinstance(self.bound, Enumeration)
        with asking(self.what):
            return self.bound.totals(channels)

    def hypothesis(self, member: int) -> Hypothesis:
        """Its answer."""
        assert isinstance(self.bound, Enumeration)
        with asking(self.what):
            return self._tried(self.bound.hypothesis(member))


class _Partitioned(_Bound):
    def partition(self, acceptance_cost: FloatArray) -> Partition | None:
        """Its answer."""
        assert isinstance(self.bound, Partitioning)
        with asking(self.what):
            found = self.bound.partition(acceptance_cost)
        if found is None:
            return None

        def rule(accepted: BoolArray) -> Hypothesis:
            with asking(self.what):
                return self._tried(found.hypothesis(accepted))

        return replace(found, hypothesis=rule)


class _Both(_Enumerated, _Partitioned):
    pass


def can_be_enumerated(hypotheses: HypothesisClass) -> bool | None:
    """Whether the class, bound to rows, lists its members; None if it reads none of the rows that
    it is shown here. Two people with 1, 2, 3, ... columns are tried: nobody knows yet how many
    columns people have.
    """
    group = np.array(["a", "b"]) if hypotheses.uses_group else None
    for columns in range(1, MOST_COLUMNS + 1):
        rows = np.stack([np.zeros(columns), np.ones(columns)])
        try:
            bound = watched(hypotheses).bind(rows, group)
        except OwnPartFailed:
            continue
        return isinstance(bound, Enumeration)
    return None
