"""What a stranger writes from `contracts.py` alone runs through `simulate`, `compare`, `study`, the
commands and the service: a rate, a class, an environment, a learner.

None of these classes uses anything of evenhand but the contracts, the nouns (`words`) and the
errors.
"""

from threading import Lock
from typing import ClassVar

import numpy as np
import pytest
from tests.requirements.environments import check_environment
from tests.requirements.learners import check_learner
from tests.requirements.parts import check_rate

from evenhand import CertifiedLearner, simulate
from evenhand.contracts import Rate
from evenhand.errors import BadLabel, InvalidInput, NotSerialisable, ProtocolError
from evenhand.fairness.rates import RATES, as_rates
from evenhand.hypotheses import CLASSES
from evenhand.simulation import LEARNERS, Entry, compare
from evenhand.simulation.study import StudyPlan, source_of, study
from evenhand.tables import Description
from evenhand.testing import RequirementBroken, check_hypothesis_class
from evenhand.words import Decisions, LabelledSample, Prices


class RejectedGood(Rate):
    """P(rejected | group, y = +1), written anew."""

    name = "rejected good rate"
    symbol = "RGR"
    denominator_name = "good people (label +1)"
    sign = -1
    offset = 1.0

    @staticmethod
    def in_denominator(label):
        return np.asarray(label == 1)


class Cut:
    """Accept if the only feature is at least a number."""

    columns_used = (0,)

    def __init__(self, at):
        self.at = at

    def accepts(self, features, group=None):
        return features[:, 0] >= self.at

    def describe(self, names=None):
        return f"accept if {names[0] if names else 'x0'} >= {self.at:g}"

    def to_json(self):
        raise NotSerialisable("a stranger's cut has no JSON form.")


class TenCuts:
    """Ten cuts of one feature in [0, 1], and nothing else."""

    exact, uses_group = True, False
    log_size = float(np.log(12))
    params: ClassVar = {"class": "ten cuts"}
    members = tuple(Cut(at) for at in (*np.linspace(0.05, 0.95, 10), -np.inf, np.inf))

    def log_growth(self, rows, columns):
        return self.log_size

    def bind(self, features, group):
        return BoundCuts(self.members, np.array([rule.accepts(features) for rule in self.members]))

    def best(self, problem):
        return self.bind(problem.features, problem.group).best(problem.acceptance_cost)


class BoundCuts:
    def __init__(self, members, accepts):
        self.members, self.accepts = members, accepts

    def best(self, acceptance_cost):
        return self.members[int(np.argmin(self.accepts @ acceptance_cost))]

    def totals(self, channels):
        return channels @ self.accepts.T

    def hypothesis(self, member):
        return self.members[member]


class TwoTowns:
    """Two towns with twenty kinds of people each; everything is summed over the forty kinds."""

    params: ClassVar = {"environment": "two towns"}
    hypotheses = TenCuts()

    def __init__(self):
        self.score = np.tile((np.arange(20) + 0.5) / 20, 2)
        self.group = np.repeat(["east", "west"], 20)
        self.share = np.repeat([0.6 / 20, 0.4 / 20], 20)
        self.good = np.clip(self.score + np.where(self.group == "west", -0.1, 0.1), 0.05, 0.95)

    def fresh(self):
        return self

    def draw(self, rounds, generator):
        kind = generator.choice(40, size=rounds, p=self.share)
        label = np.where(generator.random(rounds) < self.good[kind], 1, -1)
        return LabelledSample(self.score[kind][:, np.newaxis], self.group[kind], label)

    def loss(self, policy, prices):
        accept = policy.acceptance(self.score[:, np.newaxis], self.group)
        wrong = (
            accept * (1 - self.good) * prices.false_accept
            + (1 - accept) * self.good * prices.false_reject
        )
        return float(self.share @ wrong)

    def gaps(self, policy, rates):
        accept = policy.acceptance(self.score[:, np.newaxis], self.group)
        found = []
        for rate in (rates,) if isinstance(rates, Rate) else rates:
            bad, good = rate.in_denominator(np.array([-1, 1]))
            counts = self.share * (bad * (1 - self.good) + good * self.good)
            east, west = (
                rate.sign
                * (counts * accept)[self.group == town].sum()
                / counts[self.group == town].sum()
                for town in ("east", "west")
            )
            found.append(west - east)
        return np.array(found)

    def optimum(self, limit, rates, prices):
        """The best of all pairs of members, mixed as far as the limit allows."""
        best = (np.inf, None)
        for one in self.hypotheses.members:
            for two in self.hypotheses.members:
                for part in np.linspace(0, 1, 101):
                    policy = Pair(one, two, part)
                    if np.abs(self.gaps(policy, rates)).max() <= limit:
                        best = min(
                            best, (self.loss(policy, prices), policy), key=lambda found: found[0]
                        )
        return best


class Pair:
    """One of two rules, by a coin."""

    def __init__(self, one, two, part):
        self.one, self.two, self.part = one, two, part

    def acceptance(self, features, group=None):
        return self.part * self.one.accepts(features) + (1 - self.part) * self.two.accepts(features)

    def describe(self, names=None):
        return f"{self.part:g} {self.one.describe(names)}, else {self.two.describe(names)}"

    def to_json(self):
        return {"kind": "stranger's pair"}


class Cautious:
    """Accepts everybody for a while, then the better half; a new policy after every hundredth
    label.
    """

    def __init__(self, seed=None):
        self.seed, self.rates, self.prices = seed, (RejectedGood(),), Prices()
        self.coins, self.round, self.accepted, self.told = np.random.default_rng(seed), 0, {}, {}
        self.policy, self.policies, self.lock = Pair(Cut(-np.inf), Cut(-np.inf), 1.0), 1, Lock()

    @property
    def params(self):
        return {"learner": "cautious", "seed": self.seed}

    def restarted(self, seed=None):
        return Cautious(seed)

    def decide(self, features, group=None):
        features = np.asarray(features, dtype=np.float64)
        with self.lock:
            chance = self.policy.acceptance(features)
            accept = self.coins.random(len(features)) < chance
            first, epoch = self.round, np.full(len(features), self.policies)
            self.round += len(features)
            self.accepted.update({first + i: features[i, 0] for i in np.flatnonzero(accept)})
        propensity = np.where(accept, chance, 1 - chance)
        return Decisions(accept, propensity, first, epoch, np.zeros(len(features), dtype=bool))

    def observe(self, round, label):
        rounds, labels = np.atleast_1d(round).tolist(), np.atleast_1d(label).tolist()
        with self.lock:
            for one, y in zip(rounds, labels, strict=True):
                if one not in self.accepted:
                    raise ProtocolError(f"round {one} was not accepted.")
                if y not in (-1, 1):
                    raise BadLabel(f"a label is {y}; it is -1 or 1.")
                if self.told.get(one, y) != y:
                    raise ProtocolError(f"round {one} has another label.")
            for one, y in zip(rounds, labels, strict=True):
                new = one not in self.told
                self.told[one] = y
                if new and len(self.told) % 100 == 0:
                    self.policy, self.policies = (
                        Pair(Cut(-np.inf), Cut(0.5), 0.2),
                        self.policies + 1,
                    )


def test_each_passes_its_requirements():
    assert check_rate(RejectedGood())
    assert check_hypothesis_class(TenCuts())
    assert check_environment(TwoTowns())
    assert check_learner(Cautious(), TwoTowns())


@pytest.mark.parametrize("learner", [Cautious(), None], ids=["a stranger's learner", "ours"])
def test_they_run_together(learner):
    learner = learner or CertifiedLearner(TenCuts(), RejectedGood(), 0.2, 0.05)
    run = simulate(learner, TwoTowns(), 2_500, 0, 0.2)
    assert run.rounds[-1] == 2_500
    assert np.diff(run.regret) == pytest.approx(run.lengths[1:] * (run.losses - run.optimum)[1:])
    assert run.gaps.max() < 0.5
    if isinstance(learner, Cautious):
        assert len(run.policies) > 2
        assert run.gaps[0] == 0
        assert run.gaps[-1] > 0


def test_they_are_compared_with_ours():
    found = compare(
        {"cautious": Cautious(), "certified": CertifiedLearner(TenCuts(), "fnr", 0.2, 0.05)},
        TwoTowns(),
        1_500,
        [0, 1],
        limit=0.2,
        delta=0.05,
        regret_gap=0.2,
    )
    assert [row.name for row in found.summaries] == ["cautious", "certified"]
    assert found.to_json()["learners"][0]["params"] == {"learner": "cautious"}


class WithoutPrices(TwoTowns):
    def loss(self, policy):
        return super().loss(policy, Prices())


def test_an_environment_that_forgets_prices_breaks_a_requirement_that_is_named():
    with pytest.raises(RequirementBroken, match="loss"):
        check_environment(WithoutPrices())


class DeafToPrices(TwoTowns):
    def loss(self, policy, prices):
        return super().loss(policy, Prices())


def test_an_environment_that_ignores_prices_breaks_a_requirement():
    with pytest.raises(RequirementBroken, match="prices"):
        check_environment(DeafToPrices())


def test_rates_are_named_once():
    assert list(RATES) == ["fpr", "fnr", "selection"]
    assert [rate.symbol for rate in as_rates("equalised-odds")] == ["FPR", "FNR"]
    with pytest.raises(InvalidInput, match="'npv'"):
        CertifiedLearner(TenCuts(), "npv", 0.1, 0.05)
    with pytest.raises(InvalidInput, match="rate"):
        as_rates([1])


@pytest.fixture
def described(tmp_path):
    """A table with one score in [0, 1]."""
    people = TwoTowns().draw(300, np.random.default_rng(0))
    rows = zip(people.features[:, 0], people.group, people.label, strict=True)
    lines = [f"{score},{town},{'yes' if label == 1 else 'no'}" for score, town, label in rows]
    (tmp_path / "t.csv").write_text("\n".join(["score,town,paid", *lines]) + "\n")
    return Description(tmp_path / "t.csv", "paid", "town", good="yes")


def test_they_are_studied(described, tmp_path, monkeypatch):
    """A study takes names, which somebody's own program has put where names are looked up."""
    monkeypatch.setitem(RATES, "rejected-good", RejectedGood())
    monkeypatch.setitem(CLASSES, "ten-cuts", TenCuts)
    monkeypatch.setitem(LEARNERS, "cautious", Entry(Cautious))
    plan = StudyPlan(
        (source_of("t.csv", described),),
        ("cautious", "certified"),
        limits=(0.2,),
        seeds=1,
        rounds=700,
        rates=("rejected-good",),
        kind="ten-cuts",
    )
    (compared,) = study(plan, tmp_path / "study").comparisons
    cautious, certified = compared.summaries
    assert not cautious.guaranteed
    assert cautious.worst_gap > 0
    assert certified.guaranteed
    assert certified.worst_gap <= 0.2
