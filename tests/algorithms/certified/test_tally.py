"""Sums of open cohorts: exact, and the same decisions as counting every row at the closing.

The slow twin is a learner whose open cohorts are never fed: each cohort is then read from the rows
of the table when it closes, person by person.
"""

import numpy as np
import pytest

from evenhand import CertifiedLearner, ScoreThresholds, Stumps
from evenhand.algorithms.certified.objective import TOLERANCE, Objective
from evenhand.algorithms.certified.rule_tables import RuleSlots
from evenhand.algorithms.certified.tally import OPEN, OpenCohorts, Tally
from evenhand.estimation.outcomes import ConstantOutcome, LogisticOutcome
from evenhand.hypotheses import FiniteClass
from evenhand.hypotheses.linear import LinearRule
from evenhand.hypotheses.thresholds import Threshold
from evenhand.rounds import Rounds, counting, reports
from evenhand.rounds.cache import Cache

COLUMNS = 3
RULES = tuple(
    LinearRule(tuple(row), 0.0) for row in np.random.default_rng(5).normal(size=(6, COLUMNS))
)
CLASSES = {
    "thresholds": ScoreThresholds(0),
    "stumps": Stumps(max_bins=6),
    "finite": FiniteClass(RULES),
    "finite, the group decides": FiniteClass(RULES),
}


def people(generator, number):
    group = np.where(generator.random(number) < 0.4, "a", "b")
    rows = generator.normal(size=(number, COLUMNS)) + 0.3 * (group == "a")[:, np.newaxis]
    score = rows[:, 0] + 0.5 * rows[:, 1]
    label = np.where(generator.random(number) < 1.0 / (1.0 + np.exp(-score)), 1, -1)
    return rows, group, label


def lived(name, changes=(), rounds=4000, block=173, lag=0, **settings):
    """A learner after some blocks, and what it decided. lag: labels come so many blocks later, and
    some never; changes: what else happens to people.
    """
    decide = name.endswith("decides")
    learner = CertifiedLearner(
        CLASSES[name],
        "fpr",
        0.3,
        0.1,
        seed=3,
        group_use="decide" if decide else "certify_only",
        groups=("a", "b"),
        maturity=None if lag == 0 else float(lag),
        **settings,
    )
    generator = np.random.default_rng(11)
    decided = []
    waiting = []
    silent = np.zeros(rounds, dtype=bool)  # nothing more can be reported about them
    for call in range(rounds // block):
        rows, group, label = people(generator, block)
        told = group.astype(object)
        late_groups = "late groups" in changes and not decide
        if late_groups:
            told[::7] = None
        decisions = learner.decide(rows, told, at=float(call))
        waiting.append((decisions, label))
        if len(waiting) > lag:
            past, its_label = waiting.pop(0)
            known = past.accept & (generator.random(block) < (1.0 if lag == 0 else 0.9))
            known &= ~silent[past.round]
            learner.observe(past.round[known], its_label[known])
        if late_groups:
            learner.report_group(decisions.round[::7], group[::7])
        if "overruled" in changes and call % 5 == 2:
            learner.overrule(decisions.round[:20:4], ~decisions.accept[:20:4])
            silent[decisions.round[:20:4]] = True
        if "erased" in changes and call % 4 == 1:
            gone = generator.choice(learner.round, 5, replace=False)
            gone = np.append(gone, decisions.round[5:8])
            learner.erase(gone)
            silent[gone] = True
        decided.append(decisions)
    return learner, decided


def assert_alike(one, other):
    (learner, decided), (twin, its_decisions) = one, other
    for here, there in zip(decided, its_decisions, strict=True):
        np.testing.assert_array_equal(here.accept, there.accept)
        np.testing.assert_array_equal(here.audit, there.audit)
        np.testing.assert_allclose(here.propensity, there.propensity, rtol=0, atol=1e-12)
    state, its_state = learner.state, twin.state
    assert state.process is not None
    assert state.spans == its_state.spans
    for ends, its_ends in zip(
        state.process.intervals(), its_state.process.intervals(), strict=True
    ):
        np.testing.assert_allclose(ends, its_ends, rtol=0, atol=1e-12)
    for name in ("hits", "mass", "rounds", "lost"):
        mine, its = (getattr(each.process.state, name) for each in (state, its_state))
        np.testing.assert_allclose(mine, its, rtol=1e-11, atol=1e-9)
    assert vars(state.evidence) == vars(its_state.evidence)


def one_choice(monkeypatch, earlier=()):
    """The minima that the learner finds, in order. A search stops within a tolerance of the least
    J, so the last bits of a sum can move where it ends: the twin's must be as good as the earlier
    one, which is then taken for both.
    """
    real, found = Objective.minimise, []

    def minimise(objective, program, start):
        result = real(objective, program, start)
        if earlier:
            other = earlier[len(found)]
            values = [objective.value(each.weights) for each in (result, other)]
            assert abs(values[0] - values[1]) <= TOLERANCE * objective.worth.sum() + 1e-12
            result = other
        found.append(result)
        return result

    monkeypatch.setattr(Objective, "minimise", minimise)
    return found


def slow_twin(monkeypatch):
    real = OpenCohorts.feed

    def unfed(cohorts, table, stop, slots, _, *, group_decides):
        real(cohorts, table, stop, slots, {}, group_decides=group_decides)

    monkeypatch.setattr(OpenCohorts, "feed", unfed)


@pytest.mark.parametrize("changes", [(), ("late groups", "overruled", "erased")], ids=str)
@pytest.mark.parametrize("lag", [0, 6])
@pytest.mark.parametrize("name", CLASSES)
def test_decisions_and_certificates_are_those_of_the_slow_twin(name, lag, changes, monkeypatch):
    with monkeypatch.context() as patch:
        choices = one_choice(patch)
        one = lived(name, changes, lag=lag)
    one_choice(monkeypatch, choices)
    slow_twin(monkeypatch)
    assert_alike(one, lived(name, changes, lag=lag))


def test_shares_under_a_cap_are_those_of_the_slow_twin(monkeypatch):
    for name in ("stumps", "finite, the group decides"):
        with monkeypatch.context() as patch:
            choices = one_choice(patch)
            one = lived(name, ("erased",), accept_at_most=0.6)
        with monkeypatch.context() as patch:
            one_choice(patch, choices)
            slow_twin(patch)
            two = lived(name, ("erased",), accept_at_most=0.6)
        assert_alike(one, two)
        shares, its = (learner.state.accepted_shares for learner, _ in (one, two))
        np.testing.assert_array_equal(shares.most, its.most)
        np.testing.assert_array_equal(shares.people, its.people)


def test_the_sums_were_used_and_closing_reads_no_rows(monkeypatch):
    learner, _ = lived("thresholds")
    stop, cohorts = learner.rounds.cache.of_prefix(OPEN)
    assert stop > cohorts.since > 0
    assert sum(int(tally.rounds.sum()) for tally in cohorts.tallies.values()) > 0
    # nothing but the table's `count` reads a cohort person by person
    process = learner.state.process
    record = learner.state.records[learner.epoch.number]
    first, tally = max(cohorts.tallies.items())
    span = (learner.epoch.number, first, stop)
    monkeypatch.setattr(counting, "count", None)
    closed = tally.closed(learner.rounds, span, process.slots)
    assert closed.rounds.sum() == stop - first
    assert process.update(closed, record).rounds[0] > process.rounds[0]


def test_an_eraser_is_noticed_only_because_the_sums_are_forgotten(monkeypatch):
    """The control: a table that remembers sums of people who were erased differs from the twin."""
    changes = ("overruled", "erased", "late groups")
    with monkeypatch.context() as patch:
        slow_twin(patch)
        twin = lived("thresholds", changes)
    monkeypatch.setattr(Cache, "forget", lambda _: None)
    with pytest.raises(AssertionError):
        assert_alike(lived("thresholds", changes), twin)


def test_a_label_that_comes_after_the_last_look_counts_at_the_closing():
    rows, group, _ = people(np.random.default_rng(1), 40)
    table = Rounds()
    everybody = {"accept": np.ones(40, bool), "acceptance": np.ones(40)}
    table.append(epoch=1, features=rows, group=group, **everybody)
    slots = RuleSlots(RULES)
    tally = Tally.empty(len(slots), ConstantOutcome(0.5), group_decides=False)
    tally.feed(table, 0, 40, slots)
    assert len(tally.waiting) == 40
    reports.enter_labels(table, np.arange(30), np.repeat([1, -1], 15))
    closed = tally.closed(table, (1, 0, 40), slots)
    assert [closed.positive.sum(), closed.negative.sum(), closed.unresolved.sum()] == [15, 15, 10]
    assert closed.strata.tolist() == [0, 30, 0]


def taken(closed, row, kind):
    """How many rounds of one look and outcome each rule accepts."""
    entry = (np.array([row]), np.array([kind]), (0, 1, 2, 3), np.array([0]))
    return closed.accepted.of(*entry)[:, 0].tolist()


def test_slots_count_whom_each_rule_accepts():
    """By hand: how many people each rule accepts, for every group, p, m and outcome."""
    rules = (
        Threshold(1, 0.5, COLUMNS),
        Threshold(0, -0.2, COLUMNS, at_least=False),
        Threshold(1, -0.5, COLUMNS, at_least=False),
        *RULES[:2],
        Threshold(1, 0.5, COLUMNS, at_least=False),
        Threshold(0, 0.7, COLUMNS),
    )
    generator = np.random.default_rng(2)
    rows, group, label = people(generator, 500)
    rows[:50] = np.round(rows[:50], 1)
    rows[:5, 1] = 0.5  # on a cut
    table = Rounds()
    accept = generator.random(500) < 0.5
    p = generator.choice([0.5, 0.25, 1.0], 500)
    accept |= p == 1.0
    table.append(epoch=1, features=rows, group=group, accept=accept, acceptance=p)
    seen = np.flatnonzero(accept)[::2]
    reports.enter_labels(table, seen, label[seen])
    regression = LogisticOutcome(np.zeros(COLUMNS), np.ones(COLUMNS), np.ones(COLUMNS), 0.1)
    slots = RuleSlots(rules)
    tally = Tally.empty(len(slots), regression, group_decides=False)
    for first in range(0, 500, 90):
        tally.feed(table, first, min(first + 90, 500), slots)
    closed = tally.closed(table, (1, 0, 500), slots)
    m = np.round(64 * regression.negative_probability(rows)) / 64
    outcome = counting.outcomes(table, np.arange(500))
    assert len(closed.group) > 100
    for row in range(len(closed.group)):
        alike = (group == closed.group[row]) & (p == closed.acceptance[row])
        alike &= m == closed.regression[row]
        for kind in range(4):
            here = alike & (outcome == kind)
            assert closed.accepted.rounds[row, kind] == here.sum()
            by_hand = [rule.accepts(rows[here]).sum() for rule in rules]
            assert taken(closed, row, kind) == by_hand
    weight = generator.random((len(closed.group), 4))
    exact = sum(
        weight[row, kind] * np.array(taken(closed, row, kind))
        for row in range(len(weight))
        for kind in range(4)
    )
    np.testing.assert_allclose(closed.accepted.weighted(weight), exact, rtol=1e-12)
