"""The requirements of learners (contract: Learner).

A learner under test also has `restarted(seed)`, a fresh learner with the same settings, and counts
its rounds in `round`.
"""

from collections.abc import Mapping

import numpy as np
from tests.requirements import reports
from tests.requirements.playing import (
    BLOCK,
    LearnerCase,
    LearnerRequirement,
    decide,
    require_refusal,
    require_same_decisions,
)

from evenhand.contracts import Environment, Learner, SupportsStorage
from evenhand.testing import check_each, is_plain_with, require, requirement
from evenhand.words import Decision, Decisions, LabelledSample


def decide_block(learner: Learner, people: LabelledSample) -> Decisions:
    """Decide about all of them at once, then report the labels of the accepted."""
    decisions = decide(learner, people.features, people.group)
    for place in np.flatnonzero(decisions.accept).tolist():
        learner.observe(decisions[place].round, int(people.label[place]))
    return decisions


def decide_singly(learner: Learner, people: LabelledSample) -> list[Decision]:
    """Decide about one after the other at one time, then report the labels of the accepted."""
    now = float(learner.round)
    rows = range(len(people))
    decisions = [
        decide(learner, people.features[i : i + 1], people.group[i : i + 1], now)[0] for i in rows
    ]
    for decision, label in zip(decisions, people.label.tolist(), strict=True):
        if decision.accept:
            learner.observe(decision.round, label)
    return decisions


@requirement
def each_person_is_one_round(case: LearnerCase) -> None:
    """Every person is one round, and decide alone counts the rounds.

    decide advances the counter by the number of rows; rounds are numbered from 0 without gaps;
    observe advances nothing.
    """
    learner = case.fresh()
    expected = 0
    for people in case.blocks():
        decisions = decide_block(learner, people)
        numbers = [decision.round for decision in decisions]
        figures = f"{len(people)} people after round {expected} have rounds {numbers[:3]}..."
        require(numbers == list(range(expected, expected + len(people))), figures)
        expected += len(people)
        require(learner.round == expected, f"round is {learner.round}, not {expected}")


@requirement
def looking_changes_nothing(case: LearnerCase) -> None:
    """policy, params and acceptance may be asked for at any time: the run is the same."""
    looked_at = case.fresh()
    left_alone = case.fresh()
    for people in case.blocks():
        for _ in range(2):
            looked_at.policy.acceptance(people.features, people.group)
            looked_at.policy.describe()
            dict(looked_at.params)
            getattr(looked_at, "report", None)
        require_same_decisions(decide_block(looked_at, people), decide_block(left_alone, people))


@requirement
def one_by_one_equals_blocks(case: LearnerCase) -> None:
    """A block of people is decided as the same people one after the other.

    A block of people within an epoch is decided as the same people one after the other, each with
    a coin of its own.

    (A block that goes on into the next epoch is different: none of its labels can be known there.
    It is cut at `rounds_left`.)
    """
    together = case.fresh()
    singly = case.fresh()
    people = case.people()
    start = 0
    while start < len(people):
        part = slice(start, start + max(1, min(BLOCK, getattr(together, "rounds_left", BLOCK))))
        block = LabelledSample(people.features[part], people.group[part], people.label[part])
        require_same_decisions(decide_block(together, block), decide_singly(singly, block))
        start += len(block)


@requirement
def propensity_is_the_policy_s(case: LearnerCase) -> None:
    """The propensity is the probability of what was done under the policy.

    The propensity is above 0, and is the probability of what was done under the policy that the
    person met.
    """
    learner = case.fresh()
    for people in case.blocks():
        for i in range(len(people)):
            row = people.features[i : i + 1]
            group = people.group[i : i + 1]
            decision = decide(learner, row, group)[0]
            acceptance = float(learner.policy.acceptance(row, group)[0])
            chance = acceptance if decision.accept else 1.0 - acceptance
            figures = f"round {decision.round} has propensity {decision.propensity!r}, "
            figures += f"the policy says {chance!r}"
            require(decision.propensity == chance and chance > 0, figures)
            if decision.accept:
                learner.observe(decision.round, int(people.label[i]))


@requirement
def labels_of_the_accepted_alone(case: LearnerCase) -> None:
    """A label is reported once, for an accepted round: all else is refused; the first stands."""
    learner = case.fresh()
    for people in case.blocks():
        decisions = decide(learner, people.features, people.group)
        for decision, label in zip(decisions, people.label.tolist(), strict=True):
            round = decision.round
            if not decision.accept:
                require_refusal("the label of a rejected person", learner.observe, round, label)
                continue
            require_refusal("a label of 0", learner.observe, round, 0)
            learner.observe(round, label)
            learner.observe(round, label)
            require_refusal("a second, different label", learner.observe, round, -label)
    unplayed = case.rounds + 10**6
    what = "the label of a round that was never played"
    require_refusal(what, learner.observe, unplayed, 1)


@requirement
def the_same_seed_is_the_same_run(case: LearnerCase) -> None:
    """Two fresh copies with one seed decide alike.

    numpy's global generator is neither read nor moved.
    """
    np.random.seed(1)  # noqa: NPY002  (to notice whether somebody uses it)
    state = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    first = [decide_block(one, people) for one in [case.fresh()] for people in case.blocks()]
    moved = state != np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    require(not moved, "numpy's global generator was used")
    again = case.fresh()
    for decisions, people in zip(first, case.blocks(), strict=True):
        require_same_decisions(decisions, decide_block(again, people))


@requirement
def the_group_only_certifies(case: LearnerCase) -> None:
    """With group_use="certify_only" the group changes no probability.

    With group_use="certify_only" no policy's probability changes by a bit when the group is
    flipped or not reported.
    """
    if getattr(case.learner, "group_use", "decide") != "certify_only":
        return
    learner = case.fresh()
    for people in case.blocks():
        seen = learner.policy.acceptance(people.features, people.group)
        for other in (people.group[::-1], None):
            changed = int(np.sum(seen != learner.policy.acceptance(people.features, other)))
            require(changed == 0, f"{changed} probabilities changed with the group")
        decide_block(learner, people)


@requirement
def learner_describes_itself(case: LearnerCase) -> None:
    """params is plain JSON with a "learner"."""
    params = dict(case.learner.params)
    require(is_plain_with(params, "learner"), f'{params} are not plain with a "learner"')


@requirement
def continues_after_storage(case: LearnerCase) -> None:
    """save, load: the copy decides like the original; or save raises NotSerialisable."""
    learner = case.fresh()
    blocks = case.blocks()
    half = len(blocks) // 2
    for people in blocks[:half]:
        decide_block(learner, people)
    copy = reports.stored_and_loaded(learner)
    if copy is None:
        return
    for people in blocks[half:]:
        require_same_decisions(decide_block(learner, people), decide_block(copy, people))


EVERY_LEARNER: tuple[LearnerRequirement, ...] = (
    each_person_is_one_round,
    looking_changes_nothing,
    one_by_one_equals_blocks,
    propensity_is_the_policy_s,
    labels_of_the_accepted_alone,
    the_same_seed_is_the_same_run,
    the_group_only_certifies,
    learner_describes_itself,
    *reports.EVERY_LEARNER,
)
CAPABLE_LEARNERS: Mapping[type, tuple[LearnerRequirement, ...]] = {
    **reports.CAPABLE_LEARNERS,
    SupportsStorage: (continues_after_storage, reports.reports_survive_storage),
}
"""The requirements of learners that have a method beyond the contract, by the protocol that names
it.
"""
LEARNER_REQUIREMENTS: tuple[LearnerRequirement, ...] = (
    *EVERY_LEARNER,
    *(one for requirements in CAPABLE_LEARNERS.values() for one in requirements),
)


def learner_requirements(learner: Learner) -> tuple[LearnerRequirement, ...]:
    """Return the requirements that apply to a learner.

    They are those of every learner, and those of each further method that it has.
    """
    requirements = EVERY_LEARNER
    for capability, more in CAPABLE_LEARNERS.items():
        requirements += more if isinstance(learner, capability) else ()
    return requirements


def check_learner(
    learner: Learner, environment: Environment, *, rounds: int = 600, seed: int = 0
) -> tuple[str, ...]:
    """Check every requirement that applies to a learner.

    A requirement about overruling, erasing, late groups or storage applies to a learner that has
    the method (`evenhand.contracts`).
    """
    return check_each(
        learner_requirements(learner), LearnerCase(learner, environment, rounds, seed)
    )
