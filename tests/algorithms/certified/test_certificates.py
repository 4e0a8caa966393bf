"""What is claimed about a policy is on record, comes back from JSON, and follows from intervals."""

import json

import numpy as np
import pytest
from tests.algorithms.certified.test_step import learner, played
from tests.play import WORLD

from evenhand.algorithms.certified import certificates
from evenhand.errors import CannotCertify
from evenhand.fairness.certificate import Certificate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.simulation import simulate


def test_everything_is_on_record_and_json_brings_it_back():
    certificate = simulate(learner(), WORLD, 8000, 0).learner.certificate
    again = Certificate.from_json(json.loads(json.dumps(certificate.to_json())))
    assert again == certificate
    assert certificate.limit == 0.2
    assert 0 < certificate.spent <= certificate.delta == 0.05
    assert certificate.bound == "betting cell by cell"
    assert {(cell.group, cell.label) for cell in certificate.counts} == {
        (g, y) for g in "ab" for y in (-1, 1)
    }
    assert all(gap.within(0.2) for gap in certificate.gaps)
    assert certificate.valid_until > certificate.window[1]
    assert "unbiased" not in certificate.describe()


def test_any_mixture_can_be_asked_about():
    told = simulate(learner(limit=0.15), WORLD, 30_000, 0).learner
    members, lo, hi = told.state.certified()
    width = np.maximum(hi, -lo)[0]
    fair, unfair = members[int(np.argmin(width))], members[int(np.argmax(width))]
    assert told.certify(Mixture((fair,), (1.0,))).status == "certified"
    assert told.certify(Mixture((ACCEPT_ALL, REJECT_ALL), (0.3, 0.7))).gaps[0].high == 0
    with pytest.raises(CannotCertify) as refused:
        told.certify(Mixture((unfair,), (1.0,)))
    assert refused.value.group in ("a", "b")
    assert refused.value.needed > refused.value.have


def test_before_anything_is_known_the_refusal_says_what_is_missing():
    told = learner()
    assert told.certificate.bound == "constants only (exact)"
    rule = WORLD.hypotheses.bind(WORLD.features, None).hypothesis(2)
    with pytest.raises(CannotCertify):
        told.certify(Mixture((rule,), (1.0,)))


def test_nothing_more_is_spent_as_time_passes():
    spent = [
        simulate(learner(), WORLD, rounds, 0).learner.certificate.spent for rounds in (1000, 30_000)
    ]
    assert spent[0] == spent[1] <= 0.05


def test_people_outside_are_counted_by_group():
    def some(people, _):
        shown = people.group.astype(object)
        shown[::10] = None
        shown[1::50] = "rare"
        return shown

    told = played(learner(groups=("a", "b")), 1000, hide=some)
    outside = {count.group: count.people for count in told.certificate.outside}
    assert outside == {None: told.state.evidence.unknown, "rare": told.state.evidence.seen["rare"]}
    assert certificates.uncovered(told.state) == outside


def test_overruled_erased_and_late_groups_are_on_record():
    told = learner()
    people = WORLD.draw(300, np.random.default_rng(1))
    decisions = told.decide(people.features, np.where(np.arange(300) < 5, None, people.group))
    told.observe(decisions.round, people.label)
    told.overrule([10, 11], False)
    told.erase([20, 21, 22])
    told.report_group(range(5), people.group[:5])
    played(told, 400)
    certificate = told.certificate
    assert sum(count.people for count in certificate.overruled) == 2
    assert sum(count.people for count in certificate.late_groups) == 5
    assert certificate.erased == 3


def test_the_weights_of_the_constants_say_between_which_shares_it_accepts():
    run = simulate(learner(), WORLD, 8000, 0)
    told = run.learner
    policy = told.policy
    low, high = told.certificate.accepted
    assert (low, high) == (policy.weight_of(ACCEPT_ALL), 1 - policy.weight_of(REJECT_ALL))
    share = float(policy.acceptance(WORLD.features, WORLD.group) @ WORLD.probability)
    assert low <= share <= high
    assert f"{low:.4f} to {high:.4f}" in told.certificate.describe()
    assert told.certify(Mixture((ACCEPT_ALL, REJECT_ALL), (0.3, 0.7))).accepted == (
        pytest.approx(0.3),
        pytest.approx(0.3),
    )
