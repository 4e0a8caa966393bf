"""Somebody is erased: the key is Gone for good, no new draw takes its place, and what was certified
stays. See also test_rebuild.py.
"""

import numpy as np
import pytest
from service.tests.bank import DAY, LOAN, Bank, application
from service.tests.ledger.helpers import recomputed
from service.tests.simulated_run import closings, run_epochs

from evenhand_service import Trainer
from evenhand_service.ledger import verify

ERASED = tuple(range(0, 60, 3))


@pytest.fixture
def poorer(bank):
    """A bank of six epochs that has erased every third of its first 60 people."""
    run_epochs(bank, 6)
    for number in ERASED:
        assert bank.post("/v1/erasures", {"person": f"p-k{number}", "by": "officer"}).json() == {
            "decisions": 1
        }
    return bank


def test_the_key_is_gone_and_never_drawn_again(poorer):
    before, bodies = (
        poorer.ledger.counts("loan"),
        [application("k0"), application("k0", person="somebody else")],
    )
    for body in bodies:
        assert poorer.post("/v1/decisions", body).status_code == 410
        assert (
            poorer.post("/v1/decisions/batch", {"decisions": [body]}).json()["decisions"][0][
                "status"
            ]
            == 410
        )
    assert poorer.get("/v1/decisions/k0").status_code == 410
    assert poorer.get("/v1/decisions/k0/explanation").status_code == 410
    assert poorer.post("/v1/outcomes", {"key": "k0", "label": 1}).status_code == 410
    assert poorer.post("/v1/erasures", {"person": "p-k0", "by": "officer"}).status_code == 404
    assert poorer.ledger.counts("loan") == before
    assert before.erased == len(ERASED)
    path = poorer.ledger.store.path
    poorer.close()
    again = Bank(path, poorer.clock)  # nor after a restart, years later
    again.clock.now += 3000 * DAY
    assert again.post("/v1/decisions", application("k0")).status_code == 410
    assert verify(again.ledger, deep=True).ok
    again.close()
    poorer.__init__(path, poorer.clock)  # for the fixture, which closes it


def test_who_comes_back_with_a_new_key_meets_the_same_coin_and_is_not_learned_from_twice(bank):
    first = bank.post("/v1/decisions", application("one", person="p")).json()
    bank.post("/v1/erasures", {"person": "p", "by": "officer"})
    second = bank.post("/v1/decisions", application("two", person="p")).json()
    rows = {row.seq: row for row in bank.ledger.history("loan", usable_only=False)}
    assert rows[second["row"]].u == rows[first["row"]].u
    assert [row.seq for row in bank.ledger.history("loan")] == [first["row"]]


def test_a_rebuild_keeps_what_was_published_and_what_was_certified(poorer):
    published = closings(poorer)
    rebuilt = Trainer(poorer.ledger, LOAN, "rebuilt")
    rebuilt.catch_up()
    learner = rebuilt.learner
    assert learner.policy.to_json() == published[-1].document
    assert learner.certificate.to_json() == poorer.ledger.certificates("loan")[-1].document
    assert learner.epoch.number == published[-1].epoch
    assert (
        learner.certificate.window[1]
        == rebuilt._closing.people
        == published[-1].info["closing"]["people"]
    )
    assert recomputed(poorer.ledger, "loan") == poorer.ledger.counts("loan").decisions - len(ERASED)


def test_a_running_trainer_forgets_them_too(poorer):
    """What it plans next is what a trainer plans that was rebuilt: nothing of an erased person is
    left in its memory.
    """
    running, rebuilt = poorer.service.trainer(LOAN), Trainer(poorer.ledger, LOAN, "rebuilt")
    for trainer in (running, rebuilt):
        trainer.catch_up()
    assert running.learner.certificate == rebuilt.learner.certificate
    assert running.learner.report == rebuilt.learner.report


def test_life_goes_on(poorer):
    sample, answers = poorer.arrive(400, seed=99, first=100_000, days=3.0)
    poorer.repay(sample, answers)
    poorer.clock.now += 6 * DAY
    poorer.service.trainer(LOAN).close()
    newest = closings(poorer)[-1]
    assert newest.epoch == 7
    again = Trainer(poorer.ledger, LOAN, "again")
    again.catch_up()
    assert again.learner.policy.to_json() == newest.document
    assert again.learner.certificate.to_json() == poorer.ledger.certificates("loan")[-1].document
    assert np.isfinite(again.learner.certificate.spent)
