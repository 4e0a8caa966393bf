"""keep="counts": the same decisions from sums and a bounded sample, and no rows that grow with the
people; what it gives up raises an error.
"""

import numpy as np
import pytest
from tests.algorithms.certified.test_tally import CLASSES, people

from evenhand import CertifiedLearner, Linear, load
from evenhand.algorithms.certified import evidence, sample
from evenhand.errors import InvalidInput, ProtocolError
from evenhand.learners import Quota

BLOCK = 200


def made(keep, hypotheses=CLASSES["thresholds"], **settings):
    return CertifiedLearner(hypotheses, "fpr", 0.3, 0.1, seed=3, keep=keep, **settings)


def play(learner, calls, seed=11, lag=0):
    """Blocks of people; labels come `lag` blocks later, and one in ten never if there is a lag."""
    generator = np.random.default_rng(seed)
    waiting = []
    decided = []
    for _ in range(calls):
        rows, group, label = people(generator, BLOCK)
        decisions = learner.decide(rows, group, at=(learner.now or 0.0) + 1.0)
        waiting.append((decisions, label))
        if len(waiting) > lag:
            past, its_label = waiting.pop(0)
            known = past.accept & (generator.random(BLOCK) < (1.0 if lag == 0 else 0.9))
            learner.observe(past.round[known], its_label[known])
        decided.append(decisions)
    return np.concatenate([one.accept for one in decided])


@pytest.fixture
def few_rows(monkeypatch):
    """Samples of a few hundred people, so that short runs are long ones."""
    monkeypatch.setattr(sample, "most_rows", lambda _: 150)
    monkeypatch.setattr(sample, "MOST_NEW", 256)
    monkeypatch.setattr(evidence, "MOST_NEW", 256)


@pytest.mark.parametrize("lag", [0, 3])
@pytest.mark.parametrize("name", ["thresholds", "stumps", "finite"])
@pytest.mark.usefixtures("few_rows")
def test_the_decisions_are_those_of_a_learner_that_keeps_rows(name, lag):
    maturity = {"maturity": 4.0} if lag else {}
    rows, counts = (made(keep, CLASSES[name], **maturity) for keep in ("rows", "counts"))
    np.testing.assert_array_equal(play(rows, 25, lag=lag), play(counts, 25, lag=lag))
    mine, its = rows.state, counts.state
    assert mine.process is not None
    np.testing.assert_array_equal(mine.process.intervals()[0], its.process.intervals()[0])
    assert rows.rounds.dropped == 0
    assert counts.rounds.dropped > 1000
    assert len(rows.rounds) == counts.round == rows.round


@pytest.mark.usefixtures("few_rows")
def test_fitted_rules_too():
    rows, counts = (made(keep, Linear(), horizon=9000) for keep in ("rows", "counts"))
    np.testing.assert_array_equal(play(rows, 30), play(counts, 30))
    assert counts.state.process.members
    assert counts.rounds.dropped > 1000


@pytest.mark.usefixtures("few_rows")
def test_the_rows_that_are_kept_do_not_grow_with_the_people():
    learner = made("counts")
    play(learner, 20)
    early = len(learner.rounds)
    play(learner, 50, seed=12)
    # the rounds since the last look, and the sample of the open cohort
    assert len(learner.rounds) < 2 * early + 1000 < learner.round / 4


@pytest.mark.usefixtures("few_rows")
def test_a_stored_learner_goes_on_as_if_nothing_had_happened(tmp_path):
    learner = made("counts")
    play(learner, 20)
    learner.save(tmp_path / "learner.evenhand")
    other = load(tmp_path / "learner.evenhand", same_coins=True)
    assert other.rounds.dropped == learner.rounds.dropped > 0
    np.testing.assert_array_equal(play(learner, 20, seed=12), play(other, 20, seed=12))


@pytest.mark.usefixtures("few_rows")
def test_what_is_given_up_raises_an_error_and_changes_nothing():
    learner = made("counts")
    play(learner, 20)
    generator = np.random.default_rng(5)
    rows, group, label = people(generator, BLOCK)
    decisions = learner.decide(rows, group)
    before = len(learner.rounds), learner.rounds.audit_bill
    first = int(decisions.round[0])
    for refused in (
        lambda: learner.erase(first),
        lambda: learner.overrule(first, not decisions.accept[0]),
        lambda: learner.report_group(first, "a"),
        lambda: learner.observe(0, 1),
    ):
        with pytest.raises(ProtocolError, match="counts") as raised:
            refused()
        assert 'keep="rows"' in str(raised.value)
    assert (len(learner.rounds), learner.rounds.audit_bill) == before
    accepted = np.flatnonzero(decisions.accept)
    learner.observe(int(decisions.round[accepted[0]]), int(label[accepted[0]]))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"keep": "nothing"}, "nothing"),
        ({"keep": "counts", "quota": Quota(5, period=1.0)}, "quota"),
    ],
)
def test_settings_that_do_not_go_together(settings, said):
    with pytest.raises(InvalidInput, match=said):
        made(**settings)


def test_a_bill_of_audits_outlives_the_rows():
    rows, counts = (made(keep, audit_budget=400.0) for keep in ("rows", "counts"))
    np.testing.assert_array_equal(play(rows, 18), play(counts, 18))
    assert counts.rounds.dropped > 0
    assert counts.rounds.audit_bill == rows.rounds.audit_bill
