"""Attacks on the service over real HTTP, on both databases: whoever is overruled, erased,
trained on or told late, and by whatever they choose them, no policy that is ever published has a
gap above the limit.

Each attack has a mutant of the trainer, which leaves people out, that must publish a policy
above 1.2 times the limit; that is the smallest defect that is caught. One run each, with seeded
people and coins; the guarantee itself may fail with probability .05 a run.
"""

import csv
from dataclasses import replace

import pytest
from service.tests.enemies import CLEAR, MIXED, World, product, served

from evenhand_service import Trainer
from evenhand_service.audit_pack import Period, pack
from evenhand_service.ledger import verify

SIZES = (100, 300, 900, 1500)
FEWER = (100, 300, 1000)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def where(request, tmp_path):
    return (
        tmp_path / "ledger.sqlite"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_url")
    )


class LeavesOut(Trainer):
    """The defect: some rows are no rows."""

    kept = staticmethod(lambda row: True)

    def _rows(self, after, upto, *, known):
        found = self.ledger.history(
            self.product.name, after=after, upto=known, maturity=self.product.maturity
        )
        return [row for row in found if row.seq <= upto and self.kept(row)]


class Thaws(LeavesOut):
    """A frozen policy goes on changing, and people whom it could not accept are left out."""

    thawed = False

    def kept(self, row):
        return not self.thawed or row.acceptance > 0

    def _step(self, lease, *, whole):
        learner = self._learner
        if learner.state.frozen is not None:
            self.thawed = True
            state = replace(learner.state, frozen=None)
            epoch = learner.rounds.epoch
            people = learner.algorithm._closed_people(state, learner.rounds)
            record = learner.algorithm._record(state, epoch.mixture, people)
            learner.state = replace(state, records={epoch.number: record})
        return super()._step(lease, whole=whole)


def put_back(bank, mutant):
    bank.service.trainers["loan"] = mutant(bank.ledger, bank.product, "mutant")


# the audit budget


def spent(bank):
    """Learn a little, spend the budget, then POST /v1/train again and again, until six policies
    were published from the frozen one on: the published policies.
    """
    for _ in range(2):  # the cuts come from the first hundred, the first bets after them
        bank.repay(bank.arrive(100))
        bank.train()
    for _ in range(30):
        bank.repay(bank.arrive(1200))
        bank.train()
        phases = [p.info["phase"] for p in bank.lineage]
        if "frozen" in phases[:-5]:
            break
    return bank.lineage


FIFTEEN = World(north=0.50, south=0.35)


@pytest.mark.slow
def test_training_after_the_budget_is_spent_publishes_the_same_bits(where):
    with served(where, product(audit_budget=40.0), seed=1, world=FIFTEEN) as bank:
        lineage, certificates = spent(bank), bank.certificates()
        phases = [p.info["phase"] for p in lineage]
        first = phases.index("frozen")
        assert len(phases) - first >= 6
        assert set(phases[first:]) == {"frozen"}
        assert len({p.id for p in lineage[first:]}) == 1
        assert len({str(document) for document in certificates[first:]}) == 1
        assert bank.worst <= bank.product.limit
        assert lineage[-1].info["learned_weight"] > 0.0
        assert bank.get("/v1/certificate?product=loan")["certificate"] == certificates[first]
        assert verify(bank.ledger, deep=True).ok


@pytest.mark.slow
def test_a_policy_that_thaws_is_seen(tmp_path):
    """The negative control, and a weaker one: with this defect something else is published after
    the frozen policy, but its gap keeps the limit (where a budget could be exceeded at the start,
    it published the gap .150).
    """
    where = tmp_path / "ledger.sqlite"
    with served(where, product(audit_budget=40.0), seed=1, world=FIFTEEN) as bank:
        put_back(bank, Thaws)
        lineage = spent(bank)
        phases = [p.info["phase"] for p in lineage]
        assert len({p.id for p in lineage[phases.index("frozen") :]}) > 1


# overrides


def refused_in_the_north(score, group, label, accept):
    return accept and group == "north" and score == 1


def accepted_in_the_south(score, group, label, accept):
    return not accept and group == "south" and score == 0


def refused_for_bad_outcomes(score, group, label, accept):
    return accept and group == "north" and score == 1 and label == -1


OVERRULED = {
    "group": (
        CLEAR,
        product(),
        lambda *fact: refused_in_the_north(*fact) or accepted_in_the_south(*fact),
    ),
    "direction": (CLEAR, product(), accepted_in_the_south),
    "label": (MIXED, product(rates=("fpr",), price_false_accept=1.0), refused_for_bad_outcomes),
}


def overruled(bank, chosen):
    """After their outcomes are known, 8 of 10 of those chosen are overruled, before the epoch
    closes; (overruled by group and draw).
    """
    found = {}
    for size in SIZES:
        people = bank.arrive(size)
        bank.repay(people)
        for key, score, group, label, accept in people:
            if chosen(score, group, label, accept) and bank.generator.random() < 0.8:
                bank.post("/v1/overrides", {"key": key, "accept": not accept, "by": "enemy"})
                found[group, accept] = found.get((group, accept), 0) + 1
        bank.train()
    return found


@pytest.mark.parametrize(
    ("by", "database"),
    [
        pytest.param("group", "sqlite", marks=pytest.mark.slow),
        pytest.param("direction", "postgresql", marks=pytest.mark.slow),
        ("label", "sqlite"),
    ],
)
def test_overrides_chosen_by_an_enemy_move_no_policy_above_the_limit(
    by, database, tmp_path, request
):
    place = (
        tmp_path / "ledger.sqlite"
        if database == "sqlite"
        else request.getfixturevalue("postgres_url")
    )
    world, promised, chosen = OVERRULED[by]
    with served(place, promised, seed=1, world=world) as bank:
        found = overruled(bank, chosen)
        assert bank.worst <= bank.product.limit
        assert max(p.info["learned_weight"] for p in bank.lineage) > 0.1  # learning goes on
        shown = bank.get("/v1/certificate?product=loan")
        counts = {
            (c["group"], c["drawn_accept"]): c["people"] for c in shown["certificate"]["overruled"]
        }
        assert counts == found
        assert "manual overrides are not covered" in shown["claim"]
        plan = bank.get("/v1/plan?product=loan")
        assert {
            (o["group"], o["drawn"] == "accept"): o["decisions"] for o in plan["overruled"]
        } == found
        assert "as drawn" in plan["as_drawn"]
        assert bank.ledger.counts("loan").usable == sum(SIZES) == shown["certificate"]["window"][1]
        target = pack(bank.ledger, bank.product, Period(0.0, 2e9), tmp_path / "pack")
        with (target / "overruled.csv").open(newline="") as file:
            packed = {
                (r["group"], r["drawn"] == "accept"): int(r["decisions"])
                for r in csv.DictReader(file)
            }
        assert packed == found


@pytest.mark.slow
@pytest.mark.parametrize("by", list(OVERRULED))
def test_left_out_of_the_certificate_the_same_overrides_do(by, tmp_path):
    world, promised, chosen = OVERRULED[by]
    with served(tmp_path / "ledger.sqlite", promised, seed=1, world=world) as bank:
        put_back(
            bank,
            type("Overrides", (LeavesOut,), {"kept": staticmethod(lambda row: not row.overruled)}),
        )
        overruled(bank, chosen)
        assert bank.worst > 1.2 * bank.product.limit


# erasures


def erased(bank, share):
    """Accepted people of one group with a good score, and rejected ones of the other, are erased
    before their cohort closes.
    """
    for size in FEWER:
        people = bank.arrive(size)
        bank.repay(people)
        for key, *fact in people:
            wanted = refused_in_the_north(*fact) or accepted_in_the_south(*fact)
            if wanted and bank.generator.random() < share:
                bank.post("/v1/erasures", {"person": f"p-{key}", "by": "enemy"})
        bank.train()


def test_erasures_chosen_by_an_enemy_before_the_closing_move_no_policy_above_the_limit(where):
    """So many that nothing can be learned: then nothing is."""
    with served(where, product(), seed=2) as bank:
        erased(bank, 0.3)
        assert bank.worst <= bank.product.limit
        document = bank.get("/v1/certificate?product=loan")["certificate"]
        assert document["erased"] == bank.ledger.counts("loan").erased > 50
        assert document["window"][1] == sum(FEWER)


@pytest.mark.slow
def test_left_out_of_the_certificate_the_same_erasures_do(tmp_path):
    with served(tmp_path / "ledger.sqlite", product(), seed=2) as bank:
        put_back(
            bank, type("Erasures", (LeavesOut,), {"kept": staticmethod(lambda row: not row.erased)})
        )
        erased(bank, 0.8)
        assert bank.worst > 1.2 * bank.product.limit


def test_a_few_erasures_before_and_many_after_the_closing_stop_no_learning(where):
    """10 of the people who wait and 200 of those who were closed, chosen by outcome and draw, at
    each closing but the first.
    """
    with served(where, product(), seed=0) as bank:
        closed = []
        for size in SIZES:
            people = bank.arrive(size)
            bank.repay(people)
            if closed:
                chosen = (
                    [p for p in people if refused_in_the_north(*p[1:])][:3]
                    if size == 1500
                    else people[:0]
                )
                worst = sorted(closed, key=lambda p: (p[2] != "north", p[3], not p[4]))[
                    : 200 if size == 1500 else 10
                ]
                for key, *_ in [*chosen, *worst]:
                    bank.post("/v1/erasures", {"person": f"p-{key}", "by": "enemy"})
                gone = {key for key, *_ in worst}
                before = bank.get("/v1/certificate?product=loan")["certificate"]
                bank.service.trainer(bank.product).catch_up()
                assert bank.service.trainer(bank.product).learner.certificate.to_json() == before
                closed = [p for p in closed if p[0] not in gone]
            bank.train()
            closed += people
        booked = [p.info["delta"] for p in bank.lineage if p.info["delta"]]
        assert booked == [booked[0]] * len(booked)  # no part of delta is spent again
        assert bank.worst <= bank.product.limit
        assert bank.lineage[-1].info["learned_weight"] > 0.1
        assert bank.get("/v1/certificate?product=loan")["certificate"]["erased"] == 3
        assert verify(bank.ledger, deep=True).ok


# groups


def test_groups_that_are_told_for_the_accepted_alone_are_on_the_certificate(tmp_path):
    """That breaks an assumption, which is on record with the numbers that show it."""
    with served(tmp_path / "ledger.sqlite", product(), seed=0) as bank:
        bank.repay(bank.arrive(300))
        bank.train()
        people = bank.arrive(300, report_group=False)
        bank.repay(people)
        told = [(key, group) for key, _, group, _, accept in people if accept]
        for key, group in told:
            bank.post("/v1/groups", {"key": key, "group": group})
        bank.train()
        document = bank.get("/v1/certificate?product=loan")["certificate"]
        late = {(c["group"], c["drawn_accept"]): c["people"] for c in document["late_groups"]}
        assert sum(late.values()) == len(told)
        assert {accept for _, accept in late} == {
            True
        }  # nobody who was rejected: an auditor asks why
        assert any(
            "group becomes known does not depend on the draw" in text
            for text in document["assumptions"]
        )
        assert [c["people"] for c in document["outside"] if c["group"] is None] == [300 - len(told)]
        target = pack(bank.ledger, bank.product, Period(0.0, 2e9), tmp_path / "pack")
        with (target / "decisions.csv").open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["group_late"] == "1"]
        assert (len(rows), {row["accept"] for row in rows}) == (len(told), {"1"})


def test_the_gaps_are_what_they_are_said_to_be():
    from evenhand.hypotheses.thresholds import Threshold
    from evenhand.policies import Mixture

    rule = Mixture((Threshold(0, 1.0, 1),), (1.0,)).to_json()
    assert CLEAR.gap(rule) == pytest.approx(0.30)
    assert MIXED.gap(rule, "fpr") == pytest.approx(0.24 / (0.24 + 0.32) - 0.12 / (0.12 + 0.56))
