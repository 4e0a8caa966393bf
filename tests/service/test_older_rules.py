"""A ledger of rules 1 under the code of now: shown as it was, marked, and taken over by a new life;
nothing is recomputed.
"""

import json
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest
from click.testing import CliRunner
from tests.fixtures import rules1
from tests.service.attacks import session
from tests.service.bank import DAY, LOAN, Clock, without_basis
from tests.service.shop import Shop, record, twin_closes

from evenhand.cli import main
from evenhand.fairness.certificate import Certificate
from evenhand.fairness.delta_ledger import life_share
from evenhand.ledger import RULES, Damaged, Invalid, StalePolicy, verify
from evenhand.service import SCOPES, KeyStore, Trainer, create_app
from evenhand.service.audit_pack import Period, pack
from evenhand.service.explanations import concerns
from evenhand.service.server import open_ledger

NOW = 1_803_100_000.0
"""A little after the last row of both ledgers."""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request):
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


class OldShop(Shop):
    """A shop whose ledger was written under rules 1."""

    def __init__(self, name, folder, url=None):
        self.settings = rules1.settings(name, folder, url)
        self.record = rules1.record(name)["sqlite" if url is None else "postgresql"]
        place = self.settings.ledger
        super().__init__(
            place, self.settings.products[0], people=Scored(), clock=Clock(NOW), first=10_000
        )


class Scored:
    """The population of the fixtures, roughly: a score in steps of 50."""

    @staticmethod
    def draw(people, generator):
        from evenhand.words import LabelledSample

        north = generator.random(people) < 0.6
        score = 50.0 * generator.integers(4, 16, people)
        good = generator.random(people) < (score - 150) / 700 + 0.1 * north
        return LabelledSample(
            score[:, np.newaxis], np.where(north, "north", "south"), np.where(good, 1, -1)
        )


@pytest.fixture(params=rules1.LEDGERS)
def shop(request, tmp_path, url):
    made = OldShop(request.param, tmp_path, url)
    yield made
    made.shut()


def test_nothing_is_published_and_nothing_changes_until_a_trainer_runs(shop):
    # what the first opening appends: the plan of windows, and which database this is
    head = shop.record["head"]["seq"] + (1 if shop.ledger.store.path is not None else 2)
    assert shop.ledger.head().seq == head
    assert shop.service.decider.active(shop.product).policy.rules == 1
    trainer = Trainer(shop.ledger, shop.product, "looks")
    trainer.catch_up()
    assert shop.ledger.head().seq == head


def test_a_new_life_takes_over_from_the_reserve(shop, tmp_path):
    """The next policy is the fallback constant; the old bookings stay, the new life books its own
    share, and learning begins anew.
    """
    old = shop.lineage
    usable = shop.ledger.counts(*shop.names).usable
    published = shop.trainer.close_if_due()
    assert (published.epoch, published.parent, published.rules) == (
        old[-1].epoch + 1,
        old[-1].id,
        RULES,
    )
    assert (published.info["delta"], published.info["learned_weight"]) == (
        old[-1].info["delta"],
        0.0,
    )
    assert published.info["closing"]["rounds"] == usable
    document = record(shop.ledger, published)[1]
    assert (document["rules"], document["status"]) == (RULES, "suspended")
    assert "rules 1" in document["reason"]
    assert [p.signed for p in shop.lineage[:-1]] == [
        p.signed for p in old
    ]  # nothing is written again
    assert [asdict(row) for row in shop.ledger.certificates(*shop.names)][:-1] == shop.record[
        "certificates"
    ]
    shop.service.decider.refresh(shop.product)
    shop.clock.now += 61
    assert shop.trainer.close_if_due() is None
    for people in (120, 150, 200, 250):
        shop.repay(shop.arrive(people))
        shop.clock.now += 6 * DAY
        if shop.ledger.store.path is not None:
            expected = twin_closes(shop, tmp_path)
            assert record(shop.ledger, shop.close()) == expected
        else:
            shop.close()
    newest = shop.lineage[-1]
    booked = newest.info["delta"]
    assert booked[: len(old[-1].info["delta"])] == old[-1].info["delta"]
    assert [entry["process"].split(":")[0] for entry in booked] == ["life 1", "life 2"]
    assert booked[1]["share"] <= life_share(shop.product.delta, 2, reserve=0.1) * (1 + 1e-12)
    certificate = Certificate.from_json(record(shop.ledger, newest)[1])
    assert (certificate.status, certificate.window[0]) == ("certified", usable)
    assert certificate.spent <= shop.product.delta
    assert verify(shop.ledger, deep=True).ok


def test_people_whom_the_old_policies_still_decided_do_not_count(shop, monkeypatch):
    """A replica of an older evenhand that has not noticed yet goes on with the old policy: its
    people are in the record, numbered, and in no interval.
    """
    monkeypatch.setattr("evenhand.service.decider.Terms", without_basis)
    waiting = shop.service.decider.active(shop.product)
    shop.trainer.close()
    shop.clock.now += 61
    assert shop.service.decider.active(shop.product) is waiting
    late = shop.arrive(40)
    assert {shop.drawn[key].policy for key in late} == {waiting.policy.id}
    shop.service.decider.refresh(shop.product)
    shop.repay(late + shop.arrive(30))
    shop.clock.now += 6 * DAY
    closing = shop.close().info["closing"]
    assert closing["people"] == closing["rounds"] == shop.ledger.counts(*shop.names).usable


def test_an_old_policy_cannot_be_returned_to(shop):
    shop.close()
    for wanted in (None, shop.lineage[-2].id):
        with pytest.raises(Invalid, match="rules 3"):
            shop.service.decider.operate(shop.product, "rollback", by="op", policy=wanted)


def test_two_trainers_do_not_succeed_it_twice(shop):
    one, other = (Trainer(shop.ledger, shop.product, name) for name in ("one", "other"))
    for trainer in (one, other):
        trainer.catch_up()
    first = one.close()
    shop.clock.now += 61
    other.catch_up = lambda: None  # it still believes in the old lineage
    with pytest.raises(StalePolicy):
        other.close()
    assert shop.lineage[-1].id == first.id


def test_a_lineage_of_newer_rules_is_not_touched(shop, monkeypatch):
    shop.close()
    for module in ("evenhand.service.trainer", "evenhand.learners.certified.learner"):
        monkeypatch.setattr(f"{module}.RULES", 1)
    with pytest.raises(Damaged, match="this evenhand knows rules 1"):
        Trainer(shop.ledger, shop.product, "old software").close()


@pytest.mark.parametrize("rules", [1, 2])
def test_a_lineage_that_has_decided_nobody_is_succeeded_too(tmp_path, monkeypatch, rules):
    monkeypatch.setattr("evenhand.ledger.publishing.RULES", rules)
    shop = Shop(tmp_path / "ledger.sqlite", LOAN)
    monkeypatch.undo()
    assert [p.rules for p in shop.lineage] == [rules]
    shop.close()
    for _ in range(3):
        shop.repay(shop.arrive(150))
        shop.clock.now += 6 * DAY
        shop.close()
    assert [p.rules for p in shop.lineage] == [rules, 3, 3, 3, 3]
    assert [entry["process"].split(":")[0] for entry in shop.lineage[-1].info["delta"]] == [
        "life 2"
    ]
    shop.shut()


DOORS = {
    "full": {"overrides", "erased", "no groups were listed", "maturity window"},
    "spent": {"the audit budget was spent"},
}


def test_each_certificate_says_which_door_may_concern_it(shop):
    expected = DOORS["full" if shop.product.name == "loan" else "spent"]
    last = list(concerns(shop.ledger, shop.product, shop.lineage[-1]))
    assert len(last) == len(expected)
    assert all(any(word in text for text in last) for word in expected)
    first = list(concerns(shop.ledger, shop.product, shop.lineage[0]))
    assert len(first) == (
        2 if shop.product.name == "loan" else 0
    )  # nobody had been overruled or erased, no budget was spent


def test_the_pages_and_the_pack_show_the_old_record_marked(shop, tmp_path):
    from starlette.testclient import TestClient

    keys = KeyStore(None)
    token = keys.add(shop.names[0], SCOPES)
    app = create_app(shop.ledger, shop.settings, keys, train=False)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        headers = {"Authorization": f"Bearer {token}"}
        found = client.get(f"/v1/certificate?product={shop.names[1]}", headers=headers).json()
        marks = found["rules"], found["issued_under"], len(found["may_concern"])
        plan = client.get(f"/v1/plan?product={shop.names[1]}", headers=headers).json()
        policies = client.get(f"/v1/policies?product={shop.names[1]}", headers=headers).json()[
            "policies"
        ]

        class Bank:
            all, client = token, None

        Bank.client = client
        page = client.get("/dashboard", headers={"Cookie": session(Bank)}).text
    assert marks[0] == 1
    assert marks[1].startswith("issued under rules 1")
    assert marks[2] == len(DOORS["full" if shop.product.name == "loan" else "spent"])
    assert "Issued under rules 1" in page
    assert all(text in page for text in found["may_concern"])
    assert "as drawn, before people overrule it" in page
    assert (
        sum(line["decisions"] for line in plan["overruled"])
        == shop.ledger.counts(*shop.names).overruled
    )
    assert len(policies) == len(shop.record["policies"])
    target = pack(shop.ledger, shop.product, Period(0.0, 2e9), tmp_path / "pack")
    certificates = json.loads((target / "certificates.json").read_text())["certificates"]
    assert [row["rules"] for row in certificates] == [1] * len(shop.record["certificates"])
    assert all("may_concern" in row for row in certificates)
    words = [sys.executable, "-I", "-S", "verifier.py", "ledger.jsonl", "--head", "head.json"]
    done = subprocess.run(words, cwd=target, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", rules1.LEDGERS)
def test_the_commands_do_it_too(name, tmp_path):
    """`evenhand audit verify` before, `evenhand train`, and verify after."""
    settings = rules1.settings(name, tmp_path)
    words = ["--config", str(tmp_path / "service.toml")]
    before = CliRunner().invoke(main, ["audit", "verify", "--deep", *words])
    assert before.exit_code == 0, before.output
    trained = CliRunner().invoke(main, ["train", *words])
    assert trained.exit_code == 0, trained.output
    assert "a new life under rules 3" in trained.output
    assert "not due" in CliRunner().invoke(main, ["train", *words]).output
    assert CliRunner().invoke(main, ["audit", "verify", "--deep", *words]).exit_code == 0
    with open_ledger(settings, lambda: NOW) as ledger:
        assert [
            p.rules for p in ledger.policies("bank", settings.products[0].name) if p.in_lineage
        ][-2:] == [1, RULES]
