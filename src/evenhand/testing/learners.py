"""The laws of learners (contract: Learner), for ours and yours.

from evenhand.testing import check_learner
check_learner(MyLearner(...), environment)

A learner under test also has `restarted(seed)`, a fresh learner with the same settings, and counts
its rounds in `round`.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from evenhand.contracts import Environment, SupportsStorage
from evenhand.errors import NotSerialisable
from evenhand.learners import load
from evenhand.testing import doors
from evenhand.testing.laws import require, through_text
from evenhand.testing.playing import (
    BLOCK,
    Law,
    LearnerCase,
    decide,
    require_refusal,
    require_same_decisions,
)
from evenhand.words import Decisions, LabelledSample


def decide_block(learner: Any, people: LabelledSample) -> Decisions:
    """Decide about all of them at once, then tell the labels of the accepted."""
    decisions = decide(learner, people.features, people.group)
    for place in np.flatnonzero(decisions.accept).tolist():
        learner.observe(decisions[place].round, int(people.label[place]))
    return decisions


def decide_singly(learner: Any, people: LabelledSample) -> list[Any]:
    """Decide about one after the other at one time, then tell the labels of the accepted."""
    now, rows = float(learner.round), range(len(people))
    decisions = [
        decide(learner, people.features[i : i + 1], people.group[i : i + 1], now)[0] for i in rows
    ]
    for decision, label in zip(decisions, people.label.tolist(), strict=True):
        if decision.accept:
            learner.observe(decision.round, label)
    return decisions


def each_person_is_one_round(case: LearnerCase) -> None:
    """decide advances the counter by the number of rows; rounds are numbered from 0 without gaps;
    observe advances nothing.
    """
    learner, expected = case.fresh(), 0
    for people in case.blocks():
        decisions = decide_block(learner, people)
        numbers = [decision.round for decision in decisions]
        require(
            numbers == list(range(expected, expected + len(people))),
            "each_person_is_one_round",
            f"{len(people)} people after round {expected} have rounds {numbers[:3]}...",
        )
        expected += len(people)
        require(
            learner.round == expected,
            "each_person_is_one_round",
            f"round is {learner.round}, not {expected}",
        )


def looking_changes_nothing(case: LearnerCase) -> None:
    """policy, params and acceptance may be asked for at any time: the run is the same."""
    looked_at, left_alone = case.fresh(), case.fresh()
    for people in case.blocks():
        for _ in range(2):
            looked_at.policy.acceptance(people.features, people.group)
            looked_at.policy.describe()
            dict(looked_at.params)
            getattr(looked_at, "report", None)
        require_same_decisions(
            decide_block(looked_at, people),
            decide_block(left_alone, people),
            "looking_changes_nothing",
        )


def one_by_one_equals_blocks(case: LearnerCase) -> None:
    """A block of people within an epoch is decided as the same people one after the other, each
    with a coin of its own.

    (A block that goes on into the next epoch is different: none of its labels can be known there.
    It is cut at `rounds_left`.)
    """
    together, singly, people, start = case.fresh(), case.fresh(), case.people(), 0
    while start < len(people):
        part = slice(start, start + max(1, min(BLOCK, getattr(together, "rounds_left", BLOCK))))
        block = LabelledSample(people.features[part], people.group[part], people.label[part])
        require_same_decisions(
            decide_block(together, block), decide_singly(singly, block), "one_by_one_equals_blocks"
        )
        start += len(block)


def propensity_is_the_policy_s(case: LearnerCase) -> None:
    """The propensity is above 0, and is the probability of what was done under the policy that the
    person met.
    """
    learner = case.fresh()
    for people in case.blocks():
        for i in range(len(people)):
            row, group = people.features[i : i + 1], people.group[i : i + 1]
            decision = decide(learner, row, group)[0]
            acceptance = float(learner.policy.acceptance(row, group)[0])
            chance = acceptance if decision.accept else 1.0 - acceptance
            figures = f"round {decision.round} has propensity {decision.propensity!r}, the policy says {chance!r}"
            require(
                decision.propensity == chance and chance > 0, "propensity_is_the_policy_s", figures
            )
            if decision.accept:
                learner.observe(decision.round, int(people.label[i]))


def labels_of_the_accepted_alone(case: LearnerCase) -> None:
    """A label is told once, for an accepted round: all else is refused, and what was told stands."""
    learner, law = case.fresh(), "labels_of_the_accepted_alone"
    for people in case.blocks():
        decisions = decide(learner, people.features, people.group)
        for decision, label in zip(decisions, people.label.tolist(), strict=True):
            if not decision.accept:
                require_refusal(
                    law, "the label of a rejected person", learner.observe, decision.round, label
                )
                continue
            require_refusal(law, "a label of 0", learner.observe, decision.round, 0)
            learner.observe(decision.round, label)
            learner.observe(decision.round, label)
            require_refusal(
                law, "a second, different label", learner.observe, decision.round, -label
            )
    require_refusal(
        law, "the label of a round that was never played", learner.observe, case.rounds + 10**6, 1
    )


def the_same_seed_is_the_same_run(case: LearnerCase) -> None:
    """Two fresh copies with one seed decide alike; numpy's global generator is neither read nor
    moved.
    """
    np.random.seed(1)  # noqa: NPY002  (to notice whether somebody uses it)
    state = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    first = [decide_block(one, people) for one in [case.fresh()] for people in case.blocks()]
    moved = state != np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    require(not moved, "the_same_seed_is_the_same_run", "numpy's global generator was used")
    again = case.fresh()
    for decisions, people in zip(first, case.blocks(), strict=True):
        require_same_decisions(
            decisions, decide_block(again, people), "the_same_seed_is_the_same_run"
        )


def the_group_only_certifies(case: LearnerCase) -> None:
    """With group_use="certify_only" no policy's probability changes by a bit when the group is
    flipped or not told.
    """
    if getattr(case.learner, "group_use", "decide") != "certify_only":
        return
    learner = case.fresh()
    for people in case.blocks():
        seen = learner.policy.acceptance(people.features, people.group)
        for other in (people.group[::-1], None):
            changed = int(np.sum(seen != learner.policy.acceptance(people.features, other)))
            require(
                changed == 0,
                "the_group_only_certifies",
                f"{changed} probabilities changed with the group",
            )
        decide_block(learner, people)


def learner_describes_itself(case: LearnerCase) -> None:
    """params is plain JSON with a "learner"."""
    params = dict(case.learner.params)
    try:
        plain = through_text(params) == params
    except (TypeError, ValueError):
        plain = False
    require(
        plain and bool(params.get("learner")),
        "learner_describes_itself",
        f'{params} are not plain with a "learner"',
    )


def continues_after_storage(case: LearnerCase) -> None:
    """save, load: the copy decides like the original; or save raises NotSerialisable."""
    learner, blocks = case.fresh(), case.blocks()
    half = len(blocks) // 2
    for people in blocks[:half]:
        decide_block(learner, people)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "learner"
        try:
            learner.save(path)
        except NotSerialisable:
            return
        copy = load(path, hypotheses=getattr(learner, "hypotheses", None))
    for people in blocks[half:]:
        require_same_decisions(
            decide_block(learner, people), decide_block(copy, people), "continues_after_storage"
        )


EVERY_LEARNER: tuple[Law, ...] = (
    each_person_is_one_round,
    looking_changes_nothing,
    one_by_one_equals_blocks,
    propensity_is_the_policy_s,
    labels_of_the_accepted_alone,
    the_same_seed_is_the_same_run,
    the_group_only_certifies,
    learner_describes_itself,
    *doors.EVERY_LEARNER,
)
CAPABLE_LEARNERS: Mapping[type, tuple[Law, ...]] = {
    **doors.CAPABLE_LEARNERS,
    SupportsStorage: (continues_after_storage, doors.reports_survive_storage),
}
"""The laws of learners that have a method beyond the contract, by the protocol that names it."""
LEARNER_LAWS: tuple[Law, ...] = (
    *EVERY_LEARNER,
    *(law for laws in CAPABLE_LEARNERS.values() for law in laws),
)


def learner_laws(learner: Any) -> tuple[Law, ...]:
    """The laws that apply to a learner: those of every learner, and those of each further method
    that it has.
    """
    capable = (
        laws for capability, laws in CAPABLE_LEARNERS.items() if isinstance(learner, capability)
    )
    return (*EVERY_LEARNER, *(law for laws in capable for law in laws))


def check_learner(
    learner: Any, environment: Environment, *, rounds: int = 600, seed: int = 0
) -> tuple[str, ...]:
    """Run every law that applies on `rounds` people of `environment`; the names of the laws, or
    LawBroken at the first.

    A law about overruling, erasing, late groups or storage applies to a learner that has the method
    (`evenhand.contracts`).
    """
    case, laws = LearnerCase(learner, environment, rounds, seed), learner_laws(learner)
    for law in laws:
        law(case)
    return tuple(law.__name__ for law in laws)
