"""The law of cohorts: every decided round counts, as drawn; what is lost counts at its worst;
nothing is chosen afterwards.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.learners.play import FPR, WORLD

from evenhand.errors import InvalidInput, ProtocolError
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.learners.certified.evidence import from_block
from evenhand.learners.rounds import Block
from evenhand.policies import Mixture
from evenhand.randomness import stream

RULE = WORLD.hypotheses.bind(WORLD.features, None).hypothesis(2)


def block(people, policy, generator, *, first=0, epoch=1, **columns):
    """Everybody decided by `policy`, labels of all accepted known."""
    acceptance = policy.acceptance(people.features, people.group)
    accept = generator.random(len(people)) < acceptance
    label = np.where(accept, people.label, 0)
    return Block(
        first=first,
        epoch=epoch,
        features=people.features,
        group=people.group.astype(object),
        accept=accept,
        acceptance=acceptance,
        prices=None,
        label=label,
        logged=np.zeros(len(people), bool),
        audit=accept & (generator.random(len(people)) < 0.2),
        settled=label,
        **columns,
    )


def some(rounds=400, policy=None, **columns):
    generator = stream(3, "some")
    mixed = policy or Mixture((ACCEPT_ALL, REJECT_ALL, RULE), (0.2, 0.1, 0.7))
    return block(WORLD.draw(rounds, generator), mixed, generator, **columns)


class TestTheType:
    @pytest.mark.parametrize("chance", [0.0, 1.0, 1.5, -0.1, float("nan")])
    def test_what_cannot_have_happened_has_no_constructor(self, chance):
        drawn = some()
        wrong = replace(drawn, acceptance=np.full(len(drawn.accept), chance))
        with pytest.raises(InvalidInput, match="cannot have happened"):
            from_block(wrong)

    def test_a_selection_made_afterwards_has_no_constructor(self):
        whole = from_block(some())
        for rows in (np.arange(1, len(whole.features)), np.flatnonzero(whole.positive == 0)):
            columns = {
                name: getattr(whole, name)[..., rows]
                for name in (
                    *(
                        "acceptance",
                        "rejected",
                        "positive",
                        "negative",
                        "unresolved",
                        "settled",
                        "settled_audited",
                    ),
                    *("audited_positive", "audited_negative", "audited_unresolved", "group"),
                )
            }
            with pytest.raises(ProtocolError, match="looks at everybody who was decided"):
                replace(whole, features=whole.features[rows], **columns)

    def test_a_life_refuses_a_gap_and_a_repetition(self):
        learner = CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, seed=1)
        learner.replay([some(100)], 100)
        for first in (101, 99, 0):
            with pytest.raises(ProtocolError, match="round 100 is the next to be looked at"):
                learner.replay([replace(some(50), first=first)], 300)

    def test_everybody_is_in_one_column(self):
        drawn = some()
        r = np.random.default_rng(0)
        marks = dict(overruled=r.random(400) < 0.1, erased=r.random(400) < 0.1)
        drawn = replace(drawn, **marks, label=np.where(r.random(400) < 0.2, 0, drawn.label))
        cohort = from_block(drawn)
        assert cohort.rounds.sum() + cohort.lost == 400
        here = ~drawn.erased
        assert cohort.rejected.sum() == (~drawn.accept & here).sum()
        assert (
            cohort.positive.sum()
            == (drawn.accept & here & ~drawn.overruled & (drawn.label == 1)).sum()
        )
        assert (
            cohort.unresolved.sum()
            == (drawn.accept & here & (drawn.overruled | (drawn.label == 0))).sum()
        )
        assert cohort.lost_accepted.sum() == (drawn.accept & drawn.erased).sum()
        assert cohort.lost_audited == (drawn.audit & drawn.erased).sum()

    def test_the_loss_sees_neither_overruled_nor_erased_people(self):
        drawn = some()
        accepted = np.flatnonzero(drawn.accept)
        overruled, erased = np.zeros(400, bool), np.zeros(400, bool)
        overruled[accepted[:30]] = True
        erased[accepted[30:40]] = True
        log = from_block(replace(drawn, overruled=overruled, erased=erased)).log
        assert log.accepted.sum() == len(accepted) - 40

    def test_overruled_rejections_stay_rejected(self):
        drawn = some()
        plain = from_block(drawn)
        marked = from_block(replace(drawn, overruled=~drawn.accept))
        np.testing.assert_array_equal(plain.rejected, marked.rejected)
        np.testing.assert_array_equal(plain.positive, marked.positive)
        by_group = {(g, False): float(((drawn.group == g) & ~drawn.accept).sum()) for g in "ab"}
        assert marked.overruled == by_group

    def test_the_drift_categories_are_those_of_the_end_of_the_window(self):
        drawn = some()
        late = np.zeros(400, bool)
        late[np.flatnonzero(drawn.accept)[::3]] = True
        cohort = from_block(replace(drawn, settled=np.where(late, 0, drawn.settled)))
        assert cohort.positive.sum() == (drawn.label == 1).sum()
        assert cohort.settled[0].sum() == ((drawn.label == 1) & ~late).sum()
        assert cohort.settled[2].sum() == late.sum()
        assert cohort.settled_audited.sum() == drawn.audit.sum()
