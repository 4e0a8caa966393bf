"""The certified learner's behaviour: what it refuses, who counts, what a certificate says, which
classes and rates it takes.
"""

import json
import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from tests.claims.continuous import play, scores, vectors
from tests.learners.play import WORLD

from evenhand.environments import Discrete
from evenhand.errors import BadLabel, CannotCertify, InvalidInput, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.fairness.certificate import Certificate
from evenhand.hypotheses import Estimator, Linear, ScoreThresholds, Stumps
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import CertifiedLearner
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.simulate import simulate
from evenhand.words import Prices

FPR, FNR, SR = FalsePositiveRate(), FalseNegativeRate(), SelectionRate()


def learner(hypotheses=None, rate=FPR, limit=0.2, delta=0.05, **settings):
    return CertifiedLearner(
        hypotheses or WORLD.hypotheses, rate, limit, delta, **{"seed": 1, **settings}
    )


def played(told, rounds, *, hide=None, block=200, world=WORLD, prices=None):
    """People one by one; `hide` gives the groups that are told instead of the true ones."""
    generator = stream(5, "people")
    while told.round < rounds:
        people = world.draw(min(block, rounds - told.round), generator)
        group = people.group if hide is None else hide(people, told.round)
        decisions = told.decide(people.features, group, prices=prices(people) if prices else None)
        accepted = np.flatnonzero(decisions.accept)
        told.observe(decisions.first_round + accepted, people.label[accepted])
    return told


class TestWhoCounts:
    def test_people_of_unknown_group_are_decided_about_and_counted_outside(self):
        def half(people, _):
            return np.where(np.arange(len(people)) % 2 == 0, people.group.astype(object), None)

        told = played(learner(), 4000, hide=half)
        certificate = told.certificate
        assert certificate.unknown_group == pytest.approx(certificate.window[1] / 2, abs=2)
        assert sum(cell.people for cell in certificate.counts) <= told.epoch.first_round / 2 + 2
        assert any("does not depend on the draw" in line for line in certificate.assumptions)
        assert "outside the certificate" in certificate.describe()

    def test_if_no_group_is_ever_known_constants_are_all_there_is(self):
        told = played(learner(), 2000, hide=lambda people, _: None)
        assert told.learned_weight == 0
        assert any("only constants" in note for note in told.report.notes)

    def test_a_group_that_arrives_later_counts_from_then_on(self):
        told, generator, late = learner(), stream(7, "late"), []
        while told.round < 4000:
            people = WORLD.draw(50, generator)
            decisions = told.decide(people.features)
            accepted = np.flatnonzero(decisions.accept)
            told.observe(decisions.first_round + accepted, people.label[accepted])
            told.tell_group(decisions.first_round + np.arange(50), people.group)
            late.append(decisions)
        assert told.learned_weight > 0.5
        assert told.certificate.unknown_group < 300
        assert sum(cell.people for cell in told.certificate.counts) > 1000

    def test_a_group_that_appears_in_bulk_is_drift(self):
        def stranger(people, round):
            return np.where(
                (round >= 10_000) & (np.arange(len(people)) % 10 == 0), "stranger", people.group
            )

        told = played(learner(), 24_000, hide=stranger, block=500)
        assert told.state.run.number == 2
        assert told.state.run.ended == ("group mix",)

    def test_a_rare_group_joins_and_is_named(self):
        def rare(people, round):
            return np.where((round >= 300) & (np.arange(len(people)) == 7), "rare", people.group)

        told = played(learner(), 24_000, hide=rare, block=100)
        assert told.state.run.number == 1
        assert told.certificate.groups == ("a", "b", "rare")
        assert "any two of the groups a, b, rare" in told.certificate.claim
        assert [entry.process for entry in told.bookings][-1] == "life 1: group rare joins"
        assert told.learned_weight > 0.2

    def test_a_typing_error_stops_nobody_and_is_named(self):
        def typo(people, round):
            return np.where((round == 0) & (np.arange(len(people)) == 7), "Femal", people.group)

        told = played(learner(), 4000, hide=typo, block=100)
        assert told.learned_weight > 0.5
        assert told.certificate.groups == ("a", "b")
        assert [(count.group, count.people) for count in told.certificate.outside] == [("Femal", 1)]
        assert any("'Femal' (1)" in note and "typing error" in note for note in told.report.notes)

    def test_the_groups_of_the_promise_can_be_named(self):
        told = played(learner(groups=("b", "a")), 2000)
        assert [(gap.group, gap.reference) for gap in told.certificate.gaps] == [("a", "b")]


class TestCertificates:
    def test_everything_is_on_record_and_json_brings_it_back(self):
        certificate = simulate(learner(), WORLD, 8000, 0).learner.certificate
        again = Certificate.from_json(json.loads(json.dumps(certificate.to_json())))
        assert again == certificate
        assert certificate.limit == 0.2
        assert 0 < certificate.spent <= certificate.failure_probability == 0.05
        assert certificate.bound == "betting cell by cell"
        assert {(cell.group, cell.label) for cell in certificate.counts} == {
            (g, y) for g in "ab" for y in (-1, 1)
        }
        assert all(gap.within(0.2) for gap in certificate.gaps)
        assert certificate.valid_until > certificate.window[1]
        assert "unbiased" not in certificate.describe()

    def test_any_mixture_can_be_asked_about(self):
        told = simulate(learner(limit=0.15), WORLD, 30_000, 0).learner
        members, lo, hi = told.state.run.certified()
        width = np.maximum(hi, -lo)[0]
        fair, unfair = members[int(np.argmin(width))], members[int(np.argmax(width))]
        assert told.certify(Mixture((fair,), (1.0,))).status == "certified"
        assert told.certify(Mixture((ACCEPT_ALL, REJECT_ALL), (0.3, 0.7))).gaps[0].high == 0
        with pytest.raises(CannotCertify) as refused:
            told.certify(Mixture((unfair,), (1.0,)))
        assert refused.value.group in ("a", "b")
        assert refused.value.needed > refused.value.have

    def test_before_anything_is_known_the_refusal_says_what_is_missing(self):
        told = learner()
        assert told.certificate.bound == "constants only (exact)"
        rule = WORLD.hypotheses.bind(WORLD.features, None).hypothesis(2)
        with pytest.raises(CannotCertify, match="more people"):
            told.certify(Mixture((rule,), (1.0,)))

    def test_nothing_more_is_spent_as_time_passes(self):
        spent = [
            simulate(learner(), WORLD, rounds, 0).learner.certificate.spent
            for rounds in (1000, 30_000)
        ]
        assert spent[0] == spent[1] <= 0.05


class TestWarmStart:
    def history(self, rounds=4000, chance=1.0):
        world, generator = WORLD, stream(9, "history")
        counts = world.draw_counts(rounds, np.full(6, chance), generator)
        columns = (counts.rejected, counts.accepted_positive, counts.accepted_negative)
        return RoundLog(
            world.features,
            world.group,
            np.full(6, chance),
            *(column.astype(float) for column in columns),
        )

    def test_an_audited_history_counts_towards_the_start_and_not_in_the_intervals(self):
        told = learner()
        told.warm_start(self.history(), audited=True)
        assert told.state.run.ready
        certificate = played(told, 400, block=50).certificate
        assert told.learned_weight > 0
        assert 0 < sum(cell.people for cell in certificate.counts) <= 400

    def test_another_history_serves_the_loss_only(self):
        told = learner()
        history = self.history()
        told.warm_start(
            RoundLog(
                history.features,
                history.group,
                np.linspace(0.2, 0.9, 6),
                history.rejected,
                history.positive,
                history.negative,
            ),
            audited=False,
        )
        played(told, 200)
        assert sum(cell.people for cell in told.certificate.counts) <= 200

    def test_a_history_that_chose_people_is_no_audit(self):
        history = self.history()
        chosen = RoundLog(
            history.features,
            history.group,
            np.linspace(0.2, 0.9, 6),
            history.rejected,
            history.positive,
            history.negative,
        )
        with pytest.raises(InvalidInput, match="not gathered by an audit rule"):
            learner().warm_start(chosen, audited=True)

    def test_it_comes_first(self):
        with pytest.raises(ProtocolError, match="before the first"):
            played(learner(), 100).warm_start(self.history(), audited=True)


def many_groups(groups):
    """Four contexts per group, base rates that differ."""
    step = np.array([0.15, 0.4, 0.65, 0.9])
    rate = np.clip(np.concatenate([step + 0.03 * g for g in range(groups)]), 0, 1)
    rules = np.array([[cut <= place for place in range(4)] for cut in range(5)])
    return Discrete(
        np.full(4 * groups, 1 / (4 * groups)),
        rate,
        np.repeat(np.arange(groups), 4),
        np.tile(rules, groups),
    )


class TestRatesAndGroups:
    @pytest.mark.parametrize("rates", [FNR, SR, [FPR, FNR], [FPR, FNR, SR]], ids=str)
    def test_other_rates_and_several_at_once(self, rates):
        run = simulate(learner(rate=rates, limit=0.25), WORLD, 30_000, 0)
        assert run.worst_gap <= 0.25 + 1e-9
        assert len(run.learner.certificate.gaps) == len(run.learner.rates)
        assert run.learner.learned_weight > 0.3

    @pytest.mark.parametrize("groups", [3, 5])
    def test_all_pairs_of_groups(self, groups):
        world = many_groups(groups)
        run = simulate(learner(world.hypotheses, limit=0.2), world, 30_000, 0)
        assert run.worst_gap <= 0.2 + 1e-9
        assert len(run.learner.certificate.gaps) == groups * (groups - 1) // 2
        assert run.learner.learned_weight > 0.3

    def test_five_groups_with_equalised_odds(self):
        world = many_groups(5)
        run = simulate(learner(world.hypotheses, rate=[FPR, FNR], limit=0.3), world, 20_000, 0)
        assert run.worst_gap <= 0.3 + 1e-9
        assert len(run.learner.certificate.gaps) == 20

    def test_deciding_by_group_when_that_is_chosen(self):
        run = simulate(learner(limit=0.1, group_use="decide"), WORLD, 20_000, 0)
        assert run.worst_gap <= 0.1 + 1e-9
        members, lo, hi = run.learner.state.run.certified()
        assert [m.describe() for m in members[-2:]] == [
            "accept if group is a",
            "accept if group is b",
        ]
        assert (lo[0, -2:] == hi[0, -2:]).all()
        assert sorted(hi[0, -2:]) == [-1.0, 1.0]


class TestContinuousFeatures:
    @pytest.mark.parametrize(
        "hypotheses", [ScoreThresholds(), Stumps()], ids=lambda h: type(h).__name__
    )
    @pytest.mark.parametrize("bound", ["betting", "kl", "dkw"])
    def test_thresholds_and_stumps(self, hypotheses, bound):
        told = play(learner(hypotheses, limit=0.25, bound=bound), scores().draw, 3000, 1)
        assert told.certificate.status == "certified"
        assert abs(scores().gap(told.policy)) <= 0.25 + 1e-9
        assert told.learned_weight > 0.05

    @pytest.mark.parametrize(
        "hypotheses",
        [Linear(), Estimator(DecisionTreeClassifier(max_depth=3, random_state=0))],
        ids=["linear", "tree"],
    )
    def test_fitted_classes_are_nominated_and_then_certified(self, hypotheses):
        told = play(learner(hypotheses, limit=0.25), vectors, 5000, 1)
        assert told.bound == "nominate"
        assert told.learned_weight > 0.3
        assert told.certificate.spent <= 0.05
        truth = vectors(200_000, stream(3, "truth"))
        gap = np.diff(
            [
                told.acceptance(truth.features)[(truth.group == g) & (truth.label == -1)].mean()
                for g in ("a", "b")
            ]
        )
        assert abs(gap[0]) <= 0.25 + 0.01


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"limit": 0.0}, "allowed_gap is 0.0"),
            ({"limit": -0.1}, "allowed_gap is -0.1"),
            ({"limit": 1.5}, "allowed_gap is 1.5"),
            ({"delta": 0.0}, "failure_probability"),
            ({"delta": 1.0}, "failure_probability"),
            ({"audit_rate": 0.0}, "audit_rate is 0.0"),
            ({"audit_rate": "often"}, "audit_rate is 'often'"),
            ({"audit_budget": -1}, "audit_budget is -1"),
            ({"fallback": "wait"}, "fallback is 'wait'"),
            ({"maturity": 0}, "maturity is 0"),
            ({"horizon": 0}, "horizon is 0"),
            ({"bound": "bootstrap"}, "bound is 'bootstrap'"),
            ({"bound": "dkw"}, "covers thresholds on a column"),
            ({"hypotheses": Linear(), "bound": "betting"}, "too rich for a union"),
            ({"hypotheses": Linear(), "bound": "kl"}, "too rich for a union"),
            ({"hypotheses": ScoreThresholds(per_group=True)}, "looks at the group"),
        ],
    )
    def test_settings(self, settings, message):
        with pytest.raises(InvalidInput, match=message):
            learner(**settings)

    def test_negative_prices(self):
        with pytest.raises(InvalidInput, match="price"):
            learner(prices=Prices(-1.0, 1.0))

    def test_labels_of_the_rejected_unknown_rounds_and_contradictions(self):
        told = played(learner(), 3000)
        decisions = told.decide(WORLD.features, WORLD.group)
        while decisions.accept.all():
            decisions = told.decide(WORLD.features, WORLD.group)
        rejected = decisions.first_round + int(np.argmin(decisions.accept))
        with pytest.raises(ProtocolError, match="was rejected"):
            told.observe(rejected, 1)
        with pytest.raises(ProtocolError, match="is unknown"):
            told.observe(10**9, 1)
        accepted = decisions.first_round + int(np.argmax(decisions.accept))
        told.observe(accepted, -1)
        told.observe(accepted, -1)
        with pytest.raises(ProtocolError, match="observed before"):
            told.observe(accepted, 1)
        with pytest.raises(BadLabel):
            told.observe(accepted, 0)

    def test_a_group_that_contradicts_the_one_told_before(self):
        told = learner()
        decision = told.decide(WORLD.features[:1], WORLD.group[:1])[0]
        with pytest.raises(ProtocolError, match="another group"):
            told.observe(decision.round, 1, group="b")

    def test_time(self):
        told = learner(maturity=5.0)
        with pytest.raises(InvalidInput, match="needs the time"):
            told.decide(WORLD.features, WORLD.group)
        told.decide(WORLD.features, WORLD.group, at=3.0)
        with pytest.raises(ProtocolError, match="backwards"):
            told.decide(WORLD.features, WORLD.group, at=2.0)


def test_models_that_cannot_be_saved_are_refused_before_the_first_person(monkeypatch):
    """A certificate names a fitted model by its saved bytes."""
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(InvalidInput, match="saved with skops, which is not installed"):
        learner(hypotheses=LogisticRegression())


def test_late_outcomes_without_a_window_are_told_the_way_out():
    rng, made, late = np.random.default_rng(0), learner(ScoreThresholds()), []
    for _ in range(12):
        score, group = rng.random((200, 1)), rng.choice(["a", "b"], 200)
        decisions = made.decide(score, group)
        late.append((decisions.round[decisions.accept], score[decisions.accept, 0] > 0.4))
        if len(late) > 3:
            rounds, good = late.pop(0)
            made.observe(rounds, np.where(good, 1, -1))
    assert any("maturity=, with at=" in note for note in made.notes)
