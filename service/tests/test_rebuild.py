"""A trainer is rebuilt from the ledger bit for bit, whoever was overruled or erased: policy,
certificate and checkpoint are the same.
"""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from service.tests.bank import DAY, LOAN, PEOPLE
from service.tests.shop import Shop, record, twin_closes

from evenhand.hypotheses.serialise import policy_from_json
from evenhand.rounds import Rounds
from evenhand.storage import array_from_json, state_to_json
from evenhand_service import Product, Trainer
from evenhand_service.decider import variants_of
from evenhand_service.ledger import Damaged, Label, Ledger, verify
from evenhand_service.trainer import Closing, append_rows

PRODUCTS = {
    "thresholds": LOAN,
    "stumps": Product("loan", ("score", "income"), limit=0.3, groups=("north", "south"), seed=4),
    "linear": Product("loan", ("score",), hypotheses="linear", limit=0.3, maturity_days=2, seed=5),
    "both": Product(
        "loan", ("score",), hypotheses="thresholds", rates=("fpr", "fnr"), limit=0.4, seed=6
    ),
    "budget": Product(
        "loan",
        ("score",),
        hypotheses="thresholds",
        rates=("selection",),
        limit=0.3,
        audit_budget=30,
        seed=7,
    ),
    "decide": Product("loan", ("score",), group_use="decide", groups=("north", "south"), limit=0.3),
}


@pytest.fixture(
    params=[
        # "both" and "decide" have the same kind of rules, and more that can differ
        pytest.param(name, marks=pytest.mark.slow if name in ("thresholds", "stumps") else ())
        for name in PRODUCTS
    ]
)
def shop(request, tmp_path):
    made = Shop(tmp_path / "ledger.sqlite", PRODUCTS[request.param], seed=len(request.param))
    yield made
    made.shut()


def eventful(shop, epoch):
    """An epoch in which everything happens: late groups, labels that are late or missing, overrides
    and erasures of old and new people.
    """
    told = 1.0 if shop.product.group_use == "decide" else 0.9
    new = shop.arrive(80 + 40 * epoch, told=told)
    shop.repay(new, 0.8)
    shop.name_groups(new[:20])
    everybody, pick = list(shop.drawn), shop.chosen
    shop.overrule(pick.choice(new, 5, replace=False).tolist())
    shop.overrule(pick.choice(everybody, 3, replace=False).tolist())
    shop.clock.now += 2 * DAY
    shop.repay(new, 0.5)
    shop.erase(pick.choice(new, 4, replace=False).tolist())
    shop.erase(pick.choice(everybody, 4, replace=False).tolist())
    operate = partial(shop.service.decider.operate, shop.product, by="operator", note="a test")
    operate("kill")
    shop.arrive(5, told=told)
    operate("revive")
    if epoch > 2:
        # people whom an older policy of the lineage decides
        operate("rollback", policy=shop.lineage[1].id)
        shop.repay(shop.arrive(20, told=told))


def test_at_every_closing_a_fresh_trainer_publishes_the_same(shop, tmp_path):
    """Two trainers take turns, and a third starts at every closing.

    Negative control: the test below, without checkpoints, differs.
    """
    learned, replica = 0.0, Trainer(shop.ledger, shop.product, "replica")
    for epoch in range(6):
        eventful(shop, epoch)
        if epoch % 3 == 2:  # erased after the running trainer has caught up, before it closes
            shop.trainer.catch_up()
            shop.erase(list(shop.drawn)[epoch : epoch + 2])
        expected = twin_closes(shop, tmp_path)
        published = shop.close(replica if epoch % 2 else None)
        assert record(shop.ledger, published) == expected, f"epoch {published.epoch}"
        learned = max(learned, published.info["learned_weight"])
    assert learned > 0.0
    # people were drawn by the policy without its coin, because labels were missing
    variants = {one["epoch"] for policy in shop.lineage for one in variants_of(policy)}
    paused = sum(drawn.epoch in variants for drawn in shop.drawn.values())
    assert (paused > 0) == (shop.product.audit_budget is not None)
    assert verify(shop.ledger, deep=True).ok
    certificate = record(shop.ledger, shop.lineage[-1])[1]
    assert (
        certificate["erased"] > 0,
        sum(count["people"] for count in certificate["overruled"]) > 5,
    ) == (True, True)


def test_learning_again_from_those_who_are_left_is_another_life(tmp_path):
    """The control of the test above: what a trainer without checkpoints would do gives other
    certificates once somebody was erased.
    """
    shop = Shop(tmp_path / "ledger.sqlite", LOAN, seed=1)
    for epoch in range(6):
        eventful(shop, epoch)
        shop.close()
    lineage, learner, seen = shop.lineage, LOAN.learner(), Closing(0, 0.0, 0, 0, 0)
    ids = {p.epoch: p.id for p in lineage}
    for policy in lineage[1:]:
        closing = Closing(**policy.info["closing"])
        rows = shop.ledger.history(
            shop.product.name, after=seen.closed, upto=closing.upto, maturity=LOAN.maturity
        )
        stepped(learner, rows, ids, closing, published=policy_from_json(policy.document))
        seen = closing
    assert learner.certificate.to_json() != record(shop.ledger, lineage[-1])[1]
    rebuilt = Trainer(shop.ledger, LOAN, "rebuilt")
    rebuilt.catch_up()
    assert rebuilt.learner.certificate.to_json() == record(shop.ledger, lineage[-1])[1]
    shop.shut()


def test_without_erasures_an_auditor_replays_every_closing_from_the_first_row(tmp_path):
    """Independent of checkpoints: each policy, certificate and checkpoint is planned anew from the
    rows, overruled people included.
    """
    shop = Shop(tmp_path / "ledger.sqlite", LOAN, seed=2)
    for epoch in range(6):
        new = shop.arrive(80 + 40 * epoch, told=0.9)
        shop.repay(new, 0.8)
        shop.name_groups(new[:20])
        shop.overrule(shop.chosen.choice(new, 8, replace=False).tolist())
        shop.clock.now += 3 * DAY
        shop.close()
    lineage, learner, seen = shop.lineage, LOAN.learner(), Closing(0, 0.0, 0, 0, 0)
    ids = {p.epoch: p.id for p in lineage}
    assert record(shop.ledger, lineage[0]) == planned(learner)
    for policy in lineage[1:]:
        closing = Closing(**policy.info["closing"])
        rows = list(
            shop.ledger.history(
                shop.product.name, after=seen.closed, upto=closing.upto, maturity=LOAN.maturity
            )
        )
        stepped(learner, rows, ids, closing)
        assert record(shop.ledger, policy) == planned(learner)
        seen = closing
    assert max(p.info["learned_weight"] for p in lineage) > 0.0
    shop.shut()


def stepped(learner, rows, ids, closing, published=None):
    """What an auditor does: the rows that had not closed, as they were known, and one step."""
    learner.rounds.drop_from(learner.state.closed_to)
    append_rows(learner.rounds, list(rows), ids, columns=1, maturity=LOAN.maturity)
    learner.rounds.overdue = True
    learner.state, epoch = learner.algorithm.step(learner.state, learner.rounds, closing.at)
    if epoch.number == learner.rounds.epoch.number:  # nobody has matured: the same policy goes on
        epoch = replace(epoch, number=epoch.number + 1, first_round=learner.rounds.decided)
    learner.rounds.open(epoch if published is None else replace(epoch, policy=published))


def planned(learner):
    state = state_to_json(learner.state, learner.hypotheses)
    checkpoint = json.loads(json.dumps(state))
    return (
        learner.policy.to_json(),
        json.loads(json.dumps(learner.certificate.to_json())),
        checkpoint,
    )


# erasures


def test_an_erasure_of_closed_people_changes_nothing_that_is_certified(tmp_path):
    """1,000 people whose cohorts have closed, chosen by outcome and draw, are erased: the
    certificate, the intervals and the delta ledger are those of before, and learning goes on with
    the same bookings."""
    shop = Shop(tmp_path / "ledger.sqlite", LOAN, seed=3)
    keys = []
    for _ in range(7):
        keys += shop.arrive(300)
        shop.repay(keys[-300:])
        shop.clock.now += 3 * DAY
        shop.close()
    before, booked = record(shop.ledger, shop.lineage[-1]), shop.lineage[-1].info["delta"]
    closed = [k for k in keys if shop.drawn[k].seq <= shop.lineage[-1].info["closing"]["closed"]]
    worst = sorted(
        closed, key=lambda k: (shop.group[k] != "south", shop.truth[k], not shop.drawn[k].accept)
    )[:1000]
    shop.erase(worst)
    rebuilt = Trainer(shop.ledger, LOAN, "rebuilt")
    for trainer in (rebuilt, shop.trainer):
        trainer.catch_up()
        assert (trainer.learner.policy.to_json(), trainer.learner.certificate.to_json()) == before[
            :2
        ]
        assert [entry.to_json() for entry in trainer.learner.bookings] == booked
    for _ in range(3):
        shop.repay(shop.arrive(600))
        shop.clock.now += 3 * DAY
        newest = shop.close()
    assert newest.info["delta"] == booked
    assert newest.info["learned_weight"] > 0.0
    after = record(shop.ledger, newest)[1]
    assert after["erased"] == 0  # in no open cohort
    assert (after["window"][1], after["spent"]) == (
        newest.info["closing"]["people"],
        before[1]["spent"],
    )
    shop.shut()


def test_an_erasure_of_open_people_counts_at_its_worst(tmp_path):
    """10 people are erased before their cohort closes: they are on the certificate, and its
    intervals are no narrower than with them.
    """
    found = {}
    for erased in (0, 10):
        shop = Shop(tmp_path / f"{erased}.sqlite", LOAN, seed=3)
        for _ in range(6):
            shop.repay(shop.arrive(300))
            shop.clock.now += 6 * DAY
            shop.close()
        last = shop.arrive(300)
        shop.repay(last)
        chosen = [k for k in last if shop.group[k] == "south" and not shop.drawn[k].accept][:erased]
        shop.erase(chosen)
        shop.clock.now += 6 * DAY
        newest = shop.close()
        learner = shop.trainer.learner
        found[erased] = (
            record(shop.ledger, newest)[1],
            np.stack(learner.state.certified()[1:]),
            newest.info["delta"],
        )
        assert len(chosen) == erased
        shop.shut()
    (plain, ends, booked), (poorer, wider, again) = found[0], found[10]
    assert (plain["erased"], poorer["erased"], booked) == (0, 10, again)
    assert plain["window"] == poorer["window"]
    assert (wider[0] <= ends[0] + 1e-12).all()
    assert (wider[1] >= ends[1] - 1e-12).all()
    assert (wider[1] - wider[0]).sum() > (ends[1] - ends[0]).sum()


def test_nothing_of_an_erased_person_stays_in_memory_or_on_record(tmp_path):
    """A value that nobody else has: gone from the trainer's learner at once, and from the
    checkpoint of the next closing.
    """
    shop = Shop(tmp_path / "ledger.sqlite", LOAN, seed=5)
    shop.repay(shop.arrive(200))
    shop.clock.now += 6 * DAY
    # the rules that are judged are fixed here: cuts at the values of these people, for good
    shop.close()
    shop.people = Canary()
    canary = shop.arrive(1)
    shop.repay(canary)
    shop.people = PEOPLE
    shop.repay(shop.arrive(50))
    shop.clock.now += 6 * DAY
    shop.close()
    assert Canary.value in seen_values(shop.trainer.learner)
    shop.erase(canary)
    shop.trainer.catch_up()
    assert Canary.value not in seen_values(shop.trainer.learner)
    shop.repay(shop.arrive(100))
    shop.clock.now += 6 * DAY
    shop.close()
    for policy in shop.lineage:
        checkpoint = shop.ledger.checkpoint(policy)
        arrays = [array_from_json(array) for array in checkpoint["arrays"].values()]
        assert not any((array == Canary.value).any() for array in arrays if array.dtype.kind == "f")
        assert str(Canary.value) not in json.dumps(checkpoint["state"])
    shop.shut()


class Canary:
    value = 1234.5678

    @staticmethod
    def draw(people, generator):
        found = PEOPLE.draw(people, generator)
        return type(found)(np.full_like(found.features, Canary.value), found.group, found.label)


def seen_values(learner):
    return set(np.ravel(learner.rounds.features_of(slice(None))).tolist())


# nobody is left out


def test_a_history_that_leaves_somebody_out_is_not_learned_from(tmp_path, monkeypatch):
    """The law of old (nobody overruled, nobody erased) put back into the reading: the trainer
    refuses instead of certifying.
    """
    shop = Shop(tmp_path / "ledger.sqlite", LOAN, seed=6)
    shop.repay(shop.arrive(120))
    shop.overrule(["k3"])
    shop.erase(["k5"])
    shop.clock.now += 6 * DAY
    history = Ledger.history
    for kept in (
        lambda row: not row.overruled,
        lambda row: not row.erased,
        lambda row: row.accept or row.seq % 7,
    ):
        monkeypatch.setattr(
            Ledger, "history", lambda self, *a, kept=kept, **k: filter(kept, history(self, *a, **k))
        )
        if all(kept(row) for row in history(shop.ledger, shop.product.name)):
            continue
        with pytest.raises(Damaged, match="usable"):
            shop.trainer.close()
    monkeypatch.undo()
    assert record(shop.ledger, shop.close())[1]["window"] == [0, 120]
    shop.shut()


def test_a_decision_of_a_policy_outside_the_lineage_is_damage(tmp_path):
    shop = Shop(tmp_path / "ledger.sqlite", LOAN, seed=6)
    shop.arrive(5)
    rows = list(shop.ledger.history(shop.product.name))
    lineage = {p.epoch: p.id for p in shop.lineage}
    rounds = Rounds()
    append_rows(rounds, rows, lineage, columns=1, maturity=None)
    assert len(rounds) == 5
    for wrong in ({}, {1: "another"}, {2: lineage[1]}):
        with pytest.raises(Damaged, match="lineage"):
            append_rows(rounds, rows, wrong, columns=1, maturity=None)
    assert len(rounds) == 5
    shop.shut()


def test_an_erased_person_keeps_the_place_in_the_block(tmp_path):
    shop = Shop(tmp_path / "ledger.sqlite", LOAN, seed=6)
    keys = shop.arrive(6)
    shop.tell(keys, lambda key: Label(1))
    shop.overrule(keys[:1])
    shop.erase(keys[1:2])
    rows = list(shop.ledger.history(shop.product.name, maturity=LOAN.maturity))
    rounds = Rounds()
    lineage = {p.epoch: p.id for p in shop.lineage}
    append_rows(rounds, rows, lineage, columns=1, maturity=LOAN.maturity)
    assert rounds["round"].tolist() == list(range(6))
    assert rounds["erased"].tolist() == [False, True, False, False, False, False]
    assert rounds.features_of(slice(None))[1].tolist() == [0.0]
    assert rounds.groups_of(slice(1, 2)).tolist() == [None]
    assert rounds["label"].tolist() == [0, 0, 1, 1, 1, 1]
    assert rounds["overruled"].tolist() == [True, False, False, False, False, False]
    assert rounds["acceptance"].tolist() == [1.0] * 6
    shop.shut()
