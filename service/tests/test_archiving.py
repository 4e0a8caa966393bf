"""Which rows may go into an archive, and that a trainer that starts afterwards goes on bit for bit
as one whose ledger has no archive.
"""

import asyncio
import json
from dataclasses import replace

import pytest
from service.tests.bank import DAY, LOAN, Bank, application
from service.tests.shop import Shop, record
from service.tests.test_rebuild import PRODUCTS, eventful

from evenhand.rounds import KINDS
from evenhand_service import Product, Trainer
from evenhand_service.archiving import archive_closed, closed_rows
from evenhand_service.audit_pack import Period, pack
from evenhand_service.ledger import (
    Archived,
    Damaged,
    Invalid,
    Tampered,
    standalone_verifier,
    verify,
)
from evenhand_service.ledger.archive import rows_left_out
from evenhand_service.schemas import DecisionRequest
from evenhand_service.state import ProductCounts


def twins(tmp_path, product, seed):
    """The same shop twice: `plain` never archives."""
    shelved = Shop(tmp_path / "shelved.sqlite", product, seed=seed)
    plain = Shop(tmp_path / "plain.sqlite", product, seed=seed)
    return shelved, plain


def archived(shop, folder):
    """Archive all that may be; whether there was something."""
    try:
        archive_closed(shop.ledger, [shop.product], shop.clock.now, folder, by="op")
    except Invalid:
        return False
    return True


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("both", marks=pytest.mark.thorough),
        *(pytest.param(name, marks=pytest.mark.slow) for name in PRODUCTS if name != "both"),
    ],
)
def test_a_trainer_that_starts_after_archiving_goes_on_bit_for_bit(tmp_path, name):
    """Everything happens in both shops: late groups, missing labels, overrides, a rollback, and
    erasures of people who are in an archive. A new trainer starts before each closing.
    """
    shelved, plain = twins(tmp_path, PRODUCTS[name], seed=len(name))
    folders = []
    learned = erased = 0
    for epoch in range(6):
        published = []
        for shop in (shelved, plain):
            eventful(shop, epoch)
            shop.clock.now += 16 * DAY
            trainer = Trainer(shop.ledger, shop.product, "new")
            published.append(record(shop.ledger, shop.close(trainer)))
        assert published[0] == published[1], f"epoch {epoch}"
        folder = tmp_path / f"archive-{epoch}"
        if archived(shelved, folder):
            folders.append(folder)
        last = shelved.lineage[-1]
        learned = max(learned, last.info["learned_weight"])
        archives = shelved.ledger.archives()
        if archives:
            before = archives[-1]["last"]
            erased = sum(row.erased for row in shelved.ledger.past(shop.product.name, 0, before))
    assert len(folders) >= 3
    assert learned > 0
    assert erased > 4
    assert verify(shelved.ledger, deep=True).problems == ()
    tables = [Trainer(shop.ledger, shop.product, "last") for shop in (shelved, plain)]
    for trainer in tables:
        trainer.catch_up()
    one, other = (trainer.learner.rounds for trainer in tables)
    for column in KINDS:
        assert one[column].tolist() == other[column].tolist(), column
    every = slice(None)
    assert one.features_of(every).tolist() == other.features_of(every).tolist()
    for shop in (shelved, plain):
        shop.shut()


@pytest.fixture
def shop(tmp_path):
    """Two windows have ended; the people of the first are closed and in an archive."""
    made = Shop(tmp_path / "ledger.sqlite", LOAN, seed=1)
    for _ in range(2):
        made.repay(made.arrive(150))
        made.clock.now += 31 * DAY
        made.close()
    yield made
    made.shut()


def test_the_trainer_learns_nothing_from_a_past_that_was_changed(shop, tmp_path):
    assert archived(shop, tmp_path / "archive")
    with shop.ledger.store.writer.begin() as connection:
        change = "UPDATE archived SET past = replace(past, ',1,1,', ',-1,-1,')"
        assert connection.exec_driver_sql(change).rowcount > 0
    with pytest.raises(Tampered):
        Trainer(shop.ledger, LOAN, "new").catch_up()


def test_a_trainer_that_forgets_the_past_is_noticed(shop, tmp_path, monkeypatch):
    """The mutant: without what stays of archived people the next policy is another one, and the
    trainer says that people are missing.
    """
    assert archived(shop, tmp_path / "archive")
    monkeypatch.setattr(shop.ledger, "past", lambda *_: [])
    with pytest.raises(Damaged, match="are usable"):
        Trainer(shop.ledger, LOAN, "new").catch_up()


def test_what_a_learner_still_needs_stays(shop, tmp_path):
    """People who are not closed, the present window, and products of which nobody knows."""
    everybody = closed_rows(shop.ledger, [LOAN], shop.clock.now)
    assert closed_rows(shop.ledger, [LOAN], shop.clock.now - 31 * DAY).upto < everybody.upto
    with pytest.raises(Invalid, match="the present window"):
        closed_rows(shop.ledger, [LOAN], 0.0)
    with pytest.raises(Invalid, match="no such product"):
        closed_rows(shop.ledger, [replace(LOAN, name="card")], shop.clock.now)
    first = shop.arrive(20)[0]
    shop.clock.now += 31 * DAY  # the window has ended, and its epoch has not been closed
    assert closed_rows(shop.ledger, [LOAN], shop.clock.now).upto < shop.drawn[first].seq
    assert archived(shop, tmp_path / "archive")
    with pytest.raises(Invalid, match="which its learner needs"):
        closed_rows(shop.ledger, [LOAN], shop.clock.now)


def test_rows_of_the_present_period_of_a_quota_stay(tmp_path):
    product = Product(
        "loan", ("score",), hypotheses="thresholds", limit=0.3, quota=100, quota_days=3650, seed=2
    )
    shop = Shop(tmp_path / "ledger.sqlite", product, seed=2)
    shop.repay(shop.arrive(150))
    shop.clock.now += 31 * DAY
    shop.close()
    with pytest.raises(Invalid, match="the present period of the quota of loan"):
        closed_rows(shop.ledger, [product], shop.clock.now)
    shop.shut()


def test_the_dashboard_counts_people_who_are_in_an_archive(shop, tmp_path):
    shop.overrule(list(shop.drawn)[:7])
    shop.name_groups(shop.arrive(10, told=0.0))
    counts = ProductCounts(shop.ledger, LOAN)
    counts.refresh()
    assert archived(shop, tmp_path / "archive")
    for one in (counts, ProductCounts(shop.ledger, LOAN)):
        before = (counts.people.copy(), counts.accepted.copy(), counts.overruled.copy())
        one.refresh()
        assert (one.people, one.accepted, one.overruled) == before
    assert sum(counts.people.values()) == 310
    assert sum(counts.overruled.values()) == 7


def test_a_running_service_refuses_what_is_in_an_archive(shop, tmp_path):
    """The decider of a process that was running when the archive was made."""
    assert archived(shop, tmp_path / "archive")
    asked = DecisionRequest(key="k0", person="p0", product="loan", features=[0.5], group="north")
    shop.service.decider.refresh(LOAN)
    (answer,) = asyncio.run(shop.service.decider.decide([asked]))
    assert isinstance(answer, Archived)
    keys = shop.arrive(20)
    assert len(keys) == 20
    started = Trainer(shop.ledger, LOAN, "new")
    started.catch_up()
    assert started.due() == shop.trainer.due()
    assert shop.ledger.counts("loan").usable == 320


def test_a_pack_of_an_archived_period_needs_the_archive(shop, tmp_path, capsys):
    assert archived(shop, tmp_path / "archive")
    everything = Period(0.0, 1e12)
    with pytest.raises(Invalid, match="--archive FOLDER"):
        pack(shop.ledger, LOAN, everything, tmp_path / "pack")
    folders = [tmp_path / "archive"]
    made = pack(shop.ledger, LOAN, everything, tmp_path / "pack", reveal_by="Ada", archives=folders)
    words = [str(made / "ledger.jsonl")]
    for name in ("secrets", "head", "pack"):
        words += [f"--{name}", str(made / f"{name}.json")]
    assert standalone_verifier.main(words) == 0
    assert "draws recomputed: 300 of 300" in capsys.readouterr().out
    assert len((made / "decisions.csv").read_text().splitlines()) == 301
    # the period after the archive needs none
    until = shop.ledger.archives()[-1]["until"]
    shop.arrive(5)
    later = pack(shop.ledger, LOAN, Period(until + 1.0, 1e12), tmp_path / "later")
    assert len((later / "decisions.csv").read_text().splitlines()) == 6
    words = [word.replace(str(made), str(later)) for word in words]
    assert standalone_verifier.main(words) == 0


def test_an_archived_key_over_http(tmp_path):
    bank = Bank(tmp_path / "ledger.sqlite")
    bank.repay(*bank.arrive(300, seed=4))
    bank.clock.now += 31 * DAY
    assert bank.post("/v1/train", {"product": "loan"}).status_code == 200
    products = bank.service.settings.products
    archive_closed(bank.ledger, products, bank.clock.now, tmp_path / "archive", by="op")
    assert rows_left_out(bank.ledger) > 300
    for answer in (
        bank.post("/v1/decisions", application("k0")),
        bank.get("/v1/decisions/k0"),
        bank.post("/v1/outcomes", {"key": "k0", "label": 1}),
        bank.post("/v1/overrides", {"key": "k0", "accept": False, "by": "officer"}),
    ):
        assert answer.status_code == 410
        told = json.loads(answer.content)
        assert told["type"] == "urn:evenhand:problem:archived"
        assert "nothing more can be reported" in told["detail"]
    assert bank.post("/v1/decisions", application("new")).status_code == 200
    bank.close()
