"""Audit-only bounds look at exactly the first N_k audited people, by arrival.

A look at a random part of a cohort looks at people who came after the N_k-th, and where the cohort
ends may depend on them. Exact: nothing here can fail by chance, but for the two draws of people
giving the same counts.
"""

import numpy as np
import pytest

from evenhand import CertifiedLearner, ScoreThresholds
from evenhand.bounds import PresetLooks
from evenhand.hypotheses import Threshold
from evenhand.policies import Mixture

FIRST_EPOCH = 100
LOOK = PresetLooks().count(1)
"""The first look of a bound; people of the first epoch are not among its audits."""


def people(many, seed):
    """One score for each, groups and labels."""
    draw = np.random.default_rng(seed)
    score = draw.integers(0, 4, size=(many, 1)).astype(float)
    group = np.where(draw.random(many) < 0.5, "a", "b")
    label = np.where(draw.random(many) < 0.2 + 0.2 * score[:, 0], 1, -1)
    return score, group, label


def intervals(bound, parts):
    """What is certified of each rule at the first look; the people of a part come in one call, all
    of them audited, and then single ones until the epoch has closed.
    """
    # an audit rate of 1 accepts everybody by the audit coin; with a limit of 1 every mixture has a
    # certificate
    learner = CertifiedLearner(
        ScoreThresholds(), "fpr", 1.0, 0.05, bound=bound, audit_rate=1.0, seed=1
    )
    for part in (*parts, *([column[i : i + 1] for column in LAST] for i in range(len(LAST[0])))):
        score, group, label = part
        decisions = learner.decide(score, group)
        assert decisions.accept.all()
        learner.observe(decisions.round, label)
        found = np.array([gaps_of(learner, rule) for rule in RULES])
        if learner.round > FIRST_EPOCH + LOOK and (found != [-1.0, 1.0]).any():
            return found
    raise AssertionError("no look took place")


def gaps_of(learner, rule):
    (gap,) = learner.certify(Mixture((rule,), (1.0,))).gaps or [None]
    return [-1.0, 1.0] if gap is None else [gap.low, gap.high]


RULES = [Threshold(column=0, value=cut, columns=1) for cut in (1.0, 2.0, 3.0)]
LAST = people(100, seed=9)


def joined(*parts):
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


@pytest.mark.parametrize("bound", ["hoeffding", "kl", "binomial", "dkw"])
def test_who_comes_after_the_last_audited_person_of_a_look_does_not_change_it(bound):
    before, looked = people(FIRST_EPOCH, 1), people(LOOK, 2)
    ends = [intervals(bound, [before, joined(looked, people(30, seed))]) for seed in (3, 4, 5)]
    assert ends[1].tolist() == ends[0].tolist()
    assert ends[2].tolist() == ends[0].tolist()


@pytest.mark.parametrize("bound", ["hoeffding", "dkw"])
def test_a_look_is_the_same_whether_its_call_ends_with_it_or_goes_on(bound):
    before, looked = people(FIRST_EPOCH, 1), people(LOOK, 2)
    calls = ([before, looked], [before, joined(looked, people(30, 3))])
    ends = [intervals(bound, parts) for parts in calls]
    assert ends[1].tolist() == ends[0].tolist()


def test_control_who_is_among_the_first_does_matter():
    before, later = people(FIRST_EPOCH, 1), people(30, 3)
    ends = [intervals("hoeffding", [before, joined(people(LOOK, s), later)]) for s in (2, 6)]
    assert ends[1].tolist() != ends[0].tolist()
