"""A requirement is a named function: it says nothing while it holds, and raises `RequirementBroken`
with figures when it does not. This module holds what the requirements have in common, and how the
requirements of learners play.

Most requirements of learners say that something changes nothing. They play fresh copies that meet
the same people and receive different reports about them, side by side: from the first round in
which two copies decide differently the requirement is broken.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, wraps
from inspect import cleandoc, signature
from threading import Barrier, Thread
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from evenhand.contracts import Environment, Json, Learner, Params
from evenhand.errors import BadLabel, InvalidInput, ProtocolError
from evenhand.words import (
    BoolArray,
    Decision,
    Decisions,
    FloatArray,
    GroupArray,
    IntArray,
    LabelledSample,
)

EQUAL = 1e-12
"""Costs that differ by at most EQUAL * sum|cost| are equal."""
BLOCK = 25
"""People between two deliveries of labels."""
HANGING = 300
"""Seconds after which a thread counts as one that never ends; those of a sound learner need a few.
"""
Arguments = ParamSpec("Arguments")
TAKEN = {
    "ClassCase": "case : ClassCase\n    The class, and the rows that it is asked about.",
    "EnvironmentCase": "case : EnvironmentCase\n    The population, and how many people are drawn.",
    "LearnerCase": "case : LearnerCase\n    The learner, the population, and how long it plays.",
    "policy": "policy : Policy\n    The policy.",
    "features": "features : array of float\n    The people that it is asked about.",
    "group": "group : array, optional\n    Their groups.",
    "rate": "rate : Rate\n    The rate.",
    "sample": "sample : LabelledSample\n    People of two groups with both labels.",
}
"""What the requirements take, as their docstrings say it: by the type of a case, or by name."""
RAISED = "\nRaises\n------\nRequirementBroken\n    If the requirement does not hold.\n\nExamples\n"
ShownGroup = Any
"""Groups as callers show them: arrays, lists, columns of any library, or None."""


class RequirementBroken(AssertionError):
    """A requirement of a contract does not hold.

    Parameters
    ----------
    requirement : str
        The name of the requirement.
    figures : str
        What was seen instead.

    Examples
    --------
    >>> error = RequirementBroken("constants_are_fair", "a gap of 0.2")
    >>> print(error)
    the requirement "constants are fair" is broken: a gap of 0.2
    >>> error.requirement
    'constants_are_fair'
    """

    def __init__(self, requirement: str, figures: str) -> None:
        super().__init__(f'the requirement "{requirement.replace("_", " ")}" is broken: {figures}')
        self.requirement = requirement


class Broken(AssertionError):
    """Raised inside a requirement with the figures; `requirement` adds the requirement's name."""


def requirement(check: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Make a function a requirement: what breaks it is raised as RequirementBroken with its name.

    Its docstring says the requirement and shows an example; what all requirements have in common,
    the sections about what they take and raise, is added here.
    """
    sentences, title, examples = cleandoc(check.__doc__ or "").partition("Examples\n")
    takes = signature(check).parameters.values()
    known = [
        TAKEN.get(getattr(one.annotation, "__name__", "")) or TAKEN.get(one.name) for one in takes
    ]
    if title:
        check.__doc__ = "\n".join(
            [f"{sentences}Parameters\n----------", *filter(None, known), RAISED + examples]
        )

    @wraps(check)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            check(*args, **kwargs)
        except Broken as broken:
            raise RequirementBroken(check.__name__, str(broken)) from broken.__cause__

    return checked


def require(holds: bool, figures: str) -> None:
    """The requirement is broken unless this holds."""
    if not holds:
        raise Broken(figures)


def check_each(requirements: Iterable[Callable[..., None]], *case: object) -> tuple[str, ...]:
    """Apply the requirements one after the other; their names."""
    names = []
    for one in requirements:
        one(*case)
        names.append(one.__name__)
    return tuple(names)


def same(left: object, right: object) -> bool:
    """Equal arrays, entry for entry."""
    return np.array_equal(np.asarray(left), np.asarray(right))


def through_text(data: Json) -> Json:
    """What is left of `data` after being written as strict JSON and read again."""
    left: Json = json.loads(json.dumps(data, allow_nan=False))
    return left


def is_plain_with(params: Params, name: str) -> bool:
    """Whether parameters are plain JSON and have a name."""
    try:
        return through_text(dict(params)) == params and bool(params.get(name))
    except (TypeError, ValueError):
        return False


# how learners are played


@dataclass(frozen=True, eq=False)
class LearnerCase:
    """A learner, a population, and for how long the learner is played.

    Parameters
    ----------
    learner : Learner
        The learner; it is never played itself: each requirement plays fresh copies.
    environment : Environment
        The population.
    rounds : int
        How many people are decided about.
    seed : int
        The seed of the people and of the copies.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> case = LearnerCase(AcceptAll(), lending(), rounds=60)
    >>> case.fresh().round, len(case.people()), [len(block) for block in case.blocks()]
    (0, 60, [25, 25, 10])
    """

    learner: Learner
    environment: Environment
    rounds: int = 600
    seed: int = 0

    def fresh(self) -> Learner:
        """Return the learner at its beginning.

        Returns
        -------
        Learner
            A fresh copy.
        """
        return self.learner.restarted(self.seed)

    def people(self) -> LabelledSample:
        """Return the people of a run.

        Returns
        -------
        LabelledSample
            The same people at every call.
        """
        return self.environment.fresh().draw(self.rounds, np.random.default_rng(self.seed))

    def blocks(self) -> list[LabelledSample]:
        """Return the same people, block by block.

        Returns
        -------
        list of LabelledSample
            Blocks of 25 people.
        """
        people = self.people()
        return [
            rows_of(people, slice(start, start + BLOCK)) for start in range(0, len(people), BLOCK)
        ]


LearnerRequirement = Callable[[LearnerCase], None]


def rows_of(people: LabelledSample, rows: IntArray | list[int] | slice) -> LabelledSample:
    """Some of the people, with their counts."""
    count = None if people.count is None else people.count[rows]
    return LabelledSample(people.features[rows], people.group[rows], people.label[rows], count)


@dataclass(frozen=True, eq=False)
class Decided:
    """People with what was decided about them; a mask chooses among them."""

    people: LabelledSample
    decisions: Decisions

    @cached_property
    def rounds(self) -> IntArray:
        """The round of each person."""
        return np.array([decision.round for decision in self.decisions], dtype=np.int64)

    @cached_property
    def accepted(self) -> BoolArray:
        """Who was accepted."""
        return np.array([decision.accept for decision in self.decisions], dtype=bool)

    def every(self, step: int, rest: int = 0) -> BoolArray:
        """Every so many people: those whose round leaves that rest."""
        return np.asarray(self.rounds % step == rest)

    def report(self, learner: Learner, chosen: BoolArray, label: ArrayLike | None = None) -> None:
        """Report the labels of the chosen who were accepted; `label` instead of the true ones."""
        places = np.flatnonzero(chosen & self.accepted)
        labels = self.people.label if label is None else np.broadcast_to(label, self.rounds.shape)
        if len(places):
            learner.observe(self.rounds[places], labels[places])


Reports = Callable[[Learner, Decided], None]
"""The reports that a learner gets after a block of people, before the next one comes."""


@dataclass(frozen=True, eq=False)
class Copy:
    """One copy of a learner: the reports that it gets after each block, and how the group is shown
    when it decides.
    """

    reports: Reports
    shown: Callable[[GroupArray], ShownGroup] = lambda group: group


def decide(
    learner: Learner, features: FloatArray, group: ShownGroup, at: float | None = None
) -> Decisions:
    """Decide about people; a learner with a maturity window is given the time, by default the
    number of people so far.
    """
    timed = {}
    if getattr(learner, "maturity", None) is not None:
        timed["at"] = float(learner.round) if at is None else at
    decide_at: Callable[..., Decisions] = learner.decide  # "at" is beyond the contract
    return decide_at(features, group, **timed)


@contextmanager
def nothing_fails(what: str) -> Iterator[None]:
    """The requirement is broken if what is done here raises anything."""
    try:
        yield
    except Broken:
        raise
    except Exception as error:
        raise Broken(f"{what} failed with {type(error).__name__}: {error}") from error


def play(case: LearnerCase, *runs: Copy) -> list[Learner]:
    """Play one fresh copy for each run, side by side: all must decide as the first does, to the
    end. The copies, played.

    A group that is refused (InvalidInput) is refused by all or by none; the people then come again
    with the group as it is.
    """
    copies = [case.fresh() for _ in runs]
    for number, people in enumerate(case.blocks()):
        start = number * BLOCK
        where = f"the people from round {start} on"
        met: list[tuple[Decided, bool]] = []
        for copy, run in zip(copies, runs, strict=True):
            shown = run.shown(people.group)
            refused = False
            with nothing_fails(f"deciding {where}"):
                try:
                    decisions = decide(copy, people.features, shown)
                except InvalidInput:
                    if shown is people.group:
                        raise
                    decisions = decide(copy, people.features, people.group)
                    refused = True
            met.append((Decided(people, decisions), refused))
        for decided, refused in met:
            require(refused == met[0][1], f"the group of {where} is refused by some and not by all")
            rounds = decided.rounds.tolist()
            expected = range(start, start + len(people))
            require(rounds == list(expected), f"{where} have rounds {rounds[:3]}...")
            if decided is not met[0][0]:
                require_same_decisions(met[0][0].decisions, decided.decisions)
        for copy, run, (decided, _) in zip(copies, runs, met, strict=True):
            with nothing_fails(f"a report after {where}"):
                run.reports(copy, decided)
    all_people = case.people()
    first, *others = (
        copy.policy.acceptance(all_people.features, all_people.group) for copy in copies
    )
    for other in others:
        most = int(np.argmax(np.abs(other - first)))
        figures = f"the policies after {case.rounds} rounds accept person {most} with probabilities"
        figures += f" {first[most]!r} and {other[most]!r}"
        require(bool(np.array_equal(other, first)), figures)
    return copies


def require_same_decisions(one: Iterable[Decision], two: Iterable[Decision]) -> None:
    """The requirement is broken unless both were decided alike: accept, propensity, round and
    epoch.
    """
    names = ("accept", "propensity", "round", "epoch")
    left, right = (
        [[getattr(decision, name) for name in names] for decision in side] for side in (one, two)
    )
    require(len(left) == len(right), f"{len(left)} and {len(right)} decisions")
    changed = [place for place in range(len(left)) if left[place] != right[place]]
    if changed:
        a = left[changed[0]]
        b = right[changed[0]]
        figures = ", ".join(
            f"{name} {x!r} and {y!r}" for name, x, y in zip(names, a, b, strict=True) if x != y
        )
        raise Broken(
            f"{len(changed)} of {len(left)} decisions differ, first that of round {a[2]}: {figures}"
        )


def require_refusal(what: str, report: Callable[..., None], *arguments: ArrayLike) -> None:
    """The requirement is broken unless the report is refused with ProtocolError or BadLabel; its
    first argument is the round, or the rounds.
    """
    rounds = np.atleast_1d(arguments[0])
    where = f"round {rounds[0]}" if len(rounds) == 1 else f"rounds {rounds[0]} to {rounds[-1]}"
    try:
        report(*arguments)
    except (ProtocolError, BadLabel):
        return
    except Exception as error:
        raise Broken(
            f"{what} ({where}) was refused with {type(error).__name__}: {error}"
        ) from error
    raise Broken(f"{what} ({where}) was taken")


def require_labels(learner: Learner, decided: Decided, reported: BoolArray) -> None:
    """The requirement is broken unless exactly the labels of the `reported` are known: asked by
    repeating, contradicting and (the others) by reporting.

    Afterwards every accepted round has its label.
    """
    for round, accept, known, label in zip(
        decided.rounds.tolist(),
        decided.accepted.tolist(),
        reported.tolist(),
        decided.people.label.tolist(),
        strict=True,
    ):
        if not accept:
            require_refusal("the label of a rejected person", learner.observe, round, label)
            continue
        try:
            learner.observe(round, label)
        except ProtocolError as error:
            what = "was reported before" if known else "comes now for the first time"
            raise Broken(
                f"label {label:+d} of round {round}, which {what}, is refused: {error}"
            ) from error
        require_refusal(f"label {-label:+d} after {label:+d}", learner.observe, round, -label)


def together(jobs: list[Callable[[], None]]) -> list[BaseException]:
    """Copy every job in a thread of its own, all starting at once; what they raised. A thread that
    never ends is given up.
    """
    start = Barrier(len(jobs))
    ended = [Future[None]() for _ in jobs]

    def run(job: Callable[[], None], end: Future[None]) -> None:
        try:
            start.wait()
            job()
            end.set_result(None)
        except Exception as error:  # noqa: BLE001  (it is handed to whoever waits)
            end.set_exception(error)

    for job, end in zip(jobs, ended, strict=True):
        Thread(target=run, args=(job, end), daemon=True).start()
    wait(ended, timeout=HANGING)
    endless = [TimeoutError(f"no end after {HANGING} seconds") for end in ended if not end.done()]
    return [
        *endless,
        *(error for end in ended if end.done() and (error := end.exception()) is not None),
    ]
