"""The certified step: who counts, which classes and rates it takes, what is fixed before the coins
of an epoch, and what ends a run.
"""

import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from tests.claims.continuous import play as play_continuous
from tests.claims.continuous import scores, vectors
from tests.play import WORLD, decide_people, report_all

from evenhand.algorithms.certified import step as certified_step
from evenhand.algorithms.certified.closing import close, matured
from evenhand.algorithms.certified.intervals import BettingProcess
from evenhand.algorithms.certified.step import Certified
from evenhand.bounds import BettingBound
from evenhand.environments import Discrete
from evenhand.errors import InvalidInput, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate
from evenhand.hypotheses import Estimator, Linear, ScoreThresholds, Stumps
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.learner import EpochLearner
from evenhand.learners import CertifiedLearner
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import Rounds, counting
from evenhand.simulation import simulate

FPR, FNR, SR = FalsePositiveRate(), FalseNegativeRate(), SelectionRate()
RULE = WORLD.hypotheses.bind(WORLD.features, None).hypothesis(2)
ACCEPTING = Mixture((ACCEPT_ALL,), (1.0,))


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
        assert "waiting for people" in [note.kind for note in told.report.notes]

    def test_a_group_that_arrives_later_counts_from_then_on(self):
        told, generator, late = learner(), stream(7, "late"), []
        while told.round < 4000:
            people = WORLD.draw(50, generator)
            decisions = told.decide(people.features)
            accepted = np.flatnonzero(decisions.accept)
            told.observe(decisions.first_round + accepted, people.label[accepted])
            told.report_group(decisions.first_round + np.arange(50), people.group)
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
        assert told.state.run == 2
        assert told.state.ended == ("group mix",)

    def test_a_rare_group_joins_and_is_named(self):
        def rare(people, round):
            return np.where((round >= 300) & (np.arange(len(people)) == 7), "rare", people.group)

        told = played(learner(), 24_000, hide=rare, block=100)
        assert told.state.run == 1
        assert told.certificate.groups == ("a", "b", "rare")
        joined = told.bookings[-1]
        assert "rare" in joined.process
        assert joined.run == 1
        assert told.certificate.covered_from["rare"] == joined.at > 0
        assert told.learned_weight > 0.2

    def test_a_typing_error_stops_nobody_and_is_named(self):
        def typo(people, round):
            return np.where((round == 0) & (np.arange(len(people)) == 7), "Femal", people.group)

        told = played(learner(), 4000, hide=typo, block=100)
        assert told.learned_weight > 0.5
        assert told.certificate.groups == ("a", "b")
        assert [(count.group, count.people) for count in told.certificate.outside] == [("Femal", 1)]
        (note,) = [note for note in told.report.notes if note.kind == "outside"]
        assert "'Femal' (1)" in note.text

    def test_the_groups_of_the_guarantee_can_be_named(self):
        told = played(learner(groups=("b", "a")), 2000)
        assert [(gap.group, gap.reference) for gap in told.certificate.gaps] == [("a", "b")]


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
        assert told.state.ready
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
        with pytest.raises(InvalidInput):
            learner().warm_start(chosen, audited=True)

    def test_it_comes_first(self):
        with pytest.raises(ProtocolError):
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
    @pytest.mark.thorough
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
        members, lo, hi = run.learner.state.certified()
        assert [m.describe() for m in members[-2:]] == [
            "accept if group is a",
            "accept if group is b",
        ]
        assert (lo[0, -2:] == hi[0, -2:]).all()
        assert sorted(hi[0, -2:]) == [-1.0, 1.0]


class TestContinuousFeatures:
    @pytest.mark.thorough
    @pytest.mark.parametrize(
        "hypotheses", [ScoreThresholds(), Stumps()], ids=lambda h: type(h).__name__
    )
    def test_thresholds_and_stumps(self, hypotheses):
        told = play_continuous(learner(hypotheses, limit=0.25), scores().draw, 3000, 1)
        assert told.certificate.status == "certified"
        assert abs(scores().gap(told.policy)) <= 0.25 + 1e-9
        assert told.learned_weight > 0.05

    def test_a_threshold_for_each_group_is_nominated_and_then_certified(self):
        told = learner(ScoreThresholds(per_group=True), limit=0.25, group_use="decide")
        play_continuous(told, scores().draw, 5000, 1)
        assert told.nominates
        assert told.certificate.status == "certified"
        assert told.learned_weight > 0.5
        assert abs(scores().gap(told.policy)) <= 0.25 + 1e-9

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        "hypotheses",
        [Linear(), Estimator(DecisionTreeClassifier(max_depth=3, random_state=0))],
        ids=["linear", "tree"],
    )
    def test_fitted_classes_are_nominated_and_then_certified(self, hypotheses):
        told = play_continuous(learner(hypotheses, limit=0.25), vectors, 5000, 1)
        assert told.nominates
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


class TestBetsBeforeCoins:
    """What the people of an epoch are judged by is in the state that opened it."""

    @pytest.mark.thorough
    @pytest.mark.parametrize("size", [1, 60])
    @pytest.mark.parametrize("settings", [{}, {"maturity": 3.0}], ids=str)
    def test_the_record_is_there_before_the_first_coin(self, settings, size, monkeypatch):
        """Whoever tosses a coin of a certified epoch finds the record of the epoch in the state."""
        found = []

        def watched(name):
            original = getattr(EpochLearner, name)

            def toss(learner, *args):
                if learner.rounds.epoch.phase == "certified":
                    found.append(learner.rounds.epoch.number)
                    assert learner.rounds.epoch.number in learner.state.records
                return original(learner, *args)

            monkeypatch.setattr(EpochLearner, name, toss)

        watched("_decide_one")
        watched("_decide_block")
        told, generator = learner(**settings), stream(5, "people")
        for now in range(0, 1500, size):
            people = WORLD.draw(size, generator)
            at = now / 60.0
            decisions = told.decide(people.features, people.group, at=at)
            accepted = np.flatnonzero(decisions.accept)
            told.observe(decisions.first_round + accepted, people.label[accepted], at=at)
        assert len(set(found)) >= 3

    def crossing(self):
        """A learner after a call that went on beyond the end of an epoch."""
        told = played(learner(), 900)
        told.open_epoch()
        people = WORLD.draw(told.rounds_left + 149, stream(6, "people"))
        cut = told.rounds_left - 1
        for part in (slice(0, cut), slice(cut, None)):
            decisions = told.decide(people.features[part], people.group[part])
            accepted = np.flatnonzero(decisions.accept)
            told.observe(decisions.first_round + accepted, people.label[part][accepted])
        return told, decisions

    def test_a_call_beyond_the_end_of_an_epoch_finds_a_record_for_each_of_its_people(self):
        told, decisions = self.crossing()
        assert len(set(decisions.epoch.tolist())) == 2
        assert set(decisions.epoch.tolist()) <= set(told.state.records)

    def test_closing_uses_that_record_and_fits_nothing(self, monkeypatch):
        """Whatever could compute a bet or fit a regression raises an error: it is not reached."""
        told, _ = self.crossing()
        rounds, state = told.rounds, told.state
        used = []
        update = BettingProcess.update

        def watched(process, cohort, record):
            used.append((cohort.epoch, record))
            return update(process, cohort, record)

        def never(*_, **__):
            raise AssertionError("a bet was computed at a closing")

        monkeypatch.setattr(BettingProcess, "update", watched)
        monkeypatch.setattr(BettingProcess, "bets", never)
        monkeypatch.setattr(BettingBound, "plan", never)
        monkeypatch.setattr(certified_step, "fit_outcomes", never)
        for cohort in matured(state, rounds, None):
            state = close(state, cohort, rounds)
        assert len(used) >= 2
        for epoch, record in used:
            assert record is told.state.records[epoch]
        rounds.end_epoch_here()
        with pytest.raises(AssertionError):  # negative control: the next epoch needs bets
            told.algorithm.step(told.state, rounds, None)

    def test_a_record_is_kept_until_its_people_have_closed(self):
        told, generator = learner(maturity=5.0), stream(5, "people")
        for now in range(80):
            people = WORLD.draw(60, generator)
            decisions = told.decide(people.features, people.group, at=float(now))
            accepted = np.flatnonzero(decisions.accept)
            told.observe(decisions.first_round + accepted, people.label[accepted], at=float(now))
            rounds = told.rounds
            waiting = rounds["epoch"][rounds["round"] >= told.state.closed_to]
            started = [e for e, _, _ in told.state.spans if told.state.process is not None]
            if started:
                certified = {e.number for e in rounds.epochs if e.phase == "certified"}
                assert set(waiting.tolist()) & certified <= set(told.state.records)
        assert len(told.state.records) < len(told.report.epochs)

    @pytest.mark.parametrize("rate", [FPR, FNR, SR], ids=str)
    def test_a_policy_that_cannot_accept_all_applicants_narrows_selection_rates_alone(self, rate):
        algorithm = Certified(WORLD.hypotheses, rate, 0.3, 0.05)
        state, epoch = algorithm.init(1)
        rounds, generator = Rounds(), stream(3, "people")
        rounds.open(epoch)
        people = WORLD.draw(600, generator)
        report_all(decide_people(rounds, people, ACCEPTING, generator, epoch=1), people)
        rounds.end_epoch_here()
        state, epoch = algorithm.step(state, rounds, None)
        rounds.open(epoch)
        # the record of a policy that is the rule alone
        closed = algorithm._closed_people(state, rounds)
        record = algorithm._record(state, Mixture((RULE,), (1.0,)), closed)
        state.records[2] = record
        before = state.process.intervals()
        people = WORLD.draw(3000, generator)
        decide_people(rounds, people, Mixture((RULE,), (1.0,)), generator, epoch=2)
        report_all(rounds, people, 600)
        state = close(state, counting.count(rounds, 600, 3600), rounds)
        after = state.process.intervals()
        narrower = (after[1] - after[0]) < (before[1] - before[0]) - 1e-9
        assert narrower.any() == isinstance(rate, SelectionRate)


class TestFrozen:
    def frozen(self, rate=FPR):
        told, generator = learner(rate=rate, audit_budget=200), stream(5, "people")
        while told.epoch.phase != "frozen":
            self.more(told, WORLD.draw(100, generator))
        return told, generator

    def more(self, told, people):
        decisions = told.decide(people.features, people.group)
        accepted = np.flatnonzero(decisions.accept)
        told.observe(decisions.first_round + accepted, people.label[accepted])

    @pytest.mark.thorough
    @pytest.mark.parametrize("rate", [FPR, SR], ids=str)
    def test_nobody_who_comes_later_changes_policy_or_certificate(self, rate):
        told, generator = self.frozen(rate)
        policy, certificate = told.policy, told.certificate.to_json()
        intervals = told.state.process.intervals()
        assert "frozen" in [note.kind for note in told.report.notes]
        for _ in range(5):
            self.more(told, WORLD.draw(500, generator))
            assert told.policy is policy
            assert told.epoch.phase == "frozen"
            assert told.certificate.to_json() == certificate
            np.testing.assert_array_equal(told.state.process.intervals()[0], intervals[0])

    def test_only_a_suspension_ends_it(self):
        told, generator = self.frozen()
        for _ in range(40):
            people = WORLD.draw(500, generator)
            moved = np.where(generator.random(500) < 0.5, "b", people.group)
            self.more(told, type(people)(people.features, moved, people.label))
            if told.state.run > 1:
                break
        assert "group mix" in told.state.ended
        assert told.certificate.status == "suspended"
        assert told.state.frozen is None


class TestSuspension:
    def suspended(self, **settings):
        """From round 4,000 on most people are of group b."""
        told = learner(**settings)
        played(told, 4000, block=100)
        generator = stream(8, "after")
        while told.state.run == 1 and told.round < 20_000:
            people = WORLD.draw(100, generator)
            group = np.where(generator.random(100) < 0.6, "b", people.group)
            decisions = told.decide(people.features, group)
            accepted = np.flatnonzero(decisions.accept)
            told.observe(decisions.first_round + accepted, people.label[accepted])
        assert told.state.run == 2
        return told

    def test_what_was_certified_no_longer_counts_and_the_ledger_goes_on(self):
        told = self.suspended()
        state = told.state
        assert state.process is None
        assert state.spans == ()
        assert state.records == {}
        assert state.closed_to == state.began <= told.epoch.first_round
        assert state.evidence.people == 0
        assert told.certificate.status == "suspended"
        assert told.learned_weight == 0
        spent = told.certificate.spent
        generator = stream(9, "later")
        while told.state.process is None:
            people = WORLD.draw(100, generator)
            decisions = told.decide(people.features, people.group)
            accepted = np.flatnonzero(decisions.accept)
            told.observe(decisions.first_round + accepted, people.label[accepted])
        assert [booking.run for booking in told.bookings] == [1, 2]
        assert spent < told.certificate.spent <= 0.05
        assert told.certificate.window[0] == state.began

    @pytest.mark.parametrize("fallback", ["accept", "reject"])
    def test_the_fallback_is_deployed_and_audited(self, fallback):
        told = self.suspended(fallback=fallback)
        weight = told.policy.weight_of(ACCEPT_ALL)
        assert (weight == 1.0) == (fallback == "accept")
        assert weight >= 0.05
        assert told.epoch.audit == weight


def test_models_that_cannot_be_saved_are_an_error_before_the_first_person(monkeypatch):
    """A certificate names a fitted model by its saved bytes."""
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(InvalidInput):
        learner(hypotheses=LogisticRegression())


def test_late_outcomes_without_a_window_have_a_note():
    rng, made, late = np.random.default_rng(0), learner(ScoreThresholds()), []
    for _ in range(12):
        score, group = rng.random((200, 1)), rng.choice(["a", "b"], 200)
        decisions = made.decide(score, group)
        late.append((decisions.round[decisions.accept], score[decisions.accept, 0] > 0.4))
        if len(late) > 3:
            rounds, good = late.pop(0)
            made.observe(rounds, np.where(good, 1, -1))
    (note,) = [note for note in made.notes if note.kind == "unresolved labels"]
    assert "maturity=" in note.text
