"""The requirements of learners at the entry points: what may happen to a round between its coin and
what is learned from it.

Labels come late, twice, in any order, or never; reports are refused; humans overrule decisions;
people are erased; groups are unknown, new, or reported afterwards; several threads call at once. A
learner must lose nothing, count nobody twice, and learn nothing from what it may not know.
"""

import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count, product
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import numpy as np
from tests.requirements.playing import (
    BLOCK,
    Copy,
    Decided,
    LearnerCase,
    LearnerRequirement,
    ShownGroup,
    decide,
    nothing_fails,
    play,
    require_labels,
    require_refusal,
    require_same_decisions,
    rows_of,
    together,
)

from evenhand.contracts import (
    Learner,
    SupportsErasure,
    SupportsLateGroups,
    SupportsOverrule,
    SupportsStorage,
)
from evenhand.errors import NotSerialisable, ProtocolError
from evenhand.learners import load
from evenhand.testing import Broken, require, requirement
from evenhand.words import GroupArray, LabelledSample

LATE = 10
"""Blocks after which a late label comes."""
HELD = 3
"""Blocks whose labels are held back and reported together."""
THREADS = 4
"""Threads that call one learner at once."""


def report_all(learner: Learner, decided: Decided) -> None:
    """The labels of all who were accepted, in the order of their rounds."""
    decided.report(learner, decided.accepted)


# labels


@requirement
def late_labels_find_their_round(case: LearnerCase) -> None:
    """A label may come any number of rounds after its decision.

    It is taken then, for its own round and no other.
    """
    met: list[Decided] = []

    def some_late(learner: Learner, decided: Decided) -> None:
        met.append(decided)
        decided.report(learner, decided.every(2))
        if len(met) > LATE:
            met[-LATE].report(learner, met[-LATE].every(4, 1))

    (learner,) = play(case, Copy(some_late))
    for number, decided in enumerate(met):
        late = decided.every(4, 1) & (number + LATE <= len(met))
        require_labels(learner, decided, decided.every(2) | late)


@requirement
def missing_labels_stop_nobody(case: LearnerCase) -> None:
    """Where labels never come, all applicants are still decided.

    All labels, all good ones or all bad ones may be missing; the report counts what is missing.
    """
    for reported in ((), (1,), (-1,)):
        missing = 0

        def some(learner: Learner, decided: Decided, reported: tuple[int, ...] = reported) -> None:
            nonlocal missing
            coming = np.isin(decided.people.label, reported)
            decided.report(learner, coming)
            missing += int((decided.accepted & ~coming).sum())

        (learner,) = play(case, Copy(some))
        counted = getattr(getattr(learner, "report", None), "missing_labels", missing)
        figures = f"the report counts {counted} missing labels after {case.rounds} rounds"
        require(
            counted == missing,
            f"{figures}, but {missing} never came (reported: {reported or 'none'})",
        )


@requirement
def repeated_reports_change_nothing(case: LearnerCase) -> None:
    """A label that is reported again, in the same report or in a later one, changes nothing."""

    def twice(learner: Learner, decided: Decided) -> None:
        rounds = decided.rounds[decided.accepted]
        label = decided.people.label[decided.accepted]
        if len(rounds):
            learner.observe(np.repeat(rounds, 2), np.repeat(label, 2))
            learner.observe(rounds, label)

    before: list[Decided] = []

    def again_later(learner: Learner, decided: Decided) -> None:
        before.append(decided)
        for block in before[-HELD:]:
            report_all(learner, block)

    play(case, Copy(report_all), Copy(twice), Copy(again_later))


@requirement
def the_order_of_reports_is_irrelevant(case: LearnerCase) -> None:
    """The order of the labels between two decisions changes nothing.

    They may be reported in any order, one by one or together.
    """

    def held_back(order: str) -> Copy:
        waiting: list[tuple[int, int]] = []
        draw = np.random.default_rng(case.seed)

        def report_held(learner: Learner, decided: Decided) -> None:
            labels = decided.people.label[decided.accepted].tolist()
            waiting.extend(zip(decided.rounds[decided.accepted].tolist(), labels, strict=True))
            if decided.rounds[0] // BLOCK % HELD < HELD - 1 or not waiting:
                return
            if order == "backwards":
                waiting.reverse()
            elif order == "shuffled":
                draw.shuffle(waiting)
            parts = [[one] for one in waiting] if order != "forwards" else [waiting]
            for part in parts:
                rounds, reported = np.array(part).T
                learner.observe(rounds, reported)
            waiting.clear()

        return Copy(report_held)

    play(case, *map(held_back, ("forwards", "one by one", "backwards", "shuffled")))


@requirement
def refused_reports_change_nothing(case: LearnerCase) -> None:
    """A report of which one label is refused enters none of its labels.

    What was reported before it stands.
    """

    def with_refusals(learner: Learner, decided: Decided) -> None:
        accepted = decided.accepted
        label = decided.people.label
        fresh = accepted & decided.every(2)
        reported = accepted & ~decided.every(2)
        decided.report(learner, reported)
        wrong = [("a round that was never played", case.rounds + 10**6, 1)]
        if reported.any():
            known = int(decided.rounds[np.argmax(reported)])
            other = -int(label[np.argmax(reported)])
            wrong += [("a second, different label", known, other), ("a label of 0", known, 0)]
        if not accepted.all():
            wrong.append(("a rejected person", int(decided.rounds[np.argmin(accepted)]), 1))
        for what, round, false in wrong:
            rounds = [*decided.rounds[fresh].tolist(), round]
            labels = [*(-label[fresh]).tolist(), false]
            require_refusal(f"a report that ends with {what}", learner.observe, rounds, labels)
        decided.report(learner, fresh)

    def without(learner: Learner, decided: Decided) -> None:
        decided.report(learner, ~decided.every(2))
        decided.report(learner, decided.every(2))

    play(case, Copy(without), Copy(with_refusals))


# humans who decide otherwise


@requirement
def refused_accepts_teach_nothing(case: LearnerCase) -> None:
    """The label of an accept that a human refused changes no later policy.

    Reported before the refusal, it is forgotten; reported afterwards, it is refused.
    """

    def refusing(label: int | None, *, attempted: bool = False) -> Copy:
        def refuse_some(learner: Learner, decided: Decided) -> None:
            assert isinstance(learner, SupportsOverrule)
            chosen = decided.accepted & decided.every(3)
            if label is not None:
                decided.report(learner, chosen, label)
            if chosen.any():
                learner.overrule(decided.rounds[chosen], np.zeros(int(chosen.sum()), bool))
            decided.report(learner, ~chosen)
            for round in decided.rounds[chosen].tolist() if attempted or label is not None else ():
                require_refusal("the label of a refused person", learner.observe, round, label or 1)

        return Copy(refuse_some)

    met: list[Decided] = []

    def refuse_late(learner: Learner, decided: Decided) -> None:
        assert isinstance(learner, SupportsOverrule)
        report_all(learner, decided)
        met.append(decided)
        long_ago = met[-LATE:][0]
        for place in np.flatnonzero(long_ago.accepted & long_ago.every(8)).tolist():
            round = int(long_ago.rounds[place])
            label = int(long_ago.people.label[place])
            learner.overrule(round, False)
            what = "the label of a person who was refused long after"
            require_refusal(what, learner.observe, round, label)

    play(case, refusing(None), refusing(1), refusing(-1), refusing(None, attempted=True))
    play(case, Copy(refuse_late))


@requirement
def accepted_rejects_stay_rejected(case: LearnerCase) -> None:
    """A reject that a human turned into an accept stays a reject.

    Its label is refused, and the run is the same without the human.
    """

    def accept_some(learner: Learner, decided: Decided) -> None:
        assert isinstance(learner, SupportsOverrule)
        chosen = ~decided.accepted & decided.every(2)
        if chosen.any():
            learner.overrule(decided.rounds[chosen], np.ones(int(chosen.sum()), bool))
        for place in np.flatnonzero(chosen).tolist():
            round = int(decided.rounds[place])
            label = int(decided.people.label[place])
            what = "the label of a reject that a human accepted"
            require_refusal(what, learner.observe, round, label)
        report_all(learner, decided)

    play(case, Copy(report_all), Copy(accept_some))


@requirement
def agreeing_humans_change_nothing(case: LearnerCase) -> None:
    """To overrule with what was decided anyway changes nothing.

    To overrule again changes no more, and what is refused changes nothing at all.
    """

    def agree(learner: Learner, decided: Decided) -> None:
        assert isinstance(learner, SupportsOverrule)
        decided.report(learner, decided.every(2))
        learner.overrule(decided.rounds, decided.accepted)
        learner.overrule(int(decided.rounds[0]), bool(decided.accepted[0]))
        decided.report(learner, ~decided.every(2))
        rounds = [*decided.rounds.tolist(), case.rounds + 10**6]
        others = [*(~decided.accepted).tolist(), False]
        what = "an overruling that ends with a round that was never played"
        require_refusal(what, learner.overrule, rounds, others)

    def alone(learner: Learner, decided: Decided) -> None:
        decided.report(learner, decided.every(2))
        decided.report(learner, ~decided.every(2))

    def overruled(times: int) -> Copy:
        met: list[Decided] = []

        def overrule_some(learner: Learner, decided: Decided) -> None:
            assert isinstance(learner, SupportsOverrule)
            report_all(learner, decided)
            met.append(decided)
            long_ago = met[-LATE:][0]
            for block, chosen in ((decided, decided.every(4)), (long_ago, long_ago.every(4, 1))):
                for _ in range(times):
                    learner.overrule(block.rounds[chosen], ~block.accepted[chosen])

        return Copy(overrule_some)

    play(case, Copy(alone), Copy(agree))
    play(case, overruled(1), overruled(3))


# people who are forgotten


@requirement
def erased_people_leave_no_trace(case: LearnerCase) -> None:
    """Who an erased person was changes nothing from then on.

    Two runs that differ only in who somebody was who is erased before the next decision are equal
    from then on; so are their files.

    The last person of every other block is somebody else in the second run: other features and
    another group (where the policy accepts both with the same probability, so that the draw is the
    same), and the other label.
    """
    people = case.people()
    one = case.fresh()
    two = case.fresh()
    for number, block in enumerate(case.blocks()):
        with nothing_fails(f"playing the people from round {number * BLOCK} on"):
            last = rows_of(block, slice(-1, None))
            both = (one, two)
            if len(block) > 1:
                rest = rows_of(block, slice(None, -1))
                first, second = (decide(learner, rest.features, rest.group) for learner in both)
                require_same_decisions(first, second)
                for learner in (one, two):
                    report_all(learner, Decided(rest, first))
            other = last
            gone = number % 2 == 0
            if gone:
                other = LabelledSample(last.features, last.group, -last.label)
                chance = one.policy.acceptance(people.features, people.group)
                alike = chance == one.policy.acceptance(last.features, last.group)[0]
                unlike = (people.features != last.features).any(axis=1)
                twins = np.flatnonzero(alike & unlike & (people.group != last.group[0]))
                if len(twins) and getattr(one, "rounds_left", 1) > 0:
                    twin = rows_of(people, twins[[number % len(twins)]])
                    other = LabelledSample(twin.features, twin.group, -last.label)
            first = decide(one, last.features, last.group)
            second = decide(two, other.features, other.group)
            require_same_decisions(first, second)
            for learner, decided in ((one, Decided(last, first)), (two, Decided(other, second))):
                report_all(learner, decided)
                if gone:
                    assert isinstance(learner, SupportsErasure)
                    learner.erase(int(decided.rounds[0]))
            if number % 8 == 0:
                _require_same_files(one, two, first[0].round)
    _require_same_files(one, two, case.rounds - 1)


def _require_same_files(one: Learner, two: Learner, round: int) -> None:
    """RequirementBroken unless both learners are stored in the same bytes; says nothing about
    learners whose files are never the same twice.
    """
    if not (isinstance(one, SupportsStorage) and isinstance(two, SupportsStorage)):
        return
    copies: tuple[tuple[str, SupportsStorage], ...] = (("one", one), ("again", one), ("two", two))
    with TemporaryDirectory() as folder:
        files = []
        for name, learner in copies:
            try:
                learner.save(Path(folder) / name)
            except NotSerialisable:
                return
            files.append((Path(folder) / name).read_bytes())
    one_file, again, two_file = files
    figures = f"after round {round} the files of the two runs differ ({len(one_file)} and "
    figures += f"{len(two_file)} bytes): the erased person is still in them"
    require(one_file != again or one_file == two_file, figures)


@requirement
def erased_rounds_stay_erased(case: LearnerCase) -> None:
    """An erased round takes no label, group or overruling.

    It does not matter how long ago it was played; to erase it again changes nothing.
    """

    def erasing(*, attempts: bool) -> Copy:
        met: list[Decided] = []

        def erase_some(learner: Learner, decided: Decided) -> None:
            assert isinstance(learner, SupportsErasure)
            met.append(decided)
            decided.report(learner, decided.every(3) | decided.every(3, 1))
            gone = [decided.rounds[decided.every(8)]]
            if len(met) > LATE:
                gone.append(met[-LATE].rounds[met[-LATE].every(8, 1)])
            for rounds in gone:
                if not len(rounds):
                    continue
                learner.erase(rounds)
                if attempts:
                    learner.erase(int(rounds[0]))
                    learner.erase(rounds)
                    _require_closed(learner, int(rounds[0]))
            if attempts:
                more = [*decided.rounds.tolist(), case.rounds + 10**6]
                what = "an erasure that ends with a round that was never played"
                require_refusal(what, learner.erase, more)

        return Copy(erase_some)

    play(case, erasing(attempts=False), erasing(attempts=True))


def _require_closed(learner: Learner, round: int) -> None:
    for label in (1, -1):
        require_refusal(f"label {label:+d} of an erased person", learner.observe, round, label)
    if isinstance(learner, SupportsOverrule):
        for accept in (True, False):
            require_refusal("the overruling of an erased decision", learner.overrule, round, accept)
    if isinstance(learner, SupportsLateGroups):
        require_refusal("the group of an erased person", learner.report_group, round, "a")


# groups


@requirement
def missing_groups_are_the_same(case: LearnerCase) -> None:
    """None, NaN and pandas.NA in the group all mean "unknown".

    All of them are refused alike or taken alike, and teach the same.
    """
    numeric = bool(case.people().group.dtype.kind in "iuf")

    def hiding(missing: object, kind: type = object) -> Copy:
        def hide_some(group: GroupArray) -> ShownGroup:
            shown: GroupArray = group.astype(kind)
            shown[::5] = missing
            return shown

        return Copy(report_all, hide_some)

    some = [hiding(None), hiding(float("nan")), hiding(np.float64("nan"))]
    some += [hiding(np.nan, np.float64)] if numeric else []
    nobody = (lambda _: None, lambda group: np.full(len(group), None))
    all_copies = [Copy(report_all, shown) for shown in nobody]
    if find_spec("pandas") is not None:
        pandas = import_module("pandas")

        def categories(group: GroupArray) -> ShownGroup:
            shown = pandas.Series(group, dtype=object)
            shown[::5] = None
            return shown.astype("category")

        some += [hiding(pandas.NA), Copy(report_all, categories)]
        all_copies.append(
            Copy(report_all, lambda group: np.full(len(group), pandas.NA, dtype=object))
        )
    play(case, *some)
    play(case, *all_copies)


@requirement
def new_groups_stop_nobody(case: LearnerCase) -> None:
    """A group that nobody had before makes no call fail.

    People of such a group, as a mistyped one, are decided like all others.
    """
    people = case.people()
    strange: int | str = f"{people.group[0]} mistyped"
    if people.group.dtype.kind in "iu":
        strange = int(people.group.max()) + 1

    def mistyping(place: int, turn: int) -> Copy:
        blocks = count()

        def once(group: GroupArray) -> ShownGroup:
            shown = group.astype(object)
            if next(blocks) == turn:
                shown[min(place, len(shown) - 1)] = strange
            return shown

        return Copy(report_all, once)

    for place, turn in product((0, BLOCK // 2), (0, case.rounds // BLOCK // 2)):
        play(case, mistyping(place, turn))


@requirement
def late_groups_are_reported_once(case: LearnerCase) -> None:
    """A group that was unknown may be reported afterwards, once.

    Telling it again changes nothing, and another one is refused.
    """
    values = sorted(set(case.people().group.tolist()))

    def hide_some(group: GroupArray) -> ShownGroup:
        shown = group.astype(object)
        shown[::5] = None
        return shown

    def reporting(*, attempts: bool) -> Copy:
        def report_groups(learner: Learner, decided: Decided) -> None:
            assert isinstance(learner, SupportsLateGroups)
            report_all(learner, decided)
            rounds = decided.rounds[::5]
            group = decided.people.group[::5]
            other = [values[0] if value != values[0] else values[-1] for value in group.tolist()]
            if attempts:
                more = [*rounds.tolist(), case.rounds + 10**6]
                false = [*other, values[0]]
                what = "groups that end with a round that was never played"
                require_refusal(what, learner.report_group, more, false)
            learner.report_group(rounds, group)
            if attempts:
                learner.report_group(rounds, group)
                what = f"group {other[0]!r} after {group.tolist()[0]!r}"
                require_refusal(what, learner.report_group, int(rounds[0]), other[0])

        return Copy(report_groups, hide_some)

    play(case, reporting(attempts=False), reporting(attempts=True))


# many at once


@requirement
def a_large_block_counts_all_applicants(case: LearnerCase) -> None:
    """All people in one call are as many rounds as block by block.

    Each person is counted once, with a number, a draw and a label of their own.
    """
    people = case.people()
    whole = case.fresh()
    (cut,) = play(case, Copy(report_all))
    with nothing_fails(f"deciding {len(people)} people in one call, and reporting their labels,"):
        all_people = Decided(people, decide(whole, people.features, people.group))
        rounds = all_people.rounds
        size = len(people)
        wrong = int(np.argmax(rounds != np.arange(len(rounds)))) if len(rounds) else 0
        require(len(rounds) == size, f"{len(rounds)} decisions about {size} people")
        require(rounds[wrong] == wrong, f"person {wrong} of {size} has round {rounds[wrong]}")
        counters = f"the counter says {whole.round}, block by block {cut.round}"
        require(whole.round == cut.round, counters)
        chances = np.array([decision.propensity for decision in all_people.decisions])
        unlike = int(np.argmax(~((chances > 0) & (chances <= 1))))
        require(0 < chances[unlike] <= 1, f"round {unlike} has propensity {chances[unlike]!r}")
        epochs = [decision.epoch for decision in all_people.decisions]
        back = int(np.argmin(np.diff(epochs, prepend=0)))
        two = epochs[max(back - 1, 0) : back + 1]
        require(two == sorted(two), f"rounds {back - 1} and {back} are of epochs {two}")
        all_people.report(whole, all_people.every(2))
        require_labels(whole, all_people, all_people.every(2))
        for learner in (whole, cut):
            counted = getattr(getattr(learner, "report", None), "missing_labels", 0)
            all_reported = f"after all {case.rounds} rounds have theirs"
            require(counted == 0, f"{counted} labels count as missing {all_reported}")
            later = decide(learner, people.features[:BLOCK], people.group[:BLOCK])[0].round
            require(later == case.rounds, f"the next person has round {later}, not {case.rounds}")


@requirement
def threads_share_the_rounds(case: LearnerCase) -> None:
    """decide, observe and save may be called from any thread.

    Every person is one round, and every label goes to its own person.
    """
    learner = case.fresh()
    people = case.people()
    parts = [rows_of(people, slice(start, start + 5)) for start in range(0, len(people), 5)]
    met: list[Decided] = []
    lock = Lock()
    interval = sys.getswitchinterval()

    def job(number: int) -> None:
        for turn, part in enumerate(parts[number::THREADS]):
            pieces = [part] if turn % 2 else [rows_of(part, [i]) for i in range(len(part))]
            for piece in pieces:
                decided = Decided(piece, decide(learner, piece.features, piece.group, 0.0))
                with lock:
                    met.append(decided)
                    earlier = met[len(met) // 2]
                report_all(learner, decided)
                report_all(learner, earlier)
            if number == 0 and turn % 20 == 0 and isinstance(learner, SupportsStorage):
                with TemporaryDirectory() as folder:
                    try:
                        learner.save(Path(folder) / "learner")
                    except NotSerialisable:
                        continue

    sys.setswitchinterval(1e-6)
    try:
        raised = together([partial(job, number) for number in range(THREADS)])
    finally:
        sys.setswitchinterval(interval)
    if raised:
        figures = f"{len(raised)} of {THREADS} threads failed after {len(met)} calls"
        raise Broken(f"{figures}: {type(raised[0]).__name__}: {raised[0]}") from raised[0]
    _require_shared_rounds(learner, met, len(people))


def _require_shared_rounds(learner: Learner, met: list[Decided], people: int) -> None:
    """Every person is one round, with the propensity of the policy and a label of their own."""
    rounds = np.sort(np.concatenate([decided.rounds for decided in met]))
    twice = rounds[:-1][np.diff(rounds) == 0]
    figures = f"{len(rounds)} decisions of {THREADS} threads have {len(np.unique(rounds))} rounds"
    require(len(twice) == 0, f"{figures}, first twice: round {twice[0] if len(twice) else ''}")
    require(learner.round == people, f"the counter says {learner.round} after {people} people")
    require(bool((rounds == np.arange(people)).all()), f"{figures} up to {rounds[-1]}")
    last = max(int(np.max([decision.epoch for decision in decided.decisions])) for decided in met)
    for decided in met:
        chances = learner.policy.acceptance(decided.people.features, decided.people.group)
        for decision, chance in zip(decided.decisions, chances.tolist(), strict=True):
            said = chance if decision.accept else 1.0 - chance
            figures = f"round {decision.round} has propensity {decision.propensity!r}, "
            figures += f"the policy says {said!r}"
            require(decision.epoch != last or decision.propensity == said, figures)
        require_labels(learner, decided, decided.accepted)


# storage


@requirement
def reports_survive_storage(case: LearnerCase) -> None:
    """A copy that was stored and loaded knows what was reported.

    It takes and refuses what the original does, and decides like it.
    """
    learner = case.fresh()
    blocks = case.blocks()
    half = len(blocks) // 2
    met = []
    for people in blocks[:half]:
        decided = Decided(people, decide(learner, people.features, people.group))
        met.append(decided)
        decided.report(learner, decided.every(2))
        overruled = decided.every(10, 2)
        erased = decided.every(10, 3)
        if isinstance(learner, SupportsOverrule) and overruled.any():
            learner.overrule(decided.rounds[overruled], ~decided.accepted[overruled])
        if isinstance(learner, SupportsErasure) and erased.any():
            learner.erase(decided.rounds[erased])
    copy = stored_and_loaded(learner)
    if copy is None:
        return

    def answer(one: Learner, round: int, label: int) -> str:
        try:
            one.observe(round, label)
        except ProtocolError:
            return "refused"
        return "taken"

    for decided in met:
        labels = decided.people.label.tolist()
        for round, label in zip(decided.rounds.tolist(), labels, strict=True):
            for reported in (label, -label):
                answers = [answer(one, round, reported) for one in (learner, copy)]
                figures = f"label {reported:+d} of round {round} is {answers[0]} before "
                figures += f"and {answers[1]} after storage"
                require(answers[0] == answers[1], figures)
    for people in blocks[half:]:
        one, two = (decide(player, people.features, people.group) for player in (learner, copy))
        require_same_decisions(one, two)
        for player in (learner, copy):
            report_all(player, Decided(people, one))


def stored_and_loaded(learner: Learner) -> Learner | None:
    """A copy of a learner that was stored and loaded; None if its class cannot be stored."""
    assert isinstance(learner, SupportsStorage)
    with TemporaryDirectory() as folder:
        try:
            learner.save(Path(folder) / "learner")
        except NotSerialisable:
            return None
        return load(
            Path(folder) / "learner",
            hypotheses=getattr(learner, "hypotheses", None),
            same_coins=True,
        )


EVERY_LEARNER: tuple[LearnerRequirement, ...] = (
    late_labels_find_their_round,
    missing_labels_stop_nobody,
    repeated_reports_change_nothing,
    the_order_of_reports_is_irrelevant,
    refused_reports_change_nothing,
    missing_groups_are_the_same,
    new_groups_stop_nobody,
    a_large_block_counts_all_applicants,
    threads_share_the_rounds,
)
CAPABLE_LEARNERS: Mapping[type, tuple[LearnerRequirement, ...]] = {
    SupportsOverrule: (
        refused_accepts_teach_nothing,
        accepted_rejects_stay_rejected,
        agreeing_humans_change_nothing,
    ),
    SupportsErasure: (erased_people_leave_no_trace, erased_rounds_stay_erased),
    SupportsLateGroups: (late_groups_are_reported_once,),
}
