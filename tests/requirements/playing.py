"""How the requirements of learners play.

Most of them say that something changes nothing. They play fresh copies that meet the same people
and receive different reports about them, side by side: from the first round in which two copies
decide differently the requirement is broken.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Barrier, Thread
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.contracts import Environment, Learner
from evenhand.errors import BadLabel, InvalidInput, ProtocolError
from evenhand.testing import Broken, require
from evenhand.words import (
    BoolArray,
    Decision,
    Decisions,
    FloatArray,
    GroupArray,
    IntArray,
    LabelledSample,
)

BLOCK = 25
"""People between two deliveries of labels."""
HANGING = 300
"""Seconds after which a thread counts as one that never ends; those of a sound learner need a few.
"""
ShownGroup = Any
"""Groups as callers show them: arrays, lists, columns of any library, or None."""


@dataclass(frozen=True, eq=False)
class LearnerCase:
    """A learner, a population, and for how long the learner is played."""

    learner: Learner
    environment: Environment
    rounds: int = 600
    seed: int = 0

    def fresh(self) -> Learner:
        """Return the learner at its beginning."""
        return self.learner.restarted(self.seed)

    def people(self) -> LabelledSample:
        """Return the people of a run."""
        return self.environment.fresh().draw(self.rounds, np.random.default_rng(self.seed))

    def blocks(self) -> list[LabelledSample]:
        """Return the same people, block by block."""
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
