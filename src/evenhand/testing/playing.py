"""How the laws play a learner: fresh copies meet the same people, are told different things about
them, and are compared.

Most laws of learners say that something changes nothing. They play one copy with it and one
without, side by side: from the first round in which the two decide differently the law is broken.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Barrier, Thread
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.contracts import Environment
from evenhand.errors import BadLabel, InvalidInput, ProtocolError
from evenhand.testing.laws import LawBroken, require
from evenhand.words import BoolArray, Decisions, FloatArray, GroupArray, IntArray, LabelledSample

BLOCK = 25
"""People between two deliveries of labels."""
HANGING = 300
"""Seconds after which a thread counts as one that never ends; those of a sound learner need a few.
"""


@dataclass(frozen=True, eq=False)
class LearnerCase:
    """A learner (never played itself: each law plays fresh copies), a population, and for how long
    it is played.
    """

    learner: Any
    environment: Environment
    rounds: int = 600
    seed: int = 0

    def fresh(self) -> Any:
        """The learner at its beginning."""
        return self.learner.restarted(self.seed)

    def people(self) -> LabelledSample:
        """The people of a run; the same at every call."""
        return self.environment.fresh().draw(self.rounds, np.random.default_rng(self.seed))

    def blocks(self) -> list[LabelledSample]:
        """The same people, block by block."""
        people = self.people()
        return [
            rows_of(people, slice(start, start + BLOCK)) for start in range(0, len(people), BLOCK)
        ]


Law = Callable[[LearnerCase], None]


def rows_of(people: LabelledSample, rows: Any) -> LabelledSample:
    """Some of the people."""
    return LabelledSample(people.features[rows], people.group[rows], people.label[rows])


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

    def tell(self, learner: Any, chosen: BoolArray, label: ArrayLike | None = None) -> None:
        """Tell the labels of the chosen who were accepted; `label` instead of the true ones."""
        told = np.flatnonzero(chosen & self.accepted)
        labels = self.people.label if label is None else np.broadcast_to(label, self.rounds.shape)
        if len(told):
            learner.observe(self.rounds[told], labels[told])


Reports = Callable[[Any, Decided], None]
"""What a learner is told after a block of people, before the next one comes."""


@dataclass(frozen=True, eq=False)
class Copy:
    """One copy of a learner: what it is told after each block, and how the group is shown when it
    decides.
    """

    reports: Reports
    shown: Callable[[GroupArray], Any] = lambda group: group


def decide(learner: Any, features: FloatArray, group: Any, at: float | None = None) -> Decisions:
    """Decide about people; a learner with a maturity window is told the time, by default the number
    of people so far.
    """
    timed = {}
    if getattr(learner, "maturity", None) is not None:
        timed["at"] = float(learner.round) if at is None else at
    found: Decisions = learner.decide(features, group, **timed)
    return found


@contextmanager
def nothing_fails(law: str, what: str) -> Iterator[None]:
    """LawBroken, with the law's name, if what is done here raises anything."""
    try:
        yield
    except LawBroken:
        raise
    except Exception as error:
        raise LawBroken(law, f"{what} failed with {type(error).__name__}: {error}") from error


def play(case: LearnerCase, law: str, *runs: Copy) -> list[Any]:
    """Play one fresh copy for each run, side by side: all must decide as the first does, to the
    end. The copies, played.

    A group that is refused (InvalidInput) is refused by all or by none; the people then come again
    with the group as it is.
    """
    copies = [case.fresh() for _ in runs]
    for number, people in enumerate(case.blocks()):
        first, where = number * BLOCK, f"the people from round {number * BLOCK} on"
        met: list[tuple[Decided, bool]] = []
        for copy, run in zip(copies, runs, strict=True):
            shown, refused = run.shown(people.group), False
            with nothing_fails(law, f"deciding {where}"):
                try:
                    decisions = decide(copy, people.features, shown)
                except InvalidInput:
                    if shown is people.group:
                        raise
                    decisions, refused = decide(copy, people.features, people.group), True
            met.append((Decided(people, decisions), refused))
        for decided, refused in met:
            require(
                refused == met[0][1],
                law,
                f"the group of {where} is {_taken(not refused)} and {_taken(refused)}",
            )
            rounds = decided.rounds.tolist()
            require(
                rounds == list(range(first, first + len(people))),
                law,
                f"{where} have rounds {rounds[:3]}...",
            )
            if decided is not met[0][0]:
                require_same_decisions(met[0][0].decisions, decided.decisions, law)
        for copy, run, (decided, _) in zip(copies, runs, met, strict=True):
            with nothing_fails(law, f"a report after {where}"):
                run.reports(copy, decided)
    everybody = case.people()
    acceptance = [copy.policy.acceptance(everybody.features, everybody.group) for copy in copies]
    for other in acceptance[1:]:
        furthest = int(np.argmax(np.abs(other - acceptance[0])))
        figures = (
            f"the policies after {case.rounds} rounds accept person {furthest} with probabilities"
        )
        require(
            bool(np.array_equal(other, acceptance[0])),
            law,
            f"{figures} {acceptance[0][furthest]!r} and {other[furthest]!r}",
        )
    return copies


def _taken(refused: bool) -> str:
    return "refused" if refused else "taken"


def require_same_decisions(one: Any, two: Any, law: str) -> None:
    """LawBroken unless both were decided alike: accept, propensity, round and epoch."""
    names = ("accept", "propensity", "round", "epoch")
    left, right = (
        [[getattr(decision, name) for name in names] for decision in side] for side in (one, two)
    )
    require(len(left) == len(right), law, f"{len(left)} and {len(right)} decisions")
    changed = [place for place in range(len(left)) if left[place] != right[place]]
    if changed:
        a, b = left[changed[0]], right[changed[0]]
        figures = ", ".join(
            f"{name} {x!r} and {y!r}" for name, x, y in zip(names, a, b, strict=True) if x != y
        )
        raise LawBroken(
            law,
            f"{len(changed)} of {len(left)} decisions differ, first that of round {a[2]}: {figures}",
        )


def require_refusal(law: str, what: str, report: Callable[..., None], *told: Any) -> None:
    """LawBroken unless the report is refused with ProtocolError or BadLabel; told[0] is the round,
    or the rounds.
    """
    rounds = np.atleast_1d(told[0])
    where = f"round {rounds[0]}" if len(rounds) == 1 else f"rounds {rounds[0]} to {rounds[-1]}"
    try:
        report(*told)
    except (ProtocolError, BadLabel):
        return
    except Exception as error:
        raise LawBroken(
            law, f"{what} ({where}) was refused with {type(error).__name__}: {error}"
        ) from error
    raise LawBroken(law, f"{what} ({where}) was taken")


def require_labels(law: str, learner: Any, decided: Decided, told: BoolArray) -> None:
    """LawBroken unless exactly the labels of the `told` are known: asked by repeating,
    contradicting and (the others) by telling.

    Afterwards every accepted round has its label.
    """
    for round, accept, known, label in zip(
        decided.rounds.tolist(),
        decided.accepted.tolist(),
        told.tolist(),
        decided.people.label.tolist(),
        strict=True,
    ):
        if not accept:
            require_refusal(law, "the label of a rejected person", learner.observe, round, label)
            continue
        try:
            learner.observe(round, label)
        except ProtocolError as error:
            what = "was told before" if known else "comes now for the first time"
            raise LawBroken(
                law, f"label {label:+d} of round {round}, which {what}, is refused: {error}"
            ) from error
        require_refusal(law, f"label {-label:+d} after {label:+d}", learner.observe, round, -label)


def together(jobs: list[Callable[[], None]]) -> list[BaseException]:
    """Copy every job in a thread of its own, all starting at once; what they raised. A thread that
    never ends is given up.
    """
    start, ended = Barrier(len(jobs)), [Future[None]() for _ in jobs]

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
